// The terms that gradient rules are written with.
#include "tensor/gradient/gradient.h"

#include <string.h>

#include "device/walk.h"
#include "device/work.h"
#include "tensor/dtype.h"
#include "tensor/gradient/tape_node.h"
#include "tensor/map.h"

Status gradient_run(TapeNode *node, Tensor **results) {
    ASSERT(node->info->rule != NULL && !node->spent);
    Gradient g;
    g.status = STATUS_OK;
    g.node = node;
    g.info = node->info;
    g.attributes = node->attributes;
    g.kept = node->kept;
    g.incoming = node->incoming;
    g.inputs = node->inputs;
    g.n_inputs = node->n_inputs;
    g.n_terms = 1; // slot 0 is not a term
    g.results = results;
    Status status = node->info->rule(&g);
    if (g.status != STATUS_OK) status = g.status;
    for (int i = 1; i < g.n_terms; i++) tensor_release(g.terms[i].tensor);
    for (int i = 0; status != STATUS_OK && i < node->n_inputs; i++) {
        tensor_release(results[i]);
        results[i] = NULL;
    }
    return status;
}

void gradient_fail(Gradient *g, Status status) {
    if (g->status == STATUS_OK) g->status = status;
}

// --- terms

static Term new_term(Gradient *g, TermKind kind) {
    if (g->status != STATUS_OK) return (Term){0};
    ASSERT(g->n_terms < GRADIENT_TERMS_MAX);
    TermSlot *slot = &g->terms[g->n_terms];
    slot->kind = kind;
    slot->tensor = NULL;
    slot->op = OP_COUNT;
    return (Term){(int16_t)g->n_terms++};
}

static TermSlot *slot_of(Gradient *g, Term term) {
    ASSERT(term.slot > 0 && term.slot < g->n_terms);
    return &g->terms[term.slot];
}

// Equal numbers, and maps of equal operands, are one term: rules may write a subexpression twice.
static Term scalar_term(Gradient *g, Scalar number) {
    ASSERT(g->n_terms <= GRADIENT_TERMS_MAX);
    for (int i = 1; i < g->n_terms; i++) {
        const TermSlot *slot = &g->terms[i];
        if (slot->kind == TERM_NUMBER && slot->number.dtype == number.dtype &&
            slot->number.as.i == number.as.i)
            return (Term){(int16_t)i};
    }
    Term term = new_term(g, TERM_NUMBER);
    if (term.slot) slot_of(g, term)->number = number;
    return term;
}

Term term_number(Gradient *g, double number) {
    return scalar_term(g, (Scalar){.dtype = DTYPE_FLOAT64, .as.f = number});
}

Term term_own(Gradient *g, Tensor *tensor) {
    Term term = new_term(g, TERM_TENSOR);
    if (term.slot)
        slot_of(g, term)->tensor = tensor;
    else
        tensor_release(tensor);
    return term;
}

Term term_take(Gradient *g, Status status, Tensor *const *tensor) {
    if (status == STATUS_OK) return term_own(g, *tensor);
    gradient_fail(g, status);
    return (Term){0};
}

// A saved tensor; where gradients of gradients are recorded it is again what `producer` made.
static Term saved_term(Gradient *g, Tensor *saved, TapeNode *producer, int output) {
    ASSERT(saved != NULL); // a rule reads only what its row saves
    if (!producer || !tape_is_recording()) return term_own(g, tensor_retain(saved));
    Tensor *alias = tape_alias(saved);
    tape_attach(alias, tape_node_retain(producer), output);
    return term_own(g, alias);
}

bool gradient_wants(const Gradient *g, int input) {
    return input < g->n_inputs && g->inputs[input].producer;
}

Term gradient_up(Gradient *g) {
    ASSERT(g->incoming[0] != NULL);
    return term_own(g, tensor_retain(g->incoming[0]));
}

Term gradient_input(Gradient *g, int input) {
    ASSERT(input >= 0 && input < g->n_inputs);
    const GradientInput *in = &g->inputs[input];
    if (!in->is_tensor) return scalar_term(g, in->number);
    return saved_term(g, in->saved, in->producer, in->output);
}

