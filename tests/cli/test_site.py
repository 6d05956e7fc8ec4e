"""The documentation website: every page and link of it, the examples of the catalog, and what it does in a browser."""
import html
import html.parser
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path
from urllib.parse import unquote

from tl import ROOT, TL, run

PYTHON = "/usr/bin/python3"
# What examples of the catalog may need that is not there: a model, or variables that the text around them has.
ELSEWHERE = re.compile(r"cannot open (?:\w+\.(?:gguf|onnx)|ones\.npy)|cannot read \"data/|unknown name `(?:m|w|x|q|k|v|opt|cache|direction|optimizer|cosines)`")
SETTINGS = re.compile(r"\w+: ")  # a setting of a learn block
FAILS = {"panic"}

# Loads pages at two widths in frames; what it finds is written into its title.
HARNESS = """<!DOCTYPE html><title>loading</title>
%s
<script>
const told = [], frames = [...document.querySelectorAll("iframe")];
const frame = (page, width) => frames.find((one) => one.dataset.page === page && one.width === width).contentWindow;
const type = (win, text) => {
    const field = win.document.getElementById("search");
    field.value = text;
    field.dispatchEvent(new win.Event("input"));
    return [...win.document.querySelectorAll("#results a")];
};
function look() {
    for (const one of frames) {
        const page = one.contentDocument.documentElement;
        if (page.scrollWidth > page.clientWidth) told.push(`${one.dataset.page} is ${page.scrollWidth} wide at ${one.width}`);
    }
    const wide = frame("index.html", "1280"), inner = frame("examples/09_xor.html", "390");
    const found = type(wide, "softmax");
    told.push(found[0].getAttribute("href"), found[0].querySelector("b").textContent);
    told.push(type(wide, "copy on write").length > 0, type(wide, "zzzqqq").length, wide.document.getElementById("results").hidden);
    told.push(type(wide, "spmm")[0].getAttribute("href"), type(inner, "softmax")[0].getAttribute("href"));
    type(wide, "");
    told.push(wide.document.getElementById("results").hidden);
    const copied = [];
    for (const page of ["guide.html", "index.html"]) {
        const win = frame(page, "1280");
        Object.defineProperty(win.navigator, "clipboard", {value: {writeText: (text) => { copied.push(text); return Promise.resolve(); }}});
        win.document.querySelector(".code:has(.%s) .copy".replace("%s", page === "guide.html" ? "session" : "source")).click();
    }
    told.push(JSON.stringify(copied));
    const root = wide.document.documentElement, paper = () => wide.getComputedStyle(wide.document.body).backgroundColor;
    const light = paper();
    wide.document.getElementById("theme").click();
    told.push(light !== paper());
    wide.document.getElementById("theme").click();
    told.push(light === paper());
    const phone = frame("index.html", "390"), menu = phone.document.getElementById("pages");
    const shown = () => phone.getComputedStyle(menu).display;
    told.push(shown());
    phone.document.getElementById("menu").click();
    told.push(shown());
}
addEventListener("load", () => {
    try { look(); } catch (problem) { told.push("problem " + problem.stack); }
    document.title = "told " + JSON.stringify(told);
});
</script>"""
SHOWN = ("index.html", "guide.html", "reference.html", "examples/index.html", "examples/09_xor.html", "embedding.html", "performance.html",
         "pytorch.html", "std/layers.html", "internals/gpu.html")


