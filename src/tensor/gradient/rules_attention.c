// Gradient rules of attention and rotary positions.
#include "tensor/attention.h"
#include "tensor/gradient/rules.h"
#include "tensor/join.h"
#include "tensor/rope.h"

#define RULE(name) Status rule_##name(Gradient *g)

// Turning back: the same rotation with the angles negated.
RULE(rope) {
    OpAttributes attributes = *g->attributes;
    bool is_scaled = attributes.given & ATTRIBUTE_BIT(scale);
    attributes.given |= ATTRIBUTE_BIT(scale);
    attributes.scale = is_scaled ? -attributes.scale : -1;
    Term up = gradient_up(g);
    gradient_give(g, 0, term_op(g, OP_rope, &up, 1, &attributes));
    return g->status;
}

// The numbers of x that are turned together: the first (0) or second (1) of every pair.
static Term turned_part(Gradient *g, Term x, const Rope *rope, int which) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    int64_t pairs = rope->rotary / 2, first = rope->half ? which * pairs : which;
    ASSERT(rope->rotary % 2 == 0 && (which == 0 || which == 1));
    int64_t last = rope->half ? first + pairs : rope->rotary, step = rope->half ? 1 : 2;
    int dim = tensor_rank(tensor) - 1;
    return term_take(
        g,
        tensor_slice_by(tensor, dim, &(SliceBounds){true, true, true, first, last, step}, &result),
        &result);
}

// [.., seq, heads, pairs] summed to [seq, pairs], at the rows of a table that were read.
static void give_table(Gradient *g, int input, const Rope *rope, Term each) {
    Shape shape = term_shape(g, each), rows = {.rank = 2};
    ASSERT(input > 0 && input < g->n_inputs);
    bool gone[RANK_MAX] = {false};
    if (shape.rank < 3) return; // after a failure
    for (int i = 0; i < shape.rank; i++) gone[i] = i != shape.rank - 3 && i != shape.rank - 1;
    rows.dims[0] = shape.dims[shape.rank - 3];
    rows.dims[1] = shape.dims[shape.rank - 1];
    Term sum = term_reshape(g, term_sum_kept(g, each, gone), &rows);
    int64_t before[RANK_MAX] = {rope->offset}, after[RANK_MAX] = {0};
    after[0] = g->inputs[input].shape.dims[0] - rope->offset - rows.dims[0];
    Tensor *tensor = term_tensor(g, sum), *result = NULL;
    if (!tensor) return;
    Scalar zero = {.dtype = DTYPE_FLOAT64};
    gradient_give(g, input,
                  term_take(g, tensor_pad(tensor, before, after, zero, &result), &result));
}

// Inputs x, cosines and sines, [rows, rotary / 2]; (a, b) becomes (a cos - b sin, a sin + b cos).
static Status rule_rope_tables(Gradient *g) {
    const Rope *rope = g->kept;
    Term up = gradient_up(g);
    if (gradient_wants(g, 0)) {
        OpAttributes attributes;
        attributes.given = ATTRIBUTE_BIT(style) | ATTRIBUTE_BIT(offset) | ATTRIBUTE_BIT(rotary);
        attributes.style = rope->half ? "half" : "interleaved";
        attributes.offset = rope->offset;
        attributes.rotary = rope->rotary;
        Term inputs[3] = {up, gradient_input(g, 1), term_unary(g, OP_neg, gradient_input(g, 2))};
        gradient_give(g, 0, term_op(g, OP_rope_tables, inputs, 3, &attributes));
    }
    if (!gradient_wants(g, 1) && !gradient_wants(g, 2)) return g->status;
    Term x = gradient_input(g, 0);
    Term a = turned_part(g, x, rope, 0), b = turned_part(g, x, rope, 1);
    Term up_a = turned_part(g, up, rope, 0), up_b = turned_part(g, up, rope, 1);
    if (gradient_wants(g, 1))
        give_table(g, 1, rope, term_add(g, term_mul(g, up_a, a), term_mul(g, up_b, b)));
    if (gradient_wants(g, 2))
        give_table(g, 2, rope, term_sub(g, term_mul(g, up_b, a), term_mul(g, up_a, b)));
    return g->status;
}
const GradientInfo gradient_rope_tables = {
    .name = "rope",
    .rule = rule_rope_tables,
    .saves = {SAVE_Y | SAVE_Z, SAVE_X | SAVE_Y | SAVE_Z, SAVE_X | SAVE_Y | SAVE_Z}};

