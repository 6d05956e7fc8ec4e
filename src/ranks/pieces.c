// A tree of sums over pieces of work: each rank adds up what lies under its own nodes, an exchange
// brings every element's nodes to one rank, and that one goes on to the root.
#include "ranks/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "ranks/internal.h"
#include "tensor/op.h"

PiecesRange pieces_of(int64_t pieces, int rank) {
    int n = ranks_count();
    return (PiecesRange){pieces * rank / n, pieces * (rank + 1) / n};
}

PiecesRange pieces_cut(const PiecesLayout *layout, size_t thing, int rank) {
    ASSERT(thing < layout->count && layout->lengths[thing] % layout->block == 0);
    int64_t blocks = layout->lengths[thing] / layout->block, n = ranks_count();
    int64_t first = blocks * rank / n, end = blocks * (rank + 1) / n;
    return (PiecesRange){first * layout->block, end * layout->block};
}

int64_t pieces_part(const PiecesLayout *layout, int rank) {
    int64_t elements = 0;
    for (size_t i = 0; i < layout->count; i++) {
        PiecesRange range = pieces_cut(layout, i, rank);
        elements += range.end - range.first;
    }
    return elements;
}

// --- the tree

static Status join(PiecesNode *left, PiecesNode *right) {
    Tensor *sum;
    TRY(op_binary(OP_add, op_donated(left->sum), op_tensor(right->sum), &sum));
    tensor_release(left->sum);
    tensor_release(right->sum);
    *left = (PiecesNode){left->level + 1, left->index / 2, sum};
    return STATUS_OK;
}

static bool are_siblings(const PiecesNode *left, const PiecesNode *right) {
    return left->level == right->level && left->index % 2 == 0 && right->index == left->index + 1;
}

// Takes the node's reference.
static Status push(PiecesNodes *nodes, PiecesNode node) {
    VECTOR_PUSH(nodes, node);
    while (nodes->count > 1 &&
           are_siblings(&nodes->items[nodes->count - 2], &nodes->items[nodes->count - 1])) {
        TRY(join(&nodes->items[nodes->count - 2], &nodes->items[nodes->count - 1]));
        nodes->count--;
    }
    return STATUS_OK;
}

// What remains when the number of pieces is not a power of two is added from the last to the first.
static Status take_root(PiecesNodes *nodes, Tensor **out) {
    while (nodes->count > 1) {
        TRY(join(&nodes->items[nodes->count - 2], &nodes->items[nodes->count - 1]));
        nodes->count--;
    }
    ASSERT(nodes->count == 1); // a step has a piece
    *out = tensor_retain(nodes->items[0].sum);
    return STATUS_OK;
}

static void drop(PiecesNodes *nodes) {
    for (size_t i = 0; i < nodes->count; i++) tensor_release(nodes->items[i].sum);
    VECTOR_FREE(nodes);
}

// The level of the largest whole node that begins with a piece.
static int level_at(int64_t first, int64_t end) {
    int level = 0;
    while (first % ((int64_t)2 << level) == 0 && first + ((int64_t)2 << level) <= end) level++;
    return level;
}

static size_t nodes_of(const PiecesSum *sum, int rank) {
    if (sum->by_rounds) return sum->round * ranks_count() + rank < sum->pieces;
    PiecesRange range = pieces_of(sum->pieces, rank);
    size_t count = 0;
    for (int64_t at = range.first; at < range.end; count++)
        at += (int64_t)1 << level_at(at, range.end);
    return count;
}

Status pieces_add(PiecesSum *sum, int64_t piece, Tensor *x) {
    return push(&sum->nodes, (PiecesNode){0, piece, x});
}

// --- between ranks

struct PiecesExchange {
    size_t *outgoing, *incoming; // bytes of all nodes to and from each rank
    char *sent, *received;
    RanksExchange *running; // NULL: done
};

static void exchange_free(PiecesExchange *exchange) {
    if (!exchange) return;
    // What the transport still uses stays.
    bool in_use = exchange->running && ranks_plugin()->drop(exchange->running);
    if (!in_use) free(exchange->sent);
    if (!in_use) free(exchange->received);
    free(exchange->outgoing);
    free(exchange->incoming);
    free(exchange);
}

