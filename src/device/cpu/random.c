// RANDOM: distributions made of the words of random.h. Chunks are aligned to the counter, not to
// the tensor, so that a number depends on key and counter alone.
#include "device/cpu/random.h"

#include <math.h>
#include <string.h>

#include "device/cpu/convert.h"
#include "device/cpu/iterate.h"

enum { CHUNK_ELEMENTS = 2 * RANDOM_CHUNK, GROUP_ELEMENTS = 2 * RANDOM_GROUP };

typedef enum Distribution {
    RANDOM_UNIFORM,
    RANDOM_NORMAL,
    RANDOM_INTEGERS,
    RANDOM_BERNOULLI,
    DISTRIBUTION_COUNT
} Distribution;

typedef union RandomNumbers {
    float floats[CHUNK_ELEMENTS];
    double doubles[CHUNK_ELEMENTS];
    int64_t integers[CHUNK_ELEMENTS];
} RandomNumbers;

typedef struct Random {
    const KernelOptions *options;
    const TensorView *out;
    DType dtype;
    double uniform_max; // the largest number of the dtype below the upper bound
} Random;

static uint64_t stream_key(const KernelOptions *options) {
    return (uint64_t)options->integers[0];
}
static uint64_t stream_counter(const KernelOptions *options) {
    return (uint64_t)options->integers[1];
}

static uint64_t bits_at(const RandomBlocks *blocks, int element) {
    int block = element / 2, word = element % 2 * 2;
    return (uint64_t)blocks->words[word][block] << 32 | blocks->words[word + 1][block];
}

static double fraction_at(const RandomBlocks *blocks, int element) {
    return (double)(bits_at(blocks, element) >> 11) * 0x1p-53;
}

// --- distributions: a chunk of numbers, in the type they are stored from -------------------------

static CpuCompute make_uniform(const Random *random, const RandomBlocks *blocks,
                               RandomNumbers *out) {
    double low = random->options->scalars[0];
    double width = random->options->scalars[1] - low, max = random->uniform_max;
    CPU_CHOOSE(random_fractions)(blocks, out->doubles);
    for (int i = 0; i < 2 * blocks->count; i++) {
        double value = low + out->doubles[i] * width;
        out->doubles[i] = value < max ? value : max;
    }
    return COMPUTE_F64;
}

static void make_normal_doubles(const RandomBlocks *blocks, double *out) {
    for (int i = 0; i < blocks->count; i++) {
        double uniform = fraction_at(blocks, 2 * i) + 0x1p-53;
        double radius = sqrt(-2.0 * log(uniform));
        double angle = 6.283185307179586 * fraction_at(blocks, 2 * i + 1);
        out[2 * i] = radius * cos(angle);
        out[2 * i + 1] = radius * sin(angle);
    }
}

static CpuCompute make_normal(const Random *random, const RandomBlocks *blocks,
                              RandomNumbers *out) {
    double mean = random->options->scalars[0], deviation = random->options->scalars[1];
    if (random->dtype == DTYPE_FLOAT64) {
        make_normal_doubles(blocks, out->doubles);
        for (int i = 0; i < 2 * blocks->count; i++)
            out->doubles[i] = mean + deviation * out->doubles[i];
        return COMPUTE_F64;
    }
    float mean_float = (float)mean, deviation_float = (float)deviation;
    CPU_CHOOSE(random_normals)(blocks, out->floats);
    for (int i = 0; i < 2 * blocks->count; i++)
        out->floats[i] = mean_float + deviation_float * out->floats[i];
    return COMPUTE_F32;
}

// The high half of bits times range: every number comes up as often as the next, but for 2^-64 of
// the range.
static CpuCompute make_integers(const Random *random, const RandomBlocks *blocks,
                                RandomNumbers *out) {
    __extension__ typedef unsigned __int128 Wide;
    uint64_t low = (uint64_t)random->options->integers[2];
    uint64_t range = (uint64_t)random->options->integers[3] - low;
    for (int i = 0; i < 2 * blocks->count; i++)
        out->integers[i] = (int64_t)(low + (uint64_t)((Wide)bits_at(blocks, i) * range >> 64));
    return COMPUTE_I64;
}

static CpuCompute make_bernoulli(const Random *random, const RandomBlocks *blocks,
                                 RandomNumbers *out) {
    double probability = random->options->scalars[0];
    for (int i = 0; i < 2 * blocks->count; i++)
        out->floats[i] = fraction_at(blocks, i) < probability ? 1 : 0;
    return COMPUTE_F32;
}

typedef CpuCompute (*MakeNumbers)(const Random *random, const RandomBlocks *blocks,
                                  RandomNumbers *out);
static const MakeNumbers distributions[DISTRIBUTION_COUNT] = {
    [RANDOM_UNIFORM] = make_uniform,
    [RANDOM_NORMAL] = make_normal,
    [RANDOM_INTEGERS] = make_integers,
    [RANDOM_BERNOULLI] = make_bernoulli,
};

