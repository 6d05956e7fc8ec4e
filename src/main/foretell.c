// tl check --memory: what a program will hold on its device, without running it. The program runs
// on a foretold device (device/foretell.h), its output goes nowhere and its files are put aside.
#define _GNU_SOURCE // pthread_timedjoin_np
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/output.h"
#include "device/buffer.h"
#include "device/foretell.h"
#include "device/settings.h"
#include "device/statistics.h"
#include "learn/learn.h"
#include "main/foresee.h"
#include "main/foretell_report.h"
#include "main/rehearse.h"
#include "parser/parser.h"
#include "ranks/ranks.h"
#include "runtime/runtime.h"

typedef struct Pass {
    const CommandLine *line;
    Interp *interp;
    Program *program;
    json_t *found; // what the report shows
    Forecast forecast;
    Runtime *runtime;
    ForetellGuess guess;
    int rounding;                         // FORETELL_AS_IT_LIKES ...
    SourcePos turned[FORETELL_LOOSE_MAX]; // where the other guess is made
    size_t turned_count;
    ForetellPath *path; // that it goes; NULL: guesses decide alone
    bool silent;        // mistakes of the program were shown, or will be, maybe by another rank
    bool during;        // the program runs already
    uint64_t limit;     // what the device may give; 0: nobody asks whether it fits
    uint64_t own;       // what the device has
    // In words, as long as places can be told: what it needs, and why it cannot run.
    Text needs, why;
    const char *help;
    SourcePos refused_at;
    atomic_bool unfinished; // it took too long
} Pass;

// Signals are the process's: which came, and what is interrupted by one; of tl check only.
static atomic_int signal_came;
static _Atomic(Runtime *) signal_target;

static json_t *place_json(SourcePos position) {
    SourcePlace place = source_find(position);
    if (!place.file) return json_null();
    return json_pack("{s:s, s:i, s:i}", "file", place.file->name, "line", place.line, "column",
                     place.column);
}

static json_t *holders_json(const Forecast *forecast) {
    json_t *array = json_array();
    for (size_t i = 0; i < forecast->holder_count; i++) {
        const ForecastHolder *holder = &forecast->holders[i];
        SCOPED_TEXT(expression);
        source_append_expression(&expression, holder->at);
        json_array_append_new(
            array, json_pack("{s:I, s:o, s:s}", "bytes", (json_int_t)holder->bytes, "at",
                             place_json(holder->at), "expression", text_get(&expression)));
    }
    return array;
}

static json_t *loose_json(const Forecast *forecast) {
    json_t *array = json_array();
    for (size_t i = 0; i < forecast->loose_count; i++) {
        json_t *place = place_json(forecast->loose[i]);
        if (json_is_object(place))
            json_object_set_new(place, "open", json_boolean(forecast->open[i]));
        json_array_append_new(array, place);
    }
    return array;
}

static void call_estimate(json_t *found) {
    json_object_set(found, "estimate", json_object_get(found, "peak"));
    json_object_set_new(found, "peak", json_null());
}

// A peak that is claimed for no run is called what it is.
static void state_claim(json_t *found, ForecastClaim claim) {
    static const char *const words[] = {
        [FORECAST_EXACT] = "exact", [FORECAST_BOUND] = "bound", [FORECAST_ESTIMATE] = "estimate"};
    json_object_set_new(found, "claim", json_string(words[claim]));
    json_object_set_new(found, "exact", json_boolean(claim == FORECAST_EXACT));
    if (claim != FORECAST_ESTIMATE) return;
    json_t *other;
    size_t i;
    call_estimate(found);
    json_array_foreach(json_object_get(found, "others"), i, other) call_estimate(other);
}

