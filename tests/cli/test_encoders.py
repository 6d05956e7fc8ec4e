"""Encoders: what their pages give for tokens and texts, against the same networks written in double."""
import base64
import json
import math
import struct
import tempfile
import unittest
from pathlib import Path

from encoder_models import POSITIONS, Bert, EuroBert, GemmaEmbedding, JinaBert, ModernBert, MpNet, NomicBert, gelu, silu, tensors_of, write_encoder, write_modules
from language_models import Net, Qwen3, file_of
from model_folders import safetensors, write_folder
from test_serve import Server
from tl import run

IDS = [1, 7, 3, 10, 2, 2, 9, 4, 0, 6, 8, 5]
NETS = [Bert, NomicBert, ModernBert, EuroBert, GemmaEmbedding, MpNet, JinaBert]
# A vocabulary of 11 pieces as llama.cpp writes BERT's: those that begin words have a mark, others none.
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u2581un", "aff", "able", "\u2581.", "\u2581cafe", "\u2581a", "\u2581b"]
WORDS = {"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": PIECES, "tokenizer.ggml.token_type": [3, 2, 3, 3, *[1] * 7],
         "tokenizer.ggml.cls_token_id": 2, "tokenizer.ggml.seperator_token_id": 3, "tokenizer.ggml.unknown_token_id": 1}
TEXT, TEXT_IDS = "Un\u00e1ffable  CAF\u00c9.", [2, 4, 5, 6, 8, 7, 3]
LLAMA = {"layer_norm_eps": None, "rms_norm_eps": 1e-5, "num_key_value_heads": 2, "hidden_act": "silu", "rope_theta": 10000.0}
GEMMA = {**LLAMA, "head_dim": 6, "hidden_act": None, "hidden_activation": "gelu_pytorch_tanh", "rope_theta": 5000.0, "sliding_window": 4,
         "use_bidirectional_attention": True}
ENCODER = "error[value]: a.gguf is an encoder: it gives no logits, so that it says nothing"
ADVICE = ("= help: embed(m, texts) makes vectors of texts, states(m, ids) gives what the last layer has for each token")


def pooled(rows, how="mean"):
    """A vector of length 1."""
    if how == "cls":
        rows = rows[:1]
    if how == "last":
        rows = rows[-1:]
    mean = [sum(column) / len(rows) for column in zip(*rows)]
    return [x / math.sqrt(sum(y * y for y in mean)) for x in mean]


