// Attention and what belongs to it: masks, rotary positions, grouped heads.
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/gradient.h"
#include "tensor/matrix.h"

// The most negative number of a floating dtype that is not infinite.
static double lowest_finite(DType dtype) {
    if (dtype == DTYPE_FLOAT16) return -65504.0;
    if (dtype == DTYPE_BFLOAT16) return -0x1.fep127;
    return dtype == DTYPE_FLOAT64 ? -DBL_MAX : (double)-FLT_MAX;
}

Status op_run_apply_attention_mask(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(scores);
    SCOPED_TENSOR(masked);
    TRY(compose_floating(call->inputs[0].tensor, &scores));
    DType dtype = tensor_dtype(scores);
    TRY(op_ternary(OP_where, op_tensor(call->inputs[1].tensor), op_tensor(scores),
                   op_float(lowest_finite(dtype)), &masked));
    return tensor_cast(masked, dtype, results);
}

typedef struct Rope {
    bool half;
    int64_t rotary, offset; // the first `rotary` numbers of a head are turned
    double base, scale;
} Rope;

static Status read_rope(const OpCall *call, const Tensor *x, Rope *rope) {
    const char *style = ATTRIBUTE_OR(call, style, "interleaved");
    int rank = tensor_rank(x);
    if (rank < 3)
        return fail(STATUS_SHAPE,
                    "rope: x must be [seq, heads, head_dim] or [batch, seq, heads, "
                    "head_dim], but it is %s",
                    tensor_type_name(x).text);
    int64_t head_dim = x->view.dims[rank - 1];
    *rope = (Rope){.half = strcmp(style, "half") == 0,
                   .rotary = ATTRIBUTE_OR(call, rotary, head_dim),
                   .offset = ATTRIBUTE_OR(call, offset, 0),
                   .base = ATTRIBUTE_OR(call, base, 10000.0),
                   .scale = ATTRIBUTE_OR(call, scale, 1.0)};
    if (!rope->half && strcmp(style, "interleaved") != 0) {
        (void)fail(STATUS_VALUE, "rope: there is no style \"%s\"", style);
        return fail_help("\"interleaved\" turns pairs (2i, 2i+1), \"half\" pairs (i, i + n/2)");
    }
    if (rope->rotary < 0 || rope->rotary > head_dim || rope->rotary % 2 != 0)
        return fail(STATUS_SHAPE,
                    "rope: %lld of %lld numbers of each head of %s cannot be turned in "
                    "pairs",
                    (long long)rope->rotary, (long long)head_dim, tensor_type_name(x).text);
    if (!(rope->base > 0))
        return fail(STATUS_VALUE, "rope: base is %g; it must be positive", rope->base);
    return STATUS_OK;
}

static Status rope_run(const OpCall *call, const Rope *rope, Tensor *const *inputs, int n_inputs,
                       Tensor **out) {
    SCOPED_TENSOR(result);
    Shape shape = tensor_shape(inputs[0]);
    TRY(tensor_new(inputs[0]->device, tensor_dtype(inputs[0]), &shape, &result));
    KernelOptions options = {.flag = rope->half,
                             .scalars = {rope->base, rope->scale},
                             .integers = {rope->offset, rope->rotary}};
    TRY(compose_kernel(call, KERNEL_ROPE, &options, inputs, n_inputs, result));
    return compose_give(&result, out);
}

Status op_run_rope(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    Rope rope;
    TRY(compose_floating(call->inputs[0].tensor, &x));
    TRY(read_rope(call, x, &rope));
    return rope_run(call, &rope, &x, 1, results);
}

static Status in_half_style(const OpCall *call, OpId op, Tensor **out) {
    OpCall same = *call;
    OpAttributes attributes = {0};
    if (call->attributes) attributes = *call->attributes;
    attributes.given |= ATTRIBUTE_BIT(style);
    attributes.style = "half";
    same.op = &op_rows[op];
    same.attributes = &attributes;
    return op_apply(&same, out);
}

Status op_run_cndl_rope(const OpCall *call, Tensor **results) {
    return in_half_style(call, OP_rope, results);
}
Status op_run_cndl_rope_tables(const OpCall *call, Tensor **results) {
    return in_half_style(call, OP_rope_tables, results);
}

