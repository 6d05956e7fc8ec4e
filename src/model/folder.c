#include "model/folder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/mxfp4.h"
#include "model/safetensors.h"

static const FolderFamily families[] = {
    {.model_type = "llama", .architecture = "llama", .pairs = true},
    {.model_type = "mistral", .architecture = "llama", .pairs = true},
    {.model_type = "ministral", .architecture = "llama", .pairs = true},
    {.model_type = "mixtral", .architecture = "llama", .pairs = true},
    {.model_type = "qwen2", .architecture = "qwen2"},
    {.model_type = "qwen3", .architecture = "qwen3"},
    {.model_type = "qwen2_vl", .architecture = "qwen2vl"},
    {.model_type = "qwen2_vl_text", .architecture = "qwen2vl"},
    {.model_type = "qwen2_5_vl", .architecture = "qwen2vl"},
    {.model_type = "qwen2_5_vl_text", .architecture = "qwen2vl"},
    {.model_type = "qwen3_vl_text", .architecture = "qwen3vl"},
    {.model_type = "qwen2_moe", .architecture = "qwen2moe"},
    {.model_type = "qwen3_moe", .architecture = "qwen3moe"},
    {.model_type = "gemma", .architecture = "gemma", .norms_from_one = true, .activation = "gelu"},
    {.model_type = "gemma2",
     .architecture = "gemma2",
     .norms_from_one = true,
     .norms_after = true,
     .activation = "gelu"},
    {.model_type = "gemma3_text",
     .architecture = "gemma3",
     .norms_from_one = true,
     .norms_after = true,
     .activation = "gelu"},
    {.model_type = "phi", .architecture = "phi2", .activation = "gelu"},
    {.model_type = "phi3", .architecture = "phi3"},
    {.model_type = "smollm3", .architecture = "smollm3", .pairs = true},
    {.model_type = "granite", .architecture = "granite", .pairs = true},
    {.model_type = "granitemoe", .architecture = "granitemoe", .pairs = true},
    {.model_type = "granitemoeshared", .architecture = "granitemoe", .pairs = true},
    {.model_type = "olmo", .architecture = "olmo", .pairs = true, .centred = true},
    {.model_type = "olmo2", .architecture = "olmo2", .norms_after = true},
    {.model_type = "olmo3", .architecture = "olmo2", .norms_after = true},
    {.model_type = "olmoe", .architecture = "olmoe"},
    {.model_type = "gpt2", .architecture = "gpt2", .transposed = true, .activation = "gelu"},
    {.model_type = "gpt_bigcode", .architecture = "starcoder", .activation = "gelu"},
    {.model_type = "starcoder2", .architecture = "starcoder2", .activation = "gelu"},
    {.model_type = "stablelm", .architecture = "stablelm"},
    {.model_type = "gpt_neox", .architecture = "gptneox", .grouped = true, .activation = "gelu"},
    {.model_type = "gptj", .architecture = "gptj", .activation = "gelu"},
    {.model_type = "falcon", .architecture = "falcon", .grouped = true, .activation = "gelu"},
    {.model_type = "cohere", .architecture = "command-r"},
    {.model_type = "cohere2", .architecture = "cohere2"},
    {.model_type = "glm", .architecture = "chatglm"},
    {.model_type = "glm4", .architecture = "glm4"},
    {.model_type = "glm4_moe", .architecture = "glm4moe", .norms_after = true, .by_sigmoid = true},
    {.model_type = "deepseek_v2", .architecture = "deepseek2"},
    {.model_type = "deepseek_v3", .architecture = "deepseek2", .by_sigmoid = true},
    {.model_type = "kimi_k2", .architecture = "deepseek2", .by_sigmoid = true},
    {.model_type = "gpt_oss", .architecture = "gpt-oss", .norms_after = true, .alternating = true},
    {.model_type = "dots1", .architecture = "dots1", .by_sigmoid = true},
    {.model_type = "minimax_m2", .architecture = "minimax-m2", .by_sigmoid = true},
    {.model_type = "nemotron",
     .architecture = "nemotron",
     .centred = true,
     .norms_from_one = true,
     .activation = "relu2"},
    {.model_type = "arcee", .architecture = "arcee", .pairs = true, .activation = "relu2"},
    {.model_type = "exaone4", .architecture = "exaone4", .norms_after = true},
    {.model_type = "ernie4_5", .architecture = "ernie4_5"},
    {.model_type = "ernie4_5_moe", .architecture = "ernie4_5-moe"},
    {.model_type = "hunyuan_v1_dense", .architecture = "hunyuan-dense"},
    {.model_type = "hunyuan_v1_moe", .architecture = "hunyuan-moe"},
    {.model_type = "ministral3", .architecture = "mistral3", .pairs = true},
    {.model_type = "bloom", .architecture = "bloom", .grouped = true, .activation = "gelu"},
    {.model_type = "mpt", .architecture = "mpt", .centred = true, .activation = "gelu"},
    {.model_type = "lfm2", .architecture = "lfm2"},
    {.model_type = "phimoe", .architecture = "phimoe"},
    {.model_type = "seed_oss", .architecture = "seed_oss", .norms_after = true},
    {.model_type = "bert", .architecture = "bert", .encodes = true},
    {.model_type = "distilbert", .architecture = "bert", .encodes = true},
    {.model_type = "electra", .architecture = "bert", .encodes = true},
    {.model_type = "roberta", .architecture = "bert", .encodes = true, .positions_cut = true},
    {.model_type = "camembert", .architecture = "bert", .encodes = true, .positions_cut = true},
    {.model_type = "xlm-roberta", .architecture = "bert", .encodes = true, .positions_cut = true},
    {.model_type = "mpnet", .architecture = "mpnet", .encodes = true, .positions_cut = true},
    {.model_type = "nomic_bert", .architecture = "nomic-bert", .encodes = true},
    {.model_type = "modernbert", .architecture = "modern-bert", .encodes = true},
    {.model_type = "eurobert", .architecture = "eurobert", .encodes = true},
    {
        .model_type = "gemma3_text",
        .architecture = "gemma-embedding",
        .norms_from_one = true,
        .norms_after = true,
        .encodes = true,
    },
};

