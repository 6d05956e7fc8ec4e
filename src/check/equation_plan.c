// From the text of an equation to its plan: terms, values, the tree of what is done with them, and
// where sums stand.
#include "check/equation_checker.h"

#include <stdio.h>

typedef struct Planner {
    Checker *checker;
    Equation *equation;
    IndexSet lacking;  // indexes of the right side that the left side lacks
    const Node *value; // the right side
    bool failed;
} Planner;

static void *plan_array(Planner *planner, size_t count, size_t item_bytes) {
    return arena_allocate(planner->checker->arena, (count + 1) * item_bytes);
}

static void plan_fail(Planner *planner, Span span, const char *help, const char *message) {
    ReportExtra extra = {.help = help};
    if (!planner->failed) report(planner->checker, STATUS_SYNTAX, span, &extra, "%s", message);
    planner->failed = true;
}

const char *equation_text(Span span, char *buffer, size_t size) {
    ASSERT(size > 3);
    size_t length;
    const char *text = source_text(span, &length);
    bool fits = length < size && !memchr(text, '\n', length);
    snprintf(buffer, size, "%.*s", fits ? (int)length : 3, fits ? text : "...");
    return buffer;
}

static int add_index(Planner *planner, const Word *word, Span span) {
    Equation *equation = planner->equation;
    ASSERT(equation->name_count <= INDEXES_MAX);
    for (int i = 0; word && i < equation->name_count; i++)
        if (equation->names[i].text && strcmp(equation->names[i].text, word->text) == 0) return i;
    if (equation->name_count == INDEXES_MAX) {
        plan_fail(planner, span, "give a part of it a name of its own",
                  "an equation has at most 52 indexes");
        return 0;
    }
    equation->names[equation->name_count] = word ? *word : (Word){.span = span};
    return equation->name_count++;
}

static int add_value(Planner *planner, Node *node) {
    if (!node) return -1;
    NodeList *values = &planner->equation->values;
    Node **items = plan_array(planner, values->count + 1, sizeof *items);
    if (values->count > 0) memcpy(items, values->items, values->count * sizeof(Node *));
    items[values->count] = node;
    values->items = items;
    return (int)values->count++;
}

// Whether an index or a slice, which is one without a name, stands anywhere in the node.
static bool has_index(const Node *node) {
    switch (node->kind) {
    case NODE_POSITION: return true;
    case NODE_UNARY: return has_index(node->as.binary.left);
    case NODE_BINARY: return has_index(node->as.binary.left) || has_index(node->as.binary.right);
    case NODE_INDEX:
        for (size_t i = 0; i < node->as.index.count; i++) {
            const Subscript *subscript = &node->as.index.subscripts[i];
            if (subscript->kind == SUBSCRIPT_SLICE) return true;
            if (subscript->index && has_index(subscript->index)) return true;
        }
        return false;
    case NODE_CALL:
        for (size_t i = 0; i < node->as.call.count; i++)
            if (has_index(node->as.call.arguments[i].value)) return true;
        return node->as.call.callee->kind == NODE_INDEX && has_index(node->as.call.callee);
    default: return false;
    }
}

// --- positions

static void add_part(Planner *planner, Position *position, IndexPart part) {
    ASSERT(part.index < INDEXES_MAX);
    IndexPart *parts = plan_array(planner, position->count + 1, sizeof *parts);
    if (position->count > 0) memcpy(parts, position->parts, position->count * sizeof *parts);
    parts[position->count++] = part;
    position->parts = parts;
}

