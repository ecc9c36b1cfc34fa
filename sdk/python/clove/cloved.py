"""The user's side: runs of the cloved on this machine, for coroutines.

    from clove.cloved import Cloved

    cloved = Cloved()
    run = (await cloved.start(["sleep", "60"], name="worker")).run
    print((await cloved.exec("worker", ["id"])).stdout)
    await cloved.run.stop("worker")
    print((await cloved.run.wait("worker")).record.status)

cloved.run, cloved.event and the other nouns have one method for each row of the API.
"""

from __future__ import annotations

import dataclasses
import posixpath
import secrets
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Optional, Union

from . import cloved_api, trees
from .commands import OUTPUT, Result, execute
from .session import Caller, daemon_path


class Cloved(cloved_api.Methods):
    """Everything that a user may call. Each call has a connection of its own.

    No call is repeated: after an UnreachableError, it may have been done or not.
    """

    def __init__(self, path: Optional[str] = None) -> None:
        """Connects to nothing yet.

        Args:
            path: of the socket; by default as the command clove finds it
        """
        self.path = path or daemon_path()
        super().__init__(Caller(self.path))

    async def start(
        self,
        command: Sequence[str],
        *,
        name: str = "",
        spec: Optional[cloved_api.Spec] = None,
        **changes: Any,
    ) -> cloved_api.RunResult:
        """Starts a run in the background, as run.start does.

        Args:
            command: the program inside, with its arguments
            name: by default the program's, with random digits
            spec: what else the run has; by default the level standard
            changes: fields of the spec that are others, such as workspace or labels
        """
        name = name or f"{posixpath.basename(command[0])}-{secrets.token_hex(4)}"
        base = spec or cloved_api.standard()
        return await self.run.start(dataclasses.replace(base, command=list(command), name=name, **changes))

    async def exec(
        self,
        run: str,
        command: Sequence[str],
        *,
        input: Union[None, bytes, Iterable[bytes]] = None,
        cwd: str = "",
        env: Optional[Mapping[str, str]] = None,
        user: Optional[cloved_api.User] = None,
        timeout: Optional[float] = None,
        limit: int = OUTPUT,
        tail: bool = False,
    ) -> Result:
        """Runs one more command in a live run, to its end.

        Beyond limit bytes on a stream it is ended with OutputError, or with tail the first
        ones are left out. Beyond timeout seconds it is ended with TimeoutError.
        """
        order = cloved_api.Exec(list(command), [f"{k}={v}" for k, v in (env or {}).items()], cwd, user)
        return await execute(self.path, run, order, input=input, timeout=timeout, limit=limit, tail=tail)

    async def copy_in(self, run: str, source: Path, folder: str, name: str = "") -> None:
        """Copies a file to a name in a folder of a live run, or what is in a folder into it."""
        await trees.send(self.path, run, Path(source), folder, name)

    async def copy_out(self, run: str, path: str, target: Path) -> list[str]:
        """Copies a file of a live run to a name, or what is in a folder into one outside.

        It returns what was left out: what is no file, no folder, and no link that stays inside.
        """
        return await trees.receive(self.path, run, path, Path(target))

    async def logs(self, run: str, **choice: Any) -> AsyncIterator[cloved_api.LogLine]:
        """The lines of a run's log. The choice is that of run.logs."""
        async with self.run.logs(run, many=True, **choice) as notes:
            async for note in notes:
                for line in note.lines:
                    yield line
