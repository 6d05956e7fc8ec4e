"""A row is enough: in a copy of the tree an elementwise operation is added by two rows, a reduction by its formulas
and a row, and a quantised dtype by a row and its two decoders. The copy is built, and everything else is there."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, fixture

FORMULA = "MAP1F(SOFTSIGN, x / (C(1) + abs(x)), quotient(up, square(add(of(abs, x), number(1)))))\n"
OPERATION = """OP_MAP(softsign, SOFTSIGN, FLOAT, OWN, "softsign(x: tensor) -> tensor", "Elementwise",
       "x / (1 + abs(x)).\\nsoftsign(-1.0)")
"""
FOLD = "FOLD(SUM_CUBE, SUM, x * squared(x))\n"
REDUCTION = """REDUCTION(MEAN_CUBE, NONE, SUM_CUBE, AS_FLOATS, share(s, n), mul(up, mul(square(x), number(3 / n))))
"""
REDUCED = """OP_REDUCE(mean_cube, mean_cube, MEAN_CUBE, FLOAT, DERIVED(MEAN_CUBE), WIDE,
          "mean_cube(x: tensor, dim: int?, keepdim: bool = false) -> tensor", "Reductions",
          "The mean of x * x * x.\\nmean_cube([1, 2])")
"""
DTYPE = 'DTYPE(Q8_TWICE, "q8_twice", QUANT, 32, 34, "", 99, SINGLE)\n'
DECODER = """SIMD_INLINE void group_of_Q8_TWICE(const char *row, int64_t first, Floats *weights) {
    group_of_Q8_0(row, first, weights);
    for (int i = 0; i < GROUP_VECTORS; i++) weights[i] *= 2.0f;
}

"""
SHADER_DECODER = """float weight_of_Q8_TWICE(uint64_t block, uint at) {
    return 2.0 * weight_of_Q8_0(block, at);
}

