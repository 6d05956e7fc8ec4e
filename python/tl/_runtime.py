"""Runtimes, values and functions of tl as Python objects."""
import os
import threading

from . import _memory
from ._tl import ffi, lib

NULL, NOTHING = ffi.NULL, lib.nothing()
call = lib.call
VERSION = ffi.string(lib.tl_version()).decode()


class Error(Exception):
    """What tl could not do; str() is the whole message with its source lines."""

    def __init__(self, error):
        self.kind = text_of(error.kind)
        self.message = text_of(error.message)
        self.label = text_of(error.label)
        self.help = text_of(error.help)
        self.file = text_of(error.file) if error.file != NULL else None
        self.line, self.column = error.line, error.column
        self.end_line, self.end_column = error.end_line, error.end_column
        self.exit_status = error.exit_status
        super().__init__(text_of(error.text).rstrip("\n") or self.message)


def text_of(chars):
    return ffi.string(chars).decode(errors="replace")


class Value:
    """A value of tl's that Python has nothing for: a struct, a model, a range. Fields are attributes."""

    def __init__(self, runtime, value):
        self._runtime, self._value = runtime, ffi.gc(value, lib.tl_release)

    def __getattr__(self, name):
        if name.startswith("_") or lib.tl_kind_of(self._value) != lib.TL_STRUCT:
            raise AttributeError(name)
        found = ffi.new("tl_value **")
        if lib.tl_member(self._value, name.encode(), found) != lib.TL_OK:
            raise AttributeError(self._runtime._error().message)
        return self._runtime._take(found[0])

    def __str__(self):
        found = ffi.new("tl_value **")
        self._runtime._check(lib.tl_text(self._value, found))
        return self._runtime._take(found[0])

    def __repr__(self):
        return f"<tl {type(self).__name__.lower()} {self}>"


class Function(Value):
    """A function of tl's: call it with positional arguments."""

    def __call__(self, *arguments):
        if not arguments:
            result = call(self._value, NULL, 0)
        else:
            with Giving(self._runtime, arguments) as given:
                result = call(self._value, given, len(arguments))
        if result == NOTHING:
            return None
        if result == NULL:
            raise self._runtime._error()
        return self._runtime._take(result)

    def __repr__(self):
        return f"<tl function {self}>"


