// The ranks of a program: processes that run it together, numbered from 0. Started alone, a program
// is the one rank there is, and every collective gives back what it was given.
//
// Collectives are calls that all ranks make in the same order. Before each the ranks compare what
// they are about to do; where they disagree every one of them fails with the same words, which name
// the ranks, their lines and their shapes. Sums are made in the order of ranks, so that results are
// the same on every run.
#ifndef RANKS_RANKS_H
#define RANKS_RANKS_H

#include "tensor/tensor.h"

// Loads the transport and meets the others, when this process was started as one of several.
// STATUS_DEVICE when that is so and there is no transport. Once in a process.
Status ranks_begin(void) MUST_USE;
int ranks_own(void);   // 0 when alone
int ranks_count(void); // 1 when alone
int ranks_local(void); // among those on this machine
// Whether it has met the others, even where there are none: no other process can do so in its name.
bool ranks_have_met(void);
// The error that ends this rank is one of all ranks alike, and another one shows it.
bool ranks_error_is_told_by_another(void);
// What a rank has to say at its end, with `status`: in front of its lines stands its number, and
// where all come to their end well the first has those of all, one after the other, the others
// nothing. Alone it stays as it is.
void ranks_join_reports(int status, Text *report);
// In front of each line stands the number of this rank, where there are several.
void ranks_number_lines(Text *text);
// On the first the texts of all ranks, one after the other; on the others nothing.
Status ranks_join_texts(Text *text) MUST_USE;
// Whether one of the ranks says so. In the order of other calls, as all of these.
Status ranks_any(bool own, bool *any) MUST_USE;
// At the end of the program: waits for the others to end as well, or ends them when `status` is not
// 0.
void ranks_end(int status);

typedef enum RanksCall {
    RANKS_ALL_REDUCE,
    RANKS_ALL_GATHER,
    RANKS_REDUCE_SCATTER,
    RANKS_BROADCAST,
    RANKS_ALL_TO_ALL,
    RANKS_SEND,
    RANKS_RECEIVE,
    RANKS_BARRIER,
    RANKS_WAIT,
    RANKS_STEP,
    RANKS_GATHER,
    RANKS_LINE,
    RANKS_END,
    RANKS_CALL_COUNT
} RanksCall;

typedef enum RanksReduction {
    RANKS_SUM,
    RANKS_MEAN,
    RANKS_PROD,
    RANKS_MAX,
    RANKS_MIN,
    RANKS_REDUCTION_COUNT
} RanksReduction;

const char *ranks_call_name(RanksCall call);
// RANKS_REDUCTION_COUNT when there is none of this name.
RanksReduction ranks_reduction_find(const char *name);

typedef struct RanksRequest {
    RanksCall call;
    bool may_stop;            // STATUS_INTERRUPT on all ranks when one has a signal that waits
    RanksReduction reduction; // of ALL_REDUCE and REDUCE_SCATTER
    bool fast;                // ALL_REDUCE: in the order that the transport takes for the fastest
    int root;                 // of BROADCAST
    int peer, tag;            // of SEND and RECEIVE
    int64_t elements, pieces; // of STEP: of the tensors that are added up, and how many these are;
                              // of GATHER: of the parameter
    double rate;              // of STEP: the optimizer's
    int64_t transfer;         // of WAIT; of GATHER the number of the parameter
} RanksRequest;

// A call under way: all ranks have begun it (of SEND and RECEIVE this one has). Errors of the
// start: STATUS_SHAPE, STATUS_DTYPE, STATUS_GRADIENT, STATUS_VALUE where ranks disagree,
// STATUS_DEVICE of the transport, STATUS_INTERRUPT.
typedef struct RanksTransfer RanksTransfer;
// x: NULL of RECEIVE. Free what comes out.
Status ranks_start(const RanksRequest *request, Tensor *x, RanksTransfer **out) MUST_USE;
// Once: waits for the result, a new reference; NULL of SEND. Of ALL_REDUCE all ranks do in the same
// order, among the other calls. Shapes: ALL_REDUCE, BROADCAST x's own;
// ALL_GATHER x of all ranks one after the other along dimension 0, [n] for numbers; REDUCE_SCATTER
// the rank's n-th part along dimension 0 of the reduction; ALL_TO_ALL part i along dimension 0 from
// rank i; RECEIVE what was sent, on the default device. Gradients flow through all but PROD, MAX,
// MIN, SEND and RECEIVE.
Status ranks_finish(RanksTransfer *transfer, Tensor **out) MUST_USE;
void ranks_transfer_free(RanksTransfer *transfer);
// Both at once.
Status ranks_collect(const RanksRequest *request, Tensor *x, Tensor **out) MUST_USE;
// Adds the numbers of x to a digest (base/digest.h).
Status ranks_add_digest(Tensor *x, uint64_t *digest) MUST_USE;
Status ranks_barrier(void) MUST_USE;
// Waits until every rank has come here, by LINE or END. Calls that a rank still makes meanwhile
// fail there, since the ranks disagree. STATUS_INTERRUPT, STATUS_DEVICE.
Status ranks_meet(RanksCall call) MUST_USE;
// A line of a session, and what has become of reading it: those of rank 0 on every rank, where they
// meet. STATUS_INTERRUPT, STATUS_DEVICE.
Status ranks_share_line(int *event, Text *line) MUST_USE;

#endif
