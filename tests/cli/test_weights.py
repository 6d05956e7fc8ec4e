"""Programs over semirings against enumeration of all worlds: random rules over weighted facts, with
shared facts, facts that exclude each other, cycles, negation and weighted rules."""

import itertools
import math
import os
import random
import unittest

from tl import run_code

NAMES = ["a", "b1", "c", "d"]
COUNT = int(os.environ.get("TL_TEST_PROGRAMS", "100"))
BATCH = 25


class Program:
    """Edges with weights, and rules for p (of edges) and q (of p, of edges, of what p lacks)."""

    def __init__(self, choose, number):
        self.number = number
        pairs = [(x, y) for x in NAMES for y in NAMES]
        edges = choose.sample(pairs, choose.randint(3, 6))
        self.edges = [(edge, choose.choice([1.0, *(round(choose.random(), 2) for _ in range(3))]))
                      for edge in edges]
        self.closure = choose.choice(["right", "left", "both", "none"])
        self.rules = choose.sample(["back", "not", "turn", "two"], choose.randint(1, 3))
        self.rule_weight = choose.choice([None, round(choose.random(), 2)])
        self.drawn = choose.choice([None, None, "a", "b1"])  # whose edges are drawn from a tensor
        if self.drawn:
            self.edges = [edge for edge in self.edges if edge[0][0] != self.drawn][:3]
            self.edges += [((self.drawn, y), round(choose.random() / 4, 2)) for y in NAMES]
        self.learned = [i for i, (_, weight) in enumerate(self.edges) if weight < 1.0]
        free = [i for i in self.learned if self.edges[i][0][0] != self.drawn]
        self.either = free[:2] if len(free) > 1 and choose.random() < 0.5 else []  # exclude each other
        for i in self.either:
            self.edges[i] = (self.edges[i][0], self.edges[i][1] / 2)

    def text(self):
        n = self.number
        lines = [f"relation E{n}(x: Name, y: Name)"]
        for i, ((x, y), weight) in enumerate(self.edges):
            if weight == 1.0:
                lines.append(f"E{n}({x}, {y})")
            elif x != self.drawn:
                lines.append(f"let w{n}_{i} = learnable({weight})")
                if i not in self.either:
                    lines.append(f"w{n}_{i} :: E{n}({x}, {y})")
        if self.either:
            lines.append("; ".join("w{}_{} :: E{}({}, {})".format(n, i, n, *self.edges[i][0]) for i in self.either))
        if self.drawn:
            weights = [weight for (x, _), weight in self.edges if x == self.drawn]
            lines += [f"let w{n} = learnable({weights})", f"E{n}({self.drawn}, y) ~ w{n}[y]"]
        bodies = {"right": f"P{n}(X, Y), E{n}(Y, Z)", "left": f"E{n}(X, Y), P{n}(Y, Z)",
                  "both": f"P{n}(X, Y), P{n}(Y, Z)"}
        lines.append(f"P{n}(X, Y) <- E{n}(X, Y)")
        if self.closure != "none":
            lines.append(f"P{n}(X, Z) <- {bodies[self.closure]}")
        goals = {"back": f"P{n}(X, Y), P{n}(Y, X)", "not": f"E{n}(Y, X), not P{n}(X, Y)",
                 "turn": f"P{n}(Y, X)", "two": f"E{n}(X, Y), P{n}(X, _)"}
        for i, rule in enumerate(self.rules):
            weight = f"{self.rule_weight} :: " if i == 0 and self.rule_weight else ""
            lines.append(f"{weight}Q{n}(X, Y) <- {goals[rule]}")
        for relation in "PQ":
            lines.append(f"for r in Exact.{relation}{n}(X, Y)? {{ print({n}, \"{relation}\", r.X, r.Y, r.score) }}")
        for k in (1, 2, 40):
            lines.append(f"for r in Top{k}.P{n}(X, Y)? {{ print({n}, \"top{k}\", r.X, r.Y, r.score) }}")
        lines.append(f"let all{n} = Exact.Q{n}(X, Y)?")
        if self.learned:
            lines += [f"if len(all{n}) > 0 {{",
                      f"    let total = 0.0",
                      f"    for r in all{n} {{ total = total + r.score }}",
                      f"    if type(total) == \"tensor\" {{",
                      f"        backward(total)"]
            lines += [f"        print({n}, \"grad\", {i}, \"-\", {self.gradient(i)})" for i in self.learned]
            lines += ["    }", "}"]
        return lines

    def gradient(self, i):
        (x, y), _ = self.edges[i]
        return f"grad(w{self.number})[{NAMES.index(y)}]" if x == self.drawn else f"grad(w{self.number}_{i})"

    def choices(self):
        """Groups of facts and instances of the weighted rule, of which one holds or none: keys and weights."""
        free = [self.edges[i] for i in self.learned if i not in self.either and self.edges[i][0][0] != self.drawn]
        groups = [[edge] for edge in free] + [[self.edges[i] for i in self.either]]
        groups.append([edge for edge in self.edges if edge[0][0] == self.drawn])
        if self.rule_weight:
            groups += [[(("rule", *way), self.rule_weight)] for way in self.rule_ways()]
        return [group for group in groups if group]

    def world_count(self):
        return math.prod(len(group) + 1 for group in self.choices())

    def rule_ways(self):
        edges = {edge for edge, _ in self.edges}
        return [way for _, way in self.ways(self.rules[0], edges, self.close(edges), None)]

    def close(self, edges):
        p = set(edges)
        while self.closure != "none":
            more = {(x, z) for x, y in p for y2, z in p if y == y2}
            if self.closure != "both":
                more = {(x, z) for x, y in (p if self.closure == "right" else edges)
                        for y2, z in (edges if self.closure == "right" else p) if y == y2}
            if more <= p:
                break
            p |= more
        return p

    def ways(self, rule, edges, p, lacking):
        """What a rule gives, each with the solution that it rests on; lacking: p that `not` reads."""
        if rule == "back":
            return [((x, y), (x, y)) for x, y in p if (y, x) in p]
        if rule == "not":
            return [((x, y), (x, y)) for y, x in edges if lacking is None or (x, y) not in lacking]
        if rule == "turn":
            return [((y, x), (x, y)) for x, y in p]
        return [((x, y), (x, y, z)) for x, y in edges for x2, z in p if x2 == x]

    def world(self, held):
        edges = {edge for edge, weight in self.edges if weight == 1.0 or edge in held}
        p = self.close(edges)
        q = set()
        for i, rule in enumerate(self.rules):
            for row, way in self.ways(rule, edges, p, p):
                if i > 0 or not self.rule_weight or ("rule", *way) in held:
                    q.add(row)
        return p, q

    def worlds(self):
        """The worlds that differ, with their weights by free fact."""
        groups = self.choices()
        for chosen in itertools.product(*([None, *group] for group in groups)):
            yield groups, chosen, self.world({one[0] for one in chosen if one})

    def expected(self):
        exact, slopes = {}, {}
        for groups, chosen, (p, q) in self.worlds():
            parts = [one[1] if one else 1 - sum(weight for _, weight in group) for group, one in zip(groups, chosen)]
            weight = 1.0
            for part in parts:
                weight *= part
            for row in p:
                exact["P", row] = exact.get(("P", row), 0.0) + weight
            for row in q:
                exact["Q", row] = exact.get(("Q", row), 0.0) + weight
            for i, group in enumerate(groups):
                rest = math.prod(part for j, part in enumerate(parts) if j != i) * len(q)
                for key, _ in group:
                    part = rest if chosen[i] and chosen[i][0] == key else 0.0 if chosen[i] else -rest
                    slopes[key] = slopes.get(key, 0.0) + part
        return exact, slopes


