package oci

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// networked returns a bundle with network rules and these namespaces.
func networked(namespaces ...specs.LinuxNamespace) *specs.Spec {
	return &specs.Spec{Version: specs.Version, Annotations: map[string]string{AnnotationNetworkMode: agent.NetworkPublic},
		Process: &specs.Process{}, Linux: &specs.Linux{Namespaces: namespaces}}
}

func capabilities(names ...string) *specs.LinuxCapabilities {
	set := func() []string { return slices.Clone(names) }
	return &specs.LinuxCapabilities{Bounding: set(), Effective: set(), Inheritable: set(), Permitted: set(), Ambient: set()}
}

func TestNetworkRulesNeedANetworkOfTheirOwn(t *testing.T) {
	t.Parallel()
	network, user := specs.LinuxNamespace{Type: specs.NetworkNamespace}, specs.LinuxNamespace{Type: specs.UserNamespace}
	byPath := specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: "/run/netns/one"}
	for name, row := range map[string]struct {
		namespaces []specs.LinuxNamespace
		refused    string
	}{
		"the host's":                     {nil, "host's network"},
		"its own":                        {[]specs.LinuxNamespace{network}, ""},
		"an engine's":                    {[]specs.LinuxNamespace{byPath}, ""},
		"an engine's, and users":         {[]specs.LinuxNamespace{byPath, user}, ""},
		"its own, of its user namespace": {[]specs.LinuxNamespace{network, user}, "user namespace"},
	} {
		_, err := Apply(networked(row.namespaces...), "one")
		if row.refused == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if agent.KindOf(err) != agent.KindUnenforceable || !strings.Contains(err.Error(), row.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Apply(&specs.Spec{Annotations: map[string]string{AnnotationNetworkMode: agent.NetworkNone}}, "one"); agent.KindOf(err) != agent.KindUnenforceable {
		t.Errorf("without linux: %v", err)
	}
}

// TestADeviceThatIsBroughtIsRefused: whichever program made the namespace. Without network
// rules the engine may bring devices.
func TestADeviceThatIsBroughtIsRefused(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]string{"public": agent.NetworkPublic, "none": agent.NetworkNone, "without rules": ""} {
		spec := networked(specs.LinuxNamespace{Type: specs.NetworkNamespace, Path: "/run/netns/one"})
		spec.Linux.NetDevices = map[string]specs.LinuxNetDevice{"can1": {}, "can0": {Name: "bus"}}
		spec.Annotations[AnnotationNetworkMode] = mode
		if mode == "" {
			spec.Annotations = map[string]string{AnnotationPids: "7"}
		}
		_, err := Apply(spec, "one")
		if mode == "" {
			if err != nil || len(spec.Linux.NetDevices) != 2 {
				t.Errorf("%s: %v", name, err)
			}
		} else if agent.KindOf(err) != agent.KindUnenforceable || !strings.Contains(err.Error(), "bring can0, can1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatGoesAroundRulesIsTaken(t *testing.T) {
	t.Parallel()
	spec := networked(specs.LinuxNamespace{Type: specs.NetworkNamespace})
	spec.Process.Capabilities = capabilities("CAP_CHOWN", "CAP_NET_RAW", "cap_net_admin", "CAP_NET_BIND_SERVICE")
	if _, err := Apply(spec, "one"); err != nil {
		t.Fatal(err)
	}
	all := spec.Process.Capabilities
	for _, set := range [][]string{all.Bounding, all.Effective, all.Inheritable, all.Permitted, all.Ambient} {
		if !slices.Equal(set, []string{"CAP_CHOWN", "CAP_NET_BIND_SERVICE"}) {
			t.Errorf("%v", set)
		}
	}
	if !slices.Contains(spec.Linux.ReadonlyPaths, "/proc/sys") {
		t.Error("the network's sysctls can be written")
	}
	// Control: without rules nothing is removed.
	spec = networked(specs.LinuxNamespace{Type: specs.NetworkNamespace})
	spec.Annotations, spec.Process.Capabilities = nil, capabilities("CAP_NET_RAW", "CAP_SYS_ADMIN")
	if _, err := Apply(spec, "one"); err != nil || len(spec.Process.Capabilities.Bounding) != 2 || spec.Linux.ReadonlyPaths != nil {
		t.Errorf("without rules: %v, %+v", err, spec.Process.Capabilities)
	}
}

// TestWhoCouldUndoRulesIsRefused: at start and by exec.
func TestWhoCouldUndoRulesIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_BPF", "CAP_SYS_BOOT", "CAP_SYS_PTRACE", "CAP_DAC_READ_SEARCH"} {
		for i := range 5 {
			c := capabilities("CAP_CHOWN")
			set := []*[]string{&c.Bounding, &c.Effective, &c.Inheritable, &c.Permitted, &c.Ambient}[i]
			*set = append(*set, name)
			spec := networked(specs.LinuxNamespace{Type: specs.NetworkNamespace})
			spec.Process.Capabilities = c
			if _, err := Apply(spec, "one"); agent.KindOf(err) != agent.KindUnenforceable || !strings.Contains(err.Error(), name) {
				t.Errorf("%s in set %d: %v", name, i, err)
			}
			guest := &specs.Process{Capabilities: c}
			if err := TightenProcess(spec.Annotations, guest); agent.KindOf(err) != agent.KindUnenforceable {
				t.Errorf("%s in set %d, exec: %v", name, i, err)
			}
			if err := TightenProcess(nil, guest); err != nil {
				t.Errorf("exec without rules: %v", err)
			}
		}
	}
	if err := TightenProcess(map[string]string{AnnotationNetworkMode: agent.NetworkNone}, &specs.Process{}); err != nil {
		t.Errorf("exec with the container's own capabilities: %v", err)
	}
}

func TestGuarded(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		annotations map[string]string
		network     string
		rules       int
		member      bool
	}{
		"nothing": {},
		"a list": {map[string]string{AnnotationNetworkMode: agent.NetworkAllowlist, AnnotationNetworkAllow: "pypi.org", AnnotationNetworkDeny: "10.0.0.0/8"},
			agent.NetworkAllowlist, 2, false},
		"a sandbox": {map[string]string{AnnotationNetworkMode: agent.NetworkNone, cri: "sandbox", criID: "one"}, agent.NetworkNone, 0, false},
		"a member":  {map[string]string{AnnotationNetworkMode: agent.NetworkNone, cri: "container", criID: "two"}, agent.NetworkNone, 0, true},
	} {
		g, member, err := Guarded(row.annotations, "one")
		if err != nil || g.Network != row.network || len(g.Rules) != row.rules || member != row.member {
			t.Errorf("%s: %+v, %v, %v", name, g, member, err)
		}
	}
	for id, want := range map[string]bool{"s": true, "one": false} {
		if got := HoldsPod(map[string]string{"io.kubernetes.cri.container-type": "sandbox", "io.kubernetes.cri.sandbox-id": "s"}, id); got != want {
			t.Errorf("%q holds the pod: %v", id, got)
		}
	}
	if _, _, err := Guarded(map[string]string{AnnotationNetworkMode: "most"}, "one"); err == nil {
		t.Error("a mode that is none is taken")
	}
}
