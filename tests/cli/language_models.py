"""Small random language models of several architectures: their files, and what they compute in double."""
import math
import random
import struct

WIDTH, HEADS, HEADS_KV, SIZE, WIDE, VOCABULARY = 24, 4, 2, 6, 20, 11


class Random:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, mean, deviation):
        return struct.unpack("f", struct.pack("f", self.random.gauss(mean, deviation)))[0]

    def vector(self, size):
        return [self.number(1.0, 0.2) for _ in range(size)]

    def matrix(self, rows, columns):
        return [[self.number(0.0, 0.4) for _ in range(columns)] for _ in range(rows)]


def flat(x):
    return [y for row in x for y in flat(row)] if isinstance(x, list) else [x]


def shape(x):
    return [len(x)] + shape(x[0]) if isinstance(x, list) else []


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def metadata(value):
    if isinstance(value, str):
        return struct.pack("<I", 8) + text(value)
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, list) and isinstance(value[0], bool):
        return struct.pack("<IIQ", 9, 7, len(value)) + bytes(value)
    if isinstance(value, list) and isinstance(value[0], float):
        return struct.pack("<IIQ", 9, 6, len(value)) + struct.pack(f"<{len(value)}f", *value)
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<II", 4, value) if value < 2 ** 32 else struct.pack("<IQ", 10, value)


def file_of(meta, weights):
    """GGUF, version 3, all tensors float32."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(weights), len(meta))
    for key, value in meta.items():
        head += text(key) + metadata(value)
    data = b""
    for name, values in weights.items():
        dims = shape(values)[::-1]
        head += text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, 0, len(data))
        data += struct.pack(f"<{len(flat(values))}f", *flat(values))
        data += bytes(-len(data) % 32)
    return head + bytes(-len(head) % 32) + data


def linear(x, weight, bias=None):
    rows = [sum(a * b for a, b in zip(x, row)) for row in weight]
    return [a + b for a, b in zip(rows, bias)] if bias else rows


def norm(x, weight, eps=1e-5):
    scale = 1.0 / math.sqrt(sum(a * a for a in x) / len(x) + eps)
    return [a * scale * w for a, w in zip(x, weight)]


def add(x, y):
    return [a + b for a, b in zip(x, y)]


def softmax(x):
    powers = [math.exp(a - max(x)) for a in x]
    return [a / sum(powers) for a in powers]


def silu(x):
    return x / (1.0 + math.exp(-x))


def gelu(x):
    return 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3)))


def rotate(head, position, frequencies, half, magnitude=1.0):
    result = list(head)
    for i, frequency in enumerate(frequencies):
        a, b = (i, i + len(frequencies)) if half else (2 * i, 2 * i + 1)
        c, s = math.cos(position * frequency) * magnitude, math.sin(position * frequency) * magnitude
        result[a], result[b] = head[a] * c - head[b] * s, head[a] * s + head[b] * c
    return result


def attend(queries, keys, values, at, scale, cap=None, window=None):
    """One position's heads over all keys so far; keys[position][head]."""
    result = []
    for h, query in enumerate(queries):
        group = h * len(keys[0]) // len(queries)
        first = max(0, at - window + 1) if window else 0
        scores = [sum(a * b for a, b in zip(query, keys[j][group])) * scale for j in range(first, at + 1)]
        if cap:
            scores = [cap * math.tanh(a / cap) for a in scores]
        shares = softmax(scores)
        result += [sum(s * values[first + j][group][d] for j, s in enumerate(shares)) for d in range(len(query))]
    return result


def heads_of(x, size=SIZE):
    return [x[i:i + size] for i in range(0, len(x), size)]


