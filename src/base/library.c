// Loads shared libraries once and remembers why one could not be loaded.
#include "base/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static void note_problem(Library *library) {
    const char *problem = dlerror();
    strncpy(library->problem, problem ? problem : "it is incomplete", sizeof library->problem - 1);
}

static void open_library(Library *library) {
    ASSERT(library->name_count > 0 && library->problem[0] == '\0');
    void *handle = dlopen(library->file, RTLD_LAZY | (library->global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!handle) {
        note_problem(library);
        return;
    }
    for (size_t i = 0; i < library->name_count; i++) {
        void *found = dlsym(handle, library->names[i]);
        memcpy((char *)library->functions + i * sizeof found, &found, sizeof found);
        if (!found) note_problem(library);
    }
}

static void try_once(Library *library) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&library->tried, memory_order_relaxed)) open_library(library);
    atomic_store_explicit(&library->tried, true, memory_order_release);
    pthread_mutex_unlock(&lock);
}

Status library_load(Library *library) {
    if (!atomic_load_explicit(&library->tried, memory_order_acquire)) try_once(library);
    if (LIKELY(library->problem[0] == '\0')) return STATUS_OK;
    (void)fail(STATUS_DEVICE, "%s need the library %s, which cannot be loaded: %s",
               library->purpose, library->file, library->problem);
    ASSERT(library->package != NULL);
    return fail_help("on Debian and Ubuntu: apt install %s", library->package);
}
