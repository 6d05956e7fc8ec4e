"""Programs that one does not trust: limits of memory, time and files."""
import os
import resource
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from tl import TL, InFolder, fixture, need_no_sanitizer, need_sandbox, run, run_code

LEARN = """
let w = learnable(zeros([2]))
learn {
    epochs: 1000000000, optimizer: sgd(lr: 0.1), progress: false
    objective: sum((w - 1.0) ** 2)
}
"""

TENSORS = """let parts = [ones([1024, 1024]) for i in 0..40]
let sum = zeros([1024, 1024])
for part in parts { sum = sum + part }
print(sum[9, 9] as float)
"""


class TimeLimit(unittest.TestCase):
    def limited(self, code, words):
        began = time.monotonic()
        result = run_code(code, options=["--time-limit", "300ms"])
        self.assertEqual(result.status, 1, result.err)
        self.assertIn("the time limit of 0.3 s was over here", result.err)
        self.assertIn(words, result.err)
        self.assertLess(time.monotonic() - began, 20)
        return result

    def test_a_loop_ends(self):
        self.limited("let i = 0\nwhile true { i += 1 }\n", "program.tl:2:1")

    def test_a_kernel_ends(self):
        self.limited("let x = randn([3000, 3000])\nprint(len(svd(x)))\n", "program.tl:")

    def test_a_handler_does_not_catch_it(self):
        self.limited("while true {\n    try { while true {} } catch e { print(1) }\n}\n", "program.tl:2")

    def test_training_ends(self):
        self.limited(LEARN, "program.tl:3:1")

    def test_in_time(self):
        for limit in ("1m", "60", "0.5h"):
            result = run_code("print(1)", options=[f"--time-limit={limit}"])
            self.assertEqual((result.status, result.out), (0, "1\n"), result.err)

    def test_the_shortest(self):
        result = run_code("while true {}", options=["--time-limit=1ms"])
        self.assertEqual(result.status, 1)
        self.assertIn("the time limit of 0.001 s was over here", result.err)

    def test_a_drop_that_does_not_end_is_ended(self):
        result = run_code("struct S { x: int }\nimpl Drop for S { fn drop(self) { while true {} } }\n"
                          "let s = S { x: 1 }\nwhile true {}\n", options=["--time-limit", "200ms"])
        self.assertEqual(result.status, 1)
        self.assertIn("the program did not end when it was interrupted", result.err)


class HostLimit(unittest.TestCase):
    OPTIONS = ["--host-limit", "100MB"]

    def test_tensors_move_to_a_file(self):
        need_no_sanitizer("takes memory that no limit counts")
        result = run_code(TENSORS, options=["--host-limit", "60MB", "--memory-check"], env={"TL_DEVICE": "cpu"})
        self.assertEqual((result.status, result.out), (0, "40.0\n"), result.err)
        self.assertRegex(result.err, r"MB moved out in \d+ parts")

    def test_growth_is_an_error_and_nothing_is_lost(self):
        need_no_sanitizer("needs the whole address space")
        result = run_code('let s = "x"\ntry { while true { s = s + s } } catch e { print(e.kind, len(s) > 1000) }\n'
                          'print("on")\nlet l = []\nwhile true { l.push("abc" + str(len(l))) }\n', options=self.OPTIONS)
        self.assertEqual((result.status, result.out), (1, "memory true\non\n"), result.err)
        self.assertIn("program.tl:5", result.err)
        self.assertIn("the process may use 104857600 bytes (--host-limit); let go of what is no longer needed "
                      "(x = none), or work in smaller pieces", result.err)

    def test_products_and_decompositions_have_their_work_areas(self):
        for threads, more in (("1", []), ("64", []), ("64", ["--sandbox", "."])):
            result = run_code("let x = randn([600, 600])\nprint(sum(x @ x) != 0.5, len(svd(x)))",
                              options=self.OPTIONS + more, env={"TL_THREADS": threads})
            self.assertEqual((result.status, result.out), (0, "true 3\n"), result.err)

    def test_a_process_without_room_for_decompositions_says_so(self):
        need_no_sanitizer("needs the whole address space")
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (450 << 20, 450 << 20))
        process = subprocess.run([TL, "--device", "cpu", "-e", "print(svd(randn([600, 600])))"],
                                 preexec_fn=limit, capture_output=True, timeout=60,
                                 env={**os.environ, "TL_THREADS": "2"})
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"out of memory: the system refused 512 MB for the work areas of decompositions on 2 threads",
                      process.stderr)


    def test_a_full_address_space_is_an_error_that_can_be_caught(self):
        """What the process keeps in reserve is enough to take back what was begun, and to go on."""
        need_no_sanitizer("needs the whole address space")
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (450 << 20, 450 << 20))
        code = ('let kept = []\n'
                'try { loop { kept.push([str(len(kept)) + "abcdefghijklmnopqrstuvwxyz"]) } }\n'
                'catch e {\n    kept = none\n    print(e.kind, e.message.split(":")[0])\n}\nprint("on")\n')
        process = subprocess.run([TL, "--device", "cpu", "-e", code], preexec_fn=limit, capture_output=True, timeout=60)
        self.assertEqual((process.returncode, process.stdout), (0, b"memory out of memory\non\n"), process.stderr)


