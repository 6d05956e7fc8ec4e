// Subscripts understood: NumPy's rules for integers, slices, ellipsis, new axes, masks and index
// tensors, checked against one tensor. Positions are worked out on the host, where they are
// checked.
#include "tensor/index_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "device/foretell.h"
#include "shape/rules.h"
#include "tensor/compose.h"
#include "tensor/view.h"

static bool is_mask(const IndexItem *item) {
    return item->kind == INDEX_TENSOR && item->tensor->view.dtype == DTYPE_BOOL;
}

// How many dimensions of x an item takes.
static int item_dims(const IndexItem *item) {
    switch (item->kind) {
    case INDEX_ELLIPSIS:
    case INDEX_NEW_AXIS: return 0;
    case INDEX_TENSOR: return is_mask(item) ? item->tensor->view.rank : 1;
    default: return 1;
    }
}

// The walk over the items: `source` counts x's dimensions, `at` those of the view that it makes.
// New axes come last, so that the dimensions that integers take make room for them.
typedef struct Walk {
    Tensor *x;
    IndexPlan *plan;
    int source, at;
    int axes[INDEX_ITEMS_MAX], axis_count; // of the view, ascending
    int ellipsis_dims;
    bool may_stay;               // the only index tensor need not be read by the host
    bool has_tensor;             // integers then count as index tensors for the place of the result
    bool opened, closed, parted; // a run of index items began, ended, and another one began
} Walk;

static void note_index_item(Walk *walk) {
    if (walk->closed) walk->parted = true;
    if (!walk->opened) walk->plan->place = walk->at;
    walk->opened = true;
}

static void note_other_item(Walk *walk) {
    if (walk->opened) walk->closed = true;
}

static Status insert_axis(Walk *walk, int at) {
    TensorView *view = &walk->plan->view;
    ASSERT(at <= view->rank);
    if (view->rank == RANK_MAX)
        return fail(STATUS_INDEX, "a new axis would give %s more than %d dimensions",
                    tensor_type_name(walk->x).text, RANK_MAX);
    for (int i = view->rank; i > at; i--) {
        view->dims[i] = view->dims[i - 1];
        view->strides[i] = view->strides[i - 1];
    }
    view->dims[at] = 1;
    view->strides[at] = dtype_info[view->dtype].block_elements;
    view->rank++;
    return STATUS_OK;
}

static Picked *add_picked(Walk *walk) {
    ASSERT(walk->plan->picked_count < RANK_MAX && walk->source < walk->x->view.rank);
    Picked *picked = &walk->plan->picked[walk->plan->picked_count++];
    *picked = (Picked){.dim = walk->at};
    walk->at++;
    walk->source++;
    return picked;
}

Status index_check_mask(const Tensor *x, int first_dim, const Tensor *mask) {
    TensorType type = tensor_type(x), mask_type = tensor_type(mask);
    return shape_mask(&type, first_dim, &mask_type);
}

// Of one that only a run knows every place counts.
static Status read_mask(IndexPlan *plan, Tensor *mask, uint8_t *out) {
    int64_t count = tensor_count(mask), most = 0;
    TRY(tensor_materialize(mask));
    bool guessed = foretell_most(mask->view.buffer, count, &most);
    bool before = foretell_ignore_reads(guessed);
    Status status = tensor_read_bools(mask, out);
    foretell_ignore_reads(before);
    if (guessed) memset(out, true, (size_t)count);
    plan->guessed |= guessed;
    plan->bounded |= guessed;
    return status;
}

// A mask picks where it is true: one list of positions for each of its dimensions.
static Status pick_mask(Walk *walk, Tensor *mask) {
    int rank = mask->view.rank;
    TRY(index_check_mask(walk->x, walk->source, mask));
    int64_t elements = tensor_count(mask), count = 0;
    SCOPED_MEMORY uint8_t *boolean = memory_allocate((size_t)elements);
    Status status = read_mask(walk->plan, mask, boolean);
    if (status != STATUS_OK) return status;
    for (int64_t i = 0; i < elements; i++) count += boolean[i] != 0;
    Picked *picked[RANK_MAX];
    for (int d = 0; d < rank; d++) {
        picked[d] = add_picked(walk);
        picked[d]->shape = (Shape){.rank = 1, .dims = {count}};
        picked[d]->positions = memory_allocate((size_t)count * sizeof(int64_t));
    }
    for (int64_t i = 0, next = 0; i < elements; i++) {
        if (!boolean[i]) continue;
        int64_t rest = i;
        for (int d = rank - 1; d >= 0; d--) {
            picked[d]->positions[next] = rest % mask->view.dims[d];
            rest /= mask->view.dims[d];
        }
        next++;
    }
    return STATUS_OK;
}

