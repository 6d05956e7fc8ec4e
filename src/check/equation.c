// Tensor equations: which assignments are equations, and which of their names are indexes. An
// equation becomes an assignment to the name on its left (or, where that has constants and slices,
// to those elements) of a NODE_EQUATION.
#include "check/equation_checker.h"
#include "check/logic_checker.h"

typedef struct Names {
    Word *items;
    size_t count;
} Names;

static bool names_have(const Names *names, const Word *word) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i].text, word->text) == 0) return true;
    return false;
}

static void names_add(Checker *checker, Names *names, const Word *word) {
    if (names_have(names, word)) return;
    ASSERT(word->text != NULL);
    Word *items = arena_allocate(checker->arena, (names->count + 1) * sizeof *items);
    if (names->count > 0) memcpy(items, names->items, names->count * sizeof *items);
    items[names->count++] = *word;
    names->items = items;
}

// What a name has a value by, or NULL: such a name is not an index.
static Binding *bound(Checker *checker, const Word *word) {
    Binding *binding = name_resolve(checker, word);
    bool value = binding && (binding_is_variable(binding) || binding->kind == BINDING_DIMENSION);
    return value ? binding : NULL;
}

// Calls the function for each name of an expression that could be arithmetic on indexes. The
// context begins with the checker.
typedef void NameVisit(void *context, Node *name);
static void each_name(Node *node, NameVisit *visit, void *context) {
    if (!node) return;
    if (node->kind == NODE_NAME) visit(context, node);
    if (node->kind != NODE_BINARY && node->kind != NODE_UNARY) return;
    each_name(node->as.binary.left, visit, context);
    if (node->kind != NODE_BINARY) return;
    Node *right = node->as.binary.right;
    bool divisor = node->op == OPERATOR_DIV && right->kind == NODE_NAME;
    if (divisor && bound(*(Checker **)context, &right->as.name.word)) return; // x/S
    each_name(right, visit, context);
}

// Names of entities are places, not indexes.
static void each_index_name(const Node *index, NameVisit *visit, void *context) {
    Checker *checker = *(Checker **)context;
    ASSERT(index->kind == NODE_INDEX);
    for (size_t i = 0; i < index->as.index.count; i++) {
        Node *place = index->as.index.subscripts[i].index;
        if (!logic_is_place(checker, index->as.index.object, place, i))
            each_name(place, visit, context);
    }
}

// Calls the function for each x[...] of an expression, and for each name that stands outside them.
typedef struct Visitor {
    void (*index)(void *context, Node *index);
    NameVisit *name;              // or NULL
    void (*callee)(Node *callee); // of a call, or NULL
    void *context;
} Visitor;
static void visit_value(const Visitor *visitor, Node *node) {
    switch (node->kind) {
    case NODE_INDEX: visitor->index(visitor->context, node); break;
    case NODE_NAME:
        if (visitor->name) visitor->name(visitor->context, node);
        break;
    case NODE_UNARY: visit_value(visitor, node->as.binary.left); break;
    case NODE_BINARY:
        visit_value(visitor, node->as.binary.left);
        visit_value(visitor, node->as.binary.right);
        break;
    case NODE_CALL:
        if (node->as.call.callee->kind == NODE_INDEX) visit_value(visitor, node->as.call.callee);
        if (visitor->callee) visitor->callee(node->as.call.callee);
        for (size_t i = 0; i < node->as.call.count; i++)
            visit_value(visitor, node->as.call.arguments[i].value);
        break;
    case NODE_METHOD_CALL:
        visit_value(visitor, node->as.method.receiver);
        for (size_t i = 0; i < node->as.method.count; i++)
            visit_value(visitor, node->as.method.arguments[i].value);
        break;
    case NODE_CAST: visit_value(visitor, node->as.cast.value); break;
    case NODE_IF: visit_value(visitor, node->as.branch.condition); break;
    default: break;
    }
}

// The right side, and the terms that only say how large an index is.
static void visit_sides(const Visitor *visitor, const Node *node) {
    ASSERT(node->kind == NODE_ASSIGN);
    visit_value(visitor, node->as.assign.value);
    for (size_t i = 0; i < node->as.assign.sizes.count; i++)
        visit_value(visitor, node->as.assign.sizes.items[i]);
}

// --- whether it is an equation

