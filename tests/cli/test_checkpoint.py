"""Checkpoints: what is saved comes back, and a resumed run gives the losses of an unbroken one."""
import json
import os
import resource
import struct
import tempfile
import unittest
from pathlib import Path

from tl import need_no_sanitizer, run, run_code

RESUME = """
seed(1)
let x = randn([16, 4])
let y = sum(x, 1, true)
struct Net { w: float32[4, 8] learnable, layers: list, name: string }
fn make() {
    seed(2)
    Net { w: randn([4, 8]) * 0.3, layers: list(learnable(randn([8, 1]) * 0.3)), name: "net" }
}
fn train(net, opt, epochs) {
    let r = learn {
        objective: mean((tanh(x @ net.w) @ net.layers[0] - y) ** 2),
        optimizer: opt, epochs: epochs, report_every: 0
    }
    r.losses
}
main {
    for make_optimizer in list(fn() { sgd(lr: 0.1) }, fn() { adam(lr: 0.01, amsgrad: true) },
                               fn() { sgd(lr: 0.05, momentum: 0.9) }) {
        let whole = train(make(), make_optimizer(), 20)
        let net = make()
        let opt = make_optimizer()
        let first = train(net, opt, 8)
        set_lr(opt, opt.lr)
        save_model({"net": net, "optimizer": opt}, "a.FORMAT")
        let other = make()
        let fresh = make_optimizer()
        set_lr(fresh, 7.0)
        load_model("a.FORMAT", into: {"net": other, "optimizer": fresh})
        assert_eq(first + train(other, fresh, 12), whole)
    }
    print(sorted(keys(load("a.FORMAT"))))
}
"""


ALL_RESUME = """
seed(1)
let x = randn([16, 4])
let y = sum(x, 1, true)
struct Net { w: float32[4, 8] learnable, v: float32[8, 1] learnable }
struct Turned { v: float32[8, 1] learnable, w: float32[4, 8] learnable }
fn make() {
    seed(2)
    Net { w: randn([4, 8]) * 0.3, v: randn([8, 1]) * 0.3 }
}
fn turned() { Turned { v: zeros([8, 1]), w: zeros([4, 8]) } }
fn train(net, opt, schedule, epochs) {
    let r = learn {
        objective: mean((dropout(tanh(x @ net.w)) @ net.v - y) ** 2),
        optimizer: opt, scheduler: schedule, epochs: epochs, report_every: 0,
        batch: 5 of (x, y), shuffle: true, dropout: 0.2
    }
    r.losses
}
for make_schedule in list(fn() { scheduler::cosine(t_max: 7) }, fn() { scheduler::plateau(patience: 0, factor: 0.5) },
                          fn() { scheduler::exponential(gamma: 0.8) }) {
    let net = make()
    let whole = train(net, adam(lr: 0.05), make_schedule(), 20)
    let part = make()
    let opt = adam(lr: 0.05)
    let schedule = make_schedule()
    let first = train(part, opt, schedule, 8)
    save_model({"net": part, "opt": opt, "schedule": schedule, "rng": rng_state()}, "a.FORMAT")
    seed(99)
    let state = {"schedule": make_schedule(), "opt": adam(lr: 1.0), "net": turned(), "rng": rng_state()}
    load_model("a.FORMAT", into: state)
    rng_state(state["rng"])
    assert_eq(first + train(state["net"], state["opt"], state["schedule"], 12), whole)
    assert_eq(state["net"].w, net.w)
    print("equal")
}
"""


