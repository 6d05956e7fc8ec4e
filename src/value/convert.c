// From values to what C code works with, by the language's rules: rank-0 tensors serve as numbers,
// floats with an integral value as integers.
#include "value/convert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "device/foretell.h"
#include "tensor/gradient/tape.h"
#include "tensor/join.h"
#include "tensor/op.h"
#include "value/object.h"
#include "value/print.h"

Status fail_kind(const char *what, const char *wanted, Value value) {
    return fail(STATUS_TYPE, "%s must be %s, but it is %s", what, wanted, value_text(value).text);
}

bool value_is_number(Value value) {
    return value.kind == VALUE_INT || value.kind == VALUE_FLOAT ||
           (value.kind == VALUE_TENSOR && tensor_rank(value.as.tensor) == 0) ||
           (value.kind == VALUE_MEASURED && value.as.measured.kind != VALUE_BOOL);
}

Value value_unknown(DType dtype) {
    uint64_t kind = dtype == DTYPE_FLOAT64 ? VALUE_FLOAT
                    : dtype == DTYPE_BOOL  ? VALUE_BOOL
                                           : VALUE_INT;
    return value_measured(kind, origin_current.at);
}

Value value_from_scalar(Scalar scalar) {
    if (scalar.dtype == DTYPE_FLOAT64) return value_float(scalar.as.f);
    ASSERT(scalar.dtype == DTYPE_BOOL || scalar.dtype == DTYPE_INT64);
    return scalar.dtype == DTYPE_BOOL ? value_bool(scalar.as.i != 0) : value_int(scalar.as.i);
}

Status value_read_number(Value *value) {
    if (value->kind != VALUE_TENSOR || tensor_rank(value->as.tensor) != 0) return STATUS_OK;
    return value_read_tensor(value->as.tensor, value);
}

Status value_read_tensor(Tensor *tensor, Value *out) {
    Scalar scalar;
    uint64_t reads = foretelling() ? foretell_reads() : 0;
    bool before = foretell_ignore_reads(true);
    Status status = tensor_read_scalar(tensor, &scalar);
    foretell_ignore_reads(before);
    TRY(status);
    bool unknown = foretelling() && foretell_reads() != reads;
    *out = unknown ? value_unknown(scalar.dtype) : value_from_scalar(scalar);
    return STATUS_OK;
}

Value value_look_measured(Value value) {
    ASSERT(value.kind == VALUE_MEASURED);
    SourcePos at = value.as.measured.at;
    uint32_t kind = value.as.measured.kind;
    if (kind == VALUE_BOOL) return value_bool(foretell_choose(at));
    int64_t guess = foretell_look(at);
    return kind == VALUE_INT ? value_int(guess) : value_float((double)guess);
}

static Status whole_from_double(double number, const char *what, int64_t *out) {
    if (number != trunc(number) || !(number >= -0x1p63 && number < 0x1p63))
        return fail(STATUS_TYPE, "%s must be an integer, but it is %s", what,
                    value_text(value_float(number)).text);
    *out = (int64_t)number;
    return STATUS_OK;
}

Status value_to_int(Value value, const char *what, int64_t *out) {
    Value number = value;
    TRY(value_read_number(&number));
    number = value_look(number);
    if (number.kind == VALUE_FLOAT) return whole_from_double(number.as.number, what, out);
    if (number.kind != VALUE_INT) return fail_kind(what, "an integer", value);
    *out = number.as.integer;
    return STATUS_OK;
}

Status value_to_double(Value value, const char *what, double *out) {
    Value number = value;
    TRY(value_read_number(&number));
    number = value_look(number);
    if (number.kind == VALUE_INT)
        *out = (double)number.as.integer;
    else if (number.kind == VALUE_FLOAT)
        *out = number_shown(number.as.number);
    else
        return fail_kind(what, "a number", value);
    return STATUS_OK;
}

Status value_to_bool(Value value, const char *what, bool *out) {
    Value flag = value;
    if (value.kind == VALUE_TENSOR && tensor_rank(value.as.tensor) == 0 &&
        tensor_dtype(value.as.tensor) == DTYPE_BOOL)
        TRY(value_read_number(&flag));
    if (value_kind_in_run(flag) == VALUE_BOOL) flag = value_look(flag);
    if (flag.kind == VALUE_BOOL) {
        *out = flag.as.boolean;
        return STATUS_OK;
    }
    fail_kind(what, "a bool", value);
    if (value.kind == VALUE_TENSOR && tensor_rank(value.as.tensor) > 0)
        return fail_help("any(...) or all(...) makes one bool of a tensor");
    if (value_is_number(value)) return fail_help("compare it: `!= 0`");
    return STATUS_TYPE;
}

