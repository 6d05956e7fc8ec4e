// Runs programs: the interpreter's life, the large stack it runs on, interrupts, warnings, and the
// names of functions for memory reports.
#define _GNU_SOURCE // pthread_getattr_np
#include "eval/interp.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/diagnostic.h"
#include "base/output.h"
#include "base/source.h"
#include "device/settings.h"
#include "device/work.h"
#include "eval/invoke.h"
#include "eval/modules.h"
#include "eval/page.h"
#include "eval/structs.h"
#include "eval/upper.h"
#include "logic/rule.h"
#include "tensor/map.h"
#include "tensor/random.h"

enum {
    STACK_BYTES = 256 * 1024 * 1024,
    STACK_RESERVE_BYTES = 32 * 1024 * 1024, // for what runs between two checks: builtins, drops
};

Interp *interp_running(void) {
    return runtime_current->evaluation->running;
}

void interp_interrupt(Interp *interp) {
    runtime_interrupt(interp->runtime, INTERRUPT_SIGNAL);
}

static bool is_interrupted(void) {
    return interp_interrupts() & INTERRUPT_SIGNAL;
}

Value interp_fail_interrupted(Span span) {
    if (runtime_take_interrupts(runtime_current, INTERRUPT_EXIT)) {
        error_clear();
        return value_fail();
    }
    (void)runtime_take_interrupts(runtime_current, INTERRUPT_MEMORY);
    if (memory_exhausted() == STATUS_OK) fail(STATUS_INTERRUPT, "interrupted");
    return fail_at(span);
}

// A finished value, unless memory was refused on the way to it or a drop ended the program.
static Value settle(Value value, Span span) {
    if (LIKELY(!(interp_interrupts() & (INTERRUPT_MEMORY | INTERRUPT_EXIT))) || failed(value))
        return value;
    value_release(value);
    return interp_fail_interrupted(span);
}

void interp_keep_rooted(Interp *interp, void *memory) {
    VECTOR_PUSH(&interp->store->rooted, memory);
}

void interp_keep_rule(Interp *interp, Rule *rule) {
    VECTOR_PUSH(&interp->store->rules, rule);
}

Value interp_request_exit(Interp *interp, int status) {
    interp->exit_requested = true;
    interp->exit_status = status;
    error_clear();
    return value_fail();
}

bool interp_exit_requested(const Interp *interp, int *status) {
    if (interp->exit_requested) *status = interp->exit_status;
    return interp->exit_requested;
}

char *const *interp_script_arguments(const Interp *interp, int *count) {
    *count = interp->options.argument_count;
    return interp->options.arguments;
}

const char *interp_script_path(const Interp *interp) {
    return interp->options.script ? interp->options.script : "";
}

Evaluation *evaluation_new(void) {
    return memory_allocate_zeroed(1, sizeof(Evaluation));
}

static void function_places_clear(Evaluation *evaluation) {
    for (size_t i = 0; i < evaluation->function_places.count; i++)
        free(evaluation->function_places.items[i].name);
    VECTOR_FREE(&evaluation->function_places);
}

void evaluation_free(Evaluation *evaluation) {
    ASSERT(!evaluation->running);
    function_places_clear(evaluation);
    free(evaluation);
}

void interp_note_function(const FunctionNode *function) {
    if (!function->name.text) return;
    ASSERT(function->body != NULL);
    FunctionPlace place = {function->body->span,
                           memory_copy_string(function->name.text, function->name.length)};
    VECTOR_PUSH(&runtime_current->evaluation->function_places, place);
}

static void append_place(Text *out, SourcePos position, bool column) {
    SourcePlace place = source_find(position);
    if (!place.file) return;
    text_format(out, "%s:%d", place.file->name, place.line);
    if (column) text_format(out, ":%d", place.column);
}

// "model.tl:12:9   in fn load, called from model.tl:30"
static void describe_origin(Text *out, Origin origin) {
    append_place(out, origin.at, true);
    const char *name = NULL;
    const Evaluation *evaluation = runtime_current->evaluation;
    for (size_t i = 0; i < evaluation->function_places.count; i++) { // the innermost comes last
        const FunctionPlace *place = &evaluation->function_places.items[i];
        if (origin.at >= place->span.begin && origin.at < place->span.end) name = place->name;
    }
    if (name) text_format(out, "   in fn %s", name);
    if (!name || !origin.called_from) return;
    text_append_string(out, ", called from ");
    append_place(out, origin.called_from, false);
}

