// Llama models: hyperparameters from metadata, weights by name, one pass over the layers.
#include "model/llama.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "model/kv_cache.h"
#include "tensor/compose.h"

// A projection x @ transpose(weight) + bias.
typedef struct Projection {
    Tensor *weight, *bias; // bias: NULL where there is none
} Projection;

typedef struct Layer {
    Tensor *attention_norm, *feed_forward_norm;
    Projection q, k, v, mixed, gate, up, down;
} Layer;

struct Llama {
    Model *model;
    KvCache *cache;
    Tensor *embedding, *norm;
    Projection output;
    Layer *layers;
    int64_t layer_count, heads, heads_kv, head_dim, rotary, context, position;
    double eps, base, scale; // of rope: angles times `scale`
};

// --- hyperparameters

static const GgufValue *find_meta(const Model *model, const char *word) {
    char key[96];
    snprintf(key, sizeof key, "llama.%s", word);
    return gguf_find(model_file(model), key);
}

static bool is_integer(const GgufValue *value) {
    return value->type != GGUF_STRING && value->type != GGUF_ARRAY && value->type != GGUF_FLOAT32 &&
           value->type != GGUF_FLOAT64;
}

// A count from 1 on; `fallback` where the file says nothing, -1: it must.
static Status read_count(const Model *model, const char *word, int64_t fallback, int64_t *out) {
    const GgufValue *value = find_meta(model, word);
    *out = fallback;
    if (!value && fallback >= 0) return STATUS_OK;
    if (!value) return fail(STATUS_KEY, "%s has no metadata llama.%s", model_path(model), word);
    *out = is_integer(value) ? value->as.integer : 0;
    if (*out >= 1 && *out <= INT32_MAX) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: metadata llama.%s is no count", model_path(model), word);
}

static Status read_number(const Model *model, const char *word, double fallback, double *out) {
    const GgufValue *value = find_meta(model, word);
    *out = fallback;
    if (!value) return STATUS_OK;
    *out = is_integer(value) ? (double)value->as.integer : value->as.number;
    if (value->type != GGUF_STRING && value->type != GGUF_ARRAY && *out > 0) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: metadata llama.%s is no number above 0", model_path(model),
                word);
}

static bool string_is(const GgufValue *value, const char *text) {
    return value->type == GGUF_STRING && value->as.string.length == strlen(text) &&
           memcmp(value->as.string.bytes, text, strlen(text)) == 0;
}

static Status check_architecture(const Model *model) {
    const GgufValue *name = gguf_find(model_file(model), "general.architecture");
    if (name && string_is(name, "llama")) return STATUS_OK;
    bool named = name && name->type == GGUF_STRING;
    return fail(STATUS_VALUE, "%s is a model of architecture \"%.*s\"; this needs \"llama\"",
                model_path(model), named ? (int)name->as.string.length : 1,
                named ? name->as.string.bytes : "?");
}

// Variants that would silently be computed wrongly.
static Status check_variant(const Model *model) {
    if (find_meta(model, "expert_count"))
        return fail(STATUS_VALUE, "%s is a mixture of experts, which this cannot compute",
                    model_path(model));
    if (model_has_tensor(model, "rope_freqs.weight"))
        return fail(STATUS_VALUE,
                    "%s scales each rotary frequency (rope_freqs.weight), which this "
                    "cannot compute",
                    model_path(model));
    const GgufValue *scaling = find_meta(model, "rope.scaling.type");
    if (!scaling || string_is(scaling, "none") || string_is(scaling, "linear")) return STATUS_OK;
    return fail(STATUS_VALUE, "%s: metadata llama.rope.scaling.type is not \"linear\"",
                model_path(model));
}

static Status read_rope(Llama *llama) {
    double factor;
    const GgufValue *scaling = find_meta(llama->model, "rope.scaling.type");
    TRY(read_number(llama->model, "rope.freq_base", 10000.0, &llama->base));
    TRY(read_number(llama->model, "rope.scaling.factor", 1.0, &factor));
    llama->scale = scaling && string_is(scaling, "linear") ? 1.0 / factor : 1.0;
    return read_count(llama->model, "rope.dimension_count", llama->head_dim, &llama->rotary);
}

static Status read_parameters(Llama *llama) {
    const Model *model = llama->model;
    int64_t width;
    TRY(check_architecture(model));
    TRY(check_variant(model));
    TRY(read_count(model, "block_count", -1, &llama->layer_count));
    TRY(read_count(model, "embedding_length", -1, &width));
    TRY(read_count(model, "attention.head_count", -1, &llama->heads));
    TRY(read_count(model, "attention.head_count_kv", llama->heads, &llama->heads_kv));
    TRY(read_count(model, "attention.key_length", width / llama->heads, &llama->head_dim));
    TRY(read_count(model, "context_length", 0, &llama->context));
    TRY(read_number(model, "attention.layer_norm_rms_epsilon", 1e-5, &llama->eps));
    return read_rope(llama);
}

