// SCATTER that adds, against sums in long double: many lists and one, shared ones, numbers of very
// different sizes, infinite ones, and on devices that add by atomic operations the same bits in
// every order.
#include "arrays.h"
#include "opened.h"

static bool is_vulkan(void) {
    const char *name = getenv("TL_TEST_DEVICE");
    return name && strncmp(name, "vulkan", 6) == 0;
}

typedef struct Lists {
    int64_t lists, places, length;
    bool turned, slices; // lists go down columns; they share their indexes
} Lists;

typedef struct Sums {
    Lists shape;
    Array out, source, index;
} Sums;

static void make(Array *array, DType dtype, int64_t rows, int64_t columns) {
    array_make(array, dtype, LAYOUT_PLAIN, 2, (int64_t[]){rows, columns});
    array->buffer.device = device;
}

static Sums make_sums(Lists shape, DType dtype) {
    Sums sums = {.shape = shape};
    int64_t lists = shape.lists;
    bool turned = shape.turned;
    make(&sums.out, dtype, turned ? shape.places : lists, turned ? lists : shape.places);
    make(&sums.source, dtype, turned ? shape.length : lists, turned ? lists : shape.length);
    if (shape.slices)
        array_make(&sums.index, DTYPE_INT64, LAYOUT_PLAIN, 1, &shape.length);
    else
        make(&sums.index, DTYPE_INT64, turned ? shape.length : lists,
             turned ? lists : shape.length);
    return sums;
}

static void free_sums(Sums *sums) {
    array_free(&sums->out);
    array_free(&sums->source);
    array_free(&sums->index);
}

static int64_t at(const Sums *sums, int64_t list, int64_t i, int64_t along) {
    return sums->shape.turned ? i * sums->shape.lists + list : list * along + i;
}

static int64_t index_of(const Sums *sums, int64_t list, int64_t i) {
    int64_t number = sums->shape.slices ? i : at(sums, list, i, sums->shape.length);
    int64_t place = (int64_t)array_get(&sums->index, number);
    return place < 0 ? place + sums->shape.places : place;
}

static void run(Sums *sums) {
    KernelCall call = {
        .inputs = {{.view = array_view(&sums->source)}, {.view = array_view(&sums->index)}},
        .outputs = {array_view(&sums->out)},
        .options = {.op = 1, .dim = !sums->shape.turned, .integers = {sums->shape.slices}},
        .op_name = "scatter_add"};
    assert_int_equal(run_kernel(KERNEL_SCATTER, &call), STATUS_OK);
}

// Numbers of a place are of its own size, from 2^-70 to 2^50; some are 2^30 times smaller.
static void fill(Sums *sums) {
    const Lists *s = &sums->shape;
    for (int64_t i = 0; i < array_count(&sums->index.view); i++)
        array_set(&sums->index, i,
                  (double)((int64_t)(array_random() % (uint64_t)s->places)) -
                      (i % 5 == 0 ? (double)s->places : 0));
    for (int64_t list = 0; list < s->lists; list++) {
        for (int64_t i = 0; i < s->places; i++)
            array_set(&sums->out, at(sums, list, i, s->places),
                      ldexp(array_random_real(), (int)(i % 13 * 10) - 70));
        for (int64_t i = 0; i < s->length; i++) {
            int64_t place = index_of(sums, list, i);
            double x = ldexp(array_random_real(), (int)(place % 13 * 10) - 70);
            array_set(&sums->source, at(sums, list, i, s->length), i % 7 == 0 ? x * 0x1p-30 : x);
        }
    }
}

static void check(Lists shape) {
    Sums sums = make_sums(shape, DTYPE_FLOAT32);
    fill(&sums);
    int64_t results = shape.lists * shape.places;
    long double *expected = calloc((size_t)results, sizeof *expected);
    long double *sizes = calloc((size_t)results, sizeof *sizes);
    for (int64_t i = 0; i < results; i++) expected[i] = array_get(&sums.out, i);
    for (int64_t i = 0; i < results; i++) sizes[i] = fabsl(expected[i]);
    for (int64_t list = 0; list < shape.lists; list++)
        for (int64_t i = 0; i < shape.length; i++) {
            int64_t place = at(&sums, list, index_of(&sums, list, i), shape.places);
            double x = array_get(&sums.source, at(&sums, list, i, shape.length));
            expected[place] += x;
            sizes[place] += fabs(x);
        }
    run(&sums);
    double wide = is_vulkan() ? 0x1p-40 : (double)shape.length * 0x1p-24; // of sums under way
    for (int64_t i = 0; i < results; i++) {
        long double bound = 0x1p-24L * fabsl(expected[i]) + wide * sizes[i];
        assert_true(fabsl(array_get(&sums.out, i) - expected[i]) <= bound);
    }
    free(expected);
    free(sizes);
    free_sums(&sums);
}

static void test_sizes(void **state) {
    (void)state;
    check((Lists){.lists = 1, .places = 1000, .length = 20000});
    check((Lists){.lists = 1, .places = 9000, .length = 9000});
    check((Lists){.lists = 1, .places = 3, .length = 5000});
    check((Lists){.lists = 100, .places = 77, .length = 300});
    check((Lists){.lists = 70, .places = 2000, .length = 1500});
    check((Lists){.lists = 7, .places = 300, .length = 500});
    check((Lists){.lists = 5, .places = 60, .length = 900, .turned = true});
    check((Lists){.lists = 70, .places = 60, .length = 200, .turned = true});
    check((Lists){.lists = 3, .places = 60, .length = 900, .turned = true, .slices = true});
    check((Lists){.lists = 3, .places = 60, .length = 900, .slices = true});
    check((Lists){.lists = 1, .places = 5000, .length = 100}); // most places get nothing
}

