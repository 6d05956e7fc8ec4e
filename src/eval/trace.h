// The last failure and the calls that it came through.
#ifndef EVAL_TRACE_H
#define EVAL_TRACE_H

#include "eval/interp.h"

// The trace of the last failure, innermost first; borrowed.
const TraceFrame *interp_trace(const Interp *interp, size_t *count);
// The last failure with its trace, on standard error.
void failure_show(const Interp *interp);

#endif
