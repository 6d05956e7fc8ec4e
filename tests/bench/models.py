#!/usr/bin/env python3
"""Decoding and prompts of synthetic llamas of TinyLlama's shape (1.1 B), next to other engines, in tokens per second of
processor time: runs of different length are subtracted, so that loading does not count, engines take turns, and the
smallest of some rounds counts. With several threads the clock on the wall counts instead.

    tests/bench/models.py --types q8_0 q4_0 q4_k_m --threads 1 --peer "ik=.../llama-bench -w 0 -rtr 1" ...

A peer is a program that takes llama-bench's options -m -t -p -n -r."""
import argparse
import os
import resource
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from synthetic import FORMATS, TINYLLAMA, write_llama

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent.parent
SMALL = (2, 256, 512, 8, 2, 512)


def spent(command, environment, wall):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - start if wall else after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


class Engine:
    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment

    def arguments(self, model, options, tokens, times):
        decode = options.what == "decode"
        if self.environment is not None:
            return [*self.command, model, options.what, tokens, times]
        return [*self.command, "-m", model, "-t", options.threads, "-p", 0 if decode else tokens,
                "-n", tokens if decode else 0, "-r", times]

    def seconds(self, model, options, tokens, times):
        environment = {**(self.environment or {}), "TL_THREADS": str(options.threads)}
        command = [str(word) for word in self.arguments(model, options, tokens, times)]
        return spent(command, environment, options.threads > 1)


def rates(engines, model, options):
    runs = {engine.name: [[], []] for engine in engines}
    for _ in range(options.rounds):
        for engine in engines:
            for i, times in enumerate((1, 1 + options.times)):
                runs[engine.name][i].append(engine.seconds(model, options, options.tokens, times))
    return {name: options.times * options.tokens / max(min(long) - min(short), 1e-9)
            for name, (short, long) in runs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build" / "release", type=Path)
    parser.add_argument("--types", nargs="+", default=["f16", "q8_0", "q4_0", "q4_k_m"], choices=[*FORMATS, "q4_k_m"])
    parser.add_argument("--what", choices=["decode", "prompt"], default="decode")
    parser.add_argument("--tokens", type=int, default=16, help="of a text, or of a prompt")
    parser.add_argument("--times", type=int, default=3, help="how many texts the long runs have more than the short ones")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--peer", action="append", default=[], help="NAME=PROGRAM [OPTION...]")
    parser.add_argument("--small", action="store_true", help="a llama of two small layers")
    options = parser.parse_args()
    tl = [options.build / "tl", "run", BENCH / "models.tl"]
    engines = [Engine("tl", tl, {}), Engine("tl, fast", tl, {"TL_FAST": "1"})]
    for peer in options.peer:
        name, program = peer.split("=", 1)
        engines.append(Engine(name, shlex.split(program), None))
    print(f"{options.what}, {options.tokens} tokens, threads {options.threads}, load {os.getloadavg()[0]:.0f}")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.gguf")
        for name in options.types:
            size = write_llama(model, name, SMALL if options.small else TINYLLAMA)
            found = rates(engines, model, options)
            line = "  ".join(f"{engine} {rate:.1f} ({found['tl'] / rate:.2f})" for engine, rate in found.items())
            print(f"{name:<8} {line}  tokens/s (tl's share); tl reads {found['tl'] * size * 1e-9:.1f} GB/s", flush=True)


if __name__ == "__main__":
    main()