// The summands of 2*x + dx - 1.
static void add_parts(Planner *planner, Position *position, Node *node, bool negative) {
    if (!has_index(node)) {
        add_part(planner, position, (IndexPart){-1, add_value(planner, node), negative});
        return;
    }
    if (node->kind == NODE_POSITION) {
        int index = add_index(planner, &node->as.name.word, node->span);
        add_part(planner, position, (IndexPart){index, -1, negative});
        return;
    }
    if (node->kind == NODE_UNARY && node->op == OPERATOR_NEG) {
        add_parts(planner, position, node->as.binary.left, !negative);
        return;
    }
    Node *left = node->as.binary.left;
    Node *right = node->kind == NODE_BINARY ? node->as.binary.right : NULL;
    if (right && (node->op == OPERATOR_ADD || node->op == OPERATOR_SUB)) {
        add_parts(planner, position, left, negative);
        add_parts(planner, position, right, negative != (node->op == OPERATOR_SUB));
        return;
    }
    if (right && node->op == OPERATOR_MUL && right->kind == NODE_POSITION) {
        Node *swap = left;
        left = right;
        right = swap;
    }
    if (right && node->op == OPERATOR_MUL && left->kind == NODE_POSITION && !has_index(right)) {
        int index = add_index(planner, &left->as.name.word, left->span);
        add_part(planner, position, (IndexPart){index, add_value(planner, right), negative});
        return;
    }
    plan_fail(planner, node->span, "such as x+dx, 2*x-1 or (x+1)/2",
              "an index is a sum of indexes and numbers, multiplied or divided by numbers");
}

static Position plan_position(Planner *planner, const Subscript *subscript, int *slices) {
    ASSERT(subscript->kind <= SUBSCRIPT_ELLIPSIS);
    Position position = {.value = -1, .start = -1, .stop = -1, .step = -1, .divisor = -1};
    position.span = subscript->span;
    Node *node = subscript->index;
    if (subscript->kind == SUBSCRIPT_ELLIPSIS || (node && node->kind == NODE_NONE)) {
        plan_fail(planner, subscript->span, NULL, "an equation names each dimension by an index");
    } else if (subscript->kind == SUBSCRIPT_SLICE) {
        static const char *const numbers[] = {"1:", "2:", "3:", "4:", "5:", "6:", "7:", "8:"};
        Word word = {.text = numbers[*slices % 8], .length = 2, .span = subscript->span};
        position.kind = POSITION_SLICE;
        position.index = add_index(planner, &word, subscript->span);
        ++*slices;
        position.start = add_value(planner, subscript->start);
        position.stop = add_value(planner, subscript->stop);
        position.step = add_value(planner, subscript->step);
    } else if (subscript->looped) {
        position.kind = POSITION_STATE;
        add_parts(planner, &position, node, false);
    } else if (node->kind == NODE_POSITION) {
        position.kind = POSITION_INDEX;
        position.index = add_index(planner, &node->as.name.word, node->span);
    } else if (!has_index(node)) {
        position.kind = POSITION_VALUE;
        position.value = add_value(planner, node);
    } else {
        position.kind = POSITION_SUM;
        bool divides = node->kind == NODE_BINARY && node->op == OPERATOR_DIV &&
                       !has_index(node->as.binary.right);
        add_parts(planner, &position, divides ? node->as.binary.left : node, false);
        if (divides) position.divisor = add_value(planner, node->as.binary.right);
    }
    return position;
}

static IndexSet position_indexes(const Position *position) {
    ASSERT(position->count == 0 || position->parts != NULL);
    IndexSet set = 0;
    if (position->kind == POSITION_STATE) return 0;
    if (position->kind == POSITION_INDEX || position->kind == POSITION_SLICE)
        set = index_bit(position->index);
    for (size_t i = 0; i < position->count; i++)
        if (position->parts[i].index >= 0) set |= index_bit(position->parts[i].index);
    return set;
}

static Position *plan_positions(Planner *planner, const Node *node, IndexSet *indexes) {
    ASSERT(node->kind == NODE_INDEX);
    size_t count = node->as.index.count;
    Position *positions = plan_array(planner, count, sizeof *positions);
    int slices = 0;
    *indexes = 0;
    for (size_t i = 0; i < count; i++) {
        const Subscript *subscript = &node->as.index.subscripts[i];
        positions[i] = plan_position(planner, subscript, &slices);
        *indexes |= position_indexes(&positions[i]);
        if (subscript->dotted)
            plan_fail(planner, subscript->span, "only the left side of an equation has one",
                      "a dotted index says what the right side is normalised along");
    }
    return positions;
}

// --- the tree

