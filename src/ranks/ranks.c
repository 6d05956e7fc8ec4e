// Which rank this process is, the transport, and the agreement before each collective.
#include "ranks/ranks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "base/source.h"
#include "device/foretell.h"
#include "device/work.h"
#include "ranks/internal.h"

// A process is one rank, whatever runtimes it has.
static struct {
    const RanksPlugin *plugin; // NULL: alone
    int own, count, local;
    bool disagreed;  // the last agreement failed, on all ranks alike
    bool stopped;    // an agreement has interrupted all of them
    bool unknown;    // of the last agreement, some rank did not know the numbers
    bool is_speaker; // the first of those that were not at their end says so
    int transfers;   // that have been started
} ranks = {.count = 1};

int ranks_own(void) {
    return ranks.own;
}
int ranks_count(void) {
    return ranks.count;
}
int ranks_local(void) {
    return ranks.local;
}
bool ranks_have_met(void) {
    return ranks.plugin != NULL;
}
const RanksPlugin *ranks_plugin(void) {
    return ranks.plugin;
}

// --- what carries nothing

static int exchange_nothing(RanksBlocks in, RanksBlocks out, int tag, RanksExchange **exchange) {
    (void)in, (void)out, (void)tag;
    *exchange = NULL;
    return 0;
}

static int gather_nothing(const void *in, void *out, size_t bytes, RanksExchange **exchange) {
    (void)in, (void)out, (void)bytes;
    *exchange = NULL;
    return 0;
}

static int broadcast_nothing(void *data, size_t bytes, int root, RanksExchange **exchange) {
    (void)data, (void)bytes, (void)root;
    *exchange = NULL;
    return 0;
}

static int reduce_nothing(void *data, size_t count, RanksNumber number, RanksFold fold,
                          RanksExchange **exchange) {
    (void)data, (void)count, (void)number, (void)fold;
    *exchange = NULL;
    return 0;
}

static int send_nothing(const void *data, size_t bytes, int to, int tag, RanksExchange **exchange) {
    (void)data, (void)bytes, (void)to, (void)tag;
    *exchange = NULL;
    return 0;
}

static int receive_nothing(void *data, size_t bytes, int from, int tag, RanksExchange **exchange) {
    (void)data, (void)bytes, (void)from, (void)tag;
    *exchange = NULL;
    return 0;
}

static int test_nothing(RanksExchange *exchange, bool *done) {
    (void)exchange;
    *done = true;
    return 0;
}

static int wait_for_nothing(RanksExchange *exchange) {
    (void)exchange;
    return 0;
}

static bool drop_nothing(RanksExchange *exchange) {
    (void)exchange;
    return false;
}

const RanksPlugin *ranks_carrier(bool known) {
    static const RanksPlugin nothing = {.exchange = exchange_nothing,
                                        .all_gather = gather_nothing,
                                        .broadcast = broadcast_nothing,
                                        .reduce = reduce_nothing,
                                        .send = send_nothing,
                                        .receive = receive_nothing,
                                        .test = test_nothing,
                                        .wait = wait_for_nothing,
                                        .drop = drop_nothing};
    return known ? ranks.plugin : &nothing;
}

const char *ranks_call_name(RanksCall call) {
    static const char *const names[RANKS_CALL_COUNT] = {
        "all_reduce", "all_gather",    "reduce_scatter", "broadcast", "all_to_all",
        "send",       "recv",          "barrier",        "wait",      "a step",
        "the whole",  "the next line", "the end"};
    return names[call];
}

static const char *const reductions[RANKS_REDUCTION_COUNT] = {"sum", "mean", "prod", "max", "min"};

RanksReduction ranks_reduction_find(const char *name) {
    for (int i = 0; i < RANKS_REDUCTION_COUNT; i++)
        if (strcmp(name, reductions[i]) == 0) return (RanksReduction)i;
    return RANKS_REDUCTION_COUNT;
}

// --- the transport

// What mpirun, srun and their kin tell the processes that they start.
static bool started_as_one_of_several(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i])) return true;
    return false;
}

// Next to the program, as after a build, or where an installation puts it.
static void *open_plugin(void) {
    static const char *const places[] = {"libtl_mpi.so", "../lib/tl/libtl_mpi.so"};
    char program[PATH_MAX], path[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return NULL;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash) *slash = '\0';
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s/%s", program, places[i]);
        void *handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
        if (handle) return handle;
    }
    return NULL;
}

Status ranks_check(int code) {
    if (LIKELY(code == 0)) return STATUS_OK;
    if (code == RANKS_INTERRUPTED) return fail(STATUS_INTERRUPT, "interrupted");
    char words[512];
    ranks.plugin->problem(code, words, sizeof words);
    return fail(STATUS_DEVICE, "the other ranks cannot be reached: %s", words);
}

int ranks_new_tag(void) {
    int tag = RANKS_TAG_TRANSFERS + ranks.transfers;
    ranks.transfers = (ranks.transfers + 1) % (RANKS_TAG_PIECES - RANKS_TAG_TRANSFERS);
    return tag;
}

