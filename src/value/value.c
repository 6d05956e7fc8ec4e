// Values that are neither lists, dictionaries nor strings: making them and naming their kinds.
#include <string.h>

#include "value/heap.h"

Value value_range(int64_t start, int64_t stop, int64_t step) {
    ASSERT(step != 0);
    Range *range = heap_allocate_bytes(sizeof *range);
    *range = (Range){start, stop, step};
    return (Value){.kind = VALUE_RANGE, .as.range = range};
}

uint64_t range_count(const Range *range) {
    // Differences of int64 fit uint64; unsigned arithmetic keeps them free of overflow.
    if (range->step > 0) {
        if (range->start >= range->stop) return 0;
        uint64_t distance = (uint64_t)range->stop - (uint64_t)range->start;
        return (distance - 1) / (uint64_t)range->step + 1;
    }
    if (range->start <= range->stop) return 0;
    uint64_t distance = (uint64_t)range->start - (uint64_t)range->stop;
    return (distance - 1) / (-(uint64_t)range->step) + 1;
}

Value value_handle(const HandleType *type, void *payload) {
    Handle *handle = (Handle *)heap_new_object(VALUE_HANDLE, sizeof(Handle));
    handle->type = type;
    handle->payload = payload;
    return (Value){.kind = VALUE_HANDLE, .as.handle = handle};
}

Value value_handle_with(const HandleType *type, void *payload, Value attached) {
    Value value = value_handle(type, payload);
    value.as.handle->attached = attached;
    return value;
}

Value value_struct(const StructType *type) {
    size_t bytes = sizeof(Instance) + type->field_count * sizeof(Value);
    Instance *instance = (Instance *)heap_new_object(VALUE_STRUCT, bytes);
    instance->type = type;
    for (size_t i = 0; i < type->field_count; i++) instance->fields[i] = value_absent();
    return (Value){.kind = VALUE_STRUCT, .as.instance = instance};
}

static bool is_field(const StructType *type, size_t index, const char *name, size_t length) {
    const char *field = type->field_names[index];
    return field[0] == name[0] && strncmp(field, name, length) == 0 && field[length] == '\0';
}

int struct_find_field(const StructType *type, const char *name, size_t length) {
    for (size_t i = 0; i < type->field_count; i++)
        if (is_field(type, i, name, length)) return (int)i;
    return -1;
}

Value value_cell(Value content) {
    ASSERT(content.kind != VALUE_CELL); // a variable holds values, never places
    Cell *cell = (Cell *)heap_new_object(VALUE_CELL, sizeof(Cell));
    cell->value = content;
    return (Value){.kind = VALUE_CELL, .as.cell = cell};
}

Value value_function(const char *name, const void *code, size_t cell_count) {
    size_t bytes = sizeof(Function) + cell_count * sizeof(Cell *);
    Function *function = (Function *)heap_new_object(VALUE_FUNCTION, bytes);
    function->name = name;
    function->code = code;
    function->cell_count = cell_count;
    return (Value){.kind = VALUE_FUNCTION, .as.function = function};
}

const char *value_kind_name(Value value) {
    static const char *const names[] = {
        [VALUE_NONE] = "none",        [VALUE_BOOL] = "bool",     [VALUE_INT] = "int",
        [VALUE_FLOAT] = "float",      [VALUE_STRING] = "string", [VALUE_RANGE] = "range",
        [VALUE_BUILTIN] = "function", [VALUE_DTYPE] = "dtype",   [VALUE_TYPE] = "type",
        [VALUE_TENSOR] = "tensor",    [VALUE_LIST] = "list",     [VALUE_TUPLE] = "tuple",
        [VALUE_DICT] = "dict",        [VALUE_STRUCT] = "struct", [VALUE_FUNCTION] = "function",
        [VALUE_HANDLE] = "handle",    [VALUE_CELL] = "variable", [VALUE_ABSENT] = "nothing",
        [VALUE_FAIL] = "error",
    };
    ASSERT(value.kind <= VALUE_CELL);
    if (value.kind == VALUE_MEASURED) return names[value.as.measured.kind];
    if (value.kind == VALUE_STRUCT) return value.as.instance->type->name;
    if (value.kind == VALUE_HANDLE) return value.as.handle->type->name;
    return names[value.kind];
}
