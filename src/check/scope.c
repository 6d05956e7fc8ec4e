// Scopes and symbols: a hash table from names to their meanings, nearest first, and the numbering
// of slots. Blocks number their slots like a stack, so that those of one block lie side by side.
#include <uthash.h>

#include "check/checker.h"

struct Symbol {
    const char *text;
    Entry *top;
    Binding *outside;     // the builtin or dtype that the name means when no scope has it
    const Binding *ended; // the variable of the name whose block ended last
    bool reported;
    UT_hash_handle hh;
};

void *checker_grow(Arena *arena, void *items, size_t *capacity, size_t item_bytes) {
    size_t grown = *capacity ? *capacity * 2 : 4;
    void *bytes = arena_allocate(arena, grown * item_bytes);
    if (*capacity) memcpy(bytes, items, *capacity * item_bytes);
    *capacity = grown;
    return bytes;
}

static Symbol *symbol_get(Checker *checker, const Word *word) {
    Symbol *symbol;
    HASH_FIND(hh, checker->symbols, word->text, word->length, symbol);
    if (symbol) return symbol;
    symbol = arena_allocate(checker->arena, sizeof *symbol);
    symbol->text = word->text;
    HASH_ADD_KEYPTR(hh, checker->symbols, word->text, word->length, symbol);
    return symbol;
}

const Entry *symbol_top(Checker *checker, const Word *word) {
    return symbol_get(checker, word)->top;
}

const Binding *symbol_ended(Checker *checker, const Word *word) {
    const Binding *ended = symbol_get(checker, word)->ended;
    return ended && ended->owner == checker->function ? ended : NULL;
}

bool symbol_mark_reported(Checker *checker, const Word *word) {
    Symbol *symbol = symbol_get(checker, word);
    bool first = !symbol->reported;
    symbol->reported = true;
    return first;
}

size_t symbol_visible(Checker *checker, bool (*fits)(const Binding *), const char ***out) {
    const char **names =
        arena_allocate(checker->arena, HASH_COUNT(checker->symbols) * sizeof *names);
    size_t count = 0;
    for (Symbol *symbol = checker->symbols; symbol; symbol = symbol->hh.next)
        if (symbol->top && entry_is_visible(checker, symbol->top) &&
            (!fits || fits(symbol->top->binding)))
            names[count++] = symbol->text;
    ASSERT(count <= HASH_COUNT(checker->symbols));
    *out = names;
    return count;
}

void symbols_free(Checker *checker) {
    HASH_CLEAR(hh, checker->symbols);
}

void scope_push(Checker *checker, Scope *scope) {
    scope->outer = checker->scope;
    scope->function = checker->function;
    scope->first_slot = checker->slot_next;
    const Scope *outer = scope->outer;
    scope->hoists = outer && outer->hoists && outer->function == scope->function;
    checker->scope = scope;
}

int scope_pop(Checker *checker) {
    Scope *scope = checker->scope;
    int slots = checker->slot_next - scope->first_slot;
    ASSERT(slots >= 0);
    for (Entry *entry = scope->entries; entry; entry = entry->next_in_scope) {
        entry->symbol->top = entry->outer;
        if (binding_is_variable(entry->binding)) entry->symbol->ended = entry->binding;
    }
    if (!scope->outer || !scope->outer->hoists) checker->slot_next = scope->first_slot;
    checker->scope = scope->outer;
    return slots;
}

Entry *scope_add(Checker *checker, const Word *word, Binding *binding) {
    Entry *entry = arena_allocate(checker->arena, sizeof *entry);
    Symbol *symbol = symbol_get(checker, word);
    *entry = (Entry){.binding = binding,
                     .symbol = symbol,
                     .scope = checker->scope,
                     .outer = symbol->top,
                     .next_in_scope = checker->scope->entries};
    symbol->top = entry;
    checker->scope->entries = entry;
    return entry;
}

void scope_add_outermost(Checker *checker, Scope *scope, const Word *word, Binding *binding) {
    Symbol *symbol = symbol_get(checker, word);
    Entry **last = &symbol->top;
    while (*last) last = &(*last)->outer;
    *last = arena_allocate(checker->arena, sizeof **last);
    **last = (Entry){
        .binding = binding, .symbol = symbol, .scope = scope, .next_in_scope = scope->entries};
    scope->entries = *last;
}

Binding *binding_new(Checker *checker, BindingKind kind, const Word *word) {
    Binding *binding = arena_allocate(checker->arena, sizeof *binding);
    binding->kind = kind;
    binding->word = *word;
    binding->program = checker->program;
    binding->owner = checker->scope ? checker->scope->function : NULL;
    return binding;
}

Binding *scope_declare_new(Checker *checker, BindingKind kind, const Word *word) {
    Binding *binding = binding_new(checker, kind, word);
    if (kind == BINDING_GLOBAL) {
        binding->slot = (int)checker->program->globals.count;
        ARENA_PUSH(checker->arena, &checker->program->globals, binding);
    } else if (kind == BINDING_LOCAL || kind == BINDING_DIMENSION) {
        binding->slot = checker->slot_next++;
        if (checker->slot_next > checker->slot_max) checker->slot_max = checker->slot_next;
    }
    if (word->text) scope_add(checker, word, binding);
    return binding;
}

static Binding *declare_in(Checker *checker, Scope *target, const Word *word) {
    Scope *scope = checker->scope;
    checker->scope = target;
    BindingKind kind = target->global ? BINDING_GLOBAL : BINDING_LOCAL;
    Binding *binding = scope_declare_new(checker, kind, word);
    checker->scope = scope;
    return binding;
}

