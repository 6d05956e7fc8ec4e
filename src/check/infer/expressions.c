// Expressions: each node gives the fact of its value.
#include <stdlib.h>

#include "check/infer/infer.h"
#include "check/operator_words.h"

static const Fact *infer_float(Inference *in, double number) {
    Fact *fact = fact_new(&in->arena, FACT_FLOAT);
    fact->known = true;
    fact->as.number = number;
    return fact;
}

const Fact *infer_binding_value(Inference *in, Binding *binding) {
    Fact *fact;
    switch (binding->kind) {
    case BINDING_GLOBAL:
    case BINDING_LOCAL:
    case BINDING_DIMENSION: return infer_read(in, binding);
    case BINDING_FUNCTION:
        fact = fact_new(&in->arena, FACT_FUNCTION);
        fact->as.function.node = binding->declaration->as.function;
        return fact;
    case BINDING_BUILTIN:
        fact = fact_new(&in->arena, FACT_BUILTIN);
        fact->as.builtin = binding->builtin;
        return fact;
    case BINDING_STRUCT:
        fact = fact_new(&in->arena, FACT_TYPE);
        fact->as.structure.binding = binding;
        return fact;
    case BINDING_DTYPE:
        fact = fact_new(&in->arena, FACT_DTYPE);
        fact->as.dtype = (DType)binding->slot;
        return fact;
    case BINDING_CONSTANT: return infer_float(in, binding->constant->number);
    default: return &fact_any;
    }
}

static const Fact *infer_string(Inference *in, const Node *node) {
    ASSERT(node->kind == NODE_STRING);
    Fact *fact = fact_new(&in->arena, FACT_STRING);
    fact->known = true;
    fact->as.string.bytes = node->as.string.bytes;
    fact->as.string.length = node->as.string.length;
    return fact;
}

// --- literals

typedef struct Literal {
    const Fact **items;
    const Node *node;
    size_t count;
} Literal;

static const Fact *literal_list(Inference *in, const Literal *literal) {
    Fact *list = fact_new(&in->arena, FACT_LIST);
    list->known = true;
    list->epoch = in->epoch;
    list->as.list.items = literal->items;
    list->as.list.count = literal->count;
    return list;
}

// Integers, as sizes; NULL where one is not.
static const int64_t *literal_values(Inference *in, const Literal *literal) {
    enum { VALUES_MAX = 64 };
    if (literal->count > VALUES_MAX) return NULL;
    int64_t *values = arena_allocate(&in->arena, (literal->count + 1) * sizeof *values);
    for (size_t i = 0; i < literal->count; i++) {
        const Fact *item = literal->items[i];
        double number = item->kind == FACT_FLOAT && item->known ? item->as.number : 0.5;
        values[i] = item->kind == FACT_INT ? item->as.integer
                    : number == (double)(int64_t)number && number < 1e15 && number > -1e15
                        ? (int64_t)number
                        : SIZE_UNKNOWN;
    }
    return values;
}

// The dtype of numbers next to each other; DTYPE_COUNT when it is not known.
static DType literal_dtype(const Literal *literal) {
    ASSERT(literal->count > 0);
    bool floats = false, bools = false, ints = false;
    for (size_t i = 0; i < literal->count; i++) {
        const Fact *item = literal->items[i];
        DType dtype = item->kind == FACT_TENSOR ? item->as.tensor.type.dtype
                      : item->kind == FACT_INT  ? DTYPE_INT64
                      : item->kind == FACT_BOOL ? DTYPE_BOOL
                                                : DTYPE_FLOAT32;
        if (dtype == DTYPE_COUNT) return DTYPE_COUNT;
        floats |= dtype_is_float(dtype);
        bools |= dtype == DTYPE_BOOL;
        ints |= dtype_kind(dtype) == DTYPE_KIND_INT;
    }
    if (bools && (floats || ints)) return DTYPE_COUNT;
    return floats ? DTYPE_FLOAT32 : (bools ? DTYPE_BOOL : DTYPE_INT64);
}

