// Rules of products, networks' layers, attention, indexes and losses.
#include "check/infer/shape_rule.h"
#include "shape/einsum.h"
#include "shape/rules.h"

#define GIVEN_X(x)                                                                                 \
    TensorType x;                                                                                  \
    bool x##_given;                                                                                \
    if (!rule_tensor(call, #x, &x, &x##_given)) return STATUS_OK
// One that may be absent: NULL then; what is given and not known ends the rule.
#define OPTIONAL_X(x)                                                                              \
    TensorType x;                                                                                  \
    bool x##_given;                                                                                \
    if (!rule_tensor(call, #x, &x, &x##_given) && x##_given) return STATUS_OK

static DType promoted(DType x, DType y) {
    return x == DTYPE_COUNT || y == DTYPE_COUNT ? DTYPE_COUNT : dtype_promote(x, y);
}

// --- products

static Status product(const RuleCall *call, const TensorType *a, const TensorType *b,
                      const Fact **out) {
    Shape shape;
    TRY(shape_matmul(call->name, a, b, &shape));
    return rule_give(call, promoted(a->dtype, b->dtype), &shape, out);
}

Status shape_rule_matmul(const RuleCall *call, const Fact **out) {
    GIVEN_X(a);
    GIVEN_X(b);
    return product(call, &a, &b, out);
}
Status shape_rule_bmm(const RuleCall *call, const Fact **out) {
    GIVEN_X(a);
    GIVEN_X(b);
    TRY(shape_bmm(&a, &b));
    return product(call, &a, &b, out);
}

Status shape_rule_linear(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(weight);
    OPTIONAL_X(bias);
    Shape shape;
    TRY(shape_linear(call->name, &x, &weight, bias_given ? &bias : NULL, &shape));
    return rule_give(call, rule_floating(promoted(x.dtype, weight.dtype)), &shape, out);
}

Status shape_rule_gelu_linear(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(weight);
    OPTIONAL_X(bias);
    TensorType result = {.dtype = rule_floating(promoted(x.dtype, weight.dtype))};
    TRY(shape_matmul(call->name, &x, &weight, &result.shape));
    if (bias_given) TRY(shape_broadcast("add", &result, &bias, &result.shape));
    return rule_give(call, result.dtype, &result.shape, out);
}

Status shape_rule_outer(const RuleCall *call, const Fact **out) {
    GIVEN_X(a);
    GIVEN_X(b);
    Shape shape;
    TRY(shape_outer(&a, &b, &shape));
    return rule_give(call, promoted(a.dtype, b.dtype), &shape, out);
}

Status shape_rule_einsum(const RuleCall *call, const Fact **out) {
    const Fact *equation = rule_argument(call, "equation");
    EinsumPlan plan = {.n_terms = (int)call->rest_count};
    if (!equation || equation->kind != FACT_STRING || !equation->known) return STATUS_OK;
    if (call->rest_count < 1 || call->rest_count > OPERANDS_MAX) return STATUS_OK;
    plan.equation =
        arena_copy_string(&call->in->arena, equation->as.string.bytes, equation->as.string.length);
    DType dtype = DTYPE_COUNT;
    for (int i = 0; i < plan.n_terms; i++) {
        if (!rule_type(call->rest[i].fact, &plan.types[i])) return STATUS_OK;
        dtype = i ? promoted(dtype, plan.types[i].dtype) : plan.types[i].dtype;
    }
    TRY(einsum_parse(&plan));
    Shape shape = einsum_shape(&plan);
    return rule_give(call, dtype, &shape, out);
}

// --- matrices

// x's leading dimensions, then those given (-1: none).
static const Fact *matrices(const RuleCall *call, const TensorType *x, int64_t rows,
                            int64_t columns) {
    ASSERT(x->shape.rank >= 2);
    Shape shape = x->shape;
    shape.rank -= 2;
    if (rows != -1) shape.dims[shape.rank++] = rows;
    if (columns != -1) shape.dims[shape.rank++] = columns;
    return fact_tensor(&call->in->arena, rule_floating(x->dtype), &shape);
}

static int64_t size_smaller(int64_t x, int64_t y) {
    if (!size_is_known(x) || !size_is_known(y)) return x == y ? x : SIZE_UNKNOWN;
    return x < y ? x : y;
}

static Status give_tuple(const RuleCall *call, const Fact *const *items, size_t count,
                         const Fact **out) {
    ASSERT(count > 0);
    Fact *tuple = fact_new(&call->in->arena, FACT_TUPLE);
    tuple->known = true;
    tuple->as.list.count = count;
    tuple->as.list.items = arena_allocate(&call->in->arena, count * sizeof(Fact *));
    for (size_t i = 0; i < count; i++) tuple->as.list.items[i] = items[i];
    *out = tuple;
    return STATUS_OK;
}

Status shape_rule_inverse(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    TRY(shape_needs_square(call->name, &x));
    return rule_give(call, rule_floating(x.dtype), &x.shape, out);
}
Status shape_rule_determinant(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    TRY(shape_needs_square(call->name, &x));
    *out = matrices(call, &x, -1, -1);
    return STATUS_OK;
}
Status shape_rule_trace(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    TRY(shape_needs_matrix(call->name, &x));
    x.shape.rank -= 2;
    return rule_give(call, x.dtype, &x.shape, out);
}
Status shape_rule_diag(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int rank = x.shape.rank;
    if (rank != 1) TRY(shape_needs_matrix(call->name, &x));
    if (rank == 1) {
        x.shape.dims[1] = x.shape.dims[0];
        x.shape.rank = 2;
    } else {
        x.shape.dims[rank - 2] = size_smaller(x.shape.dims[rank - 2], x.shape.dims[rank - 1]);
        x.shape.rank--;
    }
    return rule_give(call, x.dtype, &x.shape, out);
}

Status shape_rule_solve(const RuleCall *call, const Fact **out) {
    GIVEN_X(a);
    GIVEN_X(b);
    TRY(shape_needs_square(call->name, &a));
    TRY(shape_solve_side(&a, &b));
    bool plain = a.shape.rank == 2;
    return rule_give(call, rule_floating(promoted(a.dtype, b.dtype)), plain ? &b.shape : NULL, out);
}

Status shape_rule_qr(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    TRY(shape_needs_matrix(call->name, &x));
    ASSERT(x.shape.rank >= 2);
    int64_t m = x.shape.dims[x.shape.rank - 2], n = x.shape.dims[x.shape.rank - 1];
    int64_t k = size_smaller(m, n);
    const Fact *parts[2] = {matrices(call, &x, m, k), matrices(call, &x, k, n)};
    return give_tuple(call, parts, 2, out);
}
Status shape_rule_svd(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    TRY(shape_needs_matrix(call->name, &x));
    ASSERT(x.shape.rank >= 2);
    int64_t m = x.shape.dims[x.shape.rank - 2], n = x.shape.dims[x.shape.rank - 1];
    int64_t k = size_smaller(m, n);
    const Fact *parts[3] = {matrices(call, &x, m, k), matrices(call, &x, k, -1),
                            matrices(call, &x, k, n)};
    return give_tuple(call, parts, 3, out);
}
Status shape_rule_eigh(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    TRY(shape_needs_square(call->name, &x));
    ASSERT(x.shape.rank >= 2);
    int64_t n = x.shape.dims[x.shape.rank - 1];
    const Fact *parts[2] = {matrices(call, &x, n, -1), matrices(call, &x, n, n)};
    return give_tuple(call, parts, 2, out);
}

// --- windows

// One number for both, or one each; false when it is not known or none that the operation takes.
static bool read_pair(const RuleCall *call, const char *name, int64_t least, Pair *pair) {
    const Fact *given = rule_argument(call, name);
    Shape sizes;
    if (!given) return true;
    if (!rule_sizes(call, given, &sizes) || sizes.rank < 1 || sizes.rank > 2) return false;
    *pair = (Pair){sizes.dims[0], sizes.dims[sizes.rank - 1]};
    return size_is_known(pair->h) && size_is_known(pair->w) && pair->h >= least &&
           pair->w >= least && pair->h <= INT32_MAX && pair->w <= INT32_MAX;
}

static void insert_dim(Shape *shape, int at) {
    for (int i = shape->rank++; i > at; i--) shape->dims[i] = shape->dims[i - 1];
    shape->dims[at] = 1;
}

static Status convolution(const RuleCall *call, bool line, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(weight);
    OPTIONAL_X(bias);
    TRY(shape_convolution_ranks(call->name, line, &x, &weight));
    Convolution options = {{1, 1}, {0, 0}, {1, 1}, rule_size(call, "groups", 1)};
    bool known = read_pair(call, "stride", 1, &options.stride) &&
                 read_pair(call, "padding", 0, &options.padding) &&
                 read_pair(call, "dilation", 1, &options.dilation);
    if (!known || !size_is_known(options.groups)) return STATUS_OK;
    if (line) {
        options.stride.h = options.dilation.h = 1;
        options.padding.h = 0;
    }
    bool single = x.shape.rank == (line ? 2 : 3);
    TensorType image = x, window = weight;
    if (single) insert_dim(&image.shape, 0);
    if (line) insert_dim(&image.shape, 2);
    if (line) insert_dim(&window.shape, 2);
    Shape shape;
    Convolved operands = {&image, &window, bias_given ? &bias : NULL};
    TRY(shape_convolve(call->name, &operands, &options, &shape));
    if (line) shape_remove_dim(&shape, 2);
    if (single) shape_remove_dim(&shape, 0);
    return rule_give(call, rule_floating(promoted(x.dtype, weight.dtype)), &shape, out);
}

Status shape_rule_conv1d(const RuleCall *call, const Fact **out) {
    return convolution(call, true, out);
}
Status shape_rule_conv2d(const RuleCall *call, const Fact **out) {
    return convolution(call, false, out);
}

Status shape_rule_pool(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    if (x.shape.rank != 4 && x.shape.rank != 3)
        return fail(STATUS_SHAPE, "%s: x must be [batch, channels, height, width], but it is %s",
                    call->name, tensor_type_text(&x).text);
    Pooling options = {.size = {1, 1}};
    bool known = read_pair(call, "size", 1, &options.size);
    options.stride = options.size;
    known = known && read_pair(call, "stride", 1, &options.stride) &&
            read_pair(call, "padding", 0, &options.padding);
    if (!known) return STATUS_OK;
    bool single = x.shape.rank == 3;
    if (single) insert_dim(&x.shape, 0);
    Shape shape;
    TRY(shape_pool(call->name, &x, &options, &shape));
    if (single) shape_remove_dim(&shape, 0);
    return rule_give(call, rule_floating(x.dtype), &shape, out);
}

// --- normalisation

Status shape_rule_rms_norm(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    OPTIONAL_X(weight);
    if (weight_given) TRY(shape_trailing(call->name, &x, &weight.shape, "weight"));
    return rule_give(call, rule_floating(x.dtype), &x.shape, out);
}

// Integers are the normalised shape, float tensors weight and bias, one number eps.
Status shape_rule_layer_norm(const RuleCall *call, const Fact **out) {
    static const char *const names[] = {"shape", "weight", "bias"};
    GIVEN_X(x);
    const char *what = "weight";
    for (int i = 0; i < 3; i++) {
        const Fact *given = rule_argument(call, names[i]);
        TensorType type;
        Shape trailing;
        if (!given || fact_is_number(given)) continue;
        bool list = given->kind == FACT_LIST || given->kind == FACT_TUPLE;
        bool typed = rule_type(given, &type);
        if (!list && (!typed || type.dtype == DTYPE_COUNT)) return STATUS_OK;
        if (i == 0 && (list || dtype_kind(type.dtype) == DTYPE_KIND_INT)) {
            if (!rule_sizes(call, given, &trailing)) return STATUS_OK;
            TRY(shape_trailing(call->name, &x, &trailing, "the normalised shape"));
        } else if (!list && type.shape.rank > 0 && dtype_is_float(type.dtype)) {
            TRY(shape_trailing(call->name, &x, &type.shape, what));
            what = "bias";
        }
    }
    return rule_give(call, rule_floating(x.dtype), &x.shape, out);
}

Status shape_rule_batch_norm(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    OPTIONAL_X(weight);
    OPTIONAL_X(bias);
    TensorType result = {.dtype = rule_floating(x.dtype), .shape = x.shape};
    if (weight_given) TRY(shape_broadcast("mul", &result, &weight, &result.shape));
    if (bias_given) TRY(shape_broadcast("add", &result, &bias, &result.shape));
    return rule_give(call, result.dtype, &result.shape, out);
}

Status shape_rule_group_norm(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    OPTIONAL_X(weight);
    OPTIONAL_X(bias);
    int64_t groups = rule_size(call, "groups", SIZE_UNKNOWN);
    if (!size_is_known(groups)) return STATUS_OK;
    TRY(shape_groups(&x, groups));
    if (weight_given) TRY(shape_per_channel(call->name, &x, &weight, "weight"));
    if (bias_given) TRY(shape_per_channel(call->name, &x, &bias, "bias"));
    return rule_give(call, rule_floating(x.dtype), &x.shape, out);
}

// --- recurrent cells

Status shape_rule_lstm_cell(const RuleCall *call, const Fact **out) {
    GIVEN_X(gates);
    GIVEN_X(c);
    TRY(shape_gates(call->name, "gates", &gates, &c, 4));
    DType dtype = rule_floating(promoted(gates.dtype, c.dtype));
    const Fact *state = fact_tensor(&call->in->arena, dtype, &c.shape);
    return give_tuple(call, (const Fact *const[]){state, state}, 2, out);
}

Status shape_rule_gru_cell(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(hidden);
    GIVEN_X(h);
    TRY(shape_gates(call->name, "x", &x, &h, 3));
    TRY(shape_gates(call->name, "hidden", &hidden, &h, 3));
    DType dtype = promoted(promoted(x.dtype, hidden.dtype), h.dtype);
    return rule_give(call, rule_floating(dtype), &h.shape, out);
}

// --- attention

Status shape_rule_attention_mask(const RuleCall *call, const Fact **out) {
    GIVEN_X(scores);
    GIVEN_X(mask);
    Shape shape;
    TRY(shape_broadcast(call->name, &scores, &mask, &shape));
    return rule_give(call, rule_floating(scores.dtype), &shape, out);
}

static Status rope(const RuleCall *call, TensorType *x, int64_t *rotary, const Fact **out) {
    *rotary = SIZE_UNKNOWN;
    TRY(shape_rope(x, SIZE_UNKNOWN));
    *rotary = rule_argument(call, "rotary") ? rule_size(call, "rotary", SIZE_UNKNOWN)
                                            : x->shape.dims[x->shape.rank - 1];
    TRY(shape_rope(x, *rotary));
    return rule_give(call, rule_floating(x->dtype), &x->shape, out);
}

Status shape_rule_rope(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t rotary;
    return rope(call, &x, &rotary, out);
}

Status shape_rule_rope_tables(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t rotary, offset = rule_size(call, "offset", 0);
    TRY(rope(call, &x, &rotary, out));
    GIVEN_X(cos);
    GIVEN_X(sin);
    TRY(shape_rope_table(&x, &cos, rotary, offset));
    return shape_rope_table(&x, &sin, rotary, offset);
}

Status shape_rule_attention(const RuleCall *call, const Fact **out) {
    GIVEN_X(q);
    GIVEN_X(k);
    GIVEN_X(v);
    OPTIONAL_X(mask);
    Shape shape;
    OPTIONAL_X(sinks);
    TRY(shape_attention(&q, &k, &v, mask_given ? &mask : NULL, &shape));
    if (sinks_given) TRY(shape_attention_sinks(&q, &sinks));
    shape.dims[shape.rank++] = q.shape.dims[q.shape.rank - 3];
    shape.dims[shape.rank++] = q.shape.dims[q.shape.rank - 2];
    shape.dims[shape.rank++] = v.shape.dims[v.shape.rank - 1];
    DType dtype = promoted(promoted(q.dtype, k.dtype), v.dtype);
    return rule_give(call, rule_floating(dtype), &shape, out);
}

Status shape_rule_linear_attention(const RuleCall *call, const Fact **out) {
    GIVEN_X(q);
    GIVEN_X(k);
    GIVEN_X(v);
    GIVEN_X(decay);
    OPTIONAL_X(state);
    OPTIONAL_X(beta);
    const TensorType *inputs[6] = {
        &q, &k, &v, &decay, state_given ? &state : NULL, beta_given ? &beta : NULL};
    DType dtype = DTYPE_FLOAT32;
    for (int i = 0; i < 6 && dtype != DTYPE_COUNT; i++) {
        if (!inputs[i] || inputs[i]->dtype == DTYPE_FLOAT32) continue;
        if (inputs[i]->dtype == DTYPE_COUNT || inputs[i]->dtype == DTYPE_FLOAT64)
            dtype = inputs[i]->dtype;
    }
    Shape shape;
    TRY(shape_linear_attention(inputs, &shape));
    return rule_give(call, dtype, &shape, out);
}

Status shape_rule_cached_attention(const RuleCall *call, const Fact **out) {
    GIVEN_X(q);
    GIVEN_X(k);
    GIVEN_X(v);
    GIVEN_X(weight);
    const TensorType *inputs[4] = {&q, &k, &v, &weight};
    TRY(shape_cached_attention(inputs, rule_size(call, "heads", 32)));
    Shape shape = {.rank = 2, .dims = {q.shape.dims[0], weight.shape.dims[0]}};
    return rule_give(call, DTYPE_COUNT, &shape, out);
}

Status shape_rule_repeat_heads(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    int64_t n = rule_size(call, "n", SIZE_UNKNOWN);
    TRY(shape_repeat_heads(&x));
    int64_t *heads = &x.shape.dims[x.shape.rank - 2];
    *heads = size_multiply(*heads, n);
    return rule_give(call, x.dtype, &x.shape, out);
}

// --- indexes

static Status dim_of(const RuleCall *call, TensorType *x, int *at, bool *known) {
    int64_t dim = rule_size(call, "dim", SIZE_UNKNOWN);
    *known = size_is_known(dim);
    *at = 0;
    if (x->shape.rank == 0) insert_dim(&x->shape, 0);
    return *known ? shape_dim(x, dim, at) : STATUS_OK;
}

// What an index along dim `at` selects: its own shape; of rank 1, whole slices of x.
static Status shape_selected(const RuleCall *call, const TensorType *x, int at,
                             const TensorType *index, Shape *out) {
    *out = index->shape;
    if (index->shape.rank != 1) return shape_gather(call->name, x, at, index);
    ASSERT(at >= 0 && at < x->shape.rank);
    *out = x->shape;
    out->dims[at] = index->shape.dims[0];
    return STATUS_OK;
}

Status shape_rule_gather(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(index);
    int at;
    bool known;
    TRY(dim_of(call, &x, &at, &known));
    if (!known) return STATUS_OK;
    Shape shape;
    TRY(shape_selected(call, &x, at, &index, &shape));
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_scatter(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(index);
    GIVEN_X(source);
    int at;
    bool known;
    TensorType given = x;
    TRY(dim_of(call, &x, &at, &known));
    if (!known) return STATUS_OK;
    Shape selected;
    TRY(shape_selected(call, &x, at, &index, &selected));
    TRY(shape_scatter_source(call->name, &source, &x, &selected));
    return rule_give(call, given.dtype, &given.shape, out);
}

// The index's dimensions in the place of one of x.
static Status select_shaped(const RuleCall *call, const TensorType *x, int at,
                            const TensorType *index, const Fact **out) {
    TRY(shape_gather_rank(call->name, x, index));
    ASSERT(at >= 0 && at < x->shape.rank);
    Shape shape = {.rank = 0};
    for (int i = 0; i < x->shape.rank; i++) {
        if (i != at) shape.dims[shape.rank++] = x->shape.dims[i];
        for (int j = 0; i == at && j < index->shape.rank; j++)
            shape.dims[shape.rank++] = index->shape.dims[j];
    }
    DType dtype = x->dtype != DTYPE_COUNT && dtype_is_quant(x->dtype) ? DTYPE_FLOAT32 : x->dtype;
    return rule_give(call, dtype, &shape, out);
}

Status shape_rule_index_select(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(index);
    int at;
    bool known;
    TRY(dim_of(call, &x, &at, &known));
    if (!known) return STATUS_OK;
    TRY(shape_index_line(&index));
    x.shape.dims[at] = index.shape.rank ? index.shape.dims[0] : 1;
    return rule_give(call, x.dtype, &x.shape, out);
}

Status shape_rule_take(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(index);
    int at = 0;
    bool known = true;
    if (rule_argument(call, "dim"))
        TRY(dim_of(call, &x, &at, &known));
    else
        x.shape = (Shape){.rank = 1, .dims = {shape_count(&x.shape)}};
    return known ? select_shaped(call, &x, at, &index, out) : STATUS_OK;
}

static Status embed(const RuleCall *call, const TensorType *table, const TensorType *ids,
                    const Fact **out) {
    TRY(shape_embedding(table));
    return select_shaped(call, table, 0, ids, out);
}

Status shape_rule_embedding(const RuleCall *call, const Fact **out) {
    GIVEN_X(table);
    TRY(shape_embedding(&table));
    GIVEN_X(ids);
    return embed(call, &table, &ids, out);
}
Status shape_rule_embedding_turned(const RuleCall *call, const Fact **out) {
    return shape_rule_embedding(call, out);
}

Status shape_rule_masked_select(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(mask);
    Shape shape;
    TRY(shape_broadcast(call->name, &x, &mask, &shape));
    shape = (Shape){.rank = 1, .dims = {SIZE_UNKNOWN}};
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_masked_fill(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(mask);
    Shape shape;
    TRY(shape_broadcast(call->name, &x, &mask, &shape));
    return rule_give(call, x.dtype, &shape, out);
}

Status shape_rule_nonzero(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    Shape shape = {.rank = 2, .dims = {SIZE_UNKNOWN, x.shape.rank ? x.shape.rank : 1}};
    return rule_give(call, DTYPE_INT64, &shape, out);
}

// --- losses

// One number, or with reduction "none" the shape of what is reduced.
static Status give_loss(const RuleCall *call, DType dtype, const Shape *each, const Fact **out) {
    const Fact *given = rule_argument(call, "reduction");
    Reduction reduction = REDUCTION_MEAN;
    Shape number = {.rank = 0};
    if (given && (given->kind != FACT_STRING || !given->known)) return STATUS_OK;
    if (given)
        TRY(shape_reduction(call->name, given->as.string.bytes, given->as.string.length,
                            &reduction));
    return rule_give(call, rule_floating(dtype), reduction == REDUCTION_NONE ? each : &number, out);
}

static Status loss(const RuleCall *call, const char *left, const char *right, const Fact **out) {
    TensorType x, y;
    bool given;
    if (!rule_tensor(call, left, &x, &given) || !rule_tensor(call, right, &y, &given))
        return STATUS_OK;
    TRY(shape_same(call->name, &x, &y));
    Shape each = x.shape.rank ? x.shape : y.shape;
    return give_loss(call, promoted(x.dtype, y.dtype), &each, out);
}

Status shape_rule_loss(const RuleCall *call, const Fact **out) {
    return loss(call, "x", "target", out);
}
Status shape_rule_loss_ranked(const RuleCall *call, const Fact **out) {
    return loss(call, "positive", "negative", out);
}
Status shape_rule_loss_binary(const RuleCall *call, const Fact **out) {
    TRY(loss(call, "score", "target", out));
    GIVEN_X(score);
    OPTIONAL_X(pos_weight);
    if (!pos_weight_given) return STATUS_OK;
    return shape_stretched(call->name, &score, &pos_weight.shape, "pos_weight");
}

// One number a row of x is reduced.
static Status loss_of_rows(const RuleCall *call, const TensorType *x, const Fact **out) {
    OPTIONAL_X(weight);
    if (weight_given) TRY(shape_class_weights(call->name, x, &weight));
    Shape rows = x->shape;
    if (rows.rank > 0) rows.rank--;
    return give_loss(call, x->dtype, &rows, out);
}

Status shape_rule_kl_div(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(target);
    TRY(shape_same(call->name, &x, &target));
    TensorType each = {.dtype = promoted(x.dtype, target.dtype),
                       .shape = x.shape.rank ? x.shape : target.shape};
    return loss_of_rows(call, &each, out);
}

Status shape_rule_cross_entropy(const RuleCall *call, const Fact **out) {
    GIVEN_X(logits);
    GIVEN_X(target);
    if (logits.shape.rank == 0)
        return fail(STATUS_SHAPE, "cross_entropy needs logits [.., classes], but it is given %s",
                    tensor_type_text(&logits).text);
    bool may_expect = target.dtype == DTYPE_COUNT || dtype_is_float(target.dtype);
    bool expects = may_expect && !shapes_differ(&logits.shape, &target.shape);
    if (!expects) TRY(shape_classes(call->name, &logits, &target));
    return loss_of_rows(call, &logits, out);
}

Status shape_rule_nll_loss(const RuleCall *call, const Fact **out) {
    GIVEN_X(x);
    GIVEN_X(target);
    TRY(shape_classes(call->name, &x, &target));
    return loss_of_rows(call, &x, out);
}
