// Mapped files that change under their readers.
#define _GNU_SOURCE // utimensat
#include "base/file_map.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// After those that it needs.
#include <cmocka.h>

enum { PAGE_BYTES = 4096, PAGES = 8, FILE_BYTES = PAGES * PAGE_BYTES };

static const char path[] = "mapped";

// A file of ones.
static FileMap *map_ones(void) {
    int descriptor = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    char ones[FILE_BYTES];
    memset(ones, 1, sizeof ones);
    assert_int_equal(write(descriptor, ones, sizeof ones), sizeof ones);
    close(descriptor);
    FileMap *map;
    assert_int_equal(file_map_open(path, &map), STATUS_OK);
    return map;
}

static void forget(FileMap *map) {
    file_map_release(map);
    unlink(path);
}

static int sum(const FileMap *map) {
    const volatile uint8_t *bytes = file_map_bytes(map);
    int total = 0;
    for (size_t i = 0; i < file_map_length(map); i++) total += bytes[i];
    return total;
}

static void expect_error(Status status, const char *words) {
    assert_int_equal(status, STATUS_IO);
    assert_string_equal(error_current()->message, words);
}

static void test_unchanged(void) {
    FileMap *map = map_ones();
    assert_int_equal(sum(map), FILE_BYTES);
    assert_int_equal(file_map_faults(), STATUS_OK);
    assert_int_equal(file_map_check(map), STATUS_OK);
    forget(map);
}

// Each reading of what is missing is an error of its own; zeros are never left in place.
static void test_shortened(void) {
    FileMap *map = map_ones(), *other;
    assert_int_equal(file_map_open(path, &other), STATUS_OK);
    assert_int_equal(truncate(path, PAGE_BYTES), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sum(map), PAGE_BYTES);
        expect_error(file_map_faults(), "mapped was changed while it was in use: it had 32768 "
                                        "bytes and has 4096");
        assert_int_equal(file_map_faults(), STATUS_OK);
    }
    assert_int_equal(sum(other), PAGE_BYTES);
    expect_error(file_map_check(other),
                 "mapped was changed while it was in use: it had 32768 bytes and has 4096");
    file_map_release(other);
    forget(map);
}

static void *sum_in_thread(void *map) {
    return (void *)(intptr_t)sum(map);
}

static void test_threads(void) {
    enum { THREADS = 8 };
    FileMap *map = map_ones();
    pthread_t threads[THREADS];
    assert_int_equal(truncate(path, 0), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sum_in_thread, map), 0);
    for (int i = 0; i < THREADS; i++) {
        void *total;
        pthread_join(threads[i], &total);
        assert_null(total);
    }
    expect_error(file_map_faults(),
                 "mapped was changed while it was in use: it had 32768 bytes and has 0");
    forget(map);
}

// What the system fails to deliver although the file is as it was: a disk that fails looks like a
// file that was short for a moment.
static void test_bytes_not_delivered(void) {
    FileMap *map = map_ones();
    struct stat before;
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(sum(map), 0);
    assert_int_equal(truncate(path, FILE_BYTES), 0);
    struct timespec times[2] = {before.st_atim, before.st_mtim};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    expect_error(file_map_faults(), "cannot read mapped: the system did not deliver its bytes");
    assert_int_equal(file_map_check(map), STATUS_OK);
    forget(map);
}

static void test_rewritten(void) {
    FileMap *map = map_ones();
    struct timespec times[2] = {{0, UTIME_OMIT}, {12345, 0}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    expect_error(file_map_check(map), "mapped was written to while it was in use");
    forget(map);
}

// A bus error that is none of ours ends the process as it always did.
static void end_by_bus_error(bool sent) {
    FileMap *map = map_ones();
    pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(10);
        if (sent) raise(SIGBUS);
        int descriptor = open(path, O_RDONLY);
        volatile char *foreign =
            mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, descriptor, FILE_BYTES);
        _exit(foreign[0]);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_false(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
    forget(map);
}

static void test_foreign_faults(void) {
    end_by_bus_error(true);
    end_by_bus_error(false);
}

// One test, because cmocka takes the signal for itself at the beginning of each.
static void test_mapped_files(void **state) {
    (void)state;
    char folder[] = "/tmp/tl_file_map_XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    signal(SIGBUS, SIG_DFL);
    test_unchanged();
    test_shortened();
    test_threads();
    test_bytes_not_delivered();
    test_rewritten();
    test_foreign_faults();
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mapped_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
