// Bytes between ranks by MPI. Waiting is testing until it is done, so that an interrupt ends it and
// ranks that share a processor give it to each other.
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ranks/plugin.h"

enum { PIECE_BYTES = 1 << 30 }; // counts of MPI are ints

struct RanksExchange {
    MPI_Request *requests;
    int count, capacity;
    int receives;   // of the first requests, which can be cancelled
    int partner;    // the one rank that it is with, or -1
    int64_t gather; // its number, or 0
};

static bool (*interrupted_by_user)(void);
static int rank_count, own_rank;

#define TRY_MPI(call)                                                                              \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != MPI_SUCCESS) return code_;                                                    \
    } while (0)

// --- what can never come
// A rank that waits long tells the others again and again what for: a gather, which needs all, or
// one rank alone. Who waits for a rank that waits, by way of others or not, for itself waits for
// nothing.

enum { WAITS_FOR_NOTHING = 0 }; // below: for rank -1 - waits; above: in the gather of that number

typedef struct Heard {
    int64_t waits;
    int times; // one after the other, since this rank waits itself
    double last_s;
} Heard;

enum { TIMES_STUCK = 4, FEW_RANKS = 16 };
static struct {
    MPI_Comm all;
    double pause_s;  // between two notices
    int64_t gathers; // that this rank has started; every rank starts them in the same order
    int64_t told;
    double told_s;
    Heard *heard;      // by rank
    MPI_Request *news; // by rank
} notices;

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int begin_notices(void) {
    notices.pause_s = rank_count > FEW_RANKS ? 0.5 * rank_count / FEW_RANKS : 0.5;
    notices.heard = calloc((size_t)rank_count, sizeof *notices.heard);
    notices.news = malloc((size_t)rank_count * sizeof *notices.news);
    if (!notices.heard || !notices.news) return MPI_ERR_NO_MEM;
    for (int i = 0; i < rank_count; i++) notices.news[i] = MPI_REQUEST_NULL;
    return MPI_Comm_dup(MPI_COMM_WORLD, &notices.all);
}

// Many that come at once are one: they may be old.
static void note(Heard *one, int64_t waits, double now) {
    if (waits != one->waits) one->times = 0;
    if (one->times == 0 || now - one->last_s > notices.pause_s / 2) one->times++;
    one->waits = waits;
    one->last_s = now;
}

static int take_notices(double now) {
    for (;;) {
        MPI_Status from;
        int64_t waits;
        int there;
        TRY_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 0, notices.all, &there, &from));
        if (!there) return MPI_SUCCESS;
        TRY_MPI(
            MPI_Recv(&waits, 1, MPI_INT64_T, from.MPI_SOURCE, 0, notices.all, MPI_STATUS_IGNORE));
        note(&notices.heard[from.MPI_SOURCE], waits, now);
    }
}

static int tell(int64_t waits, double now) {
    int done;
    TRY_MPI(MPI_Testall(rank_count, notices.news, &done, MPI_STATUSES_IGNORE));
    if (!done) return MPI_SUCCESS; // next time
    notices.told = waits;
    notices.told_s = now;
    for (int i = 0; i < rank_count; i++)
        if (i != own_rank)
            TRY_MPI(MPI_Isend(&notices.told, 1, MPI_INT64_T, i, 0, notices.all, &notices.news[i]));
    return MPI_SUCCESS;
}

// Whether `rank` waits, by way of others or not, for this one, and has said so until now.
static bool waits_for_this(int rank, double now) {
    for (int steps = 0; steps < rank_count && rank != own_rank; steps++) {
        const Heard *next = &notices.heard[rank];
        bool lasts = next->times >= TIMES_STUCK && now - next->last_s < 1.5 * notices.pause_s;
        if (!lasts || next->waits == WAITS_FOR_NOTHING) return false;
        if (next->waits > 0) return next->waits > notices.gathers;
        rank = (int)(-1 - next->waits);
    }
    return rank == own_rank;
}

static int look_around(const RanksExchange *exchange, double since_s) {
    double now = now_s();
    int64_t waits = exchange->partner >= 0 ? -1 - exchange->partner : exchange->gather;
    if (waits == WAITS_FOR_NOTHING || now - since_s < notices.pause_s) return MPI_SUCCESS;
    if (now - notices.told_s > notices.pause_s) TRY_MPI(tell(waits, now));
    TRY_MPI(take_notices(now));
    bool stuck = exchange->partner >= 0 && waits_for_this(exchange->partner, now);
    return stuck ? RANKS_STUCK : MPI_SUCCESS;
}

