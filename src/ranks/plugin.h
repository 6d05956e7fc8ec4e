// What a transport gives to ranks.c: bytes between processes. Every function returns 0, or a code
// whose words `problem` knows; all wait, and give up with RANKS_INTERRUPTED when `interrupted` says
// so.
#ifndef RANKS_PLUGIN_H
#define RANKS_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

enum { RANKS_INTERRUPTED = -1 };

typedef struct RanksPlugin {
    // Once in a process. local_rank: among those on the same machine.
    int (*begin)(bool (*interrupted)(void), int *rank, int *size, int *local_rank);
    int (*end)(void);
    void (*abort)(int status); // ends all ranks; does not return
    // Blocks of equal size, in the order of ranks.
    int (*all_gather)(const void *in, void *out, size_t bytes);
    // Block i of `in` (in_bytes[i]) goes to rank i; block i of `out` comes from it.
    int (*all_to_all)(const void *in, const size_t *in_bytes, void *out, const size_t *out_bytes);
    int (*broadcast)(void *data, size_t bytes, int root);
    int (*send)(const void *data, size_t bytes, int to, int tag);
    int (*receive)(void *data, size_t bytes, int from, int tag);
    void (*problem)(int code, char *out, size_t size);
} RanksPlugin;

// The one symbol of a plug-in.
#define RANKS_PLUGIN_SYMBOL "tl_ranks_plugin"
extern const RanksPlugin tl_ranks_plugin;

#endif
