// The k best ways to each node, as sets of the weighted facts and rules that they rest on; the
// probability of an answer is that of a world in which one of its ways holds.
#include <math.h>
#include <stdlib.h>

#include "logic/diagram.h"
#include "logic/weigh.h"
#include "logic/weighers.h"

enum { DECISIONS_MAX = 1 << 20 };

// The leaves of a way in ascending order, twice their number, plus 1 where one must not hold.
typedef struct Way {
    double probability;
    uint32_t count;
    uint32_t *leaves;
} Way;
typedef VECTOR(Way) WayList;

typedef struct Ways {
    const Weighing *weighing;
    const Ground *ground;
    WayList *of_nodes;
    size_t most;
} Ways;

static void ways_free(WayList *ways) {
    for (size_t i = 0; i < ways->count; i++) free(ways->items[i].leaves);
    VECTOR_FREE(ways);
}

static bool way_equals(const Way *x, const Way *y) {
    return x->count == y->count && memcmp(x->leaves, y->leaves, x->count * sizeof(uint32_t)) == 0;
}

// Keeps the best ones, the better first and of equals the earlier; takes the way.
static void ways_add(WayList *ways, Way way, size_t most) {
    size_t at = ways->count;
    for (size_t i = 0; i < ways->count; i++)
        if (way_equals(&ways->items[i], &way)) at = SIZE_MAX;
    while (at != SIZE_MAX && at > 0 && ways->items[at - 1].probability < way.probability) at--;
    if (at == SIZE_MAX || at >= most) {
        free(way.leaves);
        return;
    }
    VECTOR_PUSH(ways, way);
    for (size_t i = ways->count - 1; i > at; i--) ways->items[i] = ways->items[i - 1];
    ways->items[at] = way;
    if (ways->count > most) free(ways->items[--ways->count].leaves);
}

static double leaf_probability(const Ways *ways, uint32_t leaf) {
    double weight = ways->weighing->weights[leaf / 2];
    return leaf % 2 ? 1 - weight : weight;
}

static Way way_of(const Ways *ways, uint32_t leaf) {
    Way way = {.probability = 1, .leaves = memory_allocate(sizeof(uint32_t))};
    if (leaf == NO_LEAF) return way;
    way.count = 1;
    way.leaves[0] = leaf;
    way.probability = leaf_probability(ways, leaf);
    return way;
}

// The leaves of both in order, each once.
static void way_merge(const Way *x, const Way *y, Way *out) {
    *out = (Way){.probability = 1};
    out->leaves = memory_allocate((x->count + y->count + 1) * sizeof(uint32_t));
    uint32_t i = 0, j = 0;
    while (i < x->count || j < y->count) {
        bool left = j == y->count || (i < x->count && x->leaves[i] <= y->leaves[j]);
        uint32_t leaf = left ? x->leaves[i] : y->leaves[j];
        if (j < y->count && y->leaves[j] == leaf) j++;
        if (i < x->count && x->leaves[i] == leaf) i++;
        out->leaves[out->count++] = leaf;
    }
}

// What leaves begin..end, of one group, say together: where one holds the others need not be
// named. False: two hold, or one that must not.
static bool group_settle(const Ways *ways, Way *way, uint32_t begin, uint32_t end) {
    uint32_t holds = NO_LEAF;
    double rest = 1;
    for (uint32_t i = begin; i < end; i++) {
        uint32_t leaf = way->leaves[i];
        if (leaf % 2) rest -= ways->weighing->weights[leaf / 2];
        if (leaf % 2 == 0 && holds != NO_LEAF) return false;
        if (leaf % 2 == 0) holds = leaf;
    }
    for (uint32_t i = begin; holds != NO_LEAF && i < end; i++)
        if (way->leaves[i] == holds + 1) return false;
    way->probability *= holds == NO_LEAF ? fmax(rest, 0) : leaf_probability(ways, holds);
    for (uint32_t i = begin; i < end; i++)
        if (holds == NO_LEAF || way->leaves[i] == holds) way->leaves[way->count++] = way->leaves[i];
    return true;
}

// Both together; false: one rests on what the other rules out.
static bool way_join(const Ways *ways, const Way *x, const Way *y, Way *out) {
    const uint32_t *groups = ways->ground->groups.items;
    way_merge(x, y, out);
    uint32_t count = out->count, end;
    out->count = 0;
    for (uint32_t begin = 0; begin < count; begin = end) {
        end = begin + 1;
        while (end < count && groups[out->leaves[end] / 2] == groups[out->leaves[begin] / 2]) end++;
        if (group_settle(ways, out, begin, end)) continue;
        free(out->leaves);
        return false;
    }
    return true;
}

