// A plan run on several threads: the rows of its first goal in parts, each with a collector of its
// own, whose rows go to that of the rule in the order of the parts. Rows, their order and what they
// come from are those of one thread.
#ifndef LOGIC_PARTS_H
#define LOGIC_PARTS_H

#include "logic/run.h"

typedef enum Parting {
    PARTING_NONE, // one thread is to do it
    PARTING_VAIN, // the same; this was found out by trying
    PARTING_DONE,
} Parting;

// `run`: its context is a Collector, to which its `found` adds.
Status parts_run(Run *run, Parting *out) MUST_USE;

#endif
