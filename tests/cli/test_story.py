"""The story example against the reference: texts, tokens and logits."""
import json
import unittest

from tl import ROOT, fixture, run

STORY = "examples/06_story.tl"
# How far last logits may be from exact arithmetic. Activations stay floats, so this holds for
# quantised weights too.
LOGITS_BOUND = {"stories260K": 1e-3, "mini-f16": 1e-3, "mini-q8_0": 1e-3, "mini-q4_0": 1e-3,
                "mini-q4_k_m": 1e-3}


def expected(case):
    return json.loads(fixture(case, "models/expected.json").read_text())


class Story(unittest.TestCase):
    every_device = True

    def test_texts(self):
        model = fixture(self, "models/stories260K.gguf")
        for item in expected(self)["stories260K"]:
            result = run("run", "--memory-check=strict", STORY, model, item["prompt"], 80)
            self.assertEqual(result.status, 0, result.err)
            self.assertEqual(result.out, item["prompt"] + item["text"] + "\n")
            self.assertIn("change +0.00 MB", result.err)
            self.assertIn("no leak", result.err)

    def test_logits_and_greedy_tokens(self):
        for name, bound in LOGITS_BOUND.items():
            model = fixture(self, f"models/{name}.gguf")
            for item in expected(self)[name]:
                count = len(item["exact_greedy"])
                result = run("run", "tests/cli/logits.tl", model, item["prompt"], count)
                self.assertEqual(result.status, 0, result.err)
                first, *tokens = result.out.splitlines()
                worst = max(abs(a - b) for a, b in zip(json.loads(first), item["exact_last_logits"], strict=True))
                self.assertLessEqual(worst, bound, name)
                # A step whose two best logits are closer than the bound may go either way, and so
                # may all that follow it.
                for token, want, gap in zip(tokens, item["exact_greedy"], item["exact_gap"]):
                    if gap < 2 * bound:
                        break
                    self.assertEqual(int(token), want, name)

    def test_the_project_has_a_model_of_its_own(self):
        result = run("run", "--memory-check=strict", STORY)
        self.assertEqual(result.status, 0, result.err)
        own = ROOT / "examples/data/tales.gguf"
        self.assertLess(own.stat().st_size, 2 << 20)
        text = run("-e", 'let begin = "There was once a frog named Rosa"\n'
                         f'print(begin + generate(load_model("{own}"), begin, 400, temperature: 0))')
        self.assertEqual(result.out, text.out, text.err)
        self.assertIn(" ".join(result.out.split()), " ".join((ROOT / "README.md").read_text().split()))

    def test_a_missing_model_is_an_error_with_a_place(self):
        result = run("run", STORY, "no-such.gguf", "Once")
        self.assertEqual(result.status, 1)
        self.assertIn("error[io]: ", result.err)
        self.assertIn("no-such.gguf", result.err)
        self.assertIn("06_story.tl:", result.err)


if __name__ == "__main__":
    unittest.main()
