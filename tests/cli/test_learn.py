"""Training seen from outside: the progress bar on a terminal, Ctrl-C, quiet."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
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
    def bar(self, columns, wanted):
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([TL, "-e", PROGRAM % (50000000, 25000000)], stderr=theirs,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        os.close(theirs)
        shown = read_until(ours, wanted)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        os.close(ours)
        self.assertEqual(process.returncode, 130)
        return shown

    def test_terminal_gets_a_bar(self):
        self.assertRegex(self.bar(120, "left"),
                         r"\[#*\.+\] epoch \d+/50000000  loss [\d.]+  grad norm [\d.]+  "
                         r"lr 1e-06  \d+(\.\d)? epochs/s  [\d:]+ left")

    def test_bar_stays_in_its_row(self):
        for columns in (30, 60, 90):
            lines = self.bar(columns, "epoch 1/50000000").split("\r\x1b[K")
            self.assertIn("epoch 1/50000000", lines[1])
            self.assertLess(len(lines[1]), columns)

    def test_no_bar_elsewhere(self):
        result = run_code(PROGRAM % (20, 10))
        self.assertEqual(result.err, "")
        self.assertRegex(result.out, r"^epoch 10/20  loss .*\nepoch 20/20  loss .*\ntrained 1 "
                                     r"parameter \(64 values\) in 20 epochs: loss .* -> .*\n$")

    def test_lines_come_as_they_are_made(self):
        process = subprocess.Popen([TL, "-e", PROGRAM % (50000000, 1)], stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL)
        first = process.stdout.read(20)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(first, b"epoch        1/50000")

    def test_quiet(self):
        result = run_code(PROGRAM % (20, 10), options=["--quiet"])
        self.assertEqual((result.out, result.err), ("", ""))


class Refusal(unittest.TestCase):
    def test_step_without_memory_moves_nothing(self):
        refused = 0
        for megabytes in range(9, 20, 2):
            result = run_code("""
                tensor a: float32[4] learnable = ones([4])
                tensor b: float32[1000000] learnable = ones([1000000])
                try {
                    learn { objective: sum(a * a) + sum(b), optimizer: adam(lr: 0.1), epochs: 1 }
                } catch e { print(e.kind, a) }
            """, env={"TL_DEVICE_MEMORY_MB": str(megabytes)}, options=["--quiet"])
            self.assertIn(result.out, ("", "memory [1. 1. 1. 1.]\n"))
            refused += result.out != ""
        self.assertGreater(refused, 2)


if __name__ == "__main__":
    unittest.main()
