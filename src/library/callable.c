#include "library/callable.h"

#include "value/heap.h"

Value callable_new(const HandleType *type, Value first, Value second) {
    Callable *callable = heap_allocate_rooted(sizeof *callable);
    callable->first = value_retain(first);
    callable->second = value_retain(second);
    return value_handle(type, callable);
}

void callable_release(void *payload) {
    Callable *callable = payload;
    value_release(callable->first);
    value_release(callable->second);
    heap_free(callable);
}

void callable_print(Handle *handle, Text *out) {
    (void)handle;
    text_append_string(out, "<function>");
}
