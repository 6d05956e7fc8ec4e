"""What tl says on the command line, in the REPL, and of files and streams of the system that are not what they should
be: whole texts."""
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, TL, run, run_code

RUN_USAGE = "usage: tl run FILE [arguments...]   (also: tl FILE, tl -, tl -e 'code')\n"

USAGE = [
    (["check"], "error: a file is missing\nusage: tl check [--json|--sums] FILE...   (also: tl check --memory FILE [arguments...])\n"),
    (["-e"], "error: -e needs code\n" + RUN_USAGE),
    (["run"], "error: a file is missing\n" + RUN_USAGE),
    (["repl", "--test"], "error: the REPL takes --device, --memory-check, --memory-limit, --sandbox, --seed, --quiet and --verbose\n"
                         "usage: tl repl   (also: tl on a terminal)\n"),
    (["tset"], "error: there is no file and no command tset; did you mean tl test?\n"
               "usage: tl test [--filter TEXT] [FILE|FOLDER...]\n"),
    (["check", "--what", "a.tl"], "error: there is no option --what\nusage: tl check [--json|--sums] FILE...   (also: tl check --memory FILE [arguments...])\n"),
    (["check", "--memory=what", "a.tl"], "error: there is no option --memory=what; did you mean --memory?\nusage: tl check [--json|--sums] FILE...   (also: tl check --memory FILE [arguments...])\n"),
    (["fmt", "--what"], "error: there is no option --what\nusage: tl fmt [--check] [FILE|FOLDER...]\n"),
    (["run", "--device"], "error: --device needs a value\n"),
    (["run", "--device", "nowhere", "f"],
     'error: --device needs cpu, vulkan, vulkan:N, vulkan:local_rank or auto, but it is "nowhere"\n'),
    (["run", "--seed", "x", "f"], 'error: --seed needs an integer from 0, but it is "x"\n'),
]

REPL = [
    (":nothing", "error[name]: there is no command :nothing\n  = help: :help shows the commands\n"),
    (":set colour", 'error[setting]: there is no setting "colour"\n  = help: :set mem on, :set mem off\n'),
    (":save", "error[syntax]: the command is :save FILE\n"),
    ("let x = ones([2])\n:device cpu", "error[device]: the session's tensors lie on the present device\n"
                                       "  = help: :reset clears them; then :device cpu\n"),
]


