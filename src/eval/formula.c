// Formulas: arithmetic on variables, constants, elements and fields, as one list of steps through
// which an int or a float goes in registers. Each step ends by jumping to the next one, by whose
// entry it says whether it leaves an int or a float. Nothing here has an effect before the last
// step, so that whatever is not a number, or has no result, is left to the general code from its
// beginning on: that knows tensors, conversions and words.
#include "eval/formula.h"

#include "eval/places.h"
#include "eval/scalar.h"
#include "tensor/op.h"
#include "tensor/scalar.h"

// The accumulator is `integer` or `number`; `place` is the element, field or captured variable that
// was found last.
typedef struct Step Step;
typedef Value (*StepRun)(Frame *frame, const Step *step, int64_t integer, const Value *place,
                         double number);
typedef struct StepRuns {
    StepRun on_int, on_float;
} StepRuns;

// A slot: every bit set, and its distance from the first; anything else: none, and its address.
typedef struct Near {
    uintptr_t mask, offset;
} Near;

struct Step {
    StepRuns run;
    Near near; // what is read, or the object that it is a part of
    union {
        Near index;
        const FieldMemory *memory;
        int capture;
        FloatFormula map;
    } as;
    union {
        Near target;                 // of steps that store, too
        const Code *const *branches; // of comparisons that are an if's condition: else, then
    } to;
    const Code *general;
    const Code *next; // of steps that store: the statement after them, or NULL
};

typedef struct FormulaCode {
    Code head;
    const Code *general;
    int count;
    bool stores;
    Step steps[];
} FormulaCode;

static inline Value *near_at(const Frame *frame, const Near *near) {
    return (Value *)(((uintptr_t)frame->slots & near->mask) + near->offset);
}

// --- places; ABSENT: there is none, or it is not that simple

static inline const Value *element_of(const Frame *frame, const Step *step, const Value *object) {
    const Value *index = near_at(frame, &step->as.index);
    if (!LIKELY(value_is_sequence(*object) && index->kind == VALUE_INT)) return &place_absent;
    const Value *item = list_find(object->as.list, index->as.integer);
    return LIKELY(item != NULL) ? item : &place_absent;
}

// To be assigned: not of a tuple.
static inline const Value *item_of(const Frame *frame, const Step *step, const Value *object) {
    return LIKELY(object->kind == VALUE_LIST) ? element_of(frame, step, object) : &place_absent;
}

static inline const Value *field_of(const Step *step, const Value *object) {
    const FieldMemory *memory = step->as.memory;
    if (UNLIKELY(object->kind != VALUE_STRUCT)) return &place_absent;
    const Instance *instance = object->as.instance;
    if (UNLIKELY(instance->type->id != memory->type || !memory->type)) return &place_absent;
    return &instance->fields[memory->index];
}

static inline const Value *cell_of(const Value *slot) {
    return LIKELY(slot->kind == VALUE_CELL) ? &slot->as.cell->value : &place_absent;
}

static inline const Value *captured(const Frame *frame, const Step *step) {
    const Cell *cell = frame->closure->cells[step->as.capture];
    return LIKELY(cell != NULL) ? &cell->value : &place_absent;
}

// --- what steps are written with

// A step has no use for some of what goes through it.
#define UNUSED __attribute__((unused))
#define STEP(name)                                                                                 \
    static Value name(UNUSED Frame *frame, UNUSED const Step *step, UNUSED int64_t integer,        \
                      UNUSED const Value *place, UNUSED double number)
#define NEXT_INT(integer) return step[1].run.on_int(frame, step + 1, (integer), place, number)
#define NEXT_FLOAT(number) return step[1].run.on_float(frame, step + 1, integer, place, (number))
#define LEAVE return EVAL(frame, step->general)
#define GO_ON return code_go_on(frame, step->next)

#define STORE(put, number)                                                                         \
    do {                                                                                           \
        Value *target = near_at(frame, &step->to.target);                                          \
        if (UNLIKELY(value_is_counted(*target))) LEAVE;                                            \
        put(target, number);                                                                       \
        GO_ON;                                                                                     \
    } while (0)
