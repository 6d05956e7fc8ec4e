// Results are made again by the operations that made them, from what those have read: saved
// tensors, parameters as long as they are what they were, and results that are made again
// themselves. So a chain of cheap operations keeps its ends only; the longer it gets, the more
// making its last result takes, until moving that one takes less time.
#include "tensor/gradient/remake.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/kernel.h"
#include "device/statistics.h"
#include "device/walk.h"

enum { DEPTH_MAX = 8, VISITS_MAX = 64 };

static bool is_forgotten(const Tensor *x) {
    return x && x->view.buffer && x->view.buffer->forgotten;
}

static TapeMade *made_of(const Buffer *buffer) {
    if (!buffer->made_as) return NULL;
    return (TapeMade *)(void *)((char *)buffer->made_as - offsetof(TapeMade, buffer));
}

// --- what it takes -------------------------------------------------------------------------------

// What is computed from its inputs alone, in time that follows from its sizes.
static bool is_simple(const TapeNode *node) {
    if (!node->op) return node->info->again != NULL;
    return !node->op->run || node->op == &op_rows[OP_softmax] ||
           node->op == &op_rows[OP_log_softmax];
}

static double own_seconds(const TapeNode *node, const DeviceSpeed *speed) {
    const TensorView *result = &node->made[0].view;
    double count = 1, read = 0;
    for (int i = 0; i < result->rank; i++) count *= (double)result->dims[i];
    for (int i = 0; i < node->n_inputs; i++) {
        const GradientInput *input = &node->inputs[i];
        if (input->is_tensor)
            read += (double)shape_count(&input->shape) * (double)dtype_size(input->dtype);
    }
    double seconds = (read + count * (double)dtype_size(result->dtype)) / speed->bytes;
    if (node->info != &gradient_matmul) return seconds;
    const Shape *left = &node->inputs[0].shape;
    return seconds + 2 * count * (double)left->dims[left->rank - 1] / speed->flops;
}

typedef struct Search {
    const DeviceSpeed *speed;
    int depth, visits;
} Search;

static double seconds_of_node(const TapeNode *node, Search *search);

static double seconds_of_saved(const Tensor *saved, Search *search) {
    if (!saved->view.buffer || !saved->view.buffer->away) return 0;
    if (saved->view.buffer->forgotten)
        return made_of(saved->view.buffer)
                   ? seconds_of_node(made_of(saved->view.buffer)->node, search)
                   : INFINITY;
    return (double)saved->view.buffer->bytes / search->speed->moved_bytes;
}

// It still is what was recorded.
static bool has_parameter(const TapeNode *leaf) {
    return leaf->parameter && leaf->parameter->node == leaf;
}

// What the producer of an input has made, as long as it is there.
static TapeMade *result_of(const GradientInput *input) {
    TapeMade *made = input->producer->made;
    if (!made) return NULL;
    made += input->output;
    return made->buffer && !made->buffer->forgotten ? made : NULL;
}

static Tensor *shown_result(const TapeMade *made) {
    Shape shape = {.rank = made->view.rank};
    memcpy(shape.dims, made->view.dims, (size_t)shape.rank * sizeof *shape.dims);
    return tensor_from_buffer(buffer_retain(made->buffer), made->view.offset, made->view.dtype,
                              &shape);
}

static double seconds_of_input(const GradientInput *input, Search *search) {
    if (!input->is_tensor) return 0;
    if (input->saved) return seconds_of_saved(input->saved, search);
    const TapeNode *producer = input->producer;
    if (!producer) return INFINITY;
    if (!producer->info) return has_parameter(producer) ? 0 : INFINITY;
    return result_of(input) ? 0 : seconds_of_node(producer, search);
}