static Scalar scalar_unknown(uint64_t kind) {
    DType dtype = kind == VALUE_FLOAT  ? DTYPE_FLOAT64
                  : kind == VALUE_BOOL ? DTYPE_BOOL
                                       : DTYPE_INT64;
    return (Scalar){.dtype = dtype, .unknown = true};
}

Status value_to_scalar(Value value, const char *what, Scalar *out) {
    Value number = value;
    TRY(value_read_number(&number));
    if (number.kind == VALUE_INT)
        *out = (Scalar){.dtype = DTYPE_INT64, .as.i = number.as.integer};
    else if (number.kind == VALUE_FLOAT)
        *out = (Scalar){.dtype = DTYPE_FLOAT64, .as.f = number_shown(number.as.number)};
    else if (number.kind == VALUE_BOOL)
        *out = (Scalar){.dtype = DTYPE_BOOL, .as.i = number.as.boolean};
    else if (number.kind == VALUE_MEASURED)
        *out = scalar_unknown(number.as.measured.kind);
    else
        return fail_kind(what, "a number", value);
    return STATUS_OK;
}

Status value_to_string(Value value, const char *what, const String **out) {
    if (value.kind != VALUE_STRING) return fail_kind(what, "a string", value);
    *out = string_end(value.as.string);
    return STATUS_OK;
}

Status value_to_handle(Value value, const HandleType *type, const char *what, void **payload) {
    if (value.kind != VALUE_HANDLE || value.as.handle->type != type) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "%s %s", text_article(type->name), type->name);
        return fail_kind(what, wanted, value);
    }
    *payload = value.as.handle->payload;
    return STATUS_OK;
}

Status value_to_dtype(Value value, const char *what, DType *out) {
    if (value.kind == VALUE_DTYPE) {
        *out = (DType)value.as.integer;
        return STATUS_OK;
    }
    const char *name = NULL;
    if (value.kind == VALUE_STRING) name = string_end(value.as.string)->bytes;
    if (value.kind == VALUE_BUILTIN) name = value.as.builtin->signature.name;
    if (!name) return fail_kind(what, "a dtype", value);
    // As in annotations: a bare `float` is float32, `int` is int64.
    if (strcmp(name, "int") == 0)
        *out = DTYPE_INT64;
    else if (strcmp(name, "float") == 0)
        *out = DTYPE_FLOAT32;
    else if (!dtype_find(name, strlen(name), out)) {
        fail(STATUS_DTYPE, "%s names no dtype: %s", what, value_text(value).text);
        return fail_help("dtypes are float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 "
                         "bool");
    }
    return STATUS_OK;
}

Status value_to_device(Value value, const char *what, Device **out) {
    if (value.kind != VALUE_STRING) return fail_kind(what, "the name of a device", value);
    const String *name = string_end(value.as.string);
    if (strlen(name->bytes) < name->length)
        return fail(STATUS_VALUE, "%s is %s, and a name has no \\0 in it", what,
                    value_text(value).text);
    return device_named(name->bytes, out);
}

Value value_guess(Value value) {
    bool before = foretell_ignore_reads(true);
    Value guess = value_look(value);
    foretell_ignore_reads(before);
    return guess;
}

// --- lists of numbers as tensors, shapes and integers ---

// The numbers of a nested list, in row-major order.
typedef struct Numbers {
    Shape shape;
    int depth_max; // of the shape, fixed by the first row that reaches a number; -1 before
    bool any_float, any_int, any_bool, any_unknown;
    size_t count, capacity;
    double *floats;
    int64_t *integers;
} Numbers;

static void push_number(Numbers *numbers, Scalar scalar) {
    ASSERT(numbers->count <= numbers->capacity);
    if (numbers->count == numbers->capacity) {
        size_t capacity = numbers->capacity;
        numbers->floats = vector_grow(numbers->floats, &capacity, sizeof(double));
        numbers->integers = vector_grow(numbers->integers, &numbers->capacity, sizeof(int64_t));
    }
    bool is_float = scalar.dtype == DTYPE_FLOAT64;
    numbers->any_float |= is_float;
    numbers->any_int |= scalar.dtype == DTYPE_INT64;
    numbers->any_bool |= scalar.dtype == DTYPE_BOOL;
    numbers->any_unknown |= scalar.unknown;
    numbers->floats[numbers->count] = is_float ? scalar.as.f : (double)scalar.as.i;
    numbers->integers[numbers->count++] = is_float ? 0 : scalar.as.i;
}

