package learn

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
	"clove.run/clove/seccomp"
)

// here is a machine with processors and no policies of its own.
var here = host.Host{Dir: "/", CPUs: []int{0, 1, 2, 3}}

// observation is a run under a level that used what a program in a shell uses.
func observation(t testing.TB, under string) Observation {
	t.Helper()
	policy, err := resolve.LoadPolicy(under, here)
	if err != nil {
		t.Fatal(err)
	}
	spec := policy.Spec
	spec.ID, spec.Name, spec.Command = "0123456789abcdef", "worker", []string{"/bin/sh", "-c", "x"}
	return New(spec, under, agent.Record{Status: agent.StatusExited, Started: time.Unix(1e9, 0).UTC()}, agent.Observed{
		Executed: []string{"/usr/bin/dash", "/usr/bin/ls"}, Written: []string{"/tmp/a", "/workspace/out"}, Read: []string{"/usr/lib/libc.so.6"},
		CallsKnown: true, Calls: []agent.ObservedCall{{Name: "wait4"}, {Name: "vfork"}}, Incomplete: []string{},
		Targets: []agent.ObservedTarget{{Kind: "dns", Name: "a.example.com", Allowed: true}, {Kind: "tcp", Name: "a.example.com", Port: 443, Allowed: true},
			{Kind: "tcp", Name: "evil.example.org", Port: 443, Refused: true}},
		Peaks: agent.ObservedPeaks{MemoryBytes: 200 << 20, Pids: 20, CPUMS: 30_000, WallMS: 90_000, OutputBytes: 10, DiskBytes: 100 << 20, Descriptors: 10}})
}

func extend(d policies.Document) (Extended, error) {
	parent, own, err := resolve.Extended(d, here)
	return Extended{parent, own}, err
}

