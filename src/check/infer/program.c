// Program blocks: the shapes of what equations give, each as soon as those it reads are known.
#include "check/infer/infer.h"

static const Fact *infer_part(Inference *in, const ProgramEquation *equation, const Fact **facts) {
    FunctionNode *function = equation->function->as.function;
    size_t count = function->parameter_count;
    InferArguments arguments = {.count = count, .positional = count};
    arguments.items = arena_allocate(&in->arena, (count + 1) * sizeof *arguments.items);
    arguments.names = arena_allocate(&in->arena, (count + 1) * sizeof *arguments.names);
    for (size_t i = 0; i < count; i++)
        arguments.items[i] = (Operand){.fact = facts[equation->parameters[i]]};
    return infer_call_function(in, function, function->name.text, equation->span, &arguments);
}

void infer_program_block(Inference *in, const ProgramNode *program) {
    const Fact **facts = arena_allocate(&in->arena, (program->name_count + 1) * sizeof *facts);
    for (size_t i = 0; i < program->name_count; i++) facts[i] = &fact_any;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < program->equation_count; i++) {
            const ProgramEquation *equation = &program->equations[i];
            const Fact *fact = infer_part(in, equation, facts);
            if (fact_has_shape(facts[equation->target]) || !fact_has_shape(fact)) continue;
            facts[equation->target] = fact;
            changed = true;
        }
    }
}
