// SORT by digits of keys, least significant first: each pass keeps the order of equal digits. A
// workgroup has a block of numbers, a thread EACH of them; those of a subgroup are neighbours.
//   COUNT: how many numbers of a block have each value of a digit
//   MOVE:  with the running sums of that, a block's numbers to their places in the row
//   WHOLE: all digits of rows that fit a block, or the first numbers of each block of a row
// Keys have 32 bits, or 64 with KEY_BITS=64; with them go places: numbers of elements in their rows.
#version 460
#extension GL_GOOGLE_include_directive : require
#define REAL_I64
#include "types.glsl"
#include "host/sort_block.h"
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require

const uint EACH = 16, DIGITS = 256; // of at most 4096 numbers in a block
layout(local_size_x_id = 0) in;
const uint THREADS = gl_WorkGroupSize.x, BLOCK = THREADS * EACH;

#if KEY_BITS == 64
#define Key uint64_t
#define Keys Long
#else
#define Key uint
#define Keys Word
#endif
const uint64_t KEY_BYTES = KEY_BITS / 8;
const Key KEY_LAST = ~Key(0);

const uint OWN = DIGITS > THREADS ? DIGITS / THREADS : 1; // digits that a thread looks after
shared uint exchange[BLOCK];
shared uint totals[SUBGROUPS * DIGITS]; // of each subgroup; then where its numbers of a digit begin
shared uint starts[DIGITS];             // of a digit in the block, or from there to its place
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
        same &= set ? others : ~others;                                                            \
    }

// How many numbers of this digit the subgroup has before the thread's; counts it.
uint rank_of(uint digit) {
    uvec4 same = subgroupBallot(true);
    SPLIT(0) SPLIT(1) SPLIT(2) SPLIT(3) SPLIT(4) SPLIT(5) SPLIT(6) SPLIT(7)
    uint at = gl_SubgroupID * DIGITS + digit;
    uint before = subgroupBallotExclusiveBitCount(same), earlier = totals[at];
    subgroupBarrier();
    if (before == 0) totals[at] = earlier + subgroupBallotBitCount(same);
    subgroupBarrier();
    return earlier + before;
}

void clear_totals() {
    for (uint i = thread; i < SUBGROUPS * DIGITS; i += THREADS) totals[i] = 0;
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

#define EACH_NUMBER(j) [[unroll]] for (uint j = 0; j < EACH; j++)

// Of each number a thread keeps the key and a word: the element that it was, a digit, and its rank by
// that. Registers decide how many blocks a device works on at once.
uint element_in(uint word) {
    return word & 0xFFFu;
}

uint digit_in(uint word) {
    return word >> 12 & 0xFFu;
}

uint rank_in(uint word) {
    return word >> 20;
}

uint word_of(uint element, uint digit) {
    return element | digit << 12;
}

// Where the block's order by digits puts each of the thread's numbers.
void rank_all(inout uint words[EACH]) {
    clear_totals();
    EACH_NUMBER(j) words[j] |= rank_of(digit_in(words[j])) << 20;
    place_digits();
    EACH_NUMBER(j) {
        uint digit = digit_in(words[j]);
        words[j] += starts[digit] + totals[gl_SubgroupID * DIGITS + digit] << 20;
    }
}

// Each number goes to its rank; the thread takes those of its elements.
void permute_keys(uint words[EACH], inout Key held[EACH]) {
    barrier();
    EACH_NUMBER(j) exchange[rank_in(words[j])] = uint(held[j]);
    barrier();
#if KEY_BITS == 64
    EACH_NUMBER(j)
        held[j] = (held[j] & 0xFFFFFFFF00000000UL) | uint64_t(exchange[element_of(j)]);
    barrier();
    EACH_NUMBER(j) exchange[rank_in(words[j])] = uint(held[j] >> 32);
    barrier();
    EACH_NUMBER(j)
        held[j] = (held[j] & 0xFFFFFFFFUL) | uint64_t(exchange[element_of(j)]) << 32;
#else
    EACH_NUMBER(j) held[j] = exchange[element_of(j)];
#endif
}

void permute_elements(inout uint words[EACH]) {
    barrier();
    EACH_NUMBER(j) exchange[rank_in(words[j])] = element_in(words[j]);
    barrier();
    EACH_NUMBER(j) words[j] = exchange[element_of(j)];
}

// Numbers beyond the block's end are put after all others.
void load_keys(out Key held[EACH]) {
    EACH_NUMBER(j)
        held[j] = Keys(keys + uint64_t(first + min(element_of(j), size - 1)) * KEY_BYTES).v;
    EACH_NUMBER(j) held[j] = element_of(j) < size ? held[j] : KEY_LAST;
}

uint place_at(uint element) {
    if (places == 0UL) return block * BLOCK + element % count;
    return Word(places + uint64_t(first + element) * 4UL).v;
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
    uint words[EACH];
    EACH_NUMBER(j) words[j] = word_of(0, digit_at(held[j], first_bit));
    rank_all(words);
    permute_keys(words, held);
    for (uint d = thread; d < DIGITS; d += THREADS) {
        uint at = (row * DIGITS + d) * blocks + block;
        starts[d] = (at > 0 ? Word(counts + uint64_t(at - 1) * 4UL).v : 0) - starts[d];
    }
    uint held_places[EACH];
    EACH_NUMBER(j) held_places[j] = block * BLOCK + element_of(j);
    if (places != 0UL)
        EACH_NUMBER(j)
            held_places[j] = Word(places + uint64_t(first + min(element_of(j), size - 1)) * 4UL).v;
    barrier();
    EACH_NUMBER(j) exchange[rank_in(words[j])] = held_places[j];
    barrier();
    EACH_NUMBER(j) {
        uint e = element_of(j);
        uint at = starts[digit_at(held[j], first_bit)] + e;
        if (e < size) Word(out_places + uint64_t(at) * 4UL).v = exchange[e];
        if (e < size && out_keys != 0UL) Keys(out_keys + uint64_t(at) * KEY_BYTES).v = held[j];
    }
}

void sort_block(Key held[EACH]) {
    uint words[EACH];
    EACH_NUMBER(j) words[j] = element_of(j);
    uint passes = (end_bit - first_bit + 7) / 8;
    for (uint p = 0; p < passes + uint(together > 1); p++) {
        uint bit = first_bit + p * 8;
        if (p < passes)
            EACH_NUMBER(j) words[j] = word_of(words[j], digit_at(held[j], bit));
        else // by rows, of which there are fewer than digits
            EACH_NUMBER(j) words[j] = word_of(words[j], min(words[j] / count, DIGITS - 1));
        rank_all(words);
        permute_keys(words, held);
        permute_elements(words);
    }
    EACH_NUMBER(j) {
        uint e = element_of(j), at = e % min(count, BLOCK);
        uint to = (row + e / min(count, BLOCK)) * out_count + block * wanted + at;
        if (e < size && at < wanted) {
            Word(out_places + uint64_t(to) * 4UL).v = place_at(words[j]);
            if (out_keys != 0UL) Keys(out_keys + uint64_t(to) * KEY_BYTES).v = held[j];
        }
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
