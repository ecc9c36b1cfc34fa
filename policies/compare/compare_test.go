package compare

import (
	"encoding/json"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// fieldsOf are the paths of the fields of a type, without structs that have fields of their own.
func fieldsOf(of reflect.Type, at string) (fields []string) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice && of.Elem().Kind() == reflect.Struct {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || strings.HasPrefix(of.PkgPath(), "net/netip") {
		return []string{at}
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		fields = append(fields, fieldsOf(of.Field(i).Type, strings.TrimPrefix(at+"."+name, "."))...)
	}
	return fields
}

// Each field of a spec has one row, and each row a field: a field that is added needs a decision.
func TestEachFieldHasARow(t *testing.T) {
	t.Parallel()
	rows := map[string]Row{}
	for _, row := range Rows() {
		if _, twice := rows[row.Field]; twice {
			t.Errorf("%s has two rows", row.Field)
		}
		if rows[row.Field] = row; row.Means == "" || (row.more != nil) != (row.Kind == Compared) || row.Kind != Compared && row.inherit != nil {
			t.Errorf("%+v", row)
		}
		if other, is := strings.CutPrefix(row.Means, "with `"); is != (row.Kind == Together) || is && !slices.ContainsFunc(Rows(), func(r Row) bool { return r.Field+"`" == other && r.more != nil }) {
			t.Errorf("%s is compared with %s", row.Field, other)
		}
	}
	used := map[string]bool{Deadline: true}
	for _, field := range fieldsOf(reflect.TypeFor[agent.Spec](), "") {
		found := field
		for whole := range rows {
			if above, is := strings.CutSuffix(whole, WholeField); is && strings.HasPrefix(field, above+".") {
				found = whole
			}
		}
		if used[found] = true; rows[found].Field == "" {
			t.Errorf("agent.Spec has the field %s, and no row says whether a child may have more of it", field)
		}
	}
	for field := range rows {
		if !used[field] {
			t.Errorf("agent.Spec has no field %s", field)
		}
	}
	if n := len(fieldsOf(reflect.TypeFor[agent.Spec](), "")); n < 150 {
		t.Errorf("control: a spec has %d fields", n)
	}
}

// What a policy bounds is compared here, too: a key is used by a row, or is one of those that are
// compared otherwise.
func TestEachComparedSettingIsUsed(t *testing.T) {
	t.Parallel()
	otherwise := map[string]string{"user": "ids", "files.volumes": "mounts", "files.home": "mounts", "network.allow": "rules alone", "models": "grants", "grants": "grants", "budgets": "budgets"}
	fields := map[string]string{}
	for _, control := range controls() {
		fields[control.setting] = control.field
	}
	for i := range settings.All() {
		if s := settings.All()[i]; s.Wider != nil && fields[s.Key] == "" && otherwise[s.Key] == "" {
			t.Errorf("%s is compared for policies, and by no row", s.Key)
		}
	}
}

var names = []string{"parent", "b", "c"}

// whole draws a spec of which every part is limited.
func whole(t *rapid.T) agent.Spec {
	size := rapid.Int64Range(64, 512)
	n := func(label string) int64 { return size.Draw(t, label) << 20 }
	return agent.Spec{
		ID: agent.NewID(), Name: rapid.SampledFrom(names).Draw(t, "name"), Command: agent.RawStrings{"/bin/true"}, Dir: "/",
		User: agent.User{Name: "agent", UID: 1000, GID: 1000, Home: agent.HomeDir}, ClockStart: time.Hour,
		Limits: agent.Limits{MemoryBytes: n("memory"), MemorySwapBytes: 1 << 30, CPUs: 1.5, CPUSet: "0-2", Pids: size.Draw(t, "pids"), CPUTime: time.Minute, WallClock: time.Duration(n("time")),
			StopGrace: time.Second, OutputBytes: n("output"), DiskBytes: n("disk"), ShmBytes: n("shm"), Rlimits: []agent.Rlimit{{Name: "nofile", Soft: 10, Hard: 20}}},
		Files: agent.Files{ReadOnly: true, Writable: []string{"/workspace", "/tmp", "/home/agent"}, Execute: []string{"/bin/sh", "/usr/bin"}, Read: []string{"/usr", "/a", "/workspace"}, Workspace: "/srv/ws", GitDir: agent.NoGitDir,
			Prefixes: []string{"/opt/py"}, Landlock: agent.LandlockRequired, Home: &agent.Home{Name: "h", Folder: "/srv/ws"}, Keep: []string{"/memory", "/notes"}, Tmpfs: []agent.Tmpfs{{Target: "/usr/local/tmp"}},
			Binds: []agent.Bind{{Source: "/srv/a", Target: "/a", ReadOnly: true}, {Source: "/srv/w", Target: "/w"}, {Source: "/home/u/.cargo", Target: "/home/agent/.cargo", ReadOnly: true, CopyOnWrite: true}}},
		Seccomp: agent.Seccomp{Profile: "strict"}, Network: agent.NetworkAllowlist,
		Egress: agent.Egress{Rules: []agent.EgressRule{{Target: "*.example.com"}, {Target: "bad.example.com", Deny: true}}, HostPorts: []uint16{80, 81},
			Publish: []agent.PublishedPort{{Host: address("127.0.0.1:8080"), Port: 80}, {Host: address("127.0.0.1:0"), Port: 81}},
			DNS:     []netip.AddrPort{address("9.9.9.9:53")}, Limits: agent.EgressLimits{Connections: 10, PerSecond: 10, Bytes: n("bytes")}},
		Kernel:  agent.Kernel{Grants: []string{"tool:read*", "model:gpt"}, Asks: []string{agent.AskNet}, Secrets: []string{"TOKEN:env=T"}, Budgets: []string{"tokens=100"}, OnDenial: "end-after:3", OnWarn: "warn", OnEnd: "https://end.example", OnAsk: "answer", OnAskKey: "/root/key", Namespace: "team", ModelLog: true},
		Restart: agent.Restart{Policy: agent.RestartOnFailure, Max: 3}, StartTimeout: 20 * time.Second, Priority: rapid.IntRange(-5, 5).Draw(t, "priority"),
	}
}

func address(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func copyOf(t *rapid.T, s agent.Spec) (c agent.Spec) {
	data, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func fields(all []Difference) []string {
	found := map[string]bool{}
	for _, d := range all {
		found[d.Field] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// now lets everything below a mount be a part of it.
var now = Now{Beneath: func(string, string) bool { return true }}

// One control for each row: a child that differs in this field alone has more, and is found by this
// row alone; one that is narrower there passes. A field that is not compared passes with any value.
func TestEachRowFindsItsField(t *testing.T) {
	t.Parallel()
	kinds, held := map[string]Row{}, map[string][2]int{}
	for _, row := range Rows() {
		kinds[row.Field] = row
	}
	for _, control := range controls() {
		row := kinds[control.field]
		held[control.field] = [2]int{held[control.field][0] + len(control.wider), held[control.field][1] + len(control.narrower)}
		t.Run(control.field, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				parent := whole(t)
				if control.given != nil {
					control.given(&parent)
				}
				at := now
				if control.now != nil {
					at = *control.now
				}
				if found := Wider(parent, copyOf(t, parent), at); len(found) > 0 && control.now == nil {
					t.Fatalf("more than itself: %+v", found)
				}
				for _, change := range control.wider {
					child := copyOf(t, parent)
					change(&child)
					found := Wider(parent, child, at)
					by := control.field
					if row.Kind == Together {
						by = strings.TrimSuffix(strings.TrimPrefix(row.Means, "with `"), "`")
					}
					if control.by != "" {
						by = control.by
					}
					switch {
					case row.Kind == Free || row.Kind == Elsewhere:
						if len(found) > 0 {
							t.Fatalf("any value is allowed, and %+v", found)
						}
					case !slices.Equal(fields(found), []string{by}):
						t.Fatalf("found %v, not %s: %+v", fields(found), by, found)
					case found[0].Parent == "" || found[0].Child == "" || found[0].Hint == "":
						t.Fatalf("%+v", found[0])
					}
				}
				for _, change := range control.narrower {
					child := copyOf(t, parent)
					change(&child)
					if found := Wider(parent, child, at); len(found) > 0 {
						t.Fatalf("no more than the parent, and %+v", found)
					}
				}
			})
		})
	}
	for field, row := range kinds {
		if n := held[field]; n[0] == 0 || n[1] == 0 && (row.Kind == Compared || row.Kind == Together) {
			t.Errorf("%s has no control, or one side of it", field)
		}
	}
}

func TestARefusalSaysHow(t *testing.T) {
	t.Parallel()
	parent, child := agent.Spec{Seccomp: agent.Seccomp{Profile: "strict"}, Limits: agent.Limits{Pids: 10}}, agent.Spec{Seccomp: agent.Seccomp{Profile: "strict"}, Limits: agent.Limits{Pids: 20}}
	found := Wider(parent, child, Now{})
	if len(found) != 1 {
		t.Fatal(found)
	}
	err := found[0].Err()
	if agent.KindOf(err) != agent.KindPrivilege || err.Error() != "limits.pids: the child would have more than its parent: 20 instead of 10" || agent.FailureOf(err).Hint != "narrow limits.pids to 10" {
		t.Errorf("%v, %+v", err, agent.FailureOf(err))
	}
}

// What a child leaves out it gets from its parent, and then it has no more there.
func TestInherit(t *testing.T) {
	t.Parallel()
	left := agent.Spec{User: agent.User{Name: "agent", UID: 1000, GID: 1000}, Network: agent.NetworkAllowlist, Seccomp: agent.Seccomp{Profile: "minimal"},
		Egress: agent.Egress{Rules: []agent.EgressRule{{Target: "*.example.com"}}}, Kernel: agent.Kernel{Grants: []string{"model:gpt"}}, Files: agent.Files{Tmpfs: []agent.Tmpfs{{Target: "/usr/local/tmp"}}, Prefixes: []string{"/opt/py"}}}
	rapid.Check(t, func(t *rapid.T) {
		parent := whole(t)
		if found := fields(Wider(parent, left, now)); len(found) < 15 {
			t.Fatalf("control: %v", found)
		}
		at := Now{Time: time.Unix(1000, 0), Deadline: time.Unix(1000, 0).Add(time.Millisecond), Beneath: now.Beneath}
		child := Inherit(parent, left, at)
		if found := Wider(parent, child, at); len(found) > 0 {
			t.Fatal(found)
		}
		if child.Limits.WallClock != time.Millisecond || child.Limits.Pids != parent.Limits.Pids || len(left.Egress.Rules) != 1 {
			t.Fatalf("%+v", child)
		}
		// What it asks for stays, also where it is more.
		own := copyOf(t, parent)
		own.Limits.Pids, own.Limits.WallClock = parent.Limits.Pids+1, parent.Limits.WallClock+1
		if kept := Inherit(parent, own, Now{}); kept.Limits.Pids != own.Limits.Pids || kept.Limits.WallClock != own.Limits.WallClock {
			t.Fatalf("%+v", kept.Limits)
		}
	})
}
