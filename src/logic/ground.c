// Going back from answers to what they rest on: each rule is run for the rows of its head, and
// every solution is one way.
#include "logic/ground.h"

#include <stdlib.h>

#include "logic/block.h"
#include "logic/evaluate.h"
#include "logic/narrow.h"
#include "logic/plan.h"
#include "logic/query.h"
#include "logic/run.h"
#include "logic/seek.h"

// The relations that a weight has a part in, by number.
typedef struct Uncertain {
    bool *relations;
    size_t count;
} Uncertain;

typedef struct RulePlan {
    const Rule *rule;
    Plan plan;
    Extent *extents;
    uint32_t *positions;  // of each goal: of its row in the path
    const Goal **negated; // of each goal: what it says where it is lifted, else NULL
} RulePlan;

typedef struct Grounding {
    Store *store;
    const GroundWeights *weights;
    Uncertain uncertain;
    Ground *ground;
    Block block;
    Table *index;      // relation and row of the nodes behind the answers, in their order
    RulePlan **plans;  // by the rule's number; NULL: not made yet
    RulePlan *running; // whose solutions are found
} Grounding;

void ground_free(Ground *ground) {
    VECTOR_FREE(&ground->nodes);
    VECTOR_FREE(&ground->instances);
    VECTOR_FREE(&ground->literals);
    VECTOR_FREE(&ground->values);
    VECTOR_FREE(&ground->leaves);
    VECTOR_FREE(&ground->groups);
    VECTOR_FREE(&ground->order);
}

// --- what is uncertain

static bool rule_is_uncertain(const Grounding *grounding, const Rule *rule) {
    const GroundWeights *weights = grounding->weights;
    if (weights->of_rule(weights->context, rule) >= 0) return true;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Relation *read = rule->goals[i].relation;
        if (read && grounding->uncertain.relations[read->number]) return true;
    }
    return false;
}

static void find_uncertain(Grounding *grounding) {
    const Store *store = grounding->store;
    const GroundWeights *weights = grounding->weights;
    Uncertain *uncertain = &grounding->uncertain;
    uncertain->count = store->relations.count;
    uncertain->relations = memory_allocate_zeroed(uncertain->count + 1, sizeof(bool));
    for (size_t i = 0; i < uncertain->count; i++)
        uncertain->relations[i] = weights->has_facts(weights->context, store->relations.items[i]);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < store->rules.count; i++) {
            const Rule *rule = store->rules.items[i];
            bool *known = &uncertain->relations[rule->relation->number];
            if (*known || !rule_is_uncertain(grounding, rule)) continue;
            *known = changed = true;
        }
    }
}

static bool is_uncertain(const Grounding *grounding, const Relation *relation) {
    ASSERT(relation->number < grounding->uncertain.count);
    return grounding->uncertain.relations[relation->number];
}

// --- plans of rules

static RulePlan *rule_plan_make(const Grounding *grounding, const Rule *rule,
                                const Datum *initial) {
    ASSERT(rule->goal_count <= POSITIONS_MAX);
    RulePlan *made = memory_allocate_zeroed(1, sizeof *made);
    uint32_t position = 0;
    made->rule = rule;
    made->extents = memory_allocate_zeroed(rule->goal_count + 1, sizeof *made->extents);
    made->positions = memory_allocate_zeroed(rule->goal_count + 1, sizeof *made->positions);
    made->negated = memory_allocate_zeroed(rule->goal_count + 1, sizeof *made->negated);
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *goal = &rule->goals[i];
        made->positions[i] = position;
        position += goal->kind == GOAL_ATOM || goal->kind == GOAL_MEMBER;
        made->negated[i] = block_negated(&grounding->block, goal);
        if (!goal->relation) continue;
        Table *table = relation_table(goal->relation);
        ASSERT(table != NULL);
        made->extents[i] = (Extent){.table = table, .high = table->count};
    }
    plan_make(rule, made->extents, initial, &made->plan);
    for (uint32_t i = 0; i < made->plan.count; i++)
        made->plan.steps[i].once = false; // each row is a way of its own
    plan_set(&made->plan, made->extents);
    return made;
}

