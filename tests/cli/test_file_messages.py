"""What tl says of model, tensor and tokenizer files that are cut off, lie or are of another kind: the whole first
line, with the file's name in it, and no crash, whatever is claimed."""
import json
import struct
import tempfile
import unittest
from pathlib import Path

from test_numpy import npy, npz
from tl import run

U32, STRING, ARRAY, F32 = 4, 8, 9, 6


def u32(*numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


def u64(*numbers):
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def text(word):
    word = word if isinstance(word, bytes) else word.encode()
    return u64(len(word)) + word


def pair(key, kind, value):
    return text(key) + u32(kind) + value


def tensor(name, dims, kind=0, offset=0):
    return text(name) + u32(len(dims)) + u64(*dims) + u32(kind) + u64(offset)


def gguf(tensors=(), pairs=(), data=b"", version=3):
    head = b"GGUF" + u32(version) + u64(len(tensors), len(pairs)) + b"".join(pairs) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + data


def tokens(*pieces, kind="llama", more=()):
    return gguf(pairs=[pair("tokenizer.ggml.model", STRING, text(kind)),
                       pair("tokenizer.ggml.tokens", ARRAY, u32(STRING) + u64(len(pieces)) + b"".join(map(text, pieces))),
                       *more])


def safetensors(header, data=b""):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return u64(len(header)) + header + data


def entry(**changes):
    return {"t": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}


GGUF = [
    (b"GGUX", "m.gguf is not a GGUF file: it does not begin with \"GGUF\""),
    (b"GGUF" + u32(9), "m.gguf is GGUF version 9; versions 1 to 3 can be read"),
    (b"GGUF" + struct.pack(">I", 3), "m.gguf is GGUF version 50331648; versions 1 to 3 can be read (this file is big-endian)"),
    (b"GGUF" + u32(3), "m.gguf: the file ends at byte 8, inside the header"),
    (b"GGUF" + u32(3) + u64(0, 1) + u64(1 << 60), "m.gguf: a metadata key at byte 32 claims 1152921504606846976 bytes, but 0 are left"),
    (gguf(pairs=[pair("k", 99, b"")]), "m.gguf: the metadata value \"k\" has unknown type 99"),
    (gguf(pairs=[pair("k", ARRAY, u32(77) + u64(1))]), "m.gguf: an array at byte 41 has elements of unknown type 77"),
    (gguf(pairs=[pair("k", ARRAY, u32(U32) + u64(1 << 60))]),
     "m.gguf: an array at byte 49 claims 1152921504606846976 elements, but 15 bytes are left"),
    (gguf(pairs=[pair(b"k\xff", U32, u32(1))]), "m.gguf: a metadata key at byte 24 is not a text of at most 65535 bytes"),
    (gguf(pairs=[pair("general.alignment", U32, u32(33))], tensors=[tensor("t", [2])]),
     "m.gguf: general.alignment is not a power of two from 8 to 1048576"),
    (gguf([tensor("t", [1] * 9)]), "m.gguf: tensor t claims 9 dimensions; at most 4 are allowed"),
    (gguf([tensor("t", [1 << 62, 16])]), "m.gguf: the dimensions of tensor t are too large"),
    (gguf([tensor("t", [1 << 61, 4])]), "m.gguf: tensor t is too large"),
    (gguf([tensor("t", [1 << 62, 1 << 62, 0])]), "m.gguf: the dimensions of tensor t are too large"),
    (gguf([tensor("t", [1 << 62, 0])]), "m.gguf: tensor t is too large"),
    (gguf([tensor("t", [2], offset=5)], data=bytes(64)), "m.gguf: tensor t at offset 5 is not aligned to 32 bytes"),
    (gguf([tensor("t", [2], offset=64)], data=bytes(8)),
     "m.gguf: tensor t (8 bytes at offset 64) lies beyond the end of the file (72 bytes)"),
    (gguf([tensor("t", [16]), tensor("u", [16], offset=32)], data=bytes(128)), "m.gguf: tensors t and u overlap in the file"),
    (gguf([tensor("t", [2]), tensor("t", [2], offset=32)], data=bytes(64)), "m.gguf: two tensors are called t"),
]

SAFETENSORS = [
    (b"abc", "s.safetensors: 3 bytes are not a safetensors file"),
    (u64(1 << 60), "s.safetensors: the header claims 1152921504606846976 bytes, but 0 are left"),
    (safetensors(b"{"), "s.safetensors: the header is not JSON: string or '}' expected near end of file"),
    (safetensors(b"[]"), "s.safetensors: the header is not a JSON object"),
    (safetensors({"t": 1}), "s.safetensors: tensor `t`: it is not an object"),
    (safetensors(entry(dtype=3)), "s.safetensors: tensor `t`: it has no dtype"),
    (safetensors(entry(shape=3)), "s.safetensors: tensor `t`: its shape is not a list of at most 8 sizes"),
    (safetensors(entry(shape=[-2])), "s.safetensors: tensor `t`: its shape holds something that is not a size"),
    (safetensors(entry(data_offsets=[0])), "s.safetensors: tensor `t`: its data_offsets are not two offsets"),
    (safetensors(entry(shape=[1 << 40, 1 << 40], data_offsets=[0, 0])),
     "s.safetensors: tensor `t` is float32[1099511627776, 1099511627776], but has 0 bytes"),
    (safetensors(entry(data_offsets=[0, 9]), bytes(8)), "s.safetensors: tensor `t` lies at bytes 0 to 9 of 8"),
    (safetensors(entry(shape=[3]), bytes(8)), "s.safetensors: tensor `t` is float32[3], but has 8 bytes"),
    (safetensors({**entry(), "u": entry()["t"]}, bytes(8)), "s.safetensors: tensors `t` and `u` overlap"),
]

INDEX = [
    (b"{", "i.json: line 1: string or '}' expected near end of file"),
    (b"{}", "i.json is not an index of safetensors files: it has no weight_map"),
    (b'{"weight_map": {"t": 5}}', "i.json: tensor t has no file"),
    (b'{"weight_map": {"t": "../s"}}', 'i.json: "../s" is not the name of a file next to it'),
    (b'{"weight_map": {"x": "good.safetensors"}}', "i.json: tensor x is not in good.safetensors"),
]

NPY = [
    (npy(0, 0, b"", header="{'descr' '<f4'}"), "a.npy: the header wants \":\" at byte 9, not \"'<f4'}\""),
    (npy(0, 0, b"", header="{'descr': [('a', '<f4')]}"), "a.npy: an array of records is not a tensor"),
    (npy("<c8", (2,), bytes(16)), "a.npy has NumPy's dtype \"<c8\", which tl does not have"),
    (npy(0, 0, b"", header="{'descr': '<f4', 'order': 1}"), "a.npy: the header has `order`, which is unknown or came twice"),
    (npy(0, 0, b"", header="{'descr': '<f4', 'shape': (2,)}"), "a.npy: the header has no `fortran_order`"),
]

TOKENIZERS = [
    ("t.gguf", gguf(), "t.gguf holds no tokenizer: tokenizer.ggml.tokens is missing"),
    ("t.gguf", tokens("a", kind="gpt2x"), "t.gguf has a tokenizer of kind \"gpt2x\"; tl reads llama, gpt2, bert, t5 and gemma4"),
    ("t.gguf", tokens("a", kind="gpt2", more=[pair("tokenizer.ggml.pre", STRING, text("odd"))]),
     "t.gguf: tl does not know the pre-tokenizer \"odd\""),
    ("t.gguf", tokens("a", kind="gpt2"), "t.gguf: the vocabulary has no merges (tokenizer.ggml.merges)"),
    ("t.gguf", tokens("a", kind="gpt2", more=[pair("tokenizer.ggml.merges", ARRAY,
                                                   u32(STRING) + u64(3) + text("a a") + text("a b") + text("ab"))]),
     "t.gguf: 2 merges name a piece that is not in the vocabulary"),
    ("t.gguf", tokens("a", kind="t5", more=[pair("tokenizer.ggml.precompiled_charsmap", U32, u32(1))]),
     "t.gguf: tokenizer.ggml.precompiled_charsmap is not bytes"),
    ("t.gguf", tokens("a", kind="t5", more=[pair("tokenizer.ggml.precompiled_charsmap", ARRAY,
                                                 u32(0) + u64(8) + u32(5, 0))]),
     "the tokenizer's precompiled map of characters is broken: it has 8 bytes"),
    ("t.json", b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "normalizer": {"type": "Precompiled", '
               b'"precompiled_charsmap": "a?=="}}', "t.json: precompiled_charsmap is not base64"),
    ("t.gguf", tokens("a", "b", more=[pair("tokenizer.ggml.scores", ARRAY, u32(F32) + u64(1) + bytes(4))]),
     "t.gguf: tokenizer.ggml.scores does not have one number of the right type for each of the 2 tokens"),
    ("t.json", b"{", "t.json is not a tokenizer: line 1: string or '}' expected near end of file"),
    ("t.json", b'{"model": {"type": "Magic", "vocab": {}}}', "t.json: tl does not know the model \"Magic\""),
    ("t.json", b'{"model": {"type": "BPE", "vocab": {"a": 1000000000000}, "merges": []}}',
     "t.json: token id 1000000000000 cannot be"),
    ("t.json", b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}',
     "t.json: a merge names a piece that is not in model.vocab"),
    ("t.json", b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "end_of_word_suffix": "</w>"}}',
     "t.json: tl does not know the setting of BPE \"end_of_word_suffix\""),
    ("t.json", b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "post_processor": {"type": "Odd"}}',
     "t.json: tl does not know the post-processor \"Odd\""),
    ("t.json", b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "pre_tokenizer": {"type": "Split", '
               b'"pattern": {"Regex": "("}, "behavior": "Isolated"}}',
     "a pattern of the tokenizer is wrong at byte 1: missing closing parenthesis"),
]

