// Queries: the engine's answers as structs, or printed where nothing uses them.
#include <stdio.h>
#include <stdlib.h>

#include "base/output.h"
#include "eval/upper.h"
#include "learn/output.h"
#include "logic/evaluate.h"
#include "logic/explain.h"
#include "logic/proof.h"
#include "logic/query.h"
#include "reason/soft.h"
#include "value/print.h"

// A variable of the query that may have a value before it runs.
typedef struct InitialCode {
    const Code *code; // of an expression; or:
    const char *name; // a name that means a constant once a fact has mentioned it
    Span span;
} InitialCode;

typedef struct QueryCode {
    Code head;
    Reasoner *reasoner;
    Rule *rule;
    QueryKind kind;
    bool shown;              // nothing uses its value
    InitialCode *initials;   // one a variable
    const Code *program;     // the program block that weighs the answers, or NULL
    bool soft;               // by embeddings
    const Code *temperature; // of soft answers; NULL: 1
    const Code **closures;   // one a function of the conditions
    HostFunction *hosts;
    size_t host_count;
    const char *relation;
    const char **pieces;  // of the printed query: text, and after each but the last
    int *piece_variables; // the variable whose value stands there
    size_t piece_count;
} QueryCode;

// --- running

static Status initial_value(Frame *frame, const QueryCode *query, size_t variable, Datum *out) {
    const InitialCode *initial = &query->initials[variable];
    ConstantTable *constants = &query->reasoner->store->constants;
    *out = CONSTANT_NONE;
    if (initial->name) {
        Datum named = constant_find_text(constants, initial->name, strlen(initial->name));
        if (constant_is_known(constants, named)) *out = named;
    }
    if (!initial->code) return STATUS_OK;
    Value value = EVAL(frame, initial->code);
    if (failed(value)) return error_current()->code;
    Status status = constant_of_value(query->reasoner, value, "a query", out);
    value_release(value);
    if (status != STATUS_OK) {
        fail_help("a name that the program has stands for its value; another one is asked for");
        error_place(initial->span);
    }
    return status;
}

// Numbers given for float columns are floats there.
static void initial_fit(const QueryCode *query, Datum *initial) {
    const Goal *goal = &query->rule->goals[0];
    for (uint32_t i = 0; i < goal->relation->arity; i++) {
        if (goal->terms[i].kind != TERM_VARIABLE) continue;
        Datum *value = &initial[goal->terms[i].value];
        if (*value != CONSTANT_NONE)
            column_convert(query->reasoner->store, goal->relation, i, value);
    }
}

// The closures of the conditions are made; those of a run around this one are put aside.
typedef struct Hosted {
    Value made, before; // both lie on the stack, where the collector looks
} Hosted;

static void hosts_begin(Frame *frame, const QueryCode *query, Hosted *hosted) {
    for (size_t i = 0; i < query->host_count; i++) {
        hosted[i].before = query->hosts[i].function;
        hosted[i].made = query->hosts[i].function = EVAL(frame, query->closures[i]);
    }
}

static void hosts_end(const QueryCode *query, const Hosted *hosted) {
    for (size_t i = 0; i < query->host_count; i++) {
        query->hosts[i].function = hosted[i].before;
        value_release(hosted[i].made);
    }
}

static Status query_answer(const QueryCode *query, const Datum *initial, Table **out) {
    Store *store = query->reasoner->store;
    Relation *relation = query->rule->goals[0].relation;
    if (query->kind == QUERY_FORWARD) TRY(store_gather(store, relation));
    return store_query(store, query->rule, initial, out);
}

static Status query_find(Frame *frame, const QueryCode *query, const Datum *initial, Found *found) {
    Reasoner *reasoner = query->reasoner;
    if (found->explained && !query->program)
        return store_explain(reasoner->store, query->rule, initial, found->explained);
    if (!query->program) return query_answer(query, initial, &found->answers);
    SCOPED_VALUE(program) = EVAL(frame, query->program);
    if (failed(program)) return error_current()->code;
    return found->explained ? query_best(reasoner, query->rule, initial, program, found->explained)
                            : query_weigh(reasoner, query->rule, initial, program, found);
}

