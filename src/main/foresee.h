// Whether a program fits on its device, in words, and what is found of that next to its run.
#ifndef MAIN_FORESEE_H
#define MAIN_FORESEE_H

#include "main/command.h"

typedef struct Fit {
    const char *device;    // its name
    uint64_t peak, tensor; // bytes that the program holds at most, all and the largest of them
    uint64_t limit, own;   // what the device may give, and what it has
    uint64_t room;         // of what leaves it
    bool more;             // it would hold more, which nobody has counted
    bool running;          // the program runs already
} Fit;

// LARGE: a tensor does not fit on the device; MUCH: all together do not fit with what can leave it.
typedef enum FitKind { FIT_WELL, FIT_LARGE, FIT_MUCH } FitKind;
FitKind fit_of(const Fit *fit);
// Of one that is not well: "the program holds 65.00 MB at program.tl:5, cpu gives it 16.00 MB ...".
void fit_explain(const Fit *fit, const char *place, Text *out);
const char *fit_help(const Fit *fit);

// The run of this process will be foretold from when its device is opened, which is when begin is
// called (Foresight.opened), until it has ended. `line` is borrowed until then.
void foresee_prepare(const CommandLine *line);
void foresee_begin(void *context);
void foresee_end(void);

#endif
