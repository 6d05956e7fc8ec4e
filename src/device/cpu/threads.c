// Worker threads of the CPU device, started when work is first shared and joined where the process
// ends or unloads us; one set serves all runtimes of the process, as the processors do. A worker
// that is not running when its turn comes is not waited for: whoever has work does all of it that
// nobody else takes, so that programs which share the machine do not stop each other.
//
// No lock lies between a job and the workers: with sixteen of them a lock that each takes once
// costs more than most operations. A job is published by a store, joined by a compare-and-swap and
// left by a subtraction; the kernel is asked (futex) only for a thread that sleeps.
#define _GNU_SOURCE // sched_getaffinity
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/runtime.h"
#include "device/cpu/cpu.h"
#include "device/settings.h"

enum {
    // Enough pieces that threads of unequal speed finish together, few enough that none is too
    // small.
    PIECES_MAX = 256,
    // How long one looks for more work before it sleeps, in ns: what lies between two operations of
    // a program, and longer where more would have to be woken, one after the other; it takes time
    // from others. The short time is for whoever waited longer last.
    LOOK_SHORT_NS = 4000,
    LOOK_LONG_NS = 20000,
    LOOK_OF_THREAD_NS = 6000,
    LOOKS_OF_ONE_CLOCK = 16, // a clock is read in the time of some of them
};

typedef struct Job {
    Runtime *runtime; // whose work it is
    void (*body)(void *context, int64_t begin, int64_t end);
    void *context;
    int64_t count, size, pieces;
    int threads;       // that share it: one takes a quarter of its share of what is left
    atomic_llong next; // piece that nobody has taken
} Job;

// What a job's publisher and the workers agree on in one word: the workers in the job, those that
// may still join it, and that its publisher sleeps until the first are none.
enum { BUSY_ONE = 1, PLACE_ONE = 1 << 15, PUBLISHER_SLEEPS = 1 << 30, THREADS_MAX = (1 << 15) - 1 };

static struct {
    pthread_mutex_t turn; // held by the thread whose job it is
    pthread_mutex_t lock; // of the list of workers
    VECTOR(pthread_t) workers;
    pid_t process;    // that started them; a fork of it has none
    atomic_bool over; // they end, and no more are started
    Job *job;         // what may be joined while `state` has places, and is there while one is busy
    atomic_uint state;
    atomic_uint jobs;     // ever published: what a worker waits to change
    atomic_uint sleepers; // that wait so in the kernel
} pool = {.turn = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER};

static int workers_in(unsigned state) {
    return (int)(state % PLACE_ONE);
}

static int places_in(unsigned state) {
    return (int)(state % PUBLISHER_SLEEPS / PLACE_ONE);
}

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

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t look_long_ns(void) {
    int64_t look_ns = (int64_t)LOOK_OF_THREAD_NS * cpu_thread_count();
    return look_ns > LOOK_LONG_NS ? look_ns : LOOK_LONG_NS;
}

// Returns when the word is not `value`, when woken, or for no reason.
static void sleep_while(atomic_uint *word, unsigned value) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void wake(atomic_uint *word, int threads) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, NULL, NULL, 0);
}

static void run_piece(const Job *job, int64_t piece) {
    int64_t begin = piece * job->size, end = begin + job->size;
    job->body(job->context, begin, end < job->count ? end : job->count);
}

// Takes pieces from `*begin` up to the one returned: several at first, one by one at the end. So
// threads seldom meet at the counter, and one that is not running holds little back.
static int64_t take_pieces(Job *job, int64_t *begin) {
    long long next = atomic_load_explicit(&job->next, memory_order_relaxed);
    for (;;) {
        int64_t rest = job->pieces - next;
        if (rest <= 0) return 0;
        int64_t taken = (rest + 4 * job->threads - 1) / (4 * job->threads);
        if (atomic_compare_exchange_weak(&job->next, &next, next + taken)) {
            *begin = next;
            return next + taken;
        }
    }
}

// Where the process ends meanwhile, workers leave the rest to whoever has the work.
static void run_pieces(Job *job, bool by_worker) {
    for (int64_t piece = 0, end = 0;; piece++) {
        if (cpu_interrupted() || (piece == end && by_worker && atomic_load(&pool.over))) return;
        if (piece == end && (end = take_pieces(job, &piece)) == 0) return;
        run_piece(job, piece);
    }
}

