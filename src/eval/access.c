// Looking into values: lengths, indexes, keys, membership, properties and methods of their own.
#define _GNU_SOURCE // memmem
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/foretell.h"
#include "eval/access.h"
#include "eval/bind.h"
#include "tensor/view.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/object.h"
#include "value/print.h"

Status value_to_index(Value index, int64_t count, const char *of, int64_t *out) {
    ASSERT(count >= 0);
    int64_t i;
    TRY(value_to_int(index, "an index", &i));
    *out = i < 0 ? i + count : i;
    if (*out >= 0 && *out < count) return STATUS_OK;
    return fail(STATUS_INDEX, "index %lld is out of range for %s of %lld element%s", (long long)i,
                of, (long long)count, count == 1 ? "" : "s");
}

Status value_to_key(Value value, Value *out) {
    *out = value;
    TRY(value_read_number(out));
    *out = value_look(*out);
    if (out->kind == VALUE_STRING || out->kind == VALUE_INT || out->kind == VALUE_BOOL)
        return STATUS_OK;
    if (out->kind == VALUE_FLOAT) {
        int64_t number;
        TRY(value_to_int(*out, "a dictionary's key", &number));
        *out = value_int(number);
        return STATUS_OK;
    }
    return fail_kind("a dictionary's key", "a string, int or bool", value);
}

static Status length_of_handle(Value value, int64_t *out) {
    ASSERT(value.kind == VALUE_HANDLE);
    const HandleType *type = value.as.handle->type;
    if (type->length) return type->length(value.as.handle, out);
    const Builtin *method = builtin_find_method(value, "len", 3);
    if (!method) return fail(STATUS_TYPE, "%s has no length", value_text(value).text);
    Value length = interp_call_builtin(NULL, method, &value, 1);
    if (length.kind == VALUE_FAIL) return error_current()->code;
    return value_to_int(length, "a length", out);
}

Status value_length(Value value, int64_t *out) {
    switch ((ValueKind)value.kind) {
    case VALUE_STRING: *out = string_length(value.as.string); return STATUS_OK;
    case VALUE_LIST:
    case VALUE_TUPLE: *out = (int64_t)value.as.list->count; return STATUS_OK;
    case VALUE_DICT: *out = (int64_t)dict_count(value.as.dict); return STATUS_OK;
    case VALUE_RANGE: {
        uint64_t count = range_count(value.as.range);
        *out = count > INT64_MAX ? INT64_MAX : (int64_t)count;
        return STATUS_OK;
    }
    case VALUE_HANDLE: return length_of_handle(value, out);
    case VALUE_TENSOR:
        if (tensor_rank(value.as.tensor) == 0) break;
        *out = tensor_shape_told(value.as.tensor).dims[0];
        return STATUS_OK;
    default: break;
    }
    return fail(STATUS_TYPE, "%s has no length", value_text(value).text);
}

static Status range_contains(const Range *range, Value item, bool *out) {
    *out = false;
    TRY(value_read_number(&item));
    item = value_look(item);
    ASSERT(range->step != 0);
    if (item.kind == VALUE_FLOAT && item.as.number == trunc(item.as.number) &&
        fabs(item.as.number) < 0x1p62)
        item = value_int((int64_t)item.as.number);
    if (item.kind != VALUE_INT) return STATUS_OK;
    int64_t i = item.as.integer, step = range->step;
    bool inside =
        step > 0 ? i >= range->start && i < range->stop : i <= range->start && i > range->stop;
    if (!inside) return STATUS_OK;
    uint64_t distance =
        step > 0 ? (uint64_t)i - (uint64_t)range->start : (uint64_t)range->start - (uint64_t)i;
    *out = distance % (step > 0 ? (uint64_t)step : -(uint64_t)step) == 0;
    return STATUS_OK;
}

static Status items_contain(Value container, Value item, bool *out) {
    bool tensor = container.kind == VALUE_TENSOR;
    Value items =
        tensor ? value_to_items(container, "the right side of `in`") : value_retain(container);
    if (items.kind == VALUE_FAIL) return error_current()->code;
    Status status = STATUS_OK;
    *out = false;
    for (size_t i = 0; status == STATUS_OK && !*out && i < items.as.list->count; i++)
        status = value_equals(items.as.list->items[i], item, out);
    value_release(items);
    return status;
}

