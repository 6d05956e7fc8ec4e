// The table of foreign.def.
#include "catalog/foreign.h"

#include <string.h>

#include "base/status.h"

static const struct {
    ForeignPlace place;
    const char *word, *help;
} words[] = {
#define NAME(word, help) {FOREIGN_NAME, #word, help},
#define MEMBER(word, help) {FOREIGN_MEMBER, #word, help},
#define START(word, help) {FOREIGN_START, #word, help},
#define BEFORE(word, help) {FOREIGN_BEFORE, #word, help},
#define BEHIND(word, help) {FOREIGN_BEHIND, #word, help},
#include "catalog/foreign.def"
#undef NAME
#undef MEMBER
#undef START
#undef BEFORE
#undef BEHIND
};

const char *foreign_help(ForeignPlace place, const char *word, size_t length) {
    ASSERT(word != NULL || length == 0);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].place == place && strlen(words[i].word) == length &&
            memcmp(words[i].word, word, length) == 0)
            return words[i].help;
    return NULL;
}