static void rule_plan_free(RulePlan *plan) {
    if (!plan) return;
    plan_free(&plan->plan);
    free(plan->extents);
    free(plan->positions);
    free(plan->negated);
    free(plan);
}

// --- nodes

static uint32_t node_get(Grounding *grounding, const Relation *relation, uint32_t row) {
    Ground *ground = grounding->ground;
    Datum key[] = {relation->number, row};
    uint32_t found = table_find(grounding->index, key);
    ASSERT(found == ROW_NONE || ground->answers + found < ground->nodes.count);
    if (found != ROW_NONE) return ground->answers + found;
    GroundNode node = {.relation = relation, .row = row, .leaf = NO_LEAF};
    VECTOR_PUSH(&ground->nodes, node);
    return ground->answers + table_append(grounding->index, key);
}

static uint32_t leaf_of(Ground *ground, int64_t weight) {
    if (weight < 0) return NO_LEAF;
    ASSERT(weight <= UINT32_MAX);
    VECTOR_PUSH(&ground->leaves, (uint32_t)weight);
    return (uint32_t)ground->leaves.count - 1;
}

static void add_literal(Grounding *grounding, const Relation *relation, uint32_t row,
                        bool negated) {
    if (grounding->weights->certain == CERTAIN_LEFT_OUT && !is_uncertain(grounding, relation))
        return;
    GroundLiteral literal = {node_get(grounding, relation, row), negated};
    VECTOR_PUSH(&grounding->ground->literals, literal);
}

// Every row that a negated atom speaks of must not hold.
static void add_negated(Grounding *grounding, const Goal *goal, const Datum *variables) {
    Table *table = relation_table(goal->relation);
    ASSERT(table != NULL);
    Datum values[ARITY_MAX];
    Columns bound = 0;
    ASSERT(goal->kind == GOAL_NOT || goal->kind == GOAL_ATOM);
    for (uint32_t i = 0; i < goal->relation->arity; i++) {
        const Term *term = &goal->terms[i];
        if (term->kind == TERM_ANY) continue;
        values[i] = term->kind == TERM_CONSTANT ? term->value : variables[term->value];
        bound |= 1u << i;
    }
    const Index *index = bound ? table_index(table, bound, table->count) : NULL;
    uint32_t row = index ? index_first(table, index, values) : 0;
    while (row != ROW_NONE && row < table->count) {
        if (!table_is_dead(table, row)) add_literal(grounding, goal->relation, row, true);
        row = index ? index_next(index, row) : row + 1;
    }
}

static Status way_found(Run *run) {
    Grounding *grounding = run->context;
    ASSERT(grounding->running != NULL);
    const RulePlan *running = grounding->running;
    const GroundWeights *weights = grounding->weights;
    Ground *ground = grounding->ground;
    uint32_t first = (uint32_t)ground->literals.count;
    for (uint32_t i = 0; i < running->rule->goal_count; i++) {
        const Goal *goal = &running->rule->goals[i];
        if (running->negated[i])
            add_negated(grounding, running->negated[i], run->variables);
        else if (goal->kind == GOAL_ATOM)
            add_literal(grounding, goal->relation, run->path[running->positions[i]], false);
    }
    bool rule = running->rule->relation != NULL;
    GroundInstance instance = {
        .leaf = rule ? leaf_of(ground, weights->of_rule(weights->context, running->rule)) : NO_LEAF,
        .first = first,
        .count = (uint32_t)ground->literals.count - first};
    VECTOR_PUSH(&ground->instances, instance);
    return STATUS_OK;
}

static Status find_ways(Grounding *grounding, RulePlan *plan, const Datum *initial) {
    SCOPED_MEMORY Run *run = memory_allocate_zeroed(1, sizeof *run);
    run->store = grounding->store;
    run->plan = &plan->plan;
    run->found = way_found;
    run->context = grounding;
    memcpy(run->variables, initial, plan->rule->variable_count * sizeof *initial);
    grounding->running = plan;
    return plan_run(run);
}

// --- rows

static bool is_plain(const Relation *relation) {
    bool plain = relation->key == columns_all(relation->arity);
    for (size_t i = 0; i < relation->rules.count; i++)
        plain &= relation->rules.items[i]->aggregates == NULL;
    return plain;
}

