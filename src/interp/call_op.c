// Rows of ops.def called with values: tensors and numbers become inputs in order, every other
// parameter the attribute of its name. One function serves every row.
#include "interp/call_op.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "interp/convert.h"
#include "interp/format.h"

Status op_input_from_value(Value value, const char *what, OpInput *out, Tensor **temporary) {
    *temporary = NULL;
    switch ((ValueKind)value.kind) {
    case VALUE_TENSOR: *out = op_tensor(value.as.tensor); return STATUS_OK;
    case VALUE_INT: *out = op_int(value.as.integer); return STATUS_OK;
    case VALUE_FLOAT: *out = op_float(value.as.number); return STATUS_OK;
    case VALUE_BOOL:
        *out = op_scalar((Scalar){.dtype = DTYPE_BOOL, .as.i = value.as.boolean});
        return STATUS_OK;
    case VALUE_ABSENT: *out = op_absent(); return STATUS_OK;
    default:
        TRY(value_to_tensor(value, what, temporary));
        *out = op_tensor(*temporary);
        return STATUS_OK;
    }
}

static Value take_results(const OpRow *op, Tensor **outputs) {
    if (op->outputs == 1) return value_tensor(outputs[0]);
    Value tuple = value_tuple((size_t)op->outputs);
    for (int i = 0; i < op->outputs; i++) list_push(tuple.as.list, value_tensor(outputs[i]));
    return tuple;
}

// Runs the call; a map of plain numbers gives a plain number.
static Value run(const OpCall *call) {
    bool plain = call->op->run == NULL;
    for (int i = 0; plain && i < call->n_inputs; i++) plain = call->inputs[i].tensor == NULL;
    if (plain) {
        Scalar scalar;
        if (op_apply_scalars(call, &scalar) != STATUS_OK) return value_fail();
        return value_from_scalar(scalar);
    }
    Tensor *outputs[OP_OUTPUTS_MAX];
    if (op_apply(call, outputs) != STATUS_OK) return value_fail();
    return take_results(call->op, outputs);
}

bool op_invoke_plain(const Builtin *row, const BuiltinArguments *arguments, Value *result) {
    const Signature *signature = &row->signature;
    size_t count = arguments->count;
    if (row->kind != ROW_OP || count != (size_t)signature->count || count > 3) return false;
    if (arguments->named_count) return false;
    OpCall call;
    call.op = &op_rows[row->id];
    call.attributes = NULL;
    call.many = NULL;
    call.n_many = 0;
    call.n_inputs = (int)count;
    for (size_t i = 0; i < count; i++) {
        const Param *param = &signature->params[i];
        Value value = arguments->positional[i];
        bool number = value.kind == VALUE_INT || value.kind == VALUE_FLOAT;
        // Where forms of one name differ, only a tensor says for certain that this one is meant.
        if (value.kind != VALUE_TENSOR && (!number || row->next_overload)) return false;
        if (param->kind != PARAM_TENSOR || param->rest) return false;
        if (value.kind == VALUE_TENSOR)
            call.inputs[i] = op_tensor(value.as.tensor);
        else if (value.kind == VALUE_INT)
            call.inputs[i] = op_int(value.as.integer);
        else
            call.inputs[i] = op_float(value.as.number);
        call.inputs[i].donate = arguments->donated >> i & 1u;
    }
    *result = run(&call);
    return true;
}

// --- the general way

// What a call holds beside the values it was given; all of it goes when the call is done.
typedef struct Preparation {
    OpCall call;
    OpAttributes attributes;
    OpInput *many;
    Tensor *temporaries[PARAMETERS_MAX];
    Tensor **many_temporaries; // n_many, NULL where a value was a tensor already
    int64_t *ints[PARAMETERS_MAX];
    int n_temporaries, n_ints;
    const char *what; // "softmax: dim", the parameter being prepared
} Preparation;

// "softmax: dim": made once per parameter and kept for the life of the process.
static const char *parameter_name(const Builtin *row, int index) {
    static char *known[OP_COUNT][PARAMETERS_MAX];
    char **slot = &known[row->id][index];
    if (!*slot) {
        char text[80];
        int length = snprintf(text, sizeof text, "%s: %s", row->signature.name,
                              row->signature.params[index].name);
        *slot = memory_copy_string(text, (size_t)length);
    }
    return *slot;
}

// Attribute ids by row and parameter, looked up once; 0 is not looked up yet, else id + 1.
static AttributeId attribute_of(const Builtin *row, int index) {
    static uint8_t known[OP_COUNT][PARAMETERS_MAX];
    uint8_t *slot = &known[row->id][index];
    if (!*slot) {
        AttributeId id = attribute_find(row->signature.params[index].name);
        ASSERT(id != ATTRIBUTE_COUNT); // a row of ops.def whose parameter no attribute carries
        *slot = (uint8_t)(id + 1);
    }
    return (AttributeId)(*slot - 1);
}

static Status set_ints(Preparation *p, Value value, IntList *field) {
    int64_t *items;
    size_t count;
    TRY(value_to_ints(value, p->what, &items, &count));
    p->ints[p->n_ints++] = items;
    *field = (IntList){items, count};
    return STATUS_OK;
}

static Status set_string(Preparation *p, Value value, const char **field) {
    const String *string;
    TRY(value_to_string(value, p->what, &string));
    *field = string->bytes;
    return STATUS_OK;
}

