// How the epochs of a learn block run: learn_run.c, and what it needs of learn.c.
#ifndef LEARN_LEARN_RUN_H
#define LEARN_LEARN_RUN_H

#include "learn/learn.h"

// learn_settings.c; false after a failure.
bool learn_read_settings(LearnRun *run, RandomTraining *training);
// The rates of the next epoch or step.
Status learn_set_rate(LearnRun *run) MUST_USE;

// With an objective: the body and a step, epoch after epoch.
Value learn_run_epochs(LearnRun *run);
// Without: the body once, whose backward(loss) makes the steps.
Value learn_run_body(LearnRun *run);
// The tensors that batches are taken from; false after a failure.
bool learn_take_whole(LearnRun *run);
void learn_release_whole(LearnRun *run);
// The names of batches mean all rows.
void learn_show_whole(LearnRun *run);

// Losses, validation, rate and report of the epoch that has run; false after a failure.
bool learn_end_epoch(LearnRun *run);

#endif
