// Calls of functions in what a model says: each family of templates has a form of its own in which
// they are written, which is found by what the template contains.
#ifndef SERVE_CALLS_H
#define SERVE_CALLS_H

#include "base/text.h"
#include "generate/constraint.h"
#include "serve/tools.h"

typedef struct CallForm CallForm;

// The form of a template. STATUS_VALUE when it knows no tools, or only in another form.
Status calls_form(const char *template, size_t length, const CallForm **out) MUST_USE;

// What the answer must look like so that each call has a known name and valid arguments. *trigger
// is the string from which on that holds, NULL: from the beginning. *out is NULL where nothing says
// that a call begins: then only calls that are valid JSON are read as calls.
Status calls_constraint(const CallForm *form, const ToolUse *use, Constraint **out,
                        const char **trigger) MUST_USE;

// The messages of earlier turns as templates expect them: arguments are objects, not strings.
Status calls_prepare(json_t *message) MUST_USE;

// The bytes at the beginning of a text that surely belong to no call.
size_t calls_content(const CallForm *form, const char *text, size_t length);
// The calls of a whole text, [{"name", "arguments": text}], and what was said before them; NULL
// when it has none. New.
json_t *calls_read(const CallForm *form, const json_t *tools, const Text *text, size_t *content);

#endif
