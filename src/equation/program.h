// What a program block is at run time: the functions of its equations and the values made so far.
#ifndef EQUATION_PROGRAM_H
#define EQUATION_PROGRAM_H

#include "eval/code.h"

// One equation. The parameters of its function are numbers of names.
typedef struct Part {
    int target, parameter_count;
    const int *parameters;
    Value function, inputs; // inputs: gives a tuple of the variables outside
    Value seen;             // what the target's value was made from, a tuple; or none
    Span span;
} Part;

typedef struct Made {
    const char *name;
    int component;    // names that depend on each other have the same: the least of their numbers
    bool loops;       // it depends on itself
    bool scalar;      // its left side has no index
    uint32_t growing; // dimensions of which its equations give parts, by bits
    int before;       // the name that has its value before its equation updates that, or -1
    bool busy;        // of a component's first name: it is being made
    Value value;      // ABSENT: not made yet
} Made;

typedef struct ProgramHandle {
    Interp *interp;
    const char *name;
    uint32_t block; // where its text begins
    Semiring semiring;
    int64_t argument; // of the semiring
    int64_t iterations_max;
    double tolerance;
    int name_count, part_count;
    int named; // so many names first stand in the text
    Made *names;
    Part *parts;
} ProgramHandle;

extern const HandleType handle_program; // payload: ProgramHandle

#endif
