// What the process holds of the host's memory, in one statement next to what the system says.
#ifndef DEVICE_HOST_H
#define DEVICE_HOST_H

#include "base/text.h"
#include "device/device.h"

// Bytes that are resident. All but the first add up to it.
typedef struct HostStatement {
    uint64_t resident; // what the system says; 0 where it says nothing
    uint64_t values;   // strings, lists, dictionaries, syntax trees
    uint64_t tables;   // of models, logic, the tape, libraries: what is in use of malloc's memory
    uint64_t kept;     // free, but kept by malloc
    uint64_t buffers;  // of devices that work in the host's memory, software drivers included
    uint64_t mapped;   // of files that are read in place
    uint64_t code;     // the program and its libraries, with their data
    uint64_t stacks;
    uint64_t other; // what none of these explains: work areas of LAPACK and of drivers
} HostStatement;

// `values` is what the collector has for values; device NULL: none was opened.
void host_state(const Device *device, uint64_t values, HostStatement *out);
void host_report(const HostStatement *statement, Text *out);

#endif
