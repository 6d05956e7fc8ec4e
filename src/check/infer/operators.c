// Operators on facts.
#include "check/infer/infer.h"
#include "check/operator_words.h"
#include "shape/rules.h"

static bool is_comparison(Operator op) {
    return op >= OPERATOR_EQ && op <= OPERATOR_APPROX;
}

// --- plain numbers

static const Fact *compare_ints(Inference *in, Operator op, int64_t x, int64_t y) {
    ASSERT(is_comparison(op));
    bool boolean = op == OPERATOR_EQ   ? x == y
                   : op == OPERATOR_NE ? x != y
                   : op == OPERATOR_LT ? x < y
                   : op == OPERATOR_LE ? x <= y
                   : op == OPERATOR_GT ? x > y
                                       : x >= y;
    return fact_bool(&in->arena, boolean);
}

// SIZE_UNKNOWN where the operation fails or its result is not known.
static int64_t compute_ints(Operator op, int64_t x, int64_t y) {
    int64_t result = SIZE_UNKNOWN;
    bool known = size_is_known(x) && size_is_known(y);
    switch (op) {
    case OPERATOR_ADD: return size_add(x, y);
    case OPERATOR_MUL: return size_multiply(x, y);
    case OPERATOR_SUB:
        if (y == 0) return x;
        return known ? size_add(x, -y) : SIZE_UNKNOWN;
    case OPERATOR_DIV: return known && y != 0 && y != -1 ? x / y : (y == 1 ? x : SIZE_UNKNOWN);
    case OPERATOR_MOD: return known && y != 0 && y != -1 ? x % y : SIZE_UNKNOWN;
    case OPERATOR_POW:
        if (!known || y < 0 || y > 62) return SIZE_UNKNOWN;
        for (result = 1; y > 0; y--)
            if (__builtin_mul_overflow(result, x, &result)) return SIZE_UNKNOWN;
        return size_computed(result);
    default: return SIZE_UNKNOWN;
    }
}

// Reports what certainly fails on two known ints; in the words of the evaluator.
static bool ints_fail(Inference *in, const Node *node, Operator op, int64_t x, int64_t y) {
    static const char *const texts[] = {
        [OPERATOR_ADD] = "+", [OPERATOR_SUB] = "-", [OPERATOR_MUL] = "*",
        [OPERATOR_DIV] = "/", [OPERATOR_MOD] = "%",
    };
    int64_t result;
    bool divides = op == OPERATOR_DIV || op == OPERATOR_MOD;
    bool overflows = op == OPERATOR_ADD ? __builtin_add_overflow(x, y, &result)
                     : op == OPERATOR_SUB
                         ? __builtin_sub_overflow(x, y, &result)
                         : op == OPERATOR_MUL && __builtin_mul_overflow(x, y, &result);
    if (!overflows && !(divides && y == 0)) return false;
    if (overflows) {
        fail(STATUS_OVERFLOW, "%lld %s %lld does not fit in 64 bits", (long long)x, texts[op],
             (long long)y);
        fail_help("ints are 64-bit; use floats for larger numbers");
    } else {
        fail(STATUS_DIVIDE, "%lld %s 0: division by zero", (long long)x, texts[op]);
    }
    infer_report(in, node->span, NULL, 0);
    return true;
}

static const Fact *numbers_apply(Inference *in, const Node *node, Operator op, const Fact *x,
                                 const Fact *y) {
    bool ints = x->kind == FACT_INT && y->kind == FACT_INT;
    bool known = ints && x->known && y->known;
    if (known && ints_fail(in, node, op, x->as.integer, y->as.integer)) return &fact_any;
    if (is_comparison(op) && op != OPERATOR_APPROX && known)
        return compare_ints(in, op, x->as.integer, y->as.integer);
    if (is_comparison(op)) return fact_kind(&in->arena, FACT_BOOL);
    if (x->kind == FACT_FLOAT || y->kind == FACT_FLOAT) return fact_kind(&in->arena, FACT_FLOAT);
    // Negative exponents give a float.
    if (op == OPERATOR_POW && !(known && y->as.integer >= 0)) return &fact_any;
    if (ints) return fact_int(&in->arena, compute_ints(op, x->as.integer, y->as.integer));
    return fact_kind(&in->arena, FACT_INT);
}

