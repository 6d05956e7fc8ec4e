// Annotations and facts: what certainly does not fit, and what a value is known to be once it has
// passed one.
#include <math.h>

#include "check/infer/infer.h"
#include "check/types.h"

// The size that a dimension must have; SIZE_UNKNOWN when it may be anything so far.
static int64_t dimension_wanted(Inference *in, const TypeNode *type, size_t index,
                                const Shape *actual) {
    ASSERT(index < type->dimension_count);
    const Dimension *dimension = &type->dimensions[index];
    if (dimension->kind == DIMENSION_NUMBER) return dimension->number;
    if (dimension->kind == DIMENSION_ANY) return SIZE_UNKNOWN;
    if (dimension->variable) {
        const Fact *fact = infer_read(in, dimension->variable);
        if (fact->kind == FACT_INT) return fact->as.integer;
        if (fact->kind == FACT_ANY) return SIZE_UNKNOWN;
    }
    for (size_t i = 0; i < index; i++)
        if (type->dimensions[i].kind == DIMENSION_NAME &&
            strcmp(type->dimensions[i].name.text, dimension->name.text) == 0)
            return actual->dims[i];
    if (!dimension->binding) return SIZE_UNKNOWN;
    const Fact *bound = infer_read(in, dimension->binding);
    return bound->kind == FACT_INT ? bound->as.integer : SIZE_UNKNOWN;
}

static void dimension_bind(Inference *in, const Dimension *dimension, int64_t size) {
    if (dimension->kind != DIMENSION_NAME || !dimension->binding) return;
    const Fact *bound = infer_read(in, dimension->binding);
    if (bound->kind == FACT_INT && (size_is_known(bound->as.integer) || !size_is_known(size)))
        return;
    infer_write(in, dimension->binding, fact_int(&in->arena, size));
}

// The size of a dimension that is not known but must be the same wherever its name stands.
static int64_t dimension_named(const Dimension *dimension) {
    return dimension->kind == DIMENSION_NAME ? size_named(dimension->name.text) : SIZE_UNKNOWN;
}

static const char *type_text(Inference *in, const TypeNode *type) {
    size_t length;
    const char *text = source_text(type->span, &length);
    return arena_copy_string(&in->arena, text, length);
}

static bool type_dtype(const TypeNode *type, DType *out) {
    *out = DTYPE_COUNT;
    return dtype_find(type->name.text, type->name.length, out);
}

static bool same_family(DType declared, DType actual) {
    DTypeKind kind = dtype_kind(actual), wanted = dtype_kind(declared);
    bool floating = kind == DTYPE_KIND_FLOAT || kind == DTYPE_KIND_QUANT;
    if (wanted == DTYPE_KIND_FLOAT || wanted == DTYPE_KIND_QUANT) return floating;
    return kind == wanted;
}

typedef struct Checked {
    const TypeNode *type;
    const Fact *fact;
    const char *what;
    Span span;
} Checked;

static const Fact *misfit(Inference *in, const Checked *checked) {
    Operand operand = {.fact = checked->fact};
    infer_report(in, checked->span, &operand, checked->fact->kind == FACT_TENSOR);
    return checked->fact;
}

static const Fact *misfit_of_kind(Inference *in, const Checked *checked) {
    SCOPED_TEXT(value);
    fact_describe(checked->fact, &value);
    if (checked->fact->kind == FACT_NONE)
        fail(STATUS_TYPE, "%s must be %s, but there is no value", checked->what,
             type_text(in, checked->type));
    else
        fail(STATUS_TYPE, "%s must be %s, but it is %s", checked->what,
             type_text(in, checked->type), text_get(&value));
    return misfit(in, checked);
}

static void fail_dimension(Inference *in, const Checked *checked, size_t index, int64_t wanted) {
    ASSERT(index < checked->type->dimension_count);
    ASSERT(checked->fact->kind == FACT_TENSOR);
    const Dimension *dimension = &checked->type->dimensions[index];
    const TensorType *actual = &checked->fact->as.tensor.type;
    SCOPED_TEXT(why);
    if (dimension->kind == DIMENSION_NAME)
        text_format(&why, " and %s is %lld", dimension->name.text, (long long)wanted);
    fail(STATUS_SHAPE, "%s must be %s, but it is %s: dimension %zu is %lld%s", checked->what,
         type_text(in, checked->type), tensor_type_text(actual).text, index,
         (long long)actual->shape.dims[index], text_get(&why));
    misfit(in, checked);
}

