// What the arguments of atoms mean: constants, variables, values of the program.
#include "check/logic_checker.h"

int clause_variable(const Clause *clause, const Word *word) {
    for (size_t i = 0; i < clause->variables.count; i++) {
        const Word *variable = &clause->variables.items[i];
        if (variable->text && variable->length == word->length &&
            memcmp(variable->text, word->text, word->length) == 0)
            return (int)i;
    }
    return -1;
}

int clause_variable_get(ClauseCheck *check, const Word *word) {
    int variable = clause_variable(check->clause, word);
    if (variable >= 0) return variable;
    ARENA_PUSH(check->checker->arena, &check->clause->variables, *word);
    return (int)check->clause->variables.count - 1;
}

int clause_variable_hidden(ClauseCheck *check) {
    ARENA_PUSH(check->checker->arena, &check->clause->variables, (Word){0});
    return (int)check->clause->variables.count - 1;
}

static int kind_in_fact(const ClauseCheck *check, const Word *word) {
    if (logic_is_constant(check->checker, word) || word_is_long(word) || !word_is_capital(word))
        return TERM_NODE_CONSTANT;
    return TERM_NODE_VARIABLE;
}

static bool is_column(const AtomNode *atom, const Word *word) {
    const Node *declaration = atom->binding ? atom->binding->declaration : NULL;
    if (!declaration || declaration->kind != NODE_RELATION) return false;
    for (size_t i = 0; i < declaration->as.relation.count; i++)
        if (strcmp(declaration->as.relation.columns[i].text, word->text) == 0) return true;
    return false;
}

// Rules of older scripts name their variables as the columns are named.
static bool is_column_of_rule(const ClauseCheck *check, const Word *word) {
    if (is_column(&check->clause->atom, word)) return true;
    for (size_t i = 0; i < check->clause->goal_count; i++)
        if (is_column(&check->clause->goals[i].atom, word)) return true;
    return false;
}

static int kind_in_rule(ClauseCheck *check, const Word *word) {
    if (logic_is_constant(check->checker, word)) return TERM_NODE_CONSTANT;
    if (word_is_capital(word) || clause_variable(check->clause, word) >= 0)
        return TERM_NODE_VARIABLE;
    if (is_column_of_rule(check, word)) return TERM_NODE_VARIABLE;
    // The third variable of `Ancestor(x, z) <- Ancestor(x, y), Parent(y, z)` names no column.
    return check->older && !word_is_long(word) ? TERM_NODE_VARIABLE : TERM_NODE_CONSTANT;
}

// What is retracted is written as it was stated: a name that no fact has is not one for any value.
static int kind_in_query(const ClauseCheck *check, const Word *word) {
    bool stated = check->kind == CLAUSE_RETRACT && word_is_long(word);
    if (logic_is_member(check->checker, word) || !word_is_capital(word) || stated)
        return TERM_NODE_CONSTANT;
    return TERM_NODE_NAME;
}

int term_kind_of(ClauseCheck *check, const Word *word) {
    if (strcmp(word->text, "_") == 0) return TERM_NODE_ANY;
    if (check->kind == CLAUSE_RULE) return kind_in_rule(check, word);
    if (clause_variable(check->clause, word) >= 0) return TERM_NODE_NAME;
    if (scope_find_variable(check->checker, word)) return TERM_NODE_VALUE;
    return check->kind == CLAUSE_FACT ? kind_in_fact(check, word) : kind_in_query(check, word);
}

static void report_variable(Checker *checker, const Node *node) {
    ReportExtra extra = {.help = "a rule says what holds for every value: Head(X) <- Body(X)"};
    report(checker, STATUS_NAME, node->span, &extra, "a fact has no variables, but `%s` is one",
           node->as.name.word.text);
}

static void check_name(ClauseCheck *check, TermNode *term) {
    const Word *word = &term->value->as.name.word;
    term->kind = (enum TermNodeKind)term_kind_of(check, word);
    if (term->kind == TERM_NODE_ANY && check->whole) {
        term->kind = TERM_NODE_VARIABLE;
        term->variable = clause_variable_hidden(check);
        return;
    }
    if (term->kind == TERM_NODE_VARIABLE && check->kind == CLAUSE_FACT)
        report_variable(check->checker, term->value);
    if (term->kind == TERM_NODE_ANY && check->kind == CLAUSE_FACT)
        report(check->checker, STATUS_NAME, term->value->span, NULL,
               "a fact names every value, but `_` stands for any");
    if (term->kind == TERM_NODE_VALUE) {
        check_expression(check->checker, term->value);
        term->variable = clause_variable_hidden(check);
    } else if (term->kind == TERM_NODE_VARIABLE || term->kind == TERM_NODE_NAME) {
        term->variable = clause_variable_get(check, word);
    }
}

// --- expressions as arguments

const char *aggregate_of(const Node *node) {
    static const char *const words[] = {"count", "sum", "min", "max", "avg"};
    if (node->kind != NODE_CALL || node->as.call.callee->kind != NODE_NAME ||
        node->as.call.count != 1)
        return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], node->as.call.callee->as.name.word.text) == 0) return words[i];
    return NULL;
}