void pieces_drop(PiecesSum *sum) {
    exchange_free(sum->exchange);
    sum->exchange = NULL;
    drop(&sum->nodes);
    drop(&sum->parts);
}

static Status upload(const PiecesLayout *layout, const char *data, const Shape *shape,
                     Tensor **out) {
    const TensorView view = {.dtype = layout->dtype};
    const Tensor like = {.device = layout->device, .view = view};
    return ranks_tensor_of(data, &like, shape, out);
}

static size_t part_bytes(const PiecesLayout *layout, int rank) {
    return (size_t)pieces_part(layout, rank) * dtype_size(layout->dtype);
}

// A rank's part between a whole and the parts alone, one after the other.
typedef struct PartCopy {
    char *whole, *part;
    bool out; // of the whole
} PartCopy;

static void copy_part(const PiecesLayout *layout, int rank, PartCopy copy) {
    size_t element = dtype_size(layout->dtype), at = 0;
    int64_t begin = 0;
    for (size_t i = 0; i < layout->count; begin += layout->lengths[i++]) {
        PiecesRange range = pieces_cut(layout, i, rank);
        size_t bytes = (size_t)(range.end - range.first) * element;
        char *there = copy.whole + (size_t)(begin + range.first) * element;
        memcpy(copy.out ? copy.part + at : there, copy.out ? there : copy.part + at, bytes);
        at += bytes;
    }
}

// The bytes to and from each rank; those that come in all.
static size_t fill_counts(const PiecesSum *sum, PiecesExchange *exchange) {
    size_t all = 0, own = part_bytes(&sum->layout, ranks_own());
    for (int i = 0; i < ranks_count(); i++) {
        exchange->outgoing[i] = sum->nodes.count * part_bytes(&sum->layout, i);
        exchange->incoming[i] = nodes_of(sum, i) * own;
        all += exchange->incoming[i];
    }
    return all;
}

// Rank by rank its part of each node.
static Status fill_sent(const PiecesSum *sum, PiecesExchange *exchange) {
    const PiecesNodes *nodes = &sum->nodes;
    size_t whole = (size_t)sum->layout.length * dtype_size(sum->layout.dtype);
    exchange->sent = memory_allocate(nodes->count * whole + 1);
    for (size_t k = 0; k < nodes->count; k++) {
        const char *data;
        char *owned, *to = exchange->sent;
        ASSERT(tensor_count(nodes->items[k].sum) == sum->layout.length);
        TRY(ranks_look_at(nodes->items[k].sum, &data, &owned));
        for (int i = 0; i < ranks_count(); i++) {
            char *part = to + k * part_bytes(&sum->layout, i);
            copy_part(&sum->layout, i,
                      (PartCopy){.whole = (char *)data, .part = part, .out = true});
            to += exchange->outgoing[i];
        }
        free(owned);
    }
    return STATUS_OK;
}

Status pieces_start(PiecesSum *sum, int index) {
    if (!ranks_plugin()) return STATUS_OK;
    ASSERT(!sum->exchange);
    size_t n = (size_t)ranks_count();
    PiecesExchange *exchange = memory_allocate_zeroed(1, sizeof *exchange);
    sum->exchange = exchange;
    exchange->outgoing = memory_allocate(n * sizeof(size_t));
    exchange->incoming = memory_allocate(n * sizeof(size_t));
    exchange->received = memory_allocate(fill_counts(sum, exchange) + 1);
    TRY(fill_sent(sum, exchange));
    drop(&sum->nodes);
    RanksBlocks in = {exchange->sent, exchange->outgoing, false};
    RanksBlocks out = {exchange->received, exchange->incoming, false};
    return ranks_check(
        ranks_plugin()->exchange(in, out, RANKS_TAG_PIECES + index, &exchange->running));
}

Status pieces_poll(PiecesSum *sum) {
    bool done;
    if (!sum->exchange) return STATUS_OK;
    return ranks_check(ranks_plugin()->test(sum->exchange->running, &done));
}

// The next of the nodes that have come.
static Status push_received(PiecesSum *sum, PiecesNode node, const char **data) {
    int64_t elements = pieces_part(&sum->layout, ranks_own());
    Shape shape = {.rank = 1, .dims = {elements}};
    TRY(upload(&sum->layout, *data, &shape, &node.sum));
    *data += (size_t)elements * dtype_size(sum->layout.dtype);
    return push(&sum->parts, node);
}

