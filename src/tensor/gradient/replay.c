// Parts of a program that are not kept on the tape but run again in backward.
#include <stdlib.h>

#include "tensor/gradient/replay.h"
#include "tensor/gradient/tape_node.h"

typedef struct Kept {
    TapeReplay replay;
    int count;
} Kept;

static Status check_ends(const Gradient *g, const TapeEnds *ends) {
    bool same = ends->count == (size_t)g->n_inputs;
    for (int i = 0; i < g->n_inputs && same; i++)
        same = ends->items[i].producer == g->inputs[i].producer &&
               ends->items[i].output == g->inputs[i].output;
    if (same) return STATUS_OK;
    (void)fail(STATUS_GRADIENT,
               "checkpoint: the function read other tensors when it ran again for its gradient");
    return fail_help("what it reads must not change before backward; give it as arguments");
}

static Status gradients_of_replay(Gradient *g, Tensor *const *results, int count,
                                  const TapeEnds *ends) {
    TRY(check_ends(g, ends));
    SCOPED_MEMORY TapeEnd *at = memory_allocate((ends->count + 1) * sizeof *at);
    for (size_t i = 0; i < ends->count; i++)
        at[i] = (TapeEnd){ends->items[i].producer, ends->items[i].output};
    TapeSection section = {results, g->incoming, count, at, ends->count};
    return tape_gradients_within(&section, g->results);
}

static Status rule_replay(Gradient *g) {
    const Kept *kept = g->kept;
    Tensor *results[TAPE_REPLAY_RESULTS] = {NULL};
    SCOPED_MEMORY TapeEnds ends = {0};
    bool recording = tape_set_enabled(true);
    TapeMark mark = tape_mark();
    Status status = kept->replay.run(kept->replay.data, results, kept->count);
    tape_set_enabled(recording);
    if (status == STATUS_OK) {
        tape_find_ends(results, kept->count, mark, &ends);
        status = gradients_of_replay(g, results, kept->count, &ends);
    }
    for (int i = 0; i < kept->count; i++) tensor_release(results[i]);
    return status;
}

static void release_kept(void *data) {
    const Kept *kept = data;
    kept->replay.release(kept->replay.data);
}

void tape_record_replay(const TapeReplay *replay, TapeMark mark, Tensor **results, int count) {
    ASSERT(count > 0 && count <= TAPE_REPLAY_RESULTS);
    static const GradientInfo info = {.name = "checkpoint", .rule = rule_replay};
    SCOPED_MEMORY TapeEnds ends = {0};
    tape_find_ends(results, count, mark, &ends);
    if (ends.count > 0) {
        Kept kept = {*replay, count};
        TapeRecord record = tape_begin_ends(&info, &ends);
        tape_keep_copy(&record, &kept, sizeof kept, release_kept);
        for (int i = 0; i < count; i++) {
            if (!results[i]->view.buffer) continue; // a literal
            Tensor *alias = tape_alias(results[i]); // without what it was made of
            tensor_release(results[i]);
            results[i] = alias;
        }
        (void)tape_end_node(&record, STATUS_OK, results, count); // the status goes through
    } else {
        replay->release(replay->data);
    }
}
