// Files of separated values: quoted fields as RFC 4180 has them, numbers read as numbers.
#include "library/builtin_csv.h"

#include <string.h>

#include "base/number.h"
#include "library/columns.h"
#include "library/text_file.h"
#include "value/convert.h"
#include "value/items.h"
#include "value/print.h"

typedef struct CsvReader {
    const char *path, *at, *end;
    char separator;
    int line; // of the present row, from 1
    Text unquoted;
} CsvReader;

static Status separator_of(Value value, char *out) {
    const String *separator;
    TRY(value_to_string(value, "separator", &separator));
    bool usable = separator->length == 1 && !strchr("\"\n\r", separator->bytes[0]);
    if (!usable)
        return fail(STATUS_VALUE,
                    "separator must be one character and no quote or line end, but it is %s",
                    value_text(value).text);
    *out = separator->bytes[0];
    return STATUS_OK;
}

Value field_value(const Field *field) {
    int64_t integer;
    double number;
    if (!field->quoted) {
        NumberKind kind = number_read(field->bytes, field->length, &integer, &number);
        if (kind == NUMBER_IS_INTEGER) return value_int(integer);
        if (kind == NUMBER_IS_FLOAT) return value_float(number);
    }
    return value_string(field->bytes, field->length);
}

// Reads the inside of a quoted field up to its closing quote; `""` is one quote.
static Status read_quoted(CsvReader *reader) {
    int opened = reader->line;
    for (reader->at++; reader->at < reader->end; reader->at++) {
        char c = *reader->at;
        if (c == '\n') reader->line++;
        if (c == '"') {
            bool twice = reader->at + 1 < reader->end && reader->at[1] == '"';
            reader->at++;
            if (!twice) return STATUS_OK;
        }
        text_append_char(&reader->unquoted, c);
    }
    return fail(STATUS_FORMAT, "%s: the quote opened in line %d is never closed", reader->path,
                opened);
}

// The next field; the reader stands behind the separator or line end after it.
static Status read_field(CsvReader *reader, Field *out) {
    const char *at = reader->at, *end = reader->end;
    out->quoted = at < end && *at == '"';
    if (out->quoted) {
        text_clear(&reader->unquoted);
        TRY(read_quoted(reader));
        at = reader->at;
    }
    const char *begin = at;
    while (at < end && *at != reader->separator && *at != '\n') at++;
    out->bytes = begin;
    out->length = (size_t)(at - begin);
    out->last = at == end || *at == '\n';
    if (out->last && out->length && begin[out->length - 1] == '\r') out->length--;
    if (out->quoted) { // what follows the closing quote belongs to it
        text_append(&reader->unquoted, begin, out->length);
        out->bytes = text_get(&reader->unquoted);
        out->length = reader->unquoted.length;
    }
    reader->at = at + (at < end);
    reader->line += out->last;
    return STATUS_OK;
}

// The first field of the next row that is not blank; false at the end of the file.
static Status begin_row(CsvReader *reader, Field *first, bool *found) {
    for (*found = false; !*found && reader->at < reader->end;) {
        TRY(read_field(reader, first));
        *found = first->quoted || first->length > 0 || !first->last;
    }
    return STATUS_OK;
}

static Status fail_count(const CsvReader *reader, size_t count, size_t wanted, bool named) {
    return fail(STATUS_FORMAT, "%s: line %d has %zu field%s, the %s has %zu", reader->path,
                reader->line - 1, count, count == 1 ? "" : "s", named ? "header" : "first row",
                wanted);
}

// --- rows

static Status read_row(CsvReader *reader, Field *field, List *row) {
    list_push(row, field_value(field));
    while (!field->last) {
        TRY(read_field(reader, field));
        list_push(row, field_value(field));
    }
    return STATUS_OK;
}

// The first row as strings.
static Status read_names(CsvReader *reader, Value *out) {
    Field field;
    bool found;
    *out = value_list(0);
    TRY(begin_row(reader, &field, &found));
    if (found) list_push(out->as.list, value_string(field.bytes, field.length));
    while (found && !field.last) {
        TRY(read_field(reader, &field));
        list_push(out->as.list, value_string(field.bytes, field.length));
    }
    return STATUS_OK;
}

// The row as a dictionary under the header's names.
static Status name_fields(const CsvReader *reader, const List *names, const List *row, Value *out) {
    if (row->count != names->count) return fail_count(reader, row->count, names->count, true);
    *out = value_dict();
    for (size_t i = 0; i < row->count; i++)
        dict_set(out->as.dict, names->items[i], value_retain(row->items[i]));
    return STATUS_OK;
}

static Status add_row(CsvReader *reader, Field *first, const List *names, List *rows) {
    size_t width = rows->count && !names ? rows->items[rows->count - 1].as.list->count : 0;
    Value row = value_list(width), named;
    Status status = read_row(reader, first, row.as.list);
    if (status == STATUS_OK && !names) {
        list_push(rows, row);
        return STATUS_OK;
    }
    if (status == STATUS_OK) status = name_fields(reader, names, row.as.list, &named);
    if (status == STATUS_OK) list_push(rows, named);
    value_release(row);
    return status;
}

