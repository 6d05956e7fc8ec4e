// Blocks of GGUF to strips of 16 interleaved rows. Knows no arithmetic of products.
#include <string.h>

#include "device/cpu/repack.h"
#include "device/cpu/repacked.h"

// One row's share of a group: a dword of each line, and its scales.
typedef struct GroupRow {
    uint32_t lines[8]; // high bits first
    uint8_t halves[4]; // float16 scale and minimum
    uint8_t bytes[2];  // scale and minimum of a superblock's group, or the scales of its halves
} GroupRow;

static uint32_t dword_at(const uint8_t *bytes, int index) {
    uint32_t dword;
    memcpy(&dword, bytes + 4 * index, sizeof dword);
    return dword;
}

// 16 bytes, byte j with weight j below and j + 16 above, are four lines as they are.
static void take_nibbles(const uint8_t *bytes, uint32_t *lines) {
    for (int l = 0; l < 4; l++) lines[l] = dword_at(bytes, l);
}

// 32 bytes that hold one weight each, in the nibble at `shift`.
static void take_half_bytes(const uint8_t *bytes, int shift, uint32_t *lines) {
    for (int l = 0; l < 4; l++)
        lines[l] = (dword_at(bytes, l) >> shift & 0x0F0F0F0Fu) |
                   (dword_at(bytes, l + 4) >> shift & 0x0F0F0F0Fu) << 4;
}

// Bit i of a word belongs to weight i: byte j of the line takes bits j, j + 4, ..., j + 28.
static void take_fifth_bits(const uint8_t *bytes, GroupRow *out) {
    uint32_t bits = dword_at(bytes, 0), line = 0;
    for (int i = 0; i < GROUP_WEIGHTS; i++) line |= (bits >> i & 1u) << (8 * (i % 4) + i / 4);
    out->lines[0] = line;
}

static void take_q8_0(const uint8_t *block, int group, GroupRow *out) {
    (void)group;
    memcpy(out->halves, block, 2);
    for (int l = 0; l < 8; l++) out->lines[l] = dword_at(block + 2, l) ^ 0x80808080u;
}

static void take_q4_0(const uint8_t *block, int group, GroupRow *out) {
    (void)group;
    memcpy(out->halves, block, 2);
    take_nibbles(block + 2, out->lines);
}

#define take_iq4_nl take_q4_0

static void take_mxfp4(const uint8_t *block, int group, GroupRow *out) {
    (void)group;
    out->bytes[0] = block[0];
    take_nibbles(block + 1, out->lines);
}

static void take_q4_1(const uint8_t *block, int group, GroupRow *out) {
    (void)group;
    memcpy(out->halves, block, 4);
    take_nibbles(block + 4, out->lines);
}

static void take_q5_0(const uint8_t *block, int group, GroupRow *out) {
    (void)group;
    memcpy(out->halves, block, 2);
    take_fifth_bits(block + 2, out);
    take_nibbles(block + 6, out->lines + 1);
}

static void take_q5_1(const uint8_t *block, int group, GroupRow *out) {
    (void)group;
    memcpy(out->halves, block, 4);
    take_fifth_bits(block + 4, out);
    take_nibbles(block + 8, out->lines + 1);
}

// Of 2-bit codes: `low` and `high` have weights 4l + j and 16 + 4l + j in byte j of dword l.
static void put_pairs(const uint32_t *low, const uint32_t *high, uint32_t *lines) {
    for (int l = 0; l < 2; l++)
        lines[l] = low[2 * l] | high[2 * l] << 2 | low[2 * l + 1] << 4 | high[2 * l + 1] << 6;
}

// The pairs of bits of a group, a quarter of each of 32 bytes.
static void take_pairs(const uint8_t *bytes, int group, uint32_t *lines) {
    const uint8_t *half = bytes + group / 4 * 32;
    uint32_t dwords[QUADS];
    for (int d = 0; d < QUADS; d++) dwords[d] = dword_at(half, d) >> group % 4 * 2 & 0x03030303u;
    put_pairs(dwords, dwords + 4, lines);
}

