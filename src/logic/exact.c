// Exact probabilities: for each node the worlds in which it holds, as a decision diagram over the
// facts and rules that have weights.
#include <stdlib.h>

#include "logic/diagram.h"
#include "logic/weigh.h"
#include "logic/weighers.h"

enum { DECISIONS_MAX = 1 << 20, VARIABLES_LIMIT = 1 << 15 };

typedef struct Worlds {
    const Ground *ground;
    Diagrams diagrams;
    uint32_t *holds;   // of nodes
    uint32_t *negated; // what `not` reads: of the round of rounds before
} Worlds;

static uint32_t leaf_worlds(Worlds *worlds, uint32_t leaf) {
    return leaf == NO_LEAF ? DIAGRAM_TRUE : diagram_variable(&worlds->diagrams, leaf);
}

static uint32_t instance_worlds(Worlds *worlds, const GroundInstance *instance) {
    uint32_t both = leaf_worlds(worlds, instance->leaf);
    for (uint32_t i = 0; i < instance->count && both != DIAGRAM_FALSE; i++) {
        const GroundLiteral *literal = &worlds->ground->literals.items[instance->first + i];
        uint32_t holds = literal->negated
                             ? diagram_not(&worlds->diagrams, worlds->negated[literal->node])
                             : worlds->holds[literal->node];
        both = diagram_and(&worlds->diagrams, both, holds);
    }
    return both;
}

static uint32_t node_worlds(Worlds *worlds, uint32_t number) {
    ASSERT(number < worlds->ground->nodes.count);
    const GroundNode *node = &worlds->ground->nodes.items[number];
    uint32_t any = node->fact ? leaf_worlds(worlds, node->leaf) : DIAGRAM_FALSE;
    for (uint32_t i = 0; i < node->count && any != DIAGRAM_TRUE; i++) {
        const GroundInstance *instance = &worlds->ground->instances.items[node->first + i];
        any = diagram_or(&worlds->diagrams, any, instance_worlds(worlds, instance));
    }
    return any;
}

// Until no node holds in a further world; it comes to an end because there are only so many.
static Status find_worlds(Worlds *worlds) {
    const Ground *ground = worlds->ground;
    for (size_t i = 0; i < ground->nodes.count; i++) worlds->holds[i] = DIAGRAM_FALSE;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < ground->order.count; i++) {
            uint32_t node = ground->order.items[i], holds = node_worlds(worlds, node);
            if (holds == DIAGRAM_FAIL) return diagrams_fail(&worlds->diagrams);
            changed |= holds != worlds->holds[node];
            worlds->holds[node] = holds;
        }
        changed &= ground->cyclic;
    }
    return STATUS_OK;
}

// What `not` reads is right for one more stratum each time.
static Status find_strata(Worlds *worlds) {
    size_t bytes = worlds->ground->nodes.count * sizeof *worlds->holds;
    memset(worlds->negated, 0, bytes);
    while (true) {
        TRY(find_worlds(worlds));
        if (memcmp(worlds->negated, worlds->holds, bytes) == 0) return STATUS_OK;
        memcpy(worlds->negated, worlds->holds, bytes);
    }
}

Status weigh_exact(Weighing *weighing) {
    const Ground *ground = weighing->ground;
    ASSERT(ground->answers <= ground->nodes.count);
    Worlds worlds = {.ground = ground};
    bool small = ground->leaves.count <= VARIABLES_LIMIT;
    diagrams_init(&worlds.diagrams, small ? DECISIONS_MAX : VARIABLES_LIMIT);
    worlds.holds = memory_allocate_zeroed(ground->nodes.count + 1, sizeof *worlds.holds);
    worlds.negated = memory_allocate_zeroed(ground->nodes.count + 1, sizeof *worlds.negated);
    Status status = small ? find_strata(&worlds) : diagrams_fail(&worlds.diagrams);
    for (uint32_t i = 0; i < ground->answers && status == STATUS_OK; i++) {
        double *slopes =
            weighing->gradients ? &weighing->gradients[i * ground->leaves.count] : NULL;
        if (slopes) memset(slopes, 0, ground->leaves.count * sizeof *slopes);
        Chances chances = {weighing->weights, ground->groups.items};
        weighing->values[i] =
            diagram_probability(&worlds.diagrams, worlds.holds[i], &chances, slopes);
    }
    free(worlds.negated);
    free(worlds.holds);
    diagrams_free(&worlds.diagrams);
    return status;
}
