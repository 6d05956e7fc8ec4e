// A tree of sums over pieces of work: each rank adds up what lies under its own nodes, one exchange
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

static size_t nodes_of(int64_t pieces, int rank) {
    PiecesRange range = pieces_of(pieces, rank);
    size_t count = 0;
    for (int64_t at = range.first; at < range.end; count++)
        at += (int64_t)1 << level_at(at, range.end);
    return count;
}

Status pieces_add(PiecesSum *sum, int64_t piece, Tensor *x) {
    return push(&sum->nodes, (PiecesNode){0, piece, x});
}

void pieces_drop(PiecesSum *sum) {
    drop(&sum->nodes);
}

// --- between ranks

typedef struct Exchange {
    const PiecesSum *sum;
    const Tensor *like;
    size_t *parts;               // bytes of the elements that each rank adds up
    size_t *outgoing, *incoming; // bytes of all nodes to and from each rank
    char *sent, *received;
} Exchange;

static size_t fill_counts(Exchange *exchange) {
    size_t nodes = 0, own = exchange->parts[ranks_own()];
    for (int i = 0; i < ranks_count(); i++) {
        size_t theirs = nodes_of(exchange->sum->pieces, i);
        exchange->outgoing[i] = exchange->sum->nodes.count * exchange->parts[i];
        exchange->incoming[i] = theirs * own;
        nodes += theirs;
    }
    return nodes * own;
}

// Rank by rank its part of each node.
static Status fill_sent(Exchange *exchange) {
    const PiecesNodes *nodes = &exchange->sum->nodes;
    size_t whole = (size_t)tensor_count(exchange->like) * dtype_size(tensor_dtype(exchange->like));
    exchange->sent = memory_allocate(nodes->count * whole + 1);
    for (size_t k = 0; k < nodes->count; k++) {
        char *data;
        size_t bytes, from = 0;
        TRY(ranks_bytes_of(nodes->items[k].sum, &data, &bytes));
        char *to = exchange->sent;
        for (int i = 0; i < ranks_count(); i++) {
            memcpy(to + k * exchange->parts[i], data + from, exchange->parts[i]);
            from += exchange->parts[i];
            to += exchange->outgoing[i];
        }
        free(data);
    }
    return STATUS_OK;
}

static Status push_received(const Exchange *exchange, int64_t elements, PiecesNodes *nodes) {
    const char *data = exchange->received;
    Shape shape = {.rank = 1, .dims = {elements}};
    for (int i = 0; i < ranks_count(); i++) {
        PiecesRange range = pieces_of(exchange->sum->pieces, i);
        for (int64_t at = range.first; at < range.end;) {
            int level = level_at(at, range.end);
            PiecesNode node = {level, at >> level, NULL};
            TRY(ranks_tensor_of(data, exchange->like, &shape, &node.sum));
            TRY(push(nodes, node));
            data += exchange->parts[ranks_own()];
            at += (int64_t)1 << level;
        }
    }
    return STATUS_OK;
}

// This rank's part of the root, then those of all.
static Status finish(const Exchange *exchange, Tensor **out) {
    PiecesNodes nodes = {0};
    Tensor *root = NULL;
    char *part = NULL;
    size_t element = dtype_size(tensor_dtype(exchange->like)), bytes;
    int64_t elements = (int64_t)(exchange->parts[ranks_own()] / element);
    Status status = push_received(exchange, elements, &nodes);
    if (status == STATUS_OK) status = take_root(&nodes, &root);
    if (status == STATUS_OK) status = ranks_bytes_of(root, &part, &bytes);
    tensor_release(root);
    drop(&nodes);
    if (status != STATUS_OK) return status;
    Shape shape = tensor_shape(exchange->like);
    char *whole = memory_allocate((size_t)tensor_count(exchange->like) * element + 1);
    status = ranks_share_parts(part, exchange->parts, whole);
    if (status == STATUS_OK) status = ranks_tensor_of(whole, exchange->like, &shape, out);
    free(whole);
    free(part);
    return status;
}

static Status exchange_nodes(const PiecesSum *sum, const Tensor *like, Tensor **out) {
    size_t n = (size_t)ranks_count();
    Exchange exchange = {.sum = sum,
                         .like = like,
                         .parts = memory_allocate(n * sizeof(size_t)),
                         .outgoing = memory_allocate(n * sizeof(size_t)),
                         .incoming = memory_allocate(n * sizeof(size_t))};
    ranks_cut(tensor_count(like), dtype_size(tensor_dtype(like)), exchange.parts);
    exchange.received = memory_allocate(fill_counts(&exchange) + 1);
    Status status = fill_sent(&exchange);
    if (status == STATUS_OK)
        status = ranks_check(ranks_plugin()->all_to_all(exchange.sent, exchange.outgoing,
                                                        exchange.received, exchange.incoming));
    if (status == STATUS_OK) status = finish(&exchange, out);
    free(exchange.sent);
    free(exchange.received);
    free(exchange.parts);
    free(exchange.outgoing);
    free(exchange.incoming);
    return status;
}

Status pieces_agree(int64_t pieces, int64_t elements) {
    const RanksRequest request = {.call = RANKS_STEP, .elements = elements, .pieces = pieces};
    return ranks_plugin() ? ranks_agree(&request, NULL) : STATUS_OK;
}

Status pieces_end(PiecesSum *sum, const Tensor *like, Tensor **out) {
    return ranks_plugin() ? exchange_nodes(sum, like, out) : take_root(&sum->nodes, out);
}

Status pieces_gather(const void *own, void *all, size_t bytes) {
    if (ranks_plugin()) return ranks_check(ranks_plugin()->all_gather(own, all, bytes));
    memcpy(all, own, bytes);
    return STATUS_OK;
}
