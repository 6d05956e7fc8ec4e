// MAP, COPY and FILL: one shader runs them all, as programs of elementwise formulas.
#include <string.h>

#include "device/cpu/cast.h"
#include "device/vulkan/bounds.h"
#include "device/vulkan/kernels/kernels.h"

_Static_assert((int)MAP_COUNT <= 128, "shaders/map.comp has a bit for each row of maps.def");

_Static_assert((int)MAP_OPERANDS_MAX == (int)KERNEL_INPUTS_MAX, "map.comp takes all operands");
_Static_assert((int)MAP_STEPS_MAX == 8, "map.comp has STEP_0 to STEP_7");

enum { GROUP_ITEMS = 512, LANES = 4, LINE = 16 };

typedef struct MapPushAlone { // without strides, whose address comes first
    uint64_t no_strides;
    MapPush push;
} MapPushAlone;

typedef struct Map {
    Walk walk;
    const TensorView *views[KERNEL_INPUTS_MAX + 1]; // the output, then inputs: NULL for a number
    int n_inputs;
    bool linear, vector;
    uint32_t singles;
} Map;

// How many operands a row of maps.def has, and whether it is for integers (1), for floats (2), or
// for both (3).
static const struct {
    const char *name;
    int operands, reals;
} formulas[MAP_COUNT] = {
#define MAP1(code, formula, ...) [MAP_##code] = {#code, 1, 3},
#define MAP2(code, formula, ...) [MAP_##code] = {#code, 2, 3},
#define MAP3(code, formula, ...) [MAP_##code] = {#code, 3, 3},
#define MAP1F(code, formula, ...) [MAP_##code] = {#code, 1, 2},
#define MAP2F(code, formula, ...) [MAP_##code] = {#code, 2, 2},
#define MAP1I(code, formula, ...) [MAP_##code] = {#code, 1, 1},
#define MAP2I(code, formula, ...) [MAP_##code] = {#code, 2, 1},
#include "catalog/maps.def"
#undef MAP1
#undef MAP2
#undef MAP3
#undef MAP1F
#undef MAP2F
#undef MAP1I
#undef MAP2I
};

static bool view_is_single(const TensorView *view) {
    for (int d = 0; d < view->rank; d++)
        if (view->dims[d] != 1 && view->strides[d] != 0) return false;
    return true;
}

static int64_t last_stride(const Walk *walk, int view) {
    return walk->rank == 0 ? 0 : walk->strides[view][walk->rank - 1];
}

// True when every view lies as the output does, or is one number for all.
static bool is_linear(const Map *map) {
    if (map->walk.rank > 1) return false;
    for (int v = 0; v <= map->n_inputs; v++) {
        const TensorView *view = map->views[v];
        if (!view || (v > 0 && view_is_single(view))) continue;
        if (map->walk.rank == 1 && last_stride(&map->walk, v) != 1) return false;
    }
    return true;
}

// Items of four neighbours: every view has them side by side at a multiple of their size.
static bool is_vector(const Map *map) {
    const Walk *walk = &map->walk;
    if (walk->rank == 0 || walk->dims[walk->rank - 1] % LANES != 0) return false;
    for (int v = 0; v <= map->n_inputs; v++) {
        const TensorView *view = map->views[v];
        if (!view || (v > 0 && last_stride(walk, v) == 0)) continue;
        if (dtype_is_quant(view->dtype) || last_stride(walk, v) != 1) return false;
        if (vulkan_address(view) % (LANES * dtype_size(view->dtype)) != 0) return false;
        for (int d = 0; d < walk->rank - 1; d++)
            if (walk->strides[v][d] % LANES != 0) return false;
    }
    return true;
}

static void choose_layout(Map *map, int n_views) {
    walk_prepare(&map->walk, n_views, map->views, map->views[0]->rank);
    map->linear = is_linear(map);
    map->vector = is_vector(map);
    map->singles = 0;
    for (int k = 0; k < map->n_inputs; k++) {
        const TensorView *view = map->views[k + 1];
        bool single = !view || (map->linear ? view_is_single(view)
                                            : map->vector && last_stride(&map->walk, k + 1) == 0);
        if (single) map->singles |= 1u << k;
        if (!view) map->singles |= 1u << (8 + k);
    }
}