// Notes that dimension `depth` has this many elements; every row must say the same.
static Status note_size(Numbers *numbers, int depth, int64_t size, const char *what) {
    ASSERT(depth >= 0 && size >= 0);
    if (depth >= RANK_MAX)
        return fail(STATUS_SHAPE, "%s is nested more than %d deep", what, RANK_MAX);
    if (numbers->depth_max >= 0 && depth >= numbers->depth_max)
        return fail(STATUS_SHAPE, "%s is ragged: a list stands where other rows have a number",
                    what);
    if (depth < numbers->shape.rank) {
        if (numbers->shape.dims[depth] == size) return STATUS_OK;
        return fail(STATUS_SHAPE, "%s is ragged: one row has %lld elements, another %lld", what,
                    (long long)numbers->shape.dims[depth], (long long)size);
    }
    ASSERT(depth == numbers->shape.rank); // lists are noted from outside in
    numbers->shape.dims[depth] = size;
    numbers->shape.rank = depth + 1;
    return STATUS_OK;
}

static Status note_number(Numbers *numbers, int depth, const char *what) {
    ASSERT(depth <= numbers->shape.rank);
    if (numbers->depth_max < 0 && depth == numbers->shape.rank) numbers->depth_max = depth;
    if (depth == numbers->depth_max) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s is ragged: a number stands where other rows have a list", what);
}

static Status collect_numbers(Numbers *numbers, Value value, int depth, const char *what);

static Status collect_tensor(Numbers *numbers, Tensor *tensor, int depth, const char *what) {
    Shape shape = tensor_shape(tensor);
    for (int i = 0; i < shape.rank; i++) TRY(note_size(numbers, depth + i, shape.dims[i], what));
    int64_t count = tensor_count(tensor);
    if (count == 0) return STATUS_OK;
    TRY(note_number(numbers, depth + shape.rank, what));
    DTypeKind kind = dtype_kind(tensor_dtype(tensor));
    bool is_float = kind != DTYPE_KIND_INT && kind != DTYPE_KIND_BOOL;
    SCOPED_MEMORY void *items = memory_allocate_zeroed((size_t)count, sizeof(double));
    uint64_t reads = foretelling() ? foretell_reads() : 0;
    bool before = foretell_ignore_reads(true);
    Status status =
        is_float ? tensor_read_floats(tensor, items) : tensor_read_integers(tensor, items);
    foretell_ignore_reads(before);
    numbers->any_unknown |= foretelling() && foretell_reads() != reads;
    for (int64_t i = 0; status == STATUS_OK && i < count; i++) {
        Scalar scalar = {.dtype = kind == DTYPE_KIND_BOOL ? DTYPE_BOOL : DTYPE_INT64};
        if (is_float)
            scalar = (Scalar){.dtype = DTYPE_FLOAT64, .as.f = ((double *)items)[i]};
        else
            scalar.as.i = ((int64_t *)items)[i];
        push_number(numbers, scalar);
    }
    return status;
}

static Status collect_range(Numbers *numbers, const Range *range, int depth, const char *what) {
    uint64_t count = range_count(range);
    if (count > INT32_MAX)
        return fail(STATUS_VALUE, "%s: a range of %llu numbers is too long for a tensor", what,
                    (unsigned long long)count);
    TRY(note_size(numbers, depth, (int64_t)count, what));
    if (count) TRY(note_number(numbers, depth + 1, what));
    for (uint64_t i = 0; i < count; i++) {
        int64_t number = (int64_t)((uint64_t)range->start + i * (uint64_t)range->step);
        push_number(numbers, (Scalar){.dtype = DTYPE_INT64, .as.i = number});
    }
    return STATUS_OK;
}

static Status collect_numbers(Numbers *numbers, Value value, int depth, const char *what) {
    switch ((ValueKind)value.kind) {
    case VALUE_LIST:
    case VALUE_TUPLE: {
        const List *list = value.as.list;
        TRY(note_size(numbers, depth, (int64_t)list->count, what));
        for (size_t i = 0; i < list->count; i++)
            TRY(collect_numbers(numbers, list->items[i], depth + 1, what));
        return STATUS_OK;
    }
    case VALUE_RANGE: return collect_range(numbers, value.as.range, depth, what);
    case VALUE_TENSOR: return collect_tensor(numbers, value.as.tensor, depth, what);
    case VALUE_INT:
    case VALUE_FLOAT:
    case VALUE_BOOL:
    case VALUE_MEASURED: {
        Scalar scalar;
        TRY(note_number(numbers, depth, what));
        TRY(value_to_scalar(value, what, &scalar));
        push_number(numbers, scalar);
        return STATUS_OK;
    }
    default:
        if (depth == 0) return fail_kind(what, "a tensor", value);
        return fail(STATUS_TYPE, "%s must be a tensor, but it is a list that holds %s", what,
                    value_text(value).text);
    }
}

