"""The Python package; run by tests/cli/test_python.py with the Python that it was built for."""
import gc
import os
import signal
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import tl

try:
    import numpy as np
except ImportError:
    np = None
try:
    import torch
except ImportError:
    torch = None


needs_numpy = unittest.skipIf(np is None and os.environ.get("CI") != "true", "numpy is not installed")


class Programs(unittest.TestCase):
    def test_values(self):
        for value in (None, True, 3, 2.5, "hé", [1, [2, "x"]], {"a": 1, "b": [None]}):
            tl.set("value", value)
            self.assertEqual(tl.eval("value"), value)
        self.assertEqual(tl.eval("(1, (2, 3))"), (1, (2, 3)))
        self.assertIsNone(tl.run("let y = 4;"))
        self.assertEqual(tl.get("y"), 4)
        with self.assertRaisesRegex(TypeError, "tl has nothing for a object"):
            tl.set("value", object())

    def test_arguments_before_one_that_is_refused_are_given_back(self):
        function, before = tl.eval("fn(a, b) { a }"), tl.ledger()["values"]
        with self.assertRaisesRegex(TypeError, "tl has nothing for a object"):
            function("text", object())
        self.assertEqual(tl.ledger()["values"], before)

    def test_structs(self):
        point = tl.run("struct Point { x: int, y: float }\nPoint { x: 3, y: 0.5 }")
        self.assertEqual((point.x, point.y), (3, 0.5))
        with self.assertRaises(AttributeError):
            point.z
        self.assertIn("Point", repr(point))

    def test_errors(self):
        with self.assertRaises(tl.Error) as caught:
            tl.run("let x = ones([2, 3])\nx @ x", "product.tl")
        error = caught.exception
        self.assertEqual((error.kind, error.file, error.line, error.column), ("shape", "product.tl", 2, 1))
        self.assertIn("transpose(x)", error.help)
        self.assertIn("product.tl:2:1", str(error))
        with self.assertRaises(tl.Error) as caught:
            tl.run("let = 3")
        self.assertEqual(caught.exception.kind, "syntax")
        with self.assertRaises(tl.Error) as caught:
            tl.Runtime(device="gpu9")
        self.assertEqual(caught.exception.kind, "setting")

    def test_modules(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "score.tl")
            path.write_text("let bias = 2\nfn score(x, k) { x * k + bias }\n")
            module = tl.load(path)
            self.assertEqual((module.bias, module.score(3, 4)), (2, 14))
            self.assertIs(module.score, module.score)
            with self.assertRaises(AttributeError):
                module.none_such
            wrong = Path(folder, "wrong.tl")
            wrong.write_text("fn f( {")
            with self.assertRaises(tl.Error):
                tl.load(wrong)

    def test_runtimes_are_independent(self):
        first, second = tl.Runtime(seed=1), tl.Runtime(seed=1)
        self.assertEqual(str(first.eval("rand([3])")), str(second.eval("rand([3])")))
        first.set("only_here", 1)
        with self.assertRaises(tl.Error):
            second.get("only_here")
        tensor = first.eval("ones([2])")
        with self.assertRaisesRegex(tl.Error, "another runtime"):
            second.set("x", tensor)
        del first
        gc.collect()
        self.assertEqual(str(tensor), "[1. 1.]")

    @needs_numpy
    def test_arrays_outlive_their_runtime(self):
        runtime = tl.Runtime()
        array, given = np.asarray(runtime.eval("ones([1000]) * 3.0")), np.ones(5, dtype="float32")
        function = runtime.eval("fn(x) { x + 1.0 }")
        del runtime
        gc.collect()
        self.assertEqual(array.sum(), 3000)
        self.assertEqual(function(given).copy_bytes(), np.full(5, 2, dtype="float32").tobytes())

    def test_runtimes_run_side_by_side(self):
        """While one computes without an end, makes tensors and collects, another does all its work: no lock is held across a run."""
        first, second, begun, ended = tl.Runtime(), tl.Runtime(), threading.Event(), []
        first.set("begun", begun.set)

        def endless():
            try:
                first.run("let n = 0\nloop { let x = ones([8, 8]) @ ones([8, 8])\nlet l = list(x, str(n))\nn += 1\nif n == 3 { begun() } }")
            except KeyboardInterrupt:
                ended.append(True)
        thread = threading.Thread(target=endless)
        thread.start()
        self.assertTrue(begun.wait(120))
        rescue = threading.Timer(120, first.interrupt)  # else what waits for it would wait for ever
        rescue.start()
        self.assertEqual(second.run("let s = 0\nfor i in 0..1000 { let l = list(i, str(i))\ns += len(l) }\ns"), 2000)
        self.assertEqual(second.run("int(sum(ones([300, 300]) @ ones([300, 300])))"), 300 ** 3)
        self.assertEqual(ended, [])
        rescue.cancel()
        first.interrupt()
        thread.join()
        self.assertEqual(ended, [True])

    def test_output_and_progress(self):
        runtime, written, epochs = tl.Runtime(), [], []
        runtime.on_output(lambda text, is_error: written.append((text, is_error)))
        runtime.on_progress(lambda epoch, of, loss: epochs.append((epoch, of)))
        runtime.run("print(\"a\")\ntensor w: float32[1] learnable = ones([1])\n"
                    "learn { objective: sum(w ** 2), optimizer: sgd(lr: 0.1), epochs: 3 };")
        self.assertEqual("".join(text for text, is_error in written if not is_error)[:2], "a\n")
        self.assertEqual(epochs, [(1, 3), (2, 3), (3, 3)])
        runtime.on_output(None)
        runtime.on_progress(None)

    def test_lines_come_at_once(self):
        runtime, seen = tl.Runtime(), []
        runtime.on_output(lambda text, is_error: seen.append(text))
        runtime.set("look", lambda: seen.append(None))
        runtime.run('print("a")\nlook()\nprint("b")')
        runtime.on_output(None)
        self.assertEqual(seen, ["a\n", None, "b\n"])

    def test_pictures(self):
        runtime, told = tl.Runtime(), []
        runtime.on_output(lambda text, is_error: told.append(text))
        runtime.on_picture(told.append)
        runtime.run('print("a"); plot([1, 2])')
        self.assertEqual((told[0], told[1][:5], len(told)), ("a\n", "<svg ", 2))
        runtime.on_picture(None)
        runtime.run("plot([1, 2])")
        self.assertIn("1", "".join(told[2:]))
        runtime.on_output(None)

    def test_names_and_fields(self):
        runtime = tl.Runtime()
        runtime.run("let mine = 1\nstruct P { x: float, y: any }")
        names = runtime.names()
        self.assertEqual(names[0], "mine")
        self.assertLessEqual({"mine", "P", "softmax", "pi", "float32"}, {*names})
        self.assertEqual(runtime.fields(runtime.eval("P { x: 1.5, y: none }")), {"x": 1.5, "y": None})


