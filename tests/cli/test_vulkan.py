"""The Vulkan device under the validation layers, and with no driver to be found. Needs a build with it."""
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import TL

PROGRAMS = sorted((Path(TL).parent / "tests").glob("vulkan_test_*"))
LAYER = Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json")


def run_program(program, environment):
    process = subprocess.run([program], env={**os.environ, **environment}, capture_output=True, timeout=500)
    return process.returncode, process.stdout.decode(errors="replace") + process.stderr.decode(errors="replace")


@unittest.skipUnless(PROGRAMS, "this build has no Vulkan device")
class Vulkan(unittest.TestCase):
    @unittest.skipUnless(LAYER.exists(), "the validation layers are not installed")
    def test_validation_layers_are_silent(self):
        with tempfile.TemporaryDirectory() as folder:
            said = Path(folder, "said")
            for program in PROGRAMS:
                status, output = run_program(program, {"TL_TEST_VALIDATION": str(said)})
                self.assertEqual(status, 0, output[-2000:])
                self.assertFalse(said.exists(), said.exists() and said.read_text()[-2000:])

    def test_no_driver_is_said(self):
        nowhere = {"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json", "TL_TEST_VULKAN": "1"}
        for name in ("vulkan_test_device", "vulkan_test_bounds"):
            status, output = run_program(PROGRAMS[0].parent / name, nowhere)
            self.assertNotEqual(status, 0)
            self.assertIn("cannot open the device vulkan: there is no Vulkan driver", output)


if __name__ == "__main__":
    unittest.main()