Term gradient_saved_output(Gradient *g, int output) {
    ASSERT(output >= 0 && output < g->node->n_outputs && g->node->saved_outputs[output]);
    Tensor *saved = g->node->saved_outputs[output];
    bool is_float = dtype_is_float(tensor_dtype(saved));
    return saved_term(g, saved, is_float ? g->node : NULL, output);
}

Term gradient_result(Gradient *g) {
    return gradient_saved_output(g, 0);
}

Shape gradient_shape(const Gradient *g, int input) {
    ASSERT(input >= 0 && input < g->n_inputs);
    return g->inputs[input].shape;
}

// --- maps

static OpInput operand(Gradient *g, Term term) {
    if (slot_of(g, term)->kind == TERM_NUMBER) return op_scalar(slot_of(g, term)->number);
    return op_tensor(term_tensor(g, term));
}

// One operation by itself: where it is recorded, or the dtypes differ.
static Status apply_single(Gradient *g, TermSlot *slot) {
    ASSERT(slot->kind == TERM_MAP);
    OpCall call = {.op = &op_rows[slot->op]};
    for (int i = 0; i < 3 && slot->operands[i].slot; i++)
        call.inputs[call.n_inputs++] = operand(g, slot->operands[i]);
    if (g->status != STATUS_OK) return g->status;
    Tensor *result;
    TRY(op_apply(&call, &result));
    slot->kind = TERM_TENSOR;
    slot->tensor = result;
    return STATUS_OK;
}

// Plain numbers among themselves stay exact, on the host.
static bool apply_numbers(Gradient *g, TermSlot *slot) {
    ASSERT(slot->kind == TERM_MAP);
    OpCall call = {.op = &op_rows[slot->op]};
    bool unknown = false;
    for (int i = 0; i < 3 && slot->operands[i].slot; i++) {
        const TermSlot *operand_slot = slot_of(g, slot->operands[i]);
        if (operand_slot->kind != TERM_NUMBER) return false;
        unknown |= operand_slot->number.unknown;
        call.inputs[call.n_inputs++] = op_scalar(operand_slot->number);
    }
    gradient_fail(g, op_apply_scalars(&call, &slot->number));
    slot->number.unknown = unknown;
    slot->kind = TERM_NUMBER;
    return true;
}

static bool is_map_of(const TermSlot *slot, OpId op, Term x, Term y, Term z) {
    return slot->op == op && slot->operands[0].slot == x.slot && slot->operands[1].slot == y.slot &&
           slot->operands[2].slot == z.slot;
}

Term term_map(Gradient *g, OpId op, Term x, Term y, Term z) {
    for (int i = 1; i < g->n_terms; i++)
        if (is_map_of(&g->terms[i], op, x, y, z)) return (Term){(int16_t)i};
    Term term = new_term(g, TERM_MAP);
    if (!term.slot) return term;
    TermSlot *slot = slot_of(g, term);
    slot->op = op;
    slot->operands[0] = x;
    slot->operands[1] = y;
    slot->operands[2] = z;
    if (!apply_numbers(g, slot) && tape_is_recording()) gradient_fail(g, apply_single(g, slot));
    return term;
}

bool term_is_number(const Gradient *g, Term term) {
    return g->terms[term.slot].kind == TERM_NUMBER;
}

bool term_has_steps(const Gradient *g, Term term) {
    const TermSlot *slot = &g->terms[term.slot];
    if (!term.slot || slot->kind != TERM_MAP) return false;
    for (int i = 0; i < 3 && slot->operands[i].slot; i++)
        if (g->terms[slot->operands[i].slot].kind == TERM_MAP) return true;
    return false;
}

// A tree of maps as one program. Registers of steps are numbered from STEP_BASE until the number of
// operands is known.
enum { STEP_BASE = 64 };
typedef struct MapProgram {
    int n_operands, n_steps, n_known;
    Term operands[KERNEL_INPUTS_MAX];
    MapStep steps[MAP_STEPS_MAX];
    int16_t known[MAP_STEPS_MAX]; // the slot that each step computes
    DType dtype;                  // of the floating operands; DTYPE_COUNT: none yet
    Shape shape;
    Device *device;
} MapProgram;

