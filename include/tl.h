/* tl inside other programs: runtimes, values, tensors over memory of yours, functions of yours.
 *
 * Ownership: a tl_value * that a function returns, or gives through its last parameter, is a
 * reference of yours until tl_release. Values that are given to a function stay yours. Texts and
 * views are borrowed from the value or the runtime that they were asked of.
 *
 * Errors: functions that return tl_status give TL_OK, or TL_FAILED with the words in tl_last_error,
 * and then leave their results alone; functions that return a pointer give NULL and leave the words
 * there too.
 *
 * Threads: any thread may call, one at a time goes on within a runtime and the others wait;
 * tl_interrupt does not wait. Runtimes are independent of each other. */
#ifndef TL_H
#define TL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tl_runtime tl_runtime;
typedef struct tl_value tl_value;

typedef enum tl_status { TL_OK = 0, TL_FAILED = 1 } tl_status;

typedef enum tl_kind {
    TL_NONE,
    TL_BOOL,
    TL_INT,
    TL_FLOAT,
    TL_STRING,
    TL_TENSOR,
    TL_LIST,
    TL_TUPLE,
    TL_DICT,
    TL_STRUCT,
    TL_FUNCTION, /* anything that tl_call calls */
    TL_OTHER     /* models, ranges, dtypes ...: passed on, printed, released */
} tl_kind;

/* What went wrong, as tl's own messages have it. Texts are "" where there is nothing to say. */
typedef struct tl_error {
    const char *kind;         /* "shape", "syntax", "interrupt" ...; "exit" after exit(n) */
    const char *message;      /* one line */
    const char *label;        /* what stands next to the carets */
    const char *help;         /* what to do about it */
    const char *file;         /* NULL: it has no place */
    int line, column;         /* from 1; columns count code points */
    int end_line, end_column; /* one past the last code point */
    int exit_status;          /* of exit(n) */
    const char *text;         /* all of it with source lines, as the program tl prints it */
} tl_error;

/* What a runtime holds. A borrowed byte is one of foreign memory that tensors lie on. */
typedef struct tl_ledger_entry {
    uint64_t live_bytes, live_buffers, peak_bytes, cached_bytes, borrowed_bytes;
    uint64_t objects; /* of the language: lists, dictionaries, functions ... */
    uint64_t values;  /* references that you hold */
} tl_ledger_entry;

/* --- runtimes */

/* "0.1.0"; static. */
const char *tl_version(void);
/* A runtime on a device ("cpu", "vulkan:0", "auto"; NULL: as TL_DEVICE says), owned by the caller;
 * NULL when the settings of the environment or the device's name are wrong: *error, which may be
 * NULL, then has the words until the next call in this thread. */
tl_runtime *tl_runtime_new(const char *device, const tl_error **error);
/* Gives the runtime up: it ends, its variables are cleared and its memory goes back, as soon as the
 * last of its values is released; until then these can be used. NULL is allowed. */
void tl_runtime_free(tl_runtime *runtime);
/* The last failure; borrowed until the next one in this runtime. Never NULL. */
const tl_error *tl_last_error(const tl_runtime *runtime);
/* Sets the seed of random numbers; cannot fail. */
void tl_seed(tl_runtime *runtime, uint64_t seed);
/* What the runtime holds now; cannot fail. */
void tl_ledger(tl_runtime *runtime, tl_ledger_entry *ledger);

/* --- running */

/* Runs a program that shares variables with those before it; *result (NULL: not wanted) is the
 * value of its last statement. When it fails, variables are as they were before it. */
tl_status tl_run_text(tl_runtime *runtime, const char *name, const char *text, tl_value **result);
/* The same with a file, or "-" for standard input. */
tl_status tl_run_file(tl_runtime *runtime, const char *path, tl_value **result);
/* A variable or function of the programs that ran; fails with "name" when there is none. */
tl_status tl_get(tl_runtime *runtime, const char *name, tl_value **result);
/* Makes a variable of that name, or changes it. */
tl_status tl_set(tl_runtime *runtime, const char *name, tl_value *value);
/* Calls a function with arguments by position, on the caller's stack; *result may not be wanted. */
tl_status tl_call(tl_value *function, tl_value *const *arguments, size_t count, tl_value **result);
/* From any thread or signal handler: what runs in the runtime fails with "interrupt"; nothing
 * happens where nothing runs. */
void tl_interrupt(tl_runtime *runtime);

/* A function of yours: arguments are borrowed, *result is taken (NULL: none). Anything but TL_OK
 * fails the call, with the words of tl_fail. Within it, the same runtime may be used. */
typedef tl_status (*tl_function)(void *context, tl_runtime *runtime, tl_value *const *arguments,
                                 size_t count, tl_value **result);
/* A value that calls the function; `release` (NULL: none) is called with the context when the last
 * reference to it goes. */
tl_value *tl_from_function(tl_runtime *runtime, tl_function function, void *context,
                           void (*release)(void *context));
