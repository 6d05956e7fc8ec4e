"""The embedding API as other programs meet it: installed, found by pkg-config, linked, run."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, TL

BUILD = Path(TL).resolve().parent
SOURCE = ROOT / "examples" / "embed" / "embed.c"
PAGE = ROOT / "docs" / "embedding.md"
PYTHON = "/usr/bin/python3"


def programs(language):
    """Those of the page, and what each prints."""
    for text in re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.S | re.M):
        yield text, "".join(line + "\n" for line in re.findall(r"^(?://|#) expect: ?(.*)$", text, re.M))


@unittest.skipUnless(shutil.which("cmake") and shutil.which("pkg-config") and (BUILD / "cmake_install.cmake").exists(),
                     "not a build folder")
class Embed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prefix = Path(folder.name, "prefix")
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.prefix], check=True, capture_output=True)
        self.lib_folder = next(self.prefix.rglob("libtl.so")).parent

    def run_c(self, source):
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.lib_folder / "pkgconfig")}
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "tl"], env=environment, check=True,
                               capture_output=True, text=True).stdout.split()
        program = self.prefix / "program"
        sanitizers = re.findall(r"-fsanitize=\S+", (BUILD / "CMakeCache.txt").read_text())
        subprocess.run(["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", *sanitizers[:1], source, *flags,
                        "-o", program], check=True)
        return subprocess.run([program], env={**os.environ, "LD_LIBRARY_PATH": str(self.lib_folder)},
                              capture_output=True, text=True)

    def test_the_page_in_c(self):
        found = list(programs("c"))
        self.assertEqual(len(found), 3)
        for text, printed in found:
            with self.subTest(text.split("main")[0]):
                source = self.prefix / "program.c"
                source.write_text(text)
                result = self.run_c(source)
                self.assertEqual((result.stdout, result.stderr, result.returncode), (printed, "", 0))

    def test_the_page_in_python(self):
        package = BUILD / "python"
        if not (package / "tl" / "_tl.abi3.so").exists():
            self.skipTest("built without the Python package (python3-cffi, python3-dev)")
        if subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True).returncode:
            self.skipTest("python3-numpy is not installed")
        found = list(programs("python"))
        self.assertEqual(len(found), 3)
        for text, printed in found:
            with self.subTest(text):
                result = subprocess.run([PYTHON, "-c", text], env={**os.environ, "PYTHONPATH": str(package), "TL_DEVICE": "cpu"},
                                        capture_output=True, text=True)
                self.assertEqual((result.stdout, result.stderr), (printed, ""))

    def test_the_example_runs(self):
        result = self.run_c(SOURCE)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, "score: 0.5\n"
                         "error: shape (score.tl, line 2): cannot multiply float32[2, 3] by float32[2, 3]: "
                         "inner sizes 3 and 2 differ\n"
                         "24 bytes of this program are in use\n")

    def test_only_the_api_is_seen(self):
        names = subprocess.run(["nm", "-D", "--defined-only", self.lib_folder / "libtl.so"], check=True,
                               capture_output=True, text=True).stdout
        exported = {line.split()[2].split("@")[0] for line in names.splitlines()} - {"TL_0"}
        declared = set(re.findall(r"\b(tl_\w+)\(", (ROOT / "include" / "tl.h").read_text())) - {"tl_write"}
        self.assertEqual(exported, declared)

    def test_the_library_has_a_version(self):
        target = subprocess.run(["objdump", "-p", self.lib_folder / "libtl.so"], check=True, capture_output=True,
                                text=True).stdout
        self.assertIn("SONAME               libtl.so.0", target)
        self.assertNotIn("readline", target)


if __name__ == "__main__":
    unittest.main()
