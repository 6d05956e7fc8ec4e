"""Operators mean the same however their operands are written: the interpreter has forms of its own for variables,
constants, globals and expressions, and for where the result goes."""
import itertools
import math
import unittest

from tl import run_code

VALUES = ["0", "3", "-7", "9223372036854775807", "-9223372036854775807 - 1", "-1", "0.5", "-2.0", "true", '"ab"', '"b"', "none",
          "tensor(2.5)", "list(1)"]
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
    """What Python says of two numbers, as tl prints it; None where it is no plain case."""
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


if __name__ == "__main__":
    unittest.main()