/* Sets the error of the runtime, such as that of a function of yours; `kind` is one word, help may
 * be NULL. Returns TL_FAILED. */
tl_status tl_fail(tl_runtime *runtime, const char *kind, const char *message, const char *help);

/* What is printed goes to `write` instead of the process's standard output and error, which NULL
 * brings back. It must not call into the runtime. */
typedef void (*tl_write)(void *context, int is_error, const char *bytes, size_t length);
void tl_on_output(tl_runtime *runtime, tl_write write, void *context);
/* Told of every epoch of a learn block: how many are done, of how many (0: not said), and the loss.
 * It must not call into the runtime, but for tl_interrupt; NULL: nobody is. */
typedef void (*tl_progress)(void *context, int64_t epoch, int64_t epochs, double loss);
void tl_on_progress(tl_runtime *runtime, tl_progress progress, void *context);

/* Given the picture of each plot that has no path, an <svg> element, which is drawn in characters
 * otherwise. It must not call into the runtime; NULL: pictures are drawn in characters again. */
typedef void (*tl_picture)(void *context, const char *svg, size_t length);
void tl_on_picture(tl_runtime *runtime, tl_picture picture, void *context);
/* The names that a program may use now, a list of strings: those of programs before it, then
 * builtins, constants and dtypes. */
tl_status tl_names(tl_runtime *runtime, tl_value **names);

/* --- values */

tl_value *tl_retain(tl_value *value); /* another reference; returns its argument */
void tl_release(tl_value *value);     /* gives one up; NULL is allowed */
tl_kind tl_kind_of(const tl_value *value);
/* The runtime of a value; borrowed, valid as long as the value. */
tl_runtime *tl_runtime_of(const tl_value *value);

tl_value *tl_from_none(tl_runtime *runtime);
tl_value *tl_from_bool(tl_runtime *runtime, int boolean);
tl_value *tl_from_int(tl_runtime *runtime, int64_t integer);
tl_value *tl_from_float(tl_runtime *runtime, double number);
/* Copies UTF-8 text; fails with "value" for other bytes. */
tl_value *tl_from_string(tl_runtime *runtime, const char *bytes, size_t length);
/* A list of the values, which stay the caller's as well. */
tl_value *tl_from_list(tl_runtime *runtime, tl_value *const *items, size_t count);
/* A dictionary of the values by names that end with NUL. */
tl_value *tl_from_dict(tl_runtime *runtime, const char *const *names, tl_value *const *items,
                       size_t count);

/* Each fails with "type" for a value that is nothing of the kind; tensors with one element and
 * numbers without a fraction convert as the language does it. */
tl_status tl_to_bool(tl_value *value, int *boolean);
tl_status tl_to_int(tl_value *value, int64_t *integer);
tl_status tl_to_float(tl_value *value, double *number);
/* Text with a NUL behind it, borrowed from the value. */
tl_status tl_to_string(tl_value *value, const char **bytes, size_t *length);
/* The items of a list, tuple or dictionary, or the fields of a struct. */
tl_status tl_count(tl_value *value, size_t *count);
/* One of them, from 0; of a dictionary, by order of insertion. "index" when there is none. */
tl_status tl_item(tl_value *value, size_t index, tl_value **item);
/* The name of that entry of a dictionary or struct, as a value. */
tl_status tl_key(tl_value *value, size_t index, tl_value **key);
/* What a dictionary has under a name, or the field of a struct. "key" when there is none. */
tl_status tl_member(tl_value *value, const char *name, tl_value **member);
/* The value as print shows it, as a string value. */
tl_status tl_text(tl_value *value, tl_value **text);

/* --- tensors */

enum { TL_RANK_MAX = 8 };

/* Numbers in memory. Strides count elements. */
typedef struct tl_tensor {
    const char *dtype; /* "float32", "int64", "bool" ... */
    int rank;
    int64_t shape[TL_RANK_MAX], strides[TL_RANK_MAX];
    void *data; /* of the element with all indexes 0 */
} tl_tensor;

/* A tensor over memory of yours, which must not change while it is in use; `release` (NULL: none)
 * is called with the context when nothing needs the memory any more. On the CPU nothing is copied;
 * where the device cannot use host memory it is, and released at once. Strides must not be
 * negative; "shape" or "dtype" otherwise, with the context still yours. */
tl_status tl_from_memory(tl_runtime *runtime, const tl_tensor *memory,
                         void (*release)(void *context), void *context, tl_value **tensor);
/* Where the numbers of a tensor lie: valid as long as the value, not to be written to. Fails with
 * "device" for a tensor that is not in host memory, and "dtype" for quantised ones. */
tl_status tl_view(tl_value *tensor, tl_tensor *view);
/* Copies the numbers of a tensor on any device, in row-major order and its own dtype; "value" when
 * `bytes` is not what they take. */
tl_status tl_copy(tl_value *tensor, void *target, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
