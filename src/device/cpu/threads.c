// Worker threads of the CPU device, started when work is first shared and joined where the process
// ends or unloads us; one set serves all runtimes of the process, as the processors do. A worker
// that is not running when its turn comes is not waited for: whoever has work does all of it that
// nobody else takes, so that programs which share the machine do not stop each other.
#define _GNU_SOURCE // sched_getaffinity
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "device/cpu/cpu.h"
#include "device/settings.h"

enum {
    // Enough pieces that threads of unequal speed finish together, few enough that none is too
    // small.
    PIECES_MAX = 256,
    // How often one looks for more work before it sleeps: some microseconds, what lies between two
    // operations of a program; longer takes time from others.
    LOOKS_MAX = 200,
};

typedef struct Job {
    Runtime *runtime; // whose work it is
    void (*body)(void *context, int64_t begin, int64_t end);
    void *context;
    int64_t count, size, pieces;
    atomic_llong next; // piece that nobody has taken
} Job;

static struct {
    pthread_mutex_t turn; // held by the thread whose job it is
    pthread_mutex_t lock; // of what follows
    pthread_cond_t work, done;
    Job *job;   // NULL: none that a worker may join
    int places; // workers that may still join it
    VECTOR(pthread_t) workers;
    pid_t process;    // that started them; a fork of it has none
    atomic_bool over; // they end, and no more are started
    atomic_int busy;  // of them, in a job
    atomic_uint jobs; // ever published
} pool = {.turn = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static _Thread_local bool inside; // a job: what it shares in turn, it does itself

static int processors(void) {
    cpu_set_t allowed;
    int count = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return count > 0 ? count : 1;
}

int cpu_thread_count(void) {
    static atomic_int decided;
    int threads = atomic_load_explicit(&decided, memory_order_relaxed);
    if (threads > 0) return threads;
    DeviceSettings settings;
    // A malformed value was reported when the device was opened; it cannot come as far as here.
    bool chosen = device_settings_read(&settings) == STATUS_OK && settings.threads > 0;
    threads = chosen ? settings.threads : processors(); // those this process may use
    atomic_store_explicit(&decided, threads, memory_order_relaxed);
    return threads;
}

static void rest_a_little(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void run_piece(const Job *job, int64_t piece) {
    int64_t begin = piece * job->size, end = begin + job->size;
    job->body(job->context, begin, end < job->count ? end : job->count);
}

// Where the process ends meanwhile, workers leave the rest to whoever has the work.
static void run_pieces(Job *job, bool by_worker) {
    while (!cpu_interrupted() && !(by_worker && atomic_load(&pool.over))) {
        int64_t piece = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed);
        if (piece >= job->pieces) return;
        run_piece(job, piece);
    }
}

// False when there will be none. `job` may become NULL: others took its places.
static bool next_job(unsigned *seen, Job **job) {
    for (int i = 0; i < LOOKS_MAX && atomic_load(&pool.jobs) == *seen; i++) rest_a_little();
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.jobs) == *seen && !pool.over)
        pthread_cond_wait(&pool.work, &pool.lock);
    *seen = atomic_load(&pool.jobs);
    ASSERT(pool.places >= 0 && (pool.places == 0 || pool.job));
    *job = pool.places > 0 ? pool.job : NULL;
    if (*job) {
        pool.places--;
        atomic_fetch_add(&pool.busy, 1);
    }
    bool over = pool.over;
    pthread_mutex_unlock(&pool.lock);
    return *job || !over;
}

static void *run_worker(void *argument) {
    (void)argument;
    unsigned seen = 0;
    inside = true;
    for (Job *job; next_job(&seen, &job);) {
        if (!job) continue;
        runtime_current = job->runtime;
        run_pieces(job, true);
        runtime_current = NULL;
        pthread_mutex_lock(&pool.lock);
        if (atomic_fetch_sub(&pool.busy, 1) == 1) pthread_cond_signal(&pool.done);
        pthread_mutex_unlock(&pool.lock);
    }
    return NULL;
}

// Signals are for the threads of the program, but for that of a mapped file that lacks bytes.
// Where the system refuses a thread, fewer share.
static void start_workers(int wanted) {
    if (pool.over || (int)pool.workers.count >= wanted) return;
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pool.process == 0) pool.process = getpid();
    while ((int)pool.workers.count < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_worker, NULL) != 0) break;
        VECTOR_PUSH(&pool.workers, thread);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void cpu_start_threads(void) {
    pthread_mutex_lock(&pool.lock);
    start_workers(cpu_thread_count() - 1);
    pthread_mutex_unlock(&pool.lock);
}

// Before the libraries that they have called are finalized.
__attribute__((destructor)) static void end_workers(void) {
    if (pool.process != getpid()) return;
    pthread_mutex_lock(&pool.lock);
    pool.over = true;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (size_t i = 0; i < pool.workers.count; i++) pthread_join(pool.workers.items[i], NULL);
    VECTOR_FREE(&pool.workers);
}

static void publish(Job *job, int helpers) {
    pthread_mutex_lock(&pool.lock);
    ASSERT(!pool.job && pool.places == 0 && helpers > 0);
    start_workers(helpers);
    pool.job = job;
    pool.places = helpers;
    atomic_fetch_add(&pool.jobs, 1);
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

// All pieces are taken: nobody joins any more, and those who did finish theirs.
static void finish(void) {
    pthread_mutex_lock(&pool.lock);
    pool.job = NULL;
    pool.places = 0;
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < LOOKS_MAX && atomic_load(&pool.busy) > 0; i++) rest_a_little();
    pthread_mutex_lock(&pool.lock);
    while (atomic_load(&pool.busy) > 0) pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

void cpu_parallel(int64_t count, int64_t grain, void (*body)(void *, int64_t, int64_t),
                  void *context) {
    if (count <= 0) return;
    if (count <= grain) {
        body(context, 0, count);
        return;
    }
    Job job = {.runtime = runtime_current, .body = body, .context = context, .count = count};
    job.size = (count + PIECES_MAX - 1) / PIECES_MAX;
    if (job.size < grain) job.size = grain;
    job.pieces = (count + job.size - 1) / job.size;
    int threads = inside ? 1 : cpu_thread_count();
    if (threads > job.pieces) threads = (int)job.pieces;
    if (threads == 1 || pthread_mutex_trylock(&pool.turn) != 0) {
        for (int64_t piece = 0; piece < job.pieces && !cpu_interrupted(); piece++)
            run_piece(&job, piece);
        return;
    }
    publish(&job, threads - 1);
    inside = true;
    run_pieces(&job, false);
    inside = false;
    finish();
    pthread_mutex_unlock(&pool.turn);
}
