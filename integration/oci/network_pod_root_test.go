//go:build root

package oci

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/oci"
)

// TestAPodsRulesAreItsSandboxes: a member has no rules of its own, and the pod's apply to it
// and to everything that it executes later.
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

// TestAMemberIsHeldToItsOwnRules: a member whose rules differ is not started, because only its
// sandbox's rules are in force.
func TestAMemberIsHeldToItsOwnRules(t *testing.T) {
	n := newNode(t)
	n.serve()
	guarded(t, n, "sandbox", oci.AnnotationNetworkMode, agent.NetworkPublic, podRole, "sandbox", podSandbox, "sandbox")
	for name, annotations := range map[string][]string{
		"none": {oci.AnnotationNetworkMode, agent.NetworkNone}, "fewer": allowing(ocitest.AllowedAddress),
		"one is denied": {oci.AnnotationNetworkMode, agent.NetworkPublic, oci.AnnotationNetworkDeny, ocitest.OtherAddress},
	} {
		n.Must("create", "--bundle", n.bundle(ocitest.ServerAddress, "echo executed", n.in(append(annotations, podRole, "container", podSandbox, "sandbox")...)), "member")
		if got := n.Do("start", "member"); got.Status == 0 || !strings.Contains(got.Err, "are not this container's") {
			t.Errorf("%s: %+v", name, got)
		}
		n.Must("delete", "--force", "member")
	}
	fetches := guarded(t, n, "member", oci.AnnotationNetworkMode, agent.NetworkPublic, podRole, "container", podSandbox, "sandbox") // control
	if got := fetches(ocitest.AllowedAddress); got != allowedSays {
		t.Errorf("%q", got)
	}
}

// TestMembersOutliveTheirSandbox: they may even have ended its process, and the rules still
// apply.
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
