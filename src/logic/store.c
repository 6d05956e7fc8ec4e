// Relations and their facts, and what a change of facts undoes.
#include "logic/store.h"

#include <stdlib.h>
#include <unistd.h>

#include "logic/classes.h"
#include "logic/upkeep/upkeep.h"

// A quarter of the machine's memory, at most a GiB.
static uint64_t bits_bytes_most(void) {
    enum { SHARE = 4 };
    const uint64_t MOST = (uint64_t)1 << 30;
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / SHARE;
    return bytes < MOST ? bytes : MOST;
}

Status store_share(const Store *store, int64_t count, void (*body)(void *, int64_t, int64_t),
                   void *context) {
    ASSERT(count >= 0);
    const StoreHost *host = &store->host;
    if (host->share) {
        host->share(count, body, context);
        TRY(host->interrupted(host->context));
        return host->stopped() ? fail(STATUS_INTERRUPT, "interrupted") : STATUS_OK;
    }
    for (int64_t part = 0; part < count; part++) {
        body(context, part, part + 1);
        TRY(host->interrupted(host->context));
    }
    return STATUS_OK;
}

Store *store_new(const StoreHost *host) {
    Store *store = memory_allocate_zeroed(1, sizeof *store);
    store->host = *host;
    store->analysed = true;
    store->version = 1;
    store->room.bytes_most = bits_bytes_most();
    return store;
}

static void relation_forget(Relation *relation) {
    table_free(relation->derived);
    table_free(relation->loose);
    relation->derived = relation->loose = NULL;
    relation->unordered = false;
    VECTOR_FREE(&relation->rounds);
    VECTOR_FREE(&relation->heights);
}

void store_forget_begun(Store *store) {
    for (size_t i = 0; i < store->begun.count; i++) {
        Relation *relation = store->begun.items[i];
        ASSERT(relation->begun && !relation->derived);
        table_free(relation->begun);
        relation->begun = NULL;
        VECTOR_FREE(&relation->rounds);
    }
    VECTOR_FREE(&store->begun);
    store->edge.relation = NULL;
}

void begun_show(Store *store) {
    for (size_t i = 0; i < store->begun.count; i++) {
        Relation *relation = store->begun.items[i];
        ASSERT(relation->begun && !relation->derived);
        relation->derived = relation->begun;
        relation->begun = NULL;
    }
}

void begun_hide(Store *store) {
    for (size_t i = 0; i < store->begun.count; i++) {
        Relation *relation = store->begun.items[i];
        ASSERT(relation->derived && !relation->begun);
        relation->begun = relation->derived;
        relation->derived = NULL;
    }
}

static void kept_free(KeptRows *kept) {
    table_free(kept->derived);
    table_free(kept->loose);
    VECTOR_FREE(&kept->rounds);
    VECTOR_FREE(&kept->heights);
}

static void relation_forget_kept(Relation *relation) {
    for (size_t i = 0; i < relation->kept.count; i++) kept_free(&relation->kept.items[i]);
    VECTOR_FREE(&relation->kept);
}

static void store_forget_views(Store *store) {
    if (store->views.count == 0) return;
    for (size_t i = 0; i < store->relations.count; i++)
        relation_forget_kept(store->relations.items[i]);
    for (size_t i = 0; i < store->views.count; i++) free(store->views.items[i].uncertain);
    VECTOR_FREE(&store->views);
}

// Facts or rules have changed.
static void store_changed(Store *store) {
    store->version++;
    store_forget_begun(store);
    store_forget_views(store);
}

void column_free_items(Column *column) {
    for (uint32_t i = 0; column->items && i < column->item_count; i++)
        column_free_items(&column->items[i]);
    free(column->items);
}

static void items_copy(Column *column) {
    const Column *items = column->items;
    if (!items) return;
    column->items = memory_allocate((column->item_count + 1) * sizeof *items);
    for (uint32_t i = 0; i < column->item_count; i++) {
        column->items[i] = items[i];
        items_copy(&column->items[i]);
    }
}

