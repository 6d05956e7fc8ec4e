"""The pages of std/models: logits against the same networks written in double."""
import json
import math
import os
import shutil
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

import language_models
from language_models import SIZE, Gemma2, Mixtral, Net, Phi3, Qwen2, Qwen3, file_of, plain_frequencies
from tl import TL, run

IDS = [1, 7, 3, 10, 2, 2, 9, 4, 0, 6, 8, 5]

# The logits after each id: at once, and by steps of several sizes.
PROGRAM = """
let m = load_model("a.gguf")
let ids = %s
print(to_json(m.forward(ids).to_list()))
import "std/models/%s.tl" as page
let net = page.open(m)
let rows = list()
let at = 0
for size in list(3, 1, 1, 4, 1, 2) {
    let part = ids[at:at + size]
    if len(part) == 0 { break }
    for row in net.logits(net.forward(part)).to_list() { rows.push(row) }
    at += size
}
print(to_json(rows))
"""


def logits(net, ids=IDS):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.gguf").write_bytes(file_of(net.meta, net.weights))
        Path(folder, "program.tl").write_text(PROGRAM % (ids, net.name))
        result = run("run", "--memory-check=strict", "program.tl", cwd=folder)
        assert result.status == 0 and "warning" not in result.err, result.err
        return [json.loads(line) for line in result.out.splitlines()]


