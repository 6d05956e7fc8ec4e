// The epochs of learn blocks: batches, the body, and the iterations of a loop over `epochs`.
#include "learn/learn_run.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/upper.h"
#include "tensor/compose.h"
#include "tensor/index.h"
#include "tensor/view.h"
#include "value/convert.h"

// --- batches

bool learn_take_whole(LearnRun *run) {
    const LearnCode *code = run->code;
    run->whole = memory_allocate_zeroed(code->batch_count + 1, sizeof *run->whole);
    for (size_t i = 0; i < code->batch_count; i++) {
        const BatchCode *batch = &code->batches[i];
        Value value = EVAL(run->frame, batch->source);
        if (failed(value)) return false;
        Status status = value_to_tensor(value, batch->name, &run->whole[i]);
        value_release(value);
        if (status == STATUS_OK && tensor_rank(run->whole[i]) == 0)
            status = fail(STATUS_SHAPE, "%s has rank 0: there are no rows to take batches of",
                          batch->name);
        int64_t rows = status == STATUS_OK ? run->whole[i]->view.dims[0] : 0;
        if (status == STATUS_OK && i > 0 && rows != run->rows)
            status =
                fail(STATUS_SHAPE, "batches need the same rows: %s has %lld, %s has %lld",
                     code->batches[0].name, (long long)run->rows, batch->name, (long long)rows);
        run->rows = rows;
        if (status == STATUS_OK) status = compose_know(run->whole[i]);
        if (status == STATUS_OK) continue;
        error_place(batch->source->span);
        return false;
    }
    if (code->batch_count == 0 || run->rows > 0) return true;
    fail(STATUS_SHAPE, "%s has no rows", code->batches[0].name);
    error_place(code->batches[0].source->span);
    return false;
}

void learn_release_whole(LearnRun *run) {
    for (size_t i = 0; run->whole && i < run->code->batch_count; i++) tensor_release(run->whole[i]);
    free(run->whole);
}

void learn_show_whole(LearnRun *run) {
    ASSERT(run->whole != NULL || run->code->batch_count == 0);
    for (size_t i = 0; i < run->code->batch_count; i++)
        variable_set(run->frame, run->code->batches[i].variable,
                     value_tensor(tensor_retain(run->whole[i])));
}

// The rows in another order, drawn from the program's stream: an int64 tensor.
static Status shuffled(const LearnRun *run, Tensor **out) {
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dim),
                               .shape = {.rank = 1, .dims = {run->rows}}};
    SCOPED_TENSOR(draws);
    TRY(op_with(OP_rand, NULL, 0, &attributes, &draws));
    return op_with(OP_argsort, &draws, 1, &attributes, out);
}

static Status rows_of(Tensor *whole, Tensor *order, int64_t first, int64_t count, Tensor **out) {
    ASSERT(first >= 0 && count > 0);
    if (!order) return tensor_slice(whole, 0, first, first + count, out);
    SCOPED_TENSOR(ids);
    TRY(tensor_slice(order, 0, first, first + count, &ids));
    IndexItem item = {.kind = INDEX_TENSOR, .tensor = ids};
    return index_get(whole, &item, 1, out);
}

Status learn_set_batch(LearnRun *run, Tensor *order, int64_t first, int64_t count) {
    for (size_t i = 0; i < run->code->batch_count; i++) {
        Tensor *part;
        TRY(rows_of(run->whole[i], order, first, count, &part));
        variable_set(run->frame, run->code->batches[i].variable, value_tensor(part));
    }
    return STATUS_OK;
}

// `epoch` and `step` count what has been done.
static void set_counts(LearnRun *run) {
    const LearnCode *code = run->code;
    if (code->epoch_name) variable_set(run->frame, code->epoch_name, value_int(run->done));
    if (code->step_name) variable_set(run->frame, code->step_name, value_int(run->steps_all));
}

// --- with an objective

// The body, then the objective's value.
static Value eval_objective(LearnRun *run) {
    set_counts(run);
    Value value = EVAL(run->frame, run->code->body);
    if (failed(value)) return value;
    value_release(value);
    return EVAL(run->frame, run->code->settings[SETTING_objective]);
}