void relation_free(Relation *relation) {
    relation_forget(relation);
    relation_forget_kept(relation);
    table_free(relation->facts);
    table_free(relation->saved);
    table_free(relation->touched);
    classes_free(relation->classes);
    for (uint32_t i = 0; i < relation->arity; i++) {
        free((void *)(uintptr_t)relation->columns[i].name);
        column_free_items(&relation->columns[i]);
    }
    free((void *)(uintptr_t)relation->name);
    free(relation->columns);
    VECTOR_FREE(&relation->rules);
    VECTOR_FREE(&relation->readers);
    free(relation);
}

void store_free_inner_rules(Store *store) {
    for (size_t i = 0; i < store->inner_rules.count; i++) rule_free(store->inner_rules.items[i]);
    store->inner_rules.count = 0;
}

void store_free(Store *store) {
    if (!store) return;
    store_forget_begun(store);
    store_forget_views(store);
    for (size_t i = 0; i < store->relations.count; i++) relation_free(store->relations.items[i]);
    for (size_t i = 0; i < store->rules.count; i++) rule_free(store->rules.items[i]);
    store_free_inner_rules(store);
    VECTOR_FREE(&store->inner_rules);
    VECTOR_FREE(&store->relations);
    VECTOR_FREE(&store->rules);
    constants_free(&store->constants);
    free(store);
}

static Columns key_of(const Column *columns, uint32_t arity) {
    Columns key = columns_all(arity);
    for (uint32_t i = 0; i < arity; i++)
        if (columns[i].merge != MERGE_NONE) key &= ~(1u << i);
    return key;
}

Relation *relation_make(const char *name, const Column *columns, uint32_t arity) {
    ASSERT(arity <= ARITY_MAX);
    Relation *relation = memory_allocate_zeroed(1, sizeof *relation);
    relation->name = memory_copy_string(name, strlen(name));
    relation->arity = arity;
    relation->columns = memory_allocate_zeroed(arity + 1, sizeof *columns);
    for (uint32_t i = 0; i < arity; i++) {
        relation->columns[i] = columns[i];
        const char *column = columns[i].name ? columns[i].name : "";
        relation->columns[i].name = memory_copy_string(column, strlen(column));
        items_copy(&relation->columns[i]);
    }
    relation->key = key_of(columns, arity);
    relation->facts = table_new(arity, columns_all(arity));
    return relation;
}

Relation *relation_new(Store *store, const char *name, const Column *columns, uint32_t arity) {
    Relation *relation = relation_make(name, columns, arity);
    relation->number = (uint32_t)store->relations.count;
    table_give_room(relation->facts, &store->room);
    VECTOR_PUSH(&store->relations, relation);
    store->analysed = false;
    return relation;
}

Relation *entity_type_new(Store *store, const char *name, bool closed) {
    Column column = {.name = "name", .kind = COLUMN_ENTITY};
    Relation *type = relation_new(store, name, &column, 1);
    type->entities = true;
    type->closed = closed;
    return type;
}

Relation *store_open_type(Store *store) {
    if (!store->open) store->open = entity_type_new(store, "entity", false);
    store->open->inner = true;
    return store->open;
}

void relation_changed(Relation *relation) {
    bool nobody = relation_is_derived(relation) && !relation->derived;
    if (nobody) return; // has read what is not there
    ASSERT(relation->facts != NULL);
    relation_forget(relation);
    for (size_t i = 0; i < relation->readers.count; i++)
        if (relation->readers.items[i]->derived) relation_changed(relation->readers.items[i]);
}

// What has been made of the relation for those that read it depends on its facts and rules.
static void narrow_changed(Store *store, Relation *relation) {
    if (!relation->narrow) return;
    relation_changed(relation->narrow);
    store->analysed = false;
}

void relation_add_reader(Relation *relation, Relation *reader) {
    for (size_t i = 0; i < relation->readers.count; i++)
        if (relation->readers.items[i] == reader) return;
    VECTOR_PUSH(&relation->readers, reader);
}

