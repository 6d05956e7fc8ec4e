// Products of panels with rounded activations, once per instruction set: pairs of 16 bits, or tiles
// where TL_TILES is defined. Layouts: device/cpu/repacked.h.
#include "device/cpu/simd/strips.h"

#if defined(TL_TILES)
static const CodeForm panel_codes = CODES_TILE;

SIMD_INLINE void product_of_panel(const StripProduct *product, const Form *kind) {
    tile_configure();
    StripProduct rest = *product;
    for (; rest.tokens > 0; rest.tokens -= TILE_TOKENS) {
        parts_product(&rest, kind, (PartSize){TILE_TOKENS, 1});
        rest.activations += TILE_TOKENS;
        rest.out += TILE_TOKENS * rest.out_stride;
    }
    tile_release();
}

SIMD_INLINE void codes_widen(const CodePair *codes, const RepackedForm *form, int l, char *lines) {
    const LaneBytes zero = (LaneBytes)every_byte((uint32_t)form->zero);
    LaneBytes low = (LaneBytes)codes->low - zero, high = (LaneBytes)codes->high - zero;
    memcpy(lines + l * LINE_BYTES, &low, sizeof low);
    memcpy(lines + (l + 4) * LINE_BYTES, &high, sizeof high);
}

#else
static const CodeForm panel_codes = CODES_PAIRS;

// How many tokens at once leave all sums in registers.
#if defined(TL_ISA_avx512)
enum { TOKENS_MANY = 12, TOKENS_OF_HALVES = 8, TOKENS_SOME = 4, PANEL_VECTORS = 1 };
#else
enum {
    TOKENS_MANY = ONE_ROW ? 1 : 4,
    TOKENS_OF_HALVES = TOKENS_MANY,
    TOKENS_SOME = TOKENS_MANY,
    PANEL_VECTORS = ONE_ROW ? 1 : STRIP_VECTORS,
};
#endif

SIMD_INLINE void product_of_panel(const StripProduct *product, const Form *kind) {
    const bool halves = has_halves(kind->weights.scales);
    const PartSize many = {halves ? TOKENS_OF_HALVES : TOKENS_MANY, PANEL_VECTORS};
    strip_product(product, kind, many, (PartSize){TOKENS_SOME, PANEL_VECTORS});
}

SIMD_INLINE void codes_widen(const CodePair *codes, const RepackedForm *form, int l, char *lines) {
    const Words zero = (Words){0} + (uint32_t)form->zero * 0x10001u;
    Words pairs[4] = {even_bytes(codes->low), odd_bytes(codes->low), even_bytes(codes->high),
                      odd_bytes(codes->high)};
    UNROLLED_FOR (int i = 0; i < 4; i++) {
        Words numbers = (Words)((LanePairs)pairs[i] - (LanePairs)zero);
        memcpy(lines + (2 * l + i + (i >= 2 ? 6 : 0)) * LINE_BYTES, &numbers, sizeof numbers);
    }
}
#endif

// The codes of a strip's group as those of a panel's.
SIMD_INLINE void group_widen(const RepackedForm *form, const char *lines, char *panel) {
    for (int row = 0; row < STRIP_ROWS; row += LANES)
        UNROLLED_FOR (int l = 0; l < 4; l++) {
            CodePair codes = codes_at(form->codes, lines + row * 4, l);
            codes_widen(&codes, form, l, panel + row * 4);
        }
}

SIMD_INLINE void strip_widen(const RepackedForm *form, const char *strip, int64_t groups,
                             char *panel) {
    const RepackedForm wide = repacked_panel_form(form, panel_codes);
    const int per_block = form->header_bytes ? SUPERBLOCK_WEIGHTS / GROUP_WEIGHTS : 1;
    for (int64_t block = 0; block < groups; block += per_block) {
        memcpy(panel, strip, (size_t)form->header_bytes);
        strip += form->header_bytes;
        panel += wide.header_bytes;
        for (int g = 0; g < per_block; g++) {
            memcpy(panel, strip, (size_t)form->scale_bytes);
            group_widen(form, strip + form->scale_bytes, panel + wide.scale_bytes);
            strip += repacked_group_bytes(form);
            panel += repacked_group_bytes(&wide);
        }
    }
}

#define REPACKED(code, ...)                                                                        \
    static void widen_##code(const char *strip, int64_t groups, char *panel) {                     \
        const RepackedForm form = {__VA_ARGS__};                                                   \
        strip_widen(&form, strip, groups, panel);                                                  \
    }
#include "device/cpu/repacked.def"
#undef REPACKED

// Panels differ by their scales alone: whether there is a header, and scales in each group. The
// halves of groups would leave tiles half empty.
#if defined(TL_TILES)
#define PANELS_OF_HALVES
#else
#define PANELS_OF_HALVES                                                                           \
    PANEL(SCALE_HALVES, true, true)                                                                \
    PANEL(SCALE_HALVES_MINIMUM, true, true)
#endif
#define PANELS                                                                                     \
    PANEL(SCALE_ZERO, false, true)                                                                 \
    PANEL(SCALE_MINIMUM, false, true)                                                              \
    PANEL(SCALE_POWER, false, true)                                                                \
    PANEL(SCALE_SUPERBLOCK, true, true)                                                            \
    PANEL(SCALE_GROUPS, true, true)                                                                \
    PANEL(SCALE_WHOLE, true, false)                                                                \
    PANELS_OF_HALVES
#define PANEL_PRODUCT(name, form, header, in_groups, activations)                                  \
    static void name(const StripProduct *product) {                                                \
        const RepackedForm strip = {                                                               \
            .scales = form, .header_bytes = header, .scale_bytes = in_groups};                     \
        const Form kind = {repacked_panel_form(&strip, panel_codes), activations};                 \
        product_of_panel(product, &kind);                                                          \
    }
#define PANEL(form, header, in_groups)                                                             \
    PANEL_PRODUCT(product_##form, form, header, in_groups, ACTIVATIONS_16)
PANELS
#undef PANEL
#if defined(TL_TILES)
#define PANEL(form, header, in_groups)                                                             \
    PANEL_PRODUCT(fast_##form, form, header, in_groups, ACTIVATIONS_8)
PANELS
#undef PANEL
#endif

const PanelSimd ISA(panel_simd) = {
    .codes = panel_codes,
    .widen =
        {
#define REPACKED(code, ...) [DTYPE_##code] = widen_##code,
#include "device/cpu/repacked.def"
#undef REPACKED
        },
    .product[ACTIVATIONS_16] =
        {
#define PANEL(scales, ...) [scales] = product_##scales,
            PANELS
#undef PANEL
        },
    .product[ACTIVATIONS_8] =
        {
#if defined(TL_TILES)
#define PANEL(scales, ...) [scales] = fast_##scales,
#else // the integers of fast products in 16 bits
#define PANEL(scales, ...) [scales] = product_##scales,
#endif
            PANELS
#undef PANEL
        },
};
