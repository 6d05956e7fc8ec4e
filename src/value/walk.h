// Goes through what a value is made of: lists, tuples, dictionaries and structs, with the way to
// each part as its name: "layers.0.w".
#ifndef VALUE_WALK_H
#define VALUE_WALK_H

#include "base/key_index.h"
#include "tensor/view.h"
#include "value/value.h"

// A part that is not a container. It may be replaced: its reference is the visitor's to give and
// take.
typedef Status (*ValueVisit)(void *context, const char *name, Value *part);
// Visits the parts of *value in order, or *value itself; `name` ("" for none) is where names begin.
// STATUS_DEPTH where it is nested too deeply.
Status value_walk(Value *value, const char *name, ValueVisit visit, void *context) MUST_USE;

// Parameters with their names.
typedef struct NamedParameter {
    char *name; // owned
    Tensor *tensor;
} NamedParameter;
typedef struct ParameterList {
    NamedParameter *items;
    size_t count, capacity;
    KeyIndex *tensors, *names; // where each is; NULL without parameters
} ParameterList;
// Adds the parameters in a value that the list has not yet, new references.
Status parameters_add(ParameterList *list, const char *name, Value value) MUST_USE;
// The name of a parameter, borrowed; NULL when it is not among them.
const char *parameters_name(const ParameterList *list, const Tensor *tensor);
Tensor *parameters_find(const ParameterList *list, const char *name);
// The parameters in a value, new references; STATUS_VALUE "whose: what holds no parameter" without
// any.
Status parameters_of(Value value, const char *whose, const char *what, TensorArray *out) MUST_USE;
void parameters_free(ParameterList *list);

#endif
