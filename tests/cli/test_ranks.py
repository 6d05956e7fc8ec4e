"""One program on several processes: collectives, their gradients, disagreement, and how all of them end."""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

import language_models
from terminal import Terminal
from tl import ROOT, TL, fixture, run, run_code

PLUGIN = Path(TL).parent / "libtl_mpi.so"

COLLECTIVES = """
fn same(name, got, wanted) {
    let ok = shape(got) == shape(wanted) and dtype(got) == dtype(wanted)
        and to_list(got as float64) == to_list(wanted as float64)
    if not ok { error(f"{name}: {got} is not {wanted}") }
}

// What a rank contributes: [4, 6], different on each, its numbers whole, as the dtype, in a layout.
fn given(r, type, layout) {
    let x = ((arange(24) * 7 + r * 5) % 11 - 3).reshape([4, 6])
    let x = match layout { "transposed" => x.reshape([6, 4]).T, "sliced" => cat(list(x, x), 1)[:, 3:9], _ => x }
    tensor(x, type)
}

let n = world_size(); let r = rank()
for type in list(float32, float64, float16, bfloat16, int64, int32, int8, uint8) {
    for layout in list("plain", "transposed", "sliced") {
        let all = [given(i, type, layout) for i in 0..n]
        let x = all[r]; let sum = all[0]; let most = all[0]; let least = all[0]
        for i in 1..n {
            sum = sum + all[i]
            most = maximum(most, all[i])
            least = minimum(least, all[i])
        }
        same("sum", all_reduce(x), sum)
        same("sum in any order", all_reduce(x, fast: true), sum) // small whole numbers: exact in every order
        same("max in any order", all_reduce(x, "max", fast: true), most)
        same("min in any order", wait(all_reduce(x, "min", wait: false, fast: true)), least)
        same("max", all_reduce(x, "max"), most)
        same("min", all_reduce(x, op: "min"), least)
        same("all_gather", all_gather(x), cat(all, 0))
        same("reduce_scatter", reduce_scatter(x), chunk(sum, n, 0)[r])
        same("all_to_all", all_to_all(x), cat([chunk(all[i], n, 0)[r] for i in 0..n], 0))
        for root in 0..n { same("broadcast", broadcast(x, root), all[root]) }
    }
}
for type, large in list((bfloat16, 256.0), (float16, 2048.0)) { // where a sum of ones in the dtype stands still
    same("a wide sum", all_reduce(tensor([if r == 0 { large } else { 1.0 }], type)), tensor([large + (n - 1.0)], type))
}
let flags = [r == 0, false, true]
same("any", all_reduce(flags, op: "max"), [true, false, true])
same("all", all_reduce(flags, op: "min"), [n == 1, false, true])
same("bools", all_gather([r == 0, true]), [[i == 0, true] for i in 0..n].reshape([2 * n]))
same("nothing", all_reduce(zeros([0, 3])), zeros([0, 3]))
same("odd", all_reduce(ones([7]) * (r + 1.0)), ones([7]) * (n * (n + 1) / 2.0))
for type in list(float32, float16, bfloat16) {
    same("a mean", all_reduce(tensor([r * 2.0], type), "mean"), tensor([n - 1.0], type))
}
same("a mean in any order", all_reduce([r * 2.0], "mean", fast: true), [n - 1.0])
same("a product in any order", all_reduce([r + 2], "prod", fast: true), [match n { 1 => 2, 2 => 6, _ => 120 }])
same("nothing in any order", all_reduce(zeros([0, 3]), fast: true), zeros([0, 3]))
same("a product", all_reduce([r + 2], "prod"), [match n { 1 => 2, 2 => 6, _ => 120 }])
let two = all_reduce(list([1.0], [[2.0, 3.0]]))
same("a list", two[1], [[2.0, 3.0]] * n)
if n > 1 {
    let next = (r + 1) % n; let before = (r + n - 1) % n
    if r == 0 { send(given(0, float32, "sliced"), next, 7) }
    let got = recv(before, 7)
    if r != 0 { send(got + 1.0, next, 7) }
    same("a ring", got, given(0, float32, "sliced") + (before * 1.0))
}
barrier()

// Under way together: waited for in another order on each rank, some never, next to calls that wait.
let calls = list(fn(x, go) { all_reduce(x, "sum", go) }, fn(x, go) { all_reduce(x, op: "max", wait: go) }, fn(x, go) { all_gather(x, go) },
                 fn(x, go) { reduce_scatter(x, wait: go) }, fn(x, go) { broadcast(x, n - 1, go) }, fn(x, go) { all_to_all(x, go) })
let xs = [given(r + i, float32, "sliced") for i in 0..len(calls)]
let waited = [calls[i](xs[i], true) for i in 0..len(calls)]
let transfers = [calls[i](xs[i], false) for i in 0..len(calls)]
all_reduce(xs[0], wait: false)
for i in 0..len(calls) {
    let k = (i + r) % len(calls)
    if k > 1 { same(f"under way {k}", wait(transfers[k]), waited[k]) }
}
for k in 0..2 {
    all_gather(xs[0])
    same(f"under way {k}", wait(transfers[k]), waited[k])
}
let nested = wait(all_reduce(list(xs[0], list(xs[1], 2.0)), wait: false))
same("a list under way", nested[1][0], all_reduce(xs[1]))
if float(nested[1][1]) != 2.0 * n { error("a number under way") }
if n > 1 {
    let sent = send(xs[0], (r + 1) % n, 3, wait: false)
    let got = recv((r + n - 1) % n, 3, wait: false)
    same("received", wait(got), given((r + n - 1) % n, float32, "sliced"))
    if wait(sent) != none { error("what is sent has no value") }
}
print("all is well")
"""

GRADIENTS = """
// The loss of the program is the sum of those of its ranks: sum of w_r * y_r.
let n = world_size(); let r = rank()
fn weights(i) { arange(4) * 1.0 + i * 10.0 }
fn near(name, got, wanted) { if sum(abs(got - wanted)) > 1e-5 { error(f"{name}: {got} is not {wanted}") } }
let x = [1.0, 2.0, 3.0, 4.0] * (r + 1.0)
let all = weights(0)
for i in 1..n { all = all + weights(i) }
near("sum", grad(fn(x) { sum(all_reduce(x) * weights(r)) }, x), all)
near("sum in any order", grad(fn(x) { sum(all_reduce(x, fast: true) * weights(r)) }, x), all)
near("mean", grad(fn(x) { sum(all_reduce(x, "mean") * weights(r)) }, x), all / n)
near("under way", grad(fn(x) { let y = all_reduce(x, wait: false); let z = sum(x); z + sum(wait(y) * weights(r)) }, x), all + 1.0)
near("broadcast", grad(fn(x) { sum(broadcast(x, 1 % n) * weights(r)) }, x), if r == 1 % n { all } else { zeros([4]) })
near("all_gather", grad(fn(x) { sum(all_gather(x) * (arange(4 * n) + r)) }, x),
     (arange(4) + 4 * r) * n * 1.0 + n * (n - 1) / 2.0)
near("reduce_scatter", grad(fn(x) { sum(reduce_scatter(x) * (r + 1.0)) }, x),
     cat([ones([4 / n]) * (i + 1.0) for i in 0..n], 0))
near("all_to_all", grad(fn(x) { sum(all_to_all(x) * weights(r)) }, x),
     cat([chunk(weights(i), n, 0)[r] for i in 0..n], 0))
near("twice", grad(fn(x) { sum(grad(fn(x) { sum(all_reduce(x) ** 3.0) }, x)) }, x), 6.0 * n * n * all_reduce(x))
print("all is well")
"""

TRAINING = """
import "parallel.tl"
// Every rank has its part of the batch and the same parameters.
seed(1)
let x = randn([8, 3]); let y = x @ [[1.0], [-2.0], [0.5]] + 0.25
let w = learnable(zeros([3, 1])); let b = learnable(zeros([1]))
let mine = chunk(x, world_size(), 0)[rank()]; let wanted = chunk(y, world_size(), 0)[rank()]
learn {
    epochs: 300, optimizer: adam(lr: 0.1), progress: false
    objective: mean((mine @ shared(w) + shared(b) - wanted) ** 2)
}
for p in list(w, b) { if to_list(broadcast(p)) != to_list(p) { error("the ranks have different parameters") } }
print([round(v, 3) for v in to_list(w.flatten())], round(b[0], 3))
"""

PARTS = """
import "parallel.tl"
seed(3)
let x = randn([5, 6])
seed(4)
let first = ColumnLinear::new(6, 8); let second = RowLinear::new(8, 2)
let loss = mean((second.forward(tanh(first.forward(x))) - 1.0) ** 2)
backward(loss)
print(round(float(loss), 6))
print([round(v, 4) for v in to_list(all_gather(grad(second.w)).sum(0))])
print([round(v, 4) for v in to_list(all_gather(grad(first.w).T).sum(0))])
"""


