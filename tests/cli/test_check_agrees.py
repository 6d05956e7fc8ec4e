"""The check against runs: a program that runs to its end must pass the check, and one that the check refuses must fail
when it is run without. Programs are drawn at random: statements over variables whose kinds and shapes the check can
follow, through operators, branches, loops, functions, structs and patterns. TL_TEST_UNCHECKED leaves out the part of
the check that follows values, which is what is tested here.

    TL_TEST_SEED=N TL_TEST_PROGRAMS=1000 python3 tests/cli/test_check_agrees.py      others, and more of them
"""
import os
import random
import re
import tempfile
import unittest
from pathlib import Path

from tl import run

SEED = int(os.environ.get("TL_TEST_SEED", "1"))
PROGRAMS = int(os.environ.get("TL_TEST_PROGRAMS", "6"))
STATEMENTS = 60  # of a program
REFUSED = 12     # of its statements that fail, how many are checked one by one
SECONDS = 60
UNCHECKED = {"TL_TEST_UNCHECKED": "1", "TL_DEVICE_MEMORY_MB": "256"}
VARIABLES = [f"v{i}" for i in range(10)]
SIZES = [0, 1, 2, 2, 3, 3, 4]
UNARY = ["relu", "exp", "abs", "softmax", "sigmoid", "log_softmax", "neg", "sqrt", "square", "floor", "isnan"]
REDUCE = ["sum", "mean", "max", "min", "prod", "var", "argmax", "any", "all", "norm", "logsumexp", "cumsum"]
BINARY = ["+", "-", "*", "/", "@", "**", "%", "==", "<", ">=", "!="]
DTYPES = ["float32", "float16", "float64", "int64", "int32", "bool", "uint8"]
PRELUDE = """struct P { a: any, b: float32[2, 3] }
struct Q { n: int, t: Tensor }
impl Q { fn new(n, t) -> Q { Q { n: n, t: t } }
  fn sized(self, k = 1) { self.t * (self.n + k) } }
fn id(x) { x }
fn pair(x, y) { (x, y) }
fn product(x, y) { x @ y }
fn rows(x: float32[n, d]) -> float32[n] { sum(x, 1) }
fn pick(x, c) { if c { x } else { transpose(x) } }
fn early(x) { if rank(x) < 2 { return x }
  x[0] }
fn hidden(n) { let k = n; for i in 0..n { k = k + i }
  k > 2 }
"""


