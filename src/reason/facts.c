// Facts and retractions: statements whose arguments are constants or values of the program.
#include <stdlib.h>

#include "eval/upper.h"
#include "reason/reason.h"

typedef struct FactCode {
    Code head;
    Reasoner *reasoner;
    Relation *relation;
    ArgumentCode *arguments;
    const Code *weight; // or NULL
} FactCode;

static ArgumentCode lower_argument(Lowering *lowering, Store *store, const TermNode *term) {
    ArgumentCode argument = {.span = term->value->span};
    if (term->kind == TERM_NODE_VALUE)
        argument.code = lower(lowering, term->value);
    else if (term->kind == TERM_NODE_CONSTANT)
        argument.constant = constant_of_term(store, term);
    return argument;
}

Status argument_value(Frame *frame, Reasoner *reasoner, const ArgumentCode *argument, Datum *out) {
    *out = argument->constant;
    if (!argument->code) return STATUS_OK;
    SCOPED_VALUE(value) = EVAL(frame, argument->code);
    if (failed(value)) return error_current()->code;
    return constant_of_value(reasoner, value, "a fact", out);
}

static Value fail_argument(Frame *frame, const ArgumentCode *argument) {
    return frame->control == CONTROL_NONE ? fail_at(argument->span) : value_fail();
}

// The fact with its weight; `group`: of facts that exclude each other, or 0.
static Value fact_state(Frame *frame, const FactCode *fact, uint64_t group) {
    Datum values[ARITY_MAX];
    Store *store = fact->reasoner->store;
    for (uint32_t i = 0; i < fact->relation->arity; i++) {
        const ArgumentCode *argument = &fact->arguments[i];
        if (argument_value(frame, fact->reasoner, argument, &values[i]) != STATUS_OK ||
            column_fit(store, fact->relation, i, &values[i]) != STATUS_OK)
            return fail_argument(frame, argument);
    }
    Weight weight = weight_whole(fact->weight ? weight_eval(frame, fact->weight) : value_absent());
    if (failed(weight.value)) return weight.value;
    if (reasoner_enter(fact->reasoner) != STATUS_OK) {
        value_release(weight.value);
        return fail_at(fact->head.span);
    }
    weight.part.group = group;
    fact_add(store, fact->relation, values);
    weight_set_fact(fact->reasoner, fact->relation, values, weight);
    reasoner_leave(fact->reasoner);
    return value_none();
}

static Value eval_fact(Frame *frame, const Code *code) {
    return fact_state(frame, (const FactCode *)code, 0);
}

ArgumentCode *lower_arguments(Lowering *lowering, const AtomNode *atom) {
    Store *store = reasoner_get(lowering->interp)->store;
    ArgumentCode *arguments = lower_array(lowering, atom->count + 1, sizeof *arguments);
    for (size_t i = 0; i < atom->count; i++)
        arguments[i] = lower_argument(lowering, store, &atom->terms[i]);
    return arguments;
}

static void fact_lower(Lowering *lowering, const AtomNode *atom, FactCode *code) {
    code->reasoner = reasoner_get(lowering->interp);
    code->relation = atom->binding->relation;
    code->arguments = lower_arguments(lowering, atom);
}

const Code *lower_fact(Lowering *lowering, const Node *node) {
    FactCode *code = LOWER_NEW(lowering, FactCode, eval_fact, node->span);
    fact_lower(lowering, &node->as.clause->atom, code);
    code->weight = lower(lowering, node->as.clause->weight);
    return &code->head;
}

// --- one of several

typedef struct OneOfCode {
    Code head;
    Reasoner *reasoner;
    const Code **facts;
    size_t count;
} OneOfCode;

static Value eval_one_of(Frame *frame, const Code *code) {
    const OneOfCode *one_of = (const OneOfCode *)code;
    uint64_t group = weight_group_new(one_of->reasoner);
    for (size_t i = 0; i < one_of->count; i++) {
        Value value = fact_state(frame, (const FactCode *)one_of->facts[i], group);
        if (failed(value)) return value;
    }
    return value_none();
}

const Code *lower_one_of(Lowering *lowering, const Node *node) {
    OneOfCode *code = LOWER_NEW(lowering, OneOfCode, eval_one_of, node->span);
    code->reasoner = reasoner_get(lowering->interp);
    code->facts = lower_list(lowering, &node->as.alternatives);
    code->count = node->as.alternatives.count;
    return &code->head;
}

