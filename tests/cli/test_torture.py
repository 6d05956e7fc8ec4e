"""Memory that is refused: every allocation in turn, large requests, and a system that has no more."""
import resource
import subprocess
import sys
import unittest
from pathlib import Path

from tl import ROOT, TL, need_no_sanitizer, run, run_code

SCRIPTS = ["02_program", "04_match_forms", "05_assign_targets", "06_drop_orders", "07_print_forms",
           "10_containers", "21_learn_memory"]

# Larger than the refused size: what is being made stays incomplete, and nothing runs after it.
LARGE = {
    "a string": 'let s = "ab" * 1000000\nprint("not reached")',
    "a joined string": 'let s = "a" * 300000\nlet t = s + s + s + s\nprint("not reached")',
    "a list": 'let l = list()\nfor i in 0..1000000 { l.push(i) }\nprint("not reached")',
    "a dictionary": 'let d = {}\nfor i in 0..1000000 { d[i] = i }\nprint("not reached")',
    "an argument of a call": 'print("ab" * 1000000)',
    "in a function": 'fn f() {\n    let s = "ab" * 1000000\n    s\n}\nmain { print(len(f())) }',
    "a tensor": 'let x = zeros([1000000])\nprint("not reached")',
    "numbers of a tensor": 'let x = zeros([400000], dtype: uint8)\nlet l = x.to_list()\nprint("not reached")',
}


class Refusals(unittest.TestCase):
    def test_every_allocation(self):
        command = [sys.executable, ROOT / "scripts" / "torture", "--build", Path(TL).parent, "--most", "12",
                   *(ROOT / "tests" / "lang" / f"{name}.tl" for name in SCRIPTS)]
        result = subprocess.run(command, capture_output=True, timeout=600)
        self.assertEqual(result.stdout.decode(), f"{len(SCRIPTS)} scripts, 0 problems\n", result.stderr.decode())

    def test_words_and_place(self):
        result = run("-e", "print(1)", env={"TL_FAIL_ALLOCATION": "3"})
        self.assertEqual(result.status, 1)
        self.assertEqual(result.out, "")
        self.assertRegex(result.err, r"^error\[memory\]: out of memory: the system refused \d+ bytes\n"
                                     r" --> <command>:1:1\n  \|\n1 \| print\(1\)\n  \| \^ while this file and what "
                                     r"it imports were read\n  = help: let go of what is no longer needed "
                                     r"\(x = none\), or work in smaller pieces\n")

    def test_large_requests(self):
        for name, code in LARGE.items():
            with self.subTest(name):
                result = run_code(code, env={"TL_FAIL_ALLOCATION_BYTES": "1000000", "TL_MEMORY_CHECK": "strict"})
                self.assertEqual((result.status, result.out), (1, ""), result.err)
                self.assertIn("error[memory]: ", result.err)
                self.assertIn("--> program.tl:", result.err)

    def test_caught_and_gone_on(self):
        code = ('let kept = list(1, 2)\n'
                'let r = try { "ab" * 1000000 } catch e { e.kind }\n'
                'let grown = try {\n    for i in 0..1000000 { kept.push(i) }\n} catch e { "list: " + e.kind }\n'
                'print(r, grown, kept[:4])\n')
        result = run_code(code, env={"TL_FAIL_ALLOCATION_BYTES": "1000000"})
        self.assertEqual(result.out, "memory list: memory [1, 2, 0, 1]\n", result.err)

    def test_a_line_that_cannot_be_undone(self):
        """The session's note of what was before needs memory too: without it nothing is lost."""
        lines = ("let a = list(); let b = list()\nfor i in 0..30000 { a.push(i); b.push(i) }\n"
                 "a.push(1); error(\"no\")\nprint(len(a), len(b))\nb = none\nb\n")
        result = run("repl", stdin=lines.encode(), env={"TL_FAIL_ALLOCATION_BYTES": "800000"})
        self.assertEqual(result.out.strip(), "30001 30000", result.err)
        self.assertIn("error[error]: no\n", result.err)
        self.assertIn("= help: what the line changed stays: there was no memory to note what was before it\n",
                      result.err)

    def test_lists_longer_than_memory(self):
        need_no_sanitizer("needs the whole address space")
        for code in ("sorted(x)", "x.to_list()", "zip(x, x)"):
            result = run_code(f"let x = zeros([1099511627776, 0])\nprint({code})\n", options=["--host-limit", "1GB"])
            self.assertEqual((result.status, result.out), (1, ""), result.err)
            self.assertIn("error[memory]: out of memory: there is none for a list of 1099511627776 values\n",
                          result.err)

    def test_other_commands(self):
        for arguments in (["check", "-"], ["fmt", "-"], ["help", "relu"]):
            with self.subTest(arguments[0]):
                result = run(*arguments, stdin=b"print(1)\n", env={"TL_FAIL_ALLOCATION": "2"})
                self.assertEqual(result.status, 1)
                self.assertIn("error[memory]: out of memory", result.err)

    def test_malformed_settings(self):
        for name, what in (("TL_FAIL_ALLOCATION", "a number of an allocation"),
                           ("TL_FAIL_ALLOCATION_BYTES", "a number of bytes")):
            result = run("-e", "print(1)", env={name: "many"})
            self.assertEqual(result.status, 1)
            self.assertIn(f'error[setting]: {name} is "many", which is not {what}\n', result.err)

    def test_a_full_system(self):
        """The address space is really limited: growth without end stops with the same words."""
        need_no_sanitizer("needs the whole address space")
        limit = 640 << 20
        for code in ('let l = list()\nloop { l.push("x" * 100000 + str(len(l))) }',
                     'let s = "x"\nloop { s = s + s }',
                     'let l = list()\nloop { l.push(ones([100000])) }',
                     'let d = {}\nlet i = 0\nloop {\n    d[i] = str(i)\n    i += 1\n}'):
            with self.subTest(code):
                result = subprocess.run(
                    [TL, "-e", code], capture_output=True, timeout=300,
                    env={"TL_MEMORY_CHECK": "strict", "TL_THREADS": "1", "NO_COLOR": "1"},
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                err = result.stderr.decode()
                self.assertEqual(result.returncode, 1, err[-2000:])
                self.assertIn("error[memory]: ", err)
                self.assertIn("--> <command>:", err)
                self.assertIn("no leak", err)


if __name__ == "__main__":
    unittest.main()
