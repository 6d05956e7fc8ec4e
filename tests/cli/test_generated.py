"""Files that are printed from the program's tables are not stale, and do what they are for."""
import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, run

PRINTED = {
    "--reference": "docs/reference.md",
    "--vim-syntax": "editors/vim/syntax/tl.vim",
    "--textmate": "editors/textmate/tl.tmLanguage.json",
    "--man": "docs/tl.1",
    "--bash": "completions/tl.bash",
    "--zsh": "completions/_tl",
}


class Generated(unittest.TestCase):
    def test_files_are_not_stale(self):
        for option, name in PRINTED.items():
            with self.subTest(name):
                self.assertEqual((ROOT / name).read_text(), run("help", option).out, "run `make reference`")

    def test_makefile_prints_them(self):
        makefile = (ROOT / "Makefile").read_text()
        for option, name in PRINTED.items():
            self.assertIn(f"help {option} >{name}", makefile)

    def vim_groups(self, text, places):
        """The highlight group of each (line, column) of a program, as Vim sees it."""
        if not shutil.which("vim"):
            self.skipTest("no vim")
        with tempfile.TemporaryDirectory() as folder:
            program, answers = Path(folder, "a.tl"), Path(folder, "answers")
            program.write_text(text)
            lines = [f"set runtimepath^={ROOT}/editors/vim", "syntax on", "filetype plugin on", f"edit {program}"]
            for line, column in places:
                lines.append(f"call writefile([synIDattr(synID({line}, {column}, 1), 'name')], '{answers}', 'a')")
            Path(folder, "script.vim").write_text("\n".join([*lines, "qall!"]))
            subprocess.run(["vim", "-u", "NONE", "-i", "NONE", "-nEs", "-c", f"source {folder}/script.vim"],
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
            return answers.read_text().splitlines()

    def test_vim_colours(self):
        text = ('let x = softmax(y) // sum\n'
                'struct P { a: float32[2] learnable }\n'
                'print(f"a {sum(x)} \\n", 1.5e-3, none)\n'
                '/* /* */ sum */ if test { 1 }\n'
                'tensor w: int64[2] = 0xff\n')
        expected = {(1, 1): "tlKeyword", (1, 9): "tlBuiltin", (1, 17): "", (1, 23): "tlComment",
                    (2, 1): "tlDeclaration", (2, 15): "tlType", (2, 26): "tlModifier",
                    (3, 8): "tlString", (3, 12): "tlBuiltin", (3, 16): "tlPlaceholder", (3, 20): "tlEscape",
                    (3, 25): "tlNumber", (3, 33): "tlConstant",
                    (4, 11): "tlComment", (4, 17): "tlConditional", (4, 20): "", (4, 27): "tlNumber",
                    (5, 1): "tlStatement", (5, 11): "tlType", (5, 23): "tlNumber"}
        self.assertEqual(dict(zip(expected, self.vim_groups(text, expected))), expected)

    def test_textmate_patterns(self):
        grammar = json.loads((ROOT / PRINTED["--textmate"]).read_text())
        found = {}
        for pattern in grammar["patterns"]:
            if "match" in pattern and "name" in pattern:
                python = pattern["match"].replace(r"\p{L}", "A-Za-z").replace(r"\p{N}", "0-9")
                found[pattern["name"]] = re.compile(python)
        self.assertTrue(found["keyword.other.tl"].search("let x"))
        self.assertFalse(found["keyword.other.tl"].search("letter"))
        self.assertTrue(found["support.function.tl"].fullmatch("softmax") is None)
        self.assertTrue(found["support.function.tl"].search("softmax(x)"))
        self.assertTrue(found["support.type.tl"].search("x: float32[2]"))
        self.assertTrue(found["keyword.declaration.tl"].search("struct P"))
        self.assertFalse(found["keyword.declaration.tl"].search("struct = 1"))
        for number in ("42", "1_000", "0xff", "3.14", "2.5e10"):
            self.assertTrue(found["constant.numeric.tl"].fullmatch(number), number)

    def bash(self, *words):
        script = (f"source {ROOT}/completions/tl.bash; COMP_WORDS=({' '.join(words)} ''); "
                  "[[ ${COMP_WORDS[-2]} == +* ]] && { COMP_WORDS[-2]=${COMP_WORDS[-2]#+}; unset 'COMP_WORDS[-1]'; }; "
                  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _tl; printf '%s\\n' \"${COMPREPLY[@]}\"")
        result = subprocess.run(["bash", "-c", script], cwd=ROOT / "examples", capture_output=True, text=True)
        return result.stdout.split()

    def test_bash_completion(self):
        self.assertIn("fmt", self.bash("tl"))
        self.assertIn("01_tour.tl", self.bash("tl"))
        self.assertEqual(self.bash("tl", "+che"), ["check"])
        self.assertEqual(self.bash("tl", "fmt", "+--"), ["--check"])
        self.assertIn("--seed", self.bash("tl", "run", "+--"))
        self.assertEqual(self.bash("tl", "run", "+01"), ["01_tour.tl"])
        self.assertEqual(self.bash("tl", "help", "+softm"), ["softmax"])
        self.assertNotIn("--check", self.bash("tl", "fmt"))

    def test_zsh_completion_reads(self):
        if not shutil.which("zsh"):
            self.skipTest("no zsh")
        result = subprocess.run(["zsh", "-n", ROOT / "completions" / "_tl"], capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_man_page(self):
        if not shutil.which("man"):
            self.skipTest("no man")
        result = subprocess.run(["man", "-l", "--warnings", "docs/tl.1"], cwd=ROOT, capture_output=True, text=True,
                                env={"PATH": "/usr/bin:/bin", "MANWIDTH": "90", "LC_ALL": "C.UTF-8"})
        self.assertEqual(result.stderr, "")
        for words in ("tl check [--json|--sums] FILE...", "--memory-check[=strict]", "TL_PATH", "EXIT STATUS"):
            self.assertIn(words, result.stdout)

    def test_commands_have_a_line_of_help(self):
        overview = run("help").out
        for name in re.findall(r"^\.B tl ([a-z]+)", (ROOT / "docs" / "tl.1").read_text(), re.M):
            self.assertIn(f"tl {name}", overview)


if __name__ == "__main__":
    unittest.main()
