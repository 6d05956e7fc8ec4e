"""GGUF files that tl writes, read by a reader of our own after the format's document, and what
save_model refuses."""
import base64
import hashlib
import json
import struct
import tempfile
import unittest
from pathlib import Path

from test_tokenizer import BYTE_LEVEL, UNIGRAM, WORD_PIECE, character_map
from tl import fixture, run, run_code

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
NAMES = {0: "u8", 1: "i8", 2: "u16", 3: "i16", 4: "u32", 5: "i32", 6: "f32", 7: "bool", 8: "string",
         9: "array", 10: "u64", 11: "i64", 12: "f64"}

# Of each type: how many bytes, and their sha256.
REFERENCE = {
    "q2_k": (1008, "c54addd48286a015fe318fb3ef54fc3e97785653ae9e7b68602f05b035c8972b"),
    "q3_k": (1320, "057350b8237bc9ebefc4b937408d3ae192de59b33e6ca0434bb66f5e648d2bd3"),
    "q4_k": (1728, "1d88933e6d07e02e5b1192ebe2b3a2228bb279ee41e66397ee2f7706ca968621"),
    "q5_k": (2112, "14e1ca18c8fbb2f41c9279e09210f051ae8108e4cac4d5fb8da0f6ddf45ff329"),
    "q6_k": (2520, "f96944aba8a0df29577730f98307faac55bf0b20dfe2ed61bcc99af0a0b68ba0"),
    "q4_0": (1728, "21f78b4664413a1c6702291f338211a08a5b08957385b74099fe302ce523844b"),
    "q4_1": (1920, "186dcd0cea92ea257a0936013bc801ce00ed3797f3fd1aae6f09e02818d39dc4"),
    "q5_0": (2112, "943e939bf3ff73bb84ea6239bc8e748eb3a22d99511523dd30bb871a05ee59a2"),
    "q5_1": (2304, "f078c3a06c3fe89901f4073ddce065f5a5de4c1b9c73317edf0dd527b058196c"),
    "q8_0": (3264, "64d431af7eb0d2dccb20c2c1d383213d40fb64b67389e2fb0432e02799e12c86"),
}


PLAIN = {"type": "BertNormalizer", "lowercase": False}  # capitals stay


