// Runs the tree of a template. A scope is on the C stack, where the collector sees it.
#include <stdlib.h>
#include <string.h>

#include "chat/template_calls.h"
#include "chat/template_evaluate.h"
#include "chat/template_operators.h"
#include "chat/template_render.h"
#include "value/items.h"
#include "value/print.h"

static Status run(TemplateRender *render, TemplateScope *scope, const TemplateNode *node);

static void end_scope(TemplateScope *scope) {
    VECTOR_FREE(&scope->macros);
    value_release(scope->variables);
}

// --- statements

// Takes the value.
static Status put(TemplateRender *render, const TemplateNode *node, Value value) {
    template_append(value, render->out);
    value_release(value);
    return template_check_size(render->out->length, TEMPLATE_BYTES_MAX, node->line);
}

static Status output(TemplateRender *render, TemplateScope *scope, const TemplateNode *node) {
    Value value;
    TRY(template_evaluate(render, scope, node->value, &value));
    return put(render, node, value);
}

static Status choose(TemplateRender *render, TemplateScope *scope, const TemplateNode *node) {
    Value value;
    TRY(template_evaluate(render, scope, node->value, &value));
    bool holds = template_is_true(value);
    value_release(value);
    return run(render, scope, holds ? node->body : node->otherwise);
}

// Binds the variables of a `for` or `set`: one to the value, several to its items.
static Status bind(TemplateScope *scope, const TemplateNode *node, Value value) {
    Dict *variables = scope->variables.as.dict;
    const TemplateName *name = node->names;
    if (!name->next) {
        dict_set_word(variables, name->text, value_retain(value));
        return STATUS_OK;
    }
    size_t count = 0;
    for (const TemplateName *each = name; each; each = each->next) count++;
    bool fits =
        (value.kind == VALUE_TUPLE || value.kind == VALUE_LIST) && value.as.list->count == count;
    if (!fits)
        return fail(STATUS_FORMAT,
                    "line %d of the template: there are %zu variables, but the value "
                    "is %s",
                    node->line, count, value_text(value).text);
    for (size_t i = 0; name; name = name->next, i++)
        dict_set_word(variables, name->text, value_retain(value.as.list->items[i]));
    return STATUS_OK;
}

// The text that statements make, as a value.
static Status render_text(TemplateRender *render, TemplateScope *scope, const TemplateNode *body,
                          Value *out) {
    Text text = {0}, *outer = render->out;
    render->out = &text;
    Status status = run(render, scope, body);
    render->out = outer;
    if (status == STATUS_OK) *out = value_string(text_get(&text), text.length);
    text_free(&text);
    return status;
}

// The text of a body, perhaps filtered.
static Status body_value(TemplateRender *render, TemplateScope *scope, const TemplateNode *node,
                         Value *out) {
    TemplateScope inner = {.variables = value_dict(), .outer = scope};
    Status status = render_text(render, &inner, node->body, out);
    if (status == STATUS_OK && node->filter) {
        dict_set_word(inner.variables.as.dict, TEMPLATE_BODY_NAME, *out);
        status = template_evaluate(render, &inner, node->filter, out);
    }
    end_scope(&inner);
    return status;
}

// What the template made with namespace(); a dictionary of the messages is not the template's.
static bool is_namespace(TemplateRender *render, Value object) {
    const List *namespaces = render->namespaces.as.list;
    if (object.kind != VALUE_DICT) return false;
    for (size_t i = namespaces->count; i-- > 0; render->steps++)
        if (namespaces->items[i].as.dict == object.as.dict) return true;
    return false;
}

static Status assign(TemplateRender *render, TemplateScope *scope, const TemplateNode *node) {
    Value value;
    Status status = node->value ? template_evaluate(render, scope, node->value, &value)
                                : body_value(render, scope, node, &value);
    TRY(status);
    if (!node->field) {
        status = bind(scope, node, value);
    } else {
        SCOPED_VALUE(object) = template_look_up(scope, node->names->text);
        if (is_namespace(render, object))
            dict_set_word(object.as.dict, node->field, value_retain(value));
        else
            status = template_fail(node->line, "only a namespace has fields to set");
    }
    value_release(value);
    return status;
}

static Status filter_body(TemplateRender *render, TemplateScope *scope, const TemplateNode *node) {
    Value value;
    TRY(body_value(render, scope, node, &value));
    return put(render, node, value);
}

