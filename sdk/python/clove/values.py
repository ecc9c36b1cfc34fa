"""Values as they stand in JSON."""

from __future__ import annotations

import re
import secrets
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


def encode(value: Any) -> Any:
    """What JSON holds in the place of a value that it does not know."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("a time needs a time zone, such as datetime.timezone.utc")
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is no value for JSON")
