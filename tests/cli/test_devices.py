"""Every operation of catalog/ops*.def on another device next to the CPU: the same kind of result, the
same errors, and numbers that differ by no more than the table of bounds says, also of NaN, infinities
and zeros of both signs. What is right is the business of tests/tensor and tests/device; here nothing
may be missing."""
import math
import os
import re
import unittest
from concurrent.futures import ThreadPoolExecutor

from tl import ROOT, run_code

# How far results of each type may lie apart, |a - b| / (1 + |a|); what is not here, not at all.
BOUNDS = {"float16": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "float64": 1e-13}

DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")

# Variables that every call below may use, of the type that is being tried; `x` comes before.
SETUP = """
let y = tensor([2.0, -1.0, 3.0, 1.0, -2.0, 4.0, 1.0, -3.0, 2.0, 5.0, -1.0, 2.0, 1.0, -4.0, 3.0]).reshape([3, 5]).to(D)
let w = (arange(20).to(float32) * 0.37 % 3.0 - 1.0).reshape([5, 4]).to(D)
let v = tensor([1.0, 0.5, 2.0, -1.0, 3.0]).to(D)
let u = tensor([0.5, 1.0, 1.5, 2.0, 0.25]).to(D)
let s = (eye(4) * 5.0 + tensor([0.0, 1.0, 2.0, 0.5, 1.0, 0.0, 0.25, 1.0, 2.0, 0.25, 0.0, 1.5, 0.5, 1.0, 1.5, 0.0]).reshape([4, 4])).to(D)
let image = (arange(144).to(float32) * 0.61 % 4.0 - 2.0).reshape([2, 2, 6, 6]).to(D)
let filter = (arange(54).to(float32) * 0.23 % 2.0 - 1.0).reshape([3, 2, 3, 3]).to(D)
let line = (arange(32).to(float32) * 0.31 % 2.0 - 1.0).reshape([2, 2, 8]).to(D)
let line_filter = (arange(18).to(float32) * 0.17 % 1.0).reshape([3, 2, 3]).to(D)
let heads = (arange(96).to(float32) * 0.43 % 3.0 - 1.5).reshape([3, 4, 8]).to(D)
let keys = (arange(80).to(float32) * 0.29 % 2.0 - 1.0).reshape([5, 2, 8]).to(D)
let m = tensor([1, 0, 1, 1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 1]).reshape([3, 5]) == 1
let i = tensor([2, 0, 1])
let j = tensor([0, 2, 1, 1, 0, 2, 0, 1, 0, 1, 2, 2, 0, 1, 1]).reshape([3, 5])
let classes = tensor([4, 0, 2])
"""

CATALOG = "".join((ROOT / "src" / "catalog" / file).read_text() for file in ("ops.def", "ops_composed.def"))


def elementwise_calls():
    """A call of every OP_MAP row: its tensors that have no default are x, y and v."""
    rows = re.findall(r'^OP_MAP\((\w+),[^"]*"\w+\(([^)]*)\)', CATALOG, re.M)
    return {name: [f"{name}({', '.join('xyv'[:sum('=' not in word for word in words.split(','))])})"]
            for name, words in rows}


UNARY = """flatten contiguous clone zeros_like ones_like tril triu slice_last median unique count_nonzero
argmax argmin cumsum cumprod sort argsort nonzero softmax log_softmax rms_norm logsumexp norm normalize_features
var std mean sum prod any all"""
BINARY = "mse_loss mae_loss huber_loss binary_cross_entropy margin_ranking_loss kl_div"

CALLS = elementwise_calls()
CALLS |= {name: [f"{name}(x)"] for name in UNARY.split()} | {name: [f"{name}(x, y)"] for name in BINARY.split()}
for name in "mean sum prod any all var std median logsumexp argmax argmin cumsum cumprod count_nonzero norm".split():
    CALLS[name].append(f"{name}(x, 0)" if name != "norm" else "norm(x, 1.0, dim: 0)")