// --- tensors

// A number next to tensors, as the rank-0 tensor it amounts to.
static bool operand_type(const Fact *fact, TensorType *out) {
    if (fact->kind == FACT_TENSOR) {
        *out = fact->as.tensor.type;
        return fact->known;
    }
    *out = (TensorType){.dtype = fact->kind == FACT_INT     ? DTYPE_INT64
                                 : fact->kind == FACT_FLOAT ? DTYPE_FLOAT32
                                                            : DTYPE_BOOL};
    return true;
}

static void promote(DTypePromotion *promotion, const Fact *fact, const TensorType *type) {
    DTypeTier tier = fact->kind != FACT_TENSOR ? DTYPE_TIER_NUMBER
                     : type->shape.rank == 0   ? DTYPE_TIER_RANK_0
                                               : DTYPE_TIER_TENSOR;
    dtype_promotion_add(promotion, tier, type->dtype);
}

// The dtype of a result; DTYPE_COUNT where an operand's is not known.
static DType result_dtype(Operator op, const Fact *left, const Fact *right, const TensorType *x,
                          const TensorType *y) {
    if (is_comparison(op)) return DTYPE_BOOL;
    if (x->dtype == DTYPE_COUNT || y->dtype == DTYPE_COUNT) return DTYPE_COUNT;
    DTypePromotion promotion = DTYPE_PROMOTION_NONE;
    promote(&promotion, left, x);
    promote(&promotion, right, y);
    DType dtype = dtype_promotion_result(&promotion);
    if (dtype_is_quant(dtype)) return DTYPE_COUNT;
    return dtype_of_map(op == OPERATOR_DIV ? MAP_RULE_DIVIDE : MAP_RULE_ARITHMETIC, dtype);
}

static const Fact *tensors_apply(Inference *in, const Node *node, Operator op, const Operand *left,
                                 const Operand *right) {
    TensorType x, y;
    bool known = operand_type(left->fact, &x);
    if (!operand_type(right->fact, &y) || !known) {
        DType dtype = is_comparison(op) ? DTYPE_BOOL : DTYPE_COUNT;
        return fact_tensor(&in->arena, dtype, NULL);
    }
    Shape shape;
    Status status = op == OPERATOR_MATMUL ? shape_matmul("matmul", &x, &y, &shape)
                    : op == OPERATOR_OUTER
                        ? shape_outer(&x, &y, &shape)
                        : shape_broadcast(operator_info[op].operation, &x, &y, &shape);
    if (status != STATUS_OK) {
        Operand operands[2] = {*left, *right};
        infer_report(in, node->span, operands, 2);
        return &fact_any;
    }
    return fact_tensor(&in->arena, result_dtype(op, left->fact, right->fact, &x, &y), &shape);
}

static const Fact *tensor_apply(Inference *in, Operator op, const Fact *x) {
    MapRule rule = op == OPERATOR_NOT ? MAP_RULE_LOGICAL : MAP_RULE_ARITHMETIC;
    const TensorType *type = &x->as.tensor.type;
    return fact_tensor(&in->arena, dtype_of_map(rule, type->dtype), x->known ? &type->shape : NULL);
}

// --- everything else

static const Fact *fail_kinds(Inference *in, const Node *node, Operator op, const Operand *left,
                              const Operand *right) {
    Operand operands[2] = {*left, right ? *right : (Operand){.fact = &fact_any}};
    (void)operator_fail_kinds(op, fact_kind_name(left->fact),
                              right ? fact_kind_name(right->fact) : NULL);
    infer_report(in, node->span, operands, right ? 2 : 1);
    return &fact_any;
}

// Kinds that no arithmetic takes, whatever stands next to them.
static bool never_calculates(const Fact *fact) {
    return fact->kind == FACT_NONE || fact->kind == FACT_DICT || fact->kind == FACT_STRUCT ||
           fact->kind == FACT_FUNCTION || fact->kind == FACT_BUILTIN;
}

