"""--memory-limit: what does not fit on the device is moved out and comes back; the numbers stay the same.

`python3 tests/cli/test_memory_limit.py --programs N` runs N generated programs at random limits."""
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from memory_programs import Generator
from test_foretell import foretold, measured, most_of
from tl import ROOT, TL, fixture, need_no_sanitizer, run, run_code

# Other devices move to the host's memory.
ON_DISK = "--device cpu --memory-limit 4MB"
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


def lent(result):
    found = re.search(r", ([\d.]+) MB in \d+ parts? used where they were,", result.err)
    return float(found[1]) if found else 0


def computed_again(result):
    found = re.search(r", ([\d.]+) MB in \d+ parts? computed again, [\d.]+ s of moving$", result.err, re.M)
    return float(found[1]) if found else 0


LAYERS = """seed(3)
let x = randn([256, 64])
let shift = randn([64])
let ws = [learnable(randn([64, 64]) * 0.2) for i in 0..12]
fn net(x) {
    let h = x
    for w in ws { h = BODY + h }
    h
}
learn {
    optimizer: adam(lr: 0.001), epochs: 3, progress: false
    for epoch in range(epochs) {
        let loss = mean(net(x) ** 2)
        CHANGE
        backward(loss)
        print(loss)
    }
}
print([sum(w as float64) for w in ws])
"""


# Computes for minutes, which takes no time to foretell, and then takes more than it may.
LATE = """let x = ones([512, 512])
let y = x
for i in 0..40000 { y = tanh(y @ x) }
print("computed")
let kept = []
for i in 0..64 { kept.push(zeros([1024, 512])) }
print("made")
"""