class Weights(unittest.TestCase):
    def run_batch(self, programs):
        head = ["entity Name = {a, b1, c, d}", "program Exact over exact {}", "program Top1 over topk(1) {}",
                "program Top2 over topk(2) {}", "program Top40 over topk(40) {}"]
        body = [line for program in programs for line in program.text()]
        result = run_code("\n".join(head + body) + "\n")
        self.assertEqual(result.err, "")
        printed = {}
        for line in result.out.splitlines():
            number, kind, x, y, score = line.split(" ", 4)
            printed[int(number), kind, x, y] = 0.0 if score == "none" else float(score)
        return printed

    def check_program(self, program, printed):
        exact, slopes = program.expected()
        text = "\n".join(program.text())
        for (kind, (x, y)), value in exact.items():
            if value == 0.0:
                continue
            found = printed.get((program.number, kind, x, y))
            self.assertIsNotNone(found, f"{kind}({x}, {y}) is missing in\n{text}")
            self.assertAlmostEqual(found, value, delta=1e-6, msg=f"{kind}({x}, {y})\n{text}")
            if kind == "P":
                tops = [printed[program.number, f"top{k}", x, y] for k in (1, 2, 40)]
                self.assertLessEqual(tops[0], tops[1] + 1e-6)
                self.assertLessEqual(tops[1], value + 1e-6)
                self.assertAlmostEqual(tops[2], value, delta=1e-6, msg=text)
        for i in program.learned:
            found = printed.get((program.number, "grad", str(i), "-"))
            if found is not None:
                self.assertAlmostEqual(found, slopes[program.edges[i][0]], delta=2e-5, msg=f"{i}\n{text}")

    def test_random_programs(self):
        choose = random.Random(int(os.environ.get("TL_TEST_SEED", "1")))
        number = 0
        while number < COUNT:
            programs = []
            while len(programs) < BATCH:
                program = Program(choose, number)
                if program.world_count() <= 2048:
                    programs.append(program)
                    number += 1
            printed = self.run_batch(programs)
            for program in programs:
                self.check_program(program, printed)


