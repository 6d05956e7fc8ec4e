// Vectors of texts.
#ifndef SERVE_EMBED_H
#define SERVE_EMBED_H

#include "serve/jobs.h"

// Vectors of texts, answered at once.
void embed_answer(const ServedNetwork *served, HttpExchange *exchange, const ServeRequest *request);

#endif
