// Finds OpenBLAS and LAPACKE at run time. Knows their names and what of them is used, not what for.
#include "device/cpu/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/library.h"

BlasLibrary blas_library;
LapackLibrary lapack_library;

static const LibrarySymbol blas_symbols[] = {
    {"cblas_sgemm", &blas_library.sgemm},
    {"cblas_dgemm", &blas_library.dgemm},
};
static const LibrarySymbol lapack_symbols[] = {
#define LAPACK_SYMBOLS(name)                                                                       \
    {"LAPACKE_s" #name, &lapack_library.s##name}, {"LAPACKE_d" #name, &lapack_library.d##name},
    LAPACK_FUNCTIONS(LAPACK_SYMBOLS)
#undef LAPACK_SYMBOLS
};
// Global, so that LAPACKE finds LAPACK and BLAS in OpenBLAS before the plain ones it names.
static Library blas = {.file = "libopenblas.so.0",
                       .purpose = "products of matrices",
                       .package = "libopenblas0-openmp",
                       .global = true,
                       .symbols = blas_symbols,
                       .symbol_count = sizeof blas_symbols / sizeof *blas_symbols};
static Library lapack = {.file = "liblapacke.so.3",
                         .purpose = "decompositions of matrices",
                         .package = "liblapacke",
                         .global = true,
                         .symbols = lapack_symbols,
                         .symbol_count = sizeof lapack_symbols / sizeof *lapack_symbols};

// OpenBLAS built with OpenMP asks that, for each thread anew; else it has threads of its own.
static void find_threads(void) {
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

Status blas_load(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    TRY(library_load(&blas));
    pthread_once(&once, find_threads);
    return STATUS_OK;
}

Status lapack_load(void) {
    TRY(blas_load());
    return library_load(&lapack);
}
