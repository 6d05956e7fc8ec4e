"""Training seen from outside: the progress bar on a terminal, Ctrl-C, quiet."""
import fcntl
import os
import pty
import random
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

from html.parser import HTMLParser
from pathlib import Path

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

    def test_a_frozen_parameter_is_reached(self):
        result = run_code("""
            let body = learnable(ones([2, 2])); let head = learnable(ones([2, 1]))
            let small = sgd(lr: 0.01)
            learn { objective: mean(head ** 2), optimizer: small, epochs: 1, progress: false }
            learn { objective: mean((body @ head) ** 2), optimizer: small, epochs: 1, freeze: [body], progress: false }
        """)
        self.assertEqual((result.status, result.err), (0, ""))


SAVED = """
import "std/layers.tl"
let path = env("RUN", "")
seed(5)
let x = randn([200, 8])
let y = sum(x * x, 1, true)
struct Net { a: float32[8, 16] learnable, b: float32[16, 1] learnable, norm: BatchNorm, name: string }
let net = Net { a: randn([8, 16]) * 0.2, b: randn([16, 1]) * 0.2, norm: BatchNorm::new(16), name: "n" }
fn forward(x) { net.norm.forward(x @ net.a) }
let r = learn {
    objective: mean((dropout(tanh(forward(x))) @ net.b - y) ** 2),
    optimizer: adam(lr: 0.01), epochs: EPOCHS, batch: 16 of (x, y), shuffle: true, dropout: 0.1,
    scheduler: warmup_cosine(), schedule_per: "step", accumulate: 2, ema: 0.99, patience: 5000,
    validate: mean((tanh(forward(x)) @ net.b - y) ** 2), clip_grad_norm: 5.0, progress: false,
    SETTINGS
}
print(r.stopped, r.epochs, r.best_epoch, r.losses, r.validations, r.rates, net.a.to_list(), net.b.to_list(), net.norm)
"""


