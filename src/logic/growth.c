// Values flow from the columns that a rule reads to those of its head. They have no end where
// arithmetic lies on a way from a column back to itself and no rule on the way bounds them: by a
// comparison with something that does not grow along, or a relation of another component. A rule
// with another column that moves toward a bound has an end as well.
#include "logic/growth.h"

#include <stdlib.h>

#include "logic/narrow.h"

typedef struct Flow { // from a column to one of a head
    uint32_t from, to;
    uint32_t end; // the variable of the head
    bool grows;
    int sign;          // of what is added; 0: unknown
    bool above, below; // the values are bounded there
} Flow;

typedef struct Growth {
    const Store *store;
    const Rule *rule; // whose flows are looked for
    bool surely;      // without rules that go along facts
    VECTOR(Flow) flows;
} Growth;

static uint32_t column_place(const Relation *relation, uint32_t column) {
    ASSERT(column < relation->arity && relation->arity <= ARITY_MAX);
    return relation->number * ARITY_MAX + column;
}

static bool is_own(const Rule *rule, const Goal *goal) {
    return goal->kind == GOAL_ATOM && goal_whole(goal)->component == rule->relation->component;
}

static bool goal_holds(const Goal *goal, uint32_t variable) {
    ASSERT(variable < VARIABLES_MAX);
    for (uint32_t i = 0; goal->kind == GOAL_ATOM && i < goal_arity(goal); i++)
        if (goal->terms[i].kind == TERM_VARIABLE && goal->terms[i].value == variable) return true;
    return false;
}

enum { DEPTH_MAX = 16 }; // of variables that are computed from each other

// By itself or through variables that are computed from it, but for that of the flow's end.
static bool expression_reads(const Rule *rule, const Expression *expression, uint32_t variable,
                             uint32_t end, int depth) {
    if (!expression || depth == 0) return false;
    VariableSet direct = {0};
    expression_variables(expression, &direct);
    if (variables_have(&direct, variable)) return true;
    bool reads = false;
    for (uint32_t i = 0; i < rule->goal_count && !reads; i++) {
        const Goal *goal = &rule->goals[i];
        bool computed = goal->kind == GOAL_BIND && variables_have(&direct, goal->variable);
        if (computed && goal->variable != end)
            reads = expression_reads(rule, goal->left, variable, end, depth - 1);
    }
    return reads;
}

// --- what is bounded

// A relation of another component has the variable's values: they are finitely many.
static bool is_finite(const Rule *rule, uint32_t variable) {
    for (uint32_t i = 0; i < rule->goal_count; i++)
        if (!is_own(rule, &rule->goals[i]) && goal_holds(&rule->goals[i], variable)) return true;
    return false;
}

static bool is_open(const Rule *rule, uint32_t variable, int depth) {
    if (depth == 0) return true;
    if (is_finite(rule, variable)) return false;
    bool open = false;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        open |= goal_holds(goal, variable);
        bool computes =
            (goal->kind == GOAL_BIND || goal->kind == GOAL_MEMBER) && goal->variable == variable;
        for (uint32_t v = 0; computes && v < rule->variable_count; v++)
            open |= expression_reads(rule, goal->left, v, v, 1) && is_open(rule, v, depth - 1);
    }
    return open;
}

static bool expression_is_open(const Rule *rule, const Expression *expression) {
    for (uint32_t v = 0; v < rule->variable_count; v++)
        if (expression_reads(rule, expression, v, v, 1) && is_open(rule, v, DEPTH_MAX)) return true;
    return false;
}

// The variable, or it plus or minus a constant.
static bool is_shifted(const Expression *expression, uint32_t variable) {
    bool adds = expression->kind == ARITHMETIC_ADD || expression->kind == ARITHMETIC_SUB;
    if (adds && expression->right->kind == ARITHMETIC_CONSTANT) expression = expression->left;
    return expression->kind == ARITHMETIC_VARIABLE && expression->value == variable;
}