Value learn_run_part(LearnRun *run, int64_t rows, double share, bool last) {
    TapeMark mark = tape_mark();
    run->in_part = true;
    Value loss = eval_objective(run);
    run->in_part = false;
    if (failed(loss)) return loss;
    Status status = learn_gather(run, loss, rows, share);
    if (status == STATUS_OK && last) status = learn_apply(run);
    value_release(loss);
    tape_release_since(mark);
    if (status == STATUS_OK) return value_none();
    Span span = run->code->settings[SETTING_objective]->span;
    // The search would gather parameters, of which the other ranks know nothing.
    bool searches = run->diverged != 0 && !run->sharded;
    return searches ? learn_fail_diverged(run, eval_objective, 0, span) : fail_at(span);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

// The batches of one step, from run->row on.
static Value run_step(LearnRun *run, Tensor *order) {
    ASSERT(run->batch_size > 0 && run->accumulate > 0 && run->row < run->rows);
    int64_t end = run->rows, step_rows;
    if (run->batch_size <= (run->rows - run->row) / run->accumulate)
        end = run->row + run->batch_size * run->accumulate;
    step_rows = end - run->row;
    ASSERT(step_rows > 0 && end <= run->rows);
    Value value = run->pieces > 0 ? learn_run_pieces(run, order, end) : value_none();
    int64_t begin = run->pieces > 0 ? end : run->row;
    for (int64_t first = begin; first < end && !failed(value); first += run->batch_size) {
        int64_t count = least(run->batch_size, end - first);
        run->random = random_mark();
        if (learn_set_batch(run, order, first, count) != STATUS_OK)
            return fail_at(run->code->head.span);
        value = learn_run_part(run, count, (double)count / (double)step_rows, first + count == end);
    }
    if (!failed(value)) run->row = end;
    return value;
}

// The order of the epoch's rows; in the middle of one, after a resume, that of its beginning.
static Status draw_order(LearnRun *run, Tensor **out) {
    RandomStream now = random_mark();
    if (run->row == 0) {
        run->shuffled_at = now;
        return shuffled(run, out);
    }
    random_return(run->shuffled_at);
    Status status = shuffled(run, out);
    random_return(now);
    return status;
}

static Value run_batches(LearnRun *run) {
    Tensor *order = NULL;
    if (run->shuffle && draw_order(run, &order) != STATUS_OK) return fail_at(run->code->head.span);
    Value value = value_none();
    while (run->row < run->rows && !failed(value)) {
        value = run_step(run, order);
        if (!failed(value)) run->safe = random_mark();
    }
    ASSERT(failed(value) || run->row == run->rows);
    tensor_release(order);
    return value;
}

// Ctrl-C ends the block at the last complete step; false for what else has failed.
static bool take_interrupt(LearnRun *run, Value value) {
    if (!failed(value) || !(interp_interrupts() & INTERRUPT_SIGNAL) ||
        run->frame->interp->exit_requested)
        return false;
    (void)runtime_take_interrupts(runtime_current, INTERRUPT_SIGNAL);
    error_clear();
    trace_clear(run->frame->interp);
    run->frame->control = CONTROL_NONE;
    run->interrupted = true;
    learn_drop_gathered(run);
    learn_drop_noted(run);
    return true;
}

static Value run_epoch(LearnRun *run) {
    CHECK_INTERRUPT(run->code->head.span);
    run->random = random_mark();
    Value value = value_none();
    if (run->batch_size > 0) {
        value = run_batches(run);
    } else if (run->row == 0) {
        value = learn_run_part(run, 1, 1, true);
        run->row = !failed(value);
        run->safe = random_mark();
    }
    if (failed(value)) return value;
    if (!learn_end_epoch(run)) return value_fail();
    run->safe = random_mark();
    if (run->save_every == 0 || run->done % run->save_every != 0) return value;
    return learn_save(run) == STATUS_OK ? value : fail_at(run->code->head.span);
}

Value learn_run_epochs(LearnRun *run) {
    run->safe = random_mark();
    while (run->done < run->epochs && !run->stop) {
        Value value = run_epoch(run);
        if (take_interrupt(run, value)) {
            random_return(run->safe);
            break;
        }
        if (failed(value)) return value;
    }
    return value_none();
}

// --- without one

static Value eval_body(LearnRun *run) {
    return EVAL(run->frame, run->code->body);
}

// Whether the failure is that of a loss that is not finite, from which nothing has come yet.
static bool has_diverged(const LearnRun *run, const Frame *frame, Value value) {
    return failed(value) && run->diverged != 0 && !run->found && frame->control == CONTROL_NONE &&
           error_current()->code == STATUS_VALUE;
}

Value learn_run_body(LearnRun *run) {
    set_counts(run);
    RandomStream random = run->random = random_mark();
    Value value = eval_body(run);
    if (has_diverged(run, run->frame, value)) {
        run->random = random;
        return learn_fail_diverged(run, eval_body, run->steps_all, error_current()->span);
    }
    if (take_interrupt(run, value)) return value_none();
    if (failed(value)) return value;
    value_release(value);
    return value_none();
}

Status learn_backward(Value loss) {
    LearnRun *run = learn_running();
    if (run->code->settings[SETTING_objective]) {
        (void)fail(STATUS_GRADIENT,
                   "this learn block has an objective: it goes backward by itself");
        return fail_help("leave out backward(...), or the objective");
    }
    if (run->searching) return learn_search_backward(run, loss);
    if (run->stop) return STATUS_OK;
    learn_drop_gathered(run);
    TRY(learn_gather(run, loss, 1, 1));
    TRY(learn_apply(run));
    bool ended = run->code->has_loop || learn_end_epoch(run);
    set_counts(run);
    if (ended) return STATUS_OK;
    Status status = error_current()->code;
    return status == STATUS_OK ? STATUS_INTERRUPT : status; // exit(n) in `validate`
}

typedef struct LoopBodyCode {
    Code head;
    const Code *body;
    bool epochs;
} LoopBodyCode;

static Value eval_body_again(LearnRun *run) {
    Value value = EVAL(run->again_frame, run->again_body->body);
    run->again_frame->control = CONTROL_NONE;
    return value;
}

// An iteration whose loss or gradient is not finite runs again where its variables are.
static Value eval_watched(Frame *frame, const LoopBodyCode *loop) {
    LearnRun *run = learn_running();
    int64_t steps = run->steps_all;
    RandomStream random = run->random = random_mark();
    Value value = EVAL(frame, loop->body);
    if (!has_diverged(run, frame, value)) return value;
    run->random = random;
    run->again_frame = frame;
    run->again_body = loop;
    return learn_fail_diverged(run, eval_body_again, run->steps_all - steps, error_current()->span);
}

// After an iteration of the loop over `epochs`, however it ended.
static Value end_iteration(LearnRun *run, Value value) {
    Frame *frame = run->frame;
    bool left = failed(value) && frame->control != CONTROL_CONTINUE;
    if (run->steps == 0 || (left && frame->control != CONTROL_BREAK)) return value;
    if (!learn_end_epoch(run)) {
        frame->control = CONTROL_NONE;
        value_release(value);
        return value_fail();
    }
    set_counts(run);
    if (!run->stop || left) return value;
    value_release(value);
    frame->control = CONTROL_BREAK;
    return value_fail();
}

static Value eval_loop_body(Frame *frame, const Code *code) {
    const LoopBodyCode *loop = (const LoopBodyCode *)code;
    LearnRun *run = learn_running();
    if (!run || run->code->settings[SETTING_objective] || run->searching)
        return EVAL(frame, loop->body);
    if (!loop->epochs) return eval_watched(frame, loop);
    TapeMark mark = tape_mark();
    Value value = end_iteration(run, eval_watched(frame, loop));
    tape_release_since(mark);
    return value;
}

const Code *lower_loop_body(Lowering *lowering, const Node *body, bool epochs) {
    bool steps = lowering->steps;
    lowering->steps = false;
    const Code *plain = lower(lowering, body);
    bool wanted = lowering->steps || lowering->in_learn || epochs;
    lowering->steps = lowering->steps || steps;
    if (!wanted) return plain;
    LoopBodyCode *code = LOWER_NEW(lowering, LoopBodyCode, eval_loop_body, body->span);
    code->body = plain;
    code->epochs = epochs;
    return &code->head;
}
