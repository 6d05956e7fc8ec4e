// The comparison of gradient rules with central differences in float64: first and second order, in
// all layouts, a row of a table per operation and setting.
#ifndef TESTS_TENSOR_GRADIENTS_H
#define TESTS_TENSOR_GRADIENTS_H

#include "tensors.h"

#include "tensor/gradient/backward.h"
#include "tensor/gradient/tape.h"
#include "tensor/parameter.h"

typedef void (*SetAttributes)(OpAttributes *attributes);
enum { INPUTS_MAX = 6, ELEMENTS_MAX = 256 };

typedef struct Case {
    const char *name;
    OpId op;
    int n_inputs;
    Shape shapes[INPUTS_MAX];
    double low, high; // numbers of the inputs
    unsigned fixed;   // bit i: input i is integers or a mask, given by `numbers`
    const double *numbers[INPUTS_MAX];
    DType dtypes[INPUTS_MAX]; // of fixed ones
    SetAttributes set;
    bool many;       // the inputs are the call's `many`
    bool first_only; // no second order: constant almost everywhere or too ill-conditioned
} Case;

// Distinct numbers in no order, so that nothing ties.
static double number_at(const Case *c, int input, int64_t i) {
    double u =
        fmod((double)((i + 1) * (i + 2 + input)) * 0.6180339887498949 + input * 0.37 + 0.113, 1.0);
    return c->low + (c->high - c->low) * u;
}

static int64_t count_of(Shape shape) {
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.dims[i];
    return count;
}

static Tensor *input_tensor(const Case *c, int input, const double *numbers, TestLayout layout) {
    bool fixed = c->fixed >> input & 1u;
    Tensor *x = make_tensor(fixed ? c->dtypes[input] : DTYPE_FLOAT64, c->shapes[input],
                            fixed ? c->numbers[input] : numbers);
    return fixed ? x : lay_out_as(x, layout);
}

// sum(op(inputs) * weights) with weights of no pattern; only the first, floating result counts.
static Tensor *weighed(Tensor *result) {
    double weights[ELEMENTS_MAX];
    int64_t count = tensor_count(result);
    assert_true(count <= ELEMENTS_MAX);
    for (int64_t i = 0; i < count; i++) weights[i] = cos((double)i * 1.7 + 0.3) + 0.2;
    Tensor *w = make_tensor(DTYPE_FLOAT64, tensor_shape(result), weights), *each, *sum;
    OK(op_binary(OP_mul, op_tensor(result), op_tensor(w), &each));
    OK(op_unary(OP_sum, each, &sum));
    tensor_release(w);
    tensor_release(each);
    return sum;
}

static Tensor *run_case(const Case *c, Tensor *const *inputs) {
    OpAttributes attributes = {0};
    if (c->set) c->set(&attributes);
    OpCall call = {.op = &op_rows[c->op], .attributes = &attributes};
    OpInput many[INPUTS_MAX];
    for (int i = 0; i < c->n_inputs; i++) {
        many[i] = op_tensor(inputs[i]);
        call.inputs[i] = many[i];
    }
    if (c->many) {
        call.many = many;
        call.n_many = c->n_inputs;
    } else {
        call.n_inputs = c->n_inputs;
    }
    Tensor *results[OP_OUTPUTS_MAX] = {NULL};
    if (op_apply(&call, results) != STATUS_OK)
        fail_msg("%s: %s", c->name, error_current()->message);
    Tensor *sum = weighed(results[0]);
    for (int i = 0; i < call.op->outputs; i++) tensor_release(results[i]);
    return sum;
}

typedef struct Point {
    double numbers[INPUTS_MAX][ELEMENTS_MAX];
} Point;

static Point point_of(const Case *c) {
    Point point;
    for (int i = 0; i < c->n_inputs; i++)
        for (int64_t j = 0; j < count_of(c->shapes[i]) && j < ELEMENTS_MAX; j++)
            point.numbers[i][j] = number_at(c, i, j);
    return point;
}

static double value_at(const Case *c, const Point *point) {
    Tensor *inputs[INPUTS_MAX];
    for (int i = 0; i < c->n_inputs; i++) inputs[i] = input_tensor(c, i, point->numbers[i], PLAIN);
    Tensor *sum = run_case(c, inputs);
    double value;
    OK(tensor_read_floats(sum, &value));
    tensor_release(sum);
    for (int i = 0; i < c->n_inputs; i++) tensor_release(inputs[i]);
    return value;
}

// The inputs watched; fixed ones as they are.
static void watch_inputs(const Case *c, Tensor *const *inputs, Tensor **watched) {
    for (int i = 0; i < c->n_inputs; i++) {
        if (c->fixed >> i & 1u)
            watched[i] = tensor_retain(inputs[i]);
        else
            OK(tape_watch(inputs[i], &watched[i]));
    }
}

static void release_all(Tensor **tensors, int count) {
    for (int i = 0; i < count; i++) tensor_release(tensors[i]);
}

// The gradients of every input that is not fixed, in order.
static int gradients_at(const Case *c, Tensor *const *watched, Tensor **gradients) {
    Tensor *targets[INPUTS_MAX];
    int count = 0;
    for (int i = 0; i < c->n_inputs; i++)
        if (!(c->fixed >> i & 1u)) targets[count++] = watched[i];
    Tensor *sum = run_case(c, watched);
    if (tape_gradients_of(sum, targets, (size_t)count, gradients) != STATUS_OK)
        fail_msg("%s: %s", c->name, error_current()->message);
    tensor_release(sum);
    return count;
}

