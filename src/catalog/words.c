// The table of words.def.
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
