"""Programs of absurd size: success or a clean error, in bounded time."""
import time
import unittest

from tl import run_code

MILLION = 1000000
TIME_MAX_S = 60.0  # generous: sanitizers and busy machines; unloaded each takes well under a second

SUCCEEDS = {
    "a sum of 4 000": ("let x = " + "1 + " * 3999 + "1\nprint(x)", "4000\n"),
    "a string of one million bytes": ('let s = "' + "é" * (MILLION // 2) + '"\nprint(len(s))', "500000\n"),
    "a raw string of one million bytes": ('print(len(r"' + "\\" * MILLION + '"))', "1000000\n"),
    "an f-string of many placeholders": ('let x = 1\nprint(len(f"' + "{x}" * 50000 + '"))', "50000\n"),
    "a comment of one million bytes": ("/*" + "x" * MILLION + "*/ print(1) // " + "y" * MILLION, "1\n"),
    "nested comments": ("/*" * 100000 + "*/" * 100000 + "print(1)", "1\n"),
    "a list of 100 000 numbers": ("let x = [" + "1, " * 100000 + "]\nprint(len(x), sum(x))", "100000 100000\n"),
    "a list of 100 000 strings": ("let x = [" + '"a", ' * 100000 + "]\nprint(len(x))", "100000\n"),
    "a list of 100 000 variables": ("let n = 2\nlet x = [" + "n, " * 100000 + "]\nprint(sum(x))", "200000\n"),
    "a tuple of 100 000": ("let x = (" + "none, " * 100000 + ")\nprint(len(x))", "100000\n"),
    "a dictionary of 100 000": ("let d = {" + ", ".join(f"{i}: {i}" for i in range(100000)) +
                                "}\nprint(len(d), d[99999])", "100000 99999\n"),
    "a match of 10 000 arms": ("fn f(x) {\n    match x {\n" +
                               "".join(f"        {i} => {i + 1},\n" for i in range(10000)) +
                               "        _ => -1,\n    }\n}\nprint(f(9999), f(-5))", "10000 -1\n"),
    "a pattern of 10 000 alternatives": ("print(match 9999 { " + " | ".join(map(str, range(10000))) +
                                         " => 1, _ => 2 })", "1\n"),
    "10 000 functions": ("".join(f"fn f{i}(x) {{ x + {i} }}\n" for i in range(10000)) + "print(f9999(1))", "10000\n"),
    "10 000 functions that call each other": (
        "fn f0(x) { x }\n" + "".join(f"fn f{i}(x) {{ f{i - 1}(x + 1) }}\n" for i in range(1, 10000)) +
        "print(f9999(0))", "9999\n"),
    "10 000 structs": ("".join(f"struct S{i} {{ x: int }}\n" for i in range(10000)) + "print(S9999 { x: 1 })",
                       "S9999 { x: 1 }\n"),
    "100 000 variables": ("".join(f"let v{i} = {i}\n" for i in range(100000)) + "print(v99999)", "99999\n"),
    "100 000 statements on one line": ("let x = 0;" + "x += 1;" * 100000 + "print(x)", "100000\n"),
    "100 000 blank lines": ("\n" * 100000 + "print(1)", "1\n"),
    "an else-if chain of 4 000": ("let x = -1\nif x == 0 { print(0) }" +
                                   "".join(f" else if x == {i} {{ print({i}) }}" for i in range(1, 4000)) +
                                   " else { print(\"none\") }", "none\n"),
    "a call of 10 000 arguments": ("print(len(list(" + "1, " * 10000 + ")))", "10000\n"),
    "a function of 1 000 parameters": ("fn f(" + ", ".join(f"a{i}" for i in range(1000)) + ") { a999 }\nprint(f(" +
                                       ", ".join(map(str, range(1000))) + "))", "999\n"),
    "a struct of 1 000 fields": ("struct S { " + ", ".join(f"f{i}: int = {i}" for i in range(1000)) +
                                 " }\nprint(S {}.f999)", "999\n"),
    "a name of 100 000 letters": ("let " + "a" * 100000 + " = 1\nprint(" + "a" * 100000 + ")", "1\n"),
    "a chain of 10 000 methods": ("print(5" + ".max(1)" * 1000 + ")", "5\n"),
    "a string of 100 000 lines": ('print(len("' + "a\n" * 100000 + '"))', "200000\n"),
    "100 000 list elements pushed": ("let l = []\nfor i in 0..100000 { l.push(i) }\nprint(len(l), l[-1])",
                                     "100000 99999\n"),
    "a list nested 100 000 deep": ("let l = list()\nfor i in 0..100000 { l = list(l) }\nprint(len(l))", "1\n"),
    "a chain of 100 000 structs": ("struct N { next: any }\nlet n = none\nfor i in 0..100000 { n = N { next: n } }\n"
                                   "n = none\nprint(\"freed\")", "freed\n"),
    "a long number": ("print(0." + "1" * 100000 + " > 0.1)", "true\n"),
}

FAILS = {
    "nested parentheses": ("let x = " + "(" * 100000 + "1" + ")" * 100000, "nested too deeply"),
    "nested brackets": ("let x = " + "[" * 100000 + "1" + "]" * 100000, "nested too deeply"),
    "open brackets": ("let x = " + "[" * 100000, "nested too deeply"),
    "nested blocks": ("{" * 100000 + "}" * 100000, "nested too deeply"),
    "nested dictionaries": ("let x = " + '{"a": ' * 100000 + "1" + "}" * 100000, "nested too deeply"),
    "nested calls": ("print(" + "abs(" * 100000 + "1" + ")" * 100000 + ")", "nested too deeply"),
    "nested indexes": ("let x = " + "a[" * 100000 + "0" + "]" * 100000, "nested too deeply"),
    "nested lambdas": ("let f = " + "fn() { " * 100000 + "1" + " }" * 100000, "nested too deeply"),
    "nested ifs": ("if true { " * 100000 + "1" + " }" * 100000, "nested too deeply"),
    "nested f-strings": ("let x = " + 'f"{' * 5000 + "1" + '}"' * 5000, "nested too deeply"),
    "nested patterns": ("match 1 { " + "(" * 100000 + "x" + ")" * 100000 + " => 1 }", "nested too deeply"),
    "nested types": ("let x: " + "list<" * 100000 + "int" + ">" * 100000 + " = 1", "nested too deeply"),
    "nots": ("let x = " + "not " * 100000 + "true", "nested too deeply"),
    "minuses": ("let x = " + "-" * 100000 + "1", "nested too deeply"),
    "powers": ("let x = " + "1 ** " * 100000 + "1", "nested too deeply"),
    "a sum of one million bytes": ("let x = " + "1 + " * 249000 + "1\nprint(x)", "too long a chain: more than 5000"),
    "an else-if chain of 10 000": ("if false { 1 }" + " else if false { 1 }" * 10000, "too long a chain: more than 5000"),
    "closers alone": (")" * 100000, "error[syntax]"),
    "quotes": ('"' * 99999, "error[syntax]"),
    "one million different characters": ("@#$%^&*" * 140000, "error[syntax]"),
    "endless recursion": ("fn f(n) { f(n + 1) + 1 }\nf(0)", "nested too deeply"),
    "endless recursion of lambdas": ("let f = fn(g, n) { g(g, n + 1) }\nf(f, 0)", "nested too deeply"),
    "endless recursion of methods": ("struct S { x: int }\nimpl S { fn m(self) { self.m() } }\nS { x: 1 }.m()",
                                     "nested too deeply"),
    "endless recursion in map": ("fn f(x) { map(f, list(x)) }\nf(1)", "nested too deeply"),
    "comparison of deep lists": ("let a = list()\nlet b = list()\nfor i in 0..100000 {\n    a = list(a)\n"
                                 "    b = list(b)\n}\nprint(a == b)", "nested more than"),
    "JSON of a deep list": ("let a = list()\nfor i in 0..100000 { a = list(a) }\nto_json(a)", "deep"),
}


class Limits(unittest.TestCase):
    def check(self, code):
        start = time.monotonic()
        result = run_code(code, env={"TL_MEMORY_CHECK": "strict"}, timeout=120)
        self.assertLess(time.monotonic() - start, TIME_MAX_S)
        self.assertIn(result.status, (0, 1), result.err[-2000:])
        self.assertNotIn("internal error", result.err)
        self.assertLess(len(result.err), 100000)  # not a megabyte of the line itself
        return result

    def test_success(self):
        for name, (code, expected) in SUCCEEDS.items():
            with self.subTest(name):
                result = self.check(code)
                self.assertEqual(result.out, expected, result.err[:2000])

    def test_clean_errors(self):
        for name, (code, words) in FAILS.items():
            with self.subTest(name):
                result = self.check(code)
                self.assertEqual(result.status, 1)
                self.assertIn(words, result.err)

    def test_endless_recursion_in_drop(self):
        """The error inside a drop is reported and does not stop the program."""
        result = self.check("struct S { x: int }\nimpl Drop for S { fn drop(self) { S { x: 1 } } }\n"
                            "S { x: 1 }\nprint(1)")
        self.assertEqual((result.status, result.out), (0, "1\n"))
        self.assertIn("error[depth]: in drop of S: the calls are nested too deeply", result.err)


if __name__ == "__main__":
    unittest.main()
