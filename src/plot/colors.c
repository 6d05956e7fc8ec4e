// Tables of colours.
#include "plot/colors.h"

#include <math.h>

Color color_of_series(size_t index) {
    static const Color colors[SERIES_COLORS] = {
        {0, 114, 178}, {213, 94, 0},   {0, 158, 115}, {204, 121, 167},
        {230, 159, 0}, {86, 180, 233}, {0, 0, 0},     {150, 140, 20},
    };
    return colors[index % SERIES_COLORS];
}

static uint8_t between(uint8_t low, uint8_t high, double part) {
    return (uint8_t)lround(low + (high - low) * part);
}

Color color_of_heat(double part) {
    enum { STOPS = 9 };
    static const Color stops[STOPS] = {
        {68, 1, 84},    {71, 44, 122}, {59, 81, 139},  {44, 113, 142}, {33, 144, 141},
        {39, 173, 129}, {92, 200, 99}, {170, 220, 50}, {253, 231, 37},
    };
    double at = fmin(fmax(part, 0), 1) * (STOPS - 1);
    int low = at >= STOPS - 1 ? STOPS - 2 : (int)at;
    const Color *from = &stops[low], *to = &stops[low + 1];
    return (Color){between(from->red, to->red, at - low), between(from->green, to->green, at - low),
                   between(from->blue, to->blue, at - low)};
}
