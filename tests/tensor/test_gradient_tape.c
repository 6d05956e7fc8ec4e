// The tape: what it holds and lets go of, parameters, order, ties, zeros, subscripts, errors.
#include "tensors.h"

#include "device/work.h"
#include "tensor/gradient/backward.h"
#include "tensor/gradient/tape.h"
#include "tensor/join.h"
#include "tensor/parameter.h"

static Tensor *parameter_of(Shape shape, const double *values) {
    Tensor *x = make_tensor(DTYPE_FLOAT64, shape, values), *parameter;
    OK(tape_parameter_new(x, &parameter));
    tensor_release(x);
    return parameter;
}

static Tensor *unary(OpId op, Tensor *x) {
    Tensor *result;
    OK(op_unary(op, x, &result));
    return result;
}

static Tensor *binary(OpId op, Tensor *x, Tensor *y) {
    Tensor *result;
    OK(op_binary(op, op_tensor(x), op_tensor(y), &result));
    return result;
}

static void expect_gradient(Tensor *parameter, const double *wanted) {
    assert_non_null(tape_gradient(parameter));
    double *got = read_all(tape_gradient(parameter));
    for (int64_t i = 0; i < tensor_count(parameter); i++)
        if (fabs(got[i] - wanted[i]) > 1e-9)
            fail_msg("gradient %d is %.12g, not %.12g", (int)i, got[i], wanted[i]);
    free(got);
}

// The gradients of sum(op(x)) for one parameter.
static void expect_of(OpId op, Shape shape, const double *values, const double *wanted) {
    Tensor *x = parameter_of(shape, values), *y = unary(op, x), *loss = unary(OP_sum, y);
    OK(tape_backward(loss, NULL));
    expect_gradient(x, wanted);
    tensor_release(loss);
    tensor_release(y);
    tensor_release(x);
    assert_int_equal(tape_node_count(), 0);
}

static void test_ties_and_zeros(void **state) {
    (void)state;
    expect_of(OP_max_along, SHAPE(4), (double[]){2, 1, 2, 0}, (double[]){0.5, 0, 0.5, 0});
    expect_of(OP_prod, SHAPE(3), (double[]){2, 0, 3}, (double[]){0, 6, 0});
    expect_of(OP_prod, SHAPE(3), (double[]){0, 0, 3}, (double[]){0, 0, 0});
    // cumprod of 2, 0, 3: 2, 0, 0
    expect_of(OP_cumprod, SHAPE(3), (double[]){2, 0, 3}, (double[]){1, 2 + 6, 0});
    expect_of(OP_norm, SHAPE(2), (double[]){0, 0}, (double[]){0, 0});
    expect_of(OP_std, SHAPE(2), (double[]){1, 1}, (double[]){0, 0});
    expect_of(OP_relu, SHAPE(3), (double[]){-1, 0, 1}, (double[]){0, 0, 1});
    expect_of(OP_abs, SHAPE(3), (double[]){-1, 0, 1}, (double[]){-1, 0, 1});
    expect_of(OP_sum, SHAPE(0), (double[]){0}, (double[]){0});
}

static void test_first_extreme_along_a_dimension(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(2, 3), (double[]){1, 5, 5, 4, 4, 0}), *best, *loss;
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = 1};
    OK(op_with(OP_max_along, &x, 1, &attributes, &best));
    loss = unary(OP_sum, best);
    OK(tape_backward(loss, NULL));
    expect_gradient(x, (double[]){0, 1, 0, 1, 0, 0});
    tensor_release(loss);
    tensor_release(best);
    tensor_release(x);
}

static void test_equal_operands_share(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(2), (double[]){1, 3}),
           *y = parameter_of(SHAPE(2), (double[]){1, 2});
    Tensor *z = binary(OP_maximum, x, y), *loss = unary(OP_sum, z);
    OK(tape_backward(loss, NULL));
    expect_gradient(x, (double[]){0.5, 1});
    expect_gradient(y, (double[]){0.5, 0});
    tensor_release(loss);
    tensor_release(z);
    tensor_release(y);
    tensor_release(x);
}

