// What pages of std/models/ are made of: projections, norms and activations of a model, which know
// the adapters and hooks that the model was given, and attention over a cache.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/invoke.h"
#include "eval/state.h"
#include "generate/attached.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "tensor/compose.h"
#include "tensor/gradient/tape.h"
#include "tensor/join.h"
#include "value/builtin.h"
#include "value/convert.h"
#include "value/print.h"

static Status one_tensor(const Handle *handle, const Value *arguments, size_t count, Tensor **out) {
    if (count != 1)
        return fail(STATUS_ARITY, "a %s takes 1 argument, but %zu are given", handle->type->name,
                    count);
    return value_to_tensor(arguments[0], "x", out);
}

// --- projections

typedef struct Adapter {
    Tensor *down, *up; // [rank, in], [out, rank]
    double scale;
} Adapter;

typedef struct LinearPart {
    Tensor *weight, *bias; // the bias may be NULL
    bool fast;             // the model's
    Adapter *adapters;
    size_t adapter_count;
} LinearPart;

static void projection_release(void *payload) {
    LinearPart *projection = payload;
    tensor_release(projection->weight);
    tensor_release(projection->bias);
    for (size_t i = 0; i < projection->adapter_count; i++) {
        tensor_release(projection->adapters[i].down);
        tensor_release(projection->adapters[i].up);
    }
    free(projection->adapters);
    free(projection);
}

// A row's numbers do not depend on what is computed with it.
static const OpAttributes by_row = {.given = ATTRIBUTE_BIT(by_row), .by_row = true};
static const OpAttributes by_row_fast = {
    .given = ATTRIBUTE_BIT(by_row) | ATTRIBUTE_BIT(fast), .by_row = true, .fast = true};

// y + (x @ down.T @ up.T) * scale
static Status add_adapter(const Adapter *adapter, Tensor *x, Tensor **y) {
    SCOPED_TENSOR(low);
    SCOPED_TENSOR(high);
    SCOPED_TENSOR(scaled);
    Tensor *sum;
    TRY(op_with(OP_linear, (Tensor *[]){x, adapter->down}, 2, &by_row, &low));
    TRY(op_with(OP_linear, (Tensor *[]){low, adapter->up}, 2, &by_row, &high));
    TRY(op_binary(OP_mul, op_tensor(high), op_float(adapter->scale), &scaled));
    TRY(op_binary(OP_add, op_tensor(*y), op_tensor(scaled), &sum));
    tensor_release(*y);
    *y = sum;
    return STATUS_OK;
}

static Status project(const LinearPart *projection, Tensor *x, Tensor **out) {
    SCOPED_TENSOR(y);
    Tensor *inputs[3] = {x, projection->weight, projection->bias};
    TRY(op_with(OP_linear, inputs, projection->bias ? 3 : 2,
                projection->fast ? &by_row_fast : &by_row, &y));
    for (size_t i = 0; i < projection->adapter_count; i++)
        TRY(add_adapter(&projection->adapters[i], x, &y));
    return compose_give(&y, out);
}

static Value projection_call(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    SCOPED_TENSOR(x);
    Tensor *y = NULL;
    TRY_VALUE(one_tensor(handle, arguments, count, &x));
    TRY_VALUE(project(handle->payload, x, &y));
    return attached_apply_hooks(interp, handle->attached, value_tensor(y));
}

static const HandleType handle_projection = {
    .name = "projection", .release = projection_release, .call = projection_call};

static Status check_adapter(const char *name, const Tensor *weight, const Adapter *adapter) {
    Shape w = tensor_shape(weight), a = tensor_shape(adapter->down), b = tensor_shape(adapter->up);
    bool fits = w.rank == 2 && a.rank == 2 && b.rank == 2 && a.dims[1] == w.dims[1] &&
                b.dims[0] == w.dims[0] && a.dims[0] == b.dims[1];
    if (fits) return STATUS_OK;
    return fail(STATUS_SHAPE, "the adapter of %s is %s and %s, which do not fit a weight %s", name,
                tensor_type_name(adapter->down).text, tensor_type_name(adapter->up).text,
                tensor_type_name(weight).text);
}

