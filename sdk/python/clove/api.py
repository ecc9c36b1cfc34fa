"""The methods, types and errors of the agent socket.

Generated from the table of methods by make generate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Optional, Union  # noqa: F401 a row may need each of these

from .errors import CloveError
from .values import pages, read_bytes, read_time  # noqa: F401

VERSION = 1
"""The version of the contract."""

MAX_LINE = 65536
"""The most bytes of a line on the socket."""


class ParseError(CloveError):
    """The line is not JSON, or nests too deeply."""


class RequestError(CloveError):
    """The object is not a request."""


class MethodError(CloveError):
    """There is no such method."""


class InvalidError(CloveError):
    """The parameters are wrong: change them."""


class InternalError(CloveError):
    """An internal error occurred."""


class NotFoundError(CloveError):
    """There is no such run, file or command; also for what the caller may not see."""


class ConflictError(CloveError):
    """The name is taken, or the run's state forbids it."""


class UnenforceableError(CloveError):
    """This host cannot enforce the limit."""


class DeniedError(CloveError):
    """The caller may not do that."""


class BusyError(CloveError):
    """Another process holds it, or there are too many: try again."""


class TooLargeError(CloveError):
    """The message is larger than the limit."""


class CancelledError(CloveError):
    """The request was cancelled."""


class DrainingError(CloveError):
    """Cloved is shutting down; agents continue to run."""


class StorageError(CloveError):
    """The disk is full or fails; nothing was changed."""


class SessionError(CloveError):
    """A session needs a connection of its own."""


class BudgetError(CloveError):
    """Nothing of the amount is left, or less than was asked for."""


ERRORS: dict[str, type[CloveError]] = {
    "parse": ParseError,
    "request": RequestError,
    "method": MethodError,
    "invalid": InvalidError,
    "internal": InternalError,
    "not-found": NotFoundError,
    "conflict": ConflictError,
    "unenforceable": UnenforceableError,
    "denied": DeniedError,
    "busy": BusyError,
    "too-large": TooLargeError,
    "cancelled": CancelledError,
    "draining": DrainingError,
    "storage": StorageError,
    "session": SessionError,
    "budget": BudgetError,
}
"""The exceptions by their error word."""


@dataclass(frozen=True)
class Grant:
    """One thing that a run may do."""

    id: str = ""
    grant: str = ""  # KIND:PATTERN[:RIGHTS]
    holder: str = ""
    giver: str = ""  # uid:NUMBER, or the id of the run that derived it
    parent: str = ""  # the grant that it was derived from
    created: Optional[datetime] = None
    expires: Optional[datetime] = None
    uses_left: Optional[int] = None  # absent: not counted
    reason: str = ""
    rule: str = ""  # where a rule of the run's network comes from, such as --allow or its policy. It is no grant: it is changed with run.update, and nothing is derived from it. Empty: it is a grant.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Grant:
        return cls(
            id=o.get("id") or "",
            grant=o.get("grant") or "",
            holder=o.get("holder") or "",
            giver=o.get("giver") or "",
            parent=o.get("parent") or "",
            created=read_time(o.get("created")),
            expires=read_time(o.get("expires")),
            uses_left=o.get("uses_left"),
            reason=o.get("reason") or "",
            rule=o.get("rule") or "",
        )


@dataclass(frozen=True)
class Budget:
    """One dimension of one account that a run spends from."""

    account: str = ""  # whose: UID, UID/ns:PATH, UID/name:NAME, UID/provider:NAME or UID/run:ID
    dimension: str = ""
    granted: Optional[int] = None  # absent: used is counted, and nothing limits it
    reserved: int = 0
    used: int = 0
    peak: int = 0  # the largest used so far
    warn_at: Optional[int] = None
    at_end: str = ""  # end, pause or refuse
    period: str = ""  # hour, day or month, UTC
    since: Optional[datetime] = None  # when the period began
    warned: bool = False
    spent: bool = False  # more is used than was granted, of an account above what agents charge all of it, or wanted is set
    wanted: int = 0  # the reservation that stopped the run, because less than it is left

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Budget:
        return cls(
            account=o.get("account") or "",
            dimension=o.get("dimension") or "",
            granted=o.get("granted"),
            reserved=o.get("reserved") or 0,
            used=o.get("used") or 0,
            peak=o.get("peak") or 0,
            warn_at=o.get("warn_at"),
            at_end=o.get("at_end") or "",
            period=o.get("period") or "",
            since=read_time(o.get("since")),
            warned=o.get("warned") or False,
            spent=o.get("spent") or False,
            wanted=o.get("wanted") or 0,
        )


