"""The meaning of logic programs, as naively as it can be said: rounds of naive bottom-up evaluation,
stratum by stratum, every rule over everything that was there before the round. Programs are
values: Atom, Not, Compare, Bind, Call, Test, Member as goals, strings that begin in upper case as variables.

Orders matter: a row's place is given by the round that finds it first, then the rule, then the rows
of the body's atoms.
"""
from collections import namedtuple

Atom = namedtuple("Atom", "relation terms")
Not = namedtuple("Not", "relation terms")
Compare = namedtuple("Compare", "left op right")
Bind = namedtuple("Bind", "variable left op right")
Call = namedtuple("Call", "variable function arguments")  # of FUNCTIONS
Test = namedtuple("Test", "function arguments")  # of TESTS
Member = namedtuple("Member", "variable text separator")  # each part of a text
Rule = namedtuple("Rule", "relation head goals")  # head: terms, ("sum", variable) for aggregates
Program = namedtuple("Program", "relations facts rules merges")  # merges: relation -> "min" or "max"


def is_variable(term):
    return isinstance(term, str) and term[:1].isupper()


def value_of(term, bindings):
    return bindings[term] if is_variable(term) else term


def match(terms, row, bindings):
    """The bindings that make the terms equal the row, or None."""
    bindings = dict(bindings)
    for term, value in zip(terms, row):
        if term == "_":
            continue
        if not is_variable(term):
            if term != value:
                return None
        elif bindings.setdefault(term, value) != value:
            return None
    return bindings


OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
COMPARISONS = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
               "==": lambda a, b: a == b, "!=": lambda a, b: a != b}
FUNCTIONS = {"len": len, "replace": str.replace}
TESTS = {"contains": lambda text, part: part in text, "starts_with": str.startswith}


def inputs(goal):
    """What must have a value before the goal can be asked."""
    if isinstance(goal, Not):
        return goal.terms
    if isinstance(goal, (Call, Test)):
        return goal.arguments
    return (goal.text,) if isinstance(goal, Member) else (goal.left, goal.right)


def is_ready(goal, bindings):
    return all(term == "_" or not is_variable(term) or term in bindings for term in inputs(goal))


def bound_value(goal, bindings):
    """What a Bind or a Call gives its variable."""
    if isinstance(goal, Bind):
        return OPERATIONS[goal.op](value_of(goal.left, bindings), value_of(goal.right, bindings))
    return FUNCTIONS[goal.function](*(value_of(term, bindings) for term in goal.arguments))


def holds(goal, rows, bindings):
    """Whether a Compare, a Test or a Not does."""
    if isinstance(goal, Compare):
        return COMPARISONS[goal.op](value_of(goal.left, bindings), value_of(goal.right, bindings))
    if isinstance(goal, Test):
        return TESTS[goal.function](*(value_of(term, bindings) for term in goal.arguments))
    return not any(match(goal.terms, row, bindings) is not None for row in rows[goal.relation])


def settle(goals, rows, bindings):
    """Tests and bindings that can be made; None when one fails, else (bindings, goals left)."""
    left = list(goals)
    going = True
    while going:
        going = False
        for place, goal in left:
            if isinstance(goal, (Atom, Member)) or not is_ready(goal, bindings):
                continue
            left = [other for other in left if other[0] != place]
            going = True
            if isinstance(goal, (Bind, Call)):
                result = bound_value(goal, bindings)
                if bindings.setdefault(goal.variable, result) != result:
                    return None
            elif not holds(goal, rows, bindings):
                return None
            break
    return bindings, left


def search(goals, rows, bindings, path):
    """Every way to satisfy the goals, each with its place: (bindings, where in each goal that goes through rows or parts)."""
    settled = settle(goals, rows, dict(bindings))
    if settled is None:
        return
    bindings, left = settled
    chosen = [(place, goal) for place, goal in left if isinstance(goal, Atom) or isinstance(goal, Member) and is_ready(goal, bindings)]
    if not chosen:
        assert not left, left
        yield bindings, [path[place] for place in sorted(path)]
        return
    place, first = chosen[0]
    rest = [other for other in left if other[0] != place]
    if isinstance(first, Atom):
        terms, found = first.terms, rows[first.relation]
    else:
        terms, found = (first.variable,), [(part,) for part in value_of(first.text, bindings).split(first.separator)]
    for number, row in enumerate(found):
        more = match(terms, row, bindings)
        if more is not None:
            yield from search(rest, rows, more, {**path, place: number})


