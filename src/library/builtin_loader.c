// Batches of data: of tensors, or of files that a thread reads ahead.
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/prefetch.h"
#include "device/foretell.h"
#include "eval/code.h"
#include "eval/invoke.h"
#include "tensor/compose.h"
#include "tensor/random.h"
#include "value/convert.h"
#include "value/heap.h"
#include "value/print.h"

// --- sources on disk

static void release_source(void *payload) {
    DataSource *source = payload;
    source->free(source);
}

static Status source_field(Handle *handle, const char *name, Value *out) {
    const DataSource *source = handle->payload;
    if (strcmp(name, "classes") != 0)
        return fail(STATUS_NAME, "a source of data has `classes`, but no field `%s`", name);
    *out = value_list(source->class_count);
    for (size_t i = 0; i < source->class_count; i++)
        list_push(out->as.list, value_cstring(source->classes[i]));
    return STATUS_OK;
}

static Status source_length(Handle *handle, int64_t *out) {
    *out = ((const DataSource *)handle->payload)->count;
    return STATUS_OK;
}

static const HandleType source_type = {.name = "data source",
                                       .release = release_source,
                                       .get_field = source_field,
                                       .length = source_length};

static Value give_source(Status status, DataSource *source) {
    return status == STATUS_OK ? value_handle(&source_type, source) : value_fail();
}

Value builtin_csv_rows(BuiltinCall *call) {
    const String *path, *separator;
    DataSource *source = NULL;
    Value target = call->arguments[1];
    TRY_VALUE(value_to_string(call->arguments[0], "path", &path));
    TRY_VALUE(value_to_string(call->arguments[2], "separator", &separator));
    if (separator->length != 1)
        return value_failed(fail(STATUS_VALUE,
                                 "csv_rows: the separator must be one character, but it is %s",
                                 value_text(call->arguments[2]).text));
    char column[256] = "";
    bool given = target.kind != VALUE_ABSENT && target.kind != VALUE_NONE;
    if (given && target.kind != VALUE_STRING && target.kind != VALUE_INT) {
        (void)fail_kind("csv_rows: target", "a column's name or number", target);
        return value_fail();
    }
    if (target.kind == VALUE_STRING)
        snprintf(column, sizeof column, "%s", target.as.string->bytes);
    else if (given)
        snprintf(column, sizeof column, "%lld", (long long)target.as.integer);
    Status status = data_open_csv(path->bytes, given ? column : NULL, separator->bytes[0], &source);
    return give_source(status, source);
}

Value builtin_image_folder(BuiltinCall *call) {
    const String *path;
    ImageWish wish = {0};
    DataSource *source = NULL;
    TRY_VALUE(value_to_string(call->arguments[0], "path", &path));
    TRY_VALUE(value_to_bool(call->arguments[2], "gray", &wish.gray));
    if (call->arguments[1].kind != VALUE_ABSENT && call->arguments[1].kind != VALUE_NONE) {
        int64_t *sizes;
        size_t count;
        TRY_VALUE(value_to_ints(call->arguments[1], "image_folder: size", &sizes, &count));
        bool sound =
            count == 2 && sizes[0] > 0 && sizes[1] > 0 && sizes[0] < 1 << 16 && sizes[1] < 1 << 16;
        if (sound) wish = (ImageWish){sizes[0], sizes[1], wish.gray};
        free(sizes);
        if (!sound)
            return value_failed(fail(STATUS_VALUE,
                                     "image_folder: size must be [height, width], but it is %s",
                                     value_text(call->arguments[1]).text));
    }
    Status status = data_open_images(path->bytes, &wish, &source);
    return give_source(status, source);
}

Value builtin_text_windows(BuiltinCall *call) {
    const String *path;
    int64_t length;
    DataSource *source = NULL;
    TRY_VALUE(value_to_string(call->arguments[0], "path", &path));
    TRY_VALUE(value_to_int(call->arguments[1], "length", &length));
    Status status = data_open_text(path->bytes, length, &source);
    return give_source(status, source);
}

Value builtin_text_lines(BuiltinCall *call) {
    const String *path;
    DataSource *source = NULL;
    TRY_VALUE(value_to_string(call->arguments[0], "path", &path));
    Status status = data_open_lines(path->bytes, &source);
    return give_source(status, source);
}

// --- the loader

