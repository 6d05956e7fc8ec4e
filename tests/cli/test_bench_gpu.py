"""tests/bench/gpu and models.py: their synthetic models run, and the tables say rates, shares and wants."""
import contextlib
import importlib.machinery
import importlib.util
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, TL

sys.path.insert(0, str(ROOT / "tests" / "bench"))  # what the script imports

# Takes llama-bench's options -m -t -p -n -r -o and those of ik_llama.cpp; works as long as it is asked for samples.
PEER = """#!/usr/bin/env python3
import json, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert options["-o"] == "json" and options["-rtr"] == "1" and "0" in (options["-p"], options["-n"])
times = int(options["-r"])
sum(range(times * 2000000))
print(json.dumps([{"samples_ns": [100000000, 300000000][:times]}]))
"""


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

    def models(self, *options):
        command = [sys.executable, ROOT / "tests" / "bench" / "models.py", "--build", Path(TL).parent, "--small"]
        return subprocess.run([*command, "--decode", "3", "--prompts", "4", "--samples", "2", *options],
                              capture_output=True, text=True)

    def test_models_beside_peers(self):
        with tempfile.TemporaryDirectory() as folder:
            peer = Path(folder, "bin", "llama-bench")
            peer.parent.mkdir()
            peer.write_text(PEER)
            peer.chmod(0o755)
            for more, ik in ([], folder), (["--processor", "--least", "0"], peer):
                ran = self.models("--types", "mxfp4", "q4_k_m", "--threads", "1", "2", "--ik", ik, *more)
                heading, *rows = ran.stdout.splitlines()
                measure = " of processor time" if more else ""
                self.assertTrue(heading.startswith(f"tokens per second{measure} (tl's share), load "), ran.stderr)
                cells = [f"{name:<7} threads {threads}  {what}" for name in ("mxfp4", "q4_k_m") for threads in (1, 2)
                         for what in ("decode", "prompt 4")]
                for row, cell in zip(rows, cells, strict=True):
                    self.assertTrue(row.startswith(cell), row)
                    self.assertRegex(row, r" tl \S+ \(1.00\)  tl, fast \S+ \(\S+\)  ik_llama.cpp \S+ \(\S+\)")
                if not more:  # what the peer says of its median: 3 tokens in 0.2 s, or 4
                    self.assertIn("ik_llama.cpp 15.0 ", rows[0])
                    self.assertIn("ik_llama.cpp 20.0 ", rows[1])

    def test_models_says_what_is_wrong_with_a_peer(self):
        peer = f'mine={TL} run {ROOT / "tests" / "bench" / "models.tl"}'  # refuses the options of peers
        cases = [(["--peer", peer], "models.tl"), (["--llama", ROOT / "src"], "is neither llama-bench nor a folder"),
                 (["--together", "--threads", "4096"], "--together takes 8192 cores for 2 engines"),
                 (["--together", "--processor"], "in turns, not --together")]
        for options, words in cases:
            ran = self.models("--types", "f16", *options)
            self.assertNotEqual(ran.returncode, 0, options)
            self.assertIn(words, ran.stderr)

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
