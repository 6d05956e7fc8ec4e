// Views cut into rows: leading dims that are kept, and the dims that a kernel reduces, normalises or
// sorts. Both are merged where all views allow it.
#ifndef ROWS_GLSL
#define ROWS_GLSL

#include "types.glsl"

const uint KEPT_RANK = RANKS & 15u, ROW_RANK = RANKS >> 4 & 15u;
// Bit v: the view's elements of a row are neighbours, at multiples of four.
const uint VECTORS = RANKS >> 8 & 15u;

int64_t kept_offset(RowStrides rows, uint view, uint64_t row) {
    if (KEPT_RANK == 0) return 0L;
    int64_t offset = 0L;
    uint rest = uint(row);
    for (int d = int(KEPT_RANK) - 1; d > 0; d--) {
        offset += int64_t(rest % rows.kept_dims[d]) * rows.kept_strides[view][d];
        rest /= rows.kept_dims[d];
    }
    return offset + int64_t(rest) * rows.kept_strides[view][0];
}

int64_t row_offset(RowStrides rows, uint view, uint64_t element) {
    if (ROW_RANK == 0) return 0L;
    if (ROW_RANK == 1) return int64_t(element) * rows.strides[view][0];
    int64_t offset = 0L;
    uint rest = uint(element);
    for (int d = int(ROW_RANK) - 1; d > 0; d--) {
        offset += int64_t(rest % rows.dims[d]) * rows.strides[view][d];
        rest /= rows.dims[d];
    }
    return offset + int64_t(rest) * rows.strides[view][0];
}

// Items of a row: four neighbouring numbers where `vector`, else one, in x.
real4 load_item(uint64_t address, RowStrides rows, uint view, int64_t base, uint item, uint dtype,
                bool vector) {
    if (vector) return load4(element_address(address, base + 4L * int64_t(item), dtype), dtype);
    return real4(load(address, base + row_offset(rows, view, uint64_t(item)), dtype), 0, 0, 0);
}

// Rows whose numbers are neighbours but begin anywhere: items of four are those of memory, of which
// the first has `skew` numbers before the row.
uint skew_of(uint64_t address, int64_t base, uint dtype) {
    return (uint(address) / element_bytes(dtype) + uint(base)) & 3u;
}

bool is_whole(uint item, uint skew, uint count) {
    return (item > 0 || skew == 0) && item * 4 + 4 <= skew + count;
}

bool is_inside(uint item, uint lane, uint skew, uint count) {
    uint at = item * 4 + lane;
    return at >= skew && at < skew + count;
}

// What is outside becomes `other`.
real4 only_inside(real4 x, uint item, uint skew, uint count, real other) {
    if (is_whole(item, skew, count)) return x;
    return real4(is_inside(item, 0, skew, count) ? x.x : other,
                 is_inside(item, 1, skew, count) ? x.y : other,
                 is_inside(item, 2, skew, count) ? x.z : other,
                 is_inside(item, 3, skew, count) ? x.w : other);
}

void store_inside(uint64_t address, int64_t base, uint item, uint skew, uint count, uint dtype,
                  real4 value) {
    uint64_t first = element_address(address, base + 4L * int64_t(item), dtype);
    if (is_whole(item, skew, count)) {
        store4(first, dtype, value);
        return;
    }
    for (uint lane = 0; lane < 4; lane++)
        if (is_inside(item, lane, skew, count))
            store_at(element_address(first, int64_t(lane), dtype), dtype, LANE(value, lane));
}

void store_item(uint64_t address, RowStrides rows, int64_t base, uint item, uint dtype, bool vector,
                real4 value) {
    if (vector)
        store4(element_address(address, base + 4L * int64_t(item), dtype), dtype, value);
    else
        store(address, base + row_offset(rows, 0, uint64_t(item)), dtype, value.x);
}

#endif