class Functions(unittest.TestCase):
    def test_both_ways(self):
        tl.set("join", lambda a, b: f"{a}-{b}")
        self.assertEqual(tl.eval('join("x", 3)'), "x-3")
        apply = tl.eval("fn(f, x) { f(x) + 1 }")
        self.assertEqual(apply(lambda x: x * 10, 4), 41)

    def test_exceptions_come_back(self):
        def refuse(x):
            raise ValueError(f"not {x}")
        tl.set("refuse", refuse)
        with self.assertRaises(tl.Error) as caught:
            tl.run("let a = 1\nrefuse(a)")
        self.assertEqual((caught.exception.kind, caught.exception.message, caught.exception.line),
                         ("python", "ValueError: not 1", 2))
        self.assertEqual(tl.eval("try { refuse(2) } catch e { e.message }"), "ValueError: not 2")

    def test_functions_of_python_go(self):
        runtime, before = tl.Runtime(), len(tl._runtime.held)
        runtime.set("f", lambda: 1)
        self.assertEqual(len(tl._runtime.held), before + 1)
        runtime.set("f", None)
        self.assertEqual(len(tl._runtime.held), before)

    def test_ctrl_c(self):
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            tl.run("loop { 1 }")
        self.assertEqual(tl.eval("1 + 1"), 2)

    def test_other_threads_go_on(self):
        runtime, done = tl.Runtime(), []
        thread = threading.Thread(target=lambda: done.append(self.endless(runtime)))
        thread.start()
        time.sleep(0.05)  # the lock of Python is free, or this would not end
        runtime.interrupt()
        thread.join()
        self.assertEqual(done, ["interrupted"])

    def endless(self, runtime):
        try:
            runtime.run("loop { 1 }")
        except KeyboardInterrupt:
            return "interrupted"


