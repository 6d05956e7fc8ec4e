// Printing, formatting, reading input, and the functions that raise errors.
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/placeholder.h"
#include "base/utf8.h"
#include "device/foretell.h"
#include "eval/state.h"
#include "learn/learn.h"
#include "learn/output.h"
#include "library/state.h"
#include "value/convert.h"
#include "value/format.h"
#include "value/items.h"
#include "value/print.h"

// The values with a separator between them, or the first as a format of the others.
static Status print_values(const BuiltinCall *call, const char *separator, Text *out) {
    const Value *values = call->rest;
    size_t count = call->rest_count;
    bool format = call->first_is_literal && count > 1 && values[0].kind == VALUE_STRING &&
                  placeholder_any(values[0].as.string->bytes, values[0].as.string->length);
    if (format) return format_values(values[0].as.string, values + 1, count - 1, out);
    for (size_t i = 0; i < count; i++) {
        if (i) text_append_string(out, separator);
        TRY(value_print(values[i], false, out));
    }
    return STATUS_OK;
}

static Value print_to(FILE *stream, const BuiltinCall *call) {
    const String *separator;
    TRY_VALUE(value_to_string(call->arguments[1], "sep", &separator));
    Value end = call->arguments[2];
    SCOPED_TEXT(text);
    Status status = print_values(call, separator->bytes, &text);
    if (end.kind == VALUE_STRING)
        text_append(&text, end.as.string->bytes, end.as.string->length);
    else
        text_append_char(&text, '\n');
    if (status == STATUS_OK) status = output_write(stream, &text);
    return status == STATUS_OK ? value_none() : value_fail();
}

Value builtin_print(BuiltinCall *call) {
    return print_to(output_stream(), call);
}

Value builtin_eprint(BuiltinCall *call) {
    return print_to(output_errors(), call);
}

Value builtin_format(BuiltinCall *call) {
    SCOPED_TEXT(text);
    Status status =
        format_values(call->arguments[0].as.string, call->rest, call->rest_count, &text);
    return status == STATUS_OK ? value_string(text_get(&text), text.length) : value_fail();
}

// --- input

// What was read of standard input and not yet handed out. Reading here, not through stdio, lets the
// wait be looked at now and then, so that Ctrl-C ends it.
struct Input {
    Text text;
    size_t at;
    bool ended;
};

Input *input_new(void) {
    return memory_allocate_zeroed(1, sizeof(Input));
}

void input_free(Input *input) {
    text_free(&input->text);
    free(input);
}

// Reads more of standard input; *got is false when the interrupt came.
static Status read_more(bool *got) {
    enum { WAIT_MS = 50 };
    *got = true;
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    while (poll(&ready, 1, WAIT_MS) <= 0) {
        *got = !(interp_interrupts() & INTERRUPT_SIGNAL);
        if (!*got) return STATUS_OK;
    }
    char bytes[4096];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count < 0 && errno != EINTR && errno != EAGAIN)
        return fail(STATUS_IO, "cannot read standard input: %s", strerror(errno));
    if (count == 0) runtime_current->input->ended = true;
    if (count > 0) text_append(&runtime_current->input->text, bytes, (size_t)count);
    return STATUS_OK;
}

// The next line without its end; ABSENT at the end of the input.
static Value take_line(void) {
    Text *text = &runtime_current->input->text;
    size_t at = runtime_current->input->at;
    const char *begin = text_get(text) + at;
    const char *newline = memchr(begin, '\n', text->length - at);
    if (!newline && text->length == at) return value_absent();
    size_t length = newline ? (size_t)(newline - begin) : text->length - at;
    runtime_current->input->at += length + (newline ? 1 : 0);
    if (length > 0 && begin[length - 1] == '\r') length--;
    if (!utf8_valid(begin, length, NULL))
        return value_failed(
            fail(STATUS_FORMAT, "the line read from standard input is not UTF-8 text"));
    Value line = value_string(begin, length);
    if (runtime_current->input->at == text->length) {
        text_clear(text);
        runtime_current->input->at = 0;
    }
    return line;
}

