// Annotations at run time: kinds, dtype families, ranks and dimensions; symbols bind per call.
#include "eval/annotations.h"

#include "check/types.h"
#include "device/foretell.h"
#include "eval/structs.h"
#include "eval/upper.h"
#include "tensor/op.h"
#include "tensor/view.h"
#include "value/print.h"

typedef struct DimensionCode {
    int64_t number;               // -1: any, or a symbol
    int slot;                     // of the symbol in the frame; -1: none
    bool captured;                // the symbol's slot holds a cell
    int same_as;                  // an earlier dimension of the same name in this annotation, or -1
    const VariableCode *variable; // an int in it is the size; NULL: there is none
    const char *name;
} DimensionCode;

struct Annotation {
    enum {
        ANNOTATION_WORD,
        ANNOTATION_TENSOR,
        ANNOTATION_STRUCT,
        ANNOTATION_ENTITY,
        ANNOTATION_TUPLE
    } kind;
    TypeWord word;
    bool optional;
    bool any_dtype; // the name is not that of a dtype
    DType dtype;
    int rank;
    DimensionCode dimensions[RANK_MAX];
    const StructCode *structure;
    const struct Relation *entities; // ENTITY
    const Annotation **members;
    size_t member_count;
    const char *text; // as written
};

static void lower_dimension(Lowering *lowering, Annotation *annotation, const TypeNode *type,
                            int index) {
    ASSERT(index >= 0 && (size_t)index < type->dimension_count);
    const Dimension *dimension = &type->dimensions[index];
    DimensionCode *code = &annotation->dimensions[index];
    *code = (DimensionCode){.number = -1, .slot = -1, .same_as = -1};
    if (dimension->kind == DIMENSION_NUMBER) code->number = dimension->number;
    if (dimension->kind != DIMENSION_NAME) return;
    code->name = lower_word(lowering, &dimension->name);
    if (dimension->variable)
        code->variable = lower_variable(lowering, dimension->variable, dimension->name.span);
    if (dimension->binding) {
        code->slot = dimension->binding->slot;
        code->captured = dimension->binding->captured;
        return;
    }
    for (int i = 0; i < index; i++)
        if (annotation->dimensions[i].name &&
            strcmp(annotation->dimensions[i].name, code->name) == 0)
            code->same_as = i;
}

static void lower_named(Lowering *lowering, Annotation *annotation, const TypeNode *type) {
    ASSERT(type->kind == TYPE_NAMED);
    if (type->binding && binding_is_entity_type(type->binding)) {
        annotation->kind = ANNOTATION_ENTITY;
        annotation->entities = type->binding->relation;
    } else if (type->binding) {
        annotation->kind = ANNOTATION_STRUCT;
        annotation->structure = struct_of_binding(lowering, type->binding);
    } else if (!type_word_find(type->name.text, &annotation->word)) {
        annotation->word = TYPE_WORD_ANY; // a type parameter
    }
}

static void lower_tensor_type(Lowering *lowering, Annotation *annotation, const TypeNode *type) {
    ASSERT(type->kind == TYPE_TENSOR);
    annotation->kind = ANNOTATION_TENSOR;
    annotation->rank = (int)type->dimension_count; // check/ allows RANK_MAX
    ASSERT(annotation->rank <= RANK_MAX);
    for (int i = 0; i < annotation->rank; i++) lower_dimension(lowering, annotation, type, i);
}

const Annotation *lower_annotation(Lowering *lowering, const TypeNode *type) {
    if (!type) return NULL;
    Annotation *annotation = lower_array(lowering, 1, sizeof *annotation);
    annotation->optional = type->optional;
    size_t length;
    const char *text = source_text(type->span, &length);
    annotation->text = arena_copy_string(lowering->arena, text, length);
    annotation->any_dtype = type->kind == TYPE_TUPLE ||
                            !dtype_find(type->name.text, type->name.length, &annotation->dtype);
    if (annotation->any_dtype) annotation->dtype = DTYPE_FLOAT32;
    if (type->kind == TYPE_NAMED) lower_named(lowering, annotation, type);
    if (type->kind == TYPE_TENSOR) lower_tensor_type(lowering, annotation, type);
    if (type->kind == TYPE_TUPLE) {
        annotation->kind = ANNOTATION_TUPLE;
        annotation->member_count = type->argument_count;
        annotation->members =
            lower_array(lowering, type->argument_count, sizeof *annotation->members);
        for (size_t i = 0; i < type->argument_count; i++)
            annotation->members[i] = lower_annotation(lowering, type->arguments[i]);
    }
    return annotation;
}

