#!/usr/bin/env python3
"""Chains of Einstein's sums, and steps of ComplEx with the N3 penalty on triples drawn at random, of the sizes of FB15k-237,
next to PyTorch on one thread of the CPU, the least of several in turn: of a chain the fastest time by the clock, of a step
processor time, the difference of two runs. Nothing here is a test.

    tests/bench/embeddings.py [--tl build/release/tl] [--rank 100] [--repeat 3]
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = "/usr/bin/python3"
STEPS = 1000
SUMS = {  # equation: sizes of its letters
    "ab,bc,cd->ad": {"a": 256, "b": 512, "c": 256, "d": 512},
    "ab,bc,cd,de->ae": {"a": 512, "b": 32, "c": 512, "d": 32, "e": 512},
    "bqd,bkd,bke->bqe": {"b": 16, "q": 128, "k": 128, "d": 64, "e": 64},
    "nx,ny,xys->ns": {"n": 500, "x": 30, "y": 30, "s": 59},
    "abc,cd,ae->bde": {"a": 48, "b": 48, "c": 48, "d": 48, "e": 48},
}
COMPLEX_TL = """
let (n, relations, rank, rows) = (14541, 474, {rank}, {count})
seed(1)
let (h, r, t) = (randint(0, n, [rows]), randint(0, relations, [rows]), randint(0, n, [rows]))
tensor Re: float32[n, rank] learnable = randn([n, rank]) * 0.001
tensor Im: float32[n, rank] learnable = randn([n, rank]) * 0.001
tensor Ra: float32[relations, rank] learnable = randn([relations, rank]) * 0.001
tensor Rb: float32[relations, rank] learnable = randn([relations, rank]) * 0.001
fn scores(h, r) {{
    let (a, b, c, d) = (Re[h], Im[h], Ra[r], Rb[r])
    (a * c - b * d) @ Re.T + (a * d + b * c) @ Im.T
}}
fn cube(re, im) {{ sum((re ** 2 + im ** 2 + 1e-20) ** 1.5) }}
fn n3(h, r, t) {{ (cube(Re[h], Im[h]) + cube(Ra[r], Rb[r]) + cube(Re[t], Im[t])) / len(h) }}
learn {{
    objective: cross_entropy(scores(h, r), t) + 0.05 * n3(h, r, t)
    optimizer: adagrad(lr: 0.1)
    batch: 1000 of (h, r, t)
    shuffle: true
    epochs: 1
    progress: false
}}
"""
COMPLEX_TORCH = """
import torch
torch.set_num_threads(1)
torch.manual_seed(1)
n, relations, rank, rows = 14541, 474, {rank}, {count}
h, r, t = (torch.randint(0, size, (rows,)) for size in (n, relations, n))
Re, Im, Ra, Rb = (torch.randn(size, rank).mul_(0.001).requires_grad_() for size in (n, n, relations, relations))
optimizer = torch.optim.Adagrad([Re, Im, Ra, Rb], lr=0.1)
def scores(h, r):
    a, b, c, d = Re[h], Im[h], Ra[r], Rb[r]
    return (a * c - b * d) @ Re.T + (a * d + b * c) @ Im.T
def cube(re, im): return ((re ** 2 + im ** 2 + 1e-20) ** 1.5).sum()
def n3(h, r, t): return (cube(Re[h], Im[h]) + cube(Ra[r], Rb[r]) + cube(Re[t], Im[t])) / len(h)
order = torch.randperm(rows)
for at in range(0, rows, 1000):
    i = order[at:at + 1000]
    loss = torch.nn.functional.cross_entropy(scores(h[i], r[i]), t[i]) + 0.05 * n3(h[i], r[i], t[i])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def sums_tl(equation, sizes):
    factors, result = equation.split("->")
    code = "".join(f"let t{i} = randn({[sizes[name] for name in names]})\n" for i, names in enumerate(factors.split(",")))
    product = " ".join(f"t{i}[{', '.join(names)}]" for i, names in enumerate(factors.split(",")))
    return code + f"""fn step() {{
    C[{', '.join(result)}] = {product}
    float(sum(C))
}}
let best = 1e9
for k in 0..{STEPS} {{
    let begun = clock()
    step()
    best = min(best, clock() - begun)
}}
print(best)
"""


def sums_torch(equation, sizes):
    factors = equation.split("->")[0].split(",")
    code = "import torch\ntorch.set_num_threads(1)\n"
    code += "".join(f"t{i} = torch.randn({[sizes[name] for name in names]})\n" for i, names in enumerate(factors))
    return code + f"""import time
best = 1e9
for k in range({STEPS}):
    begun = time.perf_counter()
    float(torch.einsum('{equation}', {', '.join(f't{i}' for i in range(len(factors)))}).sum())
    best = min(best, time.perf_counter() - begun)
print(best)
"""


def run(command, code, ending):
    """What a program prints, and its processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p" + ending)
        path.write_text(code)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([*command, str(path)], capture_output=True, text=True,
                              env={**os.environ, "OMP_NUM_THREADS": "1", "TL_THREADS": "1"})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def spent(command, code, ending):
    """Processor seconds of one of what is counted: of two runs of different length."""
    few, many = 2000, 10000
    seconds = [run(command, code.replace("{count}", str(count)).replace("{{", "{").replace("}}", "}"), ending)[1]
               for count in (few, many)]
    return (seconds[1] - seconds[0]) / (many - few)


def best(command, code, ending):
    """Seconds of the fastest step, as the program has timed it."""
    return float(run(command, code, ending)[0])


def compare(name, tl, programs, measure, repeat):
    ours, theirs = programs
    rounds = [(measure(tl, ours, ".tl"), measure([PYTHON], theirs, ".py")) for _ in range(repeat)]
    least = [min(times) for times in zip(*rounds)]
    print(f"{name:22} tl {1000 * least[0]:9.3f} ms   PyTorch {1000 * least[1]:9.3f} ms   {least[1] / least[0]:.2f}x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tl", default=ROOT / "build/release/tl")
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    tl = [str(options.tl), "run", "--quiet", "--device", "cpu"]
    for equation, sizes in SUMS.items():
        compare(equation, tl, (sums_tl(equation, sizes), sums_torch(equation, sizes)), best, options.repeat)
    programs = [code.replace("{rank}", str(options.rank)) for code in (COMPLEX_TL, COMPLEX_TORCH)]
    compare("ComplEx, a triple", tl, programs, spent, options.repeat)


if __name__ == "__main__":
    main()
