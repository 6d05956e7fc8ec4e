// Saving and loading of tensors, and of what training makes: dictionaries, structs and lists of
// tensors, and the state of optimizers in them. A tensor's name is the way to it: "layers.0.w".
#include <stdio.h>
#include <stdlib.h>

#include "library/export.h"
#include "model/tensor_file.h"
#include "tensor/gradient/tape.h"
#include "tensor/op.h"
#include "tensor/optimizer.h"
#include "value/builtin.h"
#include "value/convert.h"
#include "value/format.h"
#include "value/handles.h"
#include "value/object.h"

enum { DEPTH_MAX = 64 };

typedef struct Archive {
    NamedTensors tensors;
    const char *path;
} Archive;
// The value may be replaced (its reference is the visitor's to give and take).
typedef Status (*Visit)(Archive *archive, const char *name, Value *value);

typedef struct Walk {
    Archive *archive;
    Visit visit;
    Text name;
    int depth;
} Walk;

static Status walk(Walk *w, Value *value);

static Status walk_part(Walk *w, const char *word, Value *part) {
    size_t length = w->name.length;
    if (length > 0) text_append_char(&w->name, '.');
    text_append_string(&w->name, word);
    Status status = walk(w, part);
    w->name.length = length;
    w->name.bytes[length] = '\0';
    return status;
}

static Status walk_list(Walk *w, const List *list) {
    for (size_t i = 0; i < list->count; i++) {
        char word[24];
        snprintf(word, sizeof word, "%zu", i);
        TRY(walk_part(w, word, &list->items[i]));
    }
    return STATUS_OK;
}

static Status walk_dict(Walk *w, Dict *dict) {
    for (size_t i = 0; i < dict_count(dict); i++) {
        Value key, item;
        dict_entry(dict, i, &key, &item);
        if (key.kind != VALUE_STRING)
            return fail(STATUS_TYPE, "the names of tensors are strings, not %s",
                        value_text(key).text);
        Value part = value_retain(item);
        Status status = walk_part(w, key.as.string->bytes, &part);
        if (status == STATUS_OK && part.as.pointer != item.as.pointer)
            dict_set(dict, key, part);
        else
            value_release(part);
        TRY(status);
    }
    return STATUS_OK;
}

static Status walk(Walk *w, Value *value) {
    if (w->depth == DEPTH_MAX)
        return fail(STATUS_DEPTH, "this is nested too deeply: it may contain itself");
    bool optimizer = value->kind == VALUE_HANDLE && value->as.handle->type == &handle_optimizer;
    if (value->kind == VALUE_TENSOR || optimizer)
        return w->visit(w->archive, text_get(&w->name), value);
    Status status = STATUS_OK;
    w->depth++;
    if (value->kind == VALUE_LIST || value->kind == VALUE_TUPLE)
        status = walk_list(w, value->as.list);
    else if (value->kind == VALUE_DICT)
        status = walk_dict(w, value->as.dict);
    for (size_t i = 0; value->kind == VALUE_STRUCT && status == STATUS_OK &&
                       i < value->as.instance->type->field_count;
         i++)
        status =
            walk_part(w, value->as.instance->type->field_names[i], &value->as.instance->fields[i]);
    w->depth--;
    return status;
}

static Status walk_all(Archive *archive, Visit visit, Value value) {
    if (value.kind != VALUE_DICT && value.kind != VALUE_STRUCT)
        return fail_kind("what is saved or loaded", "a dictionary or a struct", value);
    Walk w = {.archive = archive, .visit = visit};
    Status status = walk(&w, &value);
    text_free(&w.name);
    return status;
}

// --- saving

static const char *part_name(Text *text, const char *name, const char *part) {
    text_clear(text);
    text_format(text, "%s.%s", name, part);
    return text_get(text);
}

