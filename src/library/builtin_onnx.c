// Networks of .onnx files as values of the language; std/onnx.tl computes them.
#include "base/file_map.h"
#include "base/utf8.h"
#include "eval/page.h"
#include "model/onnx.h"
#include "value/builtin.h"

typedef struct OnnxReading {
    const char *path;
    const OnnxGraph *graph;
} OnnxReading;

static Status read_text(const OnnxReading *reading, const char *bytes, size_t length, Value *out) {
    if (!utf8_valid(bytes, length, NULL))
        return fail(STATUS_FORMAT, "%s: a name or text in it is not UTF-8", reading->path);
    *out = value_string(bytes, length);
    return STATUS_OK;
}

static Status read_name(const OnnxReading *reading, const char *name, Value *out) {
    return read_text(reading, name ? name : "", name ? strlen(name) : 0, out);
}

static Status set_name(const OnnxReading *reading, Value dict, const char *key, const char *name) {
    Value text;
    TRY(read_name(reading, name, &text));
    dict_set_word(dict.as.dict, key, text);
    return STATUS_OK;
}

static Status set_names(const OnnxReading *reading, Value dict, const char *key, char **names,
                        size_t count) {
    Value list = value_list(count);
    dict_set_word(dict.as.dict, key, list);
    for (size_t i = 0; i < count; i++) {
        Value name;
        TRY(read_name(reading, names[i], &name));
        list_push(list.as.list, name);
    }
    return STATUS_OK;
}

// --- attributes: of kinds that the language has not, none

static Status read_texts(const OnnxReading *reading, const OnnxAttribute *attribute, Value list) {
    for (size_t i = 0; i < attribute->texts_count; i++) {
        const ProtobufCBinaryData *text = &attribute->texts[i];
        Value value;
        TRY(read_text(reading, (const char *)text->data, text->len, &value));
        list_push(list.as.list, value);
    }
    return STATUS_OK;
}

static Value read_integers(const OnnxAttribute *attribute) {
    Value list = value_list(attribute->integers_count);
    for (size_t i = 0; i < attribute->integers_count; i++)
        list_push(list.as.list, value_int(attribute->integers[i]));
    return list;
}

static Value read_numbers(const OnnxAttribute *attribute) {
    Value list = value_list(attribute->numbers_count);
    for (size_t i = 0; i < attribute->numbers_count; i++)
        list_push(list.as.list, value_float((double)attribute->numbers[i]));
    return list;
}

static Status read_attribute(const OnnxReading *reading, const OnnxAttribute *attribute,
                             Value *out) {
    const ProtobufCBinaryData *text = &attribute->text;
    Tensor *tensor;
    *out = value_none();
    switch (attribute->type) {
    case ONNX_ATTRIBUTE_NUMBER: *out = value_float((double)attribute->number); break;
    case ONNX_ATTRIBUTE_INTEGER: *out = value_int(attribute->integer); break;
    case ONNX_ATTRIBUTE_TEXT: return read_text(reading, (const char *)text->data, text->len, out);
    case ONNX_ATTRIBUTE_NUMBERS: *out = read_numbers(attribute); break;
    case ONNX_ATTRIBUTE_INTEGERS: *out = read_integers(attribute); break;
    case ONNX_ATTRIBUTE_TEXTS:
        *out = value_list(attribute->texts_count);
        return read_texts(reading, attribute, *out);
    case ONNX_ATTRIBUTE_TENSOR:
        if (!attribute->tensor) break;
        TRY(onnx_tensor(attribute->tensor, reading->path, &tensor));
        *out = value_tensor(tensor);
        break;
    default: break;
    }
    return STATUS_OK;
}

static Status read_attributes(const OnnxReading *reading, const OnnxNode *node, Value dict) {
    for (size_t i = 0; i < node->attributes_count; i++) {
        Value name, value;
        TRY(read_name(reading, node->attributes[i]->name, &name));
        Status status = read_attribute(reading, node->attributes[i], &value);
        dict_set(dict.as.dict, name, value);
        TRY(status);
    }
    return STATUS_OK;
}

// --- the graph

static Status read_node(const OnnxReading *reading, const OnnxNode *node, Value dict) {
    Value attributes = value_dict();
    dict_set_word(dict.as.dict, "attributes", attributes);
    TRY(set_name(reading, dict, "name", node->name));
    TRY(set_name(reading, dict, "operator", node->operator));
    TRY(set_name(reading, dict, "domain", node->domain));
    TRY(set_names(reading, dict, "inputs", node->inputs, node->inputs_count));
    TRY(set_names(reading, dict, "outputs", node->outputs, node->outputs_count));
    return read_attributes(reading, node, attributes);
}

