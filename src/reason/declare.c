// The store of an interpreter, and what a program declares in it before anything runs: entity
// types, relations, rules. Functions that rules call are called from here.
#include <stdlib.h>

#include "device/settings.h"
#include "device/work.h"
#include "eval/invoke.h"
#include "eval/upper.h"
#include "logic/analyse.h"
#include "reason/embedding.h"
#include "value/items.h"

// --- the host

static Value host_call(const Reasoner *reasoner, const HostFunction *host, const Datum *arguments) {
    Value values[VARIABLES_MAX];
    for (size_t i = 0; i < host->count; i++) values[i] = value_of_constant(reasoner, arguments[i]);
    Value result = interp_call(reasoner->interp, host->function, values, host->count);
    arguments_release(values, host->count);
    return result;
}

static Status call_status(const Reasoner *reasoner, Value value) {
    if (!failed(value)) return STATUS_OK;
    return reasoner->interp->exit_requested ? STATUS_INTERRUPT : error_current()->code;
}

static Status host_evaluate(void *context, void *host, const Datum *arguments, Datum *out) {
    Reasoner *reasoner = context;
    SCOPED_VALUE(value) = host_call(reasoner, host, arguments);
    TRY(call_status(reasoner, value));
    return constant_of_value(reasoner, value, "a relation", out);
}

static Status host_test(void *context, void *host, const Datum *arguments, bool *out) {
    SCOPED_VALUE(value) = host_call(context, host, arguments);
    TRY(call_status(context, value));
    return value_to_bool(value, "a condition", out);
}

static Status host_members(void *context, void *host, const Datum *arguments, DatumList *out) {
    Reasoner *reasoner = context;
    Value value = host_call(reasoner, host, arguments);
    TRY(call_status(reasoner, value));
    SCOPED_VALUE(items) = value_to_items(value, "what stands behind `in`");
    value_release(value);
    if (failed(items)) return error_current()->code;
    Status status = STATUS_OK;
    for (size_t i = 0; i < items.as.list->count && status == STATUS_OK; i++) {
        Datum constant;
        status = constant_of_value(reasoner, items.as.list->items[i], "a relation", &constant);
        if (status == STATUS_OK) VECTOR_PUSH(out, constant);
    }
    return status;
}

static Status host_interrupted(void *context) {
    (void)context;
    if (LIKELY(!interp_interrupts())) return STATUS_OK;
    (void)interp_fail_interrupted((Span){0, 0});
    return error_current()->code;
}

// Bits take no more than the memory limit, either, nor do rows of recursion without a bound.
static void room_set(Store *store) {
    CellsRoom *room = &store->room;
    DeviceSettings settings; // malformed ones were reported when the program began
    if (device_settings_read(&settings) != STATUS_OK) return;
    store->limit = settings.limit_bytes;
    if (store->limit > 0 && store->limit < room->bytes_most)
        room->bytes_most = settings.limit_bytes;
    room->wanted = (Representation)settings.test_representation;
}

Reasoner *reasoner_get(Interp *interp) {
    if (interp->reasoner) return interp->reasoner;
    Reasoner *reasoner = memory_allocate_zeroed(1, sizeof *reasoner);
    enum { SHARE_FROM = 1 << 14 };
    StoreHost host = {reasoner,
                      host_evaluate,
                      host_test,
                      host_members,
                      host_interrupted,
                      device_has_threads() ? device_share : NULL,
                      device_is_interrupted,
                      SHARE_FROM};
    reasoner->interp = interp;
    reasoner->store = store_new(&host);
    room_set(reasoner->store);
    interp->reasoner = reasoner;
    weights_start(reasoner);
    return reasoner;
}

void reasoner_free(Interp *interp) {
    Reasoner *reasoner = interp->reasoner;
    if (!reasoner) return;
    store_free(reasoner->store);
    for (size_t i = 0; i < reasoner->answers.count; i++) heap_free(reasoner->answers.items[i]);
    for (size_t i = 0; i < reasoner->words.count; i++) free(reasoner->words.items[i]);
    for (size_t i = 0; i < reasoner->hosts.count; i++) free(reasoner->hosts.items[i]);
    VECTOR_FREE(&reasoner->answers);
    VECTOR_FREE(&reasoner->words);
    VECTOR_FREE(&reasoner->hosts);
    weights_free(&reasoner->weights);
    VECTOR_FREE(&reasoner->embeddings);
    free(reasoner);
    interp->reasoner = NULL;
}

void reasoner_keep(Interp *interp) {
    store_mark(reasoner_get(interp)->store);
}

void reasoner_undo(Interp *interp) {
    store_undo(reasoner_get(interp)->store);
}

Status reasoner_enter(Reasoner *reasoner) {
    if (reasoner->busy)
        return fail(STATUS_VALUE,
                    "a function that a rule or query calls cannot ask or change relations");
    reasoner->busy = true;
    return STATUS_OK;
}

