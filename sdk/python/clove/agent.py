"""The agent's side of its socket."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from . import api
from .connection import LostError, Pool, request_line, socket_path
from .errors import CloveError
from .notes import Notifications
from .retry import Backoff, unreachable
from .values import new_key

_PART = 36 << 10
"""Bytes of a part of a blob."""


class Agent(api.Methods):
    """Everything that an agent may call. Threads may share it.

    A call whose connection is lost, or that clove cannot serve at the moment, is repeated
    with the same key for up to `patience` seconds. A call that was done is not done again.
    """

    def __init__(
        self,
        path: Optional[str] = None,
        *,
        patience: float = 15.0,
        timeout: Optional[float] = None,
        connections: int = 8,
    ) -> None:
        """Prepares the connections.

        Args:
            path: of the socket; by default CLOVE_AGENT_SOCKET, or where clove puts it
            patience: seconds for which a call is repeated
            timeout: seconds to wait for an answer; by default for ever
            connections: the most for calls; clove lets an agent have 32 in all
        """
        super().__init__(self._request)
        self.path = path or socket_path()
        self._patience = patience
        self._timeout = timeout
        self._pool = Pool(self.path, connections)
        self._listening: weakref.WeakSet[Notifications] = weakref.WeakSet()

    def __enter__(self) -> Agent:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections, and iterations over notifications."""
        self._pool.close()
        for notifications in list(self._listening):
            notifications.close()

    def call(self, method: str, /, **params: Any) -> Any:
        """Calls a method by its name, also one that this package does not know.

        The answer is the object as it came. A method that is not known is repeated only
        if the call has a key.
        """
        return self._request(method, params)

    def grants(self) -> Iterator[api.Grant]:
        """All grants, oldest first: as many calls of grant.list as that takes."""
        return self.grant.list_all()

    def request(self, to: str, body: Any, *, within: Optional[float] = None, **more: Any) -> api.Mail:
        """Sends a message that asks, waits for its answer, and takes that out of the mailbox.

        Args:
            to: the receiver, as of mail.send
            body: what is asked, as JSON
            within: seconds, after which the question can be received no more and the wait
                ends with NotFoundError; by default both last
            more: other arguments of mail.send
        """
        ms = None if within is None else max(1, round(within * 1000))
        sent = self.mail.send(to, body, asks=True, expires_ms=ms, **more)
        answer = self.mail.answer(sent.id, within_ms=ms).message
        self.mail.ack([answer.id])
        return answer

    def upload(self, content: bytes) -> api.BlobResult:
        """Makes a blob of content, which mail.send and state.set name by its sha256.

        Args:
            content: 1 byte to 64 MiB
        """
        upload = self.blob.open(len(content)).upload
        for offset in range(0, len(content), _PART):
            self.blob.write(upload, offset, content[offset : offset + _PART])
        return self.blob.close(upload)

    def download(self, sha256: str, *, at: Optional[Mapping[str, Any]] = None) -> bytes:
        """The content of a blob.

        Args:
            sha256: of a message in the mailbox, of an own key, or of an own upload
            at: the key that has it, of a scope that runs share
        """
        parts = []
        offset: Optional[int] = None
        while offset != 0:
            part = self.blob.read(sha256, offset=offset, at=at)
            parts.append(part.data)
            offset = part.next_offset
        return b"".join(parts)

    def listen(self, timeout: Optional[float] = None) -> Notifications:
        """The notifications, for `for` and for `async for`.

        Args:
            timeout: seconds without a notification after which the iteration ends; by
                default it does not
        """
        notifications = Notifications(self.path, self._patience, timeout)
        self._listening.add(notifications)
        return notifications

    def _request(self, method: str, params: Mapping[str, Any]) -> Any:
        params = {name: value for name, value in params.items() if value is not None}
        row = api.METHODS.get(method)
        if row is not None and row.keyed:
            params.setdefault("key", new_key())
        try:
            repeatable = row is not None or "key" in params
            return self._repeat(request_line(method, params), repeatable)
        except CloveError as problem:
            problem.method, problem.key = method, params.get("key")
            raise

    def _repeat(self, line: bytes, repeatable: bool) -> Any:
        backoff = Backoff(self._patience)
        while True:
            try:
                return self._pool.ask(line, self._timeout)
            except (api.BusyError, api.DrainingError) as problem:
                failure: CloveError = problem
            except LostError as problem:
                failure = unreachable(self.path, problem)
            delay = backoff.next() if repeatable else None
            if delay is None:
                raise failure
            time.sleep(delay)


def connect(path: Optional[str] = None, **options: Any) -> Agent:
    """Connects to the agent socket. UnreachableError: there is none.

    The other arguments are those of Agent.
    """
    agent = Agent(path, **options)
    try:
        agent._pool.check()
    except LostError:
        pass  # calls try again
    return agent
