"""The node tests of ONNX (Debian's libonnx-testdata), a model of one operator each: those with floats."""
import json
import re
import tempfile
import unittest
from pathlib import Path

from onnx_file import fields, model, part
from tl import run

DATA = Path("/usr/share/libonnx-testdata/data/node")
FLOATS = {1, 10, 11, 16}
REFUSED = re.compile(r"the operator \w+ is not supported|operators of the domain `[\w.]+` are not supported|"
                     r"is (string|uint16|uint32|uint64|not a tensor), which is not supported|"
                     r"has the type (string|uint16) \(\d+\), which is not supported|the reduction \"mul\" is not supported")
# Other random numbers; and a size that is rounded down before corners are aligned, as other runtimes do.
DIFFERENT = {"test_training_dropout", "test_training_dropout_default", "test_training_dropout_default_mask", "test_training_dropout_mask",
             "test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners"}

# The inputs and outputs of a test come as the weights of a model that has no nodes.
PROGRAM = """
fn same(got, wanted) -> bool {
    if got.dtype != wanted.dtype or got.shape != wanted.shape { return false }
    let (a, b) = (got as float64, wanted as float64)
    let near = logical_or(a == b, abs(a - b) <= 1e-7 + 1e-3 * abs(b))
    all(logical_or(near, logical_and(isnan(a), isnan(b)))) as bool
}

for test in parse_json(read_file("tests.json")) {
    let outcome = try {
        let network = load_onnx(test["model"])
        let data = load_onnx(test["data"]).weights
        let given = list()
        for i in range(0, test["inputs"]) { given.push(data[f"input_{i}"]) }
        let got = network.forward(given)
        if type(got) != "dict" { got = {"0": got} }
        let wrong = list()
        for i, name in got.keys() { if not same(got[name], data[f"output_{i}"]) { wrong.push(i) } }
        if len(wrong) == 0 { "same" } else { f"different: outputs {wrong}" }
    } catch e { f"{e.kind}: {e.message}" }
    print(test["name"], outcome)
}
"""


def kinds(message):
    """The types of elements of a model's inputs and outputs; 0 for what is not a tensor."""
    graph = dict(fields(message))[7]
    for number, value in fields(graph):
        if number in (11, 12):
            kind = dict(fields(dict(fields(value))[2])).get(1)
            yield dict(fields(kind)).get(1, 0) if kind else 0


def numbered(path):
    return int(re.search(r"(\d+)", path.stem).group(1))


def data_model(folder):
    """The .pb files of a test as weights of those names, and how many inputs there are."""
    paths = sorted(folder.glob("*.pb"), key=numbered)
    weights = [path.read_bytes() + part(8, path.stem) for path in paths]
    return model(weights=weights), sum(path.stem.startswith("input") for path in paths)


@unittest.skipIf("built without" in run("-e", 'load_onnx("none.onnx")').err, "tl was built without load_onnx (libprotobuf-c-dev)")
@unittest.skipUnless(DATA.is_dir(), "the node tests of ONNX are not installed (libonnx-testdata)")
class Nodes(unittest.TestCase):
    def test_float_models(self):
        with tempfile.TemporaryDirectory() as folder:
            tests = []
            for path in sorted(DATA.iterdir()):
                model = path / "model.onnx"
                if FLOATS.isdisjoint(kinds(model.read_bytes())):
                    continue
                message, inputs = data_model(path / "test_data_set_0")
                Path(folder, path.name + ".onnx").write_bytes(message)
                tests.append({"name": path.name, "model": str(model), "data": path.name + ".onnx", "inputs": inputs})
            Path(folder, "tests.json").write_text(json.dumps(tests))
            Path(folder, "program.tl").write_text(PROGRAM)
            result = run("run", "--quiet", "--memory-check=strict", "program.tl", cwd=folder, timeout=600)
            self.assertEqual(result.status, 0, result.err)
            self.assertNotIn("warning", result.err)
            self.assertIn("no leak: every buffer was released", result.err)
        outcomes = dict(line.split(" ", 1) for line in result.out.splitlines())
        same = [name for name, outcome in outcomes.items() if outcome == "same"]
        refused = [name for name, outcome in outcomes.items() if REFUSED.search(outcome)]
        others = {name: outcome for name, outcome in outcomes.items() if name not in same + refused}
        self.assertEqual(len(outcomes), len(tests))
        self.assertLessEqual(set(others), DIFFERENT, others)
        self.assertGreaterEqual(len(same), 0.85 * len(tests), f"{len(same)} of {len(tests)}: {outcomes}")


if __name__ == "__main__":
    unittest.main()
