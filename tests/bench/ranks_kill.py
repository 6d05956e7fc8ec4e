#!/usr/bin/env python3
"""Kills one of 1 to 4 ranks at a random moment of training, again and again (RUNS, 20 unless given): all of them end, how
long that takes, and that the run which goes on, on another number of ranks, ends with the bits of an undisturbed one.

    tests/bench/ranks_kill.py [RUNS] [SEED]
"""
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "cli"))
from test_ranks import SHARDED, children_of, ranks  # noqa: E402


def program(shard):
    return SHARDED.replace("EPOCHS", "40").replace("MORE", "every: 1, " + shard)


def main():
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    draw = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    begun = time.monotonic()
    whole = ranks(1, program("")).stdout
    lasts = time.monotonic() - begun
    longest, killed = 0.0, 0
    for i in range(runs):
        n, shard = draw.randint(1, 4), ["", "shard: optimizer", "shard: parameters"][i % 3]
        moment, at = draw.uniform(0.2, lasts), [0.0]

        def watch(process):
            time.sleep(moment)
            for pid in draw.sample(children_of(process.pid), k=min(1, len(children_of(process.pid)))):
                os.kill(pid, signal.SIGKILL)
                at[0] = time.monotonic()

        with tempfile.TemporaryDirectory() as folder:
            result = ranks(n, program(shard), folder=folder, watch=watch)
            took = time.monotonic() - at[0] if at[0] else 0.0
            longest, killed = max(longest, took), killed + (at[0] > 0)
            assert result.stdout == whole or result.returncode != 0, result
            resumed = ranks(draw.randint(1, 4), program(shard), folder=folder)
            assert resumed.stdout == whole, resumed
            assert len(list(Path(folder).glob("run-*"))) in (0, 2, 3, 4), sorted(Path(folder).iterdir())
        print(f"{i + 1}: {n} ranks, {shard or 'whole'}, killed after {moment:.2f} s: ended within {took:.2f} s, goes on alike", flush=True)
    print(f"{killed} of {runs} were killed; the longest end took {longest:.2f} s")


if __name__ == "__main__":
    main()
