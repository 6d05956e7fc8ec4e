// The tree of a template, shared by its parser and its evaluator. All of it lives in one arena.
#ifndef CHAT_TEMPLATE_TREE_H
#define CHAT_TEMPLATE_TREE_H

#include "base/memory.h"
#include "chat/template.h"

typedef enum ExprKind {
    EXPR_STRING, // text
    EXPR_INT,
    EXPR_FLOAT,
    EXPR_BOOL,
    EXPR_NONE,
    EXPR_NAME,   // text
    EXPR_LIST,   // parts: the elements
    EXPR_DICT,   // parts: key, value, key, value ...
    EXPR_FIELD,  // parts: object; text: the name
    EXPR_INDEX,  // parts: object, index
    EXPR_SLICE,  // parts: object, start, stop, step (EXPR_NONE where absent)
    EXPR_CALL,   // parts: callee (a name or a field), arguments
    EXPR_FILTER, // parts: object, arguments; text: the filter
    EXPR_TEST,   // parts: object, arguments; text: the test
    EXPR_NOT,
    EXPR_MINUS,
    EXPR_AND,
    EXPR_OR,
    EXPR_BINARY, // parts: left, right; text: the operator
    EXPR_CHOICE, // parts: condition, then, else
} ExprKind;

typedef struct Expr Expr;
struct Expr {
    ExprKind kind;
    int line;
    const char *text; // NUL-terminated
    size_t length;
    const char *keyword; // of an argument; else NULL
    int64_t integer;
    double number;
    Expr *parts, *last; // first and last child
    Expr *next;         // sibling
};

typedef enum NodeKind { NODE_TEXT, NODE_OUTPUT, NODE_IF, NODE_FOR, NODE_SET } NodeKind;

typedef struct Node Node;
struct Node {
    NodeKind kind;
    int line;
    const char *text; // NODE_TEXT: the bytes; NODE_FOR, NODE_SET: the variable
    size_t length;
    const char *second;     // NODE_FOR: the other variable; NODE_SET: the field set; or NULL
    Expr *value, *filter;   // filter: NODE_FOR only, or NULL
    Node *body, *otherwise; // first statements
    Node *next;
};

struct Template {
    Arena arena;
    Node *body;
};

#endif
