// Tensors as text, like NumPy with a precision of 4: columns aligned, one row per line, large ones
// elided in the middle.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "device/foretell.h"
#include "tensor/join.h"
#include "tensor/op.h"
#include "tensor/view.h"

enum { ELEMENTS_MAX = 1000, EDGE_ELEMENTS = 3, DECIMALS = 4 };

// How the elements that are shown are laid out.
typedef struct Layout {
    DType dtype;
    NumberWidth width;
    bool scientific;
    int decimals;        // of scientific form, common to all
    int exponent_digits; // the same
    int before, after;   // columns up to the point, and from it on
} Layout;

NumberWidth float_width(DType dtype) {
    switch (dtype) {
    case DTYPE_FLOAT16: return NUMBER_HALF;
    case DTYPE_BFLOAT16: return NUMBER_BFLOAT;
    case DTYPE_FLOAT64: return NUMBER_DOUBLE;
    default: return NUMBER_FLOAT;
    }
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

// Exponent form: beyond 1e8, over more than five decades, or where four decimals would show only 0.
static bool wants_exponents(const double *values, size_t count) {
    double most = 0, least = INFINITY;
    for (size_t i = 0; i < count; i++) {
        double magnitude = fabs(values[i]);
        if (!isfinite(magnitude) || magnitude == 0) continue;
        most = fmax(most, magnitude);
        least = fmin(least, magnitude);
    }
    return most > 0 && (most > 1e8 || most / least > 1e5 || most < 1e-4);
}

static int exponent_length(int exponent) {
    return abs(exponent) >= 100 ? 3 : 2;
}

static void measure_scientific(Layout *layout, const double *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        Mantissa digits = number_mantissa(values[i], layout->width, 0, DECIMALS);
        int whole = (int)(strchr(digits.text, '.') - digits.text);
        layout->before = larger(layout->before, whole);
        layout->decimals = larger(layout->decimals, digits.length - whole - 1);
        layout->exponent_digits = larger(layout->exponent_digits, exponent_length(digits.exponent));
    }
    layout->after = 1 + layout->decimals + 2 + layout->exponent_digits;
}

static void measure_fixed(Layout *layout, const double *values, size_t count) {
    char text[NUMBER_TEXT_MAX];
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i])) continue;
        int length = number_format_fixed(values[i], layout->width, DECIMALS, text);
        int whole = (int)(strchr(text, '.') - text);
        layout->before = larger(layout->before, whole);
        layout->after = larger(layout->after, length - whole);
    }
}

static void measure_floats(Layout *layout, const double *values, size_t count) {
    layout->scientific = wants_exponents(values, count);
    if (layout->scientific)
        measure_scientific(layout, values, count);
    else
        measure_fixed(layout, values, count);
    for (size_t i = 0; i < count; i++) {
        if (isfinite(values[i])) continue;
        int length = isinf(values[i]) && values[i] < 0 ? 4 : 3;
        layout->before = larger(layout->before, length - layout->after);
    }
}

static void append_padded(Text *out, const char *text, int length, int width) {
    if (width > length) text_append_repeated(out, ' ', (size_t)(width - length));
    text_append(out, text, (size_t)length);
}

static void append_scientific(const Layout *layout, double value, Text *out) {
    Mantissa digits = number_mantissa(value, layout->width, layout->decimals, layout->decimals);
    int whole = (int)(strchr(digits.text, '.') - digits.text);
    append_padded(out, digits.text, digits.length, layout->before + digits.length - whole);
    text_format(out, "e%c%0*d", digits.exponent < 0 ? '-' : '+', layout->exponent_digits,
                abs(digits.exponent));
}

static void append_fixed(const Layout *layout, double value, Text *out) {
    char text[NUMBER_TEXT_MAX];
    int length = number_format_fixed(value, layout->width, DECIMALS, text);
    int whole = (int)(strchr(text, '.') - text);
    append_padded(out, text, length, layout->before + length - whole);
    text_append_repeated(out, ' ', (size_t)(layout->after - (length - whole)));
}

static void append_float(const Layout *layout, double value, Text *out) {
    if (isfinite(value)) {
        (layout->scientific ? append_scientific : append_fixed)(layout, value, out);
        return;
    }
    char text[NUMBER_TEXT_MAX];
    int length = number_format_float(value, layout->width, text);
    append_padded(out, text, length, layout->before + layout->after);
}

// The elements that are shown, in row-major order: floats, or integers.
typedef struct Elements {
    double *floats;
    int64_t *integers;
} Elements;

static int format_integer(DType dtype, int64_t value, char text[NUMBER_TEXT_MAX]) {
    if (dtype != DTYPE_BOOL) return number_format_integer(value, text);
    strcpy(text, value ? "true" : "false");
    return (int)strlen(text);
}

static void append_element(const Layout *layout, const Elements *elements, size_t index,
                           Text *out) {
    if (elements->floats) {
        append_float(layout, elements->floats[index], out);
        return;
    }
    char text[NUMBER_TEXT_MAX];
    int length = format_integer(layout->dtype, elements->integers[index], text);
    append_padded(out, text, length, layout->before);
}

typedef struct Printer {
    Layout layout;
    Elements elements;
    Shape shape;           // of what is shown
    bool elided[RANK_MAX]; // "..." stands in the middle of this dimension
    size_t next;           // element to print
    Text *out;
} Printer;

