// The calls that a failure came through, for error messages; long recursions are shortened.
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/output.h"
#include "eval/state.h"
#include "eval/trace.h"

void trace_clear(Interp *interp) {
    interp->trace.count = 0;
    interp->trace.called_at = 0;
}

static TraceFrame *trace_slot(Trace *trace, size_t index) {
    return index < TRACE_FIRST ? &trace->first[index] : &trace->last[index % TRACE_LAST];
}

void trace_add(Interp *interp, const char *function, SourcePos called_at) {
    Trace *trace = &interp->trace;
    SourcePos at = trace->count ? trace->called_at : error_current()->span.begin;
    TraceFrame frame = {.function = function, .at = at};
    trace->called_at = called_at;
    TraceFrame *latest = trace->count ? trace_slot(trace, trace->count - 1) : NULL;
    if (latest && latest->function == function && latest->at == at) {
        latest->again++;
        return;
    }
    *trace_slot(trace, trace->count++) = frame;
}

const TraceFrame *interp_trace(const Interp *interp, size_t *count) {
    Trace *trace = &((Interp *)(uintptr_t)interp)->trace;
    size_t shown = 0;
    for (size_t i = 0; i < trace->count && i < TRACE_FIRST; i++)
        trace->shown[shown++] = trace->first[i];
    if (trace->count > TRACE_FIRST + TRACE_LAST) {
        snprintf(trace->skipped, sizeof trace->skipped, "%zu more calls",
                 trace->count - TRACE_FIRST - TRACE_LAST);
        trace->shown[shown++] = (TraceFrame){.function = trace->skipped};
    }
    size_t last = trace->count > TRACE_FIRST ? trace->count - TRACE_FIRST : 0;
    if (last > TRACE_LAST) last = TRACE_LAST;
    for (size_t i = trace->count - last; i < trace->count; i++)
        trace->shown[shown++] = trace->last[i % TRACE_LAST];
    *count = shown;
    return trace->shown;
}

struct Failure {
    ErrorRecord error;
    Trace trace;
};

Failure *failure_set_aside(Interp *interp) {
    if (error_current()->code == STATUS_OK && interp->trace.count == 0) return NULL;
    Failure *failure = memory_allocate(sizeof *failure);
    *failure = (Failure){.error = *error_current(), .trace = interp->trace};
    error_clear();
    trace_clear(interp);
    return failure;
}

void failure_restore(Interp *interp, Failure *failure) {
    error_clear();
    trace_clear(interp);
    if (!failure) return;
    *error_current() = failure->error;
    interp->trace = failure->trace;
    free(failure);
}

void failure_show(const Interp *interp) {
    Diagnostic diagnostic = diagnostic_from_error(error_current());
    diagnostic.trace = interp_trace(interp, &diagnostic.trace_count);
    SCOPED_TEXT(text);
    diagnostic_render(&text, &diagnostic, diagnostic_color());
    output_flush();
    fputs(text_get(&text), output_errors());
}

bool failure_raise_again(Interp *interp, Value error) {
    const Caught *caught = error.kind == VALUE_STRUCT ? interp->caught : NULL;
    while (caught && caught->value != error.as.instance) caught = caught->outer;
    if (!caught) return false;
    *error_current() = caught->failure->error;
    interp->trace = caught->failure->trace;
    return true;
}

void failure_forget(Failure *failure) {
    free(failure);
}
