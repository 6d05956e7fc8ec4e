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
    VariableList visible;   // where files have the names of parameters from
    bool has_loop;          // without an objective: a loop of the body runs over the epochs
} LearnCode;

typedef struct LearnProgress {
    double started_s, drawn_s, shown_s; // drawn: the bar; shown: the page
    bool terminal;                      // standard error is one
} LearnProgress;

// What the block's value is.
extern const StructType learn_result_type;

// Of the step that is made: sums over what it is made of.
typedef struct Gathered {
    double loss, rows; // loss: weighted by rows
} Gathered;

// What each rank has only its part of, the optimizer's state or the parameters too.
typedef enum LearnSharing { SHARES_NOTHING, SHARES_OPTIMIZER, SHARES_PARAMETERS } LearnSharing;

typedef struct LearnStep LearnStep; // learn_distribute.h

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
    double clip, clip_value; // 0: no limit
    double ema;              // 0: no averages
    DType precision;         // DTYPE_COUNT: as the body says
    // Of float16: losses are multiplied by it, so that small gradients do not become 0. Steps whose
    // gradients it makes infinite are left out.
    double loss_scale, scaled_steps;
    int64_t batch_size, accumulate;
    int64_t pieces; // that a batch is cut into, which ranks share; 0: it is not distributed
    LearnSharing shares;
    bool fast;                  // sums in the order of the transport; every rank has all of them
    struct ShardedSet *sharded; // SHARES_PARAMETERS: those that are in parts
    LearnStep *together;        // the step that ranks make together while it is applied; NULL: none
    List *noted, *notes;        // by each_piece (learn_each.c); NULL: none
    bool in_part;               // the body and the objective run for a step
    bool shuffle, silent;
    Value save_path, resume_path, watch_path; // ABSENT where not given
    int64_t save_every;                       // epochs; 0: only at the end
    RandomStream shuffled_at;                 // where the order of the epoch that runs was drawn
    bool per_step;                            // the schedule moves on with each step
    TensorArray train, freeze;                // counted; those of the settings
    VECTOR(double) group_rates;               // their own, nan: the optimizer's
    Tensor **whole; // what batches are taken from, in the order of the code
    int64_t rows;

    int64_t done; // epochs
    // of the epoch that runs: sums over its steps, weighted by their rows
    int64_t steps;
    double loss_sum, norm_sum, weight, norm_weight;
    int64_t row; // of the epoch's rows (one without batches), the first that waits for a step
    RandomStream random; // where the part that runs began
    RandomStream safe;   // where the last complete step ended
    double diverged;     // a loss or gradient norm that is not finite; 0 while all is well
    bool in_gradient;    // it is the norm
    bool found;          // an error that names the operation has been made of it
    Frame *again_frame;  // of the body of a loop that runs again, and its code
    const struct LoopBodyCode *again_body;
    bool searching;    // what led there runs again to find where it came from
    int64_t steps_all; // of the block
    int64_t skip;      // calls of backward that the search passes by

    double rate; // of the last step
    List *losses, *norms, *validations, *rates;
    double first_loss, last_loss, best, judged; // judged: of the last epoch
    int64_t best_epoch;
    int64_t waited;   // epochs without a better one
    bool guessed;     // its numbers are not those that a run finds (device/foretell.h)
    bool stop;        // patience ran out
    bool interrupted; // Ctrl-C ended it
    Gathered gathered;
    TensorArray reached;    // of the step that is made: by backward, and to be moved
    TensorArray trained;    // parameters that were reached, in order of declaration; counted
    size_t restored;        // how many of them a file had, until the first step after it
    Tensor **best_contents; // of each, when patience is set
    size_t best_count;
    Tensor **averages; // of each, when ema is set
    size_t average_count;
    LearnProgress progress;
} LearnRun;

// The innermost block that runs; NULL: none.
LearnRun *learn_running(void);

// A parameter that no block has reached yet.
typedef struct Unreached {
    uint64_t number; // of the parameter
    SourcePos at;
    TensorType type;
} Unreached;

typedef VECTOR(Unreached) UnreachedList;

// A look at every result for the first that is not finite (learn_search.c).
typedef struct LearnSearch {
    bool wants_nan, wants_inf;
    bool looking; // inside the look itself
    const char *name;
    bool inherited; // an operand held it already
    SourcePos at;
} LearnSearch;

// What the blocks of a runtime share.
typedef struct Learning {
    LearnRun *running;       // the innermost
    bool bar_is_shown;       // on the terminal
    bool muted;              // the output of print is dropped
    bool replays;            // checkpoint(f) computes f again: what follows it did so before
    UnreachedList unreached; // in order of declaration
    LearnSearch search;
    char *needs; // what the program was foretold to need, until it is shown; NULL: nothing was
    // Told of every epoch; NULL: nobody is.
    void (*progress)(void *context, int64_t epoch, int64_t epochs, double loss);
    void *progress_context;
} Learning;
Learning *learning_new(void);
void learning_free(Learning *learning);
// What is shown in front of the first epoch.
void learn_note_needs(const char *words);
static inline Learning *learn_state(void) {
    return runtime_current->learning;
}

// What backward(loss) does inside a block; the loss is borrowed.
Status learn_backward(Value loss) MUST_USE;

