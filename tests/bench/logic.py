#!/usr/bin/env python3
"""Logic programs next to SWI-Prolog with tabling (swipl) and Soufflé (souffle, or --souffle PATH), interpreted and
compiled (the compilation is not timed), and edits next to evaluation from the beginning. Peers that are not installed are left out and said so.
Prints processor seconds; data are drawn at random with a fixed seed. Nothing here is a test.

    tests/bench/logic.py [--tl build/release/tl] [--scale 1.0] [--crdt FOLDER] [NAME...]
"""
import argparse
import os
import random
import re
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

POINTS_TO = """
Vpt(V, H) <- New(V, H)
Vpt(V, H) <- Assign(V, W), Vpt(W, H)
Vpt(V, H) <- Load(V, B, F), Hpt(G, F, H), Vpt(B, G)
Hpt(G, F, H) <- Store(B, F, V), Vpt(V, H), Vpt(B, G)
"""
ANDERSEN = """
Pt(Y, X) <- AddressOf(Y, X)
Pt(Y, X) <- Assign(Y, Z), Pt(Z, X)
Pt(Y, W) <- Load(Y, X), Pt(Z, W), Pt(X, Z)
Pt(Z, W) <- Store(Y, X), Pt(X, W), Pt(Y, Z)
"""
DYCK = """
S(X, Y) <- Open(X, Z, K), Close(Z, Y, K)
S(X, Y) <- Open(X, Z, K), Close(W, Y, K), S(Z, W)
S(X, Y) <- S(X, Z), S(Z, Y)
"""
TEXT = """
HasChild(P) <- Insert(_, P)
LaterChild(P, C) <- Insert(B, P), Insert(C, P), B > C
FirstChild(P, C) <- Insert(C, P), not LaterChild(P, C)
LaterSibling(A, B) <- Insert(A, P), Insert(B, P), A > B
LaterSibling2(A, C) <- Insert(A, P), Insert(B, P), Insert(C, P), A > B, B > C
NextSibling(A, B) <- LaterSibling(A, B), not LaterSibling2(A, B)
HasNextSibling(A) <- LaterSibling(A, _)
NextAbove(A, B) <- NextSibling(A, B)
NextAbove(A, B) <- Insert(A, P), NextAbove(P, B), not HasNextSibling(A)
Next(A, B) <- FirstChild(A, B)
Next(A, B) <- NextAbove(A, B), not HasChild(A)
Visible(A) <- Assign(A, _), not Remove(A)
Skip(A, B) <- Next(A, B), not Visible(B)
Skip(A, C) <- Next(B, C), not Visible(C), Skip(A, B)
Shown(A, B) <- Next(A, B), Visible(A), Visible(B)
Shown(A, C) <- Next(B, C), Visible(A), Skip(A, B), Visible(C)
"""
LIST = """
HasChild(P) <- Insert(_, P)
LaterChild(P, C) <- Insert(D, P), Insert(C, P), D > C
FirstChild(P, C) <- Insert(C, P), not LaterChild(P, C)
Sibling(A, B) <- Insert(A, P), Insert(B, P)
LaterSibling(A, B) <- Sibling(A, B), A > B
LaterSibling2(A, C) <- Sibling(A, B), Sibling(A, C), A > B, B > C
NextSibling(A, B) <- LaterSibling(A, B), not LaterSibling2(A, B)
HasNextSibling(A) <- LaterSibling(A, _)
NextAbove(A, B) <- NextSibling(A, B)
NextAbove(A, B) <- not HasNextSibling(A), Insert(A, P), NextAbove(P, B)
Next(A, B) <- FirstChild(A, B)
Next(A, B) <- not HasChild(A), NextAbove(A, B)
HasValue(A) <- Assign(A, _), not Remove(A)
SkipBlank(A, B) <- Next(A, B)
SkipBlank(A, B) <- SkipBlank(V, B), Next(A, V), not HasValue(V)
Shown(A, B) <- HasValue(A), SkipBlank(A, B), HasValue(B)
"""