typedef struct Sides {
    Checker *checker;
    Names unbound, taken; // names of the left side without and with a value
    Names right;          // in the brackets of the right side
    bool joins;           // concat(x): an index of the left side may be missing on the right
} Sides;

static void note_left(void *context, Node *name) {
    Sides *sides = context;
    const Word *word = &name->as.name.word;
    names_add(sides->checker, bound(sides->checker, word) ? &sides->taken : &sides->unbound, word);
}

static void note_right_name(void *context, Node *name) {
    Sides *sides = context;
    names_add(sides->checker, &sides->right, &name->as.name.word);
}

static void note_right(void *context, Node *index) {
    each_index_name(index, note_right_name, context);
}

static bool is_called(const Node *node, const char *name) {
    return node->kind == NODE_CALL && node->as.call.callee->kind == NODE_NAME &&
           strcmp(node->as.call.callee->as.name.word.text, name) == 0;
}

static bool has_concat(const Node *node) {
    if (is_called(node, "concat")) return true;
    if (node->kind == NODE_BINARY && has_concat(node->as.binary.right)) return true;
    if (node->kind == NODE_BINARY || node->kind == NODE_UNARY)
        return has_concat(node->as.binary.left);
    bool found = false;
    for (size_t i = 0; node->kind == NODE_CALL && i < node->as.call.count; i++)
        found |= has_concat(node->as.call.arguments[i].value);
    return found;
}

// Even(d) among the factors is what Even[d] is.
void equation_take_atoms(Checker *checker, Node *node) {
    if (node->kind == NODE_UNARY || node->kind == NODE_BINARY)
        equation_take_atoms(checker, node->as.binary.left);
    if (node->kind == NODE_BINARY) equation_take_atoms(checker, node->as.binary.right);
    if (node->kind != NODE_CALL) return;
    size_t count = node->as.call.count;
    const Argument *arguments = node->as.call.arguments;
    if (!logic_relation(checker, node) || count == 0) {
        for (size_t i = 0; i < count; i++) equation_take_atoms(checker, arguments[i].value);
        return;
    }
    Node *object = node->as.call.callee;
    Subscript *subscripts = arena_allocate(checker->arena, count * sizeof *subscripts);
    for (size_t i = 0; i < count; i++)
        subscripts[i] = (Subscript){
            .kind = SUBSCRIPT_INDEX, .index = arguments[i].value, .span = arguments[i].value->span};
    node->kind = NODE_INDEX;
    node->as.index.object = object;
    node->as.index.subscripts = subscripts;
    node->as.index.count = count;
    node->as.index.grows = 0;
}

static Node *name_of(Checker *checker, Word word) {
    Node *name = arena_allocate(checker->arena, sizeof *name);
    *name = (Node){.kind = NODE_NAME, .span = word.span, .height = 1};
    name->as.name.word = word;
    return name;
}

// fn(x) { x as float16 }
static Node *cast_function(Checker *checker, const Node *cast) {
    ASSERT(cast->kind == NODE_CAST);
    Word word = {.text = "x", .length = 1, .span = cast->span};
    FunctionNode *function = arena_allocate(checker->arena, sizeof *function);
    *function = (FunctionNode){.what = "an equation", .parameter_count = 1, .head = cast->span};
    function->parameters = arena_allocate(checker->arena, sizeof *function->parameters);
    function->parameters[0] = (Parameter){.name = word};
    Node *body = function->body = arena_allocate(checker->arena, sizeof *body);
    *body = *cast;
    body->as.cast.value = name_of(checker, word);
    Node *lambda = arena_allocate(checker->arena, sizeof *lambda);
    *lambda = (Node){.kind = NODE_LAMBDA, .span = cast->span, .height = cast->height};
    lambda->as.function = function;
    return lambda;
}

static void make_call(Node *node, Node *callee, Argument *arguments, size_t count) {
    ASSERT(node->kind == NODE_CAST || node->kind == NODE_METHOD_CALL);
    *node = (Node){.kind = NODE_CALL, .span = node->span, .height = node->height};
    node->as.call.callee = callee;
    node->as.call.arguments = arguments;
    node->as.call.count = count;
}

