// The CPU as a device: memory is host memory, kernels run at once in the calling thread, and so
// there is nothing to submit or to wait for.
#include "device/cpu/cpu.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/runtime.h"
#include "device/cpu/available.h"
#include "device/cpu/repacked.h"
#include "device/foretell.h"
#include "device/settings.h"
#include "device/work.h"

enum {
    CPU_ALIGNMENT = 64,
    HUGE_PAGE_BYTES = 2 << 20,
};

static const char *const isa_names[CPU_ISA_COUNT] = {"base", "avx2", "avx512"};

static CpuIsa widest_isa(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                __builtin_cpu_supports("bmi2");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    // Every processor with AVX2 and FMA converts half floats (F16C) as well.
    return avx512 ? CPU_ISA_AVX512 : (avx2 ? CPU_ISA_AVX2 : CPU_ISA_BASE);
#else
    return CPU_ISA_BASE;
#endif
}

// The set that TL_ISA asks for, the widest when it is unset, CPU_ISA_COUNT when it names none.
static CpuIsa requested_isa(void) {
    const char *text = getenv("TL_ISA");
    if (!text) return widest_isa();
    for (int isa = 0; isa < CPU_ISA_COUNT; isa++)
        if (strcmp(text, isa_names[isa]) == 0) return (CpuIsa)isa;
    return CPU_ISA_COUNT;
}

Status cpu_isa_check(void) {
    CpuIsa isa = requested_isa();
    if (isa == CPU_ISA_COUNT) {
        fail(STATUS_SETTING, "TL_ISA is \"%s\", which is not an instruction set", getenv("TL_ISA"));
        return fail_help("instruction sets are base, avx2 and avx512");
    }
    if (isa > widest_isa()) {
        fail(STATUS_SETTING, "TL_ISA is \"%s\", which this machine does not have", isa_names[isa]);
        return fail_help("the widest that it has is %s; unset TL_ISA to use it",
                         isa_names[widest_isa()]);
    }
    return STATUS_OK;
}

CpuIsa cpu_isa(void) {
    static atomic_int decided = -1;
    int isa = atomic_load_explicit(&decided, memory_order_relaxed);
    if (LIKELY(isa >= 0)) return (CpuIsa)isa;
    CpuIsa widest = widest_isa(), requested = requested_isa();
    isa = requested < widest ? (int)requested : (int)widest;
    atomic_store_explicit(&decided, isa, memory_order_relaxed);
    return (CpuIsa)isa;
}

bool cpu_is_fast(void) {
    static atomic_int decided = -1;
    int fast = atomic_load_explicit(&decided, memory_order_relaxed);
    if (LIKELY(fast >= 0)) return fast;
    DeviceSettings settings; // a malformed value was reported when the device was opened
    fast = device_settings_read(&settings) == STATUS_OK && settings.fast;
    atomic_store_explicit(&decided, fast, memory_order_relaxed);
    return fast;
}

// Large memory is mapped on a huge-page boundary: fewer page faults when it is first touched, and
// it goes back to the system for certain when it is freed.
static void *map_large(size_t bytes) {
    if (bytes > SIZE_MAX - HUGE_PAGE_BYTES) return NULL;
    size_t mapped = bytes + HUGE_PAGE_BYTES;
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    size_t before = (size_t)(-(uintptr_t)start & (HUGE_PAGE_BYTES - 1));
    char *memory = start + before;
    if (before > 0) munmap(start, before);
    munmap(memory + bytes, mapped - before - bytes);
    madvise(memory, bytes, MADV_HUGEPAGE); // only advice: a refusal changes nothing
    return memory;
}

// Whether the system has huge pages for who asks, or for all.
static bool has_huge_pages(void) {
    static atomic_int decided = -1;
    int has = atomic_load_explicit(&decided, memory_order_relaxed);
    if (has >= 0) return has;
    char line[64] = "";
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (file && !fgets(line, sizeof line, file)) line[0] = '\0';
    if (file) fclose(file);
    has = strstr(line, "[always]") || strstr(line, "[madvise]");
    atomic_store_explicit(&decided, has, memory_order_relaxed);
    return has;
}

// Only of large memory are there huge pages, where they lie in it whole.
size_t cpu_resident_bytes(size_t bytes, size_t capacity) {
    size_t whole = capacity & ~(size_t)(HUGE_PAGE_BYTES - 1);
    if (capacity < CPU_MAPPED_BYTES_MIN || bytes > whole || !has_huge_pages()) return bytes;
    return (bytes + HUGE_PAGE_BYTES - 1) & ~(size_t)(HUGE_PAGE_BYTES - 1);
}

// `bytes` is a multiple of the page size when it is large: the pool asks for whole classes.
static Status memory_allocate_cpu(Device *device, size_t bytes, void **handle) {
    void *memory =
        bytes >= CPU_MAPPED_BYTES_MIN ? map_large(bytes) : aligned_alloc(CPU_ALIGNMENT, bytes);
    if (!memory)
        return fail(STATUS_MEMORY, "%s refused %.2f MB", device->name, (double)bytes / 0x1p20);
    *handle = memory;
    return STATUS_OK;
}

