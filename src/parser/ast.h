// The syntax tree: one node type with a kind. Made by the parser, resolved in place by check/ (the
// fields under "filled by check"), never changed afterwards. Lives in the arena of its Program.
#ifndef PARSER_AST_H
#define PARSER_AST_H

#include "base/memory.h"
#include "base/source.h"
#include "logic/semiring.h"

typedef struct Node Node;
typedef struct TypeNode TypeNode;
typedef struct Binding Binding; // check/: what a name means

// What a name can mean, nearest first. In call position a variable that holds no function is
// skipped and the next candidate is tried.
typedef struct Candidate {
    Binding *binding;
    struct Candidate *next;
} Candidate;

typedef struct Word { // a name as written: arena string, NUL-terminated
    const char *text;
    uint32_t length;
    Span span;
} Word;

typedef struct NodeList {
    Node **items;
    size_t count;
} NodeList;

typedef struct BindingList {
    Binding **items;
    size_t count, capacity;
} BindingList;

typedef enum NodeKind {
    // expressions
    NODE_INT,
    NODE_FLOAT,
    NODE_BOOL,
    NODE_NONE,
    NODE_STRING,
    NODE_FORMAT_STRING,
    NODE_NAME,
    NODE_LIST,
    NODE_TUPLE,
    NODE_DICT,
    NODE_COMPREHENSION,
    NODE_UNARY,
    NODE_BINARY,
    NODE_LOGICAL,
    NODE_RANGE,
    NODE_CAST,
    NODE_CALL,
    NODE_METHOD_CALL,
    NODE_FIELD,
    NODE_INDEX,
    NODE_PATH,
    NODE_POSITION, // a NAME that check found to be an index of an equation
    NODE_EQUATION, // the right side of an equation, with what check makes of it
    NODE_STRUCT_LITERAL,
    NODE_LAMBDA,
    NODE_IF,
    NODE_MATCH,
    NODE_TRY,
    NODE_QUERY,
    NODE_ASK, // Y[2, :]?, a value that is printed where nothing uses it
    NODE_BLOCK,
    // statements
    NODE_LET,
    NODE_TENSOR_DECLARATION,
    NODE_ASSIGN,
    NODE_EXPRESSION_STATEMENT,
    NODE_WHILE,
    NODE_LOOP,
    NODE_FOR,
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_RETURN,
    NODE_WITH,
    NODE_LEARN,
    NODE_FACT,
    NODE_ONE_OF, // facts with weights that exclude each other
    NODE_DRAWN,  // Digit(i, d) ~ P[i, d]: facts that do, from the rows of a tensor
    NODE_RETRACT,
    NODE_INFER,
    // declarations
    NODE_FUNCTION,
    NODE_STRUCT,
    NODE_IMPL,
    NODE_IMPORT,
    NODE_TEST,
    NODE_BENCH,
    NODE_MAIN,
    NODE_ENTITY,
    NODE_RELATION,
    NODE_RULE,
    NODE_PROGRAM,
} NodeKind;

typedef enum Operator {
#define OPERATOR(code, ...) OPERATOR_##code,
#include "parser/operators.def"
#undef OPERATOR
} Operator;

typedef struct OperatorInfo {
    const char *spelling, *operation, *verb, *joint;
    bool turned;
} OperatorInfo;
extern const OperatorInfo operator_info[];

// How an equation brings values together that have the same place on its left side.
typedef enum Projection {
    PROJECTION_NONE, // not written: a sum
    PROJECTION_SUM,
    PROJECTION_MAX,
    PROJECTION_MIN,
    PROJECTION_AVG,
} Projection;

typedef struct Argument {
    Word name; // text NULL: positional
    Node *value;
} Argument;

// One subscript of x[...].
typedef struct Subscript {
    enum { SUBSCRIPT_INDEX, SUBSCRIPT_SLICE, SUBSCRIPT_ELLIPSIS } kind;
    Node *index;               // INDEX: any expression; a NODE_NONE is a new axis
    Node *start, *stop, *step; // SLICE: each may be NULL
    bool dotted;               // INDEX: `q.`, the index along which an equation normalises
    bool looped;               // INDEX: `*t`, the index that an equation goes through in time
    Span span;
} Subscript;

// One dimension in a type annotation: `3`, `?`, `n`.
typedef struct Dimension {
    enum { DIMENSION_NUMBER, DIMENSION_ANY, DIMENSION_NAME } kind;
    int64_t number;
    Word name;
    Binding *binding;  // filled by check: the symbol that is bound
    Binding *variable; // filled by check: a variable of that name; an int in it is the size meant
} Dimension;

