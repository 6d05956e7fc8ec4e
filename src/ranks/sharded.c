// Parameters in parts: a keeper of each one's buffer brings the parts of all ranks together.
#include "ranks/sharded.h"

#include <stdlib.h>

#include "device/foretell.h"
#include "device/walk.h"
#include "ranks/internal.h"
#include "tensor/compose.h"
#include "tensor/parameter.h"

typedef struct Sharded {
    BufferKeeper keeper;
    ShardedSet *set; // counted
    Buffer *buffer;  // of the whole; holds this
    Tensor *part;    // counted
    uint64_t number; // of the parameter
    int64_t first;   // element of the part
    size_t *bytes;   // of every rank's part
} Sharded;

struct ShardedSet {
    int refs;
    VECTOR(Sharded *) gathered;
};

ShardedSet *sharded_set_new(void) {
    ShardedSet *set = memory_allocate_zeroed(1, sizeof *set);
    set->refs = 1;
    return set;
}

void sharded_set_release(ShardedSet *set) {
    if (!set || --set->refs > 0) return;
    ASSERT(set->gathered.count == 0); // each of those holds the set
    VECTOR_FREE(&set->gathered);
    free(set);
}

static void forget_gathered(const Sharded *one) {
    ShardedSet *set = one->set;
    size_t count = 0;
    for (size_t i = 0; i < set->gathered.count; i++)
        if (set->gathered.items[i] != one) set->gathered.items[count++] = set->gathered.items[i];
    set->gathered.count = count;
}

static void end(BufferKeeper *keeper) {
    Sharded *one = (Sharded *)keeper;
    forget_gathered(one);
    sharded_set_release(one->set);
    tensor_release(one->part);
    free(one->bytes);
    free(one);
}

// Those that the kernel which is about to run does not use.
static Status let_go(ShardedSet *set) {
    size_t count = 0;
    Status status = STATUS_OK;
    for (size_t i = 0; i < set->gathered.count; i++) {
        Sharded *one = set->gathered.items[i];
        bool stays = one->buffer->resident || buffer_is_in_use(one->buffer);
        if (!stays && status == STATUS_OK) status = buffer_give_up(one->buffer);
        if (stays || status != STATUS_OK) set->gathered.items[count++] = one;
    }
    set->gathered.count = count;
    return status;
}

static Status gather(const Sharded *one, Buffer *made) {
    const RanksRequest request = {.call = RANKS_GATHER,
                                  .elements =
                                      (int64_t)(made->bytes / dtype_size(tensor_dtype(one->part))),
                                  .transfer = (int64_t)one->number};
    char *own;
    size_t bytes;
    TRY(ranks_agree(&request, NULL));
    foretell_forget(made);
    if (foretelling()) return STATUS_OK;
    TRY(ranks_bytes_of(one->part, &own, &bytes));
    SCOPED_MEMORY char *all = memory_allocate(made->bytes + 1);
    Status status = ranks_share_parts(own, one->bytes, RANKS_TAG, all);
    if (status == STATUS_OK) status = buffer_upload(made, 0, all, made->bytes);
    free(own);
    return status;
}

static Status bring(BufferKeeper *keeper, Buffer *buffer) {
    Sharded *one = (Sharded *)keeper;
    Buffer *made;
    ASSERT(buffer == one->buffer);
    TRY(let_go(one->set));
    TRY(buffer_new(buffer->device, buffer->bytes, &buffer->label, &made));
    Status status = gather(one, made);
    if (status != STATUS_OK) {
        buffer_release(made);
        return status;
    }
    VECTOR_PUSH(&one->set->gathered, one);
    return buffer_refill(buffer, made);
}

// --- parameters ----------------------------------------------------------------------------------

static Sharded *sharded_of(const Tensor *parameter) {
    Buffer *buffer = parameter->view.buffer;
    return buffer && buffer->keeper ? (Sharded *)buffer->keeper : NULL;
}

Tensor *sharded_part(const Tensor *parameter, int64_t *first) {
    const Sharded *one = sharded_of(parameter);
    if (one) *first = one->first;
    return one ? one->part : NULL;
}

