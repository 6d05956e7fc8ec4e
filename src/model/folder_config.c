// config.json in the words of GGUF's metadata.
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/folder.h"
#include "tensor/compose.h"

typedef enum ConfigKind { CONFIG_INTEGER, CONFIG_NUMBER, CONFIG_BOOL } ConfigKind;

typedef struct ConfigRow {
    const char *key, *word; // the word follows the architecture's name
    ConfigKind kind;
} ConfigRow;

static const ConfigRow rows[] = {
    {"num_hidden_layers", "block_count", CONFIG_INTEGER},
    {"n_layer", "block_count", CONFIG_INTEGER},
    {"hidden_size", "embedding_length", CONFIG_INTEGER},
    {"n_embd", "embedding_length", CONFIG_INTEGER},
    {"d_model", "embedding_length", CONFIG_INTEGER},
    {"n_layers", "block_count", CONFIG_INTEGER},
    {"n_heads", "attention.head_count", CONFIG_INTEGER},
    {"max_seq_len", "context_length", CONFIG_INTEGER},
    {"alibi_bias_max", "attention.max_alibi_bias", CONFIG_NUMBER},
    {"llama_4_scaling_beta", "attention.temperature_scale", CONFIG_NUMBER},
    {"ffn_hidden_size", "feed_forward_length", CONFIG_INTEGER},
    {"n_inner", "feed_forward_length", CONFIG_INTEGER},
    {"intermediate_size", "feed_forward_length", CONFIG_INTEGER},
    {"moe_intermediate_size", "expert_feed_forward_length", CONFIG_INTEGER},
    {"num_attention_heads", "attention.head_count", CONFIG_INTEGER},
    {"n_head", "attention.head_count", CONFIG_INTEGER},
    {"num_key_value_heads", "attention.head_count_kv", CONFIG_INTEGER},
    {"num_kv_heads", "attention.head_count_kv", CONFIG_INTEGER},
    {"head_dim", "attention.key_length", CONFIG_INTEGER},
    {"v_head_dim", "attention.value_length", CONFIG_INTEGER},
    {"head_dim", "attention.value_length", CONFIG_INTEGER},
    {"q_lora_rank", "attention.q_lora_rank", CONFIG_INTEGER},
    {"kv_lora_rank", "attention.kv_lora_rank", CONFIG_INTEGER},
    {"rotary_dim", "rope.dimension_count", CONFIG_INTEGER},
    {"max_position_embeddings", "context_length", CONFIG_INTEGER},
    {"n_positions", "context_length", CONFIG_INTEGER},
    {"vocab_size", "vocab_size", CONFIG_INTEGER},
    {"num_local_experts", "expert_count", CONFIG_INTEGER},
    {"num_experts", "expert_count", CONFIG_INTEGER},
    {"n_routed_experts", "expert_count", CONFIG_INTEGER},
    {"moe_num_experts", "expert_count", CONFIG_INTEGER},
    {"num_experts_per_tok", "expert_used_count", CONFIG_INTEGER},
    {"moe_k", "expert_used_count", CONFIG_INTEGER},
    {"n_shared_experts", "expert_shared_count", CONFIG_INTEGER},
    {"moe_num_shared_experts", "expert_shared_count", CONFIG_INTEGER},
    {"first_k_dense_replace", "leading_dense_block_count", CONFIG_INTEGER},
    {"moe_layer_start_index", "leading_dense_block_count", CONFIG_INTEGER},
    {"moe_layer_interval", "interleave_moe_layer_step", CONFIG_INTEGER},
    {"conv_L_cache", "shortconv.l_cache", CONFIG_INTEGER},
    {"n_group", "expert_group_count", CONFIG_INTEGER},
    {"topk_group", "expert_group_used_count", CONFIG_INTEGER},
    {"routed_scaling_factor", "expert_weights_scale", CONFIG_NUMBER},
    {"norm_topk_prob", "expert_weights_norm", CONFIG_BOOL},
    {"use_parallel_residual", "use_parallel_residual", CONFIG_BOOL},
    {"sliding_window", "attention.sliding_window", CONFIG_INTEGER},
    {"original_max_position_embeddings", "rope.scaling.original_context_length", CONFIG_INTEGER},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", CONFIG_NUMBER},
    {"layer_norm_eps", "attention.layer_norm_epsilon", CONFIG_NUMBER},
    {"layer_norm_epsilon", "attention.layer_norm_epsilon", CONFIG_NUMBER},
    {"norm_epsilon", "attention.layer_norm_epsilon", CONFIG_NUMBER},
    {"clip_qkv", "attention.clamp_kqv", CONFIG_NUMBER},
    {"logit_scale", "logit_scale", CONFIG_NUMBER},
    {"rope_theta", "rope.freq_base", CONFIG_NUMBER},
    {"rope_local_base_freq", "rope.freq_base_swa", CONFIG_NUMBER},
    {"attn_logit_softcapping", "attn_logit_softcapping", CONFIG_NUMBER},
    {"final_logit_softcapping", "final_logit_softcapping", CONFIG_NUMBER},
    {"embedding_multiplier", "embedding_scale", CONFIG_NUMBER},
    {"residual_multiplier", "residual_scale", CONFIG_NUMBER},
    {"attention_multiplier", "attention.scale", CONFIG_NUMBER},
    {"logits_scaling", "logit_scale", CONFIG_NUMBER},
};

