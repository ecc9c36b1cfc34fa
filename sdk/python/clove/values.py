"""Values as they stand in JSON."""

from __future__ import annotations

import base64
import dataclasses
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Optional

_FRACTION = re.compile(r"\.(\d+)")


def new_key() -> str:
    """A key that no other call has."""
    return secrets.token_hex(16)


def read_time(text: Optional[str]) -> Optional[datetime]:
    """The time of an RFC 3339 text; nanoseconds become microseconds."""
    if not text:
        return None
    # Before 3.11, fromisoformat knows no Z, and only 3 or 6 digits of a second.
    text = _FRACTION.sub(lambda digits: "." + digits[1][:6].ljust(6, "0"), text, count=1)
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def read_bytes(text: Optional[str]) -> bytes:
    """The bytes of a base64 text."""
    return base64.b64decode(text or "")


def encode(value: Any) -> Any:
    """What JSON holds in the place of a value that it does not know."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time needs a time zone, such as datetime.timezone.utc")
        return value.isoformat()
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields(value)
    raise TypeError(f"{type(value).__name__} is no value for JSON")


def _fields(value: Any) -> dict[str, Any]:
    """The fields of an object that are not empty: to clove, an absent one is empty."""
    found = {}
    for f in dataclasses.fields(value):
        default = f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
        if getattr(value, f.name) != default:
            found[f.name.rstrip("_")] = getattr(value, f.name)
    return found


def pages(call: Callable[..., Any], items: str, params: Mapping[str, Any]) -> Iterator[Any]:
    """The items of all parts of a list. A part names the next one."""
    after = None
    while True:
        part = call(**params, after=after)
        yield from getattr(part, items)
        if not part.next:
            return
        after = part.next


async def pages_async(call: Callable[..., Any], items: str, params: Mapping[str, Any]) -> AsyncIterator[Any]:
    """The items of all parts of a list, for a coroutine."""
    after = None
    while True:
        part = await call(**params, after=after)
        for item in getattr(part, items):
            yield item
        if not part.next:
            return
        after = part.next
