// The registry of source texts. One list, ordered by position, so that a place is found by halving.
// One registry a runtime, used by one thread at a time.
#include "base/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "base/sandbox.h"
#include "base/text.h"
#include "base/utf8.h"

enum { SOURCE_BYTES_MAX = 64 * 1024 * 1024 }; // of one file: a device such as /dev/zero has no end

typedef struct Entry {
    SourceFile file;
    VECTOR(uint32_t) line_starts; // made when the first place in the text is asked for
} Entry;

struct Sources {
    VECTOR(Entry *) entries;
};

static void clear(Sources *sources) {
    for (size_t i = 0; i < sources->entries.count; i++) {
        ASSERT(sources->entries.items[i]->file.base > 0);
        free(sources->entries.items[i]->file.name);
        free(sources->entries.items[i]->file.text);
        VECTOR_FREE(&sources->entries.items[i]->line_starts);
        free(sources->entries.items[i]);
    }
    VECTOR_FREE(&sources->entries);
}

Sources *sources_new(void) {
    return memory_allocate_zeroed(1, sizeof(Sources));
}

void sources_free(Sources *sources) {
    clear(sources);
    free(sources);
}

static SourcePos next_base(const Sources *sources) {
    if (sources->entries.count == 0) return 1;
    const SourceFile *last = &sources->entries.items[sources->entries.count - 1]->file;
    return last->base + last->length + 1;
}

Status source_add(const char *name, const char *text, size_t length, const SourceFile **out) {
    Sources *sources = runtime_current->sources;
    SourcePos base = next_base(sources);
    ASSERT(base > 0); // 0 stands for an unknown place
    if (length >= UINT32_MAX - base - 1)
        return fail(STATUS_VALUE, "cannot load %s: %zu bytes of source are too many, %u are left",
                    name, length, UINT32_MAX - base - 1);
    Entry *entry = memory_allocate_zeroed(1, sizeof *entry);
    entry->file.name = memory_copy_string(name, strlen(name));
    entry->file.text = memory_copy_string(length ? text : "", length);
    entry->file.length = (uint32_t)length;
    entry->file.base = base;
    ASSERT(entry->file.base + entry->file.length < UINT32_MAX);
    VECTOR_PUSH(&sources->entries, entry);
    *out = &entry->file;
    return STATUS_OK;
}

static Status read_all(int descriptor, const char *name, Text *text) {
    char chunk[65536];
    for (;;) {
        ssize_t got = read(descriptor, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EISDIR)
            return fail(STATUS_IO, "cannot read %s: it is a directory, not a file", name);
        if (got < 0) return fail(STATUS_IO, "cannot read %s: %s", name, file_problem(errno));
        if (got == 0) return STATUS_OK;
        text_append(text, chunk, (size_t)got);
        if (text->length > SOURCE_BYTES_MAX)
            return fail(STATUS_IO, "cannot read %s: it is larger than %d MB", name,
                        SOURCE_BYTES_MAX / (1024 * 1024));
    }
}

Status source_load(const char *path, const SourceFile **out) {
    bool standard_input = strcmp(path, "-") == 0;
    const char *name = standard_input ? "<stdin>" : path;
    int descriptor = standard_input         ? STDIN_FILENO
                     : sandbox_allows(path) ? open(path, O_RDONLY | O_CLOEXEC)
                                            : -1;
    if (descriptor < 0) return fail(STATUS_IO, "cannot open %s: %s", path, file_problem(errno));
    SCOPED_TEXT(text);
    Status status = read_all(descriptor, name, &text);
    if (status == STATUS_OK) status = source_add(name, text_get(&text), text.length, out);
    if (!standard_input) close(descriptor);
    return status;
}

static Entry *find_entry(SourcePos position) {
    const Sources *sources = runtime_current->sources;
    size_t low = 0, high = sources->entries.count; // the entry wanted is in [low, high)
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (sources->entries.items[middle]->file.base <= position)
            low = middle;
        else
            high = middle;
    }
    if (low == high || position == 0) return NULL;
    ASSERT(low < sources->entries.count);
    const SourceFile *file = &sources->entries.items[low]->file;
    return position - file->base <= file->length ? sources->entries.items[low] : NULL;
}

static void index_lines(Entry *entry) {
    ASSERT(entry->line_starts.count == 0);
    VECTOR_PUSH(&entry->line_starts, 0);
    const char *text = entry->file.text, *end = text + entry->file.length;
    for (const char *at = text; (at = memchr(at, '\n', (size_t)(end - at))) != NULL;) {
        at++;
        VECTOR_PUSH(&entry->line_starts, (uint32_t)(at - text));
    }
}

