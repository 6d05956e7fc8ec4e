// Files at run time: globals, the order of lowering, imports.
#include "eval/modules.h"

#include <stdlib.h>

#include "eval/upper.h"
#include "value/object.h"

static Lowering lowering_of(Interp *interp, Program *program) {
    return (Lowering){.interp = interp, .program = program, .arena = &interp->store->arena};
}

static ModuleState *module_new(Interp *interp, Program *program) {
    ModuleState *module = arena_allocate(&interp->store->arena, sizeof *module);
    module->program = program;
    module->globals = heap_allocate_rooted((program->globals.count + 1) * sizeof(Value));
    ASSERT(program->top != NULL);
    for (size_t i = 0; i < program->globals.count; i++) {
        module->globals[i] = value_absent();
        Binding *variable = program->globals.items[i];
        if (!variable->lowered) variable->lowered = &module->globals[i]; // a session's have a place
    }
    VECTOR_PUSH(&interp->modules, module);
    return module;
}

static void declare_functions(Lowering *lowering, const NodeList *statements) {
    for (size_t i = 0; i < statements->count; i++) {
        if (statements->items[i]->kind != NODE_FUNCTION) continue;
        const FunctionNode *function = statements->items[i]->as.function;
        FunctionCode *code = lower_function(lowering, function);
        code->value = value_function(code->name, code, 0);
        list_push(lowering->interp->store->roots->as.list, code->value);
        function->binding->lowered = code;
    }
}

static void define_functions(Lowering *lowering, const NodeList *statements) {
    for (size_t i = 0; i < statements->count; i++) {
        if (statements->items[i]->kind != NODE_FUNCTION) continue;
        const FunctionNode *function = statements->items[i]->as.function;
        lower_function_body(lowering, function->binding->lowered, function);
    }
}

static bool is_declaration(NodeKind kind) {
    return kind == NODE_FUNCTION || kind == NODE_STRUCT || kind == NODE_IMPL || kind == NODE_MAIN ||
           kind == NODE_TEST || kind == NODE_BENCH;
}

static void lower_top(Lowering *lowering, ModuleState *module, const NodeList *statements) {
    const Code **codes = lower_array(lowering, statements->count, sizeof *codes);
    size_t count = 0;
    for (size_t i = 0; i < statements->count; i++) {
        const Node *node = statements->items[i];
        if (!is_declaration(node->kind)) codes[count++] = lower(lowering, node);
        if (node->kind == NODE_MAIN) module->main = module_section(lowering->interp, module, node);
    }
    module->statements = codes;
    module->statement_count = count;
}

static const NodeList *statements_of(const ModuleState *module) {
    return &module->program->top->as.block.statements;
}

ModuleState *modules_lower(Interp *interp, Program *program) {
    size_t first = interp->modules.count;
    for (size_t i = 0; i < program->imported.count; i++)
        module_new(interp, program->imported.items[i]);
    ModuleState *root = module_new(interp, program);
    for (size_t i = first; i < interp->modules.count; i++) {
        Lowering lowering = lowering_of(interp, interp->modules.items[i]->program);
        lower_logic_declare(&lowering, lowering.program);
    }
    typedef void (*Phase)(Lowering * lowering, const NodeList *statements);
    static const Phase phases[] = {declare_functions, lower_types_declare, lower_types_define,
                                   define_functions};
    for (size_t phase = 0; phase < sizeof phases / sizeof *phases; phase++) {
        for (size_t i = first; i < interp->modules.count; i++) {
            ModuleState *module = interp->modules.items[i];
            Lowering lowering = lowering_of(interp, module->program);
            phases[phase](&lowering, statements_of(module));
        }
    }
    for (size_t i = first; i < interp->modules.count; i++) {
        Lowering lowering = lowering_of(interp, interp->modules.items[i]->program);
        lower_logic_rules(&lowering, lowering.program);
    }
    for (size_t i = first; i < interp->modules.count; i++) {
        ModuleState *module = interp->modules.items[i];
        Lowering lowering = lowering_of(interp, module->program);
        lower_top(&lowering, module, statements_of(module));
    }
    return root;
}

const FunctionCode *module_section(Interp *interp, const ModuleState *module, const Node *section) {
    ASSERT(section->kind == NODE_MAIN || section->kind == NODE_TEST || section->kind == NODE_BENCH);
    Lowering lowering = lowering_of(interp, module->program);
    const FunctionNode *node = section->as.section.function;
    FunctionCode *code = lower_function(&lowering, node);
    const char *name = section->as.section.name.text;
    code->title = section->kind == NODE_MAIN    ? "main"
                  : section->kind == NODE_BENCH ? lower_text(&lowering, "bench %s", name)
                                                : lower_text(&lowering, "test %s", name);
    lower_function_body(&lowering, code, node);
    return code;
}

Value module_run(Interp *interp, ModuleState *module) {
    if (module->started) return value_none();
    module->started = true;
    int slot_count = module->program->slot_count;
    ASSERT(slot_count >= 0);
    Value slots[slot_count + 1], value = value_none();
    for (int i = 0; i < slot_count; i++) slots[i] = value_absent();
    Frame frame = {.slots = slots, .interp = interp};
    for (size_t i = 0; i < module->statement_count && !failed(value); i++) {
        value_release(value);
        value = EVAL(&frame, module->statements[i]);
        if (LIKELY(!interp_interrupts()) || failed(value)) continue;
        value_release(value);
        value = interp_fail_interrupted(module->statements[i]->span);
    }
    slots_release(&frame, 0, slot_count);
    return value;
}

typedef struct ImportCode {
    Code head;
    ModuleState *module;
} ImportCode;

static Value eval_import(Frame *frame, const Code *code) {
    Value value = module_run(frame->interp, ((const ImportCode *)code)->module);
    if (failed(value)) {
        trace_add(frame->interp, "an import", code->span.begin);
        return value;
    }
    value_release(value);
    return value_none();
}

const Code *lower_import(Lowering *lowering, const Node *node) {
    ASSERT(node->kind == NODE_IMPORT);
    ImportCode *code = LOWER_NEW(lowering, ImportCode, eval_import, node->span);
    for (size_t i = 0; i < lowering->interp->modules.count; i++) {
        ModuleState *module = lowering->interp->modules.items[i];
        if (module->program == node->as.import.program) code->module = module;
    }
    ASSERT(code->module);
    return &code->head;
}

void module_clear(Interp *interp, ModuleState *module) {
    Frame frame = {.slots = module->globals, .interp = interp};
    slots_release(&frame, 0, (int)module->program->globals.count);
}

void modules_clear(Interp *interp, size_t first) {
    for (size_t i = interp->modules.count; i-- > first;)
        module_clear(interp, interp->modules.items[i]);
}

void modules_free(Interp *interp, size_t first) {
    ASSERT(first <= interp->modules.count);
    while (interp->modules.count > first)
        heap_free(interp->modules.items[--interp->modules.count]->globals);
    if (first == 0) VECTOR_FREE(&interp->modules);
}
