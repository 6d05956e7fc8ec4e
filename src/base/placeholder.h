// Texts with placeholders, {} or {:spec}: where they are, and whether there is a value for each.
#ifndef BASE_PLACEHOLDER_H
#define BASE_PLACEHOLDER_H

#include <stddef.h>

#include "base/status.h"

bool placeholder_align(uint32_t character); // one of < > ^
// The length of the placeholder at text[0] == '{', 0 when it is none.
size_t placeholder_length(const char *text, size_t length);
bool placeholder_any(const char *text, size_t length);
// STATUS_FORMAT unless the text has as many placeholders as there are values.
Status placeholders_check(const char *text, size_t length, size_t values) MUST_USE;

#endif
