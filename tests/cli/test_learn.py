"""Training seen from outside: the progress bar on a terminal, Ctrl-C, quiet."""
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from tl import TL, run_code

PROGRAM = """
tensor w: float32[64] learnable = ones([64])
main {
    learn {
        objective: sum(w * w), optimizer: sgd(lr: 0.000001), epochs: %d, report_every: %d
    }
}
"""


def read_until(descriptor, wanted, seconds=30):
    """What comes from the terminal until it has that text, or the end."""
    text, end = "", time.monotonic() + seconds
    while wanted not in text and select.select([descriptor], [], [], end - time.monotonic())[0]:
        try:
            piece = os.read(descriptor, 4096)
        except OSError:
            break
        text += piece.decode()
    return text


class Progress(unittest.TestCase):
    def test_terminal_gets_a_bar(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([TL, "-e", PROGRAM % (50000000, 25000000)], stderr=theirs,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        os.close(theirs)
        shown = read_until(ours, "left")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        os.close(ours)
        self.assertRegex(shown, r"\[#*\.+\] epoch \d+/50000000  loss [\d.]+  grad norm [\d.]+  "
                                r"lr 1e-06  \d+(\.\d)? epochs/s  [\d:]+ left")
        self.assertEqual(process.returncode, 130)

    def test_no_bar_elsewhere(self):
        result = run_code(PROGRAM % (20, 10))
        self.assertEqual(result.err, "")
        self.assertRegex(result.out, r"^epoch 10/20  loss .*\nepoch 20/20  loss .*\ntrained 1 "
                                     r"parameter \(64 values\) in 20 epochs: loss .* -> .*\n$")

    def test_quiet(self):
        result = run_code(PROGRAM % (20, 10), options=["--quiet"])
        self.assertEqual((result.out, result.err), ("", ""))


if __name__ == "__main__":
    unittest.main()
