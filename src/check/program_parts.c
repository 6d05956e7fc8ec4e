// What the equations of a program say of each other. An index that stands only as a number has the
// size that it has where the tensor is used. Where a tensor goes on step by step, an equation that
// reads the very elements that it gives updates them: what it is made from reads them as they were
// before, under a name of the program's own making, and all else as they are after it.
#include "check/equation_checker.h"
#include "check/logic_checker.h"
#include "parser/walk.h"
#include "shape/shape.h"

typedef struct Parts {
    Checker *checker;
    ProgramNode *program;
    Node **equations;
    size_t count;
} Parts;

typedef void TermVisit(void *context, Node *term);

// Calls the function for each x[...] of a right side, and for each name outside of them.
static void each_term(Node *node, TermVisit *visit, void *context) {
    switch (node->kind) {
    case NODE_NAME:
    case NODE_INDEX: visit(context, node); break;
    case NODE_UNARY: each_term(node->as.binary.left, visit, context); break;
    case NODE_BINARY:
        each_term(node->as.binary.left, visit, context);
        each_term(node->as.binary.right, visit, context);
        break;
    case NODE_CALL:
        for (size_t i = 0; i < node->as.call.count; i++)
            each_term(node->as.call.arguments[i].value, visit, context);
        break;
    case NODE_METHOD_CALL:
        each_term(node->as.method.receiver, visit, context);
        for (size_t i = 0; i < node->as.method.count; i++)
            each_term(node->as.method.arguments[i].value, visit, context);
        break;
    case NODE_CAST: each_term(node->as.cast.value, visit, context); break;
    default: break;
    }
}

static Word *word_of(Node *term) {
    Node *object = term->kind == NODE_INDEX ? term->as.index.object : term;
    return object->kind == NODE_NAME ? &object->as.name.word : NULL;
}

static int name_of(const Parts *parts, Node *term) {
    const Word *word = word_of(term);
    return word ? program_find_name(parts->program, word) : -1;
}

static int target_of(const Parts *parts, size_t equation) {
    return name_of(parts, parts->equations[equation]->as.assign.target);
}

// The index that stands alone at a place of a term; NULL: something else does, or nothing.
static const Word *index_at(const Parts *parts, const Node *term, size_t place) {
    if (term->kind != NODE_INDEX || place >= term->as.index.count) return NULL;
    const Subscript *subscript = &term->as.index.subscripts[place];
    if (subscript->kind != SUBSCRIPT_INDEX || subscript->looped) return NULL;
    Node *index = subscript->index;
    bool named = index && index->kind == NODE_NAME &&
                 !logic_is_place(parts->checker, term->as.index.object, index, place) &&
                 equation_is_free(parts->checker, &index->as.name.word, true);
    return named ? &index->as.name.word : NULL;
}

static bool same_word(const Word *one, const Word *other) {
    return one && other && strcmp(one->text, other->text) == 0;
}

// --- recursion written X[t, i] = f(X[t-1, i]), which is X[t+1, i] = f(X[t, i])

typedef struct Shift {
    const Parts *parts;
    const Word *index;
    int64_t back; // how far the right side goes back along it, in tensors of the program
} Shift;

static bool is_named(const Node *node, const Word *index) {
    return node->kind == NODE_NAME && same_word(&node->as.name.word, index);
}

static bool goes_back(const Node *node, const Word *index) {
    return node && node->kind == NODE_BINARY && node->op == OPERATOR_SUB &&
           is_named(node->as.binary.left, index) && node->as.binary.right->kind == NODE_INT;
}

static void note_back(void *context, Node *term) {
    Shift *shift = context;
    if (term->kind != NODE_INDEX || name_of(shift->parts, term) < 0) return;
    for (size_t i = 0; i < term->as.index.count; i++) {
        const Node *index = term->as.index.subscripts[i].index;
        if (!goes_back(index, shift->index)) continue;
        int64_t back = index->as.binary.right->as.integer;
        if (back > shift->back) shift->back = back;
    }
}

// t as t+1
static void shift_name(const Shift *shift, Node *node) {
    Arena *arena = shift->parts->checker->arena;
    Node *name = arena_allocate(arena, sizeof *name), *number = arena_allocate(arena, sizeof *name);
    *name = *node;
    *number = (Node){.kind = NODE_INT, .span = node->span, .height = 1};
    number->as.integer = shift->back;
    *node = (Node){.kind = NODE_BINARY, .op = OPERATOR_ADD, .span = node->span, .height = 2};
    node->op_span = node->span;
    node->as.binary.left = name;
    node->as.binary.right = number;
}