struct TypeNode {
    enum { TYPE_NAMED, TYPE_TENSOR, TYPE_TUPLE } kind;
    Span span;
    Node *module;         // NAMED: the name of the import that the struct is from, or NULL
    Word name;            // NAMED: int, Tensor, Point, entity...; TENSOR: float32...
    Binding *binding;     // NAMED, filled by check: the struct, NULL for other words
    TypeNode **arguments; // NAMED: type arguments; TUPLE: members
    size_t argument_count;
    Dimension *dimensions; // TENSOR
    size_t dimension_count;
    bool optional;  // T?
    bool learnable; // struct fields and tensor declarations
};

typedef struct Program Program;

typedef struct Parameter {
    Word name;
    TypeNode *type;   // NULL when not annotated
    Node *fallback;   // default value, or NULL
    Binding *binding; // filled by check
} Parameter;

typedef struct FunctionNode {
    Word name;             // text NULL for a lambda
    const char *what;      // of a lambda that nobody wrote, for traces: "a rule"; else NULL
    Word *type_parameters; // fn name<T, U>(...)
    size_t type_count;
    Parameter *parameters;
    size_t parameter_count;
    TypeNode *result;           // NULL when not written
    Node *body;                 // a NODE_BLOCK, or an expression for lambdas
    Span head;                  // "fn name(...)" for messages
    int slot_count;             // filled by check: local slots of a call
    struct FunctionNode *outer; // filled by check: the enclosing function, NULL at top level
    VECTOR(Binding *) captures; // filled by check, in the arena: outer functions' variables it uses
    VECTOR(Binding *) symbols;  // filled by check, in the arena: dimensions bound per call
    Binding *binding; // filled by check: what its name is bound to; NULL for lambdas and methods
    bool inferred;    // filled by check: inference has gone through a call of it
} FunctionNode;

typedef struct Pattern Pattern;
struct Pattern {
    enum {
        PATTERN_ANY,
        PATTERN_LITERAL,
        PATTERN_BIND,
        PATTERN_OR,
        PATTERN_RANGE,
        PATTERN_STRUCT,
        PATTERN_TUPLE
    } kind;
    Span span;
    Node *low, *high; // LITERAL: low; RANGE: both ends (constants)
    bool inclusive;
    Node *module;    // STRUCT: the name of the import that it is from, or NULL
    Word name;       // BIND, STRUCT
    Pattern **parts; // OR, TUPLE, STRUCT (one per field)
    size_t part_count;
    Word *fields;     // STRUCT
    bool rest;        // STRUCT: `..` was written
    Binding *binding; // filled by check
};

typedef struct MatchArm {
    Pattern *pattern;
    Node *guard; // or NULL
    Node *body;
    int first_slot, slot_count; // filled by check
} MatchArm;

typedef struct Setting { // `epochs: 200` in learn
    Word name;
    Node *value;
    Node *of; // `batch: 32 of (x, y)`: the tuple
} Setting;

// What one tensor equation of a program block amounts to.
typedef struct ProgramEquation {
    int target;      // of the program's names
    bool scalar;     // its left side has no index
    Node *function;  // a LAMBDA of the names that its right side mentions
    int *parameters; // which these are
    Node *inputs;    // a LAMBDA that gives a tuple of the variables outside that it reads
    Span span;
} ProgramEquation;

// program Name over semiring { ... }
typedef struct ProgramNode {
    Word name, semiring; // semiring: text NULL where it is not written
    Node *argument;      // of the semiring, or NULL
    Setting *settings;
    size_t setting_count;
    NodeList statements;
    Binding *binding; // filled by check, like all below
    Semiring kind;
    Word *names;       // that its equations give values; from `named` on those of its own making
    uint32_t *growing; // of each name: dimensions of which equations give parts, by bits
    int *before;       // of each name: the one that has its value before an update, or -1
    size_t name_count, named;
    ProgramEquation *equations;
    size_t equation_count;
} ProgramNode;

// An argument of an atom. What it is, is filled by check; until then it is an expression.
typedef struct TermNode {
    enum TermNodeKind {
        TERM_NODE_VALUE,    // an expression: `variable` is a variable of the clause that equals it
        TERM_NODE_CONSTANT, // a name or string that stands for itself
        TERM_NODE_VARIABLE,
        TERM_NODE_NAME,  // a variable, unless its name means a constant when the query runs
        TERM_NODE_ANY,   // _
        TERM_NODE_PLACE, // of a DRAWN: the place in a dimension of its tensor, `variable`
    } kind;
    Node *value;
    const char *aggregate; // in a head: count, sum, min, max or avg of the value; NULL: none
    int variable;
} TermNode;

// Name(a, b): of a relation or an entity type. All but the call is filled by check.
typedef struct AtomNode {
    Node *call;
    TermNode *terms;
    size_t count;
    Binding *binding;
} AtomNode;

