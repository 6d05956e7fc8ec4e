// What a rule of shapes is told of a call, and how it reads it.
#ifndef CHECK_INFER_SHAPE_RULE_H
#define CHECK_INFER_SHAPE_RULE_H

#include "check/infer/infer.h"

typedef struct RuleCall {
    Inference *in;
    const Builtin *row;
    const char *name;                      // as messages call it
    const Operand *values[PARAMETERS_MAX]; // by parameter; NULL: not given
    const Operand *rest;                   // of a parameter that takes all the rest
    size_t rest_count;
} RuleCall;

// As Builtin.id counts the rows of functions.def.
typedef enum FunctionRowId {
#define FUNCTION(id, signature, section, doc) FUNCTION_ID_##id,
#include "catalog/functions.def"
#undef FUNCTION
    FUNCTION_ID_COUNT
} FunctionRowId;

// Sets *out, or leaves it where nothing can be told; fails as the operation certainly would.
typedef Status (*ShapeRule)(const RuleCall *call, const Fact **out);

// The fact of the parameter of that name; NULL when it is not given (or none, for an optional one).
const Fact *rule_argument(const RuleCall *call, const char *name);
// The shape of a tensor argument, a number being of rank 0; false when it is not known. *given: it
// is there at all.
bool rule_tensor(const RuleCall *call, const char *name, TensorType *out, bool *given);
bool rule_type(const Fact *fact, TensorType *out);
// An integer; `fallback` when it is not given. SIZE_UNKNOWN: not known.
int64_t rule_size(const RuleCall *call, const char *name, int64_t fallback);
// The sizes of a list, tuple or tensor of numbers; false when how many is not known. A number alone
// is one size.
bool rule_sizes(const RuleCall *call, const Fact *fact, Shape *out);
// The dtype argument, or `fallback`; DTYPE_COUNT when it is not known.
DType rule_dtype(const RuleCall *call, DType fallback);
// true or false; -1 when it is not known.
int rule_flag(const RuleCall *call, const char *name, bool fallback);
Status rule_give(const RuleCall *call, DType dtype, const Shape *shape, const Fact **out);
DType rule_floating(DType dtype);

// Whether the function that a row calls takes as many arguments as the row gives it (callbacks.c).
void infer_callback(const RuleCall *call);

// The rule of a row; NULL when it has none.
ShapeRule shape_rule_find(const Builtin *row);

#define OP_MAP(id, ...)
#define OP_RUN(id, outputs, shape, ...)                                                            \
    Status shape_rule_##shape(const RuleCall *call, const Fact **out);
#define OP_OVERLOAD(id, name, outputs, shape, ...)                                                 \
    Status shape_rule_##shape(const RuleCall *call, const Fact **out);
#include "catalog/ops.def"
#define SHAPE_FUNCTION(id, rule) Status shape_rule_##rule(const RuleCall *call, const Fact **out);
#include "catalog/shapes.def"
#undef SHAPE_FUNCTION

static inline void shape_remove_dim(Shape *shape, int dim) {
    ASSERT(dim >= 0 && dim < shape->rank);
    for (int i = dim; i + 1 < shape->rank; i++) shape->dims[i] = shape->dims[i + 1];
    shape->rank--;
}

#endif
