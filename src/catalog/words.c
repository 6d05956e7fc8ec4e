// The tables of words.def and constants.def.
#include <math.h>
#include <string.h>

#include "catalog/catalog.h"

static const LanguageWord words[] = {
#define WORD(word, group, form) {#word, WORD_##group, form},
#include "catalog/words.def"
#undef WORD
};

const LanguageWord *catalog_words(size_t *count) {
    *count = sizeof words / sizeof *words;
    return words;
}

static const Constant constants[] = {
#define CONSTANT(name, number, doc) {#name, number, doc},
#include "catalog/constants.def"
#undef CONSTANT
};

const Constant *catalog_constants(size_t *count) {
    *count = sizeof constants / sizeof *constants;
    return constants;
}

const Constant *catalog_constant(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (strlen(constants[i].name) == length && memcmp(constants[i].name, name, length) == 0)
            return &constants[i];
    return NULL;
}
