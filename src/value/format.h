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

#endif
