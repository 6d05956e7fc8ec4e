// Losses, graph scores and sampling against plain arithmetic.
#include "compare.h"
#include "tensor/random.h"

static const DType floats[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { FLOATS = 4 };

static void test_distances(void **state) {
    (void)state;
    double x[] = {1, 2, 3, -4}, y[] = {1, 0, 3.5, 0}, mse = (4 + 0.25 + 16) / 4,
           mae = (2 + 0.5 + 4) / 4;
    double huber = (1.5 + 0.125 + 3.5) / 4, margin = (1 - 0 + 0 + 1.5 + 5) / 4;
    for (int d = 0; d < FLOATS; d++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            Tensor *a = laid_out(floats[d], SHAPE(2, 2), x, (TestLayout)layout);
            Tensor *b = laid_out(floats[d], SHAPE(2, 2), y, (TestLayout)layout);
            expect(apply(OP_mse_loss, NULL, 2, a, b), floats[d], (Shape){0}, &mse);
            expect(apply(OP_mae_loss, NULL, 2, a, b), floats[d], (Shape){0}, &mae);
            expect(apply(OP_huber_loss, NULL, 2, a, b), floats[d], (Shape){0}, &huber);
            expect(apply(OP_margin_ranking_loss, NULL, 2, a, b), floats[d], (Shape){0}, &margin);
            tensor_release(a);
            tensor_release(b);
        }
}

static void test_entropies(void **state) {
    (void)state;
    double logits[] = {1, 2, 3, 0, 0, 1000}, ids[] = {2, 0}, weights[] = {0, 0.5, 0.5, 1, 0, 0};
    double row = log(exp(1) + exp(2) + exp(3)), by_id = (row - 3 + 1000) / 2;
    double by_weight = (row - 2.5 + 1000) / 2, score[] = {0, 100, -100}, target[] = {1, 1, 0};
    double binary = log(2) / 3, chosen = -(3 + 0) / 2.0, logs[] = {log(0.5), log(0.5)},
           p[] = {1, 0};
    double divergence = log(2), alone = row - 1, zero = 0;
    for (int d = 2; d < FLOATS; d++) {
        Tensor *x = laid_out(floats[d], SHAPE(2, 3), logits, TRANSPOSED);
        Tensor *i = make_tensor(DTYPE_INT32, SHAPE(2), ids),
               *w = make_tensor(floats[d], SHAPE(2, 3), weights);
        Tensor *f = make_tensor(DTYPE_FLOAT32, SHAPE(2), ids),
               *s = make_tensor(floats[d], SHAPE(3), score);
        Tensor *t = make_tensor(DTYPE_INT64, SHAPE(3), target),
               *l = make_tensor(floats[d], SHAPE(2), logs);
        Tensor *q = make_tensor(floats[d], SHAPE(2), p), *first,
               *one = make_tensor(DTYPE_INT64, (Shape){0}, &zero);
        OK(tensor_select(x, 0, 0, &first));
        expect(apply(OP_cross_entropy, NULL, 2, x, i), floats[d], (Shape){0}, &by_id);
        expect(apply(OP_cross_entropy, NULL, 2, x, f), floats[d], (Shape){0}, &by_id);
        expect(apply(OP_cross_entropy, NULL, 2, x, w), floats[d], (Shape){0}, &by_weight);
        expect(apply(OP_cross_entropy, NULL, 2, first, one), floats[d], (Shape){0}, &alone);
        expect(apply(OP_nll_loss, NULL, 2, x, i), floats[d], (Shape){0}, &chosen);
        expect(apply(OP_binary_cross_entropy, NULL, 2, s, t), floats[d], (Shape){0}, &binary);
        expect(apply(OP_kl_div, NULL, 2, l, q), floats[d], (Shape){0}, &divergence);
        Tensor *all[] = {x, i, w, f, s, t, l, q, first, one};
        for (size_t n = 0; n < sizeof all / sizeof *all; n++) tensor_release(all[n]);
    }
}

// The options of the losses of classes, as loops: x [2, 3, 4] log probabilities.
typedef struct ClassLoss {
    const double *weight; // NULL: 1 each
    double smoothing;
    int ignored; // -1: none
} ClassLoss;

static void class_losses(const double *logs, const double *ids, const ClassLoss *options,
                         double *each, double *total, double *counted) {
    *total = *counted = 0;
    for (int row = 0; row < 6; row++) {
        double all = 0;
        int id = (int)ids[row];
        const double *x = logs + (size_t)row * 4;
        for (int c = 0; c < 4; c++) all -= x[c] * (options->weight ? options->weight[c] : 1);
        each[row] = 0;
        if (id == options->ignored) continue;
        double weight = options->weight ? options->weight[id] : 1;
        each[row] = (1 - options->smoothing) * weight * -x[id] + options->smoothing / 4 * all;
        *total += each[row];
        *counted += weight;
    }
}

static void test_class_options(void **state) {
    (void)state;
    static const double weights[] = {1, 0.5, 2, 3}, ids[] = {1, 3, 2, 0, 3, 2};
    static const ClassLoss options[] = {{NULL, 0, 3},      {weights, 0, -1}, {NULL, 0.25, -1},
                                        {weights, 0.1, 2}, {NULL, 0, -1},    {NULL, 0.5, 0}};
    double *scores = numbers(24, 5, DTYPE_FLOAT64), logs[24], each[6], total, counted;
    for (int row = 0; row < 6; row++) {
        double *x = scores + (size_t)row * 4, sum = 0;
        for (int c = 0; c < 4; c++) sum += exp(x[c]);
        for (int c = 0; c < 4; c++) logs[row * 4 + c] = x[c] - log(sum);
    }
    for (size_t n = 0; n < sizeof options / sizeof *options; n++)
        for (int layout = 0; layout < LAYOUTS; layout++) {
            const ClassLoss *o = &options[n];
            class_losses(logs, ids, o, each, &total, &counted);
            Tensor *x = laid_out(DTYPE_FLOAT64, SHAPE(2, 3, 4), scores, (TestLayout)layout);
            Tensor *l = laid_out(DTYPE_FLOAT64, SHAPE(2, 3, 4), logs, (TestLayout)layout);
            Tensor *t = laid_out(DTYPE_INT64, SHAPE(2, 3), ids, (TestLayout)layout);
            Tensor *w = o->weight ? make_tensor(DTYPE_FLOAT64, SHAPE(4), o->weight) : NULL;
            OpAttributes a = {.given = ATTRIBUTE_BIT(label_smoothing) | ATTRIBUTE_BIT(reduction),
                              .label_smoothing = o->smoothing,
                              .ignore_index = o->ignored};
            if (o->ignored >= 0) a.given |= ATTRIBUTE_BIT(ignore_index);
            double mean = total / counted;
            for (int op = 0; op < 2; op++) {
                OpId id = op ? OP_nll_loss : OP_cross_entropy;
                a.reduction = "mean";
                expect(apply(id, &a, w ? 3 : 2, op ? l : x, t, w), DTYPE_FLOAT64, (Shape){0},
                       &mean);
                a.reduction = "sum";
                expect(apply(id, &a, w ? 3 : 2, op ? l : x, t, w), DTYPE_FLOAT64, (Shape){0},
                       &total);
                a.reduction = "none";
                expect(apply(id, &a, w ? 3 : 2, op ? l : x, t, w), DTYPE_FLOAT64, SHAPE(2, 3),
                       each);
            }
            tensor_release(x);
            tensor_release(l);
            tensor_release(t);
            if (w) tensor_release(w);
        }
    free(scores);
}

// The row that is left out stands for a class of the one there is.
static void test_one_class(void **state) {
    (void)state;
    Tensor *x = make_tensor(DTYPE_FLOAT64, SHAPE(2, 1), (double[]){-1, 2}),
           *t = make_tensor(DTYPE_INT64, SHAPE(2), (double[]){0, 9});
    OpAttributes a = {.given = ATTRIBUTE_BIT(ignore_index), .ignore_index = 9};
    expect(apply(OP_nll_loss, &a, 2, x, t), DTYPE_FLOAT64, (Shape){0}, &(double){1});
    tensor_release(x);
    tensor_release(t);
}

// Target probabilities with smoothing and weights: [2, 3].
static void test_probabilities(void **state) {
    (void)state;
    double logits[] = {1, 2, 3, -1, 0, 0.5}, p[] = {0, 0.5, 0.5, 0.25, 0.75, 0}, w[] = {1, 2, 0.5};
    double rows[2] = {0}, total, mean;
    for (int i = 0; i < 6; i++) {
        const double *x = logits + i / 3 * 3;
        double log_p = logits[i] - log(exp(x[0]) + exp(x[1]) + exp(x[2]));
        rows[i / 3] -= (p[i] * 0.8 + 0.2 / 3) * log_p * w[i % 3];
    }
    total = rows[0] + rows[1];
    mean = total / 2;
    Tensor *x = make_tensor(DTYPE_FLOAT64, SHAPE(2, 3), logits),
           *t = make_tensor(DTYPE_FLOAT64, SHAPE(2, 3), p),
           *v = make_tensor(DTYPE_FLOAT64, SHAPE(3), w);
    OpAttributes a = {.given = ATTRIBUTE_BIT(label_smoothing) | ATTRIBUTE_BIT(reduction),
                      .label_smoothing = 0.2,
                      .reduction = "none"};
    expect(apply(OP_cross_entropy, &a, 3, x, t, v), DTYPE_FLOAT64, SHAPE(2), rows);
    a.reduction = "sum";
    expect(apply(OP_cross_entropy, &a, 3, x, t, v), DTYPE_FLOAT64, (Shape){0}, &total);
    a.reduction = "mean";
    expect(apply(OP_cross_entropy, &a, 3, x, t, v), DTYPE_FLOAT64, (Shape){0}, &mean);
    tensor_release(x);
    tensor_release(t);
    tensor_release(v);
}

enum { PAIRS = 6 };
static double binary_loss(double x, double t, double w) {
    double p = 1 / (1 + exp(-x));
    return -(w * t * log(p) + (1 - t) * log(1 - p));
}
static void expect_reduced(OpId op, OpAttributes a, int count, Tensor *const *in, Shape shape,
                           const double *each) {
    double sum = 0;
    int64_t n = 1;
    for (int i = 0; i < shape.rank; i++) n *= shape.dims[i];
    for (int64_t i = 0; i < n; i++) sum += each[i];
    double mean = sum / (double)n;
    a.given |= ATTRIBUTE_BIT(reduction);
    a.reduction = "none";
    expect(apply(op, &a, count, in[0], in[1], in[2]), DTYPE_FLOAT64, shape, each);
    a.reduction = "sum";
    expect(apply(op, &a, count, in[0], in[1], in[2]), DTYPE_FLOAT64, (Shape){0}, &sum);
    a.reduction = "mean";
    expect(apply(op, &a, count, in[0], in[1], in[2]), DTYPE_FLOAT64, (Shape){0}, &mean);
}

static void test_reductions(void **state) {
    (void)state;
    double x[] = {1, -2, 0.5, -1, 0.25, 3}, t[] = {0, 0.5, 1, 0.25, 0.75, 1}, w[] = {0.5, 3, 1};
    double square[PAIRS], magnitude[PAIRS], huber[PAIRS], margin[PAIRS], rows[2] = {0};
    double binary[PAIRS], positive[PAIRS], smoothed[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        double d = x[i] - t[i];
        square[i] = d * d;
        magnitude[i] = fabs(d);
        huber[i] = fabs(d) <= 1 ? d * d / 2 : fabs(d) - 0.5;
        margin[i] = fmax(0, 1 - d);
        rows[i / 3] += t[i] > 0 ? t[i] * (log(t[i]) - x[i]) : 0;
        binary[i] = binary_loss(x[i], t[i], 1);
        positive[i] = binary_loss(x[i], t[i], w[i % 3]);
        smoothed[i] = binary_loss(x[i], t[i] * 0.9 + 0.05, w[i % 3]);
    }
    Shape shape = SHAPE(2, 3);
    for (int layout = 0; layout < LAYOUTS; layout++) {
        Tensor *in[3] = {laid_out(DTYPE_FLOAT64, shape, x, (TestLayout)layout),
                         laid_out(DTYPE_FLOAT64, shape, t, (TestLayout)layout),
                         make_tensor(DTYPE_FLOAT64, SHAPE(3), w)};
        OpAttributes none = {0};
        OpAttributes smooth = {.given = ATTRIBUTE_BIT(label_smoothing), .label_smoothing = 0.1};
        expect_reduced(OP_mse_loss, none, 2, in, shape, square);
        expect_reduced(OP_mae_loss, none, 2, in, shape, magnitude);
        expect_reduced(OP_huber_loss, none, 2, in, shape, huber);
        expect_reduced(OP_margin_ranking_loss, none, 2, in, shape, margin);
        expect_reduced(OP_kl_div, none, 2, in, SHAPE(2), rows);
        expect_reduced(OP_binary_cross_entropy, none, 2, in, shape, binary);
        expect_reduced(OP_binary_cross_entropy, none, 3, in, shape, positive);
        expect_reduced(OP_binary_cross_entropy, smooth, 3, in, shape, smoothed);
        for (int i = 0; i < 3; i++) tensor_release(in[i]);
    }
}

static void test_loss_errors(void **state) {
    (void)state;
    double zeros[6] = {0}, wrong[] = {0, 3}, negative[] = {-1, 0};
    Tensor *result, *x = make_tensor(DTYPE_FLOAT32, SHAPE(2, 3), zeros);
    Tensor *far = make_tensor(DTYPE_INT64, SHAPE(2), wrong),
           *below = make_tensor(DTYPE_INT64, SHAPE(2), negative);
    Tensor *column = make_tensor(DTYPE_FLOAT32, SHAPE(2, 1), zeros);
    assert_fails(op_with(OP_cross_entropy, (Tensor *[]){x, far}, 2, NULL, &result), STATUS_INDEX,
                 "cross_entropy: class 3 is out of range: there are 3 classes", "");
    assert_fails(op_with(OP_cross_entropy, (Tensor *[]){x, below}, 2, NULL, &result), STATUS_INDEX,
                 "cross_entropy: class -1 is out of range: there are 3 classes", "");
    assert_fails(
        op_with(OP_cross_entropy, (Tensor *[]){x, column}, 2, NULL, &result), STATUS_SHAPE,
        "cross_entropy: float32[2, 3] needs one class per row, but the target is float32[2, 1]",
        "");
    assert_fails(op_with(OP_mse_loss, (Tensor *[]){far, column}, 2, NULL, &result), STATUS_SHAPE,
                 "mse_loss: the operands differ in shape: int64[2] and float32[2, 1]", "");
    tensor_release(x);
    tensor_release(far);
    tensor_release(below);
    tensor_release(column);
}

static void test_graph_scores(void **state) {
    (void)state;
    double a[] = {1, 2, 3, 4}, b[] = {0.5, -1, 1, 2}, c[] = {1, 1, 0, -1};
    double l2[] = {-0.5, -sqrt(16 + 49)}, l1[] = {-0.5, -11}, product[] = {-1.5, -8};
    double re[2] = {0}, rotate[2] = {0}, phase[2] = {0}, node[] = {1.5, 1, 3, 2};
    double weight[] = {1 / (1 + exp(1.5)), 1 / (1 + exp(-11))}, attended[4];
    for (int i = 0; i < 4; i++) {
        double hr = a[i] * b[i] - b[i] * c[i], hi = a[i] * c[i] + b[i] * b[i];
        re[i / 2] += hr * c[i] + hi * a[i];
        rotate[i / 2] -= hypot(hr - c[i], hi - a[i]);
        double pr = a[i] * cos(c[i]) - b[i] * sin(c[i]), pi = a[i] * sin(c[i]) + b[i] * cos(c[i]);
        phase[i / 2] -= hypot(pr - c[i], pi - a[i]);
        attended[i] = weight[i / 2] * c[i];
    }
    for (int layout = 0; layout < LAYOUTS; layout++) {
        Shape s = SHAPE(2, 2), rows = SHAPE(2);
        DType f = DTYPE_FLOAT64;
        Tensor *x = laid_out(f, s, a, (TestLayout)layout),
               *y = laid_out(f, s, b, (TestLayout)layout);
        Tensor *z = laid_out(f, s, c, (TestLayout)layout);
        OpAttributes one = {.given = ATTRIBUTE_BIT(norm), .norm = "L1"};
        expect(apply(OP_transe_score, NULL, 3, x, y, z), f, rows, l2);
        expect(apply(OP_transe_score, &one, 3, x, y, z), f, rows, l1);
        expect(apply(OP_distmult_score, NULL, 3, x, y, z), f, rows, product);
        expect(apply(OP_complex_score, NULL, 6, x, y, y, z, z, x), f, rows, re);
        expect(apply(OP_rotate_score, NULL, 6, x, y, y, z, z, x), f, rows, rotate);
        expect(apply(OP_rotate_score_phase, NULL, 5, x, y, z, z, x), f, rows, phase);
        expect(apply(OP_relational_aggregate, NULL, 3, x, y, z), f, s, node);
        expect(apply(OP_graph_attention, NULL, 3, x, y, z), f, s, attended);
        tensor_release(x);
        tensor_release(y);
        tensor_release(z);
    }
}

static void test_ranks(void **state) {
    (void)state;
    double scores[] = {0.25, 0.75, 0.5}, two = 2, half = 0.5, mean[] = {2, 3}, sum[] = {4, 6},
           first[] = {1, 2};
    double one = 1, zero = 0, x[] = {1, 2, 3, 4};
    Tensor *s = make_tensor(DTYPE_FLOAT32, SHAPE(3), scores),
           *index = make_tensor(DTYPE_INT64, (Shape){0}, &two);
    Tensor *value = make_tensor(DTYPE_FLOAT32, (Shape){0}, &half),
           *rows = make_tensor(DTYPE_FLOAT32, SHAPE(2, 2), x);
    expect(apply(OP_compute_rank, NULL, 2, s, index), DTYPE_INT64, (Shape){0}, &two);
    expect(apply(OP_compute_rank, NULL, 2, value, s), DTYPE_INT64, (Shape){0}, &two);
    expect(apply(OP_compute_mrr, NULL, 1, index), DTYPE_FLOAT32, (Shape){0}, &half);
    OpAttributes k = {.given = ATTRIBUTE_BIT(k) | ATTRIBUTE_BIT(n), .k = 2, .n = 4};
    expect(apply(OP_compute_hits_at_k, &k, 1, index), DTYPE_FLOAT32, (Shape){0}, &one);
    k.k = 1;
    expect(apply(OP_compute_hits_at_k, &k, 1, index), DTYPE_FLOAT32, (Shape){0}, &zero);
    expect(apply(OP_compute_mean_rank, &k, 1, index), DTYPE_FLOAT32, (Shape){0}, &half);
    OpAttributes options = {.given = ATTRIBUTE_BIT(mode), .mode = "sum", .n = 1};
    expect(apply(OP_aggregate_neighbors, NULL, 1, rows), DTYPE_FLOAT32, SHAPE(2), mean);
    expect(apply(OP_aggregate_neighbors, &options, 1, rows), DTYPE_FLOAT32, SHAPE(2), sum);
    options.given |= ATTRIBUTE_BIT(n);
    expect(apply(OP_aggregate_neighbors, &options, 1, rows), DTYPE_FLOAT32, SHAPE(2), first);
    tensor_release(s);
    tensor_release(index);
    tensor_release(value);
    tensor_release(rows);
}

static void test_narrowing(void **state) {
    (void)state;
    double i = -INFINITY, x[] = {1, 3, 3, 2, 0, 4, 4, -1}, k2[] = {i, 3, 3, i, i, 4, 4, i};
    double k1[] = {i, 3, i, i, i, 4, i, i}, penalty[] = {1, 1.5, 3, 2, 0, 2, 4, -1};
    double presence[] = {1, 2.5, 3, 2, 0, 3.5, 4, -1}, frequency[] = {1, 2, 3, 2, 0, 3, 4, -1};
    double logs[] = {log(0.5), log(0.3), log(0.15), log(0.05)}, p60[] = {log(0.5), log(0.3), i, i};
    double m30[] = {log(0.5), log(0.3), log(0.15), i}, typical[] = {i, log(0.3), i, i},
           ids[] = {1, 1};
    double half[] = {0.5, 1.5, 1.5, 1, 0, 2, 2, -0.5};
    for (int d = 0; d < FLOATS; d++) {
        OpAttributes a = {.given = ATTRIBUTE_BIT(k) | ATTRIBUTE_BIT(p) | ATTRIBUTE_BIT(temperature),
                          .k = 2,
                          .p = 0.6,
                          .temperature = 2,
                          .factor = 2,
                          .penalty = 0.5};
        Tensor *t = laid_out(floats[d], SHAPE(2, 4), x, TRANSPOSED),
               *once = make_tensor(DTYPE_INT64, SHAPE(2), ids);
        Tensor *l = make_tensor(floats[d], SHAPE(4), logs);
        expect(apply(OP_top_k, &a, 1, t), floats[d], SHAPE(2, 4), k2);
        a.k = 1;
        expect(apply(OP_top_k, &a, 1, t), floats[d], SHAPE(2, 4), k1);
        a.k = 100;
        expect(apply(OP_top_k, &a, 1, t), floats[d], SHAPE(2, 4), x);
        expect(apply(OP_top_p, &a, 1, l), floats[d], SHAPE(4), p60);
        a.p = 0.2;
        expect(apply(OP_min_p, &a, 1, l), floats[d], SHAPE(4), m30);
        expect(apply(OP_typical_p, &a, 1, l), floats[d], SHAPE(4), typical);
        expect(apply(OP_temperature, &a, 1, t), floats[d], SHAPE(2, 4), half);
        expect(apply(OP_repetition_penalty, &a, 2, t, once), floats[d], SHAPE(2, 4), penalty);
        expect(apply(OP_presence_penalty, &a, 2, t, once), floats[d], SHAPE(2, 4), presence);
        expect(apply(OP_frequency_penalty, &a, 2, t, once), floats[d], SHAPE(2, 4), frequency);
        tensor_release(t);
        tensor_release(l);
        tensor_release(once);
    }
}

static int64_t choose(OpId op, const OpAttributes *attributes, Tensor *x) {
    Tensor *choice = apply(op, attributes, 1, x);
    int64_t index;
    assert_int_equal(tensor_dtype(choice), DTYPE_INT64);
    assert_int_equal(tensor_rank(choice), 0);
    OK(tensor_read_integers(choice, &index));
    tensor_release(choice);
    return index;
}

static void test_sampling(void **state) {
    (void)state;
    enum { DRAWS = 4000 };
    double p[] = {0, 1, 0, 0, 0.125, 0.5, 0, 0.375}, logits[] = {9, 9, 9, 9, 1, 3, 3, 2};
    int counts[4] = {0}, cold[4] = {0}, narrow[4] = {0};
    Tensor *x = make_tensor(DTYPE_FLOAT32, SHAPE(2, 4), p),
           *l = make_tensor(DTYPE_FLOAT16, SHAPE(2, 4), logits);
    OpAttributes greedy = {.given = ATTRIBUTE_BIT(temperature)}, warm = {0};
    OpAttributes two = {.given = ATTRIBUTE_BIT(k), .k = 2};
    random_seed(7);
    for (int i = 0; i < DRAWS; i++) {
        counts[choose(OP_sample, NULL, x)]++;
        cold[choose(OP_temperature_sample, &warm, l)]++;
        narrow[choose(OP_top_k_sample, &two, l)]++;
        if (i < 10) assert_int_equal(choose(OP_temperature_sample, &greedy, l), 1);
    }
    double total = exp(1) + 2 * exp(3) + exp(2);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs(counts[i] / (double)DRAWS - p[4 + i]) < 0.03);
        assert_true(fabs(cold[i] / (double)DRAWS - exp(logits[4 + i]) / total) < 0.03);
    }
    assert_int_equal(counts[2], 0);
    assert_int_equal(narrow[0] + narrow[3], 0);
    OpAttributes seeded = {.given = ATTRIBUTE_BIT(seed), .seed = 3};
    int64_t first = choose(OP_sample, &seeded, x);
    for (int i = 0; i < 5; i++) assert_int_equal(choose(OP_sample, &seeded, x), first);
    tensor_release(x);
    tensor_release(l);
}

