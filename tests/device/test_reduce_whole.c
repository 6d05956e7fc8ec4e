// REDUCE of integers against plain loops: every operation and dtype in awkward layouts; once
// per instruction set.
#include "reductions.h"

static void test_reductions(void **state) {
    (void)state;
    static const DType dtypes[] = {DTYPE_BOOL,  DTYPE_UINT8, DTYPE_INT8,
                                   DTYPE_INT16, DTYPE_INT32, DTYPE_INT64};
    check_reductions(dtypes, sizeof dtypes / sizeof *dtypes);
}

static int run_suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reductions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return run_per_isa(run_suite);
}
