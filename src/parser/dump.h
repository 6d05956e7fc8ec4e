// A syntax tree as text, for tests and for comparing two trees. Equal texts mean equal trees.
#ifndef PARSER_DUMP_H
#define PARSER_DUMP_H

#include "base/text.h"
#include "parser/ast.h"

void dump_node(Text *out, const Node *node);

#endif
