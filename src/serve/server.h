// A model as a server: chat, completions and embeddings of the OpenAI API, a page to talk on, and
// its health. All texts that are asked for go on together, each gets what it would get alone.
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "eval/state.h"

typedef struct ServeOptions {
    const char *host, *name, *key; // key: NULL for none; borrowed
    int port;
    size_t batch, queue, body_limit; // texts at once; those that may wait; bytes of a request
    Status (*ready)(void *context, int port); // called when clients can come
    void *context;
} ServeOptions;

// Serves until it is interrupted: STATUS_INTERRUPT. `model` is a value of kind model, borrowed.
Status serve_model(Interp *interp, Value model, const ServeOptions *options) MUST_USE;

#endif
