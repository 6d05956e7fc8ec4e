// Making rules, and which variables a goal needs and gives.
#include "logic/rule.h"

#include <stdlib.h>

Rule *rule_new(uint32_t variable_count, uint32_t arity, uint32_t goal_count) {
    Rule *rule = memory_allocate_zeroed(1, sizeof *rule);
    rule->variable_count = variable_count;
    rule->arity = arity;
    rule->goal_count = goal_count;
    rule->head = arena_allocate(&rule->arena, arity * sizeof *rule->head);
    rule->goals = arena_allocate(&rule->arena, goal_count * sizeof *rule->goals);
    rule->variable_names =
        arena_allocate(&rule->arena, variable_count * sizeof *rule->variable_names);
    return rule;
}

void rule_free(Rule *rule) {
    if (!rule) return;
    arena_free(&rule->arena);
    free(rule);
}

bool variables_meet(const VariableSet *a, const VariableSet *b) {
    uint64_t both = 0;
    for (int i = 0; i < VARIABLES_MAX / 64; i++) both |= a->words[i] & b->words[i];
    return both != 0;
}

bool variables_join(VariableSet *set, const VariableSet *others) {
    uint64_t added = 0;
    for (int i = 0; i < VARIABLES_MAX / 64; i++) {
        added |= others->words[i] & ~set->words[i];
        set->words[i] |= others->words[i];
    }
    return added != 0;
}

void expression_variables(const Expression *expression, VariableSet *out) {
    if (!expression) return;
    if (expression->kind == ARITHMETIC_VARIABLE) variables_add(out, expression->value);
    for (uint32_t i = 0; i < expression->variable_count; i++)
        variables_add(out, expression->variables[i]);
    expression_variables(expression->left, out);
    expression_variables(expression->right, out);
}

static int expression_missing(const Expression *expression, const VariableSet *bound) {
    if (!expression || expression->kind == ARITHMETIC_CONSTANT) return -1;
    if (expression->kind == ARITHMETIC_VARIABLE)
        return variables_have(bound, expression->value) ? -1 : (int)expression->value;
    for (uint32_t i = 0; i < expression->variable_count; i++)
        if (!variables_have(bound, expression->variables[i])) return (int)expression->variables[i];
    int missing = expression_missing(expression->left, bound);
    return missing >= 0 ? missing : expression_missing(expression->right, bound);
}

int goal_missing(const Goal *goal, uint32_t arity, const VariableSet *bound) {
    int missing = expression_missing(goal->left, bound);
    if (missing < 0) missing = expression_missing(goal->right, bound);
    for (uint32_t i = 0; goal->kind == GOAL_NOT && i < arity && missing < 0; i++)
        if (goal->terms[i].kind == TERM_VARIABLE && !variables_have(bound, goal->terms[i].value))
            missing = (int)goal->terms[i].value;
    return missing;
}

void goal_bind(const Goal *goal, uint32_t arity, VariableSet *bound) {
    if (goal->kind == GOAL_BIND || goal->kind == GOAL_MEMBER) variables_add(bound, goal->variable);
    for (uint32_t i = 0; goal->kind == GOAL_ATOM && i < arity; i++)
        if (goal->terms[i].kind == TERM_VARIABLE) variables_add(bound, goal->terms[i].value);
}
