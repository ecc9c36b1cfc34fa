package resolve

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
)

// policyHost has the documents in a directory of policies.
func policyHost(t *testing.T, documents map[string]string) host.Host {
	t.Helper()
	h, err := host.Current()
	if err != nil {
		t.Fatal(err)
	}
	h.Dir = t.TempDir()
	h.Policies, h.Ceiling = []string{h.Dir}, h.Dir
	for name, text := range documents {
		if err := os.WriteFile(filepath.Join(h.Dir, name+".yaml"), []byte("version: 1\nname: "+name+"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// The document of the standard level says what Standard is.
func TestStandardIsItsDocument(t *testing.T) {
	t.Parallel()
	p, err := LoadPolicy(policies.StandardName, policyHost(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := policies.Standard(); !reflect.DeepEqual(p.Spec, want) {
		t.Errorf("\n%+v\n%+v", p.Spec, want)
	}
}

// Each level allows what the next one allows, and less: none is wider than the one before.
func TestLevelsNarrow(t *testing.T) {
	t.Parallel()
	h := policyHost(t, nil)
	for i := 1; i < len(policies.Levels); i++ {
		wide, err := LoadPolicy(policies.Levels[i-1], h)
		if err != nil {
			t.Fatal(err)
		}
		narrow, err := LoadPolicy(policies.Levels[i], h)
		if err != nil {
			t.Fatal(err)
		}
		if found := settings.Wider(wide.Spec, narrow.Spec); len(found) > 0 {
			t.Errorf("%s is wider than %s: %v", narrow.Document.Name, wide.Document.Name, found)
		}
		if found := settings.Wider(narrow.Spec, wide.Spec); len(found) == 0 {
			t.Errorf("%s is as wide as %s", narrow.Document.Name, wide.Document.Name)
		}
		if (len(wide.Spec.Policy.Widened) > 0) != (wide.Document.Name == "unrestricted") {
			t.Errorf("%s: %v", wide.Document.Name, wide.Spec.Policy)
		}
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ text, want, hint string }{
		"wider":       {"limits: {memory: 2G}\n", "it allows more than standard, which it extends: limits.memory: 2GiB instead of 1GiB", "widen: {limits.memory: REASON}"},
		"mode":        {"extends: sandboxed\nnetwork: {mode: public}\n", "network.mode: public instead of none", "widen: {network.mode: REASON}"},
		"filter":      {"extends: sandboxed\nseccomp: standard\n", "seccomp: standard instead of strict", "widen"},
		"writable":    {"extends: sandboxed\nfiles: {root: writable}\n", "files.root: writable instead of read-only", "widen"},
		"places":      {"extends: readonly\nfiles: {writable: [/tmp, /workspace]}\n", "files.writable: /workspace instead of /tmp", "widen"},
		"no-places":   {"extends: readonly\nfiles: {writable: []}\n", "files.writable: ", ""},
		"wall":        {"files: {landlock: perhaps}\n", "files.landlock: \"perhaps\" is not required", "write required"},
		"no-wall":     {"extends: unrestricted\nfiles: {landlock: required}\n", "files.landlock: an agent without a filter may mount", "omit the key"},
		"grant":       {"grants: ['tool:x']\n", "grants: tool:x instead of none", "widen"},
		"model":       {"models: [small]\n", "models: model:small instead of none", "widen: {models: REASON}"},
		"socket":      {"agent_socket: true\n", "agent_socket: one instead of none", "widen"},
		"typo":        {"limits:\n  memroy: 1G\n", `line 4, column 3: limits: there is no key "memroy"`, "did you mean memory?"},
		"twice":       {"user: agent\nuser: root\n", `line 4, column 1: the key "user" stands in line 3 already`, "keep one"},
		"value":       {"limits: {memory: 3X}\n", "limits.memory: ", "unit"},
		"unknown":     {"extends: sandbxed\n", `extends: there is no policy "sandbxed"`, "did you mean sandboxed?"},
		"itself":      {"extends: itself\n", "itself extends itself", "level"},
		"reason":      {"widen: {limits: ''}\n", "widen.limits: the reason is empty", "few words"},
		"place":       {"widen: {limit: x}\n", `widen: there is no key "limit"`, "did you mean limits?"},
		"root":        {"files: {root: ro}\n", `files.root: "ro" is neither`, "read-only"},
		"no-rule":     {"network: {mode: none, allow: [example.com]}\nwiden: {network: x}\n", "network: ", "allowlist"},
		"ulimit":      {"ulimits: {nofiles: 5}\n", `ulimits: there is no resource limit "nofiles"`, ""},
		"tmpfs":       {"extends: readonly\nfiles: {tmpfs: [/workspace]}\n", "files.tmpfs: /workspace instead of none", "widen"},
		"passed":      {"environment: {pass: [AWS_KEY]}\n", "environment.pass: AWS_KEY instead of none of the caller's", "widen"},
		"dns":         {"network: {mode: allowlist, allow: [a.example], dns: [9.9.9.9]}\nwiden: {network.mode: x, network.allow: x}\n", "network.dns: 9.9.9.9:53 instead of none", "widen"},
		"cpus":        {"limits: {cpuset: '" + strings.Repeat("0-65535,", 100) + "0'}\n", "limits.cpuset: ", ""},
		"environment": {"environment: {set: {CLOVE_ID: x}}\n", "CLOVE_ID is clove's own", ""},
	} {
		h := policyHost(t, map[string]string{name: row.text})
		_, err := LoadPolicy(name, h)
		f := agent.FailureOf(err)
		if err == nil || !strings.Contains(f.Message, row.want) || !strings.Contains(f.Hint, row.hint) || !strings.Contains(f.Message, filepath.Join(h.Dir, name+".yaml")) {
			t.Errorf("%s: %q, hint %q", name, f.Message, f.Hint)
		}
	}
}

// A run has the policy's values where no flag says otherwise, and its lists before the flags'.
func TestFlagsOverAPolicy(t *testing.T) {
	t.Parallel()
	h := policyHost(t, map[string]string{
		"web": "extends: sandboxed\nwiden: {network: it reads, seccomp: it connects}\nseccomp: standard\nlimits: {timeout: 60, cpus: 0.5}\n" +
			"network: {mode: allowlist, allow: [a.example.com], deny: [b.example.com]}\nenvironment: {set: {A: policy, B: policy}}\n" +
			"ulimits: {nofile: 512}\nbudgets: [reviews=10, tokens=5]\n",
		"narrower": "extends: web\nlimits: {timeout: 30}\nnetwork: {allow: [a.example.com:443], deny: [c.example.com]}\n",
	})
	spec, err := Spec(Request{Args: []string{"/bin/true"}, Policy: "narrower", Values: settings.Values{settings.Allow: {"d.example.com"}, settings.Memory: {"64M"}, settings.Env: {"B=flag"}, settings.Budget: {"tokens=7"}}}, h, agent.NewID())
	if err != nil {
		t.Fatal(err)
	}
	if l := spec.Limits; l.MemoryBytes != 64<<20 || l.MemorySwapBytes != 64<<20 || l.WallClock.Seconds() != 30 || l.CPUs != 0.5 || l.Pids != 128 {
		t.Errorf("%+v", l)
	}
	var rules []string
	for _, rule := range spec.Egress.Rules {
		rules = append(rules, rule.Source+" "+rule.Target)
	}
	if got := strings.Join(rules, ", "); spec.Network != agent.NetworkAllowlist ||
		got != "policy narrower a.example.com:443, policy narrower b.example.com, policy narrower c.example.com, --allow d.example.com" {
		t.Errorf("%s: %s", spec.Network, got)
	}
	if env := strings.Join(spec.Env, " "); !strings.Contains(env, "A=policy B=flag") {
		t.Error(env)
	}
	if got := strings.Join(spec.Kernel.Budgets, " "); got != "tokens=7 reviews=10" {
		t.Error(got)
	}
	if p := spec.Policy; p.Name != "narrower" || len(p.SHA256) != 64 || len(p.Widened) != 3 || p.Widened[0] != "seccomp (web): it connects" {
		t.Errorf("%+v", p)
	}
	// A mode without a network does without the policy's rules.
	if spec, err = Spec(Request{Args: []string{"/bin/true"}, Policy: "web", Values: settings.Values{settings.NetworkMode: {"none"}}}, h, agent.NewID()); err != nil || len(spec.Egress.Rules) != 0 {
		t.Errorf("%+v, %v", spec.Egress, err)
	}
}

// A name in extends is first one of the same directory: a user's own replaces none of the host's.
func TestExtendsLooksBesideTheDocument(t *testing.T) {
	t.Parallel()
	h := policyHost(t, map[string]string{"base": "extends: sandboxed\n", "prod": "extends: base\n"})
	own := policyHost(t, map[string]string{"base": "extends: unrestricted\n"})
	h.Policies = []string{own.Dir, h.Dir}
	p, err := LoadPolicy("prod", h)
	if err != nil || p.Spec.Seccomp.Profile != "strict" {
		t.Errorf("%v, %+v", err, p)
	}
	if p, err = LoadPolicy("base", h); err != nil || p.Spec.Seccomp.Profile != "unconfined" {
		t.Errorf("%v, %+v", err, p)
	}
}

// A denial of the ceiling's bounds a run that opens what it denies, also by what is added to it later.
func TestACeilingsDenials(t *testing.T) {
	t.Parallel()
	h, without := policyHost(t, map[string]string{"host": "network: {mode: allowlist, allow: ['*.example.com'], deny: [bad.example.com]}\n"}), policyHost(t, nil)
	for _, row := range []struct {
		values settings.Values
		places []string // that were changed
		want   string
	}{
		{settings.Values{settings.Allow: {"good.example.com"}}, nil, ""},
		{settings.Values{settings.Allow: {"*.example.com"}}, nil, "network.deny: not denied instead of bad.example.com denied"},
		{settings.Values{settings.Allow: {"*.example.com"}}, []string{"network.allow"}, "network.deny: not denied"},
		{settings.Values{settings.Allow: {"*.example.com"}}, []string{"limits.memory"}, ""},
		{settings.Values{settings.Allow: {"*.example.com"}, settings.Deny: {"*.example.com:*"}}, nil, ""},
		{settings.Values{settings.Grant: {"net:bad.example.com:443"}}, nil, "network.deny: not denied"},
		{settings.Values{settings.Grant: {"net:good.example.com:443"}}, nil, ""},
	} {
		spec, err := Spec(Request{Args: []string{"/bin/true"}, Values: row.values}, without, agent.NewID())
		if err != nil {
			t.Fatal(err)
		}
		err = CheckCeiling(spec, h.Dir, row.places...)
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%v: %v", row.values, err)
		}
	}
}

// The ceiling bounds what it names, for any caller and any form of request.
func TestCeiling(t *testing.T) {
	t.Parallel()
	h := policyHost(t, map[string]string{"host": "limits: {memory: 2G, timeout: 1h}\nnetwork: {mode: allowlist, allow: ['*.example.com']}\n"})
	for _, row := range []struct {
		asked Request
		want  string // empty: allowed
	}{
		{Request{Values: settings.Values{settings.Memory: {"2G"}, settings.Timeout: {"1h"}}}, ""},
		{Request{Values: settings.Values{settings.Memory: {"2G"}, settings.Timeout: {"1h"}, settings.Pids: {"5000"}, settings.User: {"root"}, settings.Seccomp: {"unconfined"}}}, ""},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.Allow: {"a.example.com"}}}, ""},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.Grant: {"net:evil.org:443"}}}, "network.allow: net:evil.org:443"},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.Allow: {"a.example.com"}, settings.DNS: {"6.6.6.6"}}}, "network.dns: 6.6.6.6:53"},
		{Request{}, "limits.timeout: no limit instead of 1h0m0s"},
		{Request{Values: settings.Values{settings.Memory: {"3G"}, settings.Timeout: {"1h"}}}, "limits.memory: 3GiB instead of 2GiB"},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.MemorySwap: {"-1"}}}, "limits.memory_swap: no limit instead of 0B"},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.NetworkMode: {"public"}}}, "network.mode: public instead of allowlist"},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.NetworkMode: {"host"}}}, "network.mode: host instead of allowlist"},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.Allow: {"example.org"}}}, "network.allow: example.org instead of *.example.com"},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.Allow: {"10.0.0.1"}}}, "network.allow: 10.0.0.1"},
		{Request{Values: settings.Values{settings.Timeout: {"1h"}, settings.HostPort: {"5432"}}}, "network.host_ports: 5432"},
		{Request{Policy: "unrestricted", Values: settings.Values{settings.Timeout: {"1h"}}}, "limits.memory: 4GiB instead of 2GiB"},
	} {
		row.asked.Args = []string{"/bin/true"}
		_, err := Spec(row.asked, h, agent.NewID())
		if row.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", row.asked, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(agent.FailureOf(err).Hint, "host.yaml") {
			t.Errorf("%s: %v", row.want, err)
		}
	}
	// The rights of root that a run drops count, whichever user the standard level has.
	for text, asked := range map[string]Request{
		"capabilities: {drop: [ALL]}\n":                    {Values: settings.Values{settings.User: {"root"}}},
		"network: {bytes: 1G}\n":                           {Values: settings.Values{settings.NetworkMode: {"host"}, settings.NetBytes: {"1G"}}},
		"files: {rootfs: " + h.Dir + "}\n":                 {},
		"network: {mode: public, deny: [evil.org]}\n":      {Values: settings.Values{settings.NetworkMode: {"public"}}},
		"files: {root: read-only, writable: [/tmp]}\n":     {Values: settings.Values{settings.Root: {settings.RootReadOnly}, settings.Writable: {"/tmp"}, settings.Tmpfs: {"/workspace"}}},
		"environment: {pass: [A]}\n":                       {},
		"limits: {cpuset: '0-1', cpus: 1000}\nsecomp: x\n": {},
	} {
		if err := os.WriteFile(CeilingFile(h.Ceiling), []byte("version: 1\nname: host\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
		asked.Args = []string{"/bin/true"}
		if _, err := Spec(asked, h, agent.NewID()); err == nil {
			t.Errorf("%q lets %+v pass", text, asked)
		}
	}
	// Its own limits of the network say nothing of a run without one.
	if err := os.WriteFile(CeilingFile(h.Ceiling), []byte("version: 1\nname: host\nnetwork: {connections: 5}\nlimits: {cpus: 1000}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Spec(Request{Args: []string{"/bin/true"}, Values: settings.Values{settings.CPUs: {"1"}}}, h, agent.NewID()); err != nil {
		t.Error(err)
	}
	// One that cannot be read lets nothing pass.
	if err := os.WriteFile(CeilingFile(h.Ceiling), []byte("version: 1\nname: host\nlimit: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Spec(Request{Args: []string{"/bin/true"}}, h, agent.NewID()); err == nil {
		t.Error("a ceiling with a mistake bounds nothing")
	}
}
