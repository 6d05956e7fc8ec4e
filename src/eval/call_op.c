// Rows of ops.def called with values: tensors and numbers become inputs in order, every other
// parameter the attribute of its name. One function serves every row.
#include "eval/call_op.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tensor/scalar.h"
#include "value/convert.h"
#include "value/format.h"
#include "value/items.h"

// A value of a kind that a tensor parameter takes, as an operation's input. *temporary: the tensor
// made for it, to be released after the call, or NULL.
static Status op_input_from_value(Value value, const char *what, OpInput *out, Tensor **temporary) {
    *temporary = NULL;
    switch ((ValueKind)value.kind) {
    case VALUE_TENSOR: *out = op_tensor(value.as.tensor); return STATUS_OK;
    case VALUE_INT: *out = op_int(value.as.integer); return STATUS_OK;
    case VALUE_FLOAT: *out = op_float(value.as.number); return STATUS_OK;
    case VALUE_BOOL:
        *out = op_scalar((Scalar){.dtype = DTYPE_BOOL, .as.i = value.as.boolean});
        return STATUS_OK;
    case VALUE_ABSENT: *out = op_absent(); return STATUS_OK;
    case VALUE_MEASURED: out->tensor = NULL; return value_to_scalar(value, what, &out->scalar);
    default:
        TRY(value_to_tensor(value, what, temporary));
        *out = op_tensor(*temporary);
        return STATUS_OK;
    }
}

static Value take_results(const OpRow *op, Tensor **outputs) {
    ASSERT(op->outputs > 0 && op->outputs <= OP_OUTPUTS_MAX && outputs[0] != NULL);
    if (op->outputs == 1) return value_tensor(outputs[0]);
    Value tuple = value_tuple((size_t)op->outputs);
    for (int i = 0; i < op->outputs; i++) list_push(tuple.as.list, value_tensor(outputs[i]));
    return tuple;
}

static bool is_plain(const OpCall *call) {
    bool plain = call->op->run == NULL;
    for (int i = 0; plain && i < call->n_inputs; i++) plain = call->inputs[i].tensor == NULL;
    return plain;
}

// Runs the call; a map of plain numbers gives a plain number.
static Value run(const OpCall *call) {
    if (is_plain(call)) {
        Scalar scalar;
        if (op_apply_scalars(call, &scalar) != STATUS_OK) return value_fail();
        return value_from_scalar(scalar);
    }
    Tensor *outputs[OP_OUTPUTS_MAX];
    if (op_apply(call, outputs) != STATUS_OK) return value_fail();
    return take_results(call->op, outputs);
}

// What a call holds next to the values it was given; all of it goes when the call is done.
typedef struct Preparation {
    OpCall call;
    OpAttributes attributes;
    OpInput *many;
    Tensor *temporaries[PARAMETERS_MAX];
    Tensor **many_temporaries; // n_many, NULL where a value was a tensor already
    int64_t *ints[PARAMETERS_MAX];
    int n_temporaries, n_ints;
    const char *what; // "softmax: dim", the parameter being prepared
    bool wide;        // lists keep float64
    bool unknown;     // a number is given that only a run has
} Preparation;

// Arrays are left as they are: their counts say how much of them is there.
static void preparation_begin(Preparation *p, const Builtin *row) {
    memset(&p->attributes, 0, sizeof p->attributes);
    p->call.op = &op_rows[row->id];
    p->call.attributes = &p->attributes;
    p->call.many = NULL;
    p->call.n_many = p->call.n_inputs = 0;
    p->many = NULL;
    p->many_temporaries = NULL;
    p->n_temporaries = p->n_ints = 0;
    p->unknown = false;
}

static void release_preparation(Preparation *p) {
    ASSERT(p->n_ints <= PARAMETERS_MAX && p->n_temporaries <= PARAMETERS_MAX);
    for (int i = 0; i < p->n_temporaries; i++) tensor_release(p->temporaries[i]);
    for (int i = 0; i < p->n_ints; i++) free(p->ints[i]);
    for (int i = 0; p->many_temporaries && i < p->call.n_many; i++)
        tensor_release(p->many_temporaries[i]);
    free(p->many_temporaries);
    free(p->many);
}

