package runtime

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress/broker"
	"clove.run/clove/internal/fanotify"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

// useRecorder records what a run uses, for clove run --learn. It refuses nothing and nothing waits
// for it: the walls are those of any run. nil is a run that is not observed.
type useRecorder struct {
	files  *fanotify.Watch
	init   int // clove-init, whose files are not the agent's
	mounts []observedMount
	read   chan struct{} // closed when the reader of files has ended
	stop   chan struct{} // closed to end the sampling
	ended  chan struct{} // closed when it has ended
	once   sync.Once

	mu         sync.Mutex // guards the fields below
	paths      map[fileUse]map[string]bool
	targets    map[agent.ObservedTarget]agent.ObservedTarget
	calls      map[agent.ObservedCall]bool
	peaks      agent.ObservedPeaks
	incomplete map[string]bool
}

// fileUse is what was done with a file.
type fileUse int

const (
	wasRead fileUse = iota
	wasWritten
	wasExecuted
	wasMapped // as code, by a call
	wasListed // a folder
)

// observedMount is a mount of the sandbox.
type observedMount struct {
	at    string
	top   *os.File // its directory, opened without rights (O_PATH)
	since unix.Stat_t
}

// newUseRecorder has no file to watch yet. The gate may report from its start on.
func newUseRecorder() *useRecorder {
	return &useRecorder{paths: map[fileUse]map[string]bool{wasRead: {}, wasWritten: {}, wasExecuted: {}, wasMapped: {}, wasListed: {}}, targets: map[agent.ObservedTarget]agent.ObservedTarget{},
		calls: map[agent.ObservedCall]bool{}, incomplete: map[string]bool{}}
}

