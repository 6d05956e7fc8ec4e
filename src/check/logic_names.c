// Which names a logic program declares: relations and entity types, hoisted from wherever they
// stand, and the constants that its facts mention.
#include "base/utf8.h"
#include "check/logic_checker.h"
#include "parser/walk.h"

typedef struct Visitor {
    LogicVisit *visit;
    void *context;
} Visitor;

static void visit_node(void *context, Node *node) {
    const Visitor *visitor = context;
    if (node->kind == NODE_ENTITY || node->kind == NODE_RELATION || node->kind == NODE_RULE)
        visitor->visit(visitor->context, node);
}

void logic_visit(Program *program, LogicVisit *visit, void *context) {
    Visitor visitor = {visit, context};
    walk_node(&(Walker){.context = &visitor, .node = visit_node}, program->top);
}

// --- declarations

static void constant_note(ConstantTable *table, const char *text, size_t length) {
    constant_set_known(table, constant_text(table, text, length));
}

bool logic_is_constant(const Checker *checker, const Word *word) {
    const ConstantTable *table = &checker->table->constants;
    return constant_is_known(table, constant_find_text(table, word->text, word->length));
}

bool logic_is_member(const Checker *checker, const Word *word) {
    const ConstantTable *table = &checker->table->members;
    return constant_find_text(table, word->text, word->length) != CONSTANT_NONE;
}

bool logic_take_member(Checker *checker, Node *node) {
    const Word *word = &node->as.name.word;
    if (!logic_is_member(checker, word) || name_candidates(checker, word)) return false;
    node_make_string(node);
    return true;
}

// Whether the name stands for a relation or an entity type, not for a variable.
bool logic_names_relation(Checker *checker, const Node *node) {
    const Binding *binding =
        node->kind == NODE_NAME ? name_resolve(checker, &node->as.name.word) : NULL;
    return binding && binding->kind == BINDING_RELATION;
}

// What an embedding is of: `auto` or the names that it was declared with as texts, or its type.
static const Node *embedding_entities(Checker *checker, const Node *object) {
    const Binding *binding =
        object->kind == NODE_NAME ? name_resolve(checker, &object->as.name.word) : NULL;
    const Node *declaration = binding ? binding->declaration : NULL;
    const Node *call =
        declaration && declaration->kind == NODE_LET ? declaration->as.let.value : NULL;
    bool table = call && call->kind == NODE_CALL && call->as.call.callee->kind == NODE_NAME &&
                 strcmp(call->as.call.callee->as.name.word.text, "embedding_table") == 0;
    if (!table) return NULL;
    for (size_t i = 0; i < call->as.call.count; i++)
        if (call->as.call.arguments[i].name.text &&
            strcmp(call->as.call.arguments[i].name.text, "entities") == 0)
            return call->as.call.arguments[i].value;
    return NULL;
}

// Its own names, or those of an entity type that facts have mentioned.
static bool embedding_has(Checker *checker, const Node *object, const Word *word) {
    const Node *names = embedding_entities(checker, object);
    if (!names) return false;
    bool text = names->kind == NODE_STRING;
    if (text && strcmp(names->as.string.bytes, "entity") != 0) return false;
    if (names->kind != NODE_LIST) return logic_is_constant(checker, word);
    for (size_t i = 0; i < names->as.list.count; i++)
        if (strcmp(names->as.list.items[i]->as.string.bytes, word->text) == 0) return true;
    return false;
}

bool logic_is_embedding(Checker *checker, const Node *object) {
    return embedding_entities(checker, object) != NULL;
}

bool logic_takes_any_name(Checker *checker, const Node *object) {
    const Node *entities = embedding_entities(checker, object);
    return entities && entities->kind == NODE_STRING &&
           strcmp(entities->as.string.bytes, "auto") == 0;
}

bool logic_is_place(Checker *checker, const Node *object, const Node *place, size_t dimension) {
    if (!place || place->kind != NODE_NAME) return false;
    const Word *word = &place->as.name.word;
    if (logic_names_relation(checker, place))
        return true; // R[Parent], of an embedding of relations
    if (name_candidates(checker, word)) return false;
    if (logic_is_member(checker, word)) return true;
    if (dimension == 0 && embedding_has(checker, object, word)) return true;
    return logic_names_relation(checker, object) && logic_is_constant(checker, word);
}

// A name of the same scope stands for nothing else.
static Binding *declare(Checker *checker, const Word *word, Node *node, const char *what) {
    const Entry *entry = symbol_top(checker, word);
    const Binding *first = entry && entry->scope == checker->scope ? entry->binding : NULL;
    bool again = first && first->kind == BINDING_RELATION;
    if (first) report_twice(checker, again ? what : "name", word, &first->word);
    Binding *binding = binding_new(checker, BINDING_RELATION, word);
    binding->declaration = node;
    scope_add(checker, word, binding);
    return binding;
}