@dataclass(frozen=True)
class AgentResult:
    """What an agent is, has and was refused."""

    id: str = ""
    name: str = ""
    owner: int = 0  # the user
    namespace: str = ""
    parent: str = ""
    state: str = ""
    grants: list[Grant] = field(default_factory=list)  # the first forty; grant.list has all
    budgets: list[Budget] = field(default_factory=list)
    refused: int = 0  # calls that were refused since the run began, or cloved did; the audit log has all

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> AgentResult:
        return cls(
            id=o.get("id") or "",
            name=o.get("name") or "",
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            parent=o.get("parent") or "",
            state=o.get("state") or "",
            grants=[Grant.read(x or {}) for x in o.get("grants") or ()],
            budgets=[Budget.read(x or {}) for x in o.get("budgets") or ()],
            refused=o.get("refused") or 0,
        )


@dataclass(frozen=True)
class GrantListResult:
    """A part of a run's grants."""

    grants: list[Grant] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> GrantListResult:
        return cls(
            grants=[Grant.read(x or {}) for x in o.get("grants") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class GrantResult:
    """One grant."""

    grant: Grant = field(default_factory=Grant)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> GrantResult:
        return cls(
            grant=Grant.read(o.get("grant") or {}),
        )


@dataclass(frozen=True)
class GrantRevokeResult:
    """Lists what is gone."""

    revoked: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> GrantRevokeResult:
        return cls(
            revoked=list(o.get("revoked") or ()),
        )


@dataclass(frozen=True)
class GrantCheckResult:
    """Says whether, and why."""

    allowed: bool = False
    grant: str = ""  # the id of the one that allows it
    reason: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> GrantCheckResult:
        return cls(
            allowed=o.get("allowed") or False,
            grant=o.get("grant") or "",
            reason=o.get("reason") or "",
        )


@dataclass(frozen=True)
class BudgetResult:
    """What a run spends from."""

    budgets: list[Budget] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BudgetResult:
        return cls(
            budgets=[Budget.read(x or {}) for x in o.get("budgets") or ()],
        )


@dataclass(frozen=True)
class BudgetReserveResult:
    """Names the reservation."""

    reservation: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BudgetReserveResult:
        return cls(
            reservation=o.get("reservation") or "",
        )


@dataclass(frozen=True)
class WaitingCall:
    """A call of a model that a limit lets wait."""

    model: str = ""
    limit: str = ""  # whose it is: model or provider, or target where a provider named it in an answer
    position: int = 0  # 1: the next
    waited_ms: int = 0  # so far
    expected_ms: Optional[int] = None  # that it still waits, if no other call comes before it; absent: unknown

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> WaitingCall:
        return cls(
            model=o.get("model") or "",
            limit=o.get("limit") or "",
            position=o.get("position") or 0,
            waited_ms=o.get("waited_ms") or 0,
            expected_ms=o.get("expected_ms"),
        )


@dataclass(frozen=True)
class ModelQueueResult:
    """Has the calls of models that wait for their turn: those that wait longest first,
    at most 64.
    """

    calls: list[WaitingCall] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelQueueResult:
        return cls(
            calls=[WaitingCall.read(x or {}) for x in o.get("calls") or ()],
        )


@dataclass(frozen=True)
class AuditReadResult:
    """A part of the records about a namespace, the oldest first."""

    records: list[Any] = field(default_factory=list)  # docs/audit.md has their fields
    next: int = 0  # what to ask with in after; absent: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> AuditReadResult:
        return cls(
            records=list(o.get("records") or ()),
            next=o.get("next") or 0,
        )


@dataclass(frozen=True)
class BudgetNote:
    """Says that a dimension reached a mark."""

    budget: Budget = field(default_factory=Budget)
    count: int = 0  # of how many it is the last; absent: of one

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BudgetNote:
        return cls(
            budget=Budget.read(o.get("budget") or {}),
            count=o.get("count") or 0,
        )


@dataclass(frozen=True)
class GrantsNote:
    """Says that the grants of the run are others now."""

    count: int = 0  # of how many it is the last; absent: of one

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> GrantsNote:
        return cls(
            count=o.get("count") or 0,
        )


@dataclass(frozen=True)
class LostNote:
    """Counts the notifications that were dropped before this one: too many waited."""

    lost: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> LostNote:
        return cls(
            lost=o.get("lost") or 0,
        )


class AgentMethods:
    """The methods agent.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def get(self) -> AgentResult:
        """Returns what a run is, what it may do, what it may spend, and how many of its
        calls were refused.
        """
        params = {}
        return AgentResult.read(self._call("agent.get", params))

    def ready(self) -> None:
        """Says that the agent is ready, for runs that come after it with the condition
        ready. It holds until the agent ends. A repetition changes nothing.
        """
        params = {}
        self._call("agent.ready", params)


class GrantMethods:
    """The methods grant.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def list(self, *, after: Optional[str] = None) -> GrantListResult:
        """Lists what a run may do: the rules of its network that allow something, and
        its grants, oldest first. If there are more, the answer has next, and the
        same request with that as after returns the following part.
        """
        params = {"after": after}
        return GrantListResult.read(self._call("grant.list", params))

    def list_all(self) -> Iterator[Grant]:
        """Yields the grants of all parts of grant.list, in as many calls as that takes."""
        return pages(self.list, "grants", {})

    def derive(
        self,
        from_: str,
        grant: str,
        *,
        to: Optional[str] = None,
        expires: Optional[datetime] = None,
        uses: Optional[int] = None,
        reason: Optional[str] = None,
        key: Optional[str] = None,
    ) -> GrantResult:
        """Makes a narrower grant from one that the run holds.

        Args:
            from_: the id of a grant that the run holds
            to: the run that gets it; empty: the run itself
            grant: KIND:PATTERN[:RIGHTS], covered by from
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "from": from_,
            "to": to,
            "grant": grant,
            "expires": expires,
            "uses": uses,
            "reason": reason,
            "key": key,
        }
        return GrantResult.read(self._call("grant.derive", params))

    def revoke(self, id: str, *, key: Optional[str] = None) -> GrantRevokeResult:
        """Takes a grant back, with all that was derived from it. An agent may revoke
        only what it derived itself.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"id": id, "key": key}
        return GrantRevokeResult.read(self._call("grant.revoke", params))

    def check(self, what: str) -> GrantCheckResult:
        """Says whether a run may do one thing, and why; of the network what its gate
        would decide, by its rules and its grants. Nothing is used up.

        Args:
            what: KIND:PATTERN[:RIGHTS]
        """
        params = {"what": what}
        return GrantCheckResult.read(self._call("grant.check", params))


class BudgetMethods:
    """The methods budget.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def get(self) -> BudgetResult:
        """Returns every budget that the run spends from."""
        params = {}
        return BudgetResult.read(self._call("budget.get", params))

    def reserve(self, amounts: Mapping[str, int], *, key: Optional[str] = None) -> BudgetReserveResult:
        """Sets amounts of own dimensions aside, all or none.

        Args:
            amounts: by dimension
            key: the same key gets the same answer again; a random one by default
        """
        params = {"amounts": amounts, "key": key}
        return BudgetReserveResult.read(self._call("budget.reserve", params))

    def settle(
        self,
        reservation: str,
        amounts: Mapping[str, int],
        *,
        key: Optional[str] = None,
    ) -> BudgetResult:
        """Says what was used of a reservation; the rest is free again. More than was
        reserved counts as with budget.charge.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"reservation": reservation, "amounts": amounts, "key": key}
        return BudgetResult.read(self._call("budget.settle", params))

    def release(self, reservation: str, *, key: Optional[str] = None) -> BudgetResult:
        """Frees a reservation of which nothing was used.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"reservation": reservation, "key": key}
        return BudgetResult.read(self._call("budget.release", params))

    def charge(self, amounts: Mapping[str, int], *, key: Optional[str] = None) -> BudgetResult:
        """Records what was used of own dimensions. It may exceed the run's own limit,
        because it has happened; then at_end is done. In accounts above the run it
        counts at most what is left of that limit and there; a run without a limit of
        its own is refused what is not left there, and every run where nothing is.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"amounts": amounts, "key": key}
        return BudgetResult.read(self._call("budget.charge", params))


