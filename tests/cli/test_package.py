"""What `make install` and `make package` put where: documents whose links lead somewhere, examples that run; and a newcomer's
path, the commands of the README from packages to a tensor.

    TL_TEST_ROOT=FOLDER python3 tests/cli/test_package.py Newcomer      in this root, as debootstrap makes one, and with its network
"""
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from tl import ROOT, TL, run

BUILD = Path(TL).resolve().parent
# A view of this system, or of the root that is given, that takes what is installed into it and goes with its process.
ROOT_COMMAND = """set -eu
mount --make-rprivate /
mount -t overlay overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work" "$2/root"
mount --rbind /dev "$2/root/dev"
mount -t proc proc "$2/root/proc" || mount --rbind /proc "$2/root/proc"
find "$2/packages" -name '*.deb' -exec cp {} "$2/root/root" ";"
echo 'APT::Get::Assume-Yes "true";' >"$2/root/etc/apt/apt.conf.d/99yes"
[ "$1" = / ] || cp /etc/resolv.conf "$2/root/etc"
exec chroot "$2/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive TL_DEVICE=cpu sh -eu -c "cd /root; $3"
"""


def make_packages(case, folder):
    made = Path(folder, "packages")
    result = subprocess.run(["cpack", "-G", "DEB", "-B", made], cwd=BUILD, capture_output=True, text=True)
    case.assertEqual(result.returncode, 0, result.stdout + result.stderr)
    return made


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
        for name in ("05_gguf_inspector.tl", "06_story.tl"):
            result = run("run", self.documents / "examples" / name, cwd="/")
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
        made = make_packages(self, self.prefix)
        names = {path.name.split("_")[0] for path in made.glob("*.deb")}
        self.assertLessEqual({"tl", "tl-dev"}, names)
        package = next(made.glob("tl_*.deb"))
        subprocess.run(["dpkg", "-x", package, made / "root"], check=True)
        program = made / "root" / "usr" / "bin" / "tl"
        example = made / "root" / "usr" / "share" / "doc" / "tl" / "examples" / "06_story.tl"
        result = subprocess.run([program, "run", example], cwd="/", capture_output=True, text=True)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_recommends_a_driver_where_one_is_used(self):
        config = (BUILD / "CPackConfig.cmake").read_text()
        if "this build has no Vulkan device" in run("devices").out:
            self.assertNotIn("CPACK_DEBIAN_PACKAGE_RECOMMENDS", config)
        else:
            self.assertIn('CPACK_DEBIAN_PACKAGE_RECOMMENDS "libvulkan1, mesa-vulkan-drivers | vulkan-icd"', config)


@unittest.skipUnless(shutil.which("cpack") and shutil.which("dpkg-shlibdeps"), "no tools for Debian packages")
@unittest.skipIf("sanitize" in (BUILD / "CMakeCache.txt").read_text() if (BUILD / "CMakeCache.txt").exists() else True, "not a build to be packed")
class Newcomer(unittest.TestCase):
    def commands(self):
        section = (ROOT / "README.md").read_text().split("## From a package to a tensor")[1].split("\n## ")[0]
        return re.findall(r"^    (.*)", section, re.M)

    def in_root(self, command):
        lower = os.environ.get("TL_TEST_ROOT", "/")
        return subprocess.run(["unshare", "-m", "sh", "-c", ROOT_COMMAND, "sh", lower, self.folder, command], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)

    def test_the_commands_of_the_readme(self):
        commands = self.commands()
        self.assertEqual(len(commands), 9)
        with tempfile.TemporaryDirectory() as self.folder:
            for name in ("upper", "work", "root"):
                Path(self.folder, name).mkdir()
            Path(self.folder, "packages").mkdir()
            if os.geteuid() != 0 or not shutil.which("unshare") or self.in_root("true").returncode:
                self.skipTest("a view of the system needs root and overlays of folders")
            make_packages(self, self.folder)
            if not list(Path(self.folder, "packages").glob("python3-tl*")):
                self.skipTest("built without the Python package (python3-cffi, python3-dev)")
            said = ""
            for command in commands:
                begun = time.monotonic()
                result = self.in_root(command)
                if re.search(r"Unable to locate package|(Failed|Unable) to fetch", result.stderr):
                    self.skipTest(f"{command}: there is neither the package nor a network")
                self.assertEqual(result.returncode, 0, f"{command}\n{result.stdout}{result.stderr}"[-3000:])
                print(f"{time.monotonic() - begun:6.1f} s  {command}")
                said += "" if command.startswith("apt ") else result.stdout
        self.assertEqual(said.count("[2. 4.]"), 2, said)
        self.assertIn("installed the kernel tl in ", said)
        self.assertIn("24 bytes of this program are in use\n", said)


if __name__ == "__main__":
    unittest.main()
