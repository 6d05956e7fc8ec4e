"""load_audio and save_audio: sound of every format there and back, with the bits it has, and what mistakes say."""
import struct
import unittest
from pathlib import Path

from tl import InFolder


class Audio(InFolder):
    def test_there_and_back(self):
        self.prints("""
            let x = rand([2, 70000]) * 2.0 - 1.0
            let whole = round(x * 32767.0) as int16
            for format in list("wav", "aiff", "au", "flac") {
                save_audio(x, "x." + format, 44100)
                let (y, rate) = load_audio("x." + format)
                print(format, y.shape, y.dtype, rate, max(abs(y - x)) < if format == "flac" { 2e-7 } else { 1e-30 })
                save_audio(whole, "s." + format, 8000)
                let (z, slow) = load_audio("s." + format)
                print(slow, max(abs(z * 32768.0 - (whole as float32))) as float)
            }
            let wave = sin(arange(48000) as float32 * 0.05)
            for format in list("ogg", "opus", "mp3") {
                save_audio(wave, "w." + format, 48000)
                let (y, rate) = load_audio("w." + format)
                print(format, y.shape[0], rate, y.shape[1] >= 48000, max(abs(y)) < 1.2)
            }
            """, "wav [2, 70000] float32 44100 true", "8000 0.0", "aiff [2, 70000] float32 44100 true", "8000 0.0",
            "au [2, 70000] float32 44100 true", "8000 0.0", "flac [2, 70000] float32 44100 true", "8000 0.0",
            "ogg 1 48000 true true", "opus 1 48000 true true", "mp3 1 48000 true true")
        self.assertEqual((self.folder / "x.wav").stat().st_size // 1000, 560)
        self.assertEqual((self.folder / "s.wav").stat().st_size // 1000, 280)

    def test_of_other_programs(self):
        samples = struct.pack("<4h", 0, 16384, -32768, 32767)
        form = struct.pack("<IHHIIHH", 16, 1, 2, 100, 400, 4, 16)
        (self.folder / "a").write_bytes(b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + form + b"data"
                                        + struct.pack("<I", len(samples)) + samples)
        self.prints("""
            let (x, rate) = load_audio("a")
            print((x * 32768.0).to_list(), rate)
            """, "[[0.0, -32768.0], [16384.0, 32767.0]] 100")

    def test_parts(self):
        self.prints("""
            save_audio(arange(10) as float32 / 10.0, "a.wav", 10)
            print(load_audio("a.wav", start: 7)[0], load_audio("a.wav", 2, 3)[0], load_audio("a.wav", 8, 100)[0])
            print(load_audio("a.wav", 10)[0].shape, load_audio("a.wav", count: 0)[0].shape)
            save_audio(zeros([2, 0]), "none.wav", 10)
            print(load_audio("none.wav")[0].shape)
            save_audio([[-3.0, 0.5, 3.0]], "loud.flac", 10)
            print(load_audio("loud.flac")[0])
            """, "[[0.7 0.8 0.9]] [[0.2 0.3 0.4]] [[0.8 0.9]]", "[1, 0] [1, 0]", "[2, 0]", "[[-1.   0.5  1. ]]")

    def test_mistakes(self):
        (self.folder / "text.wav").write_text("this is not a sound at all, only a text that is long enough to be one")
        self.prints('save_audio(zeros([100]), "a.wav", 10)')
        self.fails('load_audio("text.wav")', "error[format]: text.wav: ")
        self.fails('load_audio("none.wav")', "error[io]: ")
        self.fails('load_audio("a.wav", 101)', "error[index]: a.wav has 100 frames; none can be read from 101 on")
        self.fails('load_audio("a.wav", -1)', "error[value]: load_audio: start and count must not be negative")
        self.fails('load_audio("a.wav", 0, -1)', "error[value]: load_audio: start and count must not be negative")
        self.fails('save_audio(zeros([3]), "b.xyz", 10)', "b.xyz: sound is written to .wav, .flac, .ogg, .opus, .mp3, .aiff and .au")
        self.fails('save_audio(zeros([9, 3]), "b.mp3", 8000)', "b.mp3: a .mp3 file cannot have 9 channels at 8000 frames a second")
        self.fails('save_audio(zeros([3]), "b.wav", 0)', "save_audio: rate is 0; it must be from 1 to 16777216")
        self.fails('save_audio(zeros([1, 2, 3]), "b.wav", 9)', "error[shape]: save_audio: sound is [frames] or [channels, frames] with 1 to 1024 channels, "
                   "but it is float32[1, 2, 3]")
        self.fails('save_audio([1, 2], "b.wav", 9)', "error[dtype]: save_audio: sound is of floats or int16, but it is int64[2]")
        self.fails('save_audio([[0.0, 1.0], [0.0, nan]], "b.wav", 9)', "error[value]: save_audio: the sound has nan in channel 1, frame 1")
        self.fails('save_audio(zeros([3]), "no/b.wav", 9)', "error[io]: ")
        self.fails('let a = 1\nlet x = load_audio("text.wav")', "--> program.tl:2:9")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.wav", "program.tl", "text.wav"], "a part was left behind")

    def test_missing_library(self):
        Path(self.folder, "libsndfile.so.1").write_text("not a library")
        for code in ('load_audio("a.wav")', 'save_audio(zeros([2]), "a.wav", 10)'):
            result = self.run_here(code, env={"LD_LIBRARY_PATH": self.folder})
            self.assertEqual(result.status, 1)
            self.assertIn("files of sound need the library libsndfile.so.1, which cannot be loaded: ", result.err)
            self.assertIn("help: on Debian and Ubuntu: apt install libsndfile1", result.err)


if __name__ == "__main__":
    unittest.main()
