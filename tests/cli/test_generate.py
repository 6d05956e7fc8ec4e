"""generate: the loop in C against the reference's texts and against the pass written in tl."""
import json
import unittest

from tl import fixture, run, run_code

# A small random model of llama's architecture, saved by the program itself.
MODEL = """
fn matrix(rows, columns) { return {"weight": randn([rows, columns]) / 4.0} }
fn vector(size) { return {"weight": 1.0 + 0.1 * randn([size])} }
fn layer(width, wide, kv) {
    return {"attn_norm": vector(width), "attn_q": matrix(width, width), "attn_k": matrix(kv, width),
        "attn_v": matrix(kv, width), "attn_output": matrix(width, width), "ffn_norm": vector(width),
        "ffn_gate": matrix(wide, width), "ffn_up": matrix(wide, width), "ffn_down": matrix(width, wide)}
}
let pieces = ["<unk>", "<s>", "</s>", "a", "b", "c", "▁", "d"]
let meta = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 32,
    "llama.attention.head_count": 4, "llama.attention.head_count_kv": 2, "llama.context_length": 24,
    "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": pieces,
    "tokenizer.ggml.token_type": [2, 3, 3, 1, 1, 1, 1, 1], "tokenizer.ggml.add_space_prefix": false,
    "tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.unknown_token_id": 0,
}
seed(5)
let net = {"token_embd": matrix(8, 32), "output_norm": vector(32), "output": matrix(8, 32),
    "blk": list(layer(32, 48, 16), layer(32, 48, 16))}
"""

# The same pass in the language: the whole text again for each token.
FORWARD = """
fn project(x, p) { if p.contains("bias") { linear(x, p.weight, p.bias) } else { linear(x, p.weight) } }
fn rotated(x, scale) { rope(x, scale: scale) }
fn of_heads(x, b, name) { if b.contains(name) { rms_norm(x, b[name].weight, 1e-5) } else { x } }
fn logits(ids, scale) {
    let x = embedding(net.token_embd.weight, ids)
    let n = len(ids)
    for b in net.blk {
        let h = rms_norm(x, b.attn_norm.weight, 1e-5)
        let q = rotated(of_heads(project(h, b.attn_q).reshape([n, 4, 8]), b, "attn_q_norm"), scale)
        let k = rotated(of_heads(project(h, b.attn_k).reshape([n, 2, 8]), b, "attn_k_norm"), scale)
        let v = project(h, b.attn_v).reshape([n, 2, 8])
        x = x + project(attention(q, k, v, causal: true).reshape([n, 32]), b.attn_output)
        let g = rms_norm(x, b.ffn_norm.weight, 1e-5)
        x = x + project(swiglu(project(g, b.ffn_gate), project(g, b.ffn_up)), b.ffn_down)
    }
    linear(rms_norm(x, net.output_norm.weight, 1e-5), net.output.weight)[-1]
}
fn greedy(prompt, count, scale) {
    let ids = list(1)
    let text = ""
    for c in replace(prompt, " ", "▁") { ids.push(index_of(pieces, c)) }
    for i in 0..count {
        let next = argmax(logits(tensor(ids), scale)) as int
        if next == 1 or next == 2 { break }
        ids.push(next)
        if next != 0 { text = text + replace(pieces[next], "▁", " ") }
    }
    text
}
"""


def program(body, change=""):
    return run_code(MODEL + change + 'save_model(net, "a.gguf", meta: meta)\n' + FORWARD + body,
                    options=["--memory-check=strict"])


