"""The Python package: its tests, with the Python that it was built for; its wheel."""
import os
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

from tl import ROOT, TL

BUILD = Path(TL).resolve().parent
PYTHON = "/usr/bin/python3"


def python(folder, *arguments):
    return subprocess.run([PYTHON, *arguments], env={**os.environ, "PYTHONPATH": str(folder)}, cwd="/",
                          capture_output=True, text=True)


class Package(unittest.TestCase):
    def setUp(self):
        self.package = BUILD / "python"
        if not (self.package / "tl" / "_tl.abi3.so").exists():
            if os.environ.get("CI") == "true" and "sanitize" not in (BUILD / "CMakeCache.txt").read_text():
                self.fail("the Python package was not built")
            self.skipTest("built without the Python package (python3-cffi, python3-dev)")

    def test_package(self):
        result = python(self.package, str(ROOT / "tests" / "python" / "test_tl.py"))
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_wheel(self):
        with tempfile.TemporaryDirectory() as folder:
            made = python(self.package, str(ROOT / "python" / "wheel.py"), str(BUILD), "0.1.0")
            self.assertEqual(made.returncode, 0, made.stderr)
            with zipfile.ZipFile(made.stdout.strip()) as wheel:
                wheel.extractall(folder)
            os.unlink(made.stdout.strip())
            names = {path.name for path in Path(folder, "tl").iterdir()}
            self.assertLessEqual({"__init__.py", "__init__.pyi", "py.typed", "_tl.abi3.so", "libtl.so.0"}, names)
            code = "import tl; print(tl.eval('1 + 2'), tl.__file__)"
            result = python(folder, "-c", code)
            self.assertEqual(result.stdout, f"3 {folder}/tl/__init__.py\n", result.stderr)

    def test_stubs_name_what_there_is(self):
        code = ("import ast, tl; tree = ast.parse(open(tl.__file__ + 'i').read()); "
                "print(sorted(node.name for node in tree.body if hasattr(node, 'name')) == sorted(tl.__all__))")
        self.assertEqual(python(self.package, "-c", code).stdout, "True\n")


if __name__ == "__main__":
    unittest.main()
