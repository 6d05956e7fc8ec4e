// Facts from files and to files: of separated values, words of a text (.txt), or of the engine's
// own (.tlf).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/bind.h"
#include "library/builtin_csv.h"
#include "library/text_file.h"
#include "logic/evaluate.h"
#include "reason/reason.h"
#include "value/convert.h"

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

// What is read of a file before its first row becomes a fact.
typedef struct Loading {
    Reasoner *reasoner;
    Relation *relation;
    VECTOR(Datum) data; // row by row
    size_t rows;        // that are whole
    size_t fields;      // of the present row
    size_t arity;
} Loading;

// Columns of text take a field as it stands, also where it reads as a number.
static Status field_datum(const Loading *loading, uint32_t column, const Field *field, Datum *out) {
    const Relation *relation = loading->relation;
    ConstantTable *constants = &loading->reasoner->store->constants;
    ColumnKind kind = relation->columns[column].kind;
    SCOPED_VALUE(value) = value_none();
    if (kind == COLUMN_ENTITY || kind == COLUMN_STRING)
        *out = constant_text(constants, field->bytes, field->length);
    else
        value = field_value(field);
    if (kind == COLUMN_BOOL && (value_is_text(value, "true") || value_is_text(value, "false")))
        value = value_bool(value_is_text(value, "true"));
    if (value.kind != VALUE_NONE)
        TRY(constant_of_value(loading->reasoner, value, relation->name, out));
    return column_fit(loading->reasoner->store, relation, column, out);
}

static Status take_field(void *context, const Field *field) {
    Loading *loading = context;
    const Relation *relation = loading->relation;
    uint32_t arity = relation->arity;
    size_t at = loading->fields++;
    if (at < arity) {
        Datum datum = CONSTANT_NONE;
        TRY(field_datum(loading, (uint32_t)at, field, &datum));
        VECTOR_PUSH(&loading->data, datum);
    }
    if (!field->last) return STATUS_OK;
    if (loading->fields != arity)
        return fail(STATUS_ARITY, "a row of the file has %zu field%s, but %s has %u column%s",
                    loading->fields, loading->fields == 1 ? "" : "s", relation->name, arity,
                    arity == 1 ? "" : "s");
    loading->fields = 0;
    loading->rows++;
    return STATUS_OK;
}

// The words of a text with their places from 0: what stands between blanks.
static Status each_word(const char *path, Loading *loading) {
    SCOPED_TEXT(text);
    TRY(text_file_read(path, &text));
    const char *bytes = text_get(&text);
    for (size_t at = 0; at < text.length; at++) {
        size_t begin = at;
        while (at < text.length && (uint8_t)bytes[at] > ' ') at++;
        if (at == begin) continue;
        char number[24];
        int length = snprintf(number, sizeof number, "%zu", loading->rows);
        TRY(take_field(loading, &(Field){number, (size_t)length, false, false}));
        TRY(take_field(loading, &(Field){bytes + begin, at - begin, true, true}));
    }
    return STATUS_OK;
}

// The row that did not fit, counted as an editor does.
static void label_row(const Loading *loading, Status status, bool header) {
    bool in_row = loading->fields > 0 || loading->data.count > loading->rows * loading->arity;
    if (!in_row) return;
    fail_label("row %zu of the file", loading->rows + 1 + header);
    if (status == STATUS_TYPE && loading->rows == 0 && !header)
        fail_help("`header: true` leaves out a first row of names");
}

static Status load_rows(Reasoner *reasoner, const FieldReading *reading, Relation *relation,
                        uint64_t *added) {
    Loading loading = {.reasoner = reasoner, .relation = relation, .arity = relation->arity};
    TRY(reasoner_enter(reasoner));
    Status status = ends_with(reading->path, ".txt")
                        ? each_word(reading->path, &loading)
                        : csv_each_field(reading, take_field, &loading);
    if (status != STATUS_OK) label_row(&loading, status, reading->header);
    for (size_t i = 0; i < loading.rows && status == STATUS_OK; i++)
        *added += fact_assert(reasoner, relation, loading.data.items + i * relation->arity);
    VECTOR_FREE(&loading.data);
    reasoner_leave(reasoner);
    return status;
}

// The arguments of load_facts after the relation.
enum { FACTS_SEPARATOR = 2, FACTS_HEADER };

static Status reading_of(const BuiltinCall *call, const char *path, FieldReading *out) {
    const Value *arguments = call->arguments;
    *out = (FieldReading){path, arguments[FACTS_SEPARATOR], arguments[FACTS_HEADER].as.boolean};
    bool separated = !ends_with(path, ".tlf") && !ends_with(path, ".txt");
    if (separated || (!out->header && value_is_text(out->separator, ","))) return STATUS_OK;
    return fail(STATUS_VALUE, "`separator` and `header` are about files of separated values");
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
    FieldReading reading;
    TRY_VALUE(reading_of(call, path, &reading));
    Reasoner *reasoner = reasoner_get(call->interp);
    if (!facts) {
        TRY_VALUE(load_rows(reasoner, &reading, relation, &added));
        return value_int((int64_t)added);
    }
    TRY_VALUE(reasoner_load_facts(reasoner, relation, path, &added));
    return value_int((int64_t)added);
}

static Status fail_unreadable(const char *path, const char *what) {
    fail(STATUS_VALUE, "%s cannot hold %s: they could not be loaded again", path, what);
    return fail_help("a file whose name ends in .tlf holds any facts");
}

// Whether load_facts would read the same rows of what is written.
static Status check_readable(const Store *store, const Relation *relation, const char *path) {
    const Table *rows = relation_table((Relation *)(uintptr_t)relation);
    if (ends_with(path, ".txt")) return fail_unreadable(path, "rows, only words and their places");
    if (relation->arity == 0) return fail_unreadable(path, "rows without columns");
    for (uint32_t i = 0; i < relation->arity; i++) {
        bool bools = relation->columns[i].kind == COLUMN_BOOL;
        for (uint32_t row = 0; row < rows->count; row++) {
            if (table_is_dead(rows, row)) continue;
            ConstantKind kind = constant_kind(&store->constants, table_at(rows, row, i));
            if (kind >= CONSTANT_TUPLE) return fail_unreadable(path, "tuples and sets");
            if (kind == CONSTANT_BOOL && !bools)
                return fail_unreadable(path, "bools of a column that holds anything");
        }
    }
    return STATUS_OK;
}

static Value save_separated(const BuiltinCall *call, Relation *relation) {
    Reasoner *reasoner = reasoner_get(call->interp);
    TRY_VALUE(reasoner_enter(reasoner));
    Status status = store_complete(reasoner->store, relation);
    if (status == STATUS_OK)
        status = check_readable(reasoner->store, relation, call->arguments[0].as.string->bytes);
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
    TRY_VALUE(reasoner_save_facts(reasoner_get(call->interp), relation, path));
    return value_none();
}
