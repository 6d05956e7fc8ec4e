// What a body follows besides its parameters, such as running statistics: each_piece(values, f)
// calls f with the values. Where steps are made of an objective it does so after the step, so that
// one that is interrupted leaves nothing behind; where ranks make them together on every rank, with
// the values of all pieces in their order: what comes of it does not depend on how many ranks there
// are.
#include "eval/invoke.h"
#include "learn/learn_distribute.h"
#include "ranks/ranks.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "tensor/parameter.h"

// A note is a list of the function and the values. run->noted has those of a rank's pieces one
// after the other; run->notes those of its last piece, whose functions serve for all pieces.

static Value call_with(Interp *interp, const List *note, const Value *values) {
    bool enabled = tape_set_enabled(false);
    Value value = interp_call(interp, note->items[0], values, note->count - 1);
    tape_set_enabled(enabled);
    return value;
}

static Status add_value(List *note, Value given) {
    Tensor *plain;
    SCOPED_TENSOR(value);
    TRY(value_to_tensor(given, "each_piece: a value", &value));
    TRY(tape_detach(value, &plain));
    list_push(note, value_tensor(plain));
    return STATUS_OK;
}

static Value note_of(Value values, Value function) {
    Value note = value_list(values.as.list->count + 1);
    Status status = STATUS_OK;
    list_push(note.as.list, value_retain(function));
    for (size_t i = 0; i < values.as.list->count && status == STATUS_OK; i++)
        status = add_value(note.as.list, values.as.list->items[i]);
    if (status == STATUS_OK) return note;
    value_release(note);
    return value_fail();
}

// Values of all pieces lie in one tensor.
static Status check_note(const List *noted, const List *note) {
    const List *first = noted->count > 0 ? noted->items[0].as.list : note;
    if (note->count == 1)
        return fail(STATUS_VALUE, "each_piece: a block with `distribute` needs a value for it");
    DType dtype = tensor_dtype(first->items[1].as.tensor);
    for (size_t i = 1; i < note->count; i++) {
        const Tensor *x = note->items[i].as.tensor;
        bool fits = dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64;
        if (fits && tensor_dtype(x) == dtype) continue;
        return fail(STATUS_DTYPE,
                    "each_piece: a value is %s; in a block with `distribute` all must be float32, "
                    "or all float64",
                    tensor_type_name(x).text);
    }
    return STATUS_OK;
}

Value learn_each_piece(Interp *interp, Value values, Value function) {
    LearnRun *run = learn_running();
    if (learn_state()->replays || (run && run->searching)) return value_none();
    Value note = note_of(values, function);
    if (failed(note)) return note;
    if (run && run->in_part) {
        if (!run->noted) run->noted = value_list(0).as.list;
        Status status = run->pieces > 0 ? check_note(run->noted, note.as.list) : STATUS_OK;
        if (status == STATUS_OK) list_push(run->noted, value_retain(note));
        value_release(note);
        return status == STATUS_OK ? value_none() : value_fail();
    }
    SCOPED_VALUE(value) = call_with(interp, note.as.list, note.as.list->items + 1);
    value_release(note);
    if (failed(value)) return value;
    return value_none();
}

Status learn_follow_alone(LearnRun *run) {
    bool held = runtime_hold_signals(runtime_current, true);
    int came = runtime_take_interrupts(runtime_current, INTERRUPT_SIGNAL);
    Status status = STATUS_OK;
    for (size_t i = 0; i < learn_count_noted(run) && status == STATUS_OK; i++) {
        const List *note = run->noted->items[i].as.list;
        Value value = call_with(run->frame->interp, note, note->items + 1);
        if (failed(value))
            status = error_current()->code;
        else
            value_release(value);
    }
    learn_drop_noted(run);
    runtime_hold_signals(runtime_current, held);
    if (came) runtime_interrupt(runtime_current, came);
    return status;
}

// --- pieces

static uint64_t mixed(uint64_t sign, uint64_t number) {
    return (sign ^ number) * 0x100000001b3u; // FNV-1a
}

// A number that is the same where notes are of the same shapes; 0 of none.
static uint64_t sign_of(const List *notes) {
    uint64_t sign = 0xcbf29ce484222325u;
    for (size_t i = 0; i < notes->count; i++) {
        const List *note = notes->items[i].as.list;
        sign = mixed(sign, note->count);
        for (size_t k = 1; k < note->count; k++) {
            const Tensor *x = note->items[k].as.tensor;
            sign = mixed(mixed(sign, (uint64_t)tensor_dtype(x)), (uint64_t)tensor_rank(x));
            for (int d = 0; d < tensor_rank(x); d++) sign = mixed(sign, (uint64_t)x->view.dims[d]);
        }
    }
    return notes->count > 0 ? sign | 1 : 0;
}