# The layers in parts next to whole ones with the same numbers.
VOCABULARY = """
import "parallel.tl"
seed(3)
let ids = [4, 0, 9, 4, 7, 2]; let targets = [0, 9, 4, 7, 2, 5]
let words = VocabularyEmbedding::new(10, 8); let out = VocabularyOutput::new(8, 10)
let loss = out.loss(out.forward(tanh(words.forward(ids))), targets)
backward(loss)
fn whole_rows(part) { let x = zeros([10, 8]); x[words.first:words.first + len(part)] = part; all_reduce(x) }
fn whole_columns(part) { let x = zeros([8, 10]); x[:, out.first:out.first + part.shape[1]] = part; all_reduce(x) }
let table = learnable(whole_rows(detach(words.table))); let w = learnable(whole_columns(detach(out.w)))
let plain = cross_entropy(tanh(embedding(table, ids)) @ w, targets)
backward(plain)
if abs(plain - loss) > 1e-5 { error(f"the loss {loss} is not {plain}") }
if max(abs(grad(table) - whole_rows(grad(words.table)))) > 1e-5 { error("the gradient of the embedding") }
if max(abs(grad(w) - whole_columns(grad(out.w)))) > 1e-5 { error("the gradient of the output") }
print(round(float(loss), 4))
"""

SEQUENCE = """
import "parallel.tl"
seed(5)
let x = randn([12, 8, 4]); let y = randn([12, 8, 4]); let z = randn([12, 8, 4]); let weights = randn([12, 8, 4])
fn own(x) { chunk(x, world_size(), 0)[rank()] }
for causal in [false, true] {
    let got = sequence_attention(own(x), own(y), own(z), causal: causal)
    let wanted = attention(x, y, z, causal: causal)
    if max(abs(all_gather(got) - wanted)) > 1e-5 { error("attention over parts of a sequence") }
    fn parts(x, y, z) { sum(sequence_attention(x, y, z, causal: causal) * own(weights)) }
    fn whole(x, y, z) { sum(attention(x, y, z, causal: causal) * weights) }
    let gots = list(grad(fn(q) { parts(q, own(y), own(z)) }, own(x)), grad(fn(k) { parts(own(x), k, own(z)) }, own(y)),
                    grad(fn(v) { parts(own(x), own(y), v) }, own(z)))
    let wants = list(grad(fn(q) { whole(q, y, z) }, x), grad(fn(k) { whole(x, k, z) }, y), grad(fn(v) { whole(x, y, v) }, z))
    for i in 0..3 { if max(abs(all_gather(gots[i]) - wants[i])) > 1e-5 { error(f"gradient {i}") } }
}
print("all is well")
"""

# Dropout, an order of rows, batches that make a step together, a last one that is smaller, two dtypes.
DISTRIBUTED = """
seed(rank() * SPREAD + 1)
let x = arange(500).reshape([100, 5]) % 7 / 3.5 - 1.0
let y = x @ [[1.0], [-2.0], [0.5], [3.0], [0.0]] + 0.25
let w = learnable(randn([5, 16])); let b = learnable(tensor(zeros([16]), float64)); let v = learnable(randn([16, 1]) * 0.1)
let apart = learnable([7.0])
let r = learn {
    let hidden = dropout(tanh(x @ w + (b as float32))) @ v
    objective: mean((hidden - y) ** 2), optimizer: adam(lr: 0.02), epochs: EPOCHS, batch: 22 of (x, y), shuffle: true
    dropout: 0.1, accumulate: 2, clip_grad_norm: 1.0, ema: 0.9, progress: false, validate: mean((tanh(x @ w) @ v - y) ** 2)
    distribute: data, pieces: PIECES, save: "run.safetensors", resume: "run.safetensors"
}
for p in list(w, b, v) { if to_list(broadcast(p)) != to_list(p) { error("the ranks have different parameters") } }
print(r.losses, r.validations, r.grad_norms)
print(to_list(w), to_list(b), to_list(v), apart)
"""

# Parameters of several blocks that ranks cut, of less than one, and of three dtypes.
SHARDED = """
seed(rank() + 1)
let x = arange(6400).reshape([100, 64]) % 7 / 3.5 - 1.0
let y = x[:, 0:1] * 2.0 - x[:, 5:6]
let w = learnable(randn([64, 100]) * 0.1); let b = learnable(tensor(zeros([100]), float64))
let h = learnable(tensor(randn([100, 50]) * 0.1, float16)); let v = learnable(randn([50, 1]) * 0.1)
let apart = learnable([7.0])
let r = learn {
    let hidden = dropout(tanh(tanh(x @ w + (b as float32)) @ (h as float32))) @ v
    objective: mean((hidden - y) ** 2), optimizer: adam(lr: 0.02), epochs: EPOCHS, batch: 22 of (x, y), shuffle: true
    dropout: 0.1, accumulate: 2, clip_grad_norm: 0.5, ema: 0.9, progress: false, MORE
    distribute: data, save: "run.safetensors", resume: "run.safetensors"
}
for p in list(w, b, h, v) { if to_list(broadcast(p)) != to_list(p) { error("the ranks have different parameters") } }
print(r.losses, r.grad_norms)
print(sum(w), sum(b), sum(h), sum(v), apart)
"""


# BatchNorm twice, and pieces of unlike sizes: a batch of 22 and a last one of 12 rows.
NORMALISED = """
import "layers.tl"
seed(rank() + 1)
let x = arange(500).reshape([100, 5]) % 7 / 3.5 - 1.0
let y = x @ [[1.0], [-2.0], [0.5], [3.0], [0.0]] + 0.25
let first = BatchNorm::new(5); let w = learnable(randn([5, 16])); let second = BatchNorm::new(16, momentum: 0.3)
let v = learnable(randn([16, 1]) * 0.1)
fn forward(x) { second.forward(tanh(first.forward(x) @ w)) @ v }
let r = learn {
    objective: mean((forward(x) - y) ** 2), optimizer: adam(lr: 0.02), epochs: 6, batch: 22 of (x, y), shuffle: true
    progress: false, validate: mean((forward(x) - y) ** 2), distribute: data, MORE
}
let running = list(first.running_mean, first.running_var, second.running_mean, second.running_var)
for p in running { if to_list(broadcast(p)) != to_list(p) { error("the ranks have different statistics") } }
print(r.losses, r.validations)
print([to_list(p) for p in running])
"""


def is_child(stat, parent):
    try:
        return int(stat.read_text().rsplit(")", 1)[1].split()[1]) == parent
    except OSError:  # it has ended meanwhile
        return False


def children_of(pid):
    return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if is_child(stat, pid)]


