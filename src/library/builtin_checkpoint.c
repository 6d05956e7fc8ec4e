// checkpoint(f): what f computes on the way is not kept for backward but computed again.
#include "eval/code.h"
#include "eval/invoke.h"
#include "learn/learn.h"
#include "library/callable.h"
#include "tensor/gradient/replay.h"
#include "tensor/gradient/tape.h"
#include "tensor/precision.h"
#include "tensor/random.h"
#include "value/convert.h"
#include "value/heap.h"

// The call, and the circumstances that it runs in again.
typedef struct Replay {
    Value function;
    RandomStream stream;
    RandomTraining training;
    DType precision;
    size_t count;
    Value arguments[];
} Replay;

static RandomTraining current_training(void) {
    RandomTraining training = random_set_training((RandomTraining){0});
    (void)random_set_training(training);
    return training;
}

static DType current_precision(void) {
    DType precision = precision_set(DTYPE_COUNT);
    (void)precision_set(precision);
    return precision;
}

static Replay *replay_new(Value function, const Value *arguments, size_t count) {
    Replay *replay = heap_allocate_rooted(sizeof *replay + count * sizeof *arguments);
    replay->function = value_retain(function);
    replay->stream = random_mark();
    replay->training = current_training();
    replay->precision = current_precision();
    replay->count = count;
    for (size_t i = 0; i < count; i++) replay->arguments[i] = value_retain(arguments[i]);
    return replay;
}

static void release_replay(void *data) {
    Replay *replay = data;
    value_release(replay->function);
    for (size_t i = 0; i < replay->count; i++) value_release(replay->arguments[i]);
    heap_free(replay);
}

// The results as tensors, new references.
static Status take_results(Value value, Tensor **results, int *count) {
    bool several = value.kind == VALUE_TUPLE;
    size_t given = several ? value.as.list->count : 1;
    bool fits = given >= 1 && given <= TAPE_REPLAY_RESULTS;
    *count = 0;
    for (size_t i = 0; i < given && fits; i++) {
        Value item = several ? value.as.list->items[i] : value;
        fits = item.kind == VALUE_TENSOR;
        if (fits) results[(*count)++] = tensor_retain(item.as.tensor);
    }
    if (fits) return STATUS_OK;
    while (*count > 0) tensor_release(results[--*count]);
    return fail_kind("checkpoint: what f gives", "a tensor or a tuple of up to 3", value);
}

static Status run_again(void *data, Tensor **results, int count) {
    const Replay *replay = data;
    RandomStream now = random_mark();
    RandomTraining training = random_set_training(replay->training);
    DType precision = precision_set(replay->precision);
    random_return(replay->stream);
    bool replays = learn_state()->replays;
    learn_state()->replays = true;
    Value value = interp_call(interp_running(), replay->function, replay->arguments, replay->count);
    learn_state()->replays = replays;
    random_return(now);
    (void)precision_set(precision);
    (void)random_set_training(training);
    if (failed(value)) return error_current()->code;
    int made;
    Status status = take_results(value, results, &made);
    value_release(value);
    TRY(status);
    if (made == count) return STATUS_OK;
    for (int i = 0; i < made; i++) tensor_release(results[i]);
    for (int i = 0; i < TAPE_REPLAY_RESULTS; i++) results[i] = NULL;
    return fail(STATUS_GRADIENT,
                "checkpoint: the function gave %d results, and %d when it ran again for its "
                "gradient",
                count, made);
}

static Value give_results(Tensor **results, int count, bool several) {
    if (!several) return value_tensor(results[0]);
    Value tuple = value_tuple((size_t)count);
    for (int i = 0; i < count; i++) list_push(tuple.as.list, value_tensor(results[i]));
    return tuple;
}

static Value call_checkpoint(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    Value function = ((const Callable *)handle->payload)->first;
    TapeMark mark = tape_mark();
    Replay *replay = replay_new(function, arguments, count);
    Value value = interp_call(interp, function, arguments, count);
    if (value.kind == VALUE_INT || value.kind == VALUE_FLOAT) { // nothing to go backward from
        release_replay(replay);
        return value;
    }
    Tensor *results[TAPE_REPLAY_RESULTS];
    int made;
    bool several = value.kind == VALUE_TUPLE;
    bool taken = !failed(value) && take_results(value, results, &made) == STATUS_OK;
    if (!failed(value)) value_release(value);
    if (!taken) {
        release_replay(replay);
        return value_fail();
    }
    TapeReplay record = {run_again, release_replay, replay};
    tape_record_replay(&record, mark, results, made);
    return give_results(results, made, several);
}

static const HandleType checkpoint_type = CALLABLE_TYPE(call_checkpoint);

Value builtin_checkpoint(BuiltinCall *call) {
    return callable_new(&checkpoint_type, call->arguments[0], value_none());
}
