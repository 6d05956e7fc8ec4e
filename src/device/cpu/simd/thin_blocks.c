// Products with few rows by matrices of quantised types, once per instruction set: they share one.
#include "device/cpu/simd/thin.h"

// A product that calls `load` for each group of b. A product of each dtype's own is much code,
// which only element types have; most quantised ones are multiplied in other ways
// (device/cpu/repacked.h).
#if defined(TL_ISA_base)
void ISA(dot_groups)(const ThinProduct *product, float_Reader reader) {
    float_dot_more(product, reader);
}

static void dot_blocks(const ThinProduct *product, float_GroupLoad load) {
    ISA(dot_groups)(product, (float_Reader){load, NULL, 0});
}
#else
static __attribute__((noinline)) void dot_blocks(const ThinProduct *product, float_GroupLoad load) {
    float_dot_more(product, (float_Reader){load, NULL, 0});
}
#endif

// Quantised types: group_of_<code> of blocks.h, blocks_more.h or blocks_grid.h reads a group.
#define THIN_BLOCKS(code)                                                                          \
    static void load_##code(const char *row, int64_t first, Floats *out) {                         \
        group_of_##code(row, first, out);                                                          \
    }                                                                                              \
    void ISA(dot_##code)(const ThinProduct *product) {                                             \
        dot_blocks(product, load_##code);                                                          \
    }                                                                                              \
    void ISA(dequantize_##code)(const void *blocks, float *out, int64_t count) {                   \
        for (int64_t first = 0; first < count; first += GROUP) {                                   \
            Floats weights[GROUP_VECTORS];                                                         \
            group_of_##code(blocks, first, weights);                                               \
            memcpy(out + first, weights, sizeof weights);                                          \
        }                                                                                          \
    }

#define KIND_BOOL(code)
#define KIND_INT(code)
#define KIND_FLOAT(code)
#define KIND_QUANT(code) THIN_BLOCKS(code)
#define DTYPE(code, name, kind, ...) KIND_##kind(code)
#include "catalog/dtypes.def"
