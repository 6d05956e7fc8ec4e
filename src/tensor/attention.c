// Attention and what belongs to it: masks, rotary positions, grouped heads.
#include <float.h>
#include <math.h>
#include <string.h>

#include "shape/rules.h"
#include "tensor/attention.h"
#include "tensor/gradient/gradient.h"
#include "tensor/rope.h"

// The most negative number of a floating dtype that is not infinite.
static double lowest_finite(DType dtype) {
    ASSERT(dtype_is_float(dtype));
    if (dtype == DTYPE_FLOAT16) return -65504.0;
    if (dtype == DTYPE_BFLOAT16) return -0x1.fep127;
    return dtype == DTYPE_FLOAT64 ? -DBL_MAX : (double)-FLT_MAX;
}

Status op_run_apply_attention_mask(const OpCall *call, Tensor **results) {
    SCOPED_TENSOR(scores);
    SCOPED_TENSOR(masked);
    TensorType type = tensor_type(call->inputs[0].tensor);
    TensorType mask = tensor_type(call->inputs[1].tensor);
    TRY(shape_broadcast(call->op->name, &type, &mask, &type.shape));
    TRY(compose_floating(call->inputs[0].tensor, &scores));
    DType dtype = tensor_dtype(scores);
    TRY(op_ternary(OP_where, op_tensor(call->inputs[1].tensor), op_tensor(scores),
                   op_float(lowest_finite(dtype)), &masked));
    return tensor_cast(masked, dtype, results);
}

static Status read_rope(const OpCall *call, const Tensor *x, Rope *rope) {
    const char *style = ATTRIBUTE_OR(call, style, "interleaved");
    int rank = tensor_rank(x);
    TensorType type = tensor_type(x);
    TRY(shape_rope(&type, SIZE_UNKNOWN));
    int64_t head_dim = x->view.dims[rank - 1];
    *rope = (Rope){.half = strcmp(style, "half") == 0,
                   .rotary = size_given(ATTRIBUTE_OR(call, rotary, head_dim)),
                   .offset = size_given(ATTRIBUTE_OR(call, offset, 0)),
                   .base = ATTRIBUTE_OR(call, base, 10000.0),
                   .scale = ATTRIBUTE_OR(call, scale, 1.0)};
    if (!rope->half && strcmp(style, "interleaved") != 0) {
        (void)fail(STATUS_VALUE, "rope: there is no style \"%s\"", style);
        return fail_help("\"interleaved\" turns pairs (2i, 2i+1), \"half\" pairs (i, i + n/2)");
    }
    TRY(shape_rope(&type, rope->rotary));
    if (!(rope->base > 0))
        return fail(STATUS_VALUE, "rope: base is %g; it must be positive", rope->base);
    return STATUS_OK;
}

static Status rope_run(const OpCall *call, const Rope *rope, Tensor *const *inputs, int n_inputs,
                       Tensor **out) {
    SCOPED_TENSOR(result);
    ASSERT(n_inputs >= 1);
    Shape shape = tensor_shape(inputs[0]);
    TRY(tensor_new(inputs[0]->device, tensor_dtype(inputs[0]), &shape, &result));
    KernelOptions options = {.flag = rope->half,
                             .scalars = {rope->base, rope->scale},
                             .integers = {rope->offset, rope->rotary}};
    TRY(compose_kernel(call, KERNEL_ROPE, &options, (TensorSpan){inputs, n_inputs}, result));
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
    TensorType type = tensor_type(x), table_type = tensor_type(table);
    TRY(shape_rope_table(&type, &table_type, rope->rotary, rope->offset));
    ASSERT(rope->rotary % 2 == 0);
    int64_t pairs = rope->rotary / 2, width = table->view.dims[1];
    SCOPED_TENSOR(same);
    DType dtype = tensor_dtype(x) == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    TRY(tensor_cast(table, dtype, &same));
    if (width == pairs) return compose_give(&same, out);
    if (rope->half) return tensor_slice(same, 1, 0, pairs, out);
    return tensor_slice_by(same, 1, &(SliceBounds){true, true, true, 0, width, 2}, out);
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
    TapeRecord record = tape_begin(&gradient_rope_tables, inputs, 3);
    tape_keep(&record, &rope, sizeof rope);
    return tape_end(&record, rope_run(call, &rope, inputs, 3, results), results);
}

