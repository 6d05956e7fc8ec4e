// Files of learn blocks: the variables that hold what is trained, as save_model writes them, and
// next to them, as learn.*, the optimizer, the schedule, what was counted and where the random
// numbers stand. A block that resumes goes on with the bits of one that was never stopped.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "device/foretell.h"
#include "learn/learn_shards.h"
#include "model/tensor_sum.h"
#include "ranks/ranks.h"
#include "tensor/compose.h"
#include "value/archive.h"
#include "value/convert.h"
#include "value/items.h"

// --- numbers by where they lie in a run

static const struct {
    const char *name;
    size_t offset;
} counts[] =
    {
#define COUNT(field)                                                                               \
    { #field, offsetof(LearnRun, field) }
        COUNT(done),       COUNT(steps),        COUNT(steps_all),
        COUNT(row),        COUNT(rows),         COUNT(batch_size),
        COUNT(best_epoch), COUNT(waited),       COUNT(shuffled_at.key),
        COUNT(safe.key),   COUNT(safe.counter), COUNT(shuffled_at.counter),
#undef COUNT
},
  numbers[] = {
#define NUMBER(field)                                                                              \
    { #field, offsetof(LearnRun, field) }
      NUMBER(loss_sum),    NUMBER(norm_sum),   NUMBER(weight),       NUMBER(first_loss),
      NUMBER(last_loss),   NUMBER(best),       NUMBER(judged),       NUMBER(base_rate),
      NUMBER(norm_weight), NUMBER(loss_scale), NUMBER(scaled_steps), NUMBER(rate),
#undef NUMBER
};
enum {
    COUNTS = sizeof counts / sizeof *counts,
    NUMBERS = sizeof numbers / sizeof *numbers,
};

static Status add_floats(Archive *archive, const char *name, const double *items, size_t count) {
    Shape shape = {.rank = 1, .dims = {(int64_t)count}};
    Tensor *tensor;
    TRY(tensor_from_floats(items, &shape, DTYPE_FLOAT64, &tensor));
    named_tensors_add(&archive->tensors, name, tensor);
    return STATUS_OK;
}

static Status add_list(Archive *archive, const char *name, const List *list) {
    Value items = {.kind = VALUE_LIST, .as.list = (List *)(uintptr_t)list};
    Tensor *tensor;
    TRY(value_to_wide_tensor(items, name, &tensor));
    named_tensors_add(&archive->tensors, name, tensor);
    return STATUS_OK;
}

static Status add_progress(Archive *archive, const LearnRun *run) {
    int64_t integers[COUNTS];
    double reals[NUMBERS];
    Shape shape = {.rank = 1, .dims = {COUNTS}};
    Tensor *tensor;
    for (int i = 0; i < COUNTS; i++)
        memcpy(&integers[i], (const char *)run + counts[i].offset, sizeof integers[i]);
    for (int i = 0; i < NUMBERS; i++)
        memcpy(&reals[i], (const char *)run + numbers[i].offset, sizeof reals[i]);
    TRY(tensor_from_integers(integers, &shape, DTYPE_INT64, &tensor));
    named_tensors_add(&archive->tensors, "learn.counts", tensor);
    TRY(add_floats(archive, "learn.numbers", reals, NUMBERS));
    TRY(add_list(archive, "learn.losses", run->losses));
    TRY(add_list(archive, "learn.norms", run->norms));
    TRY(add_list(archive, "learn.rates", run->rates));
    return add_list(archive, "learn.validations", run->validations);
}

// --- what is kept next to parameters, by their names

static void add_kept(Archive *archive, const LearnRun *run, const char *word, Tensor **contents,
                     size_t count) {
    SCOPED_TEXT(text);
    for (size_t i = 0; i < count; i++) {
        text_clear(&text);
        text_format(&text, "learn.%s.%s", word,
                    parameters_name(&archive->parameters, run->trained.items[i]));
        if (contents[i])
            named_tensors_add(&archive->tensors, text_get(&text), tensor_retain(contents[i]));
    }
}

static void add_trained(Archive *archive, const LearnRun *run) {
    SCOPED_TEXT(text);
    for (size_t i = 0; i < run->trained.count; i++)
        text_format(&text, "%s%s", i ? "\n" : "",
                    parameters_name(&archive->parameters, run->trained.items[i]));
    named_tensors_add_text(&archive->tensors, "learn.trained", text_get(&text));
}

// --- variables

static bool moves(const LearnRun *run, const Tensor *parameter) {
    for (size_t i = 0; i < run->trained.count; i++)
        if (run->trained.items[i] == parameter) return true;
    for (size_t i = 0; i < optimizer_count(run->optimizer); i++)
        if (optimizer_state(run->optimizer, i).parameter == parameter) return true;
    return false;
}

// Whether a value holds a parameter that is moved. What contains itself is passed by.
static bool holds_trained(const LearnRun *run, const char *name, Value value) {
    ParameterList list = {0};
    bool found = false;
    if (parameters_add(&list, name, value) != STATUS_OK) error_clear();
    for (size_t i = 0; i < list.count && !found; i++) found = moves(run, list.items[i].tensor);
    parameters_free(&list);
    return found;
}

// Calls `use` for the variables that are in the file.
typedef Status (*UseRoot)(Archive *archive, const char *name, Value value);
typedef bool (*IsRoot)(const LearnRun *run, const Archive *archive, const char *name, Value value);

static Status for_roots(LearnRun *run, Archive *archive, IsRoot is_root, UseRoot use) {
    const VariableList *visible = &run->code->visible;
    for (size_t i = 0; i < visible->count; i++) {
        const Value *value = variable_peek(run->frame, visible->items[i]);
        const char *name = variable_name(visible->items[i]);
        if (value && is_root(run, archive, name, *value)) TRY(use(archive, name, *value));
    }
    return STATUS_OK;
}

// Whether a variable before it holds the very same thing, which is saved under that name.
static bool is_alias(const LearnRun *run, const char *name, Value value) {
    const VariableList *visible = &run->code->visible;
    for (size_t i = 0; i < visible->count; i++) {
        if (strcmp(variable_name(visible->items[i]), name) == 0) return false;
        const Value *earlier = variable_peek(run->frame, visible->items[i]);
        bool counted = earlier && earlier->kind == value.kind && value_is_counted(value);
        if (counted && earlier->as.counted == value.as.counted) return true;
    }
    return false;
}

static bool is_saved(const LearnRun *run, const Archive *archive, const char *name, Value value) {
    (void)archive;
    return !is_alias(run, name, value) && holds_trained(run, name, value);
}

static Status check_named(const LearnRun *run, const Archive *archive) {
    for (size_t i = 0; i < run->trained.count; i++) {
        const Tensor *parameter = run->trained.items[i];
        if (parameters_name(&archive->parameters, parameter)) continue;
        (void)fail(STATUS_NAME,
                   "save: a parameter %s that is trained is in no variable that the block sees",
                   tensor_type_name(parameter).text);
        return fail_help("parameters go by the variables that hold them, such as net.w");
    }
    return STATUS_OK;
}

Status learn_check_names(LearnRun *run) {
    if (run->save_path.kind == VALUE_ABSENT) return STATUS_OK;
    Archive archive = {.path = run->save_path.as.string->bytes};
    Status status = for_roots(run, &archive, is_saved, archive_add_parameters);
    if (status == STATUS_OK) status = check_named(run, &archive);
    archive_free(&archive);
    return status;
}

static Status add_names(LearnRun *run, Archive *archive) {
    TRY(for_roots(run, archive, is_saved, archive_add_parameters));
    return check_named(run, archive);
}

static Status fill(LearnRun *run, Archive *archive) {
    TRY(add_names(run, archive));
    TRY(for_roots(run, archive, is_saved, archive_add));
    TRY(archive_add(archive, "learn.optimizer", run->optimizer_value));
    if (run->scheduler) TRY(archive_add(archive, "learn.scheduler", run->scheduler_value));
    add_trained(archive, run);
    add_kept(archive, run, "best", run->best_contents, run->best_count);
    add_kept(archive, run, "average", run->averages, run->average_count);
    return add_progress(archive, run);
}

static Status save(LearnRun *run, const TensorFormat *format) {
    Archive archive = {.path = run->save_path.as.string->bytes, .in_parts = learn_is_sharded(run)};
    Status status = fill(run, &archive);
    if (learn_is_sharded(run)) learn_name_shards(run, &archive, format);
    if (status == STATUS_OK) status = named_tensors_add_sum(&archive.tensors);
    if (status == STATUS_OK) status = format->write(archive.path, &archive.tensors);
    if (status == STATUS_OK && run->pieces > 0) learn_remove_shards(&archive, format);
    archive_free(&archive);
    return status;
}

static Status save_shard(LearnRun *run, const TensorFormat *format) {
    Archive archive = {.path = run->save_path.as.string->bytes};
    Status status = add_names(run, &archive);
    if (status == STATUS_OK) status = learn_write_shard(run, &archive, format);
    archive_free(&archive);
    return status;
}

// No rank goes on before the file is there.
Status learn_save(LearnRun *run) {
    const TensorFormat *format = NULL;
    if (run->save_path.kind == VALUE_ABSENT) return STATUS_OK;
    TRY(tensor_format_find_named(run->save_path.as.string->bytes, &format));
    if (learn_is_sharded(run)) TRY(save_shard(run, format));
    if (learn_writes_files(run)) TRY(save(run, format));
    return run->pieces > 0 ? ranks_barrier() : STATUS_OK;
}

// --- back

static bool begins_with(const char *name, const char *word) {
    size_t length = strlen(word);
    return strncmp(name, word, length) == 0 && (name[length] == '.' || !name[length]);
}

static bool is_in_file(const LearnRun *run, const Archive *archive, const char *name, Value value) {
    (void)run;
    (void)value;
    for (size_t i = 0; i < archive->tensors.count; i++)
        if (begins_with(archive->tensors.items[i].name, name)) return true;
    return false;
}

static Status fail_foreign(const Archive *archive, const char *name, const Tensor *tensor) {
    return fail(STATUS_FORMAT, "%s: `%s` is %s, which no learn block has written", archive->path,
                name, tensor_type_name(tensor).text);
}

static Status find_list(const Archive *archive, const char *name, int64_t wanted, Tensor **out) {
    TRY(archive_find(archive, name, out));
    bool fits = tensor_rank(*out) == 1 && (wanted < 0 || tensor_count(*out) == wanted);
    if (fits) return STATUS_OK;
    return fail_foreign(archive, name, *out);
}

static Status read_list(const Archive *archive, const char *name, List *list) {
    Tensor *tensor;
    TRY(find_list(archive, name, -1, &tensor));
    SCOPED_VALUE(items) = tensor_to_list(tensor);
    if (items.kind == VALUE_FAIL) return error_current()->code;
    list_append(list, items.as.list->items, items.as.list->count);
    return STATUS_OK;
}

static Status check_batches(const LearnRun *run, const LearnRun *saved, const char *path) {
    if (saved->row == 0 || (saved->rows == run->rows && saved->batch_size == run->batch_size))
        return STATUS_OK;
    return fail(STATUS_VALUE,
                "%s stopped within an epoch of %lld rows, %lld at a time; here they are %lld, "
                "%lld at a time",
                path, (long long)saved->rows, (long long)saved->batch_size, (long long)run->rows,
                (long long)run->batch_size);
}

// Into a run of which only numbers are read.
static Status read_progress(const Archive *archive, const LearnRun *run, LearnRun *out) {
    int64_t integers[COUNTS];
    double reals[NUMBERS];
    Tensor *tensor;
    TRY(find_list(archive, "learn.counts", COUNTS, &tensor));
    if (dtype_is_float(tensor_dtype(tensor))) return fail_foreign(archive, "learn.counts", tensor);
    TRY(tensor_read_integers(tensor, integers));
    TRY(find_list(archive, "learn.numbers", NUMBERS, &tensor));
    TRY(tensor_read_floats(tensor, reals));
    for (int i = 0; i < COUNTS; i++)
        memcpy((char *)out + counts[i].offset, &integers[i], sizeof integers[i]);
    for (int i = 0; i < NUMBERS; i++)
        memcpy((char *)out + numbers[i].offset, &reals[i], sizeof reals[i]);
    return check_batches(run, out, archive->path);
}

static void take_progress(LearnRun *run, const LearnRun *saved) {
    int64_t rows = run->rows, batch_size = run->batch_size;
    for (int i = 0; i < COUNTS; i++)
        memcpy((char *)run + counts[i].offset, (const char *)saved + counts[i].offset, 8);
    for (int i = 0; i < NUMBERS; i++)
        memcpy((char *)run + numbers[i].offset, (const char *)saved + numbers[i].offset, 8);
    run->rows = rows;
    run->batch_size = batch_size;
    run->set_rate = optimizer_rate(run->optimizer);
    run->stop = run->patience > 0 && run->waited >= run->patience;
    random_return(run->safe);
}

// One of those kept next to a parameter, in its shape and in memory of its own: it will be written
// to. NULL where the file has none.
static Status read_kept(const Archive *archive, const char *word, const NamedParameter *one,
                        Tensor **out) {
    SCOPED_TEXT(text);
    text_format(&text, "learn.%s.%s", word, one->name);
    Tensor *stored = named_tensors_find(&archive->tensors, text_get(&text));
    bool foreign = stored && tensor_count(stored) != tensor_count(one->tensor);
    Status status = foreign ? fail_foreign(archive, text_get(&text), stored) : STATUS_OK;
    *out = NULL;
    if (!stored || foreign) return status;
    SCOPED_TENSOR(shaped);
    Shape shape = tensor_shape(one->tensor);
    TRY(tensor_reshape(stored, &shape, &shaped));
    return tensor_clone(shaped, out);
}

// The parameters in the order in which they were trained, with what was kept of each.
static Status take_trained(LearnRun *run, Archive *archive) {
    const char *names = named_tensors_text(&archive->tensors, "learn.trained");
    size_t count = archive->parameters.count;
    run->trained.items = memory_resize(run->trained.items, (count + 1) * sizeof(Tensor *));
    run->best_contents = memory_resize(run->best_contents, (count + 1) * sizeof(Tensor *));
    run->averages = memory_resize(run->averages, (count + 1) * sizeof(Tensor *));
    while (names && *names && run->trained.count < count) {
        size_t length = strcspn(names, "\n");
        char *name = memory_copy_string(names, length);
        NamedParameter one = {name, parameters_find(&archive->parameters, name)};
        Status status = STATUS_OK;
        Tensor *best = NULL, *average = NULL;
        if (one.tensor) status = read_kept(archive, "best", &one, &best);
        if (one.tensor && status == STATUS_OK)
            status = read_kept(archive, "average", &one, &average);
        free(name);
        TRY(status);
        names += length + (names[length] == '\n');
        if (!one.tensor) continue;
        run->trained.items[run->trained.count++] = tensor_retain(one.tensor);
        run->best_contents[run->best_count++] = best;
        if (run->ema > 0 && average)
            run->averages[run->average_count++] = average;
        else
            tensor_release(average);
    }
    run->restored = run->trained.count;
    return STATUS_OK;
}

static Status give_root(Archive *archive, const char *name, Value value) {
    (void)name;
    archive_give(archive, value);
    return STATUS_OK;
}

static Status prepare(LearnRun *run, Archive *archive, LearnRun *saved) {
    TRY(for_roots(run, archive, is_in_file, archive_add_parameters));
    TRY(for_roots(run, archive, is_in_file, archive_prepare));
    TRY(archive_prepare(archive, "learn.optimizer", run->optimizer_value));
    if (run->scheduler) TRY(archive_prepare(archive, "learn.scheduler", run->scheduler_value));
    TRY(read_progress(archive, run, saved));
    run->guessed |= foretelling();
    TRY(read_list(archive, "learn.losses", run->losses));
    TRY(read_list(archive, "learn.norms", run->norms));
    TRY(read_list(archive, "learn.rates", run->rates));
    TRY(read_list(archive, "learn.validations", run->validations));
    return take_trained(run, archive);
}

static Status give(LearnRun *run, Archive *archive, const LearnRun *saved) {
    TRY(for_roots(run, archive, is_in_file, give_root));
    archive_give(archive, run->optimizer_value);
    if (run->scheduler) archive_give(archive, run->scheduler_value);
    take_progress(run, saved);
    return STATUS_OK;
}

// The first of the runs that take turns in saving and resuming has nothing to resume yet.
static bool begins_anew(const LearnRun *run, const char *path) {
    if (run->save_path.kind != VALUE_STRING || strcmp(run->save_path.as.string->bytes, path) != 0)
        return false;
    return access(path, F_OK) != 0;
}

Status learn_resume(LearnRun *run) {
    if (run->resume_path.kind == VALUE_ABSENT) return STATUS_OK;
    Archive archive = {.path = run->resume_path.as.string->bytes};
    const TensorFormat *format = NULL;
    LearnRun saved = {0};
    if (begins_anew(run, archive.path)) return STATUS_OK;
    TRY(tensor_format_find_named(archive.path, &format));
    TRY(format->read(archive.path, &archive.tensors));
    Status status = named_tensors_check_sum(&archive.tensors, archive.path);
    if (status == STATUS_OK) status = learn_read_shards(&archive, format);
    if (status == STATUS_OK) status = prepare(run, &archive, &saved);
    if (status == STATUS_OK) status = give(run, &archive, &saved);
    archive_free(&archive);
    return status;
}
