// Convolution and pooling over images [batch, channels, height, width] and lines without height.
#include "tensor/gradient.h"
#include "tensor/windows.h"

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

// Positions of a window along one dimension; negative where the window does not fit.
static int64_t positions(int64_t size, int64_t window, int64_t stride, int64_t padding) {
    int64_t room = size + 2 * padding - window;
    return room < 0 ? -1 : room / stride + 1;
}

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

static Status check_channels(const OpCall *call, const Tensor *x, const Tensor *weight,
                             const Tensor *bias, int64_t groups) {
    int64_t channels = x->view.dims[1], outs = weight->view.dims[0], each = weight->view.dims[1];
    if (groups < 1 || channels % groups != 0 || outs % groups != 0)
        return fail(STATUS_VALUE,
                    "%s: %lld groups do not divide %lld channels in and %lld out evenly",
                    call->op->name, (long long)groups, (long long)channels, (long long)outs);
    if (each != channels / groups)
        return fail(STATUS_SHAPE,
                    "%s: x has %lld channels in %lld groups, but the weight takes "
                    "%lld per group",
                    call->op->name, (long long)channels, (long long)groups, (long long)each);
    if (bias && (tensor_rank(bias) != 1 || bias->view.dims[0] != outs))
        return fail(STATUS_SHAPE, "%s: the bias is %s, but there are %lld channels out",
                    call->op->name, tensor_type_name(bias).text, (long long)outs);
    return STATUS_OK;
}

static Status fail_window(const OpCall *call, const Tensor *x, int64_t h, int64_t w) {
    return fail(STATUS_SHAPE, "%s: a window of %lld x %lld does not fit into %s with its padding",
                call->op->name, (long long)h, (long long)w, tensor_type_name(x).text);
}

// x: [N, C, H, W], weight: [O, C / groups, KH, KW], bias: [O] or NULL; all of one dtype.
static Status convolve(const OpCall *call, Tensor *const *inputs, const Convolution *options,
                       Tensor **out) {
    const TensorView *x = &inputs[0]->view, *weight = &inputs[1]->view;
    int64_t window_h = 0, window_w = 0;
    if (__builtin_mul_overflow(weight->dims[2] - 1, options->dilation.h, &window_h) ||
        __builtin_mul_overflow(weight->dims[3] - 1, options->dilation.w, &window_w))
        return fail(STATUS_VALUE, "%s: the dilation is too large", call->op->name);
    int64_t h = positions(x->dims[2], window_h + 1, options->stride.h, options->padding.h);
    int64_t w = positions(x->dims[3], window_w + 1, options->stride.w, options->padding.w);
    if (weight->dims[2] < 1 || weight->dims[3] < 1 || h < 0 || w < 0)
        return fail_window(call, inputs[0], window_h + 1, window_w + 1);
    Shape shape = {.rank = 4, .dims = {x->dims[0], weight->dims[0], h, w}};
    SCOPED_TENSOR(result);
    TRY(tensor_new(inputs[0]->device, x->dtype, &shape, &result));
    KernelOptions kernel = {.integers = {options->stride.h, options->stride.w, options->padding.h,
                                         options->padding.w, options->dilation.h,
                                         options->dilation.w, options->groups}};
    TRY(compose_kernel(call, KERNEL_CONV2D, &kernel, inputs, inputs[2] ? 3 : 2, result));
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
    if ((tensor_rank(x) != rank && !single) || tensor_rank(weight) != rank)
        return fail(STATUS_SHAPE,
                    "%s: x must be [batch, channels, %s] and the weight [out, in, %s], "
                    "but they are %s and %s",
                    call->op->name, line ? "length" : "height, width",
                    line ? "length" : "height, width", tensor_type_name(x).text,
                    tensor_type_name(weight).text);
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
    TRY(check_channels(call, batch, kernel, shift, options.groups));
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
    int64_t h = positions(image->view.dims[2], size.h, stride.h, padding.h);
    int64_t w = positions(image->view.dims[3], size.w, stride.w, padding.w);
    if (h < 0 || w < 0) return fail_window(call, image, size.h, size.w);
    Shape shape = {.rank = 4, .dims = {image->view.dims[0], image->view.dims[1], h, w}};
    SCOPED_TENSOR(result);
    TRY(tensor_new(image->device, tensor_dtype(image), &shape, &result));
    KernelOptions options = {
        .op = (int)kind, .integers = {size.h, size.w, stride.h, stride.w, padding.h, padding.w}};
    TRY(compose_kernel(call, KERNEL_POOL2D, &options, &image, 1, result));
    return compose_give(&result, out);
}

static Status pool_run(const OpCall *call, PoolKind kind, Tensor *image, Tensor **out) {
    Pooling p = {.size = {1, 1}};
    TRY(read_pair(call, "size", INTS_OF(call, size), 1, &p.size));
    p.stride = p.size;
    TRY(read_pair(call, "stride", INTS_OF(call, stride), 1, &p.stride));
    TRY(read_pair(call, "padding", INTS_OF(call, padding), 0, &p.padding));
    if (p.padding.h > p.size.h / 2 || p.padding.w > p.size.w / 2)
        return fail(STATUS_VALUE, "%s: the padding must be at most half the window",
                    call->op->name);
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
