// The MAP kernel: runs a short program of elementwise formulas over strided operands, a cache-sized
// piece at a time. Knows no formula: those are in simd/.
#include "device/cpu/map.h"

#include <string.h>

#include "device/cpu/iterate.h"

enum {
    PIECE_BYTES = 2048, // of one register: all of them together stay in the first cache
    SHORT_ROW_BYTES = 256,
    REGISTERS_MAX = KERNEL_INPUTS_MAX + MAP_STEPS_MAX,
    TASK_ELEMENTS = 1 << 14, // of a contiguous map: one task's work
    STREAM_BYTES = 64 << 20, // results from here on go past the caches
};

// For errors, and how many operands each formula takes.
static const struct {
    const char *name;
    int arity;
    bool whole; // only for integers
} formulas[MAP_COUNT] = {
#define MAP1(code, formula, ...) [MAP_##code] = {#code, 1, false},
#define MAP2(code, formula, ...) [MAP_##code] = {#code, 2, false},
#define MAP3(code, formula, ...) [MAP_##code] = {#code, 3, false},
#define MAP1F MAP1
#define MAP2F MAP2
#define MAP1I(code, formula, ...) [MAP_##code] = {#code, 1, true},
#define MAP2I(code, formula, ...) [MAP_##code] = {#code, 2, true},
#include "catalog/maps.def"
};

typedef struct Step {
    MapLoop loop;
    int arity;
    uint8_t in[MAP_ARITY_MAX]; // registers
} Step;

typedef struct Input {
    int64_t scalar; // bits of an immediate operand, in the compute type
    ConvertLoad load;
    int64_t size; // bytes of a stored element; 0 for an immediate operand
    bool native;  // stored in the compute type
} Input;

typedef struct MapRun {
    CpuCompute compute;
    int64_t size; // bytes of a number of the compute type
    int n_inputs, n_steps;
    Input inputs[KERNEL_INPUTS_MAX];
    Step steps[MAP_STEPS_MAX];
    ConvertStore store;
    int64_t output_size;
    bool output_native;
    // Copies a result past the caches; NULL where it may stay in them.
    void (*stream)(void *to, const void *from, size_t bytes);
} MapRun;

// Where the numbers of a register are. `single`: one number stands for all.
typedef struct Register {
    const void *numbers;
    bool single;
} Register;

typedef struct Registers {
    Register registers[REGISTERS_MAX];
    _Alignas(MAP_BLOCK_BYTES) char buffers[REGISTERS_MAX][PIECE_BYTES];
} Registers;

static void load_inputs(const MapRun *run, char *const *pointers, const int64_t *strides,
                        int64_t count, Registers *file) {
    for (int k = 0; k < run->n_inputs; k++) {
        const Input *input = &run->inputs[k];
        Register *target = &file->registers[k];
        int64_t stride = strides[k + 1];
        target->single = input->size == 0 || stride == 0;
        target->numbers = file->buffers[k];
        if (input->size == 0) {
            target->numbers = &input->scalar;
        } else if (input->native && (stride == input->size || stride == 0)) {
            target->numbers = pointers[k + 1];
        } else {
            input->load(file->buffers[k], pointers[k + 1], stride / input->size,
                        target->single ? 1 : count);
        }
    }
}

// Runs one step into `to`; false when its operands are all single, so that its result is too.
static bool run_step(const Step *step, const Register *registers, void *to, int64_t count) {
    const void *in[MAP_ARITY_MAX] = {NULL}; // gcc -O3 cannot see that arity is above 0
    unsigned singles = 0;
    for (int k = 0; k < step->arity; k++) {
        const Register *operand = &registers[step->in[k]];
        in[k] = operand->numbers;
        singles |= (operand->single ? 1u : 0u) << k;
    }
    bool all = singles == (1u << step->arity) - 1;
    step->loop(to, in, all ? 0 : singles, all ? 1 : count);
    return !all;
}

static void fill_from_first(char *numbers, int64_t size, int64_t count) {
    for (int64_t i = 1; i < count; i++) memcpy(numbers + i * size, numbers, (size_t)size);
}

static void store_output(const MapRun *run, char *to, int64_t stride, const char *from,
                         int64_t count) {
    if (run->stream)
        run->stream(to, from, (size_t)(count * run->output_size));
    else
        run->store(to, stride / run->output_size, from, count);
}

// The steps on `count` numbers of each register; the last one's results go to `result`.
static void run_steps(const MapRun *run, Registers *file, char *result, int64_t count) {
    int last = run->n_steps - 1;
    for (int s = 0; s <= last; s++) {
        char *to = s == last ? result : file->buffers[run->n_inputs + s];
        bool filled = run_step(&run->steps[s], file->registers, to, count);
        file->registers[run->n_inputs + s] = (Register){to, !filled};
        if (s == last && !filled) fill_from_first(to, run->size, count);
    }
}

