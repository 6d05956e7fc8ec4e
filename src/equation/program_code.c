// Making a program block: its functions, and which of its names depend on which.
#include <stdlib.h>

#include "equation/program.h"
#include "eval/upper.h"

enum { ITERATIONS_DEFAULT = 1000 };
static const double tolerance_default = 1e-6;

typedef struct SettingCode {
    bool tolerance; // else max_iterations
    const Code *value;
} SettingCode;

typedef struct PartCode {
    const Code *function, *inputs;
    int target, parameter_count;
    int *parameters;
    bool scalar;
    Span span;
} PartCode;

typedef struct ProgramCode {
    Code head;
    const char *name, **names;
    uint32_t *growing; // by name
    int *before;
    Semiring semiring;
    size_t name_count, named, part_count, setting_count, statement_count;
    PartCode *parts;
    SettingCode *settings;
    const Code **statements; // facts and rules
    const Code *argument;    // of the semiring, or NULL
} ProgramCode;

// Whether each name needs each other, at any distance: a row a name.
static bool *find_needs(const ProgramHandle *program) {
    int count = program->name_count;
    bool *needs = memory_allocate_zeroed((size_t)(count * count) + 1, sizeof(bool));
    for (int i = 0; i < program->part_count; i++)
        for (int j = 0; j < program->parts[i].parameter_count; j++)
            needs[program->parts[i].target * count + program->parts[i].parameters[j]] = true;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < count; i++)
            for (int j = 0; needs[i * count + k] && j < count; j++)
                needs[i * count + j] |= needs[k * count + j];
    return needs;
}

static void find_components(ProgramHandle *program) {
    int count = program->name_count;
    SCOPED_MEMORY bool *needs = find_needs(program);
    for (int i = 0; i < count; i++) {
        program->names[i].loops = needs[i * count + i];
        program->names[i].component = i;
        for (int j = i; j-- > 0;)
            if (needs[i * count + j] && needs[j * count + i]) program->names[i].component = j;
    }
}

static Status read_number(Frame *frame, const Code *code, const char *what, int64_t *out) {
    Value value = EVAL(frame, code);
    if (failed(value)) return error_current()->code;
    Status status = value_to_int(value, what, out);
    value_release(value);
    if (status == STATUS_OK && *out < 1)
        status = fail(STATUS_VALUE, "%s must be at least 1, but it is %lld", what, (long long)*out);
    if (status != STATUS_OK) error_place(code->span);
    return status;
}

static Status read_tolerance(Frame *frame, const Code *code, double *out) {
    Value value = EVAL(frame, code);
    if (failed(value)) return error_current()->code;
    Status status = value_to_double(value, "tolerance", out);
    value_release(value);
    if (status != STATUS_OK) error_place(code->span);
    return status;
}

static Status read_settings(Frame *frame, const ProgramCode *code, ProgramHandle *program) {
    for (size_t i = 0; i < code->setting_count; i++) {
        const SettingCode *setting = &code->settings[i];
        if (setting->tolerance)
            TRY(read_tolerance(frame, setting->value, &program->tolerance));
        else
            TRY(read_number(frame, setting->value, "max_iterations", &program->iterations_max));
    }
    if (!code->argument) return STATUS_OK;
    return read_number(frame, code->argument, "the number of a semiring", &program->argument);
}

static void fill_program(Frame *frame, const ProgramCode *code, ProgramHandle *program) {
    for (int i = 0; i < program->name_count; i++)
        program->names[i] = (Made){.name = code->names[i],
                                   .value = value_absent(),
                                   .growing = code->growing[i],
                                   .before = code->before[i]};
    for (int i = 0; i < program->part_count; i++) {
        const PartCode *part = &code->parts[i];
        program->names[part->target].scalar = part->scalar;
        program->parts[i] = (Part){.target = part->target,
                                   .parameters = part->parameters,
                                   .parameter_count = part->parameter_count,
                                   .span = part->span,
                                   .function = EVAL(frame, part->function),
                                   .inputs = EVAL(frame, part->inputs),
                                   .seen = value_none()};
    }
    find_components(program);
}

