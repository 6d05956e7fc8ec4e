// A text as windows of bytes, each with the bytes that follow its own.
#include <stdlib.h>

#include "base/file_map.h"
#include "base/memory.h"
#include "data/source.h"

typedef struct TextSource {
    DataSource source;
    FileMap *map;
    int64_t length;
} TextSource;

static Status read_window(const DataSource *source, int64_t row, void *const *fields) {
    const TextSource *text = (const TextSource *)source;
    const uint8_t *bytes = file_map_bytes(text->map) + row * text->length;
    int64_t *x = fields[0], *y = fields[1];
    for (int64_t i = 0; i < text->length; i++) {
        x[i] = bytes[i];
        y[i] = bytes[i + 1];
    }
    return file_map_faults();
}

static void free_text(DataSource *source) {
    TextSource *text = (TextSource *)source;
    file_map_release(text->map);
    free(text);
}

Status data_open_text(const char *path, int64_t length, DataSource **out) {
    FileMap *map;
    if (length < 1)
        return fail(STATUS_VALUE, "text_windows: length is %lld; it must be at least 1",
                    (long long)length);
    TRY(file_map_open(path, &map));
    int64_t bytes = (int64_t)file_map_length(map);
    if (bytes <= length) {
        file_map_release(map);
        return fail(STATUS_VALUE, "%s has %lld bytes, too few for one window of %lld", path,
                    (long long)bytes, (long long)length);
    }
    TextSource *text = memory_allocate_zeroed(1, sizeof *text);
    DataField window = {.dtype = DTYPE_INT64, .shape = {.rank = 1, .dims = {length}}};
    text->source = (DataSource){.count = (bytes - 1) / length,
                                .n_fields = 2,
                                .fields = {window, window},
                                .read = read_window,
                                .free = free_text};
    text->map = map;
    text->length = length;
    *out = &text->source;
    return STATUS_OK;
}