Status ranks_wait(int code, RanksExchange *exchange) {
    if (code == 0 && exchange) code = ranks.plugin->wait(exchange);
    if (code != 0 && exchange) (void)ranks.plugin->drop(exchange);
    return ranks_check(code);
}

Status ranks_gather(const void *own, void *all, size_t bytes) {
    RanksExchange *exchange = NULL;
    int code = ranks.plugin->all_gather(own, all, bytes, &exchange);
    return ranks_wait(code, exchange);
}

Status ranks_begin(void) {
    if (ranks.plugin || !started_as_one_of_several()) return STATUS_OK;
    void *handle = open_plugin();
    const RanksPlugin *plugin = handle ? dlsym(handle, RANKS_PLUGIN_SYMBOL) : NULL;
    if (!plugin) {
        const char *problem = dlerror();
        (void)fail(STATUS_DEVICE,
                   "this process was started as one of several ranks, but libtl_mpi.so "
                   "cannot be loaded: %s",
                   problem ? problem : "it is incomplete");
        return fail_help("on Debian and Ubuntu: apt install libopenmpi3, and build tl where "
                         "libopenmpi-dev is installed");
    }
    ranks.plugin = plugin;
    return ranks_check(
        plugin->begin(device_is_interrupted, &ranks.own, &ranks.count, &ranks.local));
}

// --- agreement

enum { PLACE_BYTES = 160 };

// What a rank is about to do, in bytes that are equal where ranks agree; then where it says so.
typedef struct Intent {
    int32_t call, reduction, fast, root, dtype, rank;
    int64_t dims[RANK_MAX], elements, pieces, transfer;
    double rate;
    char place[PLACE_BYTES];
    int32_t interrupted, unknown;
} Intent;

static Intent intent_of(const RanksRequest *request, const Tensor *x) {
    Intent intent;
    memset(&intent, 0, sizeof intent);
    intent.call = (int32_t)request->call;
    intent.reduction = (int32_t)request->reduction;
    intent.fast = request->fast;
    intent.root = (int32_t)request->root;
    intent.elements = request->elements;
    intent.pieces = request->pieces;
    intent.rate = request->rate;
    intent.transfer = request->transfer;
    intent.dtype = x ? (int32_t)tensor_dtype(x) : -1;
    intent.rank = x ? tensor_rank(x) : -1;
    for (int d = 0; x && d < tensor_rank(x); d++) intent.dims[d] = x->view.dims[d];
    intent.interrupted = request->may_stop && atomic_load(&runtime_current->signal_waits);
    intent.unknown = x && x->view.buffer && !foretell_knows(x->view.buffer);
    SourcePlace place = source_find(origin_current.at);
    if (place.file)
        snprintf(intent.place, sizeof intent.place, "%s:%d", place.file->name, place.line);
    return intent;
}

static void describe(Text *out, int rank, const Intent *intent) {
    text_format(out, "rank %d ", rank);
    if (intent->call == RANKS_END) {
        text_append_string(out, "has come to its end");
        return;
    }
    bool reduces = intent->call == RANKS_ALL_REDUCE || intent->call == RANKS_REDUCE_SCATTER;
    bool steps = intent->call == RANKS_STEP, gathers = intent->call == RANKS_GATHER;
    bool reads = intent->call == RANKS_LINE;
    text_format(out, "%s %s",
                steps     ? "makes"
                : gathers ? "needs"
                : reads   ? "reads"
                          : "calls",
                ranks_call_name((RanksCall)intent->call));
    if (gathers)
        text_format(out, " of parameter %lld with %lld values", (long long)intent->transfer,
                    (long long)intent->elements);
    if (steps)
        text_format(out, " of %lld parameter values in %lld pieces%s", (long long)intent->elements,
                    (long long)intent->pieces, intent->fast ? ", fast: true" : "");
    if (steps && intent->rate > 0) text_format(out, ", lr %g", intent->rate);
    if (reduces)
        text_format(out, "(\"%s\"%s)", reductions[intent->reduction],
                    intent->fast ? ", fast: true" : "");
    if (intent->rank >= 0) {
        text_format(out, " of %s[", dtype_name((DType)intent->dtype));
        for (int d = 0; d < intent->rank; d++)
            text_format(out, "%s%lld", d ? ", " : "", (long long)intent->dims[d]);
        text_append_string(out, "]");
    }
    if (intent->call == RANKS_WAIT)
        text_format(out, ", transfer %lld", (long long)intent->transfer);
    if (intent->call == RANKS_BROADCAST) text_format(out, " from rank %d", intent->root);
    if (intent->place[0]) text_format(out, " at %s", intent->place);
}

