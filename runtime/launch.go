package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress"
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

	watcher *watcher // nil: the run has no shadow

	known     atomic.Bool // the run is in the store: all above and dir and run are set, and change no more
	leftovers leftovers

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
	observer *observer               // nil: the run is not observed
	share    *share                  // nil: the run has no part in what agents share
	models   func() []agent.ModelUse // what its calls of models have used; nil: it may call none
	sessions sync.WaitGroup          // exec sessions, copies and readers of a Live, from before they start until they are gone
	occupied bool                    // a session did not end: the launch thread may not be free
	keep     bool                    // the layer outlives the run
	stale    error                   // why an old layer is still there, or the log has no description
}

// step is one row of the launch; its name is what a failure reports.
type step struct {
	name string
	do   func(*launch) error
}

// steps are the launch after the run was registered. The order is in doc.go.
var steps = []step{
	{"network", (*launch).awaitNetwork},
	{"kernel", (*launch).attach},
	{"models", (*launch).openModels},
	{"gate", (*launch).openGate},
	{"rootfs", (*launch).makeRoot},
	{"streams", (*launch).connect},
	{"create", (*launch).create},
	{"start", (*launch).start},
	{"verify", (*launch).verify},
	{"observe", (*launch).observe},
	{"orders", (*launch).order},
}

// execute runs the steps in order and stops at the first failure; begin may
// forbid each.
func (l *launch) execute(begin func(step string) error) error {
	for _, s := range steps {
		if err := begin(s.name); err != nil {
			return err
		}
		began := time.Now()
		err := l.runtime.fault(s.name)
		if err == nil {
			err = s.do(l)
		}
		// gofail: var launchStep string
		// if err == nil { err = failpoint(launchStep, s.name) }

		l.trace.step(s.name, began)
		if err != nil {
			return stepFailed(s.name, err)
		}
	}
	return nil
}

// stepFailed names the step of a failure, and where to look further unless the
// failure says that itself.
func stepFailed(step string, err error) error {
	var known *agent.Error
	if errors.As(err, &known) && known.Step != "" {
		return err
	}
	hint := "`clove doctor` shows what this host lacks, `clove run --debug` the plan and each step"
	switch {
	case errors.Is(err, rootfs.ErrLayerDamaged):
		hint = "`clove restart --fresh` begins with a new layer; what the agent wrote is lost then"
	case errors.Is(err, rootfs.ErrLayerBusy):
		hint = "wait for whoever reads it (`clove diff`), and restart the run"
	case errors.Is(err, rootfs.ErrLoopForbidden):
		hint = "start it with --device-cgroup-rule 'b 7:* rw' (docs/docker.md)"
	case errors.Is(err, rootfs.ErrUnmappable):
		hint = "in a container put it on a volume, whose owners can be mapped; otherwise it is copied, and the copy has to fit into --disk"
	}
	return &agent.Error{Step: step, Message: "cannot start the agent", Err: err, Hint: hint}
}

func (l *launch) awaitNetwork() error { return l.network.await() }

// makeRoot starts the launch thread and builds the root on it. An old layer that could not
// be removed fails here and not in register, because from here on the run has a record to
// say so. Decision 2 (docs/decisions) says why the mounts belong to this thread.
func (l *launch) makeRoot() (err error) {
	if l.stale != nil {
		return l.stale
	}
	plan, err := l.onLayer().OnIDs(l.run.Lease.HostID())
	if err != nil {
		return err
	}
	l.trace.plan(plan)
	if err := l.describeLayer(); err != nil {
		return err
	}
	// Before the thread leaves the host's mount namespace; see there.
	holdCgroupRoot()
	if l.thread, err = nsthread.Start(unix.CLONE_NEWNS); err != nil {
		return err
	}
	// Added first, so closed last: the undo of the root and of the sandbox runs on this
	// thread.
	l.undo.Add("launch thread", func() error { l.thread.Close(); return nil })
	err = l.thread.Do(func() (err error) { l.tree, err = plan.Mount(); return err })
	if err != nil {
		return err
	}
	l.undo.Add("root", func() error { return l.thread.Do(l.closeTree) })
	if l.spec.Restart.Policy.Restarts() {
		return l.tree.Sync() // else the start after a power cut finds nothing to go on with
	}
	return nil
}

