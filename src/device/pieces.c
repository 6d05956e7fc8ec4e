// Work in pieces: which dimension is cut and how long a piece is, and the windows through which a
// piece sees what is away. Numbers are those of the whole call, because the kernels that have a cut
// compute rows alone.
#include "device/pieces.h"

#include "device/pool.h"
#include "device/report.h"
#include "device/spill.h"
#include "device/walk.h"

enum {
    OPERANDS_MAX = KERNEL_INPUTS_MAX + KERNEL_OUTPUTS_MAX,
    ROOM_PARTS = 2,        // of the room that is left, windows take one: kernels take memory, too
    ROOM_LEAST_PARTS = 16, // of the limit; where less is left, operands move out
    WHOLE = -2,            // in place of kept dims: the kernel needs all of its operands
    KEPT_OF_OPTIONS = -1,  // their number is KernelOptions.count
    MOVED_TIMES = 2,       // the bytes of operands, by all pieces together
    FOUR = 4,              // numbers that kernels read at once
    LONG_ROW = 64,         // numbers
};

// Dims of the first output that stay together, and how many inputs have its other dims.
typedef struct Cut {
    int kept, follow;
} Cut;

static const Cut cuts[KERNEL_COUNT] = {
#define KERNEL(code, name, kept, follow, doc) [KERNEL_##code] = {kept, follow},
#include "device/kernels.def"
#undef KERNEL
};

// The bytes of a buffer that is away which a piece touches.
typedef struct Window {
    Buffer *whole, *part;
    size_t begin, end;
    int64_t runs; // of so many bytes, one every `stride` bytes: the rows of an optimizer's state
    size_t stride;
    bool filled; // by one output, which nothing reads
} Window;

typedef struct Pieces {
    KernelCall call;    // the whole
    TensorView flat[2]; // of an optimizer
    Pool *pool;
    PieceRun run;
    int leading; // dims that can be cut
    int dim;     // the one that is; those before it are taken one by one
    int64_t at[RANK_MAX], step;
    KernelCall piece;
    TensorView views[OPERANDS_MAX];
    Window windows[OPERANDS_MAX];
    int n_windows;
} Pieces;

static const TensorView *operand(const KernelCall *call, int i) {
    return i < call->n_inputs ? call->inputs[i].view : call->outputs[i - call->n_inputs];
}

static int count_operands(const KernelCall *call) {
    return call->n_inputs + call->n_outputs;
}

static bool is_state(const KernelCall *call, int i) {
    return call->kernel == KERNEL_OPTIMIZER && i == call->n_inputs + 1;
}

// Whether pieces have ranges of this operand, and not all of it.
static bool follows(const KernelCall *call, int i) {
    return i >= call->n_inputs || i < cuts[call->kernel].follow;
}

// --- whether -------------------------------------------------------------------------------------

static bool was_seen(const KernelCall *call, int i) {
    for (int j = 0; j < i; j++)
        if (operand(call, j) && operand(call, j)->buffer == operand(call, i)->buffer) return true;
    return false;
}

// Bytes of the pool that the operands take when all of them are on the device, or those that are
// there now or have to come as a whole.
static uint64_t operand_bytes(const KernelCall *call, bool all) {
    uint64_t bytes = 0;
    for (int i = 0; i < count_operands(call); i++) {
        const TensorView *view = operand(call, i);
        if (!view || was_seen(call, i) || view->buffer->import.release) continue;
        if (all || !view->buffer->away || !follows(call, i)) bytes += view->buffer->capacity;
    }
    return bytes;
}

static bool is_needed(const KernelCall *call, const Pool *pool) {
    return pool->spill.active && pool->limit > 0 && operand_bytes(call, true) > pool->limit;
}

static bool has_rows(const TensorView *view, const TensorView *rows, int leading) {
    if (view->rank < leading || dtype_is_quant(view->dtype)) return false;
    for (int d = 0; d < leading; d++)
        if (view->dims[d] != rows->dims[d]) return false;
    return true;
}

// A parameter, its gradient and its state are contiguous: one row of elements each, or several.
static void flatten_optimizer(Pieces *p) {
    const TensorView *views[2] = {p->call.inputs[0].view, p->call.outputs[0]};
    for (int i = 0; i < 2; i++) {
        p->flat[i] = *views[i];
        p->flat[i].rank = 1;
        p->flat[i].dims[0] = view_count(views[i]);
        p->flat[i].strides[0] = 1;
    }
    p->call.inputs[0].view = &p->flat[0];
    p->call.outputs[0] = &p->flat[1];
}