static void keep(Sharded *one, Buffer *buffer) {
    one->buffer = buffer;
    buffer->keeper = &one->keeper;
}

// Elements [first, end) of a parameter in memory of their own.
static Status copy_part(Tensor *parameter, PiecesRange range, Tensor **out) {
    SCOPED_TENSOR(line);
    SCOPED_TENSOR(part);
    Shape shape = {.rank = 1, .dims = {tensor_count(parameter)}};
    TRY(tensor_reshape(parameter, &shape, &line));
    TRY(tensor_slice(line, 0, range.first, range.end, &part));
    return tensor_clone(part, out);
}

static PiecesRange range_of(int64_t count, int64_t block, int rank) {
    ASSERT(count > 0 && block > 0);
    int64_t length = (count + block - 1) / block * block;
    const PiecesLayout layout = {.block = block, .lengths = &length, .count = 1};
    PiecesRange range = pieces_cut(&layout, 0, rank);
    if (range.first > count) range.first = count;
    if (range.end > count) range.end = count;
    return range;
}

// Its buffer is all of it and nobody else's.
static Status make_own(Tensor *parameter) {
    TRY(tape_parameter_unshare(parameter));
    if (view_fills_buffer(&parameter->view) && !parameter->view.buffer->resident) return STATUS_OK;
    SCOPED_TENSOR(copy);
    TRY(tensor_clone(parameter, &copy));
    return tape_parameter_assign(parameter, copy);
}

static Status cut(ShardedSet *set, Tensor *parameter, int64_t block) {
    int64_t count = tensor_count(parameter);
    PiecesRange own = range_of(count, block, ranks_own());
    Tensor *part;
    TRY(make_own(parameter));
    TRY(copy_part(parameter, own, &part));
    Sharded *one = memory_allocate_zeroed(1, sizeof *one);
    one->keeper = (BufferKeeper){bring, end};
    one->set = set;
    set->refs++;
    one->part = part;
    buffer_note_purpose(part->view.buffer, PURPOSE_PARAMETER);
    one->number = tape_parameter_number(parameter);
    one->first = own.first;
    ASSERT(own.first >= 0 && tensor_count(part) == own.end - own.first);
    one->bytes = memory_allocate((size_t)ranks_count() * sizeof *one->bytes);
    for (int i = 0; i < ranks_count(); i++) {
        PiecesRange range = range_of(count, block, i);
        one->bytes[i] = (size_t)(range.end - range.first) * dtype_size(tensor_dtype(parameter));
    }
    keep(one, parameter->view.buffer);
    return buffer_give_up(one->buffer);
}

Status sharded_cut(ShardedSet *set, Tensor *parameter, int64_t block) {
    ASSERT(!sharded_of(parameter) && ranks_count() > 1);
    bool enabled = tape_set_enabled(false);
    Status status = cut(set, parameter, block);
    tape_set_enabled(enabled);
    return status;
}

// Another buffer for the parameter; the holders of this one keep it, whole.
static Status part_ways(Sharded *one, Tensor *parameter) {
    Buffer *held = one->buffer, *other;
    TRY(buffer_bring(held));
    TRY(buffer_new(held->device, held->bytes, &held->label, &other));
    forget_gathered(one);
    held->keeper = NULL;
    keep(one, other);
    parameter->view.buffer = other;
    buffer_release(held);
    return buffer_give_up(other);
}

Status sharded_change(Tensor *parameter) {
    Sharded *one = sharded_of(parameter);
    ASSERT(one != NULL);
    if (one->buffer->resident || !buffer_is_unique(one->buffer)) return part_ways(one, parameter);
    forget_gathered(one);
    return buffer_give_up(one->buffer);
}

Status sharded_join(Tensor *parameter) {
    Sharded *one = sharded_of(parameter);
    if (!one) return STATUS_OK;
    TRY(buffer_bring(one->buffer));
    one->buffer->keeper = NULL;
    end(&one->keeper);
    return STATUS_OK;
}