static Status set_attribute(Preparation *p, AttributeId id, Value value) {
    const AttributeInfo *info = &attribute_table[id];
    void *field = (char *)&p->attributes + info->offset;
    if (UNLIKELY(value_needs_gradient(value))) {
        fail(STATUS_GRADIENT, "%s is a plain number, through which no gradient flows", p->what);
        return fail_help("detach(x) says that none is wanted");
    }
    p->attributes.given |= 1ull << id;
    switch (info->kind) {
    case ATTRIBUTE_KIND_INT: return value_to_int(value, p->what, field);
    case ATTRIBUTE_KIND_NUMBER: return value_to_double(value, p->what, field);
    case ATTRIBUTE_KIND_BOOL: return value_to_bool(value, p->what, field);
    case ATTRIBUTE_KIND_SCALAR: return value_to_scalar(value, p->what, field);
    case ATTRIBUTE_KIND_STRING: return set_string(p, value, field);
    case ATTRIBUTE_KIND_SHAPE: return value_to_shape(value, p->what, field);
    case ATTRIBUTE_KIND_INTS: return set_ints(p, value, field);
    case ATTRIBUTE_KIND_DTYPE: return value_to_dtype(value, p->what, field);
    case ATTRIBUTE_KIND_DEVICE: return value_to_device(value, p->what, field);
    }
    return STATUS_OK;
}

static Status add_input(Preparation *p, Value value, bool donated) {
    OpCall *call = &p->call;
    ASSERT(call->n_inputs < OP_INPUTS_MAX);
    OpInput *input = &call->inputs[call->n_inputs++];
    Tensor *temporary;
    TRY(op_input_from_value(value, p->what, input, &temporary));
    if (temporary)
        p->temporaries[p->n_temporaries++] = temporary;
    else
        input->donate = donated && input->tensor;
    return STATUS_OK;
}

static Status add_many(Preparation *p, const Value *values, size_t count) {
    if (count > INT16_MAX)
        return fail(STATUS_VALUE, "%s has %zu values; at most %d are possible", p->what, count,
                    INT16_MAX);
    ASSERT(!p->many);
    p->many = memory_allocate_zeroed(count, sizeof *p->many);
    p->many_temporaries = memory_allocate_zeroed(count, sizeof *p->many_temporaries);
    p->call.many = p->many;
    p->call.n_many = (int)count;
    for (size_t i = 0; i < count; i++)
        TRY(op_input_from_value(values[i], p->what, &p->many[i], &p->many_temporaries[i]));
    return STATUS_OK;
}

// A tensor where a list of tensors is wanted stands for its parts along dimension 0.
static Status add_tensors(Preparation *p, Value value) {
    if (value.kind == VALUE_LIST || value.kind == VALUE_TUPLE)
        return add_many(p, value.as.list->items, value.as.list->count);
    if (value.kind == VALUE_ABSENT) return STATUS_OK;
    Value items = value_to_items(value, p->what);
    if (items.kind == VALUE_FAIL) return error_current()->code;
    Status status = add_many(p, items.as.list->items, items.as.list->count);
    for (int i = 0; status == STATUS_OK && i < p->call.n_many; i++) {
        if (p->many[i].tensor && !p->many_temporaries[i])
            p->many_temporaries[i] = tensor_retain(p->many[i].tensor);
    }
    value_release(items);
    return status;
}

// The values of `dims: int...` as one attribute.
static Status set_rest_attribute(Preparation *p, AttributeId id, const Value *rest, size_t count) {
    Value list = value_list(count);
    for (size_t i = 0; i < count; i++) list_push(list.as.list, value_retain(rest[i]));
    Status status = set_attribute(p, id, list);
    value_release(list);
    return status;
}

static Status prepare(Preparation *p, const BuiltinCall *call, uint32_t donated) {
    const Signature *signature = &call->row->signature;
    for (int i = 0; i < signature->count; i++) {
        const Param *param = &signature->params[i];
        Value value = call->arguments[i];
        p->what = parameter_name(call->row, i);
        if (param->kind == PARAM_TENSOR && param->rest)
            TRY(add_many(p, call->rest, call->rest_count));
        else if (param->kind == PARAM_TENSOR)
            TRY(add_input(p, value, donated >> i & 1u));
        else if (param->kind == PARAM_TENSORS)
            TRY(add_tensors(p, value));
        else if (param->rest)
            TRY(set_rest_attribute(p, attribute_of(call->row, i), call->rest, call->rest_count));
        else if (value.kind != VALUE_ABSENT)
            TRY(set_attribute(p, attribute_of(call->row, i), value));
    }
    return STATUS_OK;
}

static void release_preparation(Preparation *p) {
    for (int i = 0; i < p->n_temporaries; i++) tensor_release(p->temporaries[i]);
    for (int i = 0; i < p->n_ints; i++) free(p->ints[i]);
    for (int i = 0; p->many_temporaries && i < p->call.n_many; i++)
        tensor_release(p->many_temporaries[i]);
    free(p->many_temporaries);
    free(p->many);
}

// The plain int that a row declared `-> int` gives when its result has one element.
static Value read_result(Value result) {
    if (result.kind != VALUE_TENSOR) return result;
    Value number = result;
    Status status = value_read_number(&number);
    if (number.kind == VALUE_TENSOR && status == STATUS_OK) return result;
    value_release(result);
    return status == STATUS_OK ? number : value_fail();
}

Value op_invoke(const BuiltinCall *call, uint32_t donated) {
    Preparation p = {.call = {.op = &op_rows[call->row->id]}};
    p.call.attributes = &p.attributes;
    Status status = prepare(&p, call, donated);
    Value result = status == STATUS_OK ? run(&p.call) : value_fail();
    release_preparation(&p);
    return strcmp(call->row->signature.result, "int") == 0 ? read_result(result) : result;
}