class Edits(unittest.TestCase):
    """Facts come, go and change their weights between queries with and without a program block."""

    HEAD = ["entity Name = {a, b1, c, d}", "relation E(x: Name, y: Name)", "P(X, Y) <- E(X, Y)",
            "P(X, Z) <- P(X, Y), E(Y, Z)", "Q(X, Y) <- Name(X), Name(Y), not P(X, Y)",
            "program Exact over exact {}"]

    def missing(self, edges):
        reached = {y for x, y in edges if x == "a"}
        while True:
            more = {y for x, y in edges if x in reached} - reached
            if not more:
                return [name for name in NAMES if name not in reached]
            reached |= more

    def weighed(self, facts):
        free = [edge for edge in facts if facts[edge] < 1.0]
        total = dict.fromkeys(NAMES, 0.0)
        for values in itertools.product([False, True], repeat=len(free)):
            held = {edge for edge, value in zip(free, values) if value}
            for name in self.missing([edge for edge in facts if facts[edge] == 1.0 or edge in held]):
                total[name] += 0.5 ** len(free)
        return [f"{name} {value:.6}" for name, value in total.items() if value > 0]

    def edit(self, choose, facts):
        edge = (choose.choice(NAMES), choose.choice(NAMES))
        kind = choose.choice(["retract", "weigh", "add"])
        if kind == "retract" and edge in facts:
            del facts[edge]
            return f"retract E({edge[0]}, {edge[1]})"
        facts[edge] = 0.5 if kind == "weigh" else 1.0
        return ("0.5 :: " if kind == "weigh" else "") + f"E({edge[0]}, {edge[1]})"

    def test_edits(self):
        for seed in range(10):
            choose, facts, lines, expected = random.Random(seed), {}, list(self.HEAD), []
            for _ in range(12):
                lines.append(self.edit(choose, facts))
                lines += ["for s in Exact.Q(a, X)? { if s.score > 0.0 { print(format(\"{} {:.6}\", s.X, s.score)) } }",
                          "print([s.X for s in Q(a, X)?])"]
                expected.append((sorted(self.weighed(facts)), sorted(self.missing(facts))))
            result = run_code("\n".join(lines) + "\n")
            self.assertEqual(result.err, "")
            weighed = []
            for line in result.out.splitlines():
                if not line.startswith("["):
                    name, value = line.split()
                    weighed.append(f"{name} {float(value):.6}")
                    continue
                plain = sorted(name.strip('" ') for name in line.strip("[]").split(",") if name.strip())
                self.assertEqual((sorted(weighed), plain), expected.pop(0), "\n".join(lines))
                weighed = []
            self.assertEqual(expected, [])


class Gradients(unittest.TestCase):
    """Gradients into weights against central differences, over every semiring that has them."""

    EDGES = [("a", "b1"), ("a", "c"), ("b1", "c"), ("b1", "d"), ("c", "d")]
    STEP = 1e-4

    def lines(self, choose, semiring):
        weights = [round(choose.uniform(0.1, 0.9), 3) for _ in self.EDGES]
        lines = ["relation E(x: entity, y: entity)", "P(X, Y) <- E(X, Y)", "P(X, Z) <- P(X, Y), E(Y, Z)",
                 f"program S over {semiring} {{}}"]
        lines += [f"let w{i} = learnable({weight})" for i, weight in enumerate(weights)]
        facts = [f"w{i} :: E({x}, {y})" for i, (x, y) in enumerate(self.EDGES)]
        lines += facts + ["let score = S.P(a, d)?", "backward(score)"]
        plain = [fact.replace(f"w{i}", str(weight), 1) for i, (fact, weight) in enumerate(zip(facts, weights))]
        lines += plain
        for i, weight in enumerate(weights):
            name = "high", "low"
            for side, sign in zip(name, (1, -1)):
                lines += [plain[i].replace(str(weight), str(weight + sign * self.STEP), 1),
                          f"let {side}{i} = S.P(a, d)?"]
            lines += [plain[i], f"let slope{i} = if grad(w{i}) == none {{ 0.0 }} else {{ float(grad(w{i})) }}",
                      f"print(slope{i}, (high{i} - low{i}) / {2 * self.STEP})"]
        return lines

    def test_differences(self):
        for semiring in ["exact", "prob", "max_prod", "min_plus", "real", "log", "topk(2)"]:
            for seed in range(5):
                lines = self.lines(random.Random(seed), semiring)
                result = run_code("\n".join(lines) + "\n")
                self.assertEqual(result.err, "", "\n".join(lines))
                self.assertEqual(len(result.out.splitlines()), len(self.EDGES))
                for line in result.out.splitlines():
                    slope, difference = map(float, line.split())
                    self.assertAlmostEqual(slope, difference, delta=1e-4, msg=f"{semiring} {seed}")


if __name__ == "__main__":
    unittest.main()
