"""The Vulkan device under the validation layers, and with no driver to be found. Needs a build with it."""
import os
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from tl import TL, fixture, run, run_code

PROGRAMS = sorted((Path(TL).parent / "tests").glob("vulkan_test_*"))
LAYER = Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json")


def run_program(program, environment):
    process = subprocess.run([program], env={**os.environ, **environment}, capture_output=True, timeout=500)
    return process.returncode, process.stdout.decode(errors="replace") + process.stderr.decode(errors="replace")


@unittest.skipUnless(PROGRAMS, "this build has no Vulkan device")
class Vulkan(unittest.TestCase):
    @unittest.skipUnless(LAYER.exists(), "the validation layers are not installed")
    def test_validation_layers_are_silent(self):
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder, "said")
            for program in PROGRAMS:
                status, output = run_program(program, {"TL_TEST_VALIDATION": str(said)})
                self.assertEqual(status, 0, output[-2000:])
                self.assertFalse(said.exists(), said.exists() and said.read_text()[-2000:])

    def test_no_driver_is_said(self):
        nowhere = {"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json", "TL_TEST_VULKAN": "1"}
        for name in ("vulkan_test_device", "vulkan_test_bounds"):
            status, output = run_program(PROGRAMS[0].parent / name, nowhere)
            self.assertNotEqual(status, 0)
            self.assertIn("cannot open the device vulkan: there is no Vulkan driver", output)
        self.assertIn("\nvulkan     not usable: there is no Vulkan driver\n", run("devices", env=nowhere).out)


VULKAN = {"TL_DEVICE": "vulkan", "TL_MEMORY_CHECK": "strict"}


