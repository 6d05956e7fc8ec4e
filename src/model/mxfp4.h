// Experts in MXFP4 as folders of gpt-oss have them, blocks and scales apart.
#ifndef MODEL_MXFP4_H
#define MODEL_MXFP4_H

#include "model/reader.h"

// Adds rows for what blocks and their scales are together; the tensors that they were stay, unused.
Status folder_join_mxfp4(const char *folder, Reader *reader) MUST_USE;
// The numbers of such a row, as GGUF has them.
Status mxfp4_tensor(const StoredTensor *tensor, Tensor **out) MUST_USE;

#endif