static void declare_entity(Checker *checker, Node *node) {
    node->as.entity.binding = declare(checker, &node->as.entity.name, node, "entity type");
    for (size_t i = 0; i < node->as.entity.member_count; i++) {
        const Word *member = &node->as.entity.members[i];
        for (size_t j = 0; j < i; j++)
            if (strcmp(member->text, node->as.entity.members[j].text) == 0)
                report(checker, STATUS_NAME, member->span, NULL, "`%s` is given twice in %s",
                       member->text, node->as.entity.name.text);
        constant_note(&checker->table->constants, member->text, member->length);
        constant_note(&checker->table->members, member->text, member->length);
    }
}

static void declare_node(void *context, Node *node) {
    Checker *checker = context;
    if (node->kind == NODE_ENTITY) declare_entity(checker, node);
    if (node->kind == NODE_RELATION)
        node->as.relation.binding = declare(checker, &node->as.relation.name, node, "relation");
}

void logic_declare(Checker *checker) {
    logic_visit(checker->program, declare_node, checker);
}

bool word_is_capital(const Word *word) {
    uint32_t codepoint;
    return utf8_decode(word->text, word->length, &codepoint) > 0 && utf8_is_upper(codepoint);
}

bool word_is_long(const Word *word) {
    uint32_t codepoint;
    return word->length > utf8_decode(word->text, word->length, &codepoint);
}

Binding *logic_relation(Checker *checker, const Node *call) {
    if (call->kind != NODE_CALL || call->as.call.callee->kind != NODE_NAME) return NULL;
    for (Candidate *next = name_candidates(checker, &call->as.call.callee->as.name.word); next;
         next = next->next) {
        if (next->binding->kind == BINDING_RELATION) return next->binding;
        if (!binding_is_variable(next->binding)) return NULL;
    }
    return NULL;
}

static Word *callee_word(const Node *call) {
    return &call->as.call.callee->as.name.word;
}

// A head declares its relation if nothing else does.
static void declare_head(void *context, Node *node) {
    Checker *checker = context;
    if (node->kind != NODE_RULE) return;
    const Word *word = callee_word(node->as.clause->atom.call);
    const Entry *entry = symbol_top(checker, word);
    while (entry && entry->binding->kind != BINDING_RELATION) entry = entry->outer;
    if (entry) return;
    Binding *binding = binding_new(checker, BINDING_RELATION, word);
    binding->declaration = node;
    scope_add(checker, word, binding);
}

void logic_declare_heads(Checker *checker) {
    logic_visit(checker->program, declare_head, checker);
}

// --- constants of facts

static Word argument_word(const Node *value) {
    if (value->kind == NODE_NAME) return value->as.name.word;
    if (value->kind != NODE_STRING) return (Word){0};
    return (Word){.text = value->as.string.bytes, .length = (uint32_t)value->as.string.length};
}

void logic_note_argument(Checker *checker, const Node *value, bool ahead) {
    Word word = argument_word(value);
    if (!word.text || word.length == 0) return;
    if (!ahead && value->kind == NODE_NAME && scope_find_variable(checker, &word)) return;
    bool capital = word_is_capital(&word), letters = word_is_long(&word);
    bool variable = value->kind == NODE_NAME && capital && !letters;
    if (!variable && (!ahead || (capital && letters)))
        constant_note(&checker->table->constants, word.text, word.length);
}

void logic_note_fact(Checker *checker, const Node *call, bool ahead) {
    for (size_t i = 0; i < call->as.call.count; i++)
        logic_note_argument(checker, call->as.call.arguments[i].value, ahead);
}

static void note_ahead(void *context, Node *node) {
    Checker *checker = context;
    if (node->kind != NODE_EXPRESSION_STATEMENT && node->kind != NODE_FACT) return;
    const Node *call =
        node->kind == NODE_FACT ? node->as.clause->atom.call : node->as.expression.value;
    if (logic_relation(checker, call)) logic_note_fact(checker, call, true);
}

void logic_declare_constants(Checker *checker) {
    walk_node(&(Walker){.context = checker, .node = note_ahead}, checker->program->top);
}

bool binding_is_entity_type(const Binding *binding) {
    return binding->kind == BINDING_RELATION && binding->declaration->kind == NODE_ENTITY;
}

// --- columns

