// Parameters that a learn block keeps next to those it moves: the best so far, and running
// averages.
#include <stdlib.h>

#include "base/memory.h"
#include "learn/learn.h"
#include "tensor/compose.h"
#include "tensor/join.h"
#include "tensor/parameter.h"

// A place for each parameter that is trained; new ones are NULL.
static void grow(Tensor ***contents, size_t *count, size_t wanted) {
    ASSERT(*count <= wanted);
    *contents = memory_resize(*contents, (wanted + 1) * sizeof **contents);
    while (*count < wanted) (*contents)[(*count)++] = NULL;
}

static Status copy_contents(Tensor *from, Tensor **copy) {
    if (*copy) return op_copy(from, *copy);
    return tensor_clone(from, copy);
}

Status learn_keep_best(LearnRun *run) {
    grow(&run->best_contents, &run->best_count, run->trained.count);
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < run->trained.count && status == STATUS_OK; i++) {
        Tensor *now = i < run->average_count ? run->averages[i] : run->trained.items[i];
        status = copy_contents(now, &run->best_contents[i]);
    }
    tape_set_enabled(enabled);
    return status;
}

// They begin with what the parameters are before their first step.
Status learn_begin_averages(LearnRun *run) {
    if (run->ema == 0 || run->average_count == run->trained.count) return STATUS_OK;
    grow(&run->averages, &run->average_count, run->trained.count);
    for (size_t i = 0; i < run->trained.count; i++) {
        Tensor *parameter = run->trained.items[i];
        SCOPED_TENSOR(wide);
        if (run->averages[i]) continue;
        bool is_double = tensor_dtype(parameter) == DTYPE_FLOAT64;
        TRY(tensor_cast(parameter, is_double ? DTYPE_FLOAT64 : DTYPE_FLOAT32, &wide));
        TRY(tensor_clone(wide, &run->averages[i]));
    }
    return STATUS_OK;
}

// average + (1 - ema) * (parameter - average)
static Status average_one(const LearnRun *run, Tensor *parameter, Tensor **average) {
    SCOPED_TENSOR(change);
    SCOPED_TENSOR(part);
    SCOPED_TENSOR(next);
    TRY(op_binary(OP_sub, op_tensor(parameter), op_tensor(*average), &change));
    TRY(compose_with_number(OP_mul, change, 1 - run->ema, &part));
    TRY(op_binary(OP_add, op_tensor(*average), op_tensor(part), &next));
    tensor_release(*average);
    return compose_give(&next, average);
}

Status learn_average(LearnRun *run) {
    ASSERT(run->average_count <= run->trained.count);
    bool enabled = tape_set_enabled(false);
    Status status = STATUS_OK;
    for (size_t i = 0; i < run->average_count && status == STATUS_OK; i++)
        status = average_one(run, run->trained.items[i], &run->averages[i]);
    tape_set_enabled(enabled);
    return status;
}

Status learn_show_averages(LearnRun *run, TensorArray *before) {
    ASSERT(run->average_count <= run->trained.count);
    *before = (TensorArray){memory_allocate((run->average_count + 1) * sizeof(Tensor *)), 0};
    for (size_t i = 0; i < run->average_count; i++) {
        TRY(tape_detach(run->trained.items[i], &before->items[i]));
        before->count++;
        TRY(tape_parameter_assign(run->trained.items[i], run->averages[i]));
    }
    return STATUS_OK;
}

void learn_hide_averages(LearnRun *run, TensorArray *before) {
    ASSERT(before->count <= run->average_count);
    for (size_t i = 0; i < before->count; i++) {
        Status status = tape_parameter_assign(run->trained.items[i], before->items[i]);
        ASSERT(status == STATUS_OK); // its own contents, as they were
    }
    tensor_array_release(before);
}

static Status assign_all(LearnRun *run, Tensor **contents, size_t count) {
    ASSERT(count <= run->trained.count);
    for (size_t i = 0; i < count; i++)
        if (contents[i]) TRY(tape_parameter_assign(run->trained.items[i], contents[i]));
    return STATUS_OK;
}

Status learn_finish(LearnRun *run) {
    if (run->patience > 0 && !run->interrupted && run->best_count > 0)
        return assign_all(run, run->best_contents, run->best_count);
    return assign_all(run, run->averages, run->average_count);
}

static void release_all(Tensor **contents, size_t count) {
    while (count > 0) tensor_release(contents[--count]);
    free(contents);
}

void learn_forget(LearnRun *run) {
    release_all(run->best_contents, run->best_count);
    release_all(run->averages, run->average_count);
    tensor_array_release(&run->trained);
    learn_drop_gathered(run);
}
