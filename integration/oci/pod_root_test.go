//go:build root

package oci

import (
	"os"
	"strings"
	"testing"

	"clove.run/clove/oci"
)

const (
	podRole, podSandbox     = "io.kubernetes.cri.container-type", "io.kubernetes.cri.sandbox-id"
	otherRole, otherSandbox = "io.kubernetes.cri-o.ContainerType", "io.kubernetes.cri-o.SandboxID"
)

// TestWhoCallsItselfASandboxIsHeld: an image's annotations may claim that role, and deadline,
// limit and record still apply. The control is a real sandbox, with an id that its engine
// wrote: it outlives the deadline of its pod's agents.
func TestWhoCallsItselfASandboxIsHeld(t *testing.T) {
	h := newHeld(t)
	for name, row := range map[string]struct {
		pod  []string
		held bool
	}{
		"no pod":               {nil, true},
		"without an id":        {[]string{podRole, "sandbox"}, true},
		"another's id":         {[]string{podRole, "sandbox", podSandbox, "two"}, true},
		"an empty id":          {[]string{otherRole, "sandbox", otherSandbox, ""}, true},
		"the other engine's":   {[]string{otherRole, "sandbox", podSandbox, "one"}, true},
		"containerd's sandbox": {[]string{podRole, "sandbox", podSandbox, "one"}, false},
		"CRI-O's sandbox":      {[]string{otherRole, "sandbox", otherSandbox, "one"}, false},
	} {
		timed := append(append(recordAt(oci.RecordID+".json"), oci.AnnotationTimeout, "1s"), row.pod...)
		script := "sleep 3; exit 5"
		if row.held {
			script = forever // otherwise a slow monitor would reach its deadline after the end
		}
		got := h.Do("run", "--bundle", h.Bundle(script, annotated(timed...)), "one")
		if want := map[bool]int{true: 128 + 9, false: 5}[row.held]; got.Status != want {
			t.Errorf("%s: at the deadline %+v", name, got)
		}
		if err := os.Remove(h.records + "/one.json"); (err == nil) != row.held {
			t.Errorf("%s: its record: %v", name, err)
		}
		h.begin("one", h.Bundle(forever, annotated(append([]string{oci.AnnotationPids, "77"}, row.pod...)...)))
		if has := limit(t, h.Runtime, "one", pidsMax); (has == "77") != row.held {
			t.Errorf("%s: %s processes", name, has)
		}
		if got := h.Do("update", "--pids-limit", "78", "one"); (got.Status != 0) != row.held {
			t.Errorf("%s: beyond its limit %+v", name, got)
		}
		h.Must("delete", "--force", "one")
	}
}

// TestRolesThatContradictAreRefused: with rules, nothing is made.
func TestRolesThatContradictAreRefused(t *testing.T) {
	h := newHeld(t)
	both := []string{podRole, "sandbox", podSandbox, "one", otherRole, "container", otherSandbox, "two"}
	if got := h.Do("run", "--bundle", h.Bundle("exit 5", annotated(both...)), "one"); got.Status != 5 {
		t.Errorf("without rules: %+v", got)
	}
	got := h.Do("create", "--bundle", h.Bundle("exit 5", annotated(append(both, oci.AnnotationTimeout, "1h")...)), "one")
	if _, err := os.Stat(h.Root + "/one"); got.Status != 1 || !strings.Contains(got.Err, otherRole) || !os.IsNotExist(err) {
		t.Errorf("%+v, %v", got, err)
	}
}
