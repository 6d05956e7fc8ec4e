// KV caches: per layer two tensors with room to spare. Rows below `written` may be visible to views
// or to a fork, so they are never overwritten while anyone else holds the storage.
#include "model/kv_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "tensor/compose.h"

enum { CACHE_LAYERS_MAX = 1 << 16, CACHE_ROWS_DEFAULT = 64 };

// Keys or values of one layer: storage [capacity, ...], of which `rows` rows count.
typedef struct CacheSide {
    Tensor *storage; // NULL until the first append
    int64_t rows;
    int64_t written; // rows that were ever filled in this storage
} CacheSide;

typedef struct CacheLayer {
    CacheSide keys, values;
    KvStates states;    // in place of rows
    int64_t state_rows; // that they stand for
} CacheLayer;

struct KvCache {
    int refs;
    DType dtype;
    int64_t capacity;
    int64_t layer_count;
    int64_t *ids; // of the text, where someone noted them
    size_t id_count;
    KvPart *parts; // of a batch, else NULL
    size_t part_count;
    CacheLayer layers[];
};

Status kv_cache_new(int64_t layers, int64_t capacity, DType dtype, KvCache **out) {
    if (layers < 1 || layers > CACHE_LAYERS_MAX)
        return fail(STATUS_VALUE, "a KV cache has 1 to %d layers, not %lld", CACHE_LAYERS_MAX,
                    (long long)layers);
    if (capacity < 0)
        return fail(STATUS_VALUE, "the capacity of a KV cache cannot be %lld", (long long)capacity);
    if (!dtype_is_float(dtype))
        return fail(STATUS_DTYPE, "a KV cache holds floats, not %s", dtype_name(dtype));
    KvCache *cache =
        memory_allocate_zeroed(1, sizeof *cache + (size_t)layers * sizeof *cache->layers);
    cache->refs = 1;
    cache->dtype = dtype;
    cache->capacity = capacity;
    cache->layer_count = layers;
    *out = cache;
    return STATUS_OK;
}

KvCache *kv_cache_retain(KvCache *cache) {
    ASSERT(cache->refs > 0);
    cache->refs++;
    return cache;
}

static void clear_states(CacheLayer *layer) {
    for (int i = 0; i < layer->states.count; i++) tensor_release(layer->states.items[i]);
    layer->states = (KvStates){0};
    layer->state_rows = 0;
}

void kv_cache_release(KvCache *cache) {
    ASSERT(cache->refs > 0);
    if (--cache->refs > 0) return;
    for (int64_t i = 0; i < cache->layer_count; i++) {
        tensor_release(cache->layers[i].keys.storage);
        tensor_release(cache->layers[i].values.storage);
        clear_states(&cache->layers[i]);
    }
    for (size_t i = 0; i < cache->part_count; i++) kv_cache_release(cache->parts[i].cache);
    free(cache->parts);
    free(cache->ids);
    free(cache);
}

int64_t kv_cache_layers(const KvCache *cache) {
    return cache->layer_count;
}

DType kv_cache_dtype(const KvCache *cache) {
    return cache->dtype;
}

static int64_t rows_of(const CacheLayer *layer) {
    return layer->states.count > 0 ? layer->state_rows : layer->keys.rows;
}

int64_t kv_cache_rows(const KvCache *cache) {
    int64_t rows = 0;
    for (size_t i = 0; i < cache->part_count; i++) {
        int64_t of_part = kv_cache_rows(cache->parts[i].cache);
        if (of_part > rows) rows = of_part;
    }
    for (int64_t i = 0; i < cache->layer_count; i++)
        if (rows_of(&cache->layers[i]) > rows) rows = rows_of(&cache->layers[i]);
    return rows;
}

int64_t kv_cache_layer_rows(const KvCache *cache, int64_t layer) {
    return layer >= 0 && layer < cache->layer_count ? rows_of(&cache->layers[layer]) : 0;
}

static Status check_layer(const KvCache *cache, int64_t layer) {
    if (layer >= 0 && layer < cache->layer_count) return STATUS_OK;
    return fail(STATUS_INDEX, "layer %lld is out of range: the KV cache has %lld layers",
                (long long)layer, (long long)cache->layer_count);
}

