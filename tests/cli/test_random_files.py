"""Files of every format that tl reads, changed at random and then used: each tensor printed, summed, multiplied, indexed,
copied to another file; each vocabulary, template and table put to work. Whatever is in them: an error in words or a
value, never the end of the process, a hang or a leak.

    TL_TEST_SEED=N TL_TEST_FILES=20000 python3 tests/cli/test_random_files.py [RandomFiles.test_gguf]      more of each format
"""
import os
import random
import re
import sqlite3
import struct
import tempfile
import unittest
from pathlib import Path

from tl import FIXTURES, ROOT, run

SEED = int(os.environ.get("TL_TEST_SEED", "1"))
FILES = int(os.environ.get("TL_TEST_FILES", "200"))
EACH = 100  # files of a program
SECONDS = 120  # a program that takes longer hangs
CORPUS = ROOT / "tests" / "fuzz" / "corpus"
ENVIRONMENT = {"TL_MEMORY_CHECK": "strict", "TL_DEVICE_MEMORY_MB": "256"}
ODD = [0, 1, 2, 127, 128, 255, 256, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 32, 1 << 61, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
WORDS = [b"-1", b"0", b"1e308", b"1e999", b"9223372036854775807", b"18446744073709551616", b"nan", b"inf", b"-inf", b"null", b"true", b"[]",
         b"{}", b'""', b'"\\ud800"', b'"\\u0000"', b"[[]]", b"\xff", b"\xf0\x9f", b"\0", b"," * 40, b"[" * 300, b'"' * 3, b"\r", b"F32", b"I64", b"BOOL"]
# fn each(path) of a format: what is done with a file. What fails there is one of many things tried.
USES = {
    "tensor": """fn attempt(f) { try { f() } catch e { e.kind } }
fn use(t) {
  attempt(fn() { str(t) }); attempt(fn() { to_json(t.shape) })
  attempt(fn() { sum(t as float32) }); attempt(fn() { t + t }); attempt(fn() { max(t) })
  attempt(fn() { ones([2, t.shape[0]]) @ t }); attempt(fn() { ones([2, t.shape[-1]]) @ t.T }); attempt(fn() { t @ t })
  attempt(fn() { str(t[0]) }); attempt(fn() { str(t[-1:, ...]) }); attempt(fn() { str(t[::2]) }); attempt(fn() { sort(t) })
  attempt(fn() { embedding(t, [0, 1]) }); attempt(fn() { ones([5])[t] }); attempt(fn() { reshape(t, [-1]) }); attempt(fn() { to_list(t) })
}
""",
    "model": """fn each(path) {
  let m = load_model(path)
  for entry in m.tensors() { attempt(fn() { use(m.get_tensor(entry["name"])) }) }
  attempt(fn() { str(m.meta()) })
  attempt(fn() { words(m.tokenizer()) })
  attempt(fn() { apply_chat_template(m, list({"role": "user", "content": "Hi"})) })
  attempt(fn() { generate(m, "Once upon", max_tokens: 2, seed: 1) })
  attempt(fn() { save_model(m, "copy.gguf") }); attempt(fn() { save_model(m, "copy.safetensors") })
}
""",
    "vocabulary": """fn words(t) {
  let ids = tokenize(t, "Unaffable ab  abc, 12 it's <s>\U0001F999 caf\u00e9</s>\\n")
  detokenize(t, ids); detokenize(t, ids, skip_special: false)
  for id in ids { detokenize_single(t, id) }
  attempt(fn() { detokenize(t, [0, 5, 1000000]) }); attempt(fn() { save_model({"a": ones([2])}, "copy.gguf", tokenizer: t) })
}
""",
    "gguf": "", "safetensors": "", "npz": "", "npy": "fn each(path) { use(load(path)) }\n",
    "tokenizer": "fn each(path) { words(load_tokenizer(path)) }\n",
    "template": """fn each(path) {
  save_model({"a": ones([2])}, "template.gguf", meta: {"tokenizer.chat_template": read_file(path)})
  let m = load_model("template.gguf")
  let said = list({"role": "system", "content": "Be \\"brief\\"."}, {"role": "user", "content": " Hi \U0001F999 "}, {"role": "assistant", "content": ""})
  for i in 0..4 { attempt(fn() { apply_chat_template(m, said[:i], add_generation_prompt: i < 2) }) }
}
""",
    "onnx": """fn each(path) {
  let m = load_onnx(path)
  for name, w in m.weights { use(w) }
  attempt(fn() { str(m) })
  for size in list(1, 2, 4, 6) { for learnable in list(false, true) { attempt(fn() {
    let given = {}
    for input in m.inputs { given[input.name] = ones([if type(n) == "int" { n } else { size } for n in (if type(input.shape) == "none" { list(size) } else { input.shape })].to_list()) }
    let net = load_onnx(path, learnable: learnable)
    let y = net.forward(given)
    str(y); attempt(fn() { backward(sum(y)) })
  }) } }
}
""",
    "image": """fn each(path) {
  let x = load_image(path)
  for format in list("png", "jpg", "webp", "bmp", "ppm") { attempt(fn() { save_image(x, "copy." + format) }) }
  attempt(fn() { save_image(load_image(path, 3, [4, 5]), "copy.bmp"); assert_eq(load_image("copy.bmp").shape, [3, 4, 5]) })
}
""",
    "audio": """fn each(path) {
  let (x, rate) = load_audio(path)
  attempt(fn() { str(x) }); attempt(fn() { load_audio(path, 3, 4) })
  for format in list("wav", "flac", "ogg") { attempt(fn() { save_audio(x, "copy." + format, rate) }) }
}
""",
    "db": """fn each(path) {
  for columns in list(true, false) {
    attempt(fn() { str(read_sql(path, "SELECT * FROM t ORDER BY a DESC", columns: columns)) })
    attempt(fn() { str(read_sql(path, "SELECT * FROM v JOIN t USING (a) LIMIT 100", columns: columns)) })
  }
  attempt(fn() { str(read_sql(path, "SELECT * FROM sqlite_master")) })
}
""",
    "csv": """fn each(path) {
  attempt(fn() { str(read_csv(path, columns: true)) }); attempt(fn() { str(read_csv(path, header: true, columns: true)) })
  for header in list(true, false) { attempt(fn() {
    let rows = read_csv(path, header: header)
    str(rows); write_csv("copy.csv", rows); assert_eq(str(read_csv("copy.csv", header: header)), str(rows))
    attempt(fn() { use(tensor(rows)) })
  }) }
}
""",
    "json": """fn each(path) {
  let value = parse_json(read_file(path))
  str(value); assert_eq(parse_json(to_json(value)), value); assert_eq(parse_json(to_json(value, indent: 2)), value)
  attempt(fn() { use(tensor(value)) }); attempt(fn() { for k, v in value { str(k) } })
}
""",
}
MAIN = """let n = 0
for path in args() {
  eprint("file", n); n += 1
  try { each(path) } catch e { if e.kind == "assert" { print("WRONG", path, e.message) } }
}
"""
BASES = {"onnx": "onnx/*", "npz": "npz/*", "npy": "npy/*", "safetensors": "safetensors/*", "gguf": "gguf/*", "tokenizer": "tokenizer/*", "template": "template/*"}
TEXTS = {
    "csv": [b'a,b,c\n1,2.5,x\n-3,1e300,"y, ""z"""\n,inf,nan\n', b'"1",true,none\r\n\xc3\xa9,"a\nb",0x10\r\n', b"1;2\n\n3;4", b""],
    "json": [b'{"a": [1, 2.5, -3e2, true, false, null], "b": {"c": "\\u00e9\\ud83e\\udd99\\n"}, "": ""}', b"[[1, 2], [3, 4]]", b'"x"', b"[{}, [], 0.1]"],
    "template": [b"{% for m in messages %}{{ m['role'] | upper }}: {{ m.content | trim }}{% if not loop.last %}\n{% endif %}{% endfor %}"
                 b"{% set ns = namespace(x=1) %}{% set ns.x = ns.x + 1 %}{{ ns.x ~ [1, 'a'][::-1] }}{{ raise_exception('no') if messages | length > 9 }}"],
}


def make_models(folder):
    """Small files of what tl writes itself."""
    code = """save_model({"f": randn([4, 32]), "h": f16::randn([3, 5]), "i": [3, 1, 2], "b": [true, false], "s": ones([]), "e": zeros([0, 7])}, "m.FORMAT")"""
    for ending in ("safetensors", "npz", "gguf"):
        run("-e", code.replace("FORMAT", ending), cwd=folder)
    for dtype in ("q8_0", "q4_0", "q5_1"):
        run("-e", f'save_model({{"a": randn([3, 64]), "b": ones([64])}}, "{dtype}.gguf", dtype: {dtype}, meta: {{"general.name": "x", "k": [1, 2]}})', cwd=folder)


def make_images(folder):
    """Pictures of each kind and format, one file of `image` each."""
    run("-e", """for channels in 1..=4 {
  let x = rand([channels, 9, 11])
  for format in list("png", "jpg", "webp", "bmp", "ppm") {
    let path = f"{channels}.{format}"
    try { save_image(x, path, quality: if channels == 3 { 100 } else { 60 }) } catch e { e.kind }
  }
}""", cwd=folder)
    for path in list(Path(folder).iterdir()):
        path.rename(f"{path}.image")


def make_sounds(folder):
    run("-e", """for format in list("wav", "flac", "ogg", "opus", "mp3", "aiff", "au") {
  save_audio(sin(arange(600) as float32 * 0.1), "1." + format, 8000)
  save_audio((rand([2, 300]) * 30000.0) as int16, "2." + format, 48000)
}""", cwd=folder)
    for path in list(Path(folder).iterdir()):
        path.rename(f"{path}.audio")


def make_databases(folder):
    base = sqlite3.connect(Path(folder, "1.db"))
    base.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c REAL, d BLOB)")
    base.execute("CREATE INDEX i ON t (b)")
    base.execute("CREATE VIEW v AS SELECT a, upper(b) AS u FROM t WHERE c > 1")
    base.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", [(n, f"row {n}" * (n % 9), n / 3, bytes(n)) for n in range(60)])
    base.commit()
    base.close()


