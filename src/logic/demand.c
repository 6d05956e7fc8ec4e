// Magic sets: for each relation and set of columns that have values when it is asked, one relation
// of what is asked and one of the answers to that, evaluated together. Then the answers alone are
// evaluated again with the questions as facts, which gives rounds and order of naive evaluation:
// whatever a row rests on is asked too.
#include "logic/demand.h"

#include <stdlib.h>

#include "logic/classes.h"
#include "logic/closure.h"
#include "logic/evaluate.h"
#include "logic/profile.h"

typedef struct Asked { // a relation asked with values in some columns
    Relation *original, *answers, *questions;
    Columns bound;
} Asked;

struct Demand {
    Store *store;
    uint32_t stratum;
    VECTOR(Asked) asked;
    RuleList rules; // of the answers and questions; owned
    uint32_t made;
    bool open; // something must be asked without any value, or might be asked without end
};

Relation *demand_relation(const Demand *demand) {
    return demand->asked.items[0].answers;
}

uint32_t demand_rows_made(const Demand *demand) {
    return demand->made;
}

static void asked_free(Asked *asked) {
    ASSERT(asked->answers && asked->questions);
    bool borrowed = asked->answers->facts == asked->original->facts;
    if (borrowed) asked->answers->facts = NULL;
    relation_free(asked->answers);
    relation_free(asked->questions);
}

void demand_free(Demand *demand) {
    if (!demand) return;
    for (size_t i = 0; i < demand->asked.count; i++) asked_free(&demand->asked.items[i]);
    for (size_t i = 0; i < demand->rules.count; i++) rule_free(demand->rules.items[i]);
    VECTOR_FREE(&demand->asked);
    VECTOR_FREE(&demand->rules);
    free(demand);
}

// Where in the list the relation with these columns is; a new entry when it was not asked before.
static size_t asked_find(Demand *demand, Relation *original, Columns bound) {
    for (size_t i = 0; i < demand->asked.count; i++)
        if (demand->asked.items[i].original == original && demand->asked.items[i].bound == bound)
            return i;
    Column columns[ARITY_MAX] = {0};
    Asked asked = {.original = original, .bound = bound};
    asked.answers = relation_make(original->name, original->columns, original->arity);
    SCOPED_TEXT(name);
    text_format(&name, "asked of %s", original->name);
    asked.questions = relation_make(text_get(&name), columns, (uint32_t)__builtin_popcount(bound));
    table_free(asked.answers->facts);
    asked.answers->facts = original->facts;
    asked.answers->stratum = asked.questions->stratum = demand->stratum;
    asked.answers->number = UINT32_MAX - (uint32_t)demand->asked.count; // proofs tell them apart
    asked.questions->question = true;
    VECTOR_PUSH(&demand->asked, asked);
    return demand->asked.count - 1;
}

// --- rules

static bool is_asked(const Demand *demand, const Goal *goal) {
    return goal->kind == GOAL_ATOM && relation_is_derived(goal->relation) &&
           !goal->relation->derived && goal->relation->stratum == demand->stratum;
}

static uint32_t terms_select(const Term *terms, Columns columns, Term *out) {
    uint32_t count = 0;
    for (Columns left = columns; left; left &= left - 1) out[count++] = terms[__builtin_ctz(left)];
    return count;
}

static Columns columns_given(const Goal *goal, const VariableSet *bound) {
    ASSERT(goal->relation && goal->relation->arity <= ARITY_MAX);
    Columns columns = 0;
    for (uint32_t i = 0; i < goal->relation->arity; i++) {
        const Term *term = &goal->terms[i];
        bool has = term->kind == TERM_CONSTANT ||
                   (term->kind == TERM_VARIABLE && variables_have(bound, term->value));
        if (has) columns |= 1u << i;
    }
    return columns;
}

