// GGUF files from values: which type a metadata value gets, and as what a tensor is stored.
#include "library/export.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "eval/invoke.h"
#include "model/gguf_write.h"
#include "model/quantise.h"
#include "model/tokenizer.h"
#include "tensor/op.h"
#include "value/convert.h"
#include "value/handles.h"
#include "value/print.h"

typedef struct MetaValues {
    MetaType type;
    MetaValue *items; // free() them
    size_t count;
} MetaValues;

// Counts and ids are uint32 in the files that others write; what does not fit is wider.
static MetaType type_of_integer(int64_t i) {
    if (i >= 0) return i <= UINT32_MAX ? META_UINT32 : META_UINT64;
    return i >= INT32_MIN ? META_INT32 : META_INT64;
}

static const MetaType type_of_dtype[DTYPE_COUNT] = {
    [DTYPE_BOOL] = META_BOOL,       [DTYPE_UINT8] = META_UINT8,      [DTYPE_INT8] = META_INT8,
    [DTYPE_INT16] = META_INT16,     [DTYPE_INT32] = META_INT32,      [DTYPE_INT64] = META_INT64,
    [DTYPE_FLOAT16] = META_FLOAT32, [DTYPE_BFLOAT16] = META_FLOAT32, [DTYPE_FLOAT32] = META_FLOAT32,
    [DTYPE_FLOAT64] = META_FLOAT64,
};

// Lists of integers are int32 where all fit, as the arrays of vocabularies are.
static void narrow_integers(MetaValues *values) {
    for (size_t i = 0; i < values->count; i++)
        if (values->items[i].as.integer < INT32_MIN || values->items[i].as.integer > INT32_MAX)
            return;
    values->type = META_INT32;
    for (size_t i = 0; i < values->count; i++) values->items[i].type = META_INT32;
}

static Status values_of_floats(Tensor *tensor, MetaValues *out) {
    SCOPED_MEMORY double *numbers = memory_allocate((out->count + 1) * sizeof *numbers);
    Status status = tensor_read_floats(tensor, numbers);
    for (size_t i = 0; i < out->count && status == STATUS_OK; i++)
        out->items[i] = (MetaValue){.type = out->type, .as.number = numbers[i]};
    return status;
}

static Status values_of_integers(Tensor *tensor, MetaValues *out) {
    int64_t *numbers = memory_allocate((out->count + 1) * sizeof *numbers);
    Status status = tensor_read_integers(tensor, numbers);
    for (size_t i = 0; i < out->count && status == STATUS_OK; i++)
        out->items[i] = (MetaValue){.type = out->type, .as.integer = numbers[i]};
    free(numbers);
    if (status == STATUS_OK && out->type == META_INT64) narrow_integers(out);
    return status;
}

// A tensor of rank 0 or 1 says the type; int64, which is what literals are, counts as plain ints.
static Status values_of_tensor(const char *key, Tensor *tensor, MetaValues *out) {
    DType dtype = tensor_dtype(tensor);
    if (tensor_rank(tensor) > 1 || dtype_is_quant(dtype))
        return fail(STATUS_TYPE, "metadata \"%s\" is %s; it can be a number or one row of them",
                    key, tensor_type_name(tensor).text);
    *out = (MetaValues){.type = type_of_dtype[dtype], .count = (size_t)tensor_count(tensor)};
    out->items = memory_allocate((out->count + 1) * sizeof *out->items);
    return dtype_is_float(dtype) ? values_of_floats(tensor, out) : values_of_integers(tensor, out);
}

// False for what is not a plain value.
static bool value_of_plain(Value value, MetaValue *out) {
    switch (value.kind) {
    case VALUE_STRING:
        *out = (MetaValue){.type = META_STRING,
                           .as.string = {value.as.string->bytes, value.as.string->length}};
        return true;
    case VALUE_BOOL:
        *out = (MetaValue){.type = META_BOOL, .as.integer = value.as.integer};
        return true;
    case VALUE_INT:
        *out =
            (MetaValue){.type = type_of_integer(value.as.integer), .as.integer = value.as.integer};
        return true;
    case VALUE_FLOAT:
        *out = (MetaValue){.type = META_FLOAT32, .as.number = value.as.number};
        return true;
    default: return false;
    }
}

