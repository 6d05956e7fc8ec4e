// A relation as a value: its length, its rows, whether a row is in it.
#include "logic/evaluate.h"
#include "logic/query.h"
#include "reason/reason.h"
#include "value/convert.h"
#include "value/print.h"

static Status relation_length(Handle *handle, int64_t *out) {
    Reasoner *reasoner = reasoner_get(interp_running());
    uint64_t count = 0;
    TRY(reasoner_enter(reasoner));
    Status status = store_count(reasoner->store, handle->payload, &count);
    reasoner_leave(reasoner);
    *out = (int64_t)count;
    return status;
}

Value rows_of_table(const Reasoner *reasoner, const Table *table) {
    Value list = value_list(table_live(table));
    for (uint32_t row = 0; row < table->count; row++) {
        if (table_is_dead(table, row)) continue;
        if (table->arity == 1) {
            list_push(list.as.list, value_of_constant(reasoner, table_at(table, row, 0)));
            continue;
        }
        Value tuple = value_tuple(table->arity);
        for (uint32_t i = 0; i < table->arity; i++)
            list_push(tuple.as.list, value_of_constant(reasoner, table_at(table, row, i)));
        list_push(list.as.list, tuple);
    }
    return list;
}

static Value relation_items(Handle *handle) {
    Reasoner *reasoner = reasoner_get(interp_running());
    TRY_VALUE(reasoner_enter(reasoner));
    Status status = store_complete(reasoner->store, handle->payload);
    reasoner_leave(reasoner);
    TRY_VALUE(status);
    return rows_of_table(reasoner, relation_table(handle->payload));
}

static Status relation_contains(Handle *handle, Value item, bool *out) {
    Reasoner *reasoner = reasoner_get(interp_running());
    Relation *relation = handle->payload;
    bool tuple = item.kind == VALUE_TUPLE && relation->arity != 1;
    size_t count = tuple ? item.as.list->count : 1;
    if (count != relation->arity)
        return fail(STATUS_ARITY, "%s has %u columns; %s cannot be in it", relation->name,
                    relation->arity, value_text(item).text);
    Datum values[ARITY_MAX];
    for (uint32_t i = 0; i < relation->arity; i++) {
        Value value = tuple ? item.as.list->items[i] : item;
        TRY(constant_of_value(reasoner, value, relation->name, &values[i]));
        column_convert(reasoner->store, relation, i, &values[i]);
    }
    TRY(reasoner_enter(reasoner));
    Status status = store_has(reasoner->store, relation, values, out);
    reasoner_leave(reasoner);
    return status;
}

static void relation_release(void *payload) {
    (void)payload; // the store's
}

static void relation_print(Handle *handle, Text *out) {
    const Relation *relation = handle->payload;
    text_format(out, "<relation %s(", relation->name);
    for (uint32_t i = 0; i < relation->arity; i++)
        text_format(out, "%s%s", i > 0 ? ", " : "",
                    relation->columns[i].name[0] ? relation->columns[i].name : "_");
    text_append_string(out, ")>");
}

const HandleType handle_relation = {.name = "relation",
                                    .release = relation_release,
                                    .print = relation_print,
                                    .length = relation_length,
                                    .items = relation_items,
                                    .contains = relation_contains,
                                    .tensor = &relation_tensor};

Value value_of_relation(Relation *relation) {
    return value_handle(&handle_relation, relation);
}
