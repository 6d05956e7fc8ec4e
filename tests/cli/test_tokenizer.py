"""Tokenizers of Hugging Face's tokenizer.json against the ids of the library."""
import base64
import itertools
import json
import random
import struct
import tempfile
import unicodedata
import unittest
from pathlib import Path

from tl import fixture, run

ENCODE = """
let tok = load_tokenizer(args()[0])
for text in parse_json(read_file(args()[1])) {
    let ids = tokenize(tok, text)
    print(to_json([ids.to_list(), detokenize(tok, ids)]))
}
"""

BYTE_LEVEL = {
    "added_tokens": [{"id": 9, "content": "<|endoftext|>", "special": True}],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "Ġ": 3, "ab": 4, "Ġab": 5, "abc": 6, "Ã": 7, "©": 8},
              "merges": ["a b", "Ġ ab", ["ab", "c"]]},
}
WORD_PIECE = {
    "added_tokens": [{"id": i, "content": w, "special": True} for i, w in enumerate(["[UNK]", "[CLS]", "[SEP]"])],
    "normalizer": {"type": "BertNormalizer", "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing",
                       "single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}},
                                  {"SpecialToken": {"id": "[SEP]"}}],
                       "special_tokens": {"[CLS]": {"ids": [1]}, "[SEP]": {"ids": [2]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100,
              "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##aff": 4, "##able": 5, ".": 6, "cafe": 7}},
}
UNIGRAM = {
    "added_tokens": [],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    "model": {"type": "Unigram", "unk_id": 0,
              "vocab": [["<unk>", 0], ["▁", -2], ["▁a", -3], ["b", -3], ["ab", -3.5], ["▁ab", -5], ["c", -4]]},
}


def character_map(replacements):
    """A map of characters as SentencePiece compiles it: a double array over the sequences' bytes, then the texts."""
    tree, texts = {}, b""
    for sequence, text in replacements.items():
        node = tree
        for byte in sequence.encode():
            node = node.setdefault(byte, {})
        node[-1] = len(texts)
        texts += text.encode() + b"\0"
    units, bases = {0: 0}, itertools.count(256, 256)

    def place(at, node):
        base = next(bases)  # 256 places of its own; the first is the value's
        units[at] |= (base ^ at) << 10
        for byte, child in node.items():
            if byte == -1:
                units[at] |= 1 << 8
                units[base] = 1 << 31 | child
            else:
                units[base ^ byte] = byte
        for byte, child in node.items():
            if byte != -1:
                place(base ^ byte, child)

    place(0, tree)
    array = [units.get(i, 0) for i in range(max(units) + 1)]
    return struct.pack(f"<I{len(array)}I", 4 * len(array), *array) + texts


def encode(case, path, texts):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "texts.json").write_text(json.dumps(texts))
        result = run("-e", ENCODE, path, Path(folder, "texts.json"))
    case.assertEqual(result.status, 0, result.err)
    return [json.loads(line) for line in result.out.splitlines()]


