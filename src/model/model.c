// Models: the tensor table of a file with tensors made on first access.
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

// FNV-1a: the words of names are short, and every step of m.blk[i].ffn_up.weight looks one up.
static inline unsigned hash_name(const char *bytes, size_t length) {
    unsigned hash = 0x811C9DC5u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x01000193u;
    return hash;
}
#define HASH_FUNCTION(key, length, hash) ((hash) = hash_name(key, length))
#include <uthash.h>

#include "base/memory.h"
#include "base/number.h"
#include "catalog/catalog.h"
#include "device/settings.h"
#include "model/folder.h"
#include "tensor/compose.h"
#include "tensor/op.h"
#include "tensor/view.h"

struct ModelEntry {
    Model *model;
    char *name;
    const char *word;      // the end of the name, after its last dot
    StoredTensor *stored;  // NULL for a prefix only
    Tensor *loaded;        // once asked for: one reference
    ModelEntry *children;  // names that are one word longer, by that word
    ModelEntry **numbered; // those whose word is a number, by that number; NULL between them
    size_t numbered_count;
    UT_hash_handle hh, hh_sibling;
};

struct Model {
    int refs;
    Reader *reader;
    char *path;
    ModelOptions options;
    ModelEntry *names;
    ModelEntry *tops;     // names of one word
    Tokenizer *tokenizer; // NULL until it is asked for
    bool copies_floats; // into memory of the device's own, whose pages may be larger than a file's
};

static const char *last_dot(const char *name, size_t length) {
    while (length > 0 && name[length - 1] != '.') length--;
    return length > 0 ? name + length - 1 : NULL;
}

static ModelEntry *name_entry(Model *model, const char *name, size_t length);

static ModelEntry **siblings_of(Model *model, const char *name, size_t length) {
    const char *dot = last_dot(name, length);
    return dot ? &name_entry(model, name, (size_t)(dot - name))->children : &model->tops;
}

static ModelEntry *name_entry(Model *model, const char *name, size_t length) {
    ModelEntry *entry;
    HASH_FIND(hh, model->names, name, length, entry);
    if (entry) return entry;
    entry = memory_allocate_zeroed(1, sizeof *entry);
    entry->model = model;
    entry->name = memory_copy_string(name, length);
    const char *dot = last_dot(entry->name, length);
    entry->word = dot ? dot + 1 : entry->name;
    HASH_ADD_KEYPTR(hh, model->names, entry->name, length, entry);
    ModelEntry **siblings = siblings_of(model, name, length);
    HASH_ADD_KEYPTR(hh_sibling, *siblings, entry->word, strlen(entry->word), entry);
    return entry;
}

enum { NUMBERED_MAX = 1 << 16 };

// "17" as 17; false for anything that is not how a small number is written.
static bool word_number(const char *word, size_t *out) {
    char *end;
    unsigned long number = strtoul(word, &end, 10);
    *out = number;
    bool plain = word[0] >= '0' && word[0] <= '9' && (word[0] != '0' || word[1] == '\0');
    return plain && *end == '\0' && number < NUMBERED_MAX;
}

static void index_numbers(ModelEntry *parent) {
    ASSERT(parent->numbered_count == 0);
    size_t number;
    for (ModelEntry *child = parent->children; child; child = child->hh_sibling.next)
        if (word_number(child->word, &number) && number >= parent->numbered_count)
            parent->numbered_count = number + 1;
    parent->numbered = memory_allocate_zeroed(parent->numbered_count, sizeof *parent->numbered);
    for (ModelEntry *child = parent->children; child; child = child->hh_sibling.next)
        if (word_number(child->word, &number)) parent->numbered[number] = child;
}

static void index_names(Model *model) {
    for (size_t i = 0; i < model->reader->tensors.count; i++) {
        StoredTensor *tensor = &model->reader->tensors.items[i];
        name_entry(model, tensor->name, strlen(tensor->name))->stored = tensor;
    }
    for (ModelEntry *entry = model->names; entry; entry = entry->hh.next) index_numbers(entry);
}

// A model that the device could never hold is refused before anything is loaded.
static Status check_size(const Reader *reader, const char *path) {
    Device *device;
    TRY(device_default(&device));
    uint64_t bytes = reader_bytes(reader), room = device_room_beyond(device);
    if (device->memory_limit == 0 || bytes <= device->memory_limit) return STATUS_OK;
    if (bytes - device->memory_limit <= room) return STATUS_OK;
    (void)fail(STATUS_MEMORY, "%s needs %.2f MB for its tensors, but %s has %.2f MB", path,
               (double)bytes / 0x1p20, device->name, (double)device->memory_limit / 0x1p20);
    return room == 0 ? STATUS_MEMORY
                     : fail_help("there is room for %.2f MB of the rest where it would be moved to",
                                 (double)room / 0x1p20);
}

