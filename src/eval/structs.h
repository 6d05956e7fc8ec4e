// Struct types at run time: fields with their annotations and defaults, methods, drop.
#ifndef EVAL_STRUCTS_H
#define EVAL_STRUCTS_H

#include "eval/code.h"

// A function of an impl. `arguments` are what the impl says of the struct's type parameters, NULL
// where it says nothing: it holds for values whose fields fit them.
typedef struct MethodCode {
    const char *name;
    FunctionCode *function;
    const FunctionNode *node;
    const Annotation **arguments;
    size_t argument_count;
    const Node *impl;
} MethodCode;

typedef struct FieldCode {
    const Annotation *type;
    const char *what;     // "field x of Point"
    const Code *fallback; // NULL: must be given
    bool learnable;
    int parameter; // the type parameter that is the field's type, or its dtype; -1: none
} FieldCode;

typedef struct StructCode {
    StructType type;
    FieldCode *fields;
    int fallback_slots;  // of the frame that defaults are evaluated in
    MethodCode *methods; // arena, grown by each impl
    size_t method_count, method_capacity;
    bool specialised; // an impl does not hold for every value
    const FunctionCode *drop;
} StructCode;

// The type of a struct's binding, made when first asked for; lower_types_define fills it.
StructCode *struct_of_binding(Lowering *lowering, Binding *binding);
// Gives the type another id: what codes remember of it does not hold any more.
void struct_renew(StructCode *code);
// Converts a value (taken) as the field's annotation says.
Value struct_convert_field(const StructType *type, int field, Value value);
bool struct_field_learns(const StructType *type, int field); // declared as learnable
// "Point has no field `z`", with the nearest; returns VALUE_FAIL.
Value struct_fail_field(const StructType *type, const char *name);
// Runs an instance's drop; its errors are shown on standard error.
void struct_drop(Instance *instance);

#endif
