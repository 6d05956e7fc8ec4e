"""Programs drawn at random that can be read: statements of every form over the values of a list V, with odd numbers in
all places. Whatever they do, tl checks, formats and runs them to their end, and holds nothing at it.

    TL_TEST_SEED=N TL_TEST_STATEMENTS=200000 python3 tests/cli/test_random_programs.py      others, and more of them
"""
import os
import random
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from test_random_calls import LEFT_OUT, VALUES, signatures
from tl import run, sanitized

SEED = int(os.environ.get("TL_TEST_SEED", "1"))
STATEMENTS = int(os.environ.get("TL_TEST_STATEMENTS", "2400"))
EACH = 400  # of a program
SLOTS = 24
SECONDS = 60  # a program that takes longer hangs
ENVIRONMENT = {"TL_MEMORY_CHECK": "strict", "TL_DEVICE_MEMORY_MB": "512"}
LIMITS = ["--host-limit", "1GB"]
if sanitized():  # it needs the whole address space; what is refused then is one allocation
    ENVIRONMENT["ASAN_OPTIONS"] = "allocator_may_return_null=1:max_allocation_size_mb=1024"
    LIMITS = []
# They write files of the program's folder or wait for what other statements do not know.
LEFT_OUT = LEFT_OUT | {"chat", "generate", "plot_save", "args", "time", "timing"}
NUMBERS = ["0", "1", "2", "3", "7", "-1", "-2", "0.5", "-1.5", "1e300", "1e-300", "64", "255", "256", "65536", "2147483648",
           "4611686018427387904", "-4611686018427387904", "9223372036854775807", "-9223372036854775807", "nan", "inf", "-inf"]
TEXTS = ['"a"', '""', '"é\\u{1F999}"', '"0"', '"x" * 70', '"{}"', '"ij,jk->ik"', '"cpu"', 'f"{V[0]} {V[1]:.3}"', '"nan"']
BINARY = "+ - * / % @ ** == != < <= > >= ≈ in && || ⊙ ⊗ .. ..=".split() + ["not in"]
SIZES = ["?", "n_0", "0", "2", "3", "9223372036854775807"]
ASSIGNS = "= = = += -= *= /= %= **= @=".split()
DTYPES = "float16 bfloat16 float32 float64 int8 int16 int32 int64 uint8 bool q8_0 q4_0".split()
TYPES = ["int", "float", "string", "list", "dict", "Tensor", "float32[2]", "float16[?, ?]", "P", "fn", "bool"]
PRELUDE = """struct P { a: any, b: any }
struct Q { a: any }
struct L { w: float32[2, 3] learnable, n: int }
impl P { fn new(a, b) -> P { P { a: a, b: b } }
  fn swap(self) { self.a, self.b = self.b, self.a }
  fn get(self, k = 0) { if k == 0 { self.a } else { self.b } } }
impl Drop for Q { fn drop(self) { let z = ones([3])
  let y = z + 1 } }
fn id(x) { x }
fn hide(f) { let g = f; for i in 0..n_0 { g = id }; g }
fn rec(n) { if n <= 0 { 0 } else { n + rec(n - 1) } }
fn pair(x, y = 2) -> any { (x, y) }
let nan = float("nan")
let inf = float("inf")
let n_0 = 0
let last = none
save_model({"q": randn([4, 32]), "f": randn([3]), "i": [0, 1, 2]}, "weights.gguf", dtype: q8_0)
let weights = load_model("weights.gguf")
"""


class Trouble(Exception):
    pass


