// What the types of columns say of a clause's variables: one that two columns give different kinds
// never has a value, and a head gives its relation what the columns hold.
#include "check/logic_checker.h"

static const char *const kind_words[] = {
    [COLUMN_ENTITY] = "a name or text", [COLUMN_INT] = "an int",    [COLUMN_FLOAT] = "a float",
    [COLUMN_BOOL] = "a bool",           [COLUMN_TUPLE] = "a tuple",
};

// Names and texts are the same constants. ANY where a column holds anything, or a set.
static ColumnKind column_kind_of(const AtomNode *atom, size_t column) {
    ASSERT(column < atom->count);
    const Node *declaration = atom->binding->declaration;
    if (declaration->kind == NODE_ENTITY) return COLUMN_ENTITY;
    if (declaration->kind != NODE_RELATION) return COLUMN_ANY;
    const char *merge = declaration->as.relation.merges[column];
    if (merge && strcmp(merge, "union") == 0) return COLUMN_ANY;
    ColumnKind kind = column_kind(declaration->as.relation.types[column]);
    return kind == COLUMN_STRING ? COLUMN_ENTITY : kind;
}

static const char *column_name(const AtomNode *atom, size_t column) {
    const Node *declaration = atom->binding->declaration;
    return declaration->kind == NODE_RELATION ? declaration->as.relation.columns[column].text
                                              : "the name";
}

typedef struct Standing { // where a variable stands
    const AtomNode *atom;
    size_t column;
    ColumnKind kind;
} Standing;

static bool is_variable(const TermNode *term) {
    return term->kind == TERM_NODE_VARIABLE || term->kind == TERM_NODE_NAME;
}

// The first place of the variable in the atom where the column says what it is.
static bool atom_standing(const AtomNode *atom, int variable, Standing *out) {
    for (size_t i = 0; i < atom->count; i++) {
        if (!is_variable(&atom->terms[i]) || atom->terms[i].variable != variable) continue;
        *out = (Standing){atom, i, column_kind_of(atom, i)};
        if (out->kind != COLUMN_ANY) return true;
    }
    return false;
}

// What gives the variable its values.
static bool variable_standing(const Clause *clause, int variable, Standing *out) {
    for (size_t i = 0; i < clause->goal_count; i++)
        if (clause->goals[i].kind == GOAL_NODE_ATOM &&
            atom_standing(&clause->goals[i].atom, variable, out))
            return true;
    return false;
}

// --- what a value is, where columns say it

static ColumnKind kind_of_value(const Clause *clause, const Node *node, int depth);

static ColumnKind kind_of_variable(const Clause *clause, int variable, int depth) {
    enum { DEPTH_MAX = 8 };
    Standing standing;
    if (variable_standing(clause, variable, &standing)) return standing.kind;
    for (size_t i = 0; i < clause->goal_count && depth < DEPTH_MAX; i++)
        if (clause->goals[i].kind == GOAL_NODE_BIND && clause->goals[i].variable == variable)
            return kind_of_value(clause, clause->goals[i].value, depth + 1);
    return COLUMN_ANY;
}

static ColumnKind kind_of_binary(const Clause *clause, const Node *node, int depth) {
    if (node->op > OPERATOR_MOD) return COLUMN_ANY;
    ColumnKind left = kind_of_value(clause, node->as.binary.left, depth);
    ColumnKind right = kind_of_value(clause, node->as.binary.right, depth);
    if (left == COLUMN_FLOAT || right == COLUMN_FLOAT) return COLUMN_FLOAT;
    return left == right ? left : COLUMN_ANY;
}

static ColumnKind kind_of_value(const Clause *clause, const Node *node, int depth) {
    int variable = -1;
    switch (node->kind) {
    case NODE_INT: return COLUMN_INT;
    case NODE_FLOAT: return COLUMN_FLOAT;
    case NODE_BOOL: return COLUMN_BOOL;
    case NODE_STRING: return COLUMN_ENTITY;
    case NODE_UNARY:
        return node->op == OPERATOR_NEG ? kind_of_value(clause, node->as.binary.left, depth)
                                        : COLUMN_ANY;
    case NODE_BINARY: return kind_of_binary(clause, node, depth);
    case NODE_NAME:
        variable = clause_variable(clause, &node->as.name.word);
        return variable < 0 ? COLUMN_ANY : kind_of_variable(clause, variable, depth);
    default: return COLUMN_ANY;
    }
}

// --- heads

// The value + 0.0, in a variable of its own.
static void make_float(ClauseCheck *check, TermNode *term) {
    Node *zero = arena_allocate(check->checker->arena, sizeof *zero);
    *zero = (Node){.kind = NODE_FLOAT, .span = term->value->span, .height = 1};
    Node *sum = arena_allocate(check->checker->arena, sizeof *sum);
    *sum = (Node){.kind = NODE_BINARY,
                  .op = OPERATOR_ADD,
                  .span = term->value->span,
                  .height = term->value->height + 1};
    sum->op_span = term->value->span;
    sum->as.binary.left = term->value;
    sum->as.binary.right = zero;
    term->value = sum;
    if (term->kind != TERM_NODE_VALUE) term->variable = clause_variable_hidden(check);
    term->kind = TERM_NODE_VALUE;
}

static ColumnKind kind_of_term(const Clause *clause, const TermNode *term) {
    bool counts = term->aggregate && strcmp(term->aggregate, "count") == 0;
    if (counts) return COLUMN_INT;
    if (term->aggregate && strcmp(term->aggregate, "avg") == 0) return COLUMN_FLOAT;
    return kind_of_value(clause, term->value, 0);
}

