// Finds LAPACKE and OpenBLAS at run time. Knows their names and what of them is used, not what for.
#include "device/cpu/lapack.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "device/cpu/cpu.h"

LapackLibrary lapack_library;

#define BLAS_FUNCTIONS(F) F(openblas_, set_num_threads)
static struct { BLAS_FUNCTIONS(LIBRARY_FIELD) } blas_library;

// Global, so that LAPACKE finds LAPACK and BLAS in OpenBLAS before the plain ones it names.
static Library blas = {.file = "libopenblas.so.0",
                       .purpose = "decompositions of matrices",
                       .package = "libopenblas0-openmp",
                       .global = true,
                       LIBRARY_FILLS(blas_library, BLAS_FUNCTIONS)};
static Library lapack = {.file = "liblapacke.so.3",
                         .purpose = "decompositions of matrices",
                         .package = "liblapacke",
                         .global = true,
                         LIBRARY_FILLS(lapack_library, LAPACK_FUNCTIONS)};

// Built with OpenMP it asks that, for each thread anew; else it has threads of its own.
static void (*set_threads)(int count);

static void find_threads(void) {
    void *handle = dlopen(blas.file, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle ? dlsym(handle, "omp_set_num_threads") : NULL;
    set_threads = blas_library.set_num_threads;
    if (found) memcpy(&set_threads, &found, sizeof found);
    if (handle) dlclose(handle);
}

void lapack_use_one_thread(void) {
    static _Thread_local bool done;
    if (!done) set_threads(1);
    done = true;
}

// OpenBLAS takes a work area for each of its threads when it is loaded and one for each
// decomposition that runs at the same time, keeps them, and asks again for ever when the system
// refuses. So we ask first whether there is room, and take all of them at once: afterwards none
// waits for memory.
enum { WORK_AREA_BYTES = 128 << 20, WORK_AREAS_MAX = 256 }; // BUFFER_SIZE of x86-64

static Status have_room(int threads) {
    size_t bytes = (size_t)(2 * threads) * WORK_AREA_BYTES;
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return fail(STATUS_MEMORY,
                    "out of memory: the system refused %zu MB for the work areas of "
                    "decompositions on %d thread%s",
                    bytes >> 20, threads, threads == 1 ? "" : "s");
    munmap(room, bytes);
    return STATUS_OK;
}

static void take_work_areas(int count) {
    void *handle = dlopen(blas.file, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return;
    void *(*take)(int) = NULL;
    void (*give_back)(void *) = NULL;
    void *found = dlsym(handle, "blas_memory_alloc");
    memcpy(&take, &found, sizeof found);
    found = dlsym(handle, "blas_memory_free");
    memcpy(&give_back, &found, sizeof found);
    dlclose(handle);
    if (!take || !give_back) return; // another BLAS
    void *areas[WORK_AREAS_MAX];
    for (int i = 0; i < count; i++) areas[i] = take(0);
    for (int i = 0; i < count; i++) give_back(areas[i]);
}

// OpenBLAS takes the kernels of the oldest processors, four times slower, where it is older than
// the processor. It reads what is asked for instead while it is loaded, and only then.
static Status load_for_this_processor(void) {
    static const char variable[] = "OPENBLAS_CORETYPE";
    static const char *const cores[CPU_ISA_COUNT] = {
        [CPU_ISA_AVX2] = "Haswell", [CPU_ISA_AVX512] = "SkylakeX"};
    const char *core = cores[cpu_isa()];
    if (!core || getenv(variable)) return library_load(&blas);
    setenv(variable, core, 1);
    Status status = library_load(&blas);
    unsetenv(variable);
    return status;
}

static Status prepare(void) {
    int threads = cpu_thread_count();
    if (threads > WORK_AREAS_MAX) threads = WORK_AREAS_MAX;
    TRY(have_room(threads));
    TRY(load_for_this_processor());
    take_work_areas(threads);
    find_threads();
    return library_load(&lapack);
}

Status lapack_load(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static atomic_bool prepared;
    if (LIKELY(atomic_load_explicit(&prepared, memory_order_acquire))) return STATUS_OK;
    pthread_mutex_lock(&lock);
    Status status = atomic_load(&prepared) ? STATUS_OK : prepare();
    if (status == STATUS_OK) atomic_store_explicit(&prepared, true, memory_order_release);
    pthread_mutex_unlock(&lock);
    return status;
}
