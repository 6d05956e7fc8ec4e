"""The REPL on a terminal: screens as a person sees them, at 80 and at 200 columns."""
import re
import unittest

from terminal import Terminal
from tl import ROOT

WIDTHS = (80, 200)
GREETING = ":help shows the commands"


class Screens(unittest.TestCase):
    def open(self, columns, **more):
        terminal = Terminal("repl", columns=columns, **more)
        self.addCleanup(terminal.close)
        return terminal

    def assert_rows(self, terminal, *rows):
        """What stands below the greeting."""
        def below():
            shown = terminal.shown()
            first = next((i for i, row in enumerate(shown) if GREETING in row), -1)
            return shown[first + 1:]
        try:
            terminal.wait(lambda: below() == list(rows), "the screen", 20)
        except AssertionError:
            self.assertEqual(below(), list(rows))

    def every_width(self, **more):
        return (self.open(columns, **more) for columns in WIDTHS)

    def test_many_lines_are_edited_as_one(self):
        for t in self.every_width():
            t.send("fn area(w,\r        h) {\r    w * h\r}")
            self.assert_rows(t, "tl> fn area(w,", "        h) {", "    w * h", "}")
            t.send("\x02\x02 + 1")  # two to the left: behind the h
            rows = ["tl> fn area(w,", "        h) {", "    w * h + 1", "}"]
            self.assert_rows(t, *rows)
            self.assertEqual(t.cursor(), (13, 3))
            t.send("\r")
            self.assert_rows(t, *rows, "tl>")
            self.assertEqual(t.line("area(3, 4)"), "13\n")

    def test_recall_shows_all_lines(self):
        for t in self.every_width():
            t.line("fn f(a) {\r  a + 1\r}")
            t.line("f(1)")
            t.send("\x1b[A\x1b[A")
            unit = ["tl> fn f(a) {", "  a + 1", "}"]
            self.assert_rows(t, *unit, "tl> f(1)", "2", *unit)
            self.assertEqual(t.cursor(), (1, 8))
            t.send("\x02\x02\x7f2\r")  # behind the 1: 2 in its place
            unit[1] = "  a + 2"
            t.wait_prompt()
            t.line("f(1)")
            self.assert_rows(t, "tl> fn f(a) {", "  a + 1", "}", "tl> f(1)", "2", *unit, "tl> f(1)", "3", "tl>")

    def test_a_paste_is_one_input(self):
        script = "let k = 3\nmain {\n    print(twice(k))\n}\nfn twice(a) {\n    a * 2\n}\n"
        for t in self.every_width():
            t.paste(script)
            pasted = script.splitlines()
            pasted[0] = "tl> " + pasted[0]
            self.assert_rows(t, *pasted)
            t.send("\r")
            self.assert_rows(t, *pasted, "6", "tl>")
            t.send("\x1b[A")
            self.assert_rows(t, *pasted, "6", *pasted)

    def test_long_lines_wrap(self):
        terms = " + ".join(f"{i:03}" for i in range(60))
        for t in self.every_width():
            t.send(terms)
            line, width = "tl> " + terms, t.screen.columns
            wrapped = [line[at:at + width].rstrip() for at in range(0, len(line), width)]
            self.assertGreater(len(wrapped), 1)
            self.assert_rows(t, *wrapped)
            t.send("\r")
            self.assert_rows(t, *wrapped, str(sum(range(60))), "tl>")

    def test_ctrl_l_clears_the_screen(self):
        for t in self.every_width():
            t.line("1 + 1")
            t.send("fn f(a) {\r  a")
            t.settle()
            t.send("\x0c")
            t.wait(lambda: t.rows() == ["tl> fn f(a) {", "  a"], "a clear screen")
            self.assertEqual(t.cursor(), (3, 1))

    def test_ctrl_c_leaves_what_was_typed(self):
        for t in self.every_width():
            t.send("fn f(a) {\r  a + 1\r}\x1b[D\x01\x02")
            t.settle()
            t.send("\x03")
            self.assert_rows(t, "tl> fn f(a) {", "  a + 1", "}^C", "tl>")

    def test_ctrl_c_in_a_search_leaves_nothing_of_it(self):
        for t in self.every_width():
            t.line("fn f(a) {\r  a + 1\r}")
            t.send("abc\x12fn")
            unit = ["fn f(a) {", "  a + 1", "}"]
            before = ["tl> " + unit[0], *unit[1:]]
            self.assert_rows(t, *before, "(reverse-i-search)`fn': " + unit[0], *unit[1:])
            t.send("\x03")
            self.assert_rows(t, *before, "tl> abc^C", "tl>")
            t.send("\x1b5")
            self.assert_rows(t, *before, "tl> abc^C", "(arg: 5)")
            t.send("\x03")
            self.assert_rows(t, *before, "tl> abc^C", "tl> ^C", "tl>")

    def test_ctrl_c_in_a_kernel(self):
        for t in self.every_width():
            t.line("a = rand([300, 300]); x = 1")
            t.raw = b""
            line = 'x = 2; eprint("be" "gins"); loop { a = a @ a * 0.001 }'.replace('" "', '" + "')
            t.send(line + "\r")
            t.wait_text("begins")
            t.send("\x03")
            interrupted = "interrupted: variables, but not parameters, are as they were before the line"
            self.assert_rows(t, "tl> a = rand([300, 300]); x = 1", "tl> " + line, "begins", "^C", interrupted, "tl>")
            self.assertEqual(t.line("x"), "1\n")

    def test_the_bar_of_training_stays_in_its_row(self):
        for t in self.every_width():
            t.line("tensor w: float32[2] learnable = [1.0, 2.0]")
            t.send("learn { objective: sum(w * w), optimizer: sgd(lr: 0.000001), epochs: 3000000000, "
                   "report_every: 3000000000 }\r")
            bar = re.compile(r"(\[\.+\] )?epoch \d+/3000000000  loss [\d.e-]+  grad norm ")
            t.wait(lambda: bar.match(t.rows()[-1]), "a bar")
            rows = len(t.rows())
            for _ in range(3):
                before = t.rows()[-1]
                t.wait(lambda: bar.match(t.rows()[-1]) and t.rows()[-1] != before, "another bar")
                self.assertEqual(len(t.rows()), rows)
            t.send("\x03")
            t.wait(lambda: t.rows()[-1] == "tl>", "a prompt")
            self.assertFalse([row for row in t.rows() if bar.match(row)])

    # --- completion

    def complete(self, t, typed):
        """The rows between the line and its repetition, after Tab twice; the line is left."""
        t.send("\x0c" + typed + "\t")
        t.settle(0.1)
        t.send("\t")
        line = ("tl> " + typed).rstrip()
        t.wait(lambda: len(t.rows()) > 1 and t.rows()[-1] == line, "the candidates")
        rows = t.rows()
        t.send("\x03")
        t.wait_prompt()
        self.assertEqual(rows[0], line)
        return rows[1:-1]

    def test_completion_knows_what_stands_before_the_dot(self):
        for t in self.every_width():
            t.line(f'import "{ROOT}/std/layers.tl" as nn')
            t.line("struct P { x: float, name: string }")
            t.line('impl P { fn new() { P { x: 1.0, name: "" } } fn origin() { 1 } fn double(self) { 2 } }')
            t.line('p = P::new(); d = {"north": 1, "nook": 2}; xs = list(1); n = 5')
            self.assertEqual(self.complete(t, "nn.L"), ["LayerNorm  Linear"])
            self.assertEqual(self.complete(t, "print(p."), ["double  name    x"])
            self.assertEqual(self.complete(t, "P::"), ["new     origin"])
            self.assertEqual(self.complete(t, "d.no"), ["nook   north"])
            t.line("c = KVCache::new(1)")
            self.assertEqual(self.complete(t, "c.get_"), ["get_k  get_v"])
            listed = " ".join(self.complete(t, "xs."))
            self.assertIn(" push ", listed)
            for other in ("list.append", "softmax", "KVCache"):
                self.assertNotIn(other, listed)

    def test_completion_offers_no_mistakes(self):
        for t in self.every_width():
            t.line("rate = 1")
            start = " ".join(self.complete(t, "")).split()
            for word in ("let", "fn", "rate", "struct"):
                self.assertIn(word, start)
            for word in ("else", "catch", "and", "in", "break", "return", "softmax", "of", "_"):
                self.assertNotIn(word, start)
            operand = " ".join(self.complete(t, "x = ")).split()
            self.assertIn("if", operand)
            self.assertNotIn("let", operand)
            self.assertEqual(self.complete(t, "rate "), ["and  as   in   not  or"])
            self.assertIn("else", " ".join(self.complete(t, "if rate == 1 { 2 } ")).split())

    def test_completion_shows_a_screenful_at_most(self):
        for t in self.every_width(rows=12):
            t.line("x = [1.0, 2.0]")
            t.send("\x0cx.\t")
            t.settle(0.1)
            t.send("\t")
            t.wait(lambda: t.rows()[-1] == "tl> x." and len(t.rows()) > 2, "the candidates")
            self.assertEqual(t.rows()[0], "tl> x.")
            self.assertLessEqual(len(t.rows()), 12)
            self.assertRegex(t.rows()[-2], r"^and \d+ more: type on$")
            self.assertEqual(len(t.rows()), 12)  # no row is left empty

    # ---

    def test_an_operator_at_the_end_goes_on(self):
        for t in self.every_width():
            t.send("1 +\r2\r")
            self.assert_rows(t, "tl> 1 +", "2", "3", "tl>")

    def test_a_prompt_begins_a_row(self):
        for t in self.every_width():
            t.send('print("ab", end: "")\r')
            self.assert_rows(t, 'tl> print("ab", end: "")', "ab", "tl>")
            t.line("1")
            self.assert_rows(t, 'tl> print("ab", end: "")', "ab", "tl> 1", "1", "tl>")

    def test_a_unit_taller_than_the_screen(self):
        """The rows around the cursor are shown, and all of them run."""
        for t in self.every_width(rows=10):
            t.paste("xs = list(\n" + "".join(f"  {i},\n" for i in range(30)) + "  99)\n")
            lines = ["xs = list(", *(f"  {i}," for i in range(30)), "  99)"]
            def window(first, count):
                return ["tl> " + lines[first], *lines[first + 1:first + count]]
            t.wait(lambda: t.rows()[-8:] == window(24, 8), "the last rows")  # and an empty one
            t.send("\r")
            t.wait(lambda: t.rows()[-1] == "tl>", "a prompt")
            self.assertEqual(t.line("len(xs)"), "31\n")
            t.send("\x1b[A\x1b[A\x01")
            t.wait(lambda: t.rows()[-9:] == window(0, 9), "the first rows")
            t.send("\x05 ")  # the end of all
            t.wait(lambda: t.rows()[-9:] == window(23, 9), "the last rows again")
            t.send("\x03")
            t.wait_prompt()

    def test_another_size_of_the_terminal(self):
        t = self.open(80)
        terms = " + ".join(f"{i:03}" for i in range(30))
        t.send(terms)
        t.settle()
        t.resize(200, 40)
        t.settle()
        t.send("\x0c")
        t.wait(lambda: t.rows() == ["tl> " + terms], "one row")


if __name__ == "__main__":
    unittest.main()
