"""The Jupyter kernel: what a session answers, over the wire by jupyter_client, and whole notebooks by nbclient."""
import html
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, TL

PACKAGE = Path(TL).resolve().parent / "python"
PYTHON = "/usr/bin/python3"
# Steps for another Python: the system's, for which the package was built. `kernel` is a client's.
CLIENT = """
import json, queue, sys, time
from jupyter_client.manager import start_new_kernel
manager, kernel = start_new_kernel(kernel_name="tl", startup_timeout=120)
def run(code, **options):  # what comes soon after an error is run, too
    said = []
    reply = kernel.execute_interactive(code, timeout=120, stop_on_error=False, output_hook=lambda m: said.append((m["msg_type"], m["content"])), **options)["content"]
    return reply, [(kind, content) for kind, content in said if kind not in ("status", "execute_input")]
def ask(mark):
    while True:
        reply = kernel.get_shell_msg(timeout=120)
        if reply["parent_header"].get("msg_id") == mark:
            return reply["content"]
try:
    exec(sys.stdin.read())
finally:
    kernel.stop_channels()
    manager.shutdown_kernel(now=True)
"""
NBCLIENT = """
import json, sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, kernel_name="tl").execute()
print(json.dumps([cell.get("outputs", []) for cell in notebook.cells]))
"""
CONVERT = """
import sys, nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, kernel_name="tl").execute()
page, _ = HTMLExporter(template_name="basic").from_notebook_node(notebook)
open(sys.argv[2], "w").write("<!DOCTYPE html><html><head><meta charset=utf-8><title>loading</title></head><body>" + page + "</body></html>")
"""
# What the browser drew of it is written into the page's title.
LOOK = """<script>
addEventListener("load", () => {
    const outputs = [...document.querySelectorAll(".output, .jp-OutputArea, .output_area")];
    const inside = (words) => outputs.flatMap((output) => [...output.querySelectorAll(words)]);
    const drawn = (one) => one.getBoundingClientRect().width > 0 && one.getBoundingClientRect().height > 0;
    document.title = "told " + JSON.stringify({tables: inside("table").length, pictures: inside("svg").filter(drawn).length,
        lines: inside("svg polyline").filter(drawn).length,
        hidden: inside("svg, table").filter((one) => !drawn(one)).length, errors: document.querySelectorAll(".output_error").length,
        words: outputs.map((output) => output.textContent).join(" ")});
});
</script>"""


def missing():
    """Why there is nothing to test here, or None."""
    if not (PACKAGE / "tl" / "_tl.abi3.so").exists():
        return "built without the Python package (python3-cffi, python3-dev)"
    modules = subprocess.run([PYTHON, "-c", "import ipykernel, jupyter_client, nbclient, nbformat"], capture_output=True)
    return "python3-ipykernel and python3-nbclient are not installed" if modules.returncode else None


