// OpenBLAS and LAPACKE, loaded when they are first needed: together they take longer to load than
// everything else that a short program does.
#ifndef DEVICE_CPU_BLAS_H
#define DEVICE_CPU_BLAS_H

#include <cblas.h>
#include <complex.h>
#include <lapacke.h>

#include "base/status.h"

typedef struct BlasLibrary {
    __typeof__(cblas_sgemm) *sgemm;
    __typeof__(cblas_dgemm) *dgemm;
    void (*set_threads)(int count);
} BlasLibrary;

#define LAPACK_FUNCTIONS(F)                                                                        \
    F(getrf_work) F(getrs_work) F(potrf_work) F(geqrf) F(orgqr) F(gesdd_work) F(syevd_work)

typedef struct LapackLibrary {
#define LAPACK_FIELDS(name)                                                                        \
    __typeof__(LAPACKE_s##name) *s##name;                                                          \
    __typeof__(LAPACKE_d##name) *d##name;
    LAPACK_FUNCTIONS(LAPACK_FIELDS)
#undef LAPACK_FIELDS
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