Status op_run_repeat_kv(const OpCall *call, Tensor **results) {
    Tensor *x = call->inputs[0].tensor;
    int64_t n = call->attributes->n;
    int rank = tensor_rank(x);
    TensorType type = tensor_type(x);
    TRY(shape_repeat_heads(&type));
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

// q [.., sq, hq, d], k [.., sk, hkv, d], v [.., sk, hkv, dv], all of one dtype.
typedef struct Attention {
    Tensor *q, *k, *v, *mask, *sinks; // borrowed; the last two may be NULL
    AttentionLimits limits;
    DType dtype; // of the result
    Shape leading;
    int64_t sq, sk, hq, dv;
} Attention;

static Status plan_attention(Attention *a) {
    TensorType q = tensor_type(a->q), k = tensor_type(a->k), v = tensor_type(a->v), mask;
    if (a->mask) mask = tensor_type(a->mask);
    ASSERT(a->q && a->k && a->v);
    TRY(shape_attention(&q, &k, &v, a->mask ? &mask : NULL, &a->leading));
    TensorType sinks;
    if (a->sinks) sinks = tensor_type(a->sinks);
    if (a->sinks) TRY(shape_attention_sinks(&q, &sinks));
    a->sq = q.shape.dims[q.shape.rank - 3];
    a->hq = q.shape.dims[q.shape.rank - 2];
    a->sk = k.shape.dims[k.shape.rank - 3];
    a->dv = v.shape.dims[v.shape.rank - 1];
    return STATUS_OK;
}

static Status attention_mask(const Attention *a, Tensor **out) {
    ASSERT(a->leading.rank + 3 <= RANK_MAX);
    Shape shape = a->leading;
    shape.dims[shape.rank++] = a->hq;
    shape.dims[shape.rank++] = a->sq;
    shape.dims[shape.rank++] = a->sk;
    return tensor_broadcast_to(a->mask, &shape, out);
}

// q, k and v may be different floats: a cache of halves is read where it lies.
static Status attention_kernel(const OpCall *call, Attention *a, Tensor **out) {
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
                         .n_inputs = a->sinks ? 5
                                     : mask   ? 4
                                              : 3,
                         .n_outputs = 1,
                         .inputs = {{.view = &q}, {.view = &k}, {.view = &v}},
                         .outputs = {&result->view},
                         .options = {.op = ATTRIBUTE_OR(call, by_row, false),
                                     .flag = a->limits.causal,
                                     .scalars = {a->limits.scale, a->limits.cap},
                                     .integers = {a->limits.window}},
                         .op_name = call->op->name};
    if (mask) kernel.inputs[3] = compose_operand(mask);
    if (a->sinks) kernel.inputs[4] = compose_operand(a->sinks);
    TRY(op_run_kernel(&kernel));
    return compose_give(&result, out);
}

static Status attention_run(const OpCall *call, Attention *a, Tensor **out) {
    Tensor *inputs[5] = {a->q, a->k, a->v, a->mask, a->sinks};
    TapeRecord record = tape_begin(&gradient_attention, inputs, 5);
    tape_keep(&record, &a->limits, sizeof a->limits);
    return tape_end(&record, attention_kernel(call, a, out), out);
}

static Status read_limits(const OpCall *call, int64_t width, AttentionLimits *out) {
    *out = (AttentionLimits){
        .causal = ATTRIBUTE_OR(call, causal, false),
        .scale = ATTRIBUTE_OR(call, scale, width > 0 ? 1 / sqrt((double)width) : 1),
        .cap = ATTRIBUTE_OR(call, cap, 0),
        .window = ATTRIBUTE_OR(call, window, 0),
    };
    if (op_has(call, ATTRIBUTE_cap) && !(out->cap > 0))
        return fail(STATUS_VALUE, "attention: cap is %g; it must be positive", out->cap);
    if (op_has(call, ATTRIBUTE_window) && out->window < 1)
        return fail(STATUS_VALUE, "attention: window is %lld; it must be positive",
                    (long long)out->window);
    return STATUS_OK;
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
    SCOPED_TENSOR(sinks);
    DType wide = dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
    if (compose_input(call, 4)) TRY(tensor_cast(compose_input(call, 4), wide, &sinks));
    Attention attention = {
        .q = q, .k = k, .v = v, .mask = compose_input(call, 3), .sinks = sinks, .dtype = dtype};
    TRY(read_limits(call, tensor_rank(q) > 0 ? q->view.dims[tensor_rank(q) - 1] : 1,
                    &attention.limits));
    return attention_run(call, &attention, results);
}

// A matrix [seq, heads * head_dim] as [seq, heads, head_dim].
static Status split_heads(Tensor *x, int64_t head_dim, Tensor **out) {
    Shape shape = {.rank = 3, .dims = {x->view.dims[0], x->view.dims[1] / head_dim, head_dim}};
    return tensor_reshape(x, &shape, out);
}

static Status check_cache(const OpCall *call, int64_t heads) {
    TensorType types[4];
    const TensorType *inputs[4];
    for (int i = 0; i < 4; i++) {
        types[i] = tensor_type(call->inputs[i].tensor);
        inputs[i] = &types[i];
    }
    return shape_cached_attention(inputs, heads);
}

Status op_run_attention_with_cache(const OpCall *call, Tensor **results) {
    int64_t heads = size_given(ATTRIBUTE_OR(call, heads, 32));
    TRY(check_cache(call, heads));
    Tensor *inputs[3] = {call->inputs[0].tensor, call->inputs[1].tensor, call->inputs[2].tensor};
    Shape flat = tensor_shape(inputs[0]);
    int64_t head_dim = flat.dims[1] / heads;
    SCOPED_TENSOR(q);
    SCOPED_TENSOR(k);
    SCOPED_TENSOR(v);
    SCOPED_TENSOR(turned);
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