static bool is_scalar(const Fact *fact) {
    return fact_is_number(fact) || (fact_has_shape(fact) && !fact_is_array(fact));
}

// Rows that certainly differ in length; at run time the others are found.
static void check_rows(Inference *in, const Literal *literal) {
    const Shape *first = &literal->items[0]->as.tensor.type.shape;
    for (size_t i = 1; i < literal->count; i++) {
        const Shape *next = &literal->items[i]->as.tensor.type.shape;
        if (first->rank != next->rank || !sizes_differ(first->dims[0], next->dims[0])) continue;
        (void)literal_fail_ragged(first->dims[0], next->dims[0]);
        infer_report(in, literal->node->span, NULL, 0);
        return;
    }
}

static const Fact *literal_nested(Inference *in, const Literal *literal) {
    ASSERT(literal->count > 0 && literal->items[0]->kind == FACT_TENSOR);
    TensorType type = literal->items[0]->as.tensor.type;
    if (type.shape.rank == RANK_MAX) return &fact_any;
    for (size_t i = 1; i < literal->count; i++) {
        const TensorType *next = &literal->items[i]->as.tensor.type;
        if (shapes_differ(&type.shape, &next->shape) || !shape_is_known(&next->shape)) {
            check_rows(in, literal);
            return &fact_any;
        }
        if (next->dtype != type.dtype)
            type.dtype = dtype_is_float(next->dtype) || dtype_is_float(type.dtype) ? DTYPE_FLOAT32
                                                                                   : DTYPE_COUNT;
    }
    Shape shape = {.rank = type.shape.rank + 1, .dims = {(int64_t)literal->count}};
    for (int i = 0; i < type.shape.rank; i++) shape.dims[i + 1] = type.shape.dims[i];
    return fact_tensor(&in->arena, type.dtype, &shape);
}

// Numbers make a tensor, nested literals of them one of higher rank, anything else a list.
static const Fact *infer_list(Inference *in, const Node *node) {
    ASSERT(node->kind == NODE_LIST);
    size_t count = node->as.list.count, scalars = 0, nested = 0, others = 0;
    Literal literal = {.node = node, .count = count};
    literal.items = arena_allocate(&in->arena, (count + 1) * sizeof *literal.items);
    for (size_t i = 0; i < count; i++) {
        Node *element = node->as.list.items[i];
        const Fact *item = literal.items[i] = infer_expression(in, element);
        bool unknown = item->kind == FACT_ANY || (item->kind == FACT_TENSOR && !item->known);
        if (is_scalar(item))
            scalars++;
        else if (element->kind == NODE_LIST && fact_is_array(item))
            nested++;
        else
            others += !unknown;
    }
    if (count == 0 || others > 0) return literal_list(in, &literal);
    if (nested == count) return literal_nested(in, &literal);
    if (scalars < count) return &fact_any;
    Shape shape = {.rank = 1, .dims = {(int64_t)count}};
    const Fact *plain = fact_tensor(&in->arena, literal_dtype(&literal), &shape);
    Fact *fact = fact_new(&in->arena, FACT_TENSOR);
    *fact = *plain;
    fact->as.tensor.values = literal_values(in, &literal);
    return fact;
}

static const Fact *infer_tuple(Inference *in, const Node *node) {
    ASSERT(node->kind == NODE_TUPLE);
    size_t count = node->as.list.count;
    Fact *tuple = fact_new(&in->arena, FACT_TUPLE);
    tuple->known = true;
    tuple->as.list.count = count;
    tuple->as.list.items = arena_allocate(&in->arena, (count + 1) * sizeof(Fact *));
    for (size_t i = 0; i < count; i++)
        tuple->as.list.items[i] = infer_expression(in, node->as.list.items[i]);
    return tuple;
}

