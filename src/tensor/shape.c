// What the functions of shape/ and messages are told of a tensor.
#include "tensor/op.h"

#include <string.h>

#include "device/foretell.h"

Shape tensor_shape(const Tensor *tensor) {
    // All of it: a copy of known size is a few instructions.
    Shape shape;
    shape.rank = tensor->view.rank;
    memcpy(shape.dims, tensor->view.dims, sizeof shape.dims);
    return shape;
}

Shape tensor_shape_told(const Tensor *tensor) {
    foretell_shape_read(tensor->view.buffer);
    return tensor_shape(tensor);
}

TensorType tensor_type(const Tensor *tensor) {
    TensorType type;
    type.dtype = tensor->view.dtype;
    type.shape.rank = tensor->view.rank;
    memcpy(type.shape.dims, tensor->view.dims, sizeof type.shape.dims);
    return type;
}

int64_t tensor_count(const Tensor *tensor) {
    int64_t count = 1;
    for (int i = 0; i < tensor->view.rank; i++) count *= tensor->view.dims[i];
    return count;
}

bool tensor_is_contiguous(const Tensor *tensor) {
    const TensorView *view = &tensor->view;
    int64_t expected = 1;
    for (int i = view->rank - 1; i >= 0; i--) {
        if (view->dims[i] == 0) return true;
        if (view->dims[i] != 1 && view->strides[i] != expected) return false;
        expected *= view->dims[i];
    }
    return true;
}

TypeName tensor_type_name(const Tensor *tensor) {
    Shape shape = tensor_shape(tensor);
    return type_name(tensor->view.dtype, &shape);
}

void tensor_describe(const Tensor *tensor, Text *out) {
    text_append_string(out, tensor_type_name(tensor).text);
}

Status op_dim(const Tensor *x, int64_t dim, int *out) {
    TensorType type = tensor_type(x);
    return shape_dim(&type, dim, out);
}
