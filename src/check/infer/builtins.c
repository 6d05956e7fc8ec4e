// Calls of builtins: which form is meant, as far as the facts decide it, and its rule of shapes.
#include <stdio.h>

#include "base/placeholder.h"
#include "check/infer/shape_rule.h"

typedef enum Answer { ANSWER_NO, ANSWER_MAYBE, ANSWER_YES } Answer;

#define KIND(kind) (1u << FACT_##kind)
#define CONVERTIBLE (KIND(INT) | KIND(FLOAT) | KIND(BOOL) | KIND(LIST) | KIND(TUPLE) | KIND(RANGE))

// What a kind of parameter takes, as bind.c of the interpreter decides it; `exact` kinds choose
// among forms first.
static const struct {
    const char *wanted;
    uint32_t exact, also;
} acceptance[] = {
    [PARAM_ANY] = {"a value", ~0u, 0},
    [PARAM_TENSOR] = {"a tensor", KIND(TENSOR), CONVERTIBLE},
    [PARAM_TENSORS] = {"a list of tensors", KIND(LIST) | KIND(TUPLE), KIND(TENSOR)},
    [PARAM_NUMBER] = {"a number", KIND(INT) | KIND(FLOAT), KIND(TENSOR)},
    [PARAM_INT] = {"an integer", KIND(INT), KIND(FLOAT) | KIND(TENSOR)},
    [PARAM_BOOL] = {"a bool", KIND(BOOL), KIND(TENSOR)},
    [PARAM_STRING] = {"a string", KIND(STRING), 0},
    [PARAM_SHAPE] = {"a list of integers", KIND(LIST) | KIND(TUPLE) | KIND(RANGE) | KIND(TENSOR),
                     KIND(INT) | KIND(FLOAT)},
    [PARAM_INTS] = {"an integer or a list of them",
                    KIND(INT) | KIND(LIST) | KIND(TUPLE) | KIND(RANGE) | KIND(TENSOR), KIND(FLOAT)},
    [PARAM_LIST] = {"a list", KIND(LIST) | KIND(TUPLE), 0},
    [PARAM_DICT] = {"a dictionary", KIND(DICT), 0},
    [PARAM_FUNCTION] = {"a function", KIND(FUNCTION) | KIND(BUILTIN), KIND(TYPE) | KIND(DTYPE)},
    [PARAM_DTYPE] = {"a dtype", KIND(DTYPE), KIND(STRING) | KIND(BUILTIN)},
    [PARAM_DEVICE] = {"the name of a device", KIND(STRING), 0},
    [PARAM_MODEL] = {"a model", 0, 0},
    [PARAM_TOKENIZER] = {"a tokenizer", 0, 0},
    [PARAM_CACHE] = {"a KV cache", 0, 0},
    [PARAM_BUFFER] = {"a tensor buffer", 0, 0},
    [PARAM_OPTIMIZER] = {"an optimizer", 0, 0},
};

static Answer tensor_suits(const Param *param, const Fact *fact, bool exact) {
    ASSERT(fact->kind == FACT_TENSOR);
    const TensorType *type = &fact->as.tensor.type;
    bool scalar =
        param->kind == PARAM_NUMBER || param->kind == PARAM_INT || param->kind == PARAM_BOOL;
    bool sizes = param->kind == PARAM_SHAPE || param->kind == PARAM_INTS;
    if (!scalar && !sizes) return ANSWER_YES;
    if (!fact->known) return ANSWER_MAYBE;
    if (type->shape.rank > (scalar ? 0 : 1)) return ANSWER_NO;
    bool by_dtype = param->kind == PARAM_BOOL || (sizes && exact);
    if (!by_dtype) return ANSWER_YES;
    if (type->dtype == DTYPE_COUNT) return ANSWER_MAYBE;
    DTypeKind wanted = param->kind == PARAM_BOOL ? DTYPE_KIND_BOOL : DTYPE_KIND_INT;
    return dtype_kind(type->dtype) == wanted ? ANSWER_YES : ANSWER_NO;
}

