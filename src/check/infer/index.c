// Subscripts and fields of facts.
#include "base/utf8.h"
#include "catalog/foreign.h"
#include "check/infer/infer.h"
#include "shape/rules.h"

// --- tensors

typedef struct Walk {
    Inference *in;
    const Node *node;
    const Operand *object;
    const TensorType *type;
    int at;            // the dimension that comes next
    int ellipsis_dims; // what an ellipsis stands for
    Shape result;
    bool lost; // the result's rank is not known
    int tensors, integers;
    int64_t value_at; // of a single integer index; SIZE_UNKNOWN
} Walk;

// A float serves as an index where it is an integer.
static Status integral_index(const Fact *fact) {
    double number = fact->as.number;
    bool fraction = fact->kind == FACT_FLOAT && fact->known &&
                    !(number > -0x1p62 && number < 0x1p62 && number == (double)(int64_t)number);
    return fraction ? fail(STATUS_TYPE, "the index must be an integer, but it is %g", number)
                    : STATUS_OK;
}

static bool report_index(Walk *walk, Status status) {
    if (status == STATUS_OK) return true;
    infer_report(walk->in, walk->node->span, walk->object, 1);
    return false;
}

// How many dimensions of the tensor a subscript takes; -1: it cannot be told.
static int subscript_dims(const Subscript *subscript, const Fact *fact) {
    if (subscript->kind == SUBSCRIPT_ELLIPSIS) return 0;
    if (subscript->kind == SUBSCRIPT_SLICE) return 1;
    if (fact->kind == FACT_NONE) return 0;
    if (fact->kind == FACT_INT || fact->kind == FACT_FLOAT) return 1;
    if (!fact_has_shape(fact) || fact->as.tensor.type.dtype == DTYPE_COUNT) return -1;
    if (fact->as.tensor.type.dtype != DTYPE_BOOL) return 1;
    return fact->as.tensor.type.shape.rank ? fact->as.tensor.type.shape.rank : -1;
}

static int64_t bound_of(Inference *in, Node *node, int64_t fallback) {
    if (!node) return fallback;
    const Fact *fact = infer_expression(in, node);
    return fact->kind == FACT_INT ? fact->as.integer : SIZE_UNKNOWN;
}

static int64_t clamp_bound(int64_t bound, int64_t size) {
    if (bound < 0) bound = bound < -size ? 0 : bound + size;
    return bound > size ? size : bound;
}

// Positive steps only; what others give is not followed.
static int64_t slice_size(Inference *in, const Subscript *subscript, int64_t size) {
    int64_t step = bound_of(in, subscript->step, 1);
    int64_t start = bound_of(in, subscript->start, 0);
    int64_t stop = subscript->stop ? bound_of(in, subscript->stop, 0) : size;
    if (!subscript->start && !subscript->stop && step == 1) return size;
    if (!size_is_known(step) || step < 1 || !size_is_known(start)) return SIZE_UNKNOWN;
    if (!size_is_known(size) || !size_is_known(stop)) return SIZE_UNKNOWN;
    start = clamp_bound(start, size);
    stop = clamp_bound(stop, size);
    return stop > start ? (stop - start - 1) / step + 1 : 0;
}

static void add_dim(Walk *walk, int64_t size) {
    ASSERT(walk->result.rank <= RANK_MAX);
    if (walk->result.rank == RANK_MAX)
        walk->lost = true;
    else
        walk->result.dims[walk->result.rank++] = size;
}

static bool take_tensor(Walk *walk, const Fact *fact) {
    ASSERT(fact->kind == FACT_TENSOR);
    const TensorType *index = &fact->as.tensor.type;
    if (index->dtype == DTYPE_BOOL) {
        if (!report_index(walk, shape_mask(walk->type, walk->at, index))) return false;
        walk->at += index->shape.rank;
        walk->tensors++;
        add_dim(walk, SIZE_UNKNOWN);
        return true;
    }
    walk->at++;
    if (index->shape.rank == 0) {
        walk->integers++;
        return true;
    }
    walk->tensors++;
    for (int i = 0; i < index->shape.rank; i++) add_dim(walk, index->shape.dims[i]);
    return true;
}

