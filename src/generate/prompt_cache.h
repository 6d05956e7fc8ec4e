// Texts' keys and values in a folder, so that another run need not compute them again: a file for
// each text, under the network (weights, adapters, device's arithmetic) and the ids. A file is
// complete or not there, and what is read is verified; one that does not hold what it says is as
// one that is missing. What is read continues bit for bit.
#ifndef GENERATE_PROMPT_CACHE_H
#define GENERATE_PROMPT_CACHE_H

#include "generate/sequence.h"

typedef struct PromptCache PromptCache;
// The folder is made where it is missing. STATUS_VALUE for a network that has hooks, whose doing no
// key tells, or that keeps its text to itself.
Status prompt_cache_open(const char *folder, Network *network, PromptCache **out) MUST_USE;
void prompt_cache_close(PromptCache *cache); // NULL is allowed
// A sequence with the longest beginning of these ids that any file holds, all but the last at most;
// NULL when none does.
Status prompt_cache_find(const PromptCache *cache, const int64_t *ids, size_t count,
                         Sequence **out) MUST_USE;
// Keeps a text. Files that hold a beginning of it only go, and, where all take more than
// TL_PROMPT_CACHE_MB, those that were used longest ago.
Status prompt_cache_store(const PromptCache *cache, const Sequence *sequence) MUST_USE;

#endif
