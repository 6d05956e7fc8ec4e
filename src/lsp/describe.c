// Diagnostics, the formatted text, and what a name is.
#include <stdlib.h>

#include "fmt/fmt.h"
#include "lsp/features.h"
#include "lsp/place.h"
#include "parser/walk.h"

// The further places of a diagnostic.
static void add_related(json_t *json, const Diagnostic *diagnostic) {
    json_t *related = json_array();
    for (size_t i = 0; i < DIAGNOSTIC_NOTES_MAX && diagnostic->notes[i].text; i++) {
        const DiagnosticNote *note = &diagnostic->notes[i];
        if (*note->text && note->span.begin)
            json_array_append_new(related,
                                  json_pack("{s:o, s:o}", "location", place_location(note->span),
                                            "message", place_text(note->text, strlen(note->text))));
    }
    if (json_array_size(related) > 0) json_object_set(json, "relatedInformation", related);
    json_decref(related);
}

json_t *feature_diagnostics(const Analysis *analysis) {
    json_t *list = json_array();
    NodeList top = analysis->program->top->as.block.statements;
    for (size_t i = 0; i < analysis->diagnostics.count; i++) {
        const Diagnostic *diagnostic = &analysis->diagnostics.items[i];
        SCOPED_TEXT(message);
        Span span = diagnostic->span;
        text_append_string(&message, diagnostic->message);
        if (!analysis_has(analysis, span.begin)) { // of an imported file: shown at the import
            SourcePlace place = source_find(span.begin);
            if (place.file) text_format(&message, " (%s:%d)", place.file->name, place.line);
            span = (Span){analysis->file->base, analysis->file->base};
            for (size_t j = top.count; j-- > 0;)
                if (top.items[j]->kind == NODE_IMPORT) span = top.items[j]->span;
        }
        if (diagnostic->label && *diagnostic->label)
            text_format(&message, "\n%s", diagnostic->label);
        if (diagnostic->help && *diagnostic->help)
            text_format(&message, "\nhelp: %s", diagnostic->help);
        json_t *json =
            json_pack("{s:o, s:i, s:s, s:s*, s:o}", "range", place_range(span), "severity",
                      (int)diagnostic->severity + 1, "source", "tl", "code", diagnostic->kind,
                      "message", place_text(text_get(&message), message.length));
        add_related(json, diagnostic);
        json_array_append_new(list, json);
    }
    return list;
}

json_t *feature_formatting(const Analysis *analysis) {
    DiagnosticList diagnostics = {0};
    SCOPED_TEXT(text);
    json_t *edits = NULL;
    if (format_source(analysis->file, &text, &diagnostics)) {
        SourcePos base = analysis->file->base;
        bool differs = text.length != analysis->file->length ||
                       memcmp(text_get(&text), analysis->file->text, text.length) != 0;
        edits = json_array();
        if (differs)
            json_array_append_new(
                edits, json_pack("{s:o, s:o}", "range",
                                 place_range((Span){base, base + analysis->file->length}),
                                 "newText", place_text(text_get(&text), text.length)));
    } else {
        fail(STATUS_FORMAT, "%s", diagnostics.items[0].message);
    }
    diagnostic_list_free(&diagnostics);
    return edits;
}

// --- hover

void feature_append_head(Text *out, const FunctionNode *function) {
    Span head = function->head;
    ASSERT(head.begin <= head.end);
    if (function->result) head.end = function->result->span.end;
    size_t length;
    const char *text = source_text(head, &length);
    text_append(out, text, length);
}

static void append_comment_above(Text *out, SourcePos at) {
    SCOPED_TEXT(comment);
    source_append_comment(at, &comment);
    if (comment.length) text_format(out, "\n\n%s", text_get(&comment));
}

static void append_source(Text *out, Span span) {
    enum { SHOWN_MAX = 120 };
    size_t length;
    const char *text = source_text(span, &length);
    const char *newline = memchr(text, '\n', length);
    size_t shown = newline ? (size_t)(newline - text) : length;
    if (shown > SHOWN_MAX) shown = SHOWN_MAX;
    text_append(out, text, shown);
    if (shown < length) text_append_string(out, " ...");
}

static void append_builtin(Text *out, const char *name) {
    const Builtin *row = catalog_find(name, strlen(name));
    text_append_string(out, "```tl\n");
    for (const Builtin *each = row; each; each = each->next_overload)
        text_format(out, "%s\n", each->signature_text);
    text_append_string(out, "```\n");
    const char *examples = strchr(row->doc, '\n');
    size_t sentences = examples ? (size_t)(examples - row->doc) : strlen(row->doc);
    text_append(out, row->doc, sentences);
    if (examples) text_format(out, "\n```tl%s\n```", examples);
}

