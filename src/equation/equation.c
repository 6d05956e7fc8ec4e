// Evaluating an equation: what its text names comes first, in the order of the text; then terms get
// their indexes and these their sizes; then the right side is gone through.
#include <stdlib.h>

#include "equation/gather.h"
#include "equation/run.h"
#include "equation/semiring.h"
#include "eval/subscripts.h"
#include "eval/upper.h"
#include "tensor/compose.h"
#include "tensor/op.h"
#include "value/convert.h"

typedef struct EquationCode {
    Code head;
    const Equation *plan;
    const Code **values;
} EquationCode;

// --- terms

static SubscriptValue subscript_of(const EquationRun *run, const Position *position) {
    SubscriptValue subscript = {SUBSCRIPT_SLICE, value_absent(), value_absent(), value_absent(),
                                value_absent()};
    if (position->kind == POSITION_VALUE) {
        subscript.kind = SUBSCRIPT_INDEX;
        subscript.index = run->values[position->value];
    } else if (position->kind == POSITION_SLICE) {
        if (position->start >= 0) subscript.start = run->values[position->start];
        if (position->stop >= 0) subscript.stop = run->values[position->stop];
        if (position->step >= 0) subscript.step = run->values[position->step];
    }
    return subscript;
}

// The tensor with constants and slices taken, borrowed values within the subscripts.
static Status take_constants(EquationRun *run, const EquationTerm *term, Value *value) {
    SubscriptValue subscripts[term->count];
    bool any = false;
    for (size_t i = 0; i < term->count; i++) {
        subscripts[i] = subscript_of(run, &term->positions[i]);
        any |=
            term->positions[i].kind == POSITION_VALUE || term->positions[i].kind == POSITION_SLICE;
        bool named = subscripts[i].index.kind == VALUE_STRING;
        if (subscripts[i].kind != SUBSCRIPT_INDEX || named || value_is_number(subscripts[i].index))
            continue;
        run->at = term->positions[i].span;
        return fail_kind("an index of an equation", "a name or a number", subscripts[i].index);
    }
    if (!any) return STATUS_OK;
    Value taken = value_index(*value, subscripts, (int)term->count);
    if (failed(taken)) return error_current()->code;
    value_release(*value);
    *value = taken;
    return STATUS_OK;
}

// The term's tensor without the dimensions of constants. Of a relation only the rest is made.
static Status take_object(EquationRun *run, const EquationTerm *term, Value *out) {
    Value object = run->values[term->object];
    Tensor *tensor;
    bool made = value_is_handle_tensor(object);
    TensorType type = {.dtype = DTYPE_BOOL};
    if (made) {
        *out = value_retain(object);
        type.shape.rank = object.as.handle->type->tensor->rank(object.as.handle);
        for (int i = 0; i < type.shape.rank && i < RANK_MAX; i++) type.shape.dims[i] = SIZE_UNKNOWN;
    } else {
        TRY(value_to_tensor(object, "a tensor of an equation", &tensor));
        *out = value_tensor(tensor);
        type = tensor_type(tensor);
    }
    TRY(equation_rank(term, &type));
    TRY(take_constants(run, term, out));
    if (out->kind == VALUE_TENSOR) return STATUS_OK;
    TRY(value_to_tensor(*out, "a tensor of an equation", &tensor));
    value_release(*out);
    *out = value_tensor(tensor);
    return STATUS_OK;
}

// --- dimensions that may have any size

static bool is_open(const EquationRun *run, const EquationTerm *term, size_t position) {
    if (term->object < 0 || term->positions[position].kind != POSITION_INDEX) return false;
    Value object = run->values[term->object];
    if (term->grows >> position & 1) return object.kind == VALUE_TENSOR;
    if (!value_is_handle_tensor(object)) return false;
    const HandleTensor *tensor = object.as.handle->type->tensor;
    return tensor->open && tensor->open(object.as.handle, (int)position);
}

