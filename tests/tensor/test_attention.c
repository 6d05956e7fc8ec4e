// Rotary positions and attention against loops in double.
#include <float.h>

#include "compare.h"

static const DType floats[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { FLOATS = 4, SEQ = 3, HEADS = 2, WIDTH = 6 };

typedef struct Turn {
    bool half;
    int64_t offset, rotary;
    double base, scale;
} Turn;

static void turn_pairs(const double *x, double *want, int64_t seq, const Turn *turn) {
    memcpy(want, x, (size_t)(seq * HEADS * WIDTH) * sizeof *want);
    for (int64_t i = 0; i < seq * HEADS; i++)
        for (int64_t p = 0; p < turn->rotary / 2; p++) {
            double angle = (double)(i / HEADS + turn->offset) * turn->scale *
                           pow(turn->base, -2.0 * (double)p / (double)turn->rotary);
            int64_t a = i * WIDTH + (turn->half ? p : 2 * p);
            int64_t b = turn->half ? a + turn->rotary / 2 : a + 1;
            want[a] = x[a] * cos(angle) - x[b] * sin(angle);
            want[b] = x[a] * sin(angle) + x[b] * cos(angle);
        }
}

static OpAttributes options_of(const Turn *turn) {
    return (OpAttributes){.given = ATTRIBUTE_BIT(offset) | ATTRIBUTE_BIT(rotary) |
                                   ATTRIBUTE_BIT(base) | ATTRIBUTE_BIT(scale) |
                                   ATTRIBUTE_BIT(style),
                          .offset = turn->offset,
                          .rotary = turn->rotary,
                          .base = turn->base,
                          .scale = turn->scale,
                          .style = turn->half ? "half" : "interleaved"};
}

static void test_rope(void **state) {
    (void)state;
    Turn turns[] = {{false, 0, 6, 10000, 1},
                    {true, 0, 6, 10000, 1},
                    {false, 7, 6, 500, 1},
                    {true, 7, 4, 500, 0.5},
                    {false, 100, 2, 10000, 1}};
    Shape shape = SHAPE(SEQ, HEADS, WIDTH), batched = SHAPE(1, SEQ, HEADS, WIDTH);
    for (size_t t = 0; t < sizeof turns / sizeof *turns; t++)
        for (int d = 0; d < FLOATS; d++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                double *values = numbers(SEQ * HEADS * WIDTH, t, floats[d]),
                       want[SEQ * HEADS * WIDTH];
                Tensor *x = laid_out(floats[d], shape, values, (TestLayout)layout), *wide;
                OpAttributes options = options_of(&turns[t]);
                free(values);
                values = read_all(x);
                turn_pairs(values, want, SEQ, &turns[t]);
                OK(tensor_unsqueeze(x, 0, &wide));
                expect(apply(OP_rope, &options, 1, x), floats[d], shape, want);
                expect(apply(OP_rope, &options, 1, wide), floats[d], batched, want);
                if (turns[t].half)
                    expect(apply(OP_cndl_rope, &options, 1, x), floats[d], shape, want);
                tensor_release(wide);
                tensor_release(x);
                free(values);
            }
}

static void test_rope_tables(void **state) {
    (void)state;
    for (int half = 0; half < 2; half++)
        for (int d = 0; d < FLOATS; d++) {
            Turn turn = {half, 2, WIDTH, 10000, 1};
            double *values = numbers(SEQ * HEADS * WIDTH, 8, floats[d]), want[SEQ * HEADS * WIDTH];
            Shape shape = SHAPE(SEQ, HEADS, WIDTH);
            Tensor *x = make_tensor(floats[d], shape, values), *wide_cos, *wide_sin;
            free(values);
            values = read_all(x);
            turn_pairs(values, want, SEQ, &turn);
            OpAttributes size = {.given = ATTRIBUTE_BIT(dtype),
                                 .dtype = d == 3 ? DTYPE_FLOAT64 : DTYPE_FLOAT32,
                                 .head_dim = WIDTH,
                                 .max_len = 8},
                         options = options_of(&turn);
            options.given &= ~(ATTRIBUTE_BIT(base) | ATTRIBUTE_BIT(rotary));
            Tensor *cosines = apply(OP_precompute_rope_cos, &size, 0);
            Tensor *sines = apply(OP_precompute_rope_sin, &size, 0);
            expect(apply(OP_rope_tables, &options, 3, x, cosines, sines), floats[d], shape, want);
            // The same tables with every number twice.
            OpAttributes repeat = {.given = ATTRIBUTE_BIT(repeats) | ATTRIBUTE_BIT(dim),
                                   .repeats = {(int64_t[]){2}, 1},
                                   .dim = 1};
            Tensor *pair[2];
            if (half) {
                OK(tensor_concat((Tensor *[]){cosines, cosines}, 2, 1, &wide_cos));
                OK(tensor_concat((Tensor *[]){sines, sines}, 2, 1, &wide_sin));
            } else {
                wide_cos = apply(OP_repeat, &repeat, 1, cosines);
                wide_sin = apply(OP_repeat, &repeat, 1, sines);
            }
            pair[0] = wide_cos;
            pair[1] = wide_sin;
            expect(apply(OP_rope_tables, &options, 3, x, pair[0], pair[1]), floats[d], shape, want);
            tensor_release(wide_cos);
            tensor_release(wide_sin);
            tensor_release(cosines);
            tensor_release(sines);
            tensor_release(x);
            free(values);
        }
}

typedef struct Sizes {
    int64_t batch, sq, sk, hq, hkv, d, dv;
    bool causal, mask;
    double scale;
} Sizes;

static void attend(const double *q, const double *k, const double *v, const double *mask,
                   const Sizes *s, double *want) {
    double *score = calloc((size_t)s->sk + 1, sizeof *score);
    for (int64_t b = 0; b < s->batch; b++)
        for (int64_t h = 0; h < s->hq; h++)
            for (int64_t i = 0; i < s->sq; i++) {
                int64_t g = h / (s->hq / s->hkv);
                double total = 0;
                for (int64_t j = 0; j < s->sk; j++) {
                    double dot = 0;
                    for (int64_t c = 0; c < s->d; c++)
                        dot += q[((b * s->sq + i) * s->hq + h) * s->d + c] *
                               k[((b * s->sk + j) * s->hkv + g) * s->d + c];
                    bool seen = !(s->causal && j > i + s->sk - s->sq) &&
                                !(mask && mask[i * s->sk + j] == 0);
                    score[j] = seen ? exp(dot * s->scale) : 0;
                    total += score[j];
                }
                for (int64_t c = 0; c < s->dv; c++) {
                    double *out = &want[((b * s->sq + i) * s->hq + h) * s->dv + c];
                    *out = 0;
                    for (int64_t j = 0; j < s->sk && total > 0; j++)
                        *out += score[j] / total * v[((b * s->sk + j) * s->hkv + g) * s->dv + c];
                }
            }
    free(score);
}

static void test_attention(void **state) {
    (void)state;
    Sizes cases[] = {{2, 3, 3, 2, 2, 4, 4, false, false, 0.5},
                     {1, 3, 5, 4, 2, 4, 6, true, false, 0.5},
                     {2, 1, 7, 4, 1, 8, 8, true, false, 1 / sqrt(8)},
                     {1, 4, 4, 2, 2, 4, 4, false, true, 0.3},
                     {1, 4, 6, 2, 1, 4, 4, true, true, 0.5}};
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++)
        for (int t = 0; t < FLOATS; t++)
            for (int layout = 0; layout < LAYOUTS; layout++) {
                Sizes *s = &cases[n];
                Shape sq = {{s->batch, s->sq, s->hq, s->d}, 4},
                      sk = {{s->batch, s->sk, s->hkv, s->d}, 4};
                Shape sv = {{s->batch, s->sk, s->hkv, s->dv}, 4},
                      out = {{s->batch, s->sq, s->hq, s->dv}, 4};
                double *vq = numbers(shape_count(&sq), n, floats[t]);
                double *vk = numbers(shape_count(&sk), n + 1, floats[t]);
                double *vv = numbers(shape_count(&sv), n + 2, floats[t]);
                double *vm = numbers(s->sq * s->sk, n + 3, DTYPE_BOOL);
                double *want = calloc((size_t)shape_count(&out), sizeof *want);
                Tensor *q = laid_out(floats[t], sq, vq, (TestLayout)layout);
                Tensor *k = laid_out(floats[t], sk, vk, (TestLayout)layout);
                Tensor *v = laid_out(floats[t], sv, vv, (TestLayout)layout);
                Tensor *m = make_tensor(layout % 2 ? DTYPE_BOOL : DTYPE_FLOAT32,
                                        (Shape){{s->sq, s->sk}, 2}, vm);
                double *rq = read_all(q), *rk = read_all(k), *rv = read_all(v);
                attend(rq, rk, rv, s->mask ? vm : NULL, s, want);
                OpAttributes a = {.given = ATTRIBUTE_BIT(causal) | ATTRIBUTE_BIT(scale),
                                  .causal = s->causal,
                                  .scale = s->scale};
                Tensor *have = apply(OP_attention, &a, 4, q, k, v, s->mask ? m : NULL);
                assert_int_equal(tensor_dtype(have), floats[t]);
                assert_shape(have, out);
                assert_numbers(have, want, 8 * epsilon_of(floats[t]), "attention");
                tensor_release(have);
                tensor_release(q);
                tensor_release(k);
                tensor_release(v);
                tensor_release(m);
                free(vq), free(vk), free(vv), free(vm), free(want);
                free(rq), free(rk), free(rv);
            }
}