MAKERS = {"image": make_images, "audio": make_sounds, "db": make_databases}


def mutate(draw, data, others):
    """A few changes: bits, odd numbers, words of text, parts left out, doubled, cut off or taken from another file."""
    data = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 3, 8))):
        near = min(len(data), draw.choice((64, 512, 4096, len(data))))  # headers come first
        at = draw.randrange(near + 1)
        size = draw.choice((1, 2, 4, 8, 16, 64))
        change = draw.randrange(9)
        if change == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif change == 1:
            data[at:at + 8] = struct.pack("<Q", draw.choice(ODD))
        elif change == 2:
            data[at:at + 4] = struct.pack("<I", draw.choice(ODD) & 0xFFFFFFFF)
        elif change == 3:
            data[at:at + draw.choice((0, size))] = draw.choice(WORDS)
        elif change == 4:
            del data[at:at + size]
        elif change == 5:
            data[at:at] = data[at:at + size] * draw.choice((1, 2, 50))
        elif change == 6 and draw.random() < 0.3:
            del data[at:]
        elif change == 7:
            other = draw.choice(others)
            begin = draw.randrange(len(other) + 1)
            data[at:at + size] = other[begin:begin + size]
        else:
            numbers = list(re.finditer(rb"\d+(\.\d+)?", data[:4096]))
            if numbers:
                number = draw.choice(numbers)
                data[number.start():number.end()] = draw.choice(WORDS[:10])
    return bytes(data)