static json_t *found_json(const Device *device, const Forecast *forecast) {
    json_t *operation = json_pack("{s:I, s:o}", "bytes", (json_int_t)forecast->operation_bytes,
                                  "at", place_json(forecast->operation_at));
    json_t *tensor = json_pack("{s:I, s:o}", "bytes", (json_int_t)forecast->tensor_bytes, "at",
                               place_json(forecast->tensor_at));
    const SureForecast *known = &forecast->sure;
    json_t *sure =
        json_pack("{s:I, s:o, s:b, s:{s:I, s:o}}", "peak", (json_int_t)known->peak_bytes, "at",
                  place_json(known->peak_at), "more", known->more, "tensor", "bytes",
                  (json_int_t)known->tensor_bytes, "at", place_json(known->tensor_at));
    uint64_t room = forecast->away_room < INT64_MAX ? forecast->away_room : INT64_MAX;
    json_t *found = json_pack(
        "{s:s, s:s, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, "
        "s:n}",
        "device", device->name, "description", device->description, "peak",
        (json_int_t)forecast->peak_bytes, "at", place_json(forecast->peak_at), "holders",
        holders_json(forecast), "cached", (json_int_t)forecast->cached_bytes, "mapped",
        (json_int_t)forecast->mapped_bytes, "repacked", (json_int_t)forecast->repacked_bytes,
        "read", (json_int_t)forecast->read_bytes, "held", (json_int_t)forecast->held_bytes, "limit",
        (json_int_t)device->memory_limit, "own", (json_int_t)device->own_bytes, "room",
        (json_int_t)room, "operation", operation, "tensor", tensor, "sure", sure, "loose",
        loose_json(forecast), "failure");
    json_t *most = json_object();
    for (int i = PURPOSE_RESULT + 1; i < PURPOSE_COUNT; i++) {
        json_object_set_new(found, foretell_purposes[i].key,
                            json_integer((json_int_t)forecast->purposes[i]));
        json_object_set_new(most, foretell_purposes[i].key,
                            json_integer((json_int_t)forecast->purposes_most[i]));
    }
    json_object_set_new(found, "most", most);
    return found;
}

// The other devices that the program has named, each with its peak.
static json_t *others_json(void) {
    enum { OTHERS_MAX = 8 };
    Device *devices[OTHERS_MAX];
    json_t *array = json_array();
    size_t count = devices_named(devices, OTHERS_MAX);
    for (size_t i = 0; i < count; i++) {
        Forecast forecast;
        foretell_device_report(devices[i], &forecast);
        json_array_append_new(
            array, json_pack("{s:s, s:I, s:o, s:o, s:I}", "device", devices[i]->name, "peak",
                             (json_int_t)forecast.peak_bytes, "at", place_json(forecast.peak_at),
                             "holders", holders_json(&forecast), "cached",
                             (json_int_t)forecast.cached_bytes));
    }
    return array;
}

static void take_failure(json_t *found, Status status) {
    if (status == STATUS_OK) return;
    const ErrorRecord *error = error_current();
    json_object_set_new(
        found, "failure",
        json_pack("{s:s, s:o}", "message", error->message, "at", place_json(error->span.begin)));
}

// On the thread of the interpreter, which also clears it.
static void run_and_clear(void *context) {
    Pass *pass = context;
    Status status = interp_run(pass->interp, pass->program);
    int requested;
    if (interp_exit_requested(pass->interp, &requested)) status = STATUS_OK;
    json_t *failure = json_object();
    take_failure(failure, status);
    (void)interp_free(pass->interp, EXIT_SUCCESS_STATUS);
    Device *device;
    if (device_default(&device) == STATUS_OK) {
        foretelling_report(device, &pass->forecast);
        pass->own = device->own_bytes;
        pass->found = found_json(device, &pass->forecast);
        json_object_set_new(pass->found, "others", others_json());
        json_object_update(pass->found, failure);
        // A size that is larger than in a run may be the mistake.
        if (pass->forecast.bounded && json_object_size(failure) > 0)
            pass->forecast.claim = FORECAST_ESTIMATE;
    }
    json_decref(failure);
}