// The goal to take next: a test that can be made; the atom with the most values, of these one whose
// rows are there already; -1: none is left.
static int goal_choose(const Demand *demand, const Rule *rule, const bool *taken,
                       const VariableSet *bound) {
    int best = -1, best_rank = -1;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        if (taken[i] || goal_missing(goal, goal_arity(goal), bound) >= 0) continue;
        if (goal->kind != GOAL_ATOM) return (int)i;
        int given = __builtin_popcount(columns_given(goal, bound));
        int rank = given * 2 + (given > 0 && !is_asked(demand, goal));
        if (rank <= best_rank) continue;
        best = (int)i;
        best_rank = rank;
    }
    return best;
}

static void goal_set(Rule *rule, uint32_t number, Relation *relation, const Term *terms) {
    ASSERT(number < rule->goal_count);
    Goal *goal = &rule->goals[number];
    *goal = (Goal){.kind = GOAL_ATOM, .relation = relation, .span = rule->span};
    goal->terms = arena_allocate(&rule->arena, relation->arity * sizeof *terms);
    memcpy(goal->terms, terms, relation->arity * sizeof *terms);
}

static Rule *rule_like(Demand *demand, const Rule *original, Relation *head, uint32_t goals) {
    ASSERT(original->variable_count <= VARIABLES_MAX);
    Rule *rule = rule_new(original->variable_count, head->arity, goals);
    rule->relation = head;
    rule->span = original->span;
    rule->number = original->number;
    rule->variable_names = original->variable_names; // which outlives it
    VECTOR_PUSH(&demand->rules, rule);
    VECTOR_PUSH(&head->rules, rule);
    return rule;
}

// A rule whose head is asked, up to one of its goals.
typedef struct Prefix {
    const Rule *rule;
    size_t asked; // of the head
    Goal *goals;  // in the order in which they are taken
    uint32_t count;
} Prefix;

static bool goal_has(const Goal *goal, uint32_t variable) {
    for (uint32_t i = 0; i < goal_arity(goal); i++)
        if (goal->terms[i].kind == TERM_VARIABLE && goal->terms[i].value == variable) return true;
    return false;
}

// Whether the variable has finitely many values whatever is asked of the head: those of rows that
// are there, or computed from such by one of the first `count` goals.
static bool is_finite(const Demand *demand, const Prefix *prefix, uint32_t count,
                      uint32_t variable) {
    VariableSet from = {0};
    bool computed = false, finite = true;
    for (uint32_t i = 0; i < count; i++) {
        const Goal *goal = &prefix->goals[i];
        bool there = goal->kind == GOAL_ATOM &&
                     (goal->relation->stratum < demand->stratum || goal->relation->derived);
        if (there && goal_has(goal, variable)) return true;
        if ((goal->kind != GOAL_BIND && goal->kind != GOAL_MEMBER) || goal->variable != variable)
            continue;
        expression_variables(goal->left, &from);
        computed = true;
    }
    for (uint32_t i = 0; computed && i < prefix->rule->variable_count && finite; i++)
        if (variables_have(&from, i)) finite = is_finite(demand, prefix, count - 1, i);
    return computed && finite;
}

static bool is_computed(const Prefix *prefix, uint32_t variable) {
    for (uint32_t i = 0; i + 1 < prefix->count; i++) {
        const Goal *goal = &prefix->goals[i];
        if ((goal->kind == GOAL_BIND || goal->kind == GOAL_MEMBER) && goal->variable == variable)
            return true;
    }
    return false;
}

// Whether each answer may be a reason to ask for a further value, without end.
static bool asks_on(const Demand *demand, const Prefix *prefix, const Term *asked, uint32_t arity) {
    const Goal *goal = &prefix->goals[prefix->count - 1];
    bool on = false;
    if (goal->relation->component != prefix->rule->relation->component) return false;
    for (uint32_t i = 0; i < arity; i++)
        on |= asked[i].kind == TERM_VARIABLE && is_computed(prefix, asked[i].value) &&
              !is_finite(demand, prefix, prefix->count - 1, asked[i].value);
    return on;
}

