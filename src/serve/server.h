// A model as a server: chat, completions and embeddings of the OpenAI API, a page to talk on, and
// its health. All texts that are asked for go on together, each gets what it would get alone.
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

#include "eval/state.h"

// A value of kind model, with its hooks and adapters, and the name by which clients choose it.
typedef struct ServedModel {
    const char *name;
    Value model;
} ServedModel;

typedef struct ServeOptions {
    const char *host, *key; // key: NULL for none; borrowed
    int port;
    size_t batch, queue, body_limit; // texts at once; those that may wait; bytes of a request
    Status (*ready)(void *context, int port); // called when clients can come
    void *context;
} ServeOptions;

// Serves until it is interrupted: STATUS_INTERRUPT. The models are borrowed, at least one: the
// first is of requests that name none.
Status serve_models(Interp *interp, const ServedModel *models, size_t count,
                    const ServeOptions *options) MUST_USE;

#endif
