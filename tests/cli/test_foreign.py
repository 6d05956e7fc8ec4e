"""Words and forms of other languages: each is accepted, or the error says how its meaning is written here."""
import re
import unittest

from tl import ROOT, run_code

# How a word of each kind of row in foreign.def comes to be seen.
PLACES = {"NAME": ["print({})"],
          "MEMBER": ["let x = list(1)\nx.{}()", "let x = \"text\"\nprint(x.{})", "let x = zeros(2)\nx.{}()",
                     "let x = zeros(2)\nprint(x.{})", "fn f(x) {{ x.{}(1) }}\nf((1, 2))"],
          "START": ["{} b", "{} \"b\"", "{} (b) {{ }}"],
          "BEFORE": ["let a = {} b"],
          "BEHIND": ["let a = 1 {} 2"]}
FORMS = {
    "let f = lambda: 3": "a function without a name is written fn(x) { x * 2 }",
    "let f = function(x) { return x }": "a function without a name is written fn(x) { x * 2 }",
    "print(map(list(1), function(x) { return (x) }))": "a function without a name is written fn(x) { x * 2 }",
    "let f = x => x * 2": "a function without a name is written fn(x) { x * 2 }",
    "let f = |x| x * 2": "a function value is written fn(x) { ... }",
    "def f(x): return x": "did you mean `fn`?",
    "function f(x) { x }": "did you mean `fn`?",
    "puts \"x\"": "a call is written print(...)",
    "print \"x\"": "a call is written print(...)",
    "print(lambda x: x)": "a function without a name is written fn(x) { x * 2 }",
    "print(7 mod 2)": "`%` is the remainder",
    "float x = 1.0": "a variable is declared by let name = value",
    "float 3": "a call is written float(...)",
    "x: int = 1": "a variable with a type is declared by let name: type = value",
    "let x := 1": "a variable is declared by let name = value",
    "let a, b = 1, 2": "several are declared by let (a, b) = (x, y)",
    "print(1 === 1)": "`==` and `!=` compare values",
    "print(1 !== 1)": "`==` and `!=` compare values",
    "print(1 ~= 1)": "`!=` says that two differ",
    "print(1 <> 1)": "`!=` says that two differ",
    "let x = 1\nx++\nprint(x)": "x += 1 adds one to x",
    "let x = 1\nx--\nprint(x)": "x -= 1 takes one from x",
    "let x = 1\nx--": "x -= 1 takes one from x",
    "print(\"a\" .. \"b\")": "strings are joined by `+`",
    "let f = fn(a) { a .. 3 }\nf(\"a\")": "strings are joined by `+`",
    "print(\"%d\" % 3)": "values are put into text by f\"{x}\"",
    "relation P(a)\nQ(X) :- P(X)": "a rule is written with `<-`",
    "println!(\"x\")": "macros are not supported: a call is written name(...)",
    "let x = none\nprint(x ?? 1)": "what stands in for none is written if x == none { y } else { x }",
    "let x = none\nprint(x?.y)": "what stands in for none is written if x == none { y } else { x }",
    "print(true ? 1 : 2)": "a choice is written if c { a } else { b }",
    "let x = true ? 1 : 2": "a choice is written if c { a } else { b }",
    "print(1 if true else 2)": "a choice is written if c { a } else { b }",
    "if true then print(1) end": "statements that belong together stand in braces",
    "if (true) print(1)": "statements that belong together stand in braces",
    "if true: print(1)": "statements that belong together stand in braces",
    "while true do break end": "statements that belong together stand in braces",
    "for i in range(3): print(i)": "statements that belong together stand in braces",
    "for (int i = 0; i < 3; i++) { print(i) }": "a loop that counts is written for i in 0..n { ... }",
    "for (let i = 0; i < 3; i++) { print(i) }": "a loop that counts is written for i in 0..n { ... }",
    "for (i = 0; i < 3; i++) { print(i) }": "a loop that counts is written for i in 0..n { ... }",
    "for i = 1, 3 do print(i) end": "a loop that counts is written for i in 0..n { ... }",
    "for a, b, c in list((1, 2, 3)) { print(a) }": "a tuple of more than two is taken apart by for (a, b, c) in items { ... }",
    "let s = [a for a, b, c in list((1, 2, 3))]": "a tuple of more than two is taken apart by for (a, b, c) in items { ... }",
    "for (x in list(1)) { print(x) }": "a loop is written for x in items { ... }",
    "for (x of list(1)) { print(x) }": "a loop is written for x in items { ... }",
    "for x of list(1) { print(x) }": "a loop is written for x in items { ... }",
    "try { print(1) } except e { print(e) }": "write try { ... } catch e { ... }",
    "struct A { x: int }\nlet a = A { 3 }": "the fields of a struct have names, as in { x: value }",
    "struct A { x: int }\nlet a = A { x = 3 }": "each field is written with its value, as in { x: x }",
    "struct A { x: int }\nlet a = A { x: 3 }\nlet b = A { ..a }":
        "a literal gives every field that has no default; write them out, as in x: p.x",
    "struct A { int x }": "a field is written name: type",
    "-- says what comes next": "a comment begins with `//`",
    "# says what comes next": "a comment begins with `//`",
}
ACCEPTED = {
    "let x = true\nprint(!x, not x, true and false, true && false, false or true, false || true)":
        "false false false false true true",
    "print(2 ** 3, f\"a {1}\", 3 in list(3), \"b\" not in {\"a\": 1})": "8 a 1 true true",
    "let x = 3\nx **= 2\nprint(x)": "9",
    "let x = 3\nprint(--x, 5 - -x, 5--x)": "3 8 8",
    "let a = zeros(2)\nprint(a.shape(), a.shape, a.numel(), a.T)": "[2] [2] 2 [0. 0.]",
    "fn f() { let s = 0\n for i, x in enumerate(list(4, 5)) { s += i * x }\n s }\nprint(f())": "5",
}


def rows():
    """(kind, word, help) of foreign.def."""
    text = (ROOT / "src" / "catalog" / "foreign.def").read_text()
    shared = dict(re.findall(r"^#define (\w+) (\".*\")$", text, re.M))
    for kind, word, expression in re.findall(r"^([A-Z]+)\((\w+), (.*)\)$", text, re.M):
        expression = re.sub(r"HERE\((.*)\)", r'"here this is written `" \1 "`"', expression)
        parts = [shared.get(part, part)[1:-1] for part in re.findall(r'"(?:[^"\\]|\\.)*"|\w+', expression)]
        yield kind, word, "".join(parts).replace('\\"', '"')


class Foreign(unittest.TestCase):
    def test_every_row_is_said(self):
        found = list(rows())
        self.assertGreater(len(found), 100)
        self.assertEqual({kind for kind, _, _ in found}, set(PLACES))
        for kind, word, wanted in found:
            # A member may be one of a string, say, and none of a list.
            said = any(f"= help: {wanted}\n" in run_code(form.format(word)).err for form in PLACES[kind])
            with self.subTest(kind=kind, word=word):
                self.assertTrue(said, wanted)

    def test_forms(self):
        for program, wanted in FORMS.items():
            result = run_code(program)
            with self.subTest(program=program):
                self.assertNotEqual(result.status, 0)
                self.assertIn(f"= help: {wanted}\n", result.err)

    def test_what_is_the_same_here(self):
        for program, printed in ACCEPTED.items():
            result = run_code(program)
            with self.subTest(program=program):
                self.assertEqual((result.out.strip(), result.err), (printed, ""))


if __name__ == "__main__":
    unittest.main()