// What is asked of the last goal when the head is asked and the goals before it are satisfied.
static void questions_add(Demand *demand, const Prefix *prefix, size_t to) {
    Term asked[ARITY_MAX], head[ARITY_MAX];
    ASSERT(to < demand->asked.count && prefix->count > 0);
    const Asked *source = &demand->asked.items[prefix->asked], *target = &demand->asked.items[to];
    uint32_t before = prefix->count - 1;
    uint32_t arity = terms_select(prefix->goals[before].terms, target->bound, asked);
    terms_select(prefix->rule->head, source->bound, head);
    bool same = prefix->asked == to && memcmp(asked, head, arity * sizeof *head) == 0;
    if (same) return; // it asks what is asked
    demand->open |= asks_on(demand, prefix, asked, arity);
    Rule *rule = rule_like(demand, prefix->rule, target->questions, before + 1);
    memcpy(rule->head, asked, arity * sizeof *asked);
    memcpy(rule->goals, prefix->goals, before * sizeof *prefix->goals);
    goal_set(rule, before, source->questions, head);
}

// The rule for what is asked of its head; the goals that are asked in turn get their questions.
static void rule_ask(Demand *demand, size_t number, const Rule *original) {
    ASSERT(number < demand->asked.count);
    Columns head_bound = demand->asked.items[number].bound;
    VariableSet bound = {0};
    SCOPED_MEMORY bool *taken = memory_allocate_zeroed(original->goal_count + 1, sizeof *taken);
    Prefix prefix = {original, number, NULL, 0};
    prefix.goals = memory_allocate((original->goal_count + 1) * sizeof *prefix.goals);
    Rule *rule =
        rule_like(demand, original, demand->asked.items[number].answers, original->goal_count + 1);
    memcpy(rule->head, original->head, original->arity * sizeof *rule->head);
    memcpy(rule->goals, original->goals, original->goal_count * sizeof *rule->goals);
    for (Columns left = head_bound; left; left &= left - 1) {
        const Term *term = &original->head[__builtin_ctz(left)];
        if (term->kind == TERM_VARIABLE) variables_add(&bound, term->value);
    }
    while (prefix.count < original->goal_count) {
        int chosen = goal_choose(demand, original, taken, &bound);
        ASSERT(chosen >= 0); // rule_check_safe
        const Goal *goal = &original->goals[chosen];
        Goal *taken_goal = &prefix.goals[prefix.count++];
        *taken_goal = *goal;
        if (is_asked(demand, goal)) {
            Columns given = columns_given(goal, &bound);
            if (given == 0) demand->open = true;
            size_t to = asked_find(demand, goal->relation, given);
            questions_add(demand, &prefix, to);
            rule->goals[chosen].relation = taken_goal->relation = demand->asked.items[to].answers;
        }
        taken[chosen] = true;
        goal_bind(goal, goal_arity(goal), &bound);
    }
    Term head[ARITY_MAX];
    terms_select(original->head, head_bound, head);
    goal_set(rule, original->goal_count, demand->asked.items[number].questions, head);
    free(prefix.goals);
}

// --- evaluation

static Status answers_evaluate(Demand *demand, bool with_questions) {
    SCOPED_MEMORY RelationList relations = {0};
    for (size_t i = 0; i < demand->asked.count; i++) {
        VECTOR_PUSH(&relations, demand->asked.items[i].answers);
        if (with_questions && demand->asked.items[i].questions->rules.count > 0)
            VECTOR_PUSH(&relations, demand->asked.items[i].questions);
    }
    return relations_evaluate(demand->store, &relations, demand->stratum);
}

// The facts of the relation that are asked, in their order.
static void facts_select(Asked *asked) {
    const Table *facts = asked->original->facts;
    Table *selected = table_new(facts->arity, facts->key);
    ASSERT(facts->arity <= ARITY_MAX);
    Datum values[ARITY_MAX], key[ARITY_MAX];
    for (uint32_t row = 0; row < facts->count; row++) {
        if (table_is_dead(facts, row)) continue;
        uint32_t count = 0;
        table_read(facts, row, values);
        for (Columns left = asked->bound; left; left &= left - 1)
            key[count++] = values[__builtin_ctz(left)];
        if (table_has(asked->questions->facts, key)) table_append(selected, values);
    }
    asked->answers->facts = selected;
}

