"""Operators mean the same however their operands are written: the interpreter has forms of its own for variables,
constants, globals and expressions, and for where the result goes."""
import itertools
import math
import unittest

from tl import run_code

VALUES = ["0", "3", "-7", "9223372036854775807", "-9223372036854775807 - 1", "-1", "0.5", "-2.0", "9007199254740993",
          "9007199254740992.0", "true", '"ab"', '"b"', "none", "tensor(2.5)", "list(1)"]
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">="]
FORMS = {
    "slots": "fn f(a, b) { a OP b }",
    "constant": "fn f(a, b) { a OP RIGHT }",
    "constant_left": "fn f(a, b) { LEFT OP b }",
    "global": "fn f(a, b) { ga OP gb }",
    "left": "fn f(a, b) { id(a) OP b }",
    "left_constant": "fn f(a, b) { id(a) OP RIGHT }",
    "right": "fn f(a, b) { a OP id(b) }",
    "store": "fn f(a, b) { let x = a OP b\n x }",
    "store_counted": "fn f(a, b) { let x = list(a)\n x = a OP b\n x }",
    "store_left": "fn f(a, b) { let x = 0\n x = id(a) OP b\n x }",
    "store_right": "fn f(a, b) { let x = 0\n x = a OP id(b)\n x }",
    "store_both": "fn f(a, b) { let x = 0\n x = id(a) OP id(b)\n x }",
    "store_global": "fn f(a, b) { gx = ga OP gb\n gx }",
    "captured": "fn f(a, b) { let g = fn() { a OP b }\n g() }",
}
COMPOUND = {
    "compound": "fn f(a, b) { let x = a\n x OP= b\n x }",
    "element": "fn f(a, b) { let x = list(none, a)\n x[1] OP= b\n x[1] }",
    "item": "fn f(a, b) { let x = {\"k\": a}\n let k = \"k\"\n x[k] OP= b\n x[\"k\"] }",
    "field": "fn f(a, b) { let x = Box { v: a }\n x.v OP= b\n x.v }",
}
HEAD = """
struct Box<T> { v: T }
fn id(x) { x }
fn show(f, a, b) {
    print(try {
        let v = f(a, b)
        list(v, type(v))
    } catch e { list(e.kind, e.message) })
}
let ga = 0
let gb = 0
let gx = 0
"""


def forms_of(operator):
    return {"both": "fn f(a, b) { id(a) OP id(b) }", **FORMS, **(COMPOUND if operator in "+-*/%" else {})}


def program(operator):
    """Prints what each form gives for each pair, a line each: the value and its type, or the error."""
    lines = [HEAD]
    for pair, (left, right) in enumerate(itertools.product(VALUES, VALUES)):
        lines.append(f"ga = {left}\ngb = {right}")
        for number, text in enumerate(forms_of(operator).values()):
            text = text.replace("OP", operator).replace("LEFT", f"({left})").replace("RIGHT", f"({right})")
            name = f"f{pair}_{number}"
            lines.append(text.replace("fn f(", f"fn {name}(") + f"\nshow({name}, ga, gb)")
    return "\n".join(lines)


def expected(operator, left, right):
    """What Python says of two numbers, as tl prints it; None where it is not a plain case."""
    try:
        x, y = (float(text) if "." in text else int(text) for text in (left, right))
    except ValueError:
        return None
    ints = isinstance(x, int) and isinstance(y, int)
    if operator in "/%":
        if y == 0 or not ints:
            return None
        quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
        value = quotient if operator == "/" else x - quotient * y
    else:
        value = eval(f"x {operator} y")
    if isinstance(value, bool):
        return f'[{str(value).lower()}, "bool"]'
    if isinstance(value, int):
        return f'[{value}, "int"]' if abs(value) < 2**63 else None
    return f'[{value}, "float"]' if math.isfinite(value) and abs(value) < 1e15 else None


class Forms(unittest.TestCase):
    def test_all_forms_of_an_operator_agree(self):
        for operator in OPERATORS:
            result = run_code(program(operator))
            self.assertEqual(result.status, 0, result.err[:2000])
            lines = iter(result.out.splitlines())
            for left, right in itertools.product(VALUES, VALUES):
                given = {form: next(lines) for form in forms_of(operator)}
                wanted = expected(operator, left, right) or given["both"]
                for form, line in given.items():
                    self.assertEqual(line, wanted, f"{left} {operator} {right} as {form}")
            self.assertIsNone(next(lines, None))


