"""Small random encoders: what they compute in double, and their folders as Hugging Face publishes them."""
import json
import math
from pathlib import Path

from language_models import HEADS, HEADS_KV, SIZE, VOCABULARY, WIDE, WIDTH, Net, add, heads_of, norm, plain_frequencies, rotate, silu, softmax
from model_folders import safetensors

POSITIONS = 16


def exact_gelu(x):
    return 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0)))


def gelu(x):
    return 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3)))


def see(queries, keys, values, at, scale, reach, bias):
    """What a position's heads see of all keys, or of those near it."""
    near = [j for j in range(len(keys)) if reach is None or abs(j - at) <= reach]
    result = []
    for h, query in enumerate(queries):
        group = h * len(keys[0]) // len(queries)
        shares = softmax([sum(a * b for a, b in zip(query, keys[j][group])) * scale + bias(h, j - at) for j in near])
        result += [sum(s * values[j][group][d] for s, j in zip(shares, near)) for d in range(SIZE)]
    return result


class Encoder(Net):
    """Which norms, biases and matrices a layer has is what its weights say."""
    positions, types, joined, gated, biased, centred, groups = False, False, False, False, False, True, HEADS_KV
    norms, whole_norms, act, layers, dense = (), (), staticmethod(exact_gelu), 3, ()

    def __init__(self, seed, more=None):
        eps = "attention.layer_norm_epsilon" if self.centred else "attention.layer_norm_rms_epsilon"
        super().__init__(seed, {eps: 1e-5, **(more or {})})
        if self.centred:
            del self.meta[f"{self.name}.attention.layer_norm_rms_epsilon"]
        r, w = self.random, self.weights
        del w["output.weight"], w["output_norm.weight"]
        for name in self.whole_norms:
            self.add_norm(name, WIDTH)
        if self.positions:
            w["position_embd.weight"] = r.matrix(POSITIONS, WIDTH)
            self.meta[f"{self.name}.context_length"] = POSITIONS
        if self.types:
            w["token_types.weight"] = r.matrix(2, WIDTH)
        for i, size in enumerate(self.dense):
            w[f"dense_{i + 2}.weight"] = r.matrix(size, WIDTH if i == 0 else self.dense[i - 1])

    def add_norm(self, name, size):
        self.weights[f"{name}.weight"] = self.random.vector(size)
        if self.centred and self.biased_norms():
            self.weights[f"{name}.bias"] = self.random.vector(size)

    def biased_norms(self):
        return True

    def add_layer(self, b):
        shapes = {"attn_q": (HEADS * SIZE, WIDTH), "attn_k": (self.groups * SIZE, WIDTH), "attn_v": (self.groups * SIZE, WIDTH)}
        if self.joined:
            shapes = {"attn_qkv": ((HEADS + 2 * self.groups) * SIZE, WIDTH)}
        shapes |= {"attn_output": (WIDTH, HEADS * SIZE), **self.feed_forward_shapes()}
        for name, (rows, columns) in shapes.items():
            self.weights[f"{b}{name}.weight"] = self.random.matrix(rows, columns)
            if self.biased:
                self.weights[f"{b}{name}.bias"] = self.random.vector(rows)
        for name in self.norms:
            self.add_norm(b + name, SIZE if name in ("attn_q_norm", "attn_k_norm") else WIDTH)

    def feed_forward_shapes(self):
        shapes = {"ffn_up": (WIDE, WIDTH), "ffn_down": (WIDTH, WIDE)}
        return shapes | {"ffn_gate": (WIDE, WIDTH)} if self.gated else shapes

    def normed(self, name, x):
        weight, bias = self.weights.get(f"{name}.weight"), self.weights.get(f"{name}.bias", [0.0] * len(x))
        if weight is None:
            return x
        if not self.centred:
            return norm(x, weight)
        mean = sum(x) / len(x)
        scale = 1.0 / math.sqrt(sum((a - mean) ** 2 for a in x) / len(x) + 1e-5)
        return [(a - mean) * scale * w + c for a, w, c in zip(x, weight, bias)]

    def reach(self, layer):
        return None

    def base(self, layer):
        return None

    def bias(self, head, distance):
        return 0.0

    def turned(self, layer, head, at):
        base = self.base(layer)
        return rotate(head, at, plain_frequencies(base), True) if base else head

    def project(self, b, h):
        if not self.joined:
            return super().project(b, h)
        heads = heads_of(self.part(b, "attn_qkv", h))
        return [heads[:HEADS], heads[HEADS:HEADS + self.groups], heads[HEADS + self.groups:]]

    def feed_forward(self, b, h):
        up = self.part(b, "ffn_up", h)
        if self.gated:
            return self.part(b, "ffn_down", [self.act(g) * u for g, u in zip(self.part(b, "ffn_gate", h), up)])
        if len(up) == 2 * WIDE:
            return self.part(b, "ffn_down", [self.act(g) * u for g, u in zip(up[:WIDE], up[WIDE:])])
        return self.part(b, "ffn_down", [self.act(u) for u in up])

    def enter(self, id, at):
        x = self.embed(id)
        if self.types:
            x = add(x, self.weights["token_types.weight"][0])
        if self.positions:
            x = add(x, self.weights["position_embd.weight"][at])
        return self.normed("token_embd_norm", x)

    def states(self, ids):
        rows = [self.enter(id, at) for at, id in enumerate(ids)]
        for i in range(self.layers):
            b, heads = f"blk.{i}.", []
            for at, x in enumerate(rows):
                q, k, v = self.project(b, self.normed(b + "attn_norm", x))
                q, k = ([self.normed(f"{b}attn_{c}_norm", h) for h in part] for c, part in (("q", q), ("k", k)))
                heads.append([[self.turned(i, h, at) for h in q], [self.turned(i, h, at) for h in k], v])
            keys, values = [k for _, k, _ in heads], [v for _, _, v in heads]
            for at, x in enumerate(rows):
                mixed = self.part(b, "attn_output", see(heads[at][0], keys, values, at, self.scale, self.reach(i), self.bias))
                x = self.normed(b + "attn_output_norm", add(x, self.normed(b + "post_attention_norm", mixed)))
                h = self.feed_forward(b, self.normed(b + "ffn_norm", x))
                rows[at] = self.normed(b + "layer_output_norm", add(x, self.normed(b + "post_ffw_norm", h)))
        return [self.normed("output_norm", x) for x in rows]


