"""Code on the pages of the site: coloured by Pygments, with the words of tl from the grammar of editors and every builtin a
link to its entry, and what it prints."""
import html
import json
import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer, include
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text

EXPECT = re.compile(r"^\s*(?://|#) expect: ?(.*)$")
DIRECTIVE = re.compile(r"^\s*// (?:expect error|expect stderr|exit|args|options|env|device|stdin):")


def make_lexer(grammar):
    """A lexer for tl, with the words that the grammar has."""
    words = {pattern.get("name"): re.search(r"\\b\(([^)]*)\)\\b(.*)", pattern.get("match", "")) for pattern in grammar["patterns"]}

    def rule(name, kind):
        behind = words[name][2].replace(r"\p{L}", r"^\W\d_").replace("[^\\W\\d_", "[a-zA-Z")
        return rf"(?<![\w.])(?:{words[name][1]})\b{behind}", kind

    class TlLexer(RegexLexer):
        name = "tl"
        tokens = {
            "root": [
                (r"\A#!.*$", Comment), (r"//.*$", Comment), (r"/\*", Comment, "comment"),
                (r'f"', String, "format"), (r'r"[^"]*"', String), (r'"(?:\\.|[^"\\])*"', String),
                (r"0[xX][0-9A-Fa-f_]+|0[bB][01_]+|\d[\d_]*(?:\.(?![.\w])|\.\d[\d_]*)?(?:[eE][-+]?\d+)?", Number),
                (r"(?<=\bfn )[^\W\d]\w*", Name.Function),
                rule("constant.language.boolean.tl", Keyword.Constant), rule("constant.language.tl", Keyword.Constant),
                *(rule(name, Keyword) for name in words if name and words[name] and name.startswith("keyword.")),
                rule("storage.modifier.tl", Keyword), rule("support.type.tl", Keyword.Type),
                (rf"(?:{words['support.function.tl'][1]})\b(?=\s*\()", Name.Builtin),
                (r"[^\W\d]\w*", Name), (r"[-+*/%@<>=!&|^~?≈]+", Operator), (r"[{}()\[\],.:;]", Punctuation), (r"\s+", Text), (r".", Text),
            ],
            "comment": [(r"/\*", Comment, "#push"), (r"\*/", Comment, "#pop"), (r"[^/*]+|.", Comment)],
            "format": [(r'"', String, "#pop"), (r"\\.|\{\{|\}\}", String.Escape), (r"\{", String.Interpol, "hole"), (r'[^"\\{}]+', String)],
            "hole": [(r"(?::[^{}\"]*)?\}", String.Interpol, "#pop"), (r"\{", Punctuation, "braces"), include("root")],
            "braces": [(r"\{", Punctuation, "#push"), (r"\}", Punctuation, "#pop"), include("root")],
        }

    return TlLexer()


class Code:
    def __init__(self, tl):
        self.lexers = {"tl": make_lexer(json.loads(tl("help", "--textmate")))}
        self.formatter = HtmlFormatter(nowrap=True)
        self.entries = {}  # of builtins: address from the root

    def colour(self, text, language, root):
        """Spans of classes; `root` leads from the page to the root of the site."""
        if language not in self.lexers:
            self.lexers[language] = get_lexer_by_name(language or "text")
        page = highlight(text, self.lexers[language], self.formatter)
        if language != "tl":
            return page

        def link(found):
            address = self.entries.get(html.unescape(found[1]))
            return f'<a class="nb" href="{root}{address}">{found[1]}</a>' if address else found[0]

        return re.sub(r'<span class="nb">([^<]*)</span>', link, page)

    def block(self, text, language, root):
        """A program with a button, then what it prints; the suite runs it and compares. Lines that do not belong to the program
        are not shown, and not copied."""
        if language == "session":
            return self.session(text, root)
        lines = text.rstrip("\n").split("\n")
        out = [found[1] for line in lines if (found := EXPECT.match(line))]
        lines = [line for line in lines if not EXPECT.match(line) and not DIRECTIVE.match(line)]
        shown = self.colour("\n".join(lines).strip("\n") + "\n", language, root)
        result = f'<pre class="output" aria-label="output">{html.escape(chr(10).join(out))}</pre>' if out else ""
        return (f'<div class="code"><button class="copy" type="button">Copy</button>'
                f'<pre class="source"><code>{shown}</code></pre>{result}</div>')

    def session(self, text, root):
        """Lines behind `tl> ` are entered, and alone are copied; the others are answers."""
        rows = []
        for line in text.rstrip("\n").split("\n"):
            if line.startswith("tl> "):
                rows.append(f'<span class="prompt">tl&gt; </span><span class="entered">{self.colour(line[4:], "tl", root)}</span>')
            else:
                rows.append(html.escape(line) + "\n")
        return ('<div class="code"><button class="copy" type="button">Copy</button>'
                f'<pre class="source session"><code>{"".join(rows)}</code></pre></div>')
