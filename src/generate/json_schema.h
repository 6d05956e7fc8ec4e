// JSON schemas as constraints.
#ifndef GENERATE_JSON_SCHEMA_H
#define GENERATE_JSON_SCHEMA_H

#include "generate/constraint.h"

Status constraint_from_schema(const char *json, size_t length, Constraint **out) MUST_USE;

// Text around values: `open`, a value, any number of times `again` and one more value, `close`.
typedef struct SchemaFrame {
    const char *open, *again, *close; // again NULL: a single value
} SchemaFrame;
Status constraint_from_framed_schema(const char *json, size_t length, const SchemaFrame *frame,
                                     Constraint **out) MUST_USE;

#endif
