// Sessions: each line is a program of its own whose variables lie in places of the session. What a
// line without functions leaves in memory is its text.
#include "eval/session.h"

#include <ctype.h>
#include <stdlib.h>

#include "check/logic.h"
#include "eval/modules.h"
#include "eval/structs.h"
#include "eval/upper.h"
#include "parser/parser.h"
#include "value/snapshot.h"

// An earlier struct that an impl of the line adds to, and what it was.
typedef struct StructBefore {
    StructCode *code;
    StructCode before;
} StructBefore;

struct Line {
    Session *session;
    Program *program;
    ModuleState *module;
    CodeStore *store, *store_outside;
    Snapshot *snapshot;
    size_t modules_before, functions_before, places_before;
    VECTOR(StructBefore) structs;
};

// What a kept line has left that others may point to.
typedef struct KeptLine {
    Program *program;
    CodeStore *store;
} KeptLine;

struct Session {
    Interp *interp;
    CheckSession *names;
    VECTOR(Value *) places; // of the variables, rooted, in the order they were made
    VECTOR(KeptLine) kept;
    Binding *last; // `_`
};

static void names_begin(Session *session) {
    session->names = check_session_new();
    session->last = check_session_define(session->names, "_");
    Value *place = heap_allocate_rooted(sizeof *place);
    *place = value_none();
    VECTOR_PUSH(&session->places, place);
    session->last->lowered = place;
}

Session *session_new(Interp *interp) {
    Session *session = memory_allocate_zeroed(1, sizeof *session);
    session->interp = interp;
    interp->keeps_interrupted = true;
    names_begin(session);
    reasoner_keep(interp);
    return session;
}

static void places_clear(Session *session, size_t first) {
    for (size_t i = session->places.count; i-- > first;) {
        Value old = *session->places.items[i];
        *session->places.items[i] = value_absent();
        value_release(old);
    }
}

static void places_forget(Session *session, size_t first) {
    ASSERT(first <= session->places.count);
    while (session->places.count > first) heap_free(session->places.items[--session->places.count]);
}

static void kept_forget(Session *session) {
    for (size_t i = 0; i < session->kept.count; i++) {
        code_store_free(session->kept.items[i].store);
        program_free(session->kept.items[i].program);
    }
    VECTOR_FREE(&session->kept);
}

void session_reset(Session *session) {
    places_clear(session, 0);
    modules_clear(session->interp, 0);
    heap_collect_cycles();
    for (size_t i = 0; i < session->kept.count; i++)
        code_store_release(session->kept.items[i].store);
    modules_free(session->interp, 0);
    places_forget(session, 0);
    check_session_free(session->names);
    kept_forget(session);
    names_begin(session);
    reasoner_free(session->interp);
    reasoner_keep(session->interp);
}

void session_free(Session *session) {
    places_forget(session, 0);
    VECTOR_FREE(&session->places);
    check_session_free(session->names);
    kept_forget(session);
    free(session);
}

// --- preparing

// Each variable that the line declares takes the session's place of that name, or a new one.
static void places_assign(Line *line) {
    Session *session = line->session;
    for (size_t i = 0; i < line->program->globals.count; i++) {
        Binding *variable = line->program->globals.items[i];
        const Word *word = &variable->word;
        const Binding *earlier =
            word->text ? check_session_variable(session->names, word->text, word->length) : NULL;
        if (earlier && !earlier->program) {
            variable->lowered = earlier->lowered;
            continue;
        }
        Value *place = heap_allocate_rooted(sizeof *place);
        *place = value_absent();
        VECTOR_PUSH(&session->places, place);
        variable->lowered = place;
    }
}

static void structs_note(Line *line) {
    const NodeList *statements = &line->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        const Node *node = statements->items[i];
        if (node->kind != NODE_IMPL || !node->as.impl.binding->lowered) continue;
        StructCode *code = node->as.impl.binding->lowered;
        StructBefore before = {code, *code};
        VECTOR_PUSH(&line->structs, before);
    }
}

static void snapshot_variables(Line *line) {
    Session *session = line->session;
    line->snapshot = snapshot_new();
    for (size_t i = 0; i < line->places_before; i++)
        snapshot_add(line->snapshot, session->places.items[i]);
    for (size_t i = 0; i < line->modules_before; i++) {
        const ModuleState *module = session->interp->modules.items[i];
        for (size_t j = 0; j < module->program->globals.count; j++)
            snapshot_add(line->snapshot, &module->globals[j]);
    }
    snapshot_take(line->snapshot);
}

