"""Connections to the agent socket: one JSON-RPC 2.0 object a line."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from typing import Any, Optional

from . import api
from .errors import CloveError, UnansweredError
from .retry import unreachable
from .values import encode

DEFAULT_PATH = "/run/clove/agent.sock"

_READ = 64 << 10


def socket_path() -> str:
    """Where clove put the agent's socket."""
    return os.environ.get("CLOVE_AGENT_SOCKET") or DEFAULT_PATH


class LostError(Exception):
    """A connection failed. The call that was on it may have been done or not."""


def request_line(method: str, params: Mapping[str, Any]) -> bytes:
    """The line of a call. A connection has one call at a time, so each has the same id."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    line = json.dumps(message, separators=(",", ":"), allow_nan=False, default=encode).encode()
    if len(line) > api.MAX_LINE:
        # The gate would end the connection, and the call would be repeated in vain.
        hint = "send less at once"
        raise api.TooLargeError(f"a call has at most {api.MAX_LINE} bytes", word="too-large", hint=hint)
    return line + b"\n"


def error_of(answer: Mapping[str, Any]) -> CloveError:
    """The exception of an error object."""
    data = answer.get("data")
    if not isinstance(data, Mapping):
        data = {}
    kind = api.ERRORS.get(data.get("word", ""), CloveError)
    texts = {name: data.get(name, "") for name in ("word", "hint", "step", "rule")}
    return kind(answer.get("message", ""), code=answer.get("code", 0), **texts)


class Connection:
    """One connection. One thread at a time may use it; any may end it with shut."""

    def __init__(self, path: str) -> None:
        self.usable = True
        """The next answer is that of the next call."""
        self._rest = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
        except (FileNotFoundError, PermissionError) as problem:
            self._socket.close()
            raise unreachable(path, problem) from problem
        except OSError as problem:
            self._socket.close()
            raise LostError(problem.strerror or str(problem)) from problem

    def ask(self, line: bytes, timeout: Optional[float] = None) -> Any:
        """Sends a call and returns its result."""
        self.usable = False
        self.send(line)
        try:
            answer = self.receive(timeout)
        except TimeoutError as problem:
            raise UnansweredError(f"no answer within {timeout:g} s", word="unanswered") from problem
        # An error without an id is about the connection, which has ended.
        self.usable = answer.get("id") is not None
        if "error" in answer:
            raise error_of(answer["error"])
        return answer.get("result")

    def send(self, line: bytes) -> None:
        try:
            self._socket.settimeout(None)
            self._socket.sendall(line)
        except OSError as problem:
            raise LostError(problem.strerror or str(problem)) from problem

    def receive(self, timeout: Optional[float] = None) -> dict[str, Any]:
        """The next message. TimeoutError: none came within the seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while b"\n" not in self._rest:
            left = None if deadline is None else max(deadline - time.monotonic(), 1e-6)
            try:
                self._socket.settimeout(left)
                data = self._socket.recv(_READ)
            except socket.timeout as problem:  # before 3.10 it is no TimeoutError
                raise TimeoutError from problem
            except OSError as problem:
                raise LostError(problem.strerror or str(problem)) from problem
            self._feed(data)
        return self._message()

    async def receive_async(self) -> dict[str, Any]:
        """The next message, for a coroutine."""
        import asyncio

        self._socket.setblocking(False)
        while b"\n" not in self._rest:
            try:
                data = await asyncio.get_running_loop().sock_recv(self._socket, _READ)
            except OSError as problem:
                raise LostError(problem.strerror or str(problem)) from problem
            self._feed(data)
        return self._message()

    def _feed(self, data: bytes) -> None:
        if not data:
            raise LostError("the connection has ended")
        self._rest += data

    def _message(self) -> dict[str, Any]:
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def shut(self) -> None:
        """Ends the connection for each caller that waits for a message."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already

    def close(self) -> None:
        self._socket.close()


class Pool:
    """Connections for calls: each call has one to itself, so answers need no matching."""

    def __init__(self, path: str, most: int) -> None:
        self._path = path
        self._most = most
        self._reset()
        _pools.add(self)

    def _reset(self) -> None:
        self._room = threading.BoundedSemaphore(self._most)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []  # guarded by _lock
        self._closed = False  # guarded by _lock

    def check(self) -> None:
        """Raises UnreachableError where there is no socket."""
        with self._room:
            self._give(self._take())

    def ask(self, line: bytes, timeout: Optional[float]) -> Any:
        """Makes one call on a connection that nothing else uses."""
        with self._room:
            connection = self._take()
            try:
                return connection.ask(line, timeout)
            finally:
                self._give(connection)

    def _take(self) -> Connection:
        with self._lock:
            if self._closed:
                raise ValueError("the agent's connections are closed")
            if self._idle:
                return self._idle.pop()
        return Connection(self._path)

    def _give(self, connection: Connection) -> None:
        with self._lock:
            if connection.usable and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def after_fork(self) -> None:
        """Leaves the connections to the parent: two processes would read each other's answers."""
        idle, closed = self._idle, self._closed
        self._reset()  # a lock may have been held by a thread that the child has not
        self._closed = closed
        for connection in idle:
            connection.close()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool.after_fork()


os.register_at_fork(after_in_child=_after_fork)