SourcePlace source_find(SourcePos position) {
    Entry *entry = find_entry(position);
    if (!entry) return (SourcePlace){.line_text = ""};
    if (entry->line_starts.count == 0) index_lines(entry);
    const SourceFile *file = &entry->file;
    uint32_t offset = position - file->base;
    size_t low = 0, high = entry->line_starts.count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (entry->line_starts.items[middle] <= offset)
            low = middle;
        else
            high = middle;
    }
    uint32_t start = entry->line_starts.items[low];
    ASSERT(start <= offset && offset <= file->length);
    bool last = low + 1 == entry->line_starts.count;
    uint32_t end = last ? file->length : entry->line_starts.items[low + 1] - 1;
    if (end > start && file->text[end - 1] == '\r') end--;
    ASSERT(start <= end);
    return (SourcePlace){.file = file,
                         .line = (int)low + 1,
                         .column = 1 + (int)utf8_count(file->text + start, offset - start),
                         .line_text = file->text + start,
                         .line_length = (int)(end - start)};
}

const char *source_text(Span span, size_t *length) {
    Entry *entry = find_entry(span.begin);
    *length = 0;
    if (!entry || span.end < span.begin) return "";
    uint32_t begin = span.begin - entry->file.base, end = span.end - entry->file.base;
    if (end > entry->file.length) end = entry->file.length;
    ASSERT(begin <= entry->file.length);
    *length = end - begin;
    return entry->file.text + begin;
}

bool source_same_text(Span a, Span b) {
    size_t a_length, b_length;
    const char *x = source_text(a, &a_length), *y = source_text(b, &b_length);
    return a_length == b_length && memcmp(x, y, a_length) == 0;
}

void source_append_comment(SourcePos at, Text *out) {
    SourcePlace place = source_find(at);
    if (!place.file) return;
    const char *begin = place.line_text;
    while (begin > place.file->text) {
        const char *line = begin - 1;
        while (line > place.file->text && line[-1] != '\n') line--;
        const char *first = line + strspn(line, " \t");
        if (first + 1 >= begin || first[0] != '/' || first[1] != '/') break;
        begin = line;
    }
    while (begin < place.line_text) {
        const char *words = begin + strspn(begin, " \t") + 2;
        const char *end = memchr(words, '\n', (size_t)(place.line_text - words));
        ASSERT(end != NULL); // a line of the text above, which ends
        words += *words == ' ';
        text_append(out, words, (size_t)(end - words) + 1);
        ASSERT(end < place.line_text);
        begin = end + 1;
    }
}

void source_reset(void) {
    clear(runtime_current->sources);
}

// --- expressions ---------------------------------------------------------------------------------

enum { EXPRESSION_BYTES_MAX = 48 };

// How far the expression that starts at `text` goes on its line: to a closing bracket that it did
// not open, a comma outside brackets, a comment or the end.
static size_t expression_length(const char *text, size_t length) {
    int depth = 0;
    char quote = '\0';
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (quote) {
            if (c == '\\')
                i++;
            else if (c == quote)
                quote = '\0';
        } else if (c == '"' || c == '\'') {
            quote = c;
        } else if (strchr("([{", c) && c) {
            depth++;
        } else if (strchr(")]}", c) && c) {
            if (depth-- == 0) return i;
        } else if ((depth == 0 && (c == ',' || c == ';')) ||
                   (c == '/' && i + 1 < length && text[i + 1] == '/')) {
            return i;
        }
    }
    return length;
}

void source_append_expression(Text *out, SourcePos position) {
    SourcePlace place = source_find(position);
    if (!place.file) return;
    const char *text = place.file->text + (position - place.file->base);
    size_t before = (size_t)(text - place.line_text);
    if (before >= (size_t)place.line_length) return;
    size_t length = expression_length(text, (size_t)place.line_length - before);
    while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t')) length--;
    bool cut = length > EXPRESSION_BYTES_MAX;
    if (cut) {
        length = EXPRESSION_BYTES_MAX;
        while (((unsigned char)text[length] & 0xC0) == 0x80) length--; // not inside a code point
    }
    ASSERT(before + length <= (size_t)place.line_length);
    text_append(out, text, length);
    if (cut) text_append_string(out, "...");
}
