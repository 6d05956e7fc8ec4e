// Of a step that ranks make together: gradients are clipped where they lie, in parts over the
// ranks. Either every rank then takes all of them and moves all parameters, or each moves its part
// of every parameter, for which alone it keeps the state of the optimizer, and takes those of the
// others.
#include <math.h>
#include <stdlib.h>

#include "device/foretell.h"
#include "learn/learn_distribute.h"
#include "ranks/sharded.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "tensor/join.h"
#include "tensor/parameter.h"

// --- the norm

// The norm of each block, which depends on no other.
static Status norms_of_blocks(Tensor *part, Tensor **out) {
    const Shape rows = {{tensor_count(part) / LEARN_BLOCK, LEARN_BLOCK}, 2};
    const OpAttributes along = {.given = ATTRIBUTE_BIT(dim), .dim = 1};
    SCOPED_TENSOR(blocks);
    TRY(tensor_reshape(part, &rows, &blocks));
    return op_with(OP_norm, &blocks, 1, &along, out);
}

static Status join_blocks(const LearnStep *step, Tensor **out) {
    TensorArray all = {memory_allocate((step->bucket_count + 1) * sizeof(Tensor *)), 0};
    Status status = STATUS_OK;
    for (size_t i = 0; i < step->bucket_count && status == STATUS_OK; i++) {
        status = norms_of_blocks(step->buckets[i].part, &all.items[i]);
        all.count += status == STATUS_OK;
    }
    if (status == STATUS_OK) status = tensor_concat(all.items, all.count, 0, out);
    tensor_array_release(&all);
    return status;
}

static Status join_norms(Tensor *norms, double *norm) {
    size_t count = (size_t)tensor_count(norms);
    double *numbers = memory_allocate((count + 1) * sizeof *numbers), sum = 0;
    Status status = tensor_read_floats(norms, numbers);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) sum += numbers[i] * numbers[i];
    free(numbers);
    *norm = sqrt(sum);
    return status;
}

static Status norm_of_parts(const LearnStep *step, double *norm) {
    SCOPED_TENSOR(own);
    SCOPED_TENSOR(all);
    TRY(join_blocks(step, &own));
    if (step->run->fast) return join_norms(own, norm);
    size_t count = step->parameters.count;
    int64_t *lengths = memory_allocate((count + 1) * sizeof *lengths);
    PiecesLayout layout = learn_layout(step, lengths);
    layout.block = 1;
    for (size_t i = 0; i < step->bucket_count; i++) {
        const PiecesLayout *bucket = &step->buckets[i].sum.layout;
        for (size_t k = 0; k < bucket->count; k++) {
            lengths[layout.count] = bucket->lengths[k] / LEARN_BLOCK;
            layout.length += lengths[layout.count++];
        }
    }
    Status status = pieces_share(&layout, own, &all);
    free(lengths);
    TRY(status);
    return join_norms(all, norm);
}

// --- clipping

static Status scale(LearnStep *step, double factor) {
    for (size_t i = 0; i < step->bucket_count; i++) {
        Tensor **part = &step->buckets[i].part, *scaled;
        TRY(op_binary(OP_mul, op_tensor(*part), op_float(factor), &scaled));
        tensor_release(*part);
        *part = scaled;
    }
    return STATUS_OK;
}

static Status limit(LearnStep *step, double most) {
    for (size_t i = 0; i < step->bucket_count; i++) {
        Tensor **part = &step->buckets[i].part, *limited;
        TRY(op_ternary(OP_clamp, op_tensor(*part), op_float(-most), op_float(most), &limited));
        tensor_release(*part);
        *part = limited;
    }
    return STATUS_OK;
}

static Status clip(LearnStep *step, double *norm) {
    const LearnRun *run = step->run;
    if (run->loss_scale != 1) TRY(scale(step, 1 / run->loss_scale));
    if (run->clip_value > 0) TRY(limit(step, run->clip_value));
    bool before = foretell_ignore_reads(run->clip == 0); // then it is only reported
    Status status = norm_of_parts(step, norm);
    foretell_ignore_reads(before);
    TRY(status);
    if (run->clip == 0 || !(*norm > run->clip)) return STATUS_OK;
    return scale(step, run->clip / (*norm + 1e-6)); // as tape_clip_gradient_norm
}

Status learn_clip_together(LearnStep *step, double *norm) {
    bool enabled = tape_set_enabled(false);
    Status status = clip(step, norm);
    tape_set_enabled(enabled);
    return status;
}

// --- moving

static bool is_reached(const LearnStep *step, const Tensor *parameter) {
    const TensorArray *reached = &step->run->reached;
    for (size_t i = 0; i < reached->count; i++)
        if (reached->items[i] == parameter) return true;
    return false;
}

// What each parameter of a bucket is moved along: of the whole gradient, or of this rank's part.
static Status slice_bucket(const LearnStep *step, const LearnBucket *bucket, Tensor *from,
                           bool parts, TensorArray *out) {
    int64_t at = 0;
    for (size_t i = bucket->first; i < bucket->end; i++) {
        Tensor *parameter = step->parameters.items[i], **slice = &out->items[out->count++];
        int64_t count = tensor_count(parameter), length = step->lengths[i];
        *slice = NULL;
        if (parts) {
            PiecesRange own = pieces_cut(&bucket->sum.layout, i - bucket->first, ranks_own());
            int64_t end = own.end < count ? own.end : count;
            if (is_reached(step, parameter))
                TRY(tensor_slice(from, 0, at, at + end - own.first, slice));
            length = own.end - own.first;
        } else if (is_reached(step, parameter)) {
            TRY(learn_part_of(from, parameter, at, slice));
        }
        at += length;
    }
    return STATUS_OK;
}

