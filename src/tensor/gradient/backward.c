// Backward: the nodes that a loss depends on, from the last to the first, each rule applied once
// all gradients of its results have arrived.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/source.h"
#include "tensor/gradient/backward.h"
#include "tensor/gradient/record.h"
#include "tensor/gradient/remake.h"
#include "tensor/gradient/tape_node.h"
#include "tensor/parameter.h"
#include "tensor/state.h"

// What an outer walk, whose rule has started this one, knows of a node that both come to.
typedef struct OuterState {
    TapeNode *node;
    uint64_t walk;
    bool wanted;
    Tensor *incoming[OP_OUTPUTS_MAX];
} OuterState;

typedef struct Walk {
    TapeNode **nodes; // retained; by falling place once collected
    size_t count, capacity;
    uint64_t number;
    const TapeEnd *targets; // where the walk ends; NULL: at parameters
    size_t n_targets;
    bool keep; // the tape stays, and gradients of gradients are recorded
    VECTOR(OuterState) outer;
} Walk;

static void set_aside(Walk *walk, TapeNode *node) {
    OuterState state = {.node = node, .walk = node->walk, .wanted = node->wanted};
    ASSERT(node->walks > 0);
    memcpy(state.incoming, node->incoming, sizeof state.incoming);
    memset(node->incoming, 0, sizeof node->incoming);
    VECTOR_PUSH(&walk->outer, state);
}

static void put_back(const OuterState *state) {
    ASSERT(state->node != NULL);
    state->node->walk = state->walk;
    state->node->wanted = state->wanted;
    memcpy(state->node->incoming, state->incoming, sizeof state->incoming);
}

static void push_node(Walk *walk, TapeNode *node) {
    if (node->walk == walk->number) return;
    ASSERT(node->walks >= 0);
    if (node->walks++ > 0) set_aside(walk, node);
    node->walk = walk->number;
    node->wanted = false;
    node->place = 2 * node->number + 1;
    if (walk->count == walk->capacity) {
        walk->capacity = walk->capacity ? walk->capacity * 2 : 64;
        walk->nodes = memory_resize(walk->nodes, walk->capacity * sizeof *walk->nodes);
    }
    walk->nodes[walk->count++] = tape_node_retain(node);
}

static int by_falling_place(const void *x, const void *y) {
    const TapeNode *left = *(TapeNode *const *)x, *right = *(TapeNode *const *)y;
    if (left->place != right->place) return left->place < right->place ? 1 : -1;
    return left->number < right->number ? 1 : (left->number > right->number ? -1 : 0);
}

static Status fail_spent(void) {
    (void)fail(STATUS_GRADIENT, "the tape of this tensor has been used up by an earlier backward");
    return fail_help(
        "compute the loss and what it is made of anew before each backward (what stands "
        "before a learn block is computed once), or add the losses and call it once");
}

static bool is_target(const Walk *walk, const TapeNode *node) {
    if (!walk->targets) return !node->info && node->parameter;
    for (size_t i = 0; i < walk->n_targets; i++)
        if (walk->targets[i].node == node) return true;
    return false;
}

static Status fail_missing(const TapeNode *node) {
    const char *name = node->info->name;
    SourcePlace place = source_find(node->origin.at);
    if (place.file)
        (void)fail(STATUS_GRADIENT, "%s has no gradient, but the loss depends on it (%s:%d)", name,
                   place.file->name, place.line);
    else
        (void)fail(STATUS_GRADIENT, "%s has no gradient, but the loss depends on it", name);
    return fail_help("detach(x) keeps gradients from flowing through it");
}

static uint64_t next_walk(void) {
    return ++runtime_current->tape->walks;
}