static void warn_broadcast(const char *op_name, const Shape *x, const Shape *y) {
    SourcePlace place = source_find(origin_current.at);
    SourcePos line =
        place.file ? place.file->base + (SourcePos)(place.line_text - place.file->text) : 0;
    Interp *interp = interp_running();
    for (size_t i = 0; i < interp->warned_lines.count; i++)
        if (interp->warned_lines.items[i] == line) return;
    VECTOR_PUSH(&interp->warned_lines, line);
    SCOPED_TEXT(message);
    SCOPED_TEXT(text);
    text_format(&message, "%s of ", op_name);
    shape_describe(x, &message);
    text_append_string(&message, " and ");
    shape_describe(y, &message);
    text_append_string(&message, " makes something larger than both");
    Diagnostic diagnostic = {.severity = SEVERITY_WARNING,
                             .message = text_get(&message),
                             .help = "reshape one of them, or say broadcast_to(...) if it is meant",
                             .span = {origin_current.at, origin_current.at + 1}};
    diagnostic_render(&text, &diagnostic, diagnostic_color());
    output_flush();
    fputs(text_get(&text), output_errors());
}

static void seed(const InterpOptions *options) {
    DeviceSettings settings; // malformed ones were reported when the program began
    bool read = device_settings_read(&settings) == STATUS_OK;
    if (options->has_seed)
        random_seed(options->seed);
    else if (read && settings.has_seed)
        random_seed(settings.seed);
    if (options->verbose)
        fprintf(output_errors(), "seed %llu\n", (unsigned long long)random_current_seed());
}

Interp *interp_new(Runtime *runtime, const InterpOptions *options) {
    Runtime *before = runtime_enter(runtime);
    ASSERT(!runtime->evaluation->running);
    heap_start();
    device_set_interrupted(is_interrupted);
    Interp *interp = memory_allocate_zeroed(1, sizeof *interp);
    interp->runtime = runtime;
    interp->options = *options;
    interp->store = code_store_new();
    (void)runtime_take_interrupts(runtime, INTERRUPT_SIGNAL | INTERRUPT_EXIT);
    runtime->evaluation->running = interp;
    heap_set_drop_hook(struct_drop);
    op_set_broadcast_warning(warn_broadcast);
    pool_set_origin_describer(describe_origin);
    function_places_clear(runtime->evaluation);
    seed(options);
    runtime_enter(before);
    return interp;
}

CodeStore *code_store_new(void) {
    CodeStore *store = memory_allocate_zeroed(1, sizeof *store);
    store->roots = heap_allocate_rooted(sizeof(Value));
    *store->roots = value_list(0);
    store->texts = heap_allocate_rooted(sizeof(Value));
    *store->texts = value_dict();
    return store;
}

void code_store_release(CodeStore *store) {
    ASSERT(store->roots != NULL && store->texts != NULL);
    value_release(*store->roots);
    *store->roots = value_none();
    value_release(*store->texts);
    *store->texts = value_none();
}

void code_store_free(CodeStore *store) {
    if (!store) return;
    for (size_t i = 0; i < store->rooted.count; i++) heap_free(store->rooted.items[i]);
    VECTOR_FREE(&store->rooted);
    for (size_t i = 0; i < store->rules.count; i++) rule_free(store->rules.items[i]);
    VECTOR_FREE(&store->rules);
    heap_free(store->roots);
    heap_free(store->texts);
    arena_free(&store->arena);
    free(store);
}

// What runs on the large stack.
typedef struct Task {
    Interp *interp;
    void (*run)(struct Task *task);
    Program *program;
    NodeKind kind;
    const char *filter;
    const SectionReport *report;
    void (*enter)(void *context);
    void *context;
    Status status;
    ErrorRecord error; // of the thread, for the one that waits
} Task;

static _Thread_local bool on_large_stack;

static void task_enter(void *argument) {
    Task *task = argument;
    const char *here = __builtin_frame_address(0);
    ASSERT(task->run != NULL);
    task->interp->stack_limit = here - STACK_BYTES + STACK_RESERVE_BYTES;
    origin_current = (Origin){0, 0};
    on_large_stack = true;
    task->run(task);
    task->error = *error_current();
}