static void test_pow_at_zero(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(2), (double[]){0, 2}), *y, *loss;
    OK(op_binary(OP_pow, op_tensor(x), op_int(0), &y));
    loss = unary(OP_sum, y);
    OK(tape_backward(loss, NULL));
    expect_gradient(x, (double[]){0, 0});
    tensor_release(loss);
    tensor_release(y);
    tensor_release(x);
}

static void test_subscripts(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(3, 3), (double[]){1, 2, 3, 4, 5, 6, 7, 8, 9}), *part, *loss;
    Tensor *turned;
    OK(tensor_reverse_dims(x, &turned));
    Tensor *rows = make_tensor(DTYPE_INT64, SHAPE(2), (double[]){0, 0});
    IndexItem items[2] = {{.kind = INDEX_TENSOR, .tensor = rows},
                          {.kind = INDEX_SLICE, .has_start = true, .start = 1}};
    OK(index_get(turned, items, 2, &part)); // [[4, 7], [4, 7]]
    loss = unary(OP_sum, part);
    OK(tape_backward(loss, NULL));
    expect_gradient(x, (double[]){0, 0, 0, 2, 0, 0, 2, 0, 0});
    tensor_release(loss);
    tensor_release(part);
    tape_zero_gradients();
    IndexItem both[2] = {items[0], items[0]};
    OK(index_get(x, both, 2, &part));
    loss = unary(OP_sum, part);
    OK(tape_backward(loss, NULL));
    expect_gradient(x, (double[]){2, 0, 0, 0, 0, 0, 0, 0, 0});
    tensor_release(loss);
    tensor_release(part);
    tensor_release(rows);
    tensor_release(turned);
    tensor_release(x);
}

static void test_assignment(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(3), (double[]){1, 2, 3}),
           *v = parameter_of(SHAPE(1), (double[]){7});
    Tensor *y = unary(OP_square, x), *saved = unary(OP_square, y), *loss;
    IndexItem item = {.kind = INDEX_SLICE, .has_stop = true, .stop = 2};
    OK(index_set(&y, &item, 1, op_tensor(v), true)); // what `saved` kept of y must not change
    Tensor *cubes = binary(OP_mul, y, x), *total = binary(OP_add, cubes, saved);
    double *numbers = read_all(y);
    assert_true(numbers[0] == 7 && numbers[1] == 7 && numbers[2] == 9);
    free(numbers);
    loss = unary(OP_sum, total);
    OK(tape_backward(loss, NULL));
    // 7 x for the first two, x^3 for the last, and x^4.
    expect_gradient(x, (double[]){7 + 4, 7 + 32, 27 + 108});
    expect_gradient(v, (double[]){1 + 2});
    tensor_release(loss);
    tensor_release(total);
    tensor_release(cubes);
    tensor_release(saved);
    tensor_release(y);
    tensor_release(v);
    tensor_release(x);
    assert_int_equal(tape_node_count(), 0);
}

// An update does not reach what was saved before it, nor views.
static void test_update_keeps_saved_contents(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(2), (double[]){1, 2}), *y = unary(OP_square, x);
    Tensor *loss = unary(OP_sum, y),
           *other = make_tensor(DTYPE_FLOAT64, SHAPE(2), (double[]){5, 6});
    OK(tape_parameter_assign(x, other));
    OK(tape_parameter_unshare(x));
    OK(tape_backward(loss, NULL));
    expect_gradient(x, (double[]){2, 4});
    double *now = read_all(x);
    assert_true(now[0] == 5 && now[1] == 6);
    free(now);
    Tensor *wrong = make_tensor(DTYPE_FLOAT64, SHAPE(3), (double[]){1, 2, 3});
    FAILS(STATUS_SHAPE, "a parameter is float64[2] and cannot become float64[3]",
          tape_parameter_assign(x, wrong));
    tensor_release(wrong);
    tensor_release(other);
    tensor_release(loss);
    tensor_release(y);
    tensor_release(x);
}

