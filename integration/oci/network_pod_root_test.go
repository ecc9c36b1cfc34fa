//go:build root

package oci

import (
	"strings"
	"testing"

	"clove.run/clove/internal/ocitest"
)

// TestAPodsRulesAreItsSandboxes: the member brings no rules, and is held to the
// pod's; nothing that it executes later gets more.
func TestAPodsRulesAreItsSandboxes(t *testing.T) {
	n := newNode(t)
	n.serve()
	guarded(t, n, "sandbox", allowing(ocitest.AllowedAddress, podRole, "sandbox", podSandbox, "sandbox")...)
	fetches := guarded(t, n, "member", allowing(ocitest.AllowedAddress, podRole, "container", podSandbox, "sandbox")...)
	if got := fetches(ocitest.AllowedAddress); got != allowedSays {
		t.Errorf("%q", got)
	}
	if got := fetches(ocitest.OtherAddress); got != "" {
		t.Errorf("another: %q", got)
	}
	if got := n.Do("exec", "--cap", "CAP_NET_RAW", "member", "ping", "-c", "1", "-w", "2", ocitest.AllowedAddress); got.Status == 0 {
		t.Errorf("a raw socket by exec: %+v", got)
	}
	if got := n.Do("exec", "--cap", "CAP_SYS_ADMIN", "member", "true"); got.Status == 0 || !strings.Contains(got.Err, "CAP_SYS_ADMIN") {
		t.Errorf("a privileged exec: %+v", got)
	}
	n.Must("delete", "--force", "member")
	if !n.ruled() {
		t.Error("a member's end took the pod's rules")
	}
}

// TestMembersOutliveTheirSandbox, whose process they may have ended, and are held.
func TestMembersOutliveTheirSandbox(t *testing.T) {
	n := newNode(t)
	n.serve()
	guarded(t, n, "sandbox", allowing(ocitest.AllowedAddress, podRole, "sandbox", podSandbox, "sandbox")...)
	fetches := guarded(t, n, "member", allowing(ocitest.AllowedAddress, podRole, "container", podSandbox, "sandbox")...)
	n.Must("kill", "sandbox", "KILL")
	n.Must("delete", "--force", "sandbox")
	for _, address := range []string{ocitest.AllowedAddress, ocitest.OtherAddress} {
		if got := fetches(address); got != "" {
			t.Errorf("%q", got)
		}
	}
	if !n.ruled() {
		t.Error("the sandbox's end took the rules")
	}
}