// A leaf is done with as soon as all that use it are.
static void place_leaves(const Walk *walk) {
    for (size_t i = 0; i < walk->count; i++)
        if (!walk->nodes[i]->info) walk->nodes[i]->place = UINT64_MAX;
    for (size_t i = 0; i < walk->count; i++) {
        const TapeNode *node = walk->nodes[i];
        for (int j = 0; j < node->n_inputs; j++) {
            TapeNode *leaf = node->inputs[j].producer;
            bool later = leaf && !leaf->info && leaf->walk == walk->number;
            if (later && 2 * node->number < leaf->place) leaf->place = 2 * node->number;
        }
    }
}

// Everything that the loss depends on, and what of it leads to a target.
static Status collect(Walk *walk, Tensor *const *results, int count) {
    ASSERT(count > 0);
    walk->number = next_walk();
    for (int i = 0; i < count; i++)
        if (results[i]->node) push_node(walk, results[i]->node);
    for (size_t i = 0; i < walk->count; i++) {
        TapeNode *node = walk->nodes[i];
        if (node->spent && node->info && !walk->targets) return fail_spent();
        if (walk->targets && is_target(walk, node)) continue;
        for (int j = 0; j < node->n_inputs; j++)
            if (node->inputs[j].producer) push_node(walk, node->inputs[j].producer);
    }
    place_leaves(walk);
    if (walk->count > 1) qsort(walk->nodes, walk->count, sizeof(TapeNode *), by_falling_place);
    for (size_t i = walk->count; i-- > 0;) {
        TapeNode *node = walk->nodes[i];
        bool leads = false, ends = is_target(walk, node);
        for (int j = 0; j < node->n_inputs && !ends; j++)
            leads = leads || (node->inputs[j].producer && node->inputs[j].producer->wanted);
        if (leads && node->info->kind == GRADIENT_MISSING) return fail_missing(node);
        node->wanted = leads || ends;
    }
    return STATUS_OK;
}

// Whether the gradients themselves depend on something that learns.
static bool needs_second_order(const Walk *walk) {
    for (size_t i = 0; i < walk->count; i++) {
        const TapeNode *node = walk->nodes[i];
        bool target = is_target(walk, node);
        if (node->info ? target && node->n_inputs > 0 : !target) return true;
    }
    return false;
}

// Adds a gradient (taken) to those that have arrived.
static Status arrive(Tensor **slot, Tensor *gradient) {
    ASSERT(gradient != NULL);
    if (!*slot) {
        *slot = gradient;
        return STATUS_OK;
    }
    ASSERT(tensor_count(*slot) == tensor_count(gradient));
    Tensor *sum = NULL;
    Status status = op_binary(OP_add, op_donated(*slot), op_tensor(gradient), &sum);
    tensor_release(gradient);
    TRY(status);
    tensor_release(*slot);
    *slot = sum;
    return STATUS_OK;
}

static void drop_incoming(TapeNode *node) {
    for (int i = 0; i < OP_OUTPUTS_MAX; i++) {
        tensor_release(node->incoming[i]);
        node->incoming[i] = NULL;
    }
}

void tape_set_watch(void (*watch)(const char *op_name, Tensor *const *gradients, int count)) {
    tensors_state()->gradient_watch = watch;
}

void tape_set_arrival(const TapeArrival *arrival) {
    tensors_state()->arrival = arrival;
}

static void tell_watch(const TapeNode *node, Tensor *const *gradients, int count) {
    const Tensors *tensors = tensors_state();
    if (UNLIKELY(tensors->gradient_watch != NULL))
        tensors->gradient_watch(node->info->name, gradients, count);
}

static Status run_rule(TapeNode *node) {
    ASSERT(!node->spent && node->info);
    Tensor *few[8] = {NULL}, **results = few;
    if (node->n_inputs > 8)
        results = memory_allocate_zeroed((size_t)node->n_inputs, sizeof *results);
    Origin caller = origin_current;
    origin_current = node->origin;
    RemakeHeld held = {0};
    Status status = STATUS_OK;
    if (UNLIKELY(runtime_current->tape->remakes)) status = remake_begin_rule(node, &held);
    if (LIKELY(status == STATUS_OK)) status = gradient_run(node, results);
    if (status == STATUS_OK) tell_watch(node, results, node->n_inputs);
    if (UNLIKELY(held.count > 0)) remake_end_rule(&held);
    origin_current = caller;
    for (int i = 0; i < node->n_inputs; i++) {
        if (!results[i]) continue;
        GradientInput *input = &node->inputs[i];
        if (status == STATUS_OK && input->producer && input->producer->wanted)
            status = arrive(&input->producer->incoming[input->output], results[i]);
        else
            tensor_release(results[i]);
    }
    if (results != few) free(results);
    return status;
}

