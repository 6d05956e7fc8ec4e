// Equations that go through an index in time: X[t+1, i] = f(X[t, i], U[t, i]) keeps every value as
// a row, H[i, *t+1] = f(H[i, *t], U[t, i]) only the last one.
#include <stdlib.h>

#include "equation/run.h"
#include "value/print.h"

typedef struct Loop {
    EquationRun *run;
    Named *whole;        // the terms with all values of the loop's index
    Value *history;      // what the left side was: the first values, then one for each step
    int64_t count, size; // size: of the loop's index
} Loop;

// What the left side is has its first rows where every value is kept.
static Status check_start(Loop *loop) {
    const Equation *plan = loop->run->plan;
    if (plan->loop.start < 0 || !plan->loop.kept) return STATUS_OK;
    Value start = loop->run->values[plan->loop.start];
    loop->run->at = plan->left[plan->loop.dim].span;
    if (start.kind != VALUE_TENSOR)
        return fail(STATUS_TYPE, "the first rows are those of a tensor, but this is %s",
                    value_shown(start).text);
    if ((size_t)start.as.tensor->view.rank == plan->left_count) return STATUS_OK;
    return fail(STATUS_SHAPE, "the first rows are those of a tensor of rank %zu, but this is %s",
                plan->left_count, tensor_type_name(start.as.tensor).text);
}

// How often the right side is evaluated.
static Status find_steps(Loop *loop) {
    const Equation *plan = loop->run->plan;
    int64_t size = loop->run->sizes.sizes[plan->loop.index];
    if (!size_is_known(size) && plan->loop.kept) {
        const Value *start = &loop->run->values[plan->loop.start];
        size = start->as.tensor->view.dims[plan->loop.dim] - plan->loop.offset;
    }
    loop->size = size;
    if (size_is_known(size)) return STATUS_OK;
    loop->run->at = plan->span;
    fail(STATUS_SHAPE, "nothing says how many steps index %s takes",
         plan->names[plan->loop.index].text);
    return fail_help("a tensor of the right side that has it, or the rows of the left side, do");
}

// The dimensions of the left side without those that a value of one step does not have.
static Shape state_shape(const EquationRun *run) {
    const Equation *plan = run->plan;
    Shape shape = {0};
    for (size_t i = 0; i < plan->left_count; i++)
        if (plan->left[i].kind == POSITION_INDEX && shape.rank < RANK_MAX)
            shape.dims[shape.rank++] = run->sizes.sizes[plan->left[i].index];
    return shape;
}

static Status zero_state(Loop *loop) {
    EquationRun *run = loop->run;
    TRY(require_sizes(run, run->plan->left_indexes));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = state_shape(run)};
    Tensor *zeros;
    TRY(op_with(OP_zeros, NULL, 0, &attributes, &zeros));
    loop->history[loop->count++] = value_tensor(zeros);
    return STATUS_OK;
}

// The first values: rows of what the left side is, or that itself.
static Status first_states(Loop *loop) {
    const EquationLoop *plan = &loop->run->plan->loop;
    if (plan->start < 0) return zero_state(loop);
    Value start = loop->run->values[plan->start];
    for (int i = 0; i < plan->rows; i++) {
        if (!plan->kept) {
            loop->history[loop->count++] = value_retain(start);
            continue;
        }
        Named rows = {.value = start, .count = start.as.tensor->view.rank}, row;
        for (int d = 0; d < rows.count; d++) rows.indexes[d] = d;
        TRY(named_select(&rows, plan->dim, i, &row));
        loop->history[loop->count++] = row.value;
    }
    return STATUS_OK;
}

// A term at the present step: a part of it, or an earlier value of the left side.
static Status step_term(Loop *loop, size_t t, Named *out) {
    EquationRun *run = loop->run;
    const EquationTerm *term = &run->plan->terms[t];
    int index = run->plan->loop.index;
    if (term->lag == 0) {
        if (named_has(&loop->whole[t], index))
            return named_select(&loop->whole[t], index, run->step, out);
        *out = loop->whole[t];
        value_retain(out->value);
        return STATUS_OK;
    }
    ASSERT(term->lag > 0 && term->lag <= loop->count);
    *out = (Named){.value = value_retain(loop->history[loop->count - term->lag])};
    for (size_t i = 0; i < term->count; i++) {
        const Position *position = &term->positions[i];
        if (position->kind == POSITION_INDEX) out->indexes[out->count++] = position->index;
        if (position->kind == POSITION_SUM) out->indexes[out->count++] = -1;
    }
    return place_term(run, term, out);
}

