// Collectives on tensors: their bytes go through the host; what is reduced is reduced in the order
// of ranks by the operations that scripts have.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
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
    *out = memory_allocate(*bytes + 1);
    Status status = *bytes == 0
                        ? STATUS_OK
                        : buffer_download(whole->view.buffer, whole->view.offset, *out, *bytes);
    tensor_release(whole);
    if (status != STATUS_OK) free(*out);
    return status;
}

Status ranks_tensor_of(const char *data, const Tensor *like, const Shape *shape, Tensor **out) {
    TRY(tensor_new(like->device, tensor_dtype(like), shape, out));
    size_t bytes = (size_t)tensor_count(*out) * dtype_size(tensor_dtype(like));
    Status status = bytes == 0 ? STATUS_OK : buffer_upload((*out)->view.buffer, 0, data, bytes);
    if (status != STATUS_OK) tensor_release(*out);
    return status;
}

// Block i of `in` goes to rank i, block i of `out` comes from it.
static Status exchange_blocks(RanksBlocks in, RanksBlocks out) {
    const RanksPlugin *plugin = ranks_plugin();
    RanksExchange *exchange = NULL;
    int code = plugin->start(in, out, RANKS_TAG, &exchange);
    if (code == 0) code = plugin->wait(exchange);
    if (code != 0 && exchange) plugin->drop(exchange);
    return ranks_check(code);
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

// This rank's part of the reduction, as bytes.
static Status reduce_part(const RanksRequest *request, Tensor *x, char **out, size_t *parts) {
    int n = ranks_count();
    DType dtype = tensor_dtype(x);
    char *own;
    size_t bytes;
    TRY(ranks_bytes_of(x, &own, &bytes));
    cut(tensor_count(x), dtype_size(dtype), parts);
    size_t part = parts[ranks_own()];
    size_t *incoming = memory_allocate((size_t)n * sizeof *incoming);
    for (int i = 0; i < n; i++) incoming[i] = part;
    char *rows = memory_allocate(part * (size_t)n + 1);
    Status status = exchange_blocks((RanksBlocks){own, parts}, (RanksBlocks){rows, incoming});
    free(own);
    free(incoming);
    Shape shape = {.rank = 2, .dims = {n, (int64_t)(part / dtype_size(dtype))}};
    Tensor *tensor = NULL, *reduced = NULL;
    if (status == STATUS_OK) status = ranks_tensor_of(rows, x, &shape, &tensor);
    free(rows);
    if (status == STATUS_OK) status = reduce_rows(request->reduction, tensor, &reduced);
    if (status == STATUS_OK) status = ranks_bytes_of(reduced, out, &bytes);
    tensor_release(tensor);
    tensor_release(reduced);
    return status;
}

Status ranks_share_parts(const char *part, const size_t *parts, char *whole) {
    int n = ranks_count();
    size_t own = parts[ranks_own()];
    size_t *same = memory_allocate((size_t)n * sizeof *same);
    char *copies = memory_allocate(own * (size_t)n + 1);
    for (int i = 0; i < n; i++) {
        memcpy(copies + own * (size_t)i, part, own);
        same[i] = own;
    }
    Status status = exchange_blocks((RanksBlocks){copies, same}, (RanksBlocks){whole, parts});
    free(copies);
    free(same);
    return status;
}

static Status all_reduce(const RanksRequest *request, Tensor *x, Tensor **out) {
    size_t *parts = memory_allocate((size_t)ranks_count() * sizeof *parts);
    char *part = NULL;
    Status status = reduce_part(request, x, &part, parts);
    if (status == STATUS_OK) {
        char *all = memory_allocate((size_t)tensor_count(x) * dtype_size(tensor_dtype(x)) + 1);
        Shape shape = tensor_shape(x);
        status = ranks_share_parts(part, parts, all);
        if (status == STATUS_OK) status = ranks_tensor_of(all, x, &shape, out);
        free(all);
        free(part);
    }
    free(parts);
    return status;
}

static Status need_parts(const RanksRequest *request, const Tensor *x) {
    const char *name = ranks_call_name(request->call);
    if (tensor_rank(x) > 0 && x->view.dims[0] % ranks_count() == 0) return STATUS_OK;
    return fail(STATUS_SHAPE, "%s: dimension 0 of %s must be a multiple of the %d ranks", name,
                tensor_type_name(x).text, ranks_count());
}

static Status reduce_scatter(const RanksRequest *request, Tensor *x, Tensor **out) {
    Shape shape = tensor_shape(x);
    shape.dims[0] /= ranks_count();
    size_t *parts = memory_allocate((size_t)ranks_count() * sizeof *parts);
    char *part = NULL;
    Status status = reduce_part(request, x, &part, parts);
    free(parts);
    if (status != STATUS_OK) return status;
    status = ranks_tensor_of(part, x, &shape, out);
    free(part);
    return status;
}

// --- the others

static Status all_gather(Tensor *x, Tensor **out) {
    char *own;
    size_t bytes;
    TRY(ranks_bytes_of(x, &own, &bytes));
    char *all = memory_allocate(bytes * (size_t)ranks_count() + 1);
    Status status = ranks_check(ranks_plugin()->all_gather(own, all, bytes));
    Shape shape = tensor_shape(x);
    if (shape.rank == 0) shape = (Shape){.rank = 1, .dims = {1}};
    shape.dims[0] *= ranks_count();
    if (status == STATUS_OK) status = ranks_tensor_of(all, x, &shape, out);
    free(own);
    free(all);
    return status;
}

static Status broadcast(const RanksRequest *request, Tensor *x, Tensor **out) {
    char *data;
    size_t bytes;
    TRY(ranks_bytes_of(x, &data, &bytes));
    Status status = ranks_check(ranks_plugin()->broadcast(data, bytes, request->root));
    Shape shape = tensor_shape(x);
    if (status == STATUS_OK) status = ranks_tensor_of(data, x, &shape, out);
    free(data);
    return status;
}

static Status all_to_all(Tensor *x, Tensor **out) {
    int n = ranks_count();
    char *data;
    size_t bytes;
    TRY(ranks_bytes_of(x, &data, &bytes));
    size_t *parts = memory_allocate((size_t)n * sizeof *parts);
    for (int i = 0; i < n; i++) parts[i] = bytes / (size_t)n;
    char *all = memory_allocate(bytes + 1);
    Status status = exchange_blocks((RanksBlocks){data, parts}, (RanksBlocks){all, parts});
    Shape shape = tensor_shape(x);
    if (status == STATUS_OK) status = ranks_tensor_of(all, x, &shape, out);
    free(parts);
    free(data);
    free(all);
    return status;
}

static Status run(const RanksRequest *request, Tensor *x, Tensor **out) {
    ASSERT(request->call < RANKS_BARRIER); // the others take no tensor
    TRY(ranks_agree(request, x));
    switch (request->call) {
    case RANKS_ALL_REDUCE: return all_reduce(request, x, out);
    case RANKS_REDUCE_SCATTER: return reduce_scatter(request, x, out);
    case RANKS_ALL_GATHER: return all_gather(x, out);
    case RANKS_BROADCAST: return broadcast(request, x, out);
    default: return all_to_all(x, out);
    }
}

// --- gradients

// d(mean)/dx is that of the sum over n; the parts that a rank sent come back by the converse call.
static Status gradient_along(const RanksRequest *request, Tensor *up, Tensor **out) {
    RanksRequest converse = {.call = RANKS_ALL_REDUCE, .reduction = request->reduction};
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
    Tensor *along;
    TRY(gradient_along(data, up, &along));
    Shape shape = tensor_shape(inputs[0]); // of a number that was gathered
    Status status = tensor_reshape(along, &shape, &gradients[0]);
    tensor_release(along);
    return status;
}

static Status refuse_gradient(const RanksRequest *request, const Tensor *x) {
    bool reduces = request->call == RANKS_ALL_REDUCE || request->call == RANKS_REDUCE_SCATTER;
    if (!reduces || request->reduction <= RANKS_MEAN || !tensor_needs_gradient(x)) return STATUS_OK;
    (void)fail(STATUS_GRADIENT, "%s: no gradient flows through the reductions prod, max and min",
               ranks_call_name(request->call));
    return fail_help("detach(x) leaves the gradient out");
}

static Status check(const RanksRequest *request, Tensor *x) {
    DType dtype = tensor_dtype(x);
    const char *name = ranks_call_name(request->call);
    bool reduces = request->call == RANKS_ALL_REDUCE || request->call == RANKS_REDUCE_SCATTER;
    if (dtype_is_quant(dtype))
        return fail(STATUS_DTYPE, "%s: x is %s; dequantise it first", name,
                    tensor_type_name(x).text);
    if (reduces && dtype == DTYPE_BOOL)
        return fail(STATUS_DTYPE, "%s: x is %s; convert it to numbers first", name,
                    tensor_type_name(x).text);
    if (reduces && request->reduction == RANKS_MEAN && !dtype_is_float(dtype))
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

Status ranks_collect(const RanksRequest *request, Tensor *x, Tensor **out) {
    TRY(check(request, x));
    if (!ranks_plugin()) return alone(request, x, out);
    bool before = tape_set_enabled(false);
    Status status = run(request, x, out);
    tape_set_enabled(before);
    if (status != STATUS_OK || !tape_is_recording() || !tensor_needs_gradient(x)) return status;
    RanksRequest *kept = memory_allocate(sizeof *kept);
    *kept = *request;
    TapeCustom custom = {.run = run_gradient, .release = free, .data = kept};
    tape_record_custom(&custom, &x, 1, out);
    return STATUS_OK;
}

// --- from one to another

// What goes ahead of the bytes.
typedef struct Parcel {
    int32_t dtype, rank;
    int64_t dims[RANK_MAX];
} Parcel;

static Status check_peer(const char *name, const char *what, int peer, int tag) {
    if (peer < 0 || peer >= ranks_count() || peer == ranks_own())
        return fail(STATUS_VALUE, "%s: %s must be another of the %d ranks, but it is %d", name,
                    what, ranks_count(), peer);
    enum { TAGS = 1 << 13 };
    if (tag < 0 || tag >= TAGS)
        return fail(STATUS_VALUE, "%s: tag must be 0 to %d, but it is %d", name, TAGS - 1, tag);
    return STATUS_OK;
}

Status ranks_send(Tensor *x, int to, int tag) {
    TRY(check_peer("send", "to", to, tag));
    if (dtype_is_quant(tensor_dtype(x)))
        return fail(STATUS_DTYPE, "send: x is %s; dequantise it first", tensor_type_name(x).text);
    if (tape_is_recording() && tensor_needs_gradient(x)) {
        (void)fail(STATUS_GRADIENT, "send: no gradient comes back from another rank");
        return fail_help("detach(x) leaves the gradient out");
    }
    Parcel parcel;
    memset(&parcel, 0, sizeof parcel);
    parcel.dtype = (int32_t)tensor_dtype(x);
    parcel.rank = tensor_rank(x);
    for (int d = 0; d < parcel.rank; d++) parcel.dims[d] = x->view.dims[d];
    char *data;
    size_t bytes;
    TRY(ranks_bytes_of(x, &data, &bytes));
    Status status = ranks_check(ranks_plugin()->send(&parcel, sizeof parcel, to, tag));
    if (status == STATUS_OK) status = ranks_check(ranks_plugin()->send(data, bytes, to, tag));
    free(data);
    return status;
}

Status ranks_receive(int from, int tag, Tensor **out) {
    TRY(check_peer("recv", "from", from, tag));
    Parcel parcel;
    TRY(ranks_check(ranks_plugin()->receive(&parcel, sizeof parcel, from, tag)));
    Device *device;
    TRY(device_default(&device));
    Shape shape = {.rank = parcel.rank};
    memcpy(shape.dims, parcel.dims, sizeof shape.dims);
    TRY(tensor_new(device, (DType)parcel.dtype, &shape, out));
    size_t bytes = (size_t)tensor_count(*out) * dtype_size((DType)parcel.dtype);
    char *data = memory_allocate(bytes + 1);
    Status status = ranks_check(ranks_plugin()->receive(data, bytes, from, tag));
    if (status == STATUS_OK && bytes) status = buffer_upload((*out)->view.buffer, 0, data, bytes);
    free(data);
    if (status != STATUS_OK) tensor_release(*out);
    return status;
}
