"""Checkpoints: what is saved comes back, and a resumed run gives the losses of an unbroken one."""
import json
import os
import struct
import tempfile
import unittest
from pathlib import Path

from tl import run, run_code

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


class Checkpoint(unittest.TestCase):
    every_device = True

    def test_resume(self):
        for ending in ("safetensors", "npz"):
            result = run_code(RESUME.replace("FORMAT", ending), options=["--quiet", "--memory-check=strict"])
            self.assertEqual(result.out, '["net.layers.0", "net.w", "optimizer.lr", "optimizer.state.0", '
                                         '"optimizer.state.1", "optimizer.steps"]\n', result.err)
            self.assertEqual(result.status, 0)

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
            (b"abc", "3 bytes are no safetensors file"),
            (struct.pack("<Q", 1 << 60), "claims 1152921504606846976 bytes, but 0 are left"),
            (packed(b"{"), "the header is no JSON"),
            (packed(b"[]"), "the header is no JSON object"),
            (packed({"t": 1}), "tensor `t`: it is no object"),
            (packed(one(dtype="F8")), "has the dtype F8"),
            (packed(one(dtype=3)), "it has no dtype"),
            (packed(one(shape=3)), "its shape is no list"),
            (packed(one(shape=[1] * 9)), "its shape is no list of at most 8 sizes"),
            (packed(one(shape=[-2])), "something that is no size"),
            (packed(one(data_offsets=[0])), "its data_offsets are no two offsets"),
            (packed(one(data_offsets=[0, 9]), bytes(8)), "lies at bytes 0 to 9 of 8"),
            (packed(one(data_offsets=[8, 0]), bytes(8)), "lies at bytes 8 to 0 of 8"),
            (packed(one(shape=[3]), bytes(8)), "is float32[3], but has 8 bytes"),
            (packed(one(shape=[1 << 62, 16]), bytes(8)), "but has 8 bytes"),
            (packed({**one(), "u": one()["t"]}, bytes(8)), "tensors `t` and `u` overlap"),
            (packed(b'{"t":1,"t":2}'), "the header is no JSON"),
        ]:
            with self.subTest(expected), tempfile.TemporaryDirectory() as folder:
                Path(folder, "a.safetensors").write_bytes(content)
                result = run("-e", 'load("a.safetensors")', cwd=folder)
                self.assertIn("error[format]: a.safetensors: ", result.err)
                self.assertIn(expected, result.err.splitlines()[0])


if __name__ == "__main__":
    unittest.main()