static Status finish_share(const LearnStep *step, LearnBucket *bucket, bool *done) {
    *done = true;
    if (bucket->whole) return STATUS_OK;
    if (step->run->fast) {
        bucket->whole = tensor_retain(bucket->part);
        return STATUS_OK;
    }
    if (!bucket->share.part) TRY(learn_share_bucket(step, bucket));
    TRY(pieces_share_poll(&bucket->share, done));
    return *done ? pieces_share_finish(&bucket->share, &bucket->whole) : STATUS_OK;
}

// The gradients of all parameters, in their order; NULL for what no rank has reached.
static Status take_slices(LearnStep *step, bool parts, TensorArray *out) {
    out->items = memory_allocate_zeroed(step->parameters.count + 1, sizeof(Tensor *));
    out->count = 0;
    if (!parts) TRY(learn_advance(step, finish_share));
    for (size_t i = 0; i < step->bucket_count; i++) {
        const LearnBucket *bucket = &step->buckets[i];
        TRY(slice_bucket(step, bucket, parts ? bucket->part : bucket->whole, parts, out));
    }
    return STATUS_OK;
}

// Those of a bucket that every rank has whole.
typedef struct WholeParameters {
    PiecesLayout layout;
    Tensor **items; // borrowed
    int64_t *lengths;
} WholeParameters;

static WholeParameters whole_parameters(const LearnStep *step, const LearnBucket *bucket) {
    WholeParameters whole = {
        .items = memory_allocate((bucket->end - bucket->first + 1) * sizeof(Tensor *)),
        .lengths = memory_allocate((bucket->end - bucket->first + 1) * sizeof(int64_t))};
    whole.layout = learn_layout(step, whole.lengths);
    for (size_t i = bucket->first; i < bucket->end; i++) {
        int64_t first;
        if (sharded_part(step->parameters.items[i], &first)) continue;
        whole.items[whole.layout.count] = step->parameters.items[i];
        whole.lengths[whole.layout.count++] = step->lengths[i];
        whole.layout.length += step->lengths[i];
    }
    return whole;
}

// This rank's part of them.
static Status parts_of(const LearnStep *step, const WholeParameters *all, Tensor **out) {
    int64_t at = 0;
    SCOPED_TENSOR(flat);
    TRY(learn_flat(step, pieces_part(&all->layout, ranks_own()), &flat));
    for (size_t i = 0; i < all->layout.count; i++) {
        PiecesRange own = pieces_cut(&all->layout, i, ranks_own());
        int64_t count = tensor_count(all->items[i]), end = own.end < count ? own.end : count;
        Shape shape = {.rank = 1, .dims = {count}};
        SCOPED_TENSOR(line);
        SCOPED_TENSOR(from);
        SCOPED_TENSOR(to);
        TRY(tensor_reshape(all->items[i], &shape, &line));
        TRY(tensor_slice(line, 0, own.first, end, &from));
        TRY(tensor_slice(flat, 0, at, at + end - own.first, &to));
        if (end > own.first) TRY(op_copy(from, to));
        TRY(learn_clear(flat, at + end - own.first, at + own.end - own.first));
        at += own.end - own.first;
    }
    return compose_give(&flat, out);
}

// Every rank takes what the others have moved.
static Status share(const LearnStep *step, const WholeParameters *all) {
    SCOPED_TENSOR(part);
    SCOPED_TENSOR(whole);
    TRY(parts_of(step, all, &part));
    TRY(pieces_share(&all->layout, part, &whole));
    int64_t at = 0;
    for (size_t i = 0; i < all->layout.count; at += all->lengths[i++]) {
        Tensor *parameter = all->items[i];
        SCOPED_TENSOR(moved);
        if (!is_reached(step, parameter) || tensor_count(parameter) == 0) continue;
        TRY(tape_parameter_unshare(parameter));
        TRY(learn_part_of(whole, parameter, at, &moved));
        TRY(op_copy(moved, parameter));
    }
    return STATUS_OK;
}

static Status share_bucket(const LearnStep *step, const LearnBucket *bucket) {
    WholeParameters all = whole_parameters(step, bucket);
    Status status = all.layout.count > 0 ? share(step, &all) : STATUS_OK;
    free(all.items);
    free(all.lengths);
    return status;
}

// What was gathered of parameters in parts is that of before.
static Status let_go_of_wholes(const LearnStep *step) {
    for (size_t i = 0; i < step->parameters.count; i++) {
        int64_t first;
        Tensor *parameter = step->parameters.items[i];
        if (sharded_part(parameter, &first)) TRY(sharded_change(parameter));
    }
    return STATUS_OK;
}

static Status move(LearnStep *step) {
    bool parts = learn_moves_parts(step->run);
    TensorArray slices = {0};
    Status status = let_go_of_wholes(step);
    if (status == STATUS_OK) status = take_slices(step, parts, &slices);
    if (status == STATUS_OK)
        status = optimizer_step(step->run->optimizer, step->parameters.items, slices.items,
                                slices.count);
    tensor_array_release(&slices);
    for (size_t i = 0; i < step->bucket_count && parts && status == STATUS_OK; i++)
        status = share_bucket(step, &step->buckets[i]);
    return status;
}

Status learn_move_together(LearnStep *step) {
    bool enabled = tape_set_enabled(false);
    Status status = move(step);
    tape_set_enabled(enabled);
    return status;
}
