"""tl profile: what the page and the trace say of a program, and that it runs as it does without."""
import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import run

PROGRAM = """fn layer(x, w) {
    relu(x @ w)
}
let w = randn([64, 64])
let x = randn([32, 64])
let keep = list()
for i in 0..50 {
    x = layer(x, w) / 8.0 // </script>
    if i % 10 == 0 { keep.push(x + 1.0) }
}
let large = zeros([1000, 1000])
large = none
print(len(keep), args())
"""


class Profile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def profile(self, code, *words, options=()):
        (self.folder / "sub").mkdir(exist_ok=True)
        (self.folder / "sub" / "p.tl").write_text(code)
        return run("profile", *options, "sub/p.tl", *words, cwd=self.folder)

    def page(self):
        text = (self.folder / "p.profile.html").read_text()
        return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])

    def test_page(self):
        result = self.profile(PROGRAM, "a", options=("--memory-check=strict",))
        self.assertEqual((result.status, result.out), (0, '5 ["a"]\n'), result.err)
        self.assertIn("profile: p.profile.html, and p.trace.json for Perfetto", result.err)
        data = self.page()
        lines = [(line["file"], line["line"], line["text"]) for line in data["lines"]]
        found = {(lines[t[0]][1], lines[t[1]][1] if t[1] >= 0 else None, t[2]): t for t in data["totals"]}
        product = found[(2, 8, "matmul")]
        self.assertEqual((product[3:6], product[7:]), (["kernel", "matmul", 50], [50 * 4 * (2048 + 4096 + 2048), 50 * 2 * 32 * 64 * 64]))
        self.assertEqual(found[(2, 8, "relu")][5], 50)
        self.assertEqual(found[(9, None, "add")][5], 5)
        self.assertLess(sum(t[6] for t in data["totals"]), data["seconds"] * 1e9)
        self.assertEqual((data["name"], data["cut"]), ("sub/p.tl", False))
        self.assertIn(("sub/p.tl", 8, "x = layer(x, w) / 8.0 // </script>"), lines)
        # Memory: at the peak the large tensor and what the loop keeps are held by their lines.
        bands = [lines[band][1] for band in data["bands"]]
        peak = max(data["memory"], key=lambda moment: sum(moment[1:]))
        held = dict(zip(bands, peak[1:]))
        self.assertEqual((held[11], held[9], held[4]), (4000000, 5 * 32 * 64 * 4, 64 * 64 * 4))
        self.assertEqual(dict(zip(bands, data["memory"][-1][1:]))[11], 0)
        times = [moment[0] for moment in data["memory"]]
        self.assertEqual(times, sorted(times))
        self.assertLessEqual(times[-1], data["seconds"])

    def test_trace(self):
        self.profile(PROGRAM)
        events = json.loads((self.folder / "p.trace.json").read_text())["traceEvents"]
        kernels = [event for event in events if event["ph"] == "X"]
        self.assertEqual(sum(event["name"] == "matmul" for event in kernels), 50)
        self.assertEqual({event["args"]["line"]["line"] for event in kernels if event["name"] == "relu"}, {2})
        begins = [event["ts"] for event in kernels]
        self.assertEqual(begins, sorted(begins))
        memory = [event["args"]["bytes"] for event in events if event["ph"] == "C"]
        self.assertGreater(max(memory), 4000000)

    def test_many_small_kernels(self):
        """Some are timed and stand for the others; large ones are all timed, and memory stays exact where it matters."""
        result = self.profile("let x = ones([8])\nlet y = x\nfor i in 0..100000 { y = x + 1.0 }\nlet large = ones([300000])\n"
                              "for i in 0..5 { large = large * 2.0 }\nlet kept = list()\nfor i in 0..100 { kept.push(ones([100])) }\n",
                              options=("--device", "cpu"))
        self.assertEqual(result.status, 0, result.err)
        data = self.page()
        counts = {t[2]: t[5] for t in data["totals"]}
        self.assertTrue(data["sampled"])
        self.assertEqual(counts["mul"], 5)
        self.assertGreater(counts["add"], 75000)
        self.assertLessEqual(counts["add"], 100000)
        held = dict(zip((data["lines"][band]["line"] for band in data["bands"]), data["memory"][-1][1:]))
        self.assertEqual((held[7], held[5]), (100 * 400, 1200000))
        trace = json.loads((self.folder / "p.trace.json").read_text())["traceEvents"]
        self.assertLess(sum(event["ph"] == "X" for event in trace), 100000)

    def test_roof(self):
        self.profile(PROGRAM)
        roof = self.page()["roof"]
        self.assertGreater(min(roof["bytes"], roof["flops"]), 1e6)
        # Where nothing fits there is none, and the profile is written all the same.
        (self.folder / "small.tl").write_text("print(ones([2]))")
        result = run("profile", "small.tl", cwd=self.folder, env={"TL_MEMORY_LIMIT": "1MB"})
        self.assertEqual(result.status, 0, result.err)

    def test_queued_kernels(self):
        """Vulkan's timestamps: kernels follow each other on the device's own track, within the run."""
        if "vulkan:0" not in run("devices").out or "not usable" in run("devices").out:
            self.skipTest("there is no Vulkan device")
        result = self.profile("let x = ones([64, 64])\nfor i in 0..600 { x = relu(x @ x + 1.0) / 64.0 }\nprint(x.shape)\n"
                              "let v = det(ones([2, 2]))\nsynchronize()\n", options=("--device", "vulkan"))
        self.assertEqual((result.status, result.out), (0, "[64, 64]\n"), result.err)
        data = self.page()
        self.assertTrue(data["queued"])
        counts = {t[2]: t[5] for t in data["totals"] if t[3] == "kernel"}
        self.assertEqual([counts[name] for name in ("matmul", "add", "relu", "div")], [600] * 4)
        self.assertGreater({t[2]: t[6] for t in data["totals"]}["matmul"], 0)
        matmul = next(t for t in data["totals"] if t[2] == "matmul")
        self.assertEqual(matmul[7:], [600 * 3 * 64 * 64 * 4, 600 * 2 * 64 ** 3])
        events = json.loads((self.folder / "p.trace.json").read_text())["traceEvents"]
        queued = [event for event in events if event["ph"] == "X" and event["tid"] == 2]
        self.assertGreaterEqual(sum(event["name"] == "matmul" for event in queued), 8)
        for before, after in zip(queued, queued[1:]):
            self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 0.01)
        self.assertLessEqual(sum(event["dur"] for event in queued) / 1e6, data["seconds"])

    def test_transfers_and_waits(self):
        self.profile("let x = tensor([1.0, 2.0, 3.0]) + 1.0\nprint(x)\nsynchronize()\n")
        kinds = {t[3] for t in self.page()["totals"]}
        self.assertLessEqual({"kernel", "upload", "download", "wait"}, kinds)

    def test_programs_that_fail_or_do_nothing(self):
        result = self.profile("let x = ones([3])\nassert(sum(x) > 5.0)\n")
        self.assertEqual(result.status, 1)
        self.assertIn("error[assert]", result.err)
        self.assertEqual(self.page()["lines"][0]["line"], 1)
        self.assertEqual(self.profile("exit(7)").status, 7)
        self.assertEqual(self.profile("let x = 1", options=("--quiet",)).err, "")
        self.assertEqual(self.page()["totals"], [])
        self.assertEqual(self.profile("let x = ").status, 1)
        result = run("profile", "-e", "print(ones([2]))", cwd=self.folder)
        self.assertEqual((result.status, (self.folder / "program.profile.html").exists()), (0, True))
        self.assertIn("a file is missing", run("profile").err)

    def test_names_of_files(self):
        for name, stem in [("a.b.tl", "a.b"), (".hidden", ".hidden"), ("plain", "plain")]:
            (self.folder / name).write_text("print(1)\n")
            self.assertIn(f"profile: {stem}.profile.html, and {stem}.trace.json", run("profile", name, cwd=self.folder).err)

    def test_in_a_browser(self):
        browser = shutil.which("chromium")
        if not browser:
            self.skipTest("chromium is not installed")
        self.profile(PROGRAM)
        page = self.folder / "p.profile.html"
        # What it does with the page is written into its title, which the dump shows.
        script = """<script>
window.onerror = problem => { document.title = "problem " + problem; };
addEventListener("load", () => {
    const told = [document.querySelectorAll("#flame div").length, document.querySelectorAll("#lines tr").length];
    byId("filter").value = "relu"; byId("filter").dispatchEvent(new Event("input"));
    told.push(document.querySelectorAll("#operations tr").length, document.querySelectorAll("#flame .dim").length > 0);
    byId("memory").dispatchEvent(new MouseEvent("mousemove", {clientX: byId("memory").getBoundingClientRect().left + 999, clientY: 5}));
    told.push(byId("told").textContent.includes(" held"));
    const pen = byId("memory").getContext("2d"), dots = pen.getImageData(0, 0, 1000, 220).data;
    told.push(dots.some((value, i) => i % 4 === 3 && value > 0));
    if (!document.title.startsWith("problem")) document.title = "told " + told.join(" ");
});
</script></head>"""
        page.write_text(page.read_text().replace("</head>", script, 1))
        dump = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={self.folder}/browser", "--dump-dom",
                               f"file://{page}"], capture_output=True, text=True, timeout=240).stdout
        title = re.search(r"<title>(.*?)</title>", dump)[1]
        told = title.split()
        self.assertEqual(told[0], "told", title)
        self.assertGreater(int(told[1]), 4)
        self.assertGreater(int(told[2]), 3)
        self.assertEqual(told[3:], ["3", "true", "true", "true"], title)


if __name__ == "__main__":
    unittest.main()
