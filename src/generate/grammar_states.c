// A grammar at work. A text's state is the set of places in the grammar where it may be, each with
// the stack of places to return to; stacks and states are interned, and what a byte makes of a
// state is remembered, so that a walk through the vocabulary is a walk through a table.
//
// A mask is the union over the places of a state. Most tokens stay within the rules on top of its
// stack, so that they do not depend on what is below: those are found once for the top of a stack
// with something unknown below (ANYWHERE), together with the nodes of the vocabulary's trie at
// which the top has ended; only from these on the stack below is looked at, in the same way.
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/memory.h"
#include "generate/grammar_internal.h"

enum { BOTTOM, ANYWHERE, STACKS_FIRST }; // stacks by number
enum { DEAD = 0, UNKNOWN = UINT32_MAX };
enum {
    MASKS_MAX = 1024,     // of states, and of tops
    STATES_MAX = 1 << 14, // from which on they are forgotten when no text is in the making
    TOP = 3,              // places of a stack that are its top
    TOP_OF_HOLES = 1,     // the same where texts fill holes, which many stacks go through:
    WAYS_MAX = 1 << 16, // to read a text, that are followed at once, besides one for each element,
    DEPTH_MAX = 10000,  // and calls within each other that follow them
    NODES_MIN = 128,    // there the masks below nodes with so many more are remembered, too
};

// What the top of a stack by itself says of the tokens below a node of the vocabulary's trie.
typedef struct TopMask {
    struct {
        uint32_t stack, node;
    } key;
    uint64_t *bits;
    VECTOR(uint32_t) left; // nodes at which the top has ended
    UT_hash_handle hh;
} TopMask;

// A place to go on from, and the stack below it.
typedef struct Stack {
    struct {
        uint32_t place, below;
    } key;
    uint32_t number;
    uint32_t returned; // the state of a text that has come back here; UNKNOWN
    int64_t cost;      // bytes of the shortest way to the end
    UT_hash_handle hh;
} Stack;

typedef struct State {
    uint32_t number;
    bool complete; // the text may end here
    bool left;     // the unknown stack was reached
    int64_t cost;
    uint32_t *next; // by class of byte; NULL until one is asked for
    uint64_t *mask; // NULL until it is asked for
    size_t count;
    uint32_t *heads; // stacks whose place reads bytes, in order of their numbers
    UT_hash_handle hh;
} State;

typedef struct GrammarConstraint {
    Constraint head;
    Grammar *grammar;
    uint8_t classes[256]; // of bytes that no set tells apart
    size_t class_count;
    VECTOR(Stack *) stacks;
    Stack *by_key;
    VECTOR(State *) states; // 0 is the dead one
    State *by_heads;
    const TokenTrie *vocabulary; // of all masks
    size_t mask_count;
    TopMask *tops; // by key
    Rule root;
    uint32_t first;
    bool ambiguous; // a text could be read in too many ways: nothing goes on
} GrammarConstraint;

// --- stacks

static int64_t stack_cost(const GrammarConstraint *c, const Stack *stack) {
    uint32_t place = stack->key.place, below = stack->key.below;
    int64_t own =
        place < PLACE_BEGUN ? c->grammar->costs[place] : holes_cost(c->grammar->holes, place);
    int64_t rest = below >= STACKS_FIRST ? c->stacks.items[below]->cost : 0;
    return own + rest < CONSTRAINT_NEVER ? own + rest : CONSTRAINT_NEVER;
}

static uint32_t stack_number(GrammarConstraint *c, uint32_t place, uint32_t below) {
    Stack *stack, key = {.key = {place, below}};
    HASH_FIND(hh, c->by_key, &key.key, sizeof key.key, stack);
    if (stack) return stack->number;
    stack = memory_allocate_zeroed(1, sizeof *stack);
    stack->key = key.key;
    stack->number = (uint32_t)c->stacks.count;
    stack->returned = UNKNOWN;
    stack->cost = stack_cost(c, stack);
    VECTOR_PUSH(&c->stacks, stack);
    HASH_ADD(hh, c->by_key, key, sizeof stack->key, stack);
    return stack->number;
}

// --- states in the making

typedef struct Making {
    GrammarConstraint *c;
    VECTOR(uint32_t) heads;
    uint64_t *seen; // (place, below) and 1 more, in slots found by hashing; 0: free
    size_t seen_count, slot_count;
    int depth;
    bool complete, left;
} Making;