class Tokenizers(unittest.TestCase):
    def made(self, tokenizer, texts):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "tokenizer.json")
            path.write_text(json.dumps(tokenizer))
            return encode(self, path, texts)

    def refused(self, tokenizer):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "tokenizer.json")
            path.write_text(tokenizer if isinstance(tokenizer, str) else json.dumps(tokenizer))
            result = run("-e", "load_tokenizer(args()[0])", path)
        self.assertEqual(result.status, 1, result.err)
        return result.err

    def test_reference_ids(self):
        items = json.loads(fixture(self, "tokenizers/expected.json").read_text())
        for name in ("tinyllama", "tinyllama-legacy"):
            rows = encode(self, fixture(self, f"tokenizers/{name}.json"), [item["text"] for item in items])
            for item, (ids, text) in zip(items, rows, strict=True):
                self.assertEqual(ids, item["ids_with_bos"], (name, item["text"]))
                self.assertEqual(text, item["text"], name)

    def test_prefix_after_special_tokens(self):
        for name, prefixed in (("tinyllama", 0), ("tinyllama-legacy", 2)):
            code = """let tok = load_tokenizer(args()[0])
                      print(tokenize(tok, "<s>a</s>b", add_special: false).to_list(), tok.vocab_size, tok.bos, tok.eos)"""
            result = run("-e", code, fixture(self, f"tokenizers/{name}.json"))
            ids = [1, 263, 2, 289] if prefixed == 2 else [1, 29874, 2, 29890]
            self.assertEqual(result.out, f"{ids} 32000 1 2\n", name)

    def test_byte_level(self):
        rows = self.made(BYTE_LEVEL, ["ab abc", "é", "<|endoftext|>ab"])
        self.assertEqual(rows, [[[4, 5, 2], "ab abc"], [[7, 8], "é"], [[9, 4], "ab"]])

    def test_word_piece(self):
        rows = self.made(WORD_PIECE, ["Unaffable.", "xyz Café", "Un\ufffdaff\u200bable."])
        self.assertEqual(rows, [[[1, 3, 4, 5, 6, 2], "unaffable."], [[1, 0, 7, 2], "cafe"], [[1, 3, 4, 5, 6, 2], "unaffable."]])

    def test_bytes_before_the_words(self):
        # As normalizer ByteLevel only writes bytes as letters: the pattern sees letters, no space comes in front.
        rows = self.made({**BYTE_LEVEL, "normalizer": {"type": "ByteLevel"},
                          "pre_tokenizer": {"type": "Split", "pattern": {"String": "\u0120"}, "behavior": "Isolated"}},
                         ["ab abc", "\u00e9"])
        self.assertEqual(rows, [[[4, 3, 6], "ab abc"], [[7, 8], "\u00e9"]])

    def test_spaces_at_ends(self):
        for left, right, ids in [(True, True, [4]), (True, False, [4, 3]), (False, True, [5]), (False, False, [5, 3])]:
            normalizer = {"type": "Strip", "strip_left": left, "strip_right": right}
            [[found, _]] = self.made({**BYTE_LEVEL, "normalizer": normalizer}, [" ab "])
            self.assertEqual(found, ids, normalizer)

    def test_unicode_forms_of_long_texts(self):
        # They are made part by part: none may end between characters that change each other.
        letters = sorted(set(range(256)))
        printable = [b for b in letters if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174]
        names = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(sorted(set(letters) - set(printable)))}
        source = random.Random(1)
        bases = ["e", "a", "\u00e9", "\u1100\u1161\u11a8", "\uac00\u11a8", "\ufb01", "\u2460", "\u0930", "\u09c7\u09be", "\u4e00", "\uf900",
                 "\u3131", "\uff76\uff9e", "\U0001f600", "\u05d0", " ", "\u4e8c"]
        marks = ["\u0301", "\u0308", "\u0327", "\u093c", "\u05b8", "\u0323"]
        text = "".join(source.choice(bases) + "".join(source.choices(marks, k=source.randrange(9))) for _ in range(40000))
        self.assertGreater(len(text.encode()), 4 << 16)
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            tokenizer = {**BYTE_LEVEL, "added_tokens": [], "normalizer": {"type": form},
                         "model": {"type": "BPE", "vocab": {names[b]: b for b in letters}, "merges": []}}
            wanted = unicodedata.normalize(form, text)
            [[ids, _]] = self.made(tokenizer, [text])
            self.assertTrue(bytes(ids) == wanted.encode(), form)

    def test_edges_of_added_tokens(self):
        added = [{"id": 9, "content": "<l>", "special": True, "lstrip": True},
                 {"id": 10, "content": "<r>", "special": True, "rstrip": True},
                 {"id": 11, "content": "abba", "special": False, "single_word": True}]
        tokenizer = {**BYTE_LEVEL, "added_tokens": added}
        for text, ids in [("a \n<l> b", [0, 9, 3, 1]), ("a <r>\u00a0\t b", [0, 3, 10, 1]), ("  <l>", [9]),
                          ("<r>  ", [10]), ("a <r> <l>b", [0, 3, 10, 9, 1]), ("abba", [11]), ("b abba.", [1, 3, 11]),
                          ("abbaa", [4, 1, 0, 0]), ("cabba", [2, 4, 1, 0]), ("\u00e9abba", [7, 8, 4, 1, 0])]:
            with self.subTest(text):
                self.assertEqual(self.made(tokenizer, [text])[0][0], ids)

    def test_precompiled_characters(self):
        tokenizer = {**UNIGRAM, "normalizer": {"type": "Precompiled", "precompiled_charsmap":
                                               base64.b64encode(character_map({"\u00e4": "a", "\ufb00": "ab", "\u00e4\u0301": "c"})).decode()}}
        rows = self.made(tokenizer, ["\u00e4b", "\ufb00", "\u00e4\u0301", "b\u00e4\u0301\u00e4b"])
        self.assertEqual(rows, [[[5], "ab"], [[5], "ab"], [[1, 6], "c"], [[1, 3, 6, 4], "bcab"]])
        self.assertEqual(self.made({**UNIGRAM, "normalizer": {"type": "Precompiled", "precompiled_charsmap": None}},
                                   ["ab"])[0][0], [5])

    def test_unigram(self):
        # "▁ab": "▁" + "ab" is -5.5, "▁a" + "b" -6, "▁ab" -5.
        rows = self.made(UNIGRAM, ["ab", "abc ab", "axb"])
        self.assertEqual(rows, [[[5], "ab"], [[5, 6, 5], "abc ab"], [[2, 0, 3], "a<unk>b"]])
        # A letter that only longer pieces begin with may be unknown: "xb" + unknown is -26, unknown + "by" -19.
        longer = {**UNIGRAM, "model": {**UNIGRAM["model"], "vocab": [*UNIGRAM["model"]["vocab"], ["xb", -8], ["by", -1]]}}
        self.assertEqual(self.made(longer, ["axb", "axby"]), [[[2, 7], "axb"], [[2, 0, 8], "a<unk>by"]])

    def test_wrong_files(self):
        self.assertIn("is not a tokenizer: line 1", self.refused("{"))
        self.assertIn('does not know the model "Magic"', self.refused({"model": {"type": "Magic", "vocab": {}}}))
        self.assertIn("token id 1000000000000 cannot be",
                      self.refused({"model": {"type": "BPE", "vocab": {"a": 10 ** 12}, "merges": []}}))
        self.assertIn("a merge names a piece that is not in model.vocab",
                      self.refused({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}))
        self.assertIn('does not know the step "Odd"', self.refused({**UNIGRAM, "normalizer": {"type": "Odd"}}))


if __name__ == "__main__":
    unittest.main()
