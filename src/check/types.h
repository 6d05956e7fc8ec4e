// The words that an annotation may use next to struct names and dtypes, and what they stand for.
#ifndef CHECK_TYPES_H
#define CHECK_TYPES_H

#include "catalog/catalog.h"

typedef enum TypeWord {
    TYPE_WORD_ANY,
    TYPE_WORD_INT,
    TYPE_WORD_FLOAT,
    TYPE_WORD_BOOL,
    TYPE_WORD_STRING,
    TYPE_WORD_TENSOR, // numbers too
    TYPE_WORD_LIST,
    TYPE_WORD_TUPLE,
    TYPE_WORD_DICT,
    TYPE_WORD_FUNCTION,
    TYPE_WORD_RANGE,
    TYPE_WORD_NONE, // void
    TYPE_WORD_MODEL,
    TYPE_WORD_TOKENIZER,
    TYPE_WORD_CACHE,
    TYPE_WORD_BUFFER,
    TYPE_WORD_ENTITY, // the name of an entity of any type
    TYPE_WORD_STRUCT, // any struct: its name is resolved by check/
} TypeWord;

// False when the word is not such a type. Dtype words count as INT, FLOAT or BOOL scalars.
bool type_word_find(const char *name, TypeWord *out);
// The same for what values and signatures call their kinds: `cache` and `buffer` are not
// annotations.
bool type_word_of_kind(const char *name, TypeWord *out);
// Whether a value of the type can be given to such a parameter.
bool type_word_fits(TypeWord word, ParamKind kind);
// The words in turn, without dtypes; NULL behind the last.
const char *type_word_name(size_t index);

#endif
