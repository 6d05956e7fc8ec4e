// Block-quantised weights: see catalog/dtypes.def and the GGUF specification. `base` is the first
// block of a row, `index` an element of the row. The same float32 numbers as on the CPU
// (device/cpu/simd/blocks.h, blocks_more.h, which describe the blocks); products are not fused with
// what is added to them.
#ifndef QUANTISED_GLSL
#define QUANTISED_GLSL

uint byte_at(uint64_t address) {
    return uint(Byte(address).v);
}

int signed_byte(uint64_t address) {
    return int(byte_at(address) << 24) >> 24;
}

float half_at(uint64_t address) {
    return float_of_half(uint(Short(address).v));
}

// Elements and bytes of a block.
uint block_elements(uint dtype) {
#define ROW(code, elements, bytes) if (dtype == code) return elements;
    QUANTISED_ROWS(ROW)
#undef ROW
    return 0u;
}

uint block_bytes(uint dtype) {
#define ROW(code, elements, bytes) if (dtype == code) return bytes;
    QUANTISED_ROWS(ROW)
#undef ROW
    return 0u;
}

// Nibble `at` of 16 bytes that hold 32: the low ones first.
uint nibble_of(uint64_t address, uint at) {
    return byte_at(address + uint64_t(at & 15u)) >> (at < 16u ? 0u : 4u) & 15u;
}

// Bit `at` of 4 bytes.
uint bit_of(uint64_t address, uint at) {
    return byte_at(address + uint64_t(at >> 3)) >> (at & 7u) & 1u;
}

// Pair `at` of 64 bytes: each half of 128 has 32 bytes, whose pairs count from the lowest up.
uint pair_of(uint64_t address, uint at) {
    return byte_at(address + uint64_t(at >> 7 << 5 | (at & 31u))) >> (at >> 5 & 3u) * 2u & 3u;
}

float scaled_plus(int number, float scale, float term) {
    precise float product = float(number) * scale;
    precise float sum = product + term;
    return sum;
}

// weight_of_<code>: weight `at` of the block of that dtype.
float weight_of_Q4_0(uint64_t block, uint at) {
    return float(int(nibble_of(block + 2UL, at)) - 8) * half_at(block);
}

float weight_of_Q8_0(uint64_t block, uint at) {
    return float(signed_byte(block + 2UL + uint64_t(at))) * half_at(block);
}

float weight_of_Q4_1(uint64_t block, uint at) {
    return scaled_plus(int(nibble_of(block + 4UL, at)), half_at(block), half_at(block + 2UL));
}

int number_of_q5(uint64_t bits, uint at) {
    return int(nibble_of(bits + 4UL, at) | bit_of(bits, at) << 4);
}

float weight_of_Q5_0(uint64_t block, uint at) {
    return float(number_of_q5(block + 2UL, at) - 16) * half_at(block);
}

float weight_of_Q5_1(uint64_t block, uint at) {
    return scaled_plus(number_of_q5(block + 4UL, at), half_at(block), half_at(block + 2UL));
}

float weight_of_Q6_K(uint64_t block, uint at) {
    uint half_block = at >> 7, quarter = at >> 5 & 3u, lane = at & 31u;
    uint low = byte_at(block + uint64_t(half_block * 64u + (quarter & 1u) * 32u + lane));
    uint high = byte_at(block + uint64_t(128u + half_block * 32u + lane));
    uint bits = (low >> (quarter & 2u) * 2u & 15u) | (high >> 2u * quarter & 3u) << 4;
    float scale = float(signed_byte(block + uint64_t(192u + (at >> 4))));
    return float(int(bits) - 32) * (half_at(block + 208UL) * scale);
}

float weight_of_Q2_K(uint64_t block, uint at) {
    uint scales = byte_at(block + uint64_t(at >> 4));
    float scale = half_at(block + 80UL) * float(scales & 15u);
    precise float least = half_at(block + 82UL) * float(scales >> 4);
    return scaled_plus(int(pair_of(block + 16UL, at)), scale, -least);
}

float weight_of_Q3_K(uint64_t block, uint at) {
    uint which = at >> 4;
    uint low = byte_at(block + uint64_t(96u + (which & 7u))) >> (which >> 3) * 4u & 15u;
    uint high = byte_at(block + uint64_t(104u + (which & 3u))) >> (which >> 2) * 2u & 3u;
    uint top = byte_at(block + uint64_t(at & 31u)) >> (at >> 5) & 1u;
    int number = int(pair_of(block + 32UL, at) | top << 2) - 4;
    return float(number) * (half_at(block + 108UL) * float(int(low | high << 4) - 32));
}

