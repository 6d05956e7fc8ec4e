// ARG_REDUCE: the place of the largest or smallest element of each row, which LANES threads look at.
// The first of equals wins, and the first NaN wins over everything.
#include "types.glsl"
#include "host/arg_reduce.h"
#include "rows.glsl"
#include "lanes.glsl"

const uint GROUP = 256, EACH = 4; // items that a thread asks for at once
layout(local_size_x = 256) in;
const bool VECTOR = (VECTORS & 2u) != 0;
const uint WIDTH = VECTOR ? 4 : 1;

struct Best {
    real value;
    uint place;
};
shared Best bests[GROUP];

bool is_better(real x, uint place, real best, uint best_place) {
    bool nan = real_isnan(x), best_nan = real_isnan(best);
    if (nan || best_nan) return nan && (!best_nan || place < best_place);
    if (x == best) return place < best_place;
    return SMALLEST ? x < best : x > best;
}

Best better(uint how, Best a, Best b) {
    return is_better(b.value, b.place, a.value, a.place) ? b : a;
}

Best best_beside(Best mine, uint apart) {
    return Best(real_beside(mine.value, apart), subgroupShuffleXor(mine.place, apart));
}
JOIN_LANES(join_lanes, Best, bests, better, best_beside)

void main() {
    uint thread = thread_number(), lane = thread % LANES;
    uint64_t row = group_number() * uint64_t(GROUP / LANES) + uint64_t(thread / LANES);
    bool exists = row < results; // the others help with the last one, for the barriers
    row = min(row, results - 1UL);
    int64_t base = kept_offset(rows, 1, row);
    uint items = uint(count) / WIDTH, first = min(lane, items - 1);
    // Each number of an item is looked at by itself: places only grow, so the first of equals stays.
    real4 best = load_item(in_address, rows, 1, base, first, IN_DTYPE, VECTOR);
    uvec4 place = uvec4(first);
    for (uint chunk = first + LANES; chunk < items && chunk >= LANES; chunk += LANES * EACH) {
        real4 held[EACH];
        for (uint e = 0; e < EACH; e++)
            held[e] = load_item(in_address, rows, 1, base, min(chunk + e * LANES, items - 1),
                                IN_DTYPE, VECTOR);
        // Beyond the end the last item comes again, which is never better.
        for (uint e = 0; e < EACH; e++) {
            for (uint i = 0; i < WIDTH; i++) {
                real found = LANE(held[e], i), known = LANE(best, i);
                bool is_more = SMALLEST ? found < known : found > known;
                is_more = is_more || (real_isnan(found) && !real_isnan(known));
                SET_LANE(best, i, is_more ? found : known);
                place[i] = is_more ? min(chunk + e * LANES, items - 1) : place[i];
            }
        }
    }
    place = place * WIDTH + uvec4(0, 1, 2, 3);
    for (uint i = 1; i < WIDTH; i++) {
        if (!is_better(LANE(best, i), place[i], best.x, place.x)) continue;
        best.x = LANE(best, i);
        place.x = place[i];
    }
    Best mine = join_lanes(0, Best(best.x, place.x), LANES);
    if (lane == 0 && exists)
        Long(element_address(out_address, kept_offset(rows, 0, row), INT64)).v =
            uint64_t(mine.place);
}
