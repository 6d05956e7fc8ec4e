// The .onnx files of models: messages in the encoding of protocol buffers, which libprotobuf-c
// takes apart; it is loaded at its first use. Knows what such a file says, not what an operator
// computes (std/onnx.tl does).
#ifndef MODEL_ONNX_H
#define MODEL_ONNX_H

#include <protobuf-c/protobuf-c.h>

#include "tensor/tensor.h"

// A struct OnnxNAME for each message of onnx.def. A string that is not there is NULL, and any may
// be something else than UTF-8; a count NAME_count stands next to the items of NAME, none of which
// is NULL.
#define ONNX_INT32 int32_t
#define ONNX_INT64 int64_t
#define ONNX_FLOAT float
#define ONNX_DOUBLE double
#define ONNX_STRING char *
#define ONNX_BYTES ProtobufCBinaryData
#define MESSAGE(message)                                                                           \
    typedef struct Onnx##message {                                                                 \
        ProtobufCMessage base;
#define END(message)                                                                               \
    }                                                                                              \
    Onnx##message;
#define ONE(message, number, field, type) ONNX_##type field;
#define MANY(message, number, field, type)                                                         \
    size_t field##_count;                                                                          \
    ONNX_##type *field;
#define ONE_OF(message, number, field, part) Onnx##part *field;
#define MANY_OF(message, number, field, part)                                                      \
    size_t field##_count;                                                                          \
    Onnx##part **field;
#include "model/onnx.def"

// What the type of an attribute says of it; others are refused.
typedef enum OnnxAttributeType {
    ONNX_ATTRIBUTE_NUMBER = 1,
    ONNX_ATTRIBUTE_INTEGER = 2,
    ONNX_ATTRIBUTE_TEXT = 3,
    ONNX_ATTRIBUTE_TENSOR = 4,
    ONNX_ATTRIBUTE_GRAPH = 5,
    ONNX_ATTRIBUTE_NUMBERS = 6,
    ONNX_ATTRIBUTE_INTEGERS = 7,
    ONNX_ATTRIBUTE_TEXTS = 8,
} OnnxAttributeType;

// A model with a graph, from bytes that `name` stands for in messages. Copies what it keeps; the
// caller frees it. STATUS_FORMAT when the bytes are something else or end too early, STATUS_MEMORY,
// and STATUS_DEVICE without the library.
Status onnx_parse(const uint8_t *bytes, size_t length, const char *name, OnnxModel **out) MUST_USE;
void onnx_free(OnnxModel *model);
// Of a type of numbers: "float32", "complex64", "unknown".
const char *onnx_type_name(int32_t data_type);
// The numbers of a model in the file at `path` on the default device, a new tensor. Those that lie
// in a file of their own are read from the folder of `path` or one within it. STATUS_DTYPE for
// types that tl has not, STATUS_FORMAT, STATUS_IO.
Status onnx_tensor(const OnnxNumbers *numbers, const char *path, Tensor **out) MUST_USE;

#endif
