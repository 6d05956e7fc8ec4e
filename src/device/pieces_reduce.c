// A reduction of one row that does not fit on the device, to one number: some of the parts that the
// kernel makes of such a row at a time, whose states another call joins. The bits are those of a
// row that fits.
#include "device/pieces.h"

#include "device/pool.h"
#include "device/reduction.h"
#include "device/spill.h"
#include "device/walk.h"

enum { STATE_BYTES = 8, PARTS_MAX = 1024 };

typedef struct RowPieces {
    const KernelCall *call;
    const TensorView *row;
    Pool *pool;
    PieceRun run;
    int64_t numbers, part, parts, step; // a piece is `step` parts
    bool folds_twice;
    TensorView states, parameter;
} RowPieces;

// A contiguous row whose bytes are at a place of its own.
static bool is_possible(const KernelCall *call) {
    const TensorView *row = call->inputs[0].view;
    if (!row || !row->buffer->away || row->buffer->handle || row->buffer->forgotten) return false;
    return !dtype_is_quant(row->dtype) && view_is_contiguous(row) && view_count(row) > 0;
}

// Where it lies is all that matters of the buffer.
static TensorView row_view(const RowPieces *p, Buffer *buffer, size_t offset, int64_t numbers) {
    TensorView view = {.buffer = buffer, .offset = offset, .dtype = p->row->dtype, .rank = 1};
    view.dims[0] = numbers;
    view.strides[0] = 1;
    return view;
}

static TensorView states_view(Buffer *buffer, int64_t first, int64_t count) {
    TensorView view = {.buffer = buffer, .dtype = DTYPE_INT64, .rank = 1};
    view.offset = (size_t)first * STATE_BYTES;
    view.dims[0] = count;
    view.strides[0] = 1;
    return view;
}

static KernelCall call_of(const RowPieces *p, ReduceStage stage, bool second) {
    KernelCall call = *p->call;
    call.n_inputs = 1;
    call.all_rows = 0;
    call.options.count = 1;
    int64_t *integers = call.options.integers;
    ASSERT(stage != REDUCE_WHOLE);
    integers[REDUCE_STAGE] = stage;
    integers[REDUCE_IS_SECOND] = second;
    integers[REDUCE_NUMBERS] = p->numbers;
    integers[REDUCE_FROM] = p->row->dtype;
    integers[REDUCE_TO] = p->call->outputs[0]->dtype;
    if (second && p->folds_twice) call.inputs[call.n_inputs++].view = &p->parameter;
    return call;
}

static Status run_call(const RowPieces *p, const KernelCall *call) {
    Spill *spill = &p->pool->spill;
    spill->turn++;
    spill->running = call;
    Status status = p->run(p->pool->device, call);
    spill->running = NULL;
    return status;
}

static Status fold_piece(const RowPieces *p, int64_t first, bool second) {
    int64_t parts = p->parts - first < p->step ? p->parts - first : p->step;
    int64_t begin = first * p->part, left = p->numbers - begin;
    int64_t numbers = parts * p->part < left ? parts * p->part : left;
    ASSERT(parts > 0 && numbers > 0);
    size_t size = dtype_size(p->row->dtype), offset = p->row->offset + (size_t)begin * size;
    SpillPart moved = {.whole = p->row->buffer,
                       .offset = offset,
                       .at = offset % WINDOW_ALIGNMENT,
                       .bytes = (size_t)numbers * size};
    TRY(pool_acquire_window(p->pool, moved.at + moved.bytes, &moved.window));
    Status status = spill_move_part(&moved, true);
    TensorView row = row_view(p, moved.window, moved.at, numbers);
    TensorView states = states_view(p->states.buffer, first, parts);
    KernelCall call = call_of(p, REDUCE_STATES, second);
    call.inputs[0].view = &row;
    call.outputs[0] = &states;
    if (status == STATUS_OK) status = run_call(p, &call);
    buffer_release(moved.window);
    p->pool->statistics.pieces++;
    return status;
}

static Status fold_all(RowPieces *p, bool second) {
    for (int64_t first = 0; first < p->parts;) {
        Status status = fold_piece(p, first, second);
        if (status == STATUS_MEMORY && p->step > 1) { // others hold more than was thought
            p->step = (p->step + 1) / 2;
            continue;
        }
        TRY(status);
        first += p->step;
    }
    KernelCall join = call_of(p, REDUCE_JOIN, second);
    join.inputs[0].view = &p->states;
    if (!second) join.outputs[0] = &p->parameter;
    return run_call(p, &join);
}

static Status reduce(RowPieces *p) {
    TRY(spill_use(p->call->outputs[0]->buffer));
    if (p->folds_twice) TRY(fold_all(p, false));
    return fold_all(p, true);
}

// How many parts the kernel makes of the row, and how many of them fit into so many bytes.
static bool choose_parts(RowPieces *p, uint64_t room) {
    Device *device = p->pool->device;
    TensorView alike = row_view(p, p->states.buffer, p->row->offset % WINDOW_ALIGNMENT, p->numbers);
    TensorView one = *p->call->outputs[0];
    one.buffer = p->states.buffer;
    one.offset = 0;
    one.rank = 0;
    KernelCall call = *p->call;
    call.inputs[0].view = &alike;
    call.outputs[0] = &one;
    call.options.count = 1;
    p->part = device->backend->reduce_part(device, &call);
    ASSERT(p->part >= 0 && p->part <= p->numbers);
    if (p->part == 0) return false;
    p->parts = (p->numbers + p->part - 1) / p->part;
    if (room > PIECE_BYTES) room = PIECE_BYTES;
    p->step = (int64_t)(room / ((uint64_t)p->part * dtype_size(p->row->dtype)));
    return p->step > 0 && p->parts <= PARTS_MAX;
}

static Status reduce_with_states(RowPieces *p, uint64_t room, bool *done) {
    if (!choose_parts(p, room)) return STATUS_OK;
    p->states = states_view(p->states.buffer, 0, p->parts);
    p->parameter = states_view(p->states.buffer, PARTS_MAX, 1);
    *done = true;
    spill_change_outputs(p->call);
    p->pool->statistics.calls_in_pieces++;
    return spill_finish(p->call, reduce(p));
}

Status pieces_reduce(const KernelCall *call, PieceRun run, uint64_t room, bool *done) {
    if (!is_possible(call)) return STATUS_OK;
    Pool *pool = call->outputs[0]->buffer->device->pool;
    RowPieces p = {.call = call, .row = call->inputs[0].view, .pool = pool, .run = run};
    p.numbers = view_count(p.row);
    p.folds_twice = reduction_plans[call->options.op].first != FOLD_NONE;
    Buffer *states;
    Status status = pool_acquire_window(pool, (PARTS_MAX + 1) * STATE_BYTES, &states);
    if (status == STATUS_MEMORY) return STATUS_OK;
    TRY(status);
    p.states.buffer = states;
    status = reduce_with_states(&p, room, done);
    buffer_release(states);
    return status;
}
