// Entries of a profile in the order in which they were first run; one that runs again in the same
// way, as rules do in every round, adds to what is there.
#include "logic/profile.h"

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "logic/proof.h"

typedef struct ProfileStep {
    char *text, *access;
} ProfileStep;

typedef struct Entry { // a section's title, or a plan
    char *title;
    char *occasion; // of a plan: when it is run; NULL: a section
    ProfileStep *steps;
    StepCost *costs; // of the steps and of what is behind the last
    uint32_t count, runs;
} Entry;

struct Profile {
    VECTOR(Entry) entries;
};

Profile *profile_new(void) {
    return memory_allocate_zeroed(1, sizeof(Profile));
}

static void entry_free(Entry *entry) {
    for (uint32_t i = 0; i < entry->count; i++) {
        free(entry->steps[i].text);
        free(entry->steps[i].access);
    }
    free(entry->title);
    free(entry->occasion);
    free(entry->steps);
    free(entry->costs);
}

void profile_free(Profile *profile) {
    if (!profile) return;
    for (size_t i = 0; i < profile->entries.count; i++) entry_free(&profile->entries.items[i]);
    VECTOR_FREE(&profile->entries);
    free(profile);
}

uint64_t profile_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

size_t profile_begin_section(Profile *profile) {
    VECTOR_PUSH(&profile->entries, ((Entry){0}));
    return profile->entries.count - 1;
}

void profile_name_section(Profile *profile, size_t section, const char *format, ...) {
    ASSERT(section < profile->entries.count);
    Text text = {0};
    va_list arguments;
    va_start(arguments, format);
    text_format_v(&text, format, arguments);
    va_end(arguments);
    free(profile->entries.items[section].title);
    profile->entries.items[section].title = text_take(&text);
}

// --- steps in words

static char *step_text(const Store *store, const Rule *rule, const Goal *goal) {
    Text text = {0};
    goal_print_open(store, rule, goal, &text);
    return text_take(&text);
}

static void append_columns(Columns columns, Text *out) {
    ASSERT(columns != 0);
    bool several = (columns & (columns - 1)) != 0;
    text_append_string(out, several ? "by columns " : "by column ");
    for (Columns left = columns; left; left &= left - 1)
        text_format(out, "%d%s", __builtin_ctz(left) + 1, left & (left - 1) ? ", " : "");
}

static char *step_access(const Step *step, const Goal *delta) {
    Text text = {0};
    if (step->index)
        append_columns(step->bound, &text);
    else if (step->goal->relation && step->bound)
        text_append_string(&text, "by the whole row");
    else if (step->goal->relation)
        text_append_string(&text, step->goal == delta ? "every new row" : "every row");
    else
        text_append_string(&text, step->goal->kind == GOAL_BIND     ? "computed"
                                  : step->goal->kind == GOAL_MEMBER ? "every item"
                                                                    : "tested");
    return text_take(&text);
}

static char *plan_title(const Rule *rule) {
    Text text = {0};
    const char *name = rule->relation ? rule->relation->name : "";
    size_t length;
    const char *source = source_text(rule->span, &length);
    bool own = length >= strlen(name) && memcmp(source, name, strlen(name)) == 0;
    if (!own) text_format(&text, "%s, by ", name); // what a goal-directed query adds
    if (rule->relation)
        rule_print(rule, &text);
    else
        text_append_string(&text, "the query");
    return text_take(&text);
}

static char *plan_occasion(const Goal *delta) {
    ASSERT(!delta || delta->relation);
    Text text = {0};
    if (delta) text_format(&text, "for new rows of %s", delta->relation->name);
    return text_take(&text);
}

static bool entries_agree(const Entry *a, const Entry *b) {
    if (!a->occasion || a->count != b->count || strcmp(a->title, b->title) != 0 ||
        strcmp(a->occasion, b->occasion) != 0)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (strcmp(a->steps[i].text, b->steps[i].text) != 0 ||
            strcmp(a->steps[i].access, b->steps[i].access) != 0)
            return false;
    return true;
}

// Whether a relation without rows ends it before it begins.
static bool plan_is_empty(const Plan *plan) {
    for (uint32_t i = 0; i < plan->count; i++)
        if (plan->steps[i].goal->kind == GOAL_ATOM && plan->steps[i].low >= plan->steps[i].high)
            return true;
    return false;
}

StepCost *profile_plan(Profile *profile, const Store *store, const Plan *plan, const Goal *delta) {
    ASSERT(plan->count <= plan->rule->goal_count);
    if (plan_is_empty(plan)) return NULL;
    Entry entry = {.title = plan_title(plan->rule), .occasion = plan_occasion(delta)};
    entry.count = plan->count;
    entry.steps = memory_allocate_zeroed(plan->count + 1, sizeof *entry.steps);
    for (uint32_t i = 0; i < plan->count; i++) {
        entry.steps[i].text = step_text(store, plan->rule, plan->steps[i].goal);
        entry.steps[i].access = step_access(&plan->steps[i], delta);
    }
    for (size_t i = profile->entries.count; i-- > 0 && profile->entries.items[i].occasion;) {
        Entry *there = &profile->entries.items[i];
        if (!entries_agree(there, &entry)) continue;
        entry_free(&entry);
        there->runs++;
        return there->costs;
    }
    entry.costs = memory_allocate_zeroed(plan->count + 1, sizeof *entry.costs);
    entry.runs = 1;
    VECTOR_PUSH(&profile->entries, entry);
    return entry.costs;
}

// --- printing

static void entry_print(const Entry *entry, Text *out) {
    enum { INDENT = 6 };
    const double MILLISECOND = 1e6;
    size_t wide = 0, wider = 0;
    for (uint32_t i = 0; i < entry->count; i++) {
        size_t text = strlen(entry->steps[i].text), access = strlen(entry->steps[i].access);
        wide = text > wide ? text : wide;
        wider = access > wider ? access : wider;
    }
    text_format(out, "    %s", entry->title);
    if (entry->occasion[0])
        text_format(out, "   %s, %u round%s", entry->occasion, entry->runs,
                    entry->runs == 1 ? "" : "s");
    text_append_char(out, '\n');
    for (uint32_t i = 0; i < entry->count; i++) {
        uint64_t rows = entry->costs[i + 1].calls; // what passed
        text_append_repeated(out, ' ', INDENT);
        text_format(out, "%-*s   %-*s   %llu row%s, %.3f ms\n", (int)wide, entry->steps[i].text,
                    (int)wider, entry->steps[i].access, (unsigned long long)rows,
                    rows == 1 ? "" : "s", (double)entry->costs[i].nanoseconds / MILLISECOND);
    }
}

void profile_print(const Profile *profile, Text *out) {
    for (size_t i = 0; i < profile->entries.count; i++) {
        const Entry *entry = &profile->entries.items[i];
        if (entry->occasion)
            entry_print(entry, out);
        else if (entry->title)
            text_format(out, "  %s\n", entry->title);
    }
}