// X[i] as float16 and X[i].relu() are calls of functions, which go element by element.
static bool take_calls(Checker *checker, Node *node) {
    bool fits = true;
    if (node->kind == NODE_CAST) {
        Argument *argument = arena_allocate(checker->arena, sizeof *argument);
        *argument = (Argument){.value = node->as.cast.value};
        make_call(node, cast_function(checker, node), argument, 1);
    } else if (node->kind == NODE_METHOD_CALL) {
        size_t count = node->as.method.count + 1;
        Argument *arguments = arena_allocate(checker->arena, count * sizeof *arguments);
        arguments[0] = (Argument){.value = node->as.method.receiver};
        for (size_t i = 1; i < count; i++) arguments[i] = node->as.method.arguments[i - 1];
        make_call(node, name_of(checker, node->as.method.name), arguments, count);
    } else if (node->kind == NODE_IF) {
        report(checker, STATUS_SYNTAX, node->span,
               &(ReportExtra){.help = "where(X[i] > 0, X[i], 0) chooses element by element"},
               "an equation has no `if`");
        return false;
    }
    if (node->kind == NODE_UNARY || node->kind == NODE_BINARY)
        fits = take_calls(checker, node->as.binary.left);
    if (node->kind == NODE_BINARY) fits &= take_calls(checker, node->as.binary.right);
    for (size_t i = 0; node->kind == NODE_CALL && i < node->as.call.count; i++)
        fits &= take_calls(checker, node->as.call.arguments[i].value);
    return fits;
}

static Sides read_sides(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_ASSIGN);
    Sides sides = {.checker = checker};
    Node *target = node->as.assign.target;
    equation_take_atoms(checker, node->as.assign.value);
    if (target->kind == NODE_INDEX) each_index_name(target, note_left, &sides);
    Visitor visitor = {.index = note_right, .context = &sides};
    visit_sides(&visitor, node);
    sides.joins = has_concat(node->as.assign.value);
    return sides;
}

static bool report_mixture(Checker *checker, const Node *node, const Sides *sides) {
    ASSERT(sides->taken.count > 0 && sides->unbound.count > 0);
    const Word *with = &sides->taken.items[0], *without = &sides->unbound.items[0];
    const Binding *binding = bound(checker, with);
    SCOPED_TEXT(help);
    text_format(&help,
                "an equation has only free names on its left side: rename `%s`, or write `<-`",
                with->text);
    ReportExtra extra = {.help = text_get(&help), .note_span = binding->word.span};
    if (binding->word.span.begin) extra.note = "the variable is here";
    report(checker, STATUS_NAME, node->as.assign.target->span, &extra,
           "`%s` is a variable and `%s` is not: this is neither an equation nor the store of an "
           "element",
           with->text, without->text);
    return false;
}

// The names of the left side that the right side lacks.
static size_t count_missing(const Sides *sides, const Word **missing) {
    size_t count = 0;
    for (size_t i = 0; i < sides->unbound.count; i++) {
        if (names_have(&sides->right, &sides->unbound.items[i])) continue;
        *missing = &sides->unbound.items[i];
        count++;
    }
    return count;
}

void report_adjacent(Checker *checker, const Node *node) {
    if (node->kind == NODE_BINARY) {
        report_adjacent(checker, node->as.binary.left);
        report_adjacent(checker, node->as.binary.right);
        if (node->op != OPERATOR_MUL || node->op_span.end > node->op_span.begin) return;
        ReportExtra extra = {.help = "write `*` between them"};
        report(checker, STATUS_SYNTAX, node->as.binary.right->span, &extra,
               "factors stand side by side only in an equation, and no index of the left side is "
               "a free name");
    } else if (node->kind == NODE_UNARY) {
        report_adjacent(checker, node->as.binary.left);
    }
}

// Whether it is an equation whatever its names mean.
static bool is_open(const Node *node) {
    ASSERT(node->kind == NODE_ASSIGN);
    return node->as.assign.arrow || node->as.assign.projection != PROJECTION_NONE;
}

bool equation_begins(Checker *checker, Node *node) {
    if (node->kind != NODE_ASSIGN) return false;
    const Node *target = node->as.assign.target;
    if (is_open(node)) return true;
    if (target->kind != NODE_INDEX || target->as.index.object->kind != NODE_NAME) return false;
    if (node->op != OPERATOR_NONE && node->op != OPERATOR_ADD) return false;
    Sides sides = read_sides(checker, node);
    const Word *missing = NULL;
    size_t missing_count = count_missing(&sides, &missing);
    bool equation = sides.unbound.count > 0 && missing_count < sides.unbound.count;
    return equation || (sides.unbound.count > 0 && sides.joins);
}

