// Values as sequences, and the equality and order of values.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "device/foretell.h"
#include "tensor/scalar.h"
#include "tensor/view.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/print.h"

enum { NESTING_COMPARED_MAX = 5000, ITEMS_MAX = 1 << 28 };

// The numbers of a tensor in row-major order, and how far they have been handed out.
typedef struct NumberStream {
    const void *items; // doubles or int64
    DTypeKind kind;
    bool unknown; // only a run has them
    size_t at;
} NumberStream;

static uint64_t kind_of_number(const NumberStream *stream) {
    return stream->kind == DTYPE_KIND_INT    ? VALUE_INT
           : stream->kind == DTYPE_KIND_BOOL ? VALUE_BOOL
                                             : VALUE_FLOAT;
}

static Value next_number(NumberStream *stream) {
    size_t i = stream->at++;
    if (UNLIKELY(stream->unknown)) return value_measured(kind_of_number(stream), origin_current.at);
    if (stream->kind == DTYPE_KIND_INT) return value_int(((const int64_t *)stream->items)[i]);
    if (stream->kind == DTYPE_KIND_BOOL)
        return value_bool(((const int64_t *)stream->items)[i] != 0);
    return value_float(((const double *)stream->items)[i]);
}

static Value nest(NumberStream *stream, const Shape *shape, int dim) {
    ASSERT(dim >= 0 && dim <= shape->rank);
    if (dim == shape->rank) return next_number(stream);
    Value list = value_list_of((size_t)shape->dims[dim]);
    for (int64_t i = 0; list.kind != VALUE_FAIL && i < shape->dims[dim]; i++) {
        Value item = nest(stream, shape, dim + 1);
        if (item.kind != VALUE_FAIL) {
            list_push(list.as.list, item);
        } else {
            value_release(list);
            list = item;
        }
    }
    return list;
}

// All numbers of a tensor as nested lists.
static Value read_nested(Tensor *tensor) {
    NumberStream stream = {.kind = dtype_kind(tensor_dtype(tensor))};
    bool integers = stream.kind == DTYPE_KIND_INT || stream.kind == DTYPE_KIND_BOOL;
    SCOPED_MEMORY void *items =
        memory_allocate_zeroed((size_t)tensor_count(tensor), sizeof(double));
    uint64_t reads = foretelling() ? foretell_reads() : 0;
    bool before = foretell_ignore_reads(true);
    Status status =
        integers ? tensor_read_integers(tensor, items) : tensor_read_floats(tensor, items);
    foretell_ignore_reads(before);
    Shape shape = tensor_shape(tensor);
    stream.items = items;
    stream.unknown = foretelling() && foretell_reads() != reads;
    return status == STATUS_OK ? nest(&stream, &shape, 0) : value_fail();
}

Value tensor_to_list(Tensor *tensor) {
    foretell_shape_read(tensor->view.buffer);
    return read_nested(tensor);
}

bool list_extend_own(List *list, Value right) {
    bool array = right.kind == VALUE_TENSOR && tensor_rank(right.as.tensor) > 0;
    if (list->counted.refs != 2 || (right.kind != VALUE_LIST && !array)) return false;
    SCOPED_VALUE(items) = array ? tensor_to_list(right.as.tensor) : value_retain(right);
    if (items.kind == VALUE_FAIL) return false;
    list_append(list, items.as.list->items, items.as.list->count);
    return true;
}

Value tensor_element(Tensor *tensor, int64_t index) {
    ASSERT(tensor_rank(tensor) > 0 && index >= 0 && index < tensor->view.dims[0]);
    Tensor *element;
    if (tensor_select(tensor, 0, index, &element) != STATUS_OK) return value_fail();
    if (tensor_rank(element) > 0 || dtype_is_float(tensor_dtype(element)))
        return value_tensor(element);
    Value number;
    Status status = value_read_tensor(element, &number);
    tensor_release(element);
    return status == STATUS_OK ? number : value_fail();
}

