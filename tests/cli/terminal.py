"""A terminal with tl in it: a pseudo-terminal whose escapes python3-pyte interprets, so that a test
sees the screen that a person would see."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.path.append("/usr/lib/python3/dist-packages")  # where Debian's pyte is for any Python in PATH
import pyte  # noqa: E402

from tl import TL  # noqa: E402

PROMPT = "tl> "
LIMIT_S = 120
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x07")
# readline asks for marked pastes at each prompt, and no longer while a line runs: what the program
# itself writes stands between the two.
PROMPT_BEGINS, LINE_BEGINS = b"\x1b[?2004h", b"\x1b[?2004l\r"


class Terminal:
    def __init__(self, *arguments, columns=80, rows=40, env=None, folder=None, prompt=True, under=()):
        self.folder = folder or tempfile.mkdtemp()
        environment = {**os.environ, "TERM": "xterm-256color", "NO_COLOR": "1", "HOME": str(self.folder),
                       "INPUTRC": "/dev/null", "TL_MEMORY_CHECK": "strict", **(env or {})}
        for name in ("TL_HISTORY", "COLUMNS", "LINES"):
            environment.pop(name, None)
        self.screen = pyte.HistoryScreen(columns, rows, history=10000, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.status = None
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.chdir(self.folder)
            command = [*under, TL, *map(str, arguments)]  # which finds the terminal in $TERMINAL
            os.execvpe(command[0], command, {**environment, "TERMINAL": os.ttyname(0)})
        if prompt:
            self.wait_prompt()

    # --- what comes

    def read(self, timeout):
        if not select.select([self.file], [], [], timeout)[0]:
            return False
        try:
            piece = os.read(self.file, 65536)
        except OSError:
            piece = b""
        self.raw += piece
        self.stream.feed(piece)
        return bool(piece)

    def over(self):
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status is not None

    def wait(self, condition, what, limit=LIMIT_S):
        end = time.time() + limit
        while not condition():
            ended = not self.read(0.2) and self.over()
            if (time.time() > end or ended) and not condition():  # which may be that it is over
                raise AssertionError(f"{what} did not come; the screen shows\n" + "\n".join(self.shown()))

    def settle(self, quiet_s=0.3):
        """Reads until nothing more comes."""
        while self.read(quiet_s):
            pass

    def text(self):
        """What came since raw was emptied, without escapes."""
        return ESCAPES.sub("", self.raw.decode(errors="replace")).replace("\r", "")

    def wait_text(self, wanted, limit=LIMIT_S):
        self.wait(lambda: wanted in self.text(), repr(wanted), limit)
        return self.text()

    def at_prompt(self):
        before, mark, after = self.raw.rpartition(PROMPT_BEGINS)
        return bool(mark) and ESCAPES.sub("", after.decode(errors="replace")).endswith(PROMPT)

    def wait_prompt(self, limit=LIMIT_S):
        """What was printed until the prompt."""
        self.wait(self.at_prompt, "a prompt", limit)
        printed = self.raw.rpartition(PROMPT_BEGINS)[0].rpartition(LINE_BEGINS)[2]
        return ESCAPES.sub("", printed.decode(errors="replace")).replace("\r", "")

    # --- the screen

    def rows(self):
        """The rows on the screen, to the last one that is not empty."""
        rows = [row.rstrip() for row in self.screen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def shown(self):
        """The same, with what was scrolled away."""
        away = ["".join(line[x].data for x in range(self.screen.columns)).rstrip()
                for line in self.screen.history.top]
        return away + self.rows()

    def wait_rows(self, wanted, limit=20):
        """Until the last rows are these, one string with newlines."""
        rows = wanted.splitlines()
        self.wait(lambda: self.shown()[-len(rows):] == rows, "the rows\n" + wanted, limit)

    def cursor(self):
        """Column and row, from 0."""
        return self.screen.cursor.x, self.screen.cursor.y

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    # --- what is typed

    def send(self, keys):
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            ready = select.select([self.file], [self.file], [], 10)
            if ready[0]:
                self.read(0)
            if ready[1]:
                data = data[os.write(self.file, data[:512]):]

    def paste(self, text):
        """As a terminal does: between marks, its lines ended by carriage returns."""
        self.send("\x1b[200~" + text.replace("\n", "\r") + "\x1b[201~")

    def line(self, text, limit=LIMIT_S):
        """Enters a line; what it printed until the next prompt."""
        self.raw = b""
        self.send(text + "\r")
        self.wait(lambda: LINE_BEGINS in self.raw, "the end of the line", limit)
        return self.wait_prompt(limit)

    def finish(self, keys="\x04"):
        """Ctrl-D (or other keys); what was shown after them, and the exit status."""
        self.raw = b""
        self.send(keys)
        end = time.time() + LIMIT_S
        while self.read(1) or not self.over():
            if time.time() > end:
                self.close()
                raise AssertionError(f"it does not end; the terminal shows {self.text()!r}")
        os.close(self.file)
        self.file = None
        return self.text(), self.status

    def resident_kb(self):
        for row in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if row.startswith("VmRSS"):
                return int(row.split()[1])

    def close(self):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.status = -9
        if self.file is not None:
            os.close(self.file)
            self.file = None
