"""The Jupyter kernel of tl, on ipykernel: `python3 -m tl.kernel install`, or `tl notebook-kernel install`.

A cell is a program that shares variables with those before it. What is shown of a value is text and HTML that
hold its numbers, so that an output keeps no tensor alive."""
import html
import json
import os
import re
import sys
import threading
import time
import uuid
from pathlib import Path

import tl

from ._rich import rich, size_text

NAME_AT_END = re.compile(r"[^\W\d]\w*$")
NAME_AT_BEGIN = re.compile(r"\w*")
QUESTION = re.compile(r"\s*\??\s*([^\W\d][\w.:]*)\s*\??\s*$")
MEMBERS = re.compile(r"([^\W\d]\w*(?:\.[^\W\d]\w*)*)\.(\w*)$")
FLUSH_SECONDS, PROGRESS_SECONDS = 0.05, 0.1
PAIRS = {")": "(", "]": "[", "}": "{"}
TOKEN = re.compile(r'//[^\n]*|r?"(?:[^"\\]|\\.)*"|/\*|\*/|"|[()\[\]{}]', re.S)
TENSOR_MEMBERS = ("shape", "dtype", "T", "ndim")


def is_whole(code):
    """Whether brackets, texts and comments of a cell are closed."""
    opened, comments = [], 0
    for found in TOKEN.finditer(code):
        word = found[0]
        if word == "/*":
            comments += 1
        elif word == "*/" and comments:
            comments -= 1
        elif comments or word.startswith(("//", "r")) or len(word) > 1:
            continue
        elif word == '"':
            return "incomplete"
        elif word in "([{":
            opened.append(word)
        elif not opened or opened.pop() != PAIRS.get(word):
            return "invalid"
    return "incomplete" if opened or comments else "complete"


def question_of(code):
    """The name in `name?` or `?name`; None for a program."""
    found = QUESTION.match(code)
    return found[1] if found and "?" in code else None


class Stream:
    """Text for a front end, gathered for a moment: many lines are one message."""

    def __init__(self, send):
        self.send, self.lock, self.parts, self.timer = send, threading.Lock(), [], None

    def write(self, text, is_error):
        with self.lock:
            self.parts.append(("stderr" if is_error else "stdout", text))
            if self.timer is None:
                self.timer = threading.Timer(FLUSH_SECONDS, self.flush)
                self.timer.daemon = True
                self.timer.start()

    def flush(self):
        with self.lock:
            parts, self.parts = self.parts, []
            if self.timer:
                self.timer.cancel()
                self.timer = None
            joined = []
            for name, text in parts:
                if joined and joined[-1][0] == name:
                    joined[-1][1].append(text)
                else:
                    joined.append((name, [text]))
            for name, texts in joined:
                self.send("stream", {"name": name, "text": "".join(texts)})


class Progress:
    """A bar that is one output, updated."""

    def __init__(self, send):
        self.send, self.mark, self.shown = send, None, 0.0

    def __call__(self, epoch, epochs, loss):
        now, last = time.monotonic(), epochs and epoch >= epochs
        if self.mark and now - self.shown < PROGRESS_SECONDS and not last:
            return
        self.shown = now
        of = f" of {epochs}" if epochs else ""
        text = f"epoch {epoch}{of}, loss {loss:.6g}"
        most = f' value="{epoch}" max="{epochs}"' if epochs else ""
        data = {"text/plain": text, "text/html": f"<progress{most}></progress> {html.escape(text)}"}
        kind = "update_display_data" if self.mark else "display_data"
        self.mark = self.mark or uuid.uuid4().hex
        self.send(kind, {"data": data, "metadata": {}, "transient": {"display_id": self.mark}})
        if last:
            self.mark = None