static bool kinds_clash(Operator op, const Fact *x, const Fact *y) {
    if (x->kind == FACT_ANY || y->kind == FACT_ANY) return false;
    if (op == OPERATOR_EQ || op == OPERATOR_NE || op == OPERATOR_IN || op == OPERATOR_NOT_IN)
        return false;
    if (never_calculates(x) || never_calculates(y)) return true;
    bool text = x->kind == FACT_STRING, other = y->kind == FACT_STRING;
    if (!text && !other) return false;
    if (op == OPERATOR_MUL) return text && other; // a number repeats it
    bool joins = op == OPERATOR_ADD || (op >= OPERATOR_LT && op <= OPERATOR_GE);
    return !joins || text != other;
}

// A kind whose values equal nothing of another kind. A dtype equals its name, next to a tensor a
// bool may be an element.
static bool equals_its_kind_only(const Fact *fact, const Fact *other) {
    if (fact->kind == FACT_NONE) return true;
    if (fact->kind == FACT_STRING) return other->kind != FACT_DTYPE;
    if (fact->kind == FACT_BOOL) return fact_is_number(other);
    bool held = fact->kind == FACT_STRUCT || fact->kind == FACT_DICT;
    return held && other->kind != FACT_TENSOR;
}

// Whether two values without members are equal, where the kinds or the known values say it; NULL
// where they do not.
static const Fact *known_equality(Inference *in, const Fact *x, const Fact *y) {
    ASSERT(x != NULL && y != NULL);
    bool valued = x->kind == FACT_STRING || x->kind == FACT_INT || x->kind == FACT_BOOL;
    if (x->kind == y->kind && (x->kind == FACT_DTYPE || (valued && x->known && y->known)))
        return fact_bool(&in->arena, fact_equal(x, y));
    if (x->kind == FACT_ANY || y->kind == FACT_ANY) return NULL;
    if (x->kind == FACT_NONE && y->kind == FACT_NONE) return fact_bool(&in->arena, true);
    bool never = x->kind != y->kind && (equals_its_kind_only(x, y) || equals_its_kind_only(y, x));
    return never ? fact_bool(&in->arena, false) : NULL;
}

// The members of a list, a tuple or a tensor of rank 1, as far as they are known.
typedef struct Members {
    const Fact *of;
    size_t count;
} Members;

static bool members_read(const Inference *in, const Fact *fact, Members *out) {
    *out = (Members){.of = fact};
    if (fact->kind == FACT_LIST || fact->kind == FACT_TUPLE) {
        out->count = fact->as.list.count;
        return infer_members_known(in, fact);
    }
    bool booleans = fact->kind == FACT_TENSOR && fact->as.tensor.type.dtype == DTYPE_BOOL;
    if (!fact_is_array(fact) || !fact->as.tensor.values || booleans) return false;
    ASSERT(fact->as.tensor.type.shape.rank == 1);
    out->count = (size_t)fact->as.tensor.type.shape.dims[0];
    return true;
}

static const Fact *members_get(Inference *in, const Members *members, size_t i) {
    bool tensor = members->of->kind == FACT_TENSOR;
    return tensor ? fact_int(&in->arena, members->of->as.tensor.values[i])
                  : members->of->as.list.items[i];
}

// Whether a list or a tuple equals another, or the numbers of a tensor, by their members; NULL
// where that cannot be told.
static const Fact *known_content(Inference *in, const Fact *x, const Fact *y) {
    Members a, b;
    bool arrays = x->kind == FACT_TENSOR && y->kind == FACT_TENSOR;
    bool alike = x->kind == y->kind || x->kind == FACT_TENSOR || y->kind == FACT_TENSOR;
    if (arrays || !alike || !members_read(in, x, &a) || !members_read(in, y, &b)) return NULL;
    bool told = true;
    for (size_t i = 0; i < a.count && a.count == b.count; i++) {
        const Fact *equal = known_equality(in, members_get(in, &a, i), members_get(in, &b, i));
        if (equal && !equal->as.integer) return equal;
        told &= equal != NULL;
    }
    return told ? fact_bool(&in->arena, a.count == b.count) : NULL;
}

static const Fact *known_in_range(Inference *in, const Fact *x, const Fact *range) {
    int64_t low = range->as.range.low, high = range->as.range.high, number = x->as.integer;
    bool known = x->kind == FACT_INT && x->known && size_is_known(low) && size_is_known(high);
    if (!known || (range->as.range.gaps && number >= low && number < high)) return NULL;
    return fact_bool(&in->arena, number >= low && number < high);
}

