// What the tests of src/tensor share: tensors of any dtype in awkward layouts, and reading them
// back.
#ifndef TESTS_TENSOR_TENSORS_H
#define TESTS_TENSOR_TENSORS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "device/statistics.h"
#include "tensor/index.h"
#include "tensor/join.h"
#include "tensor/op.h"
#include "tensor/view.h"

// cmocka.h needs these, and its own `fail` must come after ours.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != STATUS_OK) fail_msg("%s: %s", #call, error_current()->message);              \
    } while (0)

// The call must fail with exactly this message.
#define FAILS(code, text, call)                                                                    \
    do {                                                                                           \
        assert_int_equal((call), code);                                                            \
        assert_string_equal(error_current()->message, text);                                       \
    } while (0)

static const DType all_dtypes[] = {DTYPE_BOOL,    DTYPE_UINT8,  DTYPE_INT8,    DTYPE_INT16,
                                   DTYPE_INT32,   DTYPE_INT64,  DTYPE_FLOAT16, DTYPE_BFLOAT16,
                                   DTYPE_FLOAT32, DTYPE_FLOAT64};
enum { DTYPES = sizeof all_dtypes / sizeof *all_dtypes };

static inline Shape shape_of(int rank, ...) {
    Shape shape = {.rank = rank};
    va_list sizes;
    va_start(sizes, rank);
    for (int i = 0; i < rank; i++) shape.dims[i] = va_arg(sizes, int);
    va_end(sizes);
    return shape;
}
#define SHAPE(...) shape_of(sizeof((int[]){__VA_ARGS__}) / sizeof(int), __VA_ARGS__)

// A tensor, not a literal, of the numbers rounded to the dtype.
static inline Tensor *make_tensor(DType dtype, Shape shape, const double *values) {
    Tensor *literal, *tensor;
    OK(tensor_from_floats(values, &shape, DTYPE_FLOAT64, &literal));
    if (dtype == DTYPE_FLOAT64)
        OK(tensor_clone(literal, &tensor));
    else
        OK(tensor_cast(literal, dtype, &tensor));
    tensor_release(literal);
    return tensor;
}

// 0.5, 1.75, -3, ... : small numbers of both signs, fractions exact in every float dtype.
static inline double sample(int64_t i) {
    static const double numbers[] = {0.5, 1.75, -3, 2, 0, -0.25, 4, 1, -1, 6, -2.5, 3};
    return numbers[(size_t)i % (sizeof numbers / sizeof *numbers)];
}

static inline Tensor *make_samples(DType dtype, Shape shape, int64_t first) {
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.dims[i];
    double *values = malloc((size_t)count * sizeof *values + 1);
    for (int64_t i = 0; i < count; i++) values[i] = sample(first + i);
    Tensor *tensor = make_tensor(dtype, shape, values);
    free(values);
    return tensor;
}

static inline double *read_all(Tensor *tensor) {
    double *values = malloc((size_t)tensor_count(tensor) * sizeof *values + 1);
    OK(tensor_read_floats(tensor, values));
    return values;
}

typedef enum TestLayout { PLAIN, TRANSPOSED, SLICED, REVERSED, OFFSET, LAYOUTS } TestLayout;

// The same contents, laid out in another way. Takes x.
static inline Tensor *lay_out_as(Tensor *x, TestLayout layout) {
    Tensor *a, *b, *c;
    if (x->view.rank == 0 || tensor_count(x) == 0) return x;
    int last = x->view.rank - 1;
    Shape shape = tensor_shape(x);
    switch (layout) {
    case TRANSPOSED:
        OK(tensor_reverse_dims(x, &a));
        OK(tensor_clone(a, &b));
        OK(tensor_reverse_dims(b, &c));
        tensor_release(a);
        tensor_release(b);
        break;
    case SLICED: // every other element of something twice as wide
        OK(tensor_repeat_dim(x, last, 2, true, &a));
        OK(tensor_slice_by(a, last, &(SliceBounds){true, true, true, 0, 2 * shape.dims[last], 2},
                           &c));
        tensor_release(a);
        break;
    case REVERSED:
        OK(tensor_flip(x, last, &a));
        OK(tensor_clone(a, &b));
        OK(tensor_flip(b, last, &c));
        tensor_release(a);
        tensor_release(b);
        break;
    case OFFSET:
        OK(tensor_concat((Tensor *const[]){x, x}, 2, 0, &a));
        OK(tensor_slice(a, 0, shape.dims[0], 2 * shape.dims[0], &c));
        tensor_release(a);
        break;
    default: return x;
    }
    tensor_release(x);
    return c;
}

static inline void assert_type(const Tensor *tensor, const char *wanted) {
    assert_string_equal(tensor_type_name(tensor).text, wanted);
}

// Everything that was made is gone again.
static inline void assert_no_live_buffers(void) {
    Device *device;
    OK(device_default(&device));
    assert_int_equal(pool_statistics(device).live_buffers, 0);
}

static inline int close_device(void **state) {
    (void)state;
    assert_no_live_buffers();
    device_default_close();
    return 0;
}

#endif