static uint64_t *find_slot(const Making *making, uint64_t key) {
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);
    size_t at = (size_t)(hash >> 32) & (making->slot_count - 1);
    while (making->seen[at] != 0 && making->seen[at] != key)
        at = (at + 1) & (making->slot_count - 1);
    return &making->seen[at];
}

static void double_slots(Making *making) {
    enum { SLOTS_FIRST = 64 };
    Making larger = {.slot_count = making->slot_count ? making->slot_count * 2 : SLOTS_FIRST};
    larger.seen = memory_allocate_zeroed(larger.slot_count, sizeof *larger.seen);
    for (size_t i = 0; i < making->slot_count; i++)
        if (making->seen[i] != 0) *find_slot(&larger, making->seen[i]) = making->seen[i];
    free(making->seen);
    making->seen = larger.seen;
    making->slot_count = larger.slot_count;
}

static bool see(Making *making, uint32_t place, uint32_t below) {
    GrammarConstraint *c = making->c;
    if (making->seen_count * 2 >= making->slot_count) double_slots(making);
    uint64_t key = ((uint64_t)place << 32 | below) + 1, *slot = find_slot(making, key);
    if (*slot == key) return false;
    *slot = key;
    making->seen_count++;
    c->ambiguous |=
        making->seen_count > WAYS_MAX + c->grammar->elements.count || making->depth > DEPTH_MAX;
    return !c->ambiguous;
}

static void enter(Making *making, uint32_t place, uint32_t below);

// Goes on where what was above a stack has ended.
static void leave(Making *making, uint32_t below) {
    if (below == BOTTOM) {
        making->complete = true;
    } else if (below == ANYWHERE) {
        making->left = true;
    } else {
        const Stack *stack = making->c->stacks.items[below];
        enter(making, stack->key.place, stack->key.below);
    }
}

// A rule in the last place needs no return.
static void follow(Making *making, uint32_t place, uint32_t below) {
    const Grammar *grammar = making->c->grammar;
    const Element *element = place < PLACE_BEGUN ? &grammar->elements.items[place] : NULL;
    if (!element || element->kind == ELEMENT_BYTES) {
        VECTOR_PUSH(&making->heads, stack_number(making->c, place, below));
        return;
    }
    if (element->kind == ELEMENT_END) {
        leave(making, below);
        return;
    }
    bool last = element[1].kind == ELEMENT_END;
    uint32_t back = last ? below : stack_number(making->c, place + 1, below);
    if (element->kind == ELEMENT_HOLE) {
        enter(making, holes_begin(element->value), back);
        return;
    }
    const Alternatives *alternatives = &grammar->rules.items[element->value];
    for (size_t i = 0; i < alternatives->count; i++) enter(making, alternatives->items[i], back);
}

// Goes on from a place until bytes are read.
static void enter(Making *making, uint32_t place, uint32_t below) {
    if (!see(making, place, below)) return;
    making->depth++;
    follow(making, place, below);
    making->depth--;
}