// A piece: at most PIECE_BYTES of each register.
static void run_piece(const MapRun *run, char *const *pointers, const int64_t *strides,
                      int64_t count) {
    Registers file;
    load_inputs(run, pointers, strides, count, &file);
    bool in_place = run->output_native && strides[0] == run->output_size && !run->stream;
    char *result = in_place ? pointers[0] : file.buffers[run->n_inputs + run->n_steps - 1];
    run_steps(run, &file, result, count);
    if (!in_place) store_output(run, pointers[0], strides[0], result, count);
}

// A single step over operands that are stored as they are computed needs no pieces.
static bool run_direct(const MapRun *run, char *const *pointers, const int64_t *strides,
                       int64_t count) {
    if (run->n_steps != 1 || !run->output_native || strides[0] != run->output_size || run->stream)
        return false;
    Register registers[KERNEL_INPUTS_MAX];
    bool all_single = true;
    for (int k = 0; k < run->n_inputs; k++) {
        const Input *input = &run->inputs[k];
        int64_t stride = strides[k + 1];
        bool single = input->size == 0 || stride == 0;
        if (input->size != 0 && !(input->native && (single || stride == input->size))) return false;
        registers[k] =
            (Register){input->size == 0 ? &input->scalar : (void *)pointers[k + 1], single};
        all_single &= single;
    }
    if (all_single) return false;
    return run_step(&run->steps[0], registers, pointers[0], count);
}

static void run_row(void *context, char *const *pointers, const int64_t *strides, int64_t count) {
    const MapRun *run = context;
    if (run_direct(run, pointers, strides, count)) return;
    char *at[KERNEL_INPUTS_MAX + 1];
    int views = run->n_inputs + 1;
    int64_t piece_max = PIECE_BYTES / run->size;
    for (int v = 0; v < views; v++) at[v] = pointers[v];
    for (int64_t done = 0; done < count; done += piece_max) {
        int64_t left = count - done, piece = left < piece_max ? left : piece_max;
        run_piece(run, at, strides, piece);
        for (int v = 0; v < views; v++) at[v] = iterate_move(at[v], piece * strides[v]);
    }
}

// Short rows: as many of them as a register holds go through the steps together.
typedef struct ShortRows {
    const MapRun *run;
    int64_t count; // numbers of a row
    int64_t strides[KERNEL_INPUTS_MAX + 1];
} ShortRows;

// Where an input's rows lie, `row_stride` bytes apart, and its numbers in them.
typedef struct RowsOf {
    const char *from;
    int64_t row_stride, stride, rows, count;
} RowsOf;

static void repeat(char *numbers, int64_t have, int64_t wanted) {
    for (; have < wanted; have *= 2)
        memcpy(numbers + have, numbers, (size_t)(have < wanted - have ? have : wanted - have));
}

static Register load_rows(const MapRun *run, const Input *input, const RowsOf *rows, char *buffer) {
    int64_t row = rows->count * run->size;
    if (input->size == 0) return (Register){&input->scalar, true};
    if (rows->stride == 0 && rows->row_stride == 0) {
        input->load(buffer, rows->from, 0, 1);
        return (Register){buffer, true};
    }
    bool lines = rows->stride == input->size && rows->row_stride == rows->count * input->size;
    if (lines && input->native) return (Register){rows->from, false};
    int64_t distinct = rows->row_stride == 0 ? 1 : rows->rows;
    int64_t each = rows->stride == 0 ? 1 : rows->count;
    for (int64_t r = 0; r < distinct; r++) {
        input->load(buffer + r * row, rows->from + r * rows->row_stride, rows->stride / input->size,
                    each);
        repeat(buffer + r * row, each * run->size, row);
    }
    repeat(buffer, distinct * row, rows->rows * row);
    return (Register){buffer, false};
}

static void run_rows(void *context, char *const *pointers, const int64_t *strides, int64_t count) {
    const ShortRows *rows = context;
    const MapRun *run = rows->run;
    Registers file;
    int64_t most = PIECE_BYTES / (rows->count * run->size);
    int64_t out_row = rows->count * run->output_size;
    bool in_place =
        run->output_native && rows->strides[0] == run->output_size && strides[0] == out_row;
    for (int64_t done = 0; done < count; done += most) {
        int64_t n = count - done < most ? count - done : most;
        for (int k = 0; k < run->n_inputs; k++) {
            RowsOf of = {iterate_move(pointers[k + 1], done * strides[k + 1]), strides[k + 1],
                         rows->strides[k + 1], n, rows->count};
            file.registers[k] = load_rows(run, &run->inputs[k], &of, file.buffers[k]);
        }
        char *out = pointers[0] + done * strides[0];
        char *result = in_place ? out : file.buffers[run->n_inputs + run->n_steps - 1];
        run_steps(run, &file, result, n * rows->count);
        for (int64_t r = 0; r < n && !in_place; r++)
            run->store(out + r * strides[0], rows->strides[0] / run->output_size,
                       result + r * rows->count * run->size, rows->count);
    }
}

