// The right side of an equation over named tensors: each node brings its parts into one order of
// indexes and does with them what the same text would do with plain tensors.
#include "equation/run.h"
#include "equation/semiring.h"
#include "value/print.h"

#include "eval/invoke.h"
#include "tensor/op.h"
#include "value/builtin.h"
#include "value/convert.h"

// Indexes in the order of the left side, then the others; the dotted one last where functions want
// it there.
static Named order_of(const EquationRun *run, IndexSet indexes, bool dotted_last) {
    const Equation *plan = run->plan;
    Named order = {0};
    int dotted = dotted_last && plan->dotted >= 0 ? plan->dotted : -1;
    IndexSet left = indexes;
    if (dotted >= 0) left &= ~index_bit(dotted);
    for (size_t i = 0; i < plan->left_count; i++) {
        const Position *position = &plan->left[i];
        bool named = position->kind == POSITION_INDEX || position->kind == POSITION_SLICE;
        if (!named || !(left >> position->index & 1) || order.count == RANK_MAX) continue;
        order.indexes[order.count++] = position->index;
        left &= ~index_bit(position->index);
    }
    for (int i = 0; i < plan->name_count; i++)
        if (left >> i & 1 && order.count < RANK_MAX) order.indexes[order.count++] = i;
    if (dotted >= 0 && indexes >> dotted & 1 && order.count < RANK_MAX)
        order.indexes[order.count++] = dotted;
    ASSERT(order.count <= RANK_MAX);
    return order;
}

static IndexSet set_of(const Named *named) {
    IndexSet set = 0;
    for (int i = 0; i < named->count; i++) set |= index_bit(named->indexes[i]);
    return set;
}

static Status check_rank(IndexSet indexes) {
    return named_check_rank(__builtin_popcountll(indexes));
}

static void release_all(Named *parts, size_t count) {
    for (size_t i = 0; i < count; i++) named_release(&parts[i]);
}

static Status evaluate_parts(EquationRun *run, const EquationNode *node, Named *parts) {
    for (size_t i = 0; i < node->count; i++) parts[i] = (Named){.value = value_none()};
    for (size_t i = 0; i < node->count; i++) {
        Status status = tree_evaluate(run, node->parts[i], &parts[i]);
        if (status == STATUS_OK) continue;
        release_all(parts, node->count);
        return status;
    }
    return STATUS_OK;
}

static IndexSet union_of(const Named *parts, size_t count) {
    IndexSet set = 0;
    for (size_t i = 0; i < count; i++) set |= set_of(&parts[i]);
    return set;
}

// left op right by the semiring of the equation; takes both.
static Value apply(const EquationRun *run, Operator op, const Operands *operands) {
    Semiring semiring = run->plan->semiring;
    if (op == OPERATOR_ADD && semiring_adds(semiring)) return semiring_add(semiring, operands);
    return operator_apply(run->frame, semiring_operator(semiring, op), operands);
}

static Status reduce(const EquationRun *run, const EquationNode *node, Named *named) {
    bool adds = semiring_adds(run->plan->semiring) && node->reduction <= PROJECTION_SUM;
    return adds ? semiring_reduce(run->plan->semiring, named, node->reduced)
                : named_reduce(named, node->reduced, node->reduction);
}

// left op right, elementwise; takes both.
static Status combine(EquationRun *run, Operator op, Named *left, Named *right, Named *out) {
    IndexSet both = set_of(left) | set_of(right);
    Status status = check_rank(both);
    Named order = order_of(run, both, false);
    Value x = value_none(), y = value_none();
    if (status == STATUS_OK) status = named_arrange(left, order.indexes, order.count, &x);
    if (status == STATUS_OK) status = named_arrange(right, order.indexes, order.count, &y);
    named_release(left);
    named_release(right);
    if (status != STATUS_OK) {
        value_release(x);
        value_release(y);
        return status;
    }
    Operands operands = {.left = x, .right = y, .span = run->at};
    *out = order;
    out->value = apply(run, op, &operands);
    return failed(out->value) ? error_current()->code : STATUS_OK;
}

