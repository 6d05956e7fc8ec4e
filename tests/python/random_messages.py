"""Odd messages for the notebook kernel, as its front ends put them on the wire: programs, cursors and names drawn at random,
fields of other types or missing, frames cut off. Every request that is well formed gets one reply; the kernel goes on after
all of them. Run by tests/cli/test_random_messages.py.

    PYTHONPATH=build/release/python python3 tests/python/random_messages.py SEED COUNT
"""
import asyncio
import json
import logging
import random
import sys

import zmq
from jupyter_client.session import Session
from tl.kernel import make_kernel
from zmq.eventloop.zmqstream import ZMQStream

WORDS = ["let ", "x", "y", "d", "{", "}", "(", ")", "[", "]", "[1.0, 2.0]", "[[1, 2], [3, 4]]", "=", " + ", " @ ", ",", ";", "\n", "\t", "?", ".", ":", "..",
         "\0", "\ud800", "\udfff", "\U0001f999", "é", "\u2028", '"', '"a"', 'f"{x}"', "//", "/*", "*/", "#", "1", "0", "-1", "1e400", "9223372036854775808",
         "none", "true", "nan", "print(", "eprint(", "plot(", "softmax(", "zeros([3, 0])", "ones([40, 40])", "randn([2, 2])", "list(", '{"k": x}', "fn f(a) { a }", "f(", "f",
         "struct P { a: any }", "P { a: x }", "if ", "else ", "for i in 0..3 ", "match x ", "try { ", " catch e ", "return", "help(", "x.shape", "x.T", "d.k", "str(x)",
         "tensor w: float32[2] learnable", "learn { objective: sum(w ** 2), optimizer: sgd(lr: 0.1), epochs: 3 }", "save(", "exit(3)", "assert(false)", "error(", "?softmax",
         "softmax?", "x?", "$", "\\", "`", "'", "<b>", "&amp;", "(" * 300, "[" * 3000, "x" * 5000, "@" * 50]
WHOLE = ["let x = [1.0, 2.0]", "x + 1", 'let d = ({"a": x, "<i>": list(1, none)})\nd', "plot([1, 2, 4])", 'print("a")', "1 + 1", '"<script>"', "x.shape", "zeros([2, 3]) @ zeros([2, 3])",
         "struct Q { a: any }\nQ { a: 3 }", "let y = x\ny", "x = none", "y = none", "list(1, 2.5, none)", "(1, 2)", "tensor([[nan, 1.0]])", "relu?"]
ODD = [None, True, 0, -1, 2 ** 70, 1.5, "", "x", [], [1], {}, {"a": {}}]
FIELDS = {
    "execute_request": ("code", "silent", "store_history", "user_expressions", "allow_stdin", "stop_on_error"),
    "complete_request": ("code", "cursor_pos"),
    "inspect_request": ("code", "cursor_pos", "detail_level"),
    "is_complete_request": ("code",),
    "history_request": ("hist_access_type", "output", "raw", "session", "start", "stop", "n", "pattern", "unique"),
    "kernel_info_request": (),
    "comm_info_request": ("target_name",),
    "interrupt_request": (),
}


class Wire(ZMQStream):
    """A stream without a socket."""

    def __init__(self):
        pass

    def flush(self, *words):
        pass


class Problems(logging.Handler):
    """What the kernel logs of exceptions: the files that they went through."""

    def __init__(self):
        super().__init__()
        self.found = []

    def emit(self, record):
        if record.exc_info and record.exc_info[2]:
            self.found.append(logging.Formatter().formatException(record.exc_info))


def text_of(draw):
    if draw.random() < 0.3:
        return draw.choice(WHOLE)
    return "".join(draw.choice(WORDS) for _ in range(draw.choice((0, 1, 2, 3, 5, 8, 20))))


