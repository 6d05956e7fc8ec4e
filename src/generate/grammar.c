// Building grammars, and what must hold of a finished one.
#include "generate/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "generate/grammar_internal.h"

Grammar *grammar_new(void) {
    return memory_allocate_zeroed(1, sizeof(Grammar));
}

void grammar_free(Grammar *grammar) {
    for (size_t i = 0; i < grammar->rules.count; i++) VECTOR_FREE(&grammar->rules.items[i]);
    VECTOR_FREE(&grammar->rules);
    VECTOR_FREE(&grammar->optionals);
    VECTOR_FREE(&grammar->elements);
    VECTOR_FREE(&grammar->sets);
    free(grammar->costs);
    holes_free(grammar->holes);
    if (grammar->filler) grammar->filler->type->release(grammar->filler);
    free(grammar);
}

// --- rules

static Rule add_rule(Grammar *grammar) {
    VECTOR_PUSH(&grammar->rules, ((Alternatives){0}));
    return (Rule)(grammar->rules.count - 1);
}

static void push(Grammar *grammar, ElementKind kind, uint32_t value) {
    if (grammar->elements.count > GRAMMAR_ELEMENTS_MAX) return; // refused at the end
    VECTOR_PUSH(&grammar->elements, ((Element){kind, value}));
}

static void begin_alternative(Grammar *grammar, Rule rule) {
    VECTOR_PUSH(&grammar->rules.items[rule], (uint32_t)grammar->elements.count);
}

static uint32_t set_number(Grammar *grammar, const ByteSet *set) {
    for (size_t i = 0; i < grammar->sets.count; i++)
        if (memcmp(&grammar->sets.items[i], set, sizeof *set) == 0) return (uint32_t)i;
    VECTOR_PUSH(&grammar->sets, *set);
    return (uint32_t)(grammar->sets.count - 1);
}

static void push_bytes(Grammar *grammar, uint8_t first, uint8_t last) {
    ASSERT(first <= last);
    ByteSet set = {0};
    for (int byte = first; byte <= last; byte++) set.bits[byte / 64] |= 1ull << (byte % 64);
    push(grammar, ELEMENT_BYTES, set_number(grammar, &set));
}

Rule grammar_literal(Grammar *grammar, const char *bytes, size_t length) {
    Rule rule = add_rule(grammar);
    begin_alternative(grammar, rule);
    for (size_t i = 0; i < length; i++) push_bytes(grammar, (uint8_t)bytes[i], (uint8_t)bytes[i]);
    push(grammar, ELEMENT_END, 0);
    return rule;
}

Rule grammar_sequence(Grammar *grammar, const Rule *rules, size_t count) {
    ASSERT(count == 0 || rules != NULL);
    Rule rule = add_rule(grammar);
    begin_alternative(grammar, rule);
    for (size_t i = 0; i < count; i++) push(grammar, ELEMENT_RULE, rules[i]);
    push(grammar, ELEMENT_END, 0);
    return rule;
}

Rule grammar_choice(Grammar *grammar, const Rule *rules, size_t count) {
    Rule rule = add_rule(grammar);
    for (size_t i = 0; i < count; i++) {
        begin_alternative(grammar, rule);
        push(grammar, ELEMENT_RULE, rules[i]);
        push(grammar, ELEMENT_END, 0);
    }
    return rule;
}

Rule grammar_hole(Grammar *grammar, uint32_t hole) {
    Rule rule = add_rule(grammar);
    begin_alternative(grammar, rule);
    push(grammar, ELEMENT_HOLE, hole);
    push(grammar, ELEMENT_END, 0);
    return rule;
}

void grammar_fill(Grammar *grammar, Filler *filler) {
    grammar->filler = filler;
    grammar->holes = holes_new(filler);
}

Rule grammar_declare(Grammar *grammar) {
    return add_rule(grammar);
}

void grammar_define(Grammar *grammar, Rule declared, Rule meaning) {
    ASSERT(declared < grammar->rules.count && meaning < grammar->rules.count);
    begin_alternative(grammar, declared);
    push(grammar, ELEMENT_RULE, meaning);
    push(grammar, ELEMENT_END, 0);
}

