package kubernetes

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/kubetest"
	"clove.run/clove/oci"
	"clove.run/clove/policies"
)

func someRun() Run {
	spec := policies.Standard()
	spec.Command = []string{"python3", "/workspace/agent.py"}
	return Run{Spec: spec, Stem: "agent", Image: "img", RuntimeClass: "clove", Content: []File{{"agent.py", []byte("print(1)\n")}}}
}

// text renders a run, which must succeed, and checks the result with the API's own types.
func text(t *testing.T, run Run) string {
	t.Helper()
	manifest, err := Render(run)
	if err != nil {
		t.Fatal(err)
	}
	made, err := manifest.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kubetest.Decode(made); err != nil {
		t.Errorf("%v in\n%s", err, made)
	}
	return string(made)
}

// TestTheNameHangsOnEverything: what changes the Job changes its name, and nothing else does.
func TestTheNameHangsOnEverything(t *testing.T) {
	t.Parallel()
	name := func(change func(*Run)) string {
		run := someRun()
		change(&run)
		_, after, _ := strings.Cut(text(t, run), "app.kubernetes.io/name: ")
		name, _, _ := strings.Cut(after, "\n")
		return name
	}
	seen := map[string]string{}
	for what, change := range map[string]func(*Run){
		"nothing":  func(*Run) {},
		"image":    func(r *Run) { r.Image = "other" },
		"command":  func(r *Run) { r.Spec.Command = []string{"python3"} },
		"a file":   func(r *Run) { r.Content[0].Text = []byte("print(2)\n") },
		"memory":   func(r *Run) { r.Spec.Limits.MemoryBytes++ },
		"a value":  func(r *Run) { r.Variables = []Variable{{Name: "A", Value: "1"}} },
		"a secret": func(r *Run) { r.Variables, r.Secret = []Variable{{Name: "A", IsSecret: true}}, "keys" },
		"the stem": func(r *Run) { r.Stem = "My Agent.2_" + strings.Repeat("é-", 60) },
		"no stem":  func(r *Run) { r.Stem = "éé" },
	} {
		made := name(change)
		if made != name(change) || seen[made] != "" || len(made) > 63 {
			t.Errorf("%s and %s make %q", what, seen[made], made)
		}
		seen[made] = what
	}
	if made := name(func(r *Run) { r.Spec.Name = "mine" }); made != "mine" {
		t.Errorf("%q", made)
	}
}

func TestRestartsHaveADeadlineEach(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		restart  agent.Restart
		clock    time.Duration
		backoff  int32
		deadline int64 // 0: none
	}{
		"no deadline":        {agent.Restart{}, 0, 0, 0},
		"one start":          {agent.Restart{Policy: agent.RestartNever}, time.Minute, 0, 60 + 300},
		"a part of a second": {agent.Restart{}, 1500 * time.Millisecond, 0, 2 + 300},
		"four starts":        {agent.Restart{Policy: agent.RestartOnFailure, Max: 3}, time.Minute, 3, 4*60 + 300},
		"starts for ever":    {agent.Restart{Policy: agent.RestartOnFailure}, time.Minute, math.MaxInt32, 0},
		"more than fit":      {agent.Restart{Policy: agent.RestartOnFailure, Max: math.MaxInt}, time.Minute, math.MaxInt32, 0},
		"far away":           {agent.Restart{Policy: agent.RestartOnFailure, Max: math.MaxInt32 - 1}, 10 * 365 * 24 * time.Hour, math.MaxInt32 - 1, math.MaxInt32*315360000 + 300},
	} {
		spec := policies.Standard()
		spec.Restart, spec.Limits.WallClock = row.restart, row.clock
		made := jobOf(spec)
		deadline := int64(0)
		if made.ActiveDeadlineSeconds != nil {
			deadline = *made.ActiveDeadlineSeconds
		}
		if made.BackoffLimit != row.backoff || deadline != row.deadline {
			t.Errorf("%s: %d restarts, %d s", name, made.BackoffLimit, deadline)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{1: "1", 1023: "1023", 1024: "1Ki", 256 << 20: "256Mi", 1 << 30: "1Gi", 3 << 29: "1536Mi", 1 << 52: "4096Ti", 1<<30 + 1: "1073741825"} {
		if got := quantity(n); got != want {
			t.Errorf("%d is %s, not %s", n, got, want)
		}
	}
	for cpus, want := range map[float64]string{0.01: "10m", 0.5: "500m", 0.57: "570m", 0.29: "290m", 1: "1", 1.5: "1500m", 64: "64", 0.0109: "10m", 2.9999: "2999m"} {
		if got := milliCPUs(cpus); got != want {
			t.Errorf("%v CPUs are %s, not %s", cpus, got, want)
		}
	}
}

// expand expands variables in commands and values as the kubelet does.
func expand(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '$' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		switch text[i+1] {
		case '$':
			out.WriteByte('$')
			i++
		case '(':
			end := strings.IndexByte(text[i:], ')')
			if end < 0 {
				out.WriteString("$(")
				i++
				continue
			}
			out.WriteString("EXPANDED")
			i += end
		default:
			out.WriteByte('$')
		}
	}
	return out.String()
}

