"""kill -9 at any moment leaves every file as it was or as it was to be; so does a full disk.

`python3 tests/cli/test_kill.py --kills N` kills each program N times."""
import fcntl
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

from test_generate import MODEL
from tl import ROOT, TL, run

KILLS = 4
SEED = int(os.environ.get("TL_TEST_SEED", 1))

# Every number of a state is the same, so that a mixture of two is seen.
SAVES = """
let i = 0
while true {{
    save_model({{"a": full([300, 40], i), "b": full([7], i), "n": i}}, "state.{format}")
    i += 1
}}
"""
SAVED = """
let m = load("state.{format}")
assert(all(m["a"] == m["b"][0]) and all(m["b"] == m["b"][0]))
print("whole")
"""
WRITES = """
let i = 0
while true {
    write_file("state.txt", join([str(i) for j in 0..20000], " "))
    i += 1
}
"""
WRITTEN = """
let words = read_file("state.txt").trim().split(" ")
assert(len(words) == 20000 and all([w == words[0] for w in words]))
print("whole")
"""
FACTS = """
relation Number(n: int, round: int)
let round = 0
while true {
    for n in 0..300 { Number(n, round) }
    save_facts("state.tlf")
    round += 1
}
"""
FACTS_SAVED = """
relation Number(n: int, round: int)
load_facts("state.tlf")
assert(len(Number) > 0 and len(Number) % 300 == 0)
print("whole")
"""
TRAINING = """
seed(1)
let x = randn([64, 8])
let y = sum(x, 1, true)
let w = learnable(zeros([8, 1]))
let v = learnable(ones([1, 1]))
let r = learn {
    objective: mean((dropout(x @ w, 0.1) @ v - y) ** 2), optimizer: adam(lr: 0.01),
    batch: 16 of (x, y), epochs: 150, progress: false,
    save: "run.safetensors", every: 1, resume: if exists("run.safetensors") { "run.safetensors" } else { none }
}
print(list(sum(w as float64 * 1e6), sum(v as float64 * 1e6)), len(r.losses))
"""

MODEL_SAVED = MODEL.replace('"llama.context_length": 24', '"llama.context_length": 400') + 'save_model(net, "m.gguf", meta: meta)\n'
TEXT = """
fn text(i) {
    let (word, left) = ("", i)
    for j in 0..7 {
        word = word + list("a", "b", "c")[left % 3]
        left = floor_div(left, 3)
    }
    join([word for j in 0..30], "")
}
let m = load_model("m.gguf")
"""
PROMPTS = TEXT + """
let i = 0
while true {
    generate(m, text(i % 40), 2, cache: "kept")
    i += 1
}
"""
PROMPTS_KEPT = TEXT + """
for i in 0..40 {
    assert_eq(generate(m, text(i), 9, temperature: 0, cache: "kept"), generate(m, text(i), 9, temperature: 0))
}
print("whole")
"""
PROFILED = "let x = ones([10])\nfor i in 0..COUNT { x = x * 0.5 }\n"


