// Queries of SQLite databases, which are only read.
#include <sqlite3.h>
#include <stdlib.h>
#include <strings.h>

#include "base/file_map.h"
#include "base/library.h"
#include "base/utf8.h"
#include "device/device.h"
#include "device/foretell.h"
#include "eval/state.h"
#include "library/columns.h"
#include "value/convert.h"
#include "value/items.h"

// clang-format off
#define SQL_FUNCTIONS(F) \
    F(sqlite3_, open_v2) F(sqlite3_, close_v2) F(sqlite3_, errmsg) F(sqlite3_, error_offset) \
    F(sqlite3_, prepare_v3) F(sqlite3_, finalize) F(sqlite3_, step) F(sqlite3_, progress_handler) \
    F(sqlite3_, db_config) F(sqlite3_, bind_parameter_count) F(sqlite3_, bind_parameter_name) \
    F(sqlite3_, bind_null) F(sqlite3_, bind_int64) F(sqlite3_, bind_double) \
    F(sqlite3_, bind_text) F(sqlite3_, column_count) F(sqlite3_, column_name) \
    F(sqlite3_, column_type) F(sqlite3_, column_int64) F(sqlite3_, column_double) \
    F(sqlite3_, column_text) F(sqlite3_, column_blob) F(sqlite3_, column_bytes) \
    F(sqlite3_, set_authorizer)
// clang-format on
LIBRARY(sql_library, SQL_FUNCTIONS, .file = "libsqlite3.so.0",
        .purpose = "queries of SQLite databases", .package = "libsqlite3-0");

typedef struct Query {
    const char *path;
    const String *text;
    sqlite3 *base;
    sqlite3_stmt *statement;
    List *names; // of the columns
    int64_t row; // from 0
} Query;

enum { STEPS_BETWEEN = 10000 }; // of SQLite's machine, between looks at interrupts

static int interrupted(void *context) {
    (void)context;
    return interp_interrupts() != 0;
}

static Status fail_query(const Query *query, int problem) {
    if (problem == SQLITE_INTERRUPT && interp_interrupts()) {
        (void)interp_fail_interrupted((Span){0, 0});
        return error_current()->code;
    }
    const char *words = sql_library.errmsg(query->base);
    if (problem == SQLITE_NOTADB || problem == SQLITE_CORRUPT)
        return fail(STATUS_FORMAT, "%s: %s", query->path, words);
    if (problem == SQLITE_CANTOPEN || problem == SQLITE_IOERR || problem == SQLITE_BUSY)
        return fail(STATUS_IO, "cannot read \"%s\": %s", query->path, words);
    int at = sql_library.error_offset(query->base);
    if (at < 0) return fail(STATUS_VALUE, "read_sql: %s", words);
    return fail(STATUS_VALUE, "read_sql: %s, at byte %d of the query", words, at);
}

// While the program is foretold: what draws numbers or may ask for the time a run does again.
static int note_function(void *context, int action, const char *first, const char *name,
                         const char *base, const char *trigger) {
    static const char *const words[] = {
        "random",   "randomblob", "date",         "time",         "datetime", "julianday",
        "strftime", "unixepoch",  "current_date", "current_time", "timediff", "current_timestamp"};
    (void)context, (void)first, (void)base, (void)trigger;
    for (size_t i = 0; action == SQLITE_FUNCTION && i < sizeof words / sizeof *words; i++)
        if (strcasecmp(name, words[i]) == 0) foretell_unknown();
    return SQLITE_OK;
}