// Of two families of one type the encoder is meant where attention goes in both directions.
static const FolderFamily *folder_family(const char *model_type, const json_t *config) {
    bool both = json_is_true(json_object_get(config, "use_bidirectional_attention"));
    const FolderFamily *found = NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].model_type, model_type) == 0 && (!found || both))
            found = &families[i];
    return found;
}

// --- files

bool folder_is(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool has_file(const char *folder, const char *name) {
    SCOPED_TEXT(path);
    ASSERT(folder != NULL && name != NULL);
    text_format(&path, "%s/%s", folder, name);
    return access(text_get(&path), F_OK) == 0;
}

static Status read_json(const char *path, json_t **out) {
    FileMap *map;
    json_error_t error;
    TRY(file_map_open(path, &map));
    *out = json_loadb((const char *)file_map_bytes(map), file_map_length(map), 0, &error);
    Status status = file_map_check(map);
    file_map_release(map);
    if (status != STATUS_OK) {
        json_decref(*out);
        return status;
    }
    if (*out) return STATUS_OK;
    return fail(STATUS_FORMAT, "%s: line %d: %s", path, error.line, error.text);
}

Status folder_json(const char *folder, const char *name, bool required, json_t **out) {
    *out = NULL;
    if (!required && !has_file(folder, name)) return STATUS_OK;
    ASSERT(name[0] != '\0');
    SCOPED_TEXT(path);
    text_format(&path, "%s/%s", folder, name);
    return read_json(text_get(&path), out);
}

// --- tensors

typedef struct Naming {
    const FolderFamily *family;
    int64_t layers, heads, heads_kv, groups, positions_cut;
} Naming;

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), size = strlen(end);
    return length >= size && strcmp(text + length - size, end) == 0;
}

