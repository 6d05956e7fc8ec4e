// The lattices of the IQ1, IQ2 and IQ3 formats. An entry of IQ1 and IQ2 is eight numbers of two
// bits, one of IQ3 four numbers of three bits, the first in the lowest; simd/blocks_grid.h says
// what the numbers stand for.
#ifndef DEVICE_CPU_GRIDS_H
#define DEVICE_CPU_GRIDS_H

#include <stdint.h>

extern const uint16_t grid_iq1[2048], grid_iq2_xxs[256], grid_iq2_xs[512], grid_iq2_s[1024];
extern const uint16_t grid_iq3_xxs[256], grid_iq3_s[512];

#endif
