// A relation whose rows have no end may have one for a question: N(5)? is answered when the row has
// come, and N(X), X < 10? when values only rise and all of the last round's are above. A column of
// each relation is chosen; with what the last round added to it lying beyond an edge, the ranges of
// a rule's variables show that its head lies beyond the edge, too, or that it gives nothing. Each
// later row comes from such a row, and so none is asked for.
#include "logic/seek.h"

#include <math.h>
#include <stdlib.h>

typedef struct Range {
    double low, high; // every value is a number in between, but for {-INFINITY, INFINITY}
} Range;

typedef struct Known { // the range of a table's column
    const Table *table;
    uint32_t column, rows; // those looked at
    Range range;
} Known;

struct Seek {
    const Store *store;
    const RelationList *relations;
    const Question *question;
    uint32_t *chosen; // a column of each of the relations, or ARITY_MAX
    bool rises;       // the way to the edge
    bool beyond;      // what may still come lies beyond the edge
    bool follows;     // rules lead from beyond the edge to beyond it
    double edge;
    VECTOR(Known) known;
};

// A rule's goals, of which one reads what came beyond the edge.
typedef struct Body {
    const Rule *rule;
    const Datum *initial;     // of its variables; NULL: none has a value
    uint32_t latest;          // that goal,
    const Relation *relation; // and what it reads
    Range ranges[VARIABLES_MAX];
} Body;

static const Range anything = {-INFINITY, INFINITY};
static const Range nothing = {INFINITY, -INFINITY};

// --- ranges

static const double EXACT = 9007199254740992.0; // integers up to here are exact

static Range range_meet(Range a, Range b) {
    return (Range){fmax(a.low, b.low), fmin(a.high, b.high)};
}

static bool range_is_empty(Range range) {
    return !(range.low <= range.high);
}

static Range range_widen(Range range) {
    if (isnan(range.low) || isnan(range.high)) return anything;
    if (range.low < -EXACT) range.low = -INFINITY;
    if (range.low > EXACT) range.low = EXACT;
    if (range.high > EXACT) range.high = INFINITY;
    if (range.high < -EXACT) range.high = -EXACT;
    return range;
}

static Range range_of_constant(const Seek *seek, Datum constant) {
    double number;
    bool is = constant_number(&seek->store->constants, constant, &number) && fabs(number) <= EXACT;
    return is ? (Range){number, number} : anything;
}

