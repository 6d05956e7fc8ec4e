"""Files of models that are shortened, rewritten or replaced while a program has them mapped: an error of the statement
that reads what is no longer there, never the end of the process."""
import os
import struct
import subprocess
import tempfile
import threading
import types
import unittest
from pathlib import Path

from test_file_messages import gguf, tensor, tokens
from tl import TL, run_code

STRICT = {"TL_MEMORY_CHECK": "strict"}
ROWS = 1024
SHORTEN = "waits_until_the_file_is_short()"
CHANGED = "was changed while it was in use: it had {} bytes and has {}"
F32, I32, Q8_0 = 0, 26, 8
# What reads the mapping, each in its own way: worker threads, products, dequantising kernels, downloads, copies.
READERS = {
    "reduction": "sum(m.f)",
    "map": "m.f + 1.0",
    "product": "ones([4, 1024]) @ m.f",
    "one row": "ones([1024]) @ m.f",
    "quantised": "ones([2, 1024]) @ m.q.T",
    "index": "m.f[1000] + 1.0",
    "gather": "embedding(m.f, tensor([5, 1000]))",
    "cast": "m.f as float64",
    "view": "m.f[::2, ::3].T + 1.0",
    "list": "to_list(m.f)",
    "text": "str(m.f)",
    "sort": "sort(m.f)",
    "svd": "svd(m.f[1000:])",
    "file": "save_model({\"f\": m.f}, \"copy.safetensors\")",
}