// A query of one float over keys and values of another: on the CPU read where they lie, nothing is
// converted.
static void test_mixed_floats(void **state) {
    (void)state;
    Sizes s = {1, 3, 300, 4, 2, 8, 6, true, false, 0.5};
    Shape sq = SHAPE(3, 4, 8), sk = SHAPE(300, 2, 8), sv = SHAPE(300, 2, 6), out = SHAPE(3, 4, 6);
    Device *device;
    OK(device_default(&device));
    for (int p = 0; p < FLOATS * FLOATS * FLOATS; p++) {
        DType tq = floats[p / 16], tk = floats[p / 4 % 4], tv = floats[p % 4];
        DType dtype = dtype_promote(dtype_promote(tq, tk), tv);
        double *vq = numbers(3 * 4 * 8, 1, tq), *vk = numbers(300 * 2 * 8, 2, tk);
        double *vv = numbers(300 * 2 * 6, 3, tv), want[3 * 4 * 6];
        Tensor *q = make_tensor(tq, sq, vq), *k = make_tensor(tk, sk, vk);
        Tensor *v = make_tensor(tv, sv, vv);
        double *rq = read_all(q), *rk = read_all(k), *rv = read_all(v);
        attend(rq, rk, rv, NULL, &s, want);
        OpAttributes a = {.given = ATTRIBUTE_BIT(causal) | ATTRIBUTE_BIT(scale),
                          .causal = true,
                          .scale = s.scale};
        PoolStatistics before = pool_statistics(device);
        Tensor *have = apply(OP_attention, &a, 3, q, k, v);
        PoolStatistics after = pool_statistics(device);
        if (strcmp(device->name, "cpu") == 0)
            assert_int_equal(after.allocations + after.reuses,
                             before.allocations + before.reuses + 1);
        assert_string_equal(dtype_name(tensor_dtype(have)), dtype_name(dtype));
        assert_shape(have, out);
        assert_numbers(have, want, 8 * epsilon_of(dtype), "attention");
        tensor_release(have), tensor_release(q), tensor_release(k), tensor_release(v);
        free(vq), free(vk), free(vv), free(rq), free(rk), free(rv);
    }
}