// Floats serve as indexes where they are integers.
static Status read_whole(Tensor *index, int64_t *out, int64_t count) {
    if (!dtype_is_float(index->view.dtype)) return tensor_read_integers(index, out);
    SCOPED_MEMORY double *numbers = memory_allocate((size_t)count * sizeof *numbers);
    Status status = tensor_read_floats(index, numbers);
    for (int64_t i = 0; i < count && status == STATUS_OK; i++) {
        if (!(fabs(numbers[i]) <= 0x1p62) || numbers[i] != (double)(int64_t)numbers[i])
            status = fail(STATUS_INDEX, "an index must be an integer, not %.9g",
                          number_shown(numbers[i]));
        else
            out[i] = (int64_t)numbers[i];
    }
    return status;
}

enum { MANY_INDEXES = 1 << 12 }; // worth two reductions instead of a copy

// Where to read numbers is to wait, or takes long, they are checked on the device and stay there.
// The host reads those that are out of range, to name the first.
static Status keep_on_device(const Walk *walk, int64_t size, Tensor *index, Tensor **kept) {
    int64_t outside, count = tensor_count(index);
    bool pays = device_runs_ahead(index->device) ? count > 0 : count >= MANY_INDEXES;
    *kept = NULL;
    if (!walk->may_stay || !pays || index->view.dtype != DTYPE_INT64 ||
        index->device != walk->x->device)
        return STATUS_OK;
    TRY(tensor_materialize(index));
    TRY(compose_within(index, -size, size - 1, &outside));
    if (outside >= -size && outside < size) *kept = index;
    return STATUS_OK;
}

static Status pick_indexes(Walk *walk, Tensor *index) {
    if (dtype_is_quant(index->view.dtype))
        return fail(STATUS_INDEX, "%s cannot be an index", tensor_type_name(index).text);
    int64_t size = walk->x->view.dims[walk->source], count = tensor_count(index);
    int source = walk->source;
    Picked *picked = add_picked(walk);
    picked->shape = tensor_shape(index);
    TRY(keep_on_device(walk, size, index, &picked->index));
    if (picked->index) return STATUS_OK;
    picked->positions = memory_allocate((size_t)count * sizeof(int64_t));
    bool known = index->host ? !index->host->unknown : foretell_knows(index->view.buffer);
    bool guessed = !known; // they decide no size
    bool before = foretell_ignore_reads(guessed);
    Status status = read_whole(index, picked->positions, count);
    foretell_ignore_reads(before);
    TRY(status);
    walk->plan->guessed |= guessed;
    walk->plan->bounded |= foretell_is_bounded(index->view.buffer);
    for (int64_t i = 0; i < count; i++) {
        int64_t position = picked->positions[i];
        if (position < -size || position >= size) {
            TensorType type = tensor_type(walk->x);
            return shape_select(&type, source, position);
        }
        if (position < 0) picked->positions[i] += size;
    }
    return STATUS_OK;
}

static Status apply_item(Walk *walk, const IndexItem *item) {
    TensorView *view = &walk->plan->view;
    int dim = walk->at - walk->axis_count;
    switch (item->kind) {
    case INDEX_INTEGER:
        if (walk->has_tensor) note_index_item(walk);
        return view_select(walk->x, walk->source++, view, dim, item->integer);
    case INDEX_TENSOR:
        note_index_item(walk);
        return is_mask(item) ? pick_mask(walk, item->tensor) : pick_indexes(walk, item->tensor);
    case INDEX_SLICE: {
        note_other_item(walk);
        ResolvedSlice slice;
        SliceBounds bounds = {item->has_start, item->has_stop, item->has_step,
                              item->start,     item->stop,     item->step};
        TRY(slice_resolve(&bounds, view->dims[dim], &slice));
        walk->at++;
        return view_slice(walk->x, walk->source++, view, dim, &slice);
    }
    case INDEX_NEW_AXIS:
        note_other_item(walk);
        walk->axes[walk->axis_count++] = walk->at++;
        return STATUS_OK;
    case INDEX_ELLIPSIS:
        note_other_item(walk);
        walk->source += walk->ellipsis_dims;
        walk->at += walk->ellipsis_dims;
        return STATUS_OK;
    }
    return STATUS_OK;
}