Status ranks_agree(const RanksRequest *request, const Tensor *x) {
    Intent own = intent_of(request, x);
    Intent *all = memory_allocate((size_t)ranks.count * sizeof *all);
    Status status = ranks_gather(&own, all, sizeof own);
    ranks.disagreed = false;
    for (int i = 1; i < ranks.count && status == STATUS_OK; i++) {
        if (memcmp(&all[0], &all[i], offsetof(Intent, place)) == 0) continue;
        int speaker = all[0].call == RANKS_END ? i : 0;
        ranks.disagreed = true;
        ranks.is_speaker = ranks.own == speaker;
        SCOPED_TEXT(words);
        describe(&words, 0, &all[0]);
        text_append_string(&words, ", ");
        describe(&words, i, &all[i]);
        status = fail(STATUS_VALUE, "the ranks disagree: %s", text_get(&words));
    }
    bool interrupted = false;
    ranks.unknown = false;
    for (int i = 0; i < ranks.count && status == STATUS_OK; i++) {
        interrupted |= all[i].interrupted != 0;
        ranks.unknown |= all[i].unknown != 0;
    }
    free(all);
    ranks.stopped = ranks.stopped || interrupted;
    return interrupted ? fail(STATUS_INTERRUPT, "interrupted") : status;
}

bool ranks_know(void) {
    return !ranks.unknown;
}

bool ranks_error_is_told_by_another(void) {
    return ranks.disagreed && !ranks.is_speaker;
}

void ranks_number_lines(Text *report) {
    if (ranks.count == 1) return;
    Text numbered = {0};
    for (const char *at = text_get(report); *at;) {
        size_t length = strcspn(at, "\n");
        text_format(&numbered, "[rank %d] %.*s\n", ranks.own, (int)length, at);
        at += length + (at[length] == '\n');
    }
    text_free(report);
    *report = numbered;
}

// The texts of all ranks, one after the other, on each of them.
static Status share_texts(const Text *own, Text *all) {
    size_t *lengths = memory_allocate((size_t)ranks.count * sizeof *lengths), length = 0;
    Status status = ranks_gather(&own->length, lengths, sizeof own->length);
    for (int i = 0; i < ranks.count && status == STATUS_OK; i++) length += lengths[i];
    SCOPED_MEMORY char *bytes = memory_allocate(length + 1);
    if (status == STATUS_OK) status = ranks_share_parts(text_get(own), lengths, RANKS_TAG, bytes);
    if (status == STATUS_OK) text_append(all, bytes, length);
    free(lengths);
    return status;
}

Status ranks_join_texts(Text *text) {
    if (!ranks.plugin) return STATUS_OK;
    SCOPED_TEXT(all);
    Status status = share_texts(text, &all);
    if (status == STATUS_OK) text_clear(text);
    if (status == STATUS_OK && ranks.own == 0) text_append(text, text_get(&all), all.length);
    return status;
}

void ranks_join_reports(int status, Text *report) {
    if (!ranks.plugin || ranks.count == 1) return;
    ranks_number_lines(report);
    // One that is at its end waits for those that have caught what it was missing from.
    if (status != 0 || ranks_meet(RANKS_END) != STATUS_OK) {
        error_clear(); // ranks_end says so
        return;
    }
    if (ranks_join_texts(report) != STATUS_OK) error_clear();
}

Status ranks_meet(RanksCall call) {
    if (!ranks.plugin) return STATUS_OK;
    Status status;
    while ((status = ranks_agree(&(RanksRequest){.call = call}, NULL)) == STATUS_VALUE)
        error_clear(); // the others see it in what they called
    return status;
}

Status ranks_any(bool own, bool *any) {
    *any = own;
    if (!ranks.plugin) return STATUS_OK;
    SCOPED_MEMORY bool *all = memory_allocate((size_t)ranks.count * sizeof *all);
    Status status = ranks_gather(&own, all, sizeof own);
    for (int i = 0; i < ranks.count && status == STATUS_OK; i++) *any |= all[i];
    return status;
}

void ranks_end(int status) {
    if (!ranks.plugin) return;
    if (status == 0 && ranks_agree(&(RanksRequest){.call = RANKS_END}, NULL) != STATUS_OK)
        status = EXIT_FAILURE;
    else if (ranks.stopped && ranks_agree(&(RanksRequest){.call = RANKS_END}, NULL) == STATUS_OK)
        status = 0; // all have come here
    error_clear();
    // Whoever says what is wrong needs a moment for it.
    if (ranks_error_is_told_by_another()) sleep(2);
    if (status != 0) ranks.plugin->abort(status);
    (void)ranks.plugin->end();
}

static Status broadcast_bytes(void *data, size_t bytes) {
    RanksExchange *exchange = NULL;
    int code = ranks.plugin->broadcast(data, bytes, 0, &exchange);
    return ranks_wait(code, exchange);
}

Status ranks_share_line(int *event, Text *line) {
    if (!ranks.plugin) return STATUS_OK;
    TRY(ranks_meet(RANKS_LINE));
    size_t head[] = {(size_t)*event, line->length};
    TRY(broadcast_bytes(head, sizeof head));
    SCOPED_MEMORY char *bytes = memory_allocate(head[1] + 1);
    if (ranks.own == 0) memcpy(bytes, text_get(line), head[1]);
    Status status = broadcast_bytes(bytes, head[1]);
    *event = (int)head[0];
    text_clear(line);
    if (status == STATUS_OK) text_append(line, bytes, head[1]);
    return status;
}

Status ranks_barrier(void) {
    return ranks.plugin ? ranks_agree(&(RanksRequest){.call = RANKS_BARRIER}, NULL) : STATUS_OK;
}
