"""The examples of the guide print what it says, and the README's first lines are commands that exist."""
import re
import tempfile
import unittest

from tl import ROOT, run, run_code

BLOCK = re.compile(r"^```tl\n(.*?)^```", re.S | re.M)
SESSION = re.compile(r"^```session\n(.*?)^```", re.S | re.M)


class Guide(unittest.TestCase):
    def test_examples(self):
        for name in ("guide.md", "tensor-logic.md"):
            self.run_blocks(BLOCK.findall((ROOT / "docs" / name).read_text()))

    def run_blocks(self, blocks):
        self.assertGreater(len(blocks), 10)
        for block in blocks:
            with self.subTest(block):
                result = run_code(block, env={"TL_MEMORY_CHECK": "strict"}, options=("--seed", "1"))
                expected = re.findall(r"^// expect: ?(.*)$", block, re.M)
                self.assertEqual(result.out.splitlines(), expected, result.err)
                self.assertEqual(result.status, 0)

    def test_sessions(self):
        """What is entered at `tl> ` in the guide gives what it shows; errors stand on standard error."""
        blocks = SESSION.findall((ROOT / "docs" / "guide.md").read_text())
        self.assertGreater(len(blocks), 1)
        for block in blocks:
            with self.subTest(block):
                rows = block.splitlines()
                entered = [row[4:] for row in rows if row.startswith("tl> ")]
                result = run("repl", stdin=("\n".join(entered) + "\n").encode())
                self.assertEqual(result.out.splitlines(),
                                 [row for row in rows if not row.startswith("tl> ")], result.err)

    def test_examples_run_from_any_folder(self):
        reading = [path for path in sorted((ROOT / "examples").glob("*.tl")) if "here(" in path.read_text()]
        self.assertGreater(len(reading), 3)
        for path in (ROOT / "examples").glob("*.tl"):
            self.assertNotIn('"examples/', path.read_text(), path)
        with tempfile.TemporaryDirectory() as folder:
            for path in reading[:2]:
                result = run("run", path, cwd=folder)
                self.assertEqual(result.status, 0, result.err)
            self.assertEqual(run("-e", 'print(here("a.txt"))', cwd=folder).out, "a.txt\n")

    def test_readme_commands_are_targets(self):
        makefile = (ROOT / "Makefile").read_text()
        for target in re.findall(r"^    make (\w+)", (ROOT / "README.md").read_text(), re.M):
            self.assertRegex(makefile, rf"(?m)^{target}:")

    def test_the_architecture_is_read_in_one_sitting(self):
        self.assertLess(len((ROOT / "ARCHITECTURE.md").read_text().split()), 2000)

    def test_no_merge_is_left_halfway(self):
        for path in [*ROOT.glob("*.md"), *(p for p in ROOT.glob("docs/**/*") if p.is_file())]:
            self.assertNotRegex(path.read_text(), r"(?m)^(<<<<<<<|>>>>>>>) ", path)


if __name__ == "__main__":
    unittest.main()
