// How long a constraint takes to say which tokens may come next: bench_masks VOCABULARY.gguf
// SCHEMAS, a JSON schema in each line. Each is walked three times by tokens drawn among the allowed
// ones; what is measured is every mask, the first of a constraint included. tests/bench/masks.py
// makes both files.
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "generate/grammar.h"
#include "generate/json_schema.h"
#include "model/reader.h"

enum { STEPS_MAX = 200, STEPS_FREE = 60, WALKS = 3 };

typedef struct Times {
    VECTOR(double) items; // microseconds
} Times;

static uint64_t random_state = 1;

static uint64_t draw(uint64_t below) {
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (random_state >> 33) % below;
}

// Of this thread's processor: another program in between does not count.
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

// A token that leads on: any of them at first, later the one that comes closest to an end.
static int64_t choose(Constraint *constraint, ConstraintState *state, const TokenTrie *trie,
                      const uint64_t *mask, bool home) {
    VECTOR(int64_t) allowed = {0};
    for (int64_t id = 0; id < trie->size; id++)
        if (mask[id / 64] >> (id % 64) & 1) VECTOR_PUSH(&allowed, id);
    int64_t best = -1, least = INT64_MAX;
    ConstraintState next = 0;
    for (size_t tries = 0; tries < (home ? 400 : 1) && allowed.count > 0; tries++) {
        int64_t id = allowed.items[draw(allowed.count)];
        ConstraintState after =
            constraint->type->advance(constraint, *state, trie->bytes + trie->starts[id],
                                      trie->starts[id + 1] - trie->starts[id]);
        int64_t left = constraint->type->shortest(constraint, after);
        if (best >= 0 && left >= least) continue;
        best = id;
        least = left;
        next = after;
    }
    *state = next;
    VECTOR_FREE(&allowed);
    return best;
}

static void walk(Constraint *constraint, const TokenTrie *trie, Times *times) {
    ConstraintState state = constraint->type->begin(constraint);
    for (int step = 0; step < STEPS_MAX; step++) {
        double begin = now();
        const uint64_t *mask = constraint->type->allowed(constraint, state, trie);
        VECTOR_PUSH(&times->items, now() - begin);
        if (choose(constraint, &state, trie, mask, step > STEPS_FREE) < 0) return;
    }
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(const char *name, Times *times) {
    size_t count = times->items.count;
    double *items = times->items.items;
    qsort(items, count, sizeof *items, compare);
    printf("%s: %zu, median %.1f us, p90 %.1f us, p99 %.1f us, max %.1f us\n", name, count,
           items[count / 2], items[count * 9 / 10], items[count * 99 / 100], items[count - 1]);
    VECTOR_FREE(&times->items);
}

static int bench(Tokenizer *tokenizer, FILE *schemas) {
    const TokenTrie *trie = tokenizer_trie(tokenizer);
    Times masks = {0}, compiles = {0};
    char *line = NULL;
    size_t capacity = 0;
    printf("%lld tokens, %zu nodes\n", (long long)trie->size, trie->node_count);
    for (ssize_t length; (length = getline(&line, &capacity, schemas)) > 0;) {
        Constraint *constraint;
        double begin = now();
        if (constraint_from_schema(line, (size_t)length, &constraint) != STATUS_OK) return 1;
        VECTOR_PUSH(&compiles.items, now() - begin);
        for (int i = 0; i < WALKS; i++) walk(constraint, trie, &masks);
        constraint_release(constraint);
    }
    free(line);
    report("compiled", &compiles);
    report("masks", &masks);
    return 0;
}

int main(int count, char **arguments) {
    Reader *file;
    Tokenizer *tokenizer;
    if (count != 3) {
        fprintf(stderr, "usage: bench_masks VOCABULARY.gguf SCHEMAS\n");
        return 2;
    }
    if (reader_open(arguments[1], &file) != STATUS_OK) return 1;
    if (tokenizer_from_metadata(&file->metadata, arguments[1], &tokenizer) != STATUS_OK) return 1;
    FILE *schemas = fopen(arguments[2], "r");
    int result = schemas ? bench(tokenizer, schemas) : 1;
    if (schemas) fclose(schemas);
    tokenizer_release(tokenizer);
    reader_close(file);
    return result;
}
