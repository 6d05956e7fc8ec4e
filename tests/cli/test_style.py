"""Style as numbers: lengths, columns, words, names of files in comments."""
import re
import subprocess
import unittest

from tl import ROOT

FUNCTION_LINES_MAX, FILE_LINES_MAX, COLUMNS_MAX, PARAMETERS_MAX = 70, 620, 100, 5
LINES_PER_ASSERTION_MAX = 220
# Words of CONTRIBUTING's table that are not to be used; "there is no" is plain English.
BANNED = re.compile(r"\bbeside\b|\bturns? of (?:a|the|its) loop\b|\btruths?\b|\bwhole numbers?\b|\bwhich tl has not\b"
                    r"|(?<!here )\bis no (?!longer\b|better\b|worse\b|larger\b|smaller\b|more\b|less\b|other\b)[a-z]", re.I)
# Parameters whose number a library sets: functions that it calls.
CALLBACKS = {"src/serve/http.c": "on_request"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
FILE_NAME = re.compile(r"(?<![\w./<-])((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:c|h|def|comp|glsl))\b")


def files(*patterns):
    names = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in names.stdout.splitlines()]


def functions(text):
    """Name and lines of each function defined in a C file."""
    for found in re.finditer(r"^(?!static const|typedef|#)[A-Za-z_][^;{}=]*?\b(\w+)\(([^;{}]*)\) \{\n(.*?)^\}", text, re.M | re.S):
        yield found[1], found[0].count("\n") + 1


# A name, or a macro that makes one, and what a call, a declaration or a definition has in parentheses behind it; a
# pointer to a function, or its type.
NAMED = re.compile(r"\b(\w+(?:##\w+)*(?:\(\w[\w#]*\))?|\(\*(?:const )?\w*(?:\[\w*\])?\))\(((?:[^(){};]|\((?:[^(){};]|\([^(){};]*\))*\))*)\)")
PARAMETER = re.compile(r"(?:const |unsigned |struct |enum |restrict )*[A-Za-z_]\w*(?:\(\w+\))?(?: const)?[\s*]+(?:const |restrict |\*)*\w*"
                       r"(?:\[[^\]]*\])*$|[\w\s*]+\(\*", re.S)


def parameters(text):
    """Name and parameters of each list of them: of functions declared or defined, of macros that define them, of types."""
    for found in NAMED.finditer(re.sub(r"\\\n", " \n", STRING.sub('""', COMMENT.sub("", text)))):
        listed, depth = [""], 0
        for c in found[2]:
            depth += (c in "([") - (c in ")]")
            listed = listed + [""] if c == "," and depth == 0 else listed[:-1] + [listed[-1] + c]
        listed = [part.strip() for part in listed if part.strip() not in ("", "...")]
        if listed and all(PARAMETER.match(part) and " " in part for part in listed):
            yield found[1], listed


@unittest.skipUnless((ROOT / ".git").exists(), "this is not a clone")
class Style(unittest.TestCase):
    def test_lengths(self):
        wrong = []
        for path in files("src/*.c", "src/*.h"):
            text = path.read_text()
            name = path.relative_to(ROOT)
            lines = text.splitlines()
            if len(lines) > FILE_LINES_MAX:
                wrong.append(f"{name}: {len(lines)} lines")
            wrong += [f"{name}:{i}: {len(line)} columns" for i, line in enumerate(lines, 1) if len(line) > COLUMNS_MAX]
            wrong += [f"{name}: {function} has {count} lines" for function, count in functions(text)
                      if count > FUNCTION_LINES_MAX]
        self.assertEqual(wrong, [])

    def test_assertions(self):
        """Invariants are stated where the code relies on them, and go on being stated as it grows."""
        texts = [path.read_text() for path in files("src/*.c", "src/*.h")]
        assertions = sum(len(re.findall(r"^\s*(?:if \(.*\) )?ASSERT\(", text, re.M)) for text in texts)
        lines = sum(text.count("\n") for text in texts)
        self.assertLessEqual(lines / assertions, LINES_PER_ASSERTION_MAX)

    def test_parameters(self):
        wrong = []
        for path in files("src/*.c", "src/*.h", "include/*.h"):
            name = str(path.relative_to(ROOT))
            wrong += [f"{name}: {function} has {len(listed)} parameters" for function, listed in parameters(path.read_text())
                      if len(listed) > PARAMETERS_MAX and CALLBACKS.get(name) != function]
        self.assertEqual(wrong, [])

    def test_words(self):
        wrong = []
        for path in files("src", "shaders", "std", "docs", "README.md", "ARCHITECTURE.md"):
            text = path.read_text()
            if path.suffix in (".c", ".h", ".def", ".comp", ".glsl", ".ptx"):
                parts = COMMENT.findall(text) + STRING.findall(COMMENT.sub("", text))
            else:
                parts = [text]
            wrong += [f"{path.relative_to(ROOT)}: {found[0]!r} in {part[:60]!r}" for part in parts
                      for found in BANNED.finditer(part)]
        self.assertEqual(wrong, [])

    def test_files_named_in_comments_exist(self):
        known = [str(path.relative_to(ROOT)) for path in files()]
        wrong = []
        for path in files("src", "shaders"):
            if path.suffix not in (".c", ".h", ".def", ".comp", ".glsl"):
                continue
            for comment in COMMENT.findall(path.read_text()):
                wrong += [f"{path.relative_to(ROOT)} names {name}" for name in FILE_NAME.findall(comment)
                          if not any(file == name or file.endswith("/" + name) for file in known)]
        self.assertEqual(sorted(set(wrong)), [])


if __name__ == "__main__":
    unittest.main()
