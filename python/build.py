"""Writes _tl.c, the module by which the package reaches libtl: build.py TL_H OUT."""
import re
import sys
from pathlib import Path

import cffi

# Of DLPack: for the helpers and for what Python sees of them.
DL_TENSOR = """typedef struct DLTensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
"""

HELPERS = """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <tl.h>

/* DLPack, both of its structures. */
""" + DL_TENSOR + """typedef struct DLManaged {
    DLTensor tensor;
    void *context;
    void (*deleter)(struct DLManaged *);
} DLManaged;
typedef struct DLVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLVersioned *);
    uint64_t flags;
    DLTensor tensor;
} DLVersioned;

enum { DL_CPU = 1, DL_READ_ONLY = 1 };

/* A tensor that was given away: it holds a reference to its value. */
typedef struct Lent {
    union {
        DLManaged plain;
        DLVersioned versioned;
    } as;
    tl_value *value;
    tl_tensor view;
} Lent;

static void give_back(Lent *lent) {
    tl_release(lent->value);
    free(lent);
}
static void delete_plain(DLManaged *managed) { give_back(managed->context); }
static void delete_versioned(DLVersioned *managed) { give_back(managed->context); }

static void fill(DLTensor *tensor, Lent *lent, int code, int bits) {
    *tensor = (DLTensor){.data = lent->view.data, .device_type = DL_CPU, .ndim = lent->view.rank,
                         .code = (uint8_t)code, .bits = (uint8_t)bits, .lanes = 1,
                         .shape = lent->view.shape, .strides = lent->view.strides};
}

static void *lend(tl_value *value, const tl_tensor *view, int code, int bits, int versioned) {
    Lent *lent = calloc(1, sizeof *lent);
    if (!lent) return NULL;
    lent->value = tl_retain(value);
    lent->view = *view;
    if (versioned) {
        lent->as.versioned = (DLVersioned){.major = 1, .context = lent, .deleter = delete_versioned,
                                           .flags = DL_READ_ONLY};
        fill(&lent->as.versioned.tensor, lent, code, bits);
        return &lent->as.versioned;
    }
    lent->as.plain = (DLManaged){.context = lent, .deleter = delete_plain};
    fill(&lent->as.plain.tensor, lent, code, bits);
    return &lent->as.plain;
}

static void delete_managed(void *managed, int versioned) {
    DLManaged *plain = managed;
    DLVersioned *new = managed;
    if (versioned && new->deleter) new->deleter(new);
    if (!versioned && plain->deleter) plain->deleter(plain);
}

/* Of a capsule that nobody took. Called by Python, which holds its lock. */
static void capsule_end(PyObject *capsule) {
    const char *names[] = {"dltensor", "dltensor_versioned"};
    for (int i = 0; i < 2; i++)
        if (PyCapsule_IsValid(capsule, names[i]))
            delete_managed(PyCapsule_GetPointer(capsule, names[i]), i);
}
static uintptr_t capsule_destructor(void) { return (uintptr_t)capsule_end; }

/* Ctrl-C also stops what tl runs in the main thread; Python's own handler then raises. */
static tl_runtime *volatile interrupted;
static struct sigaction before;
static pthread_t main_thread;

static void on_interrupt(int number) {
    tl_runtime *runtime = interrupted;
    if (runtime) tl_interrupt(runtime);
    if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(number);
}
static void watch_interrupts(void) {
    struct sigaction action;
    main_thread = pthread_self();
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, &before);
}
static tl_runtime *guard(tl_runtime *runtime) {
    tl_runtime *outer = interrupted;
    if (pthread_equal(pthread_self(), main_thread)) interrupted = runtime;
    return outer;
}

/* NULL: it failed; nothing(): the result is none. Python pays for each function that it calls. */
static tl_value *nothing(void) { return (tl_value *)&before; }
static tl_value *call(tl_value *function, tl_value *const *arguments, size_t count) {
    tl_value *result = NULL;
    tl_runtime *outer = guard(tl_runtime_of(function));
    tl_status status = tl_call(function, arguments, count, &result);
    guard(outer);
    if (status != TL_OK) return NULL;
    if (tl_kind_of(result) != TL_NONE) return result;
    tl_release(result);
    return nothing();
}
static tl_value *run(tl_runtime *runtime, const char *name, const char *text) {
    tl_value *result = NULL;
    tl_runtime *outer = guard(runtime);
    tl_status status = tl_run_text(runtime, name, text, &result);
    guard(outer);
    return status == TL_OK ? result : NULL;
}
"""

DECLARED = """
""" + DL_TENSOR + """typedef struct DLManaged { DLTensor tensor; ...; } DLManaged;
typedef struct DLVersioned { uint32_t major, minor; uint64_t flags; DLTensor tensor; ...; } DLVersioned;

void *lend(tl_value *value, const tl_tensor *view, int code, int bits, int versioned);
void delete_managed(void *managed, int versioned);
uintptr_t capsule_destructor(void);
tl_value *call(tl_value *function, tl_value *const *arguments, size_t count);
void watch_interrupts(void);
tl_value *run(tl_runtime *runtime, const char *name, const char *text);
tl_value *nothing(void);

extern "Python" {
    tl_status host_call(void *, tl_runtime *, tl_value *const *, size_t, tl_value **);
    void host_release(void *);
    void host_write(void *, int, const char *, size_t);
    void host_progress(void *, int64_t, int64_t, double);
    void host_picture(void *, const char *, size_t);
}
"""


def declarations(header):
    """What tl.h declares, without the preprocessor's lines."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    text = re.sub(r'#ifdef __cplusplus\n.*?#endif\n', "", text, flags=re.S)
    return "\n".join(line for line in text.splitlines() if not line.startswith("#"))


def main():
    header, out = Path(sys.argv[1]), sys.argv[2]
    ffi = cffi.FFI()
    ffi.cdef(declarations(header.read_text()))
    ffi.cdef(DECLARED)
    ffi.set_source("tl._tl", HELPERS)
    ffi.emit_c_code(out)


main()