Status value_contains(Value container, Value item, bool *out) {
    bool collection = container.kind == VALUE_HANDLE && container.as.handle->type->contains;
    if (collection) return container.as.handle->type->contains(container.as.handle, item, out);
    switch ((ValueKind)container.kind) {
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_TENSOR: return items_contain(container, item, out);
    case VALUE_RANGE: return range_contains(container.as.range, item, out);
    case VALUE_STRING: {
        const String *part;
        TRY(value_to_string(item, "what is looked for in a string", &part));
        const String *text = container.as.string;
        *out = memmem(text->bytes, text->length, part->bytes, part->length) != NULL;
        return STATUS_OK;
    }
    case VALUE_DICT: {
        Value key;
        TRY(value_to_key(item, &key));
        *out = dict_get(container.as.dict, key).kind != VALUE_ABSENT;
        return STATUS_OK;
    }
    default:
        return fail(STATUS_TYPE,
                    "%s contains nothing: a list, tuple, range, tensor, string or dictionary does",
                    value_text(container).text);
    }
}

const Builtin *builtin_find_method(Value receiver, const char *name, size_t length) {
    char full[80];
    const char *kind = value_kind_name(receiver);
    size_t kind_length = strlen(kind);
    if (kind_length + 1 + length > sizeof full) return NULL;
    memcpy(full, kind, kind_length);
    full[kind_length] = '.';
    memcpy(full + kind_length + 1, name, length);
    return catalog_find(full, kind_length + 1 + length);
}

// --- properties

static Value tensor_property_shape(Tensor *tensor) {
    ASSERT(tensor != NULL);
    Shape shape = tensor_shape_told(tensor);
    Value list = value_list((size_t)shape.rank);
    for (int i = 0; i < shape.rank; i++) list_push(list.as.list, value_int(shape.dims[i]));
    return list;
}

static Value tensor_property_rank(Tensor *tensor) {
    return value_int(tensor_rank(tensor));
}

static Value tensor_property_numel(Tensor *tensor) {
    Shape shape = tensor_shape_told(tensor);
    return value_int(shape_count(&shape));
}

static Value tensor_property_dtype(Tensor *tensor) {
    return (Value){.kind = VALUE_DTYPE, .as.integer = tensor_dtype(tensor)};
}

static Value tensor_property_device(Tensor *tensor) {
    return value_cstring(tensor->device->name);
}

static Value tensor_property_transposed(Tensor *tensor) {
    Tensor *reversed;
    TRY_VALUE(tensor_reverse_dims(tensor, &reversed));
    return value_tensor(reversed);
}

static const struct {
    const char *name;
    Value (*get)(Tensor *tensor);
} tensor_properties[] = {
    {"shape", tensor_property_shape},  {"rank", tensor_property_rank},
    {"ndim", tensor_property_rank},    {"numel", tensor_property_numel},
    {"dtype", tensor_property_dtype},  {"device", tensor_property_device},
    {"T", tensor_property_transposed},
};

static bool is_word(const char *word, const char *name, size_t length) {
    return strlen(word) == length && memcmp(word, name, length) == 0;
}

static Value tensor_property(Tensor *tensor, const char *name, size_t length) {
    for (size_t i = 0; i < sizeof tensor_properties / sizeof *tensor_properties; i++)
        if (is_word(tensor_properties[i].name, name, length))
            return tensor_properties[i].get(tensor);
    return value_absent();
}

static Value range_property(const Range *range, const char *name, size_t length) {
    if (is_word("start", name, length)) return value_int(range->start);
    if (is_word("stop", name, length)) return value_int(range->stop);
    if (is_word("step", name, length)) return value_int(range->step);
    return value_absent();
}

static Value handle_property(Handle *handle, const char *name, size_t length) {
    char word[128];
    if (!handle->type->get_field || length >= sizeof word) return value_absent();
    memcpy(word, name, length);
    word[length] = '\0';
    Value value;
    TRY_VALUE(handle->type->get_field(handle, word, &value));
    return value;
}

Value value_get_property(Value object, const char *name, size_t length) {
    switch ((ValueKind)object.kind) {
    case VALUE_TENSOR: return tensor_property(object.as.tensor, name, length);
    case VALUE_RANGE: return range_property(object.as.range, name, length);
    case VALUE_HANDLE: return handle_property(object.as.handle, name, length);
    case VALUE_DICT: return value_retain(dict_get(object.as.dict, value_string(name, length)));
    case VALUE_STRUCT: {
        int index = struct_find_field(object.as.instance->type, name, length);
        return index < 0 ? value_absent() : value_retain(object.as.instance->fields[index]);
    }
    default: return value_absent();
    }
}
