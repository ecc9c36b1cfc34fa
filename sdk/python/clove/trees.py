"""Files and folders in and out of a sandbox, as tar archives.

What comes out was written by the agent: it is unpacked below one folder, through no link,
and only files, folders and links that stay inside are kept.
"""

from __future__ import annotations

import asyncio
import errno
import os
import posixpath
import secrets
import shutil
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Optional

from .errors import CloveError
from .session import PIECE, converse

if TYPE_CHECKING:
    from .sandbox import Sandbox

MOST = 4 << 30
"""How many bytes come out at once at most: a file with holes has any size."""


async def upload(box: Sandbox, source: Path, folder: str, name: str = "") -> None:
    """Copies as send does, into a folder that is made."""
    await box.must(["mkdir", "-p", "--", folder])
    await send(box.socket, box.name, source, folder, name)


async def download(box: Sandbox, path: str, target: Path) -> list[str]:
    """Copies as receive does."""
    return await receive(box.socket, box.name, path, target)


async def send(socket: str, run: str, source: Path, folder: str, name: str = "") -> None:
    """Copies a file to a name in a folder inside, or what is in a folder into it.

    What is copied is root's inside, with its mode.
    """
    archive = await asyncio.to_thread(_pack, source, name)
    with archive:
        await converse(socket, "run.copy_in", {"run": run, "path": folder}, _pieces(archive))


async def receive(socket: str, run: str, path: str, target: Path) -> list[str]:
    """Copies a file to a name outside, or what is in a folder inside into one outside.

    It returns what was left out: what is no file, no folder, and no link that stays inside.
    """
    left: list[str] = []
    with tempfile.TemporaryFile() as archive:

        def keep(stream: str, piece: bytes) -> None:
            if archive.tell() + len(piece) > MOST:
                raise ValueError(f"{path} has more than {MOST} bytes")
            archive.write(piece)

        try:
            await converse(socket, "run.copy_out", {"run": run, "path": path}, each=keep)
        except CloveError as problem:
            if problem.word == "not-found" and problem.step == "copy":
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None
            if problem.word != "conflict" or not archive.tell():
                raise
            left.append(problem.message)  # an archive came, and says at its end what is not in it
        archive.seek(0)
        return left + await asyncio.to_thread(_unpack, archive, posixpath.basename(posixpath.normpath(path)), target)


def _pack(source: Path, name: str) -> IO[bytes]:
    entries = [(os.path.realpath(source), name)] if name else [(os.path.join(source, e), e) for e in sorted(os.listdir(source))]
    file = tempfile.TemporaryFile()
    try:
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for path, inside in entries:
                archive.add(path, arcname=inside, filter=_root)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    return file


def _root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def _pieces(file: IO[bytes]) -> Iterable[bytes]:
    return iter(lambda: file.read(PIECE), b"")


def _unpack(file: IO[bytes], first: str, target: Path) -> list[str]:
    left: list[str] = []
    with tarfile.open(fileobj=file, mode="r|") as archive:
        for member in archive:
            parts = [part for part in member.name.split("/") if part not in ("", ".")]
            if first not in ("", "/") and parts[:1] == [first]:
                parts = parts[1:]
            if ".." in parts or not _place(archive, member, target, parts):
                left.append(member.name)
    return left


def _place(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, parts: list[str]) -> bool:
    """Puts one element where it belongs. The target's own name is the caller's, and trusted."""
    if member.isdir():
        _folder(target, parts)
        return True
    content = archive.extractfile(member) if member.isreg() else None
    if content is None and not (member.issym() and parts and _stays(member.linkname)):
        return False
    place = _folder(target, parts[:-1]) / parts[-1] if parts else _folder(target.parent, []) / target.name
    new = place.parent / f".clove-{secrets.token_hex(8)}"
    try:
        _make(new, member, content)
        if parts and place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)  # it is replaced, as the rest is
        os.replace(new, place)
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return True


def _make(new: Path, member: tarfile.TarInfo, content: Optional[IO[bytes]]) -> None:
    if content is None:
        os.symlink(member.linkname, new)
        return
    with open(new, "xb") as file:
        shutil.copyfileobj(content, file)
    os.chmod(new, member.mode & 0o777)  # no set-id bit reaches the host


def _folder(target: Path, parts: list[str]) -> Path:
    """Makes folders one by one: a link that lies there is replaced, and never followed."""
    target.mkdir(parents=True, exist_ok=True)
    for part in parts:
        target = target / part
        if target.is_symlink() or target.exists() and not target.is_dir():
            target.unlink()
        target.mkdir(exist_ok=True)
    return target


def _stays(link: str) -> bool:
    """A relative link without .. leads down, whatever other such links it passes."""
    return not link.startswith("/") and ".." not in link.split("/")