static Status take_adapter(void *context, const char *name, Value parts, double scale) {
    LinearPart *projection = context;
    const List *pair = parts.as.list;
    size_t index = projection->adapter_count;
    projection->adapters =
        memory_resize(projection->adapters, (index + 1) * sizeof *projection->adapters);
    Adapter *adapter = &projection->adapters[index];
    *adapter = (Adapter){.scale = scale};
    projection->adapter_count++;
    TRY(value_to_tensor(pair->items[0], "the first half of an adapter", &adapter->down));
    TRY(value_to_tensor(pair->items[1], "the second half of an adapter", &adapter->up));
    return check_adapter(name, projection->weight, adapter);
}

static Status read_projection(BuiltinCall *call, const char *name, LinearPart *out) {
    const Handle *handle = call->arguments[0].as.handle;
    SCOPED_TEXT(tensor);
    out->fast = model_is_fast(handle->payload);
    text_format(&tensor, "%s.weight", name);
    Status status = model_tensor(handle->payload, text_get(&tensor), &out->weight);
    text_clear(&tensor);
    text_format(&tensor, "%s.bias", name);
    if (status == STATUS_OK && model_has_tensor(handle->payload, text_get(&tensor)))
        status = model_tensor(handle->payload, text_get(&tensor), &out->bias);
    TRY(status);
    return attached_each_adapter(handle->attached, name, take_adapter, out);
}

Value builtin_model_projection(BuiltinCall *call) {
    const char *name = call->arguments[1].as.string->bytes;
    LinearPart *projection = memory_allocate_zeroed(1, sizeof *projection);
    attached_declare(call->interp, ATTACHED_PROJECTION, name);
    attached_declare(call->interp, ATTACHED_ACTIVATION, name);
    if (read_projection(call, name, projection) != STATUS_OK) {
        projection_release(projection);
        return value_fail();
    }
    Value hooks = attached_hooks(call->arguments[0].as.handle->attached, name);
    return value_handle_with(&handle_projection, projection, hooks);
}

Value builtin_model_fast(BuiltinCall *call) {
    return value_bool(model_is_fast(call->arguments[0].as.handle->payload));
}

Value builtin_model_cache_dtype(BuiltinCall *call) {
    const char *name = dtype_name(model_cache_dtype(call->arguments[0].as.handle->payload));
    return value_string(name, strlen(name));
}

// --- norms and activations

typedef struct Norm {
    Tensor *weight;
    OpAttributes attributes;
} Norm;

static void norm_release(void *payload) {
    tensor_release(((Norm *)payload)->weight);
    free(payload);
}

static Value norm_call(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    const Norm *norm = handle->payload;
    SCOPED_TENSOR(x);
    Tensor *y = NULL;
    TRY_VALUE(one_tensor(handle, arguments, count, &x));
    TRY_VALUE(op_with(OP_rms_norm, (Tensor *[]){x, norm->weight}, 2, &norm->attributes, &y));
    return attached_apply_hooks(interp, handle->attached, value_tensor(y));
}

static const HandleType handle_norm = {.name = "norm", .release = norm_release, .call = norm_call};

Value builtin_model_norm(BuiltinCall *call) {
    const Handle *handle = call->arguments[0].as.handle;
    const char *name = call->arguments[1].as.string->bytes;
    Norm norm = {.attributes.given = ATTRIBUTE_BIT(eps)};
    SCOPED_TEXT(tensor);
    attached_declare(call->interp, ATTACHED_ACTIVATION, name);
    text_format(&tensor, "%s.weight", name);
    Status status = value_to_double(call->arguments[2], "eps", &norm.attributes.eps);
    if (status == STATUS_OK)
        status = model_tensor(handle->payload, text_get(&tensor), &norm.weight);
    TRY_VALUE(status);
    Norm *kept = memory_allocate(sizeof *kept);
    *kept = norm;
    return value_handle_with(&handle_norm, kept, attached_hooks(handle->attached, name));
}

static Value activation_call(Interp *interp, Handle *handle, const Value *arguments, size_t count) {
    if (count != 1)
        return value_failed(
            fail(STATUS_ARITY, "an activation takes 1 argument, but %zu are given", count));
    return attached_apply_hooks(interp, handle->attached, value_retain(arguments[0]));
}

static const HandleType handle_activation = {.name = "activation", .call = activation_call};