// --- weights

static Status load_projection(Llama *llama, int64_t layer, const char *word, Projection *out) {
    char name[96];
    snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, word);
    TRY(model_tensor(llama->model, name, &out->weight));
    snprintf(name, sizeof name, "blk.%lld.%s.bias", (long long)layer, word);
    return model_has_tensor(llama->model, name) ? model_tensor(llama->model, name, &out->bias)
                                                : STATUS_OK;
}

static Status load_norm(Llama *llama, int64_t layer, const char *word, Tensor **out) {
    char name[96];
    snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, word);
    return model_tensor(llama->model, name, out);
}

static Status load_layer(Llama *llama, int64_t index) {
    Layer *layer = &llama->layers[index];
    TRY(load_norm(llama, index, "attn_norm", &layer->attention_norm));
    TRY(load_norm(llama, index, "ffn_norm", &layer->feed_forward_norm));
    TRY(load_projection(llama, index, "attn_q", &layer->q));
    TRY(load_projection(llama, index, "attn_k", &layer->k));
    TRY(load_projection(llama, index, "attn_v", &layer->v));
    TRY(load_projection(llama, index, "attn_output", &layer->mixed));
    TRY(load_projection(llama, index, "ffn_gate", &layer->gate));
    TRY(load_projection(llama, index, "ffn_up", &layer->up));
    return load_projection(llama, index, "ffn_down", &layer->down);
}

static Status load(Llama *llama) {
    TRY(read_parameters(llama));
    TRY(kv_cache_new(llama->layer_count, 0, DTYPE_FLOAT32, &llama->cache));
    TRY(model_tensor(llama->model, "token_embd.weight", &llama->embedding));
    TRY(model_tensor(llama->model, "output_norm.weight", &llama->norm));
    bool own = model_has_tensor(llama->model, "output.weight"); // else the table serves twice
    TRY(model_tensor(llama->model, own ? "output.weight" : "token_embd.weight",
                     &llama->output.weight));
    llama->layers = memory_allocate_zeroed((size_t)llama->layer_count, sizeof *llama->layers);
    for (int64_t i = 0; i < llama->layer_count; i++) TRY(load_layer(llama, i));
    return STATUS_OK;
}

Status llama_new(Model *model, Llama **out) {
    Llama *llama = memory_allocate_zeroed(1, sizeof *llama);
    llama->model = model_retain(model);
    Status status = load(llama);
    if (status == STATUS_OK)
        *out = llama;
    else
        llama_free(llama);
    return status;
}

static void release_projection(const Projection *projection) {
    tensor_release(projection->weight);
    tensor_release(projection->bias);
}

void llama_free(Llama *llama) {
    for (int64_t i = 0; llama->layers && i < llama->layer_count; i++) {
        const Layer *layer = &llama->layers[i];
        const Projection *const all[] = {&layer->q,    &layer->k,  &layer->v,   &layer->mixed,
                                         &layer->gate, &layer->up, &layer->down};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) release_projection(all[j]);
        tensor_release(layer->attention_norm);
        tensor_release(layer->feed_forward_norm);
    }
    free(llama->layers);
    release_projection(&llama->output);
    tensor_release(llama->embedding);
    tensor_release(llama->norm);
    if (llama->cache) kv_cache_release(llama->cache);
    model_release(llama->model);
    free(llama);
}

int64_t llama_context(const Llama *llama) {
    return llama->context;
}

int64_t llama_position(const Llama *llama) {
    return llama->position;
}

// --- the pass: x is [rows, width]; tensors named here are released when their function ends

static Status project(const Projection *projection, Tensor *x, Tensor **out) {
    Tensor *inputs[] = {x, projection->weight, projection->bias};
    return op_with(OP_linear, inputs, projection->bias ? 3 : 2, NULL, out);
}

static Status normalise(const Llama *llama, Tensor *x, Tensor *weight, Tensor **out) {
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(eps), .eps = llama->eps};
    return op_with(OP_rms_norm, (Tensor *[]){x, weight}, 2, &attributes, out);
}

static Status reshape(Tensor *x, Shape shape, Tensor **out) {
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(shape), .shape = shape};
    return op_with(OP_reshape, &x, 1, &attributes, out);
}

// [rows, heads, head_dim] of a projection of x.
static Status project_heads(const Llama *llama, const Projection *projection, Tensor *x,
                            int64_t heads, Tensor **out) {
    SCOPED_TENSOR(flat);
    TRY(project(projection, x, &flat));
    return reshape(flat, (Shape){.rank = 3, .dims = {x->view.dims[0], heads, llama->head_dim}},
                   out);
}