static int add_operand(MapProgram *program, Term term) {
    ASSERT(program->n_operands <= KERNEL_INPUTS_MAX);
    for (int i = 0; i < program->n_operands; i++)
        if (program->operands[i].slot == term.slot) return i;
    if (program->n_operands == KERNEL_INPUTS_MAX) return -1;
    program->operands[program->n_operands] = term;
    return program->n_operands++;
}

static int emit(Gradient *g, MapProgram *program, Term term) {
    TermSlot *slot = slot_of(g, term);
    if (slot->kind != TERM_MAP) return add_operand(program, term);
    for (int i = 0; i < program->n_steps; i++)
        if (program->known[i] == term.slot) return STEP_BASE + i;
    int registers[3] = {0, 0, 0};
    for (int i = 0; i < 3 && slot->operands[i].slot; i++) {
        registers[i] = emit(g, program, slot->operands[i]);
        if (registers[i] < 0) return -1;
    }
    if (program->n_steps == MAP_STEPS_MAX) return -1;
    program->known[program->n_steps] = term.slot;
    program->steps[program->n_steps] =
        (MapStep){(uint16_t)op_rows[slot->op].map, (uint8_t)registers[0], (uint8_t)registers[1],
                  (uint8_t)registers[2]};
    return STEP_BASE + program->n_steps++;
}

