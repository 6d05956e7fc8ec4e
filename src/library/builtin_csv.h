// Rows of files of separated values, for what makes no lists of them.
#ifndef LIBRARY_BUILTIN_CSV_H
#define LIBRARY_BUILTIN_CSV_H

#include "value/value.h"

typedef struct Field {
    const char *bytes; // until the next field is read
    size_t length;
    bool quoted, last; // last: of its row
} Field;

// An int or float when the whole field reads as one in decimal or is inf, -inf or nan, as numbers
// are printed, else the text.
Value field_value(const Field *field);

// Gives `take` every field, row by row; one that does not give STATUS_OK ends the reading.
// header: the first row is left out.
typedef Status (*FieldTake)(void *context, const Field *field);
typedef struct FieldReading {
    const char *path;
    Value separator;
    bool header;
} FieldReading;
Status csv_each_field(const FieldReading *reading, FieldTake take, void *context) MUST_USE;

#endif
