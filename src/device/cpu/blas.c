// Finds OpenBLAS and LAPACKE at run time. Knows their names and what of them is used, not what for.
#include "device/cpu/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

BlasLibrary blas_library;
LapackLibrary lapack_library;

typedef struct Symbol {
    const char *name;
    void *target; // a function pointer
} Symbol;

typedef struct Library {
    const char *file, *purpose, *package;
    const Symbol *symbols;
    size_t symbol_count;
    char problem[200]; // "" when it is loaded
} Library;

static const Symbol blas_symbols[] = {
    {"cblas_sgemm", &blas_library.sgemm},
    {"cblas_dgemm", &blas_library.dgemm},
};
static const Symbol lapack_symbols[] = {
#define LAPACK_SYMBOLS(name)                                                                       \
    {"LAPACKE_s" #name, &lapack_library.s##name}, {"LAPACKE_d" #name, &lapack_library.d##name},
    LAPACK_FUNCTIONS(LAPACK_SYMBOLS)
#undef LAPACK_SYMBOLS
};
static Library blas = {.file = "libopenblas.so.0",
                       .purpose = "products of matrices",
                       .package = "libopenblas0-openmp",
                       .symbols = blas_symbols,
                       .symbol_count = sizeof blas_symbols / sizeof *blas_symbols};
static Library lapack = {.file = "liblapacke.so.3",
                         .purpose = "decompositions of matrices",
                         .package = "liblapacke",
                         .symbols = lapack_symbols,
                         .symbol_count = sizeof lapack_symbols / sizeof *lapack_symbols};

static void note_problem(Library *library) {
    const char *problem = dlerror();
    strncpy(library->problem, problem ? problem : "it is incomplete", sizeof library->problem - 1);
}

// Global, so that LAPACKE finds LAPACK and BLAS in OpenBLAS before the plain ones it names.
static void open_library(Library *library) {
    void *handle = dlopen(library->file, RTLD_LAZY | RTLD_GLOBAL);
    if (!handle) {
        note_problem(library);
        return;
    }
    for (size_t i = 0; i < library->symbol_count; i++) {
        void *found = dlsym(handle, library->symbols[i].name);
        memcpy(library->symbols[i].target, &found, sizeof found);
        if (!found) note_problem(library);
    }
}

static Status check_library(const Library *library) {
    if (library->problem[0] == '\0') return STATUS_OK;
    (void)fail(STATUS_DEVICE, "%s need the library %s, which cannot be loaded: %s",
               library->purpose, library->file, library->problem);
    return fail_help("on Debian and Ubuntu: apt install %s", library->package);
}

// OpenBLAS built with OpenMP asks that, for each thread anew; else it has threads of its own.
static void open_blas(void) {
    open_library(&blas);
    void *handle = dlopen(blas.file, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return;
    void *found = dlsym(handle, "omp_set_num_threads");
    if (!found) found = dlsym(handle, "openblas_set_num_threads");
    memcpy(&blas_library.set_threads, &found, sizeof found);
    dlclose(handle);
}

void blas_use_one_thread(void) {
    static _Thread_local bool done;
    if (!done && blas_library.set_threads) blas_library.set_threads(1);
    done = true;
}

static void open_lapack(void) {
    open_library(&lapack);
}

Status blas_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_blas);
    return check_library(&blas);
}

Status lapack_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    TRY(blas_load());
    pthread_once(&once, open_lapack);
    return check_library(&lapack);
}