// Where metadata goes, and what messages name.
typedef struct Target {
    Metadata *metadata;
    const char *folder, *architecture;
} Target;

// Of several spellings the first counts.
static void put(const Target *target, const char *word, const MetaValue *value) {
    SCOPED_TEXT(key);
    ASSERT(target->architecture != NULL);
    text_format(&key, "%s.%s", target->architecture, word);
    if (!metadata_find(target->metadata, text_get(&key)))
        metadata_put(target->metadata, text_get(&key), value);
}

static void put_number(const Target *target, const char *word, double number) {
    put(target, word, &(MetaValue){.type = META_FLOAT32, .as.number = (double)(float)number});
}

static void put_integer(const Target *target, const char *word, int64_t number) {
    ASSERT(word[0] != '\0');
    bool narrow = number >= 0 && number <= UINT32_MAX;
    put(target, word,
        &(MetaValue){.type = narrow ? META_UINT32 : META_INT64, .as.integer = number});
}

static void put_text(const Target *target, const char *word, const char *text) {
    put(target, word, &(MetaValue){.type = META_STRING, .as.string = {text, strlen(text)}});
}

static bool is_kind(const json_t *value, ConfigKind kind) {
    if (kind == CONFIG_BOOL) return json_is_boolean(value);
    return kind == CONFIG_INTEGER ? json_is_integer(value) : json_is_number(value);
}

static Status put_row(const Target *target, const json_t *object, const ConfigRow *row) {
    static const char *const words[] = {"an integer", "a number", "true or false"};
    const json_t *value = json_object_get(object, row->key);
    if (!value || json_is_null(value)) return STATUS_OK;
    if (!is_kind(value, row->kind))
        return fail(STATUS_FORMAT, "%s/config.json: %s is not %s", target->folder, row->key,
                    words[row->kind]);
    if (row->kind == CONFIG_NUMBER)
        put_number(target, row->word, json_number_value(value));
    else if (row->kind == CONFIG_INTEGER)
        put_integer(target, row->word, json_integer_value(value));
    else
        put(target, row->word, &(MetaValue){.type = META_BOOL, .as.integer = json_is_true(value)});
    return STATUS_OK;
}

