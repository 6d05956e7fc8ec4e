"""Odd messages for the notebook kernel (tests/python/random_messages.py), in the system's Python. Those of `tl mcp` and of the
language server are fuzz targets (tests/fuzz).

    TL_TEST_SEED=N TL_TEST_MESSAGES=20000 python3 tests/cli/test_random_messages.py
"""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, TL

PACKAGE = Path(TL).resolve().parent / "python"
PYTHON = "/usr/bin/python3"
SEED = os.environ.get("TL_TEST_SEED", "1")
MESSAGES = os.environ.get("TL_TEST_MESSAGES", "400")


class RandomMessages(unittest.TestCase):
    def test_kernel(self):
        if not (PACKAGE / "tl" / "_tl.abi3.so").exists():
            self.skipTest("built without the Python package (python3-cffi, python3-dev)")
        if subprocess.run([PYTHON, "-c", "import ipykernel"], capture_output=True).returncode:
            self.skipTest("python3-ipykernel is not installed")
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "TL_DEVICE": "cpu", "HOME": folder, "IPYTHONDIR": folder}
            result = subprocess.run([PYTHON, ROOT / "tests" / "python" / "random_messages.py", SEED, MESSAGES], env=environment, cwd=folder,
                                    stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600)
        self.assertEqual((result.returncode, result.stdout), (0, "sound\n"), result.stderr[-3000:])


if __name__ == "__main__":
    unittest.main()
