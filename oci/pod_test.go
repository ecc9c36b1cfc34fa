package oci

import (
	"maps"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// The engines' keys, as their documents define them.
const (
	cri, criID   = "io.kubernetes.cri.container-type", "io.kubernetes.cri.sandbox-id"
	crio, crioID = "io.kubernetes.cri-o.ContainerType", "io.kubernetes.cri-o.SandboxID"
)

// TestARoleIsBelievedWithTheIDThatTheEngineMade: the author of an image, or a user, writes
// annotations before that id exists. A role without it removes no rule.
func TestARoleIsBelievedWithTheIDThatTheEngineMade(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		pod             map[string]string
		sandbox, member bool
	}{
		"no pod":                    {nil, false, false},
		"containerd's sandbox":      {map[string]string{cri: "sandbox", criID: "one"}, true, false},
		"CRI-O's sandbox":           {map[string]string{crio: "sandbox", crioID: "one"}, true, false},
		"both's":                    {map[string]string{cri: "sandbox", criID: "one", crio: "sandbox", crioID: "one"}, true, false},
		"containerd's container":    {map[string]string{cri: "container", criID: "two"}, false, true},
		"CRI-O's container":         {map[string]string{crio: "container", crioID: "two"}, false, true},
		"a sandbox without an id":   {map[string]string{cri: "sandbox"}, false, false},
		"a sandbox of an empty id":  {map[string]string{crio: "sandbox", crioID: ""}, false, false},
		"another's sandbox":         {map[string]string{cri: "sandbox", criID: "two"}, false, false},
		"the other engine's id":     {map[string]string{cri: "sandbox", crioID: "one"}, false, false},
		"a container of no sandbox": {map[string]string{crio: "container"}, false, false},
		"a container of its own":    {map[string]string{cri: "container", criID: "one"}, false, false},
		"an id alone":               {map[string]string{criID: "one", crioID: "one"}, false, false},
		"another word":              {map[string]string{cri: "Sandbox", criID: "one"}, false, false},
	} {
		annotations := map[string]string{AnnotationTimeout: "1h", AnnotationPids: "7", AnnotationNetworkMode: agent.NetworkNone}
		maps.Copy(annotations, row.pod)
		rules, err := For(annotations, "one")
		held := rules.Limits.WallClock == time.Hour && rules.Limits.Pids == 7
		if err != nil || held == row.sandbox || rules.Member != row.member || rules.Network != agent.NetworkNone {
			t.Errorf("%s: %v, %+v", name, err, rules)
		}
	}
	// An empty id matches no container, not even an empty annotation.
	if rules, err := For(map[string]string{AnnotationPids: "7", cri: "sandbox", criID: ""}, ""); err != nil || rules.Limits.Pids != 7 {
		t.Errorf("%v, %+v", err, rules)
	}
}

// TestEnginesThatDisagreeAreRefused: one of the annotations is not the engine's. Without rules
// there is nothing to protect, so they are ignored.
func TestEnginesThatDisagreeAreRefused(t *testing.T) {
	t.Parallel()
	for name, pod := range map[string]map[string]string{
		"on the role":    {cri: "container", criID: "two", crio: "sandbox", crioID: "two"},
		"on the sandbox": {cri: "container", criID: "two", crio: "container", crioID: "three"},
		"on an id":       {cri: "sandbox", criID: "one", crio: "sandbox"},
	} {
		if _, err := For(pod, "one"); err != nil {
			t.Errorf("%s, without rules: %v", name, err)
		}
		annotations := map[string]string{AnnotationPids: "7"}
		maps.Copy(annotations, pod)
		if _, err := For(annotations, "one"); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Apply(bundle(t, "", annotations), "one"); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s, at create: %v", name, err)
		}
		if _, _, err := Guarded(annotations, "one"); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s, at start: %v", name, err)
		}
	}
}