static Status numbers_to_tensor(const Numbers *numbers, DType floats, Tensor **out) {
    ASSERT(numbers->count == 0 || numbers->shape.rank > 0 || numbers->count == 1);
    if (numbers->any_float)
        return tensor_from_floats(numbers->floats, &numbers->shape, floats, out);
    bool bools = numbers->any_bool && !numbers->any_int;
    // A list without numbers says nothing of its kind: float32, the default of creating functions.
    if (numbers->count == 0)
        return tensor_from_floats(numbers->floats, &numbers->shape, DTYPE_FLOAT32, out);
    return tensor_from_integers(numbers->integers, &numbers->shape,
                                bools ? DTYPE_BOOL : DTYPE_INT64, out);
}

// 1: needs one, 0: does not, -1: is nested deeper than a tensor can be, as lists in themselves are.
static int needs_gradient_within(Value value, int depth) {
    if (value.kind == VALUE_TENSOR) return tensor_needs_gradient(value.as.tensor);
    if (value.kind == VALUE_CELL) return needs_gradient_within(value.as.cell->value, depth);
    if (value.kind != VALUE_LIST && value.kind != VALUE_TUPLE) return 0;
    if (depth == RANK_MAX) return -1;
    int needs = 0;
    for (size_t i = 0; i < value.as.list->count && needs == 0; i++)
        needs = needs_gradient_within(value.as.list->items[i], depth + 1);
    return needs;
}

bool value_needs_gradient(Value value) {
    return UNLIKELY(tape_is_recording()) && needs_gradient_within(value, 0) > 0;
}

static Status stack_list(const List *list, const char *what, Tensor **out) {
    SCOPED_MEMORY Tensor **parts = memory_allocate(list->count * sizeof *parts);
    size_t made = 0;
    Status status = STATUS_OK;
    for (size_t i = 0; i < list->count && status == STATUS_OK; i++) {
        status = value_stack(list->items[i], what, &parts[made]);
        if (status == STATUS_OK) made++;
    }
    if (status == STATUS_OK) status = tensor_stack(parts, made, 0, out);
    while (made > 0) tensor_release(parts[--made]);
    return status;
}

Status value_stack(Value value, const char *what, Tensor **out) {
    if (value.kind == VALUE_CELL) return value_stack(value.as.cell->value, what, out);
    if (value.kind == VALUE_LIST || value.kind == VALUE_TUPLE)
        return stack_list(value.as.list, what, out);
    SCOPED_TENSOR(given);
    TRY(value_to_tensor(value, what, &given));
    return tensor_cast(given, DTYPE_FLOAT32, out);
}

bool value_is_handle_tensor(Value value) {
    return value.kind == VALUE_HANDLE && value.as.handle->type->tensor;
}

static Status handle_to_tensor(Handle *handle, Tensor **out) {
    ASSERT(handle->type->tensor != NULL);
    int64_t at[RANK_MAX];
    for (int i = 0; i < RANK_MAX; i++) at[i] = PLACE_ALL;
    return handle->type->tensor->read(handle, at, out);
}

// `floats`: the dtype of a list in which a float stands.
static Status to_tensor(Value value, const char *what, DType floats, Tensor **out) {
    if (value.kind == VALUE_TENSOR) {
        *out = tensor_retain(value.as.tensor);
        return STATUS_OK;
    }
    if (value_is_handle_tensor(value)) return handle_to_tensor(value.as.handle, out);
    Numbers numbers = {.depth_max = -1};
    Status status = collect_numbers(&numbers, value, 0, what);
    if (status == STATUS_OK && value_needs_gradient(value))
        status = value_stack(value, what, out);
    else if (status == STATUS_OK)
        status = numbers_to_tensor(&numbers, floats, out);
    if (status == STATUS_OK && numbers.any_unknown) tensor_forget(*out);
    free(numbers.floats);
    free(numbers.integers);
    return status;
}

Status value_to_tensor(Value value, const char *what, Tensor **out) {
    return to_tensor(value, what, DTYPE_FLOAT32, out);
}

Status value_to_wide_tensor(Value value, const char *what, Tensor **out) {
    return to_tensor(value, what, DTYPE_FLOAT64, out);
}

