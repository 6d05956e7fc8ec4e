// Functions of the host as values: a handle that is called.
#include <stdlib.h>

#include "base/memory.h"
#include "embed/embed.h"

typedef struct HostFunction {
    tl_runtime *owner;
    tl_function function;
    void *context;
    void (*release)(void *context);
} HostFunction;

static void host_release(void *payload) {
    HostFunction *host = payload;
    if (host->release) host->release(host->context);
    free(host);
}

// The runtime's last error is what the function has failed with.
static Value fail_again(tl_runtime *owner) {
    const tl_error *error = tl_last_error(owner);
    (void)fail(STATUS_USER, "%s",
               error->message[0] ? error->message : "a function of the host failed");
    if (error->kind[0]) snprintf(error_current()->kind, ERROR_KIND_MAX, "%s", error->kind);
    if (error->help[0]) fail_help("%s", error->help);
    return value_fail();
}

static Value take_result(tl_runtime *owner, tl_value *result) {
    if (!result) return value_none();
    Value value = value_fail();
    if (embed_take(owner, &result, 1, &value)) value_retain(value);
    tl_release(result);
    return value;
}

static Value host_call(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    (void)interp;
    const HostFunction *host = handle->payload;
    tl_value *given[count + 1], *result = NULL;
    given[count] = NULL;
    for (size_t i = 0; i < count; i++)
        given[i] = embed_give(host->owner, value_retain(arguments[i]));
    if (host->owner->failed) failed_free(host->owner->failed);
    host->owner->failed = NULL;
    tl_status status = host->function(host->context, host->owner, given, count, &result);
    for (size_t i = 0; i < count; i++) tl_release(given[i]);
    if (status == TL_OK) return take_result(host->owner, result);
    tl_release(result);
    return fail_again(host->owner);
}

static const HandleType handle_host_function = {
    .name = "function", .release = host_release, .call = host_call};

tl_value *tl_from_function(tl_runtime *runtime, tl_function function, void *context,
                           void (*release)(void *context)) {
    Entry entry = embed_enter(runtime);
    HostFunction *host = memory_allocate(sizeof *host);
    *host = (HostFunction){runtime, function, context, release};
    tl_value *value = embed_give(runtime, value_handle(&handle_host_function, host));
    embed_leave(entry);
    return value;
}