static void append_spot(const Pass *pass, SourcePos position, Text *out) {
    SourcePlace place = source_find(position);
    if (pass->during && place.file)
        text_format(out, " at %s:%d", place.file->name, place.line);
    else
        text_append_string(out, " here");
}

// What is above the limit must have room where it moves to, and each tensor on the device itself.
static void judge(Pass *pass) {
    const SureForecast *sure = &pass->forecast.sure;
    if (!pass->found) return;
    Fit fit = {.device = json_string_value(json_object_get(pass->found, "device")),
               .peak = sure->peak_bytes,
               .tensor = sure->tensor_bytes,
               .limit = pass->limit,
               .own = pass->own,
               .room = pass->forecast.away_room,
               .more = sure->more || atomic_load(&pass->unfinished),
               .running = pass->during};
    if (fit_of(&fit) == FIT_WELL) return;
    pass->refused_at = fit_of(&fit) == FIT_LARGE ? sure->tensor_at : sure->peak_at;
    pass->help = fit_help(&fit);
    SCOPED_TEXT(place);
    append_spot(pass, pass->refused_at, &place);
    fit_explain(&fit, text_get(&place), &pass->why);
}

// In the words of `why`. STATUS_MEMORY.
static Status refuse(const Pass *pass) {
    fail(STATUS_MEMORY, "%s", text_get(&pass->why));
    return fail_help("%s; %s", pass->help,
                     pass->during ? "this was foretold when it took an eighth of the device"
                                  : "nothing has run");
}

static void show_refusal(const Pass *pass) {
    if (pass->why.length == 0 || pass->during) return;
    (void)refuse(pass);
    error_place((Span){pass->refused_at, pass->refused_at});
    (void)report_current_error();
}

// "needs 3.10 GB of 8.00 GB at train.tl:40"
static void note_needs(Pass *pass) {
    bool large = pass->limit >= 1u << 30;
    double unit = large ? 0x1p30 : 0x1p20;
    const char *name = large ? "GB" : "MB";
    SourcePlace place = source_find(pass->forecast.peak_at);
    text_format(&pass->needs, "needs %s%.2f %s of %.2f %s",
                atomic_load(&pass->unfinished) ? "at least " : "",
                (double)pass->forecast.peak_bytes / unit, name, (double)pass->limit / unit, name);
    if (place.file) text_format(&pass->needs, " at %s:%d", place.file->name, place.line);
    if (pass->forecast.loose_count > 0) text_append_string(&pass->needs, " (an estimate)");
}

static Status run_pass(Pass *pass, FILE *nowhere) {
    aside_begin();
    output_redirect(nowhere, nowhere);
    pass->interp = interp_new(runtime_current, &pass->line->interp);
    Status status = interp_enter(pass->interp, run_and_clear, pass);
    if (status != STATUS_OK) (void)interp_free(pass->interp, EXIT_FAILED);
    output_redirect(NULL, NULL);
    return status == STATUS_OK && !pass->found ? error_current()->code : status;
}

static void foretell_here(Pass *pass) {
    FILE *nowhere = fopen("/dev/null", "we");
    ForetellPlan plan = {.guess = pass->guess,
                         .rounding = pass->rounding,
                         .turned = pass->turned,
                         .turned_count = pass->turned_count,
                         .path = pass->path,
                         .judges = pass->limit > 0 || pass->line->sure,
                         .fails = !pass->during};
    foretelling_begin(&plan);
    if (pass->silent) output_redirect(nowhere, nowhere);
    pass->program = program_load(pass->line->file, pass->line->code);
    Status status = pass->program ? run_pass(pass, nowhere) : STATUS_OK;
    if (status != STATUS_OK && !pass->silent) (void)report_current_error();
    if (pass->limit > 0) judge(pass);
    show_refusal(pass);
    bool whole = pass->found && json_is_null(json_object_get(pass->found, "failure"));
    if ((whole || atomic_load(&pass->unfinished)) && pass->limit > 0) note_needs(pass);
    program_free(pass->program);
    source_reset();
    fclose(nowhere);
}