// How a row is read, and so how its numbers are added, depends on where it begins among fours: that
// is the same for a row alone as for all of them.
static bool lie_alike(const TensorView *view, const TensorView *rows, int leading) {
    int64_t numbers = 1;
    for (int d = leading; d < view->rank; d++) numbers *= view->dims[d];
    for (int d = 0; d < leading; d++) {
        if (view->dims[d] == 1 || view->strides[d] % FOUR == 0) continue;
        bool same = leading == rows->rank || view->strides[d] == rows->strides[d];
        if (numbers % FOUR == 0 || !same) return false;
    }
    return true;
}

// Rows that are long and lie one after the other are reduced each by itself, others side by side.
static bool is_reduced_in_rows(const TensorView *view) {
    return view->strides[view->rank - 1] == 1 && view->dims[view->rank - 1] >= LONG_ROW;
}

// Whether it can be in pieces with the others. What is made again before its use is here then.
static bool can_follow(const Pieces *p, int i) {
    const TensorView *view = operand(&p->call, i);
    if (view->buffer->forgotten) return false;
    if (is_state(&p->call, i)) return !view->buffer->resident && !view->buffer->import.release;
    if (!follows(&p->call, i)) return true;
    if (p->call.kernel == KERNEL_REDUCE && i == 0 && !is_reduced_in_rows(view)) return false;
    const TensorView *rows = p->call.outputs[0];
    return has_rows(view, rows, p->leading) && lie_alike(view, rows, p->leading);
}

static bool is_possible(Pieces *p) {
    const KernelCall *call = &p->call;
    const Cut *cut = &cuts[call->kernel];
    if (cut->kept == WHOLE) return false;
    if (call->kernel == KERNEL_OPTIMIZER) flatten_optimizer(p);
    const TensorView *rows = call->outputs[0];
    p->leading = rows->rank - (cut->kept == KEPT_OF_OPTIONS ? call->options.count : cut->kept);
    if (p->leading <= 0 || view_count(rows) == 0) return false;
    for (int i = 0; i < count_operands(call); i++)
        if (operand(call, i) && !can_follow(p, i)) return false;
    p->call.all_rows = 1;
    for (int d = 0; d < p->leading; d++) p->call.all_rows *= rows->dims[d];
    return true;
}

// --- what a piece touches ------------------------------------------------------------------------

static void narrow(TensorView *view, int dim, int64_t first, int64_t count) {
    ASSERT(dim < view->rank && first >= 0 && count > 0 && first + count <= view->dims[dim]);
    view->offset += (size_t)(first * view->strides[dim]) * dtype_size(view->dtype);
    view->dims[dim] = count;
}

static int64_t piece_count(const Pieces *p) {
    int64_t left = p->call.outputs[0]->dims[p->dim] - p->at[p->dim];
    return left < p->step ? left : p->step;
}

static void cut_operands(Pieces *p) {
    const KernelCall *call = &p->call;
    p->piece = *call;
    for (int i = 0; i < count_operands(call); i++) {
        if (!operand(call, i)) continue;
        TensorView *view = &p->views[i];
        *view = *operand(call, i);
        if (i < call->n_inputs)
            p->piece.inputs[i].view = view;
        else
            p->piece.outputs[i - call->n_inputs] = view;
        if (!follows(call, i)) continue;
        for (int d = 0; d < p->dim; d++) narrow(view, d, p->at[d], 1);
        narrow(view, is_state(call, i) ? 1 : p->dim, p->at[p->dim], piece_count(p));
    }
}

static void widen(Window *window, const TensorView *view, bool written) {
    int64_t low = 0, high = 0, size = (int64_t)dtype_size(view->dtype);
    for (int d = 0; d < view->rank; d++) {
        int64_t reach = (view->dims[d] - 1) * view->strides[d] * size;
        *(reach < 0 ? &low : &high) += reach;
    }
    ASSERT(low <= 0 && (size_t)-low <= view->offset);
    size_t begin = view->offset - (size_t)-low, end = view->offset + (size_t)(high + size);
    bool first = window->end == 0;
    if (first || begin < window->begin) window->begin = begin;
    if (first || end > window->end) window->end = end;
    window->filled = written && first && (int64_t)(end - begin) == view_count(view) * size;
}

// Rows of a state are next to each other in the window, as the kernel wants them.
static void widen_state(Window *window, const TensorView *state) {
    size_t size = dtype_size(state->dtype);
    window->begin = state->offset;
    window->end = state->offset + (size_t)state->dims[1] * size;
    window->runs = state->dims[0];
    window->stride = (size_t)state->strides[0] * size;
}

