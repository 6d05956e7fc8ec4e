// What a set of rules must satisfy before it can be evaluated, and the order in which its relations
// are: components of relations that need each other, and strata, so that what is negated,
// aggregated or kept as best values is complete in a lower stratum than its readers.
#include <stdlib.h>

#include "logic/analyse.h"
#include "logic/components.h"
#include "logic/growth.h"
#include "logic/narrow.h"
#include "logic/store.h"

// --- safety

static int head_missing(const Rule *rule, const VariableSet *bound) {
    for (uint32_t i = 0; i < rule->arity; i++)
        if (rule->head[i].kind == TERM_VARIABLE && !variables_have(bound, rule->head[i].value))
            return (int)rule->head[i].value;
    return -1;
}

// Whether it computes an argument.
static bool is_computed(const Rule *rule, const Goal *goal) {
    return goal->kind == GOAL_BIND && !rule->variable_names[goal->variable];
}

static bool is_held(const Rule *rule, uint32_t variable) {
    bool held = false;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        for (uint32_t j = 0; goal->kind == GOAL_ATOM && j < goal_arity(goal); j++)
            held |= goal->terms[j].kind == TERM_VARIABLE && goal->terms[j].value == variable;
    }
    return held;
}

// Takes goals whose variables have values, as often as that gives others theirs.
static const Goal *goals_settle(const Rule *rule, VariableSet *bound, int *missing) {
    SCOPED_MEMORY bool *taken = memory_allocate_zeroed(rule->goal_count + 1, sizeof *taken);
    const Goal *stuck = NULL;
    for (bool going = true; going;) {
        going = false;
        stuck = NULL;
        for (uint32_t i = 0; i < rule->goal_count; i++) {
            const Goal *goal = &rule->goals[i];
            if (taken[i]) continue;
            int lacks = goal_missing(goal, goal_arity(goal), bound);
            if (lacks < 0) {
                goal_bind(goal, goal_arity(goal), bound);
                taken[i] = going = true;
            } else if (!stuck || (is_computed(rule, goal) && !is_computed(rule, stuck))) {
                stuck = goal;
                *missing = lacks;
            }
        }
    }
    return stuck;
}

// `goal`: what waits for the variable; NULL: the head.
static Status fail_unsafe(const Rule *rule, const Goal *goal, const char *name) {
    bool negated = goal && goal->kind == GOAL_NOT;
    bool argument = goal && is_computed(rule, goal) && is_held(rule, goal->variable);
    const char *where = !goal      ? "the head"
                        : negated  ? "`not`"
                        : argument ? "this argument"
                                   : "this condition";
    fail(STATUS_NAME, "variable `%s` of %s never gets a value: no relation in the body holds it",
         name ? name : "_", where);
    if (negated) return fail_help("add a relation that holds it, or write `_` for any value");
    if (argument)
        return fail_help("an argument is computed, not taken apart: give the column a variable "
                         "and get the value from it, as `Y = T.0` does");
    return fail_help("add a relation that holds it to the body");
}

Status rule_check_safe(const Rule *rule, const Datum *initial, Span *span) {
    VariableSet bound = {0};
    for (uint32_t i = 0; initial && i < rule->variable_count; i++)
        if (initial[i] != CONSTANT_NONE) variables_add(&bound, i);
    int missing = -1;
    const Goal *stuck = goals_settle(rule, &bound, &missing);
    *span = stuck ? stuck->span : rule->span;
    if (!stuck) missing = head_missing(rule, &bound);
    if (missing < 0) return STATUS_OK;
    return fail_unsafe(rule, stuck, rule->variable_names[missing]);
}

// Components are numbered so that a relation's is not below those of what it reads.
static void relations_number(Store *store) {
    size_t count = store->relations.count;
    SCOPED_MEMORY uint32_t *first = memory_allocate_zeroed(count + 1, sizeof *first);
    SCOPED_MEMORY uint32_t *component = memory_allocate((count + 1) * sizeof *component);
    SCOPED_MEMORY VECTOR(uint32_t) reads = {0};
    for (size_t i = 0; i < count; i++) {
        const Relation *relation = store->relations.items[i];
        for (size_t j = 0; j < relation->rules.count; j++) {
            const Rule *rule = relation->rules.items[j];
            for (uint32_t k = 0; k < rule->goal_count; k++)
                if (rule->goals[k].relation) VECTOR_PUSH(&reads, rule->goals[k].relation->number);
        }
        first[i + 1] = (uint32_t)reads.count;
    }
    components_find((uint32_t)count, first, reads.items, component);
    for (size_t i = 0; i < count; i++) store->relations.items[i]->component = component[i];
}

