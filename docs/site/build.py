#!/usr/bin/python3
"""Makes the documentation website: `build.py TL FOLDER` writes static pages into FOLDER that need no server. The documents and
examples of the repository and the catalog (`tl help --json`) are all that it reads; python3-markdown makes the pages."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from string import Template

import markdown

from code_blocks import Code

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# Documents by their place in the repository: page, word in the navigation.
DOCUMENTS = {
    "README.md": ("index.html", "Start"),
    "docs/guide.md": ("guide.html", "Guide"),
    "docs/reference.md": ("reference.html", "Reference"),
    "docs/tensor-logic.md": ("tensor-logic.html", "Tensor logic"),
    "docs/pytorch.md": ("pytorch.html", "Coming from PyTorch"),
    "docs/embedding.md": ("embedding.html", "In C and Python"),
    "docs/scale.md": ("scale.html", "Many processes"),
    "docs/performance.md": ("performance.html", "Performance"),
    "ARCHITECTURE.md": ("architecture.html", "Architecture"),
    "CONTRIBUTING.md": ("contributing.html", "Contributing"),
}
NAVIGATION = ["index.html", "guide.html", "examples/index.html", "reference.html", "std/index.html", "tensor-logic.html", "pytorch.html",
              "embedding.html", "scale.html", "performance.html", "architecture.html", "internals/index.html", "contributing.html"]
FOLDERS = {"examples": ("examples/index.html", "Examples"), "std": ("std/index.html", "Standard library"),
           "docs/internals": ("internals/index.html", "Internals")}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```[ \t]*$", re.S | re.M)


class Site:
    def __init__(self, tl, folder):
        self.tl, self.folder = tl, folder
        self.template = Template((HERE / "page.html").read_text())
        self.code = Code(self.ask)
        self.catalog = json.loads(self.ask("help", "--json"))
        self.code.entries = {row["name"]: "reference.html#" + row["name"] for row in self.catalog["builtins"]}
        self.pages = {source: page for source, (page, _) in DOCUMENTS.items()} | {source: page for source, (page, _) in FOLDERS.items()}
        for path in sorted((ROOT / "docs" / "internals").glob("*.md")):
            self.pages[f"docs/internals/{path.name}"] = f"internals/{path.stem}.html"
        for path in [*(ROOT / "examples").glob("*.tl"), *(ROOT / "std").rglob("*.tl"), *(ROOT / "examples").glob("*/*.[tc]*"),
                     *(ROOT / "include").glob("*.h")]:
            source = str(path.relative_to(ROOT))
            if path.suffix in (".tl", ".c", ".h"):
                self.pages[source] = re.sub(r"\.(tl|c|h)$", r"_\1.html" if path.suffix != ".tl" else ".html", source)
        self.titles = dict(DOCUMENTS.values()) | dict(FOLDERS.values())
        self.found = []  # what the search looks through: title, address, kind, text

    def ask(self, *words, **options):
        return subprocess.run([self.tl, *words], capture_output=True, text=True, check=True, **options).stdout

    # --- pages

    def write(self, page, title, body, contents=()):
        """A page in the frame; `contents` are (level, id, title) of its headings."""
        root = "../" * page.count("/")
        rows = []
        for address in NAVIGATION:
            here = address == page or (address.endswith("/index.html") and page.startswith(address.split("/")[0] + "/"))
            rows.append(f'<a href="{root}{address}"{" aria-current=page" if here else ""}>{html.escape(self.titles[address])}</a>')
            if here and contents:
                rows.append('<div class="contents">' + "".join(f'<a class="level{level}" href="#{html.escape(mark)}">{html.escape(text)}</a>'
                                                               for level, mark, text in contents) + "</div>")
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.template.substitute(title=html.escape(title), root=root, navigation="\n".join(rows), body=body,
                                                 kind="home" if page == "index.html" else "page"))

    def find(self, title, address, kind, text):
        text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<button.*?</button>", "", text)))
        self.found.append([title, address, kind, re.sub(r"\s+", " ", text)[:2000]])

    # --- documents

    def address_of(self, link, source, page):
        """Where a link of a document leads on the site; None: nowhere here."""
        if re.match(r"\w+:|#", link):
            return link
        path, mark = (link.split("#") + [""])[:2]
        target = os.path.normpath(os.path.join(os.path.dirname(source), path))
        if target not in self.pages:
            return None
        return os.path.relpath(self.pages[target], os.path.dirname(page) or ".") + ("#" + mark if mark else "")

    def link_words(self, body, root):
        """`name` of a builtin leads to its entry."""
        def link(found):
            name = re.match(r"[\w:.]*", html.unescape(found[1]))[0]
            address = self.code.entries.get(name)
            return f'<a class="name" href="{root}{address}">{found[0]}</a>' if address and not found[1][len(name):].strip("()") else found[0]

        return re.sub(r"<code>([^<]*)</code>(?!</a>)", link, body)

    def render(self, text, source, page):
        """The body of a document, and its headings."""
        root, blocks = "../" * page.count("/"), []

        def keep(found):
            blocks.append(self.code.block(found[2], found[1], root))
            return f'<div data-block="{len(blocks) - 1}"></div>'

        reader = markdown.Markdown(extensions=["tables", "toc", "sane_lists"],
                                   extension_configs={"toc": {"permalink": "#", "permalink_title": "Link to this section"}})
        body = reader.convert(FENCE.sub(keep, text))
        body = re.sub(r"<pre><code>(.*?)</code></pre>", lambda found: self.code.block(html.unescape(found[1]), "", root), body, flags=re.S)

        def link(found):
            address = self.address_of(html.unescape(found[1]), source, page)
            return f'<a href="{html.escape(address)}">{found[2]}</a>' if address else found[2]

        body = re.sub(r'<a href="([^"]*)">(.*?)</a>', link, body, flags=re.S)
        body = self.link_words(body, root).replace("<table>", '<div class="table"><table>').replace("</table>", "</table></div>")
        body = re.sub(r'<div data-block="(\d+)"></div>', lambda found: blocks[int(found[1])], body)
        return body, [(token["level"] + deep, token["id"], html.unescape(token["name"])) for deep, token in walk(reader.toc_tokens)]

    def document(self, source):
        page = self.pages[source]
        text = (ROOT / source).read_text()
        body, headings = self.render(text, source, page)
        title = headings[0][2] if headings else page
        if page == "index.html":
            body = body.replace("</p>", "</p>" + self.cards(), 1)
        self.write(page, title, body, [row for row in headings if row[0] == 2])
        for part in re.split(r"(?=<h[123] id=)", body)[1:]:
            mark, name = re.match(r'<h\d id="([^"]*)">(.*?)<a class="headerlink"', part, re.S).groups()
            name = html.unescape(re.sub(r"<[^>]*>", "", name))
            self.find(name, f"{page}#{mark}", self.titles.get(page, title), part.split("</h", 1)[1][3:])

    def cards(self):
        cards = [("guide.html", "Guide", "The language, from programs to learning, logic and language models."),
                 ("reference.html", "Reference", f"All {len(self.code.entries)} builtins, with examples and what they give."),
                 ("examples/index.html", "Examples", "Programs that run as they stand here, with their output."),
                 ("embedding.html", "In C and Python", "A library, a package, notebooks: tensors shared without a copy.")]
        links = "".join(f'<a class="card" href="{address}"><b>{name}</b><span>{text}</span></a>' for address, name, text in cards)
        return f'<nav class="cards" aria-label="Where to go">{links}</nav>'

    # --- the catalog

    def outputs(self, row):
        """What each example of a builtin gives at the prompt, one after the other; None where that is not always the same, or where
        one needs what is not here, such as a model: what fails says so where the answers do not stand."""
        mark = "\u241e"
        entered = "".join(f"{example}\nprint(\"{mark}\")\n" for example in row["examples"])
        told = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                result = subprocess.run([self.tl, "repl", "--seed", "1", "--device", "cpu"], input=entered, capture_output=True, text=True,
                                        cwd=folder, timeout=60)
            told.append([text.rstrip("\n") for text in result.stdout.split(mark + "\n")[:-1]])
        unknown = [None] * len(row["examples"])
        return unknown if result.stderr else [once if once == again else None for once, again in zip(*told)]

    def entry(self, name, rows):
        """All overloads of a name, under one anchor."""
        parts = []
        for row in rows:
            parts.append(f'<pre class="signature"><code>{self.code.colour(row["signature"], "tl", "")}</code></pre>'
                         f"<p>{self.words(row['doc'])}</p>")
            for example, out in zip(row["examples"], self.outputs(row) if row["examples"] else []):
                parts.append(self.code.block(example + (out and "\n" + "\n".join("// expect: " + line for line in out.split("\n")) or ""), "tl", ""))
        if rows[0]["aliases"]:
            parts.append('<p class="also">also: ' + ", ".join(f"<code>{html.escape(alias)}</code>" for alias in rows[0]["aliases"]) + "</p>")
        mark = html.escape(name)
        self.find(name, f"reference.html#{name}", rows[0]["section"], rows[0]["doc"])
        for alias in rows[0]["aliases"]:
            self.find(alias, f"reference.html#{name}", f"see {name}", rows[0]["doc"])
        return f'<section class="entry" id="{mark}"><h3><a href="#{mark}">{mark}</a></h3>{"".join(parts)}</section>'

    def words(self, text):
        """Sentences of the catalog: `code` stands between backquotes."""
        text = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(text, quote=False))
        return self.link_words(text, "")

    def reference(self):
        names, sections = {}, {}
        for row in self.catalog["builtins"]:
            names.setdefault(row["name"], []).append(row)
        for name, rows in names.items():
            sections.setdefault(rows[0]["section"], []).append(name)
        order = sorted(sections, key=lambda section: section == "Older spellings")
        body, contents = ["<h1>Reference</h1><p>Every name that a script can call. <code>tl help NAME</code> prints one. What stands below an "
                          "example is what it gives.</p>"], []
        for section in order:
            mark = "section-" + slug(section)  # a builtin may be called as its section is
            contents.append((2, mark, section))
            self.find(section, f"reference.html#{mark}", "Reference", ", ".join(sections[section]))
            listed = " ".join(f'<a href="#{html.escape(name)}">{html.escape(name)}</a>' for name in sections[section])
            body.append(f'<h2 id="{mark}">{html.escape(section)}</h2><p class="names">{listed}</p>')
            body += [self.entry(name, names[name]) for name in sections[section]]
        for mark, title, rows in self.lists():
            contents.append((2, mark, title))
            body.append(f'<h2 id="{mark}">{title}</h2><dl>{rows}</dl>')
        self.write("reference.html", "Reference", "".join(body), contents)

    def lists(self):
        """What has a line each: words, numbers and variables."""
        for mark, title, group, term, text in (("words", "Words of the language", "words", "name", "form"),
                                               ("constants", "Constants", "constants", "name", "doc"),
                                               ("environment-variables", "Environment variables", "variables", "name", "doc")):
            rows = []
            for row in self.catalog[group]:
                name = row[term] + (f"={row['form']}" if group == "variables" else "")
                told = self.words(row[text]) if group != "words" else f"<code>{html.escape(row[text])}</code>"
                rows.append(f'<dt id="{mark}-{html.escape(row["name"])}"><code>{html.escape(name)}</code></dt><dd>{told}</dd>')
                self.find(row["name"], f"reference.html#{mark}-{row['name']}", title, row[text])
            yield mark, title, "".join(rows)

    # --- programs

    def programs(self, folder):
        """A page a program, and a list of them."""
        index, title = FOLDERS[folder]
        rows = []
        for source in sorted(source for source in self.pages if source.startswith(folder + "/") and source.endswith(".tl")):
            page, text = self.pages[source], (ROOT / source).read_text()
            said = re.match(r"(?:#!.*\n)?((?:// .*\n)+)", text)
            about = re.split(r"(?<=[.?]) ", re.sub(r"^// ?", "", said[1], flags=re.M).replace("\n", " "))[0] if said else ""
            arguments = " ".join(re.findall(r"^// args: (.*)$", text, re.M)).replace("{fixtures}/", "")
            options = " ".join(re.findall(r"^// options: (.*)$", text, re.M))
            root = "../" * page.count("/")
            command = " ".join(f"tl run {options} {source} {arguments}".split())
            run = self.code.block(command, "", root) if folder == "examples" and "/data/" not in source else ""
            self.write(page, source, f"<h1>{html.escape(Path(source).name)}</h1><p>{html.escape(about)}</p>{run}{self.code.block(text, 'tl', root)}")
            self.find(source, page, title, about)
            rows.append(f'<a class="row" href="{os.path.relpath(page, os.path.dirname(index))}"><b>{html.escape(source[len(folder) + 1:])}</b>'
                        f"<span>{html.escape(about)}</span></a>")
        lead = ("Each is also a test of tl: what stands below it is what it prints." if folder == "examples"
                else 'What comes with tl and is written in it. <code>import "std/layers.tl"</code> makes the names of a file known.')
        self.write(index, title, f'<h1>{title}</h1><p>{lead}</p><div class="rows">{"".join(rows)}</div>')

    def sources(self):
        """Programs in C and headers that documents lead to."""
        for source, page in self.pages.items():
            if source.endswith((".c", ".h")):
                text = self.code.block((ROOT / source).read_text(), "c", "../" * page.count("/"))
                self.write(page, source, f"<h1>{html.escape(source)}</h1>{text}")

    def internals(self):
        rows = []
        for source, page in self.pages.items():
            if source.startswith("docs/internals/"):
                self.document(source)
                title = re.match(r"# (.*)", (ROOT / source).read_text())[1]
                rows.append(f'<a class="row" href="{Path(page).name}"><b>{html.escape(title)}</b></a>')
        self.write("internals/index.html", "Internals", f'<h1>Internals</h1><p>How tl works inside, for those who change it.</p>'
                                                        f'<div class="rows">{"".join(rows)}</div>')

    def build(self):
        for source in DOCUMENTS:
            if source != "docs/reference.md":
                self.document(source)
        self.reference()
        self.programs("examples")
        self.programs("std")
        self.sources()
        self.internals()
        for name in ("style.css", "site.js"):
            shutil.copy(HERE / name, self.folder)
        # A script and not JSON: pages from file:// may not fetch.
        (self.folder / "search.js").write_text(f"const SEARCH = {json.dumps(self.found, ensure_ascii=False, separators=(',', ':'))};\n")


def walk(tokens, deep=0):
    for token in tokens:
        yield 0, token
        yield from walk(token["children"], deep + 1)


def slug(text):
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def main():
    tl, folder = str(Path(sys.argv[1]).resolve()), Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    os.environ["NO_COLOR"] = "1"
    Site(tl, folder).build()
    print(folder / "index.html")


if __name__ == "__main__":
    main()
