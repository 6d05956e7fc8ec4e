// Quantised weights with 16 rows interleaved, and products with them in integers.
//
// A strip is 16 consecutive rows of a weight. For each group of 32 weights it holds the rows'
// scales and then lines of 64 bytes in which 4 bytes belong to each row: a lane of a vector owns a
// row, so a product needs no sum across lanes. A line of 8-bit codes holds weights 4l to 4l + 3 of
// every row; of 4-bit codes weights 4l + j below and 16 + 4l + j above; of 2-bit codes those of two
// lines of 4 bits. High bits of 3-, 5- and 6-bit codes stand in lines before the others. Codes are
// unsigned: the weight is scale * (code - zero), or scale * code + minimum.
//
// Many rows of activations go by panels: copies of a few strips in a processor's cache that hold
// codes less their zero. With 16 bits a line holds two weights of every row: 4q and 4q + 2, the
// next 4q + 1 and 4q + 3. Where there are instructions for small matrices of bytes (simd/tiles.h),
// they have 8 bits, and lines are those of 8-bit codes. The sums are the same integers, and so are
// the results.
//
// Activations are rounded to 16 bits per group of 32, in units of a power of two: the largest of
// the group is 16256 to 32639 of them; numbers of few digits lose nothing. Fast products round to 8
// bits, the largest to 127, with the scale that fits best. Sums of a group are exact in int32 and
// results depend neither on how many rows are multiplied at once nor on threads.
#ifndef DEVICE_CPU_REPACKED_H
#define DEVICE_CPU_REPACKED_H

#include "device/cpu/matrix.h"

enum {
    STRIP_ROWS = 16,
    GROUP_WEIGHTS = 32,
    SUPERBLOCK_WEIGHTS = 256,
    QUADS = GROUP_WEIGHTS / 4,
    LINE_BYTES = 64,
    REPACKED_TOKENS_MAX = 16, // rows of activations that one pass over a strip serves
    TILE_TOKENS = 16,         // and that a product of tiles always takes
    PAIR_LINES = 16,          // of a group of a panel
    TILE_LINES = 8,
    ACTIVATION_UNITS = 1 << 14,
    FAST_UNITS = 127,
};
// Integers of two signed digits of base 256 end at 32639: largest numbers above that share of their
// power of two take the next one.
#define ACTIVATION_MARGIN 1.004f
// Groups whose magnitudes are all below the least count as zero; above the most, sums may overflow.
#define ACTIVATION_LEAST 0x1p-100f
#define ACTIVATION_MOST 0x1p64f

// How the codes of a group are stored, and what turns them into weights.
typedef enum CodeForm {
    CODES_2,
    CODES_3,
    CODES_4,
    CODES_4_IQ4,   // nibbles number the values of the IQ4 types
    CODES_4_MXFP4, // or those of MXFP4
    CODES_5,
    CODES_6,
    CODES_8,
    CODES_PAIRS, // of a panel: 16 bits
    CODES_TILE,  // 8 bits
} CodeForm;
typedef enum ScaleForm {
    SCALE_ZERO,       // float16 scale a row; group: [16 scales][codes]
    SCALE_MINIMUM,    // float16 scale and minimum a row; group: [16 scales][16 minima][codes]
    SCALE_POWER,      // the exponent of a power of two a row; group: [16 uint8 exponents][codes]
    SCALE_SUPERBLOCK, // of 8 groups: [16 float16 d][16 float16 dmin], then groups of
                      // [16 uint8 scales][16 uint8 minima][codes]; weight = d*s*code - dmin*m
    SCALE_GROUPS,     // of 8 groups: [16 float16 d], then groups of [16 int8 scales][codes]
    SCALE_WHOLE,      // of 8 groups: [16 float16 d], then groups of [codes]
    SCALE_HALVES,     // of 8 groups: [16 float16 d], then groups of
                      // [16 int8 scales of weights 0..15][16 of 16..31][codes]
    SCALE_HALVES_MINIMUM, // of 8 groups: [16 float16 d][16 float16 dmin], then groups of
                          // [16 bytes of weights 0..15][16 of 16..31][codes]; a byte has the scale
                          // below and the minimum above
} ScaleForm;
enum { SCALE_FORMS = SCALE_HALVES_MINIMUM + 1 };