// The questions become facts; the answers are forgotten and evaluated again in their order.
static void questions_freeze(Demand *demand) {
    for (size_t i = 0; i < demand->asked.count; i++) {
        Asked *asked = &demand->asked.items[i];
        Relation *questions = asked->questions;
        if (questions->rules.count > 0) {
            table_free(questions->facts);
            questions->facts = questions->derived;
            questions->derived = NULL;
            questions->rules.count = 0;
        }
        questions->stratum = 0;
        VECTOR_FREE(&questions->rounds);
        facts_select(asked);
        table_free(asked->answers->derived);
        asked->answers->derived = NULL;
        VECTOR_FREE(&asked->answers->rounds);
    }
}

// What lies in lower strata is complete.
static Status below_complete(Demand *demand) {
    for (size_t i = 0; i < demand->rules.count; i++) {
        const Rule *rule = demand->rules.items[i];
        for (uint32_t j = 0; j < rule->goal_count; j++) {
            Relation *relation = rule->goals[j].relation;
            if (relation && relation->stratum < demand->stratum)
                TRY(store_complete(demand->store, relation));
        }
    }
    return STATUS_OK;
}

static bool can_ask(const Demand *demand) {
    for (size_t i = 0; i < demand->asked.count; i++) {
        const Relation *original = demand->asked.items[i].original;
        if (original->key != columns_all(original->arity)) return false;
        for (size_t j = 0; j < original->rules.count; j++)
            if (original->rules.items[j]->aggregates) return false;
    }
    return !demand->open;
}

static void demand_prepare(Demand *demand, Relation *relation, const Datum *values) {
    Columns bound = 0;
    ASSERT(relation->arity <= ARITY_MAX);
    Datum first[ARITY_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < relation->arity; i++) {
        if (values[i] == CONSTANT_NONE) continue;
        bound |= 1u << i;
        first[count++] = values[i];
    }
    demand->open = bound == 0;
    asked_find(demand, relation, bound);
    table_append(demand->asked.items[0].questions->facts, first);
    for (size_t i = 0; i < demand->asked.count && !demand->open; i++) {
        const RuleList *rules = &demand->asked.items[i].original->rules;
        for (size_t j = 0; j < rules->count && !rules->items[j]->aggregates; j++)
            rule_ask(demand, i, rules->items[j]);
    }
}

// The answers are these rows alone.
static void rows_set(Demand *demand, Relation *relation, Table *rows) {
    size_t number = asked_find(demand, relation, columns_all(relation->arity));
    Relation *answers = demand->asked.items[number].answers;
    ASSERT(number == 0 && answers != relation);
    table_free(answers->derived);
    VECTOR_FREE(&answers->rounds);
    answers->derived = NULL;
    answers->rules.count = 0;
    answers->facts = rows;
}

static Table *row_among(const Table *rows, const Datum *values) {
    Table *row = table_new(rows->arity, columns_all(rows->arity));
    if (table_has(rows, values)) table_append(row, values);
    return row;
}

static Status closure_evaluate(Demand *demand, Relation *base, const Question *question) {
    Table *rows;
    const Datum *values = question->values;
    TRY(store_complete(demand->store, base));
    TRY(closure_rows(demand->store, base, values, &rows));
    if (demand->store->profile)
        profile_name_section(demand->store->profile, profile_begin_section(demand->store->profile),
                             "%s, the closure of %s, %s: %u row%s", question->relation->name,
                             base->name,
                             values[0] != CONSTANT_NONE ? "from one end" : "from the other end",
                             rows->count, rows->count == 1 ? "" : "s");
    demand->made = rows->count;
    rows_set(demand, question->relation, rows);
    return STATUS_OK;
}

// One row, or none.
static Status classes_evaluate(Demand *demand, const Question *question) {
    bool joined;
    ASSERT(question->relation->arity == 2 && question->relation->equivalence);
    TRY(classes_join(demand->store, question->relation, question->values, &joined));
    Table *rows = table_new(2, columns_all(2));
    if (joined) table_append(rows, question->values);
    demand->made = rows->count;
    rows_set(demand, question->relation, rows);
    return STATUS_OK;
}