static bool broadcasts(Shape *shape, const TensorView *view) {
    Shape result = {.rank = shape->rank > view->rank ? shape->rank : view->rank};
    for (int i = 1; i <= result.rank; i++) {
        int64_t x = i <= shape->rank ? shape->dims[shape->rank - i] : 1;
        int64_t y = i <= view->rank ? view->dims[view->rank - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        result.dims[result.rank - i] = x == 1 ? y : x;
    }
    *shape = result;
    return true;
}

// All floating operands have one dtype, the others are booleans; shapes broadcast.
static bool check_operands(Gradient *g, MapProgram *program) {
    ASSERT(program->n_operands <= KERNEL_INPUTS_MAX);
    program->dtype = DTYPE_COUNT;
    for (int i = 0; i < program->n_operands; i++) {
        const Tensor *x = slot_of(g, program->operands[i])->tensor;
        if (!x) continue;
        DType dtype = tensor_dtype(x);
        program->device = x->device;
        if (!x->view.buffer || !broadcasts(&program->shape, &x->view)) return false;
        if (dtype == DTYPE_BOOL) continue;
        if (!dtype_is_float(dtype)) return false;
        if (program->dtype != DTYPE_COUNT && program->dtype != dtype) return false;
        program->dtype = dtype;
    }
    return program->dtype != DTYPE_COUNT;
}

static uint8_t final_register(const MapProgram *program, uint8_t number) {
    ASSERT(number < STEP_BASE ? number < program->n_operands
                              : number - STEP_BASE < program->n_steps);
    return number < STEP_BASE ? number : (uint8_t)(number - STEP_BASE + program->n_operands);
}

static Status run_program(Gradient *g, MapProgram *program, Tensor **out) {
    ASSERT(program->n_steps > 0 && program->device != NULL);
    SCOPED_TENSOR(result);
    TRY(tensor_new(program->device, program->dtype, &program->shape, &result));
    TensorView views[KERNEL_INPUTS_MAX];
    KernelCall kernel = {.kernel = KERNEL_MAP,
                         .n_inputs = program->n_operands,
                         .n_outputs = 1,
                         .outputs = {&result->view},
                         .op_name = g->node->info->name};
    kernel.options.n_steps = program->n_steps;
    kernel.options.compute = dtype_compute(program->dtype);
    for (int i = 0; i < program->n_operands; i++) {
        TermSlot *slot = slot_of(g, program->operands[i]);
        if (slot->kind == TERM_NUMBER) {
            kernel.inputs[i].scalar = slot->number;
            continue;
        }
        view_broadcast(&slot->tensor->view, &result->view, &views[i]);
        kernel.inputs[i].view = &views[i];
    }
    for (int i = 0; i < program->n_steps; i++) {
        MapStep step = program->steps[i];
        kernel.options.steps[i] =
            (MapStep){step.op, final_register(program, step.a), final_register(program, step.b),
                      final_register(program, step.c)};
    }
    TRY(op_run_kernel(&kernel));
    return compose_give(&result, out);
}

static bool gives_floats(OpId op) {
    MapRule rule = op_rows[op].rule;
    return rule == MAP_RULE_ARITHMETIC || rule == MAP_RULE_KEEP || rule == MAP_RULE_FLOAT ||
           rule == MAP_RULE_DIVIDE || rule == MAP_RULE_WHERE;
}

static Status compute(Gradient *g, Term term) {
    TermSlot *slot = slot_of(g, term);
    ASSERT(term.slot > 0 && term.slot < g->n_terms);
    for (int attempt = 0; attempt < 2; attempt++) {
        MapProgram program = {0};
        if (gives_floats(slot->op) && emit(g, &program, term) >= 0 && check_operands(g, &program)) {
            TRY(run_program(g, &program, &slot->tensor));
            slot->kind = TERM_TENSOR;
            return STATUS_OK;
        }
        // Too long for one program: the operands become tensors first.
        for (int i = 0; i < 3 && slot->operands[i].slot; i++)
            if (slot_of(g, slot->operands[i])->kind == TERM_MAP)
                if (!term_tensor(g, slot->operands[i])) return g->status;
    }
    return apply_single(g, slot);
}

static Device *device_of(const Gradient *g) {
    int output = 0;
    while (output + 1 < OP_OUTPUTS_MAX && !g->incoming[output]) output++;
    ASSERT(g->incoming[output] != NULL);
    return g->incoming[output]->device;
}

Tensor *term_tensor(Gradient *g, Term term) {
    if (g->status != STATUS_OK) return NULL;
    TermSlot *slot = slot_of(g, term);
    ASSERT(term.slot < g->n_terms);
    if (slot->kind == TERM_MAP) gradient_fail(g, compute(g, term));
    if (slot->kind == TERM_NUMBER) {
        OpInput input = op_scalar(slot->number);
        gradient_fail(g, op_input_tensor(&input, device_of(g), &slot->tensor));
        slot->kind = TERM_TENSOR;
    }
    return g->status == STATUS_OK ? slot->tensor : NULL;
}

// --- other operations

Term term_op(Gradient *g, OpId op, const Term *inputs, int n_inputs,
             const OpAttributes *attributes) {
    ASSERT(n_inputs >= 0 && n_inputs <= OP_INPUTS_MAX);
    Tensor *tensors[OP_INPUTS_MAX] = {NULL}, *result = NULL;
    for (int i = 0; i < n_inputs; i++)
        tensors[i] = inputs[i].slot ? term_tensor(g, inputs[i]) : NULL;
    if (g->status != STATUS_OK) return (Term){0};
    return term_take(g, op_with(op, tensors, n_inputs, attributes, &result), &result);
}

bool gradient_has(const Gradient *g, KernelId kernel) {
    return !tape_is_recording() && device_has(g->incoming[0]->device, kernel);
}

// Integers as int64: indexes.
static Status as_operand(Tensor *x, DType dtype, Tensor **out) {
    SCOPED_TENSOR(same);
    if (!dtype_is_float(tensor_dtype(x))) dtype = DTYPE_INT64;
    TRY(tensor_cast(x, dtype, &same));
    return tensor_contiguous(same, out);
}

static Status run_fused(Gradient *g, const FusedCall *fused, Tensor *const *terms, DType dtype,
                        Tensor **results) {
    ASSERT(fused->n_inputs <= KERNEL_INPUTS_MAX);
    KernelCall kernel = {.kernel = fused->kernel,
                         .n_inputs = fused->n_inputs,
                         .n_outputs = fused->n_outputs,
                         .options = *fused->options,
                         .op_name = g->info->name};
    Tensor *operands[KERNEL_INPUTS_MAX] = {NULL};
    Status status = STATUS_OK;
    for (int i = 0; i < kernel.n_inputs && status == STATUS_OK; i++) {
        status = as_operand(terms[i], dtype, &operands[i]);
        if (status == STATUS_OK) kernel.inputs[i].view = &operands[i]->view;
    }
    for (int i = 0; i < kernel.n_outputs && status == STATUS_OK; i++) {
        const Shape *shape = &g->inputs[fused->first + i].shape;
        status = tensor_new(g->incoming[0]->device, dtype, shape, &results[i]);
        if (status == STATUS_OK) kernel.outputs[i] = &results[i]->view;
    }
    if (status == STATUS_OK) status = op_run_kernel(&kernel);
    for (int i = 0; i < kernel.n_inputs; i++) tensor_release(operands[i]);
    return status;
}

void term_fused_all(Gradient *g, const FusedCall *call) {
    ASSERT(call->n_inputs <= KERNEL_INPUTS_MAX && call->n_outputs <= KERNEL_OUTPUTS_MAX);
    Tensor *tensors[KERNEL_INPUTS_MAX], *results[KERNEL_OUTPUTS_MAX] = {NULL};
    DType dtype = DTYPE_FLOAT32;
    for (int i = 0; i < call->n_inputs; i++) {
        tensors[i] = term_tensor(g, call->inputs[i]);
        if (!tensors[i]) return;
        if (tensor_dtype(tensors[i]) == DTYPE_FLOAT64) dtype = DTYPE_FLOAT64;
    }
    gradient_fail(g, run_fused(g, call, tensors, dtype, results));
    for (int i = 0; i < call->n_outputs; i++) {
        if (g->status == STATUS_OK)
            call->outputs[i] = term_own(g, results[i]);
        else
            tensor_release(results[i]);
    }
}

Term term_fused(Gradient *g, FusedCall call) {
    Term result = {0};
    call.outputs = &result;
    call.n_outputs = 1;
    term_fused_all(g, &call);
    return result;
}

Shape term_shape(Gradient *g, Term x) {
    const Tensor *tensor = term_tensor(g, x);
    return tensor ? tensor_shape(tensor) : (Shape){0};
}

Term term_reshape(Gradient *g, Term x, const Shape *shape) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    return term_take(g, tensor_reshape(tensor, shape, &result), &result);
}