// The first class at which the running sum passes the draw of a seed; *sure: rounding cannot change
// it.
static int64_t choice_of(const double *weights, int count, int64_t seed, bool *sure) {
    OpAttributes a = {.given = ATTRIBUTE_BIT(seed) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(shape),
                      .seed = seed,
                      .dtype = DTYPE_FLOAT64};
    Tensor *uniform = apply(OP_rand, &a, 0);
    double draw, total = 0, running = 0;
    OK(tensor_read_floats(uniform, &draw));
    tensor_release(uniform);
    for (int i = 0; i < count; i++) total += weights[i];
    int choice = 0;
    while ((running += weights[choice]) <= draw * total) choice++;
    double below = draw * total - (running - weights[choice]), above = running - draw * total;
    *sure = below > 1e-9 * total && above > 1e-9 * total;
    return choice;
}

// Rows of any length, in which much cannot be chosen.
static void test_sampling_of_many(void **state) {
    (void)state;
    const int counts[] = {1, 63, 64, 65, 128, 1000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        double weights[1000], scores[1000];
        int count = counts[c], sure_ones = 0;
        for (int i = 0; i < count; i++) {
            bool never = count > 1 && (i % 3 == 0 || i > count * 3 / 4 || (i > 64 && i < 192));
            weights[i] = never ? 0 : exp(i % 7);
            scores[i] = never ? -INFINITY : 4 + i % 7 * 0.5;
        }
        Tensor *p = make_tensor(DTYPE_FLOAT64, SHAPE(count), weights),
               *s = make_tensor(DTYPE_FLOAT32, SHAPE(count), scores);
        for (int64_t seed = 0; seed < 100; seed++) {
            OpAttributes a = {.given = ATTRIBUTE_BIT(seed) | ATTRIBUTE_BIT(temperature),
                              .seed = seed,
                              .temperature = 0.5};
            bool sure;
            int64_t choice = choice_of(weights, count, seed, &sure);
            sure_ones += sure;
            assert_true(!sure || choose(OP_sample, &a, p) == choice);
            assert_true(!sure || choose(OP_temperature_sample, &a, s) == choice);
        }
        assert_true(sure_ones > 90);
        tensor_release(p);
        tensor_release(s);
    }
}

