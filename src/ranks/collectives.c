// Collectives on tensors: their bytes go through the host; what is reduced is reduced in the order
// of ranks by the operations that scripts have.
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/memory.h"
#include "device/foretell.h"
#include "ranks/internal.h"
#include "tensor/gradient/custom.h"
#include "tensor/gradient/tape.h"
#include "tensor/op.h"
#include "tensor/view.h"

// The elements of a tensor on the host, in row-major order.
Status ranks_bytes_of(Tensor *x, char **out, size_t *bytes) {
    Tensor *whole;
    TRY(tensor_materialize(x));
    TRY(tensor_contiguous(x, &whole));
    *bytes = (size_t)tensor_count(whole) * dtype_size(tensor_dtype(whole));
    *out = memory_allocate_zeroed(*bytes + 1, 1);
    bool read = *bytes > 0 && foretell_knows(whole->view.buffer);
    Status status =
        read ? buffer_download(whole->view.buffer, whole->view.offset, *out, *bytes) : STATUS_OK;
    tensor_release(whole);
    if (status != STATUS_OK) memory_free_of(out);
    return status;
}

char *ranks_place_of(const Tensor *x) {
    const Buffer *buffer = x->view.buffer;
    const Device *device = x->device;
    bool in_place = strcmp(device->backend->name, "cpu") == 0;
    if (!in_place || buffer->away || !tensor_is_contiguous(x)) return NULL;
    return (char *)buffer->handle + x->view.offset;
}

Status ranks_add_digest(Tensor *x, uint64_t *digest) {
    size_t bytes = (size_t)tensor_count(x) * dtype_size(tensor_dtype(x));
    const char *place = ranks_place_of(x);
    SCOPED_MEMORY char *copy = NULL;
    if (!place) TRY(ranks_bytes_of(x, &copy, &bytes));
    *digest = digest_add(*digest, place ? place : copy, bytes);
    return STATUS_OK;
}

