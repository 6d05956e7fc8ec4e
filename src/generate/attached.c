#include "generate/attached.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "catalog/catalog.h"
#include "eval/invoke.h"
#include "model/model.h"
#include "tensor/tensor.h"
#include "value/builtin.h"
#include "value/handles.h"
#include "value/print.h"

static const List *entries(Value attached, const char *kind) {
    static const List none = {0};
    return attached.kind == VALUE_DICT ? dict_get_word(attached.as.dict, kind).as.list : &none;
}

static Value copy_entries(Value attached, const char *kind) {
    const List *list = entries(attached, kind);
    Value copy = value_list(list->count + 1);
    list_append(copy.as.list, list->items, list->count);
    return copy;
}

static Value pair(Value a, Value b) {
    Value tuple = value_tuple(2);
    list_push(tuple.as.list, a);
    list_push(tuple.as.list, b);
    return tuple;
}

// The model with `entry` (taken) as the last of its kind.
static Value attach(Value model, const char *kind, Value entry) {
    ASSERT(model.kind == VALUE_HANDLE);
    const Handle *handle = model.as.handle;
    Value attached = value_dict();
    dict_set_word(attached.as.dict, "hooks", copy_entries(handle->attached, "hooks"));
    dict_set_word(attached.as.dict, "adapters", copy_entries(handle->attached, "adapters"));
    list_push(dict_get_word(attached.as.dict, kind).as.list, entry);
    model_retain(handle->payload);
    return value_handle_with(&handle_model, handle->payload, attached);
}

Value attached_with_hook(Value model, Value name, Value function) {
    return attach(model, "hooks", pair(value_retain(name), value_retain(function)));
}

Value attached_with_adapter(Value model, Value parts, double scale) {
    return attach(model, "adapters", pair(value_retain(parts), value_float(scale)));
}

bool attached_has_hooks(Value model) {
    return entries(model.as.handle->attached, "hooks")->count > 0;
}

Value attached_adapters(Value model) {
    Value attached = model.as.handle->attached;
    return attached.kind == VALUE_DICT ? dict_get_word(attached.as.dict, "adapters") : value_none();
}

Value attached_hooks(Value attached, const char *name) {
    const List *hooks = entries(attached, "hooks");
    Value found = value_none();
    for (size_t i = 0; i < hooks->count; i++) {
        const List *hook = hooks->items[i].as.list;
        if (strcmp(string_end(hook->items[0].as.string)->bytes, name) != 0) continue;
        if (found.kind == VALUE_NONE) found = value_list(1);
        list_push(found.as.list, value_retain(hook->items[1]));
    }
    return found;
}

static Status check_shape(Value before, Value after) {
    if (after.kind == VALUE_TENSOR && before.kind == VALUE_TENSOR) {
        Shape a = tensor_shape(before.as.tensor), b = tensor_shape(after.as.tensor);
        bool same = a.rank == b.rank;
        for (int i = 0; same && i < a.rank; i++) same = a.dims[i] == b.dims[i];
        if (same) return STATUS_OK;
    }
    return fail(STATUS_SHAPE, "a hook gives %s in place of %s", value_text(after).text,
                value_text(before).text);
}

Value attached_apply_hooks(Interp *interp, Value hooks, Value activation) {
    size_t count = hooks.kind == VALUE_LIST ? hooks.as.list->count : 0;
    for (size_t i = 0; i < count && activation.kind != VALUE_FAIL; i++) {
        Value changed = interp_call(interp, hooks.as.list->items[i], &activation, 1);
        if (changed.kind == VALUE_NONE) continue;
        if (changed.kind != VALUE_FAIL && check_shape(activation, changed) != STATUS_OK) {
            value_release(changed);
            changed = value_fail();
        }
        value_release(activation);
        activation = changed;
    }
    return activation;
}

Status attached_each_adapter(Value attached, const char *name, AttachedTake take, void *context) {
    const List *adapters = entries(attached, "adapters");
    for (size_t i = 0; i < adapters->count; i++) {
        const List *adapter = adapters->items[i].as.list;
        Value parts = dict_get_word(adapter->items[0].as.dict, name);
        if (parts.kind == VALUE_ABSENT) continue;
        TRY(take(context, name, parts, adapter->items[1].as.number));
    }
    return STATUS_OK;
}

// --- names

void attached_declare(Interp *interp, char kind, const char *name) {
    text_format(&interp->declared, "%c%s\n", kind, name);
}

static bool is_declared(const Interp *interp, char kind, const char *name) {
    size_t length = strlen(name);
    for (const char *line = text_get(&interp->declared); *line; line = strchr(line, '\n') + 1)
        if (line[0] == kind && strncmp(line + 1, name, length) == 0 && line[length + 1] == '\n')
            return true;
    return false;
}

static Status fail_undeclared(const Interp *interp, char kind, const char *name) {
    SCOPED_MEMORY char *lines =
        memory_copy_string(text_get(&interp->declared), interp->declared.length);
    SCOPED_MEMORY VECTOR(const char *) names = {0};
    char *rest = lines;
    for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n"))
        if (*line == kind) VECTOR_PUSH(&names, line + 1);
    const char *nearest = catalog_nearest(name, names.items, names.count);
    Status status = fail(STATUS_NAME, "the model's page has no %s called \"%s\"",
                         kind == ATTACHED_PROJECTION ? "projection" : "activation", name);
    if (nearest)
        fail_help("there is \"%s\"", nearest);
    else if (names.count > 0)
        fail_help("it has %zu, from \"%s\" to \"%s\"", names.count, names.items[0],
                  names.items[names.count - 1]);
    return status;
}

Status attached_check(const Interp *interp, Value model) {
    ASSERT(model.kind == VALUE_HANDLE);
    Value attached = model.as.handle->attached;
    const List *hooks = entries(attached, "hooks"), *adapters = entries(attached, "adapters");
    for (size_t i = 0; i < hooks->count; i++) {
        const char *name = string_end(hooks->items[i].as.list->items[0].as.string)->bytes;
        if (!is_declared(interp, ATTACHED_ACTIVATION, name))
            return fail_undeclared(interp, ATTACHED_ACTIVATION, name);
    }
    for (size_t i = 0; i < adapters->count; i++) {
        const Dict *parts = adapters->items[i].as.list->items[0].as.dict;
        for (size_t j = 0; j < dict_count(parts); j++) {
            Value key, item;
            dict_entry(parts, j, &key, &item);
            const char *name = string_end(key.as.string)->bytes;
            if (!is_declared(interp, ATTACHED_PROJECTION, name))
                return fail_undeclared(interp, ATTACHED_PROJECTION, name);
        }
    }
    return STATUS_OK;
}
