// Many processes that run one program: who this one is, and what goes between them.
#include <limits.h>
#include <stdlib.h>

#include "base/memory.h"
#include "ranks/ranks.h"
#include "value/convert.h"

Value builtin_world_size(BuiltinCall *call) {
    (void)call;
    return value_int(ranks_count());
}

Value builtin_local_rank(BuiltinCall *call) {
    (void)call;
    return value_int(ranks_local());
}

// --- what is under way

typedef struct Transfer {
    RanksTransfer *running; // NULL once it has been waited for
    RanksCall call;
} Transfer;

static void transfer_release(void *payload) {
    Transfer *transfer = payload;
    if (transfer->running) ranks_transfer_free(transfer->running);
    free(transfer);
}

static void transfer_print(Handle *handle, Text *out) {
    const Transfer *transfer = handle->payload;
    text_format(out, "<transfer: %s>", ranks_call_name(transfer->call));
}

static const HandleType handle_transfer = {
    .name = "transfer", .release = transfer_release, .print = transfer_print};

static Value start_transfer(const RanksRequest *request, Tensor *x) {
    RanksTransfer *running;
    TRY_VALUE(ranks_start(request, x, &running));
    Transfer *transfer = memory_allocate(sizeof *transfer);
    *transfer = (Transfer){running, request->call};
    return value_handle(&handle_transfer, transfer);
}

static Value finish_transfer(Value value) {
    void *payload;
    TRY_VALUE(value_to_handle(value, &handle_transfer, "wait", &payload));
    Transfer *transfer = payload;
    if (!transfer->running)
        TRY_VALUE(fail(STATUS_VALUE, "wait: this %s has been waited for",
                       ranks_call_name(transfer->call)));
    Tensor *result;
    RanksTransfer *running = transfer->running;
    transfer->running = NULL;
    Status status = ranks_finish(running, &result);
    ranks_transfer_free(running);
    TRY_VALUE(status);
    return result ? value_tensor(result) : value_none();
}

// --- over tensors, and lists of them

typedef struct Collecting {
    RanksRequest request;
    bool waits;
} Collecting;

static Value collect_tensor(const Collecting *call, Value x) {
    Tensor *tensor, *result;
    TRY_VALUE(value_to_tensor(x, ranks_call_name(call->request.call), &tensor));
    if (!call->waits) {
        Value transfer = start_transfer(&call->request, tensor);
        tensor_release(tensor);
        return transfer;
    }
    Status status = ranks_collect(&call->request, tensor, &result);
    tensor_release(tensor);
    TRY_VALUE(status);
    return result ? value_tensor(result) : value_none();
}

// What becomes of each item of a list, or of the one value that it is.
typedef Value (*UseItem)(const Collecting *call, Value x);

static Value for_items(const Collecting *call, Value x, UseItem use, int depth) {
    enum { NESTING_MAX = 64 };
    if (x.kind != VALUE_LIST) return use(call, x);
    if (depth == NESTING_MAX)
        TRY_VALUE(fail(STATUS_DEPTH, "this is nested too deeply: it may contain itself"));
    Value list = value_list(x.as.list->count);
    for (size_t i = 0; i < x.as.list->count; i++) {
        Value item = for_items(call, x.as.list->items[i], use, depth + 1);
        if (item.kind == VALUE_FAIL) {
            value_release(list);
            return item;
        }
        list_push(list.as.list, item);
    }
    return list;
}

// A literal of numbers is a tensor already. `waits`: which of the arguments says so.
static Value collect(const BuiltinCall *call, RanksRequest request, int waits) {
    Collecting collecting = {request, call->arguments[waits].as.integer != 0};
    return for_items(&collecting, call->arguments[0], collect_tensor, 0);
}

static Value wait_for_one(const Collecting *call, Value x) {
    (void)call;
    return finish_transfer(x);
}

Value builtin_ranks_wait(BuiltinCall *call) {
    return for_items(NULL, call->arguments[0], wait_for_one, 0);
}

static Status reduction_of(const BuiltinCall *call, RanksRequest *request) {
    const char *name = call->arguments[1].as.string->bytes;
    request->reduction = ranks_reduction_find(name);
    if (request->reduction != RANKS_REDUCTION_COUNT) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: op must be sum, mean, prod, max or min, but it is \"%s\"",
                ranks_call_name(request->call), name);
}

// Ranks count in ints.
static int small(int64_t number) {
    return number < INT_MIN ? INT_MIN : number > INT_MAX ? INT_MAX : (int)number;
}

Value builtin_all_reduce(BuiltinCall *call) {
    RanksRequest request = {.call = RANKS_ALL_REDUCE, .fast = call->arguments[3].as.integer != 0};
    TRY_VALUE(reduction_of(call, &request));
    return collect(call, request, 2);
}

Value builtin_reduce_scatter(BuiltinCall *call) {
    RanksRequest request = {.call = RANKS_REDUCE_SCATTER};
    TRY_VALUE(reduction_of(call, &request));
    return collect(call, request, 2);
}

Value builtin_all_gather(BuiltinCall *call) {
    return collect(call, (RanksRequest){.call = RANKS_ALL_GATHER}, 1);
}

Value builtin_all_to_all(BuiltinCall *call) {
    return collect(call, (RanksRequest){.call = RANKS_ALL_TO_ALL}, 1);
}

Value builtin_broadcast(BuiltinCall *call) {
    RanksRequest request = {.call = RANKS_BROADCAST, .root = small(call->arguments[1].as.integer)};
    return collect(call, request, 2);
}

Value builtin_send(BuiltinCall *call) {
    RanksRequest request = {.call = RANKS_SEND,
                            .peer = small(call->arguments[1].as.integer),
                            .tag = small(call->arguments[2].as.integer)};
    return collect(call, request, 3);
}

Value builtin_recv(BuiltinCall *call) {
    RanksRequest request = {.call = RANKS_RECEIVE,
                            .peer = small(call->arguments[0].as.integer),
                            .tag = small(call->arguments[1].as.integer)};
    if (!call->arguments[2].as.integer) return start_transfer(&request, NULL);
    Tensor *result;
    TRY_VALUE(ranks_collect(&request, NULL, &result));
    return value_tensor(result);
}

Value builtin_barrier(BuiltinCall *call) {
    (void)call;
    TRY_VALUE(ranks_barrier());
    return value_none();
}