static bool is_literal(const Node *node) {
    if (node->kind == NODE_UNARY && node->op == OPERATOR_NEG) node = node->as.binary.left;
    return node->kind == NODE_INT || node->kind == NODE_FLOAT || node->kind == NODE_BOOL ||
           node->kind == NODE_STRING;
}

// M(X + 1)? where X is a variable of the query.
static bool report_own_variable(ClauseCheck *check, const Node *value) {
    if (value->kind == NODE_UNARY) return report_own_variable(check, value->as.binary.left);
    if (value->kind == NODE_BINARY)
        return report_own_variable(check, value->as.binary.left) ||
               report_own_variable(check, value->as.binary.right);
    if (value->kind != NODE_NAME || clause_variable(check->clause, &value->as.name.word) < 0)
        return false;
    ReportExtra extra = {.help = "a condition of its own computes it, as in Y = X + 1, R(Y)"};
    report(check->checker, STATUS_NAME, value->span, &extra,
           "`%s` is a variable of this query: no argument is computed with it",
           value->as.name.word.text);
    return true;
}

// A rule computes the value with its own variables (logic.c), a fact or query with the program's.
static void check_value(ClauseCheck *check, TermNode *term) {
    term->kind = TERM_NODE_VALUE;
    if (check->kind != CLAUSE_RULE && !report_own_variable(check, term->value))
        check_expression(check->checker, term->value);
    term->variable = clause_variable_hidden(check);
}

// mean(N) in a head would be the mean of the one value that N has there.
static void check_reduced(const ClauseCheck *check, const Node *call) {
    static const char *const words[] = {"mean", "median", "prod", "std", "var"};
    if (call->kind != NODE_CALL || call->as.call.callee->kind != NODE_NAME ||
        call->as.call.count != 1 || call->as.call.arguments[0].value->kind != NODE_NAME)
        return;
    const Word *word = &call->as.call.callee->as.name.word;
    const Binding *function = name_resolve(check->checker, word);
    ReportExtra extra = {.help = "there are count, sum, min, max and avg"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word->text) == 0 && function && function->kind == BINDING_BUILTIN)
            report(check->checker, STATUS_TYPE, call->span, &extra,
                   "`%s` is not an aggregate: here it has one value only", word->text);
}

static void check_term(ClauseCheck *check, TermNode *term, bool head) {
    if (head && check->kind == CLAUSE_RULE) check_reduced(check, term->value);
    term->aggregate = head && check->kind == CLAUSE_RULE ? aggregate_of(term->value) : NULL;
    if (term->aggregate) term->value = term->value->as.call.arguments[0].value;
    if (term->value->kind == NODE_NAME)
        check_name(check, term);
    else if (is_literal(term->value))
        term->kind = TERM_NODE_CONSTANT;
    else
        check_value(check, term);
}

// --- arity and types

size_t relation_columns(const Node *declaration) {
    if (declaration->kind == NODE_ENTITY) return 1;
    return declaration->kind == NODE_RELATION ? declaration->as.relation.count
                                              : declaration->as.clause->atom.call->as.call.count;
}

static bool check_arity(Checker *checker, const Node *call, const Binding *binding) {
    const Node *declaration = binding->declaration;
    size_t arity = relation_columns(declaration), count = call->as.call.count;
    for (size_t i = 0; i < count; i++) {
        if (!call->as.call.arguments[i].name.text) continue;
        report(checker, STATUS_ARITY, call->as.call.arguments[i].name.span, NULL,
               "the columns of %s are given by position", binding->word.text);
        return false;
    }
    if (count == arity) return true;
    ReportExtra extra = {.note = declaration->kind == NODE_RULE ? "this rule declares it"
                                                                : "it is declared here",
                         .note_span = binding->word.span};
    report(checker, STATUS_ARITY, call->as.call.arguments_span, &extra,
           "%s has %zu column%s, but %zu %s given", binding->word.text, arity,
           arity == 1 ? "" : "s", count, count == 1 ? "is" : "are");
    return false;
}

static const Binding *type_of_column(const Binding *relation, size_t column, ColumnKind *kind) {
    const Node *declaration = relation->declaration;
    *kind = COLUMN_ANY;
    if (declaration->kind == NODE_ENTITY) {
        *kind = COLUMN_ENTITY;
        return relation;
    }
    if (declaration->kind != NODE_RELATION) return NULL;
    const TypeNode *type = declaration->as.relation.types[column];
    *kind = column_kind(type);
    return type ? type->binding : NULL;
}

// Whether an atom of the clause holds the variable where a column has a number, a text or a name.
static bool atom_has_single(const AtomNode *atom, int variable) {
    for (size_t i = 0; i < atom->count; i++) {
        ColumnKind kind;
        if (atom->terms[i].kind != TERM_NODE_VARIABLE || atom->terms[i].variable != variable)
            continue;
        type_of_column(atom->binding, i, &kind);
        const Node *declaration = atom->binding->declaration;
        bool set = declaration->kind == NODE_RELATION && declaration->as.relation.merges[i] &&
                   strcmp(declaration->as.relation.merges[i], "union") == 0;
        if (kind != COLUMN_ANY && kind != COLUMN_TUPLE && !set) return true;
    }
    return false;
}