// Whether a place of a program's own name, V[0], is a factor or a summand.
static bool has_own_place(const Node *node) {
    bool operates = node->op == OPERATOR_MUL || node->op == OPERATOR_DIV ||
                    node->op == OPERATOR_ADD || node->op == OPERATOR_SUB;
    if (node->kind == NODE_BINARY && operates)
        return has_own_place(node->as.binary.left) || has_own_place(node->as.binary.right);
    if (node->kind != NODE_INDEX || node->as.index.object->kind != NODE_NAME) return false;
    const Binding *binding = node->as.index.object->as.name.binding;
    return binding && binding->kind == BINDING_LOCAL;
}

// What is evaluated before the equation, as what has no index is: but a name of a program may have
// no value yet.
static bool is_value(const Planner *planner, const Node *node) {
    return !has_index(node) && !(planner->equation->program && has_own_place(node));
}

static EquationNode *plan_node(Planner *planner, Node *node);

static EquationNode *node_of(Planner *planner, enum EquationNodeKind kind, Span span,
                             size_t parts) {
    EquationNode *node = plan_array(planner, 1, sizeof *node);
    *node = (EquationNode){.span = span, .op = OPERATOR_NONE};
    node->kind = kind;
    node->parts = plan_array(planner, parts, sizeof(EquationNode *));
    node->divides = plan_array(planner, parts, sizeof(bool));
    return node;
}

// t+1 as the index and the number of a loop; false for other sums.
static bool read_offset(const Planner *planner, const Position *position, int *index, int *offset) {
    *index = -1;
    *offset = 0;
    for (size_t i = 0; i < position->count; i++) {
        const IndexPart *part = &position->parts[i];
        if (part->index >= 0) {
            if (*index >= 0 || part->factor >= 0 || part->negative) return false;
            *index = part->index;
            continue;
        }
        const Node *number = planner->equation->values.items[part->factor];
        if (number->kind != NODE_INT || number->as.integer > INDEXES_MAX) return false;
        *offset += part->negative ? -(int)number->as.integer : (int)number->as.integer;
    }
    if (position->kind == POSITION_INDEX) *index = position->index;
    return *index >= 0 && position->divisor < 0;
}

static void fail_state(Planner *planner, Span span) {
    plan_fail(planner, span, "as in X[t+1, i] = f(X[t, i]) and H[i, *t+1] = f(H[i, *t])",
              "this is not a value that the left side has had before");
}

// A term that is an earlier value of the left side.
static void plan_state(Planner *planner, EquationTerm *term) {
    const EquationLoop *loop = &planner->equation->loop;
    int index = -1, offset = 0;
    ASSERT(term->count > 0);
    term->object = loop->start;
    if (loop->index < 0) { // the left side goes on along none, as where a comma is missing
        fail_state(planner, term->span);
        return;
    }
    bool same = term->count == planner->equation->left_count;
    Position *position = &term->positions[same ? loop->dim : 0];
    if (same && read_offset(planner, position, &index, &offset) && index == loop->index)
        term->lag = loop->offset - offset;
    position->kind = POSITION_STATE;
    if (term->lag > planner->equation->loop.rows && loop->kept)
        planner->equation->loop.rows = term->lag;
    if (term->lag >= 1 && (loop->kept || term->lag == 1)) return;
    fail_state(planner, term->span);
    term->lag = 1;
}

static EquationNode *plan_term(Planner *planner, const Node *node) {
    Equation *equation = planner->equation;
    EquationNode *result = node_of(planner, EQUATION_TERM, node->span, 0);
    EquationTerm *terms = plan_array(planner, equation->term_count + 1, sizeof *terms);
    if (equation->term_count > 0)
        memcpy(terms, equation->terms, equation->term_count * sizeof *terms);
    EquationTerm *term = &terms[equation->term_count];
    *term = (EquationTerm){
        .span = node->span, .count = node->as.index.count, .grows = node->as.index.grows};
    term->positions = plan_positions(planner, node, &term->indexes);
    if (node->as.index.object->kind == NODE_POSITION)
        plan_state(planner, term);
    else
        term->object = add_value(planner, node->as.index.object);
    for (size_t i = 0; i < term->count; i++)
        term->rank +=
            term->positions[i].kind != POSITION_STATE || (term->lag > 0 && equation->loop.kept);
    term->indexes = 0;
    for (size_t i = 0; i < term->count; i++) term->indexes |= position_indexes(&term->positions[i]);
    equation->terms = terms;
    result->number = (int)equation->term_count++;
    result->indexes = term->indexes;
    return result;
}

