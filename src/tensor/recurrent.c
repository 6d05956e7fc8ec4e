// Cells of recurrent layers: what follows the products, as programs of the map kernel.
#include "shape/rules.h"
#include "tensor/compose.h"
#include "tensor/dtype.h"

// The n numbers of a gate in the last dimension.
static TensorView gate(const Tensor *gates, int index, int64_t n) {
    TensorView view = gates->view;
    int last = view.rank - 1;
    int64_t start = index * n * view.strides[last] * (int64_t)dtype_size(view.dtype);
    if (n > 0) view.offset = (size_t)((int64_t)view.offset + start);
    view.dims[last] = n;
    return view;
}

typedef struct Program {
    const TensorView *inputs[KERNEL_INPUTS_MAX];
    int n_inputs;
    MapStep steps[MAP_STEPS_MAX];
    int n_steps;
} Program;

static Status run(const OpCall *call, const Program *program, const Tensor *out) {
    KernelCall kernel = {.kernel = KERNEL_MAP,
                         .n_inputs = program->n_inputs,
                         .n_outputs = 1,
                         .outputs = {&out->view},
                         .op_name = call->op->name};
    kernel.options.compute = dtype_compute(tensor_dtype(out));
    kernel.options.n_steps = program->n_steps;
    for (int i = 0; i < program->n_inputs; i++) kernel.inputs[i].view = program->inputs[i];
    for (int i = 0; i < program->n_steps; i++) kernel.options.steps[i] = program->steps[i];
    return op_run_kernel(&kernel);
}

// Operands as floats, and the dtype of the results.
static Status read_operands(const OpCall *call, Tensor **operands, int count, DType *dtype) {
    for (int i = 0; i < count; i++) {
        TRY(compose_floating(call->inputs[i].tensor, &operands[i]));
        DType own = tensor_dtype(operands[i]);
        *dtype = i == 0 ? own : dtype_promote(*dtype, own);
    }
    return STATUS_OK;
}

static Status check_gates(const OpCall *call, const char *name, const Tensor *gates,
                          const Tensor *state, int count) {
    TensorType type = tensor_type(gates), wanted = tensor_type(state);
    return shape_gates(call->op->name, name, &type, &wanted, count);
}

static Status lstm_cell(const OpCall *call, Tensor *const *operands, DType dtype,
                        Tensor **results) {
    SCOPED_TENSOR(h);
    SCOPED_TENSOR(c);
    TRY(check_gates(call, "gates", operands[0], operands[1], 4));
    Shape shape = tensor_shape(operands[1]);
    int64_t n = shape.dims[shape.rank - 1];
    TRY(tensor_new(operands[0]->device, dtype, &shape, &c));
    TRY(tensor_new(operands[0]->device, dtype, &shape, &h));
    TensorView i = gate(operands[0], 0, n), f = gate(operands[0], 1, n);
    TensorView g = gate(operands[0], 2, n), o = gate(operands[0], 3, n);
    Program remember = {.inputs = {&i, &f, &g, &operands[1]->view},
                        .n_inputs = 4,
                        .steps = {{MAP_SIGMOID, 0, 0, 0},
                                  {MAP_SIGMOID, 1, 0, 0},
                                  {MAP_TANH, 2, 0, 0},
                                  {MAP_MUL, 5, 3, 0},
                                  {MAP_MUL, 4, 6, 0},
                                  {MAP_ADD, 7, 8, 0}},
                        .n_steps = 6};
    Program show = {.inputs = {&o, &c->view},
                    .n_inputs = 2,
                    .steps = {{MAP_SIGMOID, 0, 0, 0}, {MAP_TANH, 1, 0, 0}, {MAP_MUL, 2, 3, 0}},
                    .n_steps = 3};
    TRY(run(call, &remember, c));
    TRY(run(call, &show, h));
    TRY(compose_give(&h, &results[0]));
    return compose_give(&c, &results[1]);
}

static Status gru_cell(const OpCall *call, Tensor *const *operands, DType dtype, Tensor **results) {
    SCOPED_TENSOR(candidate);
    SCOPED_TENSOR(next);
    TRY(check_gates(call, "x", operands[0], operands[2], 3));
    TRY(check_gates(call, "hidden", operands[1], operands[2], 3));
    Shape shape = tensor_shape(operands[2]);
    int64_t n = shape.dims[shape.rank - 1];
    TRY(tensor_new(operands[0]->device, dtype, &shape, &candidate));
    TRY(tensor_new(operands[0]->device, dtype, &shape, &next));
    TensorView x[3], hidden[3];
    for (int k = 0; k < 3; k++) {
        x[k] = gate(operands[0], k, n);
        hidden[k] = gate(operands[1], k, n);
    }
    Program propose = {.inputs = {&x[0], &hidden[0], &x[2], &hidden[2]},
                       .n_inputs = 4,
                       .steps = {{MAP_ADD, 0, 1, 0},
                                 {MAP_SIGMOID, 4, 0, 0},
                                 {MAP_MUL, 5, 3, 0},
                                 {MAP_ADD, 2, 6, 0},
                                 {MAP_TANH, 7, 0, 0}},
                       .n_steps = 5};
    Program choose = {.inputs = {&x[1], &hidden[1], &candidate->view, &operands[2]->view},
                      .n_inputs = 4,
                      .steps = {{MAP_ADD, 0, 1, 0},
                                {MAP_SIGMOID, 4, 0, 0},
                                {MAP_SUB, 3, 2, 0},
                                {MAP_MUL, 5, 6, 0},
                                {MAP_ADD, 2, 7, 0}},
                      .n_steps = 5};
    TRY(run(call, &propose, candidate));
    TRY(run(call, &choose, next));
    return compose_give(&next, results);
}

typedef Status (*Cell)(const OpCall *call, Tensor *const *operands, DType dtype, Tensor **results);

static Status run_cell(const OpCall *call, int count, Cell cell, Tensor **results) {
    Tensor *operands[3] = {NULL};
    DType dtype = DTYPE_FLOAT32;
    Status status = read_operands(call, operands, count, &dtype);
    if (status == STATUS_OK) status = cell(call, operands, dtype, results);
    for (int i = 0; i < count; i++) tensor_release(operands[i]);
    return status;
}

Status op_run_lstm_cell(const OpCall *call, Tensor **results) {
    return run_cell(call, 2, lstm_cell, results);
}

Status op_run_gru_cell(const OpCall *call, Tensor **results) {
    return run_cell(call, 3, gru_cell, results);
}
