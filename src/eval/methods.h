// Methods of structs, and functions of their impls.
#ifndef EVAL_METHODS_H
#define EVAL_METHODS_H

#include "eval/structs.h"

// Declares the functions of an impl.
void struct_add_impl(Lowering *lowering, const Node *impl);
// The method of that name whose impl fits the instance most closely. NULL: there is none; unclear:
// none fits, or two fit equally.
const FunctionCode *struct_find_method(const Instance *instance, const char *name, bool *unclear);
// A function of the type itself; `path`, which may be NULL, says its types: Box<int>::new. NULL and
// unclear as above.
const FunctionCode *struct_find_function(const StructType *type, const char *name, const Node *path,
                                         bool *unclear);

#endif