static void add_factor(Planner *planner, EquationNode *product, Node *node, bool divides) {
    ASSERT(product->kind == EQUATION_PRODUCT);
    bool nested = node->kind == NODE_BINARY &&
                  (node->op == OPERATOR_MUL || (node->op == OPERATOR_DIV && !divides));
    if (nested && !divides && !is_value(planner, node)) {
        add_factor(planner, product, node->as.binary.left, false);
        add_factor(planner, product, node->as.binary.right, node->op == OPERATOR_DIV);
        return;
    }
    size_t count = product->count++;
    EquationNode **parts = plan_array(planner, count + 1, sizeof(EquationNode *));
    bool *flags = plan_array(planner, count + 1, sizeof(bool));
    if (count > 0) memcpy(parts, product->parts, count * sizeof(EquationNode *));
    if (count > 0) memcpy(flags, product->divides, count * sizeof(bool));
    parts[count] = plan_node(planner, node);
    flags[count] = divides;
    product->parts = parts;
    product->divides = flags;
    product->indexes |= parts[count]->indexes;
}

static EquationNode *plan_operator(Planner *planner, Node *node) {
    ASSERT(node->kind == NODE_BINARY || node->kind == NODE_UNARY);
    size_t count = node->kind == NODE_BINARY ? 2 : 1;
    EquationNode *result = node_of(planner, EQUATION_OPERATOR, node->span, count);
    result->op = node->op;
    result->count = count;
    Node *sides[] = {node->as.binary.left, node->as.binary.right};
    for (size_t i = 0; i < count; i++) {
        result->parts[i] = plan_node(planner, sides[i]);
        result->indexes |= result->parts[i]->indexes;
    }
    if (node->op == OPERATOR_MATMUL || node->op == OPERATOR_OUTER)
        plan_fail(planner, node->op_span, "write A[i, j] B[j, k]: shared indexes are joined",
                  "an equation multiplies by `*` or side by side");
    if (node->op == OPERATOR_IN || node->op == OPERATOR_NOT_IN)
        plan_fail(planner, node->op_span, NULL, "`in` does not stand between terms of an equation");
    return result;
}

// sum[j](x), max[j, k](x), avg[j](x)
static EquationNode *plan_reduction(Planner *planner, Node *node) {
    static const struct {
        const char *word;
        Projection reduction;
    } words[] = {{"sum", PROJECTION_SUM},
                 {"max", PROJECTION_MAX},
                 {"min", PROJECTION_MIN},
                 {"avg", PROJECTION_AVG}};
    const Node *callee = node->as.call.callee;
    const char *word = callee->as.index.object->kind == NODE_POSITION
                           ? callee->as.index.object->as.name.word.text
                           : "";
    EquationNode *result = node_of(planner, EQUATION_PRODUCT, node->span, 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(word, words[i].word) == 0) result->reduction = words[i].reduction;
    if (result->reduction == PROJECTION_NONE || node->as.call.count != 1) {
        plan_fail(planner, node->span, "they are written sum[j](A[i, j] B[j])",
                  "sum, max, min and avg take indexes in brackets, and one argument");
        return result;
    }
    result->count = 1;
    result->parts[0] = plan_node(planner, node->as.call.arguments[0].value);
    for (size_t i = 0; i < callee->as.index.count; i++) {
        const Subscript *subscript = &callee->as.index.subscripts[i];
        if (subscript->kind != SUBSCRIPT_INDEX || subscript->index->kind != NODE_POSITION) {
            plan_fail(planner, subscript->span, NULL, "this is not an index of the equation");
            continue;
        }
        int index = add_index(planner, &subscript->index->as.name.word, subscript->span);
        result->reduced |= index_bit(index);
        if (!(result->parts[0]->indexes & index_bit(index)))
            plan_fail(planner, subscript->span, NULL, "this index does not occur in the argument");
    }
    result->indexes = result->parts[0]->indexes & ~result->reduced;
    return result;
}