class Programs:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.signatures = [item for item in signatures() if item[0] not in LEFT_OUT]
        self.pool = [value for values in VALUES.values() for value in values if not value.startswith("Point")]

    def choose(self, *forms):
        """One of the forms, of those that are functions what they return."""
        form = self.random.choice(forms)
        return form() if callable(form) else form

    def slot(self):
        return f"V[{self.random.randrange(SLOTS)}]"

    def number(self):
        return self.random.choice(NUMBERS)

    def integer(self):
        return self.random.choice(NUMBERS[:7])

    def leaf(self):
        return self.choose(self.slot, self.slot, self.number, lambda: self.random.choice(TEXTS),
                           lambda: self.random.choice(self.pool), "none", "true", "false", "()", "weights.f", "weights.i", "last")

    def call(self, depth):
        name, parameters = self.random.choice(self.signatures)
        arguments, named = [], ""
        for word, kind, optional in parameters:
            if optional and self.random.random() < 0.4:
                named = f"{word}: "
                continue
            named = f"{word}: " if named else ""
            fitting = VALUES.get(kind)
            odd = self.random.random()
            value = (self.random.choice(fitting) if fitting and odd < 0.6 and "Point" not in str(fitting) else
                     self.number() if kind in ("int", "number") and odd < 0.9 else self.value(depth - 1))
            arguments.append(named + value)
        if "." in name:
            receiver = arguments.pop(0).split(": ", 1)[-1] if arguments else self.slot()
            return f"({receiver}).{name.split('.')[1]}({', '.join(arguments)})"
        return f"{name}({', '.join(arguments)})"

    def items(self, depth):
        return ", ".join(self.value(depth - 1) for _ in range(self.random.randrange(4)))

    def subscript(self, depth):
        def one():
            return self.choose(self.integer, self.number, "...", "none", ":", lambda: f"{self.integer()}:",
                               lambda: f":{self.number()}", lambda: f"{self.integer()}:{self.integer()}:{self.number()}",
                               lambda: f"[{self.integer()}, {self.integer()}]", lambda: self.value(depth - 1))
        return ", ".join(one() for _ in range(self.random.choice((1, 1, 2, 3))))

    def function(self, depth):
        return self.choose(lambda: f"fn(x) {{ {self.body(depth - 1)} }}", lambda: f"fn(x, y = {self.leaf()}) {{ {self.value(depth - 1)} }}",
                           "id", "pair", "P::new", "abs", "fn() { V }")

    def body(self, depth):
        return self.choose(lambda: f"({self.value(depth)})", "x", lambda: f"x {self.random.choice(BINARY)} ({self.leaf()})",
                           lambda: f"return {self.value(depth)}")

    def value(self, depth):
        if depth <= 0:
            return self.leaf()
        deeper = depth - 1
        return self.choose(
            self.leaf, lambda: self.call(depth), lambda: self.call(depth), lambda: self.call(depth),
            lambda: f"({self.value(deeper)} {self.random.choice(BINARY)} {self.value(deeper)})",
            lambda: f"({self.random.choice(('-', 'not ', '!'))}{self.value(deeper)})",
            lambda: f"({self.value(deeper)})[{self.subscript(depth)}]",
            lambda: f"({self.value(deeper)} as {self.random.choice(DTYPES[:-2] + ['int', 'float', 'string'])})",
            lambda: f"[{self.items(depth)}]", lambda: f"list({self.items(depth)})", lambda: f"({self.value(deeper)}, {self.value(deeper)})",
            lambda: f'({{"a": {self.value(deeper)}, {self.integer()}: {self.value(deeper)}}})',
            lambda: f"(P {{ a: {self.value(deeper)}, b: {self.value(deeper)} }})", lambda: f"(Q {{ a: {self.value(deeper)} }})",
            lambda: "(L { w: randn([2, 3]), n: 3 })", lambda: self.function(depth),
            lambda: f"hide({self.function(depth)})({self.items(depth)})", lambda: f"id({self.value(deeper)}).{self.random.choice(('a', 'b', 'w', 'T', 'shape', 'kind', 'new', 'swap()', 'get()', 'sum()', 'len()', '0'))}",
            lambda: f"(if {self.value(deeper)} {{ {self.leaf()} }} else {{ ({self.value(deeper)}) }})",
            lambda: f"[({self.value(deeper)}) for i in {self.iterable(deeper)} if n_0 < 40]",
            lambda: f"(match {self.value(deeper)} {{ {self.pattern()} => ({self.leaf()}), _ => ({self.value(deeper)}) }})",
            lambda: f"(try {{ ({self.value(deeper)}) }} catch e {{ e.{self.random.choice(('kind', 'message', 'line'))} }})",
            lambda: f"grad(fn(x) {{ sum({self.value(deeper)} * x) }}, {self.leaf()})")

    def pattern(self):
        return self.choose("0", "-1", '"a"', "true", "none", "P { a: x, .. }", "(x, y)", "1..=5", "0 | 1", "x if n_0 > 3", "()")

    def iterable(self, depth):
        return self.choose(lambda: f"0..{self.random.choice((0, 1, 3, -2))}", self.slot, "range(3)", lambda: f"({self.value(depth)})",
                           lambda: f"zip({self.slot()}, {self.value(depth)})", lambda: f"enumerate({self.slot()})")

    def place(self):
        return self.slot() + self.choose("", "", "", lambda: f"[{self.subscript(1)}]", ".a", ".b", ".w", ".w[0]", ".a[0]", '["a"]')

    def statement(self, depth=2):
        return self.choose(
            *[lambda: f"{self.slot()} = {self.value(3)}"] * 6,
            lambda: f"{self.place()} {self.random.choice(ASSIGNS)} {self.value(2)}",
            lambda: f"{self.slot()}, {self.slot()} = {self.value(2)}, {self.value(2)}",
            lambda: f"let t = str({self.value(3)})", lambda: f"let t: {self.random.choice(TYPES)} = {self.value(2)}",
            lambda: f"tensor w: {self.random.choice(DTYPES[:-2])}[{self.random.choice(SIZES)}, {self.random.choice(SIZES)}] = {self.value(2)}",
            lambda: f"print({self.value(3)})", lambda: f"push({self.slot()}, {self.value(2)})",
            lambda: f"{self.slot()} = V[{self.random.randrange(SLOTS)}]",
            *[lambda: self.block(depth)] * 4)

    def block(self, depth):
        if depth <= 0:
            return f"print({self.value(2)})"
        inside = f"n_0 += 1; if n_0 > 40 {{ {self.random.choice(('break', 'continue', 'break'))} }}; {self.statement(depth - 1)}"
        plain = self.statement(depth - 1)
        return self.choose(
            lambda: f"for i in {self.iterable(2)} {{ {inside.replace('continue', 'break')} }}",
            lambda: f"for a, b in {self.iterable(2)} {{ {inside.replace('continue', 'break')} }}",
            lambda: f"while n_0 < 10 {{ n_0 += 1; {plain} }}",
            lambda: f"if {self.value(2)} {{ {plain} }} else {{ {self.statement(depth - 1)} }}",
            lambda: f"with {self.random.choice(('no_grad', 'device(' + chr(34) + 'cpu' + chr(34) + ')', 'buffer'))} {{ {plain} }}",
            lambda: f"{{ let s = {self.value(2)}; {plain} }}",
            lambda: f"match {self.value(2)} {{ {self.pattern()} => {{ {plain} }}, _ => none }}",
            lambda: f"assert({self.value(2)}, \"no\")",
            self.learn,
            lambda: f"let f = {self.function(2)}; print(f({self.leaf()}))")

    def learn(self):
        optimizer = self.random.choice(("sgd(lr: 0.1)", "adam()", "lion()", f"adamw(lr: {self.number()})"))
        setting = self.random.choice(("clip_grad_norm: 1.0", "patience: 1", "validate: n_0", "report_every: 1"))
        return (f"learn {{ let t = {self.value(1)}; objective: sum({self.slot()} * {self.slot()}), optimizer: {optimizer}, "
                f"epochs: 2, {setting} }}")

    def program(self):
        """Statements that fail on their own; `n_0` ends their loops."""
        values = ", ".join(self.random.choice(self.pool) for _ in range(SLOTS))
        lines = [PRELUDE, f"let V = list({values})\n"]
        for _ in range(EACH):
            handler = self.choose("", "", "last = e.message")
            lines.append(f"n_0 = 0\ntry {{ {self.statement()} }} catch e {{ {handler} }}\n")
        return "".join(lines)


