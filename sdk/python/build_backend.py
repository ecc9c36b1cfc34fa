"""Makes the wheel of this package (PEP 517, PEP 427), without a download.

pip gives a build a Python of its own, into which it would have to load setuptools.
"""

import base64
import hashlib
import pathlib
import re
import zipfile

FOLDER = pathlib.Path(__file__).parent

WHEEL = """Wheel-Version: 1.0
Generator: clove
Root-Is-Purelib: true
Tag: py3-none-any
"""


def setting(name):
    """A text in pyproject.toml. Python reads TOML since 3.11 only."""
    text = (FOLDER / "pyproject.toml").read_text(encoding="utf-8")
    return re.search(rf'^{name} = "(.*)"$', text, re.MULTILINE)[1]


def metadata():
    lines = ["Metadata-Version: 2.1"]
    for field, name in (("Name", "name"), ("Version", "version"), ("Summary", "description"), ("Requires-Python", "requires-python")):
        lines.append(f"{field}: {setting(name)}")
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel and returns its name."""
    stem = f"{setting('name')}-{setting('version')}"
    info = f"{stem}.dist-info"
    files = {f"clove/{path.name}": path.read_bytes() for path in sorted((FOLDER / "clove").glob("*")) if path.suffix in (".py", ".typed")}
    files[f"{info}/METADATA"] = metadata().encode()
    files[f"{info}/WHEEL"] = WHEEL.encode()
    files[f"{info}/entry_points.txt"] = f"[inspect_ai]\nclove = {setting('clove')}\n".encode()
    record = "".join(f"{name},sha256={digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)  # a fixed time: the same bytes each time
    return wheel


def digest(data):
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