// In float32 at least, as the forward pass.
static Term wide(Gradient *g, Term x) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    return term_take(g, compose_wide(tensor, &result), &result);
}

// [.., a, b * c, d] with (a, b, c) rotated by `by` places: by 1 it is [.., b, c * a, d], by 2 [..,
// c, a * b, d].
static Term rotate(Gradient *g, Term x, int64_t b, int by) {
    Shape shape = term_shape(g, x), split, order, folded;
    int lead = shape.rank - 3;
    if (lead < 0) return (Term){0};
    const int64_t sizes[3] = {shape.dims[lead], b, b > 0 ? shape.dims[lead + 1] / b : 1};
    split = order = folded = shape;
    split.rank = order.rank = shape.rank + 1;
    split.dims[lead + 3] = shape.dims[lead + 2];
    for (int i = 0; i < order.rank; i++) order.dims[i] = i;
    for (int i = 0; i < 3; i++) {
        split.dims[lead + i] = sizes[i];
        order.dims[lead + i] = lead + (i + by) % 3;
    }
    folded.dims[lead] = sizes[by];
    folded.dims[lead + 1] = sizes[(by + 1) % 3] * sizes[(by + 2) % 3];
    return term_reshape(g, term_permute(g, term_reshape(g, x, &split), &order), &folded);
}

// [.., seq, heads, d] as [.., groups, heads / groups * seq, d]: the heads that share a key
// together.
static Term to_groups(Gradient *g, Term x, int64_t groups) {
    return rotate(g, x, groups, 1);
}

static Term from_groups(Gradient *g, Term x, int64_t seq) {
    Shape shape = term_shape(g, x);
    return shape.rank < 3 ? (Term){0}
                          : rotate(g, x, seq > 0 ? shape.dims[shape.rank - 2] / seq : 1, 2);
}

typedef struct Scores {
    int64_t sq, sk, hq, groups;
    AttentionLimits limits;
    Term capped; // before masks, where there is a cap
    Term sink;   // the shares of sinks, where there are some
} Scores;

// bool [sq, sk]: the keys from the diagonal `first` on, or up to it.
static Term diagonal_mask(Gradient *g, const Scores *s, OpId op, int64_t first) {
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(device);
    attributes.shape = (Shape){.rank = 2, .dims = {s->sq, s->sk}};
    attributes.dtype = DTYPE_FLOAT32;
    attributes.device = g->incoming[0]->device;
    Term ones = term_op(g, OP_ones, NULL, 0, &attributes);
    OpAttributes diagonal;
    diagonal.given = ATTRIBUTE_BIT(k);
    diagonal.k = first;
    return term_op(g, op, &ones, 1, &diagonal);
}

// The mask next to the scores [.., groups, heads / groups * sq, sk].
static Term grouped_mask(Gradient *g, const Scores *s, Term mask) {
    Shape shape = term_shape(g, mask), full = shape;
    if (g->status != STATUS_OK) return (Term){0};
    while (full.rank < 3) {
        for (int i = full.rank; i > 0; i--) full.dims[i] = full.dims[i - 1];
        full.dims[0] = 1;
        full.rank++;
    }
    Term aligned = term_reshape(g, mask, &full);
    full.dims[full.rank - 3] = s->hq;
    full.dims[full.rank - 2] = s->sq;
    full.dims[full.rank - 1] = s->sk;
    Term repeated = term_broadcast(g, aligned, &full);
    full.dims[full.rank - 3] = s->groups;
    full.dims[full.rank - 2] = s->hq / s->groups * s->sq;
    return term_reshape(g, repeated, &full);
}

