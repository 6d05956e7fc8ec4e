// The LINEAR_ATTENTION kernel: a part makes some columns of one head, from the first row to the
// last.
#include "device/cpu/linear_attention.h"

#include <string.h>

#include "device/cpu/scratch.h"

enum { TASK_NUMBERS = 1 << 16 }; // of states, rows after rows, that a thread is worth

typedef struct Linear {
    const TensorView *q, *k, *v, *decay, *state, *beta, *out;
    int64_t rows, heads, keys, values, blocks;
    size_t size; // of a number
    LinearStep step;
} Linear;

// Numbers that lie `step` apart, one after the other.
static void gather_numbers(size_t size, char *to, const char *from, int64_t step, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        memcpy(to + i * (int64_t)size, from + i * step * (int64_t)size, size);
}

// `count` numbers of a head's row from `first` on.
typedef struct Part {
    int64_t row, head, first, count;
} Part;

static const char *part_at(const TensorView *view, const Part *part) {
    return cpu_at(view, part->row * view->strides[0] + part->head * view->strides[1] +
                            part->first * view->strides[2]);
}

// In place where they lie one after the other.
static const void *numbers_of(const TensorView *view, Part part, char *room) {
    const char *from = part_at(view, &part);
    if (view->strides[2] == 1) return from;
    gather_numbers(dtype_size(view->dtype), room, from, view->strides[2], part.count);
    return room;
}

// Between the state, whose row i is key i, and a block [keys, LINEAR_COLUMNS].
static void read_block(const Linear *linear, int64_t head, int64_t first, int64_t columns,
                       char *block) {
    const TensorView *state = linear->state;
    memset(block, 0, (size_t)linear->keys * LINEAR_COLUMNS * linear->size);
    for (int64_t i = 0; i < linear->keys; i++)
        gather_numbers(linear->size, block + (size_t)i * LINEAR_COLUMNS * linear->size,
                       part_at(state, &(Part){i, head, first, columns}), state->strides[2],
                       columns);
}

static char *place_in_result(const Linear *linear, int64_t row, int64_t head, int64_t first) {
    return cpu_at(linear->out, (row * linear->heads + head) * linear->values + first);
}

static void run_block(const Linear *linear, int64_t head, int64_t first, char *scratch) {
    size_t size = linear->size;
    int64_t keys = linear->keys, left = linear->values - first;
    char *block = scratch, *q = block + (size_t)keys * LINEAR_COLUMNS * size,
         *k = q + (size_t)keys * size, *decay = k + (size_t)keys * size,
         *v = decay + (size_t)keys * size;
    LinearRow row = {
        .keys = keys, .columns = left < LINEAR_COLUMNS ? left : LINEAR_COLUMNS, .state = block};
    read_block(linear, head, first, row.columns, block);
    for (int64_t i = 0; i < linear->rows; i++) {
        row.q = numbers_of(linear->q, (Part){i, head, 0, keys}, q);
        row.k = numbers_of(linear->k, (Part){i, head, 0, keys}, k);
        row.decay = numbers_of(linear->decay, (Part){i, head, 0, keys}, decay);
        row.v = numbers_of(linear->v, (Part){i, head, first, row.columns}, v);
        if (linear->beta)
            row.beta = cpu_at(linear->beta,
                              i * linear->beta->strides[0] + head * linear->beta->strides[1]);
        row.out = place_in_result(linear, i, head, first);
        linear->step(&row);
    }
    for (int64_t i = 0; i < keys; i++)
        memcpy(place_in_result(linear, linear->rows + i, head, first),
               block + (size_t)i * LINEAR_COLUMNS * size, (size_t)row.columns * size);
}

static void run_blocks(void *context, int64_t begin, int64_t end) {
    const Linear *linear = context;
    size_t numbers = (size_t)linear->keys * (LINEAR_COLUMNS + 3) + LINEAR_COLUMNS;
    char *scratch = scratch_take(numbers * linear->size);
    for (int64_t i = begin; i < end; i++)
        run_block(linear, i / linear->blocks, i % linear->blocks * LINEAR_COLUMNS, scratch);
    scratch_give(scratch);
}

Status cpu_kernel_LINEAR_ATTENTION(const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].view->dtype != out->dtype || !dtype_is_float(out->dtype) ||
            dtype_size(out->dtype) < sizeof(float))
            return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s giving %s", call->op_name,
                        dtype_name(call->inputs[i].view->dtype), dtype_name(out->dtype));
    Linear linear = {.q = call->inputs[0].view,
                     .k = call->inputs[1].view,
                     .v = call->inputs[2].view,
                     .decay = call->inputs[3].view,
                     .state = call->inputs[4].view,
                     .beta = call->n_inputs == 6 ? call->inputs[5].view : NULL,
                     .out = out,
                     .size = dtype_size(out->dtype),
                     .step = CPU_CHOOSE(linear_attention_step)(out->dtype == DTYPE_FLOAT64)};
    linear.rows = linear.q->dims[0];
    linear.heads = linear.q->dims[1];
    linear.keys = linear.q->dims[2];
    linear.values = linear.v->dims[2];
    linear.blocks = (linear.values + LINEAR_COLUMNS - 1) / LINEAR_COLUMNS;
    ASSERT(out->rank == 3 && out->dims[0] == linear.rows + linear.keys);
    int64_t each = (linear.rows + 1) * linear.keys * LINEAR_COLUMNS;
    cpu_parallel(linear.heads * linear.blocks, TASK_NUMBERS / (each + 1) + 1, run_blocks, &linear);
    return STATUS_OK;
}