// The same, turned by its rows' positions.
static Status project_turned(const Llama *llama, const Projection *projection, Tensor *x,
                             int64_t heads, Tensor **out) {
    SCOPED_TENSOR(split);
    TRY(project_heads(llama, projection, x, heads, &split));
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(offset) | ATTRIBUTE_BIT(base) |
                                        ATTRIBUTE_BIT(style) | ATTRIBUTE_BIT(scale) |
                                        ATTRIBUTE_BIT(rotary),
                               .offset = llama->position,
                               .base = llama->base,
                               .style = "interleaved",
                               .scale = llama->scale,
                               .rotary = llama->rotary};
    return op_with(OP_rope, &split, 1, &attributes, out);
}

// Attention over everything that the cache holds, these rows included.
static Status attend(const Llama *llama, int64_t index, Tensor *x, Tensor **out) {
    const Layer *layer = &llama->layers[index];
    SCOPED_TENSOR(q);
    SCOPED_TENSOR(k);
    SCOPED_TENSOR(v);
    SCOPED_TENSOR(keys);
    SCOPED_TENSOR(values);
    SCOPED_TENSOR(mixed);
    SCOPED_TENSOR(flat);
    TRY(project_turned(llama, &layer->q, x, llama->heads, &q));
    TRY(project_turned(llama, &layer->k, x, llama->heads_kv, &k));
    TRY(project_heads(llama, &layer->v, x, llama->heads_kv, &v));
    TRY(kv_cache_append(llama->cache, index, k, v));
    TRY(kv_cache_keys(llama->cache, index, &keys));
    TRY(kv_cache_values(llama->cache, index, &values));
    OpAttributes causal = {.given = ATTRIBUTE_BIT(causal), .causal = true};
    TRY(op_with(OP_attention, (Tensor *[]){q, keys, values}, 3, &causal, &mixed));
    Shape shape = {.rank = 2, .dims = {x->view.dims[0], llama->heads * llama->head_dim}};
    TRY(reshape(mixed, shape, &flat));
    return project(&layer->mixed, flat, out);
}

static Status feed_forward(const Layer *layer, Tensor *x, Tensor **out) {
    SCOPED_TENSOR(gate);
    SCOPED_TENSOR(up);
    SCOPED_TENSOR(wide);
    TRY(project(&layer->gate, x, &gate));
    TRY(project(&layer->up, x, &up));
    TRY(op_binary(OP_swiglu, op_donated(gate), op_tensor(up), &wide));
    return project(&layer->down, wide, out);
}

// Adds a part's result to x.
static Status add_to(Tensor **x, Tensor *part) {
    Tensor *sum = NULL;
    TRY(op_binary(OP_add, op_tensor(*x), op_tensor(part), &sum));
    tensor_release(*x);
    *x = sum;
    return STATUS_OK;
}

static Status run_layer(const Llama *llama, int64_t index, Tensor **x) {
    const Layer *layer = &llama->layers[index];
    SCOPED_TENSOR(before);
    SCOPED_TENSOR(attended);
    SCOPED_TENSOR(between);
    SCOPED_TENSOR(fed);
    TRY(normalise(llama, *x, layer->attention_norm, &before));
    TRY(attend(llama, index, before, &attended));
    TRY(add_to(x, attended));
    TRY(normalise(llama, *x, layer->feed_forward_norm, &between));
    TRY(feed_forward(layer, between, &fed));
    return add_to(x, fed);
}

static Status embed(const Llama *llama, const int64_t *ids, size_t count, Tensor **out) {
    Shape shape = {.rank = 1, .dims = {(int64_t)count}};
    SCOPED_TENSOR(rows);
    SCOPED_TENSOR(found);
    TRY(tensor_from_integers(ids, &shape, DTYPE_INT64, &rows));
    TRY(op_with(OP_embedding, (Tensor *[]){llama->embedding, rows}, 2, NULL, &found));
    return tensor_cast(found, DTYPE_FLOAT32, out);
}

Status llama_forward(Llama *llama, const int64_t *ids, size_t count, Tensor **out) {
    ASSERT(count > 0);
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(row);
    SCOPED_TENSOR(last);
    SCOPED_TENSOR(normal);
    SCOPED_TENSOR(logits);
    TRY(embed(llama, ids, count, &x));
    for (int64_t i = 0; i < llama->layer_count; i++) TRY(run_layer(llama, i, &x));
    llama->position += (int64_t)count;
    TRY(tensor_select(x, 0, -1, &row));
    TRY(reshape(row, (Shape){.rank = 2, .dims = {1, tensor_count(row)}}, &last));
    TRY(normalise(llama, last, llama->norm, &normal));
    TRY(project(&llama->output, normal, &logits));
    return reshape(logits, (Shape){.rank = 1, .dims = {tensor_count(logits)}}, out);
}
