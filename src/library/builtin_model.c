// Models and KV caches as the language sees them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "value/builtin.h"
#include "value/handles.h"

// --- models

static void model_payload_release(void *payload) {
    model_release(payload);
}

// Of m.blk[3]: a ModelEntry, for which the model is held.
static void path_release(void *payload) {
    model_release(model_entry_model(payload));
}

static const HandleType handle_model_path; // m.blk, m.blk[3]: the beginning of tensor names

// The tensor that a step came to, or the path that goes on from there.
static Value arrive(Model *model, const ModelEntry *entry, Tensor *tensor) {
    if (tensor) return value_tensor(tensor);
    model_retain(model);
    return value_handle(&handle_model_path, (void *)(uintptr_t)entry);
}

static Status step(Model *model, const ModelEntry *from, const char *word, Value *out) {
    Tensor *tensor;
    const ModelEntry *entry;
    TRY(model_step(model, from, word, &entry, &tensor));
    *out = arrive(model, entry, tensor);
    return STATUS_OK;
}

static Status model_get_field(Handle *handle, const char *name, Value *out) {
    return step(handle->payload, NULL, name, out);
}

static Status model_get_index(Handle *handle, Value index, Value *out) {
    const String *name;
    Tensor *tensor = NULL;
    TRY(value_to_string(index, "the name of a tensor", &name));
    TRY(model_tensor(handle->payload, name->bytes, &tensor));
    *out = value_tensor(tensor);
    return STATUS_OK;
}

static Status path_get_field(Handle *handle, const char *name, Value *out) {
    const ModelEntry *entry = handle->payload;
    return step(model_entry_model(entry), entry, name, out);
}

static Status path_get_index(Handle *handle, Value index, Value *out) {
    int64_t number;
    Tensor *tensor;
    const ModelEntry *entry, *from = handle->payload;
    TRY(value_to_int(index, "index", &number));
    TRY(model_step_number(model_entry_model(from), from, number, &entry, &tensor));
    *out = arrive(model_entry_model(from), entry, tensor);
    return STATUS_OK;
}

static void model_print(Handle *handle, Text *out) {
    const Model *model = handle->payload;
    size_t count = model_reader(model)->tensors.count;
    text_format(out, "<model %s, %zu tensor%s>", model_path(model), count, count == 1 ? "" : "s");
}

static void path_print(Handle *handle, Text *out) {
    const ModelEntry *entry = handle->payload;
    text_format(out, "<%s of %s>", model_entry_name(entry), model_path(model_entry_model(entry)));
}

const HandleType handle_model = {.name = "model",
                                 .release = model_payload_release,
                                 .get_field = model_get_field,
                                 .get_index = model_get_index,
                                 .print = model_print};
static const HandleType handle_model_path = {.name = "model path",
                                             .release = path_release,
                                             .get_field = path_get_field,
                                             .get_index = path_get_index,
                                             .print = path_print};

static Value load(BuiltinCall *call, const ModelOptions *options) {
    const String *path;
    Model *model;
    if (value_to_string(call->arguments[0], "path", &path) != STATUS_OK ||
        model_open(path->bytes, options, &model) != STATUS_OK)
        return value_fail();
    return value_handle(&handle_model, model);
}

Value builtin_load_model(BuiltinCall *call) {
    Value dtype = call->arguments[1];
    Value cache = call->arguments[3];
    ModelOptions options = {.fast = call->arguments[2].as.integer != 0,
                            .has_cache = cache.kind != VALUE_ABSENT};
    if (options.has_cache) options.cache = (DType)cache.as.integer;
    if (options.has_cache && !dtype_is_float(options.cache))
        return value_failed(
            fail(STATUS_DTYPE, "a KV cache holds floats, not %s", dtype_name(options.cache)));
    if (dtype.kind == VALUE_ABSENT) return load(call, &options);
    options.convert = true;
    options.dtype = (DType)dtype.as.integer;
    if (!dtype_is_float(options.dtype))
        return value_failed(fail(STATUS_DTYPE,
                                 "a model's tensors can be converted to float types, not to %s",
                                 dtype_name(options.dtype)));
    return load(call, &options);
}

Value builtin_load_model_f16(BuiltinCall *call) {
    return load(call, &(ModelOptions){.convert = true, .dtype = DTYPE_FLOAT16});
}

Value builtin_load_model_f32(BuiltinCall *call) {
    return load(call, &(ModelOptions){.convert = true, .dtype = DTYPE_FLOAT32});
}

Value builtin_load_weight_cache_f16(BuiltinCall *call) {
    return builtin_load_model_f16(call);
}

