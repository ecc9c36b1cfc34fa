package resolve

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// The shadow is what the same request would be under the other policy, and the run stays what it
// is without one.
func TestAShadowIsBuilt(t *testing.T) {
	t.Parallel()
	h := policyHost(t, map[string]string{"own": "limits: {memory: 900M}\n", "strict": "extends: sandboxed\nlimits: {memory: 64M}\n", "bad": "limits: {memory: 1K}\n"})
	id := agent.NewID()
	asked := Request{Args: []string{"/bin/true"}, Policy: "own", Values: settings.Values{settings.Pids: {"100"}, settings.Allow: {"a.example.com"}, settings.DNS: {"9.9.9.9"}, settings.OnEnd: {"true"}}}
	plain, err := Spec(asked, h, id)
	if err != nil {
		t.Fatal(err)
	}
	asked.PolicyShadow = "strict"
	watched, err := Spec(asked, h, id)
	if err != nil {
		t.Fatal(err)
	}
	shadow := watched.Shadowed()
	if shadow.Policy.Name != "strict" || shadow.Limits.MemoryBytes != 64<<20 || shadow.Limits.Pids != 100 || !shadow.Files.ReadOnly || shadow.Seccomp.Profile != "strict" {
		t.Errorf("%+v", shadow)
	}
	if len(shadow.Egress.Rules) != 1 || len(shadow.Egress.DNS) != 1 || shadow.Kernel.OnEnd != "" {
		t.Errorf("flags of the run hold in it: %+v", shadow.Egress)
	}
	watched.Shadow = nil
	if a, b := plain.Limits.MemoryBytes, watched.Limits.MemoryBytes; a != b || watched.Policy.Name != "own" {
		t.Errorf("the run is another with a shadow: %d, %d, %+v", a, b, watched.Policy)
	}
	// A shadow that has no use for a name server is built all the same.
	if _, err := Spec(Request{Args: []string{"/bin/true"}, PolicyShadow: "minimal", Values: settings.Values{settings.NetworkMode: {"public"}, settings.DNS: {"9.9.9.9"}}}, h, id); err != nil {
		t.Error(err)
	}
	for reference, want := range map[string]string{"bad": "limits.memory", "nobody": "there is no policy"} {
		asked.PolicyShadow = reference
		if _, err := Spec(asked, h, id); err == nil || agent.FailureOf(err).Step != "--policy-shadow" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", reference, err)
		}
	}
}
