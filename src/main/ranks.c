// What many processes that run one program write: the first speaks, the others when they are asked
// to or when something is wrong.
#define _GNU_SOURCE // fopencookie
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "device/settings.h"
#include "main/command.h"
#include "ranks/ranks.h"

// A stream whose lines begin with the rank.
typedef struct Prefixed {
    FILE *target;
    bool inside_line;
} Prefixed;

static ssize_t write_prefixed(void *cookie, const char *bytes, size_t length) {
    Prefixed *prefixed = cookie;
    Text lines = {0}; // written at once, or lines of several ranks would mix
    for (const char *at = bytes, *end = bytes + length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline ? newline + 1 : end;
        if (!prefixed->inside_line) text_format(&lines, "[rank %d] ", ranks_own());
        text_append(&lines, at, (size_t)(stop - at));
        prefixed->inside_line = !newline;
        at = stop;
    }
    fwrite(text_get(&lines), 1, lines.length, prefixed->target);
    text_free(&lines);
    return fflush(prefixed->target) == 0 ? (ssize_t)length : 0;
}

static FILE *prefixed_stream(FILE *target) {
    Prefixed *prefixed = memory_allocate(sizeof *prefixed);
    *prefixed = (Prefixed){.target = target};
    FILE *stream = fopencookie(prefixed, "w", (cookie_io_functions_t){.write = write_prefixed});
    if (stream) setvbuf(stream, NULL, _IOLBF, BUFSIZ);
    return stream ? stream : target;
}

// `vulkan:local_rank` is the device of this rank's number among those of its machine.
static void choose_device(void) {
    const char *chosen = device_setting_choice(VARIABLE_TL_DEVICE);
    if (!chosen) chosen = getenv("TL_DEVICE");
    if (!chosen || strcmp(chosen, LOCAL_RANK_DEVICE) != 0) return;
    char name[32];
    snprintf(name, sizeof name, "vulkan:%d", ranks_local());
    device_setting_choose(VARIABLE_TL_DEVICE, name);
}

Status ranks_program_meet(void) {
    TRY(ranks_begin());
    choose_device();
    return STATUS_OK;
}

Status ranks_program_begin(bool all_speak) {
    TRY(ranks_program_meet());
    if (ranks_count() == 1) return STATUS_OK;
    FILE *stream = stdout;
    if (all_speak)
        stream = prefixed_stream(stdout);
    else if (ranks_own() != 0)
        stream = fopen("/dev/null", "we");
    FILE *errors = ranks_own() == 0 && !all_speak ? stderr : prefixed_stream(stderr);
    output_redirect(stream ? stream : stdout, errors);
    return STATUS_OK;
}