static void add_pair(Grammar *grammar, Rule to, Rule first, Rule second) {
    begin_alternative(grammar, to);
    push(grammar, ELEMENT_RULE, first);
    push(grammar, ELEMENT_RULE, second);
    push(grammar, ELEMENT_END, 0);
}

// Nothing, or the rule and then `more`.
static Rule optional(Grammar *grammar, Rule rule, Rule more) {
    Rule result = add_rule(grammar);
    begin_alternative(grammar, result);
    push(grammar, ELEMENT_END, 0);
    add_pair(grammar, result, rule, more);
    return result;
}

// The rule once or more, or with `any` not at all. There is one place to return to from the rule,
// however often it has come: with two of them, stacks would double in each repetition around it.
static Rule repeat_always(Grammar *grammar, Rule rule, bool any) {
    Rule once = add_rule(grammar), more = add_rule(grammar);
    add_pair(grammar, once, rule, more);
    begin_alternative(grammar, more);
    push(grammar, ELEMENT_END, 0);
    begin_alternative(grammar, more);
    push(grammar, ELEMENT_RULE, once);
    push(grammar, ELEMENT_END, 0);
    return any ? more : once;
}

static int compare_rules(const void *a, const void *b) {
    Rule x = *(const Rule *)a, y = ((const Optional *)b)->rule;
    return x < y ? -1 : x > y;
}

// What the rule is up to some times, where it is that, in brackets or not; else NULL.
static const Optional *find_optional(const Grammar *grammar, Rule rule) {
    if (grammar->optionals.count == 0) return NULL;
    for (;;) {
        const Optional *found = bsearch(&rule, grammar->optionals.items, grammar->optionals.count,
                                        sizeof(Optional), compare_rules);
        const Alternatives *ways = &grammar->rules.items[rule];
        if (found || ways->count != 1 || ways->items[0] + 1 >= grammar->elements.count)
            return found;
        const Element *element = &grammar->elements.items[ways->items[0]];
        if (element->kind != ELEMENT_RULE || element[1].kind != ELEMENT_END) return NULL;
        if (element->value >= rule) return NULL; // declared before it was made
        rule = element->value;
    }
}

// Up to n times what comes up to m times comes up to n * m times: read so, a text has one way.
static void flatten(const Grammar *grammar, Rule *rule, int64_t *least, int64_t *most) {
    const Optional *inner = find_optional(grammar, *rule);
    if (!inner || *most == 0) return;
    int64_t times = *most < 0 || inner->most < 0 ? -1 : *most * inner->most;
    if (times > GRAMMAR_REPEAT_MAX) return;
    *rule = inner->of;
    *least = 0;
    *most = times;
}

static Rule note_optional(Grammar *grammar, Rule rule, Rule of, int64_t most) {
    ASSERT(grammar->optionals.count == 0 ||
           grammar->optionals.items[grammar->optionals.count - 1].rule < rule);
    VECTOR_PUSH(&grammar->optionals, ((Optional){rule, of, most}));
    return rule;
}

static Rule repeat(Grammar *grammar, Rule rule, int64_t least, int64_t most) {
    if (most < 0 && least <= 1) return repeat_always(grammar, rule, least == 0);
    int64_t before = most < 0 ? least - 1 : least;
    Rule rest = most < 0 ? repeat_always(grammar, rule, false) : grammar_literal(grammar, "", 0);
    for (int64_t i = least; i < most; i++) rest = optional(grammar, rule, rest);
    Rule result = add_rule(grammar);
    begin_alternative(grammar, result);
    for (int64_t i = 0; i < before; i++) push(grammar, ELEMENT_RULE, rule);
    push(grammar, ELEMENT_RULE, rest);
    push(grammar, ELEMENT_END, 0);
    return result;
}

Rule grammar_repeat(Grammar *grammar, Rule rule, int64_t least, int64_t most) {
    ASSERT(least >= 0 && (most < 0 || most >= least));
    flatten(grammar, &rule, &least, &most);
    Rule result = repeat(grammar, rule, least, most);
    return least == 0 ? note_optional(grammar, result, rule, most) : result;
}