// --- best values

static Merge aggregate_merge(Aggregate aggregate) {
    if (aggregate == AGGREGATE_MIN) return MERGE_MIN;
    return aggregate == AGGREGATE_MAX ? MERGE_MAX : MERGE_NONE;
}

static bool rule_is_recursive(const Rule *rule) {
    for (uint32_t i = 0; i < rule->goal_count; i++)
        if (rule->goals[i].relation &&
            rule->goals[i].relation->component == rule->relation->component)
            return true;
    return false;
}

// min(...) and max(...) in the head of a recursive rule declare the column so.
static void rule_declare_merges(const Rule *rule) {
    Relation *relation = rule->relation;
    ASSERT(relation->arity == rule->arity);
    bool recursive = rule->aggregates && rule_is_recursive(rule);
    for (uint32_t i = 0; recursive && i < rule->arity; i++) {
        Merge merge = aggregate_merge(rule->aggregates[i]);
        if (merge == MERGE_NONE || relation->columns[i].merge != MERGE_NONE) continue;
        relation->columns[i].merge = merge;
        relation->key &= ~(1u << i);
    }
}

// An aggregate over a column that keeps the best value itself needs no groups.
static void rule_drop_aggregates(Rule *rule) {
    bool any = false;
    for (uint32_t i = 0; rule->aggregates && i < rule->arity; i++) {
        Merge merge = aggregate_merge(rule->aggregates[i]);
        if (merge != MERGE_NONE && merge == rule->relation->columns[i].merge)
            rule->aggregates[i] = AGGREGATE_NONE;
        any |= rule->aggregates[i] != AGGREGATE_NONE;
    }
    if (!any) rule->aggregates = NULL;
}

// How a value depends on a best value that may still become better.
typedef enum Trend { TREND_NONE, TREND_SAME, TREND_OPPOSITE, TREND_UNKNOWN } Trend;

static Trend trend_flip(Trend trend) {
    if (trend == TREND_SAME) return TREND_OPPOSITE;
    return trend == TREND_OPPOSITE ? TREND_SAME : trend;
}

static Trend trend_join(Trend a, Trend b) {
    if (a == TREND_NONE) return b;
    return b == TREND_NONE || a == b ? a : TREND_UNKNOWN;
}

static Trend expression_trend(const Expression *expression, const Trend *trends) {
    if (!expression) return TREND_NONE;
    Trend left = expression_trend(expression->left, trends);
    Trend right = expression_trend(expression->right, trends);
    switch (expression->kind) {
    case ARITHMETIC_CONSTANT: return TREND_NONE;
    case ARITHMETIC_VARIABLE: return trends[expression->value];
    case ARITHMETIC_ADD: return trend_join(left, right);
    case ARITHMETIC_SUB: return trend_join(left, trend_flip(right));
    case ARITHMETIC_NEG: return trend_flip(left);
    default: break;
    }
    Trend joined = trend_join(left, right);
    for (uint32_t i = 0; i < expression->variable_count; i++)
        joined = trend_join(joined, trends[expression->variables[i]]);
    return joined == TREND_NONE ? TREND_NONE : TREND_UNKNOWN;
}

// What best values of the rule's own component the variables hold: TREND_SAME for one, and for
// what rises and falls with it. `merge` is that of the columns read.
static const Goal *trends_find(const Rule *rule, Trend *trends, Merge *merge) {
    ASSERT(rule->relation != NULL);
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        bool own = goal->relation && goal->relation->component == rule->relation->component;
        for (uint32_t j = 0; own && j < goal->relation->arity; j++) {
            Merge column = goal->relation->columns[j].merge;
            if (column == MERGE_NONE || goal->terms[j].kind == TERM_ANY) continue;
            if (goal->terms[j].kind == TERM_CONSTANT) return goal;
            Trend *trend = &trends[goal->terms[j].value];
            if (*merge != MERGE_NONE && *merge != column) return goal;
            if (*trend != TREND_NONE) return goal; // joined on a value that may change
            *merge = column;
            *trend = TREND_SAME;
        }
    }
    for (uint32_t again = 0; again < rule->goal_count; again++)
        for (uint32_t i = 0; i < rule->goal_count; i++)
            if (rule->goals[i].kind == GOAL_BIND)
                trends[rule->goals[i].variable] = trend_join(
                    trends[rule->goals[i].variable], expression_trend(rule->goals[i].left, trends));
    return NULL;
}

