// CONV2D and its gradients. That of the image is a convolution of what came from above with the
// weights the other way round. Both go through packed weights and panels, or number by number where
// a group makes few channels.
#include <string.h>

#include "device/vulkan/kernels/kernels.h"

enum {
    GROUP = 128,
    OUTS_FEW = 4, // channels of a group that are not worth a tile
    PIXELS = 128, // of a tile of convolution.comp
    TILE = 64,
    DEPTH = 8, // channels of a panel
    MATRIX_DEPTH = 32,
    SIZE_MAX_OF_AXIS = 1 << 30,
};

typedef struct Convolution {
    const KernelCall *call;
    const TensorView *image, *weight, *bias, *out;
    ConvolutionShape shape;
    VulkanReal real;
    int64_t groups;
    uint32_t depth; // channels of a panel
    DType packed;   // of the weights
} Convolution;

// Dtypes, and what does not depend on the direction.
static Status begin(Device *device, Convolution *c) {
    const TensorView *views[] = {c->image, c->weight, c->bias, c->out};
    const int64_t *integers = c->call->options.integers;
    c->groups = integers[6];
    c->real = REAL_F32;
    for (int i = 0; i < 4; i++) {
        if (!views[i]) continue;
        if (!dtype_is_float(views[i]->dtype)) return vulkan_no_kernel(device, c->call);
        if (views[i]->dtype == DTYPE_FLOAT64) c->real = REAL_F64;
    }
    for (int d = 0; d < 4; d++) {
        c->shape.image[d] = c->image->strides[d];
        c->shape.to[d] = c->out->strides[d];
    }
    for (int d = 0; d < 2; d++) {
        int64_t size = c->image->dims[2 + d], to = c->out->dims[2 + d];
        int64_t around = 2 * integers[2 + d];
        if (size + around > SIZE_MAX_OF_AXIS || to + around > SIZE_MAX_OF_AXIS)
            return fail(STATUS_DEVICE, "%s: an image of more than 2^30 rows or columns on %s",
                        c->call->op_name, device->name);
        c->shape.image_dims[d] = (uint32_t)size;
        c->shape.out_dims[d] = (uint32_t)to;
        c->shape.window[d] = (uint32_t)c->weight->dims[2 + d];
        c->shape.weight_window[d] = c->weight->strides[2 + d];
    }
    if (c->bias) c->shape.bias = c->bias->strides[0];
    c->shape.weight_group = c->weight->dims[0] / c->groups * c->weight->strides[0];
    return STATUS_OK;
}

static uint32_t dtypes_of(const Convolution *c, DType weight) {
    return (uint32_t)c->image->dtype | (uint32_t)c->out->dtype << 4 |
           (c->bias ? (uint32_t)c->bias->dtype : NO_DTYPE) << 8 | (uint32_t)weight << 12;
}

static VulkanDispatch dispatch_of(const Convolution *c, VulkanShader shader,
                                  const ConvolutionPush *push) {
    VulkanDispatch dispatch = {.shader = vulkan_shader_of(shader, c->real),
                               VULKAN_ARGUMENTS(c->shape),
                               VULKAN_PUSHED(*push)};
    return dispatch;
}

