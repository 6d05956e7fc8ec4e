// ARANGE and RANDOM: numbers that come from no operand.
#include <math.h>

#include "device/cpu/random.h"
#include "device/vulkan/bounds.h"
#include "device/vulkan/kernels/kernels.h"

enum { GROUP = 256, ARANGE_ITEMS = 2 };

// Numbers that a thread makes side by side.
static uint64_t width_of(DType dtype) {
    return dtype_size(dtype) == 8 ? 2 : 4;
}

static Status refuse_quantised(const KernelCall *call) {
    return fail(STATUS_DTYPE, "%s cannot write %s", call->op_name,
                dtype_name(call->outputs[0]->dtype));
}

// Integers that fit the output's type lie between these.
static void note_range(const TensorView *out, int64_t least, int64_t most) {
    bool fits = least >= INT32_MIN && most <= INT32_MAX;
    if (out->dtype == DTYPE_INT64 || (out->dtype == DTYPE_INT32 && fits))
        vulkan_bound(out, least, most);
}

static void note_steps(const TensorView *out, int64_t start, int64_t step) {
    int64_t way, end;
    if (__builtin_mul_overflow(view_count(out) - 1, step, &way) ||
        __builtin_add_overflow(start, way, &end))
        return;
    note_range(out, step < 0 ? end : start, step < 0 ? start : end);
}

Status vulkan_kernel_ARANGE(Device *device, const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    if (dtype_is_quant(out->dtype)) return refuse_quantised(call);
    bool floats = dtype_is_float(out->dtype);
    uint64_t count = (uint64_t)view_count(out);
    if (count == 0) return STATUS_OK;
    ArangePush push = {.out_address = vulkan_address(out),
                       .count = count,
                       .start = (uint64_t)call->options.integers[0],
                       .step = (uint64_t)call->options.integers[1]};
    if (floats) {
        push.start = vulkan_real_bits(call->options.scalars[0], REAL_F64);
        push.step = vulkan_real_bits(call->options.scalars[1], REAL_F64);
    }
    VulkanDispatch dispatch = {.shader = floats ? SHADER_ARANGE_F64 : SHADER_ARANGE_I64,
                               VULKAN_CONSTANTS(arange, .OUT_DTYPE = out->dtype),
                               VULKAN_PUSHED(push),
                               .cost = count};
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, count, GROUP * ARANGE_ITEMS * width_of(out->dtype));
    TRY(vulkan_dispatch(device, &dispatch));
    if (!floats) note_steps(out, call->options.integers[0], call->options.integers[1]);
    return STATUS_OK;
}

// What a distribution tells the shader, and the type that it is computed in: as on the CPU.
typedef VulkanReal (*Describe)(const KernelOptions *options, DType dtype, RandomPush *push);

// The numbers of a distribution in the compute type, as it is told them.
static void set_numbers(RandomPush *push, VulkanReal real, double a, double b) {
    push->a = vulkan_real_bits(a, real);
    push->b = vulkan_real_bits(b, real);
}

static VulkanReal describe_uniform(const KernelOptions *options, DType dtype, RandomPush *push) {
    double low = options->scalars[0], bound = options->scalars[1], highest = (double)INFINITY;
    if (dtype_is_float(dtype)) highest = fmax(low, random_largest_below(dtype, bound));
    set_numbers(push, REAL_F64, low, bound - low);
    push->highest = vulkan_real_bits(highest, REAL_F64);
    return REAL_F64;
}

static VulkanReal describe_normal(const KernelOptions *options, DType dtype, RandomPush *push) {
    VulkanReal real = dtype == DTYPE_FLOAT64 ? REAL_F64 : REAL_F32;
    set_numbers(push, real, options->scalars[0], options->scalars[1]);
    return real;
}

static VulkanReal describe_integers(const KernelOptions *options, DType dtype, RandomPush *push) {
    (void)dtype;
    push->a = (uint64_t)options->integers[2];
    push->b = (uint64_t)options->integers[3] - (uint64_t)options->integers[2];
    return REAL_I64;
}

// bits * 2^-53 < p exactly where bits < p * 2^53, rounded up.
static VulkanReal describe_bernoulli(const KernelOptions *options, DType dtype, RandomPush *push) {
    push->threshold = (uint64_t)ceil(fmin(fmax(options->scalars[0], 0), 1) * 0x1p53);
    return dtype == DTYPE_FLOAT64 ? REAL_F64 : REAL_F32;
}

static const Describe distributions[] = {describe_uniform, describe_normal, describe_integers,
                                         describe_bernoulli};

Status vulkan_kernel_RANDOM(Device *device, const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    if (dtype_is_quant(out->dtype)) return refuse_quantised(call);
    uint64_t count = (uint64_t)view_count(out);
    if (count == 0) return STATUS_OK;
    RandomPush push = {.out_address = vulkan_address(out),
                       .count = count,
                       .key = (uint64_t)call->options.integers[0],
                       .counter = (uint64_t)call->options.integers[1]};
    VulkanReal real = distributions[call->options.op](&call->options, out->dtype, &push);
    VulkanDispatch dispatch = {.shader = vulkan_shader_of(SHADER_RANDOM_F32, real),
                               VULKAN_CONSTANTS(random, .OUT_DTYPE = out->dtype,
                                                .DISTRIBUTION = (uint32_t)call->options.op),
                               VULKAN_PUSHED(push),
                               .cost = count * 8};
    if (real == REAL_I64 && out->dtype == DTYPE_FLOAT64) dispatch.shader = SHADER_RANDOM_I64_F64;
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, count + (push.counter & 1), GROUP * width_of(out->dtype));
    TRY(vulkan_dispatch(device, &dispatch));
    if (distributions[call->options.op] == describe_integers)
        note_range(out, call->options.integers[2], call->options.integers[3] - 1);
    return STATUS_OK;
}
