// Lowered code: a tree of nodes that each know how to evaluate themselves, and the frames they run
// in. Private to the evaluator. Made from a checked program; it lives as long as its Interp.
//
// An eval returns a new reference. VALUE_FAIL means that the evaluation unwinds: for an error
// (frame->control is CONTROL_NONE, the words are in error_current()) or for break, continue and
// return (frame->control says which). Whoever sees it releases what it holds and passes it on.
#ifndef EVAL_CODE_H
#define EVAL_CODE_H

#include "base/source.h"
#include "check/check.h"
#include "eval/state.h"
#include "value/builtin.h"
#include "value/heap.h"

typedef struct Code Code;
typedef struct Frame Frame;
typedef struct FunctionCode FunctionCode;
typedef struct Annotation Annotation;
typedef Value (*Eval)(Frame *frame, const Code *code);

// The head of every node; each kind has a struct of its own that begins with it.
struct Code {
    Eval eval;
    Span span;
};

typedef enum Control { CONTROL_NONE, CONTROL_BREAK, CONTROL_CONTINUE, CONTROL_RETURN } Control;

struct Frame {
    Value *slots;
    Interp *interp;
    Function *closure; // borrowed; NULL where nothing is captured
    Control control;
    Value result; // of CONTROL_RETURN
};

// Codes know a slot by its distance in bytes, which spares its multiplication at each access.
static inline size_t slot_offset(int slot) {
    return (size_t)slot * sizeof(Value);
}
static inline Value *slot_at(const Frame *frame, size_t offset) {
    return (Value *)(void *)((char *)frame->slots + offset);
}

#define EVAL(frame, code) ((code)->eval((frame), (code)))

// The way out of a statement that goes on to the next by itself, where there is one.
static inline Value code_go_on(Frame *frame, const Code *next) {
    return next ? EVAL(frame, next) : value_none();
}

// A code that is read without a call where it is a plain local variable.
typedef struct OperandCode {
    const Code *code;
    ptrdiff_t local; // the offset of its slot, else -1
} OperandCode;
static inline Value eval_operand(Frame *frame, const OperandCode *operand) {
    if (operand->local < 0) return EVAL(frame, operand->code);
    Value value = *slot_at(frame, (size_t)operand->local);
    return LIKELY(value.kind != VALUE_ABSENT) ? value_retain(value) : EVAL(frame, operand->code);
}

typedef struct ParameterCode {
    const char *name, *what; // what: "parameter x of fn f"
    const Annotation *type;  // NULL when not annotated
    const Code *fallback;    // NULL: required
    bool captured;
} ParameterCode;

// Where a closure takes a captured variable from when it is made.
typedef enum CaptureFrom { CAPTURE_SLOT, CAPTURE_CELL, CAPTURE_SELF } CaptureFrom;
typedef struct CaptureCode {
    CaptureFrom from;
    int index;
} CaptureCode;

struct FunctionCode {
    const FunctionNode *node;
    const char *name;        // NULL for a lambda
    const char *title;       // for traces: "fn layer", "main", "a lambda"
    const char *result_what; // "the result of fn layer"
    const Code *body;
    int parameter_count, slot_count, required_count;
    unsigned room; // for a call's slots: as many, at least one
    bool plain;    // no annotations, no defaults, no captured parameters
    ParameterCode *parameters;
    const Annotation *result; // NULL when nothing is declared
    CaptureCode *captures;
    int capture_count;
    Value value; // the function itself where it captures nothing, else ABSENT
};

// The making of code from one file.
typedef struct Lowering {
    Interp *interp;
    Program *program;
    Arena *arena;                 // of the interpreter
    const FunctionNode *function; // whose body is being lowered; NULL: the top level
    const FunctionCode *code;
    bool in_learn; // in the body of a learn block without an objective
    bool steps;    // what was lowered since the innermost loop began calls backward
} Lowering;

// lower.c
void *lower_new(Lowering *lowering, size_t bytes, Eval eval, Span span);
#define LOWER_NEW(lowering, Type, function, span)                                                  \
    ((Type *)lower_new((lowering), sizeof(Type), (function), (span)))
void *lower_array(Lowering *lowering, size_t count, size_t item_bytes);
const Code *lower(Lowering *lowering, const Node *node); // NULL gives NULL
const Code *lower_nothing(Lowering *lowering, const Node *node);
const Code **lower_list(Lowering *lowering, const NodeList *list);
// The value of a body in a function's last place: `return e` there is just e.
const Code *lower_tail(Lowering *lowering, const Node *node);
const Code *lower_constant(Lowering *lowering, Value value, Span span); // takes the value
bool code_constant(const Code *code, Value *out); // borrowed; false when it is not a constant
FunctionCode *lower_function(Lowering *lowering, const FunctionNode *function);
void lower_function_body(Lowering *lowering, FunctionCode *code, const FunctionNode *function);
// Formatted text that lives as long as the code.
const char *lower_text(Lowering *lowering, const char *format, ...) PRINTF_LIKE(2, 3);
const char *lower_word(Lowering *lowering, const Word *word);