static uint64_t count_items(Map *map) {
    Walk *walk = &map->walk;
    uint64_t items = (uint64_t)walk->count;
    if (!map->vector) return items;
    walk->dims[walk->rank - 1] /= LANES;
    for (int v = 0; v < walk->n_views; v++) walk->strides[v][walk->rank - 1] *= LANES;
    return items / LANES;
}

static void fill_strides(const Walk *walk, MapStrides *out) {
    for (int d = 0; d < walk->rank; d++) {
        out->dims[d] = (uint32_t)walk->dims[d];
        for (int v = 0; v < walk->n_views; v++) out->strides[v][d] = walk->strides[v][d];
    }
}

// The modules of a single formula, the first of each: they are smaller than that of programs, so
// that pipelines are made sooner.
static VulkanShader formula_shader(MapOp op) {
    static const VulkanShader by_operands[] = {SHADER_MAP_UNARY_F32, SHADER_MAP_BINARY_F32,
                                               SHADER_MAP_TERNARY_F32};
    return op == MAP_COPY ? SHADER_MOVE_F32 : by_operands[formulas[op].operands - 1];
}

// A single formula's operands in its order.
static KernelCall order_operands(const KernelCall *call, int operands) {
    KernelCall ordered = *call;
    const MapStep *step = &call->options.steps[0];
    const uint8_t from[] = {step->a, step->b, step->c};
    for (int k = 0; k < operands; k++) {
        ASSERT(from[k] < call->n_inputs);
        ordered.inputs[k] = call->inputs[from[k]];
    }
    ordered.n_inputs = operands;
    ordered.options.steps[0] = (MapStep){step->op, 0, 1, 2};
    return ordered;
}

static VulkanShader map_shader(const KernelCall *call, const Map *map, VulkanReal real) {
    bool doubles = false, quantised = false;
    for (int v = 0; v <= map->n_inputs; v++) {
        doubles |= map->views[v] && map->views[v]->dtype == DTYPE_FLOAT64;
        quantised |= map->views[v] && dtype_is_quant(map->views[v]->dtype);
    }
    VulkanShader first = SHADER_MAP_F32;
    if (call->options.n_steps == 1) first = formula_shader(call->options.steps[0].op);
    if (quantised) return doubles ? SHADER_MOVE_QUANTISED_F64 : SHADER_MOVE_QUANTISED;
    if (real == REAL_I64 && doubles)
        return first == SHADER_MOVE_F32 ? SHADER_MOVE_I64_F64 : SHADER_MAP_I64_F64;
    return vulkan_shader_of(first, real == REAL_F32 && doubles ? REAL_F64 : real);
}

// Whether the module computes in doubles where float32 was asked for.
static bool map_is_wider(const KernelCall *call, const Map *map, VulkanReal real) {
    if (real != REAL_F32) return false;
    for (int v = 0; v <= call->n_inputs; v++)
        if (map->views[v] && map->views[v]->dtype == DTYPE_FLOAT64) return true;
    return false;
}

static void describe_program(const KernelCall *call, const Map *map, VulkanDispatch *dispatch) {
    uint32_t shape = (uint32_t)map->n_inputs | (uint32_t)call->options.n_steps << 4;
    shape |= (uint32_t)(map->linear ? 0 : map->walk.rank) << 8;
    shape |= (uint32_t)map->views[0]->dtype << 12 | (uint32_t)map->vector << 16;
    uint32_t dtypes = 0;
    for (int k = 0; k < map->n_inputs; k++)
        if (map->views[k + 1]) dtypes |= (uint32_t)map->views[k + 1]->dtype << 4 * k;
    VULKAN_SET_CONSTANTS(dispatch, map, .SHAPE = shape, .DTYPES = dtypes, .SINGLE = map->singles);
    uint32_t *steps = &dispatch->constants.map.STEP_0;
    for (int s = 0; s < call->options.n_steps; s++) {
        const MapStep *step = &call->options.steps[s];
        steps[s] = (uint32_t)step->op | (uint32_t)step->a << 8 | (uint32_t)step->b << 12 |
                   (uint32_t)step->c << 16;
    }
}

