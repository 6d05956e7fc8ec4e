// Values of the language as constants of the engine, and back.
#include <stdlib.h>

#include "reason/reason.h"
#include "value/convert.h"
#include "value/print.h"

static Status constant_of_items(Reasoner *reasoner, const List *list, const char *what,
                                Datum *out) {
    SCOPED_MEMORY Datum *items = memory_allocate((list->count + 1) * sizeof *items);
    Status status = STATUS_OK;
    for (size_t i = 0; i < list->count && status == STATUS_OK; i++)
        status = constant_of_value(reasoner, list->items[i], what, &items[i]);
    if (status == STATUS_OK) *out = constant_tuple(&reasoner->store->constants, items, list->count);
    return status;
}

Status constant_of_value(Reasoner *reasoner, Value value, const char *what, Datum *out) {
    ConstantTable *constants = &reasoner->store->constants;
    TRY(value_read_number(&value));
    value = value_look(value);
    switch ((ValueKind)value.kind) {
    case VALUE_STRING:
        *out = constant_text(constants, value.as.string->bytes, value.as.string->length);
        return STATUS_OK;
    case VALUE_INT: *out = constant_int(constants, value.as.integer); return STATUS_OK;
    case VALUE_FLOAT: *out = constant_float(constants, value.as.number); return STATUS_OK;
    case VALUE_BOOL: *out = constant_bool(constants, value.as.boolean); return STATUS_OK;
    case VALUE_TUPLE: return constant_of_items(reasoner, value.as.list, what, out);
    default:
        fail(STATUS_TYPE, "%s cannot hold %s", what, value_text(value).text);
        return fail_help("relations hold strings, entities, ints, floats, bools and tuples");
    }
}

static Value value_of_items(const Reasoner *reasoner, const ConstantEntry *entry) {
    bool set = entry->kind == CONSTANT_SET;
    Value list = set ? value_list(entry->length) : value_tuple(entry->length);
    for (uint32_t i = 0; i < entry->length; i++)
        list_push(list.as.list, value_of_constant(reasoner, entry->as.items[i]));
    return list;
}

Value value_of_constant(const Reasoner *reasoner, Datum constant) {
    const ConstantTable *constants = &reasoner->store->constants;
    if (constant_kind(constants, constant) == CONSTANT_INT)
        return value_int(constant_integer(constants, constant));
    const ConstantEntry *entry = constant_entry(constants, constant);
    switch ((ConstantKind)entry->kind) {
    case CONSTANT_FLOAT: return value_float(entry->as.number);
    case CONSTANT_BOOL: return value_bool(entry->as.integer != 0);
    case CONSTANT_TEXT: return value_string(entry->as.text, entry->length);
    default: return value_of_items(reasoner, entry);
    }
}