// Whether a list, a tuple, a tensor of rank 1 or a range has the value; NULL where that cannot be
// told.
static const Fact *known_membership(Inference *in, const Fact *x, const Fact *y) {
    Members members;
    if (y->kind == FACT_RANGE) return known_in_range(in, x, y);
    bool told = members_read(in, y, &members);
    for (size_t i = 0; told && i < members.count; i++) {
        const Fact *equal = known_equality(in, x, members_get(in, &members, i));
        if (equal && equal->as.integer) return equal;
        told = equal != NULL;
    }
    return told ? fact_bool(&in->arena, false) : NULL;
}

static const Fact *known_result(Inference *in, Operator op, const Fact *x, const Fact *y) {
    if (op == OPERATOR_EQ || op == OPERATOR_NE || op == OPERATOR_IN || op == OPERATOR_NOT_IN ||
        is_comparison(op)) {
        bool certain = x->kind != FACT_ANY && y->kind != FACT_ANY && x->kind != FACT_TENSOR &&
                       y->kind != FACT_TENSOR;
        return certain || op == OPERATOR_IN || op == OPERATOR_NOT_IN
                   ? fact_kind(&in->arena, FACT_BOOL)
                   : &fact_any;
    }
    if (op == OPERATOR_ADD && x->kind == y->kind && x->kind == FACT_STRING)
        return fact_kind(&in->arena, FACT_STRING);
    return &fact_any;
}

const Fact *infer_operator(Inference *in, const Node *node, Operator op, const Operand *left,
                           const Operand *right) {
    const Fact *x = left->fact, *y = right ? right->fact : NULL;
    if (!y) {
        if (x->kind == FACT_TENSOR) return tensor_apply(in, op, x);
        if (op == OPERATOR_NEG && x->kind == FACT_INT && x->known)
            return fact_int(&in->arena, size_computed(-x->as.integer));
        if (op == OPERATOR_NEG && x->kind == FACT_INT) return fact_kind(&in->arena, FACT_INT);
        if (op == OPERATOR_NEG && x->kind == FACT_FLOAT) return fact_kind(&in->arena, FACT_FLOAT);
        if (op == OPERATOR_NOT && x->kind == FACT_BOOL)
            return x->known ? fact_bool(&in->arena, !x->as.integer) : x;
        bool clash = op == OPERATOR_NEG && (never_calculates(x) || x->kind == FACT_STRING);
        return clash ? fail_kinds(in, node, op, left, NULL) : &fact_any;
    }
    if (kinds_clash(op, x, y)) return fail_kinds(in, node, op, left, right);
    bool equality = op == OPERATOR_EQ || op == OPERATOR_NE;
    bool membership = op == OPERATOR_IN || op == OPERATOR_NOT_IN;
    const Fact *told = equality ? known_equality(in, x, y) : NULL;
    if (equality && !told) told = known_content(in, x, y);
    if (membership) told = known_membership(in, x, y);
    bool negated = op == OPERATOR_NE || op == OPERATOR_NOT_IN;
    if (told) return negated ? fact_bool(&in->arena, !told->as.integer) : told;
    // Next to a tensor a bool may be an element or not.
    bool one_boolean = (x->kind == FACT_BOOL) != (y->kind == FACT_BOOL);
    if (equality && one_boolean && (x->kind == FACT_TENSOR || y->kind == FACT_TENSOR))
        return &fact_any;
    bool tensor = x->kind == FACT_TENSOR || y->kind == FACT_TENSOR;
    bool x_fits = x->kind == FACT_TENSOR || fact_is_number(x);
    bool y_fits = y->kind == FACT_TENSOR || fact_is_number(y);
    bool matrices = op == OPERATOR_MATMUL || op == OPERATOR_OUTER;
    if (operator_info[op].operation && x_fits && y_fits && (tensor || matrices))
        return tensors_apply(in, node, op, left, right);
    if (operator_info[op].operation && x_fits && y_fits) return numbers_apply(in, node, op, x, y);
    return known_result(in, op, x, y);
}
