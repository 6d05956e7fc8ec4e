// What the files that turn KernelCalls into dispatches share: names of modules per compute type,
// views cut into rows, and one way to fill in a dispatch. Knows no Vulkan type.
#ifndef VULKAN_KERNELS_KERNELS_H
#define VULKAN_KERNELS_KERNELS_H

#include "device/vulkan/vulkan.h"
#include "device/walk.h"

typedef enum VulkanReal { REAL_F32, REAL_F64, REAL_I64 } VulkanReal;
// What numbers of a dtype are computed in: int64 for whole ones, float64 for itself, else float32.
VulkanReal vulkan_real_of(DType dtype);

// How much faster imported programs on matrix units are than what costs are counted for.
enum { VULKAN_IMPORT_SPEED = 16 };

// STATUS_DTYPE: op has no kernel on this device for the dtypes of its operands.
Status vulkan_no_kernel(Device *device, const KernelCall *call);
// The bits of a number of the compute type that stand for a scalar operand.
uint64_t vulkan_scalar_bits(const Scalar *scalar, VulkanReal real);

// Adds a view's buffer to what a dispatch reads or writes.
void vulkan_reads(VulkanDispatch *dispatch, const TensorView *view);
void vulkan_writes(VulkanDispatch *dispatch, const TensorView *view);
// Sets the groups for `count` items of which one group makes `per_group`.
void vulkan_groups_for(Device *device, VulkanDispatch *dispatch, uint64_t count,
                       uint64_t per_group);

// A contiguous buffer of a kernel's own, as a view of rank 1; a SCOPED_SCRATCH releases it.
void vulkan_scratch_release(TensorView *scratch);
#define SCOPED_SCRATCH(name) TensorView name __attribute__((cleanup(vulkan_scratch_release))) = {0}
Status vulkan_scratch(Device *device, DType dtype, int64_t count, TensorView *out) MUST_USE;
// Dispatches an imported program that makes maps of its operands in `bytes` of scratch, whose
// address `at` (of what is pushed) gets.
Status vulkan_dispatch_mapped(Device *device, VulkanDispatch *dispatch, uint64_t bytes,
                              uint64_t *at) MUST_USE;
// One dtype to another, any strides; the COPY kernel.
Status vulkan_copy_view(Device *device, const TensorView *out, const TensorView *in,
                        const char *op_name) MUST_USE;

// What DeviceBackend says of it.
int64_t vulkan_reduce_part(Device *device, const KernelCall *call);
// Sums, in their order, the parts of each number of `out` that lie as it does behind each other.
Status vulkan_add_parts(Device *device, const KernelCall *call, const TensorView *parts,
                        const TensorView *out) MUST_USE;

// All numbers of a call's first output become 0; the FILL kernel.
Status vulkan_fill_zeros(Device *device, const KernelCall *call) MUST_USE;

// ATTENTION of many rows, where a shader of its own fits; false where none does.
bool vulkan_attend_many(Device *device, const KernelCall *call, Status *status);
// ATTENTION with `columns` numbers of each value at a time.
Status vulkan_attend_slices(Device *device, const KernelCall *call, int64_t columns) MUST_USE;

enum { VULKAN_SORT_ROOMS = 2 };
// Keys to be sorted, row after row, and their places: the numbers of elements in their rows.
typedef struct VulkanSort {
    Device *device;
    const char *op_name;
    uint32_t rows, count;    // count: keys of a row; becomes the places of a row
    uint32_t wanted;         // so many of each row are wanted: places may be more
    uint32_t end_bit;        // so many of the last bits of keys decide
    bool wide, keep_keys;    // keys of 64 bits, else of 32; they are wanted sorted
    TensorView keys, places; // scratch: keys are given, places are made
    // Instead of keys: numbers that lie contiguous, of which the sort writes values and places of
    // int64 (NULL: not wanted) itself if it is `finished`.
    TensorView numbers;
    const TensorView *outputs[2];
    DType dtype;
    bool descending, finished;
    uint32_t numbers_count; // of a row; set by the sort
    // Bytes (dims[0] of them) that may be written over until the places are there; no buffer: none.
    TensorView rooms[VULKAN_SORT_ROOMS];
} VulkanSort;
// Scratch that need not outlast the sorting, in one of the rooms if it fits.
Status vulkan_sort_room(VulkanSort *sort, DType dtype, uint64_t count, TensorView *out) MUST_USE;
// Stable: places of equal keys rise. rows * count is less than 2^32.
Status vulkan_sort(VulkanSort *sort) MUST_USE;
void vulkan_sort_end(VulkanSort *sort); // lets keys and places go

