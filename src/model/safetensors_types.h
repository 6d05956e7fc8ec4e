// Types of safetensors that no dtype is.
#ifndef MODEL_SAFETENSORS_TYPES_H
#define MODEL_SAFETENSORS_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include "catalog/dtype.h"

typedef struct SafetensorsType {
    const char *word;
    DType dtype;  // what its numbers become
    size_t bytes; // of a number in the file
    // False: the dtype does not hold it.
    bool (*widen)(const uint8_t *from, uint8_t *to);
} SafetensorsType;

const SafetensorsType *safetensors_type_find(const char *word); // NULL when unknown

#endif
