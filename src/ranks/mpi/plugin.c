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

typedef struct Outgoing {
    const char *data;
    size_t bytes;
    int to;
} Outgoing;

typedef struct Incoming {
    char *data;
    size_t bytes;
    int from;
} Incoming;

// Between two ranks in both directions at once, piece by piece.
static int exchange(Outgoing in, Incoming out) {
    enum { TAG = 1 << 14 };
    size_t sent = 0, got = 0;
    while (sent < in.bytes || got < out.bytes) {
        size_t next_out = out.bytes - got < PIECE_BYTES ? out.bytes - got : PIECE_BYTES;
        size_t next_in = in.bytes - sent < PIECE_BYTES ? in.bytes - sent : PIECE_BYTES;
        MPI_Request receiving = MPI_REQUEST_NULL, sending = MPI_REQUEST_NULL;
        if (next_out)
            TRY_MPI(MPI_Irecv(out.data + got, (int)next_out, MPI_BYTE, out.from, TAG,
                              MPI_COMM_WORLD, &receiving));
        if (next_in)
            TRY_MPI(MPI_Isend(in.data + sent, (int)next_in, MPI_BYTE, in.to, TAG, MPI_COMM_WORLD,
                              &sending));
        if (next_out) TRY_MPI(wait_for(&receiving));
        if (next_in) TRY_MPI(wait_for(&sending));
        got += next_out;
        sent += next_in;
    }
    return MPI_SUCCESS;
}

static size_t sum_before(const size_t *bytes, int rank) {
    size_t sum = 0;
    for (int i = 0; i < rank; i++) sum += bytes[i];
    return sum;
}

static int all_to_all(const void *in, const size_t *in_bytes, void *out, const size_t *out_bytes) {
    for (int step = 0; step < rank_count; step++) {
        int to = (own_rank + step) % rank_count;
        int from = (own_rank + rank_count - step) % rank_count;
        const char *source = (const char *)in + sum_before(in_bytes, to);
        char *target = (char *)out + sum_before(out_bytes, from);
        if (step == 0)
            memcpy(target, source, in_bytes[to]);
        else
            TRY_MPI(exchange((Outgoing){source, in_bytes[to], to},
                             (Incoming){target, out_bytes[from], from}));
    }
    return MPI_SUCCESS;
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
                                     .all_to_all = all_to_all,
                                     .broadcast = broadcast,
                                     .send = send,
                                     .receive = receive,
                                     .problem = problem};
