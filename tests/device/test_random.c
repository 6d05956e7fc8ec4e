// RANDOM: published answers of Philox, numbers that depend on key and counter alone, bounds,
// moments, and the same bits from every instruction set and number of threads.
#include "arrays.h"
#include "device/cpu/iterate.h"

typedef struct Draw {
    DType dtype;
    int op;
    int64_t count, key, counter;
    double scalars[2];
    int64_t low, high;
} Draw;

static Array draw(const Draw *d) {
    Array out;
    array_make(&out, d->dtype, LAYOUT_PLAIN, 1, &d->count);
    KernelCall call = {.outputs = {array_view(&out)},
                       .options = {.op = d->op,
                                   .scalars = {d->scalars[0], d->scalars[1]},
                                   .integers = {d->key, d->counter, d->low, d->high}},
                       .op_name = "rand"};
    assert_int_equal(run_kernel(KERNEL_RANDOM, &call), STATUS_OK);
    return out;
}

// Random123's known answer for counter 0 and key 0: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
static void test_known_answer(void **state) {
    (void)state;
    Array out = draw(&(Draw){DTYPE_INT64, 2, 2, 0, 0, {0}, 0, 1LL << 32});
    assert_int_equal((int64_t)array_get(&out, 0), 0x6627e8d5);
    assert_int_equal((int64_t)array_get(&out, 1), 0xbc57ac4c);
    array_free(&out);
}