// float16 is half of what attention reads of a long text, and loses less than weights of 16 bits
// and fewer have lost. Kernels of other devices read what they compute in.
static DType choose_cache(const Model *model, const Device *device, CacheSetting setting) {
    if (setting != CACHE_BY_MODEL) return setting == CACHE_FLOAT16 ? DTYPE_FLOAT16 : DTYPE_FLOAT32;
    const ModelEntry *table;
    HASH_FIND_STR(model->names, "token_embd.weight", table);
    if (strcmp(device->backend->name, "cpu") != 0 || !table || !table->stored) return DTYPE_FLOAT32;
    DType dtype = model->options.convert ? model->options.dtype : table->stored->dtype;
    return dtype == DTYPE_FLOAT32 || dtype == DTYPE_FLOAT64 ? DTYPE_FLOAT32 : DTYPE_FLOAT16;
}

// TL_REPACK=load: the matrices that products will read get their layout now; those of floats have
// it and are copied.
static Status load_matrices(Model *model, const DeviceBackend *backend) {
    model->copies_floats = true;
    for (size_t i = 0; i < model->reader->tensors.count; i++) {
        const StoredTensor *stored = &model->reader->tensors.items[i];
        bool matrix = dtype_is_quant(stored->dtype) ||
                      (dtype_is_float(stored->dtype) && stored->shape.rank > 1);
        if (!stored->usable || stored->change.unused || !matrix) continue;
        SCOPED_TENSOR(tensor);
        TRY(model_tensor(model, stored->name, &tensor));
        backend->weight_loaded(&tensor->view);
    }
    return STATUS_OK;
}

// TL_FAST, TL_CACHE and TL_REPACK.
static Status apply_settings(Model *model) {
    DeviceSettings settings;
    TRY(device_settings_read(&settings));
    model->options.fast |= settings.fast;
    Device *device;
    TRY(device_default(&device));
    if (!model->options.has_cache)
        model->options.cache = choose_cache(model, device, settings.cache);
    bool loads = settings.repack == REPACK_LOAD && !model->options.convert;
    return loads && device->backend->weight_loaded ? load_matrices(model, device->backend)
                                                   : STATUS_OK;
}

Status model_open(const char *path, const ModelOptions *options, Model **out) {
    Reader *reader;
    TRY(reader_open(path, &reader));
    Status status = check_size(reader, path);
    if (status != STATUS_OK) {
        reader_close(reader);
        return status;
    }
    Model *model = memory_allocate_zeroed(1, sizeof *model);
    *model = (Model){.refs = 1, .reader = reader, .path = memory_copy_string(path, strlen(path))};
    if (options) model->options = *options;
    index_names(model);
    status = apply_settings(model);
    if (status == STATUS_OK)
        *out = model;
    else
        model_release(model);
    return status;
}

Model *model_retain(Model *model) {
    model->refs++;
    return model;
}

static void free_names(Model *model) {
    ModelEntry *entry, *next;
    HASH_CLEAR(hh_sibling, model->tops);
    // A table is reached through its first entry: all tables go before any entry.
    HASH_ITER(hh, model->names, entry, next) HASH_CLEAR(hh_sibling, entry->children);
    HASH_ITER(hh, model->names, entry, next) {
        HASH_DEL(model->names, entry);
        tensor_release(entry->loaded);
        free(entry->numbered);
        free(entry->name);
        free(entry);
    }
}

void model_release(Model *model) {
    ASSERT(model->refs > 0);
    if (--model->refs > 0) return;
    free_names(model);
    if (model->tokenizer) tokenizer_release(model->tokenizer);
    reader_close(model->reader);
    free(model->path);
    free(model);
}

bool model_is_fast(const Model *model) {
    return model->options.fast;
}

DType model_cache_dtype(const Model *model) {
    return model->options.cache;
}

const Reader *model_reader(const Model *model) {
    return model->reader;
}

const char *model_path(const Model *model) {
    return model->path;
}

bool model_has_tokenizer(const Model *model) {
    if (folder_is(model->path)) return folder_has_tokenizer(model->path);
    return metadata_find(&model->reader->metadata, "tokenizer.ggml.tokens") != NULL;
}