// A list of strings or of bools; numbers that are not a literal become a tensor first.
static Status values_of_list(const char *key, Value value, MetaValues *out) {
    const List *list = value.as.list;
    Value first = list->count > 0 ? list->items[0] : value_none();
    if (first.kind != VALUE_STRING && first.kind != VALUE_BOOL) {
        SCOPED_TENSOR(tensor);
        TRY(value_to_tensor(value, key, &tensor));
        return values_of_tensor(key, tensor, out);
    }
    out->items = memory_allocate(list->count * sizeof *out->items);
    out->count = list->count;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i].kind != first.kind || !value_of_plain(list->items[i], &out->items[i]))
            return fail(STATUS_TYPE,
                        "metadata \"%s\": element %zu is of kind %s, but the first of kind %s", key,
                        i, value_kind_name(list->items[i]), value_kind_name(first));
    out->type = out->items[0].type;
    return STATUS_OK;
}

static Status put_tensor(GgufWriter *writer, const char *key, Tensor *tensor) {
    MetaValues values = {0};
    Status status = values_of_tensor(key, tensor, &values);
    if (status == STATUS_OK && tensor_rank(tensor) == 0) {
        bool plain = tensor_dtype(tensor) == DTYPE_INT64;
        if (plain) values.items[0].type = type_of_integer(values.items[0].as.integer);
        status = gguf_writer_put(writer, key, &values.items[0]);
    } else if (status == STATUS_OK) {
        status = gguf_writer_put_array(writer, key, values.type, values.items, values.count);
    }
    free(values.items);
    return status;
}

static Status put_list(GgufWriter *writer, const char *key, Value value) {
    MetaValues values = {0};
    Status status = values_of_list(key, value, &values);
    if (status == STATUS_OK)
        status = gguf_writer_put_array(writer, key, values.type, values.items, values.count);
    free(values.items);
    return status;
}

static Status put_meta(GgufWriter *writer, const char *key, Value value) {
    MetaValue plain;
    if (value_of_plain(value, &plain)) return gguf_writer_put(writer, key, &plain);
    if (value.kind == VALUE_TENSOR) return put_tensor(writer, key, value.as.tensor);
    if (value.kind == VALUE_LIST || value.kind == VALUE_TUPLE) return put_list(writer, key, value);
    return fail(
        STATUS_TYPE,
        "metadata \"%s\" is of kind %s; it can be a string, a number, a bool or a list of them",
        key, value_kind_name(value));
}

static Status put_all_meta(GgufWriter *writer, Value meta) {
    if (meta.kind == VALUE_ABSENT) return STATUS_OK;
    for (size_t i = 0; i < dict_count(meta.as.dict); i++) {
        Value key, item;
        dict_entry(meta.as.dict, i, &key, &item);
        if (key.kind != VALUE_STRING)
            return fail(STATUS_TYPE, "the names of metadata are strings, not %s",
                        value_text(key).text);
        if (!named_text_fits(key.as.string->bytes, key.as.string->length))
            return fail(STATUS_VALUE, "metadata %s: a name must be UTF-8 without \\0",
                        value_text(key).text);
        TRY(put_meta(writer, key.as.string->bytes, item));
    }
    return STATUS_OK;
}

// What came with a loaded model stays, where nothing new was said.
static Status put_origin(GgufWriter *writer, const GgufExport *export) {
    static const char vocabulary[] = "tokenizer.";
    size_t count = export->origin ? export->origin->count : 0;
    for (size_t i = 0; i < count; i++) {
        const MetaPair *pair = &export->origin->items[i];
        bool replaced = export->tokenizer.kind != VALUE_ABSENT &&
                        strncmp(pair->key, vocabulary, sizeof vocabulary - 1) == 0 &&
                        strcmp(pair->key, TOKEN_TYPE_COUNT_KEY) != 0;
        replaced |= strncmp(pair->key, "split.", 6) == 0; // all is in one file now
        if (!replaced && !gguf_writer_has(writer, pair->key)) TRY(gguf_writer_copy(writer, pair));
    }
    return STATUS_OK;
}

