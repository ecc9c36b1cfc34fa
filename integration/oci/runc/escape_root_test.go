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

// The last versions of runc before what each of them still allows was mended.
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

// site is a new place for the runtime, with a volume that an attacker shares, and a
// victim on the host: a folder outside of every bundle.
func (a *arena) site(r runtime, name string) *site {
	a.t.Helper()
	s := newSite(a.t, r, filepath.Join(a.dir, name), "escape-"+name)
	s.mkdir("volume")
	s.mkdir("victim")
	s.write("victim/secret", "the host's")
	return s
}

// plain is a bundle without a network of its own that runs one command of the probe.
func plain(s *site, args ...string) *bundle {
	b := newBundle(s)
	b.without(specs.NetworkNamespace)
	b.process().Args = append([]string{"/probe"}, args...)
	return b
}

// domain is the file that attacks write to, and that is read-only in every
// container: the domain name belongs to the container's own namespace.
const domain = "/proc/sys/kernel/domainname"

// put is the command that tries to write it there, by another name perhaps.
func put(path string) []string { return []string{"put", "/out", "attacked", path} }

// wrote tells whether the probe's put came through.
func wrote(s *site) bool { return strings.Contains(s.read("rootfs/out"), `"ok":true`) }

// swap exchanges two names of a folder until stop is called.
func (s *site) swap(folder, one, other string) (stop func()) {
	s.t.Helper()
	cmd := exec.Command(testhost.Binary(s.t, "clove-probe"), "swap", s.path(folder), one, other, "600")
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	return func() { cmd.Process.Kill(); cmd.Wait() } // the status is the kill
}

// names are what is in a folder, but for the secret.
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

// How often a race is run: until the control loses it, and so often by what is tested.
const (
	raceControl = 400
	raceTries   = 60
)

// escape is an attack that one try shows.
type escape struct {
	// attack makes the bundle, runs it, and tells whether it got through.
	attack func(s *site) bool
	// tries is more than 1 for a race.
	control, tries int
}

// run shows the attack get through under the old version and never under clove-oci.
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