static Status add_part(TapeNode *node) {
    ASSERT(node->n_inputs > 0);
    if (!node->inputs[0].producer->wanted) return STATUS_OK;
    Origin caller = origin_current;
    origin_current = node->origin;
    Tensor *piece = node->incoming[0];
    Status status = gradient_add_part(node, piece);
    if (status == STATUS_OK) tell_watch(node, &piece, 1);
    origin_current = caller;
    return status;
}

// The gradient of a parameter lies in memory as the parameter does.
static Status accumulate(TapeNode *leaf) {
    ASSERT(leaf->incoming[0] != NULL);
    Tensor *gradient = NULL;
    TRY(tensor_contiguous(leaf->incoming[0], &gradient));
    ASSERT(!leaf->parameter || tensor_count(gradient) == tensor_count(leaf->parameter));
    leaf->reached = true;
    leaf->arrived = leaf->walk;
    TRY(arrive(&leaf->gradient, gradient));
    const TapeArrival *arrival = tensors_state()->arrival;
    return arrival && leaf->parameter ? arrival->tell(arrival->context, leaf->parameter)
                                      : STATUS_OK;
}

static Status visit(Walk *walk, TapeNode *node) {
    if (walk->targets && is_target(walk, node)) return STATUS_OK;
    bool arrived = false, leads = false;
    for (int i = 0; i < OP_OUTPUTS_MAX; i++) arrived = arrived || node->incoming[i];
    for (int i = 0; i < node->n_inputs; i++)
        leads = leads || (node->inputs[i].producer && node->inputs[i].producer->wanted);
    Status status = STATUS_OK;
    if (arrived && leads)
        status = node->info->kind == GRADIENT_PART ? add_part(node) : run_rule(node);
    if (!walk->targets && arrived && !node->info) status = accumulate(node);
    if (!walk->keep && node->info && node->walks == 1) tape_node_spend(node);
    return status;
}

static Status seed(Tensor *result, Tensor *up) {
    ASSERT(result != NULL);
    Tensor *start = up ? tensor_retain(up) : NULL;
    if (!result->node) {
        tensor_release(start);
        return STATUS_OK;
    }
    if (!start) TRY(op_unary(OP_ones_like, result, &start));
    return arrive(&result->node->incoming[result->node_output], start);
}

// What is on a disk begins to come back so many rules ahead.
enum { AHEAD = 4 };

static Status run(Walk *walk) {
    for (size_t i = 0; i < walk->count; i++) {
        TapeNode *node = walk->nodes[i];
        if (UNLIKELY(runtime_current->tape->remakes) && i + AHEAD < walk->count)
            remake_expect(walk->nodes[i + AHEAD]);
        TRY(visit(walk, node));
        if (!walk->targets || !is_target(walk, node)) drop_incoming(node);
    }
    return STATUS_OK;
}

static void finish(Walk *walk) {
    for (size_t i = 0; i < walk->count; i++) {
        ASSERT(walk->nodes[i]->walks > 0);
        drop_incoming(walk->nodes[i]);
        walk->nodes[i]->walks--;
    }
    for (size_t i = 0; i < walk->outer.count; i++) put_back(&walk->outer.items[i]);
    VECTOR_FREE(&walk->outer);
    for (size_t i = 0; i < walk->count; i++) tape_node_release(walk->nodes[i]);
    free(walk->nodes);
}

