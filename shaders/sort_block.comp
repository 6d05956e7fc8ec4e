// SORT by digits of keys, least significant first: each pass keeps the order of equal digits. A
// workgroup has a block of numbers, a thread EACH of them; those of a subgroup are neighbours.
//   COUNT: how many numbers of a block have each value of a digit
//   MOVE:  with the running sums of that over blocks, a block's numbers to their places in the row
//   WHOLE: all digits of rows that fit a block, or the first numbers of each block of a row
// Keys have 32 bits, or 64 with KEY_BITS=64; with them go places: numbers of elements in their rows.
// The first pass may make keys of the numbers themselves (FIRST), the last one numbers of keys (LAST).
#define REAL_I64
#include "keys.glsl"
#include "host/sort_block.h"
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require

const uint EACH = SORT_EACH, DIGITS = 256;
layout(local_size_x_id = 0) in;
const uint THREADS = gl_WorkGroupSize.x, BLOCK = THREADS * EACH;

const uint OWN = DIGITS > THREADS ? DIGITS / THREADS : 1; // digits that a thread looks after
const uint TOTALS = SUBGROUPS * DIGITS;
// Numbers that change places; before, of each subgroup, how many of a digit it has, then where they
// begin.
shared uint exchange[TOTALS > BLOCK ? TOTALS : BLOCK];
#define totals exchange
shared uint starts[DIGITS]; // of a digit in the block, or from there to its place
shared uint subgroup_totals[SUBGROUPS];

// A block: where its numbers begin, how many there are, and of which row it is.
uint row, block, first, size;
uint subgroup_first, thread; // the first element of this subgroup; the thread's number

uint element_of(uint j) {
    return subgroup_first + j * gl_SubgroupSize;
}

uint digit_at(Key key, uint bit) {
    return uint(key >> bit) & (DIGITS - 1);
}

#define SPLIT(bit)                                                                                 \
    {                                                                                              \
        bool set = (digit >> bit & 1u) != 0;                                                       \
        uvec4 others = subgroupBallot(set);                                                        \
        same.x &= set ? others.x : ~others.x;                                                      \
        if (!NARROW) same.yzw &= set ? others.yzw : ~others.yzw;                                   \
    }

// How many numbers of this digit the subgroup has before the thread's; counts it.
uint rank_of(uint digit) {
    uvec4 same = subgroupBallot(true);
    SPLIT(0) SPLIT(1) SPLIT(2) SPLIT(3) SPLIT(4) SPLIT(5) SPLIT(6) SPLIT(7)
    uint at = gl_SubgroupID * DIGITS + digit, earlier = totals[at];
    uint before = NARROW ? bitCount(same.x & gl_SubgroupLtMask.x)
                         : subgroupBallotExclusiveBitCount(same);
    uint all = NARROW ? bitCount(same.x) : subgroupBallotBitCount(same);
    subgroupBarrier();
    if (before == 0) totals[at] = earlier + all;
    subgroupBarrier();
    return earlier + before;
}

void clear_totals() {
    barrier();
    for (uint i = thread; i < TOTALS; i += THREADS) totals[i] = 0;
    barrier();
}

// What the subgroups before this one have.
uint before_subgroup(uint total) {
    barrier();
    if (gl_SubgroupInvocationID == 0) subgroup_totals[gl_SubgroupID] = total;
    barrier();
    uint before = 0;
    for (uint s = 0; s < gl_SubgroupID; s++) before += subgroup_totals[s];
    return before;
}

// Counts become places: of a digit among the digits, of a subgroup among those of its digit.
void place_digits() {
    barrier();
    uint sum = 0;
    if (thread * OWN < DIGITS) {
        for (uint d = thread * OWN; d < (thread + 1) * OWN; d++) {
            uint running = 0;
            for (uint s = 0; s < SUBGROUPS; s++) {
                uint here = totals[s * DIGITS + d];
                totals[s * DIGITS + d] = running;
                running += here;
            }
            starts[d] = sum;
            sum += running;
        }
    }
    uint before = subgroupExclusiveAdd(sum) + before_subgroup(subgroupAdd(sum));
    if (thread * OWN < DIGITS)
        for (uint d = thread * OWN; d < (thread + 1) * OWN; d++) starts[d] += before;
    barrier();
}

uint sum_at(uint digit, uint block) {
    return Word(counts + uint64_t((row * DIGITS + digit) * blocks + block) * 4UL).v;
}

// The block's starts of digits become what leads from there to their places.
void place_in_row() {
    barrier();
    uint sum = 0;
    if (thread * OWN < DIGITS) {
        for (uint d = thread * OWN; d < (thread + 1) * OWN; d++) {
            starts[d] = row * count + sum + (block > 0 ? sum_at(d, block - 1) : 0) - starts[d];
            sum += sum_at(d, blocks - 1);
        }
    }
    uint before = subgroupExclusiveAdd(sum) + before_subgroup(subgroupAdd(sum));
    if (thread * OWN < DIGITS)
        for (uint d = thread * OWN; d < (thread + 1) * OWN; d++) starts[d] += before;
}

#define EACH_NUMBER(j) [[unroll]] for (uint j = 0; j < EACH; j++)