static WayList ways_join(const Ways *ways, const WayList *x, const WayList *y) {
    WayList joined = {0};
    for (size_t i = 0; i < x->count; i++)
        for (size_t j = 0; j < y->count; j++) {
            Way both;
            if (way_join(ways, &x->items[i], &y->items[j], &both))
                ways_add(&joined, both, ways->most);
        }
    return joined;
}

// A negated literal is a fact alone, which has a weight or holds for certain.
static WayList literal_ways(const Ways *ways, const GroundLiteral *literal) {
    WayList list = {0};
    const GroundNode *node = &ways->ground->nodes.items[literal->node];
    if (literal->negated && node->leaf != NO_LEAF)
        VECTOR_PUSH(&list, way_of(ways, 2 * node->leaf + 1));
    return list;
}

static WayList instance_ways(const Ways *ways, const GroundInstance *instance) {
    WayList product = {0};
    uint32_t leaf = instance->leaf == NO_LEAF ? NO_LEAF : 2 * instance->leaf;
    VECTOR_PUSH(&product, way_of(ways, leaf));
    for (uint32_t i = 0; i < instance->count; i++) {
        const GroundLiteral *literal = &ways->ground->literals.items[instance->first + i];
        WayList own = literal_ways(ways, literal);
        const WayList *other = literal->negated ? &own : &ways->of_nodes[literal->node];
        WayList next = ways_join(ways, &product, other);
        ways_free(&product);
        ways_free(&own);
        product = next;
    }
    return product;
}

static WayList node_ways(const Ways *ways, uint32_t number) {
    const GroundNode *node = &ways->ground->nodes.items[number];
    WayList list = {0};
    uint32_t leaf = node->leaf == NO_LEAF ? NO_LEAF : 2 * node->leaf;
    if (node->fact) ways_add(&list, way_of(ways, leaf), ways->most);
    for (uint32_t i = 0; i < node->count; i++) {
        WayList more = instance_ways(ways, &ways->ground->instances.items[node->first + i]);
        for (size_t j = 0; j < more.count; j++) ways_add(&list, more.items[j], ways->most);
        VECTOR_FREE(&more);
    }
    return list;
}

static bool ways_equal(const WayList *x, const WayList *y) {
    bool same = x->count == y->count;
    for (size_t i = 0; same && i < x->count; i++) same = way_equals(&x->items[i], &y->items[i]);
    return same;
}

static void find_ways(Ways *ways) {
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < ways->ground->order.count; i++) {
            uint32_t node = ways->ground->order.items[i];
            WayList list = node_ways(ways, node);
            changed |= !ways_equal(&list, &ways->of_nodes[node]);
            ways_free(&ways->of_nodes[node]);
            ways->of_nodes[node] = list;
        }
        changed &= ways->ground->cyclic;
    }
}

static uint32_t ways_diagram(Diagrams *diagrams, const WayList *ways) {
    uint32_t any = DIAGRAM_FALSE;
    for (size_t i = 0; i < ways->count; i++) {
        uint32_t all = DIAGRAM_TRUE;
        for (uint32_t j = ways->items[i].count; j-- > 0;) { // the last variable first: small steps
            uint32_t leaf = ways->items[i].leaves[j];
            uint32_t one = diagram_variable(diagrams, leaf / 2);
            all = diagram_and(diagrams, leaf % 2 ? diagram_not(diagrams, one) : one, all);
        }
        any = diagram_or(diagrams, any, all);
    }
    return any;
}

static Status weigh_answer(Weighing *weighing, uint32_t answer, const WayList *ways) {
    size_t leaves = weighing->ground->leaves.count;
    double *slopes = weighing->gradients ? &weighing->gradients[answer * leaves] : NULL;
    Diagrams diagrams;
    diagrams_init(&diagrams, DECISIONS_MAX);
    if (slopes) memset(slopes, 0, leaves * sizeof *slopes);
    uint32_t any = ways_diagram(&diagrams, ways);
    Status status = any == DIAGRAM_FAIL ? diagrams_fail(&diagrams) : STATUS_OK;
    Chances chances = {weighing->weights, weighing->ground->groups.items};
    if (status == STATUS_OK)
        weighing->values[answer] = diagram_probability(&diagrams, any, &chances, slopes);
    diagrams_free(&diagrams);
    return status;
}