// The one name of the left side that stands for all those joined.
static EquationNode *plan_concat(Planner *planner, Node *node) {
    ASSERT(node->as.call.count == 1);
    EquationNode *result = node_of(planner, EQUATION_CONCAT, node->span, 1);
    result->count = 1;
    EquationNode *part = result->parts[0] = plan_node(planner, node->as.call.arguments[0].value);
    result->reduced = part->indexes & ~planner->equation->left_indexes;
    IndexSet missing = planner->equation->left_indexes & ~part->indexes;
    if (!result->reduced || !missing || (missing & (missing - 1))) {
        plan_fail(planner, node->span, "as in Y[b, d] = concat(X[b, h, k])",
                  "concat joins the indexes that the left side lacks as one that the right side "
                  "lacks");
        return result;
    }
    while (!(missing >> result->number & 1)) result->number++;
    result->indexes = (part->indexes & ~result->reduced) | missing;
    return result;
}

static EquationNode *plan_call(Planner *planner, Node *node) {
    ASSERT(node->kind == NODE_CALL);
    const Node *callee = node->as.call.callee;
    if (callee->kind == NODE_INDEX) return plan_reduction(planner, node);
    bool named = callee->kind == NODE_NAME;
    if (named && strcmp(callee->as.name.word.text, "concat") == 0 && node->as.call.count == 1)
        return plan_concat(planner, node);
    EquationNode *result = node_of(planner, EQUATION_CALL, node->span, node->as.call.count);
    result->names = node->as.call.arguments;
    result->count = node->as.call.count;
    result->number = add_value(planner, node->as.call.callee);
    for (size_t i = 0; i < result->count; i++) {
        result->parts[i] = plan_node(planner, node->as.call.arguments[i].value);
        result->indexes |= result->parts[i]->indexes;
    }
    return result;
}

static EquationNode *plan_node(Planner *planner, Node *node) {
    if (is_value(planner, node)) {
        EquationNode *value = node_of(planner, EQUATION_VALUE, node->span, 0);
        value->number = add_value(planner, node);
        return value;
    }
    EquationNode *result;
    switch (node->kind) {
    case NODE_POSITION:
        result = node_of(planner, EQUATION_POSITION, node->span, 0);
        result->number = add_index(planner, &node->as.name.word, node->span);
        result->indexes = index_bit(result->number);
        return result;
    case NODE_INDEX: return plan_term(planner, node);
    case NODE_CALL: return plan_call(planner, node);
    default: break;
    }
    if (node->kind == NODE_BINARY && (node->op == OPERATOR_MUL || node->op == OPERATOR_DIV)) {
        result = node_of(planner, EQUATION_PRODUCT, node->span, 0);
        add_factor(planner, result, node, false);
        return result;
    }
    return plan_operator(planner, node);
}

// --- where sums stand

// Whether what is raised to a power is a product or a call, which sum inside it. A sum, a
// difference or a term alone is summed outside: (x[i] - y[i]) ** 2 and x[i] ** 2 are sums of
// squares. A power of a power is one power.
static bool sums_inside(const EquationNode *base) {
    while (base->kind == EQUATION_OPERATOR &&
           (base->op == OPERATOR_NEG || base->op == OPERATOR_POW))
        base = base->parts[0];
    return base->kind == EQUATION_PRODUCT || base->kind == EQUATION_CALL;
}