class Tensor(Value):
    """A tensor; its memory is read where it is by numpy.asarray, torch.from_dlpack and t.buffer().

    What lies on a GPU has no memory here: cpu() copies it."""

    def _view(self):
        view = ffi.new("tl_tensor *")
        if lib.tl_view(self._value, view) != lib.TL_OK:
            error = self._runtime._error()
            raise BufferError(f"{error.message}; t.cpu() copies it" if error.kind == "device" else error.message)
        return view

    def cpu(self):
        """The tensor in host memory: itself, or a copy."""
        return self._runtime._ask('fn(x) { x.to("cpu") }', self)

    @property
    def shape(self):
        return tuple(self._runtime._ask("fn(x) { x.shape }", self))

    @property
    def dtype(self):
        return self._runtime._ask("fn(x) { str(x.dtype) }", self)

    @property
    def __array_interface__(self):
        view = self._view()
        _, bits, _, typestr = _memory.DTYPES[text_of(view.dtype)]
        if typestr is None:
            raise BufferError(f"NumPy has no {text_of(view.dtype)}")
        return {"version": 3, "typestr": typestr, "shape": tuple(view.shape[0:view.rank]),
                "strides": tuple(step * bits // 8 for step in view.strides[0:view.rank]),
                "data": (int(ffi.cast("uintptr_t", view.data)), True)}

    def buffer(self):
        """A read-only memoryview of the numbers, which must lie one after the other."""
        view = self._view()
        shape, strides = list(view.shape[0:view.rank]), list(view.strides[0:view.rank])
        _, bits, form, _ = _memory.DTYPES[text_of(view.dtype)]
        if form is None or strides != _memory.dense(shape):
            raise BufferError("the numbers do not lie one after the other" if form else f"no format for {self.dtype}")
        count = 1
        for size in shape:
            count *= size
        held = ffi.gc(ffi.cast("char *", view.data), lambda _, value=self._value: None)
        flat = memoryview(ffi.buffer(held, count * bits // 8)).toreadonly()
        return flat.cast(form, shape) if shape and count else flat.cast(form)

    __buffer__ = lambda self, flags: self.buffer()  # from Python 3.12 on: memoryview(t)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if copy:
            raise BufferError("tl lends its memory; copy the result")
        return _memory.export(self._value, self._view(), int(max_version is not None and max_version[0] >= 1))

    def __dlpack_device__(self):
        return (_memory.CPU, 0)

    def copy_bytes(self):
        """The numbers in row-major order as bytes, from any device."""
        count = _memory.DTYPES[self.dtype][1] // 8
        for size in self.shape:
            count *= size
        out = bytearray(count)
        self._runtime._check(lib.tl_copy(self._value, ffi.from_buffer(out), count))
        return bytes(out)


class Module:
    """A file of tl's: its functions and variables are attributes."""

    def __init__(self, runtime, path, alias):
        self._runtime, self._path, self._alias, self._found = runtime, path, alias, {}

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._found.get(name)
        if found is None:
            try:
                found = self._runtime.eval(f"{self._alias}.{name}")
            except Error as error:
                raise AttributeError(f"{self._path} has no {name}: {error.message}") from None
            if isinstance(found, Function):
                self._found[name] = found
        return found

    def __repr__(self):
        return f"<tl module {self._path}>"


class Giving:
    """Arguments as values of tl's for the time of a call."""

    def __init__(self, runtime, arguments):
        self.runtime, self.arguments, self.given = runtime, arguments, []

    def __enter__(self):
        try:
            for argument in self.arguments:
                self.given.append(self.runtime._give(argument))
        except BaseException:
            self.__exit__()
            raise
        return self.given

    def __exit__(self, *_):
        for value in self.given:
            lib.tl_release(value)


class Runtime:
    """A runtime of its own: variables, memory, random numbers. Values belong to theirs."""

    def __init__(self, device=None, seed=None):
        error = ffi.new("tl_error **")
        runtime = lib.tl_runtime_new(device.encode() if device else NULL, error)
        if runtime == NULL:
            raise Error(error[0])
        self._handle = ffi.gc(runtime, lib.tl_runtime_free)
        self._modules, self._questions = 0, {}
        self._write = self._progress = self._picture = None
        if seed is not None:
            lib.tl_seed(runtime, seed)

    # --- errors and interrupts

    def _error(self):
        error = Error(lib.tl_last_error(self._handle)[0])
        return KeyboardInterrupt() if error.kind == "interrupt" else error

    def _check(self, status):
        if status != lib.TL_OK:
            raise self._error()

    def _ask(self, text, value):
        """What a function in tl, made once, says of a value."""
        question = self._questions.get(text)
        if question is None:
            question = ffi.gc(self._made(lib.run(self._handle, b"<python>", text.encode())), lib.tl_release)
            self._questions[text] = question
        return self._take(self._made(lib.call(question, [value._value], 1)))

    # --- values

    def _give(self, value):
        """A new reference to what a Python value is in tl."""
        handle = self._handle
        if value is None:
            return lib.tl_from_none(handle)
        if isinstance(value, Value):
            return lib.tl_retain(value._value)
        if isinstance(value, bool):
            return lib.tl_from_bool(handle, value)
        if isinstance(value, int):
            return lib.tl_from_int(handle, value)
        if isinstance(value, float):
            return lib.tl_from_float(handle, value)
        if isinstance(value, str):
            text = value.encode()
            return lib.tl_from_string(handle, text, len(text))
        if isinstance(value, (list, tuple)):
            with Giving(self, value) as given:
                return self._made(lib.tl_from_list(handle, given, len(given)))
        if isinstance(value, dict):
            names = [ffi.new("char[]", key.encode()) for key in value]
            with Giving(self, value.values()) as given:
                return self._made(lib.tl_from_dict(handle, names, given, len(given)))
        borrowed = _memory.borrow(value)
        if borrowed:
            return self._give_memory(*borrowed)
        if callable(value):
            return lib.tl_from_function(handle, lib.host_call, keep((self, value)), lib.host_release)
        raise TypeError(f"tl has nothing for a {type(value).__name__}")

    def _give_memory(self, memory, borrowed):
        out, context = ffi.new("tl_value **"), keep(borrowed)
        if lib.tl_from_memory(self._handle, memory[0], lib.host_release, context, out) != lib.TL_OK:
            host_release(context)
            raise self._error()
        return out[0]

    def _giving(self, arguments):
        return Giving(self, arguments)

    def _made(self, value):
        if value == NULL:
            raise self._error()
        return value

    def _take(self, value):
        """The Python value of a reference, which goes or is kept in it."""
        kind = lib.tl_kind_of(value)
        if kind == lib.TL_NONE:
            lib.tl_release(value)
            return None
        kept = KEPT.get(kind)
        if kept:
            return kept(self, value)
        try:
            return TAKERS[kind](self, value)
        finally:
            lib.tl_release(value)

    def _take_items(self, value):
        count, item = ffi.new("size_t *"), ffi.new("tl_value **")
        self._check(lib.tl_count(value, count))
        items = []
        for index in range(count[0]):
            self._check(lib.tl_item(value, index, item))
            items.append(self._take(item[0]))
        return items

    def _take_dict(self, value):
        key, keys = ffi.new("tl_value **"), []
        items = self._take_items(value)
        for index in range(len(items)):
            self._check(lib.tl_key(value, index, key))
            keys.append(self._take(key[0]))
        return dict(zip(keys, items))

    # --- what it does

    def run(self, text, name="<python>"):
        """Runs a program; what its last statement gives."""
        return self._take(self._made(lib.run(self._handle, name.encode(), text.encode())))

    eval = run

    def load(self, path):
        """The file as a module; its top level runs now."""
        path = os.path.abspath(path)
        self._modules += 1
        alias = f"python_module_{self._modules}"
        quoted = path.replace("\\", "\\\\").replace('"', '\\"')
        self.run(f'import "{quoted}" as {alias};')
        return Module(self, path, alias)

    def get(self, name):
        found = ffi.new("tl_value **")
        self._check(lib.tl_get(self._handle, name.encode(), found))
        return self._take(found[0])

    def set(self, name, value):
        with Giving(self, [value]) as given:
            self._check(lib.tl_set(self._handle, name.encode(), given[0]))

    def names(self):
        """The names that a program may use now, its own before those of the language."""
        found = ffi.new("tl_value **")
        self._check(lib.tl_names(self._handle, found))
        return self._take(found[0])

    def fields(self, value):
        """The fields of a struct by name."""
        return self._take_dict(value._value)

    def seed(self, seed):
        lib.tl_seed(self._handle, seed)

    def ledger(self):
        """What the runtime holds, in bytes and counts; borrowed_bytes are memory of Python's."""
        entry = ffi.new("tl_ledger_entry *")
        lib.tl_ledger(self._handle, entry)
        return {name: getattr(entry, name) for name in LEDGER}

    def interrupt(self):
        lib.tl_interrupt(self._handle)

    def on_output(self, write):
        """write(text, is_error) gets what is printed; None: the process's own streams do."""
        self._write = ffi.new_handle(write) if write else None
        lib.tl_on_output(self._handle, lib.host_write if write else NULL, self._write or NULL)

    def on_progress(self, progress):
        """progress(epoch, epochs, loss) is told of every epoch; None: nobody is."""
        self._progress = ffi.new_handle(progress) if progress else None
        lib.tl_on_progress(self._handle, lib.host_progress if progress else NULL, self._progress or NULL)

    def on_picture(self, picture):
        """picture(svg) gets each plot that has no path; None: plots are drawn in characters."""
        self._picture = ffi.new_handle(picture) if picture else None
        lib.tl_on_picture(self._handle, lib.host_picture if picture else NULL, self._picture or NULL)


def take_text(runtime, value):
    bytes_, length = ffi.new("const char **"), ffi.new("size_t *")
    runtime._check(lib.tl_to_string(value, bytes_, length))
    return ffi.buffer(bytes_[0], length[0])[:].decode()


def taker(read, kind, convert):
    def take(runtime, value):
        out = ffi.new(kind)
        runtime._check(read(value, out))
        return convert(out[0])
    return take


KEPT = {lib.TL_TENSOR: Tensor, lib.TL_FUNCTION: Function, lib.TL_STRUCT: Value, lib.TL_OTHER: Value}
TAKERS = {
    lib.TL_BOOL: taker(lib.tl_to_bool, "int *", bool), lib.TL_INT: taker(lib.tl_to_int, "int64_t *", int),
    lib.TL_FLOAT: taker(lib.tl_to_float, "double *", float), lib.TL_STRING: take_text,
    lib.TL_LIST: Runtime._take_items, lib.TL_TUPLE: lambda runtime, value: tuple(runtime._take_items(value)),
    lib.TL_DICT: Runtime._take_dict,
}
LEDGER = ("live_bytes", "live_buffers", "peak_bytes", "cached_bytes", "borrowed_bytes", "objects", "values")

# What tl holds of Python's, until it lets go.
held = {}


def keep(thing):
    handle = ffi.new_handle(thing)
    held[int(ffi.cast("uintptr_t", handle))] = handle
    return handle


@ffi.def_extern()
def host_release(context):
    thing = ffi.from_handle(context)
    del held[int(ffi.cast("uintptr_t", context))]
    if isinstance(thing, _memory.Borrowed):
        thing.release()


@ffi.def_extern(error=lib.TL_FAILED)
def host_call(context, handle, arguments, count, result):
    runtime, function = ffi.from_handle(context)
    try:
        given = function(*(runtime._take(lib.tl_retain(arguments[i])) for i in range(count)))
        result[0] = runtime._give(given)
        return lib.TL_OK
    except KeyboardInterrupt:
        lib.tl_interrupt(handle)
        return lib.tl_fail(handle, b"interrupt", b"interrupted", NULL)
    except Error as error:
        return lib.tl_fail(handle, error.kind.encode(), error.message.encode(), error.help.encode())
    except BaseException as error:
        message = f"{type(error).__name__}: {error}"
        return lib.tl_fail(handle, b"python", message.encode(), NULL)


@ffi.def_extern()
def host_write(context, is_error, chars, length):
    ffi.from_handle(context)(ffi.buffer(chars, length)[:].decode(errors="replace"), bool(is_error))


@ffi.def_extern()
def host_progress(context, epoch, epochs, loss):
    ffi.from_handle(context)(epoch, epochs, loss)


@ffi.def_extern()
def host_picture(context, chars, length):
    ffi.from_handle(context)(ffi.buffer(chars, length)[:].decode())


if threading.current_thread() is threading.main_thread():
    lib.watch_interrupts()

own = None
own_lock = threading.Lock()


def default():
    """The runtime that the functions of the module use, made at its first use."""
    global own
    with own_lock:
        if own is None:
            own = Runtime()
    return own


def run(text, name="<python>"):
    return default().run(text, name)


eval = run


def load(path):
    return default().load(path)


def get(name):
    return default().get(name)


def set(name, value):
    default().set(name, value)


def seed(seed):
    default().seed(seed)


def ledger():
    return default().ledger()
