// What products of interleaved quantised weights with rounded activations are made of, for the
// instruction set that a file is being compiled for. Layouts: device/cpu/repacked.h.
#ifndef DEVICE_CPU_SIMD_STRIPS_H
#define DEVICE_CPU_SIMD_STRIPS_H

#include "device/cpu/repacked.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "device/cpu/simd/blocks.h"
#include "device/cpu/simd/tiles.h"

// Vectors that hold a number of each row of a strip. One token leaves registers for all of them, so
// that a strip is read once.
enum {
    STRIP_VECTORS = STRIP_ROWS / LANES,
    VECTORS_OF_ONE = ONE_ROW ? 1 : STRIP_VECTORS,
};

typedef uint16_t LanePairs __attribute__((vector_size(LANES * 4)));
typedef int8_t LaneBytes __attribute__((vector_size(LANES * 4)));

// A lane has two numbers of 16 bits; so have the digits. Where an addition is its own instruction,
// sums stay the chains that they are written as: of a tree of them compilers keep most in memory.
SIMD_INLINE Ints dot_pairs(Ints sum, Ints pairs, const int8_t *digits) {
    int32_t two;
    memcpy(&two, digits, sizeof two);
#if defined(TL_ISA_avx512vnni)
    return (Ints)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)pairs, _mm512_set1_epi32(two));
#elif defined(TL_ISA_avxvnni)
    return (Ints)_mm256_dpwssd_avx_epi32((__m256i)sum, (__m256i)pairs, _mm256_set1_epi32(two));
#elif defined(TL_ISA_avx2)
    sum += (Ints)_mm256_madd_epi16((__m256i)pairs, _mm256_set1_epi32(two));
    __asm__("" : "+x"(sum));
    return sum;
#elif defined(__SSE2__)
    return sum + (Ints)_mm_madd_epi16((__m128i)pairs, _mm_set1_epi32(two));
#else
    return sum + ((Ints)((Words)pairs << 16) >> 16) * (int32_t)(int16_t)two +
           (pairs >> 16) * (two >> 16);
#endif
}

SIMD_INLINE Words even_bytes(Ints codes) {
    return (Words)codes & 0x00FF00FFu;
}

SIMD_INLINE Words odd_bytes(Ints codes) {
    return (Words)((LanePairs)codes >> 8);
}

// Lanes are rows; a strip is worked through in parts of LANES rows. `Sum` gathers the products of
// one group: with 8-bit dot products two digits of the activations apart, the high ones of fast
// products being zero; else 16-bit pairs.
#if defined(TL_ISA_avx512vnni) || defined(TL_ISA_avxvnni)
#define HAS_FAST

typedef struct Sum {
    Ints high, low;
} Sum;

SIMD_INLINE Ints dot_bytes(Ints sum, Ints codes, const int8_t *digits) {
    int32_t four;
    memcpy(&four, digits, sizeof four);
#if defined(TL_ISA_avx512vnni)
    return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)codes, _mm512_set1_epi32(four));
#else
    return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)codes, _mm256_set1_epi32(four));
#endif
}

// Four weights by the activations `quad`: both digits, or the one of a fast product, which is the
// low one.
SIMD_INLINE void sum_add(ActivationForm activations, Sum *sum, Ints codes, const int8_t *digits,
                         int quad) {
    sum->low = dot_bytes(sum->low, codes, digits + GROUP_WEIGHTS + 4 * quad);
    if (activations == ACTIVATIONS_16) sum->high = dot_bytes(sum->high, codes, digits + 4 * quad);
}

SIMD_INLINE Ints sum_total(ActivationForm activations, const Sum *sum) {
    return activations == ACTIVATIONS_16 ? (sum->high << 8) + sum->low : sum->low;
}

#else

typedef struct Sum {
    Ints total;
} Sum;

SIMD_INLINE void sum_add(ActivationForm activations, Sum *sum, Ints codes, const int8_t *digits,
                         int quad) {
    (void)activations;
    sum->total = dot_pairs(sum->total, (Ints)even_bytes(codes), digits + 8 * quad);
    sum->total = dot_pairs(sum->total, (Ints)odd_bytes(codes), digits + 8 * quad + 4);
}

SIMD_INLINE Ints sum_total(ActivationForm activations, const Sum *sum) {
    (void)activations;
    return sum->total;
}