static bool run_short_rows(Iteration *it, const MapRun *run) {
    int last = it->walk.rank - 1;
    if (last == 0 || it->count * run->size > SHORT_ROW_BYTES) return false;
    ShortRows rows = {.run = run, .count = it->count};
    for (int v = 0; v <= run->n_inputs; v++) rows.strides[v] = it->walk.strides[v][last];
    it->walk.rank = last;
    it->count = it->walk.dims[last - 1];
    it->rows /= it->count;
    iterate_divide(it, rows.count);
    iterate_run(it, run_rows, &rows);
    return true;
}

static const MapTable *map_table(CpuCompute compute) {
    switch (compute) {
    case COMPUTE_F32: return CPU_CHOOSE(&map_f32);
    case COMPUTE_F64: return CPU_CHOOSE(&map_f64);
    case COMPUTE_I32: return CPU_CHOOSE(&map_i32);
    default: return CPU_CHOOSE(&map_i64);
    }
}

// One formula of int64s that are stored in 32 bits or less gives the same bits when it wraps at 32.
static bool wraps_at_32(const KernelCall *call) {
    if (call->options.n_steps != 1 || !fits_int32(call->outputs[0]->dtype)) return false;
    for (int k = 0; k < call->n_inputs; k++) {
        const KernelOperand *operand = &call->inputs[k];
        const Scalar *scalar = &operand->scalar;
        if (operand->view ? !fits_int32(operand->view->dtype)
                          : scalar->dtype == DTYPE_FLOAT64 || scalar->as.i != (int32_t)scalar->as.i)
            return false;
    }
    return true;
}

static Status prepare_steps(const KernelCall *call, MapRun *run) {
    const KernelOptions *options = &call->options;
    const MapTable *table = map_table(run->compute);
    ASSERT(options->n_steps >= 1 && options->n_steps <= MAP_STEPS_MAX);
    run->n_steps = options->n_steps;
    for (int s = 0; s < options->n_steps; s++) {
        const MapStep *from = &options->steps[s];
        ASSERT(from->op < MAP_COUNT);
        Step *step = &run->steps[s];
        *step = (Step){(*table)[from->op], formulas[from->op].arity, {from->a, from->b, from->c}};
        for (int k = 0; k < step->arity; k++) ASSERT(step->in[k] < call->n_inputs + s);
        if (!step->loop)
            return fail(STATUS_DTYPE, "%s: %s works on %s, not on %s", call->op_name,
                        formulas[from->op].name,
                        formulas[from->op].whole ? "integers" : "float types",
                        dtype_name(options->compute));
    }
    return STATUS_OK;
}

static Status prepare_inputs(const KernelCall *call, const ConvertTable *convert, MapRun *run) {
    ASSERT((unsigned)call->n_inputs <= KERNEL_INPUTS_MAX);
    DType native = compute_dtype(run->compute);
    run->n_inputs = call->n_inputs;
    for (int k = 0; k < call->n_inputs; k++) {
        const KernelOperand *operand = &call->inputs[k];
        Input *input = &run->inputs[k];
        if (operand->view) {
            DType dtype = operand->view->dtype;
            input->load = convert->load[run->compute][dtype];
            if (!input->load)
                return fail(STATUS_DTYPE,
                            "%s: %s cannot be computed with; convert it to a float "
                            "type first",
                            call->op_name, dtype_name(dtype));
            input->size = (int64_t)dtype_size(dtype);
            input->native = dtype == native;
        } else {
            bool is_float = operand->scalar.dtype == DTYPE_FLOAT64;
            input->size = 0;
            convert->load[run->compute][is_float ? DTYPE_FLOAT64 : DTYPE_INT64](
                &input->scalar, &operand->scalar.as, 1, 1);
        }
    }
    return STATUS_OK;
}

// True when every view lies as the output does, without gaps: the map is one long row.
static bool is_one_row(const KernelCall *call) {
    const TensorView *out = call->outputs[0];
    if (!view_is_contiguous(out)) return false;
    for (int k = 0; k < call->n_inputs; k++) {
        const TensorView *view = call->inputs[k].view;
        if (!view) continue;
        for (int d = 0; d < out->rank; d++)
            if (view->strides[d] != out->strides[d] && out->dims[d] != 1) return false;
    }
    return true;
}