bool annotation_is_void(const Annotation *annotation) {
    return annotation->kind == ANNOTATION_WORD &&
           (annotation->word == TYPE_WORD_NONE || annotation->word == TYPE_WORD_ANY);
}

bool annotation_is_tensor(const Annotation *annotation) {
    return annotation->kind == ANNOTATION_TENSOR;
}

bool annotation_is_plain_word(const Annotation *annotation) {
    return annotation->kind == ANNOTATION_WORD && annotation->any_dtype;
}

static Status fail_type(const Annotation *annotation, Value value, const char *what) {
    if (value.kind == VALUE_NONE)
        return fail(STATUS_TYPE, "%s must be %s, but there is no value", what, annotation->text);
    return fail(STATUS_TYPE, "%s must be %s, but it is %s", what, annotation->text,
                value_text(value).text);
}

// The size that a dimension must have, or -1 when it may be anything so far.
static int64_t dimension_wanted(Frame *frame, const Annotation *annotation, int index,
                                const Shape *shape) {
    ASSERT(index >= 0 && index < annotation->rank);
    const DimensionCode *dimension = &annotation->dimensions[index];
    if (dimension->number >= 0) return dimension->number;
    if (dimension->variable) {
        const Value *place = variable_peek(frame, dimension->variable);
        if (place && place->kind == VALUE_INT) return place->as.integer;
    }
    if (dimension->same_as >= 0) return shape->dims[dimension->same_as];
    if (dimension->slot < 0) return -1;
    Value bound = frame->slots[dimension->slot];
    if (bound.kind == VALUE_CELL) bound = bound.as.cell->value;
    return bound.kind == VALUE_INT ? bound.as.integer : -1;
}

static void dimension_bind(Frame *frame, const DimensionCode *dimension, int64_t size) {
    ASSERT(size >= 0);
    if (dimension->slot < 0) return;
    Value *slot = &frame->slots[dimension->slot];
    if (slot->kind != VALUE_ABSENT) return;
    *slot = dimension->captured ? value_cell(value_int(size)) : value_int(size);
}

static Status fail_dimension(const Annotation *annotation, const Tensor *tensor, int index,
                             int64_t wanted, const char *what) {
    ASSERT(index >= 0 && index < annotation->rank && index < tensor->view.rank);
    const DimensionCode *dimension = &annotation->dimensions[index];
    TypeName actual = tensor_type_name(tensor);
    if (dimension->name)
        return fail(STATUS_SHAPE,
                    "%s must be %s, but it is %s: dimension %d is %lld and %s is %lld", what,
                    annotation->text, actual.text, index, (long long)tensor->view.dims[index],
                    dimension->name, (long long)wanted);
    return fail(STATUS_SHAPE, "%s must be %s, but it is %s: dimension %d is %lld", what,
                annotation->text, actual.text, index, (long long)tensor->view.dims[index]);
}

static Status check_dimensions(Frame *frame, const Annotation *annotation, const Tensor *tensor,
                               const char *what) {
    Shape shape = tensor_shape(tensor);
    if (shape.rank != annotation->rank)
        return fail(STATUS_SHAPE, "%s must be %s, but it is %s: it has %d dimension%s, not %d",
                    what, annotation->text, tensor_type_name(tensor).text, shape.rank,
                    shape.rank == 1 ? "" : "s", annotation->rank);
    for (int i = 0; i < shape.rank; i++) {
        int64_t wanted = dimension_wanted(frame, annotation, i, &shape);
        if (wanted >= 0)
            foretell_shape_checked(tensor->view.buffer);
        else if (annotation->dimensions[i].slot >= 0)
            foretell_shape_read(tensor->view.buffer);
        if (wanted >= 0 && wanted != shape.dims[i])
            return fail_dimension(annotation, tensor, i, wanted, what);
        dimension_bind(frame, &annotation->dimensions[i], shape.dims[i]);
    }
    return STATUS_OK;
}

// Any float or quantised dtype satisfies a float annotation; ints likewise; bool only itself.
static bool same_family(DType declared, DType actual) {
    DTypeKind kind = dtype_kind(actual);
    switch (dtype_kind(declared)) {
    case DTYPE_KIND_FLOAT:
    case DTYPE_KIND_QUANT: return kind == DTYPE_KIND_FLOAT || kind == DTYPE_KIND_QUANT;
    case DTYPE_KIND_INT: return kind == DTYPE_KIND_INT;
    case DTYPE_KIND_BOOL: return kind == DTYPE_KIND_BOOL;
    }
    return false;
}