// False when the subscript was reported.
static bool take_subscript(Walk *walk, const Subscript *subscript, const Fact *fact) {
    ASSERT(walk->at <= walk->type->shape.rank);
    if (subscript->kind == SUBSCRIPT_ELLIPSIS) {
        for (int i = 0; i < walk->ellipsis_dims; i++)
            add_dim(walk, walk->type->shape.dims[walk->at++]);
        return true;
    }
    if (subscript->kind == SUBSCRIPT_SLICE) {
        add_dim(walk, slice_size(walk->in, subscript, walk->type->shape.dims[walk->at]));
        walk->at++;
        return true;
    }
    if (fact->kind == FACT_NONE) {
        add_dim(walk, 1);
        return true;
    }
    if (fact->kind == FACT_TENSOR) return take_tensor(walk, fact);
    if (!report_index(walk, integral_index(fact))) return false;
    walk->integers++;
    bool known = fact->kind == FACT_INT && fact->known;
    walk->value_at = known ? fact->as.integer : SIZE_UNKNOWN;
    if (known && !report_index(walk, shape_select(walk->type, walk->at, fact->as.integer)))
        return false;
    walk->at++;
    return true;
}

// One element: ints and bools are read, floats stay tensors of rank 0.
static const Fact *element_fact(Inference *in, const Fact *object, int64_t at) {
    ASSERT(fact_has_shape(object));
    DType dtype = object->as.tensor.type.dtype;
    if (dtype == DTYPE_COUNT) return &fact_any;
    if (dtype == DTYPE_BOOL) return fact_kind(&in->arena, FACT_BOOL);
    if (dtype_kind(dtype) == DTYPE_KIND_INT) {
        const int64_t *values = object->as.tensor.values;
        int64_t size = object->as.tensor.type.shape.rank == 1 ? object->as.tensor.type.shape.dims[0]
                                                              : SIZE_UNKNOWN;
        bool known = values && size_is_known(at) && size_is_known(size);
        return fact_int(&in->arena, known ? values[at < 0 ? at + size : at] : SIZE_UNKNOWN);
    }
    Shape scalar = {.rank = 0};
    return fact_tensor(&in->arena, dtype, &scalar);
}

static const Fact *index_unknown(Inference *in, const Node *node) {
    for (size_t i = 0; i < node->as.index.count; i++) {
        const Subscript *subscript = &node->as.index.subscripts[i];
        if (subscript->kind == SUBSCRIPT_INDEX) infer_expression(in, subscript->index);
        if (subscript->kind != SUBSCRIPT_SLICE) continue;
        infer_expression(in, subscript->start);
        infer_expression(in, subscript->stop);
        infer_expression(in, subscript->step);
    }
    return &fact_any;
}

// The part of a tensor that the subscripts of `node` name; ANY when it is not known.
static const Fact *index_tensor(Inference *in, const Node *node, const Operand *object) {
    ASSERT(fact_has_shape(object->fact));
    Walk walk = {.in = in, .node = node, .object = object, .type = &object->fact->as.tensor.type};
    const Fact *facts[2 * RANK_MAX];
    size_t count = node->as.index.count;
    int taken = 0, ellipses = 0;
    if (count > 2 * RANK_MAX) return index_unknown(in, node);
    for (size_t i = 0; i < count; i++) {
        const Subscript *subscript = &node->as.index.subscripts[i];
        facts[i] =
            subscript->kind == SUBSCRIPT_INDEX ? infer_expression(in, subscript->index) : &fact_any;
        int dims = subscript_dims(subscript, facts[i]);
        if (dims < 0) return &fact_any;
        taken += dims;
        ellipses += subscript->kind == SUBSCRIPT_ELLIPSIS;
    }
    if (!report_index(&walk, shape_index_rank(walk.type, taken, ellipses))) return &fact_any;
    walk.ellipsis_dims = walk.type->shape.rank - taken;
    for (size_t i = 0; i < count; i++)
        if (!take_subscript(&walk, &node->as.index.subscripts[i], facts[i])) return &fact_any;
    while (walk.at < walk.type->shape.rank) add_dim(&walk, walk.type->shape.dims[walk.at++]);
    DType dtype = walk.type->dtype;
    if (walk.lost || walk.tensors > 1 || (walk.tensors && walk.integers))
        return fact_tensor(&in->arena, dtype, NULL);
    if (walk.result.rank == 0)
        return element_fact(in, object->fact, count == 1 ? walk.value_at : SIZE_UNKNOWN);
    return fact_tensor(&in->arena, dtype, &walk.result);
}

// --- other values

static bool sequence_count(const Inference *in, const Fact *fact, int64_t *out) {
    bool text = fact->kind == FACT_STRING;
    if (text ? !fact->known : !infer_members_known(in, fact)) return false;
    *out = text ? (int64_t)utf8_count(fact->as.string.bytes, fact->as.string.length)
                : (int64_t)fact->as.list.count;
    return true;
}

