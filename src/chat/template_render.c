// Runs the tree of a template. A scope is a dictionary on the C stack, where the collector sees it.
#include <string.h>

#include "chat/template_tree.h"
#include "chat/template_values.h"
#include "value/convert.h"
#include "value/format.h"

enum { DEPTH_MAX = 400, STEPS_MAX = 1000000, STEP_BYTES = 256 };

typedef struct Scope Scope;
struct Scope {
    Value variables; // a dictionary
    Scope *outer;
};

typedef struct Render {
    Text *out;
    int depth;
    size_t steps; // a measure of the work done
} Render;

static Status evaluate(Render *render, const Scope *scope, const Expr *expr, Value *out);
static Status run(Render *render, Scope *scope, const Node *node);

static Status wrong(int line, const char *what) {
    return fail(STATUS_FORMAT, "line %d of the template: %s", line, what);
}

// --- expressions: results are new references

static Value look_up(const Scope *scope, const char *name) {
    for (; scope; scope = scope->outer) {
        Value found = dict_get_word(scope->variables.as.dict, name);
        if (found.kind != VALUE_ABSENT) return value_retain(found);
    }
    return value_absent();
}

static Status field(const Expr *expr, Value object, Value *out) {
    *out = value_retain(template_member(object, expr->text));
    if (object.kind != VALUE_ABSENT && object.kind != VALUE_NONE) return STATUS_OK;
    return fail(STATUS_FORMAT, "line %d of the template: nothing has no `%s`", expr->line,
                expr->text);
}