static void shift_index(const Shift *shift, Node *node) {
    if (goes_back(node, shift->index)) {
        int64_t rest = shift->back - node->as.binary.right->as.integer;
        node->op = rest < 0 ? OPERATOR_SUB : OPERATOR_ADD;
        node->as.binary.right->as.integer = rest < 0 ? -rest : rest;
        if (rest == 0) *node = *node->as.binary.left;
    } else if (is_named(node, shift->index)) {
        shift_name(shift, node);
    } else if (node->kind == NODE_UNARY || node->kind == NODE_BINARY) {
        shift_index(shift, node->as.binary.left);
        if (node->kind == NODE_BINARY) shift_index(shift, node->as.binary.right);
    }
}

static void shift_term(void *context, Node *term) {
    if (term->kind == NODE_NAME) shift_index(context, term);
    for (size_t i = 0; term->kind == NODE_INDEX && i < term->as.index.count; i++)
        if (term->as.index.subscripts[i].index)
            shift_index(context, term->as.index.subscripts[i].index);
}

static void shift_equation(const Parts *parts, size_t equation) {
    Node *node = parts->equations[equation], *target = node->as.assign.target;
    size_t count = target->kind == NODE_INDEX ? target->as.index.count : 0;
    for (size_t i = 0; i < count; i++) {
        Shift shift = {parts, index_at(parts, target, i), 0};
        if (shift.index) each_term(node->as.assign.value, note_back, &shift);
        if (shift.back == 0) continue;
        each_term(node->as.assign.value, shift_term, &shift);
        shift_name(&shift, target->as.index.subscripts[i].index);
    }
}

// X[0, i] and X[t+1, i] give parts of X along its first dimension.
static uint32_t parts_given(const Node *target) {
    uint32_t dims = 0;
    for (size_t i = 0; target->kind == NODE_INDEX && i < target->as.index.count; i++) {
        const Subscript *subscript = &target->as.index.subscripts[i];
        const Node *index = subscript->index;
        bool sum = index && index->kind == NODE_BINARY && index->op == OPERATOR_ADD;
        if (index && !subscript->looped && (sum || index->kind == NODE_INT) && i < 32)
            dims |= 1u << i;
    }
    return dims;
}

// --- which names need which

typedef struct Needs {
    const Parts *parts;
    bool *found; // by name
    int but;     // a name that is not gone through, or -1
} Needs;

static void note_need(void *context, Node *term) {
    const Needs *needs = context;
    int name = name_of(needs->parts, term);
    if (name >= 0 && name != needs->but) needs->found[name] = true;
}

// Whether a dimension along which the tensor goes on has an index of its own in the term.
static bool is_at_step(const Parts *parts, const Node *term, int name) {
    bool found = false;
    for (size_t i = 0; i < RANK_MAX; i++)
        found |= parts->program->growing[name] >> i & 1 && index_at(parts, term, i);
    return found;
}

// Not one that gives the first or the next step of a tensor that goes on.
static bool is_of_its_step(const Parts *parts, size_t equation) {
    int name = target_of(parts, equation);
    const Node *target = parts->equations[equation]->as.assign.target;
    return parts->program->growing[name] == 0 || is_at_step(parts, target, name);
}

// Notes, by name, what the equation is made from, at any distance; of an update of `but` what is
// made in its step.
static bool *find_needed(const Parts *parts, size_t equation, int but) {
    size_t names = parts->program->name_count, before = 0, now = 0;
    Needs needs = {parts, arena_allocate(parts->checker->arena, names + 1), but};
    memset(needs.found, 0, names + 1);
    each_term(parts->equations[equation]->as.assign.value, note_need, &needs);
    do {
        before = now;
        now = 0;
        for (size_t i = 0; i < parts->count; i++)
            if (needs.found[target_of(parts, i)] && (but < 0 || is_of_its_step(parts, i)))
                each_term(parts->equations[i]->as.assign.value, note_need, &needs);
        for (size_t i = 0; i < names; i++) now += needs.found[i];
    } while (now > before);
    return needs.found;
}

// --- sizes from where a tensor is used

typedef struct Use {
    const Parts *parts;
    int origin; // the tensor whose size is wanted
    int name;   // what is made of it
    size_t place;
    const Word *index; // that stands there in the equation looked at
    Node *term;        // that says how large it is
    size_t term_place;
} Use;

static void note_use(void *context, Node *term) {
    Use *use = context;
    if (!use->index && name_of(use->parts, term) == use->name)
        use->index = index_at(use->parts, term, use->place);
}

// A tensor of the program that is made from the one in question cannot say how large it is.
static void note_size(void *context, Node *term) {
    Use *use = context;
    const Parts *parts = use->parts;
    int name = name_of(parts, term);
    if (use->term || term->kind != NODE_INDEX) return;
    bool needs = name == use->origin;
    for (size_t i = 0; name >= 0 && i < parts->count; i++)
        needs |= target_of(parts, i) == name && find_needed(parts, i, -1)[use->origin];
    for (size_t i = 0; !needs && !use->term && i < term->as.index.count; i++) {
        if (!same_word(index_at(parts, term, i), use->index)) continue;
        use->term = term;
        use->term_place = i;
    }
}

