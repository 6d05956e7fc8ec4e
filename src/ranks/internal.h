// Between ranks.c and collectives.c.
#ifndef RANKS_INTERNAL_H
#define RANKS_INTERNAL_H

#include "ranks/plugin.h"
#include "ranks/ranks.h"

const RanksPlugin *ranks_plugin(void); // NULL when alone
// The words of a plug-in's code.
Status ranks_check(int code) MUST_USE;
// Whether all ranks are about to do the same; x may be NULL.
Status ranks_agree(const RanksRequest *request, const Tensor *x) MUST_USE;

// The elements of a tensor on the host, in row-major order; `out` is to be freed.
Status ranks_bytes_of(Tensor *x, char **out, size_t *bytes) MUST_USE;
// The converse: `like` gives the device and the dtype.
Status ranks_tensor_of(const char *data, const Tensor *like, const Shape *shape,
                       Tensor **out) MUST_USE;
enum { RANKS_TAG = 1 << 14, RANKS_TAG_PIECES }; // above those of programs
// The parts of all ranks one after the other, on every rank.
Status ranks_share_parts(const char *part, const size_t *parts, char *whole) MUST_USE;

#endif
