"""Calls of every builtin with arguments drawn at random, most of them of the kinds that its signature
names, and gradients through them: errors are welcome, ends of the process and leaks are not.

    TL_TEST_SEED=N python3 tests/cli/test_random_calls.py      other calls than those of the suite
"""
import os
import random
import re
import tempfile
import unittest

from tl import ROOT, run

PROGRAMS, CALLS_EACH = 3, 1200
SEED = int(os.environ.get("TL_TEST_SEED", "1"))
# They end the program, wait, read what is not there, or take very long.
LEFT_OUT = {"exit", "sleep", "input", "gradcheck", "help", "memory_report", "print", "eprint", "print_top_k", "plot",
            "__leak_buffer"}
VALUES = {
    "tensor": ["randn([2, 3])", "randn([3])", "randn([3, 3])", "randn([2, 3, 4])", "randn([1, 2, 3, 4])", "randn([2, 2, 5, 5])",
               "rand([4])", "randn([])", "zeros([0, 3])", "ones([1])", "randn([3, 2]).T", "broadcast_to([1.0, 2.0], [3, 2])",
               "f16::randn([2, 3])", "f64::randn([3, 3])", "tensor([1.0, 0.0, 1.0])", "tensor([0, 1, 1])", "tensor([[0, 1], [1, 0]])",
               "tensor([true, false, true])", "tensor([1, 250], uint8)", "tensor([1.0], bfloat16)", "arange(12).reshape([3, 4])[::-1, ::2]",
               "tensor([float(\"nan\"), 1.0])", "weights.q", "weights.q[0]", "weights.q.T", "learnable(ones([3]))"],
    "tensors": ["list(ones([2]), zeros([2]))", "list(ones([2, 3]))", "list()"],
    "int": ["0", "1", "2", "-1", "3", "5", "2.0", "9223372036854775807"],
    "number": ["0", "1", "0.5", "-1", "1e-3", "float(\"inf\")"],
    "bool": ["true", "false"],
    "shape": ["[2, 3]", "[3]", "[]", "[-1]", "[1, 0]", "[0, 1, 2]", "[3, 2]", "[4611686018427387904, 4]"],
    "ints": ["1", "2", "[1, 1]", "[2, 1]", "[0, 1]", "[-1]"],
    "string": ["\"L1\"", "\"mean\"", "\"half\"", "\"ij,jk->ik\"", "\"...i->...\"", "\"a\"", "\"\"", "\"none.gguf\""],
    "dtype": ["float32", "float16", "float64", "int64", "bool", "uint8", "bfloat16", "q8_0"],
    "device": ["\"cpu\""],
    "function": ["fn(x) { x }", "fn(x, y) { x + y }", "abs", "fn(x) { sum(x * x) }"],
    "list": ["list(1, 2)", "list(\"a\", 1.5)", "list(list(1), list(2, 3))"],
    "dict": ["{}", "{\"a\": 1}"],
    "any": ["none", "(1, 2)", "0..3", "Point { x: 1, y: ones([2]) }", "Point", "sgd(lr: 0.1)", "scheduler::step()"],
    "model": ["weights"],
    "cache": ["KVCache::new_f32(2)"],
    "buffer": ["new_tensor_buffer(4096)"],
}
PRELUDE = """struct Point { x: int, y: Tensor }
save_model({"q": randn([4, 32])}, "weights.gguf", dtype: q8_0)
let weights = load_model("weights.gguf")
fn attempt(number, f) {
    eprint("call", number)
    try { str(f()) } catch e { e.kind }
}
"""
POOL = [(kind, value) for kind, values in VALUES.items() for value in values]


def signatures():
    """(name, [(parameter, kind, may be left out)]) of every overload."""
    text = (ROOT / "docs" / "reference.md").read_text()
    for name, parameters in re.findall(r"^- `([A-Za-z_:.0-9]+)\((.*?)\) -> ", text, flags=re.M):
        if name in LEFT_OUT:
            continue
        found = re.findall(r"(\w+): ([a-z]+)(\.\.\.)?(\?| = [^,)]*)?", parameters)
        yield name, [(word, kind, bool(optional)) for word, kind, _, optional in found]


class Calls:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.signatures = list(signatures())

    def value(self, kind):
        """The place in `values` of a value, nearly always of that kind."""
        fitting = [i for i, (own, _) in enumerate(POOL) if own == kind]
        anything = kind == "any" or not fitting or self.random.random() < 0.06
        return f"values[{self.random.randrange(len(POOL)) if anything else self.random.choice(fitting)}]"

    def call(self):
        name, parameters = self.random.choice(self.signatures)
        arguments, named = [], False
        for word, kind, optional in parameters:
            if optional and self.random.random() < 0.5:
                named = True
                continue
            value = self.value(kind)
            arguments.append((f"{word}: " if named else "", kind, value))
        if "." in name:
            receiver, rest = (arguments[0][2], arguments[1:]) if arguments else (self.value("any"), [])
            return f"{receiver}.{name.split('.')[1]}({', '.join(word + value for word, _, value in rest)})"
        tensors = [i for i, (_, kind, _) in enumerate(arguments) if kind == "tensor"]
        place = self.random.choice(tensors) if tensors and self.random.random() < 0.4 else None
        text = ", ".join(word + ("x" if i == place else value) for i, (word, _, value) in enumerate(arguments))
        if place is None:
            return f"{name}({text})"
        return f"grad(fn(x) {{ mean({name}({text}) * 1.5) }}, {arguments[place][2]})"

    def program(self):
        values = "let values = list(\n" + "".join(f"    {value},\n" for _, value in POOL) + ")\n"
        calls = "".join(f"attempt({i}, fn() {{ {self.call()} }})\n" for i in range(CALLS_EACH))
        return PRELUDE + values + calls


class RandomCalls(unittest.TestCase):
    def test_none_ends_the_process(self):
        for number in range(PROGRAMS):
            seed = SEED * 1000 + number
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as folder:
                program = Calls(seed).program()
                result = run("-", "--seed", 1, stdin=program.encode(), cwd=folder, env={"TL_MEMORY_CHECK": "strict"}, timeout=600)
                last = re.findall(r"^call (\d+)$", result.err, flags=re.M)
                told = result.err[-600:]
                if last:
                    told += re.search(rf"^attempt\({last[-1]},.*$", program, flags=re.M)[0]
                self.assertEqual(result.status, 0, told)
                self.assertIn("no leak: every buffer was released", result.err)
                self.assertEqual(len(last), CALLS_EACH, told)


if __name__ == "__main__":
    unittest.main()
