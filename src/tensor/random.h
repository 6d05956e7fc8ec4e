// The stream of random numbers: a key (the seed) and a counter that every draw moves on, so that a
// program's numbers depend on its seed and the order of its draws and on nothing else.
#ifndef TENSOR_RANDOM_H
#define TENSOR_RANDOM_H

#include "tensor/op.h"

typedef struct RandomStream {
    uint64_t key, counter;
} RandomStream;

// Starts the stream over.
void random_seed(uint64_t seed);
// The key in use; drawn from the system at first use when nobody gave one.
uint64_t random_current_seed(void);

// A place in the program's stream, to come back to.
RandomStream random_mark(void);
// Whether only a run has what is drawn from there (device/foretell.h).
bool random_is_unknown(RandomStream stream);
void random_return(RandomStream mark);
// Whether dropout is active, and its probability where none is given; returns what was.
typedef struct RandomTraining {
    bool active;
    double dropout;
} RandomTraining;
RandomTraining random_set_training(RandomTraining training);
bool random_is_training(void);
// The part of the stream for `count` numbers: the program's own, or that of a `seed:` argument.
RandomStream random_take(const OpCall *call, int64_t count);
// Whether a call is one of a single number, `rand()`: without a shape, a dtype and a device. It is
// made where the program runs, of the bits of a kernel's.
bool random_is_single(const OpCall *call);
// That number, an int64 or a float64; *unknown: only a run has it.
Status random_single(const OpCall *call, Scalar *out, bool *unknown) MUST_USE;
// One number in [0, 1) from the stream, on the host: the same bits as a uniform kernel of one.
Status random_uniform(const OpCall *call, double *out) MUST_USE;

#endif
