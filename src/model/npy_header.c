// Reads and writes the dictionary in front of a .npy array's numbers, and knows which of NumPy's
// types are which of ours.
#include "model/npy_header.h"

#include <stdlib.h>

#include "tensor/op.h"

enum { WORD_MAX = 64 };

static const struct {
    const char *code; // NumPy's kind and size in bytes
    DType dtype;
} types[] = {
    {"b1", DTYPE_BOOL},    {"i1", DTYPE_INT8},    {"u1", DTYPE_UINT8},
    {"i2", DTYPE_INT16},   {"i4", DTYPE_INT32},   {"i8", DTYPE_INT64},
    {"f2", DTYPE_FLOAT16}, {"f4", DTYPE_FLOAT32}, {"f8", DTYPE_FLOAT64},
};
enum { TYPE_COUNT = sizeof types / sizeof *types };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
static const char own_order = '<', other_order = '>';
#else
static const char own_order = '>', other_order = '<';
#endif

typedef struct HeaderReader {
    const char *text, *at, *name;
} HeaderReader;

static Status wrong(const HeaderReader *reader, const char *wanted) {
    return fail(STATUS_FORMAT, "%s: the header wants %s at byte %zu, not \"%.16s\"", reader->name,
                wanted, (size_t)(reader->at - reader->text), reader->at);
}

static bool take(HeaderReader *reader, const char *token) {
    reader->at += strspn(reader->at, " \t\r\n");
    size_t length = strlen(token);
    if (strncmp(reader->at, token, length) != 0) return false;
    reader->at += length;
    return true;
}

static Status read_word(HeaderReader *reader, char word[WORD_MAX]) {
    char quote[2] = {0};
    if (take(reader, "'") || take(reader, "\"")) quote[0] = reader->at[-1];
    size_t length = strcspn(reader->at, quote);
    if (!quote[0] || length >= WORD_MAX || reader->at[length] == '\0')
        return wrong(reader, "a short word in quotes");
    memcpy(word, reader->at, length);
    word[length] = '\0';
    reader->at += length + 1;
    return STATUS_OK;
}

static Status read_type(HeaderReader *reader, NpyHeader *out) {
    char word[WORD_MAX];
    if (take(reader, "["))
        return fail(STATUS_FORMAT, "%s: an array of records is not a tensor", reader->name);
    TRY(read_word(reader, word));
    const char *code = word + (strchr("<>=|", word[0]) && word[0] ? 1 : 0);
    for (size_t i = 0; i < TYPE_COUNT; i++)
        if (strcmp(types[i].code, code) == 0) {
            out->dtype = types[i].dtype;
            out->swapped = word[0] == other_order;
            return STATUS_OK;
        }
    (void)fail(STATUS_FORMAT, "%s has NumPy's dtype \"%s\", which tl does not have", reader->name,
               word);
    return fail_help("in Python: array.astype(\"float32\"), or another type that both have");
}

static Status read_order(HeaderReader *reader, NpyHeader *out) {
    out->fortran = take(reader, "True");
    return out->fortran || take(reader, "False") ? STATUS_OK : wrong(reader, "True or False");
}

static Status read_shape(HeaderReader *reader, NpyHeader *out) {
    out->shape = (Shape){0};
    if (!take(reader, "(")) return wrong(reader, "a shape");
    while (!take(reader, ")")) {
        char *end;
        if (*reader->at < '0' || *reader->at > '9') return wrong(reader, "a size");
        unsigned long long size = strtoull(reader->at, &end, 10);
        if (size > INT64_MAX) return wrong(reader, "a size below 2**63");
        if (out->shape.rank == RANK_MAX) return wrong(reader, "at most 8 sizes");
        out->shape.dims[out->shape.rank++] = (int64_t)size;
        reader->at = end;
        take(reader, "L"); // Python 2 wrote its long integers so
        if (!take(reader, ",") && *reader->at != ')') return wrong(reader, "\",\" or \")\"");
    }
    return STATUS_OK;
}

static const struct {
    const char *key;
    Status (*read)(HeaderReader *reader, NpyHeader *out);
} entries[] = {{"descr", read_type}, {"fortran_order", read_order}, {"shape", read_shape}};
enum { ENTRY_COUNT = sizeof entries / sizeof *entries };

static Status read_entry(HeaderReader *reader, bool seen[ENTRY_COUNT], NpyHeader *out) {
    char key[WORD_MAX];
    TRY(read_word(reader, key));
    if (!take(reader, ":")) return wrong(reader, "\":\"");
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        if (strcmp(entries[i].key, key) == 0 && !seen[i]) {
            seen[i] = true;
            return entries[i].read(reader, out);
        }
    return fail(STATUS_FORMAT, "%s: the header has `%s`, which is unknown or came twice",
                reader->name, key);
}

Status npy_header_parse(const char *text, const char *name, NpyHeader *out) {
    HeaderReader reader = {.text = text, .at = text, .name = name};
    bool seen[ENTRY_COUNT] = {false};
    if (!take(&reader, "{")) return wrong(&reader, "\"{\"");
    while (!take(&reader, "}")) {
        TRY(read_entry(&reader, seen, out));
        if (!take(&reader, ",") && *reader.at != '}') return wrong(&reader, "\",\" or \"}\"");
    }
    take(&reader, "");
    if (*reader.at != '\0') return wrong(&reader, "its end");
    for (size_t i = 0; i < ENTRY_COUNT; i++)
        if (!seen[i])
            return fail(STATUS_FORMAT, "%s: the header has no `%s`", name, entries[i].key);
    return STATUS_OK;
}

Status npy_header_write(const Tensor *tensor, const char *name, Text *out) {
    size_t i = 0;
    while (i < TYPE_COUNT && types[i].dtype != tensor_dtype(tensor)) i++;
    if (i == TYPE_COUNT)
        return fail(STATUS_DTYPE, "NumPy has no %s: convert %s%s%s first",
                    tensor_type_name(tensor).text, name ? "`" : "", name ? name : "it",
                    name ? "`" : "");
    char order = dtype_size(types[i].dtype) == 1 ? '|' : own_order;
    text_format(out, "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, types[i].code);
    for (int d = 0; d < tensor_rank(tensor); d++)
        text_format(out, "%s%lld%s", d ? " " : "", (long long)tensor->view.dims[d],
                    d + 1 < tensor_rank(tensor) || d == 0 ? "," : "");
    text_append_string(out, "), }");
    return STATUS_OK;
}
