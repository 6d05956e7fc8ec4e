"""tl serve with tools: models that say what a test wants them to say, and what their answers become."""
import json
import tempfile
import unittest
from pathlib import Path

from parrot import parrot
from test_serve import Server, official_client
from tl import run

SAY = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.arguments | tojson }}{% endfor %}{{ m.content or '' }}{% endfor %}"
TEMPLATES = {
    "hermes": "{# tools, <tool_call>, arguments #}" + SAY, "llama": "{# tools, ipython, parameters #}" + SAY,
    "mistral": "{# tools, [TOOL_CALLS] #}" + SAY, "none": SAY, "other": "{# tools #}" + SAY,
    "told": "{# tools, <tool_call>, arguments #}{{ tools[0].function.name }}{{ messages | tojson }}" + SAY,
}
CITY = {"type": "object", "properties": {"city": {"$ref": "#/$defs/name"}}, "required": ["city"], "additionalProperties": False,
        "$defs": {"name": {"enum": ["Oslo", "Rome"]}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "Of a city", "parameters": CITY}},
         {"type": "function", "function": {"name": "clock"}}]


class Tools(unittest.TestCase):
    LINES = {
        "hermes": [
            "It is warm.",
            'I look.\n<tool_call>\n{"name":"weather","arguments":{"city":"Oslo"}}\n</tool_call>',
            '<tool_call>\n{"name":"weather","arguments":{"city":"Rome"}}\n</tool_call>\n<tool_call>\n{"name":"clock","arguments":{}}\n</tool_call>',
            '<tool_call>\n{"name":"weather","arguments":{"city":"Paris"}}\n</tool_call>',
            "1 < 2, and <tool",
            '{"name":"clock","arguments":{}}',
            "  ",
        ],
        "llama": [
            "It is warm.", '{"name": "weather", "parameters": {"city": "Oslo"}}', '{"name": "weather", "parameters": {"city"',
            '{"name": "other", "parameters": {}}', '<|python_tag|>{"name": "clock", "parameters": {}}', '{"name": "clock"}',
        ],
        "mistral": [
            "It is warm.", '[{"name": "weather", "arguments": {"city": "Oslo"}}, {"name": "clock", "arguments": {}}]',
            'Well. [TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Rome"}}]', "[1]", '[{"name": "clock", "\\u0061rguments": {}}]',
        ],
        "none": ["It is warm."], "other": ["It is warm."], "told": ["It is warm."],
    }

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = cls.scratch.name
        cls.servers = {}
        for name, template in TEMPLATES.items():
            parrot(cls.folder, name + ".gguf", template, cls.LINES[name])

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers.values():
            server.stop()
        cls.scratch.cleanup()

    def server(self, name):
        if name not in self.servers:
            self.servers[name] = Server(self.folder, model=name + ".gguf")
        return self.servers[name]

    def choice(self, name, line, **more):
        """A whole answer's choice; what a stream makes must be the same."""
        body = {"messages": [{"role": "user", "content": f"say {line}"}], "temperature": 0, "tools": TOOLS, **more}
        status, answer = self.server(name).post("/v1/chat/completions", body)
        self.assertEqual(status, 200, answer)
        choice = answer["choices"][0]
        content, calls, finish = "", [], None
        for event in self.server(name).events("/v1/chat/completions", body):
            delta = event["choices"][0]["delta"]
            content += delta.get("content") or ""
            calls += delta.get("tool_calls", [])
            finish = event["choices"][0]["finish_reason"] or finish
        message = choice["message"]
        self.assertEqual((content, finish), (message["content"] or "", choice["finish_reason"]))
        self.assertEqual([call["index"] for call in calls], list(range(len(calls))))
        self.assertEqual([call["function"] for call in calls], [call["function"] for call in message.get("tool_calls", [])])
        for call in message.get("tool_calls", []) + calls:
            self.assertEqual(call["type"], "function")
            self.assertRegex(call["id"], "^[0-9a-z]{9}$")
        return choice

    def called(self, name, line, **more):
        """What was said before, and the calls."""
        choice = self.choice(name, line, **more)
        calls = choice["message"].get("tool_calls", [])
        self.assertEqual(choice["finish_reason"], "tool_calls" if calls else "stop")
        self.assertEqual(len({call["id"] for call in calls}), len(calls))
        return choice["message"]["content"], [(call["function"]["name"], call["function"]["arguments"]) for call in calls]

    def test_calls(self):
        oslo, rome, clock = ("weather", '{"city":"Oslo"}'), ("weather", '{"city":"Rome"}'), ("clock", "{}")
        for name, line, content, calls in [
            ("hermes", 0, "It is warm.", []), ("hermes", 1, "I look.\n", [oslo]), ("hermes", 2, None, [rome, clock]),
            ("hermes", 4, "1 < 2, and <tool", []), ("hermes", 5, None, [clock]), ("hermes", 6, "  ", []),
            ("llama", 0, "It is warm.", []), ("llama", 1, None, [("weather", '{"city": "Oslo"}')]),
            ("llama", 2, self.LINES["llama"][2], []), ("llama", 3, self.LINES["llama"][3], []), ("llama", 4, None, [clock]),
            ("llama", 5, self.LINES["llama"][5], []),
            ("mistral", 0, "It is warm.", []), ("mistral", 1, None, [("weather", '{"city": "Oslo"}'), clock]),
            ("mistral", 2, "Well. ", [("weather", '{"city": "Rome"}')]), ("mistral", 3, "[1]", []),
            ("mistral", 4, self.LINES["mistral"][4], []),
        ]:
            with self.subTest(name, line=line):
                self.assertEqual(self.called(name, line), (content, calls))

    def test_arguments_are_valid(self):
        """Once a call has begun, or where one is asked for, it is of a function and fits its schema."""
        content, [(name, arguments)] = self.called("hermes", 3)
        self.assertEqual((content, name), (None, "weather"))
        self.assertIn(json.loads(arguments), ({"city": "Oslo"}, {"city": "Rome"}))
        for form in ("hermes", "llama", "mistral"):
            for line in (0, 1):
                content, calls = self.called(form, line, tool_choice="required", parallel_tool_calls=False)
                self.assertEqual((content, len(calls)), (None, 1))
                content, [(name, arguments)] = self.called(
                    form, line, tool_choice={"type": "function", "function": {"name": "weather"}}, parallel_tool_calls=False)
                self.assertEqual((content, name), (None, "weather"))
                self.assertIn(json.loads(arguments), ({"city": "Oslo"}, {"city": "Rome"}))
        self.assertEqual(len(self.called("hermes", 2, parallel_tool_calls=False)[1]), 1)

    def test_none_are_called(self):
        for name in ("hermes", "none"):
            body = {"messages": [{"role": "user", "content": "say 0"}], "temperature": 0, "tools": TOOLS, "tool_choice": "none"}
            _, answer = self.server(name).post("/v1/chat/completions", body)
            self.assertEqual(answer["choices"][0]["message"]["content"], "It is warm.")

    def test_templates_are_told(self):
        """The tools, and earlier calls with arguments that are objects; nothing of that by default."""
        say = [{"role": "user", "content": "a"},
               {"role": "assistant", "content": None, "tool_calls": [
                   {"id": "123456789", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}]},
               {"role": "tool", "tool_call_id": "123456789", "content": "0"}]
        server = self.server("told")
        status, answer = server.post("/v1/chat/completions", {"messages": say, "tools": TOOLS, "temperature": 0})
        self.assertEqual(status, 200, answer)
        self.assertEqual(answer["choices"][0]["message"]["content"], "It is warm.")
        shown = run("-e", """
            let call = {"function": {"name": "weather", "arguments": {"city": "Oslo"}}}
            let m = load_model("told.gguf")
            let tools = list({"function": {"name": "weather"}})
            print(apply_chat_template(m, list({"role": "assistant", "tool_calls": list(call)}), tools: tools))""", cwd=self.folder)
        self.assertEqual(shown.out, 'weather[{"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": '
                         '{"city": "Oslo"}}}]}]{"city": "Oslo"}\n', shown.err)
        status, answer = server.post("/v1/chat/completions", {"messages": say})
        self.assertEqual((status, answer["error"]["param"]), (400, None))  # tools[0] of nothing

    def test_the_official_client(self):
        """A call, whole and streamed."""
        lines = official_client(self, self.server("hermes"), f"""
            const asked = {{ model: "hermes.gguf", temperature: 0, messages: [{{ role: "user", content: "say 1" }}],
                             tools: {json.dumps(TOOLS)} }}
            const message = (await client.chat.completions.create(asked)).choices[0].message
            console.log(JSON.stringify(message.tool_calls[0].function))
            const whole = await client.chat.completions.stream(asked).finalChatCompletion()
            console.log(JSON.stringify(whole.choices[0].message.tool_calls[0].function), whole.choices[0].finish_reason)""")
        call = {"name": "weather", "arguments": '{"city":"Oslo"}'}
        self.assertEqual(len(lines), 2)
        self.assertEqual(json.loads(lines[0]), call)
        self.assertEqual(json.loads(lines[1].removesuffix(" tool_calls")), call)

    def test_refusals(self):
        def function(**more):
            return [{"type": "function", "function": {"name": "f", **more}}]
        name = "tools: the name of a function must be 1 to 64 letters, digits, _ or -"
        each = "tools: each must be of the type function, with a function that has a name"
        choice = 'tool_choice must be "none", "auto", "required", or of the type function with a function that has a name'
        for change, message, field in [
            ({"tools": []}, "tools must be a list of 1 to 128 functions", "tools"),
            ({"tools": [{"type": "web_search"}]}, each, "tools"),
            ({"tools": [{"type": "function"}]}, each, "tools"),
            ({"tools": function(name="")}, name, "tools"),
            ({"tools": function(name="a b")}, name, "tools"),
            ({"tools": function(name="a" * 65)}, name, "tools"),
            ({"tools": function(description=1)}, "tools: a description must be a string", "tools"),
            ({"tools": function(parameters=[])}, "tools: parameters must be a JSON schema, an object", "tools"),
            ({"tools": function(strict=1)}, "tools: strict must be true or false", "tools"),
            ({"tools": function(x=1)}, 'tools: the field "x" of a function is not known', "tools"),
            ({"tools": [{**function()[0], "y": 1}]}, 'tools: the field "y" of a tool is not known', "tools"),
            ({"tools": function() * 2}, 'tools: two functions have the name "f"', "tools"),
            ({"tools": function(parameters={"type": "object", "not": {}}), "tool_choice": "required"},
             'json_schema: the keyword "not" is not supported', None),
            ({"tool_choice": "auto"}, "tool_choice needs tools", "tool_choice"),
            ({"parallel_tool_calls": False}, "parallel_tool_calls needs tools", "parallel_tool_calls"),
            ({"parallel_tool_calls": 0}, "parallel_tool_calls must be true or false", "parallel_tool_calls"),
            ({"tools": TOOLS, "tool_choice": "any"}, choice, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": {"type": "function"}}, choice, "tool_choice"),
            ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "g"}}},
             'tool_choice: there is no function "g" among the tools', "tool_choice"),
            ({"tools": TOOLS, "response_format": {"type": "json_object"}},
             "response_format does not go with tools that may be called", "response_format"),
            ({"messages": [{"role": "assistant", "tool_calls": "x"}]}, "tool_calls must be a list", None),
            ({"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]},
             "a call in tool_calls must have a function with a name and arguments, the text of a JSON object", None),
        ]:
            with self.subTest(change):
                self.refused("hermes", change, message, field)
        self.refused("none", {"tools": TOOLS}, "the chat template of this model knows no tools", "tools")
        self.refused("other", {"tools": TOOLS}, "the chat template of this model writes calls of tools in none of the known forms: "
                     "JSON in <tool_call>, a list after [TOOL_CALLS], or JSON as Llama 3 has it", "tools")

    def refused(self, name, change, message, field):
        body = {"messages": [{"role": "user", "content": "say 0"}], **change}
        status, answer = self.server(name).post("/v1/chat/completions", body)
        self.assertEqual((status, answer), (400, {"error": {"message": message, "type": "invalid_request_error",
                                                            "param": field, "code": None}}))


if __name__ == "__main__":
    unittest.main()
