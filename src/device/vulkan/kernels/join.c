// What follows a dispatch that is held and is made by it: of products of few rows the sum with what
// the row was before, or a gate times its other half; of rotated heads their copy in a cache. What
// was held is written as well, unless the result takes its place, so that whoever else reads it
// finds it.
#include <stddef.h>
#include <string.h>

#include "device/vulkan/kernels/kernels.h"

// --- maps ----------------------------------------------------------------------------------------

// Both shaders of products that may be joined have it there.
_Static_assert(offsetof(MatvecConstants, JOIN) == offsetof(MatvecBlocksConstants, JOIN), "JOIN");

// What is asked for: result = op(operands), all float32 and as long as each other, without gaps.
typedef struct JoinCall {
    uint32_t op;
    uint64_t operands[2], result;
    VulkanMemory *memories[2], *result_memory;
    uint64_t count;
} JoinCall;

static bool is_plain(const TensorView *view, uint64_t count) {
    return view && view->dtype == DTYPE_FLOAT32 && (uint64_t)view_count(view) == count &&
           view_is_contiguous(view);
}

static bool describe(const KernelCall *call, JoinCall *out) {
    const KernelOptions *options = &call->options;
    const MapStep *step = &options->steps[0];
    bool known = step->op == MAP_ADD || step->op == MAP_SWIGLU;
    if (options->n_steps != 1 || !known || options->compute != DTYPE_FLOAT32) return false;
    const TensorView *result = call->outputs[0];
    const TensorView *operands[2] = {call->inputs[step->a].view, call->inputs[step->b].view};
    *out = (JoinCall){.op = step->op, .count = (uint64_t)view_count(result)};
    if (!is_plain(result, out->count)) return false;
    out->result = vulkan_address(result);
    out->result_memory = result->buffer->handle;
    for (int i = 0; i < 2; i++) {
        if (!is_plain(operands[i], out->count)) return false;
        out->operands[i] = vulkan_address(operands[i]);
        out->memories[i] = operands[i]->buffer->handle;
    }
    return true;
}

static bool is_product(const VulkanDispatch *dispatch) {
    return dispatch->shader == SHADER_MATVEC || dispatch->shader == SHADER_MATVEC_BLOCKS;
}

static ProductPush push_of(const VulkanHeld *held) {
    ProductPush push;
    memcpy(&push, held->push + sizeof(uint64_t), sizeof push);
    return push;
}

static bool reads(const VulkanDispatch *dispatch, const VulkanMemory *memory) {
    for (int i = 0; i < dispatch->n_reads; i++)
        if (dispatch->reads[i] == memory) return true;
    return false;
}

// Whether memory is that of a product or apart from it.
static bool is_same_or_apart(uint64_t address, const VulkanMemory *memory, uint64_t other,
                             const VulkanMemory *other_memory) {
    return memory != other_memory || address == other;
}

// The last one that is held is operand `k`; the other one is a number to go with each of its own.
static bool can_add(const VulkanHeld *held, const JoinCall *join, int k) {
    const VulkanDispatch *dispatch = &held->dispatch;
    ProductPush push = push_of(held);
    const VulkanMemory *out = dispatch->writes[0];
    return is_product(dispatch) && join->operands[k] == push.out_address &&
           join->memories[k] == out && join->count == dispatch->held_results &&
           join->memories[1 - k] != out &&
           is_same_or_apart(join->result, join->result_memory, push.out_address, out) &&
           is_same_or_apart(join->result, join->result_memory, join->operands[1 - k],
                            join->memories[1 - k]) &&
           !reads(dispatch, join->result_memory);
}

static int join_sum(const VulkanHeld *held, int count, const JoinCall *join, VulkanHeld *out) {
    const VulkanHeld *last = &held[count - 1];
    int k = can_add(last, join, 0) ? 0 : 1;
    if (k == 1 && !can_add(last, join, 1)) return 0;
    *out = *last;
    ProductPush push = push_of(last);
    push.adjacent_address = join->operands[1 - k];
    push.result_address = join->result;
    memcpy(out->push + sizeof(uint64_t), &push, sizeof push);
    VulkanDispatch *dispatch = &out->dispatch;
    dispatch->constants.matvec.JOIN = join->op;
    dispatch->reads[dispatch->n_reads++] = join->memories[1 - k];
    dispatch->writes[dispatch->n_writes++] = join->result_memory;
    return 1;
}