Value builtin_model_activation(BuiltinCall *call) {
    const char *name = call->arguments[1].as.string->bytes;
    attached_declare(call->interp, ATTACHED_ACTIVATION, name);
    Value hooks = attached_hooks(call->arguments[0].as.handle->attached, name);
    return value_handle_with(&handle_activation, NULL, hooks);
}

// --- attention over a cache

// The rows of one text among those that are computed together.
typedef struct Rows {
    BuiltinCall *call;
    int64_t layer;
    Tensor *q, *k, *v;
} Rows;

static Status apply_function(const Rows *rows, Tensor *const parts[3], Tensor **out) {
    Value arguments[3];
    for (int i = 0; i < 3; i++) arguments[i] = value_tensor(tensor_retain(parts[i]));
    SCOPED_VALUE(result) = interp_call(rows->call->interp, rows->call->arguments[5], arguments, 3);
    for (int i = 0; i < 3; i++) value_release(arguments[i]);
    if (result.kind == VALUE_FAIL)
        return error_current()->code == STATUS_OK ? STATUS_INTERRUPT : error_current()->code;
    return value_to_tensor(result, "the result of by", out);
}

// What the queries read: all rows of the cache, or, so that gradients reach them, the text's own.
static Status keys_and_values(const Rows *rows, KvCache *cache, Tensor **k, Tensor **v) {
    bool held = rows->call->arguments[6].as.boolean;
    bool learns =
        tape_is_recording() && (tensor_needs_gradient(rows->k) || tensor_needs_gradient(rows->v));
    int64_t own = held ? rows->k->view.dims[0] : 0;
    if (learns && kv_cache_layer_rows(cache, rows->layer) > own)
        return fail(STATUS_VALUE,
                    "gradients flow through a text that is given at once, but the cache holds "
                    "%lld rows already",
                    (long long)kv_cache_rows(cache));
    ASSERT(own >= 0 && rows->q && rows->k && rows->v);
    if (!held) TRY(kv_cache_append(cache, rows->layer, rows->k, rows->v));
    if (!learns) {
        TRY(kv_cache_keys(cache, rows->layer, k));
        return kv_cache_values(cache, rows->layer, v);
    }
    *k = tensor_retain(rows->k);
    *v = tensor_retain(rows->v);
    return STATUS_OK;
}

static Status attend(const Rows *rows, KvCache *cache, Tensor **out) {
    SCOPED_TENSOR(k);
    SCOPED_TENSOR(v);
    SCOPED_TENSOR(mixed);
    TRY(keys_and_values(rows, cache, &k, &v));
    Tensor *parts[3] = {rows->q, k, v};
    OpAttributes causal = {
        .given = ATTRIBUTE_BIT(causal) | ATTRIBUTE_BIT(by_row), .causal = true, .by_row = true};
    Value by = rows->call->arguments[5];
    if (by.kind == VALUE_ABSENT || by.kind == VALUE_NONE)
        TRY(op_with(OP_attention, parts, 3, &causal, &mixed));
    else
        TRY(apply_function(rows, parts, &mixed));
    Shape flat = {.rank = 2, .dims = {rows->q->view.dims[0], -1}};
    return tensor_reshape(mixed, &flat, out);
}

static Status slice_rows(const Rows *all, int64_t begin, int64_t count, Rows *out) {
    *out = (Rows){.call = all->call, .layer = all->layer};
    TRY(tensor_slice(all->q, 0, begin, begin + count, &out->q));
    TRY(tensor_slice(all->k, 0, begin, begin + count, &out->k));
    return tensor_slice(all->v, 0, begin, begin + count, &out->v);
}

static void release_rows(Rows *rows) {
    tensor_release(rows->q);
    tensor_release(rows->k);
    tensor_release(rows->v);
}

static Status attend_each(const Rows *all, KvCache *batch, Tensor **out) {
    size_t count = kv_cache_part_count(batch), done = 0;
    SCOPED_MEMORY Tensor **results = memory_allocate_zeroed(count, sizeof *results);
    Status status = STATUS_OK;
    int64_t begin = 0;
    for (; done < count && status == STATUS_OK; done++) {
        KvPart part = kv_cache_part(batch, done, 0);
        Rows rows = {0};
        status = slice_rows(all, begin, part.rows, &rows);
        if (status == STATUS_OK) status = attend(&rows, part.cache, &results[done]);
        release_rows(&rows);
        begin += part.rows;
    }
    if (status == STATUS_OK) status = tensor_concat(results, count, 0, out);
    for (size_t i = 0; i < done; i++) tensor_release(results[i]);
    return status;
}