static Value items_of_tensor(Tensor *tensor, const char *what) {
    if (tensor_rank(tensor) == 0) {
        fail_kind(what, "something with elements", value_tensor(tensor));
        return value_fail();
    }
    int64_t count = tensor_shape_told(tensor).dims[0];
    bool numbers = tensor_rank(tensor) == 1 && !dtype_is_float(tensor_dtype(tensor));
    if (numbers && !dtype_is_quant(tensor_dtype(tensor))) return read_nested(tensor);
    Value list = value_list_of((size_t)count);
    if (list.kind == VALUE_FAIL) return list;
    for (int64_t i = 0; i < count; i++) {
        Value element = tensor_element(tensor, i);
        if (element.kind == VALUE_FAIL) {
            value_release(list);
            return element;
        }
        list_push(list.as.list, element);
    }
    return list;
}

static Value items_of_range(const Range *range, const char *what) {
    uint64_t count = range_count(range);
    if (count > ITEMS_MAX)
        return value_failed(fail(STATUS_VALUE, "%s: a range of %llu numbers is too long for a list",
                                 what, (unsigned long long)count));
    Value list = value_list_of((size_t)count);
    if (list.kind == VALUE_FAIL) return list;
    for (uint64_t i = 0; i < count; i++) {
        int64_t number = (int64_t)((uint64_t)range->start + i * (uint64_t)range->step);
        list_push(list.as.list, value_int(number));
    }
    return list;
}

static Value items_of_string(const String *string) {
    ASSERT(string->length == 0 || string->bytes != NULL);
    Value list = value_list((size_t)string_length(string));
    uint32_t codepoint;
    for (size_t at = 0; at < string->length;) {
        size_t size = utf8_decode(string->bytes + at, string->length - at, &codepoint);
        if (!size) size = 1;
        list_push(list.as.list, string_character(string->bytes + at, size));
        at += size;
    }
    return list;
}

Value value_to_items(Value value, const char *what) {
    switch ((ValueKind)value.kind) {
    case VALUE_LIST:
    case VALUE_TUPLE: {
        const List *from = value.as.list;
        Value list = value_list(from->count);
        list_append(list.as.list, from->items, from->count);
        return list;
    }
    case VALUE_RANGE: return items_of_range(value.as.range, what);
    case VALUE_TENSOR: return items_of_tensor(value.as.tensor, what);
    case VALUE_STRING: return items_of_string(value.as.string);
    case VALUE_DICT: {
        Value list = value_list(dict_count(value.as.dict));
        for (size_t i = 0; i < dict_count(value.as.dict); i++) {
            Value key, item;
            dict_entry(value.as.dict, i, &key, &item);
            list_push(list.as.list, key);
        }
        return list;
    }
    case VALUE_HANDLE:
        if (value.as.handle->type->items) return value.as.handle->type->items(value.as.handle);
        fail_kind(what, "something with elements", value);
        return value_fail();
    default:
        fail_kind(what, "a list, tuple, range, tensor, string or dictionary", value);
        return value_fail();
    }
}

static Status tensors_equal(Tensor *a, Tensor *b, bool *out) {
    *out = false;
    Shape shape = tensor_shape(a), other = tensor_shape(b);
    ASSERT(shape.rank <= RANK_MAX && other.rank <= RANK_MAX);
    if (shape.rank != other.rank) return STATUS_OK;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] != other.dims[i]) return STATUS_OK;
    size_t count = (size_t)tensor_count(a);
    bool integers = dtype_kind(tensor_dtype(a)) <= DTYPE_KIND_INT &&
                    dtype_kind(tensor_dtype(b)) <= DTYPE_KIND_INT;
    void *x = memory_allocate_zeroed(count, sizeof(double));
    void *y = memory_allocate_zeroed(count, sizeof(double));
    Status status = integers ? tensor_read_integers(a, x) : tensor_read_floats(a, x);
    if (status == STATUS_OK)
        status = integers ? tensor_read_integers(b, y) : tensor_read_floats(b, y);
    bool same = status == STATUS_OK;
    for (size_t i = 0; same && i < count; i++)
        same = integers ? ((int64_t *)x)[i] == ((int64_t *)y)[i]
                        : ((double *)x)[i] == ((double *)y)[i];
    free(x);
    free(y);
    *out = same;
    return status;
}

