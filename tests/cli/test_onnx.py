"""load_onnx: models made here and by PyTorch, their gradients, files next to them, and what is refused."""
import json
import struct
import subprocess
import unittest
from pathlib import Path

from onnx_file import COMPLEX64, FLOAT, FLOAT8, STRING, graph, integer, model, node, part, tensor, variable
from tl import InFolder, run

# relu(x @ w + b), then a sum along rows
LAYER = dict(nodes=[node("Gemm", ["x", "w", "b"], ["h"], name="layer", transB=1), node("Relu", ["h"], ["y"])],
             inputs=[variable("x", ["n", 2])], outputs=[variable("y", ["n", 3])],
             weights=[tensor("w", [3, 2], [1, 2, 3, 4, -5, 6]), tensor("b", [3], [0.5, 0, 0])])
# A convolutional network and a transformer encoder, with what PyTorch computes.
TORCH = """
import torch, json
torch.manual_seed(0)
nn = torch.nn
def keep(name, net, x, names):
    y = net(*x)
    torch.onnx.export(net, x, name + ".onnx", input_names=names, output_names=["y"], dynamic_axes={n: {0: "b", 1: "s"} if name == "encoder" else {0: "b"} for n in names},
                      training=torch.onnx.TrainingMode.PRESERVE if name == "encoder" else torch.onnx.TrainingMode.EVAL)
    json.dump({"x": [a.tolist() for a in x], "y": y.tolist()}, open(name + ".json", "w"))
net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3, stride=2, groups=2),
                    nn.GELU(), nn.AvgPool2d(2, ceil_mode=True), nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), nn.ConvTranspose2d(6, 4, 3, stride=2, padding=1),
                    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5), nn.LogSoftmax(1))
net[1].running_mean.normal_(); net[1].running_var.uniform_(0.5, 2.0)
keep("convolutions", net.eval(), (torch.randn(2, 3, 12, 12),), ["x"])
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 16)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True), 2)
    def forward(self, ids, mask):
        return self.encoder(self.table(ids), src_key_padding_mask=mask)
net = Encoder().train() # eval takes a path that is not exported
keep("encoder", net, (torch.randint(0, 20, (2, 7)), torch.tensor([[False] * 7, [False] * 5 + [True] * 2])), ["ids", "mask"])
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True)
        self.second = nn.GRU(8, 5, bidirectional=True)
        self.third = nn.RNN(10, 6, nonlinearity="relu")
    def forward(self, x, lengths):
        x = self.first(x)[0].transpose(0, 1)
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths)
        padded = nn.utils.rnn.pad_packed_sequence(self.second(packed)[0])[0]
        y, end = self.third(padded)
        return torch.cat([y, end])
keep("reader", Reader().eval(), (torch.randn(3, 5, 3), torch.tensor([5, 3, 1])), ["x", "lengths"])
"""