class Bert(Encoder):
    name, positions, types, biased, groups = "bert", True, True, True, HEADS
    norms, whole_norms = ("attn_output_norm", "layer_output_norm"), ("token_embd_norm",)


class NomicBert(Encoder):
    name, types, joined, gated, groups, act = "nomic-bert", True, True, True, HEADS, staticmethod(silu)
    norms, whole_norms, more = ("attn_output_norm", "layer_output_norm"), ("token_embd_norm",), {"rope.freq_base": 1000.0}

    def base(self, layer):
        return 1000.0


class ModernBert(Encoder):
    """Two of three layers see what is near, by other angles; the first has no norm before attention."""
    name, joined, groups, layers = "modern-bert", True, HEADS, 4
    norms, whole_norms = ("attn_norm", "ffn_norm"), ("token_embd_norm", "output_norm")
    more = {"rope.freq_base": 5000.0, "rope.freq_base_swa": 300.0, "attention.sliding_window": 5}

    def biased_norms(self):
        return False

    def add_layer(self, b):
        super().add_layer(b)
        if b == "blk.0.":
            del self.weights["blk.0.attn_norm.weight"]

    def feed_forward_shapes(self):
        return {"ffn_up": (2 * WIDE, WIDTH), "ffn_down": (WIDTH, WIDE)}

    def reach(self, layer):
        return 2 if layer % 3 else None

    def base(self, layer):
        return 300.0 if layer % 3 else 5000.0


class EuroBert(Encoder):
    name, gated, centred, act = "eurobert", True, False, staticmethod(silu)
    norms, whole_norms = ("attn_norm", "ffn_norm"), ("output_norm",)

    def base(self, layer):
        return 10000.0