static Scalar plain_scalar(Value value) {
    if (value.kind == VALUE_FLOAT) return (Scalar){.dtype = DTYPE_FLOAT64, .as.f = value.as.number};
    return (Scalar){.dtype = DTYPE_INT64, .as.i = value.as.integer};
}

bool value_order_numbers(Value a, Value b, int *out) {
    return scalar_order(plain_scalar(a), plain_scalar(b), out);
}

static Status equal_nested(Value a, Value b, int depth, bool *out);

static Status lists_equal(const List *a, const List *b, int depth, bool *out) {
    *out = a->count == b->count;
    for (size_t i = 0; *out && i < a->count; i++)
        TRY(equal_nested(a->items[i], b->items[i], depth + 1, out));
    return STATUS_OK;
}

static Status dicts_equal(const Dict *a, const Dict *b, int depth, bool *out) {
    *out = dict_count(a) == dict_count(b);
    for (size_t i = 0; *out && i < dict_count(a); i++) {
        Value key, item;
        dict_entry(a, i, &key, &item);
        Value other = dict_get(b, key);
        *out = other.kind != VALUE_ABSENT;
        if (*out) TRY(equal_nested(item, other, depth + 1, out));
    }
    return STATUS_OK;
}

static bool same_kind_equal(Value a, Value b) {
    switch ((ValueKind)a.kind) {
    case VALUE_NONE: return true;
    case VALUE_BOOL: return a.as.boolean == b.as.boolean;
    case VALUE_STRING: return string_equals(a.as.string, b.as.string);
    case VALUE_RANGE: {
        const Range *x = a.as.range, *y = b.as.range;
        return x->start == y->start && x->stop == y->stop && x->step == y->step;
    }
    case VALUE_DTYPE: return a.as.integer == b.as.integer;
    default: return a.as.pointer == b.as.pointer;
    }
}

// A list next to a tensor is compared as the tensor it would make; one that makes none is unlike
// it.
static Status list_equals_tensor(Value list, Tensor *tensor, bool *out) {
    Tensor *made;
    *out = false;
    if (value_to_tensor(list, "a list", &made) != STATUS_OK) {
        error_clear();
        return STATUS_OK;
    }
    Status status = tensors_equal(made, tensor, out);
    tensor_release(made);
    return status;
}

// Next to an element of a tensor a plain number has the tensor's dtype, as in operations on
// tensors: x[0] == 0.1 and 0.1 in x agree.
static Value meet_element(Value number, Value element) {
    bool plain = number.kind == VALUE_INT || number.kind == VALUE_FLOAT;
    if (!plain || element.kind != VALUE_TENSOR) return number;
    DType dtype = tensor_dtype(element.as.tensor);
    if (dtype_kind(dtype) != DTYPE_KIND_FLOAT || dtype == DTYPE_FLOAT64) return number;
    double value = number.kind == VALUE_INT ? (double)number.as.integer : number.as.number;
    return value_float(number_round(value, float_width(dtype)));
}

static bool is_measured(Value value) {
    return value.kind == VALUE_MEASURED;
}

static bool numbers_equal(Value a, Value b) {
    int order;
    return value_order_numbers(a, b, &order) && order == 0;
}

