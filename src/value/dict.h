// The inside of dictionaries that the heap needs; everything else is in value.h.
#ifndef VALUE_DICT_H
#define VALUE_DICT_H

#include "value/value.h"

// Calls visit for each value held.
void dict_visit(Dict *dict, void (*visit)(Value value));

#endif
