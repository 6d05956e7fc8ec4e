// How the epochs of a learn block run: learn_run.c, and what it needs of learn.c.
#ifndef LEARN_LEARN_RUN_H
#define LEARN_LEARN_RUN_H

#include "learn/learn.h"

// With an objective: the body and a step, epoch after epoch.
Value learn_run_epochs(LearnRun *run);
// Without: the body once, whose backward(loss) makes the steps.
Value learn_run_body(LearnRun *run);
// learn_run.c: the names of batches mean so many rows, in an order (NULL: their own).
Status learn_set_batch(LearnRun *run, Tensor *order, int64_t first, int64_t count) MUST_USE;
// The body and the objective on what the block's names mean now, `share` of a step's rows; with the
// last part of a step the parameters move.
Value learn_run_part(LearnRun *run, int64_t rows, double share, bool last);

// The tensors that batches are taken from; false after a failure.
bool learn_take_whole(LearnRun *run);
void learn_release_whole(LearnRun *run);
// The names of batches mean all rows.
void learn_show_whole(LearnRun *run);

#endif
