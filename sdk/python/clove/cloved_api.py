"""The methods and types of cloved's socket, for coroutines.

Generated from the table of methods by make generate.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional, Union

from .session import Caller, Session, Stream
from .values import pages_async, read_bytes, read_time
from .api import *  # noqa: F403 the types that both sides have


@dataclass(frozen=True)
class InfoResult:
    """What a cloved says of itself."""

    version: str = ""  # of the program
    api: int = 0  # of the contract
    pid: int = 0
    started: Optional[datetime] = None
    root: str = ""
    run_dir: str = ""
    draining: bool = False
    runs: dict[str, int] = field(default_factory=dict)  # the caller's; of root all

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> InfoResult:
        return cls(
            version=o.get("version") or "",
            api=o.get("api") or 0,
            pid=o.get("pid") or 0,
            started=read_time(o.get("started")),
            root=o.get("root") or "",
            run_dir=o.get("run_dir") or "",
            draining=o.get("draining") or False,
            runs=dict(o.get("runs") or {}),
        )


@dataclass(frozen=True)
class JobCounts:
    """Numbers of jobs by their state."""

    ready: int = 0
    delayed: int = 0
    held: int = 0
    dead: int = 0
    done: int = 0  # the last ones of each queue

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> JobCounts:
        return cls(
            ready=o.get("ready") or 0,
            delayed=o.get("delayed") or 0,
            held=o.get("held") or 0,
            dead=o.get("dead") or 0,
            done=o.get("done") or 0,
        )


@dataclass(frozen=True)
class SummaryResult:
    """What there is of all that clove counts: for root of everybody, for others of
    their own.
    """

    version: str = ""  # of the program
    api: int = 0  # of the contract
    pid: int = 0
    started: Optional[datetime] = None
    root: str = ""
    run_dir: str = ""
    draining: bool = False
    runs: dict[str, int] = field(default_factory=dict)  # the caller's; of root all
    events: int = 0  # number of the newest event
    mailboxes: int = 0
    messages: int = 0  # in them
    dead_letters: int = 0
    queues: int = 0  # of jobs
    jobs: JobCounts = field(default_factory=JobCounts)  # in them
    names: int = 0
    blobs: int = 0
    blob_bytes: int = 0  # of them, and of uploads at their whole size
    grants: int = 0
    budgets: int = 0  # accounts in which something is counted or limited
    spent: int = 0  # of these with a limit of which nothing is left
    approvals: int = 0  # questions that wait for people

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SummaryResult:
        return cls(
            version=o.get("version") or "",
            api=o.get("api") or 0,
            pid=o.get("pid") or 0,
            started=read_time(o.get("started")),
            root=o.get("root") or "",
            run_dir=o.get("run_dir") or "",
            draining=o.get("draining") or False,
            runs=dict(o.get("runs") or {}),
            events=o.get("events") or 0,
            mailboxes=o.get("mailboxes") or 0,
            messages=o.get("messages") or 0,
            dead_letters=o.get("dead_letters") or 0,
            queues=o.get("queues") or 0,
            jobs=JobCounts.read(o.get("jobs") or {}),
            names=o.get("names") or 0,
            blobs=o.get("blobs") or 0,
            blob_bytes=o.get("blob_bytes") or 0,
            grants=o.get("grants") or 0,
            budgets=o.get("budgets") or 0,
            spent=o.get("spent") or 0,
            approvals=o.get("approvals") or 0,
        )


@dataclass(frozen=True)
class PanicResult:
    """Names the runs that lived."""

    ended: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> PanicResult:
        return cls(
            ended=list(o.get("ended") or ()),
        )


@dataclass(frozen=True)
class CheckResult:
    """What is wrong with kernel.db, in words; empty if it is sound."""

    problems: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> CheckResult:
        return cls(
            problems=list(o.get("problems") or ()),
        )


@dataclass(frozen=True)
class DebugResult:
    """The part as text."""

    text: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> DebugResult:
        return cls(
            text=o.get("text") or "",
        )


@dataclass(frozen=True)
class User:
    """An identity inside the sandbox's own user namespace."""

    name: str = ""
    uid: int = 0  # 0 to MaxUser
    gid: int = 0
    home: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> User:
        return cls(
            name=o.get("name") or "",
            uid=o.get("uid") or 0,
            gid=o.get("gid") or 0,
            home=o.get("home") or "",
        )


@dataclass(frozen=True)
class HostName:
    """An additional line of the agent's /etc/hosts. It allows nothing: only the egress
    rules say what the agent may reach, and they judge the address.
    """

    name: str = ""
    address: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> HostName:
        return cls(
            name=o.get("name") or "",
            address=o.get("address") or "",
        )


@dataclass(frozen=True)
class Rlimit:
    """One resource limit of setrlimit(2). Name is docker's name: "nofile", "core",
    "stack", …
    """

    name: str = ""
    soft: int = 0
    hard: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Rlimit:
        return cls(
            name=o.get("name") or "",
            soft=o.get("soft") or 0,
            hard=o.get("hard") or 0,
        )


@dataclass(frozen=True)
class Limits:
    """Bound all processes of the agent together. 0 means no limit for WallClock,
    CPUTime, CPUs, CPUSet and OutputBytes; all other limits are always set.
    """

    memory_bytes: int = 0
    memory_swap_bytes: int = 0  # memory and swap together, as docker counts; equal to memory_bytes: no swap
    cpus: float = 0.0  # CPU seconds per second
    cpuset_cpus: str = ""
    pids: int = 0
    rlimits: list[Rlimit] = field(default_factory=list)
    cpu_time_ns: int = 0  # of all processes together
    wall_clock_ns: int = 0  # on CLOCK_BOOTTIME, from the agent's start
    stop_grace_ns: int = 0  # between stop_signal and SIGKILL
    stop_signal: int = 0  # requests the end; 0: SIGTERM
    output_bytes: int = 0  # stdout and stderr together
    disk_bytes: int = 0  # the writable layer
    shm_bytes: int = 0  # /dev/shm

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Limits:
        return cls(
            memory_bytes=o.get("memory_bytes") or 0,
            memory_swap_bytes=o.get("memory_swap_bytes") or 0,
            cpus=o.get("cpus") or 0.0,
            cpuset_cpus=o.get("cpuset_cpus") or "",
            pids=o.get("pids") or 0,
            rlimits=[Rlimit.read(x or {}) for x in o.get("rlimits") or ()],
            cpu_time_ns=o.get("cpu_time_ns") or 0,
            wall_clock_ns=o.get("wall_clock_ns") or 0,
            stop_grace_ns=o.get("stop_grace_ns") or 0,
            stop_signal=o.get("stop_signal") or 0,
            output_bytes=o.get("output_bytes") or 0,
            disk_bytes=o.get("disk_bytes") or 0,
            shm_bytes=o.get("shm_bytes") or 0,
        )


@dataclass(frozen=True)
class Bind:
    """Shows a host path inside at Target. Writes change the host's files. Where a user
    other than root requested the run through cloved, the source is opened with that
    user's rights.
    """

    source: str = ""
    target: str = ""
    read_only: bool = False
    copy_on_write: bool = False  # puts the agent's own layer over a directory that is read-only: the agent changes what it sees, and the host's files stay. Only where the root can be written at target.
    secrets: bool = False  # shows a directory copy on write although it has credentials (package homedir).

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Bind:
        return cls(
            source=o.get("source") or "",
            target=o.get("target") or "",
            read_only=o.get("read_only") or False,
            copy_on_write=o.get("copy_on_write") or False,
            secrets=o.get("secrets") or False,
        )


@dataclass(frozen=True)
class Tmpfs:
    """A private memory file system; its pages count as the agent's memory."""

    target: str = ""
    size_bytes: int = 0  # 0: half of the memory limit
    mode: int = 0  # 0: 01777

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Tmpfs:
        return cls(
            target=o.get("target") or "",
            size_bytes=o.get("size_bytes") or 0,
            mode=o.get("mode") or 0,
        )


@dataclass(frozen=True)
class Home:
    """Names a home that is kept. The same user's runs with the same name for the same
    folder have it, one after the other.
    """

    name: str = ""
    folder: str = ""  # of the host: the workspace, or where the caller was

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Home:
        return cls(
            name=o.get("name") or "",
            folder=o.get("folder") or "",
        )


@dataclass(frozen=True)
class Files:
    """Describes the agent's root file system."""

    rootfs: str = ""  # host directory that replaces the host base; empty: the host's own system
    workspace: str = ""  # host directory shown copy-on-write at WorkspaceDir; empty: an empty directory
    git_dir: str = ""  # the repository to which the workspace's .git file leads, if nothing in it says that it is the workspace's; empty: it must say so to be shown; NoGitDir: none is shown.
    read_only: bool = False  # the root is read-only, except for WritablePlaces and the mounts that the user requested
    writable: list[str] = field(default_factory=list)  # with read_only: the only ones of WritablePlaces that stay writable; nil: all
    execute: list[str] = field(default_factory=list)  # the only programs that may be executed: paths inside, directories, or patterns of path.Match; nil: all
    read_: list[str] = field(default_factory=list)  # the only files and directories inside that may be read, beside OwnPlaces; nil: all
    prefixes: list[str] = field(default_factory=list)  # host directories of interpreters, bound read-only at the same path
    binds: list[Bind] = field(default_factory=list)
    tmpfs: list[Tmpfs] = field(default_factory=list)
    home: Optional[Home] = None  # nil: a new one, in the layer
    keep: list[str] = field(default_factory=list)  # folders inside that are kept with home, each empty at first; see ValidateKeep
    landlock: str = ""  # LandlockRequired: the run is refused where landlock does not hold the rules, too

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Files:
        return cls(
            rootfs=o.get("rootfs") or "",
            workspace=o.get("workspace") or "",
            git_dir=o.get("git_dir") or "",
            read_only=o.get("read_only") or False,
            writable=list(o.get("writable") or ()),
            execute=list(o.get("execute") or ()),
            read_=list(o.get("read") or ()),
            prefixes=list(o.get("prefixes") or ()),
            binds=[Bind.read(x or {}) for x in o.get("binds") or ()],
            tmpfs=[Tmpfs.read(x or {}) for x in o.get("tmpfs") or ()],
            home=Home.read(o.get("home") or {}) if o.get("home") is not None else None,
            keep=list(o.get("keep") or ()),
            landlock=o.get("landlock") or "",
        )


@dataclass(frozen=True)
class Seccomp:
    """Selects the system call filter. Profile is the name of a built-in profile, or the
    path that Document was read from.
    """

    profile: str = ""
    document: bytes = b""  # docker's JSON format; nil for a built-in

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Seccomp:
        return cls(
            profile=o.get("profile") or "",
            document=read_bytes(o.get("document")),
        )


@dataclass(frozen=True)
class EgressRule:
    """One target that is allowed or denied. It is the one form of a rule on disk, on
    the wire and as the input of egress.New, which parses and compiles it.
    """

    deny: bool = False
    target: str = ""  # as egress.ParseTarget reads it: a missing port depends on deny, so it is kept as given
    source: str = ""  # where it was given: "--allow", "--deny", an annotation, a document's name

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> EgressRule:
        return cls(
            deny=o.get("deny") or False,
            target=o.get("target") or "",
            source=o.get("source") or "",
        )


@dataclass(frozen=True)
class PublishedPort:
    """A port of the agent that clients on the host can reach."""

    host: str = ""  # where the host listens; port 0: any free one
    port: int = 0  # the agent's, on its loopback

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> PublishedPort:
        return cls(
            host=o.get("host") or "",
            port=o.get("port") or 0,
        )


@dataclass(frozen=True)
class Egress:
    """What the agent may reach through the gate, and which of its ports the host may
    reach.
    """

    rules: list[EgressRule] = field(default_factory=list)
    host_ports: list[int] = field(default_factory=list)  # ports on the host's loopback, reachable at the same port of the agent's loopback
    publish: list[PublishedPort] = field(default_factory=list)
    dns: list[str] = field(default_factory=list)  # name servers; none: the host's
    limits: EgressLimits = field(default_factory=EgressLimits)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Egress:
        return cls(
            rules=[EgressRule.read(x or {}) for x in o.get("rules") or ()],
            host_ports=list(o.get("host_ports") or ()),
            publish=[PublishedPort.read(x or {}) for x in o.get("publish") or ()],
            dns=list(o.get("dns") or ()),
            limits=EgressLimits.read(o.get("limits") or {}),
        )


@dataclass(frozen=True)
class Kernel:
    """What a run has of what agents share. The texts are those of the command line;
    packages kernel/grant and kernel/budget say what they mean.
    """

    socket: bool = False  # the agent has a socket of its own, also without a grant
    grants: list[str] = field(default_factory=list)  # KIND:PATTERN[:RIGHTS], given at the first start
    budgets: list[str] = field(default_factory=list)  # DIMENSION=AMOUNT..., set at the first start
    at_end: str = ""  # what happens when a budget is spent, one of AtEnds; empty: end
    on_denial: str = ""  # what a refusal does to the run: deny, pause, end or end-after:N; empty: deny
    on_warn: str = ""  # command or URL for a budget that reached its warning; empty: none
    on_end: str = ""  # command or URL for a budget of which nothing is left; empty: none
    on_ask: str = ""  # command or URL that may answer questions; empty: none
    on_ask_key: str = ""  # absolute path of the owner's key for the proofs of on_ask's answers
    asks: list[str] = field(default_factory=list)  # of what no rule decides, what people are asked about: some of asks
    ask_hold_ns: int = 0  # how long a connection, a request or a call of a tool is held for people's answer; 0: AskHold.
    namespace: str = ""  # below the owner; empty: the owner's own
    secrets: list[str] = field(default_factory=list)  # those that the run may use, each with how it gets the placeholder: NAME:env=VARIABLE, NAME:file=/PATH, or NAME: and a program (secrets.ParseMount).
    model_setup: str = ""  # a client of models, one of ModelSetups, whose file is written into the agent's home before it starts; empty: none.
    model_log: bool = False  # keep what its calls of models say and get
    stdout_to: str = ""  # and stdin_from join the agent's standard streams to mail, as ParseMailStream reads; empty: they are not.
    stdin_from: str = ""
    spawn_depth: int = 0  # how many levels of runs may be below this one; 0: its children start none.
    orphans: str = ""  # OrphansKeep, or empty: the run's children are ended with it.
    idle_ns: int = 0  # ends the run when its agent has only waited for mail and jobs for so long; 0: nothing does.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Kernel:
        return cls(
            socket=o.get("socket") or False,
            grants=list(o.get("grants") or ()),
            budgets=list(o.get("budgets") or ()),
            at_end=o.get("at_end") or "",
            on_denial=o.get("on_denial") or "",
            on_warn=o.get("on_warn") or "",
            on_end=o.get("on_end") or "",
            on_ask=o.get("on_ask") or "",
            on_ask_key=o.get("on_ask_key") or "",
            asks=list(o.get("asks") or ()),
            ask_hold_ns=o.get("ask_hold_ns") or 0,
            namespace=o.get("namespace") or "",
            secrets=list(o.get("secrets") or ()),
            model_setup=o.get("model_setup") or "",
            model_log=o.get("model_log") or False,
            stdout_to=o.get("stdout_to") or "",
            stdin_from=o.get("stdin_from") or "",
            spawn_depth=o.get("spawn_depth") or 0,
            orphans=o.get("orphans") or "",
            idle_ns=o.get("idle_ns") or 0,
        )


@dataclass(frozen=True)
class Shadow:
    """A policy that is decided beside a run's own and recorded, and refuses nothing.
    Its values are what the run would have had under it; nothing of the host is
    opened for it.
    """

    policy: Policy = field(default_factory=Policy)
    user: User = field(default_factory=User)
    cap_drop: list[str] = field(default_factory=list)
    limits: Limits = field(default_factory=Limits)
    files: Files = field(default_factory=Files)
    seccomp: Seccomp = field(default_factory=Seccomp)
    network: str = ""
    egress: Egress = field(default_factory=Egress)
    kernel: Kernel = field(default_factory=Kernel)  # Socket, grants, budgets, at_end and on_denial only
    allow_unenforced: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Shadow:
        return cls(
            policy=Policy.read(o.get("policy") or {}),
            user=User.read(o.get("user") or {}),
            cap_drop=list(o.get("cap_drop") or ()),
            limits=Limits.read(o.get("limits") or {}),
            files=Files.read(o.get("files") or {}),
            seccomp=Seccomp.read(o.get("seccomp") or {}),
            network=o.get("network") or "",
            egress=Egress.read(o.get("egress") or {}),
            kernel=Kernel.read(o.get("kernel") or {}),
            allow_unenforced=list(o.get("allow_unenforced") or ()),
        )


