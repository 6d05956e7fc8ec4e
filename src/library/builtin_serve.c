// serve: a model over HTTP.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/foretell.h"
#include "eval/invoke.h"
#include "model/model.h"
#include "serve/server.h"
#include "value/builtin.h"
#include "value/convert.h"
#include "value/handles.h"

// The arguments in the order of the signature.
enum { MODEL, VARIANTS, HOST, PORT, KEY, NAME, BATCH, QUEUE, BODY_LIMIT, ON_READY };

static Status tell_port(void *context, int port) {
    const BuiltinCall *call = context;
    if (call->arguments[ON_READY].kind == VALUE_ABSENT) return STATUS_OK;
    Value argument = value_int(port);
    SCOPED_VALUE(result) = interp_call(call->interp, call->arguments[ON_READY], &argument, 1);
    if (result.kind == VALUE_FAIL)
        return error_current()->code == STATUS_OK ? STATUS_INTERRUPT : error_current()->code;
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

static size_t variant_count(const BuiltinCall *call) {
    const Value *variants = &call->arguments[VARIANTS];
    return variants->kind == VALUE_DICT ? dict_count(variants->as.dict) : 0;
}

// The model itself and its variants, in one list that is the caller's to free.
static Status gather_models(const BuiltinCall *call, const char *name, ServedModel **out) {
    size_t count = variant_count(call);
    ServedModel *models = memory_allocate_zeroed(count + 1, sizeof *models);
    models[0] = (ServedModel){name, call->arguments[MODEL]};
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        Value key, item;
        dict_entry(call->arguments[VARIANTS].as.dict, i, &key, &item);
        if (key.kind != VALUE_STRING)
            status = fail_kind("a name of variants", "a string", key);
        else if (item.kind != VALUE_HANDLE || item.as.handle->type != &handle_model)
            status = fail_kind("each of variants", "a model", item);
        else if (strcmp(key.as.string->bytes, name) == 0)
            status = fail(STATUS_VALUE, "a variant has the name of the model itself, \"%s\"", name);
        else
            models[i + 1] = (ServedModel){key.as.string->bytes, item};
    }
    *out = models;
    return status;
}

static Status serve_all(const BuiltinCall *call, const char *name, const ServeOptions *options) {
    ServedModel *models;
    Status status = gather_models(call, name, &models);
    if (status == STATUS_OK && !foretelling()) // nobody asks a program that is foretold
        status = serve_models(call->interp, models, variant_count(call) + 1, options);
    free(models);
    return status;
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
        .batch = (size_t)batch,
        .queue = (size_t)queue,
        .body_limit = (size_t)body_limit,
        .ready = tell_port,
        .context = call,
    };
    TRY_VALUE(serve_all(call, named ? arguments[NAME].as.string->bytes : own_name(call), &options));
    return value_none();
}