static bool line_is_ready(void) {
    const Text *text = &runtime_current->input->text;
    return runtime_current->input->ended ||
           memchr(text_get(text) + runtime_current->input->at, '\n',
                  text->length - runtime_current->input->at) != NULL;
}

Value builtin_input(BuiltinCall *call) {
    Value prompt = call->arguments[0], fallback = call->arguments[1];
    if (prompt.kind == VALUE_STRING)
        fwrite(prompt.as.string->bytes, 1, prompt.as.string->length, output_stream());
    output_flush();
    foretell_unknown();
    while (!line_is_ready()) {
        bool got;
        TRY_VALUE(read_more(&got));
        if (!got) return interp_fail_interrupted((Span){0, 0});
    }
    Value line = take_line();
    if (line.kind != VALUE_ABSENT) return line;
    if (fallback.kind != VALUE_ABSENT) return fallback;
    fail(STATUS_IO, "input: standard input has ended");
    fail_help("input(prompt, fallback) gives the fallback at the end of the input");
    return value_fail();
}

// --- errors

// A message: any value as text, or a format of the values that follow it.
static Status message_text(Value message, const Value *values, size_t count, Text *out) {
    if (count == 0) return value_print(message, false, out);
    const String *format;
    TRY(value_to_string(message, "message", &format));
    return format_values(format, values, count, out);
}

static Value fail_with(Status code, Value message, const Value *values, size_t count) {
    SCOPED_TEXT(text);
    Status status = message_text(message, values, count, &text);
    if (status == STATUS_OK) fail(code, "%s", text_get(&text));
    return value_fail();
}

Value builtin_panic(BuiltinCall *call) {
    return fail_with(STATUS_PANIC, call->arguments[0], call->rest, call->rest_count);
}

Value builtin_error(BuiltinCall *call) {
    const String *kind;
    Value message = call->arguments[0], kind_value = call->arguments[1];
    if (failure_raise_again(call->interp, message)) return value_fail();
    if (value_is_error(message)) { // kept from a handler that is done
        kind_value = message.as.instance->fields[0];
        message = message.as.instance->fields[1];
    }
    TRY_VALUE(value_to_string(kind_value, "kind", &kind));
    if (kind->length == 0 || kind->length >= ERROR_KIND_MAX)
        return value_failed(fail(STATUS_VALUE,
                                 "error: kind must be a word of 1 to %d letters, but it is %s",
                                 ERROR_KIND_MAX - 1, value_text(kind_value).text));
    fail_with(STATUS_USER, message, NULL, 0);
    if (error_current()->code == STATUS_USER)
        snprintf(error_current()->kind, ERROR_KIND_MAX, "%s", kind->bytes);
    return value_fail();
}

// While memory is foretold, numbers that only a run knows are guessed, and an assertion about them
// holds.
static bool is_guessed(void) {
    return foretell_has_guessed() && !foretell_attempts();
}

Value builtin_assert(BuiltinCall *call) {
    bool holds, before = foretell_ignore_checks();
    Status status = value_to_bool(call->arguments[0], "the condition of assert", &holds);
    foretell_ignore_reads(before);
    TRY_VALUE(status);
    if (holds || is_guessed()) return value_none();
    if (call->arguments[1].kind != VALUE_ABSENT)
        fail_with(STATUS_ASSERT, call->arguments[1], call->rest, call->rest_count);
    else
        fail(STATUS_ASSERT, "the assertion does not hold");
    asserted_label(call->interp);
    return value_fail();
}

// The text of a value for a message, cut when it is long.
static void show(Value value, Text *out) {
    enum { SHOWN_MAX = 400 };
    SCOPED_TEXT(text);
    if (value_print(value, true, &text) != STATUS_OK) value_describe(value, &text);
    size_t length = text.length < SHOWN_MAX ? text.length : SHOWN_MAX;
    while (length > 0 && length < text.length &&
           ((unsigned char)text_get(&text)[length] & 0xC0u) == 0x80u)
        length--;
    text_append(out, text_get(&text), length);
    if (length < text.length) text_append_string(out, "...");
}