static Status fail_not_plain(const Relation *relation) {
    fail(STATUS_VALUE, "%s rests on facts with weights, and its rows are %s", relation->name,
         relation->key == columns_all(relation->arity) ? "aggregates" : "the best of several");
    return fail_help("a program over a semiring weighs rows that follow one by one");
}

static Status expand_row(Grounding *grounding, uint32_t number) {
    Ground *ground = grounding->ground;
    ASSERT(number >= ground->answers && number < ground->nodes.count);
    const GroundWeights *weights = grounding->weights;
    const Relation *relation = ground->nodes.items[number].relation;
    uint32_t row = ground->nodes.items[number].row, first = (uint32_t)ground->instances.count;
    Datum values[ARITY_MAX], initial[VARIABLES_MAX];
    table_read(relation_table(relation), row, values);
    bool plain = is_plain(relation) &&
                 (weights->certain != CERTAIN_NAMED || is_uncertain(grounding, relation));
    if (!plain && is_uncertain(grounding, relation)) return fail_not_plain(relation);
    bool fact = !plain || table_has(relation->facts, values);
    for (size_t i = 0; plain && i < relation->rules.count; i++) {
        const Rule *rule = relation->rules.items[i];
        if (!head_unify(rule, values, initial)) continue;
        ASSERT(rule->number < grounding->store->rules.count);
        RulePlan **plan = &grounding->plans[rule->number];
        if (!*plan) *plan = rule_plan_make(grounding, rule, initial);
        TRY(find_ways(grounding, *plan, initial));
    }
    GroundNode *node = &ground->nodes.items[number]; // only now: nodes have come
    node->values = (uint32_t)ground->values.count;
    for (uint32_t i = 0; i < relation->arity; i++) VECTOR_PUSH(&ground->values, values[i]);
    node->fact = fact;
    if (fact && plain)
        node->leaf = leaf_of(ground, weights->of_fact(weights->context, relation, values));
    node->first = first;
    node->count = (uint32_t)ground->instances.count - first;
    return STATUS_OK;
}

static Status expand_answers(Grounding *grounding, const Rule *query, const Datum *initial,
                             const Table *answers) {
    Ground *ground = grounding->ground;
    ASSERT(ground->answers == answers->count);
    Datum bound[VARIABLES_MAX];
    RulePlan *plan = NULL;
    Status status = STATUS_OK;
    for (uint32_t row = 0; row < answers->count && status == STATUS_OK; row++) {
        memcpy(bound, initial, query->variable_count * sizeof *bound);
        ASSERT(row < ground->answers);
        for (uint32_t i = 0; i < query->arity; i++)
            if (query->head[i].kind == TERM_VARIABLE)
                bound[query->head[i].value] = table_at(answers, row, i);
        if (!plan) plan = rule_plan_make(grounding, query, bound);
        GroundNode *node = &ground->nodes.items[row];
        node->first = (uint32_t)ground->instances.count;
        status = find_ways(grounding, plan, bound);
        node = &ground->nodes.items[row];
        node->count = (uint32_t)ground->instances.count - node->first;
    }
    rule_plan_free(plan);
    return status;
}

// --- groups

typedef struct Grouped {
    uint64_t group; // 0: none
    uint32_t leaf, first;
} Grouped;

static int grouped_order(const void *x, const void *y) {
    const Grouped *a = x, *b = y;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->leaf < b->leaf ? -1 : a->leaf > b->leaf;
}

static int group_order(const void *x, const void *y) {
    const Grouped *a = x, *b = y;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return a->leaf < b->leaf ? -1 : a->leaf > b->leaf;
}

