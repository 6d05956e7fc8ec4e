"""tl, a small language for tensors, in Python.

    import tl
    score = tl.load("score.tl").score        # a function of a file
    score(numpy_array, 0.5)                  # the array's memory is used where it is
    tl.eval("softmax([1.0, 2.0, 3.0])")      # a tensor; numpy.asarray(it) copies nothing
"""
from ._runtime import VERSION as __version__
from ._runtime import Error, Function, Module, Runtime, Tensor, Value, default, eval, get, ledger, load, run, seed, set

__all__ = ["Error", "Function", "Module", "Runtime", "Tensor", "Value", "default", "eval", "get", "ledger", "load",
           "run", "seed", "set"]
