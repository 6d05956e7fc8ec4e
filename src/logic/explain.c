// A query made anew with a profile: what it needs is forgotten first.
#include "logic/explain.h"
#include "logic/profile.h"
#include "logic/query.h"

static void forget(Relation *relation) {
    if (relation->wanted) return;
    relation->wanted = true; // so that cycles end
    relation_changed(relation);
    for (size_t i = 0; i < relation->rules.count; i++) {
        const Rule *rule = relation->rules.items[i];
        for (uint32_t j = 0; j < rule->goal_count; j++)
            if (rule->goals[j].relation) forget(rule->goals[j].relation);
    }
}

// What is there before anything runs: the facts that the rules rest on.
static void facts_describe(const Store *store, Text *out) {
    for (size_t i = 0; i < store->relations.count; i++) {
        Relation *relation = store->relations.items[i];
        uint32_t rows = table_live(relation->facts);
        if (relation->wanted && rows > 0)
            text_format(out, "  %s: %u fact%s\n", relation->name, rows, rows == 1 ? "" : "s");
        relation->wanted = false;
    }
}

Status store_explain(Store *store, Rule *query, const Datum *initial, Text *out) {
    ASSERT(store->profile == NULL);
    Table *answers;
    store_forget_begun(store);
    for (uint32_t i = 0; i < query->goal_count; i++)
        if (query->goals[i].relation) forget(query->goals[i].relation);
    facts_describe(store, out);
    store->profile = profile_new();
    Status status = store_query(store, query, initial, &answers);
    if (status == STATUS_OK) {
        profile_print(store->profile, out);
        text_format(out, "  %u answer%s\n", answers->count, answers->count == 1 ? "" : "s");
        table_free(answers);
    }
    profile_free(store->profile);
    store->profile = NULL;
    return status;
}
