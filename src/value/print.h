// Values as print and messages show them.
#ifndef VALUE_PRINT_H
#define VALUE_PRINT_H

#include "value/value.h"

// What messages say of a value: `5`, `"abc"`, `float32[2, 3]`, `a list of 3 values`. Never fails,
// never long, does not wait for the device.
void value_describe(Value value, Text *out);
// The same in a buffer of the caller's.
typedef struct ValueText {
    char text[96];
} ValueText;
ValueText value_text(Value value);
// The value itself as print shows it inside a list, when that is one short line; else value_text.
ValueText value_shown(Value value);

// As print shows it; `quoted`: strings in quotes, as inside containers.
Status value_print(Value value, bool quoted, Text *out) MUST_USE;

#endif
