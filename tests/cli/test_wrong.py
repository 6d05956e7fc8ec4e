"""Wrong programs and what they are told: tests/wrong/NAME.tl next to the whole diagnostic, NAME.expected.

A program that `tl check` does not refuse is run. The first line of NAME.expected says which of the two
found the mistake. `python3 tests/cli/test_wrong.py --write` writes the files anew, to be read before
they are committed.
"""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "tests" / "wrong"
SCRIPTS = [*(ROOT / "tests" / "lang").glob("*.tl"), *(ROOT / "examples").glob("*.tl")]


def tl(*arguments, folder=FOLDER):
    environment = {**os.environ, "NO_COLOR": "1"}
    program = Path(os.environ.get("TL") or ROOT / "build" / "release" / "tl").resolve()
    return subprocess.run([program, *arguments], cwd=folder, env=environment, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL, timeout=60)


def diagnose(path):
    """The stage that finds the mistake, and what it says."""
    checked = tl("check", path.name)
    if checked.returncode != 0:
        return "check", checked.stderr
    ran = tl("run", path.name)
    assert ran.returncode == 1, f"{path.name} is not refused\n{ran.stderr}"
    return "run", ran.stderr


def shape_programs():
    return sorted(FOLDER.glob("shape_*.tl"))


def names_sizes(text):
    """The message holds two sizes, or a size and a type; the operands say where they were made."""
    message = text.splitlines()[1]
    return len(re.findall(r"\d+", message)) >= 2 and "(from line" in text


class Wrong(unittest.TestCase):
    def test_diagnostics(self):
        programs = sorted(FOLDER.glob("*.tl"))
        self.assertGreaterEqual(len(programs), 120)
        for path in programs:
            with self.subTest(path.name):
                stage, text = diagnose(path)
                expected = path.with_suffix(".expected").read_text()
                self.assertEqual(f"# tl {stage}\n{text}", expected)

    def test_run_refuses_what_check_finds(self):
        for name in ("shape_matmul", "shape_two_layers", "kind_call", "name_variable"):
            checked, ran = tl("check", f"{name}.tl"), tl("run", f"{name}.tl")
            self.assertEqual((ran.returncode, ran.stderr, ran.stdout), (1, checked.stderr, ""))

    def test_shape_mistakes(self):
        texts = [path.with_suffix(".expected").read_text() for path in shape_programs()]
        found = [text for text in texts if text.startswith("# tl check")]
        named = [text for text in texts if names_sizes(text)]
        print(f"{len(texts)} shape mistakes: {len(found)} found by tl check, {len(named)} name the "
              "sizes and where they came from", file=sys.stderr)
        self.assertGreaterEqual(len(texts), 100)
        self.assertGreaterEqual(len(found), 0.80 * len(texts))
        self.assertGreaterEqual(len(named), 0.95 * len(texts))

    def test_no_false_alarms(self):
        """What runs is not refused, and scripts that are meant to fail fail as they say."""
        for path in sorted(SCRIPTS):
            with self.subTest(path.name):
                result = tl("check", path.relative_to(ROOT), folder=ROOT)
                wanted = re.findall(r"// expect error: (.*)", path.read_text())
                errors = [line for line in result.stderr.splitlines() if line.startswith("error")]
                if wanted:
                    self.assertTrue(all(wanted[0] in line for line in errors[:1]), errors)
                else:
                    self.assertEqual(result.returncode, 0, result.stderr)


def write():
    for path in sorted(FOLDER.glob("*.tl")):
        stage, text = diagnose(path)
        path.with_suffix(".expected").write_text(f"# tl {stage}\n{text}")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        unittest.main()