// --- retractions

// Facts that the arguments fit: those without a value fit anything, but equal names equal values.
static bool row_fits(const FactCode *fact, const TermNode *terms, const Datum *values,
                     uint32_t row) {
    const Table *facts = fact->relation->facts;
    for (uint32_t i = 0; i < facts->arity; i++) {
        if (values[i] != CONSTANT_NONE && values[i] != table_at(facts, row, i)) return false;
        for (uint32_t j = 0; values[i] == CONSTANT_NONE && j < i; j++)
            if (terms[i].kind == TERM_NODE_NAME && terms[j].kind == TERM_NODE_NAME &&
                terms[i].variable == terms[j].variable &&
                table_at(facts, row, i) != table_at(facts, row, j))
                return false;
    }
    return true;
}

typedef struct RetractCode {
    FactCode fact;
    const TermNode *terms; // kinds and variables, copied: the syntax may go
    const char **names;    // of those that may be a constant's; else NULL
} RetractCode;

static void retract_matching(const RetractCode *retract, const Datum *values) {
    const FactCode *fact = &retract->fact;
    Table *facts = fact->relation->facts;
    SCOPED_MEMORY VECTOR(Datum) found = {0};
    uint32_t arity = facts->arity;
    Columns given = 0;
    for (uint32_t i = 0; i < arity; i++) given |= (Columns)(values[i] != CONSTANT_NONE) << i;
    const Index *index = given ? table_index(facts, given, facts->count) : NULL;
    uint32_t row = index ? index_first(facts, index, values) : 0;
    for (; row < facts->count; row = index ? index_next(index, row) : row + 1) {
        if (table_is_dead(facts, row) || !row_fits(fact, retract->terms, values, row)) continue;
        for (uint32_t i = 0; i < arity; i++) VECTOR_PUSH(&found, table_at(facts, row, i));
    }
    for (size_t i = 0; i < found.count; i += arity)
        fact_retract(fact->reasoner, fact->relation, &found.items[i]);
}

static Status retract_values(Frame *frame, const RetractCode *retract, Datum *values, bool *whole) {
    const FactCode *fact = &retract->fact;
    Store *store = fact->reasoner->store;
    *whole = true;
    for (uint32_t i = 0; i < fact->relation->arity; i++) {
        TRY(argument_value(frame, fact->reasoner, &fact->arguments[i], &values[i]));
        const char *name = retract->names[i];
        if (name) values[i] = constant_find_text(&store->constants, name, strlen(name));
        if (name && !constant_is_known(&store->constants, values[i])) values[i] = CONSTANT_NONE;
        *whole &= values[i] != CONSTANT_NONE;
        if (values[i] != CONSTANT_NONE) column_convert(store, fact->relation, i, &values[i]);
    }
    return STATUS_OK;
}

static Value eval_retract(Frame *frame, const Code *code) {
    const RetractCode *retract = (const RetractCode *)code;
    Datum values[ARITY_MAX];
    bool whole;
    if (retract_values(frame, retract, values, &whole) != STATUS_OK)
        return frame->control == CONTROL_NONE ? fail_at(code->span) : value_fail();
    Reasoner *reasoner = retract->fact.reasoner;
    if (reasoner_enter(reasoner) != STATUS_OK) return fail_at(code->span);
    if (whole)
        fact_retract(reasoner, retract->fact.relation, values);
    else
        retract_matching(retract, values);
    reasoner_leave(reasoner);
    return value_none();
}

const Code *lower_retract(Lowering *lowering, const Node *node) {
    const AtomNode *atom = &node->as.clause->atom;
    RetractCode *code = lower_new(lowering, sizeof *code, eval_retract, node->span);
    FactCode *fact = &code->fact;
    fact_lower(lowering, atom, fact);
    TermNode *terms = lower_array(lowering, atom->count + 1, sizeof *terms);
    code->names = lower_array(lowering, atom->count + 1, sizeof *code->names);
    for (size_t i = 0; i < atom->count; i++) {
        terms[i] = atom->terms[i];
        if (terms[i].kind == TERM_NODE_NAME)
            code->names[i] = lower_word(lowering, &terms[i].value->as.name.word);
    }
    code->terms = terms;
    return &fact->head;
}
