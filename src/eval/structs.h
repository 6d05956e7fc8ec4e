// Struct types at run time: fields with their annotations and defaults, methods, drop.
#ifndef EVAL_STRUCTS_H
#define EVAL_STRUCTS_H

#include "eval/code.h"

typedef struct MethodCode {
    const char *name;
    FunctionCode *function;
    const FunctionNode *node;
} MethodCode;

typedef struct FieldCode {
    const Annotation *type;
    const char *what;     // "field x of Point"
    const Code *fallback; // NULL: must be given
    bool learnable;
} FieldCode;

typedef struct StructCode {
    StructType type;
    FieldCode *fields;
    int fallback_slots;  // of the frame that defaults are evaluated in
    MethodCode *methods; // arena, grown by each impl
    size_t method_count, method_capacity;
    const FunctionCode *drop;
} StructCode;

// The type of a struct's binding, made when first asked for; lower_types_define fills it.
StructCode *struct_of_binding(Lowering *lowering, Binding *binding);
const FunctionCode *struct_find_method(const StructType *type, const char *name);
// Converts a value (taken) as the field's annotation says.
Value struct_convert_field(const StructType *type, int field, Value value);
// "Point has no field `z`", with the nearest; returns VALUE_FAIL.
Value struct_fail_field(const StructType *type, const char *name);
// Runs an instance's drop; its errors are shown on standard error.
void struct_drop(Instance *instance);

#endif