// The dimension of the term's tensor that stands at a position.
static int dimension_at(const EquationTerm *term, size_t position) {
    int dim = 0;
    for (size_t i = 0; i < position; i++) dim += term->positions[i].kind != POSITION_VALUE;
    return dim;
}

// Where nothing else says how large an index is, the largest of them does.
static void size_open(EquationRun *run, bool *found) {
    const Equation *plan = run->plan;
    for (size_t t = 0; t < plan->term_count; t++)
        for (size_t i = 0; i < plan->terms[t].count; i++) {
            if (!is_open(run, &plan->terms[t], i)) continue;
            int index = plan->terms[t].positions[i].index;
            const Tensor *tensor = run->terms[t].value.as.tensor;
            int64_t size = tensor->view.dims[dimension_at(&plan->terms[t], i)];
            int64_t *known = &run->sizes.sizes[index];
            found[index] |= !size_is_known(*known);
            if (found[index] && (!size_is_known(*known) || *known < size)) *known = size;
        }
}

static Status shorten(Tensor *tensor, int dim, int64_t size, Tensor **out) {
    IndexItem items[RANK_MAX];
    for (int i = 0; i <= dim; i++) items[i] = (IndexItem){.kind = INDEX_SLICE};
    items[dim].has_stop = true;
    items[dim].stop = size;
    return index_get(tensor, items, dim + 1, out);
}

static Status fit_open(EquationRun *run, const EquationTerm *term, Named *named) {
    for (size_t i = 0; i < term->count; i++) {
        if (!is_open(run, term, i)) continue;
        int dim = dimension_at(term, i);
        int64_t size = run->sizes.sizes[term->positions[i].index];
        Tensor *tensor = named->value.as.tensor, *fitted;
        if (tensor->view.dims[dim] == size) continue;
        bool own = term->grows >> i & 1; // of the program
        double nothing = own ? semiring_zero(run->plan->semiring) : 0.0;
        TRY(tensor->view.dims[dim] < size
                ? named_pad(tensor, dim, (int64_t[]){0, size - tensor->view.dims[dim]}, nothing,
                            &fitted)
                : shorten(tensor, dim, size, &fitted));
        value_release(named->value);
        named->value = value_tensor(fitted);
    }
    return STATUS_OK;
}

// The term's tensor, a dimension for each position that is not a constant; *dims by position.
static Status bind_term(EquationRun *run, const EquationTerm *term, Named *named, Shape *dims) {
    run->at = term->span;
    dims->rank = (int)term->count;
    for (size_t i = 0; i < term->count; i++) dims->dims[i] = SIZE_UNKNOWN;
    if (term->object < 0) return STATUS_OK; // a state that begins with zeros
    if (run->values[term->object].kind == VALUE_NONE && run->plan->program) return STATUS_OK;
    TRY(take_object(run, term, &named->value));
    for (size_t i = 0; i < term->count; i++) {
        const Position *position = &term->positions[i];
        if (position->kind == POSITION_STATE && term->lag > 0 && run->plan->loop.kept)
            named->indexes[named->count++] = run->plan->loop.index;
        if (position->kind == POSITION_VALUE || position->kind == POSITION_STATE) continue;
        if (!is_open(run, term, i)) dims->dims[i] = named->value.as.tensor->view.dims[named->count];
        bool sum = position->kind == POSITION_SUM;
        named->indexes[named->count++] = sum ? -1 : position->index;
    }
    return STATUS_OK;
}

// Reads by index arithmetic, the last dimension first, so that those before it stay in place.
Status place_term(EquationRun *run, const EquationTerm *term, Named *named) {
    int dim = named->count;
    run->at = term->span;
    for (size_t i = term->count; i-- > 0;) {
        const Position *position = &term->positions[i];
        if (position->kind == POSITION_VALUE || position->kind == POSITION_STATE) continue;
        dim--;
        if (position->kind != POSITION_SUM) continue;
        Tensor *gathered;
        TRY(named_gather(named, dim, position, &run->sizes, &gathered));
        value_release(named->value);
        named->value = value_tensor(gathered);
    }
    return named_diagonal(named);
}

