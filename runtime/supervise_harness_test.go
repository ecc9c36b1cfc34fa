package runtime

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/policies"
	"clove.run/clove/store"
)

// supervised is a supervisor for which the test plays clove-init, and whose cgroup is a
// directory of plain files.
type supervised struct {
	t       *testing.T
	launch  *launch
	init    *initproto.Conn // clove-init's side
	cgroup  string
	signals *signals
	ctx     context.Context
	cancel  context.CancelFunc
	oom     chan struct{} // the events of the watch for OOM kills
	outcome chan outcome
}

// soon bounds everything that a test waits for.
var soon = testhost.Patience(20 * time.Second)

func newSupervised(t *testing.T, change func(*agent.Spec)) *supervised {
	t.Helper()
	spec := testSpec()
	spec.Limits.StopGrace = time.Minute
	if change != nil {
		change(&spec)
	}
	conn, inherited, err := initproto.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	fd, err := unix.FcntlInt(inherited.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	init, err := initproto.NewConn(fd)
	if err != nil {
		t.Fatal(err)
	}
	s := &supervised{t: t, init: init, signals: &signals{incoming: make(chan os.Signal, 8)}, outcome: make(chan outcome, 1), oom: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	t.Cleanup(func() { s.cancel(); init.Close(); conn.Close() })
	s.cgroup = cgroupOfFiles(t, string(spec.ID))
	group, err := cgroups.Open(map[string]string{"": s.cgroup})
	if err != nil {
		t.Fatal(err)
	}
	r := testRuntime(t)
	s.launch = &launch{runtime: r, spec: spec, network: &network{}, conn: conn, group: group, pipes: newStreams(spec.Limits.OutputBytes),
		box: &sandbox{pid: 4711}, refusals: newRefusals(), denials: newDenials("", nil), trace: newTrace(IO{}), streams: IO{Stderr: os.Stderr},
		held: enforcement{enforced: map[string]string{}}}
	if spec.Limits.CPUTime > 0 {
		s.launch.held.enforced[agent.ControlCPUTime] = "cgroup2"
	}
	s.launch.run = begin(t, r, spec)
	s.launch.known.Store(true)
	return s
}

// cgroupOfFiles looks like an empty v2 cgroup. The pid of its one process is above every pid
// that the kernel gives, so nothing can be killed.
func cgroupOfFiles(t *testing.T, id string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clove-agents.service", "agents", id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"cgroup.procs": "", "cgroup.kill": "", "cgroup.freeze": "0\n", "cgroup.events": "populated 0\nfrozen 0\n",
		"cpu.stat": "usage_usec 0\n", "cgroup.controllers": "cpu memory pids\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// put changes a file in one write, as the kernel does: a reader finds the old or the new text,
// never an empty file. Both must have the same length.
func (s *supervised) put(name, text string) {
	s.t.Helper()
	file, err := os.OpenFile(filepath.Join(s.cgroup, name), os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		s.t.Fatal(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() > int64(len(text)) {
		s.t.Fatalf("%s: %q is shorter than what is there, %v", name, text, err)
	}
	if _, err := file.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

func (s *supervised) begin() {
	go func() { s.outcome <- s.launch.attend(s.ctx, s.signals, s.oom, nil) }()
}

// sends sends a message as clove-init.
func (s *supervised) sends(m initproto.Message) {
	s.t.Helper()
	if err := s.init.Send(m); err != nil {
		s.t.Fatal(err)
	}
}

func (s *supervised) started() {
	s.sends(initproto.Message{Started: &initproto.Started{PID: 2, BootTimeNS: boottime.NowNS()}})
}

// hears waits for the supervisor's next message to clove-init.
func (s *supervised) hears() initproto.Message {
	s.t.Helper()
	s.init.SetReceiveDeadline(time.Now().Add(soon))
	m, err := s.init.Receive()
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// ends ends the played clove-init and returns what the supervisor saw.
func (s *supervised) ends() outcome {
	s.t.Helper()
	s.init.Close()
	select {
	case seen := <-s.outcome:
		return seen
	case <-time.After(soon):
		s.t.Fatal("the supervision does not end")
		return outcome{}
	}
}

// killWatch waits for the kill of the cgroup. Make it before the cause of the kill.
type killWatch struct {
	s      *supervised
	events *os.File
}

func (s *supervised) watchKill() killWatch {
	s.t.Helper()
	return s.watchFile("cgroup.procs", unix.IN_OPEN)
}

// watchFile watches one file that a kill writes or reads.
func (s *supervised) watchFile(name string, mask uint32) killWatch {
	s.t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		s.t.Fatal(err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	s.t.Cleanup(func() { events.Close() })
	if _, err := unix.InotifyAddWatch(fd, filepath.Join(s.cgroup, name), mask); err != nil {
		s.t.Fatal(err)
	}
	return killWatch{s, events}
}

// wait returns when the supervisor tried to kill.
func (w killWatch) wait() {
	w.s.t.Helper()
	w.events.SetReadDeadline(time.Now().Add(soon))
	if _, err := w.events.Read(make([]byte, 4096)); err != nil {
		w.s.t.Fatalf("nothing was killed: %v", err)
	}
}

// happened reports whether a kill was tried since the watch began.
func (w killWatch) happened() bool {
	w.events.SetReadDeadline(time.Now())
	_, err := w.events.Read(make([]byte, 4096))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// testSpec returns the spec of a valid run.
func testSpec() agent.Spec {
	spec := policies.Standard()
	spec.ID = agent.NewID()
	spec.Name = "test-" + string(spec.ID)
	spec.Command = []string{"true"}
	return spec
}

// testRuntime returns an installation that needs no root.
func testRuntime(t *testing.T) *Runtime {
	t.Helper()
	dir := t.TempDir()
	paths := Paths{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}
	for _, path := range []string{paths.layers(), paths.Run} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	this, err := paths.installation()
	if err != nil {
		t.Fatal(err)
	}
	return &Runtime{reaper: reaper{site: site{paths, this.ID}}}
}

// describeFor makes what the step rootfs leaves for the step orders.
func describeFor(t *testing.T, s *supervised) {
	t.Helper()
	if err := s.launch.describeLayer(); err != nil {
		t.Fatal(err)
	}
}

// begin stores a run as starting.
func begin(t *testing.T, r *Runtime, spec agent.Spec) (run agent.Run) {
	t.Helper()
	err := r.withStore(func(s *store.Store) (err error) {
		run, err = s.Begin(agent.Run{Spec: spec, Created: time.Now(), Lease: newLease(map[string]string{"": "/none/clove-agents.service/agents/" + string(spec.ID)})})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// stderrFile collects the messages for the user.
func stderrFile(t *testing.T) (*os.File, func() string) {
	t.Helper()
	file, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	return file, func() string {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes.TrimSpace(text))
	}
}
