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
    digest: str = ""  # of kind spawn: of the manifest that it starts
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
            digest=o.get("digest") or "",
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
class HandoffResult:
    """Names the offer."""

    offer: str = ""
    handed: bool = False  # what goes with the task has changed hands; false: it does when the other run accepts

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> HandoffResult:
        return cls(
            offer=o.get("offer") or "",
            handed=o.get("handed") or False,
        )


@dataclass(frozen=True)
class AcceptResult:
    """The task with what goes with it."""

    task: Any = None
    from_: str = ""  # the run that gave it
    grants: list[Grant] = field(default_factory=list)
    reservation: str = ""  # for budget.settle or budget.release

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> AcceptResult:
        return cls(
            task=o.get("task"),
            from_=o.get("from") or "",
            grants=[Grant.read(x or {}) for x in o.get("grants") or ()],
            reservation=o.get("reservation") or "",
        )


@dataclass(frozen=True)
class Offer:
    """A task that a run may accept."""

    id: str = ""
    from_: str = ""  # the run that gives it
    name: str = ""  # of that run
    grants: list[str] = field(default_factory=list)
    amounts: dict[str, int] = field(default_factory=dict)  # of the reservation, by dimension
    handed: bool = False  # they are this run's already
    created: Optional[datetime] = None
    expires: Optional[datetime] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Offer:
        return cls(
            id=o.get("id") or "",
            from_=o.get("from") or "",
            name=o.get("name") or "",
            grants=list(o.get("grants") or ()),
            amounts=dict(o.get("amounts") or {}),
            handed=o.get("handed") or False,
            created=read_time(o.get("created")),
            expires=read_time(o.get("expires")),
        )


