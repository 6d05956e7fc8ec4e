"""Libraries that are loaded at their first use: programs that need none run without them."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tl import ROOT, TL, run

INVERSE = "print(inv(eye(2))[0, 0])\n"


def run_without(library, code):
    """Runs code where the loader finds something else than a library under that name first."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, library).write_text("not a library")
        return run("-e", code, env={"LD_LIBRARY_PATH": folder})


class Libraries(unittest.TestCase):
    def test_not_needed(self):
        for library in ("libopenblas.so.0", "liblapacke.so.3"):
            result = run_without(library, "let x = ones([400, 400])\nprint((x @ x)[0, 0])")
            self.assertEqual((result.status, result.out), (0, "400.0\n"), result.err)

    def test_found(self):
        self.assertEqual(run("-e", INVERSE).out, "1.0\n")

    @mock.patch.dict(os.environ)
    def test_kernels_of_this_processor(self):
        os.environ.pop("OPENBLAS_CORETYPE", None)  # a machine may set it for all programs
        # What OpenBLAS says when it is loaded; of a processor that it does not know it would take the oldest.
        flags = Path("/proc/cpuinfo").read_text().split()
        widest = "SkylakeX" if "avx512vl" in flags else "Haswell"
        wanted = [({}, widest), ({"TL_ISA": "avx2"}, "Haswell"), ({"OPENBLAS_CORETYPE": "Nehalem"}, "Nehalem")]
        for environment, core in wanted if "avx2" in flags else []:
            result = run("-e", INVERSE + 'print(env("OPENBLAS_CORETYPE"))', env={"OPENBLAS_VERBOSE": "2", **environment})
            self.assertIn(f"Core: {core}\n", result.out + result.err)
            self.assertIn(environment.get("OPENBLAS_CORETYPE", "none"), result.out)

    def test_missing_blas(self):
        result = run_without("libopenblas.so.0", INVERSE)
        self.assertEqual(result.status, 1)
        self.assertIn("decompositions of matrices need the library libopenblas.so.0, which cannot be loaded: ", result.err)
        self.assertIn("help: on Debian and Ubuntu: apt install libopenblas0-openmp", result.err)

    def test_missing_lapack(self):
        result = run_without("liblapacke.so.3", INVERSE)
        self.assertEqual(result.status, 1)
        self.assertIn("decompositions of matrices need the library liblapacke.so.3, which cannot be loaded: ", result.err)
        self.assertIn("help: on Debian and Ubuntu: apt install liblapacke", result.err)


class StandardFiles(unittest.TestCase):
    def test_a_program_that_was_copied_alone_has_them(self):
        files = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "std").glob("*.tl"))
        for folder in ("models", "onnx"):
            files += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "std" / folder).glob("*.tl"))
        with tempfile.TemporaryDirectory() as folder:
            program = shutil.copy(TL, folder)
            for file in files:
                result = subprocess.run([program, "-e", f'import "{file}" as it\nprint(1)'], cwd=folder, capture_output=True,
                                        text=True, timeout=60)
                self.assertEqual((result.returncode, result.stdout), (0, "1\n"), f"{file}: {result.stderr}")


if __name__ == "__main__":
    unittest.main()