static Answer accepts(const Param *param, const Fact *fact, bool exact) {
    if (fact->kind == FACT_ANY) return param->kind == PARAM_ANY ? ANSWER_YES : ANSWER_MAYBE;
    if (fact->kind == FACT_NONE && param->default_kind == DEFAULT_ABSENT) return ANSWER_YES;
    uint32_t kinds = acceptance[param->kind].exact | (exact ? 0 : acceptance[param->kind].also);
    if (!(kinds >> fact->kind & 1u)) return ANSWER_NO;
    return fact->kind == FACT_TENSOR ? tensor_suits(param, fact, exact) : ANSWER_YES;
}

// concat(a, b, 1): a plain int at the end is the whole-number parameter that follows.
static void place_rest(RuleCall *call, const InferArguments *a, int index) {
    ASSERT(index < call->row->signature.count);
    const Signature *signature = &call->row->signature;
    if (a->positional <= (size_t)index) return;
    call->rest = a->items + index;
    call->rest_count = a->positional - (size_t)index;
    if (index + 1 >= signature->count || call->rest_count < 2) return;
    if (signature->params[index].kind != PARAM_TENSOR) return;
    const Operand *last = &a->items[a->positional - 1];
    if (signature->params[index + 1].kind != PARAM_INT || last->fact->kind != FACT_INT) return;
    call->values[index + 1] = last;
    call->rest_count--;
}

static bool place(RuleCall *call, const InferArguments *a) {
    ASSERT(a->positional <= a->count);
    const Signature *signature = &call->row->signature;
    int fixed = 0;
    while (fixed < signature->count && !signature->params[fixed].rest) fixed++;
    bool has_rest = fixed < signature->count;
    memset(call->values, 0, sizeof call->values);
    call->rest = NULL;
    call->rest_count = 0;
    if (!has_rest && a->positional > (size_t)fixed) return false;
    for (size_t i = 0; i < a->positional && i < (size_t)fixed; i++) call->values[i] = &a->items[i];
    if (has_rest) place_rest(call, a, fixed);
    for (size_t i = a->positional; i < a->count; i++) {
        int index = catalog_parameter(signature, a->names[i]);
        if (index < 0 || signature->params[index].rest || call->values[index]) return false;
        call->values[index] = &a->items[i];
    }
    for (int i = 0; i < signature->count; i++) {
        const Param *param = &signature->params[i];
        if (!call->values[i] && !param->rest && param->default_kind == DEFAULT_REQUIRED)
            return false;
    }
    return true;
}

// Whether the form takes the values that were placed; *misfit is the first that it does not.
static Answer form_accepts(const RuleCall *call, bool exact, const Operand **misfit, int *param) {
    const Signature *signature = &call->row->signature;
    Answer answer = ANSWER_YES;
    for (int i = 0; i < signature->count; i++) {
        size_t count = signature->params[i].rest ? call->rest_count : 1;
        const Operand *values = signature->params[i].rest ? call->rest : call->values[i];
        for (size_t j = 0; values && j < count; j++) {
            Answer one = accepts(&signature->params[i], values[j].fact, exact);
            if (one == ANSWER_NO) {
                *misfit = &values[j];
                *param = i;
                return ANSWER_NO;
            }
            if (one < answer) answer = one;
        }
    }
    return answer;
}

// zeros(2, 3): integers in several arguments where one list is wanted.
static bool suggest_list(const Signature *signature, const InferArguments *a, int param) {
    int at = catalog_sizes_parameter(signature), end = at;
    if (at < 0 || at >= param) return false;
    while (end < (int)a->positional && a->items[end].fact->kind == FACT_INT) end++;
    if (end < at + 2 || !a->items[at].node || !a->items[end - 1].node) return false;
    size_t length;
    Span span = {a->items[at].node->span.begin, a->items[end - 1].node->span.end};
    const char *text = source_text(span, &length);
    fail_help("`%s` is one argument: [%.*s]", signature->params[at].name, (int)length, text);
    return true;
}

// zero([3]): a function with or without an s at its end that takes what is given.
static bool suggest_plural(RuleCall *call, const char *name, const InferArguments *a) {
    SCOPED_TEXT(other);
    size_t length = strlen(name);
    bool plural = name[length - 1] == 's';
    text_format(&other, "%.*s%s", (int)(length - plural), name, plural ? "" : "s");
    const Builtin *row = catalog_find(text_get(&other), other.length);
    for (; row; row = row->next_overload) {
        const Operand *misfit;
        int param;
        call->row = row;
        if (!place(call, a) || form_accepts(call, false, &misfit, &param) != ANSWER_YES) continue;
        fail_help("did you mean `%s`? %s", text_get(&other), row->signature_text);
        return true;
    }
    return false;
}

