// The tape: nodes made while operations run, linked from results to what they came from. Knows
// neither rules nor parameters.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tensor/gradient/remake.h"
#include "tensor/gradient/tape_node.h"

Tape *tape_new(void) {
    Tape *tape = memory_allocate_zeroed(1, sizeof *tape);
    tape->enabled = true;
    tape->next_number = 1;
    return tape;
}

void tape_free(Tape *tape) {
    ASSERT(tape->pauses == 0 && !tape->waiting);
    free(tape);
}

static void update_recording(const Tape *tape) {
    runtime_current->tape_recording = tape->enabled && tape->leaf_count > 0 && tape->pauses == 0;
}

bool tape_set_enabled(bool enabled) {
    Tape *tape = runtime_current->tape;
    bool before = tape->enabled;
    tape->enabled = enabled;
    update_recording(tape);
    return before;
}

// --- nodes

static TapeNode *tape_node_new(const GradientInfo *info, int n_inputs) {
    size_t bytes = sizeof(TapeNode) + (size_t)n_inputs * sizeof(GradientInput);
    ASSERT(n_inputs >= 0);
    TapeNode *node = memory_allocate_zeroed(1, bytes);
    node->counted.refs = 1;
    node->info = info;
    node->origin = origin_current;
    Tape *tape = runtime_current->tape;
    node->number = tape->next_number++;
    node->n_inputs = n_inputs;
    node->next = tape->newest;
    if (tape->newest) tape->newest->previous = node;
    tape->newest = node;
    return node;
}

TapeNode *tape_leaf_new(void) {
    runtime_current->tape->leaf_count++;
    update_recording(runtime_current->tape);
    return tape_node_new(NULL, 0);
}

TapeNode *tape_newest_parameter(void) {
    return runtime_current->tape->newest_parameter;
}

void tape_set_parameter(TapeNode *leaf, Tensor *parameter) {
    Tape *tape = runtime_current->tape;
    ASSERT(leaf == tape->newest && !leaf->parameter);
    leaf->parameter = parameter;
    leaf->older = tape->newest_parameter;
    if (leaf->older) leaf->older->newer = leaf;
    tape->newest_parameter = leaf;
}

static void unlink_parameter(Tape *tape, TapeNode *leaf) {
    ASSERT(leaf->newer ? leaf->newer->older == leaf : tape->newest_parameter == leaf);
    if (leaf->newer)
        leaf->newer->older = leaf->older;
    else
        tape->newest_parameter = leaf->older;
    if (leaf->older) leaf->older->newer = leaf->newer;
    leaf->parameter = NULL;
}

TapeNode *tape_node_retain(TapeNode *node) {
    ASSERT(node->counted.refs > 0);
    node->counted.refs++;
    return node;
}

static void release_saved(Tensor *saved) {
    if (saved && saved->view.buffer) buffer_note_backward(saved->view.buffer, false);
    tensor_release(saved);
}

void tape_node_spend(TapeNode *node) {
    if (UNLIKELY(node->made != NULL)) remake_end_node(node);
    node->spent = true;
    for (int i = 0; i < node->n_inputs; i++) {
        GradientInput *input = &node->inputs[i];
        Tensor *saved = input->saved;
        TapeNode *producer = input->producer;
        input->saved = NULL;
        input->producer = NULL;
        release_saved(saved);
        if (producer) tape_node_release(producer);
    }
    for (int i = 0; i < OP_OUTPUTS_MAX; i++) {
        release_saved(node->saved_outputs[i]);
        node->saved_outputs[i] = NULL;
    }
    if (node->release_kept) node->release_kept(node->kept);
    free(node->kept);
    free(node->attributes);
    node->kept = NULL;
    node->attributes = NULL;
    node->release_kept = NULL;
}

static void unlink_node(Tape *tape, TapeNode *node) {
    ASSERT(node->previous ? node->previous->next == node : tape->newest == node);
    if (node->previous)
        node->previous->next = node->next;
    else
        tape->newest = node->next;
    if (node->next) node->next->previous = node->previous;
}

static void destroy_node(Tape *tape, TapeNode *node) {
    if (!node->info) {
        ASSERT(tape->leaf_count > 0);
        tape->leaf_count--;
        update_recording(tape);
    } else {
        ASSERT(tape->node_count > 0);
        tape->node_count--;
    }
    tape_node_spend(node);
    for (int i = 0; i < OP_OUTPUTS_MAX; i++) tensor_release(node->incoming[i]);
    tensor_release(node->gradient);
    if (node->parameter) unlink_parameter(tape, node);
    unlink_node(tape, node);
    free(node);
}

// A chain of any length goes without recursion: what is let go of meanwhile waits in a list.
void tape_node_release(TapeNode *node) {
    ASSERT(node->counted.refs > 0);
    if (--node->counted.refs > 0) return;
    Tape *tape = runtime_current->tape;
    node->waiting = tape->waiting;
    tape->waiting = node;
    if (tape->busy) return;
    tape->busy = true;
    while (tape->waiting) {
        TapeNode *first = tape->waiting;
        tape->waiting = first->waiting;
        destroy_node(tape, first);
    }
    tape->busy = false;
}

