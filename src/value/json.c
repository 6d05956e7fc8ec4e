#include "value/json.h"

// jansson refuses texts nested deeper than JSON_PARSER_MAX_DEPTH, so this recursion is bounded.
Value value_from_json(const json_t *json) {
    switch (json_typeof(json)) {
    case JSON_NULL: return value_none();
    case JSON_TRUE: return value_bool(true);
    case JSON_FALSE: return value_bool(false);
    case JSON_INTEGER: return value_int(json_integer_value(json));
    case JSON_REAL: return value_float(json_real_value(json));
    case JSON_STRING: return value_string(json_string_value(json), json_string_length(json));
    case JSON_ARRAY: {
        Value list = value_list(json_array_size(json));
        for (size_t i = 0; i < json_array_size(json); i++)
            list_push(list.as.list, value_from_json(json_array_get(json, i)));
        return list;
    }
    case JSON_OBJECT: {
        Value dict = value_dict();
        json_t *object =
            (json_t *)json; // jansson walks objects through a pointer that is not const
        for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at))
            dict_set_word(dict.as.dict, json_object_iter_key(at),
                          value_from_json(json_object_iter_value(at)));
        return dict;
    }
    }
    return value_none();
}
