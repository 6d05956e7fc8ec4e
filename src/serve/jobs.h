// The requests that are at work or wait, in the order in which they came.
#ifndef SERVE_JOBS_H
#define SERVE_JOBS_H

#include "generate/generation.h"
#include "serve/answer.h"
#include "serve/calls.h"
#include "serve/server.h"

enum { KEPT_MAX = 8 };

typedef struct ServedNetwork {
    const char *name; // by which clients choose it
    Network *network;
    Sequence *kept[KEPT_MAX]; // texts that were finished, the oldest first
    size_t kept_count;
} ServedNetwork;

typedef struct Job Job;

typedef struct Choice { // one text of a request
    Job *job;
    size_t index, scored_told; // tokens whose probabilities were sent
    size_t content_told;       // bytes that were sent, where calls are held back
    Generation *generation;
} Choice;

struct Job {
    HttpExchange *exchange;
    ServedNetwork *network;
    AnswerHead head;
    bool stream, usage;
    int64_t logprobs;
    const CallForm *form; // of calls in what is said; NULL: none are read
    json_t *tools;        // what may be called
    Choice *choices;
    size_t count, copies; // choices, of which so many are of one prompt
    Job *prev, *next;
};

typedef struct Server {
    const ServeOptions *options;
    Interp *interp;
    ServedNetwork *networks; // the first is of requests that name none
    size_t network_count;
    HttpServer *http;
    Job *jobs;
    int64_t number; // of requests so far
} Server;

// A request for texts: it is answered at once when something is wrong with it.
void job_begin(Server *server, ServedNetwork *network, HttpExchange *exchange,
               const ServeRequest *request);
void job_free(Server *server, Job *job);
// A token for each of the first texts, and answers for those that are finished.
void jobs_step(Server *server);
size_t jobs_waiting(const Server *server); // texts that are not finished

// Answers with the current error: the client's where its words are about what it asked.
void answer_failure(HttpExchange *exchange, const char *field);
// The ids of one text or list of ids.
Status server_encode(const Network *network, const json_t *prompt, TokenIds *out) MUST_USE;
// Whether a prompt is a list of prompts.
bool server_has_many(const json_t *prompt);

#endif
