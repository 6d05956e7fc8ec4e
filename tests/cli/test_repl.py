"""The interactive session, driven as a person does: through a pseudo-terminal, and through a pipe."""
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from terminal import LIMIT_S, Terminal
from tl import TL, run


class Session(unittest.TestCase):
    def open(self, *arguments, **more):
        terminal = Terminal(*(arguments or ("repl",)), **{"columns": 200, **more})
        self.addCleanup(terminal.close)
        return terminal

    def live_bytes(self, terminal):
        return int(terminal.line('print(memory().live)'))

    def finish_clean(self, terminal, keys="\x04"):
        shown, status = terminal.finish(keys)
        self.assertIn("no leak: every buffer was released", shown)
        self.assertEqual(status, 0)

    # --- values

    def test_plain_tl_with_options_on_a_terminal(self):
        t = self.open("--seed", "1")
        self.assertEqual(t.line("1 + 1"), "2\n")
        self.finish_clean(t)

    def test_a_session(self):
        t = self.open()
        self.assertEqual(t.line("x = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]"), "")
        self.assertEqual(t.line("x"), "float32[2, 3] on cpu\n[[1. 2. 3.]\n [4. 5. 6.]]\n")
        self.assertEqual(t.line("x * 2;"), "")
        self.assertEqual(t.line("_"), "float32[2, 3] on cpu\n[[ 2.  4.  6.]\n [ 8. 10. 12.]]\n")
        self.assertEqual(t.line("sum(x) // a rank-0 tensor"), "float32[] on cpu\n21.0\n")
        self.assertEqual(t.line("1 + 1"), "2\n")
        self.assertEqual(t.line("_ * 10"), "20\n")
        self.assertEqual(t.line('"text"'), '"text"\n')
        self.assertEqual(t.line("none"), "")
        self.assertEqual(t.line("_"), '"text"\n')
        self.assertEqual(t.line("fn twice(a) { a * 2 }"), "")
        self.assertEqual(t.line("twice(21)"), "42\n")
        self.assertEqual(t.line('print("out")'), "out\n")
        self.assertEqual(t.line("main { print(twice(4)) }"), "8\n")
        self.finish_clean(t)

    def test_plain_tl_on_a_terminal(self):
        terminal = Terminal()
        self.addCleanup(terminal.close)
        self.assertEqual(terminal.line("2 ** 10"), "1024\n")
        self.finish_clean(terminal)

    def test_functions_can_be_declared_again(self):
        t = self.open()
        t.line("fn f(a) { a + 1 }")
        t.line("fn g(a) { f(a) * 10 }")
        self.assertEqual(t.line("g(1)"), "20\n")
        t.line("fn f(a) { let b = a * 100; b }")
        self.assertEqual(t.line("g(1)"), "1000\n")
        t.line("let n = 3")
        t.line("fn h() { n }")
        t.line("let n = 4")
        self.assertEqual(t.line("h()"), "4\n")
        self.assertIn("takes 1 argument", t.line("f(1, 2)"))
        t.line("fn f(a) { a * 200 }")
        self.assertEqual(t.line("g(1)"), "2000\n")
        # With other parameters it is another function: earlier lines keep the one that they were written for.
        for declared, call, shown in (("fn f(a, b) { a * b }", "f(2, 3)", "6"), ("fn f() { 7 }", "f()", "7"),
                                      ("fn f(x) { x + 5 }", "f(x: 1)", "6")):
            t.line(declared)
            self.assertEqual((t.line(call), t.line("g(1)")), (f"{shown}\n", "2000\n"))
        t.line("fn f(a) { a * 300 }")
        self.assertEqual(t.line("g(1)"), "3000\n")
        self.finish_clean(t)

    def test_structs_and_imports(self):
        t = self.open()
        Path(t.folder, "part.tl").write_text('print("loaded")\nlet level = 3\nfn up() { level = level + 1 }\n')
        t.line("struct P { x: float }")
        t.line("impl P { fn double(self) { self.x * 2.0 } }")
        t.line("p = P { x: 3.0 }")
        self.assertEqual(t.line("p.double()"), "6.0\n")
        # What a call found for a type holds until the type gets another impl.
        t.line("fn call(q) { q.double() }")
        self.assertEqual(t.line("call(p)"), "6.0\n")
        t.line("impl P { fn double(self) { self.x * 2.0 + 0.5 } }")
        self.assertEqual(t.line("call(p)"), "6.5\n")
        t.line("impl P { fn double(self) { self.x * 2.0 } }")
        self.assertEqual(t.line('import "part.tl"'), "loaded\n")
        self.assertEqual(t.line('import "part.tl"'), "")
        t.line("up()")
        self.assertEqual(t.line("level"), "4\n")
        t.line('up(); level = 99; error("no")')
        self.assertEqual(t.line("level"), "4\n")
        self.assertIn("unknown trait", t.line("impl Nope for P { fn nope(self) { 1 } }"))
        self.assertIn("error[error]: no", t.line('impl P { fn triple(self) { 3 } } error("no")'))
        self.assertIn("error[name]", t.line("p.triple()"))
        # What a file calls stays its own when the session has the same name.
        Path(t.folder, "calls.tl").write_text("fn inner() { 1 }\nfn outer() { inner() }\n")
        t.line('import "calls.tl"')
        t.line("fn inner() { 2 }")
        self.assertEqual(t.line("(inner(), outer())"), "(2, 1)\n")
        self.assertEqual(t.line("p.double()"), "6.0\n")
        self.finish_clean(t)

    def test_a_declaration_waits_for_its_value(self):
        t = self.open()
        t.line("n = 2")
        t.line("let x: float32[n]")
        self.assertIn("`x` has no value yet", t.line("x"))
        self.assertIn("x is declared as float32[n], but its value is int64[3]", t.line("x = [1, 2, 3]"))
        t.line("fn set(v) { x = v }")
        t.line("n = 3")
        t.line("set([1, 2, 3])")
        self.assertEqual(t.line("x"), "float32[3] on cpu\n[1. 2. 3.]\n")
        t.line("let x = 4")
        t.line("x = [5]")
        self.assertEqual(t.line("x"), "int64[1] on cpu\n[5]\n")
        self.finish_clean(t)

    # --- failure

    def test_an_error_leaves_everything_as_it_was(self):
        t = self.open()
        t.line("x = ones([2, 2]); xs = list(1, 2); d = {\"k\": list(0)}; n = 5")
        t.line("struct B { v: list }")
        t.line("b = B { v: xs }")
        t.line("fn make() { let c = 0; fn() { c = c + 1; c } }")
        t.line("count = make()")
        self.assertEqual(t.line("count()"), "1\n")
        before = self.live_bytes(t)
        shown = t.line('x = zeros([500]); y = ones([1000]); n += 1; xs.push(3); d.k.push(1); '
                       'd["new"] = 1; b.v = list(7); x[0] = 4.0; count(); error("stop")')
        self.assertIn("error[error]: stop", shown)
        self.assertIn("<repl:", shown)
        self.assertEqual(self.live_bytes(t), before)
        self.assertEqual(t.line("x"), "float32[2, 2] on cpu\n[[1. 1.]\n [1. 1.]]\n")
        self.assertEqual(t.line("xs"), "[1, 2]\n")
        self.assertEqual(t.line("d"), '{"k": [0]}\n')
        self.assertEqual(t.line("b"), "B { v: [1, 2] }\n")
        self.assertEqual(t.line("n"), "5\n")
        self.assertEqual(t.line("count()"), "2\n")
        self.assertIn("unknown name `y`", t.line("y"))
        t.line("xs[0] = 9")
        self.assertEqual(t.line("b.v"), "[9, 2]\n")
        self.finish_clean(t)

    def test_an_error_leaves_caches_as_they_were(self):
        t = self.open()
        t.line("fn add(cache, n, x) { cache.append(0, full([n, 1], x), full([n, 1], x)); }")
        t.line("cache = KVCache::new(1); add(cache, 2, 1.0)")
        before = self.live_bytes(t)
        for change in ("add(cache, 3, 2.0)", "add(cache, 300, 2.0)", "cache.truncate(1); add(cache, 4, 2.0)"):
            self.assertIn("error[error]: stop", t.line(f'{change}; error("stop")'))
            self.assertEqual(t.line("to_list(cache.get_k(0).flatten())"), "[1.0, 1.0]\n")
            self.assertEqual(self.live_bytes(t), before)
        t.line("add(cache, 1, 3.0)")
        self.assertEqual(t.line("to_list(cache.get_v(0).flatten())"), "[1.0, 1.0, 3.0]\n")
        self.finish_clean(t)

    def test_what_was_trained_stays_trained(self):
        t = self.open()
        t.line("w = learnable([1.0]); opt = sgd(lr: 0.5, params: w)")
        self.assertIn("error[error]: stop", t.line('backward(sum(w)); opt.step(); error("stop")'))
        self.assertEqual(t.line("to_list(detach(w))"), "[0.5]\n")
        self.finish_clean(t)

    def test_a_drop_waits_for_the_line_to_succeed(self):
        t = self.open()
        t.line('struct R { n: int }')
        t.line('impl Drop for R { fn drop(self) { print("dropped {}", self.n) } }')
        t.line("r = R { n: 1 }")
        self.assertNotIn("dropped", t.line('r = none; error("no")'))
        self.assertEqual(t.line("r.n"), "1\n")
        self.assertEqual(t.line("r = R { n: 2 }"), "dropped 1\n")
        shown, status = t.finish()
        self.assertIn("dropped 2", shown)
        self.assertEqual(status, 0)

    def test_ctrl_c_in_a_kernel(self):
        t = self.open()
        t.line("a = rand([300, 300]); x = 1")
        before = self.live_bytes(t)
        t.raw = b""
        t.send("x = 2; for i in 0..100000000 { a = a @ a * 0.001 }\r")
        time.sleep(1)
        t.send("\x03")
        self.assertIn("interrupted: variables, but not parameters, are as they were before the line", t.wait_prompt())
        self.assertEqual(t.line("x"), "1\n")
        self.assertEqual(self.live_bytes(t), before)
        self.assertEqual(t.line("a.shape()"), "[300, 300]\n")
        self.finish_clean(t)

    def test_ctrl_c_in_a_learn_block_keeps_the_work(self):
        t = self.open()
        t.line("tensor w: float32[2] learnable = [1.0, 1.0]")
        t.raw = b""
        t.send("r = learn { objective: sum(w * w), optimizer: sgd(lr: 0.000001), epochs: 100000000, progress: false }\r")
        time.sleep(1)
        t.send("\x03")
        t.wait_prompt()
        self.assertEqual(t.line("r.stopped"), '"interrupt"\n')
        self.assertEqual(t.line("r.epochs > 0 and w[0] < 1.0 and len(r.losses) == r.epochs"), "true\n")
        self.finish_clean(t)

    def test_ctrl_c_keeps_the_last_step_under_patience(self):
        """The parameters of the best epoch come back at the end of a block, not when it is interrupted."""
        t = self.open()
        t.line("tensor w: float32[2] learnable = [1.0, 1.0]")
        t.raw = b""
        t.send("r = learn { objective: sum(w * w), optimizer: sgd(lr: 0.000001), epochs: 100000000,"
               " validate: 1.0 + epoch, patience: 100000000, progress: false }\r")
        time.sleep(1)
        t.send("\x03")
        t.wait_prompt()
        self.assertEqual(t.line("r.stopped"), '"interrupt"\n')
        self.assertEqual(t.line("r.epochs > 2 and w[0] < 0.999997"), "true\n")
        self.finish_clean(t)

    def test_ctrl_c_in_the_last_kernel_of_a_line(self):
        t = self.open()
        t.line("a = rand([6000, 6000]); x = 1")
        t.raw = b""
        t.send("x = a @ a\r")
        time.sleep(0.2)
        t.send("\x03")
        self.assertIn("interrupted", t.wait_prompt())
        self.assertEqual(t.line("x"), "1\n")
        self.finish_clean(t)

    def test_ctrl_c_in_lapack(self):
        t = self.open()
        t.line("a = f64::rand([5000, 5000]); x = 1")
        before = self.live_bytes(t)
        t.raw = b""
        t.send("x = svd(a)\r")
        time.sleep(0.5)
        t.send("\x03")
        self.assertIn("interrupted", t.wait_prompt())
        self.assertEqual(t.line("x"), "1\n")
        self.assertEqual(self.live_bytes(t), before)
        self.finish_clean(t)

    def test_ctrl_c_at_the_prompt_forgets_the_line(self):
        t = self.open()
        t.send("y = (1 +")
        t.wait_text("y = (1 +")
        t.send("\x03")
        t.wait_rows("tl> y = (1 +^C\ntl>")
        self.assertEqual(t.line("2 + 2"), "4\n")
        t.send("fn f() {\r  1\r")
        t.wait_rows("tl> fn f() {\n  1")
        t.send("\x03")
        t.wait_rows("tl> fn f() {\n  1\n^C\ntl>")
        self.assertIn("unknown function `f`", t.line("f()"))
        self.finish_clean(t)

    def test_termination_ends_it(self):
        t = self.open()
        t.line("x = ones([10])")
        os.kill(t.pid, signal.SIGTERM)
        shown, status = t.finish("")
        self.assertEqual(status, 128 + signal.SIGTERM)
        self.assertIn("no leak", shown)

    def test_stopping_and_going_on(self):
        t = self.open()
        t.send("1 + ")
        t.wait_text("1 + ")
        os.kill(t.pid, signal.SIGSTOP)
        time.sleep(0.2)
        t.raw = b""
        os.kill(t.pid, signal.SIGCONT)
        t.wait_text("tl> 1 + ")
        self.assertEqual(t.line("2"), "3\n")
        self.finish_clean(t)

    def test_exit_has_its_status(self):
        t = self.open()
        t.line("x = ones([10])")
        shown, status = t.finish("exit(7)\r")
        self.assertEqual(status, 7)
        self.assertIn("no leak", shown)

    # --- entering

    def test_many_lines_are_one_unit(self):
        t = self.open()
        t.send("fn area(w,\r")
        t.send("        h) {\r")
        t.send("    w * h\r")
        self.assertEqual(t.line("}").strip(), "")
        self.assertEqual(t.line("area(3, 4)"), "12\n")
        # The unit is recalled whole, and edited: two to the left, in front of the line's end.
        t.raw = b""
        t.send("\x1b[A\x1b[A")
        t.wait_text("w * h")
        t.send("\x02\x02")
        t.line(" + 1")
        self.assertEqual(t.line("area(3, 4)"), "13\n")
        self.finish_clean(t)

    def test_history_is_kept_and_searched(self):
        t = self.open()
        t.line("first = 41 + 1")
        t.send("fn long(\ra) {\r")
        t.line("a }")
        self.finish_clean(t)
        history = Path(t.folder, ".tl_history").read_text()
        self.assertIn("first = 41 + 1", history)
        self.assertEqual(Path(t.folder, ".tl_history").stat().st_mode & 0o777, 0o600)
        again = self.open(folder=t.folder)
        again.raw = b""
        again.send("\x12fir")
        again.wait_text("first = 41 + 1")
        again.send("\r")
        again.wait_prompt()
        self.assertEqual(again.line("first"), "42\n")
        again.raw = b""
        again.send("\x12fn lo")
        again.wait_text("a }")
        again.send("\r")
        again.wait_prompt()
        self.assertEqual(again.line("long(5)"), "5\n")
        self.finish_clean(again)

    def test_a_bracketed_paste_of_a_script(self):
        lines = ["total = 0", "main {", "    check()", "}", "fn check() {", "    print(total)", "}"]
        lines += [f"total = total + {i}" for i in range(993)]
        self.assertEqual(len(lines), 1000)
        t = self.open()
        t.raw = b""
        t.send("\x1b[200~" + "\n".join(lines) + "\x1b[201~")
        shown = t.line("")
        self.assertIn(str(sum(range(993))) + "\n", shown)
        self.assertEqual(t.line("total"), f"{sum(range(993))}\n")
        self.finish_clean(t)

    def test_a_plain_paste_of_1000_lines(self):
        t = self.open()
        t.line("total = 0")
        rows = []
        for i in range(250):
            rows += [f"fn f{i}(a) {{", f"    a + {i}", "}", f"total = total + f{i}(1)"]
        self.assertEqual(len(rows), 1000)
        t.send("\r".join(rows) + "\r" + 'print("pasted " + "all")\r')
        t.wait_text("pasted all\n")
        t.wait_prompt()
        self.assertEqual(t.line("total"), f"{sum(range(250)) + 250}\n")
        self.finish_clean(t)

    def test_memory_stays_flat(self):
        """The same large variable 10 000 times."""
        t = self.open()
        t.send("x = ones([1000, 1000])\r" * 200 + 'print("warm " + "now")\r')
        t.wait_text("warm now\n")
        t.wait_prompt()
        live, resident = self.live_bytes(t), t.resident_kb()
        for _ in range(49):
            t.raw = b""
            t.send("x = ones([1000, 1000])\r" * 200 + 'print("next " + "one")\r')
            t.wait_text("next one\n")
            t.wait_prompt()
        self.assertEqual(self.live_bytes(t), live)
        self.assertEqual(live, 4000000)
        if "asan" not in str(TL):  # the sanitizer keeps for a while what was freed
            self.assertLess(t.resident_kb() - resident, 12 * 1024)
        self.finish_clean(t)

    def test_the_last_value_does_not_pin_more_than_itself(self):
        t = self.open()
        t.line("big = ones([1000, 1000])")
        t.line("big[0, 0:2]")
        t.line("big = none")
        self.assertEqual(self.live_bytes(t), 8)
        t.line("1")
        self.assertEqual(self.live_bytes(t), 0)
        self.finish_clean(t)

    # --- completion

    def complete(self, terminal, typed, wanted):
        terminal.raw = b""
        terminal.send(typed + "\t")
        terminal.wait_text(wanted, 20)
        terminal.raw = b""
        terminal.send("\x03")
        terminal.wait_prompt()

    def test_completion(self):
        t = self.open()
        Path(t.folder, "notes_of_today.txt").write_text("")
        t.line("training_rate = 0.5")
        t.line("point = { \"north\": 1 }")
        t.line("struct Layer { weight: float }")
        t.line("impl Layer { fn forward_all(self) { 1 } }")
        t.line("layer = Layer { weight: 1.0 }")
        Path(t.folder, "parts.tl").write_text("let (left, right) = (1, 2)\nlet radius_of_it = 3")
        t.line('import "parts.tl" as parts')
        t.line("x = ones([2])")
        t.line("fn shift(source, offset_of_it) { source }")
        self.complete(t, "training_r", "training_rate")
        self.complete(t, "layer_nor", "layer_norm")
        self.complete(t, "loop { contin", "continue")
        self.complete(t, "point.no", "point.north")
        self.complete(t, "layer.wei", "layer.weight")
        self.complete(t, "layer.forw", "layer.forward_all")
        self.complete(t, "parts.rad", "parts.radius_of_it")
        self.complete(t, "x.ndi", "x.ndim")
        self.complete(t, "x.log_soft", "x.log_softmax")
        self.complete(t, "layer_norm(x, bia", "bias:")
        self.complete(t, "shift(x, offs", "offset_of_it:")
        self.complete(t, "let b = 2 * p\t", "pi ")  # one of those that are shown
        self.complete(t, "let b: La", "Layer")
        self.complete(t, "let b: ten", "tensor")
        self.complete(t, "layer an", "layer and")
        self.complete(t, ":devi", ":device")
        self.complete(t, ':load notes', ":load notes_of_today.txt")
        self.complete(t, 'read_file("notes', "notes_of_today.txt")
        self.complete(t, 'import "std/met', 'import "std/metrics.tl')
        self.complete(t, 'import "std/models/gpt-o', 'import "std/models/gpt-oss.tl"')
        self.complete(t, 'import "std/mode', 'import "std/models/')
        self.complete(t, 'import "notes', 'import "notes_of_today.txt')
        self.finish_clean(t)

    # --- commands

    def test_questions(self):
        t = self.open()
        t.line("x = [1.0, 2.0, 4.0, 1.0 / 0.0, 0.0 / 0.0]")
        shown = t.line("x?")
        self.assertRegex(shown, r"^x: float32\[5\] on cpu, \d+ B, made at <repl:1>:1:5\n"
                                r"  min 1  max 4  mean 2.33333  nan 1  inf 1\n"
                                r"  .*  from 1 to 4\n$")
        self.assertEqual(t.line("?x"), shown)
        self.assertIn("█", shown)
        self.assertIn("softmax(x: tensor, dim: int = -1) -> tensor", t.line("?softmax"))
        self.assertIn("softmax(x: tensor, dim: int = -1) -> tensor", t.line("softmax?"))
        t.line("fn f(a, b = 2) { a }")
        self.assertEqual(t.line("?f"), "fn f(a, b = 2)\n")
        self.assertIn('there is no variable and no builtin called "nothing"', t.line("nothing?"))
        self.finish_clean(t)

    def test_mem_and_vars(self):
        t = self.open()
        self.assertEqual(t.line(":vars"), "no variables\n")
        t.line("small = zeros([10]); big = ones([1000, 1000])")
        t.line("both = list(big, ones([500, 1000]))")
        shown = t.line(":mem").splitlines()
        self.assertEqual(len(shown), 4)
        self.assertRegex(shown[0], r"^live 5.72 MB, cached .*, peak ")
        self.assertRegex(shown[1], r"^ +3.81 MB  big +made at <repl:1>:1:28$")
        self.assertRegex(shown[2], r"^ +1.91 MB  both +2 tensors  made at <repl:2>:1:18$")
        self.assertRegex(shown[3], r"^ +40 B  small +made at <repl:1>:1:9$")
        names = [row.split()[0] for row in t.line(":vars").splitlines()]
        self.assertEqual(names, ["small", "big", "both"])
        self.assertIn("big          float32[1000, 1000] on cpu, 3.81 MB", t.line("vars"))
        self.assertEqual(t.line(":reset"), "every variable is cleared\n")
        self.assertEqual(self.live_bytes(t), 0)
        self.assertIn("unknown name `big`", t.line("big"))
        t.line("big = 1")
        for word in ("clear", ":clear"):
            t.line(word)
            self.assertEqual(t.rows(), ["tl>"])
        self.assertEqual(t.line("big"), "1\n")
        self.finish_clean(t)

    def test_time(self):
        t = self.open()
        t.line("a = ones([256, 256])")
        self.assertRegex(t.line(":time a @ a"),
                         r"^[0-9.]+ [mu]?s \(median; .* to .*, \d+ runs\)  [0-9.]+ GFLOP/s  0 bytes leaked\n$")
        self.assertRegex(t.line(":time a + a"), r"  [0-9.]+ GB/s  0 bytes leaked\n$")
        t.line("kept = list(1)")
        self.assertRegex(t.line(":time kept.push(ones([100]))"), r"  [1-9]\d+ bytes leaked\n$")
        self.assertIn("error[error]: no", t.line(':time error("no")'))
        self.assertIn("unknown name", t.line(":time nothing"))
        self.finish_clean(t)

    def test_save_and_load(self):
        t = self.open()
        t.line("x = [1.0, 2.0]")
        t.line('y = x; error("this line is not kept")')
        t.line("fn f(a) { a }")
        t.line("fn f(a) { a * 2 }")
        t.line("f(x)")
        t.line("z = _ + 1")
        t.line("main { print(z) }")
        self.assertEqual(t.line(":save out.tl"), "saved 6 statements to out.tl\n")
        script = Path(t.folder, "out.tl").read_text()
        self.assertEqual(script.count("fn f"), 1)
        result = run("run", Path(t.folder, "out.tl"))
        self.assertEqual((result.out, result.err, result.status), ("[3. 5.]\n", "", 0))
        t.line(":reset")
        self.assertEqual(t.line(":load out.tl"), "[3. 5.]\n")
        self.assertEqual(t.line("z"), "float32[2] on cpu\n[3. 5.]\n")
        self.assertIn("error[io]", t.line(":load missing.tl"))
        self.assertIn("error[io]: cannot write /nowhere/x.tl", t.line(":save /nowhere/x.tl"))
        self.finish_clean(t)

    def test_save_keeps_the_last_value_only_where_it_is_used(self):
        t = self.open()
        t.line("é_ = 1")
        t.line("é_ + 1")
        self.assertEqual(t.line(":save out.tl"), "saved 2 statements to out.tl\n")
        self.assertEqual(Path(t.folder, "out.tl").read_text(), "é_ = 1\né_ + 1\n")
        self.finish_clean(t)

    def test_device(self):
        t = self.open()
        self.assertIn("cpu", t.line(":device"))
        t.line("x = ones([2]) + 1")
        self.assertIn("the session's tensors lie on the present device", t.line(":device cpu"))
        t.line(":reset")
        self.assertIn("in use: cpu", t.line(":device cpu"))
        self.assertIn("error[", t.line(":device nonsense"))
        self.assertEqual(t.line("sum(ones([3]))"), "float32[] on cpu\n3.0\n")
        self.finish_clean(t)

    def test_memory_in_the_prompt(self):
        t = self.open()
        t.line("x = ones([1000, 1000])")
        t.line(":set mem on")
        self.assertRegex("\n".join(t.rows()[-2:]), r"^\[live 3.81 MB, cached .*, peak .*\]\ntl>$")
        t.line(":set mem off")
        self.assertEqual(t.rows()[-2:], ["tl> :set mem off", "tl>"])
        self.assertIn("there is no setting", t.line(":set colour on"))
        self.finish_clean(t)

    def test_facts_and_rules(self):
        t = self.open()
        self.assertEqual(t.line(":rules"), "no rules\n")
        t.line("entity City; relation Road(a: City, b: City)")
        self.assertEqual(t.line(":facts Road"), "no facts\n")
        t.line('Road(oslo, bergen); Road("new york", oslo)')
        t.line("Way(X, Y) <- Road(X, Y)")
        t.line("Way(X, Z) <- Way(X, Y), Road(Y, Z)")
        self.assertEqual(t.line(":facts Road"), "Road(oslo, bergen)\nRoad(new york, oslo)\n")
        self.assertEqual(t.line(":facts Way"), "no facts\n2 rules give its rows: `Way(X1, X2)?` shows them, `:rules` the rules\n")
        self.assertEqual(t.line(":rules"), "Way(X, Y) <- Road(X, Y)\nWay(X, Z) <- Way(X, Y), Road(Y, Z)\n")
        self.assertEqual(t.line("?Way"), "relation Way(_, _), 0 facts, 2 rules, not evaluated yet\n")
        t.line("let n = [w for w in Way]")
        self.assertRegex(t.line("?Way"), r"^relation Way\(_, _\), 0 facts, 2 rules, 3 rows, \d+ bytes as tuples\n$")
        self.assertRegex(t.line("?Road"), r"^relation Road\(a, b\), 2 facts, \d+ bytes as tuples\n$")
        self.assertIn("Found 3 solution(s)", t.line("Way(X1, X2)?"))
        self.assertRegex(t.line("?City"), r"^entity City, 3 names, \d+ bytes as tuples\n$")
        t.line("relation Same(a: City, b: City) equivalence; Same(oslo, bergen)")
        self.assertEqual(t.line(":facts Same"), "Same(oslo, bergen)\nan equivalence: `Same(X1, X2)?` shows its rows\n")
        self.assertEqual(t.line(":rules").count("\n"), 2)
        self.assertIn("1 fact, an equivalence", t.line("?Same"))
        shown = t.line(":facts Rod")
        self.assertIn('there is no relation called "Rod"', shown)
        self.assertIn(":vars shows the names of the session", shown)
        self.assertIn("the command is :facts R", t.line(":facts"))
        t.line("relation Many(n: int)")
        t.line("for n in 0..103 { Many(n) }")
        self.assertEqual(t.line(":facts Many").splitlines()[-2:], ["Many(99)", "and 3 more"])
        t.send(":facts Ro\t")
        t.wait(lambda: ":facts Road" in t.rows()[-1], "the completed relation")
        t.line("")  # enters it
        self.finish_clean(t)

    def test_other_commands(self):
        t = self.open()
        shown = t.line(":help")
        for word in (":mem", ":vars", ":time", ":save", ":load", ":reset", ":device", ":quit"):
            self.assertIn(word, shown)
        self.assertEqual(t.line("help"), shown)
        self.assertIn("softmax(x", t.line(":help softmax"))
        self.assertIn("did you mean :vars?", t.line(":var"))
        self.assertIn("the command is :load FILE", t.line(":load"))
        self.assertIn("the command is :mem", t.line(":mem now"))
        t.line("vars = 3")
        self.assertEqual(t.line("vars"), "3\n")
        self.finish_clean(t, ":quit\r")

    def test_older_words_quit(self):
        for word in ("exit", "quit"):
            t = self.open()
            self.finish_clean(t, word + "\r") if t.line("x = [1] + 1") == "" else self.fail()

    def test_colours_only_where_wanted(self):
        t = self.open()
        t.line("ones([2])")
        self.assertNotIn(b"\x1b[2m", t.raw)
        self.assertNotIn(b"\x1b[1;34m", t.raw)
        colored = self.open(env={"NO_COLOR": ""})
        colored.line("ones([2])")
        self.assertIn(b"\x1b[2m", colored.raw)
        self.assertIn(b"\x1b[1;34m", colored.raw)


