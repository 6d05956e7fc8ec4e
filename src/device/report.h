// The pool's own words: refusals, and what TL_DEBUG_MEMORY tells.
#ifndef DEVICE_REPORT_H
#define DEVICE_REPORT_H

#include "device/pool.h"

// The error of a request that the device cannot serve.
Status report_refusal(const Pool *pool, size_t bytes, const BufferLabel *label) MUST_USE;
// One line on standard error under TL_DEBUG_MEMORY.
void pool_debug(const Pool *pool, const char *event, const Buffer *buffer);
// What the pool knows of a forecast: the peak and its holders, and what is cached. Forecast is
// foretell.h's.
struct Forecast;
void report_forecast(const Device *device, struct Forecast *out);

#endif
