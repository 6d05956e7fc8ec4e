// The report of tl check --memory.
#ifndef MAIN_FORETELL_REPORT_H
#define MAIN_FORETELL_REPORT_H

#include <jansson.h>

#include "base/status.h"
#include "device/buffer.h"

// What memory is for, by the key of its bytes in what was found.
typedef struct ForetellPurpose {
    const char *key, *meaning;
} ForetellPurpose;
extern const ForetellPurpose foretell_purposes[PURPOSE_COUNT];

// Writes what was found to standard output; the first of several ranks has what all found.
Status foretell_report(const json_t *found, bool json) MUST_USE;

#endif
