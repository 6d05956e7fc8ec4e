#include "generate/sequence.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/page.h"
#include "generate/attached.h"
#include "generate/follow.h"
#include "model/model.h"
#include "tensor/join.h"
#include "value/builtin.h"
#include "value/handles.h"
#include "value/heap.h"

enum { ROWS_MAX = 256 }; // that go through the layers at once

enum { OPENED, MODEL }; // of a network's values

// --- networks

static const Model *file_of(Value model) {
    return model.as.handle->payload;
}

static Status read_context(const Model *model, const char *architecture, int64_t *out) {
    SCOPED_TEXT(key);
    text_format(&key, "%s.context_length", architecture);
    const MetaValue *value = metadata_find(&model_reader(model)->metadata, text_get(&key));
    *out = meta_is_integer(value) ? value->as.integer : 0;
    return !value || *out > 0 ? STATUS_OK
                              : fail(STATUS_VALUE, "metadata %s of %s is not a count",
                                     text_get(&key), model_path(model));
}

// What the engine may know of the struct that a page opens.
static void read_fields(Network *network) {
    Value opened = network->values[OPENED];
    network->cache_field = -1;
    if (opened.kind != VALUE_STRUCT) return;
    const Instance *instance = opened.as.instance;
    int cache = struct_find_field(instance->type, "cache", strlen("cache"));
    if (cache >= 0 && instance->fields[cache].kind == VALUE_HANDLE &&
        instance->fields[cache].as.handle->type == &handle_cache) {
        const KvCache *like = instance->fields[cache].as.handle->payload;
        network->cache_field = cache;
        network->layers = kv_cache_layers(like);
        network->dtype = kv_cache_dtype(like);
    }
    int boundary = struct_find_field(instance->type, "boundary", strlen("boundary"));
    if (boundary >= 0 && instance->fields[boundary].kind == VALUE_INT)
        network->boundary = instance->fields[boundary].as.integer;
    network->encodes = page_has(opened, "forward") && !page_has(opened, "logits");
    network->pools = page_has(opened, "pooled");
}

static Status open_page(Network *network, Value model) {
    const Model *file = file_of(model);
    const MetaValue *name = metadata_find(&model_reader(file)->metadata, "general.architecture");
    if (!name || name->type != META_STRING)
        return fail(STATUS_KEY, "%s does not say its architecture: metadata general.architecture",
                    model_path(file));
    SCOPED_TEXT(architecture);
    text_append(&architecture, name->as.string.bytes, name->as.string.length);
    TRY(page_open(network->interp, text_get(&architecture), model, &network->values[OPENED]));
    TRY(attached_check(network->interp, model));
    return read_context(file, text_get(&architecture), &network->context);
}

Status network_open(Interp *interp, Value model, Network **out) {
    Network *network = memory_allocate_zeroed(1, sizeof *network);
    *network =
        (Network){.refs = 1, .interp = interp, .values = heap_allocate_rooted(2 * sizeof(Value))};
    network->values[MODEL] = value_retain(model);
    Model *file = model.as.handle->payload;
    Status status = open_page(network, model);
    if (status == STATUS_OK && model_has_tokenizer(file))
        status = model_tokenizer(file, &network->tokenizer);
    if (status != STATUS_OK) {
        network_release(network);
        return status;
    }
    read_fields(network);
    *out = network;
    return STATUS_OK;
}

Network *network_retain(Network *network) {
    ASSERT(network->refs > 0);
    network->refs++;
    return network;
}

void network_release(Network *network) {
    ASSERT(network->refs > 0);
    if (--network->refs > 0) return;
    value_release(network->values[OPENED]);
    value_release(network->values[MODEL]);
    heap_free(network->values);
    free(network);
}

Value network_model(const Network *network) {
    return network->values[MODEL];
}

Status network_check_ids(const Network *network, const int64_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (network->tokenizer) TRY(tokenizer_check_id(network->tokenizer, ids[i]));
        if (ids[i] < 0) return fail(STATUS_INDEX, "token id %lld is negative", (long long)ids[i]);
    }
    return STATUS_OK;
}

Status network_need_logits(const Network *network) {
    if (!network->encodes) return STATUS_OK;
    (void)fail(STATUS_VALUE, "%s is an encoder: it gives no logits, so that it says nothing",
               model_path(file_of(network_model(network))));
    return fail_help("embed(m, texts) makes vectors of texts, states(m, ids) gives what the last "
                     "layer has for each token");
}

// --- sequences

static Sequence *sequence_of(Network *network, KvCache *cache) {
    Sequence *sequence = memory_allocate_zeroed(1, sizeof *sequence);
    *sequence =
        (Sequence){.network = network_retain(network), .cache = cache, .number = network->texts++};
    return sequence;
}

