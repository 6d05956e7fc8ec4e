// Convolution and pooling over images [batch, channels, height, width] and lines without height.
#include "shape/rules.h"
#include "tensor/gradient/gradient.h"
#include "tensor/join.h"

// One number for both, or one each; for a line there is one and the height has none to give.
static Status read_pair(const OpCall *call, const char *what, const IntList *given, int64_t least,
                        Pair *pair) {
    if (!given) return STATUS_OK;
    if (given->count < 1 || given->count > 2)
        return fail(STATUS_VALUE, "%s: %s takes one or two numbers, not %zu", call->op->name, what,
                    given->count);
    *pair = (Pair){given->items[0], given->items[given->count - 1]};
    bool h_fits = pair->h >= least && pair->h <= INT32_MAX;
    if (h_fits && pair->w >= least && pair->w <= INT32_MAX) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: %s is %lld; it must be from %lld to %d", call->op->name, what,
                (long long)(h_fits ? pair->w : pair->h), (long long)least, INT32_MAX);
}

#define INTS_OF(call, name) (op_has((call), ATTRIBUTE_##name) ? &(call)->attributes->name : NULL)

static Status read_convolution(const OpCall *call, bool line, Convolution *out) {
    *out = (Convolution){{1, 1}, {0, 0}, {1, 1}, ATTRIBUTE_OR(call, groups, 1)};
    TRY(read_pair(call, "stride", INTS_OF(call, stride), 1, &out->stride));
    TRY(read_pair(call, "padding", INTS_OF(call, padding), 0, &out->padding));
    TRY(read_pair(call, "dilation", INTS_OF(call, dilation), 1, &out->dilation));
    if (line) { // a line is an image of height 1
        out->stride.h = out->dilation.h = 1;
        out->padding.h = 0;
    }
    return STATUS_OK;
}

// x: [N, C, H, W], weight: [O, C / groups, KH, KW], bias: [O] or NULL; all of one dtype.
static Status convolve(const OpCall *call, Tensor *const *inputs, const Convolution *options,
                       Tensor **out) {
    TensorType x = tensor_type(inputs[0]), weight = tensor_type(inputs[1]), bias;
    if (inputs[2]) bias = tensor_type(inputs[2]);
    Shape shape;
    Convolved operands = {&x, &weight, inputs[2] ? &bias : NULL};
    TRY(shape_convolve(call->op->name, &operands, options, &shape));
    SCOPED_TENSOR(result);
    TRY(tensor_new(inputs[0]->device, x.dtype, &shape, &result));
    KernelOptions kernel = {.integers = {options->stride.h, options->stride.w, options->padding.h,
                                         options->padding.w, options->dilation.h,
                                         options->dilation.w, options->groups}};
    TRY(compose_kernel(call, KERNEL_CONV2D, &kernel, (TensorSpan){inputs, inputs[2] ? 3 : 2},
                       result));
    return compose_give(&result, out);
}

static Status convolve_recorded(const OpCall *call, Tensor *const *inputs,
                                const Convolution *options, Tensor **out) {
    TapeRecord record = tape_begin(&gradient_convolve, inputs, 3);
    tape_keep(&record, options, sizeof *options);
    return tape_end(&record, convolve(call, inputs, options, out), out);
}

// conv1d and conv2d; `rank` counts batch and channels, which x may lack the first of.
static Status convolution(const OpCall *call, int rank, Tensor **out) {
    Tensor *x = call->inputs[0].tensor, *weight = call->inputs[1].tensor;
    Tensor *bias = compose_input(call, 2);
    bool single = tensor_rank(x) == rank - 1, line = rank == 3;
    ASSERT(rank == 3 || rank == 4);
    TensorType image_type = tensor_type(x), weight_type = tensor_type(weight);
    TRY(shape_convolution_ranks(call->op->name, line, &image_type, &weight_type));
    Convolution options;
    TRY(read_convolution(call, line, &options));
    DType dtype = dtype_floating(dtype_promote(tensor_dtype(x), tensor_dtype(weight)));
    SCOPED_TENSOR(floats);
    SCOPED_TENSOR(batch);
    SCOPED_TENSOR(kernel);
    SCOPED_TENSOR(shift);
    TRY(tensor_cast(x, dtype, &floats));
    if (single)
        TRY(tensor_unsqueeze(floats, 0, &batch));
    else
        batch = tensor_retain(floats);
    TRY(tensor_cast(weight, dtype, &kernel));
    if (bias) TRY(tensor_cast(bias, dtype, &shift));
    SCOPED_TENSOR(image);
    SCOPED_TENSOR(window);
    SCOPED_TENSOR(result);
    SCOPED_TENSOR(flat);
    if (line)
        TRY(tensor_unsqueeze(batch, 2, &image));
    else
        image = tensor_retain(batch);
    if (line)
        TRY(tensor_unsqueeze(kernel, 2, &window));
    else
        window = tensor_retain(kernel);
    Tensor *inputs[3] = {image, window, shift};
    TRY(convolve_recorded(call, inputs, &options, &result));
    if (line)
        TRY(tensor_squeeze(result, 2, &flat));
    else
        flat = tensor_retain(result);
    if (single) return tensor_squeeze(flat, 0, out);
    return compose_give(&flat, out);
}

