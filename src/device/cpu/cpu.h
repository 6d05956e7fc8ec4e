// The CPU device's inside: kernels, threads, and the choice of instruction set.
#ifndef DEVICE_CPU_CPU_H
#define DEVICE_CPU_CPU_H

#include "device/kernel.h"

// One function per row of kernels.def. Views are host memory here: cpu_pointer.
#define KERNEL(code, name, doc) Status cpu_kernel_##code(const KernelCall *call);
#include "device/kernels.def"
#undef KERNEL

// Address of the first element of a view.
static inline void *cpu_pointer(const TensorView *view) {
    return (char *)view->buffer->handle + view->offset;
}

typedef enum CpuIsa { CPU_ISA_BASE, CPU_ISA_AVX2, CPU_ISA_AVX512, CPU_ISA_COUNT } CpuIsa;
// The widest set that this machine has and TL_ISA (base, avx2, avx512) allows. Decided once.
CpuIsa cpu_isa(void);

// Runs body(context, begin, end) over [0, count) in pieces of at least `grain`, on the worker threads
// when that pays. Pieces depend on count and grain only, never on the number of threads.
void cpu_parallel(int64_t count, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end),
                  void *context);
int cpu_thread_count(void); // TL_THREADS, else the cores this process may use

// Files in simd/ are compiled once per instruction set; ISA(name) is that set's own name.
#define CPU_ISA_JOIN_(name, isa) name##_##isa
#define CPU_ISA_JOIN(name, isa) CPU_ISA_JOIN_(name, isa)
#define ISA(name) CPU_ISA_JOIN(name, TL_ISA)

#endif
