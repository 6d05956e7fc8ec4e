"""Every operation that a gradient flows through is compared with differences somewhere."""
import re
import unittest

from tl import ROOT

# Forms of calls that only scripts can write, and what of tests/lang/20_grad_*.tl compares them.
FORMS = {"reshape_dims": "reshape(y, 3, 2)", "concat_each": "concat(y, ", "stack_each": "stack(y, ",
         "slice": "slice(y, 1, 0, 2)", "slice_first": "slice(y, 1, 4)", "to_dtype": "y.to(float64)",
         "max_with_number": "max(y, 0.1)", "min_with_number": "min(y, 0.99)"}


class Gradients(unittest.TestCase):
    def test_every_rule_is_compared(self):
        catalog = ROOT / "src" / "catalog"
        table = (catalog / "ops.def").read_text() + (catalog / "ops_composed.def").read_text()
        formulas = re.split(r"^(?=MAP\d[FI]?\()", (catalog / "maps.def").read_text(), flags=re.M)
        constant = {re.search(r"\w+(?=,)", formula)[0] for formula in formulas
                    if re.search(r", none\)\s*(?://.*\s*|#.*\s*)*$", formula)}
        rows = [row for row, formula in re.findall(r"^OP_MAP\((\w+), (\w+)", table, re.M) if formula not in constant]
        rows += re.findall(r"^OP_(?:RUN|OVERLOAD)\((\w+),(?: \w+,)? \d, \w+, (?:RULE|COMPOSED)", table, re.M)
        self.assertGreater(len(rows), 150)
        tables = "".join(path.read_text() for path in (ROOT / "tests" / "tensor").glob("test_gradient_*.c"))
        scripts = "".join(path.read_text() for path in (ROOT / "tests" / "lang").glob("20_grad_*.tl"))
        missing = [row for row in rows if not re.search(rf"\b(?:OP_)?{row}\b", tables)
                   and FORMS.get(row, f"{row}(") not in scripts]
        self.assertEqual(missing, [])


if __name__ == "__main__":
    unittest.main()