static Status read_nodes(const OnnxReading *reading, Value list) {
    for (size_t i = 0; i < reading->graph->nodes_count; i++) {
        Value node = value_dict();
        list_push(list.as.list, node);
        TRY(read_node(reading, reading->graph->nodes[i], node));
    }
    return STATUS_OK;
}

// Sizes are ints, or names of what may be any size.
static Status read_sizes(const OnnxReading *reading, const OnnxSizes *sizes, Value list) {
    for (size_t i = 0; i < sizes->dims_count; i++) {
        const OnnxDimension *dim = sizes->dims[i];
        Value size = value_int(dim->sizes_count > 0 ? dim->sizes[0] : 0);
        if (dim->sizes_count == 0) TRY(read_name(reading, dim->name ? dim->name : "?", &size));
        list_push(list.as.list, size);
    }
    return STATUS_OK;
}

static Status read_variables(const OnnxReading *reading, OnnxVariable **variables, size_t count,
                             Value list) {
    for (size_t i = 0; i < count; i++) {
        const OnnxTensorType *type = variables[i]->type ? variables[i]->type->tensor : NULL;
        Value entry = value_dict(), shape = type && type->sizes ? value_list(0) : value_none();
        list_push(list.as.list, entry);
        dict_set_word(entry.as.dict, "shape", shape);
        TRY(set_name(reading, entry, "name", variables[i]->name));
        TRY(set_name(reading, entry, "dtype",
                     type ? onnx_type_name(type->data_type) : "not a tensor"));
        if (shape.kind == VALUE_LIST) TRY(read_sizes(reading, type->sizes, shape));
    }
    return STATUS_OK;
}

static Status read_weights(const OnnxReading *reading, Value dict) {
    const OnnxGraph *graph = reading->graph;
    if (graph->sparse_weights_count > 0)
        return fail(STATUS_VALUE, "%s has sparse weights, which are not supported", reading->path);
    for (size_t i = 0; i < graph->weights_count; i++) {
        Value name;
        Tensor *tensor;
        TRY(read_name(reading, graph->weights[i]->name, &name));
        TRY(onnx_tensor(graph->weights[i], reading->path, &tensor));
        dict_set(dict.as.dict, name, value_tensor(tensor));
    }
    return STATUS_OK;
}

static Status read_operators(const OnnxReading *reading, const OnnxModel *model, Value dict) {
    for (size_t i = 0; i < model->operators_count; i++) {
        Value domain;
        TRY(read_name(reading, model->operators[i]->domain, &domain));
        dict_set(dict.as.dict, domain, value_int(model->operators[i]->version));
    }
    return STATUS_OK;
}

static Status read_model(const OnnxReading *reading, const OnnxModel *model, Value dict) {
    static const char *const lists[] = {"nodes", "inputs", "outputs"};
    static const char *const dicts[] = {"weights", "operators"};
    const OnnxGraph *graph = reading->graph;
    Value parts[5];
    for (int i = 0; i < 5; i++) {
        parts[i] = i < 3 ? value_list(0) : value_dict();
        dict_set_word(dict.as.dict, i < 3 ? lists[i] : dicts[i - 3], parts[i]);
    }
    TRY(set_name(reading, dict, "path", reading->path));
    TRY(set_name(reading, dict, "producer", model->producer));
    TRY(read_operators(reading, model, parts[4]));
    TRY(read_nodes(reading, parts[0]));
    TRY(read_variables(reading, graph->inputs, graph->inputs_count, parts[1]));
    TRY(read_variables(reading, graph->outputs, graph->outputs_count, parts[2]));
    return read_weights(reading, parts[3]);
}

static Status read_file(const char *path, Value dict) {
    FileMap *map;
    OnnxModel *model = NULL;
    TRY(file_map_open(path, &map));
    Status status = onnx_parse(file_map_bytes(map), file_map_length(map), path, &model);
    if (status == STATUS_OK) status = file_map_check(map);
    file_map_release(map);
    if (status == STATUS_OK) status = read_model(&(OnnxReading){path, model->graph}, model, dict);
    onnx_free(model);
    return status;
}

Value builtin_load_onnx(BuiltinCall *call) {
    Value dict = value_dict(), network;
    Status status = read_file(call->arguments[0].as.string->bytes, dict);
    dict_set_word(dict.as.dict, "learnable", call->arguments[1]);
    if (status == STATUS_OK)
        status = page_open_standard(call->interp, "std/onnx.tl", dict, &network);
    value_release(dict);
    return status == STATUS_OK ? network : value_fail();
}