def points_to(draw, scale):
    count = int(100000 * scale)
    variables, module = count // 2, 200
    new, assign, load, store = [], [], [], []
    for v in range(variables):
        roll = draw.random()
        if roll < 0.15:
            new.append((v, v))
        elif roll < 0.85:
            assign.append((v, max(v // module * module, v - draw.randrange(1, 30))))
    def near(v):
        return v // module * module + draw.randrange(module)
    for _ in range(count // 4):
        a, b = draw.randrange(variables), draw.randrange(variables)
        load.append((a, near(a), a // module * 20 + draw.randrange(20)))
        store.append((near(b), b // module * 20 + draw.randrange(20), b))
    return {"New": new, "Assign": assign, "Load": load, "Store": store}


def andersen(draw, scale):
    count = int(30000 * scale)
    def near(v):
        return max(0, v - draw.randrange(1, 25))
    rows = {"AddressOf": [], "Assign": [], "Load": [], "Store": []}
    for v in range(count):
        rows[draw.choices(list(rows), (5, 6, 1, 1))[0]].append((v, near(v)))
    return rows


def dyck(draw, scale):
    nodes = int(600 * scale)
    def edges():
        return [(draw.randrange(nodes), draw.randrange(nodes), draw.randrange(3)) for _ in range(nodes)]
    return {"Open": edges(), "Close": edges()}


def text(draw, scale):
    """Letters typed one behind the other, with jumps to other places, some deleted."""
    count, at, insert = int(20000 * scale), 0, []
    for letter in range(1, count):
        if draw.random() < 0.05:
            at = draw.randrange(letter)
        insert.append((letter, at))
        at = letter
    gone = draw.sample(range(1, count), count // 10)
    return {"Insert": insert, "Assign": [(n, n % 26) for n in range(count)], "Remove": [(n,) for n in gone]}


def crdt(folder):
    """Identifiers are two numbers, a counter and one of at most four agents."""
    def rows(name):
        for line in Path(folder, name).read_text().splitlines():
            numbers = list(map(int, line.split()))
            yield tuple(4 * counter + agent for counter, agent in zip(numbers[::2], numbers[1::2]))
    insert = list(rows("insert.txt"))
    return {"Insert": insert, "Assign": [(letter, 0) for letter, _ in insert], "Remove": list(rows("remove.txt"))}


PROGRAMS = {  # name: rules, data, what is counted
    "points-to": (POINTS_TO, points_to, "Vpt"),
    "andersen": (ANDERSEN, andersen, "Pt"),
    "dyck": (DYCK, dyck, "S"),
    "text": (TEXT, text, "Shown"),
    "list": (LIST, text, "Shown"),
}


def arities(rules, rows):
    found = {name: len(facts[0]) for name, facts in rows.items()}
    for name, terms in re.findall(r"(\w+)\(([^)]*)\)", rules):
        found.setdefault(name, terms.count(",") + 1)
    return found


def tl_program(rules, rows, folder, query):
    lines = [f"relation {name}({', '.join(f'c{i}: int' for i in range(len(facts[0])))})" for name, facts in rows.items()]
    lines += [f'load_facts("{folder}/{name}.csv", {name})' for name in rows]
    return "\n".join(lines) + rules + f"print(len([0 for row in {query}]))\n"


def tl_edits(rules, rows, folder, query, edits):
    """Facts of any relation go and come, each with a count of the answers; prints for each the least times of four such edits."""
    facts = [(relation, row) for relation in rows for row in dict.fromkeys(rows[relation])]
    code = tl_program(rules, rows, folder, query)
    for number, (relation, row) in enumerate(random.Random(5).sample(facts, edits)):
        fact = f"{relation}({', '.join(map(str, row))})"
        code += f"""let gone{number} = 1e9
let come{number} = 1e9
for i in 0..4 {{
    let a = time()
    retract {fact}
    len({query})
    let b = time()
    {fact}
    len({query})
    let c = time()
    gone{number} = min(gone{number}, b - a)
    come{number} = min(come{number}, c - b)
}}
print("edit", gone{number}, come{number})
"""
    return code


def edits_beside_fresh(tl, folder, rules, rows, query, edits):
    """How many times as long evaluation from the beginning takes, for facts that go and for those that come: the median, the slowest, and how
    many are at least 50 times as fast."""
    Path(folder, "e.tl").write_text(tl_edits(rules, rows, folder, query, edits))
    fresh = tl_program(rules, rows, folder, query).replace("print(len(", "let begin = time()\nprint(len(") + 'print("fresh", time() - begin)\n'
    Path(folder, "f.tl").write_text(fresh)
    answers = "".join(cpu([tl, "run", name], folder, 600)[1] + "\n" for name in ("f.tl", "f.tl", "f.tl", "e.tl"))
    anew = min(float(time) for time in re.findall(r"fresh (\S+)", answers))
    pairs = [(float(gone), float(come)) for gone, come in re.findall(r"edit (\S+) (\S+)", answers)]
    if len(pairs) != edits:
        return answers[-200:]
    lines = [f"anew {anew:.3f} s"]
    for what, times in zip(("gone", "come"), map(sorted, zip(*pairs))):
        fast = sum(anew / time >= 50 for time in times)
        lines.append(f"{what}: median {anew / times[edits // 2]:.0f} times as fast, slowest {anew / times[-1]:.1f}, {fast} of {edits} at least 50")
    return "; ".join(lines)


def prolog_name(match):
    return "p_" + match.group(1).lower() + "("


def prolog_program(rules, rows, query):
    derived = set(re.findall(r"^(\w+)\(", rules, re.M))
    heads = arities(rules, rows)
    lines = [":- set_prolog_flag(table_space, 8000000000)."]
    lines += [f":- table p_{name.lower()}/{heads[name]}." for name in sorted(derived)]
    for name, facts in rows.items():
        lines += [f"p_{name.lower()}({','.join(map(str, row))})." for row in dict.fromkeys(facts)]
    for rule in rules.strip().splitlines():
        negated = re.sub(r"not (\w+)(\([^)]*\))", lambda m: ("tnot(" if m.group(1) in derived else "\\+(") + m.group(1) + m.group(2) + ")", rule)
        lines.append(re.sub(r"\b([A-Z]\w*)\(", prolog_name, negated).replace("<-", ":-") + ".")
    free = ",".join(f"X{i}" for i in range(heads[query]))
    lines.append(f":- initialization((aggregate_all(count, p_{query.lower()}({free}), N), writeln(N), halt)).")
    return "\n".join(lines) + "\n"


def souffle_program(rules, rows, query):
    heads = arities(rules, rows)
    lines = [f".decl {name}({', '.join(f'c{i}: number' for i in range(count))})" for name, count in heads.items()]
    lines += [f'.input {name}(IO=file, filename="{name}.csv", delimiter=",")' for name in rows]
    lines.append(f".printsize {query}")
    lines += [rule.replace("<-", ":-").replace("not ", "!") + "." for rule in rules.strip().splitlines()]
    return "\n".join(lines) + "\n"


def cpu(command, folder, limit):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        result = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=limit,
                                env={**os.environ, "TL_THREADS": "1"})
    except subprocess.TimeoutExpired:
        return f"more than {limit}", "-"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return round(seconds, 3), result.stdout.strip() or result.stderr.strip()[-200:]


def compiled_by(souffle, folder):
    """The program that Soufflé makes of p.dl, or None where it or its C++ compiler is missing."""
    if souffle and not subprocess.run([souffle, "-o", "p.bin", "p.dl"], cwd=folder, capture_output=True).returncode:
        return str(Path(folder, "p.bin"))
    return None


def compare(name, arguments):
    rules, data, query = PROGRAMS[name]
    rows = data(random.Random(1), arguments.scale)
    with tempfile.TemporaryDirectory() as folder:
        for relation, facts in rows.items():
            Path(folder, f"{relation}.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in facts))
        Path(folder, "p.tl").write_text(tl_program(rules, rows, folder, query))
        Path(folder, "p.pl").write_text(prolog_program(rules, rows, query))
        Path(folder, "p.dl").write_text(souffle_program(rules, rows, query))
        print(f"{name}: {sum(map(len, rows.values()))} facts")
        commands = {"tl": [arguments.tl, "run", "p.tl"],
                    "swipl": [shutil.which("swipl"), "p.pl"],
                    "souffle": [arguments.souffle, "-F", ".", "-D", "-", "-j", "1", "p.dl"],
                    "compiled": [compiled_by(arguments.souffle, folder), "-F", ".", "-j", "1"]}
        for peer, command in commands.items():
            if not command[0]:
                print(f"  {peer:10} not installed")
                continue
            seconds, answer = cpu(command, folder, arguments.limit)
            print(f"  {peer:10} {seconds} s   {' '.join(answer.split())}", flush=True)
        print(f"  edits      {edits_beside_fresh(arguments.tl, folder, rules, rows, query, arguments.edits)}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", choices=[[], *PROGRAMS, "crdt"])
    parser.add_argument("--tl", type=lambda path: str(Path(path).resolve()), default=str(ROOT / "build" / "release" / "tl"))
    parser.add_argument("--souffle", type=shutil.which, default="souffle")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--crdt", type=Path, help="a folder with insert.txt and remove.txt of frankmcsherry/dynamic-datalog")
    parser.add_argument("--edits", type=int, default=200, help="facts that go and come")
    parser.add_argument("--limit", type=int, default=600, help="seconds for each")
    arguments = parser.parse_args()
    if arguments.crdt:
        PROGRAMS["crdt"] = LIST, lambda draw, scale: crdt(arguments.crdt), "Shown"
    for name in arguments.names or PROGRAMS:
        compare(name, arguments)


if __name__ == "__main__":
    main()