// Of experts whose gates and what these gate are one tensor two are made: what follows "gate_up",
// or NULL.
static const char *after_joined(const char *name) {
    const char *at = strstr(name, ".ffn_gate_up_");
    return at ? at + strlen(".ffn_gate_up") : NULL;
}

static void name_half(const FolderFamily *family, const char *name, const char *half, Text *out) {
    SCOPED_TEXT(whole);
    folder_name(family, name, &whole);
    const char *rest = after_joined(text_get(&whole));
    size_t kept = rest ? (size_t)(rest - text_get(&whole)) - strlen("gate_up") : whole.length;
    text_append(out, text_get(&whole), kept);
    if (rest) text_format(out, "%s%s", half, rest);
}

static void name_of(void *context, const char *name, Text *out) {
    name_half(((const Naming *)context)->family, name, "gate", out);
}

static bool twin_of(void *context, const char *name, Text *out) {
    const FolderFamily *family = ((const Naming *)context)->family;
    folder_name(family, name, out);
    bool joined = after_joined(text_get(out)) != NULL;
    text_clear(out);
    if (joined) name_half(family, name, "up", out);
    return joined;
}

// The half that a tensor is of a joined one.
static void take_part(const FolderFamily *family, const char *source, const char *name,
                      TensorChange *change) {
    SCOPED_TEXT(whole);
    folder_name(family, source, &whole);
    if (after_joined(text_get(&whole))) change->part = strstr(name, ".ffn_gate_") ? 1 : 2;
    change->part_dim = family->alternating || !ends_with(name, ".weight") ? 1 : 2;
    change->alternate = family->alternating;
}

// Masks, parts for pictures, layers that guess ahead.
static bool is_unused(const Naming *naming, const char *source, const char *name) {
    if (naming->family->foreign) return false;
    if (strncmp(name, "blk.", 4) != 0) return strcmp(source, name) == 0;
    return naming->layers > 0 && strtoll(name + 4, NULL, 10) >= naming->layers;
}

// What GGUF files have otherwise.
static TensorChange change_of(void *context, const char *source, const char *name) {
    const Naming *naming = context;
    const FolderFamily *family = naming->family;
    ASSERT(family != NULL);
    TensorChange change = {0};
    take_part(family, source, name, &change);
    change.unused = is_unused(naming, source, name);
    change.squeeze = strstr(name, ".shortconv.conv.") != NULL;
    if (family->pairs && (strstr(name, ".attn_q.") || strstr(name, ".attn_k.")))
        change.heads = strstr(name, ".attn_q.") ? naming->heads : naming->heads_kv;
    if (strstr(name, ".attn_qkv.") && naming->groups > 0)
        change = (TensorChange){.heads = naming->heads, .groups = naming->groups};
    change.plus_one = family->norms_from_one && ends_with(name, "norm.weight");
    change.transpose = family->transposed && strncmp(name, "blk.", 4) == 0 &&
                       ends_with(name, ".weight") && !strstr(name, "_norm.");
    if (family->alternating && strstr(name, "_exps."))
        change.transpose = ends_with(name, ".weight");
    if (strcmp(name, "position_embd.weight") == 0) change.cut = naming->positions_cut;
    return change;
}

static Status read_tensors(const char *folder, Naming *naming, Reader *reader) {
    static const char one[] = "model.safetensors", index[] = "model.safetensors.index.json";
    SCOPED_TEXT(path);
    FileMap *map;
    bool several = has_file(folder, index);
    if (!several && !has_file(folder, one))
        return fail(STATUS_FORMAT, "%s has neither %s nor %s", folder, one, index);
    text_format(&path, "%s/%s", folder, several ? index : one);
    Status status = file_map_open(text_get(&path), &map);
    TRY(status);
    SafetensorsNaming names = {naming, name_of, change_of, twin_of};
    Status read = several ? safetensors_open_index_named(reader, map, &names)
                          : safetensors_open_named(reader, map, &names);
    status = file_map_check(map);
    file_map_release(map);
    return status == STATUS_OK ? read : status;
}

