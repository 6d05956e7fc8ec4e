// Optimizers over 100 steps against the published formulas in double; states, copies of 16-bit
// parameters, checkpoints, errors.
#include "tensor/optimizer.h"

#include "compare.h"
#include "tensor/gradient/tape.h"

enum { ELEMENTS = 6, STEPS = 100, ROWS = 3 };

static const OptimizerSettings plain = {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8};

typedef struct Reference {
    double p[ELEMENTS], row[ROWS][ELEMENTS];
} Reference;

static void reference_sgd(const OptimizerSettings *s, Reference *r, int i, double g, int t) {
    g += s->weight_decay * r->p[i];
    if (s->momentum != 0) {
        double *sum = &r->row[0][i];
        *sum = t == 1 ? g : s->momentum * *sum + (1 - s->dampening) * g;
        g = s->nesterov ? g + s->momentum * *sum : *sum;
    }
    r->p[i] -= s->lr * g;
}

static void reference_adam(const OptimizerSettings *s, Reference *r, int i, double g, int t) {
    if (s->id == OPTIMIZER_adamw)
        r->p[i] -= s->lr * s->weight_decay * r->p[i];
    else
        g += s->weight_decay * r->p[i];
    r->row[0][i] = s->beta1 * r->row[0][i] + (1 - s->beta1) * g;
    r->row[1][i] = s->beta2 * r->row[1][i] + (1 - s->beta2) * g * g;
    double mean = r->row[0][i] / (1 - pow(s->beta1, t)), square = r->row[1][i];
    if (s->amsgrad) square = r->row[2][i] = fmax(r->row[2][i], square);
    r->p[i] -= s->lr * mean / (sqrt(square / (1 - pow(s->beta2, t))) + s->epsilon);
}

static void reference_rmsprop(const OptimizerSettings *s, Reference *r, int i, double g, int t) {
    (void)t;
    g += s->weight_decay * r->p[i];
    r->row[0][i] = s->alpha * r->row[0][i] + (1 - s->alpha) * g * g;
    double spread = r->row[0][i];
    if (s->centered) {
        r->row[1][i] = s->alpha * r->row[1][i] + (1 - s->alpha) * g;
        spread -= r->row[1][i] * r->row[1][i];
    }
    double change = g / (sqrt(spread) + s->epsilon);
    if (s->momentum != 0) change = r->row[2][i] = s->momentum * r->row[2][i] + change;
    r->p[i] -= s->lr * change;
}

static void reference_adagrad(const OptimizerSettings *s, Reference *r, int i, double g, int t) {
    g += s->weight_decay * r->p[i];
    if (t == 1) r->row[0][i] = s->initial;
    r->row[0][i] += g * g;
    r->p[i] -= s->lr / (1 + (t - 1) * s->lr_decay) * g / (sqrt(r->row[0][i]) + s->epsilon);
}

static void reference_lion(const OptimizerSettings *s, Reference *r, int i, double g, int t) {
    (void)t;
    double direction = s->beta1 * r->row[0][i] + (1 - s->beta1) * g;
    r->p[i] -= s->lr * s->weight_decay * r->p[i];
    r->p[i] -= s->lr * ((direction > 0) - (direction < 0));
    r->row[0][i] = s->beta2 * r->row[0][i] + (1 - s->beta2) * g;
}

static void (*const references[])(const OptimizerSettings *s, Reference *r, int i, double g,
                                  int t) = {
    [OPTIMIZER_sgd] = reference_sgd,         [OPTIMIZER_adam] = reference_adam,
    [OPTIMIZER_adamw] = reference_adam,      [OPTIMIZER_rmsprop] = reference_rmsprop,
    [OPTIMIZER_adagrad] = reference_adagrad, [OPTIMIZER_lion] = reference_lion,
};

// The slope of a bowl whose steepness and bottom differ by element.
static double slope(int i, double p) {
    return (0.5 + i) * (p - 0.3 * i) + 0.1 * sin(3 * p);
}

static const double start[ELEMENTS] = {0.5, -1, 2, 0.25, -3, 1};

static OptimizerSettings with(OptimizerId id, OptimizerSettings settings) {
    settings.id = id;
    return settings;
}

