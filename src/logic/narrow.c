// SkipBlank(A, B) <- Next(A, B)                                 Shown(A, B) <- SkipBlank(A, B),
// SkipBlank(A, B) <- SkipBlank(V, B), Next(A, V), Blank(V)                     Visible(B)
// passes its second column on as it is, and whoever reads it wants it in Visible. So they read
// another relation, whose first rule ends with `asked of SkipBlank(B)`, which holds what is
// Visible: its rows come in the same rounds and the same order, without those that nobody wants.
#include "logic/narrow.h"

#include <stdlib.h>

#include "logic/plan.h"

typedef struct Wanted { // of one column: what its readers want
    uint32_t column;
    RelationList among; // relations of one column
    DatumList constants;
    bool read;
} Wanted;

static void wanted_free(Wanted *wanted) {
    VECTOR_FREE(&wanted->among);
    VECTOR_FREE(&wanted->constants);
}

// --- what can be narrowed

static bool can_narrow(const Store *store, const Relation *relation) {
    bool recursive = false;
    if (relation->rules.count == 0 || relation->key != columns_all(relation->arity) ||
        relation->equivalence || table_live(relation->facts) > 0)
        return false;
    for (size_t i = 0; i < store->relations.count; i++) {
        const Relation *other = store->relations.items[i];
        if (other != relation && other->component == relation->component) return false;
    }
    for (size_t i = 0; i < relation->rules.count; i++) {
        const Rule *rule = relation->rules.items[i];
        if (rule->aggregates || rule->goal_count >= POSITIONS_MAX) return false;
        for (uint32_t j = 0; j < rule->goal_count; j++)
            recursive |= rule->goals[j].relation == relation;
    }
    return recursive;
}

// Whether each rule takes the column from the relation itself as it is, or from elsewhere.
static bool is_passed_on(const Relation *relation, uint32_t column) {
    ASSERT(column < relation->arity);
    for (size_t i = 0; i < relation->rules.count; i++) {
        const Rule *rule = relation->rules.items[i];
        const Term *head = &rule->head[column];
        for (uint32_t j = 0; j < rule->goal_count; j++) {
            if (rule->goals[j].relation != relation) continue;
            const Term *term = &rule->goals[j].terms[column];
            bool same = term->kind == TERM_VARIABLE && head->kind == TERM_VARIABLE &&
                        term->value == head->value;
            if (!same) return false;
        }
    }
    return true;
}

// The relation that the rule asks about this variable alone, complete before `relation` is begun.
static Relation *asked_about(const Rule *rule, uint32_t variable, const Relation *relation) {
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        bool fits = goal->kind == GOAL_ATOM && goal->relation->arity == 1 &&
                    !goal->relation->entities && goal->relation->key == columns_all(1) &&
                    goal->relation->stratum < relation->stratum;
        if (fits && goal->terms[0].kind == TERM_VARIABLE && goal->terms[0].value == variable)
            return goal->relation;
    }
    return NULL;
}

static void want_constant(Wanted *wanted, Datum constant) {
    for (size_t i = 0; i < wanted->constants.count; i++)
        if (wanted->constants.items[i] == constant) return;
    VECTOR_PUSH(&wanted->constants, constant);
}

static void want_among(Wanted *wanted, Relation *among) {
    for (size_t i = 0; i < wanted->among.count; i++)
        if (wanted->among.items[i] == among) return;
    VECTOR_PUSH(&wanted->among, among);
}

// Adds what the rule wants of the relation; false: all of it.
static bool rule_wants(const Rule *rule, const Relation *relation, Wanted *wanted) {
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        if (goal->relation != relation) continue;
        const Term *term = &goal->terms[wanted->column];
        Relation *among =
            term->kind == TERM_VARIABLE ? asked_about(rule, term->value, relation) : NULL;
        if (term->kind == TERM_CONSTANT)
            want_constant(wanted, term->value);
        else if (among)
            want_among(wanted, among);
        else
            return false;
        wanted->read = true;
    }
    return true;
}