class Pipe(unittest.TestCase):
    def test_lines_from_a_pipe(self):
        result = run("repl", stdin=b"x = [1, 2]\nx\nfn f(\na) {\na + 1 }\nf(1) *\n3\nnothing\nx * 2")
        self.assertEqual(result.out, "int64[2] on cpu\n[1 2]\n6\nint64[2] on cpu\n[2 4]\n")
        self.assertIn("unknown name `nothing`", result.err)
        self.assertNotIn("\x1b", result.out + result.err)
        self.assertEqual(result.status, 0)

    def test_ctrl_c_ends_a_pipe(self):
        process = subprocess.Popen([TL, "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        process.stdin.write(b'x = ones([4])\nprint("ready")\n')
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT_S), 128 + signal.SIGINT)

    def test_ctrl_c_in_a_line_ends_a_pipe(self):
        process = subprocess.Popen([TL, "repl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for stream in (process.stdin, process.stdout, process.stderr):
            self.addCleanup(stream.close)
        process.stdin.write(b'eprint("ready"); loop { }\nprint("never")\n')
        process.stdin.flush()
        self.assertEqual(process.stderr.readline(), b"ready\n")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(LIMIT_S), 128 + signal.SIGINT)
        self.assertEqual(process.stdout.read(), b"")
        self.assertIn(b"interrupted", process.stderr.read())

    def test_a_unit_of_many_lines(self):
        body = "".join(f"    t = t + {i}\n" for i in range(3000))
        result = run("repl", stdin=f"fn f() {{\n    let t = 0\n{body}    t\n}}\nf()\n".encode())
        self.assertEqual(result.out, f"{sum(range(3000))}\n", result.err)

    def test_an_open_bracket_at_the_end(self):
        result = run("repl", stdin=b"x = (1 +\n")
        self.assertIn("error[syntax]", result.err)
        self.assertEqual(result.status, 0)

    def test_plain_tl_runs_standard_input(self):
        program = b"fn last() { print(twice(2)) }\nfn twice(a) { a * 2 }\nlast()\n1 + 1\n"
        for arguments in ([], ["--seed", "1"]):
            result = run(*arguments, stdin=program)
            self.assertEqual((result.out, result.status), ("4\n", 0), result.err)
        self.assertEqual(run(stdin=b"error(\"no\")").status, 1)
        self.assertEqual((run().out, run().status), ("", 0))

    def test_wrong_options(self):
        result = run("repl", "file.tl")
        self.assertEqual(result.status, 2)
        self.assertIn("file.tl is not expected", result.err)

    def test_a_leak_is_reported(self):
        result = run("repl", "--memory-check=strict", stdin=b"x = ones([4])\n__leak_buffer(x)\n",
                     env={"TL_TEST_LEAK": "1"})
        self.assertIn("device memory leaked: 1 buffer", result.err)
        self.assertIn("<repl:1>:1:5", result.err)
        self.assertEqual(result.status, 3)


if __name__ == "__main__":
    unittest.main()
