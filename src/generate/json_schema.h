// JSON schemas as constraints.
#ifndef GENERATE_JSON_SCHEMA_H
#define GENERATE_JSON_SCHEMA_H

#include "generate/constraint.h"

Status constraint_from_schema(const char *json, size_t length, Constraint **out) MUST_USE;

#endif