static Value make_program(Frame *frame, const ProgramCode *code) {
    ProgramHandle *program = heap_allocate_rooted(sizeof *program);
    *program = (ProgramHandle){.interp = frame->interp,
                               .name = code->name,
                               .block = code->head.span.begin,
                               .semiring = code->semiring,
                               .iterations_max = ITERATIONS_DEFAULT,
                               .tolerance = tolerance_default,
                               .name_count = (int)code->name_count,
                               .named = (int)code->named,
                               .part_count = (int)code->part_count};
    program->names = heap_allocate_rooted((code->name_count + 1) * sizeof *program->names);
    program->parts = heap_allocate_rooted((code->part_count + 1) * sizeof *program->parts);
    fill_program(frame, code, program);
    Value handle = value_handle(&handle_program, program);
    if (read_settings(frame, code, program) == STATUS_OK) return handle;
    value_release(handle);
    return value_fail();
}

static Value eval_program(Frame *frame, const Code *head) {
    const ProgramCode *code = (const ProgramCode *)head;
    for (size_t i = 0; i < code->statement_count; i++) {
        SCOPED_VALUE(value) = EVAL(frame, code->statements[i]);
        if (failed(value)) return value;
    }
    return make_program(frame, code);
}

// --- lowering

static PartCode lower_part(Lowering *lowering, const ProgramEquation *equation) {
    size_t count = equation->function->as.function->parameter_count;
    PartCode part = {.target = equation->target,
                     .parameter_count = (int)count,
                     .parameters = lower_array(lowering, count + 1, sizeof(int)),
                     .scalar = equation->scalar,
                     .span = equation->span};
    memcpy(part.parameters, equation->parameters, count * sizeof(int));
    part.function = lower(lowering, equation->function);
    part.inputs = lower(lowering, equation->inputs);
    return part;
}

static void lower_parts(Lowering *lowering, const ProgramNode *program, ProgramCode *code) {
    code->names = lower_array(lowering, program->name_count + 1, sizeof *code->names);
    for (size_t i = 0; i < program->name_count; i++)
        code->names[i] = lower_word(lowering, &program->names[i]);
    code->growing = lower_array(lowering, program->name_count + 1, sizeof *code->growing);
    code->before = lower_array(lowering, program->name_count + 1, sizeof *code->before);
    for (size_t i = 0; i < program->name_count; i++) {
        code->growing[i] = program->growing[i];
        code->before[i] = program->before[i];
    }
    code->parts = lower_array(lowering, program->equation_count + 1, sizeof *code->parts);
    for (size_t i = 0; i < program->equation_count; i++)
        code->parts[i] = lower_part(lowering, &program->equations[i]);
    code->settings = lower_array(lowering, program->setting_count + 1, sizeof *code->settings);
    for (size_t i = 0; i < program->setting_count; i++) {
        code->settings[i].tolerance = strcmp(program->settings[i].name.text, "tolerance") == 0;
        code->settings[i].value = lower(lowering, program->settings[i].value);
    }
    code->statements =
        lower_array(lowering, program->statements.count + 1, sizeof *code->statements);
    for (size_t i = 0; i < program->statements.count; i++) {
        const Node *statement = program->statements.items[i];
        if (!node_is_clause(statement)) continue;
        code->statements[code->statement_count++] = lower(lowering, statement);
    }
}

const Code *lower_program(Lowering *lowering, const Node *node) {
    const ProgramNode *program = node->as.program;
    ProgramCode *code = LOWER_NEW(lowering, ProgramCode, eval_program, node->span);
    code->name = lower_word(lowering, &program->name);
    code->semiring = program->kind;
    code->name_count = program->name_count;
    code->named = program->named;
    code->part_count = program->equation_count;
    code->setting_count = program->setting_count;
    lower_parts(lowering, program, code);
    code->argument = lower(lowering, program->argument);
    return lower_store(lowering, program->binding, &code->head, node->span);
}