// --- products

// The parts one after the other, without sums.
static Status fold(EquationRun *run, const EquationNode *node, Named *parts, Named *out) {
    ASSERT(node->count > 0);
    Status status = STATUS_OK;
    *out = parts[0];
    parts[0].value = value_none();
    if (node->divides[0]) { // nothing stands before it
        Named one = {.value = value_int(semiring_one(run->plan->semiring))};
        status = combine(run, OPERATOR_DIV, &one, out, out);
    }
    for (size_t i = 1; i < node->count && status == STATUS_OK; i++) {
        Operator op = node->divides[i] ? OPERATOR_DIV : OPERATOR_MUL;
        Named result = {.value = value_none()};
        status = combine(run, op, out, &parts[i], &result);
        *out = result;
    }
    return status;
}

// What of a product goes into its Einstein sum: tensors, and divisors that have a summed index.
static bool is_summed(const EquationNode *node, const Named *part, size_t i) {
    if (part->value.kind != VALUE_TENSOR) return false;
    return !node->divides[i] || (set_of(part) & node->reduced);
}

static Status contract(EquationRun *run, const EquationNode *node, Named *parts, Named *out) {
    Named factors[node->count];
    int count = 0;
    bool divides[node->count + 1];
    EquationNode rest = {.divides = divides};
    divides[0] = false;
    Named others[node->count + 1];
    Status status = STATUS_OK;
    for (size_t i = 0; i < node->count; i++) {
        bool summed = is_summed(node, &parts[i], i);
        if (!summed) {
            rest.divides[++rest.count] = node->divides[i];
            others[rest.count] = parts[i];
            continue;
        }
        factors[count] = parts[i];
        if (node->divides[i] && status == STATUS_OK) {
            Named one = {.value = value_float(1.0)};
            status = combine(run, OPERATOR_DIV, &one, &parts[i], &factors[count]);
        }
        parts[i] = factors[count++];
    }
    IndexSet kept = union_of(factors, (size_t)count) & ~node->reduced;
    if (status == STATUS_OK) status = check_rank(kept);
    Named order = order_of(run, kept, false);
    if (status == STATUS_OK) status = named_contract(factors, count, &order, &others[0]);
    if (status != STATUS_OK || rest.count == 0) {
        if (status == STATUS_OK) *out = others[0];
        return status;
    }
    for (size_t i = 1; i <= rest.count; i++) value_retain(others[i].value);
    rest.count++;
    status = fold(run, &rest, others, out);
    if (status != STATUS_OK) release_all(others, rest.count);
    return status;
}

static Status evaluate_product(EquationRun *run, const EquationNode *node, Named *out) {
    Named parts[node->count];
    TRY(evaluate_parts(run, node, parts));
    run->at = node->span;
    bool sums =
        node->reduced && node->reduction <= PROJECTION_SUM && !semiring_adds(run->plan->semiring);
    Status status = sums ? contract(run, node, parts, out) : fold(run, node, parts, out);
    release_all(parts, node->count);
    if (status == STATUS_OK && !sums) status = reduce(run, node, out);
    return status;
}

// --- operators and calls

static Status evaluate_operator(EquationRun *run, const EquationNode *node, Named *out) {
    Named parts[2];
    TRY(evaluate_parts(run, node, parts));
    run->at = node->span;
    if (node->count == 2) return combine(run, node->op, &parts[0], &parts[1], out);
    *out = parts[0];
    Operands operands = {.left = parts[0].value, .right = value_absent(), .span = node->span};
    out->value = operator_apply(run->frame, node->op, &operands);
    return failed(out->value) ? error_current()->code : STATUS_OK;
}

