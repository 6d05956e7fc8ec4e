// Help pages, and the nearest word to a misspelt one.
#include <ctype.h>
#include <string.h>

#include "catalog/catalog.h"
#include "catalog/settings.h"
#include "catalog/variables.h"

enum { WORD_MAX = 48, NAMES_MAX = 2048 };

static int least(int a, int b) {
    return a < b ? a : b;
}

// How many letters must be inserted, removed, replaced or exchanged with their neighbour to make
// one word of the other. Letter case costs nothing.
static int edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    int rows[3][WORD_MAX + 1];
    int *before = rows[0], *previous = rows[1], *current = rows[2];
    for (size_t j = 0; j <= b_length; j++) previous[j] = (int)j;
    for (size_t i = 1; i <= a_length; i++) {
        current[0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            int best = previous[j - 1] + (x != y);
            best = least(best, least(previous[j], current[j - 1]) + 1);
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                tolower((unsigned char)a[i - 2]) == y)
                best = least(best, before[j - 2] + 1);
            current[j] = best;
        }
        int *recycled = before;
        before = previous;
        previous = current;
        current = recycled;
    }
    return previous[b_length];
}

const char *catalog_nearest(const char *name, const char *const *candidates, size_t count) {
    size_t length = strlen(name);
    if (length == 0 || length > WORD_MAX) return NULL;
    // One letter in three may be wrong; a word of one or two letters only in its case.
    int best = (int)length / 3 + 1;
    if (length <= 2) best = 1;
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t other = strlen(candidates[i]);
        if (other == 0 || other > WORD_MAX) continue;
        int distance = edit_distance(name, length, candidates[i], other);
        if (distance >= best) continue;
        best = distance;
        nearest = candidates[i];
    }
    return nearest;
}

enum { FIELDS_LISTED = 12 };

void catalog_fields_help(const char *name, const char *const *fields, size_t count, Text *out) {
    const char *near = catalog_nearest(name, fields, count);
    size_t listed = count <= FIELDS_LISTED ? count : FIELDS_LISTED;
    if (near) text_format(out, "did you mean `%s`? ", near);
    text_append_string(out, count == 0   ? "it has no fields"
                            : count == 1 ? "its field is "
                                         : "its fields are ");
    for (size_t i = 0; i < listed; i++) {
        const char *before = i == 0 ? "" : i + 1 == count ? " and " : ", ";
        text_format(out, "%s%s", before, fields[i]);
    }
    if (listed < count) text_format(out, " and %zu more", count - listed);
}

static Status fail_unknown(const char *name) {
    const char *names[NAMES_MAX];
    size_t count = catalog_names(names, NAMES_MAX), word_count;
    const LanguageWord *words = catalog_words(&word_count);
    for (size_t i = 0; i < word_count && count < NAMES_MAX; i++) names[count++] = words[i].word;
    for (int i = 0; i < VARIABLE_COUNT && count < NAMES_MAX; i++)
        names[count++] = variables[i].name;
    const char *nearest = catalog_nearest(name, names, count);
    fail(STATUS_NAME, "there is no builtin called \"%s\"", name);
    return nearest ? fail_help("did you mean %s?", nearest) : STATUS_NAME;
}

// "sum(x: tensor) -> tensor", the sentences, then the examples indented.
static void append_row(const Builtin *row, Text *out) {
    text_append_string(out, row->signature_text);
    const char *text = row->doc;
    for (bool first = true; text; first = false) {
        const char *end = strchr(text, '\n');
        size_t length = end ? (size_t)(end - text) : strlen(text);
        text_append_string(out, first ? "\n    " : "\n        ");
        text_append(out, text, length);
        text = end ? end + 1 : NULL;
    }
    text_append_char(out, '\n');
}

static void append_page(const Builtin *row, Text *out) {
    for (const Builtin *overload = row; overload; overload = overload->next_overload)
        append_row(overload, out);
    SCOPED_TEXT(others);
    catalog_aliases(row, &others);
    if (others.length) text_format(out, "also: %s\n", text_get(&others));
    text_format(out, "section: %s\n", row->section);
}

static void append_word(const char *name, Text *out) {
    size_t count;
    const LanguageWord *words = catalog_words(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i].word, name) == 0)
            text_format(out, "in the language: %s\n", words[i].form);
}

static void append_dtype(const char *name, Text *out) {
    DType dtype;
    if (!dtype_find(name, strlen(name), &dtype)) return;
    const DTypeInfo *info = &dtype_info[dtype];
    text_format(out, "dtype: %s, ", info->name);
    if (dtype_is_quant(dtype))
        text_format(out, "%d weights in a block of %d bytes; for reading and products only\n",
                    info->block_elements, info->block_bytes);
    else
        text_format(out, "%d byte%s an element\n", info->block_bytes,
                    info->block_bytes == 1 ? "" : "s");
}

// Whether `full` is `name` with something before or behind it: Name::x, Name.x.
static bool is_part(const char *full, const char *name) {
    size_t mark = strcspn(full, ":.");
    if (!full[mark]) return false;
    const char *tail = full + mark + strspn(full + mark, ":.");
    return strcmp(tail, name) == 0 || (strlen(name) == mark && memcmp(full, name, mark) == 0);
}

static void append_constant(const char *name, Text *out) {
    const Constant *constant = catalog_constant(name, strlen(name));
    if (constant) text_format(out, "%s = %.16g\n    %s\n", name, constant->number, constant->doc);
}

// zeros for f32::zeros and Tensor::zeros, whose page is that of what stands behind.
static const Builtin *find_page(const char *name) {
    const char *space = strstr(name, "::");
    size_t length = space ? (size_t)(space - name) : 0;
    DType dtype;
    const Builtin *row = catalog_find(name, strlen(name));
    if (row || !space) return row;
    bool known = dtype_find(name, length, &dtype) || strncmp(name, "Tensor::", 8) == 0;
    return known ? catalog_find(space + 2, strlen(space + 2)) : NULL;
}

Status catalog_help(const char *name, Text *out) {
    const Builtin *row = find_page(name);
    size_t before = out->length;
    if (row) append_page(row, out);
    for (size_t i = 0; !row && i < catalog_count(); i++) {
        if (!is_part(catalog_get(i)->signature.name, name)) continue;
        if (out->length > before) text_append_char(out, '\n');
        append_page(catalog_get(i), out);
    }
    append_word(name, out);
    append_dtype(name, out);
    setting_help(name, out);
    append_constant(name, out);
    (void)variable_append_page(name, out);
    return out->length > before ? STATUS_OK : fail_unknown(name);
}
