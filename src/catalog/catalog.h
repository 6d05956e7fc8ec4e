// The catalog: every name a script can call, one row each. Signatures are parsed once and drive
// argument binding, the check before running, help, completion and the printed reference. Knows no
// implementation: tensor/ and library/ keep tables parallel to the row ids.
#ifndef CATALOG_CATALOG_H
#define CATALOG_CATALOG_H

#include "base/text.h"
#include "catalog/dtype.h"

enum { PARAMETERS_MAX = 16 };

// What a parameter accepts. The words are those of the signature strings.
typedef enum ParamKind {
    PARAM_ANY,       // any
    PARAM_TENSOR,    // tensor: a tensor or a number
    PARAM_TENSORS,   // tensors: a list or tuple of tensors
    PARAM_NUMBER,    // number: int, float or one-element tensor
    PARAM_INT,       // int: an integer (integral floats too)
    PARAM_BOOL,      // bool
    PARAM_STRING,    // string
    PARAM_SHAPE,     // shape: list or 1-D tensor of integers
    PARAM_INTS,      // ints: one integer, or a list / tensor of them
    PARAM_LIST,      // list: list or tuple
    PARAM_DICT,      // dict
    PARAM_FUNCTION,  // function
    PARAM_DTYPE,     // dtype: a dtype word or a string naming one
    PARAM_DEVICE,    // device: a string
    PARAM_MODEL,     // model
    PARAM_TOKENIZER, // tokenizer
    PARAM_CACHE,     // cache: a KV cache
    PARAM_BUFFER,    // buffer: a tensor buffer
    PARAM_OPTIMIZER, // optimizer: adam(...)
} ParamKind;

typedef enum DefaultKind {
    DEFAULT_REQUIRED,
    DEFAULT_ABSENT,
    DEFAULT_INT,
    DEFAULT_FLOAT,
    DEFAULT_BOOL,
    DEFAULT_STRING
} DefaultKind;

// "dim: int = -1" has a default; "mask: tensor?" may be absent; "values: any..." takes all the
// rest.
typedef struct Param {
    char name[24];
    ParamKind kind;
    bool rest;
    bool named; // a string that names something: files, tensors, modes; \0 would end it early
    DefaultKind default_kind;
    union {
        int64_t integer;
        double number;
        bool boolean;
        char string[16];
    } fallback;
} Param;

typedef struct Signature {
    char name[40];
    int count;
    Param params[PARAMETERS_MAX];
    char result[24]; // "tensor", "int", "none", ... as written after ->
} Signature;

typedef enum RowKind { ROW_OP, ROW_FUNCTION } RowKind;

// A row. Several rows of one name are overloads: the first whose parameters accept the kinds of the
// arguments is taken; they are chained through next_overload.
typedef struct Builtin {
    RowKind kind;
    int id;              // OpId for ROW_OP, FunctionId for ROW_FUNCTION
    const char *section; // heading in the reference: "Creation"
    const char *signature_text;
    const char *doc; // one or more sentences; then examples for `tl help`, a line each, after \n
    Signature signature;
    struct Builtin *next_overload;
} Builtin;

// The first overload of a name or of one of its aliases, also behind `cndl_`; NULL when there is
// none.
const Builtin *catalog_find(const char *name, size_t length);
size_t catalog_count(void);
const Builtin *catalog_get(size_t index); // all rows in the order of the .def files
// Every name, alias and constant, in no order: fills up to `capacity`, returns how many there are.
size_t catalog_names(const char **out, size_t capacity);
// Words of the language (words.def). Those of the first three groups are names outside their forms.
typedef enum WordGroup {
    WORD_DECLARATION,
    WORD_STATEMENT,
    WORD_MODIFIER,
    WORD_RESERVED,
    WORD_TYPE
} WordGroup;
typedef struct LanguageWord {
    const char *word;
    WordGroup group;
    const char *form;
} LanguageWord;
const LanguageWord *catalog_words(size_t *count);
// Numbers with a name (constants.def).
typedef struct Constant {
    const char *name;
    double number;
    const char *doc;
} Constant;
const Constant *catalog_constants(size_t *count);
const Constant *catalog_constant(const char *name, size_t length); // NULL: there is none
// The index of the parameter of a name or of an older spelling of it; -1 when there is none.
int catalog_parameter(const Signature *signature, const char *name);
// The index of the parameter that takes sizes or dimensions as one list; -1 when there is none.
int catalog_sizes_parameter(const Signature *signature);
// What a row is called on a value of a kind: push for the row list.push on a list, len for len;
// NULL: it is the method of another kind.
const char *catalog_method_name(const char *row, const char *kind);
// Whether a call with so many arguments, all by place, gives none for the optional shape of what is
// made: zeros(), normal(0, 1).
bool catalog_lacks_shape(const Builtin *row, size_t count);
// Other spellings (compat.def): of rows, or of their parameters. Rows of their own that only older
// scripts call are in the section CATALOG_OLDER.
typedef struct OlderSpelling {
    const char *old, *name;
} OlderSpelling;
const OlderSpelling *catalog_older(bool parameters, size_t *count);
#define CATALOG_OLDER "Older spellings"
// Aliases of a row, comma-separated, "" for none.
void catalog_aliases(const Builtin *row, Text *out);
// The page that `tl help NAME` prints: of a builtin, of all that are named NAME::x, NAME.x or
// x::NAME, of a word of the language, a dtype, an environment variable. STATUS_NAME with a
// suggestion when there is none.
Status catalog_help(const char *name, Text *out) MUST_USE;
// The nearest known word to `name` among candidates, or NULL when none is near (edit distance).
const char *catalog_nearest(const char *name, const char *const *candidates, size_t count);
// The help for a field that a struct lacks: the nearest one, and what fields there are.
void catalog_fields_help(const char *name, const char *const *fields, size_t count, Text *out);

#endif