static void leaves_renumber(Ground *ground, const Grouped *order) {
    size_t count = ground->leaves.count;
    SCOPED_MEMORY uint32_t *numbers = memory_allocate((count + 1) * sizeof *numbers);
    SCOPED_MEMORY uint32_t *leaves = memory_allocate((count + 1) * sizeof *leaves);
    for (size_t i = 0; i < count; i++) {
        numbers[order[i].leaf] = (uint32_t)i;
        leaves[i] = ground->leaves.items[order[i].leaf];
    }
    for (size_t i = 0; i < count; i++) {
        bool same = i > 0 && order[i].first == order[i - 1].first;
        VECTOR_PUSH(&ground->groups, same ? ground->groups.items[i - 1] : (uint32_t)i);
        ground->leaves.items[i] = leaves[i];
    }
    for (size_t i = 0; i < ground->nodes.count; i++) {
        uint32_t *leaf = &ground->nodes.items[i].leaf;
        if (*leaf != NO_LEAF) *leaf = numbers[*leaf];
    }
    for (size_t i = 0; i < ground->instances.count; i++) {
        uint32_t *leaf = &ground->instances.items[i].leaf;
        if (*leaf != NO_LEAF) *leaf = numbers[*leaf];
    }
}

// Leaves of a group come to stand together, where the first of them is.
static void find_groups(Ground *ground, const GroundWeights *weights) {
    size_t count = ground->leaves.count;
    SCOPED_MEMORY Grouped *order = memory_allocate((count + 1) * sizeof *order);
    for (size_t i = 0; i < count; i++) {
        uint64_t group = weights->group(weights->context, ground->leaves.items[i]);
        order[i] = (Grouped){group, (uint32_t)i, (uint32_t)i};
    }
    qsort(order, count, sizeof *order, group_order);
    for (size_t i = 1; i < count; i++)
        if (order[i].group != 0 && order[i].group == order[i - 1].group)
            order[i].first = order[i - 1].first;
    qsort(order, count, sizeof *order, grouped_order);
    leaves_renumber(ground, order);
}

// --- an order

typedef struct Visit {
    uint32_t node, instance, literal;
} Visit;

// Depth first: a node stands behind those of its literals.
static void order_from(Ground *ground, uint32_t root, uint8_t *state) {
    enum { NEW, OPEN, DONE };
    SCOPED_MEMORY VECTOR(Visit) stack = {0};
    ASSERT(root < ground->nodes.count);
    VECTOR_PUSH(&stack, ((Visit){root, 0, 0}));
    state[root] = OPEN;
    while (stack.count > 0) {
        Visit *visit = &stack.items[stack.count - 1];
        const GroundNode *node = &ground->nodes.items[visit->node];
        if (visit->instance == node->count) {
            state[visit->node] = DONE;
            VECTOR_PUSH(&ground->order, visit->node);
            stack.count--;
            continue;
        }
        const GroundInstance *instance = &ground->instances.items[node->first + visit->instance];
        if (visit->literal == instance->count) {
            visit->instance++;
            visit->literal = 0;
            continue;
        }
        uint32_t next = ground->literals.items[instance->first + visit->literal++].node;
        ASSERT(next < ground->nodes.count);
        ground->cyclic |= state[next] == OPEN;
        if (state[next] != NEW) continue;
        state[next] = OPEN;
        VECTOR_PUSH(&stack, ((Visit){next, 0, 0}));
    }
}

static void order_nodes(Ground *ground) {
    SCOPED_MEMORY uint8_t *state = memory_allocate_zeroed(ground->nodes.count + 1, 1);
    ASSERT(ground->answers <= ground->nodes.count);
    for (uint32_t i = 0; i < ground->answers; i++)
        if (!state[i]) order_from(ground, i, state);
}

// --- the whole

enum { READ = 1, DENIED = 2 };

static bool mark_read(const Grounding *grounding, const Rule *rule, uint8_t *read) {
    bool more = false;
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        const Goal *negated = block_negated(&grounding->block, &rule->goals[i]);
        const Relation *relation = negated ? negated->relation : rule->goals[i].relation;
        if (!relation) continue;
        ASSERT(relation->number < grounding->uncertain.count);
        more |= !read[relation->number];
        read[relation->number] |= negated ? READ | DENIED : READ;
    }
    return more;
}

// The relations that the query reads, itself or through rules, by number, and those of which a
// goal that was lifted there says `not`.
static uint8_t *find_read(const Grounding *grounding, const Rule *query) {
    const RuleList *rules = &grounding->store->rules;
    uint8_t *read = memory_allocate_zeroed(grounding->uncertain.count + 1, sizeof *read);
    for (bool more = mark_read(grounding, query, read); more;) {
        more = false;
        for (size_t i = 0; i < rules->count; i++)
            if (read[rules->items[i]->relation->number])
                more |= mark_read(grounding, rules->items[i], read);
    }
    return read;
}