// Values may come as rows of all heads.
static Status as_heads(const Tensor *k, Tensor **v) {
    if (tensor_rank(*v) != 2 || tensor_rank(k) != 3) return STATUS_OK;
    Shape shape = tensor_shape(k);
    Tensor *heads;
    TRY(tensor_reshape(*v, &shape, &heads));
    tensor_release(*v);
    *v = heads;
    return STATUS_OK;
}

static Status attend_all(BuiltinCall *call, Tensor **out) {
    KvCache *cache = call->arguments[0].as.handle->payload;
    Rows rows = {.call = call};
    Status status = value_to_int(call->arguments[1], "layer", &rows.layer);
    if (status == STATUS_OK) status = value_to_tensor(call->arguments[2], "q", &rows.q);
    if (status == STATUS_OK) status = value_to_tensor(call->arguments[3], "k", &rows.k);
    if (status == STATUS_OK) status = value_to_tensor(call->arguments[4], "v", &rows.v);
    if (status == STATUS_OK) status = as_heads(rows.k, &rows.v);
    if (status == STATUS_OK)
        status = kv_cache_part_count(cache) > 1
                     ? attend_each(&rows, cache, out)
                     : attend(&rows, kv_cache_part(cache, 0, 0).cache, out);
    release_rows(&rows);
    return status;
}

Value builtin_cache_attend(BuiltinCall *call) {
    Tensor *mixed = NULL;
    TRY_VALUE(attend_all(call, &mixed));
    return value_tensor(mixed);
}

// --- states in place of rows

// The rows of one text, as a value; what they are slices of are all items of a list.
static Status rows_of_text(const List *all, int64_t begin, int64_t count, Value *out) {
    SCOPED_VALUE(rows) = value_list(all->count);
    for (size_t i = 0; i < all->count; i++) {
        SCOPED_TENSOR(whole);
        Tensor *part;
        TRY(value_to_tensor(all->items[i], "rows", &whole));
        TRY(tensor_slice(whole, 0, begin, begin + count, &part));
        list_push(rows.as.list, value_tensor(part));
    }
    *out = value_retain(rows);
    return STATUS_OK;
}

static Value states_value(const KvStates *states) {
    Value list = value_list(KV_STATES_MAX);
    for (int i = 0; states && i < states->count; i++)
        list_push(list.as.list, value_tensor(tensor_retain(states->items[i])));
    return list;
}

static Status take_states(Value result, KvStates *out, Tensor **y) {
    const List *pair = result.kind == VALUE_TUPLE ? result.as.list : NULL;
    const List *states = pair && pair->count == 2 && pair->items[1].kind == VALUE_LIST
                             ? pair->items[1].as.list
                             : NULL;
    if (!states || states->count == 0 || states->count > KV_STATES_MAX)
        return fail(STATUS_TYPE,
                    "by must give a tensor and a list of 1 to %d states, but it gave %s",
                    KV_STATES_MAX, value_shown(result).text);
    for (size_t i = 0; i < states->count; i++) {
        if (states->items[i].kind != VALUE_TENSOR)
            return fail(STATUS_TYPE, "a state must be a tensor, but it is %s",
                        value_shown(states->items[i]).text);
        out->items[out->count] = states->items[i].as.tensor;
        TRY(tensor_materialize(out->items[out->count++]));
    }
    TRY(value_to_tensor(pair->items[0], "the result of by", y));
    Status status = tensor_materialize(*y);
    if (status != STATUS_OK) tensor_release_of(y);
    return status;
}

