"""Llamas of random weights in any type of GGUF, with a vocabulary of numbers."""
import random
import struct

# Layers, width, width of the feed-forward part, heads, heads of keys and values, words.
TINYLLAMA = (22, 2048, 5632, 32, 4, 32000)

# Type number, elements and bytes of a block, where its float16 factors are, and their size.
FORMATS = {
    "f32": (0, 1, 4, [], 0), "f16": (1, 1, 2, [], 0), "bf16": (30, 1, 2, [], 0),
    "q4_0": (2, 32, 18, [0], 4e-3), "q4_1": (3, 32, 20, [0, 2], 4e-3), "q5_0": (6, 32, 22, [0], 2e-3),
    "q5_1": (7, 32, 24, [0, 2], 2e-3), "q8_0": (8, 32, 34, [0], 3e-4), "q2_k": (10, 256, 84, [80, 82], 1e-3),
    "q3_k": (11, 256, 110, [108], 4e-4), "q4_k": (12, 256, 144, [0, 2], 1e-4), "q5_k": (13, 256, 176, [0, 2], 5e-5),
    "q6_k": (14, 256, 210, [208], 2e-5), "iq4_nl": (20, 32, 18, [0], 3e-4), "iq4_xs": (23, 256, 136, [0], 2e-5),
    "iq2_xxs": (16, 256, 66, [0], 2e-4), "iq2_xs": (17, 256, 74, [0], 2e-4), "iq2_s": (22, 256, 82, [0], 2e-4),
    "iq3_xxs": (18, 256, 98, [0], 2e-4), "iq3_s": (21, 256, 110, [0], 2e-4), "iq1_s": (19, 256, 50, [0], 2e-3),
    "tq1_0": (34, 256, 54, [52], 2e-2), "tq2_0": (35, 256, 66, [64], 2e-2), "mxfp4": (39, 32, 17, [], 0),
}
PATTERN_BLOCKS = 1 << 15


def _text(word):
    encoded = word.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def _metadata(entries):
    out = b""
    for key, value in entries.items():
        if isinstance(value, str):
            out += _text(key) + struct.pack("<I", 8) + _text(value)
        elif isinstance(value, float):
            out += _text(key) + struct.pack("<If", 6, value)
        elif isinstance(value, list):
            kind, pack = {str: (8, _text), int: (5, struct.Struct("<i").pack), float: (6, struct.Struct("<f").pack)}[type(value[0])]
            out += _text(key) + struct.pack("<IIQ", 9, kind, len(value)) + b"".join(map(pack, value))
        else:
            out += _text(key) + struct.pack("<II", 4, value)
    return out


def _vocabulary(words):
    """Of SentencePiece: the special pieces, those of bytes, and numbers."""
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [2, 3, 3] + [6] * 256
    more = words - len(special)
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": special + [f"\u2581{i}" for i in range(more)],
            "tokenizer.ggml.scores": [0.0] * len(special) + [-float(i) for i in range(more)],
            "tokenizer.ggml.token_type": kinds + [1] * more, "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2}


def _pattern(name):
    """Blocks of random weights of about 0.02; of float32, which only norms have, ones."""
    source = random.Random(1)
    if name == "f32":
        return struct.pack("<f", 1.0) * PATTERN_BLOCKS
    if name == "f16":
        return b"".join(struct.pack("<e", source.gauss(0, 0.02)) for _ in range(PATTERN_BLOCKS))
    if name == "bf16":
        return b"".join(struct.pack("<f", source.gauss(0, 0.02))[2:] for _ in range(PATTERN_BLOCKS))
    _, _, size, factors, scale = FORMATS[name]
    blocks = []
    for _ in range(PATTERN_BLOCKS):
        block = bytearray(source.randbytes(size))
        for at in factors:
            block[at:at + 2] = struct.pack("<e", scale * source.uniform(0.5, 1))
        if name == "mxfp4":
            block[0] = source.randint(119, 121)
        blocks.append(bytes(block))
    return b"".join(blocks)


def _kind(name, tensor, layer, layers):
    """The type of a tensor in a file of the type `name`; in one of q4_k_m as llama.cpp mixes them."""
    if name == "q4_k_m":
        more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
        return "q6_k" if tensor == "output" or (tensor in ("attn_v", "ffn_down") and more) else "q4_k"
    return name


def write_llama(path, name, shape, vocabulary=_vocabulary):
    """A file of the type `name` (one of FORMATS, or q4_k_m); returns the bytes of weights that one token reads."""
    layers, width, wide, heads, heads_kv, words = shape
    narrow = width // heads * heads_kv
    tensors = [("token_embd.weight", [width, words], _kind(name, "token_embd", 0, layers)),
               ("output_norm.weight", [width], "f32"),
               ("output.weight", [width, words], _kind(name, "output", 0, layers))]
    for i in range(layers):
        for part, dims in (("attn_q", [width, width]), ("attn_k", [width, narrow]), ("attn_v", [width, narrow]),
                           ("attn_output", [width, width]), ("ffn_gate", [width, wide]),
                           ("ffn_up", [width, wide]), ("ffn_down", [wide, width])):
            tensors.append((f"blk.{i}.{part}.weight", dims, _kind(name, part, i, layers)))
        for part in ("attn_norm", "ffn_norm"):
            tensors.append((f"blk.{i}.{part}.weight", [width], "f32"))
    entries = {"general.architecture": "llama", "llama.block_count": layers, "llama.embedding_length": width,
               "llama.feed_forward_length": wide, "llama.attention.head_count": heads,
               "llama.attention.head_count_kv": heads_kv, "llama.attention.layer_norm_rms_epsilon": 1e-5,
               "llama.context_length": 16384, "llama.rope.freq_base": 10000.0,
               "llama.rope.dimension_count": width // heads, "llama.vocab_size": words,
               **vocabulary(words)}
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + _metadata(entries)
    offset, sizes = 0, []
    for key, dims, kind in tensors:
        number, per_block, block_bytes = FORMATS[kind][:3]
        count = dims[0] * (dims[1] if len(dims) > 1 else 1)
        sizes.append((kind, count // per_block * block_bytes))
        header += _text(key) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims)
        header += struct.pack("<IQ", number, offset)
        offset += (sizes[-1][1] + 31) // 32 * 32
    patterns = {kind: _pattern(kind) for kind in {kind for kind, _ in sizes}}
    with open(path, "wb") as file:
        file.write(header.ljust((len(header) + 31) // 32 * 32, b"\0"))
        for kind, size in sizes:
            whole, rest = divmod(size, len(patterns[kind]))
            for _ in range(whole):
                file.write(patterns[kind])
            file.write(patterns[kind][:rest] + b"\0" * (-size % 32))
    return sum(size for (key, _, _), (_, size) in zip(tensors, sizes) if key != "token_embd.weight")
