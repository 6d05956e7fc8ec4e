// Functions that builtins make of functions: handles that hold two values.
#ifndef LIBRARY_CALLABLE_H
#define LIBRARY_CALLABLE_H

#include "value/value.h"

typedef struct Callable {
    Value first, second;
} Callable;

// A handle whose payload is a Callable that holds both; the type is made by CALLABLE_TYPE.
Value callable_new(const HandleType *type, Value first, Value second);
void callable_release(void *payload);
void callable_print(Handle *handle, Text *out);

#define CALLABLE_TYPE(function)                                                                    \
    { .name = "function", .release = callable_release, .print = callable_print, .call = (function) }

#endif
