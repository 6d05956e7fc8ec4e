"""Constraints: what a model of random weights says is what the schema, grammar or expression allows.

TL_TEST_SCHEMAS=200 tries so many random schemas, with three seeds each."""
import json
import math
import os
import random
import re
import unittest

from test_generate import MODEL
from tl import run_code

COUNT = int(os.environ.get("TL_TEST_SCHEMAS", "24"))

# A vocabulary of every byte and some longer pieces.
BYTES = MODEL.replace('let pieces = ["<unk>", "<s>", "</s>", "a", "b", "c", "▁", "d"]', """
let pieces = list("<unk>", "<s>", "</s>")
for i in 0..256 { pieces.push("<0x" + format("{:02X}", i) + ">") }
for word in list("▁", "a", "\\"", "{", "}", "\\":", ",▁\\"", "true", "12", "é", "null", "▁name", "}}", "[[", "\\\\\\"", "]", "e", "0.") { pieces.push(word) }
let types = list(2, 3, 3)
for i in 0..256 { types.push(6) }
while len(types) < len(pieces) { types.push(1) }
""").replace("[2, 3, 3, 1, 1, 1, 1, 1]", "types").replace('"llama.context_length": 24', '"llama.context_length": 4000').replace(
    "matrix(8, 32)", "matrix(len(pieces), 32)") + """
save_model(net, "a.gguf", meta: meta)
let m = load_model("a.gguf")
"""


def program(body, options=("--memory-check=strict",)):
    return run_code(BYTES + body, options=options)


def kind(value):
    if isinstance(value, bool):
        return "boolean"
    names = {int: "integer", float: "number", str: "string", list: "array", dict: "object", type(None): "null"}
    return names[type(value)]


def bounded(value, schema):
    return (schema.get("minimum", -math.inf) <= value <= schema.get("maximum", math.inf)
            and schema.get("exclusiveMinimum", -math.inf) < value < schema.get("exclusiveMaximum", math.inf))