Term term_permute(Gradient *g, Term x, const Shape *order) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    return term_take(g, tensor_permute(tensor, order, &result), &result);
}

Term term_transposed(Gradient *g, Term x) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    return term_take(g, tensor_transpose(tensor, -2, -1, &result), &result);
}

Term term_with_dim(Gradient *g, Term x, int behind) {
    Shape shape = term_shape(g, x), wide = {.rank = shape.rank + 1};
    int at = shape.rank - behind;
    ASSERT(behind >= 0);
    ASSERT(g->status != STATUS_OK || (at >= 0 && wide.rank <= RANK_MAX));
    for (int i = 0; i < wide.rank; i++) wide.dims[i] = i == at ? 1 : shape.dims[i < at ? i : i - 1];
    return term_reshape(g, x, &wide);
}

Term term_without_dim(Gradient *g, Term x, int behind) {
    Shape shape = term_shape(g, x), narrow = {.rank = shape.rank - 1};
    int gone = shape.rank - 1 - behind;
    ASSERT(behind >= 0);
    ASSERT(g->status != STATUS_OK || gone >= 0);
    for (int i = 0; i < narrow.rank; i++) narrow.dims[i] = shape.dims[i < gone ? i : i + 1];
    return term_reshape(g, x, &narrow);
}

Term term_joined(Gradient *g, const Term *pieces, int count) {
    ASSERT(count <= OP_INPUTS_MAX);
    OpInput many[OP_INPUTS_MAX];
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(dim);
    attributes.dim = -1;
    for (int i = 0; i < count; i++) many[i] = op_tensor(term_tensor(g, pieces[i]));
    if (g->status != STATUS_OK) return (Term){0};
    OpCall call = {
        .op = &op_rows[OP_concat], .attributes = &attributes, .many = many, .n_many = count};
    Tensor *result = NULL;
    return term_take(g, op_apply(&call, &result), &result);
}