// Rows that may have no end, as far as they are asked for: a further question may take them away.
static Status endless_evaluate(Demand *demand, const Question *question, bool *done) {
    TRY(store_answer(demand->store, question, done));
    if (!*done) return STATUS_OK;
    const Relation *relation = question->relation;
    const Table *rows = relation->derived ? relation->derived : relation->begun;
    demand->made = table_live(rows);
    rows_set(demand, question->relation,
             question_is_ground(question) ? row_among(rows, question->values) : table_copy(rows));
    return STATUS_OK;
}

// One row has no order: evaluation may stop with it.
static Status row_evaluate(Demand *demand, const Datum *values) {
    Relation *answers = demand_relation(demand);
    Store *store = demand->store;
    const Question question = {.relation = answers, .values = values};
    const Question *around = store->question;
    store->question = &question;
    Status status = answers_evaluate(demand, true);
    store->question = around;
    TRY(status);
    const Table *found = answers->derived ? answers->derived : answers->begun;
    Table *row = row_among(found, values);
    demand->made = table_live(found);
    if (!answers->derived) store_forget_begun(store);
    rows_set(demand, demand->asked.items[0].original, row);
    return STATUS_OK;
}

static Status rows_evaluate(Demand *demand) {
    TRY(answers_evaluate(demand, true));
    questions_freeze(demand);
    TRY(answers_evaluate(demand, false));
    demand->made = table_live(demand_relation(demand)->derived);
    return STATUS_OK;
}

// By rules; the demand goes when that is not possible. `row`: one row is asked for, without proof.
static Status rules_evaluate(Demand *demand, const Question *question, bool row, Demand **out) {
    demand_prepare(demand, question->relation, question->values);
    Status status = STATUS_OK;
    bool possible = can_ask(demand);
    if (possible) status = below_complete(demand);
    if (possible && status == STATUS_OK)
        status = row ? row_evaluate(demand, question->values) : rows_evaluate(demand);
    if (possible && status == STATUS_OK)
        *out = demand;
    else
        demand_free(demand);
    return status;
}

static Demand *demand_new(Store *store, const Relation *relation) {
    ASSERT(relation_is_derived(relation));
    Demand *demand = memory_allocate_zeroed(1, sizeof *demand);
    demand->store = store;
    demand->stratum = relation->stratum;
    return demand;
}

Status demand_evaluate_rules(Store *store, Relation *relation, const Datum *values, Demand **out) {
    const Question question = {.relation = relation, .values = values};
    *out = NULL;
    TRY(store_order_inputs(store, relation));
    return rules_evaluate(demand_new(store, relation), &question, false, out);
}

// Without the rules, where that is possible.
static Status plainly_evaluate(Demand *demand, const Question *question, bool *done) {
    Relation *relation = question->relation;
    bool row = question_is_ground(question);
    *done = row && classes_fit(relation);
    if (*done) return classes_evaluate(demand, question);
    bool pair = relation->arity == 2 &&
                (question->values[0] != CONSTANT_NONE || question->values[1] != CONSTANT_NONE);
    // One row has no order.
    Relation *base = !pair ? NULL : row ? closure_base_of_set(relation) : closure_base(relation);
    *done = base != NULL;
    return base ? closure_evaluate(demand, base, question)
                : endless_evaluate(demand, question, done);
}

Status demand_evaluate(Store *store, const Question *question, Demand **out) {
    bool done;
    *out = NULL;
    TRY(store_order_inputs(store, question->relation));
    Demand *demand = demand_new(store, question->relation);
    Status status = plainly_evaluate(demand, question, &done);
    if (status == STATUS_OK && !done)
        return rules_evaluate(demand, question, question_is_ground(question), out);
    *out = status == STATUS_OK ? demand : NULL;
    if (!*out) demand_free(demand);
    return status;
}