// A table of cosines or sines as [rows, rotary / 2]: wider ones hold every number twice.
static Status rope_table(const Tensor *x, const Rope *rope, Tensor *table, Tensor **out) {
    int64_t needed = rope->offset + x->view.dims[tensor_rank(x) - 3];
    int64_t pairs = rope->rotary / 2, width = tensor_rank(table) == 2 ? table->view.dims[1] : -1;
    if ((width != pairs && width != 2 * pairs) || rope->offset < 0 ||
        table->view.dims[0] < needed) {
        (void)fail(STATUS_SHAPE,
                   "rope: a table is %s, but %s at offset %lld needs [%lld or more, "
                   "%lld]",
                   tensor_type_name(table).text, tensor_type_name(x).text, (long long)rope->offset,
                   (long long)needed, (long long)pairs);
        return fail_help("precompute_rope_cos(%lld, max_len) makes one", (long long)rope->rotary);
    }
    SCOPED_TENSOR(same);
    DType dtype = tensor_dtype(x) == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    TRY(tensor_cast(table, dtype, &same));
    if (width == pairs) return compose_give(&same, out);
    if (rope->half) return tensor_slice(same, 1, 0, pairs, 1, out);
    return tensor_slice(same, 1, 0, width, 2, out);
}

Status op_run_rope_tables(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(cosines);
    SCOPED_TENSOR(sines);
    Rope rope;
    TRY(compose_floating(call->inputs[0].tensor, &x));
    TRY(read_rope(call, x, &rope));
    TRY(rope_table(x, &rope, call->inputs[1].tensor, &cosines));
    TRY(rope_table(x, &rope, call->inputs[2].tensor, &sines));
    Tensor *inputs[3] = {x, cosines, sines};
    return rope_run(call, &rope, inputs, 3, results);
}

Status op_run_repeat_kv(const OpCall *call, Tensor **results) {
    Tensor *x = call->inputs[0].tensor;
    int64_t n = call->attributes->n;
    int rank = tensor_rank(x);
    if (rank < 2 || rank >= RANK_MAX)
        return fail(STATUS_SHAPE, "repeat_kv: x must be [.., heads, head_dim], but it is %s",
                    tensor_type_name(x).text);
    if (n < 1) return fail(STATUS_VALUE, "repeat_kv: n is %lld; it must be positive", (long long)n);
    Shape wide = tensor_shape(x), shape = wide;
    wide.rank = rank + 1;
    wide.dims[rank] = shape.dims[rank - 1];
    wide.dims[rank - 1] = n;
    if (__builtin_mul_overflow(shape.dims[rank - 2], n, &shape.dims[rank - 2]))
        return fail(STATUS_SHAPE, "repeat_kv: %lld times the heads of %s are too many",
                    (long long)n, tensor_type_name(x).text);
    SCOPED_TENSOR(column);
    SCOPED_TENSOR(repeated);
    TRY(tensor_unsqueeze(x, rank - 1, &column));
    TRY(tensor_broadcast_to(column, &wide, &repeated));
    return tensor_reshape(repeated, &shape, results);
}

// q [.., sq, hq, d], k [.., sk, hkv, d], v [.., sk, hkv, dv], all of one dtype; mask may be NULL.
typedef struct Attention {
    Tensor *q, *k, *v, *mask; // borrowed
    DType dtype;              // of the result
    Shape leading;
    int64_t sq, sk, hq, d, dv;
} Attention;

static Status fail_attention(const Attention *a, const char *problem) {
    return fail(STATUS_SHAPE, "attention: %s: q is %s, k is %s, v is %s", problem,
                tensor_type_name(a->q).text, tensor_type_name(a->k).text,
                tensor_type_name(a->v).text);
}

