// Values as text with format specs ({:.3} {:>8} {:e} {:05} {:,}), and how messages describe values.
#ifndef VALUE_FORMAT_H
#define VALUE_FORMAT_H

#include "value/value.h"

// One value by a spec: the text between `:` and `}` ("" or NULL: as print shows it).
//   [[fill]align][sign][#][0][width][,][.precision][type]
//   align < > ^    # the base's prefix 0x 0o 0b    type d x X o b e E f g % s ? (quoted)
// STATUS_FORMAT says which part is wrong or does not fit the value.
Status format_value(Value value, const char *spec, Text *out) MUST_USE;
// Replaces each placeholder by the next value; `{{` and `}}` stand for one brace, any other brace
// for itself. STATUS_FORMAT when there are too few or too many values.
Status format_values(const String *text, const Value *values, size_t count, Text *out) MUST_USE;

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

#endif