// --- the kernel ----------------------------------------------------------------------------------

// [begin, end) are chunks of the stream; the first and the last may reach beyond the tensor.
static void fill_chunks(void *context, int64_t begin, int64_t end) {
    const Random *random = context;
    const TensorView *out = random->out;
    int64_t total = view_count(out), size = (int64_t)dtype_size(random->dtype);
    uint64_t key = stream_key(random->options), counter = stream_counter(random->options);
    uint64_t first_chunk = counter / CHUNK_ELEMENTS;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        RandomNumbers numbers;
        uint64_t position = (first_chunk + (uint64_t)chunk) * CHUNK_ELEMENTS;
        int64_t at = (int64_t)(position - counter); // in the tensor, may be negative
        int64_t skip = at < 0 ? -at : 0;
        int64_t stop = total - at < CHUNK_ELEMENTS ? total - at : CHUNK_ELEMENTS;
        int64_t made = skip / GROUP_ELEMENTS * GROUP_ELEMENTS; // from here on, in whole groups
        int64_t groups = (stop - made + GROUP_ELEMENTS - 1) / GROUP_ELEMENTS;
        RandomBlocks blocks;
        blocks.count = (int)groups * RANDOM_GROUP;
        CPU_CHOOSE(random_blocks)(key, (position + (uint64_t)made) / 2, &blocks);
        CpuCompute compute = distributions[random->options->op](random, &blocks, &numbers);
        const char *from = (const char *)&numbers + (size_t)(skip - made) * compute_bytes(compute);
        cpu_convert()->store[compute][random->dtype]((char *)cpu_pointer(out) + (at + skip) * size,
                                                     1, from, stop - skip);
    }
}

double random_largest_below(DType dtype, double bound) {
    double rounded = bound;
    unsigned char element[8];
    CpuCompute compute = COMPUTE_F64;
    const ConvertTable *convert = cpu_convert();
    for (double below = nextafter(bound, -INFINITY), step = fabs(bound) * 0x1p-54; rounded >= bound;
         below = bound - step, step *= 2) {
        convert->store[compute][dtype](element, 1, &below, 1);
        convert->load[compute][dtype](&rounded, element, 1, 1);
        if (step == 0) break;
    }
    return rounded;
}

Status cpu_kernel_RANDOM(const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    if (dtype_is_quant(out->dtype))
        return fail(STATUS_DTYPE, "%s cannot write %s", call->op_name, dtype_name(out->dtype));
    Random random = {
        .options = &call->options, .out = out, .dtype = out->dtype, .uniform_max = INFINITY};
    if (call->options.op == RANDOM_UNIFORM && dtype_is_float(out->dtype))
        random.uniform_max = fmax(call->options.scalars[0],
                                  random_largest_below(out->dtype, call->options.scalars[1]));
    int64_t total = view_count(out);
    if (total == 0) return STATUS_OK;
    uint64_t skipped = stream_counter(&call->options) % CHUNK_ELEMENTS;
    int64_t chunks = (int64_t)((skipped + (uint64_t)total + CHUNK_ELEMENTS - 1) / CHUNK_ELEMENTS);
    cpu_parallel(chunks, 8, fill_chunks, &random);
    return STATUS_OK;
}

// Rounded to float32 as the kernel rounds, which never gives the upper bound.
static double uniform_alone(const KernelOptions *options, double number) {
    double low = options->scalars[0], bound = options->scalars[1];
    float rounded = (float)number;
    if (UNLIKELY((double)rounded >= bound))
        rounded = (float)fmax(low, random_largest_below(DTYPE_FLOAT32, bound));
    return (double)rounded;
}

Scalar random_alone(const KernelOptions *options) {
    Random random = {.options = options, .dtype = DTYPE_FLOAT32, .uniform_max = INFINITY};
    RandomNumbers numbers;
    RandomBlocks blocks;
    blocks.count = options->op == RANDOM_NORMAL ? RANDOM_GROUP : 1;
    uint64_t step = 2 * (uint64_t)blocks.count, counter = stream_counter(options);
    uint64_t element = counter % step;
    CPU_CHOOSE(random_blocks)(stream_key(options), (counter - element) / 2, &blocks);
    switch (distributions[options->op](&random, &blocks, &numbers)) {
    case COMPUTE_I64: return (Scalar){.dtype = DTYPE_INT64, .as.i = numbers.integers[element]};
    case COMPUTE_F64:
        return (Scalar){.dtype = DTYPE_FLOAT64,
                        .as.f = uniform_alone(options, numbers.doubles[element])};
    default: return (Scalar){.dtype = DTYPE_FLOAT64, .as.f = (double)numbers.floats[element]};
    }
}
