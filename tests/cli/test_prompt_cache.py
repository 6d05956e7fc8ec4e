"""Texts that are kept on disk: found again, verified, never half there, and continued bit for bit."""
import json
import os
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from language_models import Phi3, file_of
from test_generate import MODEL
from tl import TL, run

BEGIN = MODEL.replace('"llama.context_length": 24', '"llama.context_length": 900') + """
if not exists("a.gguf") { save_model(net, "a.gguf", meta: meta) }
let m = load_model("a.gguf")
fn ask(m, prompt, count) { generate(m, prompt, count, temperature: 0.9, seed: 3, cache: "kept", logprobs: 1) }
fn plain(m, prompt, count) { generate(m, prompt, count, temperature: 0.9, seed: 3, logprobs: 1) }
fn same(a, b) { assert_eq(a.text, b.text); assert_eq([l.logprob for l in a.logprobs], [l.logprob for l in b.logprobs]) }
"""


WORD = (1 << 64) - 1


def mix(x, y):
    x = (x ^ y) * 0x9E3779B97F4A7C15 & WORD
    return x ^ x >> 29


def sum_of(parts):
    """What a file says of its own tensors, as src/generate/prompt_cache.c computes it."""
    lanes, length = [0] * 4, 0
    for part in parts:
        whole = len(part) // 32 * 32
        for at in range(0, whole, 32):
            lanes = [mix(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", part, at))]
        for at in range(whole, len(part)):
            lanes[at % 4] = mix(lanes[at % 4], part[at])
        length += len(part)
    result = length
    for lane in lanes:
        result = mix(result, lane)
    return mix(result, result >> 32)


def without(data, name):
    """A file of safetensors without one of its tensors, whose sum is right."""
    size, = struct.unpack_from("<Q", data)
    header, body = json.loads(data[8:8 + size]), data[8 + size:]
    texts = header.pop("__metadata__")
    places = sorted(header.items(), key=lambda item: item[1]["data_offsets"][0])
    kept, parts, out = {}, [], b""
    for key, info in places:
        if key == name:
            continue
        begin, end = info["data_offsets"]
        kept[key] = dict(info, data_offsets=[len(out), len(out) + end - begin])
        parts += [key.encode(), struct.pack(f"<{len(info['shape'])}q", *info["shape"]), body[begin:end]]
        out += body[begin:end]
    new = json.dumps({"__metadata__": dict(texts, sum=f"{sum_of(parts):016x}"), **kept}).encode()
    return struct.pack("<Q", len(new)) + new + out


class PromptCache(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def program(self, body, begin=BEGIN, env=None):
        Path(self.folder.name, "p.tl").write_text(begin + body)
        return run("run", "--memory-check=strict", "p.tl", cwd=self.folder.name, env=env)

    def says(self, body, expected, begin=BEGIN, env=None):
        result = self.program(body, begin, env)
        self.assertEqual((result.out, result.status), (expected, 0), result.err[:3000])

    def files(self):
        return sorted(Path(self.folder.name, "kept").iterdir())

    def test_a_text_goes_on(self):
        self.says("""
            let first = ask(m, "abcabcd dab", 9)
            same(first, plain(m, "abcabcd dab", 9))
            print(first.cached_tokens)
        """, "0\n")
        self.says("""
            let again = ask(m, "abcabcd dab", 9)
            same(again, plain(m, "abcabcd dab", 9))
            print(again.cached_tokens, again.prompt_tokens)
            let other = ask(m, "abcabcd ccc", 9)     // a beginning is enough
            same(other, plain(m, "abcabcd ccc", 9))
            print(other.cached_tokens)
            let longer = ask(m, "abcabcd dabdddd", 300)
            same(longer, plain(m, "abcabcd dabdddd", 300))
            print(longer.cached_tokens >= 12)
            print(ask(m, "ddd", 2).cached_tokens, ask(m, list("abcabcd", "cc"), 3)[0].cached_tokens)
        """, "11 12\n9\ntrue\n1 7\n")

    def test_what_is_covered_goes(self):
        self.says('ask(m, "abcd", 1)\nask(m, "abcdabcd", 1)\nask(m, "abcdabcdabcd", 1)\nask(m, "dd", 1)', "")
        self.assertEqual(len(self.files()), 2)

    def test_a_folder_has_a_size(self):
        """What was used longest ago goes, of other models too; not what others may still write, or is not ours."""
        folder = Path(self.folder.name, "kept")

        def ask(letter, megabytes=1):
            self.says(f"""print(ask(m, join(["{letter}" for i in 0..800], ""), 1).cached_tokens > 700)""",
                      f"{'true' if letter in known else 'false'}\n", env={"TL_PROMPT_CACHE_MB": str(megabytes)})
            known.add(letter)

        def fill(texts):
            """Another model's file, so that half a text more has room next to so many."""
            other.write_bytes(bytes((1 << 20) - texts * size - size // 2))

        known = set()
        ask("a")
        size = self.files()[0].stat().st_size
        other = folder / "0123456789abcdef-0123456789abcdef.safetensors"
        stale, part, foreign = (folder / name for name in (f"{other.name}.part", f"{'1' * 16}-{'1' * 16}.safetensors.part",
                                                           "mine.safetensors"))
        fill(2)
        for path in (stale, part, foreign):
            path.write_bytes(b"x")
        for path in (other, stale, foreign):
            os.utime(path, (1, 1))
        ask("b")
        self.assertEqual(([path.exists() for path in (other, stale, part, foreign)], len(self.files())),
                         ([True, False, True, True], 5))
        ask("c")
        self.assertEqual(([path.exists() for path in (other, part, foreign)], len(self.files())), ([False, True, True], 5))
        ask("a")  # used again, so that b is the oldest
        fill(3)
        ask("d")
        ask("a")
        ask("c")
        known.remove("b")
        ask("b")
        ask("d", 0)
        self.assertEqual(sorted(self.files()), sorted([part, foreign]))

    def test_other_weights_are_others(self):
        self.says("""
            ask(m, "abcd", 3)
            let adapted = adapt(m, {"blk.0.attn_q": (ones([1, 32]), ones([32, 1]))}, 0.01)
            print(ask(adapted, "abcd", 3).cached_tokens, ask(adapted, "abcd", 3).cached_tokens)
            print(ask(adapt(m, {"blk.0.attn_q": (ones([1, 32]), ones([32, 1]))}, 0.02), "abcd", 3).cached_tokens)
            net.blk[1].ffn_up.weight[0, 0] = 9.0
            save_model(net, "b.gguf", meta: meta)
            print(ask(load_model("b.gguf"), "abcd", 3).cached_tokens, ask(m, "abcd", 3).cached_tokens)
        """, "0 4\n0\n0 4\n")

    def test_a_file_that_lacks_rows(self):
        """Its sum is right, so somebody has made it so, or a page with fewer layers."""
        self.says('ask(m, "abcdabcd", 3)', "")
        whole = self.files()[0].read_bytes()
        again = 'let a = ask(m, "abcdabcd", 3)\nsame(a, plain(m, "abcdabcd", 3))\nprint(a.cached_tokens)'
        self.files()[0].write_bytes(without(whole, "none of them"))
        self.says(again, "8\n")
        for name in ("v.0", "k.1"):
            self.files()[0].write_bytes(without(whole, name))
            self.says(again, "0\n")
            self.assertEqual(self.files()[0].read_bytes(), whole)

    def test_foretelling_leaves_the_folder_alone(self):
        self.says('ask(m, "abcd", 1)', "")
        before = {path: path.read_bytes() for path in self.files()}
        Path(self.folder.name, "p.tl").write_text(BEGIN + 'ask(m, "abcdabcd", 1)')
        result = run("check", "--memory", "p.tl", cwd=self.folder.name, env={"TL_PROMPT_CACHE_MB": "0"})
        self.assertEqual((result.status, result.err), (0, ""))
        self.assertEqual({path: path.read_bytes() for path in self.files()}, before)

    def test_damage_is_found(self):
        self.says('ask(m, "abcdabcd", 3)', "")
        whole = self.files()[0].read_bytes()
        for at in (len(whole) - 3, len(whole) // 2, 12):
            changed = bytearray(whole)
            changed[at] ^= 4
            self.files()[0].write_bytes(changed)
            self.says('let a = ask(m, "abcdabcd", 3)\nsame(a, plain(m, "abcdabcd", 3))\nprint(a.cached_tokens)', "0\n")
            self.assertEqual(self.files()[0].read_bytes(), whole)
        self.files()[0].write_bytes(whole[:-40])
        self.says('print(ask(m, "abcdabcd", 3).cached_tokens)', "0\n")

    def test_it_survives_a_kill(self):
        self.says('ask(m, "abcdabcd", 3)', "")
        Path(self.folder.name, "loop.tl").write_text(BEGIN + """
            for i in 0..10000 { generate(m, "abcd" + str(i % 7).replace("0", "a"), 30, seed: i, cache: "kept") }""")
        for wait in (0.15, 0.3, 0.45):
            with subprocess.Popen([TL, "run", "loop.tl"], cwd=self.folder.name, stderr=subprocess.DEVNULL) as process:
                time.sleep(wait)
                process.send_signal(signal.SIGKILL)
            self.says("""
                let a = ask(m, "abcdabcd", 20)
                same(a, plain(m, "abcdabcd", 20))
                print(a.cached_tokens > 3)
            """, "true\n")

    def test_a_text_past_a_boundary(self):
        """Phi-3 computes all anew once a text outgrows its first context."""
        net = Phi3(3)
        Path(self.folder.name, "phi.gguf").write_bytes(file_of(net.meta, net.weights))
        begin = """
            let m = load_model("phi.gguf")
            fn ids(n) { [i % 11 for i in 1..n + 1] }
            fn ask(n, count) { generate(m, ids(n), count, temperature: 0.9, seed: 1, cache: "kept", logprobs: 1) }
            for (n, count) in list((6, 1), (6, 6), (5, 1), (12, 3), (7, 2), (20, 5), (8, 9)) {
                for again in 0..2 {
                    let (kept, plain) = (ask(n, count), generate(m, ids(n), count, temperature: 0.9, seed: 1, logprobs: 1))
                    assert_eq(kept.ids, plain.ids)
                    assert_eq([l.logprob for l in kept.logprobs], [l.logprob for l in plain.logprobs])
                }
            }
            print("same")
        """
        self.says("", "same\n", begin)

    def test_a_cache_of_the_script(self):
        """It holds one text, with the bits of a text alone."""
        self.says("""
            fn say(prompt, cache) { generate(m, prompt, 12, temperature: 0.9, seed: 3, logprobs: 1, cache: cache) }
            let talk = KVCache::of(m)
            let begin = tokenize(m.tokenizer(), "abc abc")
            let first = say(begin, talk)
            same(first, say(begin, none))
            let longer = concat([begin, first.ids, begin])
            let second = say(longer, talk)
            same(second, say(longer, none))
            assert(second.cached_tokens >= first.prompt_tokens + len(first.ids) - 1)
            assert(len(talk) >= second.prompt_tokens + len(second.ids) - 1)
            same(say("abd", talk), say("abd", none))
            let fork = talk.fork()
            same(say("abd" + second.text, fork), say("abd" + second.text, none))
            print(say("abd", talk).cached_tokens == say("abd", talk).prompt_tokens - 1)
        """, "true\n")

    def test_refusals(self):
        Path(self.folder.name, "file").write_text("")
        for body, expected in [
            ('generate(hook(m, "blk.0.out", fn(x) { x }), "ab", cache: "kept")',
             "error[value]: texts of a model with hooks cannot be kept: no key tells what hooks do"),
            ('generate(m, "ab", cache: "no/such/folder")',
             "error[io]: cannot make the folder no/such/folder: No such file or directory"),
            ('generate(m, "ab", 3, cache: "file")', "error[io]: "),
            ('generate(m, "ab", cache: 5)', "error[type]: cache must be the name of a folder, or a KVCache, but it is 5\n"),
            ('generate(m, list("a", "b"), cache: KVCache::of(m))',
             "error[value]: a KVCache holds one text, but the prompt is a list of them\n"),
            ('generate(m, "ab", cache: KVCache::new(9))',
             "error[value]: the cache has 9 layers of float32, but the model has 2 of float32\n"),
            ("""let kept = KVCache::of(m)
                kept.append(0, zeros([1, 2, 4]), zeros([1, 2, 4]))
                generate(m, "ab", cache: kept)""", "error[value]: the cache has 1 rows, but ids of 0: note(ids) adds them\n"),
        ]:
            result = self.program(body)
            self.assertTrue(result.err.startswith(expected), result.err)
        Path(self.folder.name, "models").mkdir()
        Path(self.folder.name, "models/own.tl").write_text("""
            struct Own { rows: int }
            fn open(m: model) -> Own { Own { rows: 0 } }""")
        result = self.program("""
            save_model({"a": zeros([1])}, "b.gguf", meta: {"general.architecture": "own"})
            generate(load_model("b.gguf"), [1, 2], 3, cache: "kept")""", "")
        self.assertIn("error[value]: texts cannot be kept: the page has no field cache: KVCache\n", result.err)
        result = self.program("""KVCache::of(load_model("b.gguf"))""", "")
        self.assertIn("error[value]: the page of b.gguf has no field cache: KVCache, so that a text can only go on\n", result.err)


if __name__ == "__main__":
    unittest.main()
