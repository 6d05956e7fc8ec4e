"""Every exit is the same exit: whatever ends the program, memory comes back and the status tells."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from tl import ROOT, TL, run, run_code

STRICT = {"TL_MEMORY_CHECK": "strict"}
NO_LEAK = "no leak: every buffer was released"


def preloaded(folder, code):
    """Variables under which a program is run with this C code in it, from a library made in the folder."""
    library = Path(folder, "added.so")
    compiler = os.environ.get("CC") or shutil.which("cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, "-x", "c", "-"], input=code.encode(), check=True)
    return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0"}


class Exits(unittest.TestCase):
    every_device = True

    def ends(self, code, status, env=None):
        result = run_code(code, env={**STRICT, **(env or {})})
        self.assertEqual(result.status, status, result.err)
        self.assertIn(NO_LEAK, result.err)
        self.assertIn("change +0.00 MB", result.err)
        return result

    def test_normal_end(self):
        self.ends("let x = ones([1000])\nprint(sum(x))", 0)

    def test_run_time_error(self):
        result = self.ends("let x = ones([1000])\nlet y = x @ ones([len(args()) + 7, 7])", 1)
        self.assertIn("error[shape]", result.err)

    def test_error_deep_in_calls(self):
        self.ends("fn f(n, x) { let y = x + 1.0\n if n == 0 { panic(\"end\") }\n f(n - 1, y) }\nf(100, ones([64]))", 1)

    def test_until_interrupt(self):
        """Ctrl-C ends the call, with what it holds, and counts no more; SIGTERM ends the program all the same."""
        code = """
            for i in 0..2 {
                eprint(until_interrupt(fn() {
                    let x = ones([1000])
                    eprint("at work")
                    while sum(x) > 0 { x = x + 0.0 }
                }))
            }
            eprint(until_interrupt(fn() { 5 }), try { until_interrupt(fn() { error("mine") }) } catch e { e.message })
            until_interrupt(fn() { eprint("the last"); loop { } })"""
        process = subprocess.Popen([TL, "-e", code], stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **STRICT})
        self.addCleanup(process.kill)
        for expected in (["at work\n"], ["false\n", "at work\n"]):
            self.assertEqual([process.stderr.readline() for _ in expected], expected)
            process.send_signal(signal.SIGINT)
        self.assertEqual([process.stderr.readline() for _ in range(3)], ["false\n", "true mine\n", "the last\n"])
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)
        self.assertIn(NO_LEAK, errors)

    def test_failed_assert(self):
        self.ends("let x = ones([10])\nassert(sum(x) == 11, \"no\")", 1)

    def test_exit_in_a_drop(self):
        resource = ("struct R { n: int }\nimpl Drop for R { fn drop(self) { let y = ones([5])\n"
                    " print(\"drop\", self.n)\n if self.n == 5 { exit(5) } } }\n")
        result = self.ends(resource + "fn f() { let r = R { n: 5 }\n 1 }\nprint(f())\nprint(\"on\")", 5)
        self.assertEqual(result.out, "drop 5\n")
        result = self.ends(resource + "main { let other = R { n: 1 }\n for i in 4..9 { let r = R { n: i } }\n"
                           " try { print(\"on\") } catch e { print(\"caught\") } }", 5)
        self.assertEqual(result.out, "drop 4\ndrop 5\ndrop 1\n")
        # Variables of the top level go when everything else is done.
        result = self.ends(resource + "let r = R { n: 5 }\nprint(\"on\")", 5)
        self.assertEqual(result.out, "on\ndrop 5\n")
        self.ends(resource + "let r = R { n: 5 }\nerror(\"no\")", 5)
        self.ends(resource + "fn f() { let r = R { n: 5 }\n error(\"no\") }\nf()", 5)

    def test_exit_status(self):
        self.ends("let x = ones([10])\nfn f() { let y = ones([5])\n exit(7) }\nf()", 7)

    def test_syntax_error_runs_nothing(self):
        result = run_code("print(\"before\")\nlet x = (1 + \n")
        self.assertEqual((result.status, result.out), (1, ""))

    def test_usage(self):
        self.assertEqual(run("run").status, 2)
        self.assertEqual(run("run", "--no-such-option", "x.tl").status, 2)
        self.assertEqual(run("run", "--seed", "minus", "x.tl").status, 2)

    def signalled(self, code, number, status):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "loop.tl")
            path.write_text(code)
            process = subprocess.Popen([TL, "run", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env={**os.environ, **STRICT})
            self.addCleanup(process.kill)
            self.assertEqual(process.stderr.readline(), b"ready\n")
            time.sleep(0.1)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            self.assertEqual(process.returncode, status, err.decode())
            self.assertIn(NO_LEAK, err.decode())
            return out.decode()

    def test_interrupt_in_a_loop(self):
        self.signalled("let x = ones([100])\neprint(\"ready\")\nwhile true { x = x + 1.0 }", signal.SIGINT, 130)

    def test_interrupt_in_a_kernel(self):
        self.signalled("let x = ones([512, 512])\neprint(\"ready\")\nwhile true { x = x @ x }", signal.SIGINT, 130)

    def test_interrupt_in_lapack(self):
        """Decompositions that take minutes, and whose one statement is the last."""
        for code in ("svd(f64::randn([5000, 5000]))", "eigh(f64::eye(6000) + f64::ones([6000, 6000]))", "solve(x, f64::randn([5000, 20000]))"):
            with self.subTest(code):
                self.signalled(f"let x = f64::randn([5000, 5000])\neprint(\"ready\")\n{code}", signal.SIGINT, 130)

    def test_interrupt_in_other_long_work(self):
        for code in ("multinomial(rand([1000000]), 1000000)", "sorted(map(fn(x) { -x }, 0..5000000))"):
            with self.subTest(code):
                self.signalled(f"eprint(\"ready\")\n{code}", signal.SIGINT, 130)

    def test_interrupt_in_rules(self):
        """Recursion without an end, by short rounds, by one round that is long, and by strings that grow."""
        rules = (("int", "N(1, 0)\nN(Y, M + 1) <- N(X, M), E(X, Y)"),
                 ("int", "for i in 0..5000 { N(1, i) }\nN(Y, M + K * 5000) <- N(X, M), N(X, K), E(X, Y)"),
                 ("string", 'N(1, "")\nN(Y, T) <- N(X, R), E(X, Y), T = R + "b"'))
        for kind, rule in rules:
            with self.subTest(rule):
                self.signalled(f"relation E(x: int, y: int)\nE(1, 1)\nrelation N(x: int, n: {kind})\n{rule}\neprint(\"ready\")\nlen(N)",
                               signal.SIGINT, 130)

    def test_interrupt_in_sleep(self):
        self.signalled("let x = ones([512, 512])\neprint(\"ready\")\nsleep(60)", signal.SIGINT, 130)

    def test_interrupt_while_exit_leaves_a_learn_block(self):
        """exit ends the block, too: it is not reported as one that an interrupt has ended early."""
        said = self.signalled(
            "struct Slow { n: int }\nimpl Drop for Slow { fn drop(self) { eprint(\"ready\")\n sleep(60) } }\n"
            "let w = learnable(ones([2]))\nlearn {\n optimizer: sgd(lr: 0.01)\n epochs: 3\n report_every: 0\n"
            " for epoch in range(epochs) {\n  backward(sum(w ** 2))\n"
            "  if epoch == 1 { let slow = Slow { n: 1 }\n   exit(7) }\n }\n}\n", signal.SIGINT, 130)
        self.assertEqual(said, "")

    def test_interrupt_is_not_caught(self):
        self.signalled("eprint(\"ready\")\nwhile true { try { while true { } } catch e { } }", signal.SIGINT, 130)

    def test_terminate(self):
        self.signalled("let x = ones([100])\neprint(\"ready\")\nloop { x = x * 1.0 }", signal.SIGTERM, 143)

    def test_hangup(self):
        """The terminal went away; under nohup the program goes on."""
        code = "let x = ones([100])\neprint(\"ready\")\nloop { x = x * 1.0 }"
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        self.signalled(code, signal.SIGHUP, 129)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.signalled("let x = ones([100])\neprint(\"ready\")\nsleep(0.5)\nexit(7)", signal.SIGHUP, 7)


class Leaks(unittest.TestCase):
    every_device = True

    LEAK = "fn load() { __leak_buffer(ones([1024, 1024])) }\nload()\nload()\n"

    def test_a_leak_is_reported_and_purged(self):
        result = run_code(self.LEAK, env={"TL_TEST_LEAK": "1"})
        self.assertEqual(result.status, 0)
        self.assertIn("warning: device memory leaked: 2 buffers, 8.00 MB were still held after every variable was cleared", result.err)
        self.assertIn("float32[1024, 1024]  made at program.tl:1:", result.err)
        self.assertIn("in fn load, called from program.tl:2", result.err)
        self.assertIn("in fn load, called from program.tl:3", result.err)
        self.assertIn("purged: 8.00 MB returned to the device, 0.00 MB remain", result.err)

    def test_strict_changes_the_status(self):
        self.assertEqual(run_code(self.LEAK, env={"TL_TEST_LEAK": "1", **STRICT}).status, 3)

    def test_the_hole_is_closed_otherwise(self):
        result = run_code(self.LEAK)
        self.assertEqual(result.status, 1)
        self.assertIn("error[setting]: __leak_buffer works only when TL_TEST_LEAK=1 is set", result.err)


class Processes(unittest.TestCase):
    every_device = True

    def test_identical_bytes(self):
        """MEMORY (10): runs of one script agree to the byte, also with poisoned buffers."""
        code = "let x = randn([64, 64])\nfor i in 0..20 { x = softmax(x @ transpose(x)) }\nprint(x.to_list())"
        results = [run_code(code, options=["--seed", "5"], env={"TL_POISON": str(i % 2)}) for i in range(20)]
        self.assertEqual({r.status for r in results}, {0}, results[0].err)
        self.assertEqual(len({r.out for r in results}), 1)

    def test_starting_200_times(self):
        for _ in range(200):
            self.assertEqual(run("-e", "print(1)").out, "1\n")

    def test_no_thread_of_ours_outlives_main(self):
        # Says how many threads there are where libraries are finalized; one that was joined is listed a little longer.
        counter = r"""
        #include <dirent.h>
        #include <stdio.h>
        #include <unistd.h>
        static int count(void) {
            int found = 0;
            DIR *folder = opendir("/proc/self/task");
            while (readdir(folder)) found++;
            closedir(folder);
            return found - 2;
        }
        __attribute__((destructor)) static void say(void) {
            for (int i = 0; i < 100 && count() > 1; i++) usleep(10000);
            fprintf(stderr, "%d\n", count());
        }"""
        with tempfile.TemporaryDirectory() as folder:
            env = {"TL_DEVICE": "cpu", "TL_THREADS": "4", **preloaded(folder, counter)}
            shared = "let begun = clock()\nlet x = ones([400, 400])\n"
            alone, short, foretold = (run_code(code, env=env).err for code in (
                "print(1)", shared + "x = x @ x", shared + "while clock() - begun < 1.2 { x = tanh(x @ x) }"))
        self.assertEqual((short, foretold), (alone, alone))

    def test_eight_at_once_and_one_killed(self):
        code = "let x = rand([256, 256])\nfor i in 0..50 { x = softmax(x @ x) }\nprint(sum(x).shape)"
        command = [TL, "-e", code]
        killed = subprocess.Popen([TL, "-e", "while true { let x = ones([256, 256]) }"])
        others = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(8)]
        time.sleep(0.05)
        killed.kill()
        killed.wait()
        for process in others:
            out, err = process.communicate(timeout=120)
            self.assertEqual((process.returncode, out), (0, b"[]\n"), err.decode())

    def test_end_while_a_driver_compiles(self):
        """Work that nobody waits for is abandoned; a software driver may still be at its kernels, and what handlers of exit
        free is theirs, too. Here the last handler waits, so that the driver would come upon what is gone."""
        code = """let (x, kept) = (rand([64, 64]), list())
