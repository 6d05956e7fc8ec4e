"""Fast products, whose activations have 8 bits: how exact they are, and that nothing else changes them."""
import json
import math
import os
import tempfile
import unittest

from tl import fixture, run

LOGITS = """
let m = load_model(args()[0], fast: args()[1] == "fast")
print(m.fast())
for ids in parse_json(args()[2]) { print(to_json(forward(m, ids)[-1].to_list())) }
"""

WAYS = """
let m = load_model(args()[0], fast: true)
let texts = list("Once", "The dog", "Once upon a time there was", "A", "red red red")
let together = generate(m, texts, 9, temperature: 0, logprobs: 1)
for i, text in texts {
    let alone = generate(m, text, 9, temperature: 0, logprobs: 1)
    assert_eq(alone.text, together[i].text)
    assert_eq([l.logprob for l in alone.logprobs], [l.logprob for l in together[i].logprobs])
}
print(to_json([[l.logprob for l in answer.logprobs] for answer in together]))
"""

OPERATION = """
let m = load_model(args()[0])
let (x, w) = (randn([3, 512], seed: 1), get_tensor(m, "q4_k"))
let (usual, fast) = (linear(x, w), linear(x, w, fast: true))
assert(any(usual != fast))
assert_about_eq(fast / max(abs(usual)), usual / max(abs(usual)), 2e-2)
assert_eq(linear(x, w as float32), linear(x, w as float32, fast: true))
"""

KEPT = """
fn cached(fast, cache) {
    let m = load_model(args()[0], fast: fast, cache: cache)
    generate(m, "Once upon a time", 3, temperature: 0, cache: "kept", details: true).cached_tokens
}
print(cached(true, float16), cached(false, float16), cached(false, float32), cached(true, float16) > 0)
print(load_model(args()[0], cache: float32).cache_dtype(), load_model(args()[0], dtype: float32).cache_dtype())
"""


def error(found, exact):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(found, exact)) / len(exact))


class Fast(unittest.TestCase):
    def says(self, program, *arguments, **options):
        result = run("-e", program, *arguments, **options)
        self.assertEqual(result.status, 0, result.err)
        return result.out.splitlines()

    def logits(self, model, fast, examples, **env):
        ids = json.dumps([example["tokens"] for example in examples])
        says, *lines = self.says(LOGITS, model, fast, ids, env=env)
        return says, [json.loads(line) for line in lines]

    def test_errors(self):
        with open(fixture(self, "models/expected.json")) as file:
            expected = json.load(file)
        for name in ("mini-q8_0", "mini-q4_0", "mini-q4_k_m"):
            model, examples = fixture(self, f"models/{name}.gguf"), expected[name]
            exact = sum((e["exact_last_logits"] for e in examples), [])
            peer = error(sum((e["last_logits"] for e in examples), []), exact)
            says, usual = self.logits(model, "", examples)
            self.assertEqual(says, "false")
            self.assertLessEqual(error(sum(usual, []), exact), peer / 10, name)
            says, wide = self.logits(model, "", examples, TL_CACHE="float32")
            self.assertLessEqual(error(sum(wide, []), exact), peer / 30, name)
            if os.environ.get("TL_DEVICE", "cpu") == "cpu":
                self.assertNotEqual(wide, usual)
            says, fast = self.logits(model, "fast", examples)
            self.assertEqual(says, "true")
            self.assertLessEqual(error(sum(fast, []), exact), peer, name)
            self.assertNotEqual(fast, usual)
            self.assertEqual(self.logits(model, "", examples, TL_FAST="1"), ("true", fast))

    def test_the_same_bits_in_every_way(self):
        for name in ("mini-q8_0", "mini-q4_k_m"):
            model = fixture(self, f"models/{name}.gguf")
            ways = [self.says(WAYS, model, env=env) for env in (
                {"TL_THREADS": "1", "TL_REPACK": "load"}, {"TL_THREADS": "2", "TL_REPACK": "0"}, {"TL_THREADS": "2"})]
            self.assertEqual(ways[0], ways[1])
            self.assertEqual(ways[0], ways[2])

    def test_an_operation_of_its_own(self):
        self.says(OPERATION, fixture(self, "models/quant-blocks.gguf"))

    def test_kept_texts_are_others(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.says(KEPT, fixture(self, "models/mini-q8_0.gguf"), cwd=folder), ["0 0 0 true", "float32 float32"])


if __name__ == "__main__":
    unittest.main()
