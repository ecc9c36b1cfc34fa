"""Calls, streams and sessions on cloved's socket, for coroutines: one JSON-RPC 2.0 object a line."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Optional, TypeVar

from .connection import error_of
from .errors import CloveError, UnreachableError
from .values import encode

PIECE = 32 << 10
"""Bytes of input on one line, which has at most 64 KiB."""

_LONGEST = 4 << 20  # the longest line that is read; cloved's have at most 1 MiB

N = TypeVar("N")
R = TypeVar("R")


def daemon_path() -> str:
    """Where cloved listens, by the variables that the command clove reads, too."""
    run_dir = os.environ.get("CLOVE_RUN_DIR") or "/run/clove"
    return os.environ.get("CLOVE_SOCKET") or os.path.join(run_dir, "clove.sock")


def _line(method: str, params: Mapping[str, Any], number: Optional[int] = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    return json.dumps(message, separators=(",", ":"), default=encode).encode() + b"\n"


@dataclass(frozen=True)
class Caller:
    """Makes calls, each on a connection of its own."""

    path: str

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Makes one call and returns its result. Cancelling the coroutine cancels the call."""
        return await Stream(self, method, params, dict, lambda result: result).end()


class Stream(Generic[N, R]):
    """A call that notifies before it answers: `async for` gives the notifications.

    Then result is the answer. Leaving `async with`, close, and a cancelled coroutine end the
    call early.
    """

    def __init__(
        self,
        caller: Caller,
        method: str,
        params: Mapping[str, Any],
        note: Callable[[Mapping[str, Any]], N],
        answer: Optional[Callable[[Any], R]] = None,
    ) -> None:
        self._path = caller.path
        self._request = _line(method, {name: value for name, value in params.items() if value is not None}, 1)
        self._note, self._answer = note, answer
        self._streams: Optional[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = None
        self._ended = False
        self.result: Optional[R] = None
        """The answer, when the notifications have ended; None if the method has none."""

    async def open(self) -> asyncio.StreamWriter:
        """Sends the request, which otherwise the first notification does."""
        if self._streams is None:
            try:
                self._streams = await asyncio.open_unix_connection(self._path, limit=_LONGEST)
            except OSError as problem:
                hint = "start cloved, and be root or a member of its group"
                raise UnreachableError(f"cannot reach cloved at {self._path}: {problem.strerror}", word="unreachable", hint=hint) from problem
            self._streams[1].write(self._request)
        return self._streams[1]

    def close(self) -> None:
        """Ends the connection, and with it the call."""
        self._ended = True
        if self._streams is not None:
            self._streams[1].transport.abort()

    async def __aenter__(self) -> Stream[N, R]:
        try:
            await self.open()
        except BaseException:
            self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __aiter__(self) -> Stream[N, R]:
        return self

    async def __anext__(self) -> N:
        if self._ended:
            raise StopAsyncIteration
        try:
            while True:
                message = await self._receive()
                if "method" not in message:
                    break
                if self.wanted(message["method"]):
                    return self._note(message.get("params") or {})
        except BaseException:
            self.close()
            raise
        self.close()
        if "error" in message:
            raise error_of(message["error"])
        if self._answer is not None:
            self.result = self._answer(message.get("result") or {})
        raise StopAsyncIteration

    async def _receive(self) -> Mapping[str, Any]:
        await self.open()
        try:
            text = await self._streams[0].readline()
        except OSError as problem:
            raise UnreachableError("the session with cloved was lost", word="unreachable") from problem
        if not text.endswith(b"\n"):
            raise UnreachableError("the session with cloved was lost", word="unreachable")
        return json.loads(text)

    async def end(self) -> Optional[R]:
        """Waits for the answer and returns it."""
        async for _ in self:
            pass
        return self.result

    def wanted(self, method: str) -> bool:
        """Whether a notification is one of those that the iteration gives."""
        return True


class Session(Stream[N, R]):
    """A stream in both directions: what a process writes is iterated over, and send writes to it."""

    def wanted(self, method: str) -> bool:
        return method == "session.output"

    async def __aenter__(self) -> Session[N, R]:
        await super().__aenter__()
        return self

    async def send(self, data: bytes) -> None:
        """Sends input. It waits while the process reads none. ConnectionError: the session has ended."""
        for at in range(0, len(data), PIECE):
            await self._notify("session.input", {"data": data[at : at + PIECE]})

    async def close_input(self) -> None:
        """Ends the input."""
        await self._notify("session.close_input", {})

    async def resize(self, rows: int, columns: int) -> None:
        """Says how large the caller's terminal is."""
        await self._notify("session.resize", {"rows": rows, "columns": columns})

    async def detach(self) -> None:
        """Leaves an attached run, which goes on."""
        await self._notify("session.detach", {})

    async def feed(self, pieces: Iterable[bytes]) -> None:
        """Sends all of an input, and its end. A piece that cannot be read ends the session."""
        try:
            for piece in pieces:
                await self.send(piece)
            await self.close_input()
        except ConnectionError:
            pass  # the process reads no more; the answer says how it ended
        except OSError:
            self._streams[1].transport.abort()  # half of an input must not look like a whole one
            raise

    async def _notify(self, method: str, params: Mapping[str, Any]) -> None:
        writer = await self.open()
        writer.write(_line(method, params))
        await writer.drain()


async def call(path: str, method: str, **params: Any) -> Any:
    """Makes one call and returns its result."""
    return await Caller(path).call(method, params)


async def converse(
    path: str,
    method: str,
    params: Mapping[str, Any],
    pieces: Optional[Iterable[bytes]] = None,
    each: Optional[Callable[[str, bytes], None]] = None,
) -> Any:
    """Holds a session to its end and returns its result.

    pieces are its input, of at most PIECE bytes each. each is called with the name of a
    stream and what came on it. Whatever ends this coroutine ends the session: an exception
    of each, and a cancellation, too.
    """
    feeding: Optional[asyncio.Future[None]] = None
    try:
        async with Session(Caller(path), method, params, _piece, lambda result: result) as session:
            if pieces is not None:
                feeding = asyncio.ensure_future(session.feed(pieces))
            async for stream, data in session:
                if each is not None and stream:
                    each(stream, data)
        return session.result
    except UnreachableError:
        if feeding is not None and feeding.done() and feeding.exception():
            raise feeding.exception() from None  # the input could not be read
        raise
    finally:
        if feeding is not None:
            feeding.cancel()


def _piece(output: Mapping[str, Any]) -> tuple[str, bytes]:
    return output.get("stream") or "", base64.b64decode(output.get("data") or "")