// resolved writes the document into files and loads it as clove run does.
func resolved(t testing.TB, dir string, o Observation) (*resolve.Policy, string) {
	t.Helper()
	learned, err := Write(o, "x", "./x.seccomp.json", extend)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"x.yaml": learned.Document}
	if learned.Filter != nil {
		files["x.seccomp.json"] = learned.Filter
	}
	for name, text := range files {
		if err := os.WriteFile(dir+"/"+name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	policy, err := resolve.LoadPolicy(dir+"/x.yaml", here)
	if err != nil {
		t.Fatalf("%v\n%s", err, learned.Document)
	}
	return policy, string(learned.Document)
}

func TestWhatWasUsedIsAllowedAndNoMore(t *testing.T) {
	t.Parallel()
	o := observation(t, "unrestricted")
	policy, text := resolved(t, t.TempDir(), o)
	for _, want := range []string{
		`memory: 320M # the peak was 200MiB, and 50 % more`, `pids: 32 # the peak was 20`, `cpu_time: 45s`, `timeout: 2m15s`, `output: 1M`,
		`- "a.example.com:443"`, `# refused in the run, and not allowed here: evil.example.org:443`, "root: read-only", `- "/workspace" # the whole place`,
		"# system calls, processes: vfork wait4 were used", "# executed: /usr/bin/ls", `network.mode: "used in the learned run worker"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document does not have %s:\n%s", want, text)
		}
	}
	d := policy.Document
	if !slices.Equal(d.Values[settings.Allow], []string{"a.example.com:443"}) || !slices.Equal(d.Values[settings.Writable], []string{agent.WorkspaceDir, "/tmp"}) {
		t.Errorf("%+v", d)
	}
	if more := settings.Wider(specOf(t, "unrestricted"), policy.Spec); len(more) > 0 {
		t.Errorf("it is wider than what the run had: %v", more)
	}
}

func specOf(t testing.TB, level string) agent.Spec {
	t.Helper()
	policy, err := resolve.LoadPolicy(level, here)
	if err != nil {
		t.Fatal(err)
	}
	return policy.Spec
}

// TestTheNarrowestLevelIsExtended: nothing beyond minimal extends minimal, and each need leads to
// the level that has it.
func TestTheNarrowestLevelIsExtended(t *testing.T) {
	t.Parallel()
	small := agent.Observed{Executed: []string{"/bin/true"}, CallsKnown: true, Incomplete: []string{},
		Peaks: agent.ObservedPeaks{MemoryBytes: 1 << 20, Pids: 13, CPUMS: 1, WallMS: 1, Descriptors: 3}}
	for want, change := range map[string]func(*agent.Observed){
		"minimal": func(*agent.Observed) {},
		"sandboxed": func(s *agent.Observed) {
			s.Written = []string{"/workspace/x"}
			s.Calls = []agent.ObservedCall{{Name: "wait4"}}
		},
		"readonly": func(s *agent.Observed) {
			s.Written = []string{"/tmp/x"}
			s.Calls = []agent.ObservedCall{{Name: "wait4"}}
		},
		"standard": func(s *agent.Observed) {
			s.Written = []string{"/usr/lib/x"}
			s.Calls = []agent.ObservedCall{{Name: "wait4"}}
		},
	} {
		o := observation(t, policies.StandardName)
		o.Observed = small
		change(&o.Observed)
		policy, text := resolved(t, t.TempDir(), o.sorted())
		if policy.Chain[1].Name != want || len(policy.Chain[0].Widened) > 0 {
			t.Errorf("it extends %s, want %s, wider in %v:\n%s", policy.Chain[1].Name, want, policy.Chain[0].Widened, text)
		}
	}
}

func TestAFailedRunIsMarked(t *testing.T) {
	t.Parallel()
	o := observation(t, policies.StandardName)
	o.Runs[0].ExitCode = 3
	o.Incomplete = []string{"the queue was full"}
	_, text := resolved(t, t.TempDir(), o)
	for _, want := range []string{"# LEARNED FROM A RUN THAT FAILED: worker ended as exited, with exit status 3", "# INCOMPLETE: the queue was full"} {
		if !strings.Contains(text, want) {
			t.Errorf("the document does not say %q:\n%s", want, text)
		}
	}
}

// TestNamesOfFilesAddNothing: the agent chooses what files are called.
func TestNamesOfFilesAddNothing(t *testing.T) {
	t.Parallel()
	o := observation(t, policies.StandardName)
	o.Written = []string{"/tmp/a\nuser: root", "/usr/x\u2028user: root # "}
	o.Executed = []string{"/tmp/\nuser: root"}
	o.Runs[0].Command = []string{"a\nuser: root", "\"\n#"}
	policy, text := resolved(t, t.TempDir(), o.sorted())
	if policy.Document.Text(settings.User) != "agent" || strings.Contains(text, "\nuser: root") {
		t.Errorf("%s", text)
	}
}

func TestADocumentOfOnesOwnIsExtended(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/own.yaml", []byte("version: 1\nname: own\nenvironment: {set: {A: b}}\nlimits: {pids: 100}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := observation(t, policies.StandardName)
	o.Under, o.Targets = dir+"/own.yaml", nil
	o.Given.Set(settings.Pids, "100")
	policy, text := resolved(t, dir, o.sorted())
	if policy.Document.Text(settings.EnvironmentSet) != "A=b" || policy.Chain[1].Name != "own" || len(policy.Chain[0].Widened) > 0 {
		t.Errorf("%v\n%s", policy.Chain[0].Widened, text)
	}
}

// drawn is any observation of a run under a level.
func drawn(t *rapid.T, base Observation, label string) Observation {
	o := base
	o.Runs = []Run{{ID: agent.ID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, label+" id")), Name: "worker", Command: []string{"x"}, Status: agent.StatusExited}}
	paths := rapid.SliceOfN(rapid.SampledFrom([]string{"/tmp/a", "/tmp", "/workspace/b", "/usr/lib/c", "/dev/shm/x", "/var/tmp/y", "/home/agent/.z", "/etc/passwd", "/dev/null"}), 0, 5)
	o.Executed, o.Written, o.Read = paths.Draw(t, label+" executed"), paths.Draw(t, label+" written"), paths.Draw(t, label+" read")
	o.Reads, o.Folders = rapid.Bool().Draw(t, label+" reads"), paths.Draw(t, label+" folders")
	o.CallsKnown, o.ProgramsKnown, o.Programs = rapid.Bool().Draw(t, label+" known"), rapid.Bool().Draw(t, label+" mapped"), paths.Draw(t, label+" programs")
	o.Calls = rapid.SliceOfN(rapid.Map(rapid.SampledFrom([]agent.ObservedCall{{Name: "wait4"}, {Name: "pipe2"}, {Name: "epoll_wait"}, {Name: "chmod", Args: [6]uint64{0, 0o644}},
		{Name: "socket", Args: [6]uint64{unix.AF_UNIX}}, {Name: "memfd_create"}, {Name: "clone", Args: [6]uint64{uint64(unix.SIGCHLD)}}}),
		func(c agent.ObservedCall) agent.ObservedCall { return c }), 0, 4).Draw(t, label+" calls")
	o.Targets = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) agent.ObservedTarget {
		target := agent.ObservedTarget{Kind: rapid.SampledFrom(targetKinds).Draw(t, "kind"), Port: rapid.SampledFrom([]uint16{53, 443, 8080}).Draw(t, "port"),
			Allowed: rapid.Bool().Draw(t, "allowed"), Refused: rapid.Bool().Draw(t, "refused")}
		switch target.Kind {
		case kindHostPort:
			target.Address = "127.0.0.1"
		case kindDNS:
			target.Name, target.Port = rapid.SampledFrom([]string{"a.example.com", "b.example.com"}).Draw(t, "name"), 0
		default:
			if rapid.Bool().Draw(t, "named") {
				target.Name = rapid.SampledFrom([]string{"a.example.com", "b.example.com"}).Draw(t, "name")
			} else {
				target.Address = rapid.SampledFrom([]string{"203.0.113.5", "2001:db8::1"}).Draw(t, "address")
			}
		}
		return target
	}), 0, 4).Draw(t, label+" targets")
	n := rapid.Int64Range(0, 2<<30)
	o.Peaks = agent.ObservedPeaks{MemoryBytes: n.Draw(t, label+" memory"), Pids: rapid.Int64Range(0, 600).Draw(t, label+" pids"), CPUMS: n.Draw(t, label+" cpu"), WallMS: n.Draw(t, label+" wall"),
		OutputBytes: n.Draw(t, label+" output"), DiskBytes: n.Draw(t, label+" disk"), ShmBytes: n.Draw(t, label+" shm"), Descriptors: rapid.Int64Range(0, 5000).Draw(t, label+" files")}
	return o.sorted()
}

// TestMergeIsASet: the order and the number of merges do not matter.
func TestMergeIsASet(t *testing.T) {
	t.Parallel()
	base := observation(t, policies.StandardName)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawn(t, base, "a"), drawn(t, base, "b"), drawn(t, base, "c")
		merge := func(a, b Observation) Observation {
			m, err := Merge(a, b)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		if !reflect.DeepEqual(merge(a, a), a) {
			t.Errorf("not idempotent: %+v\n%+v", merge(a, a), a)
		}
		if !reflect.DeepEqual(merge(a, b), merge(b, a)) {
			t.Errorf("not commutative: %+v\n%+v", merge(a, b), merge(b, a))
		}
		if !reflect.DeepEqual(merge(merge(a, b), c), merge(a, merge(b, c))) {
			t.Errorf("not associative")
		}
		text, err := merge(a, b).Text()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Parse(text); err != nil || !reflect.DeepEqual(again, merge(a, b)) {
			t.Errorf("it is read back otherwise: %v", err)
		}
	})
}

func TestOtherRunsAreNotMerged(t *testing.T) {
	t.Parallel()
	a, b := observation(t, policies.StandardName), observation(t, "sandboxed")
	if _, err := Merge(a, b); err == nil || !strings.Contains(err.Error(), "under standard") {
		t.Error(err)
	}
	b = a
	b.Given.Values = maps.Clone(b.Given.Values)
	b.Given.Set(settings.Pids, "7")
	if _, err := Merge(a, b); err == nil || !strings.Contains(err.Error(), "limits.pids") {
		t.Error(err)
	}
}

// TestTheDocumentCoversTheObservation: whatever was seen, the document is accepted, is no wider
// than what the run had (but for the network, which --learn-network may open), and allows it.
func TestTheDocumentCoversTheObservation(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bases := map[string]Observation{}
	for _, level := range policies.Levels {
		bases[level] = observation(t, level)
	}
	rapid.Check(t, func(rt *rapid.T) {
		level := rapid.SampledFrom(policies.Levels).Draw(rt, "level")
		o := drawn(rt, bases[level], "o")
		policy, text := resolved(t, dir, o)
		for _, more := range settings.Wider(specOf(t, level), policy.Spec) {
			if !strings.HasPrefix(more.Place, "network.") && more.Place != "seccomp" {
				rt.Errorf("%s: it is wider than what the run had: %s\n%s", level, more, text)
			}
		}
		covered(rt, o, policy.Spec, text)
	})
}

// covered checks with what decides in a run.
func covered(t *rapid.T, o Observation, spec agent.Spec, text string) {
	for _, file := range o.Written {
		for _, place := range agent.WritablePlaces {
			given := filesOf(o.Given)
			if isWithin(file, place) && given.StaysWritable(place) && !spec.Files.StaysWritable(place) {
				t.Errorf("%s was written and is read-only\n%s", file, text)
			}
		}
	}
	if len(o.base()) > 0 && !o.Given.Has(settings.Root) && spec.Files.ReadOnly {
		t.Errorf("the base was written: %s", text)
	}
	for _, file := range slices.Concat(o.Read, o.Executed, o.Programs, o.Written, o.Folders) {
		if !spec.Files.MayRead(file) {
			t.Errorf("%s was opened and is refused\n%s", file, text)
		}
	}
	if o.CallsKnown {
		profile, err := seccomp.Profile(spec.Seccomp.Profile)
		if spec.Seccomp.Document != nil {
			profile, err = seccomp.Parse(spec.Seccomp.Document)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range o.Calls {
			if !seccomp.Decide(profile, c.Name, c.Args).Allowed() {
				t.Errorf("%v was made and is refused\n%s", c, text)
			}
		}
	}
	rules, err := egress.New(egress.Config{Mode: spec.Network, Rules: spec.Egress.Rules, HostPorts: spec.Egress.HostPorts})
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range o.Targets {
		if target.Kind != kindHostPort && target.Allowed && !covers(rules, target) {
			t.Errorf("%+v was reached and is refused\n%s", target, text)
		}
		if target.Kind == kindHostPort && target.Allowed && !slices.Contains(spec.Egress.HostPorts, target.Port) {
			t.Errorf("%+v was reached and is refused\n%s", target, text)
		}
	}
}

func TestUnused(t *testing.T) {
	t.Parallel()
	found, err := Unused(observation(t, policies.StandardName))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range found {
		lines = append(lines, fmt.Sprint(f))
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"{limits.pids 512 20}", "{limits.timeout no limit 1m30s}", "{files.root writable nothing", "{files.writable /var/tmp", "{files.read every file 3 files", "{seccomp sockets: ", "{seccomp shared-ipc: "} {
		if !strings.Contains(all, want) {
			t.Errorf("no finding %s in\n%s", want, all)
		}
	}
	for _, not := range []string{"/workspace", "processes:"} {
		if strings.Contains(all, not) {
			t.Errorf("%s was used:\n%s", not, all)
		}
	}
}

// FuzzParse: a file is refused in one error with a hint, or becomes a document.
func FuzzParse(f *testing.F) {
	for _, level := range policies.Levels {
		text, err := observation(f, level).Text()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := Parse(text)
		if err == nil {
			_, err = Write(o, "x", "/x.json", extend)
		}
		if err == nil {
			return
		}
		if failure := agent.FailureOf(err); agent.KindOf(err) != agent.KindInvalid || failure.Hint == "" {
			t.Errorf("%v: %+v", agent.KindOf(err), failure)
		}
	})
}
