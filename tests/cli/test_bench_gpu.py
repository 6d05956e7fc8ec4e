"""tests/bench/gpu and models.py: their synthetic models run, and the tables say rates, shares and wants."""
import contextlib
import importlib.machinery
import importlib.util
import io
import subprocess
import sys
import unittest
from pathlib import Path

from tl import ROOT, TL

sys.path.insert(0, str(ROOT / "tests" / "bench"))  # what the script imports


def load_script():
    loader = importlib.machinery.SourceFileLoader("gpu_bench", str(ROOT / "tests" / "bench" / "gpu"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_bench", loader))
    loader.exec_module(module)
    return module


class GpuBench(unittest.TestCase):
    def test_synthetic_models_decode(self):
        rows = load_script().decode(Path(TL).parent, "cpu", small=True)
        self.assertEqual([name for name, _, _ in rows], ["q4_0", "q8_0", "f16"])
        for name, rate, size in rows:
            self.assertGreater(rate, 0, name)
        # A block of 32 weights has 18, 34 and 64 bytes; the norms are small.
        self.assertAlmostEqual(rows[0][2] / rows[2][2], 18 / 64, delta=0.01)
        self.assertAlmostEqual(rows[1][2] / rows[2][2], 34 / 64, delta=0.01)

    def test_models_beside_peers(self):
        peer = f'mine={TL} run {ROOT / "tests" / "bench" / "models.tl"}'  # refuses the options of peers
        options = ["--build", Path(TL).parent, "--small", "--tokens", "3", "--times", "1", "--rounds", "1"]
        command = [sys.executable, ROOT / "tests" / "bench" / "models.py", *options, "--types"]
        for what in ("decode", "prompt"):
            out = subprocess.run([*command, "mxfp4", "q4_k_m", "--what", what], capture_output=True, text=True, check=True).stdout
            heading, *rows = out.splitlines()
            self.assertTrue(heading.startswith(f"{what}, 3 tokens, threads 1, load "), out)
            for row, name in zip(rows, ("mxfp4", "q4_k_m"), strict=True):
                self.assertRegex(row, rf"^{name} +tl \S+ \(\S+\)  tl, fast \S+ \(\S+\)  tokens/s")
        result = subprocess.run([*command, "f16", "--peer", peer], capture_output=True, text=True)
        self.assertIn("models.tl", result.stderr)
        self.assertNotEqual(result.returncode, 0)

    def test_table(self):
        rows = [("copy", "float32", 100.0, "GB/s"), ("map", "add", 90.0, "GB/s"),
                ("vector", "1 x q4_0", 70.0, "GB/s"), ("gemm", "float16 1024", 60.0, "TFLOP/s"),
                ("submit", "host alone", 1.5, "us")]
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            load_script().print_table(rows, {"gemm/float16 1024": 120.0}, [("q4_0", 50.0, 10**9)])
        lines = {line.split("|")[1].strip(): [cell.strip() for cell in line.split("|")[2:-1]]
                 for line in out.getvalue().splitlines() if line.startswith("| ")}
        self.assertIn("peak of copies: 100 GB/s", out.getvalue())
        self.assertEqual(lines["map: add"], ["90 GB/s", "90 % of peak", "85", ""])
        self.assertEqual(lines["vector: 1 x q4_0"], ["70 GB/s", "70 % of peak", "70", ""])
        self.assertEqual(lines["gemm: float16 1024"], ["60 TFLOP/s", "50 % of torch", "60", "120"])
        self.assertEqual(lines["submit: host alone"], ["1.5 us", "", "20 us", ""])
        self.assertEqual(lines["decode: llama 1.1 B q4_0"], ["50 tok/s", "roof 100", "", ""])


if __name__ == "__main__":
    unittest.main()