static Status read_rows(CsvReader *reader, const List *names, Value *out) {
    *out = value_list(0);
    for (;;) {
        Field first;
        bool found;
        TRY(begin_row(reader, &first, &found));
        if (!found) return STATUS_OK;
        TRY(add_row(reader, &first, names, out->as.list));
    }
}

// --- columns

static void add_cell(Column *column, const Field *field) {
    int64_t integer;
    double number;
    NumberKind kind = NUMBER_NONE;
    if (!field->quoted) kind = number_read(field->bytes, field->length, &integer, &number);
    if (kind == NUMBER_IS_INTEGER)
        column_add_integer(column, integer);
    else if (kind == NUMBER_IS_FLOAT)
        column_add_float(column, number);
    else if (field->length == 0 && !field->quoted)
        column_add_missing(column);
    else
        column_add_value(column, value_string(field->bytes, field->length));
}

static Status read_cells(CsvReader *reader, Column *columns, size_t count, bool named) {
    for (;;) {
        Field field;
        bool found;
        size_t at = 1;
        TRY(begin_row(reader, &field, &found));
        if (!found) return STATUS_OK;
        add_cell(column_of(columns, 0), &field);
        for (; !field.last; at++) {
            TRY(read_field(reader, &field));
            if (LIKELY(at < count)) add_cell(column_of(columns, at), &field);
        }
        if (UNLIKELY(at != count)) return fail_count(reader, at, count, named);
    }
}

static Status check_names(const CsvReader *reader, const List *names) {
    SCOPED_VALUE(seen) = value_dict();
    Status status = STATUS_OK;
    for (size_t i = 0; i < names->count && status == STATUS_OK; i++) {
        if (dict_get(seen.as.dict, names->items[i]).kind != VALUE_ABSENT)
            status = fail(STATUS_FORMAT, "%s: two columns are called \"%.80s\"", reader->path,
                          names->items[i].as.string->bytes);
        dict_set(seen.as.dict, names->items[i], value_none());
    }
    return status;
}

// The columns under the header's names, or without one in order.
static Status take_columns(Column *columns, const List *names, size_t count, Value *out) {
    *out = names ? value_dict() : value_list(count);
    for (size_t i = 0; i < count; i++) {
        Value taken;
        TRY(column_take(column_of(columns, i), &taken));
        if (names)
            dict_set(out->as.dict, names->items[i], taken);
        else
            list_push(out->as.list, taken);
    }
    return STATUS_OK;
}

static Status read_columns(CsvReader *reader, const List *names, Value *out) {
    if (names) TRY(check_names(reader, names));
    size_t count = names ? names->count : 0;
    if (!names) { // the first row says how many
        CsvReader again = *reader;
        Value first;
        Status status = read_names(reader, &first);
        count = first.as.list->count;
        value_release(first);
        again.unquoted = reader->unquoted;
        *reader = again;
        TRY(status);
    }
    Column *columns = columns_new(count, value_string("", 0));
    Status status = count ? read_cells(reader, columns, count, names) : STATUS_OK;
    if (status == STATUS_OK) status = take_columns(columns, names, count, out);
    columns_free(columns, count);
    return status;
}

// The arguments of read_csv after the path.
enum { CSV_SEPARATOR = 1, CSV_HEADER, CSV_COLUMNS };

static Status read_text(CsvReader *reader, const BuiltinCall *call, Value *out) {
    SCOPED_VALUE(names) = value_none();
    Status status = STATUS_OK;
    if (call->arguments[CSV_HEADER].as.boolean) status = read_names(reader, &names);
    const List *header = names.kind == VALUE_LIST ? names.as.list : NULL;
    if (status == STATUS_OK)
        status = call->arguments[CSV_COLUMNS].as.boolean ? read_columns(reader, header, out)
                                                         : read_rows(reader, header, out);
    return status;
}

Value builtin_read_csv(BuiltinCall *call) {
    CsvReader reader = {.path = call->arguments[0].as.string->bytes, .line = 1};
    TRY_VALUE(separator_of(call->arguments[CSV_SEPARATOR], &reader.separator));
    SCOPED_TEXT(text);
    Value out = value_none();
    Status status = text_file_read(reader.path, &text);
    reader.at = text_get(&text);
    reader.end = reader.at + text.length;
    if (status == STATUS_OK) status = read_text(&reader, call, &out);
    text_free(&reader.unquoted);
    if (status == STATUS_OK) return out;
    value_release(out);
    return value_fail();
}

// --- fields

static Status give_row(CsvReader *reader, Field *field, FieldTake take, void *context) {
    if (take) TRY(take(context, field));
    while (!field->last) {
        TRY(read_field(reader, field));
        if (take) TRY(take(context, field));
    }
    return STATUS_OK;
}

