// SCATTER along a dim: the last of equal indexes wins, or all are added up. "Others" are the elements
// of every dim but the indexed one; with SLICES they share one list of indexes, else each has its own.
// DIRECT: a thread has one of the others and puts along the dim in order. Long lists are sorted by
// places first (KEYS makes what is sorted): then threads have TILE neighbours of a sorted list.
//   LAST: the last of a place's numbers is put
//   SUMS: those of a place within a tile are added up; of places that go beyond it, partial sums
//   ENDS: of these places, in the tile where they end, the rest
// Every order of additions depends on indexes and shapes alone. Views without the dim: the output, the
// source, the index.
#include "types.glsl"
#include "host/scatter.h"
#include "walk.glsl"
#include "lanes.glsl"

const uint GROUP = 256, TILE = 16;
layout(local_size_x = 256) in;
const uint IN_DTYPE = DTYPES & 15u, OUT_DTYPE = DTYPES >> 4 & 15u, INDEX_DTYPE = DTYPES >> 8;

layout(buffer_reference, scalar, buffer_reference_align = 8) buffer Partial { Sum v; };

shared Sum slots[GROUP];
shared uint ends_here; // of this workgroup

Sum combine(uint how, Sum a, Sum b) {
    return sum_add(a, b);
}
JOIN_LANES(join_lanes, Sum, slots, combine, sum_beside)

uint64_t address_in(int64_t at) {
    return element_address(in_address, at, IN_DTYPE);
}

uint64_t address_out(int64_t at) {
    return element_address(out_address, at, OUT_DTYPE);
}

real4 load_numbers(uint64_t address, uint dtype) {
    if (WIDTH == 4) return load4(address, dtype);
    return real4(load_at(address, dtype), 0, 0, 0);
}

void store_numbers(uint64_t address, real4 numbers) {
    if (WIDTH == 4) store4(address, OUT_DTYPE, numbers);
    else store_at(address, OUT_DTYPE, numbers.x);
}

void put_direct(uint other) {
    int64_t to = walk_offset(shape, 0, other), from = walk_offset(shape, 1, other),
            at = walk_offset(shape, 2, other);
    for (uint j = 0; j < length; j++) {
        int64_t index = load_integer(index_address, at + int64_t(j) * index_stride, INDEX_DTYPE);
        int64_t place = to + place_of(index, size) * out_stride;
        real value = load(in_address, from + int64_t(j) * in_stride, IN_DTYPE);
        if (ADD) value = load(out_address, place, OUT_DTYPE) + value;
        store(out_address, place, OUT_DTYPE, value);
    }
}

void make_key(uint number) {
    int64_t at = walk_offset(shape, 2, first_other + number / length) +
                 int64_t(number % length) * index_stride;
    Word(keys + uint64_t(number) * 4UL).v =
        uint(place_of(load_integer(index_address, at, INDEX_DTYPE), size));
}

// A list and where its tile is.
uint list, first, end;

int64_t offset_of(uint view, uint other) {
    return walk_offset(shape, view, first_other + other);
}

uint key_at(uint i) {
    return Word(keys + uint64_t(list + i) * 4UL).v;
}

bool continues(uint i, uint key) { // beyond i
    return i + 1 < length && key_at(i + 1) == key;
}

uint place_in(uint i) {
    return Word(places + uint64_t(list + i) * 4UL).v;
}

real4 number_at(int64_t from, uint place) {
    return load_numbers(address_in(from + int64_t(place) * in_stride), IN_DTYPE);
}

void put_last(uint other) {
    int64_t to = offset_of(0, other), from = offset_of(1, other);
    for (uint i = first; i < end; i++) {
        uint key = key_at(i);
        if (!continues(i, key))
            store_numbers(address_out(to + int64_t(key) * out_stride),
                          number_at(from, place_in(i)));
    }
}

Partial partial_of(uint tail, uint tile, uint other, uint lane) {
    uint64_t at = uint64_t(tail * tiles + tile) * uint64_t(count) + uint64_t(other);
    return Partial(partials + (at * uint64_t(WIDTH) + uint64_t(lane)) * 8UL);
}

void keep_partial(uint tail, uint tile, uint other, Sum4 sums) {
    partial_of(tail, tile, other, 0).v = sum4_at(sums, 0);
    if (WIDTH == 1) return;
    partial_of(tail, tile, other, 1).v = sum4_at(sums, 1);
    partial_of(tail, tile, other, 2).v = sum4_at(sums, 2);
    partial_of(tail, tile, other, 3).v = sum4_at(sums, 3);
}

// The sums join what is there already.
void add_to(int64_t place, Sum4 sums) {
    real4 numbers = load_numbers(address_out(place), OUT_DTYPE);
    numbers.x = real_of_sum(sum_put(sum4_at(sums, 0), numbers.x));
    if (WIDTH == 4) {
        numbers.y = real_of_sum(sum_put(sum4_at(sums, 1), numbers.y));
        numbers.z = real_of_sum(sum_put(sum4_at(sums, 2), numbers.z));
        numbers.w = real_of_sum(sum_put(sum4_at(sums, 3), numbers.w));
    }
    store_numbers(address_out(place), numbers);
}

