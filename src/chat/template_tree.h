// The tree of a template, shared by its parser and its evaluator. All of it lives in one arena.
#ifndef CHAT_TEMPLATE_TREE_H
#define CHAT_TEMPLATE_TREE_H

#include "base/memory.h"
#include "chat/template.h"

typedef enum TemplateExprKind {
    TEMPLATE_EXPR_STRING, // text
    TEMPLATE_EXPR_INT,
    TEMPLATE_EXPR_FLOAT,
    TEMPLATE_EXPR_BOOL,
    TEMPLATE_EXPR_NONE,
    TEMPLATE_EXPR_ABSENT, // undefined: a choice without else
    TEMPLATE_EXPR_NAME,   // text
    TEMPLATE_EXPR_LIST,   // parts: the elements
    TEMPLATE_EXPR_TUPLE,  // parts: the elements
    TEMPLATE_EXPR_DICT,   // parts: key, value, key, value ...
    TEMPLATE_EXPR_FIELD,  // parts: object; text: the name
    TEMPLATE_EXPR_INDEX,  // parts: object, index
    TEMPLATE_EXPR_SLICE,  // parts: object, start, stop, step (TEMPLATE_EXPR_NONE where absent)
    TEMPLATE_EXPR_CALL,   // parts: callee (a name or a field), arguments
    TEMPLATE_EXPR_FILTER, // parts: object, arguments; text: the filter
    TEMPLATE_EXPR_TEST,   // parts: object, arguments; text: the test
    TEMPLATE_EXPR_NOT,
    TEMPLATE_EXPR_MINUS,
    TEMPLATE_EXPR_AND,
    TEMPLATE_EXPR_OR,
    TEMPLATE_EXPR_BINARY,  // parts: left, right; text: the operator
    TEMPLATE_EXPR_COMPARE, // parts: the first operand, links
    TEMPLATE_EXPR_LINK,    // of a comparison: text: the operator; parts: its right operand;
                           // integer: whether the answer is negated
    TEMPLATE_EXPR_CHOICE,  // parts: condition, then, else
} TemplateExprKind;

typedef struct TemplateExpr TemplateExpr;
struct TemplateExpr {
    TemplateExprKind kind;
    int line;
    const char *text; // NUL-terminated
    size_t length;
    const char *keyword; // of an argument; else NULL
    int64_t integer;
    double number;
    TemplateExpr *parts, *last; // first and last child
    TemplateExpr *next;         // sibling
};

// The name under which filters of {% set x | filter %} and {% filter %} find the text; no variable
// is called so.
#define TEMPLATE_BODY_NAME ""

typedef enum TemplateNodeKind {
    TEMPLATE_NODE_TEXT,
    TEMPLATE_NODE_OUTPUT,
    TEMPLATE_NODE_IF,
    TEMPLATE_NODE_FOR,
    TEMPLATE_NODE_SET,
    TEMPLATE_NODE_WITH,
    TEMPLATE_NODE_FILTER,
    TEMPLATE_NODE_MACRO,
    TEMPLATE_NODE_CALL,
    TEMPLATE_NODE_BREAK,
    TEMPLATE_NODE_CONTINUE
} TemplateNodeKind;

// A variable that is set, or a parameter of a macro or of a call's body.
typedef struct TemplateName TemplateName;
struct TemplateName {
    const char *text;
    TemplateExpr *fallback; // of a parameter, NULL when there is none; in WITH: the value
    TemplateName *next;
};

typedef struct TemplateNode TemplateNode;
struct TemplateNode {
    TemplateNodeKind kind;
    int line;
    const char *text; // TEXT: the bytes; MACRO: its name
    size_t length;
    TemplateName *names;            // FOR, SET, WITH: the variables; MACRO, CALL: the parameters
    const char *field;              // SET: the field of a namespace that is set, or NULL
    TemplateExpr *value;            // SET: NULL when the body makes the value; CALL: the call
    TemplateExpr *filter;           // FOR: its condition; SET, FILTER: done to the body's text
    TemplateNode *body, *otherwise; // first statements
    TemplateNode *next;
};

struct Template {
    Arena arena;
    TemplateNode *body;
};

#endif