@dataclass(frozen=True)
class OfferListResult:
    """A part of them, in the order of their ids."""

    offers: list[Offer] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> OfferListResult:
        return cls(
            offers=[Offer.read(x or {}) for x in o.get("offers") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class Child:
    """A run that an agent has started, or that is below one."""

    id: str = ""
    run: str = ""  # the run's name
    name: str = ""  # what its parent calls it
    parent: str = ""
    manifest: str = ""
    digest: str = ""
    created: Optional[datetime] = None
    state: str = ""
    status: str = ""  # of its end
    exit_code: Optional[int] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Child:
        return cls(
            id=o.get("id") or "",
            run=o.get("run") or "",
            name=o.get("name") or "",
            parent=o.get("parent") or "",
            manifest=o.get("manifest") or "",
            digest=o.get("digest") or "",
            created=read_time(o.get("created")),
            state=o.get("state") or "",
            status=o.get("status") or "",
            exit_code=o.get("exit_code"),
        )


@dataclass(frozen=True)
class SpawnResult:
    """The child. It is queued; agent.wait reports also that it could not start."""

    child: Child = field(default_factory=Child)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SpawnResult:
        return cls(
            child=Child.read(o.get("child") or {}),
        )


@dataclass(frozen=True)
class Stopped:
    """Says who requested a run's stop, and when."""

    by: str = ""  # credentials of the socket's peer (SO_PEERCRED): "uid 1000, process 4711"
    time: Optional[datetime] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Stopped:
        return cls(
            by=o.get("by") or "",
            time=read_time(o.get("time")),
        )


@dataclass(frozen=True)
class Failure:
    """An Error as it is stored in a Record."""

    step: str = ""
    message: str = ""
    errno: str = ""  # the system's text for the error number
    hint: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Failure:
        return cls(
            step=o.get("step") or "",
            message=o.get("message") or "",
            errno=o.get("errno") or "",
            hint=o.get("hint") or "",
        )


@dataclass(frozen=True)
class LimitHit:
    """Names the limit that ended the run. Value and Peak are in the limit's own unit:
    bytes, milliseconds for clocks, or files. Of a budget Name is the dimension, and
    the unit is the dimension's.
    """

    name: str = ""
    value: int = 0
    peak: Optional[int] = None
    account: str = ""  # of a budget that other runs spend from too; empty: it is the run's own.
    used: int = 0  # Used, wanted and period are of a budget: what is used of it in its period, and the reservation that did not fit beside that; 0: what was used ended the run.
    wanted: int = 0
    period: str = ""  # hour, day or month; empty: the run's whole life

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> LimitHit:
        return cls(
            name=o.get("name") or "",
            value=o.get("value") or 0,
            peak=o.get("peak"),
            account=o.get("account") or "",
            used=o.get("used") or 0,
            wanted=o.get("wanted") or 0,
            period=o.get("period") or "",
        )


@dataclass(frozen=True)
class ModelUse:
    """What one model's calls cost together."""

    model: str = ""
    calls: int = 0
    tokens_in: int = 0  # without those read from the provider's cache
    tokens_out: int = 0
    tokens_cached: int = 0
    cost_micros: int = 0  # millionths of a US dollar
    failed: int = 0  # of calls: without an answer, or with an error
    over: int = 0  # of calls: used more than was reserved for them
    estimated: int = 0  # of calls: their tokens are estimated, at least in part, because the provider did not report them

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelUse:
        return cls(
            model=o.get("model") or "",
            calls=o.get("calls") or 0,
            tokens_in=o.get("tokens_in") or 0,
            tokens_out=o.get("tokens_out") or 0,
            tokens_cached=o.get("tokens_cached") or 0,
            cost_micros=o.get("cost_micros") or 0,
            failed=o.get("failed") or 0,
            over=o.get("over") or 0,
            estimated=o.get("estimated") or 0,
        )


@dataclass(frozen=True)
class Usage:
    """What all processes of the agent consumed together. CPUMS excludes what clove's
    launch had used in the same cgroup before the agent's execve; StartCPUMS is that
    part. All other figures include the launch.
    """

    cpu_ms: Optional[int] = None
    start_cpu_ms: Optional[int] = None  # the launch's part, not in CPUMS
    cpu_user_ms: Optional[int] = None
    cpu_system_ms: Optional[int] = None
    cpu_throttled_ms: Optional[int] = None
    memory_peak_bytes: Optional[int] = None
    start_memory_peak_bytes: Optional[int] = None  # the peak before the agent's execve. A memory_peak_bytes that is not above it was caused by the launch, not by the agent.
    pids_peak: Optional[int] = None
    io_read_bytes: Optional[int] = None
    io_write_bytes: Optional[int] = None
    net_rx_bytes: Optional[int] = None
    net_tx_bytes: Optional[int] = None
    disk_bytes: Optional[int] = None  # held by the writable layer at the end
    output_bytes: Optional[int] = None  # stdout and stderr together
    models: list[ModelUse] = field(default_factory=list)  # what clove's model service counted, in the order of the models' names; empty: the agent called none. Charges of the agent itself are in its budget only.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Usage:
        return cls(
            cpu_ms=o.get("cpu_ms"),
            start_cpu_ms=o.get("start_cpu_ms"),
            cpu_user_ms=o.get("cpu_user_ms"),
            cpu_system_ms=o.get("cpu_system_ms"),
            cpu_throttled_ms=o.get("cpu_throttled_ms"),
            memory_peak_bytes=o.get("memory_peak_bytes"),
            start_memory_peak_bytes=o.get("start_memory_peak_bytes"),
            pids_peak=o.get("pids_peak"),
            io_read_bytes=o.get("io_read_bytes"),
            io_write_bytes=o.get("io_write_bytes"),
            net_rx_bytes=o.get("net_rx_bytes"),
            net_tx_bytes=o.get("net_tx_bytes"),
            disk_bytes=o.get("disk_bytes"),
            output_bytes=o.get("output_bytes"),
            models=[ModelUse.read(x or {}) for x in o.get("models") or ()],
        )


@dataclass(frozen=True)
class Events:
    """Counts what the kernel did to the agent."""

    oom_kill: Optional[int] = None
    pids_max: Optional[int] = None  # forks refused by the pids limit
    memory_high: Optional[int] = None
    cpu_throttled_periods: Optional[int] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Events:
        return cls(
            oom_kill=o.get("oom_kill"),
            pids_max=o.get("pids_max"),
            memory_high=o.get("memory_high"),
            cpu_throttled_periods=o.get("cpu_throttled_periods"),
        )


@dataclass(frozen=True)
class EgressLimits:
    """Enforced by the gate and by the broker. Bytes 0 means no limit."""

    connections: int = 0  # open at once, in and out, UDP flows included
    per_second: int = 0  # new ones; twice as many in a burst
    bytes: int = 0  # in and out together, over the whole run

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> EgressLimits:
        return cls(
            connections=o.get("connections") or 0,
            per_second=o.get("per_second") or 0,
            bytes=o.get("bytes") or 0,
        )


@dataclass(frozen=True)
class NetworkUse:
    """Counts what went through the gate."""

    mode: str = ""
    connections: int = 0  # opened, in and out, UDP flows included
    connections_peak: int = 0  # open at once
    refused: int = 0  # connections, flows and names
    limits: EgressLimits = field(default_factory=EgressLimits)
    lost: str = ""  # why the network failed during the run; empty: it did not

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> NetworkUse:
        return cls(
            mode=o.get("mode") or "",
            connections=o.get("connections") or 0,
            connections_peak=o.get("connections_peak") or 0,
            refused=o.get("refused") or 0,
            limits=EgressLimits.read(o.get("limits") or {}),
            lost=o.get("lost") or "",
        )


@dataclass(frozen=True)
class DeniedCall:
    """The system call of a denial."""

    name: str = ""
    number: int = 0
    args: list[str] = field(default_factory=list)  # the six registers in hexadecimal

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> DeniedCall:
        return cls(
            name=o.get("name") or "",
            number=o.get("number") or 0,
            args=list(o.get("args") or ()),
        )


@dataclass(frozen=True)
class Denial:
    """One refused target with its count. Everything below Count is of the first time,
    and empty where it means nothing or cannot be known.
    """

    time: Optional[datetime] = None
    kind: str = ""
    target: str = ""  # an address, a call's name, a path, a capability
    rule: str = ""
    count: int = 0
    program: str = ""  # path inside of the program that tried
    errno: str = ""  # what it was answered: "EPERM"
    call: Optional[DeniedCall] = None  # absent for network

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Denial:
        return cls(
            time=read_time(o.get("time")),
            kind=o.get("kind") or "",
            target=o.get("target") or "",
            rule=o.get("rule") or "",
            count=o.get("count") or 0,
            program=o.get("program") or "",
            errno=o.get("errno") or "",
            call=DeniedCall.read(o.get("call") or {}) if o.get("call") is not None else None,
        )


@dataclass(frozen=True)
class Asked:
    """What a run asked people, and what it did not need to ask."""

    questions: int = 0  # that people had to be asked, whatever they are about
    allowed: int = 0  # of these
    denied: int = 0
    expired: int = 0  # without an answer in time
    held: int = 0  # connections that waited for an answer
    by_rule: int = 0  # connections that rules and earlier answers decided, refused ones among them

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Asked:
        return cls(
            questions=o.get("questions") or 0,
            allowed=o.get("allowed") or 0,
            denied=o.get("denied") or 0,
            expired=o.get("expired") or 0,
            held=o.get("held") or 0,
            by_rule=o.get("by_rule") or 0,
        )


@dataclass(frozen=True)
class StreamUse:
    """Counts what passed between mail and the agent's standard streams."""

    sent: int = 0  # lines of stdout
    refused: int = 0  # lines that were not sent: too long, not UTF-8, or no JSON where that is asked for
    unsent: int = 0  # lines that could not be sent; where the run ended during the wait, the first may have been
    waited_ms: int = 0  # stdout was not read: the receiver's mailbox was full, a budget was spent, or cloved was away
    received: int = 0  # messages that were written to stdin
    rejected: int = 0  # messages that no line can carry; they are dead letters
    error: str = ""  # says why nothing more passed; empty: nothing kept it from that.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> StreamUse:
        return cls(
            sent=o.get("sent") or 0,
            refused=o.get("refused") or 0,
            unsent=o.get("unsent") or 0,
            waited_ms=o.get("waited_ms") or 0,
            received=o.get("received") or 0,
            rejected=o.get("rejected") or 0,
            error=o.get("error") or "",
        )


@dataclass(frozen=True)
class Policy:
    """Names the document that the defaults came from. SHA256, in hex, is the digest of
    the defaults that it set: two records with the same digest had the same defaults.
    """

    name: str = ""
    sha256: str = ""
    widened: list[str] = field(default_factory=list)  # the places in which it allows more than what it extends, each with the document and the reason: "network (research): reads two sites".
    claimed: str = ""  # the name that the caller gave, where name is PolicyCustom: cloved found that the spec allows more than that policy, or found no such policy.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Policy:
        return cls(
            name=o.get("name") or "",
            sha256=o.get("sha256") or "",
            widened=list(o.get("widened") or ()),
            claimed=o.get("claimed") or "",
        )


@dataclass(frozen=True)
class ShadowLimit:
    """A limit of a shadow that the run exceeded. Value and Peak are in the unit of the
    place: bytes, milliseconds, or a number.
    """

    place: str = ""  # key of a policy document; of a budget budgets.DIMENSION
    value: int = 0
    peak: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ShadowLimit:
        return cls(
            place=o.get("place") or "",
            value=o.get("value") or 0,
            peak=o.get("peak") or 0,
        )


@dataclass(frozen=True)
class ShadowUse:
    """What a run's shadow would have refused of what the run's own policy allowed."""

    policy: Policy = field(default_factory=Policy)
    refused: int = 0  # all that it would have refused, those that are left out too
    denials: list[Denial] = field(default_factory=list)  # by rule and target, the first first; at most ShadowDenialsMost
    others: int = 0  # of refused: of targets for which denials has no space
    limits: list[ShadowLimit] = field(default_factory=list)  # of the shadow's limits and budgets those that were exceeded
    wider: list[str] = field(default_factory=list)  # places in which it allows more than the run's own policy: there it says nothing
    unseen: list[str] = field(default_factory=list)  # places in which it is narrower, and which were not watched

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ShadowUse:
        return cls(
            policy=Policy.read(o.get("policy") or {}),
            refused=o.get("refused") or 0,
            denials=[Denial.read(x or {}) for x in o.get("denials") or ()],
            others=o.get("others") or 0,
            limits=[ShadowLimit.read(x or {}) for x in o.get("limits") or ()],
            wider=list(o.get("wider") or ()),
            unseen=list(o.get("unseen") or ()),
        )


@dataclass(frozen=True)
class Manifest:
    """Names the agent's file that a run was started from, as the caller gave it.
    SHA256, in hex, is the digest of what it said: two runs with the same digest had
    the same manifest.
    """

    name: str = ""
    sha256: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Manifest:
        return cls(
            name=o.get("name") or "",
            sha256=o.get("sha256") or "",
        )


@dataclass(frozen=True)
class Host:
    """The host that the run ran on."""

    kernel: str = ""
    cgroup: str = ""  # v2, hybrid, v1

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Host:
        return cls(
            kernel=o.get("kernel") or "",
            cgroup=o.get("cgroup") or "",
        )


@dataclass(frozen=True)
class Record:
    """Says how a run ended. A figure that this host cannot supply is nil, never 0."""

    version: int = 0
    id: str = ""
    name: str = ""
    namespace: str = ""  # below the owner; empty: the owner's own
    parent: str = ""  # the run whose agent started this one; empty: a person did
    command: list[str] = field(default_factory=list)
    started: Optional[datetime] = None
    ended: Optional[datetime] = None
    wall_ms: int = 0  # on CLOCK_BOOTTIME, from the agent's start to its end
    executed_ms: Optional[int] = None  # as wall_ms, rounded up: no process of the agent executed after this. The kernel may take longer to free what they held
    status: str = ""
    exit_code: int = 0  # what clove run exits with
    signal: Optional[str] = None  # "SIGKILL", null when none
    stopped: Optional[Stopped] = None  # set where a user requested the stop, even if the run ended by itself meanwhile
    error: Optional[Failure] = None
    limit: Optional[LimitHit] = None
    usage: Usage = field(default_factory=Usage)
    events: Events = field(default_factory=Events)
    network: Optional[NetworkUse] = None  # absent without a gate
    denials: list[Denial] = field(default_factory=list)
    asked: Optional[Asked] = None  # absent where people are asked nothing
    streams: Optional[StreamUse] = None  # absent where mail has no part in them
    shadow: Optional[ShadowUse] = None  # absent without a shadow
    enforced: dict[str, str] = field(default_factory=dict)  # control to mechanism, for example "memory": "cgroup1"
    unenforced: list[str] = field(default_factory=list)
    readable_secrets: list[str] = field(default_factory=list)  # those that the agent could read; absent: it used them without that, or had none.
    policy: Policy = field(default_factory=Policy)  # where the defaults came from
    manifest: Manifest = field(default_factory=Manifest)  # the agent's file that it was started from
    host: Host = field(default_factory=Host)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Record:
        return cls(
            version=o.get("version") or 0,
            id=o.get("id") or "",
            name=o.get("name") or "",
            namespace=o.get("namespace") or "",
            parent=o.get("parent") or "",
            command=list(o.get("command") or ()),
            started=read_time(o.get("started")),
            ended=read_time(o.get("ended")),
            wall_ms=o.get("wall_ms") or 0,
            executed_ms=o.get("executed_ms"),
            status=o.get("status") or "",
            exit_code=o.get("exit_code") or 0,
            signal=o.get("signal"),
            stopped=Stopped.read(o.get("stopped") or {}) if o.get("stopped") is not None else None,
            error=Failure.read(o.get("error") or {}) if o.get("error") is not None else None,
            limit=LimitHit.read(o.get("limit") or {}) if o.get("limit") is not None else None,
            usage=Usage.read(o.get("usage") or {}),
            events=Events.read(o.get("events") or {}),
            network=NetworkUse.read(o.get("network") or {}) if o.get("network") is not None else None,
            denials=[Denial.read(x or {}) for x in o.get("denials") or ()],
            asked=Asked.read(o.get("asked") or {}) if o.get("asked") is not None else None,
            streams=StreamUse.read(o.get("streams") or {}) if o.get("streams") is not None else None,
            shadow=ShadowUse.read(o.get("shadow") or {}) if o.get("shadow") is not None else None,
            enforced=dict(o.get("enforced") or {}),
            unenforced=list(o.get("unenforced") or ()),
            readable_secrets=list(o.get("readable_secrets") or ()),
            policy=Policy.read(o.get("policy") or {}),
            manifest=Manifest.read(o.get("manifest") or {}),
            host=Host.read(o.get("host") or {}),
        )


@dataclass(frozen=True)
class ChildEnd:
    """How a descendant ended."""

    child: Child = field(default_factory=Child)
    record: Record = field(default_factory=Record)  # without its command
    output: str = ""  # the end of what it wrote to stdout and stderr, at most 4 KiB
    result: Any = None  # what it gave with agent.result

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ChildEnd:
        return cls(
            child=Child.read(o.get("child") or {}),
            record=Record.read(o.get("record") or {}),
            output=o.get("output") or "",
            result=o.get("result"),
        )


@dataclass(frozen=True)
class ChildListResult:
    """A part of the runs below one."""

    children: list[Child] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ChildListResult:
        return cls(
            children=[Child.read(x or {}) for x in o.get("children") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class CollectLeft:
    """A change that was left out."""

    path: str = ""
    why: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> CollectLeft:
        return cls(
            path=o.get("path") or "",
            why=o.get("why") or "",
        )


@dataclass(frozen=True)
class CollectResult:
    """Counts what was copied."""

    files: int = 0  # and links
    bytes: int = 0  # of the files
    missing: int = 0  # changes that were left out
    left: list[CollectLeft] = field(default_factory=list)  # the first of them

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> CollectResult:
        return cls(
            files=o.get("files") or 0,
            bytes=o.get("bytes") or 0,
            missing=o.get("missing") or 0,
            left=[CollectLeft.read(x or {}) for x in o.get("left") or ()],
        )


@dataclass(frozen=True)
class OwnApplyResult:
    """Counts what was written, and names what was not."""

    applied: int = 0
    refused: int = 0
    left: list[CollectLeft] = field(default_factory=list)  # the first of those that were refused

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> OwnApplyResult:
        return cls(
            applied=o.get("applied") or 0,
            refused=o.get("refused") or 0,
            left=[CollectLeft.read(x or {}) for x in o.get("left") or ()],
        )


@dataclass(frozen=True)
class Annotations:
    """Hints for people and clients, as those of MCP. Absent: unknown."""

    read_only: Optional[bool] = None  # it changes nothing
    destructive: Optional[bool] = None  # it may remove or overwrite
    idempotent: Optional[bool] = None  # a repetition changes nothing more
    open_world: Optional[bool] = None  # it reaches beyond the sandbox

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Annotations:
        return cls(
            read_only=o.get("read_only"),
            destructive=o.get("destructive"),
            idempotent=o.get("idempotent"),
            open_world=o.get("open_world"),
        )


@dataclass(frozen=True)
class Tool:
    """What a caller sees of a tool."""

    name: str = ""
    title: str = ""
    description: str = ""
    arguments: Any = None  # the JSON schema of the arguments, which are an object.
    result: Any = None  # that of the result, which is JSON then; absent: the result is text.
    annotations: Annotations = field(default_factory=Annotations)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Tool:
        return cls(
            name=o.get("name") or "",
            title=o.get("title") or "",
            description=o.get("description") or "",
            arguments=o.get("arguments"),
            result=o.get("result"),
            annotations=Annotations.read(o.get("annotations") or {}),
        )


@dataclass(frozen=True)
class ToolListResult:
    """Has tools, by name."""

    tools: list[Tool] = field(default_factory=list)
    next: str = ""  # after of the next part; absent: there is none

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ToolListResult:
        return cls(
            tools=[Tool.read(x or {}) for x in o.get("tools") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class ToolCallResult:
    """What a tool gave. That it failed is a result, too: the model that called it can
    do better.
    """

    call: str = ""  # its id, which the audit log has
    failed: bool = False  # says that the tool failed, was ended, or was not done because its arguments do not fit.
    text: str = ""  # the result, of at most 48 KiB. Bytes that are no UTF-8 are replaced.
    error: str = ""  # why it failed.
    left: int = 0  # how many bytes of the result are not in it.
    duration_ms: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ToolCallResult:
        return cls(
            call=o.get("call") or "",
            failed=o.get("failed") or False,
            text=o.get("text") or "",
            error=o.get("error") or "",
            left=o.get("left") or 0,
            duration_ms=o.get("duration_ms") or 0,
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
class MailSendResult:
    """Names the message."""

    id: str = ""
    trace: str = ""
    waited_ms: int = 0  # for place in the mailbox

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> MailSendResult:
        return cls(
            id=o.get("id") or "",
            trace=o.get("trace") or "",
            waited_ms=o.get("waited_ms") or 0,
        )


@dataclass(frozen=True)
class Blob:
    """Names a body that is larger than BodyMost, or no JSON. It is kept apart, and
    named by its content.
    """

    sha256: str = ""  # 64 hexadecimal digits
    bytes: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Blob:
        return cls(
            sha256=o.get("sha256") or "",
            bytes=o.get("bytes") or 0,
        )


@dataclass(frozen=True)
class Mail:
    """A message as its receiver gets it. All but Body, Priority, Expires and Trace is
    set by clove.
    """

    id: str = ""  # opaque
    from_: str = ""  # the run that sent it; empty: a user did
    sender: str = ""
    to: str = ""  # as the sender wrote it
    sent: Optional[datetime] = None
    expires: Optional[datetime] = None  # then it becomes a dead letter
    trace: str = ""  # the same in all messages that answer one another, causation the call that sent it.
    causation: str = ""
    asks: bool = False  # its sender waits for an answer (mail.reply)
    answers: str = ""  # the id of the message that it answers
    body: Any = None  # null beside a blob: there is only that
    blob: Optional[Blob] = None  # blob.read returns it, until the message is acknowledged

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Mail:
        return cls(
            id=o.get("id") or "",
            from_=o.get("from") or "",
            sender=o.get("sender") or "",
            to=o.get("to") or "",
            sent=read_time(o.get("sent")),
            expires=read_time(o.get("expires")),
            trace=o.get("trace") or "",
            causation=o.get("causation") or "",
            asks=o.get("asks") or False,
            answers=o.get("answers") or "",
            body=o.get("body"),
            blob=Blob.read(o.get("blob") or {}) if o.get("blob") is not None else None,
        )


@dataclass(frozen=True)
class MailReceiveResult:
    """Has messages, at least one. Each comes again until it is acknowledged."""

    messages: list[Mail] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> MailReceiveResult:
        return cls(
            messages=[Mail.read(x or {}) for x in o.get("messages") or ()],
        )


@dataclass(frozen=True)
class MailAckResult:
    """Has what the calls in Then returned, in their order."""

    results: list[Any] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> MailAckResult:
        return cls(
            results=list(o.get("results") or ()),
        )


@dataclass(frozen=True)
class MailAnswerResult:
    """The answer. It is taken out of the mailbox by mail.ack."""

    message: Mail = field(default_factory=Mail)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> MailAnswerResult:
        return cls(
            message=Mail.read(o.get("message") or {}),
        )


@dataclass(frozen=True)
class MailPublishResult:
    """Says how many subscribers there are: each has a copy, or its mailbox is full."""

    delivered: int = 0
    full: int = 0  # they get no copy
    trace: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> MailPublishResult:
        return cls(
            delivered=o.get("delivered") or 0,
            full=o.get("full") or 0,
            trace=o.get("trace") or "",
        )


@dataclass(frozen=True)
class Job:
    """A piece of work in a queue. All but Body, Blob, Result, ResultBlob, Priority,
    Delay, Deadline, AttemptsMost and Trace is set by clove.
    """

    id: str = ""  # opaque
    owner: int = 0  # of the queue
    namespace: str = ""
    queue: str = ""
    state: str = ""  # delayed, ready, held, dead or done
    priority: int = 0
    from_: str = ""  # the run that added it; absent: a user did
    sender: str = ""
    added: Optional[datetime] = None
    due: Optional[datetime] = None  # when it is delayed: it is ready then
    deadline: Optional[datetime] = None  # then it is dead
    attempts: int = 0
    attempts_most: int = 0  # how often it is tried.
    holder: str = ""  # the run that works on it
    until: Optional[datetime] = None  # of the holder's lease; absent: it lasts as long as that run
    ended: Optional[datetime] = None  # when it was done or dead
    why: str = ""  # why the last attempt failed
    trace: str = ""  # and causation are as in Mail.
    causation: str = ""
    body: Any = None  # left out by job.list
    blob: Optional[Blob] = None  # its body, or beside it; blob.read returns it
    result: Any = None  # of one that is done
    result_blob: Optional[Blob] = None  # the result of one that is done, or beside it. blob.read returns it to the run that added the job.
    output: str = ""  # the end of what the last run wrote that clove has started for it

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Job:
        return cls(
            id=o.get("id") or "",
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            queue=o.get("queue") or "",
            state=o.get("state") or "",
            priority=o.get("priority") or 0,
            from_=o.get("from") or "",
            sender=o.get("sender") or "",
            added=read_time(o.get("added")),
            due=read_time(o.get("due")),
            deadline=read_time(o.get("deadline")),
            attempts=o.get("attempts") or 0,
            attempts_most=o.get("attempts_most") or 0,
            holder=o.get("holder") or "",
            until=read_time(o.get("until")),
            ended=read_time(o.get("ended")),
            why=o.get("why") or "",
            trace=o.get("trace") or "",
            causation=o.get("causation") or "",
            body=o.get("body"),
            blob=Blob.read(o.get("blob") or {}) if o.get("blob") is not None else None,
            result=o.get("result"),
            result_blob=Blob.read(o.get("result_blob") or {}) if o.get("result_blob") is not None else None,
            output=o.get("output") or "",
        )


@dataclass(frozen=True)
class JobResult:
    """One job."""

    job: Job = field(default_factory=Job)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> JobResult:
        return cls(
            job=Job.read(o.get("job") or {}),
        )


@dataclass(frozen=True)
class JobCompleteResult:
    """Has what the calls in Then returned, in their order."""

    results: list[Any] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> JobCompleteResult:
        return cls(
            results=list(o.get("results") or ()),
        )


@dataclass(frozen=True)
class JobListResult:
    """Has them, without their bodies."""

    jobs: list[Job] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> JobListResult:
        return cls(
            jobs=[Job.read(x or {}) for x in o.get("jobs") or ()],
        )


@dataclass(frozen=True)
class Queue:
    """A queue of jobs of a namespace. Agents with a grant send:job/NAME add jobs, and
    those with a grant name:job/NAME claim them.
    """

    owner: int = 0
    namespace: str = ""
    name: str = ""
    manifest: str = ""  # what clove starts for each job, as it was when the queue was added (Digest); empty: agents claim.
    digest: str = ""
    concurrency: int = 0  # jobs that are held at once; 0: as many as there are
    attempts: int = 0  # how often a job is tried, unless it says it
    backoff_ms: int = 0  # before the second attempt; doubled before each one after
    lease_ms: int = 0  # how long a run holds a job that it claims, and does not renew
    waiting: int = 0  # jobs
    held: int = 0
    dead: int = 0
    done: int = 0  # the last ones, at most 256
    why: str = ""  # why clove starts nothing for jobs that wait
    maker: str = ""  # the run that has made it for itself; absent: a user has. What clove starts for it are children of that run.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Queue:
        return cls(
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            name=o.get("name") or "",
            manifest=o.get("manifest") or "",
            digest=o.get("digest") or "",
            concurrency=o.get("concurrency") or 0,
            attempts=o.get("attempts") or 0,
            backoff_ms=o.get("backoff_ms") or 0,
            lease_ms=o.get("lease_ms") or 0,
            waiting=o.get("waiting") or 0,
            held=o.get("held") or 0,
            dead=o.get("dead") or 0,
            done=o.get("done") or 0,
            why=o.get("why") or "",
            maker=o.get("maker") or "",
        )


@dataclass(frozen=True)
class QueueResult:
    """One queue."""

    queue: Queue = field(default_factory=Queue)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> QueueResult:
        return cls(
            queue=Queue.read(o.get("queue") or {}),
        )


@dataclass(frozen=True)
class NameHolder:
    """A live run that has a name."""

    run: str = ""
    name: str = ""  # of the run
    tags: list[str] = field(default_factory=list)
    since: Optional[datetime] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> NameHolder:
        return cls(
            run=o.get("run") or "",
            name=o.get("name") or "",
            tags=list(o.get("tags") or ()),
            since=read_time(o.get("since")),
        )


@dataclass(frozen=True)
class Name:
    """A name that live runs of a namespace hold, or that a user has reserved. The name
    topic/T has the subscribers of the topic T.
    """

    owner: int = 0
    namespace: str = ""  # below the owner
    name: str = ""
    reserved: bool = False  # it is kept also without a run
    tags: list[str] = field(default_factory=list)  # of the reservation
    holders: list[NameHolder] = field(default_factory=list)  # the one whose turn is next comes first
    manifest: str = ""  # of what mail with wake starts a run while none holds the name, held by digest; empty: none.
    digest: str = ""
    why: str = ""  # why nothing starts

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Name:
        return cls(
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            name=o.get("name") or "",
            reserved=o.get("reserved") or False,
            tags=list(o.get("tags") or ()),
            holders=[NameHolder.read(x or {}) for x in o.get("holders") or ()],
            manifest=o.get("manifest") or "",
            digest=o.get("digest") or "",
            why=o.get("why") or "",
        )


@dataclass(frozen=True)
class NameResult:
    """One name."""

    name: Name = field(default_factory=Name)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> NameResult:
        return cls(
            name=Name.read(o.get("name") or {}),
        )


@dataclass(frozen=True)
class NameListResult:
    """A part of the names, in the order of the namespaces and of the names."""

    names: list[Name] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> NameListResult:
        return cls(
            names=[Name.read(x or {}) for x in o.get("names") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class ApprovalBudget:
    """A budget of which nothing is left, when people were asked. Amounts are in the
    dimension's unit.
    """

    account: str = ""
    dimension: str = ""
    granted: int = 0
    used: int = 0
    wanted: int = 0  # by the call that did not fit; 0: what was used is more than was granted
    more: int = 0  # that a yes adds to what is granted
    since: Optional[datetime] = None  # when the period began
    until: Optional[datetime] = None  # when it ends, and with it the question; absent: the budget has no period

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ApprovalBudget:
        return cls(
            account=o.get("account") or "",
            dimension=o.get("dimension") or "",
            granted=o.get("granted") or 0,
            used=o.get("used") or 0,
            wanted=o.get("wanted") or 0,
            more=o.get("more") or 0,
            since=read_time(o.get("since")),
            until=read_time(o.get("until")),
        )


@dataclass(frozen=True)
class ApprovalChanges:
    """The changes that people were asked to have written back. run.diff with the same
    paths gives them with the same digest, unless they are others by now.
    """

    paths: list[str] = field(default_factory=list)  # inside; absent: all of the workspace
    digest: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ApprovalChanges:
        return cls(
            paths=list(o.get("paths") or ()),
            digest=o.get("digest") or "",
        )


@dataclass(frozen=True)
class ApprovalAnswer:
    """The answer of one user."""

    uid: int = 0  # the user
    allow: bool = False
    time: Optional[datetime] = None
    reason: str = ""  # the agent reads it
    once: bool = False  # for one time
    for_ms: int = 0  # how long the yes is to hold
    command: bool = False  # the run's --on-ask gave it, with the proof of its owner's key

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ApprovalAnswer:
        return cls(
            uid=o.get("uid") or 0,
            allow=o.get("allow") or False,
            time=read_time(o.get("time")),
            reason=o.get("reason") or "",
            once=o.get("once") or False,
            for_ms=o.get("for_ms") or 0,
            command=o.get("command") or False,
        )


@dataclass(frozen=True)
class Approval:
    """A question to people, and their answers. An answer holds for exactly what is
    shown: Digest names it.
    """

    id: str = ""
    state: str = ""
    kind: str = ""
    run: str = ""
    agent: str = ""  # the name of the run
    owner: int = 0  # of the run
    namespace: str = ""
    what: str = ""  # in full: the target, or the method with its parameters
    shown: list[str] = field(default_factory=list)  # the parts of it, a line each
    says: str = ""  # the agent's own words about it
    cost: str = ""  # what it would cost
    also: str = ""  # what else the same yes would allow
    rule: str = ""  # what a yes would allow: a target, or what clove budget raise takes; of a call the rule that would have allowed it
    budget: Optional[ApprovalBudget] = None  # of kind budget
    changes: Optional[ApprovalChanges] = None  # of kind apply
    needed: int = 0  # so many users must say yes; absent: one
    digest: str = ""  # of all of the above but the state
    asked: Optional[datetime] = None  # when
    expires: Optional[datetime] = None  # then it is a no
    answers: list[ApprovalAnswer] = field(default_factory=list)
    grant: str = ""  # the id of the run's grant that a yes about the network has made
    until: Optional[datetime] = None  # the answer holds so long; absent: to the end of the run
    once: bool = False  # a yes is for one time
    used: Optional[datetime] = None  # when it was

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Approval:
        return cls(
            id=o.get("id") or "",
            state=o.get("state") or "",
            kind=o.get("kind") or "",
            run=o.get("run") or "",
            agent=o.get("agent") or "",
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            what=o.get("what") or "",
            shown=list(o.get("shown") or ()),
            says=o.get("says") or "",
            cost=o.get("cost") or "",
            also=o.get("also") or "",
            rule=o.get("rule") or "",
            budget=ApprovalBudget.read(o.get("budget") or {}) if o.get("budget") is not None else None,
            changes=ApprovalChanges.read(o.get("changes") or {}) if o.get("changes") is not None else None,
            needed=o.get("needed") or 0,
            digest=o.get("digest") or "",
            asked=read_time(o.get("asked")),
            expires=read_time(o.get("expires")),
            answers=[ApprovalAnswer.read(x or {}) for x in o.get("answers") or ()],
            grant=o.get("grant") or "",
            until=read_time(o.get("until")),
            once=o.get("once") or False,
            used=read_time(o.get("used")),
        )


@dataclass(frozen=True)
class ApprovalListResult:
    """A part of the questions, in the order in which they were asked."""

    approvals: list[Approval] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ApprovalListResult:
        return cls(
            approvals=[Approval.read(x or {}) for x in o.get("approvals") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class StateResult:
    """A key with its value."""

    path: str = ""
    version: int = 0  # each change in the scope has a higher one; 0: there is no such key
    bytes: int = 0  # of the value and of the blob
    blob: Optional[Blob] = None  # blob.read returns it, with the key as at
    changed: Optional[datetime] = None
    expires: Optional[datetime] = None
    value: Any = None  # absent: there is no such key, or only a blob

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> StateResult:
        return cls(
            path=o.get("path") or "",
            version=o.get("version") or 0,
            bytes=o.get("bytes") or 0,
            blob=Blob.read(o.get("blob") or {}) if o.get("blob") is not None else None,
            changed=read_time(o.get("changed")),
            expires=read_time(o.get("expires")),
            value=o.get("value"),
        )


@dataclass(frozen=True)
class StateSetResult:
    """The key's version now."""

    version: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> StateSetResult:
        return cls(
            version=o.get("version") or 0,
        )


@dataclass(frozen=True)
class StateDeleteResult:
    """The version that was removed."""

    version: int = 0  # 0: there was no such key

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> StateDeleteResult:
        return cls(
            version=o.get("version") or 0,
        )


@dataclass(frozen=True)
class StateEntry:
    """A key as it stands."""

    path: str = ""
    version: int = 0  # each change in the scope has a higher one; 0: there is no such key
    bytes: int = 0  # of the value and of the blob
    blob: Optional[Blob] = None  # blob.read returns it, with the key as at
    changed: Optional[datetime] = None
    expires: Optional[datetime] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> StateEntry:
        return cls(
            path=o.get("path") or "",
            version=o.get("version") or 0,
            bytes=o.get("bytes") or 0,
            blob=Blob.read(o.get("blob") or {}) if o.get("blob") is not None else None,
            changed=read_time(o.get("changed")),
            expires=read_time(o.get("expires")),
        )


@dataclass(frozen=True)
class StateListResult:
    """Has keys in the order of their paths, without their values."""

    keys: list[StateEntry] = field(default_factory=list)
    next: str = ""  # there are more

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> StateListResult:
        return cls(
            keys=[StateEntry.read(x or {}) for x in o.get("keys") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class BlobOpenResult:
    """Names the upload."""

    upload: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BlobOpenResult:
        return cls(
            upload=o.get("upload") or "",
        )


@dataclass(frozen=True)
class BlobWriteResult:
    """Says how much of the upload is written."""

    written: int = 0  # bytes; the next part begins there

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BlobWriteResult:
        return cls(
            written=o.get("written") or 0,
        )


@dataclass(frozen=True)
class BlobResult:
    """Names a blob."""

    sha256: str = ""  # 64 hexadecimal digits
    bytes: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BlobResult:
        return cls(
            sha256=o.get("sha256") or "",
            bytes=o.get("bytes") or 0,
        )


@dataclass(frozen=True)
class BlobReadResult:
    """A part of a blob."""

    data: bytes = b""  # at most 36 KiB, as base64
    bytes: int = 0
    next_offset: int = 0  # the offset of the next part; absent: this was the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BlobReadResult:
        return cls(
            data=read_bytes(o.get("data")),
            bytes=o.get("bytes") or 0,
            next_offset=o.get("next_offset") or 0,
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
class EventAppendResult:
    """Names the event."""

    id: str = ""  # also that of the call

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> EventAppendResult:
        return cls(
            id=o.get("id") or "",
        )


@dataclass(frozen=True)
class TraceStep:
    """A record of the audit log in a chain of causes: an event of an agent's, a call,
    or the start or the end of a run.
    """

    id: str = ""  # of the event or the call; of a start the run's
    time: Optional[datetime] = None
    kind: str = ""  # as in the audit log
    owner: int = 0
    namespace: str = ""
    principal: str = ""  # the caller
    agent: str = ""  # the name of the run
    run: str = ""
    method: str = ""
    what: str = ""
    object: str = ""  # ids of what it made or took
    verdict: str = ""
    causation: str = ""
    depth: int = 0  # with down: from the first one
    body: Any = None  # of an agent's event, while it is kept

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> TraceStep:
        return cls(
            id=o.get("id") or "",
            time=read_time(o.get("time")),
            kind=o.get("kind") or "",
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            principal=o.get("principal") or "",
            agent=o.get("agent") or "",
            run=o.get("run") or "",
            method=o.get("method") or "",
            what=o.get("what") or "",
            object=o.get("object") or "",
            verdict=o.get("verdict") or "",
            causation=o.get("causation") or "",
            depth=o.get("depth") or 0,
            body=o.get("body"),
        )


@dataclass(frozen=True)
class TraceResult:
    """A chain of causes."""

    steps: list[TraceStep] = field(default_factory=list)  # has the one that was asked for first, and behind each what it follows from, or with down what follows from it.
    truncated: bool = False  # there are more

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> TraceResult:
        return cls(
            steps=[TraceStep.read(x or {}) for x in o.get("steps") or ()],
            truncated=o.get("truncated") or False,
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
class HandoffGrant:
    """A part of a grant that is handed over, whose rest is lost."""

    from_: str = ""  # the id of a grant that the run holds
    grant: str = ""  # KIND:PATTERN[:RIGHTS], covered by from
    expires: Optional[datetime] = None
    uses: Optional[int] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> HandoffGrant:
        return cls(
            from_=o.get("from") or "",
            grant=o.get("grant") or "",
            expires=read_time(o.get("expires")),
            uses=o.get("uses"),
        )


@dataclass(frozen=True)
class SpawnLimits:
    """Limits of a child, each at most the manifest's; 0: the manifest's."""

    memory_bytes: int = 0
    cpus: float = 0.0
    pids: int = 0
    disk_bytes: int = 0
    output_bytes: int = 0
    cpu_time_ms: int = 0
    timeout_ms: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SpawnLimits:
        return cls(
            memory_bytes=o.get("memory_bytes") or 0,
            cpus=o.get("cpus") or 0.0,
            pids=o.get("pids") or 0,
            disk_bytes=o.get("disk_bytes") or 0,
            output_bytes=o.get("output_bytes") or 0,
            cpu_time_ms=o.get("cpu_time_ms") or 0,
            timeout_ms=o.get("timeout_ms") or 0,
        )


@dataclass(frozen=True)
class SpawnFile:
    """A file or folder of the parent's that the child gets a copy of."""

    from_: str = ""  # a path inside the parent's sandbox
    to: str = ""  # a path inside the child's

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SpawnFile:
        return cls(
            from_=o.get("from") or "",
            to=o.get("to") or "",
        )


@dataclass(frozen=True)
class ThenCall:
    """A call that another one carries: of a method that changes something in one
    transaction, without a key of its own.
    """

    method: str = ""
    params: Any = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ThenCall:
        return cls(
            method=o.get("method") or "",
            params=o.get("params"),
        )


@dataclass(frozen=True)
class StatePath:
    """Names a key of a scope."""

    scope: str = ""  # run, name or namespace; absent: that of name, or else run
    name: str = ""  # of the scope name
    path: str = ""  # parts with / between them: plans/today

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> StatePath:
        return cls(
            scope=o.get("scope") or "",
            name=o.get("name") or "",
            path=o.get("path") or "",
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
class OfferNote:
    """Says that there is a task: ask agent.offers, or accept it."""

    offer: str = ""
    from_: str = ""
    count: int = 0  # of how many it is the last; absent: of one

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> OfferNote:
        return cls(
            offer=o.get("offer") or "",
            from_=o.get("from") or "",
            count=o.get("count") or 0,
        )


@dataclass(frozen=True)
class AcceptedNote:
    """Says that another run has accepted a task of this one."""

    offer: str = ""
    to: str = ""
    count: int = 0  # of how many it is the last; absent: of one

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> AcceptedNote:
        return cls(
            offer=o.get("offer") or "",
            to=o.get("to") or "",
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

    def handoff(
        self,
        to: str,
        task: Any,
        *,
        grants: Optional[Sequence[Union[HandoffGrant, Mapping[str, Any]]]] = None,
        reservation: Optional[str] = None,
        expires: Optional[datetime] = None,
        key: Optional[str] = None,
    ) -> HandoffResult:
        """Gives another run a task, with parts of grants and a reservation, which the
        agent then has no more. A run below this one has them at once. One of the
        same user and namespace, for which the agent has a grant of kind send, has
        them when it accepts. Either gets the task with agent.accept.

        Args:
            to: a name or id as of mail.send: a run below this one, or one of the same user and namespace that a grant of kind send covers
            task: a text or any other JSON, at most 48 KiB
            grants: at most 8
            reservation: by budget.reserve; all of it is handed over
            expires: of the offer; absent: in an hour; at most in a day
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "to": to,
            "task": task,
            "grants": grants,
            "reservation": reservation,
            "expires": expires,
            "key": key,
        }
        return HandoffResult.read(self._call("agent.handoff", params))

    def accept(self, offer: str, *, key: Optional[str] = None) -> AcceptResult:
        """Accepts a task that another run has offered to this one, with what goes with
        it. Each offer is accepted once.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"offer": offer, "key": key}
        return AcceptResult.read(self._call("agent.accept", params))

    def withdraw(self, offer: str, *, key: Optional[str] = None) -> None:
        """Takes back an offer that the run has made and that is not accepted yet. Where
        what goes with it is the other run's already, which is below this one, the
        answer is the error conflict.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"offer": offer, "key": key}
        self._call("agent.withdraw", params)

    def offers(self, *, wait: Optional[bool] = None, after: Optional[str] = None) -> OfferListResult:
        """Lists the tasks that were offered to the run and are not accepted, in parts
        of at most 8. With wait the answer comes when there is one.

        Args:
            wait: answer when there is one
        """
        params = {"wait": wait, "after": after}
        return OfferListResult.read(self._call("agent.offers", params))

    def offers_all(self, *, wait: Optional[bool] = None) -> Iterator[Offer]:
        """Yields the offers of all parts of agent.offers, in as many calls as that takes."""
        return pages(self.offers, "offers", {"wait": wait})

    def spawn(
        self,
        manifest: str,
        *,
        name: Optional[str] = None,
        args: Optional[Sequence[str]] = None,
        env: Optional[Sequence[str]] = None,
        instructions: Optional[str] = None,
        limits: Optional[Union[SpawnLimits, Mapping[str, Any]]] = None,
        network: Optional[str] = None,
        deny: Optional[Sequence[str]] = None,
        grants: Optional[Sequence[str]] = None,
        budgets: Optional[Sequence[str]] = None,
        files: Optional[Sequence[Union[SpawnFile, Mapping[str, Any]]]] = None,
        why: Optional[str] = None,
        key: Optional[str] = None,
    ) -> SpawnResult:
        """Starts a child from a manifest that a spawn grant of the agent's holds,
        narrower by what the parameters name, and in nothing with more than the agent
        itself has. The notification agent.ended reports its end. It needs cloved.

        Args:
            manifest: a name, which a spawn grant of the caller's covers
            name: what the caller calls it, beside its id; no other live child has the same
            args: arguments behind the manifest's; of a model one, the prompt
            env: KEY=VALUE
            instructions: of a model: behind the manifest's
            network: none: no network at all
            deny: targets that are denied as well
            grants: KIND:PATTERN[:RIGHTS], a part of the manifest's, or none; absent: all
            budgets: DIMENSION=AMOUNT, no more than the manifest's
            files: copied before it starts
            why: for the people who are asked about it, at most 1024 bytes
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "manifest": manifest,
            "name": name,
            "args": args,
            "env": env,
            "instructions": instructions,
            "limits": limits,
            "network": network,
            "deny": deny,
            "grants": grants,
            "budgets": budgets,
            "files": files,
            "why": why,
            "key": key,
        }
        return SpawnResult.read(self._call("agent.spawn", params))

    def wait(self, child: str) -> ChildEnd:
        """Returns how a descendant ended, with the end of its output and its result,
        when it has. The call waits also while cloved is away.
        """
        params = {"child": child}
        return ChildEnd.read(self._call("agent.wait", params))

    def signal(
        self,
        child: str,
        signal: str,
        *,
        reason: Optional[str] = None,
        key: Optional[str] = None,
    ) -> None:
        """Sends a descendant a signal, or ends it with status policy-kill or budget.

        Args:
            signal: TERM, KILL, INT, USR1, USR2, STOP, CONT, or POLICY or BUDGET, which end it with that status
            reason: in the audit log, and of TERM, KILL, POLICY and BUDGET in its record
            key: the same key gets the same answer again; a random one by default
        """
        params = {"child": child, "signal": signal, "reason": reason, "key": key}
        self._call("agent.signal", params)

    def list(self, *, after: Optional[str] = None) -> ChildListResult:
        """Lists the children of a run, with those that have ended. If there are more,
        the answer has next, and the same request with that as after returns the
        following part.
        """
        params = {"after": after}
        return ChildListResult.read(self._call("agent.list", params))

    def list_all(self) -> Iterator[Child]:
        """Yields the children of all parts of agent.list, in as many calls as that takes."""
        return pages(self.list, "children", {})

    def tree(self, *, after: Optional[str] = None) -> ChildListResult:
        """Lists all runs below a run, each behind its parent. It continues as
        agent.list.
        """
        params = {"after": after}
        return ChildListResult.read(self._call("agent.tree", params))

    def tree_all(self) -> Iterator[Child]:
        """Yields the children of all parts of agent.tree, in as many calls as that takes."""
        return pages(self.tree, "children", {})

    def result(self, result: Any, *, key: Optional[str] = None) -> None:
        """Gives the result of the run to what started it, once: agent.wait returns it.

        Args:
            result: JSON of at most 48 KiB
            key: the same key gets the same answer again; a random one by default
        """
        params = {"result": result, "key": key}
        self._call("agent.result", params)

    def collect(
        self,
        child: str,
        path: str,
        *,
        paths: Optional[Sequence[str]] = None,
        key: Optional[str] = None,
    ) -> CollectResult:
        """Copies what a run below the caller's has changed in its files to a path of
        the caller's, with the caller's rights: a live run, which is frozen while it
        is read, or one that has ended and whose layer is kept. Below the path the
        files have the paths that they had inside. At the path must be nothing, or an
        empty folder, and what is copied appears as a whole. Deletions, devices,
        pipes, sockets and what the run itself may not read are left out, and named
        in the answer.

        Args:
            child: id or name
            path: inside; at it must be nothing, or an empty folder
            paths: inside of the child, as run.diff lists them: only these, and what is below them
            key: the same key gets the same answer again; a random one by default
        """
        params = {"child": child, "path": path, "paths": paths, "key": key}
        return CollectResult.read(self._call("agent.collect", params))

    def fetch(
        self,
        keeper: str,
        from_: str,
        path: str,
        *,
        key: Optional[str] = None,
    ) -> None:
        """Copies a file or folder that a live run of the namespace keeps with its home
        to a path of the caller's: it is read with that run's rights through its own
        mount, and written with the caller's. It needs a grant file:RUN:FOLDER, as
        file:noter:/memory. Below the path the files have the paths that they had
        inside. At the path must be nothing, or an empty folder, and what is copied
        appears as a whole, or nothing where something of it cannot be copied, as a
        pipe.

        Args:
            keeper: the name of a live run of the namespace
            from_: inside of it: a folder that it keeps (Files.Keep), or what is below one
            path: inside of the caller; at it must be nothing, or an empty folder
            key: the same key gets the same answer again; a random one by default
        """
        params = {"keeper": keeper, "from": from_, "path": path, "key": key}
        self._call("agent.fetch", params)

    def apply(
        self,
        *,
        paths: Optional[Sequence[str]] = None,
        why: Optional[str] = None,
        key: Optional[str] = None,
    ) -> OwnApplyResult:
        """Asks people to write the run's changes back to its workspace on the host, and
        waits for them; the run was started with --ask apply. They are written as
        run.apply does, with the rights of the run's owner, if they are still exactly
        what people saw. What a program of the host's executes by itself, and what
        the next agent follows, is left out. It needs cloved.

        Args:
            paths: as in run.apply
            why: people see it; at most 1024 bytes
            key: the same key gets the same answer again; a random one by default
        """
        params = {"paths": paths, "why": why, "key": key}
        return OwnApplyResult.read(self._call("agent.apply", params))


class ToolMethods:
    """The methods tool.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def list(self, *, after: Optional[str] = None) -> ToolListResult:
        """Lists the tools that a run's grants cover, with the schemas of their
        arguments. If there are more, the answer has next, and the same request with
        that as after returns the following part.

        Args:
            after: next of the part before
        """
        params = {"after": after}
        return ToolListResult.read(self._call("tool.list", params))

    def list_all(self) -> Iterator[Tool]:
        """Yields the tools of all parts of tool.list, in as many calls as that takes."""
        return pages(self.list, "tools", {})

    def call(
        self,
        tool: str,
        *,
        arguments: Optional[Any] = None,
        timeout_ms: Optional[int] = None,
        key: Optional[str] = None,
    ) -> ToolCallResult:
        """Calls a tool that a grant tool:NAME covers, and returns what it gave when it
        has ended. It counts as one of the budget's tool_calls. In a run with --ask
        tool it waits for people's yes first, unless the tool changes nothing. The
        end of the call, as by cancel, ends the tool with all that it has started. Of
        two calls with one key the second is refused: the answer of the first is not
        kept.

        Args:
            arguments: an object of JSON, of at most 48 KiB; absent: {}.
            timeout_ms: bounds the call in milliseconds; absent: the tool's own bound, which it cannot pass.
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "tool": tool,
            "arguments": arguments,
            "timeout_ms": timeout_ms,
            "key": key,
        }
        return ToolCallResult.read(self._call("tool.call", params))


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
            to: the run that gets it, one below this run; empty: the run itself
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


class MailMethods:
    """The methods mail.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def send(
        self,
        to: str,
        body: Any,
        *,
        blob: Optional[str] = None,
        priority: Optional[int] = None,
        expires_ms: Optional[int] = None,
        trace: Optional[str] = None,
        asks: Optional[bool] = None,
        wait_ms: Optional[int] = None,
        wake: Optional[bool] = None,
        key: Optional[str] = None,
    ) -> MailSendResult:
        """Sends a message, which is durable when the call is answered. It needs a grant
        of kind send that covers the receiver. A full mailbox refuses it. With wake
        it starts a run for a reserved name that has a manifest and that no run
        holds.

        Args:
            to: a registered name, or the name or the id of a run, in the sender's namespace; or parent
            body: at most 48 KiB; null beside a blob: that alone
            blob: SHA-256 of one that the caller may read
            priority: 0 to 9; higher ones are received first
            expires_ms: from now; 0: never
            trace: absent: a new one, or that of the message it answers
            asks: mail.answer waits for what the receiver replies
            wait_ms: while the mailbox is full, wait so long for place in it; 0: not at all
            wake: start a run for the name if none holds it
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "to": to,
            "body": body,
            "blob": blob,
            "priority": priority,
            "expires_ms": expires_ms,
            "trace": trace,
            "asks": asks,
            "wait_ms": wait_ms,
            "wake": wake,
            "key": key,
        }
        return MailSendResult.read(self._call("mail.send", params))

    def receive(
        self,
        *,
        after: Optional[str] = None,
        most: Optional[int] = None,
        within_ms: Optional[int] = None,
    ) -> MailReceiveResult:
        """Returns messages of the agent's mailbox when there are some: those of a
        higher priority first, of one sender in the order in which it sent them. They
        come again until they are acknowledged.

        Args:
            after: the id of the last one that the caller has; absent: from the first that is not acknowledged
            most: 1 to 64; absent: 1
            within_ms: then the call is refused: not found, rule within; 0: it waits without end
        """
        params = {"after": after, "most": most, "within_ms": within_ms}
        return MailReceiveResult.read(self._call("mail.receive", params))

    def ack(
        self,
        ids: Sequence[str],
        *,
        reject: Optional[str] = None,
        then: Optional[Sequence[Union[ThenCall, Mapping[str, Any]]]] = None,
        key: Optional[str] = None,
    ) -> MailAckResult:
        """Takes messages out of the agent's mailbox, all or none; with reject they
        become dead letters. The calls in then are done with that in one transaction:
        where one is refused, nothing has happened.

        Args:
            ids: 1 to 64
            reject: why; they become dead letters
            then: done with it, each with its own rights and costs: all that is named, or nothing. at most 16
            key: the same key gets the same answer again; a random one by default
        """
        params = {"ids": ids, "reject": reject, "then": then, "key": key}
        return MailAckResult.read(self._call("mail.ack", params))

    def reply(
        self,
        id: str,
        body: Any,
        *,
        blob: Optional[str] = None,
        ack: Optional[bool] = None,
        key: Optional[str] = None,
    ) -> MailSendResult:
        """Answers a message that asks, once. It needs no grant.

        Args:
            id: of the message, which is in the caller's mailbox or was acknowledged by the same call
            body: as in MailSendParams
            ack: take the message out of the mailbox
            key: the same key gets the same answer again; a random one by default
        """
        params = {"id": id, "body": body, "blob": blob, "ack": ack, "key": key}
        return MailSendResult.read(self._call("mail.reply", params))

    def answer(self, id: str, *, within_ms: Optional[int] = None) -> MailAnswerResult:
        """Returns the answer to a message that the agent sent with asks, when it has
        come.

        Args:
            within_ms: then the call is refused: not found, rule within; 0: it waits without end
        """
        params = {"id": id, "within_ms": within_ms}
        return MailAnswerResult.read(self._call("mail.answer", params))

    def subscribe(self, topic: str, *, key: Optional[str] = None) -> None:
        """Has the run get a copy of each message to the topic T of its namespace, until
        it ends. It needs a grant of kind name that covers topic/T.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"topic": topic, "key": key}
        self._call("mail.subscribe", params)

    def unsubscribe(self, topic: str, *, key: Optional[str] = None) -> None:
        """Ends a subscription of the run. What has come stays.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"topic": topic, "key": key}
        self._call("mail.unsubscribe", params)

    def publish(
        self,
        topic: str,
        body: Any,
        *,
        blob: Optional[str] = None,
        priority: Optional[int] = None,
        expires_ms: Optional[int] = None,
        trace: Optional[str] = None,
        fail_on_full: Optional[bool] = None,
        key: Optional[str] = None,
    ) -> MailPublishResult:
        """Sends a message to each run that has subscribed to the topic T, and says how
        many have it and how many mailboxes were full. It needs a grant of kind send
        that covers topic/T, and costs one message.

        Args:
            body: as in MailSendParams
            priority: as in MailSendParams
            expires_ms: from now; 0: never
            trace: absent: a new one
            fail_on_full: refuse all if the mailbox of one is full
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "topic": topic,
            "body": body,
            "blob": blob,
            "priority": priority,
            "expires_ms": expires_ms,
            "trace": trace,
            "fail_on_full": fail_on_full,
            "key": key,
        }
        return MailPublishResult.read(self._call("mail.publish", params))


class JobMethods:
    """The methods job.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def add(
        self,
        queue: str,
        body: Any,
        *,
        blob: Optional[str] = None,
        priority: Optional[int] = None,
        delay_ms: Optional[int] = None,
        deadline_ms: Optional[int] = None,
        attempts: Optional[int] = None,
        trace: Optional[str] = None,
        key: Optional[str] = None,
    ) -> JobResult:
        """Adds a job to a queue of the run's namespace, which is durable when the call
        is answered. It needs a grant of kind send that covers job/QUEUE, and costs
        one message. A full queue refuses it.

        Args:
            body: at most 48 KiB; null beside a blob: that alone
            blob: SHA-256 of one that the caller may read
            priority: 0 to 9; higher ones are taken first
            delay_ms: from now; it is not taken before
            deadline_ms: from now; then it is dead, also while a run holds it; 0: never
            attempts: how often it is tried; absent: as the queue says
            trace: absent: a new one
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "queue": queue,
            "body": body,
            "blob": blob,
            "priority": priority,
            "delay_ms": delay_ms,
            "deadline_ms": deadline_ms,
            "attempts": attempts,
            "trace": trace,
            "key": key,
        }
        return JobResult.read(self._call("job.add", params))

    def claim(
        self,
        queue: str,
        *,
        within_ms: Optional[int] = None,
        key: Optional[str] = None,
    ) -> JobResult:
        """Takes the next job of a queue of the run's namespace when there is one: of a
        higher priority first, and else in the order in which they were added. The
        run holds it until it completes or fails it, ends, or its lease runs out. It
        needs a grant of kind name that covers job/QUEUE. With a key, a repetition
        returns the same job.

        Args:
            within_ms: then the call is refused: not found, rule within; 0: it waits without end
            key: the same key gets the same answer again; a random one by default
        """
        params = {"queue": queue, "within_ms": within_ms, "key": key}
        return JobResult.read(self._call("job.claim", params))

    def renew(self, id: str, *, key: Optional[str] = None) -> JobResult:
        """Begins the lease of a job that the run holds anew.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"id": id, "key": key}
        return JobResult.read(self._call("job.renew", params))

    def complete(
        self,
        id: str,
        *,
        result: Optional[Any] = None,
        blob: Optional[str] = None,
        then: Optional[Sequence[Union[ThenCall, Mapping[str, Any]]]] = None,
        key: Optional[str] = None,
    ) -> JobCompleteResult:
        """Ends a job that the run holds: it is done. The calls in then are done with
        that in one transaction: where one is refused, nothing has happened.

        Args:
            result: at most 4 KiB
            blob: SHA-256 of one that the caller may read: the result, or beside it
            then: done with it, each with its own rights and costs: all that is named, or nothing. at most 16
            key: the same key gets the same answer again; a random one by default
        """
        params = {"id": id, "result": result, "blob": blob, "then": then, "key": key}
        return JobCompleteResult.read(self._call("job.complete", params))

    def fail(
        self,
        id: str,
        why: str,
        *,
        dead: Optional[bool] = None,
        key: Optional[str] = None,
    ) -> JobResult:
        """Gives a job that the run holds back: it is tried again after a pause, or it
        is dead.

        Args:
            dead: it is not tried again
            key: the same key gets the same answer again; a random one by default
        """
        params = {"id": id, "why": why, "dead": dead, "key": key}
        return JobResult.read(self._call("job.fail", params))

    def get(self, id: str) -> JobResult:
        """Returns a job that the run holds, or that it has added."""
        params = {"id": id}
        return JobResult.read(self._call("job.get", params))

    def list(self) -> JobListResult:
        """Lists the jobs that the run holds, without their bodies."""
        params = {}
        return JobListResult.read(self._call("job.list", params))


class QueueMethods:
    """The methods queue.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def open(
        self,
        queue: str,
        *,
        manifest: Optional[str] = None,
        concurrency: Optional[int] = None,
        attempts: Optional[int] = None,
        backoff_ms: Optional[int] = None,
        lease_ms: Optional[int] = None,
        key: Optional[str] = None,
    ) -> QueueResult:
        """Makes a queue of the run's namespace, or replaces the settings of one that
        the run has made. It needs a grant of kind name that covers job/QUEUE, and
        with a manifest one of kind spawn that covers that. What is started for its
        jobs are children of the run, and held against it as those of agent.spawn.
        When the run ends nothing is started any more, and an empty queue goes.

        Args:
            manifest: that clove starts for each job, as a child of the caller's; the job is its stdin
            concurrency: absent: 1 with a manifest, and else as many as there are
            attempts: absent: 3
            backoff_ms: absent: 1000
            lease_ms: absent: 60000
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "queue": queue,
            "manifest": manifest,
            "concurrency": concurrency,
            "attempts": attempts,
            "backoff_ms": backoff_ms,
            "lease_ms": lease_ms,
            "key": key,
        }
        return QueueResult.read(self._call("queue.open", params))

    def close(self, queue: str, *, key: Optional[str] = None) -> None:
        """Removes a queue that the run has made and that has no jobs to be done and no
        dead ones.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"queue": queue, "key": key}
        self._call("queue.close", params)


class NameMethods:
    """The methods name.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def register(
        self,
        name: str,
        *,
        tags: Optional[Sequence[str]] = None,
        key: Optional[str] = None,
    ) -> NameResult:
        """Gives the run a name in its namespace until it ends, or other tags for one
        that it has. It needs a grant of kind name that covers it. Runs that hold the
        same name take turns.

        Args:
            tags: at most 8
            key: the same key gets the same answer again; a random one by default
        """
        params = {"name": name, "tags": tags, "key": key}
        return NameResult.read(self._call("name.register", params))

    def release(self, name: str, *, key: Optional[str] = None) -> None:
        """Takes a name from the run.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"name": name, "key": key}
        self._call("name.release", params)

    def lookup(self, name: str) -> NameResult:
        """Returns a name of the run's namespace, with the runs that hold it."""
        params = {"name": name}
        return NameResult.read(self._call("name.lookup", params))

    def list(
        self,
        *,
        prefix: Optional[str] = None,
        tag: Optional[str] = None,
        after: Optional[str] = None,
    ) -> NameListResult:
        """Lists the names of the run's namespace. If there are more, the answer has
        next, and the same request with that as after returns the following part.

        Args:
            prefix: with which a name begins
            tag: of the reservation or of a holder
            after: where the last answer ended
        """
        params = {"prefix": prefix, "tag": tag, "after": after}
        return NameListResult.read(self._call("name.list", params))

    def list_all(self, *, prefix: Optional[str] = None, tag: Optional[str] = None) -> Iterator[Name]:
        """Yields the names of all parts of name.list, in as many calls as that takes."""
        return pages(self.list, "names", {"prefix": prefix, "tag": tag})


class ApprovalMethods:
    """The methods approval.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def own(self, *, after: Optional[str] = None) -> ApprovalListResult:
        """Lists the questions to people that the run has, and their answers. If there
        are more, the answer has next, and the same request with that as after
        returns the following part.

        Args:
            after: where the last answer ended
        """
        params = {"after": after}
        return ApprovalListResult.read(self._call("approval.own", params))

    def own_all(self) -> Iterator[Approval]:
        """Yields the approvals of all parts of approval.own, in as many calls as that takes."""
        return pages(self.own, "approvals", {})

    def cancel(self, id: str, *, key: Optional[str] = None) -> None:
        """Takes back a question of the run that waits. What asked is refused.

        Args:
            key: the same key gets the same answer again; a random one by default
        """
        params = {"id": id, "key": key}
        self._call("approval.cancel", params)


class StateMethods:
    """The methods state.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def get(
        self,
        path: str,
        *,
        scope: Optional[str] = None,
        name: Optional[str] = None,
    ) -> StateResult:
        """Returns a key with its value and its version, which is 0 where there is none.
        Keys of the scopes name and namespace, which other runs share, need a grant
        of kind state, such as state:/namespace/plans:ro, for all of these methods.

        Args:
            scope: run, name or namespace; absent: that of name, or else run
            name: of the scope name
            path: parts with / between them: plans/today
        """
        params = {"scope": scope, "name": name, "path": path}
        return StateResult.read(self._call("state.get", params))

    def set(
        self,
        path: str,
        value: Any,
        *,
        scope: Optional[str] = None,
        name: Optional[str] = None,
        if_version: Optional[int] = None,
        blob: Optional[str] = None,
        expires_ms: Optional[int] = None,
        key: Optional[str] = None,
    ) -> StateSetResult:
        """Sets a key, which is durable when the call is answered. With if_version only
        if the key has that version, else the answer is the error conflict.

        Args:
            scope: run, name or namespace; absent: that of name, or else run
            name: of the scope name
            path: parts with / between them: plans/today
            if_version: the version that there must be, 0: none; absent: any
            value: at most 48 KiB; null beside a blob: that alone
            blob: SHA-256 of one that the caller may read
            expires_ms: from now; 0: never
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "scope": scope,
            "name": name,
            "path": path,
            "if_version": if_version,
            "value": value,
            "blob": blob,
            "expires_ms": expires_ms,
            "key": key,
        }
        return StateSetResult.read(self._call("state.set", params))

    def delete(
        self,
        path: str,
        *,
        scope: Optional[str] = None,
        name: Optional[str] = None,
        if_version: Optional[int] = None,
        key: Optional[str] = None,
    ) -> StateDeleteResult:
        """Removes a key, with if_version as state.set.

        Args:
            scope: run, name or namespace; absent: that of name, or else run
            name: of the scope name
            path: parts with / between them: plans/today
            if_version: the version that there must be, 0: none; absent: any
            key: the same key gets the same answer again; a random one by default
        """
        params = {
            "scope": scope,
            "name": name,
            "path": path,
            "if_version": if_version,
            "key": key,
        }
        return StateDeleteResult.read(self._call("state.delete", params))

    def list(
        self,
        *,
        scope: Optional[str] = None,
        name: Optional[str] = None,
        path: Optional[str] = None,
        after: Optional[str] = None,
    ) -> StateListResult:
        """Lists the key at a path and those below it, without their values. If there
        are more, the answer has next, and the same request with that as after
        returns the following part.

        Args:
            scope: run, name or namespace; absent: that of name, or else run
            name: of the scope name
            path: absent: all keys of the scope
            after: next of the answer before, to go on behind it
        """
        params = {"scope": scope, "name": name, "path": path, "after": after}
        return StateListResult.read(self._call("state.list", params))

    def list_all(
        self,
        *,
        scope: Optional[str] = None,
        name: Optional[str] = None,
        path: Optional[str] = None,
    ) -> Iterator[StateEntry]:
        """Yields the keys of all parts of state.list, in as many calls as that takes."""
        return pages(self.list, "keys", {"scope": scope, "name": name, "path": path})

    def watch(
        self,
        path: str,
        version: int,
        *,
        scope: Optional[str] = None,
        name: Optional[str] = None,
        within_ms: Optional[int] = None,
    ) -> StateResult:
        """Returns a key when its version is above the given one, or when it is gone and
        the given one is above 0. That a key expires does not wake a call that waits:
        the caller bounds the wait with within_ms, and asks again.

        Args:
            scope: run, name or namespace; absent: that of name, or else run
            name: of the scope name
            path: parts with / between them: plans/today
            version: the one that the caller knows; 0: it knows of none
            within_ms: then the call is refused: not found, rule within; 0: it waits without end
        """
        params = {
            "scope": scope,
            "name": name,
            "path": path,
            "version": version,
            "within_ms": within_ms,
        }
        return StateResult.read(self._call("state.watch", params))


class BlobMethods:
    """The methods blob.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def open(self, bytes: int, *, key: Optional[str] = None) -> BlobOpenResult:
        """Begins an upload of a blob: a body of up to 64 MiB, which mail.send and
        state.set name by its SHA-256. Its bytes count as write_bytes at once. The
        upload expires after an hour, and ends with the run.

        Args:
            bytes: of the whole blob, 1 to 64 MiB
            key: the same key gets the same answer again; a random one by default
        """
        params = {"bytes": bytes, "key": key}
        return BlobOpenResult.read(self._call("blob.open", params))

    def write(self, upload: str, offset: int, data: bytes) -> BlobWriteResult:
        """Writes a part of an upload, of at most 36 KiB. The parts come in their order;
        one may be written again.

        Args:
            offset: of the part; not behind the end of what is written
            data: at most 36 KiB, as base64
        """
        params = {"upload": upload, "offset": offset, "data": data}
        return BlobWriteResult.read(self._call("blob.write", params))

    def close(
        self,
        upload: str,
        *,
        sha256: Optional[str] = None,
        key: Optional[str] = None,
    ) -> BlobResult:
        """Ends an upload, and returns the SHA-256 of the blob, which is durable then.
        The run may name it for an hour; bodies that do keep it.

        Args:
            sha256: what the digest must be; absent: anything
            key: the same key gets the same answer again; a random one by default
        """
        params = {"upload": upload, "sha256": sha256, "key": key}
        return BlobResult.read(self._call("blob.close", params))

    def take(self, path: str, *, key: Optional[str] = None) -> BlobResult:
        """Makes a blob of a file of the agent's, as blob.open, blob.write and
        blob.close do. It is read with the agent's rights, at the path that the agent
        sees.

        Args:
            path: absolute, as the agent sees it
            key: the same key gets the same answer again; a random one by default
        """
        params = {"path": path, "key": key}
        return BlobResult.read(self._call("blob.take", params))

    def read(
        self,
        blob: str,
        *,
        at: Optional[Union[StatePath, Mapping[str, Any]]] = None,
        job: Optional[str] = None,
        offset: Optional[int] = None,
    ) -> BlobReadResult:
        """Returns a part of a blob to which a message in the agent's mailbox, a key of
        its run or an upload of its own refers; or a key that the call names and that
        the agent may read. Any other blob is as one that there is not.

        Args:
            blob: its SHA-256
            at: the key that refers to it, of a scope that runs share; absent: a message in the caller's mailbox does, a key of its own run, a job that it holds, or an upload of its own.
            job: the id of one that refers to it and that the caller holds or has added; not with at.
            offset: of the part
        """
        params = {"blob": blob, "at": at, "job": job, "offset": offset}
        return BlobReadResult.read(self._call("blob.read", params))

    def save(
        self,
        blob: str,
        path: str,
        *,
        at: Optional[Union[StatePath, Mapping[str, Any]]] = None,
        job: Optional[str] = None,
        key: Optional[str] = None,
    ) -> BlobResult:
        """Writes a blob that the agent may read to a new file, with the agent's rights,
        at the path that the agent sees.

        Args:
            blob: its SHA-256
            at: the key that refers to it, of a scope that runs share; absent: a message in the caller's mailbox does, a key of its own run, a job that it holds, or an upload of its own.
            job: the id of one that refers to it and that the caller holds or has added; not with at.
            path: absolute, as the agent sees it; nothing may be there
            key: the same key gets the same answer again; a random one by default
        """
        params = {"blob": blob, "at": at, "job": job, "path": path, "key": key}
        return BlobResult.read(self._call("blob.save", params))


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


class EventMethods:
    """The methods event.*."""

    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:
        self._call = call

    def append(
        self,
        kind: str,
        *,
        body: Optional[Any] = None,
        causation: Optional[str] = None,
        key: Optional[str] = None,
    ) -> EventAppendResult:
        """Adds an event of the agent's own, which is durable when the call is answered,
        and may name the event, call or message that it follows from. The newest 256
        of a run are kept; all are in the audit log, without their bodies. It costs
        one message.

        Args:
            kind: agent. and a name of the agent's: lower-case letters, digits and _.-
            body: JSON of at most EventBodyMost bytes
            causation: what the event follows from: the id of an event, of a call, or of a message in the agent's mailbox. Absent: nothing else than what the run began with.
            key: the same key gets the same answer again; a random one by default
        """
        params = {"kind": kind, "body": body, "causation": causation, "key": key}
        return EventAppendResult.read(self._call("event.append", params))

    def trace(
        self,
        id: str,
        *,
        depth: Optional[int] = None,
        down: Optional[bool] = None,
    ) -> TraceResult:
        """Returns from what an event, a call, a message or a run follows, step by step
        as far as the agent may see: its own calls, those of runs below it, and what
        sent it mail. With down what follows from it, as far as that is the agent's
        own or a run's below it. The newest 32 MiB of the audit log are searched.

        Args:
            id: of an event, a call, a message or a run
            depth: at most so many steps, 1 to 100; absent: 10
            down: what follows from it, at most 100 records; absent: from what it follows
        """
        params = {"id": id, "depth": depth, "down": down}
        return TraceResult.read(self._call("event.trace", params))


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
        self.tool = ToolMethods(call)
        self.grant = GrantMethods(call)
        self.budget = BudgetMethods(call)
        self.mail = MailMethods(call)
        self.job = JobMethods(call)
        self.queue = QueueMethods(call)
        self.name = NameMethods(call)
        self.approval = ApprovalMethods(call)
        self.state = StateMethods(call)
        self.blob = BlobMethods(call)
        self.model = ModelMethods(call)
        self.event = EventMethods(call)
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
    "agent.handoff": Method(
        "agent.handoff",
        "Gives another run a task, with parts of grants and a reservation, which the agent then has no more. A run below this one has them at once. One of the same user and namespace, for which the agent has a grant of kind send, has them when it accepts. Either gets the task with agent.accept.",
        [
            Param("to", "string", True, "a name or id as of mail.send: a run below this one, or one of the same user and namespace that a grant of kind send covers"),
            Param("task", "json", True, "a text or any other JSON, at most 48 KiB"),
            Param("grants", "json", False, "at most 8"),
            Param("reservation", "string", False, "by budget.reserve; all of it is handed over"),
            Param("expires", "time", False, "of the offer; absent: in an hour; at most in a day"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "agent.accept": Method(
        "agent.accept",
        "Accepts a task that another run has offered to this one, with what goes with it. Each offer is accepted once.",
        [
            Param("offer", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "agent.withdraw": Method(
        "agent.withdraw",
        "Takes back an offer that the run has made and that is not accepted yet. Where what goes with it is the other run's already, which is below this one, the answer is the error conflict.",
        [
            Param("offer", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "agent.offers": Method(
        "agent.offers",
        "Lists the tasks that were offered to the run and are not accepted, in parts of at most 8. With wait the answer comes when there is one.",
        [
            Param("wait", "bool", False, "answer when there is one"),
            Param("after", "string", False, ""),
        ],
    ),
    "agent.spawn": Method(
        "agent.spawn",
        "Starts a child from a manifest that a spawn grant of the agent's holds, narrower by what the parameters name, and in nothing with more than the agent itself has. The notification agent.ended reports its end. It needs cloved.",
        [
            Param("manifest", "string", True, "a name, which a spawn grant of the caller's covers"),
            Param("name", "string", False, "what the caller calls it, beside its id; no other live child has the same"),
            Param("args", "strings", False, "arguments behind the manifest's; of a model one, the prompt"),
            Param("env", "strings", False, "KEY=VALUE"),
            Param("instructions", "string", False, "of a model: behind the manifest's"),
            Param("limits", "json", False, ""),
            Param("network", "string", False, "none: no network at all"),
            Param("deny", "strings", False, "targets that are denied as well"),
            Param("grants", "strings", False, "KIND:PATTERN[:RIGHTS], a part of the manifest's, or none; absent: all"),
            Param("budgets", "strings", False, "DIMENSION=AMOUNT, no more than the manifest's"),
            Param("files", "json", False, "copied before it starts"),
            Param("why", "string", False, "for the people who are asked about it, at most 1024 bytes"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "agent.wait": Method(
        "agent.wait",
        "Returns how a descendant ended, with the end of its output and its result, when it has. The call waits also while cloved is away.",
        [
            Param("child", "string", True, ""),
        ],
    ),
    "agent.signal": Method(
        "agent.signal",
        "Sends a descendant a signal, or ends it with status policy-kill or budget.",
        [
            Param("child", "string", True, ""),
            Param("signal", "string", True, "TERM, KILL, INT, USR1, USR2, STOP, CONT, or POLICY or BUDGET, which end it with that status"),
            Param("reason", "string", False, "in the audit log, and of TERM, KILL, POLICY and BUDGET in its record"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "agent.list": Method(
        "agent.list",
        "Lists the children of a run, with those that have ended. If there are more, the answer has next, and the same request with that as after returns the following part.",
        [
            Param("after", "string", False, ""),
        ],
    ),
    "agent.tree": Method(
        "agent.tree",
        "Lists all runs below a run, each behind its parent. It continues as agent.list.",
        [
            Param("after", "string", False, ""),
        ],
    ),
    "agent.result": Method(
        "agent.result",
        "Gives the result of the run to what started it, once: agent.wait returns it.",
        [
            Param("result", "json", True, "JSON of at most 48 KiB"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "agent.collect": Method(
        "agent.collect",
        "Copies what a run below the caller's has changed in its files to a path of the caller's, with the caller's rights: a live run, which is frozen while it is read, or one that has ended and whose layer is kept. Below the path the files have the paths that they had inside. At the path must be nothing, or an empty folder, and what is copied appears as a whole. Deletions, devices, pipes, sockets and what the run itself may not read are left out, and named in the answer.",
        [
            Param("child", "string", True, "id or name"),
            Param("path", "string", True, "inside; at it must be nothing, or an empty folder"),
            Param("paths", "strings", False, "inside of the child, as run.diff lists them: only these, and what is below them"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "agent.fetch": Method(
        "agent.fetch",
        "Copies a file or folder that a live run of the namespace keeps with its home to a path of the caller's: it is read with that run's rights through its own mount, and written with the caller's. It needs a grant file:RUN:FOLDER, as file:noter:/memory. Below the path the files have the paths that they had inside. At the path must be nothing, or an empty folder, and what is copied appears as a whole, or nothing where something of it cannot be copied, as a pipe.",
        [
            Param("keeper", "string", True, "the name of a live run of the namespace"),
            Param("from", "string", True, "inside of it: a folder that it keeps (Files.Keep), or what is below one"),
            Param("path", "string", True, "inside of the caller; at it must be nothing, or an empty folder"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "agent.apply": Method(
        "agent.apply",
        "Asks people to write the run's changes back to its workspace on the host, and waits for them; the run was started with --ask apply. They are written as run.apply does, with the rights of the run's owner, if they are still exactly what people saw. What a program of the host's executes by itself, and what the next agent follows, is left out. It needs cloved.",
        [
            Param("paths", "strings", False, "as in run.apply"),
            Param("why", "string", False, "people see it; at most 1024 bytes"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "tool.list": Method(
        "tool.list",
        "Lists the tools that a run's grants cover, with the schemas of their arguments. If there are more, the answer has next, and the same request with that as after returns the following part.",
        [
            Param("after", "string", False, "next of the part before"),
        ],
    ),
    "tool.call": Method(
        "tool.call",
        "Calls a tool that a grant tool:NAME covers, and returns what it gave when it has ended. It counts as one of the budget's tool_calls. In a run with --ask tool it waits for people's yes first, unless the tool changes nothing. The end of the call, as by cancel, ends the tool with all that it has started. Of two calls with one key the second is refused: the answer of the first is not kept.",
        [
            Param("tool", "string", True, ""),
            Param("arguments", "json", False, "an object of JSON, of at most 48 KiB; absent: {}."),
            Param("timeout_ms", "integer", False, "bounds the call in milliseconds; absent: the tool's own bound, which it cannot pass."),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
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
            Param("to", "string", False, "the run that gets it, one below this run; empty: the run itself"),
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
    "mail.send": Method(
        "mail.send",
        "Sends a message, which is durable when the call is answered. It needs a grant of kind send that covers the receiver. A full mailbox refuses it. With wake it starts a run for a reserved name that has a manifest and that no run holds.",
        [
            Param("to", "string", True, "a registered name, or the name or the id of a run, in the sender's namespace; or parent"),
            Param("body", "json", True, "at most 48 KiB; null beside a blob: that alone"),
            Param("blob", "string", False, "SHA-256 of one that the caller may read"),
            Param("priority", "integer", False, "0 to 9; higher ones are received first"),
            Param("expires_ms", "integer", False, "from now; 0: never"),
            Param("trace", "string", False, "absent: a new one, or that of the message it answers"),
            Param("asks", "bool", False, "mail.answer waits for what the receiver replies"),
            Param("wait_ms", "integer", False, "while the mailbox is full, wait so long for place in it; 0: not at all"),
            Param("wake", "bool", False, "start a run for the name if none holds it"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "mail.receive": Method(
        "mail.receive",
        "Returns messages of the agent's mailbox when there are some: those of a higher priority first, of one sender in the order in which it sent them. They come again until they are acknowledged.",
        [
            Param("after", "string", False, "the id of the last one that the caller has; absent: from the first that is not acknowledged"),
            Param("most", "integer", False, "1 to 64; absent: 1"),
            Param("within_ms", "integer", False, "then the call is refused: not found, rule within; 0: it waits without end"),
        ],
    ),
    "mail.ack": Method(
        "mail.ack",
        "Takes messages out of the agent's mailbox, all or none; with reject they become dead letters. The calls in then are done with that in one transaction: where one is refused, nothing has happened.",
        [
            Param("ids", "strings", True, "1 to 64"),
            Param("reject", "string", False, "why; they become dead letters"),
            Param("then", "json", False, "done with it, each with its own rights and costs: all that is named, or nothing. at most 16"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "mail.reply": Method(
        "mail.reply",
        "Answers a message that asks, once. It needs no grant.",
        [
            Param("id", "string", True, "of the message, which is in the caller's mailbox or was acknowledged by the same call"),
            Param("body", "json", True, "as in MailSendParams"),
            Param("blob", "string", False, ""),
            Param("ack", "bool", False, "take the message out of the mailbox"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "mail.answer": Method(
        "mail.answer",
        "Returns the answer to a message that the agent sent with asks, when it has come.",
        [
            Param("id", "string", True, ""),
            Param("within_ms", "integer", False, "then the call is refused: not found, rule within; 0: it waits without end"),
        ],
    ),
    "mail.subscribe": Method(
        "mail.subscribe",
        "Has the run get a copy of each message to the topic T of its namespace, until it ends. It needs a grant of kind name that covers topic/T.",
        [
            Param("topic", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "mail.unsubscribe": Method(
        "mail.unsubscribe",
        "Ends a subscription of the run. What has come stays.",
        [
            Param("topic", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "mail.publish": Method(
        "mail.publish",
        "Sends a message to each run that has subscribed to the topic T, and says how many have it and how many mailboxes were full. It needs a grant of kind send that covers topic/T, and costs one message.",
        [
            Param("topic", "string", True, ""),
            Param("body", "json", True, "as in MailSendParams"),
            Param("blob", "string", False, ""),
            Param("priority", "integer", False, "as in MailSendParams"),
            Param("expires_ms", "integer", False, "from now; 0: never"),
            Param("trace", "string", False, "absent: a new one"),
            Param("fail_on_full", "bool", False, "refuse all if the mailbox of one is full"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "job.add": Method(
        "job.add",
        "Adds a job to a queue of the run's namespace, which is durable when the call is answered. It needs a grant of kind send that covers job/QUEUE, and costs one message. A full queue refuses it.",
        [
            Param("queue", "string", True, ""),
            Param("body", "json", True, "at most 48 KiB; null beside a blob: that alone"),
            Param("blob", "string", False, "SHA-256 of one that the caller may read"),
            Param("priority", "integer", False, "0 to 9; higher ones are taken first"),
            Param("delay_ms", "integer", False, "from now; it is not taken before"),
            Param("deadline_ms", "integer", False, "from now; then it is dead, also while a run holds it; 0: never"),
            Param("attempts", "integer", False, "how often it is tried; absent: as the queue says"),
            Param("trace", "string", False, "absent: a new one"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "job.claim": Method(
        "job.claim",
        "Takes the next job of a queue of the run's namespace when there is one: of a higher priority first, and else in the order in which they were added. The run holds it until it completes or fails it, ends, or its lease runs out. It needs a grant of kind name that covers job/QUEUE. With a key, a repetition returns the same job.",
        [
            Param("queue", "string", True, ""),
            Param("within_ms", "integer", False, "then the call is refused: not found, rule within; 0: it waits without end"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "job.renew": Method(
        "job.renew",
        "Begins the lease of a job that the run holds anew.",
        [
            Param("id", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "job.complete": Method(
        "job.complete",
        "Ends a job that the run holds: it is done. The calls in then are done with that in one transaction: where one is refused, nothing has happened.",
        [
            Param("id", "string", True, ""),
            Param("result", "json", False, "at most 4 KiB"),
            Param("blob", "string", False, "SHA-256 of one that the caller may read: the result, or beside it"),
            Param("then", "json", False, "done with it, each with its own rights and costs: all that is named, or nothing. at most 16"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "job.fail": Method(
        "job.fail",
        "Gives a job that the run holds back: it is tried again after a pause, or it is dead.",
        [
            Param("id", "string", True, ""),
            Param("why", "string", True, ""),
            Param("dead", "bool", False, "it is not tried again"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "job.get": Method(
        "job.get",
        "Returns a job that the run holds, or that it has added.",
        [
            Param("id", "string", True, ""),
        ],
    ),
    "job.list": Method(
        "job.list",
        "Lists the jobs that the run holds, without their bodies.",
        [
        ],
    ),
    "queue.open": Method(
        "queue.open",
        "Makes a queue of the run's namespace, or replaces the settings of one that the run has made. It needs a grant of kind name that covers job/QUEUE, and with a manifest one of kind spawn that covers that. What is started for its jobs are children of the run, and held against it as those of agent.spawn. When the run ends nothing is started any more, and an empty queue goes.",
        [
            Param("queue", "string", True, ""),
            Param("manifest", "string", False, "that clove starts for each job, as a child of the caller's; the job is its stdin"),
            Param("concurrency", "integer", False, "absent: 1 with a manifest, and else as many as there are"),
            Param("attempts", "integer", False, "absent: 3"),
            Param("backoff_ms", "integer", False, "absent: 1000"),
            Param("lease_ms", "integer", False, "absent: 60000"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "queue.close": Method(
        "queue.close",
        "Removes a queue that the run has made and that has no jobs to be done and no dead ones.",
        [
            Param("queue", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "name.register": Method(
        "name.register",
        "Gives the run a name in its namespace until it ends, or other tags for one that it has. It needs a grant of kind name that covers it. Runs that hold the same name take turns.",
        [
            Param("name", "string", True, ""),
            Param("tags", "strings", False, "at most 8"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "name.release": Method(
        "name.release",
        "Takes a name from the run.",
        [
            Param("name", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "name.lookup": Method(
        "name.lookup",
        "Returns a name of the run's namespace, with the runs that hold it.",
        [
            Param("name", "string", True, ""),
        ],
    ),
    "name.list": Method(
        "name.list",
        "Lists the names of the run's namespace. If there are more, the answer has next, and the same request with that as after returns the following part.",
        [
            Param("prefix", "string", False, "with which a name begins"),
            Param("tag", "string", False, "of the reservation or of a holder"),
            Param("after", "string", False, "where the last answer ended"),
        ],
    ),
    "approval.own": Method(
        "approval.own",
        "Lists the questions to people that the run has, and their answers. If there are more, the answer has next, and the same request with that as after returns the following part.",
        [
            Param("after", "string", False, "where the last answer ended"),
        ],
    ),
    "approval.cancel": Method(
        "approval.cancel",
        "Takes back a question of the run that waits. What asked is refused.",
        [
            Param("id", "string", True, ""),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "state.get": Method(
        "state.get",
        "Returns a key with its value and its version, which is 0 where there is none. Keys of the scopes name and namespace, which other runs share, need a grant of kind state, such as state:/namespace/plans:ro, for all of these methods.",
        [
            Param("scope", "string", False, "run, name or namespace; absent: that of name, or else run"),
            Param("name", "string", False, "of the scope name"),
            Param("path", "string", True, "parts with / between them: plans/today"),
        ],
    ),
    "state.set": Method(
        "state.set",
        "Sets a key, which is durable when the call is answered. With if_version only if the key has that version, else the answer is the error conflict.",
        [
            Param("scope", "string", False, "run, name or namespace; absent: that of name, or else run"),
            Param("name", "string", False, "of the scope name"),
            Param("path", "string", True, "parts with / between them: plans/today"),
            Param("if_version", "integer", False, "the version that there must be, 0: none; absent: any"),
            Param("value", "json", True, "at most 48 KiB; null beside a blob: that alone"),
            Param("blob", "string", False, "SHA-256 of one that the caller may read"),
            Param("expires_ms", "integer", False, "from now; 0: never"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "state.delete": Method(
        "state.delete",
        "Removes a key, with if_version as state.set.",
        [
            Param("scope", "string", False, "run, name or namespace; absent: that of name, or else run"),
            Param("name", "string", False, "of the scope name"),
            Param("path", "string", True, "parts with / between them: plans/today"),
            Param("if_version", "integer", False, "the version that there must be, 0: none; absent: any"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "state.list": Method(
        "state.list",
        "Lists the key at a path and those below it, without their values. If there are more, the answer has next, and the same request with that as after returns the following part.",
        [
            Param("scope", "string", False, "run, name or namespace; absent: that of name, or else run"),
            Param("name", "string", False, "of the scope name"),
            Param("path", "string", False, "absent: all keys of the scope"),
            Param("after", "string", False, "next of the answer before, to go on behind it"),
        ],
    ),
    "state.watch": Method(
        "state.watch",
        "Returns a key when its version is above the given one, or when it is gone and the given one is above 0. That a key expires does not wake a call that waits: the caller bounds the wait with within_ms, and asks again.",
        [
            Param("scope", "string", False, "run, name or namespace; absent: that of name, or else run"),
            Param("name", "string", False, "of the scope name"),
            Param("path", "string", True, "parts with / between them: plans/today"),
            Param("version", "integer", True, "the one that the caller knows; 0: it knows of none"),
            Param("within_ms", "integer", False, "then the call is refused: not found, rule within; 0: it waits without end"),
        ],
    ),
    "blob.open": Method(
        "blob.open",
        "Begins an upload of a blob: a body of up to 64 MiB, which mail.send and state.set name by its SHA-256. Its bytes count as write_bytes at once. The upload expires after an hour, and ends with the run.",
        [
            Param("bytes", "integer", True, "of the whole blob, 1 to 64 MiB"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "blob.write": Method(
        "blob.write",
        "Writes a part of an upload, of at most 36 KiB. The parts come in their order; one may be written again.",
        [
            Param("upload", "string", True, ""),
            Param("offset", "integer", True, "of the part; not behind the end of what is written"),
            Param("data", "json", True, "at most 36 KiB, as base64"),
        ],
    ),
    "blob.close": Method(
        "blob.close",
        "Ends an upload, and returns the SHA-256 of the blob, which is durable then. The run may name it for an hour; bodies that do keep it.",
        [
            Param("upload", "string", True, ""),
            Param("sha256", "string", False, "what the digest must be; absent: anything"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "blob.take": Method(
        "blob.take",
        "Makes a blob of a file of the agent's, as blob.open, blob.write and blob.close do. It is read with the agent's rights, at the path that the agent sees.",
        [
            Param("path", "string", True, "absolute, as the agent sees it"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "blob.read": Method(
        "blob.read",
        "Returns a part of a blob to which a message in the agent's mailbox, a key of its run or an upload of its own refers; or a key that the call names and that the agent may read. Any other blob is as one that there is not.",
        [
            Param("blob", "string", True, "its SHA-256"),
            Param("at", "json", False, "the key that refers to it, of a scope that runs share; absent: a message in the caller's mailbox does, a key of its own run, a job that it holds, or an upload of its own."),
            Param("job", "string", False, "the id of one that refers to it and that the caller holds or has added; not with at."),
            Param("offset", "integer", False, "of the part"),
        ],
    ),
    "blob.save": Method(
        "blob.save",
        "Writes a blob that the agent may read to a new file, with the agent's rights, at the path that the agent sees.",
        [
            Param("blob", "string", True, "its SHA-256"),
            Param("at", "json", False, "the key that refers to it, of a scope that runs share; absent: a message in the caller's mailbox does, a key of its own run, a job that it holds, or an upload of its own."),
            Param("job", "string", False, "the id of one that refers to it and that the caller holds or has added; not with at."),
            Param("path", "string", True, "absolute, as the agent sees it; nothing may be there"),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "model.queue": Method(
        "model.queue",
        "Returns the run's calls of models that wait for their turn: the position of each, and how long it is expected to wait.",
        [
        ],
    ),
    "event.append": Method(
        "event.append",
        "Adds an event of the agent's own, which is durable when the call is answered, and may name the event, call or message that it follows from. The newest 256 of a run are kept; all are in the audit log, without their bodies. It costs one message.",
        [
            Param("kind", "string", True, "agent. and a name of the agent's: lower-case letters, digits and _.-"),
            Param("body", "json", False, "JSON of at most EventBodyMost bytes"),
            Param("causation", "string", False, "what the event follows from: the id of an event, of a call, or of a message in the agent's mailbox. Absent: nothing else than what the run began with."),
            Param("key", "string", False, "the same key gets the same answer again; a random one by default"),
        ],
    ),
    "event.trace": Method(
        "event.trace",
        "Returns from what an event, a call, a message or a run follows, step by step as far as the agent may see: its own calls, those of runs below it, and what sent it mail. With down what follows from it, as far as that is the agent's own or a run's below it. The newest 32 MiB of the audit log are searched.",
        [
            Param("id", "string", True, "of an event, a call, a message or a run"),
            Param("depth", "integer", False, "at most so many steps, 1 to 100; absent: 10"),
            Param("down", "bool", False, "what follows from it, at most 100 records; absent: from what it follows"),
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
    "agent.offer": OfferNote.read,
    "agent.accepted": AcceptedNote.read,
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
    "HandoffResult",
    "AcceptResult",
    "Offer",
    "OfferListResult",
    "Child",
    "SpawnResult",
    "Stopped",
    "Failure",
    "LimitHit",
    "ModelUse",
    "Usage",
    "Events",
    "EgressLimits",
    "NetworkUse",
    "DeniedCall",
    "Denial",
    "Asked",
    "StreamUse",
    "Policy",
    "ShadowLimit",
    "ShadowUse",
    "Manifest",
    "Host",
    "Record",
    "ChildEnd",
    "ChildListResult",
    "CollectLeft",
    "CollectResult",
    "OwnApplyResult",
    "Annotations",
    "Tool",
    "ToolListResult",
    "ToolCallResult",
    "GrantListResult",
    "GrantResult",
    "GrantRevokeResult",
    "GrantCheckResult",
    "BudgetResult",
    "BudgetReserveResult",
    "MailSendResult",
    "Blob",
    "Mail",
    "MailReceiveResult",
    "MailAckResult",
    "MailAnswerResult",
    "MailPublishResult",
    "Job",
    "JobResult",
    "JobCompleteResult",
    "JobListResult",
    "Queue",
    "QueueResult",
    "NameHolder",
    "Name",
    "NameResult",
    "NameListResult",
    "ApprovalBudget",
    "ApprovalChanges",
    "ApprovalAnswer",
    "Approval",
    "ApprovalListResult",
    "StateResult",
    "StateSetResult",
    "StateDeleteResult",
    "StateEntry",
    "StateListResult",
    "BlobOpenResult",
    "BlobWriteResult",
    "BlobResult",
    "BlobReadResult",
    "WaitingCall",
    "ModelQueueResult",
    "EventAppendResult",
    "TraceStep",
    "TraceResult",
    "AuditReadResult",
    "HandoffGrant",
    "SpawnLimits",
    "SpawnFile",
    "ThenCall",
    "StatePath",
    "BudgetNote",
    "GrantsNote",
    "OfferNote",
    "AcceptedNote",
    "LostNote",
]