// rootConfig is the part of a spec that the root is made of.
func rootConfig(paths Paths, spec agent.Spec, hostID uint32) rootfs.Config {
	c := rootfs.Config{
		ID: string(spec.ID), HostID: hostID, AgentUID: spec.User.UID, AgentGID: spec.User.GID,
		Hostname: hostname(spec), StateDir: paths.State, RunDir: paths.runDirectory(spec.ID),
		DiskBytes: spec.Limits.DiskBytes, MemoryBytes: spec.Limits.MemoryBytes,
		Rootfs: spec.Files.Rootfs, Workspace: spec.Files.Workspace, ReadOnly: spec.Files.ReadOnly, Writable: spec.Files.Writable, Execute: spec.Files.Execute, Command: commandOf(spec),
		Prefixes: spec.Files.Prefixes, MoreHosts: moreHosts(spec),
	}
	if spec.Kernel.HasSocket() {
		c.Services = paths.services(spec.ID)
	}
	for _, b := range spec.Files.Binds {
		c.Binds = append(c.Binds, rootfs.Bind{Source: b.Source, Target: b.Target, ReadOnly: b.ReadOnly})
	}
	for _, t := range spec.Files.Tmpfs {
		c.Tmpfs = append(c.Tmpfs, rootfs.Tmpfs{Target: t.Target, SizeBytes: t.SizeBytes, Mode: t.Mode})
	}
	return c
}

// connect makes the streams. Without a terminal these are pipes; copying begins at once,
// the agent's ends are passed on by start.
func (l *launch) connect() error {
	l.pipes = newStreams(l.spec.Limits.OutputBytes)
	l.undo.Add("streams", l.pipes.abandon)
	if l.spec.Terminal {
		return l.pipes.connectNull() // the pty comes from inside, with Started
	}
	return l.pipes.connectPipes(l.streams)
}

// create compiles the config and makes libcontainer's container from it. It runs on the
// launch thread, because only that thread sees the root.
func (l *launch) create() error {
	placement := l.probes.cgroups.Place(l.runtime.cgroupName(l.spec.ID))
	// At every start: systemd may have disabled controllers of the slice since the last
	// one.
	if err := l.probes.cgroups.Prepare(); err != nil {
		return err
	}
	// Which files there are depends on the processors, so they are looked up at each start.
	thermal, _ := filepath.Glob("/sys/devices/system/cpu/cpu*/thermal_throttle") // the pattern is well-formed
	now := hostClocks()
	config := compile(l.spec, surroundings{
		Root: l.tree.Root, HostID: l.run.Lease.HostID(), NetworkPath: l.network.path(),
		CgroupsPath: placement.OCIPath, CgroupV2: l.probes.cgroups.Mode() == cgroups.ModeV2,
		SwapLimited: l.probes.cgroups.SwapAccounting(), Unenforced: l.held.unenforced,
		Raised: raised(attainableRlimits(l.spec, l.held, l.probes), l.probes), ThermalDirs: thermal, Clocks: now,
	})
	return l.thread.Do(func() (err error) {
		l.box, err = createSandbox(l.dir.path, config, l.tree.UserNamespace())
		if err != nil {
			return err
		}
		l.box.ahead = now.ahead(l.spec.ClockStart)
		l.undo.Add("sandbox", func() error { return l.thread.Do(l.box.destroy) })
		return nil
	})
}