static void test_default_scale(void **state) {
    (void)state;
    Sizes s = {1, 2, 2, 1, 1, 4, 4, false, false, 0.5};
    double *x = numbers(8, 3, DTYPE_FLOAT32), want[8];
    Tensor *t = make_tensor(DTYPE_FLOAT32, SHAPE(2, 1, 4), x);
    attend(x, x, x, NULL, &s, want);
    expect(apply(OP_attention, NULL, 3, t, t, t), DTYPE_FLOAT32, SHAPE(2, 1, 4), want);
    tensor_release(t);
    free(x);
}

static void test_with_cache(void **state) {
    (void)state;
    enum { E = HEADS * WIDTH };
    Turn turn = {false, 2, WIDTH, 10000, 1};
    Sizes s = {1, SEQ, SEQ + 2, HEADS, 1, WIDTH, WIDTH, true, false, 1 / sqrt(WIDTH)};
    double *q = numbers(SEQ * E, 1, DTYPE_FLOAT32),
           *k = numbers((SEQ + 2) * WIDTH, 2, DTYPE_FLOAT32);
    double *v = numbers((SEQ + 2) * WIDTH, 3, DTYPE_FLOAT32), *w = numbers(E * E, 4, DTYPE_FLOAT32);
    double turned[SEQ * E], mixed[SEQ * E], want[SEQ * E] = {0};
    turn_pairs(q, turned, SEQ, &turn);
    attend(turned, k, v, NULL, &s, mixed);
    for (int r = 0; r < SEQ; r++)
        for (int o = 0; o < E; o++)
            for (int i = 0; i < E; i++) want[r * E + o] += mixed[r * E + i] * w[o * E + i];
    Tensor *tq = make_tensor(DTYPE_FLOAT32, SHAPE(SEQ, E), q);
    Tensor *tk = make_tensor(DTYPE_FLOAT32, SHAPE(SEQ + 2, WIDTH), k);
    Tensor *tv = make_tensor(DTYPE_FLOAT32, SHAPE(SEQ + 2, WIDTH), v);
    Tensor *tw = make_tensor(DTYPE_FLOAT32, SHAPE(E, E), w);
    OpAttributes a = {.given = ATTRIBUTE_BIT(heads), .heads = HEADS};
    Tensor *have = apply(OP_attention_with_cache, &a, 4, tq, tk, tv, tw);
    assert_shape(have, SHAPE(SEQ, E));
    assert_numbers(have, want, 1e-5, "attention_with_cache");
    tensor_release(have);
    tensor_release(tq);
    tensor_release(tk);
    tensor_release(tv);
    tensor_release(tw);
    free(q), free(k), free(v), free(w);
}

