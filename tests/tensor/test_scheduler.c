// Schedulers: rates against the formulas, and settings out of range.
#include "tensor/scheduler.h"

#include <math.h>

#include "tensors.h"

static Scheduler scheduler_of(SchedulerId id, const char *name, double value) {
    Scheduler scheduler = {
        .id = id, .gamma = 0.5, .step_size = 3, .factor = 0.5, .patience = 1, .threshold = 0.01};
    if (name) assert_true(scheduler_setting_set(&scheduler, name, value));
    OK(scheduler_check(&scheduler));
    scheduler_begin(&scheduler, 20);
    return scheduler;
}

static double rate_after(const Scheduler *scheduler, int done) {
    Scheduler there = *scheduler;
    there.done = done;
    return scheduler_rate(&there, 0.8);
}

static void expect_rates(Scheduler scheduler, const double *want) {
    for (int done = 0; done < 6; done++) {
        double rate = rate_after(&scheduler, done);
        if (fabs(rate - want[done]) > 1e-12)
            fail_msg("%s after %d epochs: %.12g, not %.12g", scheduler_name(&scheduler), done, rate,
                     want[done]);
    }
}

static void test_rates(void **state) {
    (void)state;
    expect_rates(scheduler_of(SCHEDULER_step, NULL, 0), (double[]){0.8, 0.8, 0.8, 0.4, 0.4, 0.4});
    expect_rates(scheduler_of(SCHEDULER_exponential, NULL, 0),
                 (double[]){0.8, 0.4, 0.2, 0.1, 0.05, 0.025});
    expect_rates(scheduler_of(SCHEDULER_cosine, "t_max", 4),
                 (double[]){0.8, 0.4 * (1 + sqrt(0.5)), 0.4, 0.4 * (1 - sqrt(0.5)), 0.8,
                            0.4 * (1 + sqrt(0.5))});
    Scheduler floor = scheduler_of(SCHEDULER_cosine, "t_max", 4);
    floor.eta_min = 0.2;
    assert_true(fabs(rate_after(&floor, 2) - 0.5) < 1e-12);
    expect_rates(scheduler_of(SCHEDULER_linear, "t_max", 4), (double[]){0.8, 0.6, 0.4, 0.2, 0, 0});
    Scheduler warm = scheduler_of(SCHEDULER_warmup_cosine, "warmup", 4);
    assert_true(fabs(rate_after(&warm, 0) - 0.2) < 1e-12);
    assert_true(fabs(rate_after(&warm, 3) - 0.8) < 1e-12);
    assert_true(fabs(rate_after(&warm, 12) - 0.4) < 1e-12);
    assert_true(fabs(rate_after(&warm, 20)) < 1e-12);
}

static void test_all_epochs(void **state) {
    (void)state;
    Scheduler cosine = scheduler_of(SCHEDULER_cosine, NULL, 0);
    assert_true(fabs(rate_after(&cosine, 10) - 0.4) < 1e-12);
    Scheduler warm = scheduler_of(SCHEDULER_warmup_cosine, NULL, 0);
    assert_true(fabs(rate_after(&warm, 0) - 0.4) < 1e-12);
    assert_true(fabs(rate_after(&warm, 1) - 0.8) < 1e-12);
}

// Patience 1: the second epoch in a row without a fall of more than a hundredth halves the rate.
static void test_plateau(void **state) {
    (void)state;
    Scheduler plateau = scheduler_of(SCHEDULER_plateau, "min_lr", 0.3);
    const double losses[] = {1, 0.995, 0.98, 0.98, 0.979, 0.5, 0.6, 0.6, 0.6, 0.6};
    const double want[] = {0.8, 0.8, 0.8, 0.8, 0.4, 0.4, 0.4, 0.3, 0.3, 0.3};
    for (int i = 0; i < 10; i++) {
        scheduler_note(&plateau, losses[i]);
        double rate = scheduler_rate(&plateau, 0.8);
        if (fabs(rate - want[i]) > 1e-12) fail_msg("after loss %d the rate is %g", i, rate);
    }
    // One that has begun goes on, here or where its place is put.
    scheduler_begin(&plateau, 5);
    assert_true(scheduler_rate(&plateau, 0.8) == 0.3);
    double place[SCHEDULER_PLACE];
    scheduler_place(&plateau, place);
    Scheduler other = scheduler_of(SCHEDULER_plateau, "min_lr", 0.3);
    scheduler_set_place(&other, place);
    assert_true(scheduler_rate(&other, 0.8) == 0.3);
    assert_true(scheduler_rate(&other, 0.2) == 0.2); // a rate below the lowest is not raised to it
}

// Below zero a fall is measured by the size of the best loss, too.
static void test_plateau_below_zero(void **state) {
    (void)state;
    Scheduler plateau = scheduler_of(SCHEDULER_plateau, NULL, 0);
    const double losses[] = {-1, -1.02, -1.025, -1.03, -1.05};
    const double want[] = {0.8, 0.8, 0.8, 0.4, 0.4};
    for (int i = 0; i < 5; i++) {
        scheduler_note(&plateau, losses[i]);
        double rate = scheduler_rate(&plateau, 0.8);
        if (fabs(rate - want[i]) > 1e-12) fail_msg("after loss %d the rate is %g", i, rate);
    }
}

static void test_errors(void **state) {
    (void)state;
    Scheduler scheduler = {.id = SCHEDULER_step};
    assert_true(scheduler_setting_set(&scheduler, "step_size", 0));
    FAILS(STATUS_VALUE, "step: step_size is 0; it must be a number from 1 on",
          scheduler_check(&scheduler));
    scheduler = (Scheduler){.id = SCHEDULER_exponential};
    assert_true(scheduler_setting_set(&scheduler, "gamma", NAN));
    FAILS(STATUS_VALUE, "exponential: gamma is nan; it must be a number from 0 on",
          scheduler_check(&scheduler));
    assert_false(scheduler_setting_set(&scheduler, "speed", 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),   cmocka_unit_test(test_all_epochs),
        cmocka_unit_test(test_plateau), cmocka_unit_test(test_plateau_below_zero),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
