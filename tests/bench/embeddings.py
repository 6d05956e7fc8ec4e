#!/usr/bin/env python3
"""Steps of ComplEx with the N3 penalty on triples drawn at random, of the sizes of FB15k-237, and chains of Einstein's
sums, next to PyTorch on one thread of the CPU: processor milliseconds, the difference of two runs, the least of several in turn.
Nothing here is a test.

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
SUMS = {  # equation: sizes of its letters, times that it is computed
    "ab,bc,cd->ad": ({"a": 256, "b": 512, "c": 256, "d": 512}, 1000),
    "ab,bc,cd,de->ae": ({"a": 512, "b": 32, "c": 512, "d": 32, "e": 512}, 2000),
    "bqd,bkd,bke->bqe": ({"b": 16, "q": 128, "k": 128, "d": 64, "e": 64}, 1000),
    "nx,ny,xys->ns": ({"n": 500, "x": 30, "y": 30, "s": 59}, 2000),
    "abc,cd,ae->bde": ({"a": 48, "b": 48, "c": 48, "d": 48, "e": 48}, 2000),
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
    return code + f"fn step() {{{{\n    C[{', '.join(result)}] = {product}\n    sum(C)\n}}}}\nfor k in 0..{{count}} {{{{ float(step()) }}}}\n"


def sums_torch(equation, sizes):
    factors = equation.split("->")[0].split(",")
    code = "import torch\ntorch.set_num_threads(1)\n"
    code += "".join(f"t{i} = torch.randn({[sizes[name] for name in names]})\n" for i, names in enumerate(factors))
    return code + f"for k in range({{count}}): float(torch.einsum('{equation}', {', '.join(f't{i}' for i in range(len(factors)))}).sum())\n"


def spent(command, code, ending, counts):
    """Processor seconds of one of what is counted."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            path = Path(folder, "p" + ending)
            path.write_text(code.replace("{count}", str(count)).replace("{{", "{").replace("}}", "}"))
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run([*command, str(path)], capture_output=True, text=True,
                                  env={**os.environ, "OMP_NUM_THREADS": "1", "TL_THREADS": "1"})
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            if done.returncode:
                sys.exit(done.stdout + done.stderr)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (seconds[1] - seconds[0]) / (counts[1] - counts[0])


def compare(name, tl, ours, theirs, counts, repeat):
    least = [min(pair) for pair in zip(*((spent(tl, ours, ".tl", counts), spent([PYTHON], theirs, ".py", counts)) for _ in range(repeat)))]
    print(f"{name:22} tl {1000 * least[0]:9.3f} ms   PyTorch {1000 * least[1]:9.3f} ms   {least[1] / least[0]:.2f}x", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tl", default=ROOT / "build/release/tl")
    parser.add_argument("--rank", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    tl = [str(options.tl), "run", "--quiet", "--device", "cpu"]
    for equation, (sizes, count) in SUMS.items():
        compare(equation, tl, sums_tl(equation, sizes), sums_torch(equation, sizes), (count // 10, count), options.repeat)
    ours, theirs = (code.replace("{rank}", str(options.rank)) for code in (COMPLEX_TL, COMPLEX_TORCH))
    compare("ComplEx, a triple", tl, ours, theirs, (2000, 10000), options.repeat)


if __name__ == "__main__":
    main()