Status op_run_conv1d(const OpCall *call, Tensor **results) {
    return convolution(call, 3, results);
}
Status op_run_conv2d(const OpCall *call, Tensor **results) {
    return convolution(call, 4, results);
}

typedef enum PoolKind { POOL_MAX, POOL_AVERAGE } PoolKind;

static Status pool_kernel(const OpCall *call, PoolKind kind, Tensor *image, const Pooling *pooling,
                          Tensor **out) {
    Pair size = pooling->size, stride = pooling->stride, padding = pooling->padding;
    TensorType type = tensor_type(image);
    Shape shape;
    TRY(shape_pool(call->op->name, &type, pooling, &shape));
    SCOPED_TENSOR(result);
    TRY(tensor_new(image->device, tensor_dtype(image), &shape, &result));
    KernelOptions options = {
        .op = (int)kind, .integers = {size.h, size.w, stride.h, stride.w, padding.h, padding.w}};
    TRY(compose_kernel(call, KERNEL_POOL2D, &options, (TensorSpan){&image, 1}, result));
    return compose_give(&result, out);
}

// The image in a border of zeros, which then count as numbers of it.
static Status take_border_in(Tensor *image, Pair *padding, Tensor **out) {
    int64_t border[RANK_MAX] = {0, 0, padding->h, padding->w};
    *padding = (Pair){0, 0};
    return tensor_pad(image, border, border, (Scalar){.dtype = DTYPE_INT64}, out);
}

static Status pool_run(const OpCall *call, PoolKind kind, Tensor *x, Tensor **out) {
    Pooling p = {.size = {1, 1}};
    TRY(read_pair(call, "size", INTS_OF(call, size), 1, &p.size));
    p.stride = p.size;
    TRY(read_pair(call, "stride", INTS_OF(call, stride), 1, &p.stride));
    TRY(read_pair(call, "padding", INTS_OF(call, padding), 0, &p.padding));
    if (p.padding.h > p.size.h / 2 || p.padding.w > p.size.w / 2)
        return fail(STATUS_VALUE, "%s: the padding must be at most half the window",
                    call->op->name);
    SCOPED_TENSOR(image);
    bool counts = kind == POOL_AVERAGE && ATTRIBUTE_OR(call, count_padding, true);
    if (counts && (p.padding.h > 0 || p.padding.w > 0))
        TRY(take_border_in(x, &p.padding, &image));
    else
        image = tensor_retain(x);
    const GradientInfo *info = kind == POOL_MAX ? &gradient_max_pool : &gradient_average_pool;
    TapeRecord record = tape_begin(info, &image, 1);
    tape_keep(&record, &p, sizeof p);
    return tape_end(&record, pool_kernel(call, kind, image, &p, out), out);
}

static Status pool(const OpCall *call, PoolKind kind, Tensor **out) {
    Tensor *x = call->inputs[0].tensor;
    if (tensor_rank(x) != 4 && tensor_rank(x) != 3)
        return fail(STATUS_SHAPE, "%s: x must be [batch, channels, height, width], but it is %s",
                    call->op->name, tensor_type_name(x).text);
    SCOPED_TENSOR(floats);
    SCOPED_TENSOR(image);
    SCOPED_TENSOR(result);
    TRY(compose_floating(x, &floats));
    if (tensor_rank(x) == 4) return pool_run(call, kind, floats, out);
    TRY(tensor_unsqueeze(floats, 0, &image));
    TRY(pool_run(call, kind, image, &result));
    return tensor_squeeze(result, 0, out);
}

Status op_run_max_pool2d(const OpCall *call, Tensor **results) {
    return pool(call, POOL_MAX, results);
}
Status op_run_avg_pool2d(const OpCall *call, Tensor **results) {
    return pool(call, POOL_AVERAGE, results);
}