for z in list(x, x as float64, x as float16) {
    kept = kept + list(softmax(z), sort(z), cumsum(z, 0), norm(z), argmax(z, 1), var(z, 1), z @ z, tanh(sin(z)), sum(z, 0))
    kept = kept + list(layer_norm(z), rms_norm(z), log_softmax(z), median(z), prod(z, 1), argsort(z))
    let image = reshape(z, [1, 4, 32, 32])
    kept = kept + list(max_pool2d(image, 2), avg_pool2d(image, 2), exp(z) ** 0.3, log(z))
}
print("end")"""
        with tempfile.TemporaryDirectory() as folder:
            env = {"MESA_SHADER_CACHE_DISABLE": "true", **preloaded(folder, """
                #include <unistd.h>
                __attribute__((destructor)) static void last(void) { sleep(1); }""")}
            result = run_code(code, env=env)
        self.assertEqual((result.status, result.out), (0, "end\n"), result.err)


class CommandLine(unittest.TestCase):
    def test_ways_to_run(self):
        self.assertEqual(run("-e", "print(1 + 1)").out, "2\n")
        self.assertEqual(run("-", stdin=b"print(3)").out, "3\n")
        self.assertEqual(run("run", "-", stdin=b"print(4)").out, "4\n")

    def test_arguments(self):
        code = "print(args())"
        self.assertEqual(run_code(code, "a", "--seed", "b").out, '["a", "--seed", "b"]\n')
        self.assertEqual(run_code(code, "--seed", "1", "--", "--quiet").out, '["--quiet"]\n')

    def test_seed(self):
        code = "print(rand([4]).to_list())"
        first, second = (run_code(code, options=["--seed", "9"]).out for _ in range(2))
        self.assertEqual(first, second)
        self.assertEqual(run_code(code, env={"TL_SEED": "9"}).out, first)
        self.assertEqual(run_code(code, options=["--seed", "9"], env={"TL_SEED": "8"}).out, first)
        self.assertNotEqual(run_code(code).out, run_code(code).out)
        self.assertIn("seed", run_code(code, options=["--verbose"]).err)

    def test_malformed_settings_are_errors(self):
        for name, value in [("TL_BUFFER_MAX_MB", "lots"), ("TL_THREADS", "0"), ("TL_THREADS", "-1"),
                            ("TL_MEMORY_CHECK", "maybe"), ("TL_POISON", "x"), ("TL_DEVICE", "gpu9"),
                            ("TL_SEED", "1.5"), ("TL_DEVICE_MEMORY_MB", "")]:
            result = run("-e", "print(1)", env={name: value})
            self.assertEqual((result.status, result.out), (1, ""), f"{name}={value}")
            self.assertIn("error[setting]", result.err)
            self.assertIn(name, result.err)

    def test_devices(self):
        self.assertIn("cpu", run("devices").out)

    def test_help(self):
        self.assertIn("softmax(", run("help", "softmax").out)
        result = run("help", "sofmax")
        self.assertEqual(result.status, 1)
        self.assertIn("softmax", result.err)

    def test_help_for_every_word(self):
        keywords = re.findall(r'^KEYWORD\(\w+, "(\w+)"\)', (ROOT / "src/lexer/tokens.def").read_text(), re.M)
        dtypes = re.findall(r'^DTYPE\(\w+, +"(\w+)"', (ROOT / "src/catalog/dtypes.def").read_text(), re.M)
        types = "any int float bool string list tuple dict function range void model tokenizer KVCache TensorBuffer"
        self.assertGreater(min(len(keywords), len(dtypes)), 15)
        for word in [*keywords, *types.split(), "tensor", "struct"]:
            self.assertIn("in the language: ", run("help", word).out, word)
        for word in dtypes:
            self.assertIn(f"dtype: {word}, ", run("help", word).out)
        for word, size in [("uint8", "1 byte an element"), ("float16", "2 bytes an element"),
                           ("q4_0", "32 weights in a block of 18 bytes;")]:
            self.assertIn(f"dtype: {word}, {size}", run("help", word).out)

    def test_help_for_what_std_declares(self):
        shown = run("help", "accuracy").out
        self.assertEqual(shown.splitlines()[0], "fn accuracy(scores, labels) -> float")
        self.assertIn("\n    The share of rows", shown)
        self.assertTrue(shown.endswith('in: import "std/metrics.tl"\n'))
        self.assertIn("  fn forward(self, x)\n", run("help", "Linear").out)
        self.assertEqual(run("-e", 'help("accuracy")').out, shown)
        self.assertEqual(run("repl", stdin=b"?accuracy").out, shown)
        with tempfile.TemporaryDirectory() as folder:  # without std/ on disk
            alone = shutil.copy(TL, folder)
            result = subprocess.run([alone, "help", "accuracy"], cwd=folder, capture_output=True, text=True)
            self.assertEqual(result.stdout, shown)

    def test_an_unknown_name_of_std_names_its_file(self):
        """Of functions and structs alike, where no builtin has that name."""
        wrong, seen = [], 0
        for path in sorted((ROOT / "std").glob("*.tl")):
            for _, name in re.findall(r"^(fn|struct) (\w+)", path.read_text(), re.M):
                result = run("check", "-", stdin=f"print({name})\n".encode())
                if result.status == 0 or name == "open":  # `open` is said to be another language's
                    continue
                seen += 1
                files = re.findall(r'the standard library has it: import "(std/\w+\.tl)"', result.err)
                if not files or not re.search(rf"^(fn|struct) {name}\b", (ROOT / files[0]).read_text(), re.M):
                    wrong.append(name)
        self.assertEqual(wrong, [])
        self.assertGreater(seen, 100)
        with tempfile.TemporaryDirectory() as folder:  # without std/ on disk
            alone = shutil.copy(TL, folder)
            result = subprocess.run([alone, "-e", "summary(3)"], cwd=folder, capture_output=True, text=True)
            self.assertIn('has it: import "std/networks.tl"', result.stderr)

    def test_help_for_a_command(self):
        self.assertEqual(run("help", "fmt").out, run("fmt", "--help").out)
        shown = run("help", "devices").out
        self.assertIn("usage: tl devices\n", shown)
        self.assertIn("devices() -> list\n", shown)

    def test_help_for_variables(self):
        """Of all that the sources read; the man page and the reference have those for users."""
        rows = (ROOT / "src/catalog/variables.def").read_text()
        users = re.findall(r"^(?:VARIABLE|NUMBER)\((\w+),", rows, re.M)
        self.assertIn("TL_THREADS", users)
        for name in [*users, *re.findall(r"^FOR_TESTS\((\w+),", rows, re.M)]:
            self.assertTrue(run("help", name).out.startswith(name + "="), name)
        read = {name for path in (ROOT / "src").rglob("*.c")
                for name in re.findall(r'getenv\("((?:TL|NO)_\w+)"', path.read_text())}
        self.assertEqual({name for name in read if not name.startswith("TL_TEST")} - set(users), set())
        for name in users:
            self.assertIn(f"`{name}=", (ROOT / "docs/reference.md").read_text())
            self.assertIn(f".B {name}=", (ROOT / "docs/tl.1").read_text())
        self.assertIn("from 1 to 1024", run("help", "TL_THREADS").out)
        self.assertIn("did you mean TL_THREADS?", run("help", "TL_THREAD").err)

    def test_output_is_only_the_programs(self):
        result = run_code("let x = ones([3])", options=["--memory-check"])
        self.assertEqual(result.out, "")

    def in_one_place(self, *arguments, files=None):
        """What a reader of both outputs sees."""
        with tempfile.TemporaryDirectory() as folder:
            for name, code in (files or {}).items():
                Path(folder, name).write_text(code)
            return subprocess.run([TL, *arguments], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=120,
                                  env={**os.environ, "NO_COLOR": "1", "TL_MEMORY_CHECK": "0"}).stdout

    def in_order(self, text, *words):
        places = [text.find(word) for word in words]
        self.assertTrue(min(places) >= 0 and places == sorted(places), text)

    def test_messages_stand_where_the_program_was(self):
        code = """
            struct Bad { n: int }
            impl Drop for Bad { fn drop(self) { error("no end") } }
            print("<1>")
            eprint("<2>")
            print("<3>")
            memory_report()
            print("<4>")
            let wide = ones([3]) + ones([3, 1])
            print("<5>")
            Bad { n: 1 }
            print("<6>")
            tensor w: float32[1] learnable = [1.0]
            learn { objective: sum(w * w); optimizer: sgd(lr: 0.1); epochs: 1 }
            print("<7>")
            error("the end")"""
        text = self.in_one_place("run", "a.tl", files={"a.tl": code})
        self.in_order(text, "<1>", "<2>", "<3>", "memory check", "<4>", "warning:", "<5>", "in drop of Bad: no end", "<6>",
                      "epoch 1", "<7>", "error[error]: the end")

    def test_messages_stand_where_the_test_was(self):
        files = {"a.tl": 'test good { }\ntest bad { error("first") }\ntest after { }', "b.tl": "let =",
                 "c.tl": 'test never { }\nerror("second")'}
        text = self.in_one_place("test", "a.tl", "b.tl", "c.tl", files=files)
        self.in_order(text, "ok     good", "FAILED bad", "error[error]: first", "ok     after", "error[syntax]", "FAILED b.tl",
                      "FAILED c.tl", "error[error]: second", "passed, 3 failed")

    # --- output that cannot be written

    ENDS = [["run", "a.tl"], ["test", "a.tl"], ["bench", "a.tl"], ["-e", "print(1)"], ["-e", "print(1); exit(0)"], [],
            ["repl"], ["fmt"], ["fmt", "--check", "b.tl"], ["check", "--json", "a.tl"], ["devices"], ["version"],
            ["help"], ["help", "sum"], ["help", "--reference"], ["help", "--man"], ["run", "--help"], ["lsp"]]
    REQUEST = b'Content-Length: 58\r\n\r\n{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'

    def end_with(self, arguments, stdout, **more):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.tl").write_text('print(1)\ntest one { }\nbench two { }\n')
            Path(folder, "b.tl").write_text("x=1")
            stdin = self.REQUEST if arguments == ["lsp"] else b"print(1)\n"
            return subprocess.run([TL, *arguments], cwd=folder, input=stdin, stdout=stdout, stderr=subprocess.PIPE,
                                  timeout=120, env={**os.environ, "NO_COLOR": "1", "TL_MEMORY_CHECK": "0"}, **more)

    def test_a_full_disk_is_a_failure(self):
        for arguments in self.ENDS:
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                result = self.end_with(arguments, full)
                self.assertEqual(result.returncode, 1)
                self.assertIn(b"error[io]: cannot write the output: No space left on device\n", result.stderr)
        with open("/dev/full", "wb") as full:
            self.assertEqual(self.end_with(["-e", "print(1); exit(7)"], full).returncode, 7)

    def test_a_failed_print_can_be_caught(self):
        code = 'try { for i in 0..100000 { print(i) } } catch e { eprint("caught {}", e.message); exit(0) }'
        with open("/dev/full", "wb") as full:
            result = self.end_with(["-e", code], full)
        self.assertIn(b"caught cannot write the output: No space left on device\n", result.stderr)

    def test_a_reader_that_has_gone_is_silent(self):
        """Also where the parent process ignores the signal."""
        for handler in (signal.SIG_DFL, signal.SIG_IGN):
            for arguments in [*self.ENDS, ["-e", "loop { print(1) }"]]:
                with self.subTest(arguments):
                    reading, writing = os.pipe()
                    os.close(reading)
                    try:
                        result = self.end_with(arguments, writing, restore_signals=False,
                                               preexec_fn=lambda: signal.signal(signal.SIGPIPE, handler))
                    finally:
                        os.close(writing)
                    self.assertEqual((result.returncode, result.stderr), (-signal.SIGPIPE, b""))

    def test_every_command_has_help(self):
        """And a line in the overview, which ends with the options of `run`."""
        rows = (ROOT / "src/main/main.c").read_text()
        names = re.findall(r'^    \{"([\w-]+)", "tl \1\b', rows, re.M)
        self.assertTrue({"run", "models", "notebook-kernel", "version"} <= set(names))
        lines = []
        for name in names:
            result = run(name, "--help")
            self.assertEqual((result.status, result.err, run(name, "-h").out), (0, "", result.out))
            usage, summary, *_ = result.out.splitlines()
            self.assertTrue(usage.startswith(f"usage: tl {name}"), result.out)
            lines.append(f"  {usage.removeprefix('usage: '):<44} {summary}")
        _, commands, options, *_ = run("help").out.split("\n\n")
        self.assertEqual(commands.splitlines(), lines)
        self.assertEqual(options, run("run", "--help").out.split("\n\n")[1].rstrip())
        shown = run("check", "--json", "--help").out
        self.assertIn("--json", shown)
        self.assertNotIn("--seed", shown)
        self.assertIn("--filter TEXT", run("test", "--help").out)
        self.assertEqual(run_code("print(args())", "--help").out, '["--help"]\n')


if __name__ == "__main__":
    unittest.main()