static bool has_input(const Gradient *g, int input) {
    return g->n_inputs > input && g->inputs[input].is_tensor;
}

// Sinks [hq] next to scores: a column.
static Term sink_column(Gradient *g, const Scores *s, Term scores) {
    Shape shape = term_shape(g, scores), heads = {.rank = 3, .dims = {s->hq, 1, 1}};
    if (g->status != STATUS_OK) return (Term){0};
    Term aligned = term_reshape(g, wide(g, gradient_input(g, 4)), &heads);
    Term rows = term_broadcast(g, aligned, &(Shape){{s->hq, s->sq, 1}, 3});
    Term grouped = term_reshape(g, rows, &(Shape){{s->groups, s->hq / s->groups * s->sq, 1}, 3});
    shape.dims[shape.rank - 1] = 1;
    return term_broadcast(g, grouped, &shape);
}

static Term part_of_last(Gradient *g, Term x, int64_t start, int64_t end) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    return term_take(g, tensor_slice(tensor, -1, start, end, &result), &result);
}

// Softmax next to sinks, whose shares are kept.
static Term softmax_with_sinks(Gradient *g, Scores *s, Term scores) {
    Term both[2] = {scores, sink_column(g, s, scores)};
    Term joined = term_joined(g, both, 2);
    Term shares = term_op(g, OP_softmax, &joined, 1, NULL);
    s->sink = part_of_last(g, shares, s->sk, s->sk + 1);
    return part_of_last(g, shares, 0, s->sk);
}

// The shares that softmax gives each key; a query that sees nothing has none.
static Term shares_of(Gradient *g, Scores *s, Term q, Term k) {
    const AttentionLimits *limits = &s->limits;
    Term scores = term_scaled(g, term_matmul(g, q, term_transposed(g, k)), limits->scale);
    Term masks[3], zero = term_number(g, 0), lowest = term_number(g, -3.0e38);
    int64_t last = s->sk - s->sq;
    int count = 0;
    if (limits->cap > 0) {
        Term part = term_unary(g, OP_tanh, term_scaled(g, scores, 1 / limits->cap));
        s->capped = scores = term_scaled(g, part, limits->cap);
    }
    if (limits->causal) masks[count++] = grouped_mask(g, s, diagonal_mask(g, s, OP_tril, last));
    if (limits->window > 0)
        masks[count++] =
            grouped_mask(g, s, diagonal_mask(g, s, OP_triu, last - limits->window + 1));
    if (has_input(g, 3)) masks[count++] = grouped_mask(g, s, gradient_input(g, 3));
    for (int i = 0; i < count; i++)
        scores = term_where(g, term_binary(g, OP_ne, masks[i], zero), scores, lowest);
    Term shares = has_input(g, 4) ? softmax_with_sinks(g, s, scores)
                                  : term_op(g, OP_softmax, &scores, 1, NULL);
    for (int i = 0; i < count; i++)
        shares = term_where(g, term_binary(g, OP_ne, masks[i], zero), shares, zero);
    return shares;
}

// Whether one kernel makes all three gradients: no mask or limit, and the same leading dimensions.
static bool suits_kernel(const Gradient *g, const AttentionLimits *limits) {
    Shape q = gradient_shape(g, 0), k = gradient_shape(g, 1), v = gradient_shape(g, 2);
    ASSERT(g->n_inputs >= 3);
    bool same = q.rank == k.rank && q.rank == v.rank;
    for (int i = 0; same && i < q.rank - 3; i++)
        same = q.dims[i] == k.dims[i] && q.dims[i] == v.dims[i];
    bool limited = has_input(g, 3) || has_input(g, 4) || limits->cap > 0 || limits->window > 0;
    return same && !limited && gradient_has(g, KERNEL_ATTENTION_GRADIENT);
}