// unwatched are file systems of the kernel's own, whose files are no files of a policy.
var unwatched = []string{"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "devtmpfs"}

// shmDir is the only file system below /dev that holds files.
const shmDir = "/dev/shm"

// mark watches each mount of the sandbox whose first process is pid.
func (o *useRecorder) mark(pid int) error {
	root := fmt.Sprintf("/proc/%d/root", pid)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil {
		return fmt.Errorf("cannot read the sandbox's mounts: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		at, kind := mountOf(line)
		if slices.Contains(unwatched, kind) || at == "/dev" || strings.HasPrefix(at, "/dev/") && at != shmDir {
			continue
		}
		if err := o.files.Mark(root + at); err != nil {
			return err
		}
		if err := o.remember(root, at); err != nil {
			return err
		}
	}
	return nil
}

// mountOf is the mount point of a line of proc_pid_mountinfo(5), and the type of its file system.
func mountOf(line string) (at, kind string) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return "", ""
	}
	if end := slices.Index(fields, "-"); end > 0 && end+1 < len(fields) {
		kind = fields[end+1]
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(fields[4]), kind
}

// remember keeps the top of a mount, whose times show at the end whether a name was made or
// removed in it.
func (o *useRecorder) remember(root, at string) error {
	fd, err := unix.Open(root+at, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("cannot open the sandbox's %s: %w", at, err)
	}
	m := observedMount{at: at, top: os.NewFile(uintptr(fd), at)}
	o.mounts = append(o.mounts, m)
	if err := unix.Fstat(fd, &o.mounts[len(o.mounts)-1].since); err != nil {
		return fmt.Errorf("cannot read the sandbox's %s: %w", at, err)
	}
	return nil
}

// file notes one event.
func (o *useRecorder) file(e fanotify.Event) {
	if e.PID == os.Getpid() || e.PID == o.init {
		return // clove cp, and clove-init
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case e.Folder:
		o.note(wasListed, e.Path)
	case e.Executed:
		o.note(wasExecuted, e.Path)
	case e.Written:
		o.note(wasWritten, e.Path)
	default:
		o.note(wasRead, e.Path)
	}
}

// mostNoted bounds what is kept of one use; what the observation has of it is sorted.
const mostNoted = 2 * agent.MostObservedPaths

// note adds a path; o.mu is held.
func (o *useRecorder) note(how fileUse, path string) {
	set := o.paths[how]
	if len(set) >= mostNoted && !set[path] {
		o.incomplete[tooMany("files")] = true
		return
	}
	set[path] = true
}

func tooMany(what string) string {
	return "it used more " + what + " than an observation holds; the first ones by name are kept"
}

// decided notes a decision of the gate. It is called by many goroutines at once.
func (o *useRecorder) decided(d broker.Decision) {
	if o == nil || d.Outcome == broker.OutcomeEnded || d.Outcome == broker.OutcomeCut || d.Reason == broker.ReasonLocal || d.Reason == broker.ReasonStandin {
		return
	}
	switch d.Kind {
	case broker.KindDNS, broker.KindTCP, broker.KindUDP, broker.KindHostPort:
	default:
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	t := agent.ObservedTarget{Kind: string(d.Kind), Name: d.Name, Port: d.Address.Port()}
	switch {
	case d.Name != "":
		o.target(t, d.Outcome)
	case len(d.Pinned) > 0: // the address alone may be another one the next time
		for _, name := range d.Pinned {
			t.Name = string(name)
			o.target(t, d.Outcome)
		}
	case d.Address.IsValid(): // else a question without a name
		t.Address = d.Address.Addr().String()
		o.target(t, d.Outcome)
	}
}

// target adds one target; o.mu is held.
func (o *useRecorder) target(t agent.ObservedTarget, outcome broker.Outcome) {
	key := t
	if have, known := o.targets[key]; known {
		t = have
	} else if len(o.targets) >= 2*agent.MostObservedTargets {
		o.incomplete[tooMany("targets")] = true
		return
	}
	t.Refused = t.Refused || outcome == broker.OutcomeDenied
	t.Allowed = t.Allowed || outcome == broker.OutcomeAllowed || outcome == broker.OutcomeUnreachable
	o.targets[key] = t
}

// called notes a call that the filter lets pass and handed over first, if it is one of beyond.
// It is called by the goroutine of each listener.
func (o *useRecorder) called(c observed, beyond []seccomp.Watch) {
	if o == nil || !c.Verdict.Allowed() {
		return
	}
	o.mapped(c)
	if !slices.ContainsFunc(beyond, func(w seccomp.Watch) bool { return w.Call == c.Name }) {
		return
	}
	made := agent.ObservedCall{Name: c.Name, Args: seccomp.Significant(c.Name, c.Args)}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls[made] {
		return
	}
	if len(o.calls) >= agent.MostObservedCalls {
		o.incomplete[tooMany("system calls")] = true
		return
	}
	o.calls[made] = true
}

// sampleEvery is the time between two looks at what the kernel keeps no peak of.
const sampleEvery = 50 * time.Millisecond

// sample looks at the layer, /dev/shm and the descriptors of each process.
func (o *useRecorder) sample(group *cgroups.Group, tree *rootfs.Tree) {
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		o.look(group, tree)
		select {
		case <-o.stop:
			return
		case <-tick.C:
		}
	}
}

func (o *useRecorder) look(group *cgroups.Group, tree *rootfs.Tree) {
	var now agent.ObservedPeaks
	if used, err := tree.Usage(); err == nil {
		now.DiskBytes = used.Bytes
	}
	for _, m := range o.mounts {
		var s unix.Statfs_t
		if m.at == shmDir && unix.Fstatfs(int(m.top.Fd()), &s) == nil {
			now.ShmBytes = int64(s.Blocks-s.Bfree) * s.Bsize
		}
	}
	pids, _ := group.Pids() // it may be gone
	for _, pid := range pids {
		var s unix.Stat_t
		// The size of this directory is the number of descriptors (Linux 6.2).
		if pid != o.init && unix.Stat(fmt.Sprintf("/proc/%d/fd", pid), &s) == nil {
			now.Descriptors = max(now.Descriptors, s.Size)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	p := &o.peaks
	p.DiskBytes, p.ShmBytes, p.Descriptors = max(p.DiskBytes, now.DiskBytes), max(p.ShmBytes, now.ShmBytes), max(p.Descriptors, now.Descriptors)
}

// mapped notes a file that is about to be mapped as code. Another thread of the agent's may
// change the descriptor meanwhile: what is noted decides nothing about this run.
func (o *useRecorder) mapped(c observed) {
	if c.Name != "mmap" || c.Args[2]&unix.PROT_EXEC == 0 || c.Args[3]&unix.MAP_ANONYMOUS != 0 {
		return
	}
	path := c.From.File(c.Call, int32(c.Args[4]))
	if path == "" {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(wasMapped, path)
}
