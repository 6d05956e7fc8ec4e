// From names to a type: annotations first, then what inference or a builtin's signature says of the
// first value, then the fields of structs.
#include "lsp/receiver.h"

#include <stdio.h>
#include <string.h>

// "float32[2, 3]" is a tensor.
static void set_type(Receiver *receiver, const char *word, size_t length) {
    if (memchr(word, '[', length)) word = "tensor", length = strlen(word);
    snprintf(receiver->type, sizeof receiver->type, "%.*s", (int)length, word);
}

static void set_annotated(Receiver *receiver, const TypeNode *type) {
    if (type->kind == TYPE_TENSOR)
        set_type(receiver, "tensor", strlen("tensor"));
    else if (type->kind == TYPE_TUPLE)
        set_type(receiver, "tuple", strlen("tuple"));
    else
        set_type(receiver, type->name.text, type->name.length);
}

// The struct whose method has the variable as its `self`.
static const Word *owner_of_self(const Analysis *analysis, const Binding *binding) {
    for (size_t i = 0; i < analysis->members.count; i++) {
        const FunctionNode *method = analysis->members.items[i].method;
        bool self = method && method->parameter_count > 0 &&
                    method->parameters[0].binding == binding &&
                    strcmp(binding->word.text, "self") == 0;
        if (self) return analysis->members.items[i].owner;
    }
    return NULL;
}

// `let m = load_model(path)`: the signature says what it is.
static const Builtin *called_builtin(const Node *declaration) {
    const Node *value =
        declaration && declaration->kind == NODE_LET ? declaration->as.let.value : NULL;
    if (!value || value->kind != NODE_CALL || value->as.call.callee->kind != NODE_NAME) return NULL;
    const Binding *called = value->as.call.callee->as.name.binding;
    return called && called->kind == BINDING_BUILTIN ? called->builtin : NULL;
}

static void set_variable(Receiver *receiver, const Analysis *analysis, const Binding *binding) {
    ASSERT(binding != NULL);
    const Node *declaration = binding->declaration;
    const Word *owner = owner_of_self(analysis, binding);
    const Builtin *builtin = called_builtin(declaration);
    if (binding->kind == BINDING_MODULE)
        receiver->module = binding->program;
    else if (owner)
        set_type(receiver, owner->text, owner->length);
    else if (binding->type)
        set_annotated(receiver, binding->type);
    else if (declaration && declaration->kind == NODE_TENSOR_DECLARATION)
        set_annotated(receiver, declaration->as.tensor.type);
    else if (binding->inferred)
        set_type(receiver, binding->inferred, strlen(binding->inferred));
    else if (builtin)
        set_type(receiver, builtin->signature.result, strlen(builtin->signature.result));
}

// From a struct's type to that of its field.
static void follow_field(Receiver *receiver, const Analysis *analysis, const char *name,
                         size_t length) {
    for (size_t i = 0; i < analysis->members.count; i++) {
        const Member *member = &analysis->members.items[i];
        bool meant = strcmp(member->owner->text, receiver->type) == 0 &&
                     member->name->length == length &&
                     memcmp(member->name->text, name, length) == 0;
        if (!meant || member->method) continue;
        receiver->type[0] = '\0';
        if (member->type) set_annotated(receiver, member->type);
        return;
    }
    receiver->type[0] = '\0';
}

Receiver receiver_find(const Analysis *analysis, size_t offset, const char *names, size_t length) {
    Receiver receiver = {0};
    const Occurrence *occurrence = length > 0 ? analysis_at(analysis, offset) : NULL;
    if (!occurrence || !occurrence->binding) return receiver;
    set_variable(&receiver, analysis, occurrence->binding);
    const char *end = names + length;
    for (const char *dot = memchr(names, '.', length); dot && !receiver.module;) {
        const char *name = dot + 1;
        dot = memchr(name, '.', (size_t)(end - name));
        follow_field(&receiver, analysis, name, (size_t)((dot ? dot : end) - name));
    }
    return receiver;
}