// The argument for a parameter of the row, which cannot be that; records the failure.
static void fail_misfit(RuleCall *call, const Builtin *row, const InferArguments *a,
                        const Operand *misfit, int param) {
    ASSERT(param >= 0 && param < row->signature.count);
    const Signature *signature = &row->signature;
    SCOPED_TEXT(text);
    fact_describe(misfit->fact, &text);
    fail(STATUS_TYPE, "%s: %s must be %s, but it is %s", signature->name,
         signature->params[param].name, acceptance[signature->params[param].kind].wanted,
         text_get(&text));
    if (!suggest_list(signature, a, param) && !suggest_plural(call, signature->name, a))
        fail_help("%s", row->signature_text);
}

// The form that is certainly taken; NULL where that cannot be told or none fits.
static const Builtin *choose(RuleCall *call, const Builtin *row, const InferArguments *a,
                             Span span) {
    const Operand *misfit = NULL;
    int param = 0, placed = 0, forms = 0;
    const Builtin *only = NULL;
    for (const Builtin *form = row; form; form = form->next_overload) {
        call->row = form;
        forms += place(call, a);
    }
    for (int exact = row->next_overload ? 1 : 0; exact >= 0; exact--) {
        placed = 0;
        for (const Builtin *form = row; form; form = form->next_overload) {
            call->row = form;
            if (!place(call, a)) continue;
            placed++;
            only = form;
            Answer answer = form_accepts(call, exact, &misfit, &param);
            if (answer == ANSWER_YES) return form;
            // With one form there is nothing to choose: it fails, or it is this one.
            if (answer == ANSWER_MAYBE) return forms == 1 ? form : NULL;
        }
    }
    if (placed == 1 && misfit) {
        fail_misfit(call, only, a, misfit, param);
        infer_report(call->in, span, misfit, 1);
    }
    return NULL;
}

// --- results without a rule

static bool is_plain_map(const RuleCall *call) {
    for (int i = 0; i < call->row->signature.count; i++)
        if (call->values[i] && !fact_is_number(call->values[i]->fact)) return false;
    return true;
}

static const Fact *result_by_signature(Inference *in, const RuleCall *call) {
    static const struct {
        const char *word;
        FactKind kind;
    } kinds[] = {{"int", FACT_INT},       {"float", FACT_FLOAT}, {"bool", FACT_BOOL},
                 {"string", FACT_STRING}, {"none", FACT_NONE},   {"list", FACT_LIST},
                 {"dict", FACT_DICT},     {"range", FACT_RANGE}};
    const char *word = call->row->signature.result;
    bool op = call->row->kind == ROW_OP;
    if (op && strcmp(word, "tensor") == 0 && !is_plain_map(call))
        return fact_kind(&in->arena, FACT_TENSOR);
    for (size_t i = 0; !op && i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i].word, word) == 0) return fact_kind(&in->arena, kinds[i].kind);
    return &fact_any;
}

// --- calls

// Functions that change nothing that was there before.
static bool is_pure(const Builtin *row) {
    return row->kind == ROW_OP || shape_rule_find(row) != NULL;
}

static void stop(Inference *in, const Builtin *row) {
    const char *name = row->signature.name;
    bool exits = strcmp(name, "exit") == 0;
    if (!exits && strcmp(name, "panic") != 0 && strcmp(name, "error") != 0) return;
    in->dead = true;
    if (exits) in->left |= LEFT_PROGRAM;
}

// Whether an argument is a list of sizes or dimensions, which the message shows already.
static bool gives_sizes(const RuleCall *call, const Operand *argument) {
    for (int i = 0; i < call->row->signature.count; i++) {
        ParamKind kind = call->row->signature.params[i].kind;
        bool sizes = kind == PARAM_SHAPE || kind == PARAM_INTS;
        if (sizes && call->values[i] == argument) return true;
    }
    return false;
}

