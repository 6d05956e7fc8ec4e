// while, loop, for, comprehensions.
#include "eval/code.h"
#include "eval/iterate.h"
#include "eval/pattern.h"
#include "eval/upper.h"

typedef struct LoopCode {
    Code head;
    const Code *condition, *whole;
    Body body;
} LoopCode;

// What the body's unwinding means to the loop: false to leave it.
static inline bool loop_continues(Frame *frame) {
    if (frame->control != CONTROL_CONTINUE) return false;
    frame->control = CONTROL_NONE;
    return true;
}

// The loop's value after its body unwound: none after break, else the unwinding goes on.
static Value loop_leave(Frame *frame) {
    if (frame->control != CONTROL_BREAK) return value_fail();
    frame->control = CONTROL_NONE;
    return value_none();
}

static Value eval_while(Frame *frame, const Code *code) {
    const LoopCode *loop = (const LoopCode *)code;
    const Runtime *runtime = frame->interp->runtime;
    const Code *condition = loop->condition;
    const Body body = loop->body;
    for (;;) {
        if (UNLIKELY(runtime_interrupts(runtime))) return interp_fail_interrupted(code->span);
        int boolean = condition ? condition_eval(frame, condition) : 1;
        if (boolean <= 0) return boolean < 0 ? value_fail() : value_none();
        if (UNLIKELY(!body_run(frame, &body)) && !loop_continues(frame)) return loop_leave(frame);
    }
}

const Code *lower_loop(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_WHILE || node->kind == NODE_LOOP);
    LoopCode *code = LOWER_NEW(lowering, LoopCode, eval_while, node->span);
    code->condition = lower(lowering, node->as.loop.condition);
    code->whole = lower_loop_body(lowering, node->as.loop.body, node->as.loop.epochs);
    code->body = body_of(&code->whole);
    return &code->head;
}

typedef struct ForCode {
    Code head;
    const Code *iterable, *low, *high; // low and high: a range that is written out
    bool inclusive;
    const PatternCode *index, *pattern;
    const PatternCode *pair;       // of two names: both, to take a tuple apart
    int plain_slot;                // the slot of a plain loop variable, or -1
    const Code *condition, *whole; // condition: comprehensions
    Body body;                     // the same as `whole`
    int first_slot, slot_count;
} ForCode;

static Value bind_item(Frame *frame, const ForCode *loop, Iterator *iterator, Value item) {
    Status status = STATUS_OK;
    if (iterator->apart) {
        status = pattern_bind(frame, loop->pair, item);
    } else if (iterator->paired && !loop->index) {
        status = pattern_bind_pair(frame, loop->pattern, iterator_index(iterator), item);
    } else {
        if (loop->index) status = pattern_bind(frame, loop->index, iterator_index(iterator));
        if (status == STATUS_OK) status = pattern_bind(frame, loop->pattern, item);
    }
    value_release(item);
    return status == STATUS_OK ? value_none() : fail_at(loop->head.span);
}

static Status start_range(Frame *frame, const ForCode *loop, Iterator *iterator) {
    SCOPED_VALUE(low) = EVAL(frame, loop->low);
    if (failed(low)) return STATUS_SYNTAX;
    Value high = EVAL(frame, loop->high);
    Status status = failed(high) ? STATUS_SYNTAX : STATUS_OK;
    if (status == STATUS_OK) {
        status = iterator_start_range(iterator, low, high, loop->inclusive);
        if (status != STATUS_OK) error_place(loop->head.span);
        value_release(high);
    }
    return status;
}

// Two names take tuples of two apart, wherever these come from: the first element decides. In
// `for i, (a, b) in pairs` its second part has to be such a tuple as well, else i is a number.
static bool takes_apart(const ForCode *loop, const Iterator *iterator) {
    bool pass = iterator->kind == ITERATE_PASS;
    if ((iterator->kind != ITERATE_LIST && !pass) || iterator->left == 0) return false;
    Value first = pass ? iterator->first : iterator->source.as.list->items[0];
    return first.kind == VALUE_TUPLE && first.as.list->count == 2 &&
           pattern_takes(loop->pattern, first.as.list->items[1]);
}

// Any failure; its words are recorded, or the frame's control says why.
static Status start(Frame *frame, const ForCode *loop, Iterator *iterator) {
    if (loop->low) return start_range(frame, loop, iterator);
    Value iterable = EVAL(frame, loop->iterable);
    if (failed(iterable)) return STATUS_SYNTAX;
    bool two_names = loop->index || pattern_is_pair(loop->pattern);
    Status status = iterator_start(iterator, iterable, two_names);
    if (status != STATUS_OK) error_place(loop->iterable->span);
    if (status == STATUS_OK && loop->index) iterator->apart = takes_apart(loop, iterator);
    return status;
}

// A plain variable takes an item as it is. Its slot may still hold what a variable of the same
// place had in the epoch before.
static inline Value take_item(Frame *frame, const ForCode *loop, Iterator *iterator, Value item) {
    if (loop->plain_slot < 0 || iterator->paired) return bind_item(frame, loop, iterator, item);
    value_release(frame->slots[loop->plain_slot]);
    frame->slots[loop->plain_slot] = item;
    return value_none();
}