// Looks at the word until it is not `value`, for so long.
static bool look_for_change(atomic_uint *word, unsigned value, int64_t until_ns) {
    do
        for (int i = 0; i < LOOKS_OF_ONE_CLOCK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
            rest_a_little();
        }
    while (now_ns() < until_ns);
    return false;
}

// Until there are others than `seen`; false when there will be none. Whoever waited long the last
// time will again, and sleeps soon.
static bool wait_for_jobs(unsigned *seen, int64_t *look_ns) {
    int64_t begin = now_ns();
    if (!look_for_change(&pool.jobs, *seen, begin + *look_ns)) {
        atomic_fetch_add(&pool.sleepers, 1); // before the kernel looks at the word once more
        while (atomic_load(&pool.jobs) == *seen) sleep_while(&pool.jobs, *seen);
        atomic_fetch_sub(&pool.sleepers, 1);
    }
    *look_ns = now_ns() - begin > look_long_ns() ? LOOK_SHORT_NS : look_long_ns();
    *seen = atomic_load(&pool.jobs);
    return !atomic_load(&pool.over);
}

// The job that there is, or NULL: others took its places, or it is done.
static Job *join(void) {
    unsigned state = atomic_load(&pool.state);
    while (places_in(state) > 0)
        if (atomic_compare_exchange_weak(&pool.state, &state, state - PLACE_ONE + BUSY_ONE))
            return pool.job;
    return NULL;
}

static void leave(void) {
    unsigned state = atomic_fetch_sub(&pool.state, BUSY_ONE) - BUSY_ONE;
    if (state == PUBLISHER_SLEEPS) wake(&pool.state, 1);
}

static void *run_worker(void *argument) {
    (void)argument;
    int64_t look_ns = LOOK_SHORT_NS;
    inside = true;
    for (unsigned seen = 0; wait_for_jobs(&seen, &look_ns);) {
        Job *job = join();
        if (!job) continue;
        runtime_current = job->runtime;
        run_pieces(job, true);
        runtime_current = NULL;
        leave();
    }
    return NULL;
}

// Signals are for the threads of the program, but for that of a mapped file that lacks bytes.
// Where the system refuses a thread, fewer share.
static void start_workers(int wanted) {
    if (wanted > THREADS_MAX) wanted = THREADS_MAX;
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
    atomic_fetch_add(&pool.jobs, 1);
    wake(&pool.jobs, INT_MAX);
    pthread_mutex_unlock(&pool.lock);
    for (size_t i = 0; i < pool.workers.count; i++) pthread_join(pool.workers.items[i], NULL);
    VECTOR_FREE(&pool.workers);
}

static void publish(Job *job, int helpers) {
    pthread_mutex_lock(&pool.lock);
    start_workers(helpers);
    pthread_mutex_unlock(&pool.lock);
    ASSERT(atomic_load(&pool.state) == 0 && helpers > 0 && helpers <= THREADS_MAX);
    pool.job = job;
    atomic_store(&pool.state, (unsigned)helpers * PLACE_ONE);
    atomic_fetch_add(&pool.jobs, 1);
    if (atomic_load(&pool.sleepers) > 0) wake(&pool.jobs, helpers);
}

// All pieces are taken: nobody joins any more, and those who did finish theirs.
static void finish(void) {
    unsigned state = atomic_load(&pool.state);
    while (places_in(state) > 0)
        atomic_compare_exchange_weak(&pool.state, &state, (unsigned)workers_in(state));
    int64_t until = now_ns() + look_long_ns();
    while ((state = atomic_load(&pool.state)) != 0) {
        if (look_for_change(&pool.state, state, until)) continue;
        if (!atomic_compare_exchange_strong(&pool.state, &state, state | PUBLISHER_SLEEPS))
            continue;
        while (workers_in(state = atomic_load(&pool.state)) > 0) sleep_while(&pool.state, state);
        atomic_store(&pool.state, 0);
    }
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
    job.threads = threads;
    publish(&job, threads - 1);
    inside = true;
    run_pieces(&job, false);
    inside = false;
    finish();
    pthread_mutex_unlock(&pool.turn);
}
