#!/usr/bin/env python3
"""Times each pair of programs NAME.tl and NAME.lua in turn and prints medians of their processor time, and the ratio:
below 1 tl is faster. Both must print the same, but for how numbers are written. Nothing here is a test."""
import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent


def run(command):
    """What the command printed and the processor time that it took, in milliseconds."""
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode != 0:
        sys.exit(f"{command[-1]} failed")
    return text, (usage.ru_utime + usage.ru_stime) * 1e3


def same(mine, theirs):
    """The numbers of both texts, as closely as the shorter spelling gives them."""
    numbers = [[float(word) for word in re.findall(r"-?\d+\.?\d*", text)] for text in (mine, theirs)]
    return len(numbers[0]) == len(numbers[1]) and all(
        abs(x - y) <= 1e-9 * max(abs(x), abs(y)) for x, y in zip(*numbers))


def measure(tl, lua, name, rounds):
    times = {tl: [], lua: []}
    for _ in range(rounds):
        mine, milliseconds = run([tl, HERE / f"{name}.tl"])
        times[tl].append(milliseconds)
        theirs, milliseconds = run([lua, HERE / f"{name}.lua"])
        times[lua].append(milliseconds)
        if not same(mine, theirs):
            sys.exit(f"{name}: tl prints {mine!r}, Lua {theirs!r}")
    return [statistics.median(values) for values in times.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tl", default=ROOT / "build" / "release" / "tl")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("names", nargs="*", help="only rows whose name contains one of these")
    options = parser.parse_args()
    lua = shutil.which("lua5.4") or shutil.which("lua")
    if not lua:
        sys.exit("Lua 5.4 is not installed (package lua5.4)")
    names = sorted(path.stem for path in HERE.glob("*.lua"))
    print(f"{'program':<18}{'tl ms':>8}{'Lua ms':>8}{'ratio':>7}")
    for name in names:
        if options.names and not any(part in name for part in options.names):
            continue
        mine, theirs = measure(Path(options.tl).resolve(), lua, name, options.rounds)
        print(f"{name:<18}{mine:>8.0f}{theirs:>8.0f}{mine / theirs:>7.2f}", flush=True)


if __name__ == "__main__":
    main()