static void *foretell_in_thread(void *context) {
    Pass *pass = context;
    runtime_enter(pass->runtime);
    foretell_here(pass);
    runtime_enter(NULL);
    return NULL;
}

// A program that runs, or is about to, is foretold for so long; then it just runs.
enum { PATIENCE_TURNS = 200, TURN_NANOSECONDS = 10000000 };

// Where the system gives no thread, nothing is foretold.
static void foretell_patiently(Pass *pass) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, foretell_in_thread, pass) != 0) return;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    for (int turns = 0;; turns++) {
        until.tv_nsec += TURN_NANOSECONDS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_timedjoin_np(thread, NULL, &until) != ETIMEDOUT) return;
        if (turns < PATIENCE_TURNS && !runtime_interrupts(runtime_current)) continue;
        atomic_store(&pass->unfinished, true);
        runtime_interrupt(pass->runtime, INTERRUPT_SIGNAL);
    }
}

// A runtime of its own for each pass: nothing of the first one is left for the second.
static bool foretell_once(Pass *pass) {
    static const VariableId kept[] = {VARIABLE_TL_DEVICE, VARIABLE_TL_MEMORY_LIMIT};
    const char *chosen[] = {device_setting_choice(kept[0]), device_setting_choice(kept[1])};
    pass->runtime = runtime_new();
    Runtime *before = runtime_enter(pass->runtime);
    for (int i = 0; i < 2; i++)
        if (chosen[i]) device_setting_choose(kept[i], chosen[i]);
    atomic_store(&signal_target, pass->runtime);
    if (pass->limit == 0) foretell_here(pass);
    atomic_store(&signal_target, NULL);
    runtime_enter(before);
    if (pass->limit > 0) foretell_patiently(pass);
    runtime_free(pass->runtime);
    return pass->found != NULL;
}

// Files that were put aside go with the interrupted pass. Where there are none, or at the second
// signal, nothing is waited for.
static void on_signal(int number) {
    Runtime *runtime = atomic_load(&signal_target);
    bool again = atomic_exchange(&signal_came, number) != 0;
    if (again || !runtime || aside_is_empty(runtime->aside)) _Exit(EXIT_SIGNAL + number);
    runtime_interrupt(runtime, INTERRUPT_SIGNAL);
}

static bool is_told(Status status) {
    if (status != STATUS_OK) (void)report_current_error();
    return status == STATUS_OK;
}

// Where there are several ranks they end it together.
static bool foretell_interruptibly(Pass *pass) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGPROF};
    struct sigaction action = {.sa_handler = on_signal};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
    bool found = foretell_once(pass) && !atomic_load(&signal_came);
    return found && is_told(ranks_meet(RANKS_END));
}

static int failed_status(void) {
    int came = atomic_load(&signal_came);
    return came ? EXIT_SIGNAL + came : EXIT_FAILED;
}

// Leaves the pass with the higher peak in `best`.
static bool compare(Pass *best, Pass *other) {
    bool found = foretell_interruptibly(other);
    ForecastClaim claim = best->forecast.claim;
    if (other->forecast.claim > claim) claim = other->forecast.claim;
    Pass lower = *other;
    if (found && other->forecast.peak_bytes > best->forecast.peak_bytes) {
        lower = *best;
        *best = *other;
    }
    best->forecast.claim = claim;
    json_decref(lower.found);
    return found;
}

