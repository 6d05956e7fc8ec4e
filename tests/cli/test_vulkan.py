"""The Vulkan device under the validation layers, and with no driver to be found. Needs a build with it."""
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import TL

PROGRAMS = sorted((Path(TL).parent / "tests").glob("vulkan_test_*"))
LAYER = Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json")
SETTINGS = """khronos_validation.report_flags = error,warn,perf
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.log_filename = stdout
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,\
VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT
"""
# Advice on how modules are written, about nothing that is done with them.
ACCEPTED = ["UNASSIGNED-BestPractices-SpirvDeprecated_WorkgroupSize"]


def run_program(program, environment):
    process = subprocess.run([program], env={**os.environ, **environment}, capture_output=True, timeout=500)
    return process.returncode, process.stdout.decode(errors="replace") + process.stderr.decode(errors="replace")


@unittest.skipUnless(PROGRAMS, "this build has no Vulkan device")
class Vulkan(unittest.TestCase):
    @unittest.skipUnless(LAYER.exists(), "the validation layers are not installed")
    def test_validation_layers_are_silent(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "vk_layer_settings.txt").write_text(SETTINGS)
            for program in PROGRAMS:
                status, output = run_program(program, {"VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation",
                                                       "VK_LAYER_SETTINGS_PATH": folder})
                self.assertEqual(status, 0, output[-2000:])
                messages = [m for m in re.findall(r"^(\S+)\([A-Z]+ / [A-Z]+\): msgNum", output, re.M)
                            if m not in ACCEPTED]
                self.assertEqual(messages, [], output[-2000:])

    def test_no_driver_is_said(self):
        nowhere = {"VK_DRIVER_FILES": "/nowhere.json", "VK_ICD_FILENAMES": "/nowhere.json", "TL_TEST_VULKAN": "1"}
        for program in PROGRAMS:
            status, output = run_program(program, nowhere)
            self.assertNotEqual(status, 0)
            self.assertIn("cannot open the device vulkan: there is no Vulkan driver", output)


if __name__ == "__main__":
    unittest.main()