size_t tape_node_count(void) {
    return runtime_current->tape->node_count;
}

TapeMark tape_mark(void) {
    return runtime_current->tape->next_number;
}

void tape_release_since(TapeMark mark) {
    // Spending a node may free others, older ones too, but none that is held here.
    TapeNode *newest = runtime_current->tape->newest;
    TapeNode *node = newest ? tape_node_retain(newest) : NULL;
    while (node && node->number >= mark) {
        if (node->info) tape_node_spend(node);
        TapeNode *older = node->next ? tape_node_retain(node->next) : NULL;
        tape_node_release(node);
        node = older;
    }
    if (node) tape_node_release(node);
}

// --- tensors and their nodes

Tensor *tape_alias(Tensor *x) {
    Tensor *alias = tensor_view_of(x, &x->view);
    alias->origin = x->origin;
    return alias;
}

void tape_attach(Tensor *tensor, TapeNode *node, int output) {
    ASSERT(output >= 0 && output < OP_OUTPUTS_MAX);
    tape_forget(tensor);
    tensor->node = node;
    tensor->node_output = output;
}

void tape_forget(Tensor *tensor) {
    TapeNode *node = tensor->node;
    tensor->node = NULL;
    if (node) tape_node_release(node);
}

void tape_leave(Tensor *tensor) {
    if (tensor->node->parameter == tensor) {
        TapeNode *leaf = tensor->node;
        unlink_parameter(runtime_current->tape, leaf);
        tensor_release(leaf->gradient);
        leaf->gradient = NULL;
    }
    tape_forget(tensor);
}

bool tensor_needs_gradient(const Tensor *x) {
    return x->node != NULL;
}

bool tape_call_needs_gradient(const OpCall *call) {
    for (int i = 0; i < call->n_inputs; i++)
        if (call->inputs[i].tensor && call->inputs[i].tensor->node) return true;
    for (int i = 0; i < call->n_many; i++)
        if (call->many[i].tensor && call->many[i].tensor->node) return true;
    return false;
}

// --- recording

// The attributes that were given, with their strings and lists, in one block.
static OpAttributes *copy_attributes(const OpAttributes *attributes) {
    size_t bytes = sizeof *attributes;
    for (int i = 0; i < ATTRIBUTE_COUNT; i++) {
        const void *field = (const char *)attributes + attribute_table[i].offset;
        if (!(attributes->given >> i & 1u)) continue;
        if (attribute_table[i].kind == ATTRIBUTE_KIND_INTS)
            bytes += ((const IntList *)field)->count * sizeof(int64_t);
        if (attribute_table[i].kind == ATTRIBUTE_KIND_STRING)
            bytes += (strlen(*(const char *const *)field) / 8 + 1) * 8;
    }
    OpAttributes *copy = memory_allocate(bytes);
    *copy = *attributes;
    char *at = (char *)(copy + 1);
    for (int i = 0; i < ATTRIBUTE_COUNT; i++) {
        void *field = (char *)copy + attribute_table[i].offset;
        if (!(attributes->given >> i & 1u)) continue;
        if (attribute_table[i].kind == ATTRIBUTE_KIND_INTS) {
            IntList *list = field;
            if (list->count) memcpy(at, list->items, list->count * sizeof(int64_t));
            list->items = (const int64_t *)(void *)at;
            at += list->count * sizeof(int64_t);
        } else if (attribute_table[i].kind == ATTRIBUTE_KIND_STRING) {
            const char **string = field;
            size_t length = strlen(*string) + 1;
            memcpy(at, *string, length);
            *string = at;
            at += (length + 7) / 8 * 8;
        }
    }
    ASSERT(at == (char *)copy + bytes);
    return copy;
}

static unsigned saves_of(const GradientInfo *info, int input) {
    return info->saves[input < 2 ? input : 2];
}

static bool flows_into(const GradientInfo *info, int input, const Tensor *x) {
    return x && x->node && !(saves_of(info, input) & GIVES_NONE);
}

static void note_input(TapeNode *node, int index, Tensor *x) {
    GradientInput *input = &node->inputs[index];
    input->is_tensor = true;
    input->dtype = tensor_dtype(x);
    input->shape = tensor_shape(x);
    if (flows_into(node->info, index, x)) {
        input->producer = tape_node_retain(x->node);
        ASSERT(x->node->number < node->number);
        input->output = x->node_output;
    }
}

static unsigned wanted_saves(const TapeNode *node) {
    unsigned saves = 0;
    for (int i = 0; i < node->n_inputs; i++)
        if (node->inputs[i].producer) saves |= saves_of(node->info, i);
    return saves;
}

// A literal stays as it is: nobody writes to its buffer.
static Tensor *save(Tensor *x) {
    return x->view.buffer ? tape_alias(x) : tensor_retain(x);
}