#define STORE_INT(integer) STORE(put_int, integer)
#define STORE_FLOAT(number) STORE(put_float, number)

// What an operand is: near itself, an element or field of what is near, or the place.
typedef enum Mode { MODE_NEAR, MODE_ELEMENT, MODE_FIELD, MODE_PLACE, MODE_COUNT } Mode;
#define NEAR near_at(frame, &step->near)
#define ELEMENT element_of(frame, step, NEAR)
#define FIELD field_of(step, NEAR)
#define EACH_MODE(define, ...)                                                                     \
    define(near, NEAR, __VA_ARGS__) define(element, ELEMENT, __VA_ARGS__)                          \
        define(field, FIELD, __VA_ARGS__) define(place, place, __VA_ARGS__)
#define RUNS(name)                                                                                 \
    { name##_int, name##_float }
#define MODES(name, end)                                                                           \
    {                                                                                              \
        RUNS(name##_near##end), RUNS(name##_element##end), RUNS(name##_field##end),                \
            RUNS(name##_place##end)                                                                \
    }

// --- where a number comes from

#define LOAD(where)                                                                                \
    const Value *value = where;                                                                    \
    if (value->kind == VALUE_FLOAT) NEXT_FLOAT(value->as.number);                                  \
    if (LIKELY(value->kind == VALUE_INT)) NEXT_INT(value->as.integer);                             \
    LEAVE
// The same where the accumulator is needed later; and as the beginning of a formula.
#define DEFINE_LOAD(mode, where, name)                                                             \
    STEP(name##_##mode##_int) {                                                                    \
        put_int(near_at(frame, &step->to.target), integer);                                        \
        LOAD(where);                                                                               \
    }                                                                                              \
    STEP(name##_##mode##_float) {                                                                  \
        put_float(near_at(frame, &step->to.target), number);                                       \
        LOAD(where);                                                                               \
    }                                                                                              \
    STEP(first_##mode) {                                                                           \
        LOAD(where);                                                                               \
    }
#define DEFINE_START(mode, where)                                                                  \
    static Value eval_##mode(Frame *frame, const Code *code) {                                     \
        const Step *step = ((const FormulaCode *)code)->steps;                                     \
        const Value *place = &place_absent;                                                        \
        const int64_t integer = 0;                                                                 \
        const double number = 0;                                                                   \
        LOAD(where);                                                                               \
    }
EACH_MODE(DEFINE_LOAD, save)
DEFINE_START(near, NEAR)
DEFINE_START(element, ELEMENT)
DEFINE_START(field, FIELD)

static Value eval_steps(Frame *frame, const Code *code) {
    const Step *step = ((const FormulaCode *)code)->steps;
    return step->run.on_int(frame, step, 0, &place_absent, 0);
}

// --- where it goes

STEP(give_int) {
    return value_int(integer);
}
STEP(give_float) {
    return value_float(number);
}

#define IS_FREE(kind, wanted) ((kind) < VALUE_ABSENT)
#define IS_SAME(kind, wanted) ((kind) == (wanted))
#define DEFINE_PUT(name, fits)                                                                     \
    STEP(name##_int) {                                                                             \
        if (!LIKELY(fits(place->kind, VALUE_INT))) LEAVE;                                          \
        put_int((Value *)(uintptr_t)place, integer);                                               \
        GO_ON;                                                                                     \
    }                                                                                              \
    STEP(name##_float) {                                                                           \
        if (!LIKELY(fits(place->kind, VALUE_FLOAT))) LEAVE;                                        \
        put_float((Value *)(uintptr_t)place, number);                                              \
        GO_ON;                                                                                     \
    }
DEFINE_PUT(set, IS_FREE)
DEFINE_PUT(keep, IS_SAME) // fields convert values of other kinds

#define DEFINE_FIND(name, find)                                                                    \
    STEP(name##_int) {                                                                             \
        place = find;                                                                              \
        NEXT_INT(integer);                                                                         \
    }                                                                                              \
    STEP(name##_float) {                                                                           \
        place = find;                                                                              \
        NEXT_FLOAT(number);                                                                        \
    }
DEFINE_FIND(find_element, ELEMENT)
DEFINE_FIND(find_field, FIELD)
DEFINE_FIND(find_item, item_of(frame, step, NEAR))
DEFINE_FIND(part_element, element_of(frame, step, place))
DEFINE_FIND(part_field, field_of(step, place))
DEFINE_FIND(part_item, item_of(frame, step, place))
DEFINE_FIND(find_cell, cell_of(NEAR))
DEFINE_FIND(find_capture, captured(frame, step))

// --- operators. `left op right`, where left is the accumulator; reversed ones have it on the
// right.

#define ARITHMETIC_STEPS(name, where, ints, floats, END_INT, END_FLOAT)                            \
    STEP(name##_int) {                                                                             \
        const Value *right = where;                                                                \
        int64_t result;                                                                            \
        if (LIKELY(right->kind == VALUE_INT)) {                                                    \
            if (UNLIKELY(ints(integer, right->as.integer, &result))) LEAVE;                        \
            END_INT(result);                                                                       \
        }                                                                                          \
        if (right->kind == VALUE_FLOAT) END_FLOAT(floats((double)integer, right->as.number));      \
        LEAVE;                                                                                     \
    }                                                                                              \
    STEP(name##_float) {                                                                           \
        const Value *right = where;                                                                \
        if (LIKELY(right->kind == VALUE_FLOAT)) END_FLOAT(floats(number, right->as.number));       \
        if (right->kind == VALUE_INT) END_FLOAT(floats(number, (double)right->as.integer));        \
        LEAVE;                                                                                     \
    }
#define DEFINE_ARITHMETIC(mode, where, name, ints, floats)                                         \
    ARITHMETIC_STEPS(name##_##mode, where, ints, floats, NEXT_INT, NEXT_FLOAT)                     \
    ARITHMETIC_STEPS(name##_##mode##_store, where, ints, floats, STORE_INT, STORE_FLOAT)
// The beginning of a formula with two operands that are near: the step before has the left one.
#define DEFINE_EVAL(name, ints, floats)                                                            \
    static Value eval_##name(Frame *frame, const Code *code) {                                     \
        const Step *step = ((const FormulaCode *)code)->steps + 1;                                 \
        const Value *left = near_at(frame, &step[-1].near), *right = NEAR;                         \
        const Value *place = &place_absent;                                                        \
        int64_t integer = 0;                                                                       \
        double number = 0;                                                                         \
        if (are_floats(left, right)) NEXT_FLOAT(floats(left->as.number, right->as.number));        \
        if (LIKELY(are_ints(left, right))) {                                                       \
            if (UNLIKELY(ints(left->as.integer, right->as.integer, &integer))) LEAVE;              \
            NEXT_INT(integer);                                                                     \
        }                                                                                          \
        if (!is_int_or_float(left) || !is_int_or_float(right)) LEAVE;                              \
        NEXT_FLOAT(floats(read_float(left), read_float(right)));                                   \
    }

#define COMPARE_STEPS(name, where, operator, THEN)                                                 \
    STEP(name##_int) {                                                                             \
        const Value *right = where;                                                                \
        if (LIKELY(right->kind == VALUE_INT)) THEN(integer operator right->as.integer);            \
        if (right->kind == VALUE_FLOAT && is_exact(integer))                                       \
            THEN((double)integer operator right->as.number);                                       \
        LEAVE;                                                                                     \
    }                                                                                              \
    STEP(name##_float) {                                                                           \
        const Value *right = where;                                                                \
        if (LIKELY(right->kind == VALUE_FLOAT)) THEN(number operator right->as.number);            \
        if (right->kind == VALUE_INT && is_exact(right->as.integer))                               \
            THEN(number operator(double) right->as.integer);                                       \
        LEAVE;                                                                                     \
    }
#define GIVE_BOOL(holds) return value_bool(holds)
#define BRANCH(holds)                                                                              \
    do {                                                                                           \
        if (holds) return EVAL(frame, step->to.branches[1]);                                       \
        return step->to.branches[0] ? EVAL(frame, step->to.branches[0]) : value_none();            \
    } while (0)
#define DEFINE_COMPARE(mode, where, name, operator)                                                \
    COMPARE_STEPS(name##_##mode, where, operator, GIVE_BOOL)                                       \
    COMPARE_STEPS(name##_##mode##_branch, where, operator, BRANCH)

#define SUB_FROM(x, y, out) __builtin_sub_overflow(y, x, out)
#define DIVIDE_BY(x, y, out) divide_ints(y, x, out)
#define REMAIN_BY(x, y, out) remain_ints(y, x, out)
#define FROM(x, y) ((y) - (x))
#define UNDER(x, y) ((y) / (x))
#define REMAINDER_BY(x, y) fmod(y, x)

EACH_MODE(DEFINE_ARITHMETIC, add, __builtin_add_overflow, PLUS)
EACH_MODE(DEFINE_ARITHMETIC, sub, __builtin_sub_overflow, MINUS)
EACH_MODE(DEFINE_ARITHMETIC, mul, __builtin_mul_overflow, TIMES)
EACH_MODE(DEFINE_ARITHMETIC, div, divide_ints, OVER)
EACH_MODE(DEFINE_ARITHMETIC, mod, remain_ints, fmod)
EACH_MODE(DEFINE_ARITHMETIC, sub_from, SUB_FROM, FROM)
EACH_MODE(DEFINE_ARITHMETIC, div_by, DIVIDE_BY, UNDER)
EACH_MODE(DEFINE_ARITHMETIC, mod_by, REMAIN_BY, REMAINDER_BY)
DEFINE_EVAL(add, __builtin_add_overflow, PLUS)
DEFINE_EVAL(sub, __builtin_sub_overflow, MINUS)
DEFINE_EVAL(mul, __builtin_mul_overflow, TIMES)
DEFINE_EVAL(div, divide_ints, OVER)
DEFINE_EVAL(mod, remain_ints, fmod)
EACH_MODE(DEFINE_COMPARE, eq, ==)
EACH_MODE(DEFINE_COMPARE, ne, !=)
EACH_MODE(DEFINE_COMPARE, lt, <)
EACH_MODE(DEFINE_COMPARE, le, <=)
EACH_MODE(DEFINE_COMPARE, gt, >)
EACH_MODE(DEFINE_COMPARE, ge, >=)

// sqrt(x) and its like.
STEP(map_int) {
    LEAVE;
}
STEP(map_float) {
    NEXT_FLOAT(step->as.map(number, 0, 0));
}

typedef struct OperatorSteps {
    Eval eval; // NULL: it compares, and ends the formula
    StepRuns straight[MODE_COUNT], reversed[MODE_COUNT];
    StepRuns last[MODE_COUNT], last_reversed[MODE_COUNT]; // which store, or branch
} OperatorSteps;

#define ARITHMETIC(name, other)                                                                    \
    { eval_##name, MODES(name, ), MODES(other, ), MODES(name, _store), MODES(other, _store) }
#define COMPARISON(name, other)                                                                    \
    { NULL, MODES(name, ), MODES(other, ), MODES(name, _branch), MODES(other, _branch) }

static const OperatorSteps operator_steps[OPERATOR_NONE] = {
    [OPERATOR_ADD] = ARITHMETIC(add, add),    [OPERATOR_SUB] = ARITHMETIC(sub, sub_from),
    [OPERATOR_MUL] = ARITHMETIC(mul, mul),    [OPERATOR_DIV] = ARITHMETIC(div, div_by),
    [OPERATOR_MOD] = ARITHMETIC(mod, mod_by), [OPERATOR_EQ] = COMPARISON(eq, eq),
    [OPERATOR_NE] = COMPARISON(ne, ne),       [OPERATOR_LT] = COMPARISON(lt, gt),
    [OPERATOR_LE] = COMPARISON(le, ge),       [OPERATOR_GT] = COMPARISON(gt, lt),
    [OPERATOR_GE] = COMPARISON(ge, le),
};
static const Eval evals[MODE_COUNT] = {eval_near, eval_element, eval_field, eval_steps};
static const StepRuns firsts[MODE_COUNT] = {{first_near, first_near},
                                            {first_element, first_element},
                                            {first_field, first_field},
                                            {first_place, first_place}};
static const StepRuns saves[MODE_COUNT] = MODES(save, );
static const StepRuns find_element = RUNS(find_element), find_field = RUNS(find_field),
                      find_item = RUNS(find_item), part_element = RUNS(part_element),
                      part_field = RUNS(part_field), part_item = RUNS(part_item),
                      find_cell = RUNS(find_cell), find_capture = RUNS(find_capture),
                      set = RUNS(set), keep = RUNS(keep), give = RUNS(give), map = RUNS(map);

// --- making them

// Longer ones are made of several.
enum { STEPS_MAX = 32 };

typedef struct Builder {
    Lowering *lowering;
    const Code *general;
    Step steps[STEPS_MAX];
    int count, operators, places;
    Value *saved; // where the next load puts the accumulator first; NULL: nothing is in it
    Eval eval;    // how the formula begins
} Builder;

const Code *formula_general(const Code *code) {
    bool formula = false;
    for (int mode = 0; mode < MODE_COUNT; mode++) formula |= code->eval == evals[mode];
    for (int op = 0; op < OPERATOR_NONE; op++)
        formula |= operator_steps[op].eval && code->eval == operator_steps[op].eval;
    return formula ? ((const FormulaCode *)code)->general : code;
}

// False when there are too many.
static bool add_step(Builder *builder, StepRuns run, Step step) {
    if (builder->count == STEPS_MAX) return false;
    ASSERT(builder->count < STEPS_MAX);
    step.run = run;
    step.general = builder->general;
    builder->steps[builder->count++] = step;
    return true;
}

static Near near_address(const Value *value) {
    return (Near){0, (uintptr_t)value};
}

// A plain variable or a constant number.
static bool near_of(Builder *builder, const Code *code, Near *out) {
    int slot;
    Value constant;
    if (code_is_local(code, &slot)) {
        *out = (Near){UINTPTR_MAX, slot_offset(slot)};
        return true;
    }
    const Value *fixed = code_global(code);
    if (!fixed) {
        if (!code_constant(code, &constant) || !is_int_or_float(&constant)) return false;
        Value *own = lower_array(builder->lowering, 1, sizeof *own);
        *own = constant;
        fixed = own;
    }
    *out = near_address(fixed);
    return true;
}

static bool find_place(Builder *builder, const Code *code, StepRuns of_near, StepRuns of_place);

// How an operand is read; what has to be found before adds steps that leave the accumulator alone.
// MODE_COUNT: it is not such an operand.
static Mode find_operand(Builder *builder, const Code *code, Step *step) {
    PlaceParts parts;
    int index;
    if (near_of(builder, code, &step->near)) return MODE_NEAR;
    builder->places++;
    if (place_parts(code, &parts) && near_of(builder, parts.object, &step->near)) {
        step->as.memory = parts.memory;
        if (parts.memory) return MODE_FIELD;
        return near_of(builder, parts.index, &step->as.index) ? MODE_ELEMENT : MODE_COUNT;
    }
    bool found = false;
    if (code_is_cell(code, &index))
        found = add_step(builder, find_cell, (Step){.near = {UINTPTR_MAX, slot_offset(index)}});
    else if (code_is_capture(code, &index))
        found = add_step(builder, find_capture, (Step){.as.capture = index});
    else
        found = find_place(builder, code, find_element, part_element);
    return found ? MODE_PLACE : MODE_COUNT;
}

// Steps that make an element or field the place; an element by one of these two.
static bool find_place(Builder *builder, const Code *code, StepRuns of_near, StepRuns of_place) {
    PlaceParts parts;
    Step step = {0}, object = {0};
    if (!place_parts(code, &parts)) return false;
    bool near = near_of(builder, parts.object, &step.near);
    if (!near) {
        Mode mode = find_operand(builder, parts.object, &object);
        if (mode == MODE_COUNT) return false;
        StepRuns find = mode == MODE_FIELD ? find_field : find_element;
        if (mode != MODE_PLACE && !add_step(builder, find, object)) return false;
    }
    builder->places++;
    step.as.memory = parts.memory;
    if (parts.memory) return add_step(builder, near ? find_field : part_field, step);
    return near_of(builder, parts.index, &step.as.index) &&
           add_step(builder, near ? of_near : of_place, step);
}

static bool add_operand(Builder *builder, const StepRuns runs[MODE_COUNT], const Code *operand) {
    Step step = {0};
    Mode mode = find_operand(builder, operand, &step);
    return mode != MODE_COUNT && add_step(builder, runs[mode], step);
}

static bool add_load(Builder *builder, const Code *operand) {
    Step step = {0};
    Mode mode = find_operand(builder, operand, &step);
    if (mode == MODE_COUNT) return false;
    if (builder->count == 0) builder->eval = evals[mode];
    const StepRuns *runs = builder->saved ? saves : firsts;
    if (builder->saved) step.to.target = near_address(builder->saved);
    builder->saved = NULL;
    return add_step(builder, runs[mode], step);
}

static const OperatorSteps *operator_of(const Code *code, ScalarParts *parts) {
    if (!scalar_parts(formula_general(code), parts)) return NULL;
    const OperatorSteps *steps = &operator_steps[parts->op];
    return steps->straight[0].on_int ? steps : NULL;
}

static bool is_computed(const Code *code) {
    ScalarParts parts;
    const Code *argument;
    return operator_of(code, &parts) || code_map(code, &argument);
}

static bool add_number(Builder *builder, const Code *code);

// The operands of an operator, and it. One that lies somewhere is read when it is needed; of two
// that are computed, the left one is saved meanwhile. In the node: nothing runs in between that
// could come here once more.
static bool add_operator(Builder *builder, const OperatorSteps *steps, const ScalarParts *parts) {
    builder->operators++;
    if (!is_computed(parts->right)) {
        if (!add_number(builder, parts->left)) return false;
        bool second = builder->count == 1 && builder->eval == eval_near;
        if (!add_operand(builder, steps->straight, parts->right)) return false;
        if (second && steps->eval && builder->count == 2 &&
            builder->steps[1].run.on_int == steps->straight[MODE_NEAR].on_int)
            builder->eval = steps->eval;
        return true;
    }
    if (!is_computed(parts->left))
        return add_number(builder, parts->right) &&
               add_operand(builder, steps->reversed, parts->left);
    if (!add_number(builder, parts->left)) return false;
    Value *saved = lower_array(builder->lowering, 1, sizeof *saved);
    builder->saved = saved;
    return add_number(builder, parts->right) &&
           add_step(builder, steps->reversed[MODE_NEAR], (Step){.near = near_address(saved)});
}

static bool add_map(Builder *builder, const Builtin *row, const Code *argument) {
    builder->operators++;
    Step step = {.as.map = scalar_float_formulas[op_rows[row->id].map]};
    return add_number(builder, argument) && add_step(builder, map, step);
}

// Steps that leave the number in the accumulator.
static bool add_number(Builder *builder, const Code *code) {
    ScalarParts parts;
    const Code *argument;
    const Builtin *row = code_map(code, &argument);
    if (row) return add_map(builder, row, argument);
    const OperatorSteps *steps = operator_of(code, &parts);
    if (!steps) return add_load(builder, code);
    return steps->eval && add_operator(builder, steps, &parts);
}

// What takes fewer steps has forms of its own (scalar.c).
static bool is_worthwhile(const Builder *builder) {
    return builder->operators > 0 && builder->operators + (builder->places > 0) >= 2;
}

static const Code *finish(const Builder *builder, bool stores) {
    ASSERT(builder->count > 0 && builder->count <= STEPS_MAX);
    size_t bytes = sizeof(FormulaCode) + (size_t)builder->count * sizeof(Step);
    const Code *general = builder->general;
    FormulaCode *code = lower_new(builder->lowering, bytes, builder->eval, general->span);
    code->general = general;
    code->count = builder->count;
    code->stores = stores;
    memcpy(code->steps, builder->steps, (size_t)builder->count * sizeof(Step));
    return &code->head;
}

const Code *lower_formula(Lowering *lowering, const Code *general) {
    Builder builder = {.lowering = lowering, .general = general, .eval = eval_steps};
    ScalarParts parts;
    const OperatorSteps *steps = operator_of(general, &parts);
    if (!steps || !add_operator(&builder, steps, &parts) || !is_worthwhile(&builder))
        return general;
    if (steps->eval && !add_step(&builder, give, (Step){0})) return general;
    return finish(&builder, false);
}

// An int or float written out.
static bool is_number(const Code *code) {
    Value constant;
    return code_constant(code, &constant) && is_int_or_float(&constant);
}

// The last operator stores what it gives, or branches by it.
static bool end_formula(Builder *builder) {
    ASSERT(builder->count > 0);
    Step *last = &builder->steps[builder->count - 1];
    for (int op = 0; op < OPERATOR_NONE; op++) {
        const OperatorSteps *steps = &operator_steps[op];
        for (int mode = 0; steps->last[0].on_int && mode < MODE_COUNT; mode++) {
            bool straight = last->run.on_int == steps->straight[mode].on_int;
            if (!straight && last->run.on_int != steps->reversed[mode].on_int) continue;
            last->run = straight ? steps->last[mode] : steps->last_reversed[mode];
            return true;
        }
    }
    return false;
}

const Code *lower_formula_branch(Lowering *lowering, const Code *condition,
                                 const Code *const *branches, const Code *general) {
    Builder builder = {.lowering = lowering, .general = general, .eval = eval_steps};
    ScalarParts parts;
    const OperatorSteps *steps = operator_of(condition, &parts);
    if (!steps || steps->eval || !add_operator(&builder, steps, &parts)) return general;
    builder.steps[builder.count - 1].to.branches = branches;
    // What is compared with a number is one as a rule.
    bool numbers = is_number(parts.left) || is_number(parts.right);
    return (numbers || is_worthwhile(&builder)) && end_formula(&builder) ? finish(&builder, false)
                                                                         : general;
}

const Code *lower_formula_store(Lowering *lowering, Operator op, const Code *target,
                                const Code *value, const Code *general) {
    Builder builder = {.lowering = lowering, .general = general, .eval = eval_steps};
    PlaceParts parts;
    Step step = {0};
    if (!add_number(&builder, value)) return general;
    if (near_of(&builder, target, &step.near)) {
        builder.steps[builder.count - 1].to.target = step.near;
        return is_worthwhile(&builder) && end_formula(&builder) ? finish(&builder, true) : general;
    }
    bool part = place_parts(target, &parts);
    bool found = part ? find_place(&builder, target, find_item, part_item)
                      : find_operand(&builder, target, &step) == MODE_PLACE;
    if (!found) return general;
    if (op != OPERATOR_NONE) {
        const OperatorSteps *steps = &operator_steps[op];
        builder.operators++;
        if (!steps->eval || !add_step(&builder, steps->reversed[MODE_PLACE], step)) return general;
    }
    if (!is_worthwhile(&builder)) return general;
    return add_step(&builder, part && parts.memory ? keep : set, step) ? finish(&builder, true)
                                                                       : general;
}

// The general code of a store, and what comes after it.
typedef struct SequelCode {
    Code head;
    const Code *store, *next;
} SequelCode;

static Value eval_sequel(Frame *frame, const Code *code) {
    const SequelCode *sequel = (const SequelCode *)code;
    Value outcome = EVAL(frame, sequel->store);
    return failed(outcome) ? outcome : code_go_on(frame, sequel->next);
}

bool formula_store_follow(Lowering *lowering, const Code *store, const Code *next) {
    if (formula_general(store) == store || !((const FormulaCode *)store)->stores) return false;
    FormulaCode *code = (FormulaCode *)(uintptr_t)store;
    SequelCode *sequel = LOWER_NEW(lowering, SequelCode, eval_sequel, store->span);
    sequel->store = code->general;
    sequel->next = next;
    for (int i = 0; i < code->count; i++) code->steps[i].general = &sequel->head;
    code->steps[code->count - 1].next = next;
    return true;
}
