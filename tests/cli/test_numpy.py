"""NumPy's files: every type and layout comes in and goes out, and wrong files give errors in words. Where NumPy is
installed it reads what tl wrote and writes what tl reads; the bytes here need none."""
import io
import struct
import subprocess
import tempfile
import unittest
import zipfile
from pathlib import Path

from tl import run, run_code

PYTHON = "/usr/bin/python3"
# NumPy's code, tl's word, struct's letter.
TYPES = [("|b1", "bool", "?"), ("|i1", "int8", "b"), ("|u1", "uint8", "B"), ("<i2", "int16", "h"), ("<i4", "int32", "i"),
         ("<i8", "int64", "q"), ("<f2", "float16", "e"), ("<f4", "float32", "f"), ("<f8", "float64", "d")]


def npy(descr, shape, data, fortran=False, version=1, header=None):
    if header is None:
        header = "{'descr': %r, 'fortran_order': %r, 'shape': %r, }" % (descr, fortran, shape)
    text = header.encode("utf-8" if version == 3 else "latin1")
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text + data


def npz(members, compression=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def run_beside(files, code, options=()):
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        result = run(*options, "-e", code, cwd=folder)
        made = {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        return result, made


class Npy(unittest.TestCase):
    def test_types_and_orders(self):
        numbers = [0, 1, 1, 0, 1, 0]
        for descr, word, letter in TYPES:
            for order in "<>":
                code = descr if descr[0] == "|" else order + descr[1:]
                c_order = struct.pack(order + "6" + letter, *numbers)
                f_order = struct.pack(order + "6" + letter, *[numbers[i] for i in (0, 3, 1, 4, 2, 5)])
                for version in (1, 2, 3):
                    result, _ = run_beside({
                        "c.npy": npy(code, (2, 3), c_order, version=version),
                        "f.npy": npy(code, (2, 3), f_order, fortran=True, version=version)}, f"""
                        let expected = tensor([[0, 1, 1], [0, 1, 0]], {word})
                        for name in list("c.npy", "f.npy") {{
                            let x = load(name)
                            assert_eq(x, expected)
                            assert_eq(x.dtype, expected.dtype)
                            assert_eq(x + x, expected + expected)
                        }}
                    """, options=["--memory-check=strict"])
                    self.assertEqual((result.status, result.out), (0, ""), (code, version, result.err))

    def test_shapes(self):
        for shape, expected in [((), "[]"), ((2,), "[2]"), ((0, 3), "[0, 3]"), ((1,) * 8, "[1, 1, 1, 1, 1, 1, 1, 1]")]:
            count = 1
            for size in shape:
                count *= size
            result, _ = run_beside({"a.npy": npy("<f4", shape, bytes(4 * count))}, 'print(load("a.npy").shape)')
            self.assertEqual(result.out, expected + "\n", result.err)

    def test_bools_are_zero_or_one(self):
        result, _ = run_beside({"a.npy": npy("|b1", (3,), b"\0\2\xff")}, 'print(load("a.npy"), sum(load("a.npy")))')
        self.assertEqual(result.out, "[false  true  true] 2\n", result.err)

    def test_headers_as_others_write_them(self):
        for header in ['{"shape":(2L,),"fortran_order":False,"descr":"<f4"}',
                       "{ 'descr' : '=f4' , 'fortran_order' : False , 'shape' : ( 2 , ) }   \n",
                       "{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}"]:
            data = npy(None, None, struct.pack("<2f", 1, 2), header=header)
            result, _ = run_beside({"a.npy": data}, 'print(load("a.npy"))')
            self.assertEqual(result.out, "[1. 2.]\n", result.err)

    def test_large(self):
        # More than one chunk of the reader, in the other byte order and in Fortran order.
        numbers = list(range(600000))
        big = struct.pack(">600000i", *numbers)
        result, _ = run_beside({"a.npy": npy(">i4", (1000, 600), big, fortran=True)}, """
            let x = load("a.npy")
            print(all(x == transpose(reshape(arange(600000), [600, 1000]))))
        """)
        self.assertEqual(result.out, "true\n", result.err)

    def test_written_bytes(self):
        for descr, word, letter in TYPES:
            result, files = run_beside({}, f'save(transpose(tensor([[0, 1], [1, 0], [1, 1]], {word})), "a.npy")')
            header = ("{'descr': '%s', 'fortran_order': False, 'shape': (2, 3), }" % descr).ljust(117) + "\n"
            expected = npy(descr, None, struct.pack("<6" + letter, 0, 1, 1, 1, 0, 1), header=header)
            self.assertEqual(files, {"a.npy": expected}, result.err)
        _, files = run_beside({}, 'save(5, "a.npy")\nsave([7], "b.npy")')
        self.assertIn(b"'shape': (), }", files["a.npy"])
        self.assertIn(b"'shape': (1,), }", files["b.npy"])

    def test_hostile(self):
        def headed(header, data=b""):
            return npy(None, None, data, header=header)
        good = "'descr': '<f4', 'fortran_order': False"
        for content, expected in [
            (b"", "a.npy: 0 bytes are no .npy array"),
            (b"\x93NUMPZ" + bytes(20), "a.npy does not begin as a .npy array does"),
            (b"\x93NUMPY\4\0" + bytes(20), "a.npy has version 4.0 of the .npy format; tl reads 1.0 to 3.0"),
            (b"\x93NUMPY\1\1" + bytes(20), "a.npy has version 1.1"),
            (b"\x93NUMPY\1\0\xff\xff" + bytes(20), "a.npy: the header claims 65535 bytes, but 20 are left"),
            (b"\x93NUMPY\2\0\xff\xff\xff\xff" + bytes(20), "claims 4294967295 bytes, but 20 are left"),
            (headed("[1, 2]"), 'the header wants "{" at byte 0, not "[1, 2]"'),
            (headed("{'descr'"), 'the header wants ":" at byte 8'),
            (headed("{descr: 1}"), 'wants a short word in quotes at byte 1, not "descr: 1}"'),
            (headed("{'descr': '%s'}" % ("x" * 100)), "wants a short word in quotes"),
            (headed("{'shape': (1,)}"), "the header has no `descr`"),
            (headed("{%s}" % good), "the header has no `shape`"),
            (headed("{%s, 'shape': (1,), 'shape': (1,)}" % good), "has `shape`, which is unknown or came twice"),
            (headed("{'colour': 1}"), "has `colour`, which is unknown"),
            (headed("{'fortran_order': 0}"), "wants True or False"),
            (headed("{%s, 'shape': 3}" % good), "wants a shape"),
            (headed("{%s, 'shape': (-1,)}" % good), 'wants a size at byte 51, not "-1,)}"'),
            (headed("{%s, 'shape': (1 2)}" % good), 'wants "," or ")"'),
            (headed("{%s, 'shape': (99999999999999999999,)}" % good), "a size below 2**63"),
            (headed("{%s, 'shape': (1,1,1,1,1,1,1,1,1)}" % good), "at most 8 sizes"),
            (headed("{%s, 'shape': (1,)} x" % good), "wants its end"),
            (headed("{'descr': '<u2', 'fortran_order': False, 'shape': (1,)}"), 'has NumPy\'s dtype "<u2", which tl does not have'),
            (headed("{'descr': '', 'fortran_order': False, 'shape': (1,)}"), 'has NumPy\'s dtype "", which'),
            (headed("{'descr': [('a', '<f4')]}"), "an array of records is not a tensor"),
            (npy("<f4", (2,), bytes(7)), "the array is float32[2], but has 7 bytes"),
            (npy("<f4", (2,), bytes(9)), "the array is float32[2], but has 9 bytes"),
            (npy("<f4", (1 << 62, 16), bytes(9)), "but has 9 bytes"),
        ]:
            with self.subTest(expected):
                result, _ = run_beside({"a.npy": content}, 'load("a.npy")')
                self.assertIn("error[format]: a.npy", result.err)
                self.assertIn(expected, result.err.splitlines()[0])
                self.assertIn("1 | load(", result.err)
                self.assertEqual(result.status, 1)

    def test_errors_of_saving(self):
        for code, expected in [
            ('save(tensor([1], bfloat16), "a.npy")', "error[dtype]: NumPy has no bfloat16[1]: convert it first"),
            ('save({"w": tensor([1], bfloat16)}, "a.npz")', "error[dtype]: NumPy has no bfloat16[1]: convert `w` first"),
            ('save({"w": ones([1])}, "a.npy")', "error[value]: a.npy: a .npy file holds one tensor, without a name"),
            ('save_model({"w": ones([1])}, "a.npy")', "error[value]: a.npy: a .npy file holds one tensor"),
            ('save(ones([1]), "a.txt")', "a.txt: the names of files of tensors end in .safetensors, .npz, .gguf or .npy"),
            ('save(ones([1]), ".npy")', ".npy: the names of files of tensors end in"),
            ('load("a.txt")', "a.txt: the names of files of tensors end in"),
            ('save(ones([1]), "none/a.npy")', "error[io]: cannot write none/a.npy: No such file or directory"),
            ('save(ones([1]), "none/a.npz")', "error[io]: cannot write none/a.npz: "),
            ('save("text", "a.npy")', "error[type]"),
        ]:
            with self.subTest(code):
                result, files = run_beside({"a.npz": b"before", "a.npy": b"before"}, code)
                self.assertIn(expected, result.err.splitlines()[0])
                self.assertEqual((result.status, files), (1, {"a.npz": b"before", "a.npy": b"before"}))


class Npz(unittest.TestCase):
    MEMBERS = [("w.npy", npy("<f4", (2, 300), struct.pack("<600f", *range(600)))),
               ("layers/0.npy", npy(">i2", (), struct.pack(">h", -7))), ("ä.npy", npy("|u1", (0,), b""))]

    def test_stored_and_deflated(self):
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            result, _ = run_beside({"a.npz": npz(self.MEMBERS, compression)}, """
                let all = load("a.npz")
                assert_eq(all["w"], reshape(f32::arange(600), [2, 300]))
                print(keys(all), all["layers/0"], all["ä"].shape)
                print(load_model("a.npz").w.shape)
            """, options=["--memory-check=strict"])
            self.assertEqual(result.out, '["w", "layers/0", "ä"] -7 [0]\n[2, 300]\n', result.err)
            self.assertEqual(result.status, 0)

    def test_written(self):
        code = 'save({"w": transpose([[1, 2], [3, 4]]), "n": {"b": [0.5]}}, "a.npz")\nsave([1], "b.npz")\nsave({}, "c.npz")'
        result, files = run_beside({}, code, options=["--memory-check=strict"])
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(sorted(files), ["a.npz", "b.npz", "c.npz"])
        with zipfile.ZipFile(io.BytesIO(files["a.npz"])) as archive:
            self.assertIsNone(archive.testzip())
            self.assertEqual(archive.namelist(), ["w.npy", "n.b.npy"])
            self.assertEqual(archive.read("w.npy")[128:], struct.pack("<4q", 1, 3, 2, 4))
            self.assertEqual(archive.infolist()[0].compress_type, zipfile.ZIP_STORED)
        self.assertEqual(zipfile.ZipFile(io.BytesIO(files["b.npz"])).namelist(), ["arr_0.npy"])
        self.assertEqual(zipfile.ZipFile(io.BytesIO(files["c.npz"])).namelist(), [])
        again = run_beside({}, code)[1]
        self.assertEqual(again, files)  # nothing of the time of day
        result, _ = run_beside({"c.npz": files["c.npz"]}, 'print(load("c.npz"))')
        self.assertEqual(result.out, "{}\n", result.err)

    def test_hostile(self):
        good = npz(self.MEMBERS)
        flipped = good.replace(struct.pack("<2f", 1, 2), struct.pack("<2f", 1, 3))
        # The size in the central directory lies.
        directory = good.rindex(b"PK\1\2", 0, good.index(b"w.npy", 100))
        longer = bytearray(good)
        longer[directory + 20:directory + 28] = struct.pack("<II", 1 << 20, 1 << 30)
        bomb = bytearray(npz(self.MEMBERS, zipfile.ZIP_DEFLATED))
        directory = bomb.rindex(b"PK\1\2", 0, bomb.rindex(b"w.npy"))
        bomb[directory + 24:directory + 28] = struct.pack("<I", 1 << 31)
        for content, expected in [
            (b"PK\3\4", "a.npz: "),
            (b"", "a.npz does not begin as a zip archive does"),
            (b"\x93NUMPY", "a.npz does not begin as a zip archive does"),
            (good[:-40], "a.npz: "),
            (flipped, "a.npz: member `w.npy`: CRC error"),
            (npz([("a.txt", b"abc")]), "a.npz: member `a.txt` is not a .npy array"),
            (npz([("a.npy", b"abc")]), "a.npz: member `a.npy`: 3 bytes are no .npy array"),
            (npz([("a.npy", npy("<f4", (2,), b""))]), "member `a.npy`: the array is float32[2], but has 0 bytes"),
            (bytes(longer), "a.npz: member `w.npy` claims 1048576 bytes of an archive of"),
            (bytes(bomb), "a.npz: member `w.npy` claims to become 2147483648 bytes from"),
        ]:
            with self.subTest(expected):
                result, _ = run_beside({"a.npz": content}, 'load("a.npz")')
                self.assertIn("error[format]: a.npz", result.err)
                self.assertIn(expected, result.err.splitlines()[0])
                self.assertEqual(result.status, 1)

    def test_a_name_comes_twice(self):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("a.npy", npy("<f4", (), bytes(4)))
            archive.writestr("b.npy", npy("<f4", (), bytes(4)))
        result, _ = run_beside({"a.npz": out.getvalue().replace(b"b.npy", b"a.npy")}, 'load("a.npz")')
        self.assertIn("error[format]: a.npz: member `a.npy` comes twice", result.err)


@unittest.skipUnless(subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True).returncode == 0,
                     "python3-numpy is not installed")
class NumPy(unittest.TestCase):
    def python(self, folder, code):
        result = subprocess.run([PYTHON, "-c", "import numpy as np\n" + code], cwd=folder, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_both_ways(self):
        with tempfile.TemporaryDirectory() as folder:
            self.python(folder, """
g = np.random.default_rng(1)
for code in 'b1 i1 u1 i2 i4 i8 f2 f4 f8 >i2 >f8'.split():
    for order in 'CF':
        a = np.asarray(g.integers(0, 2 if code == 'b1' else 100, (3, 4, 5)), dtype=code, order=order)
        name = (code + order).replace('>', 'big_')
        np.save(name + '.npy', a)
        np.savez_compressed(name + '_deflated.npz', a=a)
        np.savez(name + '_stored.npz', a=a)
""")
            result = run("-e", """
                for name in list_dir(".") {
                    if ends_with(name, ".npy") { save(load(name), name + "_again.npy") }
                    else { save(load(name), name + "_again.npz") }
                }
            """, cwd=folder)
            self.assertEqual(result.status, 0, result.err)
            out = self.python(folder, """
import glob
count = 0
for name in glob.glob('*_again.np?'):
    count += 1
    before, after = np.load(name[:-10]), np.load(name)
    if name.endswith('npz'): before, after = before['a'], after['a']
    assert before.dtype.newbyteorder('=') == after.dtype and (before == after).all(), name
print(count)
""")
            self.assertEqual(out, "66\n")


class Libraries(unittest.TestCase):
    def test_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            for version in range(4, 8):
                Path(folder, f"libzip.so.{version}").write_text("not a library")
            result = run_code('save({"a": [1]}, "a.npz")', env={"LD_LIBRARY_PATH": folder})
            self.assertIn("error[device]: .npz files need the library libzip.so.", result.err)
            self.assertIn("help: on Debian and Ubuntu: apt install libzip", result.err)
            self.assertEqual(run_code('save([1], "a.npy")', env={"LD_LIBRARY_PATH": folder}).status, 0)


if __name__ == "__main__":
    unittest.main()
