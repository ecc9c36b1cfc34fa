package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

func TestAFailedStepIsNamedOnce(t *testing.T) {
	t.Parallel()
	plain := agent.FailureOf(stepFailed("create", fmt.Errorf("cannot: %w", unix.ENOSPC)))
	if plain.Step != "create" || plain.Errno != unix.ENOSPC.Error() || !strings.Contains(plain.Hint, "clove doctor") {
		t.Errorf("%+v", plain)
	}
	named := &agent.Error{Step: "rootfs: mount", Message: "no", Hint: "load it", Err: unix.ENODEV}
	if f := agent.FailureOf(stepFailed("rootfs", named)); f.Step != "rootfs: mount" || f.Hint != "load it" {
		t.Errorf("%+v", f)
	}
}

// TestStepsStopAtTheFirstFailure: each step's time is recorded, too.
func TestStepsStopAtTheFirstFailure(t *testing.T) {
	t.Parallel()
	var asked []string
	r := &Runtime{failAt: func(step string) error {
		asked = append(asked, step)
		return errors.New("injected")
	}}
	var debug bytes.Buffer
	l := &launch{runtime: r, trace: newTrace(IO{Debug: &debug})}
	var begun []string
	err := l.execute(func(step string) error { begun = append(begun, step); return nil })
	if f := agent.FailureOf(err); f == nil || f.Step != steps[0].name || len(asked) != 1 || len(begun) != 1 {
		t.Errorf("%v, steps %q, begun %q", err, asked, begun)
	}
	forbidden := errors.New("forbidden")
	if err := l.execute(func(string) error { return forbidden }); err != forbidden || len(asked) != 1 {
		t.Errorf("a step that was forbidden: %v, steps %q", err, asked)
	}
	if !strings.Contains(debug.String(), steps[0].name) || !strings.HasPrefix(debug.String(), "clove: ") {
		t.Errorf("trace: %q", &debug)
	}
}

func TestATraceThatNobodyReads(t *testing.T) {
	t.Parallel()
	quiet := newTrace(IO{})
	quiet.step("x", time.Now())
	quiet.plan(bytes.NewBufferString("x"))
}