CALLS |= {
    "clamp": ["clamp(x, -1, 2)"], "where": ["where(m, x, y)"],
    "gelu_choice": ["gelu(x, exact: true)"], "round_digits": ["round(x, 1)"],
    "reshape": ["reshape(x, [5, 3])"], "reshape_dims": ["reshape(x, 5, 3)"],
    "squeeze": ["squeeze(x[0:1])"], "unsqueeze": ["unsqueeze(x, 1)"], "transpose": ["transpose(x)"],
    "permute": ["permute(image, [1, 3, 0, 2])"], "broadcast_to": ["broadcast_to(v, [3, 5])"],
    "concat": ["concat([x, y])"], "concat_each": ["concat(x, y, dim: 1)"],
    "stack": ["stack([x, y])"], "stack_each": ["stack(x, y, dim: 1)"],
    "repeat": ["repeat(x, 2, dim: 1)"], "tile": ["tile(x, [2, 1])"], "flip": ["flip(x)"], "roll": ["roll(x, 2)"],
    "slice": ["slice(x, 1, 1, 4)"], "slice_first": ["slice(x, 1, 3)"], "slice_along": ["slice(x, 1, 0, 5, 2)"],
    "pad": ["pad(x, [1, 2])"], "to": ["x.to(\"cpu\").to(\"cpu\")"],
    "to_dtype": [f"x.to({dtype})" for dtype in DTYPES],
    "zeros": ["zeros([2, 3], dtype: D)"], "ones": ["ones([2, 3], dtype: D)"], "full": ["full([2, 3], 7, dtype: D)"],
    "empty": ["empty([0, 3], dtype: D)"], "eye": ["eye(4, dtype: D)"], "arange": ["arange(9, dtype: D)"],
    "arange_from": ["arange(2, 11, 3, dtype: D)"], "linspace": ["linspace(0.0, 4.0, 9, dtype: D)"],
    "one_hot": ["one_hot(classes, 5, dtype: D)"],
    "positional_encoding": ["positional_encoding(7, 8, dtype: D)"],
    "causal_mask": ["causal_mask(4, dtype: D)"], "padding_mask": ["padding_mask(tensor([1, 3]), 4, dtype: D)"],
    "combine_masks": ["combine_masks(m, m[0])"],
    "rand": ["rand([40], dtype: D, seed: 3)"], "randn": ["randn([40], dtype: D, seed: 3)"],
    "randint": ["randint(0, 9, [40], dtype: D, seed: 3)"], "uniform": ["uniform(1.0, 2.0, [40], dtype: D, seed: 3)"],
    "normal": ["normal(1.0, 2.0, [40], dtype: D, seed: 3)"],
    "bernoulli": ["bernoulli(0.3, [40], dtype: D, seed: 3)"], "bernoulli_each": ["bernoulli(u / 2.0, seed: 3)"],
    "rand_like": ["rand_like(x, seed: 3)"], "multinomial": ["multinomial(u, 6, seed: 3)"],
    "sum_dims": ["sum(image, [0, 2])"], "mean_dims": ["mean(image, [1, 3])"], "prod_dims": ["prod(x, [0, 1])"],
    "any_dims": ["any(x, [0, 1])"], "all_dims": ["all(x, [0, 1])"], "var_dims": ["var(image, [0, 2])"],
    "std_dims": ["std(image, [0, 2])"],
    "max_along": ["max(x)", "max(x, 1)"], "max_with_number": ["max(sum(x), 1.0)"],
    "min_along": ["min(x)", "min(x, 0)"], "min_with_number": ["min(sum(x), 1.0)"],
    "topk": ["topk(x, 2).0", "topk(x, 2).1"],
    "matmul": ["matmul(x, w)", "matmul(transpose(x), y)"], "linear": ["linear(x, transpose(w), v[0:4])"],
    "einsum": ["einsum(\"ij,jk->ki\", x, w)"], "bmm": ["bmm(stack(x, y), stack(w, w))"],
    "outer": ["outer(v, u)"], "trace": ["trace(s)"], "diag": ["diag(s)", "diag(v)"],
    "inv": ["inv(s)"], "det": ["det(s)"], "solve": ["solve(s, w[0:4])"], "cholesky": ["cholesky(s)"],
    "qr": ["qr(s).0", "qr(s).1"], "svd": ["svd(s).1"], "eigh": ["eigh(s).0"],
    "conv1d": ["conv1d(line, line_filter, padding: 1)"], "conv2d": ["conv2d(image, filter, stride: 2, padding: 1)"],
    "max_pool2d": ["max_pool2d(image, 2)"], "avg_pool2d": ["avg_pool2d(image, 3, stride: 2, padding: 1)"],
    "fused_gelu_linear": ["fused_gelu_linear(x, w)"],
    "layer_norm": ["layer_norm(x, weight: u, bias: v)"], "batch_norm": ["batch_norm(image)"],
    "group_norm": ["group_norm(image, 2)"], "dropout": ["dropout(x, 0.5, training: true, seed: 3)"],
    "lstm_cell": ["lstm_cell(concat(x, y, x, y, dim: 1), y).0", "lstm_cell(concat(x, y, x, y, dim: 1), y).1"],
    "gru_cell": ["gru_cell(concat(x, y, x, dim: 1), concat(y, x, x, dim: 1), y)"],
    "apply_attention_mask": ["apply_attention_mask(x, m)"],
    "rope": ["rope(heads, offset: 3)", "rope(heads, style: \"half\")"],
    "rope_tables": ["rope(heads, precompute_rope_cos(8, 9), precompute_rope_sin(8, 9), offset: 2)"],
    "cndl_rope": ["cndl_rope(heads, offset: 1)"],
    "cndl_rope_tables": ["cndl_rope(heads, precompute_rope_cos(8, 9), precompute_rope_sin(8, 9))"],
    "precompute_rope_cos": ["precompute_rope_cos(8, 5)"], "precompute_rope_sin": ["precompute_rope_sin(8, 5)"],
    "attention": ["attention(heads, keys, keys, causal: true)", "attention(heads, keys, keys)"],
    "linear_attention": ["linear_attention(heads, heads, heads, sigmoid(heads))", "linear_attention(heads, heads / 3, heads, sigmoid(heads[..., 0]), keys.reshape([10, 8])[:8].unsqueeze(1).broadcast_to([8, 4, 8]), sigmoid(heads[..., 1]))"],
    "attention_with_cache": ["attention_with_cache(reshape(heads, [3, 32]), reshape(heads, [3, 32]), reshape(heads, [3, 32]), eye(32).to(D), heads: 4)"],
    "repeat_kv": ["repeat_kv(keys, 2)"],
    "gather": ["gather(x, 0, j)"], "scatter": ["scatter(x, 0, broadcast_to(reshape(i, [3, 1]), [3, 5]), y)"],
    "scatter_add": ["scatter_add(x, 0, j, y)"], "index_select": ["index_select(x, 0, i)"], "take": ["take(x, i)"],
    "masked_select": ["masked_select(x, m)"], "masked_fill": ["masked_fill(x, m, 2)"],
    "embedding": ["embedding(x, i)"], "cndl_embedding": ["cndl_embedding(i, x)"],
    "cross_entropy": ["cross_entropy(x, classes)", "cross_entropy(x, classes, weight: v, ignore_index: 2, label_smoothing: 0.1)"],
    "nll_loss": ["nll_loss(log_softmax(x), classes)"],
    "sample": ["tensor([sample(u, seed: 3)])"],
    "temperature_sample": ["tensor([temperature_sample(v, 0.7, seed: 3)])"],
    "top_k": ["top_k(v, 2)"], "top_p": ["top_p(v, 0.7)"], "min_p": ["min_p(v, 0.1)"],
    "typical_p": ["typical_p(v, 0.7)"], "temperature": ["temperature(v, 0.5)"],
    "top_k_sample": ["tensor([top_k_sample(v, 2, seed: 3)])"],
    "top_p_sample": ["tensor([top_p_sample(v, 0.7, seed: 3)])"],
    "repetition_penalty": ["repetition_penalty(v, i, 1.3)"],
    "presence_penalty": ["presence_penalty(v, i, 0.3)"], "frequency_penalty": ["frequency_penalty(v, i, 0.3)"],
    "transe_score": ["transe_score(x, y, v)"], "distmult_score": ["distmult_score(x, y, v)"],
    "complex_score": ["complex_score(x, y, x, y, y, x)"], "rotate_score": ["rotate_score(x, y, x, y, y, x)"],
    "rotate_score_phase": ["rotate_score(x, y, v, y, x)"],
    "compute_rank": ["compute_rank(v, tensor(2))"], "compute_mrr": ["compute_mrr(u)"],
    "compute_hits_at_k": ["compute_hits_at_k(u, 2)"], "compute_mean_rank": ["compute_mean_rank(sum(u), 5)"],
    "aggregate_neighbors": ["aggregate_neighbors(image)"],
    "relational_aggregate": ["relational_aggregate(x, v, y)"],
    "graph_attention": ["graph_attention(x, y, y)"],
}