static Status equal_nested(Value a, Value b, int depth, bool *out) {
    if (depth > NESTING_COMPARED_MAX)
        return fail(STATUS_DEPTH,
                    "these values are nested more than %d deep and cannot be compared",
                    NESTING_COMPARED_MAX);
    bool tensors = a.kind == VALUE_TENSOR && b.kind == VALUE_TENSOR;
    if (tensors && (tensor_rank(a.as.tensor) || tensor_rank(b.as.tensor)))
        return tensors_equal(a.as.tensor, b.as.tensor, out);
    if (value_is_sequence(a) && b.kind == VALUE_TENSOR && tensor_rank(b.as.tensor))
        return list_equals_tensor(a, b.as.tensor, out);
    if (value_is_sequence(b) && a.kind == VALUE_TENSOR && tensor_rank(a.as.tensor))
        return list_equals_tensor(b, a.as.tensor, out);
    Value met = meet_element(a, b);
    b = meet_element(b, a);
    a = met;
    TRY(value_read_number(&a));
    TRY(value_read_number(&b));
    if (is_measured(a) || is_measured(b)) {
        *out = foretell_choose(value_measured_at(a, b));
        return STATUS_OK;
    }
    bool numbers = (a.kind == VALUE_INT || a.kind == VALUE_FLOAT) &&
                   (b.kind == VALUE_INT || b.kind == VALUE_FLOAT);
    *out = numbers && numbers_equal(a, b);
    if (numbers) return STATUS_OK;
    if (a.kind == VALUE_DTYPE && b.kind == VALUE_STRING) return equal_nested(b, a, depth + 1, out);
    if (a.kind == VALUE_STRING && b.kind == VALUE_DTYPE) {
        *out = strcmp(string_end(a.as.string)->bytes, dtype_name((DType)b.as.integer)) == 0;
        return STATUS_OK;
    }
    if (a.kind != b.kind) return STATUS_OK;
    if (a.kind == VALUE_LIST || a.kind == VALUE_TUPLE)
        return lists_equal(a.as.list, b.as.list, depth, out);
    if (a.kind == VALUE_DICT) return dicts_equal(a.as.dict, b.as.dict, depth, out);
    *out = same_kind_equal(a, b);
    return STATUS_OK;
}

Status value_equals(Value a, Value b, bool *out) {
    return equal_nested(a, b, 0, out);
}

static Status compare_nested(Value a, Value b, int depth, int *out);

static Status compare_lists(const List *a, const List *b, int depth, int *out) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        TRY(compare_nested(a->items[i], b->items[i], depth + 1, out));
        if (*out != 0) return STATUS_OK;
    }
    *out = a->count < b->count ? -1 : a->count > b->count;
    return STATUS_OK;
}

// NaN stands after every number, so that sorting has one answer.
static int compare_numbers(Value a, Value b) {
    int order;
    if (value_order_numbers(a, b, &order)) return order;
    bool a_nan = a.kind == VALUE_FLOAT && isnan(a.as.number);
    bool b_nan = b.kind == VALUE_FLOAT && isnan(b.as.number);
    return a_nan - b_nan;
}

static Status compare_nested(Value a, Value b, int depth, int *out) {
    if (depth > NESTING_COMPARED_MAX)
        return fail(STATUS_DEPTH,
                    "these values are nested more than %d deep and cannot be compared",
                    NESTING_COMPARED_MAX);
    TRY(value_read_number(&a));
    TRY(value_read_number(&b));
    a = value_look(a);
    b = value_look(b);
    bool a_number = a.kind == VALUE_INT || a.kind == VALUE_FLOAT;
    bool b_number = b.kind == VALUE_INT || b.kind == VALUE_FLOAT;
    bool lists = (a.kind == VALUE_LIST || a.kind == VALUE_TUPLE) && a.kind == b.kind;
    if (a_number && b_number)
        *out = compare_numbers(a, b);
    else if (a.kind == VALUE_STRING && b.kind == VALUE_STRING)
        *out = string_compare(a.as.string, b.as.string);
    else if (a.kind == VALUE_BOOL && b.kind == VALUE_BOOL)
        *out = a.as.boolean - b.as.boolean;
    else if (lists)
        return compare_lists(a.as.list, b.as.list, depth, out);
    else
        return fail(STATUS_TYPE, "%s and %s have no order", value_text(a).text, value_text(b).text);
    return STATUS_OK;
}

Status value_compare(Value a, Value b, int *out) {
    if (a.kind == VALUE_INT && b.kind == VALUE_INT) {
        *out = (a.as.integer > b.as.integer) - (a.as.integer < b.as.integer);
        return STATUS_OK;
    }
    return compare_nested(a, b, 0, out);
}
