// Elementwise operations whose operands are all plain numbers: computed on the host as the
// language's int, float and bool, where ints trap instead of wrapping.
#include <inttypes.h>
#include <math.h>

#include "tensor/op.h"
#include "tensor/scalar.h"

// int, unless a float is among the operands.
static DType scalar_kind(const OpInput *inputs, int n) {
    DType kind = DTYPE_BOOL;
    for (int i = 0; i < n; i++) {
        DType dtype = inputs[i].scalar.dtype;
        if (dtype == DTYPE_FLOAT64) return DTYPE_FLOAT64;
        if (dtype != DTYPE_BOOL) kind = DTYPE_INT64;
    }
    return kind;
}

// The type that the formula is evaluated in, and that of the result.
typedef struct ScalarTypes {
    bool in_floats;
    DType result;
} ScalarTypes;

// As the operator: a negative power of plain ints is a float.
static bool is_inverse_power(const OpCall *call) {
    return call->op->map == MAP_POW && scalar_double(call->inputs[1].scalar) < 0;
}

static inline __attribute__((always_inline)) ScalarTypes scalar_types(const OpCall *call) {
    MapRule rule = call->op->rule;
    bool where = rule == MAP_RULE_WHERE;
    DType kind = scalar_kind(call->inputs + where, call->n_inputs - where);
    DType number = kind == DTYPE_BOOL ? DTYPE_INT64 : kind;
    if (is_inverse_power(call)) return (ScalarTypes){true, DTYPE_FLOAT64};
    switch (rule) {
    case MAP_RULE_FLOAT: return (ScalarTypes){true, DTYPE_FLOAT64};
    case MAP_RULE_APPROXIMATE: return (ScalarTypes){true, DTYPE_BOOL};
    case MAP_RULE_COMPARE:
    case MAP_RULE_LOGICAL: return (ScalarTypes){kind == DTYPE_FLOAT64, DTYPE_BOOL};
    case MAP_RULE_KEEP:
    case MAP_RULE_INTEGER:
    case MAP_RULE_WHERE: return (ScalarTypes){kind == DTYPE_FLOAT64, kind};
    default: return (ScalarTypes){kind == DTYPE_FLOAT64, number};
    }
}

static int order_int_float(int64_t i, double f) {
    if (f >= 0x1p63) return -1;
    if (f < -0x1p63) return 1;
    int64_t whole = (int64_t)f;
    if (i != whole) return i < whole ? -1 : 1;
    double rest = f - (double)whole;
    return rest > 0 ? -1 : rest < 0;
}

bool scalar_order(Scalar x, Scalar y, int *out) {
    bool x_float = x.dtype == DTYPE_FLOAT64, y_float = y.dtype == DTYPE_FLOAT64;
    if ((x_float && isnan(x.as.f)) || (y_float && isnan(y.as.f))) return false;
    if (x_float && y_float)
        *out = x.as.f < y.as.f ? -1 : x.as.f > y.as.f;
    else if (x_float)
        *out = -order_int_float(y.as.i, x.as.f);
    else if (y_float)
        *out = order_int_float(x.as.i, y.as.f);
    else
        *out = x.as.i < y.as.i ? -1 : x.as.i > y.as.i;
    return true;
}

// By exact values: what orders the two is compared with 0.
static Scalar compare(const OpCall *call) {
    int order = 0;
    bool ordered = scalar_order(call->inputs[0].scalar, call->inputs[1].scalar, &order);
    ASSERT(scalar_integer_formulas[call->op->map] && scalar_float_formulas[call->op->map]);
    bool holds = ordered ? scalar_integer_formulas[call->op->map](order, 0, 0) != 0
                         : scalar_float_formulas[call->op->map](NAN, 0, 0) != 0;
    return (Scalar){.dtype = DTYPE_BOOL, .as.i = holds};
}

static bool divides(MapOp map) {
    return map == MAP_DIV || map == MAP_REM || map == MAP_FLOOR_DIV || map == MAP_MOD;
}

static Status apply_integers(const OpCall *call, DType result, Scalar *out) {
    const OpRow *op = call->op;
    int64_t operands[3] = {0};
    for (int i = 0; i < call->n_inputs; i++) operands[i] = scalar_integer(call->inputs[i].scalar);
    if (op->rule == MAP_RULE_WHERE) operands[0] = scalar_double(call->inputs[0].scalar) != 0;
    int64_t x = operands[0], y = operands[1];
    if (divides(op->map) && y == 0)
        return fail(STATUS_DIVIDE, "%s(%" PRId64 ", 0): division by zero", op->name, x);
    ASSERT(scalar_integer_formulas[op->map] != NULL);
    WideInteger number = scalar_integer_formulas[op->map](x, y, operands[2]);
    if (number < INT64_MIN || number > INT64_MAX) {
        if (call->n_inputs == 1)
            return fail(STATUS_OVERFLOW, "%s(%" PRId64 ") does not fit in 64 bits", op->name, x);
        return fail(STATUS_OVERFLOW, "%s(%" PRId64 ", %" PRId64 "%s) does not fit in 64 bits",
                    op->name, x, y, call->n_inputs > 2 ? ", ..." : "");
    }
    *out = (Scalar){.dtype = result, .as.i = (int64_t)number};
    if (result == DTYPE_BOOL) out->as.i = out->as.i != 0;
    return STATUS_OK;
}

DType op_scalars_result(const OpCall *call) {
    return scalar_types(call).result;
}

Status op_apply_scalars(const OpCall *call, Scalar *out) {
    const OpRow *op = call->op;
    ASSERT(op->run == NULL && call->n_inputs <= 3);
    ScalarTypes types = scalar_types(call);
    if (op->rule == MAP_RULE_INTEGER && types.in_floats) {
        for (int i = 0; i < call->n_inputs; i++)
            if (call->inputs[i].scalar.dtype == DTYPE_FLOAT64)
                return fail(STATUS_TYPE, "%s works on integers, but an operand is the float %g",
                            op->name, call->inputs[i].scalar.as.f);
    }
    // The opposite of a bool is the other one, not the complement of its bits.
    if (op->map == MAP_BIT_NOT && types.result == DTYPE_BOOL) {
        *out = (Scalar){.dtype = DTYPE_BOOL, .as.i = call->inputs[0].scalar.as.i == 0};
        return STATUS_OK;
    }
    if (op->rule == MAP_RULE_COMPARE && call->n_inputs == 2) {
        *out = compare(call);
        return STATUS_OK;
    }
    if (!types.in_floats) return apply_integers(call, types.result, out);
    double operands[3] = {0};
    for (int i = 0; i < call->n_inputs; i++) operands[i] = scalar_double(call->inputs[i].scalar);
    ASSERT(scalar_float_formulas[op->map] != NULL);
    double number = scalar_float_formulas[op->map](operands[0], operands[1], operands[2]);
    if (types.result == DTYPE_BOOL)
        *out = (Scalar){.dtype = DTYPE_BOOL, .as.i = number != 0};
    else
        *out = (Scalar){.dtype = DTYPE_FLOAT64, .as.f = number};
    return STATUS_OK;
}