static Status add_optimizer(Archive *archive, const char *name, const Optimizer *optimizer) {
    Text text = {0};
    size_t count = optimizer_count(optimizer);
    int64_t *steps = memory_allocate((count + 1) * sizeof *steps);
    for (size_t i = 0; i < count; i++) {
        char word[32];
        steps[i] = optimizer_steps(optimizer, i);
        Tensor *state = optimizer_state(optimizer, i);
        snprintf(word, sizeof word, "state.%zu", i);
        if (state)
            named_tensors_add(&archive->tensors, part_name(&text, name, word),
                              tensor_retain(state));
    }
    double rate = optimizer_rate(optimizer);
    Shape one = {0}, many = {.rank = 1, .dims = {(int64_t)count}};
    Tensor *lr = NULL, *made = NULL;
    Status status = tensor_from_floats(&rate, &one, DTYPE_FLOAT64, &lr);
    if (status == STATUS_OK) named_tensors_add(&archive->tensors, part_name(&text, name, "lr"), lr);
    if (status == STATUS_OK) status = tensor_from_integers(steps, &many, DTYPE_INT64, &made);
    if (status == STATUS_OK)
        named_tensors_add(&archive->tensors, part_name(&text, name, "steps"), made);
    text_free(&text);
    free(steps);
    return status;
}

static Status add(Archive *archive, const char *name, Value *value) {
    if (value->kind == VALUE_HANDLE) return add_optimizer(archive, name, value->as.handle->payload);
    named_tensors_add(&archive->tensors, name, tensor_retain(value->as.tensor));
    return STATUS_OK;
}

// A format that holds tensors with names.
static Status named_format(const char *path, const TensorFormat **out) {
    TRY(tensor_format_find(path, out));
    if ((*out)->lone_name) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: a %s file holds one tensor, without a name", path,
                (*out)->ending);
}

// A dictionary or a struct, with the optimizers in it.
static Status save_all(Value value, const char *path) {
    const TensorFormat *format = NULL;
    TRY(named_format(path, &format));
    Archive archive = {.path = path};
    Status status = walk_all(&archive, add, value);
    if (status == STATUS_OK) status = format->write(path, &archive.tensors);
    named_tensors_free(&archive.tensors);
    return status;
}

static Status save_one(Value value, const char *path) {
    const TensorFormat *format = NULL;
    TRY(tensor_format_find(path, &format));
    NamedTensors tensors = {0};
    Tensor *tensor;
    TRY(value_to_tensor(value, "x", &tensor));
    named_tensors_add(&tensors, format->lone_name ? format->lone_name : "", tensor);
    Status status = format->write(path, &tensors);
    named_tensors_free(&tensors);
    return status;
}

Value builtin_save(BuiltinCall *call) {
    Value value = call->arguments[0];
    const char *path = call->arguments[1].as.string->bytes;
    bool named = value.kind == VALUE_DICT || value.kind == VALUE_STRUCT;
    TRY_VALUE(named ? save_all(value, path) : save_one(value, path));
    return value_none();
}

// The arguments of save_model after model and path.
enum { SAVE_META = 2, SAVE_TOKENIZER, SAVE_DTYPE, SAVE_END };

static Status write_described(const BuiltinCall *call, const Archive *archive) {
    const Value *arguments = call->arguments;
    bool loaded = arguments[0].kind == VALUE_HANDLE;
    GgufExport export = {.path = archive->path,
                         .tensors = &archive->tensors,
                         .origin = loaded ? model_file(arguments[0].as.handle->payload) : NULL,
                         .meta = arguments[SAVE_META],
                         .tokenizer = arguments[SAVE_TOKENIZER],
                         .dtype = arguments[SAVE_DTYPE]};
    return export_gguf(&export);
}

static Status check_described(const BuiltinCall *call, const char *path) {
    for (int i = SAVE_META; i < SAVE_END; i++)
        if (call->arguments[i].kind != VALUE_ABSENT)
            return fail(STATUS_VALUE,
                        "%s: only .gguf files are written with meta, tokenizer or dtype", path);
    return STATUS_OK;
}

Value builtin_save_model(BuiltinCall *call) {
    const char *path = call->arguments[1].as.string->bytes;
    Value model = call->arguments[0];
    const TensorFormat *format = NULL;
    Archive archive = {.path = path};
    Status status = named_format(path, &format);
    if (status == STATUS_OK && !format->describes) status = check_described(call, path);
    if (status == STATUS_OK && model.kind == VALUE_HANDLE && model.as.handle->type == &handle_model)
        status = model_add_tensors(model.as.handle->payload, &archive.tensors);
    else if (status == STATUS_OK)
        status = walk_all(&archive, add, model);
    if (status == STATUS_OK)
        status = format->describes ? write_described(call, &archive)
                                   : format->write(path, &archive.tensors);
    named_tensors_free(&archive.tensors);
    TRY_VALUE(status);
    return value_none();
}