Status model_tokenizer(Model *model, Tokenizer **out) {
    if (!model->tokenizer)
        TRY(folder_is(model->path) ? folder_tokenizer(model->path, &model->tokenizer)
                                   : tokenizer_from_metadata(&model->reader->metadata, model->path,
                                                             &model->tokenizer));
    *out = model->tokenizer;
    return STATUS_OK;
}

static ModelEntry *find_name(const Model *model, const char *name) {
    ModelEntry *entry;
    HASH_FIND_STR(model->names, name, entry);
    return entry;
}

bool model_has_tensor(const Model *model, const char *name) {
    const ModelEntry *entry = find_name(model, name);
    return entry && entry->stored;
}

static Status unknown_tensor(const Model *model, const char *name) {
    size_t count = model->reader->tensors.count;
    SCOPED_MEMORY const char **names = memory_allocate(count * sizeof *names);
    for (size_t i = 0; i < count; i++) names[i] = model->reader->tensors.items[i].name;
    const char *nearest = catalog_nearest(name, names, count);
    Status status = fail(STATUS_NAME, "%s has no tensor called \"%s\"", model->path, name);
    if (nearest)
        fail_help("there is \"%s\"", nearest);
    else
        fail_help("m.tensors() lists the %zu tensors of the model", count);
    return status;
}

static bool wants_conversion(const Model *model, DType dtype) {
    return model->options.convert && dtype != model->options.dtype &&
           (dtype_is_float(dtype) || dtype_is_quant(dtype));
}

// The rows of a head's halves become neighbours.
static Status join_halves(Tensor *x, int64_t heads, Tensor **out) {
    Shape shape = tensor_shape(x);
    if (shape.rank < 1 || shape.rank > 2 || heads < 1 || shape.dims[0] % (2 * heads) != 0)
        return fail(STATUS_FORMAT, "%s cannot be the rows of %lld heads", tensor_type_name(x).text,
                    (long long)heads);
    int64_t half = shape.dims[0] / heads / 2, columns = shape.rank == 2 ? shape.dims[1] : 1;
    SCOPED_TENSOR(apart);
    SCOPED_TENSOR(joined);
    TRY(tensor_reshape(x, &(Shape){{heads, 2, half, columns}, 4}, &apart));
    TRY(tensor_permute(apart, &(Shape){{0, 2, 1, 3}, 4}, &joined));
    return tensor_reshape(joined, &shape, out);
}

// [groups, queries + key + value, rows of a head]: all queries come first, then all keys, all
// values.
static Status part_groups(Tensor *x, int64_t groups, int64_t heads, Tensor **out) {
    Shape shape = tensor_shape(x);
    ASSERT(groups > 0);
    int64_t each = heads / groups + 2;
    if (shape.rank < 1 || shape.rank > 2 || heads % groups != 0 ||
        shape.dims[0] % (groups * each) != 0)
        return fail(STATUS_FORMAT, "%s cannot be the rows of %lld groups of heads",
                    tensor_type_name(x).text, (long long)groups);
    int64_t columns = shape.rank == 2 ? shape.dims[1] : 1, size = shape.dims[0] / groups / each;
    Tensor *apart = NULL, *parts[3] = {NULL}, *flat[3] = {NULL};
    int64_t ends[4] = {0, each - 2, each - 1, each};
    Status status = tensor_reshape(x, &(Shape){{groups, each, size, columns}, 4}, &apart);
    for (int i = 0; i < 3 && status == STATUS_OK; i++) {
        Shape rows = {.rank = shape.rank, .dims = {-1, columns}};
        status = tensor_slice(apart, 1, ends[i], ends[i + 1], &parts[i]);
        if (status == STATUS_OK) status = tensor_reshape(parts[i], &rows, &flat[i]);
    }
    OpInput many[3] = {op_tensor(flat[0]), op_tensor(flat[1]), op_tensor(flat[2])};
    OpAttributes first = {.given = ATTRIBUTE_BIT(dim), .dim = 0};
    OpCall join = {.op = &op_rows[OP_concat], .attributes = &first, .many = many, .n_many = 3};
    if (status == STATUS_OK) status = op_apply(&join, out);
    tensor_release(apart);
    for (int i = 0; i < 3; i++) {
        tensor_release(parts[i]);
        tensor_release(flat[i]);
    }
    return status;
}

static Status add_one(Tensor *x, Tensor **out) {
    SCOPED_TENSOR(wide);
    TRY(tensor_cast(x, DTYPE_FLOAT32, &wide));
    return op_binary(OP_add, op_donated(wide), op_int(1), out);
}

