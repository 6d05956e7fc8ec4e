// Llama models and their kin: hyperparameters from metadata, weights by name, one pass over the
// layers. What they differ in is a row of `architectures`, or there or not in the file.
#include "model/llama.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "device/work.h"
#include "model/kv_cache.h"
#include "tensor/compose.h"

enum { ROWS_MAX = 256 }; // that go through the layers at once
enum { HEAD_DIM_MAX = 65536 };

// A projection x @ transpose(weight) + bias.
typedef struct Projection {
    Tensor *weight, *bias; // bias: NULL where there is none
    int64_t heads;         // that its results are for; 0: none in particular
} Projection;

typedef struct Layer {
    Tensor *attention_norm, *feed_forward_norm;
    Tensor *q_norm, *k_norm; // of each head; NULL where there are none
    Projection q, k, v, mixed, gate, up, down;
} Layer;

typedef struct Architecture {
    const char *name;       // also the first word of its metadata
    const char *rope_style; // which numbers of a head make pairs
} Architecture;

static const Architecture architectures[] = {
    {"llama", "interleaved"},
    {"qwen2", "half"},
    {"qwen3", "half"},
};

struct Llama {
    Model *model;
    const Architecture *architecture;
    KvCache *cache;
    Tensor *embedding, *norm;
    Projection output;
    Layer *layers;
    int64_t layer_count, head_dim, rotary, context, position;
    double eps, base, scale; // of rope: angles times `scale`
    double magnitude;        // of rotated numbers, 1 for most models
    double *divisors;        // of each pair's angle; NULL: all are 1
    bool tables;             // rotates by tables made for each pass, not by a formula
    Tensor *cosines, *sines; // of this pass
};

// --- hyperparameters

static const GgufValue *find_meta(const Llama *llama, const char *word) {
    char key[96];
    snprintf(key, sizeof key, "%s.%s", llama->architecture->name, word);
    return gguf_find(model_file(llama->model), key);
}

static Status fail_meta(const Llama *llama, const char *word, const char *what) {
    return fail(STATUS_VALUE, "%s: metadata %s.%s %s", model_path(llama->model),
                llama->architecture->name, word, what);
}

static bool is_integer(const GgufValue *value) {
    return value->type != GGUF_STRING && value->type != GGUF_ARRAY && value->type != GGUF_FLOAT32 &&
           value->type != GGUF_FLOAT64;
}

// A count from 1 on; `fallback` where the file says nothing, -1: it must.
static Status read_count(const Llama *llama, const char *word, int64_t fallback, int64_t *out) {
    const GgufValue *value = find_meta(llama, word);
    *out = fallback;
    if (!value && fallback >= 0) return STATUS_OK;
    if (!value)
        return fail(STATUS_KEY, "%s has no metadata %s.%s", model_path(llama->model),
                    llama->architecture->name, word);
    *out = is_integer(value) ? value->as.integer : 0;
    if (*out >= 1 && *out <= INT32_MAX) return STATUS_OK;
    return fail_meta(llama, word, "is not a count");
}

typedef struct Element {
    size_t index;
    int64_t number; // 0: there is none
} Element;

static void pick_element(void *context, size_t index, GgufValue value) {
    Element *element = context;
    if (index == element->index && is_integer(&value)) element->number = value.as.integer;
}

// The same of one layer, where the file may have an array with a count for each.
static Status read_layer_count(const Llama *llama, const char *word, int64_t layer,
                               int64_t fallback, int64_t *out) {
    const GgufValue *value = find_meta(llama, word);
    if (!value || value->type != GGUF_ARRAY) return read_count(llama, word, fallback, out);
    Element element = {.index = (size_t)layer};
    gguf_array_each(model_file(llama->model), value, pick_element, &element);
    *out = element.number;
    if (*out >= 1 && *out <= INT32_MAX) return STATUS_OK;
    return fail_meta(llama, word, "has no count for each layer");
}

