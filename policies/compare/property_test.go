package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"pgregory.net/rapid"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/seccomp"
)

// redraws set one part of a spec to one of few values, so that generated specs are often ordered.
var redraws = []func(*rapid.T, *agent.Spec){
	func(t *rapid.T, s *agent.Spec) { s.Limits.Pids = rapid.Int64Range(16, 18).Draw(t, "pids") },
	func(t *rapid.T, s *agent.Spec) { s.Limits.CPUs = rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, "cpus") },
	func(t *rapid.T, s *agent.Spec) { s.Limits.CPUSet = pick(t, "", "0", "0-1", "1-2") },
	func(t *rapid.T, s *agent.Spec) {
		s.Limits.MemorySwapBytes = rapid.SampledFrom([]int64{-1, 1 << 30, 2 << 30}).Draw(t, "swap")
	},
	func(t *rapid.T, s *agent.Spec) {
		s.Limits.WallClock = time.Duration(rapid.IntRange(0, 2).Draw(t, "time"))
	},
	func(t *rapid.T, s *agent.Spec) { s.Limits.OutputBytes = rapid.Int64Range(0, 2).Draw(t, "output") },
	func(t *rapid.T, s *agent.Spec) {
		s.Limits.Rlimits = nil
		for _, name := range some(t, "core", "nofile") {
			s.Limits.Rlimits = append(s.Limits.Rlimits, agent.Rlimit{Name: name, Hard: rapid.Uint64Range(1, 2).Draw(t, name)})
		}
	},
	func(t *rapid.T, s *agent.Spec) {
		s.User.UID, s.User.GID = uint32(rapid.IntRange(0, 1).Draw(t, "uid")), 0
	},
	func(t *rapid.T, s *agent.Spec) { s.CapDrop = some(t, "ALL", "CAP_SETUID", "CAP_CHOWN", "CAP_SETGID") },
	func(t *rapid.T, s *agent.Spec) { s.Seccomp = filter(t) },
	func(t *rapid.T, s *agent.Spec) { redrawFiles(t, &s.Files) },
	func(t *rapid.T, s *agent.Spec) { redrawFiles(t, &s.Files) },
	redrawNetwork, redrawNetwork,
	func(t *rapid.T, s *agent.Spec) {
		s.Egress.Publish = nil
		for _, host := range some(t, "127.0.0.1:80", "0.0.0.0:80", "127.0.0.1:0", "0.0.0.0:0") {
			s.Egress.Publish = append(s.Egress.Publish, agent.PublishedPort{Host: netip.MustParseAddrPort(host), Port: 80})
		}
	},
	func(t *rapid.T, s *agent.Spec) { s.Kernel.Namespace = pick(t, "", "a", "a/b", "ab") },
	func(t *rapid.T, s *agent.Spec) { s.Kernel.OnDenial = pick(t, "", "pause", "end", "end-after:3") },
	func(t *rapid.T, s *agent.Spec) { s.Kernel.AtEnd = pick(t, "", "pause", "refuse") },
	func(t *rapid.T, s *agent.Spec) { s.Kernel.OnEnd, s.Schedule = pick(t, "", "x"), pick(t, "", "@daily") },
	func(t *rapid.T, s *agent.Spec) {
		s.Restart = agent.Restart{Policy: rapid.SampledFrom(append(agent.RestartPolicies, "")).Draw(t, "restart"), Max: rapid.IntRange(0, 2).Draw(t, "max")}
	},
	func(t *rapid.T, s *agent.Spec) { s.AllowUnenforced = some(t, "disk", "shm") },
	func(t *rapid.T, s *agent.Spec) { s.Priority = rapid.IntRange(-1, 1).Draw(t, "priority") },
	func(t *rapid.T, s *agent.Spec) { s.Learn = rapid.Bool().Draw(t, "learn") },
}

func pick(t *rapid.T, from ...string) string {
	return rapid.SampledFrom(from).Draw(t, "one of "+strings.Join(from, " "))
}

func some(t *rapid.T, from ...string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, len(from), rapid.ID).Draw(t, "some of "+strings.Join(from, " "))
}

