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
    if isinstance(value, list):
        return struct.pack("<IIQ", 9, 4, len(value)) + struct.pack(f"<{len(value)}I", *value)
    return struct.pack("<If", 6, value) if isinstance(value, float) else struct.pack("<II", 4, value)


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
    tied, magnitude, layers, window, cap = False, 1.0, 2, None, None
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

    def after(self, b, name, x):
        return x

    def logits(self, ids):
        rows = [self.embed(id) for id in ids]
        for i in range(self.layers):
            b, keys, values = f"blk.{i}.", [], []
            for at, x in enumerate(rows):
                q, k, v = self.project(b, norm(x, self.get(b, "attn_norm")))
                q, k = self.by_head(b, "attn_q_norm", q), self.by_head(b, "attn_k_norm", k)
                q, k = ([rotate(head, at, self.frequencies, self.half, self.magnitude) for head in part] for part in (q, k))
                keys.append(k)
                values.append(v)
                mixed = attend(q, keys, values, at, SIZE ** -0.5, self.cap, self.window_of(i))
                x = add(x, self.after(b, "post_attention_norm", self.part(b, "attn_output", mixed)))
                h = norm(x, self.get(b, "ffn_norm"))
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