static void lower_line(Line *line) {
    Interp *interp = line->session->interp;
    places_assign(line);
    structs_note(line);
    CodeStore *outside = interp->store;
    interp->store = line->store = code_store_new();
    line->functions_before = interp->functions_lowered;
    line->modules_before = interp->modules.count;
    line->module = modules_lower(interp, line->program);
    interp->store = outside;
}

Line *session_prepare(Session *session, const SourceFile *source, DiagnosticList *diagnostics) {
    size_t errors = diagnostics->error_count;
    (void)runtime_take_interrupts(runtime_current, INTERRUPT_SIGNAL | INTERRUPT_EXIT);
    Program *program = parse_program(source, diagnostics);
    if (diagnostics->error_count > errors) {
        program_free(program);
        return NULL;
    }
    check_line(session->names, program, diagnostics);
    if (diagnostics->error_count > errors) {
        check_session_drop(session->names, program);
        program_free(program);
        return NULL;
    }
    Line *line = memory_allocate_zeroed(1, sizeof *line);
    line->session = session;
    line->program = program;
    line->places_before = session->places.count;
    lower_line(line);
    snapshot_variables(line);
    return line;
}

// --- running

Status session_run(Line *line, Value *value) {
    Interp *interp = line->session->interp;
    error_clear();
    trace_clear(interp);
    origin_current = (Origin){0, 0};
    line->module->started = false;
    *value = interp_run_module(interp, line->module);
    Status status = interp_status_of(interp, *value);
    if (status == STATUS_OK && interp_interrupts()) {
        value_release(*value);
        *value = interp_fail_interrupted((Span){0, 0});
        status = error_current()->code;
    }
    if (failed(*value)) *value = value_none();
    if (status != STATUS_OK && !snapshot_is_whole(line->snapshot))
        fail_help("what the line changed stays: there was no memory to note what was before it");
    return status;
}

static const Node *last_statement(const Line *line) {
    const NodeList *statements = &line->program->top->as.block.statements;
    return statements->count ? statements->items[statements->count - 1] : NULL;
}

bool line_is_expression(const Line *line) {
    const Node *last = last_statement(line);
    return last && (last->kind == NODE_EXPRESSION_STATEMENT || last->kind <= NODE_BLOCK);
}

bool line_shows_value(const Line *line) {
    if (!line_is_expression(line)) return false;
    const SourceFile *file = line->program->file;
    const char *end = file->text + (last_statement(line)->span.end - file->base);
    return end[strspn(end, " \t\r\n")] != ';';
}

const Program *line_program(const Line *line) {
    return line->program;
}

// --- the end of a line

static void note_logic(void *context, Node *node) {
    (void)node;
    *(bool *)context = true;
}

// Whether anything of the line may be pointed to later: code of functions, types, other files.
static bool leaves_code(const Line *line) {
    if (line->session->interp->functions_lowered > line->functions_before) return true;
    if (line->program->imported.count > 0) return true;
    bool logic = false;
    logic_visit(line->program, note_logic, &logic);
    if (logic) return true; // later lines read its relations
    const NodeList *statements = &line->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        const Node *node = statements->items[i];
        if (node->kind == NODE_STRUCT || node->kind == NODE_IMPORT) return true;
        if (node->kind == NODE_LET && !node->as.let.value) return true; // its type is wanted later
    }
    return false;
}

static void line_free(Line *line) {
    snapshot_free(line->snapshot);
    VECTOR_FREE(&line->structs);
    free(line);
}

// The line's own variables lie in the session; the file that stands for it in the list of modules
// is its last one.
static void module_forget(Line *line) {
    Interp *interp = line->session->interp;
    ASSERT(interp->modules.items[interp->modules.count - 1] == line->module);
    modules_free(interp, interp->modules.count - 1);
}

static bool same_parameters(const FunctionCode *a, const FunctionCode *b) {
    if (a->parameter_count != b->parameter_count) return false;
    for (int i = 0; i < a->parameter_count; i++)
        if (strcmp(a->parameters[i].name, b->parameters[i].name) != 0) return false;
    return true;
}

static void function_replace(const Program *earlier, const Binding *again) {
    const NodeList *statements = &earlier->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        if (statements->items[i]->kind != NODE_FUNCTION) continue;
        const Binding *binding = statements->items[i]->as.function->binding;
        if (binding->word.length != again->word.length ||
            memcmp(binding->word.text, again->word.text, again->word.length) != 0)
            continue;
        FunctionCode *old = binding->lowered;
        const FunctionCode *new = again->lowered;
        if (!same_parameters(old, new)) continue;
        Value value = old->value;
        *old = *new;
        old->value = value;
    }
}