class Session:
    """What a kernel does, without the wire: send(kind, content) is what it says."""

    def __init__(self):
        self.runtime = tl.Runtime()

    def execute(self, code, send):
        """What a cell's last statement gives, as MIME data, or None; raises tl.Error and KeyboardInterrupt.
        The second is what it did to the memory of the device."""
        stream, before = Stream(send), self.runtime.ledger()["live_bytes"]

        def picture(svg):
            stream.flush()
            # As HTML too, because nbconvert takes the lines out of SVG.
            send("display_data", {"data": {"image/svg+xml": svg, "text/html": svg, "text/plain": "<plot>"}, "metadata": {}})
        self.runtime.on_output(stream.write)
        self.runtime.on_picture(picture)
        self.runtime.on_progress(Progress(lambda kind, content: (stream.flush(), send(kind, content))))
        try:
            data = self.shown(self.runtime.run(code, "<cell>"))
        finally:
            self.runtime.on_output(None)
            self.runtime.on_progress(None)
            self.runtime.on_picture(None)
            stream.flush()
        live = self.runtime.ledger()["live_bytes"]
        return data, {"live_bytes": live, "change_bytes": live - before}

    def shown(self, value):
        if value is None:
            return None
        text = value if isinstance(value, str) else self.text(value)
        data = {"text/plain": text}
        page = rich(value)
        if page:
            data["text/html"] = page
        return data

    def text(self, value):
        """A value as print shows it."""
        return str(value if isinstance(value, tl.Value) else tl.Value(self.runtime, self.runtime._give(value)))

    def said(self, code):
        """What a program prints."""
        parts = []
        self.runtime.on_output(lambda text, is_error: parts.append(text))
        try:
            self.runtime.run(code, "<kernel>")
        finally:
            self.runtime.on_output(None)
        return "".join(parts)

    def about(self, name):
        """What a name is: a variable's kind and value, or the page of the language's; None when there is none."""
        try:
            value = self.runtime.get(name)
        except tl.Error:
            value = None
        else:
            head = self.runtime.run(f"type({name})", "<kernel>") if value is not None else "none"
            if isinstance(value, tl.Tensor):
                head = f"{value.dtype}[{', '.join(map(str, value.shape))}]"
            text = "none" if value is None else value if isinstance(value, str) else self.text(value)
            if not isinstance(value, tl.Function):
                return f"{name}: {head}\n{text[:2000]}"
            return f"{name}: {text}"
        try:
            quoted = json.dumps(name, ensure_ascii=False)
            return self.said(f"help({quoted})").rstrip("\n")
        except tl.Error:
            return None

    def completions(self, code, cursor):
        """(candidates, where what they replace begins)."""
        before = code[:cursor]
        members = MEMBERS.search(before)
        if members:
            return self.members(members[1], members[2]), cursor - len(members[2])
        found = NAME_AT_END.search(before)
        word = found[0] if found else ""
        names = self.runtime.names()
        return sorted({name for name in names if name.startswith(word)}) if word else [], cursor - len(word)

    def members(self, path, word):
        first, *rest = path.split(".")
        try:
            value = self.runtime.get(first)
            for name in rest:
                value = value[name] if isinstance(value, dict) else getattr(value, name)
        except (tl.Error, AttributeError, KeyError):
            return []
        if isinstance(value, dict):
            names = [name for name in value if isinstance(name, str) and name.isidentifier()]
        elif isinstance(value, tl.Tensor):
            names = list(TENSOR_MEMBERS)
        elif type(value) is tl.Value:
            names = list(self.runtime.fields(value))
        else:
            names = []
        return sorted(name for name in names if name.startswith(word))