// Rows [begin, begin + rows) of a storage.
static Tensor *row_view(Tensor *storage, int64_t begin, int64_t rows) {
    ASSERT(begin >= 0 && rows >= 0 && begin <= storage->view.dims[0] - rows);
    TensorView view = storage->view;
    view.offset += (size_t)(begin * view.strides[0]) * dtype_size(view.dtype);
    view.dims[0] = rows;
    return tensor_view_of(storage, &view);
}

static Status copy_rows(Tensor *source, Tensor *storage, int64_t begin, int64_t rows) {
    if (rows == 0) return STATUS_OK;
    SCOPED_TENSOR(target);
    target = row_view(storage, begin, rows);
    return op_copy(source, target);
}

// Storage for rows like those: [capacity, ...]. Queries read rows of heads, [capacity, heads,
// width], one head after the other, and so they lie: memory that is read in order is fetched ahead.
static Status new_storage(const Tensor *like, DType dtype, int64_t capacity, Tensor **out) {
    Shape shape = tensor_shape(like);
    bool heads = shape.rank == 3;
    shape.dims[0] = heads ? shape.dims[1] : capacity;
    if (heads) shape.dims[1] = capacity;
    SCOPED_TENSOR(storage);
    TRY(tensor_new(like->device, dtype, &shape, &storage));
    buffer_note_purpose(storage->view.buffer, PURPOSE_CACHE);
    return heads ? tensor_transpose(storage, 0, 1, out) : compose_give(&storage, out);
}

// New storage for `capacity` rows with the present rows copied into it.
static Status move_side(CacheSide *side, const Tensor *like, DType dtype, int64_t capacity) {
    ASSERT(capacity >= side->rows);
    Tensor *storage;
    TRY(new_storage(like, dtype, capacity, &storage));
    if (side->rows > 0) {
        Tensor *present = row_view(side->storage, 0, side->rows);
        Status status = copy_rows(present, storage, 0, side->rows);
        tensor_release(present);
        if (status != STATUS_OK) {
            tensor_release(storage);
            return status;
        }
    }
    tensor_release(side->storage);
    side->storage = storage;
    side->written = side->rows;
    return STATUS_OK;
}

static Status reserve_rows(KvCache *cache, CacheSide *side, const Tensor *like, int64_t needed) {
    ASSERT(needed >= side->rows);
    int64_t capacity = side->storage ? side->storage->view.dims[0] : 0;
    bool shared = side->storage && !buffer_is_unique(side->storage->view.buffer);
    bool overwrites = shared && side->rows < side->written;
    if (needed <= capacity && !overwrites) return STATUS_OK;
    int64_t wanted = capacity;
    if (wanted == 0) wanted = cache->capacity ? cache->capacity : CACHE_ROWS_DEFAULT;
    if (needed > wanted) wanted = needed > wanted * 2 ? needed : wanted * 2;
    return move_side(side, like, cache->dtype, wanted);
}

// "[?, 4, 8]": what a row of the layer looks like.
static Status check_rows(const CacheSide *side, const Tensor *rows, const char *what) {
    if (rows->view.rank < 1)
        return fail(STATUS_SHAPE, "the %s of a KV cache have shape [rows, ...], not %s", what,
                    tensor_type_name(rows).text);
    ASSERT(side->rows >= 0);
    if (!side->storage) return STATUS_OK;
    const TensorView *view = &side->storage->view;
    bool same = view->rank == rows->view.rank;
    for (int i = 1; same && i < view->rank; i++) same = view->dims[i] == rows->view.dims[i];
    if (same) return STATUS_OK;
    Shape held = tensor_shape(side->storage);
    held.dims[0] = side->rows;
    return fail(STATUS_SHAPE, "cannot append %s to the %s of this layer, which are %s",
                tensor_type_name(rows).text, what, type_name(view->dtype, &held).text);
}

static Status append_side(KvCache *cache, CacheSide *side, Tensor *rows) {
    ASSERT(side->rows <= side->written &&
           (!side->storage || side->written <= side->storage->view.dims[0]));
    int64_t count = rows->view.dims[0], needed;
    if (__builtin_add_overflow(side->rows, count, &needed))
        return fail(STATUS_SHAPE, "a KV cache cannot hold that many rows");
    TRY(reserve_rows(cache, side, rows, needed));
    TRY(copy_rows(rows, side->storage, side->rows, count));
    ASSERT(needed == 0 || needed <= side->storage->view.dims[0]); // without rows there may be none
    side->rows = needed;
    if (side->written < needed) side->written = needed;
    return STATUS_OK;
}