@dataclass(frozen=True)
class Restart:
    """Says what happens when a run that cloved looks after has ended."""

    policy: str = ""  # empty: RestartNever
    max: int = 0  # restarts in a row before it is given up; 0: no maximum

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Restart:
        return cls(
            policy=o.get("policy") or "",
            max=o.get("max") or 0,
        )


@dataclass(frozen=True)
class Ready:
    """How long a run may take until it is ready, and how that is seen. An agent also
    says so itself (agent.ready).
    """

    command: list[str] = field(default_factory=list)  # argv inside the sandbox: it is ready when this exits 0; none: only the agent says so
    within_ns: int = 0  # one that is not ready then is ended; 0: nothing waits for it

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Ready:
        return cls(
            command=list(o.get("command") or ()),
            within_ns=o.get("within_ns") or 0,
        )


@dataclass(frozen=True)
class Spec:
    """The complete request for one run, with defaults merged in. It is stored with the
    run and used at each start, so a later change of a default does not affect
    existing runs. Update changes it too.
    """

    id: str = ""
    name: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(default_factory=list)  # argv inside the sandbox
    env: list[str] = field(default_factory=list)  # KEY=VALUE, complete: nothing is inherited
    dir: str = ""  # working directory inside the sandbox
    user: User = field(default_factory=User)  # the agent's user inside the sandbox
    cap_drop: list[str] = field(default_factory=list)  # capabilities that root inside the sandbox loses: names of Capabilities, or AllCapabilities
    hostname: str = ""  # empty: the ID
    clock_start_ns: int = 0  # what CLOCK_MONOTONIC and CLOCK_BOOTTIME begin at inside; 0: they are the host's
    hosts: list[HostName] = field(default_factory=list)  # additional lines of /etc/hosts
    terminal: bool = False  # give the agent a pty
    detached: bool = False  # no client waits for it; its output goes to the log
    foreground: bool = False  # Foreground: cloved starts it for one session (run.attach). The session has its streams, and the run ends with the session.
    stdin: bool = False  # detached: keep stdin open for clove attach
    remove: bool = False  # --rm: keep neither record nor layer
    limits: Limits = field(default_factory=Limits)
    files: Files = field(default_factory=Files)
    seccomp: Seccomp = field(default_factory=Seccomp)
    network: str = ""  # one of NetworkModes
    egress: Egress = field(default_factory=Egress)
    kernel: Kernel = field(default_factory=Kernel)
    policy: Policy = field(default_factory=Policy)
    manifest: Manifest = field(default_factory=Manifest)
    shadow: Optional[Shadow] = None  # decided and recorded beside policy; nil: none
    learn: bool = False  # note what the run uses, see Observed
    restart: Restart = field(default_factory=Restart)
    schedule: str = ""  # when to start it, in the format of crontab(5)
    keep_files: bool = False  # each time of the schedule reuses the layer of the previous one
    after: list[str] = field(default_factory=list)  # runs that come first: NAME or NAME:CONDITION, see after
    ready: Ready = field(default_factory=Ready)
    priority: int = 0  # order among queued runs that wait for memory: higher first
    start_timeout_ns: int = 0  # bounds how long one launch step may make no progress; 0: see StartBound.
    allow_unenforced: list[str] = field(default_factory=list)  # lists the controls (Control* words) that may be weakened.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Spec:
        return cls(
            id=o.get("id") or "",
            name=o.get("name") or "",
            labels=dict(o.get("labels") or {}),
            command=list(o.get("command") or ()),
            env=list(o.get("env") or ()),
            dir=o.get("dir") or "",
            user=User.read(o.get("user") or {}),
            cap_drop=list(o.get("cap_drop") or ()),
            hostname=o.get("hostname") or "",
            clock_start_ns=o.get("clock_start_ns") or 0,
            hosts=[HostName.read(x or {}) for x in o.get("hosts") or ()],
            terminal=o.get("terminal") or False,
            detached=o.get("detached") or False,
            foreground=o.get("foreground") or False,
            stdin=o.get("stdin") or False,
            remove=o.get("remove") or False,
            limits=Limits.read(o.get("limits") or {}),
            files=Files.read(o.get("files") or {}),
            seccomp=Seccomp.read(o.get("seccomp") or {}),
            network=o.get("network") or "",
            egress=Egress.read(o.get("egress") or {}),
            kernel=Kernel.read(o.get("kernel") or {}),
            policy=Policy.read(o.get("policy") or {}),
            manifest=Manifest.read(o.get("manifest") or {}),
            shadow=Shadow.read(o.get("shadow") or {}) if o.get("shadow") is not None else None,
            learn=o.get("learn") or False,
            restart=Restart.read(o.get("restart") or {}),
            schedule=o.get("schedule") or "",
            keep_files=o.get("keep_files") or False,
            after=list(o.get("after") or ()),
            ready=Ready.read(o.get("ready") or {}),
            priority=o.get("priority") or 0,
            start_timeout_ns=o.get("start_timeout_ns") or 0,
            allow_unenforced=list(o.get("allow_unenforced") or ()),
        )


@dataclass(frozen=True)
class Owner:
    """The user that asked for a run, as the kernel reports a socket's peer. The zero
    value is root.
    """

    uid: int = 0
    gid: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Owner:
        return cls(
            uid=o.get("uid") or 0,
            gid=o.get("gid") or 0,
        )


@dataclass(frozen=True)
class QueueState:
    """What cloved keeps of a run besides what it asks for: where it stands in the queue
    and between its starts. Of the marks, phase.go is the only writer.
    """

    not_before: Optional[datetime] = None  # a restart's backoff, or a delay that was asked for
    since: Optional[datetime] = None  # when it joined the queue
    restarts: int = 0  # by policy, in a row
    starts: int = 0  # how often it was queued
    stop_asked: bool = False  # mark: a person wanted its end, and neither policy nor schedule starts it again
    stopped: Optional[Stopped] = None  # which person, and when; its record says it too
    cause: str = ""  # id of the call from which its end follows, stored before that ends it; empty: none, or not known
    given_up: bool = False  # mark: its policy has no restarts left
    paused: bool = False  # frozen until a person resumes it
    fresh: bool = False  # the next start begins with a new layer
    ready: Optional[datetime] = None  # when it said so, since its last start
    scheduled: bool = False  # mark: it waits for the next time of its schedule
    settled: Optional[datetime] = None  # the schedule's times up to here were started or skipped
    next: Optional[datetime] = None  # when its schedule starts it next. cloved answers with it; it is not stored.
    trace: str = ""  # W3C traceparent of the call that asked for it, where cloved traces

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> QueueState:
        return cls(
            not_before=read_time(o.get("not_before")),
            since=read_time(o.get("since")),
            restarts=o.get("restarts") or 0,
            starts=o.get("starts") or 0,
            stop_asked=o.get("stop_asked") or False,
            stopped=Stopped.read(o.get("stopped") or {}) if o.get("stopped") is not None else None,
            cause=o.get("cause") or "",
            given_up=o.get("given_up") or False,
            paused=o.get("paused") or False,
            fresh=o.get("fresh") or False,
            ready=read_time(o.get("ready")),
            scheduled=o.get("scheduled") or False,
            settled=read_time(o.get("settled")),
            next=read_time(o.get("next")),
            trace=o.get("trace") or "",
        )


@dataclass(frozen=True)
class Lease:
    """What a live run holds on this host. Decision 5 (docs/decisions) says why each run
    has a range of host ids of its own.
    """

    id_range: int = 0  # index of the range of host ids
    boot_id: str = ""  # /proc/sys/kernel/random/boot_id: no run survives into another boot
    supervisor_pid: int = 0  # for display; the lock in the run directory proves liveness
    cgroups: dict[str, str] = field(default_factory=dict)  # the agent's cgroups: from the controller (v1) or "" (v2) to the path below that hierarchy's mount point.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Lease:
        return cls(
            id_range=o.get("id_range") or 0,
            boot_id=o.get("boot_id") or "",
            supervisor_pid=o.get("supervisor_pid") or 0,
            cgroups=dict(o.get("cgroups") or {}),
        )


@dataclass(frozen=True)
class Container:
    """Identifies an OCI container that an engine ran with clove-oci. A run with a
    Container is only the record of that container: clove owns no layer, log or
    process of it.
    """

    id: str = ""  # the engine's id
    directory: str = ""  # of the container, absolute; two engines may use the same id

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Container:
        return cls(
            id=o.get("id") or "",
            directory=o.get("directory") or "",
        )


@dataclass(frozen=True)
class Ancestor:
    """A run above another, with its names when the other was started."""

    id: str = ""
    name: str = ""
    namespace: str = ""
    depth: int = 0  # its kernel.SpawnDepth

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Ancestor:
        return cls(
            id=o.get("id") or "",
            name=o.get("name") or "",
            namespace=o.get("namespace") or "",
            depth=o.get("depth") or 0,
        )


@dataclass(frozen=True)
class ManifestFile:
    """A file of the host that a run of a manifest executes."""

    path: str = ""  # absolute
    sha256: str = ""  # in hex

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ManifestFile:
        return cls(
            path=o.get("path") or "",
            sha256=o.get("sha256") or "",
        )


@dataclass(frozen=True)
class Run:
    """What the store keeps of one run from its creation on."""

    spec: Spec = field(default_factory=Spec)
    state: str = ""
    owner: Owner = field(default_factory=Owner)
    caller_rlimits: list[Rlimit] = field(default_factory=list)  # the resource limits of the process that requested the run, where the run has commands for the host (Kernel.HasCommands). cloved sets them; none: its own.
    turn: QueueState = field(default_factory=QueueState)
    created: Optional[datetime] = None
    started: Optional[datetime] = None  # when the agent first executed
    lease: Optional[Lease] = None  # nil once released
    pid: int = 0  # host pid of clove-init, while running
    layer: str = ""  # kept writable layer: path of its image; empty: none
    record: Optional[Record] = None  # set when state is StateEnded
    previous: Optional[Record] = None  # the record of the last time, where the run was restarted.
    container: Optional[Container] = None  # set where this is the record of an OCI container. Such a run is always ended, has no layer and no log, and never starts.
    parent: str = ""  # the run whose agent started this one; empty: a person did. Only cloved will set it, from the socket that asked: a caller cannot name one.
    above: list[Ancestor] = field(default_factory=list)  # the runs above it, its parent first, as they were when it was started; empty: a person started it. It spends from their accounts, and its cgroup is below theirs.
    executes: list[ManifestFile] = field(default_factory=list)  # the files of the host that its agent executes, where an agent started it. It does not start while one of them is another.
    deadline: Optional[datetime] = None  # when it ends at the latest, whatever its own limit is: its parent does; zero: never.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Run:
        return cls(
            spec=Spec.read(o.get("spec") or {}),
            state=o.get("state") or "",
            owner=Owner.read(o.get("owner") or {}),
            caller_rlimits=[Rlimit.read(x or {}) for x in o.get("caller_rlimits") or ()],
            turn=QueueState.read(o.get("turn") or {}),
            created=read_time(o.get("created")),
            started=read_time(o.get("started")),
            lease=Lease.read(o.get("lease") or {}) if o.get("lease") is not None else None,
            pid=o.get("pid") or 0,
            layer=o.get("layer") or "",
            record=Record.read(o.get("record") or {}) if o.get("record") is not None else None,
            previous=Record.read(o.get("previous") or {}) if o.get("previous") is not None else None,
            container=Container.read(o.get("container") or {}) if o.get("container") is not None else None,
            parent=o.get("parent") or "",
            above=[Ancestor.read(x or {}) for x in o.get("above") or ()],
            executes=[ManifestFile.read(x or {}) for x in o.get("executes") or ()],
            deadline=read_time(o.get("deadline")),
        )


@dataclass(frozen=True)
class RunResult:
    """A run, and where it waits, why. Values of its environment that look like secrets
    are redacted.
    """

    run: Run = field(default_factory=Run)
    reason: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> RunResult:
        return cls(
            run=Run.read(o.get("run") or {}),
            reason=o.get("reason") or "",
        )


@dataclass(frozen=True)
class ListResult:
    """The runs, newest first, and why those that wait do."""

    runs: list[Run] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    next: str = ""  # what to ask with in after; empty: these were the last.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ListResult:
        return cls(
            runs=[Run.read(x or {}) for x in o.get("runs") or ()],
            reasons=dict(o.get("reasons") or {}),
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class WaitResult:
    """How a run ended."""

    record: Record = field(default_factory=Record)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> WaitResult:
        return cls(
            record=Record.read(o.get("record") or {}),
        )


@dataclass(frozen=True)
class PruneResult:
    """Lists what was removed."""

    removed: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> PruneResult:
        return cls(
            removed=list(o.get("removed") or ()),
        )


@dataclass(frozen=True)
class Stats:
    """The agent's present and total usage. A figure that this host cannot supply is
    nil, never 0.
    """

    time: Optional[datetime] = None
    paused: bool = False
    wall_ms: int = 0  # since the agent's start, on CLOCK_BOOTTIME
    memory_bytes: Optional[int] = None  # now, page cache included
    pids: Optional[int] = None  # now; threads count
    usage: Usage = field(default_factory=Usage)
    events: Events = field(default_factory=Events)
    limits: Limits = field(default_factory=Limits)  # in force now

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Stats:
        return cls(
            time=read_time(o.get("time")),
            paused=o.get("paused") or False,
            wall_ms=o.get("wall_ms") or 0,
            memory_bytes=o.get("memory_bytes"),
            pids=o.get("pids"),
            usage=Usage.read(o.get("usage") or {}),
            events=Events.read(o.get("events") or {}),
            limits=Limits.read(o.get("limits") or {}),
        )


@dataclass(frozen=True)
class StatsResult:
    """What a live run uses now."""

    stats: Stats = field(default_factory=Stats)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> StatsResult:
        return cls(
            stats=Stats.read(o.get("stats") or {}),
        )


@dataclass(frozen=True)
class Process:
    """One process of an agent. Its ids are those inside the sandbox."""

    pid: int = 0
    parent_pid: int = 0  # 0: started from outside, as PID 1 and what `clove exec` starts
    uid: int = 0
    state: str = ""  # one letter, as in proc_pid_stat(5)
    threads: int = 0
    started: Optional[datetime] = None
    cpu_ms: int = 0
    rss_bytes: int = 0
    command: list[str] = field(default_factory=list)  # its arguments, or its name in brackets where it has none

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Process:
        return cls(
            pid=o.get("pid") or 0,
            parent_pid=o.get("parent_pid") or 0,
            uid=o.get("uid") or 0,
            state=o.get("state") or "",
            threads=o.get("threads") or 0,
            started=read_time(o.get("started")),
            cpu_ms=o.get("cpu_ms") or 0,
            rss_bytes=o.get("rss_bytes") or 0,
            command=list(o.get("command") or ()),
        )


@dataclass(frozen=True)
class ProcessesResult:
    """The processes of a live run."""

    processes: list[Process] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ProcessesResult:
        return cls(
            processes=[Process.read(x or {}) for x in o.get("processes") or ()],
        )


@dataclass(frozen=True)
class LogLine:
    """One line of output as it stands in the log file."""

    time: Optional[datetime] = None
    stream: str = ""  # stdout, stderr, or clove: a line of clove's own; request and answer in a log of models
    text: str = ""  # without the line's end
    bytes: bytes = b""  # in place of text, where it is not UTF-8
    partial: bool = False  # the line goes on in the next one
    lost_lines: int = 0  # Lost counts what is missing here, since the line before it: what rotation or a full disk dropped.
    lost_bytes: int = 0
    number: int = 0  # counts the run's lines from 1 on, those that are lost included; absent in the file, and in a line that says what is missing.
    offset: int = 0  # counts the bytes of these lines without their ends, this one included.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> LogLine:
        return cls(
            time=read_time(o.get("time")),
            stream=o.get("stream") or "",
            text=o.get("text") or "",
            bytes=read_bytes(o.get("bytes")),
            partial=o.get("partial") or False,
            lost_lines=o.get("lost_lines") or 0,
            lost_bytes=o.get("lost_bytes") or 0,
            number=o.get("number") or 0,
            offset=o.get("offset") or 0,
        )


@dataclass(frozen=True)
class LogNote:
    """The notification of one line, or of many where the caller asked for that."""

    id: Any = None
    line: LogLine = field(default_factory=LogLine)
    lines: list[LogLine] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> LogNote:
        return cls(
            id=o.get("id"),
            line=LogLine.read(o.get("line") or {}),
            lines=[LogLine.read(x or {}) for x in o.get("lines") or ()],
        )


@dataclass(frozen=True)
class AttachResult:
    """Says how the session ended."""

    detached: bool = False  # the agent goes on
    exit_code: int = 0
    record: Optional[Record] = None  # how the run ended, unless it goes on.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> AttachResult:
        return cls(
            detached=o.get("detached") or False,
            exit_code=o.get("exit_code") or 0,
            record=Record.read(o.get("record") or {}) if o.get("record") is not None else None,
        )


@dataclass(frozen=True)
class SessionDenied:
    """Said to the caller of a foreground run."""

    time: Optional[datetime] = None
    kind: str = ""
    target: str = ""  # an address, a call's name, a path, a capability
    rule: str = ""
    count: int = 0
    program: str = ""  # path inside of the program that tried
    errno: str = ""  # what it was answered: "EPERM"
    call: Optional[DeniedCall] = None  # absent for network
    reason: str = ""
    hint: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SessionDenied:
        return cls(
            time=read_time(o.get("time")),
            kind=o.get("kind") or "",
            target=o.get("target") or "",
            rule=o.get("rule") or "",
            count=o.get("count") or 0,
            program=o.get("program") or "",
            errno=o.get("errno") or "",
            call=DeniedCall.read(o.get("call") or {}) if o.get("call") is not None else None,
            reason=o.get("reason") or "",
            hint=o.get("hint") or "",
        )


@dataclass(frozen=True)
class SessionBudget:
    """Said to the caller of a foreground run."""

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
    paused: bool = False  # nothing is left, and the run is paused; else it reached its warning
    timeout: Optional[datetime] = None  # when the wall clock ends a paused run; absent: never

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SessionBudget:
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
            paused=o.get("paused") or False,
            timeout=read_time(o.get("timeout")),
        )


