// Models with something attached, and what looks into them: hooks, taps, adapters, samplers of one
// argument, logits of whole texts.
#include <stdlib.h>
#include <string.h>

#include "generate/attached.h"
#include "generate/sampler.h"
#include "generate/sequence.h"
#include "value/builtin.h"
#include "value/convert.h"

// --- logits, and rows of the last layer

typedef enum Wanted { WANT_LOGITS, WANT_STATES, WANT_ALL } Wanted; // all: what the model has

static Status compute(const Step *step, Wanted wanted, Tensor **out) {
    bool encodes = step->sequence->network->encodes;
    if (wanted == WANT_STATES || (wanted == WANT_ALL && encodes))
        return sequences_hidden(step, 1, out);
    return sequences_advance(step, 1, out);
}

static Status compute_all(const BuiltinCall *call, Wanted wanted, Tensor **out) {
    SCOPED_MEMORY int64_t *ids = NULL;
    size_t count = 0;
    Network *network = NULL;
    Sequence *sequence = NULL;
    Status status = value_to_ints(call->arguments[1], "ids", &ids, &count);
    if (status == STATUS_OK && count == 0)
        status = fail(STATUS_VALUE, "%s needs at least one id",
                      wanted == WANT_STATES ? "states" : "forward");
    if (status == STATUS_OK) status = network_open(call->interp, call->arguments[0], &network);
    if (status == STATUS_OK) status = network_check_ids(network, ids, count);
    if (status == STATUS_OK) status = sequence_new(network, &sequence);
    Step step = {sequence, ids, count, count, false};
    if (status == STATUS_OK) status = compute(&step, wanted, out);
    sequence_free(sequence);
    if (network) network_release(network);
    return status;
}

Value builtin_forward(BuiltinCall *call) {
    Tensor *logits = NULL;
    TRY_VALUE(compute_all(call, WANT_LOGITS, &logits));
    return value_tensor(logits);
}

Value builtin_states(BuiltinCall *call) {
    Tensor *states = NULL;
    TRY_VALUE(compute_all(call, WANT_STATES, &states));
    return value_tensor(states);
}

Value builtin_model_encodes(BuiltinCall *call) {
    Network *network;
    TRY_VALUE(network_open(call->interp, call->arguments[0], &network));
    bool encodes = network->encodes;
    network_release(network);
    return value_bool(encodes);
}

// --- hooks and adapters

Value builtin_hook(BuiltinCall *call) {
    return attached_with_hook(call->arguments[0], call->arguments[1], call->arguments[2]);
}

// Every part must be a pair under a string.
static Status check_parts(Value parts) {
    for (size_t i = 0; i < dict_count(parts.as.dict); i++) {
        Value key, item;
        dict_entry(parts.as.dict, i, &key, &item);
        if (key.kind != VALUE_STRING) return fail_kind("a name of parts", "a string", key);
        bool pair =
            (item.kind == VALUE_TUPLE || item.kind == VALUE_LIST) && item.as.list->count == 2;
        if (!pair) return fail_kind("each of parts", "a pair of matrices (down, up)", item);
    }
    return STATUS_OK;
}

Value builtin_adapt(BuiltinCall *call) {
    double scale;
    TRY_VALUE(check_parts(call->arguments[1]));
    TRY_VALUE(value_to_double(call->arguments[2], "scale", &scale));
    return attached_with_adapter(call->arguments[0], call->arguments[1], scale);
}

// --- taps

// A tap is a function of ids; its `attached` is (model, name). It runs the model with a hook that
// keeps what it sees.
static Value keep_call(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    (void)interp;
    (void)count;
    List *seen = handle->attached.as.list;
    list_push(seen, value_retain(arguments[0]));
    return value_none();
}

static const HandleType handle_keeper = {.name = "keeper", .call = keep_call};

static Value tap_run(Interp *interp, const List *tap, Value ids) {
    SCOPED_VALUE(seen) = value_list(1);
    SCOPED_VALUE(keeper) = value_handle_with(&handle_keeper, NULL, value_retain(seen));
    SCOPED_VALUE(model) = attached_with_hook(tap->items[0], tap->items[1], keeper);
    BuiltinCall call = {.interp = interp, .arguments = {model, ids}};
    Tensor *end = NULL;
    Status status = compute_all(&call, WANT_ALL, &end);
    tensor_release(end);
    Value result = value_fail();
    if (status == STATUS_OK) result = value_retain(seen.as.list->items[seen.as.list->count - 1]);
    return result;
}

static Value tap_call(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    if (count == 1) return tap_run(interp, handle->attached.as.list, arguments[0]);
    return value_failed(
        fail(STATUS_ARITY, "a tap takes 1 argument, the ids, but %zu are given", count));
}

static const HandleType handle_tap = {.name = "tap", .call = tap_call};

Value builtin_tap(BuiltinCall *call) {
    Value tap = value_tuple(2);
    list_push(tap.as.list, value_retain(call->arguments[0]));
    list_push(tap.as.list, value_retain(call->arguments[1]));
    return value_handle_with(&handle_tap, NULL, tap);
}

// --- samplers

static Value sampler_of(const BuiltinCall *call) {
    return sampler_new(catalog_find(call->row->signature.name, strlen(call->row->signature.name)),
                       call->arguments[0]);
}

Value builtin_sampler_temperature(BuiltinCall *call) {
    return sampler_of(call);
}
Value builtin_sampler_top_k(BuiltinCall *call) {
    return sampler_of(call);
}
Value builtin_sampler_top_p(BuiltinCall *call) {
    return sampler_of(call);
}
Value builtin_sampler_min_p(BuiltinCall *call) {
    return sampler_of(call);
}
Value builtin_sampler_typical_p(BuiltinCall *call) {
    return sampler_of(call);
}
Value builtin_sampler_repetition_penalty(BuiltinCall *call) {
    return sampler_of(call);
}
Value builtin_sampler_presence_penalty(BuiltinCall *call) {
    return sampler_of(call);
}
Value builtin_sampler_frequency_penalty(BuiltinCall *call) {
    return sampler_of(call);
}
