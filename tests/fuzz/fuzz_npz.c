// Fuzzes the reader of .npz archives.
#include <stddef.h>
#include <stdint.h>

#include "model/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    NamedTensors tensors;
    if (npz_parse(bytes, length, "input", &tensors) == STATUS_OK) named_tensors_free(&tensors);
    return 0;
}