// A name of a program that has no value yet: as if nothing held of it.
static Status zero_term(EquationRun *run, const EquationTerm *term, Named *named) {
    Shape shape = {0};
    run->at = term->span;
    TRY(named_check_rank(__builtin_popcountll(term->indexes)));
    for (int i = 0; i < run->plan->name_count; i++) {
        if (!(term->indexes >> i & 1)) continue;
        shape.dims[shape.rank++] = run->sizes.sizes[i];
        named->indexes[named->count++] = i;
    }
    OpAttributes attributes = {
        .given = ATTRIBUTE_BIT(shape) | ATTRIBUTE_BIT(value),
        .shape = shape,
        .value = {.dtype = DTYPE_FLOAT64, .as.f = semiring_zero(run->plan->semiring)}};
    Tensor *zeros;
    TRY(op_with(OP_full, NULL, 0, &attributes, &zeros));
    named->value = value_tensor(zeros);
    return STATUS_OK;
}

Status require_sizes(EquationRun *run, IndexSet indexes) {
    const Equation *plan = run->plan;
    for (int i = 0; i < plan->name_count; i++) {
        if (!(indexes >> i & 1) || size_is_known(run->sizes.sizes[i])) continue;
        run->at = plan->names[i].span;
        fail(STATUS_SHAPE, "nothing says how large index %s is", plan->names[i].text);
        return fail_help("it must stand alone in the brackets of a tensor");
    }
    return STATUS_OK;
}

static Status bind_terms(EquationRun *run, Shape *dims, int64_t *integers) {
    const Equation *plan = run->plan;
    for (size_t i = 0; i < plan->term_count; i++)
        TRY(bind_term(run, &plan->terms[i], &run->terms[i], &dims[i]));
    for (size_t i = 0; i < plan->values.count; i++) integers[i] = SIZE_UNKNOWN;
    for (size_t t = 0; t < plan->term_count; t++)
        for (size_t i = 0; i < plan->terms[t].count; i++) {
            const Position *position = &plan->terms[t].positions[i];
            run->at = position->span;
            for (size_t p = 0; p < position->count; p++) {
                int factor = position->parts[p].factor;
                if (factor >= 0)
                    TRY(value_to_int(run->values[factor], "a number in an index",
                                     &integers[factor]));
            }
            int divisor = position->kind == POSITION_SUM ? position->divisor : -1;
            if (divisor >= 0)
                TRY(value_to_int(run->values[divisor], "the divisor of an index",
                                 &integers[divisor]));
        }
    run->sizes = (EquationSizes){.equation = plan, .dims = dims, .values = integers};
    Status status = equation_sizes(&run->sizes);
    if (status != STATUS_OK) run->at = plan->terms[run->sizes.failed].span;
    bool found[INDEXES_MAX] = {false};
    if (status == STATUS_OK) size_open(run, found);
    for (size_t i = 0; i < plan->term_count && status == STATUS_OK; i++)
        status = fit_open(run, &plan->terms[i], &run->terms[i]);
    for (size_t i = 0; i < plan->term_count && status == STATUS_OK; i++)
        status = require_sizes(run, plan->terms[i].indexes);
    for (size_t i = 0; i < plan->term_count && status == STATUS_OK; i++)
        if (plan->terms[i].lag == 0)
            status = run->terms[i].value.kind == VALUE_NONE
                         ? zero_term(run, &plan->terms[i], &run->terms[i])
                         : place_term(run, &plan->terms[i], &run->terms[i]);
    return status;
}

// --- the whole

// The index of a dimension that the result has; -1: a constant has none.
static int result_index(const Equation *plan, const Position *position) {
    if (position->kind == POSITION_VALUE) return -1;
    if (position->kind == POSITION_STATE) return plan->loop.kept ? plan->loop.index : -1;
    return position->kind == POSITION_SUM ? position->parts[0].index : position->index;
}