static Window *window_of(Pieces *p, const Buffer *whole) {
    for (int i = 0; i < p->n_windows; i++)
        if (p->windows[i].whole == whole) return &p->windows[i];
    return NULL;
}

static void find_windows(Pieces *p) {
    p->n_windows = 0;
    for (int i = 0; i < count_operands(&p->piece); i++) {
        const TensorView *view = operand(&p->piece, i);
        if (!view || !view->buffer->away || view->buffer->handle) continue;
        Window *window = window_of(p, view->buffer);
        if (!window && !follows(&p->piece, i)) continue;
        if (!window) {
            window = &p->windows[p->n_windows++];
            *window = (Window){.whole = view->buffer, .runs = 1};
        }
        if (is_state(&p->piece, i))
            widen_state(window, view);
        else
            widen(window, view, i >= p->piece.n_inputs && p->piece.kernel != KERNEL_OPTIMIZER);
    }
}

// From where its bytes begin to where they are aligned as in the whole buffer.
static size_t lead_of(const Window *window) {
    return window->runs == 1 ? window->begin % WINDOW_ALIGNMENT : 0;
}

static size_t window_bytes(const Window *window) {
    return lead_of(window) + (window->end - window->begin) * (size_t)window->runs;
}

static uint64_t all_window_bytes(const Pieces *p) {
    uint64_t bytes = 0;
    for (int i = 0; i < p->n_windows; i++) bytes += pool_class_bytes(window_bytes(&p->windows[i]));
    return bytes;
}

// --- how long ------------------------------------------------------------------------------------

static uint64_t room(const Pieces *p) {
    uint64_t taken = operand_bytes(&p->call, false);
    return taken < p->pool->limit ? p->pool->limit - taken : 0;
}

// An operand that is on the device and may leave it; NULL: it may not, or is away.
static Buffer *movable(const KernelCall *call, int i) {
    const TensorView *view = operand(call, i);
    if (!view || view->buffer->away || !follows(call, i)) return NULL;
    return view->buffer->import.release || view->buffer->resident ? NULL : view->buffer;
}

// Operands that are on the device stay where that leaves enough room for windows on the others. A
// state has a window always.
static Status leave_room(const Pieces *p) {
    for (int i = count_operands(&p->call) - 1; i >= 0; i--) {
        Buffer *buffer = movable(&p->call, i);
        if (!buffer) continue;
        if (is_state(&p->call, i) || room(p) < p->pool->limit / ROOM_LEAST_PARTS)
            TRY(spill_move_out(buffer));
    }
    return STATUS_OK;
}

// Where others hold more than was thought: one operand more is looked at through a window. Returns
// whether there was one.
static bool leave_more_room(const Pieces *p) {
    for (int i = count_operands(&p->call) - 1; i >= 0; i--) {
        Buffer *buffer = movable(&p->call, i);
        if (buffer) return spill_move_out(buffer) == STATUS_OK;
    }
    return false;
}

// Where rows lie apart, or are short, pieces read much that is not theirs: what kernels can use
// where it lies is better used there.
static bool is_worth_moving(const Pieces *p) {
    const int64_t *dims = p->call.outputs[0]->dims;
    uint64_t pieces = (uint64_t)((dims[p->dim] + p->step - 1) / p->step), moved = 0, whole = 0;
    for (int d = 0; d < p->dim; d++) pieces *= (uint64_t)dims[d];
    for (int i = 0; i < p->n_windows; i++) {
        if (p->windows[i].whole->away_unlocked) return true;
        moved += pieces * window_bytes(&p->windows[i]);
        whole += p->windows[i].whole->bytes;
    }
    return moved <= MOVED_TIMES * whole;
}

// The outermost dim whose single steps fit, and as many of them as do.
static bool choose_step(Pieces *p) {
    uint64_t most = room(p) / ROOM_PARTS;
    if (most > PIECE_BYTES) most = PIECE_BYTES;
    for (p->dim = 0; p->dim < p->leading; p->dim++) {
        p->step = p->call.outputs[0]->dims[p->dim];
        for (;;) {
            cut_operands(p);
            find_windows(p);
            if (p->n_windows > 0 && all_window_bytes(p) <= most) return is_worth_moving(p);
            if (p->step == 1) break;
            p->step = (p->step + 1) / 2;
        }
    }
    return false;
}

