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

#endif
