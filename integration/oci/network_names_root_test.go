//go:build root

package oci

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
)

// TestAnImagesNameServersAreNotAsked: a server that resolves an allowed name decides which
// addresses may be reached.
func TestAnImagesNameServersAreNotAsked(t *testing.T) {
	n := newNode(t)
	n.serve()
	images := func(s *specs.Spec) {
		s.Mounts = slices.DeleteFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == "/etc/resolv.conf" })
	}
	writable := func(s *specs.Spec) {
		i := slices.IndexFunc(s.Mounts, func(m specs.Mount) bool { return m.Destination == "/etc/resolv.conf" })
		s.Mounts[i].Options = []string{"bind", "rw"}
	}
	readonly := func(s *specs.Spec) { s.Root.Readonly = true; images(s) }
	given := func(*specs.Spec) {}
	for name, row := range map[string]struct {
		edit func(*specs.Spec)
		want string
	}{
		"given by the engine": {given, ocitest.AllowedAddress}, "the image's": {images, ""},
		"the image's, read-only": {readonly, ""}, "one that may be written": {writable, ""},
	} {
		asked := "echo $(" + lookup("allowed.test", "", ocitest.AllowedAddress) + ")"
		got := n.Do("run", "--bundle", n.bundle(ocitest.ServerAddress, asked, n.in(allowing("allowed.test")...), row.edit), "one")
		if got.Status != 0 || strings.TrimSpace(got.Out) != row.want {
			t.Errorf("%s: %+v, want %q", name, got, row.want)
		}
	}
}

// TestThatNoNameResolvesIsSaid: already at start, because a failed lookup can have many
// reasons.
func TestThatNoNameResolvesIsSaid(t *testing.T) {
	n := newNode(t)
	n.serve()
	for server, want := range map[string]bool{"": true, ocitest.ServerAddress: false} {
		n.Must("create", "--bundle", n.bundle(server, "exec sleep 1000", n.in(allowing("allowed.test")...)), "one")
		n.Must("start", "one")
		text, err := os.ReadFile(filepath.Join(n.Root, "one", agent.GuardLogFile))
		if err != nil || strings.Contains(string(text), "no name resolves") != want {
			t.Errorf("with %q: %s, %v", server, text, err)
		}
		n.Must("delete", "--force", "one")
	}
}