// A tensor where one of the type is wanted: rank, sizes, the family of the dtype.
static const Fact *refine_shaped(Inference *in, const Checked *checked, DType dtype) {
    ASSERT(fact_has_shape(checked->fact));
    const TypeNode *type = checked->type;
    const TensorType *actual = &checked->fact->as.tensor.type;
    int rank = actual->shape.rank;
    if (dtype != DTYPE_COUNT && actual->dtype != DTYPE_COUNT &&
        !same_family(dtype, actual->dtype)) {
        fail(STATUS_DTYPE, "%s must be %s, but it is %s", checked->what, type_text(in, type),
             tensor_type_text(actual).text);
        return misfit(in, checked);
    }
    if (rank != (int)type->dimension_count) {
        fail(STATUS_SHAPE, "%s must be %s, but it is %s: it has %d dimension%s, not %zu",
             checked->what, type_text(in, type), tensor_type_text(actual).text, rank,
             rank == 1 ? "" : "s", type->dimension_count);
        return misfit(in, checked);
    }
    Shape shape = actual->shape;
    for (int i = 0; i < rank; i++) {
        int64_t wanted = dimension_wanted(in, type, (size_t)i, &shape);
        if (sizes_differ(wanted, shape.dims[i])) {
            fail_dimension(in, checked, (size_t)i, wanted);
            return checked->fact;
        }
        if (shape.dims[i] == SIZE_UNKNOWN)
            shape.dims[i] = wanted != SIZE_UNKNOWN ? wanted : dimension_named(&type->dimensions[i]);
        dimension_bind(in, &type->dimensions[i], shape.dims[i]);
    }
    DType known = actual->dtype == DTYPE_COUNT ? dtype : actual->dtype;
    if (shape_is_known(&actual->shape) && known == actual->dtype) return checked->fact;
    const Fact *refined = fact_tensor(&in->arena, known, &shape);
    return fact_made(&in->arena, refined, checked->fact->made);
}

bool annotation_type(Inference *in, const TypeNode *type, TensorType *out) {
    if (!type || type->kind != TYPE_TENSOR || type->optional || type->dimension_count > RANK_MAX)
        return false;
    type_dtype(type, &out->dtype);
    out->shape = (Shape){.rank = (int)type->dimension_count};
    for (size_t i = 0; i < type->dimension_count; i++) {
        int64_t wanted = dimension_wanted(in, type, i, &out->shape);
        out->shape.dims[i] =
            wanted != SIZE_UNKNOWN ? wanted : dimension_named(&type->dimensions[i]);
    }
    return true;
}

static const Fact *refine_tensor(Inference *in, const Checked *checked) {
    const Fact *fact = checked->fact;
    DType dtype;
    type_dtype(checked->type, &dtype);
    if (fact_has_shape(fact)) return refine_shaped(in, checked, dtype);
    bool number = fact->kind == FACT_INT || fact->kind == FACT_FLOAT;
    bool scalar = checked->type->dimension_count == 0;
    if (scalar && (number || fact->kind == FACT_ANY)) return fact;
    if (fact->kind == FACT_ANY || fact->kind == FACT_TENSOR) {
        TensorType declared;
        if (!annotation_type(in, checked->type, &declared)) return fact;
        for (int i = 0; i < declared.shape.rank; i++)
            dimension_bind(in, &checked->type->dimensions[i], declared.shape.dims[i]);
        const Fact *refined = fact_tensor(&in->arena, declared.dtype, &declared.shape);
        Span made = fact->made.begin ? fact->made : checked->type->span;
        return fact_made(&in->arena, refined, made);
    }
    return misfit_of_kind(in, checked);
}