typedef struct GoalNode {
    enum {
        GOAL_NODE_ATOM,   // of a call, which check may find to be a condition
        GOAL_NODE_NOT,    // the same behind `not`
        GOAL_NODE_TEST,   // a condition
        GOAL_NODE_BIND,   // variable = value
        GOAL_NODE_MEMBER, // variable in value
    } kind;
    Span span;
    Node *value; // as written; of BIND and MEMBER what stands behind the variable
    Node *name;  // BIND, MEMBER: the variable
    // Filled by check:
    AtomNode atom;
    int variable;
    Node *function;  // a lambda of the value, where only the host can compute it; else NULL
    int *parameters; // the variables that it takes
} GoalNode;

// atom <- goals; of a query the atom and what `where` adds.
typedef struct Clause {
    AtomNode atom;
    GoalNode *goals;
    size_t goal_count;
    Node *weight;           // of a fact or rule, or NULL
    uint32_t block;         // where the program block around a rule begins; 0: in none
    VECTOR(Word) variables; // filled by check; text NULL: one that stands for an expression
} Clause;

typedef enum QueryKind {
    QUERY_ASK,
    QUERY_FORWARD, // infer forward: what it reads is made complete first
    QUERY_BACKWARD,
    QUERY_SYMBOLIC,
    QUERY_GRADIENT, // by embeddings
    QUERY_WHY,
    QUERY_WHY_NOT,
    QUERY_EXPLAIN, // how it is answered
} QueryKind;

// Whether what is asked for are rows, not the values of variables.
static inline bool query_is_about_rows(QueryKind kind) {
    return kind == QUERY_WHY || kind == QUERY_WHY_NOT || kind == QUERY_EXPLAIN;
}