static Status check_tensor(Frame *frame, const Annotation *annotation, Value *value,
                           const char *what) {
    ASSERT(annotation->kind == ANNOTATION_TENSOR);
    if (value->kind != VALUE_TENSOR) {
        if (annotation->rank != 0 || !value_is_number(*value))
            return fail_type(annotation, *value, what);
        return STATUS_OK; // a plain number serves as a rank-0 tensor
    }
    const Tensor *tensor = value->as.tensor;
    if (!annotation->any_dtype && !same_family(annotation->dtype, tensor_dtype(tensor)))
        return fail(STATUS_DTYPE, "%s must be %s, but it is %s", what, annotation->text,
                    tensor_type_name(tensor).text);
    return check_dimensions(frame, annotation, tensor, what);
}

static Status check_float(const Annotation *annotation, Value *value, const char *what) {
    if (value->kind == VALUE_INT) *value = value_float((double)value->as.integer);
    if (value->kind == VALUE_MEASURED && value_is_number(*value))
        *value = value_measured(VALUE_FLOAT, value->as.measured.at);
    if (value_kind_in_run(*value) == VALUE_FLOAT) return STATUS_OK;
    if (value->kind != VALUE_TENSOR || tensor_rank(value->as.tensor) != 0)
        return fail_type(annotation, *value, what);
    if (dtype_kind(tensor_dtype(value->as.tensor)) == DTYPE_KIND_FLOAT) return STATUS_OK;
    Tensor *cast;
    TRY(tensor_cast(value->as.tensor, DTYPE_FLOAT32, &cast));
    value_release(*value);
    *value = value_tensor(cast);
    return STATUS_OK;
}

static Status check_int(const Annotation *annotation, Value *value, const char *what) {
    if (value->kind == VALUE_INT) return STATUS_OK;
    if (!value_is_number(*value)) return fail_type(annotation, *value, what);
    int64_t number;
    TRY(value_to_int(*value, what, &number));
    value_release(*value);
    *value = value_int(number);
    return STATUS_OK;
}

static Status check_bool(const Annotation *annotation, Value *value, const char *what) {
    if (value->kind == VALUE_BOOL) return STATUS_OK;
    if (value->kind == VALUE_TENSOR && tensor_rank(value->as.tensor) == 0 &&
        tensor_dtype(value->as.tensor) == DTYPE_BOOL)
        return STATUS_OK;
    return fail_type(annotation, *value, what);
}

static bool is_handle(Value value, const char *name) {
    return value.kind == VALUE_HANDLE && strcmp(value.as.handle->type->name, name) == 0;
}

static bool word_accepts(TypeWord word, Value value) {
    switch (word) {
    case TYPE_WORD_ENTITY:
    case TYPE_WORD_STRING: return value.kind == VALUE_STRING;
    case TYPE_WORD_TENSOR: return value.kind == VALUE_TENSOR || value_is_number(value);
    case TYPE_WORD_LIST: return value.kind == VALUE_LIST || value.kind == VALUE_TENSOR;
    case TYPE_WORD_TUPLE: return value.kind == VALUE_TUPLE;
    case TYPE_WORD_DICT: return value.kind == VALUE_DICT;
    case TYPE_WORD_FUNCTION:
        return value.kind == VALUE_FUNCTION || value.kind == VALUE_BUILTIN ||
               value.kind == VALUE_TYPE ||
               (value.kind == VALUE_HANDLE && value.as.handle->type->call);
    case TYPE_WORD_RANGE: return value.kind == VALUE_RANGE;
    case TYPE_WORD_MODEL: return is_handle(value, "model");
    case TYPE_WORD_TOKENIZER: return is_handle(value, "tokenizer");
    case TYPE_WORD_CACHE: return is_handle(value, "KVCache");
    case TYPE_WORD_BUFFER: return value.kind == VALUE_HANDLE;
    default: return true;
    }
}

static Status check_word(const Annotation *annotation, Value *value, const char *what) {
    ASSERT(annotation->kind == ANNOTATION_WORD);
    switch (annotation->word) {
    case TYPE_WORD_INT: return check_int(annotation, value, what);
    case TYPE_WORD_FLOAT: return check_float(annotation, value, what);
    case TYPE_WORD_BOOL: return check_bool(annotation, value, what);
    case TYPE_WORD_NONE: // a function without a value: what its last expression made goes
        value_release(*value);
        *value = value_none();
        return STATUS_OK;
    default:
        return word_accepts(annotation->word, *value) ? STATUS_OK
                                                      : fail_type(annotation, *value, what);
    }
}