// Sums an index at the smallest product that holds all its occurrences in a term.
static void place_sum(EquationNode *node, IndexSet index) {
    ASSERT(index != 0);
    if (!(node->indexes & index)) return;
    node->indexes &= ~index;
    bool each =
        node->kind == EQUATION_OPERATOR && (node->op == OPERATOR_ADD || node->op == OPERATOR_SUB);
    EquationNode *only = NULL;
    size_t holders = 0;
    for (size_t i = 0; i < node->count; i++) {
        if (!(node->parts[i]->indexes & index)) continue;
        only = node->parts[i];
        holders++;
        if (each) place_sum(only, index);
    }
    if (each) return;
    bool squared = node->kind == EQUATION_OPERATOR && node->op == OPERATOR_POW &&
                   only == node->parts[0] && !sums_inside(only);
    if (holders == 1 && !squared && node->kind != EQUATION_CONCAT)
        place_sum(only, index);
    else
        node->reduced |= index;
}

static void place_sums(Planner *planner, Projection projection) {
    Equation *equation = planner->equation;
    EquationNode *root = equation->value;
    IndexSet loop = equation->loop.index < 0 ? 0 : index_bit(equation->loop.index);
    IndexSet lacking = root->indexes & ~equation->left_indexes & ~loop;
    if (lacking && projection > PROJECTION_SUM) {
        EquationNode *whole = node_of(planner, EQUATION_PRODUCT, root->span, 1);
        whole->count = 1;
        whole->parts[0] = root;
        whole->reduced = lacking;
        whole->reduction = projection;
        whole->indexes = root->indexes & ~lacking;
        equation->value = whole;
        return;
    }
    for (int i = 0; i < equation->name_count; i++)
        if (lacking >> i & 1) place_sum(root, index_bit(i));
}

// --- the left side

// What the left side of a loop is before it: a variable that has a value by then.
static int plan_start(Planner *planner, const Node *target) {
    Checker *checker = planner->checker;
    ASSERT(target->kind == NODE_INDEX);
    const Word *word = &target->as.index.object->as.name.word;
    if (planner->equation->program || !scope_find_variable(checker, word)) return -1;
    Node *name = plan_array(planner, 1, sizeof *name);
    *name = (Node){.kind = NODE_NAME, .span = target->as.index.object->span, .height = 1};
    name->as.name.word = *word;
    check_expression(checker, name);
    return add_value(planner, name);
}

// t+1 begins a loop; in x/2 several values fall on one place.
static void plan_left_sum(Planner *planner, const Node *target, int dim) {
    Equation *equation = planner->equation;
    ASSERT((size_t)dim < equation->left_count);
    Position *position = &equation->left[dim];
    const IndexPart *only = position->parts;
    bool group = position->kind == POSITION_SUM && position->count == 1 && position->divisor >= 0 &&
                 only->factor < 0 && !only->negative;
    if (group) return;
    EquationLoop *loop = &equation->loop;
    bool kept = position->kind != POSITION_STATE;
    bool again = loop->index >= 0;
    if (!again && read_offset(planner, position, &loop->index, &loop->offset) &&
        loop->offset >= 0 && (kept || loop->offset <= 1)) {
        position->kind = POSITION_STATE;
        loop->kept = kept;
        loop->dim = dim;
        loop->rows = kept ? loop->offset : 1;
        loop->start = plan_start(planner, target);
        if (loop->start < 0 && kept)
            plan_fail(planner, target->span, "its first rows are part of it: let X = zeros([1, 3])",
                      "this has no first value to go on from");
        return;
    }
    plan_fail(planner, position->span, "one of t+1 or *t+1, and any number of x/2",
              "this is not what the left side of an equation can have");
}

// X[t, i] = f(X[t-1, i]): whether a term of the right side is an earlier value along the dimension.
static bool goes_on(const Node *node, size_t dim) {
    if (node->kind == NODE_UNARY) return goes_on(node->as.binary.left, dim);
    if (node->kind == NODE_BINARY)
        return goes_on(node->as.binary.left, dim) || goes_on(node->as.binary.right, dim);
    bool found = false;
    for (size_t i = 0; node->kind == NODE_CALL && i < node->as.call.count; i++)
        found |= goes_on(node->as.call.arguments[i].value, dim);
    if (node->kind != NODE_INDEX || node->as.index.object->kind != NODE_POSITION) return found;
    const Node *index = dim < node->as.index.count ? node->as.index.subscripts[dim].index : NULL;
    return index && index->kind == NODE_BINARY && index->op == OPERATOR_SUB;
}