def part(index, count, name, value, more=()):
    pairs = [pair("split.no", 2, struct.pack("<H", index)), pair("split.count", 2, struct.pack("<H", count)), *more]
    return gguf([tensor(name, [2])], pairs, struct.pack("<2f", value, value) + bytes(24))


GOOD = {"good.gguf": gguf([tensor("weight", [4]), tensor("odd", [256], kind=41, offset=32),
                           tensor("q", [32, 2], kind=8, offset=128)], data=bytes(128 + 68),
                          pairs=[pair("general.name", STRING, text("x"))]),
        "m-00001-of-00003.gguf": part(0, 3, "a", 1, [pair("general.name", STRING, text("whole"))]),
        "m-00002-of-00003.gguf": part(1, 3, "b", 2), "m-00003-of-00003.gguf": part(2, 3, "c", 3),
        "n-00001-of-00002.gguf": part(0, 2, "a", 1), "n-00002-of-00002.gguf": part(0, 2, "b", 1),
        "o-00001-of-00002.gguf": part(0, 2, "a", 1), "o-00002-of-00002.gguf": part(1, 2, "a", 1),
        "p-00001-of-00002.gguf": part(0, 2, "a", 1), "many.gguf": gguf([tensor("t", [2])], [pair("split.count", U32, u32(1 << 20))], bytes(32)),
        "alone.gguf": part(0, 2, "a", 1),
        "odd.gguf": gguf([tensor("weight", [4]), tensor("old", [64], kind=4, offset=32), tensor("new", [5], kind=77, offset=32),
                          tensor("cut", [33], kind=8, offset=64), tensor("four", [32], kind=9, offset=96)],
                         data=bytes(128 + 36)),
        "good.safetensors": safetensors(entry(), bytes(8)),
        "types.safetensors": safetensors({"four": {"dtype": "F4", "shape": [3], "data_offsets": [0, 2]},
                                          "good": {"dtype": "F32", "shape": [2], "data_offsets": [2, 10]},
                                          "large": {"dtype": "U64", "shape": [1], "data_offsets": [10, 18]}},
                                         b"ab" + struct.pack("<2fQ", 1, 2, 1 << 63)),
        "state.safetensors": safetensors({"o.lr": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                          "o.steps": {"dtype": "F32", "shape": [1], "data_offsets": [8, 12]}}, bytes(12)),
        "complex.npy": npy("<c8", (2,), bytes(16)),
        "good.json": b'{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}'}