typedef struct LongRow {
    const MapRun *run;
    int64_t count;
    char *pointers[KERNEL_INPUTS_MAX + 1];
    int64_t strides[KERNEL_INPUTS_MAX + 1];
} LongRow;

static void run_tasks(void *context, int64_t begin, int64_t end) {
    const LongRow *row = context;
    char *pointers[KERNEL_INPUTS_MAX + 1];
    int64_t first = begin * TASK_ELEMENTS, last = end * TASK_ELEMENTS;
    for (int v = 0; v <= row->run->n_inputs; v++)
        pointers[v] = row->pointers[v] + first * row->strides[v];
    run_row((void *)row->run, pointers, row->strides,
            (last < row->count ? last : row->count) - first);
}

static void run_one_row(const KernelCall *call, MapRun *run) {
    const TensorView *out = call->outputs[0];
    LongRow row;
    row.run = run;
    row.count = view_count(out);
    row.pointers[0] = cpu_pointer(out);
    row.strides[0] = run->output_size;
    bool aliased = false;
    for (int k = 0; k < call->n_inputs; k++) {
        const TensorView *view = call->inputs[k].view;
        row.pointers[k + 1] = view ? cpu_pointer(view) : NULL;
        row.strides[k + 1] = run->inputs[k].size;
        aliased |= row.pointers[k + 1] == row.pointers[0];
    }
    if (row.count <= TASK_ELEMENTS) {
        if (row.count > 0) run_row(run, row.pointers, row.strides, row.count);
        return;
    }
    bool aligned = (uintptr_t)row.pointers[0] % MAP_BLOCK_BYTES == 0;
    if (row.count * run->output_size >= STREAM_BYTES && run->output_native && aligned && !aliased)
        run->stream = CPU_CHOOSE(stream_copy);
    cpu_parallel((row.count + TASK_ELEMENTS - 1) / TASK_ELEMENTS, 1, run_tasks, &row);
}

// A single step over a short row of tensors that are stored as they are computed needs no plan.
static bool run_short(const KernelCall *call, CpuCompute compute) {
    const TensorView *out = call->outputs[0];
    const MapStep *from = &call->options.steps[0];
    int64_t count = view_count(out);
    if (call->options.n_steps != 1 || count > TASK_ELEMENTS) return false;
    Step step = {(*map_table(compute))[from->op], call->n_inputs, {from->a, from->b, from->c}};
    DType native = compute_dtype(compute);
    if (out->dtype != native || step.arity != formulas[from->op].arity || !step.loop) return false;
    Register registers[KERNEL_INPUTS_MAX];
    for (int k = 0; k < call->n_inputs; k++) {
        const TensorView *view = call->inputs[k].view;
        ASSERT(k >= step.arity || step.in[k] < call->n_inputs);
        if (!view || view->dtype != native) return false;
        registers[k] = (Register){cpu_pointer(view), false};
    }
    if (count > 0) run_step(&step, registers, cpu_pointer(out), count);
    return true;
}

Status cpu_kernel_MAP(const KernelCall *call) {
    MapRun run;
    const TensorView *out = call->outputs[0];
    const ConvertTable *convert = cpu_convert();
    DType compute = call->options.compute;
    run.compute = compute_of(compute);
    ASSERT(compute == compute_dtype(run.compute));
    if (run.compute == COMPUTE_I64 && wraps_at_32(call)) run.compute = COMPUTE_I32;
    bool one_row = is_one_row(call);
    if (one_row && run_short(call, run.compute)) return STATUS_OK;
    run.size = (int64_t)compute_bytes(run.compute);
    TRY(prepare_steps(call, &run));
    TRY(prepare_inputs(call, convert, &run));
    run.store = convert->store[run.compute][out->dtype];
    ASSERT(run.store);
    run.output_size = (int64_t)dtype_size(out->dtype);
    run.output_native = out->dtype == compute_dtype(run.compute);
    run.stream = NULL;
    if (one_row) {
        run_one_row(call, &run);
        return STATUS_OK;
    }
    const TensorView *views[KERNEL_INPUTS_MAX + 1] = {out};
    for (int k = 0; k < call->n_inputs; k++) views[k + 1] = call->inputs[k].view;
    Iteration iteration;
    iterate_prepare(&iteration, call->n_inputs + 1, views);
    if (!run_short_rows(&iteration, &run)) iterate_run(&iteration, run_row, &run);
    return STATUS_OK;
}
