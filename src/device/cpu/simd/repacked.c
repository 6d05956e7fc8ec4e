// Products of interleaved quantised weights with rounded activations, once per instruction set.
// Layouts: device/cpu/repacked.h.
#include "device/cpu/simd/round_groups.h"
#include "device/cpu/simd/strips.h"

// How many tokens at once leave all sums in registers, and how many of fewer.
#if defined(TL_ISA_avx512)
enum { TOKENS_MANY = 8, TOKENS_OF_HALVES = 4, TOKENS_SOME = 4 };
#elif defined(TL_ISA_avx2) && !defined(HAS_FAST)
enum { TOKENS_MANY = 4, TOKENS_OF_HALVES = 2, TOKENS_SOME = 2 };
#else
enum { TOKENS_MANY = ONE_ROW ? 1 : 4, TOKENS_OF_HALVES = ONE_ROW ? 1 : 2, TOKENS_SOME = 1 };
#endif

SIMD_INLINE void product_of_codes(const StripProduct *product, const Form *kind) {
    const bool halves = has_halves(kind->weights.scales);
    const PartSize many = {halves ? TOKENS_OF_HALVES : TOKENS_MANY, 1};
    strip_product(product, kind, many, (PartSize){halves ? 1 : TOKENS_SOME, VECTORS_OF_ONE});
}

#define STRIP_PRODUCT(name, form, ...)                                                             \
    static void name(const StripProduct *product) {                                                \
        const Form kind = {{__VA_ARGS__}, form};                                                   \
        product_of_codes(product, &kind);                                                          \
    }
#define REPACKED(code, ...) STRIP_PRODUCT(product_##code, ACTIVATIONS_16, __VA_ARGS__)
#include "device/cpu/repacked.def"
#undef REPACKED
#if defined(HAS_FAST)
#define REPACKED(code, ...) STRIP_PRODUCT(fast_##code, ACTIVATIONS_8, __VA_ARGS__)
#include "device/cpu/repacked.def"
#undef REPACKED
#endif

const RepackedSimd ISA(repacked_simd) = {
    .product[ACTIVATIONS_16] =
        {
#define REPACKED(code, ...) [DTYPE_##code] = product_##code,
#include "device/cpu/repacked.def"
#undef REPACKED
        },
    .product[ACTIVATIONS_8] =
        {
#if defined(HAS_FAST)
#define REPACKED(code, ...) [DTYPE_##code] = fast_##code,
#else // the integers of fast products in 16 bits
#define REPACKED(code, ...) [DTYPE_##code] = product_##code,
#endif
#include "device/cpu/repacked.def"
#undef REPACKED
        },
    .round = {round_16, round_8, round_16_pairs, round_8_pairs},
#if defined(HAS_FAST)
    .has_byte_products = true,
#endif
};
