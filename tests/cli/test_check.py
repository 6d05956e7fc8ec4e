"""tl check: warnings where something is lost or never reached, and nothing about programs that are right."""
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, TL

LOST = "this value is not used, and computing it changes nothing"
MOMENTS = "the moments are lost: p, m, v = adam_step(p, g, m, v, lr) keeps them"
LEFT = "this is never reached: the statement above leaves the block"
ARM = "this arm is never reached"
REPLACED = "this replaces `%s`, whose value was never used"

# A comment says what is warned of in its line; nothing else may be.
WARNED = {
    "moments": f"""let p = learnable([1.0, -1.0])
let (m, v) = (zeros([2]), zeros([2]))
backward(sum(p ** 2))
p, m, v = adam_step(p, grad(p), m, v, 0.1)
for i in 0..2 {{
    adam_step(p, grad(p), m, v, 0.1) // {MOMENTS}
}}
print(p, m, v)
""",
    "lost": f"""let xs = list(3, 1)
xs.sorted() // {LOST}
relu([1.0]) // {LOST}
xs // {LOST}
xs[0] + 2 // {LOST}
"text" // {LOST}
for i in 0..3 {{ i * 2 }} // {LOST}
main {{
    len(xs) // {LOST}
}}""",
    "kept": """let xs = list(3, 1)
struct S { n: int }
impl S { fn sorted(self) { self.n += 1 } }
let s = S { n: 1 }
s.sorted()
xs.push(3)
xs.append(4)
xs.sort()
xs.reverse().len()
randn([2])
fn f() { xs.len() }
f()
len(xs) > 0 or error("empty")
let cache = KVCache::new(1)
cache.append(0, ones([1, 2]), ones([1, 2]))
bench sums { sum(ones([10])) }
print(if len(xs) > 1 { "many" } else { "few" })""",
    "sizes that have names": """fn first(x: Tensor[1, N], y: Tensor[N, 1]) {
    print(flatten(x)[0, 0]) // tensor[N] has 1 dimension, but the index names 2
    print(flatten(y)[0, 0]) // tensor[N] has 1 dimension, but the index names 2
}""",
    "replaced": f"""let x = 5
let x = 6 // {REPLACED % "x"}
let read = 1
let read = read + 1
let read = [read, 2]
let called = 1
call()
let called = 2
fn call() {{ print(called) }}
let held = 1
let later = fn() {{ held }}
let held = later()
let held = 3
let n = 2
let sized: float32[n] = zeros([n])
let n = 3
let later = ""
let shown = 1
print(f"{{shown}} {{sized}} {{read}} {{x}} {{n}}")
let shown = 2
let given: int
let given = 3
let last = 4
main {{ let last = 5; print(last, given, shown, later, held) }}
let last = 6 // {REPLACED % "last"}
print(last)""",
    "left": f"""fn f(x) {{
    if x {{ return 1 }}
    return 2
    print("never") // {LEFT}
}}
fn g() {{
    return inner()
    fn inner() {{ 1 }}
}}
while true {{
    break
    f(true) // {LEFT}
}}
print(f(false), g())""",
    "arms": f"""fn name(x) {{
    match x {{
        1 => "one",
        1 => "again", // {ARM}
        2 if x > 1 => "two",
        2..=5 => "some",
        3 => "three", // {ARM}
        4 | 5 => "more", // {ARM}
        "a" | "b" => "letter",
        (a, 1) => "pair",
        _ => "other",
        7 => "seven" // {ARM}
    }}
}}
print(name(1))""",
}


def check(path):
    return subprocess.run([TL, "check", str(path)], capture_output=True, text=True, cwd=path.parent)


def warnings_of(output):
    found = re.findall(r"^(?:warning|error\[\w+\]): (.*)\n *--> [^\n]*?:(\d+):\d+", output, re.MULTILINE)
    return {(int(line), message) for message, line in found}


class Check(unittest.TestCase):
    def test_warnings(self):
        for name, code in WARNED.items():
            wanted = {(number, line.split("// ")[1]) for number, line in enumerate(code.splitlines(), 1) if "// " in line}
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "program.tl"
                path.write_text(code + "\n")
                result = check(path)
                self.assertEqual(warnings_of(result.stderr + result.stdout), wanted)
                self.assertEqual(result.returncode, 0)
                if name == "lost":
                    self.assertIn("= help: assign it, print it, or leave it out", result.stderr)
                if name == "arms":
                    self.assertIn("note: this arm takes it", result.stderr)

    def passes(self, path):
        with self.subTest(path.name):
            result = check(path)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (0, "", ""))
            ran = subprocess.run([TL, "run", "--quiet", str(path)], capture_output=True, text=True, timeout=60)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_right_programs_pass_in_silence(self):
        paths = sorted((ROOT / "tests" / "right").glob("*.tl"))
        self.assertGreaterEqual(len(paths), 40)
        for path in paths:
            self.passes(path)

    def test_wrong_programs_pass_once_mended(self):
        programs = {path.stem: path.read_text() for path in (ROOT / "tests" / "wrong").glob("*.tl")}
        mended = {}
        for line in (ROOT / "tests" / "right" / "mended.txt").read_text().splitlines():
            if not line.startswith("#"):
                name, edit = line.split(": ", 1)
                wrong, right = (part.replace("\\n", "\n") for part in edit.split(" => "))
                text = mended.get(name, programs[name])
                self.assertEqual((text.count(wrong), wrong == right), (1, False), line)
                mended[name] = text.replace(wrong, right)
        self.assertEqual(set(mended), set(programs))
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "lang").symlink_to(ROOT / "tests" / "lang")
            Path(folder, "right").mkdir()
            for name, text in mended.items():
                path = Path(folder, "right", f"{name}.tl")
                path.write_text(text)
                self.passes(path)


class Sums(unittest.TestCase):
    CODE = """let (A, B) = (ones([3, 4]), ones([4, 6]))
C[i, k] = A[i, j] B[j, k]
fn f(x, y) {
    Y[i] = relu(x[i, j] + 1.0) / sum[k](y[k])
    Y
}
print(f(A, B[0]), f(B, B[0]), C)
"""

    def check(self, code, *options):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.tl").write_text(code)
            return subprocess.run([TL, "check", *options, "program.tl"], capture_output=True, text=True, cwd=folder)

    def test_where_sums_stand(self):
        """A size that differs from call to call is not one."""
        result = self.check(self.CODE, "--sums")
        self.assertEqual((result.stdout, result.stderr, result.returncode), (
            "program.tl:2:1: C[i, k] = A[i, j] B[j, k]\nsum[j](A[i, j] B[j, k])\n// sizes: i = 3, k = 6, j = 4\n"
            "program.tl:4:5: Y[i] = relu(x[i, j] + 1.0) / sum[k](y[k])\nsum[j](x[i, j])\n// sizes: k = 6\n", "", 0))

    def test_only_of_programs_without_errors(self):
        self.assertEqual(self.check(self.CODE + "C[i, k] = A[i, j] A[j, k]\n", "--sums").stdout, "")

    def test_not_as_json(self):
        self.assertIn("--sums and --json exclude each other", self.check(self.CODE, "--sums", "--json").stderr)


if __name__ == "__main__":
    unittest.main()
