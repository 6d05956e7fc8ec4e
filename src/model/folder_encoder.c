// Encoders: their config.json in the words that others use, and what sentence-transformers' files
// say of the vectors that become of texts.
#include <string.h>

#include "model/folder.h"
#include "model/safetensors.h"

// --- config.json

typedef struct KeyRow {
    const char *from, *to;
} KeyRow;

static const KeyRow renamed[] = {
    {"dim", "hidden_size"},
    {"hidden_dim", "intermediate_size"},
    {"n_heads", "num_attention_heads"},
    {"n_layers", "num_hidden_layers"},
    {"norm_eps", "layer_norm_eps"},
    {"rotary_emb_base", "rope_theta"},
    {"rotary_emb_fraction", "partial_rotary_factor"},
    {"global_rope_theta", "rope_theta"},
    {"local_rope_theta", "rope_local_base_freq"},
    {"local_attention", "sliding_window"},
};

static Status refuse(const char *folder, const json_t *config) {
    static const char *const not_when_true[] = {"is_decoder", "prenorm", "rotary_emb_interleaved"};
    static const KeyRow not_otherwise[] = {{"position_embedding_type", "absolute"}};
    const char *key = NULL;
    for (size_t i = 0; i < sizeof not_when_true / sizeof *not_when_true; i++)
        if (json_is_true(json_object_get(config, not_when_true[i]))) key = not_when_true[i];
    const char *positions = json_string_value(json_object_get(config, not_otherwise[0].from));
    if (positions && strcmp(positions, not_otherwise[0].to) != 0) key = not_otherwise[0].from;
    const json_t *rows = json_object_get(config, "embedding_size");
    if (rows && !json_equal(rows, json_object_get(config, "hidden_size"))) key = "embedding_size";
    if (!key) return STATUS_OK;
    return fail(STATUS_FORMAT, "%s/config.json: %s is not supported", folder, key);
}

int64_t folder_positions_cut(const FolderFamily *family, const json_t *config) {
    const json_t *padding = json_object_get(config, "pad_token_id");
    int64_t last = json_is_integer(padding) ? json_integer_value(padding) : 1;
    return family->positions_cut && last >= 0 && last < INT32_MAX ? last + 1 : 0;
}

// No more positions than there are, or than were trained.
static void limit_positions(json_t *config, int64_t cut) {
    const json_t *trained = json_object_get(config, "max_trained_positions");
    const json_t *positions = json_object_get(config, "max_position_embeddings");
    if (!positions) positions = json_object_get(config, "n_positions");
    int64_t count = json_integer_value(positions) - cut;
    if (json_is_integer(trained) && json_integer_value(trained) < count)
        count = json_integer_value(trained);
    if (json_is_integer(positions) && count > 0)
        json_object_set_new(config, "max_position_embeddings", json_integer(count));
}

Status folder_encoder_config(const char *folder, const FolderFamily *family, const json_t *config,
                             json_t **out) {
    TRY(refuse(folder, config));
    json_t *own = json_copy((json_t *)(uintptr_t)config);
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        json_t *value = json_object_get(own, renamed[i].from);
        if (value && !json_object_get(own, renamed[i].to))
            json_object_set(own, renamed[i].to, value);
    }
    bool has_epsilon = json_object_get(own, "rms_norm_eps") ||
                       json_object_get(own, "layer_norm_eps") ||
                       json_object_get(own, "layer_norm_epsilon");
    if (!has_epsilon) json_object_set_new(own, "layer_norm_eps", json_real(1e-12));
    limit_positions(own, folder_positions_cut(family, config));
    *out = own;
    return STATUS_OK;
}

typedef struct Target {
    Metadata *metadata;
    const char *architecture;
} Target;

static void put(const Target *target, const char *word, const MetaValue *value) {
    SCOPED_TEXT(key);
    text_format(&key, "%s.%s", target->architecture, word);
    metadata_put(target->metadata, text_get(&key), value);
}

static void put_text(const Target *target, const char *word, const char *text) {
    put(target, word, &(MetaValue){.type = META_STRING, .as.string = {text, strlen(text)}});
}

void folder_put_encoder(const json_t *config, const FolderFamily *family, Metadata *metadata) {
    static const char *const keys[] = {"hidden_activation", "hidden_act", "activation",
                                       "activation_function"};
    Target target = {metadata, family->architecture};
    ASSERT(family->encodes);
    const char *activation = NULL;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !activation; i++)
        activation = json_string_value(json_object_get(config, keys[i]));
    if (activation && strcmp(activation, "swiglu") == 0) activation = "silu";
    if (activation) put_text(&target, "hidden_activation", activation);
    put(&target, "attention.causal", &(MetaValue){.type = META_BOOL, .as.integer = 0});
    const json_t *kinds = json_object_get(config, "type_vocab_size");
    metadata_put(
        metadata, TOKEN_TYPE_COUNT_KEY,
        &(MetaValue){.type = META_UINT32,
                     .as.integer = json_is_integer(kinds) ? json_integer_value(kinds) : 1});
    const json_t *every = json_object_get(config, "global_attn_every_n_layers");
    if (json_is_integer(every))
        put(&target, "attention.sliding_window_pattern",
            &(MetaValue){.type = META_UINT32, .as.integer = json_integer_value(every)});
}

// --- modules.json

enum { POOLING_UNKNOWN, POOLING_MEAN, POOLING_CLS, POOLING_LAST }; // as GGUF numbers them

static int pooling_of(const char *word) {
    static const char *const words[] = {"mean", "cls", "lasttoken"};
    ASSERT(word != NULL);
    for (int i = 0; i < 3; i++)
        if (strcmp(word, words[i]) == 0) return POOLING_MEAN + i;
    return POOLING_UNKNOWN;
}