static const Draw kinds[] = {
    {DTYPE_FLOAT32, 0, 0, 0, 0, {-1, 3}, 0, 0}, {DTYPE_FLOAT64, 0, 0, 0, 0, {0, 1}, 0, 0},
    {DTYPE_FLOAT16, 0, 0, 0, 0, {0, 1}, 0, 0},  {DTYPE_BFLOAT16, 0, 0, 0, 0, {2, 3}, 0, 0},
    {DTYPE_FLOAT32, 1, 0, 0, 0, {0, 1}, 0, 0},  {DTYPE_FLOAT64, 1, 0, 0, 0, {5, 2}, 0, 0},
    {DTYPE_FLOAT16, 1, 0, 0, 0, {0, 1}, 0, 0},  {DTYPE_INT64, 2, 0, 0, 0, {0}, -3, 9},
    {DTYPE_UINT8, 2, 0, 0, 0, {0}, 0, 256},     {DTYPE_BOOL, 3, 0, 0, 0, {0.25}, 0, 0},
    {DTYPE_FLOAT32, 3, 0, 0, 0, {0.25}, 0, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void test_counter_alone_decides(void **state) {
    (void)state;
    static const int64_t starts[] = {1, 2, 255, 511, 512, 513, 1500};
    static const int64_t counts[] = {1000, 1, 15, 17, 2, 16, 600};
    for (int k = 0; k < KINDS; k++) {
        Draw all = kinds[k];
        all.count = 6000;
        all.key = 42;
        Array whole = draw(&all);
        for (int s = 0; s < 7; s++) {
            Draw part = all;
            part.counter = starts[s];
            part.count = counts[s];
            Array out = draw(&part);
            assert_memory_equal(array_at(&out, 0), array_at(&whole, starts[s]),
                                (size_t)part.count * dtype_size(part.dtype));
            array_free(&out);
        }
        all.key = 43;
        Array other = draw(&all);
        int64_t equal = 0;
        for (int64_t i = 0; i < all.count; i++)
            equal += array_get(&other, i) == array_get(&whole, i);
        assert_true(equal < all.count * 3 / 4);
        array_free(&other);
        array_free(&whole);
    }
}

static void test_uniform_bounds(void **state) {
    (void)state;
    static const DType floats[] = {DTYPE_FLOAT16, DTYPE_BFLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    static const double bounds[][2] = {{0, 1}, {-1, 1}, {-1, 0}, {2, 3}, {0, 0.1}, {7, 7}};
    for (int d = 0; d < 4; d++)
        for (int b = 0; b < 6; b++) {
            Draw uniform = {floats[d], 0, 100000, b, 0, {bounds[b][0], bounds[b][1]}, 0, 0};
            Array out = draw(&uniform);
            double sum = 0;
            for (int64_t i = 0; i < uniform.count; i++) {
                double value = array_get(&out, i);
                assert_true(value >= bounds[b][0]);
                assert_true(value < bounds[b][1] || b == 5);
                sum += value;
            }
            double middle = (bounds[b][0] + bounds[b][1]) / 2, width = bounds[b][1] - bounds[b][0];
            assert_true(fabs(sum / (double)uniform.count - middle) <= width * 0.005 + 1e-9);
            array_free(&out);
        }
}

static void test_normal_moments(void **state) {
    (void)state;
    static const DType floats[] = {DTYPE_FLOAT16, DTYPE_FLOAT32, DTYPE_FLOAT64};
    enum { COUNT = 400000 };
    for (int d = 0; d < 3; d++) {
        Draw normal = {floats[d], 1, COUNT, 7, 0, {0, 1}, 0, 0};
        Array out = draw(&normal);
        double moments[5] = {0}, beyond_two = 0, correlation = 0, previous = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            double value = array_get(&out, i), power = 1;
            for (int m = 0; m < 5; m++, power *= value) moments[m] += power / COUNT;
            beyond_two += fabs(value) > 2;
            correlation += value * previous / COUNT;
            previous = value;
        }
        assert_true(fabs(moments[1]) < 0.01);
        assert_true(fabs(moments[2] - 1) < 0.01);
        assert_true(fabs(moments[3]) < 0.03);
        assert_true(fabs(moments[4] - 3) < 0.06);
        assert_true(fabs(beyond_two / COUNT - 0.0455) < 0.002);
        assert_true(fabs(correlation) < 0.01);
        array_free(&out);
    }
}

// Box-Muller in double from the words themselves, which the known answer vouches for.
static void test_normal_against_double(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    Array words = draw(&(Draw){DTYPE_INT64, 2, COUNT, 9, 0, {0}, 0, 1LL << 32});
    Array normals = draw(&(Draw){DTYPE_FLOAT32, 1, COUNT, 9, 0, {0, 1}, 0, 0});
    for (int64_t i = 0; i < COUNT; i += 2) {
        double first = floor(array_get(&words, i) / 256) + 1, turn = array_get(&words, i + 1);
        double radius = sqrt(-2 * log(first * 0x1p-24)), angle = turn * 0x1p-32 * 2 * M_PI;
        assert_true(fabs(array_get(&normals, i) - radius * cos(angle)) < 3e-6);
        assert_true(fabs(array_get(&normals, i + 1) - radius * sin(angle)) < 3e-6);
    }
    array_free(&words);
    array_free(&normals);
}

static void test_integers_and_bernoulli(void **state) {
    (void)state;
    enum { COUNT = 120000 };
    Array out = draw(&(Draw){DTYPE_INT32, 2, COUNT, 1, 0, {0}, -2, 4});
    int64_t seen[6] = {0};
    for (int64_t i = 0; i < COUNT; i++) {
        double value = array_get(&out, i);
        assert_true(value >= -2 && value < 4);
        seen[(int)value + 2]++;
    }
    for (int i = 0; i < 6; i++) assert_true(llabs(seen[i] - COUNT / 6) < 600);
    array_free(&out);
    static const double probabilities[] = {0, 0.3, 1};
    for (int p = 0; p < 3; p++) {
        out = draw(&(Draw){DTYPE_BOOL, 3, COUNT, 1, 0, {probabilities[p]}, 0, 0});
        double ones = 0;
        for (int64_t i = 0; i < COUNT; i++) ones += array_get(&out, i);
        double slack = p == 1 ? 0.01 : 0;
        assert_true(fabs(ones / COUNT - probabilities[p]) <= slack);
        array_free(&out);
    }
}

static uint64_t checksum(void) {
    uint64_t sum = 14695981039346656037u;
    for (int k = 0; k < KINDS; k++) {
        Draw all = kinds[k];
        all.count = 300001;
        all.key = 5;
        Array out = draw(&all);
        const unsigned char *bytes = out.buffer.handle;
        size_t length = (size_t)all.count * dtype_size(all.dtype);
        for (size_t i = 0; i < length; i++) sum = (sum ^ bytes[i]) * 1099511628211u;
        array_free(&out);
    }
    return sum;
}

// Each setting is decided once a process, so each is tried in its own.
static uint64_t checksum_under(const char *isa, const char *threads) {
    int ends[2];
    uint64_t sum = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        setenv("TL_ISA", isa, 1);
        setenv("TL_THREADS", threads, 1);
        sum = checksum();
        _exit(write(ends[1], &sum, sizeof sum) == sizeof sum ? 0 : 1);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &sum, sizeof sum), sizeof sum);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return sum;
}

static int compare_machines(void) {
    uint64_t expected = checksum_under("base", "1");
    int failed = checksum_under("base", "2") != expected;
    failed += checksum_under("base", "5") != expected;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) failed += checksum_under("avx2", "2") != expected;
    if (__builtin_cpu_supports("avx512bw")) failed += checksum_under("avx512", "2") != expected;
#endif
    if (failed) fprintf(stderr, "random numbers differ between instruction sets or threads\n");
    return failed;
}

static int suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answer),          cmocka_unit_test(test_counter_alone_decides),
        cmocka_unit_test(test_uniform_bounds),        cmocka_unit_test(test_normal_moments),
        cmocka_unit_test(test_normal_against_double), cmocka_unit_test(test_integers_and_bernoulli),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    return compare_machines() + run_per_isa(suite);
}