# What is asked of files that are well, and the first two lines of the answer that count: the error and its help.
ASKED = [
    ('load_model("good.gguf").wieght', 'name', 'good.gguf has no tensor called "wieght"', 'there is "weight"'),
    ('get_tensor(load_model("good.gguf"), "qqqqqqqqqqqq")', 'name', 'good.gguf has no tensor called "qqqqqqqqqqqq"',
     'm.tensors() lists the 3 tensors of the model'),
    ('load_model("good.gguf").odd', 'dtype', 'tensor odd of good.gguf is stored as q1_0, which is not supported', None),
    ('load_model("m-00002-of-00003.gguf")', 'format', 'm-00002-of-00003.gguf is part 2 of a model in 3 files',
     'open the first, whose name ends in -00001-of-00003.gguf'),
    ('load_model("many.gguf")', 'format', 'many.gguf claims to be one of 1048576 files', None),
    ('load_model("alone.gguf")', 'format', 'alone.gguf is part 1 of a model in 2 files',
     'open the first, whose name ends in -00001-of-00002.gguf'),
    ('load_model("n-00001-of-00002.gguf")', 'format', 'n-00002-of-00002.gguf does not say that it is part 2 of 2', None),
    ('load_model("o-00001-of-00002.gguf")', 'format', 'o-00001-of-00002.gguf: two tensors of its parts are called a', None),
    ('load_model("p-00001-of-00002.gguf")', 'io', 'cannot open p-00002-of-00002.gguf: No such file or directory', None),
    ('let m = load_model("odd.gguf")\nassert_eq(m.weight, zeros([4]))\nassert_eq(len(m.tensors()), 5)\nm.old', 'dtype',
     'tensor old of odd.gguf is stored as q4_2, which was removed from GGUF',
     'the original model can be written again, as q4_0 for example'),
    ('load_model("odd.gguf").new', 'dtype', 'tensor new of odd.gguf is stored as type 77, which is unknown', None),
    ('load_model("odd.gguf").four', 'dtype', 'tensor four of odd.gguf is stored as q8_1, which is not supported', None),
    ('load_model("odd.gguf").cut', 'format',
     'tensor cut of odd.gguf has rows of 33 elements, not a multiple of the 32 of a q8_0 block', None),
    ('load_model("good.gguf").meta("general.nam")', 'key', 'good.gguf has no metadata called "general.nam"',
     'there is "general.name"'),
    ('load_model("good.gguf", dtype: int32)', 'dtype', "a model's tensors can be converted to float types, not to int32", None),
    ('save({"a": ones([2], dtype: bfloat16)}, "x.npz")', 'dtype', 'NumPy has no bfloat16[2]: convert `a` first', None),
    ('let m = load_model("types.safetensors")\nassert_eq(m.good, [1.0, 2.0])\nassert_eq([t.dtype for t in m.tensors()], '
     'list("F4", "float32", "U64"))\nm.four', 'dtype', 'tensor four of types.safetensors is stored as F4, which is not supported', None),
    ('load_model("types.safetensors").large', 'dtype', 'tensor large of types.safetensors is stored as U64, which is not supported', None),
    ('load("types.safetensors")', 'dtype', 'tensor four of types.safetensors is stored as F4, which is not supported',
     'load_model("types.safetensors") gives the others'),
    ('let d = {"good": zeros([2])}\nload_model("types.safetensors", into: d)\nassert_eq(d.good, [1.0, 2.0])\n'
     'load_model("types.safetensors", into: {"four": ones([1])})', 'dtype',
     'tensor four of types.safetensors is stored as F4, which is not supported', None),
    ('save_model({"a\\0b": ones([2])}, "x.npz")', 'value', 'the key "a\\u0000b" cannot be a name: it has a \\0 in it', None),
    ('save_model({"a": ones([2])}, "x.gguf", meta: {"k\\0": 1})', 'value', 'metadata "k\\u0000": a name must be UTF-8 without \\0', None),
    ('load_model("good.safetensors", into: {"t": ones([3])})', 'shape', 'good.safetensors: tensor `t` is float32[2], not float32[3]', None),
    ('load_model("good.safetensors", into: {"b": ones([2])})', 'name', 'good.safetensors has no tensor `b`', None),
    ('let d = {}\nd["d"] = d\nsave_model(d, "x.safetensors")', 'depth', 'this is nested too deeply: it may contain itself', None),
    ('sqrt(load_model("good.gguf").q)', 'dtype', 'sqrt cannot take q8_0[2, 32]: quantised tensors are read-only weights',
     'linear, matmul, @ and embedding take it as it is; `x as float32` makes it an ordinary tensor'),
    ('load_model("good.gguf").q.reshape([4, 16])', 'shape',
     'cannot reshape q8_0[2, 32] (64 elements) to [4, 16]: rows of blocks must stay whole', 'convert it first: `x as float32`'),
    ('load_model("good.gguf").q[:, 0:3]', 'dtype', 'cannot cut q8_0[2, 32] along dimension 1: its blocks of 32 elements lie there',
     'take whole rows, or convert it first: `x as float32`'),
    ('load_model("good.gguf").q[0][[0, 1]]', 'dtype', 'cannot cut q8_0[32] along dimension 0: its blocks of 32 elements lie there',
     'take whole rows, or convert it first: `x as float32`'),
    ('embedding(load_model("good.gguf").q.T, [0])', 'dtype', 'cannot cut q8_0[32, 2] along dimension 0: its blocks of 32 elements lie there',
     'take whole rows, or convert it first: `x as float32`'),
    ('load_model("good.gguf").q[:, [0, 1]]', 'dtype',
     'indexing beyond dimension 0 cannot take q8_0[2, 32]: quantised tensors are read-only weights', None),
    ('load_model("good.gguf").q[[0], [1]]', 'dtype',
     'indexing by several tensors cannot take q8_0[2, 32]: quantised tensors are read-only weights', None),
    ('save({"a": load_model("good.gguf").q}, "x.safetensors")', 'dtype',
     'safetensors cannot hold q8_0[2, 32]: convert `a` first', None),
    ('load_tokenizer("good.json").colour', 'name', 'a tokenizer has no field colour: it has vocab_size, bos and eos', None),
    ('let w = learnable(ones([2]))\nlearn {\n objective: sum(w)\n optimizer: sgd(lr: 0.1)\n epochs: 1\n print(optimizer.rate)\n}',
     'name', 'an optimizer has no field `rate`; it has lr', None),
    ('load("complex.npy")', 'format', 'complex.npy has NumPy\'s dtype "<c8", which tl does not have',
     'in Python: array.astype("float32"), or another type that both have'),
    ('let w = learnable(ones([2]))\nlearn {\n objective: sum(w)\n optimizer: sgd(lr: 0.1)\n epochs: 1\n'
     ' load_model("state.safetensors", into: {"o": optimizer})\n}',
     'name', 'state.safetensors has no state of an optimizer or scheduler `o`', None),
    ('let w = learnable(sum([0.5]))\nlearn {\n objective: sum(layer_norm(ones([2]), eps: w))\n optimizer: sgd(lr: 0.1)\n epochs: 1\n}',
     'gradient', 'layer_norm: eps is a plain number, through which no gradient flows', 'detach(x) says that none is wanted'),
    ('load("missing.safetensors")', 'io', 'cannot open missing.safetensors: No such file or directory', None),
]