class Killed(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(SEED)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, **programs):
        for name, code in programs.items():
            Path(self.folder.name, f"{name}.tl").write_text(code)

    def kill(self, program, low, high, command="run"):
        """Starts a program and kills it after a while; whether it had not ended before."""
        with subprocess.Popen([TL, command, "--quiet", program], cwd=self.folder.name, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as process:
            time.sleep(self.random.uniform(low, high))
            ended = process.poll()
            process.send_signal(signal.SIGKILL)
            if ended is not None:
                self.assertEqual(ended, 0, process.stderr.read().decode())
            return ended is None

    def survives(self, make, use, file):
        self.write(make=make, use=use)
        for _ in range(KILLS):
            self.kill("make.tl", 0.05, 0.5)
            if not Path(self.folder.name, file).exists():
                continue  # it was killed before the first was there
            result = run("run", "use.tl", cwd=self.folder.name)
            self.assertEqual((result.status, result.out), (0, "whole\n"), result.err)

    def test_saved_models(self):
        for ending in ("safetensors", "npz", "gguf"):
            with self.subTest(format=ending):
                self.survives(SAVES.format(format=ending), SAVED.format(format=ending), f"state.{ending}")

    def test_other_files(self):
        """One call each that writes FILE of a number, and one that reads it back."""
        files = {
            "s.npy": ("save(full([400, 60], i), FILE)", "all(load(FILE) == load(FILE)[0, 0])"),
            "s.csv": ("write_csv(FILE, [[i, i] for j in 0..3000])", "(fn(r) { len(r) == 3000 and all([x == r[0] for x in r]) })(read_csv(FILE))"),
            "i.png": ("save_image(full([3, 200, 200], i % 7 / 7.0), FILE)", "load_image(FILE).shape[1] == 200"),
            "i.jpg": ("save_image(full([3, 200, 200], i % 7 / 7.0), FILE)", "load_image(FILE).shape[1] == 200"),
            "i.bmp": ("save_image(full([3, 200, 200], i % 7 / 7.0), FILE)", "load_image(FILE).shape[1] == 200"),
            "a.wav": ("save_audio(full([1, 30000], i % 7 / 7.0), FILE, 8000)", "load_audio(FILE)[0].shape[1] == 30000"),
            "p.svg": ("plot(rand([500]), FILE)", 'read_file(FILE).trim().ends_with("</svg>")'),
            "p.png": ("plot(rand([500]), FILE)", "load_image(FILE).shape[1] > 0")}
        for name, (write, read) in files.items():
            with self.subTest(name):
                make = "let i = 0\nwhile true {\n    WRITE\n    i += 1\n}\n".replace("WRITE", write)
                use = f'assert({read})\nprint("whole")\n'
                self.survives(make.replace("FILE", f'"{name}"'), use.replace("FILE", f'"{name}"'), name)

    def test_texts(self):
        self.survives(WRITES, WRITTEN, "state.txt")

    def test_facts(self):
        self.survives(FACTS, FACTS_SAVED, "state.tlf")

    def test_kept_prompts(self):
        self.write(model=MODEL_SAVED)
        result = run("run", "model.tl", cwd=self.folder.name)
        self.assertEqual(result.status, 0, result.err)
        self.survives(PROMPTS, PROMPTS_KEPT, "kept")

    def test_profiles(self):
        self.write(p=PROFILED.replace("COUNT", "40"))
        for turn in range(KILLS):
            self.kill("p.tl", 0.0, 0.1, "profile")
            for name, end in (("p.profile.html", "</html>"), ("p.trace.json", "}")):
                if Path(self.folder.name, name).exists():
                    text = Path(self.folder.name, name).read_text()
                    self.assertEqual(text.rstrip()[-len(end):], end, turn)
                    if name.endswith("json"):
                        json.loads(text)

    def test_training_goes_on_as_if_nothing_had_been(self):
        self.write(train=TRAINING)
        whole = run("run", "--quiet", "train.tl", cwd=self.folder.name)
        self.assertEqual(whole.status, 0, whole.err)
        for _ in range(KILLS):
            Path(self.folder.name, "run.safetensors").unlink(missing_ok=True)
            kills = 0
            while kills < 5 and self.kill("train.tl", 0.02, 0.25):
                kills += 1
            result = run("run", "--quiet", "train.tl", cwd=self.folder.name)
            self.assertEqual((result.status, result.out), (0, whole.out), result.err)


class TwoWriters(unittest.TestCase):
    FILES = {"s.txt": ('write_file("s.txt", join([str(i) for j in 0..20000], " "))', WRITTEN.replace("state.txt", "s.txt")),
             "s.safetensors": ('save_model({"a": full([300, 40], i), "b": full([7], i)}, "s.safetensors")',
                               SAVED.format(format="safetensors").replace("state", "s")),
             "s.npz": ('save_model({"a": full([300, 40], i), "b": full([7], i)}, "s.npz")', SAVED.format(format="npz").replace("state", "s"))}

    def test_programs_that_write_one_file_take_turns(self):
        for name, (write, read) in self.FILES.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                Path(folder, "w.tl").write_text(f"let i = 0\nlet begun = clock()\nwhile clock() - begun < 2.5 {{\n    {write}\n    i += 1\n}}\n")
                Path(folder, "r.tl").write_text("let begun = clock()\nwhile not exists(FILE) { }\nwhile clock() - begun < 2.0 {\n".replace(
                    "FILE", f'"{name}"') + read.replace('print("whole")', "") + "}\n")
                writers = [subprocess.Popen([TL, "run", "w.tl"], cwd=folder, stderr=subprocess.PIPE, text=True) for _ in range(3)]
                result = run("run", "r.tl", cwd=folder)
                self.assertEqual(result.status, 0, result.err)
                for writer in writers:
                    self.assertEqual((writer.communicate()[1], writer.returncode), ("", 0))
                self.assertEqual(sorted(os.listdir(folder)), ["r.tl", name, "w.tl"])

    def test_who_waits_for_a_turn_can_be_interrupted(self):
        for number, status in ((signal.SIGINT, 130), (None, 0)):
            with tempfile.TemporaryDirectory() as folder, open(Path(folder, "s.txt"), "w") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                process = subprocess.Popen([TL, "run", "-e", 'eprint("begun")\nwrite_file("s.txt", "all")'], cwd=folder,
                                           stderr=subprocess.PIPE)
                self.assertEqual(process.stderr.readline(), b"begun\n")
                time.sleep(0.5)
                self.assertIsNone(process.poll())
                process.send_signal(number) if number else fcntl.flock(held, fcntl.LOCK_UN)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, status)
                self.assertEqual(Path(folder, "s.txt").read_text(), "all")


