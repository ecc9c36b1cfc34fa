"""Notifications: what an agent gets without having asked."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Optional

from . import api
from .connection import Connection, LostError, error_of, request_line
from .retry import Backoff, unreachable

_LISTEN = request_line("agent.listen", {})


@dataclass(frozen=True)
class Note:
    """One notification."""

    method: str  # such as budget.warning
    params: Any  # the type that api.NOTES names, else the object as it came


def note_of(message: Mapping[str, Any]) -> Optional[Note]:
    """The notification in a message; None: it is the answer to agent.listen."""
    if "error" in message:
        raise error_of(message["error"])
    if "method" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    read = api.NOTES.get(method)
    return Note(method, read(params) if read else params)


class Notifications:
    """An iterable over notifications. Each iteration has a connection of its own.

    Up to 256 notifications wait while no connection listens, so none is missed before and
    between iterations. If there were more, the oldest are gone, and the first one is
    `agent.lost` with their number.
    """

    def __init__(self, path: str, patience: float, timeout: Optional[float]) -> None:
        self._path = path
        self._patience = patience
        self._timeout = timeout
        self._lock = threading.Lock()
        self._open: set[Connection] = set()  # guarded by _lock
        self._closed = False  # guarded by _lock

    def __enter__(self) -> Notifications:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the iterations, also in other threads."""
        with self._lock:
            self._closed = True
            for connection in self._open:
                connection.shut()

    def __iter__(self) -> Iterator[Note]:
        backoff = Backoff(self._patience)
        while not self._closed:
            try:
                with self._listening() as connection:
                    while True:
                        note = note_of(connection.receive(self._timeout))
                        if note is not None:
                            backoff = Backoff(self._patience)
                            yield note
            except TimeoutError:
                return
            except (LostError, api.BusyError) as problem:
                delay = self._pause(backoff, problem)
            time.sleep(delay)

    async def __aiter__(self) -> AsyncIterator[Note]:
        import asyncio  # here: it would double the time that other programs take to start

        backoff = Backoff(self._patience)
        while not self._closed:
            try:
                with self._listening() as connection:
                    while True:
                        waiting = connection.receive_async()
                        note = note_of(await asyncio.wait_for(waiting, self._timeout))
                        if note is not None:
                            backoff = Backoff(self._patience)
                            yield note
            except asyncio.TimeoutError:
                return
            except (LostError, api.BusyError) as problem:
                delay = self._pause(backoff, problem)
            await asyncio.sleep(delay)

    @contextmanager
    def _listening(self) -> Iterator[Connection]:
        """A connection on which notifications come."""
        connection = Connection(self._path)
        try:
            with self._lock:
                self._open.add(connection)
                if self._closed:
                    connection.shut()
            connection.send(_LISTEN)
            yield connection
        finally:
            with self._lock:
                self._open.discard(connection)
            connection.close()

    def _pause(self, backoff: Backoff, problem: Exception) -> float:
        """How long to wait before the next connection; raises where there is none."""
        delay = 0.0 if self._closed else backoff.next()
        if delay is None:
            raise unreachable(self._path, problem) from problem
        return delay