bool variable_is_single(const Clause *clause, int variable) {
    bool single = atom_has_single(&clause->atom, variable);
    for (size_t i = 0; i < clause->goal_count; i++)
        single |= clause->goals[i].kind == GOAL_NODE_ATOM &&
                  atom_has_single(&clause->goals[i].atom, variable);
    return single;
}

static const char *literal_kind(const Node *node) {
    if (node->kind == NODE_UNARY) node = node->as.binary.left;
    switch (node->kind) {
    case NODE_INT: return "int";
    case NODE_FLOAT: return "float";
    case NODE_BOOL: return "bool";
    default: return "string";
    }
}

static bool kind_fits(ColumnKind kind, const char *literal) {
    switch (kind) {
    case COLUMN_ENTITY:
    case COLUMN_STRING: return strcmp(literal, "string") == 0;
    case COLUMN_INT: return strcmp(literal, "int") == 0;
    case COLUMN_FLOAT: return strcmp(literal, "float") == 0 || strcmp(literal, "int") == 0;
    case COLUMN_BOOL: return strcmp(literal, "bool") == 0;
    case COLUMN_TUPLE: return false;
    default: return true;
    }
}

static const Word *constant_word(const TermNode *term, Word *word) {
    if (term->value->kind == NODE_NAME) return &term->value->as.name.word;
    *word = (Word){.text = term->value->as.string.bytes,
                   .length = (uint32_t)term->value->as.string.length};
    return word;
}

// A text that no fact mentions is merely unknown to a query.
static void check_member(ClauseCheck *check, const TermNode *term, const Binding *type) {
    Word buffer;
    const Word *word = constant_word(term, &buffer);
    const Node *declaration = type->declaration;
    for (size_t i = 0; i < declaration->as.entity.member_count; i++) {
        const Word *member = &declaration->as.entity.members[i];
        if (member->length == word->length && memcmp(member->text, word->text, word->length) == 0)
            return;
    }
    if (check->kind != CLAUSE_FACT && !logic_is_constant(check->checker, word)) return;
    const char **names =
        arena_allocate(check->checker->arena, declaration->as.entity.member_count * sizeof *names);
    for (size_t i = 0; i < declaration->as.entity.member_count; i++)
        names[i] = declaration->as.entity.members[i].text;
    const char *near = catalog_nearest(word->text, names, declaration->as.entity.member_count);
    SCOPED_TEXT(help);
    if (near) text_format(&help, "did you mean `%s`?", near);
    ReportExtra extra = {.help = near ? text_get(&help) : NULL,
                         .note = "the type is declared here",
                         .note_span = type->word.span};
    report(check->checker, STATUS_TYPE, term->value->span, &extra, "`%s` is not %s %s", word->text,
           text_article(type->word.text), type->word.text);
}

static void check_column_type(ClauseCheck *check, const AtomNode *atom, size_t column) {
    const TermNode *term = &atom->terms[column];
    ColumnKind kind;
    const Binding *type = type_of_column(atom->binding, column, &kind);
    if (term->kind != TERM_NODE_CONSTANT || term->aggregate) return;
    if (term->value->kind == NODE_NAME ? !kind_fits(kind, "string")
                                       : !kind_fits(kind, literal_kind(term->value))) {
        const Node *declaration = atom->binding->declaration;
        const char *name = declaration->kind == NODE_RELATION
                               ? declaration->as.relation.columns[column].text
                               : "the name";
        bool word = check->kind == CLAUSE_RULE && term->value->kind == NODE_NAME;
        ReportExtra extra = {.help =
                                 word ? "a variable of a rule begins with a capital letter" : NULL,
                             .note = "it is declared here",
                             .note_span = atom->binding->word.span};
        report(check->checker, STATUS_TYPE, term->value->span, &extra,
               "column `%s` of %s does not hold values of type %s", name, atom->binding->word.text,
               term->value->kind == NODE_NAME ? "string" : literal_kind(term->value));
    } else if (type && type->declaration->as.entity.closed) {
        check_member(check, term, type);
    }
}

int clause_place(const ClauseCheck *check, const Node *value) {
    for (size_t i = 0; value->kind == NODE_NAME && i < check->place_count; i++)
        if (strcmp(check->places[i].text, value->as.name.word.text) == 0) return (int)i;
    return -1;
}

void check_atom(ClauseCheck *check, AtomNode *atom, bool head) {
    const Node *call = atom->call;
    if (!check_arity(check->checker, call, atom->binding)) return;
    atom->count = call->as.call.count;
    atom->terms = arena_allocate(check->checker->arena, atom->count * sizeof *atom->terms);
    for (size_t i = 0; i < atom->count; i++) {
        atom->terms[i].value = call->as.call.arguments[i].value;
        int place = clause_place(check, atom->terms[i].value);
        if (place >= 0) {
            atom->terms[i].kind = TERM_NODE_PLACE;
            atom->terms[i].variable = place;
            continue;
        }
        check_term(check, &atom->terms[i], head);
        check_column_type(check, atom, i);
    }
}
