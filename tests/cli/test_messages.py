"""Messages: cases that show all of their words, and proof that every message has one.

tests/messages/*.txt are programs (lines that begin with "> ") and, below each, all that tl writes on
standard error for it; "$ NAME=VALUE" is a variable of its environment. After a deliberate change of
words `python3 tests/cli/test_messages.py --write` writes them anew; read the difference.

Every message of the program stands, whole, in some test's expectation: the second case here

lists the texts given to the functions that make messages in src/, makes a regular expression of each
(a conversion such as %s fits anything) and looks for it in the expected texts of tests/: these files,
directives of scripts, strings of Python and C tests. A new message without a test turns it red.
"""
import ast
import concurrent.futures
import functools
import os
import re
import sys
import unittest

from tl import ROOT, run_code

# Functions whose string arguments, and fields whose string values, are words for users.
MAKER = re.compile(r"(?:[a-z_]*(?:fail|report|warn|complain|reject|refuse|usage)[a-z_]*|FAIL|mismatch)$")
FIELD = re.compile(r"\.(?:message|help|label|note)$")
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|//[^\n]*|/\*.*?\*/|[A-Za-z_][A-Za-z0-9_]*|\S', re.S)
CONVERSION = re.compile(r"%[-+ #0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh|h|ll|l|z|j|t)?[diouxXeEfgGcsp]")

# Messages that no test provokes, each with its reason.
SYSTEM = "the operating system or a library fails in a way that a test cannot bring about"
GUARD = "a guard: what stands above it lets nothing through that it would refuse"
SIZE = "it needs more memory than a test may take"
UNREACHABLE = {
    "most of the machine's memory": SIZE,
    "cannot map %s into memory: %s": SYSTEM,
    "cannot write: %s": SYSTEM,
    "%s refused %.2f MB": SYSTEM,
    "the system refused a thread with a stack of %zu MB: %s": SYSTEM,
    "cannot draw: %s": SYSTEM,
    "the other ranks cannot be reached: %s": SYSTEM,
    "cannot read back what a limit has moved out: %s": SYSTEM,
    "the encoder has failed": SYSTEM,
    "it is incomplete": "for whoever writes a transport wrongly",
    "cannot confine files to %s: %s": SYSTEM,
    "--sandbox: %s": SYSTEM,
    "--sandbox: this system cannot confine a process to a folder (Landlock, Linux 5.13)": SYSTEM,
    "--host-limit: %s": SYSTEM,
    "cannot find this program: %s": SYSTEM,
    "cannot make a folder in /tmp: %s": SYSTEM,
    "the system refused a thread": SYSTEM,
    "cannot make a pipe: %s": SYSTEM,
    "cannot start %s: %s": SYSTEM,
    "cannot make a picture of %d by %d: %s": SYSTEM,
    "%s: %sthe iteration does not converge": SYSTEM,
    "the tokenizer cannot cut this text: %s": SYSTEM,
    "the tokenizer cannot normalise this text: %s": SYSTEM,
    "%s: libpng has no memory": SYSTEM,
    "libpng has no memory": SYSTEM,
    "libpng: %s": SYSTEM,
    "%s: libjpeg has no memory": SYSTEM,
    "libjpeg has no memory": SYSTEM,
    "libjpeg: %s": SYSTEM,
    "libwebp could not write the picture": SYSTEM,
    "%s has %d channels at %d frames a second": GUARD,
    "%s: there is not enough memory to read its %zu bytes": SIZE,
    "there is not enough memory for `%.80s`": SIZE,
    "this tl was built without load_onnx": "it depends on how tl was built",
    "build it where libprotobuf-c-dev is installed": "it depends on how tl was built",
    "%s: there is not enough memory for %lld frames": SIZE,
    "load_audio: there is not enough memory for %lld frames": SIZE,
    "read_sql: there is not enough memory for a text": SIZE,
    "%s: there is not enough memory for %lld x %lld pixels": SIZE,
    'TL_ISA is "%s", which this machine does not have': "it depends on the machine",
    "the widest that it has is %s; unset TL_ISA to use it": "it depends on the machine",
    "use the device cpu, or auto": "it depends on how tl was built",
    "%s: %s is on %s and %s is on %s": "it needs a second device; tests/cli/test_vulkan.py",
    'move one of them: x.to("%s")': "it needs a second device; tests/cli/test_vulkan.py",
    'signature "%s": expected %s at "%s"': "for whoever writes a row of the catalog wrongly",
    "this is a mistake of tl fmt": "for whoever changes the formatter wrongly",
    "making it anew costs less": "never shown: evaluation from the beginning takes over",
    "the search ends here": "never shown: it ends a silent second run of an epoch",
    "cannot load %s: %zu bytes of source are too many, %u are left": SIZE,
    "%s: a matrix of %lld x %lld is too large for LAPACK": SIZE,
    "%s has %zu values; at most %d are possible": GUARD,
    "a KV cache cannot hold that many rows": SIZE,
    "%s: %s is too long along dimension %d": SIZE,
    "%s: from %lld to %lld are too many numbers": GUARD,
    "concat: the sizes along dimension %d add up to more than 64 bits": GUARD,
    "%s: the dilation is too large": GUARD,
    "%s of no elements: there is no index to give": GUARD,
    "quantised tensors are read, not computed; use a float dtype": GUARD,
    "%s takes only whole rows of %s, and gives floats": GUARD,
    "%s: %s cannot be computed with; convert it to a float type first": GUARD,
    "%s cannot write quantised numbers": GUARD,
    "copying": GUARD,
    "a mask of rank 0 cannot index a tensor; use if or where": GUARD,
    "a diagonal needs two different dimensions, but both are %d": GUARD,
    "something with elements": GUARD,
    "integers in one dimension": GUARD,
    "the pattern does not fit %s": GUARD,
    "%s: text is not valid UTF-8": GUARD,
    "metadata \"%s\": %lld does not fit into %zu bits": GUARD,
    "`%.80s` is not a name for a tensor in a file": GUARD,
    "`%.80s` is not a name for a tensor in a .npz file: %s": GUARD,
    "%s has no name or no size": GUARD,
    "this name cannot be renamed": GUARD,
    "%s: its bytes end too early": GUARD,
    "a %s shows one series of values, not %zu": GUARD,
    "%s is longer than it says": GUARD,
    "field `%s` has no value yet": GUARD,
    "einsum: letter '%c' is both %lld and %lld in %s": GUARD,
}
# Every kernel of the cpu ends so; what chooses dtypes never lets one come to it.
NO_KERNEL = re.compile(r"%s has no (gradient )?kernel on the cpu for ")
SKIPPED_FOLDERS = ("src/device/vulkan/",)  # its tests need a driver; tests/cli/test_vulkan.py