Value builtin_load_weight_cache_f32(BuiltinCall *call) {
    return builtin_load_model_f32(call);
}

static Value opened_tensor(const char *path, const char *name) {
    Model *model;
    Tensor *tensor = NULL;
    if (model_open(path, NULL, &model) != STATUS_OK) return value_fail();
    Status status = model_tensor(model, name, &tensor);
    model_release(model);
    return status == STATUS_OK ? value_tensor(tensor) : value_fail();
}

Value builtin_cndl_load_safetensor(BuiltinCall *call) {
    return opened_tensor(call->arguments[0].as.string->bytes, call->arguments[1].as.string->bytes);
}

Value builtin_cndl_list_safetensors(BuiltinCall *call) {
    Model *model;
    if (model_open(call->arguments[0].as.string->bytes, NULL, &model) != STATUS_OK)
        return value_fail();
    const Reader *reader = model_reader(model);
    Value names = value_list(reader->tensors.count);
    for (size_t i = 0; i < reader->tensors.count; i++)
        list_push(names.as.list, value_cstring(reader->tensors.items[i].name));
    model_release(model);
    return names;
}

Value builtin_cndl_save_safetensor(BuiltinCall *call) {
    NamedTensors tensors = {0};
    Tensor *tensor;
    if (value_to_tensor(call->arguments[0], "x", &tensor) != STATUS_OK) return value_fail();
    named_tensors_add(&tensors, call->arguments[2].as.string->bytes, tensor);
    Status status = safetensors_write(call->arguments[1].as.string->bytes, &tensors);
    named_tensors_free(&tensors);
    return status == STATUS_OK ? value_none() : value_fail();
}

static Model *model_argument(const BuiltinCall *call) {
    return call->arguments[0].as.handle->payload; // binding has checked the kind
}

Value builtin_get_tensor(BuiltinCall *call) {
    Tensor *tensor;
    const char *name = call->arguments[1].as.string->bytes;
    if (model_tensor(model_argument(call), name, &tensor) != STATUS_OK) return value_fail();
    return value_tensor(tensor);
}

Value builtin_has_tensor(BuiltinCall *call) {
    return value_bool(model_has_tensor(model_argument(call), call->arguments[1].as.string->bytes));
}

static Value shape_list(const Shape *shape) {
    Value list = value_list((size_t)shape->rank);
    for (int i = 0; i < shape->rank; i++) list_push(list.as.list, value_int(shape->dims[i]));
    return list;
}

Value builtin_tensors(BuiltinCall *call) {
    const Reader *reader = model_reader(model_argument(call));
    Value list = value_list(reader->tensors.count);
    for (size_t i = 0; i < reader->tensors.count; i++) {
        const StoredTensor *tensor = &reader->tensors.items[i];
        if (tensor->is_part) continue;
        Value row = value_dict();
        dict_set(row.as.dict, value_cstring("name"), value_cstring(tensor->name));
        dict_set(row.as.dict, value_cstring("dtype"), value_cstring(tensor->type_name));
        dict_set(row.as.dict, value_cstring("shape"), shape_list(&tensor->shape));
        dict_set(row.as.dict, value_cstring("bytes"), value_int((int64_t)tensor->bytes));
        list_push(list.as.list, row);
    }
    return list;
}

static void push_meta(void *context, size_t index, MetaValue value);

// Strings that are not UTF-8 keep their bytes' places: value_string accepts any bytes.
static Value meta_value(const MetaValue *value) {
    switch (value->type) {
    case META_STRING: return value_string(value->as.string.bytes, value->as.string.length);
    case META_BOOL: return value_bool(value->as.integer != 0);
    case META_FLOAT32:
    case META_FLOAT64: return value_float(value->as.number);
    case META_ARRAY: {
        Value list = value_list(value->as.array.count);
        meta_array_each(value, push_meta, list.as.list);
        return list;
    }
    case META_UINT64:
        if (value->as.integer < 0) return value_float((double)(uint64_t)value->as.integer);
        return value_int(value->as.integer);
    default: return value_int(value->as.integer);
    }
}

static void push_meta(void *context, size_t index, MetaValue value) {
    (void)index;
    list_push(context, meta_value(&value));
}

static Value meta_all(const Metadata *metadata) {
    Value dict = value_dict();
    for (size_t i = 0; i < metadata->count; i++)
        dict_set(dict.as.dict, value_cstring(metadata->items[i].key),
                 meta_value(&metadata->items[i].value));
    return dict;
}