def plain_frequencies(base=10000.0, size=SIZE):
    return [base ** (-2.0 * i / size) for i in range(size // 2)]


class Net:
    """What llama and its kin have in common; subclasses say what they change."""
    name, half, gate = "llama", False, staticmethod(silu)
    tied, magnitude, layers, window, cap, scale = False, 1.0, 2, None, None, SIZE ** -0.5
    more = {}

    def __init__(self, seed, more=None):
        self.random = Random(seed)
        self.frequencies = plain_frequencies()
        self.weights = {"token_embd.weight": self.random.matrix(VOCABULARY, WIDTH),
                        "output_norm.weight": self.random.vector(WIDTH)}
        if not self.tied:
            self.weights["output.weight"] = self.random.matrix(VOCABULARY, WIDTH)
        for i in range(self.layers):
            self.add_layer(f"blk.{i}.")
        words = {"block_count": self.layers, "embedding_length": WIDTH, "attention.head_count": HEADS,
                 "attention.head_count_kv": HEADS_KV, "attention.key_length": SIZE, "context_length": 64,
                 "attention.layer_norm_rms_epsilon": 1e-5, **self.more, **(more or {})}
        self.meta = {"general.architecture": self.name, **{f"{self.name}.{key}": value for key, value in words.items()}}

    def add_layer(self, b):
        r, w = self.random, self.weights
        for name in ("attn_norm", "ffn_norm"):
            w[f"{b}{name}.weight"] = r.vector(WIDTH)
        for name, rows, columns in (("attn_q", HEADS * SIZE, WIDTH), ("attn_k", HEADS_KV * SIZE, WIDTH),
                                    ("attn_v", HEADS_KV * SIZE, WIDTH), ("attn_output", WIDTH, HEADS * SIZE)):
            w[f"{b}{name}.weight"] = r.matrix(rows, columns)
        self.add_feed_forward(b)

    def add_feed_forward(self, b):
        for name, rows, columns in (("gate", WIDE, WIDTH), ("up", WIDE, WIDTH), ("down", WIDTH, WIDE)):
            self.weights[f"{b}ffn_{name}.weight"] = self.random.matrix(rows, columns)

    def get(self, b, name, kind="weight"):
        return self.weights.get(f"{b}{name}.{kind}")

    def part(self, b, name, x):
        return linear(x, self.get(b, name), self.get(b, name, "bias"))

    def embed(self, id):
        return self.weights["token_embd.weight"][id]

    def project(self, b, h):
        return [heads_of(self.part(b, f"attn_{c}", h)) for c in "qkv"]

    def by_head(self, b, name, heads):
        weight = self.get(b, name)
        return [norm(head, weight) for head in heads] if weight else heads

    def feed_forward(self, b, h):
        mixed = [self.gate(g) * u for g, u in zip(self.part(b, "ffn_gate", h), self.part(b, "ffn_up", h))]
        return self.part(b, "ffn_down", mixed)

    def before(self, b, name, x):
        return norm(x, self.get(b, name))

    def after(self, b, name, x):
        return x

    def turn(self, layer, head, at):
        return rotate(head, at, self.frequencies, self.half, self.magnitude)

    def logits(self, ids):
        rows = [self.embed(id) for id in ids]
        for i in range(self.layers):
            b, keys, values = f"blk.{i}.", [], []
            for at, x in enumerate(rows):
                q, k, v = self.project(b, self.before(b, "attn_norm", x))
                q, k = self.by_head(b, "attn_q_norm", q), self.by_head(b, "attn_k_norm", k)
                q, k = ([self.turn(i, head, at) for head in part] for part in (q, k))
                keys.append(k)
                values.append(v)
                mixed = attend(q, keys, values, at, self.scale, self.cap, self.window_of(i))
                x = add(x, self.after(b, "post_attention_norm", self.part(b, "attn_output", mixed)))
                h = self.before(b, "ffn_norm", x)
                rows[at] = add(x, self.after(b, "post_ffw_norm", self.feed_forward(b, h)))
        return [self.score(norm(x, self.weights["output_norm.weight"])) for x in rows]

    def window_of(self, layer):
        return self.window

    def score(self, x):
        return linear(x, self.weights.get("output.weight", self.weights["token_embd.weight"]))


class Mixtral(Net):
    experts, used = 5, 2
    more = {"expert_count": experts, "expert_used_count": used}

    def add_feed_forward(self, b):
        r, w = self.random, self.weights
        w[f"{b}ffn_gate_inp.weight"] = r.matrix(self.experts, WIDTH)
        for name, rows, columns in (("gate", WIDE, WIDTH), ("up", WIDE, WIDTH), ("down", WIDTH, WIDE)):
            w[f"{b}ffn_{name}_exps.weight"] = [r.matrix(rows, columns) for _ in range(self.experts)]

    def feed_forward(self, b, h):
        shares = softmax(self.part(b, "ffn_gate_inp", h))
        best = sorted(range(self.experts), key=lambda e: -shares[e])[:self.used]
        result = [0.0] * WIDTH
        for e in best:
            gate, up = (linear(h, self.get(b, f"ffn_{name}_exps")[e]) for name in ("gate", "up"))
            y = linear([silu(g) * u for g, u in zip(gate, up)], self.get(b, "ffn_down_exps")[e])
            result = [a + c * shares[e] / sum(shares[i] for i in best) for a, c in zip(result, y)]
        return result


class Qwen2(Net):
    name, half, tied = "qwen2", True, True

    def add_layer(self, b):
        super().add_layer(b)
        for c, heads in (("q", HEADS), ("k", HEADS_KV), ("v", HEADS_KV)):
            self.weights[f"{b}attn_{c}.bias"] = self.random.vector(heads * SIZE)


class Qwen3(Net):
    name, half = "qwen3", True

    def add_layer(self, b):
        super().add_layer(b)
        for c in "qk":
            self.weights[f"{b}attn_{c}_norm.weight"] = self.random.vector(SIZE)


class Gemma2(Net):
    name, half, tied, gate, cap, layers = "gemma2", True, True, staticmethod(gelu), 1.5, 3
    more = {"attention.sliding_window": 4, "attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.5}

    def add_layer(self, b):
        super().add_layer(b)
        for name in ("post_attention_norm", "post_ffw_norm"):
            self.weights[f"{b}{name}.weight"] = self.random.vector(WIDTH)

    def embed(self, id):
        return [a * math.sqrt(WIDTH) for a in super().embed(id)]

    def after(self, b, name, x):
        return norm(x, self.get(b, name))

    def window_of(self, layer):
        return 4 if layer % 2 == 0 else None

    def score(self, x):
        return [2.5 * math.tanh(a / 2.5) for a in super().score(x)]


class Phi3(Net):
    name, half = "phi3", True
    short, window, magnitude = 8, 5, 1.25
    more = {"rope.scaling.original_context_length": 8, "attention.sliding_window": 5, "rope.scaling.attn_factor": 1.25}

    def __init__(self, seed, more=None):
        super().__init__(seed, more)
        for name in ("short", "long"):
            self.weights[f"rope_factors_{name}.weight"] = self.random.vector(SIZE // 2)

    def add_layer(self, b):
        r, w = self.random, self.weights
        for name in ("attn_norm", "ffn_norm"):
            w[f"{b}{name}.weight"] = r.vector(WIDTH)
        for name, rows, columns in (("attn_qkv", (HEADS + 2 * HEADS_KV) * SIZE, WIDTH), ("ffn_up", 2 * WIDE, WIDTH),
                                    ("attn_output", WIDTH, HEADS * SIZE), ("ffn_down", WIDTH, WIDE)):
            w[f"{b}{name}.weight"] = r.matrix(rows, columns)

    def logits(self, ids):
        name = "long" if len(ids) > self.short else "short"
        factors = self.weights[f"rope_factors_{name}.weight"]
        self.frequencies = [a / b for a, b in zip(plain_frequencies(), factors)]
        return super().logits(ids)

    def project(self, b, h):
        heads = heads_of(self.part(b, "attn_qkv", h))
        return [heads[:HEADS], heads[HEADS:HEADS + HEADS_KV], heads[HEADS + HEADS_KV:]]

    def feed_forward(self, b, h):
        both = self.part(b, "ffn_up", h)
        return self.part(b, "ffn_down", [silu(g) * u for g, u in zip(both[:WIDE], both[WIDE:])])


class Gemma(Net):
    name, half, tied, gate = "gemma", True, True, staticmethod(gelu)

    def embed(self, id):
        return [a * math.sqrt(WIDTH) for a in super().embed(id)]


class Gemma3(Gemma2):
    name, cap, layers = "gemma3", None, 7
    more = {"attention.sliding_window": 4, "rope.freq_base": 5000.0, "rope.scaling.factor": 8.0}

    def add_layer(self, b):
        super().add_layer(b)
        for c in "qk":
            self.weights[f"{b}attn_{c}_norm.weight"] = self.random.vector(SIZE)

    def window_of(self, layer):
        return None if layer == 5 else 4

    def turn(self, layer, head, at):
        frequencies = [a / 8 for a in plain_frequencies(5000.0)] if layer == 5 else plain_frequencies()
        return rotate(head, at, frequencies, True)

    def score(self, x):
        return Net.score(self, x)


class Qwen3Moe(Qwen3, Mixtral):
    name = "qwen3moe"


class Qwen2Moe(Mixtral):
    """Shares as they are among all experts, and a part next to them."""
    name, half = "qwen2moe", True

    def add_feed_forward(self, b):
        super().add_feed_forward(b)
        for name, rows, columns in (("gate", WIDE, WIDTH), ("up", WIDE, WIDTH), ("down", WIDTH, WIDE), ("gate_inp", 1, WIDTH)):
            self.weights[f"{b}ffn_{name}_shexp.weight"] = self.random.matrix(rows, columns)

    def feed_forward(self, b, h):
        shares = softmax(self.part(b, "ffn_gate_inp", h))
        best = sorted(range(self.experts), key=lambda e: -shares[e])[:self.used]
        scale = 1.0 / (1.0 + math.exp(-self.part(b, "ffn_gate_inp_shexp", h)[0]))
        mixed = [silu(g) * u for g, u in zip(self.part(b, "ffn_gate_shexp", h), self.part(b, "ffn_up_shexp", h))]
        always = [a * scale for a in self.part(b, "ffn_down_shexp", mixed)]
        chosen = [a * sum(shares[e] for e in best) for a in super().feed_forward(b, h)]
        return add(chosen, always)


class SmolLM3(Net):
    name, layers = "smollm3", 5

    def turn(self, layer, head, at):
        return head if layer == 3 else super().turn(layer, head, at)


class Granite(Net):
    name = "granite"
    more = {"embedding_scale": 3.0, "attention.scale": 0.25, "residual_scale": 0.4, "logit_scale": 2.0}
    scale = 0.25

    def embed(self, id):
        return [a * 3.0 for a in super().embed(id)]

    def after(self, b, name, x):
        return [a * 0.4 for a in x]

    def score(self, x):
        return [a / 2.0 for a in super().score(x)]


class Olmo2(Net):
    """Norms after each part; those of queries and keys go over all heads."""
    name, half = "olmo2", True

    def add_layer(self, b):
        super().add_layer(b)
        for name in ("attn_norm", "ffn_norm"):
            del self.weights[f"{b}{name}.weight"]
        for name, size in (("post_attention_norm", WIDTH), ("post_ffw_norm", WIDTH), ("attn_q_norm", HEADS * SIZE),
                           ("attn_k_norm", HEADS_KV * SIZE)):
            self.weights[f"{b}{name}.weight"] = self.random.vector(size)

    def before(self, b, name, x):
        return x

    def by_head(self, b, name, heads):
        return heads_of(norm([a for head in heads for a in head], self.get(b, name)))

    def after(self, b, name, x):
        return norm(x, self.get(b, name))


class Classic(Net):
    """Layer norms with biases."""
    half, joined, parallel, biased, part_size, gated, positions = True, False, False, True, SIZE, False, False

    def __init__(self, seed, more=None):
        self.more = {"attention.layer_norm_epsilon": 1e-5, "rope.dimension_count": self.part_size}
        super().__init__(seed, more)
        r, w = self.random, self.weights
        w["output_norm.bias"] = r.vector(WIDTH)
        self.frequencies = plain_frequencies(size=self.part_size)
        if self.positions:
            w["position_embd.weight"] = r.matrix(16, WIDTH)
        if self.parallel:
            w["output.bias"] = r.vector(VOCABULARY)

    def add_layer(self, b):
        r, w = self.random, self.weights
        norms = ("attn_norm",) if self.parallel else ("attn_norm", "ffn_norm")
        sizes = {"attn_q": HEADS * SIZE, "attn_k": HEADS_KV * SIZE, "attn_v": HEADS_KV * SIZE}
        if self.joined:
            sizes = {"attn_qkv": (HEADS + 2 * HEADS_KV) * SIZE}
        shapes = {name: (rows, WIDTH) for name, rows in sizes.items()}
        shapes.update({"attn_output": (WIDTH, HEADS * SIZE), "ffn_up": (WIDE, WIDTH), "ffn_down": (WIDTH, WIDE)})
        if self.gated:
            shapes["ffn_gate"] = (WIDE, WIDTH)
        for name in norms:
            w[f"{b}{name}.weight"], w[f"{b}{name}.bias"] = r.vector(WIDTH), r.vector(WIDTH)
        for name, (rows, columns) in shapes.items():
            w[f"{b}{name}.weight"] = r.matrix(rows, columns)
            if self.biased:
                w[f"{b}{name}.bias"] = r.vector(rows)

    def centred(self, b, name, x):
        mean = sum(x) / len(x)
        scale = 1.0 / math.sqrt(sum((a - mean) ** 2 for a in x) / len(x) + 1e-5)
        return [(a - mean) * scale * w + c for a, w, c in zip(x, self.get(b, name), self.get(b, name, "bias"))]

    def project(self, b, h):
        if not self.joined:
            return super().project(b, h)
        heads = heads_of(self.part(b, "attn_qkv", h))
        return [heads[:HEADS], heads[HEADS:HEADS + HEADS_KV], heads[HEADS + HEADS_KV:]]

    def turn(self, layer, head, at):
        if self.positions:
            return head
        return rotate(head[:self.part_size], at, self.frequencies, True) + head[self.part_size:]

    def feed_forward(self, b, h):
        if self.gated:
            return super().feed_forward(b, h)
        return self.part(b, "ffn_down", [gelu(a) for a in self.part(b, "ffn_up", h)])

    def logits(self, ids):
        rows = [self.embed(id) for id in ids]
        if self.positions:
            rows = [add(x, self.weights["position_embd.weight"][at]) for at, x in enumerate(rows)]
        for i in range(self.layers):
            b, keys, values = f"blk.{i}.", [], []
            for at, x in enumerate(rows):
                h = self.centred(b, "attn_norm", x)
                q, k, v = self.project(b, h)
                keys.append([self.turn(i, head, at) for head in k])
                values.append(v)
                mixed = attend([self.turn(i, head, at) for head in q], keys, values, at, SIZE ** -0.5)
                x = add(x, self.part(b, "attn_output", mixed))
                rows[at] = add(x, self.feed_forward(b, h if self.parallel else self.centred(b, "ffn_norm", x)))
        rows = [self.score(self.centred("", "output_norm", x)) for x in rows]
        return [add(x, self.weights["output.bias"]) for x in rows] if self.parallel else rows


class GPT2(Classic):
    name, joined, positions, tied = "gpt2", True, True, True


class Phi2(Classic):
    name, parallel, part_size = "phi2", True, 4


class StarCoder2(Classic):
    name = "starcoder2"


class StableLM(Classic):
    name, gated, biased, part_size = "stablelm", True, False, 2


class Gemma4(Gemma3):
    """Heads of two sizes, normed values; with `tokens` rows of every layer and layers that share keys, with `experts` these."""
    name, layers, near, wide, numbers, experts, used = "gemma4", 6, [True, True, False, True, True, False], 8, 5, 5, 2
    more = {}

    def __init__(self, seed, kind=""):
        self.kind = kind
        self.own = 3 if kind == "tokens" else 6
        more = {"attention.sliding_window": 4, "attention.sliding_window_pattern": self.near, "attention.key_length": self.wide,
                "attention.value_length": self.wide, "attention.key_length_swa": SIZE, "attention.value_length_swa": SIZE,
                "rope.dimension_count": self.wide, "rope.dimension_count_swa": SIZE, "rope.freq_base": 5000.0,
                "rope.freq_base_swa": 700.0, "attention.shared_kv_layers": self.layers - self.own, "feed_forward_length": WIDE,
                "embedding_length_per_layer_input": self.numbers if kind == "tokens" else 0}
        if kind == "experts":
            more.update({"expert_count": self.experts, "expert_used_count": self.used, "expert_feed_forward_length": WIDE})
        else:
            more["final_logit_softcapping"] = 2.5
        super().__init__(seed, more)
        r, w = self.random, self.weights
        w["rope_freqs.weight"] = [1.0, 2.5, 8.0, 1.5]
        if kind == "tokens":
            w["per_layer_token_embd.weight"] = r.matrix(VOCABULARY, self.layers * self.numbers)
            w["per_layer_model_proj.weight"] = r.matrix(self.layers * self.numbers, WIDTH)
            w["per_layer_proj_norm.weight"] = r.vector(self.numbers)

    def size(self, layer):
        return SIZE if self.near[layer] else self.wide

    def add_layer(self, b):
        r, w, layer = self.random, self.weights, int(b.split(".")[1])
        size = self.size(layer)
        for name in ("attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"):
            w[f"{b}{name}.weight"] = r.vector(WIDTH)
        shapes = {"attn_q": (HEADS * size, WIDTH), "attn_k": (HEADS_KV * size, WIDTH), "attn_v": (HEADS_KV * size, WIDTH),
                  "attn_output": (WIDTH, HEADS * size)}
        w[b + "attn_q_norm.weight"] = r.vector(size)
        if layer >= self.own:
            del shapes["attn_k"], shapes["attn_v"]
        else:
            w[b + "attn_k_norm.weight"] = r.vector(size)
        if self.kind == "experts" and not self.near[layer]:
            del shapes["attn_v"]  # values are the keys before their norm
        if self.kind == "tokens":
            shapes.update({"inp_gate": (self.numbers, WIDTH), "proj": (WIDTH, self.numbers)})
            w[b + "post_norm.weight"], w[b + "layer_output_scale.weight"] = r.vector(WIDTH), [r.number(0.8, 0.1)]
        for name, (rows, columns) in shapes.items():
            w[f"{b}{name}.weight"] = r.matrix(rows, columns)
        self.add_feed_forward(b)
        if self.kind == "experts":
            w[b + "ffn_gate_inp.weight"], w[b + "ffn_gate_inp.scale"] = r.matrix(self.experts, WIDTH), r.vector(WIDTH)
            w[b + "ffn_down_exps.scale"] = r.vector(self.experts)
            for name in ("post_ffw_norm_1", "pre_ffw_norm_2", "post_ffw_norm_2"):
                w[f"{b}{name}.weight"] = r.vector(WIDTH)
            for name, rows, columns in (("gate_up", 2 * WIDE, WIDTH), ("down", WIDTH, WIDE)):
                w[f"{b}ffn_{name}_exps.weight"] = [r.matrix(rows, columns) for _ in range(self.experts)]

    def of_experts(self, b, x):
        plain = norm(x, [1.0] * WIDTH)
        inner = [a / math.sqrt(WIDTH) * c for a, c in zip(plain, self.get(b, "ffn_gate_inp", "scale"))]
        shares = softmax(linear(inner, self.get(b, "ffn_gate_inp")))
        best = sorted(range(self.experts), key=lambda e: -shares[e])[:self.used]
        h, result = norm(x, self.get(b, "pre_ffw_norm_2")), [0.0] * WIDTH
        for e in best:
            both = linear(h, self.get(b, "ffn_gate_up_exps")[e])
            y = linear([gelu(g) * u for g, u in zip(both[:WIDE], both[WIDE:])], self.get(b, "ffn_down_exps")[e])
            share = shares[e] / sum(shares[i] for i in best) * self.get(b, "ffn_down_exps", "scale")[e]
            result = [a + c * share for a, c in zip(result, y)]
        return norm(result, self.get(b, "post_ffw_norm_2"))

    def feed_forward(self, b, x):
        y = super().feed_forward(b, norm(x, self.get(b, "ffn_norm")))
        return add(norm(y, self.get(b, "post_ffw_norm_1")), self.of_experts(b, x)) if self.kind == "experts" else y

    def tokens_of(self, id, x):
        parts = heads_of(linear([a / math.sqrt(WIDTH) for a in x], self.weights["per_layer_model_proj.weight"]), self.numbers)
        table = heads_of(self.weights["per_layer_token_embd.weight"][id], self.numbers)
        return [[(a + c * math.sqrt(self.numbers)) / math.sqrt(2) for a, c in zip(norm(part, self.weights["per_layer_proj_norm.weight"]), of)]
                for part, of in zip(parts, table)]

    def turn(self, layer, head, at):
        if self.near[layer]:
            return rotate(head, at, plain_frequencies(700.0), True)
        return rotate(head, at, [a / c for a, c in zip(plain_frequencies(5000.0, self.wide), self.weights["rope_freqs.weight"])], True)

    def heads(self, layer, b, name, x, weight):
        return [norm(head, weight or [1.0] * self.size(layer)) for head in heads_of(self.part(b, name, x), self.size(layer))]

    def logits(self, ids):
        rows = [self.embed(id) for id in ids]
        tokens = [self.tokens_of(id, x) for id, x in zip(ids, rows)] if self.kind == "tokens" else None
        held = {}
        for i in range(self.layers):
            b = f"blk.{i}."
            if i < self.own:
                held[self.near[i]] = ([], [])
            keys, values = held[self.near[i]]
            for at, x in enumerate(rows):
                h = norm(x, self.get(b, "attn_norm"))
                q = [self.turn(i, head, at) for head in self.heads(i, b, "attn_q", h, self.get(b, "attn_q_norm"))]
                if i < self.own:
                    keys.append([self.turn(i, head, at) for head in self.heads(i, b, "attn_k", h, self.get(b, "attn_k_norm"))])
                    values.append(self.heads(i, b, "attn_v" if self.get(b, "attn_v") else "attn_k", h, None))
                mixed = attend(q, keys, values, at, 1.0, window=4 if self.near[i] else None)
                x = add(x, norm(self.part(b, "attn_output", mixed), self.get(b, "post_attention_norm")))
                x = add(x, norm(self.feed_forward(b, x), self.get(b, "post_ffw_norm")))
                if tokens:
                    inner = [gelu(a) * c for a, c in zip(self.part(b, "inp_gate", x), tokens[at][i])]
                    x = add(x, norm(self.part(b, "proj", inner), self.get(b, "post_norm")))
                    x = [a * self.get(b, "layer_output_scale")[0] for a in x]
                rows[at] = x
        rows = [Net.score(self, norm(x, self.weights["output_norm.weight"])) for x in rows]
        return rows if self.kind == "experts" else [[2.5 * math.tanh(a / 2.5) for a in row] for row in rows]


class Gemma3n(Gemma4):
    """Four streams of rows; `sparse` layers keep the largest numbers of a gate; the last layers share keys."""
    name, wide, layers, own, numbers, rank, sparse = "gemma3n", SIZE, 7, 5, 5, 3, 2

    def __init__(self, seed, layers=7, own=5, numbers=5, rank=3, sparse=2):
        self.layers, self.own, self.numbers, self.rank, self.sparse = layers, own, numbers, rank, sparse
        self.kind, self.near = "tokens", [(i + 1) % 5 != 0 for i in range(layers)]
        Net.__init__(self, seed, {
            "attention.sliding_window": 4, "attention.sliding_window_pattern": self.near, "rope.freq_base": 5000.0, "rope.freq_base_swa": 700.0,
            "attention.value_length": SIZE, "attention.shared_kv_layers": layers - own, "feed_forward_length": WIDE, "embedding_length_per_layer_input": numbers,
            "final_logit_softcapping": 30.0, "activation_sparsity_scale": [1.6448533535003662] * sparse + [-math.inf] * (layers - sparse),
            "altup.active_idx": 0, "altup.num_inputs": 4})
        r, w = self.random, self.weights
        w["per_layer_token_embd.weight"] = r.matrix(VOCABULARY, layers * numbers)
        w["per_layer_model_proj.weight"] = r.matrix(layers * numbers, WIDTH)
        w["per_layer_proj_norm.weight"] = r.vector(numbers)
        for name in ("altup_proj", "altup_unembd_proj"):
            w[name + ".weight"] = [r.matrix(WIDTH, WIDTH) for _ in range(3)]

    def add_layer(self, b):
        Gemma3.add_layer(self, b)
        r, w = self.random, self.weights
        for name in ("altup_router_norm", "laurel_post_norm", "post_norm", "altup_correct_scale"):
            w[f"{b}{name}.weight"] = r.vector(WIDTH)
        for name, rows, columns in (("altup_router", 4, WIDTH), ("altup_predict_coef", 16, 4), ("altup_correct_coef", 4, 4), ("laurel_l", self.rank, WIDTH),
                                    ("laurel_r", WIDTH, self.rank), ("inp_gate", self.numbers, WIDTH), ("proj", WIDTH, self.numbers)):
            w[f"{b}{name}.weight"] = r.matrix(rows, columns)

    def turn(self, layer, head, at):
        return rotate(head, at, plain_frequencies(700.0 if self.near[layer] else 5000.0), True)

    def feed_forward(self, b, h):
        gate = self.part(b, "ffn_gate", h)
        if int(b.split(".")[1]) < self.sparse:
            mean = sum(gate) / len(gate)
            least = mean + 1.6448533535003662 * math.sqrt(sum((a - mean) ** 2 for a in gate) / (len(gate) - 1))
            gate = [max(a - least, 0.0) for a in gate]
        return self.part(b, "ffn_down", [gelu(g) * u for g, u in zip(gate, self.part(b, "ffn_up", h))])

    def route(self, b, x):
        return [math.tanh(a) for a in linear([a / WIDTH for a in norm(x, self.get(b, "altup_router_norm"))], self.get(b, "altup_router"))]

    def apart(self, first, others, name):
        result = []
        for x, matrix in zip(others, self.weights[name + ".weight"]):
            y = linear(x, matrix)
            ratio = math.sqrt(sum(a * a for a in first) / sum(a * a for a in y))
            result.append([a * ratio for a in y])
        return result

    def logits(self, ids):
        rows = [self.embed(id) for id in ids]
        tokens = [self.tokens_of(id, x) for id, x in zip(ids, rows)]
        rows = [[x] + self.apart(x, [x] * 3, "altup_proj") for x in rows]
        held = {}
        for i in range(self.layers):
            b = f"blk.{i}."
            if i < self.own:
                held[self.near[i]] = ([], [])
            keys, values = held[self.near[i]]
            for at, streams in enumerate(rows):
                weights = heads_of(linear(self.route(b, streams[0]), self.get(b, "altup_predict_coef")), 4)
                predicted = [[x[d] + sum(w * y[d] for w, y in zip(row, streams)) for d in range(WIDTH)] for row, x in zip(weights, streams)]
                h = norm(predicted[0], self.get(b, "attn_norm"))
                q = [self.turn(i, head, at) for head in self.heads(i, b, "attn_q", h, self.get(b, "attn_q_norm"))]
                if i < self.own:
                    keys.append([self.turn(i, head, at) for head in self.heads(i, b, "attn_k", h, self.get(b, "attn_k_norm"))])
                    values.append(self.heads(i, b, "attn_v", h, None))
                mixed = self.part(b, "attn_output", attend(q, keys, values, at, 1.0, window=4 if self.near[i] else None))
                x = add(predicted[0], norm(mixed, self.get(b, "post_attention_norm")))
                lateral = norm(linear(linear(h, self.get(b, "laurel_l")), self.get(b, "laurel_r")), self.get(b, "laurel_post_norm"))
                x = [a / math.sqrt(2) for a in add(x, add(h, lateral))]
                x = add(x, norm(self.feed_forward(b, norm(x, self.get(b, "ffn_norm"))), self.get(b, "post_ffw_norm")))
                shares = [a + 1.0 for a in linear(self.route(b, x), self.get(b, "altup_correct_coef"))]
                streams = [[p + share * (a - c) for p, a, c in zip(row, x, predicted[0])] for row, share in zip(predicted, shares)]
                inner = linear([a * c for a, c in zip(streams[0], self.get(b, "altup_correct_scale"))], self.get(b, "inp_gate"))
                more = norm(self.part(b, "proj", [gelu(a) * c for a, c in zip(inner, tokens[at][i])]), self.get(b, "post_norm"))
                rows[at] = [streams[0]] + [add(x, more) for x in streams[1:]]
        result = []
        for streams in rows:
            parts = [streams[0]] + self.apart(streams[0], streams[1:], "altup_unembd_proj")
            x = norm([sum(p[d] for p in parts) / 4 for d in range(WIDTH)], self.weights["output_norm.weight"])
            result.append([30.0 * math.tanh(a / 30.0) for a in Net.score(self, x)])
        return result


class Llama4(Mixtral):
    """Layers that see their stretch of the text, with normed heads, and layers without positions whose queries grow."""
    name, layers, used, stretch = "llama4", 5, 1, 4

    def __init__(self, seed, stretch=4):
        self.stretch = stretch
        super().__init__(seed, {"expert_count": self.experts, "expert_used_count": self.used, "interleave_moe_layer_step": 2, "feed_forward_length": WIDE,
                                "expert_feed_forward_length": WIDE, "attention.sliding_window": stretch, "attention.temperature_length": stretch})

    def add_feed_forward(self, b):
        if int(b.split(".")[1]) % 2 == 0:
            return Net.add_feed_forward(self, b)
        super().add_feed_forward(b)
        for name, rows, columns in (("gate", WIDE, WIDTH), ("up", WIDE, WIDTH), ("down", WIDTH, WIDE)):
            self.weights[f"{b}ffn_{name}_shexp.weight"] = self.random.matrix(rows, columns)

    def feed_forward(self, b, h):
        if not self.get(b, "ffn_gate_inp"):
            return Net.feed_forward(self, b, h)
        scores = self.part(b, "ffn_gate_inp", h)
        e = scores.index(max(scores))
        x = [a / (1.0 + math.exp(-scores[e])) for a in h]
        gate, up = (linear(x, self.get(b, f"ffn_{name}_exps")[e]) for name in ("gate", "up"))
        y = linear([silu(g) * u for g, u in zip(gate, up)], self.get(b, "ffn_down_exps")[e])
        mixed = [silu(g) * u for g, u in zip(self.part(b, "ffn_gate_shexp", h), self.part(b, "ffn_up_shexp", h))]
        return add(y, self.part(b, "ffn_down_shexp", mixed))

    def turn(self, layer, head, at):
        return head if layer % 4 == 3 else norm(super().turn(layer, head, at), [1.0] * SIZE)

    def logits(self, ids):
        rows = [self.embed(id) for id in ids]
        for i in range(self.layers):
            b, keys, values = f"blk.{i}.", [], []
            for at, x in enumerate(rows):
                q, k, v = ([self.turn(i, head, at) for head in part] if c < 2 else part for c, part in enumerate(self.project(b, norm(x, self.get(b, "attn_norm")))))
                if i % 4 == 3:
                    grown = 1.0 + 0.1 * math.log(1.0 + (at + 1) // self.stretch)
                    q = [[a * grown for a in head] for head in q]
                keys.append(k)
                values.append(v)
                mixed = attend(q, keys, values, at, SIZE ** -0.5, window=None if i % 4 == 3 else at % self.stretch + 1)
                x = add(x, self.part(b, "attn_output", mixed))
                rows[at] = add(x, self.feed_forward(b, norm(x, self.get(b, "ffn_norm"))))
        return [self.score(norm(x, self.weights["output_norm.weight"])) for x in rows]


class Qwen35(Net):
    """Three of four layers have a state that the gated delta rule changes; attention with gates; norms by head."""
    name, half, layers, groups, values, state, taps, part_size = "qwen35", True, 5, 2, 4, 6, 4, 4
    in_turn, experts, used = True, 0, 2

    def __init__(self, seed, more=None):
        more = {"ssm.conv_kernel": self.taps, "ssm.state_size": self.state, "ssm.group_count": self.groups, "ssm.time_step_rank": self.values,
                "ssm.inner_size": self.values * self.state, "full_attention_interval": 4, "feed_forward_length": WIDE, "attention.value_length": SIZE,
                "rope.dimension_count": self.part_size, "rope.dimension_sections": [1, 1, 0, 0], **(more or {})}
        if self.experts:
            more.update({"expert_count": self.experts, "expert_used_count": self.used, "expert_feed_forward_length": WIDE, "expert_shared_feed_forward_length": WIDE})
        super().__init__(seed, more)
        self.frequencies = plain_frequencies(size=self.part_size)

    def add_layer(self, b):
        r, w = self.random, self.weights
        keys, inner = self.groups * self.state, self.values * self.state
        for name in ("attn_norm", "post_attention_norm"):
            w[f"{b}{name}.weight"] = r.vector(WIDTH)
        if int(b.split(".")[1]) % 4 == 3:
            shapes = {"attn_q": (2 * HEADS * SIZE, WIDTH), "attn_k": (HEADS_KV * SIZE, WIDTH), "attn_v": (HEADS_KV * SIZE, WIDTH),
                      "attn_output": (WIDTH, HEADS * SIZE)}
            w[b + "attn_q_norm.weight"], w[b + "attn_k_norm.weight"] = r.vector(SIZE), r.vector(SIZE)
        else:
            shapes = {"attn_qkv": (2 * keys + inner, WIDTH), "attn_gate": (inner, WIDTH), "ssm_out": (WIDTH, inner),
                      "ssm_conv1d": (2 * keys + inner, self.taps), **self.rates()}
            w[b + "ssm_dt.bias"] = r.vector(self.values)
            w[b + "ssm_a"] = [-abs(a) for a in r.vector(self.values)]
            w[b + "ssm_norm.weight"] = r.vector(self.state)
        for name, (rows, columns) in shapes.items():
            w[f"{b}{name}.weight"] = r.matrix(rows, columns)
        self.add_feed_forward(b)

    def rates(self):
        return {"ssm_beta": (self.values, WIDTH), "ssm_alpha": (self.values, WIDTH)}

    def rates_of(self, b, h):
        return self.part(b, "ssm_beta", h), self.part(b, "ssm_alpha", h)

    def add_feed_forward(self, b):
        if not self.experts:
            return super().add_feed_forward(b)
        shapes = (("gate", WIDE, WIDTH), ("up", WIDE, WIDTH), ("down", WIDTH, WIDE))
        self.weights[b + "ffn_gate_inp.weight"] = self.random.matrix(self.experts, WIDTH)
        self.weights[b + "ffn_gate_inp_shexp.weight"] = self.random.matrix(1, WIDTH)
        for name, rows, columns in shapes:
            self.weights[f"{b}ffn_{name}_exps.weight"] = [self.random.matrix(rows, columns) for _ in range(self.experts)]
            self.weights[f"{b}ffn_{name}_shexp.weight"] = self.random.matrix(rows, columns)

    def feed_forward(self, b, h):
        if not self.experts:
            return super().feed_forward(b, h)
        shares = softmax(self.part(b, "ffn_gate_inp", h))
        best = sorted(range(self.experts), key=lambda e: -shares[e])[:self.used]
        scale = 1.0 / (1.0 + math.exp(-self.part(b, "ffn_gate_inp_shexp", h)[0]))
        mixed = [silu(g) * u for g, u in zip(self.part(b, "ffn_gate_shexp", h), self.part(b, "ffn_up_shexp", h))]
        result = [a * scale for a in self.part(b, "ffn_down_shexp", mixed)]
        for e in best:
            gate, up = (linear(h, self.get(b, f"ffn_{name}_exps")[e]) for name in ("gate", "up"))
            y = linear([silu(g) * u for g, u in zip(gate, up)], self.get(b, "ffn_down_exps")[e])
            result = [a + c * shares[e] / sum(shares[i] for i in best) for a, c in zip(result, y)]
        return result

    def by_state(self, b, rows):
        size, keys, taps = self.state, self.groups * self.state, self.get(b, "ssm_conv1d")
        line = [[0.0] * len(taps)] * (self.taps - 1) + [self.part(b, "attn_qkv", h) for h in rows]
        states = [[[0.0] * size for _ in range(size)] for _ in range(self.values)]  # [key][value]
        result = []
        for at, h in enumerate(rows):
            x = [silu(sum(line[at + j][c] * taps[c][j] for j in range(self.taps))) for c in range(len(taps))]
            unit = [[a / math.sqrt(sum(y * y for y in part) + 1e-5) for a in part] for part in heads_of(x[:2 * keys], size)]
            values, gates, outs = heads_of(x[2 * keys:], size), heads_of(self.part(b, "attn_gate", h), size), []
            beta, alpha = self.rates_of(b, h)
            for v in range(self.values):
                g = v % self.groups if self.in_turn else v // (self.values // self.groups)
                q, k = [a / math.sqrt(size) for a in unit[g]], unit[self.groups + g]
                decay = math.exp(math.log1p(math.exp(alpha[v] + self.get(b, "ssm_dt", "bias")[v])) * self.weights[b + "ssm_a"][v])
                state = [[a * decay for a in line_] for line_ in states[v]]
                share = 1.0 / (1.0 + math.exp(-beta[v]))
                more = [share * (values[v][e] - sum(state[d][e] * k[d] for d in range(size))) for e in range(size)]
                states[v] = [[state[d][e] + k[d] * more[e] for e in range(size)] for d in range(size)]
                y = norm([sum(states[v][d][e] * q[d] for d in range(size)) for e in range(size)], self.get(b, "ssm_norm"))
                outs += [a * silu(c) for a, c in zip(y, gates[v])]
            result.append(self.part(b, "ssm_out", outs))
        return result

    def by_attention(self, b, rows):
        keys, values, result = [], [], []
        for at, h in enumerate(rows):
            both = heads_of(self.part(b, "attn_q", h), 2 * SIZE)
            def turned(heads, name):
                heads = self.by_head(b, name, heads)
                return [rotate(x[:self.part_size], at, self.frequencies, True) + x[self.part_size:] for x in heads]
            keys.append(turned(heads_of(self.part(b, "attn_k", h)), "attn_k_norm"))
            values.append(heads_of(self.part(b, "attn_v", h)))
            mixed = attend(turned([x[:SIZE] for x in both], "attn_q_norm"), keys, values, at, SIZE ** -0.5)
            gate = [a for x in both for a in x[SIZE:]]
            result.append(self.part(b, "attn_output", [a / (1.0 + math.exp(-g)) for a, g in zip(mixed, gate)]))
        return result

    def logits(self, ids):
        rows = [self.embed(id) for id in ids]
        for i in range(self.layers):
            b = f"blk.{i}."
            mix = self.by_attention if i % 4 == 3 else self.by_state
            mixed = mix(b, [norm(x, self.get(b, "attn_norm")) for x in rows])
            for at, x in enumerate(rows):
                x = add(x, mixed[at])
                rows[at] = add(x, self.feed_forward(b, norm(x, self.get(b, "post_attention_norm"))))
        return [self.score(norm(x, self.weights["output_norm.weight"])) for x in rows]


class Qwen35Moe(Qwen35):
    name, experts = "qwen35moe", 5


class Qwen3Next(Qwen35Moe):
    name, in_turn = "qwen3next", False

    def rates(self):
        return {"ssm_ba": (2 * self.values, WIDTH)}

    def rates_of(self, b, h):
        each = heads_of(self.part(b, "ssm_ba", h), 2 * self.values // self.groups)
        count = self.values // self.groups
        return [a for part in each for a in part[:count]], [a for part in each for a in part[count:]]


class Mamba2(Net):
    """Layers by a state alone; subclasses put attention and feed-forward parts between."""
    name, half, layers, groups, values, inner, state, taps = "mamba2", True, 3, 2, 4, 24, 5, 4
    rotates = True

    def __init__(self, seed, more=None):
        super().__init__(seed, {"ssm.conv_kernel": self.taps, "ssm.state_size": self.state, "ssm.group_count": self.groups,
                                "ssm.time_step_rank": self.values, "ssm.inner_size": self.inner, **(more or {})})

    def kind(self, layer):
        return "s"  # of the letters s (state), a (attention), f (feed-forward)

    def add_layer(self, b):
        r, w, kind = self.random, self.weights, self.kind(int(b.split(".")[1]))
        w[b + "attn_norm.weight"] = r.vector(WIDTH)
        columns = self.inner + 2 * self.groups * self.state
        shapes = {}
        if "s" in kind:
            shapes.update({"ssm_in": (self.inner + columns + self.values, WIDTH), "ssm_conv1d": (columns, self.taps), "ssm_out": (WIDTH, self.inner)})
            w[b + "ssm_conv1d.bias"], w[b + "ssm_dt.bias"] = r.vector(columns), r.vector(self.values)
            w[b + "ssm_a"] = [[-abs(a)] for a in r.vector(self.values)]
            w[b + "ssm_d"] = [[a] for a in r.vector(self.values)]
            w[b + "ssm_norm.weight"] = [r.vector(self.inner // self.groups) for _ in range(self.groups)]
        if "a" in kind:
            shapes.update({"attn_q": (HEADS * SIZE, WIDTH), "attn_k": (HEADS_KV * SIZE, WIDTH), "attn_v": (HEADS_KV * SIZE, WIDTH),
                           "attn_output": (WIDTH, HEADS * SIZE)})
        for name, (rows, columns) in shapes.items():
            w[f"{b}{name}.weight"] = r.matrix(rows, columns)
        if "f" in kind:
            self.add_feed_forward(b)

    def by_state(self, b, rows):
        inner, keys, each, result = self.inner, self.groups * self.state, self.inner // self.values, []
        entered, taps = [self.part(b, "ssm_in", h) for h in rows], self.get(b, "ssm_conv1d")
        line = [[0.0] * len(taps)] * (self.taps - 1) + [x[inner:inner + len(taps)] for x in entered]
        states = [[[0.0] * each for _ in range(self.state)] for _ in range(self.values)]
        for at, x in enumerate(entered):
            mixed = [silu(sum(line[at + j][c] * taps[c][j] for j in range(self.taps)) + self.get(b, "ssm_conv1d", "bias")[c]) for c in range(len(taps))]
            b_, c_, y = heads_of(mixed[inner:inner + keys], self.state), heads_of(mixed[inner + keys:], self.state), []
            for h, values in enumerate(heads_of(mixed[:inner], each)):
                g, pace = h // (self.values // self.groups), math.log1p(math.exp(x[inner + len(taps) + h] + self.get(b, "ssm_dt", "bias")[h]))
                decay = math.exp(pace * self.weights[b + "ssm_a"][h][0])
                states[h] = [[a * decay + b_[g][d] * values[e] * pace for e, a in enumerate(states[h][d])] for d in range(self.state)]
                y += [sum(states[h][d][e] * c_[g][d] for d in range(self.state)) + values[e] * self.weights[b + "ssm_d"][h][0] for e in range(each)]
            y = [a * silu(z) for a, z in zip(y, x)]
            normed = [a for part, weight in zip(heads_of(y, inner // self.groups), self.get(b, "ssm_norm")) for a in norm(part, weight)]
            result.append(self.part(b, "ssm_out", normed))
        return result

    def by_attention(self, b, rows):
        keys, values, result = [], [], []
        for at, h in enumerate(rows):
            q, k, v = self.project(b, h)
            if self.rotates:
                q, k = ([self.turn(0, head, at) for head in part] for part in (q, k))
            keys.append(k)
            values.append(v)
            result.append(self.part(b, "attn_output", attend(q, keys, values, at, self.scale)))
        return result

    def logits(self, ids):
        rows = [self.embed(id) for id in ids]
        for i in range(self.layers):
            b, kind = f"blk.{i}.", self.kind(i)
            normed = [norm(x, self.get(b, "attn_norm")) for x in rows]
            parts = [part(b, normed) for letter, part in (("s", self.by_state), ("a", self.by_attention)) if letter in kind]
            for at, x in enumerate(rows):
                for part in parts:
                    x = add(x, self.after(b, "", part[at]))
                if "f" in kind:
                    h = norm(x, self.get(b, "ffn_norm")) if self.get(b, "ffn_norm") else normed[at]
                    x = add(x, self.after(b, "", self.feed_forward(b, h)))
                rows[at] = x
        return [self.score(norm(x, self.weights["output_norm.weight"])) for x in rows]


class GraniteHybrid(Mamba2):
    name, half, layers, groups, inner, scale = "granitehybrid", False, 4, 1, 48, 0.25

    def __init__(self, seed, rotates=1):
        self.rotates = bool(rotates)
        super().__init__(seed, {"embedding_scale": 3.0, "attention.scale": 0.25, "residual_scale": 0.4, "logit_scale": 2.0, "feed_forward_length": WIDE,
                                "attention.value_length": SIZE, "attention.head_count_kv": [0, HEADS_KV, 0, HEADS_KV],
                                **({} if rotates else {"rope.scaling.finetuned": False})})

    def kind(self, layer):
        return "af" if layer % 2 else "sf"

    def add_layer(self, b):
        super().add_layer(b)
        self.weights[b + "ffn_norm.weight"] = self.random.vector(WIDTH)

    def embed(self, id):
        return [a * 3.0 for a in super().embed(id)]

    def after(self, b, name, x):
        return [a * 0.4 for a in x]

    def score(self, x):
        return [a / 2.0 for a in super().score(x)]


class NemotronH(Mamba2):
    name, layers, rotates = "nemotron_h", 5, False

    def __init__(self, seed):
        kinds = [self.kind(i) for i in range(self.layers)]
        super().__init__(seed, {"feed_forward_length": [WIDE if k == "f" else 0 for k in kinds], "attention.value_length": SIZE,
                                "attention.head_count_kv": [HEADS_KV if k == "a" else 0 for k in kinds], "attention.layer_norm_epsilon": 1e-5})

    def kind(self, layer):
        return "sfasf"[layer]

    def add_feed_forward(self, b):
        super().add_feed_forward(b)
        del self.weights[b + "ffn_gate.weight"]

    def feed_forward(self, b, h):
        return self.part(b, "ffn_down", [max(a, 0.0) ** 2 for a in self.part(b, "ffn_up", h)])


class FalconH1(Mamba2):
    name = "falcon-h1"

    def __init__(self, seed):
        super().__init__(seed, {"feed_forward_length": WIDE, "attention.value_length": SIZE})

    def kind(self, layer):
        return "saf"

    def add_layer(self, b):
        super().add_layer(b)
        self.weights[b + "ffn_norm"] = self.random.vector(WIDTH)

    def get(self, b, name, kind="weight"):
        return self.weights[b + name] if name == "ffn_norm" else super().get(b, name, kind)