// A comparison stays true while best values become better: those of min fall, those of max rise.
static bool comparison_stays(const Goal *goal, const Trend *trends, Merge merge) {
    ASSERT(goal->kind == GOAL_COMPARE);
    Trend left = expression_trend(goal->left, trends),
          right = expression_trend(goal->right, trends);
    Trend trend = trend_join(left, trend_flip(right));
    if (trend == TREND_NONE) return true;
    if (trend == TREND_UNKNOWN || merge == MERGE_UNION) return false;
    bool falls = (merge == MERGE_MIN) == (trend == TREND_SAME);
    bool less = goal->comparison == COMPARE_LT || goal->comparison == COMPARE_LE;
    bool more = goal->comparison == COMPARE_GT || goal->comparison == COMPARE_GE;
    return falls ? less : more;
}

static bool goal_stays(const Rule *rule, const Goal *goal, const Trend *trends, Merge merge) {
    if (goal->kind == GOAL_COMPARE) return comparison_stays(goal, trends, merge);
    if (goal->kind == GOAL_TEST || goal->kind == GOAL_MEMBER)
        return expression_trend(goal->left, trends) == TREND_NONE;
    if (!goal->relation || goal->relation->component == rule->relation->component) return true;
    for (uint32_t i = 0; i < goal->relation->arity; i++)
        if (goal->terms[i].kind == TERM_VARIABLE && trends[goal->terms[i].value] != TREND_NONE)
            return false;
    return true;
}

static bool head_stays(const Rule *rule, const Trend *trends, Merge merge) {
    for (uint32_t i = 0; i < rule->arity; i++) {
        if (rule->head[i].kind != TERM_VARIABLE) continue;
        Trend trend = trends[rule->head[i].value];
        if (trend == TREND_NONE) continue;
        if (trend != TREND_SAME || rule->relation->columns[i].merge != merge) return false;
    }
    return true;
}

static Status rule_check_monotone(const Rule *rule, Span *span) {
    Trend *trends = memory_allocate_zeroed(rule->variable_count + 1, sizeof *trends);
    Merge merge = MERGE_NONE;
    const Goal *wrong = trends_find(rule, trends, &merge);
    for (uint32_t i = 0; i < rule->goal_count && !wrong && merge != MERGE_NONE; i++)
        if (!goal_stays(rule, &rule->goals[i], trends, merge)) wrong = &rule->goals[i];
    bool head = !wrong && (merge == MERGE_NONE || head_stays(rule, trends, merge));
    free(trends);
    if (head) return STATUS_OK;
    *span = wrong ? wrong->span : rule->span;
    fail(STATUS_VALUE,
         "this recursion is not monotone: what it gives may cease to hold when a best value "
         "becomes better");
    return fail_help("a best value may be passed on to a column that keeps the best one, plus or "
                     "minus other values, and be compared so that better ones stay in");
}

// --- strata

// Whether the head may only be evaluated when what the goal reads is complete.
static bool goal_wants_complete(const Rule *rule, const Goal *goal) {
    ASSERT(goal->relation != NULL);
    if (goal->kind == GOAL_NOT || rule->aggregates) return true;
    const Relation *read = goal->relation;
    return read->component != rule->relation->component && read->key != columns_all(read->arity);
}

static bool is_negative(const Rule *rule, const Goal *goal) {
    return goal->kind == GOAL_NOT || rule->aggregates;
}

// The way from `relation` back to `goal` within one component, breadth first: by[r] is who reads r.
static void cycle_describe(const Store *store, const Rule *rule, const Goal *goal, Text *out) {
    size_t count = store->relations.count;
    SCOPED_MEMORY const Relation **by = memory_allocate_zeroed(count + 1, sizeof *by);
    SCOPED_MEMORY const Relation **queue = memory_allocate_zeroed(count + 1, sizeof *queue);
    const Relation *from = goal->relation, *to = rule->relation;
    size_t head = 0, tail = 0;
    queue[tail++] = from;
    by[from->number] = from;
    while (head < tail && !by[to->number]) {
        const Relation *at = queue[head++];
        for (size_t i = 0; i < at->rules.count; i++)
            for (uint32_t j = 0; j < at->rules.items[i]->goal_count; j++) {
                const Relation *read = at->rules.items[i]->goals[j].relation;
                if (!read || read->component != to->component || by[read->number]) continue;
                by[read->number] = at;
                queue[tail++] = read;
            }
    }
    // `to` needs `from` through `not`, and `from` needs `to`: the way is found backwards.
    SCOPED_MEMORY VECTOR(const Relation *) way = {0};
    for (const Relation *at = to; at != from; at = by[at->number]) VECTOR_PUSH(&way, at);
    text_format(out, "%s %s%s", to->name, rule->aggregates ? "aggregates " : "needs not ",
                from->name);
    for (size_t i = way.count; i-- > 0;) text_format(out, ", which needs %s", way.items[i]->name);
}

