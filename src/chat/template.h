// Templates of chats: the part of Jinja that models' files use to turn messages into one text.
// Texts, {{ expressions }}, {# comments #}, if/elif/else, for, set, macro; blank control as Hugging
// Face asks for it (trim_blocks, lstrip_blocks). What a template asks for beyond that is an error
// in words, at parsing for statements, and for filters, tests, methods and functions where one is
// used. Source: the Jinja template designer documentation; Hugging Face, "Chat templates".
#ifndef CHAT_TEMPLATE_H
#define CHAT_TEMPLATE_H

#include "value/value.h"

typedef struct Template Template;

// Copies the text. STATUS_FORMAT with the line.
Status template_parse(const char *text, size_t length, Template **out) MUST_USE;
void template_free(Template *template);
// Appends the text that the template makes of a dictionary of variables. STATUS_FORMAT with the
// line; what raise_exception says is a STATUS_VALUE.
Status template_render(const Template *template, Value variables, Text *out) MUST_USE;

#endif