static const Fact *infer_range(Inference *in, const Node *node) {
    ASSERT(node->kind == NODE_RANGE);
    const Fact *low = infer_expression(in, node->as.range.low);
    const Fact *high = infer_expression(in, node->as.range.high);
    Fact *range = fact_new(&in->arena, FACT_RANGE);
    range->as.range.low = low->kind == FACT_INT ? low->as.integer : SIZE_UNKNOWN;
    range->as.range.high = high->kind == FACT_INT ? high->as.integer : SIZE_UNKNOWN;
    if (node->as.range.inclusive) range->as.range.high = size_add(range->as.range.high, 1);
    return range;
}

static const Fact *infer_comprehension(Inference *in, Node *node) {
    const Fact *element, *index;
    bool some = infer_elements(in, node, &element, &index) && !node->as.for_loop.condition;
    Ways ways;
    ways_begin(in, &ways);
    ASSERT(in->doubt >= some);
    in->doubt -= some; // the first element certainly is made
    infer_pattern(in, node->as.for_loop.index, index);
    infer_pattern(in, node->as.for_loop.pattern, element);
    infer_expression(in, node->as.for_loop.condition);
    infer_expression(in, node->as.for_loop.body);
    in->doubt += some;
    way_end(in, &ways, &fact_any);
    ways_end(in, &ways);
    return &fact_any;
}

// --- operators

// Chains lean to the left, as deep as the text is long: walked down in a loop.
static const Fact *infer_binary(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_BINARY);
    SCOPED_MEMORY VECTOR(Node *) chain = {0};
    Node *first = node;
    for (; first->kind == NODE_BINARY; first = first->as.binary.left) VECTOR_PUSH(&chain, first);
    const Fact *fact = infer_expression(in, first);
    while (chain.count > 0) {
        Node *link = chain.items[--chain.count];
        Operand left = {.fact = fact, .span = link->as.binary.left->span};
        Operand right = {infer_expression(in, link->as.binary.right), link->as.binary.right->span,
                         link->as.binary.right};
        fact = infer_operator(in, link, link->op, &left, &right);
        if (fact->kind == FACT_TENSOR) fact = fact_made(&in->arena, fact, link->span);
    }
    return fact;
}

// What stands on the right may not run; where the left is known to decide, it does not.
static const Fact *infer_logical(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_LOGICAL);
    SCOPED_MEMORY VECTOR(const Node *) chain = {0};
    for (; node->kind == NODE_LOGICAL; node = node->as.binary.left) VECTOR_PUSH(&chain, node);
    const Fact *fact = infer_expression(in, node);
    infer_condition(in, node, fact);
    Ways ways;
    ways_begin(in, &ways);
    while (chain.count > 0) {
        const Node *link = chain.items[--chain.count];
        bool known = fact->kind == FACT_BOOL && fact->known;
        if (known && (fact->as.integer != 0) == (link->op == OPERATOR_OR)) continue;
        const Fact *right = infer_expression(in, link->as.binary.right);
        fact = known && right->kind == FACT_BOOL ? right : fact_kind(&in->arena, FACT_BOOL);
    }
    way_end(in, &ways, &fact_any);
    ways_end(in, &ways);
    return fact;
}

static const Fact *infer_cast(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_CAST);
    const Fact *fact = infer_expression(in, node->as.cast.value);
    const TypeNode *type = node->as.cast.type;
    DType dtype;
    if (type->kind != TYPE_NAMED || !dtype_find(type->name.text, type->name.length, &dtype)) {
        if (strcmp(type->name.text, "int") == 0 && fact->kind == FACT_INT) return fact;
        if (strcmp(type->name.text, "string") == 0) return fact_kind(&in->arena, FACT_STRING);
        return &fact_any;
    }
    if (fact->kind != FACT_TENSOR) return &fact_any;
    return fact_tensor(&in->arena, dtype, fact->known ? &fact->as.tensor.type.shape : NULL);
}

