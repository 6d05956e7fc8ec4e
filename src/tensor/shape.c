// Shapes as numbers and as words: counts, strides, broadcasting, and how messages name a type.
#include "tensor/op.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

Shape tensor_shape(const Tensor *tensor) {
    Shape shape = {.rank = tensor->view.rank};
    memcpy(shape.dims, tensor->view.dims, (size_t)shape.rank * sizeof *shape.dims);
    return shape;
}

TensorType tensor_type(const Tensor *tensor) {
    return (TensorType){tensor->view.dtype, tensor_shape(tensor)};
}

int64_t tensor_count(const Tensor *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->view.rank; i++) count *= tensor->view.dims[i];
    return count;
}

bool tensor_is_contiguous(const Tensor *tensor) {
    const TensorView *view = &tensor->view;
    int64_t expected = 1;
    for (int i = view->rank - 1; i >= 0; i--) {
        if (view->dims[i] == 0) return true;
        if (view->dims[i] != 1 && view->strides[i] != expected) return false;
        expected *= view->dims[i];
    }
    return true;
}

// At most RANK_MAX sizes of 20 digits fit.
static void write_shape(char *out, size_t size, const Shape *shape) {
    size_t at = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < shape->rank; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "", shape->dims[i]);
    snprintf(out + at, size - at, "]");
}

TypeName type_name(DType dtype, const Shape *shape) {
    TypeName name;
    int length = snprintf(name.text, sizeof name.text, "%s", dtype_name(dtype));
    write_shape(name.text + length, sizeof name.text - (size_t)length, shape);
    return name;
}

TypeName tensor_type_name(const Tensor *tensor) {
    Shape shape = tensor_shape(tensor);
    return type_name(tensor->view.dtype, &shape);
}

void tensor_describe(const Tensor *tensor, Text *out) {
    text_append_string(out, tensor_type_name(tensor).text);
}

void shape_describe(const Shape *shape, Text *out) {
    char words[sizeof(TypeName)];
    write_shape(words, sizeof words, shape);
    text_append_string(out, words);
}

Status op_dim(const Tensor *x, int64_t dim, int *out) {
    int rank = x->view.rank;
    if (dim < -rank || dim >= rank)
        return fail(STATUS_INDEX, "dim %" PRId64 " is out of range for %s: it has %d dimension%s",
                    dim, tensor_type_name(x).text, rank, rank == 1 ? "" : "s");
    *out = (int)(dim < 0 ? dim + rank : dim);
    return STATUS_OK;
}

// Verbs that read better than "apply NAME to"; the second word joins the operands.
static const struct {
    const char *op_name, *verb, *joint;
} verbs[] = {
    {"add", "add", "and"},    {"sub", "subtract", "and"},         {"mul", "multiply", "and"},
    {"div", "divide", "by"},  {"eq", "compare", "and"},           {"ne", "compare", "and"},
    {"lt", "compare", "and"}, {"le", "compare", "and"},           {"gt", "compare", "and"},
    {"ge", "compare", "and"}, {"approx_equal", "compare", "and"},
};

// Offers the place where a new dimension would make the operands fit.
static void help_unsqueeze(const TensorType *x, const TensorType *y) {
    const TensorType *small = x->shape.rank < y->shape.rank ? x : y;
    const TensorType *large = small == x ? y : x;
    if (small->shape.rank != 1 || large->shape.rank < 2) return;
    int64_t size = small->shape.dims[0];
    for (int dim = large->shape.rank - 2; dim >= 0; dim--) {
        if (large->shape.dims[dim] != size) continue;
        Shape wanted = {.rank = large->shape.rank - dim};
        wanted.dims[0] = size;
        for (int i = 1; i < wanted.rank; i++) wanted.dims[i] = 1;
        char words[sizeof(TypeName)];
        write_shape(words, sizeof words, &wanted);
        fail_help("shapes line up at the last dimension: reshape the %s to %s to use it along "
                  "dimension %d",
                  type_name(small->dtype, &small->shape).text, words, dim);
        return;
    }
}

static Status fail_broadcast(const char *op_name, const TensorType *x, const TensorType *y,
                             int from_end) {
    const char *verb = "apply", *joint = "and", *what = op_name, *to = " to ";
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].op_name, op_name) == 0)
            verb = verbs[i].verb, joint = verbs[i].joint, what = "", to = "";
    TypeName x_name = type_name(x->dtype, &x->shape), y_name = type_name(y->dtype, &y->shape);
    int64_t x_size = x->shape.dims[x->shape.rank - from_end];
    int64_t y_size = y->shape.dims[y->shape.rank - from_end];
    int rank = x->shape.rank > y->shape.rank ? x->shape.rank : y->shape.rank;
    fail(STATUS_SHAPE,
         "cannot %s %s%s%s %s %s: dimension %d is %" PRId64 " here and %" PRId64 " there", verb,
         what, to, x_name.text, joint, y_name.text, rank - from_end, x_size, y_size);
    help_unsqueeze(x, y);
    return STATUS_SHAPE;
}

Status shape_broadcast(const char *op_name, const TensorType *x, const TensorType *y, Shape *out) {
    int rank = x->shape.rank > y->shape.rank ? x->shape.rank : y->shape.rank;
    Shape result = {.rank = rank};
    for (int from_end = 1; from_end <= rank; from_end++) {
        int64_t a = from_end <= x->shape.rank ? x->shape.dims[x->shape.rank - from_end] : 1;
        int64_t b = from_end <= y->shape.rank ? y->shape.dims[y->shape.rank - from_end] : 1;
        if (a != b && a != 1 && b != 1) return fail_broadcast(op_name, x, y, from_end);
        result.dims[rank - from_end] = a == 1 ? b : a;
    }
    *out = result;
    return STATUS_OK;
}