// Finds a term with the index that stands at the place wherever the tensor is used, or where what
// is made of it there is.
static bool find_size(Use *use, bool *seen) {
    const Parts *parts = use->parts;
    int name = use->name;
    size_t place = use->place;
    for (size_t i = 0; i < parts->count && !use->term; i++) {
        if (seen[i]) continue;
        Node *equation = parts->equations[i];
        use->name = name;
        use->place = place;
        use->index = NULL;
        each_term(equation->as.assign.value, note_use, use);
        if (!use->index) continue;
        seen[i] = true;
        each_term(equation->as.assign.value, note_size, use);
        const Node *target = equation->as.assign.target;
        const Word *index = use->index;
        for (size_t k = 0; !use->term && k < RANK_MAX; k++) {
            if (!same_word(index_at(parts, target, k), index)) continue;
            use->name = target_of(parts, i);
            use->place = k;
            find_size(use, seen);
        }
    }
    return use->term != NULL;
}

// A name that no text can have.
static Word word_made(const Parts *parts, const Word *like, const char *more) {
    SCOPED_TEXT(text);
    Word word = *like;
    text_format(&text, "%s %s", like->text, more);
    word.text = arena_copy_string(parts->checker->arena, text_get(&text), text.length);
    word.length = (uint32_t)text.length;
    return word;
}

// The term with the index at its place, and names of no meaning elsewhere.
static Node *size_term(const Parts *parts, const Use *use, const Word *index) {
    Arena *arena = parts->checker->arena;
    size_t count = use->term->as.index.count;
    Node *term = arena_allocate(arena, sizeof *term);
    Node *object = arena_allocate(arena, sizeof *object);
    *term = *use->term;
    *object = *use->term->as.index.object;
    term->as.index.object = object;
    term->as.index.subscripts = arena_allocate(arena, count * sizeof(Subscript));
    for (size_t i = 0; i < count; i++) {
        Node *name = arena_allocate(arena, sizeof *name);
        char more[] = {(char)('1' + i % 8), '\0'};
        *name = (Node){.kind = NODE_NAME, .span = term->span, .height = 1};
        name->as.name.word = i == use->term_place ? *index : word_made(parts, index, more);
        term->as.index.subscripts[i] =
            (Subscript){.kind = SUBSCRIPT_INDEX, .index = name, .span = term->span};
    }
    return term;
}

typedef struct Standing {
    const Parts *parts;
    const Word *index;
    bool alone, in_brackets;
} Standing;

static void note_word(void *context, Node *node) {
    Standing *standing = context;
    standing->in_brackets |=
        node->kind == NODE_NAME && same_word(&node->as.name.word, standing->index);
}

static void note_standing(void *context, Node *term) {
    Standing *standing = context;
    if (term->kind == NODE_NAME) standing->alone |= same_word(&term->as.name.word, standing->index);
    for (size_t i = 0; term->kind == NODE_INDEX && i < term->as.index.count; i++)
        walk_node(&(Walker){.context = standing, .node = note_word},
                  term->as.index.subscripts[i].index);
}

static void add_sizes(const Parts *parts, size_t equation) {
    Node *node = parts->equations[equation];
    const Node *target = node->as.assign.target;
    size_t count = target->kind == NODE_INDEX ? target->as.index.count : 0;
    NodeList *sizes = &node->as.assign.sizes;
    for (size_t i = 0; i < count; i++) {
        const Word *index = index_at(parts, target, i);
        Standing standing = {parts, index, false, false};
        if (index) each_term(node->as.assign.value, note_standing, &standing);
        if (!standing.alone || standing.in_brackets) continue;
        bool seen[parts->count];
        memset(seen, 0, sizeof seen);
        int origin = target_of(parts, equation);
        Use use = {.parts = parts, .origin = origin, .name = origin, .place = i};
        if (!find_size(&use, seen)) continue;
        if (!sizes->items)
            sizes->items = arena_allocate(parts->checker->arena, count * sizeof(Node *));
        sizes->items[sizes->count++] = size_term(parts, &use, index);
    }
}

// --- updates

typedef struct Reading {
    const Parts *parts;
    const Node *target; // of the update
    int name;
    bool same;          // a term has the target's own indexes
    const Word *before; // that takes the place of the name in terms of the same step, or NULL
} Reading;