@dataclass(frozen=True)
class SessionOutput:
    """A piece of what a process wrote."""

    stream: str = ""  # stdout, stderr; a terminal has only stdout
    data: bytes = b""
    lost_bytes: int = 0  # bytes missing before it: the caller was too slow
    denied: Optional[SessionDenied] = None  # what the network turned away for the first time, in place of data.
    budget: Optional[SessionBudget] = None  # reached its mark, in place of data.
    home_copied: str = ""  # names a kept home that another run has, in place of data: this one has a copy.
    asked: Optional[Approval] = None  # a question about the run that waits for people, in place of data.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SessionOutput:
        return cls(
            stream=o.get("stream") or "",
            data=read_bytes(o.get("data")),
            lost_bytes=o.get("lost_bytes") or 0,
            denied=SessionDenied.read(o.get("denied") or {}) if o.get("denied") is not None else None,
            budget=SessionBudget.read(o.get("budget") or {}) if o.get("budget") is not None else None,
            home_copied=o.get("home_copied") or "",
            asked=Approval.read(o.get("asked") or {}) if o.get("asked") is not None else None,
        )


@dataclass(frozen=True)
class ExecResult:
    """Says how the process ended."""

    exit_code: int = 0
    failure: Optional[Failure] = None  # why the command was not executed (126) or not found (127), or was ended (124).

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ExecResult:
        return cls(
            exit_code=o.get("exit_code") or 0,
            failure=Failure.read(o.get("failure") or {}) if o.get("failure") is not None else None,
        )


@dataclass(frozen=True)
class DiffResult:
    """Sums up the notifications."""

    changes: int = 0
    digest: str = ""  # stands for the changes of the workspace that were listed, the only ones that can be applied, and for the bytes of their files. Empty with list_only.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> DiffResult:
        return cls(
            changes=o.get("changes") or 0,
            digest=o.get("digest") or "",
        )


@dataclass(frozen=True)
class ChangeContents:
    """Both sides of a change of a file or a link, whose content is its target. A side
    that does not exist, or is of another type, has none.
    """

    before: bytes = b""  # the host's
    after: bytes = b""  # the agent's
    mode: int = 0  # the permission bits of the host's; 0: it has none
    omitted: str = ""  # why both are missing; empty otherwise.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ChangeContents:
        return cls(
            before=read_bytes(o.get("before")),
            after=read_bytes(o.get("after")),
            mode=o.get("mode") or 0,
            omitted=o.get("omitted") or "",
        )


@dataclass(frozen=True)
class Change:
    """One difference between the agent's files and the host's. The agent chose every
    string in it.
    """

    kind: str = ""  # added, changed, deleted, renamed
    path: str = ""  # inside the sandbox
    type_: str = ""  # file, dir, symlink, fifo, socket, char, block, ref
    size: int = 0  # bytes of a regular file, else 0
    mode: int = 0  # the permission, setuid, setgid and sticky bits
    target: str = ""  # what a symbolic link says, the commit of a ref
    sum: str = ""  # of a file of the workspace, if it was asked for: equal sums, equal bytes
    was: str = ""  # the type of the file before, where it was another type
    from_: str = ""  # the former path inside of a renamed directory
    executed_by: str = ""  # names the host program that executes the file without being asked, as git does with a hook; empty: clove knows none.
    instructs: str = ""  # names the agents that follow the file's text in this folder, as AGENTS.md; empty: clove knows none.
    unknown: str = ""  # says why a program that clove does not know may execute it: it is in a new folder whose name begins with a dot, with programs or commands in it. Empty: nothing points to that.
    lost: str = ""  # what the host's file does not have of the agent's, after it was applied
    refused: str = ""  # why it was not applied, or why Diff did not descend into it
    contents: Optional[ChangeContents] = None  # those of a file or link, if they were asked for.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Change:
        return cls(
            kind=o.get("kind") or "",
            path=o.get("path") or "",
            type_=o.get("type") or "",
            size=o.get("size") or 0,
            mode=o.get("mode") or 0,
            target=o.get("target") or "",
            sum=o.get("sum") or "",
            was=o.get("was") or "",
            from_=o.get("from") or "",
            executed_by=o.get("executed_by") or "",
            instructs=o.get("instructs") or "",
            unknown=o.get("unknown") or "",
            lost=o.get("lost") or "",
            refused=o.get("refused") or "",
            contents=ChangeContents.read(o.get("contents") or {}) if o.get("contents") is not None else None,
        )


@dataclass(frozen=True)
class ChangeNote:
    """The notification of one change: found by run.diff, or made or refused by
    run.apply.
    """

    id: Any = None
    change: Change = field(default_factory=Change)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ChangeNote:
        return cls(
            id=o.get("id"),
            change=Change.read(o.get("change") or {}),
        )


@dataclass(frozen=True)
class ApplyResult:
    """Counts the notifications."""

    applied: int = 0
    refused: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ApplyResult:
        return cls(
            applied=o.get("applied") or 0,
            refused=o.get("refused") or 0,
        )


@dataclass(frozen=True)
class KeptHome:
    """A kept home as it is listed. Nothing in it is read for that."""

    id: str = ""
    uid: int = 0
    name: str = ""
    device: int = 0  # of the folder
    inode: int = 0
    folder: str = ""  # its path when the home was made
    bytes: int = 0  # the most that it can have
    held_bytes: int = 0  # what it has of the host's disk
    created: Optional[datetime] = None
    keep: list[str] = field(default_factory=list)  # kept with it, by their paths inside
    changed: Optional[datetime] = None
    in_use: bool = False  # a run has it

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> KeptHome:
        return cls(
            id=o.get("id") or "",
            uid=o.get("uid") or 0,
            name=o.get("name") or "",
            device=o.get("device") or 0,
            inode=o.get("inode") or 0,
            folder=o.get("folder") or "",
            bytes=o.get("bytes") or 0,
            held_bytes=o.get("held_bytes") or 0,
            created=read_time(o.get("created")),
            keep=list(o.get("keep") or ()),
            changed=read_time(o.get("changed")),
            in_use=o.get("in_use") or False,
        )


@dataclass(frozen=True)
class HomesResult:
    """The kept homes that the caller may see, the one that changed last first."""

    homes: list[KeptHome] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> HomesResult:
        return cls(
            homes=[KeptHome.read(x or {}) for x in o.get("homes") or ()],
        )


@dataclass(frozen=True)
class AddedManifest:
    """One that its owner has added."""

    owner: int = 0
    name: str = ""
    digest: str = ""  # sha256: and hex, of the spec and the files
    added: Optional[datetime] = None
    grants: list[str] = field(default_factory=list)  # what a run of it may do at most

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> AddedManifest:
        return cls(
            owner=o.get("owner") or 0,
            name=o.get("name") or "",
            digest=o.get("digest") or "",
            added=read_time(o.get("added")),
            grants=list(o.get("grants") or ()),
        )


@dataclass(frozen=True)
class ManifestResult:
    """One manifest."""

    manifest: AddedManifest = field(default_factory=AddedManifest)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ManifestResult:
        return cls(
            manifest=AddedManifest.read(o.get("manifest") or {}),
        )