class Programs:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def choose(self, *forms):
        form = self.random.choice(forms)
        return form() if callable(form) else form

    def variable(self):
        return self.random.choice(VARIABLES)

    def size(self):
        return str(self.random.choice(SIZES))

    def dim(self):
        return self.random.choice(["0", "0", "1", "1", "-1", "-2", "2"])

    def shape(self):
        return "[" + ", ".join(self.size() for _ in range(self.random.choice((1, 2, 2, 2, 3)))) + "]"

    def leaf(self):
        return self.choose(self.variable, self.variable, self.variable, self.size, "1.5", "true", '"ab"', "none",
                           lambda: f"ones({self.shape()})", lambda: f"randn({self.shape()})", "[[1, 2, 3], [4, 5, 6]]",
                           "[1.0, 2.0, 3.0]", "list(1, 2)", "(1, [2.0, 3.0])", "[true, false]")

    def value(self, depth):
        if depth <= 0:
            return self.leaf()
        one = lambda: self.value(depth - 1)  # noqa: E731
        return self.choose(
            self.leaf, lambda: f"({one()} {self.random.choice(BINARY)} {one()})",
            lambda: f"({one()} {self.random.choice(BINARY)} {one()})",
            lambda: f"{self.random.choice(UNARY)}({one()})",
            lambda: f"{self.random.choice(REDUCE)}({one()}, {self.dim()})", lambda: f"{self.random.choice(REDUCE)}({one()})",
            lambda: f"sum({one()}, {self.dim()}, keepdim: true)", lambda: f"reshape({one()}, {self.shape()})",
            lambda: f"reshape({one()}, [-1, {self.size()}])", lambda: f"transpose({one()})", lambda: f"{self.variable()}.T",
            lambda: f"concat({one()}, {one()}, dim: {self.dim()})", lambda: f"stack(list({one()}, {one()}), {self.dim()})",
            lambda: f"({one()})[{self.subscript()}]", lambda: f"({one()} as {self.random.choice(DTYPES)})",
            lambda: f"broadcast_to({one()}, {self.shape()})", lambda: f"unsqueeze({one()}, {self.dim()})",
            lambda: f"squeeze({one()}, {self.dim()})", lambda: f"permute({one()}, [1, 0])",
            lambda: f"where({one()}, {one()}, {one()})", lambda: f"linear({one()}, {one()})", lambda: f"len({one()})",
            lambda: f"zeros([len({one()}), {self.size()}])", lambda: f"zeros({one()}.shape)", lambda: f"rows({one()})",
            lambda: f"product({one()}, {one()})", lambda: f"pick({one()}, {self.condition()})", lambda: f"early({one()})",
            lambda: f"id({one()})", lambda: f"pair({one()}, {one()})[{self.dim()}]", lambda: f"(Q::new({self.size()}, {one()})).sized()",
            lambda: f"(P {{ a: {one()}, b: {one()} }}).{self.random.choice('ab')}", lambda: f"list({one()}, {one()})",
            lambda: f"[x * 2 for x in {one()}]", lambda: f"[{one()}, {one()}]", lambda: f"mse_loss({one()}, {one()})",
            lambda: f"einsum(\"{self.random.choice(('ij,jk->ik', 'ij->ji', 'ii->i', 'i,i->'))}\", {one()}, {one()})",
            lambda: f"split({one()}, {self.size()})", lambda: f"embedding({one()}, {one()})", lambda: f"layer_norm({one()})",
            lambda: f"(if {self.condition()} {{ ({one()}) }} else {{ ({one()}) }})", lambda: f"argsort({one()})",
            lambda: f"(match {one()} {{ (a, b) => a, 0 | 1 => ({one()}), _ => ({one()}) }})",
            lambda: f"(fn(x) {{ {self.body(depth - 1)} }})({one()})", lambda: f"max({one()}, {one()})", lambda: f"str({one()})")

    def body(self, depth):
        return self.choose("x", f"x + {self.value(depth)}", f"x @ {self.value(depth)}", f"sum(x, {self.dim()})")

    def condition(self):
        return self.choose("true", "false", "hidden(2)", "hidden(1)", lambda: f"{self.size()} < {self.size()}",
                           lambda: f"rank({self.variable()}) == 2", lambda: f"len({self.variable()}) > 1")

    def subscript(self):
        return ", ".join(self.random.choice(("0", "1", "-1", "2", ":", "0:2", "1:", "::2", "...", "none", "[0, 1]"))
                         for _ in range(self.random.choice((1, 1, 2))))

    def simple(self):
        return self.choose(
            *[lambda: f"{self.variable()} = {self.value(2)}"] * 6,
            lambda: f"{self.variable()} {self.random.choice(('+=', '-=', '*='))} {self.value(1)}",
            lambda: f"{self.variable()}[{self.subscript()}] = {self.value(1)}",
            lambda: f"{self.variable()}, {self.variable()} = {self.value(1)}, {self.value(1)}",
            lambda: f"print({self.value(2)})", lambda: f"let w: float32[{self.size()}, {self.size()}] = {self.value(1)}",
            lambda: f"tensor u: float32[{self.size()}, ?] = {self.value(1)}",
            lambda: f"let s = P {{ a: {self.value(1)}, b: {self.value(1)} }}; {self.variable()} = s.a @ s.b",
            lambda: f"let l = list({self.value(1)}); l.push({self.value(1)}); {self.variable()} = l[{self.random.choice('012')}]")

    def statement(self, depth=2):
        if depth == 0 or self.random.random() < 0.6:
            return self.simple()
        inner = lambda: self.statement(depth - 1)  # noqa: E731
        return self.choose(
            lambda: f"if {self.condition()} {{ {inner()} }} else {{ {inner()} }}", lambda: f"if {self.condition()} {{ {inner()} }}",
            lambda: f"for i in 0..{self.size()} {{ {inner()} }}", lambda: f"for x in {self.value(1)} {{ {inner()} }}",
            lambda: f"for i in 0..3 {{ if {self.condition()} {{ break }}; {inner()} }}",
            lambda: f"loop {{ {inner()}; if {self.condition()} {{ break }}; break }}",
            lambda: f"try {{ {inner()} }} catch e {{ {inner()} }}", lambda: f"{{ let t = {self.value(1)}; {inner()} }}",
            lambda: f"match {self.value(1)} {{ 0 => {{ {inner()} }}, (a, b) => {{ {inner()} }}, _ => {{ {inner()} }} }}")

    def statements(self):
        start = [f"let {name} = {self.choose('2', '[[1.0, 2.0], [3.0, 4.0]]', 'ones([2, 3])', 'randn([3])', 'list(1, 2)', '1.5', 'zeros([3, 2])')}"
                 for name in VARIABLES]
        return start, [self.statement() for _ in range(STATEMENTS)]


