// Worker threads and strided walks: everything is done exactly once, in pieces that do not depend
// on the number of threads.
#include <pthread.h>
#include <unistd.h>

#include "arrays.h"
#include "device/cpu/iterate.h"
#include "runtime/runtime.h"

enum { COUNT = 100003 };

static unsigned char visited[COUNT];
static uint64_t boundaries; // a sum over pieces: the order they run in does not matter

static void visit(void *context, int64_t begin, int64_t end) {
    (void)context;
    for (int64_t i = begin; i < end; i++) visited[i]++;
    uint64_t mark = (uint64_t)begin * 1000003u + (uint64_t)end;
    __atomic_fetch_add(&boundaries, mark * mark, __ATOMIC_RELAXED);
}

static void test_every_index_once(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 99, 256, 257, 1000, COUNT};
    static const int64_t grains[] = {1, 3, 100, COUNT};
    for (int c = 0; c < 8; c++)
        for (int g = 0; g < 4; g++) {
            memset(visited, 0, sizeof visited);
            cpu_parallel(counts[c], grains[g], visit, NULL);
            for (int64_t i = 0; i < COUNT; i++) assert_int_equal(visited[i], i < counts[c]);
        }
}

static void nest(void *context, int64_t begin, int64_t end) {
    (void)context;
    for (int64_t i = begin; i < end; i++) cpu_parallel(100, 1, visit, NULL);
}

static void test_nested(void **state) {
    (void)state;
    memset(visited, 0, sizeof visited);
    cpu_parallel(1, 1, nest, NULL);
    for (int64_t i = 0; i < 100; i++) assert_int_equal(visited[i], 1);
}

typedef struct Marks {
    unsigned char seen[2000];
    unsigned random;
    bool exact;
} Marks;

static void mark(void *context, int64_t begin, int64_t end) {
    Marks *marks = context;
    for (int64_t i = begin; i < end; i++) marks->seen[i]++;
}

// Jobs of any size one after the other: at once, so that workers look for them, and after pauses,
// so that they sleep.
static void *run_jobs(void *context) {
    Marks *marks = context;
    runtime_enter(runtime_new());
    marks->exact = true;
    for (int job = 0; job < 3000; job++) {
        int64_t count = 1 + rand_r(&marks->random) % (int)sizeof marks->seen;
        memset(marks->seen, 0, sizeof marks->seen);
        cpu_parallel(count, 1 + rand_r(&marks->random) % 40, mark, marks);
        for (int64_t i = 0; i < (int64_t)sizeof marks->seen; i++)
            marks->exact &= marks->seen[i] == (i < count);
        if (job % 100 == 0) usleep((unsigned)rand_r(&marks->random) % 300);
    }
    runtime_free(runtime_current);
    return NULL;
}

static void test_jobs_of_several_threads(void **state) {
    (void)state;
    static Marks marks[3];
    pthread_t threads[3];
    for (unsigned i = 0; i < 3; i++) {
        marks[i].random = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, run_jobs, &marks[i]), 0);
    }
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) assert_true(marks[i].exact);
}

static void count_row(void *context, char *const *pointers, const int64_t *strides, int64_t count) {
    (void)context;
    assert_null(pointers[2]);
    assert_int_equal(strides[2], 0);
    for (int64_t i = 0; i < count; i++) {
        int32_t *to = (int32_t *)(void *)(pointers[0] + i * strides[0]);
        *to += *(const int16_t *)(const void *)(pointers[1] + i * strides[1]) + 1;
    }
}

// A sum over two views whose layouts, dims and order of dims are drawn anew each time.
static void test_walks(void **state) {
    (void)state;
    for (int round = 0; round < 400; round++) {
        int rank = (int)(array_random() % 5);
        int64_t dims[4];
        for (int d = 0; d < rank; d++) dims[d] = (int64_t)(array_random() % 9);
        if (rank == 2 && round % 4 == 0) dims[round / 4 % 2] = 20000;
        Array out, in;
        array_make(&out, DTYPE_INT32, (Layout)(array_random() % LAYOUT_COUNT), rank, dims);
        array_make(&in, DTYPE_INT16, (Layout)(array_random() % LAYOUT_COUNT), rank, dims);
        for (int64_t i = 0; i < array_count(&in.view); i++) {
            array_set(&out, i, 5);
            array_set(&in, i, (double)(i % 1000));
        }
        if (rank == 3 && dims[1] > 0 && round % 3 == 0) in.view.strides[1] = 0;
        const TensorView *views[] = {array_view(&out), array_view(&in), NULL};
        Iteration iteration;
        iterate_prepare(&iteration, 3, views);
        (round % 2 ? iterate_run_serial : iterate_run)(&iteration, count_row, NULL);
        for (int64_t i = 0; i < array_count(&in.view); i++)
            assert_true(array_get(&out, i) == array_get(&in, i) + 6);
        array_free(&out);
        array_free(&in);
    }
}

static void test_contiguous_dims_merge(void **state) {
    (void)state;
    Array array;
    int64_t dims[] = {3, 1, 4, 5};
    array_make(&array, DTYPE_FLOAT32, LAYOUT_PLAIN, 4, dims);
    const TensorView *views[] = {array_view(&array)};
    Iteration iteration;
    iterate_prepare(&iteration, 1, views);
    assert_int_equal(iteration.walk.rank, 1);
    assert_int_equal(iteration.count, 60);
    assert_int_equal(iteration.rows, 1);
    assert_true(view_is_contiguous(array_view(&array)));
    array.view.strides[0] = 40;
    assert_false(view_is_contiguous(array_view(&array)));
    array_free(&array);
}

static int suite(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_index_once),        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_jobs_of_several_threads), cmocka_unit_test(test_walks),
        cmocka_unit_test(test_contiguous_dims_merge),
    };
    boundaries = 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void) {
    static const char *const threads[] = {"1", "2", "7"};
    uint64_t first = 0;
    int failed = 0;
    for (int i = 0; i < 3; i++) {
        int ends[2];
        if (pipe(ends) != 0) return 1;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0) {
            setenv("TL_THREADS", threads[i], 1);
            int result = suite() + (cpu_thread_count() != atoi(threads[i]));
            if (write(ends[1], &boundaries, sizeof boundaries) != sizeof boundaries) result++;
            exit(result);
        }
        close(ends[1]);
        uint64_t pieces = 0;
        int status = 1;
        if (read(ends[0], &pieces, sizeof pieces) != sizeof pieces) failed++;
        close(ends[0]);
        waitpid(child, &status, 0);
        if (i == 0) first = pieces;
        failed += status != 0 || pieces != first;
    }
    if (failed) fprintf(stderr, "failed, or the pieces depend on the number of threads\n");
    return failed;
}