Term term_broadcast(Gradient *g, Term x, const Shape *shape) {
    Tensor *tensor = term_tensor(g, x), *result = NULL;
    if (!tensor) return (Term){0};
    return term_take(g, tensor_broadcast_to(tensor, shape, &result), &result);
}

Term term_sum_kept(Gradient *g, Term x, const bool *gone) {
    Shape shape = term_shape(g, x);
    OpAttributes attributes;
    attributes.given = ATTRIBUTE_BIT(dims) | ATTRIBUTE_BIT(keepdim);
    attributes.keepdim = true;
    attributes.dims.rank = 0;
    for (int i = 0; i < shape.rank; i++)
        if (gone[i]) attributes.dims.dims[attributes.dims.rank++] = i;
    if (attributes.dims.rank == 0) return x;
    return term_op(g, OP_sum_dims, &x, 1, &attributes);
}

Term term_sum_last(Gradient *g, Term x) {
    bool gone[RANK_MAX] = {false};
    Shape shape = term_shape(g, x);
    if (shape.rank > 0) gone[shape.rank - 1] = true;
    return term_sum_kept(g, x, gone);
}

Term term_filled(Gradient *g, int input, double number) {
    OpAttributes attributes;
    attributes.given =
        ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(value) | ATTRIBUTE_BIT(dtype) | ATTRIBUTE_BIT(device);
    ASSERT(input >= 0 && input < g->n_inputs);
    attributes.shape = g->inputs[input].shape;
    attributes.value = (Scalar){.dtype = DTYPE_FLOAT64, .as.f = number};
    attributes.dtype = g->inputs[input].dtype;
    attributes.device = g->incoming[0]->device;
    return term_op(g, OP_full, NULL, 0, &attributes);
}

// --- results

static bool same_shape(const Shape *x, const Shape *y) {
    bool same = x->rank == y->rank;
    for (int i = 0; same && i < x->rank; i++) same = x->dims[i] == y->dims[i];
    return same;
}

// Sums what was broadcast on the way in; what is smaller than the input is repeated.
static Term fit(Gradient *g, Term x, const Shape *wanted) {
    Shape shape = term_shape(g, x);
    ASSERT(wanted->rank <= RANK_MAX);
    if (same_shape(&shape, wanted)) return x;
    bool gone[RANK_MAX] = {false}, any = false;
    if (shape.rank < wanted->rank) {
        Shape wide = {.rank = wanted->rank};
        for (int i = 0; i < wide.rank; i++) wide.dims[i] = 1;
        for (int i = 1; i <= shape.rank; i++) wide.dims[wide.rank - i] = shape.dims[shape.rank - i];
        x = term_reshape(g, x, &wide);
        shape = wide;
    }
    int extra = shape.rank - wanted->rank;
    ASSERT(extra >= 0);
    for (int i = 0; i < shape.rank; i++) {
        gone[i] = i < extra || (wanted->dims[i - extra] == 1 && shape.dims[i] != 1);
        any = any || gone[i];
    }
    if (!any) return term_broadcast(g, x, wanted);
    Term sum = term_sum_kept(g, x, gone);
    if (extra > 0) {
        Shape kept = term_shape(g, sum), dropped = {.rank = wanted->rank};
        for (int i = 0; i < dropped.rank; i++) dropped.dims[i] = kept.dims[i + extra];
        sum = term_reshape(g, sum, &dropped);
    }
    shape = term_shape(g, sum);
    return same_shape(&shape, wanted) ? sum : term_broadcast(g, sum, wanted);
}

void gradient_give(Gradient *g, int input, Term term) {
    if (!gradient_wants(g, input)) return;
    Tensor *tensor = term_tensor(g, fit(g, term, &g->inputs[input].shape));
    ASSERT(input < g->n_inputs);
    if (!tensor) return;
    Shape shape = tensor_shape(tensor);
    ASSERT(same_shape(&shape, &g->inputs[input].shape));
    tensor_release(g->results[input]);
    g->results[input] = NULL;
    gradient_fail(g, tensor_cast(tensor, g->inputs[input].dtype, &g->results[input]));
}