// What a variable is: as annotated, or the value that it is first given and what inference says of
// it.
static void append_variable(Text *out, const Binding *binding) {
    const Node *node = binding->declaration;
    text_append_string(out, "```tl\n");
    if (node && (node->kind == NODE_TENSOR_DECLARATION || node->kind == NODE_LET ||
                 node->kind == NODE_PROGRAM)) {
        append_source(out, node->span);
    } else if (node && node->kind == NODE_FUNCTION) {
        feature_append_head(out, node->as.function);
    } else if (binding->type) {
        text_format(out, "%s: ", binding->word.text);
        append_source(out, binding->type->span);
    } else {
        text_append_string(out, binding->word.text);
    }
    text_append_string(out, "\n```");
    bool annotated = binding->type || (node && node->kind == NODE_TENSOR_DECLARATION);
    if (binding->inferred && !annotated) text_format(out, "\n%s", binding->inferred);
}

// How many facts and rules of a relation the text holds.
typedef struct Clauses {
    const Binding *binding;
    size_t facts, rules;
} Clauses;

static void count_clause(void *context, Node *node) {
    Clauses *clauses = context;
    ASSERT(clauses->binding != NULL);
    bool clause = node->kind == NODE_FACT || node->kind == NODE_RULE;
    if (!clause || node->as.clause->atom.binding != clauses->binding) return;
    clauses->facts += node->kind == NODE_FACT;
    clauses->rules += node->kind == NODE_RULE;
}

static void append_clauses(Text *out, const Analysis *analysis, const Binding *binding) {
    if (binding->declaration->kind == NODE_ENTITY) {
        feature_append_rows(out, analysis, binding);
        return;
    }
    Clauses clauses = {.binding = binding};
    walk_node(&(Walker){.context = &clauses, .node = count_clause}, analysis->program->top);
    text_format(out, "\n%zu fact%s and %zu rule%s in this text", clauses.facts,
                clauses.facts == 1 ? "" : "s", clauses.rules, clauses.rules == 1 ? "" : "s");
    feature_append_rows(out, analysis, binding);
}

static void append_binding(Text *out, const Analysis *analysis, const Binding *binding) {
    switch (binding->kind) {
    case BINDING_BUILTIN: append_builtin(out, binding->word.text); return;
    case BINDING_FUNCTION:
        text_append_string(out, "```tl\n");
        feature_append_head(out, binding->declaration->as.function);
        text_append_string(out, "\n```");
        append_comment_above(out, binding->declaration->span.begin);
        return;
    case BINDING_STRUCT: {
        size_t length;
        const char *text = source_text(binding->declaration->span, &length);
        text_append_string(out, "```tl\n");
        text_append(out, text, length);
        text_append_string(out, "\n```");
        append_comment_above(out, binding->declaration->span.begin);
        return;
    }
    case BINDING_RELATION:
        text_append_string(out, "```tl\n");
        append_source(out, binding->declaration->span);
        text_append_string(out, "\n```");
        append_clauses(out, analysis, binding);
        append_comment_above(out, binding->declaration->span.begin);
        return;
    case BINDING_MODULE:
        text_format(out, "```tl\nimport \"%s\" as %s\n```",
                    binding->program ? binding->program->file->name : "", binding->word.text);
        return;
    case BINDING_DIMENSION:
        text_format(out, "```tl\n%s\n```\na dimension", binding->word.text);
        return;
    case BINDING_DTYPE: text_format(out, "```tl\n%s\n```\na dtype", binding->word.text); return;
    case BINDING_CONSTANT:
        text_format(out, "```tl\n%s\n```\n%s", binding->word.text, binding->constant->doc);
        return;
    default: append_variable(out, binding); return;
    }
}

static void append_members(Text *out, const Analysis *analysis, Span name) {
    size_t length;
    const char *text = source_text(name, &length);
    for (size_t i = 0; i < analysis->members.count; i++) {
        const Member *member = &analysis->members.items[i];
        if (member->name->length != length || memcmp(member->name->text, text, length) != 0)
            continue;
        text_format(out, "%s```tl\n%s: ", out->length ? "\n" : "", member->owner->text);
        if (member->method)
            feature_append_head(out, member->method);
        else
            append_source(out, (Span){member->name->span.begin, member->type->span.end});
        text_append_string(out, "\n```");
    }
}

json_t *feature_hover(const Analysis *analysis, size_t offset) {
    const Occurrence *occurrence = analysis_at(analysis, offset);
    SCOPED_TEXT(text);
    Span span = {0, 0};
    if (occurrence) span = occurrence->span;
    if (occurrence && occurrence->member) append_members(&text, analysis, span);
    if (text.length == 0 && occurrence && occurrence->binding)
        append_binding(&text, analysis, occurrence->binding);
    if (text.length == 0) span = feature_append_sums(&text, analysis, offset);
    json_t *hover = NULL;
    if (text.length > 0)
        hover = json_pack("{s:{s:s, s:o}, s:o}", "contents", "kind", "markdown", "value",
                          place_text(text_get(&text), text.length), "range", place_range(span));
    return hover;
}
