"""Under a limit an operation whose operands and result do not fit together runs in pieces, with the same bits.

`python3 tests/cli/test_pieces.py --programs N` runs N random operations."""
import hashlib
import os
import random
import re
import sys
import tempfile
import unittest
from pathlib import Path

from tl import run

SEED = int(os.environ.get("TL_TEST_SEED", 1))
OPTIMIZERS = ["sgd(lr: 0.01)", "sgd(lr: 0.01, momentum: 0.9, nesterov: true)", "adam(lr: 0.01)", "adam(lr: 0.01, amsgrad: true)",
              "adamw(lr: 0.01)", "rmsprop(lr: 0.01, centered: true)", "adagrad(lr: 0.01)", "lion(lr: 0.001)"]
# Each on a of [m, n], b like it, row [n], column [m, 1], x of [k, m / k, n] and q of [8, 64, 4, 32]; all but the last two
# need more than the limit leaves next to a.
ELEMENTWISE = ["a * b + a", "exp(-a * a + b) * tanh(b - a)", "a * row + column", "where(a > 0.5, a, b)", "a > b", "a as float16",
               "a as int32", "(a as bfloat16) * 2.0", "relu(a) - row", "gelu(a)", "a[:, ::-1] * 2.0", "a[1:] - b[:-1]", "a[:, 3:] + 1.0",
               "clone(a)", "concat(a, b, 1)", "a * 2.0 + x.reshape(a.shape)", "erf(a) ** 2", "minimum(a, column)", "ones(a.shape)"]
ROWS = ["softmax(a, 1)", "log_softmax(a, 1)", "softmax(x, 2)", "softmax(x, 1)", "layer_norm(a, row, row)", "rms_norm(a, row)", "rms_norm(a, a[200])",
        "cumsum(a, 1)", "sort(a, 1)", "argsort(a, 1)", "argmax(a, 1)", "max_pool2d(unsqueeze(x, 0), 2)", "softmax(a as float16, 1)",
        "avg_pool2d(unsqueeze(x, 0), 2)", "softmax(a as float64, 1)", "layer_norm(x, row)", "normalize_features(a)",
        "attention(q, q, q)", "attention(q, q * 0.5, q, causal: true)", "rope(q)",
        "grad(fn(y) { sum(gelu(y) * b) }, a)", "grad(fn(y) { cross_entropy(y, ids) }, a)", "grad(fn(y) { sum(softmax(y * b, 1) * b) }, a)",
        "grad(fn(y) { sum(attention(y, q, q, causal: true) * q) }, q)", "grad(fn(y) { sum(max_pool2d(y, 2) ** 2) }, unsqueeze(x, 0))"]
REDUCTIONS = ["sum(x, 2)", "mean(x, 2)", "std(a, 1)", "max(x, 2)", "logsumexp(a, 1)", "prod(a, 1)", "any(a > 3.0, 1)", "argmin(a, 1)",
              "sum(a[:, 1:], 1)", "sum(a[1:9], 1)"]
# To one number; those that fold twice among them.
WHOLE = ["sum(a)", "mean(a)", "std(a)", "max(a)", "min(a)", "logsumexp(a)", "prod(a * 0.001 + 1.0)", "any(a > 6.0)", "norm(a)", "sum(a as float16)",
         "sum(a as int32)", "var(a as float64)", "sum(a[5:])", "sum(a[:, 1:])", "mean(x, none, true)"]
BEGIN = """seed(SEED)
let a = randn([M, N])
let b = randn([M, N])
let (row, column) = (randn([N]), randn([M, 1]))
let x = reshape(randn([M, N]), [K, M / K, N])
let q = randn([8, 64, 4, 32])
let ids = randint(0, N, [M])
"""


def in_pieces(result):
    found = re.search(r", (\d+) operations? in (\d+) pieces? that moved ([\d.]+) MB", result.err)
    return (int(found[1]), int(found[2]), float(found[3])) if found else (0, 0, 0)