static Status push_all_received(PiecesSum *sum) {
    const char *data = sum->exchange->received;
    for (int i = 0; i < ranks_count(); i++) {
        PiecesRange range = pieces_of(sum->pieces, i);
        int64_t piece = sum->round * ranks_count() + i;
        if (sum->by_rounds) range = (PiecesRange){piece, piece + (int64_t)nodes_of(sum, i)};
        for (int64_t at = range.first; at < range.end;) {
            int level = sum->by_rounds ? 0 : level_at(at, range.end);
            TRY(push_received(sum, (PiecesNode){level, at >> level, NULL}, &data));
            at += (int64_t)1 << level;
        }
    }
    return STATUS_OK;
}

Status pieces_collect(PiecesSum *sum) {
    if (!sum->exchange) return STATUS_OK;
    TRY(ranks_check(ranks_plugin()->wait(sum->exchange->running)));
    sum->exchange->running = NULL;
    Status status = push_all_received(sum);
    exchange_free(sum->exchange);
    sum->exchange = NULL;
    return status;
}

Status pieces_finish(PiecesSum *sum, Tensor **part) {
    if (!ranks_plugin()) return take_root(&sum->nodes, part);
    TRY(pieces_collect(sum));
    Status status = take_root(&sum->parts, part);
    pieces_drop(sum);
    return status;
}

// Own bytes to all ranks, theirs one after the other.
static Status share_bytes(const PiecesLayout *layout, const char *part, char *all) {
    int n = ranks_count();
    size_t *parts = memory_allocate((size_t)n * sizeof *parts);
    for (int i = 0; i < n; i++) parts[i] = part_bytes(layout, i);
    Status status = ranks_share_parts(part, parts, RANKS_TAG, all);
    free(parts);
    return status;
}

// The parts of all ranks one after the other, put together.
static Status join_shared(const PiecesLayout *layout, char *all, Tensor **whole) {
    Shape shape = {.rank = 1, .dims = {layout->length}};
    size_t bytes = (size_t)layout->length * dtype_size(layout->dtype), at = 0;
    TRY(tensor_new(layout->device, layout->dtype, &shape, whole));
    char *place = ranks_place_of(*whole), *joined = place ? place : memory_allocate(bytes + 1);
    for (int i = 0; i < ranks_count(); i++) {
        copy_part(layout, i, (PartCopy){.whole = joined, .part = all + at});
        at += part_bytes(layout, i);
    }
    if (place) return STATUS_OK;
    Status status = buffer_upload((*whole)->view.buffer, 0, joined, bytes);
    free(joined);
    if (status != STATUS_OK) tensor_release(*whole);
    return status;
}

Status pieces_share(const PiecesLayout *layout, Tensor *part, Tensor **whole) {
    if (!ranks_plugin()) {
        *whole = tensor_retain(part);
        return STATUS_OK;
    }
    const char *own;
    char *owned, *all = memory_allocate((size_t)layout->length * dtype_size(layout->dtype) + 1);
    ASSERT(tensor_count(part) == pieces_part(layout, ranks_own()));
    Status status = ranks_look_at(part, &own, &owned);
    if (status == STATUS_OK) status = share_bytes(layout, own, all);
    if (status == STATUS_OK) status = join_shared(layout, all, whole);
    free(all);
    free(owned);
    return status;
}

Status pieces_agree(int64_t pieces, int64_t elements) {
    const RanksRequest request = {.call = RANKS_STEP, .elements = elements, .pieces = pieces};
    return ranks_plugin() ? ranks_agree(&request, NULL) : STATUS_OK;
}

Status pieces_begin(int64_t pieces, int64_t elements) {
    const RanksRequest request = {
        .call = RANKS_STEP, .may_stop = true, .elements = elements, .pieces = pieces};
    return ranks_plugin() ? ranks_agree(&request, NULL) : STATUS_OK;
}

Status pieces_gather(const void *own, void *all, size_t bytes) {
    if (ranks_plugin()) return ranks_gather(own, all, bytes);
    memcpy(all, own, bytes);
    return STATUS_OK;
}
