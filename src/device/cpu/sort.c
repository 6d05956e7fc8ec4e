// SORT: each row becomes keys, unsigned numbers in the order that is wanted, which are sorted
// together with their places: by digits when all are wanted, through a heap when only the first few
// are.
#include <string.h>

#include "device/cpu/convert.h"
#include "device/cpu/iterate.h"

enum {
    DIGIT_VALUES = 256,
    INSERTION_MAX = 48, // shorter rows are sorted by insertion
    HEAP_SHARE = 16,    // up to n / 16 wanted elements come through the heap
    KEY_CHUNK = 256,
    LOOK_ENTRIES = 1 << 20, // moved until one looks for an interrupt
};

typedef struct Entry {
    uint64_t key;
    int64_t place; // in the row
} Entry;

typedef struct Sort {
    const TensorView *in, *values, *places;
    int64_t length, wanted; // of a row
    int64_t rows, parts;
    bool descending;
    Entry *scratch; // two rows of entries per part
} Sort;

static bool entry_less(const Entry *a, const Entry *b) {
    return a->key != b->key ? a->key < b->key : a->place < b->place;
}

// --- keys ----------------------------------------------------------------------------------------

static uint64_t key_of_integer(int64_t value) {
    return (uint64_t)value ^ (uint64_t)1 << 63;
}

// Negative floats have all bits turned, the others the sign: then they order as unsigned numbers.
static uint64_t key_of_float(double value) {
    if (value == 0) value = 0; // -0.0 ties with 0.0
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static uint64_t key_of_float32(float value) {
    if (value == 0) value = 0;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 31 ? ~bits : bits | (uint32_t)1 << 31;
}

typedef union Numbers {
    int64_t integers[KEY_CHUNK];
    double doubles[KEY_CHUNK];
    float floats[KEY_CHUNK];
} Numbers;

// NaN gets the largest key in both orders; no other number has it.
#define MAKE_KEYS(numbers, T, key_of, mask)                                                        \
    do {                                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                      \
            T value = (numbers)[i];                                                                \
            uint64_t key = key_of(value);                                                          \
            keys[i] = value != value ? UINT64_MAX : (descending ? key ^ (mask) : key);             \
        }                                                                                          \
    } while (0)

static void make_keys(const TensorView *in, const char *from, int64_t count, bool descending,
                      uint64_t *keys) {
    CpuCompute compute = compute_of(in->dtype);
    int64_t step = in->rank > 0 ? in->strides[in->rank - 1] : 1;
    Numbers numbers;
    cpu_convert()->load[compute][in->dtype](&numbers, from, step, count);
    if (compute == COMPUTE_F32)
        MAKE_KEYS(numbers.floats, float, key_of_float32, UINT32_MAX);
    else if (compute == COMPUTE_F64)
        MAKE_KEYS(numbers.doubles, double, key_of_float, UINT64_MAX);
    else
        MAKE_KEYS(numbers.integers, int64_t, key_of_integer, UINT64_MAX);
}

// --- sorting -------------------------------------------------------------------------------------

static void sort_by_insertion(Entry *entries, int64_t count) {
    for (int64_t i = 1; i < count; i++) {
        Entry entry = entries[i];
        int64_t j = i;
        for (; j > 0 && entry_less(&entry, &entries[j - 1]); j--) entries[j] = entries[j - 1];
        entries[j] = entry;
    }
}

// Stable, from the lowest digit up; a digit that all keys share costs nothing more. Returns which
// of the two arrays holds the result.
static Entry *sort_by_digits(Entry *entries, Entry *other, int64_t count) {
    int64_t histogram[8][DIGIT_VALUES];
    memset(histogram, 0, sizeof histogram);
    for (int64_t i = 0; i < count; i++) {
        if (UNLIKELY(i % LOOK_ENTRIES == 0) && cpu_interrupted()) return entries;
        for (int digit = 0; digit < 8; digit++)
            histogram[digit][entries[i].key >> (8 * digit) & 0xFF]++;
    }
    for (int digit = 0; digit < 8; digit++) {
        int64_t *starts = histogram[digit];
        if (starts[entries[0].key >> (8 * digit) & 0xFF] == count) continue;
        int64_t start = 0;
        for (int value = 0; value < DIGIT_VALUES; value++) {
            int64_t here = starts[value];
            starts[value] = start;
            start += here;
        }
        for (int64_t i = 0; i < count; i++) {
            if (UNLIKELY(i % LOOK_ENTRIES == 0) && cpu_interrupted()) return entries;
            other[starts[entries[i].key >> (8 * digit) & 0xFF]++] = entries[i];
        }
        Entry *sorted = other;
        other = entries;
        entries = sorted;
    }
    return entries;
}

static Entry *sort_entries(Entry *entries, Entry *other, int64_t count) {
    if (count > INSERTION_MAX) return sort_by_digits(entries, other, count);
    sort_by_insertion(entries, count);
    return entries;
}

// --- the first few -------------------------------------------------------------------------------

