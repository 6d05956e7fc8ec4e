"""How long `import tl` and a call of an empty function take of the processor: PYTHONPATH=build/release/python python3 tests/bench/python.py"""
import subprocess
import sys
import time

IMPORT = "import time; start = time.process_time(); import tl; print(time.process_time() - start)"
CALLS, ROUNDS = 100000, 7


def empty_call():
    import tl
    empty, best = tl.run("fn empty() { }\nempty"), float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(CALLS):
            empty()
        best = min(best, time.process_time() - start)
    return best / CALLS


def main():
    imports = [float(subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True).stdout)
               for _ in range(ROUNDS)]
    print(f"import tl   {min(imports) * 1e3:.1f} ms")
    print(f"empty call  {empty_call() * 1e6:.2f} us")


main()
