"""The command line: python3 -m clove METHOD [--json] KEY=VALUE..."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Optional

from . import api
from .agent import Agent, connect
from .errors import CloveError
from .show import show
from .values import encode

USAGE = """usage: python3 -m clove [--json] [--socket PATH] METHOD [KEY=VALUE...]

METHOD is a name such as grant.check, or two words: grant check. Required parameters may
stand without their key, in order. Amounts have the name of their dimension as key:

    python3 -m clove grant check tool:fetch
    python3 -m clove budget charge tokens=120 reviews=1

--json prints the answer as it came. --help after a method explains it. The exit status is 0
if it was done; 1 if it was refused, failed, or grant check says no; 2 for wrong usage.

Methods:
"""

LISTEN = api.Method(
    "agent.listen",
    "Prints each notification as a line of JSON, until none came for the timeout.",
    [api.Param("timeout", "integer", False, "in seconds; by default there is none")],
)


class UsageError(Exception):
    """The command line is wrong."""


def main(words: Sequence[str]) -> int:
    """Runs a command line and returns its exit status."""
    try:
        status = run(list(words))
        sys.stdout.flush()  # here, where a reader that has gone is expected
        return status
    except UsageError as problem:
        print(f"clove: {problem}", file=sys.stderr)
        return 2
    except CloveError as problem:
        if "--json" in words:
            print(json.dumps({"error": problem.as_dict()}))
        print(f"clove: {problem.message}", file=sys.stderr)
        if problem.hint:
            print(f"  {problem.hint}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # No process reads any more. Python would report that once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def run(words: list[str]) -> int:
    as_json = take(words, "--json")
    path = take_value(words, "--socket")
    help_wanted = take(words, "--help") or take(words, "-h")
    if not words or words == ["help"]:
        print(USAGE + summary())
        return 0 if help_wanted or words else 2
    method, words = find(words)
    if help_wanted:
        print(explain(method))
        return 0
    params = parse(method, words)
    with connect(path) as agent:
        if method is LISTEN:
            return listen(agent, params)
        answer = agent.call(method.name, **params)
    print(json.dumps(answer) if as_json else show(answer))
    # Only a check has it: the answer no is a status for scripts.
    return 1 if answer.get("allowed") is False else 0


def listen(agent: Agent, params: Mapping[str, Any]) -> int:
    for note in agent.listen(**params):
        print(json.dumps(asdict(note), default=encode), flush=True)
    return 0


def take(words: list[str], flag: str) -> bool:
    if flag not in words:
        return False
    words.remove(flag)
    return True


def take_value(words: list[str], flag: str) -> Optional[str]:
    if flag not in words:
        return None
    at = words.index(flag)
    if at + 1 == len(words):
        raise UsageError(f"{flag} needs a value")
    del words[at]
    return words.pop(at)


def methods() -> dict[str, api.Method]:
    return {**api.METHODS, LISTEN.name: LISTEN}


def find(words: list[str]) -> tuple[api.Method, list[str]]:
    """The method that the first words name, and the other words."""
    for count in (1, 2):
        method = methods().get(".".join(words[:count]))
        if method is not None:
            return method, words[count:]
    raise UsageError(f"there is no method {' '.join(words[:2])!r}; python3 -m clove --help lists them")


def summary() -> str:
    rows = [("  " + name.replace(".", " "), m.doc.partition(". ")[0].rstrip(".")) for name, m in sorted(methods().items())]
    return "\n".join(f"{name:<20}{doc}" for name, doc in rows)


def explain(method: api.Method) -> str:
    lines = ["usage: python3 -m clove " + " ".join([*method.name.split("."), *map(pattern, ordered(method))])]
    lines += ["", method.doc]
    for p in ordered(method):
        lines.append(f"  {p.name:<12} {p.kind}{'; ' if p.doc else ''}{p.doc}")
    return "\n".join(lines)


def ordered(method: api.Method) -> list[api.Param]:
    """What is required stands first: it may stand without its key."""
    return sorted(method.params, key=lambda p: not p.required)


def pattern(p: api.Param) -> str:
    if p.kind == "amounts":
        return "NAME=NUMBER..."
    return p.name.upper() if p.required else f"[{p.name}=...]"


def parse(method: api.Method, words: Sequence[str]) -> dict[str, Any]:
    """The parameters that the words name."""
    known = {p.name: p for p in method.params}
    counted = next((p for p in method.params if p.kind == "amounts"), None)
    bare = iter([p for p in method.params if p.required and p.kind != "amounts"])
    params: dict[str, Any] = {}
    for word in words:
        if word.startswith("--"):
            raise UsageError(f"there is no option {word}")
        name, equals, text = word.partition("=")
        if equals and name in known:
            params[name] = value(known[name], text)
        elif equals and counted and name.isidentifier():
            params.setdefault(counted.name, {})[name] = integer(name, text)
        else:
            p = next(bare, None)
            if p is None:
                raise UsageError(f"{method.name} has no place for {word!r}; --help explains it")
            params[p.name] = value(p, word)
    missing = [p.name for p in method.params if p.required and p.name not in params]
    if missing:
        raise UsageError(f"{method.name} needs {', '.join(missing)}; --help explains it")
    return params


def value(p: api.Param, text: str) -> Any:
    """A parameter's value as JSON has it."""
    if p.kind in ("string", "time"):
        return text
    if p.kind == "integer":
        return integer(p.name, text)
    if p.kind == "strings":
        return text.split(",")
    try:
        return json.loads(text)  # bool, amounts, json
    except ValueError:
        raise UsageError(f"{p.name}: {text!r} is no JSON") from None


def integer(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"{name}: {text!r} is no whole number") from None
