//go:build root

package oci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/oci"
)

// TestTheCeilingBoundsABundle: create refuses what the host's ceiling does not allow, and leaves
// nothing. The controls: the same bundle without a ceiling, a deadline within it, and a bundle
// without annotations, whose limits are its engine's.
func TestTheCeilingBoundsABundle(t *testing.T) {
	h := newHeld(t)
	asking := h.Bundle(forever, annotated(oci.AnnotationTimeout, "48h"))
	t.Setenv("CLOVE_POLICIES", t.TempDir())
	h.Must("create", "--bundle", asking, "free")
	h.Must("delete", "--force", "free")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "host.yaml"), []byte("version: 1\nname: host\nlimits: {timeout: 24h, memory: 64M}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("CLOVE_POLICIES", dir)
	got := h.Do("create", "--bundle", asking, "one")
	if got.Status == 0 || !strings.Contains(got.Err, "annotation run.clove.timeout: this host allows no agent that much: limits.timeout: 48h0m0s instead of 24h0m0s") {
		t.Errorf("%+v", got)
	}
	if list := h.Must("list", "-q"); strings.TrimSpace(list) != "" {
		t.Errorf("something is left: %s", list)
	}
	h.Must("create", "--bundle", h.Bundle(forever, annotated(oci.AnnotationTimeout, "24h")), "within")
	h.Must("delete", "--force", "within")
	h.Must("create", "--bundle", h.Bundle(forever), "plain")
	h.Must("delete", "--force", "plain")
}