static Status read_number(const Llama *llama, const char *word, double fallback, double *out) {
    const GgufValue *value = find_meta(llama, word);
    *out = fallback;
    if (!value) return STATUS_OK;
    *out = is_integer(value) ? (double)value->as.integer : value->as.number;
    if (value->type != GGUF_STRING && value->type != GGUF_ARRAY && *out > 0) return STATUS_OK;
    return fail_meta(llama, word, "is not a number above 0");
}

static bool string_is(const GgufValue *value, const char *text) {
    return value->type == GGUF_STRING && value->as.string.length == strlen(text) &&
           memcmp(value->as.string.bytes, text, strlen(text)) == 0;
}

static Status find_architecture(Llama *llama) {
    const GgufValue *name = gguf_find(model_file(llama->model), "general.architecture");
    for (size_t i = 0; name && i < sizeof architectures / sizeof *architectures; i++)
        if (string_is(name, architectures[i].name)) {
            llama->architecture = &architectures[i];
            return STATUS_OK;
        }
    bool named = name && name->type == GGUF_STRING;
    return fail(STATUS_VALUE,
                "%s is a model of architecture \"%.*s\"; this computes llama, qwen2 and qwen3",
                model_path(llama->model), named ? (int)name->as.string.length : 1,
                named ? name->as.string.bytes : "?");
}

// Variants that would silently be computed wrongly.
static Status check_variant(const Llama *llama) {
    const GgufValue *experts = find_meta(llama, "expert_count");
    if (experts && !(is_integer(experts) && experts->as.integer == 0))
        return fail(STATUS_VALUE, "%s is a mixture of experts, which this cannot compute",
                    model_path(llama->model));
    const GgufValue *scaling = find_meta(llama, "rope.scaling.type");
    if (!scaling || string_is(scaling, "none") || string_is(scaling, "linear")) return STATUS_OK;
    return fail_meta(llama, "rope.scaling.type", "is not \"linear\"");
}

// What divides the angle of each pair: Llama 3.1's way to longer texts.
static Status read_divisors(Llama *llama) {
    static const char name[] = "rope_freqs.weight";
    if (!model_has_tensor(llama->model, name)) return STATUS_OK;
    SCOPED_TENSOR(tensor);
    TRY(model_tensor(llama->model, name, &tensor));
    if (tensor_count(tensor) != llama->rotary / 2)
        return fail(STATUS_SHAPE, "%s: %s has %lld numbers, but there are %lld pairs to rotate",
                    model_path(llama->model), name, (long long)tensor_count(tensor),
                    (long long)(llama->rotary / 2));
    llama->divisors = memory_allocate((size_t)(llama->rotary / 2 + 1) * sizeof(double));
    return tensor_read_floats(tensor, llama->divisors);
}

// A factor alone means that angles are scaled, as the type says that is the default.
static Status read_rope(Llama *llama) {
    double factor;
    const GgufValue *scaling = find_meta(llama, "rope.scaling.type");
    bool old = !find_meta(llama, "rope.scaling.factor");
    TRY(read_number(llama, "rope.freq_base", 10000.0, &llama->base));
    TRY(read_number(llama, old ? "rope.scale_linear" : "rope.scaling.factor", 1.0, &factor));
    TRY(read_number(llama, "rope.scaling.attn_factor", 1.0, &llama->magnitude));
    TRY(read_count(llama, "rope.dimension_count", llama->head_dim, &llama->rotary));
    if (llama->rotary > llama->head_dim)
        return fail_meta(llama, "rope.dimension_count", "is more than a head has");
    TRY(read_divisors(llama));
    bool linear = !scaling || string_is(scaling, "linear");
    llama->scale = linear ? 1.0 / factor : 1.0;
    llama->tables = llama->divisors || llama->magnitude != 1.0;
    return STATUS_OK;
}