// Elements out of range and keys that are not there are undefined, as in Jinja.
static Status element(const Expr *expr, Value object, Value index, Value *out) {
    *out = value_absent();
    if (index.kind == VALUE_STRING && (object.kind == VALUE_DICT || object.kind == VALUE_STRUCT)) {
        *out = value_retain(template_member(object, string_end(index.as.string)->bytes));
        return STATUS_OK;
    }
    if (object.kind == VALUE_ABSENT || object.kind == VALUE_NONE || index.kind != VALUE_INT)
        return fail(STATUS_FORMAT, "line %d of the template: %s has no element %s", expr->line,
                    object.kind == VALUE_ABSENT ? "nothing" : value_text(object).text,
                    value_text(index).text);
    Value items = value_to_items(object, "what is indexed");
    if (items.kind == VALUE_FAIL) return error_current()->code;
    int64_t count = (int64_t)items.as.list->count;
    int64_t at = index.as.integer < 0 ? index.as.integer + count : index.as.integer;
    if (at >= 0 && at < count) *out = value_retain(items.as.list->items[at]);
    value_release(items);
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
static Status slice(const Expr *expr, const Value *items, Value *out) {
    int64_t step = items[3].kind == VALUE_INT ? items[3].as.integer : 1;
    if (step == 0) return wrong(expr->line, "a slice has a step of 0");
    Value all = value_to_items(items[0], "what is sliced");
    if (all.kind == VALUE_FAIL) return error_current()->code;
    int64_t count = (int64_t)all.as.list->count;
    bool backward = step < 0, text = items[0].kind == VALUE_STRING;
    int64_t begin = clamp_bound(items[1], backward ? count - 1 : 0, count, backward);
    int64_t end = clamp_bound(items[2], backward ? -1 : count, count, backward);
    Text joined = {0};
    *out = text ? value_none() : value_list(4);
    for (int64_t i = begin; backward ? i > end : i < end;) {
        if (text)
            template_append(all.as.list->items[i], &joined);
        else
            list_push(out->as.list, value_retain(all.as.list->items[i]));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    if (text) *out = value_string(text_get(&joined), joined.length);
    text_free(&joined);
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

static Status evaluate_parts(Render *render, const Scope *scope, const Expr *expr, Parts *parts) {
    for (const Expr *part = expr->parts; part; part = part->next) {
        if (parts->count == TEMPLATE_ARGUMENTS_MAX)
            return wrong(expr->line, "there are too many arguments");
        TRY(evaluate(render, scope, part, &parts->items[parts->count]));
        parts->count++;
    }
    return STATUS_OK;
}

static TemplateArguments arguments_of(const Expr *expr, const Parts *parts) {
    TemplateArguments arguments = {.line = expr->line};
    const Expr *part = expr->parts;
    for (size_t i = 0; i < parts->count; i++, part = part->next) {
        arguments.items[i] = parts->items[i];
        arguments.keywords[i] = part->keyword;
    }
    arguments.count = parts->count;
    return arguments;
}

// object.method(...) and name(...): the callee is not evaluated, its object is.
static Status call(Render *render, const Scope *scope, const Expr *expr, Value *out) {
    const Expr *callee = expr->parts;
    if (callee->kind != EXPR_FIELD && callee->kind != EXPR_NAME)
        return wrong(expr->line, "only names and methods can be called");
    Expr applied = {.line = expr->line, .parts = callee->next};
    Expr object = {0};
    if (callee->kind == EXPR_FIELD) {
        object = *callee->parts;
        object.next = callee->next;
        applied.parts = &object;
    }
    Parts parts = {.count = 0};
    Status status = evaluate_parts(render, scope, &applied, &parts);
    TemplateArguments arguments = {0};
    if (status == STATUS_OK) {
        arguments = arguments_of(&applied, &parts);
        status = callee->kind == EXPR_FIELD ? template_method(callee->text, &arguments, out)
                                            : template_function(callee->text, &arguments, out);
    }
    release_parts(&parts);
    return status;
}

static Status list_literal(Render *render, const Scope *scope, const Expr *expr, Value *out) {
    Value list = value_list(4);
    for (const Expr *part = expr->parts; part; part = part->next) {
        Value item;
        Status status = evaluate(render, scope, part, &item);
        if (status != STATUS_OK) {
            value_release(list);
            return status;
        }
        list_push(list.as.list, item);
    }
    *out = list;
    return STATUS_OK;
}

static Status dict_literal(Render *render, const Scope *scope, const Expr *expr, Value *out) {
    Value dict = value_dict();
    Status status = STATUS_OK;
    for (const Expr *part = expr->parts; part && status == STATUS_OK; part = part->next->next) {
        Value key = value_none(), item = value_none();
        status = evaluate(render, scope, part, &key);
        if (status == STATUS_OK && key.kind != VALUE_STRING)
            status = wrong(expr->line, "the keys of a dictionary are strings");
        if (status == STATUS_OK) status = evaluate(render, scope, part->next, &item);
        if (status == STATUS_OK)
            dict_set(dict.as.dict, key, item);
        else
            value_release(key);
    }
    if (status == STATUS_OK)
        *out = dict;
    else
        value_release(dict);
    return status;
}

// and, or, not, choices: what is not needed is not evaluated. `and` and `or` give an operand.
static Status logical(Render *render, const Scope *scope, const Expr *expr, Value *out) {
    Value first;
    TRY(evaluate(render, scope, expr->parts, &first));
    bool truth = template_truth(first);
    if (expr->kind == EXPR_AND || expr->kind == EXPR_OR) {
        if (truth == (expr->kind == EXPR_OR)) {
            *out = first;
            return STATUS_OK;
        }
        value_release(first);
        return evaluate(render, scope, expr->parts->next, out);
    }
    value_release(first);
    *out = value_bool(!truth);
    if (expr->kind == EXPR_NOT) return STATUS_OK;
    const Expr *then = expr->parts->next;
    return evaluate(render, scope, truth ? then : then->next, out);
}

// Those whose parts are all evaluated.
static Status strict(Render *render, const Scope *scope, const Expr *expr, Value *out) {
    Parts parts = {.count = 0};
    Status status = evaluate_parts(render, scope, expr, &parts);
    const Value *items = parts.items;
    if (status == STATUS_OK) {
        TemplateArguments arguments = arguments_of(expr, &parts);
        switch (expr->kind) {
        case EXPR_FIELD: status = field(expr, items[0], out); break;
        case EXPR_INDEX: status = element(expr, items[0], items[1], out); break;
        case EXPR_SLICE: status = slice(expr, items, out); break;
        case EXPR_FILTER: status = template_filter(expr->text, &arguments, out); break;
        case EXPR_TEST: status = template_test(expr->text, &arguments, out); break;
        case EXPR_MINUS:
            status = template_operator("-", value_int(0), items[0], expr->line, out);
            break;
        default: status = template_operator(expr->text, items[0], items[1], expr->line, out); break;
        }
    }
    release_parts(&parts);
    return status;
}

static Status evaluate_kind(Render *render, const Scope *scope, const Expr *expr, Value *out) {
    switch (expr->kind) {
    case EXPR_STRING: *out = value_string(expr->text, expr->length); return STATUS_OK;
    case EXPR_INT: *out = value_int(expr->integer); return STATUS_OK;
    case EXPR_FLOAT: *out = value_float(expr->number); return STATUS_OK;
    case EXPR_BOOL: *out = value_bool(expr->integer != 0); return STATUS_OK;
    case EXPR_NONE: *out = value_none(); return STATUS_OK;
    case EXPR_NAME: *out = look_up(scope, expr->text); return STATUS_OK;
    case EXPR_LIST: return list_literal(render, scope, expr, out);
    case EXPR_DICT: return dict_literal(render, scope, expr, out);
    case EXPR_CALL: return call(render, scope, expr, out);
    case EXPR_NOT:
    case EXPR_AND:
    case EXPR_OR:
    case EXPR_CHOICE: return logical(render, scope, expr, out);
    default: return strict(render, scope, expr, out);
    }
}

// Long texts count as many steps.
static Status count_steps(Render *render, int line, Value value) {
    bool text = value.kind == VALUE_STRING;
    render->steps += 1 + (text ? value.as.string->length / STEP_BYTES : 0);
    return render->steps <= STEPS_MAX ? STATUS_OK : wrong(line, "this takes too long");
}

static Status evaluate(Render *render, const Scope *scope, const Expr *expr, Value *out) {
    *out = value_absent();
    if (render->depth == DEPTH_MAX) return wrong(expr->line, "this is nested too deeply");
    render->depth++;
    TRY(evaluate_kind(render, scope, expr, out));
    render->depth--;
    return count_steps(render, expr->line, *out);
}

// --- statements

static Status output(Render *render, const Scope *scope, const Node *node) {
    Value value;
    TRY(evaluate(render, scope, node->value, &value));
    template_append(value, render->out);
    value_release(value);
    return template_check_size(render->out->length, TEMPLATE_BYTES_MAX, node->line);
}

static Status choose(Render *render, Scope *scope, const Node *node) {
    Value value;
    TRY(evaluate(render, scope, node->value, &value));
    bool truth = template_truth(value);
    value_release(value);
    return run(render, scope, truth ? node->body : node->otherwise);
}

static Status assign(Render *render, Scope *scope, const Node *node) {
    Value value;
    TRY(evaluate(render, scope, node->value, &value));
    if (!node->second) {
        dict_set_word(scope->variables.as.dict, node->text, value);
        return STATUS_OK;
    }
    Value object = look_up(scope, node->text);
    bool holds = object.kind == VALUE_DICT;
    if (holds)
        dict_set_word(object.as.dict, node->second, value);
    else
        value_release(value);
    value_release(object);
    return holds ? STATUS_OK : wrong(node->line, "only a namespace has fields to set");
}

static Value loop_value(size_t index, size_t count) {
    Value loop = value_dict();
    struct {
        const char *name;
        Value value;
    } fields[] = {{"index", value_int((int64_t)index + 1)},
                  {"index0", value_int((int64_t)index)},
                  {"revindex", value_int((int64_t)(count - index))},
                  {"revindex0", value_int((int64_t)(count - index) - 1)},
                  {"first", value_bool(index == 0)},
                  {"last", value_bool(index + 1 == count)},
                  {"length", value_int((int64_t)count)}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        dict_set_word(loop.as.dict, fields[i].name, fields[i].value);
    return loop;
}

static Status bind(const Node *node, Scope *scope, Value item) {
    Dict *variables = scope->variables.as.dict;
    if (!node->second) {
        dict_set_word(variables, node->text, value_retain(item));
        return STATUS_OK;
    }
    bool pair = (item.kind == VALUE_TUPLE || item.kind == VALUE_LIST) && item.as.list->count == 2;
    if (!pair) return wrong(node->line, "the loop has two variables, but its items are no pairs");
    dict_set_word(variables, node->text, value_retain(item.as.list->items[0]));
    dict_set_word(variables, node->second, value_retain(item.as.list->items[1]));
    return STATUS_OK;
}

// The items that the loop's condition lets pass.
static Status filter_items(Render *render, Scope *scope, const Node *node, const List *items,
                           List *kept) {
    for (size_t i = 0; i < items->count; i++) {
        Scope inner = {.variables = value_dict(), .outer = scope};
        Value truth = value_bool(true);
        Status status = bind(node, &inner, items->items[i]);
        if (status == STATUS_OK && node->filter)
            status = evaluate(render, &inner, node->filter, &truth);
        if (status == STATUS_OK && template_truth(truth))
            list_push(kept, value_retain(items->items[i]));
        value_release(truth);
        value_release(inner.variables);
        TRY(status);
    }
    return STATUS_OK;
}

static Status repeat(Render *render, Scope *scope, const Node *node, const List *items) {
    for (size_t i = 0; i < items->count; i++) {
        Scope inner = {.variables = value_dict(), .outer = scope};
        Status status = bind(node, &inner, items->items[i]);
        dict_set_word(inner.variables.as.dict, "loop", loop_value(i, items->count));
        if (status == STATUS_OK) status = run(render, &inner, node->body);
        value_release(inner.variables);
        TRY(status);
    }
    return items->count == 0 ? run(render, scope, node->otherwise) : STATUS_OK;
}

static Status loop(Render *render, Scope *scope, const Node *node) {
    Value iterable;
    TRY(evaluate(render, scope, node->value, &iterable));
    if (iterable.kind == VALUE_ABSENT || iterable.kind == VALUE_NONE)
        return wrong(node->line, "there is nothing to loop over");
    Value items = value_to_items(iterable, "what is looped over"), kept = value_list(4);
    value_release(iterable);
    Status status = items.kind == VALUE_FAIL ? error_current()->code : STATUS_OK;
    if (status == STATUS_OK)
        status = filter_items(render, scope, node, items.as.list, kept.as.list);
    if (status == STATUS_OK) status = repeat(render, scope, node, kept.as.list);
    value_release(kept);
    value_release(items);
    return status;
}

static Status run(Render *render, Scope *scope, const Node *node) {
    for (; node; node = node->next) {
        TRY(count_steps(render, node->line, value_none()));
        switch (node->kind) {
        case NODE_TEXT: text_append(render->out, node->text, node->length); break;
        case NODE_OUTPUT: TRY(output(render, scope, node)); break;
        case NODE_IF: TRY(choose(render, scope, node)); break;
        case NODE_FOR: TRY(loop(render, scope, node)); break;
        case NODE_SET: TRY(assign(render, scope, node)); break;
        }
    }
    return STATUS_OK;
}

Status template_render(const Template *template, Value variables, Text *out) {
    Render render = {.out = out};
    Scope outer = {.variables = variables};
    Scope inner = {.variables = value_dict(), .outer = &outer};
    Status status = run(&render, &inner, template->body);
    value_release(inner.variables);
    return status;
}
