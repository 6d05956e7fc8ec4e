// Joint walks over strided views and the small helpers that every kernel uses.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cast.h"
#include "device/vulkan/kernels.h"

int64_t vulkan_view_count(const TensorView *view) {
    int64_t count = 1;
    for (int d = 0; d < view->rank; d++) count *= view->dims[d];
    return count;
}

bool vulkan_view_is_contiguous(const TensorView *view) {
    int64_t expected = 1;
    for (int d = view->rank - 1; d >= 0; d--) {
        if (view->dims[d] == 0) return true;
        if (view->dims[d] != 1 && view->strides[d] != expected) return false;
        expected *= view->dims[d];
    }
    return true;
}

static void swap_dims(Walk *walk, int a, int b) {
    int64_t dim = walk->dims[a];
    walk->dims[a] = walk->dims[b];
    walk->dims[b] = dim;
    for (int v = 0; v < walk->n_views; v++) {
        int64_t stride = walk->strides[v][a];
        walk->strides[v][a] = walk->strides[v][b];
        walk->strides[v][b] = stride;
    }
}

// True when dim a is walked outside dim b: decided by the first view whose strides differ.
static bool is_outer(const Walk *walk, int a, int b) {
    for (int v = 0; v < walk->n_views; v++) {
        int64_t stride_a = llabs(walk->strides[v][a]), stride_b = llabs(walk->strides[v][b]);
        if (stride_a == 0 || stride_b == 0 || stride_a == stride_b) continue;
        return stride_a > stride_b;
    }
    return true;
}

static bool can_merge(const Walk *walk, int outer, int inner) {
    for (int v = 0; v < walk->n_views; v++)
        if (walk->strides[v][outer] != walk->strides[v][inner] * walk->dims[inner]) return false;
    return true;
}

static void merge_dims(Walk *walk) {
    int kept = 0;
    for (int d = 1; d < walk->rank; d++) {
        if (can_merge(walk, kept, d))
            walk->dims[kept] *= walk->dims[d];
        else
            walk->dims[++kept] = walk->dims[d];
        for (int v = 0; v < walk->n_views; v++) walk->strides[v][kept] = walk->strides[v][d];
    }
    walk->rank = kept + 1;
}

void walk_prepare_part(Walk *walk, int n_views, const TensorView *const *views, int first, int rank,
                       bool ordered) {
    ASSERT(n_views > 0 && n_views <= WALK_VIEWS_MAX && views[0]);
    walk->n_views = n_views;
    walk->rank = 0;
    walk->count = 1;
    for (int d = first; d < rank; d++) {
        int64_t dim = views[0]->dims[d];
        walk->count *= dim;
        if (dim == 1) continue;
        for (int v = 0; v < n_views; v++)
            walk->strides[v][walk->rank] = views[v] ? views[v]->strides[d] : 0;
        walk->dims[walk->rank++] = dim;
    }
    if (walk->rank == 0 || walk->count == 0) {
        walk->rank = 0;
        return;
    }
    for (int i = 1; i < walk->rank && !ordered; i++)
        for (int j = i; j > 0 && !is_outer(walk, j - 1, j); j--) swap_dims(walk, j - 1, j);
    merge_dims(walk);
}

void walk_prepare(Walk *walk, int n_views, const TensorView *const *views, int rank) {
    walk_prepare_part(walk, n_views, views, 0, rank, false);
}

VulkanReal vulkan_real_of(DType dtype) {
    if (!dtype_is_float(dtype) && !dtype_is_quant(dtype)) return REAL_I64;
    return dtype == DTYPE_FLOAT64 ? REAL_F64 : REAL_F32;
}

uint64_t vulkan_scalar_bits(const Scalar *scalar, VulkanReal real) {
    static const DType dtypes[] = {DTYPE_FLOAT32, DTYPE_FLOAT64, DTYPE_INT64};
    uint64_t bits = 0;
    cast_scalar(scalar, dtypes[real], &bits);
    return bits;
}

Status vulkan_no_kernel(Device *device, const KernelCall *call) {
    char inputs[160] = "";
    size_t used = 0;
    for (int k = 0; k < call->n_inputs; k++) {
        const KernelOperand *operand = &call->inputs[k];
        int n = snprintf(inputs + used, sizeof inputs - used, "%s%s", k > 0 ? ", " : "",
                         operand->view ? dtype_name(operand->view->dtype) : "a number");
        if (n > 0 && used + (size_t)n < sizeof inputs) used += (size_t)n;
    }
    return fail(STATUS_DTYPE, "%s has no kernel on %s for %s giving %s", call->op_name,
                device->name, inputs, dtype_name(call->outputs[0]->dtype));
}

void vulkan_reads(VulkanDispatch *dispatch, const TensorView *view) {
    if (!view) return;
    ASSERT(dispatch->n_reads < VULKAN_READS_MAX);
    dispatch->reads[dispatch->n_reads++] = view->buffer;
}

void vulkan_writes(VulkanDispatch *dispatch, const TensorView *view) {
    ASSERT(dispatch->n_writes < VULKAN_WRITES_MAX);
    dispatch->writes[dispatch->n_writes++] = view->buffer;
}

void vulkan_groups_for(Device *device, VulkanDispatch *dispatch, uint64_t count,
                       uint64_t per_group) {
    vulkan_spread_groups(device, (count + per_group - 1) / per_group, dispatch->groups);
}

Status vulkan_scratch(Device *device, DType dtype, int64_t count, TensorView *out) {
    *out = (TensorView){.dtype = dtype, .rank = 1, .dims = {count}, .strides = {1}};
    BufferLabel label = {.dtype = dtype, .rank = 1, .dims = {count}};
    return buffer_new(device, (size_t)count * dtype_size(dtype), &label, &out->buffer);
}
