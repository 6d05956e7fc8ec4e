// The numbers along an axis.
#ifndef PLOT_AXIS_H
#define PLOT_AXIS_H

#include "plot/chart.h"

// A number with as many digits as tell it from its neighbours at distance `step`.
void axis_text(double value, double step, double magnitude, char out[TICK_TEXT_MAX]);
Status axis_new(const AxisWish *wish, Axis *out) MUST_USE;
double axis_position(const Axis *axis, double value); // 0..1 from left or bottom

#endif
