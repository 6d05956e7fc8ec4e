"""The report, the statistics a script sees, and the failures of the memory contract that scripts can
provoke."""
import re
import unittest

from tl import run_code

REPORT = re.compile(
    r"=== Device memory check: (?:cpu|vulkan:\d+) [^\n]* ===\n"
    r"before +(\d+\.\d\d) MB\n"
    r"peak +(\d+\.\d\d) MB   at program\.tl:(\d+):\d+\n"
    r"after +(\d+\.\d\d) MB   change \+0\.00 MB\n"
    r"held at the peak:\n(?P<held>(?:  .*\n)+)"
    r"pool: \d+ cached, \d+\.\d\d MB · \d+ allocated, \d+ reused \(\d+\.\d %\) · \d+ evicted\n"
    r"no leak: every buffer was released\n")


# What is done again and again takes no more memory of the host than once.
REPEATED = {
    "edits of facts": """relation Hop(from: int, to: int)
Met(0)
Met(Y) <- Met(X), Hop(X, Y)
Hop(0, 1)
fn repeat(n) {
    for i in 0..n {
        Hop(1, 2)
        assert(len(Met) == 3)
        retract Hop(1, 2)
        assert(len(Met) == 2)
    }
}
""",
    "constraints": """fn repeat(n) {
    for i in 0..n { json_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": list("a")}) }
}
"""}


class Report(unittest.TestCase):
    every_device = True

    def test_report(self):
        result = run_code("let keep = ones([512, 1024])\nlet y = keep + 1.0\n", options=["--memory-check"])
        found = REPORT.search(result.err)
        self.assertIsNotNone(found, result.err)
        self.assertEqual(found[2], "4.00")
        self.assertEqual(found[3], "2")
        self.assertRegex(found["held"], r"  +2\.00 MB +50\.0 % +program\.tl:1:12 +ones\(\[512, 1024\]\)\n")

    def test_nothing_is_said_unasked(self):
        self.assertEqual(run_code("let x = ones([10])").err, "")

    def test_script_sees_the_numbers(self):
        result = run_code("let x = zeros([256, 1024])\nprint(memory().live / 1048576.0, memory().buffers)\n"
                          "x = none\nprint(memory().live, memory().peak / 1048576.0)\n"
                          "reset_peak_memory()\nprint(memory().peak)\n"
                          "print(memory().cached > 0)\nclear_cache()\nprint(memory().cached)")
        self.assertEqual(result.out.splitlines(), ["1.0 1", "0 1.0", "0", "true", "0"], result.err)

    def test_debug_lines(self):
        result = run_code("let x = zeros([1024])\n", env={"TL_DEBUG_MEMORY": "1"})
        self.assertRegex(result.err, r"allocate.*4096.*program\.tl:1")
        self.assertRegex(result.err, r"release.*4096")