// The tensors of an argument, for a report: itself, or those of a list, by their own text where the
// list is written out.
static size_t add_operands(Inference *in, const Operand *argument, Operand *out, size_t count) {
    enum { LISTED_MAX = 6 };
    const Fact *fact = argument->fact;
    bool list = fact->kind == FACT_LIST && infer_members_known(in, fact);
    const Node *node = argument->node;
    bool written =
        list && node && node->kind == NODE_LIST && node->as.list.count == fact->as.list.count;
    if (fact->kind == FACT_TENSOR && count < PARAMETERS_MAX) out[count++] = *argument;
    for (size_t i = 0; list && i < fact->as.list.count && i < LISTED_MAX; i++) {
        const Fact *item = fact->as.list.items[i];
        if (item->kind != FACT_TENSOR || count == PARAMETERS_MAX) continue;
        out[count++] = (Operand){.fact = item};
        if (written) out[count - 1].span = node->as.list.items[i]->span;
    }
    return count;
}

// A format with other values than placeholders: of print only where it is written out and has any.
static bool format_fits(Inference *in, const Builtin *row, Span span, const InferArguments *a) {
    const char *name = row->signature.name;
    bool print = strcmp(name, "print") == 0 || strcmp(name, "eprint") == 0;
    bool format = strcmp(name, "format") == 0, panic = strcmp(name, "panic") == 0;
    const Operand *first = a->positional ? &a->items[0] : NULL;
    bool text = first && first->fact->kind == FACT_STRING && first->fact->known;
    if (!text || !(print || format || panic) || (!format && a->positional < 2)) return true;
    const char *bytes = first->fact->as.string.bytes;
    size_t length = first->fact->as.string.length;
    bool literal = first->node && first->node->kind == NODE_STRING;
    if (print && !(literal && placeholder_any(bytes, length))) return true;
    if (placeholders_check(bytes, length, a->positional - 1) == STATUS_OK) return true;
    infer_report(in, span, NULL, 0);
    return false;
}

static const Fact *list_of(Inference *in, const InferArguments *a) {
    Fact *list = fact_new(&in->arena, FACT_LIST);
    list->known = true;
    list->epoch = in->epoch;
    list->as.list.count = a->positional;
    ASSERT(list->as.list.count <= a->count);
    list->as.list.items = arena_allocate(&in->arena, (a->positional + 1) * sizeof(Fact *));
    for (size_t i = 0; i < a->positional; i++) list->as.list.items[i] = a->items[i].fact;
    return list;
}

// type(x) of a value whose kind is known: what comparisons with it decide is followed.
static const Fact *type_of(Inference *in, const Fact *x) {
    ASSERT(x != NULL);
    bool named = x->kind != FACT_ANY && x->kind != FACT_TYPE;
    Fact *name = fact_new(&in->arena, FACT_STRING);
    name->known = named;
    name->as.string.bytes = fact_kind_name(x);
    name->as.string.length = strlen(name->as.string.bytes);
    return name;
}

const Fact *infer_call_builtin(Inference *in, const Builtin *row, Span span,
                               const InferArguments *arguments) {
    RuleCall call = {.in = in};
    const char *name = row->signature.name;
    if (strcmp(name, "list") == 0) return list_of(in, arguments);
    if (strcmp(name, "type") == 0 && arguments->count == 1)
        return type_of(in, arguments->items[0].fact);
    if (!format_fits(in, row, span, arguments)) return &fact_any;
    const Builtin *form = choose(&call, row, arguments, span);
    call.row = form;
    if (form) call.name = form->signature.name;
    if (form) infer_callback(&call);
    if (!is_pure(row)) infer_disturb(in);
    stop(in, row);
    if (!form) return &fact_any;
    const Fact *fact = result_by_signature(in, &call);
    ShapeRule rule = shape_rule_find(form);
    if (!rule) return fact;
    if (rule(&call, &fact) == STATUS_OK) return fact;
    Operand operands[PARAMETERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < arguments->count; i++)
        if (!gives_sizes(&call, &arguments->items[i]))
            count = add_operands(in, &arguments->items[i], operands, count);
    infer_report(in, span, operands, count);
    return &fact_any;
}
