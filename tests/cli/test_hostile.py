"""Nothing that a script can contain crashes the process or hangs it."""
import unittest

from tl import run, run_code

HOSTILE = {
    "endless recursion": ("fn f(n) { f(n + 1) }\nf(0)", "error[depth]"),
    "mutual recursion": ("fn f(n) { g(n) }\nfn g(n) { f(n) }\nf(0)", "error[depth]"),
    "giant integer": ("let x = 99999999999999999999", "error[syntax]"),
    "giant shape": ("zeros([1000000000, 1000000000, 1000000000])", "error[shape]"),
    "too large for memory": ("zeros([1000000, 1000000])", "error[memory]"),
    "negative shape": ("zeros([-3])", "error"),
    "integer overflow": ("let x = 9223372036854775807\nx + 1", "error[overflow]"),
    "smallest by minus one": ("let x = -9223372036854775807 - 1\nx / -1", "error[overflow]"),
    "division by zero": ("1 / 0", "error[divide]"),
    "deep nesting": ("let x = " + "(" * 100000 + "1" + ")" * 100000, "error[syntax]"),
    "deep lists": ("let x = " + "[" * 100000, "error[syntax]"),
    "deep minus": ("let x = " + "-" * 100000 + "1", "error"),
    "deep blocks": ("{" * 100000, "error[syntax]"),
    "invalid utf-8": (b"let x = \xff\xfe", "error[syntax]"),
    "nul": (b"let x = 1\0", "error[syntax]"),
    "open string": ("let x = \"abc", "error[syntax]"),
    "open comment": ("/* /* */", "error[syntax]"),
    "giant repetition": ("let s = \"abc\" * 9000000000000000000", "error"),
    "giant arange": ("arange(9000000000000000000)", "error"),
    "giant power": ("2 ** 1000000", "error[overflow]"),
    "self-containing list": ("let a = list()\npush(a, a)\nprint(a)", None),
    "endless regex": ("match_regex(\"(a+)+$\", \"" + "a" * 40 + "b\")", None),
    "deep json": ("parse_json(\"[\" * 1000000)", "error"),
    "index of the smallest int": ("let x = ones([3])\nx[-9223372036854775807 - 1]", "error[index]"),
    "slice by zero": ("let x = ones([3])\nx[0:3:0]", "error"),
    "rank nine": ("zeros([1,1,1,1,1,1,1,1,1])", "error[shape]"),
    "drop at the end of a cycle of two": ("struct Q { a: any, t: Tensor }\nimpl Drop for Q { fn drop(self) { self.t = f(self.t) } }\n"
                                         "fn f(t) { t @ [[1.0, 2.0], [3.0, 4.0]] }\nlet l = list(none, none)\n"
                                         "l[0] = Q { a: l, t: ones([2]) }\nl[1] = Q { a: l[0], t: zeros([2]) }", None),
    "assert in drop": ("struct S { x: int }\nimpl Drop for S { fn drop(self) { panic(\"no\") } }\nlet s = S { x: 1 }\ns = none\nprint(1)", None),
}


class Hostile(unittest.TestCase):
    def test_none_crashes(self):
        for name, (code, error) in HOSTILE.items():
            with self.subTest(name):
                result = run_code(code, env={"TL_MEMORY_CHECK": "strict"}, timeout=60)
                self.assertIn(result.status, (0, 1), result.err[-2000:])
                self.assertNotIn("internal error", result.err)
                if error:
                    self.assertEqual(result.status, 1, result.err[-2000:])
                    self.assertIn(error, result.err[:20000])

    def test_sizes_that_the_check_computes(self):
        """Whatever numbers a program gives: sizes out of them may be negative, and larger than any integer."""
        numbers = ["-9223372036854775807", "9223372036854775807", "-4611686018427387904", "4611686018427387904", "-1", "0"]
        places = ["precompute_rope_cos(8, {})", "precompute_rope_cos({}, 2)", "zeros([{}])", "zeros([2, {}])", "arange({}, {})",
                  "ones([4])[{}:]", "ones([4])[:{}]", "ones([4])[::{}]", "reshape(ones([4]), [{}, 2])", "list(1)[{}]",
                  "conv2d(ones([1, 1, 4, 4]), ones([1, 1, 2, 2]), padding: {})", "max_pool2d(ones([1, 1, 4, 4]), {})",
                  "conv2d(ones([1, 1, 4, 4]), ones([1, 1, 2, 2]), dilation: {})", "ones([{} + {}])", "ones([{} - {}])",
                  "ones([{} * {}])", "eye({})", "one_hot([1], {})", "linspace(0.0, 1.0, {})", "cat(zeros([{}, 2]), zeros([{}, 2]))"]
        for number in numbers:
            calls = "".join(f"try {{ V = matmul({place.replace('{}', number)}, ones([3, {number}])) }} catch e {{ }}\n" for place in places)
            for words in (["check"], ["run"]):
                result = run(*words, "-", stdin=f"let V = none\n{calls}".encode(), timeout=60)
                self.assertIn(result.status, (0, 1), result.err[-2000:])
                self.assertNotIn("internal error", result.err)

    def test_recursion_to_ten_thousand(self):
        result = run_code("fn f(n) { if n == 0 { 0 } else { 1 + f(n - 1) } }\nprint(f(10000))")
        self.assertEqual(result.out, "10000\n", result.err[-2000:])

    def test_long_lines(self):
        result = run_code("let x = " + " + ".join(["1"] * 4000) + "\nprint(x)")
        self.assertEqual(result.out, "4000\n", result.err[-2000:])
        result = run_code("let x = \"" + "a" * 1000000 + "\"\nprint(len(x))")
        self.assertEqual(result.out, "1000000\n", result.err[-2000:])

    def test_twenty_errors_at_most(self):
        result = run_code("let = 1\n" * 100)
        self.assertEqual(result.status, 1)
        self.assertLessEqual(result.err.count("error["), 20)
        self.assertGreaterEqual(result.err.count("error["), 10)


if __name__ == "__main__":
    unittest.main()