static void first_order(const Case *c, const Point *point, TestLayout layout, Point *out) {
    Tensor *inputs[INPUTS_MAX], *watched[INPUTS_MAX], *gradients[INPUTS_MAX];
    for (int i = 0; i < c->n_inputs; i++) inputs[i] = input_tensor(c, i, point->numbers[i], layout);
    watch_inputs(c, inputs, watched);
    int count = gradients_at(c, watched, gradients), next = 0;
    for (int i = 0; i < c->n_inputs; i++) {
        if (c->fixed >> i & 1u) continue;
        assert_int_equal(tensor_count(gradients[next]), count_of(c->shapes[i]));
        OK(tensor_read_floats(gradients[next++], out->numbers[i]));
    }
    release_all(gradients, count);
    release_all(watched, c->n_inputs);
    release_all(inputs, c->n_inputs);
}

// The sum of all gradients, each weighed.
static double slope_sum(const Case *c, const Point *point) {
    Point gradients;
    first_order(c, point, PLAIN, &gradients);
    double sum = 0;
    for (int i = 0; i < c->n_inputs; i++) {
        if (c->fixed >> i & 1u) continue;
        for (int64_t j = 0; j < count_of(c->shapes[i]); j++)
            sum += gradients.numbers[i][j] * (cos((double)j * 1.7 + 0.3) + 0.2);
    }
    return sum;
}

static void second_order(const Case *c, const Point *point, Point *out) {
    Tensor *inputs[INPUTS_MAX], *outer[INPUTS_MAX], *inner[INPUTS_MAX], *gradients[INPUTS_MAX];
    Tensor *targets[INPUTS_MAX], *seconds[INPUTS_MAX], *total = NULL;
    for (int i = 0; i < c->n_inputs; i++) inputs[i] = input_tensor(c, i, point->numbers[i], PLAIN);
    watch_inputs(c, inputs, outer);
    watch_inputs(c, outer, inner);
    int count = gradients_at(c, inner, gradients), next = 0;
    for (int i = 0; i < count; i++) {
        Tensor *sum = weighed(gradients[i]), *more;
        if (total) {
            OK(op_binary(OP_add, op_tensor(total), op_tensor(sum), &more));
            tensor_release(total);
            tensor_release(sum);
            sum = more;
        }
        total = sum;
    }
    for (int i = 0; i < c->n_inputs; i++)
        if (!(c->fixed >> i & 1u)) targets[next++] = outer[i];
    OK(tape_gradients_of(total, targets, (size_t)count, seconds));
    next = 0;
    for (int i = 0; i < c->n_inputs; i++)
        if (!(c->fixed >> i & 1u)) OK(tensor_read_floats(seconds[next++], out->numbers[i]));
    release_all(seconds, count);
    release_all(gradients, count);
    tensor_release(total);
    release_all(inner, c->n_inputs);
    release_all(outer, c->n_inputs);
    release_all(inputs, c->n_inputs);
}

// Differences are taken on the CPU: what they are compared with does not depend on the device.
static Device *reference_device(void) {
    static Device *device;
    if (!device) OK(device_open("cpu", &device));
    return device;
}

typedef double (*Function)(const Case *c, const Point *point);

static void compare(const Case *c, const char *what, Function f, const Point *gradient,
                    double tolerance) {
    Point point = point_of(c);
    Device *tested = device_default_replace(reference_device());
    for (int i = 0; i < c->n_inputs; i++) {
        if (c->fixed >> i & 1u) continue;
        for (int64_t j = 0; j < count_of(c->shapes[i]); j++) {
            double *x = &point.numbers[i][j], before = *x, step = 1e-5;
            *x = before + step;
            double above = f(c, &point);
            *x = before - step;
            double below = f(c, &point), wanted = (above - below) / (2 * step);
            *x = before;
            double got = gradient->numbers[i][j];
            double allowed = tolerance * fmax(1, fmax(fabs(wanted), fabs(got)));
            if (!(fabs(wanted - got) <= allowed))
                fail_msg("%s: %s of input %d at %d is %.10g, differences give %.10g", c->name, what,
                         i, (int)j, got, wanted);
        }
    }
    (void)device_default_replace(tested);
}

static void check_case(const Case *c) {
    Point point = point_of(c), gradient;
    for (int layout = 0; layout < LAYOUTS; layout++) {
        first_order(c, &point, (TestLayout)layout, &gradient);
        compare(c, "gradient", value_at, &gradient, 1e-6);
    }
    if (c->first_only) return;
    second_order(c, &point, &gradient);
    compare(c, "second gradient", slope_sum, &gradient, 2e-5);
    assert_int_equal(tape_node_count(), 0);
}

#define ONE(shape) .n_inputs = 1, .shapes = {shape}
#define S(...)                                                                                     \
    {                                                                                              \
        .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dims = { __VA_ARGS__ }        \
    }
#define TABLE(name)                                                                                \
    static void test_##name(void **state) {                                                        \
        (void)state;                                                                               \
        for (size_t i = 0; i < sizeof name / sizeof *name; i++) check_case(&name[i]);              \
    }

#endif