struct Node {
    NodeKind kind;
    Operator op;  // UNARY, BINARY, LOGICAL, ASSIGN (compound, or OPERATOR_NONE)
    Span span;    // the whole construct
    Span op_span; // the operator, for UNARY, BINARY, ASSIGN
    int height;   // of the tree below, this node included: at most TREE_HEIGHT_MAX
    union {
        int64_t integer;
        double number;
        bool boolean;
        struct {
            const char *bytes;
            size_t length;
        } string; // escapes already resolved; arena
        // f"a {x:.3} b": texts[0] x texts[1] ...; values.count + 1 == texts count; specs may be
        // NULL
        struct {
            Word *texts;
            NodeList values;
            const char **specs;
        } format_string;
        // binding, otherwise, awaits (of what is assigned: Binding's) are filled by check
        struct {
            Word word;
            Binding *binding;
            Candidate *otherwise;
            TypeNode *awaits;
            bool parameter; // of what is assigned: declared as learnable
        } name;
        NodeList list; // LIST, TUPLE
        struct {
            NodeList keys, values;
        } dict;
        struct {
            Node *left, *right;
        } binary; // UNARY: left only; BINARY, LOGICAL
        struct {
            Node *low, *high;
            bool inclusive;
        } range;
        struct {
            Node *value;
            TypeNode *type;
        } cast;
        struct {
            Node *value;
            bool statement;
        } ask;
        struct {
            Node *callee;
            Argument *arguments;
            size_t count;
            Span arguments_span;
        } call;
        // `function` (filled by check): the user's function or variable of that name, if any; with
        // `member` what `name` is in the module that the receiver names
        struct {
            Node *receiver;
            Word name;
            Argument *arguments;
            size_t count;
            Span arguments_span;
            Candidate *function;
            Binding *member;
        } method;
        struct {
            Node *object;
            Word name;
            Binding *member;
        } field; // x.name and x.3 (name "3")
        struct {
            Node *object;
            Subscript *subscripts;
            size_t count;
            uint32_t grows; // filled by check: of a name of a program, dimensions by bits whose
                            // length its equations make
        } index;
        // module: the name of the import that the type is from, or NULL, as below
        struct {
            Node *module;
            Word type;
            TypeNode **type_arguments;
            size_t type_count;
            Word name;
            Binding *binding;
        } path; // A<T>::name; binding: the struct or module A
        struct {
            Node *module;
            Word type;
            TypeNode **type_arguments;
            size_t type_count;
            Word *names;
            Node **values;
            size_t count;
            Binding *binding;
        } struct_literal;
        FunctionNode *function; // LAMBDA, FUNCTION
        struct {
            Node *condition, *then_branch, *else_branch;
        } branch; // else: block, IF or NULL
        struct {
            Node *subject;
            MatchArm *arms;
            size_t count;
        } match;
        struct {
            Node *body;
            Word name;
            Node *handler;
            Binding *binding;
        } attempt; // TRY
        // BLOCK: statements; the last one's value is the block's. Also the top level.
        struct {
            NodeList statements;
            int first_slot, slot_count;
        } block;
        struct {
            Pattern *pattern;
            TypeNode *type;
            Node *value;
            bool once; // as of tensor
        } let;         // value may be NULL
        // once (filled by check): makes a parameter in the body of a learn block, at its first
        // epoch
        struct {
            Word name;
            TypeNode *type;
            Node *value;
            Binding *binding;
            bool once;
        } tensor;
        // targets: NAME, FIELD, INDEX, or TUPLE of those; `define`: written `:=`. `arrow`: written
        // `<-`, an equation whatever its names mean; `projection`: written max= min= avg=
        struct {
            Node *target, *value;
            bool define, arrow;
            Projection projection;
            bool result;  // filled by check: its value is the function's
            bool program; // filled by check: of a program block over this semiring
            Semiring semiring;
            NodeList sizes; // filled by check: terms that only say how large an index is
        } assign;
        struct {
            Node *value;
            struct Equation *plan; // check/equation.h
        } equation;
        struct {
            Node *value;
            bool unused_start;
        } expression; // starts with - ( [ : may want a warning
        // WHILE; LOOP: condition NULL; epochs (filled by check): as of for_loop
        struct {
            Node *condition, *body;
            bool epochs;
        } loop;
        // FOR and COMPREHENSION. for i, x in it: `index` is the extra first name or NULL.
        // condition: of a comprehension, or NULL; its body is the element
        // epochs (filled by check): its iterations are the epochs of the learn block
        struct {
            Pattern *index, *pattern;
            Node *iterable, *condition, *body;
            int first_slot, slot_count;
            int hidden_slot;
            bool epochs;
        } for_loop;
        struct {
            Node *value;
        } returned; // RETURN, may be NULL
        struct {
            Word word;
            Node *argument;
            Node *body;
        } with; // with buffer b {, device("cpu") {, no_grad {
        // filled by check: the block's own variables, and whether a loop in the body runs over
        // `epochs`
        struct {
            Setting *settings;
            size_t count;
            Node *body;
            Binding *epochs, *optimizer;
            Binding *epoch, *step; // NULL: the program has a variable of that name
            Binding **batch;
            size_t batch_count;
            BindingList locals;    // that end with the block
            BindingList kept, own; // variables around it that take the values of those in the body
            BindingList once;      // parameters that the body declares
            BindingList visible;   // variables that parameters are named by in files
            bool has_loop;
        } learn;
        struct {
            Word name;
            Word *type_parameters;
            size_t type_count;
            Word *fields;
            TypeNode **types;
            Node **fallbacks;
            size_t field_count;
            Binding *binding;
            FunctionNode *frame;
        } structure; // frame: filled by check, where fallbacks run
        struct {
            Word trait;
            Node *module;
            Word name;
            TypeNode **type_arguments;
            size_t type_count;
            Node **functions;
            size_t function_count;
            Binding *binding;
            Node *previous; // filled by check: the impl of the same struct before this one
        } impl;             // trait "Drop" or NULL
        struct {
            Word path;
            Word alias;
            Program *program;
        } import; // program: filled by check
        struct {
            Word name;
            FunctionNode *function;
        } section; // TEST, BENCH, MAIN: no parameters
        struct {
            Word name;
            Word *members; // closed types: in their order
            size_t member_count;
            bool closed;
            Binding *binding;
        } entity;
        struct {
            Word name;
            Word *columns;
            TypeNode **types;    // NULL where none is written
            const char **merges; // "min", "max", "union" or NULL
            size_t count;
            bool equivalence;
            TypeNode *embed; // what members are as vectors; learnable: as written; or NULL
            Binding *binding;
        } relation;
        // RULE; FACT, RETRACT: without goals; DRAWN: its weight is the tensor
        Clause *clause;
        NodeList alternatives; // ONE_OF
        struct {
            Clause *clause;
            QueryKind query;
            bool statement;    // filled by check: nothing uses its value, so it prints
            Node *program;     // that weighs the answers, or NULL
            Node *temperature; // of soft answers, or NULL
        } query;
        NodeList inferred; // INFER: queries
        ProgramNode *program;
    } as;
};

// Whether it is a rule or says facts, as one or several.
static inline bool node_is_clause(const Node *node) {
    return node->kind == NODE_RULE || node->kind == NODE_FACT || node->kind == NODE_ONE_OF ||
           node->kind == NODE_DRAWN;
}

struct Program {
    Arena arena;
    const SourceFile *file;
    Node *top; // a NODE_BLOCK of declarations and statements in source order
    // Filled by check:
    int slot_count;             // slots of the top level's own blocks
    VECTOR(Binding *) globals;  // its global variables in the order of their slots; in the arena
    VECTOR(Program *) imported; // of the program that was run: every file it imports; owned by it
    void *module;               // check/'s own, in the arena
};

// main, a test or a bench: it runs after the top level.
static inline bool node_is_section(const Node *node) {
    return node->kind == NODE_MAIN || node->kind == NODE_TEST || node->kind == NODE_BENCH;
}

#endif
