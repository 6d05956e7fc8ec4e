// Runs a kernel row by row: straight over the views, or over bands of neighbouring rows that are
// transposed in scratch memory first. Knows no kernel.
#include "device/cpu/rows.h"

#include <stdlib.h>

#include "device/cpu/scratch.h"
#include "device/cpu/transpose.h"

enum {
    LINE_BYTES = 64,      // of a cache line: a band is as wide
    BAND_ROWS_MIN = 4,    // fewer are not worth transposing
    BAND_BYTES = 8 << 20, // of scratch memory
    PADDING = 64,         // bytes between transposed rows, so that they do not share cache sets
};

typedef struct Bands {
    const RowsJob *job;
    Row in, out;                 // of a transposed row: contiguous elements
    int64_t rows;                // of a band
    int64_t per_line;            // bands in the last dim of the rows
    int64_t in_pitch, out_pitch; // from one transposed row to the next, in bytes
} Bands;

static void make_straight(void *context, int64_t begin, int64_t end) {
    const RowsJob *job = context;
    for (int64_t row = begin; row < end; row++)
        job->make(job->context, &job->in, job->rows.pointers[1] + rows_offset(&job->rows, 1, row),
                  &job->out, job->rows.pointers[0] + rows_offset(&job->rows, 0, row));
}

// A whole matrix, tile by tile.
static void transpose(int64_t size, TransposeTile matrix) {
    for (int64_t row = 0; row < matrix.rows; row += TRANSPOSE_SIDE_MAX) {
        for (int64_t column = 0; column < matrix.columns; column += TRANSPOSE_SIDE_MAX) {
            TransposeTile tile = matrix;
            tile.rows = matrix.rows - row;
            tile.columns = matrix.columns - column;
            if (tile.rows > TRANSPOSE_SIDE_MAX) tile.rows = TRANSPOSE_SIDE_MAX;
            if (tile.columns > TRANSPOSE_SIDE_MAX) tile.columns = TRANSPOSE_SIDE_MAX;
            tile.to += row * tile.to_stride + column * size;
            tile.from += row * size + column * tile.from_stride;
            CPU_CHOOSE(transpose_tile)((size_t)size, &tile);
        }
    }
}

static void make_bands(void *context, int64_t begin, int64_t end) {
    const Bands *bands = context;
    const RowsJob *job = bands->job;
    const Iteration *rows = &job->rows;
    char *in = scratch_take((size_t)(bands->rows * (bands->in_pitch + bands->out_pitch)));
    char *out = in + bands->rows * bands->in_pitch;
    for (int64_t number = begin; number < end; number++) {
        int64_t first = number % bands->per_line * bands->rows, left = rows->count - first;
        int64_t count = left < bands->rows ? left : bands->rows;
        int64_t index = number / bands->per_line * rows->count + first;
        const char *from = rows->pointers[1] + rows_offset(rows, 1, index);
        char *to = rows->pointers[0] + rows_offset(rows, 0, index);
        transpose(job->in.size,
                  (TransposeTile){in, from, bands->in_pitch, job->in.strides[0] * job->in.size,
                                  count, job->in.count});
        for (int64_t k = 0; k < count; k++) {
            char *result = job->reduces ? to + k * rows->walk.strides[0][rows->walk.rank - 1]
                                        : out + k * bands->out_pitch;
            job->make(job->context, &bands->in, in + k * bands->in_pitch, &bands->out, result);
        }
        if (!job->reduces)
            transpose(job->out.size, (TransposeTile){to, out, job->out.strides[0] * job->out.size,
                                                     bands->out_pitch, job->out.count, count});
    }
    scratch_give(in);
}

// Neighbouring rows are neighbouring elements in view `v`.
static bool is_side_by_side(const RowsJob *job, int v, const Row *row) {
    return row->rank == 1 && job->rows.walk.strides[v][job->rows.walk.rank - 1] == row->size &&
           llabs(row->strides[0]) > 1;
}

static Row transposed(const Row *row) {
    Row flat = *row;
    flat.strides[0] = 1;
    flat.direct = row->native;
    return flat;
}

void rows_make(const RowsJob *job, int64_t task_elements) {
    int64_t rows = job->rows.rows * job->rows.count, n = job->in.count;
    Bands bands = {.job = job, .in = transposed(&job->in), .rows = LINE_BYTES / job->in.size};
    bands.in_pitch = n * job->in.size + PADDING;
    if (!job->reduces) {
        bands.out = transposed(&job->out);
        bands.out_pitch = n * job->out.size + PADDING;
    }
    int64_t rows_max = BAND_BYTES / (bands.in_pitch + bands.out_pitch);
    if (bands.rows > rows_max) bands.rows = rows_max;
    bool near =
        is_side_by_side(job, 1, &job->in) && (job->reduces || is_side_by_side(job, 0, &job->out));
    if (!near || bands.rows < BAND_ROWS_MIN || job->rows.count < BAND_ROWS_MIN) {
        cpu_parallel(rows, n > 0 ? task_elements / n + 1 : task_elements, make_straight,
                     (void *)job);
        return;
    }
    bands.per_line = (job->rows.count + bands.rows - 1) / bands.rows;
    cpu_parallel(job->rows.rows * bands.per_line, task_elements / (n * bands.rows) + 1, make_bands,
                 &bands);
}

Status rows_make_last(RowsJob *job, const KernelCall *call, CpuCompute compute,
                      int64_t task_elements) {
    const TensorView *in = call->inputs[0].view, *out = call->outputs[0];
    int leading = in->rank > 0 ? in->rank - 1 : 0;
    TRY(row_prepare(in, in->rank - leading, compute, call->op_name, &job->in));
    TRY(row_prepare(out, in->rank - leading, compute, call->op_name, &job->out));
    rows_prepare(&job->rows, 2, (const TensorView *const[]){out, in}, leading);
    rows_make(job, task_elements);
    return STATUS_OK;
}

double row_fold(const FoldTable *folds, Fold fold, const Row *in, const char *from,
                double parameter) {
    double buffer[ROW_PIECE];
    Wide state = folds->identity[fold];
    for (int64_t first = 0; first < in->count; first += ROW_PIECE) {
        int64_t left = in->count - first, count = left < ROW_PIECE ? left : ROW_PIECE;
        const void *numbers = row_read(in, from, first, count, buffer);
        folds->row[fold](&state, numbers, count, (Wide){.f = parameter});
    }
    return state.f;
}
