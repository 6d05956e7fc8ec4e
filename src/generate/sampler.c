#include "generate/sampler.h"

#include <stdlib.h>

#include "base/memory.h"
#include "eval/bind.h"
#include "eval/invoke.h"
#include "tensor/compose.h"
#include "value/builtin.h"
#include "value/convert.h"
#include "value/print.h"

static const double GREEDY_TEMPERATURE = 1e-4; // at and below it nothing is drawn

// --- operations as functions

typedef struct Sampler {
    const Builtin *op;
    double argument;
} Sampler;

static void sampler_release(void *payload) {
    free(payload);
}

// Of an operation that looks at the text, the ids stand between the logits and the argument.
static bool takes_ids(const Builtin *op) {
    return op->signature.params[1].kind == PARAM_TENSOR;
}

static const Param *last_parameter(const Builtin *op) {
    return &op->signature.params[op->signature.count - 1];
}

static Value sampler_apply(Interp *interp, const Sampler *sampler, Value logits, Value ids) {
    bool integer = last_parameter(sampler->op)->kind == PARAM_INT;
    Value argument =
        integer ? value_int((int64_t)sampler->argument) : value_float(sampler->argument);
    if (takes_ids(sampler->op))
        return interp_call_builtin(interp, sampler->op, (Value[]){logits, ids, argument}, 3);
    return interp_call_builtin(interp, sampler->op, (Value[]){logits, argument}, 2);
}

static Value sampler_call(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    const Sampler *sampler = handle->payload;
    size_t wanted = takes_ids(sampler->op) ? 2 : 1;
    if (count == wanted) return sampler_apply(interp, sampler, arguments[0], arguments[count - 1]);
    return value_failed(fail(STATUS_ARITY, "the sampler %s takes %zu argument%s, but %zu are given",
                             sampler->op->signature.name, wanted, wanted == 1 ? "" : "s", count));
}

static void sampler_print(Handle *handle, Text *out) {
    const Sampler *sampler = handle->payload;
    text_format(out, "<sampler %s(%g)>", sampler->op->signature.name, sampler->argument);
}

static const HandleType handle_sampler = {
    .name = "sampler", .release = sampler_release, .print = sampler_print, .call = sampler_call};

Value sampler_new(const Builtin *op, Value argument) {
    double number;
    TRY_VALUE(value_to_double(argument, last_parameter(op)->name, &number));
    Sampler *sampler = memory_allocate(sizeof *sampler);
    *sampler = (Sampler){op, number};
    return value_handle(&handle_sampler, sampler);
}

// --- the chain

static Value ids_of(TextSoFar text) {
    Shape shape = {.rank = 1, .dims = {(int64_t)text.count}};
    Tensor *ids;
    TRY_VALUE(tensor_from_integers(text.ids, &shape, DTYPE_INT64, &ids));
    return value_tensor(ids);
}

static Value call_link(const Sampling *sampling, Value link, Value logits, TextSoFar text) {
    if (link.kind != VALUE_HANDLE || link.as.handle->type != &handle_sampler)
        return interp_call(sampling->interp, link, &logits, 1);
    SCOPED_VALUE(ids) = ids_of(text);
    if (ids.kind == VALUE_FAIL) return ids;
    return sampler_apply(sampling->interp, link.as.handle->payload, logits, ids);
}

static Status check_token(int64_t token, int64_t count) {
    if (token >= 0 && token < count) return STATUS_OK;
    return fail(STATUS_INDEX, "a sampler gives token %lld, but there are %lld", (long long)token,
                (long long)count);
}

// *token stays -1 while nothing has chosen one.
static Status take_result(Value result, Tensor **logits, int64_t *token) {
    if (result.kind == VALUE_FAIL)
        return error_current()->code == STATUS_OK ? STATUS_INTERRUPT : error_current()->code;
    int64_t count = tensor_count(*logits);
    bool number = result.kind == VALUE_INT ||
                  (result.kind == VALUE_TENSOR && tensor_rank(result.as.tensor) == 0);
    if (number) {
        Status status = value_to_int(result, "what a sampler gives", token);
        value_release(result);
        TRY(status);
        return check_token(*token, count);
    }
    if (result.kind == VALUE_TENSOR && tensor_rank(result.as.tensor) == 1 &&
        tensor_count(result.as.tensor) == count) {
        tensor_release(*logits);
        *logits = result.as.tensor;
        return STATUS_OK;
    }
    Status status = fail(STATUS_TYPE, "a sampler must give a token or %lld logits, but it gives %s",
                         (long long)count, value_text(result).text);
    value_release(result);
    return status;
}