Status sequence_new(Network *network, Sequence **out) {
    KvCache *cache = NULL;
    if (network->cache_field >= 0) TRY(sequence_cache_new(network, &cache));
    *out = sequence_of(network, cache);
    return STATUS_OK;
}

void sequence_free(Sequence *sequence) {
    if (!sequence) return;
    follow_tell_free(sequence);
    if (sequence->cache) kv_cache_release(sequence->cache);
    network_release(sequence->network);
    free(sequence->ids);
    free(sequence);
}

static Status need_cache(const Network *network) {
    if (network->cache_field >= 0) return STATUS_OK;
    TRY(network_need_logits(network));
    return fail(STATUS_VALUE,
                "the page of %s has no field cache: KVCache, so that a text can only "
                "go on",
                model_path(file_of(network_model(network))));
}

Status sequence_cache_new(const Network *network, KvCache **out) {
    TRY(need_cache(network));
    return kv_cache_new(network->layers, 0, network->dtype, out);
}

void sequence_take(Sequence *sequence, const int64_t *ids, size_t count) {
    ASSERT(sequence->count <= sequence->capacity);
    if (sequence->count + count > sequence->capacity) {
        sequence->capacity = 2 * (sequence->count + count);
        sequence->ids = memory_resize(sequence->ids, sequence->capacity * sizeof *ids);
    }
    if (count > 0) memcpy(sequence->ids + sequence->count, ids, count * sizeof *ids);
    sequence->count += count;
}

Status sequence_fork(const Sequence *sequence, Sequence **out) {
    TRY(need_cache(sequence->network));
    *out = sequence_of(sequence->network, kv_cache_fork(sequence->cache));
    sequence_take(*out, sequence->ids, sequence->count);
    Status status = follow_tell_fork(sequence, *out);
    if (status != STATUS_OK) sequence_free(*out);
    return status;
}

Status sequence_truncate(Sequence *sequence, size_t count) {
    if (count >= sequence->count) return STATUS_OK;
    TRY(need_cache(sequence->network));
    size_t boundary = (size_t)sequence->network->boundary;
    if (boundary > 0 && sequence->count > boundary && count <= boundary) count = 0;
    if (kv_cache_has_states(sequence->cache)) count = 0;
    TRY(kv_cache_truncate(sequence->cache, (int64_t)count));
    sequence->count = count;
    return STATUS_OK;
}

// --- texts in caches that others keep

static Status check_cache(const Network *network, const KvCache *cache, size_t known) {
    TRY(need_cache(network));
    if (kv_cache_layers(cache) != network->layers || kv_cache_dtype(cache) != network->dtype)
        return fail(STATUS_VALUE, "the cache has %lld layers of %s, but the model has %lld of %s",
                    (long long)kv_cache_layers(cache), dtype_name(kv_cache_dtype(cache)),
                    (long long)network->layers, dtype_name(network->dtype));
    if (kv_cache_rows(cache) == (int64_t)known) return STATUS_OK;
    return fail(STATUS_VALUE, "the cache has %lld rows, but ids of %zu: note(ids) adds them",
                (long long)kv_cache_rows(cache), known);
}

Status sequence_in(Network *network, KvCache *cache, const TokenIds *ids, Sequence **out) {
    size_t known, same = 0;
    const int64_t *before = kv_cache_ids(cache, &known);
    TRY(check_cache(network, cache, known));
    while (same < known && same + 1 < ids->count && before[same] == ids->ids[same]) same++;
    Sequence *sequence = sequence_of(network, kv_cache_retain(cache));
    sequence_take(sequence, before, known);
    Status status = sequence_truncate(sequence, same);
    if (status == STATUS_OK)
        *out = sequence;
    else
        sequence_free(sequence);
    return status;
}

void sequence_note(const Sequence *sequence) {
    size_t known;
    (void)kv_cache_ids(sequence->cache, &known);
    ASSERT(known <= sequence->count);
    kv_cache_note(sequence->cache, sequence->ids + known, sequence->count - known);
}

// --- the pass

static Status call_page(const Network *network, const char *method, Tensor *x, Tensor **out) {
    SCOPED_VALUE(argument) = value_tensor(tensor_retain(x));
    return page_call(network->interp, network->values[OPENED], method, argument, out);
}

Status network_pooled(const Network *network, Tensor *row, Tensor **out) {
    return call_page(network, "pooled", row, out);
}

// The page computes on this cache until it gets another one.
static void set_cache(const Network *network, KvCache *cache) {
    Value *field = &network->values[OPENED].as.instance->fields[network->cache_field];
    Value old = *field;
    *field = value_handle(&handle_cache, cache);
    value_release(old);
}

