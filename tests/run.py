#!/usr/bin/env python3
"""Runs the whole suite and ends with the line `N passed, N failed`: on the CPU, and where a Vulkan
driver is present (a software driver will do) a second time on that device, what makes tensors: unit
tests of the layers from device/ up (those of device/vulkan/ in this pass alone), all scripts, and
cases whose class says `every_device`. The same output is expected from both. `--device` runs one of
the two, or the pass on vulkan:N.

Three kinds of test: cmocka programs (BUILD/tests/*), scripts that say what they print
(tests/lang/*.tl, examples/*.tl), and Python test cases that drive the program from outside
(tests/cli/test_*.py).

A script's comments are its expectations:
    // expect: TEXT          the next line of standard output is exactly TEXT
    // expect error: TEXT    it fails with exit status 1; the first error line contains TEXT
    // expect stderr: TEXT   standard error contains TEXT
    // exit: N               the exit status (default 0, or 1 with `expect error`)
    // args: A B             the script's arguments; {fixtures} is the fixture folder
    // options: --seed 1     tl's own options
    // env: NAME=VALUE       in its environment
    // device: cpu           it runs in the CPU's pass only: too long for a software driver (TL_TEST_ALL=1 runs it)
    // stdin: TEXT           one line of standard input
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = Path(os.environ.get("TL_FIXTURES") or ROOT.parent / "shared")
TIME_LIMIT_S = 600
DEVICE_LAYERS = ("device_", "vulkan_", "tensor_", "model_", "value_", "library_")
DIRECTIVE = re.compile(r"//\s*(expect error|expect stderr|expect|exit|args|options|env|device|stdin):[ ]?(.*)$")


class Outcome:
    def __init__(self, name, passed, failed=0, skipped=0, detail="", foretold=None):
        self.name, self.passed, self.failed = name, passed, failed
        self.skipped, self.detail = skipped, detail
        self.foretold = foretold  # whether the foretold peak was that of the run
        self.seconds = 0.0


def timed(run, *arguments):
    """A failure is printed at once: a run that is cut off has told what it found."""
    begin = time.monotonic()
    outcome = run(*arguments)
    outcome.seconds = time.monotonic() - begin
    if outcome.failed:
        print(f"FAILED {outcome.name}\n{outcome.detail}\n", flush=True)
    return outcome


def run_command(command, environment=None, stdin=None):
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})}, input=stdin,
                          stdin=None if stdin is not None else subprocess.DEVNULL,
                          capture_output=True, timeout=TIME_LIMIT_S)


def environment_of(device):
    """TL_DEVICE is where tensors are made, TL_TEST_DEVICE where tests of kernels run them."""
    return {"TL_DEVICE": "cpu"} if device == "cpu" else {"TL_DEVICE": device, "TL_TEST_DEVICE": device}


def name_on(name, device):
    return name if device == "cpu" else f"{name} on {device}"


def run_unit(program, device):
    name = name_on(program.name, device)
    command = [program]
    if program.name.startswith("replay_"):
        command.append(ROOT / "tests" / "fuzz" / "corpus" / program.name[len("replay_"):])
    try:
        result = run_command(command, environment_of(device))
    except subprocess.TimeoutExpired:
        return Outcome(name, 0, 1, detail=f"took longer than {TIME_LIMIT_S} s")
    output = (result.stdout + result.stderr).decode(errors="replace")
    passed = sum(int(n) for n in re.findall(r"\[  PASSED  \] (\d+) test", output))
    skipped = sum(int(n) for n in re.findall(r"\[  SKIPPED \] (\d+) test", output))
    passed += len(re.findall(r"^\d+ files replayed", output, re.M))
    failed = sum(int(n) for n in re.findall(r"\[  FAILED  \] [^\n]*?(\d+) test\(s\)", output))
    if result.returncode != 0 and failed == 0:
        failed = 1
        output += f"\nexit status {result.returncode}"
    return Outcome(name, passed, failed, skipped, output if failed else "")


def read_directives(path):
    directives = {key: [] for key in
                  ("expect", "expect error", "expect stderr", "exit", "args", "options", "env", "device", "stdin")}
    for line in path.read_text(errors="replace").splitlines():
        found = DIRECTIVE.search(line)
        if found:
            directives[found[1]].append(found[2])
    return directives


def first_error_line(stderr):
    for line in stderr.splitlines():
        if line.startswith("error"):
            return line
    return ""


def difference(expected, actual):
    for number in range(max(len(expected), len(actual))):
        want = expected[number] if number < len(expected) else "(nothing more)"
        have = actual[number] if number < len(actual) else "(nothing more)"
        if want != have:
            return f"output line {number + 1}:\n    expected {want!r}\n    printed  {have!r}"
    return ""


def most_of(found):
    """The peak of the default device, or what stands for it where none is claimed."""
    return found["estimate"] if found["peak"] is None else found["peak"]


def compare_foretold(tl, words, environment, stdin, stderr):
    """Whether tl check --memory claims the most that was live in the run, to the byte, and what is wrong if it claims that or a bound."""
    measured = re.search(r"(\d+) bytes live at most", stderr)
    result = run_command([tl, "check", "--memory", "--json", *words], environment, stdin)
    if not measured or not result.stdout:
        return None, ""
    found, peak = json.loads(result.stdout), int(measured[1])
    most = most_of(found)
    wrong = {"exact": most != peak, "bound": most < peak, "estimate": False}[found["claim"]]
    return found["claim"] == "exact", f"foretold ({found['claim']}): {most} bytes, in the run: {peak}" if wrong else ""


def run_script(tl, path, device):
    name = name_on(str(path.relative_to(ROOT)), device)
    directives = read_directives(path)
    if directives["device"] and device not in directives["device"] and not os.environ.get("TL_TEST_ALL"):
        return Outcome(name, 0, 0, 1, f"for {directives['device'][0]} only")
    arguments = [a.replace("{fixtures}", str(FIXTURES)) for a in shlex.split(" ".join(directives["args"]))]
    if any("{fixtures}" in a for a in directives["args"]) and not FIXTURES.is_dir():
        failed = os.environ.get("CI") == "true"
        return Outcome(name, 0, int(failed), int(not failed), f"no fixtures at {FIXTURES}")
    environment = environment_of(device) | dict(item.split("=", 1) for item in directives["env"])
    environment.setdefault("TL_MEMORY_CHECK", "strict")
    environment.setdefault("TL_BUFFER_STATS", "1")
    words = [*shlex.split(" ".join(directives["options"])), path.relative_to(ROOT), *arguments]
    stdin = "".join(line + "\n" for line in directives["stdin"]).encode() if directives["stdin"] else None
    try:
        result = run_command([tl, "run", *words], environment, stdin)
    except subprocess.TimeoutExpired:
        return Outcome(name, 0, 1, detail=f"took longer than {TIME_LIMIT_S} s")
    stdout = result.stdout.decode(errors="replace")
    stderr = result.stderr.decode(errors="replace")
    problems = []
    problem = difference(directives["expect"], stdout.splitlines())
    if problem:
        problems.append(problem)
    for text in directives["expect error"]:
        if text not in first_error_line(stderr):
            problems.append(f"expected the error {text!r}, the first is {first_error_line(stderr)!r}")
    for text in directives["expect stderr"]:
        if text not in stderr:
            problems.append(f"standard error lacks {text!r}")
    wanted = int(directives["exit"][0]) if directives["exit"] else int(bool(directives["expect error"]))
    if result.returncode != wanted:
        problems.append(f"exit status {result.returncode}, expected {wanted}")
    if "device memory leaked" in stderr and "TL_TEST_LEAK" not in environment:
        problems.append("device memory leaked")
    foretold = None
    if not {"--test", "--bench"}.intersection(words):  # tl check runs neither
        foretold, problem = compare_foretold(tl, words, environment, stdin, stderr)
        if problem:
            problems.append(problem)
    if problems:
        return Outcome(name, 0, 1, detail="\n".join(problems) + "\n--- standard error\n" + stderr[-3000:], foretold=foretold)
    return Outcome(name, 1, foretold=foretold)


def foretold_outcome(outcomes, device):
    """Of all scripts of a pass, 95 in 100 have a peak that is claimed to the byte."""
    known = [o for o in outcomes if o.foretold is not None]
    missed = [o.name for o in known if not o.foretold]
    detail = f"{len(missed)} of {len(known)} peaks are not claimed: {', '.join(missed)}"
    failed = int(len(missed) * 100 > len(known) * 5)
    return Outcome(name_on("foretold peaks", device), 1 - failed, failed, detail=detail)


def tests_of(suite):
    for test in suite:
        yield from tests_of(test) if isinstance(test, unittest.TestSuite) else [test]


def is_wanted(name, patterns):
    return not patterns or any(pattern in name for pattern in patterns)


class CaseResult(unittest.TestResult):
    passed = 0

    def addSuccess(self, test):
        self.passed += 1


def run_case_file(path, device):
    """All cases of one file, in a process of their own."""
    result = CaseResult()
    tests = [test for test in tests_of(unittest.TestLoader().loadTestsFromName(path.stem))
             if device == "cpu" or getattr(test, "every_device", False)]
    unittest.TestSuite(tests).run(result)
    bad = result.failures + result.errors
    failed = len({getattr(case, "test_case", case).id() for case, _ in bad})  # subtests count as one
    detail = "\n".join(f"{case}\n{text}" for case, text in bad)
    return Outcome(name_on(path.name, device), result.passed, failed, len(result.skipped), detail)


def run_cases(tl, patterns, device):
    sys.path.insert(0, str(ROOT / "tests" / "cli"))
    os.environ.update(environment_of(device), TL=str(tl), TL_FIXTURES=str(FIXTURES))
    paths = [path for path in sorted((ROOT / "tests" / "cli").glob("test_*.py")) if is_wanted(path.name, patterns)]
    with concurrent.futures.ProcessPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        return list(pool.map(timed, [run_case_file] * len(paths), paths, [device] * len(paths)))


def is_of_pass(program, device):
    return program.startswith(DEVICE_LAYERS) if device != "cpu" else not program.startswith("vulkan_")


def run_pass(tl, device, kinds, patterns):
    jobs = []
    if "unit" in kinds:
        programs = sorted(p for p in (tl.parent / "tests").glob("*")
                          if os.access(p, os.X_OK) and not p.name.startswith("fuzz_"))
        jobs += [(run_unit, p, device) for p in programs if is_wanted(p.name, patterns)
                 and is_of_pass(p.name, device)]
    if "scripts" in kinds:
        scripts = sorted((ROOT / "tests" / "lang").glob("*.tl")) + sorted((ROOT / "examples").glob("*.tl"))
        jobs += [(run_script, tl, p, device) for p in scripts if is_wanted(str(p), patterns)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        outcomes = list(pool.map(lambda job: timed(*job), jobs))
    if "scripts" in kinds and not patterns:
        outcomes.append(timed(foretold_outcome, outcomes, device))
    return outcomes + (run_cases(tl, patterns, device) if "cases" in kinds else [])


def find_vulkan(tl, wanted):
    """The first usable Vulkan device, or the one that is wanted; or "" and why there is none."""
    why = "there is no tl"
    if tl.exists():
        why = f"there is no {wanted}"
        for line in run_command([tl, "devices"]).stdout.decode().splitlines():
            name, _, what = line.partition(" ")
            if wanted not in (name, name.partition(":")[0]):
                continue
            if "not usable" not in what:
                return name, ""
            why = what.strip()
    return "", why


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--device", help="one pass, on this device: cpu, vulkan or vulkan:N")
    parser.add_argument("--only", choices=["unit", "scripts", "cases"], action="append")
    parser.add_argument("patterns", nargs="*", metavar="pattern", help="run what has one of these in its name")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="name the N that took longest")
    options = parser.parse_args()
    tl = (ROOT / options.build).resolve() / "tl"
    kinds = options.only or ["unit", "scripts", "cases"]
    start = time.monotonic()

    outcomes = []
    litter = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
    os.environ["TMPDIR"] = tempfile.tempdir = litter.name
    vulkan, why = find_vulkan(tl, "vulkan" if options.device in (None, "cpu") else options.device)
    if vulkan:
        os.environ["TL_TEST_VULKAN"] = "1"  # tests of the device's inside must find it too
    if options.device in (None, "cpu"):
        outcomes += run_pass(tl, "cpu", kinds, options.patterns)
    if options.device != "cpu" and vulkan:
        outcomes += run_pass(tl, vulkan, kinds, options.patterns)
    elif options.device != "cpu":
        must = bool(options.device) or os.environ.get("CI") == "true"
        if must:
            print(f"FAILED the suite on vulkan: {why}")
        outcomes.append(Outcome("the suite on vulkan", 0, int(must), int(not must), why))

    litter.cleanup()
    for outcome in outcomes:
        if outcome.skipped and outcome.detail and not outcome.failed:
            print(f"skipped {outcome.name}: {outcome.detail}")
    for outcome in sorted(outcomes, key=lambda o: -o.seconds)[:options.slowest]:
        print(f"{outcome.seconds:.1f} s {outcome.name}")
    passed = sum(o.passed for o in outcomes)
    failed = sum(o.failed for o in outcomes)
    skipped = sum(o.skipped for o in outcomes)
    if not FIXTURES.is_dir() and os.environ.get("CI") == "true":
        print(f"FAILED: the fixtures are missing: {FIXTURES}")
        failed += 1
    print(f"{time.monotonic() - start:.1f} s, {skipped} skipped")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
