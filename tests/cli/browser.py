"""A page in headless Chromium, told what to do through the pipe of its debugger."""
import json
import os
import subprocess
import time


class Browser:
    def __init__(self, program, folder):
        """`folder`: where it may keep what it likes."""
        their_input, self.input = os.pipe()
        self.output, their_output = os.pipe()
        command = ('exec "$0" --headless --no-sandbox --disable-gpu --remote-debugging-pipe "--user-data-dir=$1" about:blank '
                   f"3<&{their_input} 4>&{their_output}")
        self.process = subprocess.Popen(["bash", "-c", command, program, folder], pass_fds=(their_input, their_output),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(their_input)
        os.close(their_output)
        self.number, self.rest, self.session = 0, b"", None

    def ask(self, method, **parameters):
        """The result of a command; events that come before it are left aside."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        os.write(self.input, json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                piece = os.read(self.output, 65536)
                if not piece:
                    raise AssertionError(f"the browser ended before it answered {method}")
                self.rest += piece
            line, _, self.rest = self.rest.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, address):
        target = self.ask("Target.createTarget", url=address)["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        while self.run("location.href + document.readyState") != address + "complete":
            time.sleep(0.02)

    def run(self, script):
        """The value of an expression of the page, awaited where it is a promise."""
        answer = self.ask("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def close(self):
        os.close(self.input)
        os.close(self.output)
        self.process.wait(timeout=60)
