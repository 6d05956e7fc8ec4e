"""docs/pytorch.md: the programs in tl print what they say, each is at most as long as the one in PyTorch, and the
table counts right. Where PyTorch is installed its programs run as well."""
import re
import subprocess
import tempfile
import unittest

from tl import ROOT, run

PYTHON = "/usr/bin/python3"
TEXT = (ROOT / "docs" / "pytorch.md").read_text()
SECTION = re.compile(r"^## (.*?)\n\n```python\n(.*?)```\n\n```tl\n(.*?)```", re.S | re.M)


def length(program):
    return sum(bool(line.strip()) and not line.strip().startswith(("//", "#")) for line in program.splitlines())


class PyTorch(unittest.TestCase):
    def setUp(self):
        self.programs = SECTION.findall(TEXT)
        self.assertEqual(len(self.programs), 10)

    def test_they_run(self):
        for name, _, program in self.programs:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                result = run("-e", program, cwd=folder, env={"TL_MEMORY_CHECK": "strict"})
                wanted = re.findall(r"^// expect: (.*)$", program, re.M)
                self.assertEqual((result.out.splitlines(), result.status), (wanted, 0), result.err)

    def test_they_are_at_most_as_long(self):
        rows = re.findall(r"^\| (.*?) \| (\d+) \| (\d+) \|$", TEXT, re.M)
        self.assertEqual(rows, [(name, str(length(theirs)), str(length(ours))) for name, theirs, ours in self.programs])
        for name, theirs, ours in rows:
            self.assertLessEqual(int(ours), int(theirs), name)

    def test_no_line_is_longer_than_a_page(self):
        for name, theirs, ours in self.programs:
            self.assertLessEqual(max(map(len, (theirs + ours).splitlines())), 130, name)

    def test_the_others_run(self):
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("PyTorch is not installed")
        for name, program, _ in self.programs:
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                result = subprocess.run([PYTHON, "-c", "import torch; torch.manual_seed(1); torch.set_num_threads(1)\n"
                                         + program], cwd=folder, capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.assertIn(result.stdout.splitlines()[-1], ("True", "3.0 1.0"))


if __name__ == "__main__":
    unittest.main()
