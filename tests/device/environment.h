// Test helper: before each test no setting of the environment counts, and no error is noted.
#ifndef TESTS_DEVICE_ENVIRONMENT_H
#define TESTS_DEVICE_ENVIRONMENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/source.h"
#include "base/status.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

static const char *const variable_names[] = {
    "TL_BUFFER_MAX_MB", "TL_DEVICE_MEMORY_MB", "TL_POISON",       "TL_DEVICE",
    "TL_MEMORY_CHECK",  "TL_THREADS",          "TL_SEED",         "TL_COMPUTE_PER_BUFFER",
    "TL_ISA",           "TL_BUFFER_STATS",     "TL_DEBUG_MEMORY", "TL_TEST_DEVICE_MB"};

static int clean_environment(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof variable_names / sizeof *variable_names; i++)
        unsetenv(variable_names[i]);
    origin_current = (Origin){0, 0};
    error_clear();
    return 0;
}

#endif
