"""Calls and sessions on cloved's socket, for coroutines: one JSON-RPC 2.0 object a line."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Optional

from .connection import error_of
from .errors import CloveError, UnreachableError

PIECE = 32 << 10
"""Bytes of input on one line, which has at most 64 KiB."""

_LONGEST = 4 << 20  # the longest line that is read; cloved's have at most 1 MiB


def daemon_path() -> str:
    """Where cloved listens, by the variables that the command clove reads, too."""
    run_dir = os.environ.get("CLOVE_RUN_DIR") or "/run/clove"
    return os.environ.get("CLOVE_SOCKET") or os.path.join(run_dir, "clove.sock")


def _line(method: str, params: Mapping[str, Any], number: Optional[int] = None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if number is not None:
        message["id"] = number
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


async def call(path: str, method: str, **params: Any) -> Any:
    """Makes one call and returns its result."""
    return await converse(path, method, params)


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
    try:
        reader, writer = await asyncio.open_unix_connection(path, limit=_LONGEST)
    except OSError as problem:
        hint = "start cloved, and be root or a member of its group"
        raise UnreachableError(f"cannot reach cloved at {path}: {problem.strerror}", word="unreachable", hint=hint) from problem
    feeding: Optional[asyncio.Future[None]] = None
    try:
        writer.write(_line(method, params, 1))
        if pieces is not None:
            feeding = asyncio.ensure_future(_feed(writer, pieces))
        return await _answer(reader, each)
    except OSError as problem:
        if feeding is not None and feeding.done() and feeding.exception():
            raise feeding.exception() from None  # the input could not be read
        raise UnreachableError("the session with cloved was lost", word="unreachable") from problem
    finally:
        if feeding is not None:
            feeding.cancel()
        writer.transport.abort()


async def _feed(writer: asyncio.StreamWriter, pieces: Iterable[bytes]) -> None:
    try:
        for piece in pieces:
            writer.write(_line("session.input", {"data": base64.b64encode(piece).decode()}))
            await writer.drain()
        writer.write(_line("session.close_input", {}))
        await writer.drain()
    except ConnectionError:
        pass  # the process reads no more; the answer says how it ended
    except OSError:
        writer.transport.abort()  # half of an input must not look like a whole one
        raise


async def _answer(reader: asyncio.StreamReader, each: Optional[Callable[[str, bytes], None]]) -> Any:
    while True:
        text = await reader.readline()
        if not text.endswith(b"\n"):
            raise ConnectionResetError("the connection has ended")
        message = json.loads(text)
        if message.get("method") == "session.output":
            output = message["params"]
            if each is not None:
                each(output["stream"], base64.b64decode(output.get("data") or ""))
        elif "method" not in message:
            if "error" in message:
                raise error_of(message["error"])
            return message.get("result")
