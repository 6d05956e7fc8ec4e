// What the expressions of a template amount to. Results are new references.
#include <string.h>

#include "chat/template_calls.h"
#include "chat/template_evaluate.h"
#include "chat/template_operators.h"
#include "chat/template_render.h"
#include "eval/access.h"
#include "value/print.h"

enum { STEP_BYTES = 256 };

Status template_fail(int line, const char *what) {
    return fail(STATUS_FORMAT, "line %d of the template: %s", line, what);
}

// Whether a scope has a variable, though it may be undefined.
static bool has_variable(const Dict *variables, const char *name) {
    for (size_t i = 0; i < dict_count(variables); i++) {
        Value key, item;
        dict_entry(variables, i, &key, &item);
        if (key.kind == VALUE_STRING && strcmp(string_end(key.as.string)->bytes, name) == 0)
            return true;
    }
    return false;
}

Value template_look_up(const TemplateScope *scope, const char *name) {
    for (; scope; scope = scope->outer) {
        Value found = dict_get_word(scope->variables.as.dict, name);
        if (found.kind != VALUE_ABSENT) return value_retain(found);
        if (has_variable(scope->variables.as.dict, name)) break;
    }
    return value_absent();
}

// What is undefined has no members; those that other values lack are undefined.
static Status field(const TemplateExpr *expr, Value object, Value *out) {
    *out = value_retain(template_member(object, expr->text));
    if (object.kind != VALUE_ABSENT) return STATUS_OK;
    return fail(STATUS_FORMAT, "line %d of the template: nothing has no `%s`", expr->line,
                expr->text);
}

// Elements out of range and keys that are not there are undefined.
static Status element(TemplateRender *render, const TemplateExpr *expr, Value object, Value index,
                      Value *out) {
    *out = value_absent();
    if (object.kind == VALUE_ABSENT)
        return fail(STATUS_FORMAT, "line %d of the template: nothing has no element %s", expr->line,
                    value_text(index).text);
    if (index.kind == VALUE_STRING) {
        *out = value_retain(template_member(object, string_end(index.as.string)->bytes));
        return STATUS_OK;
    }
    bool listed = object.kind == VALUE_LIST || object.kind == VALUE_TUPLE;
    bool ordered = listed || object.kind == VALUE_STRING || object.kind == VALUE_RANGE;
    if (!ordered || index.kind != VALUE_INT) return STATUS_OK;
    SCOPED_VALUE(items) = listed ? value_retain(object) : value_none();
    if (!listed) TRY(template_items(&render->steps, expr->line, object, "what is indexed", &items));
    int64_t count = (int64_t)items.as.list->count;
    int64_t at = index.as.integer < 0 ? index.as.integer + count : index.as.integer;
    if (at >= 0 && at < count) *out = value_retain(items.as.list->items[at]);
    return STATUS_OK;
}

// Python's bounds: from `low` to `high`, counted from the end when negative.
static int64_t clamp_bound(Value bound, int64_t fallback, int64_t count, bool backward) {
    if (bound.kind != VALUE_INT) return fallback;
    int64_t at = bound.as.integer < 0 ? bound.as.integer + count : bound.as.integer;
    int64_t low = backward ? -1 : 0, high = backward ? count - 1 : count;
    return at < low ? low : at > high ? high : at;
}