def children(parent):
    """The processes that a process has started."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            found.append(int(name))
    return found


def ended_children(parent):
    """Whether a process that this one has started has ended: such a one had page faults (proc(5), cminflt)."""
    return int(Path("/proc", str(parent), "stat").read_text().rpartition(")")[2].split()[8]) > 0


def wait_for(condition, seconds=120):
    """What the condition was when it held, if ever: the next moment it may not hold any more."""
    end = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.02)
    return found


# The long operations, each next to 768 KB that are read again after it.
LARGEST = {
    "reduction": "let x = randn([512, 1024])\nprint(sum(sum(x, 0)) as float, mean(x) as float, sum(std(x, 1)) as float)",
    "softmax": "let x = randn([512, 1024])\nprint(sum(softmax(x, 1)[:, 0]) as float, sum(log_softmax(x, 0)[3]) as float)",
    "attention": "let (q, k, v) = (learnable(randn([1, 128, 8, 64])), randn([1, 128, 8, 64]), randn([1, 128, 8, 64]))\n"
                 "backward(mean(attention(q, k, v, causal: true) ** 2))\nprint(sum(grad(q) ** 2) as float)",
    "cross entropy": "let w = learnable(randn([64, 2048]))\nlet x = randn([256, 64])\nlet y = randint(0, 2048, [256])\n"
                     "backward(cross_entropy(x @ w, y))\nprint(sum(grad(w) ** 2) as float)",
    "optimizer": "let w = learnable(randn([512, 512]))\nlet x = randn([64, 512])\n"
                 "let r = learn { objective: mean((x @ w) ** 2), optimizer: adam(lr: 0.01), epochs: 2, progress: false }\nprint(r.losses, sum(w) as float)",
    "elementwise": "let (x, y) = (randn([512, 512]), randn([512, 512]))\n"
                   "print(sum(exp(-x * x + y) * tanh(y - x) / (1.0 + abs(x * y)) + sqrt(abs(x)) - log(1.0 + y * y)) as float)",
    "product": "print(sum(kept[0] @ randn([256, 512])) as float)",
    "sort": "let x = randn([512, 512])\nprint(sum(sort(x, 1)[:, 3]) as float, sum(cumsum(x, 0)) as float)",
}


class Largest(unittest.TestCase):
    """A script completes where its largest operation fits, and where that takes what is lent to it."""
    every_device = True

    def test_the_long_operations(self):
        for name, code in LARGEST.items():
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "program.tl").write_text("seed(1)\nlet kept = [randn([256, 256]) for i in 0..3]\n" + code +
                                                      "\nlet t = 0.0\nfor k in kept { t += sum(k) as float }\nprint(t)\n")
                free = run("run", "program.tl", cwd=folder)
                found = foretold("program.tl", cwd=folder)
                for most in (found["operation"]["bytes"] + 65536, found["tensor"]["bytes"] + 65536, found["tensor"]["bytes"] // 2):
                    with self.subTest(name, limit=most):
                        result = run("run", "--memory-check", "--memory-limit", most, "program.tl", cwd=folder)
                        self.assertEqual((result.status, result.out), (0, free.out), result.err)
                        self.assertGreater(most_of(found), most)
                        self.assertIsNotNone(moved(result) or lent(result), result.err)


class NextToTheRun(unittest.TestCase):
    """Programs that run for a quarter of a second are foretold by a process that soon has idle priority."""

    def setUp(self):
        need_no_sanitizer("needs the whole address space")
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        os.mkdir(Path(self.folder.name, "tmp"))
        self.env = {**os.environ, "NO_COLOR": "1", "TMPDIR": str(Path(self.folder.name, "tmp")), "TL_TEST_DEVICE_MB": "64"}

    def start(self, code, *options, blocks="unlimited", **more):
        Path(self.folder.name, "program.tl").write_text(code)
        words = ["bash", "-c", f"ulimit -f {blocks}; exec {TL} run {' '.join(options)} program.tl"]
        return subprocess.Popen(words, cwd=self.folder.name, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**self.env, **more})

    def told(self, code, *options, **more):
        process = self.start(code, *options, blocks="20480", TL_TEST_HOST_MB="20", **more)
        out, err = process.communicate()
        self.assertEqual(os.listdir(self.env["TMPDIR"]), [])
        return process.returncode, out, err

    def test_what_cannot_fit_is_told_long_before_it_is_taken(self):
        status, out, err = self.told(LATE)
        self.assertEqual((status, out), (1, ""), err)
        self.assertRegex(err, r"^error\[memory\]: the program holds 13\d\.\d+ MB at program\.tl:6, \S+ gives it 64\.00 MB, and "
                         r"there is room for 20\.00 MB of the rest\n --> program\.tl:3:")
        self.assertIn("hold less at once, or make tensors in parts; this was foretold while the program ran\n", err)

    def test_a_tensor_that_is_too_large_is_told_so_too(self):
        status, out, err = self.told(LATE.replace("1024, 512", "5120, 5120"))
        self.assertEqual((status, out), (1, ""), err)
        self.assertRegex(err, r"the program makes a tensor of 100\.00 MB at program\.tl:6, and \S+ has 64\.00 MB\n")

    def test_a_program_without_end_is_told_as_soon(self):
        endless = LATE.replace("for i in 0..64", "while true")
        status, out, err = self.told(endless)
        self.assertEqual((status, out), (1, ""), err)
        # Eight times the 64 MB here and the 20 MB elsewhere.
        self.assertRegex(err, r"^error\[memory\]: the program holds more than 67\d\.\d+ MB at program\.tl:6, \S+ gives it 64\.00 MB, and "
                         r"there is room for 20\.00 MB of the rest\n --> program\.tl:3:")
        status, out, err = self.told(endless, "--memory-limit", "32MB")
        self.assertEqual((status, out), (1, ""), err)
        self.assertRegex(err, r"the program holds more than 4\d\d\.00 MB here, --memory-limit is 32\.00 MB")
        self.assertIn("; nothing has run\n", err)
    def test_it_is_an_error_of_memory_that_can_be_caught(self):
        caught = "let kept = []\ntry {\n" + LATE.replace("let kept", "kept") + "} catch e { print(e.kind) }\n"
        self.assertEqual(self.told(caught)[:2], (0, "memory\n"))

    def test_what_a_run_decides_is_not_foretold(self):
        # The fallback would take too much.
        code = 'let n = int(input("", "64"))\n' + LATE.replace("0..64", "0..n").replace("40000", "400")
        process = self.start(code, blocks="20480", TL_TEST_HOST_MB="20")
        time.sleep(0.3)
        self.assertEqual(process.communicate("2\n")[0], "computed\nmade\n")

    def test_nothing_is_done_twice(self):
        code = ('let line = input()\nwrite_file("log.txt", line, append: true)\nlet x = ones([300, 300])\nlet begun = clock()\n'
                'while clock() - begun < 2.5 { x = tanh(x @ x) }\nprint(input(), read_file("log.txt"))\n')
        process = self.start(code)
        process.stdin.write("one\n")
        process.stdin.flush()
        self.assertTrue(wait_for(lambda: children(process.pid) or ended_children(process.pid)))
        out, err = process.communicate("two\n")
        self.assertEqual((process.returncode, out, err), (0, "two one\n", ""))
        self.assertEqual(Path(self.folder.name, "log.txt").read_text(), "one")

    def test_it_ends_with_the_run_whatever_ends_that(self):
        # Foretelling this takes long, too.
        code = "let x = ones([4])\nfor i in 0..2000000000 { x = x + 1.0 }\n"
        for number in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM):
            process = self.start(code)
            self.assertTrue(wait_for(lambda: children(process.pid)))
            child = children(process.pid)[0]
            process.send_signal(number)
            process.communicate()
            self.assertIn(process.returncode, (-signal.SIGKILL, 128 + number))
            self.assertTrue(wait_for(lambda: not Path("/proc", str(child)).exists()), number)
            self.assertEqual(os.listdir(self.env["TMPDIR"]), [])

    def test_files_put_aside_go_when_foretelling_is_interrupted(self):
        code = 'write_file("a.txt", "one")\nlet x = ones([4])\nfor i in 0..2000000000 { x = x + 1.0 }\n'
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([TL, "check", "--memory", "-e", code], env=self.env, cwd=self.folder.name,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertTrue(wait_for(lambda: os.listdir(self.env["TMPDIR"])))
            process.send_signal(number)
            process.communicate()
            self.assertEqual((process.returncode, os.listdir(self.env["TMPDIR"])), (128 + number, []))
            self.assertFalse(Path(self.folder.name, "a.txt").exists())

    def test_it_works_when_nothing_else_does(self):
        process = self.start("let x = ones([4])\nfor i in 0..2000000000 { x = x + 1.0 }\n")
        self.assertTrue(wait_for(lambda: children(process.pid)))
        child = children(process.pid)[0]
        for thread in map(int, os.listdir(f"/proc/{child}/task")):
            self.assertTrue(wait_for(lambda: os.sched_getscheduler(thread) == os.SCHED_IDLE))
            self.assertEqual(os.getpriority(os.PRIO_PROCESS, thread), 19)
        process.kill()
        process.communicate()

    def test_programs_without_tensors_and_short_ones_have_none(self):
        process = self.start("let begun = clock()\nwhile clock() - begun < 0.8 { }\n")
        time.sleep(0.7)
        self.assertEqual(children(process.pid), [])
        process.communicate()
        begun, seen = time.monotonic(), []
        process = self.start("let x = ones([3])\nlet begun = clock()\nwhile clock() - begun < 0.1 { }\n")
        while process.poll() is None:
            seen += children(process.pid)
        process.communicate()
        if time.monotonic() - begun < 0.25:  # else it was not short
            self.assertEqual(seen, [])

    def test_a_program_that_a_pipe_holds_runs(self):
        for limit in ([], ["--memory-limit", "8MB"]):
            result = subprocess.run(["bash", "-c", f"{TL} run {' '.join(limit)} <(echo 'print(sum(ones([9])))')"],
                                    capture_output=True, text=True, env=self.env)
            self.assertEqual((result.returncode, result.stdout), (0, "9.0\n"), result.stderr)


class Limited(unittest.TestCase):
    every_device = True

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

    def test_a_gpu_moves_without_waiting(self):
        """What leaves and comes back is copied in the order of the queue, and memory is handed over."""
        if "vulkan" not in os.environ.get("TL_DEVICE", ""):
            self.skipTest("the CPU computes as it is told")
        code = IDLE.replace("print(", "let waits = memory().waits\nprint(waits < 4, ")
        free, result = run_code(code), self.limited(code, "4MB")
        self.assertEqual((result.status, result.out), (0, free.out), result.err)
        self.assertGreater(moved(result)[1], 12)
        self.assertTrue(result.out.startswith("true "), result.out)

    def test_what_is_only_read_leaves_a_gpu_once(self):
        """Copies of what has come back are used again, unless it was written to: by a kernel, by the host, in place."""
        if "vulkan" not in os.environ.get("TL_DEVICE", ""):
            self.skipTest("tensors of the CPU move to a file")
        reads = "for i in 0..4 { for part in parts { total = total + part } }\n"
        begin = "let parts = [rand([256, 1024], seed: i) for i in 0..8]\nlet total = zeros([256, 1024])\n"
        end = "print(sum(total as float64))\n"
        for writes in ("", "for part in parts { part[3] = 2.0 }\n", "for part in parts { part[5, 7] = total[0, 0] }\n",
                       "for part in parts { part[1, 2] = 5.0 }\n",
                       "for i in 0..8 { parts[i] = relu(parts[i] - 0.5) }\n"):
            code = begin + reads + writes + reads + writes + reads + end
            free, result = run_code(code), self.limited(code, "4MB")
            self.assertEqual((result.status, result.out), (0, free.out), (writes, result.err))
            _, out, _, back = moved(result)
            self.assertGreater(back, 3 * out if writes == "" else out, writes)

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

    def test_what_one_operation_needs_may_be_larger_than_the_limit(self):
        code = 'let x = rand([1024, 1024], seed: 1)\nlet y = softmax(exp(x) + x, 1) @ x\nprint(sum(y as float64))\n'
        free = run_code(code)
        for limit in ("8MB", "3MB", "64KB"):
            result = self.limited(code, limit)
            self.assertEqual((result.status, result.out), (0, free.out), result.err)
            self.assertGreaterEqual(lent(result), 4)
            self.assertLessEqual(float(re.search(r"^peak +([\d.]+) MB", result.err, re.M)[1]), moved(result)[0])
        self.assertEqual(lent(self.limited(code, "64MB")), 0)

    def test_every_kind_of_operation_works_on_more_than_the_limit(self):
        kinds = {
            "reductions": "print(sum(x as float64), mean(x), max(x), argmax(x) as int, std(x), sum(sum(x, 1) as float64))",
            "softmax": "print(sum(softmax(x, 1) as float64), sum(log_softmax(x, 0) as float64))",
            "chain": "print(sum(relu(exp(-x) * 2.0 + x) / (x + 3.0)))",
            "cross entropy": "print(cross_entropy(x, randint(0, 256, [256], seed: 2)))",
            "attention": "let q = reshape(x, [1, 4, 128, 128])\nprint(sum(attention(q, q, q) as float64))",
            "optimizer": ("let w = learnable(x * 1.0)\nlearn { objective: mean(w ** 2), optimizer: adamw(lr: 0.01), epochs: 2, "
                          "progress: false }\nprint(sum(w as float64))"),
            "order": "print(sort(x, 1)[3, 3], cumsum(x, 1)[5, 5], topk(x, 3)[0][1, 1])",
            "movement": "print(sum(x[::-1] as float64), sum(concat(x, x, 0) as float64), sum(transpose(x) * 1.0))"}
        for kind, use in kinds.items():
            code = f"let x = randn([256, 256], seed: 1)\n{use}\n"
            free = run_code(code)
            self.assertEqual(free.status, 0, free.err)
            result = self.limited(code, "64KB")
            self.assertEqual((result.status, result.out), (0, free.out), (kind, result.err))
            self.assertGreaterEqual(lent(result), 0.25, kind)
            self.assertLessEqual(float(re.search(r"^peak +([\d.]+) MB", result.err, re.M)[1]), 0.065, kind)

    def test_a_model_may_be_larger_than_the_limit(self):
        path = fixture(self, "models/stories260K.gguf")
        code = f'let m = load_model("{path}")\nprint(generate(m, "Once", 8, temperature: 0.0), sum(m["token_embd.weight"] as float32))\n'
        free = run_code(code)
        for limit in ("512KB", "100KB"):
            result = self.limited(code, limit)
            self.assertEqual((result.status, result.out), (0, free.out), result.err)
            peak = float(re.search(r"^peak +([\d.]+) MB", result.err, re.M)[1])
            self.assertLessEqual(peak, 0.5 if limit == "512KB" else 0.1)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.tl").write_text(code)
            result = subprocess.run(["bash", "-c", f"ulimit -f 100; exec {TL} run {ON_DISK.replace('4MB', '512KB')} program.tl"],
                                    cwd=folder, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn(f"error[memory]: {path} needs 1.12 MB for its tensors, but cpu has 0.50 MB\n", result.stderr)
        self.assertIn("help: there is room for 0.10 MB of the rest where it would be moved to\n", result.stderr)

    def test_large_tensors_are_written_and_read_where_they_are(self):
        code = ('let x = tensor([i * 0.5 for i in 0..40000])\nprint(to_list(x)[39999], x[7] as float, memory().away > 0)\n'
                'x[8] = 1.0\nlet y = sort(x)\nprint(y[39999] as float, argmax(x) as int)\n')
        result = self.limited(code, "32KB", env={"TL_POISON": "1"})
        self.assertEqual((result.status, result.out), (0, "19999.5 3.5 true\n19999.5 39999\n"), result.err)

    def test_a_disk_without_room_is_said_before_the_run(self):
        code = 'print("begun")\nlet x = ones([1024, 1024])\nlet y = exp(x) + x\n'
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.tl").write_text(code)
            result = subprocess.run(["bash", "-c", f"ulimit -f 1024; exec {TL} run {ON_DISK} program.tl"],
                                    cwd=folder, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("error[memory]: the program holds 8.00 MB here, --memory-limit is 4.00 MB, and there is room for "
                      "1.00 MB of the rest\n --> program.tl:3:9\n", result.stderr)
        self.assertIn("raise the limit, or let TMPDIR name a folder with more room; nothing has run", result.stderr)

    def test_it_is_said_whatever_comes_after_the_first_unknown_number(self):
        code = ('print("begun")\nlet kept = [ones([512, 512]) for i in 0..8]\nif sum(rand([300, 300])) > 1.0 { print(1) }\n')
        for program, out in ((code, ""), ("if sum(rand([300, 300])) > 1.0 { print(1) }\n" + code, "1\nbegun\n")):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "program.tl").write_text(program)
                result = subprocess.run(["bash", "-c", f"ulimit -f 1024; exec {TL} run {ON_DISK} program.tl"],
                                        cwd=folder, capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stdout), (1, out), result.stderr)
            self.assertEqual("nothing has run" in result.stderr, out == "")

    def test_a_disk_that_is_full_is_an_error_of_the_run(self):
        # How large the list becomes, only the run knows.
        code = ('let kept = []\nlet n = 1\nif sum(rand([300, 300])) > -1e9 { n = 40 }\n'
                'for i in 0..n { kept.push(ones([256, 1024])) }\nprint(len(kept))\n')
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.tl").write_text(code)
            result = subprocess.run(["bash", "-c", f"ulimit -f 8192; exec {TL} run {ON_DISK} program.tl"],
                                    cwd=folder, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("error[memory]: ", result.stderr)
        self.assertIn("the limit is 4.00 MB", result.stderr)

    def test_a_host_that_is_full_is_an_error(self):
        """Where a device has memory of its own."""
        if "vulkan" not in os.environ.get("TL_DEVICE", ""):
            self.skipTest("tensors of the CPU move to a file")
        limits = {"TL_TEST_HOST_MB": "8"}
        known = "let kept = [ones([256, 1024]) for i in 0..16]\nprint(len(kept))\n"
        result = self.limited(known, "4MB", env=limits)
        self.assertEqual((result.status, result.out), (1, ""))
        self.assertIn("error[memory]: the program holds 16.00 MB here, --memory-limit is 4.00 MB, and there is room for "
                      "8.00 MB of the rest", result.err)
        unknown = "if sum(rand([300, 300])) < -1e9 { print(1) }\nprint(\"begun\")\n" + known
        result = self.limited(unknown, "4MB", env=limits)
        self.assertEqual((result.status, result.out), (1, "begun\n"), result.err)
        self.assertRegex(result.err, r"error\[memory\]: vulkan:\d has no memory for float32\[256, 1024\]: .* the limit is 4\.00 MB")
        self.assertEqual(self.limited(unknown, "4MB").status, 0)

    def test_a_driver_that_locks_little_leaves_ordinary_memory(self):
        """Of what leaves a GPU, 2 MB are locked; the rest is copied, and never used by kernels where it is."""
        if "vulkan" not in os.environ.get("TL_DEVICE", ""):
            self.skipTest("tensors of the CPU move to a file")
        free, limits = run_code(IDLE), {"TL_TEST_LOCKED_MB": "2", "TL_POISON": "1"}
        result = self.limited(IDLE, "4MB", env=limits)
        self.assertEqual((result.status, result.out), (0, free.out), result.err)
        reason = r"^ +([\d.]+) MB of it to ordinary memory of the host, more slowly: the driver refused page-locked memory$"
        unlocked = float(re.search(reason, result.err, re.M)[1])
        self.assertGreater(unlocked, 8)
        self.assertLess(unlocked, moved(result)[1])
        self.assertIn("no leak", result.err)
        self.assertNotIn("page-locked", self.limited(IDLE, "4MB").err)
        result = self.limited(IDLE, "1536KB", env=limits)
        self.assertEqual((result.status, result.out), (1, ""))
        self.assertIn("error[memory]: ", result.err)

    def test_the_input_is_for_the_run(self):
        code = 'print(input() + "!", sum(ones([1000])))\nprint(read_file("/dev/stdin"))\n'
        result = run_code(code, options=["--memory-limit", "64KB"], stdin=b"one\n")
        self.assertEqual((result.status, result.out), (0, "one! 1000.0\n\n"), result.err)

    def test_learn_says_first_what_the_program_needs(self):
        code = ("let w = learnable(ones([1024, 64]))\nlearn {\n    objective: mean((w * 3.0) ** 2), epochs: 2\n"
                "    optimizer: sgd(lr: 0.1)\n}\n")
        peak = json.loads(run("check", "--memory", "--json", "-e", code).out)["peak"]
        lines = run_code(code, options=["--memory-limit", "4MB"]).out.splitlines()
        self.assertRegex(lines[0], rf"^needs {peak / 2**20:.2f} MB of 4.00 MB at program.tl:3$")
        self.assertIn("epoch", lines[1] + lines[-1])
        self.assertNotIn("needs", run_code(code).out)
        self.assertNotIn("needs", run_code(code, options=["--memory-limit", "4MB", "--quiet"]).out)
        large = run_code(code.replace("1024, 64", "2048, 1024"), env={"TL_TEST_DEVICE_MB": "60"})  # an eighth before it trains
        self.assertRegex(large.out, r"^needs \d\d\.\d\d MB of 60\.00 MB at program\.tl:3\n")
        twice = code + "if sum(rand([300, 300])) > 1.0 {\n" + code.replace("let w", "w") + "}\n"
        out = run_code(twice, options=["--memory-limit", "4MB"]).out
        self.assertEqual(out.count("needs"), 1)
        self.assertRegex(out, r"^needs .* \(an estimate\)\n")

    def test_what_takes_too_long_to_foretell_needs_at_least_what_was_seen(self):
        code = ("let w = learnable(ones([1024, 64]))\nlearn {\n    objective: mean((w * 3.0) ** 2), epochs: 2\n"
                "    optimizer: sgd(lr: 0.1)\n}\nwhile true { }\n")
        lines = run_code(code, options=["--memory-limit", "4MB", "--time-limit", "4s"]).out.splitlines()
        self.assertRegex(lines[0], r"^needs at least [\d.]+ MB of 4.00 MB at program.tl:3$")

    def test_cheap_results_of_the_tape_are_computed_again(self):
        for body in ("tanh(relu(h @ w) * 1.5 + shift)", "softmax(h @ w, 1) * layer_norm(h, shift)",
                     "transpose(tanh(transpose(h @ w, 0, 1)), 0, 1)[:, ::-1]", "reshape(relu(reshape(h @ w, [64, -1])), [-1, 64])",
                     "(gelu(h) as float64 @ (w as float64)) as float32"):
            code = LAYERS.replace("BODY", body).replace("CHANGE", "")
            free = run_code(code)
            self.assertEqual(free.status, 0, free.err)
            for limit in ("1MB", "400KB"):
                result = self.limited(code, limit, env={"TL_POISON": "1"})
                self.assertEqual((result.status, result.out), (0, free.out), (body, result.err))
                self.assertGreater(computed_again(result), 0.1, (body, result.err))

    def test_what_is_computed_again_reads_what_it_has_read_before(self):
        # Parameters change after the results that backward reads were made of them, and forgotten.
        code = LAYERS.replace("BODY", "tanh(h @ w + w[0])")
        code = code.replace("CHANGE", "for w in ws { set_values(w, ones([64, 64]) * 0.01) }\n        x[0] = 2.0")
        free = run_code(code)
        self.assertEqual(free.status, 0, free.err)
        result = self.limited(code, "1MB")
        self.assertEqual((result.status, result.out), (0, free.out), result.err)
        self.assertGreater(computed_again(result), 0.1, result.err)

    def test_what_is_computed_again_keeps_what_others_let_go(self):
        # The sums cannot be computed again, and nothing but `kept` holds what tanh reads.
        code = LAYERS.replace("BODY", "{ let p = cumsum(h, 1) + shift; kept.push(p); sigmoid(tanh(p) @ w) }")
        code = code.replace("CHANGE", "for w in ws { kept.pop() }").replace("fn net", "let kept = []\nfn net")
        free = run_code(code)
        self.assertEqual(free.status, 0, free.err)
        result = self.limited(code, "1MB")
        self.assertEqual((result.status, result.out), (0, free.out), result.err)
        self.assertGreater(computed_again(result), 0.1, result.err)

    def test_values(self):
        for word in ("", "none", "-1", "0", "2 gallons"):
            result = run("run", "--memory-limit", word, "-e", "print(1)")
            self.assertEqual((result.status, result.out), (2, ""))
            self.assertIn(f'--memory-limit needs a size such as 500MB or 2GB, but it is "{word}"', result.err)
        result = run("run", "-e", "print(1)", env={"TL_MEMORY_LIMIT": "much"})
        self.assertIn('TL_MEMORY_LIMIT is "much", which is not a size', result.err)
        result = run("run", "-e", "print(sum(ones([1000])))", env={"TL_MEMORY_LIMIT": "64KB"})
        self.assertEqual((result.status, result.out), (0, "1000.0\n"), result.err)

    def test_a_transformer_with_parts_of_its_memory(self):
        code = (ROOT / "examples/21_transformer_equations.tl").read_text()
        code = code.replace("    learn {", "    let trained = learn {").replace("epochs: 20", "epochs: 2")
        code = re.sub(r"    let right = (?s:.*)", "    print(trained.losses, written)\n}\n", code)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "t.tl").write_text(code)
            peak, free = measured("--quiet", "t.tl", cwd=folder)
            self.assertEqual(free.status, 0, free.err)
            for part in (2, 4, 8, 64):
                result = run("run", "--quiet", "--memory-check", "--memory-limit", peak // part, "t.tl", cwd=folder)
                self.assertEqual((result.status, result.out), (0, free.out), (part, result.err[-2000:]))
                self.assertIsNotNone(moved(result))

    def by_default(self, code, megabytes, blocks=None):
        """As if the device had so much memory; `blocks`: 1024 bytes a file may have."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.tl").write_text(code)
            limit = f"ulimit -f {blocks}; " if blocks else ""
            return subprocess.run(["bash", "-c", f"{limit}exec {TL} run --memory-check=strict program.tl"], cwd=folder,
                                  env={**os.environ, "NO_COLOR": "1", "TL_TEST_DEVICE_MB": str(megabytes)},
                                  capture_output=True, text=True)

    def test_the_size_of_the_device_is_the_limit_by_default(self):
        free = run_code(IDLE)
        result = self.by_default(IDLE, 5)
        self.assertEqual((result.returncode, result.stdout), (0, free.out), result.stderr)
        self.assertRegex(result.stderr, r"limit: 5\.00 MB · [\d.]+ MB moved out")

    def test_a_program_that_cannot_fit_is_told_while_it_is_small(self):
        code = ('print("begun")\nlet kept = []\nfor i in 0..64 { kept.push(zeros([512, 512])) }\nprint("made")\n'
                "let y = kept[0] + 1.0\n")
        result = self.by_default(code, 16, blocks=20480)
        if "vulkan" not in os.environ.get("TL_DEVICE", ""):  # it moves to the host's memory
            self.assertEqual((result.returncode, result.stdout), (1, "begun\n"), result.stderr)
            self.assertIn("error[memory]: the program holds 65.00 MB at program.tl:5, cpu gives it 16.00 MB, and there is "
                          "room for 20.00 MB of the rest\n --> program.tl:3:", result.stderr)
            self.assertIn("let TMPDIR name a folder with more room, or hold less at once; this was foretold when it took "
                          "an eighth of the device\n", result.stderr)
            peak = float(re.search(r"^peak +([\d.]+) MB", result.stderr, re.M)[1])
            self.assertLessEqual(peak, 2)
        self.assertEqual(self.by_default(code, 16).returncode, 0)

    def test_a_tensor_that_is_larger_than_the_device_is_told_before_it_is_made(self):
        code = "let x = ones([1024, 1024])\nlet y = exp(x)\nprint(sum(y), sum(ones([8192, 1024])))\n"
        result = self.by_default(code, 16)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"error\[memory\]: the program makes a tensor of 32\.00 MB at program\.tl:3, and "
                         r"\S+ has 16\.00 MB\n --> program\.tl:1:9\n")
        self.assertIn("help: make it in parts; this was foretold", result.stderr)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.tl").write_text(code)
            result = run("run", "--memory-limit", "8MB", "program.tl", cwd=folder, env={"TL_TEST_DEVICE_MB": "16"})
        self.assertEqual((result.status, result.out), (1, ""))
        self.assertRegex(result.err, r"error\[memory\]: the program makes a tensor of 32\.00 MB here, and \S+ has 16\.00 MB\n"
                         r" --> program\.tl:3:")
        self.assertIn("make it in parts; nothing has run", result.err)

    def test_a_tensor_that_cannot_be_is_an_error_that_a_program_may_handle(self):
        code = 'try { zeros([10000000, 1000000]) } catch e { print(e.kind) }\nprint(sum(ones([8])))\n'
        result = self.limited(code, "4MB")
        self.assertEqual((result.status, result.out), (0, "memory\n8.0\n"), result.err)

    def test_a_program_of_the_standard_input_runs_as_it_is(self):
        result = run("run", "-", stdin=b"print(sum(ones([1024, 4096])))", env={"TL_TEST_DEVICE_MB": "20"})
        self.assertEqual((result.status, result.out), (0, "4194304.0\n"), result.err)

    def test_weights_that_stay_leave_pieces_less_room(self):
        code = """seed(1)
save_model({w: randn([32, 32])}, "m.gguf", dtype: q8_0)
let w = get_tensor(load_model("m.gguf"), "w")
let v = linear(randn([5, 32]), w)
let x = learnable(randn([60, 40]))
let weight = learnable(randn([40]))
backward(sum(rms_norm(x, weight) ** 2))
print(sum(grad(x) as float64))
"""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "p.tl").write_text(code)
            free = run("run", "--quiet", "p.tl", cwd=folder)
            for limit in range(11000, 14000, 300):
                result = run("run", "--quiet", "--memory-check=strict", "--memory-limit", limit, "p.tl", cwd=folder)
                self.assertEqual((result.status, result.out), (0, free.out), (limit, result.err))

    COUNT = 20

    def test_generated_programs_at_random_limits(self):
        drawn = random.Random(SEED)
        for number in range(SEED, SEED + self.COUNT):
            code = Generator(number).program()
            with self.subTest(seed=number), tempfile.TemporaryDirectory() as folder:
                Path(folder, "p.tl").write_text(code)
                peak, free = measured("--quiet", "p.tl", cwd=folder)
                limit = max(int(peak / drawn.uniform(1, 20)), 4096)
                result = run("run", "--quiet", "--memory-check=strict", "--memory-limit", limit, "p.tl", cwd=folder)
                self.assertEqual((result.status, result.out), (0, free.out), (limit, code, result.err[-2000:]))


if __name__ == "__main__":
    if "--programs" in sys.argv:
        at = sys.argv.index("--programs")
        Limited.COUNT = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