static Value meta_missing(const Model *model, const char *key) {
    const Metadata *metadata = &model_reader(model)->metadata;
    SCOPED_MEMORY const char **keys = memory_allocate(metadata->count * sizeof *keys);
    for (size_t i = 0; i < metadata->count; i++) keys[i] = metadata->items[i].key;
    const char *nearest = catalog_nearest(key, keys, metadata->count);
    fail(STATUS_KEY, "%s has no metadata called \"%s\"", model_path(model), key);
    if (nearest) fail_help("there is \"%s\"", nearest);
    return value_fail();
}

Value builtin_meta(BuiltinCall *call) {
    const Metadata *metadata = &model_reader(model_argument(call))->metadata;
    if (call->arguments[1].kind == VALUE_ABSENT) return meta_all(metadata);
    const char *key = call->arguments[1].as.string->bytes;
    const MetaValue *value = metadata_find(metadata, key);
    if (value) return meta_value(value);
    if (call->arguments[2].kind != VALUE_ABSENT) return value_retain(call->arguments[2]);
    return meta_missing(model_argument(call), key);
}

// --- KV caches

static void cache_payload_release(void *payload) {
    kv_cache_release(payload);
}

static void cache_print(Handle *handle, Text *out) {
    const KvCache *cache = handle->payload;
    text_format(out, "<KVCache %s, %lld layers, %lld rows>", dtype_name(kv_cache_dtype(cache)),
                (long long)kv_cache_layers(cache), (long long)kv_cache_rows(cache));
}

const HandleType handle_cache = {
    .name = "KVCache", .release = cache_payload_release, .print = cache_print};

static Value new_cache(BuiltinCall *call, DType dtype) {
    int64_t layers, capacity;
    KvCache *cache;
    if (value_to_int(call->arguments[0], "layers", &layers) != STATUS_OK ||
        value_to_int(call->arguments[1], "capacity", &capacity) != STATUS_OK ||
        kv_cache_new(layers, capacity, dtype, &cache) != STATUS_OK)
        return value_fail();
    return value_handle(&handle_cache, cache);
}

Value builtin_cache_new(BuiltinCall *call) {
    return new_cache(call, (DType)call->arguments[2].as.integer);
}

Value builtin_cache_new_f16(BuiltinCall *call) {
    return new_cache(call, DTYPE_FLOAT16);
}

Value builtin_cache_new_f32(BuiltinCall *call) {
    return new_cache(call, DTYPE_FLOAT32);
}

static KvCache *cache_argument(const BuiltinCall *call) {
    return call->arguments[0].as.handle->payload;
}

typedef Status (*CacheStore)(KvCache *cache, int64_t layer, Tensor *k, Tensor *v);

static Status store_rows(const BuiltinCall *call, CacheStore store) {
    int64_t layer;
    Tensor *k, *v;
    TRY(value_to_int(call->arguments[1], "layer", &layer));
    TRY(value_to_tensor(call->arguments[2], "k", &k));
    Status status = value_to_tensor(call->arguments[3], "v", &v);
    if (status == STATUS_OK) {
        status = store(cache_argument(call), layer, k, v);
        tensor_release(v);
    }
    tensor_release(k);
    return status;
}

static Value cache_store(const BuiltinCall *call, CacheStore store) {
    return store_rows(call, store) == STATUS_OK ? value_retain(call->arguments[0]) : value_fail();
}

Value builtin_cache_append(BuiltinCall *call) {
    return cache_store(call, kv_cache_append);
}

Value builtin_cache_set(BuiltinCall *call) {
    return cache_store(call, kv_cache_set);
}

typedef Status (*CacheRead)(KvCache *cache, int64_t layer, Tensor **out);

static Value cache_read(const BuiltinCall *call, CacheRead read) {
    int64_t layer;
    Tensor *rows;
    if (value_to_int(call->arguments[1], "layer", &layer) != STATUS_OK ||
        read(cache_argument(call), layer, &rows) != STATUS_OK)
        return value_fail();
    return value_tensor(rows);
}

Value builtin_cache_get_k(BuiltinCall *call) {
    return cache_read(call, kv_cache_keys);
}

Value builtin_cache_get_v(BuiltinCall *call) {
    return cache_read(call, kv_cache_values);
}

Value builtin_cache_len(BuiltinCall *call) {
    return value_int(kv_cache_rows(cache_argument(call)));
}

Value builtin_cache_truncate(BuiltinCall *call) {
    int64_t rows;
    if (value_to_int(call->arguments[1], "n", &rows) != STATUS_OK ||
        kv_cache_truncate(cache_argument(call), rows) != STATUS_OK)
        return value_fail();
    return value_retain(call->arguments[0]);
}

Value builtin_cache_fork(BuiltinCall *call) {
    return value_handle(&handle_cache, kv_cache_fork(cache_argument(call)));
}