static int wait_long(const RanksExchange *exchange, MPI_Request *request) {
    const struct timespec pause = {.tv_nsec = 50000};
    double since_s = now_s();
    for (int i = 0; i < rank_count; i++) notices.heard[i].times = 0;
    for (int done = 0; !done;) {
        nanosleep(&pause, NULL);
        TRY_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (!done && interrupted_by_user()) return RANKS_INTERRUPTED;
        if (!done) TRY_MPI(look_around(exchange, since_s));
    }
    return MPI_SUCCESS;
}

static int wait_for(const RanksExchange *exchange, MPI_Request *request) {
    enum { YIELDS = 2000 };
    for (int i = 0; i < YIELDS; i++) {
        int done;
        TRY_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (done) return MPI_SUCCESS;
        if (interrupted_by_user()) return RANKS_INTERRUPTED;
        sched_yield();
    }
    return wait_long(exchange, request);
}

static int plugin_begin(bool (*interrupted)(void), int *rank, int *size, int *local_rank) {
    int given;
    MPI_Comm machine;
    interrupted_by_user = interrupted;
    TRY_MPI(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    TRY_MPI(MPI_Comm_rank(MPI_COMM_WORLD, rank));
    TRY_MPI(MPI_Comm_size(MPI_COMM_WORLD, size));
    TRY_MPI(
        MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, *rank, MPI_INFO_NULL, &machine));
    TRY_MPI(MPI_Comm_rank(machine, local_rank));
    own_rank = *rank;
    rank_count = *size;
    TRY_MPI(MPI_Comm_free(&machine));
    return begin_notices();
}

static int plugin_end(void) {
    TRY_MPI(take_notices(now_s()));
    return MPI_Finalize();
}

static void plugin_abort(int status) {
    MPI_Abort(MPI_COMM_WORLD, status);
    _Exit(status);
}

// --- what is under way: messages of up to PIECE_BYTES

typedef struct Peer {
    int rank, tag;
} Peer;

// The next request; NULL without memory.
static MPI_Request *request_of(RanksExchange *exchange) {
    if (exchange->count == exchange->capacity) {
        int capacity = 2 * exchange->capacity + 4;
        MPI_Request *more = realloc(exchange->requests, (size_t)capacity * sizeof *more);
        if (!more) return NULL;
        exchange->requests = more;
        exchange->capacity = capacity;
    }
    return &exchange->requests[exchange->count];
}

// A message more: `call` says what becomes of `request`.
#define ADD_REQUEST(exchange, call)                                                                \
    do {                                                                                           \
        MPI_Request *request = request_of(exchange);                                               \
        if (!request) return MPI_ERR_NO_MEM;                                                       \
        TRY_MPI(call);                                                                             \
        (exchange)->count++;                                                                       \
    } while (0)

static int piece_at(size_t bytes, size_t at) {
    return (int)(bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES);
}

static int add_receive(RanksExchange *exchange, char *data, size_t bytes, Peer from) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES)
        ADD_REQUEST(exchange, MPI_Irecv(data + at, piece_at(bytes, at), MPI_BYTE, from.rank,
                                        from.tag, MPI_COMM_WORLD, request));
    exchange->receives = exchange->count;
    return MPI_SUCCESS;
}

static int add_send(RanksExchange *exchange, const char *data, size_t bytes, Peer to) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES)
        ADD_REQUEST(exchange, MPI_Isend(data + at, piece_at(bytes, at), MPI_BYTE, to.rank, to.tag,
                                        MPI_COMM_WORLD, request));
    return MPI_SUCCESS;
}

static int add_broadcast(RanksExchange *exchange, char *data, size_t bytes, int root) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES)
        ADD_REQUEST(exchange, MPI_Ibcast(data + at, piece_at(bytes, at), MPI_BYTE, root,
                                         MPI_COMM_WORLD, request));
    return MPI_SUCCESS;
}

static int add_all_gather(RanksExchange *exchange, const char *in, char *out, size_t bytes) {
    if (bytes <= PIECE_BYTES) {
        ADD_REQUEST(exchange, MPI_Iallgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE,
                                             MPI_COMM_WORLD, request));
        return MPI_SUCCESS;
    }
    memcpy(out + (size_t)own_rank * bytes, in, bytes);
    for (int i = 0; i < rank_count; i++)
        TRY_MPI(add_broadcast(exchange, out + (size_t)i * bytes, bytes, i));
    return MPI_SUCCESS;
}

// Blocks lie in the order of ranks. This rank's own is copied.
static int add_blocks(RanksExchange *exchange, RanksBlocks in, RanksBlocks out, int tag) {
    size_t own_in = 0, own_out = 0, at = 0;
    for (int i = 0; i < rank_count; at += out.bytes[i++]) {
        if (i == own_rank)
            own_out = at;
        else
            TRY_MPI(add_receive(exchange, (char *)out.data + at, out.bytes[i], (Peer){i, tag}));
    }
    at = 0;
    for (int i = 0; i < rank_count; at += in.repeated ? 0 : in.bytes[i], i++) {
        if (i == own_rank)
            own_in = at;
        else
            TRY_MPI(add_send(exchange, (const char *)in.data + at, in.bytes[i], (Peer){i, tag}));
    }
    if (!out.skips_own)
        memcpy((char *)out.data + own_out, (const char *)in.data + own_in, in.bytes[own_rank]);
    return MPI_SUCCESS;
}