class CommandMessages(unittest.TestCase):
    def test_the_last_of_an_option_counts(self):
        result = run("--memory-limit", "1MB", "--memory-limit", "64MB", "--device", "cpu", "-e", "print(sum(ones([1024, 1024])))")
        self.assertEqual((result.status, result.out, result.err), (0, "1048576.0\n", ""))

    def test_options_stand_before_a_command_or_behind_it(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "f.tl").write_text("print(args(), randint(0, 1000))\n")
            behind = run("run", "--seed", "7", "--device", "cpu", "f.tl", "run", "--quiet", cwd=folder)
            before = run("--seed", "7", "--device", "cpu", "run", "f.tl", "run", "--quiet", cwd=folder)
            self.assertEqual((before.status, before.out, before.err), (behind.status, behind.out, behind.err))
            self.assertTrue(before.out.startswith('["run", "--quiet"] '))
            self.assertEqual(run("--json", "check", "f.tl", cwd=folder).out, "[]\n")

    def test_usage(self):
        for arguments, expected in USAGE:
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertEqual((result.status, result.err), (2, expected))

    def test_misspelt_options(self):
        for arguments, meant in [
            (("generate", "m", "--temp", "1"), "--temperature"),
            (("chat", "m", "--max-token=1"), "--max-tokens"),
            (("serve", "m", "--prot", "1"), "--port"),
            (("serve", "m", "--temperature", "1"), None),
            (("models", "-json", "m"), "--json"),
            (("run", "--devce", "cpu", "f"), "--device"),
            (("--devic=cpu", "-e", "1"), "--device"),
            (("repl", "--Seed", "1"), "--seed"),
            (("check", "--memry", "f"), "--memory"),
            (("test", "--fliter", "x"), "--filter"),
            (("fmt", "--chek"), "--check"),
            (("mcp", "--sandbax", "f"), "--sandbox"),
            (("devices", "--device", "cpu"), None),
            (("run", "-x", "f"), None),
            (("run", "--" + 99 * "m", "f"), None),
        ]:
            word = next(word for word in arguments if word[0] == "-")
            more = f"; did you mean {meant}?" if meant else ""
            result = run(*arguments)
            self.assertEqual(result.status, 2)
            self.assertEqual(result.err.splitlines()[0], f"error: there is no option {word}{more}")

    def test_repl(self):
        for keys, expected in REPL:
            with self.subTest(keys):
                self.assertIn(expected, run("repl", stdin=keys.encode() + b"\n").err)

    def test_notes_of_the_check(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "f.tl").write_text("fn gelu(x) { x }\nprint(gelu(1))\n")
            self.assertEqual(run("check", "f.tl", cwd=folder).err,
                             "note: this function is called instead of the builtin `gelu`\n"
                             " --> f.tl:1:4\n  |\n1 | fn gelu(x) { x }\n  |    ^^^^\n")
            err = run("-e", 'import "std/metrics.tl"\nprecision(1)', cwd=folder).err
            lines = (ROOT / "std" / "metrics.tl").read_text().splitlines()
            at = next(i for i, line in enumerate(lines, 1) if line.startswith("fn precision("))
            self.assertIn(f" --> {ROOT}/std/metrics.tl:{at}:1\n", err)
            Path(folder, "f.tl").write_text("fn main() { 1 }\n")
            self.assertEqual(run("f.tl", cwd=folder).err,
                             "warning: nothing calls fn main\n --> f.tl:1:4\n  |\n1 | fn main() { 1 }\n"
                             "  |    ^^^^\n  = help: main { ... } runs by itself; a function runs when "
                             "it is called\n")
            Path(folder, "f.tl").write_text("fn main() { 1 }\nmain()\n")
            self.assertEqual(run("f.tl", cwd=folder).err, "")
            Path(folder, "m.tl").write_text("let a = 1\n")
            Path(folder, "f.tl").write_text('import "m.tl" as m\nprint(m.nothing)\n')
            self.assertEqual(run("f.tl", cwd=folder).err, "error[name]: `m` has no `nothing`\n"
                             " --> f.tl:2:9\n  |\n2 | print(m.nothing)\n  |         ^^^^^^^\n")

    def test_standard_streams(self):
        folder = os.open("/", os.O_RDONLY)
        result = subprocess.run([TL, "-e", "input()"], stdin=folder, capture_output=True)
        os.close(folder)
        self.assertIn(b"error[io]: cannot read standard input: Is a directory\n", result.stderr)
        self.assertIn("error[format]: the line read from standard input is not UTF-8 text\n",
                      run("-e", "input()", stdin=b"\xff\n").err)
        with open("/dev/full", "wb") as full:
            result = subprocess.run([TL, "-e", 'print("x" * 100000)'], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"error[io]: cannot write the output: No space left on device\n", result.stderr)

    def test_files_of_other_kinds(self):
        self.assertIn("error[io]: cannot read /dev/null: it is not a regular file\n",
                      run("-e", 'load_model("/dev/null")').err)
        with tempfile.TemporaryDirectory() as folder:
            os.truncate(os.open(f"{folder}/big.tl", os.O_CREAT | os.O_WRONLY), 65 << 20)
            self.assertEqual(run("big.tl", cwd=folder).err, "error[io]: cannot read big.tl: it is larger than 64 MB\n")
            os.truncate(f"{folder}/big.tl", (1 << 30) + 1)
            self.assertIn('error[io]: cannot read "big.tl": it is larger than 1024 MB\n',
                          run("-e", 'read_file("big.tl")', cwd=folder).err)

    def test_a_pipe_without_a_writer_is_interrupted(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkfifo(f"{folder}/pipe")
            process = subprocess.Popen([TL, "-e", 'print("waits")\nread_file("pipe")'], cwd=folder, stderr=subprocess.PIPE)
            try:
                process.communicate(timeout=1)
            except subprocess.TimeoutExpired:
                process.terminate()
            process.communicate(timeout=20)
            self.assertEqual(process.returncode, 128 + 15)

    def test_depth(self):
        self.assertRegex(run_code("fn f(n) { f(n + 1) }\nf(0)").err, re.escape(
            "error[depth]: the calls are nested too deeply: fn f calls itself without end, or almost\n"
            " --> program.tl:1:11\n  |\n1 | fn f(n) { f(n + 1) }\n  |           ^^^^^^^^\n  in fn f (program.tl:1) ")
            + r"\d+ times, called from the top level \(program.tl:2\)")

    def test_out_of_memory(self):
        self.assertIn("  = help: let go of what is no longer needed (x = none), or work in smaller pieces\n",
                      run("-e", 'print(1)', env={"TL_FAIL_ALLOCATION": "2"}).err)


if __name__ == "__main__":
    unittest.main()
