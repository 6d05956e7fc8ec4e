// Values as references of the host: made, read, taken apart.
#include <string.h>

#include "base/utf8.h"
#include "catalog/catalog.h"
#include "embed/embed.h"
#include "value/convert.h"
#include "value/heap.h"
#include "value/object.h"
#include "value/print.h"

tl_value *embed_give(tl_runtime *owner, Value value) {
    tl_value *given = heap_allocate_rooted(sizeof *given);
    *given = (tl_value){.owner = owner, .references = 1, .value = value};
    owner->references++;
    owner->values++;
    return given;
}

bool embed_take(tl_runtime *owner, tl_value *const *given, size_t count, Value *values) {
    for (size_t i = 0; i < count; i++) {
        if (!given[i]) {
            (void)fail(STATUS_VALUE, "value %zu is NULL", i);
            return false;
        }
        if (given[i]->owner != owner) {
            (void)fail(STATUS_VALUE, "value %zu belongs to another runtime", i);
            return false;
        }
        values[i] = given[i]->value;
    }
    return true;
}

tl_value *tl_retain(tl_value *value) {
    Entry entry = embed_enter(value->owner);
    value->references++;
    embed_leave(entry);
    return value;
}

void tl_release(tl_value *value) {
    if (!value) return;
    tl_runtime *owner = value->owner;
    Entry entry = embed_enter(owner);
    if (--value->references == 0) {
        Value held = value->value;
        heap_free(value);
        value_release(held);
        ASSERT(owner->references > 0 && owner->values > 0);
        owner->references--;
        owner->values--;
    }
    embed_leave(entry);
}

tl_runtime *tl_runtime_of(const tl_value *value) {
    return value->owner;
}

tl_kind tl_kind_of(const tl_value *value) {
    switch ((ValueKind)value->value.kind) {
    case VALUE_NONE: return TL_NONE;
    case VALUE_BOOL: return TL_BOOL;
    case VALUE_INT: return TL_INT;
    case VALUE_FLOAT: return TL_FLOAT;
    case VALUE_STRING: return TL_STRING;
    case VALUE_TENSOR: return TL_TENSOR;
    case VALUE_LIST: return TL_LIST;
    case VALUE_TUPLE: return TL_TUPLE;
    case VALUE_DICT: return TL_DICT;
    case VALUE_STRUCT: return TL_STRUCT;
    case VALUE_FUNCTION:
    case VALUE_BUILTIN:
    case VALUE_TYPE: return TL_FUNCTION;
    case VALUE_HANDLE: return value->value.as.handle->type->call ? TL_FUNCTION : TL_OTHER;
    default: return TL_OTHER;
    }
}

// --- making

static tl_value *give(Entry entry, Value value) {
    tl_value *given = embed_give(entry.owner, value);
    embed_leave(entry);
    return given;
}

tl_value *tl_from_none(tl_runtime *runtime) {
    return give(embed_enter(runtime), value_none());
}

tl_value *tl_from_bool(tl_runtime *runtime, int boolean) {
    return give(embed_enter(runtime), value_bool(boolean != 0));
}

tl_value *tl_from_int(tl_runtime *runtime, int64_t integer) {
    return give(embed_enter(runtime), value_int(integer));
}

tl_value *tl_from_float(tl_runtime *runtime, double number) {
    return give(embed_enter(runtime), value_float(number));
}

tl_value *tl_from_string(tl_runtime *runtime, const char *bytes, size_t length) {
    Entry entry = embed_enter(runtime);
    if (utf8_valid(bytes, length, NULL)) return give(entry, value_string(bytes, length));
    (void)embed_finish(entry, fail(STATUS_VALUE, "the string is not UTF-8 text"));
    return NULL;
}

tl_value *tl_from_list(tl_runtime *runtime, tl_value *const *items, size_t count) {
    Entry entry = embed_enter(runtime);
    Value list = value_list(count), item;
    for (size_t i = 0; i < count; i++) {
        if (!embed_take(runtime, &items[i], 1, &item)) {
            value_release(list);
            (void)embed_finish(entry, STATUS_VALUE);
            return NULL;
        }
        list_push(list.as.list, value_retain(item));
    }
    return give(entry, list);
}

static void add_name(List *names, const char *name) {
    if (name[0] != '_' && !strpbrk(name, ".:")) list_push(names, value_cstring(name));
}

tl_status tl_names(tl_runtime *runtime, tl_value **names) {
    Entry entry = embed_enter(runtime);
    Value list = value_list(0);
    size_t count;
    for (size_t i = 0; i < session_name_count(runtime->session); i++)
        add_name(list.as.list, session_name(runtime->session, i).name);
    for (size_t i = 0; i < catalog_count(); i++)
        add_name(list.as.list, catalog_get(i)->signature.name);
    const Constant *constants = catalog_constants(&count);
    for (size_t i = 0; i < count; i++) add_name(list.as.list, constants[i].name);
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        add_name(list.as.list, dtype_name((DType)dtype));
    *names = give(entry, list);
    return TL_OK;
}

