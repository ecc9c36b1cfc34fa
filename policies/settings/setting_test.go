package settings

import (
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// Each row says what it is to people, and a key of documents is compared: a ceiling that nothing
// compares would bound nothing.
func TestRows(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range All() {
		s := &All()[i]
		for _, name := range []string{s.Flag, s.Key} {
			if name != "" && seen[name] && s.Flag != s.Key {
				t.Errorf("%s twice", name)
			}
			seen[name] = true
		}
		if s.Flag != "" && (s.Usage == "" || s.Group == "" || strings.HasSuffix(s.Usage, ".")) {
			t.Errorf("--%s: usage %q, group %q", s.Flag, s.Usage, s.Group)
		}
		if s.Key != "" && s.Doc+s.Usage == "" {
			t.Errorf("%s has no description", s.Key)
		}
		if s.Key != "" && s.Wider == nil && !strings.HasPrefix(s.Key, "environment.") {
			t.Errorf("%s is compared by nothing", s.Key)
		}
		if s.Write != nil && s.Key == "" || s.Learn != nil && s.Write == nil || s.Wider != nil && s.Key == "" {
			t.Errorf("%s: its text is for documents, and it has no key", s.Name())
		}
	}
}

// The written form of a spec's values is read back as the same values.
func TestWrittenIsRead(t *testing.T) {
	t.Parallel()
	spec := base()
	spec.Limits.MemorySwapBytes, spec.Files.Landlock, spec.CapDrop, spec.Seccomp.Profile = 3<<29, "", []string{"CAP_CHOWN"}, "standard"
	spec.Limits.StopGrace, spec.Files.Rootfs, spec.AllowUnenforced = 0, "/usr", []string{"seccomp"}
	spec.Files.Binds = []agent.Bind{{Source: "/usr", Target: "/a", ReadOnly: true}, copied(".cargo"), copied("go/bin")}
	spec.Files.Tmpfs = []agent.Tmpfs{{Target: "/b", SizeBytes: 1 << 20, Mode: 0o700}, {Target: "/c"}}
	given := Given(spec)
	var again agent.Spec
	r := Reader{Values: given, Host: host.Host{CPUs: []int{0, 1, 2}}, Spec: &again}
	for _, section := range []*Section{Network(), Filter(), Privileges(), Identity(), Limits(), Ulimits(), Files(), Weaken()} {
		if err := r.Read(*section); err != nil {
			t.Fatal(err)
		}
	}
	for name, texts := range given {
		if back := Given(again)[name]; !reflect.DeepEqual(back, texts) {
			t.Errorf("%s: %q became %q", name, texts, back)
		}
	}
	if more := append(Wider(spec, again), Wider(again, spec)...); len(more) > 0 {
		// A document has no grants of a run.
		for _, d := range more {
			if Given(spec).Has(d.Place) || strings.HasPrefix(d.Place, "limits.") || strings.HasPrefix(d.Place, "files.") {
				t.Errorf("it is another: %s", d)
			}
		}
	}
}