// --- the indexes of an equation

typedef struct Marking {
    Checker *checker;
    Names indexes;
    const Node *target; // or NULL
    bool program;       // of a program block
} Marking;

static bool is_index(const Marking *marking, const Word *word) {
    return names_have(&marking->indexes, word);
}

// A program block may be asked when variables have values that come behind it in the text; as
// names in brackets they are indexes all the same.
static bool is_later(const Binding *binding, const Word *word) {
    return binding->kind == BINDING_GLOBAL && binding->word.span.begin > word->span.begin;
}

bool equation_is_free(Checker *checker, const Word *word, bool program) {
    const Binding *binding = bound(checker, word);
    return !binding || (program && is_later(binding, word));
}

static void note_index(void *context, Node *name) {
    Marking *marking = context;
    const Word *word = &name->as.name.word;
    if (equation_is_free(marking->checker, word, marking->program))
        names_add(marking->checker, &marking->indexes, word);
}

static void note_indexes(void *context, Node *index) {
    each_index_name(index, note_index, context);
}

static void mark_name(void *context, Node *name) {
    if (is_index(context, &name->as.name.word)) name->kind = NODE_POSITION;
}

static bool has_position(const Node *node) {
    if (node->kind == NODE_UNARY) return has_position(node->as.binary.left);
    if (node->kind == NODE_BINARY)
        return has_position(node->as.binary.left) || has_position(node->as.binary.right);
    return node->kind == NODE_POSITION;
}

// t+1 or *t on the left side, or t there and t-1 on the right: that is an earlier value.
static bool is_earlier(const Subscript *left, const Subscript *right) {
    if (left->kind != SUBSCRIPT_INDEX || right->kind != SUBSCRIPT_INDEX) return false;
    const Node *before = left->index, *after = right->index;
    if (!has_position(before) || !has_position(after)) return false;
    if (left->looped || (before->kind == NODE_BINARY && before->op == OPERATOR_ADD)) return true;
    if (before->kind != NODE_POSITION || after->kind != NODE_BINARY || after->op != OPERATOR_SUB ||
        after->as.binary.left->kind != NODE_POSITION)
        return false;
    return strcmp(before->as.name.word.text, after->as.binary.left->as.name.word.text) == 0;
}

static void mark_index(void *context, Node *index) {
    ASSERT(index->kind == NODE_INDEX);
    each_index_name(index, mark_name, context);
    const Marking *marking = context;
    const Node *target = marking->target, *object = index->as.index.object;
    if (!target || index == target || object->kind != NODE_NAME ||
        strcmp(object->as.name.word.text, target->as.index.object->as.name.word.text) != 0)
        return;
    for (size_t i = 0; i < target->as.index.count && i < index->as.index.count; i++)
        if ((!marking->program || target->as.index.subscripts[i].looped) &&
            is_earlier(&target->as.index.subscripts[i], &index->as.index.subscripts[i]))
            index->as.index.object->kind = NODE_POSITION;
}

// The word of sum[j](x) is not a name that has to mean something.
static void mark_callee(Node *callee) {
    if (callee->kind != NODE_INDEX || callee->as.index.object->kind != NODE_NAME) return;
    for (size_t i = 0; i < callee->as.index.count; i++) {
        const Node *index = callee->as.index.subscripts[i].index;
        if (index && index->kind == NODE_POSITION) callee->as.index.object->kind = NODE_POSITION;
    }
}

static Node *name_node(Checker *checker, const Node *like) {
    ASSERT(like->kind == NODE_NAME || like->kind == NODE_POSITION);
    Node *node = name_of(checker, like->as.name.word);
    node->span = like->span;
    return node;
}

// Whether the left side names elements of a tensor that exists already, by numbers or slices.
static bool stores_part(const Node *target) {
    ASSERT(target->kind == NODE_INDEX);
    for (size_t i = 0; i < target->as.index.count; i++) {
        const Subscript *subscript = &target->as.index.subscripts[i];
        if (subscript->kind != SUBSCRIPT_INDEX || !has_position(subscript->index)) return true;
    }
    return false;
}

