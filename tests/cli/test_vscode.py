"""The extension for Visual Studio Code: built as a package, run headless against `tl lsp`, its grammar compared with the
lexer over every program of the repository."""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from tl import ROOT, TL, run

BUILD = Path(TL).resolve().parent
SOURCE = ROOT / "editors" / "vscode"
TESTS = ROOT / "tests" / "vscode"


def build():
    """The package, or why it cannot be made here."""
    for program in ("node", "npm"):
        if not shutil.which(program):
            raise unittest.SkipTest(f"{program} is not installed")
    result = subprocess.run([sys.executable, SOURCE / "build.py", BUILD / "vscode", "0.1.0"], capture_output=True, text=True)
    if "npm could not install" in result.stderr:
        raise unittest.SkipTest("npm has no registry here: " + result.stderr.strip().splitlines()[-1])
    if result.returncode:
        raise AssertionError(result.stderr)
    return Path(result.stdout.strip())


class VisualStudioCode(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.package = build()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def unpack(self):
        with zipfile.ZipFile(self.package) as package:
            package.extractall(self.folder / "package")
        return self.folder / "package" / "extension"

    def test_runs(self):
        """Diagnostics of the real server, and what the buttons run."""
        programs = self.folder / "programs"
        programs.mkdir()
        bundle = self.unpack() / "extension.js"
        result = subprocess.run(["node", TESTS / "extension.js", bundle, TL, programs], capture_output=True, text=True, timeout=300)
        self.assertEqual(result.stdout, "sound\n", result.stderr)

    def test_the_package_is_whole(self):
        extension = self.unpack()
        manifest = json.loads((extension / "package.json").read_text())
        contributed = manifest["contributes"]
        named = [manifest["main"], *(row["configuration"] for row in contributed["languages"]),
                 *(row["path"] for row in contributed["grammars"] + contributed["snippets"])]
        for name in named:
            self.assertTrue((extension / name).is_file(), name)
        for name in ("language-configuration.json", "tl.tmLanguage.json", "snippets.json"):
            json.loads((extension / name).read_text())
        commands = {row["command"] for row in contributed["commands"]}
        for menu in contributed["menus"].values():
            self.assertLessEqual({row["command"] for row in menu}, commands)
        outer = (extension.parent / "extension.vsixmanifest").read_text()
        for path in re.findall(r'Path="([^"]*)"', outer):
            self.assertTrue((extension.parent / path).is_file(), path)
        self.assertIn('Id="tl" Version="0.1.0"', outer)
        self.assertIn("vscode-jsonrpc", (extension / "bundled-licenses.txt").read_text())

    def test_the_package_is_the_same_each_time(self):
        before = self.package.read_bytes()
        self.assertEqual(build().read_bytes(), before)

    def test_grammar_agrees_with_the_lexer(self):
        programs = subprocess.run(["git", "ls-files", "*.tl"], cwd=ROOT, capture_output=True, text=True).stdout.split()
        programs = programs or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.tl")]
        tokens = subprocess.run([BUILD / "tokens", *programs], cwd=ROOT, capture_output=True).stdout
        grammar = ROOT / "editors" / "textmate" / "tl.tmLanguage.json"
        result = subprocess.run(["node", TESTS / "grammar.js", BUILD / "vscode", grammar], cwd=ROOT, input=tokens, capture_output=True)
        said = re.fullmatch(r"(\d+) files agree\n", result.stdout.decode())
        self.assertIsNotNone(said, result.stdout.decode() + result.stderr.decode())
        self.assertGreater(int(said[1]), 500)

    def test_snippets_are_programs(self):
        snippets = json.loads((SOURCE / "snippets.json").read_text())
        for name, snippet in snippets.items():
            with self.subTest(name):
                body = snippet["body"] if isinstance(snippet["body"], str) else "\n".join(snippet["body"])
                inner = re.compile(r"\$\{\d+:([^{}$]*)\}")
                while inner.search(body):
                    body = inner.sub(r"\1", body)
                program = self.folder / "snippet.tl"
                program.write_text(re.sub(r"\$\d", "", body) + "\n")
                result = run("check", program)
                self.assertEqual((result.status, result.err), (0, ""), program.read_text())


if __name__ == "__main__":
    unittest.main()