// One word, or a boolean for each way.
static Status read_pooling(const json_t *config, const char *name, int *out) {
    static const char start[] = "pooling_mode";
    const char *key, *wrong = NULL;
    ASSERT(name[0] != '\0');
    const json_t *value;
    *out = POOLING_UNKNOWN;
    json_object_foreach((json_t *)(uintptr_t)config, key, value) {
        if (strncmp(key, start, sizeof start - 1) != 0) continue;
        const char *word = json_string_value(value);
        if (!word && !json_is_true(value)) continue;
        int pooling = pooling_of(word ? word : "");
        if (strcmp(key, "pooling_mode_mean_tokens") == 0) pooling = POOLING_MEAN;
        if (strcmp(key, "pooling_mode_cls_token") == 0) pooling = POOLING_CLS;
        if (strcmp(key, "pooling_mode_lasttoken") == 0) pooling = POOLING_LAST;
        if (pooling == POOLING_UNKNOWN || *out != POOLING_UNKNOWN) wrong = word ? word : key;
        *out = pooling;
    }
    if (wrong) return fail(STATUS_FORMAT, "%s: %s is not supported", name, wrong);
    return STATUS_OK;
}

typedef struct Modules {
    const char *folder;
    const FolderFamily *family;
    Reader *reader;
    Target target;
    bool pooled;
    int dense; // how many follow the pooling
} Modules;

static void name_dense(void *context, const char *name, Text *out) {
    const Modules *modules = context;
    ASSERT(modules->dense > 0);
    const char *end = strncmp(name, "linear.", 7) == 0 ? name + 7 : name;
    text_format(out, "dense_%d.%s", modules->dense + 1, end);
}

static TensorChange change_none(void *context, const char *source, const char *name) {
    (void)context;
    (void)source;
    (void)name;
    return (TensorChange){0};
}

static Status add_dense(Modules *modules, const json_t *config, const char *path) {
    const char *full = json_string_value(json_object_get(config, "activation_function"));
    const char *word = full && strrchr(full, '.') ? strrchr(full, '.') + 1 : full;
    if (word && strcmp(word, "Identity") != 0 && strcmp(word, "Tanh") != 0)
        return fail(STATUS_FORMAT, "%s/%s: the activation %s is not supported", modules->folder,
                    path, full);
    if (!modules->pooled || !modules->family->encodes)
        return fail(STATUS_FORMAT, "%s/modules.json: %s %s, which is not supported",
                    modules->folder, path,
                    modules->pooled ? "follows a decoder" : "comes before the pooling");
    modules->dense++;
    ASSERT(modules->pooled);
    SCOPED_TEXT(text);
    if (word && strcmp(word, "Tanh") == 0) {
        text_format(&text, "dense_%d_activation", modules->dense + 1);
        put_text(&modules->target, text_get(&text), "tanh");
        text_clear(&text);
    }
    FileMap *map;
    text_format(&text, "%s/%s/model.safetensors", modules->folder, path);
    Status status = file_map_open(text_get(&text), &map);
    TRY(status);
    SafetensorsNaming naming = {modules, name_dense, change_none, NULL};
    Status read = safetensors_open_named(modules->reader, map, &naming);
    status = file_map_check(map);
    file_map_release(map);
    return status == STATUS_OK ? read : status;
}

static Status add_pooling(Modules *modules, const json_t *config, const char *name) {
    int pooling;
    TRY(read_pooling(config, name, &pooling));
    modules->pooled = true;
    if (pooling != POOLING_UNKNOWN)
        put(&modules->target, "pooling_type",
            &(MetaValue){.type = META_UINT32, .as.integer = pooling});
    return STATUS_OK;
}

static bool is_one_of(const char *type, const char *word) {
    const char *last = strrchr(type, '.');
    return strcmp(last ? last + 1 : type, word) == 0;
}

static Status add_module(Modules *modules, const json_t *module) {
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *path = json_string_value(json_object_get(module, "path"));
    bool pooling = type && is_one_of(type, "Pooling");
    if (type && (is_one_of(type, "Transformer") || is_one_of(type, "Normalize"))) return STATUS_OK;
    if (!pooling && !(type && is_one_of(type, "Dense")))
        return fail(STATUS_FORMAT, "%s/modules.json: the module %s is not supported",
                    modules->folder, type ? type : "without a type");
    if (!path || !*path || strchr(path, '/') || path[0] == '.')
        return fail(STATUS_FORMAT, "%s/modules.json: \"%s\" is not the name of a folder in it",
                    modules->folder, path ? path : "");
    SCOPED_TEXT(name);
    SCOPED_TEXT(full);
    json_auto_t *config = NULL;
    text_format(&name, "%s/config.json", path);
    text_format(&full, "%s/%s", modules->folder, text_get(&name));
    TRY(folder_json(modules->folder, text_get(&name), true, &config));
    return pooling ? add_pooling(modules, config, text_get(&full))
                   : add_dense(modules, config, path);
}

Status folder_add_modules(const char *folder, const FolderFamily *family, Reader *reader) {
    json_auto_t *list = NULL;
    json_t *module;
    size_t i;
    Modules modules = {.folder = folder,
                       .family = family,
                       .reader = reader,
                       .target = {&reader->metadata, family->architecture}};
    TRY(folder_json(folder, "modules.json", false, &list));
    Status status = STATUS_OK;
    json_array_foreach(list, i, module) if (status == STATUS_OK) status =
        add_module(&modules, module);
    return status;
}