NUMBERS = "[1.5, -2.25, 0.5, 3.0, -0.75, 2.0, -1.0, 0.25, 4.0, -3.5, 1.0, 0.125, -0.5, 2.5, -4.0]"
EDGES = "[nan, inf, -inf, -0.0, 0.0, 1.0, -1.0, 0.5, inf, inf, -inf, -inf, -inf, -inf, -inf]"
VARIANTS = {
    "plain": f"let x = tensor({NUMBERS}).reshape([3, 5]).to(D)",
    "transposed": f"let x = transpose(tensor({NUMBERS}).reshape([5, 3]).to(D))",
    "edges": f"let inf = 1.0 / 0\nlet nan = inf - inf\nlet x = tensor({EDGES}).reshape([3, 5]).to(D)",
}


def program(dtype, variant):
    def typed(text):
        return re.sub(r"\bD\b", dtype, text)

    lines = [typed(VARIANTS[variant]), typed(SETUP)]
    for calls in CALLS.values():
        for call in calls:
            name = call.replace('"', "'")
            lines.append(f'try {{ let r = {typed(call)}\nprint("{name}|", r.dtype, r.shape, "|", flatten(r).to_list()) }}'
                         f' catch e {{ print("{name}|", "error", "|", e.message) }}')
    return "\n".join(lines)


