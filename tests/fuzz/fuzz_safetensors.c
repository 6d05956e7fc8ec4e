// Fuzzes the safetensors reader.
#include <stddef.h>
#include <stdint.h>

#include "model/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static Status visit_tensor(void *context, const SafetensorsEntry *entry) {
    Tensor *tensor;
    TRY(safetensors_tensor(context, entry, &tensor));
    tensor_release(tensor);
    return STATUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    NamedTensors texts = {0};
    SafetensorsVisit visit = {visit_tensor, (void *)(uintptr_t)bytes, &texts};
    Status status = safetensors_each(bytes, length, "input", &visit);
    named_tensors_free(&texts);
    (void)status;
    return 0;
}
