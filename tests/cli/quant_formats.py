"""GGUF's block formats that no fixture holds, decoded in double from their description. The lattices
are read from the source and compared with the digests of the published ones."""
import functools
import hashlib
import re
import struct

from tl import ROOT

# sha256 of the lattice, a signed byte for each number.
DIGESTS = {
    "grid_iq2_xxs": "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54",
    "grid_iq2_xs": "06e47aaca60b4dc1d9b5a3f34540437058a6b142b4d7a59d5ded769b4d1bf1de",
    "grid_iq2_s": "e1aa1473412b0552c2174c30ef22ab4073f6a181b85a17056e8249bd2932fd88",
    "grid_iq3_xxs": "46e35f5a997efdee6c99ce57854c8a0d4f0ff8ca57e5e8a60c0793ea580acf5d",
    "grid_iq3_s": "bd1af4945a1717c65610b0284e4628b9a1ba3b306fae3a06f6e5f597356e349f",
    "grid_iq1": "07540ffc1aeaf6ad4d97e96b0fcc765aae39671d4ae4a27bbd0e796fde167c6a",
}
# Elements and bytes of a block, and where its float16 factor lies (None: it has another kind).
BLOCKS = {"mxfp4": (32, 17, None), "iq2_xxs": (256, 66, 0), "iq2_xs": (256, 74, 0), "iq2_s": (256, 82, 0),
          "iq3_xxs": (256, 98, 0), "iq3_s": (256, 110, 0), "iq1_s": (256, 50, 0), "iq1_m": (256, 56, None)}
NUMBERS = {"mxfp4": 39, "iq2_xxs": 16, "iq2_xs": 17, "iq2_s": 22, "iq3_xxs": 18, "iq3_s": 21, "iq1_s": 19, "iq1_m": 29}


@functools.cache
def lattice(name):
    text = (ROOT / "src/device/cpu/grids.c").read_text()
    entries = [int(word, 16) for word in re.findall("0x[0-9a-f]+", re.search(rf"{name}\[\d+\] = {{(.*?)}}", text, re.S)[1])]
    if "iq3" in name:
        levels = [4, 12, 20, 28, 36, 44, 52, 62] if "xxs" in name else [1, 3, 5, 7, 9, 11, 13, 15]
        rows = [[levels[entry >> 3 * i & 7] for i in range(4)] for entry in entries]
    else:
        levels = [-1, 0, 1] if "iq1" in name else [8, 25, 43]
        rows = [[levels[entry >> 2 * i & 3] for i in range(8)] for entry in entries]
    return rows


def digest(rows):
    return hashlib.sha256(b"".join(struct.pack(f"{len(row)}b", *row) for row in rows)).hexdigest()


def half(data):
    return struct.unpack("<e", data[:2])[0]


def signed(row, bits):
    return [-x if bits >> i & 1 else x for i, x in enumerate(row)]


def even(bits):
    """Seven signs, and the eighth that makes their number even."""
    return bits | (bits.bit_count() & 1) << 7


def mxfp4(block):
    values = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    nibbles = [byte & 15 for byte in block[1:]] + [byte >> 4 for byte in block[1:]]
    return [(-1 if n & 8 else 1) * values[n & 7] * 2.0 ** (block[0] - 127) for n in nibbles]


def iq2_xxs(block):
    grid, result = lattice("grid_iq2_xxs"), []
    for g in range(8):
        entries = block[2 + 8 * g:6 + 8 * g]
        word, = struct.unpack("<I", block[6 + 8 * g:10 + 8 * g])
        scale = half(block) * (0.5 + (word >> 28)) / 4
        for i, entry in enumerate(entries):
            result += [scale * x for x in signed(grid[entry], even(word >> 7 * i & 127))]
    return result


def iq2_xs(block):
    grid, result = lattice("grid_iq2_xs"), []
    for i, word in enumerate(struct.unpack("<32H", block[2:66])):
        scale = half(block) * (0.5 + (block[66 + i // 4] >> 4 * (i // 2 % 2) & 15)) / 4
        result += [scale * x for x in signed(grid[word & 511], even(word >> 9))]
    return result


def iq2_s(block):
    grid, result = lattice("grid_iq2_s"), []
    for i in range(32):
        entry = block[2 + i] | (block[66 + i // 4] >> 2 * (i % 4) & 3) << 8
        scale = half(block) * (0.5 + (block[74 + i // 4] >> 4 * (i // 2 % 2) & 15)) / 4
        result += [scale * x for x in signed(grid[entry], block[34 + i])]
    return result


def iq3_xxs(block):
    grid, result = lattice("grid_iq3_xxs"), []
    for i in range(32):
        word, = struct.unpack("<I", block[66 + i // 4 * 4:70 + i // 4 * 4])
        eight = grid[block[2 + 2 * i]] + grid[block[3 + 2 * i]]
        scale = half(block) * (0.5 + (word >> 28)) / 2
        result += [scale * x for x in signed(eight, even(word >> 7 * (i % 4) & 127))]
    return result


def iq3_s(block):
    grid, result = lattice("grid_iq3_s"), []
    for i in range(32):
        high = block[66 + i // 4] >> 2 * (i % 4)
        eight = grid[block[2 + 2 * i] | (high & 1) << 8] + grid[block[3 + 2 * i] | (high >> 1 & 1) << 8]
        scale = half(block) * (1 + 2 * (block[106 + i // 8] >> 4 * (i // 4 % 2) & 15))
        result += [scale * x for x in signed(eight, block[74 + i])]
    return result


def iq1_s(block):
    grid, result = lattice("grid_iq1"), []
    for i in range(32):
        word, = struct.unpack("<H", block[34 + i // 4 * 2:36 + i // 4 * 2])
        entry = block[2 + i] | (word >> 3 * (i % 4) & 7) << 8
        shift = -0.125 if word >> 15 else 0.125
        result += [half(block) * (2 * (word >> 12 & 7) + 1) * (x + shift) for x in grid[entry]]
    return result


def iq1_m(block):
    grid, result = lattice("grid_iq1"), []
    words = struct.unpack("<4H", block[48:56])
    factor = half(struct.pack("<H", sum((word >> 12) << 4 * i for i, word in enumerate(words))))
    for i in range(32):
        nibble = block[32 + i // 2] >> 4 * (i % 2) & 15
        scale = factor * (2 * (words[i // 8] >> 3 * (i // 2 % 4) & 7) + 1)
        shift = -0.125 if nibble & 8 else 0.125
        result += [scale * (x + shift) for x in grid[block[i] | (nibble & 7) << 8]]
    return result


def random_block(random, name):
    """Random bits, with factors of a sensible size."""
    _, size, place = BLOCKS[name]
    block = bytearray(random.randbytes(size))
    if place is not None:
        block[place:place + 2] = struct.pack("<e", random.uniform(-0.1, 0.1))
    if name == "mxfp4":
        block[0] = random.choice([0, 1, 2, 119, 125, 127])
    if name == "iq1_m": # the high byte of a float16 lies in the last two words' top nibbles
        block[53], block[55] = block[53] & 15 | 0x50, block[55] & 15 | 0x20
    return bytes(block)


def file_of_blocks(tensors):
    """A GGUF file of tensors {name: (format, rows, columns, bytes)}."""
    head, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 0), b""
    for name, (number, rows, columns, blocks) in tensors.items():
        head += struct.pack("<Q", len(name)) + name.encode()
        head += struct.pack("<IQQIQ", 2, columns, rows, number, len(data))
        data += blocks + bytes(-len(blocks) % 32)
    return head + bytes(-len(head) % 32) + data
