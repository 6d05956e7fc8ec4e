// Patterns and match. Tuples are matched by tuples, lists and, along dimension 0, by tensors.
#include "eval/pattern.h"

#include "eval/structs.h"
#include "value/items.h"
#include "value/print.h"

static int pattern_match(Frame *frame, const PatternCode *pattern, Value value);

struct PatternCode {
    int kind; // of Pattern
    const VariableCode *variable;
    const Code *low, *high;
    Value fixed;           // what `low` gives where it is a constant, else ABSENT
    bool interval;         // takes the ints from `first` to `first` + `width`, and perhaps others
    uint64_t first, width; // unsigned, so that one comparison decides
    bool inclusive;
    const StructCode *structure;
    const PatternCode **parts;
    size_t part_count;
    int *fields; // STRUCT: index of each part's field
};

static void lower_fields(Lowering *lowering, PatternCode *code, const Pattern *pattern) {
    code->structure = struct_of_binding(lowering, pattern->binding);
    code->fields = lower_array(lowering, pattern->part_count, sizeof *code->fields);
    for (size_t i = 0; i < pattern->part_count; i++)
        code->fields[i] = struct_find_field(&code->structure->type, pattern->fields[i].text,
                                            pattern->fields[i].length);
}

// A literal int, or a range between two.
static void find_interval(PatternCode *code) {
    Value high = code->fixed;
    if (high.kind != VALUE_INT) return;
    if (code->high && (!code_constant(code->high, &high) || high.kind != VALUE_INT)) return;
    bool inclusive = !code->high || code->inclusive;
    int64_t low = code->fixed.as.integer;
    if (high.as.integer < low || (high.as.integer == low && !inclusive)) return;
    code->interval = true;
    code->first = (uint64_t)low;
    code->width = (uint64_t)high.as.integer - (uint64_t)low - !inclusive;
}

const PatternCode *lower_pattern(Lowering *lowering, const Pattern *pattern) {
    PatternCode *code = lower_array(lowering, 1, sizeof *code);
    code->kind = (int)pattern->kind;
    code->inclusive = pattern->inclusive;
    code->low = lower(lowering, pattern->low);
    code->high = lower(lowering, pattern->high);
    if (!code->low || !code_constant(code->low, &code->fixed)) code->fixed = value_absent();
    find_interval(code);
    if (pattern->kind == PATTERN_BIND)
        code->variable = lower_variable(lowering, pattern->binding, pattern->span);
    if (pattern->kind == PATTERN_STRUCT) lower_fields(lowering, code, pattern);
    code->part_count = pattern->part_count;
    code->parts = lower_array(lowering, pattern->part_count, sizeof *code->parts);
    for (size_t i = 0; i < pattern->part_count; i++)
        code->parts[i] = lower_pattern(lowering, pattern->parts[i]);
    return code;
}

const PatternCode *pattern_pair(Lowering *lowering, const PatternCode *first,
                                const PatternCode *second) {
    PatternCode *pair = lower_array(lowering, 1, sizeof *pair);
    pair->kind = PATTERN_TUPLE;
    pair->part_count = 2;
    pair->parts = lower_array(lowering, 2, sizeof *pair->parts);
    pair->parts[0] = first;
    pair->parts[1] = second;
    return pair;
}

bool pattern_takes(const PatternCode *pattern, Value value) {
    if (pattern->kind != PATTERN_TUPLE) return true;
    return (value.kind == VALUE_TUPLE || value.kind == VALUE_LIST) &&
           value.as.list->count == pattern->part_count;
}

// The commonest patterns; the others through pattern_match.
static inline int fits(Frame *frame, const PatternCode *pattern, Value value) {
    if (pattern->interval && value.kind == VALUE_INT)
        return (uint64_t)value.as.integer - pattern->first <= pattern->width;
    if (pattern->kind == PATTERN_LITERAL && value.kind == VALUE_STRING &&
        pattern->fixed.kind == VALUE_STRING) {
        const String *fixed = pattern->fixed.as.string, *text = value.as.string;
        return string_is_measured(text) ? string_equals_measured(fixed, text)
                                        : string_same(fixed, text);
    }
    if (pattern->kind == PATTERN_ANY) return 1;
    return pattern_match(frame, pattern, value);
}

static int match_literal(Frame *frame, const PatternCode *pattern, Value value) {
    SCOPED_VALUE(literal) = EVAL(frame, pattern->low);
    if (failed(literal)) return -1;
    int fits = 0;
    bool equal;
    if (value.kind != VALUE_TENSOR || tensor_rank(value.as.tensor) == 0)
        fits = value_equals(value, literal, &equal) == STATUS_OK ? equal : -1;
    return fits;
}

