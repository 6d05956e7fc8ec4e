// Read-only file mappings with a thread-safe count. Regular files only: anything else has no length
// to map, and opening a pipe could wait for ever.
//
// Somebody else may shorten a file while it is mapped, and a disk may fail: whoever reads its pages
// then, in whichever thread and library, gets SIGBUS. The handler puts zeros in place of what is
// missing, so that the reader comes to its end, and leaves a note of it; file_map_faults makes the
// note an error and puts the file back in place of the zeros, so that they are never read for good.
#define _GNU_SOURCE // MAP_ANONYMOUS
#include "base/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "base/sandbox.h"
#include "base/text.h"

struct FileMap {
    atomic_int refs;
    Runtime *runtime; // that is told of missing bytes, whichever thread read them
    char *path;
    char *bytes; // NULL when the file is empty
    size_t length;
    int descriptor;
    struct timespec written; // when the file was last changed before it was mapped
    bool faulted;            // zeros lie over a part of it
    FileMap *previous, *next;
};

// The maps of the process. The lock is taken by the handler too, which is safe: it runs where a
// mapped file is read, and nobody who holds the lock reads one.
static struct {
    pthread_mutex_t lock;
    FileMap *first;
    size_t page_bytes;
    struct sigaction before; // what SIGBUS did
} maps = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool file_map_holds(const void *address) {
    bool holds = false;
    pthread_mutex_lock(&maps.lock);
    for (const FileMap *map = maps.first; map && !holds; map = map->next) {
        uintptr_t start = (uintptr_t)map->bytes, at = (uintptr_t)address;
        holds = at >= start && at - start < map->length;
    }
    pthread_mutex_unlock(&maps.lock);
    return holds;
}

// Puts zeros from the page of `address` to the end of the map that it lies in.
static bool cover(const char *address) {
    bool covered = false;
    pthread_mutex_lock(&maps.lock);
    for (FileMap *map = maps.first; map && !covered; map = map->next) {
        uintptr_t start = (uintptr_t)map->bytes, at = (uintptr_t)address;
        if (at < start || at - start >= map->length) continue;
        ASSERT(map->length > 0);
        uintptr_t page = at & ~(uintptr_t)(maps.page_bytes - 1);
        covered = mmap((void *)page, start + map->length - page, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
        map->faulted = covered;
        if (covered) atomic_store(&map->runtime->file_faulted, true);
    }
    pthread_mutex_unlock(&maps.lock);
    return covered;
}

// What is not a fault of ours goes the way it went before.
static void on_bus_error(int number, siginfo_t *about, void *context) {
    (void)context;
    int saved = errno;
    bool sent = about->si_code <= 0; // by kill, not by reading
    if (sent || !cover(about->si_addr)) {
        sigaction(SIGBUS, &maps.before, NULL);
        if (sent) raise(number);
    }
    errno = saved;
}

static void start(void) {
    maps.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &maps.before);
}

static void enter(FileMap *map) {
    pthread_mutex_lock(&maps.lock);
    ASSERT(map->next == NULL && map->previous == NULL);
    map->next = maps.first;
    if (map->next) map->next->previous = map;
    maps.first = map;
    pthread_mutex_unlock(&maps.lock);
}

static void leave(FileMap *map) {
    pthread_mutex_lock(&maps.lock);
    ASSERT(map->previous ? map->previous->next == map : maps.first == map);
    ASSERT(!map->next || map->next->previous == map);
    *(map->previous ? &map->previous->next : &maps.first) = map->next;
    if (map->next) map->next->previous = map->previous;
    pthread_mutex_unlock(&maps.lock);
}

// The file again in place of the zeros: who reads what is still missing faults again.
static bool restore(FileMap *map) {
    bool faulted = map->faulted;
    ASSERT(!faulted || map->length > 0);
    if (faulted)
        map->faulted = mmap(map->bytes, map->length, PROT_READ, MAP_PRIVATE | MAP_FIXED,
                            map->descriptor, 0) == MAP_FAILED;
    return faulted;
}

