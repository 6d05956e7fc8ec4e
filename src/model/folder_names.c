// Names of tensors: as Hugging Face's models have them, and as GGUF has them.
#include <ctype.h>
#include <string.h>

#include "model/folder.h"

typedef struct NameRow {
    const char *from, *to; // * is a number
} NameRow;

static const NameRow whole[] = {
    {"embed_tokens", "token_embd"},
    {"wte", "token_embd"},
    {"wpe", "position_embd"},
    {"norm", "output_norm"},
    {"final_layernorm", "output_norm"},
    {"ln_f", "output_norm"},
    {"lm_head", "output"},
    {"embeddings.word_embeddings", "token_embd"},
    {"embeddings.tok_embeddings", "token_embd"},
    {"embeddings.position_embeddings", "position_embd"},
    {"embeddings.token_type_embeddings", "token_types"},
    {"embeddings.LayerNorm", "token_embd_norm"},
    {"embeddings.norm", "token_embd_norm"},
    {"emb_ln", "token_embd_norm"},
    {"final_norm", "output_norm"},
    {"embed_in", "token_embd"},
    {"embed_out", "output"},
    {"final_layer_norm", "output_norm"},
    {"word_embeddings", "token_embd"},
    {"word_embeddings_layernorm", "token_embd_norm"},
    {"embedding_norm", "token_embd_norm"},
    {"norm_f", "output_norm"},
    {"relative_attention_bias", "attn_rel_b"},
};

