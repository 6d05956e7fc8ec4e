// Relations in words, for those who look at a session.
#include "logic/proof.h"
#include "reason/reason.h"

static void append_count(Text *out, size_t count, const char *what) {
    text_format(out, ", %zu %s%s", count, what, count == 1 ? "" : "s");
}

// Not those that make a relation an equivalence, which stand nowhere.
static bool is_written(const Rule *rule) {
    return rule->span.end > rule->span.begin;
}

static size_t rules_written(const Relation *relation) {
    size_t count = 0;
    for (size_t i = 0; i < relation->rules.count; i++)
        count += is_written(relation->rules.items[i]);
    return count;
}

void relation_describe(const Relation *relation, Text *out) {
    text_format(out, "%s %s", relation->entities ? "entity" : "relation", relation->name);
    for (uint32_t i = 0; !relation->entities && i < relation->arity; i++) {
        const char *name = relation->columns[i].name;
        text_format(out, "%s%s%s", i == 0 ? "(" : ", ", name[0] ? name : "_",
                    i + 1 == relation->arity ? ")" : "");
    }
    append_count(out, table_live(relation->facts), relation->entities ? "name" : "fact");
    size_t rules = rules_written(relation);
    if (rules > 0) append_count(out, rules, "rule");
    if (relation->equivalence) text_append_string(out, ", an equivalence");
    const Table *table = relation_table(relation);
    if (!table) {
        text_append_string(out, ", not evaluated yet");
        return;
    }
    if (relation_is_derived(relation)) append_count(out, table_live(table), "row");
    text_format(out, ", %zu bytes as %s", relation_bytes(relation), cells_name(table->cells));
}

// One fact a line; the first ones, and how many more there are; where the rest comes from.
void relation_list_facts(const Store *store, const Relation *relation, Text *out) {
    enum { SHOWN_MAX = 100 };
    const Table *facts = relation->facts;
    Datum values[ARITY_MAX];
    uint32_t shown = 0;
    for (uint32_t row = 0; row < facts->count && shown < SHOWN_MAX; row++) {
        if (table_is_dead(facts, row)) continue;
        table_read(facts, row, values);
        atom_print(store, relation, values, out);
        text_append_char(out, '\n');
        shown++;
    }
    uint32_t more = table_live(facts) - shown;
    if (more > 0) text_format(out, "and %u more\n", more);
    if (shown == 0) text_append_string(out, "no facts\n");
    size_t rules = rules_written(relation);
    if (relation->equivalence)
        text_format(out, "an equivalence: `%s(", relation->name);
    else if (rules > 0)
        text_format(out, "%zu rule%s give%s its rows: `%s(", rules, rules == 1 ? "" : "s",
                    rules == 1 ? "s" : "", relation->name);
    else
        return;
    for (uint32_t i = 0; i < relation->arity; i++)
        text_format(out, "%sX%u", i == 0 ? "" : ", ", i + 1);
    text_append_string(out, ")?` shows ");
    text_append_string(out, relation->equivalence ? "its rows" : "them");
    text_append_string(out, rules > 0 ? ", `:rules` the rules\n" : "\n");
}

void store_list_rules(const Store *store, Text *out) {
    for (size_t i = 0; i < store->rules.count; i++) {
        if (!is_written(store->rules.items[i])) continue;
        rule_print(store->rules.items[i], out);
        text_append_char(out, '\n');
    }
}

//      0.25 MB   Path, 2 rules, 9000 rows   declared at family.tl:3:10
void store_report(const Store *store, Text *out) {
    const double MEGABYTE = 0x1p20;
    size_t bytes = store_bytes(store);
    if (store->relations.count == 0) return;
    text_format(out, "relations:%12.2f MB\n", (double)bytes / MEGABYTE);
    for (size_t i = 0; i < store->relations.count; i++) {
        const Relation *relation = store->relations.items[i];
        const Table *table = relation_table(relation);
        SourcePlace place = source_find(relation->span.begin);
        text_format(out, "%9.2f MB   %s, %u facts", (double)relation_bytes(relation) / MEGABYTE,
                    relation->name, table_live(relation->facts));
        if (table && table != relation->facts) text_format(out, ", %u rows", table_live(table));
        if (table)
            text_format(out, ", %zu index%s", table->indexes.count,
                        table->indexes.count == 1 ? "" : "es");
        if (table && table->cells) text_format(out, ", %s", cells_name(table->cells));
        if (place.file)
            text_format(out, "   declared at %s:%d:%d", place.file->name, place.line, place.column);
        text_append_char(out, '\n');
    }
}
