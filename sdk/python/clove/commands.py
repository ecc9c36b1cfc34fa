"""Commands in a sandbox, with the output that they may have."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

from .session import PIECE, converse

OUTPUT = 10 << 20
"""How many bytes a command may write to each stream, unless the caller says otherwise."""


class OutputError(Exception):
    """A stream had more bytes than the limit. data is what came before."""

    def __init__(self, stream: str, limit: int, data: bytes) -> None:
        super().__init__(f"{stream} has more than {limit} bytes")
        self.data = data


@dataclass
class Result:
    """How a command ended."""

    returncode: int
    stdout: bytes
    stderr: bytes
    failure: str = ""
    """Why it was not executed, if it was not."""


class Output:
    """The last bytes of each stream, or an end at the limit."""

    def __init__(self, limit: int, tail: bool) -> None:
        self._limit, self._tail = limit, tail
        self._data = {"stdout": bytearray(), "stderr": bytearray()}
        self._lost = {"stdout": 0, "stderr": 0}

    def add(self, stream: str, piece: bytes) -> None:
        data = self._data[stream]
        data += piece
        if len(data) > self._limit and not self._tail:
            raise OutputError(stream, self._limit, bytes(data[: self._limit]))
        if len(data) > 2 * self._limit:  # not for each piece
            self._cut(stream)

    def _cut(self, stream: str) -> None:
        data = self._data[stream]
        over = max(len(data) - self._limit, 0)
        del data[:over]
        self._lost[stream] += over

    def of(self, stream: str) -> bytes:
        self._cut(stream)
        lost = self._lost[stream]
        note = f"[clove: {lost} bytes before this are left out]\n".encode() if lost else b""
        return note + bytes(self._data[stream])


async def execute(
    path: str,
    run: str,
    order: Any,
    *,
    input: Union[None, bytes, Iterable[bytes]] = None,
    timeout: Optional[float] = None,
    limit: int = OUTPUT,
    tail: bool = False,
) -> Result:
    """Runs a command in a run of the cloved at path to its end.

    Beyond limit bytes on a stream it is ended with OutputError, or with tail the first
    ones are left out. Beyond timeout seconds it is ended with TimeoutError, and every
    process that it started, as when this coroutine is cancelled.
    """
    output = Output(limit, tail)
    pieces = _pieces(input) if isinstance(input, (bytes, bytearray)) else input
    session = converse(path, "run.exec", {"run": run, "exec": order, "stdin": input is not None}, pieces, output.add)
    try:
        result = await asyncio.wait_for(session, timeout)
    except asyncio.TimeoutError:  # before 3.11 it is no TimeoutError
        raise TimeoutError(f"the command did not end within {timeout:g} s") from None
    return Result(result["exit_code"], output.of("stdout"), output.of("stderr"), _said(result.get("failure")))


def _pieces(data: bytes) -> Iterable[bytes]:
    return (data[i : i + PIECE] for i in range(0, len(data), PIECE))


def _said(failure: Optional[Mapping[str, Any]]) -> str:
    if not failure:
        return ""
    return ": ".join(str(failure[key]) for key in ("step", "message") if failure.get(key))
