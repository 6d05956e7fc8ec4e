// What the files of learn blocks share: the lowered block, and the state of one that runs.
#ifndef LEARN_LEARN_H
#define LEARN_LEARN_H

#include "eval/code.h"
#include "tensor/gradient/tape.h"
#include "tensor/optimizer.h"
#include "tensor/random.h"
#include "tensor/scheduler.h"

// One of the tensors that batches are taken from.
typedef struct BatchCode {
    const Code *source;
    const VariableCode *variable;
    const char *name;
} BatchCode;

// Variables by where they lie.
typedef struct VariableList {
    const VariableCode **items;
    size_t count;
} VariableList;

typedef struct LearnCode {
    Code head;
    const Code *body;
    const Code *settings[SETTING_COUNT]; // NULL where one is not given
    const VariableCode *epochs_name, *optimizer_name;
    const VariableCode *epoch_name, *step_name; // NULL: the program has variables of these names
    BatchCode *batches;
    size_t batch_count;
    int *locals; // slots of variables that end with the block
    size_t local_count;
    VariableList own, kept; // whose values variables around the block take over at its end
    VariableList once;      // parameters that the body makes at its first epoch
    bool has_loop;          // without an objective: a loop of the body runs over the epochs
} LearnCode;

typedef struct LearnProgress {
    double started_s, drawn_s;
    bool terminal; // standard error is one
} LearnProgress;

// A learn block that runs.
typedef struct LearnRun {
    struct LearnRun *outer;
    const LearnCode *code;
    Frame *frame;
    Value optimizer_value, scheduler_value;
    Optimizer *optimizer;
    Scheduler *scheduler;       // NULL: none
    double base_rate, set_rate; // the optimizer's own rate, and what was last set from it
    int64_t epochs;             // as asked for; 0: not said
    int64_t report_every, patience;
    double clip; // 0: no limit
    int64_t batch_size;
    bool shuffle;
    Tensor **whole; // what batches are taken from, in the order of the code
    int64_t rows;

    int64_t done; // epochs
    // of the epoch that runs: sums over its steps, weighted by their rows
    int64_t steps;
    double loss_sum, norm_sum, weight;
    RandomStream random; // where it began
    double diverged;     // a loss or gradient norm that is not finite; 0 while all is well
    bool in_gradient;    // it is the norm
    bool found;          // an error that names the operation has been made of it
    Frame *again_frame;  // of the body of a loop that runs again
    bool searching;      // what led there runs again to find where it came from
    int64_t steps_all;   // of the block
    int64_t skip;        // calls of backward that the search passes by

    List *losses, *norms, *validations;
    double first_loss, last_loss, best, judged; // judged: of the last epoch
    int64_t best_epoch;
    int64_t waited;         // epochs without a better one
    bool stop;              // patience ran out
    TensorArray trained;    // parameters that were reached, in order of declaration; counted
    Tensor **best_contents; // of each, when patience is set
    size_t best_count;
    LearnProgress progress;
} LearnRun;

// The innermost block that runs; NULL: none.
LearnRun *learn_running(void);

// What backward(loss) does inside a block; the loss is borrowed.
Status learn_backward(Value loss) MUST_USE;

// learn_step.c: one step down from a loss (borrowed) over so many rows. Fails like an operation.
Status learn_descend(LearnRun *run, Value loss, int64_t rows) MUST_USE;
// Whether a loss belongs to the parameters as they are before its step, so that they are kept
// there.
bool learn_judged_before(const LearnRun *run);
// The best parameters so far become those of now, or now's become the best.
Status learn_keep_best(LearnRun *run) MUST_USE;
Status learn_restore_best(LearnRun *run) MUST_USE;
void learn_forget(LearnRun *run);

// learn_report.c
// A number as the lines show it: six places, or an exponent where these would all be 0.
typedef struct NumberText {
    char text[32];
} NumberText;
NumberText learn_number(double number);
void learn_report_begin(LearnRun *run);
void learn_report_epoch(LearnRun *run, double loss, double norm, double rate);
// Notes which parameters the block has reached, and which that are alive it has not.
void learn_note_unreached(const LearnRun *run);
void learn_report_end(LearnRun *run);
// Whatever is written to the terminal next must not stand next to the progress bar.
void learn_progress_clear(void);

// learn_search.c: runs `body`, in which `steps` steps were made before, again to find the first
// operation whose result is no number, and fails with it.
typedef Value (*LearnBody)(LearnRun *run);
Value learn_fail_diverged(LearnRun *run, LearnBody body, int64_t steps, Span span);
// A call of backward while the search runs: passes it by, or ends the search, with a look at the
// gradients where those are what is searched. The loss is borrowed.
Status learn_search_backward(LearnRun *run, Value loss) MUST_USE;
// Output of print is dropped while this is true.
extern bool learn_muted;

#endif
