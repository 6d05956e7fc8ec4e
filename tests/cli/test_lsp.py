"""tl lsp against the real protocol: every capability, texts with mistakes, and messages that are none."""
import tempfile
import unittest
from pathlib import Path

from lsp_client import Client, Failure, frame, places, position
from tl import ROOT, run

PROGRAM = '''// The area of a shape.
// In square metres.
fn area(width: float, height: float = 1.0) -> float {
    let product = width * height
    product
}

struct Box {
    side: float,
    name: string = "box",
}

impl Box {
    fn new(side: float) -> Box { Box { side: side } }
    fn volume(self, scale: float) -> float { self.side ** 3 * scale }
}

let total = area(2.0, height: 3.0)
tensor w: float32[2, 3] = zeros()
let b = Box::new(2.0)
print(softmax(w, dim: 1), total, b.volume(1.5))
fn scaled(x: float32[n, d]) -> float32[n, d] { x * n }
'''


class Server(unittest.TestCase):
    def setUp(self):
        self.client = Client()
        self.addCleanup(self.end)

    def end(self):
        if self.client.process.poll() is None and not self.client.process.stdin.closed:
            self.assertEqual(self.client.close(), 0)

    def hover(self, line, character):
        hover = self.client.at("hover", line, character)
        return hover["contents"]["value"] if hover else None

    def labels(self, line, character):
        return [item["label"] for item in self.client.at("completion", line, character)["items"]]

    def completed(self, text):
        """What is offered at the end of a text."""
        self.client.change(text)
        return self.labels(text.count("\n"), len(text.rpartition("\n")[2]))

    def signature(self, line, character):
        help_ = self.client.at("signatureHelp", line, character)
        return help_ and [s["label"] for s in help_["signatures"]], help_ and help_["activeParameter"]


