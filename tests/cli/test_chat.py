"""Chats: templates against what Jinja 3.1.6 makes of them with Hugging Face's settings
(chat_cases.json), what is refused, and chat itself."""
import json
import tempfile
import unittest
from pathlib import Path

from tl import run
from test_generate import FORWARD, MODEL

CASES = json.loads(Path(__file__).with_name("chat_cases.json").read_text())

MODEL_OF = """
fn save_with(template) {
    save_model({}, "t.gguf", meta: {
        "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": ["<unk>", "<s>", "</s>", "a"],
        "tokenizer.ggml.token_type": [2, 3, 3, 1], "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2, "tokenizer.chat_template": template
    })
}
"""
ALL = MODEL_OF + """
let all = parse_json(read_file("cases.json"))
for name, template in all.templates {
    save_with(template)
    let m = load_model("t.gguf")
    for c in all.cases {
        if c[0] != name { continue }
        let got = none
        try { got = apply_chat_template(m, all.chats[c[1]], c[2]) } catch e { got = {"error": e.message} }
        print(to_json(got))
    }
}
"""


class Chat(unittest.TestCase):
    def run_in_folder(self, code, **files):
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                Path(folder, name.replace("_", ".")).write_text(content)
            Path(folder, "program.tl").write_text(code)
            return run("run", "--memory-check=strict", "program.tl", cwd=folder)

    def test_templates(self):
        result = self.run_in_folder(ALL, cases_json=json.dumps(CASES))
        self.assertEqual(result.status, 0, result.err)
        got = [json.loads(line) for line in result.out.splitlines()]
        self.assertEqual(len(got), len(CASES["cases"]))
        for (name, chat, answer, want), text in zip(CASES["cases"], got):
            with self.subTest(name, chat=chat, answer=answer):
                if isinstance(want, dict):
                    self.assertEqual(text, {"error": "the chat's template: " + want["error"]})
                else:
                    self.assertEqual(text, want)

    def test_messages(self):
        result = self.run_in_folder(MODEL_OF + """
            struct Said { role: string, content: string }
            save_with("{% for m in messages %}{{ m.role }}: {{ m['content'] }};{% endfor %}")
            let m = load_model("t.gguf")
            print(apply_chat_template(m, "Hi"))
            print(apply_chat_template(m, list(Said { role: "system", content: "Be" }, {"role": "user", "content": "b"})))
            let said = list({"role": "user", "content": "a"})
            save_with("{% for m in messages %}{% set m.content = 'b' %}{% endfor %}")
            print(try { apply_chat_template(load_model("t.gguf"), said) } catch e { e.message }, said)
            save_with("{% macro f(n) %}{% set n.x = n.x + 1 %}{% endmacro %}"
                    + "{% set a = namespace(x=1) %}{% set b = namespace(x=5) %}{{ f(a) }}{{ f(a) }}{{ a.x }}{{ b.x }}")
            print(apply_chat_template(load_model("t.gguf"), said))
            save_with("{% set x = namespace() %}{% set x.x = x %}{{ x }}")
            print(len(apply_chat_template(load_model("t.gguf"), "Hi")) < 1000)
            print(m.apply_chat_template((Said { role: "user", content: "c" },)) == "user: c;")
        """)
        self.assertEqual(result.out, "user: Hi;\nsystem: Be;user: b;\n"
                         'line 1 of the template: only a namespace has fields to set [{"role": "user", "content": "a"}]\n'
                         "35\ntrue\ntrue\n", result.err)

    def test_refusals(self):
        def of(template):
            return MODEL_OF + f"save_with({json.dumps(template)})\nprint(apply_chat_template(load_model('t.gguf'), 'Hi'))" \
                .replace("'", '"')
        line = "error[format]: line %d of the template: "
        for template, expected in [
            ("a\n{% if x %}", line % 2 + "{% endif %} is missing"),
            ("{% for x in y %}{% else %}", line % 1 + "{% endfor %} is missing"),
            ("{% include \"x\" %}", line % 1 + "a chat's template stands alone: it cannot include, import or extend another one"),
            ("\n{% extends x %}", line % 2 + "a chat's template stands alone: it cannot include, import or extend another one"),
            ("{% from x import y %}", line % 1 + "a chat's template stands alone: it cannot include, import or extend another one"),
            ("{% sparkle %}", line % 1 + "there is no statement {% sparkle %} here"),
            ("{% raw %}\n{% if %}\n{% endrawx %}", line % 1 + "{% endraw %} is missing"),
            ("{% raw x %}", line % 1 + "expected `%}`, found `x`"),
            ("{% filter %}", line % 1 + "expected the name of a filter, found `%}`"),
            ("{% filter upper %}", line % 1 + "{% endfilter %} is missing"),
            ("{% filter sparkle %}{% endfilter %}", line % 1 + "tl knows no filter `sparkle`"),
            ("{% with a = 1 %}", line % 1 + "{% endwith %} is missing"),
            ("{% with a %}", line % 1 + "expected `=`, found `%}`"),
            ("{% call f() %}", line % 1 + "{% endcall %} is missing"),
            ("{% call 1 %}", line % 1 + "expected the call of a macro before it, found `%}`"),
            ("{% call f() %}{% endcall %}", line % 1 + "there is no macro `f` for {% call %}"),
            ("{% macro f() %}{{ caller(1) }}{% endmacro %}{% call f() %}{% endcall %}",
             line % 1 + "there are too many arguments for `caller`"),
            ("{% for x in [1] %}{% call f() %}{% break %}", line % 1 + "there is no loop around this"),
            ("{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", line % 1 + "tl knows no function `caller`"),
            ("{{ 1 < nobody < 2 }}", line % 1 + "1 and nothing have no order"),
            ("{% macro f() %}", line % 1 + "{% endmacro %} is missing"),
            ("{% macro f %}", line % 1 + "expected `(`, found `%}`"),
            ("{% macro f(1) %}", line % 1 + "expected a parameter, found `1`"),
            ("{% macro 1() %}", line % 1 + "expected the name of the macro, found `1`"),
            ("{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}", line % 1 + "there are too many arguments for `f`"),
            ("{% macro f(a) %}{% endmacro %}{{ f(b=2) }}", line % 1 + "the macro `f` has no parameter `b`"),
            ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", line % 1 + "this is nested too deeply"),
            ("{{ " + "-" * 200 + "1 }}", line % 1 + "this is nested too deeply"),
            ("{% set x %}", line % 1 + "{% endset %} is missing"),
            ("{% break %}", line % 1 + "there is no loop around this"),
            ("{% for x in [1] %}{% macro f() %}{% continue %}", line % 1 + "there is no loop around this"),
            ("{% endif %}", line % 1 + "there is no statement {% endif %} here"),
            ("{{ x", line % 1 + "the text ends inside a tag"),
            ("\n\n{{ \"x }}", line % 3 + "a string does not end"),
            ("{# x", line % 1 + "a comment does not end"),
            ("{{ x y }}", line % 1 + "expected `}}`, found `y`"),
            ("{{ x %}", line % 1 + "expected `}}`, found `%}`"),
            ("{{ (x }}", line % 1 + "expected `)`, found `}}`"),
            ("{{ * }}", line % 1 + "expected an expression, found `*`"),
            ("{{ 1a }}", line % 1 + "expected a number, found `1a`"),
            ("{% set 3 = x %}", line % 1 + "expected a variable, found `3`"),
            ("{% set x, y %}", line % 1 + "expected `=`, found `%}`"),
            ("{{ x. }}", line % 1 + "expected a name, found `}}`"),
            ("{{ " + "(" * 200 + " }}", line % 1 + "this is nested too deeply"),
            ("{{ 1" + " + 1" * 900 + " }}", line % 1 + "this is nested too deeply"),
            ("{% if a %}" + "{% elif b %}" * 200 + "{% endif %}", line % 1 + "this is nested too deeply"),
            ("{{ 1 | sparkle }}", line % 1 + "tl knows no filter `sparkle`"),
            ("{{ 1 is blue }}", line % 1 + "tl knows no test `blue`"),
            ("{{ messages.sort() }}", line % 1 + "tl knows no method `sort`"),
            ("{{ now() }}", line % 1 + "tl knows no function `now`"),
            ("{{ messages[0].content.replace(\"a\") }}", line % 1 + "too few arguments for `replace`"),
            ("{{ [1] | map(3) }}", line % 1 + "expected a string, found 3"),
            ("{{ 3.strip() }}", line % 1 + "3 has no method `strip`"),
            ("{{ nobody.strip() }}", line % 1 + "nothing has no method `strip`"),
            ("{{ \"a\".split(\"\") }}", line % 1 + "a string is expected by `split`"),
            ("{{ \"a\".index(\"b\") }}", line % 1 + "the part is not there for `index`"),
            ("{{ \"a\".startswith() }}", line % 1 + "too few arguments for `startswith`"),
            ("{{ \"a\" | abs }}", line % 1 + "a number is expected by `abs`"),
            ("{{ \"a\" | indent([]) }}", line % 1 + "`indent` takes an integer, found a list of 0 values"),
            ("{{ range() }}", line % 1 + "too few arguments for `range`"),
            ("{{ range(nobody) }}", line % 1 + "`range` takes an integer, found nothing"),
            ("{{ [1].get(1) }}", line % 1 + "tl knows no method `get`"),
            ("{{ {}.count(1) }}", line % 1 + "tl knows no method `count`"),
            ("{{ {}.cycle(1) }}", line % 1 + "tl knows no method `cycle`"),
            ("{{ none | list }}", line % 1 + "none has no items"),
            ("{{ 1 in none }}", line % 1 + "none contains nothing"),
            ("{{ nobody | tojson }}", line % 1 + "`tojson` has nothing for what is undefined"),
            ("{% set x = namespace() %}{% set x.x = x %}{{ x | tojson }}",
             line % 1 + "the value is nested too deeply for `tojson`"),
            ("{{ \"ab\" * 99999999 }}", line % 1 + "something grows beyond all measure"),
            ("{{ range(9999) | sort }}", line % 1 + "something grows beyond all measure"),
            ("{{ 3 | items }}", line % 1 + "expected a dictionary, found 3"),
            ("{{ nobody.name }}", line % 1 + "nothing has no `name`"),
            ("{{ nobody[0] }}", line % 1 + "nothing has no element 0"),
            ("{% for x in none %}{% endfor %}", line % 1 + "none cannot be looped over"),
            ("{% for a, b in [1] %}{% endfor %}",
             line % 1 + "there are 2 variables, but the value is 1"),
            ("{% set a, b = 1, 2, 3 %}", line % 1 + "there are 2 variables, but the value is a tuple of 3 values"),
            ("{% set x = 1 %}{% set x.a = 2 %}", line % 1 + "only a namespace has fields to set"),
            ("{% set x = dict(a=1) %}{% set x.a = 2 %}", line % 1 + "only a namespace has fields to set"),
            ("{{ 1 + \"a\" }}", line % 1 + 'cannot compute 1 + "a"'),
            ("{{ 1 % 0 }}", line % 1 + "cannot compute 1 % 0"),
            *(("{{ " + format + " }}", line % 1 + said) for format, said in (
                ('"%d" % "x"', "a number is expected by `%d`"), ('"%d" % inf', "a number is expected by `%d`"),
                ('"%d" % ("1e300" | float)', "no integer is given to `%d`"),
                ('"%5x" % 1', "tl knows no format `%5x`"), ('"50%" % 1', "tl knows no format `%`"),
                ('"%99999d" % 1', "tl knows no format `%`"), ('"%+-+-+-d" % 1', "tl knows no format `%`"),
                ('"%s %s" % 1', "no value is left for `%s`"), ('"%s" % (1, 2)', "1 of 2 values are left when a text is formatted"),
                ('"x" % 1', "1 of 1 values are left when a text is formatted"), ('"%s" | format', "no value is left for `%s`"),
                ('"{".format(1)', "tl knows no format `{`"), ('"{:x}".format(1)', "tl knows no format `{:x}`"),
                ('"{:>5}".format(1)', "tl knows no format `{:>5}`"), ('"{:-5}".format(1)', "tl knows no format `{:-5}`"),
                ('"{:.2}".format(1)', "tl knows no format `{:.2}`"), ('"{!r}".format(1)', "no value is given for `{!r}`"),
                ('"{}{}".format(1)', "no value is given for `{}`"), ('"{7}".format(1)', "no value is given for `{7}`"),
                ('"{a}".format(b=1)', "no value is given for `{a}`"), ('"{:d}".format("a")', "a number is expected by `{:d}`"))),
            ("{{ 0 ** -1 }}", line % 1 + "cannot compute 0 ** -1"), ("{{ (-8) ** 0.5 }}", line % 1 + "cannot compute -8 ** 0.5"),
            ("{{ -9223372036854775807 * 3 }}", line % 1 + "cannot compute -9223372036854775807 * 3"),
            ("{{ [1](2) }}", line % 1 + "only names and methods can be called"),
            ("{{ \"abc\"[::0] }}", line % 1 + "a slice has a step of 0"),
            ("{{ 1 | tojson(indent=99) }}", line % 1 + "the indent is too large for `tojson`"),
            ("{{ " + "1" * 70 + " }}", line % 1 + "a number is too long"),
            ("{{ messages.items() }}", line % 1 + "expected a dictionary, found "),
            ("{{ [1].get(" + "1, " * 20 + ") }}", line % 1 + "there are too many arguments"),
            ("{% set ns = namespace(x=\"abcdefgh\") %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
             line % 1 + "something grows beyond all measure"),
            ("{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
             line % 1 + "something grows beyond all measure"),
            ("{% set ns = namespace(x=(1,)) %}{% for i in range(11) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ (\"%9999d\" * 2048) % ns.x }}",
             line % 1 + "something grows beyond all measure"),
            ("{{ range(1000000000) }}", line % 1 + "something grows beyond all measure"),
            ("{% for i in range(9999) %}{{ range(9999) | join }}{% endfor %}", line % 1 + "something grows beyond all measure"),
            ("{% set x = range(99999) | join %}{{ x.replace(\"1\", x) }}", line % 1 + "something grows beyond all measure"),
            ("{{ range(99999) | join(range(99999) | join) }}", line % 1 + "something grows beyond all measure"),
            ("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
             line % 1 + "this takes too long"),
            *(("{% set y = range(99999) | list %}{% set z = range(2000, 0, -1) | list %}{% for i in range(99999) %}{% set x = " + slow +
               " %}{% endfor %}", line % 1 + "this takes too long")
              for slow in ("y[::-1]", "y | sum", "-1 in y", "y[1:] == y", "y + []", "z | sort", "z | unique", "range(99999)[7]")),
            ("{% set y = range(99999) | list %}{% for i in y %}{% for j in y %}{% break %}{% endfor %}{% endfor %}",
             line % 1 + "this takes too long"),
            ("{{ range(1, 2, 0) }}", line % 1 + "a step of 0 in `range`"),
            ("{{ raise_exception(\"no \" ~ 1) }}", "error[value]: the chat's template: no 1"),
        ]:
            with self.subTest(template[:40]):
                result = self.run_in_folder(of(template))
                first = result.err.splitlines()[0]
                self.assertTrue(first.startswith(expected) if expected.endswith("found ") else first == expected, first)
                self.assertEqual(result.status, 1, result.err[:600])

    def test_what_chat_refuses(self):
        for arguments, expected in [
            ("5", "error[type]: messages must be a string or a list of messages, but it is 5"),
            ("list(5)", "error[type]: a message must be a dictionary or struct with role and content, but it is 5"),
            ('list({"content": "a"})', "error[type]: the role of a message must be a string, but it is nothing"),
            ('list({"role": 5, "content": "a"})', "error[type]: the role of a message must be a string, but it is 5"),
            ('list({"role": "user"})', "error[type]: the content of a message must be a string or a list of parts, but it is nothing"),
            ('list({"role": "user", "content": 5})',
             "error[type]: the content of a message must be a string or a list of parts, but it is 5"),
            ('list({"role": "assistant", "content": none}, {"role": "user", "content": list()})',
             "error[key]: a.gguf has no template of chats (tokenizer.chat_template)"),
            ('"Hi"', "error[key]: a.gguf has no template of chats (tokenizer.chat_template)"),
        ]:
            with self.subTest(arguments):
                result = self.run_in_folder(MODEL + 'save_model(net, "a.gguf", meta: meta)\n'
                                            f'chat(load_model("a.gguf"), {arguments})')
                self.assertEqual(result.err.splitlines()[0], expected)
        self.assertIn("write the prompt as the model expects it, and call generate", result.err)

    def test_chat_is_generate_after_the_template(self):
        result = self.run_in_folder(MODEL + """
            meta["tokenizer.chat_template"] = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}a"
            save_model(net, "a.gguf", meta: meta)
        """ + FORWARD + """
            let m = load_model("a.gguf")
            let said = list()
            let ids = [1, 3, 4, 2, 5, 2, 3]      // <s> a b </s> c </s> a: the mark is not put twice
            let want = generate(m, ids, 8, temperature: 1.5, seed: 3)
            let chats = list({"role": "user", "content": "ab"}, {"role": "assistant", "content": "c"})
            assert_eq(chat(m, chats, 8, temperature: 1.5, seed: 3, on_token: fn(t) { said.push(t) }), want)
            assert_eq(join(said), want)
            meta["tokenizer.chat_template"] = "{{ messages[0].content }}"
            save_model(net, "b.gguf", meta: meta)
            assert_eq(chat(load_model("b.gguf"), "ab", 8, temperature: 0), generate(m, "ab", 8, temperature: 0))
            print(len(want) > 0)
        """)
        self.assertEqual((result.out, result.status), ("true\n", 0), result.err)


if __name__ == "__main__":
    unittest.main()
