"""tl generate, tl chat, tl models and tl quantize."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from language_models import FalconH1, Gemma3n, Gemma4, GraniteHybrid, Mamba2, Mixtral, NemotronH, Net, Qwen35, file_of
from test_foretell import measured
from model_folders import safetensors, tensors_of, write_folder
from parrot import PAGE, parrot
from terminal import Terminal
from tl import ROOT, TL, fixture, need_no_sanitizer, run

sys.path.insert(0, str(ROOT / "tests" / "bench"))
from synthetic import write_llama

STORY = "Once upon a time"
TEMPLATE = "{% for m in messages %}[{{ m.role[0] }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[a]{% endif %}"
MAKE = """
let m = load_model(args()[0])
save_model(m, "chat.gguf", meta: {"tokenizer.chat_template": args()[1], "general.name": "talker"})
"""
# What chat says to these messages.
SAYS = """
let messages = parse_json(args()[0])
print(chat(load_model("chat.gguf"), messages, max_tokens: 12, temperature: 0))
"""


class ModelCommands(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.folder = self.scratch.name
        self.model = fixture(self, "models/stories260K.gguf")

    def tl(self, *arguments, **more):
        return run(*arguments, cwd=self.folder, **more)

    def chat_model(self):
        made = self.tl("-e", MAKE, self.model, TEMPLATE)
        self.assertEqual(made.status, 0, made.err)

    def fails(self, *arguments, status=1):
        result = self.tl(*arguments)
        self.assertEqual((result.status, result.out), (status, ""), result.err)
        return result.err

    # --- generate

    def test_generate_says_what_the_builtin_says(self):
        code = f'print(generate(load_model("{self.model}"), "{STORY}", max_tokens: 20, temperature: 0))'
        expected = self.tl("-e", code).out
        for arguments in ((self.model, STORY, "--max-tokens", 20, "--temperature", 0),
                          ("--max-tokens=20", "--temperature=0", self.model, "--", STORY)):
            result = self.tl("generate", *arguments)
            self.assertEqual((result.out, result.err, result.status), (expected, "", 0))
        result = self.tl("generate", self.model, "--max-tokens=20", "--temperature=0", stdin=STORY.encode())
        self.assertEqual(result.out, expected)

    def test_generate_with_a_seed(self):
        """The same one the same text, another another; top-k 1 is the likeliest at any temperature."""
        def said(*options):
            result = self.tl("generate", self.model, STORY, "--max-tokens=30", *options)
            self.assertEqual(result.err, "")
            return result.out
        self.assertEqual(said("--seed=5"), said("--seed", "5"))
        self.assertNotEqual(said("--seed=5"), said("--seed=6"))
        self.assertEqual(said("--temperature=3", "--top-k=1"), said("--temperature=0"))
        self.assertEqual(said("--temperature=3", "--top-p=0.0001"), said("--temperature=0"))

    def test_generate_stops(self):
        whole = self.tl("generate", self.model, STORY, "--temperature=0", "--max-tokens=60").out
        cut = self.tl("generate", self.model, STORY, "--temperature=0", "--max-tokens=60", "--stop=nothing like it", "--stop", "Lily").out
        self.assertIn("Lily", whole)
        self.assertEqual(cut.rstrip("\n"), whole[:whole.index("Lily")])

    def test_what_is_printed_is_seen_as_it_comes(self):
        """A line that does not end yet reaches a pipe before the program goes on."""
        os.mkfifo(Path(self.folder, "more"))
        command = [TL, "-e", 'print("a", end: "")\nread_file("more")\nprint("b")']
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=self.folder) as process:
            self.assertEqual(process.stdout.read(1), b"a")
            Path(self.folder, "more").write_text("")
            self.assertEqual(process.stdout.read(), b"b\n")

    def test_generate_refuses(self):
        usage = "usage: tl generate MODEL [PROMPT]\n"
        for arguments, message in [
            ((), "MODEL is missing"),
            (("a", "b", "c"), "c is not expected"),
            (("a", "--top-k"), "--top-k needs a value"),
            (("a", "--top-k=1.5"), '--top-k needs an integer from 0, but it is "1.5"'),
            (("a", "--max-tokens", "-3"), '--max-tokens needs an integer from 0, but it is "-3"'),
            (("a", "--temperature=warm"), '--temperature needs a number from 0, but it is "warm"'),
            (("a", "--top-p=nan"), '--top-p needs a number from 0, but it is "nan"'),
            (("a", "--system=x"), "there is no option --system=x"),
        ]:
            self.assertEqual(self.fails("generate", *arguments, status=2), f"error: {message}\n{usage}")
        self.assertEqual(self.fails("generate", "none.gguf", "x"), "error[io]: cannot open none.gguf: No such file or directory\n")
        Path(self.folder, "odd").write_text("not a model")
        self.assertEqual(self.fails("generate", "odd", "x"),
                         'error[format]: odd is not a GGUF file: it does not begin with "GGUF"\n')
        self.assertEqual(self.fails("generate", self.model, "x", "--top-p=7"), "error[value]: top_p: p is 7; it must be from 0 to 1\n")

    def test_a_page_next_to_the_user(self):
        """An architecture of his own is found in the folder that he is in."""
        Path(self.folder, "models").mkdir()
        Path(self.folder, "models/odd.tl").write_text("""
            struct Odd { said: int }
            fn open(m: model) { Odd { said: 0 } }
            impl Odd {
                fn forward(self, ids) { one_hot((ids + 1) % 400, 400) as float32 }
                fn logits(self, x) { x }
            }""")
        made = self.tl("-e", f'save_model(load_model("{self.model}"), "odd.gguf", meta: {{"general.architecture": "odd"}})')
        self.assertEqual(made.status, 0, made.err)
        result = self.tl("generate", "odd.gguf", "a", "--temperature=0", "--max-tokens=3")
        self.assertEqual((result.status, result.err), (0, ""))

    # --- chat

    def say(self, messages):
        result = self.tl("-e", SAYS, json.dumps(messages))
        self.assertEqual(result.err, "")
        return result.out.removesuffix("\n")

    def talk(self, *lines, options=()):
        """What is said after each prompt."""
        result = self.tl("chat", "chat.gguf", "--temperature=0", "--max-tokens=12", *options,
                         stdin="".join(line + "\n" for line in lines).encode("utf-8", "surrogateescape"))
        self.assertEqual(result.status, 0, result.err)
        return [said.removesuffix("\n") for said in result.out.split("> ")[1:]], result.err

    def test_chat_remembers(self):
        self.chat_model()
        first = [{"role": "user", "content": "Tom"}]
        one = self.say(first)
        two = self.say(first + [{"role": "assistant", "content": one}, {"role": "user", "content": "Sue"}])
        self.assertNotEqual(one, two)
        said, errors = self.talk("Tom", "", "Sue")
        self.assertEqual((said, errors), ([one, "", two, ""], ""))

    def test_chat_commands(self):
        self.chat_model()
        one = self.say([{"role": "user", "content": "Tom"}])
        said, errors = self.talk("Tom", "/clear", "Tom", "/retry", "/undo", "Tom", "/save talk.json", "/exit", "never")
        self.assertEqual((said, errors), ([one, "", one, one, "", one, "", ""], ""))
        messages = json.loads(Path(self.folder, "talk.json").read_text())
        self.assertEqual(messages, [{"role": "user", "content": "Tom"}, {"role": "assistant", "content": one}])
        two = self.say(messages + [{"role": "user", "content": "Sue"}])
        self.assertEqual(self.talk("/load talk.json", "Sue"), (["", two, ""], ""))
        system = self.say([{"role": "system", "content": "Be kind"}, {"role": "user", "content": "Tom"}])
        self.assertEqual(self.talk("/system Be kind", "Tom"), (["", system, ""], ""))
        self.assertEqual(self.talk("Tom", "/clear", "Tom", options=("--system", "Be kind")), ([system, "", system, ""], ""))

    def test_chat_draws_by_its_seed(self):
        self.chat_model()
        hot = ("--temperature=2", "--seed=4")
        said, _ = self.talk("Tom", "/retry", options=hot)
        self.assertNotEqual(said[0], said[1])
        self.assertEqual(self.talk("Tom", "/retry", options=hot)[0], said)

    def test_chat_errors_leave_the_talk(self):
        self.chat_model()
        said, errors = self.talk("/odd", "/retry", "/load none.json", "long " * 600, "/undo", "Tom")
        self.assertEqual(said[-2], self.say([{"role": "user", "content": "Tom"}]))
        lines = errors.splitlines()
        self.assertEqual(lines[:3], ["error: there is no command /odd; /help lists them", "error: nothing was asked yet",
                                     'error: cannot read "none.json": No such file or directory'])
        self.assertRegex(lines[3], r"^error: the prompt has \d+ tokens, but the model's context is 128$")
        self.assertIn("/save FILE    the messages as JSON\n", self.talk("/help")[0][0])

    def test_chat_goes_on_after_a_line_that_is_not_text(self):
        self.chat_model()
        one = self.say([{"role": "user", "content": "Tom"}])
        self.assertEqual(self.talk("\udcff\udcfe", "Tom"), (["", one, ""], "error: the line read from standard input is not UTF-8 text\n"))
        unreadable = os.open(self.folder, os.O_RDONLY)
        self.addCleanup(os.close, unreadable)
        ended = subprocess.run([TL, "chat", "chat.gguf"], stdin=unreadable, capture_output=True, cwd=self.folder, timeout=60)
        self.assertEqual((ended.returncode, ended.stderr.splitlines()[0]), (1, b"error[io]: cannot read standard input: Is a directory"))

    def test_chat_loads_nothing_but_messages(self):
        self.chat_model()
        for name, text in (("a", '{"a": 1}'), ("b", '[{"role": "user"}]'), ("c", "[1]"), ("d", "[]")):
            Path(self.folder, f"{name}.json").write_text(text)
        said, errors = self.talk("/load a.json", "/load b.json", "/load c.json", "/load d.json", "Tom")
        self.assertEqual(said[-2], self.say([{"role": "user", "content": "Tom"}]))
        self.assertEqual(errors.splitlines(), [
            "error: a.json is not a list of messages",
            "error: the content of a message must be a string or a list of parts, but it is nothing",
            "error: a message must be a dictionary or struct with role and content, but it is 1"])

    def test_chat_needs_a_template(self):
        self.assertEqual(self.fails("chat", self.model).splitlines()[0],
                         f"error[key]: {self.model} has no template of chats (tokenizer.chat_template)")

    def test_chat_on_a_terminal(self):
        """Answers appear on the screen; the end of the input ends it."""
        self.chat_model()
        answer = self.say([{"role": "user", "content": "Tom"}])
        terminal = Terminal("chat", "chat.gguf", "--temperature=0", "--max-tokens=12", folder=self.folder, prompt=False)
        try:
            terminal.wait(lambda: terminal.rows() == [">"], "a prompt")
            terminal.send("Tom\r")
            terminal.wait(lambda: terminal.rows()[2:] and terminal.rows()[-1] == ">", "an answer")
            said = " ".join(answer.split())
            self.assertEqual(" ".join(" ".join(terminal.rows()[1:-1]).split()), said)
            terminal.send("\x04")
            terminal.wait(terminal.over, "the end")
            self.assertEqual(terminal.status, 0)
        finally:
            terminal.close()

    def test_ctrl_c_ends_the_answer(self):
        """What was said of it stays; at a prompt it ends the talk."""
        parrot(self.folder, "chat.gguf", TEMPLATE.replace("[a]", "0"), ["abcdef"],
               PAGE.replace("        zeros([len", "        if self.at == 3 { sleep(600) }\n        zeros([len"))
        terminal = Terminal("chat", "chat.gguf", folder=self.folder, prompt=False)
        try:
            terminal.wait(lambda: terminal.rows() == [">"], "a prompt")
            terminal.send("Tom\r")
            terminal.wait(lambda: terminal.rows()[-1] == "abc", "some of an answer")
            terminal.send("\x03")
            terminal.wait(lambda: terminal.rows()[-1] == ">", "a prompt")
            terminal.send("/save talk.json\r")
            terminal.wait(lambda: terminal.rows()[-2:] == ["> /save talk.json", ">"], "a prompt")
            self.assertEqual(json.loads(Path(self.folder, "talk.json").read_text()),
                             [{"role": "user", "content": "Tom"}, {"role": "assistant", "content": "abc"}])
            terminal.send("\x03")
            terminal.wait(terminal.over, "the end")
            self.assertEqual(terminal.status, 130)
        finally:
            terminal.close()

    def test_chat_computes_each_word_once(self):
        """What was said is not computed again, whatever becomes of the talk."""
        parrot(self.folder, "chat.gguf", TEMPLATE, ["a"], """
            struct Counter { cache: KVCache }
            fn open(m: model) -> Counter { Counter { cache: KVCache::new(1) } }
            impl Counter {
                fn forward(self, ids) {
                    let n = len(ids)
                    eprint(n)
                    self.cache.append(0, zeros([n, 1, 1]), zeros([n, 1, 1]))
                    zeros([n, 259]) + (one_hot([len(self.cache) % 7 + 100], 259) as float32) * 9
                }
                fn logits(self, x) { x }
            }""")
        result = self.tl("chat", "chat.gguf", "--temperature=0", "--max-tokens=3", "--memory-check=strict",
                         stdin=b"Tom\nSue\n/retry\n/clear\nTom\n")
        self.assertEqual(result.status, 0, result.err)
        counts = [int(line) for line in result.err.splitlines() if line.isdigit()]
        # [u]Tom[a] is 9 bytes, and <s>; its answer 3, whose last one goes in with [u]Sue[a]; all but one of that stays.
        self.assertEqual(counts, [10, 1, 1, 10, 1, 1, 1, 1, 1, 1, 1, 1], result.err)

    # --- models

    def test_models(self):
        result = self.tl("models", fixture(self, "models/mini-q4_k_m.gguf"))
        self.assertEqual((result.status, result.err), (0, ""))
        lines = result.out.splitlines()
        cache = "0.4" if lines[14].startswith("process") else "0.8"  # float16 on the CPU
        self.assertEqual([line[14:] for line in lines[1:13]], [
            "mini-256x3-random", "llama", "1,935,104", "1,654,784 in 20 tensors, 0.9 MB", "278,528 in 3 tensors, 0.2 MB",
            "1,792 in 7 tensors, 0.0 MB", "3", "256", "512", "512", "no",
            f"1.2 MB of weights, {cache} MB of cache when the context is full"])
        self.assertRegex(lines[13], r"^one token +[\d.]+ MB at the most, [\d.]+ MB of the file in place, [\d.]+ MB repacked$")
        if lines[14].startswith("process"):  # on the CPU
            self.assertRegex(lines.pop(14), r"^process +[\d.]+ MB resident when it says a token$")
        self.assertRegex(lines[14], r"^speed +at most [\d.]+ tokens/s on \w+(:\d)?, which reads [\d.]+ GB/s$")

    def test_models_foretell_what_a_token_takes(self):
        model = fixture(self, "models/mini-q4_k_m.gguf")
        about = json.loads(self.tl("models", "--json", model).out)
        peak, result = measured("-e", 'generate(load_model(args()[0]), "a", 1)', model)
        self.assertEqual((about["peak_bytes"], result.status), (peak, 0))
        self.assertGreater(about["mapped_bytes"], 1000000)
        self.assertGreater(about["peak_cache_bytes"], 0)

    def resident(self, model, environment, runs):
        """What the system says that processes have, mapping by mapping, sorted: VmRSS lacks up to half a MB for each core."""
        code = f'let m = load_model("{model}")\nlet said = generate(m, "a", 1)\nprint(memory().host["resident"])'
        return sorted(int(self.tl("-e", code, env=environment).out) for _ in range(runs))

    def foretold(self, model, environment):
        return json.loads(self.tl("models", "--json", model, env=environment).out)["resident_bytes"]

    def test_models_say_what_a_process_takes(self):
        # How many pages of the system's libraries are mapped around a fault depends on where they lie and on which of them
        # the system holds in memory: mostly 0.3 MB here and there, next to other work up to 0.9 MB.
        need_no_sanitizer("keeps memory of its own")
        for threads in ("2", "64"):
            environment = {**os.environ, "TL_THREADS": threads, "TL_DEVICE": "cpu"}
            for kind in ("f16", "q4_k_m"):
                model = fixture(self, f"models/mini-{kind}.gguf")
                foretold = self.foretold(model, environment)
                found = self.resident(model, environment, 15)
                self.assertGreaterEqual(foretold, found[0] * 0.99, (kind, threads, found))
                self.assertLessEqual(foretold, found[-1] * 1.01, (kind, threads, found))
                self.assertLess(found[-1] - found[0], 1536 * 1024, (kind, threads, found))

    def test_models_foretell_what_a_process_takes_that_is_too_large_to_try(self):
        need_no_sanitizer("keeps memory of its own")
        environment = {**os.environ, "TL_THREADS": "2", "TL_DEVICE": "cpu", "TL_TEST_TRIED_MB": "0"}
        for kind in ("q4_k_m", "q8_0", "f16"):  # repacked, and read in place
            write_llama(Path(self.folder, "m.gguf"), kind, (6, 1024, 2816, 16, 4, 8000))
            found = self.resident("m.gguf", environment, 5)[2]
            # More than a hundredth of a file that is tried, but not of a larger one.
            self.assertAlmostEqual(self.foretold("m.gguf", environment), found, delta=2.5 * 2 ** 20, msg=kind)

    def test_models_as_json(self):
        about = json.loads(self.tl("models", "--json", self.model).out)
        self.assertEqual({key: about[key] for key in ("architecture", "parameters", "bytes", "layers", "context", "vocabulary",
                                                      "chat_template", "cache_bytes_per_token")},
                         {"architecture": "llama", "parameters": 292800, "bytes": 1171200, "layers": 5, "context": 128,
                          "vocabulary": 512, "chat_template": False, "cache_bytes_per_token": 2 * 4 * 5 * 4 * 8})
        self.assertEqual(about["types"], [{"type": "float32", "tensors": 48, "parameters": 292800, "bytes": 1171200}])
        roof, speed = about["read_bytes_per_second"], about["tokens_per_second_at_most"]
        self.assertAlmostEqual(roof / speed, 1171200 - 4 * 512 * 64 * self.tied(), delta=1)

    def test_cache_of_layers_that_differ(self):
        """Keys and values of layers that have some: of their own sizes, not where they read others' or keep a state."""
        for net, numbers in ((Gemma4(1, "tokens"), 2 * 2 * (6 + 6 + 8)), (Gemma3n(1), 2 * 2 * 6 * 5), (Qwen35(1), 2 * 2 * 6), (GraniteHybrid(1), 2 * 2 * 6 * 2),
                             (NemotronH(1), 2 * 2 * 6), (FalconH1(1), 2 * 2 * 6 * 3), (Mamba2(1), 0)):
            with self.subTest(net.name):
                path = Path(self.folder, "a.gguf")
                path.write_bytes(file_of(net.meta, net.weights))
                about = json.loads(run("models", "--json", path).out)
                self.assertIn(about["cache_bytes_per_token"], (2 * numbers, 4 * numbers))

    def test_models_of_odd_metadata(self):
        net = Net(1)
        path, kind = Path(self.folder, "a.gguf"), f"metadata {net.name}."
        for key, value, said in (
            ("context_length", "abc", f"{kind}context_length of <model a.gguf, 21 tensors> must be a count, but it is abc"),
            ("context_length", 2 ** 64 - 1, f"{kind}context_length of <model a.gguf, 21 tensors> must be a count, but it is 1.8446744073709552e+19"),
            ("embedding_length", 2.5, f"{kind}embedding_length of <model a.gguf, 21 tensors> must be a count, but it is 2.5"),
            ("block_count", 70000, "<model a.gguf, 21 tensors> has 70000 layers; at most 65536 are supported"),
            ("attention.head_count", [2, 2, 2],
             f"{kind}attention.head_count of <model a.gguf, 21 tensors> must be a count, or one for each of 2 layers, but it is [2, 2, 2]"),
            ("attention.head_count_kv", "abc",
             f"{kind}attention.head_count_kv of <model a.gguf, 21 tensors> must be a count, or one for each of 2 layers, but it is abc"),
            ("general.architecture", 7, "metadata general.architecture of <model a.gguf, 21 tensors> must be a text, but it is 7"),
        ):
            name = key if key.startswith("general") else f"{net.name}.{key}"
            path.write_bytes(file_of({**net.meta, name: value}, net.weights))
            self.assertEqual(self.fails("models", "a.gguf"), f"error[value]: {said}\n")
        for meta, rows in (({f"{net.name}.attention.head_count_kv": [2, 1]}, 3), ({}, 2 * 4)):
            kept = {key: value for key, value in net.meta.items() if "head_count_kv" not in key}
            path.write_bytes(file_of({**kept, **meta}, net.weights))
            about = json.loads(self.tl("models", "--json", "a.gguf").out)
            self.assertIn(about["cache_bytes_per_token"], (2 * 2 * 6 * rows, 4 * 2 * 6 * rows))

    def tied(self):
        """Whether the fixture has an output matrix of its own, so that its embedding is not read."""
        return int("true" in self.tl("-e", f'print(load_model("{self.model}").has_tensor("output.weight"))').out)

    def test_models_of_tensors_alone(self):
        self.tl("-e", 'save({"a": ones([3, 2]), "b": zeros([4], dtype: float16)}, "x.safetensors")')
        self.assertEqual(self.tl("models", "x.safetensors").out, "\n".join([
            "file          x.safetensors", "parameters    10", "  float32     6 in 1 tensors, 0.0 MB",
            "  float16     4 in 1 tensors, 0.0 MB", ""]))

    # --- quantize

    def test_quantize(self):
        """The matrices get the type, the vectors stay; the model answers nearly as before."""
        source = fixture(self, "models/mini-f16.gguf")
        result = self.tl("quantize", source, "small.gguf", "Q6_K")
        self.assertEqual((result.out, result.err), (f"{source} has 3.9 MB of tensors, small.gguf 1.6 MB\n", ""))
        about = json.loads(self.tl("models", "--json", "small.gguf").out)
        self.assertEqual([(row["type"], row["tensors"]) for row in about["types"]], [("q6_k", 23), ("float32", 7)])
        code = """
            let (a, b) = (load_model(args()[0]).forward([1, 5, 9]), load_model("small.gguf").forward([1, 5, 9]))
            print(max(abs(a - b)) < 0.1 * max(abs(a)))"""
        self.assertEqual(self.tl("-e", code, source).out, "true\n")

    def test_quantize_by_a_mixture(self):
        """The matrices that matter more have more bits."""
        source = fixture(self, "models/mini-f16.gguf")
        self.assertEqual(self.tl("quantize", source, "mix.gguf", "q4_k_m").err, "")
        code = """
            let m = load_model("mix.gguf")
            print([t.name for t in m.tensors() if t.dtype == "q6_k"], m.meta("general.file_type"))"""
        self.assertEqual(self.tl("-e", code).out, '["output.weight", "blk.2.attn_v.weight", "blk.2.ffn_down.weight"] 15\n')

    def test_quantize_leaves_what_is_added_as_it_is(self):
        made = self.tl("-e", """
            fn matrix(rows, columns) { ({"weight": randn([rows, columns])}) }
            let net = {"token_embd": matrix(8, 32), "token_types": matrix(2, 32), "position_embd": matrix(8, 32)}
            save_model(net, "tables.gguf", meta: {"general.architecture": "bert"})""")
        self.assertEqual(made.err, "")
        self.assertEqual(self.tl("quantize", "tables.gguf", "small.gguf", "q8_0").err, "")
        code = 'print([t.name + " " + t.dtype for t in load_model("small.gguf").tensors()])'
        self.assertEqual(self.tl("-e", code).out,
                         '["token_embd.weight q8_0", "token_types.weight float32", "position_embd.weight float32"]\n')

    def test_quantize_rows_that_are_not_multiples(self):
        result = self.tl("quantize", self.model, "a.gguf", "q4_k")
        self.assertEqual(result.err, "note: 37 matrices have rows that are not multiples of a block; they are of a type that fits instead\n")
        rows = json.loads(self.tl("models", "--json", "a.gguf").out)["types"]
        self.assertEqual([(row["type"], row["tensors"]) for row in rows], [("q5_0", 32), ("float16", 5), ("float32", 11)])

    def test_quantize_a_folder(self):
        """Its vocabulary comes along; routers stay as they are."""
        net = Mixtral(5)
        write_folder(Path(self.folder, "folder"), net, "mixtral", {"num_local_experts": 5, "num_experts_per_tok": 2})
        shutil.copy(fixture(self, "tokenizers/tinyllama.json"), Path(self.folder, "folder/tokenizer.json"))
        result = self.tl("quantize", "folder", "one.gguf", "float16")
        self.assertEqual((result.status, result.err), (0, ""))
        code = """
            let (a, b) = (load_model("folder"), load_model("one.gguf"))
            print(b.tokenizer().vocab_size == a.tokenizer().vocab_size, b.blk[0].ffn_gate_inp.weight.dtype,
                  max(abs(a.forward([1, 2]) - b.forward([1, 2]))) < 0.02)
            for t in b.tensors() { if t.name.starts_with("blk.1.ffn") { print(t.name, t.dtype, t.shape) } }
            for word in list("expert_count", "expert_used_count", "expert_feed_forward_length") { print(b.meta("llama." + word)) }"""
        self.assertEqual(self.tl("-e", code).out.splitlines(), [
            "true float32 true", "blk.1.ffn_norm.weight float32 [24]", "blk.1.ffn_gate_inp.weight float32 [5, 24]",
            "blk.1.ffn_gate_exps.weight float16 [5, 20, 24]", "blk.1.ffn_up_exps.weight float16 [5, 20, 24]",
            "blk.1.ffn_down_exps.weight float16 [5, 24, 20]", "5", "2", "20"])

    def test_quantize_leaves_out_what_no_page_uses(self):
        """Masks that old files of GPT-2 hold, parts for pictures, a layer that guesses ahead; vectors become float32."""
        folder, net = Path(self.folder, "folder"), Net(5)
        write_folder(folder, net, "llama", dtype="F16")
        tensors = {**tensors_of(net, "llama"), "model.layers.0.self_attn.rotary_emb.inv_freq": [1.0, 2.0],
                   "model.layers.2.input_layernorm.weight": [1.0] * 24}
        (folder / "model.safetensors").write_bytes(safetensors(tensors, "F16"))
        result = self.tl("quantize", "folder", "one.gguf", "q8_0")
        self.assertEqual(result.err.splitlines()[-1], "note: 2 tensors that the architecture does not use are left out, the first is "
                         "model.layers.0.self_attn.rotary_emb.inv_freq")
        code = """
            save_model(load_model("folder"), "two.gguf")
            for name in list("one.gguf", "two.gguf") {
                let m = load_model(name)
                print(len(m.tensors()), m.blk[0].attn_norm.weight.dtype, m.blk[0].attn_q.weight.dtype)
            }"""
        self.assertEqual(self.tl("-e", code).out, f"{len(net.weights)} float32 float16\n" * 2)

    def test_quantize_refuses(self):
        source = fixture(self, "models/mini-f16.gguf")
        self.assertEqual(self.fails("quantize", source, "a.gguf", status=2),
                         "error: TYPE is missing\nusage: tl quantize IN OUT TYPE\n")
        self.assertEqual(self.fails("quantize", source, "a.bin", "q8_0"),
                         "error[value]: a.bin: the name of a GGUF file ends in .gguf\n")
        for name in "iq4_nl", "q9", "Q4_K_S":
            self.assertEqual(self.fails("quantize", source, "a.gguf", name),
                             f"error[value]: {name} is not a type of matrices: there are float32, float16, bfloat16, "
                             "q8_0, q6_k, q5_k, q5_1, q5_0, q4_k, q4_1, q4_0, q3_k, q2_k and the mixtures q3_k_m, "
                             "q4_k_m, q5_k_m\n")
        self.assertFalse(Path(self.folder, "a.gguf").exists())
        own = Path(self.folder, "own.gguf")
        shutil.copy(source, own)
        Path(self.folder, "link.gguf").symlink_to("own.gguf")
        Path(self.folder, "hard.gguf").hardlink_to(own)
        for target in "own.gguf", "./own.gguf", "link.gguf", "hard.gguf":
            self.assertEqual(self.fails("quantize", "own.gguf", target, "q4_0"),
                             f"error[value]: {target} is the model itself; what is written needs a file of its own\n")
        self.assertEqual(own.read_bytes(), Path(source).read_bytes())

    def test_help(self):
        for name in ("generate", "chat", "models"):
            text = self.tl(name, "--help").out
            self.assertTrue(text.startswith(f"usage: tl {name} MODEL"), text)
            self.assertIn("--memory-check", text)
            self.assertIn(f"tl {name} MODEL", (ROOT / "docs/tl.1").read_text().replace("\\-", "-"))


if __name__ == "__main__":
    unittest.main()