// Whether a builtin works along one dimension, which the dotted index says.
static bool works_along(Value callee) {
    if (callee.kind != VALUE_BUILTIN) return false;
    for (const Builtin *row = callee.as.builtin; row; row = row->next_overload)
        if (row->kind == ROW_OP && !op_rows[row->id].run) return false;
    return catalog_parameter(&callee.as.builtin->signature, "dim") >= 0;
}

static Status fail_function(const EquationRun *run, int callee, Value result) {
    char name[40];
    fail(STATUS_SHAPE, "%s gives %s, which does not have the indexes of its arguments",
         equation_text(run->plan->values.items[callee]->span, name, sizeof name),
         value_text(result).text);
    return fail_help("an equation applies functions element by element, or along its dotted index");
}

static bool keeps_shape(Value result, const Value *arguments, size_t count, const Named *order) {
    if (result.kind != VALUE_TENSOR || tensor_rank(result.as.tensor) != order->count) return false;
    for (int d = 0; d < order->count; d++) {
        int64_t size = 1;
        for (size_t i = 0; i < count; i++) {
            if (arguments[i].kind != VALUE_TENSOR) continue;
            if (tensor_rank(arguments[i].as.tensor) != order->count) continue;
            int64_t own = arguments[i].as.tensor->view.dims[d];
            if (own != 1) size = own;
        }
        if (result.as.tensor->view.dims[d] != size) return false;
    }
    return true;
}

// The arguments in one order of indexes, positional ones first; `dim` behind them where the
// function wants to know along which dimension it works.
static Value call(EquationRun *run, const EquationNode *node, const Named *parts,
                  const Named *order) {
    Value callee = run->values[node->number], arguments[node->count + 1], held[node->count + 1];
    const char *names[node->count + 1];
    CallArguments list = {.values = arguments, .names = names, .span = node->span};
    for (size_t i = 0; i < node->count; i++) {
        if (named_arrange(&parts[i], order->indexes, order->count, &arguments[i]) != STATUS_OK) {
            arguments_release(arguments, list.count);
            return value_fail();
        }
        list.count++;
        const char *name = node->names[i].name.text;
        if (!name)
            list.positional++;
        else
            names[i - list.positional] = name;
    }
    if (works_along(callee)) {
        if (run->plan->dotted < 0 || !(index_bit(run->plan->dotted) & set_of(order))) {
            arguments_release(arguments, list.count);
            fail(STATUS_VALUE, "%s works along one index, and none is dotted",
                 callee.as.builtin->signature.name);
            fail_help("as in Y[i, j.] = softmax(X[i, j])");
            return value_fail();
        }
        names[list.count - list.positional] = "dim";
        arguments[list.count++] = value_int(order->count - 1);
    }
    for (size_t i = 0; i < list.count; i++) held[i] = value_retain(arguments[i]);
    size_t count = list.count;
    Value result = call_value(run->frame->interp, callee, &list);
    if (!failed(result) && !keeps_shape(result, held, count, order)) {
        fail_function(run, node->number, result);
        value_release(result);
        result = value_fail();
    }
    arguments_release(held, count);
    return result;
}

static Status evaluate_call(EquationRun *run, const EquationNode *node, Named *out) {
    Named parts[node->count];
    TRY(evaluate_parts(run, node, parts));
    run->at = node->span;
    IndexSet indexes = union_of(parts, node->count);
    Status status = check_rank(indexes);
    *out = order_of(run, indexes, true);
    if (status == STATUS_OK) {
        out->value = call(run, node, parts, out);
        if (failed(out->value)) status = error_current()->code;
    }
    release_all(parts, node->count);
    return status;
}