class Features(Server):
    def test_capabilities(self):
        expected = {"textDocumentSync", "hoverProvider", "completionProvider", "signatureHelpProvider",
                    "definitionProvider", "referencesProvider", "documentHighlightProvider", "renameProvider",
                    "documentSymbolProvider", "documentFormattingProvider"}
        self.assertEqual(set(self.client.capabilities), expected)

    def test_diagnostics(self):
        self.assertEqual(self.client.open(PROGRAM), [])
        found = self.client.open("let total = 1\nprint(totl)\n")
        self.assertEqual(found, [{
            "range": {"start": position(1, 6), "end": position(1, 10)}, "severity": 1, "source": "tl",
            "code": "name", "message": "unknown name `totl`\nhelp: did you mean `total`?"}])
        found = self.client.change("print(total", (1, 0), (1, 10))
        self.assertEqual(found, [])
        self.assertEqual(self.client.change("(", (1, 5), (1, 6)), [])
        found = self.client.change("fn f() { 1 }\nfn f() { 2 }")
        self.assertEqual(found[0]["message"], "function `f` is declared twice")
        related = found[0]["relatedInformation"][0]
        self.assertEqual((related["message"], places([related["location"]])), ("the first is here", [(0, 3, 4)]))
        found = self.client.change("x = (1\n")
        self.assertEqual(found[0]["code"], "syntax")
        self.client.notify("textDocument/didClose", textDocument={"uri": self.client.uri})
        self.assertEqual(self.client.diagnostics(), [])

    def test_changes_count_in_utf16(self):
        self.client.open('s = "🦙é"\nt = 1\n')
        self.assertEqual(self.client.change("x", (0, 7), (0, 8)), [])
        self.assertEqual(self.client.whole("formatting"), [])
        self.assertEqual(self.client.change('s = "🦙x"; q', (0, 0), (0, 9))[0]["range"]["start"], position(0, 11))

    def test_hover_on_relations(self):
        self.client.open("relation P(x: entity, y: entity)\nP(a, b); P(b, c)\nA(X, Y) <- P(X, Y)\nA(X, a)?\n")
        self.assertEqual(self.hover(1, 0), "```tl\nrelation P(x: entity, y: entity)\n```\n2 facts and 0 rules in this text"
                                           "\n2 rows follow from them, as tuples")
        self.assertEqual(self.hover(3, 0), "```tl\nA(X, Y) <- P(X, Y)\n```\n0 facts and 1 rule in this text"
                                           "\n2 rows follow from them, as tuples")
        self.client.change("relation P(x: int, y: int)\nfor i in 0..9 { P(i, i) }\nP(1, 2)\nrelation Same(x: int, y: int) equivalence\n"
                           "Same(1, 2)\nWay(X, Y) <- Same(X, Y)\nWay(X, Z) <- Way(X, Y), Same(Y, Z)\n")
        self.assertNotIn("follow", self.hover(0, 10))  # what a run adds is not known
        self.client.change("relation Same(x: int, y: int) equivalence\nSame(1, 2)\nSame(2, 3)\nrelation E(x: int, y: int)\nE(1, 2)\n"
                           "E(2, 3)\nWay(X, Y) <- E(X, Y)\nWay(X, Z) <- Way(X, Y), E(Y, Z)\n")
        self.assertIn("\n9 rows follow from them, as classes", self.hover(0, 10))
        self.assertIn("\n3 rows follow from them, as a closure, counted by bits", self.hover(6, 0))
        self.client.change("entity Person = {ann, bob}\nentity City\nrelation Lives(p: Person, c: City)\nLives(bob, oslo)\n"
                           "relation Far(c: City)\nprogram Worlds over exact {\n    Near(C) <- Lives(_, C)\n}\nprint(Worlds.Near(X)?)\n")
        self.assertEqual(self.hover(0, 7), "```tl\nentity Person = {ann, bob}\n```\n2 members, as tuples")
        self.assertEqual(self.hover(1, 7), "```tl\nentity City\n```\n1 member, as tuples")
        self.assertEqual(self.hover(4, 9), "```tl\nrelation Far(c: City)\n```\n0 facts and 0 rules in this text"
                                           "\n0 rows follow from them, as tuples")
        self.assertEqual(self.hover(8, 6), "```tl\nprogram Worlds over exact { ...\n```")
        pairs = "\n".join(f"E({i}, {i * 7 % 3000})" for i in range(3000))
        self.client.change(f"relation E(x: int, y: int)\n{pairs}\nT(X, Y, Z) <- E(X, A), E(Y, B), E(Z, C), A + B > C\n")
        self.assertIn("\nmore rows than a hover can count", self.hover(3001, 0))

    def test_hover_on_equations(self):
        self.client.open("let (W, x, b) = (randn([3, 4]), randn([4]), randn([3]))\nY[i] = relu(W[i, j] x[j] + b[i]) / sum[k](b[k])\n"
                         "M[i] max= W[i, j]\nprogram P {\n    Z[i] = W[i, j] x[j]\n}\n")
        self.assertEqual(self.hover(1, 14), "```tl\nY[i] = relu(W[i, j] x[j] + b[i]) / sum[k](b[k])\n"
                                            "sum[j](W[i, j] x[j])\n// sizes: i = 3, j = 4, k = 3\n```")
        self.assertIn("max[j](W[i, j])", self.hover(2, 14))
        self.assertIn("sum[j](W[i, j] x[j])", self.hover(4, 13))

    def test_updates_of_programs(self):
        text = ("let w = ones([3])\nprogram P {\n    S[0] = 1.0\n    S[b] = 2.0 * S[b] + w[b]\n    S[b+1] = S[b] + w[b]\n}\n")
        self.client.open(text)
        self.assertEqual(self.hover(3, 17), "```tl\nS before its update\n```")
        self.assertEqual(self.hover(4, 13), "```tl\nS\n```")
        self.assertEqual(self.completed(text + "P."), ["S"])

    def test_completion_in_logic_programs(self):
        text = ("entity Person = {alice, albert}\nrelation Parent(x: Person, y: entity)\nParent(alice, algernon)\n"
                "let w = randn([2, 2])\nprogram Prog { Alpha[i] = w[i, j] }\n")
        self.client.open(text)
        self.assertEqual(self.completed(text + "Parent(alb"), ["albert"])  # declared
        self.assertEqual(self.completed(text + "Parent(alg"), ["algernon"])  # of a fact
        self.assertEqual(self.completed(text + "Prog.Al"), ["Alpha"])
        self.assertEqual(self.completed(text + "Prog.Pa"), ["Parent"])

    def test_hover(self):
        self.client.open(PROGRAM)
        self.assertEqual(self.hover(2, 4), "```tl\nfn area(width: float, height: float = 1.0) -> float\n```\n\n"
                                           "The area of a shape.\nIn square metres.\n")
        self.assertEqual(self.hover(17, 14), self.hover(2, 4))
        self.assertEqual(self.hover(3, 20), "```tl\nwidth: float\n```")
        self.assertEqual(self.hover(4, 6), "```tl\nlet product = width * height\n```\nfloat")
        self.assertEqual(self.hover(20, 14), "```tl\ntensor w: float32[2, 3] = zeros()\n```")
        self.assertIn("softmax(x: tensor, dim: int = -1", self.hover(20, 8))
        self.assertEqual(self.hover(19, 9), "```tl\nstruct Box {\n    side: float,\n    name: string = \"box\",\n}\n```")
        self.assertEqual(self.hover(20, 36), "```tl\nBox: fn volume(self, scale: float) -> float\n```")
        self.assertEqual(self.hover(14, 51), "```tl\nBox: side: float\n```")
        self.assertEqual(self.hover(21, 21), "```tl\nn\n```\na dimension")
        self.assertEqual(self.hover(5, 0), None)
        self.assertEqual(self.hover(999, 999), None)

    def test_completion(self):
        self.client.open(PROGRAM)
        labels = self.labels(17, 0)
        for word in ("area", "Box", "let", "struct", "total"):
            self.assertIn(word, labels)
        for word in ("else", "catch", "and", "in", "break", "return", "softmax"):
            self.assertNotIn(word, labels)
        self.assertNotIn("product", self.labels(2, 0))
        self.assertIn("product", self.labels(4, 4))
        self.assertEqual(len(labels), len(set(labels)))
        self.assertEqual(self.completed(PROGRAM + "softm"), ["softmax"])
        self.assertIn("pi", self.completed(PROGRAM + "x = pi"))
        self.assertEqual(self.completed(PROGRAM + "x = floa"), ["float", "float16", "float32", "float64"])
        self.assertEqual(self.completed(PROGRAM + "loop { bre"), ["break"])
        self.assertEqual(self.completed(PROGRAM + "total "), ["in", "and", "or", "not", "as"])
        self.assertEqual(self.completed(PROGRAM + "let v: Bo"), ["Box"])
        for text in ("let fresh", '"in a str', "// in a comm", "12"):
            self.assertEqual(self.completed(PROGRAM + text), [])

    def test_completion_knows_the_receiver(self):
        self.client.open(PROGRAM)
        box = ["name", "side", "volume"]
        self.assertEqual(sorted(self.completed(PROGRAM + "b.")), box)
        self.assertEqual(self.completed(PROGRAM + "print(b.vo"), ["volume"])
        self.assertEqual(self.completed(PROGRAM + "Box::"), ["new"])
        self.assertEqual(sorted(self.completed(PROGRAM + "fn f(given: Box) { given.")), box)
        self.assertEqual(sorted(self.completed(PROGRAM + "impl Box { fn twice(self) { self.")), ["name", "side", "twice", "volume"])
        pair = PROGRAM + "struct Pair { first: Box, second: int }\nlet p = Pair { first: b, second: 1 }\n"
        self.assertEqual(sorted(self.completed(pair + "p.")), ["first", "second"])
        self.assertEqual(sorted(self.completed(pair + "p.first.")), box)
        tensor = self.completed(PROGRAM + "w.re")
        self.assertIn("reshape", tensor)
        self.assertNotIn("replace", tensor)
        text = self.completed(PROGRAM + 'let s = "a"\ns.re')
        self.assertIn("replace", text)
        self.assertNotIn("reshape", text)
        for name in ("side", "volume", "reshape"):
            self.assertIn(name, self.completed(PROGRAM + f"unknown(1).{name[:3]}"))
        model = self.completed(PROGRAM + 'let m = load_model("m.gguf")\nm.')
        self.assertIn("tokenizer", model)
        self.assertNotIn("softmax", model)
        self.assertEqual(self.completed(PROGRAM + "KVCache::new_"), ["new_f16", "new_f32"])

    def test_completion_of_an_import(self):
        text = f'import "{ROOT}/std/layers.tl" as nn\n'
        self.client.open(text)
        self.assertEqual(sorted(self.completed(text + "let m = nn.L")), ["LayerNorm", "Linear"])
        self.assertEqual(self.completed(text + "let m = nn.Linear::"), ["new"])
        self.assertEqual(sorted(self.completed(text + "let m = nn.Mlp::new([2, 1])\nm.")),
                         ["activation", "forward", "layers"])

    def test_completion_of_an_imports_variables(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "unit.tl").write_text("let width = 3\nlet wide = width + 1\nfn widen(x) { x + wide }\n")
            text = f'import "{folder}/unit.tl" as unit\n'
            self.client.open(text)
            self.assertEqual(sorted(self.completed(text + "let m = unit.wid")), ["wide", "widen", "width"])

    def test_completion_is_short(self):
        self.client.open("x = 1\n")
        self.client.change("x = 1\nunknown(x).")
        answer = self.client.at("completion", 1, 11)
        self.assertEqual((len(answer["items"]), answer["isIncomplete"]), (100, True))
        self.client.change("x = 1\nunknown(x).resh")
        answer = self.client.at("completion", 1, 15)
        self.assertEqual((len(answer["items"]), answer["isIncomplete"]), (1, False))

    def test_signature_help(self):
        self.client.open(PROGRAM)
        self.assertEqual(self.signature(17, 17), (["fn area(width: float, height: float = 1.0) -> float"], 0))
        self.assertEqual(self.signature(17, 22), (["fn area(width: float, height: float = 1.0) -> float"], 1))
        labels, active = self.signature(20, 17)
        self.assertIn("softmax(x: tensor", labels[0])
        self.assertEqual(active, 1)
        self.assertEqual(self.signature(20, 43), (["fn volume(self, scale: float) -> float"], 0))
        self.assertEqual(self.signature(0, 0), (None, None))
        self.client.change("print(softmax([1, 2], ")
        labels, active = self.signature(0, 22)
        self.assertIn("softmax(x: tensor", labels[0])
        self.assertEqual(active, 1)

    def test_definition(self):
        self.client.open(PROGRAM)
        found = self.client.at("definition", 17, 13)
        self.assertEqual((found[0]["uri"], places(found)), (self.client.uri, [(2, 3, 7)]))
        self.assertEqual(places(self.client.at("definition", 3, 20)), [(2, 8, 13)])
        self.assertEqual(places(self.client.at("definition", 20, 36)), [(14, 7, 13)])
        self.assertEqual(places(self.client.at("definition", 13, 40)), [(8, 4, 8)])
        self.assertEqual(self.client.at("definition", 20, 8), [])
        self.assertEqual(self.client.at("definition", 5, 0), None)

    def test_references(self):
        self.client.open("let x = 1\nfn f(x) { x + x }\nprint(x, f(x))\n")
        outer = [(0, 4, 5), (2, 6, 7), (2, 11, 12)]
        for line, character in ((0, 4), (2, 6), (2, 11)):
            found = self.client.at("references", line, character, context={"includeDeclaration": True})
            self.assertEqual(places(found), outer)
        found = self.client.at("references", 1, 14, context={"includeDeclaration": False})
        self.assertEqual(places(found), [(1, 10, 11), (1, 14, 15)])
        self.assertEqual(places(self.client.at("documentHighlight", 2, 9)), [(1, 3, 4), (2, 9, 10)])

    def rename(self, line, character, name):
        edit = self.client.at("rename", line, character, newName=name)
        return places(edit["changes"][self.client.uri])

    def test_rename(self):
        self.client.open("let x = 1\nlet y = 2\nfn f(a) { a + x }\nprint(x, y, f\"{x}\")\n")
        self.assertEqual(self.rename(0, 4, "count"), [(0, 4, 5), (2, 14, 15), (3, 6, 7), (3, 15, 16)])
        self.assertEqual(places([self.client.at("prepareRename", 3, 6)]), [(3, 6, 7)])
        for line, character, name, message in (
                (0, 4, "a", "`a` would mean something else here"),
                (0, 4, "y", "`y` would mean something else here"),
                (0, 4, "let", "`let` is not a name"),
                (0, 4, "two words", "`two words` is not a name"),
                (0, 4, "", "`` is not a name"),
                (3, 0, "write", "this name is not declared in a program"),
                (0, 0, "z", "no name stands here")):
            with self.subTest(name):
                with self.assertRaises(Failure) as caught:
                    self.rename(line, character, name)
                self.assertEqual((str(caught.exception), caught.exception.code), (message, -32803))
        for text, character, name in (("fn f(a, b) { 1 }", 8, "a"), ("let f = fn(a, b) { 1 }", 14, "a"),
                                      ("struct P { a: int }; struct Q { a: int }", 28, "P")):
            self.client.open(text)  # every name means the same, but the program is wrong
            with self.assertRaisesRegex(Failure, f"`{name}` would mean something else here"):
                self.rename(0, character, name)
        self.client.open("struct P { a: int }\nlet p = P { a: 1 }\nprint(p.a)\n")
        with self.assertRaisesRegex(Failure, "fields and methods cannot be renamed: "
                                             "what they belong to is known only when the program runs"):
            self.rename(2, 8, "b")
        self.assertEqual(self.rename(1, 8, "Q"), [(0, 7, 8), (1, 8, 9)])

    def test_symbols(self):
        self.client.open(PROGRAM)
        symbols = self.client.whole("documentSymbol")
        self.assertEqual([s["name"] for s in symbols], ["area", "Box", "Box", "total", "w", "b", "scaled"])
        self.assertEqual([s["kind"] for s in symbols], [12, 23, 19, 13, 13, 13, 12])
        self.assertEqual([s["name"] for s in symbols[1]["children"]], ["side", "name"])
        self.assertEqual([s["name"] for s in symbols[2]["children"]], ["new", "volume"])
        for symbol in symbols:
            whole, name = symbol["range"], symbol["selectionRange"]
            self.assertLessEqual((whole["start"]["line"], whole["start"]["character"]),
                                 (name["start"]["line"], name["start"]["character"]))
            self.assertGreaterEqual((whole["end"]["line"], whole["end"]["character"]),
                                    (name["end"]["line"], name["end"]["character"]))

    def test_formatting(self):
        self.client.open("x=1\nif x>0{\ny=2}\n")
        edits = self.client.whole("formatting", options={"tabSize": 4, "insertSpaces": True})
        self.assertEqual(edits, [{"range": {"start": position(0, 0), "end": position(3, 0)},
                                  "newText": "x = 1\nif x > 0 {\n    y = 2 }\n"}])
        self.client.change(edits[0]["newText"])
        self.assertEqual(self.client.whole("formatting"), [])
        self.client.change("x = (")
        with self.assertRaisesRegex(Failure, r"expected `\)` to close the parenthesis"):
            self.client.whole("formatting")

    def test_imports(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder).resolve()
            Path(folder, "a b.tl").write_text("fn helper(x) { x }\nlet unit = 1\nstruct Q { x: int }\n")
            uri = f"file://{folder}/main.tl"
            text = ('import "a b.tl"\nimport "a b.tl" as m\nprint(helper(unit), m.unit)\n'
                    'fn f(q: m.Q) { match q { m.Q { x } => x } }\n')
            self.assertEqual(self.client.open(text, uri), [])
            found = self.client.at("definition", 2, 8)
            self.assertEqual((found[0]["uri"], places(found)), (f"file://{folder}/a%20b.tl", [(0, 3, 9)]))
            self.assertEqual(places(self.client.at("definition", 2, 22)), [(1, 4, 8)])
            self.assertEqual(places(self.client.at("definition", 2, 20)), [(1, 19, 20)])
            self.assertEqual(places(self.client.at("definition", 3, 10)), [(2, 7, 8)])
            self.assertEqual(places(self.client.at("definition", 3, 27)), [(2, 7, 8)])
            self.assertEqual(places(self.client.at("documentHighlight", 2, 8)), [(2, 6, 12)])
            self.assertEqual(self.hover(2, 8), "```tl\nfn helper(x)\n```")
            with self.assertRaisesRegex(Failure, "this name is declared in another file; rename it there"):
                self.client.at("rename", 2, 8, newName="other")
            self.assertEqual(places(self.client.at("rename", 2, 20, newName="mod")["changes"][uri]),
                             [(1, 19, 20), (2, 20, 21), (3, 8, 9), (3, 25, 26)])
            Path(folder, "é - 2").mkdir()
            Path(folder, "é - 2", "near.tl").write_text("let near = 1\n")
            self.assertEqual(self.client.open('import "near.tl"\nprint(near)\n', f"file://{folder}/%C3%A9%20%2d%202/main.tl"), [])
            self.client.open(text, uri)
            Path(folder, "a b.tl").write_text("fn helper(x) { x\n")
            self.client.notify("textDocument/didSave", textDocument={"uri": uri})
            found = self.client.diagnostics()
            self.assertIn(f"missing `}}` ({folder}/a b.tl:1)", found[0]["message"])
            self.assertEqual(places(found), [(0, 0, 15)])

    def test_every_place_of_every_script(self):
        """Nothing that can be asked about a text ends the server."""
        for path in sorted((ROOT / "tests" / "lang").glob("*.tl"))[:12]:
            text = path.read_bytes().decode(errors="replace")
            self.client.open(text, f"file://{path}")
            self.client.whole("documentSymbol")
            for number, line in enumerate(text.split("\n")[:15]):
                for character in range(0, len(line) + 2, 5):
                    for method in ("hover", "completion", "signatureHelp", "definition", "documentHighlight"):
                        self.client.at(method, number, character)