void store_add_rule(Store *store, Rule *rule) {
    ASSERT(rule->relation && rule->arity == rule->relation->arity);
    relation_changed(rule->relation);
    narrow_changed(store, rule->relation);
    store_changed(store);
    rule->number = (uint32_t)store->rules.count;
    VECTOR_PUSH(&store->rules, rule);
    VECTOR_PUSH(&rule->relation->rules, rule);
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        if (rule->goals[i].relation) relation_add_reader(rule->goals[i].relation, rule->relation);
    }
    store->analysed = false;
}

// --- facts

static const char *const kind_words[] = {
    [COLUMN_ENTITY] = "an entity", [COLUMN_INT] = "an int",      [COLUMN_FLOAT] = "a float",
    [COLUMN_BOOL] = "a bool",      [COLUMN_STRING] = "a string", [COLUMN_TUPLE] = "a tuple",
};

static bool kind_fits(ColumnKind wanted, ConstantKind kind) {
    switch (wanted) {
    case COLUMN_ENTITY:
    case COLUMN_STRING: return kind == CONSTANT_TEXT;
    case COLUMN_INT: return kind == CONSTANT_INT;
    case COLUMN_FLOAT: return kind == CONSTANT_FLOAT;
    case COLUMN_BOOL: return kind == CONSTANT_BOOL;
    case COLUMN_TUPLE: return kind == CONSTANT_TUPLE;
    default: return true;
    }
}

static void members_describe(Store *store, const Relation *type, Text *out) {
    enum { SHOWN = 5 };
    for (uint32_t row = 0; row < type->facts->count && row < SHOWN; row++) {
        if (row > 0) text_append_string(out, ", ");
        constant_print(&store->constants, table_at(type->facts, row, 0), out);
    }
    if (type->facts->count > SHOWN) text_append_string(out, ", ...");
}

// (int, Person)
static void column_describe(const Column *column, Text *out) {
    static const char *const words[] = {"any", "entity", "int", "float", "bool", "string", "tuple"};
    if (!column->items) {
        text_append_string(out, column->type ? column->type->name : words[column->kind]);
        return;
    }
    for (uint32_t i = 0; i < column->item_count; i++) {
        text_append_string(out, i == 0 ? "(" : ", ");
        column_describe(&column->items[i], out);
    }
    text_append_string(out, column->item_count > 0 ? ")" : "()");
}

static Status fail_column(Store *store, const Relation *relation, uint32_t column, Datum value) {
    ASSERT(column < relation->arity);
    const Column *wanted = &relation->columns[column];
    SCOPED_TEXT(text);
    SCOPED_TEXT(members);
    constant_print(&store->constants, value, &text);
    if (wanted->type && constant_kind(&store->constants, value) == CONSTANT_TEXT) {
        members_describe(store, wanted->type, &members);
        fail(STATUS_TYPE, "`%s` is not %s %s, which `%s` of %s wants", text_get(&text),
             text_article(wanted->type->name), wanted->type->name, wanted->name, relation->name);
        fail_help("%s is closed: %s", wanted->type->name, text_get(&members));
    } else if (wanted->items) {
        column_describe(wanted, &members);
        fail(STATUS_TYPE, "`%s` of %s wants %s, but it is given %s", wanted->name, relation->name,
             text_get(&members), text_get(&text));
    } else {
        bool typed = wanted->kind == COLUMN_ENTITY && wanted->type && wanted->type != store->open;
        const char *words = typed ? wanted->type->name : kind_words[wanted->kind];
        fail(STATUS_TYPE, "`%s` of %s wants %s, but %s is of type %s", wanted->name, relation->name,
             words, text_get(&text), constant_kind_name(constant_kind(&store->constants, value)));
    }
    return STATUS_TYPE;
}

static bool value_fits(Store *store, const Column *wanted, Datum *value);