static Status plan_attention(Attention *a) {
    const TensorView *q = &a->q->view, *k = &a->k->view, *v = &a->v->view;
    if (q->rank < 3 || k->rank < 3 || v->rank < 3)
        return fail_attention(a, "each must be [.., seq, heads, head_dim]");
    const int64_t *q_dims = &q->dims[q->rank - 3], *k_dims = &k->dims[k->rank - 3];
    const int64_t *v_dims = &v->dims[v->rank - 3];
    a->sq = q_dims[0];
    a->hq = q_dims[1];
    a->d = q_dims[2];
    a->sk = k_dims[0];
    a->dv = v_dims[2];
    if (k_dims[0] != v_dims[0] || k_dims[1] != v_dims[1])
        return fail_attention(a, "k and v must have the same sequence and heads");
    if (k_dims[2] != a->d) return fail_attention(a, "the head sizes of q and k differ");
    if (k_dims[1] == 0 || a->hq % k_dims[1] != 0)
        return fail_attention(a, "the heads of q must be a multiple of those of k and v");
    TensorType types[3] = {tensor_type(a->q), tensor_type(a->k), tensor_type(a->v)};
    for (int i = 0; i < 3; i++) types[i].shape.rank -= 3;
    TRY(shape_broadcast("attention", &types[1], &types[2], &types[1].shape));
    return shape_broadcast("attention", &types[0], &types[1], &a->leading);
}

static Status attention_mask(const Attention *a, Tensor **out) {
    Shape shape = a->leading;
    shape.dims[shape.rank++] = a->hq;
    shape.dims[shape.rank++] = a->sq;
    shape.dims[shape.rank++] = a->sk;
    bool fits = tensor_rank(a->mask) <= shape.rank;
    for (int i = 0; fits && i < tensor_rank(a->mask); i++) {
        int64_t size = a->mask->view.dims[i];
        fits = size == 1 || size == shape.dims[shape.rank - tensor_rank(a->mask) + i];
    }
    if (fits) return tensor_broadcast_to(a->mask, &shape, out);
    Text text = {0};
    shape_describe(&shape, &text);
    Status status = fail(STATUS_SHAPE, "attention: the mask is %s, but the scores are %s",
                         tensor_type_name(a->mask).text, text_get(&text));
    text_free(&text);
    return status;
}

// q, k and v may be different floats: a cache of halves is read where it lies.
static Status attention_kernel(const OpCall *call, Attention *a, bool causal, double scale,
                               Tensor **out) {
    TRY(plan_attention(a));
    SCOPED_TENSOR(mask);
    SCOPED_TENSOR(result);
    if (a->mask) TRY(attention_mask(a, &mask));
    Shape shape = a->leading;
    shape.dims[shape.rank++] = a->sq;
    shape.dims[shape.rank++] = a->hq;
    shape.dims[shape.rank++] = a->dv;
    TRY(tensor_new(a->q->device, a->dtype, &shape, &result));
    TensorView q = compose_broadcast_leading(&a->q->view, &a->leading, 3);
    TensorView k = compose_broadcast_leading(&a->k->view, &a->leading, 3);
    TensorView v = compose_broadcast_leading(&a->v->view, &a->leading, 3);
    KernelCall kernel = {.kernel = KERNEL_ATTENTION,
                         .n_inputs = mask ? 4 : 3,
                         .n_outputs = 1,
                         .inputs = {{.view = &q}, {.view = &k}, {.view = &v}},
                         .outputs = {&result->view},
                         .options = {.flag = causal, .scalars = {scale}},
                         .op_name = call->op->name};
    if (mask) kernel.inputs[3] = compose_operand(mask);
    TRY(op_run_kernel(&kernel));
    return compose_give(&result, out);
}

static Status attention_run(const OpCall *call, Attention *a, bool causal, double scale,
                            Tensor **out) {
    Tensor *inputs[4] = {a->q, a->k, a->v, a->mask};
    double kept[2] = {causal, scale};
    TapeRecord record = tape_begin(&gradient_attention, inputs, 4);
    tape_keep(&record, kept, sizeof kept);
    return tape_end(&record, attention_kernel(call, a, causal, scale, out), out);
}

