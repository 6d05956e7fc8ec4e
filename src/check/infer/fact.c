// Facts: made, joined, compared, put into words.
#include "check/infer/fact.h"

#include "base/number.h"

const Fact fact_any = {.kind = FACT_ANY};
const Fact fact_none = {.kind = FACT_NONE, .known = true};
const Fact fact_unset = {.kind = FACT_ANY};

Fact *fact_new(Arena *arena, FactKind kind) {
    ASSERT((unsigned)kind < FACT_KINDS);
    Fact *fact = arena_allocate(arena, sizeof *fact);
    *fact = (Fact){.kind = kind};
    return fact;
}

const Fact *fact_kind(Arena *arena, FactKind kind) {
    ASSERT((unsigned)kind < FACT_KINDS);
    if (kind == FACT_ANY) return &fact_any;
    if (kind == FACT_NONE) return &fact_none;
    Fact *fact = fact_new(arena, kind);
    if (kind == FACT_INT) fact->as.integer = SIZE_UNKNOWN;
    if (kind == FACT_TENSOR) fact->as.tensor.type.dtype = DTYPE_COUNT;
    if (kind == FACT_RANGE) fact->as.range.low = fact->as.range.high = SIZE_UNKNOWN;
    return fact;
}

const Fact *fact_int(Arena *arena, int64_t size) {
    Fact *fact = fact_new(arena, FACT_INT);
    fact->as.integer = size;
    fact->known = size_is_known(size);
    return fact;
}

const Fact *fact_bool(Arena *arena, bool value) {
    Fact *fact = fact_new(arena, FACT_BOOL);
    fact->as.integer = value;
    fact->known = true;
    return fact;
}

const Fact *fact_tensor(Arena *arena, DType dtype, const Shape *shape) {
    ASSERT(!shape || (shape->rank >= 0 && shape->rank <= RANK_MAX));
    Fact *fact = fact_new(arena, FACT_TENSOR);
    fact->as.tensor.type.dtype = dtype;
    if (shape) {
        fact->as.tensor.type.shape = *shape;
        fact->known = true;
    }
    return fact;
}

const Fact *fact_made(Arena *arena, const Fact *fact, Span made) {
    if (fact->kind == FACT_ANY) return fact;
    Fact *copy = fact_new(arena, fact->kind);
    *copy = *fact;
    copy->made = made;
    return copy;
}

// --- comparing

static bool members_equal(const Fact *x, const Fact *y) {
    ASSERT(x->kind == y->kind);
    if (x->as.list.count != y->as.list.count) return false;
    for (size_t i = 0; i < x->as.list.count; i++)
        if (!fact_equal(x->as.list.items[i], y->as.list.items[i])) return false;
    return true;
}

static bool fields_equal(const Fact *x, const Fact *y) {
    ASSERT(x->kind == FACT_STRUCT && y->kind == FACT_STRUCT);
    if (x->as.structure.binding != y->as.structure.binding) return false;
    if (!x->known) return true;
    size_t count = x->as.structure.binding->declaration->as.structure.field_count;
    for (size_t i = 0; i < count; i++)
        if (!fact_equal(x->as.structure.fields[i], y->as.structure.fields[i])) return false;
    return true;
}

static bool tensors_equal(const Fact *x, const Fact *y) {
    ASSERT(x->kind == FACT_TENSOR && y->kind == FACT_TENSOR);
    const TensorType *a = &x->as.tensor.type, *b = &y->as.tensor.type;
    if (a->dtype != b->dtype) return false;
    if (!x->known) return true;
    if (a->shape.rank != b->shape.rank || x->as.tensor.values != y->as.tensor.values) return false;
    for (int i = 0; i < a->shape.rank; i++)
        if (a->shape.dims[i] != b->shape.dims[i]) return false;
    return true;
}

bool fact_equal(const Fact *x, const Fact *y) {
    if (x == y) return true;
    if (x->kind != y->kind || x->known != y->known || x->epoch != y->epoch) return false;
    switch (x->kind) {
    case FACT_INT:
    case FACT_BOOL: return x->as.integer == y->as.integer;
    case FACT_FLOAT: return !x->known || x->as.number == y->as.number;
    case FACT_STRING:
        return !x->known ||
               (x->as.string.length == y->as.string.length &&
                memcmp(x->as.string.bytes, y->as.string.bytes, x->as.string.length) == 0);
    case FACT_TENSOR: return tensors_equal(x, y);
    case FACT_LIST:
    case FACT_TUPLE: return !x->known || members_equal(x, y);
    case FACT_RANGE:
        return x->as.range.low == y->as.range.low && x->as.range.high == y->as.range.high &&
               x->as.range.gaps == y->as.range.gaps;
    case FACT_STRUCT: return fields_equal(x, y);
    case FACT_FUNCTION:
        return x->as.function.node == y->as.function.node &&
               x->as.function.activation == y->as.function.activation;
    case FACT_BUILTIN: return x->as.builtin == y->as.builtin;
    case FACT_DTYPE: return x->as.dtype == y->as.dtype;
    case FACT_TYPE: return x->as.structure.binding == y->as.structure.binding;
    default: return true;
    }
}

// --- joining