// "softmax: dim": made once per parameter and kept for the life of the process, as the catalog is.
static const char *parameter_name(const Builtin *row, int index) {
    ASSERT(index >= 0 && index < row->signature.count);
    static char *_Atomic known[OP_COUNT][PARAMETERS_MAX];
    char *name = atomic_load_explicit(&known[row->id][index], memory_order_acquire);
    if (LIKELY(name != NULL)) return name;
    char text[80], *none = NULL;
    int length = snprintf(text, sizeof text, "%s: %s", row->signature.name,
                          row->signature.params[index].name);
    ASSERT(length < (int)sizeof text);
    name = memory_copy_string(text, (size_t)length);
    if (atomic_compare_exchange_strong(&known[row->id][index], &none, name)) return name;
    free(name); // another thread was faster
    return none;
}

// Attribute ids by row and parameter, looked up once in a process; 0 is not looked up yet, else id
// + 1.
static AttributeId attribute_of(const Builtin *row, int index) {
    ASSERT(index >= 0 && index < row->signature.count);
    static atomic_uchar known[OP_COUNT][PARAMETERS_MAX];
    unsigned char found = atomic_load_explicit(&known[row->id][index], memory_order_relaxed);
    if (UNLIKELY(found == 0)) {
        AttributeId id = attribute_find(row->signature.params[index].name);
        ASSERT(id != ATTRIBUTE_COUNT); // a row of ops.def whose parameter no attribute carries
        found = (unsigned char)(id + 1);
        atomic_store_explicit(&known[row->id][index], found, memory_order_relaxed);
    }
    return (AttributeId)(found - 1);
}

static Status set_ints(Preparation *p, Value value, IntList *field) {
    ASSERT(p->n_ints < PARAMETERS_MAX);
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
    ASSERT(id < ATTRIBUTE_COUNT);
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
    case ATTRIBUTE_KIND_SCALAR: return value_to_scalar(value_look(value), p->what, field);
    case ATTRIBUTE_KIND_STRING: return set_string(p, value, field);
    case ATTRIBUTE_KIND_SHAPE: return value_to_shape(value, p->what, field);
    case ATTRIBUTE_KIND_INTS: return set_ints(p, value, field);
    case ATTRIBUTE_KIND_DTYPE: return value_to_dtype(value, p->what, field);
    case ATTRIBUTE_KIND_DEVICE: return value_to_device(value, p->what, field);
    }
    return STATUS_OK;
}

// --- the direct way

// The values by parameter, ABSENT where nothing or `none` is given; false when they do not fall so
// simply.
static bool place_directly(const Signature *signature, const BuiltinArguments *arguments,
                           Value *values) {
    if (arguments->count > (size_t)signature->count) return false;
    for (int i = 0; i < signature->count; i++)
        values[i] = (size_t)i < arguments->count ? arguments->positional[i] : value_absent();
    for (size_t i = 0; i < arguments->named_count; i++) {
        int index = catalog_parameter(signature, arguments->names[i]);
        if (index < 0 || values[index].kind != VALUE_ABSENT) return false;
        values[index] = arguments->named[i];
    }
    for (int i = 0; i < signature->count; i++)
        if (values[i].kind == VALUE_NONE && signature->params[i].default_kind == DEFAULT_ABSENT)
            values[i] = value_absent();
    return true;
}

// The kinds of value that a kind of parameter takes for certain, in whatever form of the row.
static bool suits_directly(const Param *param, Value value) {
    switch (param->kind) {
    case PARAM_INT: return value.kind == VALUE_INT;
    case PARAM_NUMBER: return value.kind == VALUE_FLOAT || value.kind == VALUE_INT;
    case PARAM_BOOL: return value.kind == VALUE_BOOL;
    case PARAM_STRING: return value.kind == VALUE_STRING;
    case PARAM_SHAPE:
        return value.kind == VALUE_TENSOR && tensor_rank(value.as.tensor) == 1 &&
               dtype_kind(tensor_dtype(value.as.tensor)) == DTYPE_KIND_INT;
    default: return false;
    }
}

