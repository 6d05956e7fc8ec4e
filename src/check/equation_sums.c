// Where an equation sums the indexes that its left side lacks, in words.
#include "check/equation.h"
#include "shape/shape.h"

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

void equation_append_sums(Text *out, const Equation *equation) {
    ASSERT(equation->value);
    append_node(out, equation, equation->value);
    bool first = true;
    for (int i = 0; i < equation->name_count; i++) {
        bool known = equation->sizes[i] > 0 && size_is_known(equation->sizes[i]);
        if (!known || !equation->names[i].text) continue;
        text_format(out, "%s%s = %lld", first ? "\n// sizes: " : ", ", equation->names[i].text,
                    (long long)equation->sizes[i]);
        first = false;
    }
}