static Status run_program(Device *device, const KernelCall *given, VulkanReal real) {
    KernelCall ordered;
    const KernelCall *call = given;
    if (given->options.n_steps == 1) {
        ordered = order_operands(given, formulas[given->options.steps[0].op].operands);
        call = &ordered;
    }
    Map map = {.views = {call->outputs[0]}, .n_inputs = call->n_inputs};
    for (int k = 0; k < call->n_inputs; k++) map.views[k + 1] = call->inputs[k].view;
    choose_layout(&map, call->n_inputs + 1);
    if (map.walk.count == 0) return STATUS_OK;
    if (!map.linear && map.walk.count > UINT32_MAX)
        return fail(STATUS_DEVICE, "%s: more than 2^32 strided elements at once on %s",
                    call->op_name, device->name);
    VulkanDispatch dispatch = {.shader = map_shader(call, &map, real)};
    describe_program(call, &map, &dispatch);
    MapPushAlone push = {.push.out_address = vulkan_address(map.views[0])};
    VulkanReal wide = map_is_wider(call, &map, real) ? REAL_F64 : real;
    for (int k = 0; k < call->n_inputs; k++) {
        const TensorView *view = map.views[k + 1];
        push.push.inputs[k] =
            view ? vulkan_address(view) : vulkan_scalar_bits(&call->inputs[k].scalar, wide);
        vulkan_reads(&dispatch, view);
    }
    vulkan_writes(&dispatch, map.views[0]);
    push.push.count = count_items(&map);
    vulkan_groups_for(device, &dispatch, push.push.count, GROUP_ITEMS);
    dispatch.cost = (uint64_t)map.walk.count * (uint64_t)(call->n_inputs + 1);
    MapStrides strides;
    if (map.linear) {
        VULKAN_SET_PUSHED(&dispatch, push);
    } else {
        fill_strides(&map.walk, &strides);
        dispatch.arguments = &strides;
        dispatch.arguments_bytes = sizeof strides;
        VULKAN_SET_PUSHED(&dispatch, push.push);
    }
    return vulkan_dispatch(device, &dispatch);
}

Status vulkan_kernel_MAP(Device *device, const KernelCall *call) {
    DType compute = call->options.compute;
    VulkanReal real = vulkan_real_of(compute);
    for (int k = 0; k < call->n_inputs; k++)
        if (call->inputs[k].view && dtype_is_quant(call->inputs[k].view->dtype))
            return fail(STATUS_DTYPE,
                        "%s: %s cannot be computed with; convert it to a float type first",
                        call->op_name, dtype_name(call->inputs[k].view->dtype));
    for (int s = 0; s < call->options.n_steps; s++) {
        uint16_t op = call->options.steps[s].op;
        ASSERT(op < MAP_COUNT);
        if (!(formulas[op].reals & (real == REAL_I64 ? 1 : 2)))
            return fail(STATUS_DTYPE, "%s: %s works on %s, not on %s", call->op_name,
                        formulas[op].name, real == REAL_I64 ? "float types" : "integers",
                        dtype_name(compute));
    }
    Status status = STATUS_OK;
    return vulkan_join_map(device, call, &status) ? status : run_program(device, call, real);
}

// --- copies and fills ----------------------------------------------------------------------------

// A program of one step, which moves its operand.
static KernelCall move_call(const TensorView *out, const char *op_name) {
    return (KernelCall){.kernel = KERNEL_COPY,
                        .n_inputs = 1,
                        .n_outputs = 1,
                        .outputs = {out},
                        .options = {.n_steps = 1, .steps = {{.op = MAP_COPY}}},
                        .op_name = op_name};
}