// Where the block's order by digits puts each of the thread's numbers.
void rank_all(uint digits[EACH], out uint ranks[EACH]) {
    clear_totals();
    EACH_NUMBER(j) ranks[j] = rank_of(digits[j]);
    place_digits();
    EACH_NUMBER(j) ranks[j] += starts[digits[j]] + totals[gl_SubgroupID * DIGITS + digits[j]];
}

// Each number goes to its rank; the thread takes those of its elements.
void permute_words(uint ranks[EACH], inout uint words[EACH]) {
    barrier();
    EACH_NUMBER(j) exchange[ranks[j]] = words[j];
    barrier();
    EACH_NUMBER(j) words[j] = exchange[element_of(j)];
}

void permute_keys(uint ranks[EACH], inout Key held[EACH]) {
#if KEY_BITS == 64
    uint words[EACH];
    EACH_NUMBER(j) words[j] = uint(held[j]);
    permute_words(ranks, words);
    EACH_NUMBER(j) {
        uint high = uint(held[j] >> 32);
        held[j] = uint64_t(words[j]);
        words[j] = high;
    }
    permute_words(ranks, words);
    EACH_NUMBER(j) held[j] |= uint64_t(words[j]) << 32;
#else
    permute_words(ranks, held);
#endif
}

Key key_at(uint element) {
    if (FIRST) return key_of(load_bits(keys, int64_t(first + element), DTYPE), DTYPE, DESCENDING);
    return Keys(keys + uint64_t(first + element) * KEY_BYTES).v;
}

// Numbers beyond the block's end are put after all others.
void load_keys(out Key held[EACH]) {
    EACH_NUMBER(j) held[j] = key_at(min(element_of(j), size - 1));
    EACH_NUMBER(j) held[j] = element_of(j) < size ? held[j] : ~Key(0);
}

uint place_at(uint element) {
    if (places == 0UL) return block * BLOCK + element % count;
    return Word(places + uint64_t(first + element) * 4UL).v;
}

void put_number(uint at, uint of_row, Key key, uint place) {
    if (!LAST) {
        Word(out_places + uint64_t(at) * 4UL).v = place;
        if (out_keys != 0UL) Keys(out_keys + uint64_t(at) * KEY_BYTES).v = key;
        return;
    }
    if (out_places != 0UL) Long(out_places + uint64_t(at) * 8UL).v = uint64_t(place);
    if (out_keys == 0UL) return;
    Key bits = key_is_shared(key, DTYPE, DESCENDING)
                   ? load_bits(numbers, int64_t(of_row * numbers_count + place), DTYPE)
                   : bits_of_key(key, DTYPE, DESCENDING);
    store_bits(out_keys, int64_t(at), DTYPE, bits);
}

void count_block(Key held[EACH]) {
    for (uint d = thread; d < DIGITS; d += THREADS) starts[d] = 0;
    barrier();
    EACH_NUMBER(j) if (element_of(j) < size) atomicAdd(starts[digit_at(held[j], first_bit)], 1);
    barrier();
    for (uint d = thread; d < DIGITS; d += THREADS)
        Word(counts + uint64_t((row * DIGITS + d) * blocks + block) * 4UL).v = starts[d];
}

void move_block(Key held[EACH]) {
    uint words[EACH], ranks[EACH];
    EACH_NUMBER(j) words[j] = digit_at(held[j], first_bit);
    rank_all(words, ranks);
    EACH_NUMBER(j) words[j] = place_at(min(element_of(j), size - 1));
    permute_keys(ranks, held);
    place_in_row();
    permute_words(ranks, words);
    EACH_NUMBER(j) {
        uint e = element_of(j);
        if (e < size) put_number(starts[digit_at(held[j], first_bit)] + e, row, held[j], words[j]);
    }
}

void sort_block(Key held[EACH]) {
    uint elements[EACH], words[EACH], ranks[EACH];
    EACH_NUMBER(j) elements[j] = element_of(j);
    uint passes = (end_bit - first_bit + 7) / 8;
    for (uint p = 0; p < passes + uint(together > 1); p++) {
        if (p < passes)
            EACH_NUMBER(j) words[j] = digit_at(held[j], first_bit + p * 8);
        else // by rows, of which there are fewer than digits
            EACH_NUMBER(j) words[j] = min(elements[j] / count, DIGITS - 1);
        rank_all(words, ranks);
        permute_keys(ranks, held);
        permute_words(ranks, elements);
    }
    EACH_NUMBER(j) {
        uint e = element_of(j), at = e % min(count, BLOCK), of_row = row + e / min(count, BLOCK);
        if (e < size && at < wanted)
            put_number(of_row * out_count + block * wanted + at, of_row, held[j], place_at(elements[j]));
    }
}

void main() {
    uint group = uint(group_number());
    row = group / blocks * together;
    block = group % blocks;
    if (row >= rows) return;
    first = row * count + block * BLOCK;
    size = min(min(together, rows - row) * count - block * BLOCK, BLOCK);
    thread = gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID;
    subgroup_first = gl_SubgroupID * gl_SubgroupSize * EACH + gl_SubgroupInvocationID;
    Key held[EACH];
    load_keys(held);
    if (KIND == SORT_COUNT) count_block(held);
    if (KIND == SORT_MOVE) move_block(held);
    if (KIND == SORT_WHOLE) sort_block(held);
}
