// Going through a plan: nested loops over the rows of its steps, `found` called for each solution.
#ifndef LOGIC_RUN_H
#define LOGIC_RUN_H

#include "logic/plan.h"

typedef struct Run Run;
struct Run {
    Store *store;
    const Plan *plan;
    Status (*found)(Run *run);
    void *context;
    bool done;              // set by `found`: no more solutions are wanted
    uint64_t ticks;         // rows gone through
    Height below;           // rows of this height or more do not take part
    struct StepCost *costs; // of each step and of what is behind the last; NULL: not wanted
    uint32_t current;       // the step whose time it is,
    uint64_t since;         // and since when
    Datum variables[VARIABLES_MAX];
    uint32_t path[POSITIONS_MAX]; // the row at each position
};
Status plan_run(Run *run) MUST_USE;
// The row of the rule's head.
void run_head(const Run *run, Datum *values);

#endif
