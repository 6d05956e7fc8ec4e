// Tensor declarations: `tensor w: float16[3, n] learnable = e`, and initialisers that take their
// shape from the declaration.
#include "eval/declared.h"

#include "eval/bind.h"
#include "tensor/gradient/tape.h"
#include "tensor/op.h"
#include "tensor/parameter.h"

typedef struct ShapedCode {
    Code head;
    const Builtin *row;
    const Annotation *type;
    const Code **arguments;
    size_t count;
} ShapedCode;

static Value shape_list(const Shape *shape) {
    ASSERT(shape->rank >= 0 && shape->rank <= RANK_MAX);
    Value list = value_list((size_t)shape->rank);
    for (int i = 0; i < shape->rank; i++) list_push(list.as.list, value_int(shape->dims[i]));
    return list;
}

static Value create_shaped(Frame *frame, const ShapedCode *shaped, const Value *arguments) {
    static const char *const names[] = {"shape", "dtype"};
    Shape shape;
    DType dtype;
    if (annotation_shape(frame, shaped->type, "the tensor", &shape, &dtype) != STATUS_OK)
        return value_fail();
    Value named[] = {shape_list(&shape), {.kind = VALUE_DTYPE, .as.integer = dtype}};
    BuiltinArguments call = {.positional = arguments,
                             .count = shaped->count,
                             .names = names,
                             .named = named,
                             .named_count = 2};
    Value created = builtin_invoke(frame->interp, shaped->row, &call);
    value_release(named[0]);
    return created;
}

static Value eval_shaped(Frame *frame, const Code *code) {
    enum { ARGUMENTS_MAX = 4 };
    const ShapedCode *shaped = (const ShapedCode *)code;
    Value arguments[ARGUMENTS_MAX], result = value_none();
    size_t count = 0;
    while (count < shaped->count && !failed(result)) {
        result = EVAL(frame, shaped->arguments[count]);
        if (!failed(result)) arguments[count++] = result;
    }
    origin_current.at = code->span.begin;
    if (!failed(result)) result = create_shaped(frame, shaped, arguments);
    if (failed(result) && frame->control == CONTROL_NONE) error_place(code->span);
    while (count > 0) value_release(arguments[--count]);
    return result;
}

static const Builtin *shaped_row(const Node *node) {
    if (node->kind != NODE_CALL || node->as.call.callee->kind != NODE_NAME) return NULL;
    const Binding *binding = node->as.call.callee->as.name.binding;
    if (!binding || binding->kind != BINDING_BUILTIN) return NULL;
    for (size_t i = 0; i < node->as.call.count; i++)
        if (node->as.call.arguments[i].name.text) return NULL;
    return catalog_lacks_shape(binding->builtin, node->as.call.count) ? binding->builtin : NULL;
}

static const Code *lower_shaped(Lowering *lowering, const Node *node, const Builtin *row,
                                const Annotation *type, Span span) {
    ShapedCode *code = LOWER_NEW(lowering, ShapedCode, eval_shaped, span);
    code->row = row;
    code->type = type;
    ASSERT(row != NULL && type != NULL);
    code->count = node ? node->as.call.count : 0;
    code->arguments = lower_array(lowering, code->count, sizeof *code->arguments);
    for (size_t i = 0; i < code->count; i++)
        code->arguments[i] = lower(lowering, node->as.call.arguments[i].value);
    return &code->head;
}

const Code *lower_declared_value(Lowering *lowering, const Node *node, const Annotation *type) {
    const Builtin *row = node ? shaped_row(node) : NULL;
    return row ? lower_shaped(lowering, node, row, type, node->span) : lower(lowering, node);
}

// A parameter has identity, so that a number becomes a tensor of rank 0, of the declared dtype.
static Value make_parameter(const DeclareCode *declare, Value value) {
    if (value.kind == VALUE_TENSOR) return tensor_make_parameter(value);
    SCOPED_TENSOR(number);
    Tensor *tensor = NULL;
    DType dtype;
    Status status = value_to_tensor(value, declare->name, &number);
    value_release(value);
    if (status != STATUS_OK) return value_fail();
    bool declared = declare->type && annotation_number_dtype(declare->type, &dtype);
    status = tensor_cast(number, declared ? dtype : tensor_dtype(number), &tensor);
    return status == STATUS_OK ? tensor_make_parameter(value_tensor(tensor)) : value_fail();
}

static Value eval_tensor(Frame *frame, const Code *code) {
    const DeclareCode *declare = (const DeclareCode *)code;
    Value value = EVAL(frame, declare->value);
    if (failed(value)) return value;
    origin_current.at = code->span.begin;
    value = annotation_convert(frame, declare->type, value, declare->name);
    if (failed(value)) return fail_at(code->span);
    if (declare->learnable) {
        value = make_parameter(declare, value);
        if (failed(value)) return fail_at(code->span);
    }
    variable_set(frame, declare->variable, value);
    return value_none();
}

Value tensor_make_parameter(Value value) {
    ASSERT(value.kind == VALUE_TENSOR);
    Tensor *parameter;
    Status status = tape_parameter_new(value.as.tensor, &parameter);
    value_release(value);
    return status == STATUS_OK ? value_tensor(parameter) : value_fail();
}

const Code *lower_tensor(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_TENSOR_DECLARATION);
    const TypeNode *written = node->as.tensor.type;
    DeclareCode *code = LOWER_NEW(lowering, DeclareCode, eval_tensor, node->span);
    code->type = lower_annotation(lowering, written);
    code->learnable = written && written->learnable;
    code->name = lower_word(lowering, &node->as.tensor.name);
    code->variable = lower_variable(lowering, node->as.tensor.binding, node->span);
    if (node->as.tensor.value)
        code->value = lower_declared_value(lowering, node->as.tensor.value, code->type);
    else
        code->value =
            lower_shaped(lowering, NULL, catalog_find("zeros", 5), code->type, node->span);
    if (node->as.tensor.once) return lower_once(lowering, node->as.tensor.binding, &code->head);
    return &code->head;
}