func TestNothingIsExpanded(t *testing.T) {
	t.Parallel()
	if expand("a $(HOME)") != "a EXPANDED" || expand("$$") != "$" {
		t.Fatal("the control expands nothing")
	}
	for _, plain := range []string{"", "$", "$$", "$$$", "$(HOME)", "$$(HOME)", "$$$(HOME)", "a$b", "$HOME", "$(", "$(x", "a $(b) $(c)$", "${X}"} {
		if got := expand(literal(plain)); got != plain {
			t.Errorf("%q is written %q and becomes %q", plain, literal(plain), got)
		}
	}
}

func TestFilesGetKeysThatAreFree(t *testing.T) {
	t.Parallel()
	paths := []string{"a/b.py", "a.b.py", "a_b.py", "a b.py", ".", "..", "..x", ".hidden", "ü.py", strings.Repeat("long/", 60) + "x.py", strings.Repeat("long/", 60) + "y.py"}
	var files []File
	for _, p := range paths {
		files = append(files, File{Path: p})
	}
	all, err := place(files)
	if err != nil || len(all) != len(paths) {
		t.Fatalf("%d, %v", len(all), err)
	}
	seen := map[string]bool{}
	for _, f := range all {
		if seen[f.key] || !secretWord().MatchString(f.key) || f.key == "." || strings.HasPrefix(f.key, "..") {
			t.Errorf("%s has the key %q", f.path, f.key)
		}
		seen[f.key] = true
	}
	for _, bad := range []string{"a:b", "a\nb", "\xff"} {
		if _, err := place([]File{{Path: bad}}); err == nil {
			t.Errorf("%q is mounted", bad)
		}
	}
}

// TestWhatTheNodeWouldRefuseIsRefusedHere: package oci checks the annotations before a Job is
// written.
func TestWhatTheNodeWouldRefuseIsRefusedHere(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Run){
		"a network": func(r *Run) { r.Spec.Network = agent.NetworkHost },
		"a target": func(r *Run) {
			r.Spec.Network, r.Spec.Egress.Rules = agent.NetworkAllowlist, []agent.EgressRule{{Target: "http://x"}}
		},
		"root":            func(r *Run) { r.Spec.User.UID = 0 },
		"writable":        func(r *Run) { r.Spec.Files.ReadOnly, r.Spec.Files.Writable = true, []string{"/tmp"} },
		"a wall":          func(r *Run) { r.Spec.Files.Landlock = agent.LandlockRequired },
		"a list of reads": func(r *Run) { r.Spec.Files.Read = []string{"/usr"} },
		"a record":        func(r *Run) { r.Record = "/etc/passwd" },
		"a record of several starts": func(r *Run) {
			r.Record, r.Spec.Restart.Policy = oci.RecordsDir+"/a.json", agent.RestartOnFailure
		},
		"a time":          func(r *Run) { r.Spec.Limits.WallClock = time.Nanosecond },
		"a name":          func(r *Run) { r.Spec.Name = "A" },
		"a runtime class": func(r *Run) { r.RuntimeClass = "a b" },
		"a secret's key":  func(r *Run) { r.Variables, r.Secret = []Variable{{Name: "a/b", IsSecret: true}}, "keys" },
	} {
		run := someRun()
		change(&run)
		if made, err := Render(run); agent.KindOf(err) != agent.KindInvalid || made.objects != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestJSONHasTheSameObjects(t *testing.T) {
	t.Parallel()
	run := someRun()
	run.Record = oci.RecordsDir + "/a.json"
	manifest, err := Render(run)
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(manifest)
	if err != nil || !strings.HasPrefix(string(list), `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap"`) || !strings.Contains(string(list), run.Record) {
		t.Errorf("%v, %s", err, list)
	}
}