// The part of its tensor that an equation of a program gives, with nothing before it.
static Status finish_part(const EquationRun *run, Value *out) {
    const Equation *plan = run->plan;
    SCOPED_TENSOR(part);
    bool whole = true;
    for (size_t i = 0; i < plan->left_count; i++)
        whole &= plan->left[i].kind != POSITION_VALUE && plan->left[i].offset == 0;
    if (whole) return STATUS_OK;
    TRY(value_to_tensor(*out, "a part of a tensor", &part));
    for (size_t i = 0; i < plan->left_count; i++) {
        Tensor *next;
        if (plan->left[i].kind == POSITION_VALUE) {
            OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = (int)i};
            TRY(op_with(OP_unsqueeze, &part, 1, &attributes, &next));
            tensor_release(part);
            part = next;
        }
        if (plan->left[i].offset == 0) continue;
        TRY(named_pad(part, (int)i, (int64_t[]){plan->left[i].offset, 0},
                      semiring_zero(plan->semiring), &next));
        tensor_release(part);
        part = next;
    }
    value_release(*out);
    *out = value_tensor(tensor_retain(part));
    return STATUS_OK;
}

// The result in the order of the left side, with the values together that fall on one place.
static Status finish(EquationRun *run, Named *result, Value *out) {
    const Equation *plan = run->plan;
    int order[RANK_MAX], count = 0;
    Status status = STATUS_OK;
    for (size_t i = 0; i < plan->left_count; i++) {
        const Position *position = &plan->left[i];
        int index = result_index(plan, position);
        if (index >= 0 && count < RANK_MAX) order[count++] = index;
        if (position->kind != POSITION_SUM || status != STATUS_OK) continue;
        run->at = position->span;
        int64_t size;
        status = value_to_int(run->values[position->divisor], "the divisor of an index", &size);
        if (status == STATUS_OK) status = named_group(result, index, size, plan->projection);
    }
    if (status == STATUS_OK) status = named_arrange(result, order, count, out);
    named_release(result);
    if (status == STATUS_OK && plan->program) status = finish_part(run, out);
    if (status != STATUS_OK || plan->semiring != SEMIRING_BOOL) return status;
    *out = semiring_holds(*out);
    return failed(*out) ? error_current()->code : STATUS_OK;
}

static Status evaluate(EquationRun *run, Value *out) {
    const Equation *plan = run->plan;
    Shape dims[plan->term_count + 1];
    int64_t integers[plan->values.count + 1];
    Named terms[plan->term_count + 1], result;
    run->terms = terms;
    for (size_t i = 0; i < plan->term_count; i++) terms[i] = (Named){.value = value_none()};
    Status status = bind_terms(run, dims, integers);
    bool loops = plan->loop.index >= 0;
    if (status == STATUS_OK)
        status = loops ? loop_evaluate(run, &result) : tree_evaluate(run, plan->value, &result);
    for (size_t i = plan->term_count; i-- > 0;) named_release(&terms[i]);
    return status == STATUS_OK ? finish(run, &result, out) : status;
}

static Value eval_equation(Frame *frame, const Code *code) {
    const EquationCode *equation = (const EquationCode *)code;
    size_t count = equation->plan->values.count, ready = 0;
    Value values[count + 1], result = value_none();
    for (; ready < count && !failed(result); ready++) {
        values[ready] = EVAL(frame, equation->values[ready]);
        if (failed(values[ready])) {
            result = value_fail();
            break;
        }
    }
    if (!failed(result)) {
        origin_current.at = code->span.begin;
        EquationRun run = {
            .frame = frame, .plan = equation->plan, .values = values, .at = code->span};
        if (evaluate(&run, &result) != STATUS_OK) result = fail_at(run.at);
    }
    while (ready > 0) value_release(values[--ready]);
    return result;
}

const Code *lower_equation(Lowering *lowering, const Node *node) {
    EquationCode *code = LOWER_NEW(lowering, EquationCode, eval_equation, node->span);
    code->plan = node->as.equation.plan;
    code->values = lower_list(lowering, &code->plan->values);
    return &code->head;
}