// --- loading

static Status find(const Archive *archive, const char *name, Tensor **out) {
    *out = named_tensors_find(&archive->tensors, name);
    if (*out) return STATUS_OK;
    return fail(STATUS_NAME, "%s has no tensor `%s`", archive->path, name);
}

static Status take_optimizer(const Archive *archive, const char *name, Optimizer *optimizer) {
    Text text = {0};
    Tensor *lr, *steps;
    double rate;
    Status status = find(archive, part_name(&text, name, "lr"), &lr);
    if (status == STATUS_OK) status = find(archive, part_name(&text, name, "steps"), &steps);
    if (status == STATUS_OK && (tensor_count(lr) != 1 || tensor_rank(steps) != 1))
        status = fail(STATUS_FORMAT, "%s: `%s` is no optimizer's state", archive->path, name);
    if (status == STATUS_OK) status = tensor_read_floats(lr, &rate);
    if (status == STATUS_OK) status = optimizer_set_rate(optimizer, rate);
    int64_t *numbers = NULL, count = status == STATUS_OK ? tensor_count(steps) : 0;
    numbers = memory_allocate(((size_t)count + 1) * sizeof *numbers);
    if (status == STATUS_OK) status = tensor_read_integers(steps, numbers);
    for (int64_t i = 0; i < count && status == STATUS_OK; i++) {
        char word[32];
        snprintf(word, sizeof word, "state.%lld", (long long)i);
        Tensor *state = named_tensors_find(&archive->tensors, part_name(&text, name, word));
        status = optimizer_restore(optimizer, (size_t)i, numbers[i], state);
    }
    free(numbers);
    text_free(&text);
    return status;
}

static Status take(Archive *archive, const char *name, Value *value) {
    if (value->kind == VALUE_HANDLE)
        return take_optimizer(archive, name, value->as.handle->payload);
    Tensor *stored, *given = value->as.tensor;
    TRY(find(archive, name, &stored));
    Shape have = tensor_shape(stored), want = tensor_shape(given);
    bool same = have.rank == want.rank;
    for (int i = 0; i < have.rank && same; i++) same = have.dims[i] == want.dims[i];
    if (!same)
        return fail(STATUS_SHAPE, "%s: tensor `%s` is %s, not %s", archive->path, name,
                    tensor_type_name(stored).text, tensor_type_name(given).text);
    if (given->learnable) return tape_parameter_assign(given, stored);
    Tensor *converted;
    TRY(tensor_cast(stored, tensor_dtype(given), &converted));
    value_release(*value);
    *value = value_tensor(converted);
    return STATUS_OK;
}

Value builtin_load_model_into(BuiltinCall *call) {
    Archive archive = {.path = call->arguments[0].as.string->bytes};
    const TensorFormat *format;
    TRY_VALUE(tensor_format_find(archive.path, &format));
    TRY_VALUE(format->read(archive.path, &archive.tensors));
    Status status = walk_all(&archive, take, call->arguments[1]);
    named_tensors_free(&archive.tensors);
    return status == STATUS_OK ? value_retain(call->arguments[1]) : value_fail();
}

static Value tensors_by_name(const NamedTensors *tensors) {
    Value dict = value_dict();
    for (size_t i = 0; i < tensors->count; i++)
        dict_set_word(dict.as.dict, tensors->items[i].name,
                      value_tensor(tensor_retain(tensors->items[i].tensor)));
    return dict;
}

Value builtin_load(BuiltinCall *call) {
    const char *path = call->arguments[0].as.string->bytes;
    const TensorFormat *format;
    NamedTensors tensors;
    TRY_VALUE(tensor_format_find(path, &format));
    TRY_VALUE(format->read(path, &tensors));
    Value result = format->lone_name ? tensors_by_name(&tensors)
                                     : value_tensor(tensor_retain(tensors.items[0].tensor));
    named_tensors_free(&tensors);
    return result;
}
