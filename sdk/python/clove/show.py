"""Answers as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def show(answer: Any) -> str:
    """A line for each value, and a table for each list of objects."""
    if not isinstance(answer, Mapping):
        return scalar(answer)
    if len(answer) == 1:
        (only,) = answer.values()
        if isinstance(only, Mapping):
            return show(only)
    parts = []
    for name, value in answer.items():
        if isinstance(value, Sequence) and not isinstance(value, str):
            parts.append(table(name, value))
        elif isinstance(value, Mapping):
            parts.append(f"{name}:\n{show(value)}")
        else:
            parts.append(f"{name}: {scalar(value)}")
    return "\n".join(parts) or "done"


def table(name: str, rows: Sequence[Any]) -> str:
    """A column for each name that any of the rows has."""
    if not all(isinstance(row, Mapping) for row in rows):
        return f"{name}: " + " ".join(map(scalar, rows))
    if not rows:
        return f"{name}: none"
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns] + [[scalar(row.get(column)) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    return "\n".join([f"{name}:"] + ["  " + line for line in lines])


def scalar(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    # A grant's reason is an agent's text: no terminal sequences.
    return "".join(c if c.isprintable() else "?" for c in str(value))
