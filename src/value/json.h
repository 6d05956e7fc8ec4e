// Values of JSON that jansson has read.
#ifndef VALUE_JSON_H
#define VALUE_JSON_H

#include <jansson.h>

#include "value/value.h"

Value value_from_json(const json_t *json); // new; dictionaries keep the order

#endif
