#!/usr/bin/env python3
"""Writes digits.csv: 600 pictures of handwriting-like digits, 8 x 8 pixels from 0 to 9, one a line:
the digit, then the pixels. Always the same file."""
import random
from pathlib import Path

GLYPHS = ["01110100011001110101110011000101110", "00100011000010000100001000010001110",
          "01110100010000100010001000100011111", "11111000100010000010000011000101110",
          "00010001100101010010111110001000010", "11111100001111000001000011000101110",
          "00110010001000011110100011000101110", "11111000010001000100010000100001000",
          "01110100011000101110100011000101110", "01110100011000101111000010001001100"]


def picture(digit, generator):
    pixels = [generator.randint(0, 2) for _ in range(64)]
    left, top, ink = generator.randint(0, 3), generator.randint(0, 1), generator.randint(5, 9)
    slant = generator.choice([0, 0, 1])
    for row in range(7):
        for column in range(5):
            x = left + column + (slant if row < 3 else 0)
            if GLYPHS[digit][row * 5 + column] == "1" and x < 8 and generator.random() > 0.05:
                pixels[(top + row) * 8 + x] = min(9, ink + generator.randint(-1, 1))
    return pixels


def main():
    generator = random.Random(20)
    lines = [",".join(map(str, [i % 10] + picture(i % 10, generator))) for i in range(600)]
    Path(__file__).with_name("digits.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
