"""Generation as values: samplers, batches, hooks, taps, adapters, and that what is said never depends on the way."""
import unittest

from test_generate import program
OPEN = 'let m = load_model("a.gguf")\n'


class Generation(unittest.TestCase):
    def says(self, body, expected, change=""):
        result = program(OPEN + body, change)
        self.assertEqual((result.out, result.status), (expected, 0), result.err)

    def fails(self, cases, change=""):
        for body, expected, *more in cases:
            with self.subTest(body):
                result = program(OPEN + body, change)
                self.assertEqual(result.status, 1, result.out)
                self.assertEqual(result.err.splitlines()[0], expected)
                for line in more:
                    self.assertIn(line, result.err)

    def test_samplers(self):
        self.says("""
            assert_eq(generate(m, "ab", 9, samplers: list(fn(l) { argmax(l) })), generate(m, "ab", 9, temperature: 0))
            assert_eq(generate(m, "ab", 9, samplers: list(temperature(1.5), top_k(3), top_p(0.8)), seed: 4),
                      generate(m, "ab", 9, temperature: 1.5, top_k: 3, top_p: 0.8, seed: 4))
            let calls = list()
            let chain = list(fn(l) { calls.push(len(l)); l }, fn(l) { l * 0.0 }, fn(l) { 3 }, fn(l) { panic("after the choice") })
            print(generate(m, "ab", 3, samplers: chain), calls)
            print(top_k(40), min_p(0.1)([1.0, 9.0])[0] as float, len(typical_p(0.9)([1.0, 1.0])))
            print(repetition_penalty(2.0)([1.0, 4.0], [1]))
            print(generate(m, "ab", 6, samplers: list(repetition_penalty(1e9), fn(l) { argmax(l) }), details: true).ids.count(3) <= 1)
        """, "aaa [8, 8, 8]\n<sampler top_k(40)> -inf 2\n[1. 2.]\ntrue\n")

    def test_refusals_of_samplers(self):
        self.fails([
            ('generate(m, "ab", samplers: list(fn(l) { 99 }))', "error[index]: a sampler gives token 99, but there are 8"),
            ('generate(m, "ab", samplers: list(fn(l) { 8 }))', "error[index]: a sampler gives token 8, but there are 8"),
            ('generate(m, "ab", samplers: list(fn(l) { "a" }))',
             'error[type]: a sampler must give a token or 8 logits, but it gives "a"'),
            ('generate(m, "ab", samplers: list(top_k(2)), temperature: 1)',
             "error[value]: samplers stand in place of temperature, top_k and top_p"),
            ('let s = top_k(2)\ns(1, 2, 3)', "error[arity]: the sampler top_k takes 1 argument, but 3 are given"),
            ('generate(m, "ab", 100)', "error[value]: a prompt of 3 tokens and 100 more do not fit the model's context of 24",
             "= help: max_tokens: 22 fits; shift: true forgets the older half of a full context"),
            ('generate(m, "ab", logprobs: -1)', "error[value]: logprobs must not be negative"),
        ])

    def test_details(self):
        self.says("""
            let a = generate(m, "ab", 5, temperature: 0, logprobs: 2)
            print(a.keys(), len(a.ids), a.finish, a.prompt_tokens, a.cached_tokens)
            let rows = log_softmax(forward(m, [1, 3, 4]))[-1]
            assert_about_eq(a.logprobs[0].logprob, max(rows) as float, 1e-5)
            assert_eq(a.logprobs[0].top[0].id, a.ids[0])
            print(len(a.logprobs[0].top), join([l.token for l in a.logprobs]) == a.text)
            let stop = a.text[1:2]
            print(generate(m, "ab", 5, temperature: 0, details: true, stop: stop).finish)
        """, '["text", "ids", "finish", "prompt_tokens", "cached_tokens", "logprobs"] 5 length 3 0\n2 true\nstop\n')

    def test_batches(self):
        """Each prompt of a list gets what it gets alone, whatever its length and its end."""
        self.says("""
            let prompts = list("ab", "cab d", "a", "d d d d d", "abcabcabc")
            for temp in list(0.0, 1.5) {
                let together = generate(m, prompts, temperature: temp, seed: 5, logprobs: 3)
                for i, prompt in prompts { assert_eq(together[i], generate(m, prompt, temperature: temp, seed: 5, logprobs: 3)) }
            }
            assert_eq(generate(m, list([1, 3, 4], [1, 5]), 4, temperature: 0), generate(m, list("ab", "c"), 4, temperature: 0))
            let said = dict()
            let texts = generate(m, prompts, 4, seed: 1, on_token: fn(piece, i) { said[i] = said.get(i, "") + piece })
            assert_eq([said.get(i, "") for i in 0..5], texts)
            let pieces = list()
            assert_eq(generate(m, "ab", 9, seed: 1, stream: fn(piece) { pieces.push(piece) }), join(pieces))
            print("same")
        """, "same\n")

    def test_speculation(self):
        self.says("""
            for prompt in list("abababab", "cab d cab", "a") {
                for seed in 0..6 {
                    let plain = generate(m, prompt, temperature: 0.2 * seed, seed: seed, logprobs: 2, stop: "cc")
                    for guesses in list(1, 3, 9) {
                        assert_eq(generate(m, prompt, temperature: 0.2 * seed, seed: seed, logprobs: 2, stop: "cc", speculate: guesses), plain)
                    }
                }
            }
            print("same")
        """, "same\n")

    def test_shift(self):
        never_ends = """
            meta["tokenizer.ggml.eos_token_id"] = 0
            meta["tokenizer.ggml.bos_token_id"] = 0
            meta["tokenizer.ggml.token_type"] = [2, 1, 1, 1, 1, 1, 1, 1]
        """
        self.says("""
            let mute = fn(l) { l * 0.9 + [-inf, -inf, -inf, 0, 0, 0, 0, 0] }
            let long = generate(m, "abababab", 60, samplers: list(mute), seed: 3, shift: true, details: true)
            print(len(long.ids), long.finish)
            assert_eq(generate(m, "abababab", 60, samplers: list(mute), seed: 3, shift: true, speculate: 4, details: true), long)
        """, "60 length\n", never_ends)

    def test_hooks_and_taps(self):
        self.says("""
            let ids = [1, 3, 4, 5]
            let plain = forward(m, ids)
            let seen = list()
            let watched = hook(m, "blk.1.out", fn(x) { seen.push(x); none })
            assert_eq(forward(watched, ids), plain)
            assert_eq(seen[0], tap(m, "blk.1.out")(ids))
            // The last layer's output, normalised and projected, is the logits: a logit lens.
            let norm = m.output_norm.weight
            assert_about_eq(linear(rms_norm(seen[0], norm, 1e-5), m.output.weight), plain, 1e-5)
            let steered = hook(m, "blk.0.ffn_out", fn(x) { x + 1.0 })
            print(any(forward(steered, ids) != plain), all(forward(m, ids) == plain))
            let twice = hook(hook(m, "blk.0.attn_q", fn(x) { x * 2.0 }), "blk.0.attn_q", fn(x) { x / 2.0 })
            assert_eq(forward(twice, ids), plain)
            for name in list("token_embd", "blk.0.attn_norm", "blk.0.attn_v", "blk.1.ffn_norm", "blk.1.ffn_gate", "output_norm", "output") {
                assert_eq(len(tap(m, name)(ids)), 4)
            }
            assert_eq(generate(hook(m, "output", fn(x) { x * 0.0 + [0, 0, 0, 0, 0, 9, 0, 0] }), "a", 3, temperature: 0), "ccc")
        """, "true true\n")

    def test_refusals_of_hooks(self):
        self.fails([
            ('forward(hook(m, "blk.0.ffn_outt", fn(x) { x }), [1])',
             'error[name]: the model\'s page has no activation called "blk.0.ffn_outt"', '= help: there is "blk.0.ffn_out"'),
            ('forward(hook(m, "something quite different", fn(x) { x }), [1])',
             'error[name]: the model\'s page has no activation called "something quite different"',
             '= help: it has 28, from "layers" to "output"'),
            ('forward(hook(m, "output_norm", fn(x) { x[0] }), [1])',
             "error[shape]: a hook gives float32[32] in place of float32[1, 32]"),
            ('tap(m, "output_norm")([1], 2)', "error[arity]: a tap takes 1 argument, the ids, but 2 are given"),
            ('m.activation("x")(1, 2)', "error[arity]: an activation takes 1 argument, but 2 are given"),
            ('m.projection("output")()', "error[arity]: a projection takes 1 argument, but 0 are given"),
        ])

    def test_adapters(self):
        self.says("""
            let ids = [1, 3, 4, 5]
            let (down, up) = (randn([2, 32]), randn([32, 2]))
            let plain = forward(m, ids)
            let changed = forward(adapt(m, {"blk.0.attn_q": (down, up), "blk.1.ffn_down": (randn([3, 48]), zeros([32, 3]))}, 0.5), ids)
            net.blk[0].attn_q.weight = net.blk[0].attn_q.weight + 0.5 * (up @ down)
            save_model(net, "merged.gguf", meta: meta)
            assert_about_eq(changed, forward(load_model("merged.gguf"), ids), 1e-4)
            print(any(changed != plain), all(forward(adapt(m, {"blk.0.attn_q": (down, up)}, 0), ids) == plain))
        """, "true true\n")
        self.fails([
            ('forward(adapt(m, {"blk.0.attn_q": (ones([2, 31]), ones([32, 2]))}), [1])',
             "error[shape]: the adapter of blk.0.attn_q is float32[2, 31] and float32[32, 2], which do not fit a weight float32[32, 32]"),
            ('forward(adapt(m, {"blk.0.attn_x": (ones([2, 32]), ones([32, 2]))}), [1])',
             'error[name]: the model\'s page has no projection called "blk.0.attn_x"', '= help: there is "blk.0.attn_'),
            ('adapt(m, {"blk.0.attn_q": 3})', "error[type]: each of parts must be a pair of matrices (down, up), but it is 3"),
            ('adapt(m, {1: (ones([2, 32]), ones([32, 2]))})', "error[type]: a name of parts must be a string, but it is 1"),
        ])

    def test_lora(self):
        self.says("""
            import "std/lora.tl"
            let ids = [1, 3, 4, 5, 7, 3, 3, 5]
            let lora = Lora::new(m, rank: 2, names: list("attn_q", "ffn_up"))
            assert_eq(forward(lora.on(m), ids), forward(m, ids))
            let before = get_tensor(m, "blk.0.attn_q.weight") * 1.0
            learn { objective: cross_entropy(forward(lora.on(m), ids)[:-1], ids[1:]), optimizer: adam(lr: 0.05), epochs: 60, progress: false }
            print(len(lora.parts), cross_entropy(forward(lora.on(m), ids)[:-1], ids[1:]) < 0.5)
            assert_eq(get_tensor(m, "blk.0.attn_q.weight"), before)
            for name in list("l.safetensors", "l.gguf") {
                lora.save(name)
                let same = load_lora(name)
                assert_eq(forward(same.on(m), ids), forward(lora.on(m), ids))
                assert_eq(generate(same.on(m), "ab", 8, temperature: 0), generate(lora.on(m), "ab", 8, temperature: 0))
            }
            save_model(lora.merged(m), "merged.gguf", meta: meta)
            assert_about_eq(forward(load_model("merged.gguf"), ids), forward(lora.on(m), ids), 1e-3)
            save_model({"blk.0.attn_q.weight.lora_a": ones([2, 32]), "blk.0.attn_q.weight.lora_b": ones([32, 2])}, "x.gguf",
                meta: {"general.architecture": "llama", "adapter.lora.alpha": 4.0})
            print(load_lora("x.gguf").scale)
        """, "4 true\n2.0\n")
        self.fails([
            ('import "std/lora.tl"\nLora::new(m, names: list("q"))', "error[name]: <model a.gguf, 21 tensors> has no projections called q"),
            ('import "std/lora.tl"\nload_lora("a.gguf")', "error[format]: a.gguf holds no adapter: no tensor's name ends in .lora_a"),
        ])

    def test_embed(self):
        self.says("""
            let texts = list("ab", "abc", "cab d")
            let vectors = embed(m, texts)
            print(vectors.shape(), embed(m, "ab").shape())
            for i, text in texts {
                assert_eq(embed(m, text), vectors[i])
                let rows = tap(m, "output_norm")(tokenize(m.tokenizer(), text))
                let mean = mean(rows, dim: 0)
                assert_about_eq(vectors[i], mean / norm(mean), 1e-5)
                assert_about_eq(embed(m, text, pooling: "last"), rows[-1] / norm(rows[-1]), 1e-5)
            }
        """, "[3, 32] [32]\n")
        self.fails([
            ('embed(m, list("a", 3))', "error[type]: each of texts must be a string, but it is 3"),
            ('embed(m, "a", pooling: "max")', 'error[value]: pooling is "mean", "cls" or "last", not "max"'),
            ('embed(m, "abababababababababababababab")',
             "error[value]: a text of 29 tokens does not fit the model's context of 24"),
        ])
        self.fails([('embed(m, "")', "error[value]: a text without tokens has no embedding")],
                   'meta["tokenizer.ggml.add_bos_token"] = false\n')

    def test_gradients_flow_through_a_model(self):
        self.says("""
            let (down, up) = (learnable(0.1 * randn([2, 32])), learnable(0.01 * randn([16, 2])))
            let tuned = adapt(m, {"blk.0.attn_v": (down, up)})
            fn loss() { cross_entropy(forward(tuned, [1, 3, 4])[-1:], [5]) }
            backward(loss())
            let before = loss() as float
            let step = 1e-3
            let g = grad(up)
            let moved = adapt(m, {"blk.0.attn_v": (detach(down), detach(up) - step * g)})
            let after = cross_entropy(forward(moved, [1, 3, 4])[-1:], [5]) as float
            assert_about_eq((before - after) / step, sum(g * g) as float, 0.05 * (sum(g * g) as float) + 1e-4)
            print(any(g != 0.0))
        """, "true\n")
        self.fails([("""
            import "std/models/llama.tl" as llama
            let v = learnable(zeros([32, 2]))
            let net = llama.open(adapt(m, {"blk.0.attn_v": (ones([2, 32]), v[:16])}))
            with no_grad { net.forward([1, 3]) }
            net.forward([4])""", "error[value]: gradients flow through a text that is given at once, but the cache holds 2 rows already")])


if __name__ == "__main__":
    unittest.main()
