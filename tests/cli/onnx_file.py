"""Writes .onnx files: messages of protocol buffers, of the fields that the tests need."""
import struct

FLOAT, UINT8, INT64, STRING, BOOL, FLOAT16, FLOAT64, COMPLEX64, FLOAT8 = 1, 2, 7, 8, 9, 10, 11, 14, 17
KINDS = {"f": FLOAT, "q": INT64, "?": BOOL, "d": FLOAT64, "B": UINT8, "e": FLOAT16}  # by the letters of struct


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def integer(number, value):
    return varint(number << 3) + varint(value)


def part(number, value):
    """A field with a length: bytes, a text or a message."""
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def fields(bytes):
    """The fields of a message: pairs of a number and what follows."""
    at = 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            byte = bytes[at]
            at += 1
            n |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return n
    while at < len(bytes):
        key = number()
        kind = key & 7
        if kind == 0:
            yield key >> 3, number()
            continue
        length = {1: 8, 5: 4}.get(kind) or number()
        yield key >> 3, bytes[at:at + length]
        at += length


def tensor(name, dims, numbers, letter="f", raw=True):
    """TensorProto; the numbers are bytes, or in fields of their own."""
    head = b"".join(integer(1, n) for n in dims) + integer(2, KINDS[letter]) + part(8, name)
    if raw:
        return head + part(9, struct.pack(f"<{len(numbers)}{letter}", *numbers))
    if letter == "f":
        return head + part(4, struct.pack(f"<{len(numbers)}f", *numbers))
    if letter == "d":
        return head + part(10, struct.pack(f"<{len(numbers)}d", *numbers))
    return head + part(7 if letter == "q" else 5, b"".join(varint(int(n)) for n in numbers))


def attribute(name, value):
    head = part(1, name)
    if isinstance(value, bytes):  # a tensor
        return head + part(5, value) + integer(20, 4)
    if isinstance(value, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", value) + integer(20, 1)
    if isinstance(value, int):
        return head + integer(3, value) + integer(20, 2)
    if isinstance(value, str):
        return head + part(4, value) + integer(20, 3)
    if value and isinstance(value[0], str):
        return head + b"".join(part(9, text) for text in value) + integer(20, 8)
    return head + b"".join(integer(8, n) for n in value) + integer(20, 7)


def node(operator, inputs, outputs, name="", domain="", **attributes):
    return b"".join([*(part(1, x) for x in inputs), *(part(2, x) for x in outputs), part(3, name), part(4, operator),
                     *(part(5, attribute(k, v)) for k, v in attributes.items()), part(7, domain)])


def variable(name, dims=None, kind=FLOAT):
    """A name and a type; sizes are numbers, names or None."""
    shape = b"" if dims is None else part(2, b"".join(
        part(1, b"" if n is None else part(2, n) if isinstance(n, str) else integer(1, n)) for n in dims))
    return part(1, name) + part(2, part(1, integer(1, kind) + shape))


def graph(nodes=(), inputs=(), outputs=(), weights=()):
    return b"".join([*(part(1, x) for x in nodes), part(2, "g"), *(part(5, x) for x in weights),
                     *(part(11, x) for x in inputs), *(part(12, x) for x in outputs)])


def model(nodes=(), inputs=(), outputs=(), weights=(), version=13, domain=""):
    return integer(1, 8) + part(2, "tests") + part(7, graph(nodes, inputs, outputs, weights)) + \
        part(8, part(1, domain) + integer(2, version))
