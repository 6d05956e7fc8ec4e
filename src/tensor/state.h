// What the operations of one runtime share: settings that last until they are set back, the stream
// of random numbers, and who watches. Made and freed in tensor.c.
#ifndef TENSOR_STATE_H
#define TENSOR_STATE_H

#include "base/runtime.h"
#include "tensor/random.h"

typedef struct Tensors {
    Tensor *spare; // released structs, linked by `device`: making a tensor costs no malloc
    DType precision;
    RandomStream stream;
    bool stream_is_seeded;
    RandomTraining training;
    void (*op_watch)(const OpCall *call, Tensor *const *outputs);
    void (*broadcast_warning)(const char *op_name, const Shape *x, const Shape *y);
    void (*gradient_watch)(const char *op_name, Tensor *const *gradients, int count);
    const struct TapeArrival *arrival;
} Tensors;
Tensors *tensors_new(void);
void tensors_free(Tensors *tensors);

static inline Tensors *tensors_state(void) {
    return runtime_current->tensors;
}

#endif