static bool readers_want(const Store *store, const Relation *relation, Wanted *wanted) {
    if (!is_passed_on(relation, wanted->column)) return false;
    for (size_t i = 0; i < store->rules.count; i++)
        if (store->rules.items[i]->relation != relation &&
            !rule_wants(store->rules.items[i], relation, wanted))
            return false;
    return wanted->read;
}

static bool wanted_find(const Store *store, const Relation *relation, Wanted *wanted) {
    bool there = relation->derived && !(relation->narrow && relation->narrow->derived);
    if (there || !can_narrow(store, relation)) return false;
    for (uint32_t column = 0; column < relation->arity; column++) {
        *wanted = (Wanted){.column = column};
        if (readers_want(store, relation, wanted)) return true;
        wanted_free(wanted);
    }
    return false;
}

// --- relations and rules for it

static Rule *rule_like(Store *store, const Rule *original, Relation *head, uint32_t goals) {
    Rule *rule = rule_new(original->variable_count, head->arity, goals);
    ASSERT(goals <= POSITIONS_MAX);
    rule->relation = head;
    rule->span = original->span;
    rule->number = original->number;
    rule->variable_names = original->variable_names; // which outlives it
    VECTOR_PUSH(&store->inner_rules, rule);
    VECTOR_PUSH(&head->rules, rule);
    return rule;
}

// The last goal, of one variable.
static void goal_ask(Rule *rule, Relation *relation, const Term *term) {
    Goal *goal = &rule->goals[rule->goal_count - 1];
    *goal = (Goal){.kind = GOAL_ATOM, .relation = relation, .span = rule->span};
    goal->terms = arena_allocate(&rule->arena, sizeof *goal->terms);
    goal->terms[0] = *term;
    relation_add_reader(relation, rule->relation);
}

static void rule_narrow(Store *store, const Rule *original, uint32_t column) {
    Relation *whole = original->relation, *narrow = whole->narrow;
    bool recursive = false;
    for (uint32_t i = 0; i < original->goal_count; i++)
        recursive |= original->goals[i].relation == whole;
    Rule *rule = rule_like(store, original, narrow, original->goal_count + !recursive);
    memcpy(rule->head, original->head, original->arity * sizeof *rule->head);
    memcpy(rule->goals, original->goals, original->goal_count * sizeof *rule->goals);
    for (uint32_t i = 0; i < original->goal_count; i++) {
        if (rule->goals[i].relation == whole) rule->goals[i].relation = narrow;
        if (rule->goals[i].relation) relation_add_reader(rule->goals[i].relation, narrow);
    }
    if (!recursive) goal_ask(rule, narrow->questions, &original->head[column]);
}

// asked(X) <- Among(X)
static void rule_ask(Store *store, Relation *asked, Relation *among) {
    const Term variable = {.kind = TERM_VARIABLE};
    Rule *rule = rule_new(1, 1, 1);
    rule->relation = asked;
    rule->number = asked->number;
    rule->head[0] = variable;
    VECTOR_PUSH(&store->inner_rules, rule);
    VECTOR_PUSH(&asked->rules, rule);
    goal_ask(rule, among, &variable);
}

static void relation_make_narrow(Store *store, Relation *relation) {
    Column column = {0};
    SCOPED_TEXT(name);
    if (relation->narrow) return;
    text_format(&name, "asked of %s", relation->name);
    relation->narrow = relation_new(store, relation->name, relation->columns, relation->arity);
    relation->narrow->inner = true;
    relation->narrow->questions = relation_new(store, text_get(&name), &column, 1);
    relation->narrow->questions->inner = relation->narrow->questions->question = true;
}

static bool asks_already(const Relation *asked, const Wanted *wanted) {
    bool same = asked->rules.count == wanted->among.count &&
                table_live(asked->facts) == wanted->constants.count;
    for (size_t i = 0; i < wanted->among.count && same; i++)
        same = asked->rules.items[i]->goals[0].relation == wanted->among.items[i];
    for (size_t i = 0; i < wanted->constants.count && same; i++)
        same = table_has(asked->facts, &wanted->constants.items[i]);
    return same;
}