// --- characters

static size_t encode(uint32_t code, uint8_t *out) {
    SCOPED_TEXT(text);
    text_append_codepoint(&text, code);
    size_t length = text.length;
    ASSERT(length >= 1 && length <= 4);
    memcpy(out, text.bytes, length);
    return length;
}

// An alternative for the codes from first to last, which are encoded in the same number of bytes:
// cut where a byte but the last would not run through all of its values.
static void add_codes(Grammar *grammar, Rule rule, uint32_t first, uint32_t last) {
    ASSERT(first <= last);
    uint8_t low[4], high[4];
    size_t length = encode(first, low);
    (void)encode(last, high);
    for (size_t i = 1; i < length; i++) {
        uint32_t below = (1u << (6 * i)) - 1; // the bits of the last i bytes
        if ((first & ~below) == (last & ~below)) continue;
        if ((first & below) != 0) {
            add_codes(grammar, rule, first, first | below);
            add_codes(grammar, rule, (first | below) + 1, last);
            return;
        }
        if ((last & below) != below) {
            add_codes(grammar, rule, first, (last & ~below) - 1);
            add_codes(grammar, rule, last & ~below, last);
            return;
        }
    }
    begin_alternative(grammar, rule);
    for (size_t i = 0; i < length; i++) push_bytes(grammar, low[i], high[i]);
    push(grammar, ELEMENT_END, 0);
}

static void add_range(Grammar *grammar, Rule rule, uint32_t first, uint32_t last) {
    static const uint32_t ends[] = {0x7F,           0x7FF,  SURROGATE_FIRST - 1,
                                    SURROGATE_LAST, 0xFFFF, CODE_LAST};
    for (size_t i = 0; i < sizeof ends / sizeof *ends && first <= last; i++) {
        if (first > ends[i]) continue;
        uint32_t end = last < ends[i] ? last : ends[i];
        if (ends[i] != SURROGATE_LAST) add_codes(grammar, rule, first, end);
        first = end + 1;
    }
}

static int compare_ranges(const void *a, const void *b) {
    uint32_t x = ((const CodeRange *)a)->first, y = ((const CodeRange *)b)->first;
    return x < y ? -1 : x > y;
}

Rule grammar_class(Grammar *grammar, const CodeRange *ranges, size_t count, bool negated) {
    Rule rule = add_rule(grammar);
    SCOPED_MEMORY CodeRange *sorted = memory_allocate((count + 1) * sizeof *sorted);
    if (count > 0) memcpy(sorted, ranges, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_ranges);
    uint32_t next = 0; // the first code that no range has reached
    for (size_t i = 0; i < count; i++) {
        uint32_t first = sorted[i].first > next ? sorted[i].first : next;
        if (negated && first > next) add_range(grammar, rule, next, first - 1);
        if (!negated && first <= sorted[i].last) add_range(grammar, rule, first, sorted[i].last);
        if (sorted[i].last + 1 > next) next = sorted[i].last + 1;
    }
    if (negated && next <= CODE_LAST) add_range(grammar, rule, next, CODE_LAST);
    return rule;
}

// --- what must hold

static int64_t rule_cost(const Grammar *grammar, Rule rule) {
    int64_t least = CONSTRAINT_NEVER;
    ASSERT(rule < grammar->rules.count);
    const Alternatives *alternatives = &grammar->rules.items[rule];
    for (size_t i = 0; i < alternatives->count; i++)
        if (grammar->costs[alternatives->items[i]] < least)
            least = grammar->costs[alternatives->items[i]];
    return least;
}

static int64_t element_cost(const Grammar *grammar, size_t index) {
    ASSERT(index < grammar->elements.count);
    const Element *element = &grammar->elements.items[index];
    if (element->kind == ELEMENT_END) return 0;
    int64_t own = element->kind == ELEMENT_BYTES ? 1
                  : element->kind == ELEMENT_HOLE
                      ? holes_cost(grammar->holes, holes_begin(element->value))
                      : rule_cost(grammar, element->value);
    int64_t cost = own + grammar->costs[index + 1];
    return cost < CONSTRAINT_NEVER ? cost : CONSTRAINT_NEVER;
}