class Folder:
    def __init__(self, folder):
        self.folder = folder

    def run(self, lines):
        """The line in which a program fails without the check, or 0."""
        Path(self.folder, "p.tl").write_text(PRELUDE + "\n".join(lines) + "\n")
        result = run("run", "--quiet", "--seed", "1", "p.tl", cwd=self.folder, env=UNCHECKED, timeout=SECONDS)
        if result.status not in (0, 1):
            raise AssertionError(f"the program ends with {result.status}:\n{result.err[-1000:]}")
        if result.status == 0:
            return 0
        places = re.findall(r"p\.tl:(\d+)", result.err)
        return max([int(place) for place in places] + [1])  # the line of the top level, by whose call it failed

    def refused(self, lines):
        """What the check says of a program that it refuses, else None."""
        Path(self.folder, "p.tl").write_text(PRELUDE + "\n".join(lines) + "\n")
        result = run("check", "p.tl", cwd=self.folder, timeout=SECONDS)
        return result.err if result.status != 0 else None

    def failing(self, start, statements):
        """The numbers of the statements that fail, each in a try of its own."""
        tried = [f'try {{ {text} }} catch e {{ eprint("fails", {i}) }}' for i, text in enumerate(statements)]
        Path(self.folder, "p.tl").write_text(PRELUDE + "\n".join(start + tried) + "\n")
        result = run("run", "--quiet", "--seed", "1", "p.tl", cwd=self.folder, env=UNCHECKED, timeout=SECONDS)
        if result.status != 0:
            return None  # its names do not resolve
        return {int(number) for number in re.findall(r"^fails (\d+)$", result.err, flags=re.M)}


class CheckAgrees(unittest.TestCase):
    def try_out(self, seed, folder):
        start, statements = Programs(seed).statements()
        failing = folder.failing(start, statements)
        if failing is None:
            return
        before = len((PRELUDE + "\n".join(start)).splitlines())
        kept = [text for i, text in enumerate(statements) if i not in failing]
        while (line := folder.run(start + kept)) > before:  # a failed statement had done a part of its work
            del kept[line - before - 1]
        told = folder.refused(start + kept)
        self.assertIsNone(told, f"it runs to its end, but the check refuses it:\n{told}")
        for number in sorted(failing)[:REFUSED]:
            program = start + [text for i, text in enumerate(statements[:number]) if i not in failing] + [statements[number]]
            told = folder.refused(program)
            if told:
                self.assertNotEqual(folder.run(program), 0, f"the check refuses what runs to its end:\n{told}")

    def test_programs(self):
        for number in range(PROGRAMS):
            seed = SEED * 100000 + number
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                self.try_out(seed, Folder(folder))


if __name__ == "__main__":
    unittest.main()