// The heap has its last entry, in the wanted order, on top.
static void sift_down(Entry *heap, int64_t count, int64_t at) {
    Entry entry = heap[at];
    for (;;) {
        int64_t child = 2 * at + 1;
        if (child >= count) break;
        if (child + 1 < count && entry_less(&heap[child], &heap[child + 1])) child++;
        if (!entry_less(&entry, &heap[child])) break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = entry;
}

// Most elements lose against the top by their key alone, so they never become entries.
static void select_first(const Sort *sort, const char *from, Entry *heap) {
    int64_t stride = sort->in->strides[sort->in->rank - 1] * (int64_t)dtype_size(sort->in->dtype);
    int64_t kept = 0, wanted = sort->wanted;
    uint64_t keys[KEY_CHUNK];
    for (int64_t at = 0; at < sort->length && !cpu_interrupted(); at += KEY_CHUNK) {
        int64_t n = sort->length - at < KEY_CHUNK ? sort->length - at : KEY_CHUNK;
        make_keys(sort->in, from + at * stride, n, sort->descending, keys);
        int64_t i = 0;
        for (; i < n && kept < wanted; i++) {
            heap[kept++] = (Entry){keys[i], at + i};
            if (kept == wanted)
                for (int64_t node = wanted / 2 - 1; node >= 0; node--)
                    sift_down(heap, wanted, node);
        }
        for (; i < n; i++) {
            if (LIKELY(keys[i] >= heap[0].key)) continue;
            heap[0] = (Entry){keys[i], at + i};
            sift_down(heap, wanted, 0);
        }
    }
    // Ties were kept in any order of the heap; their places bring them back into the row's.
    for (int64_t end = wanted - 1; end > 0; end--) {
        Entry last = heap[0];
        heap[0] = heap[end];
        heap[end] = last;
        sift_down(heap, end, 0);
    }
}

// --- rows ----------------------------------------------------------------------------------------

static int64_t row_offset(const TensorView *view, int64_t row) {
    int64_t offset = 0;
    for (int d = view->rank - 2; d >= 0; d--) {
        offset += row % view->dims[d] * view->strides[d];
        row /= view->dims[d];
    }
    return offset * (int64_t)dtype_size(view->dtype);
}

#define COPY_VALUES(T)                                                                             \
    do {                                                                                           \
        T *target = (T *)(void *)to;                                                               \
        const T *source = (const T *)(const void *)from;                                           \
        for (int64_t i = 0; i < sort->wanted; i++)                                                 \
            target[i * to_step] = source[entries[i].place * from_step];                            \
    } while (0)

static void write_row(const Sort *sort, int64_t row, const char *from, const Entry *entries) {
    int last = sort->in->rank - 1;
    char *to = (char *)cpu_pointer(sort->values) + row_offset(sort->values, row);
    int64_t from_step = sort->in->strides[last], to_step = sort->values->strides[last];
    size_t size = dtype_size(sort->in->dtype);
    if (size == 1)
        COPY_VALUES(uint8_t);
    else if (size == 2)
        COPY_VALUES(uint16_t);
    else if (size == 4)
        COPY_VALUES(uint32_t);
    else
        COPY_VALUES(uint64_t);
    char *places = (char *)cpu_pointer(sort->places) + row_offset(sort->places, row);
    int64_t step = sort->places->strides[last];
    for (int64_t i = 0; i < sort->wanted; i++)
        ((int64_t *)(void *)places)[i * step] = entries[i].place;
}

static void sort_row(const Sort *sort, int64_t row, Entry *scratch) {
    const char *from = (const char *)cpu_pointer(sort->in) + row_offset(sort->in, row);
    if (sort->wanted <= sort->length / HEAP_SHARE) {
        select_first(sort, from, scratch);
        if (!cpu_interrupted()) write_row(sort, row, from, scratch);
        return;
    }
    int64_t stride = sort->in->strides[sort->in->rank - 1] * (int64_t)dtype_size(sort->in->dtype);
    uint64_t keys[KEY_CHUNK];
    for (int64_t at = 0; at < sort->length && !cpu_interrupted(); at += KEY_CHUNK) {
        int64_t n = sort->length - at < KEY_CHUNK ? sort->length - at : KEY_CHUNK;
        make_keys(sort->in, from + at * stride, n, sort->descending, keys);
        for (int64_t i = 0; i < n; i++) scratch[at + i] = (Entry){keys[i], at + i};
    }
    const Entry *sorted = sort_entries(scratch, scratch + sort->length, sort->length);
    if (!cpu_interrupted()) write_row(sort, row, from, sorted);
}

static void sort_parts(void *context, int64_t begin, int64_t end) {
    const Sort *sort = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t first = part * sort->rows / sort->parts;
        int64_t after = (part + 1) * sort->rows / sort->parts;
        for (int64_t row = first; row < after; row++)
            sort_row(sort, row, sort->scratch + part * 2 * sort->length);
    }
}

// A number of rank 0 is a row of one.
static TensorView as_row(const TensorView *view) {
    TensorView row = *view;
    if (row.rank == 0) {
        row.rank = 1;
        row.dims[0] = row.strides[0] = 1;
    }
    return row;
}

Status cpu_kernel_SORT(const KernelCall *call) {
    TensorView in = as_row(call->inputs[0].view);
    TensorView values = as_row(call->outputs[0]), places = as_row(call->outputs[1]);
    if (dtype_is_quant(in.dtype))
        return fail(STATUS_DTYPE, "%s cannot read %s", call->op_name, dtype_name(in.dtype));
    Sort sort = {.in = &in,
                 .values = &values,
                 .places = &places,
                 .length = in.dims[in.rank - 1],
                 .wanted = call->options.count,
                 .descending = call->options.flag};
    int64_t total = view_count(&in);
    if (total == 0 || sort.wanted == 0) return STATUS_OK;
    sort.rows = total / sort.length;
    int64_t parts = total / 4096 + 1, threads = cpu_thread_count();
    if (parts > threads) parts = threads;
    sort.parts = parts < sort.rows ? parts : sort.rows;
    // The scratch is as large as the rows, so it comes from where tensors come from.
    Buffer *scratch;
    TRY(buffer_new(call->outputs[0]->buffer->device,
                   (size_t)(2 * sort.parts * sort.length) * sizeof(Entry), NULL, &scratch));
    sort.scratch = scratch->handle;
    if (!cpu_is_foretold(call->outputs[0])) cpu_parallel(sort.parts, 1, sort_parts, &sort);
    buffer_release(scratch);
    return STATUS_OK;
}