// Strings stay where the signature has them.
static Status set_default(Preparation *p, const Builtin *row, int index) {
    const Param *param = &row->signature.params[index];
    AttributeId id = attribute_of(row, index);
    void *field = (char *)&p->attributes + attribute_table[id].offset;
    if (param->default_kind == DEFAULT_INT || param->default_kind == DEFAULT_FLOAT) {
        bool integer = param->default_kind == DEFAULT_INT;
        p->what = parameter_name(row, index);
        return set_attribute(p, id,
                             integer ? value_int(param->fallback.integer)
                                     : value_float(param->fallback.number));
    }
    p->attributes.given |= 1ull << id;
    if (param->default_kind == DEFAULT_BOOL) {
        ASSERT(attribute_table[id].kind == ATTRIBUTE_KIND_BOOL);
        *(bool *)field = param->fallback.boolean;
    } else {
        ASSERT(attribute_table[id].kind == ATTRIBUTE_KIND_STRING);
        *(const char **)field = param->fallback.string;
    }
    return STATUS_OK;
}

static bool has_plain_default(const Param *param) {
    return (param->kind == PARAM_INT && param->default_kind == DEFAULT_INT) ||
           (param->kind == PARAM_NUMBER &&
            (param->default_kind == DEFAULT_INT || param->default_kind == DEFAULT_FLOAT)) ||
           (param->kind == PARAM_BOOL && param->default_kind == DEFAULT_BOOL) ||
           (param->kind == PARAM_STRING && param->default_kind == DEFAULT_STRING);
}

// Where forms of one name differ, only a tensor says for certain that this one is meant.
static bool is_direct_input(const Builtin *row, Value value) {
    bool number = value.kind == VALUE_INT || value.kind == VALUE_FLOAT;
    return value.kind == VALUE_TENSOR || (number && !row->next_overload);
}

// Whether every parameter takes its value in its plainest form.
static bool all_direct(const Builtin *row, const Value *values) {
    for (int i = 0; i < row->signature.count; i++) {
        const Param *param = &row->signature.params[i];
        Value value = values[i];
        if (param->rest) return false;
        bool suits;
        if (value.kind == VALUE_ABSENT)
            suits = param->default_kind == DEFAULT_ABSENT || has_plain_default(param);
        else if (param->kind == PARAM_TENSOR)
            suits = is_direct_input(row, value);
        else
            suits = suits_directly(param, value);
        if (!suits) return false;
    }
    return true;
}

static void add_direct_input(Preparation *p, Value value, bool donated) {
    ASSERT(p->call.n_inputs < OP_INPUTS_MAX);
    OpInput *input = &p->call.inputs[p->call.n_inputs++];
    if (value.kind == VALUE_TENSOR) {
        input->tensor = value.as.tensor;
        input->donate = donated;
    } else if (value.kind == VALUE_ABSENT) {
        *input = op_absent();
    } else {
        *input = value.kind == VALUE_INT ? op_int(value.as.integer) : op_float(value.as.number);
    }
}

static Status prepare_directly(Preparation *p, const Builtin *row, const Value *values,
                               uint32_t donated) {
    for (int i = 0; i < row->signature.count; i++) {
        const Param *param = &row->signature.params[i];
        if (param->kind == PARAM_TENSOR) {
            add_direct_input(p, values[i], donated >> i & 1u);
        } else if (values[i].kind != VALUE_ABSENT) {
            p->what = parameter_name(row, i);
            TRY(set_attribute(p, attribute_of(row, i), values[i]));
        } else if (param->default_kind != DEFAULT_ABSENT) {
            TRY(set_default(p, row, i));
        }
    }
    return STATUS_OK;
}

