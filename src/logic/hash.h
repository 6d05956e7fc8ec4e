// Hashing of short sequences of 32-bit words.
#ifndef LOGIC_HASH_H
#define LOGIC_HASH_H

#include <stdint.h>

static inline uint32_t hash_begin(uint32_t seed) {
    return seed * 0x9e3779b1u + 0x7f4a7c15u;
}
static inline uint32_t hash_add(uint32_t hash, uint32_t word) {
    uint64_t product = (uint64_t)(hash ^ word) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(product >> 32) ^ (uint32_t)product;
}
static inline uint32_t hash_end(uint32_t hash) {
    hash ^= hash >> 15;
    hash *= 0x85ebca6bu;
    return hash ^ hash >> 13;
}

#endif
