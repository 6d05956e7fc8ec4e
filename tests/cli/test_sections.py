"""tl test and tl bench: files, folders, filters, what is printed and the exit status."""
import re
import tempfile
import unittest
from pathlib import Path

from tl import run

PASSING = """fn add(a, b) { a + b }
let base = [1.0, 2.0]
main { print("main ran") }
test adds { assert_eq(add(1, 2), 3) }
test "tensors agree" { assert_about_eq(base + 1, [2.0, 3.0]) }
"""
FAILING = """test first { assert_eq(1 + 1, 3) }
test second { assert_eq([1.0, 2.0], [1.0, 5.0], "sums") }
test third { let x = 1 }
test fourth { assert_about_eq(1.0, 1.5, 0.1) }
test fifth { exit(0) }
"""


class Sections(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_here(self, *arguments):
        return run(*arguments, cwd=self.folder)

    def test_a_file(self):
        self.write("a.tl", PASSING)
        result = self.run_here("test", "a.tl")
        self.assertEqual(result.out, "a.tl\nok     adds\nok     tensors agree\n2 passed, 0 failed\n")
        self.assertEqual((result.err, result.status), ("", 0))

    def test_failures_show_both_values_and_the_line(self):
        self.write("b.tl", FAILING)
        result = self.run_here("test", "b.tl")
        self.assertEqual(result.out, "b.tl\nFAILED first\nFAILED second\nok     third\n"
                                     "FAILED fourth\nFAILED fifth\n1 passed, 4 failed\n")
        self.assertEqual(result.status, 1)
        self.assertIn("error[assert]: 2 is not equal to 3\n --> b.tl:1:14\n  |\n"
                      "1 | test first { assert_eq(1 + 1, 3) }\n", result.err)
        self.assertIn("sums: [1. 2.] is not equal to [1. 5.]", result.err)
        self.assertIn("1.0 is not within 0.1 of 1.5", result.err)
        self.assertIn("it ended the program by exit(0)", result.err)

    def test_a_comparison_that_does_not_hold_shows_both_sides(self):
        self.write("e.tl", """fn checked(n) { assert(n < 2, "too many"); n }
test plain { let n = 4; assert(n * 2 <= 7) }
test message { assert(sum([1.0, 2.0]) == 4.0, "sums") }
test inside { assert(checked(3) == 3) }
test holds { assert(checked(1) == 1); assert(false) }
test tensors { assert([1, 2] == [1, 2]) }
test both { let n = 4; assert(n == 4 and n > 5 and n < 0) }
""")
        result = self.run_here("test", "e.tl")
        self.assertEqual(result.out, "e.tl\nFAILED plain\nFAILED message\nFAILED inside\n"
                                     "FAILED holds\nFAILED tensors\nFAILED both\n0 passed, 6 failed\n")
        labels = [line.strip() for line in result.err.splitlines() if "^" in line]
        self.assertEqual([label.lstrip("|^ ") for label in labels],
                         ["left is 8, right is 7", "left is 3.0, right is 4.0",
                          "left is 3, right is 2", "", "", "left is 4, right is 5"])
        self.assertIn("error[assert]: the assertion does not hold", result.err)
        self.assertIn("error[assert]: sums", result.err)
        self.assertIn("all(...)", result.err)

    def test_folders_and_filter(self):
        self.write("z.tl", "test last { }\n")
        self.write("inner/a.tl", PASSING)
        self.write("inner/none.tl", "print(\"a program without tests does not run\")\n")
        self.write("inner/.hidden.tl", "test hidden { panic(\"no\") }\n")
        result = self.run_here("test")
        self.assertEqual(result.out, "./inner/a.tl\nok     adds\nok     tensors agree\n"
                                     "./z.tl\nok     last\n3 passed, 0 failed\n")
        result = self.run_here("test", "--filter", "tensors", "inner", "z.tl")
        self.assertEqual(result.out, "inner/a.tl\nok     tensors agree\n1 passed, 0 failed\n")
        self.assertEqual(self.run_here("test", "--filter=zzz").out, "0 passed, 0 failed\n")
        self.write("z.tl", "print(\"top\")\ntest last { }\n")
        self.assertEqual(self.run_here("test", "--filter=zzz", "z.tl").out, "0 passed, 0 failed\n")
        self.assertEqual(self.run_here("bench", "z.tl").out, "0 passed, 0 failed\n")

    def test_files_that_cannot_run_fail(self):
        self.write("syntax.tl", "test a { ( }\n")
        self.write("top.tl", "let x = error(\"top\")\ntest a { }\n")
        self.write("good.tl", "test a { }\n")
        result = self.run_here("test", "syntax.tl", "top.tl", "missing.tl", "good.tl")
        self.assertEqual(result.out, "FAILED syntax.tl\nFAILED top.tl\nFAILED missing.tl\n"
                                     "good.tl\nok     a\n1 passed, 3 failed\n")
        self.assertIn("error[error]: top", result.err)
        self.assertIn("missing.tl", result.err)
        self.assertEqual(result.status, 1)

    def test_bench(self):
        self.write("c.tl", """let runs = list(0)
bench product { let a = ones([64, 64]); a @ a; runs[0] = runs[0] + 1 }
bench wrong { error("no") }
test not_now { panic("no") }
""")
        result = self.run_here("bench", "c.tl")
        self.assertRegex(result.out, r"^c.tl\nok     product  [0-9.]+ [mu]?s \(median; [0-9.]+ [mu]?s to "
                                     r"[0-9.]+ [mu]?s, \d+ runs\)\nFAILED wrong\n1 passed, 1 failed\n$")
        self.assertGreaterEqual(int(re.search(r"(\d+) runs", result.out)[1]), 5)
        self.assertIn("error[error]: no", result.err)
        self.assertEqual(result.status, 1)
        slow = self.write("d.tl", "bench slow { sleep(0.12) }\n") or self.run_here("bench", "d.tl")
        self.assertRegex(slow.out, r"slow  1[2-9]\d\.\d+ ms \(median; .*, 5 runs\)")
        self.assertEqual(slow.status, 0)

    def test_older_spelling(self):
        self.write("a.tl", PASSING)
        self.assertEqual(self.run_here("run", "a.tl", "--test").out,
                         "ok     adds\nok     tensors agree\n2 passed, 0 failed\n")

    def test_wrong_option(self):
        result = self.run_here("test", "--nope")
        self.assertEqual(result.status, 2)
        self.assertIn("there is no option --nope", result.err)


if __name__ == "__main__":
    unittest.main()