static void bound_by(const Rule *rule, const Goal *goal, uint32_t variable, Flow *flow) {
    ASSERT(goal->kind == GOAL_COMPARE && goal->left && goal->right);
    bool left = expression_reads(rule, goal->left, variable, flow->end, DEPTH_MAX);
    const Expression *side = left ? goal->left : goal->right;
    if (goal->comparison == COMPARE_NE ||
        !expression_reads(rule, side, variable, flow->end, DEPTH_MAX))
        return;
    if (expression_is_open(rule, left ? goal->right : goal->left)) return;
    bool less = goal->comparison == COMPARE_LT || goal->comparison == COMPARE_LE;
    bool both = goal->comparison == COMPARE_EQ || !is_shifted(side, variable);
    flow->above |= both || less == left;
    flow->below |= both || less != left;
}

// What the rule's conditions say of the variable; of conditions of the host it is not known.
static void variable_bounds(const Rule *rule, uint32_t variable, Flow *flow) {
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        bool tests = goal->kind == GOAL_TEST &&
                     expression_reads(rule, goal->left, variable, flow->end, DEPTH_MAX);
        bool equals = goal->kind == GOAL_BIND && goal->variable == variable &&
                      !expression_is_open(rule, goal->left);
        if (goal->kind == GOAL_COMPARE) bound_by(rule, goal, variable, flow);
        flow->above |= tests || equals;
        flow->below |= tests || equals;
    }
}

// --- flows

static void variable_flow(Growth *growth, uint32_t variable, Flow flow, int depth);

static double number_of(const Growth *growth, const Expression *expression, bool *is) {
    double number = 0;
    *is = expression->kind == ARITHMETIC_CONSTANT &&
          constant_number(&growth->store->constants, expression->value, &number);
    return number;
}

static Flow flow_add(Flow flow, double number, bool known) {
    if (known && number == 0) return flow;
    ASSERT(flow.grows || flow.sign == 0);
    int sign = known ? (number > 0 ? 1 : -1) : 0;
    flow.sign = !flow.grows || flow.sign == sign ? sign : 0;
    flow.grows = true;
    return flow;
}

// How the flow through one operand is changed by the other.
static Flow flow_through(const Growth *growth, const Expression *expression, bool left, Flow flow) {
    bool known;
    double other = number_of(growth, left ? expression->right : expression->left, &known);
    switch (expression->kind) {
    case ARITHMETIC_ADD: return flow_add(flow, other, known);
    case ARITHMETIC_SUB:
        if (left) return flow_add(flow, -other, known);
        if (known) flow.sign = 0; // back and forth, by itself
        return known ? flow : flow_add(flow, 0, false);
    case ARITHMETIC_MUL:
        if (known && (other == 0 || other == 1 || other == -1)) return flow;
        return flow_add(flow, 0, false);
    case ARITHMETIC_DIV:
        if (left && known && other > -1 && other < 1) return flow_add(flow, 0, false);
        return flow;
    default: flow.sign = 0; return flow; // turned around
    }
}

static void expression_flow(Growth *growth, const Expression *expression, Flow flow, int depth) {
    if (!expression || expression->kind == ARITHMETIC_MOD) return; // there are only so many rests
    if (expression->kind == ARITHMETIC_VARIABLE) {
        variable_flow(growth, expression->value, flow, depth - 1);
    } else if (expression->right) {
        expression_flow(growth, expression->left, flow_through(growth, expression, true, flow),
                        depth);
        expression_flow(growth, expression->right, flow_through(growth, expression, false, flow),
                        depth);
    } else if (expression->left) {
        flow.sign = 0;
        expression_flow(growth, expression->left, flow, depth);
    }
}

static void variable_flow(Growth *growth, uint32_t variable, Flow flow, int depth) {
    const Rule *rule = growth->rule;
    if (depth == 0 || is_finite(rule, variable)) return;
    variable_bounds(rule, variable, &flow);
    bool held = false;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        for (uint32_t j = 0; is_own(rule, goal) && j < goal_arity(goal); j++) {
            if (goal->terms[j].kind != TERM_VARIABLE || goal->terms[j].value != variable) continue;
            held = true;
            flow.from = column_place(goal_whole(goal), j);
            VECTOR_PUSH(&growth->flows, flow);
        }
    }
    for (uint32_t i = 0; i < rule->goal_count && !held; i++)
        if (rule->goals[i].kind == GOAL_BIND && rule->goals[i].variable == variable)
            expression_flow(growth, rule->goals[i].left, flow, depth);
}

