#!/usr/bin/env python3
"""Makes the package of the extension for Visual Studio Code: `build.py FOLDER VERSION` installs the modules that
package-lock.json names into FOLDER, bundles extension.js with them and writes FOLDER/tl-VERSION.vsix, byte for byte the
same each time."""
import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import quoteattr

SOURCE = Path(__file__).resolve().parent
ROOT = SOURCE.parent.parent
CONTENT_TYPES = {"json": "application/json", "js": "application/javascript", "md": "text/markdown", "txt": "text/plain",
                 "vsixmanifest": "text/xml"}


def install_modules(folder):
    """npm's, by the lock file: what is there and as it says is left alone."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(SOURCE / name, folder)
    lock, installed = folder / "package-lock.json", folder / "node_modules" / ".installed"
    if installed.exists() and installed.read_bytes() == lock.read_bytes():
        return
    result = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"], cwd=folder,
                            stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"npm could not install the modules of the extension:\n{result.stderr.strip()}")
    installed.write_bytes(lock.read_bytes())


def bundle(folder):
    shutil.copy(SOURCE / "extension.js", folder / "source.js")
    subprocess.run(["node", "node_modules/esbuild/bin/esbuild", "source.js", "--bundle", "--platform=node", "--target=node18",
                    "--external:vscode", "--minify", "--legal-comments=none", "--log-level=warning",
                    "--outfile=extension.js"], cwd=folder, check=True)


def licenses(folder):
    texts = ["extension.js contains these packages."]
    packages = json.loads((folder / "package-lock.json").read_text())["packages"]
    for name in sorted(name for name, about in packages.items() if name and not about.get("dev")):
        found = next((folder / name).glob("[Ll][Ii][Cc][Ee][Nn][Ss][Ee]*"))
        texts.append(f"{Path(name).name}\n\n{found.read_text().strip()}")
    return ("\n\n" + "-" * 72 + "\n\n").join(texts) + "\n"


def manifest(about, version):
    """What the gallery and `code --install-extension` read."""
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" Id={quoteattr(about["name"])} Version={quoteattr(version)} Publisher={quoteattr(about["publisher"])}/>
    <DisplayName>{about["displayName"]}</DisplayName>
    <Description xml:space="preserve">{about["description"]}</Description>
    <Categories>{",".join(about["categories"])}</Categories>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={quoteattr(about["engines"]["vscode"])}/>
      <Property Id="Microsoft.VisualStudio.Code.ExtensionKind" Value="workspace"/>
    </Properties>
  </Metadata>
  <Installation><InstallationTarget Id="Microsoft.VisualStudio.Code"/></Installation>
  <Dependencies/>
  <Assets>
    <Asset Type="Microsoft.VisualStudio.Code.Manifest" Path="extension/package.json" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.Details" Path="extension/README.md" Addressable="true"/>
    <Asset Type="Microsoft.VisualStudio.Services.Content.License" Path="extension/LICENSE.txt" Addressable="true"/>
  </Assets>
</PackageManifest>
"""


def content_types():
    rows = "".join(f'<Default Extension=".{end}" ContentType="{kind}"/>' for end, kind in sorted(CONTENT_TYPES.items()))
    return ('<?xml version="1.0" encoding="utf-8"?>\n'
            f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{rows}</Types>\n')


def write_package(folder, version):
    about = json.loads((SOURCE / "package.json").read_text())
    shipped = {key: value for key, value in about.items() if key not in ("dependencies", "devDependencies", "private")}
    shipped |= {"version": version, "license": "SEE LICENSE IN LICENSE.txt"}
    texts = {"extension.vsixmanifest": manifest(about, version), "[Content_Types].xml": content_types(),
             "extension/package.json": json.dumps(shipped, indent=2) + "\n",
             "extension/extension.js": (folder / "extension.js").read_text(),
             "extension/tl.tmLanguage.json": (ROOT / "editors" / "textmate" / "tl.tmLanguage.json").read_text(),
             "extension/LICENSE.txt": (ROOT / "LICENSE").read_text(),
             "extension/bundled-licenses.txt": licenses(folder)}
    for name in ("language-configuration.json", "snippets.json", "README.md"):
        texts[f"extension/{name}"] = (SOURCE / name).read_text()
    path = folder / f"tl-{version}.vsix"
    with zipfile.ZipFile(path, "w") as package:
        for name, text in sorted(texts.items()):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            package.writestr(entry, text)
    return path


def main():
    folder, version = Path(sys.argv[1]), sys.argv[2]
    for program in ("node", "npm"):
        if not shutil.which(program):
            sys.exit(f"the extension is built with {program}, which is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    install_modules(folder)
    bundle(folder)
    print(write_package(folder, version))


if __name__ == "__main__":
    main()