// At temperature 0 what holds has the score 1, and nothing else is an answer.
static Status query_exactly(const QueryCode *query, const Datum *initial, Found *found) {
    TRY(reasoner_enter(query->reasoner));
    Status status = query_answer(query, initial, &found->answers);
    reasoner_leave(query->reasoner);
    TRY(status);
    found->scores = value_list(found->answers->count);
    for (uint32_t i = 0; i < found->answers->count; i++)
        list_push(found->scores.as.list, value_float(1.0));
    return STATUS_OK;
}

static Status query_softly(Frame *frame, const QueryCode *query, const Datum *initial,
                           Found *found) {
    double temperature = 1.0;
    if (query->temperature) {
        Value value = EVAL(frame, query->temperature);
        if (failed(value)) return error_current()->code;
        Status status = value_to_double(value, "a temperature", &temperature);
        value_release(value);
        TRY(status);
    }
    if (!(temperature >= 0))
        return fail(STATUS_VALUE, "a temperature is not negative, but this one is %g", temperature);
    if (temperature == 0) return query_exactly(query, initial, found);
    return query_soften(query->reasoner, query->rule, initial, temperature, found);
}

static Status query_run(Frame *frame, const QueryCode *query, const Datum *initial, Found *found) {
    Reasoner *reasoner = query->reasoner;
    if (query->soft) return query_softly(frame, query, initial, found);
    TRY(reasoner_enter(reasoner));
    Hosted hosted[query->host_count + 1];
    hosts_begin(frame, query, hosted);
    Status status = query_find(frame, query, initial, found);
    hosts_end(query, hosted);
    reasoner_leave(reasoner);
    return status;
}

// --- answers as values

// The type of answers with these fields; one for all queries that give the same.
static const StructType *answer_type(Reasoner *reasoner, const char *name, const char *const *names,
                                     uint32_t count) {
    for (size_t i = 0; i < reasoner->answers.count; i++) {
        const StructType *type = reasoner->answers.items[i];
        bool same = strcmp(type->name, name) == 0 && type->field_count == count;
        for (uint32_t j = 0; same && j < count; j++)
            same = strcmp(type->field_names[j], names[j]) == 0;
        if (same) return type;
    }
    StructType *type = heap_allocate_rooted(sizeof *type + count * sizeof(char *));
    const char **fields = (const char **)(type + 1);
    for (uint32_t j = 0; j < count; j++) {
        char *copy = memory_copy_string(names[j], strlen(names[j]));
        VECTOR_PUSH(&reasoner->words, copy);
        fields[j] = copy;
    }
    char *title = memory_copy_string(name, strlen(name));
    VECTOR_PUSH(&reasoner->words, title);
    *type = (StructType){.name = title, .field_count = count, .field_names = fields};
    VECTOR_PUSH(&reasoner->answers, type);
    return type;
}

// The outputs without a value before the query ran: what the answers are about.
static uint32_t outputs_open(const QueryCode *query, const Datum *initial, Term *open,
                             uint32_t *columns) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < query->rule->arity; i++) {
        if (initial[query->rule->head[i].value] != CONSTANT_NONE) continue;
        open[count] = query->rule->head[i];
        columns[count++] = i;
    }
    return count;
}

// Of a query without variables: whether it holds, or what that weighs.
static Value ground_value(const Found *found) {
    if (found->scores.kind == VALUE_ABSENT) return value_bool(found->answers->count > 0);
    return found->answers->count > 0 ? value_retain(found->scores.as.list->items[0])
                                     : found->nothing;
}

static Value answers_value(const QueryCode *query, const Datum *initial, const Found *found) {
    Term open[VARIABLES_MAX];
    uint32_t columns[VARIABLES_MAX], count = outputs_open(query, initial, open, columns);
    const Table *answers = found->answers;
    bool weighed = found->scores.kind != VALUE_ABSENT;
    const char *names[VARIABLES_MAX + 1];
    if (count == 0) return ground_value(found);
    for (uint32_t i = 0; i < count; i++) names[i] = query->rule->variable_names[open[i].value];
    names[count] = "score";
    const StructType *type = answer_type(query->reasoner, query->relation, names, count + weighed);
    Value list = value_list(answers->count);
    for (uint32_t row = 0; row < answers->count; row++) {
        Value answer = value_struct(type);
        for (uint32_t i = 0; i < count; i++)
            answer.as.instance->fields[i] =
                value_of_constant(query->reasoner, table_at(answers, row, columns[i]));
        if (weighed)
            answer.as.instance->fields[count] = value_retain(found->scores.as.list->items[row]);
        list_push(list.as.list, answer);
    }
    return list;
}

