// A tree of sums over pieces of work: each rank adds up what lies under its own nodes, an exchange
// brings every element's nodes to one rank, and that one goes on to the root.
#include "ranks/pieces.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/foretell.h"
#include "device/staging.h"
#include "device/work.h"
#include "ranks/internal.h"
#include "tensor/compose.h"
#include "tensor/join.h"
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

static bool lies_in(const Tensor *part, const Tensor *whole) {
    return whole && part->view.buffer == whole->view.buffer;
}

// Into the one that lies in `whole`, which may be NULL.
static Status join(PiecesNode *left, PiecesNode *right, const Tensor *whole) {
    Tensor *x = left->sum, *y = right->sum, *sum;
    if (lies_in(x, whole) || lies_in(y, whole)) {
        sum = tensor_retain(lies_in(x, whole) ? x : y);
        TRY(op_add_view(sum == x ? &y->view : &x->view, &sum->view, "add"));
    } else {
        TRY(op_binary(OP_add, op_donated(x), op_tensor(y), &sum));
    }
    tensor_release(x);
    tensor_release(y);
    *left = (PiecesNode){left->level + 1, left->index / 2, sum};
    return STATUS_OK;
}

static bool are_siblings(const PiecesNode *left, const PiecesNode *right) {
    return left->level == right->level && left->index % 2 == 0 && right->index == left->index + 1;
}

// Takes the node's reference.
static Status push(PiecesNodes *nodes, PiecesNode node, const Tensor *whole) {
    VECTOR_PUSH(nodes, node);
    while (nodes->count > 1 &&
           are_siblings(&nodes->items[nodes->count - 2], &nodes->items[nodes->count - 1])) {
        TRY(join(&nodes->items[nodes->count - 2], &nodes->items[nodes->count - 1], whole));
        nodes->count--;
    }
    return STATUS_OK;
}

