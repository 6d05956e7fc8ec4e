"""How long `import tl` and a call of an empty function take of the processor, and how much sooner two runtimes in two
threads end than one after the other (on a quiet machine; TL_THREADS=1): PYTHONPATH=build/release/python python3 tests/bench/python.py"""
import subprocess
import sys
import threading
import time

IMPORT = "import time; start = time.process_time(); import tl; print(time.process_time() - start)"
CALLS, ROUNDS = 100000, 7
WORK = {
    "loop": "let s = 0\nfor i in 0..5000000 { s += i % 7 }",
    "tensors": "let a = rand([300, 300])\nlet s = 0.0\nfor i in 0..200 { s += float(sum(relu(a @ a) + exp(-a * a))) }",
    "lists": "let n = 0\nfor k in 0..30 { for x in [2 * i for i in 0..100000] { n += x } }",
}


def empty_call():
    import tl
    empty, best = tl.run("fn empty() { }\nempty"), float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(CALLS):
            empty()
        best = min(best, time.process_time() - start)
    return best / CALLS


def work(text):
    import tl
    tl.Runtime().run(text)


def two_threads(text):
    """Seconds of two runtimes one after the other, and of two in threads: the best of some rounds."""
    alone = together = float("inf")
    for _ in range(ROUNDS):
        start = time.monotonic()
        work(text)
        work(text)
        alone = min(alone, time.monotonic() - start)
        threads = [threading.Thread(target=work, args=(text,)) for _ in range(2)]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        together = min(together, time.monotonic() - start)
    return alone, together


def main():
    imports = [float(subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True).stdout)
               for _ in range(ROUNDS)]
    print(f"import tl   {min(imports) * 1e3:.1f} ms")
    print(f"empty call  {empty_call() * 1e6:.2f} us")
    for name, text in WORK.items():
        alone, together = two_threads(text)
        print(f"two runtimes, {name}: {alone * 1e3:.0f} ms in turn, {together * 1e3:.0f} ms in two threads, {alone / together:.2f}x")


main()