// INFINITY where the results cannot be made again.
static double seconds_of_node(const TapeNode *node, Search *search) {
    bool known = node->made && !node->spent && node->changes == runtime_current->tape->changes;
    if (!known || search->depth >= DEPTH_MAX || ++search->visits > VISITS_MAX) return INFINITY;
    search->depth++;
    double seconds = own_seconds(node, search->speed);
    for (int i = 0; i < node->n_inputs && seconds < INFINITY; i++)
        seconds += seconds_of_input(&node->inputs[i], search);
    search->depth--;
    return seconds;
}

// --- forgetting ----------------------------------------------------------------------------------

// The node keeps what its results are made again from. Nothing is forgotten without: others may let
// go of it first.
static void keep_inputs(TapeNode *node) {
    for (int i = 0; i < node->n_inputs; i++) {
        GradientInput *input = &node->inputs[i];
        if (!input->is_tensor || input->saved || !input->producer->info) continue;
        const TapeMade *made = result_of(input);
        if (made) {
            input->saved = shown_result(made);
            buffer_note_backward(made->buffer, true);
        } else {
            keep_inputs(input->producer);
        }
    }
}

static bool may_forget(Buffer *buffer) {
    const TapeMade *made = made_of(buffer);
    if (!made) return false;
    Search search = {.speed = &buffer->device->backend->speed};
    double moving = 2 * (double)buffer->bytes / search.speed->moved_bytes;
    if (seconds_of_node(made->node, &search) >= moving) return false;
    keep_inputs(made->node);
    return true;
}

bool remake_wants(const TapeNode *node, const Tensor *input) {
    return UNLIKELY(device_is_short(input->device)) && !input->node && is_simple(node);
}

void remake_note_results(TapeNode *node, Tensor *const *results, int count) {
    if (LIKELY(!device_is_short(results[0]->device))) return;
    if (!is_simple(node) || !results[0]->view.buffer) return;
    Tape *tape = runtime_current->tape;
    tape->remakes = true;
    pool_set_forgetting(may_forget);
    node->changes = tape->changes;
    node->made = memory_allocate_zeroed((size_t)count, sizeof *node->made);
    for (int i = 0; i < count; i++) {
        const TensorView *view = &results[i]->view;
        node->made[i] = (TapeMade){.node = node, .view = *view};
        node->made[i].view.buffer = NULL; // it may go
        if (node->info->is_view || !view_fills_buffer(view)) continue;
        ASSERT(!view->buffer->import.release); // it was just computed
        node->made[i].buffer = view->buffer;
        buffer_made_as(view->buffer, &node->made[i].buffer);
    }
}

// --- making again --------------------------------------------------------------------------------

static Status make_again(TapeNode *node, Tensor **wanted, int output);

static Status take_saved(Tensor *saved, Tensor **out) {
    if (is_forgotten(saved)) {
        const TapeMade *made = made_of(saved->view.buffer);
        ASSERT(made != NULL); // remake_end_node has seen to it
        TRY(make_again(made->node, NULL, 0));
    }
    *out = saved->view.buffer ? tape_alias(saved) : tensor_retain(saved);
    return STATUS_OK;
}

// An input as it was when the node's operation ran, held.
static Status take_input(const GradientInput *input, Tensor **out) {
    *out = NULL;
    if (!input->is_tensor) return STATUS_OK;
    if (input->saved) return take_saved(input->saved, out);
    ASSERT(input->producer != NULL);
    const TapeMade *made = input->producer->info ? result_of(input) : NULL;
    if (made)
        *out = shown_result(made);
    else if (input->producer->info)
        return make_again(input->producer, out, input->output);
    else
        *out = tape_alias(input->producer->parameter);
    return STATUS_OK;
}

static Status run_again(const TapeNode *node, Tensor *const *inputs, Tensor **outputs) {
    OpCall call = {.op = node->op, .attributes = node->attributes, .n_inputs = node->n_inputs};
    for (int i = 0; i < node->n_inputs && node->op; i++)
        call.inputs[i] = inputs[i] ? op_tensor(inputs[i]) : op_scalar(node->inputs[i].number);
    bool enabled = tape_set_enabled(false);
    Origin caller = origin_current;
    origin_current = node->origin;
    Status status = node->op ? op_apply(&call, outputs) : node->info->again(node, inputs, outputs);
    origin_current = caller;
    tape_set_enabled(enabled);
    return status;
}