class Page(html.parser.HTMLParser):
    """The links, anchors and addresses of a page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.marks, self.loaded, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag == "a":
            self.links.append(found["href"])
        elif found.get("href") or found.get("src"):
            self.loaded.append(found.get("href") or found["src"])
        if "id" in found:
            self.marks.append(found["id"])
        if tag not in ("meta", "link", "input", "br", "hr", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes nothing at {self.getpos()}"


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if subprocess.run([PYTHON, "-c", "import markdown, pygments"], capture_output=True).returncode:
            raise unittest.SkipTest("python3-markdown and python3-pygments are not installed")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name, "site")
        made = subprocess.run([PYTHON, ROOT / "docs" / "site" / "build.py", TL, cls.folder], capture_output=True, text=True)
        if made.returncode:
            raise AssertionError(made.stderr)
        cls.catalog = json.loads(run("help", "--json").out)

    def test_links_lead_somewhere(self):
        pages = {path.relative_to(self.folder).as_posix(): Page(path.read_text()) for path in self.folder.rglob("*.html")}
        self.assertGreater(len(pages), 60)
        for name, page in pages.items():
            self.assertEqual(page.open, [], name)
            self.assertEqual(len(set(page.marks)), len(page.marks), name)
            for address in page.loaded:
                self.assertTrue(address.startswith("data:") or (self.folder / name).parent.joinpath(address).exists(), f"{name} loads {address}")
            for link in page.links:
                if re.match(r"https?:", link):
                    continue
                path, _, mark = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                self.assertIn(target, pages, f"{name} leads to {link}")
                self.assertTrue(not mark or unquote(mark) in pages[target].marks, f"{name} leads to {link}")

    def test_every_builtin_has_an_anchor(self):
        marks = set(Page((self.folder / "reference.html").read_text()).marks)
        names = {row["name"] for row in self.catalog["builtins"]}
        self.assertGreater(len(names), 400)
        self.assertEqual(names - marks, set())
        self.assertEqual({"environment-variables-" + row["name"] for row in self.catalog["variables"]} - marks, set())
        listed = (ROOT / "docs" / "reference.md").read_text()
        for row in self.catalog["builtins"]:
            self.assertIn(f"- `{row['signature']}` {row['doc']}", listed)

    def test_what_the_search_finds_is_there(self):
        found = json.loads((self.folder / "search.js").read_text().removeprefix("const SEARCH = ").removesuffix(";\n"))
        marks = {path: set(Page(path.read_text()).marks) for path in self.folder.rglob("*.html")}
        for title, address, _, _ in found:
            path, _, mark = address.partition("#")
            self.assertTrue(not mark or mark in marks[self.folder / path], f"{title}: {address}")
        self.assertLessEqual({row["name"] for row in self.catalog["builtins"]}, {row[0] for row in found})

    def test_programs_stand_with_their_output(self):
        guide = (self.folder / "guide.html").read_text()
        self.assertIn('aria-label="output">42\nfirst\nlast</pre>', guide)
        self.assertNotIn("// expect: 42", guide)
        self.assertIn('<a class="nb" href="reference.html#softmax">softmax</a>', (self.folder / "index.html").read_text())
        softmax = re.search(r'id="softmax">(.*?)</section>', (self.folder / "reference.html").read_text(), re.S)[1]
        self.assertIn("[0.5 0.5]</pre>", softmax)

    def test_examples_of_the_catalog(self):
        """Each can be entered as it stands, but for those that need a model."""
        for row in self.catalog["builtins"]:
            if not row["examples"] or row["name"] in FAILS or SETTINGS.match(row["examples"][0]):
                continue
            with self.subTest(row["name"]), tempfile.TemporaryDirectory() as folder:
                result = run("repl", "--seed", "1", stdin=("\n".join(row["examples"]) + "\n").encode(), cwd=folder)
                failed = [line for line in result.err.splitlines() if line.startswith("error") and not ELSEWHERE.search(line)]
                self.assertEqual(failed, [])

    def test_in_a_browser(self):
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("chromium is not installed")
        frames = "\n".join(f'<iframe src="{page}" data-page="{page}" width="{width}" height="800"></iframe>' for page in SHOWN for width in (1280, 390))
        harness = self.folder / "harness.html"
        harness.write_text(HARNESS.replace("%s", frames, 1))
        self.addCleanup(harness.unlink)
        with tempfile.TemporaryDirectory() as profile:
            result = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files", "--enable-logging=stderr",
                                     f"--user-data-dir={profile}", "--window-size=1400,900", "--dump-dom", f"file://{harness}"],
                                    capture_output=True, text=True, timeout=280)
        self.assertEqual([line for line in result.stderr.splitlines() if "CONSOLE" in line], [])
        title = html.unescape(re.search(r"<title>(.*?)</title>", result.stdout, re.S)[1])
        self.assertTrue(title.startswith("told "), title)
        told = json.loads(title[5:])
        copied = json.loads(told.pop(8))
        self.assertEqual(told, ["reference.html#softmax", "softmax", True, 0, False, "reference.html#matmul", "../reference.html#softmax", True,
                                True, True, "none", "block"])
        self.assertTrue(copied[0] and "tl>" not in copied[0] and copied[1].startswith("make run"), copied)


if __name__ == "__main__":
    unittest.main()
