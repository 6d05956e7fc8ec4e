// The texts of a file of tensors as a JSON object, for the formats that keep them so.
#ifndef MODEL_NAMED_TEXTS_H
#define MODEL_NAMED_TEXTS_H

#include <jansson.h>

#include "model/named_tensors.h"

// A new reference. Texts are UTF-8, as all strings of the language are.
json_t *named_texts_pack(const NamedTensors *tensors);
// What is not a text is passed by.
void named_texts_unpack(NamedTensors *tensors, const json_t *object);

#endif