static Status attention_at_once(Gradient *g, const Scores *s) {
    KernelOptions options = {.flag = s->limits.causal, .scalars = {s->limits.scale}};
    Term inputs[4], outputs[3];
    for (int i = 0; i < 3; i++) inputs[i] = gradient_input(g, i);
    inputs[3] = gradient_up(g);
    FusedCall call = {.kernel = KERNEL_ATTENTION_GRADIENT,
                      .options = &options,
                      .inputs = inputs,
                      .n_inputs = 4,
                      .outputs = outputs,
                      .n_outputs = 3};
    term_fused_all(g, &call);
    for (int i = 0; i < 3 && g->status == STATUS_OK; i++)
        if (gradient_wants(g, i)) gradient_give(g, i, outputs[i]);
    return g->status;
}

// What reaches the scores before the cap: of tanh's argument 1 - tanh ** 2.
static Term through_cap(Gradient *g, const Scores *s, Term slopes) {
    Term part = term_scaled(g, s->capped, 1 / s->limits.cap);
    Term bend = term_sub(g, term_number(g, 1), term_mul(g, part, part));
    return term_mul(g, slopes, bend);
}

// Of what each row's scores give, the share that goes to its sink.
static void give_sinks(Gradient *g, const Scores *s, Term along) {
    Term slopes = term_unary(g, OP_neg, term_mul(g, s->sink, along));
    Shape shape = term_shape(g, slopes), rows = shape;
    if (g->status != STATUS_OK) return;
    int lead = shape.rank - 3;
    rows.dims[lead] = s->hq;
    rows.dims[lead + 1] = s->sq;
    bool gone[RANK_MAX] = {0};
    for (int i = 0; i < rows.rank; i++) gone[i] = i != lead;
    Term sums = term_sum_kept(g, term_reshape(g, slopes, &rows), gone);
    gradient_give(g, 4, term_reshape(g, sums, &(Shape){{s->hq}, 1}));
}

// q [.., sq, hq, d], k [.., sk, groups, d], v [.., sk, groups, dv], optional mask and sinks.
static Status rule_attention(Gradient *g) {
    Shape q_shape = gradient_shape(g, 0), k_shape = gradient_shape(g, 1);
    Scores s = {.sq = q_shape.dims[q_shape.rank - 3],
                .sk = k_shape.dims[k_shape.rank - 3],
                .hq = q_shape.dims[q_shape.rank - 2],
                .groups = k_shape.dims[k_shape.rank - 2],
                .limits = *(const AttentionLimits *)g->kept};
    if (suits_kernel(g, &s.limits)) return attention_at_once(g, &s);
    Term q = to_groups(g, wide(g, gradient_input(g, 0)), s.groups);
    Term k = to_groups(g, wide(g, gradient_input(g, 1)), s.groups);
    Term v = to_groups(g, wide(g, gradient_input(g, 2)), s.groups);
    Term up = to_groups(g, wide(g, gradient_up(g)), s.groups);
    Term shares = shares_of(g, &s, q, k);
    if (gradient_wants(g, 2))
        gradient_give(g, 2, from_groups(g, term_matmul(g, term_transposed(g, shares), up), s.sk));
    bool sinks = has_input(g, 4) && gradient_wants(g, 4);
    if (!gradient_wants(g, 0) && !gradient_wants(g, 1) && !sinks) return g->status;
    Term slopes = term_matmul(g, up, term_transposed(g, v));
    Term along = term_sum_last(g, term_mul(g, slopes, shares));
    if (sinks) give_sinks(g, &s, along);
    Term scores = term_scaled(g, term_mul(g, shares, term_sub(g, slopes, along)), s.limits.scale);
    if (s.limits.cap > 0) scores = through_cap(g, &s, scores);
    if (gradient_wants(g, 0)) gradient_give(g, 0, from_groups(g, term_matmul(g, scores, k), s.sq));
    if (gradient_wants(g, 1))
        gradient_give(g, 1, from_groups(g, term_matmul(g, term_transposed(g, scores), q), s.sk));
    return g->status;
}
enum { SAVE_ALL = SAVE_X | SAVE_Y | SAVE_Z | SAVE_INPUT_3 | SAVE_INPUT_4 };
const GradientInfo gradient_attention = {
    .name = "attention", .rule = rule_attention, .saves = {SAVE_ALL, SAVE_ALL, SAVE_ALL}};
