#!/usr/bin/env python3
"""Digits learned from sums alone (examples/18_digit_sum.tl) next to the same in PyTorch, and next to full labels.
Prints accuracy on pictures not seen after the first run's epochs, and milliseconds an epoch on one thread by the clock:
the difference of two runs, the least of several in turn. Nothing here is a test.

    tests/bench/digit_sum.py [--tl build/release/tl] [--repeat 5]
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
EPOCHS = (60, 360)

COMMON = """
let table = tensor(read_csv("{data}"))
let labels = table[:, 0] as int64
let pixels = table[:, 1:] as float32 / 9.0 - 0.5
let known = 500
seed(2)
let first = randint(0, known, [2000])
let second = randint(0, known, [2000])
let (left, right, sums) = (pixels[first], pixels[second], labels[first] + labels[second])
tensor w1: float32[64, 64] learnable = randn([64, 64]) * 0.15
tensor b1: float32[64] learnable
tensor w2: float32[64, 10] learnable = randn([64, 10]) * 0.15
tensor b2: float32[10] learnable
fn digits(x) {{ softmax(relu(x @ w1 + b1) @ w2 + b2) }}
"""
SUMS = """
entity Digit = {{d0, d1, d2, d3, d4, d5, d6, d7, d8, d9}}
entity Total
relation Sum(x: Digit, y: Digit, s: Total)
for s in 0..19 {{ Total(f"s{{s}}") }}
for x in 0..10 {{ for y in 0..10 {{ Sum(f"d{{x}}", f"d{{y}}", f"s{{x + y}}") }} }}
let rule = Sum as float32
fn totals(P, Q) {{
    S[n, s] = P[n, x] Q[n, y] rule[x, y, s]
    S
}}
learn {{
    objective: nll_loss(log(totals(digits(left), digits(right)) + 1e-6), sums)
    optimizer: adam(lr: 0.005)
    epochs: {epochs}
    batch: 50 of (left, right, sums)
    shuffle: true
    progress: false
}}
"""
LABELS = """
let (both, digit) = (concat(list(left, right), 0), concat(list(labels[first], labels[second]), 0))
learn {{
    objective: nll_loss(log(digits(both) + 1e-6), digit)
    optimizer: adam(lr: 0.005)
    epochs: {epochs}
    batch: 100 of (both, digit)
    shuffle: true
    progress: false
}}
"""
SHOWN = """
print("accuracy", mean(argmax(digits(pixels[known:]), 1) == labels[known:]) as float)
"""
TORCH = """
import sys, torch
torch.set_num_threads(1)
rows = [list(map(float, line.split(","))) for line in open("{data}") if line.strip()]
table = torch.tensor(rows)
labels, pixels, known = table[:, 0].long(), table[:, 1:] / 9.0 - 0.5, 500
torch.manual_seed(2)
first, second = torch.randint(0, known, (2000,)), torch.randint(0, known, (2000,))
left, right, sums = pixels[first], pixels[second], labels[first] + labels[second]
w1, w2 = (torch.randn(64, n) * 0.15 for n in (64, 10))
parameters = [w1, torch.zeros(64), w2, torch.zeros(10)]
for each in parameters: each.requires_grad_()
rule = torch.zeros(10, 10, 19)
for x in range(10):
    for y in range(10): rule[x, y, x + y] = 1.0
def digits(x):
    w1, b1, w2, b2 = parameters
    return torch.softmax(torch.relu(x @ w1 + b1) @ w2 + b2, 1)
optimizer = torch.optim.Adam(parameters, lr=0.005)
for epoch in range({epochs}):
    order = torch.randperm(2000)
    for at in range(0, 2000, 50):
        rows = order[at:at + 50]
        S = torch.einsum("nx,ny,xys->ns", digits(left[rows]), digits(right[rows]), rule)
        loss = torch.nn.functional.nll_loss(torch.log(S + 1e-6), sums[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("accuracy", (digits(pixels[known:]).argmax(1) == labels[known:]).float().mean().item())
"""


def run(command):
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1", "TL_THREADS": "1"})
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    accuracy = float(re.search(r"accuracy (\S+)", done.stdout).group(1))
    return seconds, accuracy


def measure(command, text, ending):
    """Seconds an epoch, and the accuracy of the shorter run."""
    with tempfile.TemporaryDirectory() as folder:
        path, found = Path(folder, "p" + ending), []
        for epochs in EPOCHS:
            path.write_text(text.format(data=ROOT / "examples/data/digits.csv", epochs=epochs))
            found.append(run([*command, str(path)]))
    return (found[1][0] - found[0][0]) / (EPOCHS[1] - EPOCHS[0]), found[0][1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tl", default=ROOT / "build/release/tl")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    tl = [str(options.tl), "run", "--quiet", "--device", "cpu"]
    programs = {"sums, tl": (tl, COMMON + SUMS + SHOWN, ".tl"), "labels, tl": (tl, COMMON + LABELS + SHOWN, ".tl"),
                "sums, PyTorch": (["/usr/bin/python3"], TORCH, ".py")}
    if subprocess.run(["/usr/bin/python3", "-c", "import torch"], capture_output=True).returncode:
        print("PyTorch is left out: it is not installed")
        del programs["sums, PyTorch"]
    rounds = [{name: measure(*program) for name, program in programs.items()} for _ in range(options.repeat)]
    least = {name: min(each[name] for each in rounds) for name in programs}
    for name, (seconds, accuracy) in least.items():
        print(f"{name:24} accuracy {accuracy:.3f}   {1000 * seconds:8.2f} ms an epoch")
    print(f"accuracy from sums is {least['sums, tl'][1] / least['labels, tl'][1]:.3f} of that from labels")
    if "sums, PyTorch" in least:
        print(f"an epoch takes {least['sums, PyTorch'][0] / least['sums, tl'][0]:.2f} times as long in PyTorch")


if __name__ == "__main__":
    main()