static void report_head(ClauseCheck *check, const TermNode *term, size_t column, ColumnKind kind) {
    const AtomNode *head = &check->clause->atom;
    ReportExtra extra = {.note = "the relation is declared here",
                         .note_span = head->binding->word.span};
    report(check->checker, STATUS_TYPE, term->value->span, &extra,
           "`%s` of %s wants %s, but this is %s", column_name(head, column),
           head->binding->word.text, kind_words[column_kind_of(head, column)], kind_words[kind]);
}

// Constants are checked where they stand; counts become floats when they are made.
static void check_head_types(ClauseCheck *check) {
    AtomNode *head = &check->clause->atom;
    for (size_t i = 0; i < head->count; i++) {
        TermNode *term = &head->terms[i];
        ColumnKind wanted = column_kind_of(head, i);
        bool computed = term->kind == TERM_NODE_VALUE || term->kind == TERM_NODE_VARIABLE;
        if (!computed || wanted == COLUMN_ANY) continue;
        ColumnKind kind = kind_of_term(check->clause, term);
        bool counted = term->aggregate && kind == COLUMN_INT && term->aggregate[0] == 'c';
        if (wanted == COLUMN_FLOAT && (kind == COLUMN_INT || kind == COLUMN_ANY)) {
            if (!counted) make_float(check, term);
        } else if (kind != COLUMN_ANY && kind != wanted) {
            report_head(check, term, i, kind);
        }
    }
}

static bool atom_has(const AtomNode *atom, int variable) {
    bool has = false;
    for (size_t i = 0; i < atom->count; i++)
        has |= is_variable(&atom->terms[i]) && atom->terms[i].variable == variable;
    return has;
}

// Solutions are told apart by their named variables: avg(N) <- Age(_, N) takes an age that two have
// into account once.
static void warn_merged(ClauseCheck *check, const TermNode *aggregated) {
    static const char help[] = "give it a name where every row is to be taken into account";
    const Clause *clause = check->clause;
    bool solutions = aggregated->kind == TERM_NODE_ANY;
    for (size_t i = 0; i < clause->goal_count; i++) {
        const AtomNode *atom = &clause->goals[i].atom;
        bool read = clause->goals[i].kind == GOAL_NODE_ATOM &&
                    (solutions || atom_has(atom, aggregated->variable));
        for (size_t j = 0; read && j < atom->count; j++) {
            if (atom->terms[j].kind != TERM_NODE_ANY) continue;
            report_warning(check->checker, atom->terms[j].value->span, &(ReportExtra){.help = help},
                           "rows of %s that differ only here are one solution for `%s`",
                           atom->binding->word.text, aggregated->aggregate);
            return;
        }
    }
}

static void warn_all_merged(ClauseCheck *check) {
    const AtomNode *head = &check->clause->atom;
    for (size_t i = 0; i < head->count; i++) {
        const TermNode *term = &head->terms[i];
        bool all =
            term->aggregate && (strcmp(term->aggregate, "sum") == 0 ||
                                strcmp(term->aggregate, "avg") == 0 || term->kind == TERM_NODE_ANY);
        if (all) warn_merged(check, term);
    }
}

// --- bodies

static void report_clash(ClauseCheck *check, const Standing *first, const Standing *second) {
    const Node *value = second->atom->terms[second->column].value;
    ReportExtra extra = {.help = "give one of them a variable of its own and compare the two"};
    report(check->checker, STATUS_TYPE, value->span, &extra,
           "`%s` is %s in %s and %s in %s: no value is both", value->as.name.word.text,
           kind_words[first->kind], first->atom->binding->word.text, kind_words[second->kind],
           second->atom->binding->word.text);
}

static void check_atom_types(ClauseCheck *check, const AtomNode *atom) {
    for (size_t i = 0; i < atom->count; i++) {
        Standing first, second = {atom, i, column_kind_of(atom, i)};
        if (!is_variable(&atom->terms[i]) || second.kind == COLUMN_ANY) continue;
        int variable = atom->terms[i].variable;
        bool found =
            check->kind == CLAUSE_QUERY && atom_standing(&check->clause->atom, variable, &first);
        if (!found) found = variable_standing(check->clause, variable, &first);
        if (found && first.kind != second.kind && check->clause->variables.items[variable].text)
            report_clash(check, &first, &second);
    }
}

// N > "a", N + "a", where a column says that N is a number.
static void check_literals(ClauseCheck *check, const Node *node) {
    if (node->kind != NODE_BINARY) return;
    const Node *sides[] = {node->as.binary.left, node->as.binary.right};
    bool order = node->op >= OPERATOR_LT && node->op <= OPERATOR_GE;
    for (int i = 0; i < 2; i++) {
        ColumnKind other = kind_of_value(check->clause, sides[1 - i], 0);
        bool number = other == COLUMN_INT || other == COLUMN_FLOAT;
        if (sides[i]->kind == NODE_STRING && number && (order || node->op <= OPERATOR_MOD))
            report(check->checker, STATUS_TYPE, node->span, NULL,
                   order ? "%s and a text have no order" : "%s and a text cannot be computed with",
                   kind_words[other]);
        check_literals(check, sides[i]);
    }
}

void check_clause_types(ClauseCheck *check) {
    const Clause *clause = check->clause;
    if (check->kind == CLAUSE_QUERY) check_atom_types(check, &clause->atom);
    for (size_t i = 0; i < clause->goal_count; i++)
        if (clause->goals[i].kind <= GOAL_NODE_NOT && clause->goals[i].atom.binding)
            check_atom_types(check, &clause->goals[i].atom);
    for (size_t i = 0; i < clause->goal_count; i++)
        if (clause->goals[i].kind >= GOAL_NODE_TEST) check_literals(check, clause->goals[i].value);
    if (check->kind != CLAUSE_RULE) return;
    warn_all_merged(check);
    check_head_types(check);
}
