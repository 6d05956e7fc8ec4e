"""The layering rules of ARCHITECTURE.md: includes go down only, and a library has one home."""
import re
import unittest

from tl import ROOT

LAYERS = ["base", "catalog", "shape", "logic", "lexer", "parser", "check", "fmt", "lsp", "mcp", "device", "tensor", "ranks", "model", "plot", "data", "value", "eval", "equation", "learn",
          "reason", "chat", "generate", "serve", "library", "runtime", "embed", "repl", "main"]
# A word of a library, and the only places where it may stand.
HOMES = {
    r"\bGC_\w+|<gc(/gc)?\.h>": ["src/value/heap.c"],
    r"\bcblas_\w+|\bLAPACKE_\w+|\bopenblas_\w+": ["src/device/cpu/"],
    r"#pragma omp|<omp\.h>": ["src/device/cpu/"],
    r"\b(vk|Vk|VK_)[A-Z]\w+": ["src/device/vulkan/"],
    r"<readline/|\brl_\w+": ["src/repl/"],
    r"<zip\.h>|\bzip_\w+": ["src/model/npz.c"],
    r"<microhttpd\.h>|\bMHD_\w+": ["src/serve/http.c"],
    r"<cairo\.h>|\bcairo_\w+": ["src/plot/painter_png.c"],
    r"<png\.h>|\bpng_\w+|\bsetjmp\b|\blongjmp\b": ["src/data/image_png.c"],
    r"<sndfile\.h>|\bsf_\w+|\bSFM_\w+": ["src/data/audio_file.c"],
    r"<sqlite3\.h>|\bsqlite3_\w+": ["src/library/builtin_sql.c"],
    r"<protobuf-c/|\bprotobuf_c_\w+|\bPROTOBUF_C_\w+": ["src/model/onnx."],
    r"<turbojpeg\.h>|\btj[A-Z]\w+|\bTJ\w+": ["src/data/image_jpeg.c"],
    r"<webp/|\bWebP\w+\(": ["src/data/image_webp.c"],
    r"\bstdout\b|\bstderr\b": ["src/base/", "src/repl/", "src/main/"],  # runs write where base/output.h says
    r"\bpcre2_\w+": ["src/library/", "src/model/"],
}


def sources():
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in (".c", ".h", ".def"):
            yield path


class Layers(unittest.TestCase):
    def test_includes_go_down(self):
        wrong = []
        for path in sources():
            layer = path.relative_to(ROOT / "src").parts[0]
            for include in re.findall(r'#include "([^"]+)"', path.read_text()):
                target = include.split("/")[0]
                if target == "shaders":  # the table of modules belongs to the device that runs them
                    if not str(path).startswith(str(ROOT / "src/device/vulkan/")):
                        wrong.append(f"{path.relative_to(ROOT)} includes {include}")
                elif target == "include":  # the embedding API
                    if layer != "embed":
                        wrong.append(f"{path.relative_to(ROOT)} includes {include}")
                elif target not in LAYERS:
                    wrong.append(f"{path.relative_to(ROOT)}: \"{include}\" names no layer")
                elif LAYERS.index(target) > LAYERS.index(layer):
                    wrong.append(f"{path.relative_to(ROOT)} includes {include}")
        self.assertEqual(wrong, [])

    def test_folders_are_layers(self):
        self.assertEqual(sorted(p.name for p in (ROOT / "src").iterdir()), sorted(LAYERS))

    def test_libraries_have_one_home(self):
        wrong = []
        for path in sources():
            name = str(path.relative_to(ROOT))
            text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.S)
            for word, homes in HOMES.items():
                if re.search(word, text) and not any(name.startswith(home) for home in homes):
                    wrong.append(f"{name} uses {word}")
        self.assertEqual(wrong, [])

    def test_language_service_needs_no_device(self):
        """base, catalog, shape, lexer, parser and check stand on their own."""
        order = LAYERS[:LAYERS.index("check") + 1]
        for path in sources():
            if path.relative_to(ROOT / "src").parts[0] in order:
                for include in re.findall(r'#include "([^"]+)"', path.read_text()):
                    self.assertIn(include.split("/")[0], order, path)


if __name__ == "__main__":
    unittest.main()