// The indexes that are joined lie next to each other, in the order of the argument.
static Status evaluate_concat(EquationRun *run, const EquationNode *node, Named *out) {
    Named part;
    TRY(tree_evaluate(run, node->parts[0], &part));
    Named order = {0};
    Shape shape = {0};
    *out = (Named){0};
    for (int i = 0; i < part.count; i++) {
        if (node->reduced >> part.indexes[i] & 1) continue;
        out->indexes[out->count++] = order.indexes[order.count++] = part.indexes[i];
        shape.dims[shape.rank++] = run->sizes.sizes[part.indexes[i]];
    }
    ASSERT(out->count < RANK_MAX && shape.rank < RANK_MAX);
    out->indexes[out->count++] = node->number;
    shape.dims[shape.rank++] = 1;
    for (int i = 0; i < part.count; i++) {
        if (!(node->reduced >> part.indexes[i] & 1)) continue;
        order.indexes[order.count++] = part.indexes[i];
        shape.dims[shape.rank - 1] *= run->sizes.sizes[part.indexes[i]];
    }
    Value arranged = value_none();
    Status status = named_arrange(&part, order.indexes, order.count, &arranged);
    named_release(&part);
    if (status != STATUS_OK) return status;
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = shape};
    Tensor *result;
    status = op_with(OP_reshape, &arranged.as.tensor, 1, &attributes, &result);
    value_release(arranged);
    if (status == STATUS_OK) out->value = value_tensor(result);
    return status;
}

// An index as numbers.
static Status evaluate_position(EquationRun *run, int index, Named *out) {
    if (index == run->plan->loop.index) {
        *out = (Named){.value = value_int(run->step)};
        return STATUS_OK;
    }
    TRY(require_sizes(run, index_bit(index)));
    int64_t size = run->sizes.sizes[index];
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(stop),
                               .stop = {.dtype = DTYPE_INT64, .as.i = size}};
    Tensor *tensor;
    TRY(op_with(OP_arange, NULL, 0, &attributes, &tensor));
    *out = (Named){.value = value_tensor(tensor), .count = 1, .indexes = {index}};
    return STATUS_OK;
}

// What has no index is a number.
static Status evaluate_number(const EquationRun *run, const EquationNode *node, Named *out) {
    Value value = run->values[node->number];
    if (value.kind == VALUE_NONE && run->plan->program)
        value = value_float(semiring_zero(run->plan->semiring)); // a scalar without a value yet
    bool number = value_is_number(value) || value.kind == VALUE_BOOL;
    bool whole = run->plan->whole && node == run->plan->value;
    bool fits = value.kind == VALUE_TENSOR && (whole || tensor_rank(value.as.tensor) == 0);
    if (value.kind == VALUE_TENSOR && !fits) {
        char text[40];
        fail(STATUS_SHAPE, "%s is %s and has no indexes here",
             equation_text(node->span, text, sizeof text), value_text(value).text);
        return fail_help("each of its dimensions needs one, as in A[i, j]");
    }
    if (!number && !fits) return fail_kind("a term of an equation", "a number or a tensor", value);
    *out = (Named){.value = value_retain(value)};
    return STATUS_OK;
}

static Status evaluate_node(EquationRun *run, const EquationNode *node, Named *out) {
    run->at = node->span;
    switch (node->kind) {
    case EQUATION_TERM:
        *out = run->terms[node->number];
        value_retain(out->value);
        return reduce(run, node, out);
    case EQUATION_VALUE: return evaluate_number(run, node, out);
    case EQUATION_POSITION: return evaluate_position(run, node->number, out);
    case EQUATION_PRODUCT: return evaluate_product(run, node, out);
    case EQUATION_OPERATOR: return evaluate_operator(run, node, out);
    case EQUATION_CALL: return evaluate_call(run, node, out);
    case EQUATION_CONCAT: return evaluate_concat(run, node, out);
    }
    return STATUS_OK;
}

Status tree_evaluate(EquationRun *run, const EquationNode *node, Named *out) {
    *out = (Named){.value = value_none()};
    Status status = evaluate_node(run, node, out);
    bool rest = node->kind == EQUATION_OPERATOR || node->kind == EQUATION_CALL ||
                node->kind == EQUATION_POSITION;
    if (status == STATUS_OK && rest && node->reduced) status = reduce(run, node, out);
    if (status != STATUS_OK) named_release(out);
    return status;
}