// TestRootConfigCarriesEveryFileWish: a field of agent.Files that the root's config lacks
// would be ignored silently.
func TestRootConfigCarriesEveryFileWish(t *testing.T) {
	t.Parallel()
	spec := testSpec()
	spec.Files = agent.Files{
		Rootfs: "/r", Workspace: "/w", GitDir: "/g", ReadOnly: true, Writable: []string{"/tmp"}, Execute: []string{"/e"}, Prefixes: []string{"/p"},
		Binds: []agent.Bind{{Source: "/s", Target: "/t", ReadOnly: true}},
		Tmpfs: []agent.Tmpfs{{Target: "/x", SizeBytes: 7, Mode: 0o700}},
		Home:  &agent.Home{Name: "h", Folder: "/f"}, Keep: []string{"/k"},
	}
	if n := reflect.TypeFor[agent.Files]().NumField(); n != 13 { // Landlock and Read are no settings of the root's
		t.Errorf("agent.Files has %d fields, this test knows 13", n)
	}
	paths := Paths{State: "/state", Run: "/run"}
	spec.Command, spec.Env, spec.Dir = []string{"tool", "x"}, []string{"A=b", "PATH=/bin::/usr/bin", "PATH=/other"}, "/d"
	c := rootConfig(paths, spec, 7<<16)
	if !slices.Equal(c.Execute, []string{"/e"}) || !slices.Equal(c.Keep, []string{"/k"}) || !reflect.DeepEqual(c.Command, rootfs.Command{Name: "tool", Dir: "/d", Path: []string{"/bin", "/d", "/usr/bin"}}) {
		t.Errorf("%q, %+v", c.Execute, c.Command)
	}
	if c.Rootfs != "/r" || c.Workspace != "/w" || c.GitDir != "/g" || !c.ReadOnly || !slices.Equal(c.Writable, []string{"/tmp"}) || c.Prefixes[0] != "/p" || c.Home != "h" || c.HomeFolder != "/f" ||
		c.Binds[0] != (rootfs.Bind{Source: "/s", Target: "/t", ReadOnly: true}) ||
		c.Tmpfs[0] != (rootfs.Tmpfs{Target: "/x", SizeBytes: 7, Mode: 0o700}) {
		t.Errorf("%+v", c)
	}
	if c.ID != string(spec.ID) || c.HostID != 7<<16 || c.AgentUID != spec.User.UID || c.Hostname != string(spec.ID) ||
		c.RunDir != "/run/"+string(spec.ID) || c.DiskBytes != spec.Limits.DiskBytes || c.MemoryBytes != spec.Limits.MemoryBytes {
		t.Errorf("%+v", c)
	}
	spec.Hostname = "named"
	if got := rootConfig(paths, spec, 0).Hostname; got != "named" {
		t.Errorf("hostname %q", got)
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	with := func(s agent.Seccomp) agent.Spec { return agent.Spec{Seccomp: s} }
	for name, s := range map[string]agent.Seccomp{
		"built-in": {Profile: "standard"}, "document": {Profile: "/x.json", Document: []byte(`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[]}`)},
	} {
		if p, err := profile(with(s)); err != nil || p == nil {
			t.Errorf("%s: %v, %v", name, p, err)
		}
	}
	p, err := profile(with(agent.Seccomp{Profile: agent.SeccompUnconfined}))
	if err != nil {
		t.Fatal(err)
	}
	for family, allowed := range map[uint64]bool{unix.AF_ALG: false, unix.AF_UNIX: true} {
		if got := seccomp.Decide(p, "socket", [6]uint64{family}).Allowed(); got != allowed {
			t.Errorf("unconfined: socket of family %d: %t", family, got)
		}
	}
	for name, s := range map[string]agent.Seccomp{"unknown": {Profile: "nosuch"}, "broken": {Document: []byte("{")}} {
		if _, err := profile(with(s)); err == nil {
			t.Errorf("%s is a profile", name)
		}
	}
}

// TestAListOfProgramsNarrowsTheFilter: a document that allows what a list cannot hold is refused.
func TestAListOfProgramsNarrowsTheFilter(t *testing.T) {
	t.Parallel()
	memory := func(filter agent.Seccomp, list []string) (bool, error) {
		p, err := profile(agent.Spec{Seccomp: filter, Files: agent.Files{ReadOnly: true, Execute: list}})
		return err == nil && seccomp.Decide(p, "memfd_create", [6]uint64{}).Allowed(), err
	}
	list := []string{"/usr/bin/env"}
	if allowed, err := memory(agent.Seccomp{Profile: "standard"}, nil); !allowed || err != nil {
		t.Errorf("control: %v, %v", allowed, err)
	}
	if allowed, err := memory(agent.Seccomp{Profile: "standard"}, list); allowed || err != nil {
		t.Errorf("with a list: %v, %v", allowed, err)
	}
	wide := agent.Seccomp{Profile: "/x.json", Document: []byte(`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["memfd_create","unshare"],"action":"SCMP_ACT_ALLOW"}]}`)}
	if allowed, err := memory(wide, nil); !allowed || err != nil {
		t.Errorf("control: %v, %v", allowed, err)
	}
	if _, err := memory(wide, list); err == nil || !strings.Contains(err.Error(), "memfd_create, unshare") {
		t.Errorf("%v", err)
	}
	if _, err := memory(agent.Seccomp{Profile: "/x.json", Document: []byte(`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[]}`)}, list); err != nil {
		t.Error(err)
	}
}

// TestFilters: every agent has its own filter, and PID 1 has one beside it.
func TestFilters(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"standard", "strict", "minimal", agent.SeccompUnconfined} {
		f, err := filtersOf(agent.Spec{Seccomp: agent.Seccomp{Profile: name}})
		if err != nil || f.agent == nil || len(f.agent.Plain) == 0 || len(f.agent.Reporting) == 0 || len(f.init) == 0 {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	if f, err := filtersOf(agent.Spec{Seccomp: agent.Seccomp{Profile: agent.SeccompUnconfined}}); f.profile != nil || err != nil {
		t.Errorf("unconfined: %+v, %v", f, err)
	}
	nothing := agent.Seccomp{Profile: "/x.json", Document: []byte(`{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[]}`)}
	if _, err := filtersOf(agent.Spec{Seccomp: nothing}); err == nil || !strings.Contains(err.Error(), "execve") {
		t.Errorf("a filter without execve: %v", err)
	}
}

// TestOrders: the orders carry what the spec asks for.
func TestOrders(t *testing.T) {
	t.Parallel()
	s := newSupervised(t, func(spec *agent.Spec) {
		spec.Env, spec.Dir = []string{"A=1"}, "/workspace"
		spec.Limits.WallClock = time.Hour
		spec.User = agent.User{Name: "root", UID: 0, GID: 0, Home: "/root"}
	})
	done := make(chan error, 1)
	describeFor(t, s)
	go func() { done <- s.launch.order() }()
	o := s.hears().Orders
	if err := <-done; err != nil || o == nil {
		t.Fatal(o, err)
	}
	spec := s.launch.spec
	if o.Argv[0] != spec.Command[0] || o.Env[0] != "A=1" || o.Dir != "/workspace" || o.UID != 0 ||
		o.WallClock != time.Hour || o.StopGrace != spec.Limits.StopGrace || o.Terminal != nil {
		t.Errorf("%+v", o)
	}
	if len(o.Caps) != len(agent.RootCapabilities) || len(o.Rlimits) != len(spec.Limits.Rlimits) {
		t.Errorf("capabilities %v, rlimits %v", o.Caps, o.Rlimits)
	}
	bad := newSupervised(t, func(spec *agent.Spec) { spec.Dir = "relative" })
	if err := bad.launch.order(); err == nil {
		t.Error("orders that make no sense were sent")
	}
}

// TestOpenSaysWhatIsMissing: Open needs root and a clove-init beside the binary; each lack has
// a message of its own.
func TestOpenSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Open(Paths{State: filepath.Join(dir, "s"), Run: filepath.Join(dir, "r")})
	want := agent.KindNotFound // the test binary has no clove-init beside it
	if os.Geteuid() != 0 {
		want = agent.KindPrivilege
	}
	var failure *agent.Error
	if agent.KindOf(err) != want || !errors.As(err, &failure) || failure.Hint == "" {
		t.Errorf("%v", err)
	}
	if os.Geteuid() == 0 {
		file := filepath.Join(dir, "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Paths{State: file, Run: dir}); err == nil || !strings.Contains(err.Error(), "cannot make") {
			t.Errorf("a file as directory: %v", err)
		}
	}
}

// TestEndedRunsOnly: diff, apply and rm refuse a live run.
func TestEndedRunsOnly(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	run, _ := deadRun(t, r, nil)
	for name, use := range map[string]func() error{
		"diff":  func() error { _, err := r.Diff(run.Spec.Name, "", nil); return err },
		"apply": func() error { _, err := r.Apply(run.Spec.Name, "", nil, nil); return err },
		"rm":    func() error { return r.Remove(run.Spec.Name) },
	} {
		if err := use(); agent.KindOf(err) != agent.KindConflict {
			t.Errorf("%s of a live run: %v", name, err)
		}
	}
	if _, err := r.reap([]agent.Run{run}); err != nil {
		t.Fatal(err)
	}
	if changes, err := r.Diff(run.Spec.Name, "", nil); err != nil || changes != nil {
		t.Errorf("diff without a layer: %v, %v", changes, err)
	}
	if _, err := r.Apply(run.Spec.Name, "", nil, nil); agent.KindOf(err) != agent.KindInvalid {
		t.Errorf("apply without a workspace: %v", err)
	}
	if err := r.Remove(run.Spec.Name); err != nil {
		t.Error(err)
	}
	if all, err := r.List(); err != nil || len(all) != 0 {
		t.Errorf("left: %v, %v", all, err)
	}
}

// TestRemoveTakesTheLayerToo: also if the layer was removed by hand.
func TestRemoveTakesTheLayerToo(t *testing.T) {
	t.Parallel()
	for name, there := range map[string]bool{"there": true, "gone": false} {
		t.Run(name, func(t *testing.T) {
			r := testRuntime(t)
			run, _ := deadRun(t, r, nil)
			run = apply(t, r, run, agent.EventStarted)
			layer := r.paths.layer(run.Spec.ID)
			if err := os.WriteFile(layer, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := r.reap([]agent.Run{run}); err != nil {
				t.Fatal(err)
			}
			if !there {
				os.Remove(layer)
			}
			if err := r.Remove(run.Spec.Name); err != nil || exists(layer) {
				t.Errorf("%v; the layer is there: %v", err, exists(layer))
			}
		})
	}
}