static const Fact *join_tensors(Arena *arena, const Fact *x, const Fact *y) {
    ASSERT(x->kind == FACT_TENSOR && y->kind == FACT_TENSOR);
    const TensorType *a = &x->as.tensor.type, *b = &y->as.tensor.type;
    DType dtype = a->dtype == b->dtype ? a->dtype : DTYPE_COUNT;
    if (!x->known || !y->known || a->shape.rank != b->shape.rank)
        return fact_tensor(arena, dtype, NULL);
    Shape shape = a->shape;
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] != b->shape.dims[i]) shape.dims[i] = SIZE_UNKNOWN;
    return fact_tensor(arena, dtype, &shape);
}

static const Fact *join_tuples(Arena *arena, const Fact *x, const Fact *y) {
    ASSERT(x->kind == FACT_TUPLE && y->kind == FACT_TUPLE);
    size_t count = x->as.list.count;
    if (!x->known || !y->known || y->as.list.count != count) return fact_kind(arena, FACT_TUPLE);
    Fact *joined = fact_new(arena, FACT_TUPLE);
    joined->known = true;
    joined->as.list.count = count;
    joined->as.list.items = arena_allocate(arena, count * sizeof(Fact *));
    for (size_t i = 0; i < count; i++)
        joined->as.list.items[i] = fact_join(arena, x->as.list.items[i], y->as.list.items[i]);
    return joined;
}

static const Fact *join_structs(Arena *arena, const Fact *x, const Fact *y) {
    ASSERT(x->kind == FACT_STRUCT && y->kind == FACT_STRUCT);
    if (x->as.structure.binding != y->as.structure.binding) return &fact_any;
    Fact *joined = fact_new(arena, FACT_STRUCT);
    joined->as.structure.binding = x->as.structure.binding;
    return joined;
}

const Fact *fact_join(Arena *arena, const Fact *x, const Fact *y) {
    if (x == &fact_unset || y == &fact_unset) return x == y ? x : &fact_any;
    if (fact_equal(x, y)) return x;
    if (x->kind != y->kind) return &fact_any;
    const Fact *joined;
    switch (x->kind) {
    case FACT_TENSOR: joined = join_tensors(arena, x, y); break;
    case FACT_TUPLE: joined = join_tuples(arena, x, y); break;
    case FACT_STRUCT: joined = join_structs(arena, x, y); break;
    case FACT_FUNCTION:
    case FACT_BUILTIN:
    case FACT_DTYPE:
    case FACT_TYPE: return &fact_any;
    default: joined = fact_kind(arena, x->kind); break;
    }
    return x->made.begin == y->made.begin ? fact_made(arena, joined, x->made) : joined;
}

// --- words

static const char *const kind_names[FACT_KINDS] = {
    [FACT_ANY] = "value",         [FACT_NONE] = "none",        [FACT_INT] = "int",
    [FACT_FLOAT] = "float",       [FACT_BOOL] = "bool",        [FACT_STRING] = "string",
    [FACT_TENSOR] = "tensor",     [FACT_LIST] = "list",        [FACT_TUPLE] = "tuple",
    [FACT_DICT] = "dict",         [FACT_RANGE] = "range",      [FACT_STRUCT] = "struct",
    [FACT_FUNCTION] = "function", [FACT_BUILTIN] = "function", [FACT_TYPE] = "struct type",
    [FACT_DTYPE] = "dtype",
};

const char *fact_kind_name(const Fact *fact) {
    ASSERT((unsigned)fact->kind < FACT_KINDS);
    if (fact->kind == FACT_STRUCT) return fact->as.structure.binding->word.text;
    return kind_names[fact->kind];
}

static void describe_known(const Fact *fact, Text *out) {
    enum { SHOWN_MAX = 30 };
    ASSERT(fact->known);
    switch (fact->kind) {
    case FACT_INT: size_append(out, fact->as.integer); return;
    case FACT_BOOL: text_append_string(out, fact->as.integer ? "true" : "false"); return;
    case FACT_FLOAT: number_append_float(out, fact->as.number); return;
    case FACT_STRING: {
        size_t length = fact->as.string.length;
        bool cut = length > SHOWN_MAX;
        text_format(out, "\"%.*s%s\"", (int)(cut ? SHOWN_MAX : length), fact->as.string.bytes,
                    cut ? "..." : "");
        return;
    }
    default:
        ASSERT(fact->kind == FACT_TENSOR);
        text_append_string(out,
                           type_name(fact->as.tensor.type.dtype, &fact->as.tensor.type.shape).text);
    }
}

void fact_describe(const Fact *fact, Text *out) {
    bool valued = fact->kind == FACT_INT || fact->kind == FACT_BOOL || fact->kind == FACT_FLOAT ||
                  fact->kind == FACT_STRING || fact->kind == FACT_TENSOR;
    if (fact->kind == FACT_NONE) {
        text_append_string(out, "none");
    } else if (fact->known && valued) {
        describe_known(fact, out);
    } else if ((fact->kind == FACT_LIST || fact->kind == FACT_TUPLE) && fact->known) {
        text_format(out, "a %s of %zu value%s", fact_kind_name(fact), fact->as.list.count,
                    fact->as.list.count == 1 ? "" : "s");
    } else {
        const char *name = fact_kind_name(fact);
        text_format(out, "%s %s", text_article(name), name);
    }
}
