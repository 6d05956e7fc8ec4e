// Sizes, shapes and types: arithmetic with what is known, words for messages, broadcasting.
#include "shape/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// The address of the name, so far down that no number of a script is there.
int64_t size_named(const char *name) {
    ASSERT(name != NULL); // that is SIZE_UNKNOWN
    return SIZE_UNKNOWN + (int64_t)(intptr_t)name;
}

int64_t size_add(int64_t x, int64_t y) {
    int64_t sum;
    if (y == 0) return x;
    if (x == 0) return y;
    if (!size_is_known(x) || !size_is_known(y)) return SIZE_UNKNOWN;
    return __builtin_add_overflow(x, y, &sum) ? SIZE_UNKNOWN : size_computed(sum);
}

int64_t size_multiply(int64_t x, int64_t y) {
    int64_t product;
    if (y == 1) return x;
    if (x == 1) return y;
    if (x == 0 || y == 0) return 0;
    if (!size_is_known(x) || !size_is_known(y)) return SIZE_UNKNOWN;
    return __builtin_mul_overflow(x, y, &product) ? SIZE_UNKNOWN : size_computed(product);
}

static int write_size(char *out, size_t space, int64_t size) {
    if (size_is_known(size)) return snprintf(out, space, "%" PRId64, size);
    const char *name = (const char *)(intptr_t)(size - SIZE_UNKNOWN);
    return snprintf(out, space, "%.20s", name ? name : "?");
}

void size_append(Text *out, int64_t size) {
    char words[32];
    write_size(words, sizeof words, size);
    text_append_string(out, words);
}

int64_t shape_count(const Shape *shape) {
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) count = size_multiply(count, shape->dims[i]);
    return count;
}

bool shape_is_known(const Shape *shape) {
    for (int i = 0; i < shape->rank; i++)
        if (!size_is_known(shape->dims[i])) return false;
    return true;
}

bool shapes_differ(const Shape *x, const Shape *y) {
    if (x->rank != y->rank) return true;
    for (int i = 0; i < x->rank; i++)
        if (sizes_differ(x->dims[i], y->dims[i])) return true;
    return false;
}

// At most RANK_MAX sizes of 20 characters fit.
static void write_shape(char *out, size_t space, const Shape *shape) {
    size_t at = (size_t)snprintf(out, space, "[");
    for (int i = 0; i < shape->rank; i++) {
        at += (size_t)snprintf(out + at, space - at, "%s", i ? ", " : "");
        at += (size_t)write_size(out + at, space - at, shape->dims[i]);
    }
    ASSERT(at < space);
    snprintf(out + at, space - at, "]");
}

TypeName type_name(DType dtype, const Shape *shape) {
    TypeName name;
    int length = snprintf(name.text, sizeof name.text, "%s",
                          dtype == DTYPE_COUNT ? "tensor" : dtype_name(dtype));
    write_shape(name.text + length, sizeof name.text - (size_t)length, shape);
    return name;
}

void shape_describe(const Shape *shape, Text *out) {
    char words[sizeof(TypeName)];
    write_shape(words, sizeof words, shape);
    text_append_string(out, words);
}

Status shape_dim(const TensorType *x, int64_t dim, int *out) {
    int rank = x->shape.rank;
    *out = 0;
    if (dim < -rank || dim >= rank)
        return fail(STATUS_INDEX, "dim %" PRId64 " is out of range for %s: it has %d dimension%s",
                    dim, tensor_type_text(x).text, rank, rank == 1 ? "" : "s");
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
        if (!sizes_equal(large->shape.dims[dim], size)) continue;
        Shape wanted = {.rank = large->shape.rank - dim};
        ASSERT(wanted.rank >= 2 && wanted.rank <= RANK_MAX);
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
    ASSERT(from_end > 0 && from_end <= x->shape.rank && from_end <= y->shape.rank);
    const char *verb = "apply", *joint = "and", *what = op_name, *to = " to ";
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].op_name, op_name) == 0)
            verb = verbs[i].verb, joint = verbs[i].joint, what = "", to = "";
    TypeName x_name = tensor_type_text(x), y_name = tensor_type_text(y);
    int64_t x_size = x->shape.dims[x->shape.rank - from_end];
    int64_t y_size = y->shape.dims[y->shape.rank - from_end];
    int rank = x->shape.rank > y->shape.rank ? x->shape.rank : y->shape.rank;
    fail(STATUS_SHAPE,
         "cannot %s %s%s%s %s %s: dimension %d is %" PRId64 " here and %" PRId64 " there", verb,
         what, to, x_name.text, joint, y_name.text, rank - from_end, x_size, y_size);
    help_unsqueeze(x, y);
    return STATUS_SHAPE;
}

// The size that two sizes broadcast to, which do not contradict each other.
static int64_t size_joint(int64_t a, int64_t b) {
    if (a == b || b == 1) return a;
    if (a == 1) return b;
    return size_is_known(a) ? a : (size_is_known(b) ? b : SIZE_UNKNOWN);
}

Status shape_broadcast(const char *op_name, const TensorType *x, const TensorType *y, Shape *out) {
    int rank = x->shape.rank > y->shape.rank ? x->shape.rank : y->shape.rank;
    Shape result = {.rank = rank};
    ASSERT(rank >= 0 && rank <= RANK_MAX);
    for (int from_end = 1; from_end <= rank; from_end++) {
        int64_t a = from_end <= x->shape.rank ? x->shape.dims[x->shape.rank - from_end] : 1;
        int64_t b = from_end <= y->shape.rank ? y->shape.dims[y->shape.rank - from_end] : 1;
        if (a != b && a != 1 && b != 1 && sizes_differ(a, b))
            return fail_broadcast(op_name, x, y, from_end);
        result.dims[rank - from_end] = size_joint(a, b);
    }
    *out = result;
    return STATUS_OK;
}