static Status give_fields(CsvReader *reader, bool header, FieldTake take, void *context) {
    for (;; header = false) {
        Field field;
        bool found;
        TRY(begin_row(reader, &field, &found));
        if (!found) return STATUS_OK;
        TRY(give_row(reader, &field, header ? NULL : take, context));
    }
}

Status csv_each_field(const FieldReading *reading, FieldTake take, void *context) {
    CsvReader reader = {.path = reading->path, .line = 1};
    SCOPED_TEXT(text);
    TRY(separator_of(reading->separator, &reader.separator));
    TRY(text_file_read(reader.path, &text));
    reader.at = text_get(&text);
    reader.end = reader.at + text.length;
    Status status = give_fields(&reader, reading->header, take, context);
    text_free(&reader.unquoted);
    return status;
}

// --- writing

// What a reader would end a field at, or leave out where a file begins.
static bool is_plain(const Text *field, char separator) {
    const char *text = text_get(field);
    for (size_t i = 0; i < field->length; i++)
        if (text[i] == separator || strchr("\"\r\n", text[i])) return false;
    return strncmp(text, "\xef\xbb\xbf", 3) != 0;
}

static Status write_field(Value value, char separator, Text *out) {
    SCOPED_TEXT(field);
    Status status = value_print(value, false, &field);
    const char *text = text_get(&field);
    bool quote = !is_plain(&field, separator);
    // A string that would read back as a number keeps its kind through quotes.
    Field plain = {text, field.length, false, true};
    if (value.kind == VALUE_STRING && field_value(&plain).kind != VALUE_STRING) quote = true;
    if (quote) text_append_char(out, '"');
    for (size_t i = 0; i < field.length; i++) {
        if (text[i] == '"') text_append_char(out, '"');
        text_append_char(out, text[i]);
    }
    if (quote) text_append_char(out, '"');
    return status;
}

static Status write_fields(const List *fields, char separator, Text *out) {
    size_t begin = out->length;
    for (size_t i = 0; i < fields->count; i++) {
        if (i) text_append_char(out, separator);
        TRY(write_field(fields->items[i], separator, out));
    }
    bool blank = fields->count == 1 && out->length == begin; // a line that readers leave out
    if (blank) text_append_string(out, "\"\"");
    text_append_char(out, '\n');
    return STATUS_OK;
}

static Status write_items(Value row, char separator, Text *out) {
    SCOPED_VALUE(fields) = value_to_items(row, "a row");
    if (fields.kind == VALUE_FAIL) return error_current()->code;
    return write_fields(fields.as.list, separator, out);
}

// The fields of a dictionary in the order of the header.
static Status write_dict(const Dict *row, const List *header, char separator, Text *out) {
    for (size_t i = 0; i < header->count; i++) {
        Value item = dict_get(row, header->items[i]);
        if (item.kind == VALUE_ABSENT)
            return fail(STATUS_KEY, "write_csv: a row has no key %s",
                        value_text(header->items[i]).text);
        if (i) text_append_char(out, separator);
        TRY(write_field(item, separator, out));
    }
    text_append_char(out, '\n');
    return STATUS_OK;
}

static Status write_rows(const List *rows, Value header, char separator, Text *out) {
    SCOPED_VALUE(names) = value_absent();
    bool dicts = rows->count > 0 && rows->items[0].kind == VALUE_DICT;
    if (header.kind != VALUE_ABSENT)
        names = value_to_items(header, "header");
    else if (dicts)
        names = value_to_items(rows->items[0], "a row");
    if (names.kind == VALUE_FAIL) return error_current()->code;
    Status status = STATUS_OK;
    if (names.kind == VALUE_LIST) status = write_fields(names.as.list, separator, out);
    for (size_t i = 0; status == STATUS_OK && i < rows->count; i++) {
        Value row = rows->items[i];
        if (row.kind == VALUE_DICT && dicts)
            status = write_dict(row.as.dict, names.as.list, separator, out);
        else if (row.kind == VALUE_DICT || row.kind == VALUE_STRING)
            status = fail_kind("write_csv: a row", "a list, tuple or tensor", row);
        else
            status = write_items(row, separator, out);
    }
    return status;
}

Value builtin_write_csv(BuiltinCall *call) {
    char separator;
    TRY_VALUE(separator_of(call->arguments[2], &separator));
    SCOPED_VALUE(rows) = value_to_items(call->arguments[1], "rows");
    if (rows.kind == VALUE_FAIL) return rows;
    SCOPED_TEXT(text);
    Status status = write_rows(rows.as.list, call->arguments[3], separator, &text);
    if (status == STATUS_OK)
        status = text_file_write(call->arguments[0].as.string->bytes, text_get(&text), text.length,
                                 false);
    return status == STATUS_OK ? value_none() : value_fail();
}
