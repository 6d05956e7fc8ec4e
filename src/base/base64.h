// Base64 (RFC 4648) to bytes.
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

// Appends the bytes. False at a character that is not of the alphabet, or when the last group of
// four is not complete.
bool base64_decode(const char *text, size_t length, Text *out);

#endif
