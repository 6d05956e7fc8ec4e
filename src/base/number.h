// Numbers as text: the shortest decimal form that reads back, for each width.
#ifndef BASE_NUMBER_H
#define BASE_NUMBER_H

#include <stdint.h>

#include "base/text.h"

enum { NUMBER_TEXT_MAX = 40 };

// "2GB", "500 MB", "4096" (bytes; units are powers of 1024). False for anything else.
bool number_read_bytes(const char *text, uint64_t *out);
// A number above 0 and one of these units (the last is NULL), with or without a space between, in
// the first unit's.
bool number_read_quantity(const char *text, const char *const units[], const double factors[],
                          double *out);

// For printf: nan without the sign that processors give it.
double number_shown(double value);

// How many bits of mantissa the text must bring back.
typedef enum NumberWidth { NUMBER_DOUBLE, NUMBER_FLOAT, NUMBER_HALF, NUMBER_BFLOAT } NumberWidth;

// The nearest number of the width.
double number_round(double value, NumberWidth width);

// As the language prints a float: always with a point or an exponent ("1.0", "0.1", "1e+21",
// "1e-07", "nan", "inf", "-inf"); exponent form from 1e16 and below 1e-4, as in Python. The value
// has already been rounded to the width. Returns the length; NUL-terminated.
int number_format_float(double value, NumberWidth width, char out[NUMBER_TEXT_MAX]);
// Positional, at most `decimals` digits after the point, without trailing zeros: "4.", "2.5",
// "-0."; an integer in full, as 65504. of float16, which 65500. would bring back. For finite
// magnitudes below 1e17.
int number_format_fixed(double value, NumberWidth width, int decimals, char out[NUMBER_TEXT_MAX]);
// Scientific form: "1.5", "-1." and the decimal exponent.
typedef struct Mantissa {
    char text[NUMBER_TEXT_MAX];
    int length, exponent;
} Mantissa;
// At most `decimals` digits after the point, at least `decimals_min`. For finite values.
Mantissa number_mantissa(double value, NumberWidth width, int decimals_min, int decimals);
int number_format_integer(int64_t value, char out[NUMBER_TEXT_MAX]);
void number_append_float(Text *text, double value); // a plain float: NUMBER_DOUBLE
void number_append_integer(Text *text, int64_t value);

// What a text of `length` bytes is when the whole of it reads as a decimal number or is inf, -inf
// or nan, as numbers are printed; nothing else may stand in it. An integer beyond 64 bits is a
// float.
typedef enum NumberKind { NUMBER_NONE, NUMBER_IS_INTEGER, NUMBER_IS_FLOAT } NumberKind;
NumberKind number_read(const char *bytes, size_t length, int64_t *integer, double *number);

#endif
