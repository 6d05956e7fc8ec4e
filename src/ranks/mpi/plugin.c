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

static bool (*interrupted_by_user)(void);
static int rank_count, own_rank;

#define TRY_MPI(call)                                                                              \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != MPI_SUCCESS) return code_;                                                    \
    } while (0)

static int wait_for(MPI_Request *request) {
    enum { YIELDS = 2000 };
    const struct timespec pause = {.tv_nsec = 50000};
    int done = 0;
    for (int i = 0;; i++) {
        TRY_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
        if (done) return MPI_SUCCESS;
        if (interrupted_by_user()) return RANKS_INTERRUPTED;
        if (i < YIELDS)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
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
    return MPI_Comm_free(&machine);
}

static int plugin_end(void) {
    return MPI_Finalize();
}

static void plugin_abort(int status) {
    MPI_Abort(MPI_COMM_WORLD, status);
    _Exit(status);
}

// --- what is under way: messages of up to PIECE_BYTES

struct RanksExchange {
    MPI_Request *requests;
    int count, capacity;
    int receives; // of the first requests, which can be cancelled
};

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

static int exchange_blocks(RanksBlocks in, RanksBlocks out, int tag, RanksExchange **result) {
    *result = calloc(1, sizeof **result);
    return *result ? add_blocks(*result, in, out, tag) : MPI_ERR_NO_MEM;
}

static int all_gather(const void *in, void *out, size_t bytes, RanksExchange **result) {
    *result = calloc(1, sizeof **result);
    return *result ? add_all_gather(*result, in, out, bytes) : MPI_ERR_NO_MEM;
}

static int broadcast(void *data, size_t bytes, int root, RanksExchange **result) {
    *result = calloc(1, sizeof **result);
    return *result ? add_broadcast(*result, data, bytes, root) : MPI_ERR_NO_MEM;
}

static int reduce(void *data, size_t count, RanksNumber number, RanksFold fold,
                  RanksExchange **result) {
    enum { COUNT_MAX = PIECE_BYTES / 8 };
    const MPI_Datatype types[] = {MPI_FLOAT, MPI_DOUBLE, MPI_INT64_T};
    const MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN};
    RanksExchange *exchange = *result = calloc(1, sizeof **result);
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
    *result = calloc(1, sizeof **result);
    return *result ? add_send(*result, data, bytes, (Peer){to, tag}) : MPI_ERR_NO_MEM;
}

static int receive(void *data, size_t bytes, int from, int tag, RanksExchange **result) {
    *result = calloc(1, sizeof **result);
    return *result ? add_receive(*result, data, bytes, (Peer){from, tag}) : MPI_ERR_NO_MEM;
}

static int test(RanksExchange *exchange, bool *done) {
    int all;
    TRY_MPI(MPI_Testall(exchange->count, exchange->requests, &all, MPI_STATUSES_IGNORE));
    *done = all;
    return MPI_SUCCESS;
}

static int wait_for_all(RanksExchange *exchange) {
    for (int i = 0; i < exchange->count; i++) TRY_MPI(wait_for(&exchange->requests[i]));
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
