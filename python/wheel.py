"""Packs the built package, with libtl in it, as a wheel in the build folder: wheel.py BUILD VERSION."""
import base64
import hashlib
import platform
import sys
import zipfile
from pathlib import Path

METADATA = """Metadata-Version: 2.1
Name: tl
Version: {version}
Summary: tl, a small language for tensors, in Python
Requires-Python: >=3.9
Requires-Dist: cffi>=1.15
"""
WHEEL = """Wheel-Version: 1.0
Generator: tl
Root-Is-Purelib: false
Tag: {tag}
"""


def main():
    build, version = Path(sys.argv[1]), sys.argv[2]
    tag = f"cp39-abi3-linux_{platform.machine()}"
    about = f"tl-{version}.dist-info"
    files = {f"tl/{path.name}": path.read_bytes() for path in sorted((build / "python" / "tl").iterdir())
             if path.is_file()}
    files["tl/libtl.so.0"] = (build / "libtl.so.0").read_bytes()
    files[f"{about}/METADATA"] = METADATA.format(version=version).encode()
    files[f"{about}/WHEEL"] = WHEEL.format(tag=tag).encode()
    record = [f"{name},sha256={digest(data)},{len(data)}" for name, data in files.items()]
    files[f"{about}/RECORD"] = "\n".join([*record, f"{about}/RECORD,,", ""]).encode()
    out = build / f"tl-{version}-{tag}.whl"
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(name, data)
    print(out)


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


main()