// `like` gives the device and the dtype.
static Status tensor_of(const char *data, const Tensor *like, const Shape *shape, Tensor **out) {
    TRY(tensor_new(like->device, tensor_dtype(like), shape, out));
    size_t bytes = (size_t)tensor_count(*out) * dtype_size(tensor_dtype(like));
    Status status = bytes == 0 ? STATUS_OK : buffer_upload((*out)->view.buffer, 0, data, bytes);
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

// --- reductions

static Status reduce_pair(RanksReduction reduction, Tensor *sum, Tensor *next, Tensor **out) {
    static const OpId ops[RANKS_REDUCTION_COUNT] = {OP_add, OP_add, OP_mul, OP_maximum, OP_minimum};
    return op_binary(ops[reduction], op_donated(sum), op_tensor(next), out);
}

// Rows 0..n-1 of `rows` [n, count], reduced one after the other; in float32 where the dtype is
// narrower.
static Status reduce_rows(RanksReduction reduction, Tensor *rows, Tensor **out) {
    DType dtype = tensor_dtype(rows);
    DType wide = dtype == DTYPE_FLOAT16 || dtype == DTYPE_BFLOAT16 ? DTYPE_FLOAT32 : dtype;
    Tensor *converted, *sum = NULL;
    TRY(tensor_cast(rows, wide, &converted));
    Status status = STATUS_OK;
    for (int64_t i = 0; i < rows->view.dims[0] && status == STATUS_OK; i++) {
        TensorView view = converted->view;
        status = view_select(converted, 0, &view, 0, i);
        if (status != STATUS_OK) break;
        Tensor *row = tensor_view_of(converted, &view), *joined = NULL;
        status = sum ? reduce_pair(reduction, sum, row, &joined) : tensor_contiguous(row, &joined);
        tensor_release(row);
        tensor_release(sum);
        sum = joined;
    }
    tensor_release(converted);
    if (status == STATUS_OK && reduction == RANKS_MEAN) {
        Tensor *mean = NULL;
        status = op_binary(OP_div, op_donated(sum), op_int(rows->view.dims[0]), &mean);
        tensor_release(sum);
        sum = mean;
    }
    if (status == STATUS_OK) status = tensor_cast(sum, dtype, out);
    tensor_release(sum);
    return status;
}

// How many bytes each rank has of a tensor that is cut into parts of whole elements.
static void cut(int64_t count, size_t element, size_t *bytes) {
    int n = ranks_count();
    for (int i = 0; i < n; i++) bytes[i] = (size_t)(count * (i + 1) / n - count * i / n) * element;
}

Status ranks_share_parts(const char *part, const size_t *parts, int tag, char *whole) {
    int n = ranks_count();
    SCOPED_MEMORY size_t *same = memory_allocate((size_t)n * sizeof *same);
    for (int i = 0; i < n; i++) same[i] = parts[ranks_own()];
    RanksBlocks in = {.data = part, .bytes = same, .repeated = true};
    RanksBlocks out = {.data = whole, .bytes = parts};
    RanksExchange *exchange = NULL;
    int code = ranks_plugin()->exchange(in, out, tag, &exchange);
    return ranks_wait(code, exchange);
}

// --- what is under way

struct RanksTransfer {
    RanksRequest request;
    int tag;
    bool apart;            // what it was started by does not wait for it
    bool unknown;          // the program is foretold: nothing is carried
    Tensor *x;             // counted
    char *sent, *received; // the same for a broadcast
    size_t *in, *out;      // bytes to and from each rank
    RanksExchange *head;   // of SEND and RECEIVE: shape and dtype, which go ahead
    RanksExchange *running;
};

static const RanksPlugin *carrier(const RanksTransfer *transfer) {
    return ranks_carrier(!transfer->unknown);
}

void ranks_transfer_free(RanksTransfer *transfer) {
    // What the transport still uses stays.
    bool in_use = transfer->head && ranks_plugin()->drop(transfer->head);
    if (transfer->running) in_use = ranks_plugin()->drop(transfer->running) || in_use;
    if (!in_use) free(transfer->sent);
    if (!in_use && transfer->received != transfer->sent) free(transfer->received);
    free(transfer->in);
    free(transfer->out);
    tensor_release(transfer->x);
    free(transfer);
}

static bool reduces(RanksCall call) {
    return call == RANKS_ALL_REDUCE || call == RANKS_REDUCE_SCATTER;
}

// Everyone's part of what is reduced, or of what all ranks exchange.
static int start_blocks(RanksTransfer *transfer, size_t bytes) {
    int n = ranks_count();
    DType dtype = tensor_dtype(transfer->x);
    transfer->in = memory_allocate((size_t)n * sizeof(size_t));
    transfer->out = memory_allocate((size_t)n * sizeof(size_t));
    if (reduces(transfer->request.call))
        cut(tensor_count(transfer->x), dtype_size(dtype), transfer->in);
    else
        for (int i = 0; i < n; i++) transfer->in[i] = bytes / (size_t)n;
    for (int i = 0; i < n; i++) transfer->out[i] = transfer->in[ranks_own()];
    transfer->received = memory_allocate_zeroed(transfer->in[ranks_own()] * (size_t)n + 1, 1);
    RanksBlocks in = {.data = transfer->sent, .bytes = transfer->in};
    RanksBlocks out = {.data = transfer->received, .bytes = transfer->out};
    return carrier(transfer)->exchange(in, out, transfer->tag, &transfer->running);
}

// --- in the fast order

// Of numbers that the transport can add: those of an all_reduce are converted on the way.
static DType wire_dtype(const Tensor *x) {
    DType dtype = tensor_dtype(x);
    if (dtype == DTYPE_FLOAT64) return dtype;
    return dtype_is_float(dtype) ? DTYPE_FLOAT32 : DTYPE_INT64;
}

static Status start_fast(RanksTransfer *transfer) {
    static const RanksFold folds[RANKS_REDUCTION_COUNT] = {
        RANKS_FOLD_SUM, RANKS_FOLD_SUM, RANKS_FOLD_PROD, RANKS_FOLD_MAX, RANKS_FOLD_MIN};
    DType dtype = wire_dtype(transfer->x);
    RanksNumber number = dtype == DTYPE_FLOAT64   ? RANKS_FLOAT64
                         : dtype == DTYPE_FLOAT32 ? RANKS_FLOAT32
                                                  : RANKS_INT64;
    Tensor *wide;
    size_t bytes;
    TRY(tensor_cast(transfer->x, dtype, &wide));
    Status status = ranks_bytes_of(wide, &transfer->sent, &bytes);
    tensor_release(wide);
    TRY(status);
    transfer->received = transfer->sent;
    return ranks_check(carrier(transfer)->reduce(transfer->sent, bytes / dtype_size(dtype), number,
                                                 folds[transfer->request.reduction],
                                                 &transfer->running));
}

static Status finish_fast(const RanksTransfer *transfer, Tensor **out) {
    Shape shape = tensor_shape(transfer->x);
    const TensorView view = {.dtype = wire_dtype(transfer->x)};
    const Tensor like = {.device = transfer->x->device, .view = view};
    Tensor *wide, *mean = NULL;
    TRY(tensor_of(transfer->received, &like, &shape, &wide));
    Status status = STATUS_OK;
    if (transfer->request.reduction == RANKS_MEAN)
        status = op_binary(OP_div, op_tensor(wide), op_int(ranks_count()), &mean);
    if (status == STATUS_OK)
        status = tensor_cast(mean ? mean : wide, tensor_dtype(transfer->x), out);
    tensor_release(mean);
    tensor_release(wide);
    return status;
}

// --- from one to another

// What goes ahead of the bytes.
typedef struct Parcel {
    int32_t dtype, rank, unknown;
    int64_t dims[RANK_MAX];
} Parcel;

static Parcel parcel_of(const Tensor *x) {
    Parcel parcel;
    memset(&parcel, 0, sizeof parcel);
    parcel.dtype = (int32_t)tensor_dtype(x);
    parcel.rank = tensor_rank(x);
    parcel.unknown = !foretell_knows(x->view.buffer);
    for (int d = 0; d < parcel.rank; d++) parcel.dims[d] = x->view.dims[d];
    return parcel;
}

static Status check_peer(const RanksRequest *request) {
    enum { TAGS = 1 << 13 };
    bool sends = request->call == RANKS_SEND;
    const char *name = ranks_call_name(request->call);
    if (request->peer < 0 || request->peer >= ranks_count() || request->peer == ranks_own())
        return fail(STATUS_VALUE, "%s: %s must be another of the %d ranks, but it is %d", name,
                    sends ? "to" : "from", ranks_count(), request->peer);
    if (request->tag < 0 || request->tag >= TAGS)
        return fail(STATUS_VALUE, "%s: tag must be 0 to %d, but it is %d", name, TAGS - 1,
                    request->tag);
    return STATUS_OK;
}

static Status check_sent(const Tensor *x) {
    if (dtype_is_quant(tensor_dtype(x)))
        return fail(STATUS_DTYPE, "send: x is %s; dequantise it first", tensor_type_name(x).text);
    if (!tape_is_recording() || !tensor_needs_gradient(x)) return STATUS_OK;
    (void)fail(STATUS_GRADIENT, "send: no gradient comes back from another rank");
    return fail_help("detach(x) leaves the gradient out");
}

static Status start_sending(RanksTransfer *transfer) {
    const RanksPlugin *plugin = ranks_plugin();
    int to = transfer->request.peer, tag = transfer->request.tag;
    size_t bytes;
    TRY(ranks_bytes_of(transfer->x, &transfer->sent, &bytes));
    Parcel parcel = parcel_of(transfer->x);
    transfer->unknown = parcel.unknown;
    transfer->received = memory_allocate(sizeof parcel);
    memcpy(transfer->received, &parcel, sizeof parcel);
    TRY(ranks_check(plugin->send(transfer->received, sizeof parcel, to, tag, &transfer->head)));
    return ranks_check(carrier(transfer)->send(transfer->sent, bytes, to, tag, &transfer->running));
}

static Status start_receiving(RanksTransfer *transfer) {
    transfer->received = memory_allocate(sizeof(Parcel));
    return ranks_check(ranks_plugin()->receive(transfer->received, sizeof(Parcel),
                                               transfer->request.peer, transfer->request.tag,
                                               &transfer->head));
}

static Status finish_receiving(RanksTransfer *transfer, Tensor **out) {
    Parcel parcel;
    Device *device;
    memcpy(&parcel, transfer->received, sizeof parcel);
    transfer->unknown = parcel.unknown;
    TRY(device_default(&device));
    Shape shape = {.rank = parcel.rank};
    memcpy(shape.dims, parcel.dims, sizeof shape.dims);
    TRY(tensor_new(device, (DType)parcel.dtype, &shape, out));
    size_t bytes = (size_t)tensor_count(*out) * dtype_size((DType)parcel.dtype);
    char *data = memory_allocate_zeroed(bytes + 1, 1);
    RanksExchange *running = NULL;
    int code = carrier(transfer)->receive(data, bytes, transfer->request.peer,
                                          transfer->request.tag, &running);
    Status status = ranks_wait(code, running);
    if (status == STATUS_OK && bytes) status = buffer_upload((*out)->view.buffer, 0, data, bytes);
    free(data);
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

// --- what all do alike

static Status start(RanksTransfer *transfer) {
    const RanksRequest *request = &transfer->request;
    size_t bytes;
    if (request->call == RANKS_SEND) return start_sending(transfer);
    if (request->call == RANKS_RECEIVE) return start_receiving(transfer);
    if (!request->fast) TRY(tensor_materialize(transfer->x));
    TRY(ranks_agree(request, transfer->x));
    transfer->tag = ranks_new_tag();
    transfer->unknown = request->fast ? foretelling() : !ranks_know();
    if (request->fast) return start_fast(transfer);
    TRY(ranks_bytes_of(transfer->x, &transfer->sent, &bytes));
    if (request->call == RANKS_BROADCAST) {
        transfer->received = transfer->sent;
        return ranks_check(
            carrier(transfer)->broadcast(transfer->sent, bytes, request->root, &transfer->running));
    }
    if (request->call != RANKS_ALL_GATHER) return ranks_check(start_blocks(transfer, bytes));
    transfer->received = memory_allocate_zeroed(bytes * (size_t)ranks_count() + 1, 1);
    return ranks_check(carrier(transfer)->all_gather(transfer->sent, transfer->received, bytes,
                                                     &transfer->running));
}

// This rank's part of the reduction, as bytes.
static Status reduce_part(const RanksTransfer *transfer, char **out, size_t *bytes) {
    Tensor *x = transfer->x, *rows, *reduced = NULL;
    size_t part = transfer->in[ranks_own()] / dtype_size(tensor_dtype(x));
    Shape shape = {.rank = 2, .dims = {ranks_count(), (int64_t)part}};
    TRY(tensor_of(transfer->received, x, &shape, &rows));
    Status status = reduce_rows(transfer->request.reduction, rows, &reduced);
    if (status == STATUS_OK) status = ranks_bytes_of(reduced, out, bytes);
    tensor_release(rows);
    tensor_release(reduced);
    return status;
}

// The second half of all_reduce is a call of its own.
static Status agree_to_wait(const RanksTransfer *transfer) {
    const RanksRequest request = {.call = RANKS_WAIT, .transfer = transfer->tag - RANKS_TAG};
    bool called =
        transfer->apart && transfer->request.call == RANKS_ALL_REDUCE && !transfer->request.fast;
    return called ? ranks_agree(&request, transfer->x) : STATUS_OK;
}

static Status finish_reduction(const RanksTransfer *transfer, Tensor **out) {
    Tensor *x = transfer->x;
    Shape shape = tensor_shape(x);
    size_t bytes;
    char *part;
    TRY(reduce_part(transfer, &part, &bytes));
    if (transfer->request.call == RANKS_REDUCE_SCATTER) {
        shape.dims[0] /= ranks_count();
        Status status = tensor_of(part, x, &shape, out);
        free(part);
        return status;
    }
    SCOPED_MEMORY char *all =
        memory_allocate_zeroed((size_t)tensor_count(x) * dtype_size(tensor_dtype(x)) + 1, 1);
    Status status = STATUS_OK;
    if (!transfer->unknown) status = ranks_share_parts(part, transfer->in, transfer->tag, all);
    if (status == STATUS_OK) status = tensor_of(all, x, &shape, out);
    free(part);
    return status;
}

static Status fail_stuck(const RanksRequest *request) {
    bool sends = request->call == RANKS_SEND;
    return fail(STATUS_VALUE,
                "the ranks disagree: rank %d calls %s %s rank %d with tag %d, which waits for it "
                "in another call or has come to its end",
                ranks_own(), ranks_call_name(request->call), sends ? "to" : "from", request->peer,
                request->tag);
}

static Status wait_for(const RanksTransfer *transfer, RanksExchange **exchange) {
    if (!*exchange) return STATUS_OK;
    int code = ranks_plugin()->wait(*exchange);
    if (code == RANKS_STUCK) return fail_stuck(&transfer->request);
    TRY(ranks_check(code));
    *exchange = NULL;
    return STATUS_OK;
}

static Status finish(RanksTransfer *transfer, Tensor **out) {
    TRY(agree_to_wait(transfer));
    TRY(wait_for(transfer, &transfer->head));
    TRY(wait_for(transfer, &transfer->running));
    *out = NULL;
    if (transfer->request.call == RANKS_SEND) return STATUS_OK;
    if (transfer->request.call == RANKS_RECEIVE) return finish_receiving(transfer, out);
    if (transfer->request.fast) return finish_fast(transfer, out);
    if (reduces(transfer->request.call)) return finish_reduction(transfer, out);
    Shape shape = tensor_shape(transfer->x);
    if (transfer->request.call == RANKS_ALL_GATHER) {
        if (shape.rank == 0) shape = (Shape){.rank = 1, .dims = {1}};
        shape.dims[0] *= ranks_count();
    }
    return tensor_of(transfer->received, transfer->x, &shape, out);
}

static Status need_parts(const RanksRequest *request, const Tensor *x) {
    const char *name = ranks_call_name(request->call);
    if (tensor_rank(x) > 0 && x->view.dims[0] % ranks_count() == 0) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: dimension 0 of %s must be a multiple of the %d ranks", name,
                tensor_type_name(x).text, ranks_count());
}

// --- gradients

// d(mean)/dx is that of the sum over n; the parts that a rank sent come back by the converse call.
static Status gradient_along(const RanksRequest *request, Tensor *up, Tensor **out) {
    RanksRequest converse = {
        .call = RANKS_ALL_REDUCE, .reduction = request->reduction, .fast = request->fast};
    Tensor *sum;
    switch (request->call) {
    case RANKS_ALL_GATHER: converse = (RanksRequest){.call = RANKS_REDUCE_SCATTER}; break;
    case RANKS_REDUCE_SCATTER: converse = (RanksRequest){.call = RANKS_ALL_GATHER}; break;
    case RANKS_ALL_TO_ALL: converse = (RanksRequest){.call = RANKS_ALL_TO_ALL}; break;
    case RANKS_BROADCAST: converse = (RanksRequest){.call = RANKS_ALL_REDUCE}; break;
    default: break;
    }
    TRY(ranks_collect(&converse, up, &sum));
    bool scaled = request->call == RANKS_REDUCE_SCATTER && request->reduction == RANKS_MEAN;
    bool nothing = request->call == RANKS_BROADCAST && request->root != ranks_own();
    if (!scaled && !nothing) {
        *out = sum;
        return STATUS_OK;
    }
    double factor = nothing ? 0.0 : 1.0 / ranks_count();
    Status status = op_binary(OP_mul, op_tensor(sum), op_float(factor), out);
    tensor_release(sum);
    return status;
}

static Status run_gradient(void *data, Tensor *const *inputs, int n_inputs, Tensor *up,
                           Tensor **gradients) {
    (void)n_inputs;
    SCOPED_TENSOR(along);
    TRY(gradient_along(data, up, &along));
    Shape shape = tensor_shape(inputs[0]); // of a number that was gathered
    return tensor_reshape(along, &shape, &gradients[0]);
}

static Status refuse_gradient(const RanksRequest *request, const Tensor *x) {
    if (!reduces(request->call) || request->reduction <= RANKS_MEAN || !tensor_needs_gradient(x))
        return STATUS_OK;
    (void)fail(STATUS_GRADIENT, "%s: no gradient flows through the reductions prod, max and min",
               ranks_call_name(request->call));
    return fail_help("detach(x) leaves the gradient out");
}

static Status check(const RanksRequest *request, Tensor *x) {
    bool lone = request->call == RANKS_SEND || request->call == RANKS_RECEIVE;
    if (lone) TRY(check_peer(request));
    if (lone) return x ? check_sent(x) : STATUS_OK;
    DType dtype = tensor_dtype(x);
    const char *name = ranks_call_name(request->call);
    if (dtype_is_quant(dtype))
        return fail(STATUS_DTYPE, "%s: x is %s; dequantise it first", name,
                    tensor_type_name(x).text);
    bool chooses = request->reduction == RANKS_MAX || request->reduction == RANKS_MIN;
    if (reduces(request->call) && dtype == DTYPE_BOOL && !chooses)
        return fail(STATUS_DTYPE, "%s: x is %s, of which there are \"max\" (any) and \"min\" (all)",
                    name, tensor_type_name(x).text);
    if (reduces(request->call) && request->reduction == RANKS_MEAN && !dtype_is_float(dtype))
        return fail(STATUS_DTYPE, "%s: a mean of %s is not an integer; convert it to a float first",
                    name, tensor_type_name(x).text);
    if (request->call == RANKS_BROADCAST && (request->root < 0 || request->root >= ranks_count()))
        return fail(STATUS_VALUE, "%s: root must be 0 to %d, but it is %d", name, ranks_count() - 1,
                    request->root);
    if (request->call == RANKS_REDUCE_SCATTER || request->call == RANKS_ALL_TO_ALL)
        TRY(need_parts(request, x));
    return refuse_gradient(request, x);
}

static Status alone(const RanksRequest *request, Tensor *x, Tensor **out) {
    Shape shape = tensor_shape(x);
    if (request->call == RANKS_ALL_GATHER && shape.rank == 0)
        shape = (Shape){.rank = 1, .dims = {1}};
    return tensor_reshape(x, &shape, out);
}

Status ranks_start(const RanksRequest *request, Tensor *x, RanksTransfer **out) {
    ASSERT(request->call < RANKS_BARRIER); // the others take no tensor
    TRY(check(request, x));
    RanksTransfer *transfer = memory_allocate_zeroed(1, sizeof *transfer);
    transfer->request = *request;
    transfer->apart = true;
    transfer->x = x ? tensor_retain(x) : NULL;
    bool before = tape_set_enabled(false);
    Status status = ranks_plugin() ? start(transfer) : STATUS_OK;
    tape_set_enabled(before);
    if (status == STATUS_OK)
        *out = transfer;
    else
        ranks_transfer_free(transfer);
    return status;
}

Status ranks_finish(RanksTransfer *transfer, Tensor **out) {
    if (!ranks_plugin()) return alone(&transfer->request, transfer->x, out);
    bool before = tape_set_enabled(false);
    Status status = finish(transfer, out);
    tape_set_enabled(before);
    if (status == STATUS_OK && *out && transfer->unknown) foretell_forget((*out)->view.buffer);
    if (status != STATUS_OK || !transfer->x || !tape_is_recording() ||
        !tensor_needs_gradient(transfer->x))
        return status;
    RanksRequest *kept = memory_allocate(sizeof *kept);
    *kept = transfer->request;
    TapeCustom custom = {.run = run_gradient, .release = free, .data = kept};
    tape_record_custom(&custom, &transfer->x, 1, out);
    return STATUS_OK;
}

Status ranks_collect(const RanksRequest *request, Tensor *x, Tensor **out) {
    RanksTransfer *transfer;
    TRY(ranks_start(request, x, &transfer));
    transfer->apart = false;
    Status status = ranks_finish(transfer, out);
    ranks_transfer_free(transfer);
    return status;
}