def unescape(literal):
    return ast.literal_eval("b" + re.sub(r"[^\x00-\x7f]", lambda m: "".join(f"\\x{b:02x}" for b in m[0].encode(errors="surrogatepass")),
                                         re.sub(r"(?<!\\)((?:\\\\)*)\\u([0-9a-fA-F]{4})",
                                                lambda m: m[1] + chr(int(m[2], 16)), literal))).decode(errors="replace")


def tokens_of(text):
    return [m for m in TOKEN.finditer(text) if not m[0].startswith(("//", "/*"))]


def strings_until(tokens, at, enders):
    """The string literals from tokens[at] on, neighbours joined, up to an ender of this depth."""
    found, depth, previous_string = [], 0, False
    while at < len(tokens):
        word = tokens[at][0]
        if depth == 0 and word in enders:
            break
        depth += (word in "([{") - (word in ")]}")
        if found and previous_string and re.match(r"PRI[a-z]+\d+$", word):
            found[-1] = (found[-1][0], found[-1][1] + "lld")
            at += 1
            continue
        if word.startswith('"'):
            line = tokens[at].string.count("\n", 0, tokens[at].start()) + 1
            text = unescape(word)
            if previous_string:
                found[-1] = (found[-1][0], found[-1][1] + text)
            else:
                found.append((line, text))
        previous_string = word.startswith('"')
        at += 1
    return found


def messages_of(path):
    tokens = tokens_of(path.read_text())
    for at in range(len(tokens) - 2):
        word, after = tokens[at][0], tokens[at + 1][0]
        if MAKER.match(word) and after == "(":
            yield from strings_until(tokens, at + 2, (")",))
        elif word == "." and re.match(r"(message|help|label|note)$", after) and tokens[at + 2][0] == "=":
            yield from strings_until(tokens, at + 3, (",", "}", ";", ")"))


