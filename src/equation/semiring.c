// Semirings of equations: numbers along a way are multiplied or added, over several ways the
// largest or smallest is taken, or they are added as probabilities or as logarithms.
#include "equation/semiring.h"

#include <math.h>

#include "tensor/compose.h"

bool semiring_adds(Semiring semiring) {
    return semiring == SEMIRING_MAX_PROD || semiring == SEMIRING_MIN_PLUS ||
           semiring == SEMIRING_LOG || semiring == SEMIRING_PROB;
}

static bool multiplies_by_adding(Semiring semiring) {
    return semiring == SEMIRING_MIN_PLUS || semiring == SEMIRING_LOG;
}

Operator semiring_operator(Semiring semiring, Operator op) {
    if (!multiplies_by_adding(semiring)) return op;
    return op == OPERATOR_MUL ? OPERATOR_ADD : op == OPERATOR_DIV ? OPERATOR_SUB : op;
}

double semiring_zero(Semiring semiring) {
    return semiring == SEMIRING_MIN_PLUS ? INFINITY : semiring == SEMIRING_LOG ? -INFINITY : 0.0;
}

int semiring_one(Semiring semiring) {
    return multiplies_by_adding(semiring) ? 0 : 1;
}

// log(exp(x) + exp(y)) as a reduction over the two.
static Status add_logarithms(Tensor *const *parts, Tensor **out) {
    SCOPED_TENSOR(both);
    OpInput inputs[] = {op_tensor(parts[0]), op_tensor(parts[1])};
    TRY(named_join(OP_stack, inputs, 2, 0, &both));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = 0};
    return op_with(OP_logsumexp, &both, 1, &attributes, out);
}

// 1 - (1 - x) * (1 - y)
static Status add_probabilities(Tensor *const *parts, Tensor **out) {
    SCOPED_TENSOR(sum);
    SCOPED_TENSOR(product);
    TRY(op_with(OP_add, parts, 2, NULL, &sum));
    TRY(op_with(OP_mul, parts, 2, NULL, &product));
    Tensor *both[] = {sum, product};
    return op_with(OP_sub, both, 2, NULL, out);
}

static Status add_tensors(Semiring semiring, Tensor *const *parts, Tensor **out) {
    switch (semiring) {
    case SEMIRING_MAX_PROD: return op_with(OP_maximum, parts, 2, NULL, out);
    case SEMIRING_MIN_PLUS: return op_with(OP_minimum, parts, 2, NULL, out);
    case SEMIRING_LOG: return add_logarithms(parts, out);
    default: return add_probabilities(parts, out);
    }
}

static Status broadcast_both(Tensor *const *given, Tensor **out) {
    for (int i = 0; i < 2; i++) {
        Shape shape = {0};
        Shape own = tensor_shape(given[i]), other = tensor_shape(given[1 - i]);
        shape.rank = own.rank > other.rank ? own.rank : other.rank;
        for (int d = 0; d < shape.rank; d++) {
            int64_t x = d < own.rank ? own.dims[d] : 1, y = d < other.rank ? other.dims[d] : 1;
            shape.dims[d] = x == 1 ? y : x;
        }
        OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = shape};
        TRY(op_with(OP_broadcast_to, &given[i], 1, &attributes, &out[i]));
    }
    return STATUS_OK;
}

Value semiring_add(Semiring semiring, const Operands *operands) {
    SCOPED_TENSOR(left);
    SCOPED_TENSOR(right);
    SCOPED_TENSOR(wide_left);
    SCOPED_TENSOR(wide_right);
    Tensor *result = NULL, *wide[2] = {NULL, NULL};
    Status status = value_to_tensor(operands->left, "a term", &left);
    if (status == STATUS_OK) status = value_to_tensor(operands->right, "a term", &right);
    value_release(operands->left);
    value_release(operands->right);
    if (status == STATUS_OK) status = broadcast_both((Tensor *const[]){left, right}, wide);
    wide_left = wide[0];
    wide_right = wide[1];
    if (status == STATUS_OK) status = add_tensors(semiring, wide, &result);
    return status == STATUS_OK ? value_tensor(result) : value_fail();
}

// 1 - the product of 1 - x
static Status reduce_probabilities(Tensor *x, const Shape *dims, Tensor **out) {
    SCOPED_TENSOR(negated);
    SCOPED_TENSOR(others);
    SCOPED_TENSOR(product);
    SCOPED_TENSOR(less);
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dims), .dims = *dims};
    TRY(op_with(OP_neg, &x, 1, NULL, &negated));
    TRY(compose_with_number(OP_add, negated, 1.0, &others));
    TRY(op_with(OP_prod_dims, &others, 1, &attributes, &product));
    TRY(op_with(OP_neg, &product, 1, NULL, &less));
    return compose_with_number(OP_add, less, 1.0, out);
}

Status semiring_reduce(Semiring semiring, Named *named, IndexSet reduced) {
    if (semiring == SEMIRING_MAX_PROD) return named_reduce(named, reduced, PROJECTION_MAX);
    if (semiring == SEMIRING_MIN_PLUS) return named_reduce(named, reduced, PROJECTION_MIN);
    Shape dims = named_take(named, reduced);
    if (dims.rank == 0) return STATUS_OK;
    if (semiring == SEMIRING_LOG) return named_reduce_by(named, &dims, OP_logsumexp);
    Tensor *result;
    TRY(reduce_probabilities(named->value.as.tensor, &dims, &result));
    value_release(named->value);
    named->value = value_tensor(result);
    return STATUS_OK;
}

Value semiring_holds(Value value) {
    SCOPED_TENSOR(numbers);
    Tensor *result;
    Status status = value_to_tensor(value, "the value of an equation", &numbers);
    value_release(value);
    if (status == STATUS_OK) status = compose_with_number(OP_ne, numbers, 0.0, &result);
    return status == STATUS_OK ? value_tensor(result) : value_fail();
}