void reasoner_leave(Reasoner *reasoner) {
    reasoner->busy = false;
}

// --- declarations

static Binding *declared_binding(const Node *node) {
    Binding *binding = node->kind == NODE_ENTITY     ? node->as.entity.binding
                       : node->kind == NODE_RELATION ? node->as.relation.binding
                                                     : node->as.clause->atom.binding;
    return binding->declaration == node ? binding : NULL; // else the rule of another's relation
}

static void declare_binding(Lowering *lowering, Binding *binding) {
    binding->relation = relation_of_declaration(reasoner_get(lowering->interp)->store, binding);
    Value value = value_of_relation(binding->relation);
    Value *place = heap_allocate_rooted(sizeof *place); // the code's arena is not looked into
    *place = value;
    interp_keep_rooted(lowering->interp, place);
    list_push(lowering->interp->store->roots->as.list, value);
    binding->lowered = place;
}

static void declare_types(void *context, Node *node) {
    if (node->kind == NODE_ENTITY) declare_binding(context, declared_binding(node));
}

static void declare_relations(void *context, Node *node) {
    Binding *binding = node->kind == NODE_ENTITY ? NULL : declared_binding(node);
    if (binding) declare_binding(context, binding);
}

// The engine is given functions where the check left their syntax.
static void rule_take_functions(Lowering *lowering, Rule *rule) {
    Reasoner *reasoner = reasoner_get(lowering->interp);
    for (uint32_t i = 0; i < rule->goal_count; i++) {
        Expression *expression = rule->goals[i].left;
        if (!expression || expression->kind != ARITHMETIC_HOST) continue;
        const Node *lambda = expression->host;
        HostFunction *host = memory_allocate_zeroed(1, sizeof *host);
        Frame frame = {.interp = lowering->interp};
        Lowering top = *lowering;
        top.function = NULL;
        top.code = NULL;
        host->function = EVAL(&frame, lower_closure(&top, lambda->as.function, lambda->span));
        host->count = lambda->as.function->parameter_count;
        list_push(lowering->interp->store->roots->as.list, host->function);
        VECTOR_PUSH(&reasoner->hosts, host);
        expression->host = host;
    }
}

static void declare_rule(void *context, Node *node) {
    Lowering *lowering = context;
    if (node->kind != NODE_RULE) return;
    Store *store = reasoner_get(lowering->interp)->store;
    Rule *rule = rule_of_clause(store, node->as.clause, node->span);
    rule_take_functions(lowering, rule);
    store_add_rule(store, rule);
}

typedef struct RuleCode {
    Code head;
    const Code *weight; // or NULL
} RuleCode;

// The check has seen the rules of a file together; those of a session come one by one.
static Value eval_rule(Frame *frame, const Code *code) {
    const RuleCode *rule = (const RuleCode *)code;
    Reasoner *reasoner = reasoner_get(frame->interp);
    Span span = code->span;
    Status status = store_analyse(reasoner->store, &span);
    if (status != STATUS_OK) return fail_at(span);
    if (!rule->weight) return value_none();
    Value weight = weight_eval(frame, rule->weight);
    if (failed(weight)) return weight;
    weight_set_rule(reasoner, code->span.begin, weight);
    return value_none();
}

const Code *lower_rule(Lowering *lowering, const Node *node) {
    RuleCode *code = LOWER_NEW(lowering, RuleCode, eval_rule, node->span);
    code->weight = lower(lowering, node->as.clause->weight);
    return &code->head;
}

// relation R(x: T, y: T) embed float32[64]: made where the statement stands.
typedef struct EmbedCode {
    Code head;
    Relation *relation;
    int64_t dimension;
    bool learnable;
} EmbedCode;

static Value eval_embed(Frame *frame, const Code *code) {
    const EmbedCode *embed = (const EmbedCode *)code;
    relation_embed(reasoner_get(frame->interp), embed->relation, embed->dimension,
                   embed->learnable);
    return value_none();
}

const Code *lower_relation(Lowering *lowering, const Node *node) {
    const TypeNode *type = node->as.relation.embed;
    if (!type) return lower_nothing(lowering, node);
    EmbedCode *code = LOWER_NEW(lowering, EmbedCode, eval_embed, node->span);
    code->relation = node->as.relation.binding->relation;
    code->dimension = type->dimensions[0].number;
    code->learnable = type->learnable;
    return &code->head;
}

void lower_logic_declare(Lowering *lowering, Program *program) {
    LogicVisit *const visits[] = {declare_types, declare_relations};
    for (size_t i = 0; i < sizeof visits / sizeof *visits; i++)
        logic_visit(program, visits[i], lowering);
}

void lower_logic_rules(Lowering *lowering, Program *program) {
    logic_visit(program, declare_rule, lowering);
}
