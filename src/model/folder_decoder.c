// Decoders: what their config.json leaves to defaults, says in older words, or asks for in vain.
#include <math.h>
#include <string.h>

#include "model/folder.h"

// What Transformers takes for keys that a published config.json may leave out.
typedef struct DefaultRow {
    const char *model_type, *json;
} DefaultRow;

static const DefaultRow defaults[] = {
    {"llama", "{\"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\": 32,"
              " \"rms_norm_eps\": 1e-6, \"max_position_embeddings\": 2048}"},
    {"mistral", "{\"hidden_size\": 4096, \"num_hidden_layers\": 32, \"num_attention_heads\": 32,"
                " \"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-6, \"sliding_window\": 4096,"
                " \"max_position_embeddings\": 131072}"},
    {"mixtral", "{\"num_key_value_heads\": 8, \"rope_theta\": 1e6, \"num_local_experts\": 8,"
                " \"num_experts_per_tok\": 2}"},
    {"qwen2", "{\"rms_norm_eps\": 1e-6}"},
    {"qwen3", "{\"head_dim\": 128, \"rms_norm_eps\": 1e-6}"},
    {"qwen2_moe", "{\"rms_norm_eps\": 1e-6}"},
    {"qwen3_moe", "{\"rms_norm_eps\": 1e-6}"},
    {"gemma", "{\"head_dim\": 256, \"num_attention_heads\": 16, \"num_key_value_heads\": 16,"
              " \"rms_norm_eps\": 1e-6}"},
    {"gemma2", "{\"head_dim\": 256, \"num_attention_heads\": 8, \"num_key_value_heads\": 4,"
               " \"rms_norm_eps\": 1e-6, \"query_pre_attn_scalar\": 256}"},
    {"gemma3_text", "{\"hidden_size\": 2304, \"num_hidden_layers\": 26, \"head_dim\": 256,"
                    " \"num_attention_heads\": 8, \"num_key_value_heads\": 4,"
                    " \"rms_norm_eps\": 1e-6, \"query_pre_attn_scalar\": 256,"
                    " \"rope_theta\": 1e6, \"sliding_window\": 4096,"
                    " \"max_position_embeddings\": 131072}"},
    {"granite", "{\"rms_norm_eps\": 1e-6}"},
    {"smollm3", "{\"rms_norm_eps\": 1e-6, \"rope_theta\": 2e6}"},
    {"phi", "{\"partial_rotary_factor\": 0.5}"},
    {"stablelm", "{\"partial_rotary_factor\": 0.25}"},
    {"gpt_neox", "{\"partial_rotary_factor\": 0.25}"},
    {"glm", "{\"partial_rotary_factor\": 0.5}"},
    {"nemotron", "{\"partial_rotary_factor\": 0.5}"},
};

typedef struct Spelling {
    const char *from, *to;
} Spelling;

static const Spelling spellings[] = {
    {"n_embed", "hidden_size"},
    {"rotary_emb_base", "rope_theta"},
    {"rotary_pct", "partial_rotary_factor"},
    {"rope_pct", "partial_rotary_factor"},
};

// What changes the network into one that no page computes.
typedef struct Refusal {
    const char *key;
    bool value;
} Refusal;

static const Refusal refusals[] = {
    {"scale_attn_weights", false},
    {"scale_attn_by_inverse_layer_idx", true},
    {"parallel_attn", false},
    {"apply_residual_connection_post_layernorm", true},
};

static Status refuse(const char *folder, const json_t *config) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const json_t *value = json_object_get(config, refusals[i].key);
        if (!json_is_boolean(value) || json_is_true(value) != refusals[i].value) continue;
        return fail(STATUS_FORMAT, "%s/config.json: %s: %s is not supported", folder,
                    refusals[i].key, refusals[i].value ? "true" : "false");
    }
    return STATUS_OK;
}

static void rename_keys(json_t *config) {
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        json_t *value = json_object_get(config, spellings[i].from);
        if (value && !json_object_get(config, spellings[i].to))
            json_object_set(config, spellings[i].to, value);
    }
}

static void add_defaults(json_t *config, const char *model_type) {
    const json_t *rotation = json_object_get(config, "rope_parameters");
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++) {
        if (strcmp(defaults[i].model_type, model_type) != 0) continue;
        json_auto_t *more = json_loads(defaults[i].json, 0, NULL);
        ASSERT(json_is_object(more));
        if (json_is_object(rotation)) {
            json_object_del(more, "rope_theta");
            json_object_del(more, "partial_rotary_factor");
        }
        json_object_update_missing(config, more);
    }
}

// Hunyuan stretches angles by a base that is larger from the start.
static void stretch_base(json_t *config) {
    const json_t *scaling = folder_rotation(config);
    const json_t *alpha = json_object_get(scaling, "alpha");
    const json_t *base = json_object_get(config, "rope_theta");
    if (!base) base = json_object_get(scaling, "rope_theta");
    double size = folder_head_size(config);
    if (!json_is_number(alpha) || !(json_number_value(alpha) > 0) || !(size > 2)) return;
    double plain = json_is_number(base) ? json_number_value(base) : 10000;
    double stretched = plain * pow(json_number_value(alpha), size / (size - 2));
    if (isfinite(stretched)) json_object_set_new(config, "rope_theta", json_real(stretched));
}

Status folder_decoder_config(const char *folder, const FolderFamily *family, const json_t *config,
                             json_t **out) {
    TRY(refuse(folder, config));
    json_t *own = json_copy((json_t *)(uintptr_t)config);
    rename_keys(own);
    add_defaults(own, family->model_type);
    stretch_base(own);
    *out = own;
    return STATUS_OK;
}
