package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/rootfs"
)

// startStep is one row of the launch; its name is what a failure reports.
type startStep struct {
	name string
	do   func(*launch) error
}

// steps are the launch after the run was registered. The order is in doc.go.
var steps = []startStep{
	{"network", func(l *launch) error { return l.network.await() }},
	{"kernel", (*launch).attach},
	{"models", (*launch).openModels},
	{"tools", func(l *launch) error { return toolsStart{l}.open() }},
	{"secrets", func(l *launch) error { return secretsStart{l}.open() }},
	{"gate", (*launch).openGate},
	{"rootfs", (*launch).makeRoot},
	{"streams", (*launch).connect},
	{"create", (*launch).create},
	{"start", (*launch).start},
	{"verify", (*launch).verify},
	{"files", func(l *launch) error { return given{l}.put() }},
	{"observe", func(l *launch) error { return l.uses.watch(l.box.pid, l.group, l.tree, &l.undo) }},
	{"orders", (*launch).order},
}

// execute runs the steps in order and stops at the first failure; begin may
// forbid each.
func (l *launch) execute(begin func(step string) error) error {
	for _, s := range steps {
		l.goesOn = func() error { return begin(s.name) }
		if err := l.goesOn(); err != nil {
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
	case known != nil && known.Hint != "":
		hint = known.Hint
	case errors.Is(err, rootfs.ErrHomes):
		hint = "`clove home ls` shows them, `clove home rm` removes one"
	case errors.Is(err, rootfs.ErrFolders):
		hint = "`clove home ls` shows them; another --home has folders of its own, and `clove home rm` forgets the home with all of them"
	case errors.Is(err, rootfs.ErrHomeFull):
		hint = "remove files of the home in a run without --keep, or begin anew: `clove home rm`"
	case errors.Is(err, rootfs.ErrHomeCopy):
		hint = "wait until the other run has ended, give this one a larger --disk, or another --home"
	case errors.Is(err, rootfs.ErrHomeDamaged):
		hint = "`clove home rm` removes it; a new one is made then"
	case errors.Is(err, rootfs.ErrLayerDamaged):
		hint = "`clove restart --fresh` begins with a new layer; what the agent wrote is lost then"
	case errors.Is(err, rootfs.ErrLayerBusy):
		hint = "wait for the command that reads it (`clove diff`), and restart the run"
	case errors.Is(err, rootfs.ErrLoopForbidden):
		hint = "start it with --device-cgroup-rule 'b 7:* rw' (docs/docker.md)"
	case errors.Is(err, rootfs.ErrUnmappable):
		hint = "in a container put it on a volume, whose owners can be mapped; otherwise it is copied, and the copy has to fit into --disk"
	}
	return &agent.Error{Step: step, Message: "cannot start the agent", Err: err, Hint: hint}
}

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
	if l.tree.HomeCopied && l.streams.HomeCopied != nil {
		l.streams.HomeCopied(l.spec.Files.Home.Name)
	}
	if l.spec.Restart.Policy.Restarts() {
		return l.tree.Sync() // else the start after a power cut finds nothing to go on with
	}
	return nil
}

// connect makes the streams. Without a terminal these are pipes; copying begins at once,
// the agent's ends are passed on by start.
func (l *launch) connect() error {
	l.pipes = newStreams(l.spec.Limits.OutputBytes)
	l.undo.Add("streams", l.pipes.abandon)
	if l.spec.Terminal {
		return l.pipes.connectNull() // the pty comes from inside, with Started
	}
	if l.spec.Kernel.HasStreams() {
		l.pipes.mail = newMailStreams(l.share, l.spec, l.streams.CalloutFailed)
	}
	return l.pipes.connectPipes(l.streams)
}

// create compiles the config and makes libcontainer's container from it. It runs on the
// launch thread, because only that thread sees the root.
func (l *launch) create() error {
	// At every start: systemd may have disabled controllers of the slice since the last
	// one.
	if err := errors.Join(l.probes.cgroups.Prepare(), kinship{l}.join(), kinship{l}.makeTree()); err != nil {
		return err
	}
	// Which files there are depends on the processors, so they are looked up at each start.
	thermal, _ := filepath.Glob("/sys/devices/system/cpu/cpu*/thermal_throttle") // the pattern is well-formed
	now := hostClocks()
	config := compile(l.spec, surroundings{
		Root: l.tree.Root, HostID: l.run.Lease.HostID(), NetworkPath: l.network.path(),
		CgroupsPath: l.placement.OCIPath, CgroupV2: l.probes.cgroups.Mode() == cgroups.ModeV2,
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
	w := newDenialRecorder(l.spec, l.run.Lease.HostID(), l.denials, l.shadow)
	w.readable, w.lowestPort = slices.Concat(l.readable, l.spec.Files.OwnPlaces()), l.network.lowestPort()
	share := paceShare
	switch {
	case l.uses != nil:
		share = learningShare
	case watchesFiles(l.spec), l.shadow != nil:
		share = watchingShare
	}
	l.calls = newCalls(l.filters.agent, l.box.pid, share, func(o observed) {
		w.see(o)
		l.uses.called(o, l.filters.beyond)
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
	// Behind the cgroup's making: while that is there, the trees above it stay, with their limits.
	if l.parent != nil && !l.parent.link.lives() {
		return goneError(l.run)
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
	orders.Confined, orders.Ruleset = l.ruleset != nil, l.ruleset
	if l.spec.Terminal {
		orders.Terminal = terminalSize(l.streams.Stdin)
	}
	setup, err := l.spec.ModelSetupFile()
	if err != nil {
		return err
	}
	if setup.Path != "" {
		orders.Home = &initproto.HomeFile{Home: l.spec.User.Home, Path: setup.Path, Text: setup.Text,
			Keep: l.run.Previous != nil && l.spec.Files.Home == nil, Replace: l.spec.Files.Home != nil}
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
	if err := errors.Join(kinship{l}.bind(), l.mayWrite(), l.runtime.paths.Spools().Drop(l.spec.ID)); err != nil {
		return err
	}
	return l.conn.Send(initproto.Message{Orders: orders})
}

// describeLayer writes the description under its first name. The files of a kept layer have the
// ids of the start that made it.
func (l *launch) describeLayer() error {
	image, d := l.runtime.paths.layer(l.spec.ID), describe(l.run)
	if l.run.Layer != "" {
		d.HostID, d.IDs = 0, 0
		if before := readDescription(described(image)); before != nil {
			d.HostID, d.IDs, d.Begun = before.HostID, before.IDs, before.Begun
		}
	}
	l.undo.Add("description", func() error {
		if l.keep {
			return absentIsFine(os.Remove(starting(image))) // of a start that did not come to its agent
		}
		return removeDescriptions(image)
	})
	return d.write(starting(image))
}

// mayWrite gives the description its last name, before the agent executes.
func (l *launch) mayWrite() error {
	image := l.runtime.paths.layer(l.spec.ID)
	if err := os.Rename(starting(image), described(image)); err != nil {
		return err
	}
	if !l.spec.Restart.Policy.Restarts() {
		return nil
	}
	// As durable as the layer, which makeRoot has written to the disk.
	return errors.Join(atomicfile.Sync(described(image)), atomicfile.Sync(filepath.Dir(image)))
}
