#include "generate/prompt_cache.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/aside.h"
#include "base/disk_room.h"
#include "base/memory.h"
#include "base/runtime.h"
#include "base/sandbox.h"
#include "device/settings.h"
#include "generate/attached.h"
#include "generate/prompt_cache_room.h"
#include "model/model.h"
#include "model/safetensors.h"
#include "model/tensor_sum.h"
#include "tensor/compose.h"
#include "value/builtin.h"
#include "value/handles.h"

enum { SAMPLE_BYTES = 256, SAMPLES = 8 };

struct PromptCache {
    char *folder;
    Network *network;
    uint64_t key;       // of the network
    uint64_t bytes_max; // of all files
};

// --- the key

// A weight by its name, its type, its shape and some of its numbers.
static Status sum_weight(Model *model, const StoredTensor *info, ByteSum *sum) {
    SCOPED_TENSOR(tensor);
    if (!info->usable) return STATUS_OK; // nothing computes with it
    byte_sum_add(sum, info->name, strlen(info->name));
    TRY(model_tensor(model, info->name, &tensor));
    size_t bytes = 0;
    Shape shape = tensor_shape(tensor);
    DType dtype = tensor_dtype(tensor);
    byte_sum_add(sum, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
    byte_sum_add(sum, &dtype, sizeof dtype);
    if (!stored_bytes(dtype, &shape, &bytes)) return STATUS_OK;
    for (size_t i = 0; i < SAMPLES; i++) {
        size_t begin = bytes / SAMPLES * i, left = bytes - begin;
        TRY(byte_sum_add_part(sum, tensor, begin, left < SAMPLE_BYTES ? left : SAMPLE_BYTES));
    }
    return STATUS_OK;
}

static void sum_metadata(const Metadata *metadata, ByteSum *sum) {
    for (size_t i = 0; i < metadata->count; i++) {
        const MetaValue *value = &metadata->items[i].value;
        byte_sum_add(sum, metadata->items[i].key, strlen(metadata->items[i].key));
        byte_sum_add(sum, &value->type, sizeof value->type);
        if (value->type == META_STRING)
            byte_sum_add(sum, value->as.string.bytes, value->as.string.length);
        else if (value->type == META_ARRAY)
            byte_sum_add(sum, value->as.array.bytes, value->as.array.length);
        else
            byte_sum_add(sum, &value->as.integer, sizeof value->as.integer);
    }
}

static Status sum_adapters(Value model, ByteSum *sum) {
    Value adapters = attached_adapters(model);
    for (size_t i = 0; adapters.kind == VALUE_LIST && i < adapters.as.list->count; i++) {
        const List *adapter = adapters.as.list->items[i].as.list;
        byte_sum_add(sum, &adapter->items[1].as.number, sizeof(double));
        const Dict *parts = adapter->items[0].as.dict;
        for (size_t j = 0; j < dict_count(parts); j++) {
            Value name, pair;
            dict_entry(parts, j, &name, &pair);
            byte_sum_add(sum, name.as.string->bytes, name.as.string->length);
            for (size_t half = 0; half < 2; half++) {
                SCOPED_TENSOR(matrix);
                TRY(value_to_tensor(pair.as.list->items[half], "an adapter", &matrix));
                TRY(byte_sum_add_tensor(sum, matrix));
            }
        }
    }
    return STATUS_OK;
}

// Of the device what its numbers depend on is said last: "AMD EPYC, 2 threads, AVX-512".
static Status sum_device(ByteSum *sum) {
    Device *device;
    TRY(device_default(&device));
    const char *arithmetic = strrchr(device->description, ',');
    byte_sum_add(sum, device->name, strlen(device->name));
    if (arithmetic) byte_sum_add(sum, arithmetic, strlen(arithmetic));
    return STATUS_OK;
}

static Status find_key(const Network *network, uint64_t *out) {
    Value value = network_model(network);
    Model *model = value.as.handle->payload;
    const Reader *reader = model_reader(model);
    ByteSum sum = {0};
    byte_sum_add(&sum, TL_VERSION, strlen(TL_VERSION));
    sum_metadata(&reader->metadata, &sum);
    bool fast = model_is_fast(model);
    byte_sum_add(&sum, &fast, sizeof fast);
    byte_sum_add(&sum, &network->dtype, sizeof network->dtype);
    TRY(sum_device(&sum));
    TRY(sum_adapters(value, &sum));
    for (size_t i = 0; i < reader->tensors.count; i++)
        TRY(sum_weight(model, &reader->tensors.items[i], &sum));
    *out = byte_sum_end(&sum);
    return STATUS_OK;
}

Status prompt_cache_open(const char *folder, Network *network, PromptCache **out) {
    uint64_t key;
    if (attached_has_hooks(network_model(network)))
        return fail(STATUS_VALUE, "texts of a model with hooks cannot be kept: no key tells what "
                                  "hooks do");
    if (network->cache_field < 0)
        return fail(STATUS_VALUE, "texts cannot be kept: the page has no field cache: KVCache");
    bool made = !runtime_current->aside && mkdir(folder, 0777) == 0;
    if (made && !disk_room_take(DISK_NOTHING, 0)) made = rmdir(folder) != 0;
    if (!runtime_current->aside && !made && errno != EEXIST)
        return fail(STATUS_IO, "cannot make the folder %s: %s", folder, file_problem(errno));
    TRY(find_key(network, &key));
    DeviceSettings settings;
    TRY(device_settings_read(&settings));
    *out = memory_allocate_zeroed(1, sizeof **out);
    **out = (PromptCache){memory_copy_string(folder, strlen(folder)), network_retain(network), key,
                          settings.prompt_cache_bytes};
    return STATUS_OK;
}

void prompt_cache_close(PromptCache *cache) {
    if (!cache) return;
    network_release(cache->network);
    free(cache->folder);
    free(cache);
}

// --- files

typedef struct Kept {
    NamedTensors tensors;
    int64_t *ids;
    size_t count;
} Kept;

static void kept_free(Kept *kept) {
    named_tensors_free(&kept->tensors);
    free(kept->ids);
    *kept = (Kept){0};
}

// A file that cannot be read is as one that is missing.
static bool kept_read(const char *path, Kept *out) {
    *out = (Kept){0};
    bool read = reader_read(path, safetensors_open, true, &out->tensors) == STATUS_OK;
    Tensor *ids = read ? named_tensors_find(&out->tensors, "ids") : NULL;
    read = ids && tensor_rank(ids) == 1 && tensor_dtype(ids) == DTYPE_INT64;
    if (read) {
        out->count = (size_t)tensor_count(ids);
        out->ids = memory_allocate((out->count + 1) * sizeof *out->ids);
        read = tensor_read_integers(ids, out->ids) == STATUS_OK;
    }
    if (read) return true;
    error_clear();
    kept_free(out);
    return false;
}

static Status kept_sum(const NamedTensors *tensors, uint64_t *out) {
    ByteSum sum = {0};
    for (size_t i = 0; i < tensors->count; i++) {
        byte_sum_add(&sum, tensors->items[i].name, strlen(tensors->items[i].name));
        TRY(byte_sum_add_tensor(&sum, tensors->items[i].tensor));
    }
    *out = byte_sum_end(&sum);
    return STATUS_OK;
}

static bool kept_is_whole(const Kept *kept) {
    const char *said = named_tensors_text(&kept->tensors, "sum");
    uint64_t sum;
    char text[24];
    if (!said || kept_sum(&kept->tensors, &sum) != STATUS_OK) return false;
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    return strcmp(text, said) == 0;
}

static Tensor *kept_state(const Kept *kept, int64_t layer, int index) {
    char name[48];
    snprintf(name, sizeof name, "s.%lld.%d", (long long)layer, index);
    return named_tensors_find(&kept->tensors, name);
}

static bool kept_has_side(const Kept *kept, char side, int64_t layer) {
    char name[32];
    snprintf(name, sizeof name, "%c.%lld", side, (long long)layer);
    const Tensor *rows = named_tensors_find(&kept->tensors, name);
    return rows && tensor_rank(rows) > 0 && rows->view.dims[0] == (int64_t)kept->count;
}

// The rows of each layer, as many as there are ids, or its states: another page, with fewer layers,
// may have written it, and anybody may have put it there.
static bool kept_has_rows(const Kept *kept, const Network *network) {
    bool has = true;
    for (int64_t i = 0; i < network->layers && has; i++)
        has =
            kept_state(kept, i, 0) || (kept_has_side(kept, 'k', i) && kept_has_side(kept, 'v', i));
    return has;
}

static bool kept_has_states(const Kept *kept, const Network *network) {
    bool has = false;
    for (int64_t i = 0; i < network->layers && !has; i++) has = kept_state(kept, i, 0) != NULL;
    return has;
}

static size_t common(const int64_t *a, size_t a_count, const int64_t *b, size_t b_count) {
    size_t shared = 0;
    while (shared < a_count && shared < b_count && a[shared] == b[shared]) shared++;
    return shared;
}

// How many of the ids a kept text can serve. One that was computed past a boundary, where all is
// computed anew, serves no text that ends before it; states serve what goes on from their end.
static size_t serves(const PromptCache *cache, const Kept *kept, const int64_t *ids, size_t count) {
    size_t shared = common(kept->ids, kept->count, ids, count - 1);
    size_t boundary = (size_t)cache->network->boundary;
    bool lost = boundary > 0 && kept->count > boundary && shared <= boundary;
    lost = lost || (shared < kept->count && kept_has_states(kept, cache->network));
    return lost ? 0 : shared;
}

// Calls visit for the path of each file of the network.
typedef void (*VisitPath)(void *context, const char *path);
static void each_path(const PromptCache *cache, VisitPath visit, void *context) {
    DIR *folder = opendir(cache->folder);
    char prefix[24];
    snprintf(prefix, sizeof prefix, "%016" PRIx64 "-", cache->key);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t length = strlen(entry->d_name), ending = strlen(".safetensors");
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || length < ending) continue;
        if (strcmp(entry->d_name + length - ending, ".safetensors") != 0) continue;
        SCOPED_TEXT(path);
        text_format(&path, "%s/%s", cache->folder, entry->d_name);
        visit(context, text_get(&path));
    }
    if (folder) closedir(folder);
}