// general.file_type: what most of a file's tensors are.
typedef struct FileType {
    DType dtype;
    int number;
} FileType;
static const FileType file_types[] = {
    {DTYPE_FLOAT32, 0},   {DTYPE_FLOAT16, 1}, {DTYPE_Q4_0, 2},  {DTYPE_Q4_1, 3},
    {DTYPE_Q8_0, 7},      {DTYPE_Q5_0, 8},    {DTYPE_Q5_1, 9},  {DTYPE_Q2_K, 10},
    {DTYPE_Q3_K, 12},     {DTYPE_Q4_K, 15},   {DTYPE_Q5_K, 17}, {DTYPE_Q6_K, 18},
    {DTYPE_BFLOAT16, 32},
};

static Status put_file_type(GgufWriter *writer, DType dtype) {
    for (size_t i = 0; i < sizeof file_types / sizeof *file_types; i++)
        if (file_types[i].dtype == dtype && !gguf_writer_has(writer, "general.file_type"))
            TRY(gguf_writer_put_integer(writer, "general.file_type", META_UINT32,
                                        file_types[i].number));
    if (!dtype_is_quant(dtype) || gguf_writer_has(writer, "general.quantization_version"))
        return STATUS_OK;
    return gguf_writer_put_integer(writer, "general.quantization_version", META_UINT32, 2);
}

static Status check_stored(DType wanted) {
    if (dtype_is_float(wanted) || quantise_can(wanted)) return STATUS_OK;
    return fail(STATUS_DTYPE,
                "tensors cannot be stored as %s: there are float64, float32, float16, bfloat16, "
                "q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1, q4_0, q3_k and q2_k",
                dtype_name(wanted));
}

// What becomes one tensor of the file: one of those that are saved, or experts and norms of heads
// that a folder has one by one and GGUF's readers want together.
typedef struct Stack {
    Text name; // free it
    Tensor **parts;
    size_t count;
    Shape shape; // of all
    bool stacked;
} Stack;

static Status call_types(const GgufExport *export, const Stack *stack, DType *out) {
    Value shape = value_list(4);
    for (int d = 0; d < stack->shape.rank; d++)
        list_push(shape.as.list, value_int(stack->shape.dims[d]));
    Value arguments[] = {value_string(text_get(&stack->name), stack->name.length), shape};
    SCOPED_VALUE(result) = interp_call(export->interp, export->types, arguments, 2);
    value_release(arguments[0]);
    value_release(shape);
    if (result.kind == VALUE_FAIL)
        return error_current()->code == STATUS_OK ? STATUS_INTERRUPT : error_current()->code;
    Status status = value_to_dtype(result, "what types gives", out);
    return status == STATUS_OK ? check_stored(*out) : status;
}

// Few numbers that matter much, and what the readers of GGUF files take as float32 alone.
static bool stays_wide(const Stack *stack) {
    static const char *const words[] = {".ffn_gate_inp", "_norm.", ".shortconv.conv."};
    if (tensor_rank(stack->parts[0]) < 2) return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(text_get(&stack->name), words[i])) return true;
    return false;
}

// Matrices become `dtype`; what stays wide float32, also where a model is saved as it is.
static Status stored_dtype(const GgufExport *export, const Stack *stack, bool model, DType *out) {
    DType own = *out = tensor_dtype(stack->parts[0]);
    bool chosen = export->types.kind != VALUE_ABSENT, given = export->dtype.kind != VALUE_ABSENT;
    if (!dtype_is_float(own) && !dtype_is_quant(own)) return STATUS_OK;
    if ((chosen || given || model) && stays_wide(stack)) {
        *out = DTYPE_FLOAT32;
        return STATUS_OK;
    }
    if (chosen) return call_types(export, stack, out);
    if (given) *out = (DType) export->dtype.as.integer;
    return STATUS_OK;
}

// Where the number begins in a name like blk.3.ffn_up.7.weight; NULL: no such name.
static const char *number_in(const char *name) {
    static const char *const words[] = {".ffn_gate.", ".ffn_up.", ".ffn_down.", ".attn_q_norm.",
                                        ".attn_k_norm."};
    if (strncmp(name, "blk.", 4) != 0) return NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(name, words[i]), *number = at ? at + strlen(words[i]) : NULL;
        size_t digits = number ? strspn(number, "0123456789") : 0;
        if (digits > 0 && number[digits] == '.') return number;
    }
    return NULL;
}

// The place of the tensor of that name, most likely after the one at `start`; `count`: there is
// none.
static size_t find_from(const NamedTensors *tensors, size_t start, const char *name) {
    for (size_t i = 0; i < tensors->count; i++) {
        size_t at = (start + i) % tensors->count;
        if (strcmp(tensors->items[at].name, name) == 0) return at;
    }
    return tensors->count;
}