static void test_reached_in_order_of_declaration(void **state) {
    (void)state;
    Tensor *a = parameter_of(SHAPE(1), (double[]){1}), *b = parameter_of(SHAPE(1), (double[]){2});
    Tensor *c = parameter_of(SHAPE(1), (double[]){3});
    Tensor *product = binary(OP_mul, c, a), *loss = unary(OP_sum, product);
    TensorArray reached, all;
    OK(tape_backward(loss, &reached));
    tape_parameters(&all);
    assert_int_equal(reached.count, 2);
    assert_ptr_equal(reached.items[0], a);
    assert_ptr_equal(reached.items[1], c);
    assert_int_equal(all.count, 3);
    assert_ptr_equal(all.items[1], b);
    assert_null(tape_gradient(b));
    double norm;
    OK(tape_gradient_norm(all.items, all.count, &norm));
    assert_true(fabs(norm - sqrt(10)) < 1e-9);
    OK(tape_clip_gradient_norm(all.items, all.count, 1, &norm));
    OK(tape_gradient_norm(all.items, all.count, &norm));
    assert_true(fabs(norm - 1) < 1e-6);
    tensor_array_release(&all);
    tensor_array_release(&reached);
    tensor_release(loss);
    tensor_release(product);
    tensor_release(c);
    tensor_release(b);
    tensor_release(a);
}

static void test_failures(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(2), (double[]){1, 2}), *y = unary(OP_square, x);
    FAILS(STATUS_SHAPE,
          "backward needs a loss of one floating-point number, but this is float64[2]",
          tape_backward(y, NULL));
    Tensor *loss = unary(OP_sum, y), *plain = make_tensor(DTYPE_FLOAT64, SHAPE(1), (double[]){1});
    OK(tape_backward(loss, NULL));
    FAILS(STATUS_GRADIENT, "the tape of this tensor has been used up by an earlier backward",
          tape_backward(loss, NULL));
    FAILS(STATUS_GRADIENT, "the loss does not depend on anything learnable",
          tape_backward(plain, NULL));
    Tensor *rare = unary(OP_unique, x), *sum = unary(OP_sum, rare), *whole, *parameter;
    FAILS(STATUS_GRADIENT, "unique has no gradient, but the loss depends on it",
          tape_backward(sum, NULL));
    OK(tensor_cast(plain, DTYPE_INT64, &whole));
    FAILS(STATUS_DTYPE, "only floats can be learned, but this is int64[1]",
          tape_parameter_new(whole, &parameter));
    tensor_release(whole);
    tensor_release(sum);
    tensor_release(rare);
    tensor_release(plain);
    tensor_release(loss);
    tensor_release(y);
    tensor_release(x);
    assert_int_equal(tape_node_count(), 0);
}

static size_t live_bytes(void) {
    Device *device;
    OK(device_default(&device));
    return pool_statistics(device).live_bytes;
}

static void test_memory_stays_flat(void **state) {
    (void)state;
    Tensor *w = parameter_of(SHAPE(3, 2), (double[]){1, 2, 3, 4, 5, 6});
    Tensor *x = make_tensor(DTYPE_FLOAT64, SHAPE(2, 3), (double[]){1, -1, 2, 0, 1, 1});
    size_t before = 0;
    for (int i = 0; i < 1000; i++) {
        Tensor *y = binary(OP_matmul, x, w), *z = unary(OP_relu, y), *s = unary(OP_softmax, z);
        Tensor *loss = unary(OP_mean, s);
        OK(tape_backward(loss, NULL));
        tensor_release(loss);
        tensor_release(s);
        tensor_release(z);
        tensor_release(y);
        if (i == 1) before = live_bytes();
        if (i > 1) assert_int_equal(live_bytes(), before);
        assert_int_equal(tape_node_count(), 0);
    }
    tensor_release(x);
    tensor_release(w);
    assert_no_live_buffers();
}

