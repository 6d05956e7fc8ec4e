// Loops and learn blocks: the first iteration as it will be where there certainly is one, then
// all iterations with what holds in each.
#include <stdlib.h>

#include "check/infer/infer.h"
#include "check/operator_words.h"

// A loop being gone through.
struct InferLoop {
    Node *node;
    const Fact *element, *index; // of a for
    size_t mark;
    VECTOR(Change) exits; // what variables are where a break or continue leaves
    bool left;            // there was one
    InferLoop *outer;
};

void infer_leave_loop(Inference *in) {
    ASSERT(!in->loop || in->loop->mark <= in->trail.count);
    InferLoop *loop = in->loop;
    if (loop) loop->left = true;
    for (size_t i = loop ? loop->mark : in->trail.count; i < in->trail.count; i++) {
        Binding *binding = in->trail.items[i].binding;
        VECTOR_PUSH(&loop->exits, ((Change){binding, binding->fact}));
    }
    in->left |= LEFT_LOOP;
    in->dead = true;
}

// The tensors of a batch: rows of those of the same name outside, how many is not known.
static void bind_batch(Inference *in, const Node *node) {
    ASSERT(node->kind == NODE_LEARN);
    const Setting *batch = learn_setting(node, SETTING_batch);
    if (!batch || !batch->of) return;
    bool tuple = batch->of->kind == NODE_TUPLE;
    for (size_t i = 0; i < node->as.learn.batch_count; i++) {
        Node *item = tuple ? batch->of->as.list.items[i] : batch->of;
        const Fact *whole = infer_expression(in, item), *rows = &fact_any;
        if (fact_is_array(whole)) {
            Shape shape = whole->as.tensor.type.shape;
            shape.dims[0] = SIZE_UNKNOWN;
            rows =
                fact_made(&in->arena, fact_tensor(&in->arena, whole->as.tensor.type.dtype, &shape),
                          whole->made);
        }
        infer_write(in, node->as.learn.batch[i], rows);
    }
}

static bool is_evaluated_after(const Setting *setting) {
    SettingId id = setting_find(setting->name.text);
    return id < SETTING_COUNT && setting_rows[id].place == SETTING_AFTER;
}

static void check_objective(Inference *in, const Node *value, const Fact *fact) {
    if (fact->kind != FACT_TENSOR || !fact->known) return;
    int64_t count = shape_count(&fact->as.tensor.type.shape);
    if (count == 1 || !size_is_known(count)) return;
    SCOPED_TEXT(type);
    fact_describe(fact, &type);
    (void)objective_fail(text_get(&type));
    infer_report(in, value->span, NULL, 0);
}

static void learn_turn(Inference *in, Node *node) {
    bind_batch(in, node);
    Binding *counts[] = {node->as.learn.epochs, node->as.learn.epoch, node->as.learn.step};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i]) infer_write(in, counts[i], fact_kind(&in->arena, FACT_INT));
    infer_block(in, node->as.learn.body);
    for (size_t i = 0; i < node->as.learn.count; i++) {
        const Setting *setting = &node->as.learn.settings[i];
        if (!is_evaluated_after(setting)) continue;
        const Fact *fact = infer_expression(in, setting->value);
        if (setting == learn_setting(node, SETTING_objective))
            check_objective(in, setting->value, fact);
    }
}

static void loop_turn(Inference *in, const InferLoop *loop) {
    ASSERT(loop->node != NULL);
    Node *node = loop->node;
    switch (node->kind) {
    case NODE_FOR:
        infer_pattern(in, node->as.for_loop.index, loop->index);
        infer_pattern(in, node->as.for_loop.pattern, loop->element);
        infer_expression(in, node->as.for_loop.body);
        break;
    case NODE_LEARN: learn_turn(in, node); break;
    default:
        if (node->as.loop.condition) infer_expression(in, node->as.loop.condition);
        infer_expression(in, node->as.loop.body);
        break;
    }
}

static const Fact *fact_or_any(const Fact *fact) {
    return fact ? fact : &fact_any;
}

// Joins what variables are there into what they are here; true when that changed one.
static bool join_changes(Inference *in, const Change *changes, size_t count, bool give_up) {
    bool changed = false;
    for (size_t i = 0; i < count; i++) {
        Binding *binding = changes[i].binding;
        const Fact *now = fact_or_any(binding->fact);
        const Fact *joined =
            give_up ? &fact_any : fact_join(&in->arena, now, fact_or_any(changes[i].before));
        if (fact_equal(joined, now)) continue;
        changed = true;
        infer_write(in, binding, joined);
    }
    return changed;
}

// Goes through an iteration and joins what it leaves with what it found.
static bool loop_widen(Inference *in, InferLoop *loop, bool give_up) {
    loop->mark = in->trail.count;
    loop->exits.count = 0;
    loop_turn(in, loop);
    ASSERT(loop->mark <= in->trail.count);
    for (size_t i = loop->mark; i < in->trail.count && !in->dead; i++) {
        Binding *binding = in->trail.items[i].binding;
        VECTOR_PUSH(&loop->exits, ((Change){binding, binding->fact}));
    }
    infer_undo(in, loop->mark);
    in->dead = false;
    return join_changes(in, loop->exits.items, loop->exits.count, give_up);
}