static KvCache *cache_of_steps(const Step *steps, size_t count) {
    ASSERT(count > 0 && steps[0].sequence->cache != NULL);
    if (count == 1) return kv_cache_retain(steps[0].sequence->cache);
    SCOPED_MEMORY KvPart *parts = memory_allocate(count * sizeof *parts);
    for (size_t i = 0; i < count; i++)
        parts[i] = (KvPart){steps[i].sequence->cache, (int64_t)steps[i].count};
    return kv_cache_batch(parts, count);
}

// After a step that failed. States that went on are lost, and with them the whole text.
static void cut_to_text(Sequence *sequence) {
    kv_cache_cut(sequence->cache, (int64_t)sequence->count);
    if ((size_t)kv_cache_rows(sequence->cache) < sequence->count) sequence->count = 0;
}

static Status forward(const Step *steps, size_t count, Tensor **out) {
    const Network *network = steps[0].sequence->network;
    size_t total = 0, at = 0;
    bool unknown = false;
    for (size_t i = 0; i < count; i++) total += steps[i].count;
    for (size_t i = 0; i < count; i++) unknown |= steps[i].unknown;
    int64_t *ids = memory_allocate(total * sizeof *ids);
    for (size_t i = 0; i < count; at += steps[i++].count)
        memcpy(ids + at, steps[i].ids, steps[i].count * sizeof *ids);
    Shape shape = {.rank = 1, .dims = {(int64_t)total}};
    SCOPED_TENSOR(tensor);
    Status status = tensor_from_integers(ids, &shape, DTYPE_INT64, &tensor);
    free(ids);
    TRY(status);
    if (UNLIKELY(unknown)) tensor_forget(tensor);
    TRY(follow_tell_steps(steps, count));
    if (network->cache_field >= 0) set_cache(network, cache_of_steps(steps, count));
    status = call_page(network, "forward", tensor, out);
    for (size_t i = 0; i < count; i++) {
        Sequence *sequence = steps[i].sequence;
        if (status == STATUS_OK)
            sequence_take(sequence, steps[i].ids, steps[i].count);
        else if (sequence->cache)
            cut_to_text(sequence);
    }
    return status;
}

static Status join(Tensor **parts, size_t count, Tensor **out) {
    if (count == 1) {
        *out = tensor_retain(parts[0]);
        return STATUS_OK;
    }
    return tensor_concat(parts, count, 0, out);
}

static void release_all(Tensor **parts, size_t count) {
    for (size_t i = 0; i < count; i++) tensor_release(parts[i]);
    free(parts);
}

// Pages that treat long texts differently, or keep their text to themselves, take one at a time.
Status sequences_hidden(const Step *steps, size_t count, Tensor **out) {
    ASSERT(count > 0);
    const Network *network = steps[0].sequence->network;
    if (count == 1 || (network->cache_field >= 0 && network->boundary == 0))
        return forward(steps, count, out);
    Tensor **parts = memory_allocate_zeroed(count, sizeof *parts);
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = forward(&steps[i], 1, &parts[i]);
    if (status == STATUS_OK) status = join(parts, count, out);
    release_all(parts, count);
    return status;
}

// A long text goes through in parts: no operation takes long, and none needs much memory. What is
// left ends with the ids that are asked about.
static Status advance_long(const Step *step, Step *rest) {
    ASSERT(step->rows > 0 && step->rows <= step->count);
    *rest = *step;
    while (rest->count > ROWS_MAX && rest->count > rest->rows) {
        size_t most = rest->count - rest->rows;
        Step part = {rest->sequence, rest->ids, most < ROWS_MAX ? most : ROWS_MAX, 1,
                     rest->unknown};
        SCOPED_TENSOR(hidden);
        TRY(sequences_hidden(&part, 1, &hidden));
        rest->ids += part.count;
        rest->count -= part.count;
    }
    return STATUS_OK;
}

static Status last_rows(Tensor *hidden, const Step *steps, size_t count, Tensor **out) {
    Tensor **parts = memory_allocate_zeroed(count, sizeof *parts);
    Status status = STATUS_OK;
    int64_t end = 0;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        end += (int64_t)steps[i].count;
        ASSERT(steps[i].rows > 0 && steps[i].rows <= steps[i].count);
        status = tensor_slice(hidden, 0, end - (int64_t)steps[i].rows, end, &parts[i]);
    }
    if (status == STATUS_OK) status = join(parts, count, out);
    release_all(parts, count);
    return status;
}

Status sequences_advance(const Step *steps, size_t count, Tensor **out) {
    TRY(network_need_logits(steps[0].sequence->network));
    Step *rest = memory_allocate(count * sizeof *rest);
    Status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = advance_long(&steps[i], &rest[i]);
    SCOPED_TENSOR(hidden);
    SCOPED_TENSOR(last);
    if (status == STATUS_OK) status = sequences_hidden(rest, count, &hidden);
    if (status == STATUS_OK) status = last_rows(hidden, rest, count, &last);
    free(rest);
    TRY(status);
    return call_page(steps[0].sequence->network, "logits", last, out);
}