// An operand whose value lies somewhere, where it can be read without being held: a variable, an
// element or a field of such a one. What lies there is ABSENT when reading it would fail, or when
// it is not as simple as that: then the code has to be evaluated.
typedef const Value *(*PlaceFind)(Frame *frame, const Code *code);
typedef struct Place {
    bool exists, local;
    size_t offset;  // of the slot of a plain local variable
    PlaceFind find; // finds any other
    const Code *code;
} Place;
static inline const Value *place_find(Frame *frame, const Place *place) {
    return place->local ? slot_at(frame, place->offset) : place->find(frame, place->code);
}
extern const Value place_absent;

// places.c
Place place_of(const Code *code);
const Code *lower_index(Lowering *lowering, const Node *node);
const Code *lower_field(Lowering *lowering, const Node *node);
// An assignment to an element or field of a place; whatever does not fit is given to `general`.
const Code *lower_place_store(Lowering *lowering, const Node *node, const Code *value,
                              const Code *general);
bool place_store_follow(const Code *store, const Code *next); // as scalar_store_follow

// names.c: variables and what else a name can mean.
const Code *lower_binding(Lowering *lowering, Binding *binding, Span span);
const Code *lower_name(Lowering *lowering, const Node *node);
const Code *lower_store(Lowering *lowering, Binding *binding, const Code *value, Span span);
bool code_is_local(const Code *code, int *slot); // a plain local variable read
OperandCode operand_code(const Code *code);
bool code_is_cell(const Code *code, int *slot);     // one that closures share, in its own function
bool code_is_capture(const Code *code, int *index); // one of an outer function: the closure's cell
PlaceFind variable_find_of(const Code *code);       // of any variable read, else NULL
const Value *code_global(const Code *code);         // a global variable read: its place, else NULL
// A place that a variable's value lies in; NULL (failed) when it has none yet.
typedef struct VariableCode VariableCode;
const VariableCode *lower_variable(Lowering *lowering, Binding *binding, Span span);
Value *variable_place(Frame *frame, const VariableCode *variable);
const Value *variable_peek(Frame *frame,
                           const VariableCode *variable); // NULL: no value; no failure
const char *variable_name(const VariableCode *variable);
void variable_set(Frame *frame, const VariableCode *variable, Value value); // takes the value
COLD Value fail_unset(const char *name, Span span);

// operators.c and scalar.c
const Code *lower_binary(Lowering *lowering, const Node *node);
const Code *lower_unary(Lowering *lowering, const Node *node);
const Code *lower_logical(Lowering *lowering, const Node *node);
const Code *lower_scalar_binary(Lowering *lowering, Operator op, const Code *left,
                                const Code *right, Span span);
// What an operator makes of two numbers (or strings) at once; *out may be one of them. False: the
// general way has to say.
bool scalar_combine(Operator op, const Value *left, const Value *right, Value *out);
bool code_is_arithmetic(const Code *code); // of local and global variables and constants alone
// Makes a store go on to `next` when it is done, so that the block need not; false: it cannot.
bool scalar_store_follow(const Code *store, const Code *next);
bool variable_store_follow(const Code *store, const Code *next);
// NULL when the value is not a quick form. The target is `global`, or where that is NULL the slot.
const Code *lower_scalar_store(Lowering *lowering, int slot, Value *global, const Code *value);
typedef struct Operands {
    Value left, right;                  // taken
    const Code *left_code, *right_code; // for messages; may be NULL
    Span span;
} Operands;
Value operator_apply(Frame *frame, Operator op, const Operands *operands);
// "x is float32[2, 3] (from line 4)": the operand's text if it is short, and where it was made.
void operand_describe(Text *out, Value value, const Code *code);
// A condition as a boolean, -1 when it unwinds. condition_eval evaluates the code; condition_read
// takes the value that it gave.
int condition_read(Value value, const Code *code);
static inline int condition_eval(Frame *frame, const Code *code);