class Flat(unittest.TestCase):
    every_device = True

    """Section 5: what must never grow."""

    def peak(self, code, env=None):
        result = run_code(code + "\nprint(memory().peak, memory().live)", env=env)
        self.assertEqual(result.status, 0, result.err)
        return [int(n) for n in result.out.split()[-2:]]

    def test_projections(self):
        """(1) three products of one input, then a thousand."""
        code = ("let x = rand([32, 64])\nlet w = rand([64, 64])\nfor i in 0..{n} {{\n"
                "  let q = x @ w\n  let k = x @ w\n  let v = x @ w\n}}")
        self.assertEqual(self.peak(code.format(n=1)), self.peak(code.format(n=1000)))

    def test_layers_and_tokens(self):
        """(2) 22 layers x 100 tokens: no growth after token 2."""
        code = ("let w = rand([64, 64])\nlet cache = KVCache::new_f32(22, 128)\nfn step(t) {\n"
                "  let x = rand([1, 64])\n  for l in 0..22 {\n    let k = x @ w\n    cache.append(l, k, k)\n"
                "    x = rms_norm(x + attention(reshape(x, [1, 4, 16]), cache.get_k(l).reshape([-1, 4, 16]),\n"
                "      cache.get_v(l).reshape([-1, 4, 16])).reshape([1, 64]) @ w, ones([64]))\n  }\n}\n"
                "step(0)\nstep(1)\nlet before = memory()\nfor t in 2..100 { step(t) }\nlet after = memory()\n"
                "print(after.live == before.live, after.buffers == before.buffers)")
        self.assertEqual(run_code(code).out, "true true\n", run_code(code).err)

    def test_big_tensor_in_a_loop(self):
        """(7) a 100 MB tensor 100 times: at most two at once."""
        peak, live = self.peak("for i in 0..100 { let x = zeros([25, 1024, 1024]) }\n", {"TL_BUFFER_MAX_MB": "64"})
        self.assertLessEqual(peak, 2 * 100 * 1024 * 1024)
        self.assertEqual(live, 0)

    def test_errors_in_arguments(self):
        """(9) an error inside an argument, 10 000 times: nothing stays."""
        code = ("let x = ones([16])\nlet failed = 0\nfor i in 0..{n} {{\n"
                "  try {{ print(x + relu(ones([8]) + softmax(x))) }} catch e {{ failed += 1 }}\n}}\nassert_eq(failed, {n})")
        self.assertEqual(self.peak(code.format(n=10)), self.peak(code.format(n=10000)))

    def test_overwriting_frees(self):
        peak, _ = self.peak("let x = zeros([256, 1024])\nfor i in 0..1000 { x = x + 1.0 }")
        self.assertLessEqual(peak, 2 * 1024 * 1024)

    def test_refusal_names_the_holders(self):
        result = run_code("let keep = zeros([256, 1024])\nlet more = zeros([1024, 1024])\nlet big = zeros([4096, 1024])",
                          env={"TL_DEVICE_MEMORY_MB": "8"})
        self.assertEqual(result.status, 1)
        self.assertIn("error[memory]", result.err)
        for text in ("16.00 MB", "5.00 MB", "8.00 MB", "program.tl:1", "program.tl:2"):
            self.assertIn(text, result.err)

    def test_deep_expressions_equal_steps(self):
        """(18) also (17): read at once or later."""
        code = ("let x = rand([33, 65])\nlet a = relu(x * 2.0 - 0.5) @ transpose(softmax(x + 1.0)) / 3.0\n"
                "let b = x * 2.0\nb = b - 0.5\nb = relu(b)\nlet c = x + 1.0\nc = softmax(c)\nc = transpose(c)\n"
                "b = b @ c\nb = b / 3.0\nassert_eq(a, b)\nprint(all(a == b))")
        for env in ({}, {"TL_POISON": "1"}, {"TL_BUFFER_MAX_MB": "0"}, {"TL_THREADS": "1"}):
            self.assertEqual(run_code(code, options=["--seed", "3"], env=env).out, "true\n")

    def test_cycles_are_rescued(self):
        result = run_code("let a = list()\npush(a, ones([1024]))\npush(a, a)\na = none\nprint(\"end\")",
                          env={"TL_MEMORY_CHECK": "strict"})
        self.assertEqual((result.status, result.out), (0, "end\n"), result.err)
        self.assertIn("note: 1 device buffer was held by reference cycles until the end", result.err)


class Host(unittest.TestCase):
    def test_tables_do_not_grow(self):
        for what, code in REPEATED.items():
            with self.subTest(what):
                result = run_code(code + "repeat(20)\nlet before = memory().host.tables\nrepeat(1500)\nprint(memory().host.tables - before)\n")
                self.assertEqual(result.status, 0, result.err)
                self.assertLess(int(result.out), 200000)

    def test_a_refused_comparison_is_an_error(self):
        """Of a list of rows with a tensor that has to be laid out anew: it is not that they differ."""
        code = ("let x = transpose(ones([1024, 1000]))\nlet rows = list()\nfor i in 0..1000 { rows.push(x[i]) }\n"
                "print(try { rows == x } catch e { e.kind })\n")
        for limit, out in (("6", "memory\n"), ("16", "true\n")):
            self.assertEqual(run_code(code, env={"TL_DEVICE_MEMORY_MB": limit}).out, out)


if __name__ == "__main__":
    unittest.main()