// Q4_K and Q5_K: scales and minima of 6 bits for groups of 32, packed in 12 bytes from `packed` on.
void scale_and_minimum(uint64_t packed, uint group, out uint scale, out uint minimum) {
    uint first = byte_at(packed + uint64_t(group & 3u));
    uint second = byte_at(packed + uint64_t((group & 3u) + 4u));
    uint third = byte_at(packed + uint64_t((group & 3u) + 8u));
    scale = group < 4u ? first & 63u : (third & 15u) | first >> 6 << 4;
    minimum = group < 4u ? second & 63u : third >> 4 | second >> 6 << 4;
}

float weight_of_q45_k(uint64_t block, uint at, bool fifth) {
    uint group = at >> 5, scale, minimum;
    scale_and_minimum(block + 4UL, group, scale, minimum);
    uint64_t nibbles = block + (fifth ? 48UL : 16UL);
    uint number = byte_at(nibbles + uint64_t(group >> 1 << 5 | (at & 31u))) >> (group & 1u) * 4u & 15u;
    if (fifth) number |= (byte_at(block + 16UL + uint64_t(at & 31u)) >> group & 1u) << 4;
    precise float least = half_at(block + 2UL) * float(minimum);
    return scaled_plus(int(number), half_at(block) * float(scale), -least);
}

float weight_of_Q4_K(uint64_t block, uint at) {
    return weight_of_q45_k(block, at, false);
}

float weight_of_Q5_K(uint64_t block, uint at) {
    return weight_of_q45_k(block, at, true);
}

// The sixteen values of the IQ4 types, as signed bytes.
float value_of_iq4(uint number) {
    const uint table[4] = uint[](0xBFAD9881u, 0xF6EADDCFu, 0x26190D01u, 0x71594535u);
    return float(bitfieldExtract(int(table[number >> 2]), int(number & 3u) * 8, 8));
}

float weight_of_IQ4_NL(uint64_t block, uint at) {
    return value_of_iq4(nibble_of(block + 2UL, at)) * half_at(block);
}

float weight_of_IQ4_XS(uint64_t block, uint at) {
    uint group = at >> 5;
    uint low = byte_at(block + uint64_t(4u + (group >> 1))) >> (group & 1u) * 4u & 15u;
    uint high = byte_at(block + uint64_t(2u + (group >> 2))) >> (group & 3u) * 2u & 3u;
    uint number = nibble_of(block + uint64_t(8u + group * 16u), at & 31u);
    return value_of_iq4(number) * (half_at(block) * float(int(low | high << 4) - 32));
}

// Five digits of base 3 to a byte: 32 bytes hold weights 0..159, 16 bytes 160..239, digit by digit;
// 4 bytes of four digits hold the rest.
float weight_of_TQ1_0(uint64_t block, uint at) {
    uint place = at & 31u, digit = at >> 5;
    if (at >= 160u) {
        bool rest = at >= 240u;
        place = rest ? 48u + (at & 3u) : 32u + (at & 15u);
        digit = rest ? (at - 240u) >> 2 : (at - 160u) >> 4;
    }
    uint power = 1u;
    for (uint i = 0; i < digit; i++) power *= 3u;
    uint value = (byte_at(block + uint64_t(place)) * power & 255u) * 3u >> 8;
    return float(int(value) - 1) * half_at(block + 52UL);
}

float weight_of_TQ2_0(uint64_t block, uint at) {
    return float(int(pair_of(block, at)) - 1) * half_at(block + 64UL);
}

// A power of two for 32 numbers of 4 bits: a sign, two bits of exponent, one of fraction.
float weight_of_MXFP4(uint64_t block, uint at) {
    const uint table[2] = uint[](0x03020100u, 0x0C080604u);
    uint nibble = nibble_of(block + 1UL, at), exponent = byte_at(block);
    float number = float(table[nibble >> 2 & 1u] >> (nibble & 3u) * 8u & 255u);
    float scale = uintBitsToFloat(exponent < 2u ? 0x200000u << exponent : exponent - 1u << 23);
    return (nibble >= 8u ? -number : number) * scale;
}

float load_weight(uint64_t base, int64_t index, uint dtype) {
    uint elements = block_elements(dtype);
    uint at = uint(index) & (elements - 1u);
    uint64_t block = base + uint64_t(index >> findLSB(elements)) * uint64_t(block_bytes(dtype));
#define ROW(code, elements, bytes) if (dtype == code) return weight_of_##code(block, at);
    QUANTISED_ROWS(ROW)
#undef ROW
    return 0.0;
}

// Bytes from the first block to the one that holds element `index`, a multiple of the block.
int64_t weight_offset(int64_t index, uint dtype) {
    return index / int64_t(block_elements(dtype)) * int64_t(block_bytes(dtype));
}

#endif