// blocks.c, loops.c
const Code *lower_block(Lowering *lowering, const Node *node, bool tail);
// The body of a function, whose end releases all of its variables.
const Code *lower_body(Lowering *lowering, const Node *node);
// The body of a loop, by its statements: those of a block, or the one code.
typedef struct Body {
    const Code *const *statements;
    size_t count;
    size_t begin, end; // the offsets of its slots
} Body;
Body body_of(const Code *const *code); // keeps the place of the code
const Code *lower_let(Lowering *lowering, const Node *node);
// A declaration that does nothing while its variable has a value.
const Code *lower_once(Lowering *lowering, Binding *binding, const Code *declaration);
const Code *lower_tensor(Lowering *lowering, const Node *node);
const Code *lower_if(Lowering *lowering, const Node *node, bool tail);
const Code *lower_loop(Lowering *lowering, const Node *node);
const Code *lower_for(Lowering *lowering, const Node *node);
const Code *lower_jump(Lowering *lowering, const Node *node);
const Code *lower_with(Lowering *lowering, const Node *node);

// assign.c
const Code *lower_assign(Lowering *lowering, const Node *node);
// Goes on with an assignment whose value is evaluated; takes it.
Value assign_evaluated(Frame *frame, const Code *code, Value value);

// calls.c, methods.c, invoke.c
const Code *lower_call(Lowering *lowering, const Node *node);
const Code *lower_method_call(Lowering *lowering, const Node *node);
const Code *lower_path(Lowering *lowering, const Node *node);
// The condition of an assert; `plain` is what it is lowered to elsewhere.
const Code *lower_asserted(Lowering *lowering, const Node *node, const Code *plain);
// The row of a call like sqrt(x), and x: one that makes a float of a float, by its formula alone.
// NULL: the code is none.
const Builtin *code_map(const Code *code, const Code **argument);
const Code *lower_closure(Lowering *lowering, const FunctionNode *function, Span span);

// structs.c, pattern.c, attempt.c, literals.c, annotations.c, modules.c
const Code *lower_struct_literal(Lowering *lowering, const Node *node);
const Code *lower_match(Lowering *lowering, const Node *node, bool tail);
const Code *lower_try(Lowering *lowering, const Node *node);
const Code *lower_list_literal(Lowering *lowering, const Node *node);
const Code *lower_tuple(Lowering *lowering, const Node *node); // of a list literal's items, too
const Code *lower_dict(Lowering *lowering, const Node *node);
const Code *lower_range(Lowering *lowering, const Node *node);
const Code *lower_format_string(Lowering *lowering, const Node *node);
const Code *lower_cast(Lowering *lowering, const Node *node);
const Code *lower_import(Lowering *lowering, const Node *node);
// The structs and impls among statements: their names first, then what is in them.
void lower_types_declare(Lowering *lowering, const NodeList *statements);
void lower_types_define(Lowering *lowering, const NodeList *statements);
// A list (taken) by the rule for literals: numbers make a tensor. Elements from
// literal_eval_element.
Value literal_from_list(Value list, bool ragged_is_list);
// An element of a literal or comprehension: a nested literal stays apart (as a VALUE_CELL around
// its list) until literal_from_list.
Value literal_eval_element(Frame *frame, const Code *code);
// What a comprehension collects, as a list; eval_comprehension makes a tensor of it where it can.
Value comprehension_items(Frame *frame, const Code *code);
Value eval_comprehension(Frame *frame, const Code *code);

static inline int condition_eval(Frame *frame, const Code *code) {
    Value value = EVAL(frame, code);
    return LIKELY(value.kind == VALUE_BOOL) ? (int)value.as.integer : condition_read(value, code);
}

// The last one first. They are ABSENT afterwards.
static inline void slots_between_release(Value *begin, Value *end) {
    while (end > begin) {
        Value value = {.kind = (--end)->kind};
        end->kind = VALUE_ABSENT;
        if (!value_is_counted(value)) continue;
        value.as = end->as;
        value_release(value);
    }
}

static inline void slots_release(Frame *frame, int first, int count) {
    Value *begin = frame->slots + first;
    slots_between_release(begin, begin + count);
}

static inline bool failed(Value value) {
    return UNLIKELY(value.kind == VALUE_FAIL);
}

// False when it unwinds.
static inline bool body_run(Frame *frame, const Body *body) {
    const Code *const *statement = body->statements, *const *end = statement + body->count;
    bool done = true;
    for (; done && statement < end; statement++) {
        Value value = EVAL(frame, *statement);
        if (LIKELY(value.kind == VALUE_NONE)) continue;
        done = !failed(value);
        if (done) value_release(value);
    }
    slots_between_release(slot_at(frame, body->begin), slot_at(frame, body->end));
    return done;
}

// Gives the current error its place and fails.
static inline Value fail_at(Span span) {
    error_place(span);
    return value_fail();
}

#endif
