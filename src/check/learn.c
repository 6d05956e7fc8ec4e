// Learn blocks: which settings there are, what they may be combined with, and the names that only
// the block has. What the body declares belongs to the scope around it.
#include "catalog/settings.h"
#include "check/checker.h"
#include "check/logic_checker.h"

const Setting *learn_setting(const Node *node, SettingId id) {
    for (size_t i = 0; id < SETTING_COUNT && i < node->as.learn.count; i++)
        if (strcmp(node->as.learn.settings[i].name.text, setting_rows[id].name) == 0)
            return &node->as.learn.settings[i];
    return NULL;
}

static void report_setting(Checker *checker, const Word *word) {
    const char *meant = setting_meant(word->text),
               *near = meant ? meant : setting_nearest(word->text);
    SCOPED_TEXT(help);
    if (near) text_format(&help, "did you mean `%s`?", near);
    ReportExtra extra = {.help = near ? text_get(&help) : "`tl help learn` lists the settings"};
    report(checker, STATUS_NAME, word->span, &extra, "learn has no setting `%s`", word->text);
}

static void check_name(Checker *checker, const Node *node, const Setting *setting) {
    SettingId id = setting_find(setting->name.text);
    Span span = setting->name.span;
    if (id == SETTING_COUNT) {
        report_setting(checker, &setting->name);
        return;
    }
    const SettingRow *row = &setting_rows[id];
    if (learn_setting(node, id) != setting) {
        report(checker, STATUS_NAME, span, NULL, "`%s` is given twice", row->name);
    } else if (row->needs != SETTING_none && !learn_setting(node, row->needs)) {
        ReportExtra extra = {.help = setting_rows[row->needs].form};
        report(checker, STATUS_NAME, span, &extra, "`%s` needs `%s`", row->name,
               setting_rows[row->needs].name);
    }
    if (setting->of && id != SETTING_batch)
        report(checker, STATUS_SYNTAX, setting->of->span, NULL, "only `batch` is `of` something");
}

static bool is_assigned(const Node *node, const char *name) {
    const NodeList *statements = &node->as.learn.body->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        const Node *item = statements->items[i];
        const Node *target = item->kind == NODE_ASSIGN ? item->as.assign.target : NULL;
        if (target && target->kind == NODE_NAME && strcmp(target->as.name.word.text, name) == 0)
            return true;
    }
    return false;
}

static void report_missing(Checker *checker, const Node *node, SettingId id, const char *example) {
    const char *name = setting_rows[id].name;
    SCOPED_TEXT(help);
    if (is_assigned(node, name))
        text_format(&help, "`%s = ...` assigns to a variable; a setting is written `%s: ...`", name,
                    name);
    else
        text_format(&help, "for example %s", example);
    ReportExtra extra = {.help = text_get(&help)};
    report(checker, STATUS_NAME, node->span, &extra, "this learn block has no %s", name);
}

static void check_names(Checker *checker, const Node *node) {
    bool unknown = false; // what may be the one that is missing
    for (size_t i = 0; i < node->as.learn.count; i++) {
        check_name(checker, node, &node->as.learn.settings[i]);
        unknown |= setting_find(node->as.learn.settings[i].name.text) == SETTING_COUNT;
    }
    if (!learn_setting(node, SETTING_optimizer) && !unknown)
        report_missing(checker, node, SETTING_optimizer, "optimizer: sgd(lr: 0.01)");
    if (learn_setting(node, SETTING_objective) && !learn_setting(node, SETTING_epochs) && !unknown)
        report_missing(checker, node, SETTING_epochs, "epochs: 100");
}

// A scheduler that nobody knows.
static void report_scheduler(Checker *checker, const Word *word) {
    static const char *const names[] = {
#define SCHEDULER(id, signature, doc) #id,
#include "catalog/schedulers.def"
#undef SCHEDULER
    };
    if (name_resolve(checker, word)) return;
    const char *near = catalog_nearest(word->text, names, sizeof names / sizeof *names);
    SCOPED_TEXT(help);
    if (near) text_format(&help, "did you mean `%s`?", near);
    for (size_t i = 0; !near && i < sizeof names / sizeof *names; i++)
        text_format(&help, "%s%s", i ? ", " : "there are ", names[i]);
    ReportExtra extra = {.help = text_get(&help)};
    if (symbol_mark_reported(checker, word))
        report(checker, STATUS_NAME, word->span, &extra, "there is no scheduler `%s`", word->text);
}