void grammar_find_costs(Grammar *grammar) {
    size_t count = grammar->elements.count;
    if (!grammar->costs) grammar->costs = memory_allocate(count * sizeof *grammar->costs);
    for (size_t i = 0; i < count; i++) grammar->costs[i] = CONSTRAINT_NEVER;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = count; i-- > 0;) {
            int64_t cost = element_cost(grammar, i);
            changed |= cost < grammar->costs[i];
            grammar->costs[i] = cost;
        }
    }
}

// Alternatives that can never end are left out.
static void prune(Grammar *grammar) {
    for (size_t rule = 0; rule < grammar->rules.count; rule++) {
        Alternatives *alternatives = &grammar->rules.items[rule];
        size_t kept = 0;
        for (size_t i = 0; i < alternatives->count; i++)
            if (grammar->costs[alternatives->items[i]] < CONSTRAINT_NEVER)
                alternatives->items[kept++] = alternatives->items[i];
        alternatives->count = kept;
    }
}

// Searches for a rule that comes back to itself before anything is read, with something left to
// read afterwards: such a one would be entered without end.
typedef struct Search {
    const Grammar *grammar;
    uint8_t *seen;
    VECTOR(Rule) open;
} Search;

typedef void (*VisitRule)(Search *search, Rule rule, bool last);

static bool can_be_empty(const Grammar *grammar, const Element *element) {
    return element->kind == ELEMENT_RULE && rule_cost(grammar, element->value) == 0;
}

// The rules that an alternative of `rule` may enter before it reads anything.
static void each_first(Search *search, Rule rule, VisitRule visit) {
    ASSERT(rule < search->grammar->rules.count);
    const Grammar *grammar = search->grammar;
    const Alternatives *alternatives = &grammar->rules.items[rule];
    for (size_t i = 0; i < alternatives->count; i++)
        for (const Element *e = grammar->elements.items + alternatives->items[i];; e++) {
            if (e->kind == ELEMENT_RULE) visit(search, e->value, e[1].kind == ELEMENT_END);
            if (!can_be_empty(grammar, e)) break;
        }
}

static void visit_any(Search *search, Rule rule, bool last) {
    ASSERT(rule < search->grammar->rules.count);
    (void)last;
    if (search->seen[rule]) return;
    search->seen[rule] = 1;
    VECTOR_PUSH(&search->open, rule);
}

static void visit_inner(Search *search, Rule rule, bool last) {
    if (!last) visit_any(search, rule, last);
}

static bool returns_to_itself(Search *search, Rule rule) {
    memset(search->seen, 0, search->grammar->rules.count);
    search->open.count = 0;
    each_first(search, rule, visit_inner);
    while (search->open.count > 0 && !search->seen[rule])
        each_first(search, search->open.items[--search->open.count], visit_any);
    return search->seen[rule];
}

static bool is_left_recursive(const Grammar *grammar) {
    Search search = {.grammar = grammar, .seen = memory_allocate(grammar->rules.count + 1)};
    bool found = false;
    for (size_t rule = 0; rule < grammar->rules.count && !found; rule++)
        found = returns_to_itself(&search, (Rule)rule);
    VECTOR_FREE(&search.open);
    free(search.seen);
    return found;
}

Status grammar_check(Grammar *grammar, Rule root, const char *what) {
    ASSERT(root < grammar->rules.count);
    if (grammar->elements.count > GRAMMAR_ELEMENTS_MAX)
        return fail(STATUS_VALUE, "%s is too large: more than %d elements", what,
                    GRAMMAR_ELEMENTS_MAX);
    grammar_find_costs(grammar);
    if (rule_cost(grammar, root) >= CONSTRAINT_NEVER)
        return fail(STATUS_VALUE, "%s has no text that ever ends", what);
    prune(grammar);
    if (is_left_recursive(grammar))
        return fail(STATUS_VALUE, "%s has a rule that begins with itself", what);
    return STATUS_OK;
}