class DiskLimit(InFolder):
    options = ("--disk-limit", "1MB")

    def taken(self):
        """What the disk has for the files that the program made, in blocks of 4096 bytes and one for each name."""
        sizes = [path.stat().st_size for path in self.folder.iterdir() if path.name != "program.tl"]
        return sum((-(-size // 4096) + 1) * 4096 for size in sizes)

    def test_files_together_take_no_more(self):
        whole = 1 << 20
        self.fails('for i in 0..1000 { write_file(f"{i}.txt", "x" * 5000) }', "cannot write 85.txt: File too large (--disk-limit leaves 4096 bytes)")
        self.assertEqual((self.taken(), len(os.listdir(self.folder))), (85 * 12288, 86))
        self.assertLessEqual(self.taken(), whole)

    def test_empty_files_and_folders_take_some(self):
        self.fails('for i in 0..10000 { write_file(f"{i}.txt", "") }', "cannot write 256.txt: File too large (--disk-limit leaves 0 bytes)")
        self.assertEqual(len(os.listdir(self.folder)), 257)

    def test_one_file_is_never_larger(self):
        self.fails('write_file("a.txt", "x" * 2000000)', 'cannot write "a.txt": File too large (--disk-limit leaves 1048576 bytes)')
        self.fails('save({ w: zeros([600, 600]) }, "a.safetensors")', "cannot write a.safetensors: File too large (--disk-limit leaves")
        self.assertEqual(os.listdir(self.folder), ["program.tl"])

    def test_what_is_replaced_or_appended_counts_once(self):
        self.prints('for i in 0..100 { write_file("a.txt", "x" * 500000) }\nprint(len(read_file("a.txt")))', "500000")
        self.fails('write_file("a.txt", "x" * 500000)\nfor i in 0..100 { write_file("b.txt", "x" * 100000, append: true) }',
                   'cannot write "b.txt": File too large (--disk-limit leaves 40960 bytes)')
        self.assertEqual(sorted((path.name, path.stat().st_size) for path in self.folder.glob("*.txt")), [("a.txt", 500000), ("b.txt", 1000000)])

    def test_training_keeps_its_checkpoint(self):
        code = ('let w = learnable(ones([300, 300]))\nlet r = learn { objective: sum(w ** 2), optimizer: sgd(lr: 0.1), epochs: 9, '
                'progress: false, save: "w.safetensors", every: 1 }\nprint(len(r.losses))')
        self.prints(code, "9")

    def test_what_a_memory_limit_moves_out_counts_while_it_is_away(self):
        need_no_sanitizer("counts memory of its own")
        code = 'let parts = []\nfor i in 0..8 { parts.push(ones([100, 1000]) * i) }\nprint(sum(parts[3]))\nparts = none\n'
        limits = ["--device", "cpu", "--memory-limit", "1MB"]
        for size, status in (("4MB", 0), ("1MB", 1)):
            result = run_code(code, options=["--disk-limit", size, *limits])
            self.assertEqual(result.status, status, result.err)
        self.assertIn("--memory-limit is 1.00 MB, and there is room for 1.00 MB of the rest", result.err)

    def test_files_that_are_put_aside_do_not_count(self):
        self.options = ("--disk-limit", "1MB", "--memory-limit", "100MB")
        self.prints('write_file("a.txt", "x" * 700000)\nprint(sum(ones([10])))', "10.0")


class Sandbox(unittest.TestCase):
    def confined(self, code, folder):
        return run("run", "--sandbox", folder, "-", stdin=code.encode(), env={"SECRET": "s", "TL_SEED": "1"})

    def test_files_of_the_folder_only(self):
        need_sandbox()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            Path(other, "secret.txt").write_text("secret")
            code = f"""
fn attempt(f) {{ try {{ f() }} catch e {{ print(e.message) }} }}
write_file("{folder}/in.txt", "inside")
print(read_file("{folder}/in.txt"))
attempt(fn() {{ read_file("{other}/secret.txt") }})
attempt(fn() {{ write_file("{other}/new.txt", "x") }})
attempt(fn() {{ load_model("{other}/secret.txt") }})
attempt(fn() {{ list_dir("{other}") }})
print(env("SECRET"), env("TL_SEED"))
print(len(svd(randn([50, 50]))))
"""
            result = self.confined(code, folder)
            outside = f"Permission denied (the program may touch only files in {folder}, by --sandbox)"
            self.assertEqual(result.status, 0, result.err)
            lines = result.out.splitlines()
            self.assertEqual(lines[0], "inside")
            for line, word in zip(lines[1:5], ("read", "write", "open", "list")):
                self.assertIn(word, line)
                self.assertIn(outside, line)
            self.assertEqual(lines[5:], ["none 1", "3"])
            self.assertFalse(Path(other, "new.txt").exists())

    def test_what_is_moved_out_stays_in_the_folder(self):
        need_sandbox()
        with tempfile.TemporaryDirectory() as folder:
            result = run("run", "--sandbox", folder, "--memory-limit", "4MB", "--memory-check", "-",
                         stdin=TENSORS.encode(), env={"TMPDIR": "/nowhere"})
            self.assertEqual((result.status, result.out), (0, "40.0\n"), result.err)
            self.assertRegex(result.err, r"MB moved out in \d+ parts")
            self.assertEqual(os.listdir(folder), [])

    def test_what_is_read_before_the_run_is_confined_too(self):
        need_sandbox()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            Path(other, "secret.tl").write_text("let secret = 5\n")
            Path(folder, "inside.tl").write_text("let shown = 6\n")
            program = Path(other, "program.tl")
            begin = f'import "std/layers.tl"\nimport "{folder}/inside.tl"\n'
            program.write_text(begin + f'print(shown, exists("{other}/secret.tl"), exists("{folder}/inside.tl"))\n')
            for limit in ((), ("--memory-limit", "1MB")):
                result = run("run", "--sandbox", folder, *limit, program)
                self.assertEqual((result.status, result.out), (0, "6 false true\n"), result.err)
                for path in (f"{other}/secret.tl", "secret.tl"):
                    Path(other, "thief.tl").write_text(f'import "{path}"\nprint(secret)\n')
                    result = run("run", "--sandbox", folder, *limit, Path(other, "thief.tl"), env={"TL_PATH": other})
                    self.assertEqual((result.status, result.out), (1, ""))
                    self.assertIn(f"cannot open {other}/secret.tl: Permission denied", result.err)
            Path(other, "blocks.tl").write_text(f'test "a" {{ assert(not exists("{other}/secret.tl")) }}\n')
            result = run("test", "--sandbox", folder, Path(other, "blocks.tl"))
            self.assertEqual(result.status, 0, result.out + result.err)

    def test_what_only_libraries_need_is_not_read(self):
        need_sandbox()
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "inside").mkdir()
            Path(folder, "inside", "a.txt").write_text("a")
            Path(folder, "link").symlink_to("/usr/lib")
            code = f"""
fn attempt(f) {{ try {{ f(); print("read") }} catch e {{ print("touch only files in" in e.message) }} }}
attempt(fn() {{ read_file("/proc/cpuinfo") }})
attempt(fn() {{ list_dir("/usr/lib") }})
attempt(fn() {{ list_dir("{folder}/link") }})
attempt(fn() {{ load_model("/usr/lib/os-release") }})
attempt(fn() {{ read_csv("{folder}/link/os-release") }})
attempt(fn() {{ image_folder("/usr/lib", size: [4, 4]) }})
print(exists("/usr/lib"), list_dir("{folder}/inside"), read_file("{folder}/inside/../inside/a.txt"), read_file("/dev/stdin"))
"""
            Path(folder, "p.tl").write_text(code)
            result = run("run", "--sandbox", folder, f"{folder}/p.tl", stdin=b"in")
            self.assertEqual((result.status, result.out.splitlines()), (0, ["true"] * 6 + ['false ["a.txt"] a in']), result.err)
            result = run("run", "--sandbox", folder, "-e", 'import "/usr/lib/os-release"')
            self.assertIn("cannot open /usr/lib/os-release: Permission denied", result.err)

    def test_what_lies_outside_is_not_told(self):
        """The same words for what is there, what is not, and what is in a folder that is not."""
        need_sandbox()
        calls = ('read_file(P)', 'load_model(P)', 'load_image(P)', 'read_csv(P)', 'list_dir(P)', 'image_folder(P)', 'read_sql(P, "select 1")',
                 'text_lines(P)', 'write_file(P, "x")', 'write_file(P, "x", append: true)', 'save({"a": ones([2])}, P)', 'plot([1.0, 2.0], P + ".png")')
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            Path(other, "there").mkdir()
            Path(other, "there", "it.npz").write_text("secret")
            Path(folder, "link").symlink_to(other)
            code = "fn attempt(f) { try { f()\nprint(\"done\") } catch e { print(e.message) } }\n"
            paths = [f"{start}/{name}" for start in (other, "link", f"../{Path(other).name}") for name in ("there/it.npz", "there/no.npz", "no/it.npz")]
            code += "".join(f"attempt(fn() {{ {call.replace('P', repr(path).replace(chr(39), chr(34)))} }})\n" for call in calls for path in paths)
            code += "".join(f'print(exists("{path}"))\n' for path in paths) + 'attempt(fn() { read_file("no.txt") })\nattempt(fn() { write_file("no/a.txt", "x") })\n'
            Path(folder, "p.tl").write_text(code)
            result = run("run", "--sandbox", ".", "p.tl", cwd=folder)
            lines = result.out.splitlines()
            self.assertEqual((result.status, len(lines)), (0, (len(calls) + 1) * len(paths) + 2), result.err)
            for number, call in enumerate(calls):
                for path in paths:
                    line = lines.pop(0)
                    self.assertIn("Permission denied (the program may touch only files in ., by --sandbox)", line, call + path)
                    self.assertIn(path, line)
            self.assertEqual(lines[:len(paths)], ["false"] * len(paths))
            for line in lines[len(paths):]:
                self.assertIn("No such file or directory", line)
            self.assertEqual((os.listdir(Path(other, "there")), os.listdir(other)), (["it.npz"], ["there"]))

    def test_memory_that_foretelling_takes_is_limited(self):
        need_no_sanitizer("needs the whole address space")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "p.tl").write_text('let l = []\nwhile true { l.push("abcdefgh" + str(len(l))) }\n')
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
            result = run("run", "--host-limit", "50MB", "--memory-limit", "1MB", "p.tl", cwd=folder)
            self.assertIn("error[memory]: out of memory", result.err)
            self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, max(before, 250 << 10) + 1)

    def test_a_sandbox_makes_no_connections(self):
        need_sandbox()
        path = fixture(self, "models/mini-f16.gguf")
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "m.gguf").write_bytes(path.read_bytes())
            result = run("run", "--sandbox", folder, "--time-limit", "20s", "-e",
                         f'serve(load_model("{folder}/m.gguf"), port: 0)')
        self.assertEqual(result.status, 1)
        self.assertIn("cannot listen on 127.0.0.1 port 0: Permission denied", result.err)

    def test_a_session_is_confined(self):
        need_sandbox()
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            Path(other, "secret.txt").write_text("secret")
            result = run("repl", "--sandbox", folder, stdin=f'read_file("{other}/secret.txt")\n'.encode())
            self.assertNotIn("secret\n", result.out)
            self.assertIn("Permission denied", result.err)
        for option in (["--host-limit", "1GB"], ["--disk-limit", "1GB"], ["--time-limit", "1s"]):
            result = run("repl", *option)
            self.assertEqual(result.status, 2)
            self.assertIn("the REPL takes --device", result.err)

    def test_a_profile_lies_in_the_folder(self):
        need_sandbox()
        with tempfile.TemporaryDirectory() as folder:
            result = run("profile", "--sandbox", folder, "-e", "print(sum(ones([3])))")
            self.assertEqual((result.status, result.out), (0, "3.0\n"), result.err)
            self.assertEqual(sorted(os.listdir(folder)), ["program.profile.html", "program.trace.json"])

    def test_a_folder_that_is_not_there(self):
        result = self.confined("print(1)", "/does/not/exist")
        self.assertEqual((result.status, result.out), (1, ""))
        self.assertIn("--sandbox: /does/not/exist is not a folder", result.err)


class Malformed(unittest.TestCase):
    def test_values(self):
        for option, value, words in (("--host-limit", "much", "a size such as 500MB or 2GB"),
                                     ("--host-limit", "-1", "a size such as"), ("--host-limit", "1PB", "a size such as"),
                                     ("--disk-limit", "lots", "a size such as 500MB or 2GB"),
                                     ("--time-limit", "0", "a time such as 500ms, 10s or 2m"),
                                     ("--time-limit", "nan", "a time such as"), ("--time-limit", "5d", "a time such as"),
                                     ("--time-limit", "0.9ms", "a time such as"), ("--time-limit", "0.0009", "a time such as")):
            result = run(option, value, "-e", "print(1)")
            self.assertEqual((result.status, result.out), (2, ""))
            self.assertIn(f'{option} needs {words}', result.err)
            self.assertIn(f'but it is "{value}"', result.err)


if __name__ == "__main__":
    unittest.main()
