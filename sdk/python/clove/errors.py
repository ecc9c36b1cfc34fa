"""What every exception of this package is."""

from __future__ import annotations

from typing import Any, Optional


class CloveError(Exception):
    """A call that was not done. There is one subclass for each error word."""

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        word: str = "",
        hint: str = "",
        step: str = "",
        rule: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """The JSON-RPC code."""
        self.word = word
        """The code's stable word: messages may change."""
        self.hint = hint
        """What to do about it."""
        self.step = step
        """Which step or parameter it was."""
        self.rule = rule
        """What decided, such as a grant's id."""
        self.method: Optional[str] = None
        """The method that was called."""
        self.key: Optional[str] = None
        """The call's key. The same call with the same key is never done twice."""

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def as_dict(self) -> dict[str, Any]:
        """The error as an object for JSON, without what is empty."""
        names = ("code", "word", "message", "step", "rule", "hint", "method", "key")
        return {name: getattr(self, name) for name in names if getattr(self, name)}


class UnreachableError(CloveError, ConnectionError):
    """There is no agent socket, or connections to it keep failing."""


class UnansweredError(CloveError, TimeoutError):
    """No answer came in time. The call may have been done; repeat it with its key."""
