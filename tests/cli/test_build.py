"""What is built, and what `make` does without being asked: nothing is installed by building."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, TL

PROGRAM_BYTES_MAX = 6 << 20


class Make(unittest.TestCase):
    def commands(self, *goals):
        """What make would run, in a build folder that is not there yet."""
        # Not as a part of the make that may run the suite.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        result = subprocess.run(["make", "-n", "BUILD=/nowhere", *goals], cwd=ROOT, capture_output=True, text=True,
                                env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    @unittest.skipUnless(shutil.which("make"), "make is not installed")
    def test_only_deps_run_and_test_install(self):
        for goal in ("build", "bench", "reference", "install", "package"):
            self.assertNotIn("install-deps", self.commands(goal))
            self.assertIn("cmake --preset", self.commands(goal))
        for goal in ("run", "test"):
            commands = self.commands(goal)
            self.assertLess(commands.index("install-deps"), commands.index("cmake --preset"))
        self.assertEqual(self.commands("deps").strip(), "scripts/install-deps")
        self.assertEqual(self.commands("deps", "PRESET=asan").strip(), "scripts/install-deps --extra")


class Configure(unittest.TestCase):
    @unittest.skipUnless(shutil.which("cmake"), "cmake is not installed")
    def test_no_build_type_is_release(self):
        for given, wanted in (([], "Release"), (["-DCMAKE_BUILD_TYPE=Debug"], "Debug")):
            with tempfile.TemporaryDirectory() as folder:
                result = subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-DTL_VULKAN=OFF", "-DBUILD_TESTING=OFF", *given],
                                        capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stderr)
                lines = Path(folder, "CMakeCache.txt").read_text().splitlines()
                self.assertEqual([line.split("=")[1] for line in lines if line.startswith("CMAKE_BUILD_TYPE:")], [wanted])

    @unittest.skipUnless(shutil.which("cmake"), "cmake is not installed")
    def test_release_is_compiled_as_the_preset_is(self):
        """Another level of optimisation would mean other warnings and other code than those that are tested."""
        with tempfile.TemporaryDirectory() as folder:
            flags = []
            for given in (["-G", "Ninja"], ["--preset", "release"]):
                subprocess.run(["cmake", "-S", ROOT, "-B", folder, "--fresh", "-DTL_VULKAN=OFF", "-DBUILD_TESTING=OFF", *given],
                               check=True, capture_output=True)
                flags.append([command["command"].split() for command in json.loads(Path(folder, "compile_commands.json").read_text())])
            for plain, preset in zip(*map(sorted, flags), strict=True):
                self.assertEqual([flag for flag in preset if flag not in plain], ["-Werror"])
                self.assertEqual([flag for flag in plain if flag not in preset], [])


class Program(unittest.TestCase):
    @unittest.skipUnless(shutil.which("strip"), "strip is not installed")
    def test_size(self):
        if b"__asan_init" in Path(TL).read_bytes() or b"__tsan_init" in Path(TL).read_bytes():
            self.skipTest("a build with sanitizers is large")
        with tempfile.TemporaryDirectory() as folder:
            stripped = Path(folder, "tl")
            subprocess.run(["strip", "-o", stripped, TL], check=True)
            self.assertLessEqual(stripped.stat().st_size, PROGRAM_BYTES_MAX)
