package runtime

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/undo"
	"clove.run/clove/landlock"
	"clove.run/clove/rootfs"
)

// launch is one run from its first step to its record. It is used by one
// goroutine; other goroutines send it what they have over channels.
type launch struct {
	runtime *Runtime
	spec    agent.Spec
	trace   *trace
	streams IO

	// Set by prepare, before anything exists.
	probes  *probes
	held    enforcement
	filters filters
	plan    rootfs.Plan     // checked, but not yet for the leased ids
	rules   *egress.Rules   // nil: no gate
	files   *landlock.Rules // nil: the agent is in no Landlock domain
	// readable are the real paths of the list of what may be read.
	readable []string

	shadow *shadowRecorder // nil: the run has no shadow

	known     atomic.Bool // the run is in the store: all above and dir and run are set, and change no more
	leftovers leftovers

	placement cgroups.Placement // where its cgroups are to be
	parent    *parent           // nil: a person started it
	sum       *cgroups.Group    // of it and all that it starts; nil: it starts none, or is not so far
	bound     *boottime.Alarm   // its deadline; nil: it has none

	undo undo.Stack // takes back everything below, last first
	dir  *runDirectory
	run  agent.Run
	// Each pointer below is nil until its step has made what it refers to: the teardown
	// must work after a failure of any step.
	network  *network
	gate     *gated           // nil: none
	thread   *nsthread.Thread // owns the mount namespace; alive until the sandbox is gone
	tree     *rootfs.Tree
	pipes    *streams
	box      *sandbox
	group    *cgroups.Group
	conn     *initproto.Conn
	ruleset  *os.File     // made of files; nil where that is
	sockets  *socketWatch // nil: they are not limited
	refusals *refusals
	calls    *calls                  // nil: no filter
	denials  *denials                // nil: no filter
	uses     *useRecorder            // nil: the run is not observed
	share    *share                  // nil: the run has no part in what agents share
	secrets  *secretsUsed            // nil: it may use none
	models   func() []agent.ModelUse // what its calls of models have used; nil: it may call none
	programs *net.UnixListener       // over which programs of tools come; nil: it may call none
	sessions sync.WaitGroup          // exec sessions, copies and readers of a Live, from before they start until they are gone
	occupied bool                    // a session did not end: the launch thread may not be free
	keep     bool                    // the layer outlives the run
	goesOn   func() error            // says that the present step makes progress; an error: it must end
	stale    error                   // why an old layer is still there, or the log has no description
}

// agentOrders are the orders that make a process the agent: command, environment, ids,
// capabilities, limits. An exec session begins with the same.
func agentOrders(spec agent.Spec, rlimits []agent.Rlimit) *initproto.Orders {
	limits := spec.Limits
	orders := &initproto.Orders{
		Argv: initproto.Strings(spec.Command), Env: initproto.Strings(spec.Env), Dir: spec.Dir,
		UID: spec.User.UID, GID: spec.User.GID, Caps: capabilitiesOf(spec),
		WallClock: limits.WallClock, StopGrace: limits.StopGrace, StopSignal: limits.StopSignal,
	}
	for _, r := range rlimits {
		orders.Rlimits = append(orders.Rlimits, initproto.Rlimit{Name: r.Name, Soft: r.Soft, Hard: r.Hard})
	}
	return orders
}

// attainableRlimits are the requested limits. If the run may do with less, each is lowered
// to the highest value that this process can set.
func attainableRlimits(spec agent.Spec, held enforcement, p prober) []agent.Rlimit {
	if held.lacks(agent.ControlRlimits) {
		return attainable(spec.Limits.Rlimits, p)
	}
	return spec.Limits.Rlimits
}

// leftovers of killed cloves, as the store showed them when a run in the foreground became
// known.
type leftovers struct {
	dead []agent.Run
	live map[agent.ID]bool
}