// Every way that conditions can go, unless they are too many; then, or where more than they are
// unknown, false. Where all of them have one peak, or what is sure has it already, it is exact.
static bool follow_paths(Pass *best) {
    enum { PASSES_MAX = 256, SECONDS_MAX = 10 };
    ForetellPath *path = best->path;
    clock_t begun = clock();
    uint64_t first = best->forecast.peak_bytes, sure = best->forecast.sure.peak_bytes;
    bool whole = json_array_size(json_object_get(best->found, "others")) == 0;
    bool bounded = best->forecast.bounded, same = true;
    for (int passes = 1; whole && foretell_path_next(path); passes++) {
        Pass other = {.line = best->line, .silent = true, .path = path};
        bool found = compare(best, &other);
        bool late = passes == PASSES_MAX || clock() - begun > SECONDS_MAX * CLOCKS_PER_SEC;
        whole = found && !late && best->forecast.claim == FORECAST_BOUND;
        bounded |= other.forecast.bounded;
        same &= other.forecast.peak_bytes == first;
    }
    whole &= path->made <= FORETELL_CHOICES_MAX;
    bool exact = best->forecast.peak_bytes == sure || (same && !bounded);
    if (whole && exact) best->forecast.claim = FORECAST_EXACT;
    return whole;
}

// Whether the peak is the same one however the device rounds: it is that of a pass on the CPU's
// numbers, where nothing else is unknown, and no noise that is above any rounding moves it.
static bool stays_without_rounding(Pass *best) {
    enum { KINDS = 4, SECONDS_MAX = 4 };
    ASSERT(best->found && best->forecast.rounded);
    clock_t begun = clock();
    Pass exact = {.line = best->line, .silent = true, .rounding = FORETELL_AS_THE_CPU};
    bool stays = foretell_interruptibly(&exact) && exact.forecast.claim == FORECAST_EXACT;
    stays &= clock() - begun < SECONDS_MAX * CLOCKS_PER_SEC; // each of the others takes as long
    for (int i = 0; i < KINDS && stays; i++) {
        Pass other = {.line = best->line, .silent = true, .rounding = FORETELL_NOISE + i};
        stays = foretell_interruptibly(&other) && other.forecast.claim == FORECAST_EXACT &&
                other.forecast.peak_bytes == exact.forecast.peak_bytes;
        json_decref(other.found);
    }
    Pass dropped = stays ? *best : exact;
    if (stays) *best = exact;
    json_decref(dropped.found);
    return stays;
}

// Conditions need not go the same way: each is turned, and stays so where that takes more.
static bool turn_places(Pass *best) {
    Forecast first = best->forecast;
    bool found = true;
    for (size_t i = 0; i < first.loose_count && first.loose_count > 1 && found; i++) {
        Pass other = {.line = best->line, .guess = best->guess, .silent = true};
        memcpy(other.turned, best->turned, sizeof other.turned);
        other.turned[best->turned_count] = first.loose[i];
        other.turned_count = best->turned_count + 1;
        found = compare(best, &other);
    }
    return found;
}

static bool guess_more(Pass *best) {
    Pass other = {.line = best->line, .guess = FORETELL_GUESS_FALSE, .silent = true};
    bool found = compare(best, &other);
    return found && (ranks_count() > 1 || turn_places(best));
}

// Where one rank needs a second pass all make it. What is sure the first one knows.
static bool foretell_and_show(const CommandLine *line) {
    ForetellPath path = {0};
    Pass best = {.line = line, .silent = ranks_own() != 0, .path = &path};
    bool loose = false, alone = ranks_count() == 1;
    bool found =
        foretell_interruptibly(&best) && is_told(ranks_any(best.forecast.loose_count > 0, &loose));
    if (found && loose && alone && !line->sure && best.forecast.rounded)
        loose = !stays_without_rounding(&best);
    bool bound = loose && alone && !line->sure && best.forecast.claim == FORECAST_BOUND;
    bool whole = found && bound && follow_paths(&best);
    if (found && loose && !whole) best.forecast.claim = FORECAST_ESTIMATE;
    if (found && loose && !whole && !line->sure) found = guess_more(&best);
    if (found) state_claim(best.found, best.forecast.claim);
    found = found && is_told(foretell_report(best.found, line->json));
    json_decref(best.found);
    return found;
}