static Status step_text(BuiltinCall *call, int64_t layer, KvPart part, int64_t begin,
                        Tensor **out) {
    SCOPED_VALUE(rows) = value_none();
    TRY(rows_of_text(call->arguments[2].as.list, begin, part.rows, &rows));
    SCOPED_VALUE(states) = states_value(kv_cache_states(part.cache, layer));
    SCOPED_VALUE(result) =
        interp_call(call->interp, call->arguments[3], (Value[]){rows, states}, 2);
    if (result.kind == VALUE_FAIL)
        return error_current()->code == STATUS_OK ? STATUS_INTERRUPT : error_current()->code;
    KvStates next = {0};
    TRY(take_states(result, &next, out));
    Status status = kv_cache_step(part.cache, layer, &next, part.rows);
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

static Status count_rows(const List *rows, int64_t *out) {
    *out = -1;
    for (size_t i = 0; i < rows->count; i++) {
        SCOPED_TENSOR(x);
        TRY(value_to_tensor(rows->items[i], "rows", &x));
        int64_t count = tensor_rank(x) > 0 ? x->view.dims[0] : -1;
        if (count < 0 || (*out >= 0 && count != *out)) *out = -2;
        if (*out == -1) *out = count;
    }
    if (*out >= 0) return STATUS_OK;
    return fail(STATUS_SHAPE, "rows must be tensors with as many rows each");
}

static Status step_texts(BuiltinCall *call, Tensor **out) {
    KvCache *cache = call->arguments[0].as.handle->payload;
    int64_t layer, total, begin = 0;
    TRY(value_to_int(call->arguments[1], "layer", &layer));
    TRY(count_rows(call->arguments[2].as.list, &total));
    size_t count = kv_cache_part_count(cache), done = 0;
    if (count == 1) return step_text(call, layer, kv_cache_part(cache, 0, total), 0, out);
    SCOPED_MEMORY Tensor **results = memory_allocate_zeroed(count, sizeof *results);
    Status status = STATUS_OK;
    for (; done < count && status == STATUS_OK; done++) {
        KvPart part = kv_cache_part(cache, done, 0);
        status = step_text(call, layer, part, begin, &results[done]);
        begin += part.rows;
    }
    if (status == STATUS_OK) status = tensor_concat(results, count, 0, out);
    for (size_t i = 0; i < done; i++) tensor_release(results[i]);
    return status;
}

Value builtin_cache_step(BuiltinCall *call) {
    Tensor *y = NULL;
    TRY_VALUE(step_texts(call, &y));
    return value_tensor(y);
}

// --- rows by position

static Status gather_positions(KvCache *batch, Tensor *table, Tensor **out) {
    size_t count = kv_cache_part_count(batch);
    int64_t total = 0;
    for (size_t i = 0; i < count; i++) total += kv_cache_part(batch, i, 0).rows;
    int64_t *positions = memory_allocate((size_t)total * sizeof *positions), at = 0;
    for (size_t i = 0; i < count; i++) {
        KvPart part = kv_cache_part(batch, i, 0);
        int64_t begin = kv_cache_rows(part.cache);
        for (int64_t row = 0; row < part.rows; row++) positions[at++] = begin + row;
    }
    SCOPED_TENSOR(ids);
    Shape shape = {.rank = 1, .dims = {total}};
    Status status = tensor_from_integers(positions, &shape, DTYPE_INT64, &ids);
    free(positions);
    TRY(status);
    return op_with(OP_embedding, (Tensor *[]){table, ids}, 2, NULL, out);
}

Value builtin_cache_rows(BuiltinCall *call) {
    KvCache *cache = call->arguments[0].as.handle->payload;
    SCOPED_TENSOR(table);
    Tensor *rows = NULL;
    int64_t count, begin = kv_cache_rows(cache);
    TRY_VALUE(value_to_tensor(call->arguments[1], "table", &table));
    TRY_VALUE(value_to_int(call->arguments[2], "n", &count));
    if (kv_cache_part_count(cache) > 1)
        TRY_VALUE(gather_positions(cache, table, &rows));
    else
        TRY_VALUE(tensor_slice(table, 0, begin, begin + count, &rows));
    return value_tensor(rows);
}

Value builtin_cache_note(BuiltinCall *call) {
    KvCache *cache = call->arguments[0].as.handle->payload;
    int64_t *ids;
    size_t count;
    Tensor *all;
    TRY_VALUE(value_to_ints(call->arguments[1], "ids", &ids, &count));
    kv_cache_note(kv_cache_part(cache, 0, 0).cache, ids, count);
    free(ids);
    const int64_t *noted = kv_cache_ids(kv_cache_part(cache, 0, 0).cache, &count);
    Shape shape = {.rank = 1, .dims = {(int64_t)count}};
    TRY_VALUE(tensor_from_integers(noted, &shape, DTYPE_INT64, &all));
    return value_tensor(all);
}
