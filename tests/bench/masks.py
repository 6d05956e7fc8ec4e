#!/usr/bin/env python3
"""Masks of constraints over a vocabulary of 128 000 tokens: 200 random schemas, three walks each. Needs the target
bench_masks (cmake --build build/release --target bench_masks)."""
import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
from test_constraints import Schemas  # noqa: E402

LETTERS = "etaoinshrdlcumwfgypbvk"
SIGNS = ['"', '":', '",', '{"', '"}', "}", "]", "[", "{", ",", ":", "\\", "\\n", "\\\"", ". ", "()", "=>", "\n", "\n  ", "\t"]


def pieces(count):
    """Bytes, words with and without a blank, numbers, signs, words of other scripts: about as a real vocabulary mixes them."""
    choose = random.Random(7)
    known = {f"<0x{byte:02X}>": 6 for byte in range(256)}
    for sign in SIGNS:
        known.setdefault(sign.replace(" ", "▁"), 1)
    for number in range(1000):
        known.setdefault(str(number), 1)
    scripts = [(LETTERS, 0.7), ("абвгдежзиклмнопрст", 0.1), ("的一是不了人我在有他这中大来上", 0.1), ("éüöäñçßåøłž" + LETTERS, 0.1)]
    while len(known) < count - 3:
        letters = choose.choices([s for s, _ in scripts], [w for _, w in scripts])[0]
        size = min(14, max(1, int(choose.gauss(6, 3))))
        word = "".join(letters[min(len(letters) - 1, int(choose.expovariate(1 / 6)))] for _ in range(size))
        word = choose.choice(["▁", "▁", ""]) + (word.capitalize() if choose.random() < 0.2 else word) + choose.choice([""] * 12 + SIGNS[:6])
        known.setdefault(word, 1)
    return known


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--tokens", type=int, default=128000)
    parser.add_argument("--schemas", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        known = pieces(options.tokens)
        Path(folder, "tokens.json").write_text(json.dumps([["<unk>", "<s>", "</s>", *known], [2, 3, 3, *known.values()]]))
        Path(folder, "schemas").write_text("".join(json.dumps(Schemas(i).root()) + "\n" for i in range(options.schemas)))
        code = """let (tokens, types) = parse_json(read_file("tokens.json"))
            save_model({"a": zeros([1])}, "v.gguf", meta: {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": tokens,
                "tokenizer.ggml.token_type": types, "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2,
                "tokenizer.ggml.unknown_token_id": 0})"""
        subprocess.run([f"{options.build}/tl", "-e", code], cwd=folder, check=True)
        subprocess.run([f"{options.build}/bench/bench_masks", "v.gguf", "schemas"], cwd=folder, check=True)


if __name__ == "__main__":
    main()