// Integers among the items of a tuple become floats where those are wanted.
static bool items_fit(Store *store, const Column *wanted, Datum *value) {
    ASSERT(constant_kind(&store->constants, *value) == CONSTANT_TUPLE);
    const Datum *items = constant_entry(&store->constants, *value)->as.items;
    size_t count = constant_entry(&store->constants, *value)->length;
    if (count != wanted->item_count) return false;
    SCOPED_MEMORY Datum *fitted = memory_allocate((count + 1) * sizeof *fitted);
    bool fits = true;
    for (size_t i = 0; i < count && fits; i++) {
        fitted[i] = items[i];
        fits = value_fits(store, &wanted->items[i], &fitted[i]);
    }
    if (fits) *value = constant_tuple(&store->constants, fitted, count);
    return fits;
}

static bool value_fits(Store *store, const Column *wanted, Datum *value) {
    ConstantKind kind = constant_kind(&store->constants, *value);
    if (wanted->kind == COLUMN_FLOAT && kind == CONSTANT_INT) {
        double number = (double)constant_integer(&store->constants, *value);
        *value = constant_float(&store->constants, number);
        return true;
    }
    if (wanted->merge == MERGE_UNION) return true; // a set of what it is
    if (!kind_fits(wanted->kind, kind)) return false;
    if (wanted->items) return items_fit(store, wanted, value);
    bool closed = wanted->type && wanted->type->closed;
    return !closed || table_has(wanted->type->facts, value);
}

void column_convert(Store *store, const Relation *relation, uint32_t column, Datum *value) {
    ASSERT(column < relation->arity);
    Datum taken = *value;
    if (value_fits(store, &relation->columns[column], &taken)) *value = taken;
}

Status column_fit(Store *store, const Relation *relation, uint32_t column, Datum *value) {
    ASSERT(column < relation->arity);
    if (value_fits(store, &relation->columns[column], value)) return STATUS_OK;
    return fail_column(store, relation, column, *value);
}

static void facts_save(const Store *store, Relation *relation) {
    if (store->marked && !relation->saved) relation->saved = table_copy(relation->facts);
}

static bool fact_add_one(Store *store, Relation *relation, const Datum *values) {
    ASSERT(!store->marked || store->rules_marked <= store->rules.count);
    for (uint32_t i = 0; i < relation->arity; i++) constant_set_known(&store->constants, values[i]);
    if (table_has(relation->facts, values)) return false;
    facts_save(store, relation);
    relation_touch(store, relation, values, false);
    narrow_changed(store, relation);
    table_append(relation->facts, values);
    store_changed(store);
    return true;
}

bool fact_add(Store *store, Relation *relation, const Datum *values) {
    for (uint32_t i = 0; i < relation->arity; i++) {
        Relation *type = relation->columns[i].type;
        if (type && !type->closed) fact_add_one(store, type, &values[i]);
    }
    return fact_add_one(store, relation, values);
}

bool fact_remove(Store *store, Relation *relation, const Datum *values) {
    enum { DEAD_MIN = 32 };
    Table *facts = relation->facts;
    ASSERT(facts != NULL);
    uint32_t row = table_find(facts, values);
    if (row == ROW_NONE) return false;
    facts_save(store, relation);
    relation_touch(store, relation, values, true);
    table_remove(facts, row);
    store_changed(store);
    bool sparse = facts->dead > DEAD_MIN && facts->dead * 2 > facts->count;
    if (sparse || table_live(facts) == 0) table_compact(facts);
    return true;
}

void store_mark(Store *store) {
    store->marked = true;
    store->rules_marked = store->rules.count;
    for (size_t i = 0; i < store->relations.count; i++) {
        table_free(store->relations.items[i]->saved);
        store->relations.items[i]->saved = NULL;
    }
}

void store_undo(Store *store) {
    ASSERT(store->rules_marked <= store->rules.count);
    store_changed(store);
    while (store->rules.count > store->rules_marked) {
        Rule *rule = store->rules.items[--store->rules.count];
        ASSERT(rule->relation->rules.count > 0);
        relation_changed(rule->relation);
        narrow_changed(store, rule->relation);
        rule->relation->rules.count--; // its rules are in the order of the store's
        rule_free(rule);
        store->analysed = false;
    }
    for (size_t i = 0; i < store->relations.count; i++) {
        Relation *relation = store->relations.items[i];
        if (!relation->saved) continue;
        relation_changed(relation);
        narrow_changed(store, relation);
        table_free(relation->facts);
        relation->facts = relation->saved;
        relation->saved = NULL;
    }
}