// The plain int that a row declared `-> int` gives when its result has one element.
static Value read_result(const Builtin *row, Value result) {
    const char *kind = row->signature.result;
    if (result.kind != VALUE_TENSOR || kind[0] != 'i' || strcmp(kind, "int") != 0) return result;
    Value number = result;
    Status status = value_read_number(&number);
    if (number.kind == VALUE_TENSOR && status == STATUS_OK) return result;
    value_release(result);
    return status == STATUS_OK ? number : value_fail();
}

// sqrt(x) of a plain float: a map that takes nothing else, so there is nothing to prepare.
static bool invoke_float(const Builtin *row, const BuiltinArguments *arguments, Value *result) {
    bool alone = row->signature.count == 1 && arguments->count == 1 && arguments->named_count == 0;
    if (!alone || op_rows[row->id].run || arguments->positional[0].kind != VALUE_FLOAT)
        return false;
    OpCall call;
    call.op = &op_rows[row->id];
    call.inputs[0] = op_float(arguments->positional[0].as.number);
    call.n_inputs = 1;
    call.many = NULL;
    call.n_many = 0;
    call.attributes = NULL;
    *result = read_result(row, run(&call));
    return true;
}

bool op_invoke_plain(const Builtin *row, const BuiltinArguments *arguments, Value *result) {
    Value values[PARAMETERS_MAX];
    if (row->kind != ROW_OP) return false;
    if (invoke_float(row, arguments, result)) return true;
    if (!place_directly(&row->signature, arguments, values)) return false;
    if (!all_direct(row, values)) return false;
    Preparation p;
    preparation_begin(&p, row);
    Status status = prepare_directly(&p, row, values, arguments->donated);
    *result = status == STATUS_OK ? read_result(row, run(&p.call)) : value_fail();
    release_preparation(&p);
    return true;
}

// --- the general way

static Status add_input(Preparation *p, Value value, bool donated) {
    OpCall *call = &p->call;
    ASSERT(call->n_inputs < OP_INPUTS_MAX);
    ASSERT(p->n_temporaries < PARAMETERS_MAX);
    OpInput *input = &call->inputs[call->n_inputs++];
    Tensor *temporary;
    p->unknown |= value.kind == VALUE_MEASURED;
    bool list = value.kind == VALUE_LIST || value.kind == VALUE_TUPLE;
    if (p->wide && list) {
        TRY(value_to_wide_tensor(value, p->what, &temporary));
        *input = op_tensor(temporary);
    } else {
        TRY(op_input_from_value(value, p->what, input, &temporary));
    }
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
    SCOPED_VALUE(items) = value_to_items(value, p->what);
    if (items.kind == VALUE_FAIL) return error_current()->code;
    Status status = add_many(p, items.as.list->items, items.as.list->count);
    for (int i = 0; status == STATUS_OK && i < p->call.n_many; i++) {
        if (p->many[i].tensor && !p->many_temporaries[i])
            p->many_temporaries[i] = tensor_retain(p->many[i].tensor);
    }
    return status;
}

// The values of `dims: int...` as one attribute.
static Status set_rest_attribute(Preparation *p, AttributeId id, const Value *rest, size_t count) {
    SCOPED_VALUE(list) = value_list(count);
    list_append(list.as.list, rest, count);
    return set_attribute(p, id, list);
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

static Value run_prepared(const Preparation *p) {
    if (LIKELY(!p->unknown) || !is_plain(&p->call)) return run(&p->call);
    return value_unknown(op_scalars_result(&p->call));
}

Value op_invoke(const BuiltinCall *call, uint32_t donated) {
    ASSERT(call->row->kind == ROW_OP);
    Preparation p;
    preparation_begin(&p, call->row);
    p.wide = strcmp(call->row->section, "Reductions") == 0;
    Status status = prepare(&p, call, donated);
    Value result = status == STATUS_OK ? run_prepared(&p) : value_fail();
    release_preparation(&p);
    return read_result(call->row, result);
}
