// How rules read their calls, the table of rules, and elementwise operations.
#include "check/infer/shape_rule.h"

const Fact *rule_argument(const RuleCall *call, const char *name) {
    ASSERT(name != NULL);
    int index = catalog_parameter(&call->row->signature, name);
    const Operand *value = index < 0 ? NULL : call->values[index];
    return value && value->fact->kind != FACT_NONE ? value->fact : NULL;
}

bool rule_type(const Fact *fact, TensorType *out) {
    *out = (TensorType){.dtype = DTYPE_COUNT};
    if (fact->kind == FACT_TENSOR) {
        *out = fact->as.tensor.type;
        return fact->known;
    }
    if (!fact_is_number(fact)) return false;
    out->dtype = fact->kind == FACT_INT     ? DTYPE_INT64
                 : fact->kind == FACT_FLOAT ? DTYPE_FLOAT32
                                            : DTYPE_BOOL;
    return true;
}

bool rule_tensor(const RuleCall *call, const char *name, TensorType *out, bool *given) {
    const Fact *fact = rule_argument(call, name);
    *given = fact != NULL;
    *out = (TensorType){.dtype = DTYPE_COUNT};
    return fact && rule_type(fact, out);
}

static int64_t fact_size(const Fact *fact) {
    if (fact->kind == FACT_INT) return fact->as.integer;
    bool whole = fact->kind == FACT_FLOAT && fact->known && fact->as.number > -1e15 &&
                 fact->as.number < 1e15;
    return whole && fact->as.number == (double)(int64_t)fact->as.number ? (int64_t)fact->as.number
                                                                        : SIZE_UNKNOWN;
}

int64_t rule_size(const RuleCall *call, const char *name, int64_t fallback) {
    int index = catalog_parameter(&call->row->signature, name);
    const Fact *fact = index < 0 ? NULL : rule_argument(call, name);
    if (fact) return fact_size(fact);
    const Param *param = index < 0 ? NULL : &call->row->signature.params[index];
    return param && param->default_kind == DEFAULT_INT ? param->fallback.integer : fallback;
}

static bool sizes_of_items(const Fact **items, size_t count, Shape *out) {
    if (count > RANK_MAX) return false;
    ASSERT(count <= RANK_MAX);
    out->rank = (int)count;
    for (size_t i = 0; i < count; i++) out->dims[i] = fact_size(items[i]);
    return true;
}

bool rule_sizes(const RuleCall *call, const Fact *fact, Shape *out) {
    *out = (Shape){.rank = 0};
    if (fact->kind == FACT_INT || fact->kind == FACT_FLOAT) {
        out->rank = 1;
        out->dims[0] = fact_size(fact);
        return true;
    }
    if (fact->kind == FACT_LIST || fact->kind == FACT_TUPLE)
        return infer_members_known(call->in, fact) &&
               sizes_of_items(fact->as.list.items, fact->as.list.count, out);
    if (!fact_has_shape(fact) || fact->as.tensor.type.shape.rank != 1) return false;
    int64_t count = fact->as.tensor.type.shape.dims[0];
    if (!size_is_known(count) || count > RANK_MAX) return false;
    out->rank = (int)count;
    for (int i = 0; i < out->rank; i++)
        out->dims[i] = fact->as.tensor.values ? fact->as.tensor.values[i] : SIZE_UNKNOWN;
    return true;
}

DType rule_dtype(const RuleCall *call, DType fallback) {
    DType dtype;
    const Fact *fact = rule_argument(call, "dtype");
    if (!fact) return fallback;
    if (fact->kind == FACT_DTYPE) return fact->as.dtype;
    bool named = fact->kind == FACT_STRING && fact->known &&
                 dtype_find(fact->as.string.bytes, fact->as.string.length, &dtype);
    return named ? dtype : DTYPE_COUNT;
}

int rule_flag(const RuleCall *call, const char *name, bool fallback) {
    const Fact *fact = rule_argument(call, name);
    if (!fact) return fallback;
    return fact->kind == FACT_BOOL && fact->known ? fact->as.integer != 0 : -1;
}

