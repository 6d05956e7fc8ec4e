// Axes: where round ticks lie and how their numbers are written.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot/axis.h"
#include "plot/chart.h"

// Beyond these a number is written with an exponent.
static const double plain_max = 1e6, plain_min = 1e-4;
// Ranges that are smaller than this part of their numbers are not ranges: digits would not tell.
static const double range_min = 1e-12;

void axis_text(double value, double step, double magnitude, char out[TICK_TEXT_MAX]) {
    if (fabs(value) < step * 1e-6) value = 0;
    int step_digits = (int)floor(log10(step) + 1e-9);
    if (magnitude < plain_max && step >= plain_min) {
        snprintf(out, TICK_TEXT_MAX, "%.*f", step_digits < 0 ? -step_digits : 0, value);
        return;
    }
    if (value == 0) {
        snprintf(out, TICK_TEXT_MAX, "0");
        return;
    }
    int exponent = (int)floor(log10(fabs(value)) + 1e-9);
    int decimals = exponent > step_digits ? exponent - step_digits : 0;
    snprintf(out, TICK_TEXT_MAX, "%.*fe%d", decimals > 12 ? 12 : decimals,
             value / pow(10, exponent), exponent);
}

static void add_tick(Axis *axis, double value, double step) {
    ASSERT(axis->tick_count <= TICKS_MAX);
    if (axis->tick_count == TICKS_MAX) return;
    Tick *tick = &axis->ticks[axis->tick_count++];
    tick->value = value;
    axis_text(value, step, fmax(fabs(axis->low), fabs(axis->high)), tick->text);
}

// The nearest of 1, 2, 5, 10 above, times a power of ten.
static double round_step(double raw) {
    double power = pow(10, floor(log10(raw))), part = raw / power;
    return power * (part <= 1 + 1e-9 ? 1 : part <= 2 + 1e-9 ? 2 : part <= 5 + 1e-9 ? 5 : 10);
}

static void add_linear_ticks(Axis *axis, int wanted, bool whole) {
    double step = round_step((axis->high - axis->low) / wanted);
    if (whole && step < 1) step = 1;
    double first = ceil(axis->low / step - 1e-9);
    for (int i = 0; i < TICKS_MAX && (first + i) * step <= axis->high + 1e-9 * step; i++)
        add_tick(axis, (first + i) * step, step);
}

static void add_power_tick(Axis *axis, double value) {
    if (value < axis->low * (1 - 1e-9) || value > axis->high * (1 + 1e-9)) return;
    add_tick(axis, value, pow(10, floor(log10(value) + 1e-9)));
}

// Powers of ten; with few of them also 2 and 5 between them.
static void add_log_ticks(Axis *axis, int wanted) {
    int first = (int)ceil(log10(axis->low) - 1e-9), last = (int)floor(log10(axis->high) + 1e-9);
    int stride = (last - first + wanted - 1) / wanted;
    if (stride < 1) stride = 1;
    bool few = last - first <= 1;
    for (int power = first - few; power <= last; power += stride) {
        add_power_tick(axis, pow(10, power));
        if (few) add_power_tick(axis, 2 * pow(10, power));
        if (few) add_power_tick(axis, 5 * pow(10, power));
    }
    if (axis->tick_count < 2) {
        axis->tick_count = 0;
        add_linear_ticks(axis, wanted, false);
    }
}

static void widen(Axis *axis, const AxisWish *wish) {
    double low = wish->low, high = wish->high;
    if (axis->log) {
        bool narrow = log10(high / low) < range_min;
        double factor = narrow ? 2 : pow(high / low, wish->margin);
        axis->low = low / factor;
        axis->high = high * factor;
        return;
    }
    double magnitude = fmax(fabs(low), fabs(high));
    bool narrow = high - low <= magnitude * range_min;
    double space = narrow ? (magnitude > 0 ? magnitude / 2 : 1) : (high - low) * wish->margin;
    axis->low = low - space;
    axis->high = high + space;
}

Status axis_new(const AxisWish *wish, Axis *out) {
    ASSERT(wish->low <= wish->high && wish->ticks > 0);
    *out = (Axis){.log = wish->log};
    widen(out, wish);
    bool fits =
        isfinite(out->high - out->low) && out->high > out->low && (!out->log || out->low > 0);
    if (!fits)
        return fail(STATUS_VALUE, "numbers from %g to %g do not fit on one axis", wish->low,
                    wish->high);
    if (out->log)
        add_log_ticks(out, wish->ticks);
    else
        add_linear_ticks(out, wish->ticks, wish->whole);
    return STATUS_OK;
}

double axis_position(const Axis *axis, double value) {
    ASSERT(axis->high > axis->low && (!axis->log || axis->low > 0)); // axis_new has seen to it
    double part = axis->log ? log(value / axis->low) / log(axis->high / axis->low)
                            : (value - axis->low) / (axis->high - axis->low);
    return axis->down ? 1 - part : part;
}