static Status check_state(Loop *loop, const Named *value) {
    ASSERT(loop->history[0].kind == VALUE_TENSOR && value->value.kind == VALUE_TENSOR);
    const Tensor *before = loop->history[0].as.tensor, *after = value->value.as.tensor;
    Shape first = tensor_shape(before), next = tensor_shape(after);
    bool same = first.rank == next.rank;
    for (int i = 0; i < first.rank && same; i++) same = first.dims[i] == next.dims[i];
    if (same) return STATUS_OK;
    loop->run->at = loop->run->plan->value->span;
    return fail(STATUS_SHAPE, "a step gives %s, but the value before the first is %s",
                tensor_type_name(after).text, tensor_type_name(before).text);
}

static Status take_step(Loop *loop) {
    EquationRun *run = loop->run;
    ASSERT(loop->count > 0);
    const Equation *plan = run->plan;
    Status status = STATUS_OK;
    Named terms[plan->term_count + 1], value = {.value = value_none()};
    run->terms = terms;
    for (size_t i = 0; i < plan->term_count; i++) terms[i] = (Named){.value = value_none()};
    for (size_t i = 0; i < plan->term_count && status == STATUS_OK; i++)
        status = step_term(loop, i, &terms[i]);
    if (status == STATUS_OK) status = tree_evaluate(run, plan->value, &value);
    for (size_t i = plan->term_count; i-- > 0;) named_release(&terms[i]);
    run->terms = loop->whole;
    Value state = value_none();
    if (status == STATUS_OK) {
        int order[RANK_MAX], count = 0;
        for (size_t i = 0; i < plan->left_count; i++)
            if (plan->left[i].kind == POSITION_INDEX && count < RANK_MAX)
                order[count++] = plan->left[i].index;
        status = named_arrange(&value, order, count, &state);
        Named arranged = {.value = state};
        if (status == STATUS_OK) status = check_state(loop, &arranged);
    }
    named_release(&value);
    if (status != STATUS_OK) {
        value_release(state);
        return status;
    }
    if (!plan->loop.kept) value_release(loop->history[--loop->count]);
    loop->history[loop->count++] = state;
    return STATUS_OK;
}

// All values as one tensor, or the last.
static Status collect(Loop *loop, Named *out) {
    const Equation *plan = loop->run->plan;
    ASSERT(loop->count > 0);
    *out = (Named){0};
    for (size_t i = 0; i < plan->left_count; i++) {
        if (plan->left[i].kind == POSITION_INDEX)
            out->indexes[out->count++] = plan->left[i].index;
        else if (plan->loop.kept)
            out->indexes[out->count++] = plan->loop.index;
    }
    if (!plan->loop.kept) {
        out->value = value_retain(loop->history[0]);
        return STATUS_OK;
    }
    OpInput *rows = memory_allocate((size_t)loop->count * sizeof *rows);
    for (int64_t i = 0; i < loop->count; i++) rows[i] = op_tensor(loop->history[i].as.tensor);
    Tensor *result = NULL;
    Status status = named_join(OP_stack, rows, (int)loop->count, plan->loop.dim, &result);
    free(rows);
    if (status == STATUS_OK) out->value = value_tensor(result);
    return status;
}

Status loop_evaluate(EquationRun *run, Named *out) {
    Loop loop = {.run = run, .whole = run->terms};
    TRY(check_start(&loop));
    TRY(find_steps(&loop));
    const EquationLoop *plan = &run->plan->loop;
    int64_t first = plan->rows - plan->offset, steps = loop.size > first ? loop.size - first : 0;
    loop.history = memory_allocate((size_t)(steps + plan->rows + 1) * sizeof *loop.history);
    Status status = first_states(&loop);
    for (run->step = first; run->step < loop.size && status == STATUS_OK; run->step++)
        status = take_step(&loop);
    if (status == STATUS_OK) status = collect(&loop, out);
    while (loop.count > 0) value_release(loop.history[--loop.count]);
    free(loop.history);
    return status;
}
