"""tl mcp: lines of JSON-RPC, its tools, and that nothing ends or escapes the server."""
import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

from tl import TL, need_no_sanitizer, need_sandbox


def talk(lines, *options, env=None):
    """The messages that the server answers, by their ids."""
    text = b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines)
    process = subprocess.run([TL, "mcp", *options], input=text, capture_output=True, timeout=120,
                             env={**os.environ, "NO_COLOR": "1", **(env or {})})
    assert process.returncode == 0, process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def request(method, number=1, **parameters):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": parameters}


def call(tool, number=1, **arguments):
    return request("tools/call", number, name=tool, arguments=arguments)


def setUpModule():
    need_sandbox()


class Protocol(unittest.TestCase):
    def test_beginning(self):
        answers = talk([request("initialize", 1, protocolVersion="2025-03-26", capabilities={}),
                        {"jsonrpc": "2.0", "method": "notifications/initialized"},
                        request("ping", "two"), request("tools/list", 3)])
        self.assertEqual([a["id"] for a in answers], [1, "two", 3])
        self.assertEqual(answers[0]["result"]["protocolVersion"], "2025-03-26")
        self.assertEqual(answers[0]["result"]["serverInfo"]["name"], "tl")
        self.assertEqual(answers[0]["result"]["capabilities"], {"tools": {}})
        self.assertEqual(answers[1]["result"], {})
        tools = {tool["name"]: tool for tool in answers[2]["result"]["tools"]}
        self.assertEqual(sorted(tools), ["check", "explain", "help", "run"])
        schema = tools["explain"]["inputSchema"]
        self.assertEqual(schema["required"], ["code", "line", "column"])
        self.assertIs(schema["additionalProperties"], False)

    def test_an_unknown_revision_gets_the_newest(self):
        answer = talk([request("initialize", 1, protocolVersion="1999-01-01")])[0]
        self.assertEqual(answer["result"]["protocolVersion"], "2025-06-18")

    def test_errors(self):
        cases = [(b"{", -32700, None, "expected"), (b"[]", -32600, None, "not a request"), (b"\xff\xfe", -32700, None, ""),
                 ({"id": 4, "method": "ping"}, -32600, 4, "not a request of JSON-RPC 2.0"),
                 ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, -32600, None, "an id must be"),
                 ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}, -32602, 1, "params must be an object"),
                 (request("nothing"), -32601, 1, "there is no method nothing"),
                 (request("tools/call"), -32602, 1, "needs the name of a tool"),
                 (call("nothing"), -32602, 1, "there is no tool nothing"),
                 (call("check"), -32602, 1, "code is missing"), (call("check", code=1), -32602, 1, "code must be a string"),
                 (call("check", code="", more=1), -32602, 1, "check has no argument more"),
                 (call("run", code="", arguments=[1]), -32602, 1, "arguments must be an array of strings"),
                 (call("run", code="", arguments=["a"] * 33), -32602, 1, "arguments has more than 32 items"),
                 (call("explain", code="", line="1", column=1), -32602, 1, "line must be an integer"),
                 (request("tools/call", name="check", arguments=[1]), -32602, 1, "arguments must be an object")]
        answers = talk([message for message, *_ in cases])
        self.assertEqual(len(answers), len(cases))
        for (message, code, number, words), answer in zip(cases, answers):
            self.assertEqual((answer["error"]["code"], answer["id"]), (code, number), message)
            self.assertIn(words, answer["error"]["message"])

    def test_a_line_of_any_length(self):
        answers = talk([b'"' + b"x" * (17 << 20) + b'"', request("ping")])
        self.assertIn("longer than 16 MB", answers[0]["error"]["message"])
        self.assertEqual(answers[1]["result"], {})

    def test_nobody_reads(self):
        name = f"{uuid.uuid4()}.txt"
        process = subprocess.Popen([TL, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(json.dumps(call("run", code=f'write_file("{name}", "x")')).encode() + b"\n")
        process.stdin.flush()
        self.assertIn(b'"id":1', process.stdout.readline())
        process.stdout.close()
        self.assertEqual(process.communicate(json.dumps(request("ping", 2)).encode() + b"\n", timeout=60)[1],
                         b"error[io]: nobody reads the answers: Broken pipe\n")
        self.assertEqual(process.returncode, 1)
        self.assertEqual(list(Path("/tmp").glob(f"tl-mcp-*/{name}")), [])

    def test_options(self):
        for words, message in ((["--seed", "1"], "there is no option --seed"), (["file"], "file is not expected"),
                               (["--time-limit", "x"], "--time-limit needs a time")):
            process = subprocess.run([TL, "mcp", *words], capture_output=True, timeout=60, text=True)
            self.assertEqual(process.returncode, 2)
            self.assertIn(message, process.stderr)
        process = subprocess.run([TL, "mcp", "--sandbox", "/nowhere"], capture_output=True, timeout=60, text=True)
        self.assertEqual((process.returncode, process.stderr),
                         (1, "error[io]: --sandbox: /nowhere: No such file or directory\n"))


class Tools(unittest.TestCase):
    def setUp(self):
        need_no_sanitizer("needs the whole address space")

    def one(self, message, *options, **more):
        result = talk([message], *options, **more)[0]["result"]
        self.assertEqual([part["type"] for part in result["content"]], ["text"])
        return result["isError"], result["content"][0]["text"]

    def test_run(self):
        self.assertEqual(self.one(call("run", code="print(sum([1, 2, 3]), args())", arguments=["a", "-b"])),
                         (False, '6 ["a", "-b"]\n'))
        self.assertEqual(self.one(call("run", code="")), (False, "(no output)\n"))
        failed, text = self.one(call("run", code="print(1)\nprint([1, 2] @ [3])"))
        self.assertTrue(failed)
        self.assertIn("error[shape]", text)
        self.assertIn("<stdin>:2", text)
        self.assertIn("exit status 1", text)

    def test_run_is_confined(self):
        with tempfile.TemporaryDirectory() as folder:
            secret = Path(folder, "secret.tl")
            secret.write_text("secret words")
            for code in (f'print(read_file("{secret}"))', f'write_file("{folder}/new", "x")', f'import "{secret}" as s'):
                failed, text = self.one(call("run", code=code))
                self.assertTrue(failed, code)
                self.assertIn("Permission denied", text)
                self.assertNotIn("secret words", text)
            self.assertEqual(os.listdir(folder), ["secret.tl"])
            self.assertEqual(self.one(call("run", code='print(env("SECRET"))'), env={"SECRET": "x"})[1], "none\n")
            failed, text = self.one(call("run", code='write_file("new", "x")\nprint(read_file("secret.tl"))'),
                                    "--sandbox", folder)
            self.assertEqual((failed, text), (False, "secret words\n"))
            self.assertEqual(sorted(os.listdir(folder)), ["new", "secret.tl"])

    def test_its_own_folder_is_removed(self):
        name = f"{uuid.uuid4()}.txt"  # others may have such folders, too
        self.assertEqual(self.one(call("run", code=f'write_file("{name}", "x")\nprint(list_dir("."))')), (False, f'["{name}"]\n'))
        self.assertEqual(list(Path("/tmp").glob(f"tl-mcp-*/{name}")), [])

    def test_run_ends_in_time_memory_and_files(self):
        failed, text = self.one(call("run", code="while true {}"), "--time-limit", "300ms")
        self.assertTrue(failed)
        self.assertIn("the time limit of 0.3 s was over here", text)
        failed, text = self.one(call("run", code="let l = []\nwhile true { l.push(str(len(l))) }"), "--host-limit=50MB")
        self.assertTrue(failed)
        self.assertIn("(--host-limit)", text)
        failed, text = self.one(call("run", code='write_file("a.txt", "x" * 70000)'), "--disk-limit", "60000")
        self.assertTrue(failed)
        self.assertIn("(--disk-limit leaves 60000 bytes)", text)

    def test_a_run_that_is_killed(self):
        process = subprocess.Popen([TL, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "NO_COLOR": "1"})
        self.addCleanup(process.stdout.close)
        process.stdin.write(json.dumps(call("run", code="while true {}")).encode() + b"\n")
        process.stdin.flush()
        children = []
        while not children and process.poll() is None:
            time.sleep(0.01)
            children = [child for task in Path(f"/proc/{process.pid}/task").iterdir()
                        for child in (task / "children").read_text().split()]
        os.kill(int(children[0]), signal.SIGKILL)
        answer = json.loads(process.stdout.readline())["result"]
        self.assertEqual((answer["isError"], answer["content"][0]["text"]), (True, "exit status 137\n"))
        process.stdin.close()
        self.assertEqual(process.wait(60), 0)

    def test_a_flood_of_output_is_cut(self):
        failed, text = self.one(call("run", code='for i in 0..100000 { print("0123456789") }'))
        self.assertFalse(failed)
        self.assertIn("(837856 more bytes were left out)", text)

    def test_check(self):
        self.assertEqual(self.one(call("check", code="print(1)\n")), (False, "[]\n"))
        failed, text = self.one(call("check", code="print(lenn([1]))\n"))
        self.assertTrue(failed)
        found = json.loads(text.split("exit status")[0])
        self.assertEqual((found[0]["kind"], found[0]["start"]), ("name", {"line": 1, "column": 7}))
        self.assertIn("len", found[0]["help"])

    def test_explain(self):
        code = "let x = zeros([2, 3])\nprint(x)\n"
        failed, text = self.one(call("explain", code=code, line=2, column=7))
        self.assertFalse(failed)
        self.assertIn("[2, 3]", text)
        for line, column in ((1, 7), (99, 99), (0, 0), (-5, 1 << 62)):
            self.assertFalse(self.one(call("explain", code=code, line=line, column=column))[0])
        self.assertIn("it is not a name", self.one(call("explain", code=code, line=1, column=7))[1])

    def test_help(self):
        failed, text = self.one(call("help", name="softmax"))
        self.assertFalse(failed)
        self.assertIn("softmax(", text)
        failed, text = self.one(call("help", name="softmaxx"))
        self.assertTrue(failed)
        self.assertIn("softmax", text)


if __name__ == "__main__":
    unittest.main()