// On a large stack of its own, unless this thread runs on one.
static Status task_run(Task *task) {
    if (on_large_stack) {
        ASSERT(runtime_current == task->interp->runtime);
        origin_current = (Origin){0, 0};
        task->run(task);
        return task->status;
    }
    Runtime *before = runtime_enter(task->interp->runtime);
    Status status = heap_run_on_stack(STACK_BYTES, task_enter, task);
    runtime_enter(before);
    if (status != STATUS_OK) return status;
    *error_current() = task->error;
    return task->status;
}

Status interp_status_of(const Interp *interp, Value value) {
    if (!failed(value)) return STATUS_OK;
    if (interp->exit_requested) return STATUS_OK;
    ASSERT(error_current()->code != STATUS_OK);
    return error_current()->code;
}

static void end_trace(Interp *interp, const char *title) {
    if (interp->trace.count > 0) trace_add(interp, title, 0);
}

static Value run_section(Interp *interp, const FunctionCode *code) {
    Value slots[code->slot_count + 1];
    ASSERT(code->slot_count >= code->parameter_count);
    for (int i = 0; i < code->slot_count; i++) slots[i] = value_absent();
    SCOPED_VALUE(value) = function_run(interp, code, NULL, slots, (Span){0, 0});
    // A trace of one line would only repeat the place of the error.
    ASSERT(!failed(value) || interp->trace.count > 0 || interp->exit_requested);
    if (failed(value) && interp->trace.count == 1) trace_clear(interp);
    value = settle(value, code->node->head);
    if (failed(value)) return value;
    return value_none();
}

static Value run_top(Interp *interp, ModuleState *module) {
    Value value = module_run(interp, module);
    if (failed(value)) end_trace(interp, "the top level");
    return value;
}

Value interp_run_module(Interp *interp, ModuleState *module) {
    Value value = run_top(interp, module);
    if (!failed(value) && module->main) {
        value_release(value);
        value = run_section(interp, module->main);
    }
    learn_report_unreached(!failed(value) && !interp->options.quiet);
    return value;
}

static void run_program(Task *task) {
    ModuleState *module = modules_lower(task->interp, task->program);
    SCOPED_VALUE(value) = interp_run_module(task->interp, module);
    task->status = interp_status_of(task->interp, value);
}

Status interp_run(Interp *interp, Program *program) {
    Task task = {.interp = interp, .run = run_program, .program = program};
    return task_run(&task);
}

static void enter(Task *task) {
    task->status = STATUS_OK;
    task->enter(task->context);
}

Status interp_enter(Interp *interp, void (*fn)(void *context), void *context) {
    Task task = {.interp = interp, .run = enter, .enter = fn, .context = context};
    return task_run(&task);
}

enum { OWN_STACK_BYTES_MIN = 1024 * 1024 };

// Below it a quarter of the thread's stack is left; NULL where that is too little, or not known.
static const char *own_stack_limit(void) {
    static _Thread_local const char *limit;
    pthread_attr_t attributes;
    if (limit || pthread_getattr_np(pthread_self(), &attributes) != 0) return limit;
    void *low;
    size_t bytes;
    bool known = pthread_attr_getstack(&attributes, &low, &bytes) == 0;
    pthread_attr_destroy(&attributes);
    if (known && bytes >= OWN_STACK_BYTES_MIN) limit = (const char *)low + bytes / 4;
    return limit;
}

Status interp_enter_here(Interp *interp, void (*fn)(void *context), void *context) {
    ASSERT(runtime_current == interp->runtime);
    const char *limit = on_large_stack ? interp->stack_limit : own_stack_limit();
    if (!limit) return interp_enter(interp, fn, context);
    const char *outer = interp->stack_limit;
    Origin origin = origin_current;
    interp->stack_limit = limit;
    fn(context);
    interp->stack_limit = outer;
    origin_current = origin;
    return STATUS_OK;
}

// Runs a section and waits for the device.
static Status run_timed(const Task *task, const FunctionCode *code, double *seconds) {
    double start = timing_now();
    Value value = run_section(task->interp, code);
    Status status = interp_status_of(task->interp, value);
    if (status == STATUS_OK) status = device_finish();
    *seconds = timing_now() - start;
    return status;
}

static Status run_bench(const Task *task, const FunctionCode *code, Timing *timing) {
    double seconds;
    Status status = run_timed(task, code, &seconds); // to warm up
    while (status == STATUS_OK && !task->interp->exit_requested && timing_wants_more(timing)) {
        status = run_timed(task, code, &seconds);
        timing_add(timing, seconds);
    }
    return status;
}