#define WITH(id, ...)                                                                              \
    ({                                                                                             \
        OptimizerSettings settings_ = with(OPTIMIZER_##id, plain);                                 \
        const struct {                                                                             \
            const char *name;                                                                      \
            double value;                                                                          \
        } given_[] = {__VA_ARGS__};                                                                \
        for (size_t i_ = 0; i_ < sizeof given_ / sizeof *given_; i_++)                             \
            assert_true(optimizer_setting_set(&settings_, given_[i_].name, given_[i_].value));     \
        settings_;                                                                                 \
    })

static void check_steps(const OptimizerSettings *settings, DType dtype) {
    Reference reference = {0};
    memcpy(reference.p, start, sizeof start);
    Tensor *parameter = make_tensor(dtype, SHAPE(2, 3), start);
    Optimizer *optimizer;
    OK(optimizer_new(settings, &optimizer));
    for (int t = 1; t <= STEPS; t++) {
        double *now = read_all(parameter), slopes[ELEMENTS];
        for (int i = 0; i < ELEMENTS; i++) {
            slopes[i] = slope(i, now[i]);
            references[settings->id](settings, &reference, i, slope(i, reference.p[i]), t);
        }
        free(now);
        Tensor *gradient = make_tensor(dtype, SHAPE(2, 3), slopes);
        OK(optimizer_step(optimizer, &parameter, &gradient, 1));
        tensor_release(gradient);
    }
    double epsilon = dtype == DTYPE_FLOAT64 ? 1e-12 : 1e-5;
    assert_numbers(parameter, reference.p, epsilon, optimizer_name(optimizer));
    optimizer_free(optimizer);
    tensor_release(parameter);
}

static void test_formulas(void **state) {
    (void)state;
    const OptimizerSettings cases[] = {
        WITH(sgd, {"lr", 0.02}),
        WITH(sgd, {"weight_decay", 0.1}),
        WITH(sgd, {"momentum", 0.9}),
        WITH(sgd, {"momentum", 0.9}, {"dampening", 0.25}, {"weight_decay", 0.01}),
        WITH(sgd, {"momentum", 0.8}, {"nesterov", 1}),
        WITH(adam, {"lr", 0.05}),
        WITH(adam, {"lr", 0.03}, {"weight_decay", 0.1}, {"beta1", 0.8}),
        WITH(adam, {"lr", 0.05}, {"amsgrad", 1}),
        WITH(adamw, {"lr", 0.05}, {"weight_decay", 0.01}),
        WITH(adamw, {"lr", 0.05}, {"weight_decay", 0.3}, {"amsgrad", 1}),
        WITH(rmsprop, {"alpha", 0.99}),
        WITH(rmsprop, {"alpha", 0.9}, {"momentum", 0.5}, {"weight_decay", 0.1}),
        WITH(rmsprop, {"alpha", 0.95}, {"centered", 1}, {"epsilon", 0.01}),
        WITH(adagrad, {"lr", 0.3}, {"epsilon", 1e-10}),
        WITH(adagrad, {"lr", 0.3}, {"lr_decay", 0.01}, {"initial", 0.5}, {"weight_decay", 0.1}),
        WITH(lion, {"lr", 0.003}, {"beta2", 0.99}),
        WITH(lion, {"lr", 0.003}, {"beta2", 0.99}, {"weight_decay", 0.5}),
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_steps(&cases[i], DTYPE_FLOAT32);
        check_steps(&cases[i], DTYPE_FLOAT64);
    }
}

static void test_large_and_strided(void **state) {
    (void)state;
    enum { N = 70000 };
    double *values = numbers(N, 1, DTYPE_FLOAT32), *want = malloc(N * sizeof *want);
    Tensor *parameter = make_tensor(DTYPE_FLOAT32, SHAPE(7, N / 7), values);
    Tensor *gradient = laid_out(DTYPE_FLOAT32, SHAPE(7, N / 7), values, TRANSPOSED);
    for (int i = 0; i < N; i++) want[i] = values[i] - 0.5 * values[i];
    Optimizer *optimizer;
    OptimizerSettings settings = WITH(sgd, {"lr", 0.5});
    OK(optimizer_new(&settings, &optimizer));
    OK(optimizer_step(optimizer, &parameter, &gradient, 1));
    assert_numbers(parameter, want, 1e-6, "sgd");
    assert_null(optimizer_state(optimizer, 0).state);
    optimizer_free(optimizer);
    tensor_release(gradient);
    tensor_release(parameter);
    free(values);
    free(want);
}

// Steps too small for the type itself add up in the float32 copy.
static void test_sixteen_bits(void **state) {
    (void)state;
    const DType types[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16};
    double one[] = {1, 1}, ones[] = {1, 2}, want[] = {0.99, 0.98}, moved[] = {4, 4},
           then[] = {4 - 0.0001, 4 - 0.0002};
    for (int d = 0; d < 2; d++) {
        Tensor *parameter = make_tensor(types[d], SHAPE(2), one);
        Tensor *gradient = make_tensor(types[d], SHAPE(2), ones);
        Optimizer *optimizer;
        OptimizerSettings settings = WITH(sgd, {"lr", 0.0001});
        OK(optimizer_new(&settings, &optimizer));
        for (int i = 0; i < 100; i++) {
            OK(optimizer_refresh(optimizer));
            OK(optimizer_step(optimizer, &parameter, &gradient, 1));
        }
        assert_numbers(parameter, want, epsilon_of(types[d]), "sgd");
        assert_numbers(optimizer_state(optimizer, 0).state, want, 1e-5, "the copy");
        Tensor *other = make_tensor(types[d], SHAPE(2), moved);
        OK(op_copy(other, parameter));
        OK(optimizer_refresh(optimizer));
        OK(optimizer_step(optimizer, &parameter, &gradient, 1));
        assert_numbers(optimizer_state(optimizer, 0).state, then, 1e-7, "the copy that follows");
        tensor_release(other);
        optimizer_free(optimizer);
        tensor_release(gradient);
        tensor_release(parameter);
    }
}

// The gradient is what the parameter is.
static void step_by_itself(Optimizer *optimizer, Tensor *parameter) {
    Tensor *gradient;
    OK(tensor_clone(parameter, &gradient));
    OK(optimizer_step(optimizer, &parameter, &gradient, 1));
    tensor_release(gradient);
}

// Two parameters; after three steps the state goes to an optimizer of copies, and both go on alike.
static void test_restore(void **state) {
    (void)state;
    double other[] = {3, 1, 4, 1};
    Tensor *a = make_tensor(DTYPE_FLOAT32, SHAPE(6), start);
    Tensor *b = make_tensor(DTYPE_FLOAT16, SHAPE(2, 2), other);
    Optimizer *first, *second;
    OptimizerSettings settings = WITH(adam, {"lr", 0.1}, {"amsgrad", 1});
    OK(optimizer_new(&settings, &first));
    OK(optimizer_new(&settings, &second));
    for (int i = 0; i < 3; i++) {
        step_by_itself(first, a);
        step_by_itself(first, b);
    }
    Tensor *c, *d;
    OK(tensor_clone(a, &c));
    OK(tensor_clone(b, &d));
    assert_int_equal(optimizer_count(first), 2);
    Tensor *copies[] = {c, d};
    for (size_t i = 2; i-- > 0;) { // in another order: they go by the parameter
        OptimizerState kept = optimizer_state(first, i);
        kept.parameter = copies[i];
        OK(optimizer_restore(second, &kept));
    }
    for (int i = 0; i < 3; i++) {
        step_by_itself(first, a);
        step_by_itself(first, b);
        step_by_itself(second, c);
        step_by_itself(second, d);
    }
    double *numbers_a = read_all(a), *numbers_b = read_all(b);
    assert_numbers(c, numbers_a, 0, "restored");
    assert_numbers(d, numbers_b, 0, "restored");
    assert_int_equal(optimizer_state(second, 1).steps, 6);
    Tensor *wrong = make_tensor(DTYPE_FLOAT32, SHAPE(6), start);
    OptimizerState kept = optimizer_state(first, 1);
    kept.parameter = wrong;
    FAILS(STATUS_SHAPE,
          "adam: the restored state float32[4, 4] does not belong to a parameter float32[6]",
          optimizer_restore(first, &kept));
    kept = (OptimizerState){.parameter = a, .steps = -1};
    FAILS(STATUS_FORMAT, "adam: a restored parameter has made -1 steps",
          optimizer_restore(first, &kept));
    assert_int_equal(optimizer_count(first), 2);
    Optimizer *third;
    OK(optimizer_new(optimizer_settings(first), &third));
    optimizer_exchange(first, third);
    assert_int_equal(optimizer_count(first), 0);
    assert_int_equal(optimizer_count(third), 2);
    optimizer_free(third);
    Tensor *all[] = {a, b, c, d, wrong};
    optimizer_free(first);
    optimizer_free(second);
    for (size_t i = 0; i < 5; i++) tensor_release(all[i]);
    free(numbers_a);
    free(numbers_b);
}

static void test_errors(void **state) {
    (void)state;
    Optimizer *optimizer;
    OptimizerSettings settings = WITH(sgd, {"lr", -1});
    FAILS(STATUS_VALUE, "sgd: lr is -1; it must be a number from 0 on",
          optimizer_new(&settings, &optimizer));
    settings = WITH(adam, {"beta1", 1});
    FAILS(STATUS_VALUE, "adam: beta1 is 1; it must be from 0 to less than 1",
          optimizer_new(&settings, &optimizer));
    settings = WITH(adam, {"lr", NAN});
    FAILS(STATUS_VALUE, "adam: lr is nan; it must be a number from 0 on",
          optimizer_new(&settings, &optimizer));
    settings = WITH(sgd, {"nesterov", 1});
    FAILS(STATUS_VALUE, "sgd: nesterov needs a momentum and no dampening",
          optimizer_new(&settings, &optimizer));
    assert_false(optimizer_setting_set(&settings, "speed", 1));
    settings = WITH(lion, {"lr", 0.5});
    OK(optimizer_new(&settings, &optimizer));
    assert_true(optimizer_rate(optimizer) == 0.5);
    OK(optimizer_set_rate(optimizer, 0.25));
    assert_true(optimizer_rate(optimizer) == 0.25);
    FAILS(STATUS_VALUE, "lion: lr is inf; it must be a number from 0 on",
          optimizer_set_rate(optimizer, INFINITY));
    optimizer_free(optimizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),     cmocka_unit_test(test_large_and_strided),
        cmocka_unit_test(test_sixteen_bits), cmocka_unit_test(test_restore),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
