// Numbers as keys: integers in the order that is wanted, NaN last in both orders, made of the bits of
// elements. KEY_BITS is 64 for elements of 8 bytes, else 32; keys take as many of them as elements have.
#ifndef KEYS_GLSL
#define KEYS_GLSL

#include "types.glsl"

#if KEY_BITS == 64
#define Key uint64_t
#define Keys Long
#else
#define Key uint
#define Keys Word
#endif
const uint64_t KEY_BYTES = KEY_BITS / 8;

Key key_last(uint dtype) {
    return ~Key(0) >> (KEY_BITS - 8 * element_bytes(dtype));
}

Key key_sign(uint dtype) {
    return Key(1) << (8 * element_bytes(dtype) - 1);
}

bool keys_floats(uint dtype) {
    return dtype == FLOAT16 || dtype == BFLOAT16 || dtype == FLOAT32 || dtype == FLOAT64;
}

// The bits of infinity.
Key key_infinity(uint dtype) {
#if KEY_BITS == 64
    return 0x7FF0000000000000UL;
#else
    return dtype == FLOAT16 ? 0x7C00u : dtype == BFLOAT16 ? 0x7F80u : 0x7F800000u;
#endif
}

Key key_of(Key bits, uint dtype, bool descending) {
    Key last = key_last(dtype), sign = key_sign(dtype);
    if (keys_floats(dtype)) {
        Key size = bits & ~sign;
        if (size > key_infinity(dtype)) return last;
        if (size == Key(0)) bits = Key(0); // the zeros tie
        bits = (bits & sign) != Key(0) ? ~bits & last : bits | sign;
    } else if (dtype != BOOL && dtype != UINT8) {
        bits ^= sign;
    }
    return descending ? ~bits & last : bits;
}

// Whether elements of different bits have this key: NaN, and the zeros.
bool key_is_shared(Key key, uint dtype, bool descending) {
    return keys_floats(dtype) &&
           (key == key_last(dtype) || key == key_of(Key(0), dtype, descending));
}

// Of a key that is not shared.
Key bits_of_key(Key key, uint dtype, bool descending) {
    Key last = key_last(dtype), sign = key_sign(dtype);
    if (descending) key = ~key & last;
    if (keys_floats(dtype)) return (key & sign) != Key(0) ? key ^ sign : ~key & last;
    return dtype == BOOL || dtype == UINT8 ? key : key ^ sign;
}

Key load_bits(uint64_t address, int64_t index, uint dtype) {
    uint64_t at = element_address(address, index, dtype);
#if KEY_BITS == 64
    return Long(at).v;
#else
    uint size = element_bytes(dtype);
    if (size == 4) return Word(at).v;
    return size == 2 ? uint(Short(at).v) : uint(Byte(at).v);
#endif
}

void store_bits(uint64_t address, int64_t index, uint dtype, Key bits) {
    uint64_t at = element_address(address, index, dtype);
#if KEY_BITS == 64
    Long(at).v = bits;
#else
    uint size = element_bytes(dtype);
    if (size == 4) Word(at).v = bits;
    else if (size == 2) Short(at).v = uint16_t(bits);
    else Byte(at).v = uint8_t(bits);
#endif
}

#endif