// The whole-number dtype of as many bytes: its numbers are moved bit by bit.
static DType bits_dtype(DType dtype) {
    size_t size = dtype_size(dtype);
    if (size == 1) return DTYPE_INT8;
    if (size == 2) return DTYPE_INT16;
    return size == 4 ? DTYPE_INT32 : DTYPE_INT64;
}

// What the numbers go through: exactly.
static VulkanReal copy_real(DType from) {
    if (dtype_is_quant(from)) return REAL_F32;
    return vulkan_real_of(from);
}

static size_t bytes_of(const TensorView *view) {
    const DTypeInfo *info = &dtype_info[view->dtype];
    return (size_t)(view_count(view) / info->block_elements) * (size_t)info->block_bytes;
}

// Moved by a shader where it can be: some drivers copy at a fifth of the memory's speed, and turn
// slowly from computing to copying.
static Status copy_bytes(Device *device, const TensorView *out, const TensorView *in) {
    uint64_t bytes = bytes_of(in);
    if (bytes == 0) return STATUS_OK;
    if ((bytes | in->offset | out->offset) % LINE != 0)
        return vulkan_copy(device, (VulkanPlace){in->buffer, in->offset},
                           (VulkanPlace){out->buffer, out->offset}, bytes);
    CopyPush push = {.out_address = vulkan_address(out),
                     .in_address = vulkan_address(in),
                     .count = bytes / LINE};
    VulkanDispatch dispatch = {.shader = SHADER_COPY_BYTES, VULKAN_PUSHED(push), .cost = bytes / 2};
    vulkan_reads(&dispatch, in);
    vulkan_writes(&dispatch, out);
    vulkan_groups_for(device, &dispatch, bytes / LINE, GROUP_ITEMS);
    return vulkan_dispatch(device, &dispatch);
}

Status vulkan_copy_view(Device *device, const TensorView *out, const TensorView *in,
                        const char *op_name) {
    bool same = out->dtype == in->dtype;
    bool contiguous = view_is_contiguous(out) && view_is_contiguous(in);
    if (dtype_is_quant(out->dtype) && !(same && contiguous)) {
        fail(STATUS_DTYPE, "%s cannot write %s from %s", op_name, dtype_name(out->dtype),
             dtype_name(in->dtype));
        return fail_help("quantised tensors are read, not computed; use a float dtype");
    }
    if (same && view_is_contiguous(in) && out->buffer != in->buffer) {
        Status status;
        if (vulkan_join_copy(device, out, in, &status)) return status;
        if (contiguous) return copy_bytes(device, out, in);
    }
    TensorView to = *out, from = *in;
    if (vulkan_can_transpose(out, in)) return vulkan_transpose(device, out, in);
    if (same) to.dtype = from.dtype = bits_dtype(out->dtype);
    KernelCall call = move_call(&to, op_name);
    call.inputs[0].view = &from;
    return run_program(device, &call, copy_real(from.dtype));
}

Status vulkan_kernel_COPY(Device *device, const KernelCall *call) {
    TRY(vulkan_copy_view(device, call->outputs[0], call->inputs[0].view, call->op_name));
    vulkan_bound_as(call->outputs[0], call->inputs[0].view);
    return STATUS_OK;
}

Status vulkan_kernel_FILL(Device *device, const KernelCall *call) {
    TensorView out = *call->outputs[0];
    if (dtype_is_quant(out.dtype))
        return fail(STATUS_DTYPE, "%s cannot write %s", call->op_name, dtype_name(out.dtype));
    Scalar bits = {.dtype = DTYPE_INT64};
    cast_scalar(&call->inputs[0].scalar, out.dtype, &bits.as.i);
    out.dtype = bits_dtype(out.dtype);
    if (view_is_contiguous(&out)) {
        KernelCall repeat = {.n_outputs = 1,
                             .outputs = {&out},
                             .options = {.integers = {bits.as.i, 0}},
                             .op_name = call->op_name};
        return vulkan_kernel_ARANGE(device, &repeat);
    }
    KernelCall move = move_call(&out, call->op_name);
    move.inputs[0].scalar = bits;
    return run_program(device, &move, REAL_I64);
}
