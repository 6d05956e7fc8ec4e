// Operations whose gradient a program computes (rules_view.c).
#ifndef TENSOR_GRADIENT_CUSTOM_H
#define TENSOR_GRADIENT_CUSTOM_H

#include "tensor/gradient/tape.h"

// What a program computed by itself: `output` depends on the inputs (TAPE_CUSTOM_INPUTS at most)
// through a gradient that `run` computes: gradients[i] are new references or NULL. `data` belongs
// to the tape from here on, whatever happens, and goes by `release`.
enum { TAPE_CUSTOM_INPUTS = 6 };
typedef struct TapeCustom {
    Status (*run)(void *data, Tensor *const *inputs, int n_inputs, Tensor *up, Tensor **gradients);
    void (*release)(void *data);
    void *data;
} TapeCustom;
void tape_record_custom(const TapeCustom *custom, Tensor *const *inputs, int n_inputs,
                        Tensor **output);

#endif
