// A constraint as a script's value.
#ifndef LIBRARY_CONSTRAINT_HANDLE_H
#define LIBRARY_CONSTRAINT_HANDLE_H

#include "generate/constraint.h"
#include "value/value.h"

typedef struct ConstraintHandle {
    Constraint *constraint; // counted
    char *trigger;          // NULL: from the beginning
} ConstraintHandle;
extern const HandleType handle_constraint; // payload: ConstraintHandle, from malloc

// constraint_holes.c: from a dictionary of names and relations of one column, lists or functions.
Status filler_new(Interp *interp, const Dict *holes, Filler **out) MUST_USE;

#endif