def make_kernel():
    """The kernel's class; ipykernel is wanted from here on only."""
    from ipykernel.kernelbase import Kernel

    class TlKernel(Kernel):
        implementation = "tl"
        implementation_version = tl.__version__
        language_info = {"name": "tl", "mimetype": "text/x-tl", "file_extension": ".tl", "version": tl.__version__,
                         "codemirror_mode": "rust", "pygments_lexer": "rust"}
        banner = f"tl {tl.__version__}: tensors in small programs"

        def __init__(self, **options):
            super().__init__(**options)
            self.work = Session()

        # Interrupts come as messages, on a thread of their own.
        def pre_handler_hook(self):
            pass

        def post_handler_hook(self):
            pass

        async def interrupt_request(self, stream, ident, parent):
            self.work.runtime.interrupt()
            self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

        def sender(self, silent):
            parent, topic = self.get_parent("shell"), self._topic
            if silent:
                return lambda kind, content: None
            return lambda kind, content: self.session.send(self.iopub_socket, kind, content, parent=parent, ident=topic(kind))

        def do_execute(self, code, silent, store_history=True, user_expressions=None, allow_stdin=False):
            send = self.sender(silent)
            reply = {"execution_count": self.execution_count}
            name = question_of(code)
            try:
                if name:
                    text = self.work.about(name) or f"there is nothing called {name}"
                    data, memory = None, {}
                    send("display_data", {"data": {"text/plain": text}, "metadata": {}})
                else:
                    data, memory = self.work.execute(code, send)
            except KeyboardInterrupt:
                return self.failed(send, "KeyboardInterrupt", "interrupted", ["interrupted"])
            except tl.Error as error:
                if error.kind == "exit":
                    return {"status": "ok", "payload": [{"source": "ask_exit", "keepkernel": False}], "user_expressions": {}, **reply}
                return self.failed(send, error.kind, error.message, str(error).splitlines())
            if data:
                send("execute_result", {"data": data, "metadata": {}, "execution_count": self.execution_count})
            if memory.get("change_bytes"):
                self.show_memory(send, memory)
            return {"status": "ok", "payload": [], "user_expressions": {}, "metadata": {"tl": memory}, **reply}

        def show_memory(self, send, memory):
            change = memory["change_bytes"]
            text = f"device memory {'+' if change > 0 else '-'}{size_text(abs(change))}, {size_text(memory['live_bytes'])} held"
            send("display_data", {"data": {"text/plain": text, "text/html": f'<small style="color:#888">{text}</small>'},
                                  "metadata": {"tl": memory}})

        def failed(self, send, kind, message, lines):
            content = {"ename": kind, "evalue": message, "traceback": lines}
            send("error", content)
            return {"status": "error", "execution_count": self.execution_count, **content}

        def do_complete(self, code, cursor_pos):
            matches, start = self.work.completions(code, cursor_pos)
            return {"status": "ok", "matches": matches, "cursor_start": start, "cursor_end": cursor_pos, "metadata": {}}

        def do_inspect(self, code, cursor_pos, detail_level=0, omit_sections=()):
            before = NAME_AT_END.search(code[:cursor_pos])
            name = (before[0] if before else "") + NAME_AT_BEGIN.match(code[cursor_pos:])[0]
            text = self.work.about(name) if name else None
            return {"status": "ok", "found": text is not None, "data": {"text/plain": text} if text else {}, "metadata": {}}

        def do_is_complete(self, code):
            state = is_whole(code)
            return {"status": state, "indent": "    "} if state == "incomplete" else {"status": state}

        def do_shutdown(self, restart):
            self.work = None
            return {"status": "ok", "restart": restart}

    return TlKernel


def data_folder():
    """Where Jupyter looks for what a user installs."""
    given = os.environ.get("JUPYTER_DATA_DIR")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "jupyter"


def install():
    """Writes kernel.json for the user, and says where."""
    spec = {"argv": [sys.executable, "-m", "tl.kernel", "-f", "{connection_file}"], "display_name": "tl", "language": "tl",
            "interrupt_mode": "message", "metadata": {"debugger": False}}
    if os.environ.get("PYTHONPATH"):  # the package may be found there only
        spec["env"] = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    folder = data_folder() / "kernels" / "tl"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kernel.json").write_text(json.dumps(spec, indent=1) + "\n")
    print(f"installed the kernel tl in {folder}")


def main():
    if sys.argv[1:] == ["install"]:
        try:
            install()
        except OSError as error:
            sys.exit(f"cannot install the kernel: {error}")
        return
    if "-f" not in sys.argv:
        sys.exit("usage: python3 -m tl.kernel install")
    try:
        from ipykernel.kernelapp import IPKernelApp
    except ImportError:
        sys.exit("the kernel needs ipykernel; on Debian and Ubuntu: apt install python3-ipykernel")
    IPKernelApp.launch_instance(kernel_class=make_kernel())


if __name__ == "__main__":
    main()