static const Fact *infer_try(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_TRY);
    size_t first = in->log.count;
    in->silent++;
    in->doubt++;
    in->logging++;
    infer_expression(in, node->as.attempt.body);
    ASSERT(in->silent > 0);
    in->silent--;
    ASSERT(in->doubt > 0);
    in->doubt--;
    ASSERT(in->logging > 0);
    in->logging--;
    in->dead = false;
    // The body may have stopped anywhere.
    size_t written = in->log.count;
    for (size_t i = first; i < written; i++) infer_write(in, in->log.items[i], &fact_any);
    if (!in->logging) in->log.count = 0;
    infer_disturb(in);
    Ways ways;
    ways_begin(in, &ways);
    infer_write(in, node->as.attempt.binding, &fact_any);
    infer_expression(in, node->as.attempt.handler);
    way_end(in, &ways, &fact_any);
    ways_end(in, &ways);
    return &fact_any;
}

static const Fact *infer_lambda(Inference *in, FunctionNode *function) {
    Fact *fact = fact_new(&in->arena, FACT_FUNCTION);
    fact->as.function.node = function;
    fact->as.function.activation = in->activation->serial;
    return fact;
}

static const Fact *infer_parts(Inference *in, Node *node) {
    if (node->kind == NODE_FORMAT_STRING) {
        NodeList values = node->as.format_string.values;
        for (size_t i = 0; i < values.count; i++) infer_expression(in, values.items[i]);
        return fact_kind(&in->arena, FACT_STRING);
    }
    for (size_t i = 0; i < node->as.dict.keys.count; i++) {
        infer_expression(in, node->as.dict.keys.items[i]);
        infer_expression(in, node->as.dict.values.items[i]);
    }
    return fact_kind(&in->arena, FACT_DICT);
}

static const Fact *infer_unary(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_UNARY);
    Operand operand = {infer_expression(in, node->as.binary.left), node->as.binary.left->span,
                       node->as.binary.left};
    return infer_operator(in, node, node->op, &operand, NULL);
}

static const Fact *infer_node(Inference *in, Node *node) {
    switch (node->kind) {
    case NODE_INT: return fact_int(&in->arena, node->as.integer);
    case NODE_FLOAT: return infer_float(in, node->as.number);
    case NODE_BOOL: return fact_bool(&in->arena, node->as.boolean);
    case NODE_NONE: return &fact_none;
    case NODE_STRING: return infer_string(in, node);
    case NODE_FORMAT_STRING:
    case NODE_DICT: return infer_parts(in, node);
    case NODE_NAME:
        return node->as.name.binding ? infer_binding_value(in, node->as.name.binding) : &fact_any;
    case NODE_LIST: return infer_list(in, node);
    case NODE_TUPLE: return infer_tuple(in, node);
    case NODE_COMPREHENSION: return infer_comprehension(in, node);
    case NODE_UNARY: return infer_unary(in, node);
    case NODE_BINARY: return infer_binary(in, node);
    case NODE_LOGICAL: return infer_logical(in, node);
    case NODE_RANGE: return infer_range(in, node);
    case NODE_CAST: return infer_cast(in, node);
    case NODE_CALL: return infer_call(in, node);
    case NODE_METHOD_CALL: return infer_method_call(in, node);
    case NODE_FIELD: return infer_field(in, node);
    case NODE_INDEX: return infer_index(in, node);
    case NODE_STRUCT_LITERAL: return infer_struct_literal(in, node);
    case NODE_LAMBDA: return infer_lambda(in, node->as.function);
    case NODE_IF: return infer_if(in, node);
    case NODE_MATCH: return infer_match(in, node);
    case NODE_TRY: return infer_try(in, node);
    case NODE_BLOCK: return infer_block(in, node);
    case NODE_EQUATION: return infer_equation(in, node);
    case NODE_ASK: return infer_expression(in, node->as.ask.value);
    case NODE_PATH:
    case NODE_QUERY: return &fact_any;
    default: return infer_statement(in, node);
    }
}

const Fact *infer_expression(Inference *in, Node *node) {
    if (!node) return &fact_none;
    if (in->dead || !infer_spend(in)) return &fact_any;
    const Fact *fact = infer_node(in, node);
    ASSERT(fact != NULL);
    bool made = fact->kind == FACT_TENSOR && fact->made.begin == 0;
    return made ? fact_made(&in->arena, fact, node->span) : fact;
}
