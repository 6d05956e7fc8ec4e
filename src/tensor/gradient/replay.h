// Parts of a program that are forgotten and run again for their gradients.
#ifndef TENSOR_GRADIENT_REPLAY_H
#define TENSOR_GRADIENT_REPLAY_H

#include "tensor/gradient/tape.h"

// A part of a program that is forgotten once it has given its results and runs again when their
// gradients are wanted. `data` belongs to the tape as that of TapeCustom does.
enum { TAPE_REPLAY_RESULTS = 3 };
typedef struct TapeReplay {
    Status (*run)(void *data, Tensor **results, int count); // the same results as the first time
    void (*release)(void *data);
    void *data;
} TapeReplay;
// In place of `results`, which the part has made since the mark, come tensors that are recorded as
// one operation on whatever it has read from before.
void tape_record_replay(const TapeReplay *replay, TapeMark mark, Tensor **results, int count);

#endif