// Where the names of a learn block's body go on after it.
static Scope *scope_around(Scope *scope) {
    while (scope->learn || scope->own) scope = scope->outer;
    return scope;
}

static Binding *declare_again(Entry *entry, Node *declaration) {
    bool again = !entry->pending && entry->binding->declaration != declaration;
    entry->pending = false;
    entry->binding->assigned |= again;
    if (!entry->binding->declaration) entry->binding->declaration = declaration;
    return entry->binding;
}

// In the body of a learn block. A variable that exists outside keeps its value; one that an earlier
// block has left there takes over the last value of this one.
static Binding *declare_learned(Checker *checker, const Word *word, Node *declaration) {
    Scope *target = scope_around(checker->scope);
    Node *learn = checker->scope->learn;
    Entry *entry = symbol_get(checker, word)->top;
    while (entry && !binding_is_variable(entry->binding)) entry = entry->outer;
    bool around = entry && entry->scope == target;
    if (entry && (entry->scope == checker->scope ||
                  (around && (entry->pending || entry->binding->learned == learn)))) {
        entry->binding->learned = around ? learn : NULL;
        return declare_again(entry, declaration);
    }
    Binding *binding = declare_in(checker, entry ? checker->scope : target, word);
    binding->declaration = declaration;
    if (!entry) {
        binding->learned = learn;
    } else if (around && entry->binding->learned) {
        ARENA_PUSH(checker->arena, &learn->as.learn.own, binding);
        ARENA_PUSH(checker->arena, &learn->as.learn.kept, entry->binding);
    }
    return binding;
}

Binding *scope_declare(Checker *checker, const Word *word, Node *declaration) {
    if (checker->scope->learn) return declare_learned(checker, word, declaration);
    Entry *entry = symbol_get(checker, word)->top;
    for (; entry && entry->scope == checker->scope; entry = entry->outer)
        if (binding_is_variable(entry->binding)) return declare_again(entry, declaration);
    Binding *binding = declare_in(checker, checker->scope, word);
    binding->declaration = declaration;
    return binding;
}

void scope_set_pending(Checker *checker, const Binding *binding) {
    Entry *entry = checker->scope->entries;
    ASSERT(entry && entry->binding == binding);
    entry->pending = true;
}

bool binding_is_variable(const Binding *binding) {
    return binding->kind == BINDING_GLOBAL || binding->kind == BINDING_LOCAL;
}

// Statements of the top level see only what stands above them; functions run later and see all.
bool entry_is_visible(const Checker *checker, const Entry *entry) {
    return !entry->pending || checker->function != NULL;
}

Binding *scope_find_variable(Checker *checker, const Word *word) {
    for (const Entry *entry = symbol_top(checker, word); entry; entry = entry->outer)
        if (binding_is_variable(entry->binding) && entry_is_visible(checker, entry))
            return entry->binding;
    return NULL;
}

static bool captures_have(const FunctionNode *function, const Binding *binding) {
    for (size_t i = 0; i < function->captures.count; i++)
        if (function->captures.items[i] == binding) return true;
    return false;
}

void binding_use(Checker *checker, Binding *binding) {
    binding->used = true;
    if (binding->kind != BINDING_LOCAL && binding->kind != BINDING_DIMENSION) return;
    for (FunctionNode *inner = checker->function; inner != binding->owner; inner = inner->outer) {
        ASSERT(inner != NULL); // the owner is one of those around
        binding->captured = true;
        if (captures_have(inner, binding)) break;
        ARENA_PUSH(checker->arena, &inner->captures, binding);
    }
}

static Binding *outside_binding(Checker *checker, const Word *word) {
    DType dtype;
    const Builtin *row = catalog_find(word->text, word->length);
    if (row) {
        Binding *binding = binding_new(checker, BINDING_BUILTIN, word);
        binding->builtin = row;
        return binding;
    }
    const Constant *constant = catalog_constant(word->text, word->length);
    bool is_dtype = !constant && dtype_find(word->text, word->length, &dtype);
    if (!constant && !is_dtype) return NULL;
    Binding *binding = binding_new(checker, constant ? BINDING_CONSTANT : BINDING_DTYPE, word);
    binding->constant = constant;
    if (is_dtype) binding->slot = (int)dtype;
    return binding;
}

// Builtins, constants and dtypes: the outermost meaning, made when first asked for.
static Binding *symbol_outside(Checker *checker, const Word *word) {
    Symbol *symbol = symbol_get(checker, word);
    if (!symbol->outside) symbol->outside = outside_binding(checker, word);
    return symbol->outside;
}

Candidate *name_candidates(Checker *checker, const Word *word) {
    Candidate *first = NULL, **next = &first;
    const Entry *entry = symbol_top(checker, word);
    Binding *binding = NULL;
    do {
        while (entry && !entry_is_visible(checker, entry)) entry = entry->outer;
        binding = entry ? entry->binding : symbol_outside(checker, word);
        if (!binding) break;
        *next = arena_allocate(checker->arena, sizeof **next);
        (*next)->binding = binding;
        next = &(*next)->next;
        if (entry) entry = entry->outer;
    } while (binding_is_variable(binding) || binding->kind == BINDING_DIMENSION);
    return first;
}

Binding *name_resolve(Checker *checker, const Word *word) {
    const Entry *entry = symbol_top(checker, word);
    while (entry && !entry_is_visible(checker, entry)) entry = entry->outer;
    return entry ? entry->binding : symbol_outside(checker, word);
}
