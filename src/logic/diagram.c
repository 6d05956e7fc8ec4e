// Reduced ordered binary decision diagrams.
#include "logic/diagram.h"

#include <stdlib.h>

#include "logic/hash.h"

enum { SLOTS_FIRST = 1 << 10, KEPT_COUNT = 1 << 16 };

typedef enum Connective { AND, OR, XOR } Connective;

// A result that is remembered, until another one falls on its place.
struct Combined {
    Connective connective;
    uint32_t x, y, result;
};

void diagrams_init(Diagrams *diagrams, size_t limit) {
    *diagrams = (Diagrams){.slot_count = SLOTS_FIRST, .limit = limit};
    diagrams->slots = memory_allocate_zeroed(SLOTS_FIRST, sizeof *diagrams->slots);
    diagrams->kept = memory_allocate_zeroed(KEPT_COUNT, sizeof *diagrams->kept);
    for (uint32_t i = 0; i < 2; i++) {
        ASSERT(diagrams->decisions.count == i);
        Decision constant = {.variable = UINT32_MAX, .low = i, .high = i};
        VECTOR_PUSH(&diagrams->decisions, constant);
    }
}

void diagrams_free(Diagrams *diagrams) {
    VECTOR_FREE(&diagrams->decisions);
    free(diagrams->slots);
    free(diagrams->kept);
}

Status diagrams_fail(const Diagrams *diagrams) {
    fail(STATUS_VALUE, "the ways to an answer need more than %zu decisions", diagrams->limit);
    return fail_help("topk(k) and sample(n) estimate what exact cannot count");
}

static size_t hash_of(uint32_t a, uint32_t b, uint32_t c) {
    return hash_end(hash_add(hash_add(hash_begin(a), b), c));
}

static void slots_grow(Diagrams *diagrams) {
    ASSERT((diagrams->slot_count & (diagrams->slot_count - 1)) == 0);
    size_t count = diagrams->slot_count * 2;
    uint32_t *slots = memory_allocate_zeroed(count, sizeof *slots);
    for (uint32_t i = 2; i < diagrams->decisions.count; i++) {
        const Decision *decision = &diagrams->decisions.items[i];
        size_t slot = hash_of(decision->variable, decision->low, decision->high) & (count - 1);
        while (slots[slot]) slot = (slot + 1) & (count - 1);
        slots[slot] = i;
    }
    free(diagrams->slots);
    diagrams->slots = slots;
    diagrams->slot_count = count;
}

static uint32_t decide(Diagrams *diagrams, uint32_t variable, uint32_t low, uint32_t high) {
    if (low == DIAGRAM_FAIL || high == DIAGRAM_FAIL) return DIAGRAM_FAIL;
    if (low == high) return low;
    ASSERT(low < diagrams->decisions.count && high < diagrams->decisions.count);
    if (diagrams->decisions.count * 2 >= diagrams->slot_count) slots_grow(diagrams);
    size_t slot = hash_of(variable, low, high) & (diagrams->slot_count - 1);
    for (; diagrams->slots[slot]; slot = (slot + 1) & (diagrams->slot_count - 1)) {
        const Decision *decision = &diagrams->decisions.items[diagrams->slots[slot]];
        if (decision->variable == variable && decision->low == low && decision->high == high)
            return diagrams->slots[slot];
    }
    if (diagrams->decisions.count >= diagrams->limit) return DIAGRAM_FAIL;
    Decision decision = {variable, low, high};
    diagrams->slots[slot] = (uint32_t)diagrams->decisions.count;
    VECTOR_PUSH(&diagrams->decisions, decision);
    return diagrams->slots[slot];
}

uint32_t diagram_variable(Diagrams *diagrams, uint32_t variable) {
    return decide(diagrams, variable, DIAGRAM_FALSE, DIAGRAM_TRUE);
}

static uint32_t connect(Diagrams *diagrams, Connective connective, uint32_t x, uint32_t y);

static uint32_t connect_decisions(Diagrams *diagrams, Connective connective, uint32_t x,
                                  uint32_t y) {
    ASSERT(x < diagrams->decisions.count && y < diagrams->decisions.count);
    Decision left = diagrams->decisions.items[x], right = diagrams->decisions.items[y];
    uint32_t variable = left.variable < right.variable ? left.variable : right.variable;
    if (left.variable != variable) left.low = left.high = x;
    if (right.variable != variable) right.low = right.high = y;
    uint32_t low = connect(diagrams, connective, left.low, right.low);
    if (low == DIAGRAM_FAIL) return DIAGRAM_FAIL;
    uint32_t high = connect(diagrams, connective, left.high, right.high);
    return decide(diagrams, variable, low, high);
}