// X[0, i] and X[t+1, i] on the left side in a program give a part of X, which its equations fill
// together.
static void plan_part(Planner *planner, Position *position, const Subscript *subscript) {
    int index, offset;
    bool number = position->kind == POSITION_VALUE;
    if (number && subscript->index->kind == NODE_INT)
        position->offset = subscript->index->as.integer;
    else if (number)
        plan_fail(planner, subscript->span, "as in X[0, i] and X[t+1, i]",
                  "the left side of a program's equation has indexes and numbers");
    if (position->kind != POSITION_SUM || !read_offset(planner, position, &index, &offset) ||
        offset < 1)
        return;
    *position = (Position){POSITION_INDEX, .index = index, .offset = offset, .span = position->span,
                           .value = -1,    .start = -1,    .stop = -1,       .step = -1,
                           .divisor = -1};
}

static void plan_left(Planner *planner, const Node *target) {
    Equation *equation = planner->equation;
    equation->dotted = equation->loop.index = equation->loop.start = -1;
    if (target->kind != NODE_INDEX) return;
    int slices = 0;
    equation->left_count = target->as.index.count;
    equation->left = plan_array(planner, equation->left_count, sizeof *equation->left);
    for (size_t i = 0; i < equation->left_count; i++) {
        const Subscript *subscript = &target->as.index.subscripts[i];
        Position position = plan_position(planner, subscript, &slices);
        if (equation->program) plan_part(planner, &position, subscript);
        equation->left[i] = position;
        if (equation->left_indexes & position_indexes(&position))
            plan_fail(planner, subscript->span, NULL, "this index stands twice on the left side");
        bool earlier = position.kind == POSITION_INDEX && goes_on(planner->value, i);
        if (position.kind == POSITION_SUM || position.kind == POSITION_STATE || earlier)
            plan_left_sum(planner, target, (int)i);
        equation->left_indexes |= position_indexes(&equation->left[i]);
        if (!subscript->dotted) continue;
        if (position.kind != POSITION_INDEX || equation->dotted >= 0)
            plan_fail(planner, subscript->span, "one index, as in Y[i, j.] = softmax(X[i, j])",
                      "this cannot be what functions normalise along");
        equation->dotted = position.index;
    }
}

Equation *equation_plan(Checker *checker, const Node *node) {
    ASSERT(node->kind == NODE_ASSIGN);
    Equation *equation = arena_allocate(checker->arena, sizeof *equation);
    *equation = (Equation){.span = node->span,
                           .program = node->as.assign.program,
                           .semiring = node->as.assign.semiring};
    equation->names = arena_allocate(checker->arena, INDEXES_MAX * sizeof(Word));
    equation->sizes = arena_allocate(checker->arena, INDEXES_MAX * sizeof *equation->sizes);
    memset(equation->sizes, 0, INDEXES_MAX * sizeof *equation->sizes);
    Planner planner = {.checker = checker, .equation = equation, .value = node->as.assign.value};
    plan_left(&planner, node->as.assign.target);
    equation->projection = node->as.assign.projection;
    equation->whole = equation->program && !node->as.assign.arrow;
    equation->value = plan_node(&planner, node->as.assign.value);
    for (size_t i = 0; i < node->as.assign.sizes.count; i++)
        plan_term(&planner, node->as.assign.sizes.items[i]);
    place_sums(&planner, node->as.assign.projection);
    IndexSet missing = equation->left_indexes & ~equation->value->indexes;
    for (int i = 0; i < equation->name_count && !planner.failed; i++)
        if (missing >> i & 1)
            plan_fail(&planner, equation->names[i].span, NULL,
                      "the right side has no value for each place of this index");
    if (equation->dotted >= 0 && !equation_normalises(equation, equation->value))
        plan_fail(&planner, node->as.assign.target->span, "as in Y[i, j.] = softmax(X[i, j])",
                  "no function of the right side normalises along the dotted index");
    return planner.failed ? NULL : equation;
}