#endif

SIMD_INLINE Floats floats_of(Ints integers) {
    return __builtin_convertvector(integers, Floats);
}

SIMD_INLINE Ints line_at(const char *source) {
    Ints line;
    memcpy(&line, source, sizeof line);
    return line;
}

SIMD_INLINE Floats bytes_at(const char *source, bool is_signed) {
    const uint8_t *bytes = (const uint8_t *)source;
    return floats_of(is_signed ? ints_of_signed_bytes(bytes) : ints_of_bytes(bytes));
}

// Entries of a table of 16 bytes for the nibbles of every byte.
SIMD_INLINE Ints table_codes(Ints nibbles, const uint8_t *numbers) {
#if defined(TL_ISA_avx512)
    __m128i table = _mm_loadu_si128((const __m128i *)numbers);
    return (Ints)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), (__m512i)nibbles);
#elif defined(TL_ISA_avx2)
    __m128i table = _mm_loadu_si128((const __m128i *)numbers);
    return (Ints)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), (__m256i)nibbles);
#else
    uint8_t bytes[sizeof nibbles];
    memcpy(bytes, &nibbles, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = numbers[bytes[i]];
    memcpy(&nibbles, bytes, sizeof bytes);
    return nibbles;
#endif
}

// The values of the IQ4 types plus 128, and those of MXFP4 plus 12.
static const uint8_t iq4_codes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                      129, 141, 153, 166, 181, 197, 217, 241};
static const uint8_t mxfp4_codes[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

typedef struct CodePair {
    Ints low, high; // of weights 4l.. and 16 + 4l..
} CodePair;

SIMD_INLINE Words every_byte(uint32_t byte) {
    return (Words){0} + byte * 0x01010101u;
}

// Bits `begin` to `begin` + count - 1 of every byte, moved to bit `place`.
SIMD_INLINE Words bits_at(Words line, int begin, int count, int place) {
    Words moved = begin < place ? line << (place - begin) : line >> (begin - place);
    return moved & every_byte(((1u << count) - 1) << place);
}

// Codes l of a group whose lines begin at `lines`, for the rows of this part. High bits have a line
// in which bit l of a byte belongs to the low weight and bit l + 4 to the high one; pairs of them
// a line for the low weights with bits 2l and 2l + 1, and one for the high.
SIMD_INLINE CodePair codes_at(CodeForm form, const char *lines, int l) {
    if (form == CODES_8)
        return (CodePair){line_at(lines + l * LINE_BYTES), line_at(lines + (l + 4) * LINE_BYTES)};
    const int high_lines = form == CODES_6 ? 2 : form == CODES_5 || form == CODES_3 ? 1 : 0;
    Words first = (Words)line_at(lines), low, high;
    const char *rest = lines + high_lines * LINE_BYTES;
    if (form == CODES_2 || form == CODES_3) {
        Words four = (Words)line_at(rest + l / 2 * LINE_BYTES);
        low = bits_at(four, l % 2 * 4, 2, 0);
        high = bits_at(four, l % 2 * 4 + 2, 2, 0);
        if (form == CODES_3) {
            low |= bits_at(first, l, 1, 2);
            high |= bits_at(first, l + 4, 1, 2);
        }
        return (CodePair){(Ints)low, (Ints)high};
    }
    Words both = (Words)line_at(rest + l * LINE_BYTES);
    low = bits_at(both, 0, 4, 0);
    high = bits_at(both, 4, 4, 0);
    if (form == CODES_4_IQ4 || form == CODES_4_MXFP4) {
        const uint8_t *table = form == CODES_4_IQ4 ? iq4_codes : mxfp4_codes;
        return (CodePair){table_codes((Ints)low, table), table_codes((Ints)high, table)};
    }
    if (form == CODES_5) {
        low |= bits_at(first, l, 1, 4);
        high |= bits_at(first, l + 4, 1, 4);
    }
    if (form == CODES_6) {
        low |= bits_at(first, 2 * l, 2, 4);
        high |= bits_at((Words)line_at(lines + LINE_BYTES), 2 * l, 2, 4);
    }
    return (CodePair){(Ints)low, (Ints)high};
}

// What a part of a strip adds up for each token: the result, and within a superblock the scaled
// sums and minima.
typedef struct PartSums {
    Floats totals[REPACKED_TOKENS_MAX], sums[REPACKED_TOKENS_MAX], minima[REPACKED_TOKENS_MAX];
} PartSums;

// What is constant where products are inlined.
typedef struct Form {
    RepackedForm weights;
    ActivationForm activations;
} Form;

typedef struct Group {
    const char *at;                     // its scales
    const ActivationGroup *activations; // [tokens]
    Ints halves[REPACKED_TOKENS_MAX][2];
} Group;

SIMD_INLINE bool has_halves(ScaleForm scales) {
    return scales == SCALE_HALVES || scales == SCALE_HALVES_MINIMUM;
}

// Rows of a strip, some vectors of them at once, by `tokens` rows of activations.
typedef struct PartSize {
    int tokens, vectors;
} PartSize;

#if !defined(HAS_FAST)
// The sums of nibbles by one token, made of pairs that lie where they are in 16 bits, some of them
// 16 and 256 times as large: at most 15 * 256 * 32639 * 8.
SIMD_INLINE void nibble_sums(const char *lines, int vectors, int zero, Group *groups) {
    const ActivationGroup *one = groups->activations;
    Ints once[STRIP_VECTORS] = {{0}}, times_16[STRIP_VECTORS] = {{0}},
         times_256[STRIP_VECTORS] = {{0}};
    UNROLLED_FOR (int l = 0; l < 4; l++) {
        const int8_t *low = one->digits + 8 * l, *high = one->digits + 8 * (l + 4);
        UNROLLED_FOR (int v = 0; v < vectors; v++) {
            Words line = (Words)line_at(lines + l * LINE_BYTES + v * LANES * 4);
            once[v] = dot_pairs(once[v], (Ints)(line & 0x000F000Fu), low);
            times_256[v] = dot_pairs(times_256[v], (Ints)(line & 0x0F000F00u), low + 4);
            times_16[v] = dot_pairs(times_16[v], (Ints)(line & 0x00F000F0u), high);
            once[v] = dot_pairs(once[v], (Ints)((LanePairs)line >> 12), high + 4);
        }
    }
    UNROLLED_FOR (int v = 0; v < vectors; v++)
        groups[v].halves[0][0] =
            once[v] + (times_16[v] >> 4) + (times_256[v] >> 8) - zero * one->sum;
}
#endif

// The exact sums of a group for each vector of rows and each token: of weights 0..15 in halves[0],
// of the others in halves[1]; where these are not wanted apart, all in halves[0]. Vectors share the
// digits that are read.
SIMD_INLINE void group_sums(const Form *kind, const char *lines, PartSize size, Group *groups) {
    const RepackedForm *form = &kind->weights;
    const ActivationForm activations = kind->activations;
    const bool apart = has_halves(form->scales);
#if !defined(HAS_FAST)
    if (form->codes == CODES_4 && size.tokens == 1) {
        nibble_sums(lines, size.vectors, form->zero, groups);
        return;
    }
#endif
    Sum sums[STRIP_VECTORS][REPACKED_TOKENS_MAX][2];
    UNROLLED_FOR (int v = 0; v < size.vectors; v++)
        UNROLLED_FOR (int t = 0; t < size.tokens; t++) sums[v][t][0] = sums[v][t][1] = (Sum){0};
    UNROLLED_FOR (int l = 0; l < 4; l++)
        UNROLLED_FOR (int v = 0; v < size.vectors; v++) {
            CodePair codes = codes_at(form->codes, lines + v * LANES * 4, l);
            UNROLLED_FOR (int t = 0; t < size.tokens; t++) {
                const int8_t *digits = groups->activations[t].digits;
                sum_add(activations, &sums[v][t][0], codes.low, digits, l);
                sum_add(activations, &sums[v][t][apart ? 1 : 0], codes.high, digits, l + 4);
            }
        }
    UNROLLED_FOR (int v = 0; v < size.vectors; v++)
        UNROLLED_FOR (int t = 0; t < size.tokens; t++) {
            int32_t sum = groups->activations[t].sum;
            int32_t first = apart ? groups->activations[t].half : sum;
            Ints *halves = groups[v].halves[t];
            halves[0] = sum_total(activations, &sums[v][t][0]) - form->zero * first;
            if (apart)
                halves[1] = sum_total(activations, &sums[v][t][1]) - form->zero * (sum - first);
        }
}

// The same of a panel of pairs.
SIMD_INLINE void pair_sums(const Form *kind, const char *lines, PartSize size, Group *groups) {
    const bool apart = has_halves(kind->weights.scales);
    UNROLLED_FOR (int v = 0; v < size.vectors; v++)
        UNROLLED_FOR (int t = 0; t < size.tokens; t++)
            groups[v].halves[t][0] = groups[v].halves[t][1] = (Ints){0};
    UNROLLED_FOR (int l = 0; l < PAIR_LINES; l++) {
        const int half = apart && l >= PAIR_LINES / 2;
        UNROLLED_FOR (int t = 0; t < size.tokens; t++)
            UNROLLED_FOR (int v = 0; v < size.vectors; v++) {
                Ints *sum = &groups[v].halves[t][half];
                Ints pairs = line_at(lines + l * LINE_BYTES + v * LANES * 4);
                *sum = dot_pairs(*sum, pairs, groups->activations[t].digits + 4 * l);
            }
    }
}

// Sums of tiles come back to vectors through memory, which takes long: products are started some
// groups ahead. Those that are stored then should not lie a multiple of 4096 bytes after those that
// are read, which processors would take for the same.
enum { TILES_AHEAD = 3, TILES_KEPT = 4 };

// The products of group `g` of a panel for tiles, by all the tokens of one.
SIMD_INLINE void tile_start(const StripProduct *product, const Form *kind, int64_t g,
                            TileSum (*kept)[TILE_SUMS]) {
    const RepackedForm *form = &kind->weights;
    const int per_block = SUPERBLOCK_WEIGHTS / GROUP_WEIGHTS;
    if (g >= product->groups) return;
    const char *group =
        product->strip + g * repacked_group_bytes(form) + (g / per_block + 1) * form->header_bytes;
    tile_multiply(group + form->scale_bytes,
                  product->activations[g * product->activation_step].digits,
                  kind->activations == ACTIVATIONS_16, kept[g % TILES_KEPT]);
}

SIMD_INLINE void tile_sums(const Form *kind, const TileSum *products, int row, Group *group) {
    UNROLLED_FOR (int t = 0; t < TILE_TOKENS; t++) {
        Ints sum = line_at((const char *)&products[LOW_SUM].at[t][row]);
        if (kind->activations == ACTIVATIONS_16)
            sum += line_at((const char *)&products[HIGH_SUM].at[t][row]) << 8;
        group->halves[t][0] = sum;
    }
}

SIMD_INLINE void add_scaled(const Group *group, bool has_minimum, int row, int tokens,
                            PartSums *part) {
    Floats scale = floats_of_float16(group->at + row * 2);
    Floats minimum = has_minimum ? floats_of_float16(group->at + 32 + row * 2) : scale;
    UNROLLED_FOR (int t = 0; t < tokens; t++) {
        const ActivationGroup *activations = &group->activations[t];
        Floats factor = scale * float_broadcast(activations->scale);
        part->totals[t] =
            float_multiply_add(floats_of(group->halves[t][0]), factor, part->totals[t]);
        if (has_minimum)
            part->totals[t] = float_multiply_add(minimum, float_broadcast(activations->scaled_sum),
                                                 part->totals[t]);
    }
}

SIMD_INLINE void add_superblock(const Group *group, int row, int tokens, PartSums *part) {
    Floats scale = bytes_at(group->at + row, false), least = bytes_at(group->at + 16 + row, false);
    UNROLLED_FOR (int t = 0; t < tokens; t++) {
        const ActivationGroup *activations = &group->activations[t];
        Floats factor = scale * float_broadcast(activations->scale);
        part->sums[t] = float_multiply_add(floats_of(group->halves[t][0]), factor, part->sums[t]);
        part->minima[t] =
            float_multiply_add(least, float_broadcast(activations->scaled_sum), part->minima[t]);
    }
}

SIMD_INLINE void add_halves(const Group *group, int row, int tokens, PartSums *part) {
    Floats first = bytes_at(group->at + row, true), second = bytes_at(group->at + 16 + row, true);
    UNROLLED_FOR (int t = 0; t < tokens; t++) {
        Floats sum = floats_of(group->halves[t][0]) * first;
        sum = float_multiply_add(floats_of(group->halves[t][1]), second, sum);
        part->sums[t] =
            float_multiply_add(sum, float_broadcast(group->activations[t].scale), part->sums[t]);
    }
}

SIMD_INLINE void add_halves_minimum(const Group *group, int row, int tokens, PartSums *part) {
    const uint8_t *bytes = (const uint8_t *)group->at + row;
    Ints first = ints_of_bytes(bytes), second = ints_of_bytes(bytes + STRIP_ROWS);
    UNROLLED_FOR (int t = 0; t < tokens; t++) {
        const ActivationGroup *activations = &group->activations[t];
        Ints sum = group->halves[t][0] * (first & 15) + group->halves[t][1] * (second & 15);
        Ints least = (first >> 4) * activations->half +
                     (second >> 4) * (activations->sum - activations->half);
        Floats scale = float_broadcast(activations->scale);
        part->sums[t] = float_multiply_add(floats_of(sum), scale, part->sums[t]);
        part->minima[t] = float_multiply_add(floats_of(least), scale, part->minima[t]);
    }
}

// A superblock without minima: one scale a group (NULL: none), as factors of its sums.
SIMD_INLINE void add_group(const Group *group, const Floats *scale, int tokens, Floats *sums) {
    UNROLLED_FOR (int t = 0; t < tokens; t++) {
        Floats factor = float_broadcast(group->activations[t].scale);
        if (scale) factor *= *scale;
        sums[t] = float_multiply_add(floats_of(group->halves[t][0]), factor, sums[t]);
    }
}

// 2 to the bytes less 128, which may be less than the smallest normal number.
SIMD_INLINE Floats powers_at(const char *source) {
    Words exponents = (Words)ints_of_bytes((const uint8_t *)source);
    Words normal = (exponents - 1) << 23, small = ((Words){0} + 0x200000u) << (exponents & 1);
    Words is_small = (Words)(exponents < 2);
    return (Floats)((normal & ~is_small) | (small & is_small));
}

SIMD_INLINE void add_form(const RepackedForm *form, const Group *group, int row, int tokens,
                          PartSums *part) {
    Floats scale;
    switch (form->scales) {
    case SCALE_ZERO: add_scaled(group, false, row, tokens, part); break;
    case SCALE_MINIMUM: add_scaled(group, true, row, tokens, part); break;
    case SCALE_POWER:
        scale = powers_at(group->at + row);
        add_group(group, &scale, tokens, part->totals);
        break;
    case SCALE_SUPERBLOCK: add_superblock(group, row, tokens, part); break;
    case SCALE_GROUPS:
        scale = bytes_at(group->at + row, true);
        add_group(group, &scale, tokens, part->sums);
        break;
    case SCALE_WHOLE: add_group(group, NULL, tokens, part->sums); break;
    case SCALE_HALVES: add_halves(group, row, tokens, part); break;
    case SCALE_HALVES_MINIMUM: add_halves_minimum(group, row, tokens, part); break;
    }
}

// The factors of a superblock, which stand at its head.
SIMD_INLINE void close_superblock(const char *header, bool has_minimum, int row, int tokens,
                                  PartSums *part) {
    Floats d = floats_of_float16(header + row * 2);
    Floats least = has_minimum ? -floats_of_float16(header + 32 + row * 2) : d;
    UNROLLED_FOR (int t = 0; t < tokens; t++) {
        part->totals[t] = float_multiply_add(d, part->sums[t], part->totals[t]);
        if (has_minimum)
            part->totals[t] = float_multiply_add(least, part->minima[t], part->totals[t]);
        part->sums[t] = part->minima[t] = (Floats){0};
    }
}

// Asks for what comes some groups later: processors look ahead within a page at most, and not far
// enough where a line of codes takes many instructions. From far it comes to the second cache
// alone: to the first, few lines can be on their way at a time. A header counts: waiting for one
// line of each superblock took up to a fourth of the time.
SIMD_INLINE void fetch_ahead(const char *group, int bytes) {
    enum { FAR_BYTES = 8192, NEAR_BYTES = 2048, SECOND_CACHE = 2, FIRST_CACHE = 3 };
    UNROLLED_FOR (int byte = 0; byte < bytes; byte += LINE_BYTES) {
        __builtin_prefetch(group + FAR_BYTES + byte, 0, SECOND_CACHE);
        __builtin_prefetch(group + NEAR_BYTES + byte, 0, FIRST_CACHE);
    }
}

// The rows from `row` on of a strip. `kind` and `size` are constants where this is inlined.
SIMD_INLINE void part_product(const StripProduct *product, const Form *kind, PartSize size,
                              int row) {
    const int tokens = size.tokens, vectors = size.vectors;
    const RepackedForm *form = &kind->weights;
    const int per_block = form->header_bytes ? SUPERBLOCK_WEIGHTS / GROUP_WEIGHTS : 1;
    const bool minimum =
        form->scales == SCALE_SUPERBLOCK || form->scales == SCALE_HALVES_MINIMUM; // of a superblock
    PartSums parts[STRIP_VECTORS];
    UNROLLED_FOR (int v = 0; v < vectors; v++)
        UNROLLED_FOR (int t = 0; t < tokens; t++)
            parts[v].totals[t] = parts[v].sums[t] = parts[v].minima[t] = (Floats){0};
    const bool fetch = row == 0 && !is_panel(form->codes) && product->fetch;
    const char *at = product->strip;
    TileSum kept[TILES_KEPT][TILE_SUMS];
    for (int g = 0; form->codes == CODES_TILE && g < TILES_AHEAD; g++)
        tile_start(product, kind, g, kept);
    for (int64_t block = 0; block < product->groups; block += per_block) {
        const char *header = at;
        if (fetch) fetch_ahead(header, form->header_bytes);
        at += form->header_bytes;
        for (int g = 0; g < per_block; g++, at += repacked_group_bytes(form)) {
            Group groups[STRIP_VECTORS];
            const char *lines = at + form->scale_bytes;
            if (fetch) fetch_ahead(at, repacked_group_bytes(form));
            if (form->codes == CODES_TILE) tile_start(product, kind, block + g + TILES_AHEAD, kept);
            UNROLLED_FOR (int v = 0; v < vectors; v++) {
                groups[v].at = at;
                groups[v].activations =
                    product->activations + (block + g) * product->activation_step;
                if (form->codes == CODES_TILE)
                    tile_sums(kind, kept[(block + g) % TILES_KEPT], row + v * LANES, &groups[v]);
            }
            if (form->codes == CODES_PAIRS)
                pair_sums(kind, lines + row * 4, size, groups);
            else if (form->codes != CODES_TILE)
                group_sums(kind, lines + row * 4, size, groups);
            UNROLLED_FOR (int v = 0; v < vectors; v++)
                add_form(form, &groups[v], row + v * LANES, tokens, &parts[v]);
        }
        UNROLLED_FOR (int v = 0; v < vectors; v++)
            if (form->header_bytes)
                close_superblock(header, minimum, row + v * LANES, tokens, &parts[v]);
    }
    UNROLLED_FOR (int v = 0; v < vectors; v++)
        UNROLLED_FOR (int t = 0; t < tokens; t++)
            if (form->codes != CODES_TILE || t < product->tokens)
                memcpy(product->out + t * product->out_stride + row + v * LANES,
                       &parts[v].totals[t], sizeof(Floats));
}

SIMD_INLINE void parts_product(const StripProduct *product, const Form *kind, PartSize size) {
    for (int row = 0; row < STRIP_ROWS; row += size.vectors * LANES)
        part_product(product, kind, size, row);
}

// All rows of a strip by all tokens: as many as `many` says at a time, then `some`, then one.
SIMD_INLINE void strip_product(const StripProduct *product, const Form *kind, PartSize many,
                               PartSize some) {
    StripProduct rest = *product;
    while (rest.tokens > 0) {
        int tokens = rest.tokens >= many.tokens   ? many.tokens
                     : rest.tokens >= some.tokens ? some.tokens
                                                  : 1;
        if (tokens == many.tokens)
            parts_product(&rest, kind, many);
        else if (tokens == some.tokens)
            parts_product(&rest, kind, some);
        else
            parts_product(&rest, kind, (PartSize){1, VECTORS_OF_ONE});
        rest.tokens -= tokens;
        rest.activations += tokens;
        rest.out += tokens * rest.out_stride;
    }
}

#endif
