#!/usr/bin/env python3
"""Measures tl next to its peers in one run and prints medians and ratios. Peers that are not installed
(python3-torch, python3-numpy, lua5.4) are left out and said so. Nothing here is a test."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "tests" / "bench"
PYTHON = "/usr/bin/python3"

TORCH_OPS = """
import time, torch
torch.set_num_threads({threads})
x = torch.randn(4096, 4096); y = torch.randn(4096, 4096)
def median_ms(f):
    f(); times = []
    for _ in range(15):
        start = time.perf_counter(); f(); times.append((time.perf_counter() - start) * 1e3)
    return sorted(times)[7]
with torch.no_grad():
    print("add", median_ms(lambda: x + y)); print("relu", median_ms(lambda: torch.relu(x)))
    print("exp", median_ms(lambda: torch.exp(x))); print("softmax", median_ms(lambda: torch.softmax(x, -1)))
"""
SMALL = """
import time, {module} as m
{setup}
best = 1e9
for _ in range(5):
    start = time.perf_counter()
    for _ in range(100000): z = z * y + x
    best = min(best, (time.perf_counter() - start) / 200000 * 1e9)
print(best)
"""
SMALL_SETUP = {"torch": "x, y, z = (m.tensor([.1, .2, .3, .4]), m.tensor([.5] * 4), m.zeros(4))",
               "numpy": "x, y, z = (m.array([.1, .2, .3, .4], 'f4'), m.full(4, .5, 'f4'), m.zeros(4, 'f4'))"}


def output(*command, stdin=None):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True,
                          input=stdin, cwd=ROOT).stdout


def has_module(name):
    return subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True).returncode == 0


def seconds(*command):
    start = time.perf_counter()
    output(*command)
    return time.perf_counter() - start


def alternate(rounds, **commands):
    """Median seconds of each command, run in turn so that drift hits all alike."""
    times = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(seconds(*command))
    return {name: statistics.median(values) for name, values in times.items()}


def row(name, value, peer="", ratio="", want=""):
    print(f"{name:<34}{value:>16}  {peer:<34}{ratio:>8}  {want}")


def bench_kernels(build):
    for name in ("bench_matmul", "bench_map"):
        program = build / "bench" / name
        if program.exists():
            print(f"\n--- {name}")
            print(output(program), end="")


def bench_elementwise(tl, torch):
    mine, theirs = {}, {}
    for _ in range(3):
        for line in output(tl, BENCH / "ops.tl").splitlines():
            name, ms = line.split()
            mine.setdefault(name, []).append(float(ms))
        if torch:
            for line in output(PYTHON, "-c", TORCH_OPS.format(threads=os.cpu_count())).splitlines():
                name, ms = line.split()
                theirs.setdefault(name, []).append(float(ms))
    for name, values in mine.items():
        ms = statistics.median(values)
        if torch:
            peer = statistics.median(theirs[name])
            row(f"{name}, 16 M float32", f"{ms:.2f} ms", f"PyTorch {peer:.2f} ms", f"{peer / ms:.2f} x", "want >= 2 x")
        else:
            row(f"{name}, 16 M float32", f"{ms:.2f} ms")


def bench_small(tl):
    ns = float(output(tl, BENCH / "small.tl"))
    row("one op on 4 elements", f"{ns:.0f} ns", want="want <= 200 ns")
    for module in ("torch", "numpy"):
        if has_module(module):
            peer = float(output(PYTHON, "-c", SMALL.format(module=module, setup=SMALL_SETUP[module])))
            row("", "", f"{module} {peer:.0f} ns", f"{peer / ns:.2f} x")


def bench_loop(tl):
    commands = {"tl": (tl, BENCH / "loop.tl"), "python": (PYTHON, BENCH / "loop.py")}
    lua = shutil.which("lua5.4") or shutil.which("lua")
    if lua:
        commands["lua"] = (lua, BENCH / "loop.lua")
    times = alternate(7, **commands)
    row("while loop, 10 M iterations", f"{times['tl'] * 1e3:.0f} ms")
    for name in ("lua", "python"):
        if name in times:
            row("", "", f"{name} {times[name] * 1e3:.0f} ms", f"{times[name] / times['tl']:.2f} x",
                "want >= 1 x" if name == "lua" else "")


def bench_language(tl):
    """Small programs next to Lua."""
    if shutil.which("lua5.4") or shutil.which("lua"):
        print("\n--- small programs")
        print(output(sys.executable, BENCH / "language" / "run.py", "--tl", tl), end="")


def bench_start(tl):
    times = alternate(41, tl=(tl, "-e", ""), true=("/bin/true",))
    row("start-up of an empty script", f"{times['tl'] * 1e3:.2f} ms", f"/bin/true {times['true'] * 1e3:.2f} ms",
        want="want <= 5 ms")


def bench_story(tl, llama2):
    model = Path(os.environ.get("TL_FIXTURES", ROOT.parent / "shared")) / "models" / "stories260K.gguf"
    if not model.exists():
        print("story: the fixture stories260K.gguf is missing")
        return
    rate = float(output(tl, BENCH / "story.tl", model))
    if not llama2:
        row("story, tokens per second", f"{rate:.0f}")
        return
    rates = []
    for _ in range(5):
        folder = Path(llama2)
        result = subprocess.run([folder / "run", folder / "s.bin", "-z", folder / "tok.bin", "-t", "0", "-n", "120",
                                 "-i", "Once upon a time"], capture_output=True, text=True, check=True)
        rates.append(float(result.stderr.rsplit(":", 1)[1]))
    peer = statistics.median(rates)
    row("story, tokens per second", f"{rate:.0f}", f"llama2.c {peer:.0f}", f"{rate / peer:.2f} x")


def bench_training(build):
    """Steps of training next to PyTorch; train.py and curves.py say what is compared."""
    print("\n--- training")
    print(output(sys.executable, BENCH / "train.py", "--build", build), end="")
    if has_module("torch"):
        print(output(PYTHON, BENCH / "curves.py", "--tl", build / "tl"), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--llama2", help="a folder with llama2.c's run and the story model as s.bin, tok.bin")
    options = parser.parse_args()
    build = (ROOT / options.build).resolve()
    tl = build / "tl"
    torch = has_module("torch")
    missing = [name for name, there in (("python3-torch", torch), ("python3-numpy", has_module("numpy")),
                                        ("lua5.4", shutil.which("lua5.4") or shutil.which("lua"))) if not there]
    if missing:
        print("left out, not installed:", ", ".join(missing))
    bench_elementwise(tl, torch)
    bench_small(tl)
    bench_loop(tl)
    bench_language(tl)
    bench_start(tl)
    bench_story(tl, options.llama2)
    bench_kernels(build)
    bench_training(build)


if __name__ == "__main__":
    sys.exit(main())
