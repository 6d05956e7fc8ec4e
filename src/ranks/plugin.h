// What a transport gives to ranks.c: bytes between processes. Every function returns 0, or a code
// whose words `problem` knows. `begin`, `end` and `wait` wait, and give up with RANKS_INTERRUPTED
// when `interrupted` says so; the others start something, whose memory stays as it is until it is
// done. Ranks start collectives, and what has one tag, in the same order.
#ifndef RANKS_PLUGIN_H
#define RANKS_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

enum {
    RANKS_INTERRUPTED = -1,
    RANKS_STUCK = -2, // of `wait`: the one rank that it needs waits for this one
};

// Blocks to and from every rank: of bytes[i] for rank i, one after the other.
typedef struct RanksBlocks {
    const void *data;
    const size_t *bytes;
    bool repeated;  // all are the same bytes
    bool skips_own; // of `out`: this rank's block stays as it is
} RanksBlocks;
// What is reduced, and how.
typedef enum RanksNumber { RANKS_FLOAT32, RANKS_FLOAT64, RANKS_INT64 } RanksNumber;
typedef enum RanksFold {
    RANKS_FOLD_SUM,
    RANKS_FOLD_PROD,
    RANKS_FOLD_MAX,
    RANKS_FOLD_MIN
} RanksFold;
// What is under way.
typedef struct RanksExchange RanksExchange;

typedef struct RanksPlugin {
    // Once in a process. local_rank: among those on the same machine.
    int (*begin)(bool (*interrupted)(void), int *rank, int *size, int *local_rank);
    int (*end)(void);
    void (*abort)(int status); // ends all ranks; does not return
    // Block i of `in` goes to rank i; block i of `out`, which is written to, comes from it.
    int (*exchange)(RanksBlocks in, RanksBlocks out, int tag, RanksExchange **exchange);
    // Blocks of equal size, in the order of ranks.
    int (*all_gather)(const void *in, void *out, size_t bytes, RanksExchange **exchange);
    int (*broadcast)(void *data, size_t bytes, int root, RanksExchange **exchange);
    // In place, in the order that the transport takes for the fastest.
    int (*reduce)(void *data, size_t count, RanksNumber number, RanksFold fold,
                  RanksExchange **exchange);
    int (*send)(const void *data, size_t bytes, int to, int tag, RanksExchange **exchange);
    int (*receive)(void *data, size_t bytes, int from, int tag, RanksExchange **exchange);
    int (*test)(RanksExchange *exchange, bool *done); // lets what is under way go on
    int (*wait)(RanksExchange *exchange);             // and frees it, unless it fails
    // Ends one that nobody waits for; true when the transport still uses its memory.
    bool (*drop)(RanksExchange *exchange);
    void (*problem)(int code, char *out, size_t size);
} RanksPlugin;

// The one symbol of a plug-in.
#define RANKS_PLUGIN_SYMBOL "tl_ranks_plugin"
extern const RanksPlugin tl_ranks_plugin;

#endif