static Status map_descriptor(int descriptor, const char *path, FileMap **out) {
    struct stat about;
    if (fstat(descriptor, &about) != 0)
        return fail(STATUS_IO, "cannot read %s: %s", path, file_problem(errno));
    if (S_ISDIR(about.st_mode))
        return fail(STATUS_IO, "cannot read %s: it is a directory, not a file", path);
    if (!S_ISREG(about.st_mode))
        return fail(STATUS_IO, "cannot read %s: it is not a regular file", path);
    size_t length = (size_t)about.st_size;
    void *bytes = NULL;
    if (length > 0) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        pthread_once(&once, start);
        bytes = mmap(NULL, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
        if (bytes == MAP_FAILED)
            return fail(STATUS_IO, "cannot map %s into memory: %s", path, file_problem(errno));
    }
    FileMap *map = memory_allocate_zeroed(1, sizeof *map);
    atomic_init(&map->refs, 1);
    map->runtime = runtime_current;
    map->path = memory_copy_string(path, strlen(path));
    map->bytes = bytes;
    map->length = length;
    map->descriptor = descriptor;
    map->written = about.st_mtim;
    enter(map);
    *out = map;
    return STATUS_OK;
}

Status file_map_open(const char *path, FileMap **out) {
    SCOPED_TEXT(place);
    const char *found = aside_read(path, &place);
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
    int descriptor = sandbox_allows(found) ? open(found, flags) : -1;
    if (descriptor < 0) return fail(STATUS_IO, "cannot open %s: %s", path, file_problem(errno));
    Status status = map_descriptor(descriptor, path, out);
    if (status != STATUS_OK) close(descriptor);
    return status;
}

FileMap *file_map_retain(FileMap *map) {
    int before = atomic_fetch_add_explicit(&map->refs, 1, memory_order_relaxed);
    ASSERT(before > 0);
    return map;
}

void file_map_release(FileMap *map) {
    if (!map) return;
    int before = atomic_fetch_sub_explicit(&map->refs, 1, memory_order_acq_rel);
    ASSERT(before > 0);
    if (before > 1) return;
    leave(map);
    if (map->bytes) munmap(map->bytes, map->length);
    close(map->descriptor);
    free(map->path);
    free(map);
}

const uint8_t *file_map_bytes(const FileMap *map) {
    return (const uint8_t *)map->bytes;
}

size_t file_map_length(const FileMap *map) {
    return map->length;
}

void file_map_evict(const void *begin, size_t bytes) {
    ASSERT(bytes <= UINTPTR_MAX - (uintptr_t)begin);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = (uintptr_t)begin;
    uintptr_t first = (start + page - 1) / page * page, end = (start + bytes) / page * page;
    if (end > first) madvise((void *)first, end - first, MADV_DONTNEED); // only advice
}

const char *file_map_path(const FileMap *map) {
    return map->path;
}

static Status fail_changed(const FileMap *map, const struct stat *now) {
    if ((size_t)now->st_size != map->length)
        fail(STATUS_IO, "%s was changed while it was in use: it had %zu bytes and has %zu",
             map->path, map->length, (size_t)now->st_size);
    else
        fail(STATUS_IO, "%s was written to while it was in use", map->path);
    return fail_help("write a new version to another file and rename that: whoever has the old one "
                     "open keeps it");
}

static Status check(const FileMap *map, bool faulted) {
    struct stat now;
    if (fstat(map->descriptor, &now) != 0)
        return fail(STATUS_IO, "cannot read %s: %s", map->path, file_problem(errno));
    if ((size_t)now.st_size != map->length || now.st_mtim.tv_sec != map->written.tv_sec ||
        now.st_mtim.tv_nsec != map->written.tv_nsec)
        return fail_changed(map, &now);
    if (!faulted) return STATUS_OK;
    return fail(STATUS_IO, "cannot read %s: the system did not deliver its bytes", map->path);
}

Status file_map_check(FileMap *map) {
    pthread_mutex_lock(&maps.lock);
    bool faulted = restore(map);
    pthread_mutex_unlock(&maps.lock);
    return check(map, faulted);
}

Status file_map_faults(void) {
    if (LIKELY(!file_map_faulted())) return STATUS_OK;
    Status status = STATUS_OK;
    pthread_mutex_lock(&maps.lock);
    atomic_store(&runtime_current->file_faulted, false);
    for (FileMap *map = maps.first; map; map = map->next)
        if (map->runtime == runtime_current && restore(map)) status = check(map, true);
    pthread_mutex_unlock(&maps.lock);
    return status;
}
