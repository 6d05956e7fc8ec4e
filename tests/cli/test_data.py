"""Loaders over tensors, CSV files, folders of pictures and texts: what batches hold, in which order, read ahead
or not, and what mistakes in files say."""
import struct
import unittest
import zlib

from tl import InFolder


def png(rows, colour, bits=8):
    """A picture; rows of bytes, colour 0 (gray), 2 (RGB) or 6 (RGBA)."""
    samples = {0: 1, 2: 3, 6: 4}[colour] * bits // 8

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    header = struct.pack(">IIBBBBB", len(rows[0]) // samples, len(rows), bits, colour, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class Data(InFolder):
    options = ("--seed", "3")

    def test_tensors(self):
        self.prints("""
            let x = arange(7)
            let y = arange(7) * 10
            let data = loader((x, y), batch: 3)
            print(len(data))
            for a, b in data { print(a, b) }
            print([a for a, b in loader((x, y), batch: 3, drop_last: true)])
            for batch in loader({"x": x, "y": y}, batch: 5, rows: [6, 0, 1]) { print(batch) }
            for a, b in loader((x, y), batch: 4, map: fn(a, b) { (a as float32 * 0.5, b + 1) }) { print(a, b) }
            for i, a in loader(x, batch: 4) { print(i, a) }
            for a in loader(x[:0]) { print("never") }
            for a in data { break }
            """, "3", "[0 1 2] [ 0 10 20]", "[3 4 5] [30 40 50]", "[6] [60]", "[[0 1 2], [3 4 5]]",
            '{"x": [6 0 1], "y": [60  0 10]}', "[0.  0.5 1.  1.5] [ 1 11 21 31]", "[2.  2.5 3. ] [41 51 61]",
            "0 [0 1 2 3]", "1 [4 5 6]")

    def test_orders(self):
        self.prints("""
            fn order(data) { concat([a for a in data], 0).to_list() }
            let x = arange(100)
            let seeded = loader(x, batch: 7, shuffle: true, seed: 5)
            let (first, second) = (order(seeded), order(seeded))
            assert_eq(sorted(first), x.to_list())
            assert_eq(sorted(second), x.to_list())
            let again = loader(x, batch: 9, shuffle: true, seed: 5)
            print(first == second, first == x.to_list(), first == order(again), second == order(again))
            // Without a seed by the program's random numbers, which may be put back.
            let own = loader(x, batch: 7, shuffle: true)
            seed(1)
            let one = order(own)
            let two = order(own)
            seed(1)
            print(one == two, one == order(own), two == order(own))
            // Each place is as likely for each row: mean and spread of where row 0 comes.
            let places = [index_of(order(seeded), 0) for i in 0..400]
            print(abs(mean(tensor(places)) - 49.5) < 5.0, abs(std(tensor(places) as float32) - 28.9) < 3.0)
            """, "false false true true", "false true true", "true true")

    def test_csv(self):
        (self.folder / "a.csv").write_text('x, "y",class\r\n1,2.5,0\r\n\r\n-3e2 ,4,1\n5,6,2')
        (self.folder / "b.csv").write_text("1;2\n3;4\n")
        self.prints("""
            for ahead in list(0, 1, 5) {
                for x, y in loader(csv_rows("a.csv", target: "class"), batch: 2, prefetch: ahead) { print(x.to_list(), y, y.dtype) }
            }
            for x in loader(csv_rows("b.csv", separator: ";")) { print(x.to_list()) }
            for x, y in loader(csv_rows("b.csv", target: -2, separator: ";")) { print(x.to_list(), y) }
            print(len(csv_rows("a.csv")))
            """, *["[[1.0, 2.5], [-300.0, 4.0]] [0. 1.] float32", "[[5.0, 6.0]] [2.] float32"] * 3,
            "[[1.0, 2.0], [3.0, 4.0]]", "[[2.0], [4.0]] [1. 3.]", "3")

    def test_a_large_file_is_not_kept(self):
        # 40 MB of rows pass through a process that never holds them as tensors or values.
        row = ",".join(["0.125"] * 200) + "\n"
        (self.folder / "large.csv").write_text(row * 33000)
        self.prints("""
            let total = 0.0
            for x in loader(csv_rows("large.csv"), batch: 500, shuffle: true) { total += sum(x) as float }
            print(total)
            print(memory().peak < 4 * 1048576)
            """, "825000.0", "true")

    def test_pictures(self):
        for name in ("cat", "dog"):
            (self.folder / "p" / name).mkdir(parents=True)
        gray = png([[0, 51], [102, 255]], 0)
        (self.folder / "p/cat/1.png").write_bytes(gray)
        (self.folder / "p/cat/2.pgm").write_bytes(b"P5 # two\n2 2 255\n" + bytes([255, 0, 51, 0]))
        (self.folder / "p/dog/a.PNG").write_bytes(gray)
        (self.folder / "p/dog/notes.txt").write_text("no picture")
        (self.folder / "c").mkdir()
        (self.folder / "c/1.png").write_bytes(png([[255, 0, 0, 0, 51, 255]], 2))
        (self.folder / "c/2.ppm").write_bytes(b"P6\n2 1\n65535\n" + struct.pack(">6H", 65535, 0, 0, 0, 13107, 0))
        (self.folder / "c/3.png").write_bytes(png([[255, 255, 255, 0, 255, 255, 255, 255]], 6))
        (self.folder / "c/4.png").write_bytes(png([[102, 204]], 0))
        (self.folder / "deep").mkdir()
        (self.folder / "deep/1.png").write_bytes(png([[51, 51, 204, 204]], 0, bits=16))
        self.prints("""
            for x in loader(image_folder("deep")) { print(x) }
            let pictures = image_folder("p")
            print(len(pictures), pictures.classes)
            for x, y in loader(pictures, batch: 8) { print(x.shape, y); print((x * 5.0)[:, 0].to_list()) }
            for x in loader(image_folder("c")) { print((x * 5.0).to_list()) }
            for x in loader(image_folder("c", gray: true), rows: list(0)) { print(x) }
            for x, y in loader(image_folder("p", size: [1, 4]), rows: list(0)) { print(x) }
            for x, y in loader(image_folder("p", size: [70, 90]), rows: list(0)) { print(x.shape) }
            """, "[[[[0.2 0.8]]]]", '3 ["cat", "dog"]', "[3, 1, 2, 2] [0 0 1]",
            "[[[0.0, 1.0], [2.0, 5.0]], [[5.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [2.0, 5.0]]]",
            "[[[[5.0, 0.0]], [[0.0, 1.0]], [[0.0, 5.0]]], [[[5.0, 0.0]], [[0.0, 1.0]], [[0.0, 0.0]]], "
            "[[[0.0, 5.0]], [[0.0, 5.0]], [[0.0, 5.0]]], [[[2.0, 4.0]], [[2.0, 4.0]], [[2.0, 4.0]]]]",
            "[[[[0.299  0.2314]]]]", "[[[[0.2 0.3 0.5 0.6]]]]", "[1, 1, 70, 90]")

    def test_text(self):
        (self.folder / "t.txt").write_text("abcdefghij")
        self.prints("""
            for x, y in loader(text_windows("t.txt", 3), batch: 2) { print(x.to_list(), y.to_list()) }
            """, "[[97, 98, 99], [100, 101, 102]] [[98, 99, 100], [101, 102, 103]]",
            "[[103, 104, 105]] [[104, 105, 106]]")

    def test_lines(self):
        (self.folder / "t.txt").write_bytes("one\r\ntwo\n\nfünf\nlast".encode())
        (self.folder / "none.txt").write_text("")
        self.prints("""
            for ahead in list(0, 1, 5) { print([lines for lines in loader(text_lines("t.txt"), batch: 2, prefetch: ahead)]) }
            print(len(text_lines("t.txt")), len(text_lines("none.txt")))
            for lines in loader(text_lines("none.txt")) { print("never") }
            print([n for n in loader(text_lines("t.txt"), batch: 3, drop_last: true, map: fn(lines) { [len(l) for l in lines] })])
            fn order(data) { let all = []; for lines in data { all.extend(lines) }; all }
            let seeded = loader(text_lines("t.txt"), batch: 2, shuffle: true, seed: 4)
            let (first, second) = (order(seeded), order(seeded))
            print(sorted(first) == sorted(second), first == second, first == order(loader(text_lines("t.txt"), shuffle: true, seed: 4)))
            for lines in loader(text_lines("t.txt"), batch: 1) { print(lines); break }
            """, *['[["one", "two"], ["", "fünf"], ["last"]]'] * 3, "5 0", "[[3 3 0]]", "true false true", '["one"]')

    def test_learning_from_batches(self):
        # The imperative form, interrupted by nothing: a line through points of a file.
        (self.folder / "line.csv").write_text("".join(f"{i / 50},{3 * i / 50 + 1}\n" for i in range(100)))
        self.prints("""
            let data = loader(csv_rows("line.csv", target: 1), batch: 10, shuffle: true)
            tensor w: float32[1, 1] learnable = zeros()
            tensor b: float32[1] learnable
            learn {
                optimizer: sgd(lr: 0.1), epochs: 60, progress: false
                for epoch in range(epochs) {
                    for x, y in data { backward(mean((x @ w + b - unsqueeze(y, 1)) ** 2)) }
                }
            }
            assert_about_eq(w, [[3.0]], 1e-2)
            assert_about_eq(b, [1.0], 1e-2)
            print("found")
            """, "found")

    def test_quotes_in_a_file_of_numbers(self):
        (self.folder / "quoted.csv").write_bytes(b'"a,b", " y " ,c\r\n"1", 2 ," 3"\n4,"5",6\n')
        self.prints("""
            for x, y in loader(csv_rows("quoted.csv", target: "y")) { print(x.to_list(), y) }""", "[[1.0, 3.0], [4.0, 6.0]] [2. 5.]")
        for bad, said in ((b'a,b\n"1,2\n3,4\n', 'x.csv:2: column 0 is ""1", which is not a number'),
                          (b"a,b\n1,\0002\n", 'x.csv:2: column 1 is "'),
                          (b'a,b\n"1,5",2\n', 'x.csv:2: column 0 is "1,5", which is not a number')):
            (self.folder / "x.csv").write_bytes(bad)
            self.fails('for x in loader(csv_rows("x.csv")) { print(x) }', said)

    def test_mistakes(self):
        (self.folder / "bad.csv").write_text("1,2\n3,x\n")
        (self.folder / "short.csv").write_text("1,2\n3\n")
        (self.folder / "long.csv").write_text("1,2\n3,4,5\n")
        (self.folder / "empty.csv").write_text("a,b\n")
        (self.folder / "p").mkdir()
        (self.folder / "q").mkdir()
        (self.folder / "p/1.pgm").write_bytes(b"P5 2 1 255\n12")
        (self.folder / "p/2.pgm").write_bytes(b"P5 1 1 255\n1")
        (self.folder / "q/1.pgm").write_bytes(b"P5 2 2 255\n12")
        (self.folder / "t.txt").write_text("abc")
        (self.folder / "latin.txt").write_bytes(b"good\nr\xe9d\n")
        for ahead in (0, 2):
            def walk(source):
                return f"for x in loader({source}, prefetch: {ahead}) {{ }}"
            self.fails(walk('csv_rows("bad.csv")'), 'error[format]: bad.csv:2: column 1 is "x", which is not a number')
            self.fails(walk('csv_rows("short.csv")'), "short.csv:2: the row has 1 columns, the first one 2")
            self.fails(walk('csv_rows("long.csv")'), "long.csv:2: the row has more than the 2 columns of the first one")
            self.fails(walk('text_lines("latin.txt")'), "error[format]: latin.txt:2: byte 2 of the line is not UTF-8")
            self.fails(walk('image_folder("p")'), "error[shape]: p/2.pgm is 1 x 1, but the first picture is 1 x 2")
            self.fails(walk('image_folder("p")'), "help: size: [height, width] scales all of them")
        self.fails('csv_rows("empty.csv")', "error[format]: empty.csv has no rows")
        self.fails('csv_rows("bad.csv", target: "z")', "error[name]: bad.csv has no column z")
        self.fails('csv_rows("bad.csv", target: 1.5)', "csv_rows: target must be a column's name or number, but it is 1.5")
        self.fails('csv_rows("bad.csv", separator: "ab")', 'csv_rows: the separator must be one character, but it is "ab"')
        self.fails('csv_rows("none.csv")', "error[io]: ")
        self.fails('image_folder("none")', "error[io]: cannot read the folder none: No such file or directory")
        self.fails('image_folder("q")', "error[format]: q/1.pgm: its header does not fit its bytes")
        self.fails('image_folder("p", size: [3])', "image_folder: size must be [height, width], but it is ")
        (self.folder / "q/1.pgm").write_bytes(b"GIF89a")
        self.fails('image_folder("q")', "error[format]: q/1.pgm is not a PNG, JPEG, WebP, BMP, PGM or PPM file")
        (self.folder / "q/1.pgm").unlink()
        self.fails('image_folder("q")', "error[value]: there are no pictures (.png, .jpg, .webp, .bmp, .pgm, .ppm) in q")
        (self.folder / "q/1.png").write_bytes(png([[1, 2]], 0)[:60])
        self.fails('image_folder("q")', "error[format]: q/1.png: ")
        self.fails('text_windows("t.txt", 3)', "error[value]: t.txt has 3 bytes, too few for one window of 3")
        self.fails('text_lines("none.txt")', "error[io]: ")
        self.fails('text_windows("t.txt", 0)', "error[value]: text_windows: length is 0; it must be at least 1")
        self.fails("loader([1, 2], batch: 0)", "error[value]: loader: batch is 0; it must be at least 1")
        self.fails("loader([1, 2], prefetch: -1)", "error[value]: loader: prefetch is -1; it must be from 0 to 1000")
        self.fails("loader([1, 2], rows: list(2))", "error[index]: loader: row 2 is not one of 2")
        self.fails("loader(([1, 2], [1]))", "error[shape]: loader: one part has 2 rows, another 1")
        self.fails("loader(5)", "error[type]: loader: source must be a tensor with rows, a tuple or dictionary of such, "
                   "or what csv_rows, image_folder, text_lines or text_windows gives, but it is 5")
        self.fails('loader((text_windows("t.txt", 1), [1, 2]))', "a part of the loader's source must be a tensor, but it is ")
        self.fails('text_windows("t.txt", 1).size', "a source of data has `classes`, but no field `size`")


if __name__ == "__main__":
    unittest.main()
