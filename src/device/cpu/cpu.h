// The CPU device's inside: kernels, threads, and the choice of instruction set.
#ifndef DEVICE_CPU_CPU_H
#define DEVICE_CPU_CPU_H

#include "device/kernel.h"

enum { CPU_MAPPED_BYTES_MIN = 4 << 20 }; // from here on memory comes straight from the system

extern const DeviceBackend cpu_backend;
// For foretold devices.
extern const struct ForetellPlanner cpu_planner;
// What is resident of memory for so many bytes, once all of them were written.
size_t cpu_resident_bytes(size_t bytes, size_t capacity);
// Fills in everything of a new device but its pool and settings.
void cpu_open(Device *device);

// One function per row of kernels.def. Views are host memory here: cpu_pointer.
int64_t cpu_reduce_part(Device *device, const KernelCall *call);
#define KERNEL(code, name, kept, follow, doc) Status cpu_kernel_##code(const KernelCall *call);
#include "device/kernels.def"
#undef KERNEL

// Address of the first element of a view.
static inline void *cpu_pointer(const TensorView *view) {
    return (char *)view->buffer->handle + view->offset;
}
// Behind so many elements.
static inline char *cpu_at(const TensorView *view, int64_t elements) {
    return (char *)cpu_pointer(view) + elements * (int64_t)dtype_size(view->dtype);
}

// A kernel that takes memory of its own then leaves the rest: what it writes is only accounted for.
static inline bool cpu_is_foretold(const TensorView *out) {
    const Device *device = out->buffer->device; // NULL in tests of kernels
    return device && device->foretold;
}

typedef enum CpuIsa { CPU_ISA_BASE, CPU_ISA_AVX2, CPU_ISA_AVX512, CPU_ISA_COUNT } CpuIsa;
// The widest set that this machine has and TL_ISA (base, avx2, avx512) allows. Decided once.
CpuIsa cpu_isa(void);
// STATUS_SETTING when TL_ISA names no instruction set, or one that this machine has not.
Status cpu_isa_check(void) MUST_USE;

// Runs body(context, begin, end) over [0, count) in pieces of at least `grain`, on the worker
// threads when that pays. Pieces depend on count and grain only, never on the number of threads.
void cpu_parallel(int64_t count, int64_t grain,
                  void (*body)(void *context, int64_t begin, int64_t end), void *context);
// Asked between the parts of long work: true means to leave the rest, because the user interrupted;
// the kernel then fails, whatever it returns, and what it made so far is thrown away. It must not
// be believed either: nothing that parts left out should have counted or placed may be used.
bool cpu_interrupted(void);
int cpu_thread_count(void);   // TL_THREADS, else the cores this process may use
void cpu_start_threads(void); // those of cpu_parallel, which it else starts when it needs them
bool cpu_is_fast(void);       // TL_FAST

// Files in simd/ are compiled once per instruction set; ISA(name) is that set's own name.
#define CPU_ISA_JOIN_(name, isa) name##_##isa
#define CPU_ISA_JOIN(name, isa) CPU_ISA_JOIN_(name, isa)
#define ISA(name) CPU_ISA_JOIN(name, TL_ISA)

// Outside simd/: CPU_DECLARE(void, f, (int n)); declares every set's f, CPU_CHOOSE(f)(3) calls the
// one to use.
#if defined(__x86_64__)
#define CPU_DECLARE(result, name, parameters)                                                      \
    result name##_base parameters;                                                                 \
    result name##_avx2 parameters;                                                                 \
    result name##_avx512 parameters
#define CPU_CHOOSE(name)                                                                           \
    (cpu_isa() == CPU_ISA_AVX512 ? name##_avx512                                                   \
                                 : (cpu_isa() == CPU_ISA_AVX2 ? name##_avx2 : name##_base))
#else
#define CPU_DECLARE(result, name, parameters) result name##_base parameters
#define CPU_CHOOSE(name) name##_base
#endif

#endif