static Status check_members(Frame *frame, const Annotation *annotation, Value *value,
                            const char *what) {
    ASSERT(annotation->kind == ANNOTATION_TUPLE);
    if (value->kind != VALUE_TUPLE || value->as.list->count != annotation->member_count)
        return fail_type(annotation, *value, what);
    for (size_t i = 0; i < annotation->member_count; i++) {
        SCOPED_TEXT(member);
        text_format(&member, "member %zu of %s", i, what);
        TRY(annotation_check(frame, annotation->members[i], &value->as.list->items[i],
                             text_get(&member)));
    }
    return STATUS_OK;
}

bool annotation_is_met(const Annotation *annotation, Value value) {
    static const uint8_t kinds[TYPE_WORD_STRUCT + 1] = {
        [TYPE_WORD_INT] = VALUE_INT,   [TYPE_WORD_FLOAT] = VALUE_FLOAT,
        [TYPE_WORD_BOOL] = VALUE_BOOL, [TYPE_WORD_STRING] = VALUE_STRING,
        [TYPE_WORD_LIST] = VALUE_LIST, [TYPE_WORD_DICT] = VALUE_DICT,
    };
    if (value.kind == VALUE_NONE) return annotation->optional;
    if (annotation->kind == ANNOTATION_WORD)
        return value_kind_in_run(value) == kinds[annotation->word];
    return annotation->kind == ANNOTATION_STRUCT && value.kind == VALUE_STRUCT &&
           value.as.instance->type == &annotation->structure->type;
}

Status annotation_check(Frame *frame, const Annotation *annotation, Value *value,
                        const char *what) {
    if (annotation_is_met(annotation, *value)) return STATUS_OK;
    switch (annotation->kind) {
    case ANNOTATION_WORD: return check_word(annotation, value, what);
    case ANNOTATION_TENSOR: return check_tensor(frame, annotation, value, what);
    case ANNOTATION_TUPLE: return check_members(frame, annotation, value, what);
    case ANNOTATION_STRUCT: return fail_type(annotation, *value, what);
    case ANNOTATION_ENTITY:
        if (value->kind == VALUE_STRING && entity_fits(annotation->entities, value->as.string))
            return STATUS_OK;
        return fail_type(annotation, *value, what);
    }
    return STATUS_OK;
}

static int tensor_fit(const Annotation *annotation, Value value) {
    ASSERT(annotation->kind == ANNOTATION_TENSOR);
    if (value.kind != VALUE_TENSOR || tensor_rank(value.as.tensor) != annotation->rank) return -1;
    DType dtype = tensor_dtype(value.as.tensor);
    if (!annotation->any_dtype && !same_family(annotation->dtype, dtype)) return -1;
    int fit = !annotation->any_dtype && annotation->dtype == dtype ? RANK_MAX + 2 : 1;
    for (int i = 0; i < annotation->rank; i++) {
        int64_t wanted = annotation->dimensions[i].number;
        if (wanted >= 0) foretell_shape_read(value.as.tensor->view.buffer);
        if (wanted >= 0 && wanted != value.as.tensor->view.dims[i]) return -1;
        fit += wanted >= 0;
    }
    return fit;
}

static bool plain_fit(const Annotation *annotation, Value value) {
    if (annotation->kind == ANNOTATION_STRUCT)
        return value.kind == VALUE_STRUCT &&
               value.as.instance->type == &annotation->structure->type;
    if (annotation->kind == ANNOTATION_ENTITY)
        return value.kind == VALUE_STRING && entity_fits(annotation->entities, value.as.string);
    if (annotation->kind == ANNOTATION_TUPLE) return value.kind == VALUE_TUPLE;
    switch (annotation->word) {
    case TYPE_WORD_INT: return value_kind_in_run(value) == VALUE_INT;
    case TYPE_WORD_FLOAT: return value_kind_in_run(value) == VALUE_FLOAT;
    case TYPE_WORD_BOOL: return value_kind_in_run(value) == VALUE_BOOL;
    default: return word_accepts(annotation->word, value);
    }
}

int annotation_fit(const Annotation *annotation, Value value) {
    if (!annotation || (annotation->optional && value.kind == VALUE_NONE)) return 0;
    if (annotation->kind == ANNOTATION_TENSOR) return tensor_fit(annotation, value);
    DType dtype = annotation->dtype;
    bool word = annotation->kind == ANNOTATION_WORD && !annotation->any_dtype;
    if (word && value.kind == VALUE_TENSOR) // the dtype of T[...] in the struct
        return tensor_dtype(value.as.tensor) == dtype              ? RANK_MAX + 2
               : same_family(dtype, tensor_dtype(value.as.tensor)) ? 1
                                                                   : -1;
    return plain_fit(annotation, value) ? 1 : -1;
}