// Where a thread is in its tile: sums of the numbers with `key` so far.
struct Progress {
    Sum4 sums;
    uint key;
    bool began_before; // the tile
};

// The number at i joins; where its key ends, or the tile, the sums go.
void add_number(inout Progress progress, uint tile, uint other, int64_t to, uint i, uint next,
                real4 number) {
    if (i >= end) return;
    progress.sums = sum4_put(progress.sums, number);
    bool goes_on = i + 1 < length && next == progress.key;
    if (goes_on && i + 1 < end) return;
    if (goes_on) keep_partial(1, tile, other, progress.sums);
    else if (progress.began_before) keep_partial(0, tile, other, progress.sums);
    else add_to(to + int64_t(progress.key) * out_stride, progress.sums);
    progress = Progress(sum4_of(sum_of(R(0))), next, false);
}

void add_tile(uint tile, uint other) {
    int64_t to = offset_of(0, other), from = offset_of(1, other);
    uint key = key_at(first), last = end - 1;
    Progress progress = Progress(sum4_of(sum_of(R(0))), key, first > 0 && key_at(first - 1) == key);
    for (uint i = first; i < end; i += 4) { // four are on their way at once
        uint b = min(i + 1, length - 1), c = min(i + 2, length - 1), d = min(i + 3, length - 1),
             e = min(i + 4, length - 1);
        uint key_b = key_at(b), key_c = key_at(c), key_d = key_at(d), key_e = key_at(e);
        uint place_a = place_in(i), place_b = place_in(min(b, last)),
             place_c = place_in(min(c, last)), place_d = place_in(min(d, last));
        real4 w = number_at(from, place_a), x = number_at(from, place_b),
              y = number_at(from, place_c), z = number_at(from, place_d);
        add_number(progress, tile, other, to, i, key_b, w);
        add_number(progress, tile, other, to, i + 1, key_c, x);
        add_number(progress, tile, other, to, i + 2, key_d, y);
        add_number(progress, tile, other, to, i + 3, key_e, z);
    }
}

// The first place in a list that has this key, which one before `end` has.
uint first_of(uint key, uint limit) {
    uint low = 0;
    while (low < limit) {
        uint middle = (low + limit) / 2;
        if (key_at(middle) < key) low = middle + 1;
        else limit = middle;
    }
    return low;
}

void add_end(uint tile, uint other, uint lane, bool exists) {
    bool ends = exists && first > 0;
    uint key = ends ? key_at(first) : 0;
    ends = ends && key_at(first - 1) == key && !(key_at(end - 1) == key && continues(end - 1, key));
    ends_here = 0;
    barrier();
    if (ends) ends_here = 1;
    barrier();
    if (ends_here == 0) return;
    uint begin = ends ? first_of(key, first) / TILE : tile;
    real4 numbers = real4(0);
    int64_t place = offset_of(0, other) + int64_t(key) * out_stride;
    if (ends && lane == 0) numbers = load_numbers(address_out(place), OUT_DTYPE);
    for (uint n = 0; n < WIDTH; n++) {
        Sum sum = sum_of(R(0));
        for (uint t = begin + lane; t < tile; t += lanes)
            sum = sum_add(sum, partial_of(1, t, other, n).v);
        sum = join_lanes(0, sum, lanes);
        if (ends && lane == 0) sum = sum_add(sum, partial_of(0, tile, other, n).v);
        real number = n == 0 ? numbers.x : (n == 1 ? numbers.y : (n == 2 ? numbers.z : numbers.w));
        number = real_of_sum(sum_put(sum, number));
        if (ends && lane == 0) store(out_address, place + int64_t(n), OUT_DTYPE, number);
    }
}

void main() {
    uint thread = KIND == SCATTER_ENDS ? thread_number() : gl_LocalInvocationID.x;
    uint64_t number = group_number() * uint64_t(GROUP) + uint64_t(thread);
    uint lane = 0;
    if (KIND == SCATTER_ENDS) {
        lane = thread % lanes;
        number /= uint64_t(lanes);
    }
    uint64_t units = KIND == SCATTER_DIRECT ? uint64_t(count) : uint64_t(count) * uint64_t(tiles);
    if (KIND == SCATTER_KEYS) units = uint64_t(SLICES ? 1 : count) * uint64_t(length);
    bool exists = number < units;
    if (!exists && KIND != SCATTER_ENDS) return;
    uint unit = exists ? uint(number) : 0;
    if (KIND == SCATTER_DIRECT) put_direct(unit);
    if (KIND == SCATTER_KEYS) make_key(unit);
    if (KIND < SCATTER_LAST) return;
    uint tile = SLICES ? unit / count : unit % tiles, other = SLICES ? unit % count : unit / tiles;
    list = SLICES ? 0 : other * length;
    first = tile * TILE;
    end = min(first + TILE, length);
    if (KIND == SCATTER_LAST) put_last(other);
    if (KIND == SCATTER_SUMS) add_tile(tile, other);
    if (KIND == SCATTER_ENDS) add_end(tile, other, lane, exists);
}