class Generate(unittest.TestCase):
    def test_the_reference(self):
        path = fixture(self, "models/stories260K.gguf")
        for item in json.loads(fixture(self, "models/expected.json").read_text())["stories260K"]:
            result = run("-e", f"print(generate(load_model({json.dumps(str(path))}), {json.dumps(item['prompt'])}, "
                               "80, temperature: 0))")
            self.assertEqual(result.out, item["text"] + "\n", result.err)

    def test_every_kind_of_weights(self):
        expected = json.loads(fixture(self, "models/expected.json").read_text())
        for name in ["mini-f16", "mini-q8_0", "mini-q4_0", "mini-q4_k_m"]:
            path = fixture(self, f"models/{name}.gguf")
            for item in expected[name]:
                sure = next((i for i, gap in enumerate(item["exact_gap"]) if gap < 2e-3), len(item["exact_gap"]))
                ids = item["exact_greedy"][:sure]
                result = run("-e", f"""
                    let m = load_model("{path}")
                    let tok = m.tokenizer()
                    assert_eq(generate(m, {json.dumps(item["prompt"])}, {sure}, temperature: 0),
                              join([detokenize_single(tok, id) for id in {ids}]))
                """)
                self.assertEqual(result.status, 0, (name, item["prompt"], result.err))

    def test_variants(self):
        for change, scale in [
            ("", 1.0),
            ('remove(net, "output")\n', 1.0),
            ('for b in net.blk { b.attn_q.bias = randn([32]); b.ffn_down.bias = randn([32]) }\n', 1.0),
            ('meta["llama.rope.scaling.type"] = "linear"\nmeta["llama.rope.scaling.factor"] = 4.0\n', 0.25),
            ('meta["llama.rope.scaling.factor"] = 4.0\n', 0.25),  # the type is linear where it is not said
            ('meta["llama.rope.scale_linear"] = 4.0\n', 0.25),
            ('meta["llama.rope.scaling.type"] = "none"\nmeta["llama.rope.scaling.factor"] = 4.0\n', 1.0),
            ('meta["llama.rope.freq_base"] = 10000\nmeta["llama.attention.key_length"] = 8\n', 1.0),
            ('meta["llama.expert_count"] = 0\nmeta["llama.attention.head_count_kv"] = [2, 2]\n', 1.0),
        ]:
            tied = 'net.output = net.token_embd\n' if "remove" in change else ""
            result = program(tied + f"""
                for prompt in list("a", "bd", "cab d") {{
                    let want = greedy(prompt, 12, {scale})
                    assert_eq(generate(load_model("a.gguf"), prompt, 12, temperature: 0), want)
                    print(len(want) > 0)
                }}
            """, change)
            self.assertIn("true", result.out, result.err)
            self.assertEqual(result.status, 0, result.err)

    def same(self, change, rotated=None, old="", new=""):
        """What generate says is what the pass in the language says, with its rotation exchanged."""
        forward = FORWARD.replace("rope(x, scale: scale)", rotated or "rope(x, scale: scale)").replace(old or " ", new or " ")
        result = run_code(MODEL + change + 'save_model(net, "a.gguf", meta: meta)\n' + forward + """
            for prompt in list("a", "bd", "cab d") {
                let want = greedy(prompt, 12, 1.0)
                assert_eq(generate(load_model("a.gguf"), prompt, 12, temperature: 0), want)
                print(len(want) > 0)
            }""", options=["--memory-check=strict"])
        self.assertIn("true", result.out, result.err)
        self.assertEqual(result.status, 0, result.err)

    def test_rotations(self):
        self.same('meta["llama.rope.scaling.attn_factor"] = 1.5\n', "rope(x, scale: scale) * 1.5")
        self.same('net.rope_freqs = {"weight": tensor([1.0, 2.0, 4.0, 0.5])}\n',
                  """{
            let pairs = arange(4) as float32
            let angles = (arange(len(x)) as float32).unsqueeze(1) * (10000.0 ** (pairs * -0.25) / net.rope_freqs.weight)
            rope(x, cos(angles), sin(angles))
        }""")

    def test_architectures(self):
        rename = """
            let name = "%s"
            let old = meta
            meta = {}
            for key, value in old { meta[replace(key, "llama.", name + ".")] = value }
            meta["general.architecture"] = name
            """
        half = 'rope(x, scale: scale, style: "half")'
        self.same(rename % "qwen2" + "for b in net.blk { b.attn_q.bias = randn([32]); b.attn_v.bias = randn([16]) }\n", half)
        self.same(rename % "qwen3" + "for b in net.blk { b.attn_q_norm = vector(8); b.attn_k_norm = vector(8) }\n", half)

    def test_counts_by_layer(self):
        # The second layer has as many heads for keys as for queries.
        self.same("""meta["llama.attention.head_count_kv"] = [2, 4]
            meta["llama.attention.head_count"] = [4, 4]
            net.blk[1] = layer(32, 48, 32)
            """, None, "[n, 2, 8]", "[n, len(b.attn_k.weight) / 8, 8]")

    def test_a_long_prompt_goes_in_parts(self):
        result = program("""
            let prompt = join(["abdc" for i in 0..80])
            assert_eq(generate(load_model("a.gguf"), prompt, 4, temperature: 0), greedy(prompt, 4, 1.0))
            print("same")
        """, 'meta["llama.context_length"] = 500\n')
        self.assertEqual((result.out, result.status), ("same\n", 0), result.err)

    def test_ids_without_a_vocabulary(self):
        result = program("""
            let m = load_model("a.gguf")
            let plain = {}
            for key, value in meta { if not key.contains("tokenizer") { plain[key] = value } }
            save_model(net, "b.gguf", meta: plain)
            let said = list()
            let ids = generate(load_model("b.gguf"), [1, 3, 4], 6, temperature: 0, on_token: fn(id) { said.push(id) })
            assert_eq(said, ids)
            assert_eq(len(ids), 6)
            let want = list(1, 3, 4)
            for i in 0..6 { want.push(argmax(logits(tensor(want), 1.0)) as int) }
            assert_eq(ids, want[3:])
            generate(load_model("b.gguf"), [1, 3], stop: "a")
        """)
        self.assertIn("error[format]: b.gguf holds no tokenizer: tokenizer.ggml.tokens is missing", result.err)

    def test_drawing(self):
        result = program("""
            let m = load_model("a.gguf")
            let one = generate(m, "ab", 15, temperature: 1.5, seed: 4)
            assert_eq(generate(m, "ab", 15, temperature: 1.5, seed: 4), one)
            let all = [generate(m, "ab", 15, temperature: 1.5, seed: i) for i in 0..8]
            print(len(sorted(all)) > 1 and any([t != one for t in all]))
            assert_eq(generate(m, "ab", 15, temperature: 3.0, top_k: 1), generate(m, "ab", 15, temperature: 0))
            assert_eq(generate(m, "ab", 15, temperature: 3.0, top_p: 0.0001), generate(m, "ab", 15, temperature: 0))
            seed(9)
            let before = rand([2])
            seed(9)
            generate(m, "ab", 5, seed: 1)
            assert_eq(rand([2]), before)         // the program's own numbers are untouched
            seed(9)
            let drawn = generate(m, "ab", 15, temperature: 1.5)
            seed(9)
            assert_eq(generate(m, "ab", 15, temperature: 1.5), drawn)
            assert_eq(generate(m, [1, 3, 4], 9, temperature: 0), generate(m, "ab", 9, temperature: 0))
            print(generate(m, "ab", 0) == "")
        """)
        self.assertEqual((result.out, result.status), ("true\ntrue\n", 0), result.err)

    def test_stops_and_pieces(self):
        result = program("""
            let m = load_model("a.gguf")
            let letters = 0
            for number in 0..12 {
                let whole = generate(m, "cab", 20, temperature: 2.0, seed: number)
                letters += len(whole)
                for start in 0..len(whole) {
                    for size in list(1, 3) {
                        let stop = whole[start:start + size]
                        let said = list()
                        let cut = generate(m, "cab", 20, temperature: 2.0, seed: number, stop: list("zzz", stop),
                            on_token: fn(piece) { said.push(piece) })
                        assert_eq(cut, whole[:find(whole, stop)])
                        assert_eq(join(said), cut)
                    }
                }
            }
            print(letters > 30)
        """)
        self.assertEqual((result.out, result.status), ("true\n", 0), result.err)

    def test_the_context_ends_it(self):
        result = program("""
            let m = load_model("a.gguf")
            let text = generate(m, "abababab", temperature: 5.0, seed: 11)
            print(len(tokenize(m.tokenizer(), "abababab" + text)) <= 25)
            try { generate(m, "abababab", 17) } catch e { print(e.message) }
            print(len(generate(m, "abababab", 16, temperature: 5.0, seed: 3)) <= 16)
            print(len(generate(m, "abababab", 60, shift: true, temperature: 0, details: true).ids))
            generate(m, "abcdabcdabcdabcdabcdabcd")
        """)
        self.assertEqual(result.out.splitlines()[:3], ["true",
                         "a prompt of 9 tokens and 17 more do not fit the model's context of 24", "true"], result.err)
        self.assertIn("error[value]: the prompt has 25 tokens, but the model's context is 24", result.err)

    def test_padding_of_the_vocabulary(self):
        result = program('generate(load_model("a.gguf"), "ab", 4)\n',
                         'net.token_embd = matrix(11, 32)\nnet.output = matrix(9, 32)\n')
        self.assertEqual(result.status, 0, result.err)

    def test_refusals(self):
        for change, body, expected in [
            ("", 'generate(load_model("a.gguf"), "a", -1)', "error[value]: max_tokens must not be negative"),
            ("", 'generate(load_model("a.gguf"), "a", temperature: -1)',
             "error[value]: temperature is -1; it must not be negative"),
            ("", 'generate(load_model("a.gguf"), "a", temperature: nan)',
             "error[value]: temperature is nan; it must not be negative"),
            ("", 'generate(load_model("a.gguf"), "a", top_k: 0)',
             "error[value]: top_k: k is 0; at least one score must stay"),
            ("", 'generate(load_model("a.gguf"), [0][1:])', "error[value]: the prompt has no tokens"),
            ("", 'generate(load_model("a.gguf"), [99])', "error[index]: token id 99 is out of range: the vocabulary has 8 tokens"),
            ("", 'generate(load_model("a.gguf"), [-1])', "error[index]: token id -1 is out of range: the vocabulary has 8 tokens"),
            ("", 'load_model("a.gguf").forward([1, -1])', "error[index]: token id -1 is out of range: the vocabulary has 8 tokens"),
            ("", 'load_model("a.gguf").states([1, 8])', "error[index]: token id 8 is out of range: the vocabulary has 8 tokens"),
            ('for key in keys(meta) { if key.contains("tokenizer") { remove(meta, key) } }\n', 'generate(load_model("a.gguf"), [-1])',
             "error[index]: token id -1 is negative"),
            ("", 'generate(load_model("a.gguf"), "a", stop: "")',
             "error[type]: stop must be a string that is not empty, or a list of them, but it is "),
            ("", 'generate(load_model("a.gguf"), "a", on_token: fn(t) { panic("no more") })',
             "error[panic]: no more"),
            ('meta["general.architecture"] = "gpt0"\n', 'generate(load_model("a.gguf"), "a")',
             'error[value]: a.gguf has the architecture "gpt0"; known are arcee, bert, bloom, chatglm, '),
            ('remove(meta, "general.architecture")\n', 'generate(load_model("a.gguf"), "a")',
             'error[key]: a.gguf does not say its architecture: metadata general.architecture'),
            ('remove(meta, "llama.block_count")\n', 'generate(load_model("a.gguf"), "a")',
             'error[key]: a.gguf has no metadata called "llama.block_count"'),
            ('meta["llama.block_count"] = 3\n', 'generate(load_model("a.gguf"), "a")',
             'error[name]: a.gguf has no tensor called "blk.2.attn_norm.weight"'),
            ('meta["llama.block_count"] = 1\n', 'generate(load_model("a.gguf"), "a")',
             'error[value]: metadata llama.block_count of <model a.gguf, 21 tensors> is 1, but there are tensors of blk.1'),
            ('meta["llama.block_count"] = 2000000000\n', 'generate(load_model("a.gguf"), "a")',
             'error[name]: a.gguf has no tensor called "blk.2.attn_norm.weight"'),
            ('meta["llama.block_count"] = "many"\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: metadata llama.block_count of <model a.gguf, 21 tensors> must be a number above 0, but it is many"),
            ('meta["llama.rope.freq_base"] = "high"\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: metadata llama.rope.freq_base of <model a.gguf, 21 tensors> must be a number above 0, but it is high"),
            ('meta["llama.expert_count"] = 8\n', 'generate(load_model("a.gguf"), "a")',
             'error[name]: a.gguf has no tensor called "blk.0.ffn_gate_inp.weight"'),
            ('meta["llama.rope.scaling.type"] = "ntk"\n', 'generate(load_model("a.gguf"), "a")',
             'error[value]: <model a.gguf, 21 tensors> scales angles by "ntk"; none, linear, yarn and longrope are supported'),
            ('net.rope_freqs = vector(3)\n', 'generate(load_model("a.gguf"), "a")',
             "error[shape]: <model a.gguf, 22 tensors> has 3 divisors of angles for 4 pairs"),
            ('meta["llama.rope.dimension_count"] = 10\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: <model a.gguf, 21 tensors> rotates 10 numbers of a head, which has 8"),
            ('meta["llama.attention.key_length"] = 100000\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: <model a.gguf, 21 tensors> has heads of 100000 numbers; at most 65536 are supported"),
            ('meta["llama.block_count"] = 1.5\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: metadata llama.block_count of <model a.gguf, 21 tensors> must be an integer, but it is 1.5"),
            ('meta["llama.context_length"] = "long"\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: metadata llama.context_length of a.gguf is not a count"),
            ("", 'load_model("a.gguf").forward([0][1:])', "error[value]: forward needs at least one id"),
            ('remove(meta, "tokenizer.ggml.tokens")\n', 'generate(load_model("a.gguf"), "a")',
             "error[format]: a.gguf holds no tokenizer: tokenizer.ggml.tokens is missing"),
            ('meta["llama.attention.head_count"] = "four"\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: metadata llama.attention.head_count of <model a.gguf, 21 tensors> must be a number above 0, but it is four"),
            ('meta["llama.attention.head_count"] = 4.0\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: metadata llama.attention.head_count of <model a.gguf, 21 tensors> must be an integer, but it is 4.0"),
            ('meta["llama.attention.head_count"] = ["4"]\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: metadata llama.attention.head_count of <model a.gguf, 21 tensors> must be a number above 0, but it is [\"4\"]"),
            ('meta["llama.rope.freq_base"] = inf\n', 'generate(load_model("a.gguf"), "a")',
             "error[value]: metadata llama.rope.freq_base of <model a.gguf, 21 tensors> must be a number above 0, but it is inf"),
            ('meta["tokenizer.ggml.bos_token_id"] = "1"\n', 'generate(load_model("a.gguf"), "a")',
             "error[format]: a.gguf: tokenizer.ggml.bos_token_id is not an integer"),
            ('meta["tokenizer.ggml.add_bos_token"] = 1\n', 'generate(load_model("a.gguf"), "a")',
             "error[format]: a.gguf: tokenizer.ggml.add_bos_token is not true or false"),
            ('meta["tokenizer.ggml.model"] = 1\n', 'generate(load_model("a.gguf"), "a")',
             "error[format]: a.gguf: tokenizer.ggml.model is not a text"),
            ('meta["tokenizer.ggml.tokens"] = [1, 2]\n', 'generate(load_model("a.gguf"), "a")',
             "error[format]: a.gguf: tokenizer.ggml.tokens is not a list of texts"),
            ('remove(net, "output_norm")\n', 'generate(load_model("a.gguf"), "a")',
             'error[name]: <model a.gguf, 20 tensors> has no tensor called "output_norm.weight"'),
            ('remove(net.blk[1], "ffn_gate")\n', 'generate(load_model("a.gguf"), "a")',
             'error[name]: a.gguf has no tensor called "blk.1.ffn_gate.weight"'),
        ]:
            with self.subTest(expected):
                result = program(body, change)
                self.assertTrue(result.err.startswith(expected) or result.err.splitlines()[0] == expected, result.err)
                self.assertEqual(result.status, 1)


if __name__ == "__main__":
    unittest.main()
