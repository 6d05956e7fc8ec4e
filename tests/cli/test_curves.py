"""50 steps of training give PyTorch's losses: its curves are stored next to the first weights (tests/bench/curves.py
writes them and compares with PyTorch itself)."""
import json
import struct
import unittest

from tl import ROOT, run

CURVES = ROOT / "tests" / "bench" / "curves"


def stored_losses(path):
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    first, last = json.loads(data[8:8 + size])["losses"]["data_offsets"]
    return struct.unpack_from(f"<{(last - first) // 4}f", data, 8 + size + first)


class Curves(unittest.TestCase):
    def follow(self, name, env=None):
        data = CURVES / f"{name}.safetensors"
        result = run("run", "--quiet", CURVES / f"{name}.tl", data, env=env)
        self.assertEqual(result.err, "")
        mine, theirs = [float(line) for line in result.out.split()], stored_losses(data)
        self.assertEqual(len(mine), 50)
        for step, (a, b) in enumerate(zip(mine, theirs)):
            self.assertLessEqual(abs(a - b), 1e-4 * abs(b), f"{name}, step {step}: {a}, PyTorch {b}")

    def test_net_of_two_layers(self):
        self.follow("mlp")

    def test_convolutional_net(self):
        self.follow("cnn")

    def test_transformer_block(self):
        self.follow("block")

    def test_plain_instructions(self):
        for name in ("mlp", "cnn", "block"):
            self.follow(name, {"TL_ISA": "base"})


if __name__ == "__main__":
    unittest.main()