static const char *section_name(const Node *node) {
    return node->as.section.name.text ? node->as.section.name.text : "";
}

static bool is_section_wanted(const Task *task, const Node *node) {
    return node->kind == task->kind && (!task->filter || strstr(section_name(node), task->filter));
}

static bool is_any_section_wanted(const Task *task) {
    const NodeList *statements = &task->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++)
        if (is_section_wanted(task, statements->items[i])) return true;
    return false;
}

static void run_one_section(Task *task, ModuleState *module, const Node *node) {
    ASSERT(node->kind == NODE_TEST || node->kind == NODE_BENCH);
    const FunctionCode *code = module_section(task->interp, module, node);
    Timing timing = {0};
    double seconds;
    Status status =
        task->kind == NODE_BENCH ? run_bench(task, code, &timing) : run_timed(task, code, &seconds);
    if (task->interp->exit_requested && !(interp_interrupts() & INTERRUPT_SIGNAL)) {
        task->interp->exit_requested = false;
        (void)runtime_take_interrupts(runtime_current, INTERRUPT_EXIT);
        status = fail(STATUS_ASSERT, "it ended the program by exit(%d)", task->interp->exit_status);
    }
    task->report->report(task->report->context, section_name(node), status, &timing);
    timing_free(&timing);
    error_clear();
    trace_clear(task->interp);
}

// The top level of a file runs for its sections: where none is wanted, it does not.
static void run_sections(Task *task) {
    if (!is_any_section_wanted(task)) return;
    ModuleState *module = modules_lower(task->interp, task->program);
    Value value = run_top(task->interp, module);
    task->status = interp_status_of(task->interp, value);
    value_release(value);
    const NodeList *statements = &task->program->top->as.block.statements;
    for (size_t i = 0; i < statements->count; i++) {
        if (failed(value) || task->interp->exit_requested ||
            (interp_interrupts() & INTERRUPT_SIGNAL))
            return;
        if (is_section_wanted(task, statements->items[i]))
            run_one_section(task, module, statements->items[i]);
    }
}

Status interp_run_sections(Interp *interp, Program *program, NodeKind kind, const char *filter,
                           const SectionReport *report) {
    ASSERT(kind == NODE_TEST || kind == NODE_BENCH);
    Task task = {.interp = interp,
                 .run = run_sections,
                 .program = program,
                 .kind = kind,
                 .filter = filter,
                 .report = report};
    Status status = task_run(&task);
    learn_report_unreached(status == STATUS_OK && !interp->options.quiet);
    return status;
}

static bool memory_check_wanted(void) {
    DeviceSettings settings;
    return device_settings_read(&settings) == STATUS_OK &&
           settings.memory_check != MEMORY_CHECK_OFF;
}

static void clear(Task *task) {
    modules_clear(task->interp, 0);
    ASSERT(task->interp->runtime == runtime_current);
    pages_clear(task->interp);
    heap_collect_cycles(); // drops in cycles run while their code has its constants
    code_store_release(task->interp->store);
    pages_release(task->interp);
    size_t rescued = heap_clear_all();
    if (rescued > 0 && (task->interp->options.verbose || memory_check_wanted()))
        fprintf(output_errors(),
                "note: %zu device buffer%s held by reference cycles until the end\n", rescued,
                rescued == 1 ? " was" : "s were");
}

int interp_free(Interp *interp, int status) {
    Task task = {.interp = interp, .run = clear};
    Runtime *runtime = interp->runtime, *before = runtime_enter(runtime);
    ASSERT(runtime->evaluation->running == interp);
    atomic_store(&runtime->interrupts, 0); // drops run; memory_exhausted still knows
    interp->exit_requested = false;
    ErrorRecord *saved = memory_allocate(sizeof *saved);
    *saved = *error_current();
    if (task_run(&task) != STATUS_OK) clear(&task);
    *error_current() = *saved;
    free(saved);
    modules_free(interp, 0);
    pages_free(interp);
    reasoner_free(interp);
    code_store_free(interp->store);
    text_free(&interp->asserted);
    VECTOR_FREE(&interp->warned_lines);
    runtime->evaluation->running = NULL;
    (void)interp_exit_requested(interp, &status);
    (void)runtime_take_interrupts(runtime, INTERRUPT_EXIT);
    free(interp);
    runtime_enter(before);
    return status;
}
