#!/usr/bin/env python3
"""Synthetic llamas of TinyLlama's shape (1.1 B), next to other engines, in tokens per second: decoding, and prompts.
Each engine times itself, without loading; the median of its samples counts. A table of four types, of one thread
and two, of three engines, in about 6 minutes on 16 quiet cores:

    tests/bench/models.py --threads 1 2 --together --llama llama.cpp --ik ik_llama.cpp

With --processor, for a machine on which others work: tokens per second of processor time, the difference between runs
of different length, in turns."""
import argparse
import json
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from synthetic import FORMATS, TINYLLAMA, write_llama

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent.parent
SMALL = (2, 256, 512, 8, 2, 512)
LONG = 128        # tokens from which fewer samples are enough
LEAST = 1.0       # seconds by which runs that are subtracted differ, at least
CONFIGURE = ["-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_CURL=OFF"]


def program(path):
    """llama-bench: the path itself, or in that folder as built or installed; a folder of sources is built."""
    path = Path(path).resolve()
    places = [path, *(path / folder / "llama-bench" for folder in ("build/bin", "bin", "."))]
    found = next((str(place) for place in places if place.is_file()), None)
    if found:
        return found
    if not (path / "CMakeLists.txt").exists():
        sys.exit(f"{path} is neither llama-bench nor a folder of llama.cpp's sources or programs")
    for step in (["-S", path, "-B", path / "build", *CONFIGURE],
                 ["--build", path / "build", "--target", "llama-bench", "-j", str(os.cpu_count())]):
        subprocess.run(["cmake", *step], check=True, stdout=sys.stderr)
    return str(path / "build" / "bin" / "llama-bench")


def physical_cores():
    """One of the processors of each core that this program may use."""
    cores = {}
    for processor in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        cores.setdefault(siblings.read_text() if siblings.exists() else processor, processor)
    return list(cores.values())


class Engine:
    def __init__(self, name, command, environment):
        self.name, self.command, self.environment = name, command, environment
        self.cores = None

    def run(self, model, test, threads, times):
        """The seconds of each time, and the processor time of the whole run."""
        own = self.environment is not None
        lengths = ["-p", 0, "-n", test[1:]] if test[0] == "n" else ["-p", test[1:], "-n", 0]
        words = [model, test, times] if own else ["-m", model, "-t", threads, *lengths, "-r", times, "-o", "json"]
        pin = ["taskset", "-c", ",".join(map(str, self.cores[:threads]))] if self.cores else []
        process = subprocess.Popen([*pin, *self.command, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**os.environ, **(self.environment or {}), "TL_THREADS": str(threads)})
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        out, errors = process.communicate()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if process.returncode:
            raise RuntimeError(f"{shlex.join(map(str, process.args))}: exit status {process.returncode}\n{errors}")
        seconds = map(float, out.split()) if own else (sample * 1e-9 for sample in json.loads(out)[0]["samples_ns"])
        return list(seconds), after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime

    def seconds(self, model, test, threads, options):
        """The median of what the engine measured, or the processor time of one more time."""
        samples = options.samples if int(test[1:]) < LONG else (options.samples + 1) // 2
        if not options.processor:
            return statistics.median(self.run(model, test, threads, samples)[0])
        short = min(self.run(model, test, threads, 1)[1] for _ in range(options.rounds))
        more = samples
        while True:
            long = min(self.run(model, test, threads, 1 + more)[1] for _ in range(options.rounds))
            if long - short >= max(options.least, short):
                return (long - short) / more
            more *= 2


def table(engines, model, threads, size, options):
    with ThreadPoolExecutor(len(engines) if options.together else 1) as pool:
        for test in [f"n{options.decode}", *(f"p{tokens}" for tokens in options.prompts)]:
            found = list(pool.map(lambda engine: int(test[1:]) / engine.seconds(model, test, threads, options), engines))
            cells = "  ".join(f"{engine.name} {rate:.1f} ({found[0] / rate:.2f})"
                              for engine, rate in zip(engines, found, strict=True))
            reads = f", tl reads {found[0] * size * 1e-9:.1f} GB/s" if test[0] == "n" else ""
            yield f"{'decode' if test[0] == 'n' else 'prompt ' + test[1:]:<10} {cells}{reads}"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build" / "release", type=Path)
    parser.add_argument("--types", nargs="+", default=["q4_0", "q4_k_m", "q8_0", "f16"], choices=[*FORMATS, "q4_k_m"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1])
    parser.add_argument("--decode", type=int, default=16, help="tokens that a text has")
    parser.add_argument("--prompts", nargs="*", type=int, default=[64, 512], help="tokens that prompts have")
    parser.add_argument("--samples", type=int, default=5, help=f"of each; half of them from {LONG} tokens on")
    parser.add_argument("--llama", help="llama.cpp: its llama-bench, or a folder of its programs or its sources")
    parser.add_argument("--ik", help="the same of ik_llama.cpp, which repacks at run time")
    parser.add_argument("--peer", action="append", default=[], help="NAME=PROGRAM [OPTION...], with the options of llama-bench")
    parser.add_argument("--together", action="store_true", help="all engines at once, each on cores of its own")
    parser.add_argument("--processor", action="store_true", help="processor time, the difference between two lengths")
    parser.add_argument("--large-pages", action="store_true", help="tl with TL_REPACK=load, too")
    parser.add_argument("--rounds", type=int, default=2, help="of --processor: the smallest of so many runs counts")
    parser.add_argument("--least", type=float, default=LEAST, help="of --processor: seconds by which lengths differ, at least")
    parser.add_argument("--small", action="store_true", help="a llama of two small layers")
    options = parser.parse_args()
    if options.together and options.processor:
        parser.error("--processor subtracts runs in turns, not --together")
    return options


def engines_of(options):
    tl = [options.build / "tl", "run", BENCH / "models.tl"]
    engines = [Engine("tl", tl, {"TL_DEVICE": "cpu"}), Engine("tl, fast", tl, {"TL_DEVICE": "cpu", "TL_FAST": "1"})]
    if options.large_pages:
        engines.append(Engine("tl, large pages", tl, {"TL_DEVICE": "cpu", "TL_REPACK": "load"}))
    peers = [("llama.cpp", [program(options.llama)])] if options.llama else []
    peers += [("ik_llama.cpp", [program(options.ik), "-w", "0", "-rtr", "1"])] if options.ik else []
    peers += [(name, shlex.split(words)) for name, words in (peer.split("=", 1) for peer in options.peer)]
    engines += [Engine(name, command, None) for name, command in peers]
    if options.together:
        cores, each = physical_cores(), max(options.threads)
        if len(cores) < each * len(engines):
            sys.exit(f"--together takes {each * len(engines)} cores for {len(engines)} engines, there are {len(cores)}")
        for i, engine in enumerate(engines):
            engine.cores = cores[i * each:(i + 1) * each]
    return engines


def main():
    options = arguments()
    engines = engines_of(options)
    print(f"tokens per second{' of processor time' if options.processor else ''} (tl's share), load {os.getloadavg()[0]:.0f}")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.gguf")
        for name in options.types:
            size = write_llama(model, name, SMALL if options.small else TINYLLAMA)
            for threads in options.threads:
                for line in table(engines, model, threads, size, options):
                    print(f"{name:<7} threads {threads}  {line}", flush=True)


if __name__ == "__main__":
    main()