// --- answers printed

static void query_print(const QueryCode *query, const char *title, const Datum *initial,
                        Text *out) {
    const ConstantTable *constants = &query->reasoner->store->constants;
    text_append_string(out, title);
    for (size_t i = 0; i < query->piece_count; i++) {
        text_append_string(out, query->pieces[i]);
        if (i + 1 < query->piece_count)
            constant_print(constants, initial[query->piece_variables[i]], out);
    }
    text_append_char(out, '\n');
}

// What the answers of a query are about: its variables without a value.
typedef struct Open {
    Term terms[VARIABLES_MAX];
    uint32_t columns[VARIABLES_MAX], count;
} Open;

static Status answer_print(const QueryCode *query, const Open *open, const Found *found,
                           uint32_t row, Text *out) {
    bool weighed = found->scores.kind != VALUE_ABSENT;
    text_format(out, open->count == 0 && !weighed ? "  Solution %u: Yes\n" : "  Solution %u:\n",
                row + 1);
    for (uint32_t i = 0; i < open->count; i++) {
        text_format(out, "    %s = ", query->rule->variable_names[open->terms[i].value]);
        constant_print(&query->reasoner->store->constants,
                       table_at(found->answers, row, open->columns[i]), out);
        text_append_char(out, '\n');
    }
    if (!weighed) return STATUS_OK;
    text_append_string(out, "    score = ");
    Status status = value_print(found->scores.as.list->items[row], false, out);
    text_append_char(out, '\n');
    return status;
}

static Status answers_show(const QueryCode *query, const Datum *initial, const Found *found) {
    enum { CHUNK = 1 << 16 };
    Open open;
    const Table *answers = found->answers;
    open.count = outputs_open(query, initial, open.terms, open.columns);
    SCOPED_TEXT(text);
    Status status = STATUS_OK;
    query_print(query, "Query: ", initial, &text);
    if (answers->count == 0)
        text_append_string(&text, "  No solutions found\n");
    else
        text_format(&text, "  Found %u solution(s)\n", answers->count);
    for (uint32_t row = 0; row < answers->count && status == STATUS_OK; row++) {
        status = answer_print(query, &open, found, row, &text);
        if (text.length < CHUNK || status != STATUS_OK) continue;
        status = output_write(output_stream(), &text);
        text_clear(&text);
    }
    if (status == STATUS_OK) status = output_write(output_stream(), &text);
    return status;
}

static Status query_begin(Frame *frame, const QueryCode *query, Datum *initial, Found *found) {
    Status status = STATUS_OK;
    for (uint32_t i = 0; i < query->rule->variable_count && status == STATUS_OK; i++)
        status = initial_value(frame, query, i, &initial[i]);
    if (status == STATUS_OK) {
        initial_fit(query, initial);
        status = query_run(frame, query, initial, found);
    }
    if (status != STATUS_OK && frame->control == CONTROL_NONE) error_place(query->head.span);
    return status;
}

// False: it unwinds. What is found is released with found_free.
static bool query_ask(Frame *frame, const QueryCode *query, Datum *initial, Found *found) {
    *found = (Found){.scores = value_absent(), .nothing = value_float(0.0)};
    return query_begin(frame, query, initial, found) == STATUS_OK;
}

static void found_free(Found *found) {
    table_free(found->answers);
    value_release(found->scores);
}

static Value eval_query(Frame *frame, const Code *code) {
    const QueryCode *query = (const QueryCode *)code;
    Datum initial[VARIABLES_MAX];
    Found found;
    if (!query_ask(frame, query, initial, &found)) return value_fail();
    Value value = answers_value(query, initial, &found);
    found_free(&found);
    return value;
}

// How many answers there are, without their values; of a query without variables what it is.
static Value eval_query_count(Frame *frame, const Code *code) {
    const QueryCode *query = (const QueryCode *)code;
    Datum initial[VARIABLES_MAX];
    Term open[VARIABLES_MAX];
    uint32_t columns[VARIABLES_MAX];
    Found found;
    if (!query_ask(frame, query, initial, &found)) return value_fail();
    bool ground = outputs_open(query, initial, open, columns) == 0;
    Value value = ground ? ground_value(&found) : value_int(found.answers->count);
    found_free(&found);
    return value;
}