// --- the whole

typedef struct Narrowing {
    Relation *relation;
    Wanted wanted;
} Narrowing;

typedef VECTOR(Narrowing) NarrowingList;

static void forget(Relation *narrow) {
    relation_changed(narrow->questions);
    relation_changed(narrow);
}

static void narrowings_find(const Store *store, NarrowingList *found) {
    for (size_t i = 0; i < store->relations.count && !store->wide; i++) {
        Narrowing narrowing = {.relation = store->relations.items[i]};
        if (narrowing.relation->inner || !wanted_find(store, narrowing.relation, &narrowing.wanted))
            continue;
        VECTOR_PUSH(found, narrowing);
    }
}

// Those that are not needed, or hold something else from now on, lose their rows.
static void narrowings_compare(Store *store, const NarrowingList *found) {
    for (size_t i = 0; i < store->relations.count; i++) {
        const Relation *relation = store->relations.items[i];
        if (!relation->narrow) continue;
        bool same = false;
        for (size_t j = 0; j < found->count; j++)
            same |= found->items[j].relation == relation &&
                    relation->narrow->narrow_column == found->items[j].wanted.column &&
                    asks_already(relation->narrow->questions, &found->items[j].wanted);
        if (!same) forget(relation->narrow);
    }
}

static void inner_rules_free(Store *store) {
    for (size_t i = 0; i < store->relations.count; i++)
        if (store->relations.items[i]->inner) store->relations.items[i]->rules.count = 0;
    store_free_inner_rules(store);
}

static void narrowing_begin(Store *store, const Narrowing *narrowing) {
    Relation *relation = narrowing->relation;
    relation_make_narrow(store, relation);
    Relation *narrow = relation->narrow, *asked = narrow->questions;
    ASSERT(relation->stratum >= 2 && relation->stratum % 2 == 0);
    narrow->narrow_column = narrowing->wanted.column;
    narrow->stratum = relation->stratum;
    narrow->component = relation->component;
    asked->stratum = relation->stratum - 1;
    if (!asks_already(asked, &narrowing->wanted)) {
        table_free(asked->facts);
        asked->facts = table_new(1, columns_all(1));
        for (size_t i = 0; i < narrowing->wanted.constants.count; i++)
            table_append(asked->facts, &narrowing->wanted.constants.items[i]);
    }
    for (size_t i = 0; i < store->rules.count; i++) {
        Rule *rule = store->rules.items[i];
        for (uint32_t j = 0; j < rule->goal_count && rule->relation != relation; j++) {
            if (rule->goals[j].relation != relation) continue;
            rule->goals[j].whole = relation;
            rule->goals[j].relation = narrow;
            relation_add_reader(narrow, rule->relation);
        }
    }
}

void store_narrow(Store *store) {
    SCOPED_MEMORY NarrowingList found = {0};
    narrowings_find(store, &found);
    narrowings_compare(store, &found);
    inner_rules_free(store);
    for (size_t i = 0; i < found.count; i++) narrowing_begin(store, &found.items[i]);
    for (size_t i = 0; i < found.count; i++) {
        Relation *relation = found.items[i].relation;
        Wanted *wanted = &found.items[i].wanted;
        for (size_t j = 0; j < relation->rules.count; j++)
            rule_narrow(store, relation->rules.items[j], wanted->column);
        for (size_t j = 0; j < wanted->among.count; j++)
            rule_ask(store, relation->narrow->questions, wanted->among.items[j]);
        wanted_free(wanted);
    }
}

void store_widen(Store *store) {
    for (size_t i = 0; i < store->rules.count; i++) {
        Rule *rule = store->rules.items[i];
        for (uint32_t j = 0; j < rule->goal_count; j++) {
            rule->goals[j].relation = goal_whole(&rule->goals[j]);
            rule->goals[j].whole = NULL;
        }
    }
}

void store_stay_wide(Store *store) {
    if (store->wide) return;
    store->wide = true;
    store->analysed = false;
}