// The declared shape where `?` and unbound names take the tensor's size (same rank), or its place.
static bool shape_declared(Frame *frame, const Annotation *annotation, const Tensor *tensor,
                           Shape *out) {
    ASSERT(annotation->kind == ANNOTATION_TENSOR);
    Shape actual = tensor_shape(tensor);
    *out = (Shape){.rank = annotation->rank};
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < annotation->rank; i++) {
        out->dims[i] = dimension_wanted(frame, annotation, i, out);
        if (out->dims[i] >= 0) {
            if (__builtin_mul_overflow(known, out->dims[i], &known)) return false;
        } else if (annotation->rank == actual.rank) {
            out->dims[i] = actual.dims[i];
            if (__builtin_mul_overflow(known, out->dims[i], &known)) return false;
        } else if (open < 0) {
            open = i;
        } else {
            return false;
        }
    }
    int64_t count = tensor_count(tensor);
    if (open < 0) return known == count;
    if (known == 0 || count % known != 0) return false;
    out->dims[open] = count / known;
    return true;
}

static Status convert_tensor(Frame *frame, const Annotation *annotation, Tensor *tensor,
                             const char *what, Tensor **out) {
    Shape shape;
    if (!shape_declared(frame, annotation, tensor, &shape))
        return fail(STATUS_SHAPE, "%s is declared as %s, but its value is %s", what,
                    annotation->text, tensor_type_name(tensor).text);
    for (int i = 0; i < annotation->rank; i++)
        dimension_bind(frame, &annotation->dimensions[i], shape.dims[i]);
    Tensor *cast;
    if (annotation->any_dtype || annotation->dtype == tensor_dtype(tensor)) {
        cast = tensor_retain(tensor); // a parameter stays itself
    } else {
        TRY(tensor_cast(tensor, annotation->dtype, &cast));
    }
    Shape actual = tensor_shape(cast);
    bool same = actual.rank == shape.rank &&
                memcmp(actual.dims, shape.dims, sizeof(int64_t) * (size_t)shape.rank) == 0;
    Status status = same ? STATUS_OK : tensor_reshape(cast, &shape, out);
    if (same)
        *out = cast;
    else
        tensor_release(cast);
    return status;
}

Value annotation_convert(Frame *frame, const Annotation *annotation, Value value,
                         const char *what) {
    bool convert = annotation->kind == ANNOTATION_TENSOR &&
                   !(annotation->optional && value.kind == VALUE_NONE);
    Status status = STATUS_OK;
    if (convert) {
        Tensor *given, *converted;
        status = value_to_tensor(value, what, &given);
        if (status == STATUS_OK) {
            status = convert_tensor(frame, annotation, given, what, &converted);
            tensor_release(given);
        }
        if (status == STATUS_OK) {
            value_release(value);
            return value_tensor(converted);
        }
    } else {
        status = annotation_check(frame, annotation, &value, what);
    }
    if (status == STATUS_OK) return value;
    value_release(value);
    return value_fail();
}

bool annotation_number_dtype(const Annotation *annotation, DType *dtype) {
    if (annotation->kind != ANNOTATION_WORD) return false;
    *dtype = annotation->dtype;
    if (!annotation->any_dtype) return true;
    *dtype = annotation->word == TYPE_WORD_INT    ? DTYPE_INT64
             : annotation->word == TYPE_WORD_BOOL ? DTYPE_BOOL
                                                  : DTYPE_FLOAT32;
    return annotation->word == TYPE_WORD_FLOAT || *dtype != DTYPE_FLOAT32;
}

Status annotation_shape(Frame *frame, const Annotation *annotation, const char *what, Shape *shape,
                        DType *dtype) {
    *shape = (Shape){.rank = 0};
    if (annotation_number_dtype(annotation, dtype)) return STATUS_OK;
    if (annotation->kind != ANNOTATION_TENSOR) {
        fail(STATUS_TYPE, "%s is declared as %s without a value", what, annotation->text);
        return fail_help("a dtype with sizes, as in float32[2, 3], makes it zeros");
    }
    *shape = (Shape){.rank = annotation->rank};
    *dtype = annotation->dtype;
    for (int i = 0; i < annotation->rank; i++) {
        shape->dims[i] = dimension_wanted(frame, annotation, i, shape);
        if (shape->dims[i] < 0)
            return fail(STATUS_SHAPE,
                        "%s is declared as %s without a value, so its sizes must be known", what,
                        annotation->text);
    }
    return STATUS_OK;
}
