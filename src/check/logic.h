// Logic programs in the check: what names in atoms mean, and from a checked clause to the rule that
// the engine evaluates. The evaluator makes its rules by the same functions.
#ifndef CHECK_LOGIC_H
#define CHECK_LOGIC_H

#include "check/check.h"
#include "logic/store.h"

// Calls the function for each declaration and rule of a program, wherever it stands.
typedef void LogicVisit(void *context, Node *node);
void logic_visit(Program *program, LogicVisit *visit, void *context);

// The engine's relation of a declaration (an ENTITY, a RELATION, or a RULE that declares its head).
// Types are found through their bindings, which must have theirs already; members are added.
Relation *relation_of_declaration(Store *store, const Binding *binding);
Rule *rule_of_clause(Store *store, const Clause *clause, Span span);
// A query's head holds the variables that have names, in the order in which they appear; or, where
// rows are asked for, the terms of its atom.
Rule *rule_of_query(Store *store, const Node *node);
// What a term that needs no evaluation is: a CONSTANT.
Datum constant_of_term(Store *store, const TermNode *term);
// The number of the clause's variable of that name, or -1.
int clause_variable(const Clause *clause, const Word *word);

#endif