// answerCalls makes ready for the calls that the agent's filter hands over.
func (l *launch) answerCalls() {
	// The spec as it is now: no update changes the filter or the mounts.
	w := newWitness(l.spec, l.run.Lease.HostID(), l.denials, l.watcher)
	w.readable = slices.Concat(l.readable, l.spec.Files.OwnPlaces())
	share := paceShare
	switch {
	case l.observer != nil:
		share = learningShare
	case watchesFiles(l.spec), l.watcher != nil:
		share = watchingShare
	}
	l.calls = newCalls(l.filters.agent, l.box.pid, share, func(o observed) {
		w.see(o)
		l.observer.called(o, l.filters.beyond)
	})
}

// start brings clove-init up to the point where it waits for orders. The
// watch on OOM is armed before the first byte of the agent runs.
func (l *launch) start() error {
	conn, inherited, err := initproto.Pair()
	if err != nil {
		return err
	}
	defer inherited.Close()
	l.conn = conn
	l.undo.Add("control socket", conn.Close)
	executable, err := os.Open(l.runtime.init)
	if err != nil {
		return err
	}
	defer executable.Close()
	// Before the start, which may fail half way. l.group is read when the undo runs: nil
	// means that libcontainer has cleaned up itself.
	l.undo.Add("processes", func() error { return killAll(l.group) })
	err = l.thread.Do(func() error { return l.box.start(l.pipes.agentSide, inherited, l.dir.exit, executable) })
	if err != nil {
		return err
	}
	l.group, err = cgroups.Open(l.run.Lease.Cgroups)
	if err != nil {
		return err
	}
	// Before clove-init is executed: the limit applies only to sockets that are created
	// later.
	if err := limitSockets(l.group, l.spec.Limits, l.held, l.probes); err != nil {
		return err
	}
	// Not earlier: libcontainer has just given them to clove-init.
	first := l.run.Lease.HostID()
	if err := l.pipes.giveTo(int(first+l.spec.User.UID), int(first+l.spec.User.GID)); err != nil {
		return err
	}
	l.pipes.closeAgentSide()
	return l.thread.Do(l.box.exec)
}

// verify looks at clove-init from outside: a privilege that was not dropped stops the run
// here. That the agent's filter is on is seen later (calls.admit).
func (l *launch) verify() error {
	_, err := unprivileged(l.box.pid)
	return err
}

// order opens the watch on the sandbox's sockets and then sends clove-init its orders. It
// is the last step: when it returns the agent may run, and may have ended.
func (l *launch) order() error {
	orders := agentOrders(l.spec, attainableRlimits(l.spec, l.held, l.probes))
	l.answerCalls()
	l.filters.order(orders)
	orders.Init = l.filters.init
	if err := l.makeRuleset(); err != nil {
		return err
	}
	orders.Confined, orders.Ruleset = l.ruleset != nil, l.ruleset
	if l.spec.Terminal {
		orders.Terminal = terminalSize(l.streams.Stdin)
	}
	setup, err := l.spec.ModelSetupFile()
	if err != nil {
		return err
	}
	if setup.Path != "" {
		orders.Home = &initproto.HomeFile{Home: l.spec.User.Home, Path: setup.Path, Text: setup.Text, Keep: l.run.Previous != nil}
	}
	if err := orders.Validate(); err != nil {
		return err
	}
	if _, asked := l.held.enforced[agent.ControlSockets]; asked {
		var err error
		if l.sockets, err = openSocketWatch(l.group, l.box.pid); err != nil {
			return err
		}
		l.undo.Add("netlink sockets", l.sockets.close)
	}
	if err := l.mayWrite(); err != nil {
		return err
	}
	return l.conn.Send(initproto.Message{Orders: orders})
}

// agentOrders are the orders that make a process the agent: command, environment, ids,
// capabilities, limits. An exec session begins with the same.
func agentOrders(spec agent.Spec, rlimits []agent.Rlimit) *initproto.Orders {
	limits := spec.Limits
	orders := &initproto.Orders{
		Argv: spec.Command, Env: spec.Env, Dir: spec.Dir,
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
