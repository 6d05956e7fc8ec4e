// The lines of a text, without their line ends: what is kept of the file is where each begins.
#include <stdlib.h>
#include <string.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "data/source.h"

typedef struct LineSource {
    DataSource source;
    FileMap *map;
    VECTOR(size_t) starts; // of the lines, and where the last one ends
} LineSource;

static Status read_line(const DataSource *source, int64_t row, void *const *fields) {
    const LineSource *lines = (const LineSource *)source;
    const size_t *start = &lines->starts.items[row];
    ASSERT(start[0] < start[1] && start[1] <= file_map_length(lines->map));
    DataText line = {memory_allocate(start[1] - start[0]), start[1] - start[0]};
    memcpy(line.bytes, file_map_bytes(lines->map) + start[0], line.length);
    if (line.bytes[line.length - 1] == '\n') line.length--;
    if (line.length > 0 && line.bytes[line.length - 1] == '\r') line.length--;
    *(DataText *)fields[0] = line;
    size_t bad;
    if (!utf8_valid(line.bytes, line.length, &bad))
        return fail(STATUS_FORMAT, "%s:%lld: byte %zu of the line is not UTF-8",
                    file_map_path(lines->map), (long long)row + 1, bad + 1);
    return file_map_faults();
}

static void free_lines(DataSource *source) {
    LineSource *lines = (LineSource *)source;
    VECTOR_FREE(&lines->starts);
    file_map_release(lines->map);
    free(lines);
}

Status data_open_lines(const char *path, DataSource **out) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    LineSource *lines = memory_allocate_zeroed(1, sizeof *lines);
    const uint8_t *bytes = file_map_bytes(map);
    size_t length = file_map_length(map);
    lines->map = map;
    for (size_t at = 0; at < length;) {
        VECTOR_PUSH(&lines->starts, at);
        const uint8_t *end = memchr(bytes + at, '\n', length - at);
        at = end ? (size_t)(end - bytes) + 1 : length;
    }
    lines->source = (DataSource){.count = (int64_t)lines->starts.count,
                                 .n_fields = 1,
                                 .fields = {{.is_text = true}},
                                 .read = read_line,
                                 .free = free_lines};
    VECTOR_PUSH(&lines->starts, length);
    Status status = file_map_check(map);
    if (status == STATUS_OK)
        *out = &lines->source;
    else
        free_lines(&lines->source);
    return status;
}
