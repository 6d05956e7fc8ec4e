// The MATMUL kernel: chooses, by shape, dtype and strides, among a direct loop, the thin products
// and the tiled product; and walks the leading dimensions.
#include "base/memory.h"
#include "device/cpu/cpu.h"
#include "device/cpu/matrix.h"
#include "device/cpu/repacked.h"

typedef void (*ProductPath)(const MatrixProduct *product);

enum {
    SMALL_ROWS_MAX = 128,            // of a
    SMALL_NUMBERS_MAX = 1 << 14,     // of b, which stays in the second-level cache
    SMALL_NUMBERS_OF_FEW_ROWS = 256, // of b: more of them are read faster by kernels for few rows
    BATCH_PRODUCT_MAX = 1 << 22,     // multiplications above which one product fills all threads
    BATCH_PIECE = 1 << 17,           // multiplications that are worth a thread
};

// The products of all leading dimensions: dims[i] of them, each operand strides[i] bytes further.
typedef struct Batch {
    MatrixProduct first;
    ProductPath path;
    int rank;
    int64_t count;
    int64_t dims[RANK_MAX], a_bytes[RANK_MAX], b_bytes[RANK_MAX], out_bytes[RANK_MAX];
} Batch;

static int64_t bytes_of(DType dtype, int64_t elements) {
    const DTypeInfo *info = &dtype_info[dtype];
    return elements / info->block_elements * info->block_bytes;
}

static Matrix last_matrix(const TensorView *view) {
    int row = view->rank - 2, column = view->rank - 1;
    return (Matrix){view->dtype,        cpu_pointer(view),  view->dims[row],
                    view->dims[column], view->strides[row], view->strides[column]};
}

// A product that is soon done: what kernels for few rows do beforehand takes longer.
static bool is_small(const MatrixProduct *product) {
    DType dtype = compute_dtype(product->compute);
    const Matrix *b = &product->b;
    int64_t rows = product->a.rows, numbers = b->rows * b->columns;
    bool readable = b->row_stride == 1 || b->column_stride == 1;
    if (readable && rows <= THIN_ROWS_MAX && numbers > SMALL_NUMBERS_OF_FEW_ROWS) return false;
    return product->a.dtype == dtype && b->dtype == dtype && product->out_dtype == dtype &&
           rows <= SMALL_ROWS_MAX && numbers <= SMALL_NUMBERS_MAX;
}

// Rows by themselves with a matrix that kernels for few rows cannot read: of what they can.
static void product_of_copy(const MatrixProduct *given) {
    MatrixProduct product = *given;
    size_t numbers = (size_t)(given->b.rows * given->b.columns);
    SCOPED_MEMORY void *scratch = memory_allocate((numbers + 1) * compute_bytes(given->compute));
    product.b = matrix_prepare(&given->b, given->compute, scratch);
    ASSERT(matrix_suits_thin(&product));
    matrix_product_thin(&product);
}

static ProductPath choose_path(const MatrixProduct *product) {
    if (product->compute == COMPUTE_I64) return matrix_product_integer;
    if (is_small(product) && !product->by_row) return matrix_product_blocked;
    if (matrix_suits_repacked(product)) return matrix_product_repacked;
    if (matrix_suits_thin(product)) return matrix_product_thin;
    return product->by_row ? product_of_copy : matrix_product_blocked;
}

static Status choose_compute(const KernelCall *call, CpuCompute *out) {
    DType a = call->inputs[0].view->dtype, b = call->inputs[1].view->dtype;
    DType result = call->outputs[0]->dtype;
    bool whole = !dtype_is_float(a) && a == b && a == result && !dtype_is_quant(a);
    bool floats = dtype_is_float(a) && dtype_is_float(result) &&
                  (dtype_is_float(b) || (dtype_is_quant(b) && a != DTYPE_FLOAT64));
    if (!whole && !floats)
        return fail(STATUS_DTYPE, "%s has no kernel on the cpu for %s by %s giving %s",
                    call->op_name, dtype_name(a), dtype_name(b), dtype_name(result));
    bool wide = a == DTYPE_FLOAT64 || b == DTYPE_FLOAT64;
    *out = whole ? COMPUTE_I64 : wide ? COMPUTE_F64 : COMPUTE_F32;
    return STATUS_OK;
}

