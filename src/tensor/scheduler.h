// Schedulers: the learning rate of each epoch as a function of the optimizer's own rate and the
// number of epochs done. Knows no optimizer.
#ifndef TENSOR_SCHEDULER_H
#define TENSOR_SCHEDULER_H

#include "base/status.h"

typedef enum SchedulerId {
#define SCHEDULER(id, signature, doc) SCHEDULER_##id,
#include "catalog/schedulers.def"
#undef SCHEDULER
    SCHEDULER_COUNT
} SchedulerId;

// The arguments of catalog/schedulers.def by name; a scheduler reads those that it takes.
typedef struct Scheduler {
    SchedulerId id;
    unsigned given; // a bit per setting that was set
    double gamma, eta_min, end_factor, factor, threshold, min_lr;
    double step_size, t_max, warmup, patience; // integers; t_max and warmup 0: not given
    // its place: epochs (or steps) done, and of plateau the best loss, its factor, epochs waited
    double done, best, scale, waited;
    bool begun;
} Scheduler;

// Puts a setting by the name of its argument. False: there is no such setting.
bool scheduler_setting_set(Scheduler *scheduler, const char *name, double value);
// STATUS_VALUE for settings out of their range.
Status scheduler_check(const Scheduler *scheduler) MUST_USE;
const char *scheduler_name(const Scheduler *scheduler);
// Before its first use: `epochs` is what t_max and warmup mean where they were not given. One that
// has begun goes on.
void scheduler_begin(Scheduler *scheduler, int64_t epochs);
// After an epoch whose loss (or validation) this was: plateau waits for it to fall.
void scheduler_note(Scheduler *scheduler, double loss);
// The rate of the next epoch (or step), `base` being the optimizer's own.
double scheduler_rate(const Scheduler *scheduler, double base);
// The numbers that say where it stands, for checkpoints.
enum { SCHEDULER_PLACE = 6 };
void scheduler_place(const Scheduler *scheduler, double place[SCHEDULER_PLACE]);
void scheduler_set_place(Scheduler *scheduler, const double place[SCHEDULER_PLACE]);

#endif
