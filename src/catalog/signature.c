// Reads signature strings: name, parameters with kind, default and "...", result.
#include "catalog/signature.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word;
    ParamKind kind;
} kind_words[] = {
    {"any", PARAM_ANY},
    {"tensor", PARAM_TENSOR},
    {"tensors", PARAM_TENSORS},
    {"number", PARAM_NUMBER},
    {"int", PARAM_INT},
    {"bool", PARAM_BOOL},
    {"string", PARAM_STRING},
    {"shape", PARAM_SHAPE},
    {"ints", PARAM_INTS},
    {"list", PARAM_LIST},
    {"dict", PARAM_DICT},
    {"function", PARAM_FUNCTION},
    {"dtype", PARAM_DTYPE},
    {"device", PARAM_DEVICE},
    {"model", PARAM_MODEL},
    {"tokenizer", PARAM_TOKENIZER},
    {"cache", PARAM_CACHE},
    {"buffer", PARAM_BUFFER},
    {"optimizer", PARAM_OPTIMIZER},
};

typedef struct Reader {
    const char *text, *at;
} Reader;

static Status wrong(const Reader *reader, const char *wanted) {
    return fail(STATUS_FORMAT, "signature \"%s\": expected %s at \"%s\"", reader->text, wanted,
                reader->at);
}

static void skip_blanks(Reader *reader) {
    while (*reader->at == ' ') reader->at++;
}

static bool take(Reader *reader, const char *token) {
    skip_blanks(reader);
    size_t length = strlen(token);
    if (strncmp(reader->at, token, length) != 0) return false;
    reader->at += length;
    return true;
}

static bool is_word_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static Status read_word(Reader *reader, const char *what, char *out, size_t size) {
    skip_blanks(reader);
    size_t length = 0;
    while (is_word_char(reader->at[length])) length++;
    if (length == 0 || length >= size) return wrong(reader, what);
    memcpy(out, reader->at, length);
    out[length] = '\0';
    reader->at += length;
    return STATUS_OK;
}

// A function's name: a word, or "list.append" (a method of that kind only), "KVCache::new".
static Status read_name(Reader *reader, char *out, size_t size) {
    size_t length = strcspn(reader->at, "(");
    for (size_t i = 0; i < length; i++)
        if (!is_word_char(reader->at[i]) && !strchr(".:", reader->at[i])) length = i;
    if (length == 0 || length >= size) return wrong(reader, "a name");
    memcpy(out, reader->at, length);
    out[length] = '\0';
    reader->at += length;
    return STATUS_OK;
}

static Status read_kind(Reader *reader, ParamKind *out) {
    const char *start = reader->at;
    char word[24];
    TRY(read_word(reader, "a parameter kind", word, sizeof word));
    for (size_t i = 0; i < sizeof kind_words / sizeof *kind_words; i++)
        if (strcmp(kind_words[i].word, word) == 0) {
            *out = kind_words[i].kind;
            return STATUS_OK;
        }
    reader->at = start;
    return wrong(reader, "a parameter kind");
}

static Status read_string(Reader *reader, char quote, Param *param) {
    const char *end = strchr(reader->at, quote);
    size_t length = end ? (size_t)(end - reader->at) : sizeof param->fallback.string;
    if (length >= sizeof param->fallback.string) return wrong(reader, "a short string and a quote");
    memcpy(param->fallback.string, reader->at, length);
    param->fallback.string[length] = '\0';
    param->default_kind = DEFAULT_STRING;
    reader->at = end + 1;
    return STATUS_OK;
}

// An int, a float, true, false or a string in single or double quotes.
static Status read_default(Reader *reader, Param *param) {
    if (take(reader, "'")) return read_string(reader, '\'', param);
    if (take(reader, "\"")) return read_string(reader, '"', param);
    if (take(reader, "true") || take(reader, "false")) {
        param->default_kind = DEFAULT_BOOL;
        param->fallback.boolean = reader->at[-2] == 'u'; // the u of true
        return STATUS_OK;
    }
    char *end_of_int, *end_of_float;
    param->fallback.integer = strtoll(reader->at, &end_of_int, 10);
    param->default_kind = DEFAULT_INT;
    double number = strtod(reader->at, &end_of_float);
    if (end_of_float == reader->at) return wrong(reader, "a default");
    if (end_of_float != end_of_int) {
        param->default_kind = DEFAULT_FLOAT;
        param->fallback.number = number;
    }
    reader->at = end_of_float;
    return STATUS_OK;
}

static bool names_something(const Param *param) {
    static const char *const names[] = {"path", "name",  "key",  "kind",    "reduction",
                                        "norm", "style", "mode", "equation"};
    for (size_t i = 0; param->kind == PARAM_STRING && i < sizeof names / sizeof *names; i++)
        if (strcmp(param->name, names[i]) == 0) return true;
    return false;
}

static Status read_param(Reader *reader, Param *param) {
    TRY(read_word(reader, "a parameter", param->name, sizeof param->name));
    if (!take(reader, ":")) return wrong(reader, "\":\"");
    skip_blanks(reader);
    TRY(read_kind(reader, &param->kind));
    param->named = names_something(param);
    if (take(reader, "...")) {
        param->rest = true;
        param->default_kind = DEFAULT_ABSENT;
    } else if (take(reader, "?")) {
        param->default_kind = DEFAULT_ABSENT;
    } else if (take(reader, "=")) {
        skip_blanks(reader);
        TRY(read_default(reader, param));
    }
    return STATUS_OK;
}

static Status read_params(Reader *reader, Signature *signature) {
    if (take(reader, ")")) return STATUS_OK;
    do {
        if (signature->count == PARAMETERS_MAX) return wrong(reader, "no more parameters");
        TRY(read_param(reader, &signature->params[signature->count++]));
    } while (take(reader, ","));
    return take(reader, ")") ? STATUS_OK : wrong(reader, "\",\" or \")\"");
}

Status signature_parse(const char *text, Signature *out) {
    Reader reader = {text, text};
    *out = (Signature){.count = 0};
    TRY(read_name(&reader, out->name, sizeof out->name));
    if (!take(&reader, "(")) return wrong(&reader, "\"(\"");
    TRY(read_params(&reader, out));
    if (!take(&reader, "->")) return wrong(&reader, "\"->\"");
    skip_blanks(&reader);
    size_t length = strlen(reader.at);
    if (length == 0 || length >= sizeof out->result) return wrong(&reader, "a short result kind");
    memcpy(out->result, reader.at, length + 1);
    return STATUS_OK;
}
