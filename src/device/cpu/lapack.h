// LAPACKE and OpenBLAS below it, loaded when they are first needed: together they take longer to
// load than everything else that a short program does.
#ifndef DEVICE_CPU_LAPACK_H
#define DEVICE_CPU_LAPACK_H

#include <complex.h>
#include <lapacke.h>

#include "base/library.h"

#define LAPACK_OF(F, name) F(LAPACKE_, s##name) F(LAPACKE_, d##name)
#define LAPACK_FUNCTIONS(F)                                                                        \
    LAPACK_OF(F, getrf_work)                                                                       \
    LAPACK_OF(F, getrs_work)                                                                       \
    LAPACK_OF(F, potrf_work)                                                                       \
    LAPACK_OF(F, geqrf) LAPACK_OF(F, orgqr) LAPACK_OF(F, gesdd_work) LAPACK_OF(F, syevd_work)
typedef struct LapackLibrary {
    LAPACK_FUNCTIONS(LIBRARY_FIELD)
} LapackLibrary;

// Before the first use; cheap once it is there. Fails when a library cannot be loaded, and with
// STATUS_MEMORY when the system has no room for its work areas (128 MB each, mostly untouched).
Status lapack_load(void) MUST_USE;
// In a thread that is about to use it: OpenBLAS's own threads would cut the work by their number,
// and results would depend on it.
void lapack_use_one_thread(void);
// Complete once loading has succeeded.
extern LapackLibrary lapack_library;

#endif
