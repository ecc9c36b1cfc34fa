"""An environment for Harbor: --environment-import-path clove.harbor:CloveEnvironment.

This module needs Harbor. Each trial has one sandbox of clove. clove builds no images: the
setting rootfs names the unpacked one.
"""

from __future__ import annotations

import dataclasses
import inspect
import posixpath
from pathlib import Path
from typing import Any, Optional, Union

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities

from .errors import CloveError
from .options import Options, read
from .sandbox import Sandbox
from .trees import download, upload

HOST = "host"
"""The value of rootfs for the host's base system."""

NOT_EXECUTED = 126

_NETWORKS = {"public": "public", "no-network": "none", "allowlist": "allowlist"}


class CloveEnvironment(BaseEnvironment):
    """The sandbox of one trial. Keyword arguments that are not Harbor's are settings of clove."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        known = inspect.signature(BaseEnvironment.__init__).parameters
        settings = {name: kwargs.pop(name) for name in list(kwargs) if name not in known}
        for name in ("network", "allow"):
            if name in settings:
                raise ValueError(f"{name}: the task's network policy decides that; omit the setting")
        self._settings: Options = read({"user": "root", "workdir": "/", **settings})
        self._set_workdir = "workdir" in settings
        self._box: Optional[Sandbox] = None
        self._shell = "sh"
        super().__init__(*args, **kwargs)

    @staticmethod
    def type() -> str:
        return "clove"

    @property
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True, network_allowlist=True)

    @classmethod
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities:
        return EnvironmentResourceCapabilities(cpu_limit=True, memory_limit=True)

    def _validate_definition(self) -> None:
        if (Path(self.environment_dir) / "docker-compose.yaml").exists():
            raise ValueError(f"{self.environment_name} is a compose task, and a trial of clove has one sandbox")
        root = self._rootfs()
        if not root:
            raise ValueError(
                "rootfs is missing: clove builds no images. Name the folder of the unpacked image, "
                f"with {{environment}} for the task's name, or {HOST!r} for the host's base system"
            )
        if root != HOST and not Path(root).is_dir():
            raise FileNotFoundError(f"rootfs: there is no folder {root}: unpack the image of {self.environment_name} there")

    def _rootfs(self) -> str:
        return self._settings.rootfs.replace("{environment}", self.environment_name)

    def _options(self) -> Options:
        """The settings, with what the task wants. The limits of the task take precedence."""
        root, policy = self._rootfs(), self.network_policy
        wanted: dict[str, Any] = {"rootfs": "" if root == HOST else root}
        sizes = {"memory": self._effective_memory_mb, "disk": self._effective_storage_mb}
        wanted.update({name: f"{size}M" for name, size in sizes.items() if size})
        if self._effective_cpus:
            wanted["cpus"] = str(self._effective_cpus)
        if not self._set_workdir:
            wanted["workdir"] = self.task_env_config.workdir or _workdir(Path(self.environment_dir) / "Dockerfile")
        wanted["network"] = _NETWORKS[getattr(policy.network_mode, "value", policy.network_mode)]
        wanted["allow"] = tuple(policy.allowed_hosts)
        return dataclasses.replace(self._settings, **wanted)

    async def start(self, force_build: bool) -> None:
        box = Sandbox(self._options(), "harbor")
        await box.start()
        self._box = box
        try:
            if (await box.exec(["bash", "-c", ":"], user="root")).returncode == 0:
                self._shell = "bash"
            await self.ensure_dirs(self._mount_targets(writable_only=True))
            await self._upload_environment_dir_after_start()
        except BaseException:
            box.release()
            raise

    async def stop(self, delete: bool) -> None:
        box, self._box = self._box, None
        if box is None:
            return
        if not delete:
            self.logger.warning("clove keeps no sandbox of a trial that is over: delete=False has no effect")
        await box.close()

    @property
    def box(self) -> Sandbox:
        if self._box is None:
            raise RuntimeError("the environment is not started")
        return self._box

    async def exec(
        self,
        command: str,
        cwd: Optional[str] = None,
        env: Optional[dict[str, str]] = None,
        timeout_sec: Optional[int] = None,
        user: Union[str, int, None] = None,
    ) -> ExecResult:
        words = [self._shell, "-c", command]
        try:
            done = await self.box.exec(
                words, cwd=cwd, env=self._merge_env(env), timeout=timeout_sec, user=self._resolve_user(user), tail=True
            )
        except TimeoutError:
            # Not as TimeoutError, which is Harbor's own word for a trial's agent.
            raise RuntimeError(f"the command did not end within {timeout_sec} s") from None
        except LookupError as problem:
            return ExecResult(stderr=f"clove: {problem.args[0]}\n", return_code=NOT_EXECUTED)
        except CloveError as problem:
            if problem.step == "chdir":
                return ExecResult(stderr=f"clove: {problem.message}\n", return_code=NOT_EXECUTED)
            raise
        stderr = f"clove: {done.failure}\n".encode() if done.failure else done.stderr
        texts = [data.decode("utf-8", errors="replace") for data in (done.stdout, stderr)]
        return ExecResult(stdout=texts[0], stderr=texts[1], return_code=done.returncode)

    async def upload_file(self, source_path: Union[Path, str], target_path: str) -> None:
        folder, name = posixpath.split(self.box.path(target_path))
        await upload(self.box, Path(source_path), folder, name)

    async def upload_dir(self, source_dir: Union[Path, str], target_dir: str) -> None:
        await upload(self.box, Path(source_dir), self.box.path(target_dir))

    async def download_file(self, source_path: str, target_path: Union[Path, str]) -> None:
        path = self.box.path(source_path)
        real = await self.box.exec(["readlink", "-f", "--", path], cwd="/", user="root")
        if real.returncode == 0:
            path = real.stdout.decode(errors="surrogateescape").rstrip("\n")
        if await self.is_dir(path, user="root"):
            raise IsADirectoryError(f"{source_path} is a directory")
        if await download(self.box, path, Path(target_path)):
            raise OSError(f"{source_path} is no file")

    async def download_dir(self, source_dir: str, target_dir: Union[Path, str]) -> None:
        left = await download(self.box, self.box.path(source_dir), Path(target_dir))
        if left:
            self.logger.warning("%s: only files, folders and links that stay inside are kept; left out: %s", source_dir, "; ".join(left[:20]))


def _workdir(dockerfile: Path) -> str:
    """Where a Dockerfile has commands begin."""
    folder = "/"
    if dockerfile.is_file():
        for line in dockerfile.read_text(encoding="utf-8").splitlines():
            word, _, rest = line.strip().partition(" ")
            if word.upper() == "WORKDIR":
                folder = posixpath.join(folder, rest.strip().strip("\"'"))
            elif word.upper() == "FROM":
                folder = "/"
    return folder