Status kv_cache_append(KvCache *cache, int64_t layer, Tensor *k, Tensor *v) {
    ASSERT(cache->refs > 0);
    TRY(check_layer(cache, layer));
    CacheLayer *sides = &cache->layers[layer];
    TRY(check_rows(&sides->keys, k, "keys"));
    TRY(check_rows(&sides->values, v, "values"));
    if (k->view.dims[0] != v->view.dims[0])
        return fail(STATUS_SHAPE, "keys %s and values %s differ in rows", tensor_type_name(k).text,
                    tensor_type_name(v).text);
    ASSERT(sides->keys.rows == sides->values.rows);
    int64_t before = sides->keys.rows;
    TRY(append_side(cache, &sides->keys, k));
    Status status = append_side(cache, &sides->values, v);
    if (status != STATUS_OK) sides->keys.rows = before;
    return status;
}

static void clear_side(CacheSide *side) {
    tensor_release(side->storage);
    *side = (CacheSide){0};
}

Status kv_cache_set(KvCache *cache, int64_t layer, Tensor *k, Tensor *v) {
    TRY(check_layer(cache, layer));
    // k and v may be views of the rows that are replaced: they keep the old storage alive.
    ASSERT(layer >= 0 && layer < cache->layer_count);
    CacheLayer previous = cache->layers[layer];
    cache->layers[layer] = (CacheLayer){0};
    Status status = kv_cache_append(cache, layer, k, v);
    if (status != STATUS_OK) {
        clear_side(&cache->layers[layer].keys);
        clear_side(&cache->layers[layer].values);
        cache->layers[layer] = previous;
        return status;
    }
    clear_side(&previous.keys);
    clear_side(&previous.values);
    return STATUS_OK;
}

static Status read_side(const CacheSide *side, int64_t layer, Tensor **out) {
    if (!side->storage)
        return fail(STATUS_VALUE, "layer %lld of the KV cache is empty", (long long)layer);
    *out = row_view(side->storage, 0, side->rows);
    return STATUS_OK;
}

Status kv_cache_keys(KvCache *cache, int64_t layer, Tensor **out) {
    TRY(check_layer(cache, layer));
    return read_side(&cache->layers[layer].keys, layer, out);
}

Status kv_cache_values(KvCache *cache, int64_t layer, Tensor **out) {
    TRY(check_layer(cache, layer));
    return read_side(&cache->layers[layer].values, layer, out);
}

Status kv_cache_truncate(KvCache *cache, int64_t rows) {
    if (rows < 0)
        return fail(STATUS_VALUE, "a KV cache cannot be truncated to %lld rows", (long long)rows);
    kv_cache_cut(cache, rows);
    return STATUS_OK;
}

// --- states

bool kv_cache_has_states(const KvCache *cache) {
    bool has = false;
    for (int64_t i = 0; i < cache->layer_count && !has; i++)
        has = cache->layers[i].states.count > 0;
    return has;
}

const KvStates *kv_cache_states(const KvCache *cache, int64_t layer) {
    bool there = layer >= 0 && layer < cache->layer_count && cache->layers[layer].states.count > 0;
    return there ? &cache->layers[layer].states : NULL;
}

Status kv_cache_step(KvCache *cache, int64_t layer, const KvStates *states, int64_t rows) {
    ASSERT(states->count > 0 && states->count <= KV_STATES_MAX && rows >= 0);
    TRY(check_layer(cache, layer));
    CacheLayer *kept = &cache->layers[layer];
    CacheLayer before = *kept;
    kept->states = *states;
    kept->state_rows = before.state_rows + rows;
    for (int i = 0; i < states->count; i++) {
        tensor_retain(states->items[i]);
        buffer_note_purpose(states->items[i]->view.buffer, PURPOSE_CACHE);
    }
    clear_states(&before);
    return STATUS_OK;
}