static Status run_chain(const Sampling *sampling, TextSoFar text, Tensor **logits, int64_t *token) {
    const List *chain = sampling->chain.as.list;
    for (size_t i = 0; i < chain->count && *token < 0; i++) {
        Value argument = value_tensor(tensor_retain(*logits));
        Value result = call_link(sampling, chain->items[i], argument, text);
        value_release(argument);
        TRY(take_result(result, logits, token));
    }
    return STATUS_OK;
}

// --- the usual ones, and the draw

static Status apply(OpId op, const OpAttributes *attributes, Tensor **logits) {
    Tensor *narrowed = NULL;
    TRY(op_with(op, logits, 1, attributes, &narrowed));
    tensor_release(*logits);
    *logits = narrowed;
    return STATUS_OK;
}

static Status penalise(const Sampling *sampling, TextSoFar text, Tensor **logits) {
    bool wanted = sampling->presence != 0 || sampling->frequency != 0;
    if (!wanted || text.said == 0) return STATUS_OK;
    ASSERT(text.said <= text.count);
    Shape shape = {.rank = 1, .dims = {(int64_t)text.said}};
    OpAttributes presence = {.given = ATTRIBUTE_BIT(penalty), .penalty = sampling->presence};
    OpAttributes frequency = {.given = ATTRIBUTE_BIT(penalty), .penalty = sampling->frequency};
    SCOPED_TENSOR(ids);
    SCOPED_TENSOR(present);
    TRY(tensor_from_integers(text.ids + text.count - text.said, &shape, DTYPE_INT64, &ids));
    TRY(op_with(OP_presence_penalty, (Tensor *[]){*logits, ids}, 2, &presence, &present));
    tensor_release(*logits);
    *logits = NULL;
    return op_with(OP_frequency_penalty, (Tensor *[]){present, ids}, 2, &frequency, logits);
}

// The temperature shapes the probabilities before top_k and top_p choose among them.
static Status narrow(const Sampling *sampling, TextSoFar text, Tensor **logits) {
    TRY(penalise(sampling, text, logits));
    OpAttributes temperature = {.given = ATTRIBUTE_BIT(temperature),
                                .temperature = sampling->temperature};
    OpAttributes top_k = {.given = ATTRIBUTE_BIT(k), .k = sampling->top_k};
    OpAttributes top_p = {.given = ATTRIBUTE_BIT(p), .p = sampling->top_p};
    if (sampling->temperature > GREEDY_TEMPERATURE)
        TRY(apply(OP_temperature, &temperature, logits));
    if (sampling->top_k != -1) TRY(apply(OP_top_k, &top_k, logits));
    return sampling->top_p != 1 ? apply(OP_top_p, &top_p, logits) : STATUS_OK;
}

static Status draw(const Sampling *sampling, Tensor *logits, int64_t *out) {
    bool greedy = sampling->chain.kind == VALUE_NONE && sampling->temperature <= GREEDY_TEMPERATURE;
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(temperature),
                               .temperature = greedy ? 0.0 : 1.0};
    SCOPED_TENSOR(choice);
    TRY(op_with(OP_temperature_sample, &logits, 1, &attributes, &choice));
    return tensor_read_integers(choice, out);
}

static Status choose(const Sampling *sampling, Tensor *logits, TextSoFar text, int64_t *out) {
    SCOPED_TENSOR(narrowed);
    narrowed = tensor_retain(logits);
    *out = -1;
    TRY(sampling->chain.kind == VALUE_NONE ? narrow(sampling, text, &narrowed)
                                           : run_chain(sampling, text, &narrowed, out));
    return *out < 0 ? draw(sampling, narrowed, out) : STATUS_OK;
}

// The program's own random numbers go on untouched where a seed was given.
Status sampling_choose(Sampling *sampling, Tensor *logits, TextSoFar text, int64_t *out) {
    if (!sampling->has_seed) return choose(sampling, logits, text, out);
    RandomStream outer = random_mark();
    random_return(sampling->random);
    Status status = choose(sampling, logits, text, out);
    sampling->random = random_mark();
    random_return(outer);
    return status;
}
