"""Memory of tensors, lent in both directions: DLPack, the buffer protocol, NumPy's array interface."""
from ._tl import ffi, lib

# dtype: DLPack's code and bits, the format of the buffer protocol, NumPy's type string
DTYPES = {
    "bool": (6, 8, "?", "|b1"), "int8": (0, 8, "b", "|i1"), "int16": (0, 16, "h", "<i2"), "int32": (0, 32, "i", "<i4"),
    "int64": (0, 64, "q", "<i8"), "uint8": (1, 8, "B", "|u1"), "float16": (2, 16, "e", "<f2"),
    "float32": (2, 32, "f", "<f4"), "float64": (2, 64, "d", "<f8"), "bfloat16": (4, 16, None, None),
}
BY_CODE = {(code, bits): name for name, (code, bits, _, _) in DTYPES.items()}
BY_FORMAT = {form: name for name, (_, _, form, _) in DTYPES.items() if form} | {"l": "int64"}
NAMES = (b"dltensor", b"dltensor_versioned")
CPU = 1


def capsules():
    """ctypes' view of capsules; loaded at its first use."""
    import ctypes
    api = ctypes.pythonapi
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api


USED = (b"used_dltensor", b"used_dltensor_versioned")  # PyCapsule_SetName borrows the names


def export(value, view, versioned):
    """A capsule over the memory of a tensor, which it keeps alive."""
    code, bits, _, _ = DTYPES[ffi.string(view.dtype).decode()]
    managed = lib.lend(value, view, code, bits, versioned)
    if managed == ffi.NULL:
        raise MemoryError
    return capsules().PyCapsule_New(int(ffi.cast("uintptr_t", managed)), NAMES[versioned], lib.capsule_destructor())


class Borrowed:
    """What tl borrows: freed when tl's last tensor over it goes."""

    def __init__(self, owner, managed=None, versioned=0):
        self.owner, self.managed, self.versioned = owner, managed, versioned

    def release(self):
        if self.managed is not None:
            lib.delete_managed(self.managed, self.versioned)
        self.owner = self.managed = None


def ask(given):
    try:
        return given.__dlpack__(max_version=(1, 0))
    except TypeError:
        return given.__dlpack__()


def borrow_dlpack(given):
    """(memory, borrowed) of what speaks DLPack."""
    device = given.__dlpack_device__()
    if device[0] != CPU:
        raise BufferError(f"the tensor lies on DLPack device {device}, not in host memory")
    api, capsule = capsules(), ask(given)
    versioned = int(api.PyCapsule_IsValid(capsule, NAMES[1]))
    pointer = api.PyCapsule_GetPointer(capsule, NAMES[versioned])
    managed = ffi.cast("DLVersioned *" if versioned else "DLManaged *", pointer)
    tensor = managed.tensor
    dtype = BY_CODE.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
    if dtype is None or tensor.ndim > lib.TL_RANK_MAX:
        raise BufferError(f"tl has nothing for DLPack type {tensor.code} of {tensor.bits} bits with "
                          f"{tensor.ndim} dimensions")
    shape = [tensor.shape[i] for i in range(tensor.ndim)]
    strides = dense(shape) if tensor.strides == ffi.NULL else [tensor.strides[i] for i in range(tensor.ndim)]
    memory = describe(dtype, shape, strides, ffi.cast("char *", tensor.data) + tensor.byte_offset)
    api.PyCapsule_SetName(capsule, USED[versioned])  # it is ours
    return memory, Borrowed(None, managed, versioned)


def borrow_buffer(given):
    """(memory, borrowed) of what has the buffer protocol."""
    view = memoryview(given)
    dtype = BY_FORMAT.get(view.format.lstrip("@=<"))
    if dtype is None or not view.c_contiguous:
        raise BufferError(f"tl has nothing for a buffer of format {view.format!r}" if dtype is None else
                          "a buffer must be contiguous; what has __dlpack__ need not be")
    held = ffi.from_buffer(view)
    return describe(dtype, view.shape, dense(view.shape), held), Borrowed((held, view))


def dense(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return strides


def describe(dtype, shape, strides, data):
    name = ffi.new("char[]", dtype.encode())
    memory = ffi.new("tl_tensor *", {"rank": len(shape), "shape": list(shape), "strides": list(strides)})
    memory.dtype, memory.data = name, ffi.cast("void *", data)
    return memory, name


def borrow(given):
    """((memory, its dtype's text), borrowed), or None for what is not a tensor."""
    if hasattr(given, "__dlpack__"):
        try:
            return borrow_dlpack(given)
        except (BufferError, RuntimeError, TypeError):
            if hasattr(given, "device") and str(given.device) != "cpu":
                raise
    try:
        memoryview(given)
    except TypeError:
        return None
    return borrow_buffer(given)