// Ints without an index into a plain variable: the commonest loop.
static Value run_range(Frame *frame, const ForCode *loop, Iterator *iterator) {
    ASSERT(loop->plain_slot >= 0);
    Value *slot = &frame->slots[loop->plain_slot], result = value_none();
    const Runtime *runtime = frame->interp->runtime;
    const Body body = loop->body;
    const uint64_t step = (uint64_t)iterator->step;
    int64_t next = iterator->next;
    for (uint64_t left = iterator->left; left > 0; left--) {
        if (UNLIKELY(runtime_interrupts(runtime))) {
            result = interp_fail_interrupted(loop->head.span);
            break;
        }
        value_release(*slot);
        *slot = value_int(next);
        next = (int64_t)((uint64_t)next + step);
        if (UNLIKELY(!body_run(frame, &body)) && !loop_continues(frame)) {
            result = loop_leave(frame);
            break;
        }
    }
    slots_release(frame, loop->first_slot, loop->slot_count);
    return result;
}

static Value run_items(Frame *frame, const ForCode *loop, Iterator *iterator) {
    for (;;) {
        CHECK_INTERRUPT(loop->head.span);
        Value item = iterator_next(iterator);
        if (item.kind == VALUE_ABSENT) return value_none();
        if (failed(item)) return fail_at(loop->iterable ? loop->iterable->span : loop->head.span);
        bool done = !failed(take_item(frame, loop, iterator, item)) && body_run(frame, &loop->body);
        slots_release(frame, loop->first_slot, loop->slot_count);
        if (!done && !loop_continues(frame)) return loop_leave(frame);
    }
}

static Value eval_for(Frame *frame, const Code *code) {
    const ForCode *loop = (const ForCode *)code;
    Iterator iterator;
    if (start(frame, loop, &iterator) != STATUS_OK) return value_fail();
    Value result = iterator.kind == ITERATE_RANGE && loop->plain_slot >= 0
                       ? run_range(frame, loop, &iterator)
                       : run_items(frame, loop, &iterator);
    slots_release(frame, loop->first_slot, loop->slot_count);
    iterator_end(&iterator);
    return result;
}

// Appends one element where the condition holds.
static Value comprehend(Frame *frame, const ForCode *loop, List *items) {
    if (loop->condition) {
        int boolean = condition_eval(frame, loop->condition);
        if (boolean <= 0) return boolean < 0 ? value_fail() : value_none();
    }
    Value element = literal_eval_element(frame, loop->whole);
    if (!failed(element)) list_push(items, element);
    return failed(element) ? element : value_none();
}

static Value run_comprehension(Frame *frame, const ForCode *loop, Iterator *iterator, List *items) {
    for (;;) {
        CHECK_INTERRUPT(loop->head.span);
        Value item = iterator_next(iterator);
        if (item.kind == VALUE_ABSENT) return value_none();
        if (failed(item)) return fail_at(loop->head.span);
        Value value = take_item(frame, loop, iterator, item);
        if (!failed(value)) value = comprehend(frame, loop, items);
        slots_release(frame, loop->first_slot, loop->slot_count);
        if (failed(value)) return value;
    }
}

Value comprehension_items(Frame *frame, const Code *code) {
    const ForCode *loop = (const ForCode *)code;
    Iterator iterator;
    if (start(frame, loop, &iterator) != STATUS_OK) return value_fail();
    Value items = value_list(0);
    Value result = run_comprehension(frame, loop, &iterator, items.as.list);
    iterator_end(&iterator);
    if (!failed(result)) return items;
    value_release(items);
    return result;
}

Value eval_comprehension(Frame *frame, const Code *code) {
    Value items = comprehension_items(frame, code);
    if (failed(items)) return items;
    origin_current.at = code->span.begin;
    Value result = literal_from_list(items, true);
    if (failed(result)) error_place(code->span);
    return result;
}

static void lower_iterable(Lowering *lowering, ForCode *code, const Node *iterable) {
    if (iterable->kind == NODE_RANGE && iterable->as.range.low && iterable->as.range.high) {
        code->low = lower(lowering, iterable->as.range.low);
        code->high = lower(lowering, iterable->as.range.high);
        code->inclusive = iterable->as.range.inclusive;
    } else {
        code->iterable = lower(lowering, iterable);
    }
}

// Loops and comprehensions.
const Code *lower_for(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_FOR || node->kind == NODE_COMPREHENSION);
    Value (*eval)(Frame *, const Code *) = node->kind == NODE_FOR ? eval_for : eval_comprehension;
    ForCode *code = LOWER_NEW(lowering, ForCode, eval, node->span);
    const Pattern *pattern = node->as.for_loop.pattern;
    lower_iterable(lowering, code, node->as.for_loop.iterable);
    code->pattern = lower_pattern(lowering, pattern);
    if (node->as.for_loop.index) {
        code->index = lower_pattern(lowering, node->as.for_loop.index);
        code->pair = pattern_pair(lowering, code->index, code->pattern);
    }
    code->condition = lower(lowering, node->as.for_loop.condition);
    code->whole = lower_loop_body(lowering, node->as.for_loop.body, node->as.for_loop.epochs);
    code->body = body_of(&code->whole);
    code->first_slot = node->as.for_loop.first_slot;
    code->slot_count = node->as.for_loop.slot_count;
    bool plain = !code->index && pattern->kind == PATTERN_BIND && !pattern->binding->captured;
    code->plain_slot = plain ? pattern->binding->slot : -1;
    return &code->head;
}
