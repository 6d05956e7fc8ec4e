// A template at work: what its statements (template_render.c) and its expressions
// (template_evaluate.c) share.
#ifndef CHAT_TEMPLATE_RENDER_H
#define CHAT_TEMPLATE_RENDER_H

#include "chat/template_tree.h"
#include "chat/template_values.h"

enum { TEMPLATE_DEPTH_MAX = 400 };

typedef struct TemplateScope TemplateScope;

// A macro and the scope that it sees; what {% call %} gives one to call is of the same kind.
typedef struct TemplateMacro {
    const TemplateNode *node;
    TemplateScope *home;
} TemplateMacro;

struct TemplateScope {
    Value variables;             // a dictionary
    const TemplateMacro *caller; // of a macro that {% call %} called; else NULL
    VECTOR(const TemplateNode *) macros;
    TemplateScope *outer;
};

typedef enum TemplateFlow { TEMPLATE_GOES_ON, TEMPLATE_BREAKS, TEMPLATE_CONTINUES } TemplateFlow;

typedef struct TemplateRender {
    Text *out;
    int depth;
    size_t steps;                // a measure of the work done
    TemplateFlow flow;           // of the innermost loop
    const TemplateMacro *caller; // of the innermost {% call %}
    Value namespaces;            // a list: the dictionaries whose fields may be set
} TemplateRender;

// The text that a macro makes; `caller` may be NULL.
Status template_call_macro(TemplateRender *render, const TemplateMacro *macro,
                           const TemplateMacro *caller, const TemplateArguments *arguments,
                           Value *out) MUST_USE;

#endif