func filter(t *rapid.T) agent.Seccomp {
	if names := seccomp.Names(); rapid.Bool().Draw(t, "built-in") {
		return agent.Seccomp{Profile: pick(t, names...)}
	}
	args := map[string]any{"index": 0, "value": rapid.IntRange(0, 2).Draw(t, "value"), "op": pick(t, "SCMP_CMP_EQ", "SCMP_CMP_LE", "SCMP_CMP_GE")}
	if rapid.Bool().Draw(t, "masked") {
		args = map[string]any{"index": 0, "value": rapid.IntRange(1, 3).Draw(t, "mask"), "valueTwo": 1, "op": "SCMP_CMP_MASKED_EQ"}
	}
	text, err := json.Marshal(map[string]any{"defaultAction": pick(t, "SCMP_ACT_ERRNO", "SCMP_ACT_ALLOW"), "syscalls": []any{
		map[string]any{"names": append(some(t, "keyctl", "write"), "read"), "action": pick(t, "SCMP_ACT_ALLOW", "SCMP_ACT_KILL_PROCESS")},
		map[string]any{"names": []string{"socket"}, "action": "SCMP_ACT_ALLOW", "args": []any{args}}}})
	if err != nil {
		t.Fatal(err)
	}
	return agent.Seccomp{Profile: "/f.json", Document: text}
}

func redrawNetwork(t *rapid.T, s *agent.Spec) {
	targets := []string{"example.com", "*.example.com", "a.example.com", "a.example.com:443", "@a.example.com", "10.0.0.0/8", "10.1.0.0/16:80", "public", "private", "203.0.113.7", "public:*"}
	s.Egress.Rules, s.Egress.HostPorts, s.Egress.DNS = nil, nil, nil
	if s.Network = pick(t, agent.NetworkModes...); s.Network == agent.NetworkHost || s.Network == agent.NetworkNone {
		return
	}
	for _, deny := range []bool{false, true} {
		for _, target := range rapid.SliceOfNDistinct(rapid.SampledFrom(targets), 0, 2, rapid.ID).Draw(t, "targets") {
			if !deny || !strings.HasPrefix(target, "@") {
				s.Egress.Rules = append(s.Egress.Rules, agent.EgressRule{Target: target, Deny: deny})
			}
		}
	}
	if rapid.Bool().Draw(t, "ports") {
		s.Egress.HostPorts = []uint16{uint16(rapid.IntRange(80, 81).Draw(t, "port"))}
	}
	if rapid.Bool().Draw(t, "dns") {
		s.Egress.DNS = []netip.AddrPort{address(pick(t, "9.9.9.9:53", "8.8.8.8:53"))}
	}
}

// The host of generated specs: what begins with base: is its base system, and /srv/a/fs a file
// system of its own.
var (
	hostFiles  = []string{"/srv/a/x", "/srv/a/s/y", "/srv/a/s/z", "/srv/a/fs/m", "/srv/a/.aws/credentials", "/srv/b/x"}
	baseFiles  = []string{"/usr/bin/p", "/usr/lib/q"}
	fileSystem = "/srv/a/fs"
)

func beneath(outer, inner string) bool {
	return within(outer, fileSystem) == within(inner, fileSystem)
}

func redrawFiles(t *rapid.T, f *agent.Files) {
	*f = agent.Files{ReadOnly: rapid.Bool().Draw(t, "read-only"), Workspace: pick(t, "", "/srv/a", "/srv/a/s", "/srv/a/fs", "/srv/b"), GitDir: agent.NoGitDir, Prefixes: some(t, "/srv/b")}
	if f.ReadOnly && rapid.Bool().Draw(t, "execute") {
		f.Execute = append(some(t, "/usr/bin", "/d", "/d/s/*"), "/usr/lib")
	}
	if rapid.Bool().Draw(t, "read") {
		f.Read = append(some(t, "/usr/bin", "/d/s", "/workspace", "/e"), "/usr/lib")
	}
	for _, target := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/d", "/e", "/d/s", "/usr/bin", "/srv", "/workspace", "/workspace/s", "/home/agent/d"}), 0, 3, rapid.ID).Draw(t, "targets") {
		if rapid.IntRange(0, 3).Draw(t, "tmpfs") == 0 {
			f.Tmpfs = append(f.Tmpfs, agent.Tmpfs{Target: target})
			continue
		}
		b := agent.Bind{Source: pick(t, "/srv/a", "/srv/a/s", "/srv/a/fs", "/srv/b"), Target: target, ReadOnly: rapid.Bool().Draw(t, "ro")}
		b.CopyOnWrite = b.ReadOnly && rapid.Bool().Draw(t, "copied")
		b.Secrets = b.CopyOnWrite && rapid.Bool().Draw(t, "secrets")
		f.Binds = append(f.Binds, b)
	}
}

func draw(t *rapid.T) agent.Spec {
	s := agent.Spec{User: agent.User{Name: "agent", UID: 1000}, Seccomp: agent.Seccomp{Profile: "standard"}, Network: agent.NetworkNone}
	for _, redraw := range redraws {
		redraw(t, &s)
	}
	return s
}

// near is s with up to three parts drawn again.
func near(t *rapid.T, s agent.Spec) agent.Spec {
	s = copyOf(t, s)
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		redraws[rapid.IntRange(0, len(redraws)-1).Draw(t, "change")](t, &s)
	}
	return s
}

