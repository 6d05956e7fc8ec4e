// A file of separated numbers, read row by row: what is kept of it is where each row begins.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "data/source.h"

enum { FIELD_BYTES_MAX = 64 }; // a number is no longer

typedef struct CsvSource {
    DataSource source;
    FileMap *map;
    VECTOR(size_t) starts; // of the rows, and where the last one ends
    char separator;
    int64_t columns, target; // target -1: none
} CsvSource;

// The text of a field without blanks and quotes around it.
typedef struct Field {
    const char *bytes;
    size_t length;
} Field;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static Field without_blanks(Field field) {
    while (field.length && is_blank(field.bytes[0])) field.bytes++, field.length--;
    while (field.length && is_blank(field.bytes[field.length - 1])) field.length--;
    return field;
}

// The field that begins at *at, which moves behind its separator, past `end` at the last one. A
// separator between quotes is none; a quote that is never closed stays in the field.
static Field next_field(const char **at, const char *end, char separator) {
    const char *begin = *at, *close = NULL;
    while (begin < end && *begin != separator && is_blank(*begin)) begin++;
    if (begin < end && *begin == '"') close = memchr(begin + 1, '"', (size_t)(end - begin - 1));
    const char *from = close ? close : begin;
    const char *stop = memchr(from, separator, (size_t)(end - from));
    if (!stop) stop = end;
    *at = stop + 1;
    Field field = without_blanks((Field){begin, (size_t)(stop - begin)});
    if (!close || field.bytes + field.length != close + 1) return field;
    return without_blanks((Field){begin + 1, (size_t)(close - begin - 1)});
}

static bool read_number(Field field, double *out) {
    char text[FIELD_BYTES_MAX], *end;
    if (field.length == 0 || field.length >= sizeof text) return false;
    memcpy(text, field.bytes, field.length);
    text[field.length] = '\0';
    *out = strtod(text, &end);
    return end == text + field.length;
}

static const char *row_at(const CsvSource *csv, size_t row) {
    return (const char *)file_map_bytes(csv->map) + csv->starts.items[row];
}

static const char *row_end(const CsvSource *csv, size_t row) {
    const char *start = row_at(csv, row), *last = row_at(csv, csv->starts.count - 1);
    const char *end = memchr(start, '\n', (size_t)(last - start));
    return end ? end : last;
}

static long long line_of(const CsvSource *csv, size_t row) {
    long long line = 1;
    const char *bytes = (const char *)file_map_bytes(csv->map), *end = row_at(csv, row);
    for (const char *at = bytes; at < end; at++) line += *at == '\n';
    return line;
}

static Status read_row(const DataSource *source, int64_t row, void *const *fields) {
    const CsvSource *csv = (const CsvSource *)source;
    const char *at = row_at(csv, (size_t)row), *end = row_end(csv, (size_t)row);
    const char *path = file_map_path(csv->map);
    float *x = fields[0], *y = fields[csv->target >= 0];
    for (int64_t column = 0; column < csv->columns; column++) {
        if (at > end)
            return fail(STATUS_FORMAT, "%s:%lld: the row has %lld columns, the first one %lld",
                        path, line_of(csv, (size_t)row), (long long)column,
                        (long long)csv->columns);
        Field field = next_field(&at, end, csv->separator);
        double number = 0;
        if (!read_number(field, &number))
            return fail(STATUS_FORMAT, "%s:%lld: column %lld is \"%.*s\", which is not a number",
                        path, line_of(csv, (size_t)row), (long long)column,
                        (int)(field.length < 40 ? field.length : 40), field.bytes);
        if (column == csv->target)
            *y = (float)number;
        else
            *x++ = (float)number;
    }
    if (at > end) return file_map_faults();
    return fail(STATUS_FORMAT, "%s:%lld: the row has more than the %lld columns of the first one",
                path, line_of(csv, (size_t)row), (long long)csv->columns);
}

static void free_csv(DataSource *source) {
    CsvSource *csv = (CsvSource *)source;
    VECTOR_FREE(&csv->starts);
    file_map_release(csv->map);
    free(csv);
}

static void find_rows(CsvSource *csv) {
    const char *bytes = (const char *)file_map_bytes(csv->map);
    size_t length = file_map_length(csv->map);
    for (size_t at = 0; at < length;) {
        const char *end = memchr(bytes + at, '\n', length - at);
        size_t next = end ? (size_t)(end - bytes) + 1 : length, shown = next;
        while (shown > at && memchr("\r\n \t", bytes[shown - 1], 4)) shown--;
        if (shown > at) VECTOR_PUSH(&csv->starts, at);
        at = next;
    }
    VECTOR_PUSH(&csv->starts, length);
}

// Whether the first row holds something else than numbers: then it names the columns.
static bool names_columns(CsvSource *csv) {
    const char *at = row_at(csv, 0), *end = row_end(csv, 0);
    bool named = false;
    double number;
    while (at <= end) {
        named = !read_number(next_field(&at, end, csv->separator), &number) || named;
        csv->columns++;
    }
    return named;
}

static Status find_target(CsvSource *csv, const char *target, bool named) {
    const char *at = row_at(csv, 0), *end = row_end(csv, 0);
    char *rest;
    for (int64_t column = 0; named && at <= end; column++) {
        Field field = next_field(&at, end, csv->separator);
        if (field.length == strlen(target) && memcmp(field.bytes, target, field.length) == 0) {
            csv->target = column;
            return STATUS_OK;
        }
    }
    long long number = strtoll(target, &rest, 10);
    if (number < 0) number += csv->columns;
    csv->target = number;
    if (*target && !*rest && number >= 0 && number < csv->columns) return STATUS_OK;
    return fail(STATUS_NAME, "%s has no column %s", file_map_path(csv->map), target);
}

static Status open_rows(CsvSource *csv, const char *target) {
    find_rows(csv);
    size_t rows = csv->starts.count - 1;
    bool named = rows > 0 && names_columns(csv);
    if (rows <= named) return fail(STATUS_FORMAT, "%s has no rows", file_map_path(csv->map));
    csv->target = -1;
    if (target) TRY(find_target(csv, target, named));
    if (named) memmove(csv->starts.items, csv->starts.items + 1, rows * sizeof(size_t));
    if (named) csv->starts.count--;
    csv->source = (DataSource){
        .count = (int64_t)csv->starts.count - 1,
        .n_fields = target ? 2 : 1,
        .fields = {{.dtype = DTYPE_FLOAT32, .shape = {.rank = 1}}, {.dtype = DTYPE_FLOAT32}},
        .read = read_row,
        .free = free_csv};
    csv->source.fields[0].shape.dims[0] = csv->columns - (target != NULL);
    return STATUS_OK;
}

Status data_open_csv(const char *path, const char *target, char separator, DataSource **out) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    CsvSource *csv = memory_allocate_zeroed(1, sizeof *csv);
    csv->map = map;
    csv->separator = separator;
    Status status = open_rows(csv, target);
    if (status == STATUS_OK) status = file_map_check(map);
    if (status == STATUS_OK)
        *out = &csv->source;
    else
        free_csv(&csv->source);
    return status;
}