// Whether the program gives the name a meaning; what is called is a function there.
static bool means_own(Checker *checker, const Node *name, bool called) {
    const Entry *entry = symbol_top(checker, &name->as.name.word);
    return entry && !(called && binding_is_variable(entry->binding));
}

// `scheduler: cosine(...)` means scheduler::cosine unless a name of the program is meant.
static void name_scheduler(Checker *checker, Node *value) {
    Node *callee = value->kind == NODE_CALL ? value->as.call.callee : value;
    if (callee->kind != NODE_NAME || means_own(checker, callee, callee != value)) return;
    static const char space[] = "scheduler";
    Word word = callee->as.name.word;
    SCOPED_TEXT(full);
    text_format(&full, "%s::%s", space, word.text);
    if (catalog_find(text_get(&full), full.length)) {
        callee->kind = NODE_PATH;
        memset(&callee->as, 0, sizeof callee->as);
        callee->as.path.type = (Word){space, sizeof space - 1, word.span};
        callee->as.path.name = word;
    } else {
        report_scheduler(checker, &word);
    }
}

// `distribute: data`, `shard: optimizer` and `shard: parameters` name what is distributed.
static void name_distributed(Node *value, const char *word) {
    if (value->kind == NODE_NAME && strcmp(value->as.name.word.text, word) == 0)
        node_make_string(value);
}

static void check_settings(Checker *checker, const Node *node, SettingPlace place) {
    for (size_t i = 0; i < node->as.learn.count; i++) {
        const Setting *setting = &node->as.learn.settings[i];
        SettingId id = setting_find(setting->name.text);
        if (id == SETTING_COUNT || setting_rows[id].place != place) continue;
        if (id == SETTING_scheduler) name_scheduler(checker, setting->value);
        if (id == SETTING_distribute) name_distributed(setting->value, "data");
        if (id == SETTING_shard) name_distributed(setting->value, "optimizer");
        if (id == SETTING_shard) name_distributed(setting->value, "parameters");
        check_expression(checker, setting->value);
        check_expression(checker, setting->of);
    }
}

// The tensors that a batch goes through: names, since the block gives them a meaning of its own.
static void declare_batch(Checker *checker, Node *node) {
    const Setting *batch = learn_setting(node, SETTING_batch);
    if (!batch) return;
    if (!batch->of) {
        ReportExtra extra = {.help = "for example batch: 32 of (x, y)"};
        report(checker, STATUS_SYNTAX, batch->name.span, &extra, "`batch` does not say of what");
        return;
    }
    bool tuple = batch->of->kind == NODE_TUPLE;
    Node **items = tuple ? batch->of->as.list.items : (Node *[]){batch->of};
    size_t count = tuple ? batch->of->as.list.count : 1;
    node->as.learn.batch = arena_allocate(checker->arena, count * sizeof(Binding *));
    for (size_t i = 0; i < count; i++) {
        if (items[i]->kind != NODE_NAME) {
            report(checker, STATUS_SYNTAX, items[i]->span, NULL, "`batch` goes through variables");
            return;
        }
        node->as.learn.batch[i] =
            scope_declare_new(checker, BINDING_LOCAL, &items[i]->as.name.word);
        node->as.learn.batch[i]->used = true;
    }
    node->as.learn.batch_count = count;
}

// Whether an expression reads the variable; only the forms in which ranges are written.
static bool reads(const Node *node, const Binding *binding) {
    if (!node) return false;
    switch (node->kind) {
    case NODE_NAME: return node->as.name.binding == binding;
    case NODE_BINARY:
        return reads(node->as.binary.left, binding) || reads(node->as.binary.right, binding);
    case NODE_RANGE:
        return reads(node->as.range.low, binding) || reads(node->as.range.high, binding);
    case NODE_CALL:
        for (size_t i = 0; i < node->as.call.count; i++)
            if (reads(node->as.call.arguments[i].value, binding)) return true;
        return false;
    default: return false;
    }
}

// The loop whose iterations are the epochs: the first in the body that runs over `epochs`.
static void mark_loop(Node *node) {
    const NodeList *statements = &node->as.learn.body->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        Node *loop = statements->items[i];
        bool is_for = loop->kind == NODE_FOR, is_while = loop->kind == NODE_WHILE;
        const Node *head = is_for     ? loop->as.for_loop.iterable
                           : is_while ? loop->as.loop.condition
                                      : NULL;
        if (!reads(head, node->as.learn.epochs)) continue;
        *(is_for ? &loop->as.for_loop.epochs : &loop->as.loop.epochs) = true;
        node->as.learn.has_loop = true;
        return;
    }
}