var among = Now{Beneath: beneath}

// The comparison is an order: no spec is wider than itself, and the child of a child has no more.
func TestItIsAnOrder(t *testing.T) {
	t.Parallel()
	chains := 0
	rapid.Check(t, func(t *rapid.T) {
		a := draw(t)
		if found := Wider(a, a, among); len(found) > 0 {
			t.Fatalf("%+v\n%+v", a, found)
		}
		for range 20 {
			b := near(t, a)
			c := near(t, b)
			if len(Wider(a, b, among)) > 0 || len(Wider(b, c, among)) > 0 {
				continue
			}
			if chains++; len(Wider(a, c, among)) > 0 {
				t.Fatalf("%+v\n%+v\n%+v\n%+v", a, b, c, Wider(a, c, among))
			}
		}
	})
	if chains < 60 {
		t.Errorf("control: only %d chains of three", chains)
	}
}

func has(found []Difference, prefix string) bool {
	return slices.ContainsFunc(found, func(d Difference) bool { return strings.HasPrefix(d.Field, prefix) })
}

// rights are what an agent may do with a file of the host.
type rights struct{ write, execute bool }

// view is what an agent sees of the host, place by place, as package rootfs mounts it.
func view(s agent.Spec) map[string][]rights {
	type shown struct {
		source string // empty: nothing of the host
		bind   agent.Bind
		cow    bool
	}
	at := map[string]shown{}
	for _, place := range []string{"/workspace", "/tmp", "/home/agent"} {
		if s.Files.ReadOnly && s.Files.StaysWritable(place) {
			at[place] = shown{}
		}
	}
	if s.Files.Workspace != "" {
		at["/workspace"] = shown{source: s.Files.Workspace, cow: true}
	}
	for _, prefix := range s.Files.Prefixes {
		at[prefix] = shown{source: prefix, bind: agent.Bind{ReadOnly: true}, cow: true}
	}
	for _, b := range s.Files.Binds {
		at[b.Target] = shown{b.Source, b, b.CopyOnWrite}
	}
	for _, mount := range s.Files.Tmpfs {
		at[mount.Target] = shown{}
	}
	top := func(inside string) string {
		for dir := inside; dir != "/"; dir = path.Dir(dir) {
			if _, is := at[dir]; is {
				return dir
			}
		}
		return "/"
	}
	seen := map[string][]rights{}
	add := func(file, inside string, m shown) {
		if s.Files.MayRead(inside) {
			seen[file] = append(seen[file], rights{write: m.source != "" && !m.cow && !m.bind.ReadOnly, execute: s.Files.MayExecute(inside)})
		}
	}
	for _, file := range baseFiles {
		if top(file) == "/" {
			add("base:"+file, file, shown{})
		}
	}
	for target, m := range at {
		for _, file := range hostFiles {
			if m.source == "" || !within(file, m.source) {
				continue
			}
			inside := below(file, m.source, target)
			hidden := top(inside) != target || m.cow && !beneath(m.source, file)
			refused := m.bind.CopyOnWrite && !m.bind.Secrets && strings.HasSuffix(file, "/credentials") // the run is
			if !hidden && !refused {
				add(file, inside, m)
			}
		}
	}
	return seen
}

// Each file that a child sees, writes or executes is one with which the parent can do that.
func TestNothingWiderSeesNothingMore(t *testing.T) {
	t.Parallel()
	held, shown, control := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		parent := agent.Spec{Seccomp: agent.Seccomp{Profile: "standard"}}
		redrawFiles(t, &parent.Files)
		for range 30 {
			child := copyOf(t, parent)
			if redrawFiles(t, &child.Files); rapid.IntRange(0, 2).Draw(t, "lists") > 0 {
				child.Files.ReadOnly, child.Files.Execute, child.Files.Read = parent.Files.ReadOnly, parent.Files.Execute, parent.Files.Read
			}
			beyond := seesMore(parent, child)
			if has(Wider(parent, child, among), "files.") {
				if beyond != "" {
					control++
				}
				continue
			}
			if held++; len(view(child)) > len(baseFiles) {
				shown++
			}
			if beyond != "" {
				t.Fatalf("%s\nparent %+v\nchild %+v", beyond, parent.Files, child.Files)
			}
		}
	})
	if held < 40 || shown < 10 || control < 50 {
		t.Errorf("control: %d pairs, in %d of them the child sees files of the host; %d others see more", held, shown, control)
	}
}

func seesMore(parent, child agent.Spec) string {
	has := view(parent)
	for file, asks := range view(child) {
		for _, r := range asks {
			if !slices.ContainsFunc(has[file], func(h rights) bool { return (h.write || !r.write) && (h.execute || !r.execute) }) {
				return fmt.Sprintf("%s is seen with %+v, and not %+v", file, r, has[file])
			}
		}
	}
	return ""
}