static Status open_base(Query *query) {
    FileMap *map; // says in the words of other files why there is none
    TRY(file_map_open(query->path, &map));
    file_map_release(map);
    int problem = sql_library.open_v2(query->path, &query->base, SQLITE_OPEN_READONLY, NULL);
    if (problem) return fail_query(query, problem);
    // What a schema says is not run beyond what the query asks for.
    (void)sql_library.db_config(query->base, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)NULL);
    sql_library.progress_handler(query->base, STEPS_BETWEEN, interrupted, NULL);
    if (foretelling()) sql_library.set_authorizer(query->base, note_function, NULL);
    const char *rest;
    problem = sql_library.prepare_v3(query->base, query->text->bytes, (int)query->text->length, 0,
                                     &query->statement, &rest);
    if (problem) return fail_query(query, problem);
    if (!query->statement) return fail(STATUS_VALUE, "read_sql: the query is empty");
    rest += strspn(rest, " \t\r\n;");
    if (*rest)
        return fail(STATUS_VALUE,
                    "read_sql: the query is one statement, but another begins at byte %zu",
                    (size_t)(rest - query->text->bytes));
    return STATUS_OK;
}

// --- parameters

static Status bind_value(const Query *query, int at, Value value) {
    sqlite3_stmt *statement = query->statement;
    int problem;
    TRY(value_read_number(&value));
    value = value_look(value);
    switch ((ValueKind)value.kind) {
    case VALUE_NONE: problem = sql_library.bind_null(statement, at); break;
    case VALUE_BOOL:
    case VALUE_INT: problem = sql_library.bind_int64(statement, at, value.as.integer); break;
    case VALUE_FLOAT: problem = sql_library.bind_double(statement, at, value.as.number); break;
    case VALUE_STRING:
        problem = sql_library.bind_text(statement, at, value.as.string->bytes,
                                        (int)value.as.string->length, SQLITE_TRANSIENT);
        break;
    default: return fail_kind("read_sql: a parameter", "a number, a string, a bool or none", value);
    }
    return problem ? fail_query(query, problem) : STATUS_OK;
}

static Status bind_named(const Query *query, const Dict *given, int count) {
    for (int at = 1; at <= count; at++) {
        const char *name = sql_library.bind_parameter_name(query->statement, at);
        Value value = name ? dict_get_word(given, name + 1) : value_absent();
        if (value.kind == VALUE_ABSENT)
            return fail(STATUS_KEY, "read_sql: the query's parameter %s has no value",
                        name ? name : "?");
        TRY(bind_value(query, at, value));
    }
    return STATUS_OK;
}

static Status bind_parameters(const Query *query, Value given) {
    int count = sql_library.bind_parameter_count(query->statement);
    if (given.kind == VALUE_DICT) return bind_named(query, given.as.dict, count);
    bool none = given.kind == VALUE_ABSENT || given.kind == VALUE_NONE;
    SCOPED_VALUE(items) = none ? value_list(0) : value_to_items(given, "parameters");
    if (items.kind == VALUE_FAIL) return error_current()->code;
    const List *list = items.as.list;
    Status status = STATUS_OK;
    if (list->count != (size_t)count)
        status = fail(STATUS_VALUE, "read_sql: the query has %d parameter%s, but %zu %s given",
                      count, count == 1 ? "" : "s", list->count, list->count == 1 ? "is" : "are");
    for (int at = 1; at <= count && status == STATUS_OK; at++)
        status = bind_value(query, at, list->items[at - 1]);
    return status;
}

// --- results

static Status read_names(Query *query) {
    int count = sql_library.column_count(query->statement);
    for (int i = 0; i < count; i++) {
        const char *name = sql_library.column_name(query->statement, i);
        if (!name) return memory_exhausted();
        for (size_t other = 0; other < query->names->count; other++)
            if (strcmp(query->names->items[other].as.string->bytes, name) == 0) {
                (void)fail(STATUS_VALUE, "read_sql: two columns of the result are called `%s`",
                           name);
                return fail_help("name one of them: SELECT ... AS other_name");
            }
        list_push(query->names, value_cstring(name));
    }
    return STATUS_OK;
}

static Status read_blob(const Query *query, int column, Value *out) {
    const void *bytes = sql_library.column_blob(query->statement, column);
    int64_t length = sql_library.column_bytes(query->statement, column);
    Shape shape = {.rank = 1, .dims = {length}};
    Device *device;
    Tensor *tensor;
    TRY(device_default(&device));
    TRY(tensor_new(device, DTYPE_UINT8, &shape, &tensor));
    Status status =
        length ? buffer_upload(tensor->view.buffer, 0, bytes, (size_t)length) : STATUS_OK;
    if (status == STATUS_OK)
        *out = value_tensor(tensor);
    else
        tensor_release(tensor);
    return status;
}