static Status check_negations(const Ground *ground) {
    for (size_t i = 0; i < ground->literals.count; i++) {
        const GroundLiteral *literal = &ground->literals.items[i];
        const GroundNode *node = &ground->nodes.items[literal->node];
        if (!literal->negated || node->count == 0) continue;
        fail(STATUS_VALUE, "topk cannot weigh `not %s`, which rules give", node->relation->name);
        return fail_help("exact can");
    }
    return STATUS_OK;
}

static Status ways_make(const Weighing *weighing, size_t most, Ways *out) {
    const Ground *ground = weighing->ground;
    TRY(check_negations(ground));
    *out = (Ways){weighing, ground, NULL, most};
    out->of_nodes = memory_allocate_zeroed(ground->nodes.count + 1, sizeof *out->of_nodes);
    find_ways(out);
    return STATUS_OK;
}

static void ways_release(Ways *ways) {
    for (size_t i = 0; i < ways->ground->nodes.count; i++) ways_free(&ways->of_nodes[i]);
    free(ways->of_nodes);
}

Status weigh_topk(Weighing *weighing) {
    Ways ways;
    TRY(ways_make(weighing, (size_t)weighing->argument, &ways));
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < ways.ground->answers && status == STATUS_OK; i++)
        status = weigh_answer(weighing, i, &ways.of_nodes[i]);
    ways_release(&ways);
    return status;
}

// --- the best world

typedef struct Best {
    const Ground *ground;
    bool *leaves;   // that hold
    uint32_t *ways; // of nodes
} Best;

static bool best_literal_holds(const Best *best, const GroundLiteral *literal) {
    const GroundNode *node = &best->ground->nodes.items[literal->node];
    if (literal->negated) return node->leaf != NO_LEAF && !best->leaves[node->leaf];
    return best->ways[literal->node] != NO_WAY;
}

static uint32_t best_way_of(const Best *best, uint32_t number) {
    const GroundNode *node = &best->ground->nodes.items[number];
    if (node->fact && (node->leaf == NO_LEAF || best->leaves[node->leaf])) return 0;
    for (uint32_t i = 0; i < node->count; i++) {
        const GroundInstance *instance = &best->ground->instances.items[node->first + i];
        bool all = instance->leaf == NO_LEAF || best->leaves[instance->leaf];
        for (uint32_t j = 0; all && j < instance->count; j++)
            all = best_literal_holds(best, &best->ground->literals.items[instance->first + j]);
        if (all) return i + 1;
    }
    return NO_WAY;
}

// Each node by the first way that holds once those below do, so that none rests on itself.
static void best_find_ways(const Best *best, const Way *way) {
    const Ground *ground = best->ground;
    memset(best->leaves, 0, ground->leaves.count);
    for (uint32_t i = 0; i < way->count; i++)
        if (way->leaves[i] % 2 == 0) best->leaves[way->leaves[i] / 2] = true;
    for (size_t i = 0; i < ground->nodes.count; i++) best->ways[i] = NO_WAY;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < ground->order.count; i++) {
            uint32_t node = ground->order.items[i];
            if (best->ways[node] != NO_WAY) continue;
            best->ways[node] = best_way_of(best, node);
            changed |= best->ways[node] != NO_WAY;
        }
    }
}

static Status best_of_answers(const Ways *ways, BestWayFound *found, void *context) {
    const Ground *ground = ways->ground;
    Best best = {ground, memory_allocate_zeroed(ground->leaves.count + 1, sizeof(bool)),
                 memory_allocate((ground->nodes.count + 1) * sizeof(uint32_t))};
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < ground->answers && status == STATUS_OK; i++) {
        const WayList *list = &ways->of_nodes[i];
        Way none = {0}, way = list->count > 0 ? list->items[0] : none;
        best_find_ways(&best, &way);
        status = found(context, &(BestWay){ground, i, way.probability, best.ways});
    }
    free(best.ways);
    free(best.leaves);
    return status;
}

Status weigh_best_worlds(Weighing *weighing, BestWayFound *found, void *context) {
    Ways ways;
    TRY(ways_make(weighing, 1, &ways));
    Status status = best_of_answers(&ways, found, context);
    ways_release(&ways);
    return status;
}