def runs(folder, *words):
    begin = time.monotonic()
    result = run(*words, cwd=folder, env=ENVIRONMENT, timeout=SECONDS)
    if result.status not in (0, 1) or re.search(r"internal error|Sanitizer|runtime error", result.err):
        raise Trouble(f"{words} ends with {result.status} after {time.monotonic() - begin:.1f} s:\n{result.err[-3000:]}")
    return result


def without_refused(folder, program):
    """The program without the lines that the check refuses: what is certainly wrong, even in `try`."""
    for _ in range(100):
        Path(folder, "p.tl").write_text(program)
        refused = {int(number) for number in re.findall(r"^ *--> p\.tl:(\d+):", runs(folder, "check", "p.tl").err, flags=re.M)}
        lines = program.splitlines(keepends=True)
        kept = "".join(line for number, line in enumerate(lines, 1) if number not in refused or not line.startswith("try"))
        if kept == program:
            return program
        program = kept
    raise Trouble("the check never ends to refuse lines")


def try_out(program):
    """Checks, formats and runs a program; Trouble when anything but an ordinary error comes of it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "bare.tl").write_text(re.sub(r"^try \{ (.*) \} catch e \{ .* \}$", r"\1", program, flags=re.M))
        runs(folder, "check", "bare.tl")
        program = without_refused(folder, program)
        for words in (["fmt", "p.tl"], ["fmt", "--check", "p.tl"], ["run", *LIMITS, "--seed", "1", "p.tl"]):
            result = runs(folder, *words)
            if result.status == 1:
                raise Trouble(f"{words} refuses the program:\n{result.err[-3000:]}")
        if "no leak: every buffer was released" not in result.err:
            raise Trouble(f"a leak:\n{result.err[-3000:]}")
        return program.count("\ntry ")


class RandomPrograms(unittest.TestCase):
    def test_none_ends_the_process(self):
        seed, done = SEED * 100000, 0
        while done < STATEMENTS:
            with self.subTest(seed=seed):
                program = Programs(seed).program()
                try:
                    done += try_out(program)
                except (Trouble, subprocess.TimeoutExpired) as trouble:
                    done += EACH
                    path = Path(tempfile.gettempdir(), f"random_program_{seed}.tl")
                    path.write_text(program)
                    self.fail(f"{path}\n{trouble}")
            seed += 1


if __name__ == "__main__":
    unittest.main()
