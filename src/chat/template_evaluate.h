// The values of expressions of a template, and the scopes that names are looked up in.
#ifndef CHAT_TEMPLATE_EVALUATE_H
#define CHAT_TEMPLATE_EVALUATE_H

#include "chat/template_render.h"

Status template_evaluate(TemplateRender *render, TemplateScope *scope, const TemplateExpr *expr,
                         Value *out) MUST_USE;
Status template_fail(int line, const char *what);
Value template_look_up(const TemplateScope *scope, const char *name);
// Fails when a template goes on for too long; long texts count as many steps.
Status template_count_steps(TemplateRender *render, int line, Value value) MUST_USE;

#endif
