// ARG_REDUCE: the place of the largest or smallest element of each row, which LANES threads look at.
// The first of equals wins, and the first NaN wins over everything.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

const uint GROUP = 256;
layout(local_size_x = 256) in;
layout(constant_id = 1) const uint IN_DTYPE = 0;
layout(constant_id = 2) const bool SMALLEST = false;
layout(constant_id = 3) const uint LANES = 256;
const bool VECTOR = (RANKS >> 9 & 1u) != 0;
const uint WIDTH = VECTOR ? 4 : 1;

layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, out_address, results, count;
};

shared real extremes[GROUP];
shared uint places[GROUP];

bool is_better(real x, uint place, real best, uint best_place) {
    bool nan = real_isnan(x), best_nan = real_isnan(best);
    if (nan || best_nan) return nan && (!best_nan || place < best_place);
    if (x == best) return place < best_place;
    return SMALLEST ? x < best : x > best;
}

void main() {
    uint thread = gl_LocalInvocationID.x, lane = thread % LANES;
    uint64_t row = group_number() * uint64_t(GROUP / LANES) + uint64_t(thread / LANES);
    bool exists = row < results; // the others help with the last one, for the barriers
    row = min(row, results - 1UL);
    int64_t base = kept_offset(rows, 1, row);
    uint items = uint(count) / WIDTH, first = min(lane, items - 1);
    // Each number of an item is looked at by itself: places only grow, so the first of equals stays.
    real4 best = load_item(in_address, rows, 1, base, first, IN_DTYPE, VECTOR);
    uvec4 place = uvec4(first);
    for (uint item = first + LANES; item < items && item >= LANES; item += LANES) {
        real4 x = load_item(in_address, rows, 1, base, item, IN_DTYPE, VECTOR);
        for (uint i = 0; i < WIDTH; i++) {
            bool is_more = SMALLEST ? x[i] < best[i] : x[i] > best[i];
            if (is_more || (real_isnan(x[i]) && !real_isnan(best[i]))) {
                best[i] = x[i];
                place[i] = item;
            }
        }
    }
    place = place * WIDTH + uvec4(0, 1, 2, 3);
    for (uint i = 1; i < WIDTH; i++) {
        if (!is_better(best[i], place[i], best.x, place.x)) continue;
        best.x = best[i];
        place.x = place[i];
    }
    extremes[thread] = best.x;
    places[thread] = place.x;
    for (uint apart = LANES / 2; apart > 0; apart /= 2) {
        barrier();
        if (lane < apart && is_better(extremes[thread + apart], places[thread + apart],
                                      extremes[thread], places[thread])) {
            extremes[thread] = extremes[thread + apart];
            places[thread] = places[thread + apart];
        }
    }
    if (lane == 0 && exists)
        Long(element_address(out_address, kept_offset(rows, 0, row), INT64)).v =
            uint64_t(places[thread]);
}