# Operands of expressions with several operators, which are evaluated by steps of their own (src/eval/formula.c).
FORMULA_VALUES = ["3", "-7", "0", "9223372036854775807", "9007199254740993", "9007199254740992.0", "0.5", "-0.0", "nan", "true", '"ab"', "tensor(2.5)"]
SHAPES = {"left": "(A IN B) OUT C", "right": "A OUT (B IN C)", "both": "(A IN B) OUT (C IN A)", "map": "(exp(A) IN B) OUT C"}
# A function of a, b and c in which SHAPE is written with the operands that follow.
PLACES = {
    "slots": ("fn f(a, b, c) { SHAPE }", "a b c"),
    "constant": ("fn f(a, b, c) { SHAPE }", "a b 2.5"),
    "constants": ("fn f(a, b, c) { SHAPE }", "3 b -2"),
    "globals": ("fn f(a, b, c) { ga = a\n gb = b\n gx = c\n SHAPE }", "ga gb gx"),
    "captured": ("fn f(a, b, c) { let g = fn() { SHAPE }\n g() }", "a b c"),
    "cells": ("fn f(a, b, c) { let g = fn() { list(a, b, c) }\n SHAPE }", "a b c"),
    "fields": ("fn f(a, b, c) { let x = Three { a: a, b: b, c: c }\n SHAPE }", "x.a x.b x.c"),
    "deep_fields": ("fn f(a, b, c) { let x = Box { v: Box { v: Three { a: a, b: b, c: c } } }\n SHAPE }", "x.v.v.a x.v.v.b c"),
    "elements": ("fn f(a, b, c) { let x = list(a, b, c)\n SHAPE }", "x[0] x[1] x[-1]"),
    "tuple": ("fn f(a, b, c) { let x = (a, b, c)\n SHAPE }", "x[0] x[1] x[-1]"),
    "deep_elements": ("fn f(a, b, c) { let x = list(list(a, b), list(c))\n SHAPE }", "x[0][0] x[0][1] x[1][0]"),
    "mixed": ("fn f(a, b, c) { let x = list(Box { v: a })\n let y = Box { v: list(b) }\n SHAPE }", "x[0].v y.v[0] c"),
    "dictionary": ("fn f(a, b, c) { let x = {0: a, 1: b}\n SHAPE }", "x[0] x[1] c"),
}
TARGETS = {
    "slot": "fn f(a, b, c) { let x = tensor(1.0)\n x = SHAPE\n x }",
    "global": "fn f(a, b, c) { gx = SHAPE\n gx }",
    "capture": "fn f(a, b, c) { let x = 0\n let g = fn() { x = SHAPE }\n g()\n x }",
    "cell": "fn f(a, b, c) { let x = 0\n let g = fn() { x }\n x = SHAPE\n g() }",
    "element": "fn f(a, b, c) { let x = list(none, tensor(1.0))\n x[1] = SHAPE\n x[1] }",
    "deep_element": "fn f(a, b, c) { let x = list(list(0))\n x[0][0] = SHAPE\n x[0][0] }",
    "field": "fn f(a, b, c) { let x = Box { v: a }\n x.v = SHAPE\n x.v }",
    "argument": "fn f(a, b, c) { id(SHAPE) }",
}
# A condition has to be a bool, or a tensor of one.
CONDITIONS = {
    "if": "fn f(a, b, c) { let x = false\n if SHAPE { x = true }\n x }",
    "if_else": "fn f(a, b, c) { if SHAPE { true } else if SHAPE { none } else { false } }",
    "guard": "fn f(a, b, c) { if SHAPE { return true }\n false }",
}
# As SHAPE "right" with the target as its left operand.
COMPOUND_TARGETS = {
    "compound": "fn f(a, b, c) { let x = a\n x OUT= (b IN c)\n x }",
    "compound_capture": "fn f(a, b, c) { let x = a\n let g = fn() { x OUT= (b IN c) }\n g()\n x }",
    "compound_element": "fn f(a, b, c) { let x = list(a)\n x[0] OUT= (b IN c)\n x[0] }",
    "compound_field": "fn f(a, b, c) { let x = Box { v: a }\n x.v OUT= (b IN c)\n x.v }",
    "compound_item": "fn f(a, b, c) { let x = {0: a}\n x[0] OUT= (b IN c)\n x[0] }",
}
FORMULA_HEAD = """
struct Three<A, B, C> { a: A, b: B, c: C }
fn outcome(f, a, b, c) {
    try {
        let v = f(a, b, c)
        str(list(v, type(v)))
    } catch e { str(list(e.kind, e.message)) }
}
fn compare(name, f, reference, values) {
    for a in values { for b in values { for c in values {
        let given = outcome(f, a, b, c)
        let wanted = outcome(reference, a, b, c)
        if given != wanted { print(f"{name} of {a}, {b}, {c}: {given}, not {wanted}") }
    } } }
}
"""


