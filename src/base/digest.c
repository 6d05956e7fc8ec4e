// Eight chains of multiplications side by side, so that none waits for another.
#include "base/digest.h"

#include <string.h>

enum { LANES = 8, BLOCK_BYTES = LANES * sizeof(uint64_t) };
static const uint64_t odd = 0x9e3779b97f4a7c15u;

// One to one in `word`, and what changes in its high bits comes down.
static uint64_t join(uint64_t digest, uint64_t word) {
    uint64_t product = (digest ^ word) * odd;
    return product ^ product >> 29;
}

static void add_block(uint64_t *lanes, const void *block) {
    uint64_t words[LANES];
    memcpy(words, block, sizeof words);
    for (int i = 0; i < LANES; i++) lanes[i] = join(lanes[i], words[i]);
}

uint64_t digest_add(uint64_t digest, const void *data, size_t bytes) {
    uint64_t lanes[LANES], last[LANES] = {0};
    size_t whole = bytes / BLOCK_BYTES * BLOCK_BYTES;
    for (int i = 0; i < LANES; i++) lanes[i] = digest + (uint64_t)i * odd;
    for (size_t at = 0; at < whole; at += BLOCK_BYTES) add_block(lanes, (const char *)data + at);
    if (bytes > whole) memcpy(last, (const char *)data + whole, bytes - whole);
    add_block(lanes, last);
    digest = join(digest, bytes);
    for (int i = 0; i < LANES; i++) digest = join(digest, lanes[i]);
    return digest;
}