// In the element store that an equation becomes, an index stands for its whole dimension.
static Node *part_target(Checker *checker, const Node *target) {
    ASSERT(target->kind == NODE_INDEX);
    Node *node = arena_allocate(checker->arena, sizeof *node);
    *node = *target;
    size_t count = target->as.index.count;
    node->as.index.subscripts = arena_allocate(checker->arena, count * sizeof(Subscript));
    for (size_t i = 0; i < count; i++) {
        const Subscript *subscript = &target->as.index.subscripts[i];
        node->as.index.subscripts[i] = *subscript;
        if (subscript->kind == SUBSCRIPT_INDEX && has_position(subscript->index))
            node->as.index.subscripts[i] =
                (Subscript){.kind = SUBSCRIPT_SLICE, .span = subscript->span};
    }
    return node;
}

// Marks what is an index on both sides.
static void mark_indexes(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_ASSIGN);
    Node *target = node->as.assign.target;
    Sides sides = read_sides(checker, node);
    Marking marking = {.checker = checker,
                       .indexes = sides.unbound,
                       .target = target->kind == NODE_INDEX ? target : NULL,
                       .program = node->as.assign.program};
    for (size_t i = 0; is_open(node) && i < sides.taken.count; i++)
        names_add(checker, &marking.indexes, &sides.taken.items[i]);
    Visitor notes = {.index = note_indexes, .context = &marking};
    Visitor marks = {mark_index, mark_name, mark_callee, &marking};
    visit_sides(&notes, node);
    if (target->kind == NODE_INDEX) mark_index(&marking, target);
    visit_sides(&marks, node);
}

static bool sides_fit(Checker *checker, Node *node) {
    Sides sides = read_sides(checker, node);
    const Word *missing = NULL;
    if (!is_open(node) && sides.taken.count > 0) return report_mixture(checker, node, &sides);
    size_t count = count_missing(&sides, &missing);
    if (count <= sides.joins) return true;
    ReportExtra extra = {.help = "an index gets its size from the brackets in which it stands"};
    report(checker, STATUS_NAME, missing->span, &extra,
           "index `%s` is in no brackets of the right side", missing->text);
    return false;
}

// The numbers of index arithmetic; elements and slices are checked as those of an element store.
static void check_left(Checker *checker, const Node *target) {
    ASSERT(target->kind == NODE_INDEX);
    for (size_t i = 0; i < target->as.index.count; i++) {
        Node *index = target->as.index.subscripts[i].index;
        if (index && has_position(index)) check_expression(checker, index);
    }
}

bool equation_normalises(const Equation *equation, const EquationNode *node) {
    bool found = false;
    if (node->kind == EQUATION_CALL) {
        const Node *callee = equation->values.items[node->number];
        const Binding *binding = callee->kind == NODE_NAME ? callee->as.name.binding : NULL;
        found = !binding || binding->kind != BINDING_BUILTIN ||
                strcmp(binding->builtin->section, "Elementwise") != 0;
    }
    for (size_t i = 0; i < node->count; i++) found |= equation_normalises(equation, node->parts[i]);
    return found;
}

void check_equation(Checker *checker, Node *node) {
    ASSERT(node->kind == NODE_ASSIGN);
    Node *target = node->as.assign.target, *value = node->as.assign.value;
    bool fits = take_calls(checker, value) && sides_fit(checker, node);
    if (fits) mark_indexes(checker, node);
    if (fits) check_expression(checker, value);
    for (size_t i = 0; fits && i < node->as.assign.sizes.count; i++)
        check_expression(checker, node->as.assign.sizes.items[i]);
    if (fits && target->kind == NODE_INDEX) check_left(checker, target);
    Node *equation = arena_allocate(checker->arena, sizeof *equation);
    *equation = (Node){.kind = NODE_EQUATION, .span = value->span, .height = value->height + 1};
    equation->as.equation.value = value;
    equation->as.equation.plan = fits ? equation_plan(checker, node) : NULL;
    node->as.assign.value = equation;
    node->op = OPERATOR_NONE;
    node->as.assign.define = true;
    if (target->kind != NODE_INDEX) return;
    if (fits && (stores_part(target) || logic_names_relation(checker, target->as.index.object))) {
        node->as.assign.target = part_target(checker, target);
        return;
    }
    node->as.assign.target = name_node(checker, target->as.index.object);
}