static Value eval_query_shown(Frame *frame, const Code *code) {
    const QueryCode *query = (const QueryCode *)code;
    Datum initial[VARIABLES_MAX];
    Found found;
    if (!query_ask(frame, query, initial, &found)) return value_fail();
    Status status = answers_show(query, initial, &found);
    found_free(&found);
    return status == STATUS_OK ? value_none() : fail_at(code->span);
}

// --- proofs

// The values of the query's atom, CONSTANT_NONE where it is open.
static void atom_values(const QueryCode *query, const Datum *initial, Datum *values) {
    const Goal *goal = &query->rule->goals[0];
    for (uint32_t i = 0; i < goal->relation->arity; i++)
        values[i] = goal->terms[i].kind == TERM_CONSTANT ? goal->terms[i].value
                                                         : initial[goal->terms[i].value];
}

static Status proofs_print(const QueryCode *query, const Datum *initial, const Table *rows,
                           Text *out) {
    Store *store = query->reasoner->store;
    Relation *relation = query->rule->goals[0].relation;
    Datum values[ARITY_MAX];
    atom_values(query, initial, values);
    text_append_string(out, query->kind == QUERY_WHY ? "Why: " : "Why not: ");
    atom_print(store, relation, values, out);
    text_append_char(out, '\n');
    if (query->kind == QUERY_WHY_NOT && rows->count > 0) text_append_string(out, "  It holds\n");
    if (query->kind == QUERY_WHY && rows->count == 0)
        text_append_string(out, "  It does not hold; `why not` tells more\n");
    if (query->kind == QUERY_WHY_NOT && rows->count == 0)
        return store_refute(store, relation, values, out);
    return query->kind == QUERY_WHY ? store_prove(store, relation, values, rows, out) : STATUS_OK;
}

// As a value the text, else printed. The text is released.
static Value text_result(const QueryCode *query, Status status, Text *text) {
    Value value = value_none();
    if (status == STATUS_OK && query->shown) status = output_write(output_stream(), text);
    if (status == STATUS_OK && !query->shown) value = value_string(text_get(text), text->length);
    text_free(text);
    return status == STATUS_OK ? value : fail_at(query->head.span);
}

static Value eval_why(Frame *frame, const Code *code) {
    const QueryCode *query = (const QueryCode *)code;
    Datum initial[VARIABLES_MAX];
    Found found;
    if (!query_ask(frame, query, initial, &found)) return value_fail();
    Text text = {0};
    Status status = proofs_print(query, initial, found.answers, &text);
    found_free(&found);
    return text_result(query, status, &text);
}

static Value eval_explain(Frame *frame, const Code *code) {
    const QueryCode *query = (const QueryCode *)code;
    Datum initial[VARIABLES_MAX];
    SCOPED_TEXT(text);
    SCOPED_TEXT(steps);
    Found found = {.scores = value_absent(), .explained = &steps};
    Status status = query_begin(frame, query, initial, &found);
    if (status == STATUS_OK)
        query_print(query, query->program ? "Why: " : "Explain: ", initial, &text);
    text_append(&text, text_get(&steps), steps.length);
    if (status == STATUS_OK) return text_result(query, status, &text);
    return value_fail();
}

// --- lowering

// The text of the query as it is written, cut where a value of the program stands.
static void lower_pieces(Lowering *lowering, QueryCode *code, const Node *node) {
    const AtomNode *atom = &node->as.query.clause->atom;
    code->pieces = lower_array(lowering, atom->count + 1, sizeof *code->pieces);
    code->piece_variables = lower_array(lowering, atom->count + 1, sizeof *code->piece_variables);
    SCOPED_TEXT(text);
    size_t length;
    bool bare = atom->call->as.call.arguments_span.end == 0;
    const Node *program = node->as.query.program;
    const char *block = program ? source_text(program->span, &length) : NULL;
    if (program) text_format(&text, "%.*s.", (int)length, block);
    text_format(&text, "%s%s", code->relation, bare ? "" : "(");
    for (size_t i = 0; i < atom->count && !bare; i++) {
        const TermNode *term = &atom->terms[i];
        if (i > 0) text_append_string(&text, ", ");
        if (term->kind == TERM_NODE_VALUE) {
            code->piece_variables[code->piece_count] = term->variable;
            code->pieces[code->piece_count++] = lower_text(lowering, "%s", text_get(&text));
            text_clear(&text);
        } else {
            const char *source = source_text(term->value->span, &length);
            text_append(&text, source, length);
        }
    }
    if (!bare) text_append_char(&text, ')');
    const Clause *clause = node->as.query.clause;
    for (size_t i = 0; i < clause->goal_count; i++) {
        const char *source = source_text(clause->goals[i].span, &length);
        text_append_string(&text, i == 0 ? " where " : ", ");
        text_append(&text, source, length);
    }
    code->pieces[code->piece_count++] = lower_text(lowering, "%s", text_get(&text));
}

