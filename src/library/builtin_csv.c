// Files of separated values: quoted fields as RFC 4180 has them, numbers read as numbers.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "library/text_file.h"
#include "value/convert.h"
#include "value/format.h"

typedef struct CsvReader {
    const char *path, *at, *end;
    char separator;
    int line; // of the present row, from 1
    Text field;
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

// An int or float when the whole field reads as one in decimal or is inf, -inf or nan, as numbers
// are printed, else the text.
static Value field_value(const Text *field) {
    const char *text = text_get(field);
    char *end;
    bool numeric = field->length > 0 && strspn(text, "0123456789+-.eE") == field->length &&
                   strpbrk(text, "0123456789");
    if (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0 || strcmp(text, "nan") == 0)
        numeric = field->length == strlen(text);
    if (!numeric) return value_string(text, field->length);
    errno = 0;
    long long whole = strtoll(text, &end, 10);
    if (!*end && errno == 0) return value_int(whole);
    double number = strtod(text, &end);
    return *end ? value_string(text, field->length) : value_float(number);
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
        text_append_char(&reader->field, c);
    }
    return fail(STATUS_FORMAT, "%s: the quote opened in line %d is never closed", reader->path,
                opened);
}

// One row as a list of fields; the reader stands behind its line end.
static Status read_row(CsvReader *reader, List *row) {
    for (;;) {
        text_clear(&reader->field);
        bool quoted = reader->at < reader->end && *reader->at == '"';
        if (quoted) TRY(read_quoted(reader));
        while (reader->at < reader->end && *reader->at != reader->separator && *reader->at != '\n')
            text_append_char(&reader->field, *reader->at++);
        bool more = reader->at < reader->end && *reader->at == reader->separator;
        Text *field = &reader->field;
        if (!more && field->length && field->bytes[field->length - 1] == '\r')
            field->bytes[--field->length] = '\0';
        list_push(row, quoted ? value_string(text_get(field), field->length) : field_value(field));
        if (reader->at < reader->end) reader->at++;
        if (!more) break;
    }
    reader->line++;
    return STATUS_OK;
}

// The row as a dictionary under the header's names.
static Status name_fields(const CsvReader *reader, const List *header, const List *row,
                          Value *out) {
    if (row->count != header->count)
        return fail(STATUS_FORMAT, "%s: line %d has %zu field%s, the header has %zu", reader->path,
                    reader->line - 1, row->count, row->count == 1 ? "" : "s", header->count);
    *out = value_dict();
    for (size_t i = 0; i < row->count; i++) {
        Text name = {0};
        Status status = value_print(header->items[i], false, &name);
        if (status == STATUS_OK)
            dict_set_word(out->as.dict, text_get(&name), value_retain(row->items[i]));
        text_free(&name);
        TRY(status);
    }
    return STATUS_OK;
}

static Status read_rows(CsvReader *reader, bool has_header, List *rows, Value *header) {
    while (reader->at < reader->end) {
        const char *begin = reader->at;
        Value row = value_list(0), named = value_absent();
        Status status = read_row(reader, row.as.list);
        bool blank = row.as.list->count == 1 && *begin != '"' &&
                     row.as.list->items[0].kind == VALUE_STRING &&
                     row.as.list->items[0].as.string->length == 0;
        bool is_header = has_header && header->kind == VALUE_ABSENT;
        if (status == STATUS_OK && has_header && !is_header && !blank)
            status = name_fields(reader, header->as.list, row.as.list, &named);
        if (status != STATUS_OK || blank || named.kind != VALUE_ABSENT)
            value_release(row);
        else if (is_header)
            *header = row;
        else
            list_push(rows, row);
        if (status != STATUS_OK) {
            value_release(named);
            return status;
        }
        if (named.kind != VALUE_ABSENT) list_push(rows, named);
    }
    return STATUS_OK;
}

Value builtin_read_csv(BuiltinCall *call) {
    CsvReader reader = {.path = call->arguments[0].as.string->bytes, .line = 1};
    TRY_VALUE(separator_of(call->arguments[1], &reader.separator));
    Text text = {0};
    Value rows = value_list(0), header = value_absent();
    Status status = text_file_read(reader.path, &text);
    reader.at = text_get(&text);
    reader.end = reader.at + text.length;
    if (status == STATUS_OK)
        status = read_rows(&reader, call->arguments[2].as.boolean, rows.as.list, &header);
    text_free(&reader.field);
    text_free(&text);
    value_release(header);
    if (status == STATUS_OK) return rows;
    value_release(rows);
    return value_fail();
}

// --- writing

static Status write_field(Value value, char separator, Text *out) {
    Text field = {0};
    Status status = value_print(value, false, &field);
    const char *text = text_get(&field);
    bool quote = strchr(text, separator) || strpbrk(text, "\"\r\n");
    // A string that would read back as a number keeps its kind through quotes.
    if (value.kind == VALUE_STRING && field.length && field_value(&field).kind != VALUE_STRING)
        quote = true;
    if (quote) text_append_char(out, '"');
    for (size_t i = 0; i < field.length; i++) {
        if (text[i] == '"') text_append_char(out, '"');
        text_append_char(out, text[i]);
    }
    if (quote) text_append_char(out, '"');
    text_free(&field);
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
    Value fields = value_to_items(row, "a row");
    if (fields.kind == VALUE_FAIL) return error_current()->code;
    Status status = write_fields(fields.as.list, separator, out);
    value_release(fields);
    return status;
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
    Value names = value_absent();
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
    value_release(names);
    return status;
}

Value builtin_write_csv(BuiltinCall *call) {
    char separator;
    TRY_VALUE(separator_of(call->arguments[2], &separator));
    Value rows = value_to_items(call->arguments[1], "rows");
    if (rows.kind == VALUE_FAIL) return rows;
    Text text = {0};
    Status status = write_rows(rows.as.list, call->arguments[3], separator, &text);
    if (status == STATUS_OK)
        status = text_file_write(call->arguments[0].as.string->bytes, text_get(&text), text.length,
                                 false);
    text_free(&text);
    value_release(rows);
    return status == STATUS_OK ? value_none() : value_fail();
}
