// Random numbers: the stream, and the operations that draw from it.
#include "tensor/random.h"

#include <sys/random.h>

#include "device/cpu/random.h"
#include "device/foretell.h"
#include "tensor/create.h"
#include "tensor/state.h"

void random_seed(uint64_t seed) {
    random_return((RandomStream){.key = seed});
}

uint64_t random_current_seed(void) {
    if (!tensors_state()->stream_is_seeded) {
        uint64_t seed = 0;
        if (getentropy(&seed, sizeof seed) != 0) seed = (uint64_t)(uintptr_t)&seed;
        seed >>= 1; // so that it can be written as an int and given again
        random_seed(foretelling() ? FORETELL_RANDOM_KEY : seed);
    }
    return tensors_state()->stream.key;
}

RandomStream random_mark(void) {
    (void)random_current_seed();
    return tensors_state()->stream;
}

bool random_is_unknown(RandomStream stream) {
    return foretelling() && stream.key == FORETELL_RANDOM_KEY;
}

void random_return(RandomStream mark) {
    tensors_state()->stream_is_seeded = true;
    tensors_state()->stream = mark;
}

RandomTraining random_set_training(RandomTraining training) {
    RandomTraining old = tensors_state()->training;
    tensors_state()->training = training;
    return old;
}

bool random_is_training(void) {
    return tensors_state()->training.active;
}

RandomStream random_take(const OpCall *call, int64_t count) {
    if (op_has(call, ATTRIBUTE_seed))
        return (RandomStream){.key = (uint64_t)call->attributes->seed};
    RandomStream taken = random_mark();
    // The normal distribution uses its numbers in pairs: every draw begins at a multiple of four.
    tensors_state()->stream.counter += ((uint64_t)count + 3) / 4 * 4;
    return taken;
}

typedef enum Distribution {
    DISTRIBUTION_UNIFORM,
    DISTRIBUTION_NORMAL,
    DISTRIBUTION_INTEGERS,
    DISTRIBUTION_BERNOULLI,
} Distribution;

// `options` names the distribution and its numbers; the stream is taken here.
static RandomStream take_stream(const OpCall *call, int64_t count, KernelOptions *options) {
    RandomStream stream = random_take(call, count);
    options->integers[0] = (int64_t)stream.key;
    options->integers[1] = (int64_t)stream.counter;
    return stream;
}

static Status draw(const OpCall *call, const CreateTarget *target, const Shape *shape,
                   KernelOptions *options, Tensor **out) {
    SCOPED_TENSOR(result);
    TRY(tensor_new(target->device, target->dtype, shape, &result));
    (void)take_stream(call, tensor_count(result), options);
    TRY(compose_kernel(call, KERNEL_RANDOM, options, (TensorSpan){0}, result));
    return compose_give(&result, out);
}

// --- distributions: what a call says of them

static KernelOptions distribution(Distribution op, double first, double second) {
    return (KernelOptions){.op = (int)op, .scalars = {first, second}};
}

static Status choose_rand(const OpCall *call, KernelOptions *out) {
    (void)call;
    *out = distribution(DISTRIBUTION_UNIFORM, 0, 1);
    return STATUS_OK;
}

static Status choose_randn(const OpCall *call, KernelOptions *out) {
    (void)call;
    *out = distribution(DISTRIBUTION_NORMAL, 0, 1);
    return STATUS_OK;
}

static Status choose_normal(const OpCall *call, KernelOptions *out) {
    double mean = ATTRIBUTE_OR(call, mean, 0), std = ATTRIBUTE_OR(call, std, 1);
    if (!(std >= 0))
        return fail(STATUS_VALUE, "%s: std is %g; it must not be negative", call->op->name, std);
    *out = distribution(DISTRIBUTION_NORMAL, mean, std);
    return STATUS_OK;
}

static Status choose_uniform(const OpCall *call, KernelOptions *out) {
    double lo = scalar_double(call->attributes->lo), hi = scalar_double(call->attributes->hi);
    if (!(lo <= hi))
        return fail(STATUS_VALUE, "%s: lo %g is greater than hi %g", call->op->name, lo, hi);
    *out = distribution(DISTRIBUTION_UNIFORM, lo, hi);
    return STATUS_OK;
}

static Status whole_bound(const OpCall *call, const char *name, Scalar value, int64_t *out) {
    double number = scalar_double(value);
    *out = value.as.i;
    if (value.dtype != DTYPE_FLOAT64) return STATUS_OK;
    if (number != (double)(int64_t)(number > -9e18 && number < 9e18 ? number : 0.5))
        return fail(STATUS_VALUE, "%s: %s must be an integer, but it is %g", call->op->name, name,
                    number);
    *out = (int64_t)number;
    return STATUS_OK;
}

static Status choose_randint(const OpCall *call, KernelOptions *out) {
    int64_t lo, hi;
    TRY(whole_bound(call, "lo", call->attributes->lo, &lo));
    TRY(whole_bound(call, "hi", call->attributes->hi, &hi));
    if (lo >= hi)
        return fail(STATUS_VALUE, "%s: there is no integer from %lld up to, without, %lld",
                    call->op->name, (long long)lo, (long long)hi);
    *out = (KernelOptions){.op = DISTRIBUTION_INTEGERS, .integers = {0, 0, lo, hi}};
    return STATUS_OK;
}

// --- tensors of them

