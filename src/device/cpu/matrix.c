// Matrices of stored numbers, and their product in bounded pieces: panels are converted to the
// compute type, multiplied by BLAS (integers by simd/), and the result is converted once. Knows no
// tensor views.
#include "device/cpu/matrix.h"

#include <cblas.h>
#include <limits.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/cpu/quant.h"

// Panels of a blocked product: large enough that BLAS runs at full speed and small enough that the
// scratch of one product stays below 40 MB whatever the operands are.
enum { PANEL_ROWS = 1024, PANEL_COLUMNS = 1024, PANEL_DEPTH = 4096 };

static int64_t minimum(int64_t a, int64_t b) {
    return a < b ? a : b;
}

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

// A stride along a dimension of one element is never used, so that any value of it does.
static bool suits_blas(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
    bool inner = column_stride == 1 || columns == 1;
    bool outer = rows == 1 || (row_stride >= columns && row_stride <= INT_MAX);
    return inner && outer;
}

bool matrix_suits_blas(const Matrix *matrix) {
    if (matrix->rows > INT_MAX || matrix->columns > INT_MAX) return false;
    return suits_blas(matrix->rows, matrix->columns, matrix->row_stride, matrix->column_stride) ||
           suits_blas(matrix->columns, matrix->rows, matrix->column_stride, matrix->row_stride);
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

// What BLAS is told about an operand: whether it is transposed, and its leading dimension.
static CBLAS_TRANSPOSE blas_layout(const Matrix *matrix, int *leading) {
    if (suits_blas(matrix->rows, matrix->columns, matrix->row_stride, matrix->column_stride)) {
        int64_t stride = matrix->rows == 1 ? matrix->columns : matrix->row_stride;
        *leading = (int)(stride > 0 ? stride : 1);
        return CblasNoTrans;
    }
    *leading = (int)(matrix->columns == 1 ? matrix->rows : matrix->column_stride);
    return CblasTrans;
}

static void blas_prepare(void) {
    static _Thread_local bool prepared;
    if (LIKELY(prepared)) return;
    openblas_set_num_threads(cpu_thread_count());
    prepared = true;
}

void blas_product(const BlasProduct *product) {
    blas_prepare();
    int m = (int)product->a.rows, n = (int)product->b.columns, k = (int)product->a.columns;
    int a_leading, b_leading, c_leading = (int)product->c_stride;
    CBLAS_TRANSPOSE a_layout = blas_layout(&product->a, &a_leading);
    CBLAS_TRANSPOSE b_layout = blas_layout(&product->b, &b_leading);
    const void *a = product->a.data, *b = product->b.data;
    if (product->compute == COMPUTE_F32)
        cblas_sgemm(CblasRowMajor, a_layout, b_layout, m, n, k, 1.0f, a, a_leading, b, b_leading,
                    product->accumulate ? 1.0f : 0.0f, product->c, c_leading);
    else
        cblas_dgemm(CblasRowMajor, a_layout, b_layout, m, n, k, 1.0, a, a_leading, b, b_leading,
                    product->accumulate ? 1.0 : 0.0, product->c, c_leading);
}

typedef struct Packing {
    Matrix matrix;
    CpuCompute compute;
    char *out;
} Packing;

static void pack_rows(void *context, int64_t begin, int64_t end) {
    const Packing *packing = context;
    size_t row_bytes = (size_t)packing->matrix.columns * compute_bytes(packing->compute);
    matrix_load(&packing->matrix, packing->compute, begin, end,
                packing->out + (size_t)begin * row_bytes);
}

static void pack(const Matrix *matrix, CpuCompute compute, void *out) {
    Packing packing = {*matrix, compute, out};
    int64_t grain = 16384 / (matrix->columns + 1) + 1;
    cpu_parallel(matrix->rows, grain, pack_rows, &packing);
}

Matrix matrix_prepare(const Matrix *matrix, CpuCompute compute, void *panel) {
    if (matrix->dtype == compute_dtype(compute) && matrix_suits_blas(matrix)) return *matrix;
    bool transposed = magnitude(matrix->row_stride) < magnitude(matrix->column_stride);
    Matrix source = transposed ? matrix_transpose(*matrix) : *matrix;
    pack(&source, compute, panel);
    Matrix packed = {compute_dtype(compute), panel, source.rows, source.columns, source.columns, 1};
    return transposed ? matrix_transpose(packed) : packed;
}

// Stores a finished piece: numbers[rows, columns] of the compute type.
typedef struct Storing {
    const MatrixProduct *product;
    const char *numbers;
    int64_t row, column, columns;
} Storing;

static void store_rows(void *context, int64_t begin, int64_t end) {
    const Storing *storing = context;
    const MatrixProduct *product = storing->product;
    ConvertStore store = cpu_convert()->store[product->compute][product->out_dtype];
    int64_t item = (int64_t)dtype_size(product->out_dtype);
    int64_t row_bytes = storing->columns * (int64_t)compute_bytes(product->compute);
    for (int64_t row = begin; row < end; row++) {
        int64_t offset = (storing->row + row) * product->out_row_stride +
                         storing->column * product->out_column_stride;
        store(product->out + offset * item, product->out_column_stride,
              storing->numbers + row * row_bytes, storing->columns);
    }
}

static bool out_suits_blas(const MatrixProduct *product) {
    return product->out_dtype == compute_dtype(product->compute) &&
           suits_blas(product->a.rows, product->b.columns, product->out_row_stride,
                      product->out_column_stride);
}

typedef struct Panels {
    int64_t depth; // of the panels: columns of a, rows of b
    char *a, *b, *c;
} Panels;

// The piece of the result with rows of `a` and columns of `b`, over all of k.
static void piece_compute(const MatrixProduct *product, const Panels *panels, int64_t row,
                          int64_t column, const Matrix *a_ready) {
    CpuCompute compute = product->compute;
    int64_t rows = a_ready ? a_ready->rows : minimum(PANEL_ROWS, product->a.rows - row);
    int64_t columns = minimum(PANEL_COLUMNS, product->b.columns - column);
    int64_t depth_all = product->a.columns;
    bool direct = out_suits_blas(product);
    size_t item = compute_bytes(compute);
    char *c =
        direct ? product->out + (size_t)(row * product->out_row_stride + column) * item : panels->c;
    for (int64_t k = 0; k < depth_all; k += panels->depth) {
        int64_t depth = minimum(panels->depth, depth_all - k);
        Matrix a = matrix_part(product->a, row, k, rows, depth);
        Matrix b = matrix_part(product->b, k, column, depth, columns);
        blas_product(&(BlasProduct){
            .compute = compute,
            .a = a_ready ? *a_ready : matrix_prepare(&a, compute, panels->a),
            .b = matrix_prepare(&b, compute, panels->b),
            .c = c,
            .c_stride = direct && rows > 1 ? product->out_row_stride : columns,
            .accumulate = k > 0,
        });
    }
    if (direct) return;
    Storing storing = {product, c, row, column, columns};
    cpu_parallel(rows, 16384 / (columns + 1) + 1, store_rows, &storing);
}

void matrix_product_blocked(const MatrixProduct *product) {
    int64_t m = product->a.rows, n = product->b.columns, k = product->a.columns;
    size_t item = compute_bytes(product->compute);
    Panels panels = {.depth = minimum(k, PANEL_DEPTH)};
    size_t rows = (size_t)minimum(m, PANEL_ROWS), columns = (size_t)minimum(n, PANEL_COLUMNS);
    panels.a = memory_allocate(rows * (size_t)panels.depth * item);
    panels.b = memory_allocate(columns * (size_t)panels.depth * item);
    panels.c = memory_allocate(rows * columns * item);
    for (int64_t row = 0; row < m; row += PANEL_ROWS) {
        Matrix a = matrix_part(product->a, row, 0, minimum(PANEL_ROWS, m - row), k), a_ready;
        bool whole = k <= panels.depth; // then one conversion of a serves every piece
        if (whole) a_ready = matrix_prepare(&a, product->compute, panels.a);
        for (int64_t column = 0; column < n; column += PANEL_COLUMNS)
            piece_compute(product, &panels, row, column, whole ? &a_ready : NULL);
    }
    free(panels.a);
    free(panels.b);
    free(panels.c);
}
