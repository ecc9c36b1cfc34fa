package advice

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

func TestConnections(t *testing.T) {
	t.Parallel()
	none, public := policies.Standard(), policies.Standard()
	public.Network, public.Egress.Rules = agent.NetworkPublic, []agent.EgressRule{{Deny: true, Target: "*.example.org", Source: "--deny"}}
	for _, row := range []struct {
		spec           agent.Spec
		target         string
		flag, policy   string
		riskOrNotePart string
	}{
		{none, "dns://api.example.com", "--allow api.example.com:443", `network: {mode: allowlist, allow: ["api.example.com:443"]}`, "servers of this name"},
		{public, "tcp://10.0.0.1:5432", "--allow 10.0.0.1:5432", `network.allow: ["10.0.0.1:5432"]`, "private network"},
		{public, "tcp://169.254.169.254:80", "--allow metadata:80", `network.allow: ["metadata:80"]`, "credentials"},
		{public, "udp://9.9.9.9:53", "--allow udp://9.9.9.9:53", `network.allow: ["udp://9.9.9.9:53"]`, "this address"},
		{public, "tcp://127.0.0.1:5432", "--host-port 5432", "network.host_ports: [5432]", "127.0.0.1"},
		{none, "host-port://127.0.0.1:5432", "--host-port 5432", "network.host_ports: [5432]", "127.0.0.1"},
		{public, "tcp://a.example.org:443", "", "", "on purpose"},
		{public, "tcp://a.example.com:443", "", "", "a rule allows the name"},
		{none, "network://everything", "", "", "gate was lost"},
		{none, "everything", "", "", "gate was lost"},
		{none, "tcp://(other targets)", "", "", "no space"},
		{none, "other://10.0.0.1", "", "", "only TCP and UDP"},
		{none, "tcp://nonsense", "", "", "no target"},
		{none, "dns://a b", "", "", "no rule can allow it"},
	} {
		a := Of(row.spec, agent.Denial{Kind: "network", Target: row.target})
		if a.Flag != row.flag || a.Policy != row.policy || !strings.Contains(a.Risk+a.Note, row.riskOrNotePart) {
			t.Errorf("%s: %+v", row.target, a)
		}
	}
}

func TestOtherKinds(t *testing.T) {
	t.Parallel()
	minimal, readonly, root, listed := policies.Standard(), policies.Standard(), policies.Standard(), policies.Standard()
	listed.Files.ReadOnly, listed.Files.Execute = true, []string{"/bin/sh"}
	minimal.Seccomp.Profile = "minimal"
	readonly.Files.ReadOnly, readonly.Files.Writable = true, []string{"/tmp"}
	root.User, root.CapDrop = agent.User{Name: "root"}, []string{"CAP_CHOWN"}
	for _, row := range []struct {
		spec         agent.Spec
		kind, target string
		flag, policy string
	}{
		{policies.Standard(), "capability", "CAP_NET_BIND_SERVICE", "", ""},
		{policies.Standard(), "exec", "/dev/shm/tool", "", ""},
		{minimal, "syscall", "fork", "--seccomp strict", "seccomp: strict"},
		{policies.Standard(), "syscall", "mount", "--seccomp unconfined", "seccomp: unconfined"},
		{policies.Standard(), "syscall", "nonsense", "", ""},
		{readonly, "file", "/workspace/a", "", "files.writable: [/tmp, /workspace]"},
		{listed, "exec", "/usr/bin/gcc", "--allow-exec /usr/bin/gcc", "files.execute: [/bin/sh, /usr/bin/gcc]"},
		{listed, "exec", "/tmp/gcc", "", ""},
		{listed, "exec", "gcc", "", ""},
		{readonly, "exec", "/usr/bin/gcc", "", ""},
		{policies.Standard(), "file", "/srv/data/a", "-v /srv/data:/srv/data:ro", "files.volumes: [/srv/data:/srv/data:ro]"},
		{policies.Standard(), "file", "data", "", ""},
		{policies.Standard(), "capability", "CAP_CHOWN", "--user root", "user: root"},
		{root, "capability", "CAP_CHOWN", "no --cap-drop CHOWN", "capabilities.drop: without CHOWN"},
		{root, "capability", "CAP_SYS_ADMIN", "", ""},
		{root, "mood", "x", "", ""},
	} {
		a := Of(row.spec, agent.Denial{Kind: row.kind, Target: row.target})
		if a.Flag != row.flag || a.Policy != row.policy || (a.Risk == "") != (a.Policy == "") || (a.Note == "") != (a.Policy != "") {
			t.Errorf("%s %s: %+v", row.kind, row.target, a)
		}
	}
}