// --- one piece -----------------------------------------------------------------------------------

static Status move(const Window *window, bool in) {
    ASSERT(window->end > window->begin && window->runs > 0 && window->part);
    size_t run = window->end - window->begin;
    for (int64_t i = 0; i < window->runs; i++) {
        SpillPart part = {.whole = window->whole,
                          .offset = window->begin + (size_t)i * window->stride,
                          .window = window->part,
                          .at = lead_of(window) + (size_t)i * run,
                          .bytes = run};
        TRY(spill_move_part(&part, in));
    }
    return STATUS_OK;
}

static void end_windows(Pieces *p) {
    for (int i = 0; i < p->n_windows; i++) buffer_release(p->windows[i].part);
    p->n_windows = 0;
}

// Operands that are not cut, or are on the device, are used as ever.
static Status bring_operands(Pieces *p) {
    for (int i = 0; i < count_operands(&p->piece); i++) {
        const TensorView *view = operand(&p->piece, i);
        if (view && !window_of(p, view->buffer)) TRY(spill_use(view->buffer));
    }
    for (int i = 0; i < p->n_windows; i++) {
        Window *window = &p->windows[i];
        TRY(pool_acquire_window(p->pool, window_bytes(window), &window->part));
        if (!window->filled) TRY(move(window, true));
    }
    return STATUS_OK;
}

static void look_through_windows(Pieces *p) {
    for (int i = 0; i < count_operands(&p->piece); i++) {
        TensorView *view = &p->views[i];
        const Window *window = operand(&p->piece, i) ? window_of(p, view->buffer) : NULL;
        if (!window) continue;
        view->buffer = window->part;
        view->offset = view->offset - window->begin + lead_of(window);
        if (is_state(&p->piece, i)) view->strides[0] = view->dims[1];
        ASSERT(view_fits(view));
    }
}

static bool is_written(const Pieces *p, const Window *window) {
    for (int i = 0; i < p->piece.n_outputs; i++)
        if (p->piece.outputs[i] && p->piece.outputs[i]->buffer == window->part) return true;
    return false;
}

static Status run_piece(Pieces *p) {
    cut_operands(p);
    find_windows(p);
    p->pool->spill.turn++;
    p->pool->spill.running = &p->piece;
    Status status = bring_operands(p);
    if (status == STATUS_OK) {
        look_through_windows(p);
        status = p->run(p->pool->device, &p->piece);
    }
    p->pool->spill.running = NULL;
    for (int i = 0; i < p->n_windows && status == STATUS_OK; i++)
        if (is_written(p, &p->windows[i])) status = move(&p->windows[i], false);
    end_windows(p);
    p->pool->statistics.pieces++;
    return status;
}

// --- all pieces ----------------------------------------------------------------------------------

static bool next_piece(Pieces *p) {
    const int64_t *dims = p->call.outputs[0]->dims;
    ASSERT(p->dim < p->leading && p->step > 0);
    p->at[p->dim] += piece_count(p);
    for (int d = p->dim; p->at[d] == dims[d]; d--) {
        if (d == 0) return false;
        p->at[d] = 0;
        p->at[d - 1]++;
    }
    return true;
}

static Status run_all(Pieces *p) {
    do {
        Status status = run_piece(p);
        while (status == STATUS_MEMORY && (p->step > 1 || leave_more_room(p))) {
            p->step = (p->step + 1) / 2;
            status = run_piece(p);
        }
        if (status == STATUS_MEMORY) {
            const Buffer *result = p->call.outputs[0]->buffer;
            return report_refusal(p->pool, result->bytes, &result->label);
        }
        TRY(status);
    } while (next_piece(p));
    return STATUS_OK;
}

Status pieces_run(const KernelCall *call, PieceRun run, bool *done) {
    Pool *pool = call->outputs[0]->buffer->device->pool;
    *done = false;
    if (!is_needed(call, pool)) return STATUS_OK;
    Pieces p = {.call = *call, .pool = pool, .run = run};
    if (call->kernel == KERNEL_REDUCE && view_count(call->outputs[0]) == 1)
        return pieces_reduce(call, run, room(&p) / ROOM_PARTS, done);
    if (!is_possible(&p)) return STATUS_OK;
    Status status = leave_room(&p);
    if (status == STATUS_MEMORY || (status == STATUS_OK && !choose_step(&p))) return STATUS_OK;
    TRY(status);
    *done = true;
    spill_change_outputs(call);
    pool->statistics.calls_in_pieces++;
    return spill_finish(call, run_all(&p));
}