def field(draw, name, code):
    if name == "code":
        return code
    if name == "cursor_pos":
        return draw.choice((0, len(code), draw.randrange(len(code) + 1), len(code) + 7, -3))
    if name in ("n", "session", "start", "stop", "detail_level"):
        return draw.randrange(-2, 3)
    if name in ("user_expressions",):
        return {}
    if name in ("hist_access_type", "pattern", "target_name"):
        return draw.choice(("range", "tail", "search", "*"))
    return draw.random() < 0.5


def content_of(draw, kind):
    """A request's content, and whether all of it is as it ought to be."""
    code = text_of(draw)
    sound = not any(0xD800 <= ord(c) < 0xE000 for c in code)  # no text has half a pair
    content = {name: field(draw, name, code) for name in FIELDS[kind]}
    for name in FIELDS[kind]:
        if draw.random() < 0.06:
            sound = False
            if draw.random() < 0.4:
                del content[name]
            else:
                content[name] = draw.choice(ODD)
    if draw.random() < 0.03:
        content["extra"] = draw.choice(ODD)
        sound = sound and kind != "history_request"
    return content, sound


class Kernel:
    def __init__(self):
        self.session, self.wire, self.problems = Session(key=b"key"), Wire(), Problems()
        logger = logging.Logger("kernel")
        logger.addHandler(self.problems)
        self.kernel = make_kernel()(session=self.session, shell_stream=self.wire, iopub_socket=self.wire, log=logger)
        self.kernel._abort_queues = lambda: None

        async def nothing():
            pass
        self.kernel._flush_control_queue = nothing
        self.session.send = self.take
        self.session.pack = lambda value: json.dumps(value, default=str).encode()  # as browsers do: halves of pairs are escapes

    def take(self, stream, kind, content=None, parent=None, ident=None, **more):
        """What is sent must be JSON in UTF-8."""
        json.dumps(content, ensure_ascii=False, allow_nan=False, default=str).encode()
        self.sent.append(kind)
        return {"content": content}

    def give(self, frames):
        """The kinds of what it sends for a message."""
        self.sent, self.problems.found = [], []
        asyncio.run(self.kernel.dispatch_shell([zmq.Frame(frame) for frame in frames]))
        return self.sent

    def ask(self, kind, content):
        message = self.session.msg(kind, content)
        if kind != "interrupt_request":
            return self.give(self.session.serialize(message))
        self.sent, self.problems.found = [], []
        asyncio.run(self.kernel.interrupt_request(self.wire, b"", message))
        return self.sent


def damaged(draw, frames):
    """Frames behind the first with bytes changed, left out or doubled; the signature is right no more."""
    first, *frames = [bytearray(frame) for frame in frames]
    for _ in range(draw.choice((1, 2, 5))):
        frame = draw.choice(frames)
        at = draw.randrange(len(frame) + 1)
        change = draw.randrange(4)
        if change == 0 and at < len(frame):
            frame[at] ^= 1 << draw.randrange(8)
        elif change == 1:
            del frame[at:at + draw.choice((1, 8, 1000))]
        elif change == 2:
            frame[at:at] = bytes(draw.randrange(256) for _ in range(draw.choice((1, 4))))
        elif len(frames) > 1:
            frames.remove(frame)
    return [bytes(frame) for frame in (first, *frames)]


def main(seed, count):
    draw, kernel = random.Random(seed), Kernel()
    for number in range(count):
        kind = draw.choices(list(FIELDS), (8, 4, 4, 3, 1, 1, 1, 1))[0]
        content, sound = content_of(draw, kind)
        told = f"seed {seed}, message {number}: {kind} {content!r}"
        if draw.random() < 0.05:
            kernel.give(damaged(draw, kernel.session.serialize(kernel.session.msg(kind, content))))
            continue
        replies = [kind for kind in kernel.ask(kind, content) if kind.endswith("_reply")]
        if sound:
            assert not kernel.problems.found, f"{told}\n{kernel.problems.found[0]}"
            assert replies == [kind.replace("_request", "_reply")], f"{told}: {replies}"
    sent = kernel.ask("execute_request", {"code": "1 + 1", "silent": False})
    assert "execute_result" in sent, f"it computes no more: {sent}"
    print("sound")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
