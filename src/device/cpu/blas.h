// OpenBLAS and LAPACKE, loaded when they are first needed: together they take longer to load than
// everything else that a short program does.
#ifndef DEVICE_CPU_BLAS_H
#define DEVICE_CPU_BLAS_H

#include <cblas.h>
#include <complex.h>
#include <lapacke.h>

#include "base/library.h"

#define BLAS_FUNCTIONS(F) F(cblas_, sgemm) F(cblas_, dgemm)
typedef struct BlasLibrary {
    BLAS_FUNCTIONS(LIBRARY_FIELD)
    void (*set_threads)(int count);
} BlasLibrary;

#define LAPACK_OF(F, name) F(LAPACKE_, s##name) F(LAPACKE_, d##name)
#define LAPACK_FUNCTIONS(F)                                                                        \
    LAPACK_OF(F, getrf_work)                                                                       \
    LAPACK_OF(F, getrs_work)                                                                       \
    LAPACK_OF(F, potrf_work)                                                                       \
    LAPACK_OF(F, geqrf) LAPACK_OF(F, orgqr) LAPACK_OF(F, gesdd_work) LAPACK_OF(F, syevd_work)
typedef struct LapackLibrary {
    LAPACK_FUNCTIONS(LIBRARY_FIELD)
} LapackLibrary;

// Before the first use of a library; cheap once it is there. Fails when it cannot be loaded, and
// with STATUS_MEMORY when the system has no room for its work areas (128 MB a thread, mostly
// untouched).
Status blas_load(void) MUST_USE;
Status lapack_load(void) MUST_USE;
// In a thread that is about to use them: their own threads would cut the work by their number, and
// results would depend on it; ours run BLAS side by side on tiles.
void blas_use_one_thread(void);
// Complete once loading has succeeded.
extern BlasLibrary blas_library;
extern LapackLibrary lapack_library;

#endif
