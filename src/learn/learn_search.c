// After a loss or a gradient that is not finite: the epoch, or the body up to there, runs once
// more, silently, from the same random numbers and without steps, while every operation's result,
// or what every gradient rule gives, is looked at.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "learn/learn.h"
#include "tensor/gradient/backward.h"
#include "tensor/parameter.h"

static bool holds_it(Tensor *tensor) {
    const LearnSearch *search = &learn_state()->search;
    if (!dtype_is_float(tensor_dtype(tensor))) return false;
    int64_t count = tensor_count(tensor);
    SCOPED_MEMORY double *numbers = memory_allocate((size_t)(count + 1) * sizeof *numbers);
    bool found = false;
    if (tensor_read_floats(tensor, numbers) == STATUS_OK)
        for (int64_t i = 0; i < count && !found; i++)
            found = (search->wants_nan && isnan(numbers[i])) ||
                    (search->wants_inf && isinf(numbers[i]));
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
    LearnSearch *search = &learn_state()->search;
    if (search->looking || search->name) return;
    search->looking = true;
    for (int i = 0; i < call->op->outputs && !search->name; i++) {
        if (!outputs[i] || !holds_it(outputs[i])) continue;
        search->name = call->op->name;
        search->inherited = operand_holds_it(call, outputs[i]);
        search->at = origin_current.at;
    }
    search->looking = false;
}

// Gradients come from the last operation to the first: the first that is not finite is the cause.
static void look_at_gradient(const char *name, Tensor *const *gradients, int count) {
    LearnSearch *search = &learn_state()->search;
    if (search->looking || search->name) return;
    search->looking = true;
    for (int i = 0; i < count && !search->name; i++) {
        if (!gradients[i] || !holds_it(gradients[i])) continue;
        search->name = name;
        search->at = origin_current.at;
    }
    search->looking = false;
}

static void fail_found(const LearnRun *run) {
    LearnSearch *search = &learn_state()->search;
    SCOPED_TEXT(text);
    text_format(&text, "the %s became %s in epoch %lld",
                run->in_gradient ? "gradient norm" : "loss", learn_number(run->diverged).text,
                (long long)run->done + 1);
    if (search->name) {
        SourcePlace place = source_find(search->at);
        text_format(&text,
                    run->in_gradient    ? ": the gradient of %s is the first that is not finite"
                    : search->inherited ? ": %s read a tensor that held it already"
                                        : ": %s made the first",
                    search->name);
        if (place.file) text_format(&text, " (%s:%d)", place.file->name, place.line);
    }
    fail(STATUS_VALUE, "%s", text_get(&text));
    if (run->in_gradient)
        fail_help("the parameters are those of the step before; what is divided by, or whose root "
                  "or logarithm is taken, may have come to 0");
    else
        fail_help("a smaller learning rate or clip_grad_norm may keep it finite");
}

static void search_gradient(Value loss) {
    if (loss.kind != VALUE_TENSOR) return;
    tape_set_watch(look_at_gradient);
    Status status = tape_backward(loss.as.tensor, NULL);
    tape_set_watch(NULL);
    if (status != STATUS_OK) error_clear();
    tape_zero_gradients();
}

static void watch_from_here(const LearnRun *run) {
    op_set_watch(run->in_gradient ? NULL : look);
}

Status learn_search_backward(LearnRun *run, Value loss) {
    if (run->skip == 0) {
        if (run->in_gradient) search_gradient(loss);
        return fail(STATUS_VALUE, "the search ends here");
    }
    ASSERT(run->skip > 0);
    if (--run->skip == 0) watch_from_here(run);
    return STATUS_OK;
}

Value learn_fail_diverged(LearnRun *run, LearnBody body, int64_t steps, Span span) {
    Learning *learning = learn_state();
    learning->search = (LearnSearch){.wants_nan = run->in_gradient || isnan(run->diverged),
                                     .wants_inf = run->in_gradient || !isnan(run->diverged)};
    RandomStream now = random_mark();
    random_return(run->random);
    run->searching = learning->muted = true;
    run->skip = steps;
    if (steps == 0) watch_from_here(run);
    Value value = body(run);
    if (run->in_gradient && !failed(value)) search_gradient(value);
    op_set_watch(NULL);
    run->searching = learning->muted = false;
    random_return(now);
    value_release(value);
    error_clear();
    trace_clear(run->frame->interp);
    run->frame->control = CONTROL_NONE;
    run->found = learning->search.name != NULL;
    fail_found(run);
    return fail_at(span);
}
