// The kinds of handle that a Value can be.
#ifndef VALUE_HANDLES_H
#define VALUE_HANDLES_H

#include "model/tokenizer.h"
#include "value/value.h"

typedef struct TokenizerHandle {
    Tokenizer *tokenizer; // counted
    TokenStream stream;   // of detokenize_single
} TokenizerHandle;

extern const HandleType handle_model;     // payload: Model
extern const HandleType handle_cache;     // payload: KvCache
extern const HandleType handle_buffer;    // payload: TensorBuffer
extern const HandleType handle_optimizer; // payload: Optimizer
extern const HandleType handle_scheduler; // payload: Scheduler, from malloc

#endif