Status rule_give(const RuleCall *call, DType dtype, const Shape *shape, const Fact **out) {
    *out = fact_tensor(&call->in->arena, dtype, shape);
    return STATUS_OK;
}

DType rule_floating(DType dtype) {
    return dtype == DTYPE_COUNT ? DTYPE_COUNT : dtype_floating(dtype);
}

Status shape_rule_unknown(const RuleCall *call, const Fact **out) {
    (void)call;
    (void)out;
    return STATUS_OK;
}

Status shape_rule_pure(const RuleCall *call, const Fact **out) {
    return shape_rule_unknown(call, out);
}

// --- formulas

// An operand with its dtype's part in the promotion.
static DTypeTier tier_of(const Fact *fact, const TensorType *type) {
    if (fact->kind != FACT_TENSOR) return DTYPE_TIER_NUMBER;
    return type->shape.rank == 0 ? DTYPE_TIER_RANK_0 : DTYPE_TIER_TENSOR;
}

static Status elementwise(const RuleCall *call, MapRule rule, const Fact **out) {
    ASSERT(call->row != NULL);
    TensorType joint = {.dtype = DTYPE_COUNT};
    DTypePromotion promotion = DTYPE_PROMOTION_NONE;
    bool known = true, known_dtypes = true, plain = true, first = true;
    for (int i = 0; i < call->row->signature.count; i++) {
        if (!call->values[i]) continue;
        const Fact *fact = call->values[i]->fact;
        plain = plain && fact->kind != FACT_TENSOR;
        TensorType type;
        if (!rule_type(fact, &type)) {
            known = false;
            continue;
        }
        if (fact->kind == FACT_ANY) known = false;
        if (first)
            joint = type;
        else
            TRY(shape_broadcast(call->name, &joint, &type, &joint.shape));
        first = false;
        if (rule == MAP_RULE_WHERE && i == 0) continue; // the condition
        if (type.dtype == DTYPE_COUNT)
            known_dtypes = false;
        else
            dtype_promotion_add(&promotion, tier_of(fact, &type), type.dtype);
    }
    if (!known || first) return STATUS_OK;
    if (plain) { // numbers alone give a number
        *out = &fact_any;
        return STATUS_OK;
    }
    DType dtype = dtype_of_map(rule, dtype_promotion_result(&promotion));
    if (!known_dtypes && dtype != DTYPE_BOOL) dtype = DTYPE_COUNT;
    return rule_give(call, dtype, &joint.shape, out);
}

#define MAP_RULE(name)                                                                             \
    static Status map_##name(const RuleCall *call, const Fact **out) {                             \
        return elementwise(call, MAP_RULE_##name, out);                                            \
    }
MAP_RULE(ARITHMETIC)
MAP_RULE(KEEP)
MAP_RULE(FLOAT)
MAP_RULE(DIVIDE)
MAP_RULE(COMPARE)
MAP_RULE(APPROXIMATE)
MAP_RULE(LOGICAL)
MAP_RULE(INTEGER)
MAP_RULE(WHERE)

// --- the table

static const ShapeRule op_rules[] = {
// as Builtin.id counts them
#define OP_MAP(id, map, rule, ...) map_##rule,
#define OP_RUN(id, outputs, shape, ...) shape_rule_##shape,
#define OP_OVERLOAD(id, name, outputs, shape, ...) shape_rule_##shape,
#include "catalog/ops.def"
};

static const ShapeRule function_rules[FUNCTION_ID_COUNT] = {
#define SHAPE_FUNCTION(id, rule) [FUNCTION_ID_##id] = shape_rule_##rule,
#include "catalog/shapes.def"
#undef SHAPE_FUNCTION
};

ShapeRule shape_rule_find(const Builtin *row) {
    return row->kind == ROW_OP ? op_rules[row->id] : function_rules[row->id];
}
