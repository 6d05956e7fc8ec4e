// After a loss that is no number: the epoch, or the body up to there, runs once more, silently,
// from the same random numbers and without steps, while every operation's result is looked at.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "learn/learn.h"

bool learn_muted;

static struct {
    bool wants_nan; // else an infinity
    bool looking;   // inside the look itself
    const OpRow *op;
    bool inherited; // an operand held it already
    SourcePos at;
} search;

static bool holds_it(Tensor *tensor) {
    if (!dtype_is_float(tensor_dtype(tensor))) return false;
    int64_t count = tensor_count(tensor);
    double *numbers = memory_allocate((size_t)(count + 1) * sizeof *numbers);
    bool found = false;
    if (tensor_read_floats(tensor, numbers) == STATUS_OK)
        for (int64_t i = 0; i < count && !found; i++)
            found = search.wants_nan ? isnan(numbers[i]) : isinf(numbers[i]);
    free(numbers);
    return found;
}

// The result may have been written over an operand, which then says nothing.
static bool operand_holds_it(const OpCall *call, const Tensor *result) {
    for (int i = 0; i < call->n_inputs + call->n_many; i++) {
        const OpInput *input =
            i < call->n_inputs ? &call->inputs[i] : &call->many[i - call->n_inputs];
        if (input->tensor && input->tensor->view.buffer != result->view.buffer &&
            holds_it(input->tensor))
            return true;
    }
    return false;
}

static void look(const OpCall *call, Tensor *const *outputs) {
    if (search.looking || search.op) return;
    search.looking = true;
    for (int i = 0; i < call->op->outputs && !search.op; i++) {
        if (!outputs[i] || !holds_it(outputs[i])) continue;
        search.op = call->op;
        search.inherited = operand_holds_it(call, outputs[i]);
        search.at = origin_current.at;
    }
    search.looking = false;
}

static void fail_found(const LearnRun *run) {
    const char *what = isnan(run->diverged) ? "nan" : "inf";
    Text text = {0};
    text_format(&text, "the loss became %s in epoch %lld", what, (long long)run->done + 1);
    if (search.op) {
        SourcePlace place = source_find(search.at);
        text_format(&text,
                    search.inherited ? ": %s read a tensor that held it already"
                                     : ": %s made the first",
                    search.op->name);
        if (place.file) text_format(&text, " (%s:%d)", place.file->name, place.line);
    }
    fail(STATUS_VALUE, "%s", text_get(&text));
    fail_help("a smaller learning rate or clip_grad_norm may keep it finite");
    text_free(&text);
}

Status learn_search_backward(LearnRun *run) {
    if (run->skip == 0) return fail(STATUS_VALUE, "the search ends here");
    if (--run->skip == 0) op_watch = look;
    return STATUS_OK;
}

Value learn_fail_diverged(LearnRun *run, LearnBody body, int64_t steps, Span span) {
    memset(&search, 0, sizeof search);
    search.wants_nan = isnan(run->diverged);
    RandomStream now = random_mark();
    random_return(run->random);
    run->searching = learn_muted = true;
    run->skip = steps;
    op_watch = steps == 0 ? look : NULL;
    Value value = body(run);
    op_watch = NULL;
    run->searching = learn_muted = false;
    random_return(now);
    value_release(value);
    error_clear();
    trace_clear(run->frame->interp);
    run->frame->control = CONTROL_NONE;
    run->found = search.op != NULL;
    fail_found(run);
    return fail_at(span);
}