static Status part_of(const TensorChange *change, Tensor *x, Tensor **out) {
    int dim = tensor_rank(x) - change->part_dim, which = change->part - 1;
    int64_t size = x->view.dims[dim] / 2;
    SliceBounds turns = {.has_start = true, .has_step = true, .start = which, .step = 2};
    SCOPED_TENSOR(part);
    TRY(change->alternate ? tensor_slice_by(x, dim, &turns, &part)
                          : tensor_slice(x, dim, which * size, (which + 1) * size, &part));
    if (change->transpose) return tensor_transpose(part, -2, -1, out);
    *out = tensor_retain(part);
    return STATUS_OK;
}

static Status change_tensor(const TensorChange *change, Tensor *stored, Tensor **out) {
    ASSERT(stored != NULL);
    if (change->groups) return part_groups(stored, change->groups, change->heads, out);
    if (change->heads) return join_halves(stored, change->heads, out);
    if (change->plus_one) return add_one(stored, out);
    if (change->part) return part_of(change, stored, out);
    if (change->transpose) return tensor_transpose(stored, -2, -1, out);
    *out = tensor_retain(stored);
    return STATUS_OK;
}

static Status copies(const Model *model, const StoredTensor *stored, bool *out) {
    Device *device;
    *out = false;
    if (!model->copies_floats || !dtype_is_float(stored->dtype)) return STATUS_OK;
    TRY(device_default(&device));
    *out = device_has_room_for_copy(device, stored->bytes);
    return STATUS_OK;
}

// As the model has it: changed, and of the type that was asked for.
static Status make_loaded(const Model *model, const StoredTensor *stored, Tensor **out) {
    SCOPED_TENSOR(imported);
    SCOPED_TENSOR(changed);
    bool copy;
    if (!stored->usable) return reader_fail_unusable(stored, model->path);
    TRY(copies(model, stored, &copy));
    TRY(reader_tensor(stored, copy, &imported));
    TRY(change_tensor(&stored->change, imported, &changed));
    if (wants_conversion(model, tensor_dtype(changed)))
        return tensor_cast(changed, model->options.dtype, out);
    *out = tensor_retain(changed);
    return STATUS_OK;
}

static Status load_tensor(const Model *model, ModelEntry *entry, Tensor **out) {
    ASSERT(entry->stored != NULL);
    if (!entry->loaded) {
        TRY(make_loaded(model, entry->stored, &entry->loaded));
        tensor_release(entry->stored->tensor); // from now on it is the entry's
        entry->stored->tensor = NULL;
    }
    *out = tensor_retain(entry->loaded);
    return STATUS_OK;
}

Status model_tensor(Model *model, const char *name, Tensor **out) {
    ModelEntry *entry = find_name(model, name);
    ASSERT(model->refs > 0);
    if (!entry || !entry->stored) return unknown_tensor(model, name);
    return load_tensor(model, entry, out);
}

Status model_add_tensors(Model *model, NamedTensors *out) {
    for (size_t i = 0; i < model->reader->tensors.count; i++) {
        const StoredTensor *stored = &model->reader->tensors.items[i];
        Tensor *tensor = NULL;
        if (stored->change.unused) continue;
        TRY(model_tensor(model, stored->name, &tensor));
        named_tensors_add(out, stored->name, tensor);
    }
    return STATUS_OK;
}

Model *model_entry_model(const ModelEntry *entry) {
    return entry->model;
}

const char *model_entry_name(const ModelEntry *entry) {
    return entry->name;
}

static Status unknown_step(const Model *model, const ModelEntry *from, const char *word) {
    if (!from) return unknown_tensor(model, word);
    SCOPED_TEXT(name);
    text_format(&name, "%s.%s", from->name, word);
    return unknown_tensor(model, text_get(&name));
}

static Status enter(Model *model, ModelEntry *next, const ModelEntry **entry, Tensor **out) {
    *out = NULL;
    ASSERT(next != NULL);
    *entry = next;
    return next->stored ? load_tensor(model, next, out) : STATUS_OK;
}

Status model_step(Model *model, const ModelEntry *from, const char *word, const ModelEntry **entry,
                  Tensor **out) {
    ModelEntry *next;
    HASH_FIND(hh_sibling, from ? from->children : model->tops, word, strlen(word), next);
    if (!next) return unknown_step(model, from, word);
    return enter(model, next, entry, out);
}

Status model_step_number(Model *model, const ModelEntry *from, int64_t number,
                         const ModelEntry **entry, Tensor **out) {
    if (number >= 0 && (uint64_t)number < from->numbered_count && from->numbered[number])
        return enter(model, from->numbered[number], entry, out);
    char word[NUMBER_TEXT_MAX];
    number_format_integer(number, word);
    return model_step(model, from, word, entry, out);
}