// items: object, start, stop, step; absent ones are none.
static Status slice(TemplateRender *render, const TemplateExpr *expr, const Value *items,
                    Value *out) {
    int64_t step = items[3].kind == VALUE_INT ? items[3].as.integer : 1;
    if (step == 0) return template_fail(expr->line, "a slice has a step of 0");
    Value all;
    TRY(template_items(&render->steps, expr->line, items[0], "what is sliced", &all));
    int64_t count = (int64_t)all.as.list->count;
    bool backward = step < 0, text = items[0].kind == VALUE_STRING;
    int64_t begin = clamp_bound(items[1], backward ? count - 1 : 0, count, backward);
    int64_t end = clamp_bound(items[2], backward ? -1 : count, count, backward);
    SCOPED_TEXT(joined);
    *out = text ? value_none() : value_list(4);
    for (int64_t i = begin; backward ? i > end : i < end;) {
        if (text)
            template_append(all.as.list->items[i], &joined);
        else
            list_push(out->as.list, value_retain(all.as.list->items[i]));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    if (text) *out = value_string(text_get(&joined), joined.length);
    value_release(all);
    return STATUS_OK;
}

typedef struct Parts {
    Value items[TEMPLATE_ARGUMENTS_MAX];
    size_t count;
} Parts;

static void release_parts(Parts *parts) {
    for (size_t i = 0; i < parts->count; i++) value_release(parts->items[i]);
}

static Status evaluate_parts(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                             Parts *parts) {
    for (const TemplateExpr *part = expr->parts; part; part = part->next) {
        if (parts->count == TEMPLATE_ARGUMENTS_MAX)
            return template_fail(expr->line, "there are too many arguments");
        TRY(template_evaluate(render, scope, part, &parts->items[parts->count]));
        parts->count++;
    }
    return STATUS_OK;
}

static TemplateArguments arguments_of(TemplateRender *render, const TemplateExpr *expr,
                                      const Parts *parts) {
    TemplateArguments arguments = {.line = expr->line, .steps = &render->steps};
    const TemplateExpr *part = expr->parts;
    for (size_t i = 0; i < parts->count; i++, part = part->next) {
        arguments.items[i] = parts->items[i];
        arguments.keywords[i] = part->keyword;
    }
    arguments.count = parts->count;
    return arguments;
}

// The macro of a name; false when there is none.
static bool template_find_macro(TemplateScope *scope, const char *name, TemplateMacro *out) {
    for (; scope; scope = scope->outer) {
        for (size_t i = scope->macros.count; i-- > 0;)
            if (strcmp(scope->macros.items[i]->text, name) == 0) {
                *out = (TemplateMacro){scope->macros.items[i], scope};
                return true;
            }
        if (scope->caller && strcmp(name, scope->caller->node->text) == 0) {
            *out = *scope->caller;
            return true;
        }
    }
    return false;
}

// `call` is the expression: that of {% call %} has its body for the macro.
static Status call_named(TemplateRender *render, TemplateScope *scope, const TemplateExpr *call,
                         const TemplateArguments *arguments, Value *out) {
    const char *name = call->parts->text;
    bool with_body = render->caller && render->caller->node->value == call;
    TemplateMacro macro;
    if (template_find_macro(scope, name, &macro))
        return template_call_macro(render, &macro, with_body ? render->caller : NULL, arguments,
                                   out);
    if (with_body)
        return fail(STATUS_FORMAT,
                    "line %d of the template: there is no macro `%s` for {%% call %%}", call->line,
                    name);
    TRY(template_function(name, arguments, out));
    if (strcmp(name, "namespace") == 0) list_push(render->namespaces.as.list, value_retain(*out));
    return STATUS_OK;
}

// object.method(...) and name(...): the callee is not evaluated, its object is.
static Status call(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                   Value *out) {
    const TemplateExpr *callee = expr->parts;
    if (callee->kind != TEMPLATE_EXPR_FIELD && callee->kind != TEMPLATE_EXPR_NAME)
        return template_fail(expr->line, "only names and methods can be called");
    TemplateExpr applied = {.line = expr->line, .parts = callee->next};
    TemplateExpr object = {0};
    if (callee->kind == TEMPLATE_EXPR_FIELD) {
        object = *callee->parts;
        object.next = callee->next;
        applied.parts = &object;
    }
    Parts parts = {.count = 0};
    Status status = evaluate_parts(render, scope, &applied, &parts);
    TemplateArguments arguments = {0};
    if (status == STATUS_OK) {
        arguments = arguments_of(render, &applied, &parts);
        status = callee->kind == TEMPLATE_EXPR_FIELD
                     ? template_method(callee->text, &arguments, out)
                     : call_named(render, scope, expr, &arguments, out);
    }
    release_parts(&parts);
    return status;
}

// Whether a function or macro, and no variable, has the name. They are not values, but a template
// may ask whether there is one, also by `if name`.
static bool is_callable(TemplateScope *scope, const char *name) {
    TemplateMacro macro;
    SCOPED_VALUE(value) = template_look_up(scope, name);
    return value.kind == VALUE_ABSENT &&
           (template_find_macro(scope, name, &macro) || template_has_function(name));
}

static Value named(TemplateScope *scope, const char *name) {
    return is_callable(scope, name) ? value_bool(true) : template_look_up(scope, name);
}

static Status test(TemplateScope *scope, const TemplateExpr *expr,
                   const TemplateArguments *arguments, Value *out) {
    const TemplateExpr *tested = expr->parts;
    if (tested->kind != TEMPLATE_EXPR_NAME || !is_callable(scope, tested->text))
        return template_test(expr->text, arguments, out);
    *out = value_bool(strcmp(expr->text, "defined") == 0 || strcmp(expr->text, "callable") == 0);
    return STATUS_OK;
}

static Status list_literal(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                           Value *out) {
    bool tuple = expr->kind == TEMPLATE_EXPR_TUPLE;
    Value list = tuple ? value_tuple(4) : value_list(4);
    for (const TemplateExpr *part = expr->parts; part; part = part->next) {
        Value item;
        Status status = template_evaluate(render, scope, part, &item);
        if (status != STATUS_OK) {
            value_release(list);
            return status;
        }
        list_push(list.as.list, item);
    }
    *out = list;
    return STATUS_OK;
}

static Status put_pair(TemplateRender *render, TemplateScope *scope, const TemplateExpr *pair,
                       Dict *dict) {
    Value given, key, item;
    TRY(template_evaluate(render, scope, pair, &given));
    Status status = value_to_key(given, &key);
    if (status == STATUS_OK) status = template_evaluate(render, scope, pair->next, &item);
    if (status == STATUS_OK) dict_set(dict, value_retain(key), item);
    value_release(given);
    return status;
}

static Status dict_literal(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                           Value *out) {
    Value dict = value_dict();
    Status status = STATUS_OK;
    for (const TemplateExpr *part = expr->parts; part && status == STATUS_OK;
         part = part->next->next)
        status = put_pair(render, scope, part, dict.as.dict);
    if (status == STATUS_OK)
        *out = dict;
    else
        value_release(dict);
    return status;
}

// and, or, not, choices: what is not needed is not evaluated. `and` and `or` give an operand.
static Status logical(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                      Value *out) {
    Value first;
    TRY(template_evaluate(render, scope, expr->parts, &first));
    bool holds = template_is_true(first);
    if (expr->kind == TEMPLATE_EXPR_AND || expr->kind == TEMPLATE_EXPR_OR) {
        if (holds == (expr->kind == TEMPLATE_EXPR_OR)) {
            *out = first;
            return STATUS_OK;
        }
        value_release(first);
        return template_evaluate(render, scope, expr->parts->next, out);
    }
    value_release(first);
    *out = value_bool(!holds);
    if (expr->kind == TEMPLATE_EXPR_NOT) return STATUS_OK;
    const TemplateExpr *then = expr->parts->next;
    return template_evaluate(render, scope, holds ? then : then->next, out);
}

static size_t item_count(Value value) {
    int64_t count = 0;
    bool holds = value.kind == VALUE_LIST || value.kind == VALUE_TUPLE || value.kind == VALUE_DICT;
    return holds && value_length(value, &count) == STATUS_OK ? (size_t)count : 0;
}

// An operator may go through all items of its operands.
static Status operate(TemplateRender *render, const TemplateExpr *expr, const char *name,
                      const Value *operands, Value *out) {
    size_t count = item_count(operands[0]) + item_count(operands[1]);
    TRY(template_count_items(&render->steps, expr->line, count));
    return template_operator(name, operands[0], operands[1], expr->line, out);
}

// Each link with the operand before it, as long as they hold.
static Status comparison(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                         Value *out) {
    Value left, right;
    bool holds = true;
    TRY(template_evaluate(render, scope, expr->parts, &left));
    Status status = STATUS_OK;
    for (const TemplateExpr *link = expr->parts->next; link && holds; link = link->next) {
        status = template_evaluate(render, scope, link->parts, &right);
        if (status != STATUS_OK) break;
        status = operate(render, link, link->text, (Value[]){left, right}, out);
        value_release(left);
        left = right;
        if (status != STATUS_OK) break;
        holds = template_is_true(*out) != (link->integer != 0);
    }
    value_release(left);
    *out = value_bool(holds);
    return status;
}

// Those whose parts are all evaluated.
static Status strict(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                     Value *out) {
    Parts parts = {.count = 0};
    Status status = evaluate_parts(render, scope, expr, &parts);
    const Value *items = parts.items;
    if (status == STATUS_OK) {
        TemplateArguments arguments = arguments_of(render, expr, &parts);
        switch (expr->kind) {
        case TEMPLATE_EXPR_FIELD: status = field(expr, items[0], out); break;
        case TEMPLATE_EXPR_INDEX: status = element(render, expr, items[0], items[1], out); break;
        case TEMPLATE_EXPR_SLICE: status = slice(render, expr, items, out); break;
        case TEMPLATE_EXPR_FILTER: status = template_filter(expr->text, &arguments, out); break;
        case TEMPLATE_EXPR_TEST: status = test(scope, expr, &arguments, out); break;
        case TEMPLATE_EXPR_MINUS:
            status = template_operator("-", value_int(0), items[0], expr->line, out);
            break;
        default: status = operate(render, expr, expr->text, items, out); break;
        }
    }
    release_parts(&parts);
    return status;
}

static Status evaluate_kind(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                            Value *out) {
    switch (expr->kind) {
    case TEMPLATE_EXPR_STRING: *out = value_string(expr->text, expr->length); return STATUS_OK;
    case TEMPLATE_EXPR_INT: *out = value_int(expr->integer); return STATUS_OK;
    case TEMPLATE_EXPR_FLOAT: *out = value_float(expr->number); return STATUS_OK;
    case TEMPLATE_EXPR_BOOL: *out = value_bool(expr->integer != 0); return STATUS_OK;
    case TEMPLATE_EXPR_NONE: *out = value_none(); return STATUS_OK;
    case TEMPLATE_EXPR_ABSENT: *out = value_absent(); return STATUS_OK;
    case TEMPLATE_EXPR_NAME: *out = named(scope, expr->text); return STATUS_OK;
    case TEMPLATE_EXPR_LIST:
    case TEMPLATE_EXPR_TUPLE: return list_literal(render, scope, expr, out);
    case TEMPLATE_EXPR_DICT: return dict_literal(render, scope, expr, out);
    case TEMPLATE_EXPR_CALL: return call(render, scope, expr, out);
    case TEMPLATE_EXPR_COMPARE: return comparison(render, scope, expr, out);
    case TEMPLATE_EXPR_NOT:
    case TEMPLATE_EXPR_AND:
    case TEMPLATE_EXPR_OR:
    case TEMPLATE_EXPR_CHOICE: return logical(render, scope, expr, out);
    default: return strict(render, scope, expr, out);
    }
}

// Long texts count as many steps.
Status template_count_steps(TemplateRender *render, int line, Value value) {
    bool text = value.kind == VALUE_STRING;
    render->steps += 1 + (text ? value.as.string->length / STEP_BYTES : 0);
    return render->steps <= TEMPLATE_STEPS_MAX ? STATUS_OK
                                               : template_fail(line, "this takes too long");
}

Status template_evaluate(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                         Value *out) {
    *out = value_absent();
    if (render->depth == TEMPLATE_DEPTH_MAX)
        return template_fail(expr->line, "this is nested too deeply");
    render->depth++;
    Status status = evaluate_kind(render, scope, expr, out);
    ASSERT(render->depth > 0);
    render->depth--;
    if (status == STATUS_OK) status = template_count_steps(render, expr->line, *out);
    if (status == STATUS_OK) return STATUS_OK;
    value_release(*out); // what was made so far
    *out = value_absent();
    return status;
}
