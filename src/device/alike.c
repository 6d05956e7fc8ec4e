#include "device/alike.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

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

// What the formula of a map does to its operands: it compares or chooses, adds or multiplies, and
// so rounds once or several times; anything else is approximated.
typedef enum FormulaKind { CHOOSES, ROUNDS_ONCE, ROUNDS, APPROXIMATES } FormulaKind;

static const char *const formulas[] = {
#define MAP1(name, formula, ...) [MAP_##name] = #formula,
#define MAP2(name, formula, ...) [MAP_##name] = #formula,
#define MAP3(name, formula, ...) [MAP_##name] = #formula,
#include "catalog/maps.def"
#undef MAP1
#undef MAP2
#undef MAP3
};

static bool is_integer_constant(const char *text) { // what follows C
    const char *number = text + (text[1] == '-' ? 2 : 1);
    size_t digits = strspn(number, "0123456789");
    return digits > 0 && number[digits] == ')';
}

// Whether the same comes of a word on every device: an operand, a constant, or a choice.
static bool is_exact_word(const char *word, size_t length) {
    static const char *const choices[] = {"abs",   "ceil",  "floor", "greatest", "isfinite",
                                          "isinf", "isnan", "least", "round",    "trunc"};
    if (word[length] != '(') return true;
    if (length == 1 && *word == 'C') return is_integer_constant(word + 1);
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (strlen(choices[i]) == length && memcmp(choices[i], word, length) == 0) return true;
    return false;
}

// One operator that is written twice is of one sum that is.
static FormulaKind formula_kind(MapOp op) {
    FormulaKind kind = CHOOSES;
    char sign = 0;
    for (const char *at = formulas[op]; *at; at++) {
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
        if (length > 0) {
            if (!is_exact_word(at, length)) return APPROXIMATES;
            at += length - 1;
        } else if (*at == ' ' && at[1] && strchr("+-*/", at[1]) && at[2] == ' ') {
            if (at[1] == '/') return APPROXIMATES;
            kind = kind == CHOOSES || (kind == ROUNDS_ONCE && at[1] == sign) ? ROUNDS_ONCE : ROUNDS;
            sign = at[1];
        }
    }
    return kind;
}

static bool map_is_alike(const KernelCall *call) {
    FormulaKind worst = CHOOSES;
    int steps = call->options.n_steps;
    for (int i = 0; i < steps; i++) {
        FormulaKind kind = formula_kind(call->options.steps[i].op);
        if (kind > worst) worst = kind;
    }
    DType out = call->outputs[0]->dtype;
    if (call->options.compute == DTYPE_INT64) return true;
    bool kept = !dtype_is_float(out) || out == call->options.compute;
    if (worst == CHOOSES || (worst == ROUNDS_ONCE && steps == 1))
        return kept || stays_integral(call, 2);
    return worst != APPROXIMATES && stays_integral(call, steps + 1);
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