// Whether another variable of the goal is among the recursion's values: the goal leads from there.
static bool leads_to(const Rule *rule, const Goal *goal, uint32_t variable) {
    bool from = false;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *own = &rule->goals[i];
        if (!is_own(rule, own)) continue;
        if (goal_holds(own, variable)) return false; // it was there before
        for (uint32_t j = 0; j < goal_arity(own); j++)
            from |= own->terms[j].kind == TERM_VARIABLE && goal_holds(goal, own->terms[j].value);
    }
    return from;
}

// Each round takes a step from one value of a relation below to another, as along the edges of a
// graph: it ends where those have no cycle.
static bool goes_along(const Rule *rule) {
    for (uint32_t i = 0; i < rule->goal_count; i++)
        for (uint32_t j = 0; j < rule->arity; j++)
            if (rule->head[j].kind == TERM_VARIABLE && !is_own(rule, &rule->goals[i]) &&
                goal_holds(&rule->goals[i], rule->head[j].value) &&
                leads_to(rule, &rule->goals[i], rule->head[j].value))
                return true;
    return false;
}

// Columns that keep the best value have an end or are found to have none (evaluate.c).
static void rule_flow(Growth *growth, const Rule *rule) {
    ASSERT(rule->relation && rule->arity == rule->relation->arity);
    growth->rule = rule;
    if (growth->surely && goes_along(rule)) return;
    for (uint32_t i = 0; i < rule->arity; i++) {
        bool plain = rule->head[i].kind == TERM_VARIABLE &&
                     rule->relation->columns[i].merge == MERGE_NONE &&
                     !(rule->aggregates && rule->aggregates[i] != AGGREGATE_NONE);
        Flow flow = {.to = column_place(rule->relation, i), .end = rule->head[i].value};
        if (plain) variable_flow(growth, rule->head[i].value, flow, DEPTH_MAX);
    }
}

// --- ways

static bool flow_stops(const Flow *flow, int sign) {
    if (flow->grows && flow->sign * sign < 0) return true; // it goes back
    return sign > 0 ? flow->above : sign < 0 ? flow->below : flow->above || flow->below;
}

// Whether what `flow` gives comes back to where it was taken.
static bool comes_back(const Growth *growth, const Flow *flow) {
    SCOPED_MEMORY DatumList reached = {0};
    if (!flow_stops(flow, flow->sign)) VECTOR_PUSH(&reached, flow->to);
    bool back = false;
    for (size_t i = 0; i < reached.count && !back; i++) {
        back = reached.items[i] == flow->from;
        for (size_t j = 0; j < growth->flows.count; j++) {
            const Flow *next = &growth->flows.items[j];
            bool known = next->from != reached.items[i] || flow_stops(next, flow->sign);
            for (size_t k = 0; k < reached.count && !known; k++)
                known = reached.items[k] == next->to;
            if (!known) VECTOR_PUSH(&reached, next->to);
        }
    }
    return back;
}

// --- clocks

// A variable as another one plus a constant.
typedef struct Shift {
    uint32_t base;
    double by;
} Shift;

static Shift shift_of(const Growth *growth, const Rule *rule, uint32_t variable, int depth) {
    Shift shift = {.base = variable};
    for (uint32_t i = 0; i < rule->goal_count && depth > 0; i++) {
        const Goal *goal = &rule->goals[i];
        if (goal->kind != GOAL_BIND || goal->variable != variable) continue;
        const Expression *sum = goal->left;
        bool add = sum->kind == ARITHMETIC_ADD, known;
        if ((!add && sum->kind != ARITHMETIC_SUB) || sum->left->kind != ARITHMETIC_VARIABLE)
            continue;
        double number = number_of(growth, sum->right, &known);
        if (!known) continue;
        shift = shift_of(growth, rule, sum->left->value, depth - 1);
        shift.by += add ? number : -number;
        return shift;
    }
    return shift;
}

