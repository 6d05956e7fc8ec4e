// The colours of charts.
#ifndef PLOT_COLORS_H
#define PLOT_COLORS_H

#include "plot/painter.h"

// Of series, told apart by people who see colours differently (Okabe, Ito 2008), then repeated.
enum { SERIES_COLORS = 8 };
Color color_of_series(size_t index);
// Of a number's place in a heatmap's scale, 0..1: dark blue to yellow, of even steps in lightness
// (viridis: van der Walt, Smith 2015), between nine of its colours.
Color color_of_heat(double part);

#endif