static Status draw_shaped(const OpCall *call, DType fallback, KernelOptions *options,
                          Tensor **out) {
    CreateTarget target;
    Shape shape = {.rank = 0};
    TRY(create_target(call, fallback, &target));
    if (op_has(call, ATTRIBUTE_shape)) TRY(create_shape(call, &shape));
    if (fallback == DTYPE_FLOAT32 && !dtype_is_float(target.dtype)) {
        (void)fail(STATUS_DTYPE, "%s makes floats; %s cannot hold them", call->op->name,
                   dtype_name(target.dtype));
        return fail_help("randint(lo, hi, shape) makes integers");
    }
    return draw(call, &target, &shape, options, out);
}

#define DRAWS(name, fallback)                                                                      \
    Status op_run_##name(const OpCall *call, Tensor **results) {                                   \
        KernelOptions options;                                                                     \
        TRY(choose_##name(call, &options));                                                        \
        return draw_shaped(call, fallback, &options, results);                                     \
    }
#define EACH_DRAW(F)                                                                               \
    F(rand, DTYPE_FLOAT32)                                                                         \
    F(randn, DTYPE_FLOAT32)                                                                        \
    F(normal, DTYPE_FLOAT32) F(uniform, DTYPE_FLOAT32) F(randint, DTYPE_INT64)
EACH_DRAW(DRAWS)
#undef DRAWS

// --- single numbers

typedef Status (*ChooseDistribution)(const OpCall *call, KernelOptions *out);

static ChooseDistribution chooser_of(const OpCall *call) {
#define CHOOSER(name, fallback)                                                                    \
    if (call->op->run == op_run_##name) return choose_##name;
    EACH_DRAW(CHOOSER)
#undef CHOOSER
    return NULL;
}

bool random_is_single(const OpCall *call) {
    if (call->n_inputs > 0 || call->n_many > 0) return false;
    return !op_has(call, ATTRIBUTE_shape) && !op_has(call, ATTRIBUTE_dtype) &&
           !op_has(call, ATTRIBUTE_device) && chooser_of(call) != NULL;
}

Status random_single(const OpCall *call, Scalar *out, bool *unknown) {
    KernelOptions options;
    ASSERT(random_is_single(call));
    TRY(chooser_of(call)(call, &options));
    *unknown = random_is_unknown(take_stream(call, 1, &options));
    *out = random_alone(&options);
    return STATUS_OK;
}

Status op_run_rand_like(const OpCall *call, Tensor **results) {
    CreateTarget target;
    TRY(create_like(call, call->inputs[0].tensor, &target));
    if (!op_has(call, ATTRIBUTE_dtype)) target.dtype = dtype_floating(target.dtype);
    Shape shape = tensor_shape(call->inputs[0].tensor);
    KernelOptions options = distribution(DISTRIBUTION_UNIFORM, 0, 1);
    return draw(call, &target, &shape, &options, results);
}

static Status check_probability(const OpCall *call, double p) {
    if (p >= 0 && p <= 1) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: the probability p is %g; it must be from 0 to 1", call->op->name,
                p);
}

Status op_run_bernoulli(const OpCall *call, Tensor **results) {
    double p = call->attributes->p;
    TRY(check_probability(call, p));
    CreateTarget target;
    Shape shape;
    TRY(create_target(call, DTYPE_FLOAT32, &target));
    TRY(create_shape(call, &shape));
    KernelOptions options = distribution(DISTRIBUTION_BERNOULLI, p, 0);
    return draw(call, &target, &shape, &options, results);
}

Status op_run_bernoulli_each(const OpCall *call, Tensor **results) {
    CreateTarget target;
    SCOPED_TENSOR(probabilities);
    TRY(compose_floating(call->inputs[0].tensor, &probabilities));
    TRY(create_like(call, probabilities, &target));
    Shape shape = tensor_shape(probabilities);
    KernelOptions options = distribution(DISTRIBUTION_UNIFORM, 0, 1);
    // Drawn in float32: the 16-bit floats would round a draw up to 1.
    CreateTarget uniform = {.device = target.device, .dtype = DTYPE_FLOAT32};
    SCOPED_TENSOR(draws);
    SCOPED_TENSOR(hits);
    TRY(draw(call, &uniform, &shape, &options, &draws));
    TRY(op_binary(OP_lt, op_tensor(draws), op_tensor(probabilities), &hits));
    return tensor_cast(hits, target.dtype, results);
}

Status op_run_dropout(const OpCall *call, Tensor **results) {
    double p = ATTRIBUTE_OR(call, p, tensors_state()->training.dropout);
    TRY(check_probability(call, p));
    SCOPED_TENSOR(x);
    TRY(compose_floating(call->inputs[0].tensor, &x));
    if (!ATTRIBUTE_OR(call, training, tensors_state()->training.active) || p == 0)
        return compose_give(&x, results);
    CreateTarget target = {.device = x->device, .dtype = tensor_dtype(x)};
    Shape shape = tensor_shape(x);
    KernelOptions options = distribution(DISTRIBUTION_BERNOULLI, 1 - p, 0);
    SCOPED_TENSOR(kept);
    SCOPED_TENSOR(scaled);
    TRY(draw(call, &target, &shape, &options, &kept));
    TRY(compose_with_number(OP_mul, x, p < 1 ? 1 / (1 - p) : 0, &scaled));
    return op_binary(OP_mul, op_donated(scaled), op_tensor(kept), results);
}

Status random_uniform(const OpCall *call, double *out) {
    CreateTarget target = {.dtype = DTYPE_FLOAT64};
    TRY(device_default(&target.device));
    Shape shape = {0};
    KernelOptions options = distribution(DISTRIBUTION_UNIFORM, 0, 1);
    SCOPED_TENSOR(number);
    TRY(draw(call, &target, &shape, &options, &number));
    return tensor_read_floats(number, out);
}