// Whether the column moves that way from every row of the recursion that the rule reads to the one
// that it gives, or, not strictly, at least stays.
static bool column_moves(const Growth *growth, const Rule *rule, uint32_t column, int sign,
                         bool strictly) {
    if (rule->head[column].kind != TERM_VARIABLE) return false;
    Shift to = shift_of(growth, rule, rule->head[column].value, DEPTH_MAX);
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        if (!is_own(rule, goal)) continue;
        if (goal_whole(goal) != rule->relation || goal->terms[column].kind != TERM_VARIABLE)
            return false;
        Shift from = shift_of(growth, rule, goal->terms[column].value, DEPTH_MAX);
        double step = (to.by - from.by) * sign;
        if (from.base != to.base || step < 0 || (strictly && step == 0)) return false;
    }
    return true;
}

static bool is_recursive(const Rule *rule) {
    for (uint32_t i = 0; i < rule->goal_count; i++)
        if (is_own(rule, &rule->goals[i])) return true;
    return false;
}

static bool is_clock(const Growth *growth, const Rule *rule, uint32_t column, int sign) {
    if (!column_moves(growth, rule, column, sign, true)) return false;
    uint32_t head = rule->head[column].value;
    Flow flow = {.end = head};
    variable_bounds(rule, shift_of(growth, rule, head, DEPTH_MAX).base, &flow);
    if (sign > 0 ? !flow.above : !flow.below) return false;
    for (size_t i = 0; i < growth->store->rules.count; i++) {
        const Rule *other = growth->store->rules.items[i];
        bool together = other->relation->component == rule->relation->component;
        if (!together || !is_recursive(other)) continue;
        if (other->relation != rule->relation || !column_moves(growth, other, column, sign, false))
            return false;
    }
    return true;
}

// The rule can be used only so often on a way: a column moves toward a bound each time, and no rule
// of the recursion moves it back.
static bool has_clock(const Growth *growth, const Rule *rule) {
    for (uint32_t i = 0; i < rule->arity; i++) {
        bool plain = rule->relation->columns[i].merge == MERGE_NONE &&
                     !(rule->aggregates && rule->aggregates[i] != AGGREGATE_NONE);
        if (plain && (is_clock(growth, rule, i, 1) || is_clock(growth, rule, i, -1))) return true;
    }
    return false;
}

static bool computes(const Rule *rule) {
    for (uint32_t i = 0; i < rule->goal_count; i++)
        if (rule->goals[i].kind == GOAL_BIND) return true;
    return false;
}

bool rule_grows(const Store *store, const Rule *rule, bool surely, uint32_t *column) {
    if (!computes(rule)) return false;
    Growth growth = {.store = store, .surely = surely};
    rule_flow(&growth, rule);
    size_t own = growth.flows.count;
    for (size_t i = 0; i < store->rules.count && own > 0; i++) {
        const Rule *other = store->rules.items[i];
        bool together = other->relation->component == rule->relation->component;
        if (together && other != rule) rule_flow(&growth, other);
    }
    bool grows = false;
    for (size_t i = 0; i < own && !grows; i++) {
        const Flow *flow = &growth.flows.items[i];
        grows = flow->grows && comes_back(&growth, flow) && !has_clock(&growth, rule);
        if (grows) *column = flow->to % ARITY_MAX;
    }
    VECTOR_FREE(&growth.flows);
    return grows;
}

const Rule *rule_endless(const Store *store, const Rule *rule) {
    uint32_t column;
    for (size_t i = 0; i < store->rules.count && rule->span.begin; i++) {
        const Rule *written = store->rules.items[i];
        if (written->span.begin != rule->span.begin || written->span.end != rule->span.end)
            continue;
        return rule_grows(store, written, false, &column) ? written : NULL;
    }
    return NULL;
}