// Fills what was forgotten of a node's results, and gives the one that is wanted.
static Status make_again(TapeNode *node, Tensor **wanted, int output) {
    Tensor *inputs[OP_INPUTS_MAX] = {NULL}, *outputs[OP_OUTPUTS_MAX] = {NULL};
    Status status = STATUS_OK;
    ASSERT(node->made && node->n_inputs <= OP_INPUTS_MAX);
    for (int i = 0; i < node->n_inputs && status == STATUS_OK; i++)
        status = take_input(&node->inputs[i], &inputs[i]);
    if (status == STATUS_OK) status = run_again(node, inputs, outputs);
    for (int i = 0; i < node->n_inputs; i++) tensor_release(inputs[i]);
    for (int i = 0; i < node->n_outputs && outputs[i]; i++) {
        Buffer *place = node->made[i].buffer, *memory = NULL;
        if (status == STATUS_OK && wanted && i == output)
            *wanted = tensor_retain(outputs[i]);
        else if (status == STATUS_OK && place && place->forgotten)
            memory = buffer_retain(outputs[i]->view.buffer);
        tensor_release(outputs[i]);
        if (memory) status = buffer_refill(place, memory);
    }
    return status;
}

void remake_end_node(TapeNode *node) {
    for (int i = 0; i < node->n_outputs; i++) {
        Buffer *buffer = node->made[i].buffer;
        if (!buffer) continue;
        bool wanted = buffer->forgotten && !(node->saved_outputs[i] && buffer_is_unique(buffer));
        if (wanted && make_again(node, NULL, 0) != STATUS_OK) error_clear(); // its use will fail
        buffer_made_as(buffer, NULL);
    }
    free(node->made);
    node->made = NULL;
}

Status remake_before_change(void) {
    Tape *tape = runtime_current->tape;
    if (LIKELY(!tape->remakes)) return STATUS_OK;
    for (TapeNode *node = tape->newest; node; node = node->next) {
        bool forgotten = false;
        for (int i = 0; node->made && i < node->n_outputs; i++)
            forgotten |= node->made[i].buffer && node->made[i].buffer->forgotten;
        if (forgotten) TRY(make_again(node, NULL, 0));
    }
    tape->changes++;
    return STATUS_OK;
}

// --- rules ---------------------------------------------------------------------------------------

// A reference that is not the tape's: it is not forgotten meanwhile.
static Status hold(const Tensor *saved, RemakeHeld *held) {
    if (!saved || !saved->view.buffer) return STATUS_OK;
    VECTOR_PUSH(held, buffer_retain(saved->view.buffer));
    const TapeMade *made = made_of(saved->view.buffer);
    return made && saved->view.buffer->forgotten ? make_again(made->node, NULL, 0) : STATUS_OK;
}

Status remake_begin_rule(TapeNode *node, RemakeHeld *held) {
    for (int i = 0; i < node->n_inputs; i++) TRY(hold(node->inputs[i].saved, held));
    for (int i = 0; i < OP_OUTPUTS_MAX; i++) TRY(hold(node->saved_outputs[i], held));
    return STATUS_OK;
}

void remake_end_rule(RemakeHeld *held) {
    for (size_t i = 0; i < held->count; i++) buffer_release(held->items[i]);
    VECTOR_FREE(held);
}

void remake_expect(const TapeNode *node) {
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].saved) buffer_expect(node->inputs[i].saved->view.buffer);
    for (int i = 0; i < OP_OUTPUTS_MAX; i++)
        if (node->saved_outputs[i]) buffer_expect(node->saved_outputs[i]->view.buffer);
}
