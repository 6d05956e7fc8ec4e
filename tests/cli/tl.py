"""How the test cases run tl: from outside, as a user does."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TL = os.environ.get("TL") or str(ROOT / "build" / "release" / "tl")
FIXTURES = Path(os.environ.get("TL_FIXTURES") or ROOT.parent / "shared")


class Result:
    def __init__(self, process):
        self.status = process.returncode
        self.out = process.stdout.decode(errors="replace")
        self.err = process.stderr.decode(errors="replace")


def run(*arguments, env=None, stdin=b"", timeout=120, cwd=ROOT):
    environment = {**os.environ, "NO_COLOR": "1", **(env or {})}
    if any(str(argument).startswith("--sandbox") for argument in arguments):
        environment["ASAN_OPTIONS"] = "detect_leaks=0"  # the sanitizer looks for them in /proc
    return Result(subprocess.run([TL, *map(str, arguments)], input=stdin, capture_output=True,
                                 env=environment, timeout=timeout, cwd=cwd))


def run_code(code, *arguments, env=None, options=(), **more):
    """Runs a program from a file called program.tl, so that places in messages are stable."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.tl").write_bytes(code.encode() if isinstance(code, str) else code)
        return run("run", *options, "program.tl", *arguments, env=env, cwd=folder, **more)


class InFolder(unittest.TestCase):
    """Programs with files of their own: a folder a test, `options` in front of each program."""
    options = ()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_here(self, code, env=None):
        (self.folder / "program.tl").write_text(code)
        return run("run", *self.options, "--quiet", "--memory-check=strict", "program.tl", cwd=self.folder, env=env)

    def prints(self, code, *lines):
        result = self.run_here(code)
        self.assertEqual((result.out.splitlines(), result.status), (list(lines), 0), result.err)

    def fails(self, code, text):
        result = self.run_here(code)
        self.assertEqual(result.status, 1, result.out)
        self.assertIn(text, result.err)


def instruction_sets():
    """Those of TL_ISA that this processor has."""
    return [isa for isa in ("base", "avx2", "avx512")
            if "which this machine does not have" not in run("-e", "zeros([1])", env={"TL_ISA": isa}).err]


def fixture(case, name):
    """The path of a fixture; without it the test is skipped, or fails when CI=true."""
    path = FIXTURES / name
    if not path.exists():
        if os.environ.get("CI") == "true":
            case.fail(f"the fixture {path} is missing")
        raise unittest.SkipTest(f"the fixture {path} is missing")
    return path


def need_sandbox(folder="/tmp"):
    """Skips where the kernel has no Landlock, or a container forbids it."""
    if "this system cannot confine a process" in run("run", "--sandbox", folder, "-e", "print(1)").err:
        raise unittest.SkipTest("the kernel has no Landlock")


def sanitized():
    """Whether the build has AddressSanitizer."""
    return b"__asan_init" in Path(TL).read_bytes()


def need_no_sanitizer(what):
    """Skips in a build with AddressSanitizer, which does what it says."""
    if sanitized():
        raise unittest.SkipTest(f"the sanitizer {what}")
