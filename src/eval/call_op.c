// Rows of ops.def called with values: tensors and numbers become inputs in order, every other
// parameter the attribute of its name. One function serves every row.
#include "eval/call_op.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tensor/random.h"
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

static Value draw_single(const OpCall *call) {
    Scalar number;
    bool unknown;
    if (random_single(call, &number, &unknown) != STATUS_OK) return value_fail();
    return unknown ? value_unknown(number.dtype) : value_from_scalar(number);
}

// Runs the call; a map of plain numbers gives a plain number, and so does a draw of one.
static Value run(const OpCall *call) {
    if (is_plain(call)) {
        Scalar scalar;
        if (op_apply_scalars(call, &scalar) != STATUS_OK) return value_fail();
        return value_from_scalar(scalar);
    }
    if (UNLIKELY(random_is_single(call))) return draw_single(call);
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

// What a parameter takes without a conversion, whatever the form of the row.
typedef struct DirectParam {
    uint32_t kinds; // of values, a bit each
    int8_t input;   // its place among the inputs; -1: an attribute
    uint8_t id;     // of the attribute
    bool is_none;   // `none` is as good as nothing
} DirectParam;

// A row for calls whose arguments fall into place as they are.
typedef struct DirectRow {
    OpAttributes defaults; // what is not given
    uint32_t required;     // bits of parameters
    uint32_t inputs;       // those that are inputs
    int n_inputs;
    bool possible;
    bool certain; // what it does not take so is not exactly of the kinds that it wants
    DirectParam params[PARAMETERS_MAX];
} DirectRow;
_Static_assert(PARAMETERS_MAX <= 32 && VALUE_CELL < 32, "a bit each");

// Where a name has several forms, only a tensor says for certain that this one is meant.
static uint32_t direct_kinds(ParamKind kind, bool several) {
    enum { INT = 1u << VALUE_INT, NUMBER = INT | 1u << VALUE_FLOAT, TENSOR = 1u << VALUE_TENSOR };
    switch (kind) {
    case PARAM_TENSOR: return several ? TENSOR : TENSOR | NUMBER;
    case PARAM_INT: return INT;
    case PARAM_NUMBER: return NUMBER;
    case PARAM_BOOL: return 1u << VALUE_BOOL;
    case PARAM_STRING: return 1u << VALUE_STRING;
    case PARAM_SHAPE: return TENSOR;
    default: return 0;
    }
}

static bool has_plain_default(const Param *param) {
    return (param->kind == PARAM_INT && param->default_kind == DEFAULT_INT) ||
           (param->kind == PARAM_NUMBER &&
            (param->default_kind == DEFAULT_INT || param->default_kind == DEFAULT_FLOAT)) ||
           (param->kind == PARAM_BOOL && param->default_kind == DEFAULT_BOOL) ||
           (param->kind == PARAM_STRING && param->default_kind == DEFAULT_STRING);
}

// Strings stay where the signature has them.
static void set_default(Preparation *p, const Builtin *row, int index) {
    const Param *param = &row->signature.params[index];
    AttributeId id = attribute_find(param->name);
    ASSERT(id != ATTRIBUTE_COUNT);
    void *field = (char *)&p->attributes + attribute_table[id].offset;
    p->attributes.given |= 1ull << id;
    if (param->default_kind == DEFAULT_STRING) {
        *(const char **)field = param->fallback.string;
        return;
    }
    Value value = param->default_kind == DEFAULT_INT     ? value_int(param->fallback.integer)
                  : param->default_kind == DEFAULT_FLOAT ? value_float(param->fallback.number)
                                                         : value_bool(param->fallback.boolean);
    Status status = set_attribute(p, id, value);
    ASSERT(status == STATUS_OK);
}

static void make_direct(const Builtin *row, DirectRow *direct) {
    const char *name = row->signature.name;
    bool several = catalog_find(name, strlen(name))->next_overload != NULL;
    Preparation p;
    preparation_begin(&p, row);
    memset(&p.attributes, 0, sizeof p.attributes);
    direct->possible = direct->certain = true;
    for (int i = 0; i < row->signature.count; i++) {
        const Param *param = &row->signature.params[i];
        bool input = param->kind == PARAM_TENSOR, plain = has_plain_default(param);
        direct->possible = direct->possible && !param->rest;
        direct->params[i].kinds = direct_kinds(param->kind, several);
        direct->certain = direct->certain && !param->rest && direct->params[i].kinds != 0 &&
                          param->kind != PARAM_SHAPE;
        direct->params[i].is_none = param->default_kind == DEFAULT_ABSENT;
        direct->params[i].input = input ? (int8_t)direct->n_inputs++ : -1;
        if (input)
            direct->inputs |= 1u << i;
        else
            direct->params[i].id = (uint8_t)attribute_find(param->name);
        if (plain)
            set_default(&p, row, i);
        else if (param->default_kind != DEFAULT_ABSENT)
            direct->required |= 1u << i;
    }
    direct->defaults = p.attributes;
}

// Made once and kept for the life of the process, as the catalog is.
static const DirectRow *direct_row(const Builtin *row) {
    static DirectRow *_Atomic known[OP_COUNT];
    DirectRow *direct = atomic_load_explicit(&known[row->id], memory_order_acquire), *none = NULL;
    if (LIKELY(direct != NULL)) return direct;
    direct = memory_allocate_zeroed(1, sizeof *direct);
    make_direct(row, direct);
    if (atomic_compare_exchange_strong(&known[row->id], &none, direct)) return direct;
    free(direct); // another thread was faster
    return none;
}

typedef struct DirectValues {
    Value values[PARAMETERS_MAX]; // by parameter
    uint32_t named, given;        // bits of parameters; `none` may stand for nothing
} DirectValues;

static inline bool is_sizes(Value value) {
    return tensor_rank(value.as.tensor) == 1 &&
           dtype_kind(tensor_dtype(value.as.tensor)) == DTYPE_KIND_INT;
}

static inline bool put_directly(const DirectRow *direct, int index, Value value,
                                DirectValues *out) {
    const DirectParam *param = &direct->params[index];
    if (value.kind == VALUE_ABSENT) return true;
    out->named |= 1u << index;
    if (value.kind == VALUE_NONE && param->is_none) return true;
    if (!(param->kinds >> value.kind & 1u)) return false;
    if (param->input < 0 && value.kind == VALUE_TENSOR && !is_sizes(value)) return false;
    out->values[index] = value;
    out->given |= 1u << index;
    return true;
}

// False when the values do not fall so simply.
static bool place_directly(const Builtin *row, const DirectRow *direct,
                           const BuiltinArguments *arguments, DirectValues *out) {
    if (!direct->possible || arguments->count > (size_t)row->signature.count) return false;
    out->named = out->given = 0;
    for (size_t i = 0; i < arguments->count; i++)
        if (!put_directly(direct, (int)i, arguments->positional[i], out)) return false;
    for (size_t i = 0; i < arguments->named_count; i++) {
        int index = catalog_parameter(&row->signature, arguments->names[i]);
        if (index < 0 || out->named >> index & 1u) return false;
        if (!put_directly(direct, index, arguments->named[i], out)) return false;
    }
    return (direct->required & ~out->given) == 0;
}

static void set_input(OpInput *input, Value value, bool donated) {
    if (value.kind == VALUE_TENSOR) {
        input->tensor = value.as.tensor;
        input->donate = donated;
    } else {
        *input = value.kind == VALUE_INT ? op_int(value.as.integer) : op_float(value.as.number);
    }
}

static Status set_directly(Preparation *p, const Builtin *row, int index, AttributeId id,
                           Value value) {
    const AttributeInfo *info = &attribute_table[id];
    void *field = (char *)&p->attributes + info->offset;
    p->attributes.given |= 1ull << id;
    if (info->kind == ATTRIBUTE_KIND_INT && value.kind == VALUE_INT) {
        *(int64_t *)field = value.as.integer;
    } else if (info->kind == ATTRIBUTE_KIND_NUMBER && value.kind == VALUE_FLOAT) {
        *(double *)field = value.as.number;
    } else {
        p->what = parameter_name(row, index);
        return set_attribute(p, id, value);
    }
    return STATUS_OK;
}

static Status prepare_directly(Preparation *p, const Builtin *row, const DirectRow *direct,
                               const DirectValues *from, uint32_t donated) {
    p->call.n_inputs = direct->n_inputs;
    ASSERT(direct->n_inputs <= OP_INPUTS_MAX);
    for (uint32_t left = direct->inputs; left; left &= left - 1) {
        int i = __builtin_ctz(left);
        OpInput *input = &p->call.inputs[direct->params[i].input];
        if (from->given >> i & 1u)
            set_input(input, from->values[i], donated >> i & 1u);
        else
            *input = op_absent();
    }
    uint32_t given = from->given & ~direct->inputs;
    if (given == 0) {
        p->call.attributes = &direct->defaults;
        return STATUS_OK;
    }
    p->attributes = direct->defaults;
    for (; given; given &= given - 1) {
        int i = __builtin_ctz(given);
        TRY(set_directly(p, row, i, direct->params[i].id, from->values[i]));
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
    DirectValues values;
    if (row->kind != ROW_OP) return false;
    if (invoke_float(row, arguments, result)) return true;
    const DirectRow *direct = direct_row(row);
    while (!place_directly(row, direct, arguments, &values)) {
        row = row->next_overload;
        if (!direct->certain || !row || row->kind != ROW_OP) return false;
        direct = direct_row(row);
    }
    Preparation p;
    preparation_begin(&p, row);
    Status status = prepare_directly(&p, row, direct, &values, arguments->donated);
    *result = status == STATUS_OK ? read_result(row, run(&p.call)) : value_fail();
    ASSERT(p.n_ints == 0 && p.n_temporaries == 0 && !p.many);
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
        Status status = value_to_wide_tensor(value, p->what, &temporary);
        if (status == STATUS_TYPE)
            fail_help("it takes numbers; sorted(x) puts texts in order, join(x) together");
        TRY(status);
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
    memset(&p.attributes, 0, sizeof p.attributes);
    p.wide = strcmp(call->row->section, "Reductions") == 0;
    Status status = prepare(&p, call, donated);
    Value result = status == STATUS_OK ? run_prepared(&p) : value_fail();
    release_preparation(&p);
    return read_result(call->row, result);
}
