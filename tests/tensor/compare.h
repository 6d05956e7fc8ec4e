// For tests that compare operations with numbers computed in double; next to
// tests/tensor/tensors.h.
#ifndef TESTS_TENSOR_COMPARE_H
#define TESTS_TENSOR_COMPARE_H

#include "device/statistics.h"
#include "tensors.h"

static inline Tensor *laid_out(DType dtype, Shape shape, const double *values, TestLayout layout) {
    return lay_out_as(make_tensor(dtype, shape, values), layout);
}

// Small numbers with both signs, whole for integers, the same for every call with the same seed.
static inline double *numbers(int64_t count, uint64_t seed, DType dtype) {
    double *values = calloc((size_t)count + 1, sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        double unit = (double)(seed >> 11) / 9007199254740992.0;
        DTypeKind kind = dtype_kind(dtype);
        if (kind == DTYPE_KIND_FLOAT) values[i] = unit * 4 - 2;
        if (kind == DTYPE_KIND_INT) values[i] = floor(unit * 9) - (dtype == DTYPE_UINT8 ? 0 : 4);
        if (kind == DTYPE_KIND_BOOL) values[i] = unit < 0.5;
    }
    return values;
}

static inline double epsilon_of(DType dtype) {
    switch (dtype) {
    case DTYPE_FLOAT16: return 1e-3;
    case DTYPE_BFLOAT16: return 8e-3;
    case DTYPE_FLOAT32: return 2e-6;
    case DTYPE_FLOAT64: return 1e-13;
    default: return 0;
    }
}

static inline void assert_shape(const Tensor *tensor, Shape shape) {
    Text have = {0}, want = {0};
    Shape actual = tensor_shape(tensor);
    shape_describe(&actual, &have);
    shape_describe(&shape, &want);
    assert_string_equal(text_get(&have), text_get(&want));
    text_free(&have);
    text_free(&want);
}

// |have - want| <= epsilon * (1 + |want|); NaN and infinities must be the same.
static inline void assert_numbers(Tensor *tensor, const double *want, double epsilon,
                                  const char *what) {
    double *have = read_all(tensor);
    for (int64_t i = 0; i < tensor_count(tensor); i++) {
        bool same = isnan(want[i])   ? isnan(have[i])
                    : isinf(want[i]) ? have[i] == want[i]
                                     : fabs(have[i] - want[i]) <= epsilon * (1 + fabs(want[i]));
        if (!same)
            fail_msg("%s %s: number %lld is %.17g, not %.17g", what, tensor_type_name(tensor).text,
                     (long long)i, have[i], want[i]);
    }
    free(have);
}

static inline void assert_values(Tensor *tensor, DType dtype, Shape shape, const double *want) {
    assert_string_equal(dtype_name(tensor_dtype(tensor)), dtype_name(dtype));
    assert_shape(tensor, shape);
    assert_numbers(tensor, want, 4 * epsilon_of(dtype), "values");
}

// The one result of an operation on tensors; attributes and inputs may be NULL.
static inline Tensor *apply(OpId op, const OpAttributes *attributes, int n, ...) {
    Tensor *inputs[OP_INPUTS_MAX], *result;
    va_list list;
    va_start(list, n);
    for (int i = 0; i < n; i++) inputs[i] = va_arg(list, Tensor *);
    va_end(list);
    OpCall call = {.op = &op_rows[op], .attributes = attributes, .n_inputs = n};
    for (int i = 0; i < n; i++) call.inputs[i] = inputs[i] ? op_tensor(inputs[i]) : op_absent();
    OK(op_apply(&call, &result));
    return result;
}

// Compares, then releases the result.
static inline void expect(Tensor *result, DType dtype, Shape shape, const double *want) {
    assert_values(result, dtype, shape, want);
    tensor_release(result);
}

// Rows of 32 integers as q8_0 blocks with a scale of 1.
static inline Tensor *make_q8_0(int64_t rows, int64_t columns, const double *values) {
    Device *device;
    Buffer *buffer;
    size_t blocks = (size_t)(rows * columns / 32), bytes = blocks * 34;
    unsigned char *data = malloc(bytes + 1);
    for (size_t b = 0; b < blocks; b++) {
        data[b * 34] = 0;
        data[b * 34 + 1] = 0x3c; // 1.0 in float16
        for (size_t i = 0; i < 32; i++)
            data[b * 34 + 2 + i] = (unsigned char)(signed char)values[b * 32 + i];
    }
    OK(device_default(&device));
    BufferLabel label = {.dtype = DTYPE_Q8_0, .rank = 2, .dims = {rows, columns}};
    OK(buffer_new(device, bytes, &label, &buffer));
    OK(buffer_upload(buffer, 0, data, bytes));
    free(data);
    Shape shape = {.rank = 2, .dims = {rows, columns}};
    return tensor_from_buffer(buffer, 0, DTYPE_Q8_0, &shape);
}

// The call fails with this code and message; "" as help: none is checked.
static inline void assert_fails(Status status, Status code, const char *message, const char *help) {
    assert_int_not_equal(status, STATUS_OK);
    assert_string_equal(error_current()->message, message);
    assert_int_equal(status, code);
    if (*help) assert_string_equal(error_current()->help, help);
}

// Live buffers before and after a test must agree.
static inline int count_buffers(void **state) {
    Device *device;
    static uint64_t before;
    OK(device_default(&device));
    before = pool_statistics(device).live_buffers;
    *state = &before;
    return 0;
}
static inline int check_buffers(void **state) {
    Device *device;
    OK(device_default(&device));
    uint64_t now = pool_statistics(device).live_buffers;
    if (now != *(uint64_t *)*state)
        print_error("%llu buffers were left\n", (unsigned long long)(now - *(uint64_t *)*state));
    return now == *(uint64_t *)*state ? 0 : -1;
}
#define BALANCED_TEST(test) cmocka_unit_test_setup_teardown(test, count_buffers, check_buffers)

#endif