Status op_run_attention(const OpCall *call, Tensor **results) {
    DType dtype = tensor_dtype(call->inputs[0].tensor);
    for (int i = 1; i < 3; i++) dtype = dtype_promote(dtype, tensor_dtype(call->inputs[i].tensor));
    dtype = dtype_floating(dtype);
    SCOPED_TENSOR(q);
    SCOPED_TENSOR(k);
    SCOPED_TENSOR(v);
    TRY(compose_stored_float(call->inputs[0].tensor, dtype, &q));
    TRY(compose_stored_float(call->inputs[1].tensor, dtype, &k));
    TRY(compose_stored_float(call->inputs[2].tensor, dtype, &v));
    Attention attention = {.q = q, .k = k, .v = v, .mask = compose_input(call, 3), .dtype = dtype};
    double d = tensor_rank(q) > 0 ? (double)q->view.dims[tensor_rank(q) - 1] : 1;
    double scale = ATTRIBUTE_OR(call, scale, d > 0 ? 1 / sqrt(d) : 1);
    return attention_run(call, &attention, ATTRIBUTE_OR(call, causal, false), scale, results);
}

// A matrix [seq, heads * head_dim] as [seq, heads, head_dim].
static Status split_heads(Tensor *x, int64_t head_dim, Tensor **out) {
    Shape shape = {.rank = 3, .dims = {x->view.dims[0], x->view.dims[1] / head_dim, head_dim}};
    return tensor_reshape(x, &shape, out);
}

static Status check_cache(const OpCall *call, int64_t heads) {
    for (int i = 0; i < 4; i++)
        if (tensor_rank(call->inputs[i].tensor) != 2)
            return fail(STATUS_SHAPE, "attention_with_cache takes matrices, but argument %d is %s",
                        i + 1, tensor_type_name(call->inputs[i].tensor).text);
    const Tensor *q = call->inputs[0].tensor, *k = call->inputs[1].tensor;
    int64_t width = q->view.dims[1];
    if (heads < 1 || width % heads != 0 || width == 0)
        return fail(STATUS_SHAPE, "attention_with_cache: %lld numbers of %s are not %lld heads",
                    (long long)width, tensor_type_name(q).text, (long long)heads);
    if (k->view.dims[1] % (width / heads) != 0 || q->view.dims[0] > k->view.dims[0])
        return fail(STATUS_SHAPE,
                    "attention_with_cache: keys %s do not fit queries %s of %lld heads",
                    tensor_type_name(k).text, tensor_type_name(q).text, (long long)heads);
    return STATUS_OK;
}

Status op_run_attention_with_cache(const OpCall *call, Tensor **results) {
    int64_t heads = ATTRIBUTE_OR(call, heads, 32);
    TRY(check_cache(call, heads));
    Tensor *inputs[3] = {call->inputs[0].tensor, call->inputs[1].tensor, call->inputs[2].tensor};
    Shape flat = tensor_shape(inputs[0]);
    int64_t head_dim = flat.dims[1] / heads;
    SCOPED_TENSOR(q);
    SCOPED_TENSOR(k);
    SCOPED_TENSOR(v);
    SCOPED_TENSOR(turned);
    if (inputs[2]->view.dims[1] % head_dim != 0)
        return fail(STATUS_SHAPE, "attention_with_cache: values %s are not heads of %lld numbers",
                    tensor_type_name(inputs[2]).text, (long long)head_dim);
    TRY(split_heads(inputs[0], head_dim, &q));
    TRY(split_heads(inputs[1], head_dim, &k));
    TRY(split_heads(inputs[2], head_dim, &v));
    OpAttributes rope = {.given = ATTRIBUTE_BIT(offset),
                         .offset = inputs[1]->view.dims[0] - flat.dims[0]};
    TRY(op_with(OP_rope, &q, 1, &rope, &turned));
    OpAttributes options = {.given = ATTRIBUTE_BIT(causal), .causal = true};
    Tensor *parts[3] = {turned, k, v};
    SCOPED_TENSOR(mixed);
    SCOPED_TENSOR(joined);
    TRY(op_with(OP_attention, parts, 3, &options, &mixed));
    TRY(tensor_reshape(mixed, &flat, &joined));
    Tensor *projection[2] = {joined, call->inputs[3].tensor};
    return op_with(OP_linear, projection, 2, NULL, results);
}
