// Checking tensor equations. check_statement asks whether an assignment is one; check_equation
// makes it an assignment of a NODE_EQUATION, whose target is then checked as any other.
#ifndef CHECK_EQUATION_CHECKER_H
#define CHECK_EQUATION_CHECKER_H

#include "check/checker.h"
#include "check/equation.h"

bool equation_begins(Checker *checker, Node *node);
// Makes R(x, y) among the factors R[x, y], where R is a relation.
void equation_take_atoms(Checker *checker, Node *node);
// Whether the name has no value, so that in brackets it is an index.
bool equation_is_free(Checker *checker, const Word *word, bool program);
void check_equation(Checker *checker, Node *node);
// program.c: a program block, and an equation of one, which becomes its NODE_EQUATION.
void check_program_block(Checker *checker, Node *node);
void check_program_equation(Checker *checker, Node *node);
int program_find_name(const ProgramNode *program, const Word *word);
// program_parts.c: what equations take from each other, before any becomes a function.
void check_program_parts(Checker *checker, ProgramNode *program, Node **equations, size_t count);
// Reports factors side by side in what is assigned without being an equation.
void report_adjacent(Checker *checker, const Node *node);

// Whether a function of the tree may work along an index: one of the program, or a builtin that is
// not elementwise.
bool equation_normalises(const Equation *equation, const EquationNode *node);
// The plan of an equation whose indexes are marked and whose names are resolved.
Equation *equation_plan(Checker *checker, const Node *node);

#endif