def numbers(text):
    words = {"true": 1.0, "false": 0.0}
    return [words[word] if word in words else float(word) for word in re.findall(r"[^\s\[\],]+", text)]


def apart(dtype, ours, theirs):
    """What is wrong with two lists of numbers, or an empty string."""
    if len(ours) != len(theirs):
        return f"{len(ours)} and {len(theirs)} numbers"
    for a, b in zip(ours, theirs):
        same = a == b or (math.isnan(a) and math.isnan(b))
        near = math.isfinite(a) and math.isfinite(b) and abs(a - b) <= BOUNDS.get(dtype, 0) * (1 + abs(a))
        if not same and not near:
            return f"{a!r} and {b!r}"
    return ""


class Calls(unittest.TestCase):
    def test_every_operation_is_tried(self):
        rows = set(re.findall(r"^OP_(?:MAP|RUN|OVERLOAD|REDUCE)\((\w+),", CATALOG, re.M))
        self.assertEqual(rows ^ set(CALLS), set())


class Devices(unittest.TestCase):
    every_device = True

    def setUp(self):
        self.other = os.environ.get("TL_DEVICE", "cpu")
        if self.other == "cpu":
            self.skipTest("in the pass of another device")

    def compare(self, dtype, variant):
        code = program(dtype, variant)
        with ThreadPoolExecutor(2) as pool:
            cpu, gpu = pool.map(lambda device: run_code(code, env={"TL_DEVICE": device}, timeout=500), ("cpu", self.other))
        self.assertEqual((cpu.status, gpu.status), (0, 0), cpu.err[-2000:] + gpu.err[-2000:])
        ours, theirs = cpu.out.splitlines(), gpu.out.splitlines()
        self.assertEqual(len(ours), len(theirs))
        wrong, worked = [], set()
        for a, b in zip(ours, theirs):
            call, what, values = a.split("|", 2)
            _, other, results = b.split("|", 2)
            if what != other:
                wrong.append(f"{call}: {what}{values} and {other}{results}")
            elif what.strip() == "error":
                if values != results:
                    wrong.append(f"{call}: {values} and {results}")
            elif difference := apart(what.split()[0], numbers(values), numbers(results)):
                wrong.append(f"{call} of {what.strip()}: {difference}")
            else:
                worked.add(call)
        self.assertEqual(wrong, [], "\n".join(wrong))
        return worked

    def test_numbers(self):
        worked = set()
        for dtype in DTYPES:
            with self.subTest(dtype):
                worked |= self.compare(dtype, "plain")
        calls = {call.replace('"', "'") for calls in CALLS.values() for call in calls}
        self.assertEqual(calls - worked, set(), "these are errors of every type")

    def test_transposed(self):
        self.compare("float32", "transposed")

    def test_edges(self):
        for dtype in BOUNDS:
            with self.subTest(dtype):
                self.compare(dtype, "edges")


if __name__ == "__main__":
    unittest.main()
