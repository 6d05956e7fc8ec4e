// Copies that memcpy is slow at: past the caches, for results that would not fit into them anyway,
// and of rows.
#include "device/cpu/map.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "device/cpu/simd/vector.h"

#if defined(__AVX512F__)
static size_t stream_vectors(char *to, const char *from, size_t bytes) {
    size_t at = 0;
    for (; at + 64 <= bytes; at += 64)
        _mm512_stream_si512((void *)(to + at), _mm512_loadu_si512(from + at));
    _mm_sfence();
    return at;
}
#elif defined(__SSE2__)
static size_t stream_vectors(char *to, const char *from, size_t bytes) {
    size_t at = 0;
    for (; at + 16 <= bytes; at += 16)
        _mm_stream_si128((__m128i *)(void *)(to + at),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + at)));
    _mm_sfence();
    return at;
}
#else
static size_t stream_vectors(char *to, const char *from, size_t bytes) {
    (void)to, (void)from, (void)bytes;
    return 0;
}
#endif

void ISA(stream_copy)(void *to, const void *from, size_t bytes) {
    size_t done = stream_vectors(to, from, bytes);
    memcpy((char *)to + done, (const char *)from + done, bytes - done);
}

typedef unsigned char Vector __attribute__((vector_size(64), aligned(1), may_alias));

// For such lengths memcpy takes REP MOVSB, which some processors (Zen 3 to 5) do at a tenth of the
// rate where the target lies a little further in its page than the source.
void ISA(row_copy)(char *to, const char *from, size_t bytes) {
    for (size_t at = 0; at + sizeof(Vector) <= bytes; at += sizeof(Vector)) {
        *(Vector *)(to + at) = *(const Vector *)(from + at);
        __asm__ volatile("" ::: "memory"); // or compilers make it a memcpy
    }
    size_t last = bytes - sizeof(Vector);
    *(Vector *)(to + last) = *(const Vector *)(from + last);
}