class Gguf:
    """The whole file, as docs/gguf.md of the ggml project says."""
    def __init__(self, data):
        self.data, self.at = data, 0
        assert data[:4] == b"GGUF" and struct.unpack_from("<I", data, 4) == (3,)
        tensors, pairs = struct.unpack_from("<QQ", data, 8)
        self.at = 24
        self.meta = {}
        for _ in range(pairs):
            key = self.string()
            self.meta[key] = self.value(self.number("I"))
        self.tensors = {}
        for _ in range(tensors):
            name = self.string()
            dims = [self.number("Q") for _ in range(self.number("I"))]
            self.tensors[name] = (dims, self.number("I"), self.number("Q"))
        alignment = self.meta.get("general.alignment", ("u32", 32))[1]
        self.begin = -(-self.at // alignment) * alignment
        assert not any(data[self.at:self.begin]) and len(data) % alignment == 0
        assert all(offset % alignment == 0 for _, _, offset in self.tensors.values())

    def number(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize(code)
        return value

    def string(self):
        length = self.number("Q")
        self.at += length
        return self.data[self.at - length:self.at].decode()

    def value(self, kind):
        if kind == 8:
            return "string", self.string()
        if kind == 9:
            kind, count = self.number("I"), self.number("Q")
            return NAMES[kind] + "[]", [self.value(kind)[1] for _ in range(count)]
        return NAMES[kind], self.number(SCALARS[kind])

    def bytes(self, name, count):
        offset = self.begin + self.tensors[name][2]
        return self.data[offset:offset + count]


def written(code, name="a.gguf"):
    """The file that a program writes."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.tl").write_text(code)
        result = run("run", "--memory-check=strict", "program.tl", cwd=folder)
        assert result.status == 0, result.err
        assert not list(Path(folder).glob("*.part"))
        return Gguf(Path(folder, name).read_bytes())


class Export(unittest.TestCase):
    def test_types_of_metadata(self):
        file = written("""
            save_model({}, "a.gguf", meta: {
                "general.architecture": "llama", "count": 7, "negative": -3, "big": 5000000000, "low": -5000000000,
                "number": 1.5, "on": true, "u8": tensor(3, uint8), "i16": tensor([1, -2], int16), "one": tensor(7),
                "f64": tensor(0.1, float64), "half": tensor([0.5], float16), "ints": [1, -2], "wide": [1, 5000000000],
                "numbers": [0.5, 2.0], "words": ["a", "b\u00e9"], "flags": list(true, false), "empty": zeros([0]),
                "mask": [true, false], "mixed": list(1, 2.5)
            })""")
        self.assertEqual(file.tensors, {})
        self.assertEqual(file.meta, {
            "general.architecture": ("string", "llama"), "count": ("u32", 7), "negative": ("i32", -3),
            "big": ("u64", 5000000000), "low": ("i64", -5000000000), "number": ("f32", 1.5),
            "on": ("bool", True), "u8": ("u8", 3), "i16": ("i16[]", [1, -2]), "one": ("u32", 7),
            "f64": ("f64", 0.1), "half": ("f32[]", [0.5]), "ints": ("i32[]", [1, -2]),
            "wide": ("i64[]", [1, 5000000000]), "numbers": ("f32[]", [0.5, 2.0]),
            "words": ("string[]", ["a", "b\u00e9"]), "flags": ("bool[]", [True, False]),
            "empty": ("f32[]", []), "mask": ("bool[]", [True, False]), "mixed": ("f32[]", [1.0, 2.5])})

    def test_tensors(self):
        file = written("""
            let turned = transpose(arange(6).reshape([2, 3])) as float32
            save_model({"a": {"weight": turned}, "list": list([1, 2] as int8, [0.5] as bfloat16)}, "a.gguf",
                       meta: {"general.alignment": 64})""")
        self.assertEqual(file.tensors, {"a.weight": ([2, 3], 0, 0), "list.0": ([2], 24, 64),
                                        "list.1": ([1], 30, 128)})
        self.assertEqual(struct.unpack("<6f", file.bytes("a.weight", 24)), (0, 3, 1, 4, 2, 5))
        self.assertEqual(file.bytes("list.0", 2), b"\1\2")
        self.assertEqual(file.bytes("list.1", 2), struct.pack("<H", 0x3F00))

    def test_quantised_matrices(self):
        code = """
            save_model({"w": arange(64).reshape([2, 32]) / 32.0 - 0.5, "v": [1.0, 2.0], "n": [3] as int32},
                       "a.gguf", dtype: %s)"""
        file = written(code % "q8_0")
        self.assertEqual({name: entry[1] for name, entry in file.tensors.items()}, {"w": 8, "v": 0, "n": 26})
        self.assertEqual(file.meta, {"general.file_type": ("u32", 7), "general.quantization_version": ("u32", 2)})
        scale, *levels = struct.unpack("<e32b", file.bytes("w", 34))
        self.assertAlmostEqual(scale, 0.5 / 127, places=5)
        self.assertEqual(levels[0], -127)
        for name, number, meta in [("float16", 1, 1), ("bfloat16", 30, 32), ('"q4_0"', 2, 2), ("q5_1", 7, 9)]:
            file = written(code % name)
            self.assertEqual(file.tensors["w"][1], number)
            self.assertEqual(file.tensors["v"][1], 0)
            self.assertEqual(file.meta["general.file_type"], ("u32", meta))

    def test_blocks_are_the_reference_s(self):
        """Digests of what ggml's reference makes of these numbers, compiled without fused multiplications: of several
        sizes, around 0 and not, and zeros."""
        state, numbers = 1, []
        for i in range(3072):
            state = (state * 1103515245 + 12345) % 2 ** 31
            middle = 2000 if i % 512 < 256 else 500
            numbers.append(0.0 if i // 256 == 3 else ((state >> 7) % 4001 - middle) / 1024 * 2.0 ** (i // 256 - 6))
        with tempfile.TemporaryDirectory() as folder:
            header = json.dumps({"w": {"dtype": "F32", "shape": [12, 256], "data_offsets": [0, 12288]}}).encode()
            Path(folder, "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<3072f", *numbers))
            for name, (size, digest) in REFERENCE.items():
                result = run("-e", f'save_model(load("w.safetensors"), "w.gguf", dtype: {name})', cwd=folder)
                self.assertEqual(result.status, 0, result.err)
                blocks = Gguf(Path(folder, "w.gguf").read_bytes()).bytes("w", size)
                self.assertEqual(hashlib.sha256(blocks).hexdigest(), digest, name)

    def test_types_chooses_by_name_and_shape(self):
        file = written("""
            save_model({"a": {"weight": ones([2, 32])}, "b": {"weight": ones([3, 32])}, "v": ones([4]), "i": [[1]] as int32}, "a.gguf",
                       types: fn(name, shape) { if shape[0] == 2 { "q8_0" } else { float16 } })""")
        self.assertEqual({name: entry[1] for name, entry in file.tensors.items()}, {"a.weight": 8, "b.weight": 1, "v": 0, "i": 26})
        for gives, expected in [("iq4_nl", "error[dtype]: tensors cannot be stored as iq4_nl: there are "), ("5", "error[type]: "),
                                ('panic("no")', "error[panic]: no")]:
            result = run("-e", f'save_model({{"a": ones([2, 32])}}, "a.gguf", types: fn(n, s) {{ {gives} }})')
            self.assertTrue(result.status == 1 and result.err.startswith(expected), result.err)

    def test_a_model_passes_unchanged(self):
        path = fixture(self, "models/stories260K.gguf")
        with tempfile.TemporaryDirectory() as folder:
            code = f'save_model(load_model("{path}"), "a.gguf")\n' \
                   'save_model(load_model("a.gguf"), "a.gguf")'  # over the file that is being read
            result = run("-e", code, cwd=folder)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(Path(folder, "a.gguf").read_bytes(), path.read_bytes())

    def test_a_requantised_model_answers_as_well(self):
        path = fixture(self, "models/mini-f16.gguf")
        expected = json.loads(fixture(self, "models/expected.json").read_text())["mini-q8_0"][0]
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "a.gguf")
            result = run("-e", f'save_model(load_model("{path}"), "{copy}", dtype: q8_0)')
            self.assertEqual(result.status, 0, result.err)
            result = run("run", "tests/cli/logits.tl", copy, expected["prompt"], 1)
            worst = max(abs(a - b) for a, b in
                        zip(json.loads(result.out.splitlines()[0]), expected["exact_last_logits"], strict=True))
            self.assertLess(worst, 0.1)  # a few levels in a thousand go the other way

    def test_tokenizers(self):
        path = fixture(self, "models/stories260K.gguf")
        result = run_code(f"""
            let m = load_model("{path}")
            save_model({{}}, "a.gguf", tokenizer: m.tokenizer(), meta: {{"general.name": "words only"}})
            let (one, other) = (m.tokenizer(), load_tokenizer("a.gguf"))
            let text = "Once upon a time, <s> a llama: \u00e9\U0001F999"
            assert_eq(tokenize(one, text), tokenize(other, text))
            print(other.vocab_size, other.bos, other.eos, detokenize(other, tokenize(other, text)))
            save_model(m, "b.gguf", tokenizer: other)
            let (a, b) = (m.meta(), load_model("b.gguf").meta())
            print([k for k in a.keys() if not b.contains(k)], [k for k in b.keys() if not a.contains(k)],
                  all([a[k] == b[k] for k in a.keys() if b.contains(k)]))
        """)
        self.assertEqual(result.err, "")
        self.assertEqual(result.out.splitlines()[1],
                         '["tokenizer.ggml.seperator_token_id", "tokenizer.ggml.padding_token_id"] '
                         '["tokenizer.ggml.add_space_prefix", "tokenizer.ggml.add_bos_token", '
                         '"tokenizer.ggml.add_eos_token"] true')
        self.assertEqual(result.out.splitlines()[0], "512 1 2 Once upon a time,  a llama: \u00e9\U0001F999")

    def test_checkpoints(self):
        result = run_code("""
            let w = learnable([1.0, 2.0])
            let opt = adam(lr: 0.5)
            learn { objective: sum(w * w), optimizer: opt, epochs: 3 }
            save_model({"w": w, "opt": opt}, "a.gguf")
            let again = learnable([0.0, 0.0])
            let fresh = adam(lr: 7.0)
            load_model("a.gguf", into: {"w": again, "opt": fresh})
            assert_eq(again, w)
            let one = learn { objective: sum(w * w), optimizer: opt, epochs: 3 }
            let two = learn { objective: sum(again * again), optimizer: fresh, epochs: 3 }
            assert_eq(one.losses, two.losses)
            print(fresh.lr)
        """, options=["--quiet", "--memory-check=strict"])
        self.assertEqual((result.out, result.status), ("0.5\n", 0), result.err)

    def test_refusals(self):
        for code, expected in [
            ('save_model({"a": ones([2])}, "a.gguf", dtype: iq4_nl)',
             "error[dtype]: tensors cannot be stored as iq4_nl: there are float64, float32, float16, bfloat16, "
             "q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1, q4_0, q3_k and q2_k"),
            ('save_model({"a": ones([2])}, "a.gguf", meta: {1: 2})',
             "error[type]: the names of metadata are strings, not 1"),
            ('save_model({"a": ones([2])}, "a.gguf", meta: {"k": none})',
             'error[type]: metadata "k" is of kind none; it can be a string, a number, a bool or a list of them'),
            ('save_model({"a": ones([2])}, "a.gguf", meta: {"k": list("a", 1)})',
             'error[type]: metadata "k": element 1 is of kind int, but the first of kind string'),
            ('save_model({"a": ones([2])}, "a.gguf", meta: {"k": ones([2, 2])})',
             'error[type]: metadata "k" is float32[2, 2]; it can be a number or one row of them'),
            ('save_model({"a": ones([2])}, "a.safetensors", dtype: float16)',
             "error[value]: a.safetensors: only .gguf files are written with tokenizer, dtype or types"),
            ('save_model({"a": ones([2])}, "a.txt")',
             "error[value]: a.txt: the names of files of tensors end in .safetensors, .npz, .gguf or .npy"),
            ('save_model({"a": full([1, 32], 1e300)}, "a.gguf", dtype: q8_0)',
             "error[value]: tensor `a` has numbers that q8_0 cannot hold: nan, inf or too large"),
            ('save_model({"a": ones([2])}, "none/a.gguf")',
             "error[io]: cannot write none/a.gguf: No such file or directory"),
        ]:
            with self.subTest(code), tempfile.TemporaryDirectory() as folder:
                result = run("-e", code, cwd=folder)
                self.assertEqual(result.err.splitlines()[0], expected)
                self.assertEqual(result.status, 1)
                self.assertEqual(list(Path(folder).iterdir()), [])

    def same_ids(self, tokenizer, texts, kind):
        """A tokenizer.json and the GGUF file that is made of it give the same ids and texts."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "t.json")
            path.write_text(tokenizer if isinstance(tokenizer, str) else json.dumps(tokenizer))
            result = run("-e", f"""
                let one = load_tokenizer("t.json")
                save_model({{}}, "a.gguf", tokenizer: one)
                let m = load_model("a.gguf")
                let other = m.tokenizer()
                assert_eq(m.meta("tokenizer.ggml.model"), "{kind}")
                assert_eq(list(one.vocab_size, one.bos, one.eos), list(other.vocab_size, other.bos, other.eos))
                for text in parse_json(args()[0]) {{
                    let ids = tokenize(one, text)
                    assert_eq(tokenize(other, text).to_list(), ids.to_list(), text)
                    assert_eq(detokenize(other, ids, skip_special: false), detokenize(one, ids, skip_special: false))
                }}
                print("same")
            """, json.dumps(texts), cwd=folder)
        self.assertEqual((result.out, result.status), ("same\n", 0), result.err)

    def test_vocabularies_of_hugging_face(self):
        texts = ["", "ab abc", " a  b", "abba ab<s>a</s>b", "caf\u00e9 Unaffable.", "x[SEP]y", "1234 it's\n\n  b\u4e00\u1ea1"]
        for name in ("tinyllama", "tinyllama-legacy"):
            # What comes from GGUF leaves out the prefix after each special token, as llama.cpp does.
            self.same_ids(fixture(self, f"tokenizers/{name}.json").read_text(),
                          [t for t in texts if name == "tinyllama" or "<s>" not in t], "llama")
        added = [{"id": 12, "content": "abba", "special": False, "single_word": True},
                 {"id": 10, "content": "<s>", "special": True, "rstrip": True}]
        self.same_ids({**BYTE_LEVEL, "added_tokens": added}, texts, "gpt2")  # the id 11 is a gap
        for pattern, more in [("\\p{N}{1,3}", {"ignore_merges": True}), ("\\p{N}", {})]:
            regex = ("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" + pattern +
                     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+")
            steps = [{"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated"},
                     {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]
            self.same_ids({**BYTE_LEVEL, "normalizer": None if more else {"type": "NFC"},
                           "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
                           "model": {**BYTE_LEVEL["model"], **more}}, texts, "gpt2")
        self.same_ids(WORD_PIECE, texts, "bert")
        charsmap = base64.b64encode(character_map({"\u00e9": "ab"})).decode()
        self.same_ids({**UNIGRAM, "normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap}}, texts, "t5")
        runs = [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, {"type": "Strip"}]
        self.same_ids({**UNIGRAM, "normalizer": {"type": "Sequence", "normalizers": runs}}, texts, "t5")

    def test_word_pieces_with_capitals(self):
        vocabulary = {**WORD_PIECE["model"]["vocab"], **{chr(65 + i): 8 + i for i in range(26)}, "Un": 34, "caf\u00e9": 35}
        capitals = {**WORD_PIECE, "normalizer": PLAIN, "model": {**WORD_PIECE["model"], "vocab": vocabulary}}
        self.same_ids(capitals, ["Unaffable unaffable.", "caf\u00e9 cafe A\u4e00b"], "bert")

    def test_vocabularies_that_gguf_has_no_name_for(self):
        begin = "error[value]: this tokenizer cannot be written to a GGUF file: "
        cuts = {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, BYTE_LEVEL["pre_tokenizer"]]}
        for tokenizer, why in [
            ({**BYTE_LEVEL, "pre_tokenizer": cuts}, "the format has no name for how it cuts texts"),
            ({**BYTE_LEVEL, "normalizer": {"type": "NFKD"}}, "the format has no name for how it cuts texts"),
            ({**BYTE_LEVEL, "model": {**BYTE_LEVEL["model"], "byte_fallback": True}},
             "the format has no name for how it cuts texts"),
            ({**WORD_PIECE, "normalizer": None}, "it does not prepare texts as BERT does"),
            ({**WORD_PIECE, "normalizer": PLAIN}, "it does not prepare texts as BERT does"),
            ({**WORD_PIECE, "model": {**WORD_PIECE["model"], "max_input_chars_per_word": 7}},
             "its pieces are not marked as those of BERT are"),
            ({**UNIGRAM, "normalizer": {"type": "Lowercase"}}, "it does not prepare texts as T5 does"),
            ({**BYTE_LEVEL, "post_processor": {"type": "TemplateProcessing", "single": [
                {"SpecialToken": {"id": "a"}}, {"SpecialToken": {"id": "b"}}, {"Sequence": {"id": "A"}}]}},
             "it puts more than one token before or after a text"),
        ]:
            with self.subTest(why), tempfile.TemporaryDirectory() as folder:
                Path(folder, "t.json").write_text(json.dumps(tokenizer))
                result = run("-e", 'save_model({}, "a.gguf", tokenizer: load_tokenizer("t.json"))', cwd=folder)
                self.assertEqual(result.err.splitlines()[0], begin + why)


if __name__ == "__main__":
    unittest.main()