static Binding *declare_word(Checker *checker, const char *text, Span span) {
    Word word = {text, (uint32_t)strlen(text), span};
    Binding *binding = scope_declare_new(checker, BINDING_LOCAL, &word);
    binding->used = true;
    return binding;
}

// `epoch` and `step` are names unless the program uses them for variables of its own.
static Binding *declare_count(Checker *checker, const char *text, Span span) {
    Word word = {text, (uint32_t)strlen(text), span};
    return scope_find_variable(checker, &word) ? NULL : declare_word(checker, text, span);
}

static bool makes_parameter(const Node *value) {
    if (!value || value->kind != NODE_CALL || value->as.call.callee->kind != NODE_NAME)
        return false;
    const Binding *binding = value->as.call.callee->as.name.binding;
    return binding && binding->kind == BINDING_BUILTIN &&
           strcmp(binding->word.text, "learnable") == 0;
}

// Parameters that the body declares are made at the first epoch and trained from there on.
static void mark_once(Checker *checker, Node *node) {
    const NodeList *statements = &node->as.learn.body->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        Node *one = statements->items[i];
        if (one->kind == NODE_TENSOR_DECLARATION && one->as.tensor.type->learnable) {
            one->as.tensor.once = true;
            ARENA_PUSH(checker->arena, &node->as.learn.once, one->as.tensor.binding);
        } else if (one->kind == NODE_LET && one->as.let.pattern->kind == PATTERN_BIND &&
                   makes_parameter(one->as.let.value)) {
            one->as.let.once = true;
            ARENA_PUSH(checker->arena, &node->as.learn.once, one->as.let.pattern->binding);
        }
    }
}

static void list_visible_of(Checker *checker, Node *node, BindingKind kind) {
    const char **names;
    size_t count = symbol_visible(checker, binding_is_variable, &names);
    for (size_t i = 0; i < count; i++) {
        Word word = {names[i], (uint32_t)strlen(names[i]), node->span};
        Binding *binding = scope_find_variable(checker, &word);
        if (!binding || binding->kind != kind) continue;
        binding_use(checker, binding);
        ARENA_PUSH(checker->arena, &node->as.learn.visible, binding);
    }
}

// Parameters in files go by the variables that hold them, those of the function before those of the
// top level: which of these it was called with is another thing at the next call.
static void list_visible(Checker *checker, Node *node) {
    if (!learn_setting(node, SETTING_save) && !learn_setting(node, SETTING_resume)) return;
    list_visible_of(checker, node, BINDING_LOCAL);
    list_visible_of(checker, node, BINDING_GLOBAL);
}

static void check_body(Checker *checker, Node *node) {
    Scope body = {.learn = node};
    scope_push(checker, &body);
    check_statements(checker, node->as.learn.body);
    warn_lost(checker, node->as.learn.body);
    check_settings(checker, node, SETTING_AFTER);
    list_visible(checker, node);
    for (const Entry *entry = body.entries; entry; entry = entry->next_in_scope)
        ARENA_PUSH(checker->arena, &node->as.learn.locals, entry->binding);
    int next = checker->slot_next;
    scope_pop(checker);
    checker->slot_next = next;
}

void check_learn(Checker *checker, Node *node) {
    check_names(checker, node);
    check_settings(checker, node, SETTING_OUTSIDE);
    Scope scope = {.own = true};
    scope_push(checker, &scope);
    node->as.learn.epochs = declare_word(checker, "epochs", node->span);
    node->as.learn.optimizer = declare_word(checker, "optimizer", node->span);
    declare_batch(checker, node);
    check_settings(checker, node, SETTING_INSIDE);
    node->as.learn.epoch = declare_count(checker, "epoch", node->span);
    node->as.learn.step = declare_count(checker, "step", node->span);
    check_body(checker, node);
    if (learn_setting(node, SETTING_objective))
        mark_once(checker, node);
    else
        mark_loop(node);
    for (const Entry *entry = scope.entries; entry; entry = entry->next_in_scope)
        ARENA_PUSH(checker->arena, &node->as.learn.locals, entry->binding);
    int next = checker->slot_next;
    scope_pop(checker);
    checker->slot_next = next; // what the body declared goes on
}