class Checkpoint(unittest.TestCase):
    every_device = True

    def test_resume(self):
        for ending in ("safetensors", "npz"):
            result = run_code(RESUME.replace("FORMAT", ending), options=["--quiet", "--memory-check=strict"])
            self.assertEqual(result.out, '["net.layers.0", "net.w", "optimizer.state.net.layers.0", '
                                         '"optimizer.state.net.w", "optimizer.steps.net.layers.0", '
                                         '"optimizer.steps.net.w"]\n', result.err)
            self.assertEqual(result.status, 0)

    def test_schedule_order_and_dropout(self):
        # Parameters in another order, a schedule, a shuffled order and dropout: the bits of one run.
        for ending in ("safetensors", "npz", "gguf"):
            result = run_code(ALL_RESUME.replace("FORMAT", ending),
                              options=["--quiet", "--memory-check=strict"])
            self.assertEqual((result.out, result.status), ("equal\n" * 3, 0), result.err)

    def test_resume_in_a_function(self):
        result = run_code("""
            let x = ones([4, 2])
            fn train(p, epochs, save, resume) {
                learn {
                    objective: mean((x @ p.w - 1.0) ** 2), optimizer: adam(lr: 0.1),
                    epochs: epochs, save: save, resume: resume, progress: false
                }
            }
            fn fresh() { ({"w": learnable(zeros([2, 1]))}) }
            let a = fresh()
            let whole = train(a, 10, none, none)
            let b = fresh()
            train(b, 4, "half.safetensors", none)
            print([t.name for t in load_model("half.safetensors").tensors() if not starts_with(t.name, "learn")])
            let c = fresh()
            let rest = train(c, 10, none, "half.safetensors")
            print(rest.losses == whole.losses, all(a.w == c.w))
            fn other(q, w) {
                learn {
                    objective: mean((x @ q - 1.0) ** 2), optimizer: adam(lr: 0.1),
                    epochs: 10, resume: "w.safetensors"
                }
            }
            fn first(w) {
                learn { objective: mean((x @ w) ** 2), optimizer: adam(), epochs: 1, save: "w.safetensors", progress: false }
            }
            let w = learnable(ones([2, 1]))
            first(w)
            let v = learnable(zeros([2, 1]))
            print(try { other(v, w) } catch e { e.message }, v)
        """)
        self.assertEqual(result.out, '["p.w"]\ntrue true\n'
                         "resume: w.safetensors has no parameter float32[2, 1] that is trained here, and 1 that is not trained "
                         "here [[0.]\n [0.]]\n", result.err)

    def test_damage_is_found(self):
        code = """
            let w = learnable(zeros([80, 10]))
            learn { objective: sum((w - 1.0) ** 2), optimizer: adam(lr: 0.01), epochs: EPOCHS, progress: false, MORE }
            print("on")
        """  # all numbers of w are alike, by which they are found
        with tempfile.TemporaryDirectory() as folder:
            for ending, words in (("safetensors", "its numbers are not those that were written"),
                                  ("gguf", "its numbers are not those that were written"), ("npz", "CRC error")):
                def trains(more, epochs):
                    return run("run", "--quiet", "-", stdin=code.replace("MORE", f'{more}: "run.{ending}"').replace(
                        "EPOCHS", str(epochs)).encode(), cwd=folder)
                result = trains("save", 5)
                self.assertEqual((result.status, result.out), (0, "on\n"), result.err)
                path = Path(folder, f"run.{ending}")
                whole = path.read_bytes()
                at = next(i for i in range(len(whole)) if any(whole[i:i + 4]) and whole[i:i + 80] == whole[i:i + 4] * 20)
                self.assertEqual(trains("resume", 9).out, "on\n")
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1:])
                result = trains("resume", 9)
                self.assertEqual((result.status, result.out), (1, ""), ending)
                self.assertIn(words, result.err)
                if ending != "npz":
                    self.assertIn("help: go on from another copy\n", result.err)

    def test_plain_values(self):
        for ending in ("safetensors", "npz", "gguf"):
            result = run_code("""
                struct Net { w: float32[2] learnable, heads: int, rate: float, name: string, on: bool,
                             act: fn, inner: any }
                fn make(h, n) {
                    Net { w: [1.0, h], heads: h, rate: 0.1 * h, name: n, on: h > 5, act: fn(x) { x },
                          inner: {"k": list(h, none)} }
                }
                let one = make(4, "é \\"quoted\\"")
                save_model(one, "a.FORMAT", meta: {"format": "pt", "n": 5})
                let other = make(8, "")
                load_model("a.FORMAT", into: other)
                print(other.heads, other.rate == one.rate, other.name, other.on, other.inner, other.w)
                // A file without them leaves them as they are.
                save_model({"w": [5.0, 6.0]}, "b.FORMAT")
                load_model("b.FORMAT", into: other)
                print(other.heads, other.w)
                print(keys(load("a.FORMAT")))
            """.replace("FORMAT", ending), options=["--quiet"])
            self.assertEqual(result.out, '4 true é "quoted" false {"k": [4, none]} [1. 4.]\n'
                                         '4 [5. 6.]\n["w"]\n', result.err)

    def test_metadata_of_safetensors(self):
        with tempfile.TemporaryDirectory() as folder:
            run("-e", 'save_model({"w": ones([2])}, "a.safetensors", meta: {"format": "pt", "n": 5})',
                cwd=folder)
            data = Path(folder, "a.safetensors").read_bytes()
        header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
        self.assertEqual(header["__metadata__"], {"format": "pt", "n": "5"})

    def test_failed_load_changes_nothing(self):
        result = run_code("""
            let a = learnable([1.0, 2.0])
            let opt = adam(lr: 0.5)
            learn { objective: sum(a * a), optimizer: opt, epochs: 2 }
            save_model({"a": a, "opt": opt, "n": 5}, "a.safetensors")
            fn words(f) { try { f(); "none" } catch e { e.message } }
            let b = learnable([7.0, 8.0])
            let fresh = adam(lr: 0.25)
            let into = {"a": b, "opt": fresh, "n": 1, "z": ones([3])}
            print(words(fn() { load_model("a.safetensors", into: into) }))
            print(b, fresh.lr, into["n"])
            print(words(fn() { load_model("a.safetensors", into: {"a": b, "opt": sgd()}) }))
            print(words(fn() { load_model("a.safetensors", into: {"b": b, "opt": fresh}) }))
            print(words(fn() { load_model("a.safetensors", into: {"a": b, "s": fresh}) }))
            print(words(fn() { load_model("a.safetensors", into: {"a": b, "n": true}) }))
            print(words(fn() { save_model({"opt": opt}, "b.safetensors") }))
            print(words(fn() { save_model({"a": a, "c": KVCache::new(1)}, "b.safetensors") }))
            print(words(fn() { save_model({"a": a, "n": 1}, "b.safetensors", meta: {"n": 2}) }))
            print(b, fresh.lr)
        """, options=["--quiet"])
        self.assertEqual(result.out.splitlines(), [
            "a.safetensors has no tensor `z`",
            "[7. 8.] 0.25 1",
            "a.safetensors: `opt` was adam and cannot become sgd",
            "a.safetensors has no tensor `b`",
            "a.safetensors has no state of an optimizer or scheduler `s`",
            'a.safetensors: `n` is "5", but it must be of kind bool',
            "`opt` has moved a parameter float32[2] that is not among what is saved, of program.tl",
            "`c` is a KVCache, which a file of tensors cannot hold",
            'metadata "n" is given twice',
            "[7. 8.] 0.25"], result.err)

    def test_moments_of_a_parameter_that_is_gone(self):
        result = run_code("""
            let a = learnable([1.0, 2.0])
            let opt = adam(lr: 0.5)
            learn { objective: sum(a * a), optimizer: opt, epochs: 2 }
            save_model({"a": a, "opt": opt}, "a.npz")
            try { load_model("a.npz", into: {"opt": adam()}) } catch e { print(e.message) }
            let count = load("a.npz")
            count["opt.steps.a"] = [0.5]
            let place = {"s": ones([2])}
            let state = load("a.npz")
            state["opt.state.a"] = ones([3, 2])
            for name, file in {"count": count, "state": state, "place": place} {
                save_model(file, name + ".npz", meta: {"opt": "adam", "opt.lr": "0.5", "s": "cosine"})
            }
            try { load_model("count.npz", into: {"a": a, "opt": adam()}) } catch e { print(e.message) }
            try { load_model("state.npz", into: {"a": a, "opt": adam()}) } catch e { print(e.message) }
            try { load_model("place.npz", into: {"s": scheduler::cosine()}) } catch e { print(e.message) }
            // The settings come along with the moments.
            let other = adam(lr: 3.0, beta1: 0.1)
            load_model("a.npz", into: {"a": a, "opt": other})
            print(other.lr)
        """, options=["--quiet"])
        self.assertEqual(result.out.splitlines(), [
            "a.npz has moments of `a`, which is not among what is loaded",
            "count.npz: `opt.steps.a` is not a count of steps",
            "adam: the restored state float32[3, 2] does not belong to a parameter float32[2]",
            "place.npz: `s` is not the place of a scheduler", "0.5"], result.err)

    def test_an_empty_name(self):
        result = run_code("""
            let w = learnable([1.0, 2.0])
            let opt = adam(lr: 0.5)
            learn { objective: sum(w * w), optimizer: opt, epochs: 1 }
            save_model({"": opt, "w": w}, "a.safetensors")
            let other = adam()
            load_model("a.safetensors", into: {"": other, "w": w})
            print(other.lr)
        """, options=["--quiet"])
        self.assertEqual(result.out, "0.5\n", result.err)

    def test_dtypes_round_trip(self):
        result = run_code("""
            let all = {}
            for t in list(float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, bool) {
                all[str(t)] = tensor([[0, 1, 1], [1, 0, 1]], t)
            }
            all["empty"] = zeros([0, 3])
            all["turned"] = transpose(arange(6).reshape([2, 3]))
            save_model(all, "a.safetensors")
            let back = load("a.safetensors")
            for name in all {
                assert_eq(back[name].shape, all[name].shape)
                assert_eq(back[name].dtype, all[name].dtype)
                assert_eq(back[name], all[name])
            }
            print(len(back))
        """)
        self.assertEqual(result.out, "12\n", result.err)

    def test_errors(self):
        for code, expected in [
            ('save_model([1.0, 2.0], "a.safetensors")', "dictionary or a struct"),
            ('save_model({"a": ones([2])}, "a.txt")', "a.txt: the names of files of tensors end in"),
            ('save_model({"a": ones([2])}, "none/a.safetensors")', "cannot write none/a.safetensors"),
            ('let d = {}\nd["d"] = d\nsave_model(d, "a.safetensors")', "nested too deeply"),
            ('save_model({"a": ones([2])}, "a.safetensors")\n'
             'load_model("a.safetensors", into: {"b": ones([2])})', "a.safetensors has no tensor `b`"),
            ('save_model({"a": ones([2])}, "a.safetensors")\n'
             'load_model("a.safetensors", into: {"a": ones([3])})',
             "tensor `a` is float32[2], not float32[3]"),
            ('load("missing.safetensors")', "missing.safetensors"),
        ]:
            with self.subTest(code):
                result = run_code(code)
                self.assertIn(expected, result.err.splitlines()[0])
                self.assertEqual(result.status, 1)

    def test_hostile_files(self):
        def packed(header, data=b""):
            text = header if isinstance(header, bytes) else json.dumps(header).encode()
            return struct.pack("<Q", len(text)) + text + data

        def one(**entry):
            return {"t": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **entry}}
        for content, expected in [
            (b"abc", "3 bytes are not a safetensors file"),
            (struct.pack("<Q", 1 << 60), "claims 1152921504606846976 bytes, but 0 are left"),
            (packed(b"{"), "the header is not JSON"),
            (packed(b"[]"), "the header is not a JSON object"),
            (packed({"t": 1}), "tensor `t`: it is not an object"),
            (packed(one(dtype=3)), "it has no dtype"),
            (packed(one(shape=3)), "its shape is not a list"),
            (packed(one(shape=[1] * 9)), "its shape is not a list of at most 8 sizes"),
            (packed(one(shape=[-2])), "something that is not a size"),
            (packed(one(data_offsets=[0])), "its data_offsets are not two offsets"),
            (packed(one(data_offsets=[0, 9]), bytes(8)), "lies at bytes 0 to 9 of 8"),
            (packed(one(data_offsets=[8, 0]), bytes(8)), "lies at bytes 8 to 0 of 8"),
            (packed(one(shape=[3]), bytes(8)), "is float32[3], but has 8 bytes"),
            (packed(one(shape=[1 << 62, 16]), bytes(8)), "but has 8 bytes"),
            (packed({**one(), "u": one()["t"]}, bytes(8)), "tensors `t` and `u` overlap"),
            (packed(b'{"t":1,"t":2}'), "the header is not JSON"),
        ]:
            with self.subTest(expected), tempfile.TemporaryDirectory() as folder:
                Path(folder, "a.safetensors").write_bytes(content)
                result = run("-e", 'load("a.safetensors")', cwd=folder)
                self.assertIn("error[format]: a.safetensors: ", result.err)
                self.assertIn(expected, result.err.splitlines()[0])


# Saves and loads as many parameters as it is told, with what an optimizer keeps of each.
MANY = """
let d = {"net": {}}
for i in 0..int(args()[0]) { d["net"][f"blk.{i}.weight"] = learnable(ones([4])) }
d["opt"] = adam(lr: 0.01, params: d)
for p in values(d["net"]) { backward(sum(p)) }
d["opt"].step()
save(d, "many.safetensors")
load_model("many.safetensors", into: d)
print(len(load("many.safetensors")))
"""


class Many(unittest.TestCase):
    def seconds(self, count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        result = run_code(MANY, count)
        self.assertEqual((result.out, result.err), (f"{3 * count}\n", ""))
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    def test_time_grows_with_the_parameters(self):
        """Eight times as many take about eight times as long, not 64 times."""
        need_no_sanitizer("looks at each access")
        few = min(self.seconds(1000) for _ in range(3))
        self.assertLess(self.seconds(8000), 14 * few)


if __name__ == "__main__":
    unittest.main()