// The values are what they are outside.
static Status with(TemplateRender *render, TemplateScope *scope, const TemplateNode *node) {
    TemplateScope inner = {.variables = value_dict(), .outer = scope};
    Status status = STATUS_OK;
    for (const TemplateName *name = node->names; name && status == STATUS_OK; name = name->next) {
        Value value;
        status = template_evaluate(render, scope, name->fallback, &value);
        if (status == STATUS_OK) dict_set_word(inner.variables.as.dict, name->text, value);
    }
    if (status == STATUS_OK) status = run(render, &inner, node->body);
    end_scope(&inner);
    return status;
}

// --- macros

static Status fail_argument(const TemplateNode *macro, const TemplateArguments *arguments,
                            const char *keyword) {
    if (keyword)
        return fail(STATUS_FORMAT, "line %d of the template: the macro `%s` has no parameter `%s`",
                    arguments->line, macro->text, keyword);
    return fail(STATUS_FORMAT, "line %d of the template: there are too many arguments for `%s`",
                arguments->line, macro->text);
}

static Status check_arguments(const TemplateNode *macro, const TemplateArguments *arguments) {
    size_t count = 0;
    for (const TemplateName *name = macro->names; name; name = name->next) count++;
    for (size_t i = 0; i < arguments->count; i++) {
        const char *keyword = arguments->keywords[i];
        const TemplateName *name = macro->names;
        while (keyword && name && strcmp(name->text, keyword) != 0) name = name->next;
        if (keyword ? !name : i >= count) return fail_argument(macro, arguments, keyword);
    }
    return STATUS_OK;
}

static Status bind_parameters(TemplateRender *render, TemplateScope *scope,
                              const TemplateNode *macro, const TemplateArguments *arguments) {
    TRY(check_arguments(macro, arguments));
    size_t index = 0;
    for (const TemplateName *name = macro->names; name; name = name->next, index++) {
        Value value = value_retain(template_argument(arguments, index, name->text));
        if (value.kind == VALUE_ABSENT && name->fallback)
            TRY(template_evaluate(render, scope, name->fallback, &value));
        dict_set_word(scope->variables.as.dict, name->text, value);
    }
    return STATUS_OK;
}

Status template_call_macro(TemplateRender *render, const TemplateMacro *macro,
                           const TemplateMacro *caller, const TemplateArguments *arguments,
                           Value *out) {
    TemplateScope scope = {.variables = value_dict(), .caller = caller, .outer = macro->home};
    TemplateFlow flow = render->flow;
    render->flow = TEMPLATE_GOES_ON;
    Status status = bind_parameters(render, &scope, macro->node, arguments);
    if (status == STATUS_OK) status = render_text(render, &scope, macro->node->body, out);
    render->flow = flow;
    end_scope(&scope);
    return status;
}

static Status call_with_body(TemplateRender *render, TemplateScope *scope,
                             const TemplateNode *node) {
    TemplateMacro caller = {node, scope};
    const TemplateMacro *outer = render->caller;
    Value value;
    render->caller = &caller;
    Status status = template_evaluate(render, scope, node->value, &value);
    render->caller = outer;
    return status == STATUS_OK ? put(render, node, value) : status;
}

// --- loops

static Value loop_value(const List *items, size_t index) {
    Value loop = value_dict();
    size_t count = items->count;
    struct {
        const char *name;
        Value value;
    } fields[] = {
        {"index", value_int((int64_t)index + 1)},
        {"index0", value_int((int64_t)index)},
        {"revindex", value_int((int64_t)(count - index))},
        {"revindex0", value_int((int64_t)(count - index) - 1)},
        {"first", value_bool(index == 0)},
        {"last", value_bool(index + 1 == count)},
        {"length", value_int((int64_t)count)},
        {"previtem", index > 0 ? value_retain(items->items[index - 1]) : value_absent()},
        {"nextitem", index + 1 < count ? value_retain(items->items[index + 1]) : value_absent()}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].value.kind != VALUE_ABSENT)
            dict_set_word(loop.as.dict, fields[i].name, fields[i].value);
    return loop;
}

