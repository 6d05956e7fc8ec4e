"""A client of the Language Server Protocol that talks to `tl lsp` over its pipes."""
import json
import os
import subprocess

from tl import ROOT, TL


class Failure(Exception):
    def __init__(self, error):
        super().__init__(error["message"])
        self.code = error["code"]


def frame(message):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


class Client:
    """Each request waits for its answer; notifications that come before it are kept."""

    def __init__(self, initialize=True):
        self.process = subprocess.Popen([TL, "lsp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"})
        self.count, self.notifications = 0, []
        if initialize:
            self.capabilities = self.request("initialize", capabilities={})["capabilities"]
            self.notify("initialized")

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self):
        length = 0
        while (line := self.process.stdout.readline()) != b"\r\n":
            if not line:
                raise EOFError(self.process.stderr.read().decode())
            name, value = line.split(b":")
            if name.lower() == b"content-length":
                length = int(value)
        return json.loads(self.process.stdout.read(length))

    def notify(self, method, **params):
        self.write(frame({"jsonrpc": "2.0", "method": method, "params": params}))

    def request(self, method, **params):
        self.count += 1
        self.write(frame({"jsonrpc": "2.0", "id": self.count, "method": method, "params": params}))
        return self.answer(self.count)

    def answer(self, number):
        while True:
            message = self.read()
            if "method" in message:
                self.notifications.append(message)
            elif message["id"] == number:
                if "error" in message:
                    raise Failure(message["error"])
                return message["result"]

    def open(self, text, uri="file:///nowhere/program.tl"):
        """Opens a text and returns the diagnostics that are published for it."""
        self.uri, self.text = uri, text
        self.notify("textDocument/didOpen", textDocument={"uri": uri, "languageId": "tl", "version": 1, "text": text})
        return self.diagnostics()

    def diagnostics(self):
        message = self.notifications.pop(0) if self.notifications else self.read()
        assert message["method"] == "textDocument/publishDiagnostics", message
        return message["params"]["diagnostics"]

    def change(self, text, start=None, end=None):
        change = {"text": text}
        if start:
            change["range"] = {"start": position(*start), "end": position(*(end or start))}
        self.notify("textDocument/didChange", textDocument={"uri": self.uri, "version": 2}, contentChanges=[change])
        return self.diagnostics()

    def at(self, method, line, character, **params):
        return self.request("textDocument/" + method, textDocument={"uri": self.uri},
                            position=position(line, character), **params)

    def whole(self, method, **params):
        return self.request("textDocument/" + method, textDocument={"uri": self.uri}, **params)

    def close(self):
        """Ends the connection as the protocol says; returns the exit status."""
        self.request("shutdown")
        self.notify("exit")
        return self.wait()

    def wait(self):
        self.process.stdin.close()
        status = self.process.wait(timeout=20)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


def position(line, character):
    return {"line": line, "character": character}


def places(ranges):
    """(line, character, end character) of each range or location."""
    found = []
    for item in ranges:
        range_ = item.get("range", item)
        found.append((range_["start"]["line"], range_["start"]["character"], range_["end"]["character"]))
    return found