def large_model():
    """float32 and q8_0 of 1024 x 1024, and indexes; the last bytes are those of the float32."""
    blocks = (struct.pack("<e", 0.5) + bytes(range(32))) * (ROWS * ROWS // 32)
    indexes = struct.pack("<8i", *range(8))
    floats = struct.pack("<1024f", *range(ROWS)) * ROWS
    return gguf(tensors=[tensor("i", [8], I32, 0), tensor("q", [ROWS, ROWS], Q8_0, 32),
                         tensor("f", [ROWS, ROWS], F32, 32 + len(blocks))],
                data=indexes + blocks + floats)


def shorten_later(path, seconds):
    threading.Timer(seconds, lambda: os.truncate(path, 0)).start()


class MappedFiles(unittest.TestCase):
    every_device = True

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "m.gguf"
        self.path.write_bytes(large_model())
        self.length = self.path.stat().st_size

    def run_model(self, code):
        return self.run_shortening(f'let m = load_model("{self.path}")\n' + code)

    def run_shortening(self, code):
        """Runs a program; the model is shortened where it says SHORTEN."""
        if SHORTEN not in code:
            return run_code(code, env=STRICT)
        code = code.replace(SHORTEN, 'eprint("ready"); let answer = input()')
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.tl").write_text(code)
            process = subprocess.Popen([TL, "run", "program.tl"], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, env={**os.environ, **STRICT, "NO_COLOR": "1"})
            with process:
                line = process.stderr.readline()
                self.assertEqual(line, b"ready\n")
                self.path.write_text("x")
                try:
                    out, err = process.communicate(b"\n", timeout=60)
                finally:
                    process.kill()
        return types.SimpleNamespace(status=process.returncode, out=out.decode(), err=err.decode())

    def run_around(self, before, action, after):
        """Runs a program, which waits between its two parts until `action` was done here."""
        program = self.folder / "program.tl"
        program.write_text(f'let m = load_model("{self.path}")\n{before}\neprint("ready")\nlet line = input()\n{after}\n')
        process = subprocess.Popen([TL, "run", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env={**os.environ, **STRICT, "NO_COLOR": "1"})
        with process:
            self.assertEqual(process.stderr.readline(), b"ready\n")
            action()
            try:
                out, err = process.communicate(b"\n", timeout=60)
            finally:
                process.kill()
        self.assertIn(b"no leak", err)
        return process.returncode, out.decode(), err.decode()

    def test_shortened_before_a_tensor_is_first_used(self):
        result = self.run_model(f'print(m.i)\n{SHORTEN}\nprint(m.i)\nprint(sum(m.f))')
        self.assertEqual((result.status, result.out), (1, "[0 1 2 3 4 5 6 7]\n" * 2), result.err)
        self.assertIn(f"error[io]: {self.path} {CHANGED.format(self.length, 1)}\n --> program.tl:5:11\n", result.err)
        self.assertIn("= help: write a new version to another file and rename that: whoever has the old one open "
                      "keeps it\n", result.err)
        self.assertIn("no leak", result.err)

    def needs_mapped_tensors(self):
        if os.environ.get("TL_DEVICE", "cpu") != "cpu":  # asked here: one process runs both passes
            self.skipTest("elsewhere tensors are copies")

    def test_shortened_under_every_reader(self):
        self.needs_mapped_tensors()
        said = f"io {self.path} {CHANGED.format(self.length, 1)}\n"
        for name, reader in READERS.items():
            with self.subTest(name):
                self.path.write_bytes(large_model())
                result = self.run_model(f'print(m.i)\nlet f = m.f\nlet q = m.q\n{SHORTEN}\n'
                                        f"for i in 0..3 {{ try {{ {reader} }} catch e {{ print(e.kind, e.message) }} }}\n"
                                        "print(m.i)")
                self.assertEqual((result.status, result.out), (0, "[0 1 2 3 4 5 6 7]\n".join(["", said * 3, ""])), result.err)
                self.assertIn("no leak", result.err)

    def test_what_is_written_stays_whole(self):
        self.needs_mapped_tensors()
        program = f"""
            fn write(k, w) {{
                let x = zeros([1024, 1024]) + 2.0
                let p = learnable(zeros([1024, 1024]) + 2.0)
                let l = list(zeros([1024, 1024]) + 2.0)
                let cache = KVCache::new_f32(1)
                cache.append(0, ones([1, 1024, 1024]), ones([1, 1024, 1024]))
                {SHORTEN}
                try {{
                    match k {{
                        0 => {{ x[:] = w }}
                        1 => {{ x[1:] = w[1:] }}
                        2 => {{ x += w }}
                        3 => {{ x[[0, 1000]] = w[[0, 1000]] }}
                        4 => {{ p[:] = w }}
                        5 => {{ p[2:1000, ::2] = w[2:1000, ::2] }}
                        6 => {{ p += w }}
                        7 => {{ l[0][:] = w }}
                        8 => {{ sgd_step(p, w, 0.5) }}
                        9 => {{ cache.set(0, w.reshape([1, 1024, 1024]), w.reshape([1, 1024, 1024])) }}
                        _ => {{ x[w > 0.0] = w[w > 0.0] }}
                    }}
                    print("no error")
                }} catch e {{ print(e.kind, min(x), max(x), min(p), max(p), min(l[0]), max(l[0]), sum(cache.get_k(0))) }}
            }}
            write(int(args()[0]), m.f)"""
        for k in range(11):
            with self.subTest(k):
                self.path.write_bytes(large_model())
                result = self.run_model(program.replace("int(args()[0])", str(k)))
                self.assertEqual((result.status, result.out), (0, "io 2.0 2.0 2.0 2.0 2.0 2.0 1048576.0\n"), result.err)

    def test_shortened_while_kernels_run(self):
        """At any moment: each loop ends with the one error, whatever it was doing."""
        self.needs_mapped_tensors()
        for pause in (0, 0.01, 0.05):
            self.path.write_bytes(large_model())
            status, _, err = self.run_around("let f = m.f\nlet q = m.q", lambda: shorten_later(self.path, pause),
                                             "loop { let y = relu(f @ f) + sum(q @ f) }")
            self.assertEqual(status, 1, err)
            self.assertIn(CHANGED.format(self.length, 0), err)

    def test_written_to(self):
        status, _, err = self.run_around("let f = m.f\nprint(f[0, :3])", lambda: self.path.write_bytes(bytes(self.length)),
                                           "print(f[0, :3])\nprint(m.q @ ones([1024]))")
        self.assertEqual(status, 1)
        self.assertIn(f"error[io]: {self.path} was written to while it was in use", err)

    def test_replaced_by_renaming(self):
        """The way that the help names: what was loaded stays."""
        def replace():
            (self.folder / "other").write_bytes(b"x")
            (self.folder / "other").rename(self.path)

        shown = "print(sum(m.f), m.i, sum(m.q @ ones([1024])))"
        status, out, err = self.run_around(shown, replace, shown)
        first, second = out.splitlines()
        self.assertEqual((status, first), (0, second), err)

    def test_metadata_and_vocabulary_stay(self):
        self.path.write_bytes(tokens("<unk>", "a", "b"))
        status, out, err = self.run_around("", lambda: self.path.write_bytes(b""),
                                           "print(m.meta(\"tokenizer.ggml.tokens\"))")
        self.assertEqual(status, 0, err)
        self.assertIn("<unk>", out)


if __name__ == "__main__":
    unittest.main()
