// Annotations: their words, struct names and dimensions.
#include "check/types.h"
#include "check/checker.h"

enum { DIMENSIONS_MAX = 8 }; // of tensors: RANK_MAX of device/, which stands above this folder

static const struct {
    const char *name;
    TypeWord word;
} type_words[] = {
    {"any", TYPE_WORD_ANY},
    {"int", TYPE_WORD_INT},
    {"float", TYPE_WORD_FLOAT},
    {"bool", TYPE_WORD_BOOL},
    {"string", TYPE_WORD_STRING},
    {"str", TYPE_WORD_STRING},
    {"String", TYPE_WORD_STRING},
    {"Tensor", TYPE_WORD_TENSOR},
    {"tensor", TYPE_WORD_TENSOR},
    {"list", TYPE_WORD_LIST},
    {"List", TYPE_WORD_LIST},
    {"tuple", TYPE_WORD_TUPLE},
    {"dict", TYPE_WORD_DICT},
    {"Dict", TYPE_WORD_DICT},
    {"fn", TYPE_WORD_FUNCTION},
    {"function", TYPE_WORD_FUNCTION},
    {"range", TYPE_WORD_RANGE},
    {"void", TYPE_WORD_NONE},
    {"none", TYPE_WORD_NONE},
    {"model", TYPE_WORD_MODEL},
    {"Model", TYPE_WORD_MODEL},
    {"tokenizer", TYPE_WORD_TOKENIZER},
    {"Tokenizer", TYPE_WORD_TOKENIZER},
    {"KVCache", TYPE_WORD_CACHE},
    {"TensorBuffer", TYPE_WORD_BUFFER},
    {"entity", TYPE_WORD_ENTITY},
    {"concept", TYPE_WORD_ENTITY},
};

bool type_word_find(const char *name, TypeWord *out) {
    for (size_t i = 0; i < sizeof type_words / sizeof *type_words; i++) {
        if (strcmp(type_words[i].name, name) != 0) continue;
        *out = type_words[i].word;
        return true;
    }
    DType dtype;
    if (!dtype_find(name, strlen(name), &dtype) || dtype_is_quant(dtype)) return false;
    DTypeKind kind = dtype_kind(dtype);
    *out = kind == DTYPE_KIND_BOOL    ? TYPE_WORD_BOOL
           : kind == DTYPE_KIND_FLOAT ? TYPE_WORD_FLOAT
                                      : TYPE_WORD_INT;
    return true;
}

bool type_word_of_kind(const char *name, TypeWord *out) {
    bool cache = strcmp(name, "cache") == 0, buffer = strcmp(name, "buffer") == 0;
    if (!cache && !buffer) return type_word_find(name, out);
    *out = cache ? TYPE_WORD_CACHE : TYPE_WORD_BUFFER;
    return true;
}

bool type_word_fits(TypeWord word, ParamKind kind) {
    if (word == TYPE_WORD_ANY || kind == PARAM_ANY) return true;
    switch (kind) {
    case PARAM_TENSOR: return word == TYPE_WORD_TENSOR;
    case PARAM_LIST:
    case PARAM_TENSORS: return word == TYPE_WORD_LIST || word == TYPE_WORD_TUPLE;
    case PARAM_STRING: return word == TYPE_WORD_STRING;
    case PARAM_DICT: return word == TYPE_WORD_DICT;
    case PARAM_FUNCTION: return word == TYPE_WORD_FUNCTION;
    case PARAM_INT: return word == TYPE_WORD_INT;
    case PARAM_NUMBER: return word == TYPE_WORD_INT || word == TYPE_WORD_FLOAT;
    case PARAM_MODEL: return word == TYPE_WORD_MODEL;
    case PARAM_TOKENIZER: return word == TYPE_WORD_TOKENIZER;
    case PARAM_CACHE: return word == TYPE_WORD_CACHE;
    case PARAM_BUFFER: return word == TYPE_WORD_BUFFER;
    default: return false;
    }
}

const char *type_word_name(size_t index) {
    return index < sizeof type_words / sizeof *type_words ? type_words[index].name : NULL;
}

static bool is_type_parameter(const Checker *checker, const Word *name) {
    for (size_t i = 0; i < checker->type_parameter_count; i++)
        if (strcmp(checker->type_parameters[i].text, name->text) == 0) return true;
    return false;
}

