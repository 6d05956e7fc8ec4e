"""tl serve: the OpenAI API over raw sockets, as clients that behave and clients that do not use it."""
import base64
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from browser import Browser
from tl import TL, fixture, need_no_sanitizer, run

TEMPLATE = "{% for m in messages %}[{{ m.role[0] }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[a]{% endif %}"
TOM = {"messages": [{"role": "user", "content": "Tom"}], "max_tokens": 12, "temperature": 0}
ONCE = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0}


class Server:
    """A server in a process of its own, on a free port."""
    def __init__(self, folder, *options, model="chat.gguf"):
        environment = {**os.environ, "NO_COLOR": "1", "TL_MEMORY_CHECK": "strict"}
        self.process = subprocess.Popen([TL, "serve", model, "--port=0", *options], cwd=folder, env=environment,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.fullmatch(rf"serving {re.escape(model)} at http://(.*):(\d+)/\n", line)
        if not found:
            raise AssertionError(line + self.process.stderr.read())
        self.port = int(found[2])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def send(self, method, path, body=None, headers=()):
        """A connection on which a request was sent."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(data)}", "Connection: close", *headers]
        connection = self.connect()
        connection.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        return connection

    def ask(self, method, path, body=None, headers=()):
        """Status, and the body: JSON where it is."""
        with self.send(method, path, body, headers) as connection:
            return answer_of(everything(connection))

    def post(self, path, body, **more):
        return self.ask("POST", path, body, **more)

    def events(self, path, body):
        with self.send("POST", path, {**body, "stream": True}) as connection:
            return events_of(everything(connection))

    def stop(self):
        """Ends it as Ctrl-C does; nothing may have leaked."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 130 and "no leak: every buffer was released" in errors, errors


def everything(connection):
    data = b""
    while piece := connection.recv(65536):
        data += piece
    return data


def parts_of(data):
    head, _, body = data.partition(b"\r\n\r\n")
    if b"chunked" in head:
        whole, rest = b"", body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            whole, rest = whole + rest[:int(size, 16)], rest[int(size, 16) + 2:]
        body = whole
    return int(head.split()[1]), head.decode(), body


def answer_of(data):
    status, head, body = parts_of(data)
    return status, json.loads(body) if "application/json" in head else body.decode()


def events_of(data):
    status, head, body = parts_of(data)
    assert status == 200 and "text/event-stream" in head, (status, body)
    events = body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""], events[-2:]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


def said(answer):
    status, body = answer
    assert status == 200, body
    choice = body["choices"][0]
    return choice["message"]["content"] if "message" in choice else choice["text"]