class Notebook(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        reason = missing()
        if reason:
            raise unittest.SkipTest(reason)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "JUPYTER_DATA_DIR": self.folder, "JUPYTER_RUNTIME_DIR": self.folder,
                            "IPYTHONDIR": self.folder, "TL_DEVICE": "cpu", "HOME": self.folder}

    def python(self, *words, stdin=""):
        result = subprocess.run([PYTHON, *words], env=self.environment, input=stdin, capture_output=True, text=True, timeout=300)
        self.assertEqual(result.returncode, 0, result.stderr[-3000:])
        return result.stdout

    def install(self):
        return subprocess.run([TL, "notebook-kernel", "install"], env={**self.environment, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True)

    def with_kernel(self, steps):
        self.install()
        return self.python("-c", CLIENT, stdin=steps)

    def test_install(self):
        result = self.install()
        self.assertEqual((result.returncode, result.stdout), (0, f"installed the kernel tl in {self.folder}/kernels/tl\n"), result.stderr)
        spec = json.loads(Path(self.folder, "kernels", "tl", "kernel.json").read_text())
        self.assertEqual((spec["argv"][1:3], spec["interrupt_mode"], spec["env"]), (["-m", "tl.kernel"], "message", {"PYTHONPATH": str(PACKAGE)}))
        wrong = subprocess.run([TL, "notebook-kernel", "remove"], capture_output=True, text=True)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("the word after notebook-kernel is install", wrong.stderr)

    def test_no_package(self):
        result = subprocess.run([TL, "notebook-kernel", "install"], env={**self.environment, "PYTHONPATH": "", "PATH": "/bin"}, capture_output=True, text=True)
        if result.returncode == 0:
            self.skipTest("the package tl is installed on this system")
        self.assertIn("notebooks need a python3 with the packages tl and ipykernel", result.stderr)
        self.assertIn("help: on Debian and Ubuntu: apt install python3-tl python3-ipykernel", result.stderr)

    def test_values(self):
        out = self.with_kernel("""
reply, said = run("let x = arange(12).reshape([3, 4])\\nx")
assert reply["status"] == "ok" and said[0][0] == "execute_result", said
data = said[0][1]["data"]
assert data["text/plain"].startswith("[[ 0  1  2  3]"), data
assert "int64 [3, 4], 96 bytes" in data["text/html"] and "<td" in data["text/html"] and "<svg" in data["text/html"], data
assert said[1][1]["metadata"]["tl"] == {"live_bytes": 96, "change_bytes": 96}, said
assert "device memory +96 bytes, 96 bytes held" in said[1][1]["data"]["text/plain"], said
reply, said = run("x + 1")
assert len(said) == 1 and reply["metadata"]["tl"] == {"live_bytes": 96, "change_bytes": 0}, (reply, said)
reply, said = run('struct P { name: string, inner: any }\\nP { name: "<a>", inner: list(1, none, true) }')
page = said[0][1]["data"]["text/html"]
assert "<summary>P</summary>" in page and "&lt;a&gt;" in page and "list of 3" in page and "none" in page and "<a>" not in page, page
assert run("let d = ({\\"k\\": x})\\nd")[1][0][1]["data"]["text/html"].count("int64[3, 4]") == 1
assert run("5.0")[1] == [("execute_result", {"data": {"text/plain": "5.0"}, "metadata": {}, "execution_count": 5})]
assert run("let y = 3")[1] == []
assert "[0, 0] is shown" in run("zeros([2, 2, 3, 3])")[1][0][1]["data"]["text/html"]
assert "bfloat16 [0]" in run("zeros([0]) as bfloat16")[1][0][1]["data"]["text/html"]
assert "#888" in run("tensor([[nan, 1.0], [inf, 2.0]])")[1][0][1]["data"]["text/html"]
wide = run("ones([500, 700])")[1][0][1]["data"]["text/html"]
assert len(wide) < 300000 and "…" in wide
run("d = none")
assert run("x = none")[1][0][1]["data"]["text/plain"] == "device memory -96 bytes, 0 bytes held"
print("sound")
""")
        self.assertEqual(out, "sound\n")

    def test_output(self):
        out = self.with_kernel("""
reply, said = run('print("a"); print("b"); eprint("c"); plot([1, 2, 4]); print("d")')
assert [kind for kind, _ in said] == ["stream", "stream", "display_data", "stream"], said
assert said[0][1] == {"name": "stdout", "text": "a\\nb\\n"} and said[1][1]["name"] == "stderr", said
assert said[2][1]["data"]["image/svg+xml"].startswith("<svg "), said
reply, said = run("let a = 1\\nlet b = zeros([2]) @ zeros([3])")
assert reply["status"] == "error" and reply["ename"] == "shape" and any("<cell>:2:9" in line for line in reply["traceback"]), reply
assert run("a")[0]["status"] == "error", "what failed left a variable behind"
reply, said = run("tensor w: float32[1] learnable\\nlet r = learn { objective: mean((w - 1.0) ** 2), optimizer: sgd(lr: 0.1), epochs: 300 }")
bars = [(kind, content) for kind, content in said if kind.endswith("display_data") and "<progress" in content["data"]["text/html"]]
assert bars[0][0] == "display_data" and {kind for kind, _ in bars[1:]} == {"update_display_data"}, said
assert len({content["transient"]["display_id"] for _, content in bars}) == 1 and "epoch 300 of 300" in bars[-1][1]["data"]["text/plain"]
begun = time.time()
mark = kernel.execute('print("before")\\nsleep(3)')
while kernel.get_iopub_msg(timeout=60)["msg_type"] != "stream": pass
assert time.time() - begun < 2.5, "what is printed comes while the cell runs"
ask(mark)
print("sound")
""")
        self.assertEqual(out, "sound\n")

    def test_interrupt(self):
        out = self.with_kernel("""
mark = kernel.execute("let n = 0\\nloop { n += 1 }", stop_on_error=False)  # else what comes at once is aborted, too
time.sleep(2)
manager.interrupt_kernel()
reply = ask(mark)
assert reply["status"] == "error" and reply["ename"] == "KeyboardInterrupt", reply
assert run("1 + 1")[1][0][1]["data"]["text/plain"] == "2"
print("sound")
""")
        self.assertEqual(out, "sound\n")

    def test_help(self):
        out = self.with_kernel("""
run("let softness = ({\\"first\\": 1, \\"second\\": ones([2])})")
def complete(code): return ask(kernel.complete(code, len(code)))
found = complete("let y = soft")
assert {"softmax", "softness"} <= set(found["matches"]) and (found["cursor_start"], found["cursor_end"]) == (8, 12), found
assert complete("softness.se")["matches"] == ["second"] and complete("softness.second.sh")["matches"] == ["shape"]
assert complete("nothing.x")["matches"] == [] and complete("")["matches"] == []
page = ask(kernel.inspect("softmax(x)", 3))
assert page["found"] and page["data"]["text/plain"].startswith("softmax(x"), page
assert ask(kernel.inspect("softness", 8))["data"]["text/plain"].startswith("softness: dict"), ask(kernel.inspect("softness", 8))
assert not ask(kernel.inspect("no_such_name", 4))["found"]
assert run("relu?")[1][0][1]["data"]["text/plain"].startswith("relu(x: tensor) -> tensor")
assert run("?nothing")[1][0][1]["data"]["text/plain"] == "there is nothing called nothing"
for code, state in (("f(", "incomplete"), ("f)", "invalid"), ('"a', "incomplete"), ("/* (", "incomplete"), ("// (", "complete"), ('"(" + r"["', "complete")):
    assert ask(kernel.is_complete(code))["status"] == state, code
assert ask(kernel.kernel_info())["language_info"]["name"] == "tl"
print("sound")
""")
        self.assertEqual(out, "sound\n")

    def test_hostile_messages(self):
        out = self.with_kernel("""
import random
draw = random.Random(5)
words = ["let", "x", "{", "}", "(", "[1.0, 2.0]", "\\0", "\\ud800", '"', "plot(", "\\U0001f999", "import", "\\n", "?", "."]
for _ in range(60):
    code = "".join(draw.choice(words) for _ in range(draw.randrange(9))).encode("utf-8", "replace").decode()
    run(code)
    ask(kernel.complete(code, draw.randrange(len(code) + 1)))
    ask(kernel.inspect(code, draw.randrange(len(code) + 1)))
    ask(kernel.is_complete(code))
assert run("1 + 1")[1][0][1]["data"]["text/plain"] == "2"
print("sound")
""")
        self.assertEqual(out, "sound\n")

    def test_conformance(self):
        if subprocess.run([PYTHON, "-c", "import jupyter_kernel_test"], capture_output=True).returncode:
            self.skipTest("python3-jupyter-kernel-test is not installed")
        self.install()
        result = subprocess.run([PYTHON, ROOT / "tests" / "python" / "conformance.py"], env=self.environment, capture_output=True, text=True,
                                timeout=600)
        self.assertEqual(result.returncode, 0, result.stderr[-3000:])
        self.assertRegex(result.stderr, r"Ran 1[0-9] tests")

    def test_in_a_browser(self):
        """A notebook that ran, as a reader sees it: tables and heat maps are drawn."""
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("chromium is not installed")
        if subprocess.run([PYTHON, "-c", "import nbconvert"], capture_output=True).returncode:
            self.skipTest("python3-nbconvert is not installed")
        self.install()
        page = Path(self.folder, "page.html")
        self.python("-c", CONVERT, str(ROOT / "examples" / "notebooks" / "1_tensors.ipynb"), str(page))
        self.assertNotIn("@import", page.read_text())
        page.write_text(page.read_text().replace("</body>", LOOK + "</body>"))
        result = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/browser", "--dump-dom",
                                 f"file://{page}"], capture_output=True, text=True, timeout=280)
        told = json.loads(html.unescape(re.search(r"<title>told (.*?)</title>", result.stdout, re.S)[1]))
        self.assertGreaterEqual(told["tables"], 1)
        self.assertGreaterEqual(told["pictures"], 2)
        self.assertGreater(told["lines"], 0)
        self.assertEqual((told["hidden"], told["errors"]), (0, 0), told)
        self.assertIn("float32 [60, 60], 14.4 kB", told["words"])

    def test_notebooks(self):
        self.install()
        notebooks = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
        self.assertEqual(len(notebooks), 3)
        seen = {}
        for path in notebooks:
            outputs = json.loads(self.python("-c", NBCLIENT, str(path)))
            flat = [output for cell in outputs for output in cell]
            self.assertFalse([output for output in flat if output["output_type"] == "error"])
            seen[path.stem[0]] = json.dumps(flat, ensure_ascii=False)
        self.assertIn("float32 [60, 60], 14.4 kB", seen["1"])
        self.assertIn("image/svg+xml", seen["1"])
        self.assertIn("device memory -14.4 kB", seen["1"])
        self.assertRegex(re.search(r"w [^\"]*", seen["2"])[0], r"w (2\.9|3\.0)\d, b (0\.9|1\.0)\d")
        self.assertIn("epoch 150 of 150", seen["2"])
        self.assertIn("alice is an ancestor of dave", seen["3"])


if __name__ == "__main__":
    unittest.main()
