// Bytes between ranks by MPI. Calls are non-blocking ones that are tested until they are done, so
// that an interrupt ends the wait and ranks that share a processor give it to each other.
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

static int broadcast(void *data, size_t bytes, int root) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        MPI_Request request;
        TRY_MPI(
            MPI_Ibcast((char *)data + at, (int)piece, MPI_BYTE, root, MPI_COMM_WORLD, &request));
        TRY_MPI(wait_for(&request));
    }
    return MPI_SUCCESS;
}

static int all_gather(const void *in, void *out, size_t bytes) {
    if (bytes <= PIECE_BYTES) {
        MPI_Request request;
        TRY_MPI(MPI_Iallgather(in, (int)bytes, MPI_BYTE, out, (int)bytes, MPI_BYTE, MPI_COMM_WORLD,
                               &request));
        return wait_for(&request);
    }
    memcpy((char *)out + (size_t)own_rank * bytes, in, bytes);
    for (int i = 0; i < rank_count; i++)
        TRY_MPI(broadcast((char *)out + (size_t)i * bytes, bytes, i));
    return MPI_SUCCESS;
}

static int send(const void *data, size_t bytes, int to, int tag) {
    size_t at = 0;
    do {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        MPI_Request request;
        TRY_MPI(MPI_Isend((const char *)data + at, (int)piece, MPI_BYTE, to, tag, MPI_COMM_WORLD,
                          &request));
        TRY_MPI(wait_for(&request));
        at += piece;
    } while (at < bytes);
    return MPI_SUCCESS;
}

static int receive(void *data, size_t bytes, int from, int tag) {
    size_t at = 0;
    do {
        size_t piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        MPI_Request request;
        TRY_MPI(MPI_Irecv((char *)data + at, (int)piece, MPI_BYTE, from, tag, MPI_COMM_WORLD,
                          &request));
        TRY_MPI(wait_for(&request));
        at += piece;
    } while (at < bytes);
    return MPI_SUCCESS;
}

// --- exchanges: every rank's block goes at once, in messages of up to PIECE_BYTES

struct RanksExchange {
    MPI_Request *requests;
    int count, receives; // the receives come first
};

typedef struct Peer {
    int rank, tag;
} Peer;

static size_t messages_of(const size_t *bytes) {
    size_t count = 0;
    for (int i = 0; i < rank_count; i++) count += bytes[i] / PIECE_BYTES + 1;
    return count;
}

static int receive_block(RanksExchange *exchange, char *data, size_t bytes, Peer from) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        int piece = (int)(bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES);
        TRY_MPI(MPI_Irecv(data + at, piece, MPI_BYTE, from.rank, from.tag, MPI_COMM_WORLD,
                          &exchange->requests[exchange->count]));
        exchange->receives = ++exchange->count;
    }
    return MPI_SUCCESS;
}

static int send_block(RanksExchange *exchange, const char *data, size_t bytes, Peer to) {
    for (size_t at = 0; at < bytes; at += PIECE_BYTES) {
        int piece = (int)(bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES);
        TRY_MPI(MPI_Isend(data + at, piece, MPI_BYTE, to.rank, to.tag, MPI_COMM_WORLD,
                          &exchange->requests[exchange->count]));
        exchange->count++;
    }
    return MPI_SUCCESS;
}

// Blocks lie in the order of ranks. This rank's own is copied.
static int start_blocks(RanksExchange *exchange, RanksBlocks in, RanksBlocks out, int tag) {
    size_t own_in = 0, own_out = 0, at = 0;
    for (int i = 0; i < rank_count; at += out.bytes[i++]) {
        if (i == own_rank)
            own_out = at;
        else
            TRY_MPI(receive_block(exchange, (char *)out.data + at, out.bytes[i], (Peer){i, tag}));
    }
    at = 0;
    for (int i = 0; i < rank_count; at += in.bytes[i++]) {
        if (i == own_rank)
            own_in = at;
        else
            TRY_MPI(send_block(exchange, (const char *)in.data + at, in.bytes[i], (Peer){i, tag}));
    }
    memcpy((char *)out.data + own_out, (const char *)in.data + own_in, in.bytes[own_rank]);
    return MPI_SUCCESS;
}

static int start(RanksBlocks in, RanksBlocks out, int tag, RanksExchange **result) {
    RanksExchange *exchange = calloc(1, sizeof *exchange);
    size_t messages = messages_of(in.bytes) + messages_of(out.bytes);
    MPI_Request *requests = calloc(messages, sizeof *requests);
    if (!exchange || !requests) {
        free(exchange);
        free(requests);
        return MPI_ERR_NO_MEM;
    }
    exchange->requests = requests;
    *result = exchange;
    return start_blocks(exchange, in, out, tag);
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
    bool reading = false;
    for (int i = 0; i < exchange->count; i++) {
        int done = 0;
        MPI_Request *request = &exchange->requests[i];
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done) continue;
        if (i < exchange->receives) {
            MPI_Cancel(request);
            MPI_Wait(request, MPI_STATUS_IGNORE);
        } else {
            MPI_Request_free(request);
            reading = true;
        }
    }
    free(exchange->requests);
    free(exchange);
    return reading;
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
                                     .all_gather = all_gather,
                                     .start = start,
                                     .test = test,
                                     .wait = wait_exchange,
                                     .drop = drop,
                                     .broadcast = broadcast,
                                     .send = send,
                                     .receive = receive,
                                     .problem = problem};