class OneDoor(unittest.TestCase):
    # The door; what appends or writes where nothing of the user's is: logs, caches, files without a name; fmt, which
    # replaces a file with the same care; text that write_file adds, and the path that the door gives it.
    OTHERS = {"base/file_replace.c", "base/output.c", "device/spill.c", "device/vulkan/disk_cache.c",
              "device/vulkan/validation.c", "library/builtin_file.c", "main/fmt.c", "repl/input.c"}
    # The path that the door gives goes to a library.
    THROUGH = {"data/audio_file.c", "model/npz.c"}

    def test_every_file_is_written_through_one_door(self):
        writes = re.compile(r'fopen\([^;]*"[wa]|O_CREAT|O_TMPFILE|mkostemp|mkstemp|\brename\(|\bfopen\([^;]*mode|SFM_WRITE|ZIP_CREATE')
        found = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.c") if writes.search(path.read_text())}
        nowhere = {"main/foretell.c", "main/ranks.c"}  # /dev/null
        self.assertEqual(found - self.OTHERS - nowhere, self.THROUGH)
        for name in self.THROUGH:
            self.assertRegex((ROOT / "src" / name).read_text(), r"return file_(keep|replace)\(|file_keep\(path, write_")


def writers():
    """By the name of FILE: a program that writes it small, and one that writes it large."""
    training = ('let w = learnable(ones([100000]))\nlearn { objective: sum(w ** 2), optimizer: sgd(lr: 0.1), '
                'epochs: 3, progress: false, save: "FILE" }')
    made = {
        "s.npy": ("save(ones([3]), FILE)", "save(ones([100000]), FILE)"),
        "s.csv": ("write_csv(FILE, [[1, 2]])", "write_csv(FILE, [[i, 2] for i in 0..20000])"),
        "a.txt": ('write_file(FILE, "old")', 'write_file(FILE, join(["more" for i in 0..50000], ""), append: true)'),
        "s.safetensors": ("save({a: ones([3])}, FILE)", training)}
    for ending in ("svg", "png"):
        made[f"p.{ending}"] = ("plot([1, 2], FILE)", "plot(rand([9000]), FILE, width: 3000, height: 3000)")
    for ending in ("png", "jpg", "webp", "bmp", "ppm"):
        made[f"i.{ending}"] = ("save_image(rand([3, 4, 4]), FILE)", "save_image(rand([3, 400, 400]), FILE)")
    for ending in ("wav", "flac", "ogg"):
        made[f"a.{ending}"] = ("save_audio(rand([1, 80]), FILE, 8000)", "save_audio(rand([1, 400000]), FILE, 8000)")
    return made


