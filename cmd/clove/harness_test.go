package main

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/client"
	"clove.run/clove/policies/host"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
)

// bench runs clove's command line over a fake runtime, with files in a directory of the test.
type bench struct {
	t        *testing.T
	host     host.Host
	in       *os.File
	terminal *os.File // in place of the files for stdout and stderr
	backend  fakeBackend
	daemon   *fakeCloved   // nil: none runs
	opened   runtime.Paths // with which the runtime was opened last
	paths    int           // how often it was opened
}

// fakeBackend answers with what the test put in and remembers what was asked.
type fakeBackend struct {
	archives map[string][]byte // of CopyKept, by path
	lost     []runtime.Problem
	record   agent.Record
	runs     []agent.Run
	changes  []rootfs.Change
	problems []runtime.Problem
	overview runtime.StoreOverview
	history  []agent.RunEvent
	failure  error
	during   func() // is called while the agent runs

	spec           *agent.Spec
	streams        runtime.IO
	removed        []string
	backup         string
	held           error    // the answer for a kernel.db that cloved has open
	kernel         []string // copies of it
	kernelProblems []string
	consent        *runtime.Consent // what the caller of Apply answered
}

func (f *fakeBackend) Run(_ context.Context, spec agent.Spec, streams runtime.IO) (agent.Record, error) {
	f.spec, f.streams = &spec, streams
	if f.during != nil {
		f.during()
	}
	if f.failure == nil {
		streams.Ended(f.record)
	}
	return f.record, f.failure
}
func (f *fakeBackend) Guard(context.Context, agent.Guard, func()) error { return nil }

func (f *fakeBackend) Refuse(agent.ID, error) error { return f.failure }
func (f *fakeBackend) List() ([]agent.Run, error)   { return f.runs, f.failure }

func (f *fakeBackend) Get(ref string) (agent.Run, error) {
	for _, run := range f.runs {
		if run.Spec.Name == ref {
			return run, f.failure
		}
	}
	return agent.Run{}, &agent.Error{Kind: agent.KindNotFound, Message: "there is no run \"" + ref + "\"", Hint: "clove ps -a lists all runs"}
}

func (f *fakeBackend) Remove(ref string) error {
	if _, err := f.Get(ref); err != nil {
		return err
	}
	f.removed = append(f.removed, ref)
	return nil
}
func (f *fakeBackend) CopyKept(_ context.Context, _, inside string, to io.Writer) error {
	if f.failure != nil {
		return f.failure
	}
	_, err := to.Write(f.archives[inside])
	return err
}

func (f *fakeBackend) Diff(ref, _ string, _ []string) ([]rootfs.Change, error) {
	if _, err := f.Get(ref); err != nil && f.runs != nil {
		return nil, err
	}
	return f.changes, f.failure
}

func (f *fakeBackend) CopyLayer(string, string) (bool, error) { return false, nil }

func (f *fakeBackend) Apply(ref, _ string, _ []string, confirm func([]rootfs.Change) runtime.Consent) ([]rootfs.Change, error) {
	if _, err := f.Get(ref); err != nil && f.runs != nil {
		return nil, err
	}
	if len(f.changes) == 0 {
		return nil, f.failure
	}
	consent := confirm(f.changes)
	f.consent = &consent
	if !consent.Apply {
		return nil, f.failure
	}
	return f.changes, f.failure
}
func (f *fakeBackend) Check() ([]runtime.Problem, error)      { return f.problems, f.failure }
func (f *fakeBackend) SweepKernel() ([]string, error)         { return nil, nil }
func (f *fakeBackend) GC() ([]runtime.Problem, error)         { return f.problems, f.failure }
func (f *fakeBackend) Lost() []runtime.Problem                { return f.lost }
func (f *fakeBackend) Homes(uint32) ([]agent.KeptHome, error) { return nil, f.failure }

func (f *fakeBackend) RemoveHome(string, uint32) error { return f.failure }

func (f *fakeBackend) RemoveLost(time.Time) ([]runtime.Problem, error) {
	removed := f.lost
	f.lost = nil
	return removed, f.failure
}
func (f *fakeBackend) Backup(to string) error { f.backup = to; return f.failure }

func (f *fakeBackend) BackupKernel(to string) error      { f.kernel = append(f.kernel, to); return f.held }
func (f *fakeBackend) Panic(string) ([]agent.Run, error) { return f.runs, nil }
func (f *fakeBackend) ClearPanic() error                 { return nil }
func (f *fakeBackend) CheckKernel() ([]string, error)    { return f.kernelProblems, f.held }

