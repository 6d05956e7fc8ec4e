// Rules of reductions and of what works along one dimension, and of plain questions about shapes.
#include "base/utf8.h"
#include "check/infer/shape_rule.h"

#define GIVEN_X(x)                                                                                 \
    TensorType x;                                                                                  \
    bool x##_given;                                                                                \
    if (!rule_tensor(call, #x, &x, &x##_given)) return STATUS_OK

// A number has a dimension 0 here.
static Status dim_of(const TensorType *x, int64_t dim, int *out) {
    ASSERT(x->shape.rank >= 0 && x->shape.rank <= RANK_MAX);
    *out = 0;
    if (x->shape.rank == 0 && (dim == 0 || dim == -1)) return STATUS_OK;
    return shape_dim(x, dim, out);
}

// Which dimensions go; *known: whether that can be told.
static Status read_gone(const RuleCall *call, const TensorType *x, bool *gone, bool *known) {
    const Fact *dims = rule_argument(call, "dims");
    Shape list = {.rank = 0};
    int at;
    *known = true;
    if (dims) {
        *known = rule_sizes(call, dims, &list) && shape_is_known(&list);
    } else if (rule_argument(call, "dim")) {
        list = (Shape){.rank = 1, .dims = {rule_size(call, "dim", SIZE_UNKNOWN)}};
        *known = size_is_known(list.dims[0]);
    } else {
        for (int i = 0; i < x->shape.rank; i++) gone[i] = true;
    }
    for (int i = 0; *known && i < list.rank; i++) {
        TRY(dim_of(x, list.dims[i], &at));
        gone[at] = true;
    }
    return STATUS_OK;
}

static Status reduce(const RuleCall *call, const TensorType *x, DType dtype, const Fact **out) {
    bool gone[RANK_MAX + 1] = {false}, known;
    TRY(read_gone(call, x, gone, &known));
    int keep = rule_flag(call, "keepdim", false);
    if (!known || keep < 0) return rule_give(call, dtype, NULL, out);
    Shape shape = {.rank = 0};
    for (int i = 0; i < x->shape.rank; i++)
        if (!gone[i] || keep) shape.dims[shape.rank++] = gone[i] ? 1 : x->shape.dims[i];
    return rule_give(call, dtype, &shape, out);
}

Status shape_rule_reduce_FLOAT(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    return reduce(call, &x, rule_floating(x.dtype), out);
}

Status shape_rule_reduce_SUM(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    bool whole = x.dtype != DTYPE_COUNT && !dtype_is_float(x.dtype) && !dtype_is_quant(x.dtype);
    return reduce(call, &x, whole ? DTYPE_INT64 : rule_floating(x.dtype), out);
}

// max and min of something of rank 0 next to an int compare the two.
Status shape_rule_reduce_SAME(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    if (x.shape.rank == 0) {
        *out = &fact_any;
        return STATUS_OK;
    }
    return reduce(call, &x, x.dtype, out);
}
Status shape_rule_reduce_BOOL(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    return reduce(call, &x, DTYPE_BOOL, out);
}
Status shape_rule_reduce_INT64(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    return reduce(call, &x, DTYPE_INT64, out);
}

static Status along(const RuleCall *call, const TensorType *x, DType dtype, const Fact **out) {
    int64_t dim = rule_size(call, "dim", -1);
    int at;
    if (size_is_known(dim)) TRY(dim_of(x, dim, &at));
    return rule_give(call, dtype, &x->shape, out);
}

Status shape_rule_along(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    return along(call, &x, x.dtype, out);
}
Status shape_rule_along_index(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    return along(call, &x, DTYPE_INT64, out);
}
Status shape_rule_along_floating(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    return along(call, &x, rule_floating(x.dtype), out);
}

Status shape_rule_scan(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    bool whole = x.dtype != DTYPE_COUNT && !dtype_is_float(x.dtype);
    DType dtype = whole ? DTYPE_INT64 : x.dtype;
    if (rule_argument(call, "dim")) return along(call, &x, dtype, out);
    Shape line = {.rank = 1, .dims = {shape_count(&x.shape)}};
    return rule_give(call, dtype, &line, out);
}

Status shape_rule_topk(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t dim = rule_size(call, "dim", -1);
    int at;
    if (!size_is_known(dim)) return STATUS_OK;
    TRY(dim_of(&x, dim, &at));
    if (x.shape.rank == 0) return STATUS_OK;
    Shape shape = x.shape;
    shape.dims[at] = rule_size(call, "k", SIZE_UNKNOWN);
    Fact *pair = fact_new(&call->in->arena, FACT_TUPLE);
    pair->known = true;
    pair->as.list.count = 2;
    pair->as.list.items = arena_allocate(&call->in->arena, 2 * sizeof(Fact *));
    pair->as.list.items[0] = fact_tensor(&call->in->arena, x.dtype, &shape);
    pair->as.list.items[1] = fact_tensor(&call->in->arena, DTYPE_INT64, &shape);
    *out = pair;
    return STATUS_OK;
}

// --- questions

Status shape_rule_shape(const RuleCall *call, const Fact **out) {
    const Fact *x = rule_argument(call, "x");
    if (!x) return STATUS_OK;
    if (fact_is_number(x)) x = fact_tensor(&call->in->arena, DTYPE_COUNT, &(Shape){.rank = 0});
    if (x->kind == FACT_TENSOR) *out = infer_property(call->in, x, "shape");
    return STATUS_OK;
}

Status shape_rule_rank(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    *out = fact_int(&call->in->arena, x.shape.rank);
    return STATUS_OK;
}

Status shape_rule_numel(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    *out = fact_int(&call->in->arena, shape_count(&x.shape));
    return STATUS_OK;
}

Status shape_rule_len(const RuleCall *call, const Fact **out) {
    const Fact *x = rule_argument(call, "x");
    if (!x) return STATUS_OK;
    if (fact_is_array(x)) *out = fact_int(&call->in->arena, x->as.tensor.type.shape.dims[0]);
    if ((x->kind == FACT_LIST || x->kind == FACT_TUPLE) && infer_members_known(call->in, x))
        *out = fact_int(&call->in->arena, (int64_t)x->as.list.count);
    if (x->kind == FACT_STRING && x->known)
        *out = fact_int(&call->in->arena,
                        (int64_t)utf8_count(x->as.string.bytes, x->as.string.length));
    return STATUS_OK;
}

static Status give_range(const RuleCall *call, int64_t low, int64_t step, const Fact **out) {
    Fact *range = fact_new(&call->in->arena, FACT_RANGE);
    range->as.range.low = low;
    range->as.range.high = rule_size(call, "stop", SIZE_UNKNOWN);
    range->as.range.gaps = step != 1;
    *out = range;
    return STATUS_OK;
}

Status shape_rule_range(const RuleCall *call, const Fact **out) {
    return give_range(call, 0, 1, out);
}
Status shape_rule_range_from(const RuleCall *call, const Fact **out) {
    int64_t step = rule_size(call, "step", 1);
    int64_t low = step > 0 ? rule_size(call, "start", SIZE_UNKNOWN) : SIZE_UNKNOWN;
    return give_range(call, low, step, out);
}