static RanksExchange *new_exchange(int partner) {
    RanksExchange *exchange = calloc(1, sizeof *exchange);
    if (exchange) exchange->partner = partner;
    return exchange;
}

static int exchange_blocks(RanksBlocks in, RanksBlocks out, int tag, RanksExchange **result) {
    *result = new_exchange(-1);
    return *result ? add_blocks(*result, in, out, tag) : MPI_ERR_NO_MEM;
}

static int all_gather(const void *in, void *out, size_t bytes, RanksExchange **result) {
    *result = new_exchange(-1);
    if (!*result) return MPI_ERR_NO_MEM;
    (*result)->gather = ++notices.gathers;
    return add_all_gather(*result, in, out, bytes);
}

static int broadcast(void *data, size_t bytes, int root, RanksExchange **result) {
    *result = new_exchange(-1);
    return *result ? add_broadcast(*result, data, bytes, root) : MPI_ERR_NO_MEM;
}

static int reduce(void *data, size_t count, RanksNumber number, RanksFold fold,
                  RanksExchange **result) {
    enum { COUNT_MAX = PIECE_BYTES / 8 };
    const MPI_Datatype types[] = {MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T};
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    RanksExchange *exchange = *result = new_exchange(-1);
    if (!exchange) return MPI_ERR_NO_MEM;
    for (size_t at = 0; at < count; at += COUNT_MAX) {
        int part = (int)(count - at < COUNT_MAX ? count - at : COUNT_MAX);
        char *from = (char *)data + at * (number == RANKS_FLOAT32 ? 4 : 8);
        ADD_REQUEST(exchange, MPI_Iallreduce(MPI_IN_PLACE, from, part, types[number], ops[fold],
                                             MPI_COMM_WORLD, request));
    }
    return MPI_SUCCESS;
}

static int send(const void *data, size_t bytes, int to, int tag, RanksExchange **result) {
    *result = new_exchange(to);
    return *result ? add_send(*result, data, bytes, (Peer){to, tag}) : MPI_ERR_NO_MEM;
}

// What is long follows a head that has come: it is on its way.
static int receive(void *data, size_t bytes, int from, int tag, RanksExchange **result) {
    enum { HEAD_BYTES_MAX = 1024 };
    *result = new_exchange(bytes <= HEAD_BYTES_MAX ? from : -1);
    return *result ? add_receive(*result, data, bytes, (Peer){from, tag}) : MPI_ERR_NO_MEM;
}

static int test(RanksExchange *exchange, bool *done) {
    int all;
    TRY_MPI(MPI_Testall(exchange->count, exchange->requests, &all, MPI_STATUSES_IGNORE));
    *done = all;
    return MPI_SUCCESS;
}

static int wait_for_all(RanksExchange *exchange) {
    for (int i = 0; i < exchange->count; i++) TRY_MPI(wait_for(exchange, &exchange->requests[i]));
    return MPI_SUCCESS;
}

static bool drop(RanksExchange *exchange) {
    bool in_use = false;
    for (int i = 0; i < exchange->count; i++) {
        int done = 0;
        MPI_Request *request = &exchange->requests[i];
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) continue;
        if (i < exchange->receives) {
            MPI_Cancel(request);
            MPI_Wait(request, MPI_STATUS_IGNORE);
        } else {
            in_use = true; // sends and collectives cannot be taken back
        }
    }
    free(exchange->requests);
    free(exchange);
    return in_use;
}

static int wait_exchange(RanksExchange *exchange) {
    int code = wait_for_all(exchange);
    if (code == MPI_SUCCESS) drop(exchange);
    return code;
}

static void problem(int code, char *out, size_t size) {
    char words[MPI_MAX_ERROR_STRING];
    int length;
    if (MPI_Error_string(code, words, &length) != MPI_SUCCESS)
        snprintf(words, sizeof words, "MPI error %d", code);
    snprintf(out, size, "%s", words);
}

const RanksPlugin tl_ranks_plugin = {.begin = plugin_begin,
                                     .end = plugin_end,
                                     .abort = plugin_abort,
                                     .exchange = exchange_blocks,
                                     .all_gather = all_gather,
                                     .broadcast = broadcast,
                                     .reduce = reduce,
                                     .send = send,
                                     .receive = receive,
                                     .test = test,
                                     .wait = wait_exchange,
                                     .drop = drop,
                                     .problem = problem};
