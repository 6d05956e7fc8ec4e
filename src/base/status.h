// Errors as values: a call that can fail returns a Status, its result comes through a last `out`
// parameter, and the words are recorded once, in this thread's ErrorRecord. Knows no place in a
// script: the interpreter adds the span on the way up, innermost wins.
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/origin.h"

typedef enum Status {
    STATUS_OK = 0,
#define ERROR(code, word) STATUS_##code,
#include "base/errors.def"
#undef ERROR
    STATUS_COUNT
} Status;

#define MUST_USE __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
// What is hardly ever called: its calls are laid out of the way of what runs.
#define COLD __attribute__((cold))
#define LIKELY(c) __builtin_expect(!!(c), 1)
#define UNLIKELY(c) __builtin_expect(!!(c), 0)

// Returns from the calling function when `call` fails.
#define TRY(call)                                                                                  \
    do {                                                                                           \
        Status try_status_ = (call);                                                               \
        if (UNLIKELY(try_status_ != STATUS_OK)) return try_status_;                                \
    } while (0)

enum { ERROR_TEXT_MAX = 2048, ERROR_KIND_MAX = 32 };

typedef struct ErrorRecord {
    Status code;                  // STATUS_OK when there is none
    char kind[ERROR_KIND_MAX];    // the word of the code, or what a script's error() named
    char message[ERROR_TEXT_MAX]; // one line, no place in it
    char label[ERROR_TEXT_MAX];   // stands next to the carets; may be empty
    char help[ERROR_TEXT_MAX];    // what to do about it; may be empty
    Span span;                    // {0, 0} until a layer that knows places adds it
} ErrorRecord;

// Records the error and returns `code`, so that `return fail(STATUS_SHAPE, "...")` reads well.
// Texts longer than ERROR_TEXT_MAX end in "..." at a code point boundary.
COLD Status fail(Status code, const char *format, ...) PRINTF_LIKE(2, 3);
// Adds to the error just recorded: a caret label, advice. Each returns the recorded code.
COLD Status fail_label(const char *format, ...) PRINTF_LIKE(1, 2);
COLD Status fail_help(const char *format, ...) PRINTF_LIKE(1, 2);
// Gives the current error a place unless it has one.
COLD void error_place(Span span);
// The current thread's error: borrowed, valid until the next fail() or error_clear().
ErrorRecord *error_current(void);
void error_clear(void);

// The word of a code, "shape" for STATUS_SHAPE.
const char *status_word(Status code);

// Stops the process with a message: a programmer's mistake, never a user's. On in release too.
#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (UNLIKELY(!(condition))) assert_failed(#condition, __FILE__, __LINE__);                 \
    } while (0)
COLD _Noreturn void assert_failed(const char *condition, const char *file, int line);

#endif
