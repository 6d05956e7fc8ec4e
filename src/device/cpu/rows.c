// Runs a kernel row by row: straight over the views, or over bands of neighbouring rows that are
// turned in scratch memory first. Knows no kernel.
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/row.h"
#include "device/cpu/rows.h"

enum {
    BAND_ROWS = 16,       // as many as a cache line has float32 numbers
    BAND_ROWS_MIN = 4,    // fewer are not worth turning
    BAND_BYTES = 2 << 20, // of scratch memory
    PADDING = 16,         // numbers between turned rows, so that they do not share cache sets
};

typedef struct Bands {
    const RowsJob *job;
    Row flat;            // a turned row: contiguous numbers of the compute type
    int64_t rows, pitch; // of a band; from row to row, in bytes
    int64_t per_line;    // bands in the last dim of the rows
} Bands;

static void make_straight(void *context, int64_t begin, int64_t end) {
    const RowsJob *job = context;
    for (int64_t row = begin; row < end; row++)
        job->make(job->context, &job->in, job->rows.pointers[1] + rows_offset(&job->rows, 1, row),
                  &job->out, job->rows.pointers[0] + rows_offset(&job->rows, 0, row));
}

// Between the stored rows of a band, one element of each at a time, and the turned rows.
static void turn_in(const Bands *bands, const char *from, int64_t rows, char *turned) {
    const RowsJob *job = bands->job;
    int64_t step = job->rows.walk.strides[1][job->rows.walk.rank - 1] / job->in.size;
    int64_t size = job->in.number_size;
    char numbers[BAND_ROWS * sizeof(double)];
    for (int64_t i = 0; i < job->in.count; i++) {
        job->in.load(numbers, from + i * job->in.strides[0] * job->in.size, step, rows);
        char *to = turned + i * size;
        for (int64_t k = 0; k < rows; k++)
            memcpy(to + k * bands->pitch, numbers + k * size, (size_t)size);
    }
}

static void turn_out(const Bands *bands, const char *turned, int64_t rows, char *to) {
    const RowsJob *job = bands->job;
    int64_t step = job->rows.walk.strides[0][job->rows.walk.rank - 1] / job->out.size;
    int64_t size = job->out.number_size;
    char numbers[BAND_ROWS * sizeof(double)];
    for (int64_t i = 0; i < job->out.count; i++) {
        for (int64_t k = 0; k < rows; k++)
            memcpy(numbers + k * size, turned + i * size + k * bands->pitch, (size_t)size);
        job->out.store(to + i * job->out.strides[0] * job->out.size, step, numbers, rows);
    }
}

static void make_bands(void *context, int64_t begin, int64_t end) {
    const Bands *bands = context;
    const RowsJob *job = bands->job;
    const Iteration *rows = &job->rows;
    char *turned = memory_allocate((size_t)(bands->rows * bands->pitch));
    for (int64_t number = begin; number < end; number++) {
        int64_t first = number % bands->per_line * bands->rows, left = rows->count - first;
        int64_t count = left < bands->rows ? left : bands->rows;
        int64_t index = number / bands->per_line * rows->count + first;
        char *to = rows->pointers[0] + rows_offset(rows, 0, index);
        turn_in(bands, rows->pointers[1] + rows_offset(rows, 1, index), count, turned);
        for (int64_t k = 0; k < count; k++) {
            char *row = turned + k * bands->pitch;
            char *result = job->reduces ? to + k * rows->walk.strides[0][rows->walk.rank - 1] : row;
            job->make(job->context, &bands->flat, row, &bands->flat, result);
        }
        if (!job->reduces) turn_out(bands, turned, count, to);
    }
    free(turned);
}

static bool is_side_by_side(const RowsJob *job) {
    int last = job->rows.walk.rank - 1;
    if (job->in.rank > 1 || (!job->reduces && job->out.rank > 1)) return false;
    return job->rows.count >= BAND_ROWS_MIN && job->in.count > 1 &&
           llabs(job->rows.walk.strides[1][last]) < llabs(job->in.strides[0] * job->in.size);
}

void rows_make(const RowsJob *job, int64_t task_elements) {
    int64_t rows = job->rows.rows * job->rows.count, n = job->in.count;
    Bands bands = {.job = job, .pitch = (n + PADDING) * job->in.number_size};
    bands.rows = BAND_BYTES / bands.pitch < BAND_ROWS ? BAND_BYTES / bands.pitch : BAND_ROWS;
    if (!is_side_by_side(job) || bands.rows < BAND_ROWS_MIN) {
        cpu_parallel(rows, n > 0 ? task_elements / n + 1 : task_elements, make_straight,
                     (void *)job);
        return;
    }
    bands.flat = job->in;
    bands.flat.dims[0] = n;
    bands.flat.strides[0] = 1;
    bands.flat.size = job->in.number_size;
    bands.flat.direct = true;
    bands.per_line = (job->rows.count + bands.rows - 1) / bands.rows;
    cpu_parallel(job->rows.rows * bands.per_line, task_elements / (n * bands.rows) + 1, make_bands,
                 &bands);
}