class Memory(unittest.TestCase):
    def setUp(self):
        self.runtime = tl.Runtime(device="cpu")
        self.same = self.runtime.eval("fn(x) { x }")

    def borrowed(self):
        gc.collect()
        return self.runtime.ledger()["borrowed_bytes"]

    @needs_numpy
    def test_numpy_copies_nothing(self):
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        for given in (array, array.T, array[:, ::2]):
            tensor = self.same(given)
            back = np.asarray(tensor)
            self.assertEqual(back.ctypes.data, given.ctypes.data)
            self.assertEqual(back.strides, given.strides)
            np.testing.assert_array_equal(back, given)
            self.assertFalse(back.flags.writeable)
            np.testing.assert_array_equal(np.from_dlpack(tensor), given)
            self.assertEqual(np.from_dlpack(tensor).ctypes.data, given.ctypes.data)
            self.assertGreater(self.borrowed(), 0)
            del tensor, back
            self.assertEqual(self.borrowed(), 0)

    @needs_numpy
    def test_arrays_keep_tensors(self):
        array = np.asarray(self.runtime.eval("ones([1000]) * 3"))
        self.runtime.run("let more = ones([1000]) * 4")
        self.assertEqual(float(array.sum()), 3000.0)

    @needs_numpy
    def test_every_dtype(self):
        for dtype in ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"):
            array = np.ones((2, 2), dtype=dtype)
            tensor = self.same(array)
            self.assertEqual((tensor.dtype, tensor.shape), (dtype, (2, 2)))
            self.assertEqual(np.asarray(tensor).dtype, array.dtype)
            self.assertEqual(tensor.copy_bytes(), array.tobytes())
            self.assertEqual(np.asarray(tensor.cpu()).ctypes.data, array.ctypes.data)
        with self.assertRaisesRegex(BufferError, "nothing for"):
            self.same(np.ones(2, dtype=np.complex64))

    @needs_numpy
    def test_arrays_of_others_do_not_change(self):
        array = np.zeros(3, dtype=np.float32)
        self.runtime.set("x", array)
        self.runtime.run("x[0] = 5\nx = x + 1")
        self.assertEqual(array.tolist(), [0, 0, 0])

    @needs_numpy
    def test_round_trips_leave_nothing(self):
        array, twice = np.ones(4, dtype=np.float32), self.runtime.eval("fn(x) { x + x }")
        def ledgers():
            gc.collect()
            ours = self.runtime.ledger()
            return [ours[name] for name in ("live_bytes", "borrowed_bytes", "objects", "values")], sys.getallocatedblocks()
        np.asarray(twice(array))
        ours, theirs = ledgers()
        for _ in range(100000):
            back = np.asarray(twice(array))
        self.assertEqual(back[3], 2)
        del back
        ours_after, theirs_after = ledgers()
        self.assertEqual(ours_after, ours)
        self.assertLess(theirs_after, theirs + 100)  # of Python's own: one kept of each would be 100 000

    @unittest.skipIf(torch is None, "torch is not installed")
    def test_torch_copies_nothing(self):
        given = torch.arange(6, dtype=torch.float32).reshape(2, 3).t()
        tensor = self.same(given)
        back = torch.from_dlpack(tensor)
        self.assertEqual(back.data_ptr(), given.data_ptr())
        self.assertTrue(torch.equal(back, given))
        del tensor, back
        self.assertEqual(self.borrowed(), 0)

    def test_buffers(self):
        import array
        numbers = array.array("d", [1, 2, 3])
        tensor = self.same(numbers)
        self.assertEqual((tensor.dtype, tensor.shape), ("float64", (3,)))
        view = tensor.buffer()
        self.assertEqual((view.format, view.tolist(), view.readonly), ("d", [1, 2, 3], True))
        matrix = self.runtime.eval("[[1, 2, 3], [4, 5, 6]]").buffer()
        self.assertEqual((matrix.shape, matrix[1, 2]), ((2, 3), 6))
        with self.assertRaises(BufferError):
            self.runtime.eval("transpose([[1, 2], [3, 4]])").buffer()

    @needs_numpy
    def test_other_devices_copy_and_say_so(self):
        try:
            runtime = tl.Runtime(device="vulkan")
        except tl.Error as error:
            self.skipTest(error.message)
        tensor = runtime.eval("ones([3]) * 2.0")
        for share in (np.asarray, np.from_dlpack, lambda x: x.buffer()):
            with self.assertRaisesRegex(BufferError, r"lies on vulkan:0, not in host memory; t\.cpu\(\) copies it"):
                share(tensor)
        self.assertEqual(np.asarray(tensor.cpu()).tolist(), [2, 2, 2])
        self.assertEqual(np.asarray(runtime.eval("fn(x) { x + 1.0 }")(np.ones(2, dtype="float32")).cpu()).tolist(), [2, 2])

    def test_capsules_that_nobody_takes(self):
        tensor = self.runtime.eval("ones([4])")
        before = self.runtime.ledger()["values"]
        for version in (None, (1, 0)):
            capsule = tensor.__dlpack__(max_version=version)
            self.assertIn("dltensor", repr(capsule))
            del capsule
        self.assertEqual(self.runtime.ledger()["values"], before)
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))

    def test_the_versioned_struct_comes_back(self):
        tensor = self.runtime.eval("[[1.0, 2.0], [3.0, 4.0]]")

        class Versioned:
            def __dlpack__(self, *, max_version=None):
                return tensor.__dlpack__(max_version=max_version)

            def __dlpack_device__(self):
                return (1, 0)
        back = self.same(Versioned())
        self.assertEqual(str(back), str(tensor))
        self.assertEqual(back._view().data, tensor._view().data)


if __name__ == "__main__":
    unittest.main()