size_t relation_bytes(const Relation *relation) {
    const Table *const tables[] = {relation->facts,   relation->derived, relation->saved,
                                   relation->touched, relation->loose,   relation->begun};
    size_t bytes =
        relation->heights.capacity * sizeof(Height) + relation->rounds.capacity * sizeof(uint32_t);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i]) bytes += table_bytes(tables[i]);
    for (size_t i = 0; i < relation->kept.count; i++) {
        const KeptRows *kept = &relation->kept.items[i];
        bytes += kept->heights.capacity * sizeof(Height) +
                 kept->rounds.capacity * sizeof(uint32_t) + table_bytes(kept->derived);
        if (kept->loose) bytes += table_bytes(kept->loose);
    }
    return bytes;
}

size_t store_bytes(const Store *store) {
    size_t bytes = constants_bytes(&store->constants);
    for (size_t i = 0; i < store->relations.count; i++)
        bytes += relation_bytes(store->relations.items[i]);
    return bytes;
}

// --- equivalences

static Term variable(uint32_t number) {
    return (Term){.kind = TERM_VARIABLE, .value = number};
}

static void goal_set(Rule *rule, uint32_t number, Relation *relation, const Term *terms) {
    ASSERT(number < rule->goal_count);
    Goal *goal = &rule->goals[number];
    goal->kind = GOAL_ATOM;
    goal->relation = relation;
    goal->terms = arena_allocate(&rule->arena, relation->arity * sizeof *terms);
    memcpy(goal->terms, terms, relation->arity * sizeof *terms);
}

void goal_values(const Goal *goal, const Datum *variables, Datum *values) {
    ASSERT(goal->relation->arity <= ARITY_MAX);
    for (uint32_t i = 0; i < goal->relation->arity; i++) {
        const Term *term = &goal->terms[i];
        values[i] = term->kind == TERM_CONSTANT   ? term->value
                    : term->kind == TERM_VARIABLE ? variables[term->value]
                                                  : CONSTANT_NONE;
    }
}

static Rule *pair_rule(Relation *relation, uint32_t variables, uint32_t second, uint32_t goals) {
    ASSERT(second < variables);
    Rule *rule = rule_new(variables, 2, goals);
    rule->relation = relation;
    rule->head[0] = variable(0);
    rule->head[1] = variable(second);
    return rule;
}

// The type whose members are all in the equivalence, where its columns have one of their own.
Relation *equivalence_type(const Store *store, const Relation *relation) {
    Relation *type = relation->columns[0].type;
    return type == store->open ? NULL : type;
}

// What a rule of a program would say: each member equals itself, and the other two laws. Members
// are those of the columns' type, where they have one of their own, else what occurs.
void relation_make_equivalence(Store *store, Relation *relation) {
    enum { X, Y, Z };
    ASSERT(relation->arity == 2);
    relation->equivalence = true;
    Relation *type = equivalence_type(store, relation);
    Rule *reflexive = pair_rule(relation, 1, X, 1);
    goal_set(reflexive, 0, type ? type : relation, (Term[]){variable(X), {.kind = TERM_ANY}});
    store_add_rule(store, reflexive);
    Rule *symmetric = pair_rule(relation, 2, Y, 1);
    goal_set(symmetric, 0, relation, (Term[]){variable(Y), variable(X)});
    store_add_rule(store, symmetric);
    Rule *transitive = pair_rule(relation, 3, Z, 2);
    goal_set(transitive, 0, relation, (Term[]){variable(X), variable(Y)});
    goal_set(transitive, 1, relation, (Term[]){variable(Y), variable(Z)});
    transitive->transitive = true;
    store_add_rule(store, transitive);
}
