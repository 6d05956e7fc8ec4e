// What is known of a value before anything runs: its kind, of a tensor dtype and shape as far as
// they can be told, of a plain number the number. Facts never change and live in the inference's
// arena. What is not certain is not in a fact.
#ifndef CHECK_INFER_FACT_H
#define CHECK_INFER_FACT_H

#include "check/check.h"
#include "shape/shape.h"

typedef enum FactKind {
    FACT_ANY, // nothing is known
    FACT_NONE,
    FACT_INT,
    FACT_FLOAT,
    FACT_BOOL,
    FACT_STRING,
    FACT_TENSOR,
    FACT_LIST,
    FACT_TUPLE,
    FACT_DICT,
    FACT_RANGE,
    FACT_STRUCT,
    FACT_FUNCTION, // of the program
    FACT_BUILTIN,
    FACT_TYPE, // a struct's name as a value
    FACT_DTYPE,
    FACT_KINDS
} FactKind;

typedef struct Fact Fact;
struct Fact {
    FactKind kind;
    // INT, FLOAT, BOOL, STRING: the value is known. TENSOR: the rank is known. LIST, TUPLE, STRUCT:
    // the members are known, of LIST and STRUCT while `epoch` is that of the inference, because
    // they can be changed.
    bool known;
    unsigned epoch;
    Span made; // where it was made; {0, 0}: not known
    union {
        int64_t integer; // INT: a size (shape.h), so that a name goes along; BOOL
        double number;
        struct {
            const char *bytes;
            size_t length;
        } string;
        struct {
            TensorType type;
            const int64_t *values; // rank 0 and 1: the numbers as sizes, or NULL
        } tensor;
        struct {
            const Fact **items;
            size_t count;
        } list;
        struct {
            int64_t low, high; // sizes
            bool gaps;         // not every int between them may be in it
        } range;
        struct {
            Binding *binding;
            const Fact **fields; // in the order of the declaration
        } structure;
        struct {
            FunctionNode *node;
            unsigned activation; // of the call that made it
        } function;
        const Builtin *builtin;
        DType dtype;
    } as;
};

extern const Fact fact_any, fact_none;
extern const Fact fact_unset; // as fact_any, of a variable that certainly has no value yet

// New facts; `made` is left for the caller.
Fact *fact_new(Arena *arena, FactKind kind);
const Fact *fact_kind(Arena *arena, FactKind kind); // nothing but the kind
const Fact *fact_int(Arena *arena, int64_t size);
const Fact *fact_bool(Arena *arena, bool value);
const Fact *fact_tensor(Arena *arena, DType dtype, const Shape *shape); // shape NULL: any rank
const Fact *fact_made(Arena *arena, const Fact *fact, Span made);       // the same, made elsewhere

// What holds whichever of the two it is.
const Fact *fact_join(Arena *arena, const Fact *x, const Fact *y);
bool fact_equal(const Fact *x, const Fact *y);

static inline bool fact_has_shape(const Fact *fact) {
    return fact->kind == FACT_TENSOR && fact->known;
}
// A tensor that certainly has dimensions.
static inline bool fact_is_array(const Fact *fact) {
    return fact_has_shape(fact) && fact->as.tensor.type.shape.rank > 0;
}
static inline bool fact_is_number(const Fact *fact) {
    return fact->kind == FACT_INT || fact->kind == FACT_FLOAT || fact->kind == FACT_BOOL;
}

// "tensor", "int": the word for a value of that kind.
const char *fact_kind_name(const Fact *fact);
// As messages name a value: float32[2, 3], 5, "abc", a list.
void fact_describe(const Fact *fact, Text *out);

#endif
