// Saving and loading of tensors, and of what training makes: dictionaries, structs and lists of
// tensors, plain values, and the state of optimizers in them (value/archive.h).
#include "library/export.h"
#include "model/tensor_file.h"
#include "tensor/op.h"
#include "value/archive.h"
#include "value/builtin.h"
#include "value/convert.h"
#include "value/format.h"
#include "value/handles.h"
#include "value/print.h"

static Status check_container(Value value) {
    if (value.kind == VALUE_DICT || value.kind == VALUE_STRUCT) return STATUS_OK;
    return fail_kind("what is saved or loaded", "a dictionary or a struct", value);
}

static Status add_all(Archive *archive, Value value) {
    TRY(check_container(value));
    TRY(archive_add_parameters(archive, "", value));
    return archive_add(archive, "", value);
}

// A dictionary or a struct, with the optimizers in it.
static Status save_all(Value value, const char *path) {
    const TensorFormat *format = NULL;
    TRY(tensor_format_find_named(path, &format));
    Archive archive = {.path = path};
    Status status = add_all(&archive, value);
    if (status == STATUS_OK) status = format->write(path, &archive.tensors);
    archive_free(&archive);
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
enum { SAVE_META = 2, SAVE_TOKENIZER, SAVE_DTYPE, SAVE_TYPES, SAVE_END };

static Status write_described(const BuiltinCall *call, const Archive *archive) {
    const Value *arguments = call->arguments;
    bool loaded = arguments[0].kind == VALUE_HANDLE;
    GgufExport export = {.path = archive->path,
                         .tensors = &archive->tensors,
                         .origin = loaded ? &model_reader(arguments[0].as.handle->payload)->metadata
                                          : NULL,
                         .meta = arguments[SAVE_META],
                         .tokenizer = arguments[SAVE_TOKENIZER],
                         .dtype = arguments[SAVE_DTYPE],
                         .types = arguments[SAVE_TYPES],
                         .interp = call->interp};
    return export_gguf(&export);
}

static Status check_described(const BuiltinCall *call, const char *path) {
    for (int i = SAVE_TOKENIZER; i < SAVE_END; i++)
        if (call->arguments[i].kind != VALUE_ABSENT)
            return fail(STATUS_VALUE,
                        "%s: only .gguf files are written with tokenizer, dtype or types", path);
    return STATUS_OK;
}

// Other formats than GGUF keep metadata as texts.
static Status add_meta(Archive *archive, Value meta) {
    for (size_t i = 0; meta.kind == VALUE_DICT && i < dict_count(meta.as.dict); i++) {
        Value key, item;
        dict_entry(meta.as.dict, i, &key, &item);
        if (key.kind != VALUE_STRING)
            return fail(STATUS_TYPE, "the names of metadata are strings, not %s",
                        value_text(key).text);
        if (named_tensors_text(&archive->tensors, key.as.string->bytes))
            return fail(STATUS_KEY, "metadata \"%s\" is given twice", key.as.string->bytes);
        SCOPED_TEXT(text);
        Status status = value_print(item, false, &text);
        bool fits = named_text_fits(key.as.string->bytes, key.as.string->length) &&
                    named_text_fits(text_get(&text), text.length);
        if (status == STATUS_OK && !fits)
            status =
                fail(STATUS_VALUE, "metadata \"%.80s\" is not text: it must be UTF-8 without \\0",
                     key.as.string->bytes);
        if (status == STATUS_OK)
            named_tensors_add_text(&archive->tensors, key.as.string->bytes, text_get(&text));
        TRY(status);
    }
    return STATUS_OK;
}

Value builtin_save_model(BuiltinCall *call) {
    const char *path = call->arguments[1].as.string->bytes;
    Value model = call->arguments[0];
    const TensorFormat *format = NULL;
    Archive archive = {.path = path};
    Status status = tensor_format_find_named(path, &format);
    if (status == STATUS_OK && !format->describes) status = check_described(call, path);
    if (status == STATUS_OK && model.kind == VALUE_HANDLE && model.as.handle->type == &handle_model)
        status = model_add_tensors(model.as.handle->payload, &archive.tensors);
    else if (status == STATUS_OK)
        status = add_all(&archive, model);
    if (status == STATUS_OK && !format->describes)
        status = add_meta(&archive, call->arguments[SAVE_META]);
    if (status == STATUS_OK)
        status = format->describes ? write_described(call, &archive)
                                   : format->write(path, &archive.tensors);
    archive_free(&archive);
    TRY_VALUE(status);
    return value_none();
}

// --- loading

static Status load_into(Archive *archive, Value value) {
    TRY(check_container(value));
    TRY(archive_add_parameters(archive, "", value));
    return archive_prepare(archive, "", value);
}

Value builtin_load_model_into(BuiltinCall *call) {
    Archive archive = {.path = call->arguments[0].as.string->bytes};
    const TensorFormat *format;
    TRY_VALUE(tensor_format_find(archive.path, &format));
    TRY_VALUE(format->read(archive.path, &archive.tensors));
    Status status = load_into(&archive, call->arguments[1]);
    if (status == STATUS_OK) archive_give(&archive, call->arguments[1]);
    archive_free(&archive);
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
    Value result = value_fail();
    if (tensors.unread.count > 0) {
        const NamedText *first = &tensors.unread.items[0];
        (void)named_tensors_fail_unread(path, first->key, first->text);
        fail_help("load_model(\"%s\") gives the others", path);
    } else {
        result = format->lone_name ? tensors_by_name(&tensors)
                                   : value_tensor(tensor_retain(tensors.items[0].tensor));
    }
    named_tensors_free(&tensors);
    return result;
}
