//go:build root

package runc

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/testhost"
)

// The last versions of runc before each weakness was fixed.
const (
	until2021 = "1.0.0-rc93"
	until2023 = "1.1.4"
)

// arena is a test of an escape: the same attack under two runtimes.
type arena struct {
	t   *testing.T
	dir string
}

func newArena(t *testing.T) *arena {
	t.Helper()
	testhost.Root(t)
	testhost.NoResidue(t)
	dir, err := os.MkdirTemp("", "escape")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return &arena{t, dir}
}

// site returns a new place for the runtime, with a volume that an attacker shares, and a
// victim on the host: a folder outside of every bundle.
func (a *arena) site(r runtime, name string) *site {
	a.t.Helper()
	s := newSite(a.t, r, filepath.Join(a.dir, name), "escape-"+name)
	s.mkdir("volume")
	s.mkdir("victim")
	s.write("victim/secret", "the host's")
	return s
}

// plain returns a bundle without a network of its own that runs one command of the probe.
func plain(s *site, args ...string) *bundle {
	b := newBundle(s)
	b.without(specs.NetworkNamespace)
	b.process().Args = append([]string{"/probe"}, args...)
	return b
}

// domain is the file that attacks write to. It is read-only in every container; the domain
// name belongs to the container's own namespace.
const domain = "/proc/sys/kernel/domainname"

// put returns the command that tries to write it there, perhaps by another name.
func put(path string) []string { return []string{"put", "/out", "attacked", path} }

// wrote reports whether the probe's write succeeded.
func wrote(s *site) bool { return strings.Contains(s.read("rootfs/out"), `"ok":true`) }

// swap exchanges two names of a folder until stop is called.
func (s *site) swap(folder, one, other string) (stop func()) {
	s.t.Helper()
	cmd := exec.Command(testhost.Binary(s.t, "clove-probe"), "swap", s.path(folder), one, other, "600")
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return func() { cmd.Process.Kill(); cmd.Wait() } // the status is that of the kill
}

// names returns the names in a folder, without the secret.
func (s *site) names(folder string) []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.path(folder))
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "secret" })
}

// How often a race is run: under the vulnerable version until it is lost, and as often under
// clove-oci.
const (
	raceControl = 400
	raceTries   = 60
)

// escape is an attack whose result one try shows.
type escape struct {
	// attack makes the bundle, runs it, and reports whether the attack succeeded.
	attack func(s *site) bool
	// tries is more than 1 for a race.
	control, tries int
}

// run checks that the attack succeeds under the old version and never under clove-oci.
func (a *arena) run(old string, e escape) {
	a.t.Helper()
	s, through := a.site(vulnerable(a.t, old), "control"), false
	tries := 0
	for ; tries < max(e.control, 1) && !through; tries++ {
		through = e.attack(s)
	}
	if !through {
		a.t.Fatalf("control: the attack does not get through runc %s in %d tries", old, tries)
	}
	a.t.Logf("control: through runc %s at try %d", old, tries)
	s = a.site(tested(a.t), "tested")
	for range max(testhost.Sample(e.tries, e.tries/4, e.tries/4), 1) {
		if e.attack(s) {
			a.t.Fatal("the attack gets through clove-oci")
		}
	}
}