// Of layer N, after "layers.N." or "h.N.".
static const NameRow of_layer[] = {
    {"input_layernorm", "attn_norm"},
    {"ln_1", "attn_norm"},
    {"ln_2", "ffn_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.dense", "attn_output"},
    {"self_attn.q_layernorm", "attn_q_norm"},
    {"self_attn.k_layernorm", "attn_k_norm"},
    {"self_attn.q_layernorm.norms.*", "attn_q_norm.*"},
    {"self_attn.k_layernorm.norms.*", "attn_k_norm.*"},
    {"self_attn.query_layernorm", "attn_q_norm"},
    {"self_attn.key_layernorm", "attn_k_norm"},
    {"post_self_attn_layernorm", "post_attention_norm"},
    {"post_mlp_layernorm", "post_ffw_norm"},
    {"operator_norm", "attn_norm"},
    {"ffn_norm", "ffn_norm"},
    {"norm_1", "attn_norm"},
    {"norm_2", "ffn_norm"},
    {"conv.in_proj", "shortconv.in_proj"},
    {"conv.conv", "shortconv.conv"},
    {"conv.out_proj", "shortconv.out_proj"},
    {"self_attn.out_proj", "attn_output"},
    {"feed_forward.w1", "ffn_gate"},
    {"feed_forward.w2", "ffn_down"},
    {"feed_forward.w3", "ffn_up"},
    {"attn.Wqkv", "attn_qkv"},
    {"ffn.up_proj", "ffn_up"},
    {"ffn.down_proj", "ffn_down"},
    {"ln_attn", "attn_norm_2"},
    {"ln_mlp", "attn_norm"},
    {"attention.query_key_value", "attn_qkv"},
    {"attention.dense", "attn_output"},
    {"self_attention.query_key_value", "attn_qkv"},
    {"self_attention.dense", "attn_output"},
    {"attn.q_proj", "attn_q"},
    {"attn.k_proj", "attn_k"},
    {"attn.v_proj", "attn_v"},
    {"attn.out_proj", "attn_output"},
    {"self_attn.q_a_proj", "attn_q_a"},
    {"self_attn.q_a_layernorm", "attn_q_a_norm"},
    {"self_attn.q_b_proj", "attn_q_b"},
    {"self_attn.kv_a_proj_with_mqa", "attn_kv_a_mqa"},
    {"self_attn.kv_a_layernorm", "attn_kv_a_norm"},
    {"self_attn.kv_b_proj", "attn_kv_b"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"attn.c_attn", "attn_qkv"},
    {"attn.c_proj", "attn_output"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.fc1", "ffn_up"},
    {"mlp.fc2", "ffn_down"},
    {"mlp.c_fc", "ffn_up"},
    {"mlp.fc_in", "ffn_up"},
    {"mlp.fc_out", "ffn_down"},
    {"mlp.dense_h_to_4h", "ffn_up"},
    {"mlp.dense_4h_to_h", "ffn_down"},
    {"mlp.c_proj", "ffn_down"},
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate.*"},
    {"block_sparse_moe.experts.*.w2", "ffn_down.*"},
    {"block_sparse_moe.experts.*.w3", "ffn_up.*"},
    {"block_sparse_moe.router.layer", "ffn_gate_inp"},
    {"block_sparse_moe.input_linear", "ffn_gate_up_exps"},
    {"block_sparse_moe.output_linear", "ffn_down_exps"},
    {"shared_mlp.input_linear", "ffn_gate_up_shexp"},
    {"shared_mlp.output_linear", "ffn_down_shexp"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.gate.wg", "ffn_gate_inp"},
    {"mlp.router", "ffn_gate_inp"},
    {"mlp.experts.*.gate_proj", "ffn_gate.*"},
    {"mlp.experts.*.up_proj", "ffn_up.*"},
    {"mlp.experts.*.down_proj", "ffn_down.*"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"attention.self.query", "attn_q"},
    {"attention.self.key", "attn_k"},
    {"attention.self.value", "attn_v"},
    {"attention.output.dense", "attn_output"},
    {"attention.output.LayerNorm", "attn_output_norm"},
    {"intermediate.dense", "ffn_up"},
    {"output.dense", "ffn_down"},
    {"output.LayerNorm", "layer_output_norm"},
    {"attention.attn.q", "attn_q"},
    {"attention.attn.k", "attn_k"},
    {"attention.attn.v", "attn_v"},
    {"attention.attn.o", "attn_output"},
    {"attention.LayerNorm", "attn_output_norm"},
    {"attention.q_lin", "attn_q"},
    {"attention.k_lin", "attn_k"},
    {"attention.v_lin", "attn_v"},
    {"attention.out_lin", "attn_output"},
    {"sa_layer_norm", "attn_output_norm"},
    {"ffn.lin1", "ffn_up"},
    {"ffn.lin2", "ffn_down"},
    {"output_layer_norm", "layer_output_norm"},
    {"attn.Wo", "attn_output"},
    {"norm1", "attn_output_norm"},
    {"norm2", "layer_output_norm"},
    {"mlp.fc11", "ffn_up"},
    {"mlp.fc12", "ffn_gate"},
    {"attn_norm", "attn_norm"},
    {"mlp_norm", "ffn_norm"},
    {"mlp.Wi", "ffn_up"},
    {"mlp.Wo", "ffn_down"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"mlp.shared_mlp.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_mlp.up_proj", "ffn_up_shexp"},
    {"mlp.shared_mlp.down_proj", "ffn_down_shexp"},
};

// Of layer N, whole names, which end neither in weight nor in bias.
static const NameRow bare[] = {
    {"self_attn.sinks", "attn_sinks.weight"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.moe_statics.e_score_correction_bias", "exp_probs_b.bias"},
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"mlp.experts.gate_up_proj_bias", "ffn_gate_up_exps.bias"},
    {"mlp.experts.down_proj", "ffn_down_exps.weight"},
    {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"},
};

static bool skip(const char **at, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0) return false;
    *at += length;
    return true;
}

// Whether the first `length` bytes of `name` are the pattern; *number is where its number begins.
static bool matches(const char *pattern, const char *name, size_t length, const char **number) {
    ASSERT(name != NULL);
    const char *end = name + length;
    while (*pattern && name < end) {
        if (*pattern != '*') {
            if (*pattern++ != *name++) return false;
            continue;
        }
        *number = name;
        while (name < end && isdigit((unsigned char)*name)) name++;
        if (name == *number) return false;
        pattern++;
    }
    return *pattern == '\0' && name == end;
}

static bool append_row(const NameRow *rows, size_t count, const char *name, size_t length,
                       Text *out) {
    for (size_t i = 0; i < count; i++) {
        const char *number = NULL;
        if (!matches(rows[i].from, name, length, &number)) continue;
        for (const char *at = rows[i].to; *at; at++) {
            if (*at == '*')
                text_append(out, number, strspn(number, "0123456789"));
            else
                text_append_char(out, *at);
        }
        return true;
    }
    return false;
}

static bool append_of_layer(const FolderFamily *family, const char *name, size_t length,
                            Text *out) {
    static const char between[] = "post_attention_layernorm";
    if (matches(between, name, length, &(const char *){NULL})) {
        text_append_string(out, family->norms_after ? "post_attention_norm" : "ffn_norm");
        return true;
    }
    return append_row(of_layer, sizeof of_layer / sizeof *of_layer, name, length, out);
}

// Where the name in a layer begins, after "blk.N." was appended; NULL: it is of no layer, and *rest
// is what follows the model's name.
static const char *append_layer(const char *name, const char **rest, Text *out) {
    const char *at = name;
    (void)skip(&at, "language_model.");
    (void)(skip(&at, "model.") || skip(&at, "transformer.") || skip(&at, "gpt_neox."));
    (void)skip(&at, "language_model.");
    (void)(skip(&at, "bert.") || skip(&at, "roberta.") || skip(&at, "distilbert.") ||
           skip(&at, "electra.") || skip(&at, "mpnet."));
    (void)(skip(&at, "encoder.") || skip(&at, "transformer."));
    *rest = at;
    if (!skip(&at, "layers.") && !skip(&at, "h.") && !skip(&at, "blocks.") && !skip(&at, "layer."))
        return NULL;
    size_t digits = strspn(at, "0123456789");
    if (digits == 0 || at[digits] != '.' || at[digits + 1] == '\0') return NULL;
    text_format(out, "blk.%.*s.", (int)digits, at);
    return at + digits + 1;
}

// The name without its last word, which is weight or bias.
static bool append_known(const FolderFamily *family, const char *name, size_t length, Text *out) {
    ASSERT(family != NULL);
    const char *end = name + length, *rest, *at = append_layer(name, &rest, out);
    if (at) return at < end && append_of_layer(family, at, (size_t)(end - at), out);
    return append_row(whole, sizeof whole / sizeof *whole, rest, (size_t)(end - rest), out);
}

static bool append_bare(const char *name, Text *out) {
    const char *rest, *at = append_layer(name, &rest, out);
    return at && append_row(bare, sizeof bare / sizeof *bare, at, strlen(at), out);
}

// A name's last word, which old files of norms have otherwise; NULL: not of a known tensor.
static const char *end_of(const char *last) {
    if (strcmp(last, ".gamma") == 0) return ".weight";
    if (strcmp(last, ".beta") == 0) return ".bias";
    return strcmp(last, ".weight") == 0 || strcmp(last, ".bias") == 0 ? last : NULL;
}

void folder_name(const FolderFamily *family, const char *name, Text *out) {
    const char *last = strrchr(name, '.');
    const char *end = last ? end_of(last) : NULL;
    if (end && append_known(family, name, (size_t)(last - name), out)) {
        text_append_string(out, end);
        return;
    }
    text_clear(out);
    if (!end && append_bare(name, out)) return;
    text_clear(out);
    text_append_string(out, name);
}