@unittest.skipUnless(os.environ.get("TL_TEST_VULKAN"), "no Vulkan device is usable")
class Programs(unittest.TestCase):
    def test_batches_delays_and_poison_change_no_byte(self):
        """MEMORY (10), (17), (19)"""
        model = fixture(self, "models/stories260K.gguf")
        outputs = set()
        for setting in ("TL_COMPUTE_PER_BUFFER=1", "TL_COMPUTE_PER_BUFFER=2", "TL_COMPUTE_PER_BUFFER=50",
                        "TL_COMPUTE_PER_BUFFER=1000", "TL_TEST_SLOW_MS=20", "TL_POISON=1", "TL_BUFFER_MAX_MB=0"):
            name, value = setting.split("=")
            result = run("run", "tests/cli/logits.tl", model, "Once", 3, env={**VULKAN, name: value})
            self.assertEqual(result.status, 0, result.err)
            self.assertIn("change +0.00 MB", result.err)
            outputs.add(result.out)
        self.assertEqual(len(outputs), 1)

    def test_waits_are_reads(self):
        code = """
let x = randn([64, 64], seed: 1)
for i in 0..300 { x = relu(x @ x.transpose() * 0.01) + zeros([64, 64])[[i % 64]] }
let before = memory().waits
for i in 0..3 { x[i, 0] as float }
print(before, memory().waits)
"""
        result = run_code(code, env=VULKAN)
        self.assertEqual((result.status, result.out), (0, "0 3\n"), result.err)

    def test_one_wait_a_token(self):
        """MEMORY (2): 22 layers x 100 tokens."""
        code = """
let w = rand([64, 64])
let cache = KVCache::new_f32(22, 128)
fn token() {
  let x = rand([1, 64])
  for l in 0..22 {
    let k = x @ w
    cache.append(l, k, k)
    x = rms_norm(x + attention(reshape(x, [1, 4, 16]), cache.get_k(l).reshape([-1, 4, 16]),
      cache.get_v(l).reshape([-1, 4, 16])).reshape([1, 64]) @ w, ones([64]))
  }
  argmax(x) as int
}
token()
let before = memory()
for t in 0..99 { token() }
print(memory().waits - before.waits, memory().live - before.live)
"""
        result = run_code(code, env=VULKAN)
        self.assertEqual((result.status, result.out), (0, "99 0\n"), result.err)

    def test_indexes_are_looked_at_once(self):
        """A literal's numbers are the host's, argmax gives what is in range; others take one wait."""
        code = """
let table = rand([100, 8], seed: 1)
let ids = argmax(rand([4, 100], seed: 2), dim: 1)
let before = memory().waits
embedding(table, [3, -1])
index_select(table, 0, [5])
print(memory().waits - before)
embedding(table, ids)
print(memory().waits - before)
let sums = ids * 1
embedding(table, sums)
table[sums]
print(memory().waits - before)
"""
        result = run_code(code, env=VULKAN)
        self.assertEqual((result.status, result.out), (0, "0\n0\n1\n"), result.err)

    def test_what_operations_make_is_on_the_device_of_their_tensors(self):
        """Masks, diagonals, zeros, numbers among operands: on the default device they would meet tensors of another."""
        code = """
fn alike(name, f, x) {
    let (here, there) = (f(x), none)
    with device("vulkan") { there = f(x) }
    if device(there) != "cpu" or any(here != there) { print(name, here, there) }
}
fn slopes(name, f, x) { alike(name, fn(x) { grad(fn(y) { sum(f(y) * sin(f(y))) }, x) }, x) }
let x = sin(arange(64) as float32 * 0.7 + 0.1)
let heads = x.reshape([1, 8, 2, 4])
let decay = sigmoid(heads[0][:, :, 0])
let matrix = x[:9].reshape([3, 3]) + eye(3)
let zero = [[0.0, 2.0], [3.0, 4.0]]
let index = [3, 1, 3]
alike("scatter", fn(y) { scatter(y, 0, index, 5.0) }, x)
alike("stack", fn(y) { stack(y[0], 2.0, dim: 0) }, x)
alike("einsum", fn(y) { einsum("i,->i", y, 2.0) }, x)
alike("assignment", fn(y) {
    let z = y * 2.0
    z[index] = 5.0
    z
}, x)
slopes("det", fn(y) { det(y) + 1.0 }, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
slopes("causal", fn(y) { attention(y, y, y, causal: true, cap: 3.0) }, heads)
slopes("window", fn(y) { attention(y, y, y, causal: true, window: 3) }, heads)
slopes("state", fn(y) { linear_attention(y, y, y, decay)[0] }, heads[0])
slopes("cholesky", fn(y) { cholesky(y @ y.transpose()) }, matrix)
slopes("values", fn(y) { eigh(y @ y.transpose())[0] }, matrix)
slopes("vectors", fn(y) { eigh(y @ y.transpose())[1] }, matrix)
slopes("prod", fn(y) { prod(y, 0) }, zero)
slopes("cumprod", fn(y) { cumprod(y, 0) }, zero)
slopes("max", fn(y) { max(y, 0) }, zero)
slopes("scatter", fn(y) { scatter(y, 0, index, y[:3]) }, x)
slopes("gather", fn(y) { gather(y, 0, index) }, x)
slopes("pool", fn(y) { avg_pool2d(y, 3, padding: 1, count_include_pad: false) }, x.reshape([1, 1, 8, 8]))
slopes("parts", fn(y) { y[1:3] * y[4:6] }, x)
"""
        result = run_code(code, env={"TL_DEVICE": "cpu", "TL_MEMORY_CHECK": "strict"})
        self.assertEqual((result.status, result.out), (0, ""), result.err)

    def test_a_lost_device_stays_lost(self):
        """MEMORY (21)"""
        code = "let x = ones([3])\nlet y = exp(x)\ntry { print(y) } catch e { print(e.message) }\nprint(x + 1)\n"
        result = run_code(code, env={**VULKAN, "TL_TEST_LOSS": "1"})
        words = "vulkan:0 was lost while it ran work up to exp (program.tl:2)"
        self.assertEqual((result.status, result.out), (1, words + "\n"), result.err)
        self.assertIn(f"error[device]: {words}\n --> program.tl:4:", result.err)
        self.assertIn("no leak", result.err)

    def test_interrupt_in_a_wait(self):
        """MEMORY (8)"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "wait.tl")
            path.write_text("let x = ones([3])\neprint(\"ready\")\nprint(x + 1)\n")
            process = subprocess.Popen([TL, "run", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env={**os.environ, **VULKAN, "TL_TEST_SLOW_MS": "10000"})
            self.assertEqual(process.stderr.readline(), b"ready\n")
            time.sleep(0.5)
            start = time.monotonic()
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (130, b""), err.decode())
            self.assertLess(time.monotonic() - start, 8)
            self.assertIn("no leak", err.decode())


if __name__ == "__main__":
    unittest.main()
