// The schedulers' formulas.
#include "tensor/scheduler.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static double half_cosine(double base, double eta_min, double part) {
    return eta_min + (base - eta_min) * (1 + cos(M_PI * part)) / 2;
}

static double rate_step(const Scheduler *s, double base, double done) {
    return base * pow(s->gamma, floor(done / s->step_size));
}
static double rate_exponential(const Scheduler *s, double base, double done) {
    return base * pow(s->gamma, done);
}
static double rate_cosine(const Scheduler *s, double base, double done) {
    return half_cosine(base, s->eta_min, fmod(done, s->t_max) / s->t_max);
}
static double rate_linear(const Scheduler *s, double base, double done) {
    double part = fmin(done / s->t_max, 1);
    return base * (1 + (s->end_factor - 1) * part);
}
static double rate_warmup_cosine(const Scheduler *s, double base, double done) {
    if (done < s->warmup) return base * (done + 1) / s->warmup;
    double length = fmax(s->t_max - s->warmup, 1);
    return half_cosine(base, s->eta_min, fmin((done - s->warmup) / length, 1));
}
static double rate_plateau(const Scheduler *s, double base, double done) {
    (void)done;
    return fmax(base * s->scale, fmin(s->min_lr, base));
}

static const struct {
    const char *name;
    double (*rate)(const Scheduler *scheduler, double base, double done);
} rules[SCHEDULER_COUNT] = {
#define SCHEDULER(id, signature, doc) {#id, rate_##id},
#include "catalog/schedulers.def"
#undef SCHEDULER
};

static const struct {
    const char *name;
    size_t offset;
    double lowest;
} settings[] = {
#define SETTING(name, lowest)                                                                      \
    { #name, offsetof(Scheduler, name), lowest }
    SETTING(gamma, 0),     SETTING(eta_min, 0),  SETTING(end_factor, 0), SETTING(factor, 0),
    SETTING(threshold, 0), SETTING(min_lr, 0),   SETTING(step_size, 1),  SETTING(t_max, 1),
    SETTING(warmup, 1),    SETTING(patience, 0),
#undef SETTING
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

bool scheduler_setting_set(Scheduler *scheduler, const char *name, double value) {
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (strcmp(settings[i].name, name) == 0) {
            memcpy((char *)scheduler + settings[i].offset, &value, sizeof value);
            scheduler->given |= 1u << i;
            return true;
        }
    return false;
}

Status scheduler_check(const Scheduler *scheduler) {
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        double value;
        memcpy(&value, (const char *)scheduler + settings[i].offset, sizeof value);
        bool wrong = !(value >= settings[i].lowest) || isinf(value);
        if (wrong && (scheduler->given >> i & 1u))
            return fail(STATUS_VALUE, "%s: %s is %g; it must be a number from %g on",
                        scheduler_name(scheduler), settings[i].name, value, settings[i].lowest);
    }
    if (scheduler->factor < 1) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: factor is %g; it must be less than 1", scheduler_name(scheduler),
                scheduler->factor);
}

const char *scheduler_name(const Scheduler *scheduler) {
    return rules[scheduler->id].name;
}

void scheduler_begin(Scheduler *scheduler, int64_t epochs) {
    if (scheduler->begun) return;
    scheduler->begun = true;
    double all = epochs > 0 ? (double)epochs : 1;
    if (scheduler->t_max == 0) scheduler->t_max = all;
    if (scheduler->warmup == 0) scheduler->warmup = fmax(1, floor(scheduler->t_max / 10));
    scheduler->best = INFINITY;
    scheduler->scale = 1;
    scheduler->waited = scheduler->done = 0;
}

void scheduler_note(Scheduler *scheduler, double loss) {
    ASSERT(scheduler->begun);
    scheduler->done++;
    // The threshold is relative, as a fraction of the size of the best so far.
    double margin = isinf(scheduler->best) ? 0 : fabs(scheduler->best) * scheduler->threshold;
    if (loss < scheduler->best - margin) {
        scheduler->best = loss;
        scheduler->waited = 0;
    } else if (++scheduler->waited > scheduler->patience) {
        scheduler->scale *= scheduler->factor;
        scheduler->waited = 0;
    }
}

double scheduler_rate(const Scheduler *scheduler, double base) {
    ASSERT(scheduler->begun && (unsigned)scheduler->id < SCHEDULER_COUNT);
    return rules[scheduler->id].rate(scheduler, base, scheduler->done);
}

void scheduler_place(const Scheduler *s, double place[SCHEDULER_PLACE]) {
    const double numbers[SCHEDULER_PLACE] = {s->done,   s->best,  s->scale,
                                             s->waited, s->t_max, s->warmup};
    memcpy(place, numbers, sizeof numbers);
}

void scheduler_set_place(Scheduler *s, const double place[SCHEDULER_PLACE]) {
    double *numbers[SCHEDULER_PLACE] = {&s->done,   &s->best,  &s->scale,
                                        &s->waited, &s->t_max, &s->warmup};
    for (int i = 0; i < SCHEDULER_PLACE; i++) *numbers[i] = place[i];
    s->begun = true;
}
