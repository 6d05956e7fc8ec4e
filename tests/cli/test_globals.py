"""What a run owns hangs from its Runtime: variables of files are those of the process, for a reason each."""
import re
import subprocess
import unittest

from tl import ROOT, TL
from pathlib import Path

BUILD = Path(TL).parent
# file: its mutable variables (those of functions without their number), and why they are the process's.
ALLOWED = {
    # memory and errors
    "base/memory.c": ("refuse_above refuse_in refusing reserve", "the system refuses memory to a process"),
    "base/status.c": ("origin_current record", "of a thread"),
    "base/runtime.c": ("runtime_current", "of a thread: what leads to all others"),
    "base/sandbox.c": ("allowed sandbox_folder words", "the kernel confines a thread and those it starts; words: of a thread"),
    "base/disk_room.c": ("left limited", "limits are the process's"),
    "base/file_map.c": ("maps once", "SIGBUS has one handler; it finds the map by its address"),
    # loaded once
    "base/library.c": ("lock", "of loading"),
    "catalog/catalog.c": ("once rows slots", "the catalog, parsed once, never changed"),
    "device/cpu/lapack.c": ("blas blas_library done lapack lapack_library lock prepared set_threads", "loaded libraries; done: of a thread"),
    "model/npz.c": ("library zip_library", "a loaded library"),
    "model/onnx.c": ("library protobuf_library", "a loaded library"),
    "serve/http.c": ("http_library library", "a loaded library"),
    "plot/painter_png.c": ("cairo_library library", "a loaded library"),
    "data/image_png.c": ("library png_library", "a loaded library"),
    "data/image_jpeg.c": ("jpeg_library library", "a loaded library"),
    "data/image_webp.c": ("library webp_library", "a loaded library"),
    "data/audio_file.c": ("library reader sound_library", "a loaded library; reader: its callbacks, never changed"),
    "library/builtin_sql.c": ("library sql_library", "a loaded library"),
    "device/vulkan/library.c": ("library library_lock loader", "a loaded library and its one instance"),
    "device/vulkan/vulkan.c": ("abandoned", "devices that are lost, kept until the process ends"),
    "device/vulkan/modules.c": ("lock modules", "shaders, unpacked once, never changed"),
    "ranks/ranks.c": ("ranks", "a process is one rank"),
    "ranks/mpi/plugin.c": ("interrupted_by_user notices own_rank rank_count", "a process is one rank"),
    # derived from what never changes
    "eval/call_op.c": ("known", "names and ids of parameters in the catalog"),
    "eval/operators.c": ("found", "rows of operators in the catalog"),
    "device/cpu/cpu.c": ("decided", "what the processor can do"),
    "device/cpu/repacked.c": ("decided", "what the processor can do"),
    # the processors
    "device/cpu/threads.c": ("decided inside pool", "one set of workers; inside: of a thread"),
    "device/cpu/scratch.c": ("kept kept_key kept_key_once", "of a thread"),
    "device/cpu/linalg.c": ("text", "of a thread"),
    "device/vulkan/stream.c": ("current_op", "of a thread"),
    "device/vulkan/kernels/heads.c": ("last", "of a thread"),
    # the collector
    "value/heap.c": ("known large_kind once registered_key", "libgc is one for a process; known: of a thread"),
    "eval/interp.c": ("limit on_large_stack", "of a thread"),
    "embed/runtime.c": ("kept", "of a thread"),
    # of the program, not of the library
    "main/foresee.c": ("forecast", "a process runs one program, which it foretells next to the run"),
    "main/foretell.c": ("signal_came signal_target", "signals are the process's"),
    "main/program.c": ("signal_target", "signals are the process's"),
    "main/limits.c": ("applied clock_stopped clock_target ticks", "limits are the process's"),
    "repl/signals.c": ("before ending interrupt_came passing resize_came resume_came target wake",
                       "signals are the process's"),
    "repl/input.c": ("history_path input_over line_came line_read pending", "readline is one for a process"),
    "repl/complete.c": ("completing given given_next", "readline is one for a process"),
}


def variables():
    """(file, name) of everything in the objects of src/ that may be written to."""
    for path in BUILD.glob("CMakeFiles/*/src/**/*.o"):
        name = re.sub(r".*?\.dir/src/(.*)\.o$", r"\1", str(path))
        if "/simd/" in name or not (ROOT / "src" / name).exists():
            continue
        table = subprocess.run(["objdump", "-t", str(path)], capture_output=True, text=True).stdout
        for line in table.splitlines():
            row = re.match(r"[0-9a-f]{16} .{5}([ d]). (\.\S+|\*COM\*)\s+[0-9a-f]{16} +(?:\.hidden )?(?!__)(\S+)$", line)
            if row and row[1] == " " and re.match(r"\.t?(bss|data)|\*COM", row[2]) \
                    and not row[2].startswith(".data.rel.ro"):
                # A function's own is `name.7` to gcc and `function.name` to clang.
                yield name, re.sub(r"(\.\d+)+$", "", row[3]).split(".")[-1]


class Globals(unittest.TestCase):
    def test_only_the_process_s_own(self):
        found = {}
        for name, variable in variables():
            found.setdefault(name, set()).add(variable)
        self.assertIn("base/memory.c", found, "no objects were read")
        more = [f"{name}: {variable}" for name, names in sorted(found.items())
                for variable in sorted(names - set(ALLOWED.get(name, ("",))[0].split()))]
        self.assertEqual(more, [], "mutable variables of files: let them hang from Runtime (base/runtime.h)")

    def test_the_list_holds_nothing_else(self):
        found = set(variables())
        for name, (names, reason) in ALLOWED.items():
            self.assertTrue(reason)
            if name.startswith("device/vulkan/") and not any(n.startswith("device/vulkan/") for n, _ in found):
                continue  # built without Vulkan
            gone = [variable for variable in names.split() if (name, variable) not in found]
            self.assertEqual(gone, [], name)


if __name__ == "__main__":
    unittest.main()
