"""load_image and save_image: pictures of every format there and back, those of other programs, and what mistakes say."""
import struct
import tempfile
import unittest
from pathlib import Path

from tl import InFolder
from test_data import png


def bmp(bits, rows, width=2, compression=0, info=b"", header=40, colours=0, data=None):
    """A file of BMP; `info` is what follows the first 40 bytes of its header: masks and the palette."""
    data = 14 + 40 + len(info) if data is None else data
    return (b"BM" + struct.pack("<IHHI", 0, 0, 0, data) + struct.pack("<IiiHHIIiiII", header, width, len(rows), 1, bits, compression, 0, 0, 0, colours, 0)
            + info + b"".join(rows))


class Images(InFolder):
    def test_there_and_back(self):
        self.prints("""
            let bytes = (arange(3 * 5 * 7) * 7 % 256) as uint8
            for channels in 1..=4 {
                let x = reshape(concat([bytes, bytes], 0)[:channels * 35], [channels, 5, 7])
                for format in list("png", "webp", "bmp", "ppm") {
                    if channels == 2 and format != "png" { continue }
                    if channels == 4 and format == "ppm" { continue }
                    if channels == 4 and format == "webp" { x = concat([x[:3], ones([1, 5, 7]) as uint8], 0) }
                    save_image(x, "x." + format, quality: 100)
                    let y = load_image("x." + format)
                    assert_eq(round(y[:channels] * 255.0) as uint8, x)
                    let z = load_image("x." + format)
                    save_image(z, "z." + format, quality: 100)
                    assert_eq(load_image("z." + format), z)
                    print(format, y.shape, y.dtype)
                }
            }
            """, "png [1, 5, 7] float32", "webp [3, 5, 7] float32", "bmp [1, 5, 7] float32", "ppm [1, 5, 7] float32", "png [2, 5, 7] float32",
            "png [3, 5, 7] float32", "webp [3, 5, 7] float32", "bmp [3, 5, 7] float32", "ppm [3, 5, 7] float32",
            "png [4, 5, 7] float32", "webp [4, 5, 7] float32", "bmp [4, 5, 7] float32")

    def test_lossy(self):
        self.prints("""
            let ramp = broadcast_to(arange(32) as float32 / 31.0, [3, 24, 32])
            for name in list("a.jpg", "a.JPEG", "a.webp") {
                save_image(ramp, name)
                print(load_image(name).shape, max(abs(load_image(name) - ramp)) < 0.05)
            }
            save_image(ramp[0], "gray.jpg", quality: 100)
            print(load_image("gray.jpg").shape, max(abs(load_image("gray.jpg") - ramp[:1])) < 0.01)
            let noise = rand([3, 64, 64])
            save_image(noise, "low.jpg", quality: 5)
            save_image(noise, "high.jpg", quality: 95)
            let low = mean(abs(load_image("low.jpg") - noise))
            print(mean(abs(load_image("high.jpg") - noise)) < low)
            """, "[3, 24, 32] true", "[3, 24, 32] true", "[3, 24, 32] true", "[1, 24, 32] true", "true")
        self.assertLess((self.folder / "low.jpg").stat().st_size, (self.folder / "high.jpg").stat().st_size)
        self.assertTrue((self.folder / "a.jpg").read_bytes().startswith(b"\xff\xd8\xff"))
        self.assertEqual((self.folder / "a.webp").read_bytes()[8:12], b"WEBP")

    def test_numbers(self):
        self.prints("""
            save_image([[-1.0, 0.5, 2.0]], "a.png")
            print(load_image("a.png") * 255.0)
            save_image([[true, false]], "b.png")
            print(load_image("b.png"))
            save_image(f16::ones([1, 2]), "c.png")
            print(load_image("c.png"))
            """, "[[[  0. 128. 255.]]]", "[[[1. 0.]]]", "[[[1. 1.]]]")

    def test_channels_and_sizes(self):
        (self.folder / "a.png").write_bytes(png([[255, 0, 0, 51, 0, 255, 0, 255]], 6))
        self.prints("""
            for channels in 0..=4 { print(round(load_image("a.png", channels) * 5000.0).to_list()) }
            print(load_image("a.png", size: [3, 4]).shape, load_image("a.png", 1, [1, 1]))
            """, "[[[5000.0, 0.0]], [[0.0, 5000.0]], [[0.0, 0.0]], [[1000.0, 5000.0]]]", "[[[299.0, 2935.0]]]",
            "[[[1495.0, 2935.0]], [[1000.0, 5000.0]]]", "[[[1000.0, 0.0]], [[0.0, 5000.0]], [[0.0, 0.0]]]",
            "[[[5000.0, 0.0]], [[0.0, 5000.0]], [[0.0, 0.0]], [[1000.0, 5000.0]]]", "[4, 3, 4] [[[0.3234]]]")

    def test_depths(self):
        (self.folder / "deep.png").write_bytes(png([[0, 0, 0x12, 0x34, 0xff, 0xff]], 0, bits=16))
        (self.folder / "deep.pgm").write_bytes(b"P5\n2 1\n1000\n" + struct.pack(">2H", 250, 1000))
        masks = struct.pack("<4I", 0xF800, 0x7E0, 0x1F, 0)
        (self.folder / "five.bmp").write_bytes(bmp(16, [struct.pack("<2H", 0x7C00, 0x1F)]))
        (self.folder / "six.bmp").write_bytes(bmp(16, [struct.pack("<2H", 0x7E0, 0xF800)], compression=3, info=masks))
        (self.folder / "three.bmp").write_bytes(bmp(16, [struct.pack("<2H", 0x7E0, 0xF800)], compression=3, info=masks[:12]))
        palette = bytes([255, 0, 0, 0]) + bytes([0, 0, 255, 0])
        (self.folder / "one.bmp").write_bytes(bmp(1, [b"\x40\0\0\0", b"\x80\0\0\0"], info=palette))
        (self.folder / "four.bmp").write_bytes(bmp(4, [b"\x10\0\0\0"], info=palette, colours=2))
        down = bytearray(bmp(24, [bytes([1, 2, 3, 4, 5, 6, 0, 0]), bytes([7, 8, 9, 10, 11, 12, 0, 0])]))
        down[22:26] = struct.pack("<i", -2)
        (self.folder / "down.bmp").write_bytes(down)
        self.prints("""
            print((load_image("deep.png") * 65535.0).to_list(), load_image("deep.pgm"))
            for name in list("five", "six", "three", "one", "four") { print(name, load_image(name + ".bmp").to_list()) }
            print((load_image("down.bmp") * 255.0).to_list())
            """, "[[[0.0, 4660.0, 65535.0]]] [[[0.25 1.  ]]]", "five [[[1.0, 0.0]], [[0.0, 0.0]], [[0.0, 1.0]]]",
            *(f"{name} [[[0.0, 1.0]], [[1.0, 0.0]], [[0.0, 0.0]]]" for name in ("six", "three")),
            "one [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]]",
            "four [[[1.0, 0.0]], [[0.0, 0.0]], [[0.0, 1.0]]]",
            "[[[3.0, 6.0], [9.0, 12.0]], [[2.0, 5.0], [8.0, 11.0]], [[1.0, 4.0], [7.0, 10.0]]]")

    def test_headers_of_bmp(self):
        """As other programs want them."""
        self.prints('for c in [1, 3, 4] { save_image(ones([c, 2, 3]), str(c) + ".bmp") }')
        masks = struct.pack("<4I4s", 0xFF0000, 0xFF00, 0xFF, 0xFF000000, b"BGRs") + bytes(48)
        palette = b"".join(bytes([i, i, i, 0]) for i in range(256))
        for channels, header, compression, info in ((1, 40, 0, palette), (3, 40, 0, b""), (4, 108, 3, masks)):
            row = (b"\xff" * 3 * channels).ljust(4 if channels == 1 else 12, b"\0")
            file = bmp(8 * channels, [row, row], width=3, compression=compression, header=header, info=info)
            file = file[:2] + struct.pack("<I", len(file)) + file[6:]
            self.assertEqual((self.folder / f"{channels}.bmp").read_bytes(), file, channels)

    def test_of_folders(self):
        self.prints("""
            save_image(ones([3, 4, 4]), "1.jpg", quality: 100)
            save_image(zeros([4, 4, 4]), "2.webp")
            save_image(ones([4, 4]), "3.bmp")
            for x in loader(image_folder(".")) { print(x.shape, mean(x, [1, 2, 3]) > 0.98) }
            """, "[3, 3, 4, 4] [ true false  true]")

    def test_mistakes_in_files(self):
        sound = png([[1, 2, 3]], 0)
        wrong_sum = bytearray(sound)
        wrong_sum[-20] ^= 1
        self.prints("""
            let x = rand([3, 32, 32])
            for name in list("x.jpg", "x.webp") { save_image(x, name) }
            """)
        jpeg, webp = (self.folder / "x.jpg").read_bytes(), (self.folder / "x.webp").read_bytes()
        animated = b"RIFF" + struct.pack("<I", 4 + 18) + b"WEBPVP8X" + struct.pack("<IB", 10, 2) + bytes(3) + bytes(6)
        cases = {
            "text": (b"hello, this is no picture", "x is not a PNG, JPEG, WebP, BMP, PGM or PPM file"),
            "empty": (b"", "x is not a PNG"),
            "png cut": (sound[:60], "error[format]: x: it ends too early"),
            "png sum": (bytes(wrong_sum), "error[format]: x: "),
            "jpeg cut": (jpeg[:len(jpeg) // 2], "error[format]: x: Premature end of JPEG file"),
            "jpeg header": (jpeg[:20], "error[format]: x: "),
            "webp cut": (webp[:len(webp) // 2], "error[format]: x: its WebP data ends too early or is damaged"),
            "webp header": (webp[:16], "error[format]: x: its WebP header cannot be read"),
            "webp animation": (animated, "error[format]: x holds an animation, not one picture"),
            "bmp rows": (bmp(24, [bytes(8)])[:-1], "error[format]: x: its header does not fit its bytes"),
            "bmp data": (bmp(24, [bytes(8)], data=1 << 30), "error[format]: x: its header does not fit its bytes"),
            "bmp palette": (bmp(8, [bytes(4)]), "error[format]: x: its palette does not fit its bytes"),
            "bmp kind": (bmp(8, [bytes(4)], compression=1), "error[format]: x: BMP with 8 bits and compression 1 is not supported"),
            "bmp none": (bmp(24, []) + b"\0", "error[format]: x: a picture of 0 x 2 pixels has none"),
            "bmp bomb": (bmp(24, [bytes(8)], width=1 << 30), "error[format]: x: 1 x 1073741824 pixels are more than the 268435456 that are read"),
            "pgm": (b"P5 9 9 255\n12", "error[format]: x: its header does not fit its bytes"),
        }
        for name, (data, text) in cases.items():
            with self.subTest(name):
                (self.folder / "x").write_bytes(data)
                self.fails('let a = 1\nlet x = load_image("x")', text)
                self.assertIn("--> program.tl:2:9", self.run_here('let a = 1\nlet x = load_image("x")').err)

    def test_mistakes(self):
        self.fails('load_image("none.png")', "error[io]: ")
        self.fails('save_image(ones([2, 2]), "no/a.png")', "error[io]: ")
        self.fails('save_image(ones([2, 2]), "a.gif")', "a.gif: pictures are written to .png, .jpg, .webp, .bmp, .pgm and .ppm")
        self.fails('save_image(ones([4, 2, 2]), "a.jpg")', "a.jpg: a JPEG file has no alpha channel")
        self.fails('save_image(ones([2, 2, 2]), "a.bmp")', "a.bmp: a BMP file has no gray with alpha")
        self.fails('save_image(ones([5, 2, 2]), "a.png")', "error[shape]: save_image: a picture is [height, width] or [channels, height, width] "
                   "with 1 to 4 channels, but it is float32[5, 2, 2]")
        self.fails('save_image(ones([3]), "a.png")', "but it is float32[3]")
        self.fails('save_image([[1, 2]], "a.png")', "error[dtype]: save_image: a picture is of floats, uint8 or bool, but it is int64[1, 2]")
        self.fails('save_image([[1.0, 2.0], [1.0, nan]], "a.png")', "error[value]: save_image: the picture has nan in channel 0, row 1")
        self.fails('save_image(ones([2, 2]), "a.jpg", quality: 0)', "save_image: quality is 0; it must be from 1 to 100")
        self.fails('save_image(ones([1, 20000]), "a.webp")', "a WebP picture has at most 16383 x 16383 pixels, but this has 1 x 20000")
        (self.folder / "a.png").write_bytes(png([[1]], 0))
        self.fails('load_image("a.png", channels: 5)', "load_image: channels is 5; it must be from 0 to 4")
        self.fails('load_image("a.png", size: [3])', "load_image: size must be [height, width], but it is ")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.png", "program.tl"], "a part was left behind")

    def test_missing_libraries(self):
        self.prints('for name in list("x.png", "x.jpg", "x.webp") { save_image(ones([4, 4]), name) }')
        for ending, library, package in (("png", "libpng16.so.16", "libpng16-16"), ("jpg", "libturbojpeg.so.0", "libturbojpeg0"),
                                         ("webp", "libwebp.so.7", "libwebp7")):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, library).write_text("not a library")
                for code in (f'load_image("x.{ending}")', f'save_image(ones([2, 2]), "y.{ending}")', 'load_image("x.bmp")'):
                    result = self.run_here('save_image(ones([2, 2]), "x.bmp")\n' + code, env={"LD_LIBRARY_PATH": folder})
                    if "bmp" in code:
                        self.assertEqual(result.status, 0, result.err)
                    else:
                        self.assertIn(f".{ending} pictures need the library {library}, which cannot be loaded: ", result.err)
                        self.assertIn(f"help: on Debian and Ubuntu: apt install {package}", result.err)


if __name__ == "__main__":
    unittest.main()
