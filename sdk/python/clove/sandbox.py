"""A sandbox that a program outside drives: commands, and files in and out."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import posixpath
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from . import keeper
from .commands import OUTPUT, Output, OutputError, Result, execute  # noqa: F401 adapters import some
from .errors import CloveError
from .options import Options
from .session import call, daemon_path

FILE_TIME = 600.0
"""For how many seconds a file is read or written at most."""

MOST_ID = 65532  # ids above are clove's own

_KEEP = "import sys; sys.path.insert(0, sys.argv[1]); from clove import keeper; sys.exit(keeper.main(sys.argv[2:]))"
_IDLE = ("sh", "-c", "while :; do sleep 86400; done")
_LONG = 512 << 10  # a command with more bytes of JSON goes through a file: a request has 1 MiB
_WRITE = 'd=${1%/*}; [ -z "$d" ] || mkdir -p -- "$d" || exit 1; exec cat >"$1"'
# A folder of an image stays as it is.
_OWN = '[ "$1" = /workspace ] || [ ! -d "$1" ] || exit 0; mkdir -p -- "$1" && { [ "$2" = 0:0 ] || chown -R "$2" -- "$1"; }'


class Sandbox:
    """One sandbox. It ends with close, and with the process that started it."""

    def __init__(self, options: Options, prefix: str = "sandbox") -> None:
        self.options = options
        self.name = f"{prefix}-{secrets.token_hex(6)}"
        self.socket = options.socket or daemon_path()
        self._keeper: Optional[subprocess.Popen[bytes]] = None

    async def __aenter__(self) -> Sandbox:
        await self.start()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Starts it. If that fails, or is cancelled, nothing is left."""
        try:
            await self._start()
        except Exception:
            await self.close()
            raise
        except BaseException:  # a cancelled coroutine must not wait
            self.release()
            raise

    async def _start(self) -> None:
        o = self.options
        # The first process is root inside, so that commands of another user cannot end it,
        # and commands may run as each user.
        command = [o.command, "run", "-d", "--rm", "--name", self.name, "--user", "root", *o.flags(), "--", *_IDLE]
        package = str(Path(__file__).resolve().parent.parent)
        self._keeper = subprocess.Popen(
            # Isolated: with -m, it would import from the current directory.
            [sys.executable, "-I", "-c", _KEEP, package, self.socket, self.name, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "CLOVE_SOCKET": self.socket},
            start_new_session=True,  # ctrl-c is for this process, which then closes
        )
        if await asyncio.to_thread(self._keeper.stdout.readline) != keeper.STARTED:
            said = await asyncio.to_thread(self._keeper.stderr.read)
            raise CloveError(said.decode(errors="replace").strip() or "the sandbox did not start", word="start")
        await self._running()
        try:
            user = await self.user(None)
        except LookupError as problem:
            raise CloveError(f"user: {problem.args[0]}", word="invalid") from None
        await self.must([*_script(_OWN), o.workdir, f"{user['uid']}:{user['gid']}"])

    async def _running(self) -> None:
        """Waits while it is queued."""
        last = time.monotonic() + self.options.wait
        while True:
            answer = await call(self.socket, "run.get", run=self.name)
            state = answer["run"]["state"]
            if state == "running":
                return
            if time.monotonic() > last:
                raise CloveError(f"the sandbox did not start within {self.options.wait} s: {answer.get('reason') or state}", word="start")
            await asyncio.sleep(0.2)

    def release(self) -> None:
        """Has it removed, without waiting for that."""
        if self._keeper is not None and self._keeper.stdin and not self._keeper.stdin.closed:
            self._keeper.stdin.close()

    async def close(self) -> None:
        """Removes it. When this returns, no process of it is left."""
        self.release()
        held = self._keeper
        if held is None:
            return
        status = await asyncio.to_thread(held.wait)
        said = held.stderr.read() if not held.stderr.closed else b""
        held.stdout.close()
        held.stderr.close()
        if status != 0 and said:
            raise CloveError(said.decode(errors="replace").strip(), word="internal")

    async def exec(
        self,
        command: Sequence[str],
        *,
        input: Union[None, bytes, Iterable[bytes]] = None,
        cwd: Optional[str] = None,
        env: Optional[Mapping[str, str]] = None,
        user: Union[None, str, int] = None,
        timeout: Optional[float] = None,
        limit: int = OUTPUT,
        tail: bool = False,
    ) -> Result:
        """Runs a command to its end.

        Beyond limit bytes on a stream it is ended with OutputError, or with tail the first
        ones are left out. Beyond timeout seconds it is ended with TimeoutError, and every
        process that it started, as when this coroutine is cancelled.
        """
        who = await self.user(user)
        if len(json.dumps(list(command))) > _LONG:
            command = await self._shorter(command, user)
        variables = {"HOME": who["home"], **self.options.env, **(env or {})}
        order = {"command": list(command), "env": [f"{k}={v}" for k, v in variables.items()], "dir": self.path(cwd or ""), "user": who}
        return await execute(self.socket, self.name, order, input=input, timeout=timeout, limit=limit, tail=tail)

    async def _shorter(self, command: Sequence[str], user: Union[None, str, int]) -> list[str]:
        """A command that executes a longer one, which it reads from a file."""
        file = f"/tmp/.clove-{secrets.token_hex(8)}"
        text = f"rm -f -- {file}; exec {shlex.join(command)}\n"
        await self.write(file, text.encode(), user=user)
        return ["sh", file]

    async def write(self, file: str, data: bytes, *, user: Union[None, str, int] = None) -> None:
        """Writes a file, and makes the folders above it. An OSError says what is wrong."""
        path = self.path(file)
        done = await self._file([*_script(_WRITE), path], file, user=user, input=data)
        if done.returncode != 0:
            raise _file_error(file, done)

    async def read(self, file: str, *, user: Union[None, str, int] = None, limit: int = 100 << 20) -> bytes:
        """Reads a file. An OSError says what is wrong; OutputError, that it is larger than limit."""
        done = await self._file(["cat", "--", self.path(file)], file, user=user, limit=limit)
        if done.returncode != 0:
            raise _file_error(file, done)
        return done.stdout

    async def _file(self, command: Sequence[str], file: str, **how: Any) -> Result:
        try:
            # The C locale: the error's text is looked up.
            return await self.exec(command, cwd="/", env={"LC_ALL": "C"}, timeout=FILE_TIME, **how)
        except TimeoutError:
            raise TimeoutError(f"{file} was not read or written within {FILE_TIME:g} s") from None

    async def must(self, command: Sequence[str]) -> Result:
        """Runs a command as root inside, which has to succeed."""
        done = await self.exec(command, cwd="/", user="root", env={"LC_ALL": "C"}, timeout=FILE_TIME)
        if done.returncode != 0:
            said = done.failure or done.stderr.decode(errors="replace").strip()
            raise CloveError(f"{command[0]} in the sandbox failed: {said}", word="internal")
        return done

    def path(self, file: str) -> str:
        """An absolute path inside."""
        return posixpath.join(self.options.workdir, file) if file else self.options.workdir

    async def user(self, who: Union[None, str, int]) -> dict[str, Any]:
        """A user inside, with its ids. LookupError: there is none."""
        name = self.options.user if who is None else str(who)
        if name in ("root", "0"):
            return _user("root", 0, 0, "/root")
        if name in ("agent", "1000"):
            return _user("agent", 1000, 1000, "/home/agent")
        # Each time: a command may have added it.
        text = (await self.must(["cat", "/etc/passwd"])).stdout.decode(errors="replace")
        for entry in (line.split(":") for line in text.splitlines()):
            if len(entry) == 7 and name in (entry[0], entry[2]):
                return _user(entry[0], int(entry[2]), int(entry[3]), entry[5])
        if name.isdecimal():
            return _user(name, int(name), int(name), "/")
        raise LookupError(f"there is no user {name!r} inside")


def _user(name: str, uid: int, gid: int, home: str) -> dict[str, Any]:
    if max(uid, gid) > MOST_ID:
        raise LookupError(f"the user {name!r} has the ids {uid}:{gid}, and a process at most {MOST_ID}")
    return {"name": name, "uid": uid, "gid": gid, "home": home}


def _script(text: str) -> list[str]:
    return ["sh", "-c", text, "sh"]


_NUMBERS = {os.strerror(number): number for number in errno.errorcode}


def _file_error(file: str, done: Result) -> OSError:
    """The error that a program inside reported in words, as the class that Python has for it."""
    said = done.failure or done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    reason = said.rpartition(": ")[2]
    return OSError(_NUMBERS.get(reason, errno.EIO), reason or "the sandbox did not say why", file)
