"""Stand-ins for Inspect and Harbor, which cannot be installed here.

They have the names, signatures and defaults that the adapters use, written from the
interfaces of Inspect (commit 499e615 of August 2026) and Harbor 0.13.1. They are no copies: what only
those projects' own code does, tests with these cannot show.
"""

import abc
import enum
import logging
import sys
import types
from dataclasses import dataclass, field
from typing import Any, Optional

REGISTERED = {}


def module(name, **names):
    made = types.ModuleType(name)
    made.__dict__.update(names)
    sys.modules[name] = made


@dataclass
class InspectResult:
    success: bool
    returncode: int
    stdout: str
    stderr: str

    def __class_getitem__(cls, kind):
        return cls


class OutputLimitExceededError(Exception):
    def __init__(self, limit_str, truncated_output):
        super().__init__(f"more than {limit_str}")
        self.limit_str, self.truncated_output = limit_str, truncated_output


class Limits:
    MAX_EXEC_OUTPUT_SIZE = 10 << 20
    MAX_EXEC_OUTPUT_SIZE_STR = "10 MiB"
    MAX_READ_FILE_SIZE = 100 << 20
    MAX_READ_FILE_SIZE_STR = "100 MiB"


class SandboxEnvironment(abc.ABC):
    @abc.abstractmethod
    async def exec(self, cmd, input=None, cwd=None, env=None, user=None, timeout=None, timeout_retry=True, concurrency=True): ...

    @abc.abstractmethod
    async def write_file(self, file, contents): ...

    @abc.abstractmethod
    async def read_file(self, file, text=True): ...

    @classmethod
    @abc.abstractmethod
    async def sample_cleanup(cls, task_name, config, environments, interrupted): ...


@dataclass
class SandboxConnection:
    type: str
    command: str
    container: Optional[str] = None


class SandboxUnavailableError(RuntimeError):
    pass


def sandboxenv(name):
    def register(kind):
        REGISTERED[name] = kind
        return kind

    return register


def inspect_ai():
    module("inspect_ai")
    module(
        "inspect_ai.util",
        ExecResult=InspectResult,
        OutputLimitExceededError=OutputLimitExceededError,
        SandboxConnection=SandboxConnection,
        SandboxEnvironment=SandboxEnvironment,
        SandboxEnvironmentLimits=Limits,
        SandboxUnavailableError=SandboxUnavailableError,
        sandboxenv=sandboxenv,
    )


@dataclass
class HarborResult:
    return_code: int
    stdout: Optional[str] = None
    stderr: Optional[str] = None


class NetworkMode(str, enum.Enum):
    NO_NETWORK = "no-network"
    PUBLIC = "public"
    ALLOWLIST = "allowlist"


@dataclass
class NetworkPolicy:
    network_mode: NetworkMode = NetworkMode.PUBLIC
    allowed_hosts: list = field(default_factory=list)


@dataclass
class EnvironmentConfig:
    cpus: Optional[int] = None
    memory_mb: Optional[int] = None
    storage_mb: Optional[int] = None
    workdir: Optional[str] = None


@dataclass
class Capabilities:
    disable_internet: bool = False
    network_allowlist: bool = False
    cpu_limit: bool = False
    memory_limit: bool = False


class BaseEnvironment(abc.ABC):
    def __init__(
        self,
        environment_dir,
        environment_name,
        session_id,
        trial_paths,
        task_env_config,
        logger=None,
        persistent_env=None,
        mounts=None,
        network_policy=None,
        *args,
        **kwargs,
    ):
        self.environment_dir, self.environment_name, self.session_id = environment_dir, environment_name, session_id
        self.task_env_config, self.network_policy = task_env_config, network_policy or NetworkPolicy()
        self.logger = logger or logging.getLogger("harbor")
        self.default_user = None
        self._env, self._mounts = persistent_env or {}, mounts or []
        self._effective_cpus, self._effective_memory_mb = task_env_config.cpus, task_env_config.memory_mb
        self._effective_storage_mb = task_env_config.storage_mb
        self._validate_definition()

    def _resolve_user(self, user):
        return self.default_user if user is None else user

    def _merge_env(self, env):
        return {**self._env, **(env or {})} or None

    def _mount_targets(self, *, writable_only=False):
        return [m["target"] for m in self._mounts]

    async def ensure_dirs(self, dirs, *, chmod=True) -> Any:
        if dirs:
            words = " ".join(dirs)
            return await self.exec(f"mkdir -p {words} && chmod 777 {words}", user="root")

    async def is_dir(self, path, user=None):
        return (await self.exec(f"test -d '{path}'", timeout_sec=10, user=user)).return_code == 0

    async def _upload_environment_dir_after_start(self):
        pass

    @staticmethod
    @abc.abstractmethod
    def type() -> str: ...

    @abc.abstractmethod
    def _validate_definition(self): ...

    @abc.abstractmethod
    async def start(self, force_build): ...

    @abc.abstractmethod
    async def stop(self, delete): ...

    @abc.abstractmethod
    async def upload_file(self, source_path, target_path): ...

    @abc.abstractmethod
    async def upload_dir(self, source_dir, target_dir): ...

    @abc.abstractmethod
    async def download_file(self, source_path, target_path): ...

    @abc.abstractmethod
    async def download_dir(self, source_dir, target_dir): ...

    @abc.abstractmethod
    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None): ...


def harbor():
    module("harbor")
    module("harbor.environments")
    module("harbor.environments.base", BaseEnvironment=BaseEnvironment, ExecResult=HarborResult)
    module("harbor.environments.capabilities", EnvironmentCapabilities=Capabilities, EnvironmentResourceCapabilities=Capabilities)