typedef struct Loader {
    Value source, map;
    int64_t count; // rows of the source
    int64_t *rows; // those that are taken, in order; NULL: all
    int64_t row_count, batch;
    bool shuffle, seeded, drop_last;
    uint64_t seed, passes; // passes: begun
    int ahead;
} Loader;

// A walk through the rows of a loader.
typedef struct Pass {
    Value loader; // its handle
    int64_t *order;
    bool unknown; // only a run has the order
    int64_t count, next;
    Prefetch *prefetch; // of files; NULL: tensors
} Pass;

static void release_loader(void *payload) {
    Loader *loader = payload;
    value_release(loader->source);
    value_release(loader->map);
    free(loader->rows);
    heap_free(loader);
}

static int64_t batch_count(const Loader *loader) {
    int64_t rest = loader->drop_last ? 0 : loader->batch - 1;
    return (loader->row_count + rest) / loader->batch;
}

static Status loader_length(Handle *handle, int64_t *out) {
    *out = batch_count(handle->payload);
    return STATUS_OK;
}

static uint64_t mixed(uint64_t x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// The next of the stream that shuffles: the program's own moves on, so that a run that is resumed
// goes on with the same orders.
static uint64_t next_key(Loader *loader, bool *unknown) {
    if (loader->seeded) return mixed(loader->seed + loader->passes * 0x9e3779b97f4a7c15u);
    RandomStream stream = random_mark();
    uint64_t key = mixed(stream.key ^ mixed(stream.counter + 0x9e3779b97f4a7c15u));
    stream.counter += 4; // every draw begins at a multiple of four
    random_return(stream);
    *unknown = random_is_unknown(stream);
    return key;
}

static int64_t *draw_order(Loader *loader, bool *unknown) {
    int64_t count = loader->row_count;
    int64_t *order = memory_allocate(((size_t)count + 1) * sizeof *order);
    for (int64_t i = 0; i < count; i++) order[i] = loader->rows ? loader->rows[i] : i;
    if (!loader->shuffle) return order;
    uint64_t key = next_key(loader, unknown);
    for (int64_t i = count - 1; i > 0; i--) {
        uint64_t drawn = mixed(key += 0x9e3779b97f4a7c15u);
        int64_t other = (int64_t)((unsigned __int128)drawn * (uint64_t)(i + 1) >> 64);
        int64_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    return order;
}

static bool is_on_disk(Value source) {
    return source.kind == VALUE_HANDLE && source.as.handle->type == &source_type;
}

// --- batches

static Status upload(const void *bytes, const DataField *field, int64_t count, Tensor **out) {
    Shape shape = {.rank = field->shape.rank + 1, .dims = {count}};
    for (int i = 0; i < field->shape.rank; i++) shape.dims[i + 1] = field->shape.dims[i];
    Device *device;
    TRY(device_default(&device));
    TRY(tensor_new(device, field->dtype, &shape, out));
    size_t size = (size_t)count * data_field_bytes(field);
    Status status = size ? buffer_upload((*out)->view.buffer, 0, bytes, size) : STATUS_OK;
    if (status != STATUS_OK) tensor_release_of(out);
    return status;
}

static Value texts_of(const DataText *texts, int64_t count, bool unknown) {
    Value list = value_list((size_t)count);
    for (int64_t i = 0; i < count; i++) {
        Value text = value_string(texts[i].bytes, texts[i].length);
        list_push(list.as.list, unknown ? string_as_measured(text.as.string) : text);
    }
    return list;
}

static Value batch_of_files(const Loader *loader, Pass *pass) {
    const DataSource *source = loader->source.as.handle->payload;
    DataBatch batch;
    TRY_VALUE(prefetch_next(pass->prefetch, &batch));
    if (batch.count == 0) return value_absent();
    Value parts[DATA_FIELDS_MAX];
    for (int i = 0; i < source->n_fields; i++) {
        Tensor *tensor;
        if (source->fields[i].is_text) {
            parts[i] = texts_of(batch.fields[i], batch.count, pass->unknown);
            continue;
        }
        if (upload(batch.fields[i], &source->fields[i], batch.count, &tensor) != STATUS_OK) {
            while (i > 0) value_release(parts[--i]);
            return value_fail();
        }
        if (pass->unknown) foretell_forget(tensor->view.buffer);
        parts[i] = value_tensor(tensor);
    }
    if (source->n_fields == 1) return parts[0];
    Value tuple = value_tuple((size_t)source->n_fields);
    for (int i = 0; i < source->n_fields; i++) list_push(tuple.as.list, parts[i]);
    return tuple;
}

// Rows of a batch, which only a run may have.
typedef struct Rows {
    const int64_t *items;
    int64_t count;
    bool unknown;
} Rows;

static Status take_rows(Tensor *x, const Rows *rows, Tensor **out) {
    ASSERT(rows->count > 0 && tensor_rank(x) > 0);
    SCOPED_TENSOR(index);
    Shape shape = {.rank = 1, .dims = {rows->count}};
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(dim), .dim = 0};
    TRY(tensor_from_integers(rows->items, &shape, DTYPE_INT64, &index));
    if (rows->unknown) tensor_forget(index);
    Tensor *inputs[2] = {x, index};
    return op_with(OP_index_select, inputs, 2, &attributes, out);
}

static Status count_rows(Value source, int depth, int64_t *count);

static Value rows_of(Value source, const Rows *rows) {
    if (source.kind == VALUE_TENSOR) {
        Tensor *taken;
        TRY_VALUE(take_rows(source.as.tensor, rows, &taken));
        return value_tensor(taken);
    }
    bool dict = source.kind == VALUE_DICT;
    size_t parts = dict ? dict_count(source.as.dict) : source.as.list->count;
    Value batch = dict ? value_dict() : value_tuple(parts);
    for (size_t i = 0; i < parts; i++) {
        Value key = value_none(), part = dict ? value_none() : source.as.list->items[i];
        if (dict) dict_entry(source.as.dict, i, &key, &part);
        Value taken = rows_of(part, rows);
        if (failed(taken)) {
            value_release(batch);
            return taken;
        }
        if (dict)
            dict_set(batch.as.dict, value_retain(key), taken);
        else
            list_push(batch.as.list, taken);
    }
    return batch;
}

static Value mapped(const Loader *loader, Value batch) {
    if (failed(batch) || batch.kind == VALUE_ABSENT || loader->map.kind == VALUE_NONE) return batch;
    bool several = batch.kind == VALUE_TUPLE;
    const Value *arguments = several ? batch.as.list->items : &batch;
    size_t count = several ? batch.as.list->count : 1;
    Value result = interp_call(interp_running(), loader->map, arguments, count);
    value_release(batch);
    return result;
}

static Value next_batch(Handle *handle) {
    Pass *pass = handle->payload;
    const Loader *loader = pass->loader.as.handle->payload;
    if (pass->prefetch) return mapped(loader, batch_of_files(loader, pass));
    int64_t left = pass->count - pass->next, size = left < loader->batch ? left : loader->batch;
    if (size == 0) return value_absent();
    Rows rows = {pass->order + pass->next, size, pass->unknown};
    pass->next += size;
    int64_t count; // a program may have put something else into its dictionary
    TRY_VALUE(count_rows(loader->source, 0, &count));
    return mapped(loader, rows_of(loader->source, &rows));
}

static void release_pass(void *payload) {
    Pass *pass = payload;
    if (pass->prefetch) prefetch_stop(pass->prefetch);
    free(pass->order);
    value_release(pass->loader);
    heap_free(pass);
}

static const HandleType pass_type = {
    .name = "batches", .release = release_pass, .next = next_batch};

static Value begin_pass(Handle *handle) {
    Loader *loader = handle->payload;
    Pass *pass = heap_allocate_rooted(sizeof *pass);
    pass->loader = value_retain((Value){.kind = VALUE_HANDLE, .as.handle = handle});
    pass->unknown = false;
    pass->order = draw_order(loader, &pass->unknown);
    pass->count = loader->drop_last ? batch_count(loader) * loader->batch : loader->row_count;
    pass->next = 0;
    pass->prefetch = NULL;
    loader->passes++;
    if (is_on_disk(loader->source)) {
        BatchPlan plan = {loader->source.as.handle->payload, pass->order, pass->count,
                          loader->batch, loader->ahead};
        pass->order = NULL; // the plan's
        pass->prefetch = prefetch_start(&plan);
    }
    return value_handle(&pass_type, pass);
}

static const HandleType loader_type = {
    .name = "loader", .release = release_loader, .length = loader_length, .begin = begin_pass};

// --- arguments

static Status same_rows(Value part, int depth, int64_t *count) {
    int64_t own = -1;
    TRY(count_rows(part, depth, &own));
    if (*count >= 0 && own != *count)
        return fail(STATUS_SHAPE, "loader: one part has %lld rows, another %lld", (long long)*count,
                    (long long)own);
    *count = own;
    return STATUS_OK;
}

static Status count_rows(Value source, int depth, int64_t *count) {
    enum { NESTING_MAX = 64 };
    bool dict = source.kind == VALUE_DICT;
    if (depth == NESTING_MAX)
        return fail(STATUS_DEPTH, "this is nested too deeply: it may contain itself");
    *count = -1;
    if (is_on_disk(source)) return source_length(source.as.handle, count);
    if (source.kind == VALUE_TENSOR && tensor_rank(source.as.tensor) > 0) {
        *count = source.as.tensor->view.dims[0];
        return STATUS_OK;
    }
    size_t parts = dict ? dict_count(source.as.dict)
                        : (source.kind == VALUE_TUPLE ? source.as.list->count : 0);
    for (size_t i = 0; i < parts; i++) {
        Value key, part = dict ? value_none() : source.as.list->items[i];
        if (dict) dict_entry(source.as.dict, i, &key, &part);
        if (is_on_disk(part)) return fail_kind("a part of the loader's source", "a tensor", part);
        TRY(same_rows(part, depth + 1, count));
    }
    if (*count >= 0) return STATUS_OK;
    return fail_kind("loader: source",
                     "a tensor with rows, a tuple or dictionary of such, or what csv_rows, "
                     "image_folder, text_lines or text_windows gives",
                     source);
}

static Status read_rows(Loader *loader, Value rows) {
    size_t count;
    loader->row_count = loader->count;
    if (rows.kind == VALUE_ABSENT || rows.kind == VALUE_NONE) return STATUS_OK;
    TRY(value_to_ints(rows, "loader: rows", &loader->rows, &count));
    loader->row_count = (int64_t)count;
    for (size_t i = 0; i < count; i++)
        if (loader->rows[i] < 0 || loader->rows[i] >= loader->count)
            return fail(STATUS_INDEX, "loader: row %lld is not one of %lld",
                        (long long)loader->rows[i], (long long)loader->count);
    return STATUS_OK;
}

static Status read_options(BuiltinCall *call, Loader *loader) {
    enum { BATCH = 1, SHUFFLE, SEED, DROP_LAST, MAP_, PREFETCH, ROWS, AHEAD_MAX = 1000 };
    int64_t ahead, seed = 0;
    TRY(count_rows(call->arguments[0], 0, &loader->count));
    TRY(value_to_int(call->arguments[BATCH], "batch", &loader->batch));
    TRY(value_to_bool(call->arguments[SHUFFLE], "shuffle", &loader->shuffle));
    TRY(value_to_bool(call->arguments[DROP_LAST], "drop_last", &loader->drop_last));
    TRY(value_to_int(call->arguments[PREFETCH], "prefetch", &ahead));
    loader->seeded = call->arguments[SEED].kind == VALUE_INT;
    if (loader->seeded) TRY(value_to_int(call->arguments[SEED], "seed", &seed));
    loader->seed = (uint64_t)seed;
    if (loader->batch < 1)
        return fail(STATUS_VALUE, "loader: batch is %lld; it must be at least 1",
                    (long long)loader->batch);
    if (ahead < 0 || ahead > AHEAD_MAX)
        return fail(STATUS_VALUE, "loader: prefetch is %lld; it must be from 0 to %d",
                    (long long)ahead, AHEAD_MAX);
    loader->ahead = (int)ahead;
    TRY(read_rows(loader, call->arguments[ROWS]));
    // A batch needs no more room than there are rows, of which one is enough.
    if (loader->batch > loader->row_count && !loader->drop_last)
        loader->batch = loader->row_count > 0 ? loader->row_count : 1;
    return STATUS_OK;
}

Value builtin_loader(BuiltinCall *call) {
    enum { MAP = 5 };
    Loader *loader = heap_allocate_rooted(sizeof *loader);
    memset(loader, 0, sizeof *loader);
    Value map = call->arguments[MAP];
    loader->source = value_retain(call->arguments[0]);
    loader->map = map.kind == VALUE_ABSENT ? value_none() : value_retain(map);
    if (read_options(call, loader) == STATUS_OK) return value_handle(&loader_type, loader);
    release_loader(loader);
    return value_fail();
}