// What remains when the number of pieces is not a power of two is added from the last to the first.
static Status take_root(PiecesNodes *nodes, const Tensor *whole, Tensor **out) {
    while (nodes->count > 1) {
        TRY(join(&nodes->items[nodes->count - 2], &nodes->items[nodes->count - 1], whole));
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
    return push(&sum->nodes, (PiecesNode){0, piece, x}, NULL);
}

// --- between ranks

// Bytes of a tensor to the other ranks, and theirs into another one: straight from and to the
// tensors where the host computes in the same memory, else through memory that the device copies
// from and to by itself.
struct PiecesTransfer {
    size_t *outgoing, *incoming; // bytes to and from each rank
    bool repeated, skips_own;    // as of RanksBlocks
    size_t folded;               // bytes of a sum that the transport makes in place; 0: none
    int tag;
    Tensor *from, *into;   // counted; NULL where bytes are staged
    Staging *sent, *comes; // NULL where they are not
    RanksExchange *running;
    bool is_started;
};

// What pieces come to is not known before a run.
static const RanksPlugin *carrier(void) {
    return ranks_carrier(!foretelling());
}

static void transfer_free(PiecesTransfer *transfer) {
    if (!transfer) return;
    // What the transport still sends stays.
    bool in_use = transfer->running && carrier()->drop(transfer->running);
    if (in_use && transfer->from && !transfer->sent) buffer_abandon(transfer->from->view.buffer);
    tensor_release(transfer->from);
    tensor_release(transfer->into);
    (in_use ? staging_abandon : staging_release)(transfer->sent);
    staging_release(transfer->comes);
    free(transfer->outgoing);
    free(transfer->incoming);
    free(transfer);
}

static PiecesTransfer *transfer_new(int tag) {
    size_t n = (size_t)ranks_count();
    PiecesTransfer *transfer = memory_allocate_zeroed(1, sizeof *transfer);
    transfer->outgoing = memory_allocate_zeroed(n, sizeof(size_t));
    transfer->incoming = memory_allocate_zeroed(n, sizeof(size_t));
    transfer->tag = tag;
    return transfer;
}

static size_t sum_of(const size_t *bytes) {
    size_t all = 0;
    for (int i = 0; i < ranks_count(); i++) all += bytes[i];
    return all;
}

// Where the host may read and write a tensor until the transfer ends; NULL elsewhere.
static char *place_to_hold(Tensor *x, Status *status) {
    char *place = device_is_short(x->device) ? NULL : ranks_place_of(x);
    if (place) *status = buffer_hold(x->view.buffer);
    return place;
}

static Status launch(PiecesTransfer *transfer) {
    const RanksPlugin *plugin = carrier();
    char *from = transfer->sent ? staging_bytes(transfer->sent) : ranks_place_of(transfer->from);
    transfer->is_started = true;
    if (transfer->folded > 0) {
        RanksNumber number =
            tensor_dtype(transfer->from) == DTYPE_FLOAT64 ? RANKS_FLOAT64 : RANKS_FLOAT32;
        size_t count = transfer->folded / dtype_size(tensor_dtype(transfer->from));
        return ranks_check(plugin->reduce(from, count, number, RANKS_FOLD_SUM, &transfer->running));
    }
    char *into = transfer->comes ? staging_bytes(transfer->comes) : ranks_place_of(transfer->into);
    RanksBlocks in = {.data = from, .bytes = transfer->outgoing, .repeated = transfer->repeated};
    RanksBlocks out = {.data = into, .bytes = transfer->incoming, .skips_own = transfer->skips_own};
    return ranks_check(plugin->exchange(in, out, transfer->tag, &transfer->running));
}

// Sends what the device has made available, and lets it go on.
static Status transfer_poll(PiecesTransfer *transfer, bool *done) {
    *done = true;
    if (!transfer->is_started) {
        if (transfer->sent) TRY(staging_test(transfer->sent, done));
        if (!*done) return STATUS_OK;
        TRY(launch(transfer));
    }
    return ranks_check(carrier()->test(transfer->running, done));
}

static Status transfer_wait(PiecesTransfer *transfer) {
    if (!transfer->is_started) {
        if (transfer->sent) TRY(staging_wait(transfer->sent));
        TRY(launch(transfer));
    }
    TRY(ranks_check(carrier()->wait(transfer->running)));
    transfer->running = NULL;
    if (transfer->folded > 0) foretell_forget(transfer->from->view.buffer);
    if (transfer->into) foretell_forget(transfer->into->view.buffer);
    return STATUS_OK;
}

Status pieces_pause(int *looks) {
    enum { YIELDS = 2000 };
    const struct timespec pause = {.tv_nsec = 50000};
    if (device_is_interrupted()) return ranks_check(RANKS_INTERRUPTED);
    if (++*looks < YIELDS)
        sched_yield();
    else
        nanosleep(&pause, NULL);
    return STATUS_OK;
}

static size_t part_bytes(const PiecesLayout *layout, int rank) {
    return (size_t)pieces_part(layout, rank) * dtype_size(layout->dtype);
}

// A rank's part between a whole tensor and staged bytes, where it lies at `at`.
typedef struct PartCopy {
    Tensor *whole;
    Staging *staging;
    size_t at;
    bool out; // of the whole
} PartCopy;

static Status copy_part(const PiecesLayout *layout, int rank, PartCopy copy) {
    size_t element = dtype_size(layout->dtype);
    int64_t begin = 0;
    for (size_t i = 0; i < layout->count; begin += layout->lengths[i++]) {
        PiecesRange range = pieces_cut(layout, i, rank);
        const StagingCopy thing = {.buffer = copy.whole->view.buffer,
                                   .offset = copy.whole->view.offset +
                                             (size_t)(begin + range.first) * element,
                                   .at = copy.at,
                                   .bytes = (size_t)(range.end - range.first) * element};
        TRY(copy.out ? staging_read(copy.staging, &thing) : staging_write(copy.staging, &thing));
        copy.at += thing.bytes;
    }
    return STATUS_OK;
}

// A tensor [elements] for what comes from all ranks.
static Status new_line(const PiecesLayout *layout, int64_t elements, Tensor **out) {
    const Shape shape = {.rank = 1, .dims = {elements}};
    return tensor_new(layout->device, layout->dtype, &shape, out);
}

// --- sums

// Whether this rank's own parts are read where they were made: in the order of ranks a part is one
// range of the whole.
static bool keeps_own(const PiecesSum *sum) {
    return sum->layout.count == 1 && !sum->by_rounds;
}

// The bytes to and from each rank.
static void fill_counts(const PiecesSum *sum, PiecesTransfer *transfer) {
    size_t own = part_bytes(&sum->layout, ranks_own());
    for (int i = 0; i < ranks_count(); i++) {
        transfer->outgoing[i] = sum->nodes.count * part_bytes(&sum->layout, i);
        transfer->incoming[i] = nodes_of(sum, i) * own;
    }
    transfer->skips_own = keeps_own(sum);
}

// Rank by rank its part of each node.
static Status stage_nodes(const PiecesSum *sum, PiecesTransfer *transfer) {
    size_t at = 0;
    transfer->sent = staging_new(sum->layout.device, sum_of(transfer->outgoing));
    for (int i = 0; i < ranks_count(); at += transfer->outgoing[i++]) {
        if (i == ranks_own() && transfer->skips_own) continue;
        size_t part = part_bytes(&sum->layout, i);
        for (size_t k = 0; k < sum->nodes.count; k++) {
            PartCopy copy = {sum->nodes.items[k].sum, transfer->sent, at + k * part, .out = true};
            TRY(copy_part(&sum->layout, i, copy));
        }
    }
    return STATUS_OK;
}

static Status fill_sent(const PiecesSum *sum, PiecesTransfer *transfer) {
    Status status = STATUS_OK;
    for (size_t k = 0; k < sum->nodes.count; k++) {
        Tensor *node = sum->nodes.items[k].sum;
        ASSERT(tensor_count(node) == sum->layout.length && tensor_is_contiguous(node));
        TRY(tensor_materialize(node));
    }
    bool alone = keeps_own(sum) && sum->nodes.count == 1;
    Tensor *node = alone ? sum->nodes.items[0].sum : NULL;
    if (!node || !place_to_hold(node, &status)) return stage_nodes(sum, transfer);
    transfer->from = tensor_retain(node);
    return status;
}

static Status prepare_received(const PiecesSum *sum, PiecesTransfer *transfer) {
    size_t bytes = sum_of(transfer->incoming);
    int64_t elements = (int64_t)(bytes / dtype_size(sum->layout.dtype));
    Status status = STATUS_OK;
    if (keeps_own(sum)) {
        TRY(new_line(&sum->layout, elements, &transfer->into));
        if (place_to_hold(transfer->into, &status)) return status;
        tensor_release(transfer->into);
        transfer->into = NULL;
    }
    transfer->comes = staging_new(sum->layout.device, bytes);
    return STATUS_OK;
}

// Of what this rank has summed by itself.
static Status start_fold(const PiecesSum *sum, PiecesTransfer *transfer) {
    Status status = STATUS_OK;
    Tensor *own = transfer->from;
    transfer->folded = (size_t)sum->layout.length * dtype_size(sum->layout.dtype);
    ASSERT(tensor_count(own) == sum->layout.length && tensor_is_contiguous(own));
    TRY(tensor_materialize(own));
    if (place_to_hold(own, &status)) return status;
    const StagingCopy copy = {own->view.buffer, own->view.offset, 0, transfer->folded};
    transfer->sent = staging_new(sum->layout.device, transfer->folded);
    return staging_read(transfer->sent, &copy);
}

static Status finish_fold(const PiecesSum *sum, Tensor **out) {
    PiecesTransfer *transfer = sum->transfer;
    TRY(transfer_wait(transfer));
    *out = tensor_retain(transfer->from);
    if (!transfer->sent) return STATUS_OK;
    const StagingCopy copy = {(*out)->view.buffer, (*out)->view.offset, 0, transfer->folded};
    return staging_write(transfer->sent, &copy);
}

Status pieces_send(PiecesSum *sum) {
    PiecesTransfer *transfer = sum->transfer;
    if (!transfer || transfer->is_started) return STATUS_OK;
    if (transfer->sent) TRY(staging_wait(transfer->sent));
    return launch(transfer);
}

Status pieces_start(PiecesSum *sum, int index) {
    if (ranks_count() == 1) return STATUS_OK;
    ASSERT(!sum->transfer && !(sum->fast && sum->by_rounds));
    if (sum->fast) {
        sum->transfer = transfer_new(0);
        TRY(take_root(&sum->nodes, NULL, &sum->transfer->from));
        drop(&sum->nodes);
        return start_fold(sum, sum->transfer);
    }
    bool done;
    sum->transfer = transfer_new(RANKS_TAG_PIECES + index);
    fill_counts(sum, sum->transfer);
    TRY(fill_sent(sum, sum->transfer));
    if (sum->transfer->from) sum->whole = tensor_retain(sum->transfer->from);
    TRY(prepare_received(sum, sum->transfer));
    if (!keeps_own(sum)) drop(&sum->nodes);
    return transfer_poll(sum->transfer, &done);
}

Status pieces_poll(PiecesSum *sum, bool *done) {
    *done = !sum->fast || !sum->transfer;
    if (!sum->transfer || (sum->fast && !sum->transfer->is_started)) return STATUS_OK;
    return transfer_poll(sum->transfer, done);
}

// What was staged goes into a tensor; this rank's own is left out where it was kept.
static Status take_staged(const PiecesSum *sum, PiecesTransfer *transfer) {
    size_t bytes = sum_of(transfer->incoming), at = 0;
    if (!transfer->comes) return STATUS_OK;
    TRY(new_line(&sum->layout, (int64_t)(bytes / dtype_size(sum->layout.dtype)), &transfer->into));
    for (int i = 0; i < ranks_count(); at += transfer->incoming[i++]) {
        if (i == ranks_own() && transfer->skips_own) continue;
        const StagingCopy copy = {transfer->into->view.buffer, at, at, transfer->incoming[i]};
        TRY(staging_write(transfer->comes, &copy));
    }
    return STATUS_OK;
}

// This rank's part of a rank's k-th node.
static Status part_of_node(const PiecesSum *sum, int rank, size_t k, Tensor **out) {
    int64_t part = pieces_part(&sum->layout, ranks_own()), at = 0;
    if (rank == ranks_own() && keeps_own(sum)) {
        PiecesRange own = pieces_cut(&sum->layout, 0, rank);
        return tensor_slice(sum->nodes.items[k].sum, 0, own.first, own.end, out);
    }
    for (int i = 0; i < rank; i++) at += (int64_t)nodes_of(sum, i) * part;
    at += (int64_t)k * part;
    return tensor_slice(sum->transfer->into, 0, at, at + part, out);
}

static Status push_received(PiecesSum *sum) {
    for (int i = 0; i < ranks_count(); i++) {
        PiecesRange range = pieces_of(sum->pieces, i);
        int64_t piece = sum->round * ranks_count() + i;
        size_t k = 0;
        if (sum->by_rounds) range = (PiecesRange){piece, piece + (int64_t)nodes_of(sum, i)};
        for (int64_t at = range.first; at < range.end; k++) {
            int level = sum->by_rounds ? 0 : level_at(at, range.end);
            PiecesNode node = {level, at >> level, NULL};
            TRY(part_of_node(sum, i, k, &node.sum));
            TRY(push(&sum->parts, node, sum->whole));
            at += (int64_t)1 << level;
        }
    }
    return STATUS_OK;
}

Status pieces_collect(PiecesSum *sum) {
    PiecesTransfer *transfer = sum->transfer;
    if (!transfer) return STATUS_OK;
    TRY(transfer_wait(transfer));
    Status status = take_staged(sum, transfer);
    if (status == STATUS_OK) status = push_received(sum);
    drop(&sum->nodes);
    transfer_free(transfer);
    sum->transfer = NULL;
    return status;
}

Status pieces_finish(PiecesSum *sum, Tensor **part) {
    if (ranks_count() == 1) return take_root(&sum->nodes, NULL, part);
    if (sum->fast) {
        Status status = finish_fold(sum, part);
        pieces_drop(sum);
        return status;
    }
    TRY(pieces_collect(sum));
    Status status = take_root(&sum->parts, sum->whole, part);
    drop(&sum->parts);
    return status;
}

void pieces_drop(PiecesSum *sum) {
    transfer_free(sum->transfer);
    sum->transfer = NULL;
    drop(&sum->nodes);
    drop(&sum->parts);
    tensor_release_of(&sum->whole);
}

// --- from parts to the whole

void pieces_share_drop(PiecesShare *share) {
    transfer_free(share->transfer);
    tensor_release(share->part);
    share->transfer = NULL;
    share->part = NULL;
}

static Status stage_part(PiecesShare *share) {
    PiecesTransfer *transfer = share->transfer;
    Status status = STATUS_OK;
    if (place_to_hold(share->part, &status)) {
        transfer->from = tensor_retain(share->part);
        return status;
    }
    size_t bytes = transfer->outgoing[0];
    transfer->sent = staging_new(share->layout.device, bytes);
    const TensorView *view = &share->part->view;
    const StagingCopy copy = {view->buffer, view->offset, 0, bytes};
    return staging_read(transfer->sent, &copy);
}

static Status prepare_whole(PiecesShare *share) {
    PiecesTransfer *transfer = share->transfer;
    Status status = STATUS_OK;
    if (transfer->into) return status;
    TRY(new_line(&share->layout, share->layout.length, &transfer->into));
    if (share->layout.count == 1 && place_to_hold(transfer->into, &status)) return status;
    transfer->comes = staging_new(share->layout.device, sum_of(transfer->incoming));
    transfer->skips_own = share->layout.count == 1;
    return STATUS_OK;
}

// `whole`: where the part lies in its place, and takes those of the others; else NULL.
static Status share_start(PiecesShare *share, const PiecesLayout *layout, Tensor *part,
                          Tensor *whole, int tag) {
    ASSERT(!share->part && tensor_count(part) == pieces_part(layout, ranks_own()));
    share->layout = *layout;
    share->part = tensor_retain(part);
    if (ranks_count() == 1) return STATUS_OK;
    PiecesTransfer *transfer = share->transfer = transfer_new(tag);
    transfer->repeated = true;
    for (int i = 0; i < ranks_count(); i++) {
        transfer->incoming[i] = part_bytes(layout, i);
        transfer->outgoing[i] = part_bytes(layout, ranks_own());
    }
    if (whole) {
        transfer->into = tensor_retain(whole);
        transfer->skips_own = true;
    }
    bool done;
    TRY(tensor_materialize(part));
    ASSERT(tensor_is_contiguous(part));
    TRY(stage_part(share));
    TRY(prepare_whole(share));
    return transfer_poll(transfer, &done);
}

Status pieces_share_start(PiecesShare *share, PiecesSum *sum, Tensor *part, int index) {
    if (!lies_in(part, sum->whole)) tensor_release_of(&sum->whole);
    return share_start(share, &sum->layout, part, sum->whole, RANKS_TAG_PIECES + index);
}

Status pieces_share_poll(PiecesShare *share, bool *done) {
    *done = true;
    return share->transfer ? transfer_poll(share->transfer, done) : STATUS_OK;
}

static Status put_own(const PiecesShare *share) {
    PiecesRange own = pieces_cut(&share->layout, 0, ranks_own());
    SCOPED_TENSOR(place);
    TRY(tensor_slice(share->transfer->into, 0, own.first, own.end, &place));
    return own.end > own.first ? op_copy(share->part, place) : STATUS_OK;
}

static Status put_together(const PiecesShare *share) {
    const PiecesTransfer *transfer = share->transfer;
    size_t at = 0;
    if (!transfer->comes) return STATUS_OK;
    for (int i = 0; i < ranks_count(); at += transfer->incoming[i++]) {
        PartCopy copy = {transfer->into, transfer->comes, at, .out = false};
        bool kept = i == ranks_own() && transfer->skips_own;
        TRY(kept ? put_own(share) : copy_part(&share->layout, i, copy));
    }
    return STATUS_OK;
}

Status pieces_share_finish(PiecesShare *share, Tensor **whole) {
    if (!share->transfer) {
        *whole = share->part;
        share->part = NULL;
        return STATUS_OK;
    }
    Status status = transfer_wait(share->transfer);
    if (status == STATUS_OK) status = put_together(share);
    if (status == STATUS_OK) *whole = tensor_retain(share->transfer->into);
    pieces_share_drop(share);
    return status;
}

Status pieces_share(const PiecesLayout *layout, Tensor *part, Tensor **whole) {
    PiecesShare share = {0};
    Status status = share_start(&share, layout, part, NULL, RANKS_TAG);
    if (status == STATUS_OK) status = pieces_share_finish(&share, whole);
    pieces_share_drop(&share);
    return status;
}

Status pieces_agree(int64_t pieces, int64_t elements) {
    const RanksRequest request = {.call = RANKS_STEP, .elements = elements, .pieces = pieces};
    return ranks_count() > 1 ? ranks_agree(&request, NULL) : STATUS_OK;
}

Status pieces_begin(int64_t pieces, int64_t elements, double rate, bool fast) {
    const RanksRequest request = {.call = RANKS_STEP,
                                  .may_stop = true,
                                  .fast = fast,
                                  .elements = elements,
                                  .pieces = pieces,
                                  .rate = rate};
    return ranks_count() > 1 ? ranks_agree(&request, NULL) : STATUS_OK;
}

Status pieces_gather(const void *own, void *all, size_t bytes) {
    if (ranks_count() > 1) return ranks_gather(own, all, bytes);
    memcpy(all, own, bytes);
    return STATUS_OK;
}