static Status read_text(const Query *query, int column, Value *out) {
    const char *bytes = (const char *)sql_library.column_text(query->statement, column);
    size_t length = (size_t)sql_library.column_bytes(query->statement, column);
    if (!bytes) return fail(STATUS_MEMORY, "read_sql: there is not enough memory for a text");
    if (!utf8_valid(bytes, length, NULL))
        return fail(STATUS_FORMAT, "%s: column `%s` of row %lld is not UTF-8", query->path,
                    query->names->items[column].as.string->bytes, (long long)query->row);
    *out = value_string(bytes, length);
    return STATUS_OK;
}

static Status read_cell(const Query *query, int column, Value *out) {
    switch (sql_library.column_type(query->statement, column)) {
    case SQLITE_NULL: *out = value_none(); return STATUS_OK;
    case SQLITE_INTEGER:
        *out = value_int(sql_library.column_int64(query->statement, column));
        return STATUS_OK;
    case SQLITE_FLOAT:
        *out = value_float(sql_library.column_double(query->statement, column));
        return STATUS_OK;
    case SQLITE_TEXT: return read_text(query, column, out);
    default: return read_blob(query, column, out);
    }
}

static Status add_row(const Query *query, List *rows) {
    Value row = value_dict();
    for (size_t i = 0; i < query->names->count; i++) {
        Value cell;
        Status status = read_cell(query, (int)i, &cell);
        if (status != STATUS_OK) {
            value_release(row);
            return status;
        }
        dict_set(row.as.dict, query->names->items[i], cell);
    }
    list_push(rows, row);
    return STATUS_OK;
}

static Status add_cells(const Query *query, Column *columns) {
    for (size_t i = 0; i < query->names->count; i++) {
        Value cell;
        TRY(read_cell(query, (int)i, &cell));
        Column *column = column_of(columns, i);
        if (cell.kind == VALUE_NONE)
            column_add_missing(column);
        else if (cell.kind == VALUE_INT)
            column_add_integer(column, cell.as.integer);
        else if (cell.kind == VALUE_FLOAT)
            column_add_float(column, cell.as.number);
        else
            column_add_value(column, cell);
    }
    return STATUS_OK;
}

// Every row into one of the two that is not NULL.
static Status read_rows(Query *query, List *rows, Column *columns) {
    int problem;
    for (; (problem = sql_library.step(query->statement)) == SQLITE_ROW; query->row++)
        TRY(columns ? add_cells(query, columns) : add_row(query, rows));
    return problem == SQLITE_DONE ? STATUS_OK : fail_query(query, problem);
}

static Status read_columns(Query *query, Value *out) {
    size_t count = query->names->count;
    Column *columns = columns_new(count, value_none());
    Status status = read_rows(query, NULL, columns);
    *out = value_dict();
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        Value taken;
        status = column_take(column_of(columns, i), &taken);
        if (status == STATUS_OK) dict_set(out->as.dict, query->names->items[i], taken);
    }
    columns_free(columns, count);
    return status;
}

static Status run_query(Query *query, const BuiltinCall *call, Value *out) {
    TRY(library_load(&library));
    TRY(open_base(query));
    TRY(bind_parameters(query, call->arguments[2]));
    TRY(read_names(query));
    if (call->arguments[3].as.boolean) return read_columns(query, out);
    *out = value_list(0);
    return read_rows(query, out->as.list, NULL);
}

Value builtin_read_sql(BuiltinCall *call) {
    Value names = value_list(0), out = value_none();
    Query query = {.path = call->arguments[0].as.string->bytes,
                   .text = call->arguments[1].as.string,
                   .names = names.as.list};
    Status status = run_query(&query, call, &out);
    if (query.statement) (void)sql_library.finalize(query.statement);
    if (query.base) (void)sql_library.close_v2(query.base);
    value_release(names);
    if (status == STATUS_OK) return out;
    value_release(out);
    return value_fail();
}