static Value fail_different(const char *how, Value actual, Value expected, Value message) {
    if (is_guessed()) return value_none();
    SCOPED_TEXT(text);
    if (message.kind != VALUE_ABSENT) {
        if (message.kind == VALUE_STRING)
            text_append_string(&text, message.as.string->bytes);
        else
            show(message, &text);
        text_append_string(&text, ": ");
    }
    show(actual, &text);
    text_format(&text, " %s ", how);
    show(expected, &text);
    if (actual.kind == VALUE_TENSOR && expected.kind == VALUE_TENSOR) {
        text_append_string(&text, " (");
        value_describe(actual, &text);
        text_append_string(&text, " and ");
        value_describe(expected, &text);
        text_append_char(&text, ')');
    }
    return value_failed(fail(STATUS_ASSERT, "%s", text_get(&text)));
}

Value builtin_assert_eq(BuiltinCall *call) {
    Value actual = call->arguments[0], expected = call->arguments[1], message = call->arguments[2];
    bool equal, before = foretell_ignore_checks();
    Status status = value_equals(actual, expected, &equal);
    foretell_ignore_reads(before);
    TRY_VALUE(status);
    if (equal) return value_none();
    return fail_different("is not equal to", actual, expected, message);
}

// The numbers of a value; *count of them, malloc'd.
static Status read_numbers(Value value, const char *what, double **out, Shape *shape) {
    Tensor *tensor;
    TRY(value_to_tensor(value, what, &tensor));
    *shape = tensor_shape(tensor);
    *out = memory_allocate_zeroed((size_t)tensor_count(tensor), sizeof(double));
    Status status = tensor_read_floats(tensor, *out);
    tensor_release(tensor);
    if (status != STATUS_OK) memory_free_of(out);
    return status;
}

static bool close_enough(double actual, double expected, const double *tolerance) {
    if (actual == expected || (isnan(actual) && isnan(expected))) return true;
    double bound = tolerance ? *tolerance : 1e-5 + 1e-5 * fabs(expected);
    return isfinite(expected) && fabs(actual - expected) <= bound;
}

// Compares all numbers; *about: whether the shapes agree and every number is close enough.
static Status compare_numbers(Value actual, Value expected, const double *tolerance, bool *about) {
    double *x, *y;
    Shape x_shape, y_shape;
    TRY(read_numbers(actual, "actual", &x, &x_shape));
    Status status = read_numbers(expected, "expected", &y, &y_shape);
    if (status != STATUS_OK) {
        free(x);
        return status;
    }
    int64_t count = 1;
    *about = x_shape.rank == y_shape.rank;
    for (int i = 0; *about && i < x_shape.rank; i++) {
        *about = x_shape.dims[i] == y_shape.dims[i];
        count *= x_shape.dims[i];
    }
    for (int64_t i = 0; *about && i < count; i++) *about = close_enough(x[i], y[i], tolerance);
    free(x);
    free(y);
    return STATUS_OK;
}

Value builtin_assert_about_eq(BuiltinCall *call) {
    Value actual = call->arguments[0], expected = call->arguments[1], message = call->arguments[3];
    double tolerance = 0;
    bool given = call->arguments[2].kind != VALUE_ABSENT;
    bool about = false, before = foretell_ignore_checks();
    Status status =
        given ? value_to_double(call->arguments[2], "tolerance", &tolerance) : STATUS_OK;
    if (status == STATUS_OK)
        status = compare_numbers(actual, expected, given ? &tolerance : NULL, &about);
    foretell_ignore_reads(before);
    TRY_VALUE(status);
    if (about) return value_none();
    char how[64] = "is not about equal to";
    if (given) snprintf(how, sizeof how, "is not within %g of", tolerance);
    return fail_different(how, actual, expected, message);
}

Value builtin_cleanup(BuiltinCall *call) {
    (void)call;
    return value_none();
}
