// match: the arms that a subject may take, as far as its fact tells. How surely a pattern fits is 1
// (certainly), 0 (certainly not) or -1 (that cannot be told).
#include "check/infer/infer.h"

typedef struct Matched {
    Inference *in;
    const Node *node; // the match
} Matched;

static int pattern_fits(const Matched *matched, const Pattern *pattern, const Fact *subject);

static int constant_fits(const Matched *matched, const Pattern *pattern, const Fact *subject) {
    Inference *in = matched->in;
    ASSERT(pattern->kind == PATTERN_LITERAL);
    if (fact_is_array(subject)) return 0;
    Operand left = {.fact = subject}, right = {.fact = infer_expression(in, pattern->low)};
    const Fact *equal = infer_operator(in, matched->node, OPERATOR_EQ, &left, &right);
    return equal->kind == FACT_BOOL && equal->known ? equal->as.integer != 0 : -1;
}

static bool maybe_rank_0(const Fact *fact) {
    return fact->kind == FACT_ANY || (fact->kind == FACT_TENSOR && !fact_is_array(fact));
}

static bool is_known_int(const Fact *fact) {
    return fact->kind == FACT_INT && fact->known && size_is_known(fact->as.integer);
}

static int range_fits(const Matched *matched, const Pattern *pattern, const Fact *subject) {
    ASSERT(pattern->kind == PATTERN_RANGE);
    const Fact *low = infer_expression(matched->in, pattern->low);
    const Fact *high = infer_expression(matched->in, pattern->high);
    if (maybe_rank_0(subject) || maybe_rank_0(low)) return -1;
    bool text = subject->kind == FACT_STRING;
    if (!text && !fact_is_number(subject)) return 0;
    if (text != (low->kind == FACT_STRING)) return 0;
    if (!is_known_int(subject) || !is_known_int(low) || !is_known_int(high)) return -1;
    int64_t number = subject->as.integer, last = high->as.integer;
    return number >= low->as.integer && (number < last || (pattern->inclusive && number == last));
}

// All parts, with what is known of the members that they take.
static int parts_fit(const Matched *matched, const Pattern *pattern, const Fact **members) {
    int fits = 1;
    for (size_t i = 0; i < pattern->part_count && fits != 0; i++) {
        int part = pattern_fits(matched, pattern->parts[i], members ? members[i] : &fact_any);
        if (part != 1) fits = part;
    }
    return fits;
}

static int tuple_fits(const Matched *matched, const Pattern *pattern, const Fact *subject) {
    if (maybe_rank_0(subject)) return subject->kind == FACT_TENSOR && subject->known ? 0 : -1;
    if (subject->kind == FACT_TENSOR) {
        bool differ =
            sizes_differ(subject->as.tensor.type.shape.dims[0], (int64_t)pattern->part_count);
        return differ ? 0 : -1;
    }
    if (subject->kind != FACT_TUPLE && subject->kind != FACT_LIST) return 0;
    if (!infer_members_known(matched->in, subject)) return -1;
    if (subject->as.list.count != pattern->part_count) return 0;
    return parts_fit(matched, pattern, subject->as.list.items);
}

static int struct_fits(const Matched *matched, const Pattern *pattern, const Fact *subject) {
    ASSERT(pattern->kind == PATTERN_STRUCT);
    if (subject->kind == FACT_ANY || !pattern->binding) return -1;
    if (subject->kind != FACT_STRUCT) return 0;
    if (subject->as.structure.binding->declaration != pattern->binding->declaration) return 0;
    return parts_fit(matched, pattern, NULL);
}

static int any_fits(const Matched *matched, const Pattern *pattern, const Fact *subject) {
    ASSERT(pattern->kind == PATTERN_OR);
    int fits = 0;
    for (size_t i = 0; i < pattern->part_count && fits != 1; i++) {
        int part = pattern_fits(matched, pattern->parts[i], subject);
        if (part != 0) fits = part;
    }
    return fits;
}

static int pattern_fits(const Matched *matched, const Pattern *pattern, const Fact *subject) {
    switch (pattern->kind) {
    case PATTERN_LITERAL: return constant_fits(matched, pattern, subject);
    case PATTERN_RANGE: return range_fits(matched, pattern, subject);
    case PATTERN_OR: return any_fits(matched, pattern, subject);
    case PATTERN_TUPLE: return tuple_fits(matched, pattern, subject);
    case PATTERN_STRUCT: return struct_fits(matched, pattern, subject);
    default: return 1;
    }
}

// The arm's own variables and its body. What becomes of `fits` when the guard is asked, too.
static int infer_arm(Inference *in, Ways *ways, const MatchArm *arm, int fits) {
    ASSERT(fits != 0);
    const Fact *guard = infer_expression(in, arm->guard);
    bool decided = !arm->guard || (guard->kind == FACT_BOOL && guard->known);
    if (arm->guard && decided && !guard->as.integer) {
        way_end(in, ways, &fact_none);
        return 0;
    }
    if (!decided) fits = -1;
    ways->covered = fits == 1;
    way_end(in, ways, infer_expression(in, arm->body));
    return fits;
}

const Fact *infer_match(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_MATCH);
    const Fact *subject = infer_expression(in, node->as.match.subject);
    Matched matched = {in, node};
    Ways ways;
    ways_begin(in, &ways);
    int fits = -1;
    for (size_t i = 0; i < node->as.match.count && fits != 1; i++) {
        const MatchArm *arm = &node->as.match.arms[i];
        fits = pattern_fits(&matched, arm->pattern, subject);
        if (fits == 0) continue;
        infer_pattern(in, arm->pattern, subject);
        fits = infer_arm(in, &ways, arm, fits);
    }
    ways_end(in, &ways);
    return &fact_any;
}