static void release_list(List **list) {
    if (*list) value_release((Value){.kind = VALUE_LIST, .as.list = *list});
    *list = NULL;
}

void learn_forget_notes(LearnRun *run) {
    release_list(&run->noted);
    release_list(&run->notes);
}

void learn_drop_noted(LearnRun *run) {
    release_list(&run->noted);
}

size_t learn_count_noted(const LearnRun *run) {
    return run->noted ? run->noted->count : 0;
}

uint64_t learn_sign_piece(LearnRun *run, size_t before) {
    if (!run->noted) return 0;
    ASSERT(before <= run->noted->count);
    release_list(&run->notes);
    run->notes = value_list(run->noted->count - before).as.list;
    list_append(run->notes, run->noted->items + before, run->noted->count - before);
    return sign_of(run->notes);
}

// --- all of them

static int64_t elements_of(const List *notes) {
    int64_t elements = 0;
    for (size_t i = 0; i < notes->count; i++) {
        const List *note = notes->items[i].as.list;
        for (size_t k = 1; k < note->count; k++) elements += tensor_count(note->items[k].as.tensor);
    }
    return elements;
}

// The values of this rank's pieces in one line.
static Status join_own(const LearnStep *step, const PiecesLayout *layout, Tensor **out) {
    const List *noted = step->run->noted;
    size_t count = learn_count_noted(step->run);
    int64_t at = 0;
    const Shape shape = {.rank = 1, .dims = {pieces_part(layout, ranks_own())}};
    SCOPED_TENSOR(own);
    TRY(tensor_new(layout->device, layout->dtype, &shape, &own));
    for (size_t i = 0; i < count; i++) {
        const List *note = noted->items[i].as.list;
        for (size_t k = 1; k < note->count; k++) {
            SCOPED_TENSOR(place);
            TRY(learn_part_of(own, note->items[k].as.tensor, at, &place));
            TRY(op_copy(note->items[k].as.tensor, place));
            at += tensor_count(place);
        }
    }
    ASSERT(at == shape.dims[0]); // pieces are alike
    return compose_give(&own, out);
}

// A note's function with the values that lie at `at`.
static Status call_at(const LearnStep *step, const List *note, Tensor *all, int64_t *at) {
    SCOPED_VALUE(values) = value_list(note->count);
    Status status = STATUS_OK;
    for (size_t k = 1; k < note->count && status == STATUS_OK; k++) {
        Tensor *like = note->items[k].as.tensor, *value;
        status = learn_part_of(all, like, *at, &value);
        if (status == STATUS_OK) list_push(values.as.list, value_tensor(value));
        *at += tensor_count(like);
    }
    if (status == STATUS_OK) {
        Value value = call_with(step->run->frame->interp, note, values.as.list->items);
        status = failed(value) ? error_current()->code : STATUS_OK;
        if (status == STATUS_OK) value_release(value);
    }
    return status;
}

// Where a piece's values lie among those of all ranks.
static int64_t line_of(const LearnStep *step, int64_t piece, int64_t rounds) {
    return step->by_rounds ? piece % ranks_count() * rounds + piece / ranks_count() : piece;
}

Status learn_follow(const LearnStep *step, uint64_t sign) {
    const List *notes = step->run->notes;
    if (sign == 0) return STATUS_OK;
    if (!notes || sign_of(notes) != sign)
        return fail(STATUS_VALUE,
                    "each_piece: rank %d has had no piece that calls it so far; "
                    "batches need a row for each of the %d ranks",
                    ranks_own(), ranks_count());
    int64_t n = ranks_count(), rounds = (step->pieces + n - 1) / n, block = elements_of(notes);
    int64_t length = block * (step->by_rounds ? rounds * n : step->pieces);
    const Tensor *first = notes->items[0].as.list->items[1].as.tensor;
    const PiecesLayout layout = {.device = first->device,
                                 .dtype = tensor_dtype(first),
                                 .block = block,
                                 .lengths = &length,
                                 .count = 1,
                                 .length = length};
    SCOPED_TENSOR(own);
    SCOPED_TENSOR(all);
    TRY(join_own(step, &layout, &own));
    TRY(pieces_share(&layout, own, &all));
    for (int64_t piece = 0; piece < step->pieces; piece++) {
        int64_t at = line_of(step, piece, rounds) * block;
        for (size_t i = 0; i < notes->count; i++)
            TRY(call_at(step, notes->items[i].as.list, all, &at));
    }
    return STATUS_OK;
}