class GemmaEmbedding(Encoder):
    name, gated, centred, layers, act = "gemma-embedding", True, False, 7, staticmethod(gelu)
    norms = ("attn_norm", "attn_q_norm", "attn_k_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
    whole_norms, more = ("output_norm",), {"rope.freq_base": 5000.0, "attention.sliding_window": 4}

    def embed(self, id):
        return [a * math.sqrt(WIDTH) for a in super().embed(id)]

    def reach(self, layer):
        return None if layer == 5 else 2

    def base(self, layer):
        return 5000.0 if layer == 5 else 10000.0


class MpNet(Bert):
    """Scores have a bias by the bucket of the distance: eight by one distance each, then eight for more and more, on each side."""
    name, types = "mpnet", False

    def __init__(self, seed, more=None):
        super().__init__(seed, more)
        self.weights["attn_rel_b.weight"] = self.random.matrix(32, HEADS)

    def bias(self, head, distance):
        apart = abs(distance)
        bucket = apart if apart < 8 else min(15, 8 + int(math.log(apart / 8) / math.log(16) * 8 + 1e-9))
        return self.weights["attn_rel_b.weight"][bucket + (16 if distance > 0 else 0)][head]


class JinaBert(Bert):
    name, positions, gated = "jina-bert-v2", False, True

    def bias(self, head, distance):
        return -abs(distance) * 2.0 ** (-8 / HEADS * (head + 1))


# --- folders

BERT = {"token_embd": "embeddings.word_embeddings", "position_embd": "embeddings.position_embeddings",
        "token_types": "embeddings.token_type_embeddings", "token_embd_norm": "embeddings.LayerNorm",
        "attn_q": "attention.self.query", "attn_k": "attention.self.key", "attn_v": "attention.self.value",
        "attn_output": "attention.output.dense", "attn_output_norm": "attention.output.LayerNorm", "ffn_up": "intermediate.dense",
        "ffn_down": "output.dense", "layer_output_norm": "output.LayerNorm"}
DISTIL = {**BERT, "attn_q": "attention.q_lin", "attn_k": "attention.k_lin", "attn_v": "attention.v_lin", "attn_output": "attention.out_lin",
          "attn_output_norm": "sa_layer_norm", "ffn_up": "ffn.lin1", "ffn_down": "ffn.lin2", "layer_output_norm": "output_layer_norm"}
MPNET = {**BERT, "attn_q": "attention.attn.q", "attn_k": "attention.attn.k", "attn_v": "attention.attn.v", "attn_output": "attention.attn.o",
         "attn_output_norm": "attention.LayerNorm", "attn_rel_b": "encoder.relative_attention_bias"}
NOMIC = {**BERT, "token_embd_norm": "emb_ln", "attn_qkv": "attn.Wqkv", "attn_output": "attn.out_proj", "attn_output_norm": "norm1",
         "ffn_up": "mlp.fc11", "ffn_gate": "mlp.fc12", "ffn_down": "mlp.fc2", "layer_output_norm": "norm2"}
MODERN = {"token_embd": "embeddings.tok_embeddings", "token_embd_norm": "embeddings.norm", "output_norm": "final_norm",
          "attn_norm": "attn_norm", "attn_qkv": "attn.Wqkv", "attn_output": "attn.Wo", "ffn_norm": "mlp_norm", "ffn_up": "mlp.Wi",
          "ffn_down": "mlp.Wo"}
LLAMA = {"token_embd": "embed_tokens", "output_norm": "norm", "attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "ffn_norm": "post_attention_layernorm", "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
GEMMA = {**LLAMA, "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "post_attention_norm": "post_attention_layernorm", "ffn_norm": "pre_feedforward_layernorm",
         "post_ffw_norm": "post_feedforward_layernorm"}
# Of each type of model: what names begin with, what layers' do, and the rest of them.
TYPES = {
    "bert": ("", "encoder.layer.", BERT), "roberta": ("roberta.", "encoder.layer.", BERT),
    "xlm-roberta": ("", "encoder.layer.", BERT), "camembert": ("roberta.", "encoder.layer.", BERT),
    "electra": ("electra.", "encoder.layer.", BERT), "distilbert": ("distilbert.", "transformer.layer.", DISTIL),
    "mpnet": ("mpnet.", "encoder.layer.", MPNET), "nomic_bert": ("", "encoder.layers.", NOMIC), "modernbert": ("model.", "layers.", MODERN),
    "eurobert": ("model.", "layers.", LLAMA), "gemma3_text": ("", "layers.", GEMMA),
}
CONFIG = {"hidden_size": WIDTH, "intermediate_size": WIDE, "num_attention_heads": HEADS, "num_hidden_layers": 3, "vocab_size": VOCABULARY,
          "max_position_embeddings": POSITIONS, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}


def tensors_of(net, kind):
    """Names and values as the published files have them."""
    prefix, layers, names = TYPES[kind]
    result = {}
    for name, values in net.weights.items():
        *place, word, end = name.split(".")
        if word.startswith("dense"):
            continue
        if kind == "gemma3_text" and word.endswith("norm"):
            values = [x - 1.0 for x in values]
        result[f"{prefix}{layers + place[1] + '.' if place else ''}{names[word]}.{end}"] = values
    return result


def write_encoder(folder, net, kind, config=None, tensors=None):
    """A folder; of `config` keys without a value are left out."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    everything = {**CONFIG, "num_hidden_layers": net.layers, "model_type": kind, **(config or {})}
    (folder / "config.json").write_text(json.dumps({key: value for key, value in everything.items() if value is not None}))
    (folder / "model.safetensors").write_bytes(safetensors(tensors or tensors_of(net, kind)))


def write_modules(folder, pooling, dense=(), types=None):
    """What sentence-transformers adds: how rows are pooled, and layers (weight, bias, activation) after that."""
    names = ["1_Pooling", *(f"{i + 2}_Dense" for i in range(len(dense)))]
    kinds = types or ["Pooling", *["Dense"] * len(dense)]
    modules = [{"type": "sentence_transformers.models.Transformer", "path": ""}]
    modules += [{"type": f"sentence_transformers.models.{kind}", "path": name} for kind, name in zip(kinds, names)]
    modules.append({"type": "sentence_transformers.models.Normalize", "path": "9_Normalize"})
    (folder / "modules.json").write_text(json.dumps(modules))
    for name, config in zip(names, [pooling, *({"activation_function": activation} for *_, activation in dense)]):
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "config.json").write_text(json.dumps(config))
    for i, (weight, bias, _) in enumerate(dense):
        tensors = {"linear.weight": weight, **({"linear.bias": bias} if bias else {})}
        (folder / f"{i + 2}_Dense" / "model.safetensors").write_bytes(safetensors(tensors))