static Status check_loss(const Tensor *loss) {
    if (tensor_count(loss) == 1 && dtype_is_float(tensor_dtype(loss))) return STATUS_OK;
    (void)fail(STATUS_SHAPE, "backward needs a loss of one floating-point number, but this is %s",
               tensor_type_name(loss).text);
    return fail_help("sum(x) or mean(x) makes one number of many");
}

static int by_rising_number(const void *x, const void *y) {
    uint64_t left = tape_parameter_number(*(Tensor *const *)x);
    uint64_t right = tape_parameter_number(*(Tensor *const *)y);
    return left < right ? -1 : left > right;
}

// The parameters that gradients reached, in order of declaration.
static void list_reached(const Walk *walk, TensorArray *reached) {
    reached->items = memory_allocate((walk->count + 1) * sizeof *reached->items);
    reached->count = 0;
    for (size_t i = walk->count; i-- > 0;) {
        const TapeNode *node = walk->nodes[i];
        if (!node->info && node->parameter && node->arrived == walk->number)
            reached->items[reached->count++] = tensor_retain(node->parameter);
    }
    if (reached->count > 1)
        qsort(reached->items, reached->count, sizeof *reached->items, by_rising_number);
}

// Names what the gradient was lost in, where that is known.
static Status fail_independent(void) {
    TapeCut cut = tape_last_cut();
    tape_forget_cut();
    SourcePlace place = cut.info ? source_find(cut.origin.at) : (SourcePlace){0};
    if (place.file) {
        (void)fail(STATUS_GRADIENT,
                   "the loss does not depend on anything learnable: no gradient flows through %s "
                   "(%s:%d)",
                   cut.info->name, place.file->name, place.line);
        return fail_help("its result moves in jumps or not at all; the loss must be made of the "
                         "parameters by other operations");
    }
    (void)fail(STATUS_GRADIENT, "the loss does not depend on anything learnable");
    return fail_help("tensor w: ... learnable, or learnable(x), declares what is trained");
}

Status tape_backward(Tensor *loss, TensorArray *reached) {
    TRY(check_loss(loss));
    if (!loss->node) return fail_independent();
    Walk walk = {0};
    bool enabled = tape_set_enabled(false);
    Status status = collect(&walk, &loss, 1);
    if (status == STATUS_OK && !loss->node->wanted) status = fail_independent();
    if (status == STATUS_OK) status = seed(loss, NULL);
    if (status == STATUS_OK) status = run(&walk);
    if (status == STATUS_OK && reached) list_reached(&walk, reached);
    tape_forget_cut();
    finish(&walk);
    tape_set_enabled(enabled);
    return status;
}

// Read as plain numbers, from which no gradient comes back.
void tape_note_read(const char *name, const Tensor *x) {
    if (!tape_follows(x)) return;
    runtime_current->tape->last_read = (TapeRead){name, origin_current};
}

void tape_forget_reads(void) {
    runtime_current->tape->last_read.name = NULL;
}

static Status fail_read(void) {
    const TapeRead *read = &runtime_current->tape->last_read;
    SourcePlace place = source_find(read->origin.at);
    (void)fail(STATUS_GRADIENT, "the gradient is lost in %s (%s:%d), which gives plain numbers",
               read->name, place.file ? place.file->name : "", place.line);
    return fail_help("compute with the tensor itself; detach(x) says that no gradient is wanted");
}

static Tensor *arrived_at(const Walk *walk, const TapeEnd *end) {
    bool seen = end->node && end->node->walk == walk->number;
    return seen ? end->node->incoming[end->output] : NULL;
}

static bool reaches_a_target(const Walk *walk) {
    for (size_t i = 0; i < walk->n_targets; i++)
        if (arrived_at(walk, &walk->targets[i])) return true;
    return false;
}

static Status take_gradients(const Walk *walk, Tensor *const *inputs, Tensor **gradients) {
    for (size_t i = 0; i < walk->n_targets; i++) {
        Tensor *arrived = arrived_at(walk, &walk->targets[i]);
        if (arrived)
            gradients[i] = tensor_retain(arrived);
        else
            TRY(op_unary(OP_zeros_like, inputs[i], &gradients[i]));
    }
    return STATUS_OK;
}

