// Fuzzes the reader of .onnx files: their messages and the numbers of weights and attributes.
#include <stddef.h>
#include <stdint.h>

#include "model/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void read_numbers(const OnnxNumbers *numbers) {
    Tensor *tensor;
    // Files outside, which a fuzzer must not look for, have another test.
    if (numbers && numbers->data_location == 0 &&
        onnx_tensor(numbers, "input", &tensor) == STATUS_OK)
        tensor_release(tensor);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
    OnnxModel *model;
    if (onnx_parse(bytes, length, "input", &model) != STATUS_OK) return 0;
    const OnnxGraph *graph = model->graph;
    for (size_t i = 0; i < graph->weights_count; i++) read_numbers(graph->weights[i]);
    for (size_t i = 0; i < graph->nodes_count; i++)
        for (size_t j = 0; j < graph->nodes[i]->attributes_count; j++)
            read_numbers(graph->nodes[i]->attributes[j]->tensor);
    onnx_free(model);
    return 0;
}