// What each_piece(values, f) does; both are borrowed, values is a list.
Value learn_each_piece(Interp *interp, Value values, Value function);
// learn_each.c: how many notes the pieces of a step have made; after the step; after the block.
size_t learn_count_noted(const LearnRun *run);
void learn_drop_noted(LearnRun *run);
void learn_forget_notes(LearnRun *run);
// After a piece: a number that tells its calls from those of other pieces. `before`: how many notes
// there were.
uint64_t learn_sign_piece(LearnRun *run, size_t before) MUST_USE;
// After the step: calls what pieces with this number have noted, on every rank.
Status learn_follow(const LearnStep *step, uint64_t sign) MUST_USE;
// The same of a step that is not made of pieces; no signal comes between its calls.
Status learn_follow_alone(LearnRun *run) MUST_USE;

// learn_settings.c: whether the block moves a parameter that its objective reaches.
bool learn_trains(const LearnRun *run, const Tensor *parameter);

// learn_step.c: goes backward from a loss (borrowed) over so many rows, which are `share` of those
// that the step is made of. Fails like an operation.
Status learn_gather(LearnRun *run, Value loss, int64_t rows, double share) MUST_USE;
// One step along the gradients that were gathered.
Status learn_apply(LearnRun *run) MUST_USE;
// What was gathered for a step that is not made.
void learn_drop_gathered(LearnRun *run);
// Whether a loss belongs to the parameters as they are before its step, so that they are kept
// there.
bool learn_judged_before(const LearnRun *run);

// learn_keep.c: the best parameters so far become those of now.
Status learn_keep_best(LearnRun *run) MUST_USE;
// The running averages after a step.
Status learn_average(LearnRun *run) MUST_USE;
Status learn_begin_averages(LearnRun *run) MUST_USE;
// The parameters are their averages until learn_hide_averages, to which `before` goes in any case.
Status learn_show_averages(LearnRun *run, TensorArray *before) MUST_USE;
void learn_hide_averages(LearnRun *run, TensorArray *before);
// What the parameters are after the block: the best, or the averages, where these were kept.
Status learn_finish(LearnRun *run) MUST_USE;
void learn_forget(LearnRun *run);

// learn_save.c: what resume needs goes to the file of `save`, where there is one.
Status learn_save(LearnRun *run) MUST_USE;
// Whether everything that is trained has a name in files.
Status learn_check_names(LearnRun *run) MUST_USE;
// Puts the block where a saved run stopped; changes nothing when it fails.
Status learn_resume(LearnRun *run) MUST_USE;

// learn_watch.c: the page of `watch`, where there is one, now and then or for the last time.
// `ending`: how the block ended; NULL: it goes on.
Status learn_watch(LearnRun *run, const char *ending) MUST_USE;

// learn_report.c
// A number as the lines show it: six places, or an exponent where these would all be 0.
typedef struct NumberText {
    char text[32];
} NumberText;
NumberText learn_number(double number);
double learn_now_s(void);
void learn_report_begin(LearnRun *run);
void learn_report_epoch(LearnRun *run, double loss, double norm, double rate);
// Notes which parameters the block has reached, and which that are alive it has not.
void learn_note_unreached(const LearnRun *run);
void learn_report_end(LearnRun *run);
// Whatever is written to the terminal next must not stand next to the progress bar.
void learn_progress_clear(void);

// learn_search.c: runs `body`, in which `steps` steps were made before, again to find the first
// operation whose result is not a number, and fails with it.
typedef Value (*LearnBody)(LearnRun *run);
Value learn_fail_diverged(LearnRun *run, LearnBody body, int64_t steps, Span span);
// A call of backward while the search runs: passes it by, or ends the search, with a look at the
// gradients where those are what is searched. The loss is borrowed.
Status learn_search_backward(LearnRun *run, Value loss) MUST_USE;

// Losses, validation, rate and report of the epoch that has run; false after a failure.
bool learn_end_epoch(LearnRun *run);
// learn_settings.c; false after a failure.
bool learn_read_settings(LearnRun *run, RandomTraining *training);
// The rates of the next epoch or step.
Status learn_set_rate(LearnRun *run) MUST_USE;

// Of ranks that train together only the first does.
bool learn_writes_files(const LearnRun *run);
// learn_distribute.c: the optimizer has this rank's part of the parameters, where ranks share them.
Status learn_shard(LearnRun *run) MUST_USE;
// Parameters and random numbers become those of rank 0.
Status learn_begin_distributed(LearnRun *run) MUST_USE;
// One step on the rows from run->row to `end`: this rank's pieces, and the sums over all ranks.
Value learn_run_pieces(LearnRun *run, Tensor *order, int64_t end);
// What validate gave on rank 0, where ranks make steps together, is what all of them go by.
Status learn_judge_together(LearnRun *run) MUST_USE;
// Parameters that are in parts are whole again.
Status learn_join_parameters(LearnRun *run) MUST_USE;
// learn_parts.c: the norm of all gradients before they are clipped; then the parameters move.
Status learn_clip_together(LearnStep *step, double *norm) MUST_USE;
Status learn_move_together(LearnStep *step) MUST_USE;

#endif
