// Facts from files and to files: of separated values, words of a text (.txt), or of the engine's
// own
// (.tlf).
#include <stdlib.h>
#include <string.h>

#include "eval/bind.h"
#include "logic/archive.h"
#include "logic/evaluate.h"
#include "reason/reason.h"
#include "value/convert.h"
#include "value/print.h"

static Status relation_argument(Value value, Relation **out) {
    void *payload;
    TRY(value_to_handle(value, &handle_relation, "relation", &payload));
    *out = payload;
    return STATUS_OK;
}

static bool ends_with(const char *path, const char *ending) {
    size_t length = strlen(path), tail = strlen(ending);
    return length > tail && strcmp(path + length - tail, ending) == 0;
}

// A field that reads as a number is text where the column holds text.
static Status field_datum(Reasoner *reasoner, const Relation *relation, uint32_t column,
                          Value field, Datum *out) {
    ColumnKind kind = relation->columns[column].kind;
    if (kind == COLUMN_BOOL && (value_is_text(field, "true") || value_is_text(field, "false")))
        field = value_bool(value_is_text(field, "true"));
    bool text = (kind == COLUMN_ENTITY || kind == COLUMN_STRING) && field.kind != VALUE_STRING;
    if (!text) {
        TRY(constant_of_value(reasoner, field, relation->name, out));
    } else {
        SCOPED_TEXT(shown);
        TRY(value_print(field, false, &shown));
        *out = constant_text(&reasoner->store->constants, text_get(&shown), shown.length);
    }
    return column_fit(reasoner->store, relation, column, out);
}

static Status row_data(Reasoner *reasoner, const Relation *relation, const List *row, Datum *out) {
    if (row->count != relation->arity)
        return fail(STATUS_ARITY, "a row of the file has %zu field%s, but %s has %u column%s",
                    row->count, row->count == 1 ? "" : "s", relation->name, relation->arity,
                    relation->arity == 1 ? "" : "s");
    for (uint32_t i = 0; i < relation->arity; i++)
        TRY(field_datum(reasoner, relation, i, row->items[i], &out[i]));
    return STATUS_OK;
}

// Every row is read before the first one becomes a fact.
static Status rows_add(Reasoner *reasoner, Relation *relation, const List *rows, uint64_t *added) {
    size_t arity = relation->arity;
    SCOPED_MEMORY Datum *data = memory_allocate((rows->count * arity + 1) * sizeof *data);
    Status status = STATUS_OK;
    for (size_t i = 0; i < rows->count && status == STATUS_OK; i++) {
        status = row_data(reasoner, relation, rows->items[i].as.list, data + i * arity);
        if (status != STATUS_OK) fail_label("row %zu of the file", i + 1);
    }
    for (size_t i = 0; i < rows->count && status == STATUS_OK; i++)
        *added += fact_add(reasoner->store, relation, data + i * arity);
    return status;
}

// The words of a text with their places from 0: what stands between blanks.
static Value word_rows(const String *text) {
    Value rows = value_list(0);
    size_t at = 0;
    while (at < text->length) {
        size_t begin = at;
        while (at < text->length && (uint8_t)text->bytes[at] > ' ') at++;
        if (at > begin) {
            Value row = value_tuple(2);
            list_push(row.as.list, value_int((int64_t)rows.as.list->count));
            list_push(row.as.list, value_string(text->bytes + begin, at - begin));
            list_push(rows.as.list, row);
        }
        at++;
    }
    return rows;
}

static Value read_rows(const BuiltinCall *call, const char *path) {
    const char *name = ends_with(path, ".txt") ? "read_file" : "read_csv";
    Value read =
        interp_call_builtin(call->interp, catalog_find(name, strlen(name)), call->arguments, 1);
    if (read.kind != VALUE_STRING) return read;
    Value rows = word_rows(read.as.string);
    value_release(read);
    return rows;
}

static Status load_rows(const BuiltinCall *call, const char *path, Relation *relation,
                        uint64_t *added) {
    SCOPED_VALUE(rows) = read_rows(call, path);
    if (rows.kind == VALUE_FAIL) return error_current()->code;
    Reasoner *reasoner = reasoner_get(call->interp);
    Status status = reasoner_enter(reasoner);
    if (status == STATUS_OK) {
        status = rows_add(reasoner, relation, rows.as.list, added);
        reasoner_leave(reasoner);
    }
    return status;
}

// The relation of the call, or NULL: all of them, which only files of facts hold.
static Status file_relation(const BuiltinCall *call, bool *facts, const char **path,
                            Relation **out) {
    *path = call->arguments[0].as.string->bytes;
    *facts = ends_with(*path, ".tlf");
    *out = NULL;
    if (call->arguments[1].kind != VALUE_ABSENT) return relation_argument(call->arguments[1], out);
    if (*facts) return STATUS_OK;
    fail(STATUS_ARITY, "a file of separated values holds one relation: which?");
    return fail_help("name it behind the path; only a file NAME.tlf holds several");
}

Value builtin_load_facts(BuiltinCall *call) {
    Relation *relation;
    const char *path;
    bool facts;
    uint64_t added = 0;
    TRY_VALUE(file_relation(call, &facts, &path, &relation));
    if (!facts) {
        TRY_VALUE(load_rows(call, path, relation, &added));
        return value_int((int64_t)added);
    }
    Reasoner *reasoner = reasoner_get(call->interp);
    TRY_VALUE(reasoner_enter(reasoner));
    Status status = store_load(reasoner->store, relation, path, &added);
    reasoner_leave(reasoner);
    return status == STATUS_OK ? value_int((int64_t)added) : value_fail();
}

static Value save_separated(const BuiltinCall *call, Relation *relation) {
    Reasoner *reasoner = reasoner_get(call->interp);
    TRY_VALUE(reasoner_enter(reasoner));
    Status status = store_complete(reasoner->store, relation);
    reasoner_leave(reasoner);
    TRY_VALUE(status);
    SCOPED_VALUE(rows) = rows_of_table(reasoner, relation_table(relation));
    for (size_t i = 0; relation->arity == 1 && i < rows.as.list->count; i++) {
        Value row = value_tuple(1);
        list_push(row.as.list, rows.as.list->items[i]);
        rows.as.list->items[i] = row;
    }
    Value arguments[] = {call->arguments[0], rows};
    const Builtin *writer = catalog_find("write_csv", strlen("write_csv"));
    return interp_call_builtin(call->interp, writer, arguments, 2);
}

Value builtin_save_facts(BuiltinCall *call) {
    Relation *relation;
    const char *path;
    bool facts;
    TRY_VALUE(file_relation(call, &facts, &path, &relation));
    if (!facts) return save_separated(call, relation);
    TRY_VALUE(store_save(reasoner_get(call->interp)->store, relation, path));
    return value_none();
}
