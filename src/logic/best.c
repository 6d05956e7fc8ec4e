// The best way to an answer in words.
#include <stdlib.h>

#include "logic/proof.h"
#include "logic/weigh.h"
#include "logic/weighers.h"

typedef struct WayLine {
    uint32_t node, indent;
    bool negated;
} WayLine;

typedef struct WayText {
    const Store *store;
    const BestWay *way;
    const double *weights;
    VECTOR(WayLine) lines; // that are still to be written, the next one last
    bool *shown;           // nodes
    Text *out;
} WayText;

static void push_literals(WayText *text, const GroundInstance *instance, uint32_t indent) {
    ASSERT(instance->first + instance->count <= text->way->ground->literals.count);
    for (uint32_t i = instance->count; i-- > 0;) {
        const GroundLiteral *literal = &text->way->ground->literals.items[instance->first + i];
        WayLine line = {literal->node, indent, literal->negated};
        VECTOR_PUSH(&text->lines, line);
    }
}

static void append_weight(const WayText *text, const char *what, uint32_t leaf) {
    text_format(text->out, "   %s", what);
    if (leaf != NO_LEAF) text_format(text->out, ", %g", text->weights[leaf]);
}

static void print_fact(const WayText *text, const GroundNode *node, const Datum *values) {
    bool stated = table_has(node->relation->facts, values);
    append_weight(text, stated ? "fact" : "certain", node->leaf);
}

static void print_line(WayText *text, const WayLine *line) {
    const Ground *ground = text->way->ground;
    ASSERT(line->node < ground->nodes.count);
    const GroundNode *node = &ground->nodes.items[line->node];
    uint32_t way = text->way->ways[line->node];
    const Datum *values = &ground->values.items[node->values];
    proof_indent(line->indent, text->out);
    if (line->negated) text_append_string(text->out, "not ");
    atom_print(text->store, node->relation, values, text->out);
    if (line->negated || way == NO_WAY) {
        text_append_char(text->out, '\n');
        return;
    }
    const GroundInstance *instance =
        way > 0 ? &ground->instances.items[node->first + way - 1] : NULL;
    if (!instance)
        print_fact(text, node, values);
    else if (text->shown[line->node])
        text_append_string(text->out, "   as above");
    else if (instance->leaf != NO_LEAF)
        append_weight(text, "rule", instance->leaf);
    text_append_char(text->out, '\n');
    if (instance && !text->shown[line->node]) push_literals(text, instance, line->indent + 1);
    text->shown[line->node] = true;
}

void way_print(const Store *store, const BestWay *way, const double *weights, Text *out) {
    const Ground *ground = way->ground;
    ASSERT(way->answer < ground->nodes.count);
    const GroundNode *answer = &ground->nodes.items[way->answer];
    uint32_t number = way->ways[way->answer];
    if (number == NO_WAY || number == 0) return;
    WayText text = {.store = store, .way = way, .weights = weights, .out = out};
    text.shown = memory_allocate_zeroed(ground->nodes.count + 1, sizeof *text.shown);
    push_literals(&text, &ground->instances.items[answer->first + number - 1], 2);
    while (text.lines.count > 0) {
        WayLine line = text.lines.items[--text.lines.count];
        print_line(&text, &line);
    }
    VECTOR_FREE(&text.lines);
    free(text.shown);
}
