// Block-quantised weights: see catalog/dtypes.def and the GGUF specification. `base` is the first
// block of a row, `index` an element of the row.
#ifndef QUANTISED_GLSL
#define QUANTISED_GLSL

int signed_byte(uint64_t address) {
    return int(uint(Byte(address).v) << 24) >> 24;
}

float half_at(uint64_t address) {
    return float_of_half(uint(Short(address).v));
}

float weight_of_q4_0(uint64_t base, int64_t index) {
    uint at = uint(index & 31L);
    uint64_t block = base + uint64_t(index >> 5) * 18UL;
    uint pair = uint(Byte(block + 2UL + uint64_t(at & 15u)).v);
    return float(int(at < 16u ? pair & 15u : pair >> 4) - 8) * half_at(block);
}

float weight_of_q8_0(uint64_t base, int64_t index) {
    uint64_t block = base + uint64_t(index >> 5) * 34UL;
    return float(signed_byte(block + 2UL + uint64_t(index & 31L))) * half_at(block);
}

float weight_of_q6_k(uint64_t base, int64_t index) {
    uint at = uint(index & 255L), half_block = at >> 7, quarter = at >> 5 & 3u, lane = at & 31u;
    uint64_t block = base + uint64_t(index >> 8) * 210UL;
    uint low = uint(Byte(block + uint64_t(half_block * 64u + (quarter & 1u) * 32u + lane)).v);
    uint high = uint(Byte(block + uint64_t(128u + half_block * 32u + lane)).v);
    uint bits = (low >> (quarter & 2u) * 2u & 15u) | (high >> 2u * quarter & 3u) << 4;
    float scale = float(signed_byte(block + uint64_t(192u + (at >> 4))));
    return float(int(bits) - 32) * (half_at(block + 208UL) * scale);
}

float load_weight(uint64_t base, int64_t index, uint dtype) {
    if (dtype == Q4_0) return weight_of_q4_0(base, index);
    return dtype == Q8_0 ? weight_of_q8_0(base, index) : weight_of_q6_k(base, index);
}

// Bytes from the first block to the one that holds element `index`, a multiple of the block.
int64_t weight_offset(int64_t index, uint dtype) {
    if (dtype == Q4_0) return index / 32L * 18L;
    return dtype == Q8_0 ? index / 32L * 34L : index / 256L * 210L;
}

#endif
