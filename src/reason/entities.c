// Entity types as annotations, and `with Person { ... }`: the block runs as any other, and what it
// added to the type is told.
#include <stdio.h>

#include "base/output.h"
#include "eval/upper.h"
#include "learn/output.h"
#include "reason/reason.h"

bool entity_fits(const Relation *type, const String *name) {
    if (!type->closed) return true;
    const Store *store = reasoner_get(interp_running())->store;
    Datum value = constant_find_text(&store->constants, name->bytes, name->length);
    return value != CONSTANT_NONE && table_has(type->facts, &value);
}

typedef struct WithEntityCode {
    Code head;
    const Relation *type;
    const Code *body;
} WithEntityCode;

// Person: 2 before, 4 after, added cid, dov
static Status names_show(const Store *store, const Relation *type, const Table *before) {
    const Table *facts = type->facts;
    SCOPED_TEXT(text);
    text_format(&text, "%s: %u before, %u after", type->name, table_live(before),
                table_live(facts));
    const char *separator = ", added ";
    for (uint32_t row = 0; row < facts->count; row++) {
        Datum name = table_at(facts, row, 0);
        if (table_is_dead(facts, row) || table_has(before, &name)) continue;
        text_append_string(&text, separator);
        constant_print(&store->constants, name, &text);
        separator = ", ";
    }
    text_append_char(&text, '\n');
    return output_write(output_stream(), &text);
}

static Value eval_with_entity(Frame *frame, const Code *code) {
    const WithEntityCode *with = (const WithEntityCode *)code;
    const Store *store = reasoner_get(frame->interp)->store;
    Table *before = table_copy(with->type->facts);
    Value value = EVAL(frame, with->body);
    if (!failed(value) && names_show(store, with->type, before) != STATUS_OK) {
        value_release(value);
        value = fail_at(code->span);
    }
    table_free(before);
    return value;
}

const Code *lower_with_entity(Lowering *lowering, const Node *node) {
    WithEntityCode *code = LOWER_NEW(lowering, WithEntityCode, eval_with_entity, node->span);
    code->type = node->as.with.argument->as.name.binding->relation;
    code->body = lower(lowering, node->as.with.body);
    return &code->head;
}
