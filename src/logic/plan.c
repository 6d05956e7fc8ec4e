// The order of a rule's goals: greedily the atom that is expected to give the fewest rows, tests as
// soon as their variables have values; the rule's own order where that costs hardly more, because
// then nothing needs to be sorted.
#include "logic/plan.h"

#include <math.h>
#include <stdlib.h>

static Columns columns_bound(const Goal *goal, const VariableSet *bound) {
    Columns columns = 0;
    for (uint32_t i = 0; i < goal_arity(goal); i++) {
        const Term *term = &goal->terms[i];
        bool has = term->kind == TERM_CONSTANT ||
                   (term->kind == TERM_VARIABLE && variables_have(bound, term->value));
        if (has) columns |= 1u << i;
    }
    return columns;
}

// How many rows an atom gives: those of a key of the index, or of the columns' different values.
static double rows_expected(const Goal *goal, const Extent *extent, const VariableSet *bound) {
    ASSERT(extent->low <= extent->high && extent->high <= extent->table->count);
    double rows = extent->high - extent->low;
    Columns columns = columns_bound(goal, bound);
    if (columns == 0 || rows == 0) return rows;
    for (size_t i = 0; i < extent->table->indexes.count; i++) {
        const Index *index = extent->table->indexes.items[i];
        if (index->columns != columns || index->groups == 0) continue;
        return rows / (double)index->groups;
    }
    return rows / table_distinct(extent->table, columns);
}

typedef struct Order {
    uint32_t *goals; // numbers, in the order in which they are taken
    uint32_t count;
    double cost, first; // rows expected to be gone through; those of the first goal
} Order;

static bool goes_through_rows(const Goal *goal) {
    return goal->kind == GOAL_ATOM || goal->kind == GOAL_MEMBER;
}

// --- what may fail

// A function of the host, or a divisor that may be 0: ends the evaluation where it has no value.
static bool expression_may_fail(const Expression *expression) {
    if (!expression) return false;
    bool divides = expression->kind == ARITHMETIC_DIV || expression->kind == ARITHMETIC_MOD;
    if (expression->kind == ARITHMETIC_HOST) return true;
    if (divides && expression->right->kind != ARITHMETIC_CONSTANT) return true;
    return expression_may_fail(expression->left) || expression_may_fail(expression->right);
}

static bool goal_may_fail(const Goal *goal) {
    return !goes_through_rows(goal) &&
           (expression_may_fail(goal->left) || expression_may_fail(goal->right));
}

static VariableSet goal_variables(const Goal *goal) {
    VariableSet variables = {0};
    for (uint32_t i = 0; i < goal_arity(goal); i++)
        if (goal->terms[i].kind == TERM_VARIABLE) variables_add(&variables, goal->terms[i].value);
    expression_variables(goal->left, &variables);
    expression_variables(goal->right, &variables);
    if (goal->kind == GOAL_BIND || goal->kind == GOAL_MEMBER)
        variables_add(&variables, goal->variable);
    return variables;
}

// Whether goals before it that speak of what it is given, directly or through others, are still to
// come: they say which values it is asked for. What speaks of its result alone does not.
static bool has_to_wait(const Rule *rule, const bool *taken, uint32_t number) {
    const Goal *goal = &rule->goals[number];
    VariableSet given = {0};
    expression_variables(goal->left, &given);
    expression_variables(goal->right, &given);
    bool waits = false;
    for (bool going = true; going && !waits;) {
        going = false;
        for (uint32_t i = 0; i < number && !waits; i++) {
            VariableSet variables = goal_variables(&rule->goals[i]);
            if (goal->kind == GOAL_BIND) variables_drop(&variables, goal->variable);
            if (!variables_meet(&variables, &given)) continue;
            waits = !taken[i];
            going |= variables_join(&given, &variables);
        }
    }
    return waits;
}

// --- the order

static bool is_ready(const Goal *goal, const VariableSet *bound) {
    return !goes_through_rows(goal) && goal_missing(goal, goal_arity(goal), bound) < 0;
}

