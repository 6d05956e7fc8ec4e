// The rows of relations that differ are put aside and back, in views: one for outside, one for each
// block that has asked.
#include "logic/block.h"

#include <stdlib.h>

enum { OUTSIDE = 0 };

// --- rules

static bool stands_elsewhere(const Rule *rule, uint32_t block) {
    return rule->block != 0 && rule->block != block;
}

static void note_changed(Block *block, Relation *relation) {
    if (relation->wanted) return;
    relation->wanted = true;
    VECTOR_PUSH(&block->changed, relation);
}

static void narrow_relation(Block *block, Relation *relation) {
    bool own = false, others = false;
    for (size_t i = 0; i < relation->rules.count; i++) {
        own |= relation->rules.items[i]->block == block->number;
        others |= stands_elsewhere(relation->rules.items[i], block->number);
    }
    if (!own || !others) return;
    note_changed(block, relation);
    VECTOR_PUSH(&block->narrowed, ((Narrowed){relation, relation->rules}));
    RuleList kept = {0};
    for (size_t i = 0; i < relation->rules.count; i++)
        if (!stands_elsewhere(relation->rules.items[i], block->number))
            VECTOR_PUSH(&kept, relation->rules.items[i]);
    relation->rules = kept;
}

static void lift_rule(Block *block, const Rule *rule) {
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        Goal *goal = &rule->goals[i];
        if (goal->kind != GOAL_NOT || !block->uncertain[goal->relation->number]) continue;
        VECTOR_PUSH(&block->lifted, ((Lifted){goal, *goal}));
        if (rule->relation) note_changed(block, rule->relation);
        *goal = (Goal){.kind = GOAL_COMPARE,
                       .comparison = COMPARE_EQ,
                       .left = &block->anything,
                       .right = &block->anything,
                       .span = goal->span};
    }
}

// --- rows

// The rows of one view take the place of those of another.
static void relation_turn(Relation *relation, uint32_t from, uint32_t to) {
    KeptRows now = {from,
                    relation->derived,
                    relation->loose,
                    relation->rounds,
                    relation->heights,
                    relation->unordered,
                    relation->effort},
             then = {0};
    for (size_t i = 0; i < relation->kept.count; i++) {
        if (relation->kept.items[i].view != to) continue;
        then = relation->kept.items[i];
        relation->kept.items[i] = relation->kept.items[--relation->kept.count];
        break;
    }
    relation->derived = then.derived;
    relation->loose = then.loose;
    relation->rounds = then.rounds;
    relation->heights = then.heights;
    relation->unordered = then.unordered;
    relation->effort = then.effort;
    if (now.derived) VECTOR_PUSH(&relation->kept, now);
}

static void rows_turn(const Block *block, uint32_t from, uint32_t to) {
    store_forget_begun(block->store);
    for (size_t i = 0; i < block->changed.count; i++)
        relation_turn(block->changed.items[i], from, to);
    block->store->analysed = false;
}

// A block whose weights have a part in other relations now has another view.
static uint32_t view_of(const Block *block) {
    Store *store = block->store;
    for (uint32_t i = 0; i < store->views.count; i++) {
        const View *view = &store->views.items[i];
        if (view->block == block->number && view->relations == block->relations &&
            memcmp(view->uncertain, block->uncertain, block->relations) == 0)
            return i + 1;
    }
    bool *uncertain = memory_allocate(block->relations + 1);
    memcpy(uncertain, block->uncertain, block->relations);
    VECTOR_PUSH(&store->views, ((View){block->number, uncertain, block->relations}));
    return (uint32_t)store->views.count;
}

void block_enter(Block *block, Rule *query) {
    Store *store = block->store;
    block->anything =
        (Expression){.kind = ARITHMETIC_CONSTANT, .value = constant_bool(&store->constants, true)};
    for (size_t i = 0; i < store->relations.count; i++)
        narrow_relation(block, store->relations.items[i]);
    for (size_t i = 0; i < store->rules.count; i++) lift_rule(block, store->rules.items[i]);
    lift_rule(block, query);
    for (size_t i = 0; i < block->changed.count; i++) {
        const RelationList *readers = &block->changed.items[i]->readers;
        for (size_t j = 0; j < readers->count; j++) note_changed(block, readers->items[j]);
    }
    for (size_t i = 0; i < block->changed.count; i++) block->changed.items[i]->wanted = false;
    if (block->changed.count == 0) return;
    block->view = view_of(block);
    rows_turn(block, OUTSIDE, block->view);
}

void block_leave(Block *block) {
    for (size_t i = 0; i < block->narrowed.count; i++) {
        const Narrowed *narrowed = &block->narrowed.items[i];
        VECTOR_FREE(&narrowed->relation->rules);
        narrowed->relation->rules = narrowed->all;
    }
    for (size_t i = 0; i < block->lifted.count; i++)
        *block->lifted.items[i].goal = block->lifted.items[i].saved;
    if (block->changed.count > 0) rows_turn(block, block->view, OUTSIDE);
    VECTOR_FREE(&block->narrowed);
    VECTOR_FREE(&block->lifted);
    VECTOR_FREE(&block->changed);
}

const Goal *block_negated(const Block *block, const Goal *goal) {
    for (size_t i = 0; i < block->lifted.count; i++)
        if (block->lifted.items[i].goal == goal) return &block->lifted.items[i].saved;
    return NULL;
}