static Status convolve_few(Device *device, Convolution *c) {
    c->shape.out_tiles = (uint32_t)c->out->dims[1];
    ConvolutionPush push = {.image_address = vulkan_address(c->image),
                            .weight_address = vulkan_address(c->weight),
                            .bias_address = c->bias ? vulkan_address(c->bias) : 0,
                            .out_address = vulkan_address(c->out),
                            .count = (uint64_t)view_count(c->out)};
    VulkanDispatch dispatch = dispatch_of(c, SHADER_CONVOLUTION_FEW_F32, &push);
    VULKAN_SET_CONSTANTS(&dispatch, convolution, .DTYPES = dtypes_of(c, c->weight->dtype));
    dispatch.cost =
        push.count * (1 + (uint64_t)c->shape.channels * c->shape.window[0] * c->shape.window[1]);
    vulkan_reads(&dispatch, c->image);
    vulkan_reads(&dispatch, c->weight);
    vulkan_reads(&dispatch, c->bias);
    vulkan_writes(&dispatch, c->out);
    vulkan_groups_for(device, &dispatch, push.count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}

static Status pack_weights(Device *device, const Convolution *c, const TensorView *packed) {
    ConvolutionPush push = {.weight_address = vulkan_address(c->weight),
                            .out_address = vulkan_address(packed),
                            .count = (uint64_t)packed->dims[0]};
    VulkanDispatch dispatch = dispatch_of(c, SHADER_CONVOLUTION_WEIGHTS_F32, &push);
    VULKAN_SET_CONSTANTS(&dispatch, convolution_weights, .DTYPES = dtypes_of(c, c->weight->dtype),
                         .DEPTH = c->depth, .TILE = TILE, .PACKED_AS = c->packed);
    dispatch.cost = push.count;
    vulkan_reads(&dispatch, c->weight);
    vulkan_writes(&dispatch, packed);
    vulkan_groups_for(device, &dispatch, push.count, GROUP);
    return vulkan_dispatch(device, &dispatch);
}

// Four neighbouring pixels of the result are neighbours in memory, at a multiple of their size.
static bool out_in_fours(const TensorView *out) {
    if (out->strides[3] != 1 || out->strides[2] != out->dims[3]) return false;
    return out->dims[2] * out->dims[3] % 4 == 0 && out->strides[0] % 4 == 0 &&
           out->strides[1] % 4 == 0 && vulkan_address(out) % (4 * dtype_size(out->dtype)) == 0;
}

static Status convolve_packed(Device *device, const Convolution *c, const TensorView *packed,
                              uint64_t terms) {
    ConvolutionPush push = {.image_address = vulkan_address(c->image),
                            .weight_address = vulkan_address(packed),
                            .bias_address = c->bias ? vulkan_address(c->bias) : 0,
                            .out_address = vulkan_address(c->out),
                            .count = c->shape.pixels};
    VulkanDispatch dispatch = dispatch_of(c, SHADER_CONVOLUTION_F32, &push);
    VULKAN_SET_CONSTANTS(&dispatch, convolution, .DTYPES = dtypes_of(c, DTYPE_FLOAT32),
                         .OUT_FOURS = out_in_fours(c->out));
    if (c->depth == MATRIX_DEPTH)
        dispatch.shader =
            c->packed == DTYPE_BFLOAT16 ? SHADER_CONVOLUTION_BFLOAT : SHADER_CONVOLUTION_HALF;
    vulkan_reads(&dispatch, c->image);
    vulkan_reads(&dispatch, packed);
    vulkan_reads(&dispatch, c->bias);
    vulkan_writes(&dispatch, c->out);
    vulkan_groups_for(device, &dispatch, push.count, PIXELS);
    dispatch.groups[2] = (uint32_t)c->groups * c->shape.out_tiles;
    dispatch.cost = push.count * dispatch.groups[2] * TILE * terms;
    return vulkan_dispatch(device, &dispatch);
}

// On matrix units where the device has them for the dtype and there are channels for a panel.
static void choose_packing(Device *device, Convolution *c) {
    DType dtype = c->image->dtype;
    uint32_t needs = VULKAN_NEEDS_SUBGROUP_32;
    needs |= dtype == DTYPE_BFLOAT16 ? VULKAN_NEEDS_MATRIX_BFLOAT : VULKAN_NEEDS_MATRIX;
    bool fits = (dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16) && c->weight->dtype == dtype &&
                c->real == REAL_F32 && c->shape.channels > DEPTH;
    bool matrices = fits && (vulkan_features(device)->has & needs) == needs;
    c->depth = matrices ? MATRIX_DEPTH : DEPTH;
    c->packed = matrices ? dtype : c->real == REAL_F64 ? DTYPE_FLOAT64 : DTYPE_FLOAT32;
}

static Status convolve(Device *device, Convolution *c) {
    ConvolutionShape *shape = &c->shape;
    uint64_t pixels = (uint64_t)(c->out->dims[0] * c->out->dims[2] * c->out->dims[3]);
    uint64_t tiles = ((uint64_t)shape->outs + TILE - 1) / TILE;
    choose_packing(device, c);
    uint64_t panels =
        ((uint64_t)shape->channels + c->depth - 1) / c->depth * shape->window[0] * shape->window[1];
    uint64_t packed_count = (uint64_t)c->groups * panels * c->depth * tiles * TILE;
    uint32_t most = vulkan_features(device)->groups_max[2];
    if (view_count(c->out) == 0) return STATUS_OK;
    if (shape->outs <= OUTS_FEW || pixels > UINT32_MAX - PIXELS || packed_count > UINT32_MAX ||
        packed_count == 0 || (uint64_t)c->groups * tiles > most)
        return convolve_few(device, c);
    shape->out_tiles = (uint32_t)tiles;
    shape->pixels = (uint32_t)pixels;
    SCOPED_SCRATCH(packed);
    TRY(vulkan_scratch(device, c->packed, (int64_t)packed_count, &packed));
    TRY(pack_weights(device, c, &packed));
    return convolve_packed(device, c, &packed, panels * c->depth);
}

static void set_steps(Convolution *c) {
    const int64_t *integers = c->call->options.integers;
    for (int d = 0; d < 2; d++) {
        c->shape.stride[d] = (int32_t)integers[d];
        c->shape.padding[d] = (int32_t)integers[2 + d];
        c->shape.dilation[d] = (int32_t)integers[4 + d];
        c->shape.apart[d] = 1;
    }
}

Status vulkan_kernel_CONV2D(Device *device, const KernelCall *call) {
    Convolution c = {.call = call,
                     .image = call->inputs[0].view,
                     .weight = call->inputs[1].view,
                     .bias = call->n_inputs > 2 ? call->inputs[2].view : NULL,
                     .out = call->outputs[0]};
    TRY(begin(device, &c));
    set_steps(&c);
    c.shape.channels = (uint32_t)c.weight->dims[1];
    c.shape.outs = (uint32_t)(c.weight->dims[0] / c.groups);
    c.shape.weight_channel = c.weight->strides[1];
    c.shape.weight_to = c.weight->strides[0];
    return convolve(device, &c);
}

// A pixel of the image is in the window of those outputs from which it is an integral number of
// strides.
Status vulkan_kernel_CONV2D_IMAGE(Device *device, const KernelCall *call) {
    const int64_t *integers = call->options.integers;
    Convolution c = {.call = call,
                     .image = call->inputs[0].view,
                     .weight = call->inputs[1].view,
                     .out = call->outputs[0]};
    TRY(begin(device, &c));
    for (int d = 0; d < 2; d++) {
        c.shape.stride[d] = 1;
        c.shape.padding[d] = -(int32_t)integers[2 + d];
        c.shape.dilation[d] = -(int32_t)integers[4 + d];
        c.shape.apart[d] = (int32_t)integers[d];
    }
    c.shape.channels = (uint32_t)(c.weight->dims[0] / c.groups);
    c.shape.outs = (uint32_t)c.weight->dims[1];
    c.shape.weight_channel = c.weight->strides[0];
    c.shape.weight_to = c.weight->strides[1];
    return convolve(device, &c);
}

// --- the gradient of the weights

enum { COLUMNS = 128, GROUPS_ENOUGH = 1024, PART_PIXELS_LEAST = 256 };

// How the pixels of a result are shared.
typedef struct WindowParts {
    uint32_t groups[3];
    uint64_t pixels; // of a part
} WindowParts;

// `to`: [parts, the weights' dims], contiguous.
static Status gather_window(Device *device, const Convolution *c, const TensorView *up,
                            const TensorView *to, const WindowParts *parts) {
    const uint32_t *groups = parts->groups;
    ConvolutionPush push = {.image_address = vulkan_address(c->image),
                            .weight_address = vulkan_address(up),
                            .out_address = vulkan_address(to),
                            .count = parts->pixels};
    VulkanDispatch dispatch = dispatch_of(c, SHADER_CONVOLUTION_WINDOW_F32, &push);
    VULKAN_SET_CONSTANTS(&dispatch, convolution, .DTYPES = dtypes_of(c, up->dtype));
    memcpy(dispatch.groups, groups, sizeof dispatch.groups);
    dispatch.cost = (uint64_t)groups[0] * groups[1] * groups[2] * TILE * COLUMNS * parts->pixels;
    vulkan_reads(&dispatch, c->image);
    vulkan_reads(&dispatch, up);
    vulkan_writes(&dispatch, to);
    return vulkan_dispatch(device, &dispatch);
}

static Status gather_in_parts(Device *device, const Convolution *c, const TensorView *up) {
    const ConvolutionShape *shape = &c->shape;
    const VulkanFeatures *features = vulkan_features(device);
    uint64_t columns = (uint64_t)shape->channels * shape->window[0] * shape->window[1];
    uint64_t tiles = (columns + COLUMNS - 1) / COLUMNS * shape->out_tiles;
    uint64_t all = tiles * (uint64_t)c->groups, parts = (GROUPS_ENOUGH + all - 1) / all;
    uint64_t most = (shape->pixels + PART_PIXELS_LEAST - 1) / PART_PIXELS_LEAST;
    if (parts > most) parts = most;
    uint64_t part_pixels = ((shape->pixels + parts - 1) / parts + DEPTH - 1) / DEPTH * DEPTH;
    parts = (shape->pixels + part_pixels - 1) / part_pixels;
    if (tiles > features->groups_max[0] || (uint64_t)c->groups > features->groups_max[1])
        return fail(STATUS_DEVICE, "%s: too many channels or groups for %s", c->call->op_name,
                    device->name);
    WindowParts cut = {{(uint32_t)tiles, (uint32_t)c->groups, (uint32_t)parts}, part_pixels};
    if (parts == 1) return gather_window(device, c, up, c->out, &cut);
    SCOPED_SCRATCH(sums);
    TRY(vulkan_scratch(device, c->out->dtype, view_count(c->out) * (int64_t)parts, &sums));
    TRY(gather_window(device, c, up, &sums, &cut));
    return vulkan_add_parts(device, c->call, &sums, c->out);
}

Status vulkan_kernel_CONV2D_WINDOW(Device *device, const KernelCall *call) {
    const TensorView *up = call->inputs[1].view;
    Convolution c = {.call = call,
                     .image = call->inputs[0].view,
                     .weight = call->outputs[0],
                     .out = call->outputs[0]};
    TRY(begin(device, &c));
    set_steps(&c);
    for (int d = 0; d < 4; d++) c.shape.to[d] = up->strides[d];
    for (int d = 0; d < 2; d++) c.shape.out_dims[d] = (uint32_t)up->dims[2 + d];
    c.shape.channels = (uint32_t)c.out->dims[1];
    c.shape.outs = (uint32_t)(c.out->dims[0] / c.groups);
    c.shape.out_tiles = (c.shape.outs + TILE - 1) / TILE;
    int64_t pixels = up->dims[0] * up->dims[2] * up->dims[3];
    if (view_count(c.out) == 0) return STATUS_OK;
    if (pixels == 0) return vulkan_fill_zeros(device, call);
    if (pixels > UINT32_MAX - COLUMNS)
        return fail(STATUS_DEVICE, "%s: more than 2^32 elements at once on %s", call->op_name,
                    device->name);
    c.shape.pixels = (uint32_t)pixels;
    return gather_in_parts(device, &c, up);
}