// The next test or binding that can be made now, those that cannot fail first; UINT32_MAX: none.
// Goals that go through items wait their turn.
static uint32_t find_ready(const Rule *rule, const bool *taken, const VariableSet *bound,
                           bool patient) {
    for (uint32_t i = 0; i < rule->goal_count; i++)
        if (!taken[i] && is_ready(&rule->goals[i], bound) && !goal_may_fail(&rule->goals[i]))
            return i;
    for (uint32_t i = 0; i < rule->goal_count; i++)
        if (!taken[i] && is_ready(&rule->goals[i], bound) &&
            !(patient && has_to_wait(rule, taken, i)))
            return i;
    return UINT32_MAX;
}

static void take(const Rule *rule, uint32_t number, bool *taken, VariableSet *bound, Order *order) {
    ASSERT(order->count < rule->goal_count && !taken[number]);
    const Goal *goal = &rule->goals[number];
    goal_bind(goal, goal_arity(goal), bound);
    order->goals[order->count++] = number;
    taken[number] = true;
}

static void take_ready(const Rule *rule, bool *taken, VariableSet *bound, Order *order) {
    for (;;) {
        uint32_t ready = find_ready(rule, taken, bound, true);
        if (ready == UINT32_MAX) return;
        take(rule, ready, taken, bound, order);
    }
}

static double expected(const Goal *goal, const Extent *extent, const VariableSet *bound) {
    enum { MEMBERS_GUESSED = 8 };
    return goal->kind == GOAL_ATOM ? rows_expected(goal, extent, bound) : MEMBERS_GUESSED;
}

// The goal to go through next: the first in the rule's order, or the one with the fewest rows.
static uint32_t choose(const Rule *rule, const Extent *extents, const bool *taken,
                       const VariableSet *bound, bool greedy) {
    uint32_t best = UINT32_MAX;
    double fewest = INFINITY;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        if (taken[i] || !goes_through_rows(goal)) continue;
        if (goal_missing(goal, goal_arity(goal), bound) >= 0) continue;
        ASSERT(goal->kind != GOAL_ATOM || extents[i].table);
        double rows = expected(goal, &extents[i], bound);
        if (rows < fewest) {
            best = i;
            fewest = rows;
        }
        if (!greedy) break;
    }
    return best;
}

// Whether the plan does without the goal: it begins with a row of it, or leaves it out.
static bool is_dropped(const Rule *rule, const PlanStart *start, uint32_t goal) {
    ASSERT(goal < rule->goal_count);
    if (!start) return false;
    bool negated = rule->goals[goal].kind == GOAL_NOT;
    return negated ? start->positive : start->goal == goal;
}

static Order order_find(const Rule *rule, const Extent *extents, const PlanStart *start,
                        VariableSet bound, bool greedy) {
    Order order = {.goals = memory_allocate((rule->goal_count + 1) * sizeof *order.goals)};
    SCOPED_MEMORY bool *taken = memory_allocate_zeroed(rule->goal_count + 1, sizeof *taken);
    double rows = 1;
    uint32_t dropped = 0;
    for (uint32_t i = 0; i < rule->goal_count; i++)
        dropped += taken[i] = is_dropped(rule, start, i);
    take_ready(rule, taken, &bound, &order);
    for (;;) {
        uint32_t next = choose(rule, extents, taken, &bound, greedy);
        bool rest = next == UINT32_MAX; // what waits for others that wait for it
        if (rest) next = find_ready(rule, taken, &bound, false);
        if (next == UINT32_MAX) break;
        if (!rest) rows *= expected(&rule->goals[next], &extents[next], &bound);
        if (order.cost == 0) order.first = rows;
        if (!rest) order.cost += rows;
        take(rule, next, taken, &bound, &order);
        take_ready(rule, taken, &bound, &order);
    }
    ASSERT(order.count + dropped == rule->goal_count); // rule_check_safe
    return order;
}

