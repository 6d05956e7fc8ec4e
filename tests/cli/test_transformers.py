"""Language models against Hugging Face's Transformers: small ones of every family, as the folders that it writes.
transformers_values.json has what Transformers 5.17 was given and gave: the configuration, the seed of PyTorch's generator and in
which order it drew the parameters, all from normal distributions, and two rows of logits, or of an encoder's last layer."""
import json
import math
import random
import re
import struct
import tempfile
import unittest
from pathlib import Path

from tl import run

VALUES = json.loads(Path(__file__).with_name("transformers_values.json").read_text())
IDS = VALUES["ids"]
STEPS = [9, 1, 1, 8, 1, 4]
TOLERANCE = 2e-5  # of the largest number


class Normal:
    """What torch.randn draws on the CPU, to float32's last bits."""

    def __init__(self, seed):
        words = [seed]  # a Mersenne twister, begun as its authors do
        for i in range(1, 624):
            words.append((1812433253 * (words[-1] ^ words[-1] >> 30) + i) % 2 ** 32)
        self.source = random.Random()
        self.source.setstate((3, (*words, 624), None))
        self.kept = None

    def words(self, count):
        return [self.source.getrandbits(32) for _ in range(count)]

    def block(self, words):
        """Of 16 uniform numbers those that are 8 apart become two normal ones."""
        uniform = [(word & 0xFFFFFF) * 2.0 ** -24 for word in words]
        polar = [(math.sqrt(-2 * math.log(1 - a)), 2 * math.pi * b) for a, b in zip(uniform[:8], uniform[8:])]
        return [r * math.cos(t) for r, t in polar] + [r * math.sin(t) for r, t in polar]

    def one(self):
        if self.kept is not None:
            number, self.kept = self.kept, None
            return number
        words = self.words(4)
        angle, part = ((words[i] << 32 | words[i + 1]) % 2 ** 53 * 2.0 ** -53 for i in (0, 2))
        radius = math.sqrt(-2 * math.log1p(-part))
        self.kept = radius * math.sin(2 * math.pi * angle)
        return radius * math.cos(2 * math.pi * angle)

    def draw(self, count):
        if count < 16:  # one by one; the second of a pair is the next
            return [self.one() for _ in range(count)]
        words, whole = self.words(count), count // 16 * 16
        numbers = [number for i in range(0, whole, 16) for number in self.block(words[i:i + 16])]
        return numbers if whole == count else numbers[:count - 16] + self.block(self.words(16))


def spread(name, shape):
    """The deviation that a parameter was drawn with."""
    if len(shape) == 1:
        return 0.2 if re.search("norm|ln_", name.lower()) and name.endswith("weight") else 0.3
    matrix = name == "embed_out.weight" or "embed" not in name and "wte" not in name
    return 0.9 / max(1.0, shape[-1] ** 0.5) if matrix else 0.7


def drawn(value):
    """Names, shapes and means in the order in which they were drawn."""
    rows = [(None, row) for row in value["before"]]
    for layer, kind in enumerate(value["layers"]):
        rows += [(layer, row) for row in value["kinds"][kind]]
    for layer, (name, shape, *mean) in rows + [(None, row) for row in value["after"]]:
        yield name.replace("#", str(layer)), shape, mean[0] if mean else 0