// A way that left early may have left before any of the writes.
static void keep_befores(Inference *in, InferLoop *loop) {
    for (size_t i = loop->mark; loop->left && i < in->trail.count; i++)
        VECTOR_PUSH(&loop->exits, in->trail.items[i]);
}

// `some`: there certainly is an iteration. `endless`: only a break ends it.
static void loop_run(Inference *in, InferLoop *loop, bool some, bool endless) {
    enum { PASSES = 4 };
    ASSERT(in->doubt >= 0);
    uint8_t left = in->left;
    bool dead = false;
    loop->outer = in->loop;
    in->loop = loop;
    if (some) {
        loop->mark = in->trail.count;
        loop_turn(in, loop);
        dead = in->dead && !(in->left & LEFT_LOOP);
        in->dead = false;
        keep_befores(in, loop);
        join_changes(in, loop->exits.items, loop->exits.count, false);
    }
    if (!dead) {
        in->doubt++;
        in->silent++;
        for (int pass = 1; pass <= PASSES && loop_widen(in, loop, pass >= PASSES - 1); pass++) {
        }
        ASSERT(in->silent > 0);
        in->silent--;
        if (in->warnings && in->silent == 0) loop_widen(in, loop, false);
        ASSERT(in->doubt > 0);
        in->doubt--;
    }
    in->dead = dead || (endless && !(in->left & LEFT_LOOP));
    in->left = (uint8_t)(left | (in->left & ~LEFT_LOOP));
    in->loop = loop->outer;
    VECTOR_FREE(&loop->exits);
}

// Two names: a number and an element, or the parts of a tuple, as the first element decides.
static void name_elements(Inference *in, const Node *node, const Fact *items, const Fact **element,
                          const Fact **index) {
    bool list = items->kind == FACT_LIST || items->kind == FACT_TUPLE;
    bool known = list && infer_members_known(in, items) && items->as.list.count > 0;
    FactKind first = known ? items->as.list.items[0]->kind : FACT_ANY;
    bool numbered = fact_is_array(items) || items->kind == FACT_RANGE ||
                    items->kind == FACT_STRING || (first != FACT_ANY && first != FACT_TUPLE);
    const Fact *pair = *element;
    bool names = node->as.for_loop.pattern->kind != PATTERN_TUPLE;
    bool apart =
        !numbered && names && pair->kind == FACT_TUPLE && pair->known && pair->as.list.count == 2;
    *index = numbered ? fact_kind(&in->arena, FACT_INT)
             : apart  ? pair->as.list.items[0]
                      : &fact_any;
    if (!numbered) *element = apart ? pair->as.list.items[1] : &fact_any;
}

bool infer_elements(Inference *in, const Node *node, const Fact **element, const Fact **index) {
    bool some;
    ASSERT(node->kind == NODE_FOR || node->kind == NODE_COMPREHENSION);
    Node *iterable = node->as.for_loop.iterable;
    const Fact *items = infer_expression(in, iterable);
    *element = infer_element(in, items, &some);
    *index = &fact_any;
    if (node->as.for_loop.index) name_elements(in, node, items, element, index);
    if (items->kind == FACT_INT || items->kind == FACT_FLOAT || items->kind == FACT_BOOL ||
        items->kind == FACT_NONE) {
        SCOPED_TEXT(text);
        fact_describe(items, &text);
        fail(STATUS_TYPE, "for cannot run through %s", text_get(&text));
        if (items->kind == FACT_INT && items->known)
            fail_help("0..%s counts up to it", text_get(&text));
        infer_report(in, iterable->span, NULL, 0);
    }
    return some;
}

void infer_loop(Inference *in, Node *node) {
    if (node->kind == NODE_FOR) {
        InferLoop run = {.node = node};
        bool some = infer_elements(in, node, &run.element, &run.index);
        loop_run(in, &run, some, false);
        return;
    }
    InferLoop loop = {.node = node};
    Node *condition = node->as.loop.condition;
    const Fact *first = condition ? infer_expression(in, condition) : NULL;
    if (first) infer_condition(in, condition, first);
    bool known = first && first->kind == FACT_BOOL && first->known;
    if (known && !first->as.integer) return;
    bool literal = !condition || condition->kind == NODE_BOOL;
    loop_run(in, &loop, known || !condition, literal);
}

void infer_learn(Inference *in, Node *node) {
    ASSERT(node->kind == NODE_LEARN);
    InferLoop loop = {.node = node};
    const Setting *epochs = learn_setting(node, SETTING_epochs);
    bool some = !learn_setting(node, SETTING_objective);
    for (size_t i = 0; i < node->as.learn.count; i++) {
        const Setting *setting = &node->as.learn.settings[i];
        const Fact *fact =
            is_evaluated_after(setting) ? &fact_any : infer_expression(in, setting->value);
        if (setting == epochs && fact->kind == FACT_INT && fact->known && fact->as.integer > 0)
            some = true;
    }
    loop_run(in, &loop, some, false);
    for (size_t i = 0; i < node->as.learn.kept.count; i++)
        infer_write(in, node->as.learn.kept.items[i], &fact_any);
    infer_disturb(in);
}
