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

static void append_names(Text *out, const Equation *plan, IndexSet indexes) {
    bool first = true;
    for (int i = 0; i < plan->name_count; i++) {
        if (!(indexes >> i & 1)) continue;
        text_format(out, "%s%s", first ? "" : ", ",
                    plan->names[i].text ? plan->names[i].text : ":");
        first = false;
    }
}

// Sums that are written as such are seen without help.
static void append_sum(Text *out, const Equation *plan, const EquationNode *node) {
    static const char *const words[] = {"sum", "sum", "max", "min", "avg"};
    const char *word = words[node->reduction];
    size_t length, size = strlen(word);
    const char *source = source_text(node->span, &length);
    if (length > size && memcmp(source, word, size) == 0 && source[size] == '[') return;
    text_format(out, "\n%s[", word);
    append_names(out, plan, node->reduced);
    text_append_string(out, "](");
    text_append(out, source, length);
    text_append_char(out, ')');
}

static void append_node(Text *out, const Equation *plan, const EquationNode *node) {
    if (node->reduced && node->kind != EQUATION_CONCAT) append_sum(out, plan, node);
    for (size_t i = 0; i < node->count; i++) append_node(out, plan, node->parts[i]);
}

Span feature_append_sums(Text *out, const Analysis *analysis, size_t offset) {
    Search search = {.at = analysis->file->base + (SourcePos)offset};
    walk_node(&(Walker){.context = &search, .node = look_at}, analysis->program->top);
    if (!search.found) return (Span){0, 0};
    size_t length;
    const char *source = source_text(search.found->span, &length);
    text_append_string(out, "```tl\n");
    text_append(out, source, length);
    append_node(out, search.found, search.found->value);
    text_append_string(out, "\n```");
    return search.found->span;
}
