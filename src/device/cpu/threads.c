// Worker threads of the CPU device: the only file that knows OpenMP.
#include <omp.h>
#include <stdatomic.h>

#include "device/cpu/cpu.h"
#include "device/settings.h"

// Enough pieces that threads of unequal speed finish together, few enough that none is too small.
enum { PIECES_MAX = 256 };

int cpu_thread_count(void) {
    static atomic_int decided;
    int threads = atomic_load_explicit(&decided, memory_order_relaxed);
    if (threads > 0) return threads;
    DeviceSettings settings;
    // A malformed value was reported when the device was opened; it cannot come as far as here.
    bool chosen = device_settings_read(&settings) == STATUS_OK && settings.threads > 0;
    threads = chosen ? settings.threads : omp_get_num_procs(); // those this process may use
    atomic_store_explicit(&decided, threads, memory_order_relaxed);
    return threads;
}

void cpu_parallel(int64_t count, int64_t grain, void (*body)(void *, int64_t, int64_t),
                  void *context) {
    if (count <= 0) return;
    if (count <= grain) {
        body(context, 0, count);
        return;
    }
    int64_t size = (count + PIECES_MAX - 1) / PIECES_MAX;
    if (size < grain) size = grain;
    int64_t pieces = (count + size - 1) / size;
    int threads = omp_in_parallel() ? 1 : cpu_thread_count();
    if (threads > pieces) threads = (int)pieces;
    if (threads == 1) {
        for (int64_t piece = 0; piece < pieces; piece++) {
            int64_t begin = piece * size, end = begin + size;
            body(context, begin, end < count ? end : count);
        }
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (int64_t piece = 0; piece < pieces; piece++) {
        int64_t begin = piece * size, end = begin + size;
        body(context, begin, end < count ? end : count);
    }
}
