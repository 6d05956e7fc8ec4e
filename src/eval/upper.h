// What evaluation calls of the folders above it: learn blocks, logic programs, tensor equations.
#ifndef EVAL_UPPER_H
#define EVAL_UPPER_H

#include "eval/code.h"

// reason/: what a file declares, before and after its functions are lowered; statements, queries
void lower_logic_declare(Lowering *lowering, Program *program);
void lower_logic_rules(Lowering *lowering, Program *program);
const Code *lower_rule(Lowering *lowering, const Node *node);
const Code *lower_fact(Lowering *lowering, const Node *node);
const Code *lower_relation(Lowering *lowering, const Node *node);
const Code *lower_one_of(Lowering *lowering, const Node *node);
const Code *lower_drawn(Lowering *lowering, const Node *node);
const Code *lower_retract(Lowering *lowering, const Node *node);
const Code *lower_ask(Lowering *lowering, const Node *node);
const Code *lower_query(Lowering *lowering, const Node *node);
// From now on a lowered query gives the number of its answers in the place of a list of them.
void lower_query_counted(const Code *query);
const Code *lower_with_entity(Lowering *lowering, const Node *node); // with Person { ... }
// Whether a parameter of that entity type takes the name: an open type takes any.
bool entity_fits(const struct Relation *type, const String *name);
const Code *lower_infer(Lowering *lowering, const Node *node);
// learn/learn.c, learn_run.c, learn_report.c
const Code *lower_learn(Lowering *lowering, const Node *node);
// The body of a loop in which backward is called; `epochs`: it runs once an epoch of a learn block.
const Code *lower_loop_body(Lowering *lowering, const Node *body, bool epochs);
// At the end of a program: one note a line about parameters that no block has reached, unless the
// program came to nothing or wants quiet; all is forgotten.
void learn_report_unreached(bool show);
// equation/
const Code *lower_equation(Lowering *lowering, const Node *node);
const Code *lower_program(Lowering *lowering, const Node *node);

// reason/: the end of the logic program; what a line of a session has said stays, or is undone.
void reasoner_free(Interp *interp);
void reasoner_keep(Interp *interp);
void reasoner_undo(Interp *interp);

// reason/: the place of an entity in its type; STATUS_NAME where no type or several ones have it.
Status entity_position(const String *name, int64_t *out) MUST_USE;

#endif
