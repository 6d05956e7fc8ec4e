// Between ranks.c and collectives.c.
#ifndef RANKS_INTERNAL_H
#define RANKS_INTERNAL_H

#include "ranks/plugin.h"
#include "ranks/ranks.h"

const RanksPlugin *ranks_plugin(void); // NULL when alone
// The same, or, where the numbers are not known because the program is foretold, one that carries
// nothing: what its exchanges write to stays as it is.
const RanksPlugin *ranks_carrier(bool known);
// Whether all ranks knew the numbers of what they have agreed on last.
bool ranks_know(void);
// The words of a plug-in's code.
Status ranks_check(int code) MUST_USE;
// Waits for what has been started with this code.
Status ranks_wait(int code, RanksExchange *exchange) MUST_USE;
// `bytes` bytes of every rank, in the order of ranks.
Status ranks_gather(const void *own, void *all, size_t bytes) MUST_USE;
// Whether all ranks are about to do the same; x may be NULL.
Status ranks_agree(const RanksRequest *request, const Tensor *x) MUST_USE;

// The elements of a tensor on the host, in row-major order; `out` is to be freed.
Status ranks_bytes_of(Tensor *x, char **out, size_t *bytes) MUST_USE;
// Where the elements lie in that order, in memory that the host may use as well; NULL elsewhere.
// Of a foretold device a place that only a carrier of nothing is given.
char *ranks_place_of(const Tensor *x);
// Tags above those of programs: of what is waited for at once, of transfers, of sums over pieces.
enum { RANKS_TAG = 1 << 13, RANKS_TAG_TRANSFERS, RANKS_TAG_PIECES = 1 << 14 };
// Of the next transfer: ranks start them in the same order and wait for them in any.
int ranks_new_tag(void);
// The parts of all ranks one after the other, on every rank.
Status ranks_share_parts(const char *part, const size_t *parts, int tag, char *whole) MUST_USE;

#endif
