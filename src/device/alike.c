#include "device/alike.h"

#include <math.h>

#include "device/cpu/cast.h"

// Up to here a type holds every integer.
static double integer_most(DType dtype) {
    switch (dtype) {
    case DTYPE_BFLOAT16: return 0x1p8;
    case DTYPE_FLOAT16: return 0x1p11;
    case DTYPE_FLOAT32: return 0x1p24;
    default: return 0x1p53;
    }
}

// The sum of the sizes of all numbers of a buffer; infinity where one is not an integer.
static double integer_sum(const TensorView *view) {
    if (dtype_is_quant(view->dtype)) return INFINITY;
    size_t size = dtype_size(view->dtype), count = view->buffer->bytes / size;
    const char *bytes = view->buffer->handle;
    double sum = 0, numbers[CAST_CHUNK];
    for (size_t first = 0; first < count; first += CAST_CHUNK) {
        size_t part = count - first < CAST_CHUNK ? count - first : CAST_CHUNK;
        RowCopy row = {numbers, sizeof *numbers, bytes + first * size, (int64_t)size,
                       (int64_t)part};
        cast_row((CastRow){view->dtype, DTYPE_FLOAT64}, &row);
        for (size_t i = 0; i < part; i++)
            sum += numbers[i] == trunc(numbers[i]) ? fabs(numbers[i]) : INFINITY;
    }
    return sum;
}

static double operand_sum(const KernelOperand *operand) {
    if (operand->view) return integer_sum(operand->view);
    double number = operand->scalar.dtype == DTYPE_FLOAT64 ? operand->scalar.as.f
                                                           : (double)operand->scalar.as.i;
    return number == trunc(number) ? fabs(number) : INFINITY;
}

// Whether no order of the sums and no rounding between changes what comes of `factors` numbers
// multiplied, all of them integers.
static bool stays_integral(const KernelCall *call, int factors) {
    DType dtype = call->kernel == KERNEL_MAP ? call->options.compute : call->outputs[0]->dtype;
    ASSERT(factors > 0);
    double most = fmin(integer_most(dtype), integer_most(call->outputs[0]->dtype)), largest = 1;
    for (int i = 0; i < call->n_inputs; i++) largest = fmax(largest, operand_sum(&call->inputs[i]));
    return pow(largest, factors) <= most;
}

// 0: it compares or chooses; 1: it adds or multiplies; 2: anything else.
static int step_kind(MapOp op) {
    switch (op) {
    case MAP_COPY:
    case MAP_NEG:
    case MAP_ABS:
    case MAP_SIGN:
    case MAP_FLOOR:
    case MAP_CEIL:
    case MAP_ROUND:
    case MAP_TRUNC:
    case MAP_ISNAN:
    case MAP_ISINF:
    case MAP_ISFINITE:
    case MAP_LOGICAL_NOT:
    case MAP_STEP:
    case MAP_RELU:
    case MAP_MIN:
    case MAP_MAX:
    case MAP_EQ:
    case MAP_NE:
    case MAP_LT:
    case MAP_LE:
    case MAP_GT:
    case MAP_GE:
    case MAP_LOGICAL_AND:
    case MAP_LOGICAL_OR:
    case MAP_WHERE:
    case MAP_CLAMP: return 0;
    case MAP_SQUARE:
    case MAP_ADD:
    case MAP_SUB:
    case MAP_MUL:
    case MAP_ADD_RELU:
    case MAP_MUL_RELU:
    case MAP_AFFINE: return 1;
    default: return 2;
    }
}

static bool map_is_alike(const KernelCall *call) {
    int worst = 0;
    for (int i = 0; i < call->options.n_steps; i++) {
        int kind = step_kind(call->options.steps[i].op);
        if (kind > worst) worst = kind;
    }
    DType out = call->outputs[0]->dtype;
    if (call->options.compute == DTYPE_INT64) return true;
    bool kept = !dtype_is_float(out) || out == call->options.compute;
    bool rounded_once = call->options.n_steps == 1 && call->options.steps[0].op != MAP_AFFINE;
    if (worst == 0 || (worst == 1 && rounded_once)) return kept || stays_integral(call, 2);
    return worst == 1 && stays_integral(call, call->options.n_steps + 1);
}

static bool reduction_is_alike(const KernelCall *call) {
    switch ((ReduceOp)call->options.op) {
    case REDUCE_MAX:
    case REDUCE_MIN:
    case REDUCE_ANY:
    case REDUCE_ALL:
    case REDUCE_COUNT_NONZERO: return true;
    case REDUCE_SUM:
    case REDUCE_SUM_ABS: return stays_integral(call, 1);
    case REDUCE_SUM_SQUARE: return stays_integral(call, 2);
    default: return false;
    }
}

static bool draw_is_alike(const KernelOptions *options) {
    enum { UNIFORM, NORMAL };
    if (options->op == UNIFORM) return options->scalars[0] == 0 && options->scalars[1] == 1;
    return options->op != NORMAL;
}

static bool steps_are_integers(const KernelOptions *options) {
    return trunc(options->scalars[0]) == options->scalars[0] &&
           trunc(options->scalars[1]) == options->scalars[1];
}

// Of integers, where the results are integers, too.
static bool reads_no_floats(const KernelCall *call) {
    const TensorView *in = call->inputs[0].view;
    return in && !dtype_is_float(in->dtype) && !dtype_is_float(call->outputs[0]->dtype);
}

static bool has_floats(const KernelCall *call) {
    for (int i = 0; i < call->n_outputs; i++)
        if (dtype_is_float(call->outputs[i]->dtype)) return true;
    return false;
}

bool kernel_is_alike(const KernelCall *call) {
    ASSERT(call->n_outputs > 0);
    DType out = call->outputs[0]->dtype;
    switch (call->kernel) {
    case KERNEL_FILL:
    case KERNEL_NONZERO:
    case KERNEL_ARG_REDUCE:
    case KERNEL_SORT:
    case KERNEL_INDEX_PUT:
    case KERNEL_LINALG: return true; // the last is the host's on every device
    case KERNEL_SCATTER: return call->options.op == 0 || !has_floats(call);
    case KERNEL_COPY:
    case KERNEL_GATHER:
        return !dtype_is_float(out) || call->inputs[0].view->dtype == out ||
               stays_integral(call, 1);
    case KERNEL_RANDOM: return draw_is_alike(&call->options);
    case KERNEL_MAP: return map_is_alike(call);
    case KERNEL_REDUCE: return reads_no_floats(call) || reduction_is_alike(call);
    case KERNEL_SCAN:
        return reads_no_floats(call) || (call->options.op == 0 && stays_integral(call, 1));
    case KERNEL_MATMUL: return stays_integral(call, 2);
    case KERNEL_ARANGE: return !dtype_is_float(out) || steps_are_integers(&call->options);
    default: return !has_floats(call);
    }
}
