// Blocks of GGUF to strips of 16 interleaved rows. Knows no arithmetic of products.
#include <string.h>

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
    // Byte i of 32 has the bit of weight i at `group`; bit l + 4 * half of the line's byte takes
    // it.
    out->lines[0] = 0;
    for (int d = 0; d < 8; d++)
        out->lines[0] |= (dword_at(block + 16, d) >> group & 0x01010101u) << d;
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

typedef void (*TakeGroup)(const uint8_t *block, int group, GroupRow *out);
static const TakeGroup take_table[DTYPE_COUNT] = {
    [DTYPE_Q8_0] = take_q8_0, [DTYPE_Q4_0] = take_q4_0, [DTYPE_IQ4_NL] = take_iq4_nl,
    [DTYPE_Q4_1] = take_q4_1, [DTYPE_Q5_0] = take_q5_0, [DTYPE_Q5_1] = take_q5_1,
    [DTYPE_Q4_K] = take_q4_k, [DTYPE_Q5_K] = take_q5_k, [DTYPE_Q6_K] = take_q6_k,
};

static const RepackedForm forms[DTYPE_COUNT] = {
#define REPACKED(code, ...) [DTYPE_##code] = {__VA_ARGS__},
#include "device/cpu/repacked.def"
#undef REPACKED
};

const RepackedForm *repacked_form(DType dtype) {
    return forms[dtype].group_bytes ? &forms[dtype] : NULL;
}

size_t repacked_strip_bytes(const RepackedForm *form, int64_t columns) {
    int64_t blocks = form->header_bytes ? columns / SUPERBLOCK_WEIGHTS : 0;
    return (size_t)(columns / GROUP_WEIGHTS * form->group_bytes + blocks * form->header_bytes);
}

static void put_group(const RepackedForm *form, const GroupRow *from, int row, char *group) {
    int scale_bytes = 32;
    if (form->header_bytes) {
        group[row] = (char)from->bytes[0];
        group[STRIP_ROWS + row] = (char)from->bytes[1];
    } else {
        memcpy(group + 2 * row, from->halves, 2);
        if (form->scales == SCALE_MINIMUM) {
            memcpy(group + 32 + 2 * row, from->halves + 2, 2);
            scale_bytes = 64;
        }
    }
    int lines = (form->group_bytes - scale_bytes) / LINE_BYTES;
    for (int l = 0; l < lines; l++)
        memcpy(group + scale_bytes + l * LINE_BYTES + 4 * row, &from->lines[l], 4);
}

static void repack_row(DType dtype, const char *blocks, int64_t columns, int row, char *strip) {
    const RepackedForm *form = &forms[dtype];
    TakeGroup take = take_table[dtype];
    int per_block = form->header_bytes ? SUPERBLOCK_WEIGHTS / GROUP_WEIGHTS : 1;
    for (int64_t done = 0; done < columns; done += per_block * GROUP_WEIGHTS) {
        char *header = strip;
        strip += form->header_bytes;
        GroupRow group;
        for (int g = 0; g < per_block; g++, strip += form->group_bytes) {
            take((const uint8_t *)blocks, g, &group);
            put_group(form, &group, row, strip);
        }
        if (form->header_bytes) memcpy(header + 2 * row, group.halves, 2);
        if (form->scales == SCALE_SUPERBLOCK) memcpy(header + 32 + 2 * row, group.halves + 2, 2);
        blocks += form->block_bytes;
    }
}

void repack_strip(DType dtype, const char *rows, int64_t row_bytes, int row_count, int64_t columns,
                  char *strip) {
    if (row_count < STRIP_ROWS) memset(strip, 0, repacked_strip_bytes(&forms[dtype], columns));
    for (int row = 0; row < row_count; row++)
        repack_row(dtype, rows + row * row_bytes, columns, row, strip);
}