// Counts dimensions before anything is read: every later step may rely on enough of them.
static Status count_dims(Walk *walk, const IndexItem *items, int count) {
    int taken = 0, ellipses = 0, tensors = 0;
    for (int i = 0; i < count; i++) {
        taken += item_dims(&items[i]);
        ellipses += items[i].kind == INDEX_ELLIPSIS;
        tensors += items[i].kind == INDEX_TENSOR;
    }
    walk->has_tensor = tensors > 0;
    walk->may_stay = tensors == 1;
    int rank = walk->x->view.rank;
    TensorType type = tensor_type(walk->x);
    TRY(shape_index_rank(&type, taken, ellipses));
    walk->ellipsis_dims = rank - taken;
    ASSERT(walk->ellipsis_dims >= 0);
    return STATUS_OK;
}

static Status broadcast_picked(IndexPlan *plan) {
    TensorType joint = {.dtype = DTYPE_INT64, .shape = plan->picked[0].shape};
    for (int i = 1; i < plan->picked_count; i++) {
        TensorType next = {.dtype = DTYPE_INT64, .shape = plan->picked[i].shape};
        TRY(shape_broadcast("index", &joint, &next, &joint.shape));
    }
    plan->picked_shape = joint.shape;
    return STATUS_OK;
}

Status index_plan_make(Tensor *x, const IndexItem *items, int count, IndexPlan *out) {
    foretell_shape_checked(x->view.buffer);
    ASSERT(count >= 0 && count <= INDEX_ITEMS_MAX);
    *out = (IndexPlan){.picked_count = 0};
    Walk walk = {.x = x, .plan = out};
    TRY(count_dims(&walk, items, count));
    TRY(tensor_materialize(x));
    out->view = x->view;
    for (int i = 0; i < count; i++) TRY(apply_item(&walk, &items[i]));
    for (int i = 0; i < walk.axis_count; i++) TRY(insert_axis(&walk, walk.axes[i]));
    if (walk.parted) out->place = 0;
    return out->picked_count ? broadcast_picked(out) : STATUS_OK;
}

void index_plan_free(IndexPlan *plan) {
    for (int i = 0; i < plan->picked_count; i++) free(plan->picked[i].positions);
}

int64_t *index_plan_combine(const IndexPlan *plan, const int64_t *strides) {
    const Shape *joint = &plan->picked_shape;
    int64_t count = shape_count(joint);
    ASSERT(plan->picked_count == 0 || !plan->picked[0].index);
    int64_t *combined = memory_allocate_zeroed((size_t)count, sizeof *combined);
    for (int p = 0; p < plan->picked_count; p++) {
        const Picked *picked = &plan->picked[p];
        int missing = joint->rank - picked->shape.rank;
        ASSERT(missing >= 0);
        for (int64_t i = 0; i < count; i++) {
            int64_t rest = i, position = 0, step = 1;
            for (int d = joint->rank - 1; d >= missing; d--) {
                int64_t own = picked->shape.dims[d - missing];
                if (own != 1) position += rest % joint->dims[d] * step;
                step *= own;
                rest /= joint->dims[d];
            }
            combined[i] += picked->positions[position] * strides[p];
        }
    }
    return combined;
}

Status index_plan_shape(const IndexPlan *plan, Shape *out) {
    bool is_picked[RANK_MAX] = {false};
    for (int i = 0; i < plan->picked_count; i++) is_picked[plan->picked[i].dim] = true;
    Shape rest = {.rank = 0};
    for (int i = 0; i < plan->view.rank; i++)
        if (!is_picked[i]) rest.dims[rest.rank++] = plan->view.dims[i];
    const Shape *joint = &plan->picked_shape;
    if (rest.rank + joint->rank > RANK_MAX)
        return fail(STATUS_INDEX, "the result of the index would have more than %d dimensions",
                    RANK_MAX);
    *out = (Shape){.rank = rest.rank + joint->rank};
    for (int i = 0; i < out->rank; i++) {
        int inside = i - plan->place;
        out->dims[i] = inside < 0             ? rest.dims[i]
                       : inside < joint->rank ? joint->dims[inside]
                                              : rest.dims[i - joint->rank];
    }
    return STATUS_OK;
}
