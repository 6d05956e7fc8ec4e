// What `explain` shows: in which order the goals of each rule were gone through, by what, how many
// rows each gave and how long that took.
#ifndef LOGIC_PROFILE_H
#define LOGIC_PROFILE_H

#include "logic/plan.h"

typedef struct StepCost {
    uint64_t calls, nanoseconds;
} StepCost;

typedef struct Profile Profile;

Profile *profile_new(void);
void profile_free(Profile *profile); // NULL is allowed
uint64_t profile_clock(void);        // in nanoseconds
// What follows belongs together; its title is set when the numbers in it are known.
size_t profile_begin_section(Profile *profile);
void profile_name_section(Profile *profile, size_t section, const char *format, ...)
    PRINTF_LIKE(3, 4);
// The costs of a plan's steps and of what is behind the last one; NULL where some relation has no
// rows. `delta`: the goal that sees new rows; NULL: each sees everything.
StepCost *profile_plan(Profile *profile, const Store *store, const Plan *plan, const Goal *delta);
void profile_print(const Profile *profile, Text *out);

#endif