static void lower_values(Lowering *lowering, QueryCode *code, const AtomNode *atom) {
    for (size_t i = 0; i < atom->count; i++) {
        const TermNode *term = &atom->terms[i];
        if (term->kind != TERM_NODE_VALUE) continue;
        code->initials[term->variable].code = lower(lowering, term->value);
        code->initials[term->variable].span = term->value->span;
    }
}

static void lower_initials(Lowering *lowering, QueryCode *code, const Clause *clause) {
    for (size_t i = 0; i < clause->variables.count; i++)
        code->initials[i].name = lower_word(lowering, &clause->variables.items[i]);
    lower_values(lowering, code, &clause->atom);
    for (size_t i = 0; i < clause->goal_count; i++)
        if (clause->goals[i].kind <= GOAL_NODE_NOT)
            lower_values(lowering, code, &clause->goals[i].atom);
}

static void lower_hosts(Lowering *lowering, QueryCode *code) {
    code->hosts = lower_array(lowering, code->rule->goal_count, sizeof *code->hosts);
    code->closures = lower_array(lowering, code->rule->goal_count, sizeof *code->closures);
    for (uint32_t i = 0; i < code->rule->goal_count; i++) {
        Expression *expression = code->rule->goals[i].left;
        if (!expression || expression->kind != ARITHMETIC_HOST) continue;
        const Node *lambda = expression->host;
        HostFunction *host = &code->hosts[code->host_count];
        code->closures[code->host_count++] =
            lower_closure(lowering, lambda->as.function, lambda->span);
        host->function = value_absent();
        host->count = lambda->as.function->parameter_count;
        expression->host = host;
    }
}

void lower_query_counted(const Code *query) {
    if (query->eval == eval_query) ((Code *)(uintptr_t)query)->eval = eval_query_count;
}

const Code *lower_query(Lowering *lowering, const Node *node) {
    const Clause *clause = node->as.query.clause;
    Eval eval = node->as.query.statement ? eval_query_shown : eval_query;
    if (query_is_about_rows(node->as.query.query))
        eval = node->as.query.query == QUERY_EXPLAIN || node->as.query.program ? eval_explain
                                                                               : eval_why;
    QueryCode *code = LOWER_NEW(lowering, QueryCode, eval, node->span);
    code->reasoner = reasoner_get(lowering->interp);
    code->kind = node->as.query.query;
    code->shown = node->as.query.statement;
    code->relation = lower_word(lowering, &clause->atom.binding->word);
    code->rule = rule_of_query(code->reasoner->store, node);
    interp_keep_rule(lowering->interp, code->rule);
    code->initials = lower_array(lowering, code->rule->variable_count + 1, sizeof *code->initials);
    lower_initials(lowering, code, clause);
    lower_hosts(lowering, code);
    code->program = lower(lowering, node->as.query.program);
    code->soft = code->kind == QUERY_GRADIENT || node->as.query.temperature;
    code->temperature = lower(lowering, node->as.query.temperature);
    lower_pieces(lowering, code, node);
    return &code->head;
}

typedef struct InferCode {
    Code head;
    const Code **queries;
    size_t count;
} InferCode;

static Value eval_infer(Frame *frame, const Code *code) {
    const InferCode *infer = (const InferCode *)code;
    for (size_t i = 0; i < infer->count; i++) {
        SCOPED_VALUE(value) = EVAL(frame, infer->queries[i]);
        if (failed(value)) return value;
    }
    return value_none();
}

const Code *lower_infer(Lowering *lowering, const Node *node) {
    InferCode *code = LOWER_NEW(lowering, InferCode, eval_infer, node->span);
    code->queries = lower_list(lowering, &node->as.inferred);
    code->count = node->as.inferred.count;
    return &code->head;
}
