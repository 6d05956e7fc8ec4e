// Many processes that run one program: who this one is, and what goes between them.
#include <limits.h>

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

static Value collect_tensor(const RanksRequest *request, Value x) {
    Tensor *tensor, *result;
    TRY_VALUE(value_to_tensor(x, ranks_call_name(request->call), &tensor));
    Status status = ranks_collect(request, tensor, &result);
    tensor_release(tensor);
    TRY_VALUE(status);
    return value_tensor(result);
}

// A tensor or number, or a list of them one by one: a literal of numbers is a tensor already.
static Value collect_nested(const RanksRequest *request, Value x, int depth) {
    enum { NESTING_MAX = 64 };
    if (x.kind != VALUE_LIST) return collect_tensor(request, x);
    if (depth == NESTING_MAX)
        TRY_VALUE(fail(STATUS_DEPTH, "this is nested too deeply: it may contain itself"));
    Value list = value_list(x.as.list->count);
    for (size_t i = 0; i < x.as.list->count; i++) {
        Value item = collect_nested(request, x.as.list->items[i], depth + 1);
        if (item.kind == VALUE_FAIL) {
            value_release(list);
            return item;
        }
        list_push(list.as.list, item);
    }
    return list;
}

static Value collect(const RanksRequest *request, Value x) {
    return collect_nested(request, x, 0);
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
    RanksRequest request = {.call = RANKS_ALL_REDUCE};
    TRY_VALUE(reduction_of(call, &request));
    return collect(&request, call->arguments[0]);
}

Value builtin_reduce_scatter(BuiltinCall *call) {
    RanksRequest request = {.call = RANKS_REDUCE_SCATTER};
    TRY_VALUE(reduction_of(call, &request));
    return collect_tensor(&request, call->arguments[0]);
}

Value builtin_all_gather(BuiltinCall *call) {
    return collect_tensor(&(RanksRequest){.call = RANKS_ALL_GATHER}, call->arguments[0]);
}

Value builtin_all_to_all(BuiltinCall *call) {
    return collect_tensor(&(RanksRequest){.call = RANKS_ALL_TO_ALL}, call->arguments[0]);
}

Value builtin_broadcast(BuiltinCall *call) {
    RanksRequest request = {.call = RANKS_BROADCAST, .root = small(call->arguments[1].as.integer)};
    return collect(&request, call->arguments[0]);
}

Value builtin_send(BuiltinCall *call) {
    Tensor *tensor;
    TRY_VALUE(value_to_tensor(call->arguments[0], "send: x", &tensor));
    Status status = ranks_send(tensor, small(call->arguments[1].as.integer),
                               small(call->arguments[2].as.integer));
    tensor_release(tensor);
    TRY_VALUE(status);
    return value_none();
}

Value builtin_recv(BuiltinCall *call) {
    Tensor *tensor;
    TRY_VALUE(ranks_receive(small(call->arguments[0].as.integer),
                            small(call->arguments[1].as.integer), &tensor));
    return value_tensor(tensor);
}

Value builtin_barrier(BuiltinCall *call) {
    (void)call;
    TRY_VALUE(ranks_barrier());
    return value_none();
}
