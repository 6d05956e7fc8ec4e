// The walk through containers, and the parameters that it finds.
#include "value/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tensor/join.h"
#include "value/object.h"
#include "value/print.h"

enum { DEPTH_MAX = 64 };

typedef struct Walk {
    ValueVisit visit;
    void *context;
    Text name;
    int depth;
} Walk;

static Status walk(Walk *w, Value *value);

static Status check_key(Value key) {
    if (key.kind != VALUE_STRING || strlen(key.as.string->bytes) == key.as.string->length)
        return STATUS_OK;
    return fail(STATUS_VALUE, "the key %s cannot be a name: it has a \\0 in it",
                value_text(key).text);
}

static Status walk_part(Walk *w, const char *word, Value *part) {
    size_t length = w->name.length;
    if (length > 0) text_append_char(&w->name, '.');
    text_append_string(&w->name, word);
    Status status = walk(w, part);
    w->name.length = length;
    w->name.bytes[length] = '\0';
    return status;
}

static Status walk_list(Walk *w, const List *list) {
    for (size_t i = 0; i < list->count; i++) {
        char word[24];
        snprintf(word, sizeof word, "%zu", i);
        TRY(walk_part(w, word, &list->items[i]));
    }
    return STATUS_OK;
}

static Status walk_dict(Walk *w, Dict *dict) {
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        char word[24];
        dict_entry(dict, i, &key, &item);
        TRY(check_key(key));
        if (key.kind == VALUE_INT)
            snprintf(word, sizeof word, "%lld", (long long)key.as.integer);
        else if (key.kind == VALUE_BOOL)
            snprintf(word, sizeof word, "%s", key.as.integer ? "true" : "false");
        Value part = value_retain(item);
        Status status = walk_part(w, key.kind == VALUE_STRING ? key.as.string->bytes : word, &part);
        if (status == STATUS_OK && (part.kind != item.kind || part.as.integer != item.as.integer))
            dict_set(dict, key, part);
        else
            value_release(part);
        TRY(status);
    }
    return STATUS_OK;
}

static Status walk_struct(Walk *w, Instance *instance) {
    for (size_t i = 0; i < instance->type->field_count; i++)
        TRY(walk_part(w, instance->type->field_names[i], &instance->fields[i]));
    return STATUS_OK;
}

static Status walk(Walk *w, Value *value) {
    if (w->depth == DEPTH_MAX)
        return fail(STATUS_DEPTH, "this is nested too deeply: it may contain itself");
    Status status;
    w->depth++;
    switch ((ValueKind)value->kind) {
    case VALUE_LIST:
    case VALUE_TUPLE: status = walk_list(w, value->as.list); break;
    case VALUE_DICT: status = walk_dict(w, value->as.dict); break;
    case VALUE_STRUCT: status = walk_struct(w, value->as.instance); break;
    default: status = w->visit(w->context, text_get(&w->name), value);
    }
    ASSERT(w->depth > 0);
    w->depth--;
    return status;
}

Status value_walk(Value *value, const char *name, ValueVisit visit, void *context) {
    Walk w = {.visit = visit, .context = context};
    text_append_string(&w.name, name);
    Status status = walk(&w, value);
    text_free(&w.name);
    return status;
}

// --- parameters

static Status visit_parameter(void *context, const char *name, Value *part) {
    ParameterList *list = context;
    if (part->kind != VALUE_TENSOR || !part->as.tensor->learnable) return STATUS_OK;
    if (parameters_name(list, part->as.tensor)) return STATUS_OK;
    NamedParameter one = {memory_copy_string(name, strlen(name)), tensor_retain(part->as.tensor)};
    if (list->count == 0) {
        list->tensors = key_index_new();
        list->names = key_index_new();
    }
    ASSERT(key_index_count(list->tensors) == list->count);
    key_index_add(list->tensors, &one.tensor, sizeof one.tensor);
    key_index_add(list->names, one.name, strlen(one.name));
    VECTOR_PUSH(list, one);
    return STATUS_OK;
}

Status parameters_add(ParameterList *list, const char *name, Value value) {
    return value_walk(&value, name, visit_parameter, list);
}

const char *parameters_name(const ParameterList *list, const Tensor *tensor) {
    size_t at;
    bool found = list->count > 0 && key_index_find(list->tensors, &tensor, sizeof tensor, &at);
    return found ? list->items[at].name : NULL;
}

Tensor *parameters_find(const ParameterList *list, const char *name) {
    size_t at;
    bool found = list->count > 0 && key_index_find(list->names, name, strlen(name), &at);
    return found ? list->items[at].tensor : NULL;
}

Status parameters_of(Value value, const char *whose, const char *what, TensorArray *out) {
    ParameterList list = {0};
    Status status = parameters_add(&list, "", value);
    *out = (TensorArray){memory_allocate((list.count + 1) * sizeof *out->items), 0};
    for (size_t i = 0; i < list.count; i++)
        out->items[out->count++] = tensor_retain(list.items[i].tensor);
    parameters_free(&list);
    if (status == STATUS_OK && out->count == 0) {
        status = fail(STATUS_VALUE, "%s: %s holds no parameter", whose, what);
        fail_help("tensors that are learnable, structs, lists and dictionaries of them");
    }
    if (status != STATUS_OK) tensor_array_release(out);
    return status;
}

void parameters_free(ParameterList *list) {
    while (list->count > 0) {
        NamedParameter *last = &list->items[--list->count];
        tensor_release(last->tensor);
        free(last->name);
    }
    VECTOR_FREE(list);
    key_index_free(list->tensors);
    key_index_free(list->names);
    list->tensors = list->names = NULL;
}