static void test_multinomial(void **state) {
    (void)state;
    double p[] = {0, 2, 0, 0, 1, 1, 1, 1};
    Tensor *x = make_tensor(DTYPE_FLOAT32, SHAPE(2, 4), p), *row, *result;
    OpAttributes a = {.given = ATTRIBUTE_BIT(n), .n = 4};
    Tensor *drawn = apply(OP_multinomial, &a, 1, x);
    assert_shape(drawn, SHAPE(2, 4));
    double *values = read_all(drawn);
    for (int i = 0; i < 4; i++)
        assert_true(values[i] == 1 && values[4 + i] >= 0 && values[4 + i] < 4);
    free(values);
    tensor_release(drawn);
    OK(tensor_select(x, 0, 1, &row));
    a.given |= ATTRIBUTE_BIT(replacement);
    drawn = apply(OP_multinomial, &a, 1, row);
    values = read_all(drawn);
    assert_true(values[0] + values[1] + values[2] + values[3] == 6);
    free(values);
    tensor_release(drawn);
    assert_fails(op_with(OP_multinomial, &x, 1, &a, &result), STATUS_VALUE,
                 "multinomial: 4 different classes were asked for, but only 1 are possible", "");
    tensor_release(row);
    tensor_release(x);
}

static void test_sampling_edges(void **state) {
    (void)state;
    double i = INFINITY, hopeless[] = {-i, -i}, certain[] = {0, i}, broken[] = {0, NAN},
           negative[] = {-1, 2};
    Tensor *result, *all = make_tensor(DTYPE_FLOAT32, SHAPE(2), hopeless),
                    *sure = make_tensor(DTYPE_FLOAT32, SHAPE(2), certain);
    Tensor *nan = make_tensor(DTYPE_FLOAT32, SHAPE(2), broken),
           *minus = make_tensor(DTYPE_FLOAT32, SHAPE(2), negative);
    Tensor *none = make_tensor(DTYPE_FLOAT32, SHAPE(0), hopeless);
    assert_int_equal(choose(OP_temperature_sample, NULL, sure), 1);
    assert_fails(op_with(OP_temperature_sample, &all, 1, NULL, &result), STATUS_VALUE,
                 "temperature_sample: every score is -inf; there is nothing to choose", "");
    assert_fails(op_with(OP_temperature_sample, &nan, 1, NULL, &result), STATUS_VALUE,
                 "temperature_sample: number 1 is nan", "");
    assert_fails(op_with(OP_sample, &minus, 1, NULL, &result), STATUS_VALUE,
                 "sample: probability 0 is -1; it must not be negative", "");
    assert_fails(op_with(OP_sample, &none, 1, NULL, &result), STATUS_SHAPE,
                 "sample: there is nothing to choose from in float32[0]", "");
    OpAttributes zero = {.given = ATTRIBUTE_BIT(k)};
    assert_fails(op_with(OP_top_k, &sure, 1, &zero, &result), STATUS_VALUE,
                 "top_k: k is 0; at least one score must stay", "");
    tensor_release(all);
    tensor_release(sure);
    tensor_release(nan);
    tensor_release(minus);
    tensor_release(none);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BALANCED_TEST(test_distances),
        BALANCED_TEST(test_entropies),
        BALANCED_TEST(test_class_options),
        BALANCED_TEST(test_one_class),
        BALANCED_TEST(test_probabilities),
        BALANCED_TEST(test_reductions),
        BALANCED_TEST(test_loss_errors),
        BALANCED_TEST(test_graph_scores),
        BALANCED_TEST(test_ranks),
        BALANCED_TEST(test_narrowing),
        BALANCED_TEST(test_sampling),
        BALANCED_TEST(test_multinomial),
        BALANCED_TEST(test_sampling_of_many),
        BALANCED_TEST(test_sampling_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
