"""A live logic program as a constraint: what a model of random weights says is derivable when it is said.

TL_TEST_TEXTS=10000 makes so many texts (60 by default)."""
import os
import random
import unittest

from test_constraints import program

COUNT = int(os.environ.get("TL_TEST_TEXTS", "60"))
BATCH = 250

FAMILY = """
entity Person
relation Parent(x: Person, y: Person)
Ancestor(X, Z) <- Parent(X, Z)
Ancestor(X, Z) <- Ancestor(X, Y), Parent(Y, Z)
"""


class LiveConstraints(unittest.TestCase):
    def test_only_what_is_derivable_is_said(self):
        """Facts change between texts; a statement of two correlated names is one hole."""
        choose = random.Random(int(os.environ.get("TL_TEST_SEED", "1")))
        said = set()
        for first in range(0, COUNT, BATCH):
            said |= self.say(choose, range(first, min(first + BATCH, COUNT)))
        self.assertGreater(len(said), 3)

    def say(self, choose, numbers):
        names = ["al", "ala", "bo", "b{", "é", "name1"]
        body, held, expected = [], set(), []
        for number in numbers:
            if number % 5 == 0 or not held:
                pair = (choose.choice(names), choose.choice(names))
                body.append(f'{"retract " if pair in held else ""}Parent("{pair[0]}", "{pair[1]}")')
                held ^= {pair}
            if held:
                expected.append(self.close(held))
                body.append(f"print(generate(m, \"a\", 400, temperature: 3.0, constraint: kin, seed: {number}))")
        result = program(FAMILY + """
            let kin = grammar("root ::= claim (\\"; \\" claim){2}", holes: {"claim": fn() {
                [f"{a.X} before {a.Y}" for a in Ancestor(X, Y)?] }})
        """ + "\n".join(body), options=())
        self.assertEqual(result.err, "")
        lines = result.out.splitlines()
        self.assertEqual(len(lines), len(expected))
        said = set()
        for line, derivable in zip(lines, expected):
            claims = line.strip().split("; ")
            self.assertEqual(len(claims), 3, line)
            said |= set(claims)
            for claim in claims:
                self.assertIn(claim, derivable, line)
        return said

    def close(self, pairs):
        closed = set(pairs)
        while True:
            more = {(x, z) for x, y in closed for y2, z in pairs if y == y2} - closed
            if not more:
                return {f"{x} before {y}" for x, y in closed}
            closed |= more

    def test_facts_change_between_tokens(self):
        """After the first name is begun it is retracted: no text goes on. Another one comes: it may be said."""
        result = program(FAMILY + """
            Person("aaaa")
            Person("bbbb")
            let one = grammar("root ::= who \\" \\" who", holes: ({"who": Person}))
            let said = ""
            fn watch(piece) {
                said = said + piece
                if said == "aa" { retract Person("aaaa") }
            }
            Person("aacc")
            try { print(generate(m, "a", 60, constraint: one, seed: 4, on_token: watch)) } catch e { print(e.message) }
            said = ""
            fn swap(piece) {
                said = said + piece
                if said.contains(" ") and Person("bbbb")? {
                    retract Person(_)
                    Person("new")
                }
            }
            for i in 0..12 {
                said = ""
                retract Person(_)
                Person("bbbb")
                print(generate(m, "a", 60, constraint: one, seed: i, on_token: swap))
            }
        """, options=())
        self.assertEqual(result.err, "")
        for line in result.out.splitlines()[1:]:
            self.assertEqual(line, "bbbb new")

    def test_kinds_of_holes(self):
        result = program(FAMILY + """
            Parent("ann", "bo")
            relation Age(n: int)
            Age(41)
            let g = grammar("root ::= who \\" is \\" age \\", \\" kind ([.!])", holes: {
                "who": fn() { Parent(X, "bo")? }, "age": Age, "kind": list("tall", "tall and thin")})
            for i in 0..6 { print(generate(m, "a", 80, temperature: 4.0, constraint: g, seed: i)) }
        """, options=())
        self.assertEqual(result.err, "")
        for line in result.out.splitlines():
            self.assertRegex(line, r"^ann is 41, tall( and thin)?[.!]$")

    def test_more_states_than_are_kept(self):
        """Texts of a hole that come and go with each text, together far more beginnings than are remembered."""
        result = program(r"""
            let round = 0
            let g = grammar("root ::= n \"-\" n \".\"", holes: {"n": fn() { [f"{(i * 7919 + round * 31) * 99991 % 1000000007 * 100003}" for i in 0..40] }})
            relation Tick(n: int)
            for i in 0..500 {
                round = i
                Tick(i)
                print(generate(m, "a", 40, temperature: 3.0, constraint: g, seed: i))
            }
        """, options=())
        self.assertEqual(result.err, "")
        for number, line in enumerate(result.out.splitlines()):
            derivable = {str((i * 7919 + number * 31) * 99991 % 1000000007 * 100003) for i in range(40)}
            first, second = line.removesuffix(".").split("-")
            self.assertTrue({first, second} <= derivable, line)
        self.assertEqual(len(result.out.splitlines()), 500)

    def test_mistakes(self):
        for body, expected in [
            ('grammar("root ::= a", holes: {"b": list("x")})', "the grammar does not say what a is"),
            ('grammar("root ::= a", holes: {"root": list("x")})', "the grammar says what root is, which is a hole"),
            ('grammar("root ::= a", holes: {"a": 3})', "what fills a hole must be a relation, a list or a function, but it is 3"),
            ('generate(m, "a", 9, constraint: grammar("root ::= a", holes: {"a": list(list(1))}))',
             "the hole a cannot be filled with a list of 1 value"),
            ('generate(m, "a", 9, constraint: grammar("root ::= a", holes: {"a": list("")}))', "a text of the hole a is empty"),
            ('generate(m, "a", 9, constraint: grammar("root ::= a", holes: {"a": fn() { error("no luck") }}))', "no luck"),
            ('generate(m, "a", 9, constraint: grammar("root ::= a", holes: {"a": fn() { 3.5 }}))', "what fills a hole"),
            ('generate(m, "a", 2, constraint: grammar("root ::= a", holes: {"a": list("xyz")}))',
             "the shortest text that the constraint allows has 3 bytes, but max_tokens is 2"),
            ('generate(m, "a", 2, constraint: grammar("root ::= a", holes: {"a": fn() { list() }}))', "nothing fills the holes of the constraint: no text can end"),
            ('grammar("root ::= a", holes: {1: list("x")})', "the name of a hole must be a string, but it is 1"),
        ]:
            with self.subTest(body):
                result = program(body)
                self.assertIn(expected, result.err.splitlines()[0], body)
                if "cannot be filled" in expected:
                    self.assertIn("help: texts, numbers, and answers with one variable fill holes", result.err)


if __name__ == "__main__":
    unittest.main()