// --- finding

typedef struct Search {
    const PromptCache *cache;
    const int64_t *ids;
    size_t count, served; // the best so far
    Text path;
} Search;

static void look_at(void *context, const char *path) {
    Search *search = context;
    Kept kept;
    if (!kept_read(path, &kept)) return;
    size_t served = serves(search->cache, &kept, search->ids, search->count);
    if (served > search->served) {
        search->served = served;
        text_clear(&search->path);
        text_append_string(&search->path, path);
    }
    kept_free(&kept);
}

static Status load_side(const Kept *kept, char side, int64_t layer, size_t rows, Tensor **out) {
    char name[32];
    snprintf(name, sizeof name, "%c.%lld", side, (long long)layer);
    Tensor *tensor = named_tensors_find(&kept->tensors, name);
    ASSERT(tensor && tensor->view.dims[0] >= (int64_t)rows); // kept_has_rows
    return tensor_slice(tensor, 0, 0, (int64_t)rows, out);
}

static Status load_layer(const Kept *kept, int64_t layer, size_t rows, KvCache *cache) {
    KvStates states = {0};
    for (Tensor *state;
         states.count < KV_STATES_MAX && (state = kept_state(kept, layer, states.count));)
        states.items[states.count++] = state;
    if (states.count > 0) return kv_cache_step(cache, layer, &states, (int64_t)rows);
    SCOPED_TENSOR(k);
    SCOPED_TENSOR(v);
    TRY(load_side(kept, 'k', layer, rows, &k));
    TRY(load_side(kept, 'v', layer, rows, &v));
    return kv_cache_append(cache, layer, k, v);
}

