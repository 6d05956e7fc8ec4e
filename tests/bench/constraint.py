#!/usr/bin/env python3
"""What a live logic program costs as a constraint on the texts of a model of TinyLlama's shape with 32 000 tokens: processor
milliseconds a token on one thread with it and without, the difference of a long and a short text, the least of several in turn.
Nothing here is a test.

    tests/bench/constraint.py [--tl build/release/tl] [--repeat 4]
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import masks
import synthetic

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = """
entity Person
relation Parent(x: Person, y: Person)
Ancestor(X, Z) <- Parent(X, Z)
Ancestor(X, Z) <- Ancestor(X, Y), Parent(Y, Z)
for i in 0..40 {{ Parent(f"name{{i}}", f"name{{i + 1}}") }}
let m = load_model("m.gguf")
let kin = grammar("root ::= claim (\\"; \\" claim){{{more}}}", holes: {{"claim": fn() {{
    [f"{{a.X}} before {{a.Y}}" for a in Ancestor(X, Y)?]
}}}})
let count = [0]
generate(m, "a", {most}, temperature: 1.0, seed: 1, on_token: fn(x) {{ count[0] += 1 }}{constraint})
print(count[0])
"""


def words(count):
    known = masks.pieces(count)
    return {"tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", *known],
            "tokenizer.ggml.scores": [0.0] * (len(known) + 3), "tokenizer.ggml.token_type": [2, 3, 3, *known.values()],
            "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0}


def spent(tl, folder, **options):
    """Processor seconds, and how many tokens came."""
    Path(folder, "p.tl").write_text(CODE.format(**options))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([tl, "run", "--quiet", "--device", "cpu", "p.tl"], cwd=folder, capture_output=True, text=True,
                          env={**os.environ, "TL_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, int(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tl", type=lambda path: str(Path(path).resolve()), default=str(ROOT / "build/release/tl"))
    parser.add_argument("--repeat", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        synthetic.write_llama(Path(folder, "m.gguf"), "q4_0", synthetic.TINYLLAMA, words)
        ways = {"constrained": [], "plain": []}
        for _ in range(options.repeat):
            for more in (0, 6):
                seconds, count = spent(options.tl, folder, more=more, most=2000, constraint=", constraint: kin")
                ways["constrained"].append((count, seconds))
                seconds, same = spent(options.tl, folder, more=more, most=count, constraint="")
                assert same == count
                ways["plain"].append((count, seconds))
        for name, runs in ways.items():
            short, long = min(runs)[0], max(runs)[0]
            least = [min(seconds for count, seconds in runs if count == wanted) for wanted in (short, long)]
            print(f"{name:12} {1000 * (least[1] - least[0]) / (long - short):7.2f} ms a token, texts of {short} and {long} tokens")


if __name__ == "__main__":
    main()