FORMATS = {"date": r"\d{4}-\d\d-\d\d", "time": r"\d\d:\d\d:\d\dZ", "date-time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
           "uuid": r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"}


def valid(value, schema, root):
    """JSON Schema, as far as the schemas below use it."""
    if schema is True or schema == {}:
        return True
    if "$ref" in schema:
        for key in schema["$ref"].split("/")[1:]:
            root = root[key]
        return valid(value, root, root if schema["$ref"] == "#" else ROOT)
    if "anyOf" in schema and not any(valid(value, s, root) for s in schema["anyOf"]):
        return False
    if "oneOf" in schema and sum(valid(value, s, root) for s in schema["oneOf"]) != 1:
        return False
    if not all(valid(value, s, root) for s in schema.get("allOf", [])):
        return False
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        return False
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and kind(value) not in types and not (kind(value) == "integer" and "number" in types):
        return False
    if kind(value) in ("integer", "number"):
        return bounded(value, schema)
    if isinstance(value, str):
        return (schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", 1 << 30)
                and re.search(schema.get("pattern", ""), value) is not None
                and re.fullmatch(FORMATS.get(schema.get("format"), ".*"), value, re.S) is not None)
    if isinstance(value, list):
        prefix = schema.get("prefixItems", [])
        items = schema.get("items", True)
        return (schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", 1 << 30)
                and all(valid(v, s, root) for v, s in zip(value, prefix))
                and (items is not False or len(value) <= len(prefix))
                and all(valid(v, items, root) for v in value[len(prefix):]))
    if isinstance(value, dict):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        return (all(name in value for name in schema.get("required", []))
                and all(valid(v, known[name], root) if name in known else others is not False and valid(v, others, root)
                        for name, v in value.items()))
    return True


ROOT = {}


class Schemas:
    """Random schemas of every supported keyword."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def make(self, depth=0):
        kinds = ["string", "integer", "number", "boolean", "null", "enum", "const", "union", "any"]
        if depth < 3:
            kinds += ["object", "object", "array", "anyOf", "oneOf", "allOf", "ref"]
        return getattr(self, "make_" + self.random.choice(kinds))(depth)

    def root(self):
        schema = self.make_object(0)
        schema["$defs"] = {"leaf": self.make(3), "list": {"type": "array", "items": {"$ref": "#/$defs/list"}}}
        return schema

    def make_string(self, depth):
        r = self.random
        extra = r.choice([{}, {"minLength": r.randint(0, 3), "maxLength": r.randint(3, 9)}, {"maxLength": 4},
                          {"pattern": r.choice(["^[a-c]+$", "x\\d", "^(ab|\\\"q)?$", "[^a]{2}", "^\\w+@\\w+\\.com$"])},
                          {"format": r.choice(list(FORMATS))}])
        return {"type": "string", "description": "words", **extra}

    def make_integer(self, depth):
        r = self.random
        low = r.randint(-2000, 2000)
        return {"type": "integer", **r.choice([{}, {"minimum": low}, {"maximum": low}, {"minimum": low, "maximum": low + r.randint(0, 900)},
                                               {"exclusiveMinimum": low, "exclusiveMaximum": low + 2}])}

    def make_number(self, depth):
        low = self.random.randint(-30, 30)
        return {"type": "number", **self.random.choice([{}, {"minimum": 0, "maximum": 1}, {"minimum": low}, {"maximum": low},
                                                        {"minimum": low, "maximum": low + 12}])}

    def make_boolean(self, depth):
        return {"type": "boolean"}

    def make_null(self, depth):
        return {"type": "null"}

    def make_any(self, depth):
        return self.random.choice([{}, True])

    def make_enum(self, depth):
        return {"enum": self.random.sample(["a", "b\"c", 1, 2.5, None, True, [1, {"x": "é"}]], 3)}

    def make_const(self, depth):
        return {"const": self.random.choice(["word", 7, {"a": [1]}, False])}

    def make_union(self, depth):
        return {"type": self.random.sample(["string", "integer", "null", "boolean", "array", "object"], 2)}

    def make_object(self, depth):
        r = self.random
        if depth and r.random() < 0.2:
            return {"type": "object", "additionalProperties": self.make(depth + 1)}
        names = r.sample(["name", "age", "a b", "quo\"te", "x", "ünï"], r.randint(0, 4))
        schema = {"type": "object", "properties": {name: self.make(depth + 1) for name in names},
                  "required": [name for name in names if r.random() < 0.6]}
        return {**schema, **r.choice([{}, {"additionalProperties": False}])}

    def make_array(self, depth):
        r = self.random
        schema = {"type": "array", "items": self.make(depth + 1), **r.choice([{}, {"minItems": 2}, {"maxItems": 3}, {"minItems": 1, "maxItems": 2}])}
        if r.random() < 0.3:
            schema["prefixItems"] = [self.make(depth + 1), self.make(depth + 1)]
            schema["items"] = r.choice([False, schema["items"]])
            if schema["items"] is False:
                schema.pop("minItems", None)
        return schema

    def make_anyOf(self, depth):
        return {"anyOf": [self.make(depth + 1), self.make(depth + 1)]}

    def make_oneOf(self, depth):
        tags = [{"type": "object", "properties": {"kind": {"const": k}, "value": self.make(depth + 1)}, "required": ["kind"]} for k in "ab"]
        return {"oneOf": self.random.choice([tags, [{"type": "integer"}, {"type": ["string", "null"]}]])}

    def make_allOf(self, depth):
        return {"allOf": [{"type": "object", "properties": {"p": self.make(depth + 1)}, "required": ["p"]},
                          {"properties": {"q": self.make(depth + 1)}}]}

    def make_ref(self, depth):
        return {"$ref": self.random.choice(["#/$defs/leaf", "#/$defs/list"])}


class Constraints(unittest.TestCase):
    def says(self, body, expected):
        result = program(body)
        self.assertEqual((result.out, result.status), (expected, 0), result.err[:2000])

    def test_schemas(self):
        global ROOT
        schemas = [Schemas(i).root() for i in range(COUNT)]
        body = 'for line in read_lines("schemas") {\n let c = json_schema(line)\n for seed in 0..3 {\n' \
               'print(to_json(generate(m, "a", 250, constraint: c, temperature: 1.5, seed: seed)))\n } }'
        source = f"write_file(\"schemas\", {json.dumps(chr(10).join(json.dumps(s) for s in schemas), ensure_ascii=False)})\n"
        result = program(source + body)
        self.assertEqual(result.status, 0, result.err[:2000])
        answers = result.out.split("\n")[:-1]
        self.assertEqual(len(answers), 3 * COUNT)
        for i, answer in enumerate(answers):
            ROOT = schemas[i // 3]
            text = json.loads(answer)
            with self.subTest(schema=ROOT, text=text):
                self.assertTrue(valid(json.loads(text), ROOT, ROOT))

    def test_grammars(self):
        result = program(r'''
            let c = grammar("# sums\nroot ::= sum \"=\" [0-9]{1,3}\nsum ::= term (\"+\" term)*\nterm ::= [1-9] [0-9]? |\n  \"(\" sum \")\"\n")
            for i in 0..20 { print(generate(m, "a", 60, constraint: c, temperature: 2.0, seed: i)) }
            print(generate(m, "a", 20, constraint: grammar("root ::= \"a\"{12}"), seed: 1))
            print(generate(m, "a", 9, constraint: grammar("root ::= \"\\u00e9\\x41\\n\\\"\" . [^a-z\\]]"), seed: 1))
            let ends = "\u{7f}\u{80}\u{7ff}\u{800}\u{d7ff}\u{e000}\u{ffff}\u{10000}\u{10ffff}"
            let one_each = grammar("root ::= [\\x7F] [\\u0080] [\\u07FF] [\\u0800] [\\uD7FF] [\\uE000] [\\uFFFF] [\\U00010000] [\\U0010FFFF]")
            assert_eq(generate(m, "a", 40, constraint: one_each, seed: 1), ends)
        ''')
        self.assertEqual(result.status, 0, result.err[:2000])
        lines = result.out.splitlines()
        for line in lines[:20]:
            self.assertRegex(line, r"^[0-9()+]+=[0-9]{1,3}$")
            self.assertEqual(line.count("("), line.count(")"))
        self.assertEqual(lines[20], "a" * 12)
        self.assertRegex("\n".join(lines[21:]), '^éA\n".[^a-z\\]]$')

    def test_expressions(self):
        for pattern in [r"(yes|no)+ \d{3}", r"^[^\n]{2,5}$", r"a?b*c+(?:x|yz){2}", r"[\w.-]+@[a-z]{2,4}\.com", r"\x41é[à-ÿ]\s\S", r"a{0}b{2,}?"]:
            result = program(f'for i in 0..5 {{ print(to_json(generate(m, "a", 40, constraint: regex({json.dumps(pattern, ensure_ascii=False)}), temperature: 2.0, seed: i))) }}')
            self.assertEqual(result.status, 0, result.err[:2000])
            for line in result.out.splitlines():
                self.assertRegex(json.loads(line), re.compile(f"^(?:{pattern.strip('^$')})$", re.A))

    def test_after_a_trigger(self):
        result = program(r'''
            let c = json_schema({"type": "integer"}, after: "a")
            for i in 0..12 { print(to_json(generate(m, "b", 80, constraint: c, temperature: 1.5, seed: i, details: true))) }
        ''')
        self.assertEqual(result.status, 0, result.err[:2000])
        kept = 0
        for line in result.out.splitlines():
            answer = json.loads(line)
            before, found, after = answer["text"].partition("a")
            if found:
                kept += 1
                self.assertRegex(after, r"^-?(0|[1-9]\d{0,14})$")
        self.assertGreater(kept, 3)

    def test_with_everything(self):
        """Batches and guesses keep what is said; the mask does not depend on how the text came about."""
        self.says(r'''
            let c = json_schema({"type": "array", "items": {"enum": list("aa", "ab")}, "minItems": 3})
            let texts = [generate(m, p, 60, constraint: c, seed: 3) for p in list("a", "bb", "ccc")]
            assert_eq(generate(m, list("a", "bb", "ccc"), 60, constraint: c, seed: 3), texts)
            assert_eq([generate(m, p, 60, constraint: c, seed: 3, speculate: 5) for p in list("a", "bb", "ccc")], texts)
            print(generate(m, "a", 20, constraint: regex("a|ab"), samplers: list(fn(l) { l }), details: true).finish)
        ''', "end\n")

    def test_schemas_at_once_may_have_other_titles(self):
        self.says(r'''
            let c = json_schema({"allOf": list({"type": "null", "title": "a", "description": "b"}, {"title": "c", "description": "d"})})
            print(generate(m, "a", 9, constraint: c, seed: 1))
        ''', "null\n")

    def test_refusals(self):
        for body, expected in [
            ('json_schema({"type": "string", "not": {}})', 'json_schema: the keyword "not" is not supported'),
            ('json_schema("{")', "json_schema: line 1 is not JSON: string or '}' expected near end of file"),
            ('json_schema("3")', "json_schema: a schema must be an object, true or false"),
            ('json_schema("false")', "json_schema: the schema false allows nothing"),
            ('json_schema({"$ref": "#/a"})', 'json_schema: $ref "#/a" leads nowhere in this schema'),
            ('json_schema({"$ref": "#", "type": "null"})', 'json_schema: "type" next to $ref is not supported'),
            ('json_schema({"$ref": "#"})', "the schema has no text that ever ends"),
            ('json_schema({"anyOf": list()})', "json_schema: anyOf must be a list that is not empty"),
            ('json_schema({"oneOf": list({"type": "integer"}, {"type": "number"})})',
             "json_schema: a value may fit schemas 1 and 2 of oneOf; anyOf allows that"),
            ('json_schema({"type": "int"})', 'json_schema: the type "int" is not one of JSON\'s'),
            ('json_schema({"type": 3})', "json_schema: type must be a type or a list of types"),
            ('json_schema({"type": list()})', "json_schema: type must be a type or a list of types"),
            ('json_schema({"type": list("null", 3)})', "json_schema: type must be a type or a list of types"),
            ('json_schema({"enum": 3})', "json_schema: enum must be a list"),
            ('json_schema({"allOf": {}})', "json_schema: allOf must be a list"),
            ('json_schema({"$ref": 3})', "json_schema: $ref must be a string"),
            ('json_schema({"type": "object", "properties": list()})', "json_schema: properties must be an object"),
            ('json_schema({"type": "object", "required": "a"})', "json_schema: required must be a list of strings"),
            ('json_schema({"type": "object", "required": list(1)})', "json_schema: required must be a list of strings"),
            ('json_schema({"type": "array", "prefixItems": {}})', "json_schema: prefixItems must be a list"),
            ('json_schema({"type": "string", "pattern": 3})', "json_schema: pattern must be a string"),
            ('json_schema({"type": "string", "format": none})', "json_schema: format must be a string"),
            ('json_schema({"minLength": 2})', 'json_schema: "minLength" needs a "type" next to it'),
            ('json_schema({"enum": list(), "type": "string"})', "json_schema: no value of enum or const is allowed"),
            ('json_schema({"type": "string", "maxLength": -1})', "json_schema: maxLength must be an integer from 0 to 4096"),
            ('json_schema({"type": "string", "minLength": 3, "maxLength": 2})', "json_schema: minLength 3 is more than maxLength 2"),
            ('json_schema({"type": "string", "pattern": "a", "maxLength": 2})',
             "json_schema: of pattern, format and lengths a string takes one"),
            ('json_schema({"type": "string", "format": "email"})',
             'json_schema: the format "email" is not supported (date, time, date-time and uuid are)'),
            ('json_schema({"type": "array", "minItems": 3, "maxItems": 2})', "json_schema: minItems 3 is more than 2 items can be"),
            ('json_schema({"type": "array", "prefixItems": [{"type": "null"}], "items": false, "minItems": 2})',
             "json_schema: minItems 2 is more than 1 items can be"),
            ('json_schema({"type": "number", "minimum": 0.5})',
             "json_schema: minimum must be an integer of at most 15 digits, and for type number not exclusive"),
            ('json_schema({"type": "integer", "minimum": 5, "maximum": 2})', "json_schema: no number lies between its bounds"),
            ('json_schema({"allOf": list({"type": "null"}, {"type": "string"})})',
             'json_schema: two different "type" at once are not supported'),
            ('json_schema({"allOf": list({"properties": {"a": {"type": "null"}}}, {"properties": {"a": {}}})})',
             'json_schema: the property "a" is described twice, differently'),
            ('let s = {}\nfor i in 0..101 { s = {"type": "array", "items": s} }\njson_schema(s)',
             "json_schema: schemas are nested more than 100 deep"),
            ('grammar("root ::= [a")', "the grammar, line 1: expected ] to end a class at its end"),
            ('grammar("root ::= \\"a")', 'the grammar, line 1: expected " to end a text at its end'),
            ('grammar("root ::= a")', "the grammar does not say what a is"),
            ('grammar("a ::= \\"x\\"")', "the grammar has no rule root, where texts begin"),
            ('grammar("a ::= b\\nb ::= a | \\"c\\"\\na ::= b")', "the grammar says twice what a is"),
            ('grammar("root ::= root \\"a\\" | \\"b\\"")', "the grammar has a rule that begins with itself"),
            ('grammar("root ::= \\"a\\" root")', "the grammar has no text that ever ends"),
            ('grammar("root ::= [z-a]")', 'the grammar, line 1: expected a range that goes up before this at "]"'),
            ('grammar("root = 1")', 'the grammar, line 1: expected ::= after the name of a rule at "= 1"'),
            ('grammar("root ::= \\"a\\" )")', 'the grammar, line 1: expected the end of the rule at ")"'),
            ('grammar("*")', 'the grammar, line 1: expected the name of a rule at "*"'),
            ('grammar("root ::= (\\"a\\"")', "the grammar, line 1: expected a ) to end a group at its end"),
            ('grammar("root ::= \\"a\\"{2")', "the grammar, line 1: expected a } after a number of times at its end"),
            ('grammar("root ::= \\"a\\"{,2}")', 'the grammar, line 1: expected a number of times at ",2}"'),
            ('grammar("root ::= \\"a\\"{9999}")', 'the grammar, line 1: expected at most 4096 times before at "}"'),
            ('grammar("root ::= \\"a\\"{3,2}")', 'the grammar, line 1: expected a larger second number before at "}"'),
            ('grammar("root ::= \\"\\\\q\\"")', 'the grammar, line 1: expected n, r, t, x, u, U or a sign after \\ at "q\\""'),
            ('grammar("root ::= \\"\\\\x4\\"")', 'the grammar, line 1: expected a hexadecimal digit at "\\""'),
            ('grammar("root ::= \\"\\\\U0090F199\\"")', 'the grammar, line 1: expected a code up to 0010FFFF before at "\\""'),
            ('grammar("root ::= [^\\\\UFFFFFFFF]")', 'the grammar, line 1: expected a code up to 0010FFFF before at "]"'),
            ('grammar("root ::= \\"\\\\uD800\\"")', 'the grammar, line 1: expected a code that is a character before at "\\""'),
            ('let deep = ""\nfor i in 0..300 { deep += "(" }\ngrammar("root ::= " + deep)', "expected no deeper nesting at"),
            ('regex("a)")', "the regular expression, at byte 1: a ) has no group"),
            ('regex("(a")', "the regular expression, at byte 2: a group has no )"),
            ('regex("(?=a)")', "the regular expression, at byte 1: of the groups with ? only (?: ) is supported"),
            ('regex("*")', "the regular expression, at byte 0: there is nothing to repeat"),
            ('regex("a^b")', "the regular expression, at byte 1: ^ and $ are supported at its ends only"),
            ('regex("[a")', "the regular expression, at byte 2: a class has no ]"),
            ('regex("[[:alpha:]]")', "the regular expression, at byte 1: classes of a name, as [:alpha:], are not supported"),
            ('regex("[b-a]")', "the regular expression, at byte 4: a range goes down"),
            (r'regex(r"\bx")', r"the regular expression, at byte 1: this escape is not supported (\d \w \s \n \t \xHH ... are)"),
            (r'regex(r"\x4")', "the regular expression, at byte 3: a hexadecimal digit is missing"),
            ('regex("a\\\\")', "the regular expression, at byte 2: it ends after \\"),
            ('regex("a{x}")', "the regular expression, at byte 2: a number of times is missing"),
            ('regex("a{5000}")', "the regular expression, at byte 6: more than 4096 times"),
            ('regex("a{3,2}")', "the regular expression, at byte 5: a range of times goes down"),
            ('regex("a{2")', "the regular expression, at byte 3: a number of times has no }"),
            ('let deep = ""\nfor i in 0..300 { deep += "(" }\nregex(deep)', "it is nested too deeply"),
            ('let deep = "a"\nfor i in 0..7 { deep = "(" + deep + "{0,9}b?)" }\nregex(deep)',
             "the regular expression can be read in too many ways at once"),
            ('regex("a", after: "")', "after must be a string that is not empty"),
            ('generate(m, "a", constraint: 3)', "constraint must be a constraint, but it is 3"),
            ('generate(m, "a", 3, constraint: regex("abcd"))',
             "the shortest text that the constraint allows has 4 bytes, but max_tokens is 3"),
            ('let long = ""\nfor i in 0..90 { long += "a{0,4096}" }\nregex(long)', "the regular expression is too large: more than 1048576 elements"),
        ]:
            with self.subTest(body):
                result = program(body)
                self.assertIn(expected, result.err.splitlines()[0], body)
                self.assertEqual(result.status, 1)

    def test_repetitions_in_repetitions(self):
        """The ways to read a text must not double with each of them."""
        for inner, text in (("+", "aaa"), ("*", "aaa"), ("?", "a")):
            result = program(f"""
                let (nested, plain) = ("a", grammar("root ::= (\\"b\\" \\"a\\"+ | \\"ab\\"+)++++++++++++++++++++++++++++++++"))
                for i in 0..60 {{ nested = "(" + nested + "){inner}" }}
                print(generate(m, "a", 8, constraint: regex(nested + "b"), seed: 1).ends_with("b"))
                print(len(generate(m, "a", 8, constraint: plain, seed: 1)) > 0)
            """)
            self.assertEqual((result.status, result.out), (0, "true\ntrue\n"), result.err)

    def test_up_to_so_many_times_what_may_be_missing(self):
        for pattern, most in (("(a?){0,300}", 300), ("((a?)){3,7}", 7), ("((a{0,3}){0,4}){2,5}", 60), ("(a{0,3}){0}", 0),
                              ("((a{0,2})?){4}", 8), ("(a*){0,9}", None), ("((a?)*){0,4096}", None), ("(a?){4096}", None),
                              ("(a{2}){0,3}", 6), ("(a?){2,}", None)):
            result = program(f"""
                fn eager(logits) {{ if float(logits[100]) > -1e30 {{ 100 }} else {{ argmax(logits) }} }}
                print(generate(m, "a", {400 if most is None else most + 9}, samplers: list(eager), constraint: regex("({pattern})c")))
            """)
            expected = "a" * (399 if most is None else most) + "c\n"
            self.assertEqual((result.status, result.out), (0, expected), (pattern, result.err))

    def test_too_many_ways_while_a_text_is_made(self):
        result = program("""
            let deep = "a"
            for i in 0..7 { deep = "(" + deep + "{0,9}b?)" }
            print(try { generate(m, "a", 20, constraint: regex("b" + deep), seed: 1) } catch e { e.message })
        """)
        self.assertEqual(result.status, 0, result.err)
        self.assertIn("what a text must look like can be read in too many ways at once", result.out)
        result = program('regex("(a?b?){0,4096}")')
        self.assertIn("help: a repetition of what repeats and may be empty has many ways to read one text", result.err)

    def test_a_vocabulary_that_is_too_small(self):
        result = run_code(MODEL + """
            save_model(net, "a.gguf", meta: meta)
            print(generate(load_model("a.gguf"), "ab", 5, constraint: regex("[ab]{3}"), seed: 1))
            try { generate(load_model("a.gguf"), "ab", 5, constraint: regex("abx"), seed: 1) } catch e { print(e.message) }
            net.output = matrix(9, 32)
            save_model(net, "b.gguf", meta: meta)
            try { generate(load_model("b.gguf"), "ab", 5, constraint: regex("ab"), seed: 1) } catch e { print(e.message) }
            let plain = {}
            for key, value in meta { if not key.contains("tokenizer") { plain[key] = value } }
            save_model(net, "c.gguf", meta: plain)
            generate(load_model("c.gguf"), [1, 3], 5, constraint: regex("ab"))
        """)
        lines = result.out.splitlines()
        self.assertRegex(lines[0], "^[ab]{3}$", result.err)
        self.assertEqual(lines[1:], ['no token of the vocabulary goes on as the constraint asks after "ab"',
                                     "the model gives 9 logits, but its vocabulary has 8 tokens"])
        self.assertIn("error[value]: a constraint is about text, but c.gguf has no vocabulary", result.err)


if __name__ == "__main__":
    unittest.main()