class ModelMethods:
    """The methods model.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def queue(self) -> ModelQueueResult:
        """Returns the run's calls of models that wait for their turn: the position of
        each, and how long it is expected to wait.
        """
        params = {}
        return ModelQueueResult.read(self._call("model.queue", params))


class AuditMethods:
    """The methods audit.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def read(self, namespace: str, *, after: Optional[int] = None) -> AuditReadResult:
        """Returns records of the audit log about a namespace of the run's owner. An
        agent needs a grant of kind audit that covers it. If there is more, the
        answer has next, and the same request with that as after returns the
        following part, which may be empty.

        Args:
            namespace: with those below it
        """
        params = {"namespace": namespace, "after": after}
        return AuditReadResult.read(self._call("audit.read", params))

    def read_all(self, namespace: str) -> Iterator[Any]:
        """Yields the records of all parts of audit.read, in as many calls as that takes."""
        return pages(self.read, "records", {"namespace": namespace})


class Methods(AgentMethods):
    """Every method: those of agent.* themselves, the others by their noun."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        super().__init__(call)
        self.grant = GrantMethods(call)
        self.budget = BudgetMethods(call)
        self.model = ModelMethods(call)
        self.audit = AuditMethods(call)


class Param(NamedTuple):
    """A parameter of a method."""

    name: str
    kind: str  # string, integer, bool, time, strings, amounts (integers by name) or json
    required: bool
    doc: str


class Method(NamedTuple):
    """A row of the table."""

    name: str
    doc: str
    params: list[Param]

    @property
    def keyed(self) -> bool:
        """The call changes something, and takes a key."""
        return any(p.name == "key" for p in self.params)


METHODS: dict[str, Method] = {
    "agent.get": Method(
        "agent.get",
        "Returns what a run is, what it may do, what it may spend, and how many of its calls were refused.",
        [
        ],
    ),
    "agent.ready": Method(
        "agent.ready",
        "Says that the agent is ready, for runs that come after it with the condition ready. It holds until the agent ends. A repetition changes nothing.",
        [
        ],
    ),
    "grant.list": Method(
        "grant.list",
        "Lists what a run may do: the rules of its network that allow something, and its grants, oldest first. If there are more, the answer has next, and the same request with that as after returns the following part.",
        [
            Param("after", "string", False, ""),
        ],
    ),
    "grant.derive": Method(
        "grant.derive",
        "Makes a narrower grant from one that the run holds.",
        [
            Param("from", "string", True, "the id of a grant that the run holds"),
            Param("to", "string", False, "the run that gets it; empty: the run itself"),
            Param("grant", "string", True, "KIND:PATTERN[:RIGHTS], covered by from"),
            Param("expires", "time", False, ""),
            Param("uses", "integer", False, ""),
            Param("reason", "string", False, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "grant.revoke": Method(
        "grant.revoke",
        "Takes a grant back, with all that was derived from it. An agent may revoke only what it derived itself.",
        [
            Param("id", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "grant.check": Method(
        "grant.check",
        "Says whether a run may do one thing, and why; of the network what its gate would decide, by its rules and its grants. Nothing is used up.",
        [
            Param("what", "string", True, "KIND:PATTERN[:RIGHTS]"),
        ],
    ),
    "budget.get": Method(
        "budget.get",
        "Returns every budget that the run spends from.",
        [
        ],
    ),
    "budget.reserve": Method(
        "budget.reserve",
        "Sets amounts of own dimensions aside, all or none.",
        [
            Param("amounts", "amounts", True, "by dimension"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "budget.settle": Method(
        "budget.settle",
        "Says what was used of a reservation; the rest is free again. More than was reserved counts as with budget.charge.",
        [
            Param("reservation", "string", True, ""),
            Param("amounts", "amounts", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "budget.release": Method(
        "budget.release",
        "Frees a reservation of which nothing was used.",
        [
            Param("reservation", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "budget.charge": Method(
        "budget.charge",
        "Records what was used of own dimensions. It may exceed the run's own limit, because it has happened; then at_end is done. In accounts above the run it counts at most what is left of that limit and there; a run without a limit of its own is refused what is not left there, and every run where nothing is.",
        [
            Param("amounts", "amounts", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "model.queue": Method(
        "model.queue",
        "Returns the run's calls of models that wait for their turn: the position of each, and how long it is expected to wait.",
        [
        ],
    ),
    "audit.read": Method(
        "audit.read",
        "Returns records of the audit log about a namespace of the run's owner. An agent needs a grant of kind audit that covers it. If there is more, the answer has next, and the same request with that as after returns the following part, which may be empty.",
        [
            Param("namespace", "string", True, "with those below it"),
            Param("after", "integer", False, ""),
        ],
    ),
}
"""The methods that Agent.call serves."""

NOTES: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "budget.warning": BudgetNote.read,
    "budget.paused": BudgetNote.read,
    "grant.changed": GrantsNote.read,
    "agent.lost": LostNote.read,
}
"""How the parameters of a notification are read."""

__all__ = [
    "ParseError",
    "RequestError",
    "MethodError",
    "InvalidError",
    "InternalError",
    "NotFoundError",
    "ConflictError",
    "UnenforceableError",
    "DeniedError",
    "BusyError",
    "TooLargeError",
    "CancelledError",
    "DrainingError",
    "StorageError",
    "SessionError",
    "BudgetError",
    "Grant",
    "Budget",
    "AgentResult",
    "GrantListResult",
    "GrantResult",
    "GrantRevokeResult",
    "GrantCheckResult",
    "BudgetResult",
    "BudgetReserveResult",
    "WaitingCall",
    "ModelQueueResult",
    "AuditReadResult",
    "BudgetNote",
    "GrantsNote",
    "LostNote",
]