static bool goal_grows(const Goal *goal) {
    return goal->kind == GOAL_ATOM && goal->relation->grows;
}

// Whether goals that may have rows without end all read one relation, which is made as far as they
// need it.
static bool grows_alone(const Rule *query) {
    const Relation *growing = NULL;
    for (uint32_t i = 0; i < query->goal_count; i++) {
        const Goal *goal = &query->goals[i];
        if (!goal_grows(goal)) continue;
        if (growing && growing != goal->relation) return false;
        growing = goal->relation;
    }
    return true;
}

static Status goal_answer(Store *store, const Rule *query, uint32_t number, const Datum *initial) {
    const Goal *goal = &query->goals[number];
    Datum values[ARITY_MAX];
    ASSERT(goal->relation->arity <= ARITY_MAX);
    goal_values(goal, initial, values);
    const Question question = {goal->relation, values, query, number, initial, true};
    bool done;
    TRY(store_answer(store, &question, &done));
    return done ? STATUS_OK : store_complete(store, goal->relation);
}

static Status complete_goals(const Grounding *grounding, const Rule *query, const Datum *initial) {
    Store *store = grounding->store;
    TRY(store_prepare(store));
    SCOPED_MEMORY uint8_t *read = find_read(grounding, query);
    for (size_t i = 0; i < grounding->uncertain.count; i++)
        if (read[i] & DENIED) TRY(store_complete(store, store->relations.items[i]));
    bool alone = grows_alone(query);
    for (uint32_t i = 0; i < query->goal_count; i++) {
        const Goal *goal = &query->goals[i];
        if (goal->relation && !(alone && goal_grows(goal)))
            TRY(store_complete(store, goal->relation));
    }
    for (uint32_t i = 0; i < query->goal_count; i++)
        if (goal_grows(&query->goals[i])) TRY(goal_answer(store, query, i, initial));
    return STATUS_OK;
}

// The rows are there.
static Status ground_rows(Grounding *grounding, Rule *query, const Datum *initial,
                          Table **answers) {
    Store *store = grounding->store;
    Ground *ground = grounding->ground;
    TRY(store_query(store, query, initial, answers));
    ground->answers = (*answers)->count;
    for (uint32_t i = 0; i < ground->answers; i++) {
        GroundNode node = {.row = i, .leaf = NO_LEAF};
        VECTOR_PUSH(&ground->nodes, node);
    }
    TRY(expand_answers(grounding, query, initial, *answers));
    for (uint32_t i = ground->answers; i < ground->nodes.count; i++) {
        if (i % 1024 == 0) TRY(store->host.interrupted(store->host.context));
        TRY(expand_row(grounding, i));
    }
    find_groups(ground, grounding->weights);
    order_nodes(ground);
    return STATUS_OK;
}

Status ground_query(Store *store, const GroundQuery *query, Table **answers, Ground *out) {
    *out = (Ground){0};
    *answers = NULL;
    store_stay_wide(store);
    TRY(store_prepare(store));
    Grounding grounding = {.store = store, .weights = &query->weights, .ground = out};
    find_uncertain(&grounding);
    grounding.block = (Block){.store = store,
                              .number = query->block,
                              .uncertain = grounding.uncertain.relations,
                              .relations = grounding.uncertain.count};
    block_enter(&grounding.block, query->rule);
    grounding.index = table_new(2, columns_all(2));
    grounding.plans = memory_allocate_zeroed(store->rules.count + 1, sizeof *grounding.plans);
    Status status = complete_goals(&grounding, query->rule, query->initial);
    begun_show(store);
    if (status == STATUS_OK) status = ground_rows(&grounding, query->rule, query->initial, answers);
    begun_hide(store);
    for (size_t i = 0; i < store->rules.count; i++) rule_plan_free(grounding.plans[i]);
    free(grounding.plans);
    table_free(grounding.index);
    block_leave(&grounding.block);
    free(grounding.uncertain.relations);
    if (status != STATUS_OK) {
        ground_free(out);
        table_free(*answers);
        *answers = NULL;
    }
    return status;
}