static Status put_rows(const Target *target, const json_t *object) {
    bool unlimited = json_is_false(json_object_get(object, "use_sliding_window"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!unlimited || strcmp(rows[i].key, "sliding_window") != 0)
            TRY(put_row(target, object, &rows[i]));
    return STATUS_OK;
}

// --- rotary positions

const json_t *folder_rotation(const json_t *config) {
    const json_t *scaling = json_object_get(config, "rope_parameters");
    const json_t *whole = json_object_get(scaling, "full_attention"); // of layers without a window
    if (json_is_object(whole)) return whole;
    return json_is_object(scaling) ? scaling : json_object_get(config, "rope_scaling");
}

static const char *scaling_kind(const json_t *scaling) {
    const char *kind = json_string_value(json_object_get(scaling, "rope_type"));
    if (!kind) kind = json_string_value(json_object_get(scaling, "type"));
    return kind ? kind : "default";
}

static double number_of(const json_t *object, const char *key, double fallback) {
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : fallback;
}

double folder_head_size(const json_t *config) {
    double heads = number_of(config, "num_attention_heads", 1);
    return number_of(config, "head_dim", number_of(config, "hidden_size", 0) / heads);
}

enum { LAYERS_MAX = 4096 };

static double context_of(const json_t *config) {
    return number_of(config, "max_position_embeddings", 0);
}

// The contexts of training and of use, where angles are scaled.
static double original_context(const json_t *config, const json_t *scaling) {
    double own = number_of(config, "original_max_position_embeddings", context_of(config));
    return number_of(scaling, "original_max_position_embeddings", own);
}

static void put_yarn(const Target *target, const json_t *scaling, double factor) {
    double all = number_of(scaling, "mscale_all_dim", 0), some = number_of(scaling, "mscale", 0);
    double grown = 1 + 0.1 * log(factor), of_all = 1 + 0.1 * all * log(factor);
    double given = all > 0 && some > 0 ? (1 + 0.1 * some * log(factor)) / of_all : grown;
    bool latent = strcmp(target->architecture, "deepseek2") == 0;
    bool divided = all > 0 && (latent || strcmp(target->architecture, "mistral3") == 0);
    double own = !divided ? grown : latent ? 1 : grown / of_all; // what readers multiply by
    double more = number_of(scaling, "attention_factor", given) / own;
    if (fabs(more - 1) > 1e-6) put_number(target, "rope.scaling.attn_factor", more);
    if (divided) put_number(target, "rope.scaling.yarn_log_multiplier", latent ? 0.1 * all : all);
    put_number(target, "rope.scaling.yarn_beta_fast", number_of(scaling, "beta_fast", 32));
    put_number(target, "rope.scaling.yarn_beta_slow", number_of(scaling, "beta_slow", 1));
}

static void put_longrope(const Target *target, const json_t *config, const json_t *scaling) {
    double original = original_context(config, scaling), ratio = context_of(config) / original;
    double own = ratio > 1 ? sqrt(1.0 + log(ratio) / log(original)) : 1.0;
    put_number(target, "rope.scaling.attn_factor", number_of(scaling, "attention_factor", own));
}

static void put_scaling(const Target *target, const json_t *config) {
    const json_t *scaling = folder_rotation(config);
    const char *kind = scaling_kind(scaling);
    if (strcmp(kind, "su") == 0) kind = "longrope";
    bool plain = strcmp(kind, "default") == 0 || strcmp(kind, "llama3") == 0 ||
                 strcmp(kind, "mrope") == 0;           // of texts, whose positions are one number
    if (plain || strcmp(kind, "dynamic") == 0) return; // which changes nothing within the context
    double factor = number_of(scaling, "factor", 1.0);
    put_text(target, "rope.scaling.type", kind);
    put_integer(target, "rope.scaling.original_context_length",
                (int64_t)original_context(config, scaling));
    if (strcmp(kind, "longrope") == 0) {
        put_longrope(target, config, scaling);
        return;
    }
    put_number(target, "rope.scaling.factor", factor);
    if (strcmp(kind, "yarn") == 0) put_yarn(target, scaling, factor);
}

// How much of a head rotates.
static double rotated_part(const json_t *config) {
    double apart = number_of(folder_rotation(config), "partial_rotary_factor", 1);
    return number_of(config, "partial_rotary_factor", apart);
}

static Status put_rotation(const Target *target, const json_t *config) {
    double part = rotated_part(config);
    if (part < 1)
        put_integer(target, "rope.dimension_count", (int64_t)(folder_head_size(config) * part));
    TRY(put_rows(target, folder_rotation(config)));
    const json_t *near =
        json_object_get(json_object_get(config, "rope_parameters"), "sliding_attention");
    if (near) put_number(target, "rope.freq_base_swa", number_of(near, "rope_theta", 10000));
    put_scaling(target, config);
    return STATUS_OK;
}

static Status add_factors(Reader *reader, const char *name, const float *factors, int64_t count) {
    SCOPED_TENSOR(tensor);
    Shape shape = {.rank = 1, .dims = {count}};
    TRY(stored_new(DTYPE_FLOAT32, &shape, &tensor));
    TRY(buffer_upload(tensor->view.buffer, tensor->view.offset, factors, (size_t)count * 4));
    reader_add_tensor(reader, name, tensor);
    return STATUS_OK;
}

enum { PAIRS_MAX = 32768 };

// Llama 3: angles that turn fast stay, slow ones are divided, those between are mixed.
static Status add_llama3(const json_t *config, const json_t *scaling, Reader *reader) {
    int64_t size = (int64_t)(folder_head_size(config) * rotated_part(config)), pairs = size / 2;
    double factor = number_of(scaling, "factor", 8),
           slow = number_of(scaling, "low_freq_factor", 1);
    double fast = number_of(scaling, "high_freq_factor", 4);
    double context = number_of(scaling, "original_max_position_embeddings", 8192);
    double base = number_of(config, "rope_theta", number_of(scaling, "rope_theta", 10000));
    if (pairs < 1 || pairs > PAIRS_MAX) return STATUS_OK; // the page refuses such heads
    float factors[PAIRS_MAX];
    for (int64_t i = 0; i < pairs; i++) {
        double wavelength = 2 * M_PI * pow(base, 2.0 * (double)i / (double)size);
        double kept = (context / wavelength - slow) / (fast - slow);
        kept = kept < 0 ? 0 : kept > 1 ? 1 : kept;
        factors[i] = (float)(1 / ((1 - kept) / factor + kept));
    }
    return add_factors(reader, "rope_freqs.weight", factors, pairs);
}

static Status add_list(const char *folder, const json_t *scaling, const char *key, const char *name,
                       Reader *reader) {
    const json_t *list = json_object_get(scaling, key);
    size_t count = json_array_size(list);
    if (count == 0 || count > PAIRS_MAX)
        return fail(STATUS_FORMAT, "%s/config.json: %s is not a list of numbers", folder, key);
    float factors[PAIRS_MAX];
    for (size_t i = 0; i < count; i++)
        factors[i] = (float)json_number_value(json_array_get(list, i));
    return add_factors(reader, name, factors, (int64_t)count);
}

Status folder_add_factors(const char *folder, const json_t *config, Reader *reader) {
    const json_t *scaling = folder_rotation(config);
    const char *kind = scaling_kind(scaling);
    if (strcmp(kind, "llama3") == 0) return add_llama3(config, scaling, reader);
    if (strcmp(kind, "longrope") != 0 && strcmp(kind, "su") != 0) return STATUS_OK;
    TRY(add_list(folder, scaling, "short_factor", "rope_factors_short.weight", reader));
    return add_list(folder, scaling, "long_factor", "rope_factors_long.weight", reader);
}

// --- what some families say in their own way

const json_t *folder_heads(const json_t *config) {
    const json_t *heads = json_object_get(config, "num_attention_heads");
    if (!heads) heads = json_object_get(config, "n_head");
    return heads ? heads : json_object_get(config, "n_heads");
}

int64_t folder_layers(const json_t *config) {
    static const char *const words[] = {"num_hidden_layers", "n_layer", "n_layers"};
    int64_t layers = 0;
    for (int i = 0; i < 3 && layers == 0; i++)
        layers = json_integer_value(json_object_get(config, words[i]));
    return layers;
}

// The heads of keys by which joined rows lie.
int64_t folder_groups(const json_t *config, const FolderFamily *family) {
    if (!family->grouped) return 0;
    if (json_is_true(json_object_get(config, "new_decoder_architecture")))
        return json_integer_value(json_object_get(config, "num_kv_heads"));
    // One key and value for all heads: the joined rows are in order.
    return json_is_true(json_object_get(config, "multi_query"))
               ? 0
               : json_integer_value(folder_heads(config));
}

static void put_heads_and_experts(const Target *target, const json_t *config) {
    if (json_is_true(json_object_get(config, "multi_query")) &&
        !json_is_true(json_object_get(config, "new_decoder_architecture")))
        put_integer(target, "attention.head_count_kv", 1);
    const json_t *used = json_object_get(config, "moe_topk"); // for each layer, or a list of them
    if (json_is_array(used)) used = json_array_get(used, 0);
    if (json_is_integer(used)) put_integer(target, "expert_used_count", json_integer_value(used));
    ASSERT(target->metadata != NULL);
    double plain = number_of(config, "qk_nope_head_dim", 0), turned;
    if (plain == 0) return;
    turned = number_of(config, "qk_rope_head_dim", 0);
    put_integer(target, "attention.key_length", (int64_t)(plain + turned));
    put_integer(target, "rope.dimension_count", (int64_t)turned);
}

static void put_scale(const Target *target, const json_t *config) {
    double width = number_of(config, "query_pre_attn_scalar", 0);
    if (width > 0) put_number(target, "attention.scale", 1 / sqrt(width));
}

static bool is_one_of(const char *name, const char *one, const char *other) {
    return name && (strcmp(name, one) == 0 || strcmp(name, other) == 0);
}

// Layers that convolve in place of attention have no heads of keys.
static void put_layers_without_keys(const Target *target, const json_t *config) {
    const json_t *types = json_object_get(config, "layer_types");
    uint32_t heads[LAYERS_MAX];
    size_t count = json_array_size(types), without = 0;
    ASSERT(target->metadata != NULL);
    for (size_t i = 0; i < count && i < LAYERS_MAX; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        bool none = type && strcmp(type, "conv") == 0;
        heads[i] = none ? 0 : (uint32_t)number_of(config, "num_key_value_heads", 0);
        without += none;
    }
    if (without == 0 || count > LAYERS_MAX) return;
    MetaValue list = {.type = META_ARRAY,
                      .as.array = {.type = META_UINT32,
                                   .count = count,
                                   .length = count * sizeof *heads,
                                   .bytes = (const uint8_t *)heads}};
    put(target, "attention.head_count_kv", &list);
}

// Which layers see a window only: a boolean each.
static Status put_pattern(const Target *target, const json_t *config) {
    const json_t *types = json_object_get(config, "layer_types");
    int64_t first = (int64_t)number_of(config, "max_window_layers", 0);
    bool by_number = !types && json_is_true(json_object_get(config, "use_sliding_window"));
    double layers = number_of(config, "num_hidden_layers", 0);
    size_t count = types ? json_array_size(types) : by_number && layers > 0 ? (size_t)layers : 0;
    if (count == 0 || count > LAYERS_MAX) return STATUS_OK;
    uint8_t limited[LAYERS_MAX];
    ASSERT(types || by_number);
    for (size_t i = 0; i < count; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        limited[i] = types ? type && strcmp(type, "sliding_attention") == 0 : (int64_t)i >= first;
        if (types && !limited[i] && !is_one_of(type, "full_attention", "conv"))
            return fail(STATUS_FORMAT, "%s/config.json: layer_types has %s, which is not supported",
                        target->folder, type ? type : "what is not a name");
    }
    put(target, "attention.sliding_window_pattern",
        &(MetaValue){
            .type = META_ARRAY,
            .as.array = {.type = META_BOOL, .count = count, .length = count, .bytes = limited}});
    return STATUS_OK;
}

// What a page computes with is not in the metadata.
static Status check_activation(const char *folder, const json_t *config, const char *expected) {
    static const char *const keys[] = {"hidden_activation", "hidden_act", "activation_function",
                                       "activation"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        ASSERT(expected != NULL);
        const char *name = json_string_value(json_object_get(config, keys[i]));
        if (!name || strncmp(name, expected, strlen(expected)) == 0) continue;
        return fail(STATUS_FORMAT, "%s/config.json: %s is %s, but %s is what such models have",
                    folder, keys[i], name, expected);
    }
    return STATUS_OK;
}

// --- the template of chats

// One template, or several by name, of which the one called default counts.
static const char *template_of(const json_t *settings) {
    const json_t *found = json_object_get(settings, "chat_template"), *each;
    size_t i;
    if (json_is_string(found)) return json_string_value(found);
    json_array_foreach(found, i, each) {
        const char *name = json_string_value(json_object_get(each, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_string_value(json_object_get(each, "template"));
    }
    return NULL;
}

static const char template_key[] = "tokenizer.chat_template";

static Status put_template_file(Metadata *metadata, const char *path) {
    FileMap *map;
    TRY(file_map_open(path, &map));
    MetaValue value = {
        .type = META_STRING,
        .as.string = {(const char *)file_map_bytes(map), file_map_length(map)},
    };
    metadata_put(metadata, template_key, &value);
    Status status = file_map_check(map);
    file_map_release(map);
    return status;
}

static Status put_template(Metadata *metadata, const char *folder) {
    SCOPED_TEXT(path);
    text_format(&path, "%s/chat_template.jinja", folder);
    bool apart = access(text_get(&path), F_OK) == 0;
    Status status = apart ? put_template_file(metadata, text_get(&path)) : STATUS_OK;
    if (apart) return status;
    json_auto_t *settings = NULL;
    TRY(folder_json(folder, "tokenizer_config.json", false, &settings));
    const char *text = template_of(settings);
    if (text) metadata_put_string(metadata, template_key, text);
    return STATUS_OK;
}

// --- what the tensors say

// The last size of the first tensor whose name ends so; 0: there is none.
static int64_t columns_of(const Reader *reader, const char *end) {
    for (size_t i = 0; i < reader->tensors.count; i++) {
        const StoredTensor *tensor = &reader->tensors.items[i];
        size_t length = strlen(tensor->name), size = strlen(end);
        if (length < size || strcmp(tensor->name + length - size, end) != 0) continue;
        return tensor->shape.rank > 0 ? tensor->shape.dims[tensor->shape.rank - 1] : 0;
    }
    return 0;
}

void folder_put_widths(const char *folder, const FolderFamily *family, Reader *reader) {
    static const char *const widths[][2] = {
        {".ffn_down.weight", "feed_forward_length"},
        {".ffn_down_exps.weight", "expert_feed_forward_length"},
        {".ffn_down.0.weight", "expert_feed_forward_length"},
        {".ffn_down_shexp.weight", "expert_shared_feed_forward_length"},
    };
    Target target = {&reader->metadata, folder, family->architecture};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        int64_t columns = columns_of(reader, widths[i][0]);
        if (columns > 0) put_integer(&target, widths[i][1], columns);
    }
}

// --- all of it

Status folder_metadata(const char *folder, const json_t *config, const FolderFamily *family,
                       Metadata *out) {
    Target target = {out, folder, family->architecture};
    metadata_put_string(out, "general.architecture", family->architecture);
    if (family->by_sigmoid) put_integer(&target, "expert_gating_func", 2);
    put_heads_and_experts(&target, config);
    put_scale(&target, config);
    put_layers_without_keys(&target, config);
    if (!family->encodes) // whose pages know several
        TRY(check_activation(folder, config, family->activation ? family->activation : "silu"));
    const ConfigRow eps = {"norm_eps",
                           family->centred ? "attention.layer_norm_epsilon"
                                           : "attention.layer_norm_rms_epsilon",
                           CONFIG_NUMBER};
    TRY(put_row(&target, config, &eps));
    TRY(put_rows(&target, config));
    TRY(put_rows(&target, json_object_get(config, "attn_config")));
    if (family->centred) put_number(&target, "attention.layer_norm_epsilon", 1e-5);
    if (json_is_true(json_object_get(config, "alibi")))
        put_number(&target, "attention.max_alibi_bias", 8);
    TRY(put_pattern(&target, config));
    TRY(put_rotation(&target, config));
    return put_template(out, folder);
}