// Whether cutting to so many rows takes back some that states hold.
static bool cuts_states(const KvCache *cache, int64_t rows) {
    bool cuts = false;
    for (int64_t i = 0; i < cache->layer_count && !cuts; i++)
        cuts = cache->layers[i].states.count > 0 && cache->layers[i].state_rows > rows;
    return cuts;
}

void kv_cache_cut(KvCache *cache, int64_t rows) {
    ASSERT(rows >= 0);
    if (cuts_states(cache, rows)) {
        rows = 0;
        for (int64_t i = 0; i < cache->layer_count; i++) clear_states(&cache->layers[i]);
    }
    for (int64_t i = 0; i < cache->layer_count; i++) {
        CacheLayer *layer = &cache->layers[i];
        if (layer->keys.rows > rows) layer->keys.rows = rows;
        if (layer->values.rows > rows) layer->values.rows = rows;
    }
    if ((uint64_t)rows < cache->id_count) cache->id_count = (size_t)rows;
}

// The fork's storage ends with its rows, so that it moves to storage of its own before it adds any;
// the original goes on in place, beyond what the fork can see.
static void fork_side(CacheSide *side, const CacheSide *source) {
    *side = *source;
    ASSERT(side->rows <= side->written);
    if (!side->storage) return;
    side->storage = row_view(source->storage, 0, source->rows);
    side->written = side->rows;
}

KvCache *kv_cache_fork(const KvCache *cache) {
    ASSERT(cache->refs > 0 && cache->parts == NULL);
    size_t bytes = sizeof *cache + (size_t)cache->layer_count * sizeof *cache->layers;
    KvCache *fork = memory_allocate_zeroed(1, bytes);
    memcpy(fork, cache, sizeof *cache);
    fork->refs = 1;
    fork->ids = NULL;
    fork->id_count = 0;
    kv_cache_note(fork, cache->ids, cache->id_count);
    for (int64_t i = 0; i < cache->layer_count; i++) {
        fork_side(&fork->layers[i].keys, &cache->layers[i].keys);
        fork_side(&fork->layers[i].values, &cache->layers[i].values);
        fork->layers[i].states = cache->layers[i].states;
        fork->layers[i].state_rows = cache->layers[i].state_rows;
        for (int s = 0; s < fork->layers[i].states.count; s++)
            tensor_retain(fork->layers[i].states.items[s]);
    }
    return fork;
}

void kv_cache_exchange(KvCache *a, KvCache *b) {
    ASSERT(a->layer_count == b->layer_count && a->parts == NULL && b->parts == NULL);
    KvCache head = *a;
    a->ids = b->ids;
    a->id_count = b->id_count;
    b->ids = head.ids;
    b->id_count = head.id_count;
    for (int64_t i = 0; i < a->layer_count; i++) {
        CacheLayer layer = a->layers[i];
        a->layers[i] = b->layers[i];
        b->layers[i] = layer;
    }
}

void kv_cache_note(KvCache *cache, const int64_t *ids, size_t count) {
    if (count == 0) return;
    ASSERT(ids != NULL);
    cache->ids = memory_resize(cache->ids, (cache->id_count + count) * sizeof *ids);
    memcpy(cache->ids + cache->id_count, ids, count * sizeof *ids);
    cache->id_count += count;
}

const int64_t *kv_cache_ids(const KvCache *cache, size_t *count) {
    *count = cache->id_count;
    return cache->ids;
}

KvCache *kv_cache_batch(const KvPart *parts, size_t count) {
    ASSERT(count > 1);
    KvCache *batch = memory_allocate_zeroed(1, sizeof *batch);
    batch->refs = 1;
    ASSERT(parts[0].cache->refs > 0);
    batch->dtype = parts[0].cache->dtype;
    batch->parts = memory_allocate(count * sizeof *parts);
    batch->part_count = count;
    for (size_t i = 0; i < count; i++) {
        batch->parts[i] = parts[i];
        kv_cache_retain(parts[i].cache);
    }
    return batch;
}

size_t kv_cache_part_count(const KvCache *cache) {
    return cache->parts ? cache->part_count : 1;
}

KvPart kv_cache_part(KvCache *cache, size_t index, int64_t rows) {
    ASSERT(index < kv_cache_part_count(cache));
    return cache->parts ? cache->parts[index] : (KvPart){cache, rows};
}
