"""What a model says does not depend on the way: alone or in a batch, by guesses, from kept rows, on any number of
threads, from mapped or interleaved weights. Random combinations; TL_TEST_WAYS=1000 tries so many."""
import json
import os
import random
import tempfile
import unittest
from pathlib import Path

from tl import fixture, run

COUNT = int(os.environ.get("TL_TEST_WAYS", "40"))
MODELS = ["stories260K", "mini-f16", "mini-q8_0", "mini-q4_0", "mini-q4_k_m"]
PROMPTS = ["Once", "The dog", "Once upon a time there was", "A", "Tim and Lily went to the park. Tim", "red red red red"]

# One process tries several ways for one model: threads and layout are its environment.
PROGRAM = """
let m = load_model("%s")
for way in parse_json(read_file("ways.json")) {
    let texts = way.texts
    let answers = generate(m, texts, way.tokens, temperature: way.temperature, top_k: way.top_k, seed: way.seed,
                           speculate: way.speculate, logprobs: 1%s)
    print(to_json([(a.ids, [l.logprob for l in a.logprobs]) for a in answers]))
}
print(to_json(forward(m, tokenize(m.tokenizer(), "The dog ran")).to_list()))
"""


class Invariance(unittest.TestCase):
    def run_ways(self, model, ways, environment, cache):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "ways.json").write_text(json.dumps(ways))
            Path(folder, "p.tl").write_text(PROGRAM % (model, cache))
            result = run("run", "p.tl", cwd=folder, env=environment, timeout=120 + 3 * COUNT)
            self.assertEqual(result.status, 0, result.err)
            *answers, logits = result.out.splitlines()
            return [json.loads(line) for line in answers], logits

    def test_ways(self):
        choose = random.Random(int(os.environ.get("TL_TEST_SEED", "1")))
        each = max(1, COUNT // (len(MODELS) * 4))
        for name in MODELS:
            model = fixture(self, f"models/{name}.gguf")
            settings = [{"temperature": choose.choice([0, 0.7, 1.5]), "top_k": choose.choice([5, 400]), "seed": choose.randint(0, 99),
                         "tokens": choose.choice([1, 7, 20])} for _ in range(each)]
            alone = [{**s, "texts": [p], "speculate": 0} for s in settings for p in PROMPTS]
            want, logits = self.run_ways(model, alone, {"TL_THREADS": "1", "TL_REPACK": "load"}, "")
            known = {(i // len(PROMPTS), PROMPTS[i % len(PROMPTS)]): answer[0] for i, answer in enumerate(want)}
            for environment in [{"TL_THREADS": "2", "TL_REPACK": "lazy"}, {"TL_THREADS": "1", "TL_REPACK": "0"},
                                {"TL_THREADS": "2", "TL_REPACK": "load"}, {"TL_THREADS": "2", "TL_REPACK": "0"}]:
                ways = [{**s, "texts": [choose.choice(PROMPTS) for _ in range(choose.choice([1, 2, 3, 9, 16]))],
                         "speculate": choose.choice([0, 0, 1, 4])} for s in settings]
                answers, again = self.run_ways(model, ways, environment, CACHES[choose.randint(0, len(CACHES) - 1)])
                self.assertEqual(logits, again, (name, environment))
                for i, (way, answer) in enumerate(zip(ways, answers)):
                    for text, got in zip(way["texts"], answer):
                        self.assertEqual(got, known[i, text], (name, environment, way))


CACHES = ["", ', cache: "kept"']

if __name__ == "__main__":
    unittest.main()