static const Fact *index_sequence(Inference *in, const Node *node, const Operand *object) {
    const Fact *fact = object->fact;
    if (node->as.index.count != 1 || node->as.index.subscripts[0].kind != SUBSCRIPT_INDEX)
        return index_unknown(in, node);
    const Fact *index = infer_expression(in, node->as.index.subscripts[0].index);
    if (integral_index(index) != STATUS_OK) {
        infer_report(in, node->span, object, 1);
        return &fact_any;
    }
    if (index->kind != FACT_INT || !index->known) return &fact_any;
    int64_t count, at = index->as.integer;
    if (!sequence_count(in, fact, &count)) return &fact_any;
    if (at < -count || at >= count) {
        fail(STATUS_INDEX, "index %lld is out of range for a %s of length %lld", (long long)at,
             fact_kind_name(fact), (long long)count);
        infer_report(in, node->span, object, 1);
        return &fact_any;
    }
    return fact->kind == FACT_STRING ? fact : fact->as.list.items[at < 0 ? at + count : at];
}

const Fact *infer_index(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_INDEX);
    Node *place = node->as.index.object;
    Operand object = {infer_expression(in, place), place->span, place};
    switch (object.fact->kind) {
    case FACT_TENSOR:
        return object.fact->known ? index_tensor(in, node, &object) : index_unknown(in, node);
    case FACT_LIST:
    case FACT_TUPLE: return index_sequence(in, node, &object);
    case FACT_STRING: index_sequence(in, node, &object); return fact_kind(&in->arena, FACT_STRING);
    case FACT_INT:
    case FACT_FLOAT:
    case FACT_BOOL:
    case FACT_FUNCTION: {
        SCOPED_TEXT(text);
        fact_describe(object.fact, &text);
        fail(STATUS_TYPE, "%s cannot be indexed", text_get(&text));
        infer_report(in, node->span, &object, 1);
        return &fact_any;
    }
    default: return index_unknown(in, node);
    }
}

void infer_assign_index(Inference *in, Node *target, Node *value_node, const Fact *value) {
    ASSERT(target->kind == NODE_INDEX);
    Node *place = target->as.index.object;
    Operand object = {infer_expression(in, place), place->span, place};
    if (object.fact->kind != FACT_TENSOR) {
        if (object.fact->kind == FACT_LIST)
            index_sequence(in, target, &object);
        else
            index_unknown(in, target);
        infer_disturb(in);
        return;
    }
    if (object.fact->known) {
        const Fact *part = index_tensor(in, target, &object);
        TensorType given = {.dtype = DTYPE_INT64}, whole = object.fact->as.tensor.type;
        Shape shape = {.rank = 0};
        bool known = fact_has_shape(part) || fact_is_number(part);
        if (fact_has_shape(part)) shape = part->as.tensor.type.shape;
        if (fact_has_shape(value)) given = value->as.tensor.type;
        if (known && fact_has_shape(value) && shape_assign(&whole, &shape, &given) != STATUS_OK) {
            Operand operands[2] = {object, {.fact = value, .span = value_node->span}};
            infer_report(in, target->span, operands, 2);
        }
    } else {
        index_unknown(in, target);
    }
    // The variable holds a changed copy: its shape stays, its numbers do not.
    if (place->kind == NODE_NAME && place->as.name.binding && object.fact->as.tensor.values)
        infer_write(in, place->as.name.binding,
                    fact_made(&in->arena,
                              fact_tensor(&in->arena, object.fact->as.tensor.type.dtype,
                                          &object.fact->as.tensor.type.shape),
                              object.fact->made));
    else if (place->kind != NODE_NAME)
        infer_disturb(in); // what holds the tensor holds another one now
}

// --- fields

int struct_field_index(const Binding *type, const Word *name) {
    ASSERT(type->kind == BINDING_STRUCT);
    const Node *structure = type->declaration;
    for (size_t i = 0; i < structure->as.structure.field_count; i++)
        if (strcmp(structure->as.structure.fields[i].text, name->text) == 0) return (int)i;
    return -1;
}

static const Fact *shape_list(Inference *in, const Shape *shape) {
    ASSERT(shape->rank >= 0 && shape->rank <= RANK_MAX);
    Fact *list = fact_new(&in->arena, FACT_LIST);
    list->known = true;
    list->epoch = in->epoch;
    list->as.list.count = (size_t)shape->rank;
    list->as.list.items =
        arena_allocate(&in->arena, ((size_t)shape->rank + 1) * sizeof *list->as.list.items);
    for (int i = 0; i < shape->rank; i++)
        list->as.list.items[i] = fact_int(&in->arena, shape->dims[i]);
    return list;
}