static void step_columns(Step *step, const VariableSet *bound) {
    ASSERT(step->bound == 0 && step->binds == 0 && step->repeats == 0);
    const Goal *goal = step->goal;
    VariableSet here = {0};
    step->bound = columns_bound(goal, bound);
    for (uint32_t i = 0; i < goal_arity(goal); i++) {
        const Term *term = &goal->terms[i];
        if (term->kind != TERM_VARIABLE || step->bound >> i & 1) continue;
        if (variables_have(&here, term->value))
            step->repeats |= 1u << i;
        else
            step->binds |= 1u << i;
        variables_add(&here, term->value);
    }
}

// Backwards: what is read behind each step, the head included.
static void steps_find_once(Plan *plan) {
    VariableSet later = {0};
    const Rule *rule = plan->rule;
    for (uint32_t i = 0; i < rule->arity; i++)
        if (rule->head[i].kind == TERM_VARIABLE) variables_add(&later, rule->head[i].value);
    for (uint32_t i = 0; rule->aggregates && i < rule->variable_count; i++)
        variables_add(&later, i);
    for (uint32_t at = plan->count; at-- > 0;) {
        Step *step = &plan->steps[at];
        const Goal *goal = step->goal;
        step->once = goal->kind == GOAL_ATOM;
        for (uint32_t i = 0; i < goal_arity(goal); i++) {
            if (goal->terms[i].kind != TERM_VARIABLE) continue;
            if (step->binds >> i & 1 && variables_have(&later, goal->terms[i].value))
                step->once = false;
        }
        for (uint32_t i = 0; i < goal_arity(goal); i++)
            if (goal->terms[i].kind == TERM_VARIABLE) variables_add(&later, goal->terms[i].value);
        expression_variables(goal->left, &later);
        expression_variables(goal->right, &later);
        if (goal->kind == GOAL_BIND || goal->kind == GOAL_MEMBER)
            variables_add(&later, goal->variable);
    }
}

static void steps_make(Plan *plan, const Order *order, VariableSet bound) {
    const Rule *rule = plan->rule;
    SCOPED_MEMORY uint32_t *positions = memory_allocate((rule->goal_count + 1) * sizeof *positions);
    for (uint32_t i = 0; i < rule->goal_count; i++)
        positions[i] = goes_through_rows(&rule->goals[i]) ? plan->positions++ : NO_POSITION;
    ASSERT(plan->positions <= POSITIONS_MAX);
    plan->ordered = true;
    uint32_t last = 0;
    for (uint32_t i = 0; i < order->count; i++) {
        Step *step = &plan->steps[plan->count++];
        step->goal = &rule->goals[order->goals[i]];
        step->position = positions[order->goals[i]];
        ASSERT(goes_through_rows(step->goal) == (step->position != NO_POSITION));
        step->tests = step->goal->kind == GOAL_BIND && variables_have(&bound, step->goal->variable);
        step_columns(step, &bound);
        goal_bind(step->goal, goal_arity(step->goal), &bound);
        if (step->position == NO_POSITION) continue;
        plan->ordered &= step->position >= last;
        last = step->position;
    }
}

static VariableSet variables_given(const Rule *rule, const Datum *initial) {
    VariableSet bound = {0};
    for (uint32_t i = 0; initial && i < rule->variable_count; i++)
        if (initial[i] != CONSTANT_NONE) variables_add(&bound, i);
    return bound;
}

static void plan_build(const Rule *rule, const Order *order, VariableSet bound, Plan *plan) {
    ASSERT(order->goals != NULL);
    *plan =
        (Plan){.rule = rule, .cost = order->first > 1 ? order->cost / order->first : order->cost};
    plan->steps = memory_allocate_zeroed(rule->goal_count + 1, sizeof *plan->steps);
    steps_make(plan, order, bound);
    steps_find_once(plan);
}

void plan_make(const Rule *rule, const Extent *extents, const Datum *initial, Plan *plan) {
    static const double WORTH_SORTING = 2; // how much dearer the rule's own order may be
    VariableSet bound = variables_given(rule, initial);
    Order own = order_find(rule, extents, NULL, bound, false);
    Order best = order_find(rule, extents, NULL, bound, true);
    plan_build(rule, own.cost <= best.cost * WORTH_SORTING ? &own : &best, bound, plan);
    free(own.goals);
    free(best.goals);
}