// Of what was recorded; other tensors are only read.
static Tensor *save_recorded(Tensor *x) {
    if (x->view.buffer) buffer_note_backward(x->view.buffer, true);
    return save(x);
}

// What the rule will read of the inputs.
static void save_inputs(TapeNode *node, Tensor *const *inputs) {
    unsigned saves = wanted_saves(node);
    for (int i = 0; i < node->n_inputs && 1 << i < SAVE_RESULT; i++)
        if (inputs[i] && (saves >> i & 1u || remake_wants(node, inputs[i])))
            node->inputs[i].saved = inputs[i]->node ? save_recorded(inputs[i]) : save(inputs[i]);
}

static TapeRecord paused(TapeNode *node) {
    Tape *tape = runtime_current->tape;
    tape->node_count += node != NULL;
    tape->pauses++;
    update_recording(tape);
    return (TapeRecord){.node = node, .resume = true};
}

TapeCut tape_last_cut(void) {
    return runtime_current->tape->last_cut;
}

void tape_forget_cut(void) {
    runtime_current->tape->last_cut.info = NULL;
}

TapeRecord tape_begin_call(const GradientInfo *info, const OpCall *call) {
    bool flows = false;
    Tensor *inputs[call->n_inputs + 1];
    for (int i = 0; i < call->n_inputs; i++) {
        inputs[i] = call->inputs[i].tensor;
        flows = flows || flows_into(info, i, inputs[i]);
    }
    if (info->kind == GRADIENT_CONSTANT || !flows) {
        runtime_current->tape->last_cut = (TapeCut){info, origin_current};
        return paused(NULL);
    }
    TapeNode *node = tape_node_new(info, call->n_inputs);
    if (call->n_many == 0) node->op = call->op;
    for (int i = 0; i < call->n_inputs; i++) {
        node->inputs[i].number = call->inputs[i].scalar;
        if (inputs[i]) note_input(node, i, inputs[i]);
    }
    save_inputs(node, inputs);
    if (call->attributes) node->attributes = copy_attributes(call->attributes);
    return paused(node);
}

void tape_record_missing(const OpCall *call, Tensor **output) {
    static const GradientInfo missing[OP_COUNT] = {
#define OP_MAP(id, ...)
#define OP_RUN(id, ...) [OP_##id] = {.name = #id, .kind = GRADIENT_MISSING},
#define OP_OVERLOAD(id, user, ...) [OP_##id] = {.name = #user, .kind = GRADIENT_MISSING},
#include "catalog/ops.def"
    };
    TapeRecord record = tape_begin_call(&missing[call->op - op_rows], call);
    (void)tape_end_node(&record, STATUS_OK, output, 1); // the status goes through
}

TapeRecord tape_begin_inputs(const GradientInfo *info, Tensor *const *inputs, int n_inputs) {
    bool needed = false;
    for (int i = 0; i < n_inputs; i++) needed = needed || flows_into(info, i, inputs[i]);
    if (!needed) return paused(NULL);
    TapeNode *node = tape_node_new(info, n_inputs);
    for (int i = 0; i < n_inputs; i++) {
        node->inputs[i].number.dtype = DTYPE_COUNT;
        if (inputs[i]) note_input(node, i, inputs[i]);
    }
    save_inputs(node, inputs);
    return paused(node);
}

TapeRecord tape_begin_ends(const GradientInfo *info, const TapeEnds *ends) {
    TapeNode *node = tape_node_new(info, (int)ends->count);
    for (size_t i = 0; i < ends->count; i++) {
        node->inputs[i] = ends->items[i];
        tape_node_retain(node->inputs[i].producer);
    }
    return paused(node);
}

void tape_keep_copy(TapeRecord *record, const void *data, size_t bytes, void (*release)(void *)) {
    TapeNode *node = record->node;
    ASSERT(!node->kept);
    node->kept = memory_allocate(bytes);
    memcpy(node->kept, data, bytes);
    node->release_kept = release;
}

Status tape_end_node(TapeRecord *record, Status status, Tensor **outputs, int n_outputs) {
    TapeNode *node = record->node;
    Tape *tape = runtime_current->tape;
    ASSERT(tape->pauses > 0);
    tape->pauses--;
    update_recording(tape);
    if (!node) return status;
    ASSERT(n_outputs > 0 && n_outputs <= OP_OUTPUTS_MAX);
    bool save_result = wanted_saves(node) & SAVE_RESULT;
    for (int i = 0; status == STATUS_OK && i < n_outputs; i++) {
        if (outputs[i]->node || outputs[i]->learnable) { // the input itself
            Tensor *alias = tape_alias(outputs[i]);
            tensor_release(outputs[i]);
            outputs[i] = alias;
        }
        if (save_result) node->saved_outputs[i] = save_recorded(outputs[i]);
        if (dtype_is_float(tensor_dtype(outputs[i])))
            tape_attach(outputs[i], tape_node_retain(node), i);
    }
    node->n_outputs = n_outputs;
    if (status == STATUS_OK) remake_note_results(node, outputs, n_outputs);
    tape_node_release(node);
    return status;
}