const Fact *infer_property(Inference *in, const Fact *tensor, const char *name) {
    ASSERT(tensor->kind == FACT_TENSOR);
    const TensorType *type = &tensor->as.tensor.type;
    if (strcmp(name, "dtype") == 0) {
        if (type->dtype == DTYPE_COUNT) return &fact_any;
        Fact *dtype = fact_new(&in->arena, FACT_DTYPE);
        dtype->as.dtype = type->dtype;
        return dtype;
    }
    if (strcmp(name, "device") == 0) return fact_kind(&in->arena, FACT_STRING);
    bool rank = strcmp(name, "rank") == 0 || strcmp(name, "ndim") == 0;
    if (!tensor->known) {
        if (strcmp(name, "shape") == 0) return fact_kind(&in->arena, FACT_LIST);
        if (strcmp(name, "T") == 0) return fact_tensor(&in->arena, type->dtype, NULL);
        return rank || strcmp(name, "numel") == 0 ? fact_kind(&in->arena, FACT_INT) : NULL;
    }
    if (strcmp(name, "shape") == 0) return shape_list(in, &type->shape);
    if (rank) return fact_int(&in->arena, type->shape.rank);
    if (strcmp(name, "numel") == 0) return fact_int(&in->arena, shape_count(&type->shape));
    if (strcmp(name, "T") != 0) return NULL;
    Shape turned = {.rank = type->shape.rank};
    for (int i = 0; i < turned.rank; i++) turned.dims[i] = type->shape.dims[turned.rank - 1 - i];
    return fact_tensor(&in->arena, type->dtype, &turned);
}

static const Fact *struct_field(Inference *in, const Node *node, const Operand *object) {
    ASSERT(object->fact->kind == FACT_STRUCT);
    const Binding *type = object->fact->as.structure.binding;
    const Word *name = &node->as.field.name;
    int index = struct_field_index(type, name);
    if (index >= 0 && infer_members_known(in, object->fact))
        return object->fact->as.structure.fields[index];
    const Node *structure = type->declaration;
    if (index >= 0) {
        const TypeNode *declared = structure->as.structure.types[index];
        return annotation_refine(in, declared, &fact_any, "", node->span);
    }
    if (impl_function(type, name->text, NULL)) return &fact_any;
    size_t count = structure->as.structure.field_count;
    const char **names = arena_allocate(&in->arena, (count + 1) * sizeof *names);
    for (size_t i = 0; i < count; i++) names[i] = structure->as.structure.fields[i].text;
    SCOPED_TEXT(help);
    catalog_fields_help(name->text, names, count, &help);
    fail(STATUS_NAME, "struct %s has no field `%s`", type->word.text, name->text);
    fail_help("%s", text_get(&help));
    infer_report(in, node->span, NULL, 0);
    return &fact_any;
}

const Fact *infer_field(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_FIELD);
    if (node->as.field.member) return infer_binding_value(in, node->as.field.member);
    Node *place = node->as.field.object;
    Operand object = {infer_expression(in, place), place->span, place};
    const Word *name = &node->as.field.name;
    if (object.fact->kind == FACT_STRUCT) return struct_field(in, node, &object);
    if (object.fact->kind == FACT_TUPLE && infer_members_known(in, object.fact) &&
        name->text[0] >= '0' && name->text[0] <= '9') {
        size_t at = 0;
        for (const char *digit = name->text; *digit && at < 1000; digit++)
            at = at * 10 + (size_t)(*digit - '0');
        if (at < object.fact->as.list.count) return object.fact->as.list.items[at];
        fail(STATUS_INDEX, "index %zu is out of range for a tuple of length %zu", at,
             object.fact->as.list.count);
        infer_report(in, node->span, &object, 1);
    }
    if (object.fact->kind != FACT_TENSOR) return &fact_any;
    const Fact *property = infer_property(in, object.fact, name->text);
    if (property) return property;
    SCOPED_TEXT(text);
    fact_describe(object.fact, &text);
    static const char *const properties[] = {"shape", "rank", "ndim", "numel", "dtype", "device"};
    const char *near = catalog_nearest(name->text, properties, 6);
    const char *foreign = foreign_help(FOREIGN_MEMBER, name->text, name->length);
    fail(STATUS_NAME, "%s has no field `%s`", text_get(&text), name->text);
    if (foreign)
        fail_help("%s", foreign);
    else if (near)
        fail_help("did you mean `%s`?", near);
    infer_report(in, node->span, &object, 1);
    return &fact_any;
}