static int compare_numbers(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

// The key of a state: its heads and then the two flags.
static uint32_t *finish_key(Making *making, size_t *bytes) {
    ASSERT(making->heads.count < UINT32_MAX);
    size_t count = making->heads.count;
    if (count > 1) qsort(making->heads.items, count, sizeof(uint32_t), compare_numbers);
    *bytes = (count + 1) * sizeof(uint32_t);
    VECTOR_PUSH(&making->heads, (uint32_t)(making->complete | making->left << 1));
    return making->heads.items;
}

static void find_state_cost(const GrammarConstraint *c, State *state) {
    state->cost = state->complete ? 0 : CONSTRAINT_NEVER;
    for (size_t i = 0; i < state->count; i++)
        if (c->stacks.items[state->heads[i]]->cost < state->cost)
            state->cost = c->stacks.items[state->heads[i]]->cost;
}

static State *state_new(Making *making, const uint32_t *key, size_t bytes) {
    ASSERT(bytes >= sizeof(uint32_t));
    GrammarConstraint *c = making->c;
    State *state = memory_allocate_zeroed(1, sizeof *state);
    state->number = (uint32_t)c->states.count;
    state->complete = making->complete;
    state->left = making->left;
    state->count = bytes / sizeof *key - 1;
    state->heads = memory_allocate(bytes);
    memcpy(state->heads, key, bytes);
    find_state_cost(c, state);
    VECTOR_PUSH(&c->states, state);
    HASH_ADD_KEYPTR(hh, c->by_heads, state->heads, bytes, state);
    return state;
}

static uint32_t finish(Making *making) {
    State *state = NULL;
    size_t bytes;
    uint32_t number = DEAD;
    if (making->heads.count > 0 || making->complete || making->left) {
        const uint32_t *key = finish_key(making, &bytes);
        HASH_FIND(hh, making->c->by_heads, key, bytes, state);
        number = state ? state->number : state_new(making, key, bytes)->number;
    }
    VECTOR_FREE(&making->heads);
    free(making->seen);
    return number;
}

// A text of a hole goes on; where it is complete so does what is below.
static void step_hole(Making *making, const Stack *stack, uint8_t byte) {
    ASSERT(stack->key.place >= PLACE_BEGUN);
    Holes *holes = making->c->grammar->holes;
    uint32_t place = holes_step(holes, stack->key.place, byte), below = stack->key.below;
    if (place == 0) return;
    enter(making, place, below);
    if (holes_complete(holes, place)) leave(making, below);
}

static uint32_t step_anew(GrammarConstraint *c, const State *state, uint8_t byte) {
    Making making = {.c = c};
    for (size_t i = 0; i < state->count; i++) {
        ASSERT(state->heads[i] < c->stacks.count);
        const Stack *stack = c->stacks.items[state->heads[i]];
        if (stack->key.place >= PLACE_BEGUN) {
            step_hole(&making, stack, byte);
            continue;
        }
        const Element *element = &c->grammar->elements.items[stack->key.place];
        if (set_has(&c->grammar->sets.items[element->value], byte))
            enter(&making, stack->key.place + 1, stack->key.below);
    }
    return finish(&making);
}

static uint32_t step(GrammarConstraint *c, uint32_t number, uint8_t byte) {
    ASSERT(number < c->states.count);
    State *state = c->states.items[number];
    if (number == DEAD || c->ambiguous) return DEAD;
    if (!state->next) {
        state->next = memory_allocate(c->class_count * sizeof *state->next);
        for (size_t i = 0; i < c->class_count; i++) state->next[i] = UNKNOWN;
    }
    uint32_t *next = &state->next[c->classes[byte]];
    if (*next == UNKNOWN) *next = step_anew(c, state, byte);
    return *next;
}

// The state after the rule above a stack has ended.
static uint32_t returned_state(GrammarConstraint *c, uint32_t number) {
    Stack *stack = c->stacks.items[number];
    if (stack->returned == UNKNOWN) {
        Making making = {.c = c};
        enter(&making, stack->key.place, stack->key.below);
        stack->returned = finish(&making);
    }
    return stack->returned;
}

// --- masks

static void allow_tokens(const TokenTrie *trie, size_t node, uint64_t *bits) {
    for (uint32_t i = trie->nodes[node].tokens; i < trie->nodes[node + 1].tokens; i++)
        bits[trie->tokens[i] / 64] |= 1ull << (trie->tokens[i] % 64);
}

typedef struct Walk {
    GrammarConstraint *c;
    const TokenTrie *trie;
    uint64_t *bits;
    TopMask *top; // takes the nodes at which what is unknown is reached; may be NULL
} Walk;

static void walk(const Walk *w, uint32_t node, uint32_t number) {
    uint32_t end = w->trie->nodes[node].next;
    for (uint32_t child = node + 1; child < end; child = w->trie->nodes[child].next) {
        uint32_t next = step(w->c, number, w->trie->nodes[child].byte);
        if (next == DEAD) continue;
        const State *state = w->c->states.items[next];
        bool inner = w->trie->nodes[child].next > child + 1;
        allow_tokens(w->trie, child, w->bits);
        if (state->left && inner) VECTOR_PUSH(&w->top->left, child);
        if (state->count > 0 && inner) walk(w, child, next);
    }
}

// The top of a stack over ANYWHERE, or all of it where there is no more; *rest: what is below.
static uint32_t top_of(GrammarConstraint *c, uint32_t number, int places, uint32_t *rest) {
    const Stack *stack = c->stacks.items[number];
    *rest = stack->key.below;
    if (*rest < STACKS_FIRST) return number;
    if (places == 1) return stack_number(c, stack->key.place, ANYWHERE);
    uint32_t below = top_of(c, stack->key.below, places - 1, rest);
    return stack_number(c, stack->key.place, below);
}

static void forget_tops(GrammarConstraint *c) {
    TopMask *top, *next;
    HASH_ITER(hh, c->tops, top, next) {
        HASH_DEL(c->tops, top);
        free(top->bits);
        VECTOR_FREE(&top->left);
        free(top);
    }
}

// Of a stack that ends ANYWHERE.
static const TopMask *top_mask(GrammarConstraint *c, uint32_t number, uint32_t node) {
    TopMask *top, key = {.key = {number, node}};
    HASH_FIND(hh, c->tops, &key.key, sizeof key.key, top);
    if (top) return top;
    const Stack *stack = c->stacks.items[number];
    top = memory_allocate_zeroed(1, sizeof *top);
    top->key = key.key;
    top->bits = memory_allocate_zeroed(trie_mask_words(c->vocabulary), sizeof(uint64_t));
    Making making = {.c = c};
    enter(&making, stack->key.place, stack->key.below);
    Walk all = {c, c->vocabulary, top->bits, top};
    walk(&all, node, finish(&making));
    HASH_ADD(hh, c->tops, key, sizeof top->key, top);
    return top;
}

// The tokens below a node that may come where the stack is all there is.
static void add_stack(GrammarConstraint *c, uint32_t number, uint32_t node, uint64_t *bits) {
    uint32_t below;
    bool holes = c->grammar->holes;
    int places = holes ? TOP_OF_HOLES : TOP;
    const TopMask *top = top_mask(c, top_of(c, number, places, &below), node);
    size_t words = trie_mask_words(c->vocabulary);
    for (size_t i = 0; i < words; i++) bits[i] |= top->bits[i];
    if (below < STACKS_FIRST) return;
    uint32_t number_after = returned_state(c, below); // which may add to the states
    const State *after = c->states.items[number_after];
    Walk rest = {c, c->vocabulary, bits, NULL};
    for (size_t i = 0; i < top->left.count; i++) {
        uint32_t left = top->left.items[i];
        bool few = !holes || c->vocabulary->nodes[left].next - left < NODES_MIN;
        if (few) walk(&rest, left, after->number);
        for (size_t j = 0; j < after->count && !few; j++) add_stack(c, after->heads[j], left, bits);
    }
}

static void forget_masks(GrammarConstraint *c) {
    for (size_t i = 0; i < c->states.count; i++) {
        free(c->states.items[i]->mask);
        c->states.items[i]->mask = NULL;
    }
    c->mask_count = 0;
}

static void use_vocabulary(GrammarConstraint *c, const TokenTrie *vocabulary) {
    forget_masks(c);
    forget_tops(c);
    c->vocabulary = vocabulary;
}

static const uint64_t *grammar_allowed(Constraint *constraint, ConstraintState number,
                                       const TokenTrie *vocabulary) {
    GrammarConstraint *c = (GrammarConstraint *)constraint;
    if (c->vocabulary != vocabulary) use_vocabulary(c, vocabulary);
    State *state = c->states.items[number];
    if (state->mask) return state->mask;
    if (c->mask_count++ == MASKS_MAX) forget_masks(c);
    if (HASH_COUNT(c->tops) > MASKS_MAX) forget_tops(c);
    state->mask = memory_allocate_zeroed(trie_mask_words(vocabulary), sizeof *state->mask);
    for (size_t i = 0; i < state->count; i++) add_stack(c, state->heads[i], 0, state->mask);
    return state->mask;
}

// --- all states

static void states_begin(GrammarConstraint *c) {
    for (int i = 0; i < STACKS_FIRST; i++) VECTOR_PUSH(&c->stacks, NULL);
    VECTOR_PUSH(&c->states, memory_allocate_zeroed(1, sizeof(State)));
    c->states.items[DEAD]->cost = CONSTRAINT_NEVER;
    Making making = {.c = c};
    const Alternatives *alternatives = &c->grammar->rules.items[c->root];
    for (size_t i = 0; i < alternatives->count; i++) enter(&making, alternatives->items[i], BOTTOM);
    c->first = finish(&making);
}

static void states_forget(GrammarConstraint *c) {
    forget_tops(c);
    HASH_CLEAR(hh, c->by_key);
    HASH_CLEAR(hh, c->by_heads);
    for (size_t i = STACKS_FIRST; i < c->stacks.count; i++) free(c->stacks.items[i]);
    for (size_t i = 0; i < c->states.count; i++) {
        free(c->states.items[i]->next);
        free(c->states.items[i]->mask);
        free(c->states.items[i]->heads);
        free(c->states.items[i]);
    }
    VECTOR_FREE(&c->stacks);
    VECTOR_FREE(&c->states);
    c->mask_count = 0;
    if (c->grammar->holes) holes_forget(c->grammar->holes);
}

// --- the interface

static ConstraintState grammar_begin(Constraint *constraint) {
    enum { ALONE = 2 }; // whoever made it and the text that begins: nobody has a state
    GrammarConstraint *c = (GrammarConstraint *)constraint;
    if (c->states.count > STATES_MAX && constraint->refs <= ALONE) {
        states_forget(c);
        states_begin(c);
    }
    return c->first;
}

static ConstraintState grammar_advance(Constraint *constraint, ConstraintState number,
                                       const char *bytes, size_t length) {
    GrammarConstraint *c = (GrammarConstraint *)constraint;
    for (size_t i = 0; i < length && number != DEAD; i++)
        number = step(c, number, (uint8_t)bytes[i]);
    return number;
}

static int64_t grammar_shortest(Constraint *constraint, ConstraintState number) {
    return ((GrammarConstraint *)constraint)->states.items[number]->cost;
}

static Status check_ways(const GrammarConstraint *c, const char *what) {
    if (!c->ambiguous) return STATUS_OK;
    (void)fail(STATUS_VALUE, "%s can be read in too many ways at once", what);
    return fail_help(
        "a repetition of what repeats and may be empty has many ways to read one text");
}

// Stacks and states stay; what was found by the texts of holes is found anew.
static Status grammar_refresh(Constraint *constraint) {
    GrammarConstraint *c = (GrammarConstraint *)constraint;
    bool changed = false;
    TRY(check_ways(c, "what a text must look like"));
    if (c->grammar->holes) TRY(holes_refresh(c->grammar->holes, c->grammar->filler, &changed));
    if (!changed) return STATUS_OK;
    grammar_find_costs(c->grammar);
    forget_masks(c);
    forget_tops(c);
    for (size_t i = STACKS_FIRST; i < c->stacks.count; i++) {
        c->stacks.items[i]->returned = UNKNOWN;
        c->stacks.items[i]->cost = stack_cost(c, c->stacks.items[i]); // that below comes before
    }
    for (size_t i = 1; i < c->states.count; i++) {
        free(c->states.items[i]->next);
        c->states.items[i]->next = NULL;
        find_state_cost(c, c->states.items[i]);
    }
    return STATUS_OK;
}

static void grammar_release(Constraint *constraint) {
    GrammarConstraint *c = (GrammarConstraint *)constraint;
    states_forget(c);
    grammar_free(c->grammar);
    free(c);
}

static const ConstraintType grammar_type = {.release = grammar_release,
                                            .begin = grammar_begin,
                                            .advance = grammar_advance,
                                            .allowed = grammar_allowed,
                                            .shortest = grammar_shortest,
                                            .refresh = grammar_refresh};

// Bytes that are in the same sets are of one class; texts of holes tell all of them apart.
static void find_classes(GrammarConstraint *c) {
    const Grammar *grammar = c->grammar;
    uint8_t representative[256];
    if (grammar->holes) {
        for (int byte = 0; byte < 256; byte++) c->classes[byte] = (uint8_t)byte;
        c->class_count = 256;
        return;
    }
    for (int byte = 0; byte < 256; byte++) {
        size_t class = 0;
        for (; class < c->class_count; class ++) {
            bool same = true;
            for (size_t i = 0; i < grammar->sets.count && same; i++)
                same = set_has(&grammar->sets.items[i], (uint8_t)byte) ==
                       set_has(&grammar->sets.items[i], representative[class]);
            if (same) break;
        }
        if (class == c->class_count) representative[c->class_count++] = (uint8_t)byte;
        c->classes[byte] = (uint8_t) class;
    }
}

Status grammar_constraint(Grammar *grammar, Rule root, const char *what, Constraint **out) {
    Status status = grammar_check(grammar, root, what);
    if (status != STATUS_OK) {
        grammar_free(grammar);
        return status;
    }
    GrammarConstraint *c = memory_allocate_zeroed(1, sizeof *c);
    c->head = (Constraint){&grammar_type, 1};
    c->grammar = grammar;
    find_classes(c);
    c->root = root;
    states_begin(c);
    status = check_ways(c, what);
    if (status == STATUS_OK)
        *out = &c->head;
    else
        grammar_release(&c->head);
    return status;
}