static Range range_multiply(Range a, Range b) {
    double products[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    Range range = nothing;
    for (int i = 0; i < 4; i++) {
        if (isnan(products[i])) return anything;
        range = (Range){fmin(range.low, products[i]), fmax(range.high, products[i])};
    }
    return range;
}

static Range expression_range(const Seek *seek, const Expression *expression, const Range *ranges) {
    if (expression->kind == ARITHMETIC_CONSTANT) return range_of_constant(seek, expression->value);
    if (expression->kind == ARITHMETIC_VARIABLE) return ranges[expression->value];
    Range left = anything, right = anything;
    if (expression->left) left = expression_range(seek, expression->left, ranges);
    if (expression->right) right = expression_range(seek, expression->right, ranges);
    switch (expression->kind) {
    case ARITHMETIC_ADD: left = (Range){left.low + right.low, left.high + right.high}; break;
    case ARITHMETIC_NEG: left = (Range){-left.high, -left.low}; break;
    case ARITHMETIC_SUB: left = (Range){left.low - right.high, left.high - right.low}; break;
    case ARITHMETIC_MUL: left = range_multiply(left, right); break;
    default: return anything;
    }
    return range_widen(left);
}

static Range rows_range(const Seek *seek, const Table *table, uint32_t column, uint32_t from) {
    Range range = nothing;
    for (uint32_t row = from; row < table->count; row++) {
        if (table_is_dead(table, row)) continue;
        Range value = range_of_constant(seek, table_at(table, row, column));
        range = (Range){fmin(range.low, value.low), fmax(range.high, value.high)};
    }
    return range;
}

static Range column_range(Seek *seek, const Table *table, uint32_t column) {
    Known *known = NULL;
    for (size_t i = 0; i < seek->known.count && !known; i++)
        if (seek->known.items[i].table == table && seek->known.items[i].column == column)
            known = &seek->known.items[i];
    if (!known) {
        VECTOR_PUSH(&seek->known, ((Known){table, column, 0, nothing}));
        known = &seek->known.items[seek->known.count - 1];
    }
    Range more = rows_range(seek, table, column, known->rows);
    known->range = (Range){fmin(known->range.low, more.low), fmax(known->range.high, more.high)};
    known->rows = table->count;
    return known->range;
}

// --- what a body can give

static size_t relation_place(const Seek *seek, const Relation *relation) {
    size_t place = 0;
    while (place < seek->relations->count && seek->relations->items[place] != relation) place++;
    return place;
}

static uint32_t *chosen_of(const Seek *seek, const Relation *relation) {
    size_t place = relation_place(seek, relation);
    return place < seek->relations->count ? &seek->chosen[place] : NULL;
}

static Range beyond_edge(const Seek *seek) {
    return seek->rises ? (Range){seek->edge, INFINITY} : (Range){-INFINITY, seek->edge};
}

static Range goal_range(Seek *seek, const Body *body, uint32_t number, uint32_t column) {
    bool latest = number == body->latest;
    const Relation *relation = latest ? body->relation : body->rule->goals[number].relation;
    const Table *table = relation_table(relation);
    const uint32_t *chosen = chosen_of(seek, relation);
    if (!chosen) return table ? column_range(seek, table, column) : anything;
    if (*chosen != column) return anything;
    Range edge = beyond_edge(seek);
    if (latest) return edge;
    Range rows = table ? column_range(seek, table, column) : (Range){0, 0}; // there is none yet
    return seek->rises ? (Range){fmin(rows.low, edge.low), INFINITY}
                       : (Range){-INFINITY, fmax(rows.high, edge.high)};
}

static bool comparison_fails(const Seek *seek, const Goal *goal, const Range *ranges) {
    Range left = expression_range(seek, goal->left, ranges);
    Range right = expression_range(seek, goal->right, ranges);
    switch (goal->comparison) {
    case COMPARE_EQ: return range_is_empty(range_meet(left, right));
    case COMPARE_NE: return false;
    case COMPARE_LT: return left.low >= right.high;
    case COMPARE_LE: return left.low > right.high;
    case COMPARE_GT: return left.high <= right.low;
    default: return left.high < right.low;
    }
}

static bool atom_fits(Seek *seek, Body *body, uint32_t number) {
    const Goal *goal = &body->rule->goals[number];
    for (uint32_t i = 0; i < goal->relation->arity; i++) {
        const Term *term = &goal->terms[i];
        Range range = goal_range(seek, body, number, i);
        if (term->kind == TERM_CONSTANT)
            range = range_meet(range, range_of_constant(seek, term->value));
        if (term->kind == TERM_VARIABLE)
            range = body->ranges[term->value] = range_meet(range, body->ranges[term->value]);
        if (range_is_empty(range)) return false;
    }
    return true;
}

static bool goal_fits(Seek *seek, Body *body, uint32_t number) {
    const Goal *goal = &body->rule->goals[number];
    if (goal->kind == GOAL_ATOM) return atom_fits(seek, body, number);
    if (goal->kind == GOAL_COMPARE) return !comparison_fails(seek, goal, body->ranges);
    if (goal->kind != GOAL_BIND) return true;
    Range *range = &body->ranges[goal->variable];
    *range = range_meet(*range, expression_range(seek, goal->left, body->ranges));
    return !range_is_empty(*range);
}

// The ranges of the variables; false: nothing satisfies the goals. Variables are computed from each
// other in any order.
static bool body_fits(Seek *seek, Body *body) {
    const Rule *rule = body->rule;
    uint32_t passes = 1;
    ASSERT(rule->variable_count <= VARIABLES_MAX);
    for (uint32_t i = 0; i < rule->variable_count; i++)
        body->ranges[i] = body->initial && body->initial[i] != CONSTANT_NONE
                              ? range_of_constant(seek, body->initial[i])
                              : anything;
    for (uint32_t i = 0; i < rule->goal_count; i++) passes += rule->goals[i].kind == GOAL_BIND;
    for (uint32_t pass = 0; pass < passes; pass++)
        for (uint32_t i = 0; i < rule->goal_count; i++)
            if (!goal_fits(seek, body, i)) return false;
    return true;
}

// Whether what the rule gives lies beyond the edge, too, or does not matter by itself.
static bool head_follows(Seek *seek, const Body *body) {
    const Relation *relation = body->rule->relation;
    uint32_t column = *chosen_of(seek, relation);
    if (column == ARITY_MAX) return relation != seek->question->relation;
    const Term *term = &body->rule->head[column];
    Range range = term->kind == TERM_VARIABLE ? body->ranges[term->value]
                                              : range_of_constant(seek, term->value);
    seek->follows = true;
    return seek->rises ? range.low >= seek->edge : range.high <= seek->edge;
}

static bool rule_ends(Seek *seek, const Rule *rule, uint32_t goal) {
    Body body = {.rule = rule, .latest = goal, .relation = rule->goals[goal].relation};
    return !body_fits(seek, &body) || head_follows(seek, &body);
}

static bool question_ends(Seek *seek) {
    const Question *question = seek->question;
    uint32_t column = *chosen_of(seek, question->relation);
    if (column == ARITY_MAX) return true; // its rules must give nothing
    Datum value = question->values[column];
    if (value != CONSTANT_NONE &&
        range_is_empty(range_meet(range_of_constant(seek, value), beyond_edge(seek))))
        return true;
    Body body = {question->rule, question->initial, question->goal, question->relation, {{0, 0}}};
    return question->rule && !body_fits(seek, &body);
}

// --- columns

// Chooses one for the goal's relation if it has none and needs one.
static bool goal_choose(Seek *seek, const Rule *rule, uint32_t goal, bool *changed) {
    uint32_t *chosen = chosen_of(seek, rule->goals[goal].relation);
    bool ends = rule_ends(seek, rule, goal);
    if (ends || *chosen != ARITY_MAX) return ends;
    *changed = true;
    for (*chosen = 0; *chosen < rule->goals[goal].relation->arity; ++*chosen)
        if (rule_ends(seek, rule, goal)) return true;
    return false;
}

// What the rules read of relations that are not evaluated here must be all there.
static bool rules_choose(Seek *seek, bool *changed) {
    *changed = false;
    for (size_t i = 0; i < seek->relations->count; i++) {
        const RuleList *rules = &seek->relations->items[i]->rules;
        for (size_t j = 0; j < rules->count; j++)
            for (uint32_t k = 0; k < rules->items[j]->goal_count; k++) {
                const Goal *goal = &rules->items[j]->goals[k];
                bool reads = goal->kind == GOAL_ATOM && chosen_of(seek, goal->relation);
                if (reads && !goal_choose(seek, rules->items[j], k, changed)) return false;
            }
    }
    return true;
}

// Columns for an edge far out, given that of the question's relation.
static bool columns_choose(Seek *seek, uint32_t column) {
    const double FAR = EXACT / 2;
    bool changed = true;
    for (size_t i = 0; i < seek->relations->count; i++) seek->chosen[i] = ARITY_MAX;
    *chosen_of(seek, seek->question->relation) = column;
    seek->edge = seek->rises ? FAR : -FAR;
    if (!question_ends(seek)) return false;
    while (changed) {
        seek->follows = false;
        if (!rules_choose(seek, &changed)) return false;
    }
    return true;
}

// --- the edge

// Rows of the last round: all of them lie beyond it.
static bool edge_find(Seek *seek) {
    Range range = nothing;
    for (size_t i = 0; i < seek->relations->count; i++) {
        const Relation *relation = seek->relations->items[i];
        if (seek->chosen[i] == ARITY_MAX) continue;
        ASSERT(relation->rounds.count > 1);
        uint32_t before = relation->rounds.items[relation->rounds.count - 2];
        Range rows = rows_range(seek, relation->derived, seek->chosen[i], before);
        range = (Range){fmin(range.low, rows.low), fmax(range.high, rows.high)};
    }
    seek->edge = seek->rises ? range.low : range.high;
    return isfinite(seek->edge);
}

static bool rounds_end(Seek *seek) {
    bool changed;
    return edge_find(seek) && question_ends(seek) && rules_choose(seek, &changed) && !changed;
}

// Relations of the stratum that were complete before take part by their rounds.
static bool others_are_through(const Seek *seek) {
    size_t rounds = seek->relations->items[0]->rounds.count;
    for (size_t i = 0; i < seek->store->relations.count; i++) {
        const Relation *relation = seek->store->relations.items[i];
        bool along = relation->stratum == seek->question->relation->stratum && relation->derived;
        if (along && relation->rounds.count > rounds) return false;
    }
    return true;
}

// Whether a column and a way lead to an edge that `ends` accepts; without `ends`, to any.
static bool ways_try(Seek *seek, bool (*ends)(Seek *)) {
    for (int way = 0; way < 2; way++) {
        seek->rises = way == 0;
        for (uint32_t column = 0; column <= seek->question->relation->arity; column++) {
            bool none = column == seek->question->relation->arity;
            if (columns_choose(seek, none ? ARITY_MAX : column) &&
                (ends ? ends(seek) : seek->follows))
                return true;
        }
    }
    return false;
}

bool question_is_ground(const Question *question) {
    bool ground = true;
    for (uint32_t i = 0; i < question->relation->arity; i++)
        ground &= question->values[i] != CONSTANT_NONE;
    return ground;
}

// Whether all is known once the row has come.
static bool ends_with_row(const Question *question) {
    return question_is_ground(question) && !question->ways;
}

bool question_has_end(const Store *store, const RelationList *relations, const Question *question) {
    if (ends_with_row(question)) return true;
    Seek *seek = seek_new(store, relations, question);
    bool has = ways_try(seek, NULL);
    seek_free(seek);
    return has;
}

Seek *seek_new(const Store *store, const RelationList *relations, const Question *question) {
    Seek *seek = memory_allocate_zeroed(1, sizeof *seek);
    *seek = (Seek){.store = store, .relations = relations, .question = question};
    seek->chosen = memory_allocate_zeroed(relations->count + 1, sizeof *seek->chosen);
    return seek;
}

void seek_free(Seek *seek) {
    if (!seek) return;
    VECTOR_FREE(&seek->known);
    free(seek->chosen);
    free(seek);
}

bool seek_ends(Seek *seek) {
    const Question *question = seek->question;
    const Table *rows = question->relation->derived;
    ASSERT(rows && question->relation->rounds.count > 0);
    seek->beyond = false;
    if (ends_with_row(question) && table_has(rows, question->values)) return true;
    if (!question->relation->grows) return false;
    seek->beyond = question->relation->rounds.count > 1 && others_are_through(seek) &&
                   ways_try(seek, rounds_end);
    return seek->beyond;
}

Edge seek_edge(const Seek *seek) {
    const Relation *relation = seek->question->relation;
    uint32_t column = seek->beyond ? *chosen_of(seek, relation) : ARITY_MAX;
    return (Edge){column < ARITY_MAX ? relation : NULL, column, seek->rises, seek->edge};
}

bool question_is_answered(const Store *store, const Question *question) {
    const Table *rows = question->relation->begun;
    const Edge *edge = &store->edge;
    double number;
    if (!rows || !ends_with_row(question)) return false;
    if (table_has(rows, question->values)) return true;
    return edge->relation == question->relation &&
           constant_number(&store->constants, question->values[edge->column], &number) &&
           fabs(number) <= EXACT && (edge->rises ? number < edge->value : number > edge->value);
}