// Advice for a write that a read-only mount refused is another mount, not a folder of the host.
func TestReadOnlyFiles(t *testing.T) {
	t.Parallel()
	spec := policies.Standard()
	spec.Files.ReadOnly = true
	spec.Files.Binds = []agent.Bind{{Source: "/srv/data", Target: "/data", ReadOnly: true}, {Source: "/srv/own", Target: "/data/own"}}
	for target, want := range map[string]Advice{
		"/data/a":     {Flag: "-v /srv/data:/data", Policy: "files.volumes: [/srv/data:/data]"},
		"/usr/a":      {Flag: "no --read-only", Policy: "files.root: writable"},
		"/data/own/a": {Flag: "no --read-only", Policy: "files.root: writable"},
	} {
		a := Of(spec, agent.Denial{Kind: agent.DenialFile, Target: target, Errno: "EROFS"})
		if a.Flag != want.Flag || a.Policy != want.Policy || a.Risk == "" {
			t.Errorf("%s: %+v", target, a)
		}
	}
}

// A call is refused for its arguments, and the narrowest filter that lets those pass is named.
func TestCallsByTheirArguments(t *testing.T) {
	t.Parallel()
	spec := policies.Standard()
	spec.Seccomp.Profile = "strict"
	for family, flag := range map[string]string{"0x2": "--seccomp standard", "0x11": "--seccomp unconfined"} {
		d := agent.Denial{Kind: agent.DenialCall, Target: "socket", Call: &agent.DeniedCall{Name: "socket", Args: []string{family, "0x1", "0x0"}}}
		if a := Of(spec, d); a.Flag != flag {
			t.Errorf("family %s: %+v", family, a)
		}
	}
}

// Each limit that a record may name has its flag and its key.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name := range limits {
		if a := OfLimit(agent.LimitHit{Name: name}, agent.StatusOOM); !strings.HasPrefix(a.Flag, "--") || !strings.HasPrefix(a.Policy, "limits.") {
			t.Errorf("%s: %+v", name, a)
		}
	}
	if a := OfLimit(agent.LimitHit{Name: "cost_micros", Value: 500_000}, agent.StatusBudget); a.Flag != "--budget cost=1usd" || a.Policy != "budgets: [cost=1usd]" {
		t.Errorf("%+v", a)
	}
}

func TestReading(t *testing.T) {
	t.Parallel()
	spec := policies.Standard()
	spec.Files.Read = []string{"/usr"}
	spec.Files.Binds = []agent.Bind{{Source: "/srv/data", Target: "/data"}, {Source: "/srv/docs", Target: "/docs", ReadOnly: true}}
	for target, flag := range map[string]string{
		"/workspace/.env": "--allow-read /workspace/.env", "/docs/a": "--allow-read /docs/a",
		"/data/a": "--allow-read /data", // a part of a writable volume cannot be listed
		"/":       "", "data": "",
	} {
		for _, kind := range []string{agent.DenialFile, agent.DenialExec} {
			a := Of(spec, agent.Denial{Kind: kind, Target: target, Rule: agent.RuleRead, Errno: "EACCES"})
			if a.Flag != flag || (a.Risk == "") != (flag == "") || (a.Note == "") != (flag != "") {
				t.Errorf("%s %s: %+v", kind, target, a)
			}
		}
	}
}

// Each kind of refusal that a record can have is known, and each reason of a secret's has its own note.
func TestEachKindOfRefusalIsKnown(t *testing.T) {
	t.Parallel()
	for _, kind := range agent.DenialKinds {
		if note := Of(agent.Spec{}, agent.Denial{Kind: kind, Target: "x"}).Note; strings.Contains(note, "does not know") {
			t.Errorf("%s: %s", kind, note)
		}
	}
	if note := Of(agent.Spec{}, agent.Denial{Kind: "other"}).Note; !strings.Contains(note, "does not know") {
		t.Errorf("control: %s", note)
	}
	seen := map[string]string{}
	for _, rule := range []string{"rule", "TOKEN: place", "foreign", "TOKEN: use", "form"} {
		note := Of(agent.Spec{}, agent.Denial{Kind: agent.DenialSecret, Rule: rule}).Note
		if before := seen[note]; note == "" || before != "" {
			t.Errorf("%s and %s: %s", before, rule, note)
		}
		seen[note] = rule
	}
}
