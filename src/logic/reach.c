// Strongly connected components first; then, in the order in which they come out, the set
// of components that each reaches: the union of its successors' sets, as bits. A block of columns
// of this matrix at a time keeps the sets in the processor's caches, whatever the number of nodes.
#include "logic/reach.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "logic/components.h"

enum {
    BLOCK_WORDS = 64,
    BLOCK_BITS = BLOCK_WORDS * 64,
    ROOMS = 16, // kept from one block to the next
};

typedef struct Graph {
    uint32_t nodes, components;
    uint32_t *first, *to; // edges by node
    uint32_t *component;  // of each node; one is numbered after those that it reaches
    uint32_t *size;       // of each component
    bool *cyclic;         // it reaches itself
} Graph;

// --- nodes and edges

static void graph_read(const Table *edges, Graph *graph) {
    ASSERT(edges->arity == 2);
    Table *nodes = table_new(1, 1);
    uint32_t count = table_live(edges), at = 0;
    SCOPED_MEMORY uint32_t *from = memory_allocate((count + 1) * sizeof *from);
    SCOPED_MEMORY uint32_t *to = memory_allocate((count + 1) * sizeof *to);
    for (uint32_t row = 0; row < edges->count; row++) {
        if (table_is_dead(edges, row)) continue;
        from[at] = table_number(nodes, table_at(edges, row, 0));
        to[at++] = table_number(nodes, table_at(edges, row, 1));
    }
    graph->nodes = nodes->count;
    graph->first = memory_allocate_zeroed(graph->nodes + 2, sizeof *graph->first);
    graph->to = memory_allocate((count + 1) * sizeof *graph->to);
    for (uint32_t i = 0; i < count; i++) graph->first[from[i] + 2]++;
    for (uint32_t i = 0; i < graph->nodes; i++) graph->first[i + 2] += graph->first[i + 1];
    for (uint32_t i = 0; i < count; i++) graph->to[graph->first[from[i] + 1]++] = to[i];
    table_free(nodes);
}

// --- components

static void graph_find_components(Graph *graph) {
    size_t room = (size_t)graph->nodes + 1;
    graph->component = memory_allocate(room * sizeof *graph->component);
    graph->size = memory_allocate_zeroed(room, sizeof *graph->size);
    graph->cyclic = memory_allocate_zeroed(room, sizeof *graph->cyclic);
    graph->components = components_find(graph->nodes, graph->first, graph->to, graph->component);
    for (uint32_t node = 0; node < graph->nodes; node++) {
        uint32_t component = graph->component[node];
        graph->cyclic[component] |= ++graph->size[component] > 1;
        for (uint32_t i = graph->first[node]; i < graph->first[node + 1]; i++)
            graph->cyclic[component] |= graph->to[i] == node;
    }
}

// --- reach

// Edges between different components, by the component that they leave.
static void graph_condense(const Graph *graph, Graph *out) {
    ASSERT(graph->component != NULL);
    *out = (Graph){.nodes = graph->components};
    out->first = memory_allocate_zeroed(graph->components + 2, sizeof *out->first);
    out->to = memory_allocate((graph->first[graph->nodes] + 1) * sizeof *out->to);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t node = 0; node < graph->nodes; node++)
            for (uint32_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
                uint32_t from = graph->component[node], to = graph->component[graph->to[i]];
                if (from == to) continue;
                if (fill)
                    out->to[out->first[from + 1]++] = to;
                else
                    out->first[from + 2]++;
            }
        for (uint32_t i = 0; i < graph->components && !fill; i++)
            out->first[i + 2] += out->first[i + 1];
    }
}

// How many nodes the components of [low, high) that are in the set have.
static uint64_t row_weight(const uint64_t *row, const uint32_t *size, uint32_t count) {
    uint64_t weight = 0;
    for (uint32_t word = 0; word * 64 < count; word++) {
        if (!size) weight += (uint64_t)__builtin_popcountll(row[word]);
        for (uint64_t bits = size ? row[word] : 0; bits; bits &= bits - 1)
            weight += size[word * 64 + (uint32_t)__builtin_ctzll(bits)];
    }
    return weight;
}