class FullDisk(unittest.TestCase):
    """Stood for by a limit on the size of files, which refuses to write as a full disk does."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def refused(self, before, after, use):
        folder = self.folder.name
        result = run("run", "-e", before, cwd=folder)
        self.assertEqual(result.status, 0, result.err)
        names = sorted(os.listdir(folder))
        code = Path(folder + ".tl")
        code.write_text(after)
        self.addCleanup(code.unlink, missing_ok=True)
        limited = subprocess.run(["bash", "-c", f"ulimit -f 64; exec {TL} run {code}"], cwd=folder,
                                 capture_output=True)
        self.assertEqual(limited.returncode, 1, limited.stderr.decode())
        self.assertIn("error[io]", limited.stderr.decode())
        self.assertEqual(sorted(os.listdir(folder)), names)
        result = run("run", "-e", use, cwd=folder)
        self.assertEqual((result.status, result.out), (0, "old\n"), result.err)

    def test_what_was_there_stays(self):
        for ending in ("safetensors", "npz", "gguf"):
            with self.subTest(format=ending):
                self.refused(f'save_model({{"a": ones([3])}}, "s.{ending}")',
                             f'save_model({{"a": ones([100000])}}, "s.{ending}")',
                             f'assert(all(load("s.{ending}")["a"] == 1.0))\nprint("old")')
        self.refused('write_file("s.txt", "small")', 'write_file("s.txt", join(["large" for i in 0..100000], ""))',
                     'assert_eq(read_file("s.txt"), "small")\nprint("old")')
        facts = "relation N(n: int)\n"
        self.refused(facts + 'N(1)\nsave_facts("s.tlf")', facts + 'for n in 0..50000 { N(n) }\nsave_facts("s.tlf")',
                     facts + 'load_facts("s.tlf")\nassert(len(N) == 1)\nprint("old")')

    def test_every_writer(self):
        for name, (before, after) in writers().items():
            with self.subTest(name):
                path = Path(self.folder.name, name)
                result = run("run", "-e", before.replace("FILE", f'"{path}"'))
                self.assertEqual(result.status, 0, result.err)
                contents, names = path.read_bytes(), sorted(os.listdir(self.folder.name))
                code = Path(self.folder.name + ".tl")
                self.addCleanup(code.unlink, missing_ok=True)
                code.write_text(after.replace('"FILE"', "FILE").replace("FILE", f'"{path}"'))
                limited = subprocess.run(["bash", "-c", f"ulimit -f 64; exec {TL} run --quiet {code}"], capture_output=True, text=True)
                self.assertEqual(limited.returncode, 1, limited.stderr)
                self.assertIn(str(path), limited.stderr.splitlines()[0])
                self.assertIn("File too large", limited.stderr.splitlines()[0])
                self.assertEqual((path.read_bytes(), sorted(os.listdir(self.folder.name))), (contents, names))

    def test_commands(self):
        folder = Path(self.folder.name)
        (folder / "p.tl").write_text(PROFILED.replace("COUNT", "40"))
        (folder / "m.tl").write_text(MODEL_SAVED)
        (folder / "long.tl").write_text("let  x=1\n" * 1000)
        (folder / "ask.tl").write_text('generate(load_model("m.gguf"), "abcd", 1, cache: "kept")\n')
        for program in ("m.tl", "ask.tl"):
            result = run("run", program, cwd=folder)
            self.assertEqual(result.status, 0, result.err)
        (folder / "ask.tl").write_text('generate(load_model("m.gguf"), "bbbb", 1, cache: "kept")\n')
        for name in ("p.profile.html", "p.trace.json", "q.gguf"):
            (folder / name).write_text("old")
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for words, names in (("profile p.tl", "p.profile.html"), ("fmt long.tl", "long.tl"), ("run ask.tl", "kept/"),
                             ("quantize m.gguf q.gguf q4_0", "q.gguf")):
            with self.subTest(words):
                result = subprocess.run(["bash", "-c", f"ulimit -f 1; exec {TL} {words}"], cwd=folder, capture_output=True, text=True)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stderr, rf"error\[io\]: cannot write {names}\S*: File too large")
                self.assertEqual({path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}, before)

    def test_a_link_and_the_rights_of_a_file_stay(self):
        folder = Path(self.folder.name)
        (folder / "real.txt").write_text("old")
        (folder / "real.txt").chmod(0o640)
        (folder / "link.txt").symlink_to("real.txt")
        result = run("run", "-e", 'write_file("link.txt", "new")', cwd=folder)
        self.assertEqual(result.status, 0, result.err)
        self.assertTrue((folder / "link.txt").is_symlink())
        self.assertEqual((folder / "real.txt").read_text(), "new")
        self.assertEqual((folder / "real.txt").stat().st_mode & 0o777, 0o640)

    def test_a_device_is_written_to(self):
        result = run("run", "-e", 'write_file("/dev/null", "x")\nwrite_file("/dev/full", "x")')
        self.assertEqual(result.status, 1)
        self.assertIn("No space left on device", result.err)
        self.assertTrue(Path("/dev/full").is_char_device())


# Runs programs on a disk of its own, of so many bytes, which goes when it ends. What is left of it: its files, in JSON.
SMALL_DISK = """
mount -t tmpfs -o size=$1 disk "$2" || exit 77
cd "$2" && shift 2
"$TL" run --quiet -e "$1" || exit 78
sha256sum -- * >"$3"; find . | sort >>"$3"
"$TL" run --quiet -e "$2"; echo $? >"$4"
sha256sum -- * >"$5"; find . | sort >>"$5"
rm -f full
[ -z "$6" ] || "$TL" run --quiet -e "$6" >"$7"
"""


class SmallDisk(unittest.TestCase):
    def on_a_disk(self, size, before, after, then=""):
        """The status of `after`, its errors, and whether the files are what `before` had left; what `then` prints without the file full."""
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as notes:
            left = [Path(notes, name) for name in ("before", "status", "after", "then")]
            result = subprocess.run(["unshare", "-Urm", "sh", "-c", SMALL_DISK, "sh", str(size), folder, before, after,
                                     *map(str, left[:3]), then, str(left[3])],
                                    env={**os.environ, "TL": str(TL), "NO_COLOR": "1"}, capture_output=True, text=True)
            if result.returncode == 78 or left[0].exists() and not left[2].exists():
                self.fail(result.stderr)
            if not left[0].exists():
                self.skipTest("no disk of its own can be mounted here: " + result.stderr.strip())
            same = left[0].read_text() == left[2].read_text()
            return left[1].read_text().strip(), result.stderr, left[3].read_text() if then else same

    def test_every_writer(self):
        for name, (before, after) in writers().items():
            with self.subTest(name):
                before, after = (code.replace('"FILE"', "FILE").replace("FILE", f'"{name}"') for code in (before, after))
                status, errors, same = self.on_a_disk(64 << 10, before, after)
                self.assertEqual(status, "1", errors)
                self.assertRegex(errors, rf"error\[io\]: cannot write \"?{re.escape(name)}\"?: No space left on device")
                self.assertTrue(same)

    def test_training_goes_on_when_there_is_room_again(self):
        begun = TRAINING.replace("epochs: 150", "epochs: 5") + 'write_file("full", "x" * 100000)\n'
        with tempfile.TemporaryDirectory() as folder:
            whole = run("run", "--quiet", "-e", TRAINING, cwd=folder)
        status, errors, out = self.on_a_disk(112 << 10, begun, TRAINING, TRAINING)
        self.assertEqual(status, "1", errors)
        self.assertIn("cannot write run.safetensors: No space left on device", errors)
        self.assertEqual((whole.status, out), (0, whole.out), errors)


if __name__ == "__main__":
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        KILLS = int(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
