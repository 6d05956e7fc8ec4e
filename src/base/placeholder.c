// Texts with placeholders. Knows nothing of what stands behind a colon.
#include "base/placeholder.h"

bool placeholder_align(uint32_t character) {
    return character == '<' || character == '>' || character == '^';
}

size_t placeholder_length(const char *text, size_t length) {
    ASSERT(length > 0 && text[0] == '{');
    if (length >= 2 && text[1] == '}') return 2;
    if (length < 3 || text[1] != ':') return 0;
    for (size_t i = 2; i < length && text[i] != '\n' && text[i] != '{'; i++) {
        // The fill of an alignment may be any character, a closing brace too.
        bool fill = i == 2 && i + 1 < length && placeholder_align((unsigned char)text[i + 1]);
        if (text[i] == '}' && !fill) return i + 1;
    }
    return 0;
}

static size_t count_placeholders(const char *text, size_t length) {
    size_t count = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] != '{') continue;
        if (i + 1 < length && text[i + 1] == '{') {
            i++;
            continue;
        }
        size_t size = placeholder_length(text + i, length - i);
        if (!size) continue;
        count++;
        ASSERT(size <= length - i);
        i += size - 1;
    }
    ASSERT(count <= length / 2);
    return count;
}

bool placeholder_any(const char *text, size_t length) {
    return count_placeholders(text, length) > 0;
}

Status placeholders_check(const char *text, size_t length, size_t values) {
    enum { SHOWN_MAX = 40 };
    size_t wanted = count_placeholders(text, length);
    if (wanted == values) return STATUS_OK;
    int shown = length > SHOWN_MAX ? SHOWN_MAX : (int)length;
    while (shown > 0 && shown < (int)length && ((unsigned char)text[shown] & 0xC0u) == 0x80u)
        shown--;
    fail(STATUS_FORMAT, "the format \"%.*s%s\" has %zu placeholder%s, but %zu value%s given", shown,
         text, shown < (int)length ? "..." : "", wanted, wanted == 1 ? "" : "s", values,
         values == 1 ? " was" : "s were");
    return fail_help(values < wanted ? "give a value for every {}; `{{` prints one brace"
                                     : "add a {} for every value");
}
