// What an equation does with the indexes that its left side lacks: where each is summed.
#include "check/equation.h"
#include "lsp/features.h"
#include "parser/walk.h"

typedef struct Search {
    SourcePos at;
    const Equation *found; // the innermost equation around the place
} Search;

static void look_at(void *context, Node *node) {
    Search *search = context;
    const Equation *plan = node->kind == NODE_EQUATION ? node->as.equation.plan : NULL;
    if (plan && plan->span.begin <= search->at && search->at <= plan->span.end)
        search->found = plan;
}

Span feature_append_sums(Text *out, const Analysis *analysis, size_t offset) {
    Search search = {.at = analysis->file->base + (SourcePos)offset};
    walk_node(&(Walker){.context = &search, .node = look_at}, analysis->program->top);
    if (!search.found) return (Span){0, 0};
    size_t length;
    const char *source = source_text(search.found->span, &length);
    text_append_string(out, "```tl\n");
    text_append(out, source, length);
    equation_append_sums(out, search.found);
    text_append_string(out, "\n```");
    return search.found->span;
}