@unittest.skipIf("built without" in run("-e", 'load_onnx("none.onnx")').err, "tl was built without load_onnx (libprotobuf-c-dev)")
class Onnx(InFolder):
    def write(self, name="a.onnx", **parts):
        (self.folder / name).write_bytes(model(**parts))

    def refused(self, text, code='load_onnx("a.onnx")', **parts):
        self.write(**parts)
        self.fails(code, text)

    def one_node(self, operator, inputs=("x",), outputs=("y",), version=13, **attributes):
        return dict(nodes=[node(operator, inputs, outputs, name="it", **attributes)], inputs=[variable("x", [2])],
                    outputs=[variable("y")], version=version)

    def test_a_layer(self):
        self.write(**LAYER)
        self.prints("""let m = load_onnx("a.onnx")
print(m.forward([[1, 1]]))
print(m.forward(list([[1.0, -1.0], [0.0, 1.0]])))
print(m.forward({"x": [[0.0, 0.0]]}))
print(m.inputs, m.outputs)
print(m.weights["b"], [n.operator for n in m.nodes], parameters(m))
print(type(m), m.path)""", "[[3.5 7.  1. ]]", "[[0.  0.  0. ]", " [2.5 4.  6. ]]", "[[0.5 0.  0. ]]",
                    '[{"shape": ["n", 2], "name": "x", "dtype": "float32"}] [{"shape": ["n", 3], "name": "y", "dtype": "float32"}]',
                    '[0.5 0.  0. ] ["Gemm", "Relu"] {}', "Onnx a.onnx")

    def test_gradients_and_training(self):
        self.write(**LAYER)
        self.prints("""let m = load_onnx("a.onnx", learnable: true)
print(parameters(m).keys())
print(grad(fn(x) { sum(m.forward(x)) }, [[1.0, 1.0]]))
let x = [[1.0, 1.0], [0.5, 2.0]]
fn loss() { mean(m.forward(x) ** 2) }
let before = loss()
learn { objective: loss(), optimizer: sgd(lr: 0.01), epochs: 60, progress: false }
print(loss() < before / 4)
save_model(m.weights, "trained.npz")
assert_eq(load("trained.npz")["w"], m.weights["w"])""", '["weights.w", "weights.b"]', "[[-1. 12.]]", "true")

    def test_numbers_of_every_kind(self):
        rows = [("f", [1.5, -2.0], "float32"), ("d", [0.1, 2.0], "float64"), ("q", [1 << 40, -3], "int64"), ("B", [1, 255], "uint8"),
                ("?", [True, False], "bool")]
        weights = [tensor(f"{letter}{raw}", [2], numbers, letter, raw) for letter, numbers, _ in rows for raw in (True, False)]
        self.write(weights=weights + [tensor("half", [2], [1.5, 2], "e"), tensor("one", [], [3]), tensor("no", [0, 2], [])])
        self.prints("""let w = load_onnx("a.onnx").weights
for name, x in w { print(name, x.dtype, x.shape, x) }""",
                    *[f"{letter}{raw} {dtype} [2] {shown}" for (letter, _, dtype), shown in zip(rows, (
                        "[ 1.5 -2. ]", "[0.1 2. ]", "[1099511627776            -3]", "[  1 255]", "[ true false]")) for raw in (True, False)],
                    "half float16 [2] [1.5 2. ]", "one float32 [] 3.0", "no float32 [0, 2] [] (shape [0, 2])")

    def test_halves_in_fields_of_their_own(self):
        message = integer(1, 2) + integer(2, 10) + part(8, "h") + part(5, b"\x80\x7c" + b"\x80\x80\x03")  # 0x3e00, 0xc000
        self.write(weights=[message])
        self.prints('print(load_onnx("a.onnx").weights["h"])', "[ 1.5 -2. ]")

    def test_inputs_and_outputs(self):
        self.write(nodes=[node("Add", ["a", "b"], ["s"]), node("Sub", ["a", "b"], ["d"])], outputs=[variable("s"), variable("d")],
                   inputs=[variable("a", [2]), variable("b", [2, 1]), variable("c")], weights=[tensor("c", [1], [0])])
        # [2] and [2, 1] broadcast without a warning; a weight among the inputs, as old models have it, is none
        self.prints("""let m = load_onnx("a.onnx")
print(len(m.inputs), m.forward(list([1, 2], [[10], [20]])))""",
                    '2 {"s": [[11. 12.]', ' [21. 22.]], "d": [[ -9.  -8.]', ' [-19. -18.]]}')
        self.assertNotIn("warning", self.run_here('load_onnx("a.onnx").forward(list([1, 2], [[10], [20]]))').err)
        for code, text in (("[1, 2]", "a.onnx has 2 inputs (`a`, `b`), but 1 are given"),
                           ('{"a": [1, 2]}', "a.onnx needs the input `b`"),
                           ('{"a": [1, 2], "b": [[1], [2]], "z": 1}', "a.onnx has no input `z`; it has `a`, `b`"),
                           ("list([1, 2, 3], [[1], [2]])", "the input `a` has the shape [3], but the network takes [2]")):
            self.fails(f'load_onnx("a.onnx").forward({code})', text)

    def test_values_go_when_nothing_reads_them(self):
        """Of a chain of operators two results are held next to what is given, however long it is."""
        names = ["x", *(f"v{i}" for i in range(20)), "y"]
        self.write(nodes=[node("Add", [a, a], [b]) for a, b in zip(names, names[1:])], inputs=[variable("x")], outputs=[variable("y")])
        self.prints("""let m = load_onnx("a.onnx")
let x = zeros([1000, 1000])
reset_peak_memory()
let y = m.forward(x)
print(memory()["peak"] / 4000000)""", "3")

    def test_files_next_to_the_model(self):
        def outside(**entries):
            return integer(1, 2) + integer(2, FLOAT) + part(8, "w") + integer(14, 1) + b"".join(
                part(13, part(1, k) + part(2, str(v))) for k, v in entries.items())

        (self.folder / "sub").mkdir()
        (self.folder / "sub" / "w.bin").write_bytes(struct.pack("<4f", 9, 9, 1, 2))
        (self.folder / "secret").write_bytes(bytes(8))
        self.write(weights=[outside(location="sub/w.bin", offset=8, length=8)])
        self.prints('print(load_onnx("a.onnx").weights["w"])', "[1. 2.]")
        self.write("sub/b.onnx", weights=[outside(location="w.bin", offset=8)])
        self.prints('print(load_onnx("sub/b.onnx").weights["w"])', "[1. 2.]")
        (self.folder / "sub" / "link").symlink_to("../secret")
        for entries, text in ((dict(location="../secret"), 'lies in "../secret", outside of the folder of the model'),
                              (dict(location="link"), 'lies in "link", outside of the folder of the model'),
                              (dict(location=str(self.folder / "sub" / "w.bin")), "outside of the folder of the model"),
                              (dict(location="none"), 'lies in the file "none", which is not there'),
                              (dict(location="w.bin", offset=12, length=8), 'ends after the end of "w.bin"'),
                              (dict(location="w.bin", offset=1 << 62), 'ends after the end of "w.bin"'),
                              (dict(location="w.bin", length=4), "tensor `w` is float32[2], but it has 4 bytes"),
                              (dict(location="w.bin", offset="-1"), 'lies at the offset "-1" of a file'),
                              (dict(offset=0), "tensor `w` lies in a file that has no name")):
            self.write("sub/b.onnx", weights=[outside(**entries)])
            self.fails('load_onnx("sub/b.onnx")', text)

    def test_operators_are_refused_by_name(self):
        for operator in ("If", "Loop", "Scan", "Nonsense"):
            self.refused(f"a.onnx: node 0 `it` ({operator}): the operator {operator} is not supported", **self.one_node(operator))
        self.refused("node 0 `it` (Relu): operators of the domain `com.other` are not supported",
                     **self.one_node("Relu", domain="com.other"))
        self.refused("node 0 `it` (Relu): the attribute `speed` is not supported", **self.one_node("Relu", speed=1))
        self.refused("node 0 `it` (Relu): 2 inputs are not supported, at most 1", **self.one_node("Relu", ("x", "x")))
        self.refused("node 0 `it` (Relu): 2 outputs are not supported, at most 1", 'load_onnx("a.onnx").forward([1, 2])',
                     **self.one_node("Relu", outputs=("y", "z")))
        graphs = part(1, "alpha") + part(6, graph()) + integer(20, 5)
        self.refused("node 0 (Elu): the attribute `alpha` is of a kind that is not supported",
                     nodes=[node("Elu", ["x"], ["y"]) + part(5, graphs)], inputs=[variable("x")], outputs=[variable("y")])
        self.refused("node 0 `it` (Gather): ", 'load_onnx("a.onnx").forward([1, 2])', **self.one_node("Gather", ("x", "x"), axis=3))
        for operator, attributes, text in (
                ("Cast", dict(to=STRING), "numbers of the type 8 are not supported"),
                ("Pad", dict(mode="odd", pads=[1, 1]), 'the mode "odd" is not supported'),
                ("Concat", {}, "the attribute `axis` is missing"),
                ("Gelu", dict(approximate="fast"), 'the approximation "fast" is not supported'),
                ("MaxPool", {}, "the attribute `kernel_shape` is missing"),
                ("BatchNormalization", dict(spatial=0), "spatial: 0 is not supported"),
                ("Softmax", dict(axis=5), "there is no dimension 5 in a tensor of 1 dimensions")):
            self.refused(f"a.onnx: node 0 `it` ({operator}): {text}", 'load_onnx("a.onnx").forward([1, 2])',
                         **self.one_node(operator, **attributes))

    def test_recurrent_layers(self):
        def layer(operator, gates, **attributes):
            return dict(nodes=[node(operator, ["x", "w", "r"], ["y"], "it", **attributes)], inputs=[variable("x")], outputs=[variable("y")],
                        weights=[tensor("w", [1, gates, 1], [2] * gates), tensor("r", [1, gates, 1], [1] * gates)])

        forward = 'load_onnx("a.onnx").forward([[[1]], [[3]], [[2]]])'
        for attributes, shown in ((dict(), "[ 2.  8. 12.]"), (dict(direction="reverse"), "[12. 10.  4.]"), (dict(clip=2.5), "[2.  2.5 2.5]"),
                                  (dict(activations=["Softsign"]), "[0.6667 0.8696 0.8296]")):
            self.write(**layer("RNN", 1, **{"activations": ["Relu"], **attributes}))
            self.prints(f"print({forward}[:, 0, 0, 0])", shown)
        for attributes, text in ((dict(activations=["Sine"]), 'the activation "Sine" is not supported'),
                                 (dict(direction="up"), 'the direction "up" is not supported')):
            self.refused(f"node 0 `it` (RNN): {text}", forward, **layer("RNN", 1, **attributes))
        self.refused("node 0 `it` (LSTM): input_forget is not supported", forward, **layer("LSTM", 4, input_forget=1))
        self.refused("of the operator GRU version 6 is not supported, from 7 on it is", version=6, **layer("GRU", 3))

    def test_windows_fit(self):
        self.refused("node 0 `it` (AveragePool): a window of 5 does not fit 3 elements and their border",
                     'load_onnx("a.onnx").forward(zeros([1, 1, 3]))', nodes=[node("AveragePool", ["x"], ["y"], "it", kernel_shape=[5])],
                     inputs=[variable("x")], outputs=[variable("y")])

    def test_graphs_are_checked(self):
        self.refused("its operators are those of version 99; 1 to 21 are supported", **self.one_node("Relu", version=99))
        self.refused("node 0 `it` (PRelu): of the operator PRelu version 6 is not supported, from 7 on it is", **self.one_node("PRelu", version=6))
        self.refused("it names no version of ONNX's operators", domain="other")
        self.refused("node 0 `it` (Relu): nothing before it gives its input `q`", **self.one_node("Relu", ("q",)))
        self.refused("node 0 `it` (Relu): `x` is given twice", **self.one_node("Relu", outputs=("x",)))
        self.refused("nothing gives the output `y`", **self.one_node("Relu", outputs=("z",)))
        self.refused("the input `s` is string, which is not supported", inputs=[variable("s", [1], STRING)])
        self.refused("the input `s` is not a tensor, which is not supported", inputs=[part(1, "s")])
        self.refused("tensor `f` has the type float8e4m3fn (17), which is not supported",
                     weights=[integer(2, FLOAT8) + part(8, "f")])
        self.refused("tensor `c` has the type complex64 (14), which is not supported",
                     weights=[integer(2, COMPLEX64) + part(8, "c")])
        self.refused("tensor `u` has the type unknown (99), which is not supported", weights=[integer(2, 99) + part(8, "u")])
        self.refused("tensor `w` is float32[2, 2], but it has 12 bytes", weights=[tensor("w", [2, 2], [1, 2, 3])])
        self.refused("tensor `w` is float32[2, 2], but it has 3 numbers", weights=[tensor("w", [2, 2], [1, 2, 3], raw=False)])
        self.refused("tensor `w` has a dimension of size -1", weights=[tensor("w", [-1], [])])
        self.refused("tensor `w` has a dimension of size 4611686018427387904", weights=[tensor("w", [4, 1 << 62], [])])
        self.refused("tensor `w` has 9 dimensions; at most 8 are supported", weights=[tensor("w", [1] * 9, [1])])
        self.refused("a name or text in it is not UTF-8", nodes=[node("Relu", ["x"], ["y"]) + part(3, b"\xff")])
        (self.folder / "a.onnx").write_bytes(model() + part(7, part(15, b"")))
        self.fails('load_onnx("a.onnx")', "a.onnx has sparse weights, which are not supported")

    def test_tl_models(self):
        self.write(**LAYER)
        result = run("models", "a.onnx", cwd=self.folder)
        self.assertEqual(result.out.splitlines(), ["file          a.onnx", "architecture  ONNX, operators of version 13, by tests",
                                                   "inputs        x float32[n, 2]", "outputs       y float32[n, 3]", "parameters    9",
                                                   "  float32     9 in 2 tensors, 0.0 MB", "operators     1 Gemm, 1 Relu"], result.err)
        about = json.loads(run("models", "--json", "a.onnx", cwd=self.folder).out)
        self.assertEqual((about["operators"], about["bytes"], about["inputs"][0]["shape"]), ({"Gemm": 1, "Relu": 1}, 36, ["n", 2]))

    def test_other_files(self):
        self.fails('load_onnx("a.onnx")', 'cannot open a.onnx: No such file or directory')
        for bytes, text in ((b"", "a.onnx is not an ONNX model: it has no graph"), (b"GGUF\3\0\0\0", "a.onnx is not an ONNX model, or it is incomplete or damaged"),
                            (integer(1, 8), "a.onnx is not an ONNX model: it has no graph")):
            (self.folder / "a.onnx").write_bytes(bytes)
            self.fails('load_onnx("a.onnx")', text)

    def test_files_that_end_early(self):
        """A model cut off anywhere is refused."""
        whole = model(**LAYER)
        for length in range(len(whole)):
            (self.folder / f"{length}.onnx").write_bytes(whole[:length])
        result = self.run_here(f"""for length in 0..{len(whole)} {{
    print(try {{ load_onnx(f"{{length}}.onnx"); "loaded" }} catch e {{ e.kind }})
}}""")
        self.assertEqual(result.status, 0, result.err)
        self.assertEqual(len(result.out.splitlines()), len(whole))
        self.assertLessEqual(set(result.out.splitlines()), {"format", "value"})

    def test_the_library_is_missing(self):
        self.write(**LAYER)
        (self.folder / "libprotobuf-c.so.1").write_text("not a library")
        result = run("-e", 'load_onnx("a.onnx")', cwd=self.folder, env={"LD_LIBRARY_PATH": str(self.folder)})
        self.assertEqual(result.status, 1)
        self.assertIn("ONNX models need the library libprotobuf-c.so.1, which cannot be loaded: ", result.err)
        self.assertIn("help: on Debian and Ubuntu: apt install libprotobuf-c1", result.err)

    def test_networks_of_pytorch(self):
        made = subprocess.run(["/usr/bin/python3", "-c", TORCH], cwd=self.folder, capture_output=True, text=True, timeout=300)
        if "No module named 'torch'" in made.stderr:
            self.skipTest("PyTorch is not installed (python3-torch)")
        self.assertEqual(made.returncode, 0, made.stderr)
        self.prints("""for name in list("convolutions", "encoder", "reader") {
    let m = load_onnx(name + ".onnx")
    let wanted = parse_json(read_file(name + ".json"))
    let y = m.forward([tensor(x) for x in wanted["x"]])
    print(y.shape, max(abs(y - tensor(wanted["y"]))) < 1e-5)
}
let m = load_onnx("convolutions.onnx", learnable: true)
let x = tensor(parse_json(read_file("convolutions.json"))["x"][0])
print(len(parameters(m)), gradcheck(fn(x) { m.forward(x) }, x, eps: 1e-2, tolerance: 1e-2))
let reader = load_onnx("reader.onnx", learnable: true)
print(gradcheck(fn(x) { reader.forward({"x": x, "lengths": [5, 3, 1]}) }, randn([3, 5, 3]), eps: 1e-2, tolerance: 1e-2))""",
                    "[2, 5] true", "[2, 7, 16] true", "[6, 3, 6] true", "8 true", "true")


if __name__ == "__main__":
    unittest.main()