Status tape_gradients_of(Tensor *loss, Tensor *const *inputs, size_t count, Tensor **gradients) {
    TRY(check_loss(loss));
    return tape_gradients_along(loss, NULL, inputs, count, gradients);
}

static void release_gradients(Tensor **gradients, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tensor_release(gradients[i]);
        gradients[i] = NULL;
    }
}

Status tape_gradients_along(Tensor *loss, Tensor *up, Tensor *const *inputs, size_t count,
                            Tensor **gradients) {
    ASSERT(count == 0 || inputs != NULL);
    TapeEnd *ends = memory_allocate((count + 1) * sizeof *ends);
    for (size_t i = 0; i < count; i++) {
        gradients[i] = NULL;
        ends[i] = (TapeEnd){inputs[i]->node, inputs[i]->node_output};
    }
    Walk walk = {.targets = ends, .n_targets = count};
    bool enabled = tape_set_enabled(false);
    Status status = collect(&walk, &loss, 1);
    walk.keep = up || (enabled && needs_second_order(&walk));
    tape_set_enabled(walk.keep);
    if (status == STATUS_OK) status = seed(loss, up);
    if (status == STATUS_OK) status = run(&walk);
    if (status == STATUS_OK && runtime_current->tape->last_read.name && !reaches_a_target(&walk))
        status = fail_read();
    if (status == STATUS_OK) status = take_gradients(&walk, inputs, gradients);
    finish(&walk);
    free(ends);
    tape_forget_cut();
    tape_set_enabled(enabled);
    if (status != STATUS_OK) release_gradients(gradients, count);
    return status;
}

Status tape_gradients_within(const TapeSection *section, Tensor **gradients) {
    Walk walk = {
        .targets = section->ends, .n_targets = section->n_ends, .keep = tape_is_recording()};
    bool enabled = tape_set_enabled(false);
    Status status = collect(&walk, section->results, section->n_results);
    tape_set_enabled(walk.keep);
    for (int i = 0; i < section->n_results && status == STATUS_OK; i++)
        if (section->up[i]) status = seed(section->results[i], section->up[i]);
    if (status == STATUS_OK) status = run(&walk);
    for (size_t i = 0; i < section->n_ends && status == STATUS_OK; i++) {
        Tensor *arrived = arrived_at(&walk, &section->ends[i]);
        gradients[i] = arrived ? tensor_retain(arrived) : NULL;
    }
    finish(&walk);
    tape_set_enabled(enabled);
    return status;
}

static void add_end(TapeEnds *ends, TapeNode *node, int output, const Tensor *like,
                    const GradientInput *input) {
    for (size_t i = 0; i < ends->count; i++)
        if (ends->items[i].producer == node && ends->items[i].output == output) return;
    GradientInput end = {.producer = node, .output = output, .is_tensor = true};
    end.dtype = like ? tensor_dtype(like) : input->dtype;
    end.shape = like ? tensor_shape(like) : input->shape;
    VECTOR_PUSH(ends, end);
}

void tape_find_ends(Tensor *const *results, int count, TapeMark mark, TapeEnds *ends) {
    ASSERT(count > 0);
    Walk walk = {.number = next_walk()};
    for (int i = 0; i < count; i++) {
        TapeNode *node = results[i]->node;
        if (node && node->number >= mark)
            push_node(&walk, node);
        else if (node)
            add_end(ends, node, results[i]->node_output, results[i], NULL);
    }
    for (size_t i = 0; i < walk.count; i++) {
        for (int j = 0; j < walk.nodes[i]->n_inputs; j++) {
            const GradientInput *input = &walk.nodes[i]->inputs[j];
            if (input->producer && input->producer->number >= mark)
                push_node(&walk, input->producer);
            else if (input->producer)
                add_end(ends, input->producer, input->output, NULL, input);
        }
    }
    finish(&walk);
}