// Leading dimensions over which b does not change are rows of a, where a's strides allow it.
static int fold_rows(const TensorView *a, const TensorView *b, MatrixProduct *product) {
    int rank = a->rank - 2;
    while (rank > 0) {
        int d = rank - 1;
        bool single = a->dims[d] == 1;
        bool joined =
            b->strides[d] == 0 && a->strides[d] == product->a.rows * product->a.row_stride;
        if (product->a.rows == 1 && b->strides[d] == 0) {
            joined = true; // a row alone has no stride: it takes the dimension's
            if (!single) product->a.row_stride = a->strides[d];
        }
        if (!single && !joined) break;
        product->a.rows *= a->dims[d];
        rank--;
    }
    return rank;
}

static void run_products(void *context, int64_t begin, int64_t end) {
    const Batch *batch = context;
    for (int64_t index = begin; index < end && !cpu_interrupted(); index++) {
        MatrixProduct product = batch->first;
        int64_t rest = index;
        for (int d = batch->rank - 1; d >= 0; d--) {
            int64_t i = rest % batch->dims[d];
            rest /= batch->dims[d];
            product.a.data += i * batch->a_bytes[d];
            product.b.data += i * batch->b_bytes[d];
            product.out += i * batch->out_bytes[d];
        }
        batch->path(&product);
    }
}

static void run_batch(Batch *batch) {
    const MatrixProduct *first = &batch->first;
    double work = (double)first->a.rows * (double)first->b.columns * (double)first->a.columns;
    bool side_by_side = batch->count > 1 && work <= BATCH_PRODUCT_MAX;
    int64_t grain = side_by_side ? (int64_t)(BATCH_PIECE / (work + 1)) + 1 : batch->count;
    cpu_parallel(batch->count, grain, run_products, batch);
}

Status cpu_kernel_MATMUL(const KernelCall *call) {
    const TensorView *a = call->inputs[0].view, *b = call->inputs[1].view, *out = call->outputs[0];
    ASSERT(a && b && a->rank >= 2 && a->rank == b->rank && a->rank == out->rank);
    Batch batch;
    MatrixProduct *product = &batch.first;
    *product = (MatrixProduct){.by_row = call->options.flag};
    TRY(choose_compute(call, &product->compute));
    product->a = last_matrix(a);
    product->b = last_matrix(b);
    product->out = cpu_pointer(out);
    product->out_dtype = out->dtype;
    product->out_row_stride = product->b.columns;
    product->out_column_stride = 1;
    product->fast = call->options.fast || cpu_is_fast();
    ASSERT(product->a.columns == product->b.rows);
    if (product->b.columns == 1 && dtype_is_quant(b->dtype))
        product->b.column_stride = product->b.rows; // of one column any stride would do
    int64_t numbers = 1;
    for (int d = 0; d < out->rank; d++) numbers *= out->dims[d];
    if (numbers == 0) return STATUS_OK;
    if (product->a.columns == 0) {
        if (!cpu_is_foretold(out))
            memset(product->out, 0, (size_t)numbers * dtype_size(out->dtype));
        return STATUS_OK;
    }
    batch.count = 1;
    batch.rank = fold_rows(a, b, product);
    for (int d = 0; d < batch.rank; d++) {
        batch.dims[d] = a->dims[d];
        batch.count *= a->dims[d];
        batch.a_bytes[d] = bytes_of(a->dtype, a->strides[d]);
        batch.b_bytes[d] = bytes_of(b->dtype, b->strides[d]);
    }
    int64_t item = (int64_t)dtype_size(out->dtype);
    int64_t step = product->a.rows * product->b.columns * item;
    for (int d = batch.rank - 1; d >= 0; d--) {
        batch.out_bytes[d] = step;
        step *= batch.dims[d];
    }
    batch.path = choose_path(product);
    if (batch.path == matrix_product_repacked) {
        product->weight = repacked_weight(b);
        product->weight_buffer = b->buffer;
    }
    if (!cpu_is_foretold(out)) run_batch(&batch);
    return STATUS_OK;
}