"""
# What is put before which line of which file.
CHANGES = [
    ("src/catalog/maps.def", FORMULA, "MAP1F(SILU,"),
    ("src/catalog/ops.def", OPERATION, "OP_MAP(silu,"),
    ("src/catalog/reductions.def", FOLD, "FOLD(PROD,"),
    ("src/catalog/reductions.def", REDUCTION, "REDUCTION(MEAN,"),
    ("src/catalog/ops_composed.def", REDUCED, "OP_REDUCE(prod,"),
    ("src/catalog/dtypes.def", DTYPE, "DTYPE(Q6_K,"),
    ("src/device/cpu/simd/blocks_more.h", DECODER, "SIMD_INLINE void group_of_Q5_0("),
    ("shaders/include/quantised.glsl", SHADER_DECODER, "float weight_of_Q4_1("),
]

OPERATION_SCRIPT = """
let values = [[-3.0, -0.5, 0.0], [0.25, 1.0, 7.0]]
for dtype in [float16, bfloat16, float32, float64] {
    let x = tensor(values).to(dtype)
    assert(max(abs(softsign(x) - x / (1 + abs(x)))) < 0.004, "a number")
}
assert(softsign([3]).dtype == float32 && [1.0].softsign()[0] == 0.5 && softsign(1.0) == 0.5, "dtypes and forms")
let slopes = grad(fn(x) { sum(softsign(x) * softsign(x)) }, tensor(values))
let w = tensor(values)
assert(max(abs(slopes - 2 * w / (1 + abs(w)) ** 3)) < 0.00001, "a gradient")
"""
REDUCTION_SCRIPT = """
let x = tensor([[-3.0, -0.5, 0.0], [0.25, 1.0, 2.0]])
for dtype in [float16, bfloat16, float32, float64] {
    assert(max(abs(mean_cube(x.to(dtype), 1) - mean(x * x * x, 1))) < 0.05, "rows")
    assert(max(abs(x.to(dtype).mean_cube(0, keepdim: true) - mean(x * x * x, 0, keepdim: true))) < 0.05, "columns")
}
assert(mean_cube([1, 2]) == 4.5 && mean_cube(tensor([2, 4])).dtype == float32, "integers")
let wide = randn([3, 100000], seed: 1)
assert(max(abs(mean_cube(wide, 1) - mean(wide ** 3, 1))) < 0.0001, "rows in parts")
let slopes = grad(fn(x) { sum(mean_cube(x, 1) * mean_cube(x, 1)) }, x)
assert(max(abs(slopes - 2 * mean_cube(x, 1, keepdim: true) * x * x)) < 0.0001, "a gradient")
assert(isnan(mean_cube(zeros([0]))), "no numbers")
"""
DTYPE_SCRIPT = """
let m = load_model(args()[0])
let n = load_model(args()[1])
let w = get_tensor(m, "q8_0")
let twice = get_tensor(n, "q8_0")
assert(str(twice.dtype) == "q8_twice", "its name")
let numbers = w as float32
assert(sum(abs((twice as float32) - 2 * numbers)) == 0, "its numbers")
for rows in [1, 3, 40] {
    let x = randn([rows, numbers.shape[1]], seed: 1)
    let want = x @ transpose(2 * numbers)
    let got = linear(x, twice)
    assert(max(abs(got - want)) <= 0.001 * max(abs(want)), "products")
}
assert(sum(abs(embedding(twice, [1]) - 2 * numbers[1:2])) == 0, "rows")
"""


class Rows(unittest.TestCase):
    every_device = True

    def build(self, copy):
        vulkan = os.environ.get("TL_DEVICE", "cpu") != "cpu"
        settings = ["-DCMAKE_BUILD_TYPE=Debug", "-DBUILD_TESTING=OFF", f"-DTL_VULKAN={'ON' if vulkan else 'OFF'}"]
        environment = {**os.environ, "CCACHE_BASEDIR": str(copy), "CCACHE_NOHASHDIR": "1"}
        for command in (["cmake", "-G", "Ninja", *settings, "-S", copy, "-B", copy / "build"],
                        ["cmake", "--build", copy / "build", "--target", "tl"]):
            result = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
            self.assertEqual(result.returncode, 0, result.stdout[-4000:] + result.stderr[-2000:])
        return copy / "build" / "tl"

    def change(self, copy):
        for name in ("src", "include", "shaders", "cmake", "std"):
            shutil.copytree(ROOT / name, copy / name)
        shutil.copy(ROOT / "CMakeLists.txt", copy)
        for name, added, place in CHANGES:
            text = (copy / name).read_text()
            self.assertEqual(text.count(f"\n{place}"), 1, f"{name}: {place}")
            (copy / name).write_text(text.replace(f"\n{place}", f"\n{added}{place}"))

    def run_copy(self, program, *arguments):
        result = subprocess.run([program, *arguments], capture_output=True, text=True, env={**os.environ, "TL_MEMORY_CHECK": "strict"})
        return result.returncode, result.stdout + result.stderr

    def test_rows_are_enough(self):
        data = bytearray(fixture(self, "models/quant-blocks.gguf").read_bytes())
        place = data.index(b"q8_0") + len("q8_0") + 4 + 2 * 8  # after the number of dimensions and two of them
        self.assertEqual(data[place:place + 4], b"\x08\0\0\0")
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder).resolve()
            self.change(copy)
            program = self.build(copy)
            for script in (OPERATION_SCRIPT, REDUCTION_SCRIPT):
                status, output = self.run_copy(program, "-e", script)
                self.assertEqual(status, 0, output)
            (copy / "model.gguf").write_bytes(data)
            data[place] = 99
            (copy / "twice.gguf").write_bytes(data)
            status, output = self.run_copy(program, "-e", DTYPE_SCRIPT, copy / "model.gguf", copy / "twice.gguf")
            self.assertEqual(status, 0, output)
            self.assertIn("x / (1 + abs(x)).", self.run_copy(program, "help", "softsign")[1])
            self.assertIn("The mean of x * x * x.", self.run_copy(program, "help", "mean_cube")[1])
            for wrong, message in (
                    ("softsign(x) @ x", "cannot multiply float32[2, 3] by float32[2, 3]: inner sizes 3 and 2 differ"),
                    ("mean_cube(x, 0) @ x", "cannot multiply float32[3] by float32[2, 3]: inner sizes 3 and 2 differ")):
                (copy / "wrong.tl").write_text(f"let x = zeros([2, 3])\nlet y = {wrong}\n")
                status, output = self.run_copy(program, "check", copy / "wrong.tl")
                self.assertEqual(status, 1)
                self.assertIn(message, output)


def named_rows():
    """The names of operations, and those of formulas, folds and reductions as enumerators have them."""
    catalog = ROOT / "src" / "catalog"
    text = {name: (catalog / f"{name}.def").read_text() for name in ("ops", "ops_composed", "maps", "reductions")}
    operations = re.findall(r"^OP_(?:MAP|RUN|REDUCE|OVERLOAD)\((\w+)", text["ops"] + text["ops_composed"], re.M)
    formulas = re.findall(r"^MAP\d[FI]?\((\w+)", text["maps"], re.M)
    reductions = re.findall(r"^(?:FOLDF?|REDUCTION)\((\w+)", text["reductions"], re.M)
    return operations, formulas, reductions


# Where code may decide by the name of a row, which a column of the row could not say, and by which names.
DECIDES = {
    "shaders/include/joins.glsl": "the kernel that adds a residual or multiplies by a gate: MAP_ADD MAP_SWIGLU",
    "shaders/map.comp": "numbers of one dtype are moved as words: MAP_COPY",
    "src/device/cpu/arg_reduce.c": "the kernel of both: FOLD_MAX",
    "src/device/vulkan/kernels/join.c": "the host's side of joins.glsl: MAP_ADD MAP_SWIGLU",
    "src/device/vulkan/kernels/map.c": "the host's side of map.comp: MAP_COPY",
    "src/eval/numbers.c": "formulas for lists of plain numbers: OP_all OP_any OP_argmax OP_argmin OP_count_nonzero OP_logsumexp "
                          "OP_max_along OP_mean OP_median OP_min_along OP_norm OP_prod OP_std OP_sum OP_var",
    "src/tensor/map.c": "the opposite of a bool is not the complement of its bits; small powers are products: MAP_BIT_NOT MAP_POW",
    "src/tensor/scalar.c": "the same; integers that have no quotient or power: MAP_BIT_NOT MAP_DIV MAP_FLOOR_DIV MAP_MOD MAP_POW MAP_REM",
}
# Words that are compared with a text or stand in a table of words, and are the names of operations by chance.
WORDS = {
    "src/catalog/signature.c": "kinds of parameters: any",
    "src/chat/template_lists.c": "Jinja's filters: max min sort sum unique",
    "src/chat/template_numbers.c": "Jinja's filters: abs ceil floor round",
    "src/chat/template_tests.c": "Jinja's tests: eq ge gt le lt ne",
    "src/check/equation_plan.c": "projections of equations: concat max min sum",
    "src/check/logic_names.c": "types: any",
    "src/check/logic_rules.c": "aggregates of rules: max min",
    "src/check/logic_terms.c": "reductions that are not aggregates of rules: mean",
    "src/check/logic_types.c": "aggregates of rules: sum",
    "src/check/program.c": "semirings: log sample topk",
    "src/check/types.c": "types: any",
    "src/device/alike.c": "functions of formulas: abs",
    "src/device/settings.c": "what TL_MEMORY_CHECK may say: all",
    "src/generate/json_schema.c": "keywords of schemas: maximum minimum",
    "src/learn/learn_settings.c": "settings of learn: step",
    "src/check/equation_sums.c": "projections of equations: sum",
    "src/main/options.c": "options: all",
    "src/model/folder_encoder.c": "ways of pooling, and activations: mean swiglu",
    "src/model/folder_names.c": "names of weights: norm",
    "src/parser/embedding.c": "settings of embedding: all",
    "src/parser/equation.c": "projections of equations: max min",
    "src/parser/logic.c": "aggregates of rules: min",
    "src/logic/store.c": "types of columns: any",
    "src/parser/report.c": "words of other languages: var",
    "src/ranks/ranks.c": "reductions over ranks: sum",
    "src/serve/request.c": "fields of requests: frequency_penalty presence_penalty temperature top_k top_p",
    "src/shape/indexes.c": "reductions of losses: mean",
    "src/shape/shape.c": "verbs of messages: add approx_equal div eq ge gt le lt mul ne sub",
    "src/tensor/graph.c": "ways to aggregate: mean sum",
    "src/tensor/norm.c": "kinds of norms: max",
}


# Names of elementwise operations that are functions of <math.h>, which formulas and other code call, and those that are
# also names of what has nothing to do with the operation.
MATH = set("abs acos asin atan atan2 ceil cos cosh erf exp expm1 floor isfinite isinf isnan log log10 log1p log2 pow round sin sinh "
           "sqrt tan tanh trunc".split())
CHANCE = set("add clamp maximum minimum sign square step".split())
# Where code names the others next to their rows.
NAMED = {
    "src/eval/formula.c": "operators of plain numbers: div eq ge gt le lt mod mul ne sub where",
    "src/eval/scalar.c": "the same: div eq ge gt le lt mod mul ne sub",
    "src/logic/analyse.c": "a place: where",
    "src/catalog/derivatives.h": "the words of derivatives in maps.def: div eq fused_affine gt mul neg sub where",
    "src/tensor/gradient/rules_map.c": "derivatives by reference: mul",
    "src/tensor/scalar.c": "a place: where",
}


class Names(unittest.TestCase):
    """What is said of an operation is said in its row: elsewhere its name stands where it is computed or called, and
    nothing is looked up or decided by it but what the lists above give the reason for."""

    @staticmethod
    def found(pattern, *folders):
        names = {}
        for folder in folders:
            for path in sorted((ROOT / folder).rglob("*.*")):
                if path.suffix not in (".c", ".h", ".glsl", ".comp"):
                    continue
                matches = pattern.findall(re.sub(r"//.*", "", path.read_text()))
                words = {word for match in matches for word in match if word}
                if words:
                    names[str(path.relative_to(ROOT))] = " ".join(sorted(words))
        return names

    def test_nothing_is_decided_by_a_name(self):
        operations, formulas, reductions = named_rows()
        row = rf"((?:OP_(?:{'|'.join(operations)})|MAP_(?:{'|'.join(formulas)})|FOLD_(?:{'|'.join(reductions)})))\b"
        pattern = re.compile(rf"\bcase {row}|[!=]= *{row}|\b{row} *[!=]=|\[{row}\] *=")
        self.assertEqual(self.found(pattern, "src", "shaders"),
                         {path: reason.split(": ")[-1] for path, reason in DECIDES.items()})

    def test_an_elementwise_operation_is_named_in_its_rows(self):
        """In code, of which texts and comments are no part; OP_exp calls the row. std/ and printed documents use the name."""
        rows = re.findall(r"^OP_MAP\((\w+)", (ROOT / "src" / "catalog" / "ops.def").read_text(), re.M)
        self.assertLess(MATH | CHANCE, set(rows))
        pattern = re.compile(rf'"(?:[^"\\\n]|\\.)*"|\b({"|".join(set(rows) - MATH - CHANCE)})\b()')
        self.assertEqual(self.found(pattern, "src", "shaders"), {path: reason.split(": ")[-1] for path, reason in NAMED.items()})

    def test_words_that_are_names(self):
        operations, _, _ = named_rows()
        name = f'"({"|".join(operations)})"'
        pattern = re.compile(rf"strcmp\([^;()]*, {name}\)|\{{ *{name} *[,}}]")
        self.assertEqual(self.found(pattern, "src"), {path: reason.split(": ")[-1] for path, reason in WORDS.items()})

    def test_each_is_computed_in_one_place(self):
        operations, _, _ = named_rows()
        files = {}
        for path in sorted((ROOT / "src").rglob("*.c")):
            for name in re.findall(r"^Status op_run_(\w+)\(", path.read_text(), re.M):
                files.setdefault(name, []).append(path.parent)
        self.assertEqual({name: places for name, places in files.items() if name in operations and places != [ROOT / "src" / "tensor"]}, {})


class Shaders(unittest.TestCase):
    def test_no_number_of_a_row_is_written(self):
        """Shaders name dtypes, formulas and optimizers as the catalog counts them."""
        dtypes = re.findall(r"^DTYPE\((\w+)", (ROOT / "src" / "catalog" / "dtypes.def").read_text(), re.M)
        declared = re.compile(rf"\b(?:{'|'.join(dtypes)}|MAP_\w+|OPTIMIZER_\w+) = \d")
        compared = re.compile(r"\b(?:\w*dtype|\w*DTYPE|op|JOIN|RULE) *(?:[=!<>]=|[<>]) *\d")
        for path in sorted((ROOT / "shaders").rglob("*.*")):
            text = path.read_text()
            self.assertEqual(declared.findall(text) + compared.findall(text), [], path)

    def test_constants_of_the_host_are_in_its_headers(self):
        """C lays them out as structs, so their ids count from 0; from 12 on they are the shader's own."""
        for path in sorted((ROOT / "shaders" / "host").glob("*.h")):
            text = path.read_text()
            first = 3 if "JOIN_CONSTANTS\n" in text else 2 if "PRODUCT_CONSTANTS\n" in text else \
                1 if re.search(r"^ +\w+_CONSTANTS$", text, re.M) else 0
            for block in re.findall(r"^CONSTANTS\(.*?^CONSTANTS_END", text, re.M | re.S):
                ids = [int(number) for number in re.findall(r"^ +CONSTANT\((\d+),", block, re.M)]
                self.assertEqual(ids, list(range(first, first + len(ids))), path)
        for path in sorted((ROOT / "shaders").rglob("*.*")):
            if path.parent.name == "host":
                continue
            for number in re.findall(r"constant_id = (\d+)", path.read_text()):
                self.assertGreaterEqual(int(number), 12, path)
            self.assertNotIn("push_constant", path.read_text(), path)


if __name__ == "__main__":
    unittest.main()
