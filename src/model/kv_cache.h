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
int64_t kv_cache_rows(const KvCache *cache); // of the layer with the most
int64_t kv_cache_layers(const KvCache *cache);
DType kv_cache_dtype(const KvCache *cache);
// Keeps the first `rows` rows of every layer.
Status kv_cache_truncate(KvCache *cache, int64_t rows) MUST_USE;
// A second cache with the same rows; the two share memory until one of them grows.
KvCache *kv_cache_fork(const KvCache *cache);

#endif