static Status load(const PromptCache *cache, const Kept *kept, size_t rows, Sequence **out) {
    TRY(sequence_new(cache->network, out));
    KvCache *rows_of = (*out)->cache;
    Status status = STATUS_OK;
    for (int64_t i = 0; i < kv_cache_layers(rows_of) && status == STATUS_OK; i++)
        status = load_layer(kept, i, rows, rows_of);
    if (status == STATUS_OK) {
        kv_cache_note(rows_of, kept->ids, rows);
        sequence_take(*out, kept->ids, rows);
        return STATUS_OK;
    }
    sequence_free(*out);
    *out = NULL;
    return status;
}

// What is damaged goes, and the next best is looked for.
Status prompt_cache_find(const PromptCache *cache, const int64_t *ids, size_t count,
                         Sequence **out) {
    *out = NULL;
    for (;;) {
        Search search = {.cache = cache, .ids = ids, .count = count};
        Kept kept;
        each_path(cache, look_at, &search);
        bool found = search.served > 0 && kept_read(text_get(&search.path), &kept);
        bool whole = found && kept_is_whole(&kept) && kept_has_rows(&kept, cache->network);
        Status status = whole ? load(cache, &kept, search.served, out) : STATUS_OK;
        // A few ids that most texts begin with are not a use of this one.
        if (whole && search.served >= kept.count / 2) kept_file_touch(text_get(&search.path));
        if (found && !whole) aside_remove(text_get(&search.path));
        if (found) kept_free(&kept);
        text_free(&search.path);
        if (!found || whole) return status;
    }
}