@dataclass(frozen=True)
class ManifestListResult:
    """A part of the caller's manifests, in the order of their names."""

    manifests: list[AddedManifest] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ManifestListResult:
        return cls(
            manifests=[AddedManifest.read(x or {}) for x in o.get("manifests") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class ManifestRemoveResult:
    """Has what is forgotten."""

    removed: list[AddedManifest] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ManifestRemoveResult:
        return cls(
            removed=[AddedManifest.read(x or {}) for x in o.get("removed") or ()],
        )


@dataclass(frozen=True)
class KeptTool:
    """A tool that a user has added, or one that is built in."""

    name: str = ""
    title: str = ""
    description: str = ""
    arguments: Any = None  # the JSON schema of the arguments, which are an object.
    result: Any = None  # that of the result, which is JSON then; absent: the result is text.
    annotations: Annotations = field(default_factory=Annotations)
    run: str = ""
    where: str = ""
    command: list[str] = field(default_factory=list)  # the template of a KindCommand: the program and its arguments. {NAME} stands for an argument of the call; there is no shell.
    timeout_ns: int = 0  # bounds a call; 0: DefaultTimeout.
    costs: dict[str, int] = field(default_factory=dict)  # what a call takes of budgets' own dimensions, beside one of tool_calls.
    named: bool = False  # says that a grant must have the tool's name: tool:* does not cover it.
    owner: int = 0
    added: Optional[datetime] = None  # absent: it is built in

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> KeptTool:
        return cls(
            name=o.get("name") or "",
            title=o.get("title") or "",
            description=o.get("description") or "",
            arguments=o.get("arguments"),
            result=o.get("result"),
            annotations=Annotations.read(o.get("annotations") or {}),
            run=o.get("run") or "",
            where=o.get("where") or "",
            command=list(o.get("command") or ()),
            timeout_ns=o.get("timeout_ns") or 0,
            costs=dict(o.get("costs") or {}),
            named=o.get("named") or False,
            owner=o.get("owner") or 0,
            added=read_time(o.get("added")),
        )


@dataclass(frozen=True)
class ToolResult:
    """Has a tool."""

    tool: KeptTool = field(default_factory=KeptTool)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ToolResult:
        return cls(
            tool=KeptTool.read(o.get("tool") or {}),
        )


@dataclass(frozen=True)
class ToolKeptResult:
    """Has tools, by name."""

    tools: list[KeptTool] = field(default_factory=list)
    next: str = ""  # after of the next part; absent: there is none

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ToolKeptResult:
        return cls(
            tools=[KeptTool.read(x or {}) for x in o.get("tools") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class BudgetListResult:
    """A part of the lines of accounts, in the order of their names."""

    budgets: list[Budget] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BudgetListResult:
        return cls(
            budgets=[Budget.read(x or {}) for x in o.get("budgets") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class DaySum:
    """What all runs of a user spent of a dimension in one day."""

    day: str = ""  # of UTC, as 2026-11-23
    owner: int = 0
    dimension: str = ""  # "(other)": those of a user who had very many on that day
    used: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> DaySum:
        return cls(
            day=o.get("day") or "",
            owner=o.get("owner") or 0,
            dimension=o.get("dimension") or "",
            used=o.get("used") or 0,
        )


@dataclass(frozen=True)
class BudgetReportResult:
    """A part of the sums, in the order of days, users and dimensions."""

    days: list[DaySum] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BudgetReportResult:
        return cls(
            days=[DaySum.read(x or {}) for x in o.get("days") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class Spender:
    """A run that spent something of a dimension in the last minute."""

    id: str = ""
    name: str = ""
    owner: int = 0
    namespace: str = ""
    dimension: str = ""
    last_minute: int = 0  # since cloved began, if that is later
    used: int = 0  # of the run's own budget, in its period
    granted: Optional[int] = None  # absent: the run itself has no limit

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Spender:
        return cls(
            id=o.get("id") or "",
            name=o.get("name") or "",
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            dimension=o.get("dimension") or "",
            last_minute=o.get("last_minute") or 0,
            used=o.get("used") or 0,
            granted=o.get("granted"),
        )


@dataclass(frozen=True)
class BudgetTopResult:
    """Lists who spends most, by dimension."""

    spenders: list[Spender] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BudgetTopResult:
        return cls(
            spenders=[Spender.read(x or {}) for x in o.get("spenders") or ()],
        )


@dataclass(frozen=True)
class Mailbox:
    """Where messages wait for a run, or for a reserved name."""

    id: str = ""  # opaque
    owner: int = 0
    namespace: str = ""
    kind: str = ""  # run or name
    name: str = ""
    run: str = ""  # of the kind run
    messages: int = 0
    dead: int = 0  # letters
    expires: Optional[datetime] = None  # when the first message does

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Mailbox:
        return cls(
            id=o.get("id") or "",
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            kind=o.get("kind") or "",
            name=o.get("name") or "",
            run=o.get("run") or "",
            messages=o.get("messages") or 0,
            dead=o.get("dead") or 0,
            expires=read_time(o.get("expires")),
        )


@dataclass(frozen=True)
class MailBoxesResult:
    """A part of the mailboxes. Within one, they are in the order of their owners and
    names.
    """

    mailboxes: list[Mailbox] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> MailBoxesResult:
        return cls(
            mailboxes=[Mailbox.read(x or {}) for x in o.get("mailboxes") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class MailReadResult:
    """A part of the messages of a mailbox, in the order in which they are received."""

    messages: list[Mail] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> MailReadResult:
        return cls(
            messages=[Mail.read(x or {}) for x in o.get("messages") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class DeadLetter:
    """A message that has expired, or that its receiver has rejected."""

    letter: str = ""  # the id of the message, for mail.requeue and mail.discard
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
    mailbox: str = ""  # its id
    why: str = ""
    died: Optional[datetime] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> DeadLetter:
        return cls(
            letter=o.get("letter") or "",
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
            mailbox=o.get("mailbox") or "",
            why=o.get("why") or "",
            died=read_time(o.get("died")),
        )


@dataclass(frozen=True)
class MailDeadResult:
    """A part of the dead letters."""

    letters: list[DeadLetter] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> MailDeadResult:
        return cls(
            letters=[DeadLetter.read(x or {}) for x in o.get("letters") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class SSH:
    """Says what a private key signs: that a user authenticates to a host."""

    user: str = ""  # on the hosts; empty: git
    host_keys: list[str] = field(default_factory=list)  # those that the hosts have, each as HOST:PORT TYPE KEY.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SSH:
        return cls(
            user=o.get("user") or "",
            host_keys=list(o.get("host_keys") or ()),
        )


@dataclass(frozen=True)
class Terms:
    """Say what a secret is for."""

    hosts: list[str] = field(default_factory=list)  # where it may go: NAME or NAME:PORT, of port 443 without one.
    allow: list[str] = field(default_factory=list)  # the requests to these hosts that may pass (ParseRule); none: all.
    header: str = ""  # the one header that carries it; empty: Authorization.
    in_: list[str] = field(default_factory=list)  # other places that may carry it: InBody, InURL.
    prefix: str = ""  # begins its placeholders, for programs that look at it, for example ghp_.
    avoid: list[str] = field(default_factory=list)  # taints that an agent which uses it must not carry.
    ca: str = ""  # certificates of authorities for its hosts in place of the system's, in PEM form. Root alone gives them.
    ssh: Optional[SSH] = None  # makes the value a private key, which signs authentications and is in no request; nil: the value is a text.
    plain: bool = False  # lets a run have the value in a file that its agent reads. Such a secret may be for no host.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Terms:
        return cls(
            hosts=list(o.get("hosts") or ()),
            allow=list(o.get("allow") or ()),
            header=o.get("header") or "",
            in_=list(o.get("in") or ()),
            prefix=o.get("prefix") or "",
            avoid=list(o.get("avoid") or ()),
            ca=o.get("ca") or "",
            ssh=SSH.read(o.get("ssh") or {}) if o.get("ssh") is not None else None,
            plain=o.get("plain") or False,
        )


@dataclass(frozen=True)
class SecretUse:
    """A request that carried a secret, as the agent sent it: without its query."""

    secret: str = ""
    time: Optional[datetime] = None
    run: str = ""
    agent: str = ""  # the name of the run
    host: str = ""
    method: str = ""
    path: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SecretUse:
        return cls(
            secret=o.get("secret") or "",
            time=read_time(o.get("time")),
            run=o.get("run") or "",
            agent=o.get("agent") or "",
            host=o.get("host") or "",
            method=o.get("method") or "",
            path=o.get("path") or "",
        )


@dataclass(frozen=True)
class Secret:
    """A secret of a user's, without its value."""

    name: str = ""
    owner: int = 0
    terms: Terms = field(default_factory=Terms)
    set: Optional[datetime] = None  # when
    rotated: Optional[datetime] = None
    version: int = 0  # of the value: 1 when it was set, one more with each secret.rotate
    expires: Optional[datetime] = None
    max_uses: int = 0  # 0: as many as are asked for
    uses: int = 0
    last: Optional[SecretUse] = None  # the last use

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Secret:
        return cls(
            name=o.get("name") or "",
            owner=o.get("owner") or 0,
            terms=Terms.read(o.get("terms") or {}),
            set=read_time(o.get("set")),
            rotated=read_time(o.get("rotated")),
            version=o.get("version") or 0,
            expires=read_time(o.get("expires")),
            max_uses=o.get("max_uses") or 0,
            uses=o.get("uses") or 0,
            last=SecretUse.read(o.get("last") or {}) if o.get("last") is not None else None,
        )


@dataclass(frozen=True)
class SecretResult:
    """One secret."""

    secret: Secret = field(default_factory=Secret)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SecretResult:
        return cls(
            secret=Secret.read(o.get("secret") or {}),
        )


@dataclass(frozen=True)
class SecretListResult:
    """Has secrets in the order of their names."""

    secrets: list[Secret] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SecretListResult:
        return cls(
            secrets=[Secret.read(x or {}) for x in o.get("secrets") or ()],
        )


@dataclass(frozen=True)
class SecretCheckResult:
    """Has what is wrong with each secret that cannot be used."""

    checked: int = 0
    problems: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SecretCheckResult:
        return cls(
            checked=o.get("checked") or 0,
            problems=list(o.get("problems") or ()),
        )


@dataclass(frozen=True)
class SecretUsesResult:
    """Has the newest uses of each secret, the newest first."""

    uses: list[SecretUse] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SecretUsesResult:
        return cls(
            uses=[SecretUse.read(x or {}) for x in o.get("uses") or ()],
        )


@dataclass(frozen=True)
class SecretUseResult:
    """Lets a request carry a secret."""

    version: int = 0  # of the value that is to be used

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SecretUseResult:
        return cls(
            version=o.get("version") or 0,
        )


@dataclass(frozen=True)
class SecretOpenResult:
    """The secrets that a run was started with, by the order of their names."""

    secrets: list[Secret] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SecretOpenResult:
        return cls(
            secrets=[Secret.read(x or {}) for x in o.get("secrets") or ()],
        )


@dataclass(frozen=True)
class ApprovalResult:
    """One question."""

    approval: Approval = field(default_factory=Approval)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ApprovalResult:
        return cls(
            approval=Approval.read(o.get("approval") or {}),
        )


@dataclass(frozen=True)
class JobsListResult:
    """A part of the jobs: first those to be done, then dead and then done ones. Those
    of one queue are in the order of their priority.
    """

    jobs: list[Job] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> JobsListResult:
        return cls(
            jobs=[Job.read(x or {}) for x in o.get("jobs") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class QueueListResult:
    """A part of the queues, in the order of the namespaces and of the names."""

    queues: list[Queue] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> QueueListResult:
        return cls(
            queues=[Queue.read(x or {}) for x in o.get("queues") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class ModelTarget:
    """One way to serve a model, in the order of trial."""

    provider: str = ""
    model: str = ""  # the provider's name of it
    weight: int = 0
    fallback: int = 0
    priced: bool = False
    health: str = ""  # ok, failing (its last call failed) or out (several failed in a row, and it is left out for a while). It is empty where nothing serves models.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelTarget:
        return cls(
            provider=o.get("provider") or "",
            model=o.get("model") or "",
            weight=o.get("weight") or 0,
            fallback=o.get("fallback") or 0,
            priced=o.get("priced") or False,
            health=o.get("health") or "",
        )


@dataclass(frozen=True)
class Model:
    """A name that agents may use."""

    name: str = ""
    alias_of: str = ""  # the model that it stands for; empty: it is no alias
    formats: list[str] = field(default_factory=list)  # in which it is called, such as openai-chat
    context: int = 0  # tokens of input and output together, the least of its targets; 0: unknown
    max_output: int = 0
    priced: bool = False  # the price at each target is known
    targets: list[ModelTarget] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Model:
        return cls(
            name=o.get("name") or "",
            alias_of=o.get("alias_of") or "",
            formats=list(o.get("formats") or ()),
            context=o.get("context") or 0,
            max_output=o.get("max_output") or 0,
            priced=o.get("priced") or False,
            targets=[ModelTarget.read(x or {}) for x in o.get("targets") or ()],
        )


@dataclass(frozen=True)
class ModelListResult:
    """Lists models and aliases in the order of their names."""

    models: list[Model] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelListResult:
        return cls(
            models=[Model.read(x or {}) for x in o.get("models") or ()],
        )


@dataclass(frozen=True)
class ModelRates:
    """Nano-dollars (10^-9 US dollars) for each token: 2 dollars for a million are 2000."""

    in_: int = 0
    cached: int = 0
    cache_write: int = 0
    cache_write_long: int = 0  # for the longer of the provider's times
    out: int = 0
    reasoning: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelRates:
        return cls(
            in_=o.get("in") or 0,
            cached=o.get("cached") or 0,
            cache_write=o.get("cache_write") or 0,
            cache_write_long=o.get("cache_write_long") or 0,
            out=o.get("out") or 0,
            reasoning=o.get("reasoning") or 0,
        )


@dataclass(frozen=True)
class ModelPrice:
    """What the tokens of some models cost."""

    provider: str = ""  # the only provider that it is for; empty: see family
    family: str = ""  # the format of the providers that it is for; empty: any
    host: str = ""  # whose servers it is for; empty: any
    model: str = ""  # the provider's names; * is any run of characters
    in_: int = 0
    cached: int = 0
    cache_write: int = 0
    cache_write_long: int = 0  # for the longer of the provider's times
    out: int = 0
    reasoning: int = 0
    long: Optional[ModelRates] = None  # replaces the rates of a whole call with more than long_above tokens of input.
    long_above: int = 0
    tiers: dict[str, int] = field(default_factory=dict)  # thousandths of the price that a service tier costs, as 500 for half.
    date: str = ""  # when it was read, as 2026-11-23
    source: str = ""
    built_in: bool = False  # it is clove's own, and not of models.yaml
    overridden: list[str] = field(default_factory=list)  # the providers at which a row above holds in place of this one.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelPrice:
        return cls(
            provider=o.get("provider") or "",
            family=o.get("family") or "",
            host=o.get("host") or "",
            model=o.get("model") or "",
            in_=o.get("in") or 0,
            cached=o.get("cached") or 0,
            cache_write=o.get("cache_write") or 0,
            cache_write_long=o.get("cache_write_long") or 0,
            out=o.get("out") or 0,
            reasoning=o.get("reasoning") or 0,
            long=ModelRates.read(o.get("long") or {}) if o.get("long") is not None else None,
            long_above=o.get("long_above") or 0,
            tiers=dict(o.get("tiers") or {}),
            date=o.get("date") or "",
            source=o.get("source") or "",
            built_in=o.get("built_in") or False,
            overridden=list(o.get("overridden") or ()),
        )


@dataclass(frozen=True)
class ModelPricesResult:
    """The table of prices, in the order in which a model's is looked up: the first row
    that fits holds.
    """

    prices: list[ModelPrice] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelPricesResult:
        return cls(
            prices=[ModelPrice.read(x or {}) for x in o.get("prices") or ()],
        )


@dataclass(frozen=True)
class ModelFailure:
    """Why a call went wrong."""

    reason: str = ""  # one of the reasons below
    message: str = ""
    hint: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelFailure:
        return cls(
            reason=o.get("reason") or "",
            message=o.get("message") or "",
            hint=o.get("hint") or "",
        )


@dataclass(frozen=True)
class ModelTestResult:
    """How one call of a model went."""

    model: str = ""  # after aliases
    provider: str = ""
    target: str = ""  # the provider's name of the model
    format: str = ""
    status: int = 0  # of HTTP; absent: there was no answer
    first_ns: int = 0  # until the first byte of the answer
    total_ns: int = 0
    tokens_in: int = 0  # without those read from the provider's cache
    tokens_cached: int = 0
    tokens_out: int = 0
    reported: bool = False  # by the provider; else the tokens are estimated
    cost_micros: Optional[int] = None  # absent: no price is known
    failure: Optional[ModelFailure] = None  # absent: it went well

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelTestResult:
        return cls(
            model=o.get("model") or "",
            provider=o.get("provider") or "",
            target=o.get("target") or "",
            format=o.get("format") or "",
            status=o.get("status") or 0,
            first_ns=o.get("first_ns") or 0,
            total_ns=o.get("total_ns") or 0,
            tokens_in=o.get("tokens_in") or 0,
            tokens_cached=o.get("tokens_cached") or 0,
            tokens_out=o.get("tokens_out") or 0,
            reported=o.get("reported") or False,
            cost_micros=o.get("cost_micros"),
            failure=ModelFailure.read(o.get("failure") or {}) if o.get("failure") is not None else None,
        )


@dataclass(frozen=True)
class ModelRun:
    """What a run has under way, and has used in the last minute, since cloved began if
    that is later.
    """

    id: str = ""
    name: str = ""
    owner: int = 0
    namespace: str = ""
    models: list[str] = field(default_factory=list)  # that it has called
    in_flight: int = 0  # calls
    waiting: int = 0  # calls that wait for a provider
    calls: int = 0  # that ended in the last minute
    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelRun:
        return cls(
            id=o.get("id") or "",
            name=o.get("name") or "",
            owner=o.get("owner") or 0,
            namespace=o.get("namespace") or "",
            models=list(o.get("models") or ()),
            in_flight=o.get("in_flight") or 0,
            waiting=o.get("waiting") or 0,
            calls=o.get("calls") or 0,
            tokens_in=o.get("tokens_in") or 0,
            tokens_out=o.get("tokens_out") or 0,
            cost_micros=o.get("cost_micros") or 0,
        )


@dataclass(frozen=True)
class ModelTopResult:
    """Lists runs that use models now, at most 100: those with most calls first."""

    runs: list[ModelRun] = field(default_factory=list)

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> ModelTopResult:
        return cls(
            runs=[ModelRun.read(x or {}) for x in o.get("runs") or ()],
        )


@dataclass(frozen=True)
class KeptBlob:
    """A blob of an owner's. It is removed when nothing refers to it."""

    owner: int = 0
    sha256: str = ""
    bytes: int = 0
    references: int = 0  # of messages, dead letters and keys, and of uploads of the last hour
    made: Optional[datetime] = None

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> KeptBlob:
        return cls(
            owner=o.get("owner") or 0,
            sha256=o.get("sha256") or "",
            bytes=o.get("bytes") or 0,
            references=o.get("references") or 0,
            made=read_time(o.get("made")),
        )


@dataclass(frozen=True)
class BlobListResult:
    """A part of the blobs, in the order of their owners and digests."""

    blobs: list[KeptBlob] = field(default_factory=list)
    next: str = ""  # what to ask with in after; empty: these were the last

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> BlobListResult:
        return cls(
            blobs=[KeptBlob.read(x or {}) for x in o.get("blobs") or ()],
            next=o.get("next") or "",
        )


@dataclass(frozen=True)
class AuditQueryResult:
    """Where to go on."""

    last: int = 0  # the number of the log's last record when it was read

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> AuditQueryResult:
        return cls(
            last=o.get("last") or 0,
        )


@dataclass(frozen=True)
class AuditRecordNote:
    """The notification of one record."""

    id: Any = None
    record: Any = None  # docs/audit.md has its fields

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> AuditRecordNote:
        return cls(
            id=o.get("id"),
            record=o.get("record"),
        )


@dataclass(frozen=True)
class EventResult:
    """Where to go on."""

    last: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> EventResult:
        return cls(
            last=o.get("last") or 0,
        )


@dataclass(frozen=True)
class Sum:
    """What one end adds to the installation's counters. It is stored in the event
    because the record of a run with --rm is deleted with the run. A figure that this
    host cannot supply counts as 0.
    """

    limit: str = ""  # LimitHit.Name, where a limit ended the run
    pids_max: int = 0
    cpu_ms: int = 0
    net_rx_bytes: int = 0
    net_tx_bytes: int = 0
    connections: int = 0  # through the gate
    refused: int = 0  # by the gate: connections, flows and names

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Sum:
        return cls(
            limit=o.get("limit") or "",
            pids_max=o.get("pids_max") or 0,
            cpu_ms=o.get("cpu_ms") or 0,
            net_rx_bytes=o.get("net_rx_bytes") or 0,
            net_tx_bytes=o.get("net_tx_bytes") or 0,
            connections=o.get("connections") or 0,
            refused=o.get("refused") or 0,
        )


@dataclass(frozen=True)
class RunEvent:
    """One event in a run's life, as the store keeps it. Sequence numbers rise by one
    and are never reused, so a reader can ask for everything after the last event
    that it has seen.
    """

    sequence: int = 0
    time: Optional[datetime] = None
    what: str = ""
    id: str = ""
    name: str = ""
    owner: Owner = field(default_factory=Owner)
    parent: str = ""  # the run whose agent started it
    state: str = ""  # after the event; empty: the run was removed
    status: str = ""  # of an end
    exit_code: Optional[int] = None  # of an end
    detail: str = ""  # for people
    sum: Optional[Sum] = None  # of an end
    causation: str = ""  # the id of the call that this follows from, correlation the id that is the same in all that follows from one call, and in its audit record. Only events of grants, budgets, refusals and models have them, and the request and the end that follow from a call. Of an end with the run that started it, causation is the id of that run, whose own event of its end says more; of the first event of a run that an agent started, too.
    correlation: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> RunEvent:
        return cls(
            sequence=o.get("sequence") or 0,
            time=read_time(o.get("time")),
            what=o.get("what") or "",
            id=o.get("id") or "",
            name=o.get("name") or "",
            owner=Owner.read(o.get("owner") or {}),
            parent=o.get("parent") or "",
            state=o.get("state") or "",
            status=o.get("status") or "",
            exit_code=o.get("exit_code"),
            detail=o.get("detail") or "",
            sum=Sum.read(o.get("sum") or {}) if o.get("sum") is not None else None,
            causation=o.get("causation") or "",
            correlation=o.get("correlation") or "",
        )


@dataclass(frozen=True)
class EventNote:
    """The notification of one event."""

    id: Any = None
    event: Optional[RunEvent] = None
    gap: bool = False  # says that some events after the asked number are kept no longer: read the runs anew.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> EventNote:
        return cls(
            id=o.get("id"),
            event=RunEvent.read(o.get("event") or {}) if o.get("event") is not None else None,
            gap=o.get("gap") or False,
        )


@dataclass(frozen=True)
class SessionSize:
    """The size of the caller's terminal."""

    rows: int = 0
    columns: int = 0

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SessionSize:
        return cls(
            rows=o.get("rows") or 0,
            columns=o.get("columns") or 0,
        )


@dataclass(frozen=True)
class Update:
    """A change of a live run. A nil field is not changed. All changes take effect, or
    none.
    """

    memory_bytes: Optional[int] = None
    memory_swap_bytes: Optional[int] = None  # memory and swap together; nil keeps the present amount of swap on top of the memory.
    cpus: Optional[float] = None
    pids: Optional[int] = None
    wall_clock_ns: Optional[int] = None  # the total from the agent's start; 0 removes the deadline.
    rules: Optional[list[EgressRule]] = None  # replace all rules of egress. The network mode, the host ports and the published ports cannot change: their sockets exist since the start.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Update:
        return cls(
            memory_bytes=o.get("memory_bytes"),
            memory_swap_bytes=o.get("memory_swap_bytes"),
            cpus=o.get("cpus"),
            pids=o.get("pids"),
            wall_clock_ns=o.get("wall_clock_ns"),
            rules=[EgressRule.read(x or {}) for x in o.get("rules") or ()] if o.get("rules") is not None else None,
        )


@dataclass(frozen=True)
class Exec:
    """The request for one more process in a sandbox. The process has the agent's
    limits, filter and namespaces, a cgroup below the agent's, and the agent's ids
    unless others are given. It never gets more rights than the agent.
    """

    command: list[str] = field(default_factory=list)
    env: list[str] = field(default_factory=list)  # KEY=VALUE, on top of the agent's
    dir: str = ""  # empty: the agent's
    user: Optional[User] = None  # nil: the agent's; root only where the agent is root
    terminal: bool = False  # a pty, with the size of the terminal at stdin
    timeout_ns: int = 0  # then it and all that it started is ended; 0: no limit
    kill_rest: bool = False  # what it started ends with it also where it ends by itself

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Exec:
        return cls(
            command=list(o.get("command") or ()),
            env=list(o.get("env") or ()),
            dir=o.get("dir") or "",
            user=User.read(o.get("user") or {}) if o.get("user") is not None else None,
            terminal=o.get("terminal") or False,
            timeout_ns=o.get("timeout_ns") or 0,
            kill_rest=o.get("kill_rest") or False,
        )


@dataclass(frozen=True)
class Definition:
    """A tool with how it runs."""

    name: str = ""
    title: str = ""
    description: str = ""
    arguments: Any = None  # the JSON schema of the arguments, which are an object.
    result: Any = None  # that of the result, which is JSON then; absent: the result is text.
    annotations: Annotations = field(default_factory=Annotations)
    run: str = ""
    where: str = ""
    command: list[str] = field(default_factory=list)  # the template of a KindCommand: the program and its arguments. {NAME} stands for an argument of the call; there is no shell.
    timeout_ns: int = 0  # bounds a call; 0: DefaultTimeout.
    costs: dict[str, int] = field(default_factory=dict)  # what a call takes of budgets' own dimensions, beside one of tool_calls.
    named: bool = False  # says that a grant must have the tool's name: tool:* does not cover it.

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> Definition:
        return cls(
            name=o.get("name") or "",
            title=o.get("title") or "",
            description=o.get("description") or "",
            arguments=o.get("arguments"),
            result=o.get("result"),
            annotations=Annotations.read(o.get("annotations") or {}),
            run=o.get("run") or "",
            where=o.get("where") or "",
            command=list(o.get("command") or ()),
            timeout_ns=o.get("timeout_ns") or 0,
            costs=dict(o.get("costs") or {}),
            named=o.get("named") or False,
        )


@dataclass(frozen=True)
class SecretUseParams:
    """A supervisor's: a request of a run that is to carry a secret."""

    run: str = ""
    secret: str = ""
    host: str = ""
    method: str = ""
    path: str = ""

    @classmethod
    def read(cls, o: Mapping[str, Any]) -> SecretUseParams:
        return cls(
            run=o.get("run") or "",
            secret=o.get("secret") or "",
            host=o.get("host") or "",
            method=o.get("method") or "",
            path=o.get("path") or "",
        )


class DaemonMethods:
    """The methods daemon.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def info(self) -> InfoResult:
        """Describes this cloved: versions, directories, and the number of runs in each
        state.
        """
        params = {}
        return InfoResult.read(await self._caller.call("daemon.info", params))

    async def summary(self) -> SummaryResult:
        """Returns daemon.info with the numbers of events, mailboxes, messages, names,
        grants and budgets; for root of everybody's, for others of their own.
        """
        params = {}
        return SummaryResult.read(await self._caller.call("daemon.summary", params))

    async def reload(self) -> None:
        """Reads the configuration anew. A file with a mistake changes nothing."""
        params = {}
        await self._caller.call("daemon.reload", params)

    async def drain(self, on: bool) -> None:
        """With on, cloved starts nothing more: new runs wait in the queue, and running
        agents continue. With off, it starts again. The setting survives a restart of
        cloved.
        """
        params = {"on": on}
        await self._caller.call("daemon.drain", params)

    async def panic(self, *, reason: Optional[str] = None, clear: Optional[bool] = None) -> PanicResult:
        """Kills every agent of the installation at once, with the reason in each
        record, and lets nothing start until it is called with clear. It survives a
        restart of cloved and of the host.
        """
        params = {"reason": reason, "clear": clear}
        return PanicResult.read(await self._caller.call("daemon.panic", params))

    async def backup(self, file: str) -> None:
        """Writes a consistent copy of kernel.db, which cloved alone has open, to a file
        that does not exist yet. clove backup calls it.

        Args:
            file: absolute; it must not exist
        """
        params = {"file": file}
        await self._caller.call("daemon.backup", params)

    async def check(self) -> CheckResult:
        """Checks kernel.db, which cloved alone has open. clove check calls it."""
        params = {}
        return CheckResult.read(await self._caller.call("daemon.check", params))

    async def debug(self, part: str) -> DebugResult:
        """Returns one part of cloved's internal state (clove debug requests all of
        them). No part contains an agent's input or output.
        """
        params = {"part": part}
        return DebugResult.read(await self._caller.call("daemon.debug", params))


class RunMethods:
    """The methods run.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def start(
        self,
        spec: Union[Spec, Mapping[str, Any]],
        *,
        delay_ns: Optional[int] = None,
        traceparent: Optional[str] = None,
        size: Optional[Union[SessionSize, Mapping[str, Any]]] = None,
    ) -> RunResult:
        """Stores a run and starts it as the queue allows. The answer comes when the
        agent executes, or at once with state queued and the reason if it has to wait
        for more than other starts.

        Args:
            delay_ns: how long it waits first, in nanoseconds.
            traceparent: the caller's span (W3C trace context), for a cloved that traces. One that is malformed is ignored.
            size: the window of a foreground run's caller.
        """
        params = {
            "spec": spec,
            "delay_ns": delay_ns,
            "traceparent": traceparent,
            "size": size,
        }
        return RunResult.read(await self._caller.call("run.start", params))

    async def list(
        self,
        *,
        all: Optional[bool] = None,
        limit: Optional[int] = None,
        brief: Optional[bool] = None,
        after: Optional[str] = None,
    ) -> ListResult:
        """Lists the caller's runs, newest first, without their environment; root sees
        all. An answer has a part of them: if there are more it has next, and the
        same request with that as after returns the following part.

        Args:
            all: also those that have ended
            limit: at most so many; 0: as many as one answer holds
            brief: true: only what a table shows, and of long commands the beginning
            after: next of the answer before, to go on behind it
        """
        params = {"all": all, "limit": limit, "brief": brief, "after": after}
        return ListResult.read(await self._caller.call("run.list", params))

    def list_all(
        self,
        *,
        all: Optional[bool] = None,
        limit: Optional[int] = None,
        brief: Optional[bool] = None,
    ) -> AsyncIterator[Run]:
        """Yields the runs of all parts of run.list, in as many calls as that takes."""
        return pages_async(self.list, "runs", {"all": all, "limit": limit, "brief": brief})

    async def get(self, run: str) -> RunResult:
        """Returns everything that is known of one run. Values of the environment that
        look like secrets are redacted, here and in every answer with a run.
        """
        params = {"run": run}
        return RunResult.read(await self._caller.call("run.get", params))

    async def wait(self, run: str) -> WaitResult:
        """Answers with the record when the run has ended and no policy starts it again."""
        params = {"run": run}
        return WaitResult.read(await self._caller.call("run.wait", params))

    async def remove(self, run: str, *, force: Optional[bool] = None) -> None:
        """Removes a run that has ended or waits: record, layer, log and name. With
        force, a live run is killed first.
        """
        params = {"run": run, "force": force}
        await self._caller.call("run.remove", params)

    async def rename(self, run: str, name: str) -> RunResult:
        """Renames a run that does not execute."""
        params = {"run": run, "name": name}
        return RunResult.read(await self._caller.call("run.rename", params))

    async def prune(self) -> PruneResult:
        """Removes the caller's ended runs; for root, all ended runs."""
        params = {}
        return PruneResult.read(await self._caller.call("run.prune", params))

    async def stop(self, run: str, *, grace_ns: Optional[int] = None) -> None:
        """Ends a run: TERM, the grace period, then KILL to every process. Answers when
        it has ended. Its restart policy and schedule are suspended until
        run.restart.

        Args:
            grace_ns: in nanoseconds; absent: the run's own.
        """
        params = {"run": run, "grace_ns": grace_ns}
        await self._caller.call("run.stop", params)

    async def signal(
        self,
        run: str,
        signal: int,
        *,
        policy: Optional[bool] = None,
        budget: Optional[bool] = None,
        reason: Optional[str] = None,
    ) -> None:
        """Sends the agent a signal. KILL ends all of its processes. KILL and TERM
        suspend its restart policy. So does policy, which ends it with status
        policy-kill.

        Args:
            policy: clove's own signal, with signal 0: the run ends with status policy-kill.
            budget: clove's own signal, too: the run ends with status budget, in place of policy.
            reason: Reason, of policy and budget only, is in the record and in the audit log; absent: who asked.
        """
        params = {
            "run": run,
            "signal": signal,
            "policy": policy,
            "budget": budget,
            "reason": reason,
        }
        await self._caller.call("run.signal", params)

    async def restart(
        self,
        run: str,
        *,
        grace_ns: Optional[int] = None,
        fresh: Optional[bool] = None,
    ) -> RunResult:
        """Ends the run if it lives, and starts it again with the files that it wrote. A
        waiting run is started now, if there is room. Its policy and its schedule are
        active again.

        Args:
            grace_ns: in nanoseconds; absent: the run's own.
            fresh: lets it begin with a new layer: what the agent wrote is lost.
        """
        params = {"run": run, "grace_ns": grace_ns, "fresh": fresh}
        return RunResult.read(await self._caller.call("run.restart", params))

    async def pause(self, run: str) -> None:
        """Freezes every process of a live run. Its wall clock continues."""
        params = {"run": run}
        await self._caller.call("run.pause", params)

    async def resume(self, run: str) -> None:
        """Resumes a paused run."""
        params = {"run": run}
        await self._caller.call("run.resume", params)

    async def update(self, run: str, update: Union[Update, Mapping[str, Any]]) -> RunResult:
        """Changes limits and network rules of a live run: everything that is named, or
        nothing.
        """
        params = {"run": run, "update": update}
        return RunResult.read(await self._caller.call("run.update", params))

    async def stats(self, run: str) -> StatsResult:
        """Returns what a live run uses now and has used since its start. A figure that
        this host cannot supply is absent.
        """
        params = {"run": run}
        return StatsResult.read(await self._caller.call("run.stats", params))

    async def processes(self, run: str) -> ProcessesResult:
        """Lists the processes of a live run, with the ids that they have inside."""
        params = {"run": run}
        return ProcessesResult.read(await self._caller.call("run.processes", params))

    def logs(
        self,
        run: str,
        *,
        since: Optional[datetime] = None,
        tail: Optional[int] = None,
        follow: Optional[bool] = None,
        after: Optional[int] = None,
        after_offset: Optional[int] = None,
        many: Optional[bool] = None,
        models: Optional[bool] = None,
    ) -> Stream[LogNote, None]:
        """Returns the run's output, line by line, as run.log notifications; with follow
        until it has ended and is not restarted.

        Args:
            tail: only the last so many; absent: all
            follow: go on until the run has ended
            after: the number of the last line that the caller has: only later ones are given. Where some of those are gone, a line with lost_lines comes first.
            after_offset: that line's offset. Without it lost_bytes of lines that rotation dropped behind it is not known, and absent.
            many: asks for notifications with lines, as many as are there, in place of line.
            models: asks for what the run's calls of models said and got. Only a run with model_log has it. Each call is a line of stream clove, and the lines of request and answer.
        """
        params = {
            "run": run,
            "since": since,
            "tail": tail,
            "follow": follow,
            "after": after,
            "after_offset": after_offset,
            "many": many,
            "models": models,
        }
        return Stream(self._caller, "run.logs", params, LogNote.read, None)

    def attach(
        self,
        run: str,
        *,
        size: Optional[Union[SessionSize, Mapping[str, Any]]] = None,
        foreground: Optional[bool] = None,
    ) -> Session[SessionOutput, AttachResult]:
        """Attaches to the streams of a live run: its output from now on, and its input
        if it keeps one open. Detaching changes nothing for the agent.

        Args:
            foreground: makes it the session that a foreground run was started for: nothing is lost in it, and the run ends with it.
        """
        params = {"run": run, "size": size, "foreground": foreground}
        return Session(self._caller, "run.attach", params, SessionOutput.read, AttachResult.read)

    def exec(
        self,
        run: str,
        exec: Union[Exec, Mapping[str, Any]],
        *,
        stdin: Optional[bool] = None,
        size: Optional[Union[SessionSize, Mapping[str, Any]]] = None,
        detach: Optional[bool] = None,
    ) -> Session[SessionOutput, ExecResult]:
        """Runs one more process in a live run's sandbox, with the same isolation and
        limits. It, and all that it started, is ended with the session, unless it is
        detached.

        Args:
            stdin: it reads the session's input; else the end of a file
            size: of its terminal
            detach: answers when it executes, and the session ends without it. It has no input, no terminal, and its output is dropped.
        """
        params = {
            "run": run,
            "exec": exec,
            "stdin": stdin,
            "size": size,
            "detach": detach,
        }
        return Session(self._caller, "run.exec", params, SessionOutput.read, ExecResult.read)

    def copy_in(self, run: str, path: str) -> Session[Any, None]:
        """Unpacks the session's input, a tar archive, in a folder of a live run; the
        agent owns the files.
        """
        params = {"run": run, "path": path}
        return Session(self._caller, "run.copy_in", params, dict, None)

    def copy_out(self, run: str, path: str) -> Session[SessionOutput, None]:
        """Returns a file or folder of a run as a tar archive. After its end a run has
        only what it made or changed, so of a folder that the host has as well that
        is all.
        """
        params = {"run": run, "path": path}
        return Session(self._caller, "run.copy_out", params, SessionOutput.read, None)

    def diff(
        self,
        run: str,
        *,
        to: Optional[str] = None,
        paths: Optional[Sequence[str]] = None,
        contents: Optional[bool] = None,
        list_only: Optional[bool] = None,
    ) -> Stream[ChangeNote, DiffResult]:
        """Returns what the run changed in its files, as run.change notifications.
        lost/ID in place of a run names a layer without a record; run.apply takes it,
        too. A live run is frozen while it is read, for at most two minutes. Of the
        host's side of the workspace, the caller sees only what it may read.

        Args:
            to: the canonical path of a directory of the host that takes the place of the workspace; only for lost/ID. Absent: the run's own.
            paths: inside choose the changes of these files, and of all below them, as those of run.apply do; they come with their contents, those of files up to 1 MiB. Absent: all changes, without contents.
            contents: asks for them without paths, those of the workspace.
            list_only: leaves the digest out, for which all changed files of the workspace are read.
        """
        params = {
            "run": run,
            "to": to,
            "paths": paths,
            "contents": contents,
            "list_only": list_only,
        }
        return Stream(self._caller, "run.diff", params, ChangeNote.read, DiffResult.read)

    def apply(
        self,
        run: str,
        *,
        to: Optional[str] = None,
        paths: Optional[Sequence[str]] = None,
        digest: Optional[str] = None,
        allow_executable_config: Optional[bool] = None,
        allow_instructions: Optional[bool] = None,
        allow_executable: Optional[Sequence[str]] = None,
    ) -> Stream[ChangeNote, ApplyResult]:
        """Writes the workspace's changes back to the host's directory with the caller's
        own ids, and reports as run.change notifications what was written and what
        was refused, and why. A file that a program of the host would execute by
        itself, such as a git hook (executed_by in a change), that the next agent
        would follow, such as AGENTS.md (instructs), or that may be either (unknown)
        is refused unless the parameters allow it. A change of type ref is the branch
        of a workspace whose .git is a file: its commits are taken over, and the
        branch is moved, unless the host moved it. A live run is frozen meanwhile.

        Args:
            to: as in run.diff.
            paths: inside choose the changes of these files, and of all below them, with the new folders that hold them. Absent: all. A path that nothing changed is an error.
            digest: the one that run.diff gave for what the caller looked at, all or the same paths: where the workspace's changes are others by now, in their contents too, nothing is applied. Absent: apply whatever there is.
            allow_executable_config: applies also files with an executed_by, because a program of the host's executes them by itself once they are there, and files with an unknown, because one may. AllowInstructions applies also files with an instructs. Otherwise these are refused, but for the paths inside that allow_executable names, of any of the three.
        """
        params = {
            "run": run,
            "to": to,
            "paths": paths,
            "digest": digest,
            "allow_executable_config": allow_executable_config,
            "allow_instructions": allow_instructions,
            "allow_executable": allow_executable,
        }
        return Stream(self._caller, "run.apply", params, ChangeNote.read, ApplyResult.read)


class HomeMethods:
    """The methods home.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def list(self) -> HomesResult:
        """Lists the homes that are kept for runs with Files.Home: those of the caller,
        to root all. Nothing in a home is read for that.
        """
        params = {}
        return HomesResult.read(await self._caller.call("home.list", params))

    async def remove(self, home: str) -> None:
        """Removes a kept home that no run has. Root removes everybody's by their ids.

        Args:
            home: its id, or its name where only one of the caller's has it
        """
        params = {"home": home}
        await self._caller.call("home.remove", params)


class AgentMethods:
    """The methods agent.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def get(self, run: str) -> AgentResult:
        """Returns what a run is, what it may do, what it may spend, and how many of its
        calls were refused.
        """
        params = {"run": run}
        return AgentResult.read(await self._caller.call("agent.get", params))

    async def list(self, run: str, *, after: Optional[str] = None) -> ChildListResult:
        """Lists the children of a run, with those that have ended. If there are more,
        the answer has next, and the same request with that as after returns the
        following part.
        """
        params = {"run": run, "after": after}
        return ChildListResult.read(await self._caller.call("agent.list", params))

    def list_all(self, run: str) -> AsyncIterator[Child]:
        """Yields the children of all parts of agent.list, in as many calls as that takes."""
        return pages_async(self.list, "children", {"run": run})

    async def tree(self, run: str, *, after: Optional[str] = None) -> ChildListResult:
        """Lists all runs below a run, each behind its parent. It continues as
        agent.list.
        """
        params = {"run": run, "after": after}
        return ChildListResult.read(await self._caller.call("agent.tree", params))

    def tree_all(self, run: str) -> AsyncIterator[Child]:
        """Yields the children of all parts of agent.tree, in as many calls as that takes."""
        return pages_async(self.tree, "children", {"run": run})


class ManifestMethods:
    """The methods manifest.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def add(
        self,
        name: str,
        spec: Union[Spec, Mapping[str, Any]],
        *,
        files: Optional[Sequence[Union[ManifestFile, Mapping[str, Any]]]] = None,
        key: Optional[str] = None,
    ) -> ManifestResult:
        """Keeps a manifest of the caller's, which agents with a spawn grant of its name
        may start. Grants that were given before hold what the name meant then.

        Args:
            name: of the agent in it
            spec: without id
            files: that the spec refers to
            key: the same key gets the same answer again
        """
        params = {"name": name, "spec": spec, "files": files, "key": key}
        return ManifestResult.read(await self._caller.call("manifest.add", params))

    async def list(self, *, after: Optional[str] = None) -> ManifestListResult:
        """Lists the manifests that the caller has added, also those that newer ones of
        the same name have replaced. If there are more, the answer has next, and the
        same request with that as after returns the following part.
        """
        params = {"after": after}
        return ManifestListResult.read(await self._caller.call("manifest.list", params))

    def list_all(self) -> AsyncIterator[AddedManifest]:
        """Yields the manifests of all parts of manifest.list, in as many calls as that takes."""
        return pages_async(self.list, "manifests", {})

    async def remove(self, name: str, *, key: Optional[str] = None) -> ManifestRemoveResult:
        """Forgets a manifest with those that it has replaced. Agents start nothing of
        it from now on; runs of it go on.

        Args:
            key: the same key gets the same answer again
        """
        params = {"name": name, "key": key}
        return ManifestRemoveResult.read(await self._caller.call("manifest.remove", params))


class ToolMethods:
    """The methods tool.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def add(
        self,
        tool: Union[Definition, Mapping[str, Any]],
        *,
        key: Optional[str] = None,
    ) -> ToolResult:
        """Keeps a tool of the caller's, a command, which agents of the caller's with a
        grant of its name may call. One of the same name is refused: remove it first.

        Args:
            key: the same key gets the same answer again
        """
        params = {"tool": tool, "key": key}
        return ToolResult.read(await self._caller.call("tool.add", params))

    async def show(self, tool: str) -> ToolResult:
        """Returns a tool of the caller's, or one that is built in."""
        params = {"tool": tool}
        return ToolResult.read(await self._caller.call("tool.show", params))

    async def kept(self, *, after: Optional[str] = None) -> ToolKeptResult:
        """Lists the tools that are built in and those that the caller has added. If
        there are more, the answer has next, and the same request with that as after
        returns the following part.
        """
        params = {"after": after}
        return ToolKeptResult.read(await self._caller.call("tool.kept", params))

    def kept_all(self) -> AsyncIterator[KeptTool]:
        """Yields the tools of all parts of tool.kept, in as many calls as that takes."""
        return pages_async(self.kept, "tools", {})

    async def remove(self, tool: str, *, key: Optional[str] = None) -> None:
        """Forgets a tool of the caller's. Calls that are at work come to their end.

        Args:
            key: the same key gets the same answer again
        """
        params = {"tool": tool, "key": key}
        await self._caller.call("tool.remove", params)

    async def list(self, run: str, *, after: Optional[str] = None) -> ToolListResult:
        """Lists the tools that a run's grants cover, with the schemas of their
        arguments. If there are more, the answer has next, and the same request with
        that as after returns the following part.

        Args:
            after: next of the part before
        """
        params = {"run": run, "after": after}
        return ToolListResult.read(await self._caller.call("tool.list", params))

    def list_all(self, run: str) -> AsyncIterator[Tool]:
        """Yields the tools of all parts of tool.list, in as many calls as that takes."""
        return pages_async(self.list, "tools", {"run": run})

    async def call(
        self,
        run: str,
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
            key: the same key gets the same answer again
        """
        params = {
            "run": run,
            "tool": tool,
            "arguments": arguments,
            "timeout_ms": timeout_ms,
            "key": key,
        }
        return ToolCallResult.read(await self._caller.call("tool.call", params))


class GrantMethods:
    """The methods grant.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def list(self, run: str, *, after: Optional[str] = None) -> GrantListResult:
        """Lists what a run may do: the rules of its network that allow something, and
        its grants, oldest first. If there are more, the answer has next, and the
        same request with that as after returns the following part.
        """
        params = {"run": run, "after": after}
        return GrantListResult.read(await self._caller.call("grant.list", params))

    def list_all(self, run: str) -> AsyncIterator[Grant]:
        """Yields the grants of all parts of grant.list, in as many calls as that takes."""
        return pages_async(self.list, "grants", {"run": run})

    async def give(
        self,
        run: str,
        grant: str,
        *,
        expires: Optional[datetime] = None,
        uses: Optional[int] = None,
        reason: Optional[str] = None,
        key: Optional[str] = None,
    ) -> GrantResult:
        """Gives a run a grant. A net grant acts at once on a run that has an agent
        socket.

        Args:
            grant: KIND:PATTERN[:RIGHTS]
            key: the same key gets the same answer again
        """
        params = {
            "run": run,
            "grant": grant,
            "expires": expires,
            "uses": uses,
            "reason": reason,
            "key": key,
        }
        return GrantResult.read(await self._caller.call("grant.give", params))

    async def derive(
        self,
        run: str,
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
            key: the same key gets the same answer again
        """
        params = {
            "run": run,
            "from": from_,
            "to": to,
            "grant": grant,
            "expires": expires,
            "uses": uses,
            "reason": reason,
            "key": key,
        }
        return GrantResult.read(await self._caller.call("grant.derive", params))

    async def revoke(self, run: str, id: str, *, key: Optional[str] = None) -> GrantRevokeResult:
        """Takes a grant back, with all that was derived from it. An agent may revoke
        only what it derived itself.

        Args:
            key: the same key gets the same answer again
        """
        params = {"run": run, "id": id, "key": key}
        return GrantRevokeResult.read(await self._caller.call("grant.revoke", params))

    async def check(self, run: str, what: str) -> GrantCheckResult:
        """Says whether a run may do one thing, and why; of the network what its gate
        would decide, by its rules and its grants. Nothing is used up.

        Args:
            what: KIND:PATTERN[:RIGHTS]
        """
        params = {"run": run, "what": what}
        return GrantCheckResult.read(await self._caller.call("grant.check", params))


class BudgetMethods:
    """The methods budget.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def get(self, run: str) -> BudgetResult:
        """Returns every budget that the run spends from."""
        params = {"run": run}
        return BudgetResult.read(await self._caller.call("budget.get", params))

    async def reserve(
        self,
        run: str,
        amounts: Mapping[str, int],
        *,
        key: Optional[str] = None,
    ) -> BudgetReserveResult:
        """Sets amounts of own dimensions aside, all or none.

        Args:
            amounts: by dimension
            key: the same key gets the same answer again
        """
        params = {"run": run, "amounts": amounts, "key": key}
        return BudgetReserveResult.read(await self._caller.call("budget.reserve", params))

    async def settle(
        self,
        run: str,
        reservation: str,
        amounts: Mapping[str, int],
        *,
        key: Optional[str] = None,
    ) -> BudgetResult:
        """Says what was used of a reservation; the rest is free again. More than was
        reserved counts as with budget.charge.

        Args:
            key: the same key gets the same answer again
        """
        params = {
            "run": run,
            "reservation": reservation,
            "amounts": amounts,
            "key": key,
        }
        return BudgetResult.read(await self._caller.call("budget.settle", params))

    async def release(self, run: str, reservation: str, *, key: Optional[str] = None) -> BudgetResult:
        """Frees a reservation of which nothing was used.

        Args:
            key: the same key gets the same answer again
        """
        params = {"run": run, "reservation": reservation, "key": key}
        return BudgetResult.read(await self._caller.call("budget.release", params))

    async def charge(
        self,
        run: str,
        amounts: Mapping[str, int],
        *,
        key: Optional[str] = None,
    ) -> BudgetResult:
        """Records what was used of own dimensions. It may exceed the run's own limit,
        because it has happened; then at_end is done. In accounts above the run it
        counts at most what is left of that limit and there; a run without a limit of
        its own is refused what is not left there, and every run where nothing is.

        Args:
            key: the same key gets the same answer again
        """
        params = {"run": run, "amounts": amounts, "key": key}
        return BudgetResult.read(await self._caller.call("budget.charge", params))

    async def raise_(
        self,
        run: str,
        amounts: Mapping[str, int],
        *,
        key: Optional[str] = None,
    ) -> BudgetResult:
        """Adds to what is granted to a run. A run that was paused for it goes on.

        Args:
            key: the same key gets the same answer again
        """
        params = {"run": run, "amounts": amounts, "key": key}
        return BudgetResult.read(await self._caller.call("budget.raise", params))

    async def reset(
        self,
        run: str,
        dimensions: Sequence[str],
        *,
        key: Optional[str] = None,
    ) -> BudgetResult:
        """Sets what a run has used of dimensions back to zero.

        Args:
            key: the same key gets the same answer again
        """
        params = {"run": run, "dimensions": dimensions, "key": key}
        return BudgetResult.read(await self._caller.call("budget.reset", params))

    async def set(
        self,
        account: str,
        *,
        limits: Optional[Sequence[str]] = None,
        at_end: Optional[str] = None,
        reset: Optional[Sequence[str]] = None,
        key: Optional[str] = None,
    ) -> BudgetResult:
        """Sets what all runs of a user, of a namespace or with a name may spend
        together, or with reset what they have used back to zero. Root sets the
        budget of a user, and a user those below it; only root changes or resets a
        limit that another user set.

        Args:
            account: UID, UID/ns:NAMESPACE or UID/name:NAME; for reset alone also UID/provider:NAME
            limits: DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT]
            at_end: with limits: end, pause or refuse; empty: end
            reset: dimensions of which nothing counts as used any more
            key: the same key gets the same answer again
        """
        params = {
            "account": account,
            "limits": limits,
            "at_end": at_end,
            "reset": reset,
            "key": key,
        }
        return BudgetResult.read(await self._caller.call("budget.set", params))

    async def list(self, *, account: Optional[str] = None, after: Optional[str] = None) -> BudgetListResult:
        """Lists what accounts may spend and have spent, with all accounts below them.
        If there are more, the answer has next, and the same request with that as
        after returns the following part.

        Args:
            account: with all below it; empty: the caller's own, of root all
            after: next of the answer before
        """
        params = {"account": account, "after": after}
        return BudgetListResult.read(await self._caller.call("budget.list", params))

    def list_all(self, *, account: Optional[str] = None) -> AsyncIterator[Budget]:
        """Yields the budgets of all parts of budget.list, in as many calls as that takes."""
        return pages_async(self.list, "budgets", {"account": account})

    async def report(
        self,
        *,
        from_: Optional[str] = None,
        to: Optional[str] = None,
        after: Optional[str] = None,
    ) -> BudgetReportResult:
        """Returns what users' runs spent by day and dimension, for the last 400 days on
        which something was spent; of everybody's for root, of one's own for others.
        If there is more, the answer has next, and the same request with that as
        after returns the following part.

        Args:
            to: included
            after: next of the answer before
        """
        params = {"from": from_, "to": to, "after": after}
        return BudgetReportResult.read(await self._caller.call("budget.report", params))

    def report_all(self, *, from_: Optional[str] = None, to: Optional[str] = None) -> AsyncIterator[DaySum]:
        """Yields the days of all parts of budget.report, in as many calls as that takes."""
        return pages_async(self.report, "days", {"from_": from_, "to": to})

    async def top(self, *, dimension: Optional[str] = None, limit: Optional[int] = None) -> BudgetTopResult:
        """Returns which runs spent most of each dimension in the last minute; of
        everybody's for root, of one's own for others.

        Args:
            dimension: empty: all
            limit: runs of each dimension, at most 100; 0: 10
        """
        params = {"dimension": dimension, "limit": limit}
        return BudgetTopResult.read(await self._caller.call("budget.top", params))


class MailMethods:
    """The methods mail.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def boxes(self, *, owner: Optional[int] = None, after: Optional[str] = None) -> MailBoxesResult:
        """Lists the mailboxes of the caller's runs and names, to root all. A run has
        one from the first message to it on. If there are more, the answer has next,
        and the same request with that as after returns the following part.

        Args:
            after: where the last answer ended
        """
        params = {"owner": owner, "after": after}
        return MailBoxesResult.read(await self._caller.call("mail.boxes", params))

    def boxes_all(self, *, owner: Optional[int] = None) -> AsyncIterator[Mailbox]:
        """Yields the mailboxes of all parts of mail.boxes, in as many calls as that takes."""
        return pages_async(self.boxes, "mailboxes", {"owner": owner})

    async def read(
        self,
        mailbox: str,
        *,
        owner: Optional[int] = None,
        after: Optional[str] = None,
    ) -> MailReadResult:
        """Returns the messages of a mailbox that its receiver has not acknowledged, and
        takes none out. If there are more, the answer has next, and the same request
        with that as after returns the following part.

        Args:
            mailbox: a run's name or id, a reserved name, or the id of a mailbox
            after: where the last answer ended
        """
        params = {"owner": owner, "mailbox": mailbox, "after": after}
        return MailReadResult.read(await self._caller.call("mail.read", params))

    def read_all(self, mailbox: str, *, owner: Optional[int] = None) -> AsyncIterator[Mail]:
        """Yields the messages of all parts of mail.read, in as many calls as that takes."""
        return pages_async(self.read, "messages", {"owner": owner, "mailbox": mailbox})

    async def post(
        self,
        to: str,
        body: Any,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        blob: Optional[str] = None,
        priority: Optional[int] = None,
        expires_ms: Optional[int] = None,
        wake: Optional[bool] = None,
        key: Optional[str] = None,
    ) -> MailSendResult:
        """Sends a message to a run or a name of the caller's, or for root of a user's.
        Its sender is the user, as uid:NUMBER.

        Args:
            owner: of the receiver; absent: the caller; only root names another
            namespace: of a registered name
            to: a registered name, or a run's name or id
            body: at most 48 KiB; null beside a blob: that alone
            blob: SHA-256 of one that the caller may read
            priority: 0 to 9; higher ones are received first
            expires_ms: from now; 0: never
            wake: start a run for the name if none holds it
            key: the same key gets the same answer again
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "to": to,
            "body": body,
            "blob": blob,
            "priority": priority,
            "expires_ms": expires_ms,
            "wake": wake,
            "key": key,
        }
        return MailSendResult.read(await self._caller.call("mail.post", params))

    async def dead(
        self,
        *,
        owner: Optional[int] = None,
        mailbox: Optional[str] = None,
        after: Optional[str] = None,
    ) -> MailDeadResult:
        """Lists messages that have expired or that their receivers have rejected. If
        there are more, the answer has next, and the same request with that as after
        returns the following part.

        Args:
            mailbox: as in MailReadParams
            after: where the last answer ended
        """
        params = {"owner": owner, "mailbox": mailbox, "after": after}
        return MailDeadResult.read(await self._caller.call("mail.dead", params))

    def dead_all(self, *, owner: Optional[int] = None, mailbox: Optional[str] = None) -> AsyncIterator[DeadLetter]:
        """Yields the letters of all parts of mail.dead, in as many calls as that takes."""
        return pages_async(self.dead, "letters", {"owner": owner, "mailbox": mailbox})

    async def requeue(self, id: str, *, key: Optional[str] = None) -> None:
        """Puts a dead letter back into its mailbox, at its place. It does not expire
        again.

        Args:
            key: the same key gets the same answer again
        """
        params = {"id": id, "key": key}
        await self._caller.call("mail.requeue", params)

    async def discard(self, id: str, *, key: Optional[str] = None) -> None:
        """Removes a dead letter.

        Args:
            key: the same key gets the same answer again
        """
        params = {"id": id, "key": key}
        await self._caller.call("mail.discard", params)


class NameMethods:
    """The methods name.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def reserve(
        self,
        name: str,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        tags: Optional[Sequence[str]] = None,
        manifest: Optional[str] = None,
        key: Optional[str] = None,
    ) -> NameResult:
        """Keeps a name of the caller's, or for root of a user's, also while no run
        holds it: mail to it waits for a run that does. With a manifest, mail with
        wake starts a run of it. A repetition replaces the tags and the manifest.

        Args:
            owner: absent: the caller; only root names another
            manifest: a manifest of the owner's and of the namespace, of which mail with wake starts a run; empty: none.
            key: the same key gets the same answer again
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "name": name,
            "tags": tags,
            "manifest": manifest,
            "key": key,
        }
        return NameResult.read(await self._caller.call("name.reserve", params))

    async def query(
        self,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        prefix: Optional[str] = None,
        tag: Optional[str] = None,
        after: Optional[str] = None,
    ) -> NameListResult:
        """Lists the names of the caller's namespaces, to root all, with the runs that
        hold them. If there are more, the answer has next, and the same request with
        that as after returns the following part.

        Args:
            namespace: exactly this one; the empty one is the owner's own
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "prefix": prefix,
            "tag": tag,
            "after": after,
        }
        return NameListResult.read(await self._caller.call("name.query", params))

    def query_all(
        self,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        prefix: Optional[str] = None,
        tag: Optional[str] = None,
    ) -> AsyncIterator[Name]:
        """Yields the names of all parts of name.query, in as many calls as that takes."""
        return pages_async(self.query, "names", {"owner": owner, "namespace": namespace, "prefix": prefix, "tag": tag})

    async def remove(
        self,
        name: str,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        key: Optional[str] = None,
    ) -> None:
        """Takes a name from all runs that hold it, and ends its reservation. A name
        whose mailbox is not empty is not removed.

        Args:
            owner: absent: the caller; only root names another
            key: the same key gets the same answer again
        """
        params = {"owner": owner, "namespace": namespace, "name": name, "key": key}
        await self._caller.call("name.remove", params)


class SecretMethods:
    """The methods secret.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def set(
        self,
        name: str,
        value: str,
        terms: Union[Terms, Mapping[str, Any]],
        *,
        uses: Optional[int] = None,
        expires: Optional[datetime] = None,
    ) -> SecretResult:
        """Keeps a secret of the caller's, encrypted, with the hosts and the requests
        that may carry it. No answer and no log has its value.

        Args:
            value: one line of printable ASCII without spaces, of 8 to 8192 bytes; of terms with ssh a private key, and of terms without a host any text of as many. No answer and no log has it.
            uses: how many requests may carry it; 0: any number
            expires: absent: never
        """
        params = {
            "name": name,
            "value": value,
            "terms": terms,
            "uses": uses,
            "expires": expires,
        }
        return SecretResult.read(await self._caller.call("secret.set", params))

    async def rotate(self, name: str, value: str) -> SecretResult:
        """Gives a secret another value. Runs that use it have that with their next
        request.
        """
        params = {"name": name, "value": value}
        return SecretResult.read(await self._caller.call("secret.rotate", params))

    async def remove(self, name: str) -> None:
        """Forgets a secret. Runs that use it can do so no more."""
        params = {"name": name}
        await self._caller.call("secret.remove", params)

    async def list(self, *, all: Optional[bool] = None) -> SecretListResult:
        """Lists secrets without their values, with the last use of each.

        Args:
            all: those of all users; root alone may
        """
        params = {"all": all}
        return SecretListResult.read(await self._caller.call("secret.list", params))

    async def check(self) -> SecretCheckResult:
        """Says which secrets of the caller's cannot be used: whose value cannot be
        decrypted, that have expired, or whose uses are used up.
        """
        params = {}
        return SecretCheckResult.read(await self._caller.call("secret.check", params))

    async def uses(self, *, name: Optional[str] = None) -> SecretUsesResult:
        """Lists the requests that carried secrets of the caller's, newest first, at
        most 256 of each secret.

        Args:
            name: empty: of all
        """
        params = {"name": name}
        return SecretUsesResult.read(await self._caller.call("secret.uses", params))

    async def use(self, run: str, secret: str, host: str, method: str, path: str) -> SecretUseResult:
        """A supervisor's: lets a request of a run carry a secret, and counts the use."""
        params = {
            "run": run,
            "secret": secret,
            "host": host,
            "method": method,
            "path": path,
        }
        return SecretUseResult.read(await self._caller.call("secret.use", params))

    def open(self, run: str, *, plain: Optional[bool] = None) -> Session[Any, SecretOpenResult]:
        """A supervisor's: returns the secrets that its run was started with. cloved
        says `kernel.ready`, the supervisor passes the writing end of a pipe with one
        byte, and cloved writes the values to it, for the process that puts them into
        requests. The answer has none.

        Args:
            plain: asks for the secrets that the agent is to read in files, absent for those that it never has.
        """
        params = {"run": run, "plain": plain}
        return Session(self._caller, "secret.open", params, dict, SecretOpenResult.read)


class ApprovalMethods:
    """The methods approval.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def ask(
        self,
        run: str,
        kind: str,
        *,
        what: Optional[str] = None,
        rule: Optional[str] = None,
        secret: Optional[Union[SecretUseParams, Mapping[str, Any]]] = None,
        expires_ms: Optional[int] = None,
    ) -> ApprovalResult:
        """Asks people about a connection of a run that no rule covers, for the run's
        supervisor. An equal question of the run is asked once, and its answer holds
        for all.

        Args:
            expires_ms: 0: an hour, and about a budget a day
        """
        params = {
            "run": run,
            "kind": kind,
            "what": what,
            "rule": rule,
            "secret": secret,
            "expires_ms": expires_ms,
        }
        return ApprovalResult.read(await self._caller.call("approval.ask", params))

    async def use(self, run: str, id: str) -> ApprovalResult:
        """Uses up a yes for one time, for the run's supervisor, before it does what was
        allowed. A second time it is refused.
        """
        params = {"run": run, "id": id}
        return ApprovalResult.read(await self._caller.call("approval.use", params))

    async def get(
        self,
        id: str,
        *,
        answered: Optional[bool] = None,
        within_ms: Optional[int] = None,
    ) -> ApprovalResult:
        """Returns a question of a run of the caller's, to root of all. With answered it
        comes when the question waits no more.

        Args:
            answered: wait until it is not waiting; the id is whole then
            within_ms: then the call is refused: not found, rule within; 0: it waits without end
        """
        params = {"id": id, "answered": answered, "within_ms": within_ms}
        return ApprovalResult.read(await self._caller.call("approval.get", params))

    async def list(
        self,
        *,
        state: Optional[str] = None,
        run: Optional[str] = None,
        after: Optional[str] = None,
    ) -> ApprovalListResult:
        """Lists the questions of the caller's runs, to root all. If there are more, the
        answer has next, and the same request with that as after returns the
        following part.

        Args:
            run: name or id
            after: where the last answer ended
        """
        params = {"state": state, "run": run, "after": after}
        return ApprovalListResult.read(await self._caller.call("approval.list", params))

    def list_all(self, *, state: Optional[str] = None, run: Optional[str] = None) -> AsyncIterator[Approval]:
        """Yields the approvals of all parts of approval.list, in as many calls as that takes."""
        return pages_async(self.list, "approvals", {"state": state, "run": run})

    async def respond(
        self,
        run: str,
        id: str,
        digest: str,
        allow: bool,
        *,
        for_ms: Optional[int] = None,
        once: Optional[bool] = None,
        reason: Optional[str] = None,
        command: Optional[bool] = None,
        fault: Optional[str] = None,
        key: Optional[str] = None,
    ) -> ApprovalResult:
        """Answers a question of a run of the caller's, or for root of any. The answer
        names the digest of what was seen, and holds for exactly that. A yes allows
        no more than the caller may allow by a rule.

        Args:
            digest: of what the person has seen: another one is refused
            for_ms: how long the answer holds; 0: to the end of the run
            once: a yes is for one time, and ends with it
            reason: at most 1024 bytes
            command: says that the run's --on-ask answers, and that its supervisor has checked the proof: for root alone. It is the answer of the run's owner. With fault the proof is wrong: that is recorded, and refused.
            key: the same key gets the same answer again
        """
        params = {
            "run": run,
            "id": id,
            "digest": digest,
            "allow": allow,
            "for_ms": for_ms,
            "once": once,
            "reason": reason,
            "command": command,
            "fault": fault,
            "key": key,
        }
        return ApprovalResult.read(await self._caller.call("approval.respond", params))


class JobsMethods:
    """The methods jobs.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def add(
        self,
        queue: str,
        body: Any,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        blob: Optional[str] = None,
        priority: Optional[int] = None,
        delay_ms: Optional[int] = None,
        deadline_ms: Optional[int] = None,
        attempts: Optional[int] = None,
        trace: Optional[str] = None,
        key: Optional[str] = None,
    ) -> JobResult:
        """Adds a job to a queue of the caller's, or for root of a user's.

        Args:
            owner: absent: the caller; only root names another
            body: at most 48 KiB; null beside a blob: that alone
            blob: SHA-256 of one that the caller may read
            priority: 0 to 9; higher ones are taken first
            delay_ms: from now; it is not taken before
            deadline_ms: from now; then it is dead, also while a run holds it; 0: never
            attempts: how often it is tried; absent: as the queue says
            trace: absent: a new one
            key: the same key gets the same answer again
        """
        params = {
            "owner": owner,
            "namespace": namespace,
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
        return JobResult.read(await self._caller.call("jobs.add", params))

    async def list(
        self,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        queue: Optional[str] = None,
        state: Optional[str] = None,
        after: Optional[str] = None,
    ) -> JobsListResult:
        """Lists the jobs of the caller's queues, to root all, with those that are dead
        and the last ones that are done. If there are more, the answer has next, and
        the same request with that as after returns the following part.

        Args:
            namespace: exactly this one; the empty one is the owner's own
            after: where the last answer ended
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "queue": queue,
            "state": state,
            "after": after,
        }
        return JobsListResult.read(await self._caller.call("jobs.list", params))

    def list_all(
        self,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        queue: Optional[str] = None,
        state: Optional[str] = None,
    ) -> AsyncIterator[Job]:
        """Yields the jobs of all parts of jobs.list, in as many calls as that takes."""
        return pages_async(self.list, "jobs", {
            "owner": owner,
            "namespace": namespace,
            "queue": queue,
            "state": state,
        })

    async def show(self, id: str) -> JobResult:
        """Returns a job of a queue of the caller's."""
        params = {"id": id}
        return JobResult.read(await self._caller.call("jobs.show", params))

    async def retry(self, id: str, *, key: Optional[str] = None) -> JobResult:
        """Makes a dead job ready again, with all its attempts and without its deadline;
        one that is delayed is ready at once.

        Args:
            key: the same key gets the same answer again
        """
        params = {"id": id, "key": key}
        return JobResult.read(await self._caller.call("jobs.retry", params))

    async def cancel(self, id: str, *, key: Optional[str] = None) -> JobResult:
        """Removes a job that is not done. A run that holds it holds it no more; one
        that clove has started for it is ended.

        Args:
            key: the same key gets the same answer again
        """
        params = {"id": id, "key": key}
        return JobResult.read(await self._caller.call("jobs.cancel", params))


class QueueMethods:
    """The methods queue.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def add(
        self,
        name: str,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        manifest: Optional[str] = None,
        concurrency: Optional[int] = None,
        attempts: Optional[int] = None,
        backoff_ms: Optional[int] = None,
        lease_ms: Optional[int] = None,
        key: Optional[str] = None,
    ) -> QueueResult:
        """Makes a queue of jobs of the caller's, or for root of a user's. A repetition
        replaces its settings. With a manifest clove starts a run for each job, which
        the owner of the queue pays for.

        Args:
            owner: absent: the caller; only root names another
            namespace: absent: the manifest's
            manifest: that clove starts for each job; the job is its stdin
            concurrency: absent: 1 with a manifest, and else as many as there are
            attempts: absent: 3
            backoff_ms: absent: 1000
            lease_ms: absent: 60000
            key: the same key gets the same answer again
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "name": name,
            "manifest": manifest,
            "concurrency": concurrency,
            "attempts": attempts,
            "backoff_ms": backoff_ms,
            "lease_ms": lease_ms,
            "key": key,
        }
        return QueueResult.read(await self._caller.call("queue.add", params))

    async def list(
        self,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        after: Optional[str] = None,
    ) -> QueueListResult:
        """Lists the queues of the caller's, to root all. If there are more, the answer
        has next, and the same request with that as after returns the following part.

        Args:
            namespace: exactly this one; the empty one is the owner's own
            after: where the last answer ended
        """
        params = {"owner": owner, "namespace": namespace, "after": after}
        return QueueListResult.read(await self._caller.call("queue.list", params))

    def list_all(self, *, owner: Optional[int] = None, namespace: Optional[str] = None) -> AsyncIterator[Queue]:
        """Yields the queues of all parts of queue.list, in as many calls as that takes."""
        return pages_async(self.list, "queues", {"owner": owner, "namespace": namespace})

    async def remove(
        self,
        name: str,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        key: Optional[str] = None,
    ) -> None:
        """Removes a queue in which no job waits, is held or is dead.

        Args:
            owner: absent: the caller; only root names another
            key: the same key gets the same answer again
        """
        params = {"owner": owner, "namespace": namespace, "name": name, "key": key}
        await self._caller.call("queue.remove", params)


class ModelMethods:
    """The methods model.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def queue(self, run: str) -> ModelQueueResult:
        """Returns the run's calls of models that wait for their turn: the position of
        each, and how long it is expected to wait.
        """
        params = {"run": run}
        return ModelQueueResult.read(await self._caller.call("model.queue", params))

    async def list(self) -> ModelListResult:
        """Lists the language models that the caller may use, with the providers that
        serve them and their state.
        """
        params = {}
        return ModelListResult.read(await self._caller.call("model.list", params))

    async def prices(self) -> ModelPricesResult:
        """Returns what the tokens of models cost, with date and source. Rows for a
        provider that the caller may not use are left out.
        """
        params = {}
        return ModelPricesResult.read(await self._caller.call("model.prices", params))

    async def test(self, model: str) -> ModelTestResult:
        """Makes one small call of a model, as an agent would but from no budget, and
        says how it went. A call that failed is a result, with failure. It takes two
        minutes at most.
        """
        params = {"model": model}
        return ModelTestResult.read(await self._caller.call("model.test", params))

    async def top(self) -> ModelTopResult:
        """Returns which runs use models now, and what they used in the last minute;
        everybody's for root, one's own for others. Runs without cloved are not among
        them.
        """
        params = {}
        return ModelTopResult.read(await self._caller.call("model.top", params))


class AuditMethods:
    """The methods audit.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def read(self, run: str, namespace: str, *, after: Optional[int] = None) -> AuditReadResult:
        """Returns records of the audit log about a namespace of the run's owner. An
        agent needs a grant of kind audit that covers it. If there is more, the
        answer has next, and the same request with that as after returns the
        following part, which may be empty.

        Args:
            namespace: with those below it
        """
        params = {"run": run, "namespace": namespace, "after": after}
        return AuditReadResult.read(await self._caller.call("audit.read", params))

    def read_all(self, run: str, namespace: str) -> AsyncIterator[Any]:
        """Yields the records of all parts of audit.read, in as many calls as that takes."""
        return pages_async(self.read, "records", {"run": run, "namespace": namespace})

    def query(
        self,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        run: Optional[str] = None,
        kind: Optional[str] = None,
        verdict: Optional[str] = None,
        since: Optional[datetime] = None,
        until: Optional[datetime] = None,
        text: Optional[str] = None,
        after: Optional[int] = None,
        last: Optional[int] = None,
        follow: Optional[bool] = None,
    ) -> Stream[AuditRecordNote, AuditQueryResult]:
        """Returns records of the audit log, as audit.record notifications: those about
        the caller's runs and namespaces, to root all. Nothing is verified: root does
        that with clove audit verify.

        Args:
            namespace: this one and those below it
            run: name or id; of one that is gone the id
            since: inclusive
            until: exclusive
            text: anywhere in the record's line
            last: only the last so many, at most 10000
            follow: go on until the request is cancelled
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "run": run,
            "kind": kind,
            "verdict": verdict,
            "since": since,
            "until": until,
            "text": text,
            "after": after,
            "last": last,
            "follow": follow,
        }
        return Stream(self._caller, "audit.query", params, AuditRecordNote.read, AuditQueryResult.read)

    async def trace(
        self,
        id: str,
        *,
        depth: Optional[int] = None,
        down: Optional[bool] = None,
    ) -> TraceResult:
        """Returns from what an event, a call, a message or a run follows, step by step
        over agents up to what began it, or with down what follows from it: by the
        audit log, of which the newest GiB is searched. A member sees its own runs
        and calls.

        Args:
            id: of an event, a call, a message or a run
            depth: at most so many steps, 1 to 100; absent: 10
            down: what follows from it, at most 100 records; absent: from what it follows
        """
        params = {"id": id, "depth": depth, "down": down}
        return TraceResult.read(await self._caller.call("audit.trace", params))


class BlobMethods:
    """The methods blob.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def upload(
        self,
        bytes: int,
        *,
        owner: Optional[int] = None,
        key: Optional[str] = None,
    ) -> BlobOpenResult:
        """Begins an upload of a blob of the caller's, or for root of a user's: a body
        of up to 64 MiB, which mail.post and state.write name by its SHA-256. The
        upload expires after an hour.

        Args:
            owner: of the blob; absent: the caller; only root names another
            bytes: of the whole blob, 1 to 64 MiB
            key: the same key gets the same answer again
        """
        params = {"owner": owner, "bytes": bytes, "key": key}
        return BlobOpenResult.read(await self._caller.call("blob.upload", params))

    async def part(self, upload: str, offset: int, data: bytes) -> BlobWriteResult:
        """Writes a part of an upload, of at most 36 KiB. The parts come in their order;
        one may be written again.

        Args:
            offset: of the part; not behind the end of what is written
            data: at most 36 KiB, as base64
        """
        params = {"upload": upload, "offset": offset, "data": data}
        return BlobWriteResult.read(await self._caller.call("blob.part", params))

    async def finish(
        self,
        upload: str,
        *,
        sha256: Optional[str] = None,
        key: Optional[str] = None,
    ) -> BlobResult:
        """Ends an upload, and returns the SHA-256 of the blob, which is durable then.
        If no message and no key names it, it is removed after an hour.

        Args:
            sha256: what the digest must be; absent: anything
            key: the same key gets the same answer again
        """
        params = {"upload": upload, "sha256": sha256, "key": key}
        return BlobResult.read(await self._caller.call("blob.finish", params))

    async def list(self, *, owner: Optional[int] = None, after: Optional[str] = None) -> BlobListResult:
        """Returns the blobs of the caller, for root of all: their sizes, and how many
        messages, keys and uploads refer to each. If there are more, the answer has
        next, and the same request with that as after returns the following part.

        Args:
            owner: absent: the caller's, for root all; only root names another
            after: where the last answer ended
        """
        params = {"owner": owner, "after": after}
        return BlobListResult.read(await self._caller.call("blob.list", params))

    def list_all(self, *, owner: Optional[int] = None) -> AsyncIterator[KeptBlob]:
        """Yields the blobs of all parts of blob.list, in as many calls as that takes."""
        return pages_async(self.list, "blobs", {"owner": owner})

    async def fetch(
        self,
        blob: str,
        *,
        owner: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> BlobReadResult:
        """Returns a part of a blob of the caller's, or for root of a user's.

        Args:
            owner: absent: the caller; only root names another
            blob: its SHA-256
            offset: of the part
        """
        params = {"owner": owner, "blob": blob, "offset": offset}
        return BlobReadResult.read(await self._caller.call("blob.fetch", params))


class StateMethods:
    """The methods state.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def query(
        self,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        name: Optional[str] = None,
        path: Optional[str] = None,
        after: Optional[str] = None,
    ) -> StateListResult:
        """Lists the keys that agents share in a scope of the caller's, at a path and
        below it, without their values. If there are more, the answer has next, and
        the same request with that as after returns the following part.

        Args:
            owner: absent: the caller; only root names another
            namespace: absent: runs that have none
            name: the scope of this name; absent: that of the namespace
            path: absent: all keys of the scope
            after: next of the answer before, to go on behind it
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "name": name,
            "path": path,
            "after": after,
        }
        return StateListResult.read(await self._caller.call("state.query", params))

    def query_all(
        self,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        name: Optional[str] = None,
        path: Optional[str] = None,
    ) -> AsyncIterator[StateEntry]:
        """Yields the keys of all parts of state.query, in as many calls as that takes."""
        return pages_async(self.query, "keys", {"owner": owner, "namespace": namespace, "name": name, "path": path})

    async def read(
        self,
        path: str,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        name: Optional[str] = None,
    ) -> StateResult:
        """Returns a key that agents share, with its value and its version, which is 0
        where there is none.

        Args:
            owner: absent: the caller; only root names another
            namespace: absent: runs that have none
            name: the scope of this name; absent: that of the namespace
        """
        params = {"owner": owner, "namespace": namespace, "name": name, "path": path}
        return StateResult.read(await self._caller.call("state.read", params))

    async def write(
        self,
        path: str,
        value: Any,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        name: Optional[str] = None,
        if_version: Optional[int] = None,
        blob: Optional[str] = None,
        expires_ms: Optional[int] = None,
        key: Optional[str] = None,
    ) -> StateSetResult:
        """Sets a key that agents share, as state.set.

        Args:
            owner: absent: the caller; only root names another
            namespace: absent: runs that have none
            name: the scope of this name; absent: that of the namespace
            if_version: the version that there must be, 0: none; absent: any
            value: at most 48 KiB; null beside a blob: that alone
            blob: SHA-256 of one that the caller may read
            expires_ms: from now; 0: never
            key: the same key gets the same answer again
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "name": name,
            "if_version": if_version,
            "path": path,
            "value": value,
            "blob": blob,
            "expires_ms": expires_ms,
            "key": key,
        }
        return StateSetResult.read(await self._caller.call("state.write", params))

    async def remove(
        self,
        path: str,
        *,
        owner: Optional[int] = None,
        namespace: Optional[str] = None,
        name: Optional[str] = None,
        if_version: Optional[int] = None,
        key: Optional[str] = None,
    ) -> StateDeleteResult:
        """Removes a key that agents share, as state.delete.

        Args:
            owner: absent: the caller; only root names another
            namespace: absent: runs that have none
            name: the scope of this name; absent: that of the namespace
            if_version: the version that there must be, 0: none; absent: any
            key: the same key gets the same answer again
        """
        params = {
            "owner": owner,
            "namespace": namespace,
            "name": name,
            "if_version": if_version,
            "path": path,
            "key": key,
        }
        return StateDeleteResult.read(await self._caller.call("state.remove", params))


class EventMethods:
    """The methods event.*."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def follow(
        self,
        *,
        after: Optional[int] = None,
        since: Optional[datetime] = None,
        follow: Optional[bool] = None,
        run: Optional[str] = None,
        what: Optional[Sequence[str]] = None,
    ) -> Stream[EventNote, EventResult]:
        """Returns what happened to runs, numbered, as event.happened notifications.
        Continue from the number of the last one, also after a restart of cloved.

        Args:
            after: the sequence number of the last event that the caller knows; absent: only what happens from now on. 0 asks for all that is kept.
            follow: go on until the request is cancelled
            run: only of the run with this name or id
            what: only these
        """
        params = {
            "after": after,
            "since": since,
            "follow": follow,
            "run": run,
            "what": what,
        }
        return Stream(self._caller, "event.follow", params, EventNote.read, EventResult.read)


class Methods:
    """Every method, by its noun."""

    def __init__(self, caller: Caller) -> None:
        self.daemon = DaemonMethods(caller)
        self.run = RunMethods(caller)
        self.home = HomeMethods(caller)
        self.agent = AgentMethods(caller)
        self.manifest = ManifestMethods(caller)
        self.tool = ToolMethods(caller)
        self.grant = GrantMethods(caller)
        self.budget = BudgetMethods(caller)
        self.mail = MailMethods(caller)
        self.name = NameMethods(caller)
        self.secret = SecretMethods(caller)
        self.approval = ApprovalMethods(caller)
        self.jobs = JobsMethods(caller)
        self.queue = QueueMethods(caller)
        self.model = ModelMethods(caller)
        self.audit = AuditMethods(caller)
        self.blob = BlobMethods(caller)
        self.state = StateMethods(caller)
        self.event = EventMethods(caller)


_STANDARD = json.loads("{\"id\":\"\",\"name\":\"\",\"command\":null,\"env\":[\"HOME=/home/agent\",\"LANG=C.UTF-8\",\"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"],\"dir\":\"/workspace\",\"user\":{\"name\":\"agent\",\"uid\":1000,\"gid\":1000,\"home\":\"/home/agent\"},\"limits\":{\"memory_bytes\":1073741824,\"memory_swap_bytes\":1073741824,\"pids\":512,\"rlimits\":[{\"name\":\"core\",\"soft\":0,\"hard\":0},{\"name\":\"nice\",\"soft\":0,\"hard\":0},{\"name\":\"nofile\",\"soft\":4096,\"hard\":4096},{\"name\":\"rtprio\",\"soft\":0,\"hard\":0}],\"stop_grace_ns\":2000000000,\"disk_bytes\":1073741824,\"shm_bytes\":67108864},\"files\":{},\"seccomp\":{\"profile\":\"standard\"},\"network\":\"none\",\"egress\":{\"limits\":{\"connections\":1024,\"per_second\":200}},\"policy\":{\"name\":\"standard\",\"sha256\":\"f43e02f4aa9c78ca37ce9f860e75bc081983712d17f79a021e866e6c80d9162a\"}}")


def standard() -> Spec:
    """A run as the level standard has it: what a start of clove adds to a command and a name."""
    return Spec.read(_STANDARD)


__all__ = [
    "InfoResult",
    "JobCounts",
    "SummaryResult",
    "PanicResult",
    "CheckResult",
    "DebugResult",
    "User",
    "HostName",
    "Rlimit",
    "Limits",
    "Bind",
    "Tmpfs",
    "Home",
    "Files",
    "Seccomp",
    "EgressRule",
    "PublishedPort",
    "Egress",
    "Kernel",
    "Shadow",
    "Restart",
    "Ready",
    "Spec",
    "Owner",
    "QueueState",
    "Lease",
    "Container",
    "Ancestor",
    "ManifestFile",
    "Run",
    "RunResult",
    "ListResult",
    "WaitResult",
    "PruneResult",
    "Stats",
    "StatsResult",
    "Process",
    "ProcessesResult",
    "LogLine",
    "LogNote",
    "AttachResult",
    "SessionDenied",
    "SessionBudget",
    "SessionOutput",
    "ExecResult",
    "DiffResult",
    "ChangeContents",
    "Change",
    "ChangeNote",
    "ApplyResult",
    "KeptHome",
    "HomesResult",
    "AddedManifest",
    "ManifestResult",
    "ManifestListResult",
    "ManifestRemoveResult",
    "KeptTool",
    "ToolResult",
    "ToolKeptResult",
    "BudgetListResult",
    "DaySum",
    "BudgetReportResult",
    "Spender",
    "BudgetTopResult",
    "Mailbox",
    "MailBoxesResult",
    "MailReadResult",
    "DeadLetter",
    "MailDeadResult",
    "SSH",
    "Terms",
    "SecretUse",
    "Secret",
    "SecretResult",
    "SecretListResult",
    "SecretCheckResult",
    "SecretUsesResult",
    "SecretUseResult",
    "SecretOpenResult",
    "ApprovalResult",
    "JobsListResult",
    "QueueListResult",
    "ModelTarget",
    "Model",
    "ModelListResult",
    "ModelRates",
    "ModelPrice",
    "ModelPricesResult",
    "ModelFailure",
    "ModelTestResult",
    "ModelRun",
    "ModelTopResult",
    "KeptBlob",
    "BlobListResult",
    "AuditQueryResult",
    "AuditRecordNote",
    "EventResult",
    "Sum",
    "RunEvent",
    "EventNote",
    "SessionSize",
    "Update",
    "Exec",
    "Definition",
    "SecretUseParams",
]