static int match_ends(Value low, Value high, Value value, bool inclusive) {
    if (!(value_is_number(value) || value.kind == VALUE_STRING)) return 0;
    if ((value.kind == VALUE_STRING) != (low.kind == VALUE_STRING)) return 0;
    int order;
    if (value_compare(value, low, &order) != STATUS_OK) return -1;
    if (order < 0) return 0;
    if (value_compare(value, high, &order) != STATUS_OK) return -1;
    return order < 0 || (inclusive && order == 0);
}

static int match_range(Frame *frame, const PatternCode *pattern, Value value) {
    Value low = EVAL(frame, pattern->low);
    if (failed(low)) return -1;
    Value high = EVAL(frame, pattern->high);
    int fits = failed(high) ? -1 : match_ends(low, high, value, pattern->inclusive);
    value_release(low);
    if (!failed(high)) value_release(high);
    return fits;
}

static int match_items(Frame *frame, const PatternCode *pattern, const List *list) {
    if (list->count != pattern->part_count) return 0;
    for (size_t i = 0; i < list->count; i++) {
        int fits = pattern_match(frame, pattern->parts[i], list->items[i]);
        if (fits <= 0) return fits;
    }
    return 1;
}

static int match_tuple(Frame *frame, const PatternCode *pattern, Value value) {
    if (value.kind == VALUE_TUPLE || value.kind == VALUE_LIST)
        return match_items(frame, pattern, value.as.list);
    if (value.kind != VALUE_TENSOR || tensor_rank(value.as.tensor) == 0) return 0;
    SCOPED_VALUE(items) = value_to_items(value, "the value");
    if (failed(items)) return -1;
    return match_items(frame, pattern, items.as.list);
}

static int match_struct(Frame *frame, const PatternCode *pattern, Value value) {
    if (value.kind != VALUE_STRUCT || value.as.instance->type != &pattern->structure->type)
        return 0;
    for (size_t i = 0; i < pattern->part_count; i++) {
        int fits =
            pattern_match(frame, pattern->parts[i], value.as.instance->fields[pattern->fields[i]]);
        if (fits <= 0) return fits;
    }
    return 1;
}

// 1: fits (and its names are bound), 0: does not, -1: failed.
static int pattern_match(Frame *frame, const PatternCode *pattern, Value value) {
    switch (pattern->kind) {
    case PATTERN_BIND: variable_set(frame, pattern->variable, value_retain(value)); return 1;
    case PATTERN_LITERAL: return match_literal(frame, pattern, value);
    case PATTERN_RANGE: return match_range(frame, pattern, value);
    case PATTERN_STRUCT: return match_struct(frame, pattern, value);
    case PATTERN_TUPLE: return match_tuple(frame, pattern, value);
    case PATTERN_OR:
        for (size_t i = 0; i < pattern->part_count; i++) {
            int part = fits(frame, pattern->parts[i], value);
            if (part != 0) return part;
        }
        return 0;
    default: return 1;
    }
}

Status pattern_bind(Frame *frame, const PatternCode *pattern, Value value) {
    int fits = pattern_match(frame, pattern, value);
    if (fits > 0) return STATUS_OK;
    if (fits < 0) return error_current()->code;
    if (pattern->kind == PATTERN_TUPLE)
        return fail(STATUS_VALUE, "%zu names cannot take %s apart", pattern->part_count,
                    value_shown(value).text);
    return fail(STATUS_MATCH, "the pattern does not fit %s", value_text(value).text);
}

bool pattern_is_pair(const PatternCode *pattern) {
    return pattern->kind == PATTERN_TUPLE && pattern->part_count == 2;
}

Status pattern_bind_pair(Frame *frame, const PatternCode *pattern, Value first, Value second) {
    Status status = pattern_bind(frame, pattern->parts[0], first);
    return status == STATUS_OK ? pattern_bind(frame, pattern->parts[1], second) : status;
}

typedef struct ArmCode {
    const PatternCode *pattern;
    const Code *guard, *body;
    int first_slot, slot_count;
} ArmCode;

// Where arms take ints by their value: the first arm that may take each of those from `first` on,
// and the first that may take any other.
typedef struct IntTable {
    uint64_t first, count; // count 0: the file has none
    uint8_t *arms;
    uint8_t other;
} IntTable;

typedef struct MatchCode {
    Code head;
    const Code *subject;
    Place place; // of the subject
    ArmCode *arms;
    size_t count;
    IntTable ints;
} MatchCode;

// 1: the arm was taken and *result is its value; 0: it does not fit; -1: failed.
static inline int arm_try(Frame *frame, const ArmCode *arm, Value subject, Value *result) {
    int taken = fits(frame, arm->pattern, subject);
    if (taken < 0) error_place(arm->body->span);
    if (taken > 0 && arm->guard) taken = condition_eval(frame, arm->guard);
    if (taken > 0) *result = EVAL(frame, arm->body);
    if (arm->slot_count) slots_release(frame, arm->first_slot, arm->slot_count);
    return taken;
}

