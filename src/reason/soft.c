// Queries by embeddings: the rows of a relation superposed in one matrix, EmbR[i, j] = R[x, y] E[x,
// i] E[y, j], and read again. What reads as more than a half is an answer; its score is
// sigmoid(reading / temperature).
#include <stdlib.h>

#include "reason/embedding.h"
#include "reason/soft.h"
#include "tensor/compose.h"
#include "tensor/index.h"

enum { COLUMNS = 2 };
static const double threshold = 0.5;

typedef struct Soft {
    Reasoner *reasoner;
    const Goal *goal;
    Relation *types[COLUMNS];
    int64_t places[COLUMNS]; // PLACE_ALL: open
    Tensor *readings, *scores;
    double *numbers; // of the readings
} Soft;

static Status find_places(Soft *soft, const Datum *initial) {
    for (uint32_t i = 0; i < COLUMNS; i++) {
        const Term *term = &soft->goal->terms[i];
        Datum value = term->kind == TERM_CONSTANT   ? term->value
                      : term->kind == TERM_VARIABLE ? initial[term->value]
                                                    : CONSTANT_NONE;
        Table *members;
        soft->places[i] = PLACE_ALL;
        soft->types[i] = column_type(soft->goal->relation, i);
        if (!soft->types[i])
            return fail(STATUS_TYPE,
                        "column %u of %s is not of an entity type, and has no embedding", i + 1,
                        soft->goal->relation->name);
        if (value == CONSTANT_NONE) continue;
        TRY(reasoner_enter(soft->reasoner));
        Status status = type_members(soft->reasoner->store, soft->types[i], &members);
        reasoner_leave(soft->reasoner);
        TRY(status);
        uint32_t row = table_find(members, &value);
        soft->places[i] = row == ROW_NONE ? -1 : (int64_t)row;
    }
    return STATUS_OK;
}

// x @ transpose(y) or x @ y
static Status product(Tensor *x, Tensor *y, bool transposed, Tensor **out) {
    SCOPED_TENSOR(turned);
    if (transposed) TRY(op_with(OP_transpose, &y, 1, NULL, &turned));
    return op_with(OP_matmul, (Tensor *const[]){x, transposed ? turned : y}, 2, NULL, out);
}

static Status make_readings(Soft *soft, double temperature) {
    SCOPED_TENSOR(left);
    SCOPED_TENSOR(right);
    SCOPED_TENSOR(rows);
    SCOPED_TENSOR(numbers);
    SCOPED_TENSOR(turned);
    SCOPED_TENSOR(half);
    SCOPED_TENSOR(matrix);
    SCOPED_TENSOR(read);
    SCOPED_TENSOR(scaled);
    Handle relation = {.payload = soft->goal->relation};
    TRY(embedding_of_type(soft->reasoner, soft->goal->relation, soft->types[0], &left));
    TRY(embedding_of_type(soft->reasoner, soft->goal->relation, soft->types[1], &right));
    TRY(relation_tensor.read(&relation, (const int64_t[]){PLACE_ALL, PLACE_ALL}, &rows));
    TRY(compose_floating(rows, &numbers));
    TRY(op_with(OP_transpose, &left, 1, NULL, &turned));
    TRY(product(turned, numbers, false, &half));
    TRY(product(half, right, false, &matrix)); // EmbR
    TRY(product(left, matrix, false, &read));
    TRY(product(read, right, true, &soft->readings));
    TRY(compose_with_number(OP_div, soft->readings, temperature, &scaled));
    return op_with(OP_sigmoid, &scaled, 1, NULL, &soft->scores);
}

static Status add_answer(const Soft *soft, const Rule *rule, const int64_t *places, Table *answers,
                         List *scores) {
    Datum variables[VARIABLES_MAX] = {0}, row[ARITY_MAX];
    Tensor *score;
    for (uint32_t i = 0; i < COLUMNS; i++) {
        const Term *term = &soft->goal->terms[i];
        Datum value = table_at(relation_table(soft->types[i]), (uint32_t)places[i], 0);
        if (term->kind != TERM_VARIABLE) continue;
        Datum *variable = &variables[term->value];
        if (*variable != CONSTANT_NONE && *variable != value) return STATUS_OK; // R(X, X)
        *variable = value;
    }
    for (uint32_t i = 0; i < rule->arity; i++) row[i] = variables[rule->head[i].value];
    if (table_has(answers, row)) return STATUS_OK; // of `_`
    IndexItem items[] = {{.kind = INDEX_INTEGER, .integer = places[0]},
                         {.kind = INDEX_INTEGER, .integer = places[1]}};
    TRY(index_get(soft->scores, items, COLUMNS, &score));
    table_append(answers, row);
    list_push(scores, value_tensor(score));
    return STATUS_OK;
}

static Status collect_answers(Soft *soft, const Rule *rule, Table *answers, List *scores) {
    const int64_t *dims = soft->readings->view.dims;
    bool whole = soft->places[0] != PLACE_ALL && soft->places[1] != PLACE_ALL;
    soft->numbers = memory_allocate_zeroed((size_t)(dims[0] * dims[1]) + 1, sizeof(double));
    TRY(tensor_read_floats(soft->readings, soft->numbers));
    for (int64_t n = 0; n < dims[0] * dims[1]; n++) {
        int64_t places[] = {n / dims[1], n % dims[1]};
        bool fits = true;
        for (int i = 0; i < COLUMNS; i++)
            fits &= soft->places[i] == PLACE_ALL || soft->places[i] == places[i];
        if (fits && (whole || soft->numbers[n] > threshold))
            TRY(add_answer(soft, rule, places, answers, scores));
    }
    return STATUS_OK;
}

Status query_soften(Reasoner *reasoner, const Rule *rule, const Datum *initial, double temperature,
                    Found *out) {
    Soft soft = {.reasoner = reasoner, .goal = &rule->goals[0]};
    Status status = find_places(&soft, initial);
    if (status == STATUS_OK) status = make_readings(&soft, temperature);
    out->answers = table_new(rule->arity, columns_all(rule->arity));
    out->scores = value_list(0);
    if (status == STATUS_OK)
        status = collect_answers(&soft, rule, out->answers, out->scores.as.list);
    free(soft.numbers);
    tensor_release(soft.scores);
    tensor_release(soft.readings);
    if (status == STATUS_OK) return STATUS_OK;
    table_free(out->answers);
    out->answers = NULL;
    value_release(out->scores);
    out->scores = value_absent();
    return status;
}