class Pieces(unittest.TestCase):
    every_device = True
    COUNT = 12

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_saving(self, code, limit=None, env=None):
        """The run, and a hash of the r.safetensors that it has written."""
        (self.folder / "program.tl").write_text(code)
        (self.folder / "r.safetensors").unlink(missing_ok=True)
        options = ["--memory-limit", limit] if limit else []
        result = run("run", "--quiet", "--memory-check=strict", *options, "program.tl", cwd=self.folder, env=env)
        self.assertEqual(result.status, 0, code + result.err)
        return result, hashlib.sha256((self.folder / "r.safetensors").read_bytes()).hexdigest()

    def same(self, code, limit, env=None):
        free, expected = self.run_saving(code)
        result, found = self.run_saving(code, limit, env)
        self.assertEqual((result.out, found), (free.out, expected), (limit, code))
        peak = float(re.search(r"^peak +([\d.]+) MB", result.err, re.M)[1])
        self.assertLessEqual(peak, limit / 2**20 + 0.01)
        return result

    def program(self, expression, shape, seed=1):
        m, n, k = shape
        begin = BEGIN.replace("SEED", str(seed)).replace("M", str(m)).replace("N", str(n)).replace("K", str(k))
        return begin + f"let r = {expression}\nsave({{r: r}}, \"r.safetensors\")\nprint(sum(a) as float, sum(r as float64))\n"

    def test_operations_next_to_their_largest_tensor(self):
        """The limit is a quarter above the largest tensor."""
        for expression in ELEMENTWISE + ROWS:
            with self.subTest(expression):
                code = self.program(expression, (256, 1024, 4))
                largest = 2 if re.search("float64|concat|arg|sort", expression) else 1
                result = self.same(code, largest * 2**20 + 2**18)
                if largest == 1 and not re.search(r"\bq\b|pool2d\(u", expression):
                    self.assertGreater(in_pieces(result)[0], 0, (expression, result.err))

    def test_reductions_of_what_is_larger_than_the_limit(self):
        for expression in REDUCTIONS:
            with self.subTest(expression):
                result = self.same(self.program(expression, (256, 1024, 4)), 3 * 2**18)
                self.assertGreater(in_pieces(result)[0], 0, result.err)

    def test_reductions_to_one_number(self):
        """Of several million numbers, which kernels reduce in parts; at limits from a tenth of them on."""
        for number, expression in enumerate(WHOLE):
            with self.subTest(expression):
                limit = [3 * 2**19, 2**22, 5 * 2**20 + 4096][number % 3]
                code = self.program(expression, (2048, 1500, 4)) if "vulkan" not in os.environ.get("TL_DEVICE", "") else self.program(expression, (1024, 1500, 4))
                code = code.replace("let b = randn([1024, 1500])\n", "").replace("let b = randn([2048, 1500])\n", "")
                result = self.same(code.replace("save(", "print(r)\nsave("), limit)
                if not re.search(r":\]|\[5|float16", expression):
                    self.assertGreater(in_pieces(result)[0], 1, (expression, result.err))

    def test_random_operations(self):
        drawn = random.Random(SEED)
        for number in range(self.COUNT):
            m, n, k = drawn.choice([8, 40, 300, 1000]), drawn.choice([3, 32, 257, 1024]), drawn.choice([1, 2, 4])
            code = self.program(drawn.choice(ELEMENTWISE + ROWS + REDUCTIONS + WHOLE), (m, n, k), number)
            with self.subTest(number):
                self.same(code, max(int(m * n * 4 * drawn.uniform(0.3, 4)), 20000))

    def test_steps_of_optimizers(self):
        for optimizer in OPTIMIZERS:
            code = ("seed(1)\nlet w = learnable(randn([512, 512]))\nlet x = randn([16, 512])\n"
                    f"let t = learn {{ objective: mean((x @ w) ** 2), optimizer: {optimizer}, epochs: 3, progress: false }}\n"
                    "print(t.losses)\nsave({r: w + 0.0}, \"r.safetensors\")\n")
            with self.subTest(optimizer):
                self.assertGreater(in_pieces(self.same(code, 2**20 + 2**18))[0], 0)

    def test_what_is_not_contiguous_in_memory_is_used_where_it_is(self):
        self.same(self.program("transpose(a) * 2.0 + transpose(b)", (512, 512, 2)), 2**20 + 2**18)
        self.same(self.program("softmax(a, 0)", (512, 512, 2)), 2**20 + 2**18)

    def test_ordinary_memory_of_the_host_is_enough(self):
        """Where a driver locks little, operands that kernels cannot use where they are come in pieces."""
        if "vulkan" not in os.environ.get("TL_DEVICE", ""):
            self.skipTest("tensors of the CPU move to a file")
        code = self.program("exp(-a * a + b) * b", (256, 1024, 4)).replace(", sum(r as float64)", "")
        result = self.same(code, 2**20 + 2**18, env={"TL_TEST_LOCKED_MB": "1"})
        self.assertGreater(in_pieces(result)[0], 0)
        self.assertIn("the driver refused page-locked memory", result.err)

    def test_the_report_says_what_was_done(self):
        result = self.same(self.program("exp(a)", (256, 1024, 4)), 2**20 + 2**18)
        calls, pieces, megabytes = in_pieces(result)
        self.assertGreater(pieces, calls)
        self.assertGreater(megabytes, 0.9)
        self.assertNotIn("pieces", self.run_saving(self.program("exp(a)", (256, 1024, 4)), 8 * 2**20)[0].err)


if __name__ == "__main__":
    if "--programs" in sys.argv:
        at = sys.argv.index("--programs")
        Pieces.COUNT = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
