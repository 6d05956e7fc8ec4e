// The forward pass of models whose metadata says that their architecture is "llama": RMS norms,
// grouped-query attention with rotary positions over a KV cache, SwiGLU. Knows no text.
// Source: Touvron et al. 2023; the names of GGUF's metadata and tensors for that architecture.
#ifndef MODEL_LLAMA_H
#define MODEL_LLAMA_H

#include "model/model.h"

typedef struct Llama Llama;

// Looks every tensor up, so that nothing is missing later. Retains the model. STATUS_VALUE for
// another architecture or a variant that this pass does not compute; STATUS_KEY, STATUS_NAME for
// what the file lacks.
Status llama_new(Model *model, Llama **out) MUST_USE;
void llama_free(Llama *llama);
// The number of ids that fit in all; 0 when the model does not say.
int64_t llama_context(const Llama *llama);
int64_t llama_position(const Llama *llama); // ids taken so far
// Takes `count` >= 1 more ids; the logits after the last one, [vocabulary].
Status llama_forward(Llama *llama, const int64_t *ids, size_t count, Tensor **out) MUST_USE;

#endif