class Encoders(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def outcome(self, code, **settings):
        result = run("-e", code, cwd=self.folder, env={"TL_MEMORY_CHECK": "strict", **settings})
        self.assertNotEqual(result.status, 3, result.err)
        result.err = result.err.split("=== Device memory check")[0]
        return result

    def says(self, code, **settings):
        """The values that a program prints as JSON, a line each."""
        result = self.outcome(code, **settings)
        self.assertEqual((result.err, result.status), ("", 0))
        return [json.loads(line) for line in result.out.splitlines()]

    def near(self, rows, expected, bound=2e-4):
        self.assertEqual((len(rows), len(rows[0])), (len(expected), len(expected[0])))
        for row, want in zip(rows, expected):
            for a, b in zip(row, want):
                self.assertAlmostEqual(a, b, delta=bound)

    def fails(self, code, *lines):
        result = self.outcome(code)
        self.assertEqual(result.status, 1, result.out)
        found = [line.strip() for line in result.err.splitlines()]
        self.assertEqual([line for line in found if line.startswith(("error", "= help"))], list(lines))

    def write(self, net, meta=None):
        (self.folder / "a.gguf").write_bytes(file_of({**net.meta, **(meta or {})}, net.weights))

    def write_with_words(self, net, meta=None):
        """The same with a vocabulary."""
        self.write(net, meta)
        self.says(f'let m = load_model("a.gguf")\nsave_model(m, "b.gguf", meta: parse_json({json.dumps(json.dumps(WORDS))}))')
        (self.folder / "b.gguf").rename(self.folder / "a.gguf")

    # --- rows of the last layer

    def states(self, name, ids=IDS, **settings):
        return self.says(f'print(to_json(load_model("{name}").states({ids}).to_list()))', **settings)[0]

    def test_states(self):
        for number, kind in enumerate(NETS):
            with self.subTest(kind.name):
                net = kind(30 + number)
                self.write(net)
                for ids in (IDS, IDS[:1], IDS[:4]):
                    self.near(self.states("a.gguf", ids), net.states(ids))

    def test_joined_matrices_and_groups(self):
        """What a page takes does not hang on its architecture: a BERT with one matrix and fewer keys than queries."""
        class Joined(Bert):
            joined, groups = True, 2
        net = Joined(4)
        self.write(net)
        self.near(self.states("a.gguf"), net.states(IDS))

    def test_what_is_near(self):
        """Layers with a window in blocks of queries, by the number of layers or by a list."""
        ids = (IDS * 20)[:230]
        net = ModernBert(6)
        self.write(net, {"modern-bert.attention.sliding_window": 140, "modern-bert.context_length": 300})
        net.reach = lambda layer: 70 if layer % 3 else None
        self.near(self.states("a.gguf", ids), net.states(ids))
        for pattern, far in ((2, [0, 2]), ([1, 0, 0, 1], [1, 2])):
            net.base = lambda layer, far=far: 5000.0 if layer in far else 300.0
            net.reach = lambda layer, far=far: None if layer in far else 2
            self.write(net, {"modern-bert.attention.sliding_window_pattern": pattern})
            self.near(self.states("a.gguf"), net.states(IDS))

    def test_scores_by_another_scale(self):
        net = GemmaEmbedding(17)
        net.scale = 0.3
        self.write(net, {"gemma-embedding.attention.scale": 0.3})
        self.near(self.states("a.gguf"), net.states(IDS))
        net.scale = 10 ** -0.5
        self.same(net, "gemma3_text", {**GEMMA, "query_pre_attn_scalar": 10})

    def test_second_norms_of_attention(self):
        net = JinaBert(18)
        net.weights["blk.0.attn_norm_2.weight"] = [1.0] * 24
        self.write(net)
        self.fails('load_model("a.gguf").states([1])',
                   "error[value]: <model a.gguf, 59 tensors> has second norms of attention, which are not supported")

    def test_biases_of_far_positions(self):
        ids = (IDS * 20)[:200]
        net = MpNet(16)
        net.weights["position_embd.weight"] = net.random.matrix(200, 24)
        self.write(net, {"mpnet.context_length": 200})
        self.near(self.states("a.gguf", ids), net.states(ids))

    def test_activations(self):
        for net, word, act in ((Bert(3), "gelu_new", gelu), (Bert(3), "relu", lambda x: max(x, 0.0)), (ModernBert(3), "silu", silu)):
            net.act = act
            self.write(net, {f"{net.name}.hidden_activation": word})
            self.near(self.states("a.gguf"), net.states(IDS))
        self.write(Bert(3), {"bert.hidden_activation": "mish"})
        self.fails('load_model("a.gguf").states([1])', 'error[value]: <model a.gguf, 53 tensors> has the activation "mish"; gelu, gelu_new, '
                   "gelu_pytorch_tanh, relu and silu are supported")

    def test_states_of_a_decoder(self):
        """What its logits are made of."""
        self.write(Net(1))
        self.says("""
            let m = load_model("a.gguf")
            let rows = states(m, [1, 7, 3])
            assert_eq(rows.shape(), [3, 24])
            assert_eq(rows, tap(m, "output_norm")([1, 7, 3]))
            assert_about_eq(linear(rows, m.output.weight), m.forward([1, 7, 3]), 1e-5)""")
        self.fails('load_model("a.gguf").states([])', "error[value]: states needs at least one id")

    def test_activations_by_name(self):
        for number, kind in enumerate(NETS):
            with self.subTest(kind.name):
                net = kind(50 + number)
                self.write(net)
                names = [f"blk.1.{name}" for name in net.norms] + ["token_embd", "input", "blk.1.attn_output", "blk.1.ffn_out", "blk.1.ffn_up",
                                                                   "blk.1.out", "output_norm"]
                names = [name for name in names if not name.endswith(("q_norm", "k_norm"))]
                self.says(f"""
                    let m = load_model("a.gguf")
                    for name in parse_json({json.dumps(json.dumps(names))}) {{
                        assert_eq(len(tap(m, name)([1, 7, 3])), 3)
                        assert_eq(hook(m, name, fn(x) {{ x * 1.0 }}).states([1, 7, 3]), m.states([1, 7, 3]))
                        assert(any(hook(m, name, fn(x) {{ x * 0.0 }}).states([1, 7, 3]) != m.states([1, 7, 3])))
                    }}
                    assert_eq(tap(m, "output_norm")([1, 7, 3]), m.states([1, 7, 3]))""")

    def test_gradients_flow_through_an_encoder(self):
        self.write(Bert(5))
        self.says("""
            let m = load_model("a.gguf")
            let (down, up) = (learnable(0.1 * randn([2, 24])), learnable(0.01 * randn([20, 2])))
            backward(mean(adapt(m, {"blk.1.ffn_up": (down, up)}).states([1, 2, 3]) ** 2))
            assert(sum(abs(grad(up))) as float > 0.0)""")

    def test_more_tokens_than_positions(self):
        self.write_with_words(Bert(7))
        long = [1] * (POSITIONS + 1)
        message = f"error[value]: a text of 17 tokens does not fit the model's context of {POSITIONS}"
        self.fails(f'load_model("a.gguf").states({long})', message)
        self.fails(f'tap(load_model("a.gguf"), "output_norm")({long})', message)
        self.fails('embed(load_model("a.gguf"), "' + "a " * 15 + '")', message)
        self.write(Bert(7), {"bert.context_length": 99})  # more than it has
        self.fails(f'load_model("a.gguf").states({long})', message)
        self.write(NomicBert(7), {"nomic-bert.context_length": 2})
        self.fails('load_model("a.gguf").states([1, 2, 3])', "error[value]: a text of 3 tokens does not fit the model's context of 2")

    def test_it_says_nothing(self):
        self.write_with_words(Bert(8))
        for code in ("m.forward([1])", 'generate(m, "a")', 'chat(m, "a")', "KVCache::of(m)", "generate(m, [1])"):
            with self.subTest(code):
                self.fails(f'let m = load_model("a.gguf")\n{code}', ENCODER, ADVICE)
        result = run("generate", "a.gguf", "a", cwd=self.folder)
        self.assertIn(ENCODER, result.err)
        self.assertEqual(result.status, 1)

    # --- vectors of texts

    def test_words(self):
        """Small letters without accents, between [CLS] and [SEP]."""
        self.write_with_words(Bert(9))
        self.assertEqual(self.says(f'print(tokenize(load_model("a.gguf").tokenizer(), "{TEXT}").to_list())'), [TEXT_IDS])

    def test_embed(self):
        net = Bert(10)
        rows, code = net.states(TEXT_IDS), f'let (m, t) = (load_model("a.gguf"), "{TEXT}")\n'
        for number, how in ((None, "mean"), (0, "mean"), (1, "mean"), (2, "cls"), (3, "last")):
            with self.subTest(number):
                self.write_with_words(net, {} if number is None else {"bert.pooling_type": number})
                got = self.says(code + "print(to_json(embed(m, t).to_list()))\n" + "\n".join(
                    f'print(to_json(embed(m, t, pooling: "{word}").to_list()))' for word in ("mean", "cls", "last")))
                self.near(got, [pooled(rows, word) for word in (how, "mean", "cls", "last")])
        self.write_with_words(net, {"bert.pooling_type": 4})
        self.fails(code + "embed(m, t)", "error[value]: a.gguf pools by the way 4, which is not supported",
                   '= help: pooling: "mean", "cls" or "last" says another')
        self.fails(code + 'embed(m, t, pooling: "max")', 'error[value]: pooling is "mean", "cls" or "last", not "max"')

    def test_embed_by_a_decoder(self):
        """Its file may say the pooling too."""
        net = Qwen3(14)
        self.write_with_words(net, {"qwen3.pooling_type": 3})
        self.says(f"""
            let m = load_model("a.gguf", cache: float32)
            let rows = m.states({TEXT_IDS})
            assert_about_eq(embed(m, "{TEXT}"), rows[-1] / norm(rows[-1]), 1e-6)""")

    def test_quantised(self):
        """The weights of a file that was quantised, its table of positions too."""
        wide = """
            fn matrix(rows, columns) { ({"weight": randn([rows, columns]) / 6.0, "bias": randn([rows]) / 6.0}) }
            fn norms(n) { ({"weight": ones([n]), "bias": zeros([n])}) }
            seed(2)
            let layer = {"attn_qkv": matrix(96 * 3, 96), "attn_output": matrix(96, 96), "attn_output_norm": norms(96),
                         "ffn_up": matrix(64, 96), "ffn_gate": matrix(64, 96), "ffn_down": matrix(96, 64), "layer_output_norm": norms(96)}
            let net = {"token_embd": matrix(8, 96), "token_types": matrix(2, 96), "position_embd": matrix(8, 96), "blk": list(layer)}
            let meta = {"general.architecture": "nomic-bert", "nomic-bert.block_count": 1, "nomic-bert.embedding_length": 96,
                        "nomic-bert.attention.head_count": 6, "nomic-bert.attention.layer_norm_epsilon": 1e-12}
            save_model(net, "q.gguf", dtype: "q8_0", meta: meta)
            let (m, ids) = (load_model("q.gguf"), [1, 2, 3, 4, 5])
            assert_eq(str(m.position_embd.weight.dtype), "q8_0")
            assert_about_eq(m.states(ids), load_model_f32("q.gguf").states(ids), 5e-3)"""
        self.says(wide)

    def test_a_page_that_gives_no_rows(self):
        self.write_with_words(Bert(15))
        (self.folder / "models").mkdir()
        (self.folder / "models/bert.tl").write_text("""
            struct Own { width: int }
            fn open(m: model) { Own { width: 4 } }
            impl Own { fn forward(self, ids) { ids * self.width } }""")
        self.fails('embed(load_model("a.gguf"), "a")', "error[shape]: the page's forward gives int64[3] for 3 ids")
        (self.folder / "models/bert.tl").write_text("""
            struct Own { width: int }
            fn open(m: model) { Own { width: 3 } }
            impl Own {
                fn forward(self, ids) {
                    self.width += 1
                    ones([len(ids), self.width])
                }
            }""")
        self.fails('embed(load_model("a.gguf"), list("a", "a"))', "error[shape]: the page gives a vector of 5 numbers after one of 4")

    def test_texts_alone_and_together(self):
        for number, kind in enumerate(NETS):
            with self.subTest(kind.name):
                self.write_with_words(kind(60 + number))
                self.says("""
                    let (m, texts) = (load_model("a.gguf"), list("a", "b unaffable a cafe .", "a b", "b b b b b b"))
                    let together = embed(m, texts)
                    for i, text in texts { assert_eq(embed(m, text), together[i]) }
                    for i, text in texts { assert_eq(embed(m, list("cafe", text))[1], together[i]) }""")

    def test_layers_after_the_pooling(self):
        class Dense(Bert):
            dense = (7, 5)
        net = Dense(11)
        self.write_with_words(net)
        row = [sum(column) / 7 for column in zip(*net.states(TEXT_IDS))]
        for i in (2, 3):
            row = [sum(a * b for a, b in zip(row, weights)) for weights in net.weights[f"dense_{i}.weight"]]
        self.near(self.says(f'print(to_json(embed(load_model("a.gguf"), "{TEXT}").to_list()))'), [pooled([row])])

    def test_served(self):
        self.write_with_words(Bert(12), {"bert.pooling_type": 2})
        server = Server(self.folder, model="a.gguf")
        try:
            status, answer = server.post("/v1/embeddings", {"input": [TEXT, "a b"], "encoding_format": "base64"})
            self.assertEqual((status, answer["usage"]), (200, {"prompt_tokens": 11, "total_tokens": 11}))
            got = [list(struct.unpack("<24f", base64.b64decode(row["embedding"]))) for row in answer["data"]]
            [want] = self.says(f'print(to_json(embed(load_model("a.gguf"), list("{TEXT}", "a b")).to_list()))')
            self.assertEqual(got, want)
            said = ENCODER.removeprefix("error[value]: ") + f" ({ADVICE.removeprefix('= help: ')})"
            for path, body in (("/v1/completions", {"prompt": "a"}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})):
                status, answer = server.post(path, body)
                self.assertEqual((status, answer["error"]["message"]), (400, said))
        finally:
            server.stop()

    def test_described(self):
        self.write_with_words(Bert(13), {"bert.pooling_type": 2})
        result = run("models", "a.gguf", cwd=self.folder)
        self.assertEqual(result.status, 0, result.err)
        lines = [line.split(None, 1) for line in result.out.splitlines()]
        self.assertIn(["architecture", "bert"], lines)
        self.assertIn(["pooling", "cls"], lines)
        self.assertNotIn("cache", result.out)
        self.assertNotIn("tokens/s", result.out)
        result = run("chat", "a.gguf", cwd=self.folder)
        self.assertIn(ENCODER, result.err)
        self.assertEqual(self.says('print(load_model("a.gguf").encodes())'), [True])
        self.write_with_words(Bert(13), {"bert.pooling_type": 4})
        self.assertIn("pooling       not supported (4)\n", run("models", "a.gguf", cwd=self.folder).out)
        self.write(Net(1))
        self.assertEqual(self.says('print(load_model("a.gguf").encodes())'), [False])

    # --- folders

    def same(self, net, kind, config=None, **more):
        write_encoder(self.folder / "folder", net, kind, config, **more)
        self.near(self.states("folder"), net.states(IDS))

    def test_folders(self):
        old = {"layer_norm_eps": None, "layer_norm_epsilon": 1e-5, "max_position_embeddings": None, "n_positions": 64, "hidden_size": None,
               "n_embd": 24, "num_attention_heads": None, "n_head": 4, "num_hidden_layers": None, "n_layer": 3, "rotary_emb_base": 1000,
               "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "prenorm": False, "hidden_act": None,
               "activation_function": "swiglu", "max_trained_positions": 13}
        near = {"layer_norm_eps": None, "norm_eps": 1e-5, "hidden_act": None, "hidden_activation": "gelu", "local_attention": 5,
                "global_attn_every_n_layers": 3}
        rotations = {"full_attention": {"rope_theta": 5000.0}, "sliding_attention": {"rope_theta": 300.0}}
        small = {"hidden_size": None, "dim": 24, "num_attention_heads": None, "n_heads": 4, "num_hidden_layers": None, "n_layers": 3,
                 "layer_norm_eps": 1e-5, "hidden_act": None, "activation": "gelu"}
        for number, (net, kind, config) in enumerate([
            (Bert, "bert", {"position_embedding_type": "absolute"}), (Bert, "electra", {"embedding_size": 24}), (Bert, "distilbert", small),
            (NomicBert, "nomic_bert", old),
            (NomicBert, "nomic_bert", {"hidden_act": "silu", "rope_parameters": {"rope_theta": 1000.0, "rope_type": "default"}}),
            (ModernBert, "modernbert", {**near, "global_rope_theta": 5000.0, "local_rope_theta": 300.0}),
            (ModernBert, "modernbert", {**near, "rope_parameters": rotations}), (EuroBert, "eurobert", LLAMA),
            (GemmaEmbedding, "gemma3_text", GEMMA),
        ]):
            with self.subTest(kind, number=number):
                self.same(net(70 + number), kind, config)
        self.assertEqual(self.says('let m = load_model("folder")\nprint(m.meta("gemma-embedding.attention.causal"))'), [False])

    def test_positions_that_are_cut(self):
        """Those up to the padding's are for no token."""
        for kind in ("roberta", "xlm-roberta", "camembert", "mpnet"):
            with self.subTest(kind):
                net = MpNet(80) if kind == "mpnet" else Bert(80)
                tensors = tensors_of(net, kind)
                name = next(name for name in tensors if name.endswith("position_embeddings.weight"))
                tensors[name] = [[9.0] * 24] * 2 + tensors[name]
                self.same(net, kind, {"pad_token_id": None if kind == "camembert" else 1, "max_position_embeddings": POSITIONS + 2}, tensors=tensors)
                self.assertEqual(self.says('let m = load_model("folder")\nprint(to_json(list(m.meta(m.meta("general.architecture") + ".context_length"), '
                                           'm.position_embd.weight.shape)))'), [[POSITIONS, [POSITIONS, 24]]])

    def test_old_names(self):
        """gamma and beta, and tensors that are of no use."""
        net = Bert(81)
        tensors = {}
        for name, values in tensors_of(net, "bert").items():
            if "LayerNorm" in name:
                name = name.replace("weight", "gamma").replace("bias", "beta")
            tensors["bert." + name] = values
        tensors |= {"bert.pooler.dense.weight": [[1.0] * 24] * 24, "bert.pooler.dense.bias": [1.0] * 24,
                    "bert.embeddings.position_ids": [[float(i) for i in range(POSITIONS)]], "cls.predictions.bias": [1.0] * 11}
        self.same(net, "bert", tensors=tensors)

    def test_without_an_epsilon(self):
        """It is BERT's."""
        net = Bert(82)
        write_encoder(self.folder / "folder", net, "bert", {"layer_norm_eps": None})
        self.assertAlmostEqual(self.says('print(load_model("folder").meta("bert.attention.layer_norm_epsilon"))')[0], 1e-12, delta=1e-18)

    def test_saved_as_gguf(self):
        """With all that the folder says: the same bits."""
        net = Bert(83)
        write_encoder(self.folder / "folder", net, "roberta", {"pad_token_id": 0, "hidden_act": "relu"})
        dense = [(net.random.matrix(5, 24), net.random.vector(5), "torch.nn.modules.activation.Tanh")]
        write_modules(self.folder / "folder", {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, dense)
        self.says(f"""
            let m = load_model("folder")
            save_model(m, "saved.gguf", meta: parse_json({json.dumps(json.dumps(WORDS))}))
            let n = load_model("saved.gguf")
            assert_eq(n.states({IDS[:9]}), m.states({IDS[:9]}))
            let row = tanh(linear(n.states({TEXT_IDS})[:1], n.dense_2.weight) + n.dense_2.bias)
            assert_about_eq(embed(n, "{TEXT}"), row[0] / norm(row), 1e-5)""")

    def test_modules(self):
        net, folder = Bert(84), self.folder / "folder"
        write_encoder(folder, net, "bert")
        for config, number in (({"pooling_mode": "mean"}, 1), ({"pooling_mode": "cls"}, 2), ({"pooling_mode": "lasttoken"}, 3),
                               ({"pooling_mode_lasttoken": True, "pooling_mode_cls_token": False}, 3), ({"pooling_mode_mean_tokens": True}, 1)):
            write_modules(folder, config)
            self.assertEqual(self.says('print(load_model("folder").meta("bert.pooling_type"))'), [number])
        write_folder(self.folder / "decoder", Qwen3(5), "qwen3")
        write_modules(self.folder / "decoder", {"pooling_mode_lasttoken": True})
        self.assertEqual(self.says('print(load_model("decoder").meta("qwen3.pooling_type"))'), [3])

    def test_what_is_wrong_with_modules(self):
        net, folder = Bert(85), self.folder / "folder"
        write_encoder(folder, net, "bert")
        layer = (net.random.matrix(5, 24), None, "torch.nn.modules.linear.Identity")
        mean = {"pooling_mode_mean_tokens": True}
        for arguments, expected in [
            (({"pooling_mode_max_tokens": True},), "folder/1_Pooling/config.json: pooling_mode_max_tokens is not supported"),
            (({"pooling_mode": "weightedmean"},), "folder/1_Pooling/config.json: weightedmean is not supported"),
            (({**mean, "pooling_mode_cls_token": True},), "folder/1_Pooling/config.json: pooling_mode_cls_token is not supported"),
            ((mean, [(*layer[:2], "torch.nn.ReLU")]), "folder/2_Dense: the activation torch.nn.ReLU is not supported"),
            ((mean, [layer], ["Dense", "Pooling"]), "folder/modules.json: 1_Pooling comes before the pooling, which is not supported"),
            ((mean, [], ["WordWeights"]), "folder/modules.json: the module sentence_transformers.models.WordWeights is not supported"),
        ]:
            with self.subTest(expected):
                write_modules(folder, *arguments)
                self.fails('load_model("folder")', "error[format]: " + expected)
        for modules, expected in [
            ([{"path": "x"}], "error[format]: folder/modules.json: the module without a type is not supported"),
            ([{"type": "Pooling", "path": "../x"}], 'error[format]: folder/modules.json: "../x" is not the name of a folder in it'),
        ]:
            (folder / "modules.json").write_text(json.dumps(modules))
            self.fails('load_model("folder")', expected)
        write_folder(self.folder / "decoder", Qwen3(5), "qwen3")
        write_modules(self.folder / "decoder", mean, [layer])
        self.fails('load_model("decoder")', "error[format]: decoder/modules.json: 2_Dense follows a decoder, which is not supported")

    def test_what_is_wrong_with_a_folder(self):
        for config, key in (({"is_decoder": True}, "is_decoder"), ({"prenorm": True}, "prenorm"),
                            ({"rotary_emb_interleaved": True}, "rotary_emb_interleaved"),
                            ({"position_embedding_type": "relative_key"}, "position_embedding_type"), ({"embedding_size": 8}, "embedding_size")):
            write_encoder(self.folder / "folder", Bert(86), "bert", config)
            self.fails('load_model("folder")', f"error[format]: folder/config.json: {key} is not supported")


if __name__ == "__main__":
    unittest.main()