// What backward passed is gone although the loss and a value before it are still held.
static void test_backward_releases_as_it_goes(void **state) {
    (void)state;
    Tensor *w = parameter_of(SHAPE(2), (double[]){1, 2});
    size_t alone = live_bytes();
    Tensor *y = unary(OP_exp, w), *z = unary(OP_exp, y), *loss = unary(OP_sum, z);
    tensor_release(y);
    tensor_release(z);
    OK(tape_backward(loss, NULL));
    assert_int_equal(live_bytes(), alone + 16 + 8); // the gradient and the loss
    tensor_release(loss);
    TapeMark mark = tape_mark();
    Tensor *kept = unary(OP_exp, w), *more = unary(OP_exp, kept);
    tape_release_since(mark);
    Tensor *sum = unary(OP_sum, more);
    FAILS(STATUS_GRADIENT, "the tape of this tensor has been used up by an earlier backward",
          tape_backward(sum, NULL));
    tensor_release(sum);
    tensor_release(more);
    tensor_release(kept);
    tensor_release(w);
}

static void test_deep_graphs(void **state) {
    (void)state;
    for (int backward = 0; backward < 2; backward++) {
        Tensor *w = parameter_of(SHAPE(1), (double[]){1}), *y = unary(OP_sum, w);
        for (int i = 0; i < 100000; i++) {
            Tensor *next;
            OK(op_binary(OP_add, op_tensor(y), op_tensor(w), &next));
            tensor_release(y);
            y = next;
        }
        if (backward) {
            OK(tape_backward(y, NULL));
            expect_gradient(w, (double[]){100001});
        }
        tensor_release(y);
        assert_int_equal(tape_node_count(), 0);
        tensor_release(w);
    }
}

// The result of a donated operation takes over a buffer only when nobody saved it.
static void test_donation(void **state) {
    (void)state;
    Tensor *w = parameter_of(SHAPE(2), (double[]){1, 2}), *y = unary(OP_exp, w), *z;
    OK(op_binary(OP_mul, op_donated(y), op_float(3), &z)); // exp saved its result
    tensor_release(y);
    Tensor *loss = unary(OP_sum, z);
    OK(tape_backward(loss, NULL));
    expect_gradient(w, (double[]){3 * exp(1), 3 * exp(2)});
    tensor_release(loss);
    tensor_release(z);
    tensor_release(w);
}

static void test_nothing_is_recorded_when_off(void **state) {
    (void)state;
    Tensor *w = parameter_of(SHAPE(2), (double[]){1, 2});
    assert_true(tape_set_enabled(false));
    Tensor *y = unary(OP_exp, w);
    assert_false(tensor_needs_gradient(y));
    assert_false(tape_set_enabled(true));
    Tensor *z = unary(OP_exp, w), *detached;
    assert_true(tensor_needs_gradient(z));
    OK(tape_detach(z, &detached));
    assert_false(tensor_needs_gradient(detached));
    tensor_release(detached);
    tensor_release(z);
    tensor_release(y);
    tensor_release(w);
    assert_false(tape_is_recording());
}

static void test_half_precision(void **state) {
    (void)state;
    double numbers[] = {1, 2, 3, 4};
    DType dtypes[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32};
    for (int d = 0; d < 3; d++) {
        Tensor *x = make_tensor(dtypes[d], SHAPE(2, 2), numbers), *w;
        OK(tape_parameter_new(x, &w));
        Tensor *y = binary(OP_matmul, w, w), *loss = unary(OP_mean, y);
        OK(tape_backward(loss, NULL));
        assert_int_equal(tensor_dtype(tape_gradient(w)), dtypes[d]);
        expect_gradient(w, (double[]){(3 + 4) / 4.0, (7 + 4) / 4.0, (3 + 6) / 4.0, (7 + 6) / 4.0});
        tensor_release(loss);
        tensor_release(y);
        tensor_release(w);
        tensor_release(x);
    }
}

// What has arrived, and whether the parameter that is used first had its gradient by then.
typedef struct Arrivals {
    Tensor *order[4], *first;
    int count;
    bool first_was_there[4];
} Arrivals;

static Status note_arrival(void *context, Tensor *parameter) {
    Arrivals *arrivals = context;
    assert_non_null(tape_gradient(parameter));
    arrivals->first_was_there[arrivals->count] = tape_gradient(arrivals->first) != NULL;
    arrivals->order[arrivals->count++] = parameter;
    return STATUS_OK;
}

