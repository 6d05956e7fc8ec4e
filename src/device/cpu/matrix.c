// Matrices of stored numbers: their parts, and the numbers of the compute type that they hold.
// Knows no tensor views.
#include "device/cpu/matrix.h"

#include "device/cpu/quant.h"

static int64_t magnitude(int64_t stride) {
    return stride < 0 ? -stride : stride;
}

Matrix matrix_transpose(Matrix matrix) {
    return (Matrix){matrix.dtype, matrix.data,          matrix.columns,
                    matrix.rows,  matrix.column_stride, matrix.row_stride};
}

// The address of an element; strides of quantised types count elements of whole blocks.
static const char *matrix_at(const Matrix *matrix, int64_t row, int64_t column) {
    const DTypeInfo *info = &dtype_info[matrix->dtype];
    int64_t elements = row * matrix->row_stride + column * matrix->column_stride;
    return matrix->data + elements / info->block_elements * info->block_bytes;
}

Matrix matrix_part(Matrix matrix, int64_t row, int64_t column, int64_t rows, int64_t columns) {
    matrix.data = matrix_at(&matrix, row, column);
    matrix.rows = rows;
    matrix.columns = columns;
    return matrix;
}

void matrix_load(const Matrix *matrix, CpuCompute compute, int64_t begin, int64_t end, void *out) {
    ConvertLoad load = cpu_convert()->load[compute][matrix->dtype];
    size_t bytes = (size_t)matrix->columns * compute_bytes(compute);
    for (int64_t row = begin; row < end; row++) {
        const char *source = matrix_at(matrix, row, 0);
        char *target = (char *)out + (size_t)(row - begin) * bytes;
        if (dtype_is_quant(matrix->dtype))
            quant_dequantize(matrix->dtype, source, (float *)(void *)target, matrix->columns);
        else
            load(target, source, matrix->column_stride, matrix->columns);
    }
}

bool matrix_runs_down(const Matrix *matrix) {
    if (matrix->column_stride == 1) return false;
    return matrix->row_stride == 1 ||
           magnitude(matrix->row_stride) < magnitude(matrix->column_stride);
}

Matrix matrix_prepare(const Matrix *matrix, CpuCompute compute, void *scratch) {
    bool plain = matrix->row_stride == 1 || matrix->column_stride == 1;
    if (matrix->dtype == compute_dtype(compute) && plain) return *matrix;
    bool down = matrix_runs_down(matrix);
    Matrix source = down ? matrix_transpose(*matrix) : *matrix;
    matrix_load(&source, compute, 0, source.rows, scratch);
    Matrix packed = {compute_dtype(compute), scratch,        source.rows,
                     source.columns,         source.columns, 1};
    return down ? matrix_transpose(packed) : packed;
}
