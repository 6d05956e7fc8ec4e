"""Models and memory from outside: large files cost nothing, impossible ones are refused with the
numbers, and a cache that grows token by token computes what a fresh pass computes."""
import json
import os
import struct
import tempfile
import unittest
from pathlib import Path

from tl import fixture, run_code

STRICT = {"TL_MEMORY_CHECK": "strict"}


def write_sparse_model(path, gigabytes):
    """A GGUF file of one small tensor and one of that many GB which takes no room on the disk."""
    def text(word):
        return struct.pack("<Q", len(word)) + word.encode()

    rows = gigabytes << 18  # of 1024 float32
    header = b"GGUF" + struct.pack("<IQQ", 3, 2, 0)
    header += text("small") + struct.pack("<IQIQ", 1, 4, 0, 0)
    header += text("large") + struct.pack("<IQQIQ", 2, 1024, rows, 0, 32)
    data = (len(header) + 31) // 32 * 32
    with open(path, "wb") as file:
        file.write(header.ljust(data, b"\0") + struct.pack("<4f", 1, 2, 3, 4))
        file.truncate(data + 32 + rows * 4096)


class LargeModels(unittest.TestCase):
    every_device = True

    def test_two_gigabytes_twenty_times(self):
        """MEMORY (5): load, read one tensor, exit: nothing stays and nothing is copied; to a device
        with memory of its own once (half as large, and fewer scripts)."""
        on_cpu = os.environ.get("TL_DEVICE", "cpu") == "cpu"
        gigabytes, times, most = (2, 20, 1000000) if on_cpu else (1, 2, (1 << 30) + 1000000)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "large.gguf")
            write_sparse_model(path, gigabytes)
            code = f"let m = load_model(args()[0])\nprint(m.small, m.large[5, 7], memory().peak < {most})"
            for _ in range(times):
                result = run_code(code, path, env=STRICT)
                self.assertEqual(result.out, "[1. 2. 3. 4.] 0.0 true\n", result.err)
                self.assertIn("change +0.00 MB", result.err)

    def test_a_model_larger_than_memory(self):
        """MEMORY (29)"""
        result = run_code("load_model(args()[0])", fixture(self, "models/stories260K.gguf"),
                          env={**STRICT, "TL_DEVICE_MEMORY_MB": "1"})
        self.assertEqual(result.status, 1)
        self.assertIn("error[memory]: ", result.err)
        self.assertIn("needs 1.12 MB for its tensors, but ", result.err)
        self.assertIn(" has 1.00 MB\n", result.err)

    def test_a_tensor_outlives_its_model(self):
        """MEMORY (6)"""
        code = ("let m = load_model(args()[0])\nlet w = m.blk[1].attn_q.weight\nm = none\n"
                "print(w.shape, get_sum(w) == get_sum(w))\nfn get_sum(x) { sum(x) as float }")
        result = run_code(code, fixture(self, "models/stories260K.gguf"), env=STRICT)
        self.assertEqual((result.status, result.out), (0, "[64, 64] true\n"), result.err)

    def test_floats_are_copied_to_the_process(self):
        """TL_REPACK=load: matrices are the device's own and the file's pages go back; the numbers stay."""
        code = """
let m = load_model("%s")
let loaded = memory()
print(to_json(forward(m, [1, 5, 9]).to_list()))
print(to_json(list(loaded.live, loaded.host.mapped)))
""" % fixture(self, "models/mini-f16.gguf")
        if os.environ.get("TL_DEVICE", "cpu") != "cpu":
            self.skipTest("weights of files are on the device anyway")
        (logits, usual), (again, copied), (same, some) = [
            run_code(code, env={**STRICT, **env}).out.splitlines() for env in (
                {"TL_REPACK": "lazy"}, {"TL_REPACK": "load"}, {"TL_REPACK": "load", "TL_TEST_DEVICE_MB": "4"})]
        self.assertEqual([again, same], [logits, logits])
        self.assertEqual(json.loads(usual)[0], 0)
        live, mapped = json.loads(copied)
        self.assertGreater(live, 3_800_000)
        self.assertLess(mapped, 400_000)
        self.assertIn(json.loads(some)[0], range(1_000_000, live))  # what does not fit stays in the file


class Caches(unittest.TestCase):
    every_device = True

    def test_growing_equals_fresh(self):
        """MEMORY (23): 1 to 64 tokens, each step equals a fresh computation and is not all zero."""
        code = """
let (heads, heads_kv, width) = (4, 2, 8)
let q = randn([64, heads, width], seed: 1)
let k = randn([64, heads_kv, width], seed: 2)
let v = randn([64, heads_kv, width], seed: 3)
let cache = KVCache::new_f32(1)
let worst = 0.0
for t in 0..64 {
    cache.append(0, k[t:t + 1], v[t:t + 1])
    let step = attention(q[t:t + 1], cache.get_k(0), cache.get_v(0), causal: true)
    let fresh = attention(q[:t + 1], k[:t + 1], v[:t + 1], causal: true)[-1:]
    worst = max(worst, max(abs(step - fresh)) as float)
    assert(any(step != 0.0), "step {} is all zero", t)
}
print(worst < 1e-5)
"""
        result = run_code(code, env=STRICT)
        self.assertEqual((result.status, result.out), (0, "true\n"), result.err)


if __name__ == "__main__":
    unittest.main()
