// Going through a syntax tree in the order of the text, whatever its kinds of node. What an editor
// or the formatter wants to know of a tree is found by looking at each node as it passes.
#ifndef PARSER_WALK_H
#define PARSER_WALK_H

#include "parser/ast.h"

// Each function is called before what lies below; one that is NULL is not called.
typedef struct Walker {
    void *context;
    void (*node)(void *context, Node *node);
    void (*function)(void *context, FunctionNode *function);
    void (*pattern)(void *context, Pattern *pattern);
    void (*type)(void *context, TypeNode *type);
} Walker;

// NULL is allowed and has nothing below it.
void walk_node(const Walker *walker, Node *node);

#endif
