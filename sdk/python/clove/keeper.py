"""The process that ends a sandbox when its owner ends.

It starts a run, and removes it when its stdin ends, or at SIGTERM. That is a pipe which the owner alone
has open, so a killed owner counts as well as one that closes it. Its arguments are
cloved's socket, the run's name, and the command that starts the run.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from types import FrameType
from typing import Any, Optional

from .errors import CloveError
from .session import call

PATIENCE = 120.0
"""For how many seconds the removal of a run is tried: cloved may be restarted meanwhile."""

STARTED = b"started\n"


def main(words: Sequence[str]) -> int:
    """Keeps one run and returns the exit status."""
    path, name, *command = words
    _on(_end)
    patience = PATIENCE
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.stderr.buffer.write(done.stderr)
            patience = 0
            return 1
        os.write(1, STARTED)
        while os.read(0, 4096):
            pass
    except BrokenPipeError:
        pass  # the owner has gone
    except OSError as problem:
        print(f"cannot execute {command[0]}: {problem.strerror}", file=sys.stderr)
        patience = 0
        return 1
    finally:
        _on(signal.SIG_IGN)
        removed = asyncio.run(_remove(path, name, patience))
    return 0 if removed else 1


def _on(handler: Any) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, handler)


def _end(number: int, frame: Optional[FrameType]) -> None:
    raise BrokenPipeError


async def _remove(path: str, name: str, patience: float) -> bool:
    last = time.monotonic() + patience
    while True:
        try:
            await call(path, "run.remove", run=name, force=True)
            return True
        except CloveError as problem:
            if problem.word == "not-found":
                return True
            if time.monotonic() > last:
                if patience:
                    print(f"{name} is not removed: {problem}", file=sys.stderr)
                return False
        await asyncio.sleep(0.5)
