"""A sandbox provider for Inspect: Task(sandbox="clove"), or sandbox=("clove", "clove.json").

Inspect finds it by the entry point of an installed package, or by an import of this module,
which needs Inspect. Each sample has one sandbox of clove.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, Optional, Union, overload

from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxConnection,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    sandboxenv,
)

from .errors import CloveError
from .options import Options, read
from .sandbox import OutputError, Result, Sandbox

NOT_EXECUTED = 126


@sandboxenv(name="clove")
class CloveSandboxEnvironment(SandboxEnvironment):
    """The sandbox of one sample. Its only name is default."""

    def __init__(self, box: Sandbox) -> None:
        super().__init__()
        self.box = box

    @classmethod
    def config_files(cls) -> list[str]:
        return ["clove.json"]

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> Options:
        return read(config)

    @classmethod
    async def task_init(cls, task_name: str, config: Any) -> None:
        read(config)  # a mistake ends the task before its first sample

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> dict[str, SandboxEnvironment]:
        box = Sandbox(read(config), "inspect")
        await box.start()
        return {"default": cls(box)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,
        config: Any,
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,
    ) -> None:
        boxes = [e.box for e in environments.values() if isinstance(e, CloveSandboxEnvironment)]
        for box in boxes:
            box.release()  # all at once, and also if this coroutine is cancelled
        for box in boxes:
            await box.close()

    async def exec(
        self,
        cmd: list[str],
        input: Union[str, bytes, None] = None,
        cwd: Optional[str] = None,
        env: Optional[dict[str, str]] = None,
        user: Optional[str] = None,
        timeout: Optional[int] = None,
        timeout_retry: bool = True,
        concurrency: bool = True,
    ) -> ExecResult[str]:
        """A command that ran out of time is not run again: it may have done its work already."""
        data = input.encode() if isinstance(input, str) else input
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        try:
            with _limited(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR):
                done = await self.box.exec(cmd, input=data, cwd=cwd, env=env, user=user, timeout=timeout, limit=limit)
        except LookupError as problem:
            return ExecResult(False, NOT_EXECUTED, "", f"clove: {problem.args[0]}\n")
        except CloveError as problem:
            if problem.step == "chdir":
                return ExecResult(False, NOT_EXECUTED, "", f"clove: {problem.message}\n")
            raise SandboxUnavailableError(str(problem)) from problem
        return _result(cmd, done)

    async def write_file(self, file: str, contents: Union[str, bytes]) -> None:
        with _available():
            await self.box.write(file, contents.encode() if isinstance(contents, str) else contents)

    @overload
    async def read_file(self, file: str, text: Literal[True] = True) -> str: ...

    @overload
    async def read_file(self, file: str, text: Literal[False]) -> bytes: ...

    async def read_file(self, file: str, text: bool = True) -> Union[str, bytes]:
        with _available(), _limited(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, text=False):
            data = await self.box.read(file, limit=SandboxEnvironmentLimits.MAX_READ_FILE_SIZE)
        return data.decode("utf-8") if text else data

    async def connection(self, *, user: Optional[str] = None) -> SandboxConnection:
        who = await self.box.user(user)
        o = self.box.options
        words = [o.command, "--socket", self.box.socket, "exec", "-it", "-u", f"{who['uid']}:{who['gid']}", "-w", o.workdir, self.box.name, "--", "sh"]
        return SandboxConnection(type="clove", command=shlex.join(words), container=self.box.name)

    def default_polling_interval(self) -> float:
        return 0.2


def _result(cmd: list[str], done: Result) -> ExecResult[str]:
    if done.failure and done.returncode == NOT_EXECUTED:
        raise PermissionError(f"{cmd[0]}: {done.failure}")
    stderr = f"clove: {done.failure}\n".encode() if done.failure else done.stderr
    texts = [data.decode("utf-8", errors="replace") for data in (done.stdout, stderr)]
    return ExecResult(done.returncode == 0, done.returncode, *texts)


@contextmanager
def _limited(limit: str, text: bool = True) -> Iterator[None]:
    try:
        yield
    except OutputError as problem:
        raise OutputLimitExceededError(limit, problem.data.decode("utf-8", errors="replace") if text else None) from None


@contextmanager
def _available() -> Iterator[None]:
    try:
        yield
    except CloveError as problem:
        raise SandboxUnavailableError(str(problem)) from problem