class RandomFiles(unittest.TestCase):
    def bases(self, kind, folder):
        files = [path.read_bytes() for path in sorted(CORPUS.glob(BASES.get(kind, "none")))] + TEXTS.get(kind, [])
        files += [path.read_bytes() for path in sorted(Path(folder).glob(f"*.{kind}"))]
        if kind == "gguf" and (FIXTURES / "models" / "quant-blocks.gguf").exists():
            files.append((FIXTURES / "models" / "quant-blocks.gguf").read_bytes())
        return [data for data in files if len(data) < 1 << 18]

    def use_files(self, kind, bases, seed, folder):
        draw = random.Random(f"{kind} {seed}")
        paths = []
        for number in range(EACH):
            paths.append(Path(folder, f"{number}.{kind}"))
            paths[-1].write_bytes(mutate(draw, draw.choice(bases), bases))
        each = USES[kind] or USES["model"]
        Path(folder, "use.tl").write_text(USES["tensor"] + USES["vocabulary"] + each + MAIN)
        result = run("run", "use.tl", *paths, cwd=folder, env=ENVIRONMENT, timeout=SECONDS)
        begun = re.findall(r"^file (\d+)$", result.err, flags=re.M)
        told = f"seed {seed}, file {begun[-1:]}: {result.status}\n{result.err[-2000:]}"
        self.assertEqual(result.status, 0, told)
        self.assertEqual(len(begun), EACH, told)
        self.assertNotRegex(result.err, "internal error|Sanitizer|runtime error")
        self.assertIn("no leak: every buffer was released", result.err)
        self.assertNotIn("WRONG", result.out)

    def use_all(self, kind):
        with tempfile.TemporaryDirectory() as folder:
            MAKERS.get(kind, make_models)(folder)
            bases = self.bases(kind, folder)
            for number in range((FILES + EACH - 1) // EACH):
                with self.subTest(kind=kind, seed=SEED * 100000 + number):
                    self.use_files(kind, bases, SEED * 100000 + number, folder)

    def test_gguf(self):
        self.use_all("gguf")

    def test_safetensors(self):
        self.use_all("safetensors")

    def test_npz(self):
        self.use_all("npz")

    def test_npy(self):
        self.use_all("npy")

    def test_tokenizer(self):
        self.use_all("tokenizer")

    def test_template(self):
        self.use_all("template")

    def test_onnx(self):
        self.use_all("onnx")

    def test_image(self):
        self.use_all("image")

    def test_audio(self):
        self.use_all("audio")

    def test_db(self):
        self.use_all("db")

    def test_csv(self):
        self.use_all("csv")

    def test_json(self):
        self.use_all("json")


if __name__ == "__main__":
    unittest.main()