def ranks(n, code, *options, command="run", timeout=300, folder=None, watch=None, lines=None, **env):
    if not shutil.which("mpirun") or not PLUGIN.exists():
        if os.environ.get("CI") == "true":
            raise AssertionError("mpirun or libtl_mpi.so is missing")
        raise unittest.SkipTest("Open MPI is missing")
    with contextlib.ExitStack() as stack:
        folder = folder or stack.enter_context(tempfile.TemporaryDirectory())
        Path(folder, "program.tl").write_text(code)
        environment = {**os.environ, "NO_COLOR": "1", "TL_MEMORY_CHECK": "strict", "TL_DEVICE": "cpu",
                       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TL_PATH": str(ROOT / "std"),
                       "OMPI_MCA_rmaps_base_oversubscribe": "1",
                       "ASAN_OPTIONS": "detect_leaks=0", **env}  # Open MPI and what it loads leave memory
        words = (*command.split(), *options, "program.tl") if lines is None else ("repl",)
        command = ["mpirun", "-n", str(n), TL, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE, text=True,
                              cwd=folder, env=environment) as process:
            if watch:
                watch(process)
            try:
                out, err = process.communicate(input=lines or "", timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(command, process.returncode, out, err)


FORETOLD_CALLS = """
let r = rank(); let kept = randn([100, 10 * (r + 1)])
let sum = all_reduce(randn([50, 60]), "mean"); let more = all_reduce(kept[:, 0:2], fast: true)
let sizes = all_gather(tensor([r + 3, 7]))  // every rank knows them
let large = zeros([sizes[2] as int * 1000, 10])
let part = reduce_scatter(randn([40, 30])); let turned = all_to_all(randn([8, 100]))
if r == 0 { send(large, 1); send(tensor([5]), 1, 1) } else { large = recv(0) }
if r == 1 { large = zeros([recv(0, 1)[0] as int * 3000]) }
print("peak", r, memory().peak)
"""
FORETOLD_STEPS = """
let w = learnable(randn([64, 128])); let v = learnable(randn([128, 8])); let b = learnable(zeros([8]))
let x = randn([32, 64]); let y = randn([32, 8])
learn {
    batch: 16 of (x, y), epochs: 2, progress: false, distribute: data, MORE
    optimizer: adam(lr: 0.01), objective: mean((dropout(tanh(x @ w), 0.5) @ v + b - y) ** 2)
}
print("peak", rank(), memory().peak)
"""


class Foretold(unittest.TestCase):
    """tl check --memory of several ranks: each with its own numbers, in one report."""

    def foretold(self, n, code, *options):
        result = ranks(n, code, *options, command="check --memory")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return json.loads(result.stdout) if "--json" in options else result.stdout

    def check(self, n, code, env):
        measured = ranks(n, code, "--ranks", "all", **env)
        self.assertEqual(measured.returncode, 0, measured.stderr)
        peaks = [int(peak) for _, peak in sorted(re.findall(r"peak (\d+) (\d+)", measured.stdout))]
        found = self.foretold(n, code, "--json", "--device", env["TL_DEVICE"])
        self.assertEqual([rank["peak"] for rank in found], peaks, code)
        self.assertEqual([(rank["exact"], rank["failure"]) for rank in found], [(True, None)] * n, code)
        return found

    def test_peaks_are_those_of_a_run(self):
        device = {"TL_DEVICE": os.environ.get("TL_DEVICE", "cpu")}
        self.check(2, FORETOLD_CALLS, device)
        for n, more in ((2, "pieces: 2"), (3, "pieces: 4"), (2, "fast: true"), (2, "shard: optimizer"),
                        (2, "shard: parameters, pieces: 4")):
            found = self.check(n, FORETOLD_STEPS.replace("MORE", more), device)
            kept = 1 if "optimizer" in more or n == 1 or "shard" not in more else 0
            self.assertGreaterEqual(found[0]["parameters"], (64 * 128 + 128 * 8 + 8) * 4 * (kept or 0.5), more)

    def test_words(self):
        out = self.foretold(2, "let x = zeros([1024, 512 * (rank() + 1)])\n")
        self.assertEqual(re.findall(r"^\[rank (\d)\] peak +([\d.]+) MB +at program.tl:1:9$", out, re.M), [("0", "2.00"), ("1", "4.00")])
        self.assertEqual(re.findall(r"^(?!\[rank \d\] ).+$", out, re.M), [])

    def test_what_another_rank_does_not_know_is_not_known_here(self):
        code = "let n = all_gather(if rank() == 0 { tensor([5]) } else { randint(3, 9, [1]) })\nlet x = zeros([n[0] as int])\n"
        for rank in self.foretold(2, code, "--json"):
            self.assertEqual((rank["exact"], [place["line"] for place in rank["loose"]]), (False, [2]))

    def test_an_error_of_one_rank_ends_the_others_pass(self):
        found = self.foretold(2, 'if rank() == 1 { error("stop") }\nlet x = all_reduce(ones([100]))\n', "--json")
        self.assertEqual(found[1]["failure"]["message"], "stop")
        self.assertIn("the ranks disagree: rank 0 calls all_reduce", found[0]["failure"]["message"])
        result = ranks(2, "let x = \n", command="check --memory")
        self.assertEqual((result.returncode, result.stderr.count("error[syntax]")), (1, 1), result.stderr)


class Ranks(unittest.TestCase):
    def ends_well(self, n, code, *options, **more):
        result = ranks(n, code, *options, **more)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(re.findall("no leak", result.stderr)), n, result.stderr)
        return result.stdout

    def test_alone(self):
        for code in (COLLECTIVES, GRADIENTS):
            result = run_code(code)
            self.assertEqual((result.status, result.out), (0, "all is well\n"), result.err)

    def test_limits(self):
        """What ranks tell each other is told once: no rank foretells a program of several."""
        code = """
            let large = if rank() == 0 { ones([2048, 2048]) } else { none }
            let parts = [ones([256, 100]) * (rank() + i) for i in 0..20]
            let all = [all_reduce(part)[0, 0] as int for part in parts]
            assert_eq(all, [1 + 2 * i for i in 0..20])
        """
        self.ends_well(2, code, "--memory-limit", "4MB")
        self.ends_well(2, code, TL_TEST_DEVICE_MB="64")

    def test_collectives(self):
        for n in (2, 4):
            self.assertEqual(self.ends_well(n, COLLECTIVES), "all is well\n")

    def test_gradients(self):
        for n in (2, 4):
            self.assertEqual(self.ends_well(n, GRADIENTS), "all is well\n")

    def test_training_on_parts_of_the_batch(self):
        alone = self.ends_well(1, TRAINING)
        self.assertEqual(alone, "[ 1.  -2.   0.5] 0.25\n")
        self.assertEqual(self.ends_well(2, TRAINING), alone)
        self.assertEqual(self.ends_well(4, TRAINING), alone)

    def distributed(self, n, pieces=8, epochs=5, spread=0, folder=None):
        code = DISTRIBUTED.replace("PIECES", str(pieces)).replace("EPOCHS", str(epochs)).replace("SPREAD", str(spread))
        return self.ends_well(n, code, folder=folder)

    def test_distributed_training_has_the_bits_of_one_rank(self):
        alone = self.distributed(1)
        self.assertEqual(alone.count("\n"), 2)
        self.assertTrue(alone.endswith("[7.]\n"), alone)  # what the objective does not reach stays
        for n in (2, 3, 4):
            self.assertEqual(self.distributed(n), alone)
        # Parameters and random numbers are those of the first rank, whatever the others began with.
        self.assertEqual(self.distributed(2, spread=5), alone)

    def test_more_ranks_than_pieces(self):
        self.assertEqual(self.distributed(3, pieces=2), self.distributed(1, pieces=2))
        self.assertEqual(self.distributed(2, pieces=7), self.distributed(1, pieces=7))

    def test_running_statistics_have_the_bits_of_one_rank(self):
        for pieces, most in (("pieces: 8", 4), ("pieces: 5", 3), ("pieces: 3, shard: parameters", 4)):
            alone = run_code(NORMALISED.replace("MORE", pieces).replace("layers.tl", str(ROOT / "std/layers.tl")))
            self.assertEqual(alone.status, 0, alone.err)
            self.assertNotIn("[[0.0, 0.0", alone.out)
            for n in range(1, most + 1):
                self.assertEqual(self.ends_well(n, NORMALISED.replace("MORE", pieces)), alone.out, (n, pieces))

    def test_more_ranks_than_pieces_with_running_statistics(self):
        code = NORMALISED.replace("MORE", "pieces: 2")
        result = ranks(3, code)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("each_piece: rank 0 has had no piece that calls it so far; batches need a row for each of the 3 ranks",
                      result.stderr.replace("[rank 1] ", "").replace("[rank 2] ", ""))

    def test_pieces_that_follow_otherwise(self):
        body = """
            let w = learnable([1.0]); let x = ones([8, 1])
            let r = learn {
                if x[0, 0] > 0.0 { each_piece(VALUES, fn(v) { print(v) }) }
                objective: mean(x * w), optimizer: sgd(), epochs: 1, batch: 8 of x, distribute: data, pieces: 2, progress: false
            }"""
        for values, words in (("list([1.0] * (rank() + 1))", None),
                              ("list(if rank() == 0 { [1.0] } else { [1.0, 2.0] })",
                               "each_piece: the first piece of a batch calls it otherwise than piece 2"),
                              ("list()", "each_piece: a block with `distribute` needs a value for it"),
                              ("list(1)", "each_piece: a value is int64[]; in a block with `distribute` all must be float32, or all float64")):
            result = ranks(2, body.replace("VALUES", values))
            if words:
                self.assertIn(words, result.stderr)
                self.assertNotEqual(result.returncode, 0)
            else:
                self.assertEqual(result.stdout, "[1.]\n[2.]\n", result.stderr)

    def test_the_fast_order(self):
        """Numbers as those of the tree to rounding, with fewer bytes where a rank's pieces are more than one subtree."""
        code = """
            seed(rank() + 1)
            let x = arange(500).reshape([100, 5]) % 7 / 3.5 - 1.0
            let y = x @ [[1.0], [-2.0], [0.5], [3.0], [0.0]] + 0.25
            let w = learnable(randn([5, 20000])); let b = learnable(tensor(zeros([10]), TYPE)); let v = learnable(randn([20000, 1]) * 0.01)
            let r = learn {
                objective: mean((tanh(x @ w) @ v + (sum(b) as float32) - y) ** 2), optimizer: adam(lr: 0.001), epochs: 4
                batch: 22 of (x, y), shuffle: true, clip_grad_norm: 1.0, progress: false, distribute: data, MORE
            }
            for p in list(w, b, v) { if to_list(broadcast(p)) != to_list(p) { error("the ranks have different parameters") } }
            print(r.losses, r.grad_norms)
        """
        def losses(n, more, dtype="float32"):
            with tempfile.TemporaryDirectory() as folder:
                out = self.ends_well(n, code.replace("MORE", more).replace("TYPE", dtype), folder=folder, OMPI_MCA_pml_monitoring_enable="2",
                                     OMPI_MCA_pml_monitoring_enable_output="3",
                                     OMPI_MCA_pml_monitoring_filename=folder + "/sent")
                lines = [line.split("\t") for path in Path(folder).glob("sent.*.prof") for line in path.read_text().splitlines()]
                sent = sum(int(line[3].split()[0]) for line in lines if line[0] in ("E", "I"))
            return [float(number) for number in re.findall(r"[\d.]+(?:e-?\d+)?", out)], sent

        wanted, sent = losses(3, "pieces: 8")
        got, fast = losses(3, "pieces: 8, fast: true")
        self.assertEqual(len(got), 8)
        for a, b in zip(got, wanted):
            self.assertAlmostEqual(a / b, 1, delta=1e-5)
        self.assertNotEqual(got, wanted)
        self.assertGreater(sent, 3000000)
        self.assertLess(fast, 0.8 * sent)
        for n, more in ((1, "pieces: 2"), (2, "pieces: 2, fast: true"), (3, "pieces: 2, fast: true"), (1, "pieces: 2, fast: true")):
            for dtype in ("float32", "float64"):  # one addition has one order
                self.assertEqual(losses(n, more, dtype)[0], losses(1, "pieces: 2", dtype)[0], (n, more, dtype))

    def test_the_fast_order_on_one_rank_alone(self):
        body = "learn { objective: sum(w * x), optimizer: sgd(), epochs: 1, batch: 4 of x, distribute: data, fast: rank() == 0 }"
        result = ranks(2, "let w = learnable([1.0]); let x = ones([4, 1])\n" + body)
        self.assertIn("the ranks disagree: rank 0 makes a step of 1 parameter values in 4 pieces, fast: true, lr 0.01 at program.tl:2, "
                      "rank 1 makes a step of 1 parameter values in 4 pieces, lr 0.01 at program.tl:2", result.stderr)

    def test_distributed_training_goes_on_with_other_ranks(self):
        whole = self.distributed(1)
        with tempfile.TemporaryDirectory() as folder:
            self.distributed(2, epochs=2, folder=folder)
            self.distributed(3, epochs=4, folder=folder)
            self.assertEqual(self.distributed(1, folder=folder), whole)

    def sharded(self, n, epochs=4, shard="optimizer", folder=None):
        code = SHARDED.replace("EPOCHS", str(epochs)).replace("MORE", f"shard: {shard}" if shard else "")
        return self.ends_well(n, code, folder=folder)

    def test_sharded_optimizers_make_the_same_numbers(self):
        alone = self.sharded(1, shard=None)
        self.assertEqual(self.sharded(1), alone)
        for n in (2, 4):
            self.assertEqual(self.sharded(n), alone)

    def test_sharded_parameters_make_the_same_numbers(self):
        # 22 and then 12 rows in 8 pieces: on three ranks one of them has no piece in the last round.
        alone = self.sharded(1, shard=None)
        for n in (1, 2, 3, 4):
            self.assertEqual(self.sharded(n, shard="parameters"), alone)

    def test_sharded_parameters_are_freed_between_uses(self):
        code = """
seed(1)
let x = randn([16, 512]); let y = randn([16, 512])
let ws = [learnable(randn([512, 512]) * 0.04) for i in 0..8]
fn net(x) { let h = x; for w in ws { h = tanh(h @ w) }; h }
let start = memory().live
let r = learn {
    objective: mean((net(x) - y) ** 2), optimizer: adam(lr: 0.001), epochs: 3, batch: 16 of (x, y), progress: false
    distribute: data, pieces: 4, SHARD
}
if memory().live != start { error(f"{start} bytes have become {memory().live}") }
print(memory().peak)
print(r.losses)
"""
        peaks, losses = {}, set()
        for n, shard in ((1, ""), (2, "shard: optimizer"), (2, "shard: parameters"), (4, "shard: parameters")):
            peak, numbers = self.ends_well(n, code.replace("SHARD", shard)).splitlines()
            peaks[n, shard] = int(peak) / (8 * 512 * 512 * 4)  # in those of all parameters
            losses.add(numbers)
        self.assertEqual(len(losses), 1)
        # Moments and gradients are 5 times as many on one rank; of parts these are 3, and one or two are whole.
        self.assertGreater(peaks[1, ""], 5)
        self.assertLess(peaks[2, "shard: parameters"], 0.9 * peaks[2, "shard: optimizer"])
        self.assertLess(peaks[4, "shard: parameters"], 2.2)

    def test_sharded_parameters_that_others_hold(self):
        # Views of a parameter keep its numbers; what the body assigns is cut anew; frozen ones stay whole.
        code = """
seed(2)
let x = randn([8, 80]); let w = learnable(randn([80, 80]) * 0.1); let still = learnable(randn([80, 80]) * 0.1)
let kept = list(detach(w), w.T)
let before = sum(w)
let r = learn {
    if epoch == 2 { kept = list(detach(w), w.T) }
    objective: mean((x @ w @ still - 1.0) ** 2), optimizer: adam(lr: 0.01), epochs: 4, batch: 8 of x, progress: false
    distribute: data, pieces: 4, freeze: still, patience: 3, validate: mean((x @ w @ still - 1.0) ** 2), MORE
}
print(r.losses, r.validations, before, sum(kept[0]), sum(kept[1]), sum(w), sum(still))
"""
        alone = self.ends_well(1, code.replace("MORE", ""))
        for n in (2, 4):
            self.assertEqual(self.ends_well(n, code.replace("MORE", "shard: parameters")), alone)

    def test_sharded_parameters_that_one_rank_needs(self):
        code = """let w = learnable(ones([80, 80])); let x = ones([8, 80])
learn {
    FIRST
    let y = x @ w
    LAST
    objective: mean(y), optimizer: sgd(lr: 0.1), epochs: 2, batch: 8 of x, distribute: data, shard: parameters
}
"""
        late = "if rank() == 1 { barrier() }"
        self.disagree(code.replace("FIRST", late).replace("LAST", ""),
                      "rank 0 needs the whole of parameter 1 with 6400 values at program.tl:4, rank 1 calls barrier at program.tl:3")
        self.disagree(code.replace("FIRST", "").replace("LAST", late),
                      "rank 0 makes a step of 6400 parameter values in 8 pieces at program.tl:6, rank 1 calls barrier at program.tl:5")
        code = """let w = learnable(ones([80, 80])); let x = ones([8, 80])
learn {
    objective: mean(x @ w) / (if epoch == 1 and rank() == 1 { 0.0 } else { 1.0 }), optimizer: sgd(lr: 0.1), epochs: 3
    batch: 8 of x, distribute: data, shard: parameters
}
"""
        result = ranks(2, code)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("[rank 1] error[value]: the loss became inf in epoch 2", result.stderr)

    def test_validation_that_ranks_see_differently(self):
        # As with running statistics of their own: all go by the first rank's.
        code = """
let w = learnable(ones([3])); let x = ones([8, 3])
let r = learn {
    objective: mean(x @ w), optimizer: sgd(lr: 0.1), epochs: 4, batch: 8 of x, distribute: data, progress: false
    validate: if rank() == 0 { 1.0 - epoch } else { 1.0 + epoch }, patience: 1
}
print(r.validations, r.stopped)
"""
        self.assertEqual(self.ends_well(2, code), "[1.0, 0.0, -1.0, -2.0] epochs\n")

    def test_fifty_steps_of_a_transformer(self):
        code = """
import "attention.tl"
seed(1)
let ids = randint(0, 64, [16, 17]); let x = ids[:, :16]; let y = ids[:, 1:]
let table = learnable(randn([64, 64]) * 0.02); let head = learnable(randn([64, 64]) * 0.02)
let blocks = [TransformerBlock::new(64, 4, causal: true, dropout: 0.1) for i in 0..2]
fn loss(x, y) {
    let h = embedding(table, x)
    for block in blocks { h = block.forward(h) }
    cross_entropy((h @ head).reshape([-1, 64]), y.reshape([-1]))
}
let r = learn {
    objective: loss(x, y), optimizer: adamw(lr: 0.001), epochs: 50, batch: 16 of (x, y), progress: false
    distribute: data, clip_grad_norm: 1.0, MORE
}
print(r.losses)
"""
        alone = self.ends_well(1, code.replace("MORE", ""))
        for n, more in ((2, ""), (2, "shard: optimizer"), (4, "shard: optimizer"), (2, "shard: parameters"),
                        (4, "shard: parameters")):
            self.assertEqual(self.ends_well(n, code.replace("MORE", more)), alone)

    def test_gradients_in_several_buckets(self):
        # Two of more than a bucket, one that only some of the pieces reach, and one that none reaches.
        code = """
seed(1)
let x = randn([6, 1030]); let y = randn([6, 1])
let w = learnable(randn([1030, 1030]) * 0.03); let u = learnable(randn([1030, 1030]) * 0.03)
let some = learnable(ones([1030])); let apart = learnable([7.0]); let v = learnable(randn([1030, 1]) * 0.03)
let r = learn {
    let hidden = tanh(tanh(x @ w) @ u)
    let hidden = if float(sum(x)) > 0.0 { hidden * some } else { hidden }
    objective: mean((hidden @ v - y) ** 2), optimizer: adam(lr: 0.01), epochs: 2, batch: 6 of (x, y), clip_grad_norm: 1.0
    distribute: data, pieces: 4, progress: false, MORE
}
print(r.losses, r.grad_norms, sum(w), sum(u), sum(v), sum(some), apart)
"""
        alone = self.ends_well(1, code.replace("MORE", ""))
        self.assertIn("[7.]", alone)
        for n in (2, 3):
            for more in ("", "shard: optimizer", "shard: parameters"):
                self.assertEqual(self.ends_well(n, code.replace("MORE", more)), alone)

    def test_gaps_between_gradients_are_zeros(self):
        code = """
let w = learnable(arange(2100).reshape([700, 3]) * 0.0001)
let unreached = learnable(ones([33]))
let v = learnable(ones([5, 7]))
let x = arange(11200).reshape([16, 700]) * 0.0001
let used = [full([5120], 1e20) for i in 0..40]
used = none
let result = learn {
    objective: mean((x @ w) ** 2) + sum(v ** 2), optimizer: adamw(lr: 0.01), epochs: 3, batch: 8 of x
    progress: false, distribute: data, pieces: 4, clip_grad_norm: 0.5MORE
}
print(result.losses, sum(w), sum(unreached), sum(v))
"""
        alone = self.ends_well(1, code.replace("MORE", ""))
        self.assertIn("33", alone)
        for n, more in (2, ""), (2, ", shard: optimizer"), (3, ", shard: parameters"):
            with self.subTest(ranks=n, more=more):
                self.assertEqual(self.ends_well(n, code.replace("MORE", more)), alone)

    def test_sharded_files_go_on_with_other_ranks(self):
        whole = self.sharded(1)
        with tempfile.TemporaryDirectory() as folder:
            files = lambda: sorted(path.name for path in Path(folder).glob("run*"))
            self.sharded(2, epochs=1, folder=folder)
            self.assertEqual(files(), ["run-3-1-of-2.safetensors", "run-3-2-of-2.safetensors", "run.safetensors"])
            sizes = [Path(folder, f"run-3-{i}-of-2.safetensors").stat().st_size for i in (1, 2)]
            self.assertLess(max(sizes), 1.5 * min(sizes))  # of 94000 bytes of moments each has about a half
            self.sharded(3, epochs=2, folder=folder)
            self.assertEqual(files(), [f"run-6-{i}-of-3.safetensors" for i in (1, 2, 3)] + ["run.safetensors"])
            self.sharded(2, epochs=3, shard=None, folder=folder)
            self.assertEqual(files(), ["run.safetensors"])
            self.assertEqual(self.sharded(4, folder=folder), whole)

    def test_sharded_files_of_parameters_go_on_with_other_ranks_and_stages(self):
        whole = self.sharded(1)
        with tempfile.TemporaryDirectory() as folder:
            files = lambda: sorted(path.name for path in Path(folder).glob("run*"))
            self.sharded(2, epochs=1, folder=folder, shard="parameters")
            self.assertEqual(files(), ["run-3-1-of-2.safetensors", "run-3-2-of-2.safetensors", "run.safetensors"])
            self.assertLess(Path(folder, "run.safetensors").stat().st_size, 6400 * 4 * 3)  # averages, and `v`
            self.sharded(3, epochs=2, folder=folder, shard="parameters")
            self.assertEqual(files(), [f"run-6-{i}-of-3.safetensors" for i in (1, 2, 3)] + ["run.safetensors"])
            self.sharded(2, epochs=3, folder=folder)
            self.assertEqual(self.sharded(4, folder=folder, shard="parameters"), whole)
        with tempfile.TemporaryDirectory() as folder:
            self.sharded(4, epochs=2, folder=folder, shard="parameters")
            self.assertEqual(self.sharded(1, folder=folder, shard=None), whole)
            self.assertEqual(files(), ["run.safetensors"])

    def test_sharded_files_that_lack_something(self):
        with tempfile.TemporaryDirectory() as folder:
            self.sharded(2, epochs=1, folder=folder)
            shard = Path(folder, "run-3-1-of-2.safetensors")
            bytes_of_it = shard.read_bytes()
            changed = bytes_of_it.replace(b"optimizer.part.w.0", b"optimizer.part.q.0")
            shard.write_bytes(changed)
            result = ranks(1, SHARDED.replace("EPOCHS", "2").replace("MORE", ""), folder=folder)
            self.assertIn("run-3-1-of-2.safetensors is damaged: its numbers are not those that were written", result.stderr)
            shard.write_bytes(changed.replace(b"tl.sum", b"no.sum"))
            result = ranks(1, SHARDED.replace("EPOCHS", "2").replace("MORE", ""), folder=folder)
            self.assertIn("run.safetensors: the moments of `w` are of 3328 elements, not of 6400", result.stderr)
            shard.unlink()
            result = ranks(1, SHARDED.replace("EPOCHS", "2").replace("MORE", ""), folder=folder)
            self.assertRegex(result.stderr, r"error\[io\]: .*run-3-1-of-2.safetensors")
        with tempfile.TemporaryDirectory() as folder:
            self.sharded(2, epochs=1, folder=folder, shard="parameters")
            shard, main = Path(folder, "run-3-1-of-2.safetensors"), Path(folder, "run.safetensors")
            bytes_of_it, bytes_of_main = shard.read_bytes(), main.read_bytes()
            shard.write_bytes(bytes_of_it.replace(b"learn.part.w.0", b"learn.part.q.0").replace(b"tl.sum", b"no.sum"))
            result = ranks(1, SHARDED.replace("EPOCHS", "2").replace("MORE", ""), folder=folder)
            self.assertIn("run.safetensors: the parts of `w` are of 0 elements, not of 6400", result.stderr)
            shard.write_bytes(bytes_of_it)
            main.write_bytes(bytes_of_main.replace(b"w\\tw\\t64 100", b"w, w, 64 100"))
            result = ranks(1, SHARDED.replace("EPOCHS", "2").replace("MORE", ""), folder=folder)
            self.assertIn("run.safetensors: `learn.parts` is not what a learn block has written", result.stderr)

    def test_the_state_of_a_part(self):
        code = """
let w = learnable(ones([64, 64])); let x = ones([8, 64]); let a = adam(lr: 0.1)
for i in 0..2 {
    learn { objective: mean(x @ w), optimizer: a, epochs: 2, batch: 8 of x, distribute: data, shard: "optimizer", progress: false }
}
print(round(w[0, 0], 2))
fn attempt(f) { try { f() } catch e { print(e.message) } }
attempt(fn() { save_model({"w": w, "a": a}, "a.safetensors") })
attempt(fn() { learn { objective: mean(x @ w), optimizer: a, epochs: 2, progress: false } })
"""
        self.assertEqual(self.ends_well(2, code), """0.6
`a` has the state of 2048 of the 4096 elements of a parameter float32[64, 64]
adam has the state of 2048 of the 4096 elements of a parameter float32[64, 64]
""")
        for action, words in (('save_model({"w": w, "a": a}, "a.safetensors")',
                               "help: the other ranks have the rest: `save` of the learn block writes all of it"),
                              ("learn { objective: mean(x @ w), optimizer: a, epochs: 1 }",
                               "help: the other ranks have the rest: learn blocks with `shard` step it")):
            result = ranks(2, code.split("print")[0] + action)
            self.assertIn(words, result.stderr)

    def test_ranks_that_train_differently(self):
        code = """let w = learnable(ones([3]))
let other = learnable(ones([2 + OTHER]))
let x = ones([8, 3])
learn { objective: mean(x @ w), optimizer: sgd(), epochs: 1, batch: 8 of x, distribute: data, pieces: PIECES }
"""
        self.disagree(code.replace("OTHER", "rank()").replace("PIECES", "8"),
                      "rank 0 makes a step of 5 parameter values in 8 pieces at program.tl:4, "
                      "rank 1 makes a step of 6 parameter values in 8 pieces at program.tl:4")
        self.disagree(code.replace("OTHER", "0").replace("PIECES", "4 + rank()"),
                      "rank 0 makes a step of 5 parameter values in 4 pieces at program.tl:4, "
                      "rank 1 makes a step of 5 parameter values in 5 pieces at program.tl:4")
        self.disagree(code.replace("OTHER", "0").replace("PIECES", "4").replace("sgd()", "sgd(lr: 0.5 + rank())"),
                      "rank 0 makes a step of 5 parameter values in 4 pieces, lr 0.5 at program.tl:4, "
                      "rank 1 makes a step of 5 parameter values in 4 pieces, lr 1.5 at program.tl:4")

    def test_messages_that_can_never_come(self):
        """Another tag, a rank at its end, and a circle of three: what waits for itself is told so."""
        waits = "which waits for it in another call or has come to its end"
        for n, code, call in (
                (2, "if rank() == 0 { send([1.0], 1, tag: 1) } else { recv(0, tag: 2) }", r"recv from rank 0 with tag 2"),
                (2, "if rank() == 0 { recv(1) }", r"recv from rank 1 with tag 0"),
                (3, "let x = recv((rank() + 1) % 3)", r"recv from rank \d with tag 0")):
            with self.subTest(code):
                result = ranks(n, code + "\n", timeout=60)
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertRegex(result.stderr, f"the ranks disagree: rank \\d calls {call}, {waits}")

    def test_layers_in_parts(self):
        alone = self.ends_well(1, PARTS).splitlines()
        for n in (2, 4):
            self.assertEqual(self.ends_well(n, PARTS).splitlines(), alone)

    def test_vocabularies_in_parts(self):
        alone = self.ends_well(1, VOCABULARY)
        for n in (2, 3):
            self.assertEqual(self.ends_well(n, VOCABULARY), alone)

    def test_sequences_in_parts(self):
        for n in (1, 2, 4):
            self.assertEqual(self.ends_well(n, SEQUENCE), "all is well\n")

    def test_a_model_whose_layers_ranks_share(self):
        code = """
import "parallel.tl"
seed(3 + rank())
let m = pipeline(load_model("MODEL"))
print(generate(m, "Once upon a time", max_tokens: 40, temperature: 0))
print(generate(m, "Once upon a time", max_tokens: 40, temperature: 0.9))
print(generate(m, list("Lily", "One day there was"), max_tokens: 20, seed: 5))
print(sum(forward(m, [1, 403, 407])), to_list(embed(m, "a cat"))[0:3])
"""
        code = code.replace("MODEL", str(fixture(self, "models/stories260K.gguf")))
        alone = self.ends_well(1, code)
        self.assertIn(", there was a little girl named Lily.", alone)
        for n in (2, 4):
            self.assertEqual(self.ends_well(n, code), alone)
        result = ranks(6, code)
        self.assertIn("pipeline: the 5 layers of ", result.stderr)
        self.assertIn(" are not enough for 6 ranks", result.stderr)

    def test_architectures_whose_layers_ranks_share(self):
        code = """
import "parallel.tl"
for name in NAMES { print(name, to_json(to_list(forward(pipeline(load_model(name)), [1, 7, 3, 10, 2, 2, 9, 4, 0, 6, 8, 5])))) }
"""
        nets = [make for make in vars(language_models).values() if isinstance(make, type)
                and issubclass(make, language_models.Net) and make not in (language_models.Classic, language_models.Gemma3n)]
        self.assertGreaterEqual(len(nets), 12)
        with tempfile.TemporaryDirectory() as folder:
            names = []
            for i, make in enumerate(nets):
                net = make(i + 1)
                names.append(f"{i}-{net.name}.gguf")
                Path(folder, names[-1]).write_bytes(language_models.file_of(net.meta, net.weights))
            code = code.replace("NAMES", "list(" + ", ".join(f'"{name}"' for name in names) + ")")
            alone = self.ends_well(1, code, folder=folder)
            self.assertEqual(alone.count("\n"), len(names))
            self.assertEqual(self.ends_well(2, code, folder=folder), alone)

    def test_a_call_of_one_rank_that_is_caught(self):
        """The other is at its end by then: both end well."""
        for one in (0, 1):
            code = f'try {{ if rank() == {one} {{ print(all_reduce([1.0])) }} }} catch e {{ eprint(e.message) }}\nprint("on")'
            with self.subTest(one=one):
                self.assertEqual(self.ends_well(2, code, timeout=60), "on\n")

    def test_layers_that_ranks_cannot_share(self):
        code = """
import "parallel.tl"
forward(pipeline(load_model("a.gguf")), [1, 2])
"""
        for net, message in ((language_models.Gemma3n(1), r"ranks cannot share the layers of <model a.gguf, \d+ tensors>, which pass on four streams of rows"),
                             (language_models.Gemma4(1, "tokens"), r"layer 3 of <model a.gguf, \d+ tensors> attends to keys of layer 1, which another rank has")):
            with self.subTest(net.name), tempfile.TemporaryDirectory() as folder:
                Path(folder, "a.gguf").write_bytes(language_models.file_of(net.meta, net.weights))
                result = ranks(2, code, folder=folder)
                self.assertNotEqual(result.returncode, 0)
                self.assertRegex(result.stderr, message)

    def test_data_by_rank(self):
        code = """
import "parallel.tl"
let paths = [f"part-{i}.csv" for i in 0..5]
let (rows, total) = (0, 0.0)
for path in own_files(paths) {
    for batch in loader(csv_rows(path), batch: 2) { rows += len(batch); total += float(sum(batch)) }
}
print(int(all_reduce(rows)), float(all_reduce(total)))
let (first, end) = own_rows(15)
let mine = 0
for batch in loader(arange(15), batch: 4, rows: arange(first, end)) { mine += int(sum(batch)) }
print(int(all_reduce(mine)))
"""
        with tempfile.TemporaryDirectory() as folder:
            for i in range(5):
                Path(folder, f"part-{i}.csv").write_text("".join(f"{i},{j}\n" for j in range(3)))
            for n in (1, 2, 3):
                self.assertEqual(self.ends_well(n, code, folder=folder), "15 45.0\n105\n")

    def test_on_vulkan(self):
        if os.environ.get("TL_TEST_VULKAN") != "1" and "vulkan:0" not in run("devices").out:
            self.skipTest("there is no Vulkan device")
        code = """
import "parallel.tl"
seed(2)
let x = randn([8, 80]); let w = learnable(randn([80, 80]) * 0.1); let u = learnable(randn([80, 80]) * 0.1)
let r = learn {
    objective: mean((tanh(x @ w) @ u - 1.0) ** 2), optimizer: adam(lr: 0.01), epochs: 3, batch: 8 of x, progress: false
    distribute: data, pieces: 4, shard: parameters
}
print(x.device, r.losses, sum(w), sum(u))
print(generate(pipeline(load_model("MODEL")), "Once", max_tokens: 5, temperature: 0))
"""
        code = code.replace("MODEL", str(fixture(self, "models/stories260K.gguf")))
        alone = self.ends_well(1, code, TL_DEVICE="vulkan")
        self.assertTrue(alone.startswith("vulkan:0 "), alone)
        self.assertEqual(self.ends_well(2, code, TL_DEVICE="vulkan"), alone)

    def test_gradients_that_a_slow_device_gives_late(self):
        """Buckets are on their way while the host goes on, and come at another time on each rank."""
        if os.environ.get("TL_TEST_VULKAN") != "1" and "vulkan:0" not in run("devices").out:
            self.skipTest("there is no Vulkan device")
        code = """
            seed(1)
            let ws = [learnable(randn([1100, 1000])) for i in 0..3]; let x = randn([4, 1])
            let r = learn {
                objective: mean(mean(x) * ws[0]) ** 2 + mean(sum(x) * ws[1]) ** 2 + sum(ws[2] * mean(x)) / 1e6
                optimizer: adam(), epochs: 2, batch: 4 of x, progress: false, distribute: data, pieces: 2MORE
            }
            print(r.losses, r.grad_norms, [float(sum(w)) for w in ws])
        """
        for more in ("", ", clip_grad_norm: 0.1", ", fast: true"):
            wanted = self.ends_well(1, code.replace("MORE", more), TL_DEVICE="vulkan")
            got = self.ends_well(2, code.replace("MORE", more), TL_DEVICE="vulkan", TL_TEST_SLOW_MS="10", timeout=200)
            self.assertEqual(got, wanted, more)

    def test_one_rank_for_longer_than_a_second(self):
        """A process that foretells its memory meanwhile would be a second one of the same rank."""
        self.assertEqual(self.ends_well(1, "let x = ones([2])\nsleep(2)\nprint(all_reduce(x))", timeout=60), "[1. 1.]\n")

    def test_ranks_of_different_slowness(self):
        """In each piece another rank is late, before its pass forward and before the one backward."""
        code = """
            seed(1)
            let ws = [learnable(randn([1100, 1000])) for i in 0..3]; let x = randn([8, 1]); let calls = 0
            fn late() { calls = calls + 1; if (calls * calls + rank()) % world_size() == 0 { sleep(0.02) } }
            fn loss() {
                late()
                let l = mean(mean(x) * ws[0]) ** 2 + mean(sum(x) * ws[1]) ** 2 + sum(ws[2] * mean(x)) / 1e6
                late()
                l
            }
            let r = learn {
                objective: loss(), optimizer: adam(), epochs: 3, batch: 4 of x, shuffle: true, progress: false
                distribute: data, pieces: 4MORE
            }
            print(r.losses, r.grad_norms, [float(sum(w)) for w in ws])
        """
        for more in ("", ", shard: optimizer", ", shard: parameters", ", accumulate: 2"):
            wanted = self.ends_well(1, code.replace("MORE", more), timeout=120)
            for n in (2, 3):
                with self.subTest(more=more, n=n):
                    self.assertEqual(self.ends_well(n, code.replace("MORE", more), timeout=120), wanted)

    def test_the_device_of_a_rank(self):
        if os.environ.get("TL_TEST_VULKAN") != "1" and "vulkan:0" not in run("devices").out:
            self.skipTest("there is no Vulkan device")
        result = ranks(1, "print(ones([2]).device)", TL_DEVICE="vulkan:local_rank")
        self.assertEqual(result.stdout, "vulkan:0\n", result.stderr)
        result = ranks(1, "print(ones([2]).device)", "--device", "vulkan:local_rank")
        self.assertEqual(result.stdout, "vulkan:0\n", result.stderr)
        # Of as many ranks as there are devices and one more, the last has none.
        count = len(re.findall(r"^vulkan:", run("devices").out, re.M))
        result = ranks(count + 1, "print(ones([2]).device)", "--device", "vulkan:local_rank")
        self.assertIn(f"[rank {count}] error[device]: cannot open the device vulkan:{count}: ", result.stderr)

    def killed(self, n, saves, folder, shard):
        """Kills a rank once the file of `save` has been written so often."""
        code = SHARDED.replace("EPOCHS", "12").replace("MORE", "every: 1, " + shard)
        done = []

        def watch(process):
            path, last = Path(folder, "run.safetensors"), None
            while process.poll() is None and len(done) < saves:
                now = path.stat().st_mtime_ns if path.exists() else None
                if now != last:
                    last = now
                    done.append(now)
                time.sleep(0.001)
            for child in children_of(process.pid)[-1:]:
                os.kill(child, signal.SIGKILL)

        return ranks(n, code, folder=folder, watch=watch)

    def test_a_rank_that_is_killed_ends_all_and_the_run_goes_on(self):
        whole = self.sharded(1, epochs=12)
        for shard in ("", "shard: optimizer", "shard: parameters"):
            with tempfile.TemporaryDirectory() as folder:
                for n, saves in ((3, 2), (2, 3)):
                    result = self.killed(n, saves, folder, shard)
                    self.assertTrue(result.returncode != 0 and not result.stdout or result.stdout == whole, result)
                self.assertEqual(self.sharded(2, epochs=12, folder=folder, shard=shard[7:] or None), whole)

    def test_files_that_nothing_names_go(self):
        with tempfile.TemporaryDirectory() as folder:
            left = ["run-7-1-of-2.safetensors", "run-7-2-of-2.safetensors.part"]
            kept = ["run-a-1-of-2.safetensors", "run-1-7-1-of-2.safetensors", "run-7-1-of-2.npz", "other-7-1-of-2.safetensors"]
            for name in left + kept:
                Path(folder, name).write_bytes(b"")
            self.sharded(2, epochs=1, folder=folder)
            names = sorted(path.name for path in Path(folder).glob("*.*") if path.suffix != ".tl")
            self.assertEqual(names, sorted(kept + ["run-3-1-of-2.safetensors", "run-3-2-of-2.safetensors", "run.safetensors"]))

    def test_an_interrupt_ends_all_after_the_same_step(self):
        whole = self.sharded(1, epochs=30)
        for shard in ("", "shard: optimizer", "shard: parameters"):
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "run.safetensors")

                def watch(process):
                    while process.poll() is None and not path.exists():
                        time.sleep(0.001)
                    for child in children_of(process.pid)[-1:]:  # one of them tells the others
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(child, signal.SIGTERM)

                code = SHARDED.replace("EPOCHS", "30").replace("MORE", "every: 1, " + shard)
                result = ranks(3, code, folder=folder, watch=watch)
                self.assertEqual(len(re.findall("no leak", result.stderr)), 3, result.stderr)
                if result.stdout != whole:
                    self.assertNotEqual(result.returncode, 0)
                    self.assertNotIn("MPI_ABORT", result.stderr)
                self.assertEqual(self.sharded(2, epochs=30, folder=folder, shard=shard[7:] or None), whole)

    def test_a_session(self):
        # The first rank reads and shows; a rank whose line has failed is at the next one, as the others are told.
        result = ranks(3, "", lines="""let x = all_reduce([1.0 + rank()])
x
if rank() == 1 { error("bad luck") }
all_reduce([2.0])
if rank() == 0 { error("worse luck") } else { barrier() }
fn three() {
    all_reduce([3.0])
}
three()
:vars
:save saved.tl
""")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, """float32[1] on cpu
[6.]
float32[1] on cpu
[6.]
float32[1] on cpu
[9.]
_            float32[1] on cpu, 4 B
x            float32[1] on cpu, 4 B
three        fn three()
saved 6 statements to saved.tl
""")
        self.assertIn("[rank 1] error[error]: bad luck", result.stderr)
        self.assertIn("[rank 2] error[value]: the ranks disagree: rank 0 reads the next line at <repl:5>:1, "
                      "rank 1 calls barrier at <repl:5>:1", result.stderr)
        self.assertEqual(len(re.findall("no leak", result.stderr)), 3, result.stderr)

    def test_one_report_of_memory(self):
        result = ranks(3, "let x = ones([rank() + 1])\nbarrier()\nprint(sum(x))\n")
        heads = re.findall(r"^\[rank (\d)\] === Device memory check", result.stderr, re.M)
        self.assertEqual(heads, ["0", "1", "2"], result.stderr)
        self.assertEqual([line for line in result.stderr.splitlines() if not line.startswith("[rank ")], [])
        # One that fails speaks for itself, with its number.
        result = ranks(2, "let x = ones([4])\nif rank() == 1 { error(\"bad luck\") }\nbarrier()\n")
        self.assertIn("[rank 1] no leak: every buffer was released", result.stderr)

    def test_one_progress_bar(self):
        """Where ranks have a terminal, as with srun --pty, the first has the bar and the lines."""
        self.ends_well(1, "print(1)")  # or it is skipped
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "program.tl").write_text("""
                let w = learnable([1.0, 2.0]); let x = ones([64, 2])
                learn {
                    objective: mean(x * w) ** 2, optimizer: sgd(lr: 0.001), epochs: 200, report_every: 50
                    batch: 8 of x, distribute: data, pieces: 2
                }""")
            wrapped = ("mpirun", "-n", "2", "sh", "-c", 'unset TL_MEMORY_CHECK; exec "$0" "$@" >"$TERMINAL" 2>&1')
            environment = {"TL_DEVICE": "cpu", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                           "OMPI_MCA_rmaps_base_oversubscribe": "1"}
            terminal = Terminal("run", "program.tl", columns=100, env=environment, folder=folder, prompt=False, under=wrapped)
            terminal.wait(terminal.over, "the end")
            terminal.settle()
        bars = re.findall(rb"\r\x1b\[K(\[[#.]+\] epoch (\d+)/200[^\r\n]*)", terminal.raw)
        self.assertGreater(len(bars), 0, terminal.raw)
        epochs = [int(epoch) for _, epoch in bars]
        self.assertEqual(epochs, sorted(set(epochs)), terminal.raw)
        lines = [line.strip() for line in terminal.screen.display if line.strip()]
        self.assertEqual([line[:13] for line in lines], ["epoch  50/200", "epoch 100/200", "epoch 150/200", "epoch 200/200", "trained 1 par"])

    def test_who_speaks(self):
        code = 'print("rank {}", rank())\n'
        self.assertEqual(self.ends_well(2, code), "rank 0\n")
        self.assertEqual(sorted(self.ends_well(2, code, "--ranks", "all").splitlines()),
                         ["[rank 0] rank 0", "[rank 1] rank 1"])

    def disagree(self, code, words):
        result = ranks(2, code)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(words, result.stderr)
        self.assertEqual(result.stderr.count("the ranks disagree"), 1, result.stderr)

    def test_disagreement(self):
        self.disagree("if rank() == 0 {\n    all_reduce([1.0])\n} else {\n    all_reduce([1.0, 2.0])\n}\n",
                      'the ranks disagree: rank 0 calls all_reduce("sum") of float32[1] at program.tl:2, '
                      'rank 1 calls all_reduce("sum") of float32[2] at program.tl:4')
        self.disagree("all_reduce([1.0], fast: rank() == 0)",
                      'rank 0 calls all_reduce("sum", fast: true) of float32[1] at program.tl:1, '
                      'rank 1 calls all_reduce("sum") of float32[1] at program.tl:1')
        self.disagree('let x = if rank() == 0 { all_reduce(1, "max") } else { broadcast(1) }\nprint(x)',
                      'rank 0 calls all_reduce("max") of int64[] at program.tl:1, '
                      "rank 1 calls broadcast of int64[] from rank 0 at program.tl:1")
        self.disagree("let h = list(all_reduce([1.0], wait: false), all_reduce([2.0], wait: false))\nwait(h[rank()])",
                      "rank 0 calls wait of float32[1], transfer 1 at program.tl:2, "
                      "rank 1 calls wait of float32[1], transfer 2 at program.tl:2")
        self.disagree("if rank() == 1 { barrier() }\n",
                      "rank 0 has come to its end, rank 1 calls barrier at program.tl:1")

    def test_what_can_never_come(self):
        self.disagree("if rank() == 0 { recv(from: 1) }",
                      "the ranks disagree: rank 0 calls recv from rank 1 with tag 0, which waits for it in another call "
                      "or has come to its end")
        self.disagree("if rank() == 0 { send([1.0], to: 1, tag: 3) } else { recv(from: 0, tag: 4) }",
                      "rank 1 calls recv from rank 0 with tag 4, which waits")
        self.disagree("if rank() == 0 { send(ones([1000000]), to: 1) } else { barrier() }",
                      "rank 0 calls send to rank 1 with tag 0, which waits")
        result = ranks(3, "recv(from: (rank() + 1) % world_size())") # each waits for the next one
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "the ranks disagree: rank . calls recv from rank . with tag 0")

    def test_what_comes_late(self):
        code = """
if rank() == 0 { sleep(3.5); send([2.0], to: 1) } else { print(recv(from: 0)[0]) }
if rank() == 0 { send(ones([1000000]), to: 1) } else { sleep(3.5); print(sum(recv(from: 0)) == 1e6) }
let h = if rank() == 0 { send([3.0], to: 1, wait: false) } else { recv(from: 0, wait: false) }
barrier()
if rank() == 1 { sleep(3); print(wait(h)[0]) } else { wait(h) }
"""
        result = ranks(2, code, "--ranks", "all")
        self.assertEqual((result.returncode, result.stdout), (0, "[rank 1] 2.0\n[rank 1] true\n[rank 1] 3.0\n"), result.stderr)

    def test_one_that_fails_ends_all(self):
        began = time.monotonic()
        result = ranks(2, 'if rank() == 1 { error("bad luck") }\nwhile true {}\n')
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("[rank 1] error[error]: bad luck", result.stderr)
        self.assertLess(time.monotonic() - began, 20)

    def test_one_that_is_killed_ends_all(self):
        result = ranks(2, "barrier()\nif rank() == 1 { read_file(\"/nothing\") }\nwhile true { barrier() }\n")
        self.assertNotEqual(result.returncode, 0)
        self.assertIn("[rank 1] error[io]", result.stderr)

    def test_without_a_transport(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "tl")
            shutil.copy(TL, program)
            result = subprocess.run([program, "-e", "print(rank())"], capture_output=True, text=True, timeout=60,
                                    env={**os.environ, "OMPI_COMM_WORLD_SIZE": "2"})
        self.assertEqual(result.returncode, 1)
        self.assertIn("this process was started as one of several ranks, but libtl_mpi.so cannot be loaded: ", result.stderr)
        self.assertIn("on Debian and Ubuntu: apt install libopenmpi3, and build tl where libopenmpi-dev is installed",
                      result.stderr)

    def test_a_transfer_is_waited_for_once(self):
        result = run_code("let h = all_gather([1], wait: false)\nprint(h)\nprint(wait(h))\nwait(h)\n")
        self.assertEqual((result.status, result.out), (1, "<transfer: all_gather>\n[1]\n"))
        self.assertIn("wait: this all_gather has been waited for", result.err)

    def test_what_cannot_be_sent(self):
        code = """
fn attempt(f) { try { f() } catch e { print(e.message) } }
if rank() == 0 {
    attempt(fn() { send([1], 1, -1) })
    let m = load_model("MODEL")
    attempt(fn() { send(m["blk.0.attn_q.weight"], 1) })
    attempt(fn() { all_reduce(m["blk.0.attn_q.weight"]) })
    attempt(fn() { grad(fn(x) { send(x, 1) }, 1.0) })
}
"""
        code = code.replace("MODEL", str(fixture(self, "models/mini-q8_0.gguf")))
        self.assertEqual(self.ends_well(2, code), "send: tag must be 0 to 8191, but it is -1\n"
                         "send: x is q8_0[256, 256]; dequantise it first\nall_reduce: x is q8_0[256, 256]; dequantise it first\n"
                         "send: no gradient comes back from another rank\n")


