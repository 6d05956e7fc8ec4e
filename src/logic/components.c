// Tarjan's algorithm, without recursion.
#include "logic/components.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { NO_COMPONENT = UINT32_MAX };

typedef struct Walk {
    const uint32_t *first, *to;
    uint32_t *component;
    uint32_t *number, *low, *edge; // number 0: not visited; edge: where the node's walk stands
    VECTOR(uint32_t) open, path;
    uint32_t numbers, components;
} Walk;

static void node_begin(Walk *walk, uint32_t node) {
    ASSERT(walk->number[node] == 0);
    walk->number[node] = walk->low[node] = ++walk->numbers;
    walk->edge[node] = walk->first[node];
    VECTOR_PUSH(&walk->open, node);
    VECTOR_PUSH(&walk->path, node);
}

static void node_end(Walk *walk, uint32_t node) {
    ASSERT(walk->path.count > 0 && walk->low[node] <= walk->number[node]);
    walk->path.count--;
    if (walk->low[node] == walk->number[node]) {
        uint32_t member;
        do {
            ASSERT(walk->open.count > 0);
            member = walk->open.items[--walk->open.count];
            walk->component[member] = walk->components;
        } while (member != node);
        walk->components++;
    }
    if (walk->path.count == 0) return;
    uint32_t above = walk->path.items[walk->path.count - 1];
    if (walk->low[node] < walk->low[above]) walk->low[above] = walk->low[node];
}

static void walk_from(Walk *walk, uint32_t start) {
    node_begin(walk, start);
    while (walk->path.count > 0) {
        uint32_t node = walk->path.items[walk->path.count - 1];
        if (walk->edge[node] == walk->first[node + 1]) {
            node_end(walk, node);
            continue;
        }
        uint32_t next = walk->to[walk->edge[node]++];
        if (walk->number[next] == 0)
            node_begin(walk, next);
        else if (walk->component[next] == NO_COMPONENT && walk->number[next] < walk->low[node])
            walk->low[node] = walk->number[next];
    }
}

uint32_t components_find(uint32_t nodes, const uint32_t *first, const uint32_t *to,
                         uint32_t *component) {
    size_t room = (size_t)nodes + 1;
    SCOPED_MEMORY uint32_t *number = memory_allocate_zeroed(room, sizeof *number);
    SCOPED_MEMORY uint32_t *low = memory_allocate(room * sizeof *low);
    SCOPED_MEMORY uint32_t *edge = memory_allocate(room * sizeof *edge);
    Walk walk = {.first = first, .to = to, .component = component};
    walk.number = number;
    walk.low = low;
    walk.edge = edge;
    memset(component, 0xff, nodes * sizeof *component); // NO_COMPONENT
    for (uint32_t node = 0; node < nodes; node++)
        if (number[node] == 0) walk_from(&walk, node);
    VECTOR_FREE(&walk.open);
    VECTOR_FREE(&walk.path);
    return walk.components;
}