// Byte i of 32 has the high bit of weight i at `group`; bit l + 4 * half of the line's byte takes
// it.
static uint32_t high_bits(const uint8_t *bytes, int group) {
    uint32_t line = 0;
    for (int d = 0; d < QUADS; d++) line |= (dword_at(bytes, d) >> group & 0x01010101u) << d;
    return line;
}

static void take_q2_k(const uint8_t *block, int group, GroupRow *out) {
    memcpy(out->halves, block + 80, 4);
    memcpy(out->bytes, block + 2 * group, 2);
    take_pairs(block + 16, group, out->lines);
}

// 16 scales of 6 bits: 8 bytes of low nibbles, then 4 bytes of high pairs.
static void take_q3_k(const uint8_t *block, int group, GroupRow *out) {
    const uint8_t *scales = block + 96;
    memcpy(out->halves, block + 108, 2);
    for (int i = 0; i < 2; i++) {
        int which = group * 2 + i;
        int low = scales[which % 8] >> which / 8 * 4 & 15;
        int high = scales[8 + which % 4] >> which / 4 * 2 & 3;
        out->bytes[i] = (uint8_t)((low | high << 4) - 32);
    }
    out->lines[0] = high_bits(block, group);
    take_pairs(block + 32, group, out->lines + 1);
}

// Scale and minimum of a group of Q4_K and Q5_K: 6 bits each, packed in 12 bytes.
static void take_scale_and_minimum(const uint8_t *packed, int group, GroupRow *out) {
    if (group < 4) {
        out->bytes[0] = packed[group] & 63;
        out->bytes[1] = packed[group + 4] & 63;
    } else {
        out->bytes[0] = (uint8_t)((packed[group + 4] & 15) | packed[group - 4] >> 6 << 4);
        out->bytes[1] = (uint8_t)(packed[group + 4] >> 4 | packed[group] >> 6 << 4);
    }
}

static void take_q4_k(const uint8_t *block, int group, GroupRow *out) {
    memcpy(out->halves, block, 4);
    take_scale_and_minimum(block + 4, group, out);
    take_half_bytes(block + 16 + group / 2 * 32, group % 2 * 4, out->lines);
}

static void take_q5_k(const uint8_t *block, int group, GroupRow *out) {
    memcpy(out->halves, block, 4);
    take_scale_and_minimum(block + 4, group, out);
    take_half_bytes(block + 48 + group / 2 * 32, group % 2 * 4, out->lines + 1);
    out->lines[0] = high_bits(block + 16, group);
}

static void take_q6_k(const uint8_t *block, int group, GroupRow *out) {
    memcpy(out->halves, block + 208, 2);
    memcpy(out->bytes, block + 192 + 2 * group, 2);
    int half = group / 4, quarter = group % 4;
    take_half_bytes(block + half * 64 + (quarter & 1) * 32, (quarter & 2) * 2, out->lines + 2);
    const uint8_t *pairs = block + 128 + half * 32;
    out->lines[0] = out->lines[1] = 0;
    for (int l = 0; l < 4; l++) {
        out->lines[0] |= (dword_at(pairs, l) >> 2 * quarter & 0x03030303u) << 2 * l;
        out->lines[1] |= (dword_at(pairs, l + 4) >> 2 * quarter & 0x03030303u) << 2 * l;
    }
}

static void take_iq4_xs(const uint8_t *block, int group, GroupRow *out) {
    memcpy(out->halves, block, 2);
    int low = block[4 + group / 2] >> group % 2 * 4 & 15;
    int high = block[2 + group / 4] >> group % 4 * 2 & 3;
    out->bytes[0] = (uint8_t)((low | high << 4) - 32);
    take_nibbles(block + 8 + group * 16, out->lines);
}

// Five digits of base 3 in a byte: 32 bytes hold groups 0 to 4, 16 bytes groups 5 and 6 and half of
// 7, 4 bytes of four digits the rest.
static void take_tq1_0(const uint8_t *block, int group, GroupRow *out) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    uint8_t codes[GROUP_WEIGHTS];
    for (int i = 0; i < GROUP_WEIGHTS; i++) {
        int weight = group * GROUP_WEIGHTS + i, digit = group;
        const uint8_t *byte = block + i;
        if (weight >= 240) {
            digit = (weight - 240) / 4;
            byte = block + 48 + i % 4;
        } else if (weight >= 160) {
            digit = (weight - 160) / 16;
            byte = block + 32 + i % 16;
        }
        codes[i] = (uint8_t)((*byte * powers[digit] & 255) * 3 >> 8);
    }
    uint32_t dwords[QUADS];
    memcpy(dwords, codes, sizeof dwords);
    memcpy(out->halves, block + 52, 2);
    put_pairs(dwords, dwords + 4, out->lines);
}