static void test_mask_and_heads(void **state) {
    (void)state;
    double scores[] = {1, 2, 3, 4}, mask[] = {1, 0},
           lowest[] = {-65504, -0x1.fep127, -FLT_MAX, -DBL_MAX};
    DType mask_types[] = {DTYPE_BOOL, DTYPE_FLOAT32, DTYPE_INT64, DTYPE_FLOAT16};
    double repeated[] = {1, 2, 1, 2, 3, 4, 3, 4};
    for (int d = 0; d < FLOATS; d++) {
        double want[] = {1, lowest[d], 3, lowest[d]};
        Tensor *x = laid_out(floats[d], SHAPE(2, 2), scores, TRANSPOSED);
        Tensor *m = make_tensor(mask_types[d], SHAPE(2), mask);
        expect(apply(OP_apply_attention_mask, NULL, 2, x, m), floats[d], SHAPE(2, 2), want);
        OpAttributes n = {.given = ATTRIBUTE_BIT(n), .n = 2};
        expect(apply(OP_repeat_kv, &n, 1, x), floats[d], SHAPE(4, 2), repeated);
        tensor_release(x);
        tensor_release(m);
    }
}

static void test_errors(void **state) {
    (void)state;
    double zeros[200] = {0};
    Tensor *result, *flat = make_tensor(DTYPE_FLOAT32, SHAPE(2, 4), zeros);
    Tensor *q = make_tensor(DTYPE_FLOAT32, SHAPE(2, 3, 4), zeros);
    Tensor *k = make_tensor(DTYPE_FLOAT32, SHAPE(5, 2, 4), zeros);
    Tensor *odd = make_tensor(DTYPE_FLOAT32, SHAPE(2, 3, 5), zeros);
    Tensor *table = make_tensor(DTYPE_FLOAT32, SHAPE(1, 2), zeros);
    assert_fails(
        op_with(OP_rope, &flat, 1, NULL, &result), STATUS_SHAPE,
        "rope: x must be [seq, heads, head_dim] or [batch, seq, heads, head_dim], but it is "
        "float32[2, 4]",
        "");
    assert_fails(op_with(OP_rope, &odd, 1, NULL, &result), STATUS_SHAPE,
                 "rope: 5 of 5 numbers of each head of float32[2, 3, 5] cannot be turned in pairs",
                 "");
    OpAttributes style = {.given = ATTRIBUTE_BIT(style), .style = "round"};
    assert_fails(op_with(OP_rope, &q, 1, &style, &result), STATUS_VALUE,
                 "rope: there is no style \"round\"",
                 "\"interleaved\" turns pairs (2i, 2i+1), \"half\" pairs (i, i + n/2)");
    assert_fails(
        op_with(OP_rope_tables, (Tensor *[]){q, table, table}, 3, NULL, &result), STATUS_SHAPE,
        "rope: a table is float32[1, 2], but float32[2, 3, 4] at offset 0 needs [2 or more, 2]",
        "precompute_rope_cos(4, max_len) makes one");
    assert_fails(op_with(OP_attention, (Tensor *[]){q, k, k}, 3, NULL, &result), STATUS_SHAPE,
                 "attention: the heads of q must be a multiple of those of k and v: q is "
                 "float32[2, 3, 4], k is float32[5, 2, 4], v is float32[5, 2, 4]",
                 "");
    assert_fails(op_with(OP_attention, (Tensor *[]){q, q, q, k}, 4, NULL, &result), STATUS_SHAPE,
                 "attention: the mask is float32[5, 2, 4], but the scores are [3, 2, 2]", "");
    tensor_release(flat);
    tensor_release(q);
    tensor_release(k);
    tensor_release(odd);
    tensor_release(table);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_rope),           BALANCED_TEST(test_rope_tables),
        BALANCED_TEST(test_attention),      BALANCED_TEST(test_mixed_floats),
        BALANCED_TEST(test_default_scale),  BALANCED_TEST(test_with_cache),
        BALANCED_TEST(test_mask_and_heads), BALANCED_TEST(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