// record also serves a start that failed: what was not reached is zero or absent. A run
// that never came to its execve has no start time of its own and gets that of the request.
func (l *launch) record(seen outcome, stats cgroups.Stats, ended time.Time) agent.Record {
	v := judge(l.spec.Limits, seen)
	started := l.run.Started
	if started.IsZero() {
		started = l.run.Created
	}
	r := agent.Record{
		Version: agent.RecordVersion, ID: l.spec.ID, Name: l.spec.Name, Namespace: l.spec.Kernel.Namespace, Parent: l.run.Parent, Command: l.spec.Command,
		Started: started.UTC(), Ended: ended.UTC(), WallMS: seen.wall.Milliseconds(), ExecutedMS: roundedUp(seen.executed),
		Status: v.status, ExitCode: v.exitCode, Signal: v.signal, Error: v.failure, Limit: v.limit,
		Usage: usage(seen, stats), Events: events(seen, stats),
		Enforced: l.held.enforced, Unenforced: l.held.unenforced, ReadableSecrets: l.spec.Kernel.ReadableSecrets(), Policy: l.spec.Policy, Manifest: l.spec.Manifest,
		Host: agent.Host{Kernel: kernelRelease(), Cgroup: string(l.probes.cgroups.Mode())},
	}
	l.gate.enter(&r, l.spec.Network, l.spec.Egress.Limits)
	if l.share != nil {
		r.Asked = l.share.questions.record(l.spec, r.Network)
	}
	r.Denials = append(r.Denials, l.denials.list()...)
	slices.SortStableFunc(r.Denials, byTime)
	if l.models != nil {
		r.Usage.Models = l.models()
	}
	if l.pipes != nil {
		r.Streams = l.pipes.mail.used()
	}
	l.shadow.enter(&r, l.spec, l.gate.shadowed(), l.share.charged(l.run, l.spec.Shadow), l.calls != nil && !l.calls.unseen())
	return r
}

// usage has nil for what this host does not count; the record then lacks the field instead
// of claiming 0.
func usage(seen outcome, stats cgroups.Stats) agent.Usage {
	u := agent.Usage{
		CPUMS: millis(seen.cpu), StartCPUMS: millis((*time.Duration)(positive(seen.spent.CPUNS))), CPUUserMS: millis(stats.CPUUser), CPUSystemMS: millis(stats.CPUSystem),
		CPUThrottledMS: millis(stats.CPUThrottled), MemoryPeakBytes: stats.MemoryPeakBytes,
		StartMemoryPeakBytes: positive(seen.spent.MemoryPeakBytes), PidsPeak: stats.PidsPeak,
		IOReadBytes: stats.IOReadBytes, IOWriteBytes: stats.IOWriteBytes, DiskBytes: seen.diskUsed,
	}
	if seen.startError == nil {
		u.OutputBytes = &seen.output
	}
	return u
}

func events(seen outcome, stats cgroups.Stats) agent.Events {
	return agent.Events{
		OOMKill: stats.OOMKills, PidsMax: stats.PidsMaxEvents,
		MemoryHigh: stats.MemoryHighEvents, CPUThrottledPeriods: stats.CPUThrottledPeriods,
	}
}

func kernelRelease() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// trace writes what --debug shows: the plan, and what each step took.
type trace struct {
	to    io.Writer // nil: nothing is traced
	began time.Time
	done  func(name string, began time.Time) // called after each step; nil: none
}

func newTrace(streams IO) *trace {
	return &trace{to: streams.Debug, began: time.Now(), done: streams.Step}
}

func (t *trace) step(name string, began time.Time) {
	if t.done != nil {
		t.done(name, began)
	}
	if t.to != nil {
		fmt.Fprintf(t.to, "clove: %8.3f ms  %-10s %.3f ms\n", ms(time.Since(t.began)), name, ms(time.Since(began)))
	}
}

func (t *trace) plan(plan fmt.Stringer) {
	if t.to != nil {
		fmt.Fprint(t.to, plan.String())
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
