"""Models as Hugging Face publishes them: folders with config.json, safetensors and tokenizer.json."""
import json
import math
import random
import shutil
import struct
import tempfile
import unittest
from pathlib import Path

import language_models
from language_models import SIZE, Gemma2, Mixtral, Net, Phi3, Qwen2, Qwen3, plain_frequencies
from model_folders import safetensors, tensors_of, write_folder
from tl import fixture, run

IDS = [1, 7, 3, 10, 2, 2, 9, 4]
PROGRAM = 'print(to_json(load_model("folder").forward(%s).to_list()))'


def outcome(code, folder, **settings):
    """What a program says; nothing of it leaks."""
    result = run("-e", code, cwd=folder, env={"TL_MEMORY_CHECK": "strict", **settings})
    assert result.status != 3, result.err
    result.err = result.err.split("=== Device memory check")[0]
    return result


class Folders(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = Path(self.scratch.name)

    def same(self, net, kind, config=None, ids=IDS, bound=2e-4, settings=None, **how):
        """The folder gives the logits of the network in double."""
        write_folder(self.folder / "folder", net, kind, config, **how)
        result = outcome(PROGRAM % ids, self.folder, **(settings or {}))
        self.assertEqual((result.status, result.err), (0, ""))
        for row, want in zip(json.loads(result.out), net.logits(ids), strict=True):
            for a, b in zip(row, want, strict=True):
                self.assertAlmostEqual(a, b, delta=bound)

    def test_llama(self):
        self.same(Net(1), "llama")

    def test_llama_in_three_files(self):
        self.same(Net(1), "llama", files=3)

    def test_mistral_sees_a_window(self):
        net = Net(2)
        net.window = 3
        self.same(net, "mistral", {"sliding_window": 3})

    def test_mixtral(self):
        self.same(Mixtral(5), "mixtral", {"rope_theta": 10000.0, "num_local_experts": 5, "num_experts_per_tok": 2, "sliding_window": None})

    def test_qwen2(self):
        self.same(Qwen2(6), "qwen2", {"use_sliding_window": False, "sliding_window": 2, "rope_theta": 10000.0})

    def test_qwen3(self):
        self.same(Qwen3(7), "qwen3")

    def test_gemma2(self):
        self.same(Gemma2(8), "gemma2", {"query_pre_attn_scalar": SIZE, "sliding_window": 4, "attn_logit_softcapping": 1.5, "final_logit_softcapping": 2.5})

    def test_more_architectures(self):
        experts = {"num_experts": 5, "num_experts_per_tok": 2}
        for number, (name, kind, config) in enumerate([
            ("Gemma", "gemma", {}), ("Qwen3Moe", "qwen3_moe", experts), ("Qwen2Moe", "qwen2_moe", experts), ("SmolLM3", "smollm3", {"rope_theta": 10000.0}),
            ("Gemma3", "gemma3_text", {"query_pre_attn_scalar": SIZE, "sliding_window": 4, "rope_theta": 5000.0, "rope_scaling": {"rope_type": "linear", "factor": 8.0}}),
            ("Gemma3", "gemma3_text", {"query_pre_attn_scalar": SIZE, "sliding_window": 4, "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5000.0},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}),
            ("Granite", "granite", {"embedding_multiplier": 3.0, "attention_multiplier": 0.25, "residual_multiplier": 0.4,
                                    "logits_scaling": 2.0}),
            ("Olmo2", "olmo2", {}), ("GPT2", "gpt2", {"layer_norm_epsilon": 1e-5}),
            ("Phi2", "phi", {"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.7}),
            ("StarCoder2", "starcoder2", {"norm_epsilon": 1e-5}),
            ("StableLM", "stablelm", {"layer_norm_eps": 1e-5, "partial_rotary_factor": 0.34}),
        ]):
            with self.subTest(name):
                self.same(getattr(language_models, name)(40 + number), kind, config)

    def test_halves(self):
        net = Net(1)
        for name, values in net.weights.items(): # numbers that float16 holds
            rows = values if isinstance(values[0], list) else [values]
            for row in rows:
                row[:] = [round(x * 64) / 64 for x in row]
        self.same(net, "llama", dtype="F16", settings={"TL_CACHE": "float32"})
        self.same(net, "llama", dtype="F16", bound=1e-2)

    def test_phi3(self):
        net = Phi3(9)
        factors = {f"{name}_factor": net.weights[f"rope_factors_{name}.weight"] for name in ("short", "long")}
        config = {"original_max_position_embeddings": 8, "sliding_window": 5, "rope_scaling": {"type": "longrope", **factors}}
        net.magnitude = math.sqrt(1 + math.log(64 / 8) / math.log(8))
        self.same(net, "phi3", config)
        self.same(net, "phi3", config, ids=IDS + [5, 6])

    def test_angles_of_llama_3(self):
        net, (factor, low, high, context, base) = Net(3), (8.0, 1.0, 4.0, 128, 500.0)
        net.frequencies = []
        for frequency in plain_frequencies(base):
            length = 2 * math.pi / frequency
            smooth = (context / length - low) / (high - low)
            if length < context / high:
                net.frequencies.append(frequency)
            elif length > context / low:
                net.frequencies.append(frequency / factor)
            else:
                net.frequencies.append((1 - smooth) * frequency / factor + smooth * frequency)
        self.assertEqual(len({round(a / b, 6) for a, b in zip(net.frequencies, plain_frequencies(base))}), 3)
        scaling = {"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
                   "original_max_position_embeddings": context}
        self.same(net, "llama", {"rope_scaling": scaling, "rope_theta": base})
        self.same(net, "llama", {"rope_parameters": {**scaling, "rope_theta": base}})

    def test_angles_of_llama_3_on_a_part_of_each_head(self):
        write_folder(self.folder / "folder", Net(3), "llama", {
            "head_dim": 12, "partial_rotary_factor": 0.5, "rope_scaling": {"rope_type": "llama3"}})
        result = outcome('print(load_model("folder").rope_freqs.weight.shape)', self.folder)
        self.assertEqual((result.out, result.err), ("[3]\n", ""))

    def test_angles_of_hunyuan(self):
        """Its alpha makes the base larger."""
        folder = self.folder / "folder"
        scaling = {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}
        for config in ({"rope_theta": 5000.0, "rope_scaling": scaling}, {"rope_parameters": {**scaling, "rope_theta": 5000.0}}):
            write_folder(folder, Net(1), "hunyuan_v1_dense", {**config, "head_dim": 16})
            result = outcome('print(load_model("folder").meta("hunyuan-dense.rope.freq_base"))', self.folder)
            self.assertAlmostEqual(float(result.out) / (5000.0 * 1000.0 ** (16 / 14)), 1, delta=1e-6)

    def test_angles_of_several_positions(self):
        """Qwen2-VL's, of which a text has one."""
        self.same(Qwen2(6), "qwen2_vl", {"rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 1]}})

    def test_keys_that_are_left_out(self):
        """Gemma 3 is published with few keys of its part for texts; the others are what Transformers takes."""
        folder = self.folder / "folder"
        for kind, architecture, config, expected in [
            ("gemma3_text", "gemma3", {"hidden_size": 2560, "rope_scaling": {"factor": 8.0, "rope_type": "linear"}},
             {"attention.head_count": 8, "attention.head_count_kv": 4, "attention.key_length": 256, "rope.freq_base": 1000000.0,
              "attention.scale": 0.0625, "attention.sliding_window": 4096, "rope.scaling.factor": 8.0}),
            ("gemma3_text", "gemma3", {"rope_parameters": {"full_attention": {"rope_theta": 5000.0}}}, {"rope.freq_base": 5000.0}),
            ("mistral", "llama", {"sliding_window": None, "rope_theta": 1e9},
             {"attention.head_count": 32, "attention.head_count_kv": 8, "rope.freq_base": 1e9, "attention.sliding_window": "none"}),
            ("bloom", "bloom", {"n_embed": 64}, {"embedding_length": 64}),
            ("gpt_neox", "gptneox", {"hidden_size": 64, "num_attention_heads": 4, "rotary_emb_base": 5000},
             {"rope.freq_base": 5000.0, "rope.dimension_count": 4}),
        ]:
            folder.mkdir(exist_ok=True)
            (folder / "config.json").write_text(json.dumps({"model_type": kind, **config}))
            (folder / "model.safetensors").write_bytes(safetensors({"x": [1.0]}))
            asked = ", ".join(f'm.meta("{architecture}.{word}", "none")' for word in expected)
            result = outcome(f'let m = load_model("folder")\nprint({asked}, sep: ";")', self.folder)
            with self.subTest(kind):
                self.assertEqual((result.out.strip().split(";"), result.err), ([str(value) for value in expected.values()], ""))

    def test_linear_angles(self):
        net = Net(2)
        net.frequencies = [a / 4 for a in plain_frequencies()]
        self.same(net, "llama", {"rope_scaling": {"type": "linear", "factor": 4.0}})

    def test_angles_by_yarn(self):
        factor, context, base = 4.0, 16, 10000.0
        net = Net(4)

        def pair(rotations):
            return SIZE * math.log(context / (rotations * 2 * math.pi)) / (2 * math.log(base))
        low, high = max(0, math.floor(pair(4.0))), min(SIZE - 1, math.ceil(pair(1.0)))
        kept = [1 - min(1, max(0, (i - low) / max(0.001, high - low))) for i in range(SIZE // 2)]
        net.frequencies = [a * k + a / factor * (1 - k) for a, k in zip(plain_frequencies(), kept)]
        scaling = {"rope_type": "yarn", "factor": factor, "beta_fast": 4.0, "original_max_position_embeddings": context}
        net.magnitude = 1 + 0.1 * math.log(factor)
        self.same(net, "llama", {"rope_scaling": scaling})
        net.magnitude = 1.25
        self.same(net, "llama", {"rope_scaling": {**scaling, "attention_factor": 1.25}})

    PEFT = {"peft_type": "LORA", "r": 2, "lora_alpha": 3, "bias": "none", "target_modules": ["q_proj"], "rank_pattern": {},
            "modules_to_save": None, "use_dora": False}

    def write_adapter(self, tensors, config=None):
        (self.folder / "peft").mkdir(exist_ok=True)
        (self.folder / "peft" / "adapter_config.json").write_text(json.dumps({**self.PEFT, **(config or {})}))
        (self.folder / "peft" / "adapter_model.safetensors").write_bytes(safetensors(tensors))

    def test_adapters_of_peft(self):
        """With an adapter a folder, and the GGUF file of it, give the logits of the folder whose weights have it added."""
        random_numbers = random.Random(5)
        for net, kind, config, scale in ((Net(1), "llama", {}, 3 / 2), (Qwen2(6), "qwen2", {"use_rslora": True}, 3 / math.sqrt(2))):
            write_folder(self.folder / "folder", net, kind)
            write_folder(self.folder / "merged", net, kind)
            tensors, adapter = tensors_of(net, kind), {}
            for name, weight in tensors.items():
                if name.split(".")[-2] not in ("q_proj", "k_proj", "o_proj", "down_proj") or not name.endswith(".weight"):
                    continue
                down = [[random_numbers.gauss(0, 0.3) for _ in weight[0]] for _ in range(2)]
                up = [[random_numbers.gauss(0, 0.3) for _ in range(2)] for _ in weight]
                tensors[name] = [[w + scale * sum(u * d[i] for u, d in zip(us, down)) for i, w in enumerate(row)]
                                 for row, us in zip(weight, up)]
                stem = "base_model.model." + name.removesuffix(".weight")
                adapter |= {stem + ".lora_A.weight": down, stem + ".lora_B.weight": up}
            (self.folder / "merged" / "model.safetensors").write_bytes(safetensors(tensors))
            self.write_adapter(adapter, config)
            with self.subTest(kind):
                result = outcome(f"""
                    import "std/lora.tl"
                    let m = load_model("folder")
                    let want = load_model("merged").forward({IDS})
                    let lora = load_lora("peft", m)
                    print(len(lora.parts))
                    assert_about_eq(lora.on(m).forward({IDS}), want, 1e-4)
                    save_model(m, "saved.gguf")
                    let n = load_model("saved.gguf")
                    assert_about_eq(load_lora("peft", n).on(n).forward({IDS}), want, 1e-4)
                    assert(max(abs(want - m.forward({IDS}))) > 0.1)""", self.folder)
                self.assertEqual((result.out, result.err), (f"{4 * net.layers}\n", ""))

    def test_what_is_wrong_with_an_adapter(self):
        write_folder(self.folder / "folder", Net(1), "llama")
        names = ["base_model.model.model.layers.0.self_attn.v_proj.lora_%s.weight" % letter for letter in "AB"]
        down, up = [[0.5] * 24] * 2, [[0.5] * 2] * 12
        says = "error[format]: peft/adapter_config.json: "
        other = "base_model.model.lm_head.lora_A.weight"
        for config, tensors, expected in [
            ({"peft_type": "IA3"}, {}, says + "peft_type is IA3; LORA is known"),
            ({"use_dora": True}, {}, says + "use_dora is not supported"),
            ({"rank_pattern": {"q_proj": 4}}, {}, says + "rank_pattern is not supported"),
            ({"modules_to_save": ["lm_head"]}, {}, says + "modules_to_save is not supported"),
            ({"bias": "all"}, {}, says + "bias: all is not supported"),
            ({"r": 0}, {}, says + "r must be a rank, but it is 0"),
            ({"lora_alpha": "x"}, {}, says + "lora_alpha must be a number, but it is x"),
            ({}, {other: down}, f"error[format]: peft: the tensor {other} is of no projection that is known"),
            ({}, {names[0]: down}, f'error[name]: peft/adapter_model.safetensors has no tensor called "{names[1]}"'),
        ]:
            with self.subTest(expected):
                self.write_adapter(tensors, config)
                result = outcome('import "std/lora.tl"\nload_lora("peft", load_model("folder"))', self.folder)
                self.assertTrue(result.err.startswith(expected), result.err)
        self.write_adapter(dict(zip(names, (down, up))))
        result = outcome('import "std/lora.tl"\nload_lora("peft")', self.folder)
        self.assertIn("error[value]: peft is an adapter of PEFT: load_lora(path, m) needs its model\n", result.err)

    def test_it_is_as_a_gguf_file(self):
        """Names, metadata, and what is saved from it are those of GGUF."""
        net = Net(1)
        write_folder(self.folder / "folder", net, "llama", {"bos_token_id": 1})
        code = """
            let m = load_model("folder")
            print(m.meta("general.architecture"), m.meta("llama.block_count"), m.blk[1].attn_q.weight.shape, len(m.tensors()))
            save_model(m, "saved.gguf")
            let n = load_model("saved.gguf")
            assert_eq(n.forward([1, 2, 3]), m.forward([1, 2, 3]))
            print(n.meta("llama.attention.head_count_kv"))"""
        result = outcome(code, self.folder)
        self.assertEqual((result.out, result.err), ("llama 2 [24, 24] 21\n2\n", ""))

    def test_tokenizer_and_chat(self):
        """tokenizer.json, the tokens that end a text, and the template of a folder."""
        write_folder(self.folder / "folder", Net(1), "llama", {"eos_token_id": 2})
        shutil.copy(fixture(self, "tokenizers/tinyllama.json"), self.folder / "folder/tokenizer.json")
        (self.folder / "folder/generation_config.json").write_text('{"eos_token_id": [2, 5]}')
        template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
        (self.folder / "folder/tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
        code = """
            let m = load_model("folder")
            print(m.tokenizer().eos, m.tokenizer().bos, tokenize(m.tokenizer(), "Once").to_list())
            print(apply_chat_template(m, "Hello"))"""
        result = outcome(code, self.folder)
        self.assertEqual((result.out, result.err), ("5 1 [1, 9038]\n<user>Hello\n", ""))
        several = [{"name": "tools", "template": "no"}, {"name": "default", "template": "several"}]
        (self.folder / "folder/tokenizer_config.json").write_text(json.dumps({"chat_template": several}))
        self.assertEqual(outcome('print(apply_chat_template(load_model("folder"), "a"))', self.folder).out, "several\n")
        (self.folder / "folder/chat_template.jinja").write_text("apart")
        self.assertEqual(outcome('print(apply_chat_template(load_model("folder"), "a"))', self.folder).out, "apart\n")

    def test_a_part_for_texts(self):
        """A model of texts and pictures: its text_config, and names with a prefix; pictures' tensors stay."""
        net = Qwen3(7)
        write_folder(self.folder / "folder", net, "qwen3")
        config = json.loads((self.folder / "folder/config.json").read_text())
        (self.folder / "folder/config.json").write_text(json.dumps({"model_type": "both", "text_config": config}))
        tensors = {name.replace("model.", "language_model.model.", 1): values for name, values in tensors_of(net, "qwen3").items()}
        (self.folder / "folder/model.safetensors").write_bytes(safetensors({**tensors, "vision.patch": [1.0, 2.0]}))
        result = outcome(PROGRAM % IDS + '\nprint(load_model("folder").has_tensor("vision.patch"))', self.folder)
        self.assertEqual(result.err, "")
        self.assertAlmostEqual(json.loads(result.out.splitlines()[0])[3][4], net.logits(IDS)[3][4], delta=2e-4)
        self.assertEqual(result.out.splitlines()[1], "true")

    def test_a_page_of_the_user(self):
        write_folder(self.folder / "folder", Net(1), "mine_own")
        (self.folder / "models").mkdir()
        (self.folder / "models/mine_own.tl").write_text("""
            struct Mine { width: int }
            fn open(m: model) { Mine { width: m.meta("mine_own.embedding_length") } }
            impl Mine {
                fn forward(self, ids) { ids * self.width }
                fn logits(self, x) { x.unsqueeze(1) as float32 }
            }""")
        (self.folder / "p.tl").write_text('print(load_model("folder").forward([1, 2]).to_list())')
        result = run("run", "p.tl", cwd=self.folder)
        self.assertEqual((result.out, result.err), ("[[24.0], [48.0]]\n", ""))

    def refused(self, code='load_model("folder")'):
        result = outcome(code, self.folder)
        self.assertEqual(result.status, 1, result.out)
        lines = [line.strip() for line in result.err.splitlines()]
        return [lines[0]] + [line for line in lines if line.startswith("= help")]

    def test_experts_in_mxfp4(self):
        """As gpt-oss is published: two numbers a byte, scales apart, rows of gates and others in turns."""
        levels = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
        experts, rows, blocks = 3, 4, 2
        source = random.Random(4)
        folder = self.folder / "folder"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"model_type": "gpt_oss", "num_hidden_layers": 1, "num_local_experts": experts}))
        header, data, wanted = {}, b"", {}
        for name in ("gate_up_proj", "down_proj"):
            numbers = [[source.randrange(256) for _ in range(blocks * 16)] for _ in range(experts * rows)]
            scales = [[source.randrange(120, 134) for _ in range(blocks)] for _ in range(experts * rows)]
            wanted[name] = [[(-1.0 if code & 8 else 1.0) * levels[code & 7] * 2.0 ** (scale[i // 16] - 127) for i, byte in enumerate(row)
                             for code in (byte & 15, byte >> 4)] for row, scale in zip(numbers, scales)]
            for end, values, dims in (("_blocks", numbers, [experts, rows, blocks, 16]), ("_scales", scales, [experts, rows, blocks])):
                more = bytes(x for row in values for x in row)
                header[f"model.layers.0.mlp.experts.{name}{end}"] = {"dtype": "U8", "shape": dims, "data_offsets": [len(data), len(data) + len(more)]}
                data += more
        text = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
        code = """
            let m = load_model("folder")
            for word in list("gate", "up", "down") {
                let w = get_tensor(m, f"blk.0.ffn_{word}_exps.weight")
                print(w.dtype, w.shape)
                print(to_json((w as float32).reshape([-1, 64]).to_list()))
            }
            save_model(m, "a.gguf")
            print([t.name for t in load_model("a.gguf").tensors()])
            print([t.name for t in m.tensors()])"""
        lines = outcome(code, self.folder).out.splitlines()
        about = json.loads(run("models", "--json", folder).out)
        self.assertEqual((about["parameters"], about["bytes"]), (2 * experts * rows * blocks * 32, len(data))) # each once
        self.assertEqual(sorted(json.loads(lines.pop())), sorted(json.loads(lines[6])))
        self.assertEqual(lines[0::2], ["mxfp4 [3, 2, 64]", "mxfp4 [3, 2, 64]", "mxfp4 [3, 4, 64]",
                                       '["blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight", "blk.0.ffn_down_exps.weight"]'])
        self.assertEqual([json.loads(line) for line in lines[1:6:2]], [wanted["gate_up_proj"][0::2], wanted["gate_up_proj"][1::2], wanted["down_proj"]])

    def test_what_is_wrong_with_a_folder(self):
        """Each file that is missing or broken is named."""
        place = self.folder / "folder"
        place.mkdir()
        self.assertEqual(self.refused(), [
            "error[format]: folder is a folder without config.json",
            "= help: a folder that is a model has config.json, tokenizer.json and model.safetensors, or its index and parts"])
        for config, expected in [
            ("{", "folder/config.json: line 1: string or '}' expected near end of file"),
            ("{}", "folder/config.json does not say the model_type"),
            ('{"model_type": "llama", "num_hidden_layers": "two"}', "folder/config.json: num_hidden_layers is not an integer"),
            ('{"model_type": "llama", "rms_norm_eps": "x"}', "folder/config.json: rms_norm_eps is not a number"),
            ('{"model_type": "llama", "layer_types": ["full_attention", "odd"]}',
             "folder/config.json: layer_types has odd, which is not supported"),
            ('{"model_type": "llama", "layer_types": [1]}',
             "folder/config.json: layer_types has what is not a name, which is not supported"),
            ('{"model_type": "llama", "hidden_act": "gelu"}',
             "folder/config.json: hidden_act is gelu, but silu is what such models have"),
            ('{"model_type": "gpt2", "scale_attn_by_inverse_layer_idx": true}',
             "folder/config.json: scale_attn_by_inverse_layer_idx: true is not supported"),
            ('{"model_type": "falcon", "parallel_attn": false}', "folder/config.json: parallel_attn: false is not supported"),
            ('{"model_type": "deepseek_v3", "norm_topk_prob": 1}', "folder/config.json: norm_topk_prob is not true or false"),
            ('{"model_type": "llama"}', "folder has neither model.safetensors nor model.safetensors.index.json"),
        ]:
            (place / "config.json").write_text(config)
            self.assertEqual(self.refused(), ["error[format]: " + expected])
        (place / "config.json").write_text('{"model_type": "phi3", "rope_scaling": {"type": "su", "short_factor": []}}')
        (place / "model.safetensors").write_bytes(safetensors({"x": [1.0]}))
        self.assertEqual(self.refused(), ["error[format]: folder/config.json: short_factor is not a list of numbers"])
        (place / "config.json").write_text('{"model_type": "gpt_oss"}')
        (place / "model.safetensors").write_bytes(safetensors({"model.layers.0.mlp.experts.gate_up_proj_blocks": [1.0]}))
        self.assertEqual(self.refused(), ["error[format]: folder: model.layers.0.mlp.experts.gate_up_proj_blocks and its scales are "
                                          "not blocks of MXFP4"])
        self.assertEqual(self.refused('import "std/decoder.tl"\nslopes(1000000000000, 8.0)'),
                         ["error[value]: a model of 1000000000000 heads; at most 65536 are supported"])
        for padding in (-2 ** 63, 2 ** 63 - 1, 10 ** 6): # rows of positions that cannot be left out
            (place / "config.json").write_text('{"model_type": "roberta", "num_attention_heads": 1, "pad_token_id": %d}' % padding)
            (place / "model.safetensors").write_bytes(safetensors({"roberta.embeddings.position_embeddings.weight": [[1.0] * 4] * 3}))
            self.assertEqual(outcome('print(load_model("folder").position_embd.weight.shape)', self.folder).out, "[3, 4]\n")
        (place / "config.json").write_text('{"model_type": "odd"}')
        message, more = self.refused('load_model("folder").forward([1])')
        self.assertTrue(message.startswith('error[value]: folder has the architecture "odd"; known are '), message)
        self.assertIn("computes the architecture NAME", more)

    def test_what_is_wrong_with_its_tensors(self):
        place = self.folder / "folder"
        write_folder(place, Net(1), "llama", {"num_key_value_heads": 5})
        self.assertEqual(self.refused('load_model("folder").blk[0].attn_k.weight'),
                         ["error[format]: float32[12, 24] cannot be the rows of 5 heads"])
        (place / "config.json").write_text('{"model_type": "bloom", "n_head": 5}')
        (place / "model.safetensors").write_bytes(safetensors({"transformer.h.0.self_attention.query_key_value.weight": [[1.0] * 4] * 12}))
        self.assertEqual(self.refused('load_model("folder").blk[0].attn_qkv.weight'),
                         ["error[format]: float32[12, 4] cannot be the rows of 5 groups of heads"])
        write_folder(place, Net(1), "llama", files=2)
        index = place / "model.safetensors.index.json"
        names = json.loads(index.read_text())["weight_map"]
        index.write_text(json.dumps({"weight_map": {**names, "extra": list(names.values())[0]}}))
        self.assertEqual(self.refused(), ["error[format]: folder/model.safetensors.index.json: tensor extra is not in "
                                          "model-00001-of-00002.safetensors"])
        index.write_text(json.dumps({"weight_map": {"a": "b/../c"}}))
        self.assertEqual(self.refused(), ['error[format]: folder/model.safetensors.index.json: "b/../c" is not the name of a '
                                          'file next to it'])
        for name in ("x", "y"):
            (place / name).write_bytes(safetensors({"same": [1.0]}))
        index.write_text(json.dumps({"weight_map": {"same": "x", "other": "y"}}))
        self.assertEqual(self.refused(), ["error[format]: folder/y: tensor same is in another of the files too"])
        self.assertEqual(self.refused('load_model("folder/model.safetensors.index.json")'),
                         ["error[format]: folder/y: tensor same is in another of the files too"])
        index.write_text(json.dumps({"weight_map": {"same": "z"}}))
        self.assertEqual(self.refused(), ["error[io]: cannot open folder/z: No such file or directory"])

    def test_files_that_were_changed_at_random(self):
        """Answered by logits or in words, never by a crash."""
        place, source = self.folder / "folder", random.Random(5)
        write_folder(place, Phi3(9), "phi3", {"rope_scaling": {"type": "longrope", "short_factor": [1.0, 2.0, 3.0],
                                                               "long_factor": [1, 2, 3]}})
        for name, end in (("config.json", None), ("model.safetensors", 1500)):
            whole = (place / name).read_bytes()
            for _ in range(60):
                data = bytearray(whole)
                for _ in range(source.choice([1, 3, 20])):
                    data[source.randrange(len(data[:end]))] = source.choice(b'0123456789-[]{}",:e.\0\xff')
                (place / name).write_bytes(data)
                result = outcome('load_model("folder").forward([1, 2])', self.folder)
                self.assertIn(result.status, (0, 1), result.err)
            (place / name).write_bytes(whole)

    def test_numbers_at_odd_addresses_and_of_8_bits(self):
        """What cannot be read in place is copied."""
        place = self.folder / "folder"
        place.mkdir()
        (place / "config.json").write_text('{"model_type": "llama"}')
        for padding in range(4):
            header = json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                 "y": {"dtype": "F8_E4M3", "shape": [2], "data_offsets": [8, 10]}}).encode() + b" " * padding
            (place / "model.safetensors").write_bytes(
                struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1.5, -2.0) + b"\x38\xc0")
            result = outcome('let m = load_model("folder")\nprint(m.x.to_list(), m.y.to_list(), m.y.dtype)', self.folder)
            self.assertEqual((result.out, result.err), ("[1.5, -2.0] [1.0, -2.0] float16\n", ""))


if __name__ == "__main__":
    unittest.main()
