// The Vulkan device as its kernels see it: addresses, features, and the dispatch of one shader. No
// Vulkan type occurs here; the files that know the library include core.h.
//
// How a KernelCall becomes work: run looks up vulkan_kernels[call->kernel], which fills in one or
// more VulkanDispatches (or copies and fills) and hands them over in program order. Each is
// recorded into the batch that is open; nothing waits. Barriers are put where a buffer named in
// `writes` or `reads` makes them necessary, so every buffer that a shader touches must be named,
// once per role.
//
// A shader reads and writes memory through 64-bit addresses (GL_EXT_buffer_reference), there are no
// descriptors: any dtype, any offset that is a multiple of the element, no limit on the range. Its
// parameters are push constants (at most VULKAN_PUSH_BYTES), and what does not fit is `arguments`:
// copied to memory that the shader can read, its address pushed before everything else. All of them
// and the constants are structs of shaders/host/, which C and shaders read.
#ifndef DEVICE_VULKAN_VULKAN_H
#define DEVICE_VULKAN_VULKAN_H

#include "device/kernel.h"
#include "device/vulkan/constants.h"

enum {
    VULKAN_PUSH_BYTES = 128, // with the address of the arguments, where there are any
    VULKAN_ARGUMENT_BYTES_MAX = 4096,
    VULKAN_READS_MAX = 12,
    VULKAN_WRITES_MAX = 4,
};

// Memory on the device; Buffer.handle points to one.
typedef struct VulkanMemory VulkanMemory;

// What devices may lack. A shader whose row needs one of them is refused in words without it. What
// every device must have to be opened at all: Vulkan 1.2, buffer device addresses, timeline
// semaphores, scalar block layout, 64-bit, 16-bit and 8-bit integers, 16-bit and 8-bit storage,
// arithmetic, shuffles and ballots in subgroups of compute shaders.
enum {
    VULKAN_NEEDS_NOTHING = 0,
    VULKAN_NEEDS_FLOAT64 = 1,
    VULKAN_NEEDS_FLOAT16 = 2,        // arithmetic; storage of float16 is always there
    VULKAN_NEEDS_SUBGROUP = 4,       // arithmetic, shuffles, votes and ballots in subgroups
    VULKAN_NEEDS_DOT_PRODUCT = 8,    // integer dot products
    VULKAN_NEEDS_MATRIX = 16,        // VK_KHR_cooperative_matrix, float16 to float32, in subgroups
    VULKAN_NEEDS_MATRIX_BFLOAT = 32, // the same of bfloat16
    VULKAN_NEEDS_SUBGROUP_32 = 64,   // subgroups of exactly 32
    VULKAN_NEEDS_IMPORT =
        128, // VK_NVX_binary_import; whether it takes a program, vulkan_imports says
    VULKAN_NEEDS_LONG_ATOMICS = 256, // atomic sums of int64 in memory
};

typedef struct VulkanFeatures {
    uint32_t has; // VULKAN_NEEDS_* that are met
    uint32_t subgroup_size;
    uint32_t group_threads_max; // invocations in a workgroup, at least 128
    uint32_t shared_bytes_max;  // at least 16384
    uint32_t groups_max[3];     // per dispatch; at least 65535 each
    uint32_t multiprocessors;   // 0: unknown
    bool rounds_halves;         // float32 to float16 as the CPU does, when a module asks for it
} VulkanFeatures;

// One row of shaders/kernels.def is one SPIR-V module: a file of shaders/, compiled with defines.
//     SHADER(name, "FILE.comp", "-DTYPE=float -DWIDE", VULKAN_NEEDS_...)
// Rows of files in PTX are programs that devices with VULKAN_NEEDS_IMPORT may take: what is pushed
// are their parameters, and constants are put into their text.
typedef enum VulkanShader {
#define SHADER(name, file, defines, needs) SHADER_##name,
#include "shaders/kernels.def"
#undef SHADER
    VULKAN_SHADER_COUNT
} VulkanShader;

// `groups` may exceed what a device takes in x only if the shader computes its group's number as
// gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x: see vulkan_spread_groups. A dispatch of
// no groups is nothing. A dispatch whose cost is too high for one submission is cut along z, or y.
typedef struct VulkanDispatch {
    VulkanShader shader;
    int n_constants; // of the shader's struct; a pipeline is made per combination
    VulkanConstants constants;
    uint32_t groups[3];
    uint32_t group_threads; // of imported programs; shaders say it themselves
    const void *arguments;  // copied; NULL for none
    size_t arguments_bytes;
    const void *push; // pushed after the address of the arguments
    size_t push_bytes;
    int n_reads, n_writes;
    VulkanMemory *reads[VULKAN_READS_MAX], *writes[VULKAN_WRITES_MAX];
    uint64_t cost; // multiplications or element accesses, roughly; what divides work into batches
    // How many numbers it makes, without gaps, when it is to be held until the next one is known,
    // which may be made with it (vulkan_join); 0: it is recorded at once.
    uint64_t held_results;
} VulkanDispatch;

// STATUS_DEVICE when the device lacks what the shader needs, the pipeline cannot be made, or the
// device is lost.
Status vulkan_dispatch(Device *device, const VulkanDispatch *dispatch) MUST_USE;
// Whether the device takes this imported program; one that does not take one is not asked again.
bool vulkan_imports(Device *device, const VulkanDispatch *dispatch);
// A dispatch that is held: not recorded yet, while nothing else is. `push` is all that is pushed,
// with the address of the arguments.
typedef struct VulkanHeld {
    VulkanDispatch dispatch;
    char push[VULKAN_PUSH_BYTES];
    uint32_t push_bytes;
} VulkanHeld;
// Decides how many of the `count` that are held, oldest first, the last ones, `out` stands for: one
// that does their work and the caller's. It begins as a copy of the first of them, whose number is
// `count - result`. 0: none. Pure.
typedef int (*VulkanJoiner)(const VulkanHeld *held, int count, const void *context,
                            VulkanHeld *out);
// True where that was one: it is recorded in their place, or has failed.
bool vulkan_join(Device *device, VulkanJoiner joiner, const void *context, Status *status);
// Lays `count` groups out over x and y within the device's limits.
void vulkan_spread_groups(const Device *device, uint64_t count, uint32_t groups[3]);

// Bytes from one buffer to another, or within one where the ranges do not overlap.
typedef struct VulkanPlace {
    Buffer *buffer;
    size_t offset;
} VulkanPlace;
Status vulkan_copy(Device *device, VulkanPlace source, VulkanPlace target, size_t bytes) MUST_USE;
// Repeats a 32-bit word; offset and bytes are multiples of 4.
Status vulkan_fill(Device *device, Buffer *buffer, size_t offset, size_t bytes,
                   uint32_t word) MUST_USE;

const VulkanFeatures *vulkan_features(const Device *device);
// The address on the device of a view's first element.
uint64_t vulkan_address(const TensorView *view);

// A kernel that needs memory of its own takes a buffer (buffer_new) and releases it when its
// dispatches are handed over: the bytes come back in order.
typedef Status (*VulkanKernel)(Device *device, const KernelCall *call);
// In kernels.c: what each row of device/kernels.def does; NULL where there is nothing yet.
extern const VulkanKernel vulkan_kernels[KERNEL_COUNT];
// The FUSED rows of device/kernels.def that this device has.
#define VULKAN_FUSED(X) X(CONV2D_IMAGE) X(CONV2D_WINDOW) X(POOL2D_IMAGE)

#endif