// The sizes of these components; NULL: each is a single node.
static const uint32_t *block_sizes(const Graph *graph, uint32_t low, uint32_t high) {
    ASSERT(low <= high && high <= graph->components);
    for (uint32_t i = low; i < high; i++)
        if (graph->size[i] != 1) return graph->size + low;
    return NULL;
}

// Pairs whose second component is one of [low, high).
static uint64_t block_count(const Graph *graph, const Graph *condensed, uint64_t *rows,
                            uint32_t low) {
    ASSERT(low < graph->components);
    uint32_t high = low + BLOCK_BITS < graph->components ? low + BLOCK_BITS : graph->components;
    const uint32_t *sizes = block_sizes(graph, low, high);
    uint64_t pairs = 0;
    for (uint32_t from = low; from < graph->components; from++) { // none below reaches the block
        uint64_t *row = rows + (size_t)(from - low) * BLOCK_WORDS;
        memset(row, 0, BLOCK_WORDS * sizeof *row);
        for (uint32_t i = condensed->first[from]; i < condensed->first[from + 1]; i++) {
            uint32_t to = condensed->to[i];
            if (to < low) continue;
            const uint64_t *other = rows + (size_t)(to - low) * BLOCK_WORDS;
            for (int word = 0; word < BLOCK_WORDS; word++) row[word] |= other[word];
            if (to < high) row[(to - low) / 64] |= (uint64_t)1 << (to - low) % 64;
        }
        if (from < high && graph->cyclic[from])
            row[(from - low) / 64] |= (uint64_t)1 << (from - low) % 64;
        pairs += graph->size[from] * row_weight(row, sizes, high - low);
    }
    return pairs;
}

typedef struct Blocks {
    const Graph *graph, *condensed;
    atomic_ullong pairs;
    _Atomic(uint64_t *) rooms[ROOMS]; // of rows, that nobody uses
} Blocks;

static uint64_t *room_take(Blocks *blocks) {
    for (int i = 0; i < ROOMS; i++) {
        uint64_t *rows = atomic_exchange(&blocks->rooms[i], NULL);
        if (rows) return rows;
    }
    size_t words = ((size_t)blocks->graph->components + 1) * BLOCK_WORDS;
    return memory_allocate(words * sizeof(uint64_t));
}

static void room_give(Blocks *blocks, uint64_t *rows) {
    for (int i = 0; i < ROOMS && rows; i++) rows = atomic_exchange(&blocks->rooms[i], rows);
    free(rows);
}

static void blocks_count(void *context, int64_t begin, int64_t end) {
    Blocks *blocks = context;
    ASSERT(begin >= 0 && end * BLOCK_BITS < (int64_t)blocks->graph->components + BLOCK_BITS);
    uint64_t *rows = room_take(blocks);
    for (int64_t block = begin; block < end; block++)
        blocks->pairs +=
            block_count(blocks->graph, blocks->condensed, rows, (uint32_t)block * BLOCK_BITS);
    room_give(blocks, rows);
}

static void graph_free(Graph *graph) {
    free(graph->first);
    free(graph->to);
    free(graph->component);
    free(graph->size);
    free(graph->cyclic);
}

Status reach_count(Store *store, const Relation *base, uint64_t *out) {
    Graph graph = {0}, condensed;
    ASSERT(base->arity == 2);
    graph_read(relation_table(base), &graph);
    graph_find_components(&graph);
    graph_condense(&graph, &condensed);
    Blocks blocks = {.graph = &graph, .condensed = &condensed};
    int64_t count = ((int64_t)graph.components + BLOCK_BITS - 1) / BLOCK_BITS;
    Status status = store_share(store, count, blocks_count, &blocks);
    *out = blocks.pairs;
    for (int i = 0; i < ROOMS; i++) free(blocks.rooms[i]);
    graph_free(&graph);
    graph_free(&condensed);
    return status;
}