def letters(text):
    return len(re.findall(r"[A-Za-z]", CONVERSION.sub("", text)))


# What many messages begin with, and their tests write once.
BEGINNINGS = ("line %d of the template: ", "%s: tensor `%.80s` ", "%s: ")


def is_expected(message):
    """Whether some text holds all of the message, anything in place of its conversions."""
    for beginning in BEGINNINGS:
        message = message.removeprefix(beginning)
    parts = [part.replace("\0", "%") for part in CONVERSION.split(message.replace("%%", "\0"))]
    longest = max(parts, key=len)
    whole = re.compile(r"[\s\S]*?".join(map(re.escape, parts)))
    return any(longest in text and whole.search(text) for text in expected_texts())


def texts_of_script(path):
    for line in path.read_text(errors="replace").splitlines():
        found = re.search(r"//\s*expect(?: error| stderr)?:[ ]?(.*)$", line)
        if found:
            yield found[1]


def texts_of_python(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            yield node.value.decode(errors="replace")


def texts_of_c(path):
    return (text for _, text in strings_until(tokens_of(path.read_text()), 0, ()))


def texts_of_cases(path):
    return (case.expected for case in cases_of(path))


def texts_of_diagnostics(path):
    return path.read_text().splitlines()


@functools.cache
def expected_texts():
    texts = []
    for path in sorted((ROOT / "tests").rglob("*")):
        reader = {".tl": texts_of_script, ".py": texts_of_python, ".c": texts_of_c,
                  ".txt": texts_of_cases, ".expected": texts_of_diagnostics}.get(path.suffix)
        if reader and path.name != "test_messages.py":
            texts += reader(path)
    return set(texts)


def all_messages():
    for path in sorted((ROOT / "src").rglob("*.c")):
        name = str(path.relative_to(ROOT))
        if name.startswith(SKIPPED_FOLDERS):
            continue
        for line, text in messages_of(path):
            if letters(text) >= 4:
                yield name, line, text


class Case:
    """A program and what it writes on standard error."""

    def __init__(self, path, line, head, expected):
        self.path, self.line, self.head, self.expected = path, line, head, expected
        self.code = "\n".join(text[2:] for text in head if text.startswith("> "))
        self.environment = dict(text[2:].split("=", 1) for text in head if text.startswith("$ "))

    def run(self):
        return run_code(self.code, env={"TL_MEMORY_CHECK": "0", **self.environment}).err.rstrip("\n")


def cases_of(path):
    head, expected, begin = [], [], 0
    for number, line in enumerate([*path.read_text().splitlines(), "> "], 1):
        if line.startswith(("> ", "$ ")) and (expected or number == 1 or not head):
            if head:
                yield Case(path, begin, head, "\n".join(expected).rstrip("\n"))
            head, expected, begin = [line], [], number
        elif line.startswith(("> ", "$ ")):
            head.append(line)
        elif not line.startswith("#") or expected:
            expected.append(line)


def run_all(cases):
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(zip(cases, pool.map(Case.run, cases)))


def write_cases():
    for path in sorted((ROOT / "tests" / "messages").glob("*.txt")):
        lines = path.read_text().splitlines()
        title = lines[0] + "\n\n" if lines and lines[0].startswith("#") else ""
        outcomes = run_all(list(cases_of(path)))
        path.write_text(title + "\n".join("\n".join(case.head) + "\n" + err + "\n" for case, err in outcomes))


class Messages(unittest.TestCase):
    def test_whole_texts(self):
        for path in sorted((ROOT / "tests" / "messages").glob("*.txt")):
            for case, err in run_all(list(cases_of(path))):
                with self.subTest(f"{path.name}:{case.line}"):
                    self.assertEqual(err, case.expected)

    def test_every_message_is_tested(self):
        missing = [f"{name}:{line}: {text!r}" for name, line, text in dict.fromkeys(all_messages())
                   if text not in UNREACHABLE and not NO_KERNEL.match(text) and not is_expected(text)]
        self.assertEqual(missing, [], f"{len(missing)} messages without a test:\n" + "\n".join(missing))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write_cases()
    else:
        unittest.main()