// exp(exp(x) * y) * z: backward comes to z first, while the gradient of x is still to come.
static void test_parameters_arrive_while_backward_runs(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(1), (double[]){0}), *y = parameter_of(SHAPE(1), (double[]){0.5});
    Tensor *z = parameter_of(SHAPE(1), (double[]){2});
    Tensor *inner = unary(OP_exp, x), *scaled = binary(OP_mul, inner, y);
    Tensor *outer = unary(OP_exp, scaled), *loss = binary(OP_mul, outer, z);
    Arrivals arrivals = {.first = x};
    const TapeArrival arrival = {note_arrival, &arrivals};
    TensorArray reached;
    tape_set_arrival(&arrival);
    OK(tape_backward(loss, &reached));
    tape_set_arrival(NULL);
    assert_int_equal(arrivals.count, 3);
    assert_ptr_equal(arrivals.order[0], z);
    assert_ptr_equal(arrivals.order[1], y);
    assert_ptr_equal(arrivals.order[2], x);
    assert_false(arrivals.first_was_there[0] || arrivals.first_was_there[1]);
    assert_int_equal(reached.count, 3);
    assert_true(reached.items[0] == x && reached.items[1] == y && reached.items[2] == z);
    Tensor *all[] = {loss, outer, scaled, inner, z, y, x};
    tensor_array_release(&reached);
    for (int i = 0; i < 7; i++) tensor_release(all[i]);
}

// How many kernels backward takes for sum(op(x)^2); OP_COUNT: for sum(x^2).
static uint64_t kernels_of(OpId op) {
    Tensor *x = parameter_of(SHAPE(2, 3), (double[]){1, 5, 5, 4, 4, 0});
    Tensor *y = op == OP_COUNT ? tensor_retain(x) : unary(op, x), *squares = unary(OP_square, y);
    Tensor *loss = unary(OP_sum, squares);
    DeviceWork work = {0};
    device_count_work(&work);
    OK(tape_backward(loss, NULL));
    device_count_work(NULL);
    Tensor *all[] = {loss, squares, y, x};
    for (int i = 0; i < 4; i++) tensor_release(all[i]);
    return work.kernels;
}

static void test_kernels_of_gradients(void **state) {
    (void)state;
    Tensor *x = parameter_of(SHAPE(1), (double[]){2});
    bool maps = device_has(x->device, KERNEL_MAP_GRADIENT);
    bool norms = device_has(x->device, KERNEL_LAYER_NORM_GRADIENT);
    tensor_release(x);
    uint64_t others = kernels_of(OP_COUNT);
    if (maps) assert_int_equal(kernels_of(OP_gelu) - others, 1);
    if (norms) assert_int_equal(kernels_of(OP_layer_norm) - others, 1);
    assert_true(kernels_of(OP_gelu) > others && kernels_of(OP_layer_norm) > others);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ties_and_zeros),
                                       cmocka_unit_test(test_first_extreme_along_a_dimension),
                                       cmocka_unit_test(test_equal_operands_share),
                                       cmocka_unit_test(test_pow_at_zero),
                                       cmocka_unit_test(test_subscripts),
                                       cmocka_unit_test(test_assignment),
                                       cmocka_unit_test(test_update_keeps_saved_contents),
                                       cmocka_unit_test(test_reached_in_order_of_declaration),
                                       cmocka_unit_test(test_parameters_arrive_while_backward_runs),
                                       cmocka_unit_test(test_failures),
                                       cmocka_unit_test(test_memory_stays_flat),
                                       cmocka_unit_test(test_backward_releases_as_it_goes),
                                       cmocka_unit_test(test_deep_graphs),
                                       cmocka_unit_test(test_donation),
                                       cmocka_unit_test(test_nothing_is_recorded_when_off),
                                       cmocka_unit_test(test_half_precision),
                                       cmocka_unit_test(test_kernels_of_gradients)};
    return cmocka_run_group_tests(tests, NULL, close_device);
}
