// A KV cache: the keys and values of the tokens seen so far, per layer. Rows are added at the end
// in amortised constant time per row; what is read is a view of the rows, never a copy.
#ifndef MODEL_KV_CACHE_H
#define MODEL_KV_CACHE_H

#include "tensor/tensor.h"

typedef struct KvCache KvCache;

// `capacity`: rows reserved at the first append, 0 for a small default. dtype: a float type.
Status kv_cache_new(int64_t layers, int64_t capacity, DType dtype, KvCache **out) MUST_USE;
KvCache *kv_cache_retain(KvCache *cache);
void kv_cache_release(KvCache *cache);

// k, v: [rows, ...], the same number of rows; the other dimensions are fixed by the first append to
// the layer. Both convert to the cache's dtype. append adds rows, set replaces all of them.
Status kv_cache_append(KvCache *cache, int64_t layer, Tensor *k, Tensor *v) MUST_USE;
Status kv_cache_set(KvCache *cache, int64_t layer, Tensor *k, Tensor *v) MUST_USE;
// A view [rows, ...]; it keeps its contents whatever happens to the cache. STATUS_INDEX for a layer
// out of range, STATUS_VALUE for one that is empty.
Status kv_cache_keys(KvCache *cache, int64_t layer, Tensor **out) MUST_USE;
Status kv_cache_values(KvCache *cache, int64_t layer, Tensor **out) MUST_USE;
int64_t kv_cache_rows(const KvCache *cache);                      // of the layer with the most
int64_t kv_cache_layer_rows(const KvCache *cache, int64_t layer); // 0 for one out of range
int64_t kv_cache_layers(const KvCache *cache);
DType kv_cache_dtype(const KvCache *cache);
// A layer may keep states in place of rows: tensors that stand for all rows of the text so far.
enum { KV_STATES_MAX = 4 };
typedef struct KvStates {
    Tensor *items[KV_STATES_MAX]; // borrowed where they are given, and where they are taken
    int count;
} KvStates;
const KvStates *kv_cache_states(const KvCache *cache, int64_t layer); // NULL: it has none
// The states after `rows` more rows. STATUS_INDEX for a layer out of range.
Status kv_cache_step(KvCache *cache, int64_t layer, const KvStates *states, int64_t rows) MUST_USE;
bool kv_cache_has_states(const KvCache *cache);
// Keeps the first `rows` rows of every layer; none where that would take back what states hold.
Status kv_cache_truncate(KvCache *cache, int64_t rows) MUST_USE;
void kv_cache_cut(KvCache *cache, int64_t rows); // the same where rows >= 0 is known
// A second cache with the same rows; the two share memory until one of them grows.
KvCache *kv_cache_fork(const KvCache *cache);

// The two have each other's rows, states and ids. One is a fork of the other.
void kv_cache_exchange(KvCache *a, KvCache *b);

// The ids of the text, for whoever computes its rows anew: adds some, gives all of them (borrowed).
// Truncating forgets them with the rows; a fork has them too.
void kv_cache_note(KvCache *cache, const int64_t *ids, size_t count);
const int64_t *kv_cache_ids(const KvCache *cache, size_t *count);

// Several texts computed together: each has the next `rows` rows of what is computed. Holds the
// caches. A batch has parts and no rows of its own.
typedef struct KvPart {
    KvCache *cache;
    int64_t rows;
} KvPart;
KvCache *kv_cache_batch(const KvPart *parts, size_t count);
// The parts of a batch; a cache by itself is the only part of it, with `rows` rows.
size_t kv_cache_part_count(const KvCache *cache);
KvPart kv_cache_part(KvCache *cache, size_t index, int64_t rows);

#endif