// The same numbers the other way round.
static void check_order(Lists shape) {
    Sums sums = make_sums(shape, DTYPE_FLOAT32), turned = make_sums(shape, DTYPE_FLOAT32);
    fill(&sums);
    for (int64_t i = 0; i < shape.lists * shape.places; i++)
        array_set(&turned.out, i, array_get(&sums.out, i));
    for (int64_t list = 0; list < shape.lists; list++)
        for (int64_t i = 0; i < shape.length; i++) {
            int64_t from = at(&sums, list, i, shape.length);
            int64_t to = at(&sums, list, shape.length - 1 - i, shape.length);
            array_set(&turned.index, to, array_get(&sums.index, from));
            array_set(&turned.source, to, array_get(&sums.source, from));
        }
    run(&sums);
    run(&turned);
    for (int64_t i = 0; i < shape.lists * shape.places; i++)
        assert_true(array_get(&sums.out, i) == array_get(&turned.out, i));
    free_sums(&sums);
    free_sums(&turned);
}

static void test_order_of_numbers(void **state) {
    (void)state;
    if (!is_vulkan()) return; // the CPU adds in order
    check_order((Lists){.lists = 1, .places = 1000, .length = 30000});
    check_order((Lists){.lists = 65, .places = 50, .length = 2000});
}

static void check_special(Lists shape) {
    Sums sums = make_sums(shape, DTYPE_FLOAT32);
    for (int64_t i = 0; i < shape.lists * shape.places; i++) array_set(&sums.out, i, 1);
    for (int64_t list = 0; list < shape.lists; list++)
        for (int64_t i = 0; i < shape.length; i++) {
            int64_t place = i % shape.places;
            double x = i < shape.places * 3 ? 0.25 : 0; // zeros are small numbers too
            if (i / shape.places == 1 && (place == 1 || place == 3)) x = INFINITY;
            if (i / shape.places == 2 && (place == 2 || place == 3)) x = -INFINITY;
            if (i / shape.places == 1 && place == 4) x = NAN;
            if (place == 5) x = i / shape.places == 1 ? 0x1p-149 : 0; // the smallest of all
            array_set(&sums.index, at(&sums, list, i, shape.length), (double)place);
            array_set(&sums.source, at(&sums, list, i, shape.length), x);
        }
    run(&sums);
    for (int64_t list = 0; list < shape.lists; list++) {
        double got[6];
        for (int64_t i = 0; i < 6; i++)
            got[i] = array_get(&sums.out, at(&sums, list, i, shape.places));
        assert_true(got[0] == 1.75 && got[5] == 1);
        assert_true(isinf(got[1]) && got[1] > 0 && isinf(got[2]) && got[2] < 0);
        assert_true(isnan(got[3]) && isnan(got[4]));
    }
    free_sums(&sums);
}

static void test_special_numbers(void **state) {
    (void)state;
    check_special((Lists){.lists = 1, .places = 200, .length = 2000});
    check_special((Lists){.lists = 66, .places = 20, .length = 100});
}

// Where larger ones cancel, a number that reaches below the last unit of a place's sum counts as
// its nearest multiple; another place has larger ones still.
static void check_nearest(Lists shape) {
    Sums sums = make_sums(shape, DTYPE_FLOAT32);
    int shift = 38; // bits below the largest number of a sum
    for (int64_t n = shape.length; n > 0; n /= 2) shift--;
    double small = ldexp(1, -40), unit = ldexp(small, -shift - 23);
    double least = ldexp(small, -shift - 2) + 3 * unit / 4;
    const double numbers[] = {small, -small, least, 1};
    for (int64_t i = 0; i < shape.lists * shape.places; i++) array_set(&sums.out, i, 0);
    for (int64_t list = 0; list < shape.lists; list++)
        for (int64_t i = 0; i < shape.length; i++) {
            int64_t number = at(&sums, list, i, shape.length);
            array_set(&sums.index, number, i < 3 ? 3 : 4);
            array_set(&sums.source, number, i < 4 ? numbers[i] : 0);
        }
    run(&sums);
    for (int64_t list = 0; list < shape.lists; list++) {
        double got = array_get(&sums.out, at(&sums, list, 3, shape.places));
        assert_true(fabs(got - least) <= unit / 2);
    }
    free_sums(&sums);
}

static void test_nearest_unit(void **state) {
    (void)state;
    check_nearest((Lists){.lists = 1, .places = 200, .length = 2000});
    check_nearest((Lists){.lists = 66, .places = 20, .length = 100});
}

static void check_integers(DType dtype) {
    Sums sums = make_sums((Lists){.lists = 3, .places = 50, .length = 2000}, dtype);
    double expected[150];
    for (int64_t i = 0; i < 150; i++) array_set(&sums.out, i, expected[i] = (double)(i % 7));
    for (int64_t i = 0; i < 6000; i++) {
        array_set(&sums.index, i, (double)(array_random() % 50));
        array_set(&sums.source, i, (double)(i % 11) - 7);
        expected[i / 2000 * 50 + (int64_t)array_get(&sums.index, i)] += (double)(i % 11) - 7;
    }
    run(&sums);
    for (int64_t i = 0; i < 150; i++) assert_true(array_get(&sums.out, i) == expected[i]);
    free_sums(&sums);
}

static void test_integers(void **state) {
    (void)state;
    check_integers(DTYPE_INT16);
    check_integers(DTYPE_INT32);
    check_integers(DTYPE_INT64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),           cmocka_unit_test(test_order_of_numbers),
        cmocka_unit_test(test_special_numbers), cmocka_unit_test(test_nearest_unit),
        cmocka_unit_test(test_integers),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
