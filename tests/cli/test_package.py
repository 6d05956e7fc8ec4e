"""What `make install` and `make package` put where: documents whose links lead somewhere, examples that run."""
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tl import ROOT, TL, run

BUILD = Path(TL).resolve().parent


@unittest.skipUnless(shutil.which("cmake") and (BUILD / "cmake_install.cmake").exists(), "not a build folder")
class Package(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prefix = Path(folder.name)
        subprocess.run(["cmake", "--install", BUILD, "--prefix", self.prefix], check=True, capture_output=True)
        self.documents = self.prefix / "share" / "doc" / "tl"

    def test_links_lead_somewhere(self):
        pages = list(self.documents.rglob("*.md"))
        self.assertGreater(len(pages), 5)
        for page in pages:
            text = re.sub(r"`[^`]*`", "", page.read_text())  # what looks like a link in code is none
            for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
                if "://" not in target:
                    self.assertTrue((page.parent / target).exists(), f"{page.name}: {target}")

    def test_examples_find_what_they_read(self):
        for name in ("06_story.tl", "07_linear_regression.tl", "10_digits_mlp.tl"):
            result = run("check", self.documents / "examples" / name, cwd="/")
            self.assertEqual(result.status, 0, result.err)
        result = run("run", self.documents / "examples" / "06_story.tl", cwd="/")
        self.assertEqual(result.status, 0, result.err)
        for line in (ROOT / "examples" / "10_digits_mlp.tl").read_text().splitlines():
            for data in re.findall(r'here\("([^"]+)"\)', line):
                self.assertTrue((self.documents / "examples" / data).exists(), data)

    def test_two_packages(self):
        config = (BUILD / "CPackConfig.cmake").read_text()
        for line in ('CPACK_COMPONENTS_ALL "tl;dev', 'CPACK_DEBIAN_DEV_PACKAGE_NAME "tl-dev"',
                     'CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "tl (= 0.1.0)"'):
            self.assertIn(line, config)

    @unittest.skipUnless(shutil.which("cpack") and shutil.which("dpkg-shlibdeps"), "no tools for Debian packages")
    def test_packages_are_made(self):
        made = self.prefix / "packages"
        result = subprocess.run(["cpack", "-G", "DEB", "-B", made], cwd=BUILD, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        names = {path.name.split("_")[0] for path in made.glob("*.deb")}
        self.assertLessEqual({"tl", "tl-dev"}, names)
        package = next(made.glob("tl_*.deb"))
        subprocess.run(["dpkg", "-x", package, made / "root"], check=True)
        program = made / "root" / "usr" / "bin" / "tl"
        example = made / "root" / "usr" / "share" / "doc" / "tl" / "examples" / "06_story.tl"
        result = subprocess.run([program, "run", example], cwd="/", capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_recommends_a_driver(self):
        config = (BUILD / "CPackConfig.cmake").read_text()
        self.assertIn('CPACK_DEBIAN_PACKAGE_RECOMMENDS "libvulkan1, mesa-vulkan-drivers | vulkan-icd"', config)


if __name__ == "__main__":
    unittest.main()
