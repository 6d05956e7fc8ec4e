// Fuzzes the reader of .npy arrays.
#include <stddef.h>
#include <stdint.h>

#include "model/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    Tensor *tensor;
    if (npy_parse(bytes, length, "input", &tensor) == STATUS_OK) tensor_release(tensor);
    return 0;
}
