"""When a call is made again, and what is raised when it is not."""

from __future__ import annotations

import random
import time
from typing import Optional

from .errors import UnreachableError

_FIRST_DELAY = 0.01
_LONGEST_DELAY = 1.0


class Backoff:
    """The times between the attempts at one thing, and their end after so many seconds."""

    def __init__(self, patience: float) -> None:
        self._deadline = time.monotonic() + patience
        self._delay = 0.0  # at once: an idle connection may have been closed meanwhile

    def next(self) -> Optional[float]:
        """How many seconds to wait before the next attempt; None: there is none."""
        delay = self._delay * random.uniform(0.5, 1)  # not all callers at the same moment
        self._delay = min(max(self._delay * 2, _FIRST_DELAY), _LONGEST_DELAY)
        return delay if time.monotonic() + delay <= self._deadline else None


def unreachable(path: str, problem: Exception) -> UnreachableError:
    """The exception for a socket that is not there, or whose connections fail."""
    text = getattr(problem, "strerror", None) or problem
    hint = "start the run with --grant, --budget or --agent-socket"
    return UnreachableError(f"cannot reach {path}: {text}", word="unreachable", hint=hint)