// SCATTER along a dim: views without it, whose elements are "others", and what is along it.
typedef struct VulkanScatter {
    Device *device;
    const char *op_name;
    const TensorView *out, *source, *index; // dtypes as the shaders move them
    VulkanReal real;
    const Walk *walk;           // of the three views
    const WalkStrides *strides; // the same for shaders
    const ScatterPush *push;    // addresses, strides along the dim, places, counts
    bool slices;                // others share one list of indexes
} VulkanScatter;
// Sums in any order, by atomic additions of integers; not for all dtypes, shapes and devices.
bool vulkan_can_add(const VulkanScatter *scatter);
Status vulkan_scatter_add(const VulkanScatter *scatter) MUST_USE;

// The rows by whose number a kernel decides how many threads share one.
static inline uint64_t vulkan_all_rows(const KernelCall *call, uint64_t rows) {
    return call->all_rows > 0 ? (uint64_t)call->all_rows : rows;
}

// A copy whose views have their neighbours along different dims, and nothing to convert.
bool vulkan_can_transpose(const TensorView *out, const TensorView *in);
Status vulkan_transpose(Device *device, const TensorView *out, const TensorView *in) MUST_USE;

#define KERNEL(code, name, kept, follow, doc)                                                      \
    Status vulkan_kernel_##code(Device *device, const KernelCall *call);
#define FUSED(code, name, kept, follow, doc)
#include "device/kernels.def"
#undef KERNEL
#define X(code) Status vulkan_kernel_##code(Device *device, const KernelCall *call);
VULKAN_FUSED(X)
#undef X

// A copy of what ROPE has just made, bytes that lie as they do there, is made with it.
bool vulkan_join_copy(Device *device, const TensorView *out, const TensorView *in, Status *status);
// A MAP that adds to a product, or that takes two products of the same row, is made with them.
bool vulkan_join_map(Device *device, const KernelCall *call, Status *status);

// Views cut into rows: see shaders/host/rows.h.
typedef struct VulkanRows {
    RowStrides arguments;
    Walk kept, row;
    uint64_t results, count; // rows, and elements of each
    uint32_t ranks;          // the shader's first constant
} VulkanRows;

// views[0] may lack the row's dims (a reduction): pass NULL in row_views[0] then. `kept` is the
// number of leading dims. `ordered`: elements of a row keep their order.
typedef struct RowViews {
    const TensorView *kept[2], *row[ROW_VIEWS];
    int kept_rank, row_first, row_rank;
    bool ordered;
} RowViews;
void vulkan_rows_prepare(const RowViews *views, VulkanRows *rows);
// The view's elements of a row are neighbours, at multiples of four.
static inline bool vulkan_rows_vector(const VulkanRows *rows, int view) {
    return (rows->ranks >> (8 + view) & 1) != 0;
}
// Neighbouring threads read neighbouring numbers when each has a row of its own.
bool vulkan_rows_in_columns(const VulkanRows *rows);
// How many threads share a row of so many items: a power of two.
uint32_t vulkan_row_lanes(uint64_t items, uint32_t most);
// The module of a compute type, where modules of one file follow each other: F32, F64, I64.
static inline VulkanShader vulkan_shader_of(VulkanShader first, VulkanReal real) {
    return (VulkanShader)((int)first + (int)real);
}
// A float64 or float32 number as a shader's `real`.
uint64_t vulkan_real_bits(double value, VulkanReal real);
bool vulkan_has_float64(const Device *device);
// Fails in words for more rows, or longer ones, than the shaders count.
Status vulkan_rows_check(Device *device, const KernelCall *call, const VulkanRows *rows) MUST_USE;

#endif
