// Work of a library that cannot be stopped in the middle, done in a copy of the process, which can.
// What it writes into shared memory stays; everything else goes with the copy.
#ifndef DEVICE_CPU_APART_H
#define DEVICE_CPU_APART_H

#include <stddef.h>

#include "base/status.h"

// Zeroed memory that a copy of the process shares; NULL, noted as a refusal, when there is not
// enough.
void *apart_allocate(size_t bytes);
void apart_free(void *memory, size_t bytes); // NULL is allowed

// Runs work(context), whose result and error record come back as if it had run here. The copy is
// ended as soon as the user interrupts (STATUS_INTERRUPT), and with this process. `op_name` is
// for messages.
Status apart_run(Status (*work)(const void *context), const void *context,
                 const char *op_name) MUST_USE;

#endif
