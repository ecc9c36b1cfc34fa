"""What a sandbox is like: the settings of Sandbox and of the adapters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Union

_FLAGS = {
    "rootfs": "--rootfs",
    "workspace": "--workspace",
    "policy": "--policy",
    "memory": "--memory",
    "cpus": "--cpus",
    "disk": "--disk",
    "pids": "--pids-limit",
    "network": "--network",
    "allow": "--allow",
    "deny": "--deny",
    "volumes": "--volume",
    "deadline": "--timeout",
}


@dataclass(frozen=True)
class Options:
    """Settings with the meaning that the flags of clove run have. "" leaves one to clove."""

    rootfs: str = ""
    """A directory that replaces the host's base system."""
    workspace: str = ""
    """A directory that appears, copy on write, at /workspace."""
    policy: str = ""
    memory: str = ""
    cpus: str = ""
    disk: str = ""
    pids: str = ""
    network: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Variables of every command. They are neither stored nor in an argument."""
    user: str = "agent"
    """The user of commands: a name or a number inside."""
    workdir: str = "/workspace"
    """Where commands begin. If it is not there, it is made, and belongs to the user, as /workspace does."""
    deadline: str = "24h"
    """When the sandbox ends at the latest."""
    wait: int = 600
    """For how many seconds a sandbox may wait for memory before it starts."""
    command: str = "clove"
    """The program clove."""
    socket: str = ""
    """cloved's socket; "" is what the command clove uses."""

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, _checked(f.name, getattr(self, f.name), f.type))
        if not self.workdir.startswith("/"):
            raise ValueError(f"workdir: {self.workdir!r} is no absolute path inside")

    def flags(self) -> list[str]:
        """The settings as flags of clove run."""
        words: list[str] = []
        for name, flag in _FLAGS.items():
            value = getattr(self, name)
            for text in value if isinstance(value, tuple) else [value]:
                if text:
                    words.append(f"{flag}={text}")
        return words


def read(settings: Union[None, str, Options, Mapping[str, Any]]) -> Options:
    """The options of a mapping, or of the JSON file with a name. A key that is not known is refused."""
    if settings is None:
        return Options()
    if isinstance(settings, Options):
        return settings
    if isinstance(settings, str):
        settings = _load(settings)
    if not isinstance(settings, Mapping):
        raise ValueError("the settings are no object of keys and values")
    known = [f.name for f in fields(Options)]
    for key in settings:
        if key not in known:
            raise ValueError(f"there is no setting {key!r}; there are {', '.join(known)}")
    return Options(**settings)


def _load(file: str) -> Any:
    try:
        with open(file, encoding="utf-8") as text:
            return json.load(text)
    except json.JSONDecodeError as problem:
        raise ValueError(f"{file} is no JSON: {problem}") from None


def _checked(name: str, value: Any, kind: str) -> Any:
    """The value in the form of its kind. Numbers may stand for texts: cpus = 2."""
    if kind == "str" and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    if kind == "int" and isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if kind.startswith("tuple") and isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value):
        return tuple(value)
    if kind.startswith("Mapping") and isinstance(value, Mapping) and all(isinstance(v, str) for pair in value.items() for v in pair):
        return dict(value)
    wanted = {"str": "a text", "int": "a number above 0"}.get(kind, "a list of texts" if kind.startswith("tuple") else "an object of texts")
    raise ValueError(f"{name}: {value!r} is not {wanted}")
