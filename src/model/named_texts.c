// Texts to JSON and back.
#include "model/named_texts.h"

json_t *named_texts_pack(const NamedTensors *tensors) {
    json_t *object = json_object();
    for (size_t i = 0; i < tensors->texts.count; i++) {
        const NamedText *one = &tensors->texts.items[i];
        ASSERT(json_object_set_new(object, one->key, json_string(one->text)) == 0);
    }
    return object;
}

void named_texts_unpack(NamedTensors *tensors, const json_t *object) {
    const char *key;
    json_t *text;
    json_object_foreach((json_t *)(uintptr_t)object, key, text) {
        if (json_is_string(text)) named_tensors_add_text(tensors, key, json_string_value(text));
    }
}