func (f *fakeBackend) StoreOverview() (runtime.StoreOverview, error) { return f.overview, f.failure }
func (f *fakeBackend) Plan(run agent.Run) (string, error) {
	return "plan of " + run.Spec.Name + "\n", nil
}

func (f *fakeBackend) StoredRun(ref string) (json.RawMessage, error) {
	run, err := f.Get(ref)
	if err != nil {
		return nil, err
	}
	return json.Marshal(run)
}
func (f *fakeBackend) History(int) ([]agent.RunEvent, error) { return f.history, f.failure }

// null is an input without anything. It stays open, as clove's own does: what feeds a session may still
// look at it when the session is over.
var null = sync.OnceValue(func() *os.File {
	f, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	return f
})

// newBench returns a host with four CPUs, the usual base system (/usr and more), a working
// directory and no interpreter in PATH. Tests that use it are not parallel: urfave/cli has one
// global help flag in each process.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, in: null(), host: host.Host{
		Environ: []string{"PATH=" + filepath.Join(dir, "nothing")}, Dir: filepath.Join(dir), CPUs: []int{0, 1, 2, 3},
		Machine: elf.EM_X86_64, Base: host.BaseDirs,
	}}
}

// clove runs one command line.
func (b *bench) clove(args ...string) (status int, stdout, stderr string) {
	b.t.Helper()
	out, err := os.Create(filepath.Join(b.t.TempDir(), "stdout"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer out.Close()
	errs, err := os.Create(filepath.Join(b.t.TempDir(), "stderr"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer errs.Close()
	s := &screen{in: b.in, out: out, err: errs, lost: &losses{}}
	if b.terminal != nil {
		s.out, s.err = b.terminal, b.terminal
	}
	p := program{s, &access{
		host: func() (host.Host, error) { return b.host, nil },
		open: func(paths runtime.Paths) (backend, error) {
			b.opened = paths
			b.paths++
			return &b.backend, nil
		},
		dial: func(ctx context.Context, _ string) (*client.Client, error) {
			if b.daemon != nil {
				b.daemon.order.Add(1)
				return client.Dial(ctx, b.daemon.path)
			}
			return nil, &agent.Error{Kind: agent.KindNotFound, Message: "cloved does not run", Hint: "start it"}
		},
		own:     func() (string, error) { return filepath.Join(b.host.Dir, "bin", "clove"), nil },
		systemd: systemd{units: filepath.Join(b.host.Dir, "units"), booted: filepath.Join(b.host.Dir, "booted")},
		doctor: func(string) []runtime.Finding {
			return []runtime.Finding{
				{Name: "overlay", Status: runtime.FindingOK, Found: "overlay", Enforces: "copy on write", Controls: []string{agent.ControlDisk}},
				{Name: "cpuset controller", Status: runtime.FindingMissing, Missing: "not mounted", Enforces: "--cpuset-cpus", Remedy: "mount it"},
			}
		},
	}}
	status = p.execute(args)
	if b.daemon != nil {
		b.daemon.order.Add(1)
	}
	return status, b.read(out.Name()), b.read(errs.Name())
}

// spec runs a command line that must be valid and returns the resulting spec.
func (b *bench) spec(args ...string) agent.Spec {
	b.t.Helper()
	b.backend.spec = nil
	status, _, stderr := b.clove(append([]string{"run"}, args...)...)
	if status != 0 || b.backend.spec == nil {
		b.t.Fatalf("clove run %q: status %d, %s", args, status, stderr)
	}
	return *b.backend.spec
}

// refuse runs a command line that must fail before it reaches the runtime.
func (b *bench) refuse(args ...string) (stderr string) {
	b.t.Helper()
	status, stdout, stderr := b.clove(append([]string{"run"}, args...)...)
	if status != agent.ExitStartFailed || b.paths != 0 || stdout != "" {
		b.t.Errorf("clove run %q: status %d, runtime opened %d times, stdout %q", args, status, b.paths, stdout)
	}
	return stderr
}

func (b *bench) read(path string) string {
	b.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}

// file makes a file below the bench's directory, and the directories above it.
func (b *bench) file(name, text string, mode os.FileMode) string {
	b.t.Helper()
	path := filepath.Join(b.host.Dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bench) link(target, name string) string {
	b.t.Helper()
	path := filepath.Join(b.host.Dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(target, path)); err != nil {
		b.t.Fatal(err)
	}
	return path
}

func (b *bench) setenv(entries ...string) { b.host.Environ = append(entries, b.host.Environ...) }

func unmarshal(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}