// A word for other values where a tensor's dtype stands.
static bool report_dtype(Checker *checker, const Word *name) {
    TypeWord word;
    if (!type_word_find(name->text, &word)) return false;
    SCOPED_TEXT(help);
    text_format(&help, "the type of a tensor's numbers is a dtype: %s",
                word == TYPE_WORD_INT ? "int64" : "float32");
    ReportExtra extra = {.help = text_get(&help)};
    report(checker, STATUS_NAME, name->span, &extra, "`%s` is not a dtype", name->text);
    return true;
}

static void report_type(Checker *checker, const Word *name, bool of_tensor) {
    if (of_tensor && report_dtype(checker, name)) return;
    enum { WORDS = sizeof type_words / sizeof *type_words };
    const char *names[WORDS + DTYPE_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < WORDS && !of_tensor; i++) names[count++] = type_words[i].name;
    for (int i = 0; i < DTYPE_COUNT; i++) names[count++] = dtype_info[i].name;
    const char *near = catalog_nearest(name->text, names, count);
    if (!near) {
        report_unknown(checker, name, WANTED_TYPE);
        return;
    }
    if (!symbol_mark_reported(checker, name)) return;
    SCOPED_TEXT(help);
    text_format(&help, "did you mean `%s`?", near);
    ReportExtra extra = {.help = text_get(&help)};
    report(checker, STATUS_NAME, name->span, &extra, "unknown type `%s`", name->text);
}

static void check_named(Checker *checker, TypeNode *type, FunctionNode *symbols) {
    TypeWord word;
    DType dtype;
    Binding *binding = type->module ? struct_resolve(checker, type->module, &type->name)
                                    : name_resolve(checker, &type->name);
    bool values = binding && (binding->kind == BINDING_STRUCT || binding_is_entity_type(binding));
    if (values) {
        type->binding = binding;
        binding->used = true;
    } else if (!type->module && !type_word_find(type->name.text, &word) &&
               !is_type_parameter(checker, &type->name)) {
        if (dtype_find(type->name.text, type->name.length, &dtype))
            report(checker, STATUS_DTYPE, type->name.span, NULL,
                   "`%s` is a type of weights in model files; nothing can be converted to it",
                   type->name.text);
        else
            report_type(checker, &type->name, false);
    }
    for (size_t i = 0; i < type->argument_count; i++)
        check_type(checker, type->arguments[i], symbols);
}

static void check_dimension(Checker *checker, Dimension *dimension, FunctionNode *symbols) {
    dimension->variable = scope_find_variable(checker, &dimension->name);
    if (dimension->variable) binding_use(checker, dimension->variable);
    if (!symbols) return;
    for (size_t i = 0; i < symbols->symbols.count && !dimension->binding; i++)
        if (strcmp(symbols->symbols.items[i]->word.text, dimension->name.text) == 0)
            dimension->binding = symbols->symbols.items[i];
    if (dimension->binding) return;
    Word hidden = {.span = dimension->name.span};
    Binding *binding = scope_declare_new(checker, BINDING_DIMENSION,
                                         dimension->variable ? &hidden : &dimension->name);
    binding->word = dimension->name;
    dimension->binding = binding;
    ARENA_PUSH(checker->arena, &symbols->symbols, binding);
}

void check_type(Checker *checker, TypeNode *type, FunctionNode *symbols) {
    if (!type) return;
    DType dtype;
    switch (type->kind) {
    case TYPE_NAMED: check_named(checker, type, symbols); break;
    case TYPE_TENSOR:
        if (!dtype_find(type->name.text, type->name.length, &dtype) &&
            strcmp(type->name.text, "Tensor") != 0 && !is_type_parameter(checker, &type->name))
            report_type(checker, &type->name, true);
        if (type->dimension_count > DIMENSIONS_MAX)
            report(checker, STATUS_SHAPE, type->span, NULL,
                   "a tensor has at most %d dimensions, not %zu", DIMENSIONS_MAX,
                   type->dimension_count);
        for (size_t i = 0; i < type->dimension_count; i++)
            if (type->dimensions[i].kind == DIMENSION_NAME)
                check_dimension(checker, &type->dimensions[i], symbols);
        break;
    case TYPE_TUPLE:
        for (size_t i = 0; i < type->argument_count; i++)
            check_type(checker, type->arguments[i], symbols);
        break;
    }
}