class Serving(unittest.TestCase):
    """A server whose layers ranks share: the first talks, the others make its steps."""
    def environment(self):
        return {**os.environ, "NO_COLOR": "1", "TL_MEMORY_CHECK": "strict", "TL_DEVICE": "cpu", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1", "ASAN_OPTIONS": "detect_leaks=0"}

    def answers(self, *starter):
        model = str(fixture(self, "models/stories260K.gguf"))
        command = [*starter, TL, "serve", model, "--port", "0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=self.environment()) as process:
            first = process.stderr.readline()
            port = int(re.search(r":(\d+)/$", first.strip()).group(1))
            answers = []
            for path, body in (("completions", {"prompt": "Once upon a time", "max_tokens": 20, "temperature": 0, "n": 2}),
                               ("completions", {"prompt": "Once upon a time, there was", "max_tokens": 9, "temperature": 0.8, "seed": 3}),
                               ("completions", {"prompt": ["Lily", "One day"], "max_tokens": 5, "temperature": 0}),
                               ("embeddings", {"input": ["a cat", "a dog"]}),
                               ("completions", {"prompt": "Once upon", "max_tokens": 12, "temperature": 0})):
                request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/{path}", json.dumps(body).encode(),
                                                 {"Content-Type": "application/json"})
                with urllib.request.urlopen(request, timeout=120) as response:
                    answer = json.load(response)
                answers.append(answer["choices"] if path == "completions" else answer["data"])
            for pid in children_of(process.pid) if starter else [process.pid]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            _, err = process.communicate(timeout=120)
        return answers, err

    def test_answers_are_those_of_one_rank(self):
        if not shutil.which("mpirun") or not PLUGIN.exists():
            self.skipTest("Open MPI is missing")
        alone, err = self.answers()
        self.assertIn("no leak", err)
        together, err = self.answers("mpirun", "-n", "2")
        self.assertEqual(together, alone)

    def test_adapters(self):
        if not shutil.which("mpirun") or not PLUGIN.exists():
            self.skipTest("Open MPI is missing")
        model = str(fixture(self, "models/stories260K.gguf"))
        result = subprocess.run(["mpirun", "-n", "2", TL, "serve", model, "--lora", "a=b"], capture_output=True, text=True,
                                env=self.environment(), timeout=120)
        self.assertIn("--lora is for one rank: adapters have parts for all layers", result.stderr)


class Mistakes(unittest.TestCase):
    def test_distribute(self):
        cases = [('distribute: "model"', 'distribute is "model"; it must be data'),
                 ("distribute: data, pieces: 0", "pieces is 0; it must be at least 1"),
                 ("pieces: 4", "`pieces` needs `distribute`"),
                 ("shard: optimizer", "`shard` needs `distribute`"),
                 ("fast: true", "`fast` needs `distribute`"),
                 ("distribute: data, shard: optimizer, fast: true",
                  "fast: with `shard` each rank adds up a part; leave one of the two out"),
                 ('distribute: data, shard: "model"', 'shard is "model"; it must be optimizer or parameters'),
                 ("distribute: data", "distribute: parameters are made in front of the block, but `v` is made in its body")]
        for setting, words in cases:
            made = "let v = learnable([1.0])" if setting == "distribute: data" else "let v = [1.0]"
            code = f"""let w = learnable([1.0]); let x = ones([4, 1])
learn {{
    {made}
    objective: mean(x * w * v), optimizer: sgd(), epochs: 1, batch: 2 of x, {setting}
}}"""
            result = run_code(code)
            self.assertEqual(result.status, 1, setting)
            self.assertIn(words, result.err)
        result = run_code("let w = learnable([1.0])\nlearn { objective: sum(w), optimizer: sgd(), epochs: 1, distribute: data }")
        self.assertIn("`distribute` needs `batch`", result.err)

    def test_messages(self):
        cases = [('all_reduce(1, "median")', 'all_reduce: op must be sum, mean, prod, max or min, but it is "median"'),
                 ("all_reduce([true])", 'all_reduce: x is bool[1], of which there are "max" (any) and "min" (all)'),
                 ('all_reduce([1, 2], "mean")', "all_reduce: a mean of int64[2] is not an integer; convert it to a float first"),
                 ("broadcast([1], 1)", "broadcast: root must be 0 to 0, but it is 1"),
                 ("broadcast([1], -1)", "broadcast: root must be 0 to 0, but it is -1"),
                 ("reduce_scatter(1)", "reduce_scatter: dimension 0 of int64[] must be a multiple of the 1 ranks"),
                 ("all_to_all(2.0)", "all_to_all: dimension 0 of float32[] must be a multiple of the 1 ranks"),
                 ("send([1], 0)", "send: to must be another of the 1 ranks, but it is 0"),
                 ("wait(3)", "wait must be a transfer, but it is 3"),
                 ("wait(wait(all_gather([1], wait: false)))", "wait must be a transfer, but it is int64[1]"),
                 ("recv(5)", "recv: from must be another of the 1 ranks, but it is 5"),
                 ('grad(fn(x) { all_reduce(x, "max") }, 1.0)', "all_reduce: no gradient flows through the reductions prod, max and min\n"),
                 ('grad(fn(x) { all_reduce(x, "max") }, 1.0)', "  = help: detach(x) leaves the gradient out\n")]
        for code, words in cases:
            result = run_code(f"print({code})")
            self.assertEqual(result.status, 1, code)
            self.assertIn(words, result.err)
        result = run("--ranks", "some", "-e", "print(1)")
        self.assertEqual(result.status, 2)
        self.assertIn('--ranks needs all or first, but it is "some"', result.err)


if __name__ == "__main__":
    unittest.main()
