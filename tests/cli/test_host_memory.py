"""The statement of the host's memory: what it names is what the system says is resident."""
import os
import re
import unittest

from tl import fixture, need_no_sanitizer, run, run_code

PARTS = ("values", "tables", "kept", "buffers", "mapped", "code", "stacks", "other")
STATE = """
let h = memory().host
print(join([str(h[k]) for k in list("resident", "%s")], " "))
""" % '", "'.join(PARTS)


def statement(code):
    result = run_code(code + STATE)
    assert result.status == 0, result.err
    resident, *parts = map(int, result.out.split())
    return resident, dict(zip(PARTS, parts))


class HostMemory(unittest.TestCase):
    every_device = True

    def explains(self, code):
        resident, parts = statement(code)
        slack = max(resident // 20, 20 << 20)
        self.assertLess(parts["other"], slack, parts)
        self.assertEqual(resident, sum(parts.values()))
        return parts

    def test_values(self):
        need_no_sanitizer("keeps memory of its own")
        few = self.explains("")
        many = self.explains('let l = [str(i) + "abcdefgh" for i in 0..500000]\n')
        self.assertGreater(many["values"] - few["values"], 500000 * 24)

    def test_few_collections(self):
        need_no_sanitizer("keeps memory of its own")
        code = 'let s = "x" * 10000; while len(s) > 0 { s = s[1:] }'  # 50 MB of strings, next to a small heap
        result = run_code(code, env={"GC_PRINT_STATS": "1"})
        self.assertEqual(result.status, 0, result.err)
        self.assertLess(result.err.count("Marking for collection"), 50)

    def test_buffers(self):
        parts = self.explains("let x = ones([4096, 4096])\nlet y = [ones([100, 100]) for i in 0..200]\nsynchronize()\n")
        if "vulkan" not in os.environ.get("TL_DEVICE", "") or "software driver" in run("devices").out:
            self.assertGreaterEqual(parts["buffers"], 4096 * 4096 * 4 + 200 * 40000)

    def test_a_heap_that_is_not_all_touched_takes_nothing_from_buffers(self):
        parts = self.explains('let s = "x" * 30000000\nlet l = [str(i) for i in 0..300000]\nlet t = ones([4096, 1024])\nlet u = t + 1.0\nsynchronize()\n')
        if "vulkan" not in os.environ.get("TL_DEVICE", "") or "software driver" in run("devices").out:
            self.assertGreaterEqual(parts["buffers"], 2 * 4096 * 1024 * 4)

    def test_products_and_training(self):
        self.explains("""
            let w = learnable(randn([512, 512]))
            let x = randn([256, 512])
            learn { objective: mean(tanh(x @ w) ** 2), optimizer: adam(), epochs: 3, progress: false }
        """)

    def test_a_model(self):
        path = fixture(self, "models/mini-f16.gguf")
        parts = self.explains(f'let m = load_model("{path}")\nlet text = generate(m, "a", 3)\nlet u = svd(randn([200, 200]))\n')
        self.assertGreater(parts["mapped"], 0)

    def test_the_report(self):
        result = run_code("let x = ones([1000])\n", options=["--memory-check=all"])
        self.assertEqual(result.status, 0)
        self.assertRegex(result.err, r"=== Host memory: [\d.]+ MB resident ===\n +[\d.]+ MB   values: strings")
        self.assertEqual(len(re.findall(r"^ +[\d.]+ MB   [a-z]", result.err, re.M)), len(PARTS))
        self.assertNotIn("Host memory", run_code("print(1)", options=["--memory-check"]).err)


if __name__ == "__main__":
    unittest.main()
