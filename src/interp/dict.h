// The inside of dictionaries that the heap needs; everything else is in value.h.
#ifndef INTERP_DICT_H
#define INTERP_DICT_H

#include "interp/value.h"

// Calls visit for each value held.
void dict_visit(Dict *dict, void (*visit)(Value value));

#endif
