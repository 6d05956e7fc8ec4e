// The kinds of handle that a Value can be.
#ifndef VALUE_HANDLES_H
#define VALUE_HANDLES_H

#include "value/value.h"

extern const HandleType handle_model;      // payload: Model
extern const HandleType handle_model_path; // m.blk, m.blk[3]: the beginning of tensor names
extern const HandleType handle_tokenizer;  // payload: Tokenizer
extern const HandleType handle_cache;      // payload: KvCache
extern const HandleType handle_buffer;     // payload: TensorBuffer
extern const HandleType handle_optimizer;  // payload: Optimizer
extern const HandleType handle_scheduler;  // payload: Scheduler, from malloc

#endif