// --- the whole

// A model of texts and pictures has its own part for texts.
static const json_t *text_part(const json_t *config) {
    const json_t *part = json_object_get(config, "text_config");
    return json_is_object(part) ? part : config;
}

static Status read_family(const char *folder, const json_t *config, const FolderFamily *family,
                          Reader *reader) {
    TRY(folder_metadata(folder, config, family, &reader->metadata));
    if (family->encodes) folder_put_encoder(config, family, &reader->metadata);
    const json_t *heads = folder_heads(config);
    const json_t *heads_kv = json_object_get(config, "num_key_value_heads");
    Naming naming = {
        .family = family,
        .layers = folder_layers(config),
        .heads = json_integer_value(heads),
        .heads_kv = json_integer_value(heads_kv ? heads_kv : heads),
        .groups = folder_groups(config, family),
        .positions_cut = folder_positions_cut(family, config),
    };
    TRY(read_tensors(folder, &naming, reader));
    if (family->alternating) TRY(folder_join_mxfp4(folder, reader));
    folder_put_widths(folder, family, reader);
    TRY(folder_add_modules(folder, family, reader));
    return folder_add_factors(folder, config, reader);
}

static Status read_config(const char *folder, const json_t *config, Reader *reader) {
    const char *type = json_string_value(json_object_get(config, "model_type"));
    if (!type) return fail(STATUS_FORMAT, "%s/config.json does not say the model_type", folder);
    FolderFamily plain = {
        .model_type = type, .architecture = type, .foreign = true, .activation = ""};
    const FolderFamily *family = folder_family(type, config);
    if (!family) family = &plain; // a page of the user may know it
    json_auto_t *own = NULL;
    TRY((family->encodes ? folder_encoder_config : folder_decoder_config)(folder, family, config,
                                                                          &own));
    return read_family(folder, own, family, reader);
}

Status folder_open(Reader *reader, const char *path) {
    json_auto_t *config = NULL;
    if (!has_file(path, "config.json")) {
        (void)fail(STATUS_FORMAT, "%s is a folder without config.json", path);
        return fail_help("a folder that is a model has config.json, tokenizer.json and "
                         "model.safetensors, or its index and parts");
    }
    TRY(folder_json(path, "config.json", true, &config));
    return read_config(path, text_part(config), reader);
}

// --- the tokenizer

bool folder_has_tokenizer(const char *path) {
    return has_file(path, "tokenizer.json");
}

static void take_ends(const json_t *settings, Tokenizer *tokenizer) {
    const json_t *ends = json_object_get(settings, "eos_token_id"), *each;
    size_t i;
    if (json_is_integer(ends)) tokenizer_end_with(tokenizer, json_integer_value(ends));
    json_array_foreach(ends, i, each) if (json_is_integer(each))
        tokenizer_end_with(tokenizer, json_integer_value(each));
}

Status folder_tokenizer(const char *path, Tokenizer **out) {
    static const char *const names[] = {"config.json", "generation_config.json"};
    SCOPED_TEXT(file);
    text_format(&file, "%s/tokenizer.json", path);
    Status status = tokenizer_open(text_get(&file), out);
    TRY(status);
    for (int i = 0; i < 2 && status == STATUS_OK; i++) {
        json_t *settings;
        status = folder_json(path, names[i], false, &settings);
        if (status != STATUS_OK) break;
        take_ends(text_part(settings), *out);
        json_decref(settings);
    }
    if (status != STATUS_OK) tokenizer_release(*out);
    return status;
}