static void memory_free_cpu(Device *device, void *handle, size_t bytes) {
    (void)device;
    if (bytes >= CPU_MAPPED_BYTES_MIN)
        munmap(handle, bytes);
    else
        free(handle);
}

static Status upload_cpu(Device *device, Buffer *buffer, size_t offset, const void *source,
                         size_t bytes) {
    (void)device;
    memcpy((char *)buffer->handle + offset, source, bytes);
    return STATUS_OK;
}

static Status download_cpu(Device *device, Buffer *buffer, size_t offset, void *target,
                           size_t bytes) {
    (void)device;
    memcpy(target, (const char *)buffer->handle + offset, bytes);
    return STATUS_OK;
}

typedef Status (*CpuKernel)(const KernelCall *call);
static const CpuKernel kernel_table[KERNEL_COUNT] = {
#define KERNEL(code, name, kept, follow, doc) cpu_kernel_##code,
#include "device/kernels.def"
#undef KERNEL
};

bool cpu_interrupted(void) {
    if (LIKELY(!device_is_interrupted())) return false;
    atomic_store_explicit(&runtime_current->work->left, true, memory_order_relaxed);
    return true;
}

static Status run_cpu(Device *device, const KernelCall *call) {
    ASSERT((unsigned)call->kernel < KERNEL_COUNT);
    (void)device;
    atomic_bool *left = &runtime_current->work->left;
    atomic_store_explicit(left, false, memory_order_relaxed);
    Status status = kernel_table[call->kernel](call);
    if (LIKELY(!atomic_load_explicit(left, memory_order_relaxed))) return status;
    return fail(STATUS_INTERRUPT, "interrupted");
}

static Status nothing_pending(Device *device) {
    (void)device;
    return STATUS_OK;
}

static Status host_import_cpu(Device *device, const void *memory, size_t bytes, void **handle) {
    (void)device;
    (void)bytes;
    // Kernels never write to imported memory: tensors over it are inputs only.
    *handle = (void *)(uintptr_t)memory;
    return STATUS_OK;
}

static void host_release_cpu(Device *device, void *handle) {
    (void)device;
    (void)handle;
}

static void destroy_cpu(Device *device) {
    (void)device;
}

const DeviceBackend cpu_backend = {.name = "cpu",
                                   .speed = {8e9, 5e10, 1e9},
                                   .memory_allocate = memory_allocate_cpu,
                                   .memory_free = memory_free_cpu,
                                   .available = cpu_available,
                                   .upload = upload_cpu,
                                   .download = download_cpu,
                                   .run = run_cpu,
                                   .reduce_part = cpu_reduce_part,
                                   .submit = nothing_pending,
                                   .wait = nothing_pending,
                                   .host_import = host_import_cpu,
                                   .host_release = host_release_cpu,
                                   .weight_loaded = cpu_weight_loaded,
                                   .destroy = destroy_cpu,
                                   .fused = 0
#define KERNEL(code, name, kept, follow, doc)
#define FUSED(code, name, kept, follow, doc) | 1ull << KERNEL_##code
#include "device/kernels.def"
#undef KERNEL
};

// Kernels that take memory of their own; the others take none.
static Status plan_cpu(Device *device, const KernelCall *call) {
    (void)device;
    bool takes = call->kernel == KERNEL_SORT;
    DType dtype = call->outputs[0]->dtype;
    if (call->kernel == KERNEL_SCATTER)
        takes = call->options.op == 1 && (dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16);
    if (call->kernel == KERNEL_MATMUL) takes = dtype_is_quant(call->inputs[1].view->dtype);
    return takes ? kernel_table[call->kernel](call) : STATUS_OK;
}

const ForetellPlanner cpu_planner = {.plan = plan_cpu};

// The processor's name from /proc/cpuinfo; "CPU" where it is not told.
static void processor_name(char *out, size_t size) {
    snprintf(out, size, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon) continue;
        colon++;
        colon += strspn(colon, " \t");
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(out, size, "%s", colon);
        break;
    }
    fclose(file);
}

// What this process may use: the machine's memory, or less where its control group says so.
static size_t memory_limit(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
    size_t limit = pages > 0 && page_bytes > 0 ? (size_t)pages * (size_t)page_bytes : 0;
    uint64_t group = cpu_number_in("/sys/fs/cgroup/memory.max", "");
    return group != UINT64_MAX && (limit == 0 || group < limit) ? (size_t)group : limit;
}

void cpu_open(Device *device) {
    static const char *const isa_words[CPU_ISA_COUNT] = {"baseline vectors", "AVX2", "AVX-512"};
    device->backend = &cpu_backend;
    device->alignment = CPU_ALIGNMENT;
    device->memory_limit = memory_limit();
    snprintf(device->name, sizeof device->name, "cpu");
    char processor[80];
    processor_name(processor, sizeof processor);
    int threads = cpu_thread_count();
    snprintf(device->description, sizeof device->description, "%s, %d thread%s, %s", processor,
             threads, threads == 1 ? "" : "s", isa_words[cpu_isa()]);
}