def solutions(goals, rows, bindings):
    """Every way to satisfy the goals, in the order of the rows of their atoms and of the parts of texts."""
    found = search(list(enumerate(goals)), rows, bindings, {})
    if any(isinstance(goal, Member) for goal in goals):  # which is gone through only when its text is there
        found = sorted(found, key=lambda each: each[1])
    return (bindings for bindings, _ in found)


AGGREGATES = {"count": lambda values: len(set(values)), "sum": sum, "min": min, "max": max,
              "avg": lambda values: float(sum(values)) / len(values)}


def is_aggregated(rule):
    return any(isinstance(term, tuple) for term in rule.head)


def head_rows(rule, rows):
    """The rows that a rule gives, in order, perhaps several times."""
    if not is_aggregated(rule):
        for bindings in solutions(rule.goals, rows, {}):
            yield tuple(value_of(term, bindings) for term in rule.head)
        return
    groups, seen = {}, set()
    for bindings in solutions(rule.goals, rows, {}):
        named = tuple(sorted((k, str(type(v)), v) for k, v in bindings.items()))
        if named in seen:
            continue
        seen.add(named)
        key = tuple(value_of(term, bindings) for term in rule.head if not isinstance(term, tuple))
        groups.setdefault(key, []).append(bindings)
    for key, members in groups.items():
        plain = iter(key)
        row = []
        for term in rule.head:
            if not isinstance(term, tuple):
                row.append(next(plain))
                continue
            values = [bindings[term[1]] for bindings in members]
            row.append(AGGREGATES[term[0]](values))
        yield tuple(row)


def typed(kinds, row):
    """Columns of floats hold floats."""
    return tuple(float(value) if kind == "f" else value for kind, value in zip(kinds, row))


def reachable(program):
    """What each relation needs, directly and through others."""
    reach = {name: set() for name in program.relations}
    for rule in program.rules:
        reach[rule.relation] |= {goal.relation for goal in rule.goals if isinstance(goal, (Atom, Not))}
    changed = True
    while changed:
        changed = False
        for name in reach:
            more = set().union(*(reach[other] for other in reach[name])) if reach[name] else set()
            if not more <= reach[name]:
                reach[name] |= more
                changed = True
    return reach


def strata(program):
    derived = {rule.relation for rule in program.rules} | set(program.merges)
    reach = reachable(program)
    stratum = {name: int(name in derived) for name in program.relations}
    changed = True
    while changed:
        changed = False
        for rule in program.rules:
            for goal in rule.goals:
                if not isinstance(goal, (Atom, Not)):
                    continue
                together = rule.relation in reach[goal.relation] and goal.relation in reach[rule.relation]
                strict = isinstance(goal, Not) or is_aggregated(rule) or (goal.relation in program.merges and not together)
                if strict and together:
                    return None
                least = stratum[goal.relation] + strict
                if stratum[rule.relation] < least:
                    stratum[rule.relation] = least
                    changed = True
    return stratum


def add(program, rows, relation, fresh):
    """Rows after those of a round are added: best values take the place that their row was found at."""
    merge = program.merges.get(relation)
    have = rows[relation]
    if not merge:
        seen = set(have)
        for row in fresh:
            if row not in seen:
                seen.add(row)
                have.append(row)
        return
    better = {"min": lambda a, b: a < b, "max": lambda a, b: a > b}[merge]
    best = {row[:-1]: row for row in have}
    new = {}
    for row in fresh:
        old = new.get(row[:-1], best.get(row[:-1]))
        if old is None or better(row[-1], old[-1]):
            new.pop(row[:-1], None)
            new[row[:-1]] = row
    rows[relation] = [row for row in have if row[:-1] not in new] + list(new.values())


def evaluate(program):
    """relation -> rows in order; None when `not` or an aggregate lies on a cycle."""
    stratum = strata(program)
    if stratum is None:
        return None
    rows = {name: [] for name in program.relations}
    for relation, row in program.facts:
        add(program, rows, relation, [row])
    for level in range(1, max(stratum.values()) + 1):
        rules = [rule for rule in program.rules if stratum[rule.relation] == level]
        going = True
        while going:
            before = {name: list(found) for name, found in rows.items()}
            fresh = {}
            for rule in rules:
                fresh.setdefault(rule.relation, []).extend(typed(program.relations[rule.relation], row) for row in head_rows(rule, before))
            for relation, found in fresh.items():
                add(program, rows, relation, found)
            going = rows != before
    return rows
