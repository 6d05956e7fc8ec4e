"""Every block type of GGUF: its numbers, exactly, and its use as a weight."""
import tempfile
import unittest
from pathlib import Path

from tl import fixture, run

# The fixture holds a [3, 512] tensor of each type and its float32 values as NAME.f32.
SCRIPT = """
let m = load_model(args()[0])
let ids = [2, 0]
let x = randn([5, 512])
for row in m.tensors() {
    let name = row["name"]
    if not m.has_tensor(name + ".f32") { continue }
    let w = get_tensor(m, name)
    let exact = get_tensor(m, name + ".f32")
    assert_eq(w.shape(), [3, 512], name)
    assert_eq(w as float32, exact, name)
    assert_eq(embedding(w, ids) as float32, embedding(exact, ids), name)
    // activations have 16 bits
    let want = linear(x, exact)
    assert_about_eq(linear(x, w) / max(abs(want)), want / max(abs(want)), 5e-4)
    assert_about_eq((x[0:1] @ w.transpose()) / max(abs(want)), want[0:1] / max(abs(want)), 5e-4)
    print(name, w.dtype)
}
"""
TYPES = "q4_0 q4_1 q5_0 q5_1 q8_0 q2_k q3_k q4_k q5_k q6_k iq4_nl iq4_xs tq1_0 tq2_0".split()


class Quantised(unittest.TestCase):
    every_device = True

    def test_numbers_and_products(self):
        model = fixture(self, "models/quant-blocks.gguf")
        for isa in ("base", "avx2", "avx512"):
            result = run("-e", SCRIPT, model, env={"TL_ISA": isa})
            self.assertEqual(result.status, 0, result.err)
            types = {line.split()[1] for line in result.out.splitlines()}
            self.assertLessEqual(set(TYPES), types)

    def test_a_type_that_is_not_known_is_refused_by_its_name(self):
        data = bytearray(fixture(self, "models/quant-blocks.gguf").read_bytes())
        place = data.index(b"tq2_0") + len("tq2_0") + 4 + 2 * 8  # behind the number of dimensions and two
        self.assertEqual(data[place:place + 4], b"\x23\0\0\0")
        data[place] = 16  # iq2_xxs, whose blocks are of the same size
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.gguf")
            path.write_bytes(data)
            result = run("-e", "let m = load_model(args()[0])\nprint(m.tensors()[0].name)\nget_tensor(m, \"tq2_0\")", path)
        self.assertEqual(result.status, 1, result.err)
        self.assertIn("error[dtype]: tensor tq2_0 of ", result.err)
        self.assertIn("is stored as iq2_xxs, which tl cannot compute with", result.err)


if __name__ == "__main__":
    unittest.main()