def write(shape, inner, outer, operands):
    """The shape with these operators and operands; each result goes through `id` where an operand does."""
    through = operands.startswith("id")
    text = SHAPES[shape]
    if through:
        text = {"left": "id(A IN B) OUT C", "right": "A OUT id(B IN C)", "both": "id(A IN B) OUT id(C IN A)",
                "map": "id(id(exp(A)) IN B) OUT C"}[shape]
    a, b, c = operands.split()
    names = {"A": a, "B": b, "C": c, "IN": inner, "OUT": outer}
    return " ".join(names.get(word, word) for word in text.replace("(", " ( ").replace(")", " ) ").split())


def formula_forms(shape, inner, outer):
    """Each form as the text of a function, and the operands that its reference has."""
    for name, (text, operands) in PLACES.items():
        yield name, text.replace("SHAPE", write(shape, inner, outer, operands)), operands
    for name, text in TARGETS.items():
        yield name, text.replace("SHAPE", write(shape, inner, outer, "a b c")), "a b c"
    if outer not in "+-*/%":
        for name, text in CONDITIONS.items():
            yield name, text.replace("SHAPE", write(shape, inner, outer, "a b c")), "a b c"
    if shape == "right" and outer in "+-*/%":
        for name, text in COMPOUND_TARGETS.items():
            yield name, text.replace("OUT", outer).replace("IN", inner), "a b c"


def formula_program(inner, outer):
    lines = [HEAD + FORMULA_HEAD, f"let values = list({', '.join(FORMULA_VALUES)})"]
    for shape in SHAPES:
        for name, text, operands in formula_forms(shape, inner, outer):
            # A constant stands in the reference, too; what is read from elsewhere is a parameter there.
            plain = [word if word.lstrip("-")[0].isdigit() else "abc"[i] for i, word in enumerate(operands.split())]
            reference = write(shape, inner, outer, " ".join(f"id({word})" for word in plain))
            if name in CONDITIONS:
                reference = f"let x = {reference}\n if x {{ true }} else {{ false }}"
            lines.append(text.replace("fn f(", f"fn {shape}_{name}("))
            lines.append(f"fn {shape}_{name}_reference(a, b, c) {{ {reference} }}")
            lines.append(f'compare("{shape} {name}", {shape}_{name}, {shape}_{name}_reference, values)')
    return "\n".join(lines)


class Formulas(unittest.TestCase):
    def test_all_forms_of_a_formula_agree(self):
        pairs = [("-", outer) for outer in OPERATORS] + list(itertools.product("+*/%", ["-", "/", "<"]))
        for inner, outer in pairs:
            result = run_code(formula_program(inner, outer))
            self.assertEqual(result.status, 0, result.err[:2000])
            self.assertEqual(result.out[:2000], "", f"{inner} in {outer}")

    def test_an_error_has_the_place_of_its_operator(self):
        result = run_code("fn f(a, b, c) {\n    let r = a +\n        b * c\n    r\n}\nprint(f(1.5, 2, 3))\n"
                          "f(1, int(\"9223372036854775807\"), 2)")
        self.assertEqual(result.out, "7.5\n")
        self.assertIn(":3:9", result.err)
        self.assertIn("9223372036854775807 * 2 does not fit", result.err)

    def test_an_unset_variable_is_named(self):
        result = run_code("fn f(a) {\n    let x: float\n    a * 2 + x\n}\nf(1)")
        self.assertIn("`x` has no value yet", result.err)

    def test_what_takes_no_number_as_it_is(self):
        result = run_code("struct P { v: float }\nfn f(p, a) {\n    p.v = a * 2 + 1\n    p.v += a * 2\n    p.v\n}\n"
                          "print(f(P { v: 0.0 }, 0.5), f(P { v: 0.0 }, 3))\n"
                          "fn g(x, a) { x[0] = a * 2 + 1 }\ng((1, 2), 3)")
        self.assertEqual(result.out, "3.0 13.0\n")
        self.assertIn("a tuple cannot be changed", result.err)

    def test_what_a_result_replaces_is_dropped(self):
        result = run_code("struct D { v: int }\nimpl Drop for D { fn drop(self) { print(\"drop\", self.v) } }\n"
                          "fn f(a, x) {\n    let y = D { v: 1 }\n    y = a * 2 + 1\n    x[0] = a * 2 + 1\n    print(y)\n}\n"
                          "for i in 0..2 { f(i, list(D { v: 2 })) }")
        self.assertEqual(result.out, "drop 1\ndrop 2\n1\ndrop 1\ndrop 2\n3\n")

    def test_steps_beyond_what_one_formula_has(self):
        terms = 200
        text = " + ".join(f"x * {i}" for i in range(terms))
        result = run_code(f"fn f(x) {{ {text} }}\nprint(f(1), f(0.5))")
        self.assertEqual(result.out.split(), [str(terms * (terms - 1) // 2), str(terms * (terms - 1) / 4)])


if __name__ == "__main__":
    unittest.main()