// As deep as there are variables.
static uint32_t connect(Diagrams *diagrams, Connective connective, uint32_t x, uint32_t y) {
    if (x == DIAGRAM_FAIL || y == DIAGRAM_FAIL) return DIAGRAM_FAIL;
    if (x > y) { // the order does not matter
        uint32_t swap = x;
        x = y;
        y = swap;
    }
    if (x == DIAGRAM_FALSE) return connective == AND ? DIAGRAM_FALSE : y;
    if (x == DIAGRAM_TRUE && connective == AND) return y;
    if (x == DIAGRAM_TRUE && connective == OR) return DIAGRAM_TRUE;
    if (x == y) return connective == XOR ? DIAGRAM_FALSE : x;
    size_t place = (hash_of(x, y, connective)) % KEPT_COUNT;
    struct Combined *kept = &diagrams->kept[place];
    if (kept->x == x && kept->y == y && kept->connective == connective) return kept->result;
    uint32_t result = connect_decisions(diagrams, connective, x, y);
    *kept = (struct Combined){connective, x, y, result};
    return result;
}

uint32_t diagram_and(Diagrams *diagrams, uint32_t x, uint32_t y) {
    return connect(diagrams, AND, x, y);
}

uint32_t diagram_or(Diagrams *diagrams, uint32_t x, uint32_t y) {
    return connect(diagrams, OR, x, y);
}

uint32_t diagram_not(Diagrams *diagrams, uint32_t x) {
    return connect(diagrams, XOR, DIAGRAM_TRUE, x);
}

// --- probabilities

// The decisions below x, each before those that it leads to.
static void reach(const Diagrams *diagrams, uint32_t x, bool *reached) {
    ASSERT(x < diagrams->decisions.count);
    reached[x] = true;
    for (uint32_t i = x + 1; i-- > 2;) { // decisions lead to earlier ones
        if (!reached[i]) continue;
        reached[diagrams->decisions.items[i].low] = true;
        reached[diagrams->decisions.items[i].high] = true;
    }
}

// What is decided with one group: each of its variables in turn, or none of them.
typedef struct Choice {
    const Diagrams *diagrams;
    const Chances *chances;
    uint32_t group, at; // the decision that is reached when none so far holds
    double rest;        // the probability that none so far holds
} Choice;

static bool choice_goes_on(const Choice *choice) {
    if (choice->at <= DIAGRAM_TRUE) return false;
    uint32_t variable = choice->diagrams->decisions.items[choice->at].variable;
    return choice->chances->groups[variable] == choice->group;
}

static Choice choice_begin(const Diagrams *diagrams, const Chances *chances, uint32_t x) {
    uint32_t variable = diagrams->decisions.items[x].variable;
    return (Choice){diagrams, chances, chances->groups[variable], x, 1};
}

// Where the variable of choice->at holds: the others of its group do not.
static uint32_t choice_high(const Choice *choice) {
    Choice others = *choice;
    others.at = choice->diagrams->decisions.items[choice->at].high;
    while (choice_goes_on(&others)) others.at = choice->diagrams->decisions.items[others.at].low;
    return others.at;
}

static void choice_next(Choice *choice) {
    ASSERT(choice->at > DIAGRAM_TRUE);
    const Decision *decision = &choice->diagrams->decisions.items[choice->at];
    choice->rest -= choice->chances->weights[decision->variable];
    choice->at = decision->low;
}

static double choice_value(Choice choice, const double *values) {
    double value = 0;
    for (; choice_goes_on(&choice); choice_next(&choice)) {
        const Decision *decision = &choice.diagrams->decisions.items[choice.at];
        value += choice.chances->weights[decision->variable] * values[choice_high(&choice)];
    }
    return value + choice.rest * values[choice.at];
}

// `ways`: that lead to a decision.
static void choice_slopes(Choice choice, const double *values, double *ways, double *slopes) {
    Choice last = choice;
    double way = ways[choice.at];
    while (choice_goes_on(&last)) choice_next(&last);
    for (; choice_goes_on(&choice); choice_next(&choice)) {
        uint32_t variable = choice.diagrams->decisions.items[choice.at].variable;
        uint32_t high = choice_high(&choice);
        slopes[variable] += way * (values[high] - values[last.at]);
        ways[high] += way * choice.chances->weights[variable];
    }
    ways[last.at] += way * last.rest;
}

double diagram_probability(const Diagrams *diagrams, uint32_t x, const Chances *chances,
                           double *slopes) {
    if (x <= DIAGRAM_TRUE) return x;
    ASSERT(x < diagrams->decisions.count);
    SCOPED_MEMORY bool *reached = memory_allocate_zeroed((size_t)x + 1, sizeof *reached);
    SCOPED_MEMORY double *values = memory_allocate_zeroed((size_t)x + 1, sizeof *values);
    SCOPED_MEMORY double *ways = memory_allocate_zeroed((size_t)x + 1, sizeof *ways);
    reach(diagrams, x, reached);
    values[DIAGRAM_TRUE] = 1;
    for (uint32_t i = 2; i <= x; i++)
        if (reached[i]) values[i] = choice_value(choice_begin(diagrams, chances, i), values);
    ways[x] = 1;
    for (uint32_t i = x + 1; slopes && i-- > 2;)
        if (ways[i] != 0) choice_slopes(choice_begin(diagrams, chances, i), values, ways, slopes);
    return values[x];
}
