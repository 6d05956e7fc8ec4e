"""The networks of language_models.py as folders that Hugging Face's models are published as."""
import json
import struct
from pathlib import Path

from language_models import HEADS, HEADS_KV, SIZE, VOCABULARY, WIDE, WIDTH, flat, shape

NAMES = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj",
         "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "attn_qkv": "self_attn.qkv_proj", "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj",
         "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
# What a type of model has otherwise.
MORE = {
    "gemma2": {"post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
               "post_ffw_norm": "post_feedforward_layernorm"},
    "phi3": {"ffn_up": "mlp.gate_up_proj"},
    "olmo2": {"post_attention_norm": "post_attention_layernorm", "post_ffw_norm": "post_feedforward_layernorm"},
    "gpt2": {"attn_norm": "ln_1", "ffn_norm": "ln_2", "attn_qkv": "attn.c_attn", "attn_output": "attn.c_proj", "ffn_up": "mlp.c_fc",
             "ffn_down": "mlp.c_proj"},
    "phi": {"attn_output": "self_attn.dense", "ffn_up": "mlp.fc1", "ffn_down": "mlp.fc2"},
    "starcoder2": {"ffn_up": "mlp.c_fc", "ffn_down": "mlp.c_proj"},
    "qwen3_moe": {"ffn_gate_inp": "mlp.gate", "ffn_gate_exps": "mlp.experts.*.gate_proj", "ffn_up_exps": "mlp.experts.*.up_proj",
                  "ffn_down_exps": "mlp.experts.*.down_proj"},
    "mixtral": {"ffn_gate_inp": "block_sparse_moe.gate", "ffn_gate_exps": "block_sparse_moe.experts.*.w1",
                "ffn_down_exps": "block_sparse_moe.experts.*.w2", "ffn_up_exps": "block_sparse_moe.experts.*.w3"},
}
MORE["gemma3_text"] = MORE["gemma2"]
MORE["qwen2_moe"] = {**MORE["qwen3_moe"], "ffn_gate_shexp": "mlp.shared_expert.gate_proj", "ffn_up_shexp": "mlp.shared_expert.up_proj",
                     "ffn_down_shexp": "mlp.shared_expert.down_proj", "ffn_gate_inp_shexp": "mlp.shared_expert_gate"}
WHOLE_MORE = {
    "gpt2": {"token_embd.weight": "transformer.wte.weight", "position_embd.weight": "transformer.wpe.weight",
             "output_norm.weight": "transformer.ln_f.weight", "output_norm.bias": "transformer.ln_f.bias"},
    "phi": {"output_norm.weight": "model.final_layernorm.weight", "output_norm.bias": "model.final_layernorm.bias",
            "output.bias": "lm_head.bias"},
    "starcoder2": {"output_norm.bias": "model.norm.bias"},
    "stablelm": {"output_norm.bias": "model.norm.bias"},
}
PAIRS = ("llama", "mistral", "mixtral", "smollm3", "granite")
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}
CONFIG = {"hidden_size": WIDTH, "intermediate_size": WIDE, "num_attention_heads": HEADS, "num_key_value_heads": HEADS_KV,
          "head_dim": SIZE, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "vocab_size": VOCABULARY}


def halves(rows):
    """Of each head the even rows, then the odd ones: how pairs lie apart that rotate together."""
    result = []
    for head in range(0, len(rows), SIZE):
        result += rows[head:head + SIZE:2] + rows[head + 1:head + SIZE:2]
    return result


def tensors_of(net, kind):
    """Names and values as the published files have them."""
    result, whole = {}, {**WHOLE, **WHOLE_MORE.get(kind, {})}
    for name, values in net.weights.items():
        if name in whole:
            full = whole[name]
        elif name.startswith("blk."):
            _, layer, word, end = name.split(".")
            names = {**NAMES, **MORE.get(kind, {})}
            if kind in PAIRS and word in ("attn_q", "attn_k"):
                values = halves(values)
            full = f"model.layers.{layer}.{names[word]}.{end}"
            if kind == "gpt2":
                full = f"transformer.h.{layer}.{names[word]}.{end}"
                if isinstance(values[0], list):
                    values = [list(column) for column in zip(*values)]
        else:
            continue # computed from config.json
        if kind.startswith("gemma") and name.endswith("norm.weight"):
            values = [x - 1.0 for x in values]
        if "*" in full:
            for number, expert in enumerate(values):
                result[full.replace("*", str(number))] = expert
        else:
            result[full] = values
    return result


def safetensors(tensors, dtype="F32"):
    header, data = {}, b""
    for name, values in tensors.items():
        numbers = struct.pack(f"<{len(flat(values))}{'f' if dtype == 'F32' else 'e'}", *flat(values))
        header[name] = {"dtype": dtype, "shape": shape(values), "data_offsets": [len(data), len(data) + len(numbers)]}
        data += numbers
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def write_folder(folder, net, kind, config=None, files=1, dtype="F32"):
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    tensors = tensors_of(net, kind)
    everything = {**CONFIG, "model_type": kind, "num_hidden_layers": net.layers, **(config or {})}
    (folder / "config.json").write_text(json.dumps(everything))
    if files == 1:
        (folder / "model.safetensors").write_bytes(safetensors(tensors, dtype))
        return
    places = {}
    for i in range(files):
        name, names = f"model-{i + 1:05}-of-{files:05}.safetensors", list(tensors)[i::files]
        (folder / name).write_bytes(safetensors({each: tensors[each] for each in names}, dtype))
        places.update({each: name for each in names})
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