def split(numbers, shape, count):
    """Rows as so many tensors."""
    size = len(numbers) // count
    return [(numbers[i * size:i * size + size], [shape[0] // count, *shape[1:]]) for i in range(count)]


def parts(name, numbers, shape, experts):
    """Experts were one parameter, their gates and what these gate one below the other."""
    if "*" not in name:
        return {name: (numbers, shape)}
    stem, words = re.fullmatch(r"(.*\*\.)(.*)\.weight", name).groups()
    return {f"{stem.replace('*', str(e))}{word}.weight": half for e, expert in enumerate(split(numbers, shape, experts))
            for word, half in zip(words.split("+"), split(*expert, words.count("+") + 1))}


def tensors_of(value):
    config, source, tensors = value["config"], Normal(value["seed"]), {}
    experts = next((config[key] for key in ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts") if key in config), 0)
    for name, shape, mean in drawn(value):
        numbers = [mean + x * spread(name, shape) for x in source.draw(math.prod(shape))]
        tensors.update(parts(name, numbers, shape, experts))
    for name, shape in value.get("corrections", {}).items():
        tensors[name] = ([0.2 * x for x in Normal(5).draw(math.prod(shape))], shape)
    return tensors


def safetensors(tensors):
    header, data = {}, b""
    for name, (numbers, shape) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(numbers)]}
        data += struct.pack(f"<{len(numbers)}f", *numbers)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


# The logits at once, by steps through a cache, and of the same model as a GGUF file.
PROGRAM = """
import "std/models/%(architecture)s.tl" as page
let m = load_model("folder", cache: float32)
let (ids, rows) = (%(ids)s, %(rows)s)
let whole = m.forward(ids)
print(to_json(whole[rows].to_list()))
let (net, at) = (page.open(m), 0)
let parts = list()
for size in %(steps)s {
    parts.push(net.logits(net.forward(tensor(ids[at:at + size]))))
    at += size
}
let bound = 2e-5 * max(abs(whole))
assert_eq(concat(parts[%(first)s:], 0), whole[-sum([len(part) for part in parts[%(first)s:]]):])
save_model(m, "a.gguf")
let again = load_model("a.gguf", cache: float32)
assert_eq(again.meta("general.architecture"), "%(architecture)s")
assert_about_eq(again.forward(ids), whole, bound)
let joined = [t.name for t in again.tensors() if match_regex(t.name, "gate_up|^blk[.][0-9]+[.].*[.][0-9]+[.]")]
assert_eq(joined, [])
let written = parse_json(%(written)s)
for word in written.keys() { assert_eq(to_json(again.meta("%(architecture)s." + word, none)), to_json(written[word])) }
%(more)s
"""

# Metadata that other readers of GGUF files ask for, of what config.json says otherwise or not at all.
WRITTEN = {
    "bloom": {"feed_forward_length": 128},
    "deepseek_v3": {"expert_shared_count": 1, "leading_dense_block_count": 1, "expert_feed_forward_length": 24, "attention.value_length": 6,
                    "attention.key_length": 12, "rope.dimension_count": 4, "expert_gating_func": 2},
    "deepseek_v3_yarn": {"rope.scaling.yarn_log_multiplier": 0.1, "rope.scaling.attn_factor": None},
    "ernie4_5_moe": {"expert_shared_count": 1, "leading_dense_block_count": 1, "interleave_moe_layer_step": 1},
    "falcon7": {"feed_forward_length": 128, "attention.head_count_kv": 1},
    "gemma": {"attention.key_length": 12, "attention.value_length": 12},
    "gpt2": {"feed_forward_length": 128},
    "gpt_oss": {"expert_feed_forward_length": 48, "rope.scaling.attn_factor": None},
    "granitemoeshared": {"expert_shared_feed_forward_length": 40, "expert_feed_forward_length": 48},
    "lfm2": {"shortconv.l_cache": 3, "attention.head_count_kv": [0, 2, 0, 2]},
    "llama_yarn": {"rope.scaling.yarn_log_multiplier": None, "rope.scaling.attn_factor": None},
    "minimax_m2": {"expert_feed_forward_length": 48, "expert_gating_func": 2},
    "ministral3": {"rope.scaling.yarn_log_multiplier": 1.0, "rope.scaling.attn_factor": None, "attention.temperature_scale": 0.1},
    "mixtral": {"expert_count": 4, "expert_used_count": 2, "expert_feed_forward_length": 48},
    "mpt": {"feed_forward_length": 128, "attention.layer_norm_epsilon": 1e-5},
    "olmo": {"attention.layer_norm_epsilon": 1e-5},
    "qwen2_moe": {"expert_feed_forward_length": 24, "expert_shared_feed_forward_length": 40},
}

# What GGUF files have otherwise than what save_model writes of a folder: the same logits.
FORMS = {
    "deepseek_v3_yarn": """
fn other(name) { contains(name, "attn_kv_b") }
let (net, heads) = (tree(m, other), 4)
for i in 0..len(net.blk) {
    let both = get_tensor(m, f"blk.{i}.attn_kv_b.weight").reshape([heads, 14, -1])
    net.blk[i].set("attn_k_b", {"weight": contiguous(both[:, :8].transpose(1, 2))})
    net.blk[i].set("attn_v_b", {"weight": contiguous(both[:, 8:])})
}
same(net)""",
    "gpt_oss": """
assert_eq(m.blk[0].ffn_up_exps.weight.shape, [4, 48, 32])
same(tree(m, fn(name) { false }), {"gpt-oss.attention.sliding_window_pattern": none})
same(tree(m, fn(name) { false }), {"gpt-oss.attention.sliding_window_pattern": 2})""",
    # a window of 0 is none
    "phimoe": 'same(tree(m, fn(name) { false }), {"phimoe.attention.sliding_window": 0})',
    "phi3_long": 'same(tree(m, fn(name) { false }), {"phi3.attention.sliding_window": 0})',
    "glm4_moe": """
let net = tree(m, fn(name) { false })
net.blk.push({"nextn": {"eh_proj": {"weight": ones([2, 2])}}})
same(net, {"glm4moe.block_count": len(net.blk), "glm4moe.nextn_predict_layers": 1})
same(net, {"glm4moe.block_count": len(net.blk) - 1})""",
    "stablelm_norms": """
let net = tree(m, fn(name) { contains(name, "_norm.") and contains(name, "attn_") and not contains(name, "attn_norm") })
for i in 0..len(net.blk) {
    net.blk[i].set("attn_q_norm", {"weight": stack([get_tensor(m, f"blk.{i}.attn_q_norm.{h}.weight") for h in 0..4], 0)})
    net.blk[i].set("attn_k_norm", {"weight": stack([get_tensor(m, f"blk.{i}.attn_k_norm.{h}.weight") for h in 0..2], 0)})
}
same(net)""",
}
# Files that do not say which layers see a window: every family has its habit.
for name, architecture in (("gemma2", "gemma2"), ("gemma3_text_lin", "gemma3"), ("cohere2", "cohere2"), ("exaone4", "exaone4"),
                           ("olmo3", "olmo2")):
    FORMS[name] = f'same(tree(m, fn(name) {{ false }}), {{"{architecture}.attention.sliding_window_pattern": none}})'
FORM = """
// The tensors of a model as dictionaries and a list of layers, but for those left out.
fn tree(m, left_out) {
    let net = {"blk": list()}
    for t in m.tensors() {
        if left_out(t.name) { continue }
        let (words, at) = (t.name.split("."), net)
        if words[0] == "blk" {
            while len(net.blk) <= int(words[1]) { net.blk.push({}) }
            (at, words) = (net.blk[int(words[1])], words[2:])
        }
        for word in words[:-1] {
            if not contains(at, word) { at.set(word, {}) }
            at = at[word]
        }
        at.set(words[-1], get_tensor(m, t.name))
    }
    net
}
fn same(net, more = {}) {
    let meta = m.meta()
    for k, v in more { if v == none { remove(meta, k) } else { meta.set(k, v) } }
    save_model(net, "form.gguf", meta: meta)
    assert_about_eq(load_model("form.gguf", cache: float32).forward(ids), whole, bound)
}
"""


def as_float32(written):
    """JSON of what a file has of the numbers."""
    return json.dumps({key: struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value
                       for key, value in written.items()})


class Transformers(unittest.TestCase):
    def folder(self, scratch, value):
        place = Path(scratch, "folder")
        place.mkdir()
        Path(place, "config.json").write_text(json.dumps(value["config"]))
        Path(place, "model.safetensors").write_bytes(safetensors(tensors_of(value)))

    def near(self, program, scratch, value):
        """The rows that a program prints are Transformers'."""
        Path(scratch, "program.tl").write_text(program)
        result = run("run", "--memory-check=strict", "program.tl", cwd=scratch)
        self.assertEqual(result.status, 0, result.err)
        self.assertNotIn("warning", result.err)
        for row, want in zip(json.loads(result.out), value["rows"].values(), strict=True):
            for a, b in zip(row, want, strict=True):
                self.assertAlmostEqual(a, b, delta=TOLERANCE * max(1.0, *map(abs, want)))

    def test_decoders(self):
        for name, value in VALUES["models"].items():
            if "encoder" in value:
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                self.folder(scratch, value)
                architecture = run("-e", 'print(load_model("folder").meta("general.architecture"))', cwd=scratch).out.strip()
                written = WRITTEN.get(name, {})
                words = {"architecture": architecture, "written": json.dumps(as_float32(written)), "ids": IDS, "rows": list(map(int, value["rows"])), "steps": STEPS,
                         # rows before the boundary that a text passes were computed by other angles
                         "first": -1 if name == "phi3_long" else 0, "more": FORM + FORMS[name] if name in FORMS else ""}
                self.near(PROGRAM % words, scratch, value)

    def test_a_cache_of_what_keys_and_values_are_made_of(self):
        with tempfile.TemporaryDirectory() as scratch:
            self.folder(scratch, VALUES["models"]["deepseek_v3_yarn"])
            lines = run("-e", 'import "std/models/deepseek2.tl" as page\nlet net = page.open(load_model("folder"))\n'
                              "net.forward([1, 2, 3])\nprint(net.cache.get_k(0).shape, net.cache.get_v(0).shape)", cwd=scratch).out
            self.assertEqual(lines.strip(), "[3, 1, 20] [3, 1, 0]")
            about = json.loads(run("models", "--json", "folder", cwd=scratch).out)
            self.assertEqual(about["cache_bytes_per_token"], 3 * 20 * 4)

    def test_encoders(self):
        for name, value in VALUES["models"].items():
            if "encoder" in value:
                with self.subTest(name), tempfile.TemporaryDirectory() as scratch:
                    self.folder(scratch, value)
                    self.near(f'print(to_json(states(load_model("folder"), {IDS})[{list(map(int, value["rows"]))}].to_list()))', scratch, value)


if __name__ == "__main__":
    unittest.main()
