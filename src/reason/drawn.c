// Digit(i, d) ~ P[i, d]: a fact for each element of a tensor, which is its weight. Those that
// differ in the last index alone exclude each other.
#include "eval/upper.h"
#include "reason/reason.h"
#include "value/convert.h"
#include "value/print.h"

typedef struct DrawnCode {
    Code head;
    Reasoner *reasoner;
    Relation *relation;
    ArgumentCode *arguments;
    int *places; // of each column: the dimension of the tensor that it is the place in, or -1
    const Code *tensor;
    int rank;
} DrawnCode;

typedef struct Drawing {
    const DrawnCode *code;
    Value tensor;
    Table *members[ARITY_MAX]; // of columns with an entity type
    Datum values[ARITY_MAX];   // of columns that are not places
} Drawing;

static Status fail_sizes(const Drawing *drawing, uint32_t column) {
    const Relation *relation = drawing->code->relation;
    int place = drawing->code->places[column];
    return fail(STATUS_SHAPE, "column %u of %s has %u places, but the tensor has %lld", column + 1,
                relation->name, table_live(drawing->members[column]),
                (long long)drawing->tensor.as.tensor->view.dims[place]);
}

// Columns of an entity type have a place for each member, others the numbers from 0.
static Status find_members(Drawing *drawing) {
    const DrawnCode *code = drawing->code;
    for (uint32_t i = 0; i < code->relation->arity; i++) {
        Relation *type = code->places[i] < 0 ? NULL : column_type(code->relation, i);
        if (!type) continue;
        TRY(type_members(code->reasoner->store, type, &drawing->members[i]));
        int64_t size = drawing->tensor.as.tensor->view.dims[code->places[i]];
        if (size != table_live(drawing->members[i])) return fail_sizes(drawing, i);
    }
    return STATUS_OK;
}

static Status fact_values(const Drawing *drawing, const int64_t *at, Datum *values) {
    const DrawnCode *code = drawing->code;
    Store *store = code->reasoner->store;
    for (uint32_t i = 0; i < code->relation->arity; i++) {
        int place = code->places[i];
        if (place < 0)
            values[i] = drawing->values[i];
        else if (drawing->members[i])
            values[i] = table_at(drawing->members[i], (uint32_t)at[place], 0);
        else
            values[i] = constant_int(&store->constants, at[place]);
        TRY(column_fit(store, code->relation, i, &values[i]));
    }
    return STATUS_OK;
}

static Status add_facts(const Drawing *drawing) {
    const DrawnCode *code = drawing->code;
    const TensorView *view = &drawing->tensor.as.tensor->view;
    Datum values[ARITY_MAX];
    uint64_t group = 0;
    int64_t count = tensor_count(drawing->tensor.as.tensor);
    for (int64_t n = 0; n < count; n++) {
        int64_t at[RANK_MAX], rest = n;
        for (int i = view->rank; i-- > 0; rest /= view->dims[i]) at[i] = rest % view->dims[i];
        if (at[view->rank - 1] == 0) group = weight_group_new(code->reasoner);
        TRY(fact_values(drawing, at, values));
        fact_add(code->reasoner->store, code->relation, values);
        Weight weight = {value_retain(drawing->tensor), {n, group}};
        weight_set_fact(code->reasoner, code->relation, values, weight);
    }
    return STATUS_OK;
}

static Status draw(Drawing *drawing) {
    Reasoner *reasoner = drawing->code->reasoner;
    TRY(reasoner_enter(reasoner));
    Status status = find_members(drawing);
    if (status == STATUS_OK) status = add_facts(drawing);
    reasoner_leave(reasoner);
    return status;
}

static Value drawing_tensor(Frame *frame, const DrawnCode *code) {
    Value tensor = EVAL(frame, code->tensor);
    if (failed(tensor)) return tensor;
    if (tensor.kind == VALUE_TENSOR && tensor.as.tensor->view.rank == code->rank) return tensor;
    if (tensor.kind == VALUE_TENSOR)
        fail(STATUS_SHAPE, "%d of its indexes are in the fact, but the tensor is %s", code->rank,
             value_text(tensor).text);
    else
        (void)fail_kind("what facts are drawn from", "a tensor", tensor);
    value_release(tensor);
    return fail_at(code->tensor->span);
}

static Value eval_drawn(Frame *frame, const Code *head) {
    const DrawnCode *code = (const DrawnCode *)head;
    Drawing drawing = {.code = code};
    for (uint32_t i = 0; i < code->relation->arity; i++) {
        const ArgumentCode *argument = &code->arguments[i];
        if (code->places[i] >= 0) continue;
        if (argument_value(frame, code->reasoner, argument, &drawing.values[i]) != STATUS_OK)
            return frame->control == CONTROL_NONE ? fail_at(argument->span) : value_fail();
    }
    drawing.tensor = drawing_tensor(frame, code);
    if (failed(drawing.tensor)) return drawing.tensor;
    Status status = draw(&drawing);
    value_release(drawing.tensor);
    return status == STATUS_OK ? value_none() : fail_at(head->span);
}

const Code *lower_drawn(Lowering *lowering, const Node *node) {
    const AtomNode *atom = &node->as.clause->atom;
    DrawnCode *code = LOWER_NEW(lowering, DrawnCode, eval_drawn, node->span);
    code->reasoner = reasoner_get(lowering->interp);
    code->relation = atom->binding->relation;
    code->arguments = lower_arguments(lowering, atom);
    code->places = lower_array(lowering, atom->count + 1, sizeof *code->places);
    for (size_t i = 0; i < atom->count; i++) {
        const TermNode *term = &atom->terms[i];
        code->places[i] = term->kind == TERM_NODE_PLACE ? term->variable : -1;
        if (term->kind == TERM_NODE_PLACE && term->variable >= code->rank)
            code->rank = term->variable + 1;
    }
    code->tensor = lower(lowering, node->as.clause->weight);
    return &code->head;
}