static void note_same(void *context, Node *term) {
    Reading *reading = context;
    const Node *target = reading->target;
    if (term->kind != NODE_INDEX || name_of(reading->parts, term) != reading->name) return;
    bool same = term->as.index.count == target->as.index.count;
    for (size_t i = 0; same && i < term->as.index.count; i++)
        same = same_word(index_at(reading->parts, term, i), index_at(reading->parts, target, i));
    reading->same |= same;
}

static bool is_update(const Parts *parts, size_t equation) {
    const Node *node = parts->equations[equation];
    Reading reading = {parts, node->as.assign.target, target_of(parts, equation), false, NULL};
    if (!is_at_step(parts, node->as.assign.target, reading.name)) return false;
    each_term(node->as.assign.value, note_same, &reading);
    return reading.same;
}

static void take_word(Word *word, const Word *other) {
    word->text = other->text;
    word->length = other->length;
}

static void rename_term(void *context, Node *term) {
    const Reading *reading = context;
    if (term->kind == NODE_INDEX && name_of(reading->parts, term) == reading->name &&
        is_at_step(reading->parts, term, reading->name))
        take_word(word_of(term), reading->before);
}

static void make_update(const Parts *parts, size_t update) {
    ProgramNode *program = parts->program;
    int name = target_of(parts, update);
    const bool *needed = find_needed(parts, update, name);
    int before = (int)program->name_count++;
    program->names[before] = word_made(parts, &program->names[name], "before its update");
    program->growing[before] = program->growing[name];
    program->before[before] = -1;
    program->before[name] = before;
    Reading reading = {parts, NULL, name, false, &program->names[before]};
    for (size_t i = 0; i < parts->count; i++) {
        Node *equation = parts->equations[i];
        int target = target_of(parts, i);
        if (i == update || (needed[target] && is_of_its_step(parts, i)))
            each_term(equation->as.assign.value, rename_term, &reading);
        if (i != update && target == name)
            take_word(word_of(equation->as.assign.target), reading.before);
    }
}

// --- tensors made of those that go on

typedef struct Growth {
    const Parts *parts;
    const Word *index;
    bool grows, fixed; // it stands where a tensor goes on, and elsewhere
} Growth;

static void note_growth(void *context, Node *term) {
    Growth *growth = context;
    const Parts *parts = growth->parts;
    int name = name_of(parts, term);
    for (size_t i = 0; term->kind == NODE_INDEX && i < term->as.index.count; i++) {
        Standing standing = {parts, growth->index, false, false};
        walk_node(&(Walker){.context = &standing, .node = note_word},
                  term->as.index.subscripts[i].index);
        bool open = name >= 0 && parts->program->growing[name] >> i & 1 && index_at(parts, term, i);
        growth->grows |= standing.in_brackets && open;
        growth->fixed |= standing.in_brackets && !open;
    }
}

// Where nothing else says how large an index is, what is made of a tensor that goes on does too.
static bool pass_growth(const Parts *parts, size_t equation) {
    const Node *target = parts->equations[equation]->as.assign.target;
    uint32_t *growing = &parts->program->growing[target_of(parts, equation)], before = *growing;
    for (size_t i = 0; i < RANK_MAX; i++) {
        Growth growth = {parts, index_at(parts, target, i), false, false};
        if (!growth.index) continue;
        each_term(parts->equations[equation]->as.assign.value, note_growth, &growth);
        if (growth.grows && !growth.fixed) *growing |= 1u << i;
    }
    return *growing != before;
}

void check_program_parts(Checker *checker, ProgramNode *program, Node **equations, size_t count) {
    Parts parts = {checker, program, equations, count};
    for (size_t i = 0; i < count; i++) equation_take_atoms(checker, equations[i]->as.assign.value);
    for (size_t i = 0; i < count; i++) shift_equation(&parts, i);
    for (size_t i = 0; i < count; i++)
        program->growing[target_of(&parts, i)] |= parts_given(equations[i]->as.assign.target);
    for (size_t i = 0; i < count; i++) add_sizes(&parts, i);
    int updated[count + 1];
    for (size_t i = 0; i < count; i++) {
        updated[i] = is_update(&parts, i) ? target_of(&parts, i) : -1;
        for (size_t j = 0; j < i && updated[i] >= 0; j++) {
            if (updated[j] != updated[i]) continue;
            report(checker, STATUS_SYNTAX, equations[i]->span,
                   &(ReportExtra){.help = "give what lies between them a name of its own",
                                  .note = "the other one is here",
                                  .note_span = equations[j]->span},
                   "two equations update %s, and none of them comes first",
                   program->names[updated[i]].text);
            return;
        }
    }
    for (size_t i = 0; i < count; i++)
        if (updated[i] >= 0) make_update(&parts, i);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < count; i++) changed |= pass_growth(&parts, i);
    }
}
