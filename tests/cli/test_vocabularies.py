"""Vocabularies of GGUF files: how each kind cuts texts, and what surrounds them."""
import json
import unittest

from test_tokenizer import character_map
from tl import run_code


def letters():
    """The letters that stand for bytes in byte-level vocabularies."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(others)) for b in range(256)]


MERGES = ["1 2", "12 3", "123 4", "a b", "\u0120 ab", "\u0120 \u0120", "' S", "! \u010a"]
ENDS = ["<|end|>", "<|begin|>", "<unk>"]
BYTE_LEVEL = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": [*letters(), *dict.fromkeys(m.replace(" ", "") for m in MERGES), *ENDS],
    "tokenizer.ggml.merges": MERGES,
    "tokenizer.ggml.bos_token_id": 265, "tokenizer.ggml.eos_token_id": 264, "tokenizer.ggml.unknown_token_id": 266,
}
BYTE_LEVEL["tokenizer.ggml.token_type"] = [1] * (len(BYTE_LEVEL["tokenizer.ggml.tokens"]) - 3) + [3, 3, 2]
WORDS = {
    "tokenizer.ggml.model": "bert",
    "tokenizer.ggml.tokens": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581un", "aff", "able", "\u2581.", "\u2581cafe", "[unused1]"],
    "tokenizer.ggml.token_type": [3, 2, 3, 3, 1, 1, 1, 1, 1, 1],
    "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.seperator_token_id": 3, "tokenizer.ggml.unknown_token_id": 1,
}
LIKELIEST = {
    "tokenizer.ggml.model": "t5",
    "tokenizer.ggml.tokens": ["<pad>", "</s>", "<unk>", "\u2581", "\u2581a", "b", "ab", "\u2581ab"],
    "tokenizer.ggml.token_type": [3, 3, 2, 1, 1, 1, 1, 1],
    "tokenizer.ggml.eos_token_id": 1, "tokenizer.ggml.unknown_token_id": 2,
}
SCORED = {
    "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "\u2581", "a", "b", "ab", "\u2581ab", "<0x0A>"],
    "tokenizer.ggml.token_type": [2, 3, 3, 1, 1, 1, 1, 1, 6],
    "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
}


PRE = {}
for names, expected in {
    "default falcon": "123|4|\u0120ab|'|S|\u0120|\u0120ab|!|\u010a|",
    "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum exaone4 mpt olmo jais trillion "
    "granite-docling deepseek-llm modern-bert": "1234|\u0120ab|'|S|\u0120|\u0120ab|!|\u010a|",
    "dbrx smaug-bpe glm4 chatglm-bpe gpt-4o llama4 minimax-m2 kimi-k2 deepseek-v3 hunyuan-dense":
        "123|4|\u0120ab|'S|\u0120|\u0120ab|!\u010a|",
    "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano": "<|begin|>|123|4|\u0120ab|'S|\u0120|\u0120ab|!\u010a|",
    "tekken": "<|begin|>|1|2|3|4|\u0120ab|'S|\u0120|\u0120ab|!\u010a|",
    "roberta-bpe jina-v1-en jina-v2-code": "<|begin|>|1234|\u0120ab|'|S|\u0120|\u0120ab|!|\u010a|",
    "qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan grok-2 bailingmoe bailingmoe2 llada-moe viking":
        "1|2|3|4|\u0120ab|'S|\u0120|\u0120ab|!\u010a|",
    "starcoder refact command-r smollm codeshell exaone minerva-7b deepseek-coder":
        "1|2|3|4|\u0120ab|'|S|\u0120|\u0120ab|!|\u010a|",
    "seed-coder": "1|2|3|4|\u0120ab|'S|\u0120|\u0120ab|!|\u010a|",
    "poro-chat bloom gpt3-finnish": "1234|\u0120ab|'S|\u0120|\u0120ab|!\u010a|",
}.items():
    PRE |= dict.fromkeys(names.split(), expected)
AFTER = dict.fromkeys(["roberta-bpe", "jina-v1-en", "jina-v2-code"], "|<|end|>")


class Vocabularies(unittest.TestCase):
    def cut(self, meta, texts, scores=None):
        """For each text the pieces' ids, and what becomes of them again."""
        if scores:
            meta = {**meta, "tokenizer.ggml.scores": scores}
        result = run_code("""
            let meta = parse_json(args()[0])
            let map = "tokenizer.ggml.precompiled_charsmap"
            if meta.contains(map) { meta[map] = tensor(meta[map], uint8) }
            if meta.contains("tokenizer.ggml.scores") {
                meta["tokenizer.ggml.scores"] = tensor(meta["tokenizer.ggml.scores"], float32)
            }
            save_model({}, "v.gguf", meta: meta)
            let tok = load_model("v.gguf").tokenizer()
            for text in parse_json(args()[1]) {
                let ids = tokenize(tok, text)
                print(to_json(list(ids.to_list(), detokenize(tok, ids))))
            }""", json.dumps(meta), json.dumps(texts), options=["--memory-check=strict"])
        self.assertEqual(result.status, 0, result.err)
        return [json.loads(line) for line in result.out.splitlines()]

    def test_pre_tokenizers(self):
        words = lambda ids: "|".join(BYTE_LEVEL["tokenizer.ggml.tokens"][i] for i in ids)
        text = "1234 ab'S  ab!\n\u00e9"
        for name, expected in PRE.items():
            with self.subTest(name):
                [[ids, back]] = self.cut({**BYTE_LEVEL, "tokenizer.ggml.pre": name}, [text])
                self.assertEqual((words(ids), back), (expected + "\u00c3|\u00a9" + AFTER.get(name, ""), text))
        [[ids, _]] = self.cut(BYTE_LEVEL, [text])  # without a name
        self.assertEqual(words(ids), PRE["default"] + "\u00c3|\u00a9")

    def test_whole_words_and_composed_characters(self):
        # llama-bpe takes a word that is a piece as it is, without merges; qwen2 composes e and its accent.
        tokens = [*letters(), "zz", *ENDS]
        meta = {**BYTE_LEVEL, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": [1] * 257 + [3, 3, 2], "tokenizer.ggml.bos_token_id": 258}
        for name, text, ids in [("llama-bpe", "zz", [258, 256]), ("gpt-2", "zz", [122, 122]),
                                ("qwen2", "e\u0301", [0xC3, 0xA9]), ("modern-bert", "e\u0301", [0xC3, 0xA9]),
                                 ("gpt-2", "e\u0301", [101, 0xCC, 0x81])]:
            with self.subTest(name, text=text):
                merges = {"tokenizer.ggml.merges": ["\u0120 \u0120"]}
                self.assertEqual(self.cut({**meta, **merges, "tokenizer.ggml.pre": name}, [text])[0][0], ids)

    def test_ends_are_as_the_file_says(self):
        for flags, ids in [({}, [97]), ({"add_bos_token": True}, [265, 97]), ({"add_eos_token": True}, [97, 264]),
                           ({"add_bos_token": True, "add_eos_token": True}, [265, 97, 264])]:
            meta = {"tokenizer.ggml." + key: value for key, value in flags.items()}
            self.assertEqual(self.cut({**BYTE_LEVEL, **meta, "tokenizer.ggml.pre": "gpt-2"}, ["a"])[0][0], ids)
        scored = {**SCORED, "tokenizer.ggml.add_eos_token": True}
        self.assertEqual(self.cut(scored, ["ab"], [0] * 9)[0][0], [1, 7, 2])

    def test_special_tokens_in_texts(self):
        self.assertEqual(self.cut({**BYTE_LEVEL, "tokenizer.ggml.pre": "gpt-2"}, ["a<|end|>b<unk>"]),
                         [[[97, 264, 98, 266], "ab"]])
        self.assertEqual(self.cut(SCORED, ["ab<unk> b\n"], [0] * 9), [[[1, 7, 0, 3, 3, 5, 8], "ab b\n"]])

    def test_merges_of_scored_pieces(self):
        # By scores "ab" is made first, then "\u2581ab"; the merges in the file know only another way.
        scores = [0, 0, 0, 0, 0, 0, 2, 1, 0]
        self.assertEqual(self.cut(SCORED, ["ab"], scores)[0][0], [1, 7])
        merges = {"tokenizer.ggml.merges": ["a b"]}
        self.assertEqual(self.cut({**SCORED, **merges}, ["ab"], scores)[0][0], [1, 3, 6])

    def test_ranked_pieces(self):
        """Gemma 4's: spaces are marks, none is put in front, merges go over words, bytes are the fallback; scores do not count."""
        tokens = ["<pad>", "<eos>", "<bos>", "<unk>", "<turn|>", "</s>", "\u2581", "a", "b", "\n", "ab", "\u2581ab", "\n\n", "ab\u2581ab", "<0xC3>", "<0xA9>"]
        meta = {"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.tokens": tokens,
                "tokenizer.ggml.token_type": [3, 3, 3, 2, 3, 4] + [1] * 8 + [6, 6],
                "tokenizer.ggml.merges": ["a b", "\u2581 ab", "ab \u2581ab", "\n \n"], "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.eos_token_id": 1}
        rows = self.cut(meta, ["ab", " ab", "ab ab", "a\n\n\nb", "\u00e9", "<turn|>ab"], [9.0 - i for i in range(16)])
        self.assertEqual(rows, [[[2, 10], "ab"], [[2, 11], " ab"], [[2, 13], "ab ab"], [[2, 7, 12, 9, 8], "a\n\n\nb"], [[2, 14, 15], "\u00e9"],
                                [[2, 4, 10], "ab"]])
        self.assertEqual(self.cut({**meta, "tokenizer.ggml.add_space_prefix": True}, ["ab"])[0], [[2, 11], "ab"])

    def test_word_pieces(self):
        rows = self.cut(WORDS, ["Unaffable.", "xyz Caf\u00e9", "[unused1]", ""])
        self.assertEqual(rows, [[[2, 4, 5, 6, 7, 3], "unaffable."], [[2, 1, 8, 3], "cafe"], [[2, 1, 1, 1, 3], ""],
                                [[2, 3], ""]])
        self.assertEqual(self.cut({**WORDS, "tokenizer.ggml.add_sep_token": False, "tokenizer.ggml.add_bos_token": False},
                                  ["un"])[0][0], [4])

    def test_word_pieces_with_capitals(self):
        """A vocabulary that has them all is of a model that tells them apart; accents stay too."""
        letters = ["\u2581" + chr(65 + i) for i in range(26)]
        more = [*letters, "\u2581Un", "\u2581caf\u00e9"]
        meta = {**WORDS, "tokenizer.ggml.tokens": WORDS["tokenizer.ggml.tokens"] + more,
                "tokenizer.ggml.token_type": WORDS["tokenizer.ggml.token_type"] + [1] * len(more)}
        rows = self.cut(meta, ["Unaffable", "unaffable", "caf\u00e9 cafe A"])
        self.assertEqual([row[0] for row in rows], [[2, 36, 5, 6, 3], [2, 4, 5, 6, 3], [2, 37, 8, 10, 3]])
        del meta["tokenizer.ggml.tokens"][10], meta["tokenizer.ggml.token_type"][10]  # without A
        self.assertEqual(self.cut(meta, ["Unaffable"])[0][0], [2, 4, 5, 6, 3])

    def test_likeliest_pieces(self):
        scores = [0, 0, 0, -2, -3, -3, -3.5, -5]
        rows = self.cut(LIKELIEST, ["ab", "abb ab", "axb", "  ab"], scores)
        self.assertEqual(rows, [[[7, 1], "ab"], [[7, 5, 7, 1], "abb ab"], [[4, 2, 5, 1], "ab"], [[3, 3, 7, 1], "  ab"]])
        more = {"tokenizer.ggml.remove_extra_whitespaces": True,
                "tokenizer.ggml.precompiled_charsmap": list(character_map({"\u00e4": "a", "\u3000": " "}))}
        self.assertEqual([row[0] for row in self.cut({**LIKELIEST, **more}, ["  \u00e4b \u3000 ab "], scores)],
                         [[7, 7, 1]])



if __name__ == "__main__":
    unittest.main()
