// serve: a model over HTTP.
#include <string.h>

#include "device/foretell.h"
#include "eval/invoke.h"
#include "model/model.h"
#include "serve/server.h"
#include "value/builtin.h"
#include "value/convert.h"

// The arguments in the order of the signature.
enum { MODEL, HOST, PORT, KEY, NAME, BATCH, QUEUE, BODY_LIMIT, ON_READY };

static Status tell_port(void *context, int port) {
    const BuiltinCall *call = context;
    if (call->arguments[ON_READY].kind == VALUE_ABSENT) return STATUS_OK;
    Value argument = value_int(port);
    Value result = interp_call(call->interp, call->arguments[ON_READY], &argument, 1);
    if (result.kind == VALUE_FAIL)
        return error_current()->code == STATUS_OK ? STATUS_INTERRUPT : error_current()->code;
    value_release(result);
    return STATUS_OK;
}

static Status read_between(const BuiltinCall *call, int index, const char *name, int64_t high,
                           int64_t *out) {
    TRY(value_to_int(call->arguments[index], name, out));
    int64_t low = index == BATCH || index == BODY_LIMIT ? 1 : 0;
    if (*out >= low && *out <= high) return STATUS_OK;
    return fail(STATUS_VALUE, "%s is %lld; it must be from %lld to %lld", name, (long long)*out,
                (long long)low, (long long)high);
}

// The last part of the model's path.
static const char *own_name(const BuiltinCall *call) {
    const char *path = model_path(call->arguments[MODEL].as.handle->payload);
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

Value builtin_serve(BuiltinCall *call) {
    const Value *arguments = call->arguments;
    int64_t port, batch, queue, body_limit;
    TRY_VALUE(read_between(call, PORT, "port", 65535, &port));
    TRY_VALUE(read_between(call, BATCH, "batch", 1024, &batch));
    TRY_VALUE(read_between(call, QUEUE, "queue", 1 << 20, &queue));
    TRY_VALUE(read_between(call, BODY_LIMIT, "body_limit", INT64_C(1) << 32, &body_limit));
    bool has_key = arguments[KEY].kind == VALUE_STRING,
         named = arguments[NAME].kind == VALUE_STRING;
    ServeOptions options = {
        .host = arguments[HOST].as.string->bytes,
        .port = (int)port,
        .key = has_key ? arguments[KEY].as.string->bytes : NULL,
        .name = named ? arguments[NAME].as.string->bytes : own_name(call),
        .batch = (size_t)batch,
        .queue = (size_t)queue,
        .body_limit = (size_t)body_limit,
        .ready = tell_port,
        .context = call,
    };
    if (foretelling()) return value_none(); // nobody asks
    TRY_VALUE(serve_model(call->interp, arguments[MODEL], &options));
    return value_none();
}
