"""Every block type of GGUF: its numbers, exactly, and its use as a weight."""
import json
import os
import random
import struct
import tempfile
import unittest
from pathlib import Path

import quant_formats
from tl import fixture, instruction_sets, run

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

# Tensors [4, 512] of blocks that no fixture has: their numbers, and products.
BLOCKS_SCRIPT = """
let m = load_model(args()[0])
let x = randn([3, 512], seed: 4)
for t in m.tensors() {
    let w = get_tensor(m, t["name"])
    let exact = w as float32
    print(to_json({"name": t["name"], "dtype": str(w.dtype), "numbers": exact.to_list()}))
    let want = linear(x, exact)
    assert_about_eq(linear(x, w) / max(abs(want)), want / max(abs(want)), 5e-4)
    assert_eq(embedding(w, [3, 0]) as float32, embedding(exact, [3, 0]), t["name"])
}
"""


class Quantised(unittest.TestCase):
    every_device = True

    def test_numbers_and_products(self):
        model = fixture(self, "models/quant-blocks.gguf")
        for isa in instruction_sets():
            result = run("-e", SCRIPT, model, env={"TL_ISA": isa})
            self.assertEqual(result.status, 0, result.err)
            types = {line.split()[1] for line in result.out.splitlines()}
            self.assertLessEqual(set(TYPES), types)

    def test_formats_by_their_description(self):
        """What no fixture holds. Devices that cannot read them have float16."""
        source = random.Random(7)
        tensors, exact = {}, {}
        for name, (elements, _, _) in quant_formats.BLOCKS.items():
            blocks = [quant_formats.random_block(source, name) for _ in range(4 * 512 // elements)]
            tensors[name] = (quant_formats.NUMBERS[name], 4, 512, b"".join(blocks))
            exact[name] = [x for block in blocks for x in getattr(quant_formats, name)(block)]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.gguf")
            path.write_bytes(quant_formats.file_of_blocks(tensors))
            for isa in instruction_sets():
                result = run("-e", BLOCKS_SCRIPT, path, env={"TL_ISA": isa, "TL_MEMORY_CHECK": "strict"})
                self.assertEqual(result.status, 0, result.err)
                rows = [json.loads(line) for line in result.out.splitlines()]
                self.assertEqual([row["name"] for row in rows], list(exact))
                for row in rows:
                    self.near(row, exact[row["name"]])

    def near(self, row, exact):
        host = os.environ.get("TL_DEVICE", "cpu") != "cpu" and row["name"] != "mxfp4"
        self.assertEqual(row["dtype"], "float16" if host else row["name"])
        for found, want in zip((x for part in row["numbers"] for x in part), exact, strict=True):
            bound = 2.0 ** -11 if host else 2.0 ** -22
            self.assertLessEqual(abs(found - want), bound * abs(want) + 2.0 ** -24 * host, row["name"])

    def test_the_lattices(self):
        for name, digest in quant_formats.DIGESTS.items():
            self.assertEqual(quant_formats.digest(quant_formats.lattice(name)), digest, name)

    def refusal(self, number):
        """What is said of the last tensor of the fixture when it claims another type."""
        data = bytearray(fixture(self, "models/quant-blocks.gguf").read_bytes())
        place = data.index(b"tq2_0") + len("tq2_0") + 4 + 2 * 8  # behind the number of dimensions and two
        self.assertEqual(data[place:place + 4], b"\x23\0\0\0")
        data[place:place + 4] = struct.pack("<I", number)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "model.gguf")
            path.write_bytes(data)
            code = "let m = load_model(args()[0])\nprint(m.tensors()[0].name)\nget_tensor(m, \"tq2_0\")"
            result = run("-e", code, path)
        self.assertEqual(result.status, 1, result.err)
        return result.err

    def test_a_type_that_is_not_supported_is_refused_by_its_name(self):
        self.assertIn("is stored as q1_0, which is not supported", self.refusal(41))
        self.assertIn("is stored as type 200, which is unknown", self.refusal(200))

    def test_a_type_that_was_removed_is_refused_by_its_name(self):
        message = self.refusal(31)
        self.assertIn("error[dtype]: tensor tq2_0 of ", message)
        self.assertIn("is stored as q4_0_4_4, which was removed from GGUF", message)
        self.assertIn("help: the original model can be written again, as q4_0 for example", message)


if __name__ == "__main__":
    unittest.main()
