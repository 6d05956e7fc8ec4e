"""Charts: in the terminal to the character, pictures by their size, their pixels and their words."""
import os
import pty
import re
import struct
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
import zlib
from pathlib import Path

from tl import TL, run, run_code


def png_pixels(data):
    """Width, height and rows of (red, green, blue) of a PNG of 8 bits a channel, without interlacing."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, head = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        chunk = data[at + 8:at + 8 + length]
        assert zlib.crc32(kind + chunk) == struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0]
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", chunk)
        if kind == b"IDAT":
            body += chunk
        at += 12 + length
    width, height, depth, colour, _, _, interlace = head
    assert (depth, colour, interlace) == (8, 2, 0), head
    raw, rows, before = zlib.decompress(body), [], bytes(3 * width)
    for y in range(height):
        kind, line = raw[y * (3 * width + 1)], bytearray(raw[y * (3 * width + 1) + 1:(y + 1) * (3 * width + 1)])
        for i in range(len(line)):
            left, up, corner = (line[i - 3] if i >= 3 else 0), before[i], (before[i - 3] if i >= 3 else 0)
            guess = left + up - corner
            nearest = min((left, up, corner), key=lambda v: abs(guess - v))
            line[i] = (line[i] + (0, left, up, (left + up) // 2, nearest)[kind]) & 255
        rows.append([tuple(line[3 * x:3 * x + 3]) for x in range(width)])
        before = line
    return width, height, rows


BLUE, RED, WHITE = (0, 114, 178), (213, 94, 0), (255, 255, 255)


def colours(rows):
    return {pixel for line in rows for pixel in line}


def draw(code, name):
    with tempfile.TemporaryDirectory() as folder:
        result = run("--memory-check=strict", "-e", code, cwd=folder)
        assert (result.status, result.out) == (0, ""), result.err
        assert os.listdir(folder) == [name], os.listdir(folder)
        return Path(folder, name).read_bytes()


class Terminal(unittest.TestCase):
    def expect(self, code, *lines):
        result = run("-e", code)
        self.assertEqual((result.out.splitlines(), result.status), (list(lines), 0), result.err)

    def test_line(self):
        self.expect('plot([1, 2, 3], width: 24, height: 4, title: "up", x_label: "step", y_label: "value")',
                    "           up",
                    "value",
                    "3 ┤               ⢀⣀⠤⠔⠒⠉",
                    "2 ┤          ⣀⡠⠤⠒⠊⠁",
                    "  │     ⣀⠤⠔⠒⠉",
                    "1 ┤⣀⠤⠒⠊⠉",
                    "  └┬─────────┬─────────┬",
                    "   0         1         2",
                    "           step")

    def test_several_series(self):
        lines = ["3 ┤++++++         ******",
                 "2 ┤     +++++++****",
                 "  │     ***** ++++++",
                 "1 ┤*****           +++++",
                 "  └┬─────────┬─────────┬",
                 "   0         1         2"]
        legend = "   * a   + b"
        for code in ('plot({"a": [1, 2, 3], "b": [3, 2, 1]}, ', 'plot(list([1, 2, 3], [3, 2, 1]), labels: ["a", "b"], ',
                     'plot([[1, 2, 3], [3, 2, 1]], labels: ["a", "b"], '):
            self.expect(code + "width: 24, height: 4)", *lines, legend)
        self.expect("plot([[1, 2, 3], [3, 2, 1]], width: 24, height: 4)", *lines)

    def test_legend_takes_more_lines(self):
        result = run("-e", 'let d = {}\nfor i in range(16) { d["series " + str(i)] = [i] }\nplot(d, width: 40)')
        self.assertEqual(result.out.splitlines()[-7:-5], ["    * series 0   + series 1   o series 2",
                                                          "    x series 3   # series 4   @ series 5"], result.out)

    def test_scatter_with_logarithms(self):
        self.expect('plot([1, 10, 100, 1000], [1, 2, 3, 4], kind: "scatter", log_x: true, width: 40, height: 5)',
                    "4 ┤                                    ⠁",
                    "3 ┤                        ⠄",
                    "  │",
                    "2 ┤            ⠐",
                    "1 ┤⢀",
                    "  └┬───────────┬───────────┬───────────┬",
                    "   1          10          100       1000")

    def test_histogram(self):
        self.expect('plot([1, 2, 2, 3, 3, 3, 4, 4.5], kind: "histogram", bins: 3, width: 30)',
                    "1.0 .. 2.2 │████████████████ 3",
                    "2.2 .. 3.3 │████████████████ 3",
                    "3.3 .. 4.5 │██████████▋ 2")
        self.expect('plot([5, 5], kind: "histogram", width: 30)',
                    "2.5 .. 5.0 │0",
                    "5.0 .. 7.5 │████████████████ 2")

    def test_heatmap(self):
        self.expect('plot([[0, 1, 2], [3, 4, 5]], kind: "heatmap", title: "six")',
                    " " * 38 + "six",
                    "0 ┤  ░░▒▒│",
                    "1 ┤▓▓████│",
                    "  └─┬─┬─┬",
                    "    0 1 2",
                    "   0.00   ░░▒▒▓▓██ 5.00")
        result = run("-e", 'plot(outer(arange(100), arange(500)), kind: "heatmap", width: 60)')
        lines = result.out.splitlines()
        self.assertEqual((len(lines), max(map(len, lines))), (24 + 3, 59))

    def test_what_is_not_finite(self):
        self.expect('plot(list(1, float("nan"), 2, float("inf"), 3, 3), width: 24, height: 4)',
                    "3 ┤                ⠈⠉⠉⠉⠉",
                    "2 ┤        ⡀",
                    "  │",
                    "1 ┤⡀",
                    "  └┬───────┬───────┬────",
                    "   0       2       4",
                    "2 values not shown: not finite")
        self.expect('plot([[float("nan"), 1.0]], kind: "heatmap")',
                    "0 ┤??▒▒│", "  └─┬─┬", "    0 1", "   0.50   ░░▒▒▓▓██ 1.50", "1 value not shown: not finite")
        result = run("-e", "plot([0, 1, 2], log_y: true)")
        self.assertEqual(result.out.splitlines()[-1], "1 value not shown: not finite or not above 0")

    def test_one_value_and_equal_ones(self):
        self.expect("plot(7, width: 24, height: 4)",
                    "10 ┤", " 8 ┤          ⡀", " 6 ┤", " 4 ┤", "   └┬─────────┬────────┬", "   -1         0        1")
        self.expect("plot([3, 3], width: 24, height: 4)",
                    "4 ┤", "3 ┤⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀", "  │", "2 ┤", "  └┬───────────────────┬", "   0                   1")

    def test_width_of_the_terminal(self):
        lines = run("-e", "plot(range(100))").out.splitlines()
        self.assertEqual(len(lines[-2]), 80)  # a pipe
        self.assertEqual(len(lines), 16 + 2)

    def on_terminal(self, code, **env):
        controller, terminal = pty.openpty()
        import fcntl
        import termios
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        process = subprocess.Popen([TL, "-e", code], stdout=terminal, stdin=terminal, env={**environment, **env})
        os.close(terminal)
        out = b""
        try:
            while part := os.read(controller, 4096):
                out += part
        except OSError:
            pass
        self.assertEqual(process.wait(), 0)
        os.close(controller)
        return out.decode().replace("\r\n", "\n")

    def test_colour_on_a_terminal_only(self):
        code = 'plot({"a": [1, 2], "b": [2, 1]}, height: 4)\nplot([[1, 2]], kind: "heatmap")'
        coloured = self.on_terminal(code)
        self.assertIn("\x1b[94m⣿\x1b[0m a   \x1b[91m⣿\x1b[0m b\n", coloured)
        self.assertIn("\x1b[48;2;68;1;84m  \x1b[0m\x1b[48;2;253;231;37m  \x1b[0m", coloured)
        plain = self.on_terminal(code, NO_COLOR="1")
        self.assertNotIn("\x1b", plain)
        self.assertEqual(max(map(len, plain.splitlines())), 50)
        self.assertNotIn("\x1b", run("-e", code, env={"NO_COLOR": ""}).out)


class Pictures(unittest.TestCase):
    def test_line(self):
        width, height, rows = png_pixels(draw('plot([0, 1], "a.png", width: 300, height: 200)', "a.png"))
        self.assertEqual((width, height, len(rows[0])), (300, 200, 300))
        self.assertEqual(rows[0][0], WHITE)
        self.assertIn(BLUE, colours(rows))
        self.assertNotIn(RED, colours(rows))
        blue = [(x, y) for y, line in enumerate(rows) for x, pixel in enumerate(line) if pixel == BLUE]
        # From the lower left to the upper right, and nowhere else.
        self.assertLess(min(blue)[0], 60)
        self.assertGreater(max(blue)[0], 260)
        self.assertGreater(min(blue)[1], 140)
        self.assertLess(max(blue)[1], 40)

    def test_usual_size_and_legend(self):
        width, height, rows = png_pixels(draw('plot({"a": [0, 1], "b": [1, 0]}, "a.png", title: "x")', "a.png"))
        self.assertEqual((width, height), (800, 500))
        self.assertLessEqual({BLUE, RED}, colours(line[740:] for line in rows))

    def test_histogram(self):
        _, _, rows = png_pixels(draw('plot([1, 1, 1, 2], "a.png", kind: "histogram", bins: 2, width: 400, height: 300)',
                                     "a.png"))
        left, right = ([line[x] for line in rows].count(BLUE) for x in (120, 300))
        self.assertGreater(left, 200)
        self.assertAlmostEqual(left / right, 3, delta=0.1)

    def test_heatmap(self):
        code = 'plot([[0.0, 1.0], [float("nan"), 0.5]], "a.png", kind: "heatmap", width: 400, height: 300)'
        _, _, rows = png_pixels(draw(code, "a.png"))
        self.assertEqual([rows[80][100], rows[80][250], rows[220][100], rows[220][250]],
                         [(68, 1, 84), (253, 231, 37), WHITE, (33, 144, 141)])

    def test_svg(self):
        code = """plot({"träin & test": [1, 2, 3], "<b>": [3, 2, 1]}, "a.svg", title: "loss\\nof 'x'", x_label: "epoch",
                      y_label: "nats", width: 400, height: 300)"""
        data = draw(code, "a.svg")
        root = xml.fromstring(data)
        name = "{http://www.w3.org/2000/svg}"
        self.assertEqual((root.tag, root.get("width"), root.get("height")), (name + "svg", "400", "300"))
        words = [text.text for text in root.iter(name + "text")]
        self.assertEqual(words, ["0", "1", "2", "1.0", "1.5", "2.0", "2.5", "3.0", "träin & test", "<b>", "loss of 'x'",
                                 "epoch", "nats"])
        curves = [line for line in root.iter(name + "polyline") if line.get("stroke") in ("#0072b2", "#d55e00")]
        self.assertEqual([len(line.get("points").split()) for line in curves], [3, 3])
        points = [tuple(map(float, point.split(","))) for point in curves[0].get("points").split()]
        self.assertAlmostEqual(points[1][0], (points[0][0] + points[2][0]) / 2, delta=0.02)
        self.assertAlmostEqual(points[1][1], (points[0][1] + points[2][1]) / 2, delta=0.02)
        self.assertEqual(draw(code, "a.svg"), data)

    def test_the_smallest_with_all_its_words_has_an_area(self):
        code = """plot([[1.0, 2.0], [float("nan"), 4.0]], "a.svg", kind: "heatmap", title: "t", x_label: "x", height: 100)"""
        root = xml.fromstring(draw(code, "a.svg"))
        heights = [float(box.get("height")) for box in root.iter("{http://www.w3.org/2000/svg}rect")]
        self.assertEqual(len(heights), 1 + 3 + 64)  # the ground, the numbers, the scale
        self.assertGreater(min(heights), 0)

    def test_svg_scatter(self):
        root = xml.fromstring(draw('plot([1, 2, 3], [4, 5, 6], "a.svg", kind: "scatter")', "a.svg"))
        self.assertEqual(len(list(root.iter("{http://www.w3.org/2000/svg}circle"))), 3)

    def test_many_points_make_a_small_file(self):
        data = draw('seed(1)\nplot(randn([300000]), "a.svg")', "a.svg")
        self.assertLess(len(data), 100000)
        points = re.search(rb'stroke="#0072b2"[^>]*points="([^"]*)"', data)[1].decode().split()
        heights = [float(point.split(",")[1]) for point in points]
        self.assertLess(max(heights) - min(heights), 500)
        self.assertGreater(max(heights) - min(heights), 400)  # the extremes are kept


class Errors(unittest.TestCase):
    def test_errors(self):
        for code, expected in [
            ("plot([])", "error[value]: there is nothing to plot: there are no values"),
            ('plot([], "a.png")', "error[value]: there is nothing to plot: there are no values"),
            ('plot(list(float("nan"), float("inf")))', "none of the 2 values is finite"),
            ("plot([-1, 0], log_y: true)", "none of the 2 values is finite and above 0"),
            ("plot(ones([2, 2, 2]))", "error[shape]: a plot of lines or points shows values of 1 or 2 dimensions, not 3"),
            ('plot([1, 2], kind: "heatmap")', "error[shape]: a heatmap shows a matrix, not values of 1 dimension"),
            ('plot([1, 2], kind: "pie")', 'kind is "line", "scatter", "histogram" or "heatmap", not "pie"'),
            ('plot([1, 2], "a.jpg")', "a.jpg: the names of pictures end in .png or .svg"),
            ('plot([1, 2], "a.png", width: 5)', "the width of a picture must be 100 to 10000 pixels, not 5"),
            ('plot([1, 2], "a.svg", height: 20000)', "the height of a picture must be 100 to 10000 pixels, not 20000"),
            ("plot([1, 2], width: 5)", "the width of a drawing must be 20 to 1000 characters, not 5"),
            ("plot([1, 2], height: -1)", "the height of a drawing must be 4 to 1000 characters, not -1"),
            ("plot([1, 2], [1, 2, 3])", "error[shape]: x has 2 values, but y has 3"),
            ("plot([[1, 2]], [1, 2])", "error[shape]: x has 1 dimension, not 2"),
            ('plot([1], [1], kind: "histogram")', "x and y are for lines and scatters"),
            ("plot([1, 2], bins: 3)", "bins are for histograms, not for a line"),
            ('plot([1, 2], kind: "histogram", bins: -3)', "bins must be 1 to 1000, not -3"),
            ('plot([1, 2], kind: "histogram", log_x: true)', "logarithmic axes are for lines and scatters, not for a histogram"),
            ('plot([1, 2], kind: "histogram", log_y: true)', "logarithmic axes are for lines and scatters, not for a histogram"),
            ("plot([1e308, -1e308])", "numbers from -1e+308 to 1e+308 do not fit on one axis"),
            ("plot(ones([17, 3]))", "a plot shows at most 16 series of values"),
            ('plot([1, 2], labels: ["a", "b"])', "there are 2 labels for 1 series of values"),
            ("plot([1, 2], labels: 3)", "labels must be a string, but it is 3"),
            ('plot("abc")', "error[type]: values must be a tensor"),
            ("plot({1: [2]})", "error[type]: a series' name must be a string, but it is 1"),
            ('plot([1, 2], "none/a.png")', "error[io]: cannot write none/a.png: No such file or directory"),
            ('plot([1, 2], "none/a.svg")', "error[io]: cannot write none/a.svg: No such file or directory"),
        ]:
            with self.subTest(code):
                result = run_code(code, options=["--memory-check=strict"])
                self.assertIn(expected, result.err.splitlines()[0])
                self.assertEqual((result.status, result.out), (1, ""))

    def test_missing_library(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "libcairo.so.2").write_text("not a library")
            result = run_code('plot([1, 2], "a.png")', env={"LD_LIBRARY_PATH": folder})
            self.assertIn("error[device]: .png pictures need the library libcairo.so.2, which cannot be loaded: ",
                          result.err)
            self.assertIn("help: on Debian and Ubuntu: apt install libcairo2", result.err)
            self.assertEqual(run_code('plot([1, 2], "a.svg")', env={"LD_LIBRARY_PATH": folder}).status, 0)


if __name__ == "__main__":
    unittest.main()
