"""Values as notebooks show them: HTML that holds numbers and texts, never a tensor."""
import html
import math
import struct

from ._memory import DTYPES
from ._runtime import Tensor, Value
from ._tl import lib

SHOWN = 8  # rows and columns of a table
DEEP, WIDE = 6, 200  # of a tree: levels, and entries of a level
MAP_SIDE = 48  # squares of a heat map along a side
COLOURS = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37))
STYLE = "font-family:monospace;font-size:12px"


def rich(value):
    """The HTML of a value, or None where its text says it all."""
    if isinstance(value, Tensor):
        return tensor(value)
    if isinstance(value, (dict, list, tuple)) or is_struct(value):
        return f'<div style="{STYLE}">{tree(value, "", 0)}</div>'
    return None


def is_struct(value):
    return isinstance(value, Value) and lib.tl_kind_of(value._value) == lib.TL_STRUCT


# --- tensors

def number(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return f"{value:.4g}"


def places(size, most):
    """Which of `size` places are shown, with None for a gap."""
    if size <= most:
        return list(range(size))
    half = most // 2
    return [*range(half), None, *range(size - (most - half), size)]


def table(cells, shape):
    """A table of a matrix's numbers; long ones with a gap in the middle."""
    rows = []
    for row in places(shape[0], SHOWN):
        line = "".join(f'<td style="text-align:right;padding:1px 6px">{"…" if row is None or at is None else number(cells(row, at))}</td>'
                       for at in places(shape[1], SHOWN))
        rows.append(f"<tr>{line}</tr>")
    return f'<table style="{STYLE};border-collapse:collapse">{"".join(rows)}</table>'


def colour(share):
    at = min(max(share, 0.0), 1.0) * (len(COLOURS) - 1)
    first = min(int(at), len(COLOURS) - 2)
    mix = [round(a + (b - a) * (at - first)) for a, b in zip(COLOURS[first], COLOURS[first + 1])]
    return "#%02x%02x%02x" % tuple(mix)


def heat_map(cells, shape):
    """The matrix as coloured squares, picked out evenly where it is large."""
    rows, columns = min(shape[0], MAP_SIDE), min(shape[1], MAP_SIDE)
    picked = [[float(cells(y * shape[0] // rows, x * shape[1] // columns)) for x in range(columns)] for y in range(rows)]
    finite = [v for row in picked for v in row if math.isfinite(v)]
    if not finite:
        return ""
    low, high = min(finite), max(finite)
    scale = high - low or 1.0
    side = max(2, min(12, 144 // max(rows, columns)))
    squares = "".join(f'<rect x="{x * side}" y="{y * side}" width="{side}" height="{side}" fill="{colour((v - low) / scale) if math.isfinite(v) else "#888"}"/>'
                      for y, row in enumerate(picked) for x, v in enumerate(row))
    return (f'<svg width="{columns * side}" height="{rows * side}" style="margin:4px"><title>from {number(low)} to {number(high)}</title>'
            f"{squares}</svg>")


def size_text(count):
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:.4g} GB"


def tensor(value):
    """Shape, dtype and place, numbers, and a heat map; of more than two dimensions the first matrix."""
    dtype, shape = value.dtype, value.shape
    count = math.prod(shape)
    bits = DTYPES[dtype][1] if dtype in DTYPES else None
    size = f", {size_text(count * bits // 8)}" if bits else ""
    head = f"{dtype} [{', '.join(map(str, shape))}]{size}"
    if not count or not bits:
        return f'<div style="{STYLE}"><b>{head}</b></div>'
    matrix, part = first_matrix(value, shape)
    rows, columns = matrix.shape
    picked, where = thinned(matrix, rows, columns)
    numbers = numbers_of(picked)
    width = picked.shape[1]

    def cells(row, column):
        return numbers[where[0][row] * width + where[1][column]]
    shown = heat_map(cells, (rows, columns)) if rows > 1 and columns > 1 else ""
    body = table(cells, (rows, columns))
    return f'<div style="{STYLE}"><b>{head}</b>{part}<div style="display:flex">{body}{shown}</div></div>'


def first_matrix(value, shape):
    ask = value._runtime._ask
    if len(shape) > 2:
        text = "fn(x) { x" + "[0]" * (len(shape) - 2) + " }"
        return ask(text, value), f" <span>[{', '.join(['0'] * (len(shape) - 2))}] is shown</span>"
    if len(shape) < 2:
        return ask("fn(x) { reshape(x, [1, -1]) }", value), ""
    return value, ""


def wanted(size):
    """The places of a dimension that the table or the heat map shows, and where each is among them."""
    step = min(size, MAP_SIDE)
    kept = sorted({place for place in places(size, SHOWN) if place is not None} | {i * size // step for i in range(step)})
    return kept, {place: at for at, place in enumerate(kept)}


def thinned(matrix, rows, columns):
    """A small matrix of what is shown, so that no more leaves the device."""
    down, down_at = wanted(rows)
    across, across_at = wanted(columns)
    if len(down) < rows or len(across) < columns:
        matrix = matrix._runtime._ask(f"fn(x) {{ x[tensor({down})][:, tensor({across})] }}", matrix)
    return matrix, (down_at, across_at)


def numbers_of(matrix):
    dtype = matrix.dtype
    form = {"int64": "q", "int32": "i", "int16": "h", "int8": "b", "uint8": "B", "bool": "?", "float64": "d", "float32": "f", "float16": "e"}.get(dtype)
    if form is None:
        matrix, form = matrix._runtime._ask("fn(x) { x as float32 }", matrix), "f"
    data = matrix.copy_bytes()
    return struct.unpack(f"={len(data) // struct.calcsize('=' + form)}{form}", data)


# --- trees

def label(name):
    return f"<b>{html.escape(name)}</b>: " if name else ""


def leaf(value):
    if isinstance(value, Tensor):
        return html.escape(f"{value.dtype}[{', '.join(map(str, value.shape))}]")
    if isinstance(value, str):
        text = value if len(value) <= 200 else value[:200] + "…"
        return html.escape(repr(text))
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    text = str(value)
    return html.escape(text if len(text) <= 200 else text[:200] + "…")


def tree(value, name, depth):
    """A value as nested lists that open and close."""
    if isinstance(value, dict):
        head, entries = f"dictionary of {len(value)}", [(str(key), item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        head, entries = f"{'tuple' if isinstance(value, tuple) else 'list'} of {len(value)}", [(str(i), item) for i, item in enumerate(value)]
    elif is_struct(value):
        head, entries = str(value).split(" ")[0], list(value._runtime.fields(value).items())
    else:
        return f"<div>{label(name)}{leaf(value)}</div>"
    if depth == DEEP:
        return f"<div>{label(name)}{html.escape(head)}, …</div>"
    inside = "".join(tree(item, key, depth + 1) for key, item in entries[:WIDE])
    more = f"<div>… {len(entries) - WIDE} more</div>" if len(entries) > WIDE else ""
    opened = " open" if depth == 0 else ""
    return (f'<details{opened}><summary>{label(name)}{html.escape(head)}</summary><div style="margin-left:1.5em">{inside}{more}</div></details>')
