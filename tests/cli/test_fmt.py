"""tl fmt from outside: files, folders, standard input; and that no script means anything else after it."""
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import FIXTURES, ROOT, run


def scripts():
    """Every script of the repository that is written for people."""
    listed = subprocess.run(["git", "ls-files", "*.tl"], cwd=ROOT, capture_output=True, text=True)
    paths = [ROOT / line for line in listed.stdout.splitlines()] if listed.returncode == 0 else []
    paths = paths or sorted((ROOT / "examples").glob("*.tl")) + sorted((ROOT / "tests" / "lang").rglob("*.tl"))
    return [path for path in paths if "corpus" not in path.parts and path.exists()]


def mangle(text):
    """The same program with its indentation and trailing blank lines lost."""
    if '"' in re.sub(r'"(\\.|[^"\\\n])*"', "", text):
        return text  # a string over several lines
    return "\n".join(line.lstrip(" ") for line in text.split("\n")) + "\n\n\n"


class Format(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_scripts_are_fixed_points(self):
        paths = scripts()
        self.assertGreater(len(paths), 50)
        result = run("fmt", "--check", *paths)
        untidy = result.out.splitlines()
        broken = {line.split("-->")[1].split(":")[0].strip() for line in result.err.splitlines() if "-->" in line}
        self.assertEqual(untidy, [], "run tl fmt on these")
        for path in broken:  # only scripts about mistakes of syntax cannot be read
            wrong = Path(path).parent.name == "wrong"
            self.assertTrue(wrong or "expect error" in Path(path).read_text(), path)

    def test_formatted_scripts_print_the_same(self):
        folder = self.folder / "copy"
        shutil.copytree(ROOT / "tests" / "lang", folder)
        originals = {}
        for path in sorted(folder.glob("*.tl")):
            text = path.read_bytes().decode(errors="replace")
            if "args:" in text or "seed" in text or "time" in text:
                continue
            originals[path] = run("run", path.name, cwd=folder)
            path.write_bytes(mangle(text).encode())
        self.assertGreater(len(originals), 20)
        run("fmt", *originals)
        for path, before in originals.items():
            with self.subTest(path.name):
                after = run("run", path.name, cwd=folder)
                self.assertEqual(after.out, before.out)
                self.assertEqual(after.status, before.status)
                if run("fmt", "--check", path).status == 0:
                    again = run("fmt", "-", stdin=path.read_bytes())
                    self.assertEqual(again.out.encode(), path.read_bytes())

    def test_standard_input(self):
        result = run("fmt", stdin=b"x=1\n")
        self.assertEqual((result.status, result.out, result.err), (0, "x = 1\n", ""))
        result = run("fmt", "--check", "-", stdin=b"x=1\n")
        self.assertEqual((result.status, result.out), (1, "<stdin>\n"))
        result = run("fmt", "--check", stdin=b"x = 1\n")
        self.assertEqual((result.status, result.out), (0, ""))

    def test_files_and_folders(self):
        tidy, untidy, other = self.folder / "a.tl", self.folder / "in" / "b.tl", self.folder / "c.txt"
        untidy.parent.mkdir()
        tidy.write_text("x = 1\n")
        untidy.write_text("x=1")
        untidy.chmod(0o750)
        other.write_text("x=1")
        result = run("fmt", "--check", self.folder)
        self.assertEqual((result.status, result.out), (1, f"{untidy}\n"))
        self.assertEqual(untidy.read_text(), "x=1")
        result = run("fmt", self.folder)
        self.assertEqual((result.status, result.out, result.err), (0, f"{untidy}\n", ""))
        self.assertEqual(untidy.read_text(), "x = 1\n")
        self.assertEqual(untidy.stat().st_mode & 0o777, 0o750)
        self.assertEqual(other.read_text(), "x=1")
        self.assertEqual(sorted(p.name for p in self.folder.rglob("*")), ["a.tl", "b.tl", "c.txt", "in"])
        result = run("fmt", self.folder)
        self.assertEqual((result.status, result.out), (0, ""))

    def test_a_link_stays_a_link(self):
        real, link = self.folder / "real.tl", self.folder / "link.tl"
        real.write_text("x=1")
        link.symlink_to(real)
        self.assertEqual(run("fmt", link).status, 0)
        self.assertTrue(link.is_symlink())
        self.assertEqual(real.read_text(), "x = 1\n")

    def test_syntax_errors_leave_the_file(self):
        bad, good = self.folder / "bad.tl", self.folder / "good.tl"
        bad.write_text("x=(1\n")
        good.write_text("x=1\n")
        result = run("fmt", bad, good)
        self.assertEqual(result.status, 1)
        self.assertIn("error[syntax]: expected `)` to close the parenthesis, found the end of the file", result.err)
        self.assertEqual(bad.read_text(), "x=(1\n")
        self.assertEqual(good.read_text(), "x = 1\n")

    def test_errors(self):
        result = run("fmt", self.folder / "none.tl")
        self.assertEqual(result.status, 1)
        self.assertIn("No such file or directory", result.err)
        result = run("fmt", "--wrong")
        self.assertEqual(result.status, 2)
        self.assertIn("error: there is no option --wrong\nusage: tl fmt [--check] [FILE|FOLDER...]", result.err)

    def test_large_lines_take_little_time(self):
        line = b"x = [" + b"1, /* a */ " * 100_000 + b"2]\n"
        result = run("fmt", stdin=line, timeout=20)
        self.assertEqual((result.status, result.out.encode()), (0, line.replace(b"1, /*", b"1, /*")))
        result = run("fmt", stdin=b"// a\n" * 200_000, timeout=20)
        self.assertEqual(result.status, 0)


if __name__ == "__main__":
    unittest.main()