// Products of one row, or the same few, by matrices that differ in their numbers alone.
static bool are_alike(const VulkanHeld *a, const VulkanHeld *b) {
    ProductPush first = push_of(a), second = push_of(b);
    second.b_address = first.b_address;
    second.out_address = first.out_address;
    const VulkanDispatch *x = &a->dispatch, *y = &b->dispatch;
    return x->shader == y->shader && x->n_constants == y->n_constants &&
           memcmp(&x->constants, &y->constants, sizeof x->constants) == 0 &&
           memcmp(&first, &second, sizeof first) == 0;
}

static int join_pair(const VulkanHeld *held, int count, const JoinCall *join, VulkanHeld *out) {
    if (count < 2 || held[0].dispatch.shader != SHADER_MATVEC || !are_alike(&held[0], &held[1]))
        return 0;
    uint32_t each = held[0].dispatch.constants.matvec.EACH;
    if (each < 2) return 0;
    ProductPush push = push_of(&held[0]), other = push_of(&held[1]);
    const VulkanMemory *outs[2] = {held[0].dispatch.writes[0], held[1].dispatch.writes[0]};
    if (join->operands[0] != push.out_address || join->operands[1] != other.out_address ||
        join->memories[0] != outs[0] || join->memories[1] != outs[1] ||
        join->count != held[0].dispatch.held_results)
        return 0;
    for (int i = 0; i < 2; i++)
        if (!is_same_or_apart(join->result, join->result_memory, join->operands[i], outs[i]) ||
            reads(&held[i].dispatch, join->result_memory))
            return 0;
    *out = held[0];
    push.other_b = other.b_address;
    push.adjacent_address = other.out_address;
    push.result_address = join->result;
    memcpy(out->push + sizeof(uint64_t), &push, sizeof push);
    VulkanDispatch *dispatch = &out->dispatch;
    dispatch->constants.matvec.JOIN = join->op;
    uint32_t columns = each / 2 * dispatch->constants.matvec.TEAMS;
    dispatch->groups[0] = (push.n + columns - 1) / columns;
    dispatch->cost *= 2;
    dispatch->reads[dispatch->n_reads++] = held[1].dispatch.reads[1];
    dispatch->writes[dispatch->n_writes++] = held[1].dispatch.writes[0];
    dispatch->writes[dispatch->n_writes++] = join->result_memory;
    return 2;
}

static int join_held(const VulkanHeld *held, int count, const void *context, VulkanHeld *out) {
    const JoinCall *join = context;
    return join->op == MAP_ADD ? join_sum(held, count, join, out)
                               : join_pair(held, count, join, out);
}

bool vulkan_join_map(Device *device, const KernelCall *call, Status *status) {
    JoinCall join;
    return describe(call, &join) && vulkan_join(device, join_held, &join, status);
}

// --- copies --------------------------------------------------------------------------------------

typedef struct CopyCall {
    const TensorView *out, *in;
} CopyCall;

// Rows of heads, which a cache has one head after the other, or numbers without gaps.
static bool describe_rows(const TensorView *out, RopePush *push) {
    int64_t count = view_count(out);
    if (count > UINT32_MAX) return false;
    push->copy_address = vulkan_address(out);
    push->copy_heads = 1;
    push->copy_width = (uint32_t)count;
    if (view_is_contiguous(out)) return true;
    if (out->rank != 3 || (out->strides[2] != 1 && out->dims[2] != 1)) return false;
    push->copy_row_stride = out->strides[0];
    push->copy_head_stride = out->strides[1];
    push->copy_heads = (uint32_t)out->dims[1];
    push->copy_width = (uint32_t)out->dims[2];
    return true;
}

static int join_rope(const VulkanHeld *held, int count, const void *context, VulkanHeld *out) {
    const CopyCall *copy = context;
    const VulkanHeld *last = &held[count - 1];
    const VulkanDispatch *made = &last->dispatch;
    if (made->shader != SHADER_ROPE_F32 && made->shader != SHADER_ROPE_F64) return 0;
    RopePush push;
    memcpy(&push, last->push + sizeof(uint64_t), sizeof push);
    if (push.out_address != vulkan_address(copy->in) ||
        made->writes[0] != copy->in->buffer->handle ||
        made->held_results != (uint64_t)view_count(copy->in) ||
        reads(made, copy->out->buffer->handle) || !describe_rows(copy->out, &push))
        return 0;
    *out = *last;
    memcpy(out->push + sizeof(uint64_t), &push, sizeof push);
    VulkanDispatch *dispatch = &out->dispatch;
    dispatch->constants.rope.TWICE = true;
    dispatch->writes[dispatch->n_writes++] = copy->out->buffer->handle;
    return 1;
}

bool vulkan_join_copy(Device *device, const TensorView *out, const TensorView *in, Status *status) {
    const CopyCall copy = {out, in};
    return vulkan_join(device, join_rope, &copy, status);
}