int check_memory(const Command *command, int count, char **arguments) {
    CommandLine line = {0};
    command_line_read(&line, command, count, arguments);
    if (!freopen("/dev/null", "re", stdin)) return EXIT_FAILED;
    if (!is_told(ranks_program_meet())) return EXIT_FAILED;
    int status = foretell_and_show(&line) ? EXIT_SUCCESS_STATUS : failed_status();
    ranks_end(status);
    return status;
}

// What a program reads from standard input is for its run.
static void foretell_without_input(Pass *pass) {
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (nothing >= 0) dup2(nothing, STDIN_FILENO);
    (void)foretell_once(pass);
    if (input >= 0) dup2(input, STDIN_FILENO);
    if (input >= 0) close(input);
    if (nothing >= 0) close(nothing);
}

// Adding up what a process takes is some MB off; where that is much, its program is run instead.
static bool is_soon_tried(const json_t *found) {
    DeviceSettings settings;
    uint64_t held = (uint64_t)json_integer_value(json_object_get(found, "held"));
    uint64_t read = (uint64_t)json_integer_value(json_object_get(found, "read"));
    if (device_settings_read(&settings) != STATUS_OK) return false;
    const char *device = json_string_value(json_object_get(found, "device"));
    return strcmp(device, "cpu") == 0 && held + read <= settings.test_tried_bytes;
}

char *foretell_in_json(const CommandLine *line) {
    Pass pass = {.line = line, .silent = true};
    foretell_without_input(&pass);
    bool whole = pass.found && json_is_null(json_object_get(pass.found, "failure"));
    bool loose = pass.forecast.loose_count > 0;
    if (whole) state_claim(pass.found, loose ? FORECAST_ESTIMATE : FORECAST_EXACT);
    if (whole && is_soon_tried(pass.found))
        json_object_set_new(pass.found, "tried", json_integer((json_int_t)rehearse(line)));
    char *text = whole ? json_dumps(pass.found, JSON_COMPACT) : NULL;
    json_decref(pass.found);
    return text;
}

static void end_pass(Pass *pass) {
    json_decref(pass->found);
    if (pass->needs.length > 0) learn_note_needs(text_get(&pass->needs));
    text_free(&pass->needs);
    text_free(&pass->why);
}

// On behalf of a pool that becomes large.
static Status foresee_large(void *context, uint64_t limit) {
    Pass pass = {.line = context, .limit = limit, .silent = true, .during = true};
    foretell_without_input(&pass);
    Status status = pass.why.length > 0 ? refuse(&pass) : STATUS_OK;
    if (!atomic_load(&pass.unfinished)) foresee_end(); // the rest would find the same
    end_pass(&pass);
    return status;
}

// Whether it can be read twice, and what several ranks tell each other is told once.
static bool is_repeatable(const CommandLine *line) {
    struct stat about;
    bool readable = line->code || (stat(line->file, &about) == 0 && S_ISREG(about.st_mode));
    return readable && ranks_count() == 1;
}

bool foretell_refuses(const CommandLine *line) {
    DeviceSettings settings;
    if (line->mode != RUN_PROGRAM || !is_repeatable(line)) return false;
    if (device_settings_read(&settings) != STATUS_OK) return false; // its run will say so
    Pass pass = {.line = line, .limit = settings.limit_bytes, .silent = true};
    rlim_t before = limits_hold(&line->limits);
    if (pass.limit > 0) foretell_without_input(&pass);
    limits_let_go(before);
    bool refused = pass.why.length > 0;
    Foresight foresight = {.context = (void *)(uintptr_t)line};
    if (pass.limit == 0) foresight.large = foresee_large;
    bool open = pass.limit == 0 || atomic_load(&pass.unfinished);
    bool counted = line->limits.disk_bytes > 0; // another process would write files of its own
    if (open && !counted && !ranks_have_met()) foresight.opened = foresee_begin;
    foresee_prepare(line);
    pool_set_foresight(&foresight);
    end_pass(&pass);
    return refused;
}