// What a word takes next to values of which nothing is known.
static bool word_accepts(TypeWord word, const Fact *fact) {
    bool tensor = fact->kind == FACT_TENSOR, array = fact_is_array(fact);
    bool number = fact->kind == FACT_INT || fact->kind == FACT_FLOAT || (tensor && !array);
    switch (word) {
    case TYPE_WORD_INT:
    case TYPE_WORD_FLOAT: return number;
    case TYPE_WORD_BOOL: return fact->kind == FACT_BOOL || (tensor && !array);
    case TYPE_WORD_ENTITY:
    case TYPE_WORD_STRING: return fact->kind == FACT_STRING;
    case TYPE_WORD_TENSOR: return tensor || number;
    case TYPE_WORD_LIST: return fact->kind == FACT_LIST || tensor;
    case TYPE_WORD_TUPLE: return fact->kind == FACT_TUPLE;
    case TYPE_WORD_DICT: return fact->kind == FACT_DICT;
    case TYPE_WORD_RANGE: return fact->kind == FACT_RANGE;
    case TYPE_WORD_FUNCTION:
        return fact->kind == FACT_FUNCTION || fact->kind == FACT_BUILTIN || fact->kind == FACT_TYPE;
    case TYPE_WORD_MODEL:
    case TYPE_WORD_TOKENIZER:
    case TYPE_WORD_CACHE:
    case TYPE_WORD_BUFFER: return false; // of which there are no facts
    default: return true;
    }
}

static FactKind word_kind(TypeWord word) {
    static const FactKind kinds[] = {
        [TYPE_WORD_STRING] = FACT_STRING, [TYPE_WORD_TUPLE] = FACT_TUPLE,
        [TYPE_WORD_DICT] = FACT_DICT,     [TYPE_WORD_RANGE] = FACT_RANGE,
        [TYPE_WORD_INT] = FACT_INT,       [TYPE_WORD_ENTITY] = FACT_STRING,
        [TYPE_WORD_STRUCT] = FACT_ANY};
    return kinds[word];
}

static const Fact *refine_word(Inference *in, const Checked *checked, bool declares) {
    TypeWord word;
    const Fact *fact = checked->fact;
    if (!type_word_find(checked->type->name.text, &word)) return fact;
    if (fact->kind == FACT_ANY) {
        FactKind kind = word_kind(word);
        return kind == FACT_ANY
                   ? fact
                   : fact_made(&in->arena, fact_kind(&in->arena, kind), checked->type->span);
    }
    if (word == TYPE_WORD_INT && fact->kind == FACT_FLOAT && fact->known &&
        fact->as.number != trunc(fact->as.number)) {
        SCOPED_TEXT(value);
        fact_describe(fact, &value);
        fail(STATUS_TYPE, "%s must be an integer, but it is %s", checked->what, text_get(&value));
        return misfit(in, checked);
    }
    if (word_accepts(word, fact)) {
        bool same = word != TYPE_WORD_INT || fact->kind == FACT_INT;
        if (word == TYPE_WORD_FLOAT && fact->kind == FACT_INT)
            return fact_kind(&in->arena, FACT_FLOAT);
        if (word == TYPE_WORD_FLOAT && fact->kind == FACT_TENSOR) return &fact_any; // cast perhaps
        return same && !(declares && fact->kind == FACT_TENSOR)
                   ? fact
                   : (same ? &fact_any : fact_kind(&in->arena, FACT_INT));
    }
    return misfit_of_kind(in, checked);
}

// What a name that the program declares stands for.
static const Fact *fact_of_binding(Inference *in, Binding *binding) {
    ASSERT(binding_is_entity_type(binding) || binding->kind == BINDING_STRUCT);
    if (binding_is_entity_type(binding)) return fact_kind(&in->arena, FACT_STRING);
    Fact *instance = fact_new(&in->arena, FACT_STRUCT);
    instance->as.structure.binding = binding;
    return instance;
}

static bool fact_fits_binding(const Fact *fact, const Binding *binding) {
    if (binding_is_entity_type(binding)) return fact->kind == FACT_STRING;
    return fact->kind == FACT_STRUCT && fact->as.structure.binding == binding;
}

// A struct, an entity type or a tuple.
static const Fact *refine_other(Inference *in, const Checked *checked) {
    const Fact *fact = checked->fact;
    const TypeNode *type = checked->type;
    if (fact->kind == FACT_ANY) return fact;
    bool fits = type->kind == TYPE_TUPLE
                    ? fact->kind == FACT_TUPLE &&
                          (!fact->known || fact->as.list.count == type->argument_count)
                    : fact_fits_binding(fact, type->binding);
    return fits ? fact : misfit_of_kind(in, checked);
}

