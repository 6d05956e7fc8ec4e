// Probabilities by drawing worlds: each weighted fact and rule holds or does not, and it is counted
// how often an answer follows.
#include <stdlib.h>

#include "logic/weigh.h"
#include "logic/weighers.h"

typedef struct World {
    const Ground *ground;
    uint8_t *leaves, *holds, *negated;
} World;

// Numbers from a counter, in 0..1 (splitmix64).
static double draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static bool leaf_holds(const World *world, uint32_t leaf) {
    return leaf == NO_LEAF || world->leaves[leaf];
}

static bool instance_holds(const World *world, const GroundInstance *instance) {
    bool all = leaf_holds(world, instance->leaf);
    for (uint32_t i = 0; all && i < instance->count; i++) {
        const GroundLiteral *literal = &world->ground->literals.items[instance->first + i];
        all = literal->negated ? !world->negated[literal->node] : world->holds[literal->node];
    }
    return all;
}

static bool node_holds(const World *world, uint32_t number) {
    const GroundNode *node = &world->ground->nodes.items[number];
    bool any = node->fact && leaf_holds(world, node->leaf);
    for (uint32_t i = 0; !any && i < node->count; i++)
        any = instance_holds(world, &world->ground->instances.items[node->first + i]);
    return any;
}

static void find_holding(World *world) {
    const Ground *ground = world->ground;
    memset(world->holds, 0, ground->nodes.count);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < ground->order.count; i++) {
            uint32_t node = ground->order.items[i];
            bool holds = node_holds(world, node);
            changed |= holds != world->holds[node];
            world->holds[node] = holds;
        }
        changed &= ground->cyclic;
    }
}

// What `not` reads is right for one more stratum each time.
static void find_strata(World *world) {
    size_t count = world->ground->nodes.count;
    memset(world->negated, 0, count);
    while (true) {
        find_holding(world);
        if (memcmp(world->negated, world->holds, count) == 0) return;
        memcpy(world->negated, world->holds, count);
    }
}

// One number for each group: which of its leaves holds, or none.
static void draw_leaves(const World *world, const double *weights, uint64_t *state) {
    const uint32_t *groups = world->ground->groups.items;
    double drawn = 0;
    for (size_t i = 0; i < world->ground->leaves.count; i++) {
        if (groups[i] == i) drawn = draw(state);
        world->leaves[i] = drawn >= 0 && drawn < weights[i];
        drawn -= weights[i];
    }
}

Status weigh_sample(Weighing *weighing) {
    const Ground *ground = weighing->ground;
    World world = {.ground = ground};
    uint64_t state = weighing->seed;
    world.leaves = memory_allocate_zeroed(ground->leaves.count + 1, 1);
    world.holds = memory_allocate_zeroed(ground->nodes.count + 1, 1);
    world.negated = memory_allocate_zeroed(ground->nodes.count + 1, 1);
    for (uint32_t i = 0; i < ground->answers; i++) weighing->values[i] = 0;
    for (int64_t n = 0; n < weighing->argument; n++) {
        draw_leaves(&world, weighing->weights, &state);
        find_strata(&world);
        for (uint32_t i = 0; i < ground->answers; i++) weighing->values[i] += world.holds[i];
    }
    for (uint32_t i = 0; i < ground->answers; i++)
        weighing->values[i] /= (double)weighing->argument;
    free(world.negated);
    free(world.holds);
    free(world.leaves);
    return STATUS_OK;
}