static Status fail_cycle(const Store *store, const Rule *rule, const Goal *goal) {
    ASSERT(rule->relation && goal->relation);
    SCOPED_TEXT(cycle);
    cycle_describe(store, rule, goal, &cycle);
    fail(STATUS_VALUE, "%s depends on itself through %s: %s", rule->relation->name,
         rule->aggregates ? "an aggregate" : "`not`", text_get(&cycle));
    fail_help(rule->aggregates
                  ? "what is aggregated must be complete; min and max alone may recurse"
                  : "what is negated must be complete before: break the cycle");
    return STATUS_VALUE;
}

static Status cycles_check(const Store *store, Span *span) {
    for (size_t i = 0; i < store->rules.count; i++) {
        const Rule *rule = store->rules.items[i];
        for (uint32_t j = 0; j < rule->goal_count; j++) {
            const Goal *goal = &rule->goals[j];
            if (!goal->relation || !is_negative(rule, goal) ||
                goal->relation->component != rule->relation->component)
                continue;
            *span = goal->span;
            return fail_cycle(store, rule, goal);
        }
    }
    return STATUS_OK;
}

// Components have no negative cycles: each pass settles at least one more stratum. They are even.
static void strata_find(Store *store) {
    for (size_t i = 0; i < store->relations.count; i++)
        store->relations.items[i]->stratum = relation_is_derived(store->relations.items[i]);
    for (bool going = true; going;) {
        going = false;
        for (size_t i = 0; i < store->rules.count; i++) {
            const Rule *rule = store->rules.items[i];
            for (uint32_t j = 0; j < rule->goal_count; j++) {
                const Relation *read = rule->goals[j].relation;
                if (!read) continue;
                uint32_t least = read->stratum + goal_wants_complete(rule, &rule->goals[j]);
                if (rule->relation->stratum >= least) continue;
                rule->relation->stratum = least;
                going = true;
            }
        }
    }
    for (size_t i = 0; i < store->relations.count; i++) store->relations.items[i]->stratum *= 2;
}

// Those that make further values in every round, and those of the same stratum that read them.
static void growth_find(Store *store) {
    uint32_t column;
    bool going = true;
    for (size_t i = 0; i < store->relations.count; i++) store->relations.items[i]->grows = false;
    for (size_t i = 0; i < store->rules.count; i++)
        if (rule_grows(store, store->rules.items[i], false, &column))
            store->rules.items[i]->relation->grows = true;
    while (going) {
        going = false;
        for (size_t i = 0; i < store->rules.count; i++) {
            const Rule *rule = store->rules.items[i];
            for (uint32_t j = 0; j < rule->goal_count && !rule->relation->grows; j++) {
                const Relation *read = rule->goals[j].relation;
                rule->relation->grows =
                    read && read->grows && read->stratum == rule->relation->stratum;
                going |= rule->relation->grows;
            }
        }
    }
}

Status store_analyse(Store *store, Span *span) {
    if (store->analysed) return STATUS_OK;
    store_widen(store);
    for (size_t i = 0; i < store->rules.count; i++)
        TRY(rule_check_safe(store->rules.items[i], NULL, span));
    relations_number(store);
    for (size_t i = 0; i < store->rules.count; i++) rule_declare_merges(store->rules.items[i]);
    for (size_t i = 0; i < store->rules.count; i++) rule_drop_aggregates(store->rules.items[i]);
    TRY(cycles_check(store, span));
    for (size_t i = 0; i < store->rules.count; i++)
        TRY(rule_check_monotone(store->rules.items[i], span));
    strata_find(store);
    growth_find(store);
    store_narrow(store);
    store->analysed = true;
    return STATUS_OK;
}