class Pages(unittest.TestCase):
    def near(self, rows, expected):
        self.assertEqual(len(rows), len(expected))
        for row, want in zip(rows, expected):
            self.assertEqual(len(row), len(want))
            for a, b in zip(row, want):
                self.assertAlmostEqual(a, b, delta=2e-4)

    def same(self, net, ids=IDS, by_steps=True):
        expected = net.logits(ids)
        whole, steps = logits(net, ids)
        self.near(whole, expected)
        if by_steps:
            self.near(steps, expected)
        return steps

    def test_llama(self):
        self.same(Net(1))

    def test_llama_scaled(self):
        net = Net(2, {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0})
        net.frequencies = [a / 4 for a in plain_frequencies()]
        self.same(net)

    def test_llama_with_divisors(self):
        net = Net(3)
        net.weights["rope_freqs.weight"] = [1.0, 2.5, 8.0]
        net.frequencies = [a / b for a, b in zip(plain_frequencies(), [1.0, 2.5, 8.0])]
        self.same(net)

    def test_llama_by_yarn(self):
        factor, context, base = 4.0, 64, 10000.0
        net = Net(4, {"rope.scaling.type": "yarn", "rope.scaling.factor": factor, "rope.scaling.attn_factor": 1.5,
                      "rope.scaling.original_context_length": context, "rope.scaling.yarn_beta_fast": 4.0})

        def pair(rotations):
            return SIZE * math.log(context / (rotations * 2 * math.pi)) / (2 * math.log(base))
        low, high = max(0, math.floor(pair(4.0))), min(SIZE - 1, math.ceil(pair(1.0)))
        net.frequencies = []
        for i, frequency in enumerate(plain_frequencies()):
            kept = 1 - min(1, max(0, (i - low) / max(0.001, high - low)))
            net.frequencies.append(frequency * kept + frequency / factor * (1 - kept))
        net.magnitude = 1.5 * (1 + 0.1 * math.log(factor))
        self.same(net)

    def test_experts(self):
        self.same(Mixtral(5))

    def test_quantised_experts(self):
        """The chosen experts' blocks are read where they lie: as if all were float32."""
        with tempfile.TemporaryDirectory() as folder:
            code = """
                import "std/models/llama.tl" as page
                fn matrix(shape) { ({"weight": randn(shape) / 4.0}) }
                seed(3)
                let net = {"token_embd": matrix([8, 64]), "output_norm": {"weight": ones([64])}, "blk": list({
                    "attn_norm": {"weight": ones([64])}, "ffn_norm": {"weight": ones([64])},
                    "attn_q": matrix([64, 64]), "attn_k": matrix([32, 64]), "attn_v": matrix([32, 64]),
                    "attn_output": matrix([64, 64]), "ffn_gate_inp": matrix([4, 64]), "ffn_gate_exps": matrix([4, 96, 64]),
                    "ffn_up_exps": matrix([4, 96, 64]), "ffn_down_exps": matrix([4, 64, 96]),
                })}
                save_model(net, "q.gguf", dtype: "q8_0", meta: {
                    "general.architecture": "llama", "llama.block_count": 1, "llama.embedding_length": 64,
                    "llama.attention.head_count": 4, "llama.expert_count": 4, "llama.expert_used_count": 3,
                })
                let m = load_model("q.gguf")
                assert_eq(str(m.blk[0].ffn_up_exps.weight.dtype), "q8_0")
                assert_about_eq(m.forward([1, 2, 3, 4]), load_model_f32("q.gguf").forward([1, 2, 3, 4]), 5e-3)
                let (one, many) = (page.open(m), page.open(m))
                let by_one = [one.forward([id]) for id in 0..8]
                assert_eq(concat(by_one, 0), many.forward(arange(8))) // a row by itself has the bits that it has among others
                print("near")"""
            result = run("-e", code, cwd=folder, env={"TL_MEMORY_CHECK": "strict"})
            self.assertEqual((result.out, result.status), ("near\n", 0), result.err)

    def test_qwen2(self):
        self.same(Qwen2(6))

    def test_qwen3(self):
        self.same(Qwen3(7))

    def test_gemma2(self):
        self.same(Gemma2(8))

    def test_more_architectures(self):
        for number, name in enumerate(["Gemma", "Gemma3", "Qwen3Moe", "Qwen2Moe", "SmolLM3", "Granite", "Olmo2", "GPT2", "Phi2",
                                       "StarCoder2", "StableLM"]):
            with self.subTest(name):
                self.same(getattr(language_models, name)(20 + number))

    def test_gemma4(self):
        for kind in ("", "tokens", "experts"):
            with self.subTest(kind):
                self.same(language_models.Gemma4(40, kind))

    def test_gemma3n(self):
        self.same(language_models.Gemma3n(41))

    def test_adapters_of_layers_that_share_keys(self):
        """Gradients reach keys and values through every layer that reads them."""
        net = language_models.Gemma3n(43)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.gguf").write_bytes(file_of(net.meta, net.weights))
            result = run("-e", """
                import "std/lora.tl"
                let m = load_model("a.gguf", cache: float32)
                seed(2)
                let lora = Lora::new(m, rank: 2, names: list("attn_q", "attn_k", "attn_v"))
                assert(not ("blk.5.attn_k" in lora.parts) and "blk.5.attn_q" in lora.parts)
                for b, pair in lora.parts { lora.parts[b] = (pair[0], learnable(randn(pair[1].shape()) * 0.3)) }
                let weights = randn([7, 11])
                fn loss() { sum(forward(lora.on(m), [1, 3, 5, 7, 2, 0, 9]) * weights) }
                backward(loss())
                for b in list("blk.3.attn_k", "blk.4.attn_v", "blk.6.attn_q") {
                    let (down, up) = lora.parts[b]
                    let (step, gradient) = (randn(up.shape()) * 0.0005, up.grad())
                    fn moved(by) { lora.parts[b] = (down, detach(up) + by); loss() as float }
                    let change = moved(step) - moved(-step)
                    lora.parts[b] = (down, up)
                    assert_about_eq(tensor([change]), tensor([2.0 * (sum(gradient * step) as float)]), 0.02 * abs(change) + 1e-4)
                }
                print("near")""", cwd=folder, env={"TL_MEMORY_CHECK": "strict"})
            self.assertEqual((result.out, result.status), ("near\n", 0), result.err)

    def test_states_in_place_of_attention(self):
        for name in ("Qwen35", "Qwen35Moe", "Qwen3Next", "Mamba2", "GraniteHybrid", "NemotronH", "FalconH1"):
            with self.subTest(name):
                self.same(getattr(language_models, name)(44))
        self.same(language_models.GraniteHybrid(45, rotates=0))

    def test_texts_that_are_kept_as_states(self):
        """A text goes on from its states, alone or among others, from a cache, a copy, or a file; taken back it is computed anew."""
        for net in (language_models.Qwen35(46), language_models.NemotronH(47)):
            with self.subTest(net.name), tempfile.TemporaryDirectory() as folder:
                Path(folder, "a.gguf").write_bytes(file_of(net.meta, net.weights))
                result = run("-e", """
                    let m = load_model("a.gguf", cache: float32)
                    let texts = list(list(1, 3, 5), list(2, 4, 6, 8, 10, 1, 3), list(7))
                    let alone = [generate(m, text, max_tokens: 6, temperature: 0) for text in texts]
                    assert_eq(generate(m, texts, max_tokens: 6, temperature: 0), alone)
                    assert_eq(generate(m, texts[1], max_tokens: 6, temperature: 0, speculate: 4), alone[1])
                    let whole = texts[1] + alone[1]

                    let cache = KVCache::of(m)
                    assert_eq(generate(m, texts[1], max_tokens: 6, temperature: 0, cache: cache), alone[1])
                    let copy = cache.fork()
                    let more = generate(m, whole + list(5), max_tokens: 4, temperature: 0)
                    assert_eq(generate(m, whole + list(5), max_tokens: 4, temperature: 0, cache: cache), more)
                    assert_eq(generate(m, whole + list(5), max_tokens: 4, temperature: 0, cache: copy), more)
                    assert_eq(generate(m, texts[0], max_tokens: 6, temperature: 0, cache: copy), alone[0]) // another text
                    let rows = cache.len()
                    assert_eq(cache.truncate(rows).len(), rows)
                    assert_eq(cache.truncate(rows - 1).len(), 0)

                    for k in 0..2 {
                        let kept = generate(m, texts[1], max_tokens: 6, temperature: 0, cache: "kept", details: true)
                        assert_eq(kept["ids"], alone[1])
                    }
                    let on = generate(m, whole + list(5), max_tokens: 4, temperature: 0, cache: "kept", details: true)
                    assert_eq(on["ids"], more)
                    assert(on["cached_tokens"] >= len(texts[1]), str(on["cached_tokens"]))
                    let other = generate(m, texts[1][:6] + list(9), max_tokens: 4, temperature: 0, cache: "kept", details: true)
                    assert_eq(other["cached_tokens"], 0)
                    assert_eq(other["ids"], generate(m, texts[1][:6] + list(9), max_tokens: 4, temperature: 0))
                    print("as alone")""", cwd=folder, env={"TL_MEMORY_CHECK": "strict"})
                self.assertEqual((result.out, result.status), ("as alone\n", 0), result.err)

    def test_llama4(self):
        for stretch in (4, 5, 64):
            with self.subTest(stretch=stretch):
                self.same(language_models.Llama4(42, stretch))

    def refused(self, net):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a.gguf").write_bytes(file_of(net.meta, net.weights))
            return run("-e", 'load_model("a.gguf").forward([1])', cwd=folder).err.splitlines()[0]

    def test_what_no_page_computes(self):
        self.assertEqual(self.refused(Mixtral(5, {"expert_gating_func": 9})),
                         "error[value]: <model a.gguf, 23 tensors> scores experts by the function 9; 1 to 3 are supported")
        falcon = language_models.StarCoder2(5, {"attention.max_alibi_bias": 8.0})
        falcon.meta = {key.replace("starcoder2", "falcon"): "falcon" if value == "starcoder2" else value for key, value in falcon.meta.items()}
        self.assertEqual(self.refused(falcon), "error[value]: <model a.gguf, 36 tensors> has scores that grow with positions, "
                         "which are not supported")

    def test_more_layers_than_the_file_has(self):
        """The count of layers is a claim; a layer without experts looks for those of others in the file."""
        net = Mixtral(5, {"block_count": 2 ** 32 - 1})
        for name in ("gate_inp", "gate_exps", "up_exps", "down_exps"):
            del net.weights[f"blk.0.ffn_{name}.weight"]
        Net.add_feed_forward(net, "blk.0.")
        self.assertEqual(self.refused(net), 'error[name]: a.gguf has no tensor called "blk.2.attn_norm.weight"')

    def test_phi3(self):
        """A text beyond the short context is computed as if it had been long from its beginning."""
        net = Phi3(9)
        self.same(net, IDS[:8])
        steps = self.same(net, IDS, by_steps=False)
        self.near(steps[:5], net.logits(IDS[:5]))
        self.near(steps[9:], net.logits(IDS)[9:])

    def program(self, code, files, env=None, path=TL):
        """What a program says next to these files and a small model."""
        with tempfile.TemporaryDirectory() as folder:
            net = Net(1)
            net.meta["general.architecture"] = "mine"
            Path(folder, "a.gguf").write_bytes(file_of({**net.meta, "mine.context_length": 20}, net.weights))
            for name, text in files.items():
                Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
                Path(folder, name).write_text(text)
            Path(folder, "program.tl").write_text(code)
            variables = {**os.environ, "NO_COLOR": "1", "TL_MEMORY_CHECK": "strict", **(env or {})}
            return subprocess.run([path, "run", "program.tl"], cwd=folder, env=variables, capture_output=True, text=True)

    def test_a_page_of_the_user(self):
        """It lies next to the script or in a folder of TL_PATH; the last id decides what comes next."""
        page = """
            struct Mine { asked: int }
            fn open(m: model) { Mine { asked: 0 } }
            impl Mine {
                fn forward(self, ids) {
                    self.asked += len(ids)
                    one_hot((ids + self.asked) % 7, 7) as float32
                }
                fn logits(self, x) { x }
            }"""
        code = """
            let m = load_model("a.gguf")
            print(generate(m, [1, 2], 5, temperature: 0))
            print(argmax(m.forward([1, 2, 3]), dim: 1).to_list())"""
        for name, env in (("models/mine.tl", {}), ("lib/models/mine.tl", {"TL_PATH": "/nowhere:lib"})):
            result = self.program(code, {name: page}, env)
            self.assertEqual((result.stdout, result.returncode), ("[4, 0, 4, 2, 1]\n[4, 5, 6]\n", 0), result.stderr)

    def test_pages_that_are_wrong(self):
        """The page's own place is shown."""
        run_it = 'generate(load_model("a.gguf"), [1], 2)'
        for page, expected in [
            (None, 'error[value]: a.gguf has the architecture "mine"; known are arcee, bert, bloom, chatglm, '),
            ("let a = 1", "error[name]: models/mine.tl declares no function open(m: model)"),
            ("fn open(m: model) { 3 }", "error[name]: the page's open gives 3, which has no method `forward`"),
            ("fn open(m: model) { unknown(m) }", "error[name]: unknown function `unknown`\n --> models/mine.tl:1:21"),
            ("fn open(m: model { }", "error[syntax]: "),
            ("fn open(m: model) { panic(\"no\") }", "error[panic]: no\n --> models/mine.tl:1:21"),
            ("panic(\"top\")\nfn open(m: model) { 3 }", "error[panic]: top\n --> models/mine.tl:1:1"),
            ("struct S { a: int }\nfn open(m: model) { S { a: 1 } }\nimpl S { fn forward(self, x) { exit(5) }\nfn logits(self, x) { x } }", ""),
        ]:
            with self.subTest(page):
                result = self.program(run_it, {"models/mine.tl": page} if page else {})
                self.assertTrue(result.stderr.startswith(expected), result.stderr)
                self.assertEqual(result.returncode, 5 if expected == "" else 1)
        self.assertIn("= help: a file models/NAME.tl next to the script or in a folder of TL_PATH computes the "
                      "architecture NAME\n", self.program(run_it, {}).stderr)

    def test_a_name_that_leads_elsewhere(self):
        page = "struct S { a: int }\nfn open(m: model) { print(\"run\") }"
        code = """
            save_model({"a": zeros([1])}, "b.gguf", meta: {"general.architecture": "../mine"})
            load_model("b.gguf").forward([1])"""
        result = self.program(code, {"mine.tl": page, "models/x.tl": ""})
        self.assertEqual(result.stdout, "")
        self.assertIn('error[value]: b.gguf has the architecture "../mine"; known are ', result.stderr)

    def test_an_interrupt_ends_the_page(self):
        page = """
            struct S { a: int }
            fn open(m: model) { S { a: 1 } }
            impl S {
                fn forward(self, x) { eprint("begun"); loop { let y = x + 1 } }
                fn logits(self, x) { x }
            }"""
        with tempfile.TemporaryDirectory() as folder:
            net = Net(1)
            Path(folder, "a.gguf").write_bytes(file_of({**net.meta, "general.architecture": "slow"}, net.weights))
            Path(folder, "models").mkdir()
            Path(folder, "models/slow.tl").write_text(page)
            with subprocess.Popen([TL, "-e", 'load_model("a.gguf").forward([1])'], cwd=folder, text=True,
                                  stderr=subprocess.PIPE) as process:
                self.assertEqual(process.stderr.readline(), "begun\n")
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)
                self.assertEqual(process.returncode, 130)

    def test_they_are_in_the_program(self):
        """A copy of tl alone, without a folder std, still has them and the rest of std."""
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(TL, folder)
            for name, want in (("llama", Net(1)), ("gemma2", Gemma2(8))):
                code = f"""
                    import "std/metrics.tl"
                    print(accuracy([[0.0, 1.0]], [1]))
                    print(to_json(load_model("b.gguf").forward([1, 7, 3]).to_list()))"""
                Path(folder, "b.gguf").write_bytes(file_of(want.meta, want.weights))
                Path(folder, "p.tl").write_text(code)
                result = subprocess.run([copy, "run", "p.tl"], cwd=folder, capture_output=True, text=True)
                self.assertEqual(result.returncode, 0, result.stderr)
                self.near(json.loads(result.stdout.splitlines()[1]), want.logits([1, 7, 3]))

    def test_every_page_takes_texts_together(self):
        """Batches, guesses and texts kept on disk have the bits of a text alone; activations have their names."""
        code = """
            let m = load_model("b.gguf")
            let prompts = list([1, 7, 3], [2], [9, 4, 9, 4, 9, 4, 9, 4, 9], [5, 5, 5, 5], [1, 2, 3, 4, 5, 6, 7])
            fn say(p, more) { generate(m, p, 12, temperature: 0.8, seed: 4, logprobs: 1, speculate: more) }
            let alone = [say(p, 0) for p in prompts]
            assert_eq(say(prompts, 0), alone)
            assert_eq([say(p, 3) for p in prompts], alone)
            for again in 0..2 {
                let kept = generate(m, prompts, 12, temperature: 0.8, seed: 4, logprobs: 1, cache: "kept")
                assert_eq([a.ids for a in kept], [a.ids for a in alone])
                assert_eq([[l.logprob for l in a.logprobs] for a in kept], [[l.logprob for l in a.logprobs] for a in alone])
            }
            for name in list("token_embd", "blk.1.attn_norm", "blk.1.attn_output", "blk.1.ffn_norm", "blk.1.ffn_out", "blk.1.out", "output_norm") {
                let seen = tap(m, name)(prompts[0])
                assert_eq(len(seen), 3)
                assert_eq(forward(hook(m, name, fn(x) { x * 1.0 }), prompts[0]), forward(m, prompts[0]))
                assert(any(forward(hook(m, name, fn(x) { x * 0.0 }), prompts[0]) != forward(m, prompts[0])))
            }
            print("same")"""
        for net in (Net(1), Mixtral(5), Qwen2(6), Qwen3(7), Gemma2(8), Phi3(9), Net(10, {"attention.sliding_window": 4})):
            with self.subTest(net.name), tempfile.TemporaryDirectory() as folder:
                Path(folder, "b.gguf").write_bytes(file_of(net.meta, net.weights))
                result = run("-e", code, cwd=folder, env={"TL_MEMORY_CHECK": "strict"})
                self.assertEqual((result.out, result.status), ("same\n", 0), result.err[:2000])

    def test_a_page_without_a_cache(self):
        """It goes on with one text; what needs to go back is refused."""
        page = """
            struct Own { rows: int }
            fn open(m: model) -> Own { Own { rows: 0 } }
            impl Own {
                fn forward(self, ids) { self.rows += len(ids); ones([len(ids), 4]) * self.rows }
                fn logits(self, x) { concat([x, x], 1) * arange(8) }
            }"""
        code = """
            save_model({"a": zeros([1])}, "b.gguf", meta: {"general.architecture": "own", "own.context_length": 6})
            let m = load_model("b.gguf")
            print(generate(m, [1, 2], 3, temperature: 0, speculate: 2))
            generate(m, [1, 2], 9, temperature: 0, shift: true)"""
        result = self.program(code, {"models/own.tl": page})
        self.assertEqual(result.stdout, "[7, 7, 7]\n", result.stderr)
        self.assertIn("error[value]: the page of b.gguf has no field cache: KVCache, so that a text can only go on\n",
                      result.stderr)

    def test_in_a_session(self):
        """A page outlives the line that first needed it."""
        lines = """let m = load_model("a.gguf")
a = argmax(m.forward([1, 2])[-1]) as int
panic("x")
b = argmax(m.forward([1, 2])[-1]) as int
a == b
"""
        with tempfile.TemporaryDirectory() as folder:
            net = Net(1)
            Path(folder, "a.gguf").write_bytes(file_of(net.meta, net.weights))
            result = run("repl", stdin=lines.encode(), cwd=folder, env={"TL_MEMORY_CHECK": "strict"})
            self.assertIn("true\n", result.out, result.err)
            self.assertEqual(result.status, 0, result.err)


if __name__ == "__main__":
    unittest.main()