// --- keeping

static Status add_rows(const Sequence *sequence, NamedTensors *out) {
    char name[48];
    for (int64_t i = 0; i < kv_cache_layers(sequence->cache); i++) {
        const KvStates *states = kv_cache_states(sequence->cache, i);
        for (int s = 0; states && s < states->count; s++) {
            snprintf(name, sizeof name, "s.%lld.%d", (long long)i, s);
            named_tensors_add(out, name, tensor_retain(states->items[s]));
        }
        if (states) continue;
        Tensor *k, *v;
        TRY(kv_cache_keys(sequence->cache, i, &k));
        snprintf(name, sizeof name, "k.%lld", (long long)i);
        named_tensors_add(out, name, k);
        TRY(kv_cache_values(sequence->cache, i, &v));
        snprintf(name, sizeof name, "v.%lld", (long long)i);
        named_tensors_add(out, name, v);
    }
    return STATUS_OK;
}

static Status fill(const Sequence *sequence, NamedTensors *out) {
    Tensor *ids;
    uint64_t sum;
    char text[24];
    Shape shape = {.rank = 1, .dims = {(int64_t)sequence->count}};
    TRY(tensor_from_integers(sequence->ids, &shape, DTYPE_INT64, &ids));
    named_tensors_add(out, "ids", ids);
    TRY(add_rows(sequence, out));
    TRY(kept_sum(out, &sum));
    snprintf(text, sizeof text, "%016" PRIx64, sum);
    named_tensors_add_text(out, "sum", text);
    return STATUS_OK;
}

static bool is_there(const char *path) {
    Kept kept;
    if (access(path, F_OK) != 0 || !kept_read(path, &kept)) return false;
    bool whole = kept_is_whole(&kept);
    kept_free(&kept);
    return whole;
}

// Files whose whole text begins the one that was kept.
typedef struct Cover {
    const Sequence *sequence;
    const char *path;
} Cover;

static void remove_covered(void *context, const char *path) {
    const Cover *cover = context;
    Kept kept;
    if (strcmp(path, cover->path) == 0 || !kept_read(path, &kept)) return;
    size_t shared = common(kept.ids, kept.count, cover->sequence->ids, cover->sequence->count);
    if (shared == kept.count) aside_remove(path);
    kept_free(&kept);
}

Status prompt_cache_store(const PromptCache *cache, const Sequence *sequence) {
    NamedTensors tensors = {0};
    ByteSum sum = {0};
    SCOPED_TEXT(path);
    if (sequence->count == 0) return STATUS_OK;
    byte_sum_add(&sum, sequence->ids, sequence->count * sizeof *sequence->ids);
    text_format(&path, "%s/%016" PRIx64 "-%016" PRIx64 ".safetensors", cache->folder, cache->key,
                byte_sum_end(&sum));
    Status status = is_there(text_get(&path)) ? STATUS_OK : fill(sequence, &tensors);
    if (tensors.count > 0 && status == STATUS_OK)
        status = safetensors_write(text_get(&path), &tensors);
    named_tensors_free(&tensors);
    Cover cover = {sequence, text_get(&path)};
    if (status == STATUS_OK) {
        each_path(cache, remove_covered, &cover);
        kept_file_touch(text_get(&path));
        kept_files_trim(cache->folder, cache->bytes_max);
    }
    return status;
}