static void take_tq2_0(const uint8_t *block, int group, GroupRow *out) {
    memcpy(out->halves, block + 64, 2);
    take_pairs(block, group, out->lines);
}

typedef void (*TakeGroup)(const uint8_t *block, int group, GroupRow *out);
static const TakeGroup take_table[DTYPE_COUNT] = {
    [DTYPE_Q8_0] = take_q8_0,     [DTYPE_Q4_0] = take_q4_0,   [DTYPE_IQ4_NL] = take_iq4_nl,
    [DTYPE_MXFP4] = take_mxfp4,   [DTYPE_Q4_1] = take_q4_1,   [DTYPE_Q5_0] = take_q5_0,
    [DTYPE_Q5_1] = take_q5_1,     [DTYPE_Q2_K] = take_q2_k,   [DTYPE_Q3_K] = take_q3_k,
    [DTYPE_Q4_K] = take_q4_k,     [DTYPE_Q5_K] = take_q5_k,   [DTYPE_Q6_K] = take_q6_k,
    [DTYPE_IQ4_XS] = take_iq4_xs, [DTYPE_TQ1_0] = take_tq1_0, [DTYPE_TQ2_0] = take_tq2_0,
};

static const RepackedForm forms[DTYPE_COUNT] = {
#define REPACKED(code, ...) [DTYPE_##code] = {__VA_ARGS__},
#include "device/cpu/repacked.def"
#undef REPACKED
};

const RepackedForm *repacked_form(DType dtype) {
    return forms[dtype].lines ? &forms[dtype] : NULL;
}

size_t repacked_strip_bytes(const RepackedForm *form, int64_t columns) {
    int64_t blocks = form->header_bytes ? columns / SUPERBLOCK_WEIGHTS : 0;
    return (size_t)(columns / GROUP_WEIGHTS * repacked_group_bytes(form) +
                    blocks * form->header_bytes);
}

static void put_group(const RepackedForm *form, const GroupRow *from, int row, char *group) {
    if (form->scales == SCALE_ZERO || form->scales == SCALE_MINIMUM)
        for (int at = 0; at < form->scale_bytes; at += 32)
            memcpy(group + at + 2 * row, from->halves + at / 16, 2);
    else
        for (int at = 0; at < form->scale_bytes; at += STRIP_ROWS)
            group[at + row] = (char)from->bytes[at / STRIP_ROWS];
    for (int l = 0; l < form->lines; l++)
        memcpy(group + form->scale_bytes + l * LINE_BYTES + 4 * row, &from->lines[l], 4);
}

static void repack_row(DType dtype, const char *blocks, int64_t columns, int row, char *strip) {
    const RepackedForm *form = &forms[dtype];
    TakeGroup take = take_table[dtype];
    int per_block = form->header_bytes ? SUPERBLOCK_WEIGHTS / GROUP_WEIGHTS : 1;
    for (int64_t done = 0; done < columns; done += per_block * GROUP_WEIGHTS) {
        char *header = strip;
        strip += form->header_bytes;
        GroupRow group;
        for (int g = 0; g < per_block; g++, strip += repacked_group_bytes(form)) {
            take((const uint8_t *)blocks, g, &group);
            put_group(form, &group, row, strip);
        }
        for (int at = 0; at < form->header_bytes; at += 32)
            memcpy(header + at + 2 * row, group.halves + at / 16, 2);
        blocks += form->block_bytes;
    }
}

void repack_strip(const WeightRows *rows, char *strip) {
    if (rows->count < STRIP_ROWS)
        memset(strip, 0, repacked_strip_bytes(&forms[rows->dtype], rows->columns));
    for (int row = 0; row < rows->count; row++)
        repack_row(rows->dtype, rows->first + row * rows->row_bytes, rows->columns, row, strip);
}