void plan_make_in_order(const Rule *rule, const Extent *extents, const Datum *initial, Plan *plan) {
    VariableSet bound = variables_given(rule, initial);
    Order own = order_find(rule, extents, NULL, bound, false);
    plan_build(rule, &own, bound, plan);
    free(own.goals);
}

void plan_make_from(const Rule *rule, const Extent *extents, const PlanStart *start, Plan *plan) {
    VariableSet bound = {0};
    ASSERT(start->goal == NO_POSITION || start->goal < rule->goal_count);
    bool head = start->goal == NO_POSITION;
    ASSERT(head || (start->goal < rule->goal_count && rule->goals[start->goal].relation));
    const Term *terms = head ? rule->head : rule->goals[start->goal].terms;
    uint32_t arity = head ? rule->arity : rule->goals[start->goal].relation->arity;
    for (uint32_t i = 0; i < arity; i++) {
        bool open = head && ((rule->aggregates && rule->aggregates[i] != AGGREGATE_NONE) ||
                             (start->open >> i & 1));
        if (terms[i].kind == TERM_VARIABLE && !open) variables_add(&bound, terms[i].value);
    }
    Order best = order_find(rule, extents, start, bound, true);
    plan_build(rule, &best, bound, plan);
    free(best.goals);
}

typedef struct Pattern {
    const Term *terms;
    const Aggregate *aggregates; // of the terms; NULL: none has one
    uint32_t arity;
} Pattern;

// What is not plain stays open.
static bool terms_unify(const Rule *rule, Pattern pattern, const Datum *values, Datum *variables) {
    ASSERT(rule->variable_count <= VARIABLES_MAX);
    memset(variables, 0, rule->variable_count * sizeof *variables);
    for (uint32_t i = 0; i < pattern.arity; i++) {
        const Term *term = &pattern.terms[i];
        bool open = values[i] == CONSTANT_NONE || term->kind == TERM_ANY ||
                    (pattern.aggregates && pattern.aggregates[i] != AGGREGATE_NONE);
        if (open) continue;
        ASSERT(term->kind != TERM_VARIABLE || term->value < rule->variable_count);
        Datum *variable = term->kind == TERM_VARIABLE ? &variables[term->value] : NULL;
        Datum has = variable ? *variable : term->value;
        if (has != CONSTANT_NONE && has != values[i]) return false;
        if (variable) *variable = values[i];
    }
    return true;
}

bool head_unify(const Rule *rule, const Datum *values, Datum *variables) {
    Pattern head = {rule->head, rule->aggregates, rule->arity};
    return terms_unify(rule, head, values, variables);
}

bool goal_unify(const Rule *rule, const Goal *goal, const Datum *values, Datum *variables) {
    ASSERT(goal->relation != NULL);
    Pattern atom = {goal->terms, NULL, goal->relation->arity};
    return terms_unify(rule, atom, values, variables);
}

static Index *index_for(const Step *step, Table *table, uint32_t high) {
    bool one = step->bound == columns_all(table->arity) && table->key == step->bound;
    return step->bound && !one ? table_index(table, step->bound, high) : NULL;
}

void plan_set(Plan *plan, const Extent *extents) {
    ASSERT(plan->count <= plan->rule->goal_count);
    for (uint32_t i = 0; i < plan->count; i++) {
        Step *step = &plan->steps[i];
        if (!step->goal->relation) continue;
        const Extent *extent = &extents[step->goal - plan->rule->goals];
        ASSERT(extent->table && extent->low <= extent->high &&
               extent->high <= extent->table->count);
        step->table = extent->table;
        step->low = extent->low;
        step->high = extent->high;
        step->index = step->high > step->low ? index_for(step, extent->table, step->high) : NULL;
        step->heights = extent->heights;
        step->extra = extent->extra;
        if (step->extra) step->extra_index = index_for(step, step->extra, step->extra->count);
    }
}

void plan_free(Plan *plan) {
    free(plan->steps);
    plan->steps = NULL;
}
