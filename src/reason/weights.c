// What facts and rules weigh: values of the program, numbers or tensors that learn.
#include <stdlib.h>

#include "reason/reason.h"
#include "value/convert.h"

void weights_start(Reasoner *reasoner) {
    reasoner->weights.values = value_list(0);
    list_push(reasoner->interp->store->roots->as.list, reasoner->weights.values);
}

void weights_free(Weights *weights) {
    for (size_t i = 0; i < weights->facts.count; i++) {
        table_free(weights->facts.items[i].rows);
        VECTOR_FREE(&weights->facts.items[i].numbers);
    }
    VECTOR_FREE(&weights->facts);
    VECTOR_FREE(&weights->rules);
    VECTOR_FREE(&weights->parts);
}

Value weight_eval(Frame *frame, const Code *code) {
    Value value = EVAL(frame, code);
    if (failed(value)) return value;
    if (value_is_number(value)) return value;
    (void)fail_kind("a weight", "a number", value);
    value_release(value);
    return fail_at(code->span);
}

static uint32_t weight_add(Weights *weights, Weight weight) {
    list_push(weights->values.as.list, weight.value);
    VECTOR_PUSH(&weights->parts, weight.part);
    return (uint32_t)weights->values.as.list->count - 1;
}

static void weight_replace(Weights *weights, uint32_t number, Weight weight) {
    Value *place = &weights->values.as.list->items[number], old = *place;
    *place = weight.value;
    weights->parts.items[number] = weight.part;
    value_release(old);
}

uint64_t weight_group_new(Reasoner *reasoner) {
    return ++reasoner->weights.groups;
}

uint64_t weight_group(void *reasoner, uint32_t number) {
    return ((const Reasoner *)reasoner)->weights.parts.items[number].group;
}

static FactWeights *weights_of(Weights *weights, const Relation *relation) {
    for (size_t i = 0; i < weights->facts.count; i++)
        if (weights->facts.items[i].relation == relation) return &weights->facts.items[i];
    return NULL;
}

void weight_set_fact(Reasoner *reasoner, const Relation *relation, const Datum *values,
                     Weight weight) {
    Weights *weights = &reasoner->weights;
    FactWeights *facts = weights_of(weights, relation);
    uint32_t row = facts ? table_find(facts->rows, values) : ROW_NONE;
    if (row != ROW_NONE) {
        weight_replace(weights, facts->numbers.items[row], weight);
        return;
    }
    if (weight.value.kind == VALUE_ABSENT) return;
    if (!facts) {
        FactWeights made = {.relation = relation,
                            .rows = table_new(relation->arity, columns_all(relation->arity))};
        VECTOR_PUSH(&weights->facts, made);
        facts = &weights->facts.items[weights->facts.count - 1];
    }
    table_append(facts->rows, values);
    VECTOR_PUSH(&facts->numbers, weight_add(weights, weight));
}

bool fact_assert(Reasoner *reasoner, Relation *relation, const Datum *values) {
    weight_set_fact(reasoner, relation, values, weight_whole(value_absent()));
    return fact_add(reasoner->store, relation, values);
}

void fact_retract(Reasoner *reasoner, Relation *relation, const Datum *values) {
    weight_set_fact(reasoner, relation, values, weight_whole(value_absent()));
    fact_remove(reasoner->store, relation, values);
}

void weight_set_rule(Reasoner *reasoner, SourcePos at, Value weight) {
    Weights *weights = &reasoner->weights;
    for (size_t i = 0; i < weights->rules.count; i++) {
        if (weights->rules.items[i].at != at) continue;
        weight_replace(weights, weights->rules.items[i].number, weight_whole(weight));
        return;
    }
    RuleWeight made = {at, weight_add(weights, weight_whole(weight))};
    VECTOR_PUSH(&weights->rules, made);
}

int64_t weight_of_fact(void *reasoner, const Relation *relation, const Datum *values) {
    Weights *weights = &((Reasoner *)reasoner)->weights;
    FactWeights *facts = weights_of(weights, relation);
    uint32_t row = facts ? table_find(facts->rows, values) : ROW_NONE;
    if (row == ROW_NONE) return -1;
    uint32_t number = facts->numbers.items[row];
    return weights->values.as.list->items[number].kind == VALUE_ABSENT ? -1 : (int64_t)number;
}

bool weight_in_relation(void *reasoner, const Relation *relation) {
    const FactWeights *facts = weights_of(&((Reasoner *)reasoner)->weights, relation);
    Datum values[ARITY_MAX];
    for (uint32_t row = 0; facts && row < facts->rows->count; row++) {
        table_read(facts->rows, row, values);
        if (!table_has(relation->facts, values)) continue;
        if (weight_of_fact(reasoner, relation, values) >= 0) return true;
    }
    return false;
}

int64_t weight_of_rule(void *reasoner, const Rule *rule) {
    const Weights *weights = &((Reasoner *)reasoner)->weights;
    for (size_t i = 0; i < weights->rules.count; i++)
        if (weights->rules.items[i].at == rule->span.begin) return weights->rules.items[i].number;
    return -1;
}

// --- numbers

static Status read_element(WeightReads *reads, Tensor *tensor, int64_t element, double *out) {
    size_t i = 0;
    while (i < reads->count && reads->items[i].tensor != tensor) i++;
    if (i == reads->count) {
        size_t count = (size_t)tensor_count(tensor);
        VECTOR_PUSH(reads, ((WeightRead){tensor, memory_allocate((count + 1) * sizeof(double))}));
        TRY(tensor_read_floats(tensor, reads->items[i].numbers));
    }
    ASSERT(element < tensor_count(tensor));
    *out = reads->items[i].numbers[element];
    return STATUS_OK;
}

Status weight_read(const Weights *weights, uint32_t number, WeightReads *reads, double *out) {
    Value value = weights->values.as.list->items[number];
    int64_t element = weights->parts.items[number].element;
    if (element >= 0) return read_element(reads, value.as.tensor, element, out);
    return value_to_double(value, "a weight", out);
}

void weight_reads_free(WeightReads *reads) {
    for (size_t i = 0; i < reads->count; i++) free(reads->items[i].numbers);
    VECTOR_FREE(reads);
}