// Functions of earlier lines that call a function declared again call the new one from now on,
// unless its parameters are others. A file that was imported keeps calling its own.
static void functions_replace(const Line *line) {
    const NodeList *statements = &line->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++)
        if (statements->items[i]->kind == NODE_FUNCTION)
            for (size_t k = 0; k < line->session->kept.count; k++)
                function_replace(line->session->kept.items[k].program,
                                 statements->items[i]->as.function->binding);
}

void session_keep(Line *line) {
    Session *session = line->session;
    bool leaves = leaves_code(line);
    functions_replace(line);
    reasoner_keep(session->interp);
    check_session_keep(session->names, line->program);
    module_forget(line);
    if (leaves) {
        KeptLine kept = {line->program, line->store};
        VECTOR_PUSH(&session->kept, kept);
    } else {
        code_store_release(line->store);
        code_store_free(line->store);
        program_free(line->program);
    }
    line_free(line);
}

void session_drop(Line *line) {
    Session *session = line->session;
    Interp *interp = session->interp;
    SCOPED_MEMORY ErrorRecord *error = memory_allocate(sizeof *error);
    ASSERT(interp->modules.count >= line->modules_before);
    *error = *error_current();
    atomic_store(&interp->runtime->interrupts, 0); // drops run
    reasoner_undo(interp);
    places_clear(session, line->places_before);
    modules_clear(interp, line->modules_before);
    snapshot_restore(line->snapshot);
    heap_collect_cycles();
    for (size_t i = line->structs.count; i-- > 0;)
        *line->structs.items[i].code = line->structs.items[i].before;
    modules_free(interp, line->modules_before);
    places_forget(session, line->places_before);
    check_session_drop(session->names, line->program);
    code_store_release(line->store);
    trace_clear(interp);
    code_store_free(line->store);
    program_free(line->program);
    line_free(line);
    *error_current() = *error;
}

// --- names

size_t session_name_count(const Session *session) {
    return check_session_count(session->names);
}

SessionName session_name(const Session *session, size_t index) {
    const Binding *binding = check_session_name(session->names, index);
    SessionName name = {.binding = binding, .name = binding->word.text};
    if (binding->kind == BINDING_GLOBAL) name.value = binding->lowered;
    return name;
}

bool session_find(const Session *session, const char *name, size_t length, SessionName *out) {
    for (size_t i = session_name_count(session); i-- > 0;) {
        *out = session_name(session, i);
        if (out->binding->word.length == length && memcmp(out->name, name, length) == 0)
            return true;
    }
    return false;
}

Status session_get(const Session *session, const char *name, size_t length, Value *out) {
    SessionName found;
    if (!session_find(session, name, length, &found))
        return fail(STATUS_NAME, "there is no variable or function `%.*s`", (int)length, name);
    if (found.value) {
        *out = value_retain(*found.value);
    } else if (found.binding->kind == BINDING_FUNCTION) {
        *out = value_retain(((const FunctionCode *)found.binding->lowered)->value);
    } else {
        return fail(STATUS_NAME, "`%.*s` is neither a variable nor a function", (int)length, name);
    }
    if (out->kind != VALUE_ABSENT) return STATUS_OK;
    return fail(STATUS_NAME, "`%.*s` has no value", (int)length, name);
}

static bool is_name(const char *name) {
    if (isdigit((unsigned char)*name)) return false;
    const char *at = name;
    while (isalnum((unsigned char)*at) || *at == '_' || (unsigned char)*at >= 0x80) at++;
    return at > name && *at == '\0';
}

Status session_define(Session *session, const char *name, Value value) {
    if (!is_name(name)) {
        value_release(value);
        return fail(STATUS_NAME, "\"%s\" cannot be the name of a variable", name);
    }
    Binding *binding = check_session_variable(session->names, name, strlen(name));
    if (!binding) {
        Value *place = heap_allocate_rooted(sizeof *place);
        *place = value_none();
        VECTOR_PUSH(&session->places, place);
        binding = check_session_define(session->names, name);
        binding->lowered = place;
    }
    Value *place = binding->lowered, old = *place;
    ASSERT(place != NULL && old.kind != VALUE_FAIL);
    *place = value;
    value_release(old);
    return STATUS_OK;
}

void session_set_last(Session *session, Value value) {
    Value *place = session->last->lowered;
    Value old = *place;
    *place = value;
    value_release(old);
}
