// ARG_REDUCE: the place of the largest or smallest element of each row. The first of equals wins,
// and the first NaN wins over everything.
#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

const uint GROUP = 256;
layout(local_size_x = 256) in;
layout(constant_id = 1) const uint IN_DTYPE = 0;
layout(constant_id = 2) const bool SMALLEST = false;
layout(constant_id = 3) const bool COLUMNS = false; // a row is one thread's

layout(push_constant, scalar) uniform Push {
    Rows rows;
    uint64_t in_address, out_address, results, count;
};

shared real extremes[GROUP];
shared uint64_t places[GROUP];

bool is_better(real x, uint64_t place, real best, uint64_t best_place) {
    bool nan = real_isnan(x), best_nan = real_isnan(best);
    if (nan || best_nan) return nan && (!best_nan || place < best_place);
    if (x == best) return place < best_place;
    return SMALLEST ? x < best : x > best;
}

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint64_t row = group_number();
    if (COLUMNS) row = row * uint64_t(GROUP) + uint64_t(thread);
    if (row >= results) return;
    uint64_t first = COLUMNS ? 0UL : uint64_t(thread), step = COLUMNS ? 1UL : uint64_t(GROUP);
    int64_t base = kept_offset(rows, 1, row);
    uint64_t place = min(first, count - 1UL);
    real best = load(in_address, base + row_offset(rows, 1, place), IN_DTYPE);
    for (uint64_t e = first + step; e < count; e += step) {
        real x = load(in_address, base + row_offset(rows, 1, e), IN_DTYPE);
        if (is_better(x, e, best, place)) {
            best = x;
            place = e;
        }
    }
    if (!COLUMNS) {
        extremes[thread] = best;
        places[thread] = place;
        for (uint apart = GROUP / 2; apart > 0; apart /= 2) {
            barrier();
            if (thread < apart && is_better(extremes[thread + apart], places[thread + apart],
                                            extremes[thread], places[thread])) {
                extremes[thread] = extremes[thread + apart];
                places[thread] = places[thread + apart];
            }
        }
        place = places[0];
        if (thread != 0) return;
    }
    Long(element_address(out_address, kept_offset(rows, 0, row), INT64)).v = place;
}