// The arms before it certainly do not take the subject.
static inline const ArmCode *first_arm(const MatchCode *match, Value subject) {
    if (subject.kind != VALUE_INT || match->ints.count == 0) return match->arms;
    uint64_t at = (uint64_t)subject.as.integer - match->ints.first;
    return match->arms + (at < match->ints.count ? match->ints.arms[at] : match->ints.other);
}

static Value eval_match(Frame *frame, const Code *code) {
    const MatchCode *match = (const MatchCode *)code;
    SCOPED_VALUE(subject) = match->place.local ? *place_find(frame, &match->place) : value_absent();
    if (value_is_counted(subject) || subject.kind == VALUE_ABSENT) {
        subject = EVAL(frame, match->subject);
        if (failed(subject)) return subject;
    }
    Value result = value_fail();
    int fits = 0;
    const ArmCode *arm = first_arm(match, subject), *end = match->arms + match->count;
    for (; arm < end && fits == 0; arm++) fits = arm_try(frame, arm, subject, &result);
    if (fits == 0) {
        fail(STATUS_MATCH, "no arm of this match fits %s", value_shown(subject).text);
        fail_help("`_ => ...` as the last arm takes everything else");
        error_place(match->subject->span);
    }
    return result;
}

static const PatternCode *const *alternatives(const PatternCode *const *pattern, size_t *count) {
    bool several = (*pattern)->kind == PATTERN_OR;
    *count = several ? (*pattern)->part_count : 1;
    return several ? (const PatternCode *const *)(*pattern)->parts : pattern;
}

static bool takes_no_int(const PatternCode *pattern) {
    return pattern->kind == PATTERN_LITERAL && pattern->fixed.kind == VALUE_STRING;
}

// Whether the pattern may take ints other than those of its intervals.
static bool takes_others(const PatternCode *pattern) {
    size_t count;
    const PatternCode *const *parts = alternatives(&pattern, &count);
    for (size_t i = 0; i < count; i++)
        if (!parts[i]->interval && !takes_no_int(parts[i])) return true;
    return false;
}

static bool may_take(const PatternCode *pattern, uint64_t number) {
    size_t count;
    const PatternCode *const *parts = alternatives(&pattern, &count);
    for (size_t i = 0; i < count; i++)
        if (parts[i]->interval && number - parts[i]->first <= parts[i]->width) return true;
    return takes_others(pattern);
}

// From the least to the largest int that an arm takes by its value, as far as that is not too many.
static void find_bounds(const MatchCode *match, IntTable *table) {
    enum { TABLE_MAX = 256 };
    bool found = false;
    int64_t low = 0, high = 0;
    for (size_t i = 0; i < match->count; i++) {
        size_t count;
        const PatternCode *const *parts = alternatives(&match->arms[i].pattern, &count);
        for (size_t j = 0; j < count; j++) {
            if (!parts[j]->interval) continue;
            int64_t first = (int64_t)parts[j]->first;
            int64_t last = (int64_t)(parts[j]->first + parts[j]->width);
            low = !found || first < low ? first : low;
            high = !found || last > high ? last : high;
            found = true;
        }
    }
    uint64_t count = (uint64_t)high - (uint64_t)low;
    bool fits = found && count < TABLE_MAX && match->count < UINT8_MAX;
    *table = (IntTable){.first = (uint64_t)low, .count = fits ? count + 1 : 0};
}

static void make_table(Lowering *lowering, MatchCode *match) {
    IntTable *table = &match->ints;
    find_bounds(match, table);
    if (table->count == 0) return;
    table->arms = lower_array(lowering, table->count, sizeof *table->arms);
    for (uint64_t i = 0; i < table->count; i++)
        while (table->arms[i] < match->count &&
               !may_take(match->arms[table->arms[i]].pattern, table->first + i))
            table->arms[i]++;
    while (table->other < match->count && !takes_others(match->arms[table->other].pattern))
        table->other++;
}

const Code *lower_match(Lowering *lowering, const Node *node, bool tail) {
    MatchCode *code = LOWER_NEW(lowering, MatchCode, eval_match, node->span);
    code->subject = lower(lowering, node->as.match.subject);
    code->place = place_of(code->subject);
    code->count = node->as.match.count;
    code->arms = lower_array(lowering, code->count, sizeof *code->arms);
    for (size_t i = 0; i < code->count; i++) {
        const MatchArm *arm = &node->as.match.arms[i];
        ArmCode *target = &code->arms[i];
        target->pattern = lower_pattern(lowering, arm->pattern);
        target->guard = lower(lowering, arm->guard);
        target->body = tail ? lower_tail(lowering, arm->body) : lower(lowering, arm->body);
        target->first_slot = arm->first_slot;
        target->slot_count = arm->slot_count;
    }
    make_table(lowering, code);
    return &code->head;
}