def official_client(case, server, script):
    """The lines that a program prints which has npm's openai as `client`; OPENAI_NODE_MODULES says where that is."""
    modules = os.environ.get("OPENAI_NODE_MODULES")
    if not modules or not shutil.which("node"):
        case.skipTest("OPENAI_NODE_MODULES names no folder with the client")
    head = f"""
        import {{ createRequire }} from "node:module"
        const OpenAI = createRequire("{modules}/")("openai")
        const client = new OpenAI({{ baseURL: "http://127.0.0.1:{server.port}/v1", apiKey: "none" }})"""
    result = subprocess.run(["node", "--input-type=module", "-"], input=head + script, capture_output=True, text=True)
    case.assertEqual((result.returncode, result.stderr), (0, ""))
    return result.stdout.splitlines()


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = cls.scratch.name
        model = fixture(cls, "models/stories260K.gguf")
        made = run("-e", 'save_model(load_model(args()[0]), "chat.gguf", meta: {"tokenizer.chat_template": args()[1]})',
                   model, TEMPLATE, cwd=cls.folder)
        assert made.status == 0, made.err
        cls.server = Server(cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.scratch.cleanup()

    def tl(self, code, *arguments):
        result = run("-e", code, *arguments, cwd=self.folder)
        self.assertEqual(result.err, "")
        return result.out.removesuffix("\n")

    def refused(self, body, message, field=None, path="/v1/chat/completions", status=400, code=None, server=None):
        answer = (server or self.server).post(path, body)
        kind = "invalid_request_error" if status < 500 else "server_error"
        self.assertEqual(answer, (status, {"error": {"message": message, "type": kind, "param": field, "code": code}}))

    # --- what it says

    def test_chat_says_what_the_builtin_says(self):
        expected = self.tl('print(chat(load_model("chat.gguf"), "Tom", max_tokens: 12, temperature: 0))')
        status, answer = self.server.post("/v1/chat/completions", TOM)
        self.assertEqual(status, 200)
        self.assertLess(abs(answer.pop("created") - time.time()), 60)
        self.assertRegex(answer.pop("id"), r"^chatcmpl-\d+$")
        self.assertIn(answer["usage"].pop("prompt_tokens_details")["cached_tokens"], (0, 9))
        self.assertEqual(answer, {
            "object": "chat.completion", "model": "chat.gguf",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": expected, "refusal": None}, "logprobs": None,
                         "finish_reason": "length"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 12, "total_tokens": 22}})

    def test_completions_of_texts_and_ids(self):
        expected = self.tl('let m = load_model("chat.gguf")\nprint(generate(m, "Once upon a time", max_tokens: 12, temperature: 0))')
        ids = json.loads(self.tl('print(tokenize(load_model("chat.gguf").tokenizer(), "Once upon a time").to_list())'))
        self.assertEqual(said(self.server.post("/v1/completions", ONCE)), expected)
        self.assertEqual(said(self.server.post("/v1/completions", {**ONCE, "prompt": ids})), expected)
        status, both = self.server.post("/v1/completions", {**ONCE, "prompt": ["Once upon a time", "Tom"]})
        self.assertEqual([choice["index"] for choice in both["choices"]], [0, 1])
        self.assertEqual(both["choices"][0]["text"], expected)
        self.assertEqual(both["choices"][1]["text"], said(self.server.post("/v1/completions", {**ONCE, "prompt": "Tom"})))
        self.assertEqual(said(self.server.post("/v1/completions", {**ONCE, "max_tokens": 0})), "")

    def test_a_stream_is_the_same_text(self):
        whole = said(self.server.post("/v1/chat/completions", TOM))
        events = self.server.events("/v1/chat/completions", {**TOM, "stream_options": {"include_usage": True}})
        self.assertEqual(events[0]["choices"][0]["delta"], {"role": "assistant", "content": ""})
        self.assertEqual("".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1]), whole)
        self.assertGreater(len(events), 5)
        self.assertEqual([event["choices"][0]["finish_reason"] for event in events[-3:-1]], [None, "length"])
        self.assertEqual((events[-1]["choices"], events[-1]["usage"]["completion_tokens"]), ([], 12))
        self.assertEqual({(event["object"], event["id"]) for event in events}, {("chat.completion.chunk", events[0]["id"])})
        texts = self.server.events("/v1/completions", ONCE)
        self.assertEqual("".join(event["choices"][0]["text"] for event in texts), said(self.server.post("/v1/completions", ONCE)))

    def test_stops(self):
        whole = said(self.server.post("/v1/completions", {**ONCE, "max_tokens": 60}))
        status, answer = self.server.post("/v1/completions", {**ONCE, "max_tokens": 60, "stop": ["nothing like it"] * 15 + ["Lily"]})
        self.assertEqual((answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]), (whole[:whole.index("Lily")], "stop"))

    def test_seeds(self):
        def text(seed):
            return said(self.server.post("/v1/completions", {**ONCE, "temperature": 1.5, "seed": seed, "top_k": 50, "top_p": 0.99}))
        self.assertEqual(text(3), text(3))
        self.assertNotEqual(text(3), text(4))

    def test_several_answers_to_a_prompt(self):
        """Each is what its own seed says alone; the prompt counts once, and what was finished is gone on with."""
        asked = {**ONCE, "temperature": 1.5, "seed": 3}
        alone = [said(self.server.post("/v1/completions", {**asked, "seed": 3 + i})) for i in range(3)]
        for _ in range(2):
            status, answer = self.server.post("/v1/completions", {**asked, "n": 3})
            self.assertEqual([choice["text"] for choice in answer["choices"]], alone)
            self.assertEqual([choice["index"] for choice in answer["choices"]], [0, 1, 2])
            self.assertEqual((answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]), (5, 36))
        status, two = self.server.post("/v1/completions", {**asked, "n": 2, "prompt": ["Once upon a time", "Tom"]})
        self.assertEqual([choice["text"] for choice in two["choices"]][:2], alone[:2])
        self.assertEqual(len({choice["text"] for choice in two["choices"]}), 4)
        streamed = ["", "", ""]
        for event in self.server.events("/v1/completions", {**asked, "n": 3}):
            for choice in event["choices"]:
                streamed[choice["index"]] += choice["text"]
        self.assertEqual(streamed, alone)
        status, answer = self.server.post("/v1/completions", {**asked, "n": 100})
        self.assertEqual((status, answer["error"]["code"]), (503, "queue_full"))

    def test_penalties(self):
        """On what was said, not on the prompt: as a loop over the logits in a script."""
        code = """
let m = load_model("chat.gguf")
let (ids, said, options) = (tokenize(tokenizer(m), "Once upon a time").to_list(), list(), parse_json(args()[0]))
while len(said) < 40 {
    let logits = m.forward(tensor(ids))[-1]
    if len(said) > 0 {
        logits = presence_penalty(logits, said, options.get("presence_penalty", 0.0))
        logits = frequency_penalty(logits, said, options.get("frequency_penalty", 0.0))
    }
    said.push(argmax(logits) as int)
    ids.push(said[-1])
}
print(detokenize(tokenizer(m), said), end: "")
"""
        texts = set()
        for options in ({}, {"presence_penalty": 2}, {"frequency_penalty": 1.5}, {"presence_penalty": -2, "frequency_penalty": -2}):
            text = said(self.server.post("/v1/completions", {**ONCE, "max_tokens": 40, **options}))
            self.assertEqual(text.strip(), self.tl(code, json.dumps(options)).strip(), options)
            texts.add(text)
        self.assertGreater(len(texts), 2)

    def test_variants(self):
        """Adapters and hooks by the name of a model, at the same time as the model itself."""
        path = os.path.join(self.folder, "loud.safetensors")
        self.tl("""
import "std/lora.tl"
seed(1)
let lora = Lora::new(load_model("chat.gguf"), rank: 2, scale: 2.0)
for name, pair in lora.parts { lora.parts[name] = (pair[0], randn(pair[1].shape)) }
lora.save(args()[0])
""", path)
        adapted = self.tl("""
import "std/lora.tl"
print(generate(load_lora(args()[0]).on(load_model("chat.gguf")), "Once upon a time", 12, temperature: 0), end: "")
""", path)
        server = Server(self.folder, "--lora=loud=" + path)
        try:
            self.assertEqual([model["id"] for model in server.ask("GET", "/v1/models")[1]["data"]], ["chat.gguf", "loud"])
            plain, texts = said(server.post("/v1/completions", ONCE)), []
            for name in ("loud", "chat.gguf", "loud"):
                status, answer = server.post("/v1/completions", {**ONCE, "model": name})
                self.assertEqual(answer["model"], name)
                texts.append(said((status, answer)))
            self.assertNotEqual(plain, texts[0])
            self.assertEqual((texts, adapted), ([texts[0], plain, texts[0]], texts[0]))
            waiting = [server.send("POST", "/v1/completions", {**ONCE, "model": name}) for name in ("loud", "chat.gguf") * 4]
            for i, connection in enumerate(waiting):
                self.assertEqual(said(answer_of(everything(connection))), texts[i % 2])
                connection.close()
            self.refused({**TOM, "model": "gpt-4"}, 'there is no model "gpt-4" here, only "chat.gguf", "loud"', "model", status=404,
                         code="model_not_found", server=server)
            plain, loud = (server.post("/v1/embeddings", {"input": "Tom", "model": name})[1] for name in ("chat.gguf", "loud"))
            self.assertNotEqual(plain["data"], loud["data"])
        finally:
            server.stop()

    def test_variants_that_are_not(self):
        for variants, message in [("{1: m}", "error[type]: a name of variants must be a string, but it is 1"),
                                  ("{\"a\": 1}", "error[type]: each of variants must be a model, but it is 1"),
                                  ("{\"chat.gguf\": m}", 'error[value]: a variant has the name of the model itself, "chat.gguf"')]:
            result = run("-e", f'let m = load_model("chat.gguf")\nserve(m, variants: {variants}, port: 0)', cwd=self.folder)
            self.assertEqual((result.status, result.err.splitlines()[0]), (1, message))
        for given in ("loud", "=x", "loud="):
            self.assertEqual(self.fails("chat.gguf", "--lora", given), f"error[value]: --lora is NAME=FILE, not {given}\n")

    def test_a_talk_goes_on_where_it_was(self):
        """What was said before is not computed again, and what follows is what it would be alone."""
        server = Server(self.folder)
        try:
            messages = [{"role": "user", "content": "Tom and Lily"}]
            cached = []
            for question in ("Why?", "Where?", "When?"):
                status, answer = server.post("/v1/chat/completions", {**TOM, "messages": messages})
                cached.append((answer["usage"]["prompt_tokens_details"]["cached_tokens"], answer["usage"]["prompt_tokens"]))
                code = 'print(chat(load_model("chat.gguf"), parse_json(args()[0]), max_tokens: 12, temperature: 0))'
                self.assertEqual(said((status, answer)), self.tl(code, json.dumps(messages)))
                messages += [answer["choices"][0]["message"], {"role": "user", "content": question}]
                messages[-2].pop("refusal")
        finally:
            server.stop()
        self.assertEqual(cached[0][0], 0)
        self.assertTrue(all(some >= before for (some, _), (_, before) in zip(cached[1:], cached)), cached)

    def test_content_in_parts(self):
        parts = [{"type": "text", "text": "To"}, {"type": "text", "text": "m"}]
        self.assertEqual(said(self.server.post("/v1/chat/completions", {**TOM, "messages": [{"role": "user", "content": parts}]})),
                         said(self.server.post("/v1/chat/completions", TOM)))

    def test_formats(self):
        """JSON, whatever the model would rather say."""
        schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 99},
                                                   "name": {"enum": ["Tom", "Sue"]}}, "required": ["name", "age"],
                  "additionalProperties": False}
        for seed in range(5):
            asked = {**TOM, "max_tokens": 60, "temperature": 1.5, "seed": seed}
            form = {"type": "json_schema", "json_schema": {"name": "person", "strict": True, "schema": schema}}
            person = json.loads(said(self.server.post("/v1/chat/completions", {**asked, "response_format": form})))
            self.assertEqual(set(person), {"name", "age"})
            self.assertIn(person["name"], ("Tom", "Sue"))
            self.assertIn(person["age"], range(100))
            events = self.server.events("/v1/chat/completions", {**asked, "response_format": form})
            text = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
            self.assertEqual(json.loads(text), person)
            form = {"type": "json_object"}
            text = said(self.server.post("/v1/chat/completions", {**asked, "response_format": form}))
            self.assertIsInstance(json.loads(text), dict)

    def test_logprobs(self):
        """Those of a stream are those of the whole; the likeliest token is the first alternative."""
        asked = {**TOM, "logprobs": True, "top_logprobs": 2}
        status, answer = self.server.post("/v1/chat/completions", asked)
        rows = answer["choices"][0]["logprobs"]["content"]
        self.assertEqual("".join(row["token"] for row in rows), answer["choices"][0]["message"]["content"])
        for row in rows:
            self.assertEqual(bytes(row["bytes"]).decode(), row["token"])
            self.assertEqual((len(row["top_logprobs"]), row["top_logprobs"][0]["token"]), (2, row["token"]))
            self.assertLess(row["logprob"], 0)
        streamed = [row for event in self.server.events("/v1/chat/completions", asked)
                    for row in (event["choices"][0]["logprobs"] or {"content": []})["content"]]
        self.assertEqual(streamed, rows)
        status, answer = self.server.post("/v1/completions", {**ONCE, "logprobs": 1})
        found = answer["choices"][0]["logprobs"]
        self.assertEqual([list(top.values())[0] for top in found["top_logprobs"]], found["token_logprobs"])
        self.assertEqual(len(found["tokens"]), 12)

    def test_embeddings(self):
        """The mean of the last layer, of length 1; a vector does not depend on its neighbours."""
        exact = json.loads(self.tl("""
            let m = load_model("chat.gguf")
            import "std/models/llama.tl" as llama
            let v = mean(llama.open(m).forward(tokenize(m.tokenizer(), "Once")), dim: 0)
            print(to_json((v / sqrt(sum(v * v))).to_list()))"""))
        status, answer = self.server.post("/v1/embeddings", {"input": ["Tom", "Once"], "model": "chat.gguf"})
        self.assertEqual((status, answer["object"], len(answer["data"])), (200, "list", 2))
        vector = answer["data"][1]["embedding"]
        self.assertTrue(all(abs(a - b) < 1e-5 for a, b in zip(vector, exact, strict=True)))
        status, packed = self.server.post("/v1/embeddings", {"input": "Once", "encoding_format": "base64"})
        numbers = struct.unpack(f"<{len(vector)}f", base64.b64decode(packed["data"][0]["embedding"], validate=True))
        self.assertTrue(all(abs(a - b) < 1e-6 for a, b in zip(vector, numbers)))
        self.assertEqual(packed["usage"], {"prompt_tokens": 2, "total_tokens": 2})

    def test_models_health_and_the_page(self):
        self.assertEqual(self.server.ask("GET", "/v1/models")[1]["data"][0]["id"], "chat.gguf")
        status, health = self.server.ask("GET", "/health")
        self.assertEqual((status, health["status"], health["model"]), (200, "ok", "chat.gguf"))
        self.assertEqual(health["memory"]["mapped_bytes"], 1171200)
        status, page = self.server.ask("GET", "/")
        self.assertTrue(status == 200 and page.startswith("<!doctype html>") and page.rstrip().endswith("</html>"))

    # --- many at once

    def test_64_at_once_say_what_each_says_alone(self):
        prompts = [f"{name} {word}" for name in ("Tom", "Lily", "One day", "The cat") for word in
                   ("was", "saw a", "had", "and", "went", "liked", "said", "with", "in", "ran", "is", "to", "big", "red", "his", "her")]
        alone = {prompt: said(self.server.post("/v1/completions", {**ONCE, "prompt": prompt})) for prompt in prompts}
        found = {}

        def ask(prompt):
            found[prompt] = said(self.server.post("/v1/completions", {**ONCE, "prompt": prompt}))
        threads = [threading.Thread(target=ask, args=(prompt,)) for prompt in prompts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, alone)

    def test_a_slow_reader_keeps_nobody(self):
        with self.server.send("POST", "/v1/chat/completions", {**TOM, "max_tokens": 100, "stream": True}) as slow:
            for _ in range(5):
                self.assertEqual(self.server.post("/v1/completions", ONCE)[0], 200)
            data = b""
            while piece := slow.recv(100):
                data += piece
            self.assertGreater(len(events_of(data)), 5)

    def test_a_request_byte_by_byte(self):
        body = json.dumps(ONCE).encode()
        with self.server.connect() as connection:
            head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            for byte in head + body:
                connection.sendall(bytes([byte]))
            self.assertEqual(answer_of(everything(connection))[0], 200)

    def test_clients_that_leave(self):
        """In the middle of an answer or before it: their texts end, and nothing of them stays."""
        for stream in (True, False):
            for _ in range(8):
                connection = self.server.send("POST", "/v1/completions", {**ONCE, "max_tokens": 100, "stream": stream})
                if stream:
                    connection.recv(100)
                connection.close()
        self.settles()

    def settles(self):
        end = time.time() + 60
        while True:
            health = self.server.ask("GET", "/health")[1]
            if health["active"] + health["waiting"] == 0:
                return health
            self.assertLess(time.time(), end)

    def test_garbage(self):
        source = random.Random(1)
        for number in range(200):
            data = source.randbytes(source.randrange(1, 300))
            if number % 2:
                data = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n" + data
            with self.server.connect() as connection:
                try:
                    connection.sendall(data)
                    connection.shutdown(socket.SHUT_WR)
                    everything(connection)
                except (ConnectionError, BrokenPipeError):
                    pass
        self.assertEqual(self.server.post("/v1/completions", ONCE)[0], 200)

    def test_requests_changed_at_random(self):
        """Answered, or refused in words."""
        source, whole = random.Random(2), json.dumps({**TOM, "stop": ["a"], "seed": 1, "logprobs": True, "top_p": 0.5}).encode()
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(source.choice([1, 2, 8])):
                data[source.randrange(len(data))] = source.choice(b'0123456789-[]{}",:.etru\\ \xff')
            status, answer = self.server.post("/v1/chat/completions", bytes(data))
            self.assertIn(status, (200, 400, 404), answer)
            self.assertIn("error" if status != 200 else "choices", answer)

    def test_memory_is_flat(self):
        """A thousand requests later nothing more is held."""
        need_no_sanitizer("keeps for a while what was freed")
        def resident():
            return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.server.process.pid}/status").read_text())[1])
        for _ in range(100):
            self.server.post("/v1/completions", {**ONCE, "max_tokens": 2})
        before, live = resident(), self.settles()["memory"]["live_bytes"]
        for _ in range(1000):
            self.server.post("/v1/completions", {**ONCE, "max_tokens": 2})
        self.assertLess(resident(), before + 4096)
        self.assertEqual(self.settles()["memory"]["live_bytes"], live)

    # --- what it refuses

    def test_fields(self):
        for change, message, field in [
            ({"foo": 1}, 'the field "foo" is not known', "foo"),
            ({"functions": []}, 'the field "functions" is not known', "functions"),
            ({"messages": None}, "messages is missing", "messages"),
            ({"messages": []}, "messages must be a list of at least one message", None),
            ({"messages": "x"}, "messages must be a list of at least one message", None),
            ({"max_tokens": 1.5}, "max_tokens must be an integer", "max_tokens"),
            ({"max_tokens": -1}, "max_tokens must be from 0 to 1073741824", "max_tokens"),
            ({"temperature": "hot"}, "temperature must be a number", "temperature"),
            ({"temperature": 3}, "temperature must be from 0 to 2", "temperature"),
            ({"n": 0}, "n must be from 1 to 128", "n"),
            ({"presence_penalty": 3}, "presence_penalty must be from -2 to 2", "presence_penalty"),
            ({"seed": "x"}, "seed must be an integer", "seed"),
            ({"stop": ""}, "stop must be a string that is not empty, or a list of them", "stop"),
            ({"stop": ["a"] * 17}, "stop must be at most 16 strings", "stop"),
            ({"stream": 1}, "stream must be true or false", "stream"),
            ({"stream_options": {"include_usage": True}}, "stream_options needs stream: true", "stream_options"),
            ({"stream_options": {"x": True}}, "stream_options must be an object with include_usage, true or false", "stream_options"),
            ({"store": True}, "store must be false: true is not supported", "store"),
            ({"logprobs": 3}, "logprobs must be true or false", "logprobs"),
            ({"top_logprobs": 3}, "top_logprobs needs logprobs: true", "top_logprobs"),
            ({"response_format": {"type": "xml"}},
             "response_format must be of the type text, json_object, or json_schema with a json_schema that has a schema",
             "response_format"),
            ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
             "response_format must be of the type text, json_object, or json_schema with a json_schema that has a schema",
             "response_format"),
            ({"user": 5}, "user must be a string", "user"),
            ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
             "content has a part that is not text, which is not supported", None),
            ({"messages": [{"role": "user", "content": 5}]},
             "the content of a message must be a string or a list of parts, but it is 5", None),
            ({"messages": [{"content": "Hi"}]}, "the role of a message must be a string, but it is nothing", None),
        ]:
            with self.subTest(change):
                self.refused({**TOM, **change}, message, field)
        self.refused({**ONCE, "best_of": 2}, "best_of must be 1: another value is not supported", "best_of", "/v1/completions")
        self.refused({"input": "a", "encoding_format": "hex"}, 'encoding_format must be "float" or "base64"', "encoding_format",
                     "/v1/embeddings")
        self.refused({"input": 5}, "a prompt is a string or a list of token ids", "input", "/v1/embeddings")
        self.refused({"input": []}, "a text without tokens has no embedding", "input", "/v1/embeddings")
        self.refused({"input": "a" * 2000}, "a text of 2001 tokens does not fit the model's context of 128", "input", "/v1/embeddings")
        self.refused({"prompt": ["a", 5]}, "a prompt is a string or a list of token ids", None, "/v1/completions")
        for id in (512, -1):
            said = f"token id {id} is out of range: the vocabulary has 512 tokens"
            self.refused({**ONCE, "prompt": [1, id]}, said, None, "/v1/completions")
            self.refused({"input": [id]}, said, "input", "/v1/embeddings")
        self.refused({**TOM, "model": "gpt-4"}, 'there is no model "gpt-4" here, only "chat.gguf"', "model", status=404,
                     code="model_not_found")

    def test_bodies(self):
        self.refused(b"{", "the body is not JSON: string or '}' expected near end of file")
        self.refused(b"[]", "the body must be a JSON object")
        for method, path, status, message in [("GET", "/v1/completions", 405, "GET is not a method of /v1/completions"),
                                              ("POST", "/v2", 404, "there is no POST /v2")]:
            self.assertEqual(self.server.ask(method, path)[0:1] + (self.server.ask(method, path)[1]["error"]["message"],), (status, message))

    def test_the_context(self):
        """With numbers, never a silent cut."""
        self.refused({**TOM, "messages": [{"role": "user", "content": "long " * 300}]},
                     "the prompt has 909 tokens, but the model's context is 128")
        self.refused({**ONCE, "max_tokens": 500}, "a prompt of 5 tokens and 500 more do not fit the model's context of 128 "
                     "(max_tokens: 124 fits; shift: true forgets the older half of a full context)", path="/v1/completions")

    def test_limits_and_keys(self):
        server = Server(self.folder, "--key=open sesame", "--batch=1", "--queue=1", "--body-limit=300", "--name=mine")
        try:
            self.refused(TOM, "the key is missing or wrong", status=401, code="invalid_api_key", server=server)
            for key in ("wrong", "open sesam", "open sesame!", ""):
                self.assertEqual(server.post("/v1/completions", ONCE, headers=[f"Authorization: Bearer {key}"])[0], 401)
            key = ["Authorization: Bearer open sesame"]
            self.assertEqual(server.post("/v1/completions", {**ONCE, "model": "mine"}, headers=key)[0], 200)
            self.assertEqual(server.ask("GET", "/health")[0], 200)
            self.assertEqual(server.post("/v1/completions", {**ONCE, "prompt": "a" * 400}, headers=key),
                             (413, {"error": {"message": "the request is too large", "type": "invalid_request_error", "param": None,
                                              "code": None}}))
            for more, refused in ((0, False), (1, True)):  # to the byte
                asked = {**ONCE, "prompt": ""}
                asked["prompt"] = " " * (300 - len(json.dumps(asked)) + more)
                self.assertEqual(server.post("/v1/completions", asked, headers=key)[0] == 413, refused)
            status, answer = server.post("/v1/completions", {**ONCE, "prompt": ["a", "b", "c"]}, headers=key)
            self.assertEqual((status, answer["error"]["message"], answer["error"]["code"]),
                             (503, "the queue is full: try again later", "queue_full"))
        finally:
            server.stop()

    def test_a_server_on_ipv6(self):
        if not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("the machine has no IPv6")
        server = Server(self.folder, "--host=::1")
        try:
            with socket.create_connection(("::1", server.port), timeout=60) as connection:
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertEqual(answer_of(everything(connection))[0], 200)
        finally:
            server.stop()

    def test_an_interrupt_while_clients_wait(self):
        server = Server(self.folder)
        waiting = [server.send("POST", "/v1/completions", {**ONCE, "max_tokens": 120, "stream": i % 2 == 0}) for i in range(6)]
        waiting[0].recv(10)
        server.stop()
        for connection in waiting:
            connection.close()

    def fails(self, *arguments):
        result = run("serve", *arguments, cwd=self.folder)
        self.assertEqual(result.status, 1)
        return result.err

    def test_it_does_not_begin(self):
        self.assertEqual(self.fails("chat.gguf", "--host=0.0.0.0"),
                         "error[value]: 0.0.0.0 can be reached from elsewhere: --key TEXT is needed\n")
        self.assertEqual(self.fails("chat.gguf", "--host=localhost", "--key=x"),
                         'error[value]: "localhost" is not an address, like 127.0.0.1 or ::1\n')
        taken = self.fails("chat.gguf", f"--port={self.server.port}").replace(str(self.server.port), "8080")
        self.assertEqual(taken, "error[io]: cannot listen on 127.0.0.1 port 8080: Address already in use\n")
        self.assertEqual(self.fails("chat.gguf", "--port=70000"), "error[value]: port is 70000; it must be from 0 to 65535\n")
        self.assertEqual(self.fails("chat.gguf", "--batch=0"), "error[value]: batch is 0; it must be from 1 to 1024\n")

    # --- other programs, where they are

    def test_the_page_talks(self):
        """Its script in node, with as much of a browser as it asks for: a question, and two that fail."""
        if not shutil.which("node"):
            self.skipTest("there is no node")
        page = self.server.ask("GET", "/")[1]
        script = re.search(r"<script>(.*)</script>", page, re.S)[1]
        Path(self.folder, "page.mjs").write_text("""
            const elements = {}
            const element = () => ({ value: "", textContent: "", hidden: false, disabled: false, append() {}, scrollIntoView() {} })
            const lines = []
            globalThis.document = {
                getElementById: id => elements[id] ??= element(),
                createElement: () => { const p = element(); lines.push(p); return p },
            }
            const real = fetch
            globalThis.fetch = (path, more) => real("http://127.0.0.1:" + process.argv[2] + "/" + path, more)
            """ + script + """
            $("temperature").value = "0"
            await ask("Tom")
            await ask("Sue")
            $("temperature").value = "9"
            await ask("no")
            console.log(JSON.stringify(lines.map(p => [p.className, p.textContent])))
            console.log(document.title)""")
        result = subprocess.run(["node", Path(self.folder, "page.mjs"), str(self.server.port)], capture_output=True, text=True)
        self.assertEqual(result.stderr, "")
        lines = json.loads(result.stdout.splitlines()[0])
        messages = [{"role": "user", "content": "Tom"}]
        first = said(self.server.post("/v1/chat/completions", {"messages": messages, "temperature": 0}))
        messages += [{"role": "assistant", "content": first}, {"role": "user", "content": "Sue"}]
        status, full = self.server.post("/v1/chat/completions", {"messages": messages, "temperature": 0})
        self.assertEqual(lines, [["user", "Tom"], ["assistant", first], ["user", "Sue"], ["assistant", ""],
                                 ["error", full["error"]["message"]], ["user", "no"], ["assistant", ""],
                                 ["error", "temperature must be from 0 to 2"]])
        self.assertEqual(result.stdout.splitlines()[1], "chat.gguf")

    def test_the_page_in_a_browser(self):
        """A question sent by its button, one by the Enter key, an answer that is stopped."""
        program = shutil.which("chromium")
        if not program:
            self.skipTest("chromium is not installed")
        browser = Browser(program, self.folder + "/browser")
        self.addCleanup(browser.close)
        browser.open(f"http://127.0.0.1:{self.server.port}/")
        browser.run('$("temperature").value = "0"; $("text").value = "Tom"; $("send").click()')
        answered = ('(async () => { while ($("send").disabled) await new Promise(done => setTimeout(done, 20));'
                    'return [...$("talk").children].map(p => [p.className, p.textContent]) })()')
        expected = said(self.server.post("/v1/chat/completions", {"messages": TOM["messages"], "temperature": 0}))
        self.assertEqual(browser.run(answered), [["user", "Tom"], ["assistant", expected]])
        self.assertEqual(browser.run("document.title"), "chat.gguf")
        browser.run('$("clear").click(); $("text").value = "Tom";'
                    '$("text").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", cancelable: true }))')
        self.assertEqual(browser.run(answered), [["user", "Tom"], ["assistant", expected]])
        browser.run('$("clear").click(); $("text").value = "Tom"; $("send").click(); $("stop").click()')
        lines = browser.run(answered)
        self.assertEqual([kind for kind, _ in lines], ["user", "assistant"])
        self.assertTrue(expected.startswith(lines[1][1]), lines)

    def test_the_official_client(self):
        lines = official_client(self, self.server, """
            const asked = { model: "chat.gguf", messages: [{ role: "user", content: "Tom" }], max_tokens: 12, temperature: 0 }
            console.log(JSON.stringify((await client.chat.completions.create(asked)).choices[0].message.content))
            let text = ""
            for await (const event of await client.chat.completions.create({ ...asked, stream: true }))
                text += event.choices[0].delta.content ?? ""
            console.log(JSON.stringify(text))
            console.log((await client.embeddings.create({ model: "chat.gguf", input: "Tom" })).data[0].embedding.length)
            console.log((await client.models.list()).data[0].id)
            try { await client.chat.completions.create({ ...asked, foo: 1 }) } catch (e) { console.log(e.status, e.param) }""")
        expected = json.dumps(said(self.server.post("/v1/chat/completions", TOM)))
        self.assertEqual(lines, [expected, expected, "64", "chat.gguf", "400 foo"])


if __name__ == "__main__":
    unittest.main()