// Where nothing is wider, each connection of the child's is one that the parent may make.
func TestNothingWiderReachesNothingMore(t *testing.T) {
	t.Parallel()
	held, reached, control := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var parent, child agent.Spec
		redrawNetwork(t, &parent)
		for range 20 {
			redrawNetwork(t, &child)
			found := Wider(parent, child, now)
			wider := has(found, "network") || has(found, "egress.rules") || has(found, "egress.host_ports")
			for _, host := range []string{"example.com", "a.example.com", "b.a.example.com", "other.test", "10.1.2.3", "10.2.2.3", "192.168.0.1", "203.0.113.7", "198.51.100.1", "93.184.216.34", "127.0.0.1"} {
				for _, port := range []uint16{80, 81, 443, 9999} {
					asks, may := reaches(t, child, host, port), reaches(t, parent, host, port)
					switch {
					case wider && asks && !may:
						control++
					case !wider && asks && !may:
						t.Fatalf("%s:%d is reached by %+v\nand not %+v", host, port, child, parent)
					case !wider && asks:
						reached++
					}
				}
			}
			if !wider {
				held++
			}
		}
	})
	if held < 40 || reached < 40 || control < 100 {
		t.Errorf("control: %d pairs, %d targets, %d beyond in others", held, reached, control)
	}
}

func reaches(t *rapid.T, s agent.Spec, host string, port uint16) bool {
	if s.Network == agent.NetworkHost {
		return true
	}
	rules, err := egress.New(egress.Config{Mode: s.Network, Rules: s.Egress.Rules, HostPorts: s.Egress.HostPorts})
	if err != nil {
		t.Fatal(err)
	}
	steps, err := rules.Why(host, port, egress.TCP)
	if err != nil {
		t.Fatal(err)
	}
	return steps[len(steps)-1].Verdict.Allowed
}

// Where nothing is wider, the parent's filter lets each call of the child's through.
func TestNothingWiderCallsNothingMore(t *testing.T) {
	t.Parallel()
	held, control := 0, 0
	profile := func(t *rapid.T, s agent.Seccomp) (p *specs.LinuxSeccomp) {
		var err error
		if p, err = seccomp.Profile(s.Profile); len(s.Document) > 0 {
			p, err = seccomp.Parse(s.Document)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	rapid.Check(t, func(t *rapid.T) {
		parent, child := agent.Spec{Seccomp: filter(t)}, agent.Spec{Seccomp: filter(t)}
		wider := has(Wider(parent, child, now), "seccomp")
		has, asks := profile(t, parent.Seccomp), profile(t, child.Seccomp)
		for _, call := range []string{"read", "write", "keyctl", "socket", "ptrace", "clone", "openat"} {
			for _, arg := range []uint64{0, 1, 2, 3, 16, 1 << 28, math.MaxUint32} {
				args := [6]uint64{arg, arg, arg}
				if beyond := seccomp.Decide(asks, call, args).Allowed() && !seccomp.Decide(has, call, args).Allowed(); beyond && wider {
					control++
				} else if beyond {
					t.Fatalf("%s%v passes under %+v\nand not %+v", call, args, child.Seccomp, parent.Seccomp)
				}
			}
		}
		if !wider {
			held++
		}
	})
	if held == 0 || control == 0 {
		t.Errorf("control: %d pairs, %d calls beyond in others", held, control)
	}
}

// Where nothing is wider, no limit of the child's is above the parent's; 0 and -1 are no limit.
func TestNothingWiderHasNoMore(t *testing.T) {
	t.Parallel()
	effective := func(n float64) float64 {
		if n <= 0 {
			return math.Inf(1)
		}
		return n
	}
	limits := func(s agent.Spec) []float64 {
		l, hard := s.Limits, map[string]float64{}
		for _, limit := range l.Rlimits {
			hard[limit.Name] = float64(limit.Hard)
		}
		return []float64{float64(l.Pids), effective(l.CPUs), effective(float64(l.WallClock)), effective(float64(l.OutputBytes)), effective(float64(l.MemorySwapBytes)), effective(hard["core"]), effective(hard["nofile"])}
	}
	held := 0
	rapid.Check(t, func(t *rapid.T) {
		parent := draw(t)
		child := near(t, parent)
		if has(Wider(parent, child, among), "limits.") {
			return
		}
		held++
		for i, most := range limits(parent) {
			if limits(child)[i] > most {
				t.Fatalf("%+v\n%+v", parent.Limits, child.Limits)
			}
		}
	})
	if held < 8 {
		t.Errorf("control: %d pairs", held)
	}
}
