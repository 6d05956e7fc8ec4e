// Learn blocks: which settings there are, what they may be combined with, and the names that only
// the block has. What the body declares belongs to the scope around it.
#include "check/checker.h"

// Where a setting's value is checked: outside the block (so that `epochs: epochs` means a variable
// outside), inside before the body, or inside after it, with the names that the body declares.
typedef enum SettingPlace { SETTING_OUTSIDE, SETTING_INSIDE, SETTING_AFTER } SettingPlace;

static const struct {
    const char *name;
    SettingPlace place;
    bool objective; // has a meaning only beside an objective
} settings[] = {
    {"objective", SETTING_AFTER, true},        {"optimizer", SETTING_OUTSIDE, false},
    {"epochs", SETTING_OUTSIDE, false},        {"scheduler", SETTING_INSIDE, false},
    {"clip_grad_norm", SETTING_INSIDE, false}, {"batch", SETTING_OUTSIDE, true},
    {"shuffle", SETTING_INSIDE, true},         {"report_every", SETTING_INSIDE, false},
    {"patience", SETTING_INSIDE, false},       {"validate", SETTING_AFTER, false},
    {"dropout", SETTING_INSIDE, false},
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

static int setting_find(const Word *word) {
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(settings[i].name, word->text) == 0) return i;
    return -1;
}

const Setting *learn_setting(const Node *node, const char *name) {
    for (size_t i = 0; i < node->as.learn.count; i++)
        if (strcmp(node->as.learn.settings[i].name.text, name) == 0)
            return &node->as.learn.settings[i];
    return NULL;
}

static void report_setting(Checker *checker, const Word *word) {
    const char *names[SETTING_COUNT];
    for (int i = 0; i < SETTING_COUNT; i++) names[i] = settings[i].name;
    const char *near = catalog_nearest(word->text, names, SETTING_COUNT);
    Text help = {0};
    if (near) text_format(&help, "did you mean `%s`?", near);
    ReportExtra extra = {.help = near ? text_get(&help) : NULL};
    report(checker, STATUS_NAME, word->span, &extra, "learn has no setting `%s`", word->text);
    text_free(&help);
}

static void check_names(Checker *checker, const Node *node) {
    bool objective = learn_setting(node, "objective") != NULL;
    for (size_t i = 0; i < node->as.learn.count; i++) {
        const Setting *setting = &node->as.learn.settings[i];
        int row = setting_find(&setting->name);
        if (row < 0) {
            report_setting(checker, &setting->name);
        } else if (learn_setting(node, setting->name.text) != setting) {
            report(checker, STATUS_NAME, setting->name.span, NULL, "`%s` is given twice",
                   setting->name.text);
        } else if (settings[row].objective && !objective) {
            report(checker, STATUS_NAME, setting->name.span, NULL, "`%s` needs an objective",
                   setting->name.text);
        }
        if (setting->of && strcmp(setting->name.text, "batch") != 0)
            report(checker, STATUS_SYNTAX, setting->of->span, NULL,
                   "only `batch` is `of` something");
    }
    if (!learn_setting(node, "optimizer")) {
        ReportExtra extra = {.help = "for example optimizer: sgd(lr: 0.01)"};
        report(checker, STATUS_NAME, node->span, &extra, "this learn block has no optimizer");
    }
    if (objective && !learn_setting(node, "epochs")) {
        ReportExtra extra = {.help = "for example epochs: 100"};
        report(checker, STATUS_NAME, node->span, &extra, "this learn block has no epochs");
    }
    if (learn_setting(node, "shuffle") && !learn_setting(node, "batch"))
        report(checker, STATUS_NAME, learn_setting(node, "shuffle")->name.span, NULL,
               "`shuffle` needs `batch`");
}

// `scheduler: cosine(...)` means scheduler::cosine unless a name of the program is meant.
static void name_scheduler(Checker *checker, Node *value) {
    Node *callee = value->kind == NODE_CALL ? value->as.call.callee : value;
    if (callee->kind != NODE_NAME || symbol_top(checker, &callee->as.name.word)) return;
    static const char space[] = "scheduler";
    Word word = callee->as.name.word;
    Text full = {0};
    text_format(&full, "%s::%s", space, word.text);
    if (catalog_find(text_get(&full), full.length)) {
        callee->kind = NODE_PATH;
        memset(&callee->as, 0, sizeof callee->as);
        callee->as.path.type = (Word){space, sizeof space - 1, word.span};
        callee->as.path.name = word;
    }
    text_free(&full);
}

static void check_settings(Checker *checker, const Node *node, SettingPlace place) {
    for (size_t i = 0; i < node->as.learn.count; i++) {
        const Setting *setting = &node->as.learn.settings[i];
        int row = setting_find(&setting->name);
        if (row < 0 || settings[row].place != place) continue;
        if (strcmp(setting->name.text, "scheduler") == 0) name_scheduler(checker, setting->value);
        check_expression(checker, setting->value);
        check_expression(checker, setting->of);
    }
}

// The tensors that a batch goes through: names, since the block gives them a meaning of its own.
static void declare_batch(Checker *checker, Node *node) {
    const Setting *batch = learn_setting(node, "batch");
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

// The loop whose turns are the epochs: the first in the body that runs over `epochs`.
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

void check_learn(Checker *checker, Node *node) {
    check_names(checker, node);
    check_settings(checker, node, SETTING_OUTSIDE);
    Scope scope = {.open = true};
    scope_push(checker, &scope);
    node->as.learn.epochs = declare_word(checker, "epochs", node->span);
    node->as.learn.optimizer = declare_word(checker, "optimizer", node->span);
    declare_batch(checker, node);
    check_settings(checker, node, SETTING_INSIDE);
    check_statements(checker, node->as.learn.body);
    check_settings(checker, node, SETTING_AFTER);
    if (!learn_setting(node, "objective")) mark_loop(node);
    int next = checker->slot_next;
    scope_pop(checker);
    checker->slot_next = next; // what the body declared goes on
}