static void print_dim(Printer *printer, int dim) {
    Text *out = printer->out;
    int rank = printer->shape.rank;
    if (dim == rank) {
        append_element(&printer->layout, &printer->elements, printer->next++, out);
        return;
    }
    text_append_char(out, '[');
    for (int64_t i = 0; i < printer->shape.dims[dim]; i++) {
        bool gap = printer->elided[dim] && i == EDGE_ELEMENTS;
        for (int piece = gap ? 0 : 1; piece < 2; piece++) { // the dots, then the element
            if (i > 0 && dim == rank - 1) text_append_char(out, ' ');
            if (i > 0 && dim < rank - 1) {
                text_append_repeated(out, '\n', (size_t)(rank - 1 - dim));
                text_append_repeated(out, ' ', (size_t)dim + 1);
            }
            if (piece == 0) text_append_string(out, "...");
        }
        print_dim(printer, dim + 1);
    }
    text_append_char(out, ']');
}

// The first and last elements along dim, as plain numbers.
static Status keep_edges(Tensor *x, int dim, Tensor **out) {
    Tensor *pieces[2] = {NULL, NULL}, *plain[2] = {NULL, NULL};
    int64_t size = x->view.dims[dim];
    DType dtype = dtype_is_quant(x->view.dtype) ? DTYPE_FLOAT32 : x->view.dtype;
    Status status = tensor_slice(x, dim, 0, EDGE_ELEMENTS, &pieces[0]);
    if (status == STATUS_OK) status = tensor_slice(x, dim, size - EDGE_ELEMENTS, size, &pieces[1]);
    for (int i = 0; i < 2 && status == STATUS_OK; i++)
        status = tensor_cast(pieces[i], dtype, &plain[i]);
    if (status == STATUS_OK) status = tensor_concat(plain, 2, dim, out);
    for (int i = 0; i < 2; i++) {
        tensor_release(pieces[i]);
        tensor_release(plain[i]);
    }
    return status;
}

// A quantised tensor as floats, without the middle of every long dimension.
static Status dequantise_edges(Tensor *x, Tensor **out) {
    Tensor *current = tensor_retain(x);
    for (int dim = 0; dim < x->view.rank; dim++) {
        if (x->view.dims[dim] <= 2 * EDGE_ELEMENTS) continue;
        Tensor *next;
        Status status = STATUS_OK;
        if (dtype_is_quant(current->view.dtype) && current->view.strides[dim] == 1) {
            status = tensor_cast(current, DTYPE_FLOAT32, &next);
            tensor_release(current);
            TRY(status);
            current = next;
        }
        status = keep_edges(current, dim, &next);
        tensor_release(current);
        TRY(status);
        current = next;
    }
    *out = current;
    return STATUS_OK;
}

static void measure(Layout *layout, Elements *elements, size_t count) {
    if (elements->floats) {
        // A literal still has its numbers exactly; it shows what its dtype holds.
        for (size_t i = 0; i < count; i++)
            elements->floats[i] = number_round(elements->floats[i], layout->width);
        measure_floats(layout, elements->floats, count);
        return;
    }
    char text[NUMBER_TEXT_MAX];
    for (size_t i = 0; i < count; i++)
        layout->before =
            larger(layout->before, format_integer(layout->dtype, elements->integers[i], text));
}

// Of a tensor that is not quantised.
static Status print_shown(Tensor *x, int64_t edge, Printer *printer) {
    size_t count = 1;
    for (int i = 0; i < x->view.rank; i++) count *= (size_t)edge_count(x->view.dims[i], edge);
    bool floats = dtype_is_float(x->view.dtype);
    SCOPED_MEMORY void *numbers = memory_allocate(count * sizeof(double));
    printer->elements = (Elements){floats ? numbers : NULL, floats ? NULL : numbers};
    Elements *elements = &printer->elements;
    TRY(tensor_read_edges(x, edge, count, elements->floats, elements->integers));
    measure(&printer->layout, elements, count);
    print_dim(printer, 0);
    return STATUS_OK;
}

static Status print_number(Tensor *x, Text *out) {
    Scalar number;
    char text[NUMBER_TEXT_MAX];
    TRY(tensor_read_scalar(x, &number));
    NumberWidth width = float_width(x->view.dtype);
    if (number.dtype != DTYPE_FLOAT64) {
        text_append(out, text, (size_t)format_integer(x->view.dtype, number.as.i, text));
        return STATUS_OK;
    }
    double rounded = number_round(number.as.f, width);
    text_append(out, text, (size_t)number_format_float(rounded, width, text));
    return STATUS_OK;
}

static Status print_whole(Tensor *x, Text *out) {
    if (x->view.rank == 0) return print_number(x, out);
    int64_t count = tensor_count(x);
    if (count == 0) {
        text_append_string(out, "[]");
        if (x->view.rank == 1) return STATUS_OK;
        Shape shape = tensor_shape(x);
        text_append_string(out, " (shape ");
        shape_describe(&shape, out);
        text_append_char(out, ')');
        return STATUS_OK;
    }
    Printer printer = {.out = out, .shape = tensor_shape(x)};
    printer.layout = (Layout){.dtype = x->view.dtype, .width = float_width(x->view.dtype)};
    int64_t edge = count <= ELEMENTS_MAX ? ELEMENTS_MAX : EDGE_ELEMENTS;
    for (int i = 0; i < x->view.rank; i++) {
        printer.shape.dims[i] = edge_count(x->view.dims[i], edge);
        printer.elided[i] = printer.shape.dims[i] < x->view.dims[i];
    }
    if (!dtype_is_quant(x->view.dtype)) return print_shown(x, edge, &printer);
    SCOPED_TENSOR(plain);
    TRY(count <= ELEMENTS_MAX ? tensor_cast(x, DTYPE_FLOAT32, &plain)
                              : dequantise_edges(x, &plain));
    return print_shown(plain, edge, &printer);
}

Status tensor_print(Tensor *x, Text *out) {
    bool before = foretell_ignore_reads(true);
    Status status = print_whole(x, out);
    foretell_ignore_reads(before);
    return status;
}
