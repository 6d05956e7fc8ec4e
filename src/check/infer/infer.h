// Inference: the program is gone through as it would run, with facts in place of values, so that
// mistakes about shapes and kinds are found before it does. What the files here share.
//
// An error is reported only where no value that the program could have there would avoid it. Code
// that may never run is gone through too, but what is wrong there is only a warning, and only where
// somebody asks for warnings; what stands in a `try` is left to run time.
#ifndef CHECK_INFER_INFER_H
#define CHECK_INFER_INFER_H

#include "check/checker.h"
#include "check/infer/fact.h"

// A variable's fact before it was changed: undone in reverse.
typedef struct Change {
    Binding *binding;
    const Fact *before;
} Change;

// How control may have left the code that follows: it is then doubtful whether that runs.
enum { LEFT_LOOP = 1, LEFT_CALL = 2, LEFT_PROGRAM = 4 };

// A call of one of the program's functions, being gone through.
typedef struct Activation {
    FunctionNode *function; // NULL: the top level
    const char *title;      // "fn layer"
    Span at;                // the call
    const struct Activation *outer;
    const Fact *result; // of the returns so far; NULL: none
    unsigned serial;
    int depth;
} Activation;

typedef struct Memo {
    const FunctionNode *function;
    const Fact **arguments;
    const Fact *result;
    unsigned epoch, version; // when it was made
    bool doubtful, silent;
    struct Memo *next;
} Memo;

typedef struct InferLoop InferLoop;

typedef struct Inference {
    Program *program;
    Arena arena;
    VECTOR(Change) trail;
    VECTOR(Diagnostic) found; // they own their strings
    Activation *activation;
    InferLoop *loop;       // innermost of the activation
    VECTOR(Binding *) log; // what was written while `logging` > 0, also what was undone
    int logging;
    Memo *memos;
    bool warnings;    // also where code may never run
    bool dead;        // this point is not reached
    uint8_t left;     // LEFT_...
    int doubt;        // > 0: what stands here may never run
    int silent;       // > 0: nothing is reported
    unsigned epoch;   // counts what may have changed lists, dictionaries and structs
    unsigned version; // counts changes of variables that outlive a call
    unsigned serial;  // of activations
    int64_t fuel;     // steps left; at 0 nothing more is said
    bool apart;       // a function that nothing calls: globals that change are not known
    bool drops;       // a struct has a drop: members of lists and structs are not known
} Inference;

// What the check found, in the order of the text, added to the diagnostics.
void infer_program(Program *program, DiagnosticList *diagnostics, bool warnings);

// --- state (infer.c)
bool infer_certain(const Inference *in); // what stands here runs whenever the program gets here
bool infer_spend(Inference *in);         // one step; false when there is no fuel left
const Fact *infer_read(const Inference *in, const Binding *binding);
void infer_write(Inference *in, Binding *binding, const Fact *fact);
// Something happened that may have changed any list, dictionary or struct.
void infer_disturb(Inference *in);
bool infer_members_known(const Inference *in, const Fact *fact);
// From the mark on: what was written, joined with what was there before, or undone.
void infer_undo(Inference *in, size_t mark);

// What a variable is at the end of a way.
typedef struct Way {
    Binding *binding;
    const Fact *fact;
    size_t number;
} Way;

// Several ways of which one is taken: begin, then each way, then end.
typedef struct Ways {
    size_t mark;
    bool any;
    bool covered; // one of the ways is certainly taken
    size_t live;  // ways that reach the end
    VECTOR(Way) merged;
    const Fact *result;
} Ways;
void ways_begin(Inference *in, Ways *ways);
void way_end(Inference *in, Ways *ways, const Fact *result);
const Fact *ways_end(Inference *in, Ways *ways);

// --- reports (report.c)
// A value and where the text has it, for labels.
typedef struct Operand {
    const Fact *fact;
    Span span;        // {0, 0}: no text
    const Node *node; // of an argument; NULL when there is none
} Operand;
// Reports the error just recorded (base/status.h), with the operands' types and origins.
void infer_report(Inference *in, Span span, const Operand *operands, size_t count);
void infer_free_found(Inference *in);

// --- expressions and statements
const Fact *infer_expression(Inference *in, Node *node); // NULL gives none
const Fact *infer_block(Inference *in, Node *block);
const Fact *infer_statement(Inference *in, Node *node);
const Fact *infer_if(Inference *in, Node *node);
const Fact *infer_match(Inference *in, Node *node);
void infer_loop(Inference *in, Node *node); // while, loop, for
void infer_leave_loop(Inference *in);       // break, continue
void infer_learn(Inference *in, Node *node);
const Fact *infer_equation(Inference *in, Node *node);
void infer_program_block(Inference *in, const ProgramNode *program);
void infer_pattern(Inference *in, const Pattern *pattern, const Fact *fact);
void infer_condition(Inference *in, const Node *node, const Fact *fact);
// The element that a loop over the value gives, and whether there is certainly one.
const Fact *infer_element(Inference *in, const Fact *fact, bool *some);
// What the names of a `for` or comprehension are given; whether there certainly is an iteration.
bool infer_elements(Inference *in, const Node *node, const Fact **element, const Fact **index);
const Fact *infer_index(Inference *in, Node *node);
const Fact *infer_field(Inference *in, Node *node);
void infer_assign_index(Inference *in, Node *target, Node *value_node, const Fact *value);
const Fact *infer_operator(Inference *in, const Node *node, Operator op, const Operand *left,
                           const Operand *right);
const Fact *infer_struct_literal(Inference *in, Node *node);
// A field of tensors: shape, rank, T; NULL when there is none of that name.
const Fact *infer_property(Inference *in, const Fact *tensor, const char *name);
const Fact *infer_binding_value(Inference *in, Binding *binding);
int struct_field_index(const Binding *type, const Word *name);

// --- calls
typedef struct InferArguments {
    Operand *items;     // positional ones first
    const char **names; // NULL: positional
    size_t count, positional;
    bool counted; // the check has compared them with the function that is called
} InferArguments;
// A call of a function of the program; `receiver` counts among the arguments.
const Fact *infer_call_function(Inference *in, FunctionNode *function, const char *title, Span span,
                                const InferArguments *arguments);
const Fact *infer_call(Inference *in, Node *node);
const Fact *infer_method_call(Inference *in, Node *node);
// The body with parameters as declared, for functions that nothing calls.
void infer_function_apart(Inference *in, FunctionNode *function);
const Fact *infer_call_builtin(Inference *in, const Builtin *row, Span span,
                               const InferArguments *arguments);

// --- annotations (annotations.c)
// Checks a parameter or result; `what` is "parameter x of fn f". The fact with what the annotation
// adds to it.
const Fact *annotation_refine(Inference *in, const TypeNode *type, const Fact *fact,
                              const char *what, Span span);
// A declaration, which converts.
const Fact *annotation_declare(Inference *in, const TypeNode *type, const Fact *fact,
                               const char *what, Span span);
// The shape that it declares as far as it is known; false when it declares none.
bool annotation_type(Inference *in, const TypeNode *type, TensorType *out);

#endif