class FileMessages(unittest.TestCase):
    def said(self, files, code, env=None):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in {**GOOD, **files}.items():
                Path(folder, name).write_bytes(content)
            result = run("-e", code, cwd=folder, env={"TL_MEMORY_CHECK": "strict", **(env or {})})
        self.assertEqual(result.status, 1, result.out + result.err)
        return result.err.splitlines()

    def check(self, name, cases, code):
        for content, message in cases:
            with self.subTest(message):
                self.assertEqual(self.said({name: content}, code)[0], "error[format]: " + message)

    def test_types_that_become_wider(self):
        def e4m3(byte):
            exponent, mantissa = byte >> 3 & 15, byte & 7
            value = (mantissa / 8 * 2.0 ** -6) if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 7)
            return -value if byte & 128 else value
        bytes8 = bytes(b for b in range(256) if b & 127 != 127)
        header = {"e4m3": {"dtype": "F8_E4M3", "shape": [2, 127], "data_offsets": [0, 254]},
                  "e5m2": {"dtype": "F8_E5M2", "shape": [4], "data_offsets": [254, 258]},
                  "u16": {"dtype": "U16", "shape": [2], "data_offsets": [258, 262]},
                  "u32": {"dtype": "U32", "shape": [2], "data_offsets": [262, 270]},
                  "nan": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [270, 271]},
                  "none": {"dtype": "U16", "shape": [0], "data_offsets": [271, 271]},
                  "u64": {"dtype": "U64", "shape": [2], "data_offsets": [271, 287]}}
        data = bytes8 + bytes([0x3C, 0xC1, 0x01, 0x7C]) + struct.pack("<2H2I", 1, 65535, 2, 2 ** 32 - 1) + b"\x7f" \
            + struct.pack("<2Q", 5, 2 ** 63 - 1)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "f.safetensors").write_bytes(safetensors(header, data))
            result = run("-e", """let m = load_model("f.safetensors")
                print(to_json(m.e4m3.reshape([-1]).to_list()))
                print(m.e5m2.to_list(), m.u16.to_list(), m.u32.to_list(), m.nan.to_list(), m.none.shape)
                print(m.e4m3.dtype, m.e5m2.dtype, m.u16.dtype, m.u32.dtype, m.u64.dtype, m.u64)""", cwd=folder)
        lines = result.out.splitlines()
        self.assertEqual(json.loads(lines[0]), [e4m3(b) for b in bytes8], result.err)
        self.assertEqual(lines[1:], ["[1.0, -2.5, 1.52587890625e-05, inf] [1, 65535] [2, 4294967295] [nan] [0]",
                                     "float16 float16 int32 int64 int64 [                  5 9223372036854775807]"])

    def test_a_file_next_to_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "data").mkdir()
            Path(folder, "data", "x.csv").write_text("1,2\n")
            Path(folder, "data", "p.tl").write_text('print(read_csv(args()[0]))')
            near = run("run", "data/p.tl", "x.csv", cwd=folder).err
            far = run("run", "data/p.tl", "y.csv", cwd=folder).err
        help_line = '  = help: paths begin at the current folder; here("x.csv") is the file next to this program'
        self.assertEqual(near.splitlines()[-1], help_line)
        self.assertNotIn("help", far)

    def test_the_largest_size_of_a_tensor(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "m.gguf").write_bytes(gguf(tensors=[tensor("t", [0, (1 << 63) - 1], 24), tensor("u", [2])], data=bytes(32)))
            result = run("-e", 'let m = load_model("m.gguf")\nprint(m.t.shape, m.u)', cwd=folder)
        self.assertEqual(result.out, "[9223372036854775807, 0] [0. 0.]\n", result.err)

    def test_shards_of_safetensors(self):
        with tempfile.TemporaryDirectory() as folder:
            result = run("-e", """
                save_model({"a": [1.0, 2.0], "b": ones([1])}, "x-1.safetensors", meta: {"format": "pt", "of": "both"})
                save_model({"c": [3.0, 4.0]}, "x-2.safetensors", meta: {"format": "tl"})
                write_file("x.json", to_json({"weight_map": {"a": "x-1.safetensors", "b": "x-1.safetensors", "c": "x-2.safetensors"}}))
                let m = load_model("x.json")
                print([t.name for t in m.tensors()], m.a, m.c, m.meta(), m.meta("of"))
                save_model(m, "one.npz", meta: {"made": 1})
                print(load_model("one.npz").c, load_model("one.npz").meta())""", "--memory-check=strict", cwd=folder)
        self.assertEqual(result.out, '["a", "b", "c"] [1. 2.] [3. 4.] {"format": "tl", "of": "both"} both\n'
                                     '[3. 4.] {"made": "1"}\n', result.err)

    def test_a_model_in_several_files(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in GOOD.items():
                if name.startswith("m-"):
                    Path(folder, name).write_bytes(content)
            result = run("-e", """let m = load_model("m-00001-of-00003.gguf")
                print([t.name for t in m.tensors()], m.a.to_list(), m.b.to_list(), m.c.to_list(), m.meta("general.name"))
                save_model(m, "one.gguf")
                let one = load_model("one.gguf")
                print(one.c.to_list(), one.meta().keys())""", cwd=folder)
        self.assertEqual(result.out, '["a", "b", "c"] [1.0, 1.0] [2.0, 2.0] [3.0, 3.0] whole\n[3.0, 3.0] ["general.name"]\n',
                         result.err)

    def test_gguf(self):
        self.check("m.gguf", GGUF, 'load_model("m.gguf")')

    def test_safetensors(self):
        self.check("s.safetensors", SAFETENSORS, 'load("s.safetensors")')

    def test_index_of_shards(self):
        self.check("i.json", INDEX, 'load_model("i.json")')

    def test_npy(self):
        self.check("a.npy", NPY, 'load("a.npy")')

    def test_npz(self):
        whole = npz([("a.npy", npy("<f4", (2,), bytes(8)))])

        def lying(at, number):
            directory = whole.index(b"PK\1\2")
            return whole[:directory + at] + struct.pack("<I", number) + whole[directory + at + 4:]
        self.check("a.npz", [(lying(20, 1 << 30), f"a.npz: member `a.npy` claims 1073741824 bytes of an archive of {len(whole)}"),
                             (lying(24, 1 << 31), "a.npz: member `a.npy` claims to become 2147483648 bytes from "
                                                  f"{len(npy('<f4', (2,), bytes(8)))}"),
                             (npz([("a.txt", b"x")]), "a.npz: member `a.txt` is not a .npy array"),
                             (whole.replace(b"(2,)", b"(9,)"), "a.npz: member `a.npy`: the array is float32[9], but has 8 bytes"),
                             ], 'load("a.npz")')

    def test_tokenizers(self):
        for name, content, message in TOKENIZERS:
            with self.subTest(message):
                self.assertEqual(self.said({name: content}, f'load_tokenizer("{name}")')[0], "error[format]: " + message)

    def test_asked_of_good_files(self):
        for code, kind, message, help_text in ASKED:
            with self.subTest(code):
                lines = self.said({}, code)
                self.assertEqual(lines[0], f"error[{kind}]: {message}")
                if help_text:
                    self.assertIn(f"  = help: {help_text}", lines)

    def test_larger_than_the_device(self):
        model = gguf([tensor("t", [1 << 20])], data=bytes(1 << 22))
        self.assertEqual(self.said({"m.gguf": model}, 'load_model("m.gguf")', {"TL_DEVICE_MEMORY_MB": "2"})[0],
                         "error[memory]: m.gguf needs 4.00 MB for its tensors, but cpu has 2.00 MB")


if __name__ == "__main__":
    unittest.main()
