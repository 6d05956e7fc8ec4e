// What a timeline times of queued kernels: all that are long, some of those that are short, which
// stand for the others of their total.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "base/runtime.h"
#include "device/timeline.h"

#include <cmocka.h>

enum { STAMP_NS = 1000, RUNS = 100000 };

typedef struct Kind {
    SourcePos at;
    uint64_t ns;
} Kind;

// As a device does that tells at once how long a kernel took. Gives how many were timed.
static uint64_t queue(Timeline *timeline, Kind kind) {
    TimelineTotal what = {.kind = TIMELINE_KERNEL, .queued = true, .origin = {kind.at, 0}};
    TimelineOwner owner = timeline_queue(timeline, &what);
    if (owner.times == 0) return 0;
    timeline_weigh(timeline, owner, 12, 5);
    uint64_t begin = timeline_now();
    timeline_spend(timeline, owner.total, (TimelineSpan){begin, begin + kind.ns, owner.times});
    return 1;
}

static void begin(Timeline *timeline) {
    timeline_begin(timeline);
    timeline->stamp_ns = STAMP_NS;
}

static void test_short_ones(void **state) {
    (void)state;
    Timeline timeline;
    begin(&timeline);
    uint64_t timed = 0;
    for (int i = 0; i < RUNS; i++) timed += queue(&timeline, (Kind){7, 200});
    assert_true(timed > RUNS / 640 && timed * STAMP_NS < (uint64_t)RUNS * 200 / 50);
    assert_int_equal(timeline_end(), STATUS_OK);
    const TimelineTotal *total = &timeline.totals.items[0];
    assert_int_equal(total->count, RUNS);
    assert_int_equal(total->ns / RUNS, 200);
    assert_int_equal((total->bytes + RUNS / 2) / RUNS, 12);
    assert_int_equal((total->flops + RUNS / 2) / RUNS, 5);
    timeline_free(&timeline);
}

// Long ones among short ones are all timed, each once.
static void test_long_ones(void **state) {
    (void)state;
    Timeline timeline;
    begin(&timeline);
    uint64_t timed = 0;
    for (int i = 0; i < RUNS; i++) {
        queue(&timeline, (Kind){7, 100});
        if (i % 100 == 0) timed += queue(&timeline, (Kind){9, 2000000});
    }
    assert_int_equal(timed, RUNS / 100);
    assert_int_equal(timeline_end(), STATUS_OK);
    assert_int_equal(timeline.totals.items[1].ns, (uint64_t)RUNS / 100 * 2000000);
    timeline_free(&timeline);
}

// In a loop whose runs take turns a fixed gap would see one of them only.
static void test_no_beat(void **state) {
    (void)state;
    Timeline timeline;
    begin(&timeline);
    for (int i = 0; i < RUNS; i++) queue(&timeline, (Kind){7, i % 2 ? 100 : 300});
    assert_int_equal(timeline_end(), STATUS_OK);
    uint64_t each = timeline.totals.items[0].ns / RUNS;
    assert_true(each > 180 && each < 220);
    timeline_free(&timeline);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_ones),
        cmocka_unit_test(test_long_ones),
        cmocka_unit_test(test_no_beat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