// The items that the loop's condition lets pass.
static Status filter_items(TemplateRender *render, TemplateScope *scope, const TemplateNode *node,
                           const List *items, List *kept) {
    for (size_t i = 0; i < items->count; i++) {
        TemplateScope inner = {.variables = value_dict(), .outer = scope};
        Value passes = value_bool(true);
        Status status = bind(&inner, node, items->items[i]);
        if (status == STATUS_OK) status = template_evaluate(render, &inner, node->filter, &passes);
        if (status == STATUS_OK && template_is_true(passes))
            list_push(kept, value_retain(items->items[i]));
        value_release(passes);
        end_scope(&inner);
        TRY(status);
    }
    return STATUS_OK;
}

static Status repeat(TemplateRender *render, TemplateScope *scope, const TemplateNode *node,
                     const List *items) {
    for (size_t i = 0; i < items->count && render->flow != TEMPLATE_BREAKS; i++) {
        TemplateScope inner = {.variables = value_dict(), .outer = scope};
        Status status = bind(&inner, node, items->items[i]);
        dict_set_word(inner.variables.as.dict, "loop", loop_value(items, i));
        if (status == STATUS_OK) status = run(render, &inner, node->body);
        if (render->flow == TEMPLATE_CONTINUES) render->flow = TEMPLATE_GOES_ON;
        end_scope(&inner);
        TRY(status);
    }
    render->flow = TEMPLATE_GOES_ON;
    return items->count == 0 ? run(render, scope, node->otherwise) : STATUS_OK;
}

// There is nothing in what is undefined.
static Status loop(TemplateRender *render, TemplateScope *scope, const TemplateNode *node) {
    Value iterable;
    TRY(template_evaluate(render, scope, node->value, &iterable));
    if (iterable.kind == VALUE_NONE) return template_fail(node->line, "none cannot be looped over");
    SCOPED_VALUE(items) = iterable.kind == VALUE_ABSENT
                              ? value_list(1)
                              : value_to_items(iterable, "what is looped over");
    SCOPED_VALUE(kept) = value_list(4);
    value_release(iterable);
    Status status = items.kind == VALUE_FAIL ? error_current()->code : STATUS_OK;
    if (status == STATUS_OK)
        status = template_count_items(&render->steps, node->line, items.as.list->count);
    if (status == STATUS_OK && node->filter)
        status = filter_items(render, scope, node, items.as.list, kept.as.list);
    const List *passing = node->filter ? kept.as.list : items.as.list;
    if (status == STATUS_OK) status = repeat(render, scope, node, passing);
    return status;
}

static Status run_one(TemplateRender *render, TemplateScope *scope, const TemplateNode *node) {
    TRY(template_count_steps(render, node->line, value_none()));
    switch (node->kind) {
    case TEMPLATE_NODE_TEXT:
        text_append(render->out, node->text, node->length);
        return template_check_size(render->out->length, TEMPLATE_BYTES_MAX, node->line);
    case TEMPLATE_NODE_OUTPUT: return output(render, scope, node);
    case TEMPLATE_NODE_IF: return choose(render, scope, node);
    case TEMPLATE_NODE_FOR: return loop(render, scope, node);
    case TEMPLATE_NODE_SET: return assign(render, scope, node);
    case TEMPLATE_NODE_WITH: return with(render, scope, node);
    case TEMPLATE_NODE_FILTER: return filter_body(render, scope, node);
    case TEMPLATE_NODE_CALL: return call_with_body(render, scope, node);
    case TEMPLATE_NODE_MACRO: VECTOR_PUSH(&scope->macros, node); break;
    case TEMPLATE_NODE_BREAK: render->flow = TEMPLATE_BREAKS; break;
    case TEMPLATE_NODE_CONTINUE: render->flow = TEMPLATE_CONTINUES; break;
    }
    return STATUS_OK;
}

static Status run(TemplateRender *render, TemplateScope *scope, const TemplateNode *node) {
    if (node && render->depth == TEMPLATE_DEPTH_MAX)
        return template_fail(node->line, "this is nested too deeply");
    render->depth++;
    for (; node && render->flow == TEMPLATE_GOES_ON; node = node->next)
        TRY(run_one(render, scope, node));
    ASSERT(render->depth > 0);
    render->depth--;
    return STATUS_OK;
}

Status template_render(const Template *template, Value variables, Text *out) {
    TemplateRender render = {.out = out, .namespaces = value_list(0)};
    TemplateScope outer = {.variables = variables};
    TemplateScope inner = {.variables = value_dict(), .outer = &outer};
    Status status = run(&render, &inner, template->body);
    end_scope(&inner);
    value_release(render.namespaces);
    return status;
}