static Status read_parameters(Llama *llama) {
    int64_t width, heads;
    TRY(find_architecture(llama));
    TRY(check_variant(llama));
    TRY(read_count(llama, "block_count", -1, &llama->layer_count));
    TRY(read_count(llama, "embedding_length", -1, &width));
    TRY(read_layer_count(llama, "attention.head_count", 0, -1, &heads));
    TRY(read_count(llama, "attention.key_length", width / heads, &llama->head_dim));
    if (llama->head_dim > HEAD_DIM_MAX)
        return fail_meta(llama, "attention.key_length", "is more than a head can have");
    TRY(read_count(llama, "context_length", 0, &llama->context));
    TRY(read_number(llama, "attention.layer_norm_rms_epsilon", 1e-5, &llama->eps));
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

static Status load_head_norm(Llama *llama, int64_t layer, const char *word, Tensor **out) {
    char name[96];
    snprintf(name, sizeof name, "blk.%lld.%s.weight", (long long)layer, word);
    return model_has_tensor(llama->model, name) ? model_tensor(llama->model, name, out) : STATUS_OK;
}

static Status load_layer(Llama *llama, int64_t index) {
    Layer *layer = &llama->layers[index];
    TRY(load_norm(llama, index, "attn_norm", &layer->attention_norm));
    TRY(load_norm(llama, index, "ffn_norm", &layer->feed_forward_norm));
    TRY(load_head_norm(llama, index, "attn_q_norm", &layer->q_norm));
    TRY(load_head_norm(llama, index, "attn_k_norm", &layer->k_norm));
    TRY(load_projection(llama, index, "attn_q", &layer->q));
    TRY(load_projection(llama, index, "attn_k", &layer->k));
    TRY(load_projection(llama, index, "attn_v", &layer->v));
    TRY(read_layer_count(llama, "attention.head_count", index, -1, &layer->q.heads));
    TRY(read_layer_count(llama, "attention.head_count_kv", index, layer->q.heads, &layer->k.heads));
    layer->v.heads = layer->k.heads;
    TRY(load_projection(llama, index, "attn_output", &layer->mixed));
    TRY(load_projection(llama, index, "ffn_gate", &layer->gate));
    TRY(load_projection(llama, index, "ffn_up", &layer->up));
    return load_projection(llama, index, "ffn_down", &layer->down);
}

// The last layer must be there before room is made for as many as the file claims.
static Status check_layers(const Llama *llama) {
    char name[96];
    Tensor *found;
    snprintf(name, sizeof name, "blk.%lld.attn_norm.weight", (long long)llama->layer_count - 1);
    if (model_has_tensor(llama->model, name)) return STATUS_OK;
    return model_tensor(llama->model, name, &found); // which says so
}

static Status load(Llama *llama) {
    TRY(read_parameters(llama));
    TRY(check_layers(llama));
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
        tensor_release(layer->q_norm);
        tensor_release(layer->k_norm);
        tensor_release(layer->attention_norm);
        tensor_release(layer->feed_forward_norm);
    }
    free(llama->layers);
    free(llama->divisors);
    tensor_release(llama->cosines);
    tensor_release(llama->sines);
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

// Where nearly all time goes, so that a pass ends soon after the user asks for it.
static Status project(const Projection *projection, Tensor *x, Tensor **out) {
    if (device_is_interrupted()) return fail(STATUS_INTERRUPT, "interrupted");
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
                            Tensor **out) {
    SCOPED_TENSOR(flat);
    TRY(project(projection, x, &flat));
    return reshape(
        flat, (Shape){.rank = 3, .dims = {x->view.dims[0], projection->heads, llama->head_dim}},
        out);
}

// Cosines and sines of the angles of `rows` positions from here on, [rows, pairs].
static Status make_tables(Llama *llama, int64_t rows) {
    int64_t pairs = llama->rotary / 2;
    Shape shape = {.rank = 2, .dims = {rows, pairs}};
    double *cosines = memory_allocate((size_t)(rows * pairs + 1) * sizeof *cosines);
    double *sines = memory_allocate((size_t)(rows * pairs + 1) * sizeof *sines);
    for (int64_t i = 0; i < rows * pairs; i++) {
        int64_t pair = i % pairs, position = llama->position + i / pairs;
        double frequency = pow(llama->base, -2.0 * (double)pair / (double)llama->rotary);
        if (llama->divisors) frequency /= llama->divisors[pair];
        double angle = (double)position * llama->scale * frequency;
        cosines[i] = llama->magnitude * cos(angle);
        sines[i] = llama->magnitude * sin(angle);
    }
    tensor_release(llama->cosines);
    tensor_release(llama->sines);
    llama->cosines = llama->sines = NULL;
    Status status = tensor_from_floats(cosines, &shape, DTYPE_FLOAT32, &llama->cosines);
    if (status == STATUS_OK)
        status = tensor_from_floats(sines, &shape, DTYPE_FLOAT32, &llama->sines);
    free(cosines);
    free(sines);
    return status;
}

static Status rotate(const Llama *llama, Tensor *x, Tensor **out) {
    OpAttributes attributes = {.given = ATTRIBUTE_BIT(style) | ATTRIBUTE_BIT(rotary),
                               .style = llama->architecture->rope_style,
                               .rotary = llama->rotary};
    if (llama->tables)
        return op_with(OP_rope_tables, (Tensor *[]){x, llama->cosines, llama->sines}, 3,
                       &attributes, out);
    attributes.given |= ATTRIBUTE_BIT(offset) | ATTRIBUTE_BIT(base) | ATTRIBUTE_BIT(scale);
    attributes.offset = llama->position;
    attributes.base = llama->base;
    attributes.scale = llama->scale;
    return op_with(OP_rope, &x, 1, &attributes, out);
}

// The same, perhaps normalised by head, rotated by its rows' positions.
static Status project_rotated(const Llama *llama, const Projection *projection, Tensor *norm,
                              Tensor *x, Tensor **out) {
    SCOPED_TENSOR(split);
    SCOPED_TENSOR(normal);
    TRY(project_heads(llama, projection, x, &split));
    if (norm) TRY(normalise(llama, split, norm, &normal));
    return rotate(llama, norm ? normal : split, out);
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
    TRY(project_rotated(llama, &layer->q, layer->q_norm, x, &q));
    TRY(project_rotated(llama, &layer->k, layer->k_norm, x, &k));
    TRY(project_heads(llama, &layer->v, x, &v));
    TRY(kv_cache_append(llama->cache, index, k, v));
    TRY(kv_cache_keys(llama->cache, index, &keys));
    TRY(kv_cache_values(llama->cache, index, &values));
    OpAttributes causal = {.given = ATTRIBUTE_BIT(causal), .causal = true};
    TRY(op_with(OP_attention, (Tensor *[]){q, keys, values}, 3, &causal, &mixed));
    Shape shape = {.rank = 2, .dims = {x->view.dims[0], layer->q.heads * llama->head_dim}};
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

// The layers' results for rows that follow each other.
static Status run_rows(Llama *llama, const int64_t *ids, size_t count, Tensor **out) {
    SCOPED_TENSOR(x);
    if (llama->tables) TRY(make_tables(llama, (int64_t)count));
    TRY(embed(llama, ids, count, &x));
    for (int64_t i = 0; i < llama->layer_count; i++) TRY(run_layer(llama, i, &x));
    llama->position += (int64_t)count;
    *out = tensor_retain(x);
    return STATUS_OK;
}

// A long text goes through in parts: no operation takes long, and none needs much memory.
Status llama_forward(Llama *llama, const int64_t *ids, size_t count, Tensor **out) {
    ASSERT(count > 0);
    SCOPED_TENSOR(x);
    SCOPED_TENSOR(row);
    SCOPED_TENSOR(last);
    SCOPED_TENSOR(normal);
    SCOPED_TENSOR(logits);
    for (size_t done = 0; done < count; done += ROWS_MAX) {
        size_t rows = count - done < ROWS_MAX ? count - done : ROWS_MAX;
        tensor_release(x);
        x = NULL;
        TRY(run_rows(llama, ids + done, rows, &x));
    }
    TRY(tensor_select(x, 0, -1, &row));
    TRY(reshape(row, (Shape){.rank = 2, .dims = {1, tensor_count(row)}}, &last));
    TRY(normalise(llama, last, llama->norm, &normal));
    TRY(project(&llama->output, normal, &logits));
    return reshape(logits, (Shape){.rank = 1, .dims = {tensor_count(logits)}}, out);
}
