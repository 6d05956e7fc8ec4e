"""--memory-limit: what does not fit on the device is moved out and comes back; the numbers stay the same.

`python3 tests/cli/test_memory_limit.py --programs N` runs N generated programs at random limits."""
import os
import random
import re
import sys
import tempfile
import unittest
from pathlib import Path

from test_foretell import Generator, foretold, measured
from tl import ROOT, run, run_code

SEED = int(os.environ.get("TL_TEST_SEED", 1))
IDLE = """let parts = [rand([256, 1024], seed: i) for i in 0..16]
let total = zeros([256, 1024])
for part in parts { total = total + part }
for part in parts { total = total + exp(part) }
print(sum(total as float64))
"""


def moved(result):
    found = re.search(r"limit: ([\d.]+) MB · ([\d.]+) MB moved out in (\d+) parts?, ([\d.]+) MB brought back", result.err)
    return tuple(map(float, found.groups())) if found else None


class Limited(unittest.TestCase):
    def limited(self, code, limit, **more):
        return run_code(code, options=["--memory-limit", limit, "--memory-check=strict"], **more)

    def test_idle_tensors_leave_and_come_back(self):
        free = run_code(IDLE, options=["--memory-check"])
        result = self.limited(IDLE, "4MB")
        self.assertEqual((result.status, result.out), (0, free.out), result.err)
        self.assertIsNone(moved(free))
        limit, out, parts, back = moved(result)
        self.assertEqual(limit, 4)
        self.assertGreater(out, 12)
        self.assertGreater(back, 12)
        peak = float(re.search(r"^peak +([\d.]+) MB", result.err, re.M)[1])
        self.assertLessEqual(peak, 4)
        self.assertIn("no leak", result.err)

    def test_nothing_stays_behind(self):
        with tempfile.TemporaryDirectory() as folder:
            result = self.limited(IDLE, "4MB", env={"TMPDIR": folder})
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(os.listdir(folder), [])

    def test_an_error_while_parts_are_away(self):
        result = self.limited(IDLE + 'error("stop")\n', "4MB")
        self.assertEqual(result.status, 1)
        self.assertIn("stop", result.err)
        self.assertIn("no leak", result.err)

    def test_an_operation_that_cannot_fit_is_refused_before_the_run(self):
        code = 'print("begun")\nlet x = ones([1024, 1024])\nlet y = exp(x) + x\n'
        result = self.limited(code, "4MB")
        self.assertEqual((result.status, result.out), (1, ""))
        self.assertIn("error[memory]: this operation takes 8.00 MB at once, and --memory-limit is 4.00 MB\n"
                      " --> program.tl:3:9\n", result.err)
        self.assertIn("raise the limit, or work in smaller pieces; nothing has run", result.err)
        self.assertEqual(self.limited(code, "8MB").out, "begun\n")

    def test_what_only_the_run_knows_is_refused_by_it(self):
        code = 'let n = 1024\nif sum(randn([300, 300])) > -1e9 { n = 2048 }\nlet x = ones([n, n])\nprint(exp(x)[0, 0])\n'
        result = run_code(code, options=["--memory-limit", "20MB"])
        self.assertEqual(result.status, 1)
        self.assertIn("error[memory]: ", result.err)
        self.assertIn("the limit is 20.00 MB", result.err)

    def test_values(self):
        for word in ("", "none", "-1", "0", "2 gallons"):
            result = run("run", "--memory-limit", word, "-e", "print(1)")
            self.assertEqual((result.status, result.out), (2, ""))
            self.assertIn(f'--memory-limit needs a size such as 500MB or 2GB, but it is "{word}"', result.err)
        result = run("run", "-e", "print(1)", env={"TL_MEMORY_LIMIT": "much"})
        self.assertIn('TL_MEMORY_LIMIT is "much", which is not a size', result.err)
        result = run("run", "-e", "print(sum(ones([1000])))", env={"TL_MEMORY_LIMIT": "64KB"})
        self.assertEqual((result.status, result.out), (0, "1000.0\n"), result.err)

    def test_a_transformer_with_half_and_a_quarter_of_its_memory(self):
        code = (ROOT / "examples/21_transformer_equations.tl").read_text()
        code = code.replace("    learn {", "    let trained = learn {").replace("epochs: 20", "epochs: 2")
        code = re.sub(r"    let right = (?s:.*)", "    print(trained.losses, written)\n}\n", code)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "t.tl").write_text(code)
            peak, free = measured("--quiet", "t.tl", cwd=folder)
            self.assertEqual(free.status, 0, free.err)
            for part in (2, 4):
                result = run("run", "--quiet", "--memory-check", "--memory-limit", peak // part, "t.tl", cwd=folder)
                self.assertEqual((result.status, result.out), (0, free.out), (part, result.err[-2000:]))
                self.assertIsNotNone(moved(result))
            # Its softmax alone takes more than an eighth.
            result = run("run", "--quiet", "--memory-limit", peak // 8, "t.tl", cwd=folder)
            self.assertEqual((result.status, result.out), (1, ""))
            self.assertIn("--> t.tl:19:26\n", result.err)

    COUNT = 8

    def test_generated_programs_at_random_limits(self):
        drawn = random.Random(SEED)
        for number in range(SEED, SEED + self.COUNT):
            code = "seed(1)\n" + Generator(number).program()
            with self.subTest(seed=number), tempfile.TemporaryDirectory() as folder:
                Path(folder, "p.tl").write_text(code)
                peak, free = measured("--quiet", "p.tl", cwd=folder)
                found = foretold("p.tl", cwd=folder)
                limit = max(drawn.randint(peak // 8, peak + 1), 4096)
                result = run("run", "--quiet", "--memory-limit", limit, "p.tl", cwd=folder)
                if result.status == 0:
                    self.assertEqual(result.out, free.out, code)
                else:  # only where operands of one operation do not fit, or nearly not
                    self.assertIn("error[memory]", result.err)
                    self.assertGreater(found["operation"]["bytes"] * 2, limit, code)


if __name__ == "__main__":
    if "--programs" in sys.argv:
        at = sys.argv.index("--programs")
        Limited.COUNT = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
