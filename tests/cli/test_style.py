"""Style as numbers: lengths, columns, words, names of files in comments."""
import re
import shutil
import subprocess
import unittest

from tl import ROOT

FUNCTION_LINES_MAX, FILE_LINES_MAX, COLUMNS_MAX, PARAMETERS_MAX = 70, 620, 100, 5
ARCHITECTURE_LINES_MAX = 50  # of a page of std/models
LINES_PER_ASSERTION_MAX = 100
CLANG_FORMAT = 14  # others lay out a few things otherwise
# Words of CONTRIBUTING's table that are not to be used; "there is no" is plain English.
BANNED = re.compile(r"\bbeside\b|\bturns? of (?:a|the|its) loop\b|\btruths?\b|\bwhole numbers?\b|\bwhich tl has not\b"
                    r"|(?<!here )\bis no (?!longer\b|better\b|worse\b|larger\b|smaller\b|more\b|less\b|other\b)[a-z]", re.I)
# Parameters whose number a library sets: functions that it calls.
CALLBACKS = {"src/serve/http.c": "on_request", "src/library/builtin_sql.c": "note_function"}
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
NAMED = re.compile(r"(\b\w+(?:##\w+)*(?:\(\w[\w#]*\))?|\(\*(?:const )?\w*(?:\[\w*\])?\))\(((?:[^(){};]|\((?:[^(){};]|\([^(){};]*\))*\))*)\)")
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


def plain(text):
    """C without comments, the insides of strings, and lines of the preprocessor."""
    text = re.sub(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', '""', COMMENT.sub("", text))
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M)


HEAD = re.compile(r"(?:__attribute__\(\(\w+\)\)\s*)?(static )?[A-Za-z_][\w\s*]*?\b(\w+)\s*\(")


def named_functions(text):
    """Each function of a C file: its name, whether it is static, whether it is defined there."""
    text, depth, start = plain(text), 0, 0
    for found in re.finditer(r"[{};]", text):
        if found[0] == "{":
            if depth == 0:
                head = text[start:found.start()]
            depth += 1
        elif found[0] == "}":
            depth -= 1
            if depth == 0 and head.rstrip().endswith(")"):
                name = HEAD.match(head.strip())
                start = found.end()
                if name:
                    yield name[2], bool(name[1]), True
        elif depth == 0:
            head = text[start:found.start()].strip()
            start = found.end()
            name = HEAD.match(head)
            if name and not head.startswith("typedef") and "=" not in head.split("(")[0]:
                yield name[2], bool(name[1]), False


def is_declared_well(file, header):
    """A file's functions are in its own header; or in that of the file that it is a part of by its name
    (learn_save.c: learn.h), of its folder (value/value.h), or in one of its folder that belongs to no file (state.h).
    Or what a folder calls of those above it: its upper.h."""
    if header.stem == "upper":
        return header.parent != file.parent
    if header.parent != file.parent:
        return False
    if header.stem in (file.stem, header.parent.name) or not header.with_suffix(".c").exists():
        return True
    return not file.with_suffix(".h").exists() and file.stem.startswith(header.stem + "_")


@unittest.skipUnless((ROOT / ".git").exists(), "this is not a clone")
class Functions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.defined, cls.static, cls.headers = {}, [], {}  # name: file; (name, file); name: headers
        # The loops in simd/ are compiled once an instruction set; their files include each other's text.
        for path in files("src/*.c", "src/*.h"):
            if path.parent.name == "simd":
                continue
            for name, static, has_body in named_functions(path.read_text()):
                if path.suffix == ".h":
                    cls.headers.setdefault(name, set()).add(path)
                elif static:
                    cls.static.append((name, path))
                elif has_body:
                    cls.defined[name] = path

    def test_are_declared_in_the_header_of_their_file(self):
        self.assertGreater(len(self.defined), 2000, "no functions were read")
        wrong = [f"{name} of {file.relative_to(ROOT)} is declared in {header.relative_to(ROOT)}"
                 for name, file in self.defined.items() for header in self.headers.get(name, ())
                 if not is_declared_well(file, header)]
        self.assertEqual(sorted(wrong), [])

    def test_no_static_one_has_the_name_of_another(self):
        wrong = {f"{name} in {file.relative_to(ROOT)} is also declared in {header.relative_to(ROOT)}"
                 for name, file in self.static for header in self.headers.get(name, ())
                 if header != file.with_suffix(".h")}
        self.assertEqual(sorted(wrong), [])

    def test_each_is_used_beyond_its_file(self):
        """Where a function with a declaration is named: another file, its header's inline functions and macros, a test."""
        words = {}
        for path in files("src", "tests", "include", "python"):
            if path.suffix in (".c", ".h", ".def"):
                for word in re.findall(r"\b[A-Za-z_]\w+\b", STRING.sub("", COMMENT.sub("", path.read_text()))):
                    words.setdefault(word, []).append(path)
        wrong = [f"{name} of {file.relative_to(ROOT)}: let it be static, or go" for name, file in self.defined.items()
                 if self.headers.get(name) and not [path for path in words[name] if path != file][len(self.headers[name]):]]
        self.assertEqual(sorted(wrong), [])
        gone = [f"{name} in {header.relative_to(ROOT)}" for name, headers in self.headers.items() for header in headers
                if name not in self.defined and len(words[name]) == 1]
        self.assertEqual(sorted(gone), [], "declared, but defined nowhere")


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

    def test_what_a_scope_ends_is_used_in_it(self):
        """clang refuses a variable that nothing reads, also where its clean-up would have an effect; gcc does not."""
        wrong, seen = [], 0
        for path in files("src/*.c"):
            for found in re.finditer(r"^(?!typedef|#)[A-Za-z_][^;{}=]*?\b(\w+)\(([^;{}]*)\) \{\n(.*?)^\}", path.read_text(), re.M | re.S):
                for name in re.findall(r"\bSCOPED_(?:VALUE|TENSOR|TEXT)\((\w+)\)", found[3]):
                    seen += 1
                    if len(re.findall(rf"\b{name}\b", found[3])) < 2:
                        wrong.append(f"{path.relative_to(ROOT)}: {found[1]}: {name}")
        self.assertGreater(seen, 500)
        self.assertEqual(wrong, [])

    def test_architectures_stay_pages(self):
        lines = {path.name: path.read_text().count("\n") for path in files("std/models/*.tl")}
        self.assertGreater(len(lines), 10)
        self.assertEqual({name: count for name, count in lines.items() if count > ARCHITECTURE_LINES_MAX}, {})

    def test_format(self):
        """As `make format` leaves it."""
        program = shutil.which("clang-format")
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if program else "none"
        if f"version {CLANG_FORMAT}." not in version:
            self.skipTest(f"clang-format {CLANG_FORMAT} is wanted, here is {version.strip()}")
        result = subprocess.run([program, "--dry-run", "-Werror", *files("*.c", "*.h")], cwd=ROOT, capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr[:2000]), (0, ""))

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