const Fact *annotation_refine(Inference *in, const TypeNode *type, const Fact *fact,
                              const char *what, Span span) {
    if (!type || type->optional) return fact;
    Checked checked = {type, fact, what, span};
    if (type->kind == TYPE_TENSOR) return refine_tensor(in, &checked);
    if (type->kind == TYPE_NAMED && type->binding && fact->kind == FACT_ANY)
        return fact_of_binding(in, type->binding);
    if (type->kind == TYPE_NAMED && !type->binding) return refine_word(in, &checked, false);
    return refine_other(in, &checked);
}

// The declared shape, where what the annotation leaves open takes the value's size or its place.
static bool shape_declared(Inference *in, const Checked *checked, Shape *out, bool *certain) {
    ASSERT(checked->type->kind == TYPE_TENSOR && checked->type->dimension_count <= RANK_MAX);
    const TypeNode *type = checked->type;
    const Shape *actual = &checked->fact->as.tensor.type.shape;
    int64_t known = 1, count = shape_count(actual);
    int open = -1, rank = (int)type->dimension_count;
    *out = (Shape){.rank = rank};
    *certain = size_is_known(count);
    for (int i = 0; i < rank; i++) {
        const Dimension *dimension = &type->dimensions[i];
        out->dims[i] = dimension_wanted(in, type, (size_t)i, out);
        bool variable =
            dimension->kind == DIMENSION_NAME && (dimension->variable || dimension->binding);
        if (out->dims[i] != SIZE_UNKNOWN) {
            known = size_multiply(known, out->dims[i]);
        } else if (variable) {
            *certain = false; // what it is bound to is not known here
        } else if (rank == actual->rank) {
            out->dims[i] = actual->dims[i];
            known = size_multiply(known, actual->dims[i]);
        } else if (open < 0) {
            open = i;
        } else {
            return false;
        }
    }
    if (!size_is_known(known)) *certain = false;
    if (!*certain) return true;
    if (open < 0) return known == count;
    if (known == 0 || count % known != 0) return false;
    out->dims[open] = count / known;
    return true;
}

const Fact *annotation_declare(Inference *in, const TypeNode *type, const Fact *fact,
                               const char *what, Span span) {
    if (!type || type->optional) return fact;
    Checked checked = {type, fact, what, span};
    if (type->kind == TYPE_NAMED && !type->binding) return refine_word(in, &checked, true);
    if (type->kind != TYPE_TENSOR) return refine_other(in, &checked);
    if (type->dimension_count > RANK_MAX) return fact;
    if (fact->kind == FACT_STRING || fact->kind == FACT_DICT || fact->kind == FACT_NONE ||
        fact->kind == FACT_STRUCT || fact->kind == FACT_FUNCTION) {
        SCOPED_TEXT(value);
        fact_describe(fact, &value);
        fail(STATUS_TYPE, "%s must be a tensor, but it is %s", what, text_get(&value));
        return misfit(in, &checked);
    }
    if (!fact_has_shape(fact)) {
        bool convertible = fact->kind == FACT_ANY || fact->kind == FACT_TENSOR;
        TensorType declared;
        if (!convertible || !annotation_type(in, type, &declared)) return &fact_any;
        return fact_made(&in->arena, fact_tensor(&in->arena, declared.dtype, &declared.shape),
                         span);
    }
    Shape shape;
    bool certain;
    if (!shape_declared(in, &checked, &shape, &certain)) {
        fail(STATUS_SHAPE, "%s is declared as %s, but its value is %s", what, type_text(in, type),
             tensor_type_text(&fact->as.tensor.type).text);
        return misfit(in, &checked);
    }
    for (size_t i = 0; i < type->dimension_count; i++)
        dimension_bind(in, &type->dimensions[i], shape.dims[i]);
    DType dtype;
    if (!type_dtype(type, &dtype)) dtype = fact->as.tensor.type.dtype;
    Span made = fact->made.begin ? fact->made : span;
    return fact_made(&in->arena, fact_tensor(&in->arena, dtype, &shape), made);
}