class Resume(unittest.TestCase):
    def program(self, epochs, settings):
        return SAVED.replace("EPOCHS", str(epochs)).replace("SETTINGS", settings)

    def interrupted(self, ending, chance):
        """A run that is interrupted at moments of chance and resumed until it ends: what it prints, how often."""
        interrupts = 0
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run." + ending)
            code = self.program(600, "save: path, resume: path, every: 7")
            while True:
                process = subprocess.Popen([TL, "-e", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                           env={**os.environ, "RUN": path})
                # Python may need longer than the run: then it has simply ended.
                time.sleep(chance.uniform(0.01, 0.12))
                process.send_signal(signal.SIGINT)
                out, err = process.communicate(timeout=60)
                if process.returncode == 0:
                    break
                # On a busy machine it may come before the program listens to it: then the signal itself ends it.
                self.assertIn(process.returncode, (130, -signal.SIGINT), err)
                interrupts += 1
                self.assertLess(interrupts, 1000)
        return out.decode(), interrupts

    def test_interrupted_and_resumed(self):
        whole = run_code(self.program(600, ""))
        self.assertEqual(whole.status, 0, whole.err)
        chance = random.Random(7)
        for ending in ("safetensors", "npz", "gguf"):
            out, interrupts = self.interrupted(ending, chance)
            self.assertEqual(out, whole.out, f"{ending}, {interrupts} interrupts")

    def test_each_step_is_a_place_to_go_on(self):
        # The block ends by itself after each number of epochs: no clock decides.
        whole = run_code(self.program(6, ""))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.safetensors")
            for epochs in (1, 2, 4, 6):
                code = self.program(epochs, "save: path, resume: path").replace(
                    "warmup_cosine()", "warmup_cosine(t_max: 78, warmup: 7)")
                part = run_code(code, env={"RUN": path})
                self.assertEqual(part.status, 0, part.err)
        steps = run_code(self.program(6, "").replace("warmup_cosine()", "warmup_cosine(t_max: 78, warmup: 7)"))
        self.assertEqual(part.out.split("[[")[0], steps.out.split("[[")[0])
        self.assertNotEqual(whole.out, "")

    def test_what_the_file_holds(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.npz")
            run_code(self.program(2, "save: path"), env={"RUN": path})
            result = run_code(f"""
                struct Net {{ a: float32[8, 16] learnable, b: float32[16, 1] learnable, name: string }}
                let net = Net {{ a: zeros([8, 16]), b: zeros([16, 1]), name: "" }}
                load_model("{path}", into: {{"net": net}})
                print(any(net.a != 0.0), net.name)
                for name in sorted(keys(load("{path}"))) {{ if "norm." not in name {{ print(name) }} }}
            """)
        self.assertEqual(result.out.split(), """true n
            learn.average.net.a learn.average.net.b learn.best.net.a learn.best.net.b learn.counts learn.losses
            learn.norms learn.numbers learn.optimizer.state.net.a learn.optimizer.state.net.b
            learn.optimizer.steps.net.a learn.optimizer.steps.net.b learn.rates learn.scheduler learn.validations net.a net.b
            """.split(), result.err)

    def test_mistakes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.npz")

            def said(code):
                return run_code(code.replace("PATH", path)).err.splitlines()[0]
            head = 'let w = learnable([1.0, 2.0])\nlet x = ones([5, 2])\n'
            block = ("learn { objective: sum(w * x), optimizer: OPTIMIZER, epochs: 3, batch: SIZE of x, progress: false, "
                     "SETTINGS }")

            def learn(optimizer, size, settings):
                return head + block.replace("OPTIMIZER", optimizer).replace("SIZE", str(size)).replace("SETTINGS", settings)
            self.assertIn("cannot open", said(learn("adam()", 2, 'resume: "PATH"')))
            self.assertIn("the names of files of tensors end in", said(learn("adam()", 2, 'save: "run.txt"')))
            self.assertIn("a .npy file holds one tensor, without a name", said(learn("adam()", 2, 'save: "run.npy"')))
            run_code(learn("adam()", 2, 'save: "PATH"').replace("PATH", path))
            self.assertIn("`learn.optimizer` was adam and cannot become sgd", said(learn("sgd()", 2, 'resume: "PATH"')))
            self.assertIn("has no state of an optimizer or scheduler `learn.scheduler`",
                          said(learn("adam()", 2, 'scheduler: linear(), resume: "PATH"')))
            self.assertIn("is float32[2], not float32[3]",
                          said(learn("adam()", 2, 'resume: "PATH"').replace("[1.0, 2.0]", "[1.0, 2.0, 3.0]").replace("[5, 2]", "[5, 3]")))
            self.assertIn("which is not among what is loaded",
                          said(learn("adam()", 2, 'resume: "PATH"').replace("w", "v")))
            self.assertIn("save: a parameter float32[2] that is trained is in no variable that the block sees",
                          said("fn make() { let w = learnable([1.0, 2.0]); fn() { sum(w) } }\nlet f = make()\n"
                               'learn { objective: f(), optimizer: sgd(), epochs: 1, save: "PATH" }'))
            tampered = ('let f = load("PATH")\nf["KEY"] = VALUE\nsave_model(f, "PATH", meta: {"learn.optimizer": "adam", '
                        '"learn.optimizer.lr": "0.001", "learn.trained": "w"})')
            for key, value, expected in [
                    ("learn.counts", "ones([12])", "run.npz: `learn.counts` is float32[12], which no learn block has written"),
                    ("learn.numbers", "ones([3])", "run.npz: `learn.numbers` is float32[3], which no learn block has written"),
                    ("learn.best.w", "ones([3])", "run.npz: `learn.best.w` is float32[3], which no learn block has written"),
                    ("learn.counts", "[1, 1, 1, 2, 5, 3, 0, 0, 0, 0, 0, 0]",
                     "run.npz stopped within an epoch of 5 rows, 3 at a time; here they are 5, 2 at a time")]:
                with self.subTest(key):
                    run_code(learn("adam()", 2, 'save: "PATH"').replace("PATH", path))
                    made = run_code(tampered.replace("KEY", key).replace("VALUE", value).replace("PATH", path))
                    self.assertEqual(made.status, 0, made.err)
                    self.assertIn(expected, said(learn("adam()", 2, 'resume: "PATH"')))


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


class Recorded(unittest.TestCase):
    def test_what_else_is_recorded_takes_no_time(self):
        # The sum of parameters that were trained keeps what each of them was made of.
        result = run_code("""
            fn fit(target) {
                let w = learnable([0.0])
                learn { objective: sum((w - target) ** 2), optimizer: sgd(lr: 0.5), epochs: 2, progress: false }
                w[0]
            }
            let total = 0.0
            for i in 0..30000 { total = total + fit(1.0) }
            print(total)
        """)
        self.assertEqual((result.out, result.err), ("30000.0\n", ""))

    def test_what_is_not_reached_takes_no_time(self):
        result = run_code("""
            let others = [learnable([1.0]) for i in 0..20000]
            let w = learnable([1.0])
            for i in 0..200 { learn { objective: sum(w ** 2), optimizer: sgd(lr: 0.5), epochs: 1, progress: false } }
            let r = learn { objective: sum(concat(others[100:], 0) ** 2), optimizer: sgd(lr: 0.5), epochs: 1, progress: false }
            print(w)
        """)
        self.assertEqual((result.out, result.err),
                         ("[0.]\n", "note: no objective reaches 100 parameters of program.tl:2: they stay as they are\n"))


class Page(HTMLParser):
    """Every element is closed; the rows of the table, how many curves, and what would be loaded from elsewhere."""
    ALONE = {"meta", "rect", "polyline", "circle", "polygon", "line", "path"}

    def __init__(self, text):
        super().__init__()
        self.open, self.words, self.curves, self.refresh, self.outside = [], [], 0, None, []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.curves += tag == "polyline" and given.get("stroke-width") == "1.8"
        self.refresh = given["content"] if given.get("http-equiv") == "refresh" else self.refresh
        self.outside += [given[name] for name in ("src", "href") if name in given]
        if tag == "script":
            self.outside.append(tag)
        if tag not in self.ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.ALONE:
            assert self.open.pop() == tag, tag

    def handle_data(self, data):
        if data.strip():
            self.words.append(data.strip())


class Watch(unittest.TestCase):
    BLOCK = """
        let x = [[1.0], [2.0]]
        tensor w: float32[1, 1] learnable = [[0.5]]
        let r = learn {
            objective: mean((x @ w - 3.0 * x) ** 2), optimizer: sgd(lr: 0.05), epochs: EPOCHS, watch: PATH, OTHERS
        }
    """

    def block(self, path, epochs=5, others="progress: false"):
        return self.BLOCK.replace("EPOCHS", str(epochs)).replace("PATH", f'"{path}"').replace("OTHERS", others)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "run.html"

    def test_page_at_the_end(self):
        result = run_code(self.block(self.path, others="scheduler: cosine(), validate: sum(w)") + "print(r.losses[4])")
        page = Page(self.path.read_text())
        self.assertEqual((page.curves, page.refresh, page.outside), (3, None, []))
        self.assertIn("5 of 5", page.words)
        self.assertIn("ended: epochs", page.words)
        for words in ("loss", "validation", "best", "gradient norm", "learning rate", "seconds"):
            self.assertIn(words, page.words)
        self.assertIn(f"{float(result.out.split()[-1]):.6f}", page.words)
        self.assertEqual(list(self.path.parent.iterdir()), [self.path])

    def test_epochs_count_from_1(self):
        run_code(self.block(self.path))
        self.assertEqual(" ".join(Page(self.path.read_text()).words).count(" 1 2 3 4 5 "), 2)

    def test_page_while_it_runs(self):
        process = subprocess.Popen([TL, "-e", self.block(self.path, 500000000)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        self.addCleanup(process.kill)
        until = time.monotonic() + 60
        seen = set()
        while len(seen) < 3 and time.monotonic() < until:
            if self.path.exists():
                page = Page(self.path.read_text())  # whole, whenever it is read
                self.assertEqual(page.refresh, "1")
                self.assertIn("running", page.words)
                seen.add(page.words[page.words.index("epoch") + 1])
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(30), 130)
        self.assertEqual(len(seen), 3)
        page = Page(self.path.read_text())
        self.assertIsNone(page.refresh)
        self.assertIn("ended: interrupt", page.words)

    def test_page_in_a_browser(self):
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("chromium is not installed")
        result = run_code(self.block(self.path, 30, "progress: false, validate: sum(w)"))
        self.assertEqual(result.status, 0, result.err)
        # What the browser draws is written into the page's title, which the dump shows: of each curve
        # whether it is as wide as its picture and not flat, and the address of whatever was loaded.
        script = """<script>
addEventListener("load", () => {
    const told = [...document.querySelectorAll("polyline")].filter(line => line.points.numberOfItems > 10).map(line => {
        const [own, all] = [line.getBoundingClientRect(), line.closest("svg").getBoundingClientRect()];
        return own.width > 0.7 * all.width && own.left >= all.left && own.right <= all.right
            && own.top >= all.top && own.bottom <= all.bottom ? "inside" : "outside";
    });
    const loaded = performance.getEntriesByType("resource").map(entry => entry.name);
    document.title = ["told", ...told, "loaded", ...loaded].join(" ");
});
</script></head>"""
        text = self.path.read_text()
        self.assertIn("</head>", text)
        self.path.write_text(text.replace("</head>", script, 1))
        dump = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu",
                               f"--user-data-dir={self.path.parent}/browser", "--dump-dom", f"file://{self.path}"],
                              capture_output=True, text=True, timeout=240).stdout
        title = re.search(r"<title>(.*?)</title>", dump)[1].split()
        self.assertEqual(title[0], "told", title)
        self.assertGreaterEqual(title.count("inside"), 3, title)
        self.assertNotIn("outside", title)
        self.assertEqual(title[-1], "loaded", title)

    def test_page_of_a_failure(self):
        result = run_code(self.block(self.path).replace("(x @ w - 3.0 * x) ** 2", "log(w - 0.6 * epoch)"))
        self.assertIn("the loss became nan in epoch 2", result.err)
        self.assertIn("ended: error", Page(self.path.read_text()).words)

    def test_no_page(self):
        result = run_code(self.block("/nowhere/run.html"))
        self.assertEqual(result.status, 1)
        self.assertIn("error[io]: ", result.err)
        self.assertIn("/nowhere/run.html", result.err)
        result = run_code(self.block(self.path).replace(f'"{self.path}"', "5"))
        self.assertIn("error[type]: watch must be a string, but it is 5", result.err)

    def test_rates(self):
        # The rate of an epoch is that of its last step, also where the schedule moves with each step.
        result = run_code("""
            let x = [[1.0], [2.0], [3.0], [4.0]]
            tensor w: float32[1, 1] learnable = [[0.5]]
            let r = learn {
                objective: sum(x @ w), optimizer: sgd(lr: 1.0), epochs: 2, batch: 2 of x, scheduler: linear(),
                schedule_per: "step", report_every: 1
            }
            print(r.rates)
        """)
        self.assertRegex(result.out, r"(?s)lr 0\.750000.*lr 0\.250000.*\[0\.75, 0\.25\]")

    def test_plot(self):
        result = run_code(self.block(self.path, others="progress: false, validate: sum(w)") + f"""
            plot(r, height: 12)
            plot(r, "{self.path.parent / 'curves.svg'}", title: "curves")
        """)
        # The rate has a chart of its own below: next to losses it would be a line at 0.
        lines = result.out.splitlines()
        self.assertRegex(result.out, r"(?s)\* loss   \+ validation\n.* rate$")
        self.assertEqual([line.strip() for line in lines].count("epoch"), 2)
        self.assertEqual(sum(" ┤" in line or " │" in line for line in lines), 12 + 6, result.out)
        svg = (self.path.parent / "curves.svg").read_text()
        self.assertEqual(Page(svg).curves, 3)
        heights = [float(y) for y in re.findall(r'y="([0-9.]+)" [^>]*>epoch<', svg)]
        self.assertEqual(heights, [324, 490])
        result = run_code(self.block(self.path) + "plot(r)")
        self.assertRegex(result.out, r"(?s)⣿ loss\n.*⣿ rate$")


def interrupt(wanted):
    """`test_learn.py --interrupts 100`: runs that together are interrupted that often, each compared."""
    test, chance, total, runs = Resume(), random.Random(), 0, 0
    whole = run_code(test.program(600, ""))
    test.assertEqual(whole.status, 0, whole.err)
    while total < wanted:
        out, interrupts = test.interrupted(("safetensors", "npz", "gguf")[runs % 3], chance)
        test.assertEqual(out, whole.out)
        total, runs = total + interrupts, runs + 1
    print(f"{total} interrupts in {runs} runs: the bits of the unbroken one")


if __name__ == "__main__":
    if "--interrupts" in sys.argv:
        interrupt(int(sys.argv[-1]))
    else:
        unittest.main()
