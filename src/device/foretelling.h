// What a runtime knows while it foretells; for foretell.c, whose devices account, and
// foretell_reads.c, which guesses what only a run knows.
#ifndef DEVICE_FORETELLING_H
#define DEVICE_FORETELLING_H

#include "base/memory.h"
#include "base/runtime.h"
#include "device/foretell.h"
#include "device/pool.h"

typedef struct LooseRead {
    SourcePos at;
    uint64_t count;
    bool open; // nothing bounds what follows
} LooseRead;

struct Foretelling {
    const ForetellPlan *plan;
    Device *computer; // computes what is small; its memory is not the program's
    bool planning;    // what is read now is read by a planner
    bool ignores_reads;
    int attempts;      // how many handlers wait for an error
    bool bounded;      // a size is an upper bound
    bool rounded;      // some numbers are not known for how they are rounded
    bool rounded_read; // or such numbers, taken to be nearly known, were read
    uint64_t reads, work;
    SureForecast sure; // as long as nothing unknown was read
    VECTOR(LooseRead) loose;
    uint64_t mapped_bytes, mapped_most, repacked_most, read_bytes, read_most, held_bytes, held_most;
    uint64_t operation_bytes, tensor_bytes;
    uint64_t away_room; // when the program began to take memory
    bool asked_room;
    bool hopeless; // the program cannot run, whatever the rest of it does
    SourcePos operation_at, tensor_at;
};

static inline Foretelling *foretelling_current(void) {
    return runtime_current->devices->foretelling;
}

// What is sure up to here.
SureForecast foretelling_sure(const Foretelling *now);
// An unknown number is read at a place, and nothing bounds what follows from it.
void foretelling_note_open(Foretelling *now, SourcePos at);
// Whether the unknown number that decides something at a place is guessed to hold; a choice is one
// of two.
bool foretelling_guess(Foretelling *now, SourcePos at, bool choice);

#endif