typedef struct RepackedForm {
    CodeForm codes;
    ScaleForm scales;
    int zero;
    int block_bytes;  // of GGUF
    int header_bytes; // of a superblock of the strip; 0: it has none
    int scale_bytes;  // of a group, before its lines
    int lines;        // of a group
} RepackedForm;

static inline int repacked_group_bytes(const RepackedForm *form) {
    return form->scale_bytes + form->lines * LINE_BYTES;
}

static inline bool is_panel(CodeForm codes) {
    return codes >= CODES_PAIRS;
}

// A panel's header and scales are those of its strip, filled up to lines.
static inline RepackedForm repacked_panel_form(const RepackedForm *form, CodeForm codes) {
    return (RepackedForm){.codes = codes,
                          .scales = form->scales,
                          .header_bytes = form->header_bytes ? LINE_BYTES : 0,
                          .scale_bytes = form->scale_bytes ? LINE_BYTES : 0,
                          .lines = codes == CODES_TILE ? TILE_LINES : PAIR_LINES};
}

// A group of 32 activations as the kernels read it. The digits of four activations take 8 bytes; in
// which form is the instruction set's matter, which may leave some of fast products unset.
typedef struct ActivationGroup {
    float scale;
    float scaled_sum;  // scale * sum
    int32_t sum, half; // of all integers, and of the first 16
    int8_t digits[2 * GROUP_WEIGHTS];
} ActivationGroup;

// Where a row's groups go: every `step`th from the first on.
typedef struct ActivationRow {
    ActivationGroup *first;
    int64_t step;
} ActivationRow;

// out[token, row] for the rows of one strip.
typedef struct StripProduct {
    const char *strip;
    bool fetch;                         // what lies further on is asked for before it is read
    int64_t groups;                     // columns / 32
    const ActivationGroup *activations; // [groups, tokens], groups activation_step apart
    int64_t activation_step;
    int tokens;
    float *out; // 16 numbers a token, out_stride floats apart
    int64_t out_stride;
} StripProduct;

// Flags: 8 bits, not 16; digits for panels.
typedef enum ActivationForm {
    ACTIVATIONS_16 = 0,
    ACTIVATIONS_8 = 1,
    ACTIVATIONS_PAIRS = 2,
    ACTIVATION_FORMS = 4
} ActivationForm;
typedef struct RepackedSimd {
    // NULL: no interleaved layout. Of ACTIVATIONS_16 and ACTIVATIONS_8.
    void (*product[2][DTYPE_COUNT])(const StripProduct *product);
    bool has_byte_products; // with which fast products do better than with panels of pairs
    // False, and *out undefined, when a number is above ACTIVATION_MOST or not a number.
    bool (*round[ACTIVATION_FORMS])(const float *numbers, int64_t groups, ActivationRow out);
} RepackedSimd;
extern const RepackedSimd repacked_simd_base, repacked_simd_avx2, repacked_simd_avxvnni,
    repacked_simd_avx512vnni;
const RepackedSimd *repacked_simd(void);

typedef struct PanelSimd {
    CodeForm codes; // by tiles, products read the rows of all TILE_TOKENS, and the strips' digits
    void (*widen[DTYPE_COUNT])(const char *strip, int64_t groups, char *panel);
    void (*product[2][SCALE_FORMS])(const StripProduct *product); // NULL: of halves by tiles
} PanelSimd;
extern const PanelSimd panel_simd_base, panel_simd_avx2, panel_simd_avxvnni, panel_simd_avx512vnni,
    panel_simd_amx;
const PanelSimd *panel_simd(ScaleForm scales);

// DeviceBackend.weight_loaded.
void cpu_weight_loaded(const TensorView *weight);

// That of a view [.., columns, rows] whose numbers lie in a mapped file, made if there is room;
// NULL where none is kept.
RepackedWeight *repacked_weight(const TensorView *view);
// Quantised b whose blocks products keep interleaved, contiguous along k, by rows of any dtype.
bool matrix_suits_repacked(const MatrixProduct *product);
void matrix_product_repacked(const MatrixProduct *product);

#endif