// "zeros: shape[1] must be an integer, but it is 2.5"
static Status fail_element(Value element, const char *what, size_t index) {
    char name[96];
    snprintf(name, sizeof name, "%.64s[%zu]", what, index);
    return fail_kind(name, "an integer", element);
}

// The numbers of a tensor of rank 0 or 1 as integers; literals are read without rounding.
static Status ints_from_tensor(Tensor *tensor, const char *what, int64_t **out, size_t *count) {
    if (tensor_rank(tensor) > 1)
        return fail_kind(what, "integers in one dimension", value_tensor(tensor));
    size_t n = (size_t)tensor_count(tensor);
    int64_t *items = memory_allocate_zeroed(n, sizeof *items);
    Status status;
    if (dtype_is_float(tensor_dtype(tensor))) {
        SCOPED_MEMORY double *floats = memory_allocate_zeroed(n, sizeof *floats);
        status = tensor_read_floats(tensor, floats);
        for (size_t i = 0; status == STATUS_OK && i < n; i++)
            if (whole_from_double(floats[i], what, &items[i]) != STATUS_OK)
                status = fail_element(value_float(floats[i]), what, i);
    } else if (dtype_kind(tensor_dtype(tensor)) == DTYPE_KIND_INT) {
        status = tensor_read_integers(tensor, items);
    } else {
        status = fail_kind(what, "integers", value_tensor(tensor));
    }
    if (status != STATUS_OK) {
        free(items);
        return status;
    }
    *out = items;
    *count = n;
    return STATUS_OK;
}

static Status ints_from_list(const List *list, const char *what, int64_t **out, size_t *count) {
    int64_t *items = memory_allocate_zeroed(list->count, sizeof *items);
    for (size_t i = 0; i < list->count; i++) {
        if (value_to_int(list->items[i], what, &items[i]) == STATUS_OK) continue;
        free(items);
        return fail_element(list->items[i], what, i);
    }
    *out = items;
    *count = list->count;
    return STATUS_OK;
}

static Status ints_from_range(const Range *range, const char *what, int64_t **out, size_t *count) {
    uint64_t n = range_count(range);
    if (n > INT32_MAX)
        return fail(STATUS_VALUE, "%s: a range of %llu numbers is too long", what,
                    (unsigned long long)n);
    *out = memory_allocate_zeroed((size_t)n, sizeof **out);
    *count = (size_t)n;
    for (uint64_t i = 0; i < n; i++)
        (*out)[i] = (int64_t)((uint64_t)range->start + i * (uint64_t)range->step);
    return STATUS_OK;
}

Status value_to_ints(Value value, const char *what, int64_t **out, size_t *count) {
    switch ((ValueKind)value.kind) {
    case VALUE_TENSOR: return ints_from_tensor(value.as.tensor, what, out, count);
    case VALUE_LIST:
    case VALUE_TUPLE: return ints_from_list(value.as.list, what, out, count);
    case VALUE_RANGE: return ints_from_range(value.as.range, what, out, count);
    default: {
        int64_t number;
        if (!value_is_number(value)) return fail_kind(what, "integers", value);
        TRY(value_to_int(value, what, &number));
        *out = memory_allocate(sizeof **out);
        **out = number;
        *count = 1;
        return STATUS_OK;
    }
    }
}

// The common case, [rows, -1]: a literal whose numbers are still here.
static bool shape_from_literal(Value value, Shape *out) {
    if (value.kind != VALUE_TENSOR) return false;
    const Tensor *tensor = value.as.tensor;
    const HostNumbers *host = tensor->host;
    if (!host || host->is_float || host->unknown || tensor_dtype(tensor) != DTYPE_INT64)
        return false;
    if (tensor_rank(tensor) != 1 || tensor->view.dims[0] > RANK_MAX) return false;
    out->rank = (int)tensor->view.dims[0];
    for (int i = 0; i < out->rank; i++) out->dims[i] = size_given(host->as.integers[i]);
    return true;
}

Status value_to_shape(Value value, const char *what, Shape *out) {
    if (shape_from_literal(value, out)) return STATUS_OK;
    int64_t *items;
    size_t count;
    TRY(value_to_ints(value, what, &items, &count));
    Status status = STATUS_OK;
    if (count > RANK_MAX)
        status = fail(STATUS_SHAPE, "%s has %zu dimensions; at most %d are possible", what, count,
                      RANK_MAX);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) out->dims[i] = size_given(items[i]);
    out->rank = status == STATUS_OK ? (int)count : 0;
    free(items);
    return status;
}
