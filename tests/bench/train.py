#!/usr/bin/env python3
"""Steps of training in tl next to PyTorch, in turn in one run: the best microseconds a step of each, their
ratio, and the most memory that each process held. Nothing here is a test."""
import argparse
import os
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent.parent
PYTHON = "/usr/bin/python3"
NETS = {  # measurements in a process, steps in each, what is wanted
    "mlp": (5, 2000, "MLP 128 x 64-64-10, Adam", 4.0),
    "digits_mlp": (5, 200, "MLP 128 x 784-256-128-10, Adam", 2.4),
    "transformer": (2, 2, "transformer 6 x 384, 8 x 128 tokens", 1.2),
    "lstm": (5, 10, "LSTM 128, 64 steps, batch of 32", 1.5),
    "block": (5, 20, "transformer block 128, 16 x 64 rows", 1.4),
    "digits_cnn": (5, 10, "convolutions 1-16-32, 64 of 28 x 28", 1.8),
    "convolution": (3, 4, "convolutions 3-32-64, 64 of 32 x 32", 1.2),
}


def measure(command, environment):
    """What the command printed, and the peak of its resident memory in MB."""
    read, write = os.pipe()
    child = os.posix_spawnp(str(command[0]), [str(c) for c in command], environment,
                            file_actions=[(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_CLOSE, read)])
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(map(str, command))} failed")
    return float(text.split()[-1]), usage.ru_maxrss / 1024


def has_torch():
    return os.system(f"{PYTHON} -c 'import torch' 2>/dev/null") == 0


def best(results):
    return min(us for us, _ in results), min(mb for _, mb in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("nets", nargs="*", metavar="NET", help="of " + ", ".join(NETS))
    options = parser.parse_args()
    torch, threads = has_torch(), os.cpu_count()
    environment = dict(os.environ, OMP_WAIT_POLICY="passive")
    tl = (ROOT / options.build / "tl").resolve()
    if "OPENBLAS_CORETYPE" in os.environ:
        print("note: OPENBLAS_CORETYPE chooses the kernels of OpenBLAS for both")
    for net in options.nets or NETS:
        rounds, steps, title, want = NETS[net]
        mine, theirs = [], []
        for _ in range(options.turns):
            mine.append(measure([tl, "run", "--quiet", BENCH / "train" / f"{net}.tl", rounds, steps], environment))
            if torch:
                theirs.append(measure([PYTHON, BENCH / "train" / "peer.py", net, rounds, steps, threads], environment))
        us, mb = best(mine)
        line = f"{title:<38}{us:>12.1f} us {mb:>7.0f} MB"
        if torch:
            peer_us, peer_mb = best(theirs)
            line += f"   PyTorch {peer_us:>12.1f} us {peer_mb:>7.0f} MB   {peer_us / us:>5.2f} x   want >= {want} x"
        print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
