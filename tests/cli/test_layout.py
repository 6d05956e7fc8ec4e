"""Sources as editors of all kinds leave them: what the formatter would tidy away still runs."""
import unittest

from tl import run, run_code

LAYOUTS = {
    "byte order mark and CRLF": (
        b"\xef\xbb\xbflet x = 1 +\r\n    2\r\nif x == 3 {\r\n    print(x)\r\n}\r\n", "3\n"),
    "CRLF inside a string is a newline": (b'print(len("a\r\nb"))\r\n', "3\n"),
    "no newline at the end of a comment": ("print(1)\n// end", "1\n"),
    "no newline at the end": ("print(1)", "1\n"),
    "an open line at the end": ("let x = 1; print(x);", "1\n"),
    "nothing at all": ("", ""),
    "comments only": ("// nothing\n/* at /* all */ */", ""),
    "tabs and blank lines": ("\t\tlet x = 1\n\n\n\t print( x )\n", "1\n"),
    "a shebang before CRLF": ("#!/usr/bin/env tl\r\nprint(1)\r\n", "1\n"),
    "an arrow compares": ("let x = 3\nlet y = 1\nprint(x <-1, x<-y, (x) <- y)\nif x <-1 { print(0) }",
                          "false false false\n"),
    "semicolons everywhere": ("let a = 1;; let b = 2; ; print(a, b);", "1 2\n"),
    "a statement over many lines": ("let a = [1,\n\n2, // two\n\n3]\nprint(a\n.sum()\n+ 1)\n", "7\n"),
    "else below": ("if false { print(1) }\n\nelse\n{ print(2) }\n", "2\n"),
    "a call's bracket begins no line": ("let f = 3\n(f)\nprint(f)", "3\n"),
    "crowded": ("fn f(a,b=2){a+b}let", None),
    "one line": ("fn f(a,b=2){a+b};print(f(1),if f(1)==3{\"y\"}else{\"n\"})", "3 y\n"),
    "a dictionary over lines": ("let d = {\n\"a\"\n: 1\n,\n\n\"b\": 2\n}\nprint(d)", '{"a": 1, "b": 2}\n'),
    "an operator above": ("let x = 1 +\n// between\n\n2\nprint(x)", "3\n"),
    "match arms without commas": ("print(match 2 {\n1 => \"a\"\n2 => \"b\"\n_ => \"c\"\n})", "b\n"),
    "struct fields without commas": ("struct P {\nx: int\ny: int\n}\nprint(P { x: 1\ny: 2 })", None),
}


class Layout(unittest.TestCase):
    def test_every_layout(self):
        for name, (code, expected) in LAYOUTS.items():
            with self.subTest(name):
                result = run_code(code)
                if expected is None:
                    self.assertEqual(result.status, 1)
                    self.assertIn("error[syntax]", result.err)
                else:
                    self.assertEqual(result.out, expected, result.err)

    def test_standard_input_and_argument(self):
        self.assertEqual(run("-", stdin=b"print(1 + 1)").out, "2\n")
        self.assertEqual(run("-e", "print(args())", "a", "--b").out, '["a", "--b"]\n')
        self.assertEqual(run("-e", "1 +").status, 1)


if __name__ == "__main__":
    unittest.main()
