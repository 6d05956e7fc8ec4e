// Functions that are given to builtins: whether they take as many arguments as they will be called
// with.
#include <string.h>

#include "base/source.h"
#include "check/infer/shape_rule.h"

typedef enum Calls { CALLS_ALWAYS, CALLS_EACH, CALLS_FOLD } Calls;

typedef struct Callback {
    const char *parameter; // NULL: the row has no line
    size_t count;
    Calls calls;
} Callback;

static const Callback callbacks[FUNCTION_ID_COUNT] = {
#define CALLBACK(id, name, count, how) [FUNCTION_ID_##id] = {#name, count, CALLS_##how},
#include "catalog/callbacks.def"
#undef CALLBACK
};

static bool function_takes(const FunctionNode *function, size_t count) {
    size_t required = 0;
    for (size_t i = 0; i < function->parameter_count; i++)
        required += !function->parameters[i].fallback;
    return count >= required && count <= function->parameter_count;
}

static bool builtin_takes(const Builtin *row, size_t count) {
    for (; row; row = row->next_overload) {
        const Signature *signature = &row->signature;
        size_t required = 0;
        bool rest = false;
        for (int i = 0; i < signature->count; i++) {
            const Param *param = &signature->params[i];
            rest |= param->rest;
            required += !param->rest && param->default_kind == DEFAULT_REQUIRED;
        }
        if (count >= required && (rest || count <= (size_t)signature->count)) return true;
    }
    return false;
}

static bool is_empty(const Inference *in, const Fact *x) {
    if (fact_is_array(x)) return x->as.tensor.type.shape.dims[0] == 0;
    bool list = x->kind == FACT_LIST || x->kind == FACT_TUPLE;
    return list && infer_members_known(in, x) && x->as.list.count == 0;
}

// Whether the builtin certainly calls the function; else there may be no element to call it with.
static bool certainly_calls(const RuleCall *call, Calls calls) {
    if (calls == CALLS_ALWAYS) return true;
    if (calls == CALLS_FOLD && !rule_argument(call, "initial")) return false;
    const Fact *x = rule_argument(call, "x");
    bool some = false;
    if (x) (void)infer_element(call->in, x, &some);
    return some;
}

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

static void fail_function(const RuleCall *call, size_t count, const FunctionNode *function) {
    size_t required = 0, most = function->parameter_count, length;
    for (size_t i = 0; i < most; i++) required += !function->parameters[i].fallback;
    SCOPED_TEXT(takes);
    text_format(&takes, required == most ? "%zu" : "%zu to %zu", required, most);
    (void)fail(STATUS_ARITY, "%s calls its function with %zu argument%s, but %s%s takes %s",
               call->name, count, plural(count), function->name.text ? "fn " : "",
               function->name.text ? function->name.text : "this one", text_get(&takes));
    const char *head = source_text(function->head, &length);
    if (count == 1 && required == 2)
        (void)fail_help("an element that is a tuple is one argument: fn(pair) { let (a, b) = pair; "
                        "... }");
    else if (length > 0 && length <= 60 && !memchr(head, '\n', length))
        (void)fail_help("it is %.*s", (int)length, head);
}

static void fail_builtin(const RuleCall *call, size_t count, const Builtin *row) {
    (void)fail(STATUS_ARITY, "%s calls its function with %zu argument%s, which %s cannot take",
               call->name, count, plural(count), row->signature.name);
    (void)fail_help("it is %s", row->signature_text);
}

// Records why the function cannot be called so; false where it can, or where that is not known.
static bool is_misfit(const RuleCall *call, size_t count, const Fact *function) {
    if (function->kind == FACT_FUNCTION && !function_takes(function->as.function.node, count))
        fail_function(call, count, function->as.function.node);
    else if (function->kind == FACT_BUILTIN && !builtin_takes(function->as.builtin, count))
        fail_builtin(call, count, function->as.builtin);
    else
        return false;
    return true;
}

void infer_callback(const RuleCall *call) {
    if (call->row->kind != ROW_FUNCTION) return;
    const Callback *callback = &callbacks[call->row->id];
    if (!callback->parameter) return;
    int at = catalog_parameter(&call->row->signature, callback->parameter);
    ASSERT(at >= 0);
    const Operand *given = call->values[at];
    const Fact *x = callback->calls == CALLS_ALWAYS ? NULL : rule_argument(call, "x");
    if (!given || (x && is_empty(call->in, x))) return;
    if (!is_misfit(call, callback->count, given->fact)) return;
    bool doubtful = !certainly_calls(call, callback->calls);
    Span place = given->node ? given->node->span : given->span;
    call->in->doubt += doubtful;
    infer_report(call->in, place, NULL, 0);
    call->in->doubt -= doubtful;
}
