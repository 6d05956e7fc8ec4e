// Where the fixtures are: TL_FIXTURES, by default ../shared next to the project. A test that needs
// one begins with `const char *path = fixture("models/stories260K.gguf");` and is skipped in words
// when it is missing, except with CI=true, where that is a failure.
#ifndef SUPPORT_FIXTURES_H
#define SUPPORT_FIXTURES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

#include <cmocka.h> // after ours: its macro fail() has the name of our function

static inline const char *fixture(const char *name) {
    static char path[4096];
    const char *folder = getenv("TL_FIXTURES");
    snprintf(path, sizeof path, "%s/%s", folder && *folder ? folder : "../shared", name);
    if (access(path, R_OK) == 0) return path;
    const char *ci = getenv("CI");
    if (ci && strcmp(ci, "true") == 0) fail_msg("the fixture %s is missing", path);
    print_message("skipped: the fixture %s is missing\n", path);
    skip();
    return NULL;
}

#endif