tl_value *tl_from_dict(tl_runtime *runtime, const char *const *names, tl_value *const *items,
                       size_t count) {
    Entry entry = embed_enter(runtime);
    Value dict = value_dict(), item;
    for (size_t i = 0; i < count; i++) {
        if (!embed_take(runtime, &items[i], 1, &item)) {
            value_release(dict);
            (void)embed_finish(entry, STATUS_VALUE);
            return NULL;
        }
        dict_set_word(dict.as.dict, names[i], value_retain(item));
    }
    return give(entry, dict);
}

// --- reading

tl_status tl_to_bool(tl_value *value, int *boolean) {
    Entry entry = embed_enter(value->owner);
    bool holds = false;
    Status status = value_to_bool(value->value, "the value", &holds);
    if (status == STATUS_OK) *boolean = holds;
    return embed_finish(entry, status);
}

tl_status tl_to_int(tl_value *value, int64_t *integer) {
    Entry entry = embed_enter(value->owner);
    return embed_finish(entry, value_to_int(value->value, "the value", integer));
}

tl_status tl_to_float(tl_value *value, double *number) {
    Entry entry = embed_enter(value->owner);
    return embed_finish(entry, value_to_double(value->value, "the value", number));
}

tl_status tl_to_string(tl_value *value, const char **bytes, size_t *length) {
    Entry entry = embed_enter(value->owner);
    const String *string;
    Status status = value_to_string(value->value, "the value", &string);
    if (status == STATUS_OK) {
        const String *ended = string_end(string);
        value->value.as.string =
            (String *)(uintptr_t)ended; // what is borrowed stays with the value
        *bytes = ended->bytes;
        *length = ended->length;
    }
    return embed_finish(entry, status);
}

static Status count_items(Value value, size_t *count) {
    if (value.kind == VALUE_STRUCT)
        *count = value.as.instance->type->field_count;
    else if (value.kind == VALUE_DICT)
        *count = dict_count(value.as.dict);
    else if (value_is_sequence(value))
        *count = value.as.list->count;
    else
        return fail_kind("the value", "a list, tuple, dict or struct", value);
    return STATUS_OK;
}

static Status find_entry(Value value, size_t index, Value *key, Value *item) {
    size_t count = 0;
    TRY(count_items(value, &count));
    if (index >= count)
        return fail(STATUS_INDEX, "index %zu is out of range: there are %zu items", index, count);
    *key = value_none();
    if (value.kind == VALUE_DICT) {
        dict_entry(value.as.dict, index, key, item);
    } else if (value.kind == VALUE_STRUCT) {
        const Instance *instance = value.as.instance;
        bool set = instance->fields[index].kind != VALUE_ABSENT;
        *key = value_cstring(instance->type->field_names[index]);
        *item = set ? instance->fields[index] : value_none();
    } else {
        *item = value.as.list->items[index];
    }
    return STATUS_OK;
}

tl_status tl_count(tl_value *value, size_t *count) {
    Entry entry = embed_enter(value->owner);
    return embed_finish(entry, count_items(value->value, count));
}

tl_status tl_item(tl_value *value, size_t index, tl_value **item) {
    Entry entry = embed_enter(value->owner);
    Value key, found;
    Status status = find_entry(value->value, index, &key, &found);
    if (status == STATUS_OK) *item = embed_give(value->owner, value_retain(found));
    return embed_finish(entry, status);
}

tl_status tl_key(tl_value *value, size_t index, tl_value **key) {
    Entry entry = embed_enter(value->owner);
    Value found, item;
    bool named = value->value.kind == VALUE_DICT || value->value.kind == VALUE_STRUCT;
    Status status = named ? find_entry(value->value, index, &found, &item)
                          : fail_kind("the value", "a dict or struct", value->value);
    if (status == STATUS_OK) *key = embed_give(value->owner, value_retain(found));
    return embed_finish(entry, status);
}

static Status find_member(Value value, const char *name, Value *member) {
    *member = value_absent();
    if (value.kind == VALUE_DICT) {
        *member = dict_get_word(value.as.dict, name);
    } else if (value.kind == VALUE_STRUCT) {
        const Instance *instance = value.as.instance;
        int field = struct_find_field(instance->type, name, strlen(name));
        if (field >= 0) *member = instance->fields[field];
    } else {
        return fail_kind("the value", "a dict or struct", value);
    }
    if (member->kind != VALUE_ABSENT) return STATUS_OK;
    return fail(STATUS_KEY, "there is no `%s` in the %s", name, value_kind_name(value));
}

tl_status tl_member(tl_value *value, const char *name, tl_value **member) {
    Entry entry = embed_enter(value->owner);
    Value found;
    Status status = find_member(value->value, name, &found);
    if (status == STATUS_OK) *member = embed_give(value->owner, value_retain(found));
    return embed_finish(entry, status);
}

tl_status tl_text(tl_value *value, tl_value **text) {
    Entry entry = embed_enter(value->owner);
    SCOPED_TEXT(printed);
    Status status = value_print(value->value, false, &printed);
    if (status == STATUS_OK)
        *text = embed_give(value->owner, value_string(text_get(&printed), printed.length));
    return embed_finish(entry, status);
}
