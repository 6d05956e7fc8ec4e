// INDEX_PUT and NONZERO: elements chosen by whether something is true.
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/cast.h"
#include "device/cpu/iterate.h"

typedef struct Put {
    CastRow cast;
    size_t size;
    unsigned char value[8]; // when there is no source view
} Put;

#define PUT_LOOP(T)                                                                                \
    do {                                                                                           \
        const T *source = numbers;                                                                 \
        for (int64_t i = 0; i < count; i++)                                                        \
            if (mask[i * mask_stride]) *(T *)(void *)(to + i * to_stride) = source[i];             \
    } while (0)

typedef struct PutTarget {
    char *to;
    int64_t to_stride;
    const char *mask;
    int64_t mask_stride;
} PutTarget;

static void put_chosen(size_t size, PutTarget target, const void *numbers, int64_t count) {
    char *to = target.to;
    const char *mask = target.mask;
    int64_t to_stride = target.to_stride, mask_stride = target.mask_stride;
    if (size == 1)
        PUT_LOOP(uint8_t);
    else if (size == 2)
        PUT_LOOP(uint16_t);
    else if (size == 4)
        PUT_LOOP(uint32_t);
    else
        PUT_LOOP(uint64_t);
}

// Views: out, mask, source (NULL: the value).
static void put_row(void *context, char *const *pointers, const int64_t *strides, int64_t count) {
    const Put *put = context;
    uint64_t numbers[CAST_CHUNK];
    int64_t size = (int64_t)put->size;
    if (!pointers[2]) fill_row(put->size, (char *)numbers, size, put->value, CAST_CHUNK);
    for (int64_t at = 0; at < count; at += CAST_CHUNK) {
        int64_t n = count - at < CAST_CHUNK ? count - at : CAST_CHUNK;
        PutTarget target = {pointers[0] + at * strides[0], strides[0],
                            pointers[1] + at * strides[1], strides[1]};
        if (pointers[2])
            cast_row(put->cast,
                     &(RowCopy){numbers, size, pointers[2] + at * strides[2], strides[2], n});
        put_chosen(put->size, target, numbers, n);
    }
}

Status cpu_kernel_INDEX_PUT(const KernelCall *call) {
    const TensorView *out = call->outputs[0], *source = call->inputs[0].view;
    if (dtype_is_quant(out->dtype) || (source && dtype_is_quant(source->dtype)))
        return fail(STATUS_DTYPE, "%s cannot write quantised numbers", call->op_name);
    Put put = {.size = dtype_size(out->dtype)};
    TensorView mask, values;
    view_broadcast(call->inputs[1].view, out, &mask);
    const TensorView *views[] = {out, &mask, NULL};
    if (source) {
        view_broadcast(source, out, &values);
        views[2] = &values;
        put.cast = (CastRow){source->dtype, out->dtype};
    } else {
        cast_scalar(&call->inputs[0].scalar, out->dtype, put.value);
    }
    Iteration iteration;
    iterate_prepare(&iteration, 3, views);
    iterate_run(&iteration, put_row, &put);
    return STATUS_OK;
}

// --- nonzero -------------------------------------------------------------------------------------

// Two passes over ranges of row-major positions: how many each holds, then where they are.
enum { RANGE_ELEMENTS = 65536 };

typedef struct Nonzero {
    const TensorView *in, *out;
    int64_t total;
    int64_t row_length, stride; // elements that lie evenly, and how far apart in bytes
    int64_t *first;             // per range: its first row of the output; before that its count
} Nonzero;

// Which of `count` elements from a row-major position on are true. They lie in one row.
static void read_truth(const Nonzero *nonzero, int64_t position, int64_t count, uint8_t *boolean) {
    const TensorView *in = nonzero->in;
    int64_t place = 0;
    for (int d = in->rank - 1; d >= 0; d--) {
        place += position % in->dims[d] * in->strides[d];
        position /= in->dims[d];
    }
    const char *from = cpu_pointer(in);
    CastRow cast = {in->dtype, DTYPE_BOOL};
    from += place * (int64_t)dtype_size(in->dtype);
    cast_row(cast, &(RowCopy){boolean, 1, from, nonzero->stride, count});
}

static void write_position(const Nonzero *nonzero, int64_t row, int64_t position) {
    const TensorView *in = nonzero->in, *out = nonzero->out;
    int64_t *target = (int64_t *)cpu_pointer(out) + row * out->strides[0];
    for (int d = in->rank - 1; d > 0; d--) {
        target[d * out->strides[1]] = position % in->dims[d];
        position /= in->dims[d];
    }
    target[0] = position;
}

// Returns how many there are in a range; writes them when `row` is not negative. Which come is as
// good as random: nothing branches on it.
static int64_t scan_range(const Nonzero *nonzero, int64_t range, int64_t row) {
    int64_t at = range * RANGE_ELEMENTS, end = at + RANGE_ELEMENTS, found = 0;
    if (end > nonzero->total) end = nonzero->total;
    uint8_t boolean[CAST_CHUNK];
    int64_t positions[CAST_CHUNK];
    while (at < end) {
        int64_t count = nonzero->row_length - at % nonzero->row_length, here = 0;
        if (count > CAST_CHUNK) count = CAST_CHUNK;
        if (count > end - at) count = end - at;
        read_truth(nonzero, at, count, boolean);
        if (row < 0) {
            for (int64_t i = 0; i < count; i++) here += boolean[i];
        } else {
            for (int64_t i = 0; i < count; i++) {
                positions[here] = at + i;
                here += boolean[i];
            }
            for (int64_t i = 0; i < here; i++)
                write_position(nonzero, row + found + i, positions[i]);
        }
        found += here;
        at += count;
    }
    return found;
}

static void count_ranges(void *context, int64_t begin, int64_t end) {
    const Nonzero *nonzero = context;
    for (int64_t range = begin; range < end; range++)
        nonzero->first[range] = scan_range(nonzero, range, -1);
}

static void write_ranges(void *context, int64_t begin, int64_t end) {
    const Nonzero *nonzero = context;
    for (int64_t range = begin; range < end; range++)
        scan_range(nonzero, range, nonzero->first[range]);
}

Status cpu_kernel_NONZERO(const KernelCall *call) {
    Nonzero nonzero = {.in = call->inputs[0].view, .out = call->outputs[0]};
    if (dtype_is_quant(nonzero.in->dtype))
        return fail(STATUS_DTYPE, "%s cannot read %s", call->op_name,
                    dtype_name(nonzero.in->dtype));
    const TensorView *in = nonzero.in;
    nonzero.total = view_count(in);
    bool even = view_is_contiguous(in);
    nonzero.row_length = even ? nonzero.total : in->dims[in->rank - 1];
    nonzero.stride = (even ? 1 : in->strides[in->rank - 1]) * (int64_t)dtype_size(in->dtype);
    int64_t ranges = (nonzero.total + RANGE_ELEMENTS - 1) / RANGE_ELEMENTS;
    nonzero.first = memory_allocate_zeroed((size_t)ranges, sizeof(int64_t));
    cpu_parallel(ranges, 1, count_ranges, &nonzero);
    int64_t row = 0;
    for (int64_t range = 0; range < ranges; range++) {
        int64_t count = nonzero.first[range];
        nonzero.first[range] = row;
        row += count;
    }
    if (!cpu_interrupted()) {
        ASSERT(row == nonzero.out->dims[0]); // counted by the caller
        if (nonzero.in->rank > 0) cpu_parallel(ranges, 1, write_ranges, &nonzero);
    }
    free(nonzero.first);
    return STATUS_OK;
}