class Connection(Server):
    def failure(self, data, number=None):
        self.client.write(data)
        with self.assertRaises(Failure) as caught:
            self.client.answer(number)
        return caught.exception.code, str(caught.exception)

    def test_life(self):
        client = Client(initialize=False)
        with self.assertRaises(Failure) as caught:
            client.request("textDocument/hover")
        self.assertEqual((caught.exception.code, str(caught.exception)), (-32002, "the first request is initialize"))
        client.notify("textDocument/didOpen", textDocument={"uri": "file:///a", "text": "x"})
        client.request("initialize", capabilities={})
        client.request("shutdown")
        with self.assertRaises(Failure) as caught:
            client.request("textDocument/hover")
        self.assertEqual((caught.exception.code, str(caught.exception)), (-32600, "the server was shut down"))
        client.notify("exit")
        self.assertEqual(client.wait(), 0)
        client = Client()
        client.notify("exit")
        self.assertEqual(client.wait(), 1)
        self.assertEqual(Client().wait(), 1)

    def test_wrong_messages(self):
        self.assertEqual(self.failure(frame(b"{"))[0], -32700)
        self.assertEqual(self.failure(frame(b"[1]")), (-32600, "a message is an object with a method"))
        self.assertEqual(self.failure(frame({"id": 7, "method": "none"}), 7), (-32601, "there is no such method"))
        hover = {"id": 8, "method": "textDocument/hover", "params": {"textDocument": {"uri": "file:///x"}}}
        self.assertEqual(self.failure(frame(hover), 8), (-32803, 'the document "file:///x" is not open'))
        for params in (None, [], 3, {"textDocument": 1}, {"textDocument": {"uri": 1}}):
            hover = {"id": 9, "method": "textDocument/hover", "params": params}
            self.assertEqual(self.failure(frame(hover), 9)[0], -32803)
        self.client.notify("textDocument/didOpen", textDocument={"uri": 1, "text": 2})
        self.client.notify("textDocument/didChange", contentChanges=3)
        self.client.notify("$/cancelRequest", id=1)
        self.client.write(frame({"id": 3, "result": None}))
        self.assertEqual(self.client.open("x = 1\n"), [])
        for place in (None, 1, {"line": -1, "character": -5}, {"line": 1e9, "character": "x"}):
            result = self.client.request("textDocument/hover", textDocument={"uri": self.client.uri}, position=place)
            self.assertIn(result, (None, result))

    def test_framing(self):
        request = frame({"jsonrpc": "2.0", "id": 5, "method": "none"})
        self.assertEqual(self.failure(b"Nonsense: 1\r\n\r\n" + request, 5)[0], -32601)
        self.assertEqual(self.failure(b"Content-Length: x\r\n\r\n" + request, 5)[0], -32601)
        self.assertEqual(self.failure(b"Content-Length: 99999999999999999999\r\n\r\n" + request, 5)[0], -32601)
        self.assertEqual(self.failure(b"A: b\r\ncontent-length:   " + request[16:], 5)[0], -32601)
        self.assertEqual(self.failure(b"x" * 20000 + b"\r\n\r\n" + request, 5)[0], -32601)
        self.assertEqual(self.parts(request), -32601)

    def parts(self, data):
        for byte in data[:-1]:
            self.client.write(bytes([byte]))
        return self.failure(data[-1:], 5)[0]

    def test_texts_that_hurt(self):
        for text in ("", "\0", "(" * 100_000, "a." * 5000, "x = " + "-" * 5000 + "1", "fn f(", '"', "f\"{", "/*",
                     "let " + "x" * 100_000 + " = 1", "x\r\ny", "import \"\"", "import \"program.tl\"", "\n" * 50_000):
            with self.subTest(text[:20]):
                self.client.open(text)
                for method in ("hover", "completion", "signatureHelp", "definition", "documentHighlight"):
                    self.client.at(method, 0, min(len(text), 3))
                self.client.whole("documentSymbol")

    def test_command_line(self):
        result = run("lsp", "--wrong")
        self.assertEqual((result.status, result.err), (2, "error: there is no option --wrong\nusage: tl lsp\n"))
        self.assertEqual(run("lsp", "--stdio").status, 1)


if __name__ == "__main__":
    unittest.main()