static void take_one(const NamedTensors *tensors, size_t at, Stack *out) {
    text_clear(&out->name);
    text_append_string(&out->name, tensors->items[at].name);
    out->parts[0] = tensors->items[at].tensor;
    out->count = 1;
    out->stacked = false;
    out->shape = tensor_shape(out->parts[0]);
}

// All that belong together with the one at `first`, in the order of their numbers.
static void gather(const NamedTensors *tensors, size_t first, const char *number, bool *taken,
                   Stack *out) {
    const char *name = tensors->items[first].name;
    size_t digits = strspn(number, "0123456789"), at = first;
    SCOPED_TEXT(each);
    for (out->count = 0;; out->count++) {
        text_clear(&each);
        text_format(&each, "%.*s%zu%s", (int)(number - name), name, out->count, number + digits);
        at = find_from(tensors, at, text_get(&each));
        if (at == tensors->count) break;
        out->parts[out->count] = tensors->items[at].tensor;
        taken[at] = true;
    }
    if (out->count == 0) return;
    text_clear(&out->name);
    text_format(&out->name, "%.*s%s%s", (int)(number - name - 1), name,
                strstr(name, "_norm.") ? "" : "_exps", number + digits);
    out->stacked = true;
    Shape shape = tensor_shape(out->parts[0]);
    out->shape = (Shape){.rank = shape.rank + 1, .dims = {(int64_t)out->count}};
    memcpy(out->shape.dims + 1, shape.dims, (size_t)shape.rank * sizeof *shape.dims);
}

// The tensor at `first`, with those that belong to it.
static void choose(const NamedTensors *tensors, size_t first, bool *taken, Stack *out) {
    const char *number = number_in(tensors->items[first].name);
    out->count = 0;
    if (number) gather(tensors, first, number, taken, out);
    if (out->count == 0) take_one(tensors, first, out); // one number without a 0 before it
}

static Status add_stack(GgufWriter *writer, const GgufExport *export, Stack *stack) {
    DType stored;
    bool model = gguf_writer_has(writer, "general.architecture");
    TRY(stored_dtype(export, stack, model, &stored));
    const char *name = text_get(&stack->name);
    if (!stack->stacked) return gguf_writer_add(writer, name, stack->parts[0], stored);
    return gguf_writer_add_stack(writer, name, stack->parts, stack->count, stored);
}

static Status add_tensors(GgufWriter *writer, const GgufExport *export) {
    const NamedTensors *tensors = export->tensors;
    Stack stack = {.parts = memory_allocate((tensors->count + 1) * sizeof *stack.parts)};
    SCOPED_MEMORY bool *taken = memory_allocate_zeroed(tensors->count + 1, sizeof *taken);
    Status status = STATUS_OK;
    for (size_t i = 0; i < tensors->count && status == STATUS_OK; i++) {
        if (taken[i]) continue;
        choose(tensors, i, taken, &stack);
        status = add_stack(writer, export, &stack);
    }
    text_free(&stack.name);
    free(stack.parts);
    return status;
}

static const Tokenizer *tokenizer_of(Value value) {
    return ((const TokenizerHandle *)value.as.handle->payload)->tokenizer;
}

static Status fill(GgufWriter *writer, const GgufExport *export) {
    if (export->dtype.kind != VALUE_ABSENT) TRY(check_stored((DType) export->dtype.as.integer));
    TRY(put_all_meta(writer, export->meta));
    if (export->dtype.kind != VALUE_ABSENT)
        TRY(put_file_type(writer, (DType) export->dtype.as.integer));
    if (export->tokenizer.kind != VALUE_ABSENT)
        TRY(tokenizer_to_gguf(tokenizer_of(export->tokenizer), writer));
    for (size_t i = 0; i < export->tensors->texts.count; i++)
        TRY(gguf_writer_put_string(writer, export->tensors->texts.items[i].key,
                                   export->tensors->texts.items[i].text));
    TRY(put_origin(writer, export));
    TRY(add_tensors(writer, export));
    return gguf_writer_save(writer, export->path);
}

Status export_gguf(const GgufExport *export) {
    GgufWriter *writer = gguf_writer_new();
    Status status = fill(writer, export);
    gguf_writer_free(writer);
    return status;
}