static const struct {
    const char *name;
    ColumnKind kind;
} column_words[] = {
    {"entity", COLUMN_ENTITY}, {"concept", COLUMN_ENTITY}, {"any", COLUMN_ANY},
    {"string", COLUMN_STRING}, {"str", COLUMN_STRING},     {"String", COLUMN_STRING},
    {"int", COLUMN_INT},       {"float", COLUMN_FLOAT},    {"bool", COLUMN_BOOL},
    {"tuple", COLUMN_TUPLE},
};

ColumnKind column_kind(const TypeNode *type) {
    DType dtype;
    if (!type) return COLUMN_ANY;
    if (type->kind == TYPE_TUPLE) return COLUMN_TUPLE;
    for (size_t i = 0; i < sizeof column_words / sizeof *column_words; i++)
        if (strcmp(column_words[i].name, type->name.text) == 0) return column_words[i].kind;
    if (!dtype_find(type->name.text, type->name.length, &dtype)) return COLUMN_ENTITY;
    DTypeKind kind = dtype_kind(dtype);
    return kind == DTYPE_KIND_BOOL  ? COLUMN_BOOL
           : kind == DTYPE_KIND_INT ? COLUMN_INT
                                    : COLUMN_FLOAT;
}

static bool is_column_word(const TypeNode *type) {
    DType dtype;
    if (type->kind == TYPE_TUPLE) return true;
    for (size_t i = 0; i < sizeof column_words / sizeof *column_words; i++)
        if (strcmp(column_words[i].name, type->name.text) == 0) return true;
    return dtype_find(type->name.text, type->name.length, &dtype);
}

// A type's name in a column: an entity type, or one of the words.
static void check_column(Checker *checker, TypeNode *type) {
    if (type->kind == TYPE_TUPLE)
        for (size_t i = 0; i < type->argument_count; i++) check_column(checker, type->arguments[i]);
    if (type->kind == TYPE_TENSOR) {
        report(checker, STATUS_TYPE, type->span, NULL,
               "a column holds entities, int, float, bool, string or tuples, not tensors");
        return;
    }
    Binding *binding = type->kind == TYPE_NAMED ? name_resolve(checker, &type->name) : NULL;
    if (binding && binding_is_entity_type(binding)) {
        type->binding = binding;
        binding->used = true;
    } else if (!is_column_word(type)) {
        report_unknown(checker, &type->name, WANTED_ENTITY_TYPE);
    }
}

static void check_equivalence(Checker *checker, const Node *node) {
    TypeNode *const *types = node->as.relation.types;
    bool fits = node->as.relation.count == 2 && column_kind(types[0]) == column_kind(types[1]) &&
                (!types[0] || types[0]->binding == types[1]->binding);
    if (!fits)
        report(checker, STATUS_TYPE, node->span, NULL,
               "an equivalence has two columns of one type");
}

// Queries by embeddings are about two columns, each of an entity type.
static void check_embed(Checker *checker, const Node *node) {
    const TypeNode *embed = node->as.relation.embed;
    bool vector = embed->kind == TYPE_TENSOR && strcmp(embed->name.text, "float32") == 0 &&
                  embed->dimension_count == 1 && embed->dimensions[0].kind == DIMENSION_NUMBER &&
                  embed->dimensions[0].number > 0;
    ReportExtra extra = {.help = "as in embed float32[64] learnable"};
    if (!vector)
        report(checker, STATUS_TYPE, embed->span, &extra,
               "members are embedded as vectors of float32 numbers, whose count is given");
    bool types = node->as.relation.count == 2;
    for (size_t i = 0; i < node->as.relation.count; i++)
        types &=
            node->as.relation.types[i] && column_kind(node->as.relation.types[i]) == COLUMN_ENTITY;
    if (!types)
        report(checker, STATUS_TYPE, node->span, NULL,
               "a relation with `embed` has two columns, each of an entity type");
}

void check_relation(Checker *checker, Node *node) {
    for (size_t i = 0; i < node->as.relation.count; i++) {
        const Word *column = &node->as.relation.columns[i];
        for (size_t j = 0; j < i; j++)
            if (strcmp(column->text, node->as.relation.columns[j].text) == 0)
                report(checker, STATUS_NAME, column->span, NULL, "column `%s` is declared twice",
                       column->text);
        if (node->as.relation.types[i]) check_column(checker, node->as.relation.types[i]);
    }
    if (node->as.relation.count > ARITY_MAX)
        report(checker, STATUS_ARITY, node->span, NULL,
               "a relation has at most %d columns, not %zu", ARITY_MAX, node->as.relation.count);
    if (node->as.relation.equivalence) check_equivalence(checker, node);
    if (node->as.relation.embed) check_embed(checker, node);
}
